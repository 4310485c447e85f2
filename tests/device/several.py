#!/usr/bin/env python3
"""What two GPUs of one machine gain over one of them.

    several.py --ingot build/ingot [--work DIR] [exchange] [resnet50] [gpt2]
    several.py --ingot build/ingot --one [gpt2]

    exchange   8, 64, 256 KB that two GPUs send each other, in a graph: microseconds each
    resnet50   f16, --parallel batch: 128 images on two GPUs, 64 on one
    gpt2       GPT-2 small, a training step in bf16, --parallel batch: 16 texts of 1,024 tokens on two,
               8 on one; the losses of six steps beside those of one GPU with the 16, and whether two
               runs of them have the same bits

With --one a single GPU is both, and only losses are told: the exchange is not what it is between two.

Weights are random. tests/llm/gpu_time.py --devices 1,2 has tokens of language models. Judges nothing.
Needs two GPUs that can access each other's memory, PyTorch, onnx, NVRTC, a C compiler.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "train"))
import gpu_steps
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TWO = ("--devices", "2", "--parallel", "batch")
STEPS = 6

EXCHANGE = r"""
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "model_igrt.h"
#include "model.h"
enum { EXCHANGES = 200, RUNS = 50, MOST = 256 << 10 };
static model_ctx ctx;
static unsigned char arena[MODEL_ARENA_BYTES(1) + 64];
static igrt_cu_graph graph;
static igrt_cu_ptr value[2], other[2], slot[2];
static void *mark[2];
static void check(int status, const char *what)
{
    if (status) {
        fprintf(stderr, "%s: status %d\n", what, status);
        exit(1);
    }
}
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}
static igrt_cu *gpu(int i)
{
    return i ? &ctx.beside[0] : &ctx.gpu;
}
/* Each sends its value, and takes the other one's; places are used in turn, as steps use them. */
static void record(uint32_t bytes)
{
    check(igrt_cu_capture_begin(gpu(0), &graph), "capture");
    check(igrt_gpus_mark(gpu(0), &mark[0]), "mark");
    igrt_gpus_turn(gpu(0), gpu(1), 0);
    check(igrt_gpus_wait(&ctx.gpus, gpu(1), mark[0]), "wait");
    for (int d = 1; d >= 0; d--) {
        for (int i = 0; i < EXCHANGES; i++) {
            const uint64_t place = (uint64_t)i * 2 * bytes;
            const igrt_crossing x[] = {{slot[!d] + place, value[d], bytes, 0},
                                       {other[d], slot[d] + place, bytes, 1}};
            check(igrt_gpus_cross(gpu(d), ctx.cross[d], 2, x), "cross");
        }
        if (d) {
            check(igrt_gpus_mark(gpu(1), &mark[1]), "mark");
            igrt_gpus_turn(gpu(1), gpu(0), 0);
        }
    }
    check(igrt_gpus_wait(&ctx.gpus, gpu(0), mark[1]), "wait");
    check(igrt_cu_capture_end(gpu(0)), "end");
}
int main(void)
{
    const uint32_t sizes[] = {8 << 10, 64 << 10, 256 << 10};
    unsigned char *at = arena + (64 - (uintptr_t)arena % 64) % 64;
    model_config config = {.struct_size = sizeof config, .arena = at,
                           .arena_bytes = MODEL_ARENA_BYTES(1)};
    check(model_init(&ctx, &config), "init");
    for (int d = 0; d < 2; d++) {
        check(igrt_cu_buffer(gpu(d), MOST, NULL, &value[d]), "memory");
        check(igrt_cu_buffer(gpu(d), MOST, NULL, &other[d]), "memory");
        check(igrt_cu_buffer(gpu(d), (size_t)EXCHANGES * 2 * MOST, NULL, &slot[d]), "memory");
        check(igrt_cu_zero(gpu(d), slot[d], (size_t)EXCHANGES * 2 * MOST), "zero");
        check(igrt_cu_zero(gpu(d), value[d], MOST), "zero");
        check(igrt_cu_finish(gpu(d)), "finish");
    }
    for (int k = 0; k < 3; k++) {
        double least = 1e30;
        record(sizes[k]);
        for (int i = 0; i < RUNS; i++) {
            const double begin = now();
            check(igrt_cu_replay(gpu(0), &graph), "replay");
            check(igrt_cu_finish(gpu(0)), "finish");
            const double one = (now() - begin) / EXCHANGES;
            least = one < least ? one : least;
        }
        printf("exchange of %u KB: %.2f us\n", sizes[k] >> 10, least);
        igrt_cu_free_graph(gpu(0), &graph);
    }
    return 0;
}
"""


def call(*what, **how):
    return subprocess.run([str(w) for w in what], check=True, text=True, **how)


def linked(bundle, program, *flags):
    (bundle / "measure.c").write_text(program)
    left = ("main.c", "model_selftest.c")
    texts = [p.name for p in bundle.iterdir() if p.suffix in (".c", ".S") and p.name not in left]
    cc = ["cc", "-O1", "-D_DEFAULT_SOURCE", *flags, *texts, "-I.", "-o", "measure"]
    call(*cc, "-lm", "-ldl", "-lpthread", cwd=bundle)
    return bundle / "measure"


def exchange(a):
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 256]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    opset = [helper.make_opsetid("", 23)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), a.work / "relu.onnx")
    bundle = a.work / "exchange"
    where = ("--name", "model", "--target", a.target, *TWO)
    call(a.ingot, "compile", a.work / "relu.onnx", "-o", bundle, "-q", *where)
    call(linked(bundle, EXCHANGE, "-std=gnu11"))


def bench(a, file, *flags):
    """Milliseconds of a run, by the GPU alone."""
    what = ("bench", file, "--target", a.target, "--on-device", "--json", *flags)
    done = call(a.ingot, *what, capture_output=True)
    return json.loads(done.stdout.splitlines()[-1])["median_ms"]


def told(what, one, two):
    print(f"{what}: one {one:.3f} ms, two {two:.3f} ms: {2 * one / two:.3f} times", flush=True)


def resnet50(a):
    files = []
    for batch in (64, 128):
        path = a.work / f"resnet50_{batch}.onnx"
        gpu_steps.resnet50(path)
        m = onnx.load(path)
        for w in m.graph.initializer:
            w.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(w).astype(np.float16), w.name))
        for v in (*m.graph.input, *m.graph.output):
            v.type.tensor_type.elem_type = TensorProto.FLOAT16
            v.type.tensor_type.shape.dim[0].dim_value = batch
        onnx.save(m, path)
        files.append(path)
    told("resnet50 f16, 64 images a GPU", bench(a, files[0]), bench(a, files[1], *TWO))


def losses(a, file, flags):
    """The program that prints the losses of steps."""
    bundle = a.work / f"losses{len(flags)}"
    what = ("compile", file, "-o", bundle, "--target", a.target, "--name", "model", "-q")
    call(a.ingot, *what, "--weights", "incbin", "--no-check", *gpu_steps.options("gpt2"), *flags)
    sizes = [f"-D{n}_BYTES={8 * 16 * gpu_steps.LENGTH}" for n in ("X", "TARGET")]
    return linked(bundle, gpu_steps.PROGRAM, "-DINPUT=ids", *sizes)


def gpt2(a):
    random, files = np.random.default_rng(0), {}
    for batch in (8, 16):
        gpu_steps.BATCH = batch
        files[batch] = a.work / f"gpt2_{batch}.onnx"
        gpu_steps.gpt2(files[batch])
        data = random.integers(0, gpu_steps.WORDS, (2, batch, gpu_steps.LENGTH))
        folder = a.work / f"data{batch}"
        folder.mkdir(exist_ok=True)
        for i, value in enumerate((data[0], data[1], np.float32(gpu_steps.RATE["gpt2"]))):
            np.save(folder / f"input_{i}.npy", value)
        for value, name in zip(data, ("x", "target")):
            value.tofile(folder / f"{name}.bin")
    options = gpu_steps.options("gpt2")
    timed = [
        (files[n], *options, *f, "--data", a.work / f"data{n}") for n, f in ((8, ()), (16, TWO))
    ]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        programs = [pool.submit(losses, a, files[16], f) for f in ((), TWO)]
        for run in [pool.submit(bench, a, *t) for t in timed if not a.one]:
            run.result()  # compiled, for what follows
        programs = [p.result() for p in programs]
    if not a.one:
        told("GPT-2 small, a training step in bf16, 8 texts a GPU", *(bench(a, *t) for t in timed))
    command = (gpu_steps.RATE["gpt2"], STEPS)
    for who, program in zip(("one GPU", "two", "two again"), (*programs, programs[1])):
        gpus = ("0,0",) if a.one and program == programs[1] else ()
        done = call(program, *command, *gpus, cwd=a.work / "data16", capture_output=True)
        print(f"losses of 16 texts, {who}: {done.stdout.strip()}", flush=True)
    if not a.one:
        call(a.ingot, "bench", *timed[1], "--target", a.target, "--per-kernel")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    checks = {f.__name__: f for f in (exchange, resnet50, gpt2)}
    p.add_argument("--ingot", required=True, type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("--work", type=pathlib.Path)
    p.add_argument("--target", default="cuda:native")
    p.add_argument("--one", action="store_true")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    a.work = (a.work or pathlib.Path(tempfile.mkdtemp())).resolve()
    a.work.mkdir(parents=True, exist_ok=True)
    for name in a.names or (["gpt2"] if a.one else checks):
        checks[name](a)
    return 0


if __name__ == "__main__":
    sys.exit(main())
