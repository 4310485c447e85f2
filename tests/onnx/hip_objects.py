#!/usr/bin/env python3
"""The kernels of all node cases, and of networks, compiled for AMD's GPUs.

    hip_objects.py --ingot build/ingot [--jobs 2] [--models DIR...] [--sample N] CASES...

Compiles every case with --target hip:gfx90a+gfx1030+gfx1100; none may fail to compile, and of the
kernels few may keep registers in memory (spills, as the compiler tells them). A model that ingot
refuses for every GPU is none of these.

Exit status 77, skipped: there is no compiler for AMD's GPUs (tests/bundle/hipcc.py).
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "bundle"))
import hipcc  # noqa: E402

ARCHS = ("gfx90a", "gfx1030", "gfx1100")
# Networks, and the sizes that they leave open.
NETWORKS = {
    "mnist_8": [],
    "tiny_ic_fp32": [],
    "tiny_ic_int8": [],
    "tiny_vww_int8": [],
    "tiny_kws_int8": [],
    "tiny_ad_int8": [],
    "dtln_1": [],
    "dtln_2": [],
    "ultraface_rfb_320": [],
    "yunet_n_320": [],
    "squeezenet_fp16": [],
    "yolox_nano": [],
}


def compile_model(ingot, compiler, model, options, work):
    """A list of (architecture, fault or None, kernels, kernels that spill); None: refused."""
    words = [ingot, "compile", model, "-q", "--no-check", "--target", "hip", "-o", work, *options]
    env = os.environ | {"INGOT_HIPCC": "none"}
    if subprocess.run(words, capture_output=True, env=env).returncode:
        return None
    if not (work / "model_kernels.hip").exists():  # results without elements
        return []
    told = []
    for arch in ARCHS:
        done = subprocess.run(
            [
                compiler,
                "--genco",
                f"--offload-arch={arch}",
                "-nogpuinc",
                "-std=c++17",
                "-O3",
                "-w",
                "-ffp-contract=off",
                "-o",
                work / f"{arch}.o",
                work / "model_kernels.hip",
            ],
            capture_output=True,
            text=True,
        )
        spills = [int(n) for n in re.findall(r"VGPRs Spill: (\d+)", done.stderr)]
        fault = done.stderr.splitlines()[0] if done.returncode else None
        told.append((arch, fault, len(spills), sum(n > 0 for n in spills)))
    return told


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ingot", type=pathlib.Path, default="build/ingot")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--models", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("cases", type=pathlib.Path, nargs="*")
    options = parser.parse_args()
    found = [(m.parent.name, m, []) for c in options.cases for m in sorted(c.glob("*/model.onnx"))]
    if options.sample:
        found = found[:: max(1, len(found) // options.sample)]
    for folder in options.models:
        for name, more in NETWORKS.items():
            if (folder / name / "model.onnx").exists():
                found.append((name, folder / name / "model.onnx", more))
    refused, faults = [], []
    kernels, spilled = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="ingot-hip-") as at:
        work = pathlib.Path(at)
        compiler = hipcc.compiler(work)
        if not compiler:
            print("skipped: no compiler for AMD's GPUs")
            return 77

        def run(numbered):
            i, (name, path, more) = numbered
            return name, compile_model(options.ingot.resolve(), compiler, path, more, work / str(i))

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for name, told in pool.map(run, enumerate(found)):
                if told is None:
                    refused.append(name)
                for arch, fault, n, spills in told or ():
                    kernels[arch] += n
                    spilled[arch] += spills
                    if fault:
                        faults.append(f"{name}, {arch}: {fault}")
    for fault in faults:
        print(f"FAILED: {fault}")
    for arch in ARCHS:
        print(f"{arch}: {kernels[arch]} kernels, {spilled[arch]} of them with registers in memory")
        if spilled[arch] > kernels[arch] // 50:
            faults.append(arch)
    print(f"{len(found)} models, {len(refused)} refused, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
