#!/usr/bin/env python3
"""The last layer of a MobileNet 0.25 of 96x96 pixels, in f32, learns on a Cortex-M4 of QEMU, in the
256 KB of --max-ram: losses as on this machine.

    learns.py --ingot build/ingot

Exit status 77, skipped: there is no qemu-system-arm, no arm-none-eabi-gcc, or no onnx.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HANGS = 3600  # seconds of what does not end; a machine may be busy
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "train"), str(HERE.parents[1] / "compiler/tools/python")]

try:
    import numpy as np
    import onnx  # noqa: F401
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import boards
import ingot
import training

STEPS, SIDE, CLASSES, RAM = 3, 96, 3, 256 << 10
LEARN = """
    static float x[3 * %d * %d];
    for (int64_t step = 0; step < %d; step++) {
        float loss;
        const int64_t target = step %% 2;
        for (unsigned i = 0; i < sizeof x / sizeof *x; i++)
            x[i] = (float)((i * 7919 + 13 * (unsigned)step) %% 255) / 128 - 1;
        const model_train_step_inputs in = {.x = x, .target = &target};
        model_train_step_outputs out = {&loss};
        if (model_train_step(&ctx, &in, &out) != IGRT_OK)
            return 1;
        board_say_number("loss: ", (unsigned)(loss * 1e6f));
    }
"""


def mobilenet(path):
    net = training.Net(3)
    net.weights.update(lo=np.array(0, np.float32), hi=np.array(6, np.float32))

    def conv(x, name, m, c, k, stride=1, group=1):
        net.weight(name + ".weight", m, c, k, k, scale=(2 / (c * k * k)) ** 0.5)
        x = net.node("Conv", [x, name + ".weight", net.weight(name + ".bias", m, scale=0.05)], name,
                     pads=[k // 2] * 4, strides=[stride] * 2, group=group)  # fmt: skip
        return net.node("Clip", [x, "lo", "hi"], name + ".relu6")

    x, c = conv("x", "conv", 8, 3, 3, 2), 8
    blocks = [
        (16, 1),
        (32, 2),
        (32, 1),
        (64, 2),
        (64, 1),
        (128, 2),
        *[(128, 1)] * 5,
        (256, 2),
        (256, 1),
    ]
    for i, (m, stride) in enumerate(blocks):
        x = conv(conv(x, f"depth{i}", c, 1, 3, stride, c), f"point{i}", m, c, 1)
        c = m
    x = net.node("Flatten", [net.node("GlobalAveragePool", [x], "pooled")], "features")
    head = [net.weight("head.weight", CLASSES, c, scale=0.1), net.weight("head.bias", CLASSES)]
    net.node("Gemm", [x, *head], "y", transB=1)
    net.save(
        path, [("x", training.FLOAT, [1, 3, SIDE, SIDE])], [("y", training.FLOAT, [1, CLASSES])]
    )


def on_board(bundle):
    flags, machine = boards.BOARDS["cortex-m4"]
    main = bundle / "learn.c"
    main.write_text(boards.main_of(LEARN % (SIDE, SIDE, STEPS)))
    program = bundle / "learn.elf"
    subprocess.run(["arm-none-eabi-gcc", *flags.split(), "-std=c11", "-O2", f"-I{bundle}",
                    f"-I{boards.BOARD}", "-nostartfiles", "--specs=nosys.specs", "-Wl,--gc-sections",
                    "-T", boards.BOARD / "board.ld", "-o", program, main, boards.BOARD / "board.c",
                    *[p for p in boards.sources_of(bundle) if p != main], "-lm"], check=True)  # fmt: skip
    run = subprocess.run(["qemu-system-arm", "-M", machine, "-nographic", "-semihosting-config",
                          "enable=on,target=native", "-kernel", program], capture_output=True,
                         text=True, stdin=subprocess.DEVNULL, timeout=HANGS)  # fmt: skip
    assert run.returncode == 0, f"on the board: {run.returncode}: {run.stdout} {run.stderr}"
    return [int(n) / 1e6 for n in re.findall(r"loss: (\d+)", run.stdout + run.stderr)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ingot", required=True)
    os.environ["INGOT"] = parser.parse_args().ingot
    if not shutil.which("qemu-system-arm") or not shutil.which("arm-none-eabi-gcc"):
        print("skipped: no qemu-system-arm or no arm-none-eabi-gcc")
        return 77
    with tempfile.TemporaryDirectory() as at:
        at = pathlib.Path(at)
        mobilenet(at / "net.onnx")
        options = {"loss": "cross_entropy:y", "optimizer": "sgd:rate=0.02", "trainable": "head.*"}
        ingot.compile(at / "net.onnx", at / "board", train=True, target="c:cortex-m4",
                      max_ram="256k", **options)  # fmt: skip
        told = re.search(
            r"ARENA_BYTES\(threads\) \(\(size_t\)(\d+)", (at / "board/model.h").read_text()
        )
        assert int(told[1]) <= RAM, f"the arena has {told[1]} bytes"
        here, wanted = ingot.train(at / "net.onnx", cflags="-O1", **options), []
        for step in range(STEPS):
            i = np.arange(3 * SIDE * SIDE)
            x = (((i * 7919 + 13 * step) % 255) / 128 - 1).astype(np.float32)
            wanted.append(here.step(x.reshape(1, 3, SIDE, SIDE), np.array([step % 2])).item())
        got = on_board(at / "board")
        assert len(got) == STEPS, f"losses: {got}"
        error = max(abs(g - w) / w for g, w in zip(got, wanted))
        print(f"{told[1]} bytes of arena; losses {got}, here {wanted}: {error:.1g} off")
        return error > 1e-4


if __name__ == "__main__":
    sys.exit(main())
