#!/usr/bin/env python3
"""Instructions that one run of a model takes on a Cortex-M4F, counted by QEMU (mps2-an386, -icount
shift=0). Its outputs have to be those of the same source on this machine; floats may differ by what
C libraries do.

    count.py --ingot build/ingot MODEL.onnx...     millions of instructions, bytes of weights, arena
                                                   and code
    count.py ... --onnx2c PROGRAM --emx PROGRAM    beside what these compilers make of the same
                                                   file, under the same flags; one
                                                   that does not take the model, or not in five
                                                       minutes, is told

Needs qemu-system-arm and arm-none-eabi-gcc with newlib (Debian: qemu-system-arm gcc-arm-none-eabi
libnewlib-arm-none-eabi).
"""

import argparse
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from boards import BOARD, BOARDS, sources_of

HERE = pathlib.Path(__file__).resolve().parent
FLAGS, MACHINE = BOARDS["cortex-m4"]
CPU = FLAGS.split()
TICK = 40  # instructions: the timer has 25 MHz, an instruction takes a nanosecond


def call(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(
            f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def arguments(header):
    """C declarations of inputs and outputs, as memory of their own; inputs are a ramp. And
    statements that print the outputs."""
    text, dump = [], []
    for what, name in (("inputs", "in"), ("outputs", "out")):
        body = re.search(
            r"typedef struct model_%s \{(.*?)\} model_%s;" % (what, what), header, re.S
        )[1]
        fields = re.findall(r"(?:const )?(\w+) \*(\w+); /\* .*?\[([\d,]*)\]", body)
        for kind, field, dims in fields:
            n = 1
            for d in dims.split(","):
                n *= int(d or 1)
            text.append(f"static {kind} {name}_{field}[{n}];")
            if what == "outputs":
                dump.append(f'dump("{kind} ", {name}_{field}, sizeof {name}_{field});')
            if what == "inputs":
                text.append(
                    f"for (int i = 0; i < {n}; i++) {name}_{field}[i] = ({kind})(i * 7 % 11 - 5);"
                )
        text.append(
            f"model_{what} {name} = {{{', '.join(f'.{f} = {name}_{f}' for _, f, _ in fields)}}};"
        )
    return [f"-DRUN_DECLARE={' '.join(text)}", f"-DRUN_DUMP={' '.join(dump)}"]


def outputs(text):
    found = re.findall(r"^(float|\w+_t) ((?:[0-9a-f]{2})+)$", text, re.M)
    return [
        struct.unpack(f"<{len(x) // 8}f", bytes.fromhex(x)) if kind == "float" else x
        for kind, x in found
    ]


def same(got, want):
    if len(got) != len(want):
        return False
    for a, b in zip(got, want):
        near = (
            a == b
            if isinstance(a, str)
            else max(abs(x - y) for x, y in zip(a, b)) <= 1e-5 * max(map(abs, b))
        )
        if not near:
            return False
    return True


def count(ingot, model, work, flags):
    out = work / "bundle"
    call(
        ingot, "compile", model, "-o", out, "--target", "c:cortex-m4", "--weights", "array", *flags
    )
    header = (out / "model.h").read_text()
    sources = [*sources_of(out), HERE / "start.c"]
    elf, host = work / "run.elf", work / "host"
    flags_of = [
        "-O2",
        "-std=c99",
        "-ffp-contract=off",
        "-ffunction-sections",
        "-fdata-sections",
        "-I",
        out,
        "-I",
        BOARD,
        *arguments(header),
    ]
    call("cc", *flags_of, "-o", host, *sources, "-lm")
    want = call(host)
    call(
        "arm-none-eabi-gcc",
        *CPU,
        *flags_of,
        "-nostartfiles",
        "--specs=nosys.specs",
        "-Wl,--gc-sections",
        "-T",
        BOARD / "board.ld",
        "-o",
        elf,
        *sources,
        BOARD / "board.c",
        "-lm",
    )
    said = subprocess.run(
        [
            "qemu-system-arm",
            "-M",
            MACHINE,
            "-nographic",
            "-icount",
            "shift=0",
            "-semihosting-config",
            "enable=on,target=native",
            "-kernel",
            str(elf),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = said.stdout + said.stderr
    if "status 0" not in said:
        sys.exit(f"{model}: {said}")
    if not same(outputs(said), outputs(want)):
        sys.exit(
            f"{model}: its outputs are not those of this machine: {outputs(said)} for {outputs(want)}"
        )
    sizes = json.loads(call(ingot, "inspect", model, "--json", "--target", "c:cortex-m4", *flags))
    text = call("arm-none-eabi-size", elf).split("\n")[1].split()
    return (
        int(re.search(r"ticks (\d+)", said)[1]) * TICK,
        sizes["weights_bytes"],
        sizes["arena_bytes"],
        int(text[0]) + int(text[1]),
    )


def other(command, function, work):
    """The instructions of another compiler's C, and the program's code and static memory; or why
    there are none."""
    code, elf = work / "other.c", work / "other.elf"
    try:
        done = subprocess.run(
            [str(c) for c in command], capture_output=True, text=True, timeout=300
        )
    except subprocess.TimeoutExpired:
        return "no code within 300 s"
    if done.returncode:
        return f"refused: {(done.stderr or done.stdout).strip().splitlines()[-1][:120]}"
    if not code.exists():
        code.write_text(done.stdout)
    made = re.search(rf"^void {function}\((.*?)\)", code.read_text(), re.M | re.S)
    if not made:
        return f"no function {function}()"
    text, body, names = ['#include "board.h"', '#include "other.c"'], "", []
    for kind, name, dims in re.findall(r"((?:const )?\w+) (\w+)((?:\[[^\]]*\])+)", made[1]):
        n = 1
        for d in re.findall(r"(\d+)\]", dims):
            n *= int(d)
        names.append(f"(void *)the_{name}")
        text.append(f"static {kind.removeprefix('const ')} the_{name}[{n}];")
        if kind.startswith("const "):
            body += f"for (int i = 0; i < {n}; i++) the_{name}[i] = ({kind[6:]})(i * 7 % 11 - 5); "
    text.append(
        f"int main(void) {{ {body} board_clock_start(); {function}({', '.join(names)}); "
        'uint32_t ticks = board_clock(); board_say_number("ticks ", ticks); return 0; }'
    )
    (work / "run.c").write_text("\n".join(text))
    built = subprocess.run(
        [
            "arm-none-eabi-gcc",
            *CPU,
            "-O2",
            "-std=c99",
            "-w",
            "-ffp-contract=off",
            "-ffunction-sections",
            "-fdata-sections",
            f"-I{work}",
            f"-I{BOARD}",
            "-nostartfiles",
            "--specs=nosys.specs",
            "-Wl,--gc-sections",
            "-T",
            str(BOARD / "board.ld"),
            "-o",
            str(elf),
            str(work / "run.c"),
            str(BOARD / "board.c"),
            "-lm",
        ],
        capture_output=True,
        text=True,
    )
    if built.returncode:
        return f"does not build: {built.stderr.strip().splitlines()[-1][:120]}"
    try:
        said = subprocess.run(
            [
                "qemu-system-arm",
                "-M",
                MACHINE,
                "-nographic",
                "-icount",
                "shift=0",
                "-semihosting-config",
                "enable=on,target=native",
                "-kernel",
                str(elf),
            ],
            capture_output=True,
            text=True,
            timeout=300,
        )
    except subprocess.TimeoutExpired:
        return "no end within 300 s"
    ticks = re.search(r"ticks (\d+)", said.stdout + said.stderr)
    flash, data, bss = map(int, call("arm-none-eabi-size", elf).split("\n")[1].split()[:3])
    if not ticks:
        return f"does not run: {(said.stdout + said.stderr).strip()[:120]}"
    return f"{int(ticks[1]) * TICK / 1e6:.2f} million instructions, static memory {data + bss}, flash {flash + data}"


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    p.add_argument("models", nargs="+", type=pathlib.Path)
    p.add_argument("--flag", action="append", default=[], help="of ingot compile")
    p.add_argument("--onnx2c", metavar="PROGRAM")
    p.add_argument("--emx", metavar="PROGRAM", help="emx-onnx-cgen")
    o = p.parse_args()
    if not shutil.which("qemu-system-arm") or not shutil.which("arm-none-eabi-gcc"):
        print("skipped: there is no qemu-system-arm, or no arm-none-eabi-gcc")
        return 77
    for model in o.models:
        with tempfile.TemporaryDirectory() as work:
            n, weights, arena, flash = count(o.ingot, model, pathlib.Path(work), o.flag)
        name = model.parent.name if model.name == "model.onnx" else model.stem
        print(
            f"{name}: {n / 1e6:.2f} million instructions, weights {weights}, arena {arena}, flash {flash}",
            flush=True,
        )
        for tool, function, command in (
            (o.onnx2c, "entry", [o.onnx2c, model]),
            (
                o.emx,
                "model",
                [
                    o.emx,
                    "compile",
                    "--model-name",
                    "model",
                    "--large-weight-threshold",
                    "0",
                    "--large-temp-threshold",
                    "0",
                    model,
                ],
            ),
        ):
            if tool:
                with tempfile.TemporaryDirectory() as work:
                    said = other(
                        command + [f"{work}/other.c"] * (tool == o.emx),
                        function,
                        pathlib.Path(work),
                    )
                print(f"    {pathlib.Path(tool).name}: {said}", flush=True)
    return 0


sys.exit(main())
