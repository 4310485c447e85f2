#!/usr/bin/env python3
"""The programs of examples/train_digits and train_gpt learn: from data that are made here, in few
steps.

    examples.py --make build/examples     9 s of a core
"""

import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]


def images(path):
    """Each digit is a pattern of its own; a tenth of its pixels are others."""
    r = random.Random(1)
    patterns = [[r.choice((0, 16)) for _ in range(64)] for _ in range(10)]
    with open(path, "w") as f:
        for i in range(400):
            pixels = [r.randint(0, 16) if r.random() < 0.1 else p for p in patterns[i % 10]]
            f.write(",".join(map(str, pixels + [i % 10])) + "\n")


def sentences(path):
    r = random.Random(2)
    words = "a boat is no house and a house is no boat".split()
    path.write_text("".join(" ".join(r.choices(words, k=9)) + ".\n" for _ in range(400)))


def built(make, at, example, name, *defines):
    """The program around the bundle."""
    net = at / example
    subprocess.run([make / f"example_{example}", net], check=True)
    flags = "-O1 -Wno-psabi"
    subprocess.run(["make", "-s", "-C", net, f"CFLAGS={flags}", f"lib{name}.a"], check=True)
    cc = os.environ.get("CC", "cc").split()[-1]
    host = [net / "host/igrt_weights.c", net / "host/igrt_states.c"]
    subprocess.run(
        [cc, "-std=c99", *flags.split(), "-Wall", "-Wextra", "-Werror", *defines, f"-I{net}",
         f"-I{net / 'host'}", "-o", at / name, TREE / "examples" / example / "train.c", *host,
         net / f"lib{name}.a", "-lm"], check=True)  # fmt: skip
    return at / name, net / f"{name}.weights"


def said(*command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--make", required=True, type=pathlib.Path)
    make = parser.parse_args().make
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        images(at / "digits.csv")
        program, weights = built(make, at, "train_digits", "digits", "-DEPOCHS=6")
        digits = said(program, at / "digits.csv", weights, "3")
        sentences(at / "text")
        program, weights = built(make, at, "train_gpt", "gpt", "-DSAMPLE=40")
        gpt = said(program, at / "text", weights, "20", at / "gpt.safetensors")
        assert (at / "gpt.safetensors").stat().st_size > 6_000_000, "states are saved"
    right = float(re.search(r"-> ([\d.]+) %", digits)[1])
    before, after = map(float, re.findall(r"held out ([\d.]+);", gpt))
    print(f"digits: {right} % are read; text: {before} nats before, {after} after")
    return right < 95 or after > 0.75 * before


if __name__ == "__main__":
    sys.exit(main())
