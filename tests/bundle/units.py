#!/usr/bin/env python3
"""Matrix units (TC): what is emitted for a machine with AMX, on one that need not have it.

units.py --ingot build/ingot [CHECK...]

mma    products and convolutions of f16, of bytes, and of f32 by --precision tf32 and f16, for GPUs
       with tensor cores: the heuristic takes the unit, with copies ahead; its opts are saved and
       replayed with the same bytes, NVRTC compiles them, and the interpreter of statements agrees
batch  the same with a batch that only the run knows: as many kernels, by the same units, as for one
image or text vector a matrix times a vector: 16 bytes of a row at once signs  products of bytes
that both have a sign, where a unit wants one without: what is stored has none; where pairs of i16
       are multiplied it is stored as these
arm    products of bytes for aarch64 with DOTPROD, with I8MM and with SVE of two sizes: its compiler
       makes the instruction, and under QEMU the bundles compute the same; with vectors of another
       size than they are compiled for they do not begin
riscv  vectors of RISC-V under QEMU: each function of them, and bundles; on processors without them,
       or with shorter ones than they are compiled for, they do not begin
precision  --precision: errors of products of f32 by one, three and six products of bf16, beside
those of f32
amx    products and convolutions of bytes and of bf16: the heuristic takes the unit, its opts are
       saved and replayed with the same bytes, the interpreter of statements agrees, and the bundles
       compute the same with tiles in plain C
"""

import os
import pathlib
import platform
import re
import subprocess
import sys

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
    import units_arm
    import units_riscv
    from run import STRICT, Wrong, call, compilers, main, make, without_fault
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

TARGET = "c:sapphirerapids"


def bf16(rng, *shape):
    """Small integers, whose upper halves are bf16."""
    bits = rng.integers(-3, 4, shape).astype(np.float32).view(np.uint32) >> 16
    return helper.make_tensor(
        "w", TensorProto.BFLOAT16, shape, bits.astype(np.uint16).tobytes(), raw=True
    )


def model(path, dtype, a, b, nodes, y, weights, more=()):
    values = [helper.make_tensor_value_info(*v) for v in (("y", b, y), ("x", dtype, a), *more)]
    graph = helper.make_graph(nodes, "g", values[1:], values[:1], weights)
    path.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10
        ).SerializeToString()
    )
    return path


def warpgroups(work):
    """A file for cuda:sm_90a where small products are warpgroups', too: a warp's take long."""
    file = work / "warpgroups.target"
    file.write_text("target = cuda:sm_90a\nwarp_products.product = 70000\n")
    return file


def quantized(rng, kind, shape, zero, **attributes):
    """A quantised operator and its weights: zero points of weights are zero, of results not."""
    columns = shape[0] if kind == "QLinearConv" else shape[1]
    weights = {
        "w": rng.integers(-9, 10, shape).astype(np.int8),
        "xs": np.float32(0.02),
        "xz": type(zero)(0),
        "ws": np.full(columns, 0.01, np.float32),
        "wz": np.zeros(columns, np.int8),
        "ys": np.float32(0.03),
        "yz": zero,
    }
    x = "xt" if kind == "QLinearConv" else "x"
    node = helper.make_node(
        kind,
        [x, "xs", "xz", "w", "ws", "wz", "ys", "yz"],
        ["yt" if x == "xt" else "y"],
        **attributes,
    )
    return node, [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()]


