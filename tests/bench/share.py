#!/usr/bin/env python3
"""How much of one core's multiply-adds, or of the bandwidth that feeds it, a model's kernels reach.

    share.py --ingot build/ingot [--kernels conv] [--seconds 1] [--target c:native] MODEL.onnx ...

One line a kernel, equal ones joined: steps, milliseconds, GFLOP/s, and the share of the roof that is nearer to it, all measured in the same
run (`ingot bench --per-kernel`); then what the named kernels reach of the multiply-adds, weighted by their time. Operations are those that
the kernel does: of a convolution in fewer products, of these.
"""
import argparse
import json
import pathlib
import re
import subprocess


def kernels_of(ingot, model, target, seconds):
    """peak in GFLOP/s; by name, [steps, ms, 1e6 operations, roof, share of it]"""
    data = model.parent / "test_data_set_0"
    command = [ingot, "bench", model, "--target", target, "--threads", "1", "--seconds", str(seconds), "--per-kernel", "--json"]
    out = subprocess.run(command + (["--data", data] if data.is_dir() else []), check=True, stdout=subprocess.PIPE, text=True).stdout
    run = json.loads(out.strip().splitlines()[-1])
    by_name = {}
    for k in run["kernels"]:
        row = by_name.setdefault(k["name"], [0, 0.0, 0.0, k["roof"], 0.0])
        row[0] += 1
        row[1] += k["ms"]
        row[2] += k["gflops"] * k["ms"]
        row[4] += k["roof_percent"] * k["ms"]
    return run["peak_gflops"], by_name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ingot", type=pathlib.Path, required=True)
    parser.add_argument("--kernels", default="", help="a regular expression of names")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--target", default="c:native")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    for model in args.models:
        peak, by_name = kernels_of(args.ingot, model, args.target, args.seconds)
        ms = operations = 0
        print(f"{model}: a core does {peak:.1f} GFLOP/s")
        for name, (steps, time, work, roof, share) in sorted(by_name.items(), key=lambda item: -item[1][1]):
            if not re.search(args.kernels, name):
                continue
            print(f"{name:40} {steps:4} {time:9.3f} ms {work / time:8.1f} GFLOP/s {share / time:6.1f} % of {roof}")
            ms += time
            operations += work
        if ms:
            print(f"weighted by time: {100 * operations / ms / peak:.1f} % of the multiply-adds in {ms:.2f} ms")


if __name__ == "__main__":
    main()
