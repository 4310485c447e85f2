#!/usr/bin/env python3
"""Strings and random numbers in bundles, under sanitizers.

    drawn.py --ingot build/ingot [CHECK...]     all checks unless some are named

    numbers     each run draws others; a reset, another process and verify draw the same; --seed
                changes those of no seed
    dropout     training_mode known at run time only: what the mask keeps is scaled, or all passes
    narrow      layers of f16 between casts: verify tells roundings of kernels that hold several nodes
                from faults
    words       string tensors as inputs, outputs and constants; --string-bytes too small is a
                status; verify agrees

Exit status 77, skipped: there is no Python with onnx.
"""

import os
import subprocess
import sys

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from run import SANITIZE, Wrong, call, main, make
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

NODE, VALUE = helper.make_node, helper.make_tensor_value_info
FLOAT, STRING, BOOL, INT64 = (
    TensorProto.FLOAT,
    TensorProto.STRING,
    TensorProto.BOOL,
    TensorProto.INT64,
)

TWICE = """#include <string.h>
#include "model.h"
static _Alignas(MODEL_ARENA_ALIGN) unsigned char arena[1 << 16];
static float x[4], out[3][2][64];
int main(void)
{
    model_ctx ctx;
    model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    model_inputs in = {.x = x};
    if (model_init(&ctx, &config))
        return 1;
    for (int i = 0; i < 3; i++) {
        model_outputs to = {.a = out[i][0], .l = out[i][1]};
        if (i == 2 && model_reset(&ctx))
            return 2;
        if (model_run(&ctx, &in, &to))
            return 3;
    }
    if (memcmp(out[0], out[2], sizeof out[0]))
        return 4;
    for (int k = 0; k < 2; k++)
        if (!memcmp(out[0][k], out[1][k], 12 * sizeof(float)))
            return 5;
    return 0;
}
"""


def save(work, nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(
        nodes,
        "g",
        [VALUE(*v) for v in inputs],
        [VALUE(*v) for v in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in dict(weights).items()],
    )
    path = work / "m.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path
    )
    return path


def build(ingot, work, path, *flags):
    call(ingot, "compile", path, "-o", work / "bundle", *flags)
    make(work / "bundle", "gcc", f"{SANITIZE} -std=c99 -Wall -Wextra -Werror")
    return work / "bundle" / "model"


def ran(model, work, inputs, outputs, *flags):
    data, out = work / "in", work / "out"
    data.mkdir(exist_ok=True)
    for i, v in enumerate(inputs):
        np.save(data / f"input_{i}.npy", v)
    call(model, *flags, data, out)
    return [np.load(out / f"output_{i}.npy") for i in range(outputs)]


def numbers(ingot, work):
    body = helper.make_graph(
        [NODE("RandomUniformLike", ["x"], ["u"]), NODE("Identity", ["c"], ["d"])],
        "b",
        [VALUE("i", INT64, []), VALUE("c", BOOL, [])],
        [VALUE("d", BOOL, []), VALUE("u", FLOAT, [4])],
    )
    path = save(
        work,
        [NODE("RandomNormal", [], ["a"], shape=[3, 5]), NODE("Loop", ["m", ""], ["l"], body=body)],
        [("x", FLOAT, [4])],
        [("a", FLOAT, [3, 5]), ("l", FLOAT, [3, 4])],
        {"m": np.int64(3)},
    )
    model = build(ingot, work, path)
    bundle = work / "bundle"
    (work / "twice.c").write_text(TWICE)
    call(
        "gcc",
        *SANITIZE.split(),
        "-std=c11",
        f"-I{bundle}",
        work / "twice.c",
        bundle / "libmodel.a",
        "-lm",
        "-o",
        work / "twice",
    )
    call(work / "twice")
    x = [np.zeros(4, np.float32)]
    first, again, other = (
        ran(model, work, x, 2),
        ran(model, work, x, 2),
        ran(model, work, x, 2, "--seed", "5"),
    )
    for a, b, c in zip(first, again, other):
        if not np.array_equal(a, b) or np.isin(a, c).any():
            raise Wrong(f"{a}\n{b}\n{c}")
    if len(np.unique(first[1])) != 12:
        raise Wrong(f"iterations draw the same: {first[1]}")
    call(model, "--selftest", good=(0, 4))
    call(ingot, "verify", path, env={"INGOT_CACHE": str(work / "cache")})
    seeded = save(
        work,
        [
            NODE("Neg", ["x"], ["y"]),
            NODE("RandomUniform", [], ["u"], shape=[2]),
            NODE("RandomUniform", [], ["a"], shape=[4], seed=3.0),
        ],
        [("x", FLOAT, [4])],
        [("y", FLOAT, [4]), ("u", FLOAT, [2]), ("a", FLOAT, [4])],
    )
    model = build(ingot, work, seeded)
    # threefry((bits of 3.0f, 0), (0, 0)), and of that (i, 0)
    want = np.array([0.3473519, 0.534678, 0.91854584, 0.7514059], np.float32)
    for flags in ((), ("--seed", "9")):
        got = ran(model, work, x, 3, *flags)[2]
        if not np.array_equal(got, want):
            raise Wrong(f"{got.tolist()}, not {want.tolist()}")
    print("runs, resets, loops and seeds")


