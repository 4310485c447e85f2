#!/usr/bin/env python3
"""Processes train one network, each on a GPU of its own, by host/igrt_nccl.h: they have the losses of
one process in C that has all of the batch, each time the same bytes.

    nccl.py --ingot build/ingot        kernels as C++ beside a stub of the driver (tests/emulator), and a
                                       stub of NCCL in memory that the processes share; 10 s
    nccl.py --ingot build/ingot --device     the GPUs and the NCCL of this machine; where there is only one
                                       GPU, a communicator of one process that says it is two: its
                                       means are its own values

The id of the first process comes by a file, and by the environment that torchrun makes. Found are a
sum in the place of a mean, and processes that ask for different sums; told are a library that is none,
a file of another run, and a GPU that is not there.

Exit status 77, skipped: there is no Python with onnx, or nothing that compiles C++.
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "emulator"))
try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    import emulate
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

ALL, STEPS = 32, 12
PROGRAM = r"""
#include "model.h"
#ifdef GPU
#include "igrt_nccl.h"
#endif
#include <stdio.h>
#include <stdlib.h>
enum { ALL = 32, PIXELS = 24, CLASSES = 5, OWN = ALL / PROCESSES };
static unsigned seed = 1;
static unsigned draw(void)
{
    return (seed = seed * 1664525u + 1013904223u) >> 8;
}
int main(int argc, char **argv)
{
    static model_ctx ctx;
    static _Alignas(256) float x[ALL*PIXELS], loss, rate = 0.1f;
    static _Alignas(256) int64_t target[ALL];
    const size_t bytes = (MODEL_ARENA_BYTES(1) + 4096) / 4096 * 4096;
    model_config config = {.struct_size = sizeof config, .arena = aligned_alloc(4096, bytes),
                           .arena_bytes = bytes,
                           .flags = getenv("ON_DEVICE") ? IGRT_ON_DEVICE : 0};
    int rank = 0;
#ifdef GPU
    static igrt_nccl nccl;
    const int gpu = argc > 4 ? atoi(argv[4]) : 0;
    if (argc > 3 ? igrt_nccl_file(&nccl, atoi(argv[1]), atoi(argv[2]), argv[3], gpu)
                 : igrt_nccl_torchrun(&nccl, 0)) {
        fprintf(stderr, "%s\n", nccl.why);
        return 5;
    }
    if (nccl.comm.size == 1)
        nccl.comm.size = 2;
    rank = nccl.comm.rank;
    config.comm = &nccl.comm;
    config.gpu = nccl.gpu;
#else
    (void)argc;
    (void)argv;
#endif
    model_train_step_inputs in = {.x = x + rank * OWN * PIXELS, .target = target + rank * OWN,
                                  .rate = &rate};
    model_train_step_outputs out = {.loss = &loss};
    int status = (int)model_init(&ctx, &config);
    if (status) {
        fprintf(stderr, "init %d %s\n", status, ctx.fault.what ? ctx.fault.what : "");
        return 1;
    }
    for (int k = 0; k < STEPS; k++) {
        for (int i = 0; i < ALL*PIXELS; i++)
            x[i] = (float)draw() / 16777216.0f - 0.5f;
        for (int i = 0; i < ALL; i++)
            target[i] = draw() % CLASSES;
        status = (int)model_train_step(&ctx, &in, &out);
        if (status) {
            fprintf(stderr, "step %d\n", status);
            return 2;
        }
        printf("%.9g\n", loss);
    }
    model_deinit(&ctx);
#ifdef GPU
    igrt_nccl_end(&nccl);
#endif
    free(config.arena);
    return 0;
}
"""


def save_model(path, batch):
    r = np.random.default_rng(7)

    def weight(name, *size):
        return numpy_helper.from_array((r.normal(size=size) * 0.3).astype(np.float32), name)

    nodes = [
        helper.make_node("Gemm", ["x", "w0", "b0"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w1", "b1"], ["logits"]),
    ]
    weights = [weight("w0", 24, 40), weight("b0", 40), weight("w1", 40, 5), weight("b1", 5)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 24])
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, 5])
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    opset = [helper.make_opsetid("", 15)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def built(a, at, target, processes, change=lambda text: text):
    """The program of a process that has its part of the batch."""
    bundle = at / f"{target.partition(':')[0]}{processes}"
    save_model(at / "model.onnx", ALL // processes)
    what = ["--train", "--loss", "cross_entropy:logits", "--optimizer", "momentum"]
    what += ["--processes"] * (target != "c")
    made = [a.ingot, "compile", at / "model.onnx", "-o", bundle, "--target", target, "-q"]
    subprocess.run([*made, *what], check=True)
    header = bundle / "host/igrt_nccl.h"
    if header.exists():
        header.write_text(change(header.read_text()))
    (at / "main.c").write_text(PROGRAM)
    flags = "-std=gnu11 -O1 -Wall -Wextra -Werror".split()
    flags += [f"-DPROCESSES={processes}", f"-DSTEPS={STEPS}", *["-DGPU"] * (target != "c")]
    emulate.call("make", "-s", "-C", bundle, "libmodel.a")
    files = [at / "main.c", bundle / "libmodel.a", "-lm", "-lpthread", "-ldl"]
    folders = [f"-I{bundle}", f"-I{bundle / 'host'}"]
    emulate.call("cc", *flags, *folders, "-o", bundle / "main", *files)
    return bundle


def together(commands):
    """What processes print that run beside each other, and their greatest status."""
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [
        subprocess.Popen([*map(str, c)], env={**os.environ, **e}, **pipe) for c, e in commands
    ]
    told = [p.communicate() for p in running]
    return max(abs(p.returncode) for p in running), told


def by_file(program, env, size, at):
    path = at / "id"
    gpus = [0] * size if env else range(size)
    return together([([program, i, size, path, gpus[i]], env) for i in range(size)])


def by_torchrun(program, env, size):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    of = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port - 1)}
    local = (lambda _: "0") if env else str
    of = [{**of, **env, "RANK": str(i), "LOCAL_RANK": local(i)} for i in range(size)]
    return together([([program], e) for e in of])


def losses(told):
    status, printed = told
    assert status == 0, f"status {status}: {printed}"
    assert all(out == printed[0][0] for out, _ in printed), f"processes differ: {printed}"
    return np.array([float(v) for v in printed[0][0].split()])


def stubs(bundle, at):
    """The environment of the emulated driver and of the stub of NCCL."""
    emulate.driver(bundle, at / "driver")
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    made = at / "driver/libnccl.so.2"
    emulate.call("cc", *flags, HERE / "nccl_stub.c", "-o", made, "-ldl")
    return {**emulate.environment(at / "driver", emulate.ORDERS[0]), "NCCL_STUB_AT": str(at)}


def emulated(a, at):
    one = losses(together([([built(a, at, "c", 1) / "main"], {})]))
    program = built(a, at, a.target, 2) / "main"
    env = stubs(program.parent, at)
    two, again = (losses(by_file(program, env, 2, at)) for _ in range(2))
    other = losses(by_torchrun(program, env, 2))
    on_device = losses(by_file(program, {**env, "ON_DEVICE": "1"}, 2, at))
    runs = (again, other, on_device)
    assert all((two == x).all() for x in runs), "other bytes in another run"
    worst = np.abs(one - two).max()
    assert worst < 2e-5, f"{worst}\n{one}\n{two}"
    step = (program.parent / "model_train_step.c").read_text()
    assert "igrt_gpu_play(&ctx->gpu, &ctx->record_train_step)" in step, "a step is no graph"
    for wrong, why in (
        ({"INGOT_NCCL": "/nowhere.so"}, "cannot be opened: install NCCL"),
        ({"INGOT_NCCL": str(at / "driver/libcuda.so.1")}, "is not NCCL"),
    ):
        status, printed = by_file(program, {**env, **wrong}, 1, at)
        assert status == 5 and why in printed[0][1], printed
    status, printed = together([([program, 0, 1, at / "id", 99], env)])
    assert status and "GPU" in printed[0][1], printed
    (at / "id").write_bytes(b"of a run that has ended")
    status, printed = by_file(program, env, 1, at)
    assert status == 5 and "already" in printed[0][1], printed
    (at / "id").unlink()
    for what, change in (
        (
            "a sum, not a mean",
            lambda t: t.replace("mean ? IGRT_NCCL_AVG", "mean < 0 ? IGRT_NCCL_AVG"),
        ),
        (
            "other sums",
            lambda t: t.replace("data, data, count,", "data, data, count - n->comm.rank,"),
        ),
    ):
        bad = built(a, at, a.target, 2, change) / "main"
        status, printed = by_file(bad, env, 2, at)
        found = (
            status or np.abs(np.array([float(v) for v in printed[0][0].split()]) - one).max() > 1e-3
        )
        assert found, f"{what} is not found"
    print(f"two processes with emulated GPUs, one in C: losses {worst:.1e} apart at worst")


def on_device(a, at):
    one = losses(together([([built(a, at, "c", 1) / "main"], {})]))
    size = 2 if a.gpus > 1 else 1
    program = built(a, at, "cuda:native", size) / "main"
    (at / "id").unlink(missing_ok=True)
    two, again = (losses(by_file(program, {}, size, at)) for _ in range(2))
    other = losses(by_torchrun(program, {}, size))
    assert (two == again).all() and (two == other).all(), "other bytes in another run"
    worst = np.abs(one - two).max()
    assert worst < 2e-5, f"{worst}\n{one}\n{two}"
    print(f"NCCL, {size} processes and GPUs: losses {worst:.1e} apart at worst from C")


def main():
    gpus = {"type": int, "default": 1, "help": "that this machine has"}
    a = emulate.arguments("cuda:sm_80", [("--gpus", gpus)])
    a.ingot = pathlib.Path(a.ingot).resolve()
    with tempfile.TemporaryDirectory(prefix="ingot_nccl_") as at:
        (on_device if a.device else emulated)(a, pathlib.Path(at))
    return 0


if __name__ == "__main__":
    sys.exit(main())
