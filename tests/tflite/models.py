#!/usr/bin/env python3
"""Public TensorFlow Lite models give what LiteRT gives.

    models.py --values build/tests/tflite_values [--list] PATH...      files, or folders to look for them in

Models are not kept in the tree; --list tells where those that this was tried with come from. Inputs are drawn. Integers are to be
equal to those of LiteRT's reference kernels, floats within 1e-5 of the range. A model that ingot refuses is told with its reason.
Exit status 77, skipped: there is no ai-edge-litert or numpy.
"""

import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np  # noqa: F401
    from cases import compare, judged
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

SOURCES = """\
https://github.com/tensorflow/tflite-micro   tensorflow/lite/micro: examples (hello_world, micro_speech, dtln, mnist_lstm), models, integration_tests
https://github.com/mlcommons/tiny            benchmark/training/*/trained_models: image classification, keyword spotting, visual wake words, anomaly detection
"""


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("paths", nargs="*", type=pathlib.Path, metavar="PATH")
    p.add_argument("--values", type=pathlib.Path)
    p.add_argument("--list", action="store_true")
    opt = p.parse_args()
    if opt.list:
        print(SOURCES, end="")
        return 0
    files = [f for q in opt.paths for f in (sorted(q.rglob("*.tflite")) if q.is_dir() else [q])]
    ends = collections.Counter()
    for file in files:
        with tempfile.TemporaryDirectory(prefix="ingot-tflite-") as scratch:
            folder = pathlib.Path(scratch)
            data = file.read_bytes()
            (folder / "model.tflite").write_bytes(data)
            try:
                ins, wants = judged(data, dict(low=-1, high=1), 1)
            except (RuntimeError, ValueError) as e:
                ends["LiteRT refuses"] += 1
                print(f"{file}: LiteRT: {str(e).splitlines()[0][:150]}")
                continue
            for i, v in enumerate(ins):
                v.tofile(folder / f"in_{i}")
            done = subprocess.run([opt.values, folder], capture_output=True, text=True)
            line = done.stdout.split()[1:]
            why = compare(folder, line, wants) if line else "it crashed"
            ends["refused" if why.startswith("status 4") else "differ" if why else "right"] += 1
            if why:
                print(f"{file}: {why.replace(scratch, '.')}")
    print(f"{len(files)} models: " + ", ".join(f"{n} {what}" for what, n in sorted(ends.items())))
    return 1 if ends["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
