#!/usr/bin/env python3
"""What goes wrong when a model runs is told, with a status of its own.

    checks.py --ingot build/ingot [CHECK...]    all checks unless some are named

    beside      `ingot run` and `verify` compare with outputs beside the inputs: errors, nan,
                infinity, zeros, shapes
    half        `ingot verify` judges 16-bit floats
    rounded     where a rewrite rounds at other places, `verify` prints what that makes of the
                outputs
    selftest    a bundle without golden data has a status for that, and compile a note; --selftest
                DIR gives it some
    folded      library kernels of constants run when the model is compiled: no call is left, and no
                run-time dim
    sums        sums of integers beyond 2^24, which f32 has not all of: exact where the graph is of
                integers; rounded once where it asks for f32; rounded at each term where a scale
                varies along the sum
    extremes    the index of the greatest and the least, first and last: ties, NaN, infinities, in
                vectors and beside them
    indices     -DMODEL_CHECK=1: an index from data that is out of range ends the run, with node and
                value; in loops, fused and vectorised kernels, scatters; in a release the results
                are defined
    empties     an axis that is empty in a run: what takes an element of it ends the run, and
                nothing is read beside the buffers
    branches    a branch with an index that is outside for certain: a run that takes it ends

Exit status 77, skipped: there is no Python with onnx.
"""

import os
import subprocess
import sys

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
    from run import SANITIZE, STRICT, Wrong, call, compilers, main, program
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

OK, USAGE, INVALID, TOOL, IO, DIFFERS = 0, 2, 3, 5, 6, 7


def model(work, nodes, inputs, outputs, weights=()):
    """The path of a model; inputs and outputs are (name, type, shape), weights arrays by name."""
    values = [[helper.make_tensor_value_info(*v) for v in list_] for list_ in (inputs, outputs)]
    graph = helper.make_graph(
        nodes, "g", *values, [numpy_helper.from_array(v, k) for k, v in dict(weights).items()]
    )
    path = work / "m.onnx"
    path.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9
        ).SerializeToString()
    )
    return path


def told(ingot, work, *command, status=OK, says=()):
    """What a command prints; it has to end with this status and say this."""
    done = subprocess.run(
        [str(c) for c in (ingot, *command)],
        text=True,
        capture_output=True,
        env={**os.environ, "INGOT_CACHE": str(work / "cache")},
    )
    text = done.stdout + done.stderr
    if done.returncode != status or not all(s in text for s in says):
        raise Wrong(f"{command}: status {done.returncode}, wanted {status} and {says}\n{text}")
    return text


def save(work, name, array, pb=False):
    data = work / "data"
    data.mkdir(exist_ok=True)
    for old in data.glob(f"{name}.*"):
        old.unlink()
    if pb:
        (data / f"{name}.pb").write_bytes(numpy_helper.from_array(array, "x").SerializeToString())
    else:
        np.save(data / f"{name}.npy", array)
    return data


