#!/usr/bin/env python3
"""A network of bytes on cores of QEMU, and what the runtime has in their instructions.

    cores.py --ingot build/ingot

The network has each form of a sum of bytes: by fours (an image of three channels), windows of
planes, by eights and sixteens, of bytes with a sign and without. Its bundle is compiled for each
core, and its selftest has to be ok there. num.c compares functions of igrt_num.h and igrt_dot.h
with what they say in C. What compile tells of flash and RAM is within 3 % of a linked program less
an empty one, and no run goes deeper than the stack that it tells. Of a larger image, with less RAM
than the usual plan takes, it is computed patch by patch; and the network runs on a RISC-V. Exit
status 77, skipped: there is no qemu-system-arm, no arm-none-eabi-gcc, or no onnx.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from boards import BOARD, BOARDS, main_of, sources_of

HANGS = 3600  # seconds of what does not end; a machine may be busy
HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
UNSUPPORTED = 4  # there is no libclang
SUMS = 5  # of products in the network
CORES = {  # instructions that the network's sums have to take
    "cortex-m0+": (),
    "cortex-m3": ("smull", "ssat"),
    "cortex-m4": ("smlad", "sxtb16", "vcvtr", "usat"),
    "cortex-m55": ("vmladava.s8", "vmladava.s16", "vmladava.s32", "vstrb.32", "vfma.f32\tq"),
}
MEASURED = ("cortex-m3", "cortex-m4")
RUN = """\
    enum { PAINTED = 4096 };
    volatile unsigned char *top = __builtin_frame_address(0);
    for (int i = 128; i < PAINTED; i++)
        top[-i] = 0xa5;
    if (model_run(&ctx, 0, 0) != IGRT_OK)
        return 2;
    int deep = PAINTED;
    while (deep > 128 && top[1 - deep] == 0xa5)
        deep--;
    board_say_number("deep ", (uint32_t)deep);
"""
TEST = """\
    if (model_selftest(&ctx) != IGRT_OK)
        return 1;
    board_say("ok\\n");
