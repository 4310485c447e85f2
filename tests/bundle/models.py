"""Small models of varied kinds for the tests of bundles: build(NAME) gives the bytes of an .onnx
file."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F, I, H = TensorProto.FLOAT, TensorProto.INT64, TensorProto.FLOAT16


class Graph:
    """Nodes and weights as they are asked for; names are numbered."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs, self.outputs, self.count = [], [], [], [], 0
        self.opset = 17

    def input(self, name, dtype, *shape):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, name, value, dtype, *shape):
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.count += 1
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def const(self, value, dtype=None):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape):
        scale = np.sqrt(2 / max(1, int(np.prod(shape[1:]))))
        return self.const(self.rng.standard_normal(shape) * scale, np.float32)

    def op(self, kind, *sources, n=1, **attributes):
        names = [f"{kind.lower()}{self.count}_{i}" for i in range(n)]
        self.nodes.append(
            helper.make_node(
                kind, list(sources), names, f"{kind.lower()}_{self.count}", **attributes
            )
        )
        self.count += 1
        return names[0] if n == 1 else names

    def bytes(self):
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.weights)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8
        )
        return model.SerializeToString()


def cleared():
    """A convolution whose opts join axes, and whose result has a halo that the kernel clears, for the
    transposed one that reads it."""
    g = Graph(5)
    x = g.input("x", F, 8, 4, 4, 4)
    x = g.op("Conv", x, g.weight(2, 4, 1, 5), g.weight(2), pads=[0, 3, 0, 0])
    x = g.op("ConvTranspose", x, g.weight(2, 3, 3, 3), strides=[2, 2])
    g.output("y", g.op("Atan", x), F, 8, 3, 9, 7)
    return g.bytes()


def mlp(g):
    x = g.input("x", F, 4, 20)
    h = g.op("Relu", g.op("Gemm", x, g.weight(32, 20), g.weight(32), transB=1))
    g.output(
        "y", g.op("Softmax", g.op("Gemm", h, g.weight(10, 32), g.weight(10), transB=1)), F, 4, 10
    )


def cnn(g):
    x = g.input("image", F, 1, 3, 16, 16)
    h = g.op("Conv", x, g.weight(8, 3, 3, 3), g.weight(8), pads=[1, 1, 1, 1])
    h = g.op(
        "BatchNormalization",
        h,
        g.weight(8),
        g.weight(8),
        g.weight(8),
        g.const(np.full(8, 0.5), np.float32),
    )
    h = g.op("MaxPool", g.op("Relu", h), kernel_shape=[2, 2], strides=[2, 2])
    h = g.op("Conv", h, g.weight(8, 1, 3, 3), group=8, pads=[1, 1, 1, 1], strides=[2, 2])
    h = g.op("Clip", h, g.const(0, np.float32), g.const(6, np.float32))
    h = g.op("Flatten", g.op("GlobalAveragePool", h))
    g.output("scores", g.op("Gemm", h, g.weight(5, 8), g.weight(5), transB=1), F, 1, 5)


def halos(g):
    """Convolutions that read beyond edges: of branches, of loops, of 1 to 3 dimensions, uneven
    ones, ones that share."""

    def conv(x, out, inner, kernel, pads):
        return g.op("Conv", x, g.weight(out, inner, *kernel), g.weight(out), pads=pads)

    def subgraph(name, inputs, op):
        nodes, g.nodes = g.nodes, []
        value = op()
        body, g.nodes = g.nodes, nodes
        outputs = ["keep", value] if inputs else [value]
        info = [
            helper.make_tensor_value_info(
                v, *((TensorProto.BOOL, []) if v == "keep" else (F, [2, 8, 6, 8]))
            )
            for v in outputs
        ]
        return helper.make_graph(body, name, inputs, info)

    x = g.input("x", F, 2, 4, 6, 8)
    a = conv(g.op("Relu", x), 8, 4, (3, 3), [1, 1, 1, 1])
    b = g.op(
        "Add",
        conv(a, 8, 8, (3, 1), [2, 0, 0, 0]),
        conv(g.op("Relu", a), 8, 8, (5, 3), [2, 1, 2, 1]),
    )
    big = g.op("Greater", g.op("ReduceSum", x, keepdims=0), g.const(0, np.float32))
    c = g.op(
        "If",
        big,
        then_branch=subgraph("then", [], lambda: g.op("Tanh", b)),
        else_branch=subgraph("else", [], lambda: g.op("Sigmoid", b)),
    )
    d = conv(c, 8, 8, (3, 3), [1, 1, 1, 1])
    state = helper.make_tensor_value_info("state", F, [2, 8, 6, 8])
    inputs = [
        helper.make_tensor_value_info("i", I, []),
        helper.make_tensor_value_info("keep_in", TensorProto.BOOL, []),
        state,
    ]

    def body():
        g.nodes.append(helper.make_node("Identity", ["keep_in"], ["keep"]))
        return conv(
            g.op("Tanh", conv("state", 8, 8, (1, 3), [0, 1, 0, 1])), 8, 8, (3, 3), [0, 2, 2, 0]
        )

    e = g.op("Loop", g.const(3, np.int64), "", d, body=subgraph("body", inputs, body))
    g.output("y", e, F, 2, 8, 6, 8)
    rows = g.op("Reshape", g.op("Relu", e), g.const([2, 8, 48], np.int64))
    g.output("rows", conv(g.op("Exp", rows), 8, 8, (5,), [3, 1]), F, 2, 8, 48)
    cube = g.op("Exp", g.op("Reshape", e, g.const([2, 8, 2, 3, 8], np.int64)))
    g.output("cube", conv(cube, 4, 8, (3, 3, 3), [1, 1, 1, 1, 1, 1]), F, 2, 4, 2, 3, 8)


