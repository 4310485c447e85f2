#!/usr/bin/env python3
"""No kernel of known networks computes a sum of products element by element: all have lanes, dots
or a matrix unit, in f32 and by --precision, on machines that have these.

    lanes.py --ingot build/ingot [NAME...]     some of the networks whose graphs are in the tree

Exit status 77, skipped: there is no Python with onnx.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import graphs
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

NETWORKS = ("resnet50", "mobilenet_v2", "bert_base", "gpt2_s64_dynamo")
MACHINES = (
    ("c:sapphirerapids", "bf16"),
    ("c:sapphirerapids", "bf16x3"),
    ("c:x86-64-v4+vnni+bf16", "bf16"),
    ("c:x86-64-v4+vnni", "f32"),
)
WIDE = ("VECTOR ", "DOT ", "TC ")


def by_element(ingot, model, options, target, how):
    """Kernels of convolutions and products whose opts have nothing wide."""
    words = ["--target", target, "--precision", how, "--json"]
    told = subprocess.run(
        [ingot, "inspect", model, *options, *words], capture_output=True, text=True, check=True
    )
    kinds = ("conv", "gemm", "matmul")
    steps = [s for s in json.loads(told.stdout)["steps"] if any(k in s["name"] for k in kinds)]
    if not steps:
        sys.exit(f"{model.stem}: no products at all")
    return [s["name"] for s in steps if not any(o.startswith(WIDE) for o in s["opts"])]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--ingot", required=True, type=pathlib.Path)
    p.add_argument("network", nargs="*", default=NETWORKS)
    a = p.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as work:
        for name in a.network:
            model = graphs.build(name, pathlib.Path(work))
            for target, how in MACHINES:
                for kernel in by_element(a.ingot, model, graphs.options(name), target, how):
                    wrong.append(f"{name}, {target}, {how}: {kernel} goes element by element")
    print("\n".join(wrong) or f"{len(a.network)} networks, {len(MACHINES)} machines each")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
