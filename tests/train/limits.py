#!/usr/bin/env python3
"""What less memory costs a training step: its CPU time under limits (--max-ram) of the arena.

    limits.py --make build/tests/networks [--points N] [--parts P..] [--keep FOLDER] [--rounds N] [--seconds S]
              [NAME:OPTIMIZER...]

The smallest limit that has a plan is what a refusal names; between it and what the step takes without a limit are
further ones.  Programs run in turns, so that all see the same load; the least of each counts.  Prints a line each:
the arena without the states, what part that is of the usual one, the time as a multiple, and whether losses and
weights after three steps have the same bits.  With --keep the programs stay in the folder; a later run of the same
steps times them again, without making any.
"""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import networks


def smallest(a, name, optimizer, states, folder):
    """The smallest limit of the arena without the states that has a plan: a refusal names it, whatever the limit is."""
    command = [a.make, name, optimizer, str(folder), a.target, "1"]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    return int(re.search(r"needs (\d+) bytes of RAM", said)[1]) - states


def losses(a, program):
    run = [str(program), str(a.seconds), "--losses", "3"]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout


def make(a, name, optimizer, work):
    """[program, its arena without the states], first without a limit."""
    a.max_ram = 0
    usual, arena, states = networks.build(a, name, optimizer, work / "usual")
    parts = a.parts
    if not parts:
        least = smallest(a, name, optimizer, states, work / "plan")
        parts = [(least + (arena - least) * i / a.points) / arena for i in range(a.points)]
        print(f"{name}:{optimizer} smallest: {least / 1e6:.1f} MB of {arena / 1e6:.1f}")
    programs = [(str(usual), arena)]
    for i, part in enumerate(parts):
        a.max_ram = states + math.ceil(part * arena)
        try:
            program, taken, _ = networks.build(a, name, optimizer, work / str(i))
        except subprocess.CalledProcessError as e:
            if e.cmd[0] != a.make:  # the plan is there, and its code does not compile
                raise
            print(f"{name}:{optimizer:8} {part * arena / 1e6:9.1f} MB {part:6.2f}  refused")
            continue
        programs.append((str(program), taken))
    return programs


def curve(a, name, optimizer, work):
    kept = work / "programs.json"
    if kept.exists():
        programs = json.loads(kept.read_text())
    else:
        programs = make(a, name, optimizer, work)
        kept.write_text(json.dumps(programs))
    usual, arena = programs[0]
    least = [float("inf")] * len(programs)
    for _ in range(a.rounds):
        for i, (program, _) in enumerate(programs):
            said = subprocess.run([program, str(a.seconds)], capture_output=True, text=True)
            least[i] = min(least[i], float(said.stdout.split()[0]))
    want = losses(a, usual) if a.rounds else ""
    for (program, taken), ms in zip(programs[: len(programs) * a.rounds], least):
        same = "same losses" if losses(a, program) == want else "other losses"
        print(
            f"{name}:{optimizer:8} {taken / 1e6:9.1f} MB {taken / arena:6.2f} {ms:10.2f} ms"
            f" {ms / least[0]:6.2f}  {same}",
            flush=True,
        )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--make", required=True)
    p.add_argument("--target", default="c:native")
    p.add_argument("--cc", default=os.environ.get("CC", "cc"))
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--rounds", type=int, default=3, help="0: programs are made, none is timed")
    p.add_argument("--points", type=int, default=6)
    p.add_argument("--parts", type=float, nargs="*", help="these parts of the arena alone: 0.6")
    p.add_argument("--keep", type=pathlib.Path, help="the folder of the programs")
    p.add_argument("steps", nargs="*", default=["resnet18:sgd", "bert4:adamw", "gpt2:adamw"])
    a = p.parse_args()
    a.precision = None
    print(networks.processor())
    for step in a.steps:
        name, _, optimizer = step.partition(":")
        with tempfile.TemporaryDirectory(prefix="ingot_limits_") as work:
            folder = (a.keep or pathlib.Path(work)) / f"{name}_{optimizer or 'sgd'}"
            folder.mkdir(parents=True, exist_ok=True)
            curve(a, name, optimizer or "sgd", folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
