#!/usr/bin/env python3
"""Process replay: what the compiler writes for a zoo of models, as hashes in a file of the tree.

    replay.py --ingot build/ingot                  compares with hashes.txt and tells what changed;
                                                   status 1 if anything did
    replay.py --ingot build/ingot --renew          writes hashes.txt: its diff is what a change did
                                                   to kernels
    replay.py --ingot build/ingot --against OLD    compares with another compiler instead, and
                                                   prints the changed text

A change that is to alter nothing leaves every line as it is. One that is to alter something says so
by its diff: which kernels of which models for which targets. `--models FOLDER...` replays other
models too (FOLDER/NAME/model.onnx), with --against; their hashes are not kept. `--filter WORD`
takes part of the zoo, `--target T` some targets.

Models with a tuned file for some CPU (tests/tuned/CPU/MODEL.sched, by `ingot tune`) are replayed
with it too, as MODEL@CPU, and each of its sections for several threads as MODEL@CPU/THREADS: those
of the zoo, and networks whose graphs are in the tree without their weights (graphs.py). `--tuned`
replays nothing else; the files of other models are not replayed. tests/tuned/renew.py makes such
files and graphs.

Language models are GGUF files of tests/llm, of a family and a type of weights, on CPUs that multiply
bytes in different ways: their products by blocks, prompts' and one token's.

Of models with functions beside run() (decode() of language models, train_step() of networks that
are trained), kernels of the bundle are replayed: MODEL/functions.

A line is: model, target, what (a kernel, "plan": buffers, layouts, opts and steps, or "weights":
the data), hash.

Exit status 77, skipped: there is no Python with onnx.
"""

import argparse
import concurrent.futures
import difflib
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import onnx

    import graphs
    import zoo

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "llm"))
    import decoder
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
HASHES = HERE / "hashes.txt"
TUNED = HERE.parent / "tuned"
TARGETS = ("c", "c:c99", "c:x86-64-v3", "c:x86-64-v4", "opencl", "cuda")
# name: family, type of all weights; and where
LANGUAGE = {
    "llama_q4_0": ("llama", "Q4_0"),
    "qwen3_q8_0": ("qwen3", "Q8_0"),
    "llama_q4_k": ("llama", "Q4_K"),
    "llama_q6_k": ("llama", "Q6_K"),
}
BYTES = ("c:x86-64-v3", "c:x86-64-v4+vnni", "c:armv8.2-a+dotprod")
SIZES = ("--dim", "n=1..12", "--dim", "past=0..20")
TRAINED = ("resnet", "transformer")  # by the square error of the first output
LEARN = ("c:x86-64-v3", "c:x86-64-v4+vnni", "cuda")
FUNCTIONS = "/functions"


