#!/usr/bin/env python3
"""Damages GGUF files, by seed: each has to be taken, or refused with messages that name it.

    mutate.py --build build-sanitize/tests/gguf_build [--count 5000] [--seed 0] [--keep DIR]     150: 2 s
    mutate.py .. --ingot build-sanitize/ingot --every 20      also compiles every 20th of those that are taken

The files are tiny models of decoder.py, one of each family, with the vocabularies of text.py. A third of the
damage is to values of keys, a third to tensors (dims, types, names, those left out or there twice), the rest to
bytes of the header, which is where a reader may be led astray. A build with sanitizers reads them; what fails is kept.
Exit status 77, skipped: there is no numpy.
"""

import argparse
import collections
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

try:
    import numpy  # noqa: F401  (decoder.py needs it)
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import decoder
import gguf_file as gguf
import text

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "onnx"))
from process import call  # noqa: E402

INTS = (0, 1, -1, 2, 3, 7, 64, 100, 2**16, 2**24, 2**24 + 1, 2**31 - 1, -(2**31), 2**32 - 1)
FLOATS = (0.0, -1.0, 1e30, 1e-40, 0.5, float("nan"), float("inf"), float("-inf"))
TEXTS = (b"", b"llama", b"gpt2", b"yarn", b"longrope", b"\xff\x00\n\x1b[31m", b"%s%n", b"x" * 5000)
SIZES = (0, 1, 2, 16, 31, 32, 33, 96, 256, 2**31, 2**32, 2**62, 2**63, 2**64 - 1)
KINDS = ("B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d")  # of values, by number
OK, INVALID, UNSUPPORTED = 0, 3, 4
BATCH = 25


class Raw:
    """A value as its type's number and bytes."""

    def __init__(self, kind, data):
        self.kind, self.data = kind, data


def value(r):
    """One of any type."""
    what = r.randrange(5)
    if what == 0:
        kind = r.randrange(13)
        x = r.choice(FLOATS if KINDS[kind] in ("f", "d") else INTS)
        if KINDS[kind] in ("f", "d"):
            return Raw(kind, struct.pack("<" + KINDS[kind], min(x, 3e38)))
        if KINDS[kind]:
            size = struct.calcsize("<" + KINDS[kind])
            return Raw(kind, (x & (256**size - 1)).to_bytes(size, "little"))
        return Raw(8, gguf.text(r.choice(TEXTS)))
    if what == 1:
        return Raw(8, gguf.text(r.choice(TEXTS)))
    if what == 2:
        return Raw(4, struct.pack("<I", r.choice(INTS) & 0xFFFFFFFF))
    if what == 3:
        return Raw(6, struct.pack("<f", r.choice(FLOATS)))
    n = r.randrange(4)
    items = b"".join(struct.pack("<I", r.choice(INTS) & 0xFFFFFFFF) for _ in range(n))
    return Raw(9, struct.pack("<IQ", r.choice((4, 5, 6)), n) + items)


def spoil_key(r, f):
    # as often one of the model as one of its tokens
    names = [k for k in f.keys if k.startswith("tokenizer") == bool(r.randrange(2))]
    name = r.choice(names or list(f.keys))
    if r.randrange(5) == 0:
        del f.keys[name]
    elif isinstance(f.keys[name], list) and r.randrange(2):
        items = list(f.keys[name])
        for _ in range(r.choice((1, 1, 30))):
            at = r.randrange(len(items))
            what = r.randrange(4)
            if what == 0:
                del items[at:]
                items = items or f.keys[name][:1]
            elif what == 1:
                items[at] = items[r.randrange(len(items))]
            elif isinstance(items[at], (str, bytes)):
                items[at] = r.choice(TEXTS)
            else:
                items[at] = type(items[at])(r.randrange(-1, 9))
        f.keys[name] = [x % 2**32 if isinstance(x, int) else x for x in items]
    else:
        f.keys[name] = value(r)


def spoil_tensor(r, f):
    name = r.choice(list(f.tensors))
    kind, dims, offset, body = f.tensors[name]
    what = r.randrange(6)
    if what == 0:
        del f.tensors[name]
        return
    if what == 1:
        other = r.choice(list(f.tensors))
        f.tensors[r.choice((name + "x", "blk.9.ffn_up.weight", "x"))] = f.tensors[other]
        return
    if what == 2:
        dims = list(dims)
        if dims:  # none are left of some that were damaged before
            dims[r.randrange(len(dims))] = r.choice(SIZES)
    elif what == 3:
        dims = r.choice((dims[::-1], dims + [1], dims[:1], dims + [1, 1], dims + [2], []))
    elif what == 4:
        kind = r.choice([n for n, _, _ in gguf.TYPES.values()] + [r.randrange(45), 2**31])
    else:
        offset = r.choice((0, 32, 33, offset + 32, 2**40, 2**63, 2**64 - 32))
    f.tensors[name] = kind, dims, offset, body


