#!/usr/bin/env python3
"""Bundles for several GPUs, in an emulator of them, compute what one device computes.

    gpus.py --ingot build/ingot

    sums       a network whose weights three devices share: the bytes of its results in each order
               in which devices can run, step by step, and where one GPU is several of them; found are a value that is not waited
               for, one that is stored beside its place, and devices that are taken for each other
    ways       a layer as bert_base has it, blocks as resnet18 has them: by tensors, by rows of the
               batch, by layers; on two GPUs, and on one that is both
    memory     a model that is too large for one GPU and not for two; what each of them has is told
    copies     a value that is too large to be sent: by queues of copies, and waits that the graph
               has; found are missing waits
    hosted     devices that do not reach each other's memory: the same bytes, by way of the host's;
               found is a value that is sent to another one's memory all the same
    failures   a run in which a launch fails leaves nothing to the next one; that is found
    training   losses of a step that two devices share, beside one device's: each makes all weights
               of the next step itself, and after a reset has the first ones; in f32, and in bf16
    status     what there is not: devices, their way to each other's memory, steps of the host

Exit status 77, skipped: there is no Python with onnx, or nothing that compiles C++.
"""

import json
import os
import re
import subprocess
import sys

try:
    import devices
    import numpy as np
    import models
    from emulated import emulate
    from run import Wrong, call, compilers, main, program
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

ROWS, WIDE, INNER, LARGE = 4, 48, 192, 70000
# Terms of a gradient are rounded before they are added: losses of later steps differ.
NARROW = 1e-3
# One GPU in the place of several.
SHARED = ("0,0,0", "1,0,1")
# So that small products are worth a copy.
NEAR = "target = cuda:sm_90a\nlaunch = 5\n"


def network(g):
    """Pairs of products, each with a sum over devices behind it; twice it is a residual sum, which
    later ones read too: its kernel lets the terms cross itself."""
    x = g.input("x", models.F, ROWS, WIDE)
    for residual in (False, True, True, False):
        h = g.op("Relu", g.op("MatMul", x, g.weight(WIDE, INNER)))
        h = g.op("MatMul", h, g.weight(INNER, WIDE))
        if not residual:
            h = g.op("Add", h, g.op("ReduceMax", h, axes=[1]))
        x = g.op("Sub", x, h)
    g.output("y", x, models.F, ROWS, WIDE)


def long_rows(g):
    x = g.input("x", models.F, 1, LARGE)
    for _ in range(2):
        x = g.op("Sub", g.op("Mul", x, g.weight(LARGE)), g.op("ReduceMax", x, axes=[1]))
    g.output("y", x, models.F, 1, LARGE)


