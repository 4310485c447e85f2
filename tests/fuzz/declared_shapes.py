#!/usr/bin/env python3
"""Sizes that the data decide, drawn by seed: what the file declares of them is never believed.

    declared_shapes.py --ingot build/ingot [--n 12] [--seed 1] [--keep DIR]

A model has up to three operators whose results' sizes are decided by its inputs, each followed by
an some that keep its axes, in an order of their own. It is compiled ahead of time, and its program
run on two kinds of data:

    declared   the file declares the sizes that the first data have (as exporters do), or others
    further    it declares them of the model's outputs only, right or wrong
    bounded    nothing is declared; --dim gives bounds of a value or of a size

With the first data and their own sizes declared, here or further, and with bounds, results have to
be right. Otherwise a run is right or fails with a status and a line that names node and sizes, and
a model that is refused names a node. ONNX Runtime, which gets the models without shapes, says what
is right. Exit status 1 when there was a fault, 77 without ONNX Runtime.
"""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"declared_shapes.py: skipped: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "onnx"))
import objects  # noqa: E402
from process import call  # noqa: E402

ort.set_default_logger_severity(4)
CFLAGS = "-O0 -std=c99 -Wall -Wextra -Werror"


def ints(*v):
    return np.array(v, np.int64)


def scalar(v):
    return np.array(v, np.int64)


class Case:
    """One operator: nodes, two values for each input, constants, flags of --dim; equal: dims that
    it makes equal."""

    def __init__(
        self, op, inputs, first, second, weights=None, dims=(), free=None, outputs=1, **attributes
    ):
        self.op, self.inputs, self.first, self.second = op, inputs, first, second
        self.weights, self.dims, self.free, self.outputs, self.attributes = (
            weights or {},
            dims,
            free,
            outputs,
            attributes,
        )


def floats(r, *shape):
    return np.array([r.uniform(-1, 1) for _ in range(int(np.prod(shape)))], np.float32).reshape(
        shape
    )


# Each draws a case; names of tensors get a prefix. "" is an input that is left out.


def range_(r):
    a, b = r.sample(range(2, 12), 2)
    return Case(
        "Range",
        ["z", "n", "s"],
        [scalar(a)],
        [scalar(b)],
        {"z": scalar(0), "s": scalar(r.choice((1, 2)))},
        r.choice(["n=0..16", "y_0=0..16"]),
    )


def range_of_floats(r):
    a, b = r.sample(range(2, 12), 2)
    step = np.float32(r.choice((0.5, 0.7)))
    return Case(
        "Range",
        ["z", "n", "s"],
        [np.float32(a)],
        [np.float32(b)],
        {"z": np.float32(0.1), "s": step},
        "y_0=0..32",
    )


def reshape(r):
    shapes = [(2, 3, 4), (4, 6), (12, 2), (-1, 8), (0, 4, 3), (3, 8, 1)]
    r.shuffle(shapes)
    a = shapes[0]
    b = next(s for s in shapes[1:] if len(s) == len(a))
    return Case(
        "Reshape",
        ["x", "s"],
        [floats(r, 2, 12), ints(*a)],
        [floats(r, 2, 12), ints(*b)],
        dims=" ".join(f"y_{i}=1..24" for i in range(len(a))),
    )


def expand(r):
    a, b = r.sample(range(2, 7), 2)
    x = floats(r, 3, 1)
    return Case(
        "Expand",
        ["x", "s"],
        [x, ints(a, 3, 2)],
        [x, ints(b, 1, 2)],
        dims=r.choice(["s=1..8", "y_0=0..8 y_2=0..8"]),
    )


def constant_of_shape(r):
    a, b = r.sample(range(0, 6), 2)
    return Case("ConstantOfShape", ["s"], [ints(a, 3)], [ints(b, 3)], dims="s=0..8")


def tile(r):
    a, b = r.sample(range(1, 5), 2)
    x = floats(r, 2, 3)
    return Case(
        "Tile",
        ["x", "k"],
        [x, ints(a, 2)],
        [x, ints(b, 2)],
        dims=r.choice(["k=1..4", "y_0=2..8 y_1=3..12"]),
    )


def slice_(r):
    x = floats(r, 9, 4)
    a, b = r.sample([(1, 6, 1), (-3, 9, 1), (0, 9, 2), (8, 0, -3), (3, 3, 1), (-100, 100, 1)], 2)
    return Case(
        "Slice",
        ["x", "a", "e", "i", "s"],
        [x, *(ints(v) for v in a)],
        [x, *(ints(v) for v in b)],
        {"i": ints(0)},
        "",
    )


