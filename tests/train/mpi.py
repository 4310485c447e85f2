#!/usr/bin/env python3
"""Processes of an MPI run train one network: examples/train_mpi has, in two processes, the losses of
one that has all images, each time the same bytes.

    mpi.py --make build/examples      3 s of a core

Exit status 77, skipped: there is no mpicc or mpirun.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from examples import TREE, images

STEPS = 25
MPI = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def call(*command):
    return subprocess.run(
        [str(c) for c in command], check=True, env=MPI, capture_output=True, text=True
    ).stdout


def program(make, at, processes):
    net = at / f"net{processes}"
    call(make / "example_train_mpi", net, 64 // processes)
    flags = "-std=gnu99 -O1 -ffp-contract=off -Wall -Wextra -Werror -Wno-psabi".split()
    source = TREE / "examples/train_mpi/train.c"
    to = at / f"train{processes}"
    call(
        "mpicc", *flags, f"-I{net}", f"-I{net / 'host'}", source, *net.glob("*.c"), "-o", to, "-lm"
    )
    return to


def losses(at, name, processes):
    return call(
        "mpirun", "--oversubscribe", "-n", processes, name, at / "digits.csv", STEPS
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--make", required=True, type=pathlib.Path)
    make = parser.parse_args().make
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        print("skipped: mpicc or mpirun is missing")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        images(at / "digits.csv")
        one = losses(at, program(make, at, 1), 1)
        two = program(make, at, 2)
        both, again = (losses(at, two, 2) for _ in range(2))
        assert both == again, "two runs differ"
        a, b = ([float(line.split()[1]) for line in text.splitlines()] for text in (one, both))
        assert len(a) == len(b) == STEPS
        worst = max(abs(x - y) / abs(x) for x, y in zip(a, b))
        print(f"{STEPS} steps: loss {a[0]:.4f} to {a[-1]:.4f}, two processes within {worst:.1e}")
        return worst > 1e-4 or a[-1] > 0.5 * a[0]


if __name__ == "__main__":
    sys.exit(main())
