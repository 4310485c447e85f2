#!/usr/bin/env python3
"""Language models compute what llama.cpp computes: logits after each of 64 tokens, its own greedy ones.

    llama_cpp.py --ingot build/ingot --work build/llama      8 minutes of CPU; the first time 10 more, which build llama.cpp
    llama_cpp.py .. --llama DIR                              of a llama.cpp that is there: DIR/include, DIR/lib
    llama_cpp.py .. --families qwen3,phi3 --types Q4_K       of these alone

    types     a file of each family (of five) and type of weights, a bundle of --precision q8 and one of q16, a token a time:
              q8 within 1e-2 of the range of llama.cpp's logits, with the same best token unless its two best are nearer
              than that; q16 within 1e-4 of the range of f64 with the weights dequantised
    chunks    a file of each family, of all types mixed: a prompt by run(), then decode(), beside llama.cpp

Like is judged with like: keys and values are f32 in both. Where a type's products are not of bytes, llama.cpp rounds
activations to the type of the weights (f16, bf16), and ingot does not: there llama.cpp may be as far from f64 as it
is, and ingot has to be within 1e-4 of that. Layers of random weights amplify what rounding does, so files of all types
mixed are judged by 2e-2 (root of the mean square, at half of the positions). A window of phi3 is not looked at by
llama.cpp (it says so): there is none here. Its source is that of PyPI's llama-cpp-python (MIT).
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import numpy as np

import decoder
import gguf_file as gguf

VERSION = "0.3.36"
POSITIONS = 64
NEAR, BEHIND = 2e-2, 6e-2  # of the range of the logits: of files of all types mixed
BYTES, TWO_BYTES = 1e-2, 1e-4  # and of those of one type
PLAIN = ("F32", "F16", "BF16")  # types that are numbers
BY_TYPE = ("llama", "qwen2", "qwen3", "gemma", "phi3")
FAMILIES = ("llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "smollm3", "granite")


def built(work):
    """(include folders, library folder) of llama.cpp, built in `work`."""
    source = work / f"llama_cpp_python-{VERSION}" / "vendor" / "llama.cpp"
    if not source.exists():
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*pip, f"llama-cpp-python=={VERSION}", "-d", str(work)], check=True)
        with tarfile.open(next(work.glob("llama_cpp_python*.tar.gz"))) as t:
            t.extractall(work)
    out = work / "build"
    off = [
        f"-DLLAMA_{x}=OFF" for x in "BUILD_TESTS BUILD_EXAMPLES BUILD_TOOLS BUILD_COMMON".split()
    ]
    command = ["cmake", "-S", str(source), "-B", str(out), "-DCMAKE_BUILD_TYPE=Release", *off]
    subprocess.run([*command, "-DLLAMA_CURL=OFF"], check=True, stdout=subprocess.DEVNULL)
    command = ["cmake", "--build", str(out), "-j", "2", "--target", "llama"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [source / "include", source / "ggml" / "include"], out / "bin"


def program(include, lib, folder, name="llama_logits"):
    out = folder / name
    source = pathlib.Path(__file__).resolve().parent / f"{name}.c"
    names = [f"-l{x}" for x in ("llama", "ggml", "ggml-base", "ggml-cpu")]
    command = ["cc", "-O1", *(f"-I{i}" for i in include), str(source), "-o", str(out), f"-L{lib}"]
    subprocess.run([*command, *names, f"-Wl,-rpath,{lib}", "-lm"], check=True)
    return out


class Model(decoder.Model):
    """With the vocabulary that llama.cpp wants to be told of, and weights of one type where `kind` is."""

    def __init__(self, family, seed, kind=None):
        self.kind = kind
        super().__init__(family, seed, kinds=(kind,) if kind else decoder.MIXED)

    def matrix(self, name, rows, columns, size=0.12):
        if self.kind and name != "token_embd.weight":
            size = min(size, columns**-0.5)  # what is normalised stays as large
        super().matrix(name, rows, columns, size)

    def write(self, path):
        tokens = {f"{self.family}.vocab_size": decoder.WORDS, "tokenizer.ggml.model": "none"}
        return super().write(path, **tokens)


def llama(logits, path):
    """Its tokens, and its logits after each."""
    rows = decoder.numbers([logits, path, POSITIONS, *decoder.PROMPT])
    rows = rows.reshape(POSITIONS, 1 + decoder.WORDS)
    return rows[:, 0].astype(int).tolist(), rows[:, 1:]


def compare(what, got, want):
    """Both [positions, words]; want: llama.cpp's."""
    size = np.abs(want).max()
    # of the middle one of the positions: at some a key's large score changes sides
    error = np.median(np.sqrt(((got - want) ** 2).mean(-1))) / size
    behind = want.max(-1) - want[np.arange(len(want)), got.argmax(-1)]  # 0: the same token
    print(f"{what}: error {error:.1e} of the range, {(behind == 0).sum()} of {len(want)} tokens")
    if not error <= NEAR or behind.max() > BEHIND * size:
        sys.exit(f"{what}: a token is {behind.max() / size:.2e} of the range behind the best one")


