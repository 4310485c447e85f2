#!/usr/bin/env python3
"""Writes small models of the shapes that are hard for a compiler ahead of time, with data, as
cases.

    hard_shapes.py OUT      OUT/dim/NAME, OUT/plain/NAME: model.onnx and test_data_set_N/

dim/    a run-time dim: to be compiled with --dim batch=1..8
plain/  loops with carried values and a condition, branches, sizes that the data decides, layers
that share a kernel
"""

import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
rng = np.random.default_rng(1)


def whole(*shape):
    """Small integers: a sum of their products is exact in any order."""
    return rng.integers(-3, 4, shape).astype(np.float32)


def info(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def const(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def write(out, name, nodes, inputs, outputs, weights, sets):
    """sets: pairs of input and output arrays."""
    graph = helper.make_graph(nodes, name, inputs, outputs, weights)
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for n, (values, wanted) in enumerate(sets):
        data = folder / f"test_data_set_{n}"
        data.mkdir(exist_ok=True)
        for what, arrays in (("input", values), ("output", wanted)):
            for i, a in enumerate(arrays):
                (data / f"{what}_{i}.pb").write_bytes(
                    numpy_helper.from_array(np.asarray(a)).SerializeToString()
                )


def batch(out):
    w1, b1, w2 = (rng.standard_normal(s).astype(np.float32) for s in ((5, 7), (7,), (7, 3)))

    def run(x):
        h = np.maximum(x @ w1 + b1, 0)
        z = h @ w2
        e = np.exp(z - z.max(1, keepdims=True))
        return [
            (e / e.sum(1, keepdims=True)).astype(np.float32),
            h.mean(0, keepdims=True).astype(np.float32),
        ]

    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["g"]),
        helper.make_node("Relu", ["g"], ["h"]),
        helper.make_node("MatMul", ["h", "w2"], ["z"]),
        helper.make_node("Softmax", ["z"], ["p"], axis=1),
        helper.make_node("ReduceMean", ["h"], ["m"], axes=[0]),
    ]
    sets = []
    for n in (1, 3, 8):
        x = rng.standard_normal((n, 5)).astype(np.float32)
        sets.append(([x], run(x)))
    write(
        out,
        "batch_mlp",
        nodes,
        [info("x", F, ["batch", 5])],
        [info("p", F, ["batch", 3]), info("m", F, [1, 7])],
        [const("w1", w1), const("b1", b1), const("w2", w2)],
        sets,
    )


def batch_concat(out):
    nodes = [
        helper.make_node("Concat", ["x", "y"], ["c"], axis=0),
        helper.make_node("Transpose", ["c"], ["t"]),
        helper.make_node("ReduceMax", ["t"], ["m"], axes=[1]),
        helper.make_node("Sub", ["t", "m"], ["z"]),
    ]
    sets = []
    for n in (1, 5):
        x, y = (rng.standard_normal((n, 4)).astype(np.float32) for _ in "xy")
        t = np.concatenate([x, y]).T
        sets.append(([x, y], [t - t.max(1, keepdims=True)]))
    write(
        out,
        "batch_concat",
        nodes,
        [info("x", F, ["batch", 4]), info("y", F, ["batch", 4])],
        [info("z", F, [4, None])],
        [],
        sets,
    )


def batch_conv(out):
    w1, w2 = whole(8, 3, 3, 3), whole(4, 8, 3, 3)

    def conv(x, w):  # pads 1
        n, _, height, width = x.shape
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        return sum(
            np.einsum("nchw,oc->nohw", x[:, :, i : i + height, j : j + width], w[:, :, i, j])
            for i in range(3)
            for j in range(3)
        )

    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["y"], pads=[1] * 4),
    ]
    sets = []
    for n in (3, 1, 8):
        x = whole(n, 3, 5, 6)
        sets.append(([x], [conv(np.maximum(conv(x, w1), 0), w2).astype(np.float32)]))
    write(
        out,
        "batch_conv",
        nodes,
        [info("x", F, ["batch", 3, 5, 6])],
        [info("y", F, ["batch", 4, 5, 6])],
        [const("w1", w1), const("w2", w2)],
        sets,
    )


