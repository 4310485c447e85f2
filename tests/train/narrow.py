#!/usr/bin/env python3
"""Losses of steps by narrower products beside those of f32: other data in each step.

    narrow.py --make build/tests/networks [--target T] [--precision bf16|f16] [--steps N] [--jobs N]
              [--noise] [--torch PYTHON] [NAME:OPTIMIZER...]

Prints, for each network, the first loss and the mean of the last twenty, how far the two are apart (the bar: 1 %),
and the largest difference of one step. --noise: also how far f32 is from itself where the rate is one ulp above,
which is what these steps make of a rounding. With --target cuda:native (a GPU, nvcc's NVRTC) the weights, the data and the steps
are those of a CPU. --torch: a Python whose PyTorch, on the GPU if there is one, takes the same steps in f32 and by
autocast to bf16. --jobs: programs that are made at once. Exit status 1: a network is further than 1 %.
"""

import argparse
import concurrent.futures
import copy
import os
import pathlib
import subprocess
import sys
import tempfile

import networks

HERE = pathlib.Path(__file__).resolve().parent
LAST, MOST = 20, 0.01


def losses(program, steps, *more):
    run = [str(program), "0", "--learns", str(steps), *more]
    said = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [float(x) for x in said.split()]


def built(a, name, optimizer, precision, folder):
    own = copy.copy(a)
    own.precision = None if precision == "f32" else precision
    return networks.build(own, name, optimizer, folder)[0]


def drawn(a, name, optimizer, folder):
    """The folder with the weights and the data, from a program for this CPU."""
    own = copy.copy(a)
    own.target, own.precision = "c", None
    program, *_ = networks.build(own, name, optimizer, folder)
    subprocess.run([program, "0", "--draws", str(a.steps), folder], check=True)
    return folder


def by_torch(a, name, optimizer, folder):
    command = [a.torch, HERE / "narrow_torch.py", name, optimizer, folder, str(a.steps)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [[float(x) for x in line.split()] for line in said.splitlines()]


def apart(wide, narrow):
    """Of the means of the last losses; of one loss."""
    last = [sum(x[-LAST:]) / len(x[-LAST:]) for x in (wide, narrow)]
    return abs(last[1] / last[0] - 1), max(abs(n / w - 1) for w, n in zip(wide, narrow)), *last


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--make", required=True)
    p.add_argument("--target", default="c:native")
    p.add_argument("--cc", default=os.environ.get("CC", "cc"))
    p.add_argument("--precision", choices=["bf16", "f16"], default="bf16")
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--noise", action="store_true")
    p.add_argument("--torch", help="a Python that has PyTorch")
    p.add_argument("--work", type=pathlib.Path, help="an empty folder for programs")
    p.add_argument("networks", nargs="*", default=["cnn32:sgd", "bert4:adamw", "gpt2:adamw"])
    a = p.parse_args()
    a.max_ram, faults = 0, 0
    print(networks.processor() if a.target[:2] in ("c", "c:") else a.target)
    pool = concurrent.futures.ThreadPoolExecutor(a.jobs)
    with tempfile.TemporaryDirectory(prefix="ingot_narrow_", dir=a.work) as work:
        work, steps, programs, torches = pathlib.Path(work), [], {}, {}
        for step in a.networks:
            name, _, optimizer = step.partition(":")
            steps.append((name, optimizer or "sgd"))
        for name, optimizer in steps:
            for q in ("f32", a.precision):
                at = work / f"{name}.{q}"
                programs[name, q] = pool.submit(built, a, name, optimizer, q, at)
            if a.torch:
                at = work / f"{name}.drawn"
                torches[name] = pool.submit(
                    lambda n, o, d: by_torch(a, n, o, drawn(a, n, o, d)), name, optimizer, at
                )
        for name, optimizer in steps:
            wide = losses(programs[name, "f32"].result(), a.steps)
            narrow = losses(programs[name, a.precision].result(), a.steps)
            far, single, *last = apart(wide, narrow)
            faults += not far <= MOST
            print(f"{name}:{optimizer} {a.steps} steps: {wide[0]:.4g} to {last[0]:.4g} in f32,"
                  f" {last[1]:.4g} in {a.precision}: {far:.1e} apart, one step {single:.1e}",
                  flush=True)  # fmt: skip
            if a.noise:
                nudged = losses(programs[name, "f32"].result(), a.steps, "--nudged")
                far, single, *_ = apart(wide, nudged)
                print(f"    f32 with a rate one ulp above: {far:.1e} apart, one step {single:.1e}")
            if a.torch:
                theirs = torches[name].result()
                far, single, *last = apart(*theirs)
                print(f"    PyTorch: {theirs[0][0]:.4g} to {last[0]:.4g} in f32, {last[1]:.4g} by autocast:"
                      f" {far:.1e} apart, one step {single:.1e}; f32 from ours {apart(wide, theirs[0])[0]:.1e}",
                      flush=True)  # fmt: skip
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
