"""Nodes for graphs of sized.py whose function is what ONNX Runtime makes of the node alone, or what
the reference evaluator of ONNX does where it has no kernel."""

import functools

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper
from sized import IR, info, opset_of

try:
    import onnxruntime as ort
    from onnx.reference import ReferenceEvaluator

    ort.set_default_logger_severity(4)
except ImportError:  # such nodes are not drawn then
    ort = None

BYTES = {
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}
NARROW = {TensorProto.BFLOAT16, TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1}
MS = "com.microsoft"


def small_type(dtype):
    """A type that numpy has by ml_dtypes only."""
    return np.dtype(dtype).kind == "V"


class Alone:
    """A model of one node. Called with the values of the operands that it has."""

    def __init__(self, op, inputs, nout, domain, captured=(), **attributes):
        self.names = [f"i{i}" if k else "" for i, k in enumerate(inputs)]
        self.outputs = [f"o{i}" for i in range(nout)]
        self.node = helper.make_node(op, self.names, self.outputs, domain=domain, **attributes)
        self.names = [k for k in self.names if k] + list(captured)
        self.dtypes = None

    def proto(self, operands):
        graph = helper.make_graph(
            [self.node],
            "g",
            [info(k, a.dtype, [None] * a.ndim) for k, a in zip(self.names, operands)],
            [helper.make_empty_tensor_value_info(k) for k in self.outputs],
        )
        imports = [helper.make_opsetid("", opset_of([self.node])), helper.make_opsetid(MS, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=IR)

    def types(self):
        """The types that a cast or a quantisation gives."""
        return [a.i for a in self.node.attribute if a.name in ("to", "output_dtype")]

    @functools.cached_property
    def session(self):
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return ort.InferenceSession(
            self.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    @functools.cached_property
    def kinds(self):
        """The types of outputs that arrive as bytes."""
        names = [o.type.removeprefix("tensor(").rstrip(")") for o in self.session.get_outputs()]
        return [BYTES.get(k) for k in names]

    @functools.cached_property
    def reference(self):
        return ReferenceEvaluator(self.model)

    def __call__(self, *operands):
        operands = [np.asarray(a) for a in operands]
        if self.dtypes is None:
            self.dtypes = [a.dtype for a in operands]
            self.model = self.proto(operands)
        feeds = {k: a.astype(t) for k, a, t in zip(self.names, operands, self.dtypes)}
        try:
            if any(small_type(t) for t in self.dtypes) or NARROW & set(self.types()):
                return tuple(self.reference.run(None, feeds))
            try:
                made = self.session.run(None, feeds)
            except Exception as e:
                if "NOT_IMPLEMENTED" not in str(e):
                    raise
                made = self.reference.run(None, feeds)
            return tuple(a.view(t) if t else a for a, t in zip(made, self.kinds))
        except Exception as e:  # what it refuses is not drawn
            raise ValueError(str(e)) from None


def node(d, op, inputs, nout=1, domain="", steps=False, captured=(), **attributes):
    attributes = {k: v for k, v in attributes.items() if v is not None}
    function = Alone(op, inputs, nout, domain, captured, **attributes)
    return d.add(op, inputs, function, nout, steps, domain=domain, captured=captured, **attributes)
