#!/usr/bin/env python3
"""A bundle in other people's builds: for microcontrollers by its Makefile alone, two in one
program, installed by its CMake, and in the packages of --package.

    builds.py --ingot build/ingot
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

TREE = pathlib.Path(__file__).resolve().parents[2]
MODEL = TREE / "examples/digits/digits.onnx"
ARM = {  # what readelf says of the float ABI and the core
    "cortex-m0+": ("v6S-M", False),
    "cortex-m3": ("v7", False),
    "cortex-m33": ("v8-M.mainline", True),
    "cortex-m4": ("v7E-M", True),
    "cortex-m4-soft": ("v7E-M", False),
    "cortex-m55": ("v8.1-M.mainline", True),
    "cortex-m7": ("v7E-M", True),
    "cortex-r5": ("v7", True),
    "cortex-r52": ("v8-R", True),
}


def call(*command, env=None, cwd=None, stdin=None):
    keep = {k: v for k, v in os.environ.items() if k not in ("CC", "CFLAGS", "MAKEFLAGS")}
    done = subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        cwd=cwd,
        input=stdin,
        env={**keep, **(env or {})},
    )
    if done.returncode:
        sys.exit(
            f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return done.stdout + done.stderr


def want(good, what):
    if not good:
        sys.exit(f"failed: {what}")


def microcontrollers(compile, work):
    for machine, (core, hard) in ARM.items() if shutil.which("arm-none-eabi-gcc") else ():
        out = work / machine
        compile(out, "--target", f"c:{machine}", "-q")  # what it takes of flash is for told()
        said = call("make", "-C", out, "CFLAGS=-Os -Wall -Wextra -Werror")
        want("-pthread" not in said and not (out / "host").exists(), f"{machine}: {said}")
        attributes = call("arm-none-eabi-readelf", "-A", out / "digits.o")
        want(
            re.search(r"Tag_CPU_arch: %s\s" % re.escape(core), attributes),
            f"{machine}: {attributes}",
        )
        want(("VFP registers" in attributes) == hard, f"{machine}: the float ABI\n{attributes}")
        want(
            "digits_w_" in call("arm-none-eabi-nm", out / "libdigits.a"),
            f"{machine}: weights are no arrays",
        )
    if shutil.which("riscv64-unknown-elf-gcc"):
        out = work / "riscv"
        compile(out, "--target", "c:rv32imc", "-q")
        call("make", "-C", out, "CFLAGS=-Os -Wall -Wextra -Werror --specs=picolibc.specs")
        want("ELF32" in call("readelf", "-h", out / "digits.o"), "rv32imc")
    for machine, cc in (("esp32", "xtensa-esp32-elf"), ("esp32p4", "riscv32-esp-elf")):
        compile(out := work / machine, "--target", f"c:{machine}")
        said = call("make", "-n", "-C", out)
        want(f"{cc}-gcc " in said and f"{cc}-ar " in said, f"{machine}: {said}")


def told(compile, work):
    """What compile tells of flash and stack, beside a program that is linked by the Makefile's archive."""
    if not shutil.which("arm-none-eabi-gcc"):
        print("told: skipped, there is no arm-none-eabi-gcc")
        return
    out, board = work / "told", TREE / "examples/cortex_m"
    flags = ("-o", out, "--name", "digits", "--target", "c:cortex-m4", "--io-in-arena")
    said = call(compile.ingot, "compile", MODEL, *flags)
    flash, stack = map(
        int, re.search(r"flash (\d+) bytes, RAM \d+ and at most (\d+)", said).groups()
    )
    call("make", "-C", out, "CFLAGS=-O2 -ffunction-sections -fdata-sections")
    run = """#include "digits.h"
static digits_ctx ctx;
static unsigned char arena[DIGITS_ARENA_BYTES(1)] __attribute__((aligned(64)));
int main(void) {
    const digits_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    return digits_init(&ctx, &config) || digits_run(&ctx, 0, 0);
}
"""
    sizes = []
    for name, text in (("empty", "int main(void) { return 0; }\n"), ("run", run)):
        (work / f"{name}.c").write_text(text)
        call(
            *"arm-none-eabi-gcc -mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard -O2".split(),
            *"-nostartfiles --specs=nosys.specs -Wl,--gc-sections -I".split(),
            *(out, board / "board.c", work / f"{name}.c", out / "libdigits.a", "-lm"),
            *("-T", board / "board.ld", "-o", work / f"{name}.elf"),
        )
        line = call("arm-none-eabi-size", work / f"{name}.elf").splitlines()[1].split()
        sizes.append(int(line[0]) + int(line[1]))
    want(abs(flash - (sizes[1] - sizes[0])) < 0.03 * flash, f"flash {flash}, linked {sizes}")
    want(100 < stack < 2048, f"stack {stack}")
    # without the compiler an estimate, that says so
    (work / "path").mkdir()
    (work / "path/sh").symlink_to(shutil.which("sh"))
    said = call(compile.ingot, "compile", MODEL, *flags, env={"PATH": str(work / "path")})
    about = int(re.search(r"flash about (\d+) bytes.*an estimate", said)[1])
    want(abs(about - flash) < 0.2 * flash, f"about {about}, not {flash}")
    for most, status in (("1k", 4), ("1M", 0)):
        words = [compile.ingot, "compile", MODEL, *flags, "--max-flash", most, "-q"]
        done = subprocess.run(words, capture_output=True, text=True)
        want(done.returncode == status and ("flash" in done.stderr) == bool(status), done.stderr)


