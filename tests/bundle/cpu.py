#!/usr/bin/env python3
"""Bundles on processors that lack what they are compiled for: a status, and no signal.

    cpu.py --ingot build/ingot [CHECK...]        all checks unless some are named

    for_any     what runs before init has asked holds no instruction of the target's, by make, by
                CMake and in `ingot run`, for one target and two
    older       x86-64-v3 and -v4 on a Nehalem: init says what is missing, and so do the driver and
                selftest (qemu-x86_64)
    newer       the same programs where there is everything (qemu-x86_64 -cpu max; without QEMU,
                here)
    arm         armv8.2-a+dotprod on a Cortex-A53 and on a Cortex-A76 (qemu-aarch64,
                aarch64-linux-gnu-gcc)
    packages    --package leaves flags to the build, whatever the target

Exit status 77, skipped: there is no Python with onnx.
"""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

from run import Wrong, call, main
import models
import objects

FEATURE = 22
X86 = platform.machine() == "x86_64"
V3 = ("avx2", "fma", "f16c", "avx", "bmi1", "bmi2", "lzcnt", "movbe")
# VEX and EVEX instructions begin with v, others that x86-64 lacks have names of their own; verr,
# verw are old.
NEW = re.compile(
    r"^\s*[0-9a-f]+:\t(v(?!err|erw)\w+|andn|bextr|blsi|blsmsk|blsr|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|movbe|popcnt|tile\w+)\b",
    re.M,
)

# What init says, without the driver: a caller that is compiled for any machine.
PROGRAM = """
#include <stdio.h>
#include "mlp.h"
static _Alignas(64) unsigned char arena[1 << 16];
int main(void)
{
    static mlp_ctx ctx;
    const mlp_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    const mlp_status status = mlp_init(&ctx, &config);
    printf("%d %s %d\\n", (int)status, ctx.fault.what ? ctx.fault.what : "-", ctx.fault.least > ctx.fault.greatest);
    return 0;
}
"""


def want(good, what):
    if not good:
        raise Wrong(what)


def model(work):
    path = work / "mlp.onnx"
    if not path.exists():
        path.write_bytes(models.build("mlp"))
    return path


def bundle(ingot, work, name, *flags):
    out = work / name
    if not out.exists():
        call(ingot, "compile", model(work), "-o", out, "--name", "mlp", "-q", *flags)
    return out


def built(ingot, work, name, *flags, cflags="-O2"):
    out = bundle(ingot, work, name, *flags)
    objects.make(out, "cc", f"{cflags} -Wall -Wextra -Werror", lambda words: call(*words), "-j2")
    return out


def new_instructions(objects):
    """By object: those that not every x86-64 has."""
    found = {}
    for path in objects:
        names = {
            m.split("\t")[0] for m in NEW.findall(call("objdump", "-d", "--no-show-raw-insn", path))
        }
        found[path.name.removesuffix(".o").removesuffix(".c")] = names
    return found


def only_in(found, machine, where):
    """Instructions of the machine are in these objects and in no other one."""
    for name, names in found.items():
        want(bool(names) <= (name in machine), f"{where}: {name} has {sorted(names)[:5]}")
    want(
        any(found[name] for name in machine if name in found),
        f"{where}: no object has any instruction of the machine: {sorted(found)}",
    )


