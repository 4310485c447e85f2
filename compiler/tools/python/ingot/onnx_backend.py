"""ingot as an ONNX backend (onnx.backend.base), which the official test runner drives:

    import onnx.backend.test, ingot.onnx_backend
    onnx.backend.test.BackendTest(ingot.onnx_backend, __name__)

A model is compiled when it is run, for the sizes of the inputs: those that its file leaves open are
known then. Where the values of small inputs decide a shape (the target of a Reshape) it is compiled
for these values. Bundles are kept as long as the prepared model.
"""

import hashlib
import pathlib
import tempfile

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

from . import command
from .model import Model

LARGEST_BIND = 64  # elements of an input that may decide shapes


def sizes(infos, values):
    """Options of --dim for what the file leaves open of the inputs: (least, greatest) in these
    values."""
    seen = {}

    def note(info, declared, value):
        kind = declared.WhichOneof("value")
        if kind == "optional_type":
            seen.setdefault(f"{info.name}_present", []).append(int(value is not None))
            note(info, declared.optional_type.elem_type, value)
        elif kind == "sequence_type":
            elements = [] if value is None else list(value)
            seen.setdefault(info.name, []).append(len(elements))
            for i, x in enumerate(elements):
                note(info, declared.sequence_type.elem_type, x)
                for axis, n in enumerate(np.shape(x)):
                    seen.setdefault(f"{info.name}[{i}]_{axis}", []).append(n)
        elif kind == "tensor_type" and value is not None:
            ranked = declared.tensor_type.HasField("shape")
            dims = (
                declared.tensor_type.shape.dim
                if ranked
                else [None] * (np.ndim(value) if info.type != declared else 0)
            )
            for axis, (dim, n) in enumerate(zip(dims, np.shape(value))):
                if not ranked or not dim.HasField("dim_value") or dim.dim_value < 0:
                    seen.setdefault(ranked and dim.dim_param or f"{info.name}_{axis}", []).append(n)

    for info, value in zip(infos, values):
        note(info, info.type, value)
    return {name: (min(n), max(n)) for name, n in seen.items()}


def bound(infos, values, kinds):
    """Options of --bind: small inputs whose elements have one of these kinds (numpy's
    dtype.kind)."""
    found = {}
    for info, x in zip(infos, values):
        if info.type.WhichOneof("value") == "tensor_type" and x is not None:
            x = np.asarray(x)
            if x.ndim <= 1 and x.size <= LARGEST_BIND and x.dtype.kind in kinds:
                found[info.name] = x
    return found


class Prepared(BackendRep):
    """A model, and its bundles by what they were compiled for."""

    def __init__(self, model, options, threads, cflags):
        self.model, self.options, self.threads, self.cflags = model, options, threads, cflags
        self.folder = tempfile.TemporaryDirectory(prefix="ingot-onnx-")
        file = pathlib.Path(self.folder.name) / "model.onnx"
        file.write_bytes(model.SerializeToString())
        self.file, self.bundles, self.needed = file, {}, None
        weights = {t.name for t in model.graph.initializer} | {
            t.values.name for t in model.graph.sparse_initializer
        }
        self.inputs = [v for v in model.graph.input if v.name not in weights]

    def bundle(self, dims, binds):
        """Compiled for these sizes and values, and loaded."""
        values = [
            (k, v.dtype.str, v.shape, v.tolist()) for k, v in sorted(binds.items())
        ]  # without elements, lists of all shapes are equal
        key = hashlib.sha256(repr((sorted(dims.items()), values)).encode()).hexdigest()[:16]
        if key not in self.bundles:
            out = pathlib.Path(self.folder.name) / key
            options = {**self.options, "dim": {**dims, **self.options.get("dim", {})}}
            command.compile(self.file, out, **options, **({"bind": binds} if binds else {}))
            self.bundles[key] = Model(out, threads=self.threads, cflags=self.cflags)
        return self.bundles[key]

    def compiled(self, values):
        """For these inputs, with as few of them bound as will do."""
        dims, said = sizes(self.inputs, values), None
        for kinds in ("", "iub", "iubf") if self.needed is None else (self.needed,):
            binds = bound(self.inputs, values, kinds) if kinds else {}
            if kinds and not binds:
                continue
            try:
                model = self.bundle(dims, binds)
            except (command.Unsupported, command.InvalidModel) as e:
                said = said or e
                continue
            self.needed = kinds
            return model
        raise said

    def run(self, inputs, **kwargs):
        if isinstance(inputs, dict):
            values = [inputs.get(info.name) for info in self.inputs]
        elif isinstance(inputs, (list, tuple)):
            values = list(inputs) + [None] * (len(self.inputs) - len(inputs))
        else:
            values = [inputs]
        model = self.compiled(values)
        outputs = model.run(dict(zip((t.name for t in model.inputs), values)))
        return tuple(outputs.values())


class IngotBackend(Backend):
    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model, device="CPU", threads=1, cflags="-O1", **options):
        """options: those of ingot.compile."""
        if not cls.supports_device(device):
            raise ValueError(f"ingot.onnx_backend: there is no device {device!r}")
        return Prepared(model, options, threads, cflags)

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, opset_version=None, **kwargs):
        """A model of this one node, which has the types of the inputs; its outputs' types are
        inferred."""
        names = [n for n in node.input if n]
        infos = [
            onnx.helper.make_tensor_value_info(
                n, onnx.helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.shape(x)
            )
            for n, x in zip(names, inputs)
        ]
        graph = onnx.helper.make_graph(
            [node], node.op_type, infos, [onnx.ValueInfoProto(name=n) for n in node.output if n]
        )
        opset = onnx.helper.make_opsetid(
            node.domain, opset_version or onnx.defs.onnx_opset_version()
        )
        model = onnx.helper.make_model(graph, opset_imports=[opset])
        model = onnx.shape_inference.infer_shapes(model)
        return cls.run_model(model, inputs, device, **kwargs)

    @classmethod
    def supports_device(cls, device):
        return Device(device).type == DeviceType.CPU


is_compatible = IngotBackend.is_compatible
prepare = IngotBackend.prepare
run_model = IngotBackend.run_model
run_node = IngotBackend.run_node
supports_device = IngotBackend.supports_device
