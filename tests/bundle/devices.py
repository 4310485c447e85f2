#!/usr/bin/env python3
"""Bundles for C whose devices are threads with memories of their own.

    devices.py --ingot build/ingot

    same        what one device computes, in each way to share it, on 2 and 4 devices: within
                reordering of sums, of parts of the batch the same bytes; and these in every run,
                whatever the number of threads
    shared      how: parts of the batch, of the weights, of the layers, by the plan
    decided     a saved .sched gives the same plan again, and an edited one moves a value
    training    losses of a training step that devices share, beside one device's
    sizes       what is joined of sizes alone, each device computes
    sanitized   ThreadSanitizer finds nothing; and it does where a wait is missing
    refused     what cannot be shared, and one message for each

Exit status 77, skipped: there is no Python with onnx.
"""

import re
import subprocess
import sys

try:
    import numpy as np
    import models
    from run import Wrong, call, compilers, main, program
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

BATCH, ROWS, WIDE, HEADS = 4, 8, 32, 4


def dense(g, x, inner, out):
    return g.op("Add", g.op("MatMul", x, g.weight(inner, out)), g.weight(out))


def norm(g, x):
    return g.op("LayerNormalization", x, g.weight(WIDE), g.weight(WIDE), axis=-1)


def heads(g, x, transposed=False):
    x = g.op("Reshape", x, g.const([0, 0, HEADS, WIDE // HEADS], np.int64))
    return g.op("Transpose", x, perm=[0, 2, 3, 1] if transposed else [0, 2, 1, 3])


def encoder(g):
    """A layer as bert_base has it."""
    x = norm(g, g.input("x", models.F, BATCH, ROWS, WIDE))
    q, k, v = (dense(g, x, WIDE, WIDE) for _ in range(3))
    scores = g.op("Softmax", g.op("MatMul", heads(g, q), heads(g, k, True)), axis=-1)
    rows = g.op("Transpose", g.op("MatMul", scores, heads(g, v)), perm=[0, 2, 1, 3])
    rows = g.op("Reshape", rows, g.const([0, 0, WIDE], np.int64))
    x = norm(g, g.op("Add", x, dense(g, rows, WIDE, WIDE)))
    h = dense(g, g.op("Relu", dense(g, x, WIDE, 4 * WIDE)), 4 * WIDE, WIDE)
    g.output("y", norm(g, g.op("Add", x, h)), models.F, BATCH, ROWS, WIDE)


def residual(g):
    """Blocks as resnet18 has them."""
    x = g.input("x", models.F, BATCH, 3, 16, 16)
    x = g.op("Relu", g.op("Conv", x, g.weight(8, 3, 3, 3), g.weight(8), pads=[1, 1, 1, 1]))
    for _ in range(2):
        h = g.op("Relu", g.op("Conv", x, g.weight(8, 8, 3, 3), g.weight(8), pads=[1, 1, 1, 1]))
        h = g.op("Conv", h, g.weight(8, 8, 3, 3), g.weight(8), pads=[1, 1, 1, 1])
        x = g.op("Relu", g.op("Add", x, h))
    x = g.op(
        "Flatten",
        g.op("GlobalAveragePool", g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])),
    )
    g.output("y", g.op("Gemm", x, g.weight(10, 8), g.weight(10), transB=1), models.F, BATCH, 10)


def classes(g):
    x = g.input("x", models.F, BATCH, WIDE)
    h = g.op("Relu", g.op("Gemm", x, g.weight(2 * WIDE, WIDE), g.weight(2 * WIDE), transB=1))
    g.output(
        "y", g.op("Gemm", h, g.weight(10, 2 * WIDE), g.weight(10), transB=1), models.F, BATCH, 10
    )


MODELS = {
    "encoder": (encoder, (BATCH, ROWS, WIDE)),
    "residual": (residual, (BATCH, 3, 16, 16)),
    "classes": (classes, (BATCH, WIDE)),
}
WAYS = {"encoder": ("tensor", "layers"), "residual": ("batch", "layers"), "classes": ("tensor",)}


def write_model(work, name):
    build, shape = MODELS[name]
    g = models.Graph(len(name))
    build(g)
    (work / f"{name}.onnx").write_bytes(g.bytes())
    data = work / f"{name}-in"
    data.mkdir(exist_ok=True)
    np.save(data / "input_0.npy", g.rng.standard_normal(shape).astype(np.float32))
    return work / f"{name}.onnx", data


def built(ingot, work, model, *flags, cflags="-O0 -Wall -Wextra -Werror"):
    bundle = work / "bundle"
    call(ingot, "compile", model, "-o", bundle, *flags)
    program(bundle, compilers()[0], cflags)
    return bundle


def outputs(bundle, data, out, threads):
    call(bundle / "model", data, out, "-t", threads, "--poison")
    return [np.load(f) for f in sorted(out.iterdir())]


def raw(values):
    return [v.tobytes() for v in values]


def near(got, wanted):
    return all(np.abs(a - b).max() <= 2e-6 * np.abs(b).max() for a, b in zip(got, wanted))


def same(ingot, work):
    runs = 0
    for name in MODELS:
        model, data = write_model(work, name)
        wanted = outputs(built(ingot, work, model), data, work / "out", 1)
        for way in WAYS[name]:
            for n in (2, 4) if name == "encoder" or way == "batch" else (2,):
                bundle = built(ingot, work, model, "--devices", n, "--parallel", way)
                first = outputs(bundle, data, work / "out", 1)
                if not near(first, wanted) or (way == "batch" and raw(first) != raw(wanted)):
                    raise Wrong(f"{name}: {way} on {n} devices computes something else")
                for threads in (2, 2, n, 3):
                    if raw(outputs(bundle, data, work / "out", threads)) != raw(first):
                        raise Wrong(f"{name}: {way} on {n} devices: other bytes in another run")
                    runs += 1
    print(f"{len(MODELS)} models, {runs} runs")


def plan_of(ingot, model, *flags):
    return call(ingot, "inspect", model, "--dump", "plan", *flags)


def weights_of(plan, device):
    """Bytes of the floats that a device reads."""
    where = f" device {device} " if device else " layout"
    sizes = 0
    used = set(re.findall(r"b\d+", plan[plan.index("\nsteps") :]))
    for b, dims, rest in re.findall(r"buffer (b\d+) weight f32\[([\d,]+)\] at \d+(.*)", plan):
        here = int(m[1]) if (m := re.match(r" device (\d+)", rest)) else 0
        if b in used and here == device:
            sizes += 4 * int(np.prod([int(d) for d in dims.split(",")]))
    return sizes, where


def shared(ingot, work):
    model, _ = write_model(work, "encoder")
    one, _ = weights_of(plan_of(ingot, model), 0)
    for way, most in (("tensor", 0.62), ("layers", 0.75), ("batch", 1.0)):
        plan = plan_of(ingot, model, "--devices", "2", "--parallel", way)
        sizes = [weights_of(plan, d)[0] / one for d in (0, 1)]
        if max(sizes) > most or min(sizes) < 0.25:
            raise Wrong(f"{way}: of the weights the devices have {sizes}")
        if not re.search(r"copy b\d+ b\d+ device 1", plan) or "memory device1 " not in plan:
            raise Wrong(f"{way}: nothing is brought to device 1")
    plan = plan_of(ingot, model, "--devices", "2", "--parallel", "tensor")
    copies = len(re.findall(r"\n  copy ", plan))
    if copies != 1 + 2 + 1:  # the input; a term of one sum each way, and one of the last sum
        raise Wrong(f"tensor: {copies} copies")
    command = [
        ingot,
        "compile",
        model,
        "-o",
        work / "none",
        "--devices",
        "2",
        "--parallel",
        "tensor",
    ]
    told = subprocess.run(list(map(str, command)), text=True, capture_output=True).stderr
    if not re.search(r"device 1: arena \d+ bytes, weights \d+ bytes", told):
        raise Wrong(f"device 1 is not told of: {told}")
    print("batch, tensor, layers")


def decided(ingot, work):
    model, data = write_model(work, "classes")
    saved = work / "saved.sched"
    for way in ("tensor", "layers", "batch"):
        flags = ("--devices", "2", "--parallel", way)
        call(ingot, "compile", model, "-o", work / "bundle", *flags, "--save-sched", saved)
        plan = plan_of(ingot, model, *flags)
        if plan_of(ingot, model, *flags, "--sched", saved) != plan:
            raise Wrong(f"{way}: the file gives another plan")
    flags = ("--devices", "2")
    call(ingot, "compile", model, "-o", work / "bundle", *flags, "--save-sched", saved)
    text = saved.read_text()
    if " device 0" not in text:
        raise Wrong("the file does not say which device computes a value")
    saved.write_text(text.replace(" device 0", " device 1"))
    if "device 1\n" not in plan_of(ingot, model, *flags, "--sched", saved).split("\nsteps")[1]:
        raise Wrong("an edited file moves nothing")
    wanted = outputs(built(ingot, work, model), data, work / "out", 1)
    bundle = built(ingot, work, model, *flags, "--sched", saved)
    if raw(outputs(bundle, data, work / "out", 2)) != raw(wanted):
        raise Wrong("moved to device 1 it computes something else")
    print("three ways, and by hand")


STEPS = r"""
#include <stdio.h>
#include <stdlib.h>

#include "host/igrt_pool.h"
#include "model.h"

#ifndef TURNS
#define TURNS 1 /* of 8 steps, each from the first weights */
#endif
#if DEVICES > 1
static unsigned char first[MODEL_MEMORY_DEVICE0_BYTES] __attribute__((aligned(64))),
    second[MODEL_MEMORY_DEVICE1_BYTES + 1] __attribute__((aligned(64)));
#else
static unsigned char first[MODEL_ARENA_BYTES(1)] __attribute__((aligned(64)));
#endif

int main(int argc, char **argv)
{
    static igrt_pool pool;
    static model_ctx ctx;
    model_config config = {.struct_size = sizeof config};
#if DEVICES > 1
    const igrt_memory memory[] = {{first, sizeof first}, {second, sizeof second}};
    config.memory = memory;
    config.n_memories = 2;
    config.threads = igrt_pool_start(&pool, 2);
    config.parallel_for = igrt_pool_for;
    config.parallel_user = &pool;
#else
    config.arena = first;
    config.arena_bytes = sizeof first;
    (void)pool;
    config.gpu = argc > 1 ? argv[1] : NULL;
#endif
    if (model_init(&ctx, &config))
        return 1;
    unsigned random = 7;
    for (int k = 0; k < 8 * TURNS; k++) {
        float x[4 * 32], loss;
        int64_t target[4];
        for (int i = 0; i < 4 * 32; i++)
            x[i] = (float)((random = random * 1664525u + 1013904223u) >> 8) / (1 << 24) - 0.5f;
        for (int i = 0; i < 4; i++)
            target[i] = (random = random * 1664525u + 1013904223u) >> 24 & 7;
        if (k && k % 8 == 0 && model_reset(&ctx))
            return 1;
        random = k % 8 == 7 ? 7 : random;
        const model_train_step_inputs in = {x, target};
        model_train_step_outputs out = {&loss};
        if (model_train_step(&ctx, &in, &out))
            return 1;
        printf("%.9g\n", loss);
    }
    return 0;
}
"""


def losses(ingot, work, model, n, *flags):
    bundle = work / "train"
    loss = ("--train", "--loss", "cross_entropy:y", "--optimizer", "adamw:rate=1e-2")
    call(ingot, "compile", model, "-o", bundle, *flags, *loss)
    (work / "steps.c").write_text(STEPS)
    sources = (work / "steps.c", bundle / "host/igrt_pool.c", *bundle.glob("*.c"))
    flags = ("-O0", "-ffp-contract=off", f"-DDEVICES={n}", "-I", bundle)
    call(compilers()[0], *flags, *sources, "-o", work / "steps", "-lm", "-pthread")
    return [call(work / "steps") for _ in range(2)]


def training(ingot, work):
    model, _ = write_model(work, "classes")
    wanted = [float(x) for x in losses(ingot, work, model, 1)[0].split()]
    got, again = losses(ingot, work, model, 2, "--devices", "2", "--parallel", "batch")
    if again != got:
        raise Wrong("other losses in another run")
    if not np.allclose([float(x) for x in got.split()], wanted, rtol=1e-5):
        raise Wrong(f"losses {got.split()} beside {wanted}")
    if len(set(got.split())) < 8:
        raise Wrong("nothing is learned")
    print(f"{len(wanted)} steps")


def sanitized(ingot, work):
    model, data = write_model(work, "encoder")
    flags = ("--devices", "2", "--parallel", "tensor")
    bundle = built(ingot, work, model, *flags, cflags="-O1 -g -fsanitize=thread")
    wanted = raw(outputs(bundle, data, work / "out", 1))
    if raw(outputs(bundle, data, work / "out", 2)) != wanted:
        raise Wrong("other results")
    text = (bundle / "model.c").read_text()
    table = re.search(r"segment_waits\[\]\[2\] = \{\n(.*?)\n\};", text, re.S)
    without = re.sub(r"\{\d+, \d+\}", "{0, 0}", table[1])
    (bundle / "model.c").write_text(text.replace(table[1], without))
    program(bundle, compilers()[0], "-O1 -g -fsanitize=thread")
    try:
        if all(raw(outputs(bundle, data, work / "out", 2)) == wanted for _ in range(20)):
            raise SystemError("devices that do not wait are not found")
    except Wrong:  # the sanitizer's status
        pass
    print("with waits, and without")


def sizes(ingot, work):
    """The shape of what NonZero gives: a concat, which others than the device that stores it read."""
    g = models.Graph(3)
    scale, x = g.input("scale", models.I, 2), g.input("x", models.F, "m")
    scaled = g.op("Mul", g.op("Shape", g.op("NonZero", x)), scale)
    g.output("y", scaled, models.I, 2)
    (work / "sizes.onnx").write_bytes(g.bytes())
    flags = ("--dim", "m=0..33", "--devices", "3", "--parallel", "layers")
    call(ingot, "verify", work / "sizes.onnx", "--interpret", "--target", "c", *flags)


def refused(ingot, work):
    model, _ = write_model(work, "classes")
    cases = {
        ("--devices", "17"): "a number from 1 to 16",
        ("--parallel", "batch"): "--devices says how many",
        ("--devices", "2", "--parallel", "rows"): "batch",
        ("--devices", "3", "--parallel", "batch"): "nothing of the model can be split",
        ("--devices", "2", "--memory", "a=1k", "--memory", "b"): "not with --memory",
        ("--devices", "2", "--target", "opencl"): "'opencl' is for one device",
        ("--devices", "2", "--target", "c:x86-64-v2,x86-64-v3"): "for one target",
        ("--devices", "2", "--target", "c:cortex-m4"): "is for one device",
    }
    for flags, wanted in cases.items():
        command = [ingot, "compile", model, "-o", work / "none", *flags]
        done = subprocess.run(list(map(str, command)), text=True, capture_output=True)
        if not done.returncode or wanted not in done.stderr:
            raise Wrong(f"{' '.join(flags)}: {done.stderr}")
    print(f"{len(cases)} messages")


if __name__ == "__main__":
    checks = (same, shared, decided, training, sizes, sanitized, refused)
    sys.exit(main(__doc__, {f.__name__: f for f in checks}))
