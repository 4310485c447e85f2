#!/usr/bin/env python3
"""Damages TensorFlow Lite files, by seed: each has to be taken, or refused with a message that names it.

    mutate.py --values build-sanitize/tests/tflite_values [--count 3000] [--seed 0] [--keep DIR] [PATH...]

The files are those of cases.py, and PATHs. Half of the damage is to structure (shapes, types, scales, versions, options, inputs left
out or exchanged, buffers cut), half to bytes. They are read and built into a graph by a build with sanitizers, in turns with each --rounding; what fails is
kept.
Exit status 77, skipped: there is no ai-edge-litert, flatbuffers or numpy.
"""

import argparse
import collections
import pathlib
import random
import struct
import sys
import tempfile

try:
    import flatbuffers
    import numpy as np
    from ai_edge_litert import schema_py_generated as schema
    from cases import TABLES
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "onnx"))
from process import call  # noqa: E402

INTS = (0, 1, -1, 2, -2, 3, 7, 8, 100, -100, 65536, 2**31 - 1, -(2**31))
BLOCKS = schema.QuantizationDetails.BlockwiseQuantization
FLOATS = (0.0, -1.0, 1e30, 1e-40, float("nan"), float("inf"))
BATCH = 50


def graph(r, m):
    """One that has operators: bodies of scatters may have none."""
    return r.choice([g for g in m.subgraphs if g.operators] or m.subgraphs)


def spoil_tensor(r, m):
    t = r.choice(graph(r, m).tensors)
    what = r.randrange(5)
    if what == 0:
        t.type = r.randrange(20)
    elif what == 1:
        shape = [int(v) for v in (t.shape if t.shape is not None else [])]
        shape.insert(r.randrange(len(shape) + 1), r.choice(INTS))
        t.shape = shape
    elif what == 2 and t.shape is not None and len(t.shape):
        shape = [int(v) for v in t.shape]
        shape[r.randrange(len(shape))] = r.choice(INTS)
        t.shape = shape
    elif what == 3:
        t.buffer = r.randrange(len(m.buffers) + 1)
    elif t.quantization is not None and t.quantization.detailsType == BLOCKS:
        field = r.choice(("scales", "zeroPoints", "blockSize"))
        setattr(t.quantization.details, field, r.choice((-1, 0, 1, 2, 32, 33, 1 << 30)))
    elif t.quantization is not None and t.quantization.scale is not None:
        t.quantization.scale = [r.choice(FLOATS) for _ in range(r.randrange(4))]
        t.quantization.zeroPoint = [r.choice(INTS) for _ in range(r.randrange(4))]


def spoil_option(r, m):
    op = r.choice(graph(r, m).operators)
    o = op.builtinOptions or op.builtinOptions2
    if o is None:
        return
    name = r.choice([k for k in vars(o)] or [None])
    old = getattr(o, name) if name else None
    if isinstance(old, bool):
        setattr(o, name, not old)
    elif isinstance(old, int):
        setattr(o, name, r.choice((0, 1, -1, 2, 3, 7, 100, -100)))
    elif isinstance(old, float):
        setattr(o, name, r.choice(FLOATS))
    elif old is not None and len(old) and not isinstance(old, (str, bytes)):  # sizes or axes
        new = [v if isinstance(v, float) else int(v) for v in old]
        new[r.randrange(len(new))] = r.choice((0, 1, -1, 2, 3, 7, 100, -100))
        setattr(o, name, new if r.randrange(2) else new[: r.randrange(len(new) + 1)])


def spoil_inputs(r, m):
    g = graph(r, m)
    o = r.choice(g.operators)
    which = r.choice(("inputs", "outputs"))
    ins = [int(v) for v in (getattr(o, which) if getattr(o, which) is not None else [])]
    what = r.randrange(3)
    if what == 0 and ins:
        del ins[r.randrange(len(ins))]
    elif what == 1 and ins:
        ins[r.randrange(len(ins))] = r.randrange(-2, len(g.tensors) + 2)
    else:
        ins.append(r.randrange(-1, len(g.tensors)))
    setattr(o, which, ins)


def spoil_code(r, m):
    c = r.choice(m.operatorCodes)
    c.builtinCode = r.randrange(-1, 211)
    c.deprecatedBuiltinCode = max(-1, min(c.builtinCode, 127))
    c.version = r.choice((0, 1, 2, 3, 4, 99))