def topk(r):
    x = floats(r, 3, 7)
    a, b = r.sample(range(1, 8), 2)
    return Case("TopK", ["x", "k"], [x, ints(a)], [x, ints(b)], dims="", outputs=2)


def pad(r):
    x = floats(r, 4, 3)
    a, b = r.sample(range(0, 5), 2)
    return Case(
        "Pad",
        ["x", "p"],
        [x, ints(1, 0, a, 0)],
        [x, ints(1, 0, b, 0)],
        dims="y_0=4..12 y_1=3",
        mode=r.choice(["constant", "edge"]),
    )


def one_hot(r):
    a, b = r.sample(range(3, 8), 2)
    return Case(
        "OneHot",
        ["x", "d", "v"],
        [ints(0, 2, 1), scalar(a)],
        [ints(0, 2, 1), scalar(b)],
        {"v": np.array([0, 1], np.float32)},
        r.choice(["d=1..8", "y_1=1..8"]),
    )


def split(r):
    x = floats(r, 7, 2)
    a, b = r.sample(range(0, 8), 2)
    return Case(
        "Split", ["x", "s"], [x, ints(a, 7 - a)], [x, ints(b, 7 - b)], dims="", outputs=2, axis=0
    )


def resize(r):
    x = floats(r, 1, 2, 4, 5)
    a, b = r.sample(range(2, 9), 2)
    return Case(
        "Resize",
        ["x", "", "", "s"],
        [x, ints(1, 2, a, 6)],
        [x, ints(1, 2, b, 6)],
        mode=r.choice(["nearest", "linear"]),
    )


def resize_by_scales(r):
    x = floats(r, 1, 1, 4, 4)
    a, b = (np.array([1, 1, s, 2], np.float32) for s in r.sample((0.5, 1.5, 2.0, 2.5), 2))
    return Case("Resize", ["x", "", "s"], [x, a], [x, b], mode="nearest")


def unsqueeze(r):
    x = floats(r, 2, 3)
    a, b = r.sample([(0, 1), (0, 3), (1, -1), (2, 3), (-4, 1)], 2)
    return Case("Unsqueeze", ["x", "a"], [x, ints(*a)], [x, ints(*b)])


def squeeze(r):
    x = floats(r, 1, 2, 1, 1)
    a, b = r.sample([(0, 2), (0, -1), (2, 3), (0, 1)], 2)
    a = a if 1 not in a else (0, 2)
    return Case("Squeeze", ["x", "a"], [x, ints(*a)], [x, ints(*b)])


def reduce_(r):
    x = floats(r, 2, 3, 4)
    keep = r.choice((0, 1))
    a, b = r.sample([(0,), (1,), (-1,), (-3,)], 2)
    return Case("ReduceSum", ["x", "a"], [x, ints(*a)], [x, ints(*b)], keepdims=keep)


def center_crop_pad(r):
    x = floats(r, 5, 2)
    a, b = r.sample(range(1, 9), 2)
    return Case("CenterCropPad", ["x", "s"], [x, ints(a)], [x, ints(b)], axes=[0])


def window(r):
    a, b = r.sample(range(2, 12), 2)
    return Case(
        r.choice(["HannWindow", "HammingWindow", "BlackmanWindow"]),
        ["n"],
        [scalar(a)],
        [scalar(b)],
        dims="n=1..16",
    )


def dft(r):
    x = floats(r, 1, 8, 1)
    a, b = r.sample(range(2, 9), 2)
    return Case("DFT", ["x", "n", "a"], [x, scalar(a)], [x, scalar(b)], {"a": scalar(1)})


def stft(r):
    x = floats(r, 1, 32, 1)
    a, b = r.sample(range(3, 9), 2)
    return Case("STFT", ["x", "p", "", "n"], [x, scalar(a)], [x, scalar(b)], {"n": scalar(8)})


def nonzero(r):
    a, b = (np.array([r.random() < p for _ in range(12)]).reshape(3, 4) for p in (0.4, 0.8))
    return Case("NonZero", ["x"], [a], [b], dims="")