def for_any(ingot, work):
    if not X86 or not shutil.which("objdump"):
        print("for_any: skipped, there is no objdump of an x86-64")
        return
    kernels = {"mlp_kernels_0", "mlp", "mlp_igrt", "mlp_weights", "mlp_selftest"}
    out = built(ingot, work, "v3", "--target", "c:x86-64-v3", cflags="-O3")
    only_in(new_instructions([*out.glob("*.o"), *out.glob("host/*.o")]), kernels, "make")
    call("make", "-s", "-j2", "-C", out, "libmlp.so", "CFLAGS=-O3")
    shared = new_instructions(out.glob("**/*.pic.o"))
    only_in(
        {name.removesuffix(".pic"): names for name, names in shared.items()}, kernels, "make lib.so"
    )
    call("cmake", "-S", out, "-B", work / "cmake")
    call("cmake", "--build", work / "cmake", "-j2")
    only_in(new_instructions((work / "cmake").glob("**/*.o")), kernels, "CMake")
    two = built(ingot, work, "two", "--target", "cuda:sm_90+c:x86-64-v3", cflags="-O3")
    only_in(
        new_instructions([*two.glob("*.o"), *two.glob("host/*.o")]),
        {"mlp_c_kernels_0", "mlp_c", "mlp_c_weights"},
        "two targets",
    )
    cache = work / "cache"
    call(
        ingot,
        "bench",
        model(work),
        "--seconds",
        "0.01",
        "--target",
        "c:x86-64-v3",
        "-q",
        env={"INGOT_CACHE": str(cache)},
    )
    only_in(
        new_instructions(cache.glob("**/*.o")),
        {"model_kernels_0", "model", "model_igrt", "model_weights"},
        "ingot bench",
    )
    # whoever has such flags in CFLAGS, and a C library that checks sizes (as some systems ask for
    # unless told): init and what it asks are for any processor all the same
    objects = []
    for cc in (c for c in ("gcc", "clang") if shutil.which(c)):
        for name in ("mlp_init", "mlp_igrt_cpu"):
            objects.append(work / f"{name}.{cc}.o")
            flags = ["-O3", "-march=x86-64-v4", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-I."]
            call(cc, *flags, "-c", f"{name}.c", "-o", objects[-1], cwd=out)
    for name, names in new_instructions(objects).items():
        want(not names, f"{name} with -march=x86-64-v4: {sorted(names)[:5]}")


def run(program, *words):
    done = subprocess.run([*map(str, program), *words], capture_output=True, text=True)
    text = "".join(
        line for line in done.stderr.splitlines(True) if not line.startswith("qemu-")
    )  # it warns of what it lacks itself
    return done.returncode, done.stdout, text


def older(ingot, work):
    if not X86 or not shutil.which("qemu-x86_64"):
        print("older: skipped, there is no qemu-x86_64")
        return
    nehalem = ["qemu-x86_64", "-cpu", "Nehalem"]
    (work / "program.c").write_text(PROGRAM)
    for level, first, lacks in (
        ("v3", "avx2", V3),
        ("v4", "avx512f", ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", *V3)),
    ):
        out = built(ingot, work, level, "--target", f"c:x86-64-{level}")
        for words in (["--selftest"], ["--bench", "0.1", "x"]):
            status, said, text = run([*nehalem, out / "mlp"], *words)
            want(
                (status, said) == (4, "")
                and text
                == f"mlp: init: the processor lacks {', '.join(lacks)} (status {FEATURE})\n",
                f"{level} {words}: status {status}, {said}{text}",
            )
        call(
            "cc",
            "-O2",
            f"-I{out}",
            "-o",
            work / level / "program",
            work / "program.c",
            out / "libmlp.a",
            "-lm",
        )
        status, said, text = run([*nehalem, out / "program"])
        want(
            (status, said) == (0, f"{FEATURE} {first} 1\n"),
            f"{level}: status {status}, {said}{text}",
        )
    two = built(ingot, work, "two", "--target", "cuda:sm_90+c:x86-64-v3")
    status, said, text = run([*nehalem, two / "mlp"], "--selftest")
    want(
        status == 4 and f"the processor lacks {', '.join(V3)}" in text,
        f"two targets: status {status}, {said}{text}",
    )
    plain = built(ingot, work, "plain")
    want(
        run([*nehalem, plain / "mlp"], "--selftest")[0] == 0,
        "without a machine it runs on every x86-64",
    )


def newer(ingot, work):
    if not X86:
        print("newer: skipped, this is no x86-64")
        return
    has = " ".join(
        re.findall(r"^flags.*", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[:1]
    ).split()
    emulator = (
        ["qemu-x86_64", "-cpu", "max"]
        if shutil.which("qemu-x86_64")
        else []
        if "avx2" in has
        else None
    )
    if emulator is None:
        print("newer: skipped, there is neither qemu-x86_64 nor AVX2")
        return
    out = built(ingot, work, "v3", "--target", "c:x86-64-v3")
    status, said, text = run([*emulator, out / "mlp"], "--selftest")
    want(status == 0, f"v3 where there is AVX2: status {status}, {said}{text}")
    if "avx2" in has:
        native = built(ingot, work, "native", "--target", "c:native")
        want(
            run([native / "mlp"], "--selftest")[0] == 0,
            "c:native does not run where it was compiled",
        )


def arm(ingot, work):
    cc = "aarch64-linux-gnu-gcc"
    if not shutil.which(cc) or not shutil.which("qemu-aarch64"):
        print(f"arm: skipped, there is no {cc} or no qemu-aarch64")
        return
    out = bundle(ingot, work, "arm", "--target", "c:armv8.2-a+dotprod")
    call(
        "make",
        "-s",
        "-j2",
        "-C",
        out,
        f"CC={cc}",
        "AR=aarch64-linux-gnu-ar",
        "LDFLAGS=-static",
        "CFLAGS=-O2 -Wall -Wextra -Werror",
    )
    status, said, text = run(["qemu-aarch64", "-cpu", "cortex-a53", out / "mlp"], "--selftest")
    want(
        status == 4 and "the processor lacks asimddp" in text,
        f"Cortex-A53: status {status}, {said}{text}",
    )
    status, said, text = run(["qemu-aarch64", "-cpu", "cortex-a76", out / "mlp"], "--selftest")
    want(status == 0, f"Cortex-A76: status {status}, {said}{text}")


def packages(ingot, work):
    for package in ("zephyr", "esp-idf", "arduino", "cmsis"):
        out = bundle(ingot, work, package, "--package", package, "--target", "c:cortex-m4")
        text = "".join(
            p.read_text()
            for p in out.rglob("*")
            if p.suffix in (".txt", ".yml", ".pdsc", ".properties")
        )
        want("-march" not in text and "-mcpu" not in text, f"{package} has flags of a machine")
        want(not [*out.rglob("*igrt_cpu*")], f"{package}: a microcontroller is asked for features")


if __name__ == "__main__":
    os.environ.pop("CC", None)
    sys.exit(main(__doc__, {f.__name__: f for f in (for_any, older, newer, arm, packages)}))
