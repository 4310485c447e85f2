"""Vectors of RISC-V (V 1.0) under QEMU: a part of units.py.

QEMU before 8 stops at one of the instructions; $INGOT_QEMU_RISCV64 names a newer one where the
system's is older.
"""

import os
import pathlib
import re
import shutil
import subprocess

from run import STRICT, Wrong, call, objects

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLANGS = ("clang", *(f"clang-{n}" for n in range(22, 17, -1)))
# what vec_test.c has of cmocka, which is not there for another machine
CMOCKA = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define fail_msg(...) (printf("%s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), exit(1))
#define assert_true(c) ((c) ? (void)0 : (void)fail_msg("%s\n", #c))
#define assert_false(c) assert_true(!(c))
#define assert_int_equal(a, b) assert_true((a) == (b))
#define assert_memory_equal(a, b, n) assert_true(!memcmp(a, b, n))
#define cmocka_unit_test(f) {f}
#define cmocka_run_group_tests(t, a, b) run_all(t, sizeof t / sizeof *t)
struct CMUnitTest { void (*f)(void **); };
static inline int run_all(const struct CMUnitTest *t, size_t n)
{
    for (size_t i = 0; i < n; i++)
        t[i].f(NULL);
    return 0;
}
"""


def compiler():
    for name in CLANGS:
        if shutil.which(name):
            said = subprocess.run([name, "-dumpversion"], capture_output=True, text=True).stdout
            if int(said.split(".")[0]) >= 18:
                return f"{name} --target=riscv64-linux-gnu"
    return None


def under(qemu, bits, *words):
    """Its status and what it says, on a processor whose vectors have so many bits."""
    cpu = f"rv64,v=true,vlen={bits},vext_spec=v1.0" if bits else "rv64,v=false"
    done = subprocess.run([qemu, "-cpu", cpu, *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def tools():
    """The compiler and QEMU; None and why, where one lacks."""
    qemu = os.environ.get("INGOT_QEMU_RISCV64") or shutil.which("qemu-riscv64")
    cc = compiler()
    if not qemu or not cc or not pathlib.Path("/usr/riscv64-linux-gnu/include").is_dir():
        return None, "there is no clang 18 or later, no libc6-dev-riscv64-cross, or no qemu-riscv64"
    version = re.search(r"version (\d+)", call(qemu, "--version"))
    if int(version[1]) < 8:
        return None, f"{qemu} is of QEMU {version[1]}, which does not know all of V: 8 or later"
    return cc, qemu


def lanes(cc, qemu, work):
    """Every function of vectors, beside that of one lane."""
    (work / "cmocka.h").write_text(CMOCKA)
    for machine in ("rv64gcv", "rv64gcv_zvl256b"):
        program = work / f"vec_{machine}"
        flags = (f"-march={machine}", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror")
        source = ROOT / "tests/unit/vec_test.c"
        call(*cc.split(), *flags, "-static", f"-I{work}", f"-I{ROOT}", source, "-o", program, "-lm")
        for bits in (128, 256, 512):
            if machine == "rv64gcv" or bits >= 256:
                status, said = under(qemu, bits, program)
                if status:
                    raise Wrong(f"vec_test.c for {machine}, {bits} bits: {said}")


def riscv(ingot, work, models):
    cc, qemu = tools()
    if not cc:
        print(f"skipped: {qemu}")
        return
    lanes(cc, qemu, work)

    def built(path, machines):
        bundle = work / f"{path.stem}_{machines}"
        call(ingot, "compile", path, "-o", bundle, "--target", f"c:{machines}")
        words = ("AR=llvm-ar", "LDFLAGS=-static", "model")
        objects.make(bundle, cc, STRICT, lambda words: call(*words), *words)
        return bundle

    told = []
    for path, _ in models:
        if path.stem not in ("bytes", "window", "planes", "chain"):
            continue
        for machine, sizes in (("rv64gcv", (128, 512)), ("rv64gcv+zvl256b", (256, 512))):
            bundle = built(path, machine)
            for bits in sizes:
                said = under(qemu, bits, bundle / "model", "--selftest")[1]
                if "selftest: ok" not in said:
                    raise Wrong(f"{bundle.name}, {bits} bits: {said}")
            told.append(bundle.name)
            bits, lacks = (0, "v") if machine == "rv64gcv" else (128, "v with 256 bits")
            status, said = under(qemu, bits, bundle / "model", "--selftest")
            if status != 4 or f"the processor lacks {lacks}" not in said:
                raise Wrong(f"{bundle.name}, {bits} bits: status {status}: {said}")
    both = built(work / "bytes.onnx", "rv64gc,rv64gcv,rv64gcv+zvl256b")
    for wanted, bits, more in (
        (0, 0, ()),
        (0, 128, ()),
        (4, 128, ("--target", "rv64gcv+zvl256b")),
        (0, 256, ("--target", "rv64gcv+zvl256b")),
    ):
        status, said = under(qemu, bits, both / "model", "--selftest", *more)
        if status != wanted:
            raise Wrong(f"{both.name}: {bits} bits: {more}: status {status}: {said}")
    print(", ".join(told))