def attention(g):
    x = g.input("x", F, 2, 7, 12)
    q, k, v = (g.op("MatMul", x, g.weight(12, 12)) for _ in range(3))
    scores = g.op(
        "Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1])), g.const(0.3, np.float32)
    )
    h = g.op("Add", x, g.op("MatMul", g.op("Softmax", scores, axis=-1), v))
    mean = g.op("ReduceMean", h, axes=[-1])
    centred = g.op("Sub", h, mean)
    variance = g.op("ReduceMean", g.op("Mul", centred, centred), axes=[-1])
    norm = g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.const(1e-5, np.float32))))
    g.output("y", norm, F, 2, 7, 12)


def lstm(g):
    x = g.input("x", F, 5, 2, 6)
    y, h, c = g.op(
        "LSTM", x, g.weight(1, 16, 6), g.weight(1, 16, 4), g.weight(1, 32), n=3, hidden_size=4
    )
    g.output("y", y, F, 5, 1, 2, 4)
    g.output("h", h, F, 1, 2, 4)
    g.output("c", c, F, 1, 2, 4)


def gru(g):
    x = g.input("x", F, 3, 1, 4)
    y, h = g.op(
        "GRU",
        x,
        g.weight(2, 15, 4),
        g.weight(2, 15, 5),
        n=2,
        hidden_size=5,
        direction="bidirectional",
    )
    g.output("y", y, F, 3, 2, 1, 5)
    g.output("h", h, F, 2, 1, 5)


def quantized(g):
    x = g.input("x", F, 3, 8)
    scale, zero = g.const(0.05, np.float32), g.const(7, np.int8)
    q = g.op("QuantizeLinear", x, scale, zero)
    w = g.const(g.rng.integers(-20, 20, (8, 6)), np.int8)
    sums = g.op("MatMulInteger", q, w, zero)
    g.output("y", g.op("Mul", g.op("Cast", sums, to=F), g.const(0.001, np.float32)), F, 3, 6)


def f16(g):
    x = g.input("x", H, 3, 9)
    y = g.op("MatMul", x, g.const(g.rng.standard_normal((9, 4)), np.float16))
    g.output("y", g.op("Tanh", y), H, 3, 4)


def index(g):
    x = g.input("x", F, 6, 5)
    values, places = g.op("TopK", x, g.const([3], np.int64), n=2)
    g.output("top", values, F, 6, 3)
    picked = g.op("Gather", x, g.const([4, 0, -2], np.int64), axis=0)
    added = g.op("ScatterElements", x, places, values, axis=1, reduction="add")
    g.output("picked", picked, F, 3, 5)
    g.output("added", added, F, 6, 5)


def resize(g):
    x = g.input("x", F, 1, 2, 4, 5)
    up = g.op("Resize", x, "", g.const([1, 1, 2, 2], np.float32), mode="linear")
    padded = g.op("Pad", up, g.const([0, 0, 1, 1, 0, 0, 1, 1], np.int64), mode="reflect")
    g.output("y", g.op("AveragePool", padded, kernel_shape=[3, 3], strides=[2, 2]), F, 1, 2, 4, 5)


def compare(g):
    x, n = g.input("x", F, 4, 5), g.input("n", I, 4, 5)
    where = g.op(
        "Where", g.op("Greater", x, g.const(0.1, np.float32)), g.op("Exp", x), g.op("Erf", x)
    )
    g.output("y", g.op("Mul", where, g.op("Cast", n, to=F)), F, 4, 5)
    g.output("best", g.op("ArgMax", x, axis=1, keepdims=0), I, 4)
    g.output("sums", g.op("CumSum", x, g.const(1, np.int64)), F, 4, 5)


MODELS = {
    f.__name__: f
    for f in (mlp, cnn, halos, attention, lstm, gru, quantized, f16, index, resize, compare)
}


def build(name):
    g = Graph(len(name))
    MODELS[name](g)
    return g.bytes()