def dropout(ingot, work):
    path = save(
        work,
        [NODE("Dropout", ["x", "r", "t"], ["y", "m"])],
        [("x", FLOAT, [50, 40]), ("r", FLOAT, []), ("t", BOOL, [])],
        [("y", FLOAT, [50, 40]), ("m", BOOL, [50, 40])],
    )
    model = build(ingot, work, path)
    x = np.arange(1, 2001, dtype=np.float32).reshape(50, 40)
    for ratio in (0.25, 0, 1):
        y, m = ran(model, work, [x, np.float32(ratio), np.array(True)], 2)
        if abs(m.mean() - (1 - ratio)) > 0.05 or not np.allclose(
            y, np.where(m, x / max(1 - ratio, 0.1), 0)
        ):
            raise Wrong(f"ratio {ratio}: {m.mean()} pass, {y}")
        y, m = ran(model, work, [x, np.float32(ratio), np.array(False)], 2)
        if not m.all() or not np.array_equal(x, y):
            raise Wrong(f"no training, ratio {ratio}: {y}")
    print("in training and not")


def words(ingot, work):
    text = np.array(["ab".encode(), b"", "日本".encode()])
    path = save(
        work,
        [
            NODE("StringConcat", ["x", "k"], ["c"]),
            NODE("StringConcat", ["c", "x"], ["d"]),
            NODE("Concat", ["d", "k", "x"], ["y"], axis=0),
            NODE("Equal", ["x", "k"], ["e"]),
        ],
        [("x", STRING, [3])],
        [("y", STRING, [9]), ("e", BOOL, [3])],
        {"k": np.array(["ab", "-", "é"], object)},
    )
    model = build(ingot, work, path, "--string-bytes", "16")
    k = ["ab".encode(), b"-", "é".encode()]
    y, e = ran(model, work, [text], 2)
    want = [a + b + a for a, b in zip(text.tolist(), k)] + k + text.tolist()
    if y.tolist() != want or e.tolist() != [True, False, False]:
        raise Wrong(f"{y.tolist()}, not {want}; {e}")
    env = {"INGOT_CACHE": str(work / "cache")}
    call(ingot, "verify", path, "--input", work / "in" / "input_0.npy", env=env)
    model = build(ingot, work, path, "--string-bytes", "4")
    done = subprocess.run(
        [model, work / "in", work / "out"],
        text=True,
        capture_output=True,
        env={**os.environ, **env},
    )
    if done.returncode != 4 or "--string-bytes" not in done.stderr:
        raise Wrong(f"status {done.returncode}: {done.stderr}")
    print("made, compared, moved, and too long")


def narrow(ingot, work):
    rng, width = np.random.default_rng(1), 32
    nodes, weights = [NODE("Cast", ["x"], ["h0"], to=TensorProto.FLOAT16)], []
    x = rng.standard_normal((4, width)).astype(np.float32)
    wanted = x.astype(np.float16)
    for i in range(4):
        w = (rng.standard_normal((width, width)) * 0.3).astype(np.float16)
        b = rng.standard_normal(width).astype(np.float16)
        weights += [numpy_helper.from_array(w, f"w{i}"), numpy_helper.from_array(b, f"b{i}")]
        nodes += [
            NODE("MatMul", [f"h{i}", f"w{i}"], [f"m{i}"]),
            NODE("Add", [f"m{i}", f"b{i}"], [f"s{i}"]),
            NODE("Tanh", [f"s{i}"], [f"h{i + 1}"]),
        ]
        wanted = np.tanh((wanted.astype(np.float64) @ w + b)).astype(np.float16)
    nodes.append(NODE("Cast", ["h4"], ["y"], to=TensorProto.FLOAT))
    x_type, y_type = (VALUE(n, FLOAT, x.shape) for n in "xy")
    graph = helper.make_graph(nodes, "g", [x_type], [y_type], weights)
    file, data = work / "narrow.onnx", work / "data"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), file)
    data.mkdir()
    np.save(data / "input_0.npy", x)
    for far, status in (0, 0), (0.02, 7):
        y = wanted + far * (np.arange(width) == 7)
        np.save(data / "output_0.npy", y.astype(np.float32))
        done = subprocess.run(
            [ingot, "verify", file, "--interpret", "--data", data], text=True, capture_output=True
        )
        if done.returncode != status or "other roundings move it as far" not in done.stdout:
            raise Wrong(f"status {done.returncode}, not {status}: {done.stdout}{done.stderr}")
    print("four layers, and one element that is wrong")


if __name__ == "__main__":
    sys.exit(main(__doc__, {f.__name__: f for f in (numbers, dropout, narrow, words)}))
