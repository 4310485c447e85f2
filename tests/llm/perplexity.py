#!/usr/bin/env python3
"""A real model finds texts as likely as llama.cpp's does: SmolLM2-135M-Instruct, Q4_1, openings of books, a play.

    perplexity.py --ingot build/ingot --work build/smollm2 --llama-work build/llama     4 minutes, once both are there
    perplexity.py .. --llama DIR                               of a llama.cpp that is there: DIR/include, DIR/lib

Perplexities (exp of the mean of -log p of a token, in windows of 1,024) differ by at most 0.5 %, with bytes and with
two bytes a number. Rounding activations to bytes moves -log p of a token by 0.15 (root of the mean square), here and
in llama.cpp, each its own way: 3,000 tokens are known to 0.3 %, so there are three times as many. Keys, values and
attention are f32 in both: llama.cpp's own choice, f16, costs 1.5 %.
"""

import argparse
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import llama_cpp
import smollm2

NEAR = {"q8": 5e-3, "q16": 5e-3}
HERE = pathlib.Path(__file__).resolve().parent
TEXTS = [HERE / "public_text.txt", HERE / "public_play.txt"]


def output(command, given=None):
    done = subprocess.run([str(c) for c in command], input=given, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"{command[0]}: status {done.returncode}")
    return done.stdout.decode()


def ours(ingot, gguf, precision, folder):
    """[ids of a text], perplexity of all"""
    out = folder / precision
    command = [ingot, "compile", gguf, "-o", out, "--target", "c:native", "-q"]
    output([*command, "--precision", precision, "--kv", "f32", "--dim", "past=0..1024"])
    words = re.search(r'"logits" f32\[(\d+)\]', (out / "model.h").read_text())[1]
    flags = [
        "-std=gnu11",
        "-O2",
        "-march=native",
        "-ffp-contract=off",
        "-w",
        f"-I{out}",
        f"-DWORDS={words}",
    ]
    compiler = os.environ.get("CC", "cc").split()
    sources = [HERE / "text_loss.c", *sorted(out.glob("*.c"))]
    output([*compiler, *flags, *sources, "-lm", "-o", out / "loss"])
    command = [out / "loss", out / "model.weights", out / "model.vocab"]
    said = [output(command, text.read_bytes()).strip().split("\n") for text in TEXTS]
    return [ids.split() for ids, _ in said], perplexity(loss for _, loss in said)


def perplexity(lines):
    """Of lines that say how many tokens were foretold, and the sum of -log p of them."""
    n, loss = (sum(map(float, x)) for x in zip(*(line.split() for line in lines)))
    return math.exp(loss / n)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--work", type=pathlib.Path, required=True)
    p.add_argument("--llama-work", type=pathlib.Path)
    p.add_argument("--llama", type=pathlib.Path, help="include/ and lib/ of a llama.cpp")
    a = p.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    gguf = smollm2.model(a.work)
    if a.llama:
        include, lib = [a.llama / "include"], a.llama / "lib"
    else:
        a.llama_work.mkdir(parents=True, exist_ok=True)
        include, lib = llama_cpp.built(a.llama_work.resolve())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        logits = llama_cpp.program(include, lib, folder)
        want = None
        for precision, near in NEAR.items():
            ids, got = ours(a.ingot.resolve(), gguf, precision, folder)
            want = want or perplexity(output([logits, gguf, "0", *text]) for text in ids)
            n = sum(map(len, ids))
            print(f"{precision}: perplexity {got:.4f} of {n} tokens, llama.cpp's {want:.4f}")
            if not abs(got / want - 1) <= near:
                sys.exit(f"{precision}: {got / want - 1:+.2%} of llama.cpp's")


if __name__ == "__main__":
    main()
