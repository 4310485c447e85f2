"""Models for process replay: those of tests/bundle and larger pieces of the kinds of network that
there are.

build(NAME)     the bytes of an .onnx file, the same on every machine
"""

import pathlib
import sys

import numpy as np
from onnx import TensorProto

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bundle"))
import models  # noqa: E402

F, I, I8, U8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT8, TensorProto.UINT8


def f32(g, value):
    return g.const(value, np.float32)


def conv(g, x, out, inner, size=3, act="Relu", stride=1, group=1):
    y = g.op(
        "Conv",
        x,
        g.weight(out, inner // group, size, size),
        g.weight(out),
        pads=[size // 2] * 4,
        strides=[stride] * 2,
        group=group,
    )
    return g.op(act, y) if act else y


def linear(g, x, inner, out):
    return g.op("Add", g.op("MatMul", x, g.weight(inner, out)), g.weight(out))


def layer_norm(g, x, n):
    return g.op("LayerNormalization", x, g.weight(n), g.weight(n), axis=-1)


def heads(g, x, batch, rows, n, size, transposed=False):
    x = g.op("Reshape", x, g.const([batch, rows, n, size], np.int64))
    return g.op("Transpose", x, perm=[0, 2, 3, 1] if transposed else [0, 2, 1, 3])


def attend(g, x, batch, rows, n, size):
    """Softmax(q k) v of n heads."""
    q, k, v = (linear(g, x, n * size, n * size) for _ in range(3))
    q, k, v = (
        heads(g, q, batch, rows, n, size),
        heads(g, k, batch, rows, n, size, True),
        heads(g, v, batch, rows, n, size),
    )
    scores = g.op("Div", g.op("MatMul", q, k), f32(g, np.sqrt(size)))
    y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return linear(
        g, g.op("Reshape", y, g.const([batch, rows, n * size], np.int64)), n * size, n * size
    )


def mlp(g, x, n):
    h = linear(g, x, n, 4 * n)
    h = g.op(
        "Mul",
        g.op("Mul", h, f32(g, 0.5)),
        g.op("Add", g.op("Erf", g.op("Div", h, f32(g, np.sqrt(2)))), f32(g, 1)),
    )
    return linear(g, h, 4 * n, n)


def resnet(g):
    h = conv(g, g.input("image", F, 1, 3, 32, 32), 16, 3, 7, stride=2)
    h = g.op("MaxPool", h, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for inner, out, stride in ((16, 16, 1), (16, 32, 2), (32, 32, 1)):
        short = h if inner == out else conv(g, h, out, inner, 1, None, stride)
        h = g.op(
            "Relu",
            g.op(
                "Add", conv(g, conv(g, h, out, inner, 3, "Relu", stride), out, out, 3, None), short
            ),
        )
    h = g.op("Flatten", g.op("GlobalAveragePool", h))
    g.output("y", g.op("Gemm", h, g.weight(10, 32), g.weight(10), transB=1), F, 1, 10)


def mobile(g):
    h = conv(g, g.input("image", F, 1, 3, 24, 24), 8, 3, 3, "HardSwish", 2)
    for inner, out, stride in ((8, 8, 1), (8, 16, 2), (16, 16, 1)):
        y = conv(
            g,
            conv(g, h, 4 * inner, inner, 1, "HardSwish"),
            4 * inner,
            4 * inner,
            3,
            "HardSwish",
            stride,
            4 * inner,
        )
        gate = conv(
            g,
            conv(g, g.op("GlobalAveragePool", y), 8, 4 * inner, 1),
            4 * inner,
            8,
            1,
            "HardSigmoid",
        )
        y = conv(g, g.op("Mul", y, gate), out, 4 * inner, 1, None)
        h = g.op("Add", h, y) if inner == out else y
    g.output("y", h, F, 1, 16, 6, 6)


def dense(g):
    """Concats of concats, and what is enlarged beside what is not."""
    h = conv(g, g.input("image", F, 1, 3, 16, 16), 8, 3)
    for i in range(3):
        h = g.op("Concat", h, conv(g, conv(g, h, 16, 8 + 4 * i, 1), 4, 16), axis=1)
    low = g.op("MaxPool", h, kernel_shape=[2, 2], strides=[2, 2])
    up = g.op("Resize", conv(g, low, 12, 20), "", f32(g, [1, 1, 2, 2]), mode="nearest")
    g.output("y", conv(g, g.op("Concat", up, h, axis=1), 8, 32, 3, "Sigmoid"), F, 1, 8, 16, 16)


def transformer(g):
    ids = g.input("ids", I, 1, 16)
    table = g.weight(50, 32)
    h = g.op("Add", g.op("Gather", table, ids), g.weight(16, 32))
    for _ in range(2):
        h = g.op("Add", h, attend(g, layer_norm(g, h, 32), 1, 16, 4, 8))
        h = g.op("Add", h, mlp(g, layer_norm(g, h, 32), 32))
    g.output(
        "logits",
        g.op("MatMul", layer_norm(g, h, 32), g.op("Transpose", table, perm=[1, 0])),
        F,
        1,
        16,
        50,
    )


def sentences(g):
    """Products of several sentences with weights that L2 does not hold, as neither does it all of
    their rows."""
    h = g.op("Relu", linear(g, g.input("x", F, 6, 128, 512), 512, 768))
    g.output("y", linear(g, h, 768, 512), F, 6, 128, 512)


def roll(g, x, by, size):
    """The image's rows and columns go round."""
    for axis in (1, 2):
        cut = by % size
        part = [
            g.op(
                "Slice",
                x,
                g.const([a], np.int64),
                g.const([b], np.int64),
                g.const([axis], np.int64),
            )
            for a, b in ((cut, size), (0, cut))
        ]
        x = g.op("Concat", *part, axis=axis)
    return x


def window(g, size=8, side=4, channels=32, n=4, blocks=3):
    """Attention in windows, of which every second block's are shifted."""
    x = g.input("x", F, 1, size * size, channels)
    count = (size // side) ** 2
    for block in range(blocks):
        shift = side // 2 if block % 2 else 0
        h = g.op(
            "Reshape", layer_norm(g, x, channels), g.const([1, size, size, channels], np.int64)
        )
        h = roll(g, h, shift, size) if shift else h
        h = g.op(
            "Reshape", h, g.const([size // side, side, size // side, side, channels], np.int64)
        )
        h = g.op(
            "Reshape",
            g.op("Transpose", h, perm=[0, 2, 1, 3, 4]),
            g.const([count, side * side, channels], np.int64),
        )
        h = attend(g, h, count, side * side, n, channels // n)
        h = g.op(
            "Reshape", h, g.const([size // side, size // side, side, side, channels], np.int64)
        )
        h = g.op(
            "Reshape",
            g.op("Transpose", h, perm=[0, 2, 1, 3, 4]),
            g.const([1, size, size, channels], np.int64),
        )
        h = roll(g, h, -shift, size) if shift else h
        x = g.op("Add", x, g.op("Reshape", h, g.const([1, size * size, channels], np.int64)))
        x = g.op("Add", x, mlp(g, layer_norm(g, x, channels), channels))
    g.output("y", x, F, 1, size * size, channels)


def quantize(g, x, scale, zero=0):
    zero = g.const(zero, np.int8)
    q = g.op("QuantizeLinear", x, f32(g, scale), zero)
    return g.op("DequantizeLinear", q, f32(g, scale), zero)


def narrow_weight(g, *shape):
    """i8, with a scale for each output channel."""
    q = g.const(g.rng.integers(-127, 128, shape), np.int8)
    scale = f32(g, g.rng.uniform(0.002, 0.004, shape[0]))
    return g.op("DequantizeLinear", q, scale, g.const(np.zeros(shape[0]), np.int8), axis=0), scale


def qconv(g, x, x_scale, out, inner, size=3, act=True, stride=1, group=1, zero=-5):
    w, scale = narrow_weight(g, out, inner // group, size, size)
    bias = g.const(g.rng.integers(-500, 500, out), np.int32)
    bias = g.op(
        "DequantizeLinear",
        bias,
        g.op("Mul", scale, f32(g, x_scale)),
        g.const(np.zeros(out), np.int32),
        axis=0,
    )
    y = g.op("Conv", x, w, bias, pads=[size // 2] * 4, strides=[stride] * 2, group=group)
    return quantize(g, g.op("Relu", y) if act else y, 0.04, zero)


def qdq(g):
    """A quantised network as exporters write it: every operator in f32 between inverses."""
    h = quantize(g, g.input("image", F, 1, 3, 16, 16), 0.02, 3)
    h = qconv(g, h, 0.02, 8, 3)
    for group in (1, 8):
        y = qconv(g, qconv(g, h, 0.04, 8, 8, 3, True, 1, group), 0.04, 8, 8, 1, False, zero=0)
        h = quantize(g, g.op("Relu", g.op("Add", h, y)), 0.05, -128)
    h = quantize(g, g.op("GlobalAveragePool", qconv(g, h, 0.05, 16, 8, stride=2)), 0.03)
    w, _ = narrow_weight(g, 10, 16)
    h = quantize(
        g, g.op("Gemm", g.op("Flatten", h), w, f32(g, np.linspace(-1, 1, 10)), transB=1), 0.06
    )
    g.output("y", g.op("Softmax", h), F, 1, 10)


def qlinear(g):
    """The operators on integers."""
    x, scale, zero = g.input("x", U8, 1, 4, 9, 9), f32(g, 0.02), g.const(120, np.uint8)
    w = g.const(g.rng.integers(0, 255, (6, 4, 3, 3)), np.uint8)
    h = g.op(
        "QLinearConv",
        x,
        scale,
        zero,
        w,
        f32(g, 0.003),
        g.const(127, np.uint8),
        f32(g, 0.03),
        g.const(99, np.uint8),
        g.const(g.rng.integers(-900, 900, 6), np.int32),
        pads=[1, 1, 1, 1],
    )
    rows = g.op("Reshape", h, g.const([6, 81], np.int64))
    b = g.const(g.rng.integers(-128, 128, (81, 7)), np.int8)
    y = g.op(
        "QLinearMatMul",
        rows,
        f32(g, 0.03),
        g.const(99, np.uint8),
        b,
        f32(g, g.rng.uniform(0.001, 0.002, 7)),
        g.const(np.zeros(7), np.int8),
        f32(g, 0.05),
        g.const(-3, np.int8),
    )
    g.output("h", h, U8, 1, 6, 9, 9)
    g.output("y", y, I8, 6, 7)


def int4(g):
    """Weights of 4 bits, two a byte, as they are unpacked where the file's format has no such
    type."""
    rows, columns, block = 64, 48, 16
    packed = g.const(g.rng.integers(0, 256, (columns, rows // 2)), np.uint8)
    low, high = (
        g.op("BitwiseAnd", packed, g.const(15, np.uint8)),
        g.op("BitShift", packed, g.const(4, np.uint8), direction="RIGHT"),
    )
    both = g.op(
        "Concat",
        g.op("Unsqueeze", low, g.const([2], np.int64)),
        g.op("Unsqueeze", high, g.const([2], np.int64)),
        axis=2,
    )
    w = g.op(
        "Sub",
        g.op(
            "Cast", g.op("Reshape", both, g.const([columns, rows // block, block], np.int64)), to=F
        ),
        f32(g, 8),
    )
    w = g.op("Mul", w, f32(g, g.rng.uniform(0.01, 0.02, (columns, rows // block, 1))))
    w = g.op("Transpose", g.op("Reshape", w, g.const([columns, rows], np.int64)), perm=[1, 0])
    g.output("y", g.op("MatMul", g.input("x", F, 3, rows), w), F, 3, columns)


MODELS = {
    f.__name__: f
    for f in (resnet, mobile, dense, transformer, sentences, window, qdq, qlinear, int4)
}
NAMES = sorted(models.MODELS) + sorted(MODELS)


def build(name):
    if name in models.MODELS:
        return models.build(name)
    g = models.Graph(len(name))
    g.opset = 18
    MODELS[name](g)
    return g.bytes()
