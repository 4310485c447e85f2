#!/usr/bin/env python3
"""Scores of many classes in a training step for CUDA: the kernel of their gradient reads each row once, and
stores what the loss needs of it. Sums of columns and the optimizer move 16 bytes at a time.

    rows.py --ingot build/ingot            kernels as C++ beside a stub of the driver (tests/emulator)
    rows.py --ingot build/ingot --device   on the GPU of this machine

Words are looked up, normalised, go through a layer, and are multiplied with all of them; losses of steps in bf16 are beside those of
f32 in C. A label that is no class, and one that does not count, too. Exit status 77, skipped: there is no Python
with onnx, or nothing that compiles C++.
"""

import pathlib
import re
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

ROWS, WIDTH, CLASSES, STEPS = 1152, 64, 8384, 2  # 1,048 pieces of 16 bytes, of 131 eights
HIDDEN, TEXTS = 256, 8
TARGET = "cuda:sm_90a"
TRAIN = ["--train", "--loss", "cross_entropy:logits", "--optimizer", "adamw", "--class-axis", "-1"]

PROGRAM = r"""
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    static model_ctx ctx;
    static int64_t ids[ROWS], target[ROWS];
    static float loss, rate = 3e-3f;
    const size_t bytes = (MODEL_ARENA_BYTES(1) + 4096) / 4096 * 4096;
    model_config config = {.struct_size = sizeof config, .arena = aligned_alloc(4096, bytes),
                           .arena_bytes = bytes};
    model_train_step_inputs in = {.ids = ids, .target = target, .rate = &rate};
    model_train_step_outputs out = {.loss = &loss};
    unsigned seed = 1;
    for (int i = 0; i < ROWS; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids[i] = (seed >> 8) % CLASSES;
        target[i] = i % 9 ? (ids[i] + 1) % CLASSES : -100;
    }
    if (model_init(&ctx, &config))
        return 1;
    for (int k = 0; k < STEPS; k++) {
        if (model_train_step(&ctx, &in, &out))
            return 2;
        printf("%.9g\n", loss);
    }
    target[7] = CLASSES;
    if (model_train_step(&ctx, &in, &out))
        return 3;
    printf("%.9g\n", loss);
    model_deinit(&ctx);
    free(config.arena);
    return 0;
}
"""

COUNTS = r"""
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    static model_ctx ctx;
    static uint16_t x[TEXTS*TERMS*COLUMNS], y[TEXTS*COLUMNS];
    static int count[TEXTS*COLUMNS];
    const size_t bytes = (MODEL_ARENA_BYTES(1) + 4096) / 4096 * 4096;
    model_config config = {.struct_size = sizeof config, .arena = aligned_alloc(4096, bytes),
                           .arena_bytes = bytes};
    model_inputs in = {.x = x};
    model_outputs out = {.y = y};
    unsigned seed = 1;
    for (int i = 0; i < TEXTS*TERMS*COLUMNS; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = seed >> 24 & 1 ? 0x3c00 : 0;
        count[i / (TERMS*COLUMNS) * COLUMNS + i % COLUMNS] += seed >> 24 & 1;
    }
    if (model_init(&ctx, &config) || model_run(&ctx, &in, &out))
        return 1;
    for (int i = 0; i < TEXTS*COLUMNS; i++) { /* f16 from 64 to 127: units of 1/16 */
        const int got = y[i] >> 10 == 21 ? 64 + (y[i] & 1023) / 16 : -1;
        if (got != count[i])
            return 2;
    }
    printf("0\n");
    model_deinit(&ctx);
    free(config.arena);
    return 0;
}
"""
TERMS, COLUMNS = 192, 512


def check_columns(a, at):
    """Sums of columns, of which an item has eight."""
    at.mkdir()
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    axes = numpy_helper.from_array(np.array([1]), "axes")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT16, [TEXTS, TERMS, COLUMNS])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT16, [TEXTS, COLUMNS])
    graph = helper.make_graph([node], "g", [x], [y], [axes])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), at / "model.onnx")
    what = [a.ingot, "compile", at / "model.onnx", "-o", at / "cuda", "--target", TARGET, "-q"]
    subprocess.run(what, check=True)
    text = (at / "cuda/model_kernels.cu").read_text()
    assert "UPCAST i1.i 8 . BIND i1.i.o lane" in text and "igrt_eight_at(" in text, text
    sizes = [f"-D{n}={v}" for n, v in [("TEXTS", TEXTS), ("TERMS", TERMS), ("COLUMNS", COLUMNS)]]
    emulate.printed(at / "cuda", COUNTS, at, not a.device, sizes)
    print("rows: sums of columns")