def spoil_buffer(r, m):
    b = r.choice(m.buffers)
    if b.data is None or not len(b.data):
        return
    data = np.array(b.data, np.uint8)
    if r.randrange(2):
        data = data[: r.randrange(len(data))]
    else:
        data[r.randrange(len(data))] ^= 1 << r.randrange(8)
    b.data = data


def spoil_bytes(r, data):
    data = bytearray(data)
    for _ in range(r.choice((1, 1, 2, 8))):
        at = r.randrange(len(data))
        what = r.randrange(4)
        if what == 0:
            data[at] = r.randrange(256)
        elif what == 1:
            data[at] ^= 1 << r.randrange(8)
        elif what == 2:
            at = at // 4 * 4
            data[at : at + 4] = (r.choice(INTS) & 0xFFFFFFFF).to_bytes(4, "little")
        else:
            data = data[: max(8, at)]
    return bytes(data)


def damaged(r, data):
    m = schema.ModelT.InitFromPackedBuf(data, 0)
    if r.randrange(2) or not any(len(g.operators) for g in m.subgraphs):
        return spoil_bytes(r, data)
    for _ in range(r.choice((1, 1, 2))):
        r.choice((spoil_tensor, spoil_option, spoil_inputs, spoil_code, spoil_buffer))(r, m)
    b = flatbuffers.Builder(1 << 12)
    b.Finish(m.Pack(b), b"TFL3")
    return bytes(b.Output())


def run(values, how, folders):
    """Of each: its status, or what crashed."""
    left, found = list(folders), {}
    while left:
        done = call([values, "--build", *how, *left], 60 + len(left))
        err = "it takes too long" if done.timed_out else done.err
        got = {s.split()[0]: int(s.split()[1]) for s in done.out.splitlines()}
        found |= got
        ahead = [f for f in left if str(f) not in got]
        if ahead:
            found[str(ahead[0])] = "crashed: " + (err.strip().splitlines() or ["?"])[0][:200]
            if "SUMMARY" in err:
                found[str(ahead[0])] += " " + err[err.index("SUMMARY") :].splitlines()[0]
        left = ahead[1:]
    return found


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("paths", nargs="*", type=pathlib.Path, metavar="PATH")
    p.add_argument("--values", type=pathlib.Path, required=True)
    p.add_argument("--count", type=int, default=3000)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--keep", type=pathlib.Path)
    opt = p.parse_args()
    good = [make()[0].bytes() for table in TABLES for make in table.CASES.values()]
    good += [f.read_bytes() for f in opt.paths]
    ends, failed = collections.Counter(), 0
    for first in range(0, opt.count, BATCH):
        with tempfile.TemporaryDirectory(prefix="ingot-tflite-") as scratch:
            folders, how = [], ["--xnnpack"] if first // BATCH % 2 else []
            for i in range(first, min(first + BATCH, opt.count)):
                r = random.Random(f"{opt.seed} {i}")
                try:
                    data = damaged(r, r.choice(good))
                except (TypeError, ValueError, OverflowError, struct.error):
                    ends["could not be written"] += 1
                    continue
                folders.append(pathlib.Path(scratch) / str(i))
                folders[-1].mkdir()
                (folders[-1] / "model.tflite").write_bytes(data)
            for folder, status in run(opt.values, how, folders).items():
                folder = pathlib.Path(folder)
                faults = folder / "faults"
                told = faults.read_text(errors="replace") if faults.exists() else ""
                if status in (3, 4) and "model.tflite" not in told:
                    status = f"status {status} without a message: {told[:100]}"
                elif isinstance(status, int) and status not in (0, 3, 4):
                    status = f"status {status}: {told[:200]}"
                ends[status if isinstance(status, int) else "failed"] += 1
                if isinstance(status, str):
                    failed += 1
                    print(f"FAIL {folder.name}: {status}", flush=True)
                    if opt.keep:
                        opt.keep.mkdir(parents=True, exist_ok=True)
                        (opt.keep / f"{opt.seed}_{folder.name}.tflite").write_bytes(
                            (folder / "model.tflite").read_bytes()
                        )
    print(f"{sum(ends.values())} files: " + ", ".join(f"{n} {what}" for what, n in ends.items()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
