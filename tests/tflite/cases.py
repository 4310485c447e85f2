#!/usr/bin/env python3
"""TensorFlow Lite files give what LiteRT's reference kernels give, operator by operator and type by type.

    cases.py --values build/tests/tflite_values [--ingot build/ingot] [--filter NAME] [--keep DIR]

Models of one operator are written (writer.py), run by LiteRT (BUILTIN_REF) and by the interpreter of graphs. Integers are
to be equal, floats within 1e-5 of the range. Results of 8 bits with --rounding xnnpack are those of LiteRT's default delegate. Exit status 77, skipped: there is no ai-edge-litert, flatbuffers or numpy.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    import control_cases
    import custom_cases
    import float_cases
    import hlo_cases
    import hybrid_cases
    import micro_cases
    import quant_cases
    import rnn_cases
    import segment_cases
    import text_cases
    import type_cases
    from writer import Model
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

TABLES = [
    float_cases,
    quant_cases,
    hybrid_cases,
    rnn_cases,
    segment_cases,
    custom_cases,
    control_cases,
    text_cases,
    hlo_cases,
    type_cases,
]
NAMES = {
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "object": "string",
    "int32": "i32",
    "int64": "i64",
    "int8": "i8",
    "uint8": "u8",
    "int16": "i16",
    "bool": "bool",
}


def drawn(r, shape, dtype, how):
    """Whole numbers, and floats of all sizes between the bounds."""
    if dtype == np.bytes_:
        words = how.get("words", ["", "one", "two words"])
        return r.choice(np.array([w.encode() for w in words], object), shape)
    if dtype == np.bool_:
        return r.integers(0, 2, shape).astype(bool)
    if dtype in (np.int8, np.uint8, np.int16) and "whole" not in how:
        i = np.iinfo(dtype)
        return r.integers(i.min, i.max + 1, shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        return r.integers(int(how["low"]), int(how["high"]), shape).astype(dtype)
    return r.uniform(how["low"], how["high"], shape).astype(dtype)


def judged(data, how, seed):
    """What LiteRT's reference kernels make of inputs: (inputs, outputs)."""
    kinds = [OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES]
    if "optimized" not in how:
        kinds.insert(0, OpResolverType.BUILTIN_REF)
    if "delegate" in how:
        kinds = [OpResolverType.AUTO]
    for kind in kinds:
        try:
            it = Interpreter(model_content=data, experimental_op_resolver_type=kind)
            it.allocate_tensors()
            break
        except ValueError as e:
            if kind == kinds[-1] or "Didn't find op" not in str(e):  # some have no reference
                raise
    r = np.random.default_rng(seed)
    ins = []
    for d in it.get_input_details():
        ins.append(drawn(r, d["shape"], d["dtype"], how))
        it.set_tensor(d["index"], ins[-1])
    it.invoke()
    return ins, [np.array(it.get_tensor(d["index"])) for d in it.get_output_details()]


def save(v, path):
    """The bytes; of strings with a NUL behind each."""
    if v.dtype == object:
        path.write_bytes(b"".join(s + b"\0" for s in v.flat))
    else:
        v.tofile(path)


def load(path, dtype):
    if dtype == object:
        return np.array(path.read_bytes().split(b"\0")[:-1], object)
    return np.fromfile(path, dtype)


def difference(got, want, exact=False):
    """'' if they agree, in all bits or floats to 1e-5 of the range. Those of 16 bits are LiteRT's to 2 in the last place: it rounds between operations."""
    if np.issubdtype(want.dtype, np.floating) and not exact:
        limit = (2e-3 if want.dtype == np.float16 else 1e-5) * max(
            1e-30, np.abs(np.where(np.isfinite(want), want, 0)).max(initial=0)
        )
        bad = ~((np.abs(got - want) <= limit) | (got == want) | (np.isnan(got) & np.isnan(want)))
    else:
        bad = got != want
    if not bad.any():
        return ""
    at = tuple(int(v) for v in np.argwhere(bad)[0])
    return f"{bad.sum()} of {bad.size} differ, the first at {at}: {got[at]}, not {want[at]}"


def compare(folder, line, wants, exact=False):
    status, shapes = line[0], line[1:]
    if status != "0":
        faults = folder / "faults"
        return f"status {status}: " + (faults.read_text().strip() if faults.exists() else "")
    for i, want in enumerate(wants):
        shape = f"{NAMES[str(want.dtype)]}[{','.join(map(str, want.shape))}]"
        if i >= len(shapes) or shapes[i] != shape:
            return f"output {i} is {shapes[i] if i < len(shapes) else 'missing'}, not {shape}"
        got = load(folder / f"out_{i}", want.dtype).reshape(want.shape)
        why = difference(got, want, exact)
        if why:
            return f"output {i}: {why}"
    return ""