def save_model(path):
    r = np.random.default_rng(7)

    def weight(name, *size, mean=0.0):
        a = (r.normal(size=size) * 0.1 + mean).astype(np.float32)
        return numpy_helper.from_array(a, name)

    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["x"]),
        helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["n"], axis=-1),
        helper.make_node("Transpose", ["words"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["n", "up"], ["u"]),
        helper.make_node("Add", ["u", "b"], ["v"]),
        helper.make_node("Gelu", ["v"], ["g"], approximate="tanh"),
        helper.make_node("MatMul", ["g", "down"], ["d"]),
        helper.make_node("Add", ["n", "d"], ["y"]),
        helper.make_node("MatMul", ["y", "turned"], ["logits"]),
    ]
    weights = [weight("words", CLASSES, WIDTH), weight("scale", WIDTH, mean=1.0)]
    weights += [weight("bias", WIDTH), weight("b", HIDDEN)]
    weights += [weight("up", WIDTH, HIDDEN), weight("down", HIDDEN, WIDTH)]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [TEXTS, ROWS // TEXTS])
    logits = helper.make_tensor_value_info(
        "logits", TensorProto.FLOAT, [TEXTS, ROWS // TEXTS, CLASSES]
    )
    graph = helper.make_graph(nodes, "g", [ids], [logits], weights)
    opset = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def results(a, target, at, *more):
    bundle = at / target.partition(":")[0]
    what = [a.ingot, "compile", at / "model.onnx", "-o", bundle, "--target", target, "-q"]
    subprocess.run(
        [*what, *TRAIN, "--weights", "array", "--ignore-index", "-100", *more], check=True
    )
    work = bundle.with_suffix(".work")
    work.mkdir()
    sizes = [f"-D{n}={v}" for n, v in [("ROWS", ROWS), ("CLASSES", CLASSES), ("STEPS", STEPS)]]
    emulated = target != "c" and not a.device
    return np.array(emulate.printed(bundle, PROGRAM, work, emulated, sizes))


def check_kernels(text):
    """One kernel has all exponentials: it holds its row, and stores the gradient and two values."""
    comment = re.findall(r"/\* (k\d\d\w*\n(?: \* [^\n]*\n)*)(.*?)\n}\n", text, re.S)
    made = [(head, body) for head, body in comment if "exp_near_f32(" in body]
    assert len(made) == 1, f"{len(made)} kernels have exponentials"
    head, body = made[0]
    assert head.count(" out ") == 3 and head.count(f" out f32[{TEXTS},{ROWS // TEXTS},1]") == 2, (
        head
    )
    assert "igrt_hold_16(" in body and "igrt_pairs_to(" in body, body
    assert " in bf16" in head and "igrt_eight_at(" not in body, "a row is read again"


def check_optimizer(text):
    """Its states, written where they are read, come 16 bytes at a time; a gradient lies as they do."""
    kernels = re.findall(r"/\* (k\d\d[^/]*\*/)(.*?)\n}\n", text, re.S)
    words = [b for h, b in kernels if f"a0 in, out f32[{CLASSES},{WIDTH}]" in h]
    assert len(words) == 1 and "igrt_four_at(a0 + " in words[0], words
    up = [b for h, b in kernels if f"a0 in, out f32[{WIDTH},{HIDDEN}]" in h and " bf16[" in h]
    at = {m for b in up for m in re.findall(r"\ba[023]\[(\w+)\]", b)}
    assert len(up) == 1 and len(at) == 1, up


def main():
    a = emulate.arguments()
    with tempfile.TemporaryDirectory(prefix="ingot_train_rows_") as at:
        at = pathlib.Path(at)
        check_columns(a, at / "columns")
        save_model(at / "model.onnx")
        got = results(a, TARGET, at, "--precision", "bf16", "--prefer", "time")
        text = (at / "cuda/model_kernels.cu").read_text()
        check_kernels(text)
        check_optimizer(text)
        want = results(a, "c", at)
        print("rows: losses", *got, "beside", *want)
        assert np.isfinite(want[:-1]).all() and np.isnan(want[-1]) and np.isnan(got[-1])
        assert want[0] - want[-2] > 0.1, "nothing was learned"
        assert np.abs(want - got)[:-1].max() < 3e-3, np.abs(want - got)
    return 0


if __name__ == "__main__":
    sys.exit(main())
