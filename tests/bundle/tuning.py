"""What the checks of `ingot tune` share: its models, and a search of one of them beside what it
leaves."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

import models
from run import Wrong, call, fingerprint

TARGET = ("--target", "c:native")


def read_twice():
    """A value that costs about as much to compute again as to store."""
    g = models.Graph(5)
    h = g.op("Exp", g.input("x", models.F, 64, 96))
    for axis, size in ((0, 96), (1, 64)):
        g.output(f"over_{axis}", g.op("ReduceMax", h, axes=[axis], keepdims=0), models.F, size)
    return g.bytes()


def in_a_row():
    """Results of convolutions, of which each is read by the next one."""
    g = models.Graph(9)
    h = g.input("image", models.F, 1, 8, 32, 32)
    for k in range(4):
        h = g.op("Relu", g.op("Conv", h, g.weight(16, 8 if not k else 16, 1, 1), g.weight(16)))
        h = g.op(
            "Relu",
            g.op("Conv", h, g.weight(16, 1, 3, 3), g.weight(16), pads=[1, 1, 1, 1], group=16),
        )
    g.output("out", h, models.F, 1, 16, 32, 32)
    return g.bytes()


def network(names="a"):
    if names in MODELS:
        return MODELS[names]()
    g = models.Graph(3)
    x = g.input("image", models.F, 1, 8, 14, 14)
    h = g.op("Relu", g.op("Conv", x, g.weight(24, 8, 3, 3), g.weight(24), pads=[1, 1, 1, 1]))
    h = g.op("Relu", g.op("Conv", h, g.weight(20, 24, 1, 1), g.weight(20)))
    if names != "a":
        h = g.op("Tanh", h)
    g.output(f"{names}_out", h, models.F, 1, 20, 14, 14)
    return g.bytes()


MODELS = {"c": read_twice, "d": in_a_row}


def model_file(work, names="a"):
    file = work / f"{names}.onnx"
    if not file.exists():
        file.write_bytes(network(names))
    return file


def environment(work):
    os.environ["INGOT_CACHE"] = str(work / "cache")
    os.environ["INGOT_CLOCK"] = "steps"
    os.environ.setdefault("CC", "ccache cc" if shutil.which("ccache") else "cc")
    # so it knows the header of candidates, which is compiled once a search, for a second
    os.environ.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")


def tune(ingot, work, *flags, model=None, good=(0,), **more):
    environment(work)
    done = subprocess.run(
        [
            str(c)
            for c in (
                ingot,
                "tune",
                model or model_file(work),
                "--database",
                work / "tune.db",
                *flags,
            )
        ],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | more,
    )
    if "without SQLite" in done.stderr:
        print("skipped: no SQLite")
        sys.exit(77)
    if done.returncode not in good:
        raise Wrong(
            f"tune {' '.join(map(str, flags))}: status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout + done.stderr


def entries(ingot, work, database="tune.db"):
    file = work / "exported"
    call(ingot, "tune", "--database", work / database, "--export", file)
    return [json.loads(line) for line in file.read_text().splitlines()]


def trials(ingot, work):
    return {(e["kernel"], e["source"]): e for e in entries(ingot, work) if "verdict" in e}


def right(ingot, work):
    """Something was timed, and is right."""
    return any(e["verdict"] == "right" and e["ns"] > 0 for e in trials(ingot, work).values())


def timed(ingot, work, budget, *flags, told=(), done=right, model=None):
    """Tuned, and all of that is told and done."""
    text = tune(ingot, work, *flags, "--budget", f"{budget}s", model=model)
    if not all(one in text for one in told) or not done(ingot, work):
        raise Wrong(f"nothing was timed, or {told} not tried:\n{text}{trials(ingot, work)}")
    return text


def always(ingot, work):
    return True


def rows(work, query):
    with sqlite3.connect(work / "tune.db") as db:
        return sorted(db.execute(query))


def bundle(ingot, work, name, *flags, model=None):
    """From another folder, with another cache, which is empty."""
    folder = work / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(model or model_file(work), folder / "model.onnx")
    os.environ["INGOT_CACHE"] = str(folder / "cache")
    call(ingot, "compile", "model.onnx", "-o", "out", *TARGET, *flags, cwd=folder)
    environment(work)
    return fingerprint(folder / "out")


def everywhere(ingot, work):
    """What c:native is here, by a name that says the same on every machine; c:native where it has
    none."""
    call(
        ingot,
        "compile",
        model_file(work),
        "-o",
        work / "named",
        *TARGET,
        "--save-sched",
        work / "named.sched",
    )
    return re.search(r"^target (\S+)$", (work / "named.sched").read_text(), re.M)[1]


def sources(folder):
    return {
        f.name: f.read_bytes() for f in folder.iterdir() if f.suffix in (".c", ".h", ".weights")
    }


REMOTE = """set -e
echo "$@" >>"$0.log"
rm -rf "$0.there" && cp -rp "$1" "$0.there" && shift
make -s -C "$0.there" CFLAGS=-O1 >&2
exec "$0.there/tune_run" "$@"
"""


def remote(work):
    script = work / "remote.sh"
    script.write_text(REMOTE)
    return "--remote", f"sh {script}"