ONE = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)], weights[MODEL_WEIGHTS_BYTES + 64];
static float logits[WORDS];
/* MODEL.weights ids: the logits after each, as bytes */
int main(int argc, char **argv)
{
    model_ctx ctx;
    FILE *f = fopen(argv[1], "rb");
    model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    config.weights = weights;
    config.weights_bytes = f ? fread(weights, 1, MODEL_WEIGHTS_BYTES, f) : 0;
    if (model_init(&ctx, &config))
        return 1;
    for (int i = 2; i < argc; i++) {
        const int32_t id = atoi(argv[i]);
        const model_inputs in = {.ids = &id};
        model_outputs out = {.logits = logits};
        if (model_run(&ctx, &in, &out) || !fwrite(logits, sizeof logits, 1, stdout))
            return 2;
    }
    return 0;
}
"""


def made(ingot, path, folder, driver, *options):
    """A program of that driver and the model's bundle."""
    past = POSITIONS
    command = [ingot, "compile", path, "-o", folder, "--target", "c:native", "--kv", "f32", "-q"]
    subprocess.run([str(x) for x in [*command, "--dim", f"past=0..{past}", *options]], check=True)
    text = driver.replace("WORDS", str(decoder.WORDS)).replace("PAST", str(past))
    (folder / "try.c").write_text(text.replace("ids[64]", f"ids[{POSITIONS}]"))
    flags = ["-std=c11", "-O1", "-march=native", "-w", "-I", str(folder)]
    sources = [str(f) for f in sorted(folder.glob("*.c"))]
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, *flags, *sources, "-lm", "-o", str(folder / "try")], check=True)
    return folder / "try"


def one_type(ingot, m, logits, folder):
    path = m.write(folder / "m.gguf")
    ids, want = llama(logits, path)
    exact, size = m.logits(ids), np.ptp(want)
    got = {}
    for precision in ("q8", "q16"):
        out = folder / f"{m.family}_{m.kind}_{precision}"
        run = made(ingot, path, out, ONE, "--dim", "n=1", "--precision", precision)
        done = subprocess.run([run, out / "model.weights", *map(str, ids)], stdout=subprocess.PIPE)
        got[precision] = np.frombuffer(done.stdout, np.float32).reshape(POSITIONS, -1)
    apart = np.abs(got["q8"] - want).max() / size
    theirs = np.abs(want - exact).max() / size
    error = {p: np.abs(x - exact).max() / np.ptp(exact) for p, x in got.items()}
    best = got["q8"].argmax(-1)
    behind = (want.max(-1) - want[np.arange(POSITIONS), best]) / size  # 0: the same token
    near = BYTES if m.kind not in PLAIN else max(BYTES, theirs + TWO_BYTES)
    print(
        f"{m.family} {m.kind}: q8 {apart:.1e} from llama.cpp, {(behind == 0).sum()} of {POSITIONS} tokens; "
        f"from f64 {error['q8']:.1e}, llama.cpp {theirs:.1e}, q16 {error['q16']:.1e}",
        flush=True,
    )
    return apart <= near and behind.max() <= near and error["q16"] <= TWO_BYTES


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--work", type=pathlib.Path, required=True)
    p.add_argument("--llama", type=pathlib.Path, help="include/ and lib/ of a llama.cpp")
    p.add_argument("--families", default=",".join(FAMILIES))
    p.add_argument("--types", default=",".join(gguf.TYPES))
    a = p.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    include, lib = [], None
    if a.llama:
        include, lib = [a.llama / "include"], a.llama / "lib"
    else:
        include, lib = built(a.work.resolve())
    decoder.FAMILIES["llama"]["keys"] = {"rope.dimension_count": decoder.HEAD}  # all it knows
    decoder.FAMILIES["phi3"]["keys"].pop("attention.sliding_window")
    decoder.FAMILIES["phi3"]["pattern"] = None
    decoder.CACHE = np.float32
    bad, ingot = [], a.ingot.resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        logits = program(include, lib, folder)
        for family in a.families.split(","):
            seed = FAMILIES.index(family)
            for kind in a.types.split(",") if family in BY_TYPE else ():
                if not one_type(ingot, Model(family, seed, kind), logits, folder):
                    bad.append(f"{family} {kind}")
            path = Model(family, seed).write(folder / f"{family}.gguf")
            ids, want = llama(logits, path)
            run = made(
                ingot,
                path,
                folder / family,
                decoder.DRIVER,
                "--weights",
                "array",
                "--dim",
                "n=1..12",
            )
            got = decoder.numbers([run, 1, *ids]).reshape(-1, decoder.WORDS)
            compare(f"{family}, decode()", got[:POSITIONS], want)
            got = decoder.numbers([run, 12, *ids]).reshape(-1, decoder.WORDS)
            ends = [*range(11, POSITIONS, 12), POSITIONS - 1]
            compare(f"{family}, run()", got[: len(ends)], want[ends])
    if bad:
        sys.exit(f"too far: {', '.join(bad)}")


if __name__ == "__main__":
    main()
