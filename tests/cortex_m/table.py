#!/usr/bin/env python3
"""The table of docs/firmware.md: what networks of bytes take on microcontrollers.

    table.py --ingot build/ingot MODEL.onnx...      by core and level of optimisation: flash, RAM,
                                                    stack, as `ingot compile` tells them at -O2, and
                                                    instructions of a run, counted by QEMU
    table.py ... --onnx2c PROGRAM --emx PROGRAM     beside them, on the M4F (count.py)
    table.py ... --flag=--max-ram --flag=17k        with these flags of ingot compile too
    table.py ... --pairs A.tflite A.onnx B.tflite B.onnx...     the table of docs/tflite.md: two files
                                                    of one network in a row, at -O2. Exit status 1:
                                                    the first of two takes more of something

RAM has inputs and outputs of bytes in it (--io int8 --io-in-arena, where the model can be so).
Exit status 77, skipped: there is no qemu-system-arm, or no arm-none-eabi-gcc.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from boards import BOARD, BOARDS, main_of, sources_of

HERE = pathlib.Path(__file__).resolve().parent
# instructions; each takes a nanosecond
TICKS = {"cortex-m0+": 40, "cortex-m3": 40, "cortex-m4": 40, "cortex-m55": 31.25}
RUN = """\
    board_clock_start();
    if (model_run(&ctx, 0, 0) != IGRT_OK)
        return 2;
    board_say_number("ticks ", board_clock());
"""


def run(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=600)


def compiled(ingot, model, out, core, flags):
    """What compile says of flash, RAM and stack."""
    for io in (("--io", "int8"), ()):
        words = ("--io-in-arena", "--target", f"c:{core}", "--weights", "array", *io, *flags)
        done = run(ingot, "compile", model, "-o", out, *words)
        if not done.returncode:
            told = re.search(
                r"flash (?:about )?(\d+) bytes, RAM (\d+)(?: and at most (\d+))?", done.stderr
            )
            return [int(x) if x else None for x in told.groups()]
    sys.exit(f"{model}: {done.stderr}")


def counted(out, core, level, work):
    """Flash less that of an empty program, and millions of instructions; None: does not run."""
    flags, board = BOARDS[core]
    (work / "main.c").write_text(main_of(RUN))
    (work / "none.c").write_text("int main(void) { return 0; }\n")
    sources = [p for p in sources_of(out) if "selftest" not in p.name]
    sizes = []
    for name, of in (("none", []), ("main", sources)):
        done = run(
            *(
                "arm-none-eabi-gcc",
                *flags.split(),
                level,
                "-std=c99",
                "-ffp-contract=off",
                "-I",
                out,
            ),
            *("-ffunction-sections", "-fdata-sections", "-nostartfiles", "--specs=nosys.specs"),
            *(
                "-I",
                BOARD,
                "-Wl,--gc-sections",
                "-T",
                BOARD / "board.ld",
                "-o",
                work / f"{name}.elf",
            ),
            *(*of, BOARD / "board.c", work / f"{name}.c", "-lm"),
        )
        if done.returncode:
            sys.exit(done.stderr)
        line = run("arm-none-eabi-size", work / f"{name}.elf").stdout.splitlines()[1].split()
        sizes.append(int(line[0]) + int(line[1]))
    said = run(
        *("qemu-system-arm", "-M", board, "-nographic", "-icount", "shift=0"),
        *("-semihosting-config", "enable=on,target=native", "-kernel", work / "main.elf"),
    )
    ticks = re.search(r"ticks (\d+)", said.stdout + said.stderr)
    return sizes[1] - sizes[0], int(ticks[1]) * TICKS[core] / 1e6 if ticks else None


def name_of(model):
    return model.parent.name if model.name == "model.onnx" else model.stem


def pairs(o, models):
    """Prints a row for two models and a core; is none of the first's figures higher?"""
    print("| model | core | millions of instructions | flash in bytes | RAM in bytes |")
    print("|---|---|---|---|---|")
    fine = True
    for two in zip(models[::2], models[1::2]):
        for core in o.core or TICKS:
            with tempfile.TemporaryDirectory() as folder:
                of = []
                for model in two:
                    out = pathlib.Path(folder) / model.suffix[1:]
                    ram = compiled(o.ingot, model, out, core, o.flag)[1]
                    flash, millions = counted(out, core, "-O2", pathlib.Path(folder))
                    if millions is None:
                        sys.exit(f"{model}: it does not run")
                    of.append((millions, flash, ram))
            fine &= all(a <= b for a, b in zip(*of))
            digits = 3 if of[0][0] < 1 else 2
            told = [f"{a:.{digits}f} / {b:.{digits}f}" for a, b in list(zip(*of))[:1]]
            told += [f"{a} / {b}" for a, b in list(zip(*of))[1:]]
            print(f"| {name_of(two[0])} | {core} | {' | '.join(told)} |", flush=True)
    return fine


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True, type=pathlib.Path)
    p.add_argument("models", nargs="+", type=pathlib.Path)
    p.add_argument("--core", action="append", choices=TICKS, help="these alone")
    p.add_argument("--flag", action="append", default=[], help="of ingot compile")
    p.add_argument("--pairs", action="store_true")
    p.add_argument("--onnx2c", metavar="PROGRAM")
    p.add_argument("--emx", metavar="PROGRAM", help="emx-onnx-cgen")
    o = p.parse_args()
    if not shutil.which("qemu-system-arm") or not shutil.which("arm-none-eabi-gcc"):
        print("skipped: there is no qemu-system-arm, or no arm-none-eabi-gcc")
        return 77
    if o.pairs:
        return 0 if pairs(o, o.models) else 1
    print("| model | core | flags | flash | RAM | stack | million instructions |")
    print("|---|---|---|---|---|---|---|")
    for model in o.models:
        for core in o.core or TICKS:
            with tempfile.TemporaryDirectory() as folder:
                work = pathlib.Path(folder)
                _, ram, stack = compiled(o.ingot, model, work / "out", core, o.flag)
                for level in ("-Os", "-O2", "-O3"):
                    flash, millions = counted(work / "out", core, level, work)
                    told = f"{millions:.2f}" if millions is not None else ""
                    deep = stack if level == "-O2" else ""
                    print(
                        f"| {name_of(model)} | {core} | {level} | {flash} | {ram} | {deep} | {told} |",
                        flush=True,
                    )
        if o.onnx2c or o.emx:
            words = [
                w for k in ("onnx2c", "emx") if getattr(o, k) for w in (f"--{k}", getattr(o, k))
            ]
            print(run(sys.executable, HERE / "count.py", "--ingot", o.ingot, model, *words).stdout)
    return 0


sys.exit(main())
