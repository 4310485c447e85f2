#!/usr/bin/env python3
"""Instructions that one run of a model takes on a Cortex-M4F, counted by QEMU (mps2-an386, -icount shift=0).
Its outputs have to be those of the same source on this machine; floats may differ by what C libraries do.

    count.py --ingot build/ingot MODEL.onnx...     millions of instructions, bytes of weights, arena and code

Needs qemu-system-arm and arm-none-eabi-gcc with newlib (Debian: qemu-system-arm gcc-arm-none-eabi libnewlib-arm-none-eabi).
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

HERE = pathlib.Path(__file__).resolve().parent
BOARD = HERE.parents[1] / "examples" / "cortex_m"
CPU = ["-mthumb", "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"]
TICK = 40  # instructions: the timer has 25 MHz, an instruction takes a nanosecond


def call(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def arguments(header):
    """C declarations of inputs and outputs, as memory of their own; inputs are a ramp. And statements that print the outputs."""
    text, dump = [], []
    for what, name in (("inputs", "in"), ("outputs", "out")):
        body = re.search(r"typedef struct model_%s \{(.*?)\} model_%s;" % (what, what), header, re.S)[1]
        fields = re.findall(r"(?:const )?(\w+) \*(\w+); /\* .*?\[([\d,]*)\]", body)
        for kind, field, dims in fields:
            n = 1
            for d in dims.split(","):
                n *= int(d or 1)
            text.append(f"static {kind} {name}_{field}[{n}];")
            if what == "outputs":
                dump.append(f'dump("{kind} ", {name}_{field}, sizeof {name}_{field});')
            if what == "inputs":
                text.append(f"for (int i = 0; i < {n}; i++) {name}_{field}[i] = ({kind})(i * 7 % 11 - 5);")
        text.append(f"model_{what} {name} = {{{', '.join(f'.{f} = {name}_{f}' for _, f, _ in fields)}}};")
    return [f"-DRUN_DECLARE={' '.join(text)}", f"-DRUN_DUMP={' '.join(dump)}"]


def outputs(text):
    found = re.findall(r"^(float|\w+_t) ((?:[0-9a-f]{2})+)$", text, re.M)
    return [struct.unpack(f"<{len(x) // 8}f", bytes.fromhex(x)) if kind == "float" else x for kind, x in found]


def same(got, want):
    if len(got) != len(want):
        return False
    for a, b in zip(got, want):
        near = a == b if isinstance(a, str) else max(abs(x - y) for x, y in zip(a, b)) <= 1e-5 * max(map(abs, b))
        if not near:
            return False
    return True


def count(ingot, model, work, flags):
    out = work / "bundle"
    call(ingot, "compile", model, "-o", out, "--target", "c:cortex-m4", "--weights", "array", *flags)
    header = (out / "model.h").read_text()
    sources = [p for p in out.glob("*.c") if p.name not in ("main.c", "driver.c", "igrt_pool.c")] + [HERE / "start.c"]
    elf, host = work / "run.elf", work / "host"
    flags_of = ["-O2", "-std=c99", "-ffp-contract=off", "-ffunction-sections", "-fdata-sections", "-I", out, "-I", BOARD, *arguments(header)]
    call("cc", *flags_of, "-o", host, *sources, "-lm")
    want = call(host)
    call("arm-none-eabi-gcc", *CPU, *flags_of, "-nostartfiles", "--specs=nosys.specs", "-Wl,--gc-sections",
         "-T", BOARD / "board.ld", "-o", elf, *sources, BOARD / "board.c", "-lm")
    said = subprocess.run(["qemu-system-arm", "-M", "mps2-an386", "-nographic", "-icount", "shift=0", "-semihosting-config",
                           "enable=on,target=native", "-kernel", str(elf)], capture_output=True, text=True, timeout=300)
    said = said.stdout + said.stderr
    if "status 0" not in said:
        sys.exit(f"{model}: {said}")
    if not same(outputs(said), outputs(want)):
        sys.exit(f"{model}: its outputs are not those of this machine: {outputs(said)} for {outputs(want)}")
    sizes = json.loads(call(ingot, "inspect", model, "--json", "--target", "c:cortex-m4", *flags))
    text = call("arm-none-eabi-size", elf).split("\n")[1].split()
    return int(re.search(r"ticks (\d+)", said)[1]) * TICK, sizes["weights_bytes"], sizes["arena_bytes"], int(text[0])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ingot", required=True)
    p.add_argument("models", nargs="+", type=pathlib.Path)
    p.add_argument("--flag", action="append", default=[], help="of ingot compile")
    o = p.parse_args()
    if not shutil.which("qemu-system-arm") or not shutil.which("arm-none-eabi-gcc"):
        print("skipped: there is no qemu-system-arm, or no arm-none-eabi-gcc")
        return 77
    for model in o.models:
        with tempfile.TemporaryDirectory() as work:
            n, weights, arena, flash = count(o.ingot, model, pathlib.Path(work), o.flag)
        name = model.parent.name if model.name == "model.onnx" else model.stem
        print(f"{name}: {n / 1e6:.2f} million instructions, weights {weights}, arena {arena}, flash {flash}")
    return 0


sys.exit(main())