class File:
    """A good one, in parts."""

    def __init__(self, model, vocabulary):
        self.keys = {"general.architecture": model.family, **vocabulary}
        self.keys |= {f"{model.family}.{k}": v for k, v in model.keys.items()}
        self.tensors, self.data = {}, b""
        for name, (kind, shape, body) in model.tensors.items():
            self.data += bytes(-len(self.data) % 32)
            self.tensors[name] = gguf.TYPES[kind][0], list(shape[::-1]), len(self.data), body
            self.data += body

    def copy(self):
        other = File.__new__(File)
        other.keys, other.tensors, other.data = dict(self.keys), dict(self.tensors), self.data
        return other

    def header(self):
        out = struct.pack("<4sIQQ", b"GGUF", 3, len(self.tensors), len(self.keys))
        for k, v in self.keys.items():
            kind, data = (v.kind, v.data) if isinstance(v, Raw) else gguf.value(v)
            out += gguf.text(k) + struct.pack("<I", kind) + data
        for name, (kind, dims, offset, _) in self.tensors.items():
            out += gguf.text(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
            out += struct.pack("<IQ", kind, offset)
        return out + bytes(-len(out) % 32)


def spoil_bytes(r, data):
    data = bytearray(data)
    for _ in range(r.choice((1, 1, 2, 8))):
        at, what = r.randrange(len(data)), r.randrange(5)
        if what == 0:
            data[at] = r.randrange(256)
        elif what == 1:
            data[at] ^= 1 << r.randrange(8)
        elif what == 2:
            data[at : at + 4] = (r.choice(INTS) & 0xFFFFFFFF).to_bytes(4, "little")
        elif what == 3:
            data[at : at + 8] = r.choice(SIZES).to_bytes(8, "little")
        else:
            del data[at : at + r.choice((1, 4, 8, 64))]
    return bytes(data)


def damaged(r, good):
    f = r.choice(good).copy()
    what = r.randrange(3)
    for _ in range(r.choice((1, 1, 2))):
        if what == 0:
            spoil_key(r, f)
        elif what == 1:
            spoil_tensor(r, f)
    data = f.header()
    if what == 2:
        data = spoil_bytes(r, data)
    data += f.data
    return data[: r.randrange(len(data))] if r.randrange(12) == 0 else data


def run(program, paths):
    """Of each: status or what crashed, and what was told."""
    left, found = list(paths), {}
    while left:
        done = call([program, *left], 60 + 4 * len(left))
        err = "it takes too long" if done.timed_out else done.err
        told = []
        for line in done.out.split("\n"):
            if line.startswith("= ") and left:
                found[left.pop(0)] = int(line[2:]), told
                told = []
            else:
                told.append(line)
        if left:
            lines = [s for s in err.splitlines() if "ERROR" in s or "SUMMARY" in s or "error:" in s]
            found[left.pop(0)] = "crashed: " + " ".join(lines or [err[:200] or "?"])[:400], told
    return found


def fault(path, status, told):
    """What is wrong with it, or None."""
    if isinstance(status, str):
        return status
    if status not in (OK, INVALID, UNSUPPORTED):
        return f"status {status}: {told}"
    errors = [s for s in told if s.startswith("error: ")]
    if (status != OK) != bool(errors):
        return f"status {status} with {len(errors)} errors"
    if any(path.name not in s for s in errors):
        return f"a message does not name the file: {errors}"
    for s in told:
        if any(ord(c) < 32 or c == "\x7f" for c in s) or s and not s.startswith(("error", "note")):
            return f"a message has control characters: {told}"
    return None


def compiled(ingot, path, folder):
    command = [str(ingot), "compile", str(path), "-o", str(folder / "out"), "-q"]
    done = subprocess.run(
        [*command, "--dim", "n=1..4", "--dim", "past=0..8"], capture_output=True, text=True
    )
    if done.returncode not in (OK, INVALID, UNSUPPORTED) or "Sanitizer" in done.stderr:
        return f"compile: status {done.returncode}: {done.stderr[:400]}"
    return None


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--build", type=pathlib.Path, required=True)
    p.add_argument("--count", type=int, default=5000)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--keep", type=pathlib.Path)
    p.add_argument("--ingot", type=pathlib.Path)
    p.add_argument("--every", type=int, default=20)
    opt = p.parse_args()
    decoder.LAYERS = 1
    vocabularies = [text.Bytes("smollm"), text.Bytes("llama-bpe"), text.Pieces()]
    good = []
    for i, family in enumerate(decoder.FAMILIES):
        v = vocabularies[i % len(vocabularies)]
        good.append(File(decoder.Model(family, i, words=len(v.tokens)), v.keys))
    ends, failed, taken = collections.Counter(), 0, 0
    for first in range(0, opt.count, BATCH):
        with tempfile.TemporaryDirectory(prefix="ingot-gguf-") as scratch:
            scratch = pathlib.Path(scratch)
            paths = [scratch / f"{i}.gguf" for i in range(first, min(first + BATCH, opt.count))]
            for path in paths:
                path.write_bytes(damaged(random.Random(f"{opt.seed} {path.stem}"), good))
            for path, (status, told) in run(opt.build, paths).items():
                why = fault(path, status, told)
                taken += status == OK
                if not why and status == OK and opt.ingot and taken % opt.every == 0:
                    why = compiled(opt.ingot, path, scratch)
                ends[status if isinstance(status, int) else "crashed"] += 1
                if why:
                    failed += 1
                    print(f"FAIL {path.stem}: {why}", flush=True)
                    if opt.keep:
                        opt.keep.mkdir(parents=True, exist_ok=True)
                        (opt.keep / f"{opt.seed}_{path.name}").write_bytes(path.read_bytes())
    by_status = ", ".join(f"{n} with status {what}" for what, n in sorted(ends.items(), key=str))
    print(f"{sum(ends.values())} files: {by_status}; {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
