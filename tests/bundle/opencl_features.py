#!/usr/bin/env python3
"""What the kernels of --target opencl:fp16, dot8 and subgroupsN are, and where they run.

    opencl_features.py --ingot build/ingot

Each form is interpreted beside the naive kernels, compiled by clang with all extensions of OpenCL C
3.0 on, and run: on a device that lacks the extension init names it and the target that does
without, on another one the selftest passes. So it is of a bundle of two halves, which runs by C
where the device lacks something unless OpenCL is asked for. opencl:native asks for what the device
found here has.

Exit status 77, skipped: no Python with onnx.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import models
    from onnx import TensorProto
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

faults, told = [], []
CLANG = [
    "clang",
    "-x",
    "cl",
    "-cl-std=CL3.0",
    "--target=spir64-unknown-unknown",
    "-Xclang",
    "-finclude-default-header",
    "-Xclang",
    "-cl-ext=+all",
    "-fsyntax-only",
]


def want(good, what):
    if not good:
        faults.append(what)


def halves(g):
    x = g.input("x", TensorProto.FLOAT16, 8, 40)
    g.output("y", g.op("Mul", x, g.op("Sigmoid", x)), TensorProto.FLOAT16, 8, 40)


def rows(g):
    x = g.input("x", TensorProto.FLOAT, 6, 300)
    g.output("y", g.op("Softmax", x, axis=-1), TensorProto.FLOAT, 6, 300)


def products(g):
    x = g.input("x", TensorProto.UINT8, 7, 96)
    w = g.const(np.random.default_rng(1).integers(-128, 127, (96, 33)).astype(np.int8))
    g.output("y", g.op("MatMulInteger", x, w), TensorProto.INT32, 7, 33)


def pixels(g):
    x = g.input("x", TensorProto.FLOAT, 1, 32, 28, 28)
    w = g.const(np.random.default_rng(1).standard_normal((96, 32, 1, 1)).astype(np.float32))
    g.output("y", g.op("Conv", x, w), TensorProto.FLOAT, 1, 96, 28, 28)


def layers(g):
    x = g.input("x", TensorProto.FLOAT, 1, 32, 28, 28)
    for n, m in ((96, 32), (64, 96), (96, 64)):
        w = np.random.default_rng(n).standard_normal((n, m, 1, 1)).astype(np.float32)
        x = g.op("Relu", g.op("Conv", x, g.const(w)))
    g.output("y", x, TensorProto.FLOAT, 1, 96, 28, 28)


def matrices(g):
    x, y = g.input("x", TensorProto.FLOAT, 96, 32), g.input("y", TensorProto.FLOAT, 32, 784)
    g.output("z", g.op("MatMul", x, g.op("Relu", y)), TensorProto.FLOAT, 96, 784)


def odd(g):
    x = g.input("x", TensorProto.FLOAT, 1, 3, 5, 7)
    w = g.const(np.random.default_rng(1).standard_normal((8, 3, 1, 1)).astype(np.float32))
    g.output("y", g.op("Conv", x, w), TensorProto.FLOAT, 1, 8, 5, 7)


SHUFFLE = "cl_khr_subgroup_shuffle; --target {} does without|the size of sub-groups is"

#         model, features, what stands in its kernels, what is told where the device lacks one
FORMS = [
    (pixels, "images", "igrt_pixel(a", "images; --target opencl does without"),
    (layers, "images", "igrt_pixel(a", "images; --target opencl does without"),
    (halves, "fp16", "igrt_f32_to_f16(", "cl_khr_fp16; --target opencl does without"),
    (rows, "subgroups32", "igrt_across_", SHUFFLE.format("opencl")),
    (
        rows,
        "subgroups8+fp16",
        "igrt_across_",
        SHUFFLE.format("opencl:fp16") + "|cl_khr_fp16; --target opencl:subgroups8 does without",
    ),
    (
        products,
        "dot8",
        "= igrt_dot_u8_i8(",
        "cl_khr_integer_dot_product; --target opencl does without",
    ),
]


def run(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)


def built(out, name):
    made = run(
        "make", "-s", "-C", out, "CFLAGS=-O0 -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Werror"
    )
    want(made.returncode == 0, f"{name}: {made.stderr}")
    return made.returncode == 0


def selftest(out, name, missing, *options):
    """Whether the device has what is asked for; None: there is no device."""
    done = run(out / "model", "--selftest", *options)
    text = (done.stdout + done.stderr).strip()
    if "status 16" in text:
        told.append(f"{name}: skipped, no device")
        return None
    if "status 22" in text:
        told.append(f"{name}: skipped, {text}")
        want(missing and re.search(missing, text), f"{name}: what is missing is not said: {text}")
        return False
    told.append(f"{name}: ran")
    want(done.returncode == 0, f"{name}: {text}")
    return True


def graph_of(model):
    g = models.Graph(1)
    model(g)
    return g.bytes()


def form(ingot, work, model, feature, text, missing):
    path = work / f"{model.__name__}.onnx"
    path.write_bytes(graph_of(model))
    target, out = f"opencl:{feature}", work / f"{model.__name__}_{feature}"
    verified = run(ingot, "verify", path, "--target", target, "--interpret")
    want(verified.returncode == 0, f"{target}: {verified.stdout}{verified.stderr}")
    compiled = run(ingot, "compile", path, "-o", out, "--target", target, "-q")
    if compiled.returncode:
        return want(False, f"{target}: {compiled.stderr}")
    kernels = out / "model_kernels.cl"
    want(text in kernels.read_text().split("\n/* k00")[-1], f"{target}: the kernels have no {text}")
    if shutil.which("clang"):
        checked = run(*CLANG, kernels)
        want(checked.returncode == 0, f"{target}: {checked.stderr[:2000]}")
    if built(out, target):
        selftest(out, target, missing)


def by_hand(ingot, work):
    """What is read of images, by fours alone, of weights and of what is copied into one before; a plan
    may say IMAGE without the feature."""
    model, plan, out = work / "layers.onnx", work / "layers.sched", work / "by_hand"
    words = [ingot, "compile", model, "-q", "-o", out]
    done = run(*words, "--target", "opencl:images", "--save-sched", plan)
    text = (out / "model_kernels.cl").read_text() if not done.returncode else done.stderr
    count = [text.count(f"igrt_{x}(a") for x in ("pixel", "texel")]
    want(count == [5, 0], f"reads of images: {count}")
    copies = re.findall(r"fill_image\(gpu, mem\[MEM_(\w+)\]", (out / "model.c").read_text())
    want(copies == ["IN_0", "ARENA", "ARENA"], f"copied into images: {copies}")
    told_plan = plan.read_text().replace("target opencl:images", "target opencl")
    plan.write_text(told_plan)
    done = run(*words, "--target", "opencl", "--sched", plan)
    want(not done.returncode, f"IMAGE by hand: {done.stderr}")
    want("image2d_t a2" in (out / "model_kernels.cl").read_text(), "IMAGE by hand: there is none")
    if built(out, "IMAGE by hand"):
        selftest(out, "IMAGE by hand", None)
    plan.write_text(told_plan.replace("IMAGE 2", "IMAGE 0"))
    done = run(*words, "--target", "opencl", "--sched", plan)
    want("reads and does not write" in done.stderr, f"IMAGE of the result: {done.stderr}")
    words[2] = work / "matrices.onnx"
    words[2].write_bytes(graph_of(matrices))
    run(*words, "--target", "opencl:images")
    text = (out / "model_kernels.cl").read_text()
    count = [text.count(f"igrt_{x}(a") for x in ("pixel", "texel")]
    want(count == [1, 0], f"reads of rows, whose terms lie side by side: {count}")
    words[2] = work / "odd.onnx"
    words[2].write_bytes(graph_of(odd))
    run(*words, "--target", "opencl", "--save-sched", plan)
    plan.write_text(plan.read_text() + "  IMAGE 1\n")
    done = run(*words, "--target", "opencl", "--sched", plan)
    want("a fixed size, of whole pixels" in done.stderr, f"IMAGE of 105 numbers: {done.stderr}")


def native(ingot, work, model):
    out = work / f"{model.__name__}_native"
    compiled = run(
        ingot,
        "compile",
        work / f"{model.__name__}.onnx",
        "-o",
        out,
        "--target",
        "opencl:native",
        "-q",
    )
    if compiled.returncode:
        return want(
            compiled.returncode == 4 and "no OpenCL device" in compiled.stderr,
            f"opencl:native: {compiled.stderr}",
        )
    if built(out, "opencl:native"):
        selftest(out, "opencl:native", None)


def with_c(ingot, work, model, features, missing):
    target, out = f"opencl:{features}+c", work / f"{model.__name__}_c"
    compiled = run(
        ingot, "compile", work / f"{model.__name__}.onnx", "-o", out, "--target", target, "-q"
    )
    want(compiled.returncode == 0, f"{target}: {compiled.stderr}")
    if compiled.returncode or not built(out, target):
        return
    selftest(out, f"{target}, asked for OpenCL", missing, "--target", "opencl")
    want(selftest(out, target, None), f"{target}: neither of the halves runs")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ingot", required=True)
    ingot = pathlib.Path(parser.parse_args().ingot).resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        os.environ["POCL_CACHE_DIR"] = str(work / "pocl")
        for f in FORMS:
            form(ingot, work, *f)
        by_hand(ingot, work)
        for model in (halves, rows, products):
            native(ingot, work, model)
        with_c(
            ingot,
            work,
            rows,
            "dot8+subgroups8",
            SHUFFLE.format("opencl:dot8")
            + "|cl_khr_integer_dot_product; --target opencl:subgroups8 does",
        )
    print("\n".join(faults + told))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
