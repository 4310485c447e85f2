#!/usr/bin/env python3
"""`ingot tune --target opencl`: kernels of a network are tried on whatever device there is, and
what came of it is replayed.

    tune_opencl.py --ingot build/ingot

    prepared   kernels and the program are made without a device; of --kernels those that match;
               beside a --sched file what that says stays
    measured   in pieces, one of which is killed: nothing that was timed is lost; the file is the
               same without a device; builds with it are the same anywhere, and right; --explain
               tells of every group; with -q only faults are told
    faults     a kernel that the driver does not take, one that gives wrong results and one that
               ends the process are told, and not tried again; a line that was cut off counts as
               none
    rounds     a second round that fails leaves what the first has found; the file has what is
               otherwise than the compiler chose

Exit status 77, skipped: no Python with onnx, no SQLite, or no OpenCL device.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

try:
    import models
    import tuning
    from run import Wrong, call, fingerprint, main
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

TARGET = ("--target", "opencl")
STEPS = {
    "INGOT_CLOCK": "steps"
}  # what is tried is counted, a tenth of a second each, and times are made up: docs/tune.md
NO_DEVICE = {"OCL_ICD_VENDORS": "/none", "OCL_ICD_FILENAMES": ""}


def has_device():
    try:
        cl = ctypes.CDLL("libOpenCL.so.1")
    except OSError:
        return False
    every, n = ctypes.c_ulong(0xFFFFFFFF), ctypes.c_uint(0)
    platforms = (ctypes.c_void_p * 16)()
    if cl.clGetPlatformIDs(len(platforms), platforms, ctypes.byref(n)):
        return False
    found = [ctypes.c_uint(0) for _ in range(min(n.value, len(platforms)))]
    return any(
        cl.clGetDeviceIDs(ctypes.c_void_p(p), every, 0, None, ctypes.byref(k)) == 0 and k.value
        for p, k in zip(platforms, found)
    )


def network():
    """A convolution, a product with a shared operand, a sum over rows."""
    g = models.Graph(3)
    x = g.input("image", models.F, 1, 8, 20, 20)
    h = g.op("Relu", g.op("Conv", x, g.weight(16, 8, 3, 3), g.weight(16), pads=[1, 1, 1, 1]))
    h = g.op("Relu", g.op("Conv", h, g.weight(16, 16, 1, 1), g.weight(16)))
    h = g.op("GlobalAveragePool", h)
    h = g.op("Softmax", g.op("Gemm", g.op("Flatten", h), g.weight(16, 10), g.weight(10)), axis=-1)
    g.output("out", h, models.F, 1, 10)
    return g.bytes()


def model_file(work):
    file = work / "model.onnx"
    if not file.exists():
        file.write_bytes(network())
    return file


def tune(ingot, work, *flags, **more):
    return tuning.tune(ingot, work, *TARGET, *flags, model=model_file(work), **more)


def groups(folder):
    return [json.loads(line) for line in (folder / "ways.json").read_text().splitlines()[1:]]


def lines(folder):
    file = folder / "times.json"
    return (
        [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
        if file.exists()
        else []
    )


def verdicts(folder, but=("runs",)):
    return [
        (tuple(x["done"]), x["verdict"])
        for x in lines(folder)
        if "verdict" in x and x["verdict"] not in but
    ]


def prepared(ingot, work):
    folder = work / "ways"
    tune(ingot, work, "--prepare", folder, **NO_DEVICE)
    found = groups(folder)
    if (
        not (folder / "model").exists()
        or sum(len(g["ways"]) for g in found) < 40
        or any(len(set(g["ways"])) < len(g["ways"]) for g in found)
    ):
        raise Wrong(f"other kernels: {[len(g['ways']) for g in found]}")
    tune(ingot, work, "--prepare", work / "one", "--kernels", "k01*", **NO_DEVICE)
    if [len(g["ways"]) > 1 for g in groups(work / "one")] != [
        g["name"].startswith("k01") for g in found
    ]:
        raise Wrong("--kernels: other kernels are tried too")
    tune(ingot, work, "--prepare", work / "none", "--kernels", "nothing", good=(2,))
    conv = found[0]
    (work / "own.sched").write_text(f"sched 2\ntarget opencl\n{conv['ways'][5]}")
    tune(ingot, work, "--prepare", work / "from", "--sched", work / "own.sched", **NO_DEVICE)
    head = [line for line in conv["ways"][5].splitlines() if not re.match(r" +[A-Z]", line)]
    (work / "groups.sched").write_text(
        "\n".join(["sched 2", "target opencl", *head, "  BIND i1 grid", ""])
    )  # of one item each
    call(ingot, "verify", model_file(work), *TARGET, "--sched", work / "groups.sched")
    now = groups(work / "from")
    opts = [line.strip() for line in conv["ways"][5].splitlines() if re.match(r" +[A-Z]", line)]
    if not all(opt in now[0]["ways"][0] for opt in opts) or "rest" not in json.loads(
        (work / "from/ways.json").read_text().splitlines()[0]
    ):
        raise Wrong(f"the search does not begin with the file: {now[0]['ways'][0]}")
    (work / "own.sched").unlink()  # what is measured is what was prepared
    tune(
        ingot,
        work,
        "--measure",
        work / "from",
        "--budget",
        "0",
        "-o",
        work / "from.sched",
        **NO_DEVICE,
    )
    if not all(opt in (work / "from.sched").read_text() for opt in opts):
        raise Wrong("what the file said is gone")
    tune(ingot, work, "--measure", work / "from", "--budget", "0.2s", "-o", work / "from.sched")
    call(ingot, "verify", model_file(work), *TARGET, "--sched", work / "from.sched")
    print(f"{sum(len(g['ways']) for g in found)} kernels for {len(found)}")


def bundle(ingot, work, name, file):
    """From another folder, with another cache."""
    folder = work / name
    folder.mkdir()
    shutil.copy(model_file(work), folder / "model.onnx")
    call(ingot, "compile", "model.onnx", "-o", "out", *TARGET, "--sched", file, cwd=folder)
    return fingerprint(folder / "out")


def kill_one(ingot, work, folder):
    """A piece is killed as soon as something was timed."""
    env = os.environ | STEPS | {"INGOT_CACHE": str(work / "cache")}
    tuner = subprocess.Popen(
        [
            str(c)
            for c in (
                ingot,
                "tune",
                model_file(work),
                *TARGET,
                "--database",
                work / "tune.db",
                "--measure",
                folder,
                "--budget",
                "60s",
            )
        ],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while len(verdicts(folder)) < 3 and tuner.poll() is None:
        time.sleep(0.05)
    os.killpg(tuner.pid, signal.SIGKILL)
    tuner.wait()
    if len(verdicts(folder)) < 3:
        raise Wrong(f"nothing was timed: {lines(folder)}")


def measured(ingot, work):
    folder, file = work / "ways", work / "won.sched"
    tune(ingot, work, "--prepare", folder)
    kill_one(ingot, work, folder)
    before = verdicts(folder)
    tune(ingot, work, "--measure", folder, "--budget", "0.5s")
    text = tune(ingot, work, "--measure", folder, "--budget", "3s", "-o", file, "--explain")
    after = verdicts(folder)
    if (
        after[: len(before)] != before
        or len(after) <= len(before)
        or len({k for k, _ in after}) < len(after)
    ):
        raise Wrong(f"what was timed is lost, or timed again: {before}, then {after}")
    if not all(f"{g['name']}\n" in text for g in groups(folder)) or "right" not in text:
        raise Wrong(f"--explain: {text}")
    if tune(ingot, work, "--measure", folder, "--budget", "0.2s", "-o", file, "-q"):
        raise Wrong("-q is not silent")
    group = next(i for i, g in enumerate(groups(folder)) if "conv" in g["name"])
    with (folder / "times.json").open("a") as f:  # as if this way were the fastest
        f.write(
            json.dumps({"done": [1, group, 2], "verdict": "taken", "us": 1, "was_us": 10}) + "\n"
        )
        f.write(json.dumps({"network_us": 10, "was_us": 100, "low": 0.9, "turns": 15}) + "\n")
    tune(ingot, work, "--measure", folder, "--budget", "0", "-o", file, **NO_DEVICE)
    if groups(folder)[group]["ways"][2] not in file.read_text():
        raise Wrong(f"the winner is not in the file: {file.read_text()}")
    if bundle(ingot, work, "here", file) != bundle(ingot, work, "there", file):
        raise Wrong("the file gives other bytes elsewhere")
    call(ingot, "verify", model_file(work), *TARGET, "--sched", file)
    with (folder / "times.json").open("a") as f:  # and as if all of it were no faster
        f.write(json.dumps({"network_us": 99, "was_us": 100, "low": -0.1, "turns": 15}) + "\n")
    tune(ingot, work, "--measure", folder, "--budget", "0", "-o", file, **NO_DEVICE)
    if "kernel" in file.read_text():
        raise Wrong("a network that is not faster by more than noise is no winner")
    print(f"{len(after)} kernels timed")


def broken_text(kind, text):
    """A kernel's strings, of the program of kernels, with a fault in its body."""
    at = text.index('"{\\n"')
    what = {
        "refused": "this is not C;",
        "wrong": "if (get_global_id(0) < 4) { a0[get_global_id(0)] = 1e6f; return; }",
        "crashes": "*(volatile __global int *)16 = 1;",
    }[kind]
    return f'{text[:at]}"{{ {what}\\n"{text[at + len(chr(34) + "{" + chr(92) + "n" + chr(34)) :]}'


