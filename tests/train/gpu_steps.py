#!/usr/bin/env python3
"""Training steps of resnet50 and GPT-2 small on the GPU of this machine, in bf16, beside PyTorch's.

    gpu_steps.py --ingot build/ingot [--work DIR] [--steps N] [--seeds N] [--rate R]
                 [--beside INGOT] [resnet50] [gpt2]

resnet50 has 32 images and momentum, GPT-2 small 8 texts of 1,024 tokens and AdamW; weights are
random, the same in both. Prints the losses of N steps by ingot, by PyTorch in f32 and with autocast to
bf16, and ms a step of ingot's, as `ingot bench --train --on-device` has them. With --per-kernel the
slowest kernels, too. A loss rounds differently in each step, so of several --seeds, each with data of its
own, the mean distance of all losses from PyTorch's in f32 says more than one of them; --beside has it for
another compiler as well. Judges nothing. Needs PyTorch with CUDA, onnx, nvcc's driver, a C compiler.
"""

import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile

sys.path.pop(0)  # this folder's cuda.py is not the package that PyTorch looks for
import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

LAYERS, WIDTH, HEADS, WORDS, BATCH, LENGTH = 12, 768, 12, 50304, 8, 1024
BLOCKS = [(64, 3), (128, 4), (256, 6), (512, 3)]
OPTIONS = {  # like PyTorch, they hold what they could compute again
    "resnet50": ["--optimizer", "momentum", "--prefer", "time"],
    "gpt2": ["--optimizer", "adamw", "--class-axis", "-1", "--prefer", "time"],
}
RATE = {"resnet50": 0.01, "gpt2": 1e-3}

PROGRAM = r"""
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
static FILE *opened(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        exit(9);
    return f;
}
int main(int argc, char **argv)
{
    static model_ctx ctx;
    const size_t bytes = (MODEL_ARENA_BYTES(1) + 4096) / 4096 * 4096;
    model_config config = {.struct_size = sizeof config, .arena = aligned_alloc(4096, bytes),
                           .arena_bytes = bytes};
    float loss, rate = (float)atof(argv[1]);
    config.gpu = argc > 3 ? argv[3] : NULL;
    void *x = malloc(X_BYTES), *target = malloc(TARGET_BYTES);
    FILE *xs = opened("x.bin"), *targets = opened("target.bin");
    model_train_step_inputs in = {.INPUT = x, .target = target, .rate = &rate};
    model_train_step_outputs out = {.loss = &loss};
    if (argc < 3 || !x || !target || model_init(&ctx, &config))
        return 1;
    while (fread(x, 1, X_BYTES, xs) == X_BYTES &&
           fread(target, 1, TARGET_BYTES, targets) == TARGET_BYTES) {
        for (int i = 0; i < atoi(argv[2]); i++) {
            if (model_train_step(&ctx, &in, &out))
                return 2;
            printf("%.6f ", loss);
        }
        printf("\n");
        if (model_reset(&ctx))
            return 3;
    }
    return 0;
}
"""


class Graph:
    """Nodes and weights of a file, as they are made."""

    def __init__(self):
        self.nodes, self.weights, self.random = [], [], np.random.default_rng(1)

    def weight(self, name, *dims, scale=None, value=None):
        if value is None:
            a = self.random.standard_normal(dims, dtype=np.float32)
            a *= np.float32(scale or (2 / np.prod(dims[1:])) ** 0.5)
        else:
            a = np.full(dims, value, np.float32)
        self.weights.append(numpy_helper.from_array(a, name))
        return name

    def node(self, op, inputs, out=None, **attributes):
        out = out or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [out], **attributes))
        return out

    def save(self, path, given, dims):
        x = helper.make_tensor_value_info(*given)
        y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, dims)
        graph = helper.make_graph(self.nodes, "g", [x], [y], self.weights)
        opset = [helper.make_opsetid("", 23)]
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), path)


