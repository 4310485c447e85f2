#!/usr/bin/env python3
"""Draws random ONNX graphs by seed; compares the compiled bundle with ONNX Runtime.

    random_graphs.py --ingot build/ingot --n 300 --seed 1 [--target c:native] [--ops joined,conv]
        [--sanitize] [--dims]

Graph N of a seed is always the same: 3 to 15 nodes, as a chain with side branches, weights as
initializers or as inputs, several outputs. A node that ONNX Runtime refuses, or that gives no
finite values, is not drawn. With --dims one size of the inputs, where ONNX Runtime takes others, is
known to the run only: the least, the greatest and one between are tried. Each model is compiled
ahead of time, made by every compiler of --cc with all warnings being errors, and its program run on
npy data:

    passed     |got - want| <= 1e-3 |want| + 1e-5 range (more where there are f16); integers and
               bool exact
    unstable   wrong, but ONNX Runtime's own outputs move as much when its inputs move by 3e-6
    refused    the compiler said that it cannot; the message must name a node, else it is a failure
    wrong, crash

What is wrong or crashes is made smaller: outputs are dropped, and nodes become inputs that have
their values, as long as the fault stays. The rest is told in one line a node, and left in --keep.
Exit status 1 when there was a fault, 77 without ONNX Runtime.
"""

import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time

try:
    import ml_dtypes  # noqa: F401
    import numpy as np
    import onnx
    import onnxruntime as ort
    from drawing import MOST, Drawing, Model
    from graph_ops import OPS
    from onnx import TensorProto, helper