def batch_blocks(out):
    """Axes of 4 and 8 elements for each of a batch: whole vectors and copies fill them, and nothing
    is left. Rows of elements that are repeated, where what is left reads one element or none."""
    k, double = np.arange(1, 9, dtype=np.float32), TensorProto.DOUBLE

    def softmax(v, axis):
        e = np.exp(v - v.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Concat", ["r"] * 4, ["c"], axis=0),
        helper.make_node("Mul", ["c", "c"], ["q"]),
        helper.make_node("Softmax", ["q"], ["y"], axis=0),
        helper.make_node("Reshape", ["z", "row"], ["f"]),
        helper.make_node("ReduceSum", ["f", "axes"], ["s"], keepdims=0),
        helper.make_node("ReduceMax", ["f"], ["m"], axes=[1], keepdims=0),
        helper.make_node("Cast", ["f"], ["d"], to=double),
        helper.make_node("Softmax", ["d"], ["p"], axis=1),
        helper.make_node("Unsqueeze", ["x", "axes"], ["u"]),
        helper.make_node("Mul", ["u", "k"], ["t"]),
        helper.make_node("Reshape", ["t", "row"], ["v"]),
        helper.make_node("Softmax", ["v"], ["w"], axis=1),
    ]
    sets = []
    for n in (1, 2, 4, 7, 8):
        x, z = rng.standard_normal(n).astype(np.float32), whole(n, 4)
        f = z.reshape(1, -1)
        sets.append(
            (
                [x, z],
                [
                    softmax(np.tile(np.maximum(x, 0), 4) ** 2, 0),
                    f.sum(1),
                    f.max(1),
                    softmax(f.astype(np.float64), 1),
                    softmax((x[:, None] * k).reshape(1, -1), 1),
                ],
            )
        )
    write(
        out,
        "batch_blocks",
        nodes,
        [info("x", F, ["batch"]), info("z", F, ["batch", 4])],
        [
            info("y", F, [None]),
            info("s", F, [1]),
            info("m", F, [1]),
            info("p", double, [1, None]),
            info("w", F, [1, None]),
        ],
        [
            const("row", np.array([1, -1], np.int64)),
            const("axes", np.array([1], np.int64)),
            const("k", k),
        ],
        sets,
    )


def loop(out):
    """s = s / 2 + x[i]; stops when its sum is above the limit; every s is a scan output."""
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
            helper.make_node("Mul", ["s", "half"], ["h"]),
            helper.make_node("Add", ["h", "row"], ["next"]),
            helper.make_node("ReduceSum", ["next"], ["sum"], keepdims=0),
            helper.make_node("Less", ["sum", "limit"], ["go"]),
            helper.make_node("Identity", ["next"], ["each"]),
        ],
        "body",
        [info("i", I, []), info("c", B, []), info("s", F, [4])],
        [info("go", B, []), info("next", F, [4]), info("each", F, [4])],
    )
    nodes = [helper.make_node("Loop", ["trip", "", "start"], ["last", "all"], body=body)]
    sets = []
    for limit in (1e9, 10.0, -1.0):
        x = np.abs(rng.standard_normal((6, 4))).astype(np.float32) + 1
        start = np.ones(4, np.float32)
        s, every = start, []
        for i in range(6):
            s = (s * np.float32(0.5) + x[i]).astype(np.float32)
            every.append(s)
            if not s.sum() < limit:
                break
        sets.append(([x, start, np.float32(limit)], [s, np.stack(every)]))
    write(
        out,
        "loop_carried",
        nodes,
        [info("x", F, [6, 4]), info("start", F, [4]), info("limit", F, [])],
        [info("last", F, [4]), info("all", F, [None, 4])],
        [const("trip", np.int64(6)), const("half", np.float32(0.5))],
        sets,
    )