def convolution(g, x, number, i, o, taps, stride, relu=True, last=False):
    name = f"c{number}"
    w = g.weight(f"{name}.w", o, i, taps, taps)
    pads = [taps // 2] * 4
    x = g.node("Conv", [x, w], kernel_shape=[taps] * 2, strides=[stride] * 2, pads=pads)
    scale = g.weight(f"{name}.scale", o, value=0.2 if last else 1)
    rest = [g.weight(f"{name}.{n}", o, value=n == "var") for n in ("bias", "mean", "var")]
    x = g.node("BatchNormalization", [x, scale, *rest], epsilon=1e-5)
    return g.node("Relu", [x]) if relu else x


def resnet50(path):
    g, n, i = Graph(), 1, 64
    x = convolution(g, "x", 1, 3, 64, 7, 2)
    x = g.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, (c, blocks) in enumerate(BLOCKS):
        for j in range(blocks):
            stride = 2 if stage and not j else 1
            y = convolution(g, x, n + 1, i, c, 1, 1)
            y = convolution(g, y, n + 2, c, c, 3, stride)
            y = convolution(g, y, n + 3, c, 4 * c, 1, 1, relu=False, last=True)
            n += 3
            if not j:
                n += 1
                x = convolution(g, x, n, i, 4 * c, 1, stride, relu=False)
            x, i = g.node("Relu", [g.node("Add", [y, x])]), 4 * c
    x = g.node("Flatten", [g.node("GlobalAveragePool", [x])])
    w, b = g.weight("fc.w", 1000, i, scale=0.02), g.weight("fc.b", 1000, value=0)
    g.node("Gemm", [x, w, b], "logits", transB=1)
    g.save(path, ("x", TensorProto.FLOAT, [32, 3, 224, 224]), [32, 1000])


def gpt2(path):
    g = Graph()

    def norm(x, name):
        w = [g.weight(f"{name}.scale", WIDTH, value=1), g.weight(f"{name}.bias", WIDTH, value=0)]
        return g.node("LayerNormalization", [x, *w], axis=-1, epsilon=1e-5)

    def linear(x, name, i, o):
        product = g.node("MatMul", [x, g.weight(f"{name}.w", i, o, scale=0.02)])
        return g.node("Add", [product, g.weight(f"{name}.b", o, value=0)])

    words = g.weight("words", WORDS, WIDTH, scale=0.02)
    g.weights.append(numpy_helper.from_array(np.arange(LENGTH), "at"))
    places = g.node("Gather", [g.weight("places", LENGTH, WIDTH, scale=0.02), "at"])
    x = g.node("Add", [g.node("Gather", [words, "ids"]), places])
    for i in range(LAYERS):
        a = linear(norm(x, f"{i}.norm1"), f"{i}.qkv", WIDTH, 3 * WIDTH)
        parts = [f"{i}.{part}" for part in "qkv"]
        g.nodes.append(helper.make_node("Split", [a], parts, axis=2, num_outputs=3))
        y = g.node("Attention", parts, q_num_heads=HEADS, kv_num_heads=HEADS, is_causal=1)
        x = g.node("Add", [x, linear(y, f"{i}.proj", WIDTH, WIDTH)])
        y = linear(norm(x, f"{i}.norm2"), f"{i}.up", WIDTH, 4 * WIDTH)
        y = linear(g.node("Gelu", [y], approximate="tanh"), f"{i}.down", 4 * WIDTH, WIDTH)
        x = g.node("Add", [x, y])
    g.node("MatMul", [norm(x, "norm"), g.node("Transpose", [words], perm=[1, 0])], "logits")
    g.save(path, ("ids", TensorProto.INT64, [BATCH, LENGTH]), [BATCH, LENGTH, WORDS])


# ---- the same in PyTorch ---------------------------------------------------------------------------


def torch_resnet50(w, x, target):
    n = 0

    def conv(x, taps, stride, relu=True):
        nonlocal n
        n += 1
        x = F.conv2d(x, w[f"c{n}.w"], None, stride, taps // 2)
        x = F.batch_norm(x, None, None, w[f"c{n}.scale"], w[f"c{n}.bias"], True, 0.1, 1e-5)
        return F.relu(x) if relu else x

    x = F.max_pool2d(conv(x, 7, 2), 3, 2, 1)
    for stage, (_, blocks) in enumerate(BLOCKS):
        for j in range(blocks):
            stride = 2 if stage and not j else 1
            y = conv(conv(conv(x, 1, 1), 3, stride), 1, 1, relu=False)
            x = F.relu(y + (x if j else conv(x, 1, stride, relu=False)))
    y = F.linear(x.mean((2, 3)), w["fc.w"], w["fc.b"])
    return F.cross_entropy(y.float(), target)


def torch_gpt2(w, ids, target):
    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), w[f"{name}.scale"], w[f"{name}.bias"])

    def linear(x, name):
        return F.linear(x, w[f"{name}.w"].t(), w[f"{name}.b"])

    x = F.embedding(ids, w["words"]) + w["places"]
    for i in range(LAYERS):
        parts = linear(norm(x, f"{i}.norm1"), f"{i}.qkv").split(WIDTH, 2)
        q, k, v = (p.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(y.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH), f"{i}.proj")
        y = F.gelu(linear(norm(x, f"{i}.norm2"), f"{i}.up"), approximate="tanh")
        x = x + linear(y, f"{i}.down")
    y = F.linear(norm(x, "norm"), w["words"])
    return F.cross_entropy(y.float().view(-1, WORDS), target.view(-1))


