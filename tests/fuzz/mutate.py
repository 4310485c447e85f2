#!/usr/bin/env python3
"""Damages good models, by seed, and hands them to `ingot compile`, which should be a sanitized
build.

    mutate.py --ingot build-sanitize/ingot DIRS... [--count 2000] [--seed 0] [--models 200] [--keep
        DIR]

Half of the damage is to structure (an attribute's value or type, dims, element types, inputs left
out or exchanged, nodes doubled or moved, names, opsets, weights, huge integers), half to bytes.
Each run must end in time with a documented status, with a message naming the file where it is no
success, with no sanitizer's report, and leave no bundle unless the status is 0. `--build` also
compiles what was accepted; with `--options` a target and options are drawn for each, too. Failures
are kept with the seed in their name; mutation N of a seed is always the same.
"""

import argparse
import collections
import concurrent.futures
import functools
import os
import pathlib
import random
import shutil
import sys
import tempfile

import onnx
from onnx import AttributeProto as A

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "onnx"))
from process import SETTINGS, call, crashed, first_line  # noqa: E402

INTS = (
    0,
    1,
    -1,
    2,
    -2,
    3,
    5,
    8,
    9,
    16,
    17,
    32,
    64,
    100,
    -100,
    4096,
    65536,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**62,
    -(2**62),
    2**63 - 1,
    -(2**63),
)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e30, -1e30, 1e-40, float("nan"), float("inf"), float("-inf"))
STRINGS = (
    b"",
    b"x",
    b"SAME_UPPER",
    b"VALID",
    b"linear",
    b"\xff\x00a",
    b"i,j->",
    b"...",
    b"a" * 5000,
)
OK, DOCUMENTED = 0, (0, 3, 4)


# -- structure --------------------------------------------------------------------------------


def graphs(g):
    """The graph and those inside it."""
    yield g
    for n in g.node:
        for a in n.attribute:
            if a.type == A.GRAPH:
                yield from graphs(a.g)


def spoil_attribute(r, g):
    a = r.choice(r.choice(g.node).attribute)
    if a.type == A.INT:
        a.i = r.choice(INTS)
    elif a.type == A.FLOAT:
        a.f = r.choice(FLOATS)
    elif a.type == A.STRING:
        a.s = r.choice(STRINGS)
    elif a.type == A.INTS:
        spoil_list(r, a.ints, INTS)
    elif a.type == A.FLOATS:
        spoil_list(r, a.floats, FLOATS)
    elif a.type == A.STRINGS:
        spoil_list(r, a.strings, STRINGS)
    elif a.type == A.TENSOR:
        spoil_tensor(r, a.t)


def spoil_list(r, values, pool):
    what = r.randrange(4)
    if what == 0 and len(values):
        del values[r.randrange(len(values))]
    elif what == 1:
        values.append(r.choice(pool))
    elif len(values):
        values[r.randrange(len(values))] = r.choice(pool)