def nonzero(out):
    """Where x > 0: the places, and the values there, doubled."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("NonZero", ["r"], ["at"]),
        helper.make_node("Transpose", ["at"], ["places"]),
        helper.make_node("GatherND", ["x", "places"], ["v"]),
        helper.make_node("Add", ["v", "v"], ["twice"]),
    ]
    sets = []
    for shift in (0, -9, 9):
        x = rng.standard_normal((3, 5)).astype(np.float32) + shift
        places = np.argwhere(x > 0).astype(np.int64)
        sets.append(([x], [places, 2 * x[x > 0]]))
    write(
        out,
        "nonzero_gather",
        nodes,
        [info("x", F, [3, 5])],
        [info("places", I, [None, 2]), info("twice", F, [None])],
        [],
        sets,
    )


def branch(out):
    def side(name, op):
        return helper.make_graph(
            [helper.make_node(op, ["x", "x"], [name])], name, [], [info(name, F, [2, 3])]
        )

    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Greater", ["m", "one"], ["big"]),
        helper.make_node(
            "If", ["big"], ["y"], then_branch=side("a", "Mul"), else_branch=side("b", "Add")
        ),
        helper.make_node("Exp", ["y"], ["z"]),
    ]
    sets = []
    for scale in (0.1, 2.0):
        x = (rng.random((2, 3)) * scale).astype(np.float32)
        x[0, 0] = scale
        sets.append(([x], [np.exp(x * x if x.max() > 1 else x + x)]))
    write(
        out,
        "if_computed",
        nodes,
        [info("x", F, [2, 3])],
        [info("z", F, [2, 3])],
        [const("one", np.float32(1))],
        sets,
    )


def tiles(out):
    """Products and a convolution whose sizes fill no block of a GPU's groups."""
    w, x = whole(37, 19, 3, 3), whole(1, 19, 15, 13)
    padded = np.pad(x[0], ((0, 0), (1, 1), (1, 1)))
    y = sum(
        np.einsum("oc,chw->ohw", w[:, :, i, j], padded[:, i : i + 15, j : j + 13])
        for i in range(3)
        for j in range(3)
    )
    y = np.maximum(y, 0)
    a = whole(2, 83, 67)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
        helper.make_node("Transpose", ["a"], ["b"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["a", "b"], ["z"]),
    ]
    write(
        out,
        "tiles",
        nodes,
        [info("x", F, x.shape), info("a", F, a.shape)],
        [info("y", F, [1, 37, 15, 13]), info("z", F, [2, 83, 83])],
        [const("w", w)],
        [([x, a], [y[None].astype(np.float32), a @ a.transpose(0, 2, 1)])],
    )


def wide(out):
    """A product with so many results that a GPU's groups have tiles of them, whose operands they
    share; nothing fills a block."""
    a, b = whole(1509, 17), whole(17, 1481)
    write(
        out,
        "wide",
        [helper.make_node("MatMul", ["a", "b"], ["z"])],
        [info("a", F, a.shape)],
        [info("z", F, [1509, 1481])],
        [const("b", b)],
        [([a], [a @ b])],
    )


def rows(out):
    """Few results of many terms each, which the items of a GPU's groups share: sums, maxima and
    their places, a product with one row."""
    x, w = whole(6, 1000), whole(512, 100)
    v = whole(1, 512)
    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["s"], keepdims=0),
        helper.make_node("ReduceMax", ["x"], ["m"], axes=[1]),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("ReduceSum", ["d", "axes"], ["t"], keepdims=0),
        helper.make_node("ArgMax", ["x"], ["i"], axis=1, keepdims=0),
        helper.make_node("MatMul", ["v", "w"], ["z"]),
    ]
    top = x.max(axis=1, keepdims=True)
    write(
        out,
        "rows",
        nodes,
        [info("x", F, x.shape), info("v", F, v.shape)],
        [
            info("s", F, [6]),
            info("t", F, [6]),
            info("i", TensorProto.INT64, [6]),
            info("z", F, [1, 100]),
        ],
        [const("w", w), const("axes", np.array([1], np.int64))],
        [([x, v], [x.sum(axis=1), (x - top).sum(axis=1), x.argmax(axis=1), v @ w])],
    )


