#!/usr/bin/env python3
"""Numbers below the smallest normal one.

    subnormals.py --ingot build/ingot

    flushed   they are zeros, or with --subnormals keep what they are, in one thread and in those of
              the caller, whose floating-point mode is what it was before
    weights   none is in the weights, unless kept; kernels and interpreter agree (`ingot verify`)

Exit status 77, skipped: there is no Python with onnx.
"""

import platform
import subprocess
import sys

try:
    import numpy as np
    import models
    from run import STRICT, Wrong, call, compilers, main
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

N, K = 192, 64
MODES = ("flush", "keep")


def build(work):
    """Sums of subnormal products in a kernel that threads share, and beside it weights that are
    subnormal."""
    g = models.Graph(1)
    x = g.input("x", models.F, N, K)
    y = g.op("MatMul", x, g.const(np.full((K, N), 2.0**-70), np.float32))
    g.output("y", y, models.F, N, N)
    tiny = g.const(np.where(np.arange(K) % 2, 1.0, -1.0) * 2.0**-130, np.float32)
    g.output("z", g.op("Add", x, tiny), models.F, N, K)
    g.output("l", g.op("Log", g.op("Max", x, tiny)), models.F, N, K)
    model = work / "model.onnx"
    model.write_bytes(g.bytes())
    return model


CALLER = r"""
#include <stdio.h>

#include "model.h"

enum { N = %d, K = %d };

static float x[N * K], y[N * N], z[N * K], l[N * K];
static unsigned char arena[MODEL_ARENA_BYTES(4) + 64] __attribute__((aligned(64)));
static uint64_t mode;
static int calls, other_modes;

/* As if every part ran in another thread. */
static void parts(void *user, igrt_task_fn task, void *arg, int64_t n)
{
    const uint64_t inside = igrt_fp_mode();
    (void)user;
    for (int64_t i = 0; i < n; i++) {
        igrt_fp_restore(mode);
        task(arg, i, (int)(i %% 4));
        other_modes += igrt_fp_mode() != mode;
    }
    igrt_fp_restore(inside);
    calls++;
}

int main(void)
{
    for (int i = 0; i < N * K; i++)
        x[i] = 0x1p-70f;
    for (int threads = 1; threads <= 4; threads += 3) {
        model_ctx ctx;
        model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena, .threads = threads};
        config.parallel_for = parts;
        const model_inputs in = {.x = x};
        model_outputs out = {.y = y, .z = z, .l = l};
        if (model_init(&ctx, &config))
            return 1;
        mode = igrt_fp_mode();
        if (model_run(&ctx, &in, &out))
            return 1;
        const int same = igrt_fp_mode() == mode;
        int zeros = 0, sums = 0;
        for (int i = 0; i < N * N; i++) {
            zeros += y[i] == 0;
            sums += y[i] == 0x1p-134f;
        }
        printf("%%d threads: %%d zeros, %%d sums, %%s\n", threads, zeros, sums, same ? "the mode of before" : "another mode");
        model_deinit(&ctx);
    }
    printf("%%d calls of parallel_for, %%d other modes\n", calls, other_modes);
    return 0;
}
"""


def flushed(ingot, work):
    if platform.machine() not in ("x86_64", "aarch64"):
        print("not known of this processor")
        return
    model = build(work)
    (work / "caller.c").write_text(CALLER % (N, K))
    for mode in MODES:
        bundle = work / mode
        call(ingot, "compile", model, "-o", bundle, "--weights", "array", "--subnormals", mode)
        sources = [
            p for p in bundle.glob("*.c") if p.name not in ("main.c", "driver.c", "igrt_pool.c")
        ]
        for cc in compilers():
            call(
                cc,
                *STRICT.split(),
                "-I",
                bundle,
                work / "caller.c",
                *sources,
                "-o",
                work / "caller",
                "-lm",
            )
            told = call(work / "caller").splitlines()
            counts = f"{N * N} zeros, 0 sums" if mode == "flush" else f"0 zeros, {N * N} sums"
            if any(not t.startswith(f"{n} threads: {counts}, ") for n, t in zip((1, 4), told)):
                raise Wrong(f"{mode}, {cc}: {told}")
            if mode == "flush" and any(not t.endswith("the mode of before") for t in told[:2]):
                raise Wrong(f"{cc}: {told}")
            if not told[2].endswith(" 0 other modes"):
                raise Wrong(f"{mode}, {cc}: {told}")
            if told[2].startswith("0 calls"):
                raise Wrong("no kernel is cut")
    print(f"{' and '.join(MODES)}, under {' and '.join(compilers())}")


def weights(ingot, work):
    model = build(work)
    np.save(work / "x.npy", np.full((N, K), 2.0**-140, np.float32))
    for mode in MODES:
        call(ingot, "compile", model, "-o", work / mode, "--weights", "blob", "--subnormals", mode)
        bits = np.frombuffer((work / mode / "model.weights").read_bytes(), np.uint32)
        subnormal = int(np.sum((bits & 0x7F800000 == 0) & (bits & 0x7FFFFFFF != 0)))
        if (subnormal > 0) != (mode == "keep"):
            raise Wrong(f"{mode}: {subnormal} weights are subnormal")
        call(
            ingot,
            "verify",
            model,
            "--input",
            work / "x.npy",
            "--subnormals",
            mode,
            env={"INGOT_CACHE": str(work / "cache")},
        )
    done = subprocess.run(
        [ingot, "compile", model, "-o", work / "x", "--subnormals", "some"],
        text=True,
        capture_output=True,
    )
    if done.returncode != 2 or "choose flush or keep" not in done.stderr:
        raise Wrong(f"status {done.returncode}: {done.stderr}")
    print("flushed or kept; verify agrees")


if __name__ == "__main__":
    sys.exit(main(__doc__, {f.__name__: f for f in (flushed, weights)}))
