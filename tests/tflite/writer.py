"""Writes TensorFlow Lite files: a graph from Python, by the generated classes of the schema.

    m = Model()
    x = m.input("x", (1, 4, 4, 3))
    w = m.constant("w", weights)
    m.output(m.op("CONV_2D", [x, w], (1, 4, 4, 8), Conv2DOptions=dict(strideW=1, strideH=1)))
    pathlib.Path("model.tflite").write_bytes(m.bytes())

Quantised tensors have a scale (or a list of them along an axis) and a zero point.
"""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TYPES = {
    "float32": "FLOAT32",
    "complex64": "COMPLEX64",
    "float16": "FLOAT16",
    "int32": "INT32",
    "uint8": "UINT8",
    "int64": "INT64",
    "bool": "BOOL",
    "int16": "INT16",
    "int8": "INT8",
    "int4": "INT4",
    "int2": "INT2",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "float64": "FLOAT64",
    "string": "STRING",
    "resource": "RESOURCE",
}


def type_number(dtype):
    return getattr(schema.TensorType, TYPES[str(dtype)])


class Tensor:
    def __init__(self, number, shape, dtype, scale, zero):
        self.number, self.shape, self.dtype = number, tuple(shape), str(dtype)
        self.scale, self.zero = scale, zero


class Graph:
    """One graph of a model."""

    def __init__(self, model, name="main"):
        self.model, self.inputs, self.outputs = model, [], []
        self.g = schema.SubGraphT()
        self.g.name = name
        self.g.tensors, self.g.operators = [], []
        self.names = 0

    def tensor(
        self,
        shape,
        dtype="float32",
        scale=None,
        zero=0,
        axis=0,
        name=None,
        data=None,
        signature=None,
        variable=False,
        blocks=None,
    ):
        t = schema.TensorT()
        self.names += 1
        t.name = name or f"t{self.names}"
        t.shape = list(shape)
        t.type = type_number(dtype)
        t.buffer = 0 if data is None else self.model.buffer(data)
        t.isVariable = variable
        if signature is not None:
            t.shapeSignature = list(signature)
        if scale is not None:
            q = schema.QuantizationParametersT()
            scales = np.atleast_1d(np.asarray(scale, np.float32))
            q.scale = scales
            q.zeroPoint = np.broadcast_to(np.asarray(zero, np.int64), scales.shape)
            q.quantizedDimension = axis
            t.quantization = q
        if blocks is not None:  # a tensor of their scales, and their size
            t.quantization = schema.QuantizationParametersT()
            t.quantization.detailsType = schema.QuantizationDetails.BlockwiseQuantization
            t.quantization.details = d = schema.BlockwiseQuantizationT()
            d.scales, d.zeroPoints, d.blockSize = blocks[0].number, -1, blocks[1]
        self.g.tensors.append(t)
        return Tensor(len(self.g.tensors) - 1, shape, dtype, scale, zero)

    def input(self, name, shape, dtype="float32", **more):
        t = self.tensor(shape, dtype, name=name, **more)
        self.inputs.append(t)
        return t

    def constant(self, value, name=None, dtype=None, **more):
        value = np.asarray(value)
        if dtype in ("int4", "int2"):
            each = 2 if dtype == "int4" else 4  # in a byte, the first in the lowest bits
            flat = value.reshape(-1).astype(np.uint8) & (1 << 8 // each) - 1
            flat = np.append(flat, np.zeros(-len(flat) % each, np.uint8)).reshape(-1, each)
            data = (flat << np.arange(0, 8, 8 // each)).sum(1).astype(np.uint8)
        else:
            data = np.frombuffer(value.tobytes(), np.uint8)
        return self.tensor(value.shape, dtype or value.dtype, name=name, data=data, **more)

    def texts(self, shape, *texts):
        """A constant of strings."""
        coded = [s.encode() for s in texts]
        head = 4 * (len(coded) + 2)
        places = head + np.cumsum([0, *map(len, coded)])
        data = np.array([len(coded), *places], np.uint32).tobytes() + b"".join(coded)
        return self.tensor(shape, "string", data=np.frombuffer(data, np.uint8))

    def output(self, *tensors):
        self.outputs.extend(tensors)

    def op(self, name, inputs, outputs, version=1, custom=None, intermediates=None, **options):
        """outputs: tensors. One option: the class of the schema without its T, and its members."""
        o = schema.OperatorT()
        o.opcodeIndex = self.model.code(name, version)
        o.inputs = [-1 if t is None else t.number for t in inputs]
        o.outputs = [t.number for t in outputs]
        if intermediates:
            o.intermediates = [t.number for t in intermediates]
        if custom is not None:
            o.customOptions = np.frombuffer(custom, np.uint8)
        for kind, members in options.items():
            second = "" if hasattr(schema.BuiltinOptions, kind) else "2"  # of newer operators
            union = getattr(schema, "BuiltinOptions" + second)
            setattr(o, f"builtinOptions{second}Type", getattr(union, kind))
            made = getattr(schema, kind + "T")()
            setattr(o, f"builtinOptions{second}", made)
            for key, value in members.items():
                if not hasattr(made, key):
                    raise KeyError(f"{kind} has no {key}")
                setattr(made, key, value)
        self.g.operators.append(o)
        return outputs[0] if len(outputs) == 1 else outputs


class Model(Graph):
    """A model whose first graph it is itself."""

    def __init__(self):
        self.m = schema.ModelT()
        self.m.version = 3
        self.m.buffers = [schema.BufferT()]
        self.m.operatorCodes, self.codes, self.signatures = [], {}, []
        super().__init__(self)
        self.graphs = [self]

    def graph(self, name):
        self.graphs.append(Graph(self, name))
        return self.graphs[-1]

    def buffer(self, data):
        b = schema.BufferT()
        b.data = data if len(data) else None  # as converters do
        self.m.buffers.append(b)
        return len(self.m.buffers) - 1

    def code(self, name, version):
        builtin = getattr(schema.BuiltinOperator, name, None)
        if (name, version) not in self.codes:
            c = schema.OperatorCodeT()
            c.builtinCode = schema.BuiltinOperator.CUSTOM if builtin is None else builtin
            c.deprecatedBuiltinCode = min(c.builtinCode, 127)
            c.customCode = name if builtin is None else None
            c.version = version
            self.codes[name, version] = len(self.m.operatorCodes)
            self.m.operatorCodes.append(c)
        return self.codes[name, version]

    def signature(self, key, inputs, outputs, graph=0):
        s = schema.SignatureDefT()
        s.signatureKey, s.subgraphIndex, s.inputs, s.outputs = key, graph, [], []
        for names, to in ((inputs, s.inputs), (outputs, s.outputs)):
            for name, tensor in names.items():
                n = schema.TensorMapT()
                n.name, n.tensorIndex = name, tensor.number
                to.append(n)
        self.signatures.append(s)

    def sparse(self, tensor, order, blocks, levels):
        """A constant has only those elements that its levels say: each a size, or (segments, indices)."""
        s = self.g.tensors[tensor.number].sparsity = schema.SparsityParametersT()
        s.traversalOrder, s.blockMap, s.dimMetadata = order, blocks, []
        for level in levels:
            d = schema.DimensionMetadataT()
            s.dimMetadata.append(d)
            if isinstance(level, int):
                d.denseSize = level
                continue
            d.format = schema.DimensionType.SPARSE_CSR
            d.arraySegments, d.arrayIndices = schema.Uint8VectorT(), schema.Int32VectorT()
            d.arraySegmentsType = schema.SparseIndexVector.Uint8Vector
            d.arrayIndicesType = schema.SparseIndexVector.Int32Vector
            d.arraySegments.values, d.arrayIndices.values = level

    def external(self, tensor, name, offset, length, packing="unpacked"):
        """The bytes of a constant lie in another file."""
        if self.m.externalBufferGroups is None:
            self.m.externalBufferGroups, self.m.externalBuffers = [], []
        group, b = schema.ExternalBufferGroupT(), schema.ExternalBufferT()
        group.name = name
        b.id, b.group = 1 << 31 | len(self.m.externalBuffers), len(self.m.externalBuffers)
        b.offset, b.length, b.packing = offset, length, packing
        self.m.externalBufferGroups.append(group)
        self.m.externalBuffers.append(b)
        self.g.tensors[tensor.number].buffer = 0
        self.g.tensors[tensor.number].externalBuffer = b.id

    def far(self, tensor, offset):
        """The bytes of a constant lie behind the FlatBuffer, at an offset of 64 bits; they are given."""
        b = self.m.buffers[self.g.tensors[tensor.number].buffer]
        data, b.data = bytes(b.data), None
        b.offset, b.size = offset, len(data)
        return data

    def bytes(self):
        for graph in self.graphs:
            graph.g.inputs = [t.number for t in graph.inputs]
            graph.g.outputs = [t.number for t in graph.outputs]
        self.m.subgraphs = [graph.g for graph in self.graphs]
        self.m.signatureDefs = self.signatures
        b = flatbuffers.Builder(1 << 16)
        b.Finish(self.m.Pack(b), b"TFL3")
        return bytes(b.Output())


def cases_of(**drawn):
    """A table of cases, empty, and what adds one: @case("name") above a function that builds a model.
    drawn: how inputs are drawn (cases.py) where the case says nothing else."""
    table = {}

    def case(name, low=None, high=None, **how):
        bounds = {k: v for k, v in (("low", low), ("high", high)) if v is not None}

        def add(make):
            def model():
                m = Model()
                make(m)
                return m, drawn | bounds | how

            table[name] = model
            return make

        return add

    return table, case