def loop(r):
    a, b = r.sample(range(1, 7), 2)
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Add", ["c", "c"], ["d"]),
            helper.make_node("Identity", ["d"], ["e"]),
            helper.make_node("Identity", ["g"], ["h"]),
        ],
        "body",
        [
            info("i", TensorProto.INT64, []),
            info("g", TensorProto.BOOL, []),
            info("c", TensorProto.FLOAT, [2]),
        ],
        [
            info("h", TensorProto.BOOL, []),
            info("d", TensorProto.FLOAT, [2]),
            info("e", TensorProto.FLOAT, [2]),
        ],
    )
    return Case(
        "Loop",
        ["m", "t", "c"],
        [scalar(a), floats(r, 2)],
        [scalar(b), floats(r, 2)],
        {"t": np.array(True)},
        r.choice(["m=0..8", "z_0=0..8"]),
        outputs=2,
        body=body,
    )


# Free dims that the operator makes equal: the second data break it.


def concat(r):
    a, b = r.sample(range(2, 7), 2)
    return Case(
        "Concat",
        ["x", "w"],
        [floats(r, a, 2), floats(r, a, 3)],
        [floats(r, a, 2), floats(r, b, 3)],
        dims="n=1..8 m=1..8",
        free=[["n", 2], ["m", 3]],
        axis=1,
    )


def matmul(r):
    a, b = r.sample(range(2, 7), 2)
    return Case(
        "MatMul",
        ["x", "w"],
        [floats(r, 3, a), floats(r, a, 5)],
        [floats(r, 3, a), floats(r, b, 5)],
        dims="n=1..8 m=1..8",
        free=[[3, "n"], ["m", 5]],
    )


def add(r):
    a, b = r.sample(range(2, 7), 2)
    return Case(
        "Add",
        ["x", "w"],
        [floats(r, a, 2), floats(r, a, 1)],
        [floats(r, a, 2), floats(r, b, 1)],
        dims="n=2..8 m=2..8",
        free=[["n", 2], ["m", 1]],
    )


def flat(r):
    a = r.choice((2, 4, 6))
    return Case(
        "Reshape",
        ["x", "s"],
        [floats(r, a, 3)],
        [floats(r, a + 1, 3)],
        {"s": ints(-1, 6)},
        "n=1..8",
        free=[["n", 3]],
    )


CASES = [
    range_,
    range_of_floats,
    reshape,
    expand,
    constant_of_shape,
    tile,
    slice_,
    topk,
    pad,
    one_hot,
    split,
    resize,
    resize_by_scales,
    unsqueeze,
    squeeze,
    reduce_,
    center_crop_pad,
    window,
    dft,
    stft,
    nonzero,
    loop,
    concat,
    matmul,
    add,
    flat,
]


# What follows an operator that may be told its size by an output of the model.
FURTHER = (
    "Range",
    "Reshape",
    "Expand",
    "ConstantOfShape",
    "Tile",
    "Pad",
    "OneHot",
    "HannWindow",
    "HammingWindow",
    "BlackmanWindow",
)
TAIL = ("Neg", "Mul", "Transpose", "Unsqueeze", "twice")


def tail(r, op):
    return [r.choice(TAIL) for _ in range(r.randrange(4))] if op in FURTHER else []


# -- models ---------------------------------------------------------------------------------------


