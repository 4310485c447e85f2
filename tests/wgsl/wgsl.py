#!/usr/bin/env python3
"""Kernels in WGSL, compiled and run: `ingot verify --target wgsl` judges each of them, by
wgpu-native on whatever adapter there is.

    wgsl.py --ingot build/ingot [--keep DIR]

wgpu-native comes with wgpu (PyPI), and Mesa's llvmpipe will do as adapter. Where either is missing
the test is skipped.
"""

import argparse
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import wgpu
    from onnx import TensorProto as T
    from onnx import helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)


def model(path, nodes, inputs, outputs, weights=()):
    """A graph of (op, inputs, outputs, attributes)."""
    graph = helper.make_graph(
        [helper.make_node(op, i, o, **a) for op, i, o, a in nodes],
        "wgsl",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
        [helper.make_tensor_value_info(n, t, s) for n, t, s in outputs],
        [onnx.numpy_helper.from_array(w, n) for n, w in weights],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )


def floats(path):
    """A product by blocks that a group shares, rows whose items share sums, functions, what lies
    in the arena in place, a window."""
    random = np.random.default_rng(1)
    w = random.standard_normal((48, 192), dtype="f4")
    c = random.standard_normal((8, 4, 3, 3), dtype="f4")
    nodes = [
        ("MatMul", ["x", "w"], ["p"], {}),
        ("Softmax", ["p"], ["s"], {"axis": 1}),
        ("Tanh", ["p"], ["t"], {}),
        ("Erf", ["t"], ["e"], {}),
        ("Mod", ["e", "t"], ["m"], {"fmod": 1}),
        ("Where", ["b", "m", "t"], ["y"], {}),
        ("Conv", ["i", "c"], ["v"], {"pads": [1, 1, 1, 1]}),
        ("MaxPool", ["v"], ["o"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ]
    model(
        path,
        nodes,
        [("x", T.FLOAT, (256, 48)), ("b", T.BOOL, (256, 192)), ("i", T.FLOAT, (1, 4, 9, 9))],
        [(n, T.FLOAT, s) for n, s in (("s", (256, 192)), ("y", (256, 192)), ("o", (1, 8, 9, 9)))],
        [("w", w), ("c", c)],
    )


def integers(path):
    """Elements of less than 32 bits, and of 64."""
    nodes = [
        ("Cast", ["x"], ["bytes"], {"to": T.INT8}),
        ("Cast", ["x"], ["half"], {"to": T.FLOAT16}),
        ("Greater", ["x", "zero"], ["is"], {}),
        ("ArgMax", ["x"], ["at"], {"axis": 1}),
        ("Add", ["at", "k"], ["sum"], {}),
        ("Mul", ["sum", "k"], ["product"], {}),
        ("Div", ["product", "d"], ["quotient"], {}),
        ("Gather", ["x", "g"], ["picked"], {"axis": 0}),
    ]
    outputs = [("bytes", T.INT8), ("half", T.FLOAT16), ("is", T.BOOL)]
    model(
        path,
        nodes,
        [
            ("x", T.FLOAT, (5, 7)),
            ("k", T.INT64, (5, 1)),
            ("d", T.INT64, (5, 1)),
            ("g", T.INT64, (3,)),
        ],
        [(n, t, (5, 7)) for n, t in outputs]
        + [("quotient", T.INT64, (5, 1)), ("picked", T.FLOAT, (3, 7))],
        [("zero", np.zeros((), "f4"))],
    )


def many(path):
    """A kernel of more arguments than a device has bindings."""
    random = np.random.default_rng(1)
    weights = [(f"w{i}", random.standard_normal((300, 40), dtype="f4")) for i in range(9)]
    nodes = [("Mul", ["x", "w0"], ["y0"], {})]
    nodes += [("Add", [f"y{i - 1}", f"w{i}"], [f"y{i}"], {}) for i in range(1, 9)]
    model(path, nodes, [("x", T.FLOAT, (300, 40))], [("y8", T.FLOAT, (300, 40))], weights)


def sizes(path):
    """Sizes of run time, results that are read together."""
    random = np.random.default_rng(1)
    nodes = [
        ("MatMul", ["x", "w"], ["p"], {}),
        ("Softmax", ["p"], ["z"], {"axis": 1}),
        ("Concat", ["z", "p"], ["c"], {"axis": 0}),
        ("Tanh", ["c"], ["y"], {}),
    ]
    outputs = [("y", T.FLOAT, ("m", 4)), ("z", T.FLOAT, ("n", 4))]
    w = random.standard_normal((4, 4), dtype="f4")
    model(path, nodes, [("x", T.FLOAT, ("n", 4))], outputs, [("w", w)])


def fours(path):
    """Products of bytes of all signs, some of whose rows begin in the middle of a word."""
    random = np.random.default_rng(1)
    numbers = {"i": (T.INT8, "i1"), "u": (T.UINT8, "u1")}
    weights, nodes, outputs = [("one", np.array([1])), ("end", np.array([97]))], [], []
    weights.append(("axis", np.array([1])))
    for x in "iu":
        nodes.append(("Slice", [x, "one", "end", "axis"], [f"{x}s"], {}))
        for w in "iu":
            weights.append((f"w{x}{w}", random.integers(-9, 9, (96, 40)).astype(numbers[w][1])))
            nodes.append(("MatMulInteger", [f"{x}s", f"w{x}{w}"], [f"{x}{w}"], {}))
            outputs.append((f"{x}{w}", T.INT32, (64, 40)))
    nodes.append(("MatMulInteger", ["a", "b"], ["ab"], {}))
    outputs.append(("ab", T.INT32, (8, 3)))
    inputs = [(x, numbers[x][0], (64, 99)) for x in "iu"]
    inputs += [("a", T.UINT8, (8, 256)), ("b", T.INT8, (256, 3))]
    model(path, nodes, inputs, outputs, weights)


def blocks(path):
    """A product of enough results for groups of more than 256 items."""
    random = np.random.default_rng(1)
    w = random.standard_normal((512, 512), dtype="f4")
    node = ("MatMul", ["x", "w"], ["y"], {})
    model(path, [node], [("x", T.FLOAT, (49, 512))], [("y", T.FLOAT, (49, 512))], [("w", w)])


FUNCTIONS = {
    "Exp": np.exp, "Log": np.log, "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin,
    "Acos": np.arccos, "Atan": np.arctan, "Sinh": np.sinh, "Cosh": np.cosh, "Tanh": np.tanh,
    "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh, "Sqrt": np.sqrt, "Abs": np.abs,
    "Erf": np.vectorize(math.erf), "Floor": np.floor, "Ceil": np.ceil, "Round": np.rint,
    "Sign": np.sign, "Neg": np.negative,
}  # fmt: skip
TWO = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power,
    "Max": np.maximum, "Min": np.minimum, "Mod": np.fmod, "Less": np.less, "Equal": np.equal,
    "LessOrEqual": np.less_equal,
}  # fmt: skip
EXACT = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Sqrt", "Abs", "Floor", "Ceil", "Round")


def doubles(ingot, work):
    """f64 by integers: sums, products, quotients and roots are rounded like the processor's, and
    functions are off by a few units in the last place."""
    random = np.random.default_rng(1)
    n = 1500
    x = random.standard_normal(n) * 10.0 ** random.integers(-12, 13, n)
    x[: n // 2] = random.uniform(-1.5, 1.5, n // 2)
    y = np.where(random.random(n) < 0.5, x[::-1], x * random.uniform(0.9, 1.1, n))
    y[::7] = random.integers(-30, 30, len(y[::7]))
    x[-8:] = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e300]
    nodes = [(op, ["x"], [op], {}) for op in FUNCTIONS]
    nodes += [(op, ["x", "y"], [op], {"fmod": 1} if op == "Mod" else {}) for op in TWO]
    types = {"Less": T.BOOL, "Equal": T.BOOL, "LessOrEqual": T.BOOL}
    outputs = [(op, types.get(op, T.DOUBLE), (n,)) for op in [*FUNCTIONS, *TWO]]
    path = work / "doubles.onnx"
    model(path, nodes, [("x", T.DOUBLE, (n,)), ("y", T.DOUBLE, (n,))], outputs)
    np.save(work / "x.npy", x)
    np.save(work / "y.npy", y)
    inputs = ["--input", work / "x.npy", "--input", work / "y.npy"]
    call(ingot, "run", path, "--target", "wgsl", *inputs, "--output-dir", work / "doubles")
    with np.errstate(all="ignore"):
        for i, (op, f) in enumerate({**FUNCTIONS, **TWO}.items()):
            want = f(x) if op in FUNCTIONS else f(x, y)
            got = np.load(work / f"doubles/output_{i}.npy")
            # subnormal numbers are zeros; sines of large numbers lose what their quarters need
            sure = (np.abs(want) >= 2.0**-1022) | (want == 0)
            if op in ("Sin", "Cos", "Tan"):
                sure &= ~(np.abs(x) > 1e6)
            bad = ~(got == want) & ~(np.isnan(got) & np.isnan(want)) & sure
            units = np.abs(got * 1.0 - want) / np.spacing(np.abs(want * 1.0))
            most = {"Pow": 1100, "Tan": 24}.get(op, 8)
            limit = 0 if op in (*EXACT, *types) else most
            bad &= ~(units <= limit)
            at = np.flatnonzero(bad)[:3]
            assert not bad.any(), f"{op} of {x[at]}, {y[at]}: {got[at]}, and {want[at]} is right"
    print(f"doubles: {len(outputs)} functions")


def halves(ingot, work):
    """f16 with the device's own type: what is stored, read and rounded, also where it is no number."""
    random = np.random.default_rng(1)
    x = random.standard_normal(301).astype("f2")
    x[:8] = [0, -0.0, np.inf, -np.inf, np.nan, 65504, 6e-8, -7e-5]
    nodes = [
        ("Mul", ["x", "x"], ["y"], {}),
        ("Neg", ["x"], ["n"], {}),
        ("Cast", ["x"], ["wide"], {"to": T.FLOAT}),
        ("Sqrt", ["wide"], ["root"], {}),
        ("Cast", ["root"], ["z"], {"to": T.FLOAT16}),
    ]
    outputs = [("y", T.FLOAT16), ("n", T.FLOAT16), ("z", T.FLOAT16)]
    path = work / "halves.onnx"
    model(path, nodes, [("x", T.FLOAT16, x.shape)], [(n, t, x.shape) for n, t in outputs])
    np.save(work / "halves.npy", x)
    out = work / "halves"
    call(
        ingot,
        "run",
        path,
        "--target",
        "wgsl:f16",
        "--input",
        work / "halves.npy",
        "--output-dir",
        out,
    )
    with np.errstate(all="ignore"):
        wants = [x * x, -x, np.sqrt(x.astype("f4")).astype("f2")]
    for i, want in enumerate(wants):
        got = np.load(out / f"output_{i}.npy").view("f2")
        # a device may flush subnormal numbers, and round to either side
        with np.errstate(all="ignore"):
            near = np.abs(got.astype("f4") - want) <= np.maximum(np.spacing(np.abs(want)), 6.2e-5)
        bad = ~near & ~(got == want) & ~(np.isnan(got) & np.isnan(want))
        assert not bad.any(), (
            f"{outputs[i][0]} of {x[bad][:3]}: {got[bad][:3]}, not {want[bad][:3]}"
        )
    print("halves: wgsl:f16")


def call(*args, status=0):
    done = subprocess.run([str(a) for a in args], stdout=-1, stderr=-2, text=True)
    assert done.returncode == status, f"{args}: status {done.returncode}\n{done.stdout}"
    return done.stdout


def run_sizes(ingot, work):
    """Many runs of one context, of sizes.c."""
    sizes(work / "sizes.onnx")
    out = work / "sizes"
    call(ingot, "compile", work / "sizes.onnx", "-o", out, "--target", "wgsl", "--dim", "n=1..1200")
    call("make", "-C", out, "CFLAGS=-O1", "libmodel.a")
    source = pathlib.Path(__file__).parent / "sizes.c"
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", f"-I{out}", "-o", out / "sizes"]
    call("cc", *flags, source, out / "libmodel.a", "-lm", "-ldl", "-lpthread")
    call(out / "sizes")
    print("sizes: many runs of one context")


def adapter():
    """Whether there is one that bundles find."""
    os.environ["IGRT_WEBGPU"] = str(
        next((pathlib.Path(wgpu.__file__).parent / "resources").glob("libwgpu_native*"), "")
    )
    try:
        found = wgpu.gpu.request_adapter_sync()
        if found.info["backend_type"] != "OpenGL":
            return found
        print("skipped: bundles do not ask for adapters of OpenGL, and there is no other")
        return None
    except Exception as e:  # whatever a driver says
        print(f"skipped: no adapter for wgpu: {e}")
        return None


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--keep", type=pathlib.Path, help="write what is made here")
    opt = p.parse_args()
    there = adapter()
    if not there:
        return 77
    work = opt.keep or pathlib.Path(tempfile.mkdtemp())
    work.mkdir(exist_ok=True)
    f16 = "+f16" if "shader-f16" in there.features else ""
    cases = [(floats, "wgsl"), (integers, "wgsl"), (many, "wgsl")]
    cases.append((fours, "wgsl:dot4"))
    many_items = there.limits["max-compute-invocations-per-workgroup"] >= 1024
    cases.append((blocks, "wgsl:items1024" if many_items else "wgsl"))
    cases.append((integers, "wgsl:f16") if f16 else (floats, "wgsl"))
    for make, target in cases:
        path = work / f"{make.__name__}.onnx"
        make(path)
        call(opt.ingot, "verify", path, "--target", target)
        print(f"{make.__name__}: {target}")
    if f16:
        halves(opt.ingot, work)
    run_sizes(opt.ingot, work)
    call(opt.ingot, "compile", work / "fours.onnx", "-o", work / "dots", "--target", "wgsl:dot4")
    text = (work / "dots/model_kernels.wgsl").read_text()
    for name in ("i8_i8", "u8_i8", "u8_u8", "i8_u8"):
        assert len(re.findall(rf"igrt_dot_{name}\(", text)) > 1, f"no dot of {name}"
    assert "igrt_word_at(" in text, text
    # what a group shares is shared, a module has no function that nothing calls
    call(opt.ingot, "compile", work / "floats.onnx", "-o", work / "out", "--target", "wgsl")
    text = (work / "out/model_kernels.wgsl").read_text()
    assert text.count("var<workgroup>") > 2 and "workgroupBarrier" in text, text
    for name in re.findall(r"^fn (igrt_\w+)\(", text, re.M):
        assert len(re.findall(rf"\b{name}\b", text)) > 1, f"nothing calls {name}"
    doubles(opt.ingot, work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