def faults(ingot, work):
    folder = work / "ways"
    tune(ingot, work, "--prepare", folder)
    source = (folder / "model_kernels.c").read_text()
    group = next(
        i for i, g in enumerate(groups(folder)) if "conv" in g["name"] and len(g["ways"]) > 8
    )
    name, bad = groups(folder)[group]["name"], {"refused": 1, "wrong": 2, "crashes": 3}
    for kind, way in bad.items():
        at = source.index(f"model_{name}_w{way}(")
        source = source[:at] + broken_text(kind, source[at:])
    (folder / "model_kernels.c").write_text(source)
    subprocess.run(
        f"{os.environ.get('CC', 'cc')} -std=c99 -O1 -pthread -I. *.c host/*.c -o model -lm -ldl",
        shell=True,
        cwd=folder,
        check=True,
    )
    for _ in range(2):
        tune(ingot, work, "--measure", folder, "--budget", "2s", good=(0, 5))
    found = dict(verdicts(folder))
    tried = [x["try"] for x in lines(folder) if "try" in x]
    if (
        found.get((0, group, 1)) != "failed"
        or found.get((0, group, 2)) != "wrong"
        or (0, group, 3) in found
        or (0, group, 4) not in found
    ):
        raise Wrong(f"a kernel that is at fault: {found} {lines(folder)}")
    if any(tried.count([0, group, way]) != 1 for way in (1, 3)):
        raise Wrong(f"a kernel that is at fault is tried again: {tried}")
    before = verdicts(folder)
    with (folder / "times.json").open("a") as f:
        f.write(
            '{"done": []}\n{"done": 5}\n{"done": [0, %d, 5], "verdict": "taken", "us": 1' % group
        )
    tune(ingot, work, "--measure", folder, "--budget", "0.1s", good=(0, 5))
    text = tune(
        ingot,
        work,
        "--measure",
        folder,
        "--budget",
        "0",
        "-o",
        work / "bad.sched",
        "--explain",
        good=(0, 5),
        **NO_DEVICE,
    )
    if (
        verdicts(folder)[: len(before)] != before
        or (folder / "times.json").read_text().count('"us": 1\n') != 1
        or "1 begun" not in text
    ):
        raise Wrong(f"a line that is cut off: {lines(folder)} {text}")
    print("3 faults")