def beside(ingot, work):
    f = TensorProto.FLOAT
    path = model(
        work,
        [
            helper.make_node("Log", ["x"], ["y"], "log"),
            helper.make_node("Cast", ["x"], ["n"], "cast", to=TensorProto.UINT8),
        ],
        [("x", f, [2, 4])],
        [("y", f, [2, 4]), ("n", TensorProto.UINT8, [2, 4])],
    )
    x = np.array([[1, 2, 0, -1], [3, 4, 5, 6]], np.float32)
    with np.errstate(all="ignore"):
        y = np.log(x)
    n = np.array([[1, 2, 0, 255], [3, 4, 5, 6]], np.uint8)
    data = save(work, "input_0", x)
    count = 0

    def run(want, status=OK, says=(), flags=(), command="run", **how):
        nonlocal count
        count += 1
        save(work, "output_0", want, **how)
        told(ingot, work, command, path, "--data", data, *flags, status=status, says=says)

    def changed(at, value):
        z = y.copy()
        z[at] = value
        return z

    top = float(np.log(np.float32(6)))
    told(ingot, work, "run", path, "--data", data)  # nothing to compare with
    for command in ("run", "verify"):
        run(y, says=["y compared with", "output_0.npy"], command=command)
        run(
            changed((1, 2), 2),
            DIFFERS,
            ["m.onnx: output 'y'", "output_0.npy", "[1,2] is 1.609", "wanted 2", "1 of 8"],
            command=command,
        )
    run(y, pb=True, says=["output_0.pb"])
    run(changed((1, 0), y[1, 0] + 0.0005 * top))
    run(changed((1, 0), y[1, 0] + 0.002 * top), DIFFERS, ["[1,0]", "0.002 of the range"])
    run(changed((1, 0), y[1, 0] + 0.002 * top), flags=["--tolerance", "0.01"])
    run(changed((1, 0), y[1, 0] + 0.0005 * top), DIFFERS, flags=["--tolerance=1e-5"])
    for at, value, says in (
        ((0, 3), 1, "1 of 8 are nan on one side only"),
        ((1, 1), np.nan, "1 of 8 are nan on one side only"),
        ((0, 2), np.inf, "1 of 8 are infinite on one side only"),
        ((1, 1), np.inf, "infinite on one side only"),
        ((0, 2), -1e38, "infinite on one side only"),
    ):
        run(changed(at, value), DIFFERS, [says], flags=["--tolerance", "1e30"])
    run(y[:, :3], DIFFERS, ["f32[2,4] and not f32[2,3]"])
    run(y.astype(np.float64), DIFFERS, ["f32[2,4] and not f64[2,4]"])
    (data / "output_0.npy").write_bytes(b"\x93NUMPY")
    told(ingot, work, "run", path, "--data", data, status=INVALID, says=["output_0.npy"])
    save(work, "output_0", y)
    for off, status in ((0, OK), (1, OK), (2, DIFFERS)):  # of a byte, one step is a rounding
        m = n.copy()
        m[1, 1] += off
        save(work, "output_1", m)
        told(ingot, work, "run", path, "--data", data, status=status, says=["output_1.npy"])
    save(work, "output_1", n)
    save(work, "input_0", np.ones((2, 4), np.float32))  # all logarithms are zero
    save(work, "output_1", np.ones((2, 4), np.uint8))
    zero = np.zeros((2, 4), np.float32)
    run(zero, says=["output_0.npy: equal"])
    run(zero + np.float32(1e-5), DIFFERS, ["[0,0] is 0"], flags=["--tolerance", "1e-3"])
    save(work, "input_0", np.full((2, 4), 1.0001, np.float32))
    run(zero, says=["all wanted are zero", "0.0001"])
    save(work, "input_0", np.full((2, 4), 1.1, np.float32))
    run(zero, DIFFERS, ["all wanted are zero", "8 of 8"])
    told(
        ingot,
        work,
        "run",
        path,
        "--data",
        data,
        "--tolerance",
        "much",
        status=USAGE,
        says=["--tolerance", "much"],
    )
    print(f"{count} comparisons")


