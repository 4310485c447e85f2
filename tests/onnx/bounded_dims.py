#!/usr/bin/env python3
"""Every operator with every axis of its inputs bounded: known at run time only, between two sizes.

    bounded_dims.py --ingot build/ingot --cases build/onnx-cases --work build/bounded [--sample N]
        [--out FILE.md]

Of the official node cases of one node, those of an operator that differ in attributes, version or
ranks. One axis of one input at a time becomes the free dim `n`, and what the operator wants equal
to it too: the fewest other axes of its size with which the judge runs the model at three sizes: the
least, the greatest and an odd one between. The sizes are 1, .., twice the case's; or its own and
more where it cannot be smaller; or multiples of its own. Inputs that say a shape (the second of
Reshape) become initializers. What no judge runs is no case.

The judge is ONNX Runtime, or else onnx's reference evaluator: whichever gives what the case itself
expects; where both do, they must agree on the shapes. The models are compiled ahead of time with
--dim n=LO..HI, and run at the three sizes (run.py). A pair of operator and axis passes if all of
its models do; it is refused if the compiler says why it cannot, or the program says at a size which
node does not allow it.

Exit status 1 when a result was wrong, a bundle did not build, or something crashed; or when fewer
than --least percent of the pairs passed.
"""

import argparse
import collections
import concurrent.futures
import functools
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import sys
import time
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import results  # noqa: E402
import run  # noqa: E402
import values  # noqa: E402

OPS = pathlib.Path(__file__).resolve().parents[2] / "importers" / "onnx" / "onnx_ops.def"

# Inputs that say a shape, an axis or a count: constants in every model that an exporter writes.
CONSTANT = {
    "AffineGrid": [1],
    "BlackmanWindow": [0],
    "CenterCropPad": [1],
    "Col2Im": [1, 2],
    "ConstantOfShape": [0],
    "CumProd": [1],
    "CumSum": [1],
    "DFT": [1, 2],
    "Dropout": [1, 2],
    "Expand": [1],
    "HammingWindow": [0],
    "HannWindow": [0],
    "MaxUnpool": [2],
    "MelWeightMatrix": [0, 1, 2, 3, 4],
    "NonMaxSuppression": [2, 3, 4],
    "OneHot": [1],
    "Pad": [1, 2, 3],
    "Range": [0, 1, 2],
    "Reshape": [1],
    "Resize": [1, 2, 3],
    "STFT": [1, 3],
    "Slice": [1, 2, 3, 4],
    "Split": [1],
    "SplitToSequence": [1],
    "Squeeze": [1],
    "Tile": [1, 2],
    "TopK": [1],
    "Trilu": [1],
    "Unsqueeze": [1],
    "Upsample": [1],
    "Loop": [0, 1],
    "SequenceAt": [1],
    "SequenceErase": [1],
    "SequenceInsert": [2],
    **{
        f"Reduce{k}": [1]
        for k in (
            "L1",
            "L2",
            "LogSum",
            "LogSumExp",
            "Max",
            "Mean",
            "Min",
            "Prod",
            "Sum",
            "SumSquare",
        )
    },
}
CFLAGS = "-O0 -std=c99 -Wall -Wextra -Werror"
# In every sample: (operator, input, axis) and a part of the case's name.
ALWAYS = {
    ("AveragePool", 0, 2): "3d_dilations_large_count_include_pad_is_0_ceil_mode_is_False",
    ("AveragePool", 0, 4): "ceil",
    ("MaxPool", 0, 2): "ceil",
    ("Conv", 0, 2): "autopad_same",
    ("Resize", 0, 2): "",
    ("Split", 0, 0): "",
    ("CumSum", 0, 0): "",
    ("LSTM", 0, 1): "",
    ("GRU", 2, 0): "batchwise",
    ("SpaceToDepth", 0, 2): "",
    ("Conv", 0, 1): "",
}
VARIANTS = 4  # models of a pair at most
COUPLED = 6  # axes of one size that are tried together at most


# -- the cases that there are ------------------------------------------------------------------


