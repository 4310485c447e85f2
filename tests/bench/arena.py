#!/usr/bin/env python3
"""What models cost in memory, steps and text, without running them.

    arena.py --ingot build/ingot [--target c:native] MODEL.onnx[=MB] ...

One line a model: bytes of the arena (its inputs and outputs apart) and of the weights, of the emitted C, the steps by
kind, and how long the compiler took. With =MB the arena may have that many megabytes (1e6): the status is 1 if one has more.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import time


def measure(ingot, model, flags):
    """inspect's JSON; bytes of C; seconds to compile."""
    plan = json.loads(subprocess.run([ingot, "inspect", model, "--json", *flags], check=True, stdout=subprocess.PIPE).stdout)
    with tempfile.TemporaryDirectory(prefix="ingot-arena-") as out:
        start = time.monotonic()
        subprocess.run([ingot, "compile", model, "-o", out, *flags], check=True)
        seconds = time.monotonic() - start
        source = sum(f.stat().st_size for f in pathlib.Path(out).rglob("*.[ch]"))
    return plan, source, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL[=MB]")
    parser.add_argument("--ingot", default="build/ingot", type=pathlib.Path)
    parser.add_argument("--target", default="c")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=V", help="as of ingot; for all models")
    options = parser.parse_args()
    flags = ["--target", options.target] + [f for dim in options.dim for f in ("--dim", dim)]
    print(f"{'model':24} {'arena':>10} {'bar':>10} {'weights':>10} {'source':>9} {'seconds':>8}  steps")
    failed = False
    for argument in options.models:
        path, _, bar = argument.partition("=")
        model = pathlib.Path(path)
        name = model.parent.name if model.stem == "model" else model.stem
        try:
            plan, source, seconds = measure(options.ingot.resolve(), model, flags)
        except subprocess.CalledProcessError as e:
            print(f"{name:24} failed with status {e.returncode}")
            failed = True
            continue
        arena, limit = plan["arena_bytes"], round(float(bar) * 1e6) if bar else None
        steps = collections.Counter(s["kind"] for s in plan["steps"])
        missed = limit is not None and arena > limit
        failed |= missed
        print(f"{name:24} {arena:10} {limit if bar else '':>10} {plan['weights_bytes']:10} {source:9} {seconds:8.2f}  "
              + ", ".join(f"{n} {kind}" for kind, n in sorted(steps.items())) + ("  MISSED" if missed else ""), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
