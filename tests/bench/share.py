#!/usr/bin/env python3
"""How much of one core's multiply-adds, or of the bandwidth that feeds it, a model's kernels reach.

    share.py --ingot build/ingot [--bench build/tests/bench [--prepared]] [--kernels conv] [--bar
             88] [--rounds 3] [--seconds 1] [--target c:native] MODEL.onnx ...

One line a kernel, equal ones joined: steps, milliseconds, GFLOP/s, and the share of the roof that
is nearer to it; then what the named kernels reach of the multiply-adds, weighted by their time.
Kernels and roof are measured in turns (`ingot bench --per-kernel`, --rounds times), and the best of
each counts. Operations are those that the kernel does: of a convolution in fewer products, of
these.

With --bench the cases of that program that have a bar come first, so that one command shows
products, vectors, windows and a network's convolutions beside what the core can do; --prepared:
`bench --prepare --barred` has built them. Ends with 1 where one of those or a model is below its
bar.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys


def profile(ingot, model, target, seconds):
    """One run: peak in GFLOP/s, and its kernels by step."""
    data = model.parent / "test_data_set_0"
    command = [
        ingot,
        "bench",
        model,
        "--target",
        target,
        "--threads",
        "1",
        "--seconds",
        str(seconds),
        "--per-kernel",
        "--json",
    ]
    out = subprocess.run(
        command + (["--data", data] if data.is_dir() else []),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    run = json.loads(out.strip().splitlines()[-1])
    return run["peak_gflops"], {k["step"]: k for k in run["kernels"]}


def kernels_of(ingot, model, target, seconds, rounds):
    """The best of some runs: peak in GFLOP/s; by name, [steps, ms, 1e6 operations, roof, share of
    it * ms]"""
    peak, steps = 0.0, {}
    for _ in range(rounds):
        now, kernels = profile(ingot, model, target, seconds)
        peak = max(peak, now)
        for step, k in kernels.items():
            if step not in steps or k["ms"] < steps[step]["ms"]:
                steps[step] = k
    by_name = {}
    for k in steps.values():
        row = by_name.setdefault(k["name"], [0, 0.0, 0.0, k["roof"], 0.0])
        row[0] += 1
        row[1] += k["ms"]
        row[2] += k["gflops"] * k["ms"]
        row[4] += k["roof_percent"] * k["ms"]
    return peak, by_name


def show(model, peak, by_name, names, bar):
    """Prints a model's table; false if the kernels of these names are below the bar."""
    ms = operations = 0
    print(f"{model}: a core does {peak:.1f} GFLOP/s", flush=True)
    for name, (steps, time, work, roof, share) in sorted(
        by_name.items(), key=lambda item: -item[1][1]
    ):
        if not re.search(names, name):
            continue
        print(
            f"{name:40} {steps:4} {time:9.3f} ms {work / time:8.1f} GFLOP/s {share / time:6.1f} % of {roof}"
        )
        ms += time
        operations += work
    if not ms:
        return True
    share = 100 * operations / ms / peak
    print(
        f"weighted by time: {share:.1f} % of the multiply-adds in {ms:.2f} ms"
        + (f"  bar {bar:g}" if bar else "")
        + ("  BELOW" if share < bar else "")
    )
    return share >= bar


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ingot", type=pathlib.Path, required=True)
    parser.add_argument(
        "--bench",
        type=pathlib.Path,
        help="build/tests/bench: its cases that have a bar, before the models",
    )
    parser.add_argument("--prepared", action="store_true", help="the cases have been built")
    parser.add_argument("--kernels", default="", help="a regular expression of names")
    parser.add_argument(
        "--bar", type=float, default=0, help="least share of the multiply-adds, in per cent"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--target", default="c:native")
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    good = True
    if args.bench:
        command = [args.bench, "--barred", "--check", "--target", args.target] + (
            ["--prepared"] if args.prepared else []
        )
        good = subprocess.run(command).returncode == 0
    for model in args.models:
        peak, by_name = kernels_of(args.ingot, model, args.target, args.seconds, args.rounds)
        good &= show(model, peak, by_name, args.kernels, args.bar)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
