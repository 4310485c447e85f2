#!/usr/bin/env python3
"""A prompt of a language model in f16 by ingot and by PyTorch, in turns on this machine's GPU.

    prompt_turns.py --ingot build/ingot [--model 8b] [--prompt 2048] [--rounds 6]

Weights are random, in the shape of Llama 3 8B or Llama 3.2 1B (gpu_time.py). PyTorch's layers are compiled by torch.compile, with
queries, keys and values as one product, gate and up as one, and its attention by FlashAttention or by cuDNN; both sides run
as CUDA graphs with ids and cache on the GPU. A GPU that has computed for a while is slower than one that was idle, so
both take turns, 12 prompts each: told is the median of the rounds' medians, in ms. Judges nothing.

Needs PyTorch with CUDA, numpy, a C compiler.
"""

import argparse
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.pop(0)  # this folder's cuda.py is not the package that PyTorch looks for
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import gpu_time

ATTENTION = {"FlashAttention": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}
TIMES = 12


def turned(x, cos, sin):
    """Rope: pairs that lie side by side."""
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2).half()


def normed(x, w):
    return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-5).half() * w


class Llama:
    """PyTorch's side: one CUDA graph of a prompt of n tokens."""

    def __init__(self, s, n):
        width, head, heads, kv, ffn = (s[k] for k in ("width", "head", "heads", "kv", "ffn"))
        how = {"device": "cuda", "dtype": torch.half}

        def matrix(rows, columns):
            return torch.randn(rows, columns, **how) / math.sqrt(columns)

        self.layers = [
            (
                matrix((heads + 2 * kv) * head, width),
                matrix(width, heads * head),
                matrix(2 * ffn, width),
                matrix(width, ffn),
                *torch.ones(2, width, **how),
                *torch.zeros(2, kv, n, head, **how),
            )
            for _ in range(s["layers"])
        ]
        self.words = torch.randn(s["words"], width, **how)
        self.head = self.words if s.get("tied") else matrix(s["words"], width)
        self.last = torch.ones(width, **how)
        self.ids = torch.randint(s["words"], (n,), device="cuda")
        turns = 500000.0 ** (-torch.arange(0, head, 2, device="cuda") / head)
        angle = torch.arange(n, device="cuda")[:, None, None] * turns
        cos, sin = angle.cos(), angle.sin()

        def layer(x, qkv, o, up, down, first, second, keys, values):
            q, k, v = (
                F.linear(normed(x, first), qkv)
                .unflatten(-1, (-1, head))
                .split((heads, kv, kv), dim=1)
            )
            keys.copy_(turned(k, cos, sin).transpose(0, 1))
            values.copy_(v.transpose(0, 1))
            q = turned(q, cos, sin).transpose(0, 1)[None]
            how = {"is_causal": True, "enable_gqa": True}
            a = F.scaled_dot_product_attention(q, keys[None], values[None], **how)
            x = x + F.linear(a[0].transpose(0, 1).flatten(1), o)
            gate, open_ = F.linear(normed(x, second), up).chunk(2, -1)
            return x + F.linear(F.silu(gate) * open_, down)

        self.layer = torch.compile(layer, dynamic=False)
        self.logits = torch.compile(lambda x: F.linear(normed(x[-1:], self.last), self.head))

    def graph(self, attention):
        def run():
            x = self.words[self.ids]
            for weights in self.layers:
                x = self.layer(x, *weights)
            return self.logits(x)

        torch._dynamo.reset()
        with sdpa_kernel(attention):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(3):
                    run()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                run()
        return graph


def replayed(graph):
    """ms of each of several"""
    ms = []
    for _ in range(TIMES):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        ms.append(begin.elapsed_time(end))
    return ms


def bundle_of(ingot, folder, shape, n):
    """The program that serves prompts (gpu_time.py), and its arguments."""
    path = folder / "model.gguf"
    gpu_time.write(path, shape, "F16")
    how = {"ingot": ingot, "target": "cuda:native", "option": [], "past": [n], "prompts": [n]}
    how["sequences"] = 0
    bundle = gpu_time.build(argparse.Namespace(**how), path, folder / "bundle", shape, 1, 1)
    path.unlink()
    return [bundle / "time", bundle / "model.weights", bundle / "logits", "serve", str(n)]


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    p.add_argument("--model", choices=gpu_time.SHAPES, default="8b")
    p.add_argument("--prompt", type=int, default=2048, help=f"tokens, at most {gpu_time.STEP}")
    p.add_argument("--rounds", type=int, default=6)
    a = p.parse_args()
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = False
    shape = gpu_time.SHAPES[a.model]
    with tempfile.TemporaryDirectory() as folder:
        program = bundle_of(a.ingot, pathlib.Path(folder), shape, a.prompt)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(program, **pipes) as ours:
            llama = Llama(shape, a.prompt)
            graphs = {k: llama.graph(v) for k, v in ATTENTION.items()}
            if ours.stdout.readline() != "ready\n":
                sys.exit("ingot's program failed")

            def asked():
                ours.stdin.write("go\n")
                ours.stdin.flush()
                return [float(x) for x in ours.stdout.readline().split()]

            sides = {"ingot": asked}
            for k, g in graphs.items():
                sides[f"torch.compile, {k}"] = lambda g=g: replayed(g)
            medians = {k: [] for k in sides}
            for r in range(a.rounds):
                for k in list(sides)[:: -1 if r % 2 else 1]:
                    medians[k].append(statistics.median(sides[k]()))
            ours.stdin.close()
    for k, ms in medians.items():
        print(f"{k:30} {statistics.median(ms):8.3f} ms, least round {min(ms):.3f}")


if __name__ == "__main__":
    main()