def sections(compile, work):
    out = work / "sections"
    compile(out)
    attr = '__attribute__((section(\\"%s\\")))'
    call(
        "make",
        "-C",
        out,
        "CPPFLAGS="
        + " ".join(
            f"-D'DIGITS_{what}_ATTR={attr % name}'".replace('\\"', '"')
            for what, name in (("KERNELS", ".itcm"), ("WEIGHTS", ".qspi"))
        ),
    )
    want(
        ".itcm" in call("readelf", "-SW", out / "digits_kernels_0.o"),
        "kernels have no section of their own",
    )
    want(
        ".qspi" in call("readelf", "-SW", out / "digits_weights.o"),
        "weights have no section of their own",
    )
    names = re.findall(r" [TDBRCVW] (\S+)", call("nm", "-g", out / "libdigits.a"))
    want(
        names and all(n.startswith("digits_") for n in names),
        f"names of others: {[n for n in names if not n.startswith('digits_')]}",
    )
    posix = [
        f.name
        for f in out.glob("*.[ch]")
        if re.search(r"#include <(unistd|sys/|fcntl|pthread|stdio|stdlib)", f.read_text())
    ]
    want(not posix, f"an operating system is asked for outside of host/: {posix}")


def two(compile, work):
    """All sources of two bundles, and a main, in one command: as an IDE takes them."""
    for name in ("one", "other"):
        compile(work / name, name=name)
    (work / "main.c").write_text(
        '#include "one/one.h"\n#include "other/other.h"\n#include <stdio.h>\nstatic unsigned char a[1 << 16] __attribute__((aligned(64)));\n'
        "int main(void)\n{\n    one_ctx x;\n    other_ctx y;\n"
        "    igrt_config c = {.struct_size = sizeof c, .arena = a, .arena_bytes = sizeof a};\n"
        "    puts(igrt_status_text(one_init(&x, &c) ? 1 : other_init(&y, &c)));\n    return one_selftest(&x) || other_selftest(&y);\n}\n"
    )
    files = [f for name in ("one", "other") for f in sorted((work / name).glob("*.c"))]
    call(
        "cc",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        "-o",
        work / "both",
        work / "main.c",
        *files,
        "-lm",
    )
    call(work / "both")
    # what the two headers declare for the linker is the models'
    text = call(
        "cc",
        "-E",
        "-P",
        "-x",
        "c",
        "-",
        cwd=work,
        stdin='#include "one/one.h"\n#include "other/other.h"\n',
    )
    for _ in range(3):
        text = re.sub(r"\{[^{}]*\}", ";", text)
    names = [
        re.search(r"\b(igrt_\w+)\(", s)[1]
        for s in text.split(";")
        if not re.match(r"\s*(static|typedef)\b", s) and re.search(r"\bigrt_\w+\(", s)
    ]
    want("one_init(" in text and not names, f"names that two bundles share: {names}")


