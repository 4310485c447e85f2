"""A network that learns: from an ONNX file with its weights, by docs/training.md, in Python."""

import pathlib

import ingot
import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper, save

draw = np.random.default_rng(0)
w = {"w1": draw.normal(0, 0.1, (64, 32)), "b1": np.zeros(32), "w2": draw.normal(0, 0.2, (32, 10))}
nodes = [
    helper.make_node("MatMul", ["image", "w1"], ["a"]),
    helper.make_node("Add", ["a", "b1"], ["b"]),
    helper.make_node("Relu", ["b"], ["c"]),
    helper.make_node("MatMul", ["c", "w2"], ["logits"]),
]
graph = helper.make_graph(
    nodes,
    "net",
    [helper.make_tensor_value_info("image", T.FLOAT, [12, 64])],
    [helper.make_tensor_value_info("logits", T.FLOAT, [12, 10])],
    [numpy_helper.from_array(v.astype(np.float32), k) for k, v in w.items()],
)
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "net.onnx")

lines = pathlib.Path("examples/digits/samples.txt").read_text().splitlines()
words = " ".join(line for line in lines if not line.startswith("#")).split()
rows = np.array(words, np.float32).reshape(-1, 65)
labels, images = rows[:, 0].astype(np.int64), rows[:, 1:] / 16

model = ingot.train("net.onnx", loss="cross_entropy:logits", optimizer="adamw")
losses = [float(model.step(images, labels, 1e-2)) for _ in range(60)]
right = int((model(images).argmax(1) == labels).sum())
print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}, {right} of {len(labels)} right")
assert losses[-1] < 0.2 * losses[0] and right == len(labels)
model.save("net.safetensors")
