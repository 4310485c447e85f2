#!/usr/bin/env python3
"""Inputs and outputs as the caller has them (--io, --io-in-arena).

    io_forms.py --ingot build/ingot

    forms     bytes in and out, channels last, of all and of one: what comes out stands for what the
              bundle of floats gives, byte for byte, and the selftest holds with the file's floats
    helpers   quantize and dequantize of model.h are those of ONNX
    arena     the tensors' places: copied to and from there by the driver, written and read there by
              a program of its own, twice
    refused   what cannot be so, and why

Exit status 77, skipped: there is no Python with onnx.
"""

import subprocess
import sys

try:
    import numpy as np
    import models
    from run import SANITIZE, STRICT, Wrong, call, compilers, main, make, program
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

SCALE, ZERO, OUT_SCALE, OUT_ZERO = np.float32(0.037), -15, np.float32(0.11), 21
F = models.F


def quantised(g, x, scale, zero):
    q = g.op("QuantizeLinear", x, g.const(scale), g.const(np.int8(zero)))
    return g.op("DequantizeLinear", q, g.const(scale), g.const(np.int8(zero)))


def network(g):
    """Moved before it is quantised, read twice behind; one output of bytes, one of floats that are
    read as they are."""
    x = g.op("Transpose", g.input("x", F, 1, 6, 5, 3), perm=[0, 3, 1, 2])
    x = quantised(g, x, SCALE, ZERO)
    w = np.random.default_rng(1).integers(-127, 127, (4, 3, 3, 3)).astype(np.int8)
    w = g.op("DequantizeLinear", g.const(w), g.const(np.float32(0.01)), g.const(np.int8(0)))
    y = quantised(g, g.op("Conv", x, w, pads=[1, 1, 1, 1]), OUT_SCALE, OUT_ZERO)
    g.output("y", y, F, 1, 4, 6, 5)
    g.output("z", g.op("Add", g.op("Relu", y), g.input("t", F, 1, 4, 6, 5)), F, 1, 4, 6, 5)


models.MODELS["io"] = network


def bytes_of(x, scale, zero):
    return np.clip(np.rint(x / scale) + np.float32(zero), -128, 127).astype(np.int8)


def prepare(work):
    model = work / "io.onnx"
    model.write_bytes(models.build("io"))
    rng = np.random.default_rng(2)
    x = (rng.standard_normal((1, 6, 5, 3)) * 3).astype(np.float32)
    x.flat[:4] = (0.5 * SCALE, 1.5 * SCALE, 100, -100)
    return model, x, rng.standard_normal((1, 4, 6, 5)).astype(np.float32)


def run(bundle, work, *inputs):
    for name in ("in", "out"):
        (work / name).mkdir(exist_ok=True)
    for i, value in enumerate(inputs):
        np.save(work / "in" / f"input_{i}.npy", value)
    call(bundle / "model", work / "in", work / "out", "--poison")
    return [np.load(work / "out" / f"output_{i}.npy") for i in range(2)]


def golden(ingot, work):
    """What the bundle of floats makes, and a folder of it for --selftest."""
    model, x, t = prepare(work)
    bundle = work / "bundle"
    call(ingot, "compile", model, "-o", bundle)
    program(bundle, compilers()[0], "-O0")
    y, z = run(bundle, work, x, t)
    data = work / "data"
    data.mkdir()
    for name, value in (("input_0", x), ("input_1", t), ("output_0", y), ("output_1", z)):
        np.save(data / f"{name}.npy", value)
    return model, bundle, x, t, y, z, data


def forms(ingot, work):
    model, bundle, x, t, y, z, data = golden(ingot, work)
    q = bytes_of(x, SCALE, ZERO)
    last = t.transpose(0, 2, 3, 1)
    for i, (flags, a, b, out_last) in enumerate(
        (
            (("--io", "int8"), q, t, ()),
            (("--io", "x=int8"), q, t, None),
            (("--io", "t=nhwc", "--io", "int8", "--io", "z=nhwc"), q, last, (1,)),
            (("--io", "int8", "--io-in-arena"), q, t, ()),
            (("--io", "int8", "--io-in-arena", "-O0"), q, t, ()),
        )
    ):
        call(ingot, "compile", model, "-o", bundle, "--selftest", data, *flags)
        if i == 3:
            make(bundle, compilers()[-1], STRICT)
        else:
            program(bundle, compilers()[0], "-O0")
        if "selftest: ok" not in call(bundle / "model", "--poison", "--selftest"):
            raise Wrong(f"{flags}: the selftest fails")
        got = run(bundle, work, np.ascontiguousarray(a), np.ascontiguousarray(b))
        if out_last is not None:
            if got[0].dtype != np.int8:
                raise Wrong(f"{flags}: output 0 is of {got[0].dtype}")
            got[0] = (got[0].astype(np.int32) - OUT_ZERO).astype(np.float32) * OUT_SCALE
        got[1] = got[1].transpose(0, 3, 1, 2) if out_last else got[1]
        for name, have, want in (("y", got[0], y), ("z", got[1], z)):
            if have.shape != want.shape or have.tobytes() != want.tobytes():
                raise Wrong(f"{flags}: other results for {name}")
    print("bytes, channels last, places in the arena: the same results in 5 ways")


