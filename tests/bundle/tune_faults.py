"""Checks of tune.py that cut a search off, move it elsewhere, use it wrongly or damage its
database."""

import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

from run import Wrong, call
from tuning import (
    TARGET,
    bundle,
    entries,
    environment,
    model_file,
    remote,
    right,
    rows,
    timed,
    trials,
    tune,
)


def start(ingot, work, *flags):
    environment(work)
    return subprocess.Popen(
        [
            str(c)
            for c in (
                ingot,
                "tune",
                model_file(work),
                "--database",
                work / "tune.db",
                "-o",
                work / "out.sched",
                *flags,
            )
        ],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def whole(work):
    with sqlite3.connect(work / "tune.db") as db:
        return db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def cpu_of(pid):
    """Seconds of a core that a process had, with its children that have ended; as much as there is
    once it has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (
        float("inf")
        if fields[0] == "Z"
        else sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    )


def killed(ingot, work):
    def cpu():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    dice, began = random.Random(7), cpu()
    timed(ingot, work, 1, "--explain", "--kernels", "k01*")
    took, before = cpu() - began, trials(ingot, work)
    for i in range(30 if os.environ.get("INGOT_ALL") else 2):
        tuner, until = (
            start(ingot, work, "--budget", "60s", "--kernels", "k01*"),
            dice.uniform(0, took),
        )
        while cpu_of(tuner.pid) < until:
            time.sleep(0.005)
        tuner.send_signal(signal.SIGKILL)
        tuner.wait()
        if (work / "out.sched").exists():  # it had come to its end: the file is whole
            bundle(ingot, work, "whole", "--sched", work / "out.sched")
            (work / "out.sched").unlink()
        after = trials(ingot, work)
        if not whole(work) or not before.keys() <= after.keys():
            raise Wrong("what was timed is lost")
        before = after
    both = [start(ingot, work, "--budget", "1s", "--kernels", k) for k in ("k01*", "k0[01]*")]
    status = [t.wait() for t in both]
    after = trials(ingot, work)
    if status != [0, 0] or not whole(work) or not before.keys() <= after.keys():
        raise Wrong(f"two at once: {status}")
    print(f"{len(before)} candidates, then {len(after)}")


def counted(ingot, work):
    script = Path(__file__).resolve().parents[2] / "examples" / "tune_elsewhere" / "under_qemu.sh"
    if not shutil.which("qemu-aarch64") or not shutil.which("aarch64-linux-gnu-gcc"):
        print("without qemu-aarch64 or aarch64-linux-gnu-gcc")
        return
    flags = ("--target", "c:cortex-a72", "--remote", script, "--kernels", "k01*")
    tune(ingot, work, *flags, "--prepare", work / "candidates")
    tune(
        ingot,
        work,
        *flags,
        "--measure",
        work / "candidates",
        "-o",
        work / "counted.sched",
        INGOT_CLOCK="",
    )  # instructions are times
    if not right(ingot, work) or rows(work, "SELECT cpu FROM machine") != [
        ("instructions, by QEMU",)
    ]:
        raise Wrong(f"nothing was counted: {trials(ingot, work)}")
    print(f"{len(trials(ingot, work))} candidates")


def without_compiler(ingot, work, folder):
    """The program of candidates is all that is wanted where they are timed."""
    before = trials(ingot, work)
    (work / "tune.db").unlink()
    environment(work)
    done = subprocess.run(
        [ingot, "tune", model_file(work), "--database", work / "tune.db", "--measure", folder],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "CC": "/none/cc", "INGOT_CACHE": str(work / "none")},
    )
    if done.returncode or before.keys() != trials(ingot, work).keys():
        raise Wrong(f"candidates that are built are not timed: {done.returncode} {done.stdout}")


def elsewhere(ingot, work):
    folder = work / "candidates"
    tune(ingot, work, "--prepare", folder, "--kernels", "k0[03]*")
    few = (folder / "candidates.json").read_text().count('", "')
    tune(ingot, work, "--prepare", work / "drawn", "--kernels", "k0[03]*", "--lot", "5")
    if not few < (work / "drawn" / "candidates.json").read_text().count('", "') <= few + 10:
        raise Wrong("no more candidates by lot")
    if "1 left" not in tune(ingot, work, "--measure", folder, "--budget", "0", *remote(work)):
        raise Wrong("it was not timed in pieces")
    tune(ingot, work, "--measure", folder, *remote(work))
    runs = (work / "remote.sh.log").read_text().count("--only")
    tune(ingot, work, "--measure", folder, *remote(work), "-o", work / "m.sched")
    again = (work / "remote.sh.log").read_text().count("--only")
    if again > runs + 1:  # one tells of the machine
        raise Wrong("what is known was timed again")
    call(ingot, "compile", model_file(work), "-o", work / "c", *TARGET, "--sched", work / "m.sched")
    without_compiler(ingot, work, folder)
    (folder / "candidates.json").write_text('{"kernel": "0", "candidates": ["UPCAST i0 2"]}\n')
    if "no kernel of this model" not in tune(
        ingot, work, "--measure", folder, *remote(work), good=(3,)
    ):
        raise Wrong("another model's candidates")
    print(f"{runs} runs")


def refused(ingot, work):
    def one_line(status, wanted, *flags, model=None):
        text = tune(ingot, work, *flags, model=model, good=(status,))
        if wanted not in text or text.count("\n") > 2:
            raise Wrong(f"{flags}: {text}")

    one_line(2, "-o FILE is missing")
    one_line(2, "a time is wanted", "--budget", "soon", "-o", work / "x")
    one_line(2, "a number from 1 to 32", "--beam", "0", "-o", work / "x")
    one_line(2, "a number up to 200", "--lot", "1000", "--prepare", work / "x")
    one_line(2, "two runs", "--prepare", "a", "--measure", "b")
    one_line(
        2,
        "--remote and several --threads are not supported",
        "--target",
        "opencl",
        "-o",
        work / "x",
        *remote(work),
    )
    one_line(2, "--sched is for GPUs", "--sched", work / "x", "-o", work / "x")
    one_line(2, "with matrix units are tuned", "--target", "cuda:sm_75", "-o", work / "x")
    for flags in ("--kernels", "k0*"), ("--sched", work / "x"):
        one_line(
            2, "--sched with --prepare", "--target", "opencl", "--measure", work / "none", *flags
        )
    one_line(
        6,
        "ways.json: cannot be read",
        "--target",
        "opencl",
        "--measure",
        work / "none",
        "--budget",
        "0",
    )
    one_line(
        2,
        "no kernel that can be tuned matches 'nothing'",
        "--kernels",
        "nothing",
        "-o",
        work / "x",
        *remote(work),
    )
    one_line(6, "candidates.json: cannot be read", "--measure", work / "none", *remote(work))
    (work / "bad.json").write_text('{"target": "c"}\n')
    one_line(6, "none/x: No such file or directory", "-o", work / "none" / "x")
    one_line(3, "bad.json: line 1", "--import", work / "bad.json", "-o", work / "x")
    (work / "bad.json").write_bytes(b"\0\1")
    one_line(3, "bad.json: no text", "--import", work / "bad.json", "-o", work / "x")
    if (work / "x").exists():
        raise Wrong("a file was written")
    print("15 faults")


def silent(ingot, work):
    environment(work)

    def told(*flags, status=0):
        done = subprocess.run(
            [
                str(c)
                for c in (
                    ingot,
                    "tune",
                    model_file(work),
                    "--database",
                    work / "tune.db",
                    "-q",
                    *flags,
                )
            ],
            text=True,
            capture_output=True,
        )
        if done.returncode != status:
            raise Wrong(
                f"tune -q {' '.join(map(str, flags))}: status {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout, done.stderr

    file = work / "silent.sched"
    for flags in (("--budget", "2s", "-v"), ("--budget", "0", "--threads", "1,2")):
        out, faults = told("-o", file, "--beam", "1", "--explain", *flags)
        if (
            faults
            or "the compiler's choice:" not in out
            or not file.read_text().startswith("sched 2\n")
        ):
            raise Wrong(f"tune -q {' '.join(flags)}: {faults}{out}{file.read_text()}")
    for flags in (
        ("--prepare", work / "candidates", "--kernels", "k01*"),
        ("--measure", work / "candidates", "--budget", "0"),
    ):
        if told(*flags) != ("", ""):
            raise Wrong(f"tune -q {flags[0]} is not silent: {told(*flags)}")
    if told("-o", work / "none" / "x", status=6) != (
        "",
        f"{work / 'none' / 'x'}: No such file or directory\n",
    ):
        raise Wrong("tune -q tells no fault")
    print("4 runs")


def change(file, *statements):
    db = sqlite3.connect(file, isolation_level=None)
    for text in ("PRAGMA journal_mode=DELETE", *statements):
        db.execute(text)
    db.close()


TRIAL = "INSERT INTO trial VALUES(1, 'k', 's', 'name', 'opts', 'right', {}, 1, 0, 1, 1)"
DAMAGES = {  # of a database: what is told
    "no column": (
        ["ALTER TABLE trial RENAME COLUMN round TO rounds"],
        "no such column: trial.round",
    ),
    "no number": (["INSERT INTO machine VALUES(1, 'c', 'cpu', 'cc')", TRIAL.format("'soon'")], ""),
    "no text": (
        ["INSERT INTO machine VALUES(1, x'00', 'cpu', 'cc')"],
        "table machine: a value of another type",
    ),
    "another's": (["PRAGMA application_id=1"], "this is no database of ingot tune"),
    "later": (["PRAGMA user_version=1000"], "it was made by a later version of ingot"),
}


def damaged(ingot, work):
    """A database that is at fault is named, with what to do; it stays as it is."""
    file = work / "tune.db"

    def told(what, wanted):
        before = file.read_bytes() if file.is_file() else None
        text = tune(ingot, work, "--budget", "0", "-o", work / "x", good=(6,))
        if (
            not text.startswith(f"{file}: ")
            or wanted not in text
            or "--database" not in text
            or text.count("\n") != 1
        ):
            raise Wrong(f"{what}: {text}")
        if before != (file.read_bytes() if file.is_file() else None) or (work / "x").exists():
            raise Wrong(f"{what}: a file was written")

    file.mkdir()
    told("a folder", "it is a folder")
    file.rmdir()
    file.write_text(
        "no database, but a text that is as long as the first page of one is wanted to be\n" * 20
    )
    told("a text", "file is not a database")
    file.unlink()
    entries(ingot, work)
    change(file)
    whole = file.read_bytes()
    for what, (statements, wanted) in DAMAGES.items():
        file.write_bytes(whole)
        change(file, *statements)
        told(what, wanted)
    for n, wanted in ((50, "malformed"), (len(whole) // 2, "")):
        file.write_bytes(whole[:n])
        told(f"{n} bytes of it", wanted)
    file.write_bytes(whole)
    if os.geteuid():
        file.chmod(0o444)
        told("read-only", "readonly")
        file.chmod(0o644)
    if entries(ingot, work):
        raise Wrong("what is whole is not read")
    print(f"{len(DAMAGES) + 4} databases")
