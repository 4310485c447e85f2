#!/usr/bin/env python3
"""Names in what is emitted, and which nodes of the model a kernel is said to compute.

names.py --ingot build/ingot

provenance   every kernel computes what is told and nothing else: of fused, shared, merged and
             quantised ones
kernels      named after the heaviest node and its shape; identifiers, none twice, not too long; the
             same from run to run
weights      named after the initializers that they are made of
"""

import json
import pathlib
import re
import subprocess
import sys

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper
from run import Wrong, call, main

rng = np.random.default_rng(3)


def want(good, what):
    if not good:
        raise Wrong(what)


def tensor(name, *dims, kind=np.float32):
    return numpy_helper.from_array(
        (rng.normal(size=dims) * (20 if kind != np.float32 else 0.1)).astype(kind), name
    )


def scalar(name, value):
    return numpy_helper.from_array(np.array(value), name)


def save(path, nodes, inputs, outputs, data):
    info = lambda pairs: [helper.make_tensor_value_info(n, t, d) for n, t, d in pairs]  # noqa: E731
    graph = helper.make_graph(nodes, "g", info(inputs), info(outputs), data)
    path.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )
    return path


def node(op, name, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=name, **attributes)


def conv(name, x, w, y, **attributes):
    return node(
        "Conv", name, [x, w], [y], **{"pads": [1, 1, 1, 1], "strides": [2, 2], **attributes}
    )


def steps(ingot, model, *flags):
    text = call(ingot, "inspect", model, "--json", *flags)
    return [s for s in json.loads(text)["steps"] if s["kind"] == "generated"]


def origins(ingot, model, *flags):
    return [{o["node"] for o in s["source"]} for s in steps(ingot, model, *flags)]


def branches(path):
    """Two convolutions of one tensor, which both of them pad; and their sum."""
    data = [tensor("wa", 16, 8, 3, 3), tensor("wb", 16, 8, 3, 3), tensor("w1", 8, 3, 3, 3)]
    nodes = [
        conv("stem", "x", "w1", "s"),
        node("Relu", "relu", ["s"], ["r"]),
        conv("left", "r", "wa", "a"),
        conv("right", "r", "wb", "b"),
        node("Sigmoid", "gate", ["b"], ["g"]),
        node("Mul", "gated", ["a", "g"], ["m"]),
        node("Softmax", "soft", ["m"], ["y"], axis=1),
    ]
    return save(
        path, nodes, [("x", T.FLOAT, [1, 3, 32, 32])], [("y", T.FLOAT, [1, 16, 8, 8])], data
    )


def quantised(path):
    """A residual block as quantisers write it: each tensor through bytes."""
    data, nodes = [], []

    def through_bytes(x, name):
        data.extend([scalar(name + "_s", np.float32(0.05)), scalar(name + "_z", np.int8(3))])
        nodes.extend(
            [
                node("QuantizeLinear", "q_" + name, [x, name + "_s", name + "_z"], [name + "_q"]),
                node(
                    "DequantizeLinear",
                    "dq_" + name,
                    [name + "_q", name + "_s", name + "_z"],
                    [name],
                ),
            ]
        )
        return name

    def weighed(x, name, w):
        data.extend([w, scalar(w.name + "_s", np.float32(0.01)), scalar(w.name + "_z", np.int8(0))])
        nodes.extend(
            [
                node(
                    "DequantizeLinear",
                    "dq_" + w.name,
                    [w.name, w.name + "_s", w.name + "_z"],
                    [w.name + "_f"],
                ),
                conv(
                    name,
                    x,
                    w.name + "_f",
                    name + "_y",
                    strides=[2, 2] if name in ("down", "first") else [1, 1],
                ),
            ]
        )
        return through_bytes(name + "_y", name + "_b")

    a = through_bytes("x", "in")
    b = weighed(a, "first", tensor("wa", 8, 4, 3, 3, kind=np.int8))
    c = weighed(b, "second", tensor("wb", 8, 8, 3, 3, kind=np.int8))
    d = weighed(a, "down", tensor("wc", 8, 4, 3, 3, kind=np.int8))
    nodes += [node("Add", "add", [c, d], ["sum"]), node("Relu", "relu", ["sum"], ["pos"])]
    y = through_bytes("pos", "out")
    return save(path, nodes, [("x", T.FLOAT, [1, 4, 16, 16])], [(y, T.FLOAT, [1, 8, 8, 8])], data)


