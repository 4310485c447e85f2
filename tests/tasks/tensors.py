"""Tensors of PyTorch in and out, without a copy: docs/python.md. Without PyTorch, NumPy's."""

import ingot
import numpy as np

model = ingot.load("examples/digits/digits.onnx", threads=2)
try:
    import torch

    image = torch.rand(1, 1, 8, 8)
    scores = torch.from_dlpack(model(image))
    into = torch.zeros(1, 10)
    model.run({"image": image}, out={"probabilities": into})
    assert torch.equal(into, scores)
except ImportError:
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    scores = model.run(None, {"image": image})[0]
print(int(scores.argmax()), model.get_inputs()[0].type)