def made(work):
    """Models by name, and how many products their text has."""
    rng = np.random.default_rng(1)
    U8, I8, B = TensorProto.UINT8, TensorProto.INT8, TensorProto.BFLOAT16
    turned = [helper.make_node("Transpose", ["x"], ["xt"], perm=[0, 3, 1, 2])]
    back = [helper.make_node("Transpose", ["yt"], ["y"], perm=[0, 2, 3, 1])]
    node, weights = quantized(rng, "QLinearMatMul", (192, 96), np.uint8(7))
    yield model(work / "bytes.onnx", U8, [100, 192], U8, [node], [100, 96], weights), 6
    node, weights = quantized(rng, "QLinearConv", (32, 64, 3, 3), np.int8(3), pads=[1, 1, 1, 1])
    yield (
        model(
            work / "window.onnx",
            I8,
            [1, 14, 14, 64],
            I8,
            [*turned, node, *back],
            [1, 14, 14, 32],
            weights,
        ),
        4,
    )
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    nodes2 = [*turned, helper.make_node("Conv", ["xt", "w"], ["yt"], pads=[1, 1, 1, 1]), *back]
    yield (
        model(
            work / "halves_window.onnx",
            B,
            [1, 14, 14, 32],
            B,
            nodes2,
            [1, 14, 14, 32],
            [bf16(rng, 32, 32, 3, 3)],
        ),
        4,
    )
    nodes3 = [
        helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    ]  # its result is stored otherwise than the model has it
    yield (
        model(
            work / "planes.onnx",
            B,
            [1, 32, 14, 14],
            B,
            nodes3,
            [1, 32, 14, 14],
            [bf16(rng, 32, 32, 3, 3)],
        ),
        4,
    )
    chain = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("MatMul", ["q", "v"], ["y"]),
    ]
    yield (
        model(
            work / "rows.onnx",
            B,
            [32, 32],
            B,
            chain,
            [32, 32],
            [bf16(rng, 32, 512), named(bf16(rng, 512, 32), "v")],
        ),
        4,
    )
    # its caller reads pixels side by side, but windows of pixels cannot be columns
    scales = {"xs": np.float32(0.02), "xz": np.uint8(113), "ws": np.float32(0.01)}
    scales["wq"] = rng.integers(-127, 128, (32, 32, 3, 3)).astype(np.int8)
    nodes4 = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["wq", "ws"], ["w"]),
        helper.make_node("Conv", ["xd", "w"], ["y"], pads=[1, 1, 1, 1]),
    ]
    weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in scales.items()]
    F, shape = TensorProto.FLOAT, [1, 32, 20, 20]
    yield model(work / "pixels.onnx", F, shape, F, nodes4, shape, weights), 4
    # columns that are computed and do not fill blocks: their copy has a border
    yield model(work / "given.onnx", B, [32, 64], B, nodes, [32, 40], [], [("w", B, [64, 40])]), 2


def built(bundle, cc):
    # one of two optimises: gcc takes four times as long for vectors in plain C then, clang does not
    flags = STRICT if cc == "clang" else STRICT.replace("-O1", "-O0")
    make(bundle, cc, f"-march=native -DIGRT_EMULATE_AMX {flags}")


def emulated(bundle, cc):
    built(bundle, cc)
    if "selftest: ok" not in call(bundle / "model", "--selftest"):
        raise Wrong(f"{bundle}: no selftest")


def amx(ingot, work):
    if platform.machine() != "x86_64":
        print("skipped: no x86-64")
        return
    told = []
    for path, wanted in made(work):
        first, again, sched = work / path.stem, work / f"{path.stem}2", work / "opts.sched"
        call(ingot, "compile", path, "-o", first, "--target", TARGET, "--save-sched", sched)
        text = (first / "model_kernels_0.c").read_text()
        if text.count("igrt_amx_dot_") < wanted or "TC amx." not in sched.read_text():
            raise Wrong(f"{path.stem}: {text.count('igrt_amx_dot_')} products, wanted {wanted}")
        if ("layout pitch(2,544)  # bf16[32,1,512]" in sched.read_text()) != (path.stem == "rows"):
            raise Wrong(f"{path.stem}: how far apart rows of 1024 bytes begin: {sched.read_text()}")
        thrifty = work / "thrifty.sched"
        call(
            ingot,
            "compile",
            path,
            "-o",
            again,
            "--target",
            TARGET,
            "--prefer",
            "ram",
            "--save-sched",
            thrifty,
        )
        if "pitch" in thrifty.read_text():
            raise Wrong(f"{path.stem}: a pitch where memory is dear")
        call(ingot, "compile", path, "-o", again, "--target", TARGET, "--sched", sched)
        if (again / "model_kernels_0.c").read_text() != text:
            raise Wrong(f"{path.stem}: another text with the opts that were saved")
        said = without_fault(ingot, work, path, "--target", TARGET)
        if "compared with the interpreter's: equal" not in said:
            raise Wrong(said)
        for cc in (
            compilers()
            if os.environ.get("INGOT_ALL")
            else compilers()[len(told) % len(compilers()) :][:1]
        ):  # in turns
            if (
                subprocess.run(
                    [cc, "-march=sapphirerapids", "-E", "-"],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                ).returncode
                == 0
            ):
                emulated(first, cc)
                call(
                    cc,
                    "-fsyntax-only",
                    "-march=sapphirerapids",
                    *STRICT.split(),
                    first / "model_kernels_0.c",
                )
        told.append(path.stem)
    print(", ".join(told))