class Source:
    """A node case: its model, and the values of its first data set by name."""

    def __init__(self, folder):
        self.name = folder.name
        self.model = onnx.load(folder / "model.onnx")
        g = self.model.graph
        self.node = g.node[0] if len(g.node) == 1 else None
        self.folder = folder

    @functools.cached_property
    def data(self):
        case = run.Case(self.folder)
        first = case.sets()[0]
        feeds = {
            case.declared[0][n].name: values.load_pb(f, kind) for n, f, kind in case.inputs(first)
        }
        return feeds, [v for _, _, v in case.outputs(first)]

    def key(self):
        """What makes a case of an operator another one: all but its types and sizes."""
        g = self.model.graph
        attributes = sorted(
            re.sub(rb"\s", b"", a.SerializeToString())
            for a in self.node.attribute
            if a.name != "to"
        )
        ranks = [len(v.type.tensor_type.shape.dim) for v in list(g.input) + list(g.output)]
        return (
            self.model.opset_import[0].version,
            tuple(attributes),
            tuple(bool(x) for x in self.node.input),
            tuple(ranks),
        )


def operators():
    """(domain, name) of all lines of onnx_ops.def."""
    return re.findall(r'^ONNX_OP\("([^"]*)", (\w+),', OPS.read_text(), re.M)


def sources(folders):
    """The cases of each operator, one of each key; of floats if there is one."""
    found = {op: {} for op in operators()}
    for model in sorted(
        m for f in folders for m in f.rglob("node/*/model.onnx") if "_expanded" not in m.parent.name
    ):
        s = Source(model.parent)
        if s.node is None:
            continue
        domain = "" if s.node.domain == "ai.onnx" else s.node.domain
        kinds = found.get((domain, s.node.op_type))
        if kinds is None:
            continue
        first = s.model.graph.input[0].type.tensor_type.elem_type if s.model.graph.input else 0
        old = kinds.get(s.key())
        if old is None or (first == onnx.TensorProto.FLOAT and not old[0]):
            kinds[s.key()] = (first == onnx.TensorProto.FLOAT, s)
    return {op: [s for _, s in kinds.values()] for op, kinds in found.items()}


# -- one axis, free ----------------------------------------------------------------------------