def entries(text):
    return [part.split(" at ")[0].split("  #")[0] for part in text.split("kernel ")[1:]]


def rounds(ingot, work):
    """The C compiler does not build the second round's program."""
    cc = work / "cc"
    cc.write_text(
        f"#!/bin/sh\ncase \"$PWD $*\" in */ways1*) touch {work}/second; exit 1 ;; esac\nexec cc \"$@\"\n"
    )
    cc.chmod(0o755)
    text = tune(
        ingot, work, "-o", work / "kept.sched", "--budget", "4s", "--kernels", "k0[01]*", CC=str(cc)
    )
    kept = (work / "kept.sched").read_text()
    call(ingot, "verify", model_file(work), *TARGET, "--sched", work / "kept.sched")
    if (
        not (work / "second").exists()
        or "what the first has found stays" not in text
        or not entries(kept)
    ):
        raise Wrong(f"a second round that fails: {text}{kept}")
    tune(ingot, work, "-o", work / "all.sched", "--budget", "4s", "--kernels", "k0[01]*")
    both = (work / "all.sched").read_text()
    call(ingot, "verify", model_file(work), *TARGET, "--sched", work / "all.sched")
    if not 0 < len(entries(both)) <= 2 or re.search("^value", both, re.M):
        raise Wrong(f"the file says what the compiler chose: {both}")
    print(f"{len(entries(kept))} and {len(entries(both))} kernels")


if __name__ == "__main__":
    if not has_device():
        print("skipped: no OpenCL device")
        sys.exit(77)
    sys.exit(main(__doc__, {f.__name__: f for f in (prepared, measured, faults, rounds)}))