def halves(rng, *shape):
    return numpy_helper.from_array((rng.integers(-3, 4, shape) / 4).astype(np.float16), "w")


def named(tensor, name):
    tensor.name = name
    return tensor


def two_heads():
    """The nodes of attention over halves of x, and the shapes that they need."""
    part = [helper.make_node("Split", ["x"], list("qkv"), axis=1, num_outputs=3)]
    part += [
        helper.make_node("Transpose", [f"{t}h"], [f"{t}t"], perm=perm)
        for t, perm in (("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2]))
    ]
    part[1:1] = [helper.make_node("Reshape", [t, "heads"], [f"{t}h"]) for t in "qkv"]
    rest = [
        ("MatMul", ["qt", "kt"], "s"),
        ("Add", ["s", "z"], "a"),
        ("Softmax", ["a"], "p"),
        ("MatMul", ["p", "vt"], "o"),
    ]
    attention = part + [helper.make_node(op, of, [to]) for op, of, to in rest]
    attention += [
        helper.make_node("Transpose", ["o"], ["ot"], perm=[1, 0, 2]),
        helper.make_node("Reshape", ["ot", "flat"], ["y"]),
    ]
    shapes = [
        numpy_helper.from_array(np.array(s), t)
        for t, s in (("heads", [37, 2, 16]), ("flat", [37, 32]))
    ]
    return attention, shapes


def mma_models(work):
    """(model, precision, unit, how many products go by it)"""
    rng = np.random.default_rng(3)
    H, F = TensorProto.FLOAT16, TensorProto.FLOAT
    product = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Relu", ["p"], ["y"]),
    ]
    window = [
        helper.make_node("Conv", ["x", "w"], ["p"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("Conv", ["q", "w"], ["r"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Add", ["r", "z"], ["y"]),
    ]
    more = [("z", H, [1, 32, 5, 5])]
    rows = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("MatMul", ["q", "v"], ["y"]),
    ]
    single = numpy_helper.from_array((rng.integers(-3, 4, (72, 40)) / 4).astype(np.float32), "w")
    attention, shapes = two_heads()
    models = [
        (
            model(
                work / "attention.onnx",
                H,
                [37, 96],
                H,
                attention,
                [37, 32],
                shapes,
                [("z", H, [37, 37])],
            ),
            "f32",
            "mma.f16",
            2,
        ),
        (
            model(work / "halves.onnx", H, [72, 64], H, product, [72, 40], [halves(rng, 64, 40)]),
            "f32",
            "mma.f16",
            1,
        ),
        (
            model(
                work / "window.onnx",
                H,
                [1, 32, 9, 9],
                H,
                window,
                [1, 32, 5, 5],
                [halves(rng, 32, 32, 3, 3)],
                more,
            ),
            "f32",
            "mma.f16",
            1,
        ),
        (
            model(work / "single.onnx", F, [70, 72], F, product, [70, 40], [single]),
            "tf32",
            "mma.tf32",
            1,
        ),
        (
            model(work / "narrow.onnx", F, [70, 72], F, product, [70, 40], [single]),
            "f16",
            "mma.f16",
            0,
        ),
        *(
            (
                model(
                    work / name,
                    H,
                    [72, 64],
                    H,
                    rows,
                    [72, 40],
                    [halves(rng, 64, inner), named(halves(rng, inner, 40), "v")],
                ),
                "f32",
                "mma.f16",
                2,
            )
            for name, inner in (("rows.onnx", 53), ("blocks.onnx", 518))
        ),
    ]
    (work / "quantized").mkdir()
    return models + [
        (path, "f32", "mma.i8", 1)
        for path, _ in made(work / "quantized")
        if path.stem in ("bytes", "window")
    ]


def mma(ingot, work):
    """On machines without NVRTC the kernels stay source."""
    told, sched = [], work / "opts.sched"
    for path, how, unit, least in mma_models(work):
        first, again = path.with_suffix(""), path.with_suffix(".again")
        options = ["--target", "cuda:sm_80", "--precision", how]
        call(ingot, "compile", path, "-o", first, *options, "--save-sched", sched)
        text = (first / "model_kernels.cu").read_text()
        if sched.read_text().count(f"TC {unit}") < least or (
            least and path.stem != "attention" and "depth" not in sched.read_text()
        ):
            raise Wrong(f"{path.stem}: not by the unit: {sched.read_text()}")
        if path.stem == "attention" and (
            text.count('extern "C" __global__') != 1 or "= igrt_mma_quad_max(" not in text
        ):
            raise Wrong(
                f"attention is not one kernel whose rows are in registers: {sched.read_text()}"
            )
        if path.stem == "rows" and (
            "layout pitch(1,56)" not in sched.read_text()
            or sched.read_text().count("depth") != 4
            or "igrt_copy_part_async_16(" not in text.split("model_k0")[-1]
        ):
            raise Wrong(f"rows of 106 bytes are not copied by 16: {sched.read_text()}")
        as_text = {"INGOT_NVRTC": "none"}  # that of the first is compiled
        call(ingot, "compile", path, "-o", again, *options, "--sched", sched, env=as_text)
        if (again / "model_kernels.cu").read_text() != text:
            raise Wrong(f"{path.stem}: another text with the opts that were saved")
        without_fault(ingot, work, path, *options)
        call(ingot, "compile", path, "-o", again, "--target", "cuda:sm_90", "--precision", how)
        told.append(path.stem)
    print(", ".join(told))


def vector(ingot, work):
    """A matrix times a vector: items along the terms, which come by 16 bytes, of what the caller
    gives and of weights that are large, which are laid so. Where it is items that go along 16
    bytes, and no loop, each loads its own element."""
    rng = np.random.default_rng(6)
    H, F = TensorProto.FLOAT16, TensorProto.FLOAT
    product = [helper.make_node("MatMul", ["w", "x"], ["y"])]
    row = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    single = numpy_helper.from_array((rng.integers(-3, 4, (8192, 600)) / 4).astype(np.float32), "w")
    models = [
        (
            model(work / "given.onnx", H, [1024], H, product, [600], [], [("w", H, [600, 1024])]),
            "u16",
        ),
        (model(work / "weights.onnx", F, [1, 8192], F, row, [1, 600], [single]), "f32"),
    ]
    for path, kind in models:
        bundle = work / path.stem
        call(ingot, "compile", path, "-o", bundle, "--target", "cuda:sm_80")
        whole = (bundle / "model_kernels.cu").read_text()
        text = whole.split("model_k00")[-1]
        if text.count(f"igrt_run_{kind}(a1 + ") < 1 or text.count(f"igrt_run_{kind}(a2 + ") < 1:
            raise Wrong(f"{path.stem}: not by 16 bytes: {text}")
        if "__ldg(" in whole:
            raise Wrong(f"{path.stem}: a load that does not heed what the kernel before writes")
        without_fault(ingot, work, path, "--target", "cuda:sm_80")
    rows = [
        ("MatMul", ["x", "t"], "s"),
        ("Add", ["s", "z"], "a"),
        ("Softmax", ["a"], "p"),
        ("MatMul", ["p", "v"], "y"),
    ]
    turn = [helper.make_node("Transpose", ["k"], ["t"], perm=[0, 2, 1])]
    more = [("k", F, [4, 128, 64]), ("v", F, [4, 128, 64]), ("z", F, [128, 128])]
    path = model(
        work / "scores.onnx",
        F,
        [4, 128, 64],
        F,
        turn + [helper.make_node(op, of, [to]) for op, of, to in rows],
        [4, 128, 64],
        [],
        more,
    )
    call(ingot, "compile", path, "-o", work / "scores", "--target", "cuda:sm_80")
    text = (work / "scores/model_kernels.cu").read_text()
    if "igrt_mma_quad_max(" not in text or "igrt_run_" in text:
        raise Wrong(f"items whose rows of scores get a term each: {text}")
    print(", ".join(path.stem for path, _ in models))


def batch(ingot, work):
    """Groups of the grid count what the run has; the rest is as for one."""
    rng = np.random.default_rng(5)
    H = TensorProto.FLOAT16
    window = [
        helper.make_node("Conv", ["x", "w"], ["p"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("Conv", ["q", "w"], ["y"], pads=[1, 1, 1, 1], strides=[2, 2]),
    ]
    product = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Relu", ["p"], ["y"]),
    ]
    parts = [helper.make_node("Split", ["x"], list("qkv"), axis=2, num_outputs=3)]
    parts += [helper.make_node("Reshape", [t, "heads"], [f"{t}h"]) for t in "qkv"]
    parts += [
        helper.make_node("Transpose", [f"{t}h"], [f"{t}t"], perm=perm)
        for t, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3]))
    ]
    rest = [("MatMul", ["qt", "kt"], "s"), ("Softmax", ["s"], "p"), ("MatMul", ["p", "vt"], "o")]
    attention = parts + [helper.make_node(op, of, [to]) for op, of, to in rest]
    attention += [
        helper.make_node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["ot", "flat"], ["y"]),
    ]
    shapes = [
        numpy_helper.from_array(np.array(s), t)
        for t, s in (("heads", [0, 0, 2, 16]), ("flat", [0, 0, 32]))
    ]
    models = [
        (
            model(
                work / "window.onnx",
                H,
                ["n", 32, 9, 9],
                H,
                window,
                ["n", 32, 5, 5],
                [halves(rng, 32, 32, 3, 3)],
            ),
            "cuda:sm_80",
        ),
        (
            model(work / "attention.onnx", H, ["n", 37, 96], H, attention, ["n", 37, 32], shapes),
            "cuda:sm_80",
        ),
        (
            model(
                work / "product.onnx",
                H,
                ["n", 128, 256],
                H,
                product,
                ["n", 128, 128],
                [halves(rng, 256, 128)],
            ),
            warpgroups(work),
        ),
    ]
    told = []
    for path, target in models:
        units = []
        for sizes in ("n=1", "n=1..2"):
            sched, bundle = work / "opts.sched", work / path.stem
            call(
                ingot,
                "compile",
                path,
                "-o",
                bundle,
                "--target",
                target,
                "--dim",
                sizes,
                "--save-sched",
                sched,
            )
            text = sched.read_text()
            units.append(
                (
                    [line.split()[1] for line in text.splitlines() if line.startswith("  TC ")],
                    text.count("\nkernel "),
                    text.count("STAGE "),
                )
            )
        if units[0] != units[1] or not units[0][0]:
            raise Wrong(
                f"{path.stem}: units, kernels and copies of one {units[0]}, of a number that the run knows {units[1]}"
            )
        without_fault(ingot, work, path, "--target", target, "--dim", "n=1..2")
        told.append(f"{path.stem} by {units[0][0][0]}")
    print(", ".join(told))


def signs(ingot, work):
    """x + 128 lies in memory, of an input and of what only a product reads; where memory is dear an
    input is not stored again."""
    rng = np.random.default_rng(4)
    I = TensorProto.INT8
    first, weights = quantized(rng, "QLinearConv", (32, 32, 3, 3), np.int8(3), pads=[1, 1, 1, 1])
    second, _ = quantized(rng, "QLinearConv", (32, 32, 3, 3), np.int8(3), pads=[1, 1, 1, 1])
    first.input[0], first.output[0], second.input[0], second.output[0] = "x", "p", "p", "y"
    shape = [1, 32, 8, 8]
    product = [helper.make_node("MatMulInteger", ["x", "w"], ["y"])]
    models = [
        (model(work / "window.onnx", I, shape, I, [first, second], shape, weights), "c:alderlake"),
        (
            model(
                work / "product.onnx",
                I,
                [40, 64],
                TensorProto.INT32,
                product,
                [40, 48],
                [numpy_helper.from_array(rng.integers(-128, 128, (64, 48)).astype(np.int8), "w")],
            ),
            "c:alderlake",
        ),
        (work / "window.onnx", "c:native"),
        (work / "product.onnx", "c:native"),
    ]
    for path, target in models:
        bundle, flips, sched = work / "signs", [], work / "opts.sched"
        for rules in ((), ("--no-rewrite", "signs"), ("--prefer", "ram")):
            how = ["--target", target, *rules, "--save-sched", sched]
            call(ingot, "compile", path, "-o", bundle, *how)
            flips.append((bundle / "model_kernels_0.c").read_text().count("flipped"))
        if target != "c:native" and (flips[0] or not flips[1] or flips[1] != flips[2]):
            raise Wrong(f"{path.stem}: signs are changed {flips} times")
        call(
            ingot,
            "verify",
            path,
            *(["--interpret"] if target != "c:native" else []),
            "--target",
            target,
            env={"INGOT_CACHE": str(work / "cache")},
        )
    how = ["--target", "c:x86-64-v3"]
    for path in (work / "window.onnx", work / "product.onnx"):
        pairs = []
        for rules in ((), ("--no-rewrite", "wide-bytes")):
            call(ingot, "compile", path, "-o", work / "signs", *how, *rules)
            text = (work / "signs" / "model_kernels_0.c").read_text()
            pairs.append(("igrt_dot_i16_i16_i32x8(" in text, "igrt_dot_i8_i8_i32x8(" in text))
        if pairs != [(True, False), (False, True)]:
            raise Wrong(f"{path.stem}: products by pairs of i16, by fours of bytes: {pairs}")
        without_fault(ingot, work, path, *how)
        if "avx2" in pathlib.Path("/proc/cpuinfo").read_text():
            call(ingot, "verify", path, *how, env={"INGOT_CACHE": str(work / "cache")})
    print("products of i8")


def pairs(ingot, work, path, exact):
    """Products of bf16 two at once (AVX512-BF16), and the same in plain C."""
    bundle, outputs = work / "pairs", []
    how = ["--target", "c:x86-64-v4+vnni+bf16", "--precision", "bf16"]
    call(ingot, "compile", path, "-o", bundle, *how)
    if "igrt_dot_bf16_bf16_f32x16(" not in (bundle / "model_kernels_0.c").read_text():
        raise Wrong("bf16: no products by pairs")
    told = call(ingot, "verify", path, "--interpret", *how)
    if "y compared with that of products of f32 (--precision): " not in told:
        raise Wrong(f"verify --precision tells no error: {told}")
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    for i, march in enumerate(("-march=x86-64-v3 -mno-avx512f", "")):
        if i and not {"avx512_bf16", "avx512vl", "avx512bw", "avx512dq"} <= set(flags.split()):
            continue
        make(bundle, compilers()[0], f"{march} -Wno-psabi {STRICT}")
        (work / f"outpairs{i}").mkdir()
        call(bundle / "model", work / "in", work / f"outpairs{i}")
        outputs.append(np.load(work / f"outpairs{i}" / "output_0.npy"))
    if not np.array_equal(outputs[0], outputs[-1]):
        raise Wrong("bf16: the instruction gives other bits than plain C")
    if not 1e-4 < abs(outputs[0] - exact).max() / abs(exact).max() < 1e-2:
        raise Wrong("bf16: products by pairs are not as near as they may be")


def adds_most(ingot, work, rng):
    """verify --precision names the node whose products add most to the error."""
    F = TensorProto.FLOAT
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["p"], name="low"),
        helper.make_node("MatMul", ["x", "b"], ["q"], name="loud[1]"),
        helper.make_node("MatMul", ["x", "c"], ["r"], name="faint"),
        helper.make_node("Sum", ["p", "q", "r"], ["y"]),
    ]
    weights = [
        numpy_helper.from_array(rng.standard_normal((32, 16)).astype(np.float32) * scale, name)
        for name, scale in (("a", 0.01), ("b", 1), ("c", 0.001))
    ]
    path = model(work / "loud.onnx", F, [8, 32], F, nodes, [8, 16], weights)
    how = ["--target", "c:x86-64-v4+vnni+bf16", "--precision", "bf16"]
    told = call(ingot, "verify", path, "--interpret", *how)
    line = next((t for t in told.splitlines() if " adds most: " in t), "")
    found = re.search(r"'(.*)' adds most: (\S+) of .* alone, (\S+) without .*f32:(.*)\)", line)
    if not found or found[1] != "loud[1]" or found[4] != r"loud\[1]":
        raise Wrong(f"not the node that adds most: {told}")
    if not float(found[2]) > 10 * float(found[3]):
        raise Wrong(f"of an error ten times as large as without that node: {line}")
    nodes[1].metadata_props.add(key="pkg.torch.onnx.name_scopes",
                                value="['', 'b.0', 'b.0.attn', 'linear_1']")  # fmt: skip
    path = model(work / "module.onnx", F, [8, 32], F, nodes, [8, 16], weights)
    told = call(ingot, "verify", path, "--interpret", *how, "--precision", "f32:b.0.attn.*")
    if "loud" in told or "'low' adds most" not in told:
        raise Wrong(f"a node is not found by its module: {told}")