def grown(a, axis, size):
    """An array with another size along an axis: repeated, floats that are no integers a little
    larger each time."""
    old = a.shape[axis]
    at = np.arange(size)
    b = np.take(a, at % old, axis)
    if a.dtype.kind == "f" and size > old and not np.array_equal(a, np.floor(a)):
        factor = (1 + 0.07 * (at // old)).reshape([-1 if i == axis else 1 for i in range(a.ndim)])
        b = (b.astype(np.float64) * factor).astype(a.dtype)
    return b


def size_choices(s):
    """(sizes, what they are) for an axis of s elements: the least, the greatest, an odd one that is
    not s."""
    top = max(2 * s, 7)
    yield sorted({1, top, next(k for k in range(top - 1, 0, -1) if k % 2 and k != s)})
    yield [s, next(k for k in range(s + 1, s + 3) if k % 2), s + 4]
    if s > 1:
        yield [s, 3 * s, 4 * s]


def without_shapes(graph):
    """Declared shapes of what is computed say nothing about other sizes."""
    del graph.value_info[:]
    for node in graph.node:
        for a in node.attribute:
            for sub in [a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs:
                without_shapes(sub)
                for v in list(sub.input) + list(sub.output):
                    forget(v.type)
    for v in graph.output:
        forget(v.type)


def forget(t):
    kind = t.WhichOneof("value")
    if kind == "sequence_type":
        forget(t.sequence_type.elem_type)
    elif kind == "optional_type":
        forget(t.optional_type.elem_type)
    elif kind == "tensor_type":
        for d in t.tensor_type.shape.dim:
            d.Clear()


class Judge:
    """ONNX Runtime or the reference evaluator on one model."""

    def __init__(self, kind, model):
        self.outputs = [o.name for o in model.graph.output]
        if kind == "ort":
            import onnxruntime as ort

            options = ort.SessionOptions()
            options.log_severity_level = 4
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            session = ort.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            self.names = {i.name for i in session.get_inputs()}
            self.run = lambda feeds: session.run(None, feeds)
        else:
            from onnx.reference import ReferenceEvaluator

            evaluator = ReferenceEvaluator(model)
            self.names = {i.name for i in model.graph.input}
            self.run = lambda feeds: evaluator.run(None, feeds)

    def __call__(self, feeds):
        with np.errstate(all="ignore"):
            got = self.run({k: v for k, v in feeds.items() if k in self.names})
        return [np.asarray(g) if isinstance(g, np.generic) else g for g in got]


class Bounding:
    """The models that one case gives."""

    def __init__(self, source):
        self.s = source
        model = onnx.ModelProto()
        model.CopyFrom(source.model)
        without_shapes(model.graph)
        feeds, self.wanted = source.data
        wanted = [
            n for i, n in enumerate(source.node.input) if i in CONSTANT.get(source.node.op_type, ())
        ]
        self.consts = {k: feeds[k] for k in wanted if isinstance(feeds.get(k), np.ndarray)}
        self.feeds = {k: v for k, v in feeds.items() if k not in self.consts}
        model.graph.initializer.extend(
            numpy_helper.from_array(v, k) for k, v in self.consts.items()
        )
        kept = [i for i in model.graph.input if i.name not in self.consts]
        del model.graph.input[:]
        model.graph.input.extend(kept)
        self.model = model

    def axes(self):
        """(input, axis) of all that can be free."""
        order = {n: i for i, n in reversed(list(enumerate(self.s.node.input)))}
        for v in self.model.graph.input:
            a = self.feeds.get(v.name)
            if (
                isinstance(a, np.ndarray)
                and v.name in order
                and v.type.WhichOneof("value") == "tensor_type"
            ):
                for axis, size in enumerate(a.shape):
                    if size:
                        yield v.name, order[v.name], axis

    @functools.cached_property
    def judges(self):
        """The judges that give what the case expects."""
        able = []
        for kind in ("ort", "reference"):
            try:
                for got, want in zip(Judge(kind, self.model)(self.feeds), self.wanted):
                    values.compare(got, want, 1e-3, 1e-5)
                able.append(kind)
            except Exception:  # it does not know this operator, or disagrees
                continue
        return able

    def free(self, places):
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        for v in model.graph.input:
            for name, axis in places:
                if v.name == name:
                    v.type.tensor_type.shape.dim[axis].dim_param = "n"
        return model

    def sized(self, places, size):
        feeds = dict(self.feeds)
        for name, axis in places:
            feeds[name] = grown(feeds[name], axis, size)
        return feeds

    def tried(self, places, sizes):
        """The model and its data sets, or None if the judge does not run it."""
        model = self.free(places)
        try:
            judge = Judge(self.judges[0], model)
            sets = [(f, judge(f)) for f in (self.sized(places, s) for s in reversed(sizes))]
            for kind in self.judges[
                1:
            ]:  # where the two have other shapes, the standard does not say
                other = Judge(kind, model)
                if any(
                    [np.shape(v) for v in other(f)] != [np.shape(v) for v in got] for f, got in sets
                ):
                    return None
        except Exception:
            return None
        for _, outputs in sets:
            for got, first in zip(outputs, sets[0][1]):
                if isinstance(got, np.ndarray) and (
                    got.ndim != first.ndim or got.dtype != first.dtype
                ):
                    return None  # no tensor has a rank that depends on the run
        return model, sets[::-1]

    def bounded(self, name, axis):
        """(model, data sets, places, sizes) with this axis free, or None."""
        size = self.feeds[name].shape[axis]
        others = [
            (k, i)
            for k, a in self.feeds.items()
            if isinstance(a, np.ndarray)
            for i, s in enumerate(a.shape)
            if s == size and (k, i) != (name, axis)
        ]
        sets = [
            c
            for n in range(min(len(others), COUPLED) + 1)
            for c in itertools.combinations(others, n)
        ]
        sets = sets[:200] + ([tuple(others)] if len(others) > COUPLED else [])
        for sizes in size_choices(size):
            for coupled in sets:
                places = ((name, axis),) + coupled
                if len(sets) > 1 and self.tried(places, sizes[-1:]) is None:
                    continue
                made = self.tried(places, sizes)
                if made:
                    return (*made, places, sizes)
        return None


def to_pb(value, name):
    if isinstance(value, list):
        return numpy_helper.from_list(value, name).SerializeToString()
    if value is None:
        return numpy_helper.from_optional(None, name, onnx.OptionalProto.TENSOR).SerializeToString()
    return numpy_helper.from_array(np.asarray(value), name).SerializeToString()


def write(folder, model, sets):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for i, (feeds, outputs) in enumerate(sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir()
        for n, v in enumerate(model.graph.input):
            (data / f"input_{n}.pb").write_bytes(to_pb(feeds.get(v.name), v.name))
        for n, (v, got) in enumerate(zip(model.graph.output, outputs)):
            (data / f"output_{n}.pb").write_bytes(to_pb(got, v.name))


# -- all of them -------------------------------------------------------------------------------


def pairs(found):
    """(operator, input, axis) -> its (source, input's name), the most different VARIANTS of
    them."""
    all_pairs = collections.defaultdict(list)
    for (domain, op), list_ in found.items():
        for s in list_:
            try:
                places = list(Bounding(s).axes())
            except Exception as e:
                print(f"{s.name}: {e}", file=sys.stderr)
                continue
            for name, i, axis in places:
                all_pairs[(domain, op, i, axis)].append((s, name))
    for key, list_ in all_pairs.items():
        list_.sort(key=lambda v: hashlib.blake2b(v[0].name.encode()).digest())
        yield key, list_[:VARIANTS]


def generate(item, work):
    """Writes the models of one pair; their folders."""
    (_, _, i, axis), variants = item
    made = []
    warnings.simplefilter("ignore")
    for s, name in variants:
        folder = work / s.node.op_type / f"{s.name.replace('test_', '')}_{i}_{axis}"
        note = folder / "bounded.json"
        try:
            if note.exists():
                if json.loads(note.read_text()):
                    made.append(folder)
                continue
            b = Bounding(s)
            got = b.bounded(name, axis) if b.judges else None
        except Exception as e:
            print(f"{s.name}: {type(e).__name__}: {e}", file=sys.stderr)
            continue
        if got:
            model, sets, places, sizes = got
            write(folder, model, sets)
            made.append(folder)
        else:
            folder.mkdir(parents=True, exist_ok=True)
        note.write_text(
            json.dumps({"judge": b.judges[0], "free": places, "sizes": sizes}) if got else "null"
        )
    return made


def options(argv):
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    a = p.add_argument
    a(
        "--cases",
        nargs="+",
        type=pathlib.Path,
        default=[pathlib.Path("build/onnx-cases")],
        metavar="DIR",
    )
    a(
        "--work",
        type=pathlib.Path,
        default=pathlib.Path("build/bounded"),
        help="where the models are written, and found again",
    )
    a("--ingot", type=pathlib.Path, default=pathlib.Path("build/ingot"))
    a("--jobs", type=int, default=os.cpu_count() or 2)
    a("--cc", default="gcc")
    a("--filter", metavar="REGEX", help="only operators that match")
    a(
        "--sample",
        type=int,
        metavar="N",
        help="only N pairs, drawn by --seed, and those of ALWAYS; one model of each",
    )
    a("--seed", type=int, default=0)
    a(
        "--least",
        type=float,
        default=90,
        metavar="PERCENT",
        help="of the pairs that must pass, unless they are a sample",
    )
    a("--cache", type=pathlib.Path, metavar="DIR")
    a("--keep", type=pathlib.Path, metavar="DIR")
    a("--sanitize", action="store_true")
    a("--out", type=pathlib.Path, metavar="FILE.md")
    return p.parse_args(argv)


def judged(folders, opt):
    """Results of run.py by folder."""
    results = opt.work / "results.json"
    listed = opt.work / "list.txt"
    listed.write_text("".join(f"{f.parent.name}/{f.name}\n" for f in folders))
    args = [
        opt.work,
        "--ingot",
        opt.ingot,
        "--jobs",
        opt.jobs,
        "--cc",
        opt.cc,
        "--data-dims",
        "--list",
        listed,
        "--atol",
        "1e-5",
        "--cflags",
        CFLAGS,
        "--json",
        results,
    ]
    for name in ("cache", "keep"):
        args += [f"--{name}", getattr(opt, name)] if getattr(opt, name) else []
    args += ["--sanitize"] if opt.sanitize else []
    run.main([str(x) for x in args])
    found = {r["name"]: r for r in json.loads(results.read_text())}
    for r in found.values():
        if r["status"] == "failed" and "(status 19): node '" in r["reason"]:
            r["status"] = "refused"
    return found


RANK = ("passed", "refused", "failed", "crash")


def table(rows, out):
    count = collections.Counter(s for r in rows for s, _ in r[3])
    per_op = collections.defaultdict(list)
    for row in rows:
        per_op[(row[0], row[1])].append(row)
    print(
        "| operator | pairs | passed | refused | wrong | what |\n|---|---|---|---|---|---|",
        file=out,
    )
    for (domain, op), list_ in sorted(per_op.items(), key=lambda kv: kv[0][1]):
        worst = [max((s for s, _ in r[3]), key=RANK.index) for r in list_]
        why = collections.OrderedDict(
            (results.group(w), None) for r in list_ for s, w in r[3] if s != "passed"
        )
        n = collections.Counter(worst)
        what = "; ".join(why).replace("|", "\\|")
        print(
            f"| {op} | {len(list_)} | {n['passed']} | {n['refused']} | {n['failed'] + n['crash']} | {what} |",
            file=out,
        )
    return count


def main(argv=None):
    opt = options(argv)
    opt.work = opt.work.absolute()
    opt.work.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    stamp, text = (
        opt.work / "stamp",
        f"{onnx.__version__} {hashlib.blake2b(pathlib.Path(__file__).read_bytes()).hexdigest()}",
    )
    if not stamp.exists() or stamp.read_text() != text:
        for d in opt.work.iterdir():
            if d.is_dir():
                shutil.rmtree(d)
        stamp.write_text(text)
    found = sources(opt.cases)
    found = {op: s for op, s in found.items() if not opt.filter or re.search(opt.filter, op[1])}
    items = sorted(pairs(found), key=lambda p: p[0])
    if opt.sample is not None and opt.sample < len(items):
        r = random.Random(opt.seed)
        drawn = {k: [r.choice(v)] for k, v in r.sample(items, opt.sample)}
        for k, v in items:
            if k[1:] in ALWAYS:
                drawn[k] = [v for v in v if ALWAYS[k[1:]] in v[0].name][:1] or v[:1]
        items = sorted(drawn.items())
    with concurrent.futures.ProcessPoolExecutor(opt.jobs) as pool:
        made = list(pool.map(functools.partial(generate, work=opt.work), items, chunksize=4))
    total = sum(len(m) for m in made)
    print(
        f"{len(items)} pairs, {sum(1 for m in made if m)} of which a judge runs at three sizes: {total} models "
        f"({time.monotonic() - began:.0f} s)",
        flush=True,
    )
    results = judged([f for m in made for f in m], opt)
    rows = []
    for (key, _), folders in zip(items, made):
        got = [results[f"{f.parent.name}/{f.name}"] for f in folders]
        if got:
            rows.append((*key[:2], key[2:], [(r["status"], r["reason"]) for r in got]))
            for r in got:
                if r["status"] in ("failed", "crash"):
                    print(f"WRONG {r['name']}: {r['reason']}")
    if opt.out:
        with opt.out.open("w") as f:
            table(rows, f)
    worst = collections.Counter(max((s for s, _ in r[3]), key=RANK.index) for r in rows)
    passed = 100 * worst["passed"] / max(1, len(rows))
    wrong = worst["failed"] + worst["crash"]
    print(
        f"{len(rows)} pairs of operator and axis: {worst['passed']} passed ({passed:.1f} %), {worst['refused']} refused, "
        f"{wrong} wrong ({time.monotonic() - began:.0f} s)"
    )
    return 1 if wrong or (opt.sample is None and passed < opt.least) else 0


if __name__ == "__main__":
    sys.exit(main())
