#!/usr/bin/env python3
"""What a command leaves behind when it fails or is ended: nothing.

    files.py --ingot build/ingot [CHECK...]       all checks unless some are named

    signals     SIGTERM, SIGINT, SIGHUP, SIGPIPE in the middle of compile, and of run while the C
                compiler works, which is ended too; the status is the signal's
    killed      what SIGKILL left is removed by the next command that writes there, and what another
                process is writing is not
    full        a file that cannot be written to its end: compile with --save-sched and --depfile,
                run --output-dir, inspect -o, the cache; /dev/full; with root also a file system of
                64 KB
    told        the system's own words for why: read-only, no permission, no room, quota, names that
                are too long, files in place of folders
    licences    the first line of every emitted file

A library that is loaded first (LD_PRELOAD) stops ingot where a file is opened, or has the system
refuse. Exit status 77, skipped: there is no Python with onnx.
"""

import errno
import os
import pathlib
import resource
import signal
import shutil
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "bundle"))
try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from run import Wrong, main
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

IO = 6
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static int is_it(const char *variable, const char *path)
{
    const char *word = getenv(variable);
    return word && strstr(path, word) != NULL;
}
FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*next)(const char *, const char *);
    if (is_it("STOP_AT", path) && mode[0] == 'w') {
        close(open(getenv("STOPPED"), O_CREAT | O_WRONLY, 0600));
        for (;;)
            pause();
    }
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "fopen");
    return next(path, mode);
}
int mkdir(const char *path, mode_t mode)
{
    static int (*next)(const char *, mode_t);
    if (is_it("REFUSE", path)) {
        errno = atoi(getenv("REFUSE_ERRNO"));
        return -1;
    }
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "mkdir");
    return next(path, mode);
}
"""


def want(good, what):
    if not good:
        raise Wrong(what)


def model(work):
    """A product with 128 KB of weights."""
    path = work / "m.onnx"
    w = numpy_helper.from_array(
        np.random.default_rng(1).standard_normal((256, 128)).astype(np.float32), "w"
    )
    info = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [4, 256]), ("y", [4, 128]))
    ]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", info[:1], info[1:], [w]
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    return path


def shim(work):
    (work / "shim.c").write_text(SHIM)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", work / "shim.so", work / "shim.c", "-ldl"], check=True
    )
    return {"LD_PRELOAD": str(work / "shim.so"), "STOPPED": str(work / "stopped")}


def run(*command, env=None, **more):
    done = subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        **more,
    )
    return done.returncode, done.stderr


def quiet(command):
    return command if command[0] == "inspect" else [*command, "-q"]


def names(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def until(there, process):
    while not there():
        want(process.poll() is None, f"ended by itself: {process.returncode}")
        time.sleep(0.01)


def is_alive(pid):
    try:
        os.kill(pid, 0)
        return "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False


def ended(process, number, what):
    process.send_signal(number)
    process.wait()
    want(
        process.returncode == -number,
        f"{what}: status {process.returncode} and not that of signal {number}",
    )


def signals(ingot, work):
    m, env = model(work), {**os.environ, **shim(work)}
    here = work / "here"
    here.mkdir()
    for number in ENDING:
        process = subprocess.Popen(
            [
                ingot,
                "compile",
                m,
                "-o",
                here / "a/b/out",
                "--save-sched",
                here / "s.sched",
                "--depfile",
                here / "d",
                "-q",
            ],
            env={**env, "STOP_AT": "model.c"},
        )
        until((work / "stopped").exists, process)
        want(names(here), "nothing was begun")
        ended(process, number, "compile")
        (work / "stopped").unlink()
        want(names(here) == [], f"signal {number} left {names(here)}")
    compiler = work / "cc.sh"
    compiler.write_text(
        f"#!/bin/sh\ncase \"$*\" in *fsyntax-only*) exit 0 ;; esac\necho $$ >{work}/pid.part\nmv {work}/pid.part {work}/pid\nexec sleep 600\n"
    )
    compiler.chmod(0o755)
    np.save(work / "x.npy", np.zeros((4, 256), np.float32))
    for number in ENDING:
        for folder in ("cache", "tmp"):
            shutil.rmtree(work / folder, ignore_errors=True)
            (work / folder).mkdir()
        process = subprocess.Popen(
            [ingot, "run", m, "--input", work / "x.npy", "-q"],
            env={
                **os.environ,
                "CC": str(compiler),
                "INGOT_CACHE": str(work / "cache"),
                "TMPDIR": str(work / "tmp"),
            },
        )
        until((work / "pid").exists, process)
        ended(process, number, "run")
        pid = int((work / "pid").read_text())
        want(not is_alive(pid), f"signal {number}: the compiler goes on")
        (work / "pid").unlink()
        left = [n for n in names(work / "cache") if "partial" in n or "model" in n] + names(
            work / "tmp"
        )
        want(not left, f"signal {number} left {left}")


def killed(ingot, work):
    m, env = model(work), {**os.environ, **shim(work)}
    here = work / "here"
    here.mkdir()
    for out in ("new", "there"):
        if out == "there":
            want(run(ingot, "compile", m, "-o", here / out, "-q")[0] == 0, "it does not compile")
        command = [ingot, "compile", m, "-o", here / out, "--save-sched", here / "s.sched", "-q"]
        process = subprocess.Popen(command, env={**env, "STOP_AT": "model.c"})
        until((work / "stopped").exists, process)
        parts = [n for n in names(here) if "partial" in n]
        # another one at the same time leaves what is written alone
        want(run(*command[:-3], "-q")[0] == 0, "a second process cannot write")
        want(
            [n for n in names(here) if n in parts] == parts,
            "a second process has removed what the first one writes",
        )
        process.kill()
        process.wait()
        (work / "stopped").unlink()
        want(set(parts) <= set(names(here)), "what SIGKILL leaves is gone")
        want(run(*command)[0] == 0, "it does not compile beside what is left over")
        want(
            not [n for n in names(here) if "partial" in n],
            f"left over: {[n for n in names(here) if 'partial' in n]}",
        )


def limit(size):
    def set_it():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return set_it


def full(ingot, work):
    m, here = model(work), work / "here"
    np.save(work / "x.npy", np.zeros((4, 256), np.float32))
    cache = {"INGOT_CACHE": str(work / "cache")}
    want(run(ingot, "run", m, "--input", work / "x.npy", "-q", env=cache)[0] == 0, "run fails")
    here.mkdir()
    (work / "xs").mkdir()
    np.save(work / "xs/input_0.npy", np.zeros((4, 256), np.float32))
    cases = [
        (
            16 << 10,
            [
                "compile",
                m,
                "-o",
                here / "a/out",
                "--weights",
                "blob",
                "--save-sched",
                here / "s.sched",
                "--depfile",
                here / "d",
            ],
        ),
        (16 << 10, ["inspect", m, "-o", here / "r.html"]),
        (1 << 10, ["run", m, "--data", work / "xs", "--output-dir", here / "out"]),
    ]
    for size, command in cases:
        status, text = run(ingot, *quiet(command), env=cache, preexec_fn=limit(size))
        want(
            status == IO and os.strerror(errno.EFBIG) in text,
            f"{command[0]}: status {status}: {text}",
        )
        want(names(here) == [], f"{command[0]} left {names(here)}: {text}")
        want("partial" not in text, f"{command[0]}: a name that nobody knows: {text}")
    for command in (
        ["compile", m, "-o", here / "out", "--save-sched", "/dev/full"],
        ["compile", m, "-o", here / "out", "--depfile", "/dev/full"],
        ["inspect", m, "-o", "/dev/full"],
    ):
        status, text = run(ingot, *quiet(command))
        want(
            status == IO and os.strerror(errno.ENOSPC) in text and names(here) == [],
            f"{command}: status {status}, {names(here)}: {text}",
        )
    disk = work / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True
    ).returncode:
        print("a file system of 64 KB: skipped, it cannot be mounted")
        return
    try:
        for command in (
            [
                "compile",
                m,
                "-o",
                disk / "out",
                "--weights",
                "blob",
                "--save-sched",
                disk / "s.sched",
            ],
            ["inspect", m, "-o", disk / "r.html"],
        ):
            status, text = run(ingot, *quiet(command))
            want(
                status == IO and os.strerror(errno.ENOSPC) in text,
                f"{command[0]}: status {status}: {text}",
            )
            want(names(disk) == [], f"{command[0]} left {names(disk)}")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        for command in (
            ["compile", m, "-o", disk / "deeper/out"],
            ["compile", m, "-o", disk / "out"],
            ["inspect", m, "-o", disk / "r.html"],
            ["run", m, "--input", work / "x.npy", "--output-dir", disk / "out"],
        ):
            status, text = run(ingot, *quiet(command), env=cache)
            want(
                status == IO and os.strerror(errno.EROFS) in text,
                f"{command}: status {status}: {text}",
            )
    finally:
        subprocess.run(["umount", disk], check=True)


def told(ingot, work):
    m, env, here = model(work), shim(work), work / "here"
    here.mkdir()
    for number in (errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT):
        for out in ("out", "deeper/out"):
            status, text = run(
                ingot,
                "compile",
                m,
                "-o",
                here / out,
                "-q",
                env={**env, "REFUSE": str(here), "REFUSE_ERRNO": str(number)},
            )
            want(
                status == IO and os.strerror(number) in text,
                f"{errno.errorcode[number]}: status {status}: {text}",
            )
    (here / "file").write_text("")
    long = "x" * 300
    for out, words in (
        (here / long, errno.ENAMETOOLONG),
        (here / long / "out", errno.ENAMETOOLONG),
        (here / "file/out", errno.ENOTDIR),
    ):
        for command in (["compile", m, "-o", out], ["inspect", m, "-o", out]):
            status, text = run(ingot, *quiet(command))
            want(status == IO and os.strerror(words) in text, f"{command}: status {status}: {text}")
    name = here / ("y" * 250)  # there is no room for more beside it, and none is needed
    want(
        run(ingot, "compile", m, "-o", name, "--save-sched", here / ("z" * 250), "-q")[0] == 0,
        "a long name cannot be written",
    )
    want(
        len(names(here)) > 10 and not [n for n in names(here) if "partial" in n],
        "a long name leaves something",
    )


def licences(ingot, work):
    m = model(work)
    for flags in (
        [],
        ["--package", "zephyr"],
        ["--package", "arduino"],
        ["--package", "esp-idf"],
        ["--package", "cmsis"],
        ["--package", "web", "--target", "wgsl+c:wasm32-simd128"],
        ["--weights", "incbin"],
        ["--target", "cuda:sm_90+c:x86-64-v3"],
        ["--target", "opencl"],
        ["--target", "hip"],
        ["--target", "wgsl"],
    ):
        out = work / "-".join(["out", *flags]).replace("/", "")
        want(
            run(ingot, "compile", m, "-o", out, "-q", *flags)[0] == 0,
            f"{flags}: it does not compile",
        )
        for path in out.rglob("*"):
            if path.is_dir() or path.suffix in (".weights", ".manifest"):
                continue
            first, second = path.read_text().split("\n")[:2]
            if first.startswith("<?xml"):  # which nothing comes before
                first = second
            runtime = (
                "igrt" in path.name
                and path.name != "model_igrt.h"
                or path.name == "run.mjs"
                or path.parent.name == "host"
                and path.name not in ("main.c", "table.c")
            )
            wanted = "MIT-0" if runtime else "LicenseRef-ModelOwner"
            want(
                f"SPDX-License-Identifier: {wanted}" in first,
                f"{flags}: {path.name} begins with '{first}'",
            )


if __name__ == "__main__":
    sys.exit(main(__doc__, {f.__name__: f for f in (signals, killed, full, told, licences)}))
