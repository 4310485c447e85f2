#!/usr/bin/env python3
"""Drives ingot over the corpus of bad models and command lines (make_corpus.py).

    run.py --ingot build/ingot [--jobs 2] [--filter REGEX] [--bless]

Each case must end with its documented status, with one clear line on stderr naming the file (and
what else the case asks for), leave nothing behind, and neither crash nor trip a sanitizer. Where
messages.txt holds a case, its status and stderr must be exactly those; --bless rewrites that file.
What must compile must also build, as C99 with warnings as errors.
"""

import argparse
import concurrent.futures
import functools
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "onnx")]
import make_corpus  # noqa: E402
import objects  # noqa: E402
from process import SETTINGS, call, crashed, first_line, sanitized  # noqa: E402

COMPILE = ["compile", "{model}", "-o", "{out}"]
CFLAGS = "-O1 -std=c99 -pedantic -Wall -Wextra -Werror"
LINE = 2000  # a message longer than this hides what it says


def tree(folder):
    """Every path below the folder with its size, to see what a run leaves behind."""
    return {
        str(p.relative_to(folder)): p.stat().st_size if p.is_file() else -1
        for p in folder.rglob("*")
        if not p.is_symlink()
    }


def messages(err):
    """The message lines: not usage text, nor notes, which are indented."""
    return [
        s
        for s in err.splitlines()
        if s.strip() and not s[0].isspace() and not s.lower().startswith(("usage:", "try "))
    ]


def judge(case, corpus, pinned, opt):
    """(faults, status, stderr) of one case."""
    home = corpus / case["name"]
    folder = home / "m"
    out = home / "out"
    words = {"{model}": "model.onnx", "{out}": "../out", "{file}": "taken", "{folder}": "."}

    def fill(arg):
        for k, v in words.items():
            arg = arg.replace(k, v)
        return arg

    custom = bool(case["args"]) or case["name"] == "usage_nothing"
    args = [fill(a) for a in (case["args"] if custom else COMPILE)]
    before = tree(home)
    began = time.monotonic()
    done = call([opt.ingot, *args], opt.timeout, opt.env, cwd=folder, limit_mb=opt.limit_mb)
    took = time.monotonic() - began
    faults = []
    fault = faults.append

    why = crashed(done)
    if why:
        fault(f"crash: {why}")
    elif done.timed_out:
        fault(f"still running after {took:.0f} s")
    elif done.rc not in case["status"]:
        fault(
            f"status {done.rc}, not {' or '.join(map(str, case['status']))}: {first_line(done.err)}"
        )
    elif done.rc:
        lines = messages(done.err)
        if not case["damage"] and len(lines) != case["messages"]:
            fault(f"{len(lines)} messages, not {case['messages']}: {lines[:3]}")
        if not lines:
            fault("no message")
        if not custom and not all("model.onnx" in s for s in lines):
            fault(f"a message does not name the file: {first_line(done.err)}")
        missing = [w for w in case["says"] if w.lower() not in done.err.lower()]
        if missing:
            fault(f"the message does not say {missing}: {first_line(done.err)}")
        if any(len(s) > LINE for s in lines):
            fault(f"a message of {max(map(len, lines))} characters")
        if not all(c.isprintable() or c == "\n" for c in done.err):
            fault(f"a message with unprintable characters: {first_line(done.err)!r}")
    elif case["status"] == [0] and not all(w.lower() in done.err.lower() for w in case["says"]):
        fault(f"a warning should say {case['says']}: {first_line(done.err)}")
    left = tree(home)
    if done.rc:
        new = sorted(set(left) - set(before))
        if new:
            fault(f"left behind: {new[:5]}")
    changed = [k for k in before if left.get(k) != before[k]]
    if changed:
        fault(f"changed: {changed}")

    if done.rc == 0 and not custom and not faults:
        if not out.is_dir():
            fault("status 0 but no bundle")
        elif case["build"]:
            for cc in opt.cc.split(","):
                call(["make", "-s", "-C", out, "clean"], opt.timeout, opt.env)
                made = objects.make(
                    out, cc, CFLAGS, lambda words: call(words, opt.timeout, opt.env)
                )
                if made.rc:
                    fault(f"the bundle does not build with {cc}: {first_line(made.err)}")
    shutil.rmtree(out, ignore_errors=True)

    if not custom and not faults and "model.onnx" in before | tree(folder):
        check = call(
            [opt.ingot, "check", "model.onnx"],
            opt.timeout,
            opt.env,
            cwd=folder,
            limit_mb=opt.limit_mb,
        )
        why = crashed(check) or (check.timed_out and "timed out")
        if why:
            fault(f"ingot check: {why}")
    if (
        case["name"] in pinned
        and not faults
        and pinned[case["name"]] != (done.rc, done.err.strip())
    ):
        rc, err = pinned[case["name"]]
        fault(f"not as pinned:\n      is   {done.rc} {done.err.strip()!r}\n      was  {rc} {err!r}")
    return faults, done.rc, done.err.strip()