def as_delegate(values, root, pattern):
    """(cases whose results have 8 bits, what failed): with xnnpack's rounding, 99 % of the default delegate's elements each, and of all
    together 99.9 %."""
    wants, failed, equal, size = {}, [], 0, 0
    for name, make in quant_cases.CASES.items():
        model, how = make()
        if pattern not in name or not name.endswith(("_i8", "_u8")):
            continue
        folder = root / f"xnnpack_{name}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.tflite").write_bytes(model.bytes())
        try:
            ins, wants[folder] = judged(model.bytes(), how | dict(delegate=True), len(wants))
        except (RuntimeError, ValueError):
            continue  # it refuses what its reference kernels take
        for i, v in enumerate(ins):
            save(v, folder / f"in_{i}")
    subprocess.run([values, "--xnnpack", *wants], capture_output=True)
    for folder, outs in wants.items():
        for i, want in enumerate(outs):
            if want.dtype not in (np.int8, np.uint8):
                continue  # not the delegate's
            file = folder / f"out_{i}"
            got = load(file, want.dtype) if file.exists() else np.empty(0)
            n = int((got == want.reshape(-1)).sum()) if got.size == want.size else 0
            equal, size = equal + n, size + want.size
            if n < 0.99 * want.size:
                failed.append(f"{folder.name}: {n} of {want.size} are the default delegate's")
    if equal < 0.999 * size:
        failed.append(f"xnnpack: {equal} of {size} are the default delegate's")
    return len(wants), failed


def user_op(ingot, folder):
    """'' if a custom operator is a C function of the user's (--op)."""
    model, function = custom_cases.of_the_user()
    x = np.random.default_rng(1).uniform(-1, 1, (2, 3)).astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "blend.c").write_text("#include <stdint.h>\n" + custom_cases.FUNCTION)
    (folder / "model.tflite").write_bytes(model.bytes())
    np.save(folder / "x.npy", x)
    command = [ingot, "run", folder / "model.tflite", "--op", f"Blend={folder / 'blend.c'}"]
    command += ["--input", f"x={folder / 'x.npy'}", "--output-dir", folder, "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    return difference(np.load(folder / "output_0.npy"), function(x))


def random_numbers(values, folder):
    """'' if drawn numbers have the shape, the mean and the variance, and classes the shares, that they should have."""
    n, shares = 20000, np.float32([0.1, 0.2, 0.7])
    m = Model()
    dims, seed = m.constant(np.int32([2, n])), dict(seed=3, seed2=4)
    for name in "RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL":
        m.output(m.op(name, [dims], [m.tensor((2, n))], RandomOptions=seed))
    logits = m.constant(np.log(np.stack([shares, shares[::-1]])))
    ins = [logits, m.constant(np.array(n, np.int32))]
    m.output(m.op("MULTINOMIAL", ins, [m.tensor((2, n), "int64")], RandomOptions=seed))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.tflite").write_bytes(m.bytes())
    line = subprocess.run([values, folder], capture_output=True, text=True).stdout.split()[1:]
    if line != ["0", f"f32[2,{n}]", f"f32[2,{n}]", f"i64[2,{n}]"]:
        return f"random numbers: {line}"
    u, z = (np.fromfile(folder / f"out_{i}", np.float32).reshape(2, n) for i in range(2))
    k = np.fromfile(folder / "out_2", np.int64).reshape(2, n)
    got = [*u.mean(1), *u.var(1), *z.mean(1), *z.var(1)]
    got += [(k[row] == c).mean() for row in range(2) for c in range(3)]
    want = [0.5, 0.5, 1 / 12, 1 / 12, 0, 0, 1, 1, *shares, *shares[::-1]]
    return "" if np.allclose(got, want, atol=0.03) else f"random numbers: {got}, not {want}"


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--values", type=pathlib.Path, required=True)
    p.add_argument("--ingot", type=pathlib.Path)
    p.add_argument("--filter", default="")
    p.add_argument("--keep", type=pathlib.Path)
    opt = p.parse_args()
    failed, wants, exact = 0, {}, set()
    with tempfile.TemporaryDirectory(prefix="ingot-tflite-") as scratch:
        root = opt.keep or pathlib.Path(scratch)
        for table in TABLES:
            for name, make in table.CASES.items():
                if opt.filter not in name:
                    continue
                model, how = make()
                folder = root / name
                folder.mkdir(parents=True, exist_ok=True)
                data = model.bytes()
                (folder / "model.tflite").write_bytes(data)
                try:
                    ins, wants[name] = judged(data, how, len(wants))
                    exact |= {name} if how.get("exact") else set()
                except (RuntimeError, ValueError) as e:
                    failed += 1
                    print(f"FAIL {name}: LiteRT: {str(e).strip()[:200]}")
                    continue
                for i, v in enumerate(ins):
                    save(v, folder / f"in_{i}")
        done = subprocess.run(
            [opt.values, *(root / n for n in wants)], capture_output=True, text=True
        )
        lines = {pathlib.Path(s.split()[0]).name: s.split()[1:] for s in done.stdout.splitlines()}
        for name, want in wants.items():
            why = "it crashed"
            if name in lines:
                why = compare(root / name, lines[name], want, name in exact)
            failed += bool(why)
            if why:
                print(f"FAIL {name}: {why}")
        count, faults = as_delegate(opt.values, root, opt.filter)
        failed += len(faults)
        for why in faults:
            print(f"FAIL {why}")
        checks = {"random_numbers": random_numbers} | micro_cases.CHECKS
        for name, check in checks.items():
            if opt.filter not in name:
                continue
            wants[name] = []
            why = check(opt.values, root / name)
            failed += bool(why)
            if why:
                print(f"FAIL {name}: {why}")
        if opt.ingot and opt.filter in "user_op":
            wants["user_op"] = []
            why = user_op(opt.ingot, root / "user_op")
            failed += bool(why)
            if why:
                print(f"FAIL user_op: {why}")
    print(f"{len(wants) + count} cases, {failed} failed")
    return 1 if failed or not wants else 0


if __name__ == "__main__":
    sys.exit(main())
