#!/usr/bin/env python3
"""Draws random ONNX graphs with sizes that the run knows; each under one drawn target, preset and
number of threads.

    sized_graphs.py --ingot build/ingot --n 500 --seed 1 [--ops twins,concat] [--sanitize] [--keep
        DIR]

Graph N of a seed is always the same: 3 to 14 nodes, one or two free dims, cases with none, one, as
many as lanes, and one more (sized.py, sized_ops.py). `ingot verify --interpret` runs the kernels'
statements for the target in one drawn case (--cases: so many), beside the reference interpreter and
what numpy says; or ONNX Runtime, of each node alone (sized_nodes.py, sized_exported.py; these are
not drawn where it is missing). With --sanitize a bundle is compiled by gcc with ASan and UBSan, and
its program run in all cases.

    passed     all equal within the tolerances of `ingot verify`
    halves     not, but as numpy says where halves go away from zero, of targets without an FPU
    exact      not, but as the graph in f64 says: ONNX Runtime rounds (sized_exact.py)
    unstable   not, but numpy's own outputs move as much by rounding (sized_moves.py)
    refused    the compiler said that it cannot; the message must name a node, else it is a failure
    wrong, crash

What fails is made smaller, first the graph, then the flags, and told with its flags; --keep leaves
model, data and command. Some are given a limit of memory (--max-ram; if nothing fits, what the
message says would), a number of devices, or a step of training, which is compared with the
interpreter of graphs alone. Exit status 1 when there was a fault.
"""

import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import pathlib
import random
import re
import shlex
import shutil
import sys
import tempfile

import numpy as np
import onnx
import sized
import sized_runtime
from onnx import numpy_helper
from sized import Drawing, all_nodes, reads, results
from sized_exact import exact_outputs
from sized_moves import largest_moves
from sized_exported import EXPORTED
from sized_nodes import NODES
from sized_ops import OPS
from sized_parts import PARTS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "onnx"))
import joined  # noqa: E402
import objects  # noqa: E402
from process import SETTINGS, call, crashed, first_line  # noqa: E402

TARGETS = [
    "c",
    "c:c99",
    "c:x86-64-v2",
    "c:x86-64-v3",
    "c:x86-64-v4",
    "c:x86-64-v4+vnni",
    "c:x86-64-v4+vnni+bf16",
    "c:sierraforest",
    "c:alderlake",
    "c:sapphirerapids",
    "c:armv8-a",
    "c:armv8.2-a+dotprod",
    "c:armv8.6-a",
    "c:armv8.4-a+sve256",
    "c:cortex-a53",
    "c:cortex-a72",
    "c:cortex-a76",
    "c:cortex-m0+",
    "c:cortex-m3",
    "c:cortex-m33",
    "c:cortex-m4",
    "c:cortex-m4-soft",
    "c:cortex-m55",
    "c:cortex-m7",
    "c:cortex-m85",
    "c:cortex-r52",
    "c:esp32s3",
    "c:rv32imc",
    "c:rv64gc",
    "c:rv64gcv",
    "c:rv64gcv+zvl256b",
    "c:wasm32",
    "c:wasm32-simd128",
    "c:wasm32-simd128+relaxed",
    "opencl",
    "opencl:fp16",
    "opencl:dot8",
    "opencl:images",
    "opencl:subgroups16",
    "opencl:dot8+subgroups32",
    "cuda:sm_60",
    "cuda:sm_70",
    "cuda:sm_75",
    "cuda:sm_80",
    "cuda:sm_86",
    "cuda:sm_89",
    "cuda:sm_90",
    "cuda:sm_90a",
    "cuda:sm_100",
    "hip:gfx90a",
    "hip:gfx1030",
    "wgsl",
    "wgsl:subgroups32",
    "wgsl:dot4",
]
WITHOUT_FPU = {"c:cortex-m0+", "c:cortex-m3", "c:cortex-m4-soft", "c:rv32imc"}
SANITIZE = "-O0 -g1 -std=c99 -Wall -Wextra -Werror -Wno-psabi -fsanitize=address,undefined -fno-sanitize-recover=all"
BY_INDEX = {
    "GatherND",
    "GatherElements",
    "ScatterND",
    "ReverseSequence",
    "RoiAlign",
    "LSTM",
    "GRU",
    "RNN",
}
FAULTS = ("wrong", "crash")
TOGETHER = (
    20  # graphs in one process: it loads what ONNX Runtime and numpy load when they are first used
)
ALONE = ("-O0", "--train")  # options without a value
# What the model has nothing for.
OPTIONS_REFUSED = (
    r"--devices \d: a bundle for|--parallel \w+: nothing of the model|: there is nothing to train:"
)
WITHOUT = {"--": ("--devices", "--parallel"), ": ": ("--train", "--loss", "--optimizer")}
# Of inputs that verify draws itself: sizes that depend on their values may be too small for indices.
DRAWN_OUTSIDE = r"\(\w+\): .* it has to be in .*"
ROUNDING = 0.02  # of a range: another result by more is another function
PLAIN_ONLY = ("--threads", "--devices", "--train")  # not for bundles