def sums(ingot, work):
    rng = np.random.default_rng(24)
    k, scale, i8, f = 1301, np.float32(2.0**-9), TensorProto.INT8, TensorProto.FLOAT
    a, b = (
        rng.choice([-127, 126, 127], n, p=[0.02, 0.03, 0.95]).astype(np.int8)
        for n in ((5, k), (k, 33))
    )
    exact = a.astype(np.int64) @ b.astype(np.int64)
    if not (abs(exact) > 1 << 24).all() or (exact.astype(np.float32) == exact).all():
        raise Wrong("these sums prove nothing")
    by_row = (2.0 ** rng.integers(-9, -5, k)).astype(np.float32)
    dequantized = [
        helper.make_node("DequantizeLinear", ["a", "s"], ["x"], "x"),
        helper.make_node("DequantizeLinear", ["b", "t"], ["w"], "w", axis=0),
        helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
    ]
    rounded = exact.astype(np.float32) * scale * scale
    far = (a * by_row.astype(np.float64) @ b * scale).astype(np.float32)
    cases = (
        (
            [helper.make_node("MatMulInteger", ["a", "b"], ["y"], "product")],
            {},
            TensorProto.INT32,
            exact.astype(np.int32),
            (),
        ),
        (dequantized, {"s": scale, "t": scale}, f, rounded, ()),
        (dequantized, {"s": scale, "t": by_row}, f, far, ("--tolerance", "1e-5")),
    )
    data = save(work, "input_0", a)
    for nodes, weights, kind, want, flags in cases:
        path = model(work, nodes, [("a", i8, [5, k])], [("y", kind, [5, 33])], {"b": b, **weights})
        save(work, "output_0", want)
        for target in ("c:c99", "c", "c:native"):
            told(
                ingot,
                work,
                "run",
                path,
                "--data",
                data,
                "--target",
                target,
                *flags,
                says=["y compared with"] if flags else ["output_0.npy: equal"],
            )
    print(f"{len(cases)} products of {k} terms, sums up to {abs(exact).max()}")


def half(ingot, work):
    """Networks of f16 and bf16, whose results are rounded differently in the program and in the
    interpreter."""
    rng = np.random.default_rng(1)
    for t in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
        w = numpy_helper.to_array(
            helper.make_tensor("w", TensorProto.FLOAT, [64, 64], rng.standard_normal(4096) / 8)
        )
        nodes = [helper.make_node("Cast", ["w"], ["h"], "cast", to=t)]
        at = "x"
        for i in range(3):
            nodes += [
                helper.make_node("MatMul", [at, "h"], [f"p{i}"], f"product{i}"),
                helper.make_node("Tanh", [f"p{i}"], [f"t{i}"], f"tanh{i}"),
            ]
            at = f"t{i}"
        path = model(work, nodes, [("x", t, [32, 64])], [(at, t, [32, 64])], {"w": w})
        text = told(ingot, work, "verify", path, says=["t2 compared with the interpreter's: "])
        if "inf" in text or "nan" in text:
            raise Wrong(text)
    print("2 networks")


def rounded(ingot, work):
    """Scales leave a sum of integers; without that rewrite, and where there is none to do, there is
    nothing to tell."""
    f, rng = TensorProto.FLOAT, np.random.default_rng(1)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["q"], "quantize"),
        helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["d"], "widen"),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["v"], "weights"),
        helper.make_node("MatMul", ["d", "v"], ["y"], "product"),
    ]
    small = {"sx": np.float32(0.013), "sw": np.float32(0.007), "zx": np.int8(3), "zw": np.int8(0)}
    path = model(
        work,
        nodes,
        [("x", f, [3, 64])],
        [("y", f, [3, 64])],
        {
            "w": rng.integers(-127, 128, (64, 64)).astype(np.int8),
            **{k: np.asarray(v) for k, v in small.items()},
        },
    )
    says = "y of the rewritten graph compared with that of the model file: "
    told(ingot, work, "verify", path, says=[says, "y compared with the interpreter's: "])
    if says in told(
        ingot,
        work,
        "verify",
        path,
        "--no-rewrite",
        "integer-sum",
        says=["y compared with the interpreter's: "],
    ):
        raise Wrong("two graphs are told apart that are rounded alike")
    print("told, and not told")