def read_pinned(path):
    """messages.txt: name, status, stderr; tabs between, \\n for a line break."""
    if not path.exists():
        return {}
    rows = [s.split("\t", 2) for s in path.read_text().splitlines() if s and not s.startswith("#")]
    return {name: (int(rc), err.replace("\\n", "\n")) for name, rc, err in rows}


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, default=pathlib.Path("build/ingot"))
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    p.add_argument("--cc", default="gcc", help="C compiler, or several with commas")
    p.add_argument("--filter", metavar="REGEX")
    p.add_argument("--timeout", type=float, default=120)
    p.add_argument(
        "--limit-mb", type=int, default=4096, help="address space, when ingot is not sanitized"
    )
    p.add_argument("--bless", action="store_true", help="pin the messages of the cases that pass")
    p.add_argument("-v", "--verbose", action="store_true")
    opt = p.parse_args()
    opt.ingot = opt.ingot.absolute()
    if not opt.ingot.exists():
        p.error(f"{opt.ingot} does not exist")
    if sanitized(opt.ingot):
        opt.limit_mb = 0
    opt.env = dict(os.environ, **SETTINGS)
    pins = HERE / "messages.txt"
    pinned = {} if opt.bless else read_pinned(pins)

    bad, kept, crashes = 0, dict(read_pinned(pins)), 0
    with tempfile.TemporaryDirectory(prefix="ingot-error-") as scratch:
        corpus = pathlib.Path(scratch)
        opt.env.update(XDG_CACHE_HOME=scratch, HOME=scratch)
        cases = [
            c
            for c in make_corpus.make(corpus / "c")
            if not opt.filter or re.search(opt.filter, c["name"])
        ]
        work = functools.partial(judge, corpus=corpus / "c", pinned=pinned, opt=opt)
        with concurrent.futures.ThreadPoolExecutor(opt.jobs) as pool:
            for case, (faults, rc, err) in zip(cases, pool.map(work, cases)):
                bad += bool(faults)
                crashes += any("crash" in f or "still running" in f for f in faults)
                for f in faults:
                    print(f"FAIL {case['name']}: {f}")
                if opt.verbose and not faults:
                    print(f"ok   {case['name']}: {rc} {err.splitlines()[0][:200] if err else ''}")
                if case["damage"] or faults or not rc:
                    kept.pop(case["name"], None)
                else:
                    kept[case["name"]] = (rc, err)
    print(
        f"{len(cases)} cases: {len(cases) - bad} passed, {bad} failed, {crashes} of them by a crash or a hang"
    )
    if opt.bless:
        pins.write_text(
            "# The exact status and stderr of tests/error's cases; renewed by run.py --bless.\n"
            + "".join(
                "\t".join((name, str(rc), err.replace("\n", "\\n"))) + "\n"
                for name, (rc, err) in sorted(kept.items())
            )
        )
        return 0
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