def block_of_an_image(ingot, work, rng):
    """Three channels: the terms are a row of taps. No step only rounds: an addition reads bf16, and
    parts are stored beside the sums."""
    F = TensorProto.FLOAT
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["b"], strides=[2, 2], pads=[3, 3, 3, 3]),
        helper.make_node("Conv", ["b", "v"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "b"], ["y"]),
    ]
    weights = [
        numpy_helper.from_array(rng.standard_normal(s).astype(np.float32) / 16, name)
        for s, name in (((32, 3, 7, 7), "w"), ((32, 32, 3, 3), "v"))
    ]
    image, y = model(work / "i.onnx", F, [1, 3, 32, 30], F, nodes, [1, 32, 16, 15], weights), {}
    (given := work / "image").mkdir()
    np.save(given / "input_0.npy", rng.standard_normal((1, 3, 32, 30)).astype(np.float32))
    for how in ("f32", "bf16", "bf16x3"):
        bundle, out = work / f"image_{how}", work / f"image_out_{how}"
        call(ingot, "compile", image, "-o", bundle, "--target", TARGET, "--precision", how)
        built(bundle, compilers()[0])
        out.mkdir()
        call(bundle / "model", given, out)
        y[how] = np.load(out / "output_0.npy")
        if how == "f32":
            continue
        error = abs(y[how] - y["f32"]).max() / abs(y["f32"]).max()
        if not (1e-4 < error < 1e-2 if how == "bf16" else error < 2e-5):
            raise Wrong(f"a block of an image by {how}: an error of {error} of the range")
        kernels = (bundle / "model_kernels_0.c").read_text().split("\nvoid model_k")[1:]
        words = ["igrt_store4_bf16", "igrt_amx_dot_", "igrt_amx_dot_"]
        words += ["igrt_store"] * (len(kernels) - 3)  # the result, as it is asked for
        if [w in k for w, k in zip(words, kernels)] != [True] * 4:
            raise Wrong(f"a block of an image by {how}: other kernels, not by the unit or vectors")
    call(ingot, "verify", image, "--interpret", "--target", TARGET, "--precision", "bf16")


