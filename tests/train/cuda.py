#!/usr/bin/env python3
"""A bundle for CUDA whose train_step() and run() share states does what the bundle for C does.

    cuda.py --ingot build/ingot             kernels as C++ beside a stub of the driver (tests/emulator), 7 s
    cuda.py --ingot build/ingot --device    on the GPU of this machine; --precision bf16: products of these

A convolution with its batch norm, a pool and a linear layer, by momentum, gradients of two steps together:
losses of steps with a reset between them, then the results of inference by what they have learned.
Emulated, also larger images in bf16, with gradients of weights and the optimizer on a stream of their
own: in whatever order the streams run, the results are the same.

Exit status 77, skipped: there is no Python with onnx, or nothing that compiles C++.
"""

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

PROGRAM = r"""
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
enum { BATCH = 4, PIXELS = 2*SIDE*SIDE, CLASSES = 5, AGAIN = 2 };
static unsigned seed = 1;
static unsigned draw(void)
{
    return (seed = seed * 1664525u + 1013904223u) >> 8;
}
int main(void)
{
    static model_ctx ctx;
    static float x[BATCH*PIXELS], y[BATCH*CLASSES], loss, rate = 0.05f;
    static int64_t target[BATCH];
    const size_t bytes = (MODEL_ARENA_BYTES(1) + 4096) / 4096 * 4096;
    model_config config = {.struct_size = sizeof config, .arena = aligned_alloc(4096, bytes),
                           .arena_bytes = bytes};
    model_inputs given = {.x = x};
    model_outputs got = {.logits = y};
    model_train_step_inputs in = {.x = x, .target = target, .rate = &rate};
    model_train_step_outputs out = {.loss = &loss};
    if (model_init(&ctx, &config))
        return 1;
    for (int k = 0; k < STEPS; k++) {
        for (int i = 0; i < BATCH*PIXELS; i++)
            x[i] = (float)draw() / 16777216.0f - 0.5f;
        for (int i = 0; i < BATCH; i++)
            target[i] = draw() % CLASSES;
        if (model_train_step(&ctx, &in, &out))
            return 2;
        printf("%.9g\n", loss);
        if (k == AGAIN && model_reset(&ctx))
            return 3;
    }
    if (model_run(&ctx, &given, &got))
        return 4;
    for (int i = 0; i < BATCH*CLASSES; i++)
        printf("%.9g\n", y[i]);
    model_deinit(&ctx);
    free(config.arena);
    return 0;
}
"""


def save_model(path, side=8, channels=6):
    r = np.random.default_rng(7)

    def weight(name, *size):
        return numpy_helper.from_array((r.normal(size=size) * 0.3).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "b", "mean", "var"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w1", "b1"], ["logits"], transB=1),
    ]
    linear = channels * (side // 2) ** 2
    weights = [weight("w0", channels, 2, 3, 3), weight("w1", 5, linear), weight("b1", 5)]
    weights += [weight(name, channels) for name in ["b0", "scale", "b", "mean"]]
    weights += [numpy_helper.from_array(np.ones(channels, np.float32), "var")]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 2, side, side])
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [4, 5])
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    opset = [helper.make_opsetid("", 15)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def results(a, target, at, device, *more, side=8, steps=7, orders=emulate.ORDERS[:1]):
    """What the program prints, compiled for the target."""
    bundle = at / target.partition(":")[0]
    train = ["--train", "--loss", "cross_entropy:logits", "--optimizer", "momentum"]
    what = [a.ingot, "compile", at / "model.onnx", "-o", bundle, "--target", target, "-q"]
    what += ["--precision", a.precision] * bool(a.precision)
    what += ["--loss-scale", "1024"] * (a.precision == "f16")
    subprocess.run([*what, *train, *more], check=True)
    emulated = device and not a.device
    flags = [f"-DSIDE={side}", f"-DSTEPS={steps}"]
    got = emulate.printed(bundle, PROGRAM, at, emulated, flags, orders=orders)
    if emulated:
        step = (bundle / "model_train_step.c").read_text()
        assert "igrt_gpu_play(&ctx->gpu, &ctx->record_train_step)" in step, "a step is no graph"
    return np.array(got)


def beside_others(a, at):
    """Steps on two streams; sums over the same elements are one."""
    at.mkdir()
    save_model(at / "model.onnx", 32, 16)
    how = ["--precision", "bf16", "--prefer", "time", "--weights", "array"]
    large = {"side": 32, "steps": 3}
    want = results(a, "c", at, False, *how, **large)
    got = results(a, "cuda:sm_90a", at, True, *how, **large, orders=emulate.ORDERS)
    step = (at / "cuda/model_train_step.c").read_text()
    assert "igrt_aside_begin(" in step, "a stream does all"
    assert "f32[2,4,16,32,1]" in step, "two sums are two kernels"
    return (np.abs(want - got) / np.abs(want).max()).max()


def main():
    precision = {"choices": ["bf16", "f16"], "help": "of products, for both"}
    a = emulate.arguments("cuda:sm_80", [("--precision", precision)])
    with tempfile.TemporaryDirectory(prefix="ingot_train_cuda_") as at:
        at = pathlib.Path(at)
        save_model(at / "model.onnx")
        add = ["--accumulate", "2"]
        want, got = (results(a, t, at, t != "c", *add) for t in ("c", a.target))
        assert want.shape == got.shape == (27,)
        assert np.isfinite(want).all()
        worst = np.abs(want - got).max()
        assert worst < (5e-3 if a.precision else 2e-5), (
            f"losses and results: {worst}\n{want}\n{got}"
        )
        print(f"cuda: losses and results as those of C, {worst:.1e} apart at worst")
        if not a.device and not a.precision:
            worst = beside_others(a, at / "large")
            assert worst < 5e-3, worst
            print(f"cuda: two streams, bf16: {worst:.1e} of the range apart at worst")
    return 0


if __name__ == "__main__":
    sys.exit(main())