class Model:
    def __init__(self, cases, tails=None):
        self.cases, self.tails = cases, tails or [[] for _ in cases]

    def follow(self, k, last, nodes, weights):
        """Nodes that keep the axes of `last`; the name of what comes out."""
        for i, op in enumerate(self.tails[k]):
            more = {"Mul": [last], "Unsqueeze": [f"axis{k}"]}.get(op, [])
            nodes.append(
                helper.make_node(
                    op, [last] + more, [f"t{k}_{i}"], domain="own" if op == "twice" else ""
                )
            )
            last = f"t{k}_{i}"
        if "Unsqueeze" in self.tails[k]:
            weights.append(
                numpy_helper.from_array(
                    ints(1 if self.cases[k].op not in ("ConstantOfShape", "Range") else 0),
                    f"axis{k}",
                )
            )
        return last

    def proto(self, shapes=None):
        """shapes: of the results, by name, as the file declares them."""
        nodes, inputs, outputs, values, weights = [], [], [], [], []
        for k, case in enumerate(self.cases):
            name = {n: f"{n}{k}" if n else "" for n in case.inputs}
            given = [n for n in case.inputs if n and n not in case.weights]
            for i, n in enumerate(given):
                a = case.first[i]
                dims = (
                    [d if isinstance(d, int) else f"{d}{k}" for d in case.free[i]]
                    if case.free
                    else a.shape
                )
                inputs.append(
                    helper.make_tensor_value_info(
                        name[n], helper.np_dtype_to_tensor_dtype(a.dtype), dims
                    )
                )
            weights += [
                numpy_helper.from_array(np.asarray(v), name[n]) for n, v in case.weights.items()
            ]
            results = [f"{'yz'[i]}{k}" for i in range(case.outputs)]
            nodes.append(
                helper.make_node(
                    case.op,
                    [name[n] for n in case.inputs],
                    results,
                    name=f"op{k}",
                    **case.attributes,
                )
            )
            last = self.follow(k, results[0], nodes, weights)
            nodes.append(
                helper.make_node(
                    "Identity" if case.op in ("NonZero", "TopK") else "Neg", [last], [f"o{k}"]
                )
            )
            for r in [f"o{k}"] + results[1:]:
                outputs.append(r)
            values += results[:1]
        types = self.types if shapes is not None else {}

        def declared(r):
            return (
                helper.make_tensor_value_info(r, types[r], (shapes or {}).get(r))
                if r in types
                else onnx.ValueInfoProto(name=r)
            )

        graph = helper.make_graph(
            nodes,
            "sizes",
            inputs,
            [declared(r) for r in outputs],
            weights,
            value_info=[declared(r) for r in values if shapes and r in shapes],
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
        twice = helper.make_function(
            "own",
            "twice",
            ["a"],
            ["b"],
            [
                helper.make_node("Add", ["a", "a"], ["c"]),
                helper.make_node("Identity", ["c"], ["b"]),
            ],
            opsets[:1],
        )
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=[twice])
        return model, [i.name for i in inputs], outputs

    def data(self, second=()):
        return [v for k, c in enumerate(self.cases) for v in (c.second if k in second else c.first)]

    def oracle(self, second=()):
        """All results by name, or None where ONNX Runtime refuses the data."""
        model, names, outputs = self.proto()
        every = outputs + [v for k in range(len(self.cases)) for v in [f"y{k}"]]
        for v in every[len(outputs) :]:
            model.graph.output.append(onnx.ValueInfoProto(name=v))
        options = ort.SessionOptions()
        options.log_severity_level = 4
        try:
            session = ort.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            return dict(zip(every, session.run(None, dict(zip(names, self.data(second))))))
        except Exception:
            return None


def altered(r, shape):
    shape = list(shape)
    at = r.randrange(len(shape)) if shape else None
    if at is not None:
        shape[at] = max(0, shape[at] + r.choice((-2, -1, 1, 2, 5)))
    return shape


