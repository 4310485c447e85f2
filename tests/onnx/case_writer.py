"""How cases are written whose results are those of ONNX Runtime: more_cases.py and its like."""

import pathlib
import sys

try:
    import exact
    import ml_dtypes  # noqa: F401, of ms_cases.py
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError as missing:
    print(f"{pathlib.Path(sys.argv[0]).name}: skipped: {missing}")
    sys.exit(77)

RNG = np.random.default_rng(1)
NODE, VALUE = helper.make_node, helper.make_tensor_value_info
MS = "com.microsoft"
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def floats(*shape):
    return (RNG.standard_normal(shape) * 0.5).astype(np.float32)


def ints(dtype, *shape):
    lo, hi = np.iinfo(dtype).min, np.iinfo(dtype).max
    return RNG.integers(lo, hi, shape, endpoint=True).astype(dtype)


def scalar(dtype, v):
    return np.array(v, dtype)


class Cases:
    domains = {}  # versions of domains besides the standard's

    def __init__(self, out):
        self.out, self.n = pathlib.Path(out), 0
        self.options = exact.options()
        self.options.intra_op_num_threads = 1  # quantised recurrences depend on it

    def add(self, name, nodes, inputs, opset, consts=(), types=None, wanted=None, truth=None):
        """inputs: (name, value) pairs; consts become initializers; types: of outputs that do not
        follow; wanted: the outputs, in place of the last node's; truth: gives the results, in place
        of ONNX Runtime."""
        nodes = nodes if isinstance(nodes, list) else [nodes]
        feeds = {k: np.asarray(v) for k, v in inputs}
        info = [
            VALUE(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()
        ]
        wanted = wanted or [o for o in nodes[-1].output if o]
        told = [
            VALUE(o, types[o], None)
            if types and o in types
            else helper.make_empty_tensor_value_info(o)
            for o in wanted
        ]
        graph = helper.make_graph(
            nodes, name, info, told, [numpy_helper.from_array(np.asarray(v), k) for k, v in consts]
        )
        imports = [helper.make_opsetid(*d) for d in [("", opset), *self.domains.items()]]
        model = helper.make_model(graph, opset_imports=imports)
        model.ir_version = 10
        results = (
            truth(model, feeds) if truth else exact.results(model, feeds, wanted, self.options)
        )
        del model.graph.output[:]
        model.graph.output.extend(
            VALUE(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for k, v in zip(wanted, results)
        )
        data = self.out / name / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        onnx.save(model, self.out / name / "model.onnx")
        for kind, values in (("input", feeds.items()), ("output", zip(wanted, results))):
            for i, (k, v) in enumerate(values):
                (data / f"{kind}_{i}.pb").write_bytes(
                    numpy_helper.from_array(v, k).SerializeToString()
                )
        self.n += 1

    def session(self, model):
        return ort.InferenceSession(
            model.SerializeToString(), self.options, providers=["CPUExecutionProvider"]
        )
