#!/usr/bin/env python3
"""Language models in GGUF files compute what numpy computes, in f64 and from each family's definition.

    decoder.py --logits build/tests/gguf_logits --ingot build/ingot     9 s

    families  a tiny file of each, whose weights are of all types in turns; the interpreter's logits after 12 tokens
    bytes     --precision q8, q16: each kernel beside its naive form, and the error of all of it
    bundle    one of them compiled: prompts in chunks of 1 (by decode()), 5 and 12; four tokens are
              forgotten and come again; then one token at a time; a full cache is a status; with caches
              of f16 and of f32; decode() has no weights of its own
    head      an embedding that is the head too lies in the file once, whatever packs it
    dots      digits whose neighbours share a byte of the file are multiplied by dots of bytes, too
    panels    of results in blocks, too, all rows read a panel of weights before the next one
    refused   what is not known is refused by name, all of it at once

Exit status 77, skipped: there is no numpy.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import gguf_file as gguf

WIDTH, HEAD, HEADS, KV_HEADS, FFN, WORDS, LAYERS, WINDOW = 256, 64, 4, 2, 256, 96, 3, 5
PROMPT = [3, 17, 90, 4, 4, 55, 21, 8, 70, 33, 12, 61]
CACHE = np.float16  # of keys and values; "q8": bytes, and a scale for each 32
# of the range of the logits: f32 beside f64, and where f64's keys round to another f16
NEAR = 1e-3

MIXED = tuple(kind for kind in gguf.TYPES if kind not in gguf.LISTED)

COMMON = {
    "block_count": LAYERS,
    "context_length": 64,
    "embedding_length": WIDTH,
    "feed_forward_length": FFN,
    "attention.head_count": HEADS,
    "attention.head_count_kv": KV_HEADS,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.freq_base": 1000.0,
}
# what a family has: its own keys, and what its layers compute
FAMILIES = {
    "llama": dict(
        keys={"rope.dimension_count": 32},
        turns="neighbours",
        rope_freqs=True,
        biases=("attn_output",),
    ),
    "qwen2": dict(biases=("attn_q", "attn_k", "attn_v"), head=True),
    "qwen3": dict(
        keys={
            "attention.key_length": HEAD,
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": 4.0,
            "rope.scaling.original_context_length": 16,
        },
        head_norms=True,
    ),
    "gemma": dict(gelu=True, root=True),
    "gemma2": dict(
        keys={
            "attention.sliding_window": WINDOW,
            "attn_logit_softcapping": 5.0,
            "final_logit_softcapping": 3.0,
        },
        gelu=True,
        root=True,
        post_norms=True,
        pattern=2,
    ),
    "gemma3": dict(
        keys={
            "attention.sliding_window": WINDOW,
            "attention.sliding_window_pattern": 3,
            "rope.scaling.type": "linear",
            "rope.scaling.factor": 8.0,
            "rope.freq_base": 100000.0,
        },
        gelu=True,
        root=True,
        post_norms=True,
        head_norms=True,
        pattern=3,
    ),
    "phi3": dict(
        keys={
            "attention.sliding_window": WINDOW,
            "rope.scaling.original_context_length": 32,
            "rope.scaling.attn_factor": 1.25,
        },
        joined=True,
        pattern=1,
        factors=True,
        head=True,
    ),
    "smollm3": dict(turns="neighbours", without_rope=4),
    "granite": dict(
        keys={
            "attention.scale": 0.2,
            "embedding_scale": 3.0,
            "residual_scale": 0.5,
            "logit_scale": 2.0,
        },
        turns="neighbours",
    ),
}


class Model:
    """A file of random weights, and what they are in f64."""

    def __init__(self, family, seed, words=WORDS, kinds=MIXED, layers=LAYERS, width=WIDTH):
        self.family, self.facts = family, FAMILIES[family]
        self.keys = {**COMMON, **self.facts.get("keys", {})}
        self.width = self.keys["embedding_length"] = width
        if width != HEADS * HEAD:
            self.keys["attention.key_length"] = self.keys["attention.value_length"] = HEAD
        self.layers = 4 if family == "smollm3" else layers
        self.keys["block_count"] = self.layers
        self.rng, self.tensors, self.w, self.turn = np.random.default_rng(seed), {}, {}, seed
        self.kinds = kinds
        self.matrix("token_embd.weight", words, self.width, 1.0)
        if self.facts.get("head"):
            self.matrix("output.weight", words, self.width, 0.1)
        self.vector("output_norm.weight", self.width)
        if self.facts.get("rope_freqs"):
            self.vector("rope_freqs.weight", self.keys["rope.dimension_count"] // 2)
        if self.facts.get("factors"):
            self.vector("rope_factors_long.weight", HEAD // 2)
            self.vector("rope_factors_short.weight", HEAD // 2)
        for i in range(self.layers):
            self.layer(f"blk.{i}.")

    def matrix(self, name, rows, columns, size=0.12):
        kind = self.kinds[self.turn % len(self.kinds)]
        self.turn += 1
        body = gguf.random_weights(self.rng, kind, rows, columns, size)
        self.tensors[name] = kind, (rows, columns), body
        self.w[name] = gguf.dequantised(kind, body, rows, columns)
        if name.endswith(".weight") and name[:-7].split(".")[-1] in self.facts.get("biases", ()):
            self.vector(name.replace("weight", "bias"), rows, 0)

    def vector(self, name, n, mean=1.0):
        x = (self.rng.standard_normal(n) * 0.1 + mean).astype(np.float32)
        self.tensors[name] = "F32", (n,), x.tobytes()
        self.w[name] = x.astype(float)

    def layer(self, p):
        q, kv = HEADS * HEAD, KV_HEADS * HEAD
        self.vector(p + "attn_norm.weight", self.width)
        if self.facts.get("joined"):
            self.matrix(p + "attn_qkv.weight", q + 2 * kv, self.width)
        else:
            for name, rows in (("q", q), ("k", kv), ("v", kv)):
                self.matrix(p + f"attn_{name}.weight", rows, self.width)
        if self.facts.get("head_norms"):
            self.vector(p + "attn_q_norm.weight", HEAD)
            self.vector(p + "attn_k_norm.weight", HEAD)
        self.matrix(p + "attn_output.weight", self.width, q)
        self.vector(p + "ffn_norm.weight", self.width)
        if self.facts.get("joined"):
            self.matrix(p + "ffn_up.weight", 2 * FFN, self.width)
        else:
            self.matrix(p + "ffn_gate.weight", FFN, self.width)
            self.matrix(p + "ffn_up.weight", FFN, self.width)
        self.matrix(p + "ffn_down.weight", self.width, FFN)
        if self.facts.get("post_norms"):
            self.vector(p + "post_attention_norm.weight", self.width)
            self.vector(p + "post_ffw_norm.weight", self.width)

    def write(self, path, **more):
        keys = {
            "general.architecture": self.family,
            **{f"{self.family}.{k}": v for k, v in self.keys.items()},
            **more,
        }
        gguf.write(path, keys, self.tensors)
        return path

    # ---- what it computes ----

    def norm(self, x, name):
        if name not in self.w:
            return x
        return (
            x
            / np.sqrt(
                (x * x).mean(-1, keepdims=True) + self.keys["attention.layer_norm_rms_epsilon"]
            )
            * self.w[name]
        )

    def product(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w.get(name + ".bias", 0)

    def in_window(self, layer):
        pattern = self.facts.get("pattern")
        return bool(pattern) and (pattern == 1 or layer % pattern < pattern - 1)

    def angles(self, n, local):
        k, turned = self.keys, self.keys.get("rope.dimension_count", HEAD)
        i, base = np.arange(turned // 2), k["rope.freq_base"]
        factor, kind, strength = k.get("rope.scaling.factor", 1.0), k.get("rope.scaling.type"), 1.0
        if local and self.family == "gemma3":
            base, factor, kind = 10000.0, 1.0, None
        a = base ** (-2.0 * i / turned)
        for name in (
            "rope_freqs.weight",
            "rope_factors_long.weight",
        ):  # the context is longer than the original one
            a = a / self.w.get(name, 1)
        if kind == "yarn":

            def dim(turns):
                return (
                    turned
                    * np.log(k["rope.scaling.original_context_length"] / (turns * 2 * np.pi))
                    / (2 * np.log(base))
                )

            low, high = max(0, np.floor(dim(32.0))), min(turned - 1, np.ceil(dim(1.0)))
            kept = 1 - np.clip((i - low) / max(0.001, high - low), 0, 1)
            a, strength = a / factor * (1 - kept) + a * kept, 1 + 0.1 * np.log(factor)
        else:
            a = a / factor
        return np.arange(n)[:, None] * a, strength * k.get("rope.scaling.attn_factor", 1.0)

    def turned(self, x, layer):
        """x [n, heads, HEAD]"""
        if self.facts.get("without_rope") and (layer + 1) % self.facts["without_rope"] == 0:
            return x
        a, strength = self.angles(len(x), self.in_window(layer))
        half = a.shape[1]
        cos, sin = strength * np.cos(a)[:, None], strength * np.sin(a)[:, None]
        first, second = slice(0, half), slice(half, 2 * half)
        if self.facts.get("turns") == "neighbours":
            first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
        y = x.copy()
        y[..., first] = x[..., first] * cos - x[..., second] * sin
        y[..., second] = x[..., second] * cos + x[..., first] * sin
        return y

    def attention(self, x, p, layer):
        n = len(x)
        if self.facts.get("joined"):
            q, k, v = np.split(
                self.product(x, p + "attn_qkv"), [HEADS * HEAD, (HEADS + KV_HEADS) * HEAD], 1
            )
        else:
            q, k, v = (self.product(x, p + f"attn_{name}") for name in "qkv")
        q, k, v = (t.reshape(n, -1, HEAD) for t in (q, k, v))
        q, k = self.norm(q, p + "attn_q_norm.weight"), self.norm(k, p + "attn_k_norm.weight")
        q, k = self.turned(q, layer), self.turned(k, layer)
        k, v = (kept(t).repeat(HEADS // KV_HEADS, 1) for t in (k, v))
        s = np.einsum("ihd,jhd->hij", q, k) * self.keys.get("attention.scale", HEAD**-0.5)
        cap = self.keys.get("attn_logit_softcapping")
        s = cap * np.tanh(s / cap) if cap else s
        at = np.arange(n)[:, None] - np.arange(n)
        s = np.where((at >= 0) & ((at < WINDOW) | (not self.in_window(layer))), s, -np.inf)
        e = np.exp(s - s.max(-1, keepdims=True))
        y = np.einsum("hij,jhd->ihd", e / e.sum(-1, keepdims=True), v)
        return self.product(y.reshape(n, -1), p + "attn_output")

    def ffn(self, x, p):
        up = self.product(x, p + "ffn_up")
        gate, up = (
            (up[:, :FFN], up[:, FFN:])
            if self.facts.get("joined")
            else (self.product(x, p + "ffn_gate"), up)
        )
        if self.facts.get("gelu"):
            gate = gate / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
        else:
            gate = gate / (1 + np.exp(-gate))
        return self.product(gate * up, p + "ffn_down")

    def logits(self, ids):
        """[n, WORDS]: after each token."""
        scale = self.keys.get("residual_scale", 1)
        x = self.w["token_embd.weight"][ids]
        x = x * (
            np.sqrt(self.width) if self.facts.get("root") else self.keys.get("embedding_scale", 1)
        )
        for i in range(self.layers):
            p = f"blk.{i}."
            y = self.attention(self.norm(x, p + "attn_norm.weight"), p, i)
            x = x + scale * self.norm(y, p + "post_attention_norm.weight")
            y = self.ffn(self.norm(x, p + "ffn_norm.weight"), p)
            x = x + scale * self.norm(y, p + "post_ffw_norm.weight")
        head = self.w.get("output.weight", self.w["token_embd.weight"])
        x = self.norm(x, "output_norm.weight") @ head.T / self.keys.get("logit_scale", 1)
        x = x + self.w.get("output.bias", 0)
        cap = self.keys.get("final_logit_softcapping")
        return cap * np.tanh(x / cap) if cap else x


def numbers(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(
            f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return np.array(done.stdout.split(), float)


def kept(x):
    """What a cache has of x."""
    if CACHE != "q8":
        return x.astype(CACHE).astype(float)
    blocks = x.astype(np.float32).reshape(-1, 32)
    scale = abs(blocks).max(1, keepdims=True) * np.float32(1 / 127)
    with np.errstate(divide="ignore"):
        inverse = np.where(scale > 0, np.float32(1) / scale, np.float32(0))
    whole = np.round(blocks * inverse).astype(np.int8)
    return (whole * scale.astype(np.float16).astype(float)).reshape(x.shape)


def compare(what, got, want):
    error = abs(got - want).max() / (want.max() - want.min())
    print(f"{what}: error {error:.1e} of the range")
    if not error < NEAR:
        sys.exit(f"{what}: {error:.2e} of the range is too far (at most {NEAR:.0e})")


def families(program, folder):
    for seed, family in enumerate(FAMILIES):
        variant(program, folder, family, Model(family, seed))
    variant(program, folder, "numbers of a list", Model("qwen3", 1, kinds=gguf.LISTED))
    variants(program, folder)


def variant(program, folder, name, m):
    path = m.write(folder / "variant.gguf")
    compare(name, numbers([program, path, *PROMPT]), m.logits(PROMPT)[-1])


def variants(program, folder):
    """Facts that a file may leave out, or says in another way."""
    m = Model("granite", 3)
    m.keys["rope.scaling.finetuned"] = False
    m.facts = {**m.facts, "without_rope": 1}
    variant(program, folder, "granite, without rope", m)
    m = Model("gemma3", 4)
    m.keys |= {"rope.freq_base": 10000.0, "attention.sliding_window_pattern": 0}
    m.facts = {**m.facts, "pattern": 1}
    variant(program, folder, "gemma3, windows everywhere, not scaled", m)
    m = Model("gemma2", 6)
    del m.keys["final_logit_softcapping"]
    path = m.write(folder / "caps.gguf")
    m.keys["final_logit_softcapping"] = 30.0
    compare("gemma2, its own cap", numbers([program, path, *PROMPT]), m.logits(PROMPT)[-1])
    m = Model("llama", 6)
    m.keys["attention.sliding_window"] = WINDOW
    m.facts = {**m.facts, "pattern": 1}
    variant(program, folder, "llama, a window", m)
    m = Model("qwen2", 7)
    m.vector("output.bias", WORDS, 0)
    variant(program, folder, "qwen2, a bias of the head", m)


DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
static float logits[WORDS];
/* n tokens by run(), one by decode(). */
static model_status feed(model_ctx *ctx, const int32_t *ids, int64_t n)
{
    if (n == 1) {
        const model_decode_inputs in = {.ids = ids};
        model_decode_outputs out = {.logits = logits};
        return model_decode(ctx, &in, &out);
    }
    const model_inputs in = {.ids = ids, .ids_dims = {n}};
    model_outputs out = {.logits = logits};
    return model_run(ctx, &in, &out);
}
/* chunk, then ids: the logits after each chunk */
int main(int argc, char **argv)
{
    const int chunk = atoi(argv[1]), n = argc - 2;
    int32_t ids[64];
    model_ctx ctx;
    model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    for (int i = 0; i < n; i++)
        ids[i] = atoi(argv[i + 2]);
    if (model_init(&ctx, &config))
        return 1;
    for (int i = 0; i < n; i += chunk) {
        const int more = n - i < chunk ? n - i : chunk;
        if (feed(&ctx, ids + i, more) || model_length_past(&ctx) != i + more)
            return 2;
        for (int k = 0; k < WORDS; k++)
            printf("%.9g\n", logits[k]);
    }
    if (model_keep_past(&ctx, n - 4) || model_length_past(&ctx) != n - 4 || model_keep_past(&ctx, n) != IGRT_ERR_DIM)
        return 5;
    if (feed(&ctx, ids + n - 4, 4))
        return 6;
    for (int k = 0; k < WORDS; k++)
        printf("%.9g\n", logits[k]);
    for (int i = n; i < PAST + 1; i++)
        if (feed(&ctx, ids, 1))
            return 3;
    if (feed(&ctx, ids, 1) != IGRT_ERR_DIM)
        return 7;
    model_inputs in = {.ids = ids, .ids_dims = {1}};
    model_outputs out = {.logits = logits};
    return model_run(&ctx, &in, &out) == IGRT_ERR_DIM ? 0 : 4; /* the context is full */
}
"""