def selftest(ingot, work):
    f, rng = TensorProto.FLOAT, np.random.default_rng(1)
    w = rng.standard_normal((512, 512)).astype(np.float32) / 16
    path = model(
        work,
        [
            helper.make_node("MatMul", ["x", "w"], ["p"], "product"),
            helper.make_node("Relu", ["p"], ["y"], "relu"),
            helper.make_node("ArgMax", ["y"], ["best"], "best", axis=1),
        ],
        [("x", f, ["batch", 512])],
        [("y", f, ["batch", 512]), ("best", TensorProto.INT64, ["batch", 1])],
        {"w": w},
    )
    dims = ["--dim", "batch=1..128"]
    bundle = work / "bundle"

    def build(flags=SANITIZE):
        program(bundle, compilers()[0], flags)
        return subprocess.run([bundle / "model", "--selftest"], text=True, capture_output=True)

    def wants(done, status, says):
        if done.returncode != status or says not in done.stdout + done.stderr:
            raise Wrong(
                f"status {done.returncode}, not {status} and '{says}'\n{done.stdout}{done.stderr}"
            )

    told(
        ingot,
        work,
        "compile",
        path,
        "-o",
        bundle,
        *dims,
        says=["m.onnx", "no selftest", "million operations", "--selftest DIR"],
    )
    wants(build(STRICT), 8, "no selftest")
    text = told(ingot, work, "compile", path, "-o", bundle, "--dim", "batch=2")
    if "selftest" in text:
        raise Wrong(text)
    wants(build(), 0, "ok")
    x = rng.standard_normal((5, 512)).astype(np.float32)
    y = np.maximum(x @ w, 0)
    data = save(work, "input_0", x, pb=True)
    save(work, "output_0", y)
    told(
        ingot,
        work,
        "compile",
        path,
        "-o",
        bundle,
        *dims,
        "--selftest",
        data,
        status=IO,
        says=["output_1"],
    )
    save(work, "output_1", y.argmax(1)[:, None])
    for flags in (STRICT, SANITIZE):
        if "no selftest" in told(
            ingot, work, "compile", path, "-o", bundle, *dims, "--selftest", data
        ):
            raise Wrong("a note")
        wants(build(flags), 0, "ok")
    save(work, "output_0", y + 1)
    told(ingot, work, "compile", path, "-o", bundle, *dims, "--selftest", data)
    wants(build(), 6, "expected")
    save(work, "output_0", y[:4])
    told(ingot, work, "compile", path, "-o", bundle, *dims, "--selftest", data)
    wants(build(), 6, "expected")
    told(
        ingot,
        work,
        "compile",
        path,
        "-o",
        bundle,
        "--dim",
        "batch=1..4",
        "--selftest",
        data,
        status=INVALID,
        says=["selftest", "'x'"],
    )
    told(
        ingot,
        work,
        "compile",
        path,
        "-o",
        bundle,
        *dims,
        "--selftest",
        work / "nosuch",
        status=IO,
        says=["nosuch"],
    )
    print("golden data: none, a formula's, a folder's")