"""


def network(path, image=(13, 11), flat=True):
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save

    draw = np.random.default_rng(1)
    nodes, weights = [], []

    def constant(name, value):
        weights.append(numpy_helper.from_array(value, name))
        return name

    def quantised(x, scale, zero, kind):
        s, z = constant(f"{x}_s", np.float32(scale)), constant(f"{x}_z", kind(zero))
        nodes.append(helper.make_node("QuantizeLinear", [x, s, z], [f"{x}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{x}_q", s, z], [f"{x}_d"]))
        return f"{x}_d"

    def weight(name, shape):
        w = constant(f"{name}_w", draw.integers(-127, 128, shape, dtype=np.int8))
        scale = draw.uniform(0.5, 1.5, shape[0]).astype(np.float32)
        scale /= np.float32(80 * np.prod(shape[1:]) ** 0.5)
        s = constant(f"{name}_ws", scale)
        z = constant(f"{name}_wz", np.zeros(shape[0], np.int8))
        nodes.append(helper.make_node("DequantizeLinear", [w, s, z], [f"{name}_wd"], axis=0))
        return f"{name}_wd"

    def layer(op, name, x, shape, kind, **attributes):
        bias = constant(f"{name}_b", draw.uniform(-0.3, 0.3, shape[0]).astype(np.float32))
        nodes.append(helper.make_node(op, [x, weight(name, shape), bias], [name], **attributes))
        zero = -5 if kind is np.int8 else 131
        return quantised(name, 2 / 127, zero, kind)

    x = quantised("x", 1 / 100, 3, np.int8)  # as bytes the program's input, which has no rows
    if flat:
        constant("dims", np.array([1, 3, *image]))
        nodes.append(helper.make_node("Reshape", [x, "dims"], ["rows"]))
        x = "rows"
    x = layer("Conv", "image", x, (16, 3, 3, 3), np.int8, pads=[1, 1, 1, 1], strides=[2, 2])
    x = layer("Conv", "planes", x, (16, 1, 3, 3), np.uint8, pads=[1, 1, 1, 1], group=16)
    x = layer("Conv", "sixteens", x, (8, 16, 1, 1), np.int8)
    x = layer("Conv", "eights", x, (24, 8, 3, 3), np.int8, pads=[1, 1, 1, 1])
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["mean"]))
    x = quantised("mean", 1 / 100, 0, np.int8)
    nodes.append(helper.make_node("Flatten", [x], ["flat"]))
    x = layer("Gemm", "y", "flat", (5, 24), np.int8, transB=1)
    io = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, d)
        for n, d in (("x", [1, 3 * image[0] * image[1]] if flat else [1, 3, *image]), (x, [1, 5]))
    ]
    graph = helper.make_graph(nodes, "cores", io[:1], io[1:], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=HANGS)
    if done.returncode:
        sys.exit(
            f"{words[0]} {words[-2]}: status {done.returncode}\n{done.stdout}{done.stderr[:2000]}"
        )
    return done.stdout + done.stderr


def linked(core, sources, include, elf, *more):
    run(
        *("arm-none-eabi-gcc", *BOARDS[core][0].split(), "-O2", "-std=c99", "-ffp-contract=off"),
        *("-save-temps=obj", "-Wall", "-Wextra", "-Werror", "-nostartfiles", "--specs=nosys.specs"),
        *("-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Wl,--no-warnings"),
        *(f"-I{include}", f"-I{BOARD}", "-o", elf, *sources, *more, "-lm"),
    )


def on_board(core, sources, include, elf):
    linked(core, sources, include, elf, BOARD / "board.c", "-T", BOARD / "board.ld")


def said_by(core, elf):
    return run(
        *("qemu-system-arm", "-M", BOARDS[core][1], "-nographic"),
        *("-semihosting-config", "enable=on,target=native", "-kernel", elf),
    )


def program(core, sources, include, elf):
    on_board(core, sources, include, elf)
    said = said_by(core, elf)
    if said.strip() != "ok":
        sys.exit(f"{core}: {sources[0]}: {said}")


def inlined(core, out):
    """A load of a dot is no call where a compiler is to write little."""
    for text in out.glob("model_kernels_*.c"):
        words = (*BOARDS[core][0].split(), "-Os", "-std=c99", f"-I{out}", "-S", "-o", "-")
        if "igrt_load" in run("arm-none-eabi-gcc", *words, text):
            sys.exit(f"{core}: with -Os a load of {text.name} is a call")


def sections(elf):
    """Bytes of flash and of RAM."""
    text, data, bss = map(int, run("arm-none-eabi-size", elf).splitlines()[1].split()[:3])
    return text + data, data + bss


def measured(core, told, out, work):
    """What compile told, beside a program that runs the model and one that does nothing."""
    flash, ram, stack = map(
        int, re.search(r"flash (\d+) bytes, RAM (\d+) and at most (\d+)", told).groups()
    )
    (work / "none.c").write_text("int main(void) { return 0; }\n")
    (work / "whole.c").write_text(main_of("    return model_run(&ctx, 0, 0) != IGRT_OK;\n"))
    (work / "run.c").write_text(main_of(RUN))
    bundle = sources_of(out)
    linked(core, [work / "none.c"], out, work / "none.elf", "-Wl,--entry=main")
    linked(core, [work / "whole.c", *bundle], out, work / "whole.elf", "-Wl,--entry=main")
    on_board(core, [work / "run.c", *bundle], out, work / "run.elf")
    without, whole = sections(work / "none.elf"), sections(work / "whole.elf")
    for what, said, n in zip(("flash", "RAM"), (flash, ram), map(int.__sub__, whole, without)):
        if abs(n - said) > 0.03 * n:
            sys.exit(f"{core}: compile tells {said} bytes of {what}, and it takes {n}")
    deep = int(re.search(r"deep (\d+)", said_by(core, work / "run.elf"))[1])
    if deep > stack:
        sys.exit(f"{core}: compile tells {stack} bytes of stack, and a run is {deep} deep")


def inspected(ingot, model, flags, told):
    """inspect says what compile does."""
    takes = json.loads(run(ingot, "inspect", model, "--json", "--name", "model", *flags))
    said = [takes["firmware"][f"{what}_bytes"] for what in ("flash", "ram", "stack")]
    if tuple(map(str, said)) != re.findall(r"flash (\d+) .*RAM (\d+) and at most (\d+)", told)[0]:
        sys.exit(f"inspect tells {said}, and compile {told}")


def in_patches(ingot, work, core="cortex-m4"):
    """With less RAM than the usual plan takes; the selftest is ok."""
    model, out = work / "patches.onnx", work / "patches"
    network(model, (40, 24), False)
    flags = ("--target", f"c:{core}", "--weights", "array", "--io", "int8", "--io-in-arena")
    usual = json.loads(run(ingot, "inspect", model, "--json", *flags))["arena_bytes"]
    told = run(
        *(
            ingot,
            "compile",
            model,
            "-o",
            out,
            "--name",
            "model",
            *flags,
            "--max-ram",
            usual * 5 // 6,
        )
    )
    if "patch by patch" not in told:
        sys.exit(f"{core}: {usual} bytes; with five sixths of that: {told}")
    program(core, [work / "main.c", *sources_of(out)], out, work / "patches.elf")


def on_riscv(ingot, work):
    """The same network on a core without multiply-adds, floats and flags of its own."""
    core, out, elf = "rv32imc", work / "rv32", work / "rv32.elf"
    if not all(map(shutil.which, ("riscv64-unknown-elf-gcc", "qemu-system-riscv32"))):
        print(f"{core}: skipped, there is no riscv64-unknown-elf-gcc, or no qemu-system-riscv32")
        return
    flags = ("--name", "model", "--target", f"c:{core}", "--weights", "array")
    run(ingot, "compile", work / "cores.onnx", "-o", out, *flags, "--io", "int8", "--io-in-arena")
    run(
        *("riscv64-unknown-elf-gcc", "-march=rv32imc", "-mabi=ilp32", "-O2", "-std=gnu99"),
        *("-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "--specs=picolibc.specs"),
        "--crt0=hosted",
        *("-Wl,--defsym=__flash=0x80000000", "-Wl,--defsym=__flash_size=4M"),
        *("-Wl,--defsym=__ram=0x80400000", "-Wl,--defsym=__ram_size=4M", "-Wl,--gc-sections"),
        *(f"-I{out}", f"-I{BOARD}", "-o", elf, work / "main.c", *sources_of(out)),
        *(HERE / "rv32.c", "-lm"),
    )
    said = run(
        *("qemu-system-riscv32", "-M", "virt", "-bios", "none", "-nographic"),
        *("-semihosting-config", "enable=on,target=native", "-kernel", elf),
    )
    if said.strip() != "ok":
        sys.exit(f"{core}: {said}")
    print(f"{core}: ok")


def audit(ingot, core, out):
    """What the core's instructions are written in is known to the audit, too."""
    words = (ingot, "audit", out, "--triple", "thumbv7em-none-eabi")
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=HANGS)
    if done.returncode not in (0, UNSUPPORTED):
        sys.exit(f"{core}: {done.stdout[:1500]}{done.stderr}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--ingot", required=True, type=pathlib.Path)
    o = p.parse_args()
    try:
        import onnx  # noqa: F401
    except ImportError:
        print("skipped: there is no onnx")
        return 77
    if not shutil.which("qemu-system-arm") or not shutil.which("arm-none-eabi-gcc"):
        print("skipped: there is no qemu-system-arm, or no arm-none-eabi-gcc")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        network(work / "cores.onnx")
        (work / "main.c").write_text(main_of(TEST))
        for core, wanted in CORES.items():
            out, elf = work / core, work / "core.elf"
            for s in work.glob("*.s"):
                s.unlink()
            model, flags = work / "cores.onnx", ("--target", f"c:{core}", "--weights", "array")
            flags += ("--io", "int8", "--io-in-arena")
            told = run(o.ingot, "compile", model, "-o", out, "--name", "model", *flags)
            if core in MEASURED:
                measured(core, told, out, work)
            if core == MEASURED[0]:
                inspected(o.ingot, model, flags, told)
            text = "".join(k.read_text() for k in out.glob("model_kernels_*.c"))
            if "smlad" in wanted and len(re.findall(r"\* DOT ", text)) < SUMS:
                sys.exit(f"{core}: a sum is not taken by fours:\n{text}")
            if "sxtb16" in wanted and "igrt_widen_i8x4(" not in text:
                sys.exit(f"{core}: no operand is widened once:\n{text}")
            if "sxtb16" in wanted:
                inlined(core, out)
            program(core, [work / "main.c", *sources_of(out)], out, elf)
            code = "".join(s.read_text() for s in work.glob("*.s"))
            missing = [i for i in wanted if i not in code]
            if missing:
                sys.exit(f"{core}: its sums take no {', '.join(missing)}")
            audit(o.ingot, core, out)
            program(core, [HERE / "num.c"], TREE / "runtime_min", elf)
            print(f"{core}: ok")
        in_patches(o.ingot, work)
        on_riscv(o.ingot, work)
    return 0


sys.exit(main())