def bundle(ingot, folder, kv):
    global CACHE
    CACHE = "q8" if kv == "q8" else np.float16
    m, past = Model("gemma3", 5), 19
    path, out = m.write(folder / "bundle.gguf"), folder / f"bundle_{kv}"
    said = subprocess.run(
        [
            str(ingot),
            "compile",
            str(path),
            "-o",
            str(out),
            "--dim",
            "n=1..12",
            "--dim",
            f"past=0..{past}",
            "--weights",
            "array",
            "--kv",
            kv,
            "--precision",
            "f32",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stderr
    size = int(re.search(r"weights (\d+) bytes", said).group(1))
    if size > 1.05 * path.stat().st_size:  # of both functions, beside those of the file
        sys.exit(f"weights of {size} bytes, of a file of {path.stat().st_size}:\n{said}")
    (out / "try.c").write_text(DRIVER.replace("WORDS", str(WORDS)).replace("PAST", str(past)))
    compiler = os.environ.get("CC", "cc").split()
    # of the two one is optimised: it takes twice as long, and their text differs where keys are read and kept
    level = "-O1" if kv == "f32" else "-O0"
    flags = ["-std=c11", level, "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
    sources = [str(f) for f in sorted(out.glob("*.c"))]
    subprocess.run(
        [*compiler, *flags, "-I", str(out), *sources, "-lm", "-o", str(out / "try")], check=True
    )
    want = m.logits(PROMPT)
    for chunk in (1, 5, len(PROMPT)):
        got = numbers([out / "try", chunk, *PROMPT]).reshape(-1, WORDS)
        ends = [min(i + chunk, len(PROMPT)) - 1 for i in range(0, len(PROMPT), chunk)] + [-1]
        compare(f"bundle, keys of {kv}, chunks of {chunk}", got, want[ends])


def bytes_of_blocks(ingot, folder):
    path = Model("llama", 1).write(folder / "q8.gguf")
    # of the range of the logits: what activations of 8 and of 16 bits may cost
    for target, precision, near in (
        ("c:x86-64-v4+vnni", "q8", 4e-2),
        ("c:armv8.6-a", "q8", 4e-2),
        ("c:c99", "q8", 4e-2),
        ("c:x86-64-v3", "q16", 5e-4),
    ):
        command = [str(ingot), "verify", str(path), "--interpret", "--target", target]
        command += ["--precision", precision, "--dim", "n=1..3", "--dim", "past=0..2"]
        done = subprocess.run(command, capture_output=True, text=True)
        said = done.stdout + done.stderr
        error = re.search(r"products of f32 .*largest error ([0-9.e-]+) of the range", said)
        if done.returncode or not error or not 0 < float(error[1]) < near:
            sys.exit(f"{' '.join(command)}: status {done.returncode}\n{said}")


def dots_of_bits(ingot, folder):
    for family in ("qwen3", "granite"):  # halves of a head, or neighbours, are turned by rope
        path = Model(family, 0, kinds=["Q5_0"]).write(folder / "q5.gguf")
        command = [str(ingot), "inspect", str(path), "--dump", "kernels", "--target"]
        command += ["c:x86-64-v4+vnni", "--precision", "q8", "--dim", "n=1", "--dim", "past=0..4"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        dots = sum("igrt_dot_i8_u7" in kernel for kernel in text.split("\n}\n"))
        if dots < 6:  # q, k and v, output, gate and up, down, head: some are one kernel
            sys.exit(f"{family}: {dots} kernels of Q5_0 multiply bytes:\n{text}")


def rows_of_a_panel(ingot, folder):
    path = Model("llama", 0, kinds=["Q8_0"]).write(folder / "q8.gguf")
    command = [str(ingot), "inspect", str(path), "--dump", "plan", "--target"]
    command += ["c:x86-64-v4+vnni", "--precision", "q8", "--dim", "n=1..16", "--dim", "past=0..4"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    tiles = re.findall(r"UPCAST (i\d+) 6\n(?:  .*\n)*?  ORDER ((?:i\S+ )+)r", text)
    if len(tiles) < 5:
        sys.exit(f"{len(tiles)} products have tiles of six rows")
    for rows, loops in tiles:
        if loops.split()[-1] != rows + ".o":
            sys.exit(f"not all rows read a panel of weights before the next one: {loops}")


def one_head(ingot, folder):
    words = 1 << 15
    for kind in ("Q8_0", "Q4_K"):
        m = Model("llama", list(gguf.TYPES).index(kind), words)
        path = m.write(folder / "head.gguf")
        command = [str(ingot), "compile", str(path), "-o", str(folder / kind)]
        command += ["--target", "c:x86-64-v4+vnni", "--dim", "n=1..8", "--dim", "past=0..20"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        size = int(re.search(r"weights (\d+) bytes", said).group(1))
        head = len(m.tensors["token_embd.weight"][2])
        if size > path.stat().st_size + head / 4:
            sys.exit(f"{kind}: weights of {size} bytes, of a head of {head}:\n{said}")


class Layers(Model):
    """Layers whose last weights have more bits (x), or fewer."""

    def __init__(self, more):
        self.more = more
        super().__init__("granite", 0, layers=len(more))

    def matrix(self, name, rows, columns, size=0.12):
        part = name.split(".")
        more = part[-2] == "ffn_down" and self.more[int(part[1])] == "x"
        self.kinds = ["Q6_K" if more else "Q4_0"]
        super().matrix(name, rows, columns, size)


def layers_in_loops(ingot, folder):
    steps = []
    for more in ("x.", "xxx..x..x..xxx"):  # x for 2, (x, . for 2) for 3, x for 3
        path = Layers(more).write(folder / "layers.gguf")
        command = [str(ingot), "compile", str(path), "-o", str(folder / "layers"), "-q"]
        command += ["--target", "c:x86-64-v3", "--dim", "n=1..8", "--dim", "past=0..20"]
        subprocess.run(command, check=True)
        text = (folder / "layers" / "model.c").read_text()
        steps.append(len(re.findall(r"^ +/\* \d+.*: .*->", text, re.MULTILINE)))
    if not steps[0] < steps[1] < 2.5 * steps[0]:
        sys.exit(f"fourteen layers are {steps[1]} steps, two of them {steps[0]}")


def refused(ingot, folder):
    m = Model("llama", 0)
    m.tensors["blk.1.attn_rot_embd.weight"] = m.tensors["output_norm.weight"]
    del m.tensors["blk.2.ffn_up.weight"]
    kind, _, body = m.tensors["blk.0.attn_norm.weight"]
    m.tensors["blk.0.attn_norm.weight"] = kind, (WIDTH // 2,), body[: len(body) // 2]
    path = m.write(folder / "bad.gguf", **{"llama.expert_count": 8, "llama.use_something": 0})
    done = subprocess.run([str(ingot), "check", str(path)], capture_output=True, text=True)
    said = done.stdout + done.stderr
    for what in (
        "blk.1.attn_rot_embd.weight': a model of architecture 'llama' has no place",
        "blk.2.ffn_up.weight': the file lacks this tensor",
        "blk.0.attn_norm.weight': it is [128], and by the keys it has to be [256]",
        "llama.expert_count': networks with experts are not supported",
    ):
        if what not in said:
            sys.exit(f"'{what}' is not said:\n{said}")
    if done.returncode not in (3, 4) or "use_something" in said or "node '" in said:
        sys.exit(f"status {done.returncode}\n{said}")
    path = m.write(folder / "other.gguf", **{"general.architecture": "mamba"})
    done = subprocess.run([str(ingot), "check", str(path)], capture_output=True, text=True)
    if (
        done.returncode != 4
        or "'mamba' are not supported; those that are: llama, qwen2" not in done.stderr
    ):
        sys.exit(f"status {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--logits", type=pathlib.Path, required=True)
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        families(a.logits.resolve(), folder)
        refused(a.ingot.resolve(), folder)
        dots_of_bits(a.ingot.resolve(), folder)
        rows_of_a_panel(a.ingot.resolve(), folder)
        one_head(a.ingot.resolve(), folder)
        layers_in_loops(a.ingot.resolve(), folder)
        bytes_of_blocks(a.ingot.resolve(), folder)
        for kv in ("f16", "f32", "q8"):
            bundle(a.ingot.resolve(), folder, kv)


if __name__ == "__main__":
    main()