def folded(ingot, work):
    f, i = TensorProto.FLOAT, TensorProto.INT64
    rng = np.random.default_rng(2)
    m = (rng.random((3, 5)) < 0.4).astype(np.float32)
    v = np.array([3, 1, 3, 7, 1, 9], np.float32)
    keep = np.array([True, False, True, True])
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11]]], np.float32)
    scores = np.array([[[0.9, 0.75, 0.6]]], np.float32)
    nodes = [
        helper.make_node("Abs", ["m"], ["a"], "abs"),
        helper.make_node("NonZero", ["a"], ["places"], "nonzero"),
        helper.make_node("Transpose", ["places"], ["at"], "turn"),
        helper.make_node("GatherND", ["x", "at"], ["y"], "gather"),
        helper.make_node("Unique", ["v"], ["u", "first", "back", "many"], "unique"),
        helper.make_node("Gather", ["u", "k"], ["w"], "take"),
        helper.make_node("TopK", ["u", "two"], ["best", "where"], "topk"),
        helper.make_node("Compress", ["x", "keep"], ["z"], "compress", axis=1),
        helper.make_node(
            "NonMaxSuppression", ["boxes", "scores", "most", "iou"], ["chosen"], "nms"
        ),
    ]
    x = rng.standard_normal((3, 5)).astype(np.float32)
    places, u = np.argwhere(m), np.unique(v)
    wanted = [
        x[m != 0],
        u[[0, -1]],
        np.sort(u)[::-1][:2],
        np.argsort(u)[::-1][:2],
        x[:, :4][:, keep],
        np.unique(v, return_counts=True)[1],
        np.array([[0, 0, 0], [0, 0, 2]]),
    ]
    names = ["y", "w", "best", "where", "z", "many", "chosen"]
    types = [f, f, f, i, f, i, i]
    path = model(
        work,
        nodes,
        [("x", f, [3, 5])],
        [(n, t, list(w.shape)) for n, t, w in zip(names, types, wanted)],
        {
            "m": m,
            "v": v,
            "k": np.array([0, -1]),
            "two": np.array([2]),
            "keep": keep,
            "boxes": boxes,
            "scores": scores,
            "most": np.array([5]),
            "iou": np.array([0.5], np.float32),
        },
    )
    bundle = work / "bundle"
    told(ingot, work, "compile", path, "-o", bundle)
    if any(
        (bundle / f"{name}.c").exists() for name in ("nonzero", "unique", "topk", "compress", "nms")
    ):
        raise Wrong("a library kernel is left")
    if "_dims[" in (bundle / "model.h").read_text() or "sym[" in (bundle / "model.h").read_text():
        raise Wrong("a run-time dim is left")
    data = save(work, "input_0", x)
    for n, w in enumerate(wanted):
        save(work, f"output_{n}", w.astype(np.int64) if w.dtype.kind == "i" else w)
    told(ingot, work, "run", path, "--data", data, says=[f"{n} compared with" for n in names])
    for bad in (np.array([3, 4]), np.array([9])):  # TopK of more than there are: told, not crashed
        path = model(
            work,
            [helper.make_node("TopK", ["v", "k"], ["b", "w"], "topk")],
            [("x", f, [1])],
            [("b", f, None)],
            {"v": v, "k": bad[:1] * 3},
        )
        told(ingot, work, "compile", path, "-o", work / "bad", status=INVALID, says=["topk"])
    print(f"{len(names)} results of constants")


def extremes(ingot, work):
    f, count = TensorProto.FLOAT, 0
    rng = np.random.default_rng(3)
    x = rng.integers(-3, 4, (24, 75)).astype(np.float32)  # 75: four vectors, or nine, and some left
    x[1], x[2], x[3], x[4] = -np.inf, np.inf, np.nan, 7
    for row, where in enumerate(((0,), (74,), (16, 31), (0, 74), (70, 73), (63, 64)), 5):
        x[row, where] = np.nan
    x[11, 1:], x[12, :-1], x[13, 5] = -np.inf, np.inf, -np.inf
    nodes, outputs, want = [], [], []
    for op, axis, last in [
        (op, axis, last) for op in ("ArgMax", "ArgMin") for axis in (0, 1) for last in (0, 1)
    ]:
        name = f"y{len(nodes)}"
        nodes.append(
            helper.make_node(op, ["x"], [name], name, axis=axis, select_last_index=last, keepdims=0)
        )
        outputs.append((name, TensorProto.INT64, None))
        pick = np.argmax if op == "ArgMax" else np.argmin
        y = x.shape[axis] - 1 - pick(np.flip(x, axis), axis) if last else pick(x, axis)
        want.append(y)
    path = model(work, nodes, [("x", f, list(x.shape))], outputs)
    data = save(work, "input_0", x)
    for i, y in enumerate(want):
        save(work, f"output_{i}", y.astype(np.int64))
    for target in ("c", "c:c99", "c:x86-64-v3", "c:native"):
        told(ingot, work, "verify", path, "--data", data, "--target", target)
        told(ingot, work, "run", path, "--data", data, "--target", target)
        count += len(want)
    # a product beyond what f32 holds, at the end or on the way: no fault of the kernel
    for n, k in ((75, np.float32(100)), (80, np.float32([1000] * 40 + [0.001] * 40))):
        nodes = [
            helper.make_node("Mul", ["x", "k"], ["a"]),
            helper.make_node("ReduceProd", ["a"], ["y"]),
        ]
        path = model(work, nodes, [("x", TensorProto.FLOAT, [n])], [("y", 1, [1])], {"k": k})
        told(ingot, work, "compile", path, "--target", "c:native", "-o", work / "products")
    print(f"{count} results")