def draw(seed, only):
    families = {"plain": {**OPS, **PARTS}}
    if sized_runtime.ort:
        families.update(nodes=NODES, exported=EXPORTED)
    ops = {
        f: n
        for family, functions in families.items()
        for f, n in functions.items()
        if not only or family in only or f.__name__.strip("_") in only
    }
    while True:
        d = Drawing(seed)
        want = d.r.randint(3, 14)
        for _ in range(4 * want):
            if len(d.nodes) >= want:
                break
            d.r.choices(list(ops), ops.values())[0](d)
        m = d.finish()
        if m.nodes and m.outputs and m.dims:
            return m
        seed += "'"


def training_flags(r, model, target):
    """A step of training by one of the outputs; none where no float leaves the graph, and none in
    WGSL: optimizers count in f64."""
    known = model.values(0)
    if any(n.op_type in BY_INDEX and set(n.input) & set(model.inputs) for n in model.nodes):
        return None  # the indices that verify draws are outside
    wgsl = target.startswith("wgsl")
    outputs = [o for o in model.outputs if known[o].dtype == np.float32 and not wgsl]
    optimizer = r.choice(("sgd:rate=0.01", "momentum:rate=0.01", "adam:rate=0.01", "adamw"))
    return outputs and ("--train", "--loss", f"mse:{r.choice(outputs)}", "--optimizer", optimizer)


def devices_flags(r, target):
    how = ("--parallel", r.choice(("batch", "tensor", "layers")))
    return target.partition(":")[0] == "c" and ("--devices", r.choice("23"), *how)


def drawn_flags(seed, model, sanitize):
    r = random.Random(f"{seed} flags")
    flags = ["--target", r.choice(["c", "c:c99", "c:native"] if sanitize else TARGETS)]
    for chance, more in (
        (0.6, ("--fuse", r.choice(("none", "auto", "all", "all")))),
        (0.5, ("--prefer", r.choice(("ram", "time")))),
        (0.5, ("--threads", r.choice("234"))),
        (0.05, ("-O0",)),
        (0.15, ("--max-ram", r.choice(("1", "64", "1k", "4k", "16k")))),
        (0.12, devices_flags(r, flags[1])),
        (0.06, training_flags(r, model, flags[1])),
    ):
        if r.random() < chance and more and not (sanitize and more[0] in PLAIN_ONLY):
            flags += more
    return flags


# -- judging -----------------------------------------------------------------------------------


def told(done):
    """What the first line says that is no warning."""
    return first_line(re.sub(r"^\s*warning: .*\n", "", done.err, flags=re.M))


def outcome(done, model, what):
    """(status, why), or None where it went well."""
    if done.timed_out:
        return "crash", f"{what}: timed out"
    if crashed(done):
        return "crash", f"{what}: {crashed(done)}"
    useless = done.rc in (2, 4) and re.search(OPTIONS_REFUSED, done.err, re.M)
    if useless:
        return "refused", useless[0]
    if done.rc == 4:
        named = any(re.search(rf"\b{n.name}\b", done.err) for n in all_nodes(model.nodes))
        return ("refused" if named else "wrong"), told(done) + ("" if named else " (names no node)")
    return ("wrong", f"{what}: status {done.rc}: {told(done)}") if done.rc else None


