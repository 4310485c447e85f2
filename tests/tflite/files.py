#!/usr/bin/env python3
"""TensorFlow Lite files of more than one network, or of more than one file.

    files.py --ingot build/ingot [--cc CC]      5 s

    signatures  the first is run(), others are functions over the same variables, as LiteRT's signatures
    alone       --entry: one of them, whatever operators the others have
    external    weights in a file beside the model; one that is not there, too short, outside of the folder
    far         weights behind the first 5 GB of the file

Exit status 77, skipped: there is no ai-edge-litert, flatbuffers or numpy.
"""

import argparse
import filecmp
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    from writer import Model
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

MAIN = r"""
#include <stdio.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
int main(void)
{
    model_ctx ctx;
    model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    float x[3] = {1, -2, 3.5f}, sum[3], y[3];
    if (model_init(&ctx, &config))
        return 1;
    for (int i = 0; i < 3; i++) {
        model_inputs add = {.x = x};
        model_outputs added = {.sum = sum};
        model_scale_by_inputs scale = {.by = &x[i]};
        model_scale_by_outputs scaled = {.y = y};
        if (model_run(&ctx, &add, &added) || model_scale_by(&ctx, &scale, &scaled))
            return 2;
        printf("%g %g %g %g %g %g\n", sum[0], sum[1], sum[2], y[0], y[1], y[2]);
    }
    return 0;
}
"""


def variable(g, name="sum"):
    return g.op(
        "VAR_HANDLE", [], [g.tensor((), "resource")], VarHandleOptions=dict(sharedName=name)
    )


def two_signatures():
    """add(x): sum += x, from 1 2 3 on.  Scale-By(by): sum * by.  other(x): of no operator that is known."""
    m = Model()
    begin = m.graph("begin")
    h = variable(begin)
    begin.op(
        "ASSIGN_VARIABLE", [h, begin.constant(np.float32([1, 2, 3]))], [], AssignVariableOptions={}
    )

    def sum_of(g):
        g.op("CALL_ONCE", [], [], CallOnceOptions=dict(initSubgraphIndex=1))
        h = variable(g)
        return h, g.op("READ_VARIABLE", [h], [g.tensor((3,))], ReadVariableOptions={})

    x = m.input("a", (3,))
    h, was = sum_of(m)
    now = m.op("ADD", [was, x], [m.tensor((3,))], AddOptions={})
    m.op("ASSIGN_VARIABLE", [h, now], [], AssignVariableOptions={})
    m.output(now)
    m.signature("add", {"x": x}, {"sum": now})
    g = m.graph("scale")
    by = g.input("b", ())
    y = g.op("MUL", [sum_of(g)[1], by], [g.tensor((3,))], MulOptions={})
    g.output(y)
    m.signature("Scale-By", {"by": by}, {"y": y}, m.graphs.index(g))
    return m


def ingot(*args, status=0):
    done = subprocess.run([*map(str, args)], capture_output=True, text=True)
    if done.returncode != status:
        sys.exit(f"FAIL: {' '.join(map(str, args))}: status {done.returncode}\n{done.stderr}")
    return done.stderr


def signatures(opt, folder):
    data = two_signatures().bytes()
    it = Interpreter(model_content=data)
    add, scale = it.get_signature_runner("add"), it.get_signature_runner("Scale-By")
    x, want = np.float32([1, -2, 3.5]), []
    for i in range(3):
        want += [*add(x=x)["sum"], *scale(by=x[i])["y"]]
    (folder / "two.tflite").write_bytes(data)
    (folder / "main.c").write_text(MAIN)
    ingot(
        opt.ingot, "compile", folder / "two.tflite", "-o", folder / "out", "--name", "model", "-q"
    )
    sources = [p for p in (folder / "out").glob("*.c") if p.name not in ("main.c", "driver.c")]
    build = [opt.cc, "-std=c99", "-I", folder / "out", folder / "main.c", *sources, "-lm", "-o"]
    ingot(*build, folder / "program")
    done = subprocess.run([folder / "program"], capture_output=True, text=True, cwd=folder / "out")
    got = np.float32(done.stdout.split())
    if done.returncode or not np.array_equal(got, np.float32(want)):
        sys.exit(f"FAIL: two signatures give {got}, not {np.float32(want)}")