def driver(bundle, data, status, says=()):
    done = subprocess.run([bundle / "model", data, bundle / "out"], text=True, capture_output=True)
    if done.returncode != status or not all(s in done.stderr for s in says):
        raise Wrong(f"status {done.returncode}, wanted {status} and {says}: {done.stderr}")
    return {p.stem: np.load(p) for p in (bundle / "out").glob("*.npy")} if not status else {}


class Indexed:
    """Models of indices from data, in a folder."""

    def __init__(self, ingot, work):
        self.ingot, self.work, self.count = ingot, work, 0
        self.rng = np.random.default_rng(3)
        self.table = self.rng.standard_normal((50, 16)).astype(np.float32)
        self.bundle = work / "bundle"
        self.bundle.mkdir()

    def case(self, nodes, index, bad, says, weights=(), shape=None, x=(4, 6), flags=()):
        """A model of ids and x, good for index and refused for each of bad with `says`; the same
        bytes with and without checks."""
        index = np.asarray(index)
        path = model(
            self.work,
            nodes,
            [("ids", TensorProto.INT64, shape or list(index.shape)), ("x", TensorProto.FLOAT, x)],
            [("y", TensorProto.FLOAT, None)],
            {"table": self.table, **dict(weights)},
        )
        data = save(self.work, "input_1", self.rng.standard_normal(x).astype(np.float32))
        save(self.work, "input_0", index)
        for target in ("c", "c:c99") if not self.count else ("c",):
            self.built(path, ["--target", target, *flags], data, index, bad, says)
        self.count += 1
        return path, data

    def built(self, path, flags, data, index, bad, says):
        told(self.ingot, self.work, "compile", path, "-o", self.bundle, *flags)
        results = []
        for check, cflags in enumerate((STRICT, f"{SANITIZE} -Wall -Wextra -Werror")):
            program(self.bundle, compilers()[0], f"{cflags} -DMODEL_CHECK={check}")
            save(self.work, "input_0", index)
            results.append(driver(self.bundle, data, 0))
            for value in bad:
                wrong = index.copy()
                wrong.flat[-1] = value
                save(self.work, "input_0", wrong)
                driver(self.bundle, data, 4 * check, [*says, f" is {value};"] * check)
        if any(results[0][k].tobytes() != results[1][k].tobytes() for k in results[0]):
            raise Wrong(f"{says}: other results with checks")


def two_picks():
    """The body of a loop that picks by a picked index."""
    node, info = helper.make_node, helper.make_tensor_value_info
    return helper.make_graph(
        [
            node("Gather", ["ids", "k"], ["t"], "outer"),
            node("Gather", ["table", "t"], ["row"], "inner"),
            node("Identity", ["c"], ["c2"]),
        ],
        "body",
        [info("k", TensorProto.INT64, []), info("c", TensorProto.BOOL, [])],
        [info("c2", TensorProto.BOOL, []), info("row", TensorProto.FLOAT, [16])],
    )