def windows(compile, work):
    """mingw's C compiler takes the model, the threads' header and the reader of weights; wine runs
    the program."""
    if not shutil.which("x86_64-w64-mingw32-gcc"):
        print("windows: skipped, there is no x86_64-w64-mingw32-gcc")
        return
    out = work / "windows"
    compile(out)
    call(
        "x86_64-w64-mingw32-gcc",
        "-std=c99",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I.",
        "-c",
        *sorted(p.name for p in out.glob("*.c")),
        "host/igrt_weights.c",
        "host/igrt_pool.c",
        cwd=out,
    )
    if not os.environ.get("INGOT_ALL") or not shutil.which("wine"):
        print(
            f"wine: skipped, {'there is none' if os.environ.get('INGOT_ALL') else 'tests/run.sh all has it'}"
        )
        return
    show = TREE / "examples/digits/show.c"
    sources = sorted(p.name for p in out.glob("*.c"))
    call(
        "x86_64-w64-mingw32-gcc",
        "-std=c99",
        "-O2",
        "-static",
        "-I.",
        "-o",
        "show.exe",
        show,
        *sources,
        cwd=out,
    )
    call("cc", "-std=c99", "-O2", "-I.", "-o", "show", show, *sources, "-lm", cwd=out)
    samples = TREE / "examples/digits/samples.txt"
    said = [
        call(
            *program, samples, cwd=out, env={"WINEPREFIX": str(work / "wine"), "WINEDEBUG": "-all"}
        )
        for program in (["wine", "show.exe"], ["./show"])
    ]
    read = [re.findall(r"is an? \d|\d+ of \d+ right", text) for text in said]
    want(len(read[0]) > 12 and read[0] == read[1], f"Windows: {said}")


# What the Microsoft C library's headers declare, as far as bundles need it; of math.h all that an op may call.
STUB_HEADERS = {
    "stdint.h": "".join(
        f"typedef signed {kind} int{bits}_t;\ntypedef unsigned {kind} uint{bits}_t;\n#define INT{bits}_MAX {most}\n"
        f"#define INT{bits}_MIN (-INT{bits}_MAX - 1)\n#define UINT{bits}_MAX {all_bits}\n"
        for kind, bits, most, all_bits in (
            ("char", 8, "127", "255"),
            ("short", 16, "32767", "65535"),
            ("int", 32, "2147483647", "0xffffffffu"),
            ("long long", 64, "9223372036854775807LL", "0xffffffffffffffffULL"),
        )
    )
    + "typedef unsigned long long uintptr_t;\n#define INT64_C(x) x##LL\n#define UINT64_C(x) x##ULL\n#define SIZE_MAX UINT64_MAX\n",
    "stddef.h": "typedef unsigned long long size_t;\ntypedef long long ptrdiff_t;\n#define NULL ((void *)0)\n",
    "string.h": "#include <stddef.h>\nvoid *memcpy(void *, const void *, size_t);\nvoid *memmove(void *, const void *, size_t);\n"
    "void *memset(void *, int, size_t);\nint memcmp(const void *, const void *, size_t);\nsize_t strlen(const char *);\n",
    "math.h": "#define NAN (0.0f / 0.0f)\n#define INFINITY (1e300 * 1e300)\n"
    + "".join(
        f"double {f}(double);\nfloat {f}f(float);\n"
        for f in (
            "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor lgamma log log10 "
            "log1p log2 logb nearbyint rint round sin sinh sqrt tan tanh tgamma trunc"
        ).split()
    )
    + "".join(
        f"double {f}(double, double);\nfloat {f}f(float, float);\n"
        for f in "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder".split()
    )
    + "double fma(double, double, double);\nfloat fmaf(float, float, float);\nfloat ldexpf(float, int);\n",
}


def microsoft(compile, work):
    """A bundle of c:c99 in a compiler that has neither `restrict`, attributes, arrays of variable
    length nor any other word of gcc's."""
    if not shutil.which("clang"):
        print("microsoft: skipped, there is no clang")
        return
    out, stub = work / "microsoft", work / "stub"
    compile(out, "--target", "c:c99")
    stub.mkdir()
    for name, text in STUB_HEADERS.items():
        (stub / name).write_text("#pragma once\n" + text)
    call(
        "clang",
        "--target=x86_64-pc-windows-msvc",
        "-fms-compatibility",
        "-fms-compatibility-version=19.20",
        "-nostdinc",
        f"-I{stub}",
        "-U__clang__",
        "-D__attribute__(x)=@",
        "-std=c99",
        "-fsyntax-only",
        "-Wall",
        "-Wgnu",
        "-Wvla",
        "-Werror",
        "-Wno-unused-function",
        "-Wno-comment",
        *sorted(p.name for p in out.glob("*.c")),
        cwd=out,
    )


