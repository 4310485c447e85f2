#!/usr/bin/env python3
"""A training step of causal attention over long rows, whose kernels for CUDA make the shares of their rows
again in the backward pass, does what the bundle for C does.

    attention.py --ingot build/ingot            kernels as C++ beside a stub of the driver (tests/emulator)
    attention.py --ingot build/ingot --device   on the GPU of this machine

Queries, keys and values are products of one input; results after two steps are beside those of f32. No buffer
of the CUDA bundle has an element for each pair of rows. Exit status 77, skipped: there is no Python with
onnx, or nothing that compiles C++.
"""

import json
import pathlib
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

ROWS, WIDTH = 576, 64
TARGET = "cuda:sm_90a"
TRAIN = ["--train", "--loss", "mse:y", "--optimizer", "sgd"]

PROGRAM = r"""
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
enum { SIZE = ROWS*WIDTH, STEPS = 2 };
int main(void)
{
    static model_ctx ctx;
    static float x[SIZE], y[SIZE], target[SIZE], loss, rate = 300.0f;
    const size_t bytes = (MODEL_ARENA_BYTES(1) + 4096) / 4096 * 4096;
    model_config config = {.struct_size = sizeof config, .arena = aligned_alloc(4096, bytes),
                           .arena_bytes = bytes};
    model_inputs given = {.x = x};
    model_outputs got = {.y = y};
    model_train_step_inputs in = {.x = x, .target = target, .rate = &rate};
    model_train_step_outputs out = {.loss = &loss};
    unsigned seed = 1;
    for (int i = 0; i < SIZE; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
        seed = seed * 1664525u + 1013904223u;
        target[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
    if (model_init(&ctx, &config))
        return 1;
    for (int k = 0; k <= STEPS; k += STEPS) {
        for (int i = 0; i < k; i++)
            if (model_train_step(&ctx, &in, &out))
                return 2;
        if (model_run(&ctx, &given, &got))
            return 3;
        for (int i = 0; i < SIZE; i++)
            printf("%.9g\n", y[i]);
    }
    model_deinit(&ctx);
    free(config.arena);
    return 0;
}
"""


def save_model(path):
    r = np.random.default_rng(7)
    weights = [
        numpy_helper.from_array(r.normal(size=(WIDTH, WIDTH)).astype(np.float32) * 0.2, f"w{i}")
        for i in range(3)
    ]
    nodes = [helper.make_node("MatMul", ["x", f"w{i}"], [f"p{i}"]) for i in range(3)]
    nodes += [
        helper.make_node(
            "Attention", ["p0", "p1", "p2"], ["y"], is_causal=1, q_num_heads=1, kv_num_heads=1
        )
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, ROWS, WIDTH])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, ROWS, WIDTH])
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    opset = [helper.make_opsetid("", 23)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), path)


def results(a, target, at, *more):
    bundle = at / target.partition(":")[0]
    what = [a.ingot, "compile", at / "model.onnx", "-o", bundle, "--target", target, "-q"]
    subprocess.run([*what, *TRAIN, *more], check=True)
    program = PROGRAM
    for name, value in [("ROWS", ROWS), ("WIDTH", WIDTH)]:
        program = program.replace(name, str(value))
    work = bundle.with_suffix(".work")
    work.mkdir()
    emulated = target != "c" and not a.device
    return np.array(emulate.printed(bundle, program, work, emulated)).reshape(2, -1)


def check_buffers(a, at, *more):
    """No tensor of a step has as many elements as scores."""
    what = [a.ingot, "inspect", at / "model.onnx", "--target", TARGET, "--function", "train_step"]
    got = subprocess.run([*what, *TRAIN, *more, "--json"], check=True, capture_output=True)
    most = max(t["bytes"] for t in json.loads(got.stdout)["tensors"])
    assert most < ROWS * ROWS * 2, f"a tensor of {most} bytes"


def main():
    a = emulate.arguments()
    with tempfile.TemporaryDirectory(prefix="ingot_train_attention_") as at:
        at = pathlib.Path(at)
        save_model(at / "model.onnx")
        narrow = ["--precision", "bf16", "--prefer", "time"]
        check_buffers(a, at, *narrow)
        want, got = results(a, "c", at), results(a, TARGET, at, *narrow)
        moved = np.abs(want[1] - want[0]).max()
        worst = np.abs(want - got).max()
        print(f"attention: {worst:.1e} from f32 at worst, of {moved:.1e} that two steps moved")
        assert want.shape == got.shape and np.isfinite(want).all()
        assert worst < 0.02 * moved
    return 0


if __name__ == "__main__":
    sys.exit(main())
