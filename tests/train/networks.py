#!/usr/bin/env python3
"""Training steps of known networks: CPU time of one thread and the arena beside the states; beside PyTorch if it is there.

    networks.py --make build/tests/networks [--torch PYTHON] [--compile] [--llmc FOLDER] [--threads N] [--seconds S] [--precision bf16]
                [--max-ram BYTES] [--kernels] [NAME:OPTIMIZER...]

Prints a line each and judges nothing; last the geometric mean of the ratios to the better one of PyTorch's eager
steps and (--compile) torch.compile's.  PyTorch's networks are the same, with weights of their own, one step after
the other in the same minutes.  A checkout of llm.c is measured beside gpt2:adamw.  With several threads it is not
CPU time but time, which wants a quiet machine.
"""

import argparse
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# first input, targets, classes, whether the first input is words
SIZES = {
    "mlp32": (32 * 784, 32, 10, False),
    "mlp128": (128 * 784, 128, 10, False),
    "cnn32": (32 * 784, 32, 10, False),
    "mobilenetv2": (8 * 3 * 96 * 96, 8, 1000, False),
    "resnet18": (8 * 3 * 224 * 224, 8, 1000, False),
    "resnet64": (8 * 3 * 64 * 64, 8, 10, False),
    "bert4": (4 * 128, 4 * 128, 2, True),
    "gpt2": (4 * 64, 4 * 64, 50257, True),
    "tiny": (2 * 16, 2 * 16, 100, True),
    "encoder": (4 * 32, 4 * 32, 2, True),
}
USUAL = "mlp32:sgd mlp128:sgd mlp32:adamw cnn32:sgd resnet18:sgd mobilenetv2:sgd bert4:sgd bert4:adamw gpt2:adamw"


def build(a, name, optimizer, folder):
    """The program; bytes of its scratch and of its states."""
    drawn = a.target.partition(":")[0] != "c"  # a GPU's states are not the program's to fill
    command = [a.make, name, optimizer, str(folder), a.target, str(a.max_ram), a.precision or "f32"]
    command += ["drawn"] * drawn
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    arena = int(re.search(r"arena (\d+) bytes", told)[1])
    subprocess.run(["make", "-s", "-C", str(folder), "libmodel.a", f"CC={a.cc}"], check=True)
    first, targets, classes, words = SIZES[name]
    flags = [f"-DFIRST_COUNT={first}", f"-DTARGETS={targets}", f"-DCLASSES={classes}"]
    flags += ["-DSTEP_OF_WORDS"] * words
    flags += ["-DNOISE=" + noise + "u" for noise in re.findall(r"^drawn: (\d+)$", told, re.M)]
    program = folder / "step_time"
    source = [str(HERE / "step_time.c"), str(folder / "host/igrt_pool.c")]
    source += [str(folder / "libmodel.a"), "-lm", "-ldl", "-lpthread"]
    subprocess.run(
        [
            *a.cc.split(),
            "-O1",
            f"-I{folder}",
            f"-I{folder}/host",
            *flags,
            "-o",
            str(program),
            *source,
        ],
        check=True,
    )
    size = {"f32": 4, "i64": 8}
    states = 0
    for dtype, dims in re.findall(r'^ \*     "\S+" (\w+)\[([\d,]*)\]$', model_head(folder), re.M):
        n = size[dtype]
        for d in filter(None, dims.split(",")):
            n *= int(d)
        states += n
    return program, arena - states, states


def model_head(folder):
    text = (folder / "model.h").read_text()
    at = text.index(" * states")
    return text[at : text.index(" */", at)]


def torch_ms(a, name, optimizer, compiled):
    command = [a.torch, str(HERE / "networks_torch.py"), name, optimizer, str(a.seconds)]
    command += ["--threads", str(a.threads)]
    p = subprocess.run(command + ["--compile"] * compiled, capture_output=True, text=True)
    return float(p.stdout) if p.returncode == 0 else None


def llmc_ms(a, work):
    program = work / "llmc_time"
    flags = ["-Ofast", "-march=native", "-Wno-unused-result", f"-I{a.llmc}"]
    flags += ["-fopenmp", "-DOMP"] * (a.threads > 1)
    source = str(HERE / "llmc_time.c")
    subprocess.run([*a.cc.split(), *flags, "-o", str(program), source, "-lm"], check=True)
    run = [str(program), str(a.seconds), "--threads", str(a.threads)]
    return float(
        subprocess.run(run, capture_output=True, text=True, check=True)
        .stdout.splitlines()[-1]
        .split()[0]
    )


def processor():
    found = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return found[1] if found else "a processor without a name"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--make", required=True)
    p.add_argument("--target", default="c:native")
    p.add_argument("--cc", default=os.environ.get("CC", "cc"))
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--precision", choices=["bf16", "f16"], help="of products; weights stay f32")
    p.add_argument("--max-ram", type=int, default=0, help="bytes that the arena may have")
    p.add_argument("--torch", help="a Python that has PyTorch")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--llmc", help="a checkout of llm.c")
    p.add_argument("--kernels", action="store_true", help="the dearest steps of the plan")
    p.add_argument("steps", nargs="*", default=USUAL.split())
    a = p.parse_args()
    print(f"{processor()}, {a.threads} threads")
    print("step                 ms    arena MB  states MB  torch eager, ratio  compiled, ratio")
    ratios = []
    for step in a.steps:
        name, _, optimizer = step.partition(":")
        with tempfile.TemporaryDirectory(prefix="ingot_networks_") as work:
            program, scratch, states = build(a, name, optimizer or "sgd", pathlib.Path(work) / "b")
            run = [str(program), str(a.seconds), "--threads", str(a.threads)]
            run += ["--kernels"] * a.kernels
            said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
            llmc = llmc_ms(a, pathlib.Path(work)) if a.llmc and step == "gpt2:adamw" else None
        ms = float(said.split()[0])
        line = f"{step:18} {ms:9.3f} {scratch / 1e6:9.1f} {states / 1e6:9.1f}"
        best = None
        for compiled in [False, True][: (1 + a.compile) * bool(a.torch)]:
            t = torch_ms(a, name, optimizer or "sgd", compiled)
            best = min(t or best, best or t) if t or best else None
            line += f" {t:12.3f} {ms / t:6.2f}" if t else "            -      -"
        ratios += [ms / best] if best else []
        line += f"  llm.c {llmc:.0f} {ms / llmc:.2f}" if llmc else ""
        print(line, flush=True)
        rows = sorted(said.splitlines()[1:], key=lambda r: -float(r.split()[0]))
        print(*rows[: 40 * a.kernels], sep="\n", end="\n" * a.kernels)
    if ratios:
        print(
            f"geometric mean of {len(ratios)} ratios: {math.prod(ratios) ** (1 / len(ratios)):.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
