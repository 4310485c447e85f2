#!/usr/bin/env python3
"""Losses of steps by narrower products beside those of f32: other data in each step.

    narrow.py --make build/tests/networks [--precision bf16|f16] [--steps N] [NAME:OPTIMIZER...]

Prints, for each network, the first loss and the mean of the last twenty, how far the two are apart (the bar: 1 %),
and the largest difference of one step. Exit status 1: a network is further than 1 %.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import networks

LAST, MOST = 20, 0.01


def losses(program, steps):
    run = [str(program), "0", "--learns", str(steps)]
    said = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [float(x) for x in said.split()]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--make", required=True)
    p.add_argument("--target", default="c:native")
    p.add_argument("--cc", default=os.environ.get("CC", "cc"))
    p.add_argument("--precision", choices=["bf16", "f16"], default="bf16")
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("networks", nargs="*", default=["cnn32:sgd", "bert4:adamw", "gpt2:adamw"])
    a = p.parse_args()
    a.max_ram, precision, faults = 0, a.precision, 0
    print(networks.processor())
    for step in a.networks:
        name, _, optimizer = step.partition(":")
        told = []
        for a.precision in (None, precision):
            with tempfile.TemporaryDirectory(prefix="ingot_narrow_") as work:
                program, *_ = networks.build(a, name, optimizer or "sgd", pathlib.Path(work) / "b")
                told.append(losses(program, a.steps))
        wide, narrow = told
        last = [sum(x[-LAST:]) / len(x[-LAST:]) for x in told]
        apart = abs(last[1] - last[0]) / last[0]
        single = max(abs(n - w) / w for w, n in zip(wide, narrow))
        faults += not apart <= MOST
        print(f"{step:14} {a.steps} steps: {wide[0]:.4g} to {last[0]:.4g} in f32, {last[1]:.4g} in"
              f" {precision}: {apart:.1e} apart; one step {single:.1e}", flush=True)  # fmt: skip
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