def installed(compile, work):
    out, prefix = work / "cmake", work / "prefix"
    compile(out, "--weights", "blob", "--package", "cmake")
    want(not (out / "Makefile").exists(), "--package cmake has a Makefile")
    call("cmake", "-S", out, "-B", work / "b1")
    said = call("cmake", "--build", work / "b1", "--verbose")
    want("-O3" in said, f"it is not built for Release: {said[:2000]}")
    call(work / "b1/digits", "--selftest")
    call("cmake", "--install", work / "b1", "--prefix", prefix)
    want((prefix / "share/digits/digits.weights").exists(), "the weights are not installed")
    user = work / "user"
    user.mkdir()
    (user / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.15)\nproject(u LANGUAGES C)\nfind_package(digits REQUIRED)\n"
        "add_executable(u u.c)\ntarget_link_libraries(u PRIVATE digits::digits_model)\n"
    )
    (user / "u.c").write_text(
        '#include "digits.h"\nint main(void) { return digits_init(0, 0) != IGRT_ERR_NULL; }\n'
    )
    call("cmake", "-S", user, "-B", user / "b", f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", user / "b")
    call(user / "b/u")


STUBS = """cmake_minimum_required(VERSION 3.15)
project(stub LANGUAGES C)
set(CONFIG_INGOT_DIGITS y)
macro(zephyr_library_named name)
  set(stub ${name})
endmacro()
macro(zephyr_library_sources)
  add_library(${stub} STATIC ${ARGN})
endmacro()
macro(zephyr_library_compile_options)
  target_compile_options(${stub} PRIVATE ${ARGN})
endmacro()
macro(zephyr_include_directories)
endmacro()
macro(idf_component_register)
  cmake_parse_arguments(x "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
  set(COMPONENT_LIB digits)
  add_library(digits STATIC ${x_SRCS})
endmacro()
include(bundle/CMakeLists.txt)
"""


def packages(compile, work):
    """Zephyr and ESP-IDF by what they would do with the files: their functions stand in."""
    for package in ("zephyr", "esp-idf"):
        stub = work / package
        compile(stub / "bundle", "--package", package)
        text = STUBS.replace("include(bundle/CMakeLists.txt)", "add_subdirectory(bundle)")
        (stub / "CMakeLists.txt").write_text(text)
        call("cmake", "-S", stub, "-B", stub / "b")
        call("cmake", "--build", stub / "b")
        want(list((stub / "b").rglob("*.a")), f"{package}: no library")
        want(not (stub / "bundle/host").exists(), f"{package}: there is a driver")
    compile(work / "arduino", "--package", "arduino")
    want(
        "name=digits\n" in (work / "arduino/library.properties").read_text(),
        "arduino: library.properties",
    )
    want(not list((work / "arduino").glob("*.c")), "arduino: sources beside src/")
    (work / "sketch.cpp").write_text(
        '#include <digits.h>\nvoid setup();\nvoid setup() { (void)digits_init(nullptr, nullptr); }\n'
    )
    if shutil.which("c++"):
        call(
            "c++",
            "-std=gnu++11",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{work}/arduino/src",
            "-c",
            "-o",
            work / "s.o",
            work / "sketch.cpp",
        )
    call(
        "cc",
        "-std=c99",
        "-Werror",
        "-c",
        *sorted((work / "arduino/src").glob("*.c")),
        cwd=work / "arduino/src",
    )
    compile(work / "cmsis", "--package", "cmsis")
    files = [
        f.get("name")
        for f in xml.etree.ElementTree.parse(work / "cmsis/ingot.digits.pdsc").iter("file")
    ]
    missing = [f for f in files if not (work / "cmsis" / f).exists()]
    there = {p.name for p in (work / "cmsis").glob("*.[ch]")}
    want(not missing and there <= set(files), f"cmsis: {missing} {there - set(files)}")
    done = subprocess.run(
        [compile.ingot, "compile", MODEL, "-o", work / "no", "--package", "conan"],
        capture_output=True,
        text=True,
    )
    want(done.returncode == 2 and "zephyr" in done.stderr, done.stderr)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    ingot = p.parse_args().ingot

    def compile(out, *flags, name="digits"):
        call(ingot, "compile", MODEL, "-o", out, "--name", name, *flags)

    compile.ingot = ingot
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for test in (
            microcontrollers,
            told,
            sections,
            two,
            windows,
            microsoft,
            installed,
            packages,
        ):
            test(compile, work)
        # a bundle of before the folder host/ is replaced as a whole
        out = work / "again"
        compile(out)
        compile(out, "--package", "cmsis")
        want(
            not (out / "host").exists() and not (out / "Makefile").exists(),
            "an older bundle's files stay",
        )
    return 0


sys.exit(main())