def stays_f32(ingot, work, path):
    """Three products of bf16 for one of f32 are slower than that one where no unit computes them."""
    texts = []
    for how in ("f32", "bf16x3"):
        bundle = work / f"stays_{how}"
        target = ["--target", "c:x86-64-v4+vnni+bf16"]
        call(ingot, "compile", path, "-o", bundle, *target, "--precision", how)
        texts.append((bundle / "model_kernels_0.c").read_text())
    if texts[0] != texts[1]:
        raise Wrong("bf16x3 without a unit is not f32")


def precision(ingot, work):
    if platform.machine() != "x86_64":
        print("skipped: no x86-64")
        return
    rng = np.random.default_rng(2)
    F = TensorProto.FLOAT
    x, w = (
        rng.standard_normal((16, 576)).astype(np.float32),
        rng.standard_normal((576, 32)).astype(np.float32),
    )
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = model(
        work / "m.onnx", F, [16, 576], F, nodes, [16, 32], [numpy_helper.from_array(w, "w")]
    )
    exact, error, products = (
        x.astype(np.float64) @ w.astype(np.float64),
        {},
        {"f32": 0, "bf16": 2, "bf16x3": 6, "bf16x6": 12},
    )
    (work / "in").mkdir()
    np.save(work / "in" / "input_0.npy", x)
    for how in ("f32", "bf16", "bf16x3", "bf16x6"):
        bundle = work / how
        call(ingot, "compile", path, "-o", bundle, "--target", TARGET, "--precision", how)
        if (found := (bundle / "model_kernels_0.c").read_text().count("igrt_amx_dot_")) != products[
            how
        ]:
            raise Wrong(f"{how}: {found} products of fragments, wanted {products[how]}")
        built(bundle, compilers()[0])
        (work / f"out{how}").mkdir()
        call(bundle / "model", work / "in", work / f"out{how}")
        y = np.load(work / f"out{how}" / "output_0.npy")
        error[how] = abs(y - exact).max() / abs(exact).max()
    if not (
        1e-4 < error["bf16"] < 1e-2 and error["bf16x3"] <= 1e-5 and error["bf16x6"] <= error["f32"]
    ):
        raise Wrong(str(error))
    stays_f32(ingot, work, path)
    pairs(ingot, work, path, exact)
    adds_most(ingot, work, rng)
    block_of_an_image(ingot, work, rng)
    nodes = [
        helper.make_node("Transpose", ["x"], ["xt"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["xt", "w"], ["yt"], pads=[1, 1, 1, 1]),
        helper.make_node("Transpose", ["yt"], ["y"], perm=[0, 2, 3, 1]),
    ]
    window = model(
        work / "c.onnx",
        F,
        [1, 9, 9, 32],
        F,
        nodes,
        [1, 9, 9, 32],
        [numpy_helper.from_array(rng.standard_normal((32, 32, 3, 3)).astype(np.float32), "w")],
    )
    how = ["--target", TARGET, "--precision", "bf16x3"]
    call(ingot, "compile", window, "-o", work / "c", *how)
    if (work / "c" / "model_kernels_0.c").read_text().count("igrt_amx_dot_") < 6:
        raise Wrong("a convolution by bf16x3: not by the unit")
    without_fault(ingot, work, window, *how)
    print(", ".join(f"{k} {v:.1e}" for k, v in error.items()), "of the range")


if __name__ == "__main__":
    sys.exit(
        main(
            __doc__,
            {
                "amx": amx,
                "mma": mma,
                "batch": batch,
                "vector": vector,
                "arm": lambda ingot, work: units_arm.arm(ingot, work, made(work)),
                "riscv": lambda ingot, work: units_riscv.riscv(ingot, work, made(work)),
                "signs": signs,
                "precision": precision,
            },
        )
    )
