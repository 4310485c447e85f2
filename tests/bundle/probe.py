#!/usr/bin/env python3
"""Target files (docs/targets.md): what `ingot targets --probe` says of compilers, and what
`--target FILE` makes of it.

probe.py --ingot build/ingot [CHECK...]

compilers   gcc, clang and those for Arm and RISC-V that are installed: lanes, ABI, intrinsics
kernels     a file of this machine gives the kernels that c:native gives, and runs; one for Arm
            builds
asked       the compiler named is run three times, with the words given, and nothing else is
refused     no compiler, one that is none; broken files, each by its line
"""

import os
import platform
import shutil
import subprocess
import sys

from run import Wrong, main
import models

OK, USAGE, INVALID, UNSUPPORTED, TOOL, IO = 0, 2, 3, 4, 5, 6
M55 = "arm-none-eabi-gcc -mcpu=cortex-m55 -mthumb -mfloat-abi=hard"


def call(*command, **more):
    return subprocess.run([str(c) for c in command], text=True, capture_output=True, **more)


def probed(ingot, command):
    done = call(ingot, "targets", "--probe", command)
    if done.returncode:
        raise Wrong(f"{command}: status {done.returncode}: {done.stderr}")
    return done.stdout, dict(
        line.split(" = ", 1) for line in done.stdout.splitlines() if " = " in line
    )


def written(work):
    model = work / "mlp.onnx"
    model.write_bytes(models.build("mlp"))
    return model


def compilers(ingot, work):
    reads = call(ingot, "audit", "/").returncode != UNSUPPORTED  # with libclang
    cases = [
        (
            M55,
            {
                "machine": "arm-none-eabi",
                "lanes": "0",
                "dot": "yes",
                "dot_terms": "16",
                "simd": "mve",
                "float_abi": "hard",
                "pointer": "32",
            },
            "__smlad vmladavaq_s8",
        ),
        (
            "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb",
            {"dot": "yes", "simd": "none", "float_abi": "soft"},
            "__smlad",
        ),
        ("arm-none-eabi-gcc -mcpu=cortex-m0 -mthumb", {"dot": "no", "registers": "5"}, ""),
        (
            "clang --target=aarch64-linux-gnu",
            {"lanes": "4", "registers": "32", "simd": "neon", "pointer": "64", "prefer": "time"},
            "vfmaq_f32",
        ),
        (
            "riscv64-unknown-elf-gcc -march=rv32imc -mabi=ilp32",
            {"lanes": "0", "registers": "9", "float_abi": "soft", "pointer": "32"},
            "",
        ),
    ]
    if platform.machine() == "x86_64":
        for cc in ("gcc", "clang"):
            cases += [
                (f"{cc} -march=x86-64", {"lanes": "4", "simd": "sse2", "fma": "no"}, ""),
                (
                    f"{cc} -march=haswell",
                    {"lanes": "8", "simd": "avx2", "fma": "yes", "flags": "-march=haswell"},
                    "_mm256_fmadd_ps",
                ),
                (
                    f"{cc} -march=cascadelake",
                    {"lanes": "16", "registers": "32"},
                    "_mm512_fmadd_ps _mm512_dpbusd_epi32",
                ),
            ]
    for command, want, instructions in cases:
        if not shutil.which(command.split()[0]):
            continue
        _, keys = probed(ingot, command)
        for k, v in {**want, "int": "32", "endian": "little"}.items():
            if keys[k] != v:
                raise Wrong(f"{command}: {k} = {keys[k]}, not {v}")
        for name in instructions.split() if reads else ():
            if name not in keys.get("instructions", "").split():
                raise Wrong(f"{command}: {name} is missing: {keys.get('instructions')}")


