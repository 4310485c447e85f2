#!/usr/bin/env python3
"""Products of f8 on GPUs, run without one: what a whole bundle computes beside the same model in C.

    f8.py --ingot build/ingot [CHECK...]

The emulator's units add up f8 as gpu::f8_sum() says (tests/emulator/ptx.h): products are aligned to
the greatest one, and 13 bits behind its first are kept. So sums that a unit alone makes are seen to
differ from those that items add up.

    files      models with weights and activations of e4m3 and e5m2, in any combination: by
               warpgroups and by warps, with ends that fill no block, windows, few rows; of f16;
               weights alone
    precision  --precision fp8: models of f32, whose rows get scales; a gate and what it opens
    sums       f32 sums of 128 terms by default; the unit's own by --precision fp8-fast
    refused    a target without a unit for it

Exit status 77, skipped: there is no Python with onnx, or no C++ compiler.
"""

import re
import sys

try:
    import ml_dtypes
    import numpy as np
    from emulated import F, H, beside, emulate, errors, model
    from run import Wrong, attempt, main
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

E4, E5 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


def drawn(*shape, dtype=np.float32, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32).astype(dtype)


def rounded(x, dtypes, shape, weight, op="MatMul", **attributes):
    """Both operands in f8, with a scale: of the weight for each column (or channel)."""
    columns = weight[0] if op == "Conv" else weight[1]
    axis = {"axis": 0 if op == "Conv" else 1}
    scales = np.random.default_rng(3).random(columns).astype(np.float32) / 100 + 0.01
    nodes = [
        ("QuantizeLinear", [x, "sx", "zx"], "q"),
        ("DequantizeLinear", ["q", "sx", "zx"], "d"),
        ("DequantizeLinear", ["w", "sw", "zw"], "v", axis),
        (op, ["d", "v"], "p", attributes),
        ("Relu", ["p"], "y"),
    ]
    weights = [
        ("w", drawn(*weight, dtype=dtypes[1])),
        ("sx", np.float32(0.05)),
        ("zx", np.zeros((), dtypes[0])),
        ("sw", scales),
        ("zw", np.zeros(columns, dtypes[1])),
    ]
    return nodes, weights


def product(name, dtypes, sizes):
    rows, terms, columns = sizes
    nodes, weights = rounded("x", dtypes, [rows, terms], (terms, columns))
    return name, ([("x", F, [rows, terms])], nodes, ("y", F, [rows, columns]), weights)


def halves(name, sizes):
    """A model of f16, as exporters write it: what is dequantised is rounded to f16."""
    rows, terms, columns = sizes
    nodes = [
        ("QuantizeLinear", ["x", "s", "z"], "q"),
        ("DequantizeLinear", ["q", "s", "z"], "d"),
        ("DequantizeLinear", ["w", "s", "z"], "v"),
        ("MatMul", ["d", "v"], "p"),
        ("Relu", ["p"], "y"),
    ]
    weights = [
        ("w", drawn(terms, columns, dtype=E4)),
        ("s", np.float16(0.0371)),
        ("z", np.zeros((), E4)),
    ]
    return name, ([("x", H, [rows, terms])], nodes, ("y", H, [rows, columns]), weights)


def weights_alone(name, sizes):
    """Nothing but the weights is f8: no unit multiplies that, and they are converted."""
    rows, terms, columns = sizes
    nodes = [
        ("DequantizeLinear", ["w", "sw", "zw"], "v", {"axis": 1}),
        ("MatMul", ["x", "v"], "p"),
        ("Relu", ["p"], "y"),
    ]
    scales = np.random.default_rng(3).random(columns).astype(np.float32) / 100 + 0.01
    weights = [
        ("w", drawn(terms, columns, dtype=E4)),
        ("sw", scales),
        ("zw", np.zeros(columns, E4)),
    ]
    return name, ([("x", F, [rows, terms])], nodes, ("y", F, [rows, columns]), weights)


def windows(name, dtypes, channels, taps):
    maps, size, pad = 64, 12, taps // 2
    shape = [2, channels, size, size]
    weight = (maps, channels, taps, taps)
    nodes, weights = rounded("x", dtypes, shape, weight, "Conv", pads=[pad] * 4)
    return name, ([("x", F, shape)], nodes, ("y", F, [2, maps, size, size]), weights)


