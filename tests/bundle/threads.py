#!/usr/bin/env python3
"""Kernels that several threads share.

    threads.py --ingot build/ingot

    same        1, 2, 3 and 7 threads give the same bytes, those of kernels that are not cut, and
                the interpreter's values
    callers     a parallel_for that goes backwards, and two contexts at the same time, give them too,
                and so does one whose run before was ended by config.stop
    sanitized   ThreadSanitizer finds nothing

Exit status 77, skipped: there is no Python with onnx.
"""

import json
import sys

try:
    import numpy as np
    import models
    from run import Wrong, call, compilers, main, program
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

THREADS = (2, 3, 7)
TARGET = ("--target", "c:x86-64-v3")  # 8 lanes; any compiler builds them as vectors or as pairs


def convolutions(g):
    """Odd sizes: every tile leaves a rest."""
    x = g.input("x", models.F, 1, 3, 37, 29)
    h = g.op("Relu", g.op("Conv", x, g.weight(27, 3, 3, 3), g.weight(27), pads=[1, 1, 1, 1]))
    h = g.op(
        "Relu", g.op("Conv", h, g.weight(27, 1, 5, 5), g.weight(27), group=27, pads=[2, 2, 2, 2])
    )
    h = g.op("Conv", h, g.weight(35, 27, 3, 3), pads=[1, 1, 1, 1], strides=[2, 1])
    h = g.op("MaxPool", g.op("Sigmoid", h), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    g.output("y", h, models.F, 1, 35, 10, 15)
    g.output("means", g.op("GlobalAveragePool", h), models.F, 1, 35, 1, 1)


def rows(g):
    x = g.input("x", models.F, 3, 61, 53)
    scores = g.op("MatMul", x, g.op("Transpose", x, perm=[0, 2, 1]))
    h = g.op("MatMul", g.op("Softmax", scores, axis=-1), g.op("MatMul", x, g.weight(53, 77)))
    h = g.op("LayerNormalization", h, g.weight(77), g.weight(77), axis=-1)
    g.output("y", g.op("Erf", g.op("MatMul", h, g.weight(77, 101))), models.F, 3, 61, 101)
    g.output("sums", g.op("ReduceSum", scores, g.const([1], np.int64), keepdims=0), models.F, 3, 61)


def batches(g):
    x = g.input("x", models.F, "batch", 5, 19, 23)
    h = g.op("Relu", g.op("Conv", x, g.weight(18, 5, 3, 3), g.weight(18), pads=[1, 1, 1, 1]))
    h = g.op("Softmax", g.op("Conv", h, g.weight(21, 18, 1, 1)), axis=1)
    g.output("y", h, models.F, "batch", 21, 19, 23)


def layers(g):
    """Equal layers, whose weights are arrays of C: they are a loop with tables."""
    h = g.input("x", models.F, 128, 48)
    for _ in range(6):
        h = g.op("Relu", g.op("Gemm", h, g.weight(48, 48), g.weight(48), transB=1))
    g.output("y", h, models.F, 128, 48)


MODELS = {
    "layers": (layers, (128, 48)),
    "convolutions": (convolutions, (1, 3, 37, 29)),
    "rows": (rows, (3, 61, 53)),
    "batches": (batches, (1, 5, 19, 23), (3, 5, 19, 23), (8, 5, 19, 23)),
}


def compile_model(ingot, work, name, *flags):
    """The bundle's folder, and one of inputs for each shape."""
    build, *shapes = MODELS[name]
    g = models.Graph(len(name))
    build(g)
    model, bundle = work / f"{name}.onnx", work / name
    model.write_bytes(g.bytes())
    dims = ("--dim", "batch=1..8") if name == "batches" else ()
    call(ingot, "compile", model, "-o", bundle, "--name", "model", *TARGET, *dims, *flags)
    inputs = []
    for i, shape in enumerate(shapes):
        folder = work / f"{name}-in{i}"
        folder.mkdir(exist_ok=True)
        np.save(folder / "input_0.npy", g.rng.standard_normal(shape).astype(np.float32))
        inputs.append(folder)
    return bundle, inputs


def outputs(bundle, data, out, threads):
    call(bundle / "model", data, out, "-t", threads, "--poison")
    return [f.read_bytes() for f in sorted(out.iterdir())]


def same(ingot, work):
    cut = 0
    for name in MODELS:
        saved = work / "model.sched"
        bundle, inputs = compile_model(ingot, work, name, "--save-sched", saved)
        program(bundle, compilers()[0], "-O0 -mavx2 -mfma -Wall -Wextra -Werror")
        wanted = [outputs(bundle, data, work / "out", 1) for data in inputs]
        if name == "layers" and "for (int i" not in (bundle / "model.c").read_text():
            raise Wrong("equal layers are no loop")
        for threads in THREADS:
            if [outputs(bundle, data, work / "out", threads) for data in inputs] != wanted:
                raise Wrong(f"{name}: other results in {threads} threads")
        dims = ("--dim", "batch=1..8") if name == "batches" else ()
        told = json.loads(call(ingot, "inspect", work / f"{name}.onnx", "--json", *TARGET, *dims))
        here = sum(o.startswith("THREAD") for s in told["steps"] for o in s["opts"])
        if here < 2:
            raise Wrong(f"{name}: {here} kernels can be cut")
        cut += here
        call(
            ingot,
            "verify",
            work / f"{name}.onnx",
            *TARGET,
            *dims,
            env={"INGOT_CACHE": str(work / "cache")},
        )
        text = saved.read_text().splitlines()
        saved.write_text("".join(l + "\n" for l in text if "THREAD" not in l))
        bundle, inputs = compile_model(ingot, work, name, "--sched", saved)
        program(bundle, compilers()[0], "-O0 -mavx2 -mfma -Wall -Wextra -Werror")
        if "igrt_parallel" in (bundle / "model.c").read_text():
            raise Wrong(f"{name}: cut though the file does not say so")
        if outputs(bundle, inputs[0], work / "out", 3) != wanted[0]:
            raise Wrong(f"{name}: other results where kernels are not cut")
    print(f"{len(MODELS)} models, {cut} kernels, in {', '.join(map(str, (1, *THREADS)))} threads")


CALLERS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { N = 3 * 61 * 53, Y = 3 * 61 * 101, SUMS = 3 * 61 };

static float x[N];
static unsigned char arena[3][MODEL_ARENA_BYTES(4)] __attribute__((aligned(64)));
static float y[3][Y], sums[3][SUMS];

static void backwards(void *user, igrt_task_fn task, void *arg, int64_t n)
{
    ++*(int *)user;
    for (int64_t i = n; i-- > 0;)
        task(arg, i, (int)(i % 4));
}

static void *run(void *number)
{
    const int i = *(int *)number;
    int calls = 0;
    model_ctx ctx;
    model_config config = {.struct_size = sizeof config, .arena = arena[i], .arena_bytes = sizeof arena[i]};
    if (i) {
        config.threads = 4;
        config.parallel_for = backwards;
        config.parallel_user = &calls;
    }
    const model_inputs in = {.x = x};
    model_outputs out = {.y = y[i], .sums = sums[i]};
    if (model_init(&ctx, &config))
        return "init";
    for (int k = 0; k < 20; k++)
        if (model_run(&ctx, &in, &out))
            return "run";
    model_deinit(&ctx);
    return (calls > 0) == (i > 0) ? NULL : "calls";
}

static int second(void *steps)
{
    return ++*(int *)steps == 2;
}

/* A run that is ended after its second step; then one that is not. */
static const char *stopped(void)
{
    int steps = 0;
    model_ctx ctx;
    const model_config config = {
        .struct_size = sizeof config, .arena = arena[0], .arena_bytes = sizeof arena[0], .user = &steps, .stop = second};
    const model_inputs in = {.x = x};
    model_outputs out = {.y = y[0], .sums = sums[0]};
    if (model_init(&ctx, &config) || model_run(&ctx, &in, &out) != IGRT_ERR_STOPPED || steps != 2)
        return "it is not ended";
    return model_run(&ctx, &in, &out) || steps < 3 ? "it cannot be used again" : NULL;
}

int main(void)
{
    int number[3] = {0, 1, 2};
    pthread_t thread[2];
    void *failure[3];
    for (int i = 0; i < N; i++)
        x[i] = (float)(i * 7919 % 1000) / 500 - 1;
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, run, &number[1 + i]);
    failure[0] = run(&number[0]);
    const char *end = failure[0] ? NULL : stopped();
    failure[0] = end ? (void *)end : failure[0];
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], &failure[1 + i]);
    for (int i = 0; i < 3; i++)
        if (failure[i] || memcmp(y[i], y[0], sizeof y[0]) || memcmp(sums[i], sums[0], sizeof sums[0])) {
            printf("context %d: %s\n", i, failure[i] ? (char *)failure[i] : "other values");
            return 1;
        }
    puts("all");
    return 0;
}
"""


def callers(ingot, work):
    bundle, _ = compile_model(ingot, work, "rows", "--weights", "array")
    (work / "callers.c").write_text(CALLERS)
    for flags in (["-O1"], ["-O0", "-g1", "-fsanitize=thread"]):
        sources = [
            p for p in bundle.glob("*.c") if p.name not in ("main.c", "driver.c", "igrt_pool.c")
        ]
        call(
            compilers()[0],
            "-std=c99",
            *flags,
            "-mavx2",
            "-mfma",
            "-ffp-contract=off",
            "-I",
            bundle,
            work / "callers.c",
            *sources,
            "-o",
            work / "callers",
            "-lm",
            "-pthread",
        )
        call(work / "callers")
    print("backwards, and two contexts at once")


def sanitized(ingot, work):
    for name in MODELS:
        bundle, inputs = compile_model(ingot, work, name)
        program(bundle, compilers()[0], "-O0 -g1 -mavx2 -mfma -fsanitize=thread")
        for data in inputs:
            wanted = outputs(bundle, data, work / "out", 1)
            if outputs(bundle, data, work / "out", 3) != wanted:
                raise Wrong(f"{name}: other results")
    print(f"{len(MODELS)} models")


if __name__ == "__main__":
    sys.exit(main(__doc__, {f.__name__: f for f in (same, callers, sanitized)}))