def kernels(ingot, work):
    model = written(work)
    here = work / "here.target"
    here.write_text(
        probed(ingot, "cc -march=native" if platform.machine() == "x86_64" else "cc")[0]
    )
    for out, target in (("native", "c:native"), ("file", here)):
        done = call(ingot, "compile", model, "-o", work / out, "--target", target)
        if done.returncode:
            raise Wrong(f"{target}: {done.stderr}")
    if platform.machine() == "x86_64":
        texts = [
            {f.name: f.read_text() for f in (work / out).glob("*kernels*")}
            for out in ("native", "file")
        ]
        if texts[0] != texts[1] or not texts[0]:
            raise Wrong("other kernels than those of c:native")
    done = call(ingot, "verify", model, "--target", here)
    if done.returncode:
        raise Wrong(f"verify: {done.stderr}")
    if shutil.which(M55.split()[0]):
        arm = work / "m55.target"
        arm.write_text(probed(ingot, M55)[0])
        done = call(ingot, "compile", model, "-o", work / "arm", "--target", arm)
        built = call(
            "make", "-C", work / "arm", "-s", env={k: v for k, v in os.environ.items() if k != "CC"}
        )
        if done.returncode or built.returncode:
            raise Wrong(f"m55: {done.stderr}{built.stderr}")
        done = call(ingot, "bench", model, "--target", arm, "--no-cache")
        if done.returncode != USAGE or "does not run here" not in done.stderr:
            raise Wrong(f"run for Arm: {done.returncode} {done.stderr}")


def asked(ingot, work):
    log, fake = work / "log", work / "fake-gcc"
    fake.write_text(f"""#!/bin/sh
echo "$@" >>{log}
case "$*" in
*-dM*) echo '#define __SIZEOF_INT__ 2'; echo '#define __SIZEOF_POINTER__ 2'; echo '#define __VERSION__ "1"'
       echo '#define __BYTE_ORDER__ __ORDER_BIG_ENDIAN__' ;;
*) echo none ;;
esac
""")
    fake.chmod(0o755)
    text, keys = probed(ingot, f"{fake} -a ;touch {work}/touched $(touch {work}/touched)")
    lines = log.read_text().splitlines()
    words = f"-a ;touch {work}/touched $(touch {work}/touched)"
    if (
        lines
        != [f"{words} -dM -E -x c -", f"{words} -dumpmachine", f"{words} -print-file-name=include"]
        or (work / "touched").exists()
    ):
        raise Wrong(f"asked {lines}")
    if keys["endian"] != "big" or keys["int"] != "16" or keys["archiver"] != f"{work}/fake-ar":
        raise Wrong(text)


def refused(ingot, work):
    for command, says in (
        (" ", "a compiler is wanted"),
        ("no-such-compiler -x", "cannot be run"),
        ("cc --no-such-flag", "fails with"),
        ("echo", "does not answer"),
    ):
        done = call(ingot, "targets", "--probe", command)
        if (
            done.returncode not in (USAGE, TOOL)
            or says not in done.stderr
            or done.stdout
            or len(done.stderr.splitlines()) != 1
        ):
            raise Wrong(f"--probe '{command}': {done.returncode} {done.stderr}")
    model = written(work)
    good = "machine = x86_64-linux-gnu\nlanes = 4\nregisters = 16\n"
    for text, status, says in (
        (None, IO, "No such file"),
        ("", INVALID, "no line 'machine"),
        (good + "lanes = 5\n", INVALID, ":4: lanes are"),
        (good + "prefer = speed\n", INVALID, ":4: 'speed'"),
        (good + "colour = red\n", INVALID, ":4: unknown key 'colour'"),
        (good + "red\n", INVALID, ":4: 'key = value'"),
        (good + "int = 16\n", UNSUPPORTED, ":4: an int of fewer"),
        (good + "endian = big\n", UNSUPPORTED, ":4: only machines"),
    ):
        file = work / "wrong.target"
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)
        done = call(ingot, "compile", model, "-o", work / "wrong", "--target", file)
        if (
            done.returncode != status
            or says not in done.stderr
            or "wrong.target" not in done.stderr
            or (work / "wrong").exists()
            or len(done.stderr.splitlines()) != 1
        ):
            raise Wrong(f"{text!r}: {done.returncode} {done.stderr}")


CHECKS = {f.__name__: f for f in (compilers, kernels, asked, refused)}

if __name__ == "__main__":
    sys.exit(main(__doc__, CHECKS))
