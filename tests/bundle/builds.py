#!/usr/bin/env python3
"""A bundle in other people's builds: for microcontrollers by its Makefile alone, two in one program, installed by its CMake, and in the
packages of --package.

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
    "cortex-m0+": ("v6S-M", False), "cortex-m3": ("v7", False), "cortex-m33": ("v8-M.mainline", True), "cortex-m4": ("v7E-M", True),
    "cortex-m4-soft": ("v7E-M", False), "cortex-m55": ("v8.1-M.mainline", True), "cortex-m7": ("v7E-M", True)}


def call(*command, env=None, cwd=None):
    keep = {k: v for k, v in os.environ.items() if k not in ("CC", "CFLAGS", "MAKEFLAGS")}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, cwd=cwd, env={**keep, **(env or {})})
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout + done.stderr


def want(good, what):
    if not good:
        sys.exit(f"failed: {what}")


def microcontrollers(compile, work):
    for machine, (core, hard) in ARM.items() if shutil.which("arm-none-eabi-gcc") else ():
        out = work / machine
        compile(out, "--target", f"c:{machine}")
        said = call("make", "-C", out, "CFLAGS=-Os -Wall -Wextra -Werror")
        want("-pthread" not in said and not (out / "host").exists(), f"{machine}: {said}")
        attributes = call("arm-none-eabi-readelf", "-A", out / "digits.o")
        want(re.search(r"Tag_CPU_arch: %s\s" % re.escape(core), attributes), f"{machine}: {attributes}")
        want(("VFP registers" in attributes) == hard, f"{machine}: the float ABI\n{attributes}")
        want("digits_w_" in call("arm-none-eabi-nm", out / "libdigits.a"), f"{machine}: weights are no arrays")
    if shutil.which("riscv64-unknown-elf-gcc"):
        out = work / "riscv"
        compile(out, "--target", "c:rv32imc")
        call("make", "-C", out, "CFLAGS=-Os -Wall -Wextra -Werror --specs=picolibc.specs")
        want("ELF32" in call("readelf", "-h", out / "digits.o"), "rv32imc")


def sections(compile, work):
    out = work / "sections"
    compile(out)
    attr = '__attribute__((section(\\"%s\\")))'
    call("make", "-C", out, "CPPFLAGS=" + " ".join(
        f"-D'DIGITS_{what}_ATTR={attr % name}'".replace('\\"', '"') for what, name in (("KERNELS", ".itcm"), ("WEIGHTS", ".qspi"))))
    want(".itcm" in call("readelf", "-SW", out / "digits_kernels_0.o"), "kernels have no section of their own")
    want(".qspi" in call("readelf", "-SW", out / "digits_weights.o"), "weights have no section of their own")
    names = re.findall(r" [TDBRCVW] (\S+)", call("nm", "-g", out / "libdigits.a"))
    want(names and all(n.startswith("digits_") for n in names), f"names of others: {[n for n in names if not n.startswith('digits_')]}")
    posix = [f.name for f in out.glob("*.[ch]") if re.search(r"#include <(unistd|sys/|fcntl|pthread|stdio|stdlib)", f.read_text())]
    want(not posix, f"an operating system is asked for outside of host/: {posix}")


def two(compile, work):
    """All sources of two bundles, and a main, in one command: as an IDE takes them."""
    for name in ("one", "other"):
        compile(work / name, name=name)
    (work / "main.c").write_text(
        '#include "one/one.h"\n#include "other/other.h"\n#include <stdio.h>\nstatic unsigned char a[1 << 16] __attribute__((aligned(64)));\n'
        "int main(void)\n{\n    one_ctx x;\n    other_ctx y;\n"
        "    igrt_config c = {.struct_size = sizeof c, .arena = a, .arena_bytes = sizeof a};\n"
        "    puts(igrt_status_text(one_init(&x, &c) ? 1 : other_init(&y, &c)));\n    return one_selftest(&x) || other_selftest(&y);\n}\n")
    files = [f for name in ("one", "other") for f in sorted((work / name).glob("*.c"))]
    call("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-o", work / "both", work / "main.c", *files, "-lm")
    call(work / "both")


def windows(compile, work):
    """mingw's C compiler takes the model, the threads' header and the reader of weights."""
    if not shutil.which("x86_64-w64-mingw32-gcc"):
        return
    out = work / "windows"
    compile(out)
    call("x86_64-w64-mingw32-gcc", "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-I.", "-c", *sorted(p.name for p in out.glob("*.c")),
         "host/igrt_weights.c", "host/igrt_pool.c", cwd=out)


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
    (user / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.15)\nproject(u LANGUAGES C)\nfind_package(digits REQUIRED)\n"
                                         "add_executable(u u.c)\ntarget_link_libraries(u PRIVATE digits::digits_model)\n")
    (user / "u.c").write_text('#include "digits.h"\nint main(void) { return digits_init(0, 0) != IGRT_ERR_NULL; }\n')
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
    want("name=digits\n" in (work / "arduino/library.properties").read_text(), "arduino: library.properties")
    want(not list((work / "arduino").glob("*.c")), "arduino: sources beside src/")
    (work / "sketch.cpp").write_text('#include <digits.h>\nvoid setup();\nvoid setup() { (void)digits_init(nullptr, nullptr); }\n')
    if shutil.which("c++"):
        call("c++", "-std=gnu++11", "-Wall", "-Wextra", "-Werror", f"-I{work}/arduino/src", "-c", "-o", work / "s.o", work / "sketch.cpp")
    call("cc", "-std=c99", "-Werror", "-c", *sorted((work / "arduino/src").glob("*.c")), cwd=work / "arduino/src")
    compile(work / "cmsis", "--package", "cmsis")
    files = [f.get("name") for f in xml.etree.ElementTree.parse(work / "cmsis/ingot.digits.pdsc").iter("file")]
    missing = [f for f in files if not (work / "cmsis" / f).exists()]
    there = {p.name for p in (work / "cmsis").glob("*.[ch]")}
    want(not missing and there <= set(files), f"cmsis: {missing} {there - set(files)}")
    done = subprocess.run([compile.ingot, "compile", MODEL, "-o", work / "no", "--package", "conan"], capture_output=True, text=True)
    want(done.returncode == 2 and "zephyr" in done.stderr, done.stderr)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ingot", required=True)
    ingot = p.parse_args().ingot

    def compile(out, *flags, name="digits"):
        call(ingot, "compile", MODEL, "-o", out, "--name", name, *flags)

    compile.ingot = ingot
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for test in (microcontrollers, sections, two, windows, installed, packages):
            test(compile, work)
        # a bundle of before the folder host/ is replaced as a whole
        out = work / "again"
        compile(out)
        compile(out, "--package", "cmsis")
        want(not (out / "host").exists() and not (out / "Makefile").exists(), "an older bundle's files stay")
    return 0


sys.exit(main())