def call(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def parts(text):
    """The plan, whose last lines are its steps, and the kernels behind it."""
    plan = re.match(r"(?:.*\n)*?steps\n(?:[ \t].*\n)*", text)[0]
    return plan, text[len(plan) :]


def pieces(ingot, model, target, options, data):
    """What: text."""
    inspect = [ingot, "inspect", model, "--target", target, *options]
    text = call(*inspect, "--dump", "plan,kernels")
    if text is None:
        return {"refused": ""}
    plan, kernels = parts(text)
    out = {"plan": re.sub(r"^(kernel \S+) [0-9a-f]{16}$", r"\1", plan, flags=re.M)}
    for text in re.split(r"(?<=^}\n)", kernels, flags=re.M):
        name = re.search(r"\b(k\d+_\w*)\(", text)
        if name:
            out[name[1]] = text
    if data:
        with tempfile.TemporaryDirectory() as work:
            if (
                call(
                    ingot,
                    "compile",
                    model,
                    "-o",
                    f"{work}/out",
                    "--target",
                    target,
                    "--weights",
                    "blob",
                    *options,
                )
                is None
            ):
                return {"refused": ""}
            out["weights"] = "".join(
                hashlib.sha256(p.read_bytes()).hexdigest()
                for p in sorted(pathlib.Path(work, "out").glob("*.weights"))
            )
    return out


def emitted(ingot, model, target, options):
    """Kernels of the bundle as it is written, whichever function runs them."""
    with tempfile.TemporaryDirectory() as work:
        bundle = pathlib.Path(work, "out")
        make = [ingot, "compile", model, "-o", bundle, "--target", target, *options]
        if call(*make, "--weights", "blob", "--no-check") is None:
            return {"refused": ""}
        kernels = ""
        for file in sorted((*bundle.glob("model_kernels_*.c"), *bundle.glob("model*.cu"))):
            kernels += file.read_text()
    out = {}
    for text in re.split(r"(?<=^}\n)", kernels, flags=re.M):
        name = re.search(r"(?:\b|_)(k\d+_\w*)\(", text)
        if name:
            out[name[1]] = out.get(name[1], "") + text
    return out


def tuned(work):
    """Of each section of each tuned file whose model there is: a job, on the target that it
    names."""
    jobs = []
    for file in sorted(TUNED.glob("*/*.sched")):
        if file.stem in zoo.NAMES:
            model, options = f"{work}/{file.stem}.onnx", []
        elif file.stem in graphs.NAMES:
            model, options = graphs.build(file.stem, work), graphs.options(file.stem)
        else:
            continue
        for target, threads in re.findall(
            r"^target (\S+)(?: threads (\d+))?$", file.read_text(), re.M
        ):
            name = f"{file.stem}@{file.parent.name}" + (f"/{threads}" if threads else "")
            jobs.append(
                (name, model, target, [*options, "--sched", str(file), "--threads", threads or "1"])
            )
    return jobs


def language(work):
    """Of each language model and target: a job."""
    jobs = []
    for seed, (name, (family, kind)) in enumerate(LANGUAGE.items()):
        model = decoder.Model(family, seed, kinds=[kind]).write(pathlib.Path(work, f"{name}.gguf"))
        for part in "", FUNCTIONS:
            jobs += [(name + part, model, target, list(SIZES)) for target in BYTES]
    return jobs


def trained(work):
    """Of each network that is trained and each target: a job."""
    jobs = []
    for name in TRAINED:
        model = f"{work}/{name}.onnx"
        loss = f"mse:{onnx.load(model).graph.output[0].name}"
        options = ["--train", "--loss", loss, "--optimizer", "adamw"]
        jobs += [(name + FUNCTIONS, model, target, options) for target in LEARN]
    return jobs


def lines(name, target, found):
    return [
        f"{name} {target} {what} {hashlib.sha256(text.encode()).hexdigest()[:12]}"
        for what, text in found.items()
    ]


def tell(old, new):
    """What is different between two lists of lines; the number of differences."""
    key = lambda line: line.rsplit(" ", 1)
    a, b = dict(key(x) for x in old), dict(key(x) for x in new)
    for what in [x for x in a if x not in b]:
        print(f"gone     {what}")
    for what in [x for x in b if x not in a]:
        print(f"new      {what}")
    changed = [x for x in a if x in b and a[x] != b[x]]
    for what in changed:
        print(f"changed  {what}")
    return len(changed) + sum(x not in b for x in a) + sum(x not in a for x in b)


def show(name, target, old, new, most):
    """The changed text, of each piece the first lines."""
    for what in sorted(set(old) & set(new)):
        if old[what] != new[what] and what != "weights":
            diff = list(
                difflib.unified_diff(
                    old[what].splitlines(),
                    new[what].splitlines(),
                    "before",
                    "after",
                    n=1,
                    lineterm="",
                )
            )
            print(f"--- {name} {target} {what}", *diff[2 : most + 2], sep="\n")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    p.add_argument("--renew", action="store_true")
    p.add_argument("--against", metavar="OLD", help="another compiler")
    p.add_argument(
        "--models", nargs="*", default=[], metavar="FOLDER", help="folders of NAME/model.onnx"
    )
    p.add_argument("--dim", action="append", default=[], help="as of ingot, for --models")
    p.add_argument("--tuned", action="store_true", help="tuned files only")
    p.add_argument("--filter", default="", metavar="WORD")
    p.add_argument("--target", action="append", choices=sorted({*TARGETS, *BYTES}))
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--lines", type=int, default=40, help="of a diff")
    o = p.parse_args()
    part = o.filter or o.target or o.tuned
    if o.models and not o.against:
        p.error("--models needs --against")
    if o.renew and part:
        p.error("--renew is for the whole zoo")
    with tempfile.TemporaryDirectory() as work:
        jobs, options = [], [x for d in o.dim for x in ("--dim", d)]
        if not o.models:
            for name in zoo.NAMES:
                pathlib.Path(work, f"{name}.onnx").write_bytes(zoo.build(name))
                jobs += [(name, f"{work}/{name}.onnx", t, []) for t in TARGETS if not o.tuned]
            jobs += tuned(work) + ([] if o.tuned else language(work) + trained(work))
        for folder in o.models:
            for model in sorted(pathlib.Path(folder).glob("*/model.onnx")):
                jobs += [(model.parent.name, model, t, options) for t in TARGETS]
        jobs = [j for j in jobs if o.filter in j[0] and (not o.target or j[2] in o.target)]
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            has_data = lambda j: not o.models and j[0].split("@")[0] in (*zoo.NAMES, *LANGUAGE)
            replay = lambda ingot: pool.map(
                lambda j: (
                    emitted(ingot, *j[1:4])
                    if j[0].endswith(FUNCTIONS)
                    else pieces(ingot, *j[1:4], has_data(j))
                ),
                jobs,
            )
            new = list(replay(o.ingot))
            old = list(replay(o.against)) if o.against else None
    now = [x for j, n in zip(jobs, new) for x in lines(j[0], j[2], n)]
    if o.renew:
        HASHES.write_text("\n".join(now) + "\n")
        print(f"{HASHES.name}: {len(now)} hashes")
        return 0
    if old:
        before = [x for j, n in zip(jobs, old) for x in lines(j[0], j[2], n)]
        for j, a, b in zip(jobs, old, new):
            show(j[0], j[2], a, b, o.lines)
    else:
        keep = {(j[0], j[2]) for j in jobs}
        before = [
            x for x in HASHES.read_text().splitlines() if not part or tuple(x.split()[:2]) in keep
        ]
    n = tell(before, now)
    print(f"{len(now)} hashes, {n} differences")
    if n and not o.against:
        print(
            "If that is what the change is to do: replay.py --renew, and commit hashes.txt with it."
        )
    return 1 if n else 0


sys.exit(main())