def wide(g):
    """A sum so large that each device adds a piece of it."""
    x = g.input("x", models.F, ROWS, WIDE)
    h = g.op("Relu", g.op("MatMul", x, g.weight(WIDE, 2 * WIDE)))
    g.output("y", g.op("MatMul", h, g.weight(2 * WIDE, LARGE // 4)), models.F, ROWS, LARGE // 4)


def layers(g):
    x = g.input("x", models.F, ROWS, INNER)
    for _ in range(4):
        x = g.op("Relu", g.op("MatMul", x, g.weight(INNER, INNER)))
    g.output("y", x, models.F, ROWS, INNER)


devices.MODELS.update(
    layers=(layers, (ROWS, INNER)),
    wide=(wide, (ROWS, WIDE)),
    network=(network, (ROWS, WIDE)),
    long_rows=(long_rows, (1, LARGE)),
)


# A run step by step, in which a launch may fail, and one as a graph: what that computes.
TWICE = r"""
#include <stdio.h>
#include "model.h"
static void step(void *user, int i, const char *name, uint64_t ns) { }
static uint64_t now(void *user) { return 0; }
int main(void)
{
    static model_ctx ctx;
    static unsigned char arena[MODEL_ARENA_BYTES(1) + 1] __attribute__((aligned(64)));
    static float x[%d], y[%d];
    model_config config = {.struct_size = sizeof config, .profile = step, .clock = now,
                           .arena = arena, .arena_bytes = sizeof arena};
    const model_inputs in = {.x = x};
    model_outputs out = {.y = y};
    const int n = sizeof x / sizeof *x;
    if (model_init(&ctx, &config))
        return 1;
    for (int run = 0; run < 2; run++) {
        for (int i = 0; i < n; i++)
            x[i] = (float)((i * 7 + run * 5) %% 11) - 5;
        if (model_run(&ctx, &in, &out) && run)
            return 1;
        ctx.config.profile = NULL;
    }
    for (int i = 0; i < n; i++)
        printf("%%.9g\n", y[i]);
    return 0;
}
"""


class Emulated:
    """The bundle of a model for so many devices, beside what C computes of it."""

    def __init__(self, ingot, work, name, *flags):
        self.work = work
        self.model, self.data = devices.write_model(work, name)
        self.wanted = devices.outputs(
            devices.built(ingot, work, self.model), self.data, work / "out", 1
        )
        self.bundle = work / "gpus"
        call(ingot, "compile", self.model, "-o", self.bundle, *flags)
        program(self.bundle, compilers()[0], "-O0 -Wall -Wextra -Werror")
        self.drivers = 0

    def driver(self, change=lambda text: text):
        self.drivers += 1
        folder = self.work / f"driver{self.drivers}"
        emulate.driver(self.bundle, folder, change)
        return folder

    def run(self, folder, order, *words, **env):
        """Results; or the status and what is said."""
        out = self.work / "gpus_out"
        env = {**os.environ, **emulate.environment(folder, order), **env}
        alone = "--profile" in words
        command = [self.bundle / "model", *words, self.data, *([] if alone else [out])]
        done = subprocess.run(command, env=env, text=True, capture_output=True)
        if done.returncode or alone:
            return done.returncode, done.stdout + done.stderr
        return [np.load(f) for f in sorted(out.iterdir())]

    def right(self, folder, *words, **env):
        """The bytes of each order, where they are near C's."""
        runs = [self.run(folder, order, *words, **env) for order in emulate.ORDERS]
        for run in runs:
            if isinstance(run, tuple):
                raise Wrong(f"status {run[0]}: {run[1]}")
            if not devices.near(run, self.wanted):
                raise Wrong(f"{self.model.name}: something else than in C")
        if devices.raw(runs[0]) != devices.raw(runs[1]):
            raise Wrong(f"{self.model.name}: other bytes in another order")
        return devices.raw(runs[0])

    def found(self, what, folder, wanted, **env):
        for order in emulate.ORDERS:
            run = self.run(folder, order, **env)
            if isinstance(run, tuple) or devices.raw(run) != wanted:
                return
        raise SystemError(f"{what} is not found")

    def rebuilt(self, change):
        file = self.bundle / "model.c"
        text = file.read_text()
        if change(text) == text:
            raise SystemError("the text has nothing to change")
        file.write_text(change(text))
        program(self.bundle, compilers()[0], "-O0")
        file.write_text(text)


def taken_for_each_other(text):
    """Of the values that a device takes at once the places of two."""
    take = r"ctx->slot\[0\] \+ (\d+), \(uint32_t\)\(\d+\), 1\},\s*"
    pair = re.search(r"\{mem[^{]*" + take + r"\{mem[^{]*" + take, text)
    one, other = pair.span(1), pair.span(2)
    return text[: one[0]] + pair[2] + text[one[1] : other[0]] + pair[1] + text[other[1] :]


def sums(ingot, work):
    (work / "near.target").write_text(NEAR)
    flags = ("--target", work / "near.target", "--devices", 3, "--parallel", "tensor")
    pair = Emulated(ingot, work, "network", *flags)
    folder = pair.driver()
    wanted = pair.right(folder)
    if "_CROSS]" not in (pair.bundle / "model.c").read_text():
        raise Wrong("no kernel lets values cross itself")
    for gpus in ("0,1,2", *SHARED):
        status, text = pair.run(folder, emulate.ORDERS[0], "--profile", "--gpu", gpus)
        if status or "copy" not in text:
            raise Wrong(f"step by step: status {status}: {text}")
        if pair.right(folder, "--gpu", gpus) != wanted:
            raise Wrong(f"GPUs {gpus}: other bytes")
    pair.found(
        "a value that is not waited for",
        pair.driver(lambda t: t.replace("while (a >> 32 != 1 || b >> 32 != 1)", "while (0)")),
        wanted,
    )
    pair.rebuilt(
        lambda t: re.sub(r"\{(ctx->slot\[\d\] \+ )(\d+), mem", r"{\g<1>\g<2> + 16, mem", t)
    )
    pair.found("a value beside its place", folder, wanted)
    pair.rebuilt(taken_for_each_other)
    pair.found("devices that are taken for each other", folder, wanted)
    print(f"3 devices, {len(emulate.ORDERS)} orders, 3 faults")


def hosted(ingot, work):
    (work / "near.target").write_text(NEAR)
    for name, n, way in (
        ("network", 3, "tensor"),
        ("wide", 3, "tensor"),
        ("long_rows", 2, "layers"),
    ):
        apart = work / name
        apart.mkdir()
        flags = ("--target", work / "near.target", "--devices", n, "--parallel", way)
        pair = Emulated(ingot, apart, name, *flags)
        folder = pair.driver()
        wanted = pair.right(folder)
        if pair.right(folder, EMULATED_APART="1") != wanted:
            raise Wrong(f"{name}: other bytes by way of the host")
        if name == "network":
            own = "igrt_gpus_slot(&(igrt_gpus){0},"  # as where devices reach each other
            pair.rebuilt(lambda t: t.replace("igrt_gpus_slot(&ctx->gpus,", own))
            pair.found("a value sent to another one's memory", folder, wanted, EMULATED_APART="1")
    print("3 models, 1 fault")


def copies(ingot, work):
    flags = ("--target", "cuda:sm_90a", "--devices", 2, "--parallel", "layers")
    pair = Emulated(ingot, work, "long_rows", *flags)
    text = (pair.bundle / "model.c").read_text()
    if "igrt_gpus_wait(&ctx->gpus, gpu, ctx->mark[" not in text.partition("enqueue_steps")[2]:
        raise Wrong("nothing is waited for")
    folder = pair.driver()
    wanted = pair.right(folder)
    if pair.right(folder, "--gpu", "2,2") != wanted:
        raise Wrong("one GPU as two: other bytes")
    pair.rebuilt(
        lambda t: re.sub(r"TRY\(igrt_gpus_wait\(&ctx->gpus, gpu, ctx->mark\[\d+\]\)\);", "", t)
    )
    pair.found("a missing wait", folder, wanted)
    print("2 devices, 1 fault")


def ways(ingot, work):
    (work / "near.target").write_text(NEAR)
    runs = 0
    for name, own in devices.WAYS.items():
        for way in own:
            how = ("--devices", 2, "--parallel", way)
            apart = work / f"{name}_{way}"
            apart.mkdir()
            pair = Emulated(ingot, apart, name, "--target", work / "near.target", *how)
            folder = pair.driver()
            wanted = pair.right(folder)
            if pair.right(folder, "--gpu", "0,0") != wanted:
                raise Wrong(f"{name}, {way}: one GPU as two: other bytes")
            runs += 1
    print(f"{runs} runs")


def memory(ingot, work):
    model, _ = devices.write_model(work, "layers")
    flags = ("--target", "cuda:sm_90a", "--max-vram", "400k")
    what = [ingot, "compile", model, "-o", work / "one", *flags]
    one = subprocess.run([str(w) for w in what], capture_output=True, text=True)
    if one.returncode != 4 or "--max-vram" not in one.stderr:
        raise Wrong(f"a GPU that is too small: status {one.returncode}: {one.stderr}")
    layers = ("--devices", 2, "--parallel", "layers")
    call(ingot, "compile", model, "-o", work / "two", *flags, *layers)
    told = json.loads(call(ingot, "inspect", model, "--json", *flags, *layers))
    weights = [m["weights"] for m in told["memories"]]
    if len(weights) != 2 or max(weights) > 300 << 10 or sum(weights) != told["weights_bytes"]:
        raise Wrong(f"weights of two GPUs: {weights} of {told['weights_bytes']}")
    print("1 status, 2 memories")


def failures(ingot, work):
    (work / "near.target").write_text(NEAR)
    flags = ("--target", work / "near.target", "--devices", 3, "--parallel", "tensor")
    pair = Emulated(ingot, work, "network", *flags, "--weights", "array")
    folder = pair.driver()
    (work / "twice.c").write_text(TWICE % (2 * (ROWS * WIDE,)))
    cc = [compilers()[0], "-O0", f"-I{pair.bundle}", work / "twice.c", "-o", work / "twice"]

    def results(launch):
        """Of the run behind one in which a launch fails, in each order."""
        out = []
        for order in emulate.ORDERS:
            env = {**os.environ, **emulate.environment(folder, order)}
            env["EMULATED_FAIL"] = f"launch {launch}"
            out.append(subprocess.run([work / "twice"], env=env, capture_output=True).stdout)
        return out

    def linked(change=emulate.same):
        text = (pair.bundle / "model.c").read_text()
        (pair.bundle / "model.c").write_text(change(text))
        call("make", "-s", "-C", pair.bundle, "libmodel.a")
        call(*cc, pair.bundle / "libmodel.a", "-lm", "-ldl", "-lpthread")

    linked()
    wanted = results(0)
    launches = range(4, 60, 5)  # of the first run
    if not wanted[0] or wanted[0] != wanted[1]:
        raise Wrong("a run fails, or has other bytes in another order")
    if any(results(n) != wanted for n in launches):
        raise Wrong("a run has values of one that failed before it")
    linked(lambda t: re.sub(r"igrt_gpus_clear\([^;]*\);", ";", t))
    if all(results(n) == wanted for n in launches):
        raise SystemError("values of a run that failed are not found")
    print(f"{len(launches)} launches that fail, 1 fault")


def printed_losses(ingot, work, model, name, *flags, gpus=()):
    """Of eight steps, twice, each time from the first weights; and the text of the steps."""
    bundle, at = work / name, work / f"{name}_at"
    loss = ("--train", "--loss", "cross_entropy:y", "--optimizer", "adamw:rate=1e-2")
    call(ingot, "compile", model, "-o", bundle, "--target", "cuda:sm_90a", *flags, *loss)
    at.mkdir()
    words = ("-DDEVICES=1", "-DTURNS=2")
    got = emulate.printed(bundle, devices.STEPS, at, True, words, gpus, emulate.ORDERS)
    if got[:8] != got[8:]:
        raise Wrong(f"losses {got[8:]} after a reset, {got[:8]} before")
    return got[:8], (bundle / "model_train_step.c").read_text() if len(flags) > 2 else ""


def training(ingot, work):
    model, _ = devices.write_model(work, "classes")
    wanted = [float(x) for x in devices.losses(ingot, work, model, 1)[0].split()]
    both = ("--devices", 2, "--parallel", "batch")
    got, text = printed_losses(ingot, work, model, "trained", *both)
    if not np.allclose(got, wanted, rtol=1e-5):
        raise Wrong(f"losses {got} beside {wanted}")
    shared, _ = printed_losses(ingot, work, model, "shared", *both, gpus=("1,1",))
    if shared != got:
        raise Wrong(f"losses {shared} of one GPU as two beside {got}")
    taken = len(re.findall(r", 1\},\n", text))
    if taken != 2 * 4 + 3:
        raise Wrong(f"{taken} values cross: terms of 4 gradients both ways, two inputs, the loss")
    narrow = ("--precision", "bf16")
    one, _ = printed_losses(ingot, work, model, "one", *narrow)
    two, _ = printed_losses(ingot, work, model, "two", *narrow, *both)
    if not np.allclose(one, two, rtol=NARROW) or not np.isclose(one[0], two[0], rtol=1e-6):
        raise Wrong(f"losses in bf16 {two} beside those of one device {one}")
    print(f"{len(got)} steps, in f32 and in bf16")


def status(ingot, work):
    flags = ("--target", "cuda:sm_90a", "--parallel", "batch")
    pair = Emulated(ingot, work, "classes", *flags, "--devices", 4)
    folder = pair.driver()
    said = pair.run(folder, emulate.ORDERS[0])
    if said[0] != 9 or "fewer GPUs than the model is for" not in said[1]:
        raise Wrong(f"3 devices of 4: {said}")
    call(ingot, "compile", pair.model, "-o", pair.bundle, *flags, "--devices", 2)
    program(pair.bundle, compilers()[0], "-O0")
    said = pair.run(folder, emulate.ORDERS[0], "--gpu", "2,7")
    if said[0] != 9 or "fewer GPUs" not in said[1]:
        raise Wrong(f"a device that is not there: {said}")
    folder = pair.driver()
    for number in (1, 2, 4):  # the arena of the first, of the second, and what comes behind
        said = pair.run(folder, emulate.ORDERS[0], EMULATED_FAIL=f"memory {number}")
        if said[0] != 9 or "too little memory" not in said[1]:
            raise Wrong(f"too little memory: {said}")
    print("5 messages")


if __name__ == "__main__":
    if not emulate.CXX:
        print("skipped: nothing that compiles C++")
        sys.exit(77)
    checks = (sums, ways, memory, copies, hosted, failures, training, status)
    sys.exit(main(__doc__, {f.__name__: f for f in checks}))