def attention(path):
    """Query, key and value: three products of one tensor, which become one kernel."""
    names = ("query", "key", "value")
    data = [tensor("w_" + n, 64, 64) for n in names]
    nodes = [node("MatMul", n, ["x", "w_" + n], [n + "_y"]) for n in names]
    return save(
        path,
        nodes,
        [("x", T.FLOAT, [32, 64])],
        [(n + "_y", T.FLOAT, [32, 64]) for n in names],
        data,
    )


def residual(path):
    """Two wide convolutions and what was before them; each is computed in fewer products, in
    strips."""
    data = [tensor("w1", 64, 64, 3, 3), tensor("w2", 64, 64, 3, 3)]
    nodes = [
        node("MaxPool", "pool", ["x"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        conv("c1", "p", "w1", "a", strides=[1, 1]),
        node("Relu", "r1", ["a"], ["b"]),
        conv("c2", "b", "w2", "c", strides=[1, 1]),
        node("Add", "sum", ["c", "p"], ["d"]),
        node("Relu", "r2", ["d"], ["y"]),
    ]
    return save(
        path, nodes, [("x", T.FLOAT, [1, 64, 112, 112])], [("y", T.FLOAT, [1, 64, 56, 56])], data
    )


def has(told, nodes):
    want(
        nodes in told, f"no kernel of {sorted(nodes)} alone; there are {[sorted(t) for t in told]}"
    )


def provenance(ingot, work):
    told = origins(ingot, branches(work / "branches.onnx"))
    for t in told:
        want(
            not ({"stem", "relu"} & t and {"left", "right", "gate"} & t),
            f"the stem's kernel pads for both, and computes neither: {t}",
        )
    want(
        set().union(*told) == {"stem", "relu", "left", "right", "gate", "gated", "soft"}, f"{told}"
    )
    told = origins(ingot, quantised(work / "quantised.onnx"))
    has(told, {"q_in"})
    has(told, {"dq_in", "dq_wa", "first", "q_first_b"})
    has(
        told,
        {
            "dq_in",
            "dq_first_b",
            "dq_wb",
            "second",
            "q_second_b",
            "dq_second_b",
            "dq_wc",
            "down",
            "q_down_b",
            "dq_down_b",
            "add",
            "relu",
            "q_out",
            "dq_out",
        },
    )
    want(
        not any("add" in t and "second" not in t for t in told), f"a copy computes nothing: {told}"
    )
    has(
        origins(ingot, attention(work / "attention.onnx"), "--target", "c:x86-64-v3"),
        {"query", "key", "value"},
    )
    told = origins(ingot, residual(work / "residual.onnx"), "--target", "c:x86-64-v3")
    want(
        len(told) < 12  # those of a strip: they are a loop
        and {frozenset(t) for t in told}
        == {frozenset(t) for t in ({"pool"}, {"c1"}, {"c1", "r1"}, {"c2"}, {"c2", "sum", "r2"})},
        f"strips of two convolutions: {told}",
    )
    # `explain` finds the kernel by any of its nodes
    said = call(ingot, "explain", work / "quantised.onnx", "add")
    want("second" in said, f"explain of a sum that was rewritten: {said}")
    print("ok")


def kernels(ingot, work):
    names = [s["name"] for s in steps(ingot, branches(work / "branches.onnx"))]
    for name in ("conv_1x8x16x16", "conv_1x16x8x8", "softmax_1x16x8x8"):
        want(any(re.fullmatch(r"k\d\d_" + name, n) for n in names), f"no {name}: {names}")
    names = [s["name"] for s in steps(ingot, quantised(work / "quantised.onnx"))]
    want([n[4:] for n in names if "conv" in n] == ["conv_1x8x8x8"] * 2, f"{names}")
    names = [
        s["name"]
        for s in steps(ingot, attention(work / "attention.onnx"), "--target", "c:x86-64-v3")
    ]
    want("matmul_32x64" in names[0], f"{names}")
    # equal kernels are one, named after the first; what is moved for a convolution is no
    # convolution
    data = [tensor("w1", 8, 8, 3, 3), tensor("w2", 8, 8, 3, 3)]
    twice = save(
        work / "twice.onnx",
        [conv("c1", "x", "w1", "a", strides=[1, 1]), conv("c2", "a", "w2", "y", strides=[1, 1])],
        [("x", T.FLOAT, [1, 8, 8, 8])],
        [("y", T.FLOAT, [1, 8, 8, 8])],
        data,
    )
    call(ingot, "compile", twice, "-o", work / "twice", "-q")
    text = "".join(p.read_text() for p in (work / "twice").glob("*_kernels_*.c"))
    found = re.findall(r"^/\* (k\d+\w*)", text, re.M)
    want(
        len(found) == len(set(found))
        and all(re.fullmatch(r"k\d+_(conv|copy)_1x8x8x8", n) for n in found),
        f"{found}",
    )
    # long names and dims; of a run-time size
    long = save(
        work / "long.onnx",
        [
            node("Relu", "a/" * 200, ["x"], ["r"]),
            node("Exp", "é\"*/\n", ["r"], ["e"]),
            node("ReduceSum", "", ["e"], ["y"], keepdims=0),
        ],
        [("x", T.FLOAT, ["batch", 12, 1024, 123])],
        [("y", T.FLOAT, [])],
        [],
    )
    names = [s["name"] for s in steps(ingot, long, "--dim", "batch=1..1000")]
    want(all(re.fullmatch(r"k\d\d_[a-z0-9_]+", n) and len(n) <= 60 for n in names), f"{names}")
    want(any("nx12x1024x123" in n for n in names), f"{names}")
    print("ok")


def weights(ingot, work):
    data = [
        tensor("layer1.0.conv1.weight", 16, 8, 3, 3),
        tensor("layer1_0_conv1.weight", 16, 16, 3, 3),
        tensor("onnx::MatMul_17", 16, 32),
        tensor("functional_1/" * 9 + "dense/MatMul/kernel", 32, 5),
        tensor("23", 5),
    ]
    nodes = [
        conv("a", "x", data[0].name, "a"),
        conv("b", "a", data[1].name, "b"),
        node("GlobalAveragePool", "p", ["b"], ["g"]),
        node("Flatten", "f", ["g"], ["h"]),
        node("MatMul", "head/hidden", ["h", data[2].name], ["i"]),
        node("Relu", "r", ["i"], ["j"]),
        node("MatMul", "m", ["j", data[3].name], ["k"]),
        node("Add", "last", ["k", data[4].name], ["y"]),
    ]
    model = save(
        work / "w.onnx", nodes, [("x", T.FLOAT, [1, 8, 16, 16])], [("y", T.FLOAT, [1, 5])], data
    )
    found = {}
    for mode in ("blob", "array"):
        out = work / mode
        call(ingot, "compile", model, "-o", out, "--name", "net", "--weights", mode, "-q")
        text = (out / ("net.c" if mode == "blob" else "net_weights.h")).read_text()
        found[mode] = re.findall(
            r"^    (w_\w+) = \d+," if mode == "blob" else r"^extern const \w+ net_(w_\w+)\[",
            text,
            re.M,
        )
        call("make", "-s", "-C", out, "CFLAGS=-std=c99 -Wall -Wextra -Werror -O1")
    want(found["blob"] == found["array"], f"{found}")
    wanted = {
        "w_layer1_0_conv1_weight",
        "w_layer1_0_conv1_weight_2",
        "w_head_hidden",
        "w_functional_1_dense_MatMul_kernel",
        "w_last",
    }
    want(set(found["blob"]) == wanted, f"{found['blob']}, not {sorted(wanted)}")
    print("ok")


if __name__ == "__main__":
    sys.exit(main(__doc__, {"provenance": provenance, "kernels": kernels, "weights": weights}))