def torch_losses(name, file, x, target, steps, narrow):
    loss_of = {"resnet50": torch_resnet50, "gpt2": torch_gpt2}[name]
    w, losses = {}, []
    for i in onnx.load(file).graph.initializer:
        a = torch.from_numpy(numpy_helper.to_array(i).copy()).cuda()
        w[i.name] = a.requires_grad_(
            a.is_floating_point() and not i.name.endswith((".mean", ".var"))
        )
    trained = [a for a in w.values() if a.requires_grad]
    momentum = torch.optim.SGD(trained, RATE[name], momentum=0.9)
    optimizer = momentum if name == "resnet50" else torch.optim.AdamW(trained, RATE[name])
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=narrow):
            loss = loss_of(w, x, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def options(name):
    return ["--train", "--loss", "cross_entropy:logits", *OPTIONS[name], "--precision", "bf16"]


def compiled(ingot, name, file, work, seeds):
    """The program that prints losses, of a compiler; it lies in a folder of its own."""
    bundle = work / f"{name}.{ingot.parent.name}.c"
    how = ["--target", "cuda:native", "--name", "model", "--weights", "incbin", "-q", "--no-check"]
    subprocess.run([ingot, "compile", file, "-o", bundle, *how, *options(name)], check=True)
    (bundle / "steps.c").write_text(PROGRAM)
    sizes = {n: (work / f"{name}/{n}.bin").stat().st_size // seeds for n in ("x", "target")}
    flags = [f"-D{n.upper()}_BYTES={size}" for n, size in sizes.items()]
    flags.append(f"-DINPUT={'x' if name == 'resnet50' else 'ids'}")
    left = ("main.c", "model_selftest.c")
    texts = [p.name for p in bundle.iterdir() if p.suffix in (".c", ".S") and p.name not in left]
    cc = ["cc", "-O1", "-D_DEFAULT_SOURCE", *flags, *texts, "-I.", "-o", "steps"]
    subprocess.run([*cc, "-lm", "-ldl", "-lpthread"], cwd=bundle, check=True)
    return bundle / "steps"


def ingot_losses(program, name, work, steps):
    command = [program, str(RATE[name]), str(steps)]
    done = subprocess.run(command, cwd=work / name, check=True, capture_output=True, text=True)
    return np.array([line.split() for line in done.stdout.splitlines()], np.float64)


def tell_losses(name, losses):
    exact = losses["PyTorch, f32"]
    for who, all_of in losses.items():
        apart = abs(all_of - exact)
        figures = f"{apart.mean():.2e} from f32, {apart.max():.2e} at most" if apart.any() else ""
        first = " ".join(f"{v:.6f}" for v in all_of[0])
        print(f"{name}: {who:13} {first}  {figures}", flush=True)


def data_of(name, seeds):
    random = np.random.default_rng(0)
    if name == "gpt2":
        sets = [random.integers(0, WORDS, (2, BATCH, LENGTH)) for _ in range(seeds)]
        return [s[0] for s in sets], [s[1] for s in sets]
    x = [random.random((32, 3, 224, 224), np.float32) for _ in range(seeds)]
    return x, [random.integers(0, 1000, 32) for _ in range(seeds)]


def main():
    p = argparse.ArgumentParser()
    program = {"type": lambda s: pathlib.Path(s).resolve()}
    p.add_argument("--ingot", required=True, **program)
    p.add_argument("--beside", **program)
    p.add_argument("--work", type=pathlib.Path)
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("--rate", type=float, help="of the optimizer, in place of each network's own")
    p.add_argument("--per-kernel", action="store_true")
    p.add_argument("names", nargs="*", default=list(OPTIONS))
    a = p.parse_args()
    RATE.update({name: a.rate for name in RATE if a.rate})
    work = (a.work or pathlib.Path(tempfile.mkdtemp())).resolve()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    pool, programs, data = concurrent.futures.ThreadPoolExecutor(), {}, {}
    compilers = {"ingot, bf16": a.ingot, **({"beside, bf16": a.beside} if a.beside else {})}
    for name in a.names:
        (work / name).mkdir(parents=True, exist_ok=True)
        (resnet50 if name == "resnet50" else gpt2)(work / f"{name}.onnx")
        data[name] = data_of(name, a.seeds)
        for values, part in zip(data[name], ("x", "target")):
            np.stack(values).tofile(work / f"{name}/{part}.bin")
        for who, ingot in compilers.items():
            given = (ingot, name, work / f"{name}.onnx", work, a.seeds)
            programs[name, who] = pool.submit(compiled, *given)
    for name in a.names:
        file, losses = work / f"{name}.onnx", {}
        for who in compilers:
            losses[who] = ingot_losses(programs[name, who].result(), name, work, a.steps)
        for who, narrow in (("PyTorch, f32", False), ("PyTorch, bf16", True)):
            sets = [[torch.from_numpy(v).cuda() for v in s] for s in zip(*data[name])]
            losses[who] = np.array([torch_losses(name, file, *s, a.steps, narrow) for s in sets])
        tell_losses(name, losses)
        bench = [a.ingot, "bench", file, "--target", "cuda:native", "--on-device", *options(name)]
        for i, value in enumerate((data[name][0][0], data[name][1][0], np.float32(RATE[name]))):
            np.save(work / f"{name}/input_{i}.npy", value)
        bench += ["--data", work / name]  # words that bench draws are few, and meet in sums
        subprocess.run(bench + ["--per-kernel"] * a.per_kernel, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
