#!/usr/bin/env python3
"""Writes FOLDER/model.onnx, a network with two operators of its own, and data in
FOLDER/test_data_set_0.

python make_model.py FOLDER
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = pathlib.Path(sys.argv[1])
data = folder / "test_data_set_0"
data.mkdir(parents=True, exist_ok=True)

rng = np.random.default_rng(1)
x = rng.standard_normal((4, 8), dtype=np.float32)
m = rng.standard_normal((8, 6), dtype=np.float32)
w = rng.standard_normal(6, dtype=np.float32)

nodes = [
    helper.make_node("MatMul", ["x", "m"], ["h"], "product"),
    helper.make_node("Swish", ["h"], ["s"], "swish", domain="acme.com", beta=1.5),
    helper.make_node("RankBlend", ["s", "w"], ["b"], "blend", domain="acme.com", offset=2),
    helper.make_node("Relu", ["b"], ["y"], "relu"),
]
graph = helper.make_graph(
    nodes,
    "custom_op",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 6])],
    [numpy_helper.from_array(m, "m"), numpy_helper.from_array(w, "w")],
)
model = helper.make_model(
    graph,
    opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("acme.com", 1)],
    ir_version=8,
)
onnx.save(model, str(folder / "model.onnx"))

h = x @ m
s = h / (1 + np.exp(-1.5 * h))
y = np.maximum(np.sort(s, axis=1) * w + 2, 0)
for name, v in (("input_0", x), ("output_0", y.astype(np.float32))):
    (data / f"{name}.pb").write_bytes(numpy_helper.from_array(v, name).SerializeToString())