def write_data(model, case, values, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for i, a in enumerate(model.inputs.values()):
        save(folder / f"input_{i}", a[case])
    for i, o in enumerate(model.outputs):
        save(folder / f"output_{i}", values[o])


def save(path, a):
    """As .npy, or as a tensor of ONNX where numpy knows no name of the type."""
    if a.dtype.kind == "V":
        onnx.save_tensor(numpy_helper.from_array(a), path.with_suffix(".pb"))
    else:
        np.save(path.with_suffix(".npy"), np.asarray(a, order="C"))


def sizes(model, case):
    return ", ".join(f"{k} = {v}" for k, v in model.cases[case].items() if k in model.dims)


def unstable(model, case, errors):
    """Whether each of these outputs moves by a third of this share of its range by itself."""
    try:
        moves = largest_moves(model, case, results)
    except ValueError:  # rounding decides even how many elements there are
        return True
    return all(moves[o] > error / 3 for o, error in errors.items())


def errors_of(text):
    """The outputs that `verify` finds to be others, with the largest error as a share of the range;
    None where it tells of one without that."""
    wrong = re.findall(r"output '.* is not that of .*", text)
    told = [re.search(r"output '(.*?)'.*largest error (\S+) of the range", s) for s in wrong]
    return {t[1]: float(t[2]) for t in told} if wrong and all(told) else None


def smoothed(command):
    """The step with an optimizer that divides by gradients' sizes and 1: by their sizes alone, one
    that is 0 but for rounding gives a whole step of either sign."""
    i = command.index("--optimizer") + 1
    how = command[i].replace("adamw", "adamw:rate=0.001") + ",epsilon=1"
    return [*command[:i], how, *command[i + 1 :]] if how.startswith("adam") else command


def values_away(model, case):
    """Halves go away from zero."""
    sized.halves_away = True
    try:
        return model.values(case)
    finally:
        sized.halves_away = False


def verify(model, flags, case, opt, work):
    file = work / "model.onnx"
    onnx.save(model.proto(), file)
    command = [opt.ingot, "verify", "--interpret", file, *model.bounds(), *flags]
    (work / "command").write_text(shlex.join(map(str, command)) + "\n")

    errors = None

    def run(values):
        nonlocal errors
        write_data(model, case, values, work / "data")
        done = call(command, opt.timeout, opt.env)
        errors = errors_of(done.err)
        return outcome(done, model, "verify")

    if "--train" in flags:  # its inputs are those that verify draws, and it judges itself
        done = call(command, opt.timeout, opt.env)
        outside = done.rc == 3 and re.search(DRAWN_OUTSIDE, done.err)
        failed = ("refused", outside[0]) if outside else outcome(done, model, "verify")
        if (
            failed
            and failed[0] == "wrong"
            and not outcome(call(smoothed(command), opt.timeout, opt.env), model, "verify")
        ):
            failed = "unstable", failed[1]
        return failed and (failed[0], f"{sizes(model, case)}: {failed[1]}")
    command += ["--data", work / "data"]
    (work / "command").write_text(shlex.join(map(str, command)) + "\n")
    failed = run(model.values(case))
    if failed and failed[0] == "wrong" and errors:
        far = errors
        exact = exact_outputs(model, case) if max(far.values()) < ROUNDING else None
        if WITHOUT_FPU & set(flags) and not run(values_away(model, case)):
            failed = "halves", failed[1]
        elif exact and not run(exact):
            failed = "exact", failed[1]
        elif unstable(model, case, far):
            failed = "unstable", failed[1]
    return failed and (failed[0], f"{sizes(model, case)}: {failed[1]}")


def compiled(model, flags, opt, work):
    """The bundle; the fault, if it did not come about."""
    file, bundle = work / "model.onnx", work / "bundle"
    onnx.save(model.proto(), file)
    shutil.rmtree(bundle, ignore_errors=True)
    command = [opt.ingot, "compile", file, "-o", bundle, *model.bounds(), *flags]
    (work / "command").write_text(shlex.join(map(str, command)) + "\n")
    return outcome(call(command, opt.timeout, opt.env), model, "compile")


def cflags_of(flags):
    return SANITIZE + (" -march=native" if "c:native" in flags else "")


def made_together(numbers, opt):
    """(folder, flags, program) by the numbers of graphs whose bundles could be compiled as one, as drawn."""
    folders, programs = {}, {}
    for i in numbers:
        name, work = (
            f"{opt.seed}/{i}",
            pathlib.Path(tempfile.mkdtemp(prefix="graph-", dir=opt.work)),
        )
        try:
            model = draw(name, opt.ops)
            flags = opt.flags or drawn_flags(name, model, True)
            if not compiled(model, flags, opt, work):
                folders[i] = work, flags
        except Exception:
            pass  # told when the graph is judged
        if i not in folders:
            shutil.rmtree(work, ignore_errors=True)
    for cflags in {cflags_of(flags) for _, flags in folders.values()}:
        programs |= joined.programs(
            [work / "bundle" for work, flags in folders.values() if cflags_of(flags) == cflags],
            opt.cc,
            cflags,
            lambda words: call(words, opt.timeout * len(numbers), opt.env),
        )
    return {i: (work, flags, programs.get(work / "bundle")) for i, (work, flags) in folders.items()}


def compile_and_run(model, flags, case, opt, work):
    """What was made of the graph as it was drawn is used once."""
    drawn, program = opt.made.pop(work, (None, None))
    bundle = work / "bundle"
    if drawn != flags or not program:
        program = bundle / "model"
        failed = compiled(model, flags, opt, work)
        if failed:
            return failed
        done = objects.program(
            bundle, opt.cc, cflags_of(flags), lambda words: call(words, opt.timeout, opt.env)
        )
        if done.rc:
            return "crash", f"make: {'timed out' if done.timed_out else first_line(done.err)}"
    for case in range(len(model.cases)):
        values, exact = model.values(case), None
        write_data(model, case, values, work / "data")
        shutil.rmtree(work / "out", ignore_errors=True)
        (work / "out").mkdir()
        done = call([program, work / "data", work / "out"], opt.timeout, opt.env)
        if done.rc or crashed(done):
            return (
                "crash",
                f"{sizes(model, case)}: run: {'timed out' if done.timed_out else crashed(done) or first_line(done.err)}",
            )
        for i, o in enumerate(model.outputs):
            got = np.load(work / "out" / f"output_{i}.npy")
            error, why = difference(got, values[o])
            if not why:
                continue
            if error < ROUNDING:
                exact = exact or exact_outputs(model, case) or {}
            if exact and not difference(got, exact[o])[1]:
                status = "exact"
            else:
                status = "unstable" if unstable(model, case, {o: error}) else "wrong"
            return status, f"{sizes(model, case)}: {o}: {why}"
    return None


def within(run):
    """Where no plan fits into --max-ram, with what the message says that it needs, which is enough;
    of a step of training, one function after the other. Without options for which the model has nothing, where there are any."""

    def again(model, flags, case, opt, work, told=False):
        failed = run(model, flags, case, opt, work)
        useless = failed and failed[0] == "refused" and re.search(OPTIONS_REFUSED, failed[1], re.M)
        if useless:
            left, skip = [], False
            for word in flags:
                drop = word in WITHOUT[useless[0][:2]]
                if not drop and not skip:
                    left.append(word)
                skip = drop and word not in ALONE
            return again(model, left, case, opt, work)
        least = failed and re.search(r"needs (\d+) bytes of RAM, --max-ram allows", failed[1])
        if not least:
            return failed
        if told and "--train" not in flags:
            return "wrong", f"the limit that a refusal names is refused: {failed[1]}"
        i = flags.index("--max-ram") + 1
        return again(model, [*flags[:i], least[1], *flags[i + 1 :]], case, opt, work, True)

    return again


def difference(got, want):
    """The largest error as a share of the range, and how the two differ, if they do."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return np.inf, f"{got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
    g, w = got.astype(np.float64), want.astype(np.float64)
    span = np.abs(w).max(initial=0) or 1
    far = (
        {2: 1e-2, 4: 1e-3, 8: 1e-6}[want.dtype.itemsize] * span
        if want.dtype.kind == "f"
        else want.dtype in (np.int8, np.uint8)
    )
    bad = ~(np.abs(g - w) <= far)
    if not bad.any():
        return 0, None
    at = tuple(int(v[0]) for v in np.nonzero(np.atleast_1d(bad)))
    why = f"{int(bad.sum())} of {bad.size} differ, first at {list(at)}: {np.atleast_1d(got)[at]!s} for {np.atleast_1d(want)[at]!s}"
    return np.abs(g - w).max() / span, why


def words_of(why):
    """What a message says beside names, numbers and places."""
    return set(
        re.findall(r"[a-z]{3,}", re.sub(r"'[^']*'|\([^)]*\)|\[[^]]*\]|\bk\d+\w*|; at .*", "", why))
    )


def shrink(model, flags, case, fault, run):
    """The smallest model and the fewest flags found that have a fault of this kind."""
    words = words_of(fault[1])
    values = [model.values(i) for i in range(len(model.cases))]
    best, why, budget = model, fault[1], 150

    def faulty(m, flags):
        nonlocal budget
        budget -= 1
        if not m.nodes or not m.outputs or not m.dims or budget < 0:
            return None
        try:
            got = run(m, flags, case)
        except Exception:
            return None
        return (
            got[1]
            if got
            and got[0] == fault[0]
            and 2 * len(words & words_of(got[1])) > len(words | words_of(got[1]))
            else None
        )

    for o in model.outputs if len(model.outputs) > 1 else ():
        m = model.pruned(None, [o], values)
        got = faulty(m, flags)
        if got:
            best, why = m, got
            break
    again = True
    while again:
        again = False
        for i in range(len(best.nodes)):
            for outputs in (best.outputs, reads(best.nodes[i])):
                m = best.pruned(i, outputs, values)
                got = faulty(m, flags) if 0 < len(m.nodes) < len(best.nodes) else None
                if got:
                    best, why, again = m, got, True
                    break
            if again:
                break
    for option in [w for w in flags[2:] if w.startswith("-")]:
        i = flags.index(option)
        fewer = flags[:i] + flags[i + (1 if option in ALONE else 2) :]
        got = faulty(best, fewer)
        if got:
            flags, why = fewer, got
    got = faulty(best, ["--target", "c", *flags[2:]])
    return (best, ["--target", "c", *flags[2:]], got) if got else (best, flags, why)


def judged(index, opt, work=None):
    """Graph `index` of the seed."""
    name = f"{opt.seed}/{index}"
    work = work or pathlib.Path(tempfile.mkdtemp(prefix="graph-", dir=opt.work))
    result = {"name": name, "status": "crash", "why": "", "ops": [], "lines": [], "flags": []}
    try:
        model = draw(name, opt.ops)
        flags = opt.flags or drawn_flags(name, model, opt.sanitize)
        result.update(ops=[n.op_type for n in model.nodes], flags=flags)
        cases = list(range(len(model.cases)))
        random.Random(f"{name} cases").shuffle(cases)
        run = within(compile_and_run if opt.sanitize else verify)
        for case in cases[: 1 if opt.sanitize else opt.cases]:
            failed = run(model, flags, case, opt, work)
            if failed:
                break
        result.update(
            status=failed[0] if failed else "passed",
            why=(failed[1] if failed else "").replace(str(work) + "/", ""),
        )
        if failed and failed[0] in FAULTS:
            small, flags, why = (
                (model, flags, failed[1])
                if opt.as_is
                else shrink(model, flags, case, failed, lambda m, f, c: run(m, f, c, opt, work))
            )
            result.update(
                lines=[why.replace(str(work) + "/", ""), f"{' '.join(model_flags(small, flags))}"]
                + list(small.lines())
            )
            if opt.keep:
                kept = opt.keep / name.replace("/", "-")
                shutil.rmtree(kept, ignore_errors=True)
                kept.mkdir(parents=True)
                run(small, flags, case, opt, kept)
                onnx.save(model.proto(), kept / "whole.onnx")
    except Exception as e:
        result["why"] = f"harness: {type(e).__name__}: {e}"
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return result


def children(numbers, opt):
    """What each graph comes to, in processes of their own, which ONNX Runtime ends where it crashes: then the next one goes on behind
    that graph."""
    numbers, results = list(numbers), []
    while len(results) < len(numbers):
        reader, writer = multiprocessing.Pipe(duplex=False)
        left = numbers[len(results) :]

        def judge():
            made = made_together(left, opt) if opt.sanitize and len(left) > 1 else {}
            opt.made = {work: (flags, program) for work, flags, program in made.values()}
            for i in left:
                writer.send(judged(i, opt, *made.get(i, ())[:1]))

        child = multiprocessing.get_context("fork").Process(target=judge)
        child.start()
        writer.close()
        try:
            for _ in left:
                results.append(reader.recv())
        except EOFError:
            child.join()
            result = {"name": f"{opt.seed}/{numbers[len(results)]}", "status": "skipped"}
            result["why"] = f"ONNX Runtime ended with status {child.exitcode}"
            results.append({**result, "ops": [], "lines": [], "flags": []})
        child.join()
        reader.close()
    return results


def model_flags(model, flags):
    return model.bounds() + flags


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    a = p.add_argument
    a("--ingot", type=pathlib.Path, default=pathlib.Path("build/ingot"))
    a("--n", type=int, default=100)
    a("--first", type=int, default=0, help="number of the first graph")
    a("--seed", default="0")
    a(
        "--ops",
        type=lambda s: s.split(","),
        help="draw only these, e.g. twins,concat,pad; or all of plain, nodes or exported",
    )
    a("--flags", type=str.split, help="these in place of drawn ones, e.g. '--target c --fuse all'")
    a("--cases", type=int, default=1, help="of each graph so many sizes")
    a("--sanitize", action="store_true", help="compile and run bundles with ASan and UBSan")
    a("--cc", default="gcc")
    a("--jobs", type=int, default=2)
    a("--timeout", type=float, default=240)
    a("--as-is", action="store_true", help="do not make faults smaller")
    a("--keep", type=pathlib.Path, help="leave what is wrong here")
    a("--show", action="store_true", help="only print the graphs")
    opt = p.parse_args()
    opt.ingot = opt.ingot.absolute()
    if opt.keep:
        opt.keep = opt.keep.absolute()
    numbers = range(opt.first, opt.first + opt.n)
    if opt.show:
        for i in numbers:
            model = draw(f"{opt.seed}/{i}", opt.ops)
            print(f"{opt.seed}/{i}", *model.lines(), sep="\n    ")
        return 0
    judgements = []
    with tempfile.TemporaryDirectory(prefix="ingot-sized-") as opt.work:
        opt.env = dict(os.environ, INGOT_CACHE=f"{opt.work}/cache", **SETTINGS)
        objects.folder()
        with concurrent.futures.ProcessPoolExecutor(opt.jobs) as workers:
            together = [numbers[i : i + TOGETHER] for i in range(0, len(numbers), TOGETHER)]
            told = workers.map(children, together, [opt] * len(together))
            for r in (r for results in told for r in results):
                judgements.append(r)
                if r["status"] != "passed":
                    print(
                        f"{r['status']:8} {r['name']} ({' '.join(r['flags'])}): {r['why']}",
                        flush=True,
                    )
                if r["lines"]:
                    print("    " + "\n    ".join(r["lines"]), flush=True)
    count = collections.Counter(r["status"] for r in judgements)
    ops = collections.Counter(o for r in judgements for o in r["ops"])
    print(
        f"seed {opt.seed}: {len(judgements)} graphs, {sum(ops.values())} nodes of {len(ops)} operators: "
        + ", ".join(f"{n} {s}" for s, n in sorted(count.items()))
    )
    return 1 if any(count[s] for s in FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