HELPERS = """
#include <stdio.h>
#include "model.h"
int main(void)
{
    static const float x[] = {%s};
    int i;
    for (i = 0; i < %d; i++)
        printf("%%d ", model_quantize_x(x[i]));
    for (i = -128; i < 128; i++)
        printf("%%.9g ", (double)model_dequantize_y((int8_t)i));
    return MODEL_IN_X_ZERO != %d || MODEL_OUT_Y_SCALE != %.9gf;
}
"""


def helpers(ingot, work):
    model, _, _ = prepare(work)
    bundle = work / "bundle"
    call(ingot, "compile", model, "-o", bundle, "--io", "int8")
    halves = np.arange(-300, 300, dtype=np.float32) * np.float32(0.5) * SCALE
    x = np.concatenate([halves, np.nextafter(halves, np.float32(9)), np.float32([1e30, -1e30])])
    text = ", ".join(f"{float(v):.9e}f" for v in x) + ", 0.0f / 0.0f"
    (work / "helpers.c").write_text(HELPERS % (text, len(x) + 1, ZERO, OUT_SCALE))
    want = [*map(int, bytes_of(x, SCALE, ZERO)), -128]
    for cc in compilers():
        call(cc, *STRICT.split(), "-I", bundle, work / "helpers.c", "-o", work / "helpers")
        said = call(work / "helpers").split()
        back = (np.arange(-128, 128) - OUT_ZERO).astype(np.float32) * OUT_SCALE
        if [int(v) for v in said[: len(want)]] != want:
            raise Wrong(f"{cc}: quantize: {said[: len(want)]}, not {want}")
        if any(np.float32(a) != b for a, b in zip(said[len(want) :], back)):
            raise Wrong(f"{cc}: dequantize: {said[len(want) :]}")
    print(f"{len(want)} numbers quantised, 256 back")


PLACES = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"
static _Alignas(MODEL_ARENA_ALIGN) unsigned char arena[MODEL_ARENA_BYTES(1)];
int main(void)
{
    model_ctx ctx;
    const model_config config = {
        .struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    if (model_init(&ctx, &config) != IGRT_OK)
        return 1;
    for (int i = 0; i < 2; i++) {
        static signed char x[90];
        static float t[120];
        FILE *f = fopen("in.bin", "rb");
        if (!f || fread(x, 1, sizeof x, f) != sizeof x || fread(t, 1, sizeof t, f) != sizeof t)
            return 2;
        fclose(f);
        memcpy(model_in_x(&ctx), x, sizeof x);
        memcpy(model_in_t(&ctx), t, sizeof t);
        if (model_run(&ctx, NULL, NULL) != IGRT_OK)
            return 3;
        fwrite(model_out_y(&ctx), 1, 120, stdout);
        fwrite(model_out_z(&ctx), 4, 120, stdout);
    }
    return 0;
}
"""


def arena(ingot, work):
    model, bundle, x, t, y, z, _ = golden(ingot, work)
    call(
        ingot, "compile", model, "-o", bundle, "--io", "int8", "--io-in-arena", "--weights", "array"
    )
    (work / "places.c").write_text(PLACES)
    (work / "in.bin").write_bytes(bytes_of(x, SCALE, ZERO).tobytes() + t.tobytes())
    sources = [p for p in bundle.glob("*.c") if p.name not in ("main.c", "driver.c", "igrt_pool.c")]
    flags = STRICT.replace("-std=c99", "-std=c11").split() + SANITIZE.split()
    call(
        compilers()[0],
        *flags,
        "-I",
        bundle,
        work / "places.c",
        *sources,
        "-o",
        work / "places",
        "-lm",
    )
    said = subprocess.run([work / "places"], cwd=work, capture_output=True)
    want = (np.rint(y / OUT_SCALE) + OUT_ZERO).astype(np.int8).tobytes() + z.tobytes()
    if said.returncode or said.stdout != want * 2:
        raise Wrong(f"status {said.returncode}, {len(said.stdout)} bytes: {said.stderr.decode()}")
    print("two runs where the tensors lie")


def refused(ingot, work):
    model, _, _ = prepare(work)
    for flags, why, status in (
        (("--io", "z=int8"), "no DequantizeLinear of one scale gives it", 4),
        (("--io", "t=int8"), "no QuantizeLinear of one scale reads it", 4),
        (("--io", "x=uint8"), "it is quantised to i8: say int8", 4),
        (("--io", "uint8"), "no input or output can be so", 4),
        (("--io", "q=int8"), "no input or output has this name", 2),
        (("--io", "x=int4"), "choose int8, uint8 or nhwc", 2),
        (("--io", "x="), "FORM or NAME=FORM is wanted", 2),
        (("--io-in-arena", "--target", "opencl"), "only for the target c", 2),
        (("--io-in-arena", "--target", "c:x86-64,x86-64-v3"), "for one target", 2),
    ):
        done = subprocess.run(
            [ingot, "compile", model, "-o", work / "no", *flags], capture_output=True, text=True
        )
        if done.returncode != status or why not in done.stderr:
            raise Wrong(f"{flags}: status {done.returncode}: {done.stderr}")
    print("refused with reasons")


if __name__ == "__main__":
    sys.exit(main(__doc__, {f.__name__: f for f in (forms, helpers, arena, refused)}))
