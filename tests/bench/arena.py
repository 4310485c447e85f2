#!/usr/bin/env python3
"""What models cost in memory, steps and text, without running them.

    arena.py --ingot build/ingot [--target c:native] MODEL.onnx[=MB] ...
    arena.py --ingot build/ingot --presets MODEL.onnx ...

One line a model: bytes of the arena (its inputs and outputs apart) and of the weights, of the
emitted C, the steps by kind, and how long the compiler took. With =MB the arena may have that many
megabytes (1e6): the status is 1 if one has more. With --presets the steps under each preset of
--fuse; the status is 1 unless `all` has at least 20 % fewer than `auto` in half of the models.
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
    plan = json.loads(
        subprocess.run(
            [ingot, "inspect", model, "--json", *flags], check=True, stdout=subprocess.PIPE
        ).stdout
    )
    with tempfile.TemporaryDirectory(prefix="ingot-arena-") as out:
        start = time.monotonic()
        subprocess.run([ingot, "compile", model, "-o", out, *flags], check=True)
        seconds = time.monotonic() - start
        source = sum(f.stat().st_size for f in pathlib.Path(out).rglob("*.[ch]"))
    return plan, source, seconds


PRESETS = ("none", "auto", "all")


def name_of(model):
    return model.parent.name if model.stem == "model" else model.stem


def steps_under(ingot, model, preset, flags):
    plan = subprocess.run(
        [ingot, "inspect", model, "--json", "--fuse", preset, *flags],
        check=True,
        stdout=subprocess.PIPE,
    )
    return len(json.loads(plan.stdout)["steps"])


def compare_presets(ingot, models, flags):
    """A line of steps for each model; whether `all` has few enough."""
    print(f"{'model':24} " + " ".join(f"{preset:>6}" for preset in PRESETS) + "   all/auto")
    fewer = failed = 0
    for model in models:
        try:
            steps = [steps_under(ingot, model, preset, flags) for preset in PRESETS]
        except subprocess.CalledProcessError as e:
            print(f"{name_of(model):24} failed with status {e.returncode}", flush=True)
            failed += 1
            continue
        fewer += steps[2] <= 0.8 * steps[1]
        print(
            f"{name_of(model):24} "
            + " ".join(f"{n:6}" for n in steps)
            + f"   {steps[2] / steps[1]:8.2f}",
            flush=True,
        )
    print(f"{fewer} of {len(models)} have at least 20 % fewer steps with all")
    return not failed and 2 * fewer >= len(models)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", metavar="MODEL[=MB]")
    parser.add_argument("--ingot", default="build/ingot", type=pathlib.Path)
    parser.add_argument("--target", default="c")
    parser.add_argument(
        "--dim", action="append", default=[], metavar="NAME=V", help="as of ingot; for all models"
    )
    parser.add_argument("--presets", action="store_true", help="steps under each preset of --fuse")
    options = parser.parse_args()
    flags = ["--target", options.target] + [f for dim in options.dim for f in ("--dim", dim)]
    if options.presets:
        return (
            0
            if compare_presets(
                options.ingot.resolve(), [pathlib.Path(m) for m in options.models], flags
            )
            else 1
        )
    print(
        f"{'model':24} {'arena':>10} {'bar':>10} {'weights':>10} {'source':>9} {'seconds':>8}  steps"
    )
    failed = False
    for argument in options.models:
        path, _, bar = argument.partition("=")
        model = pathlib.Path(path)
        name = name_of(model)
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
        print(
            f"{name:24} {arena:10} {limit if bar else '':>10} {plan['weights_bytes']:10} {source:9} {seconds:8.2f}  "
            + ", ".join(f"{n} {kind}" for kind, n in sorted(steps.items()))
            + ("  MISSED" if missed else ""),
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