def indices(ingot, work):
    made = Indexed(ingot, work)
    case, rng, node = made.case, made.rng, helper.make_node
    far = (999999, -999999, 50, -51)
    path, data = case(
        [node("Gather", ["table", "ids"], ["e"], "emb"), node("Mul", ["e", "e"], ["y"], "square")],
        [[1, -50, 49], [7, 8, 9]],
        far,
        ["(status 13)", "node 'emb' (Gather): an index into axis 0", "-50..49"],
    )
    told(
        ingot,
        work,
        "run",
        path,
        "--data",
        data,
        status=TOOL,
        says=["node 'emb' (Gather)", "is -51", "-50..49"],
    )
    told(ingot, work, "verify", path, "--data", data, status=TOOL, says=["node 'emb' (Gather)"])
    case(
        [node("Gather", ["table", "ids"], ["y"], "emb")],
        [1, 2, 3, 4],
        far,
        ["'emb'", "-50..49"],
        shape=["n"],
        flags=["--dim", "n=0..9"],
    )
    case(
        [node("GatherElements", ["x", "ids"], ["y"], "pick", axis=1)],
        [[0, 5, -6]] * 4,
        (6, -7),
        ["'pick' (GatherElements)", "axis 1", "-6..5"],
    )
    case(
        [node("GatherND", ["x", "ids"], ["y"], "tuple")],
        [[0, 5], [3, -6]],
        (6, -7),
        ["'tuple' (GatherND)", "axis 1", "-6..5"],
    )
    case(
        [node("ScatterElements", ["x", "ids", "v"], ["y"], "put", axis=0, reduction="add")],
        [[0, 3, -4]],
        (4, -5),
        ["'put' (ScatterElements)", "axis 0", "-4..3"],
        {"v": np.ones((1, 3), np.float32)},
    )
    case(
        [node("ScatterND", ["x", "ids", "v"], ["y"], "set")],
        [[0], [3]],
        (4, -5),
        ["'set' (ScatterND)", "-4..3"],
        {"v": np.ones((2, 6), np.float32)},
    )
    # read by a sum and by a product of matrices, computed from data, and only where a pad does not
    # fill
    case(
        [
            node("Gather", ["table", "ids"], ["e"], "emb"),
            node("ReduceSum", ["e", "zero"], ["y"], "sum", keepdims=0),
        ],
        [3, 4, 5],
        far,
        ["'emb'"],
        {"zero": np.array([0])},
    )
    case(
        [
            node("Gather", ["table", "ids"], ["e"], "emb"),
            node("MatMul", ["e", "w"], ["y"], "product"),
        ],
        list(range(24)),
        far,
        ["'emb'"],
        {"w": rng.standard_normal((16, 32)).astype(np.float32)},
    )
    case(
        [
            node("ArgMax", ["x"], ["best"], "best", axis=1, keepdims=0),
            node("Add", ["best", "ids"], ["at"], "move"),
            node("Gather", ["table", "at"], ["y"], "emb"),
        ],
        [0, 1, 2, 3],
        (),
        ["'emb'"],
    )
    case(
        [node("Gather", ["table", "ids"], ["e"], "emb"), node("Pad", ["e", "pads"], ["y"], "pad")],
        [3, 4],
        far,
        ["'emb'"],
        {"pads": np.array([1, 0, 1, 0])},
    )
    case(
        [node("Loop", ["three", ""], ["y"], "loop", body=two_picks())],
        [1, 2, 3],
        (50,),
        ["'inner' (Gather)"],
        {"three": np.array(3)},
    )
    # indices that are known now
    path = model(
        work,
        [node("Gather", ["table", "at"], ["y"], "emb")],
        [("x", TensorProto.FLOAT, [1])],
        [("y", TensorProto.FLOAT, None)],
        {"table": made.table, "at": np.array([1, 50])},
    )
    told(
        ingot,
        work,
        "compile",
        path,
        "-o",
        work / "bad",
        status=INVALID,
        says=["'emb'", "50", "axis 0"],
    )
    print(f"{made.count} bundles")


def rows_of_a_loop():
    """A body that picks an element by the number of the iteration."""
    info = helper.make_tensor_value_info
    return helper.make_graph(
        [
            helper.make_node("Gather", ["x", "k"], ["row"], "rows", axis=2),
            helper.make_node("Identity", ["c"], ["c2"]),
        ],
        "body",
        [info("k", TensorProto.INT64, []), info("c", TensorProto.BOOL, [])],
        [info("c2", TensorProto.BOOL, []), info("row", TensorProto.FLOAT, [1, 1, 3])],
    )


