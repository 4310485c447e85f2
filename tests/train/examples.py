#!/usr/bin/env python3
"""The program of examples/train_digits learns: images that are made here, and few epochs.

examples.py --make build/examples/example_train_digits     4 s of a core
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
EXAMPLE = TREE / "examples/train_digits"


def images(path):
    """Each digit is a pattern of its own; a tenth of its pixels are others."""
    r = random.Random(1)
    patterns = [[r.choice((0, 16)) for _ in range(64)] for _ in range(10)]
    with open(path, "w") as f:
        for i in range(400):
            pixels = [r.randint(0, 16) if r.random() < 0.1 else p for p in patterns[i % 10]]
            f.write(",".join(map(str, pixels + [i % 10])) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--make", required=True)
    make = parser.parse_args().make
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        images(at / "digits.csv")
        subprocess.run([make, at / "net"], check=True)
        subprocess.run(["make", "-s", "-C", at / "net", "CFLAGS=-O1", "libdigits.a"], check=True)
        subprocess.run(
            [os.environ.get("CC", "cc").split()[-1], "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror",
             "-DEPOCHS=6", f"-I{at / 'net'}", f"-I{at / 'net/host'}", "-o", at / "train",
             EXAMPLE / "train.c", at / "net/host/igrt_weights.c", at / "net/libdigits.a", "-lm"],
            check=True)  # fmt: skip
        said = subprocess.run(
            [at / "train", at / "digits.csv", at / "net/digits.weights", "3"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    right = float(re.search(r"-> ([\d.]+) %", said)[1])
    print(said, end="")
    return right < 95


if __name__ == "__main__":
    sys.exit(main())
