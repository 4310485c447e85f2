#!/usr/bin/env python3
"""Trains the digits classifier of the quickstart and writes digits.onnx and samples.txt.

    train.py [OUT_DIR]          needs numpy, scikit-learn and onnx; the result is in the tree

A small convolutional network on scikit-learn's digits (1797 pictures of 8x8, values 0..16),
written out in numpy: forward, backward and Adam fit on a page. Seeds are fixed.

    image 1x1x8x8 -> /16 -> conv 3x3, 8 -> relu -> conv 3x3, 16 -> relu -> maxpool 2
          -> flatten 256 -> dense 32 -> relu -> dense 10 -> softmax
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

RNG = np.random.default_rng(1)
EPOCHS, BATCH, RATE = 150, 64, 3e-3
SAMPLES = 12


def columns(x):
    """N,C,H,W -> N,H,W,C*9: the 3x3 neighbourhood of each pixel, zeros outside."""
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    w = np.lib.stride_tricks.sliding_window_view(p, (3, 3), axis=(2, 3))
    return w.transpose(0, 2, 3, 1, 4, 5).reshape(x.shape[0], x.shape[2], x.shape[3], -1)


def conv(x, w, b):
    cols = columns(x)
    return (cols @ w.reshape(len(w), -1).T + b).transpose(0, 3, 1, 2), cols


def conv_back(dy, cols, w):
    """The gradients of weights, bias and input; the last is a conv with the flipped kernel."""
    dy_last = dy.transpose(0, 2, 3, 1)
    dw = np.tensordot(dy_last, cols, axes=((0, 1, 2), (0, 1, 2))).reshape(w.shape)
    back = w.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1]
    return dw, dy.sum(axis=(0, 2, 3)), conv(dy, back, 0)[0]


def he(*shape):
    return (RNG.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)


def init():
    return {
        "conv1.w": he(8, 1, 3, 3),
        "conv1.b": np.zeros(8, np.float32),
        "conv2.w": he(16, 8, 3, 3),
        "conv2.b": np.zeros(16, np.float32),
        "fc1.w": he(32, 256),
        "fc1.b": np.zeros(32, np.float32),
        "fc2.w": he(10, 32),
        "fc2.b": np.zeros(10, np.float32),
    }


def forward(p, x):
    a1, c1 = conv(x, p["conv1.w"], p["conv1.b"])
    r1 = np.maximum(a1, 0)
    a2, c2 = conv(r1, p["conv2.w"], p["conv2.b"])
    r2 = np.maximum(a2, 0)
    windows = r2.reshape(len(x), 16, 4, 2, 4, 2)
    pooled = windows.max(axis=(3, 5))
    flat = pooled.reshape(len(x), -1)
    a3 = flat @ p["fc1.w"].T + p["fc1.b"]
    r3 = np.maximum(a3, 0)
    return r3 @ p["fc2.w"].T + p["fc2.b"], (a1, c1, a2, c2, windows, pooled, flat, a3, r3)


def gradients(p, x, label):
    logits, (a1, c1, a2, c2, windows, pooled, flat, a3, r3) = forward(p, x)
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    d = e / e.sum(axis=1, keepdims=True)
    d[np.arange(len(x)), label] -= 1
    d /= len(x)
    g = {"fc2.w": d.T @ r3, "fc2.b": d.sum(axis=0)}
    d = (d @ p["fc2.w"]) * (a3 > 0)
    g["fc1.w"], g["fc1.b"] = d.T @ flat, d.sum(axis=0)
    d = (d @ p["fc1.w"]).reshape(pooled.shape)
    hit = windows == pooled[:, :, :, None, :, None]
    d = (hit * d[:, :, :, None, :, None]).reshape(a2.shape) * (a2 > 0)
    g["conv2.w"], g["conv2.b"], d = conv_back(d, c2, p["conv2.w"])
    g["conv1.w"], g["conv1.b"], _ = conv_back(d * (a1 > 0), c1, p["conv1.w"])
    return g


def moved(x):
    """The pictures as other hands would write them: turned, slanted, narrower, moved by parts of a
    pixel, lighter."""
    n = len(x)
    turn, slant = RNG.uniform(-0.2, 0.2, n), RNG.uniform(-0.3, 0.3, n)
    wide, high = RNG.uniform(0.8, 1.2, n), RNG.uniform(0.9, 1.1, n)
    to = np.stack([np.arange(8) - 3.5] * 8)  # of each pixel, its column and row from the middle
    row = (np.sin(turn)[:, None, None] * to + np.cos(turn)[:, None, None] * to.T) / high[
        :, None, None
    ]
    column = (np.cos(turn)[:, None, None] * to - np.sin(turn)[:, None, None] * to.T) / wide[
        :, None, None
    ]
    column += slant[:, None, None] * row + 3.5 + RNG.uniform(-0.5, 0.5, n)[:, None, None]
    row += 3.5 + RNG.uniform(-0.3, 0.3, n)[:, None, None]
    p = np.pad(x[:, 0], ((0, 0), (2, 2), (2, 2)))
    row, column = np.clip(row + 2, 0, 10.999), np.clip(column + 2, 0, 10.999)
    r, c, each = row.astype(int), column.astype(int), np.arange(n)[:, None, None]
    v, h = row - r, column - c
    out = (1 - v) * ((1 - h) * p[each, r, c] + h * p[each, r, c + 1]) + v * (
        (1 - h) * p[each, r + 1, c] + h * p[each, r + 1, c + 1]
    )
    return np.clip(out * RNG.uniform(0.9, 1.3, n)[:, None, None], 0, 1)[:, None].astype(np.float32)


def train(x, label):
    p = init()
    m = {k: np.zeros_like(v) for k, v in p.items()}
    v = {k: np.zeros_like(w) for k, w in p.items()}
    step = 0
    for epoch in range(EPOCHS):
        order = RNG.permutation(len(x))
        for i in range(0, len(x), BATCH):
            pick = order[i : i + BATCH]
            step += 1
            for k, g in gradients(p, moved(x[pick]), label[pick]).items():
                m[k] = 0.9 * m[k] + 0.1 * g
                v[k] = 0.999 * v[k] + 0.001 * g * g
                fade = RATE * (1 - epoch / EPOCHS)
                p[k] -= fade * (m[k] / (1 - 0.9**step)) / (np.sqrt(v[k] / (1 - 0.999**step)) + 1e-8)
    return {k: w.astype(np.float32) for k, w in p.items()}


def export(p, path):
    n = helper.make_node
    nodes = [
        n("Mul", ["image", "sixteenth"], ["scaled"], "scale"),
        n(
            "Conv",
            ["scaled", "conv1.w", "conv1.b"],
            ["c1"],
            "conv1",
            kernel_shape=[3, 3],
            pads=[1, 1, 1, 1],
        ),
        n("Relu", ["c1"], ["r1"], "relu1"),
        n(
            "Conv",
            ["r1", "conv2.w", "conv2.b"],
            ["c2"],
            "conv2",
            kernel_shape=[3, 3],
            pads=[1, 1, 1, 1],
        ),
        n("Relu", ["c2"], ["r2"], "relu2"),
        n("MaxPool", ["r2"], ["pool"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        n("Flatten", ["pool"], ["flat"], "flatten"),
        n("Gemm", ["flat", "fc1.w", "fc1.b"], ["f1"], "fc1", transB=1),
        n("Relu", ["f1"], ["r3"], "relu3"),
        n("Gemm", ["r3", "fc2.w", "fc2.b"], ["logits"], "fc2", transB=1),
        n("Softmax", ["logits"], ["probabilities"], "softmax", axis=1),
    ]
    weights = [numpy_helper.from_array(np.float32(1 / 16), "sixteenth")]
    weights += [numpy_helper.from_array(w, k) for k, w in p.items()]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 10])],
        weights,
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
        producer_name="examples/digits/train.py",
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main():
    out = (
        pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    )
    digits = load_digits()
    x = digits.images.astype(np.float32)[:, None]
    label = digits.target
    order = RNG.permutation(len(x))
    held, learn = order[:360], order[360:]
    p = train(x[learn] / 16, label[learn])
    said = forward(p, x[held] / 16)[0].argmax(axis=1)
    print(f"{(said == label[held]).mean():.1%} of {len(held)} held-out digits right")
    export(p, out / "digits.onnx")
    with (out / "samples.txt").open("w") as f:
        f.write(
            f"# {SAMPLES} held-out pictures of scikit-learn's digits: the label, then 8 rows of 8 values 0..16\n"
        )
        for i in held[:SAMPLES]:
            f.write(f"{label[i]}\n")
            for row in digits.images[i].astype(int):
                f.write(" ".join(f"{v:2}" for v in row) + "\n")


if __name__ == "__main__":
    main()