except ImportError as missing:
    print(f"random_graphs.py: skipped: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "onnx"))
import objects  # noqa: E402
from process import SETTINGS, call, crashed, first_line  # noqa: E402

MARCH = {"c": "", "c:c99": "", "c:native": "-march=native", "c:x86-64-v3": "-march=x86-64-v3"}
SANITIZE = "-g -fsanitize=address,undefined -fno-sanitize-recover=all"
FAULTS = ("wrong", "crash")
ort.set_default_logger_severity(4)


# -- drawing -----------------------------------------------------------------------------------


def draw(seed, only):
    ops = {f: n for f, n in OPS.items() if not only or f.__name__.strip("_") in only}
    while True:
        d = Drawing(seed)
        d.fresh.append(
            d.image(d.r.choice((1, 2, 2, 2, 3))) if d.r.random() < 0.65 else d.pick(0, 4)
        )
        want = d.r.randint(3, 15)
        for _ in range(4 * want):
            if len(d.nodes) >= want:
                break
            d.r.choices(list(ops), ops.values())[0](d)
        m = d.finish()
        if m.nodes and m.outputs:
            return m
        seed += "'"


def bounded(model, seed):
    """The model with a free dim: an axis of an input, and if need be all axes of its size; else as
    it is."""
    r = random.Random(f"{seed} dims")
    axes = [(k, i) for k, a in model.inputs.items() for i, s in enumerate(a.shape) if s]
    r.shuffle(axes)
    for k, i in axes[:6]:
        size = model.inputs[k].shape[i]
        equal = tuple(p for p in axes if model.inputs[p[0]].shape[p[1]] == size)
        top = r.choice((size + r.randint(1, 4), 2 * size, 3 * size + 1))
        for low in (1, size):
            for free in dict.fromkeys((((k, i),), equal)):
                sizes = sorted({low, top, r.randint(low, top)})
                m = Model(model.nodes, model.inputs, model.weights, model.outputs, free, sizes)
                try:
                    got = [m.at(s).oracle() for s in sizes]
                except Exception:
                    continue
                plain = all(
                    a.ndim == got[0][o].ndim
                    and a.size <= MOST
                    and np.isfinite(a.astype(np.float64)).all()
                    for g in got
                    for o, a in g.items()
                )
                if plain and all(a.size for a in got[-1].values()) == all(
                    a.size for a in got[0].values()
                ):
                    return m
    return model


# -- judging -----------------------------------------------------------------------------------


def difference(got, want, half):
    """None, or how the two differ."""
    if got is None:
        return "no output"
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
    if not want.size:
        return None
    if want.dtype.kind != "f":
        bad = got != want
    else:
        g, w = got.astype(np.float64), want.astype(np.float64)
        span = np.abs(w).max(initial=0.0, where=np.isfinite(w)) or 1.0
        with np.errstate(all="ignore"):
            rtol, atol = (1e-2, 2e-3) if half else (1e-3, 1e-5)
            zero = (
                np.finfo(want.dtype).tiny if want.dtype.itemsize > 2 else 0
            )  # what is subnormal: docs/numerics.md
            bad = ~(
                (np.abs(g - w) <= rtol * np.abs(w) + atol * span + zero)
                | (g == w)
                | (np.isnan(g) & np.isnan(w))
            )
    if not bad.any():
        return None
    at = tuple(int(v[0]) for v in np.nonzero(np.atleast_1d(bad)))
    return (
        f"{int(bad.sum())} of {bad.size} values differ, first at {list(at)}: "
        f"{np.atleast_1d(got)[at]!s} for {np.atleast_1d(want)[at]!s}"
    )


def judge(model, want, opt, work):
    """(status, why, the outputs that are wrong)."""
    work = pathlib.Path(work)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    file, bundle = work / "model.onnx", work / "bundle"
    onnx.save(model.proto(want), file)
    target = ["--target", opt.target] if opt.target != "c" else []
    if model.free:
        target += ["--dim", f"n={model.sizes[0]}..{model.sizes[-1]}"]
    done = call(
        [opt.ingot, "compile", file, "-o", bundle, *target, *opt.compile_arg], opt.timeout, opt.env
    )
    if done.timed_out:
        return "crash", "compile: timed out", []
    if crashed(done):
        return "crash", f"compile: {crashed(done)}", []
    if done.rc in (1, 4):
        named = any(re.search(rf"\b{n.name}\b", done.err) for n in model.nodes)
        return (
            ("refused" if named else "wrong"),
            first_line(done.err) + ("" if named else " (names no node)"),
            [],
        )
    if done.rc:
        return "wrong", f"compile: status {done.rc}: {first_line(done.err)}", []
    flags = f"-O1 {MARCH.get(opt.target, '')} -std=c99 -Wall -Wextra -Wpedantic -Werror -Wno-psabi {opt.cflags}"
    flags += " " + SANITIZE if opt.sanitize else ""
    for cc in opt.cc.split(","):
        call(["make", "-s", "-C", bundle, "clean"], opt.timeout, opt.env)
        foreign = (
            [] if opt.target in MARCH else ["FLAGS=-std=c99 -ffp-contract=off -pthread -I."]
        )  # of another machine: what C it has
        done = (objects.make if foreign else objects.program)(
            bundle, cc, flags, lambda words: call(words, opt.timeout, opt.env), *foreign
        )
        if done.rc:
            return "crash", f"make: {'timed out' if done.timed_out else first_line(done.err)}", []
        for size in model.sizes or (None,):
            one = model.at(size) if size else model
            result = judge_run(one, one.oracle() if size else want, opt, work)
            if result[0] != "passed":
                at = f"n = {size}: " if size else ""
                return result[0], at + result[1], result[2]
    return "passed", "", []


def judge_run(model, want, opt, work):
    """The same of the program that has been built."""
    bundle = work / "bundle"
    for folder in (work / "in", work / "out"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    for i, a in enumerate(model.inputs.values()):
        np.save(work / "in" / f"input_{i}.npy", np.asarray(a, order="C"))
    done = call([bundle / "model", work / "in", work / "out"], opt.timeout, opt.env)
    if done.rc or crashed(done):
        return (
            "crash",
            f"run: {'timed out' if done.timed_out else crashed(done) or first_line(done.err)}",
            [],
        )
    half = any(a.dtype == np.float16 for a in want.values()) or any(
        n.op_type == "Cast" and helper.get_attribute_value(n.attribute[0]) == TensorProto.FLOAT16
        for n in model.nodes
    )
    wrong = {}
    for i, o in enumerate(model.outputs):
        made = work / "out" / f"output_{i}.npy"
        why = difference(np.load(made) if made.exists() else None, want[o], half)
        if why:
            wrong[o] = (made, why)
    if not wrong:
        return "passed", "", []
    # what moves as much by itself tells nothing
    firm = set(wrong)
    move = np.random.default_rng(0)
    for _ in range(8):
        moved = model.oracle(move)
        for o in list(firm):
            got = np.load(wrong[o][0]) if wrong[o][0].exists() else None
            if (
                got is None
                or got.shape != want[o].shape
                or got.dtype != want[o].dtype
                or not got.size
            ):
                continue
            g, w, m = (v.astype(np.float64) for v in (got, want[o], moved[o]))
            if np.abs(g - w).max() <= 3 * np.abs(m - w).max():
                firm.discard(o)
    if not firm:
        return "unstable", f"{list(wrong)[0]}: {wrong[list(wrong)[0]][1]}", []
    worst = sorted(firm)
    return "wrong", f"{worst[0]}: {wrong[worst[0]][1]}", worst


def pruned(nodes, model, values, outputs):
    """These nodes of a model, without what the outputs do not need; what is missing becomes an
    input."""
    need, kept = set(outputs), []
    for n in reversed(nodes):
        if need & set(n.output):
            kept.insert(0, n)
            need |= set(n.input)
    made = {o for n in kept for o in n.output}
    outputs = [o for o in dict.fromkeys(outputs) if o in made]
    cut = {
        k: values[k]
        for n in kept
        for k in n.input
        if k and k not in made and k not in model.weights
    }
    weights = {k: a for k, a in model.weights.items() if any(k in n.input for n in kept)}
    free = tuple(p for p in model.free if p[0] in cut)
    return Model(kept, cut, weights, outputs, free, model.sizes if free else ())


def shrink(model, fault, wrong, opt, work):
    """The smallest model found that still has a fault of this kind."""
    every = Model(
        model.nodes, model.inputs, model.weights, [o for n in model.nodes for o in n.output]
    )
    values = {**model.inputs, **model.weights, **every.oracle()}
    end = time.monotonic() + opt.shrink_s

    def faulty(m):
        if not m.nodes or not m.outputs or time.monotonic() > end:
            return None
        try:
            status, why, bad = judge(m, {o: values[o] for o in m.outputs}, opt, work)
        except Exception:
            return None
        return (why, bad) if status == fault[0] else None

    best, why = model, fault[1]
    for o in wrong or model.outputs:
        m = pruned(best.nodes, best, values, [o])
        got = faulty(m)
        if got:
            best, why = m, got[0]
            break
    again = not model.free  # the size of a value that becomes an input may be any function of n
    while again:
        again = False
        for i in range(len(best.nodes)):
            for outputs in (best.outputs, list(best.nodes[i].input)):
                m = pruned(best.nodes[:i] + best.nodes[i + 1 :], best, values, outputs)
                got = faulty(m) if 0 < len(m.nodes) < len(best.nodes) else None
                if got:
                    best, why, again = m, got[0], True
                    break
            if again:
                break
    for o in best.outputs[1:]:
        m = pruned(best.nodes, best, values, [p for p in best.outputs if p != o])
        got = faulty(m)
        if got:
            best, why = m, got[0]
    return best, why, values


def judged(args):
    """Graph `index` of the seed."""
    index, opt = args
    name = f"{opt.seed}/{index}"
    work = pathlib.Path(tempfile.mkdtemp(prefix="graph-", dir=opt.work))
    result = {"name": name, "status": "crash", "why": "", "ops": [], "lines": [], "dims": False}
    try:
        model = draw(name, opt.ops)
        model = bounded(model, name) if opt.dims else model
        result.update(ops=[n.op_type for n in model.nodes], dims=bool(model.free))
        try:
            want = model.oracle()
        except Exception as e:
            return {**result, "status": "skipped", "why": str(e)[:200]}
        status, why, wrong = judge(model, want, opt, work)
        result.update(status=status, why=why.replace(str(work) + "/", ""))
        if status in FAULTS:
            small, why, values = model, why, {**want}
            try:
                if opt.shrink_s:
                    small, why, values = shrink(model, (status, why), wrong, opt, work)
            except Exception as e:  # ONNX Runtime refuses some when every tensor is an output
                result["why"] += f" (not made smaller: {str(e)[:80]})"
            result.update(lines=list(small.lines()), small=why.replace(str(work) + "/", ""))
            if opt.keep:
                kept = opt.keep / name.replace("/", "-")
                judge(small, {o: values[o] for o in small.outputs}, opt, kept)
                onnx.save(model.proto(want), kept / "whole.onnx")
                for i, o in enumerate(small.outputs):
                    np.save(kept / f"want_{i}.npy", values[o])
    except Exception as e:
        result["why"] = f"harness: {type(e).__name__}: {e}"
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return result


def one(args):
    """The same in a process of its own, which ONNX Runtime ends where it crashes."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=lambda: writer.send(judged(args)))
    child.start()
    writer.close()
    try:
        result = reader.recv()
    except EOFError:
        child.join()
        result = {
            "name": f"{args[1].seed}/{args[0]}",
            "status": "skipped",
            "why": f"ONNX Runtime ended with status {child.exitcode}",
            "ops": [],
            "lines": [],
            "dims": False,
        }
    child.join()
    return result


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    a = p.add_argument
    a("--ingot", type=pathlib.Path, default=pathlib.Path("build/ingot"))
    a("--n", type=int, default=100)
    a("--first", type=int, default=0, help="number of the first graph")
    a("--seed", default="0")
    a("--ops", type=lambda s: s.split(","), help="draw only these, e.g. joined,conv,pool")
    a("--target", default="c")
    a("--jobs", type=int, default=2)
    a("--cc", default="gcc", help="C compiler, or several with commas")
    a("--dims", action="store_true", help="a size of the inputs is known to the run only")
    a("--cflags", default="", help="more flags")
    a("--compile-arg", action="append", default=[], metavar="ARG")
    a("--sanitize", action="store_true", help="build the bundles with ASan and UBSan")
    a("--timeout", type=float, default=240)
    a("--shrink-s", type=float, default=60, help="seconds to make one fault smaller; 0: not")
    a("--keep", type=pathlib.Path, help="leave what is wrong here")
    a("--show", action="store_true", help="only print the graphs")
    opt = p.parse_args()
    opt.ingot = opt.ingot.absolute()
    opt.env = dict(os.environ, **SETTINGS)
    if opt.keep:
        opt.keep = opt.keep.absolute()
        opt.keep.mkdir(parents=True, exist_ok=True)
    numbers = range(opt.first, opt.first + opt.n)
    if opt.show:
        for i in numbers:
            model = draw(f"{opt.seed}/{i}", opt.ops)
            model = bounded(model, f"{opt.seed}/{i}") if opt.dims else model
            print(f"{opt.seed}/{i}", *model.lines(), sep="\n    ")
        return 0
    began, results = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="ingot-graphs-") as opt.work:
        objects.folder()
        with concurrent.futures.ProcessPoolExecutor(opt.jobs) as workers:
            for r in workers.map(one, [(i, opt) for i in numbers]):
                results.append(r)
                if r["status"] != "passed":
                    print(f"{r['status']:8} {r['name']}: {r['why']}", flush=True)
                if r["lines"]:
                    print("    " + "\n    ".join([r["small"]] + r["lines"]), flush=True)
    count = collections.Counter(r["status"] for r in results)
    ops = collections.Counter(o for r in results for o in r["ops"])
    dims = f"{sum(r['dims'] for r in results)} with a free dim, " if opt.dims else ""
    print(
        f"{len(results)} graphs, {dims}{sum(ops.values())} nodes of {len(ops)} operators, --target {opt.target}: "
        + ", ".join(f"{n} {s}" for s, n in sorted(count.items()))
        + f" ({time.monotonic() - began:.0f} s)"
    )
    return 1 if any(count[s] for s in FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