class Judge:
    def __init__(self, opt, work):
        self.opt, self.work, self.faults, self.counts = opt, work, [], {}

    def note(self, what, fault=None):
        self.counts[what] = self.counts.get(what, 0) + 1
        if fault:
            self.faults.append(fault)

    def build(self, model, shapes, flags, folder):
        """The program, or None and what the compiler said."""
        proto, _, _ = model.proto(shapes)
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(proto.SerializeToString())
        done = call(
            [self.opt.ingot, "compile", folder / "model.onnx", "-o", folder / "out", *flags], 60
        )
        if done.rc:
            return None, f"{done.rc}: {done.err.strip()}"
        done = objects.program(folder / "out", "gcc", CFLAGS, lambda words: call(words, 120))
        if done.rc:
            return None, f"make: {done.err.strip()[:400]}"
        return folder / "out" / "model", ""

    def run(self, program, model, second, must, where):
        want = model.oracle(second)
        data, out = program.parent.parent / "in", program.parent.parent / "got"
        shutil.rmtree(data, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        data.mkdir()
        for i, v in enumerate(model.data(second)):
            np.save(data / f"input_{i}.npy", v)
        done = call([program, data, out], 30)
        said = done.err.strip()
        if done.rc == 4 and "(status " in said and (" is " in said or "node '" in said):
            return self.note(
                "failed with a status",
                f"{where}: failed, but its results are known: {said}" if must and want else None,
            )
        if done.rc:
            return self.note("fault", f"{where}: exit status {done.rc}: {said}")
        if want is None:
            return self.note("fault", f"{where}: it ran, but the data break the model's rules")
        _, _, outputs = model.proto()
        for i, name in enumerate(outputs):
            got = np.load(out / f"output_{i}.npy")
            if got.shape != want[name].shape or not np.allclose(
                got, want[name], rtol=1e-3, atol=1e-4
            ):
                return self.note(
                    "fault",
                    f"{where}: output {name} is {got.shape}, not {want[name].shape}, or has other values",
                )
        return self.note("right")

    def altered(self, model, shapes, name, flags, r, where, folder):
        """One declared shape is another: refused, failed, or right."""
        program, said = self.build(
            model, {**shapes, name: altered(r, shapes[name])}, flags, self.work / folder
        )
        if program:
            self.run(program, model, (), False, where)
        else:
            self.note(
                "refused",
                None if said.startswith(("3:", "4:")) and "node '" in said else f"{where}: {said}",
            )

    def further(self, number, model, r):
        """Only the outputs are declared."""
        where = f"model {number} ({', '.join(' '.join([c.op] + t) for c, t in zip(model.cases, model.tails))}), further"
        first = model.oracle()
        model.types = {
            n: helper.np_dtype_to_tensor_dtype(np.asarray(v).dtype) for n, v in first.items()
        }
        shapes = {n: list(v.shape) for n, v in first.items() if n.startswith("o")}
        program, said = self.build(model, shapes, [], self.work / f"{number}_further")
        if not program:
            return self.note("fault", f"{where}: it does not compile: {said}")
        self.run(program, model, (), True, where)
        for second in range(len(model.cases)):
            self.run(program, model, (second,), False, f"{where}, other data for {second}")
        return self.altered(
            model,
            shapes,
            f"o{r.randrange(len(model.cases))}",
            [],
            r,
            f"{where}, altered",
            f"{number}_further_altered",
        )

    def judge(self, number, model, r):
        where = f"model {number} ({', '.join(c.op for c in model.cases)})"
        first = model.oracle()
        if first is None:
            return self.note("not drawn")
        model.types = {
            n: helper.np_dtype_to_tensor_dtype(np.asarray(v).dtype) for n, v in first.items()
        }
        shapes = {n: list(v.shape) for n, v in first.items()}
        free = [
            f"{d.split('=')[0]}{k}={d.split('=')[1]}"
            for k, c in enumerate(model.cases)
            if c.free
            for d in c.dims.split()
        ]
        flags = [f for d in free for f in ("--dim", d)]
        turns = [(k,) for k in range(len(model.cases))]
        program, said = self.build(model, shapes, flags, self.work / f"{number}_declared")
        if not program:
            self.note("fault", f"{where}: with its own sizes declared it does not compile: {said}")
        else:
            self.run(program, model, (), True, f"{where}, as declared")
            for second in turns:
                self.run(program, model, second, False, f"{where}, other data for {second[0]}")
        self.altered(
            model,
            shapes,
            f"y{r.randrange(len(model.cases))}",
            flags,
            r,
            f"{where}, altered",
            f"{number}_altered",
        )
        some = [k for k, c in enumerate(model.cases) if c.op in FURTHER]
        if some:
            self.further(
                number, Model([model.cases[k] for k in some], [model.tails[k] for k in some]), r
            )
        bounded = Model([c for c in model.cases if isinstance(c.dims, str)])
        if not bounded.cases:
            return None
        flags = []
        for k, c in enumerate(bounded.cases):
            for d in c.dims.split():
                name, value = d.split("=")
                tensor, _, axis = name.partition("_")
                flags += ["--dim", f"{tensor}{k}{'_' + axis if axis else ''}={value}"]
        bounded.types = {}
        want = bounded.oracle()
        bounded.types = {
            n: helper.np_dtype_to_tensor_dtype(np.asarray(v).dtype) for n, v in want.items()
        }
        program, said = self.build(bounded, {}, flags, self.work / f"{number}_bounded")
        if not program:
            return self.note("fault", f"{where}, bounded: it does not compile: {said}")
        self.run(program, bounded, (), True, f"{where}, bounded")
        for k in range(len(bounded.cases)):
            self.run(program, bounded, (k,), True, f"{where}, bounded, other data for {k}")
        return None


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", default="build/ingot")
    p.add_argument(
        "--n",
        type=int,
        default=(len(CASES) + 2) // 3,
        help="models; each operator comes once in the first ones",
    )
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--keep", type=pathlib.Path)
    opt = p.parse_args()
    work = opt.keep or pathlib.Path(tempfile.mkdtemp(prefix="declared_shapes."))
    judge = Judge(opt, work)
    r = random.Random(opt.seed)
    order = []
    for number in range(opt.n):
        if len(order) < 3:
            order += r.sample(CASES, len(CASES))
        drawn, order = order[:3], order[3:]
        cases = [make(r) for make in drawn]
        judge.judge(number, Model(cases, [tail(r, c.op) for c in cases]), r)
    for fault in judge.faults:
        print(fault)
    print(", ".join(f"{n} {what}" for what, n in sorted(judge.counts.items())))
    if not opt.keep:
        shutil.rmtree(work)
    return 1 if judge.faults else 0


if __name__ == "__main__":
    sys.exit(main())