def alone(opt, folder):
    m = two_signatures()
    g = m.graph("other")
    x = g.input("x", (3,))
    y = g.op("FlexNothing", [x], [g.tensor((3,))], custom=b"")
    g.output(y)
    m.signature("other", {"x": x}, {"y": y}, m.graphs.index(g))
    path = folder / "three.tflite"
    path.write_bytes(m.bytes())
    said = ingot(opt.ingot, "compile", path, "-o", folder / "three", status=4)
    if "FlexNothing" not in said or "--entry" not in said:
        sys.exit(f"FAIL: what is not supported in one of three signatures is told as\n{said}")
    ingot(opt.ingot, "compile", path, "-o", folder / "three", "--entry", "Scale-By", "-q")


def product(weights):
    m = Model()
    x = m.input("x", (2, 4))
    w = m.constant(weights, name="w")
    y = m.op("FULLY_CONNECTED", [x, w, None], [m.tensor((2, 3))], FullyConnectedOptions={})
    m.output(y)
    m.signature("main", {"x": x}, {"y": y})
    return m, w


def run(opt, path, folder, **how):
    ingot(
        opt.ingot,
        "run",
        path,
        "--input",
        f"x={folder / 'x.npy'}",
        "--output-dir",
        folder,
        *how.get("more", ()),
    )
    return np.load(folder / "output_0.npy")


def external(opt, folder):
    r = np.random.default_rng(1)
    weights, x = r.normal(size=(3, 4)).astype(np.float32), r.normal(size=(2, 4)).astype(np.float32)
    np.save(folder / "x.npy", x)
    (folder / "plain.tflite").write_bytes(product(weights)[0].bytes())
    want = run(opt, folder / "plain.tflite", folder)

    def outside(name, offset=64, length=48, packing="unpacked"):
        m, w = product(weights)
        m.external(w, name, offset, length, packing)
        (folder / "outside.tflite").write_bytes(m.bytes())

    (folder / "w.bin").write_bytes(bytes(64) + weights.tobytes())
    (folder.parent / "w.bin").write_bytes(bytes(64) + weights.tobytes())
    outside("w.bin")
    for scale in 1, 2:  # a file that has changed is another model to the cache of run
        (folder / "w.bin").write_bytes(bytes(64) + (scale * weights).tobytes())
        if not np.array_equal(run(opt, folder / "outside.tflite", folder), scale * want):
            sys.exit("FAIL: weights in a file of their own give others")
    for how in (
        ("nothing.bin",),
        ("../w.bin",),
        (str(folder / "w.bin"),),
        ("w.bin", 80),
        ("w.bin", 64, 40),
        ("w.bin", 2**63),
        ("w.bin", 64, 2**63),
    ):
        outside(*how)
        said = ingot(opt.ingot, "check", folder / "outside.tflite", status=0)
        said = ingot(opt.ingot, "compile", folder / "outside.tflite", "-o", folder / "no", status=3)
        if "'w'" not in said or how[0] not in said or (folder / "no").exists():
            sys.exit(f"FAIL: external file {how}: {said}")
    outside("w.bin", packing="zip")
    ingot(opt.ingot, "compile", folder / "outside.tflite", "-o", folder / "no", status=4)
    m, w = product(weights)
    offset = 5 << 30
    data = m.far(w, offset)
    far = folder / "behind" / "plain.tflite"
    far.parent.mkdir()
    with open(far, "wb") as f:  # a hole of 5 GB, which takes no room on the disk
        f.write(m.bytes())
        f.seek(offset)
        f.write(data)
    ingot(opt.ingot, "verify", far, "--interpret", "-q")
    ingot(opt.ingot, "compile", far, "-o", folder / "far", "--name", "m", "-q")
    ingot(
        opt.ingot, "compile", folder / "plain.tflite", "-o", folder / "plain", "--name", "m", "-q"
    )
    files = [p.name for p in (folder / "far").iterdir() if p.is_file()]
    _, other, missing = filecmp.cmpfiles(folder / "far", folder / "plain", files, shallow=False)
    if other or missing or not files:
        sys.exit(f"FAIL: {other + missing} are others where the weights are far off in the file")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--cc", default="cc")
    opt = p.parse_args()
    opt.ingot = opt.ingot.resolve()
    with tempfile.TemporaryDirectory(prefix="ingot-tflite-") as scratch:
        folder = pathlib.Path(scratch) / "models"
        folder.mkdir()
        for part in (signatures, alone, external):
            part(opt, folder)
    print("signatures, files beside the model and offsets of 64 bits are as they should be")


if __name__ == "__main__":
    main()