def spoil_tensor(r, t):
    what = r.randrange(5)
    if what == 0:
        t.data_type = r.randrange(28)
    elif what == 1:
        t.dims.append(r.choice(INTS))
    elif what == 2 and t.dims:
        t.dims[r.randrange(len(t.dims))] = r.choice(INTS)
    elif what == 3 and t.raw_data:
        size = {1: 4, 6: 4, 7: 8, 11: 8}.get(t.data_type, 1)
        at = r.randrange(len(t.raw_data) // size + 1) * size
        new = (r.choice(INTS) & (1 << 8 * size) - 1).to_bytes(size, "little")
        t.raw_data = t.raw_data[:at] + new + t.raw_data[at + size :]
    elif t.int64_data:
        spoil_list(r, t.int64_data, INTS)
    elif t.raw_data:
        t.raw_data = t.raw_data[: r.randrange(len(t.raw_data))]


def attribute_type(r, g):
    r.choice(r.choice(g.node).attribute).type = r.randrange(15)


def attribute_gone(r, g):
    n = r.choice(g.node)
    del n.attribute[r.randrange(len(n.attribute))]


def attribute_of_another(r, g):
    n = r.choice(g.node)
    n.attribute.append(r.choice(r.choice(g.node).attribute))


def names_of(g):
    return (
        [x for n in g.node for x in (*n.input, *n.output)]
        + [v.name for v in g.input]
        + ["", "nowhere"]
    )


def input_exchanged(r, g):
    n = r.choice(g.node)
    n.input[r.randrange(len(n.input))] = r.choice(names_of(g))


def input_gone(r, g):
    n = r.choice(g.node)
    del n.input[r.randrange(len(n.input))]


def input_more(r, g):
    r.choice(g.node).input.append(r.choice(names_of(g)))


def output_exchanged(r, g):
    n = r.choice(g.node)
    n.output[r.randrange(len(n.output))] = r.choice(names_of(g))


def output_more(r, g):
    r.choice(g.node).output.append(r.choice(("more", *names_of(g))))


def infos(g):
    return list(g.input) + list(g.output) + list(g.value_info)


def declared_dim(r, g):
    d = r.choice(r.choice(infos(g)).type.tensor_type.shape.dim)
    if r.random() < 0.2:
        d.dim_param = r.choice(("n", "m", ""))
    else:
        d.dim_value = r.choice(INTS)


def small_dim(r, g):
    r.choice(r.choice(infos(g)).type.tensor_type.shape.dim).dim_value = r.randrange(8)


def declared_rank(r, g):
    dims = r.choice(infos(g)).type.tensor_type.shape.dim
    if r.random() < 0.5:
        dims.add().dim_value = r.choice(INTS)
    else:
        del dims[r.randrange(len(dims))]


def declared_type(r, g):
    r.choice(infos(g)).type.tensor_type.elem_type = r.randrange(28)


def declared_not(r, g):
    r.choice(infos(g)).ClearField("type")


def weight(r, g):
    spoil_tensor(r, r.choice(g.initializer))


def input_to_weight(r, g):
    """An input becomes a weight: what was computed at run time is computed now."""
    v = r.choice(g.input)
    dims = [d.dim_value for d in v.type.tensor_type.shape.dim]
    count = 1
    for d in dims:
        count *= d
    t = g.initializer.add(name=v.name, data_type=v.type.tensor_type.elem_type, dims=dims)
    if count < 100000:
        size = {1: 4, 6: 4, 7: 8, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}.get(t.data_type, 1)
        kind = r.randrange(3)
        one = (
            bytes(size)
            if kind == 0
            else (r.choice(INTS) & (1 << 8 * size) - 1).to_bytes(size, "little")
        )
        t.raw_data = r.randbytes(size * count) if kind == 1 else one * count


def node_doubled(r, g):
    g.node.append(r.choice(g.node))


def node_gone(r, g):
    del g.node[r.randrange(len(g.node))]


def node_op(r, g):
    r.choice(g.node).op_type = r.choice(OPS)


def nodes_reversed(r, g):
    nodes = list(g.node)[::-1]
    del g.node[:]
    g.node.extend(nodes)


STRUCTURE = (
    spoil_attribute,
    spoil_attribute,
    spoil_attribute,
    attribute_type,
    attribute_gone,
    attribute_of_another,
    input_exchanged,
    input_gone,
    input_more,
    output_exchanged,
    output_more,
    declared_dim,
    declared_dim,
    small_dim,
    small_dim,
    declared_rank,
    declared_type,
    declared_type,
    declared_not,
    weight,
    weight,
    input_to_weight,
    input_to_weight,
    node_doubled,
    node_gone,
    node_op,
    node_op,
    nodes_reversed,
)
OPS = []


def structure(r, data):
    m = onnx.load_from_string(data)
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        if r.random() < 0.03:
            m.opset_import[0].version = r.choice((1, 5, 6, 7, 9, 10, 11, 13, 18, 21, 24, *INTS))
            continue
        for _ in range(20):  # until one finds something to spoil
            try:
                r.choice(STRUCTURE)(r, r.choice(list(graphs(m.graph))))
                break
            except (IndexError, ValueError, TypeError, OverflowError):
                continue
    return m.SerializeToString()


# -- bytes ------------------------------------------------------------------------------------


def damage_bytes(r, data):
    data = bytearray(data)
    for _ in range(r.choice((1, 1, 1, 2, 4, 16))):
        at = r.randrange(len(data)) if data else 0
        n = r.randrange(1, 16)
        what = r.randrange(6)
        if what <= 1 and data:
            data[at] ^= 1 << r.randrange(8)
        elif what == 2 and data:
            data[at] = r.choice((0, 1, 0x7F, 0x80, 0xFF, r.randrange(256)))
        elif what == 3:
            del data[at : at + n]
        elif what == 4:
            data[at:at] = r.randbytes(n)
        else:
            to = r.randrange(len(data)) if data else 0
            data[to:to] = data[at : at + n]
    return bytes(data)


# -- runs -------------------------------------------------------------------------------------


def mutation(pool, seed, i):
    r = random.Random(f"{seed}/{i}")
    name, data = r.choice(pool)
    return name, (structure if r.random() < 0.7 else damage_bytes)(r, data)


def drawn_options(seed, i):
    """What a compile is asked for, beside the model; nothing of it may matter to whether it ends
    well."""
    r = random.Random(f"{seed}/{i}/options")
    targets = "c c c:x86-64-v4 c:x86-64-v3 c:sapphirerapids c:c99 c:cortex-m4 opencl cuda:sm_80 cuda:sm_90a"
    asked = ["--target", r.choice(targets.split())]
    for chance, flag in (
        (0.15, ("--fuse", "all")),
        (0.1, ("--fuse", "none")),
        (0.1, ("--prefer", "ram")),
        (0.1, ("--prefer", "time")),
        (0.1, ("--precision", "1e-5")),
        (0.05, ("-O0",)),
        (0.1, ("--save-sched", "saved.sched")),
    ):
        if (
            r.random() < chance
            and flag[0] not in asked
            and not (flag[0] == "--save-sched" and "-O0" in asked)
        ):
            asked += flag
    return asked


def judge(i, pool, opt):
    name, data = mutation(pool, opt.seed, i)
    asked = drawn_options(opt.seed, i) if opt.options else []
    work = pathlib.Path(tempfile.mkdtemp(prefix="m", dir=opt.work))
    (work / "model.onnx").write_bytes(data)
    done = call(
        [opt.ingot, "compile", "model.onnx", "-o", "out", *asked], opt.timeout, opt.env, cwd=work
    )
    why = crashed(done)
    left = (work / "out").exists()
    if not why and done.timed_out:
        why = "still running"
    if not why and done.rc not in DOCUMENTED:
        why = f"status {done.rc}: {first_line(done.err)}"
    if not why and done.rc and "model.onnx" not in done.err:
        why = f"status {done.rc} without a message that names the file: {first_line(done.err)}"
    if not why and (done.rc == OK) != left:
        why = f"status {done.rc}, but {'a' if left else 'no'} bundle"
    if not why and done.rc == OK and opt.build:
        cflags = "-O0 -w -std=c99 -pedantic-errors"
        made = call(
            ["make", "-s", "-C", work / "out", f"CFLAGS={cflags}"], 4 * opt.timeout, opt.env
        )
        if made.rc and not made.timed_out:
            why = f"the bundle does not build: {first_line(made.err)}"
    if why and opt.keep:
        keep = opt.keep / f"{opt.seed}_{i}_{name}"
        keep.mkdir(parents=True, exist_ok=True)
        (keep / "model.onnx").write_bytes(data)
        (keep / "stderr").write_text(" ".join(asked) + "\n" + done.err)
    shutil.rmtree(work, ignore_errors=True)
    return i, name, done.rc, why


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument(
        "dirs", nargs="+", type=pathlib.Path, metavar="DIR", help="model.onnx files below"
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--count", type=int, default=2000)
    p.add_argument("--first", type=int, default=0, help="number of the first mutation")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--models", type=int, default=200, help="good models drawn, each at most 8 KB")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    p.add_argument("--timeout", type=float, default=120)
    p.add_argument(
        "--options", action="store_true", help="each with a target and options, drawn too"
    )
    p.add_argument("--build", action="store_true", help="compile the bundles, too")
    p.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="where failures go")
    opt = p.parse_args()
    opt.ingot = opt.ingot.absolute()
    files = sorted(f for d in opt.dirs for f in d.rglob("model.onnx") if f.stat().st_size <= 8192)
    if not files:
        sys.exit("mutate.py: no model found")
    files = random.Random(opt.seed).sample(files, min(opt.models, len(files)))
    pool = [(f.parent.name, f.read_bytes()) for f in files]
    OPS.extend(
        sorted({n.op_type for _, data in pool for n in onnx.load_from_string(data).graph.node})
    )
    status, faults = collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="ingot-mutate-") as scratch:
        opt.work = scratch
        opt.env = dict(os.environ, **SETTINGS)
        with concurrent.futures.ThreadPoolExecutor(opt.jobs) as threads:
            runs = range(opt.first, opt.first + opt.count)
            for i, name, rc, why in threads.map(functools.partial(judge, pool=pool, opt=opt), runs):
                status[rc] += 1
                if why:
                    faults += 1
                    print(f"FAIL {i} {name}: {why}", flush=True)
    ends = ", ".join(f"{n} with status {rc}" for rc, n in sorted(status.items()))
    print(f"seed {opt.seed}: {opt.count} mutations of {len(pool)} models: {ends}; {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