def empties(ingot, work):
    f, node, bundle = TensorProto.FLOAT, helper.make_node, work / "bundle"
    bundle.mkdir()
    for nodes, weights, least in (
        (
            [node("Gather", ["x", "at"], ["g"], "last", axis=2), node("Relu", ["g"], ["y"])],
            {"at": np.array([-1])},
            1,
        ),
        (
            [node("Pad", ["x", "pads"], ["y"], "edge", mode="edge")],
            {"pads": np.array([0, 0, 1, 1, 0, 0, 0, 1])},
            1,
        ),
        (
            [node("GridSample", ["x", "grid"], ["y"], "grid", padding_mode="border")],
            {"grid": np.zeros((1, 2, 2, 2), np.float32)},
            0,
        ),
        ([node("Gather", ["x", "at"], ["y"], "third", axis=2)], {"at": np.array([-3])}, 3),
        (
            [node("Loop", ["two", ""], ["y"], "rows", body=rows_of_a_loop())],
            {"two": np.array(2)},
            1,
        ),
    ):
        path = model(work, nodes, [("x", f, [1, 1, "n", 3])], [("y", f, None)], weights)
        told(ingot, work, "compile", path, "-o", bundle, "--dim", "n=0..8")
        program(bundle, compilers()[0], f"{SANITIZE} -Wall -Wextra -Werror")
        for n in (0, 1, 2, 8):
            data = save(work, "input_0", np.ones((1, 1, n, 3), np.float32))
            wrong = [f"node '{nodes[0].name}'", f"is {n}; it has to be in {least}..8"]
            says = wrong if n < least else []
            driver(bundle, data, 4 if n < least else 0, says)


def branch(nodes, weights=()):
    """Of a branch: row [1, 3]."""
    return helper.make_graph(
        nodes,
        nodes[0].name,
        [],
        [helper.make_tensor_value_info("row", TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(v, k) for k, v in dict(weights).items()],
    )


def branches(ingot, work):
    f, node, bundle = TensorProto.FLOAT, helper.make_node, work / "bundle"
    bundle.mkdir()
    zeros = np.zeros((1, 3), np.float32)
    other = branch([node("Constant", [], ["row"], "other", value=numpy_helper.from_array(zeros))])
    for rows, nodes, at in (
        (0, [node("Gather", ["x", "at"], ["row"], "none")], [0]),
        (2, [node("Gather", ["x", "at"], ["row"], "past")], [2]),
        (2, [node("Gather", ["x", "at"], ["row"], "before")], [-3]),
        (2, [node("GatherND", ["x", "at"], ["row"], "place")], [[2]]),
        (2, [node("GatherElements", ["x", "at"], ["row"], "element", axis=0)], [[0, 1, 2]]),
        (2, [node("ScatterElements", ["x", "at", "o"], ["y"], "put", axis=0),
             node("ReduceSum", ["y", "axis"], ["row"], "sum")], [[0, 1, 2]]),
        (0, [node("ArgMax", ["x"], ["i"], "greatest", axis=0),
             node("Cast", ["i"], ["row"], "cast", to=1)], [0]),
    ):  # fmt: skip
        weights = {"at": np.array(at), "o": zeros, "axis": np.array([0])}
        then = branch(nodes, weights)
        path = model(
            work,
            [node("If", ["c"], ["y"], "if", then_branch=then, else_branch=other)],
            [("c", TensorProto.BOOL, []), ("x", f, [rows, 3])],
            [("y", f, [1, 3])],
        )
        told(ingot, work, "compile", path, "-o", bundle)
        program(bundle, compilers()[0], f"{SANITIZE} -Wall -Wextra -Werror")
        save(work, "input_1", np.ones((rows, 3), np.float32))
        for taken in (False, True):
            data = save(work, "input_0", np.array(taken))
            says = [f"node '{nodes[0].name}'", "it has to be"] if taken else []
            driver(bundle, data, 4 if taken else 0, says)


if __name__ == "__main__":
    sys.exit(
        main(
            __doc__,
            {
                f.__name__: f
                for f in (
                    beside,
                    half,
                    rounded,
                    sums,
                    selftest,
                    folded,
                    extremes,
                    indices,
                    empties,
                    branches,
                )
            },
        )
    )