def files(ingot, work):
    cases = [
        (product("both_e4", (E4, E4), (192, 640, 256)), "few_groups", "x2_dot_f8e4m3fn_f8e4m3fn("),
        (product("both_e5", (E5, E5), (200, 272, 136)), "few_groups", "x2_dot_f8e5m2_f8e5m2("),
        (product("mixed", (E5, E4), (130, 528, 200)), "few_groups", "x2_dot_f8e5m2_f8e4m3fn("),
        (product("turned", (E4, E5), (6, 512, 1024)), "cuda:sm_90a", "igrt_wgmma8x2_dot_"),
        (product("warps", (E4, E5), (72, 288, 80)), "cuda:sm_89", "igrt_mma_dot_f8e4m3fn_f8e5m2("),
        (product("vector", (E4, E4), (1, 512, 192)), "cuda:sm_90a", "igrt_f8e4m3fn"),
        (halves("halves", (192, 384, 256)), "few_groups", "x2_dot_f8e4m3fn_f8e4m3fn("),
        (weights_alone("weights", (40, 384, 256)), "cuda:sm_90a", "igrt_f8e4m3fn"),
        (weights_alone("of_one", (1, 384, 256)), "cuda:sm_90a", "igrt_f8e4m3fn"),
        (windows("taps", (E4, E4), 128, 3), "few_groups", "igrt_window_4("),
        (windows("channels", (E4, E4), 144, 1), "few_groups", "_dot_f8e4m3fn_f8e4m3fn("),
    ]
    told = [
        beside(ingot, work, name, target, made, 1e-3, [text])
        for (name, made), target, text in cases
    ]
    print(", ".join(errors(told)))


def plain(rows, terms, columns, lead=()):
    nodes = [("MatMul", ["x", "w"], "p"), ("Add", ["p", "b"], "q"), ("Relu", ["q"], "y")]
    weights = [("w", drawn(terms, columns)), ("b", drawn(columns, seed=2))]
    return [("x", F, [*lead, rows, terms])], nodes, ("y", F, [*lead, rows, columns]), weights


def gated(rows, terms, columns):
    nodes = [
        ("MatMul", ["x", "w"], "p"),
        ("MatMul", ["x", "v"], "q"),
        ("Sigmoid", ["p"], "s"),
        ("Mul", ["p", "s"], "t"),
        ("Mul", ["t", "q"], "y"),
    ]
    weights = [(name, drawn(terms, columns, seed=i) / 16) for i, name in enumerate("wv")]
    return [("x", F, [rows, terms])], nodes, ("y", F, [rows, columns]), weights


# of one kernel
TWO_SUMS = re.compile(r"igrt_wgmma\w+x2_c s\d+ = .*\n *igrt_wgmma\w+x2_c s\d+ = ")


def precision(ingot, work):
    fp8 = ["--precision", "fp8"]
    cases = [
        ("rows", plain(160, 384, 256), "few_groups", ["x2_dot_f8e4m3fn_f8e4m3fn("]),
        ("batch", plain(80, 256, 128, [2]), "cuda:sm_89", ["igrt_mma_dot_f8e4m3fn_f8e4m3fn("]),
        ("one", plain(1, 512, 192), "cuda:sm_90a", ["const uint8_t"]),
        ("gated", gated(256, 256, 256), "few_groups", ["x2_dot_f8e4m3fn_f8e4m3fn("]),
    ]
    told = [
        beside(ingot, work, name, target, made, 8e-2 if name == "gated" else 5e-2, wanted, fp8)
        for name, made, target, wanted in cases
    ]
    (text,) = (work / "gated_gpu").glob("*_kernels.cu")
    if not TWO_SUMS.search(text.read_text()):
        raise Wrong("a gate and what it opens are two kernels")
    print(", ".join(errors(told)))


def sums(ingot, work):
    """The unit's own sums are farther away, and not too far."""
    name, made = product("own", (E4, E4), (192, 2048, 256))
    own = beside(
        ingot, work, name, "few_groups", made, 5e-3, ["_dot_f8e4m3fn"], ["--precision", "fp8-fast"]
    )
    name, made = product("added", (E4, E4), (192, 2048, 256))
    told = errors([own, beside(ingot, work, name, "few_groups", made, 3e-4, ["x2_dot_f8"])])
    fast, usual = (float(t.split()[1]) for t in told)
    if not fast > 2 * usual:
        raise Wrong(f"the unit's own sums are no farther away: {told}")
    text = "\n".join(f.read_text() for f in (work / "own_gpu").glob("*_kernels.cu"))
    if re.search(r"x2_dot_f8\w+\(&s", text):
        raise Wrong("--precision fp8-fast: sums are added by items")
    print(", ".join(told))


def refused(ingot, work):
    path = model(work / "plain.onnx", *plain(64, 64, 64))
    for target in ("c", "cuda:sm_80", "opencl"):
        words = ("compile", path, "-o", work / "out", "--target", target, "--precision", "fp8")
        done = attempt([ingot, *words])
        if done.returncode == 0 or "no unit that multiplies" not in done.stderr:
            raise Wrong(f"{target}: {done.stderr}")
    words = ("compile", path, "-o", work / "out", "--target", "cuda:sm_90a")
    done = attempt([ingot, *words, "--precision", "fp8-fast:p"])
    if done.returncode == 0 or "use fp8" not in done.stderr:
        raise Wrong(done.stderr)
    print("3 targets, and a name")


if __name__ == "__main__":
    if not emulate.CXX:
        print("skipped: no C++ compiler")
        sys.exit(77)
    checks = {"files": files, "precision": precision, "sums": sums, "refused": refused}
    sys.exit(main(__doc__, checks))
