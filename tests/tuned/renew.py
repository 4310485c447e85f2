#!/usr/bin/env python3
"""Tuned files of networks, for a CPU, into the tree: tests/tuned/CPU/NAME.sched, the network's
graph (tests/replay/graphs.py), and the hashes of what comes of both.

    renew.py --ingot build/ingot --cpu xeon-emeraldrapids --models ZOO --scheds DIR     takes
        DIR/NAME.sched of each ZOO/NAME/model.onnx
    renew.py --ingot build/ingot --cpu xeon-emeraldrapids --models ZOO --budget 50s     tunes each,
        into one database (--database)

Other files of the CPU stay.  A file is taken if with it the graph without weights gives the plan
and the kernels that the model gives, as what is replayed on other machines is the graph; and if its
target says on every machine what it is: c:x86-64-v4+vnni, not c:native, which `ingot tune` writes
no more. What free dims a network has is asked of its data (test_data_set_0), and kept in
tests/replay/graphs/options.txt.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPLAY = HERE.parent / "replay"
sys.path.insert(0, str(REPLAY))
import graphs  # noqa: E402
import onnx  # noqa: E402


def dims(folder):
    """--dim of each free dim of the inputs, as large as in the data."""
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    weights = {t.name for t in model.graph.initializer}
    found = {}
    for i, one in enumerate(x for x in model.graph.input if x.name not in weights):
        file = folder / "test_data_set_0" / f"input_{i}.pb"
        if file.exists():
            value = onnx.load_tensor(str(file))
            for d, n in zip(one.type.tensor_type.shape.dim, value.dims):
                if d.dim_param:
                    found[d.dim_param] = n
    return [x for name, n in found.items() for x in ("--dim", f"{name}={n}")]


def dump(ingot, model, target, threads, sched, options):
    command = [
        ingot,
        "inspect",
        model,
        "--target",
        target,
        "--threads",
        threads,
        "--sched",
        sched,
        *options,
        "--dump",
    ]
    texts = []
    for what in ("plan", "kernels"):
        done = subprocess.run([str(c) for c in (*command, what)], capture_output=True, text=True)
        if done.returncode:
            raise ValueError(done.stderr.strip().splitlines()[-1])
        texts.append(
            re.sub(r"^(kernel \S+) [0-9a-f]{16}$", r"\1", done.stdout, flags=re.M)
        )  # of the weights
    return texts


def check(ingot, model, name, sched, options, work):
    """Why the file is not to be taken; None: it is."""
    sections = re.findall(r"^target (\S+)(?: threads (\d+))?$", sched.read_text(), re.M)
    if not sections or any(t.endswith(":native") for t, _ in sections):
        return "names no machine: tune it again, or put the name of what c:native was into its lines 'target'"
    graph = graphs.build(name, work)
    for target, threads in sections:
        a, b = (dump(ingot, m, target, threads or 1, sched, options) for m in (model, graph))
        if a != b:
            return f"of the graph without weights comes something else ({target} threads {threads or 1})"
    return None


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    p.add_argument("--cpu", required=True, metavar="NAME", help="folder in tests/tuned")
    p.add_argument(
        "--models", required=True, type=pathlib.Path, metavar="FOLDER", help="of NAME/model.onnx"
    )
    p.add_argument(
        "--scheds", type=pathlib.Path, metavar="FOLDER", help="of NAME.sched, as tuned before"
    )
    p.add_argument("--filter", default="", metavar="WORD")
    p.add_argument("--target", default="c:native")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--budget", default="50s")
    p.add_argument("--database", metavar="FILE")
    o = p.parse_args()
    ingot, bad = pathlib.Path(o.ingot).resolve(), 0
    (HERE / o.cpu).mkdir(exist_ok=True)
    for folder in sorted(
        m.parent for m in o.models.glob("*/model.onnx") if o.filter in m.parent.name
    ):
        name, model, options = folder.name, folder / "model.onnx", dims(folder)
        with tempfile.TemporaryDirectory() as work:
            sched = o.scheds / f"{name}.sched" if o.scheds else pathlib.Path(work, f"{name}.sched")
            if not o.scheds:
                command = [
                    ingot,
                    "tune",
                    model,
                    "-o",
                    sched,
                    "--target",
                    o.target,
                    "--threads",
                    o.threads,
                    "--budget",
                    o.budget,
                    *options,
                ]
                subprocess.run(
                    [
                        str(c)
                        for c in (*command, *(["--database", o.database] if o.database else []))
                    ]
                )
            if not sched.exists():
                why = "there is no such file"
            else:
                graphs.main(model, name, *options)
                try:
                    why = check(ingot, model, name, sched, options, work)
                except ValueError as e:
                    why = str(e)
            if why:
                print(f"{name}: not taken: {sched.name}: {why}")
                bad += 1
                continue
            shutil.copyfile(sched, HERE / o.cpu / f"{name}.sched")
            print(f"{name}: {len(sched.read_text().splitlines())} lines", *options)
    subprocess.run(
        [sys.executable, str(REPLAY / "replay.py"), "--ingot", str(ingot), "--renew"], check=True
    )
    return 1 if bad else 0


sys.exit(main())
