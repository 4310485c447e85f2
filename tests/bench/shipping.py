#!/usr/bin/env python3
"""What one bundle for several machines costs, beside one for each: the table of docs/shipping.md.

    shipping.py --ingot build/ingot [--machines NAME,NAME..] [--rounds N] MODEL.onnx...

Prints Markdown: machine code and weights of each bundle in KB, and the time of those machines that
this processor can run, CPU time of one thread, least of N rounds in turn; in the bundle for all of
them by that of the one alone.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx

MACHINES = "x86-64-v2,x86-64-v3,x86-64-v4,sapphirerapids"
# What the driver calls time is that of the process.
CLOCK = """#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t)
{
    (void)id;
    return (int)syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, t);
}
"""


def call(*words, **more):
    return subprocess.run(
        [str(w) for w in words], check=True, capture_output=True, text=True, **more
    ).stdout


def built(ingot, model, folder, machines):
    call(ingot, "compile", model, "-o", folder, "--target", f"c:{machines}", "--threads", "1", "-q")
    call("make", "-C", folder, "-j2", "model")
    return folder


def code(folder):
    """KB of what the library of the bundle has to run."""
    lines = call("size", "-t", folder / "libmodel.a").splitlines()
    return int(lines[-1].split()[0]) / 1000


def weights(folder):
    path = folder / "model.weights"
    return path.stat().st_size / 1000 if path.exists() else 0


def inputs(model, folder):
    folder.mkdir()
    graph, rng = onnx.load(model).graph, np.random.default_rng(1)
    constant = {t.name for t in graph.initializer}
    for i, value in enumerate(v for v in graph.input if v.name not in constant):
        of = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(of.elem_type)
        shape = [d.dim_value or 1 for d in of.shape.dim]
        x = rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(0, 2, shape)
        np.save(folder / f"input_{i}.npy", x.astype(dtype))
    return folder


def least(program, data, clock, machine):
    """ms; None: it does not run here."""
    done = subprocess.run(
        [program, "--bench", "0.3", "--target", machine, data]
        if machine
        else [program, "--bench", "0.3", data],
        capture_output=True,
        text=True,
        env={**os.environ, "LD_PRELOAD": str(clock)},
    )
    return json.loads(done.stdout)["min_ms"] if done.returncode == 0 else None


def rows(ingot, model, machines, rounds, work):
    """Each machine's bundle, and in the end that for all."""
    clock = work / "clock.so"
    (work / "clock.c").write_text(CLOCK)
    call("cc", "-shared", "-fPIC", "-o", clock, work / "clock.c")
    data = inputs(model, work / "data")
    alone = {m: built(ingot, model, work / m, m) for m in machines}
    both = built(ingot, model, work / "all", ",".join(machines))
    times = {m: [[], []] for m in machines}
    for _ in range(rounds):
        for m in machines:
            for i, (folder, name) in enumerate(((alone[m], None), (both, m))):
                ms = least(folder / "model", data, clock, name)
                times[m][i] += [ms] if ms else []
    for m in machines:
        one, all_ = (min(t) if t else None for t in times[m])
        told = f"{one:.3g} | {all_ / one:.2f}" if one and all_ else "- | -"
        yield f"| {m} | {code(alone[m]):.0f} | {weights(alone[m]):.0f} | {told} |"
    most = max(weights(f) for f in alone.values())
    shared = f" ({weights(both) / most:.2f} of the largest)" if most else ""
    yield f"| all of them | {code(both):.0f} | {weights(both):.0f}{shared} | | |"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--machines", default=MACHINES)
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("model", type=pathlib.Path, nargs="+")
    a = p.parse_args()
    for model in a.model:
        name = model.parent.name if model.stem == "model" else model.stem
        print(f"| {name} | code, KB | weights, KB | ms alone | among all, by that |")
        print("|---|---|---|---|---|")
        with tempfile.TemporaryDirectory() as work:
            machines = a.machines.split(",")
            for row in rows(a.ingot.resolve(), model, machines, a.rounds, pathlib.Path(work)):
                print(row, flush=True)
        print()


if __name__ == "__main__":
    main()
