"""Products of bytes on 64-bit Arm, under QEMU: a part of units.py."""

import re
import shutil
import subprocess

from run import STRICT, Wrong, call, objects

# the instruction that its compiler makes, and the processor that QEMU is
ARM = {
    "armv8.2-a+dotprod": ("sdot", "max"),
    "armv8.6-a": ("usdot", "max"),
    "armv8.4-a+sve256": (r"usdot\tz", "max,sve-max-vq=2"),
    "armv8.2-a+sve512": (r"sdot\tz", "max,sve-max-vq=4"),
}


def arm(ingot, work, models):
    tools = [
        shutil.which(t)
        for t in ("qemu-aarch64", "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump")
    ]
    if not all(tools):
        print("skipped: there is no qemu-aarch64, or no aarch64-linux-gnu-gcc")
        return

    def built(path, machines):
        bundle = work / f"{path.stem}_{machines}"
        call(ingot, "compile", path, "-o", bundle, "--target", f"c:{machines}")
        for_arm = ("AR=aarch64-linux-gnu-ar", "LDFLAGS=-static", "model")
        objects.make(bundle, tools[1], STRICT, lambda words: call(*words), *for_arm)
        return bundle

    def tested(processor, bundle, *more):
        """Its status and what it says."""
        words = [tools[0], "-cpu", processor, bundle / "model", "--selftest", *more]
        done = subprocess.run(words, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    told = []
    for path, _ in models:
        if path.stem not in ("bytes", "window"):
            continue
        for machine, (instruction, processor) in ARM.items():
            bundle = built(path, machine)
            text = call(tools[2], "-d", bundle / "model_kernels_0.o")
            if path.stem == "bytes" and not re.search(instruction, text):
                raise Wrong(f"{bundle.name}: there is no {instruction}")
            if "selftest: ok" not in (said := tested(processor, bundle)[1]):
                raise Wrong(f"{bundle.name}: {said}")
            told.append(bundle.name)
            status, said = tested("max,sve-max-vq=1", bundle)
            if "sve" in machine and (status != 4 or "the processor lacks sve of" not in said):
                raise Wrong(f"{bundle.name}: status {status}: {said}")
    both, sve = built(work / "bytes.onnx", "armv8-a,armv8.4-a+sve256"), "armv8.4-a+sve256"
    for wanted, processor, more in (
        (0, "max,sve-max-vq=1", ()),
        (4, "max,sve-max-vq=1", ("--target", sve)),
        (0, "max,sve-max-vq=2", ("--target", sve)),
    ):
        status, said = tested(processor, both, *more)
        if status != wanted:
            raise Wrong(f"{both.name}: {processor}: {more}: status {status}: {said}")
    print(", ".join(told))