def scales(out):
    """Layers that are equal but for the scales and zero points they are quantised with: one kernel,
    whose arguments these are."""
    h = whole(2, 16) * np.float32(8)
    x, nodes, weights = h.copy(), [], []
    for i, (scale, zero) in enumerate(((0.5, 3), (2, 120), (16, 77), (32, 90), (64, 100))):
        w = rng.integers(-3, 4, (16, 16)).astype(np.int8)
        if i:
            h = h @ w.astype(np.float32)
        q = np.clip(np.rint(h / np.float32(scale)) + zero, 0, 255)
        h = ((q - zero) * np.float32(scale)).astype(np.float32)
        weights += [
            const(f"w{i}", w),
            const(f"s{i}", np.float32(scale)),
            const(f"z{i}", np.uint8(zero)),
        ]
        nodes += (
            [
                helper.make_node("DequantizeLinear", [f"w{i}", "one"], [f"d{i}"]),
                helper.make_node("MatMul", [f"h{i - 1}", f"d{i}"], [f"m{i}"]),
            ]
            if i
            else []
        )
        nodes += [
            helper.make_node(
                "QuantizeLinear", [f"m{i}" if i else "x", f"s{i}", f"z{i}"], [f"q{i}"]
            ),
            helper.make_node("DequantizeLinear", [f"q{i}", f"s{i}", f"z{i}"], [f"h{i}"]),
        ]
    more = [whole(5, 7), whole(5, 7)]
    wanted = [h, *(np.maximum(v * np.float32(a), np.float32(1)) for v, a in zip(more, (3, 5)))]
    for i, a in enumerate((3, 5)):
        weights.append(const(f"a{i}", np.float32(a)))
        nodes += [
            helper.make_node("Mul", [f"v{i}", f"a{i}"], [f"p{i}"]),
            helper.make_node("Max", [f"p{i}", "one"], [f"r{i}"]),
        ]
    write(
        out,
        "scales",
        nodes,
        [info(n, F, v.shape) for n, v in zip(("x", "v0", "v1"), (x, *more))],
        [info(n, F, v.shape) for n, v in zip(("h4", "r0", "r1"), wanted)],
        weights + [const("one", np.float32(1))],
        [([x, *more], wanted)],
    )


def numbers(out):
    """Parts that are equal but for their numbers, and some whose numbers are of another kind:
    zeros, which are no arguments; one number twice, where others have two; divisors by which a
    division is a product; zero points."""
    kinds = [
        (
            ("Mul", "Add"),
            ((2, 3), (5, 0), (7, 3), (0, 4), (3, 3), (5, 5), (3, 7), (2, -0.0), (6, 1e-40)),
        ),
        (("Add",), ((0,), (1,), (2,), (3,), (4,))),
        (("Mul",), ((5,), (3,), (2,), (7,), (-0.0,), (0,), (1,))),
        (("Div",), ((3,), (5,), (4,), (0.5,), (1,))),
        (("Dequantize",), ((0,), (3,), (200,), (1,))),
    ]
    compute = {
        "Mul": np.multiply,
        "Add": np.add,
        "Div": np.divide,
        "Dequantize": lambda x, zero: (x - zero) / 2,
    }
    nodes, inputs, wanted, weights = [], [], [], [const("half", np.float32(0.5))]
    for k, (ops, parts) in enumerate(kinds):
        for p, values in enumerate(parts):
            x, y = rng.integers(1, 9, (k + 5, 7)).astype(np.float32), f"v{k}_{p}"
            inputs.append((y, x.astype(np.uint8) if ops == ("Dequantize",) else x))
            for i, (op, value) in enumerate(zip(ops, values)):
                x, name, last = (
                    compute[op](x, np.float32(value)).astype(np.float32),
                    f"n{k}_{p}_{i}",
                    y,
                )
                y = f"o{k}_{p}_{i}"
                weights.append(
                    const(name, np.uint8(value) if op == "Dequantize" else np.float32(value))
                )
                nodes.append(
                    helper.make_node("DequantizeLinear", [last, "half", name], [y])
                    if op == "Dequantize"
                    else helper.make_node(op, [last, name], [y])
                )
            wanted.append((y, x))
    write(
        out,
        "numbers",
        nodes,
        [info(n, TensorProto.UINT8 if v.dtype == np.uint8 else F, v.shape) for n, v in inputs],
        [info(n, F, v.shape) for n, v in wanted],
        weights,
        [([v for _, v in inputs], [v for _, v in wanted])],
    )


def there_and_back(out):
    """f32 to i64 and back in one kernel: lanes of 64 bits that no operand has."""
    x = (rng.standard_normal((3, 9, 21)) * 5).astype(np.float32)
    nodes = [
        helper.make_node("Cast", ["x"], ["i"], to=I),
        helper.make_node("Cast", ["i"], ["y"], to=F),
    ]
    write(
        out,
        "there_and_back",
        nodes,
        [info("x", F, x.shape)],
        [info("y", F, x.shape)],
        [],
        [([x], [np.trunc(x)])],
    )


def main():
    out = pathlib.Path(sys.argv[1])
    for make in (batch, batch_concat, batch_conv, batch_blocks):
        make(out / "dim")
    for make in (loop, nonzero, branch, tiles, wide, rows, scales, numbers, there_and_back):
        make(out / "plain")


if __name__ == "__main__":
    main()
