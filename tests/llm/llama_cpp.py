#!/usr/bin/env python3
"""Language models compute what llama.cpp computes: logits after each of 64 tokens, its own greedy ones.

    llama_cpp.py --ingot build/ingot --work build/llama      5 minutes; the first time 10 more, which build llama.cpp
    llama_cpp.py .. --llama DIR                              of a llama.cpp that is there: DIR/include, DIR/lib

    types      a file of each family and type of weights: llama.cpp beside numpy's f64 of decoder.py
    families   a file of each family, of all types mixed: llama.cpp beside the bundle, a prompt by run(), then decode()

llama.cpp rounds activations to 8 bits for quantised weights, which layers of random weights amplify: logits may be
off by 2e-2 of their range (root of the mean square, at half of the positions), and the token that is most likely by ours has to be one of
llama.cpp's best, within 6e-2. What is wrong in a layer is off by 1. A window of phi3 is not looked at by llama.cpp
(it says so): there is none here. Its source is that of PyPI's llama-cpp-python (MIT).
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
NEAR, BEHIND = 2e-2, 6e-2  # of the range of the logits
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


def program(include, lib, folder):
    out = folder / "llama_logits"
    source = pathlib.Path(__file__).resolve().parent / "llama_logits.c"
    names = [f"-l{x}" for x in ("llama", "ggml", "ggml-base", "ggml-cpu")]
    command = ["cc", "-O1", *(f"-I{i}" for i in include), str(source), "-o", str(out), f"-L{lib}"]
    subprocess.run([*command, *names, f"-Wl,-rpath,{lib}", "-lm"], check=True)
    return out


class Model(decoder.Model):
    """With the vocabulary that llama.cpp wants to be told of, and weights of one type where `kind` is."""

    def __init__(self, family, seed, kind=None):
        self.kind = kind
        super().__init__(family, seed)

    def matrix(self, name, rows, columns, size=0.12):
        if self.kind:
            self.turn = list(gguf.TYPES).index(self.kind)
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


def bundle(ingot, path, folder):
    """A program that prints the logits after each chunk of what it is given."""
    past = POSITIONS
    command = [ingot, "compile", path, "-o", folder, "--target", "c:native", "--weights", "array"]
    command += ["--dim", "n=1..12", "--dim", f"past=0..{past}", "-q"]
    subprocess.run([str(x) for x in command], check=True)
    text = decoder.DRIVER.replace("WORDS", str(decoder.WORDS)).replace("PAST", str(past))
    text = text.replace("ids[64]", f"ids[{POSITIONS}]")
    (folder / "try.c").write_text(text)
    flags = ["-std=c11", "-O1", "-march=native", "-w", "-I", str(folder)]
    sources = [str(f) for f in sorted(folder.glob("*.c"))]
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, *flags, *sources, "-lm", "-o", str(folder / "try")], check=True)
    return folder / "try"


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--work", type=pathlib.Path, required=True)
    p.add_argument("--llama", type=pathlib.Path, help="include/ and lib/ of a llama.cpp")
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
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        logits = program(include, lib, folder)
        for seed, family in enumerate(FAMILIES):
            for kind in gguf.TYPES:
                m = Model(family, seed, kind)
                ids, want = llama(logits, m.write(folder / "m.gguf"))
                compare(f"{family} {kind}", m.logits(ids), want)
        for seed, family in enumerate(FAMILIES):
            path = Model(family, seed).write(folder / f"{family}.gguf")
            ids, want = llama(logits, path)
            run = bundle(a.ingot.resolve(), path, folder / family)
            got = decoder.numbers([run, 1, *ids]).reshape(-1, decoder.WORDS)
            compare(f"{family}, decode()", got[:POSITIONS], want)
            got = decoder.numbers([run, 12, *ids]).reshape(-1, decoder.WORDS)
            ends = [*range(11, POSITIONS, 12), POSITIONS - 1]
            compare(f"{family}, run()", got[: len(ends)], want[ends])


if __name__ == "__main__":
    main()
