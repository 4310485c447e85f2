#!/usr/bin/env python3
"""Convolutions in fewer products (winograd2, winograd4, winograd2x1), asked for in a .sched file.

    winograd.py --ingot build/ingot

    kernels   of many forms: each kernel beside its naive form, and those beside the interpreter;
              for OpenCL too
    error     beside sums in f64: docs/numerics.md has the bounds
    chosen    where it pays, in strips where it is large; a file has the last word
    units     not of what a matrix unit takes
    fused     --fuse all: each of the points of a tile would be a sum of its own in the kernel of
              the next layer
    strips    of two convolutions: values that both of them make are what a file says of each
    weights   that caches do not hold are not read again for each strip
    bytes     of integers no bit is lost, and what would lose some stays direct
    left      what cannot be done so stays direct

Exit status 77, skipped: there is no Python with onnx.
"""

import json
import os
import pathlib
import re
import sys

try:
    import numpy as np
    import models
    from run import Wrong, call, main
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

TARGET = ("--target", "c:x86-64-v3")
VNNI = ("--target", "c:x86-64-v4+vnni+halves")  # it multiplies bytes by fours, and pairs of i16


def conv(
    shape, maps, kernel=3, pad=1, group=1, residual=False, dtype=models.F, dims=None, **attributes
):
    """Bias, residual and activation behind it."""
    g = models.Graph(3)
    rank = len(shape) - 2
    kernel = kernel if isinstance(kernel, tuple) else (kernel,) * rank
    x = h = g.input("x", dtype, *(dims or shape))
    weights = [g.weight(maps, shape[1] // group, *kernel), g.weight(maps)]
    if dtype != models.F:
        weights = [g.op("Cast", w, to=dtype) for w in weights]
    h = g.op(
        "Conv", h, *weights, pads=[pad * (k // 2) for k in kernel] * 2, group=group, **attributes
    )
    if residual:
        h = g.op("Add", h, x)
    g.output("y", g.op("Relu", h), dtype, *[None] * len(shape))
    return g.bytes()


# Whole tiles and ragged ones, borders, batches, one axis and two, groups, f16, sizes that the run
# decides.
FORMS = {
    "even": dict(shape=(1, 16, 12, 16), maps=24),
    "odd": dict(shape=(1, 8, 7, 9), maps=16),
    "one row": dict(shape=(1, 8, 1, 9), maps=16),
    "no border": dict(shape=(1, 8, 9, 8), maps=8, pad=0),
    "batch": dict(shape=(3, 8, 6, 5), maps=8),
    "groups": dict(shape=(2, 32, 6, 6), maps=32, group=2),
    "residual": dict(shape=(1, 16, 6, 10), maps=16, residual=True),
    "one axis": dict(shape=(1, 8, 21), maps=8),
    "1x3": dict(shape=(1, 8, 6, 10), maps=8, kernel=(1, 3)),
    "f16": dict(shape=(1, 8, 6, 6), maps=8, dtype=models.H),
    "batch of the run": dict(shape=(2, 8, 6, 6), maps=8, dims=("n", 8, 6, 6)),
}
FEW = ("odd", "groups", "residual", "one axis", "batch of the run")
LEFT = {
    "stride": dict(shape=(1, 8, 9, 9), maps=8, strides=[2, 2]),
    "dilation": dict(shape=(1, 8, 9, 9), maps=8, dilations=[2, 2], pad=2),
    "5x5": dict(shape=(1, 8, 9, 9), maps=8, kernel=5),
    "depthwise": dict(shape=(1, 8, 9, 9), maps=8, group=8),
}


def asked_for(ingot, work, model, form, flags):
    """A file that asks for that form of every convolution, and nothing else; how many there are."""
    saved = work / "saved.sched"
    call(ingot, "compile", model, "-o", work / "direct", "--save-sched", saved, *flags)
    lines = [
        line
        for line in saved.read_text().splitlines()
        if not re.match(r"kernel|  [a-zA-Z]|value (?!.* as )", line)
    ]
    text, n = re.subn(r" as \w+(  # reduce)", rf" as {form}\1", "\n".join(lines) + "\n")
    asked = work / f"{form}.sched"
    asked.write_text(text)
    return asked, n


def dims_of(name):
    return ("--dim", "n=1..4") if FORMS.get(name, {}).get("dims") else ()


def kernels(ingot, work):
    """With INGOT_ALL=1 all forms."""
    forms = {k: v for k, v in FORMS.items() if k in FEW or os.environ.get("INGOT_ALL")}
    for name, form in forms.items():
        model = work / "conv.onnx"
        model.write_bytes(conv(**form))
        for kind in ("winograd2", "winograd4", "winograd2x1"):
            if kind == "winograd2x1" and name in ("one axis", "1x3", "one row"):
                continue  # it takes two windows
            for target in (TARGET, (*TARGET, "--interpret"), ("--target", "opencl", "--interpret")):
                few = kind != "winograd4" and name in ("odd", "groups", "batch of the run")
                if (target == TARGET and name != "odd") or (target[1] == "opencl" and not few):
                    continue
                asked, n = asked_for(ingot, work, model, kind, (*target[:2], *dims_of(name)))
                if n != 1:
                    raise Wrong(f"{name}: {n} convolutions can be {kind}")
                call(
                    ingot,
                    "verify",
                    model,
                    "--sched",
                    asked,
                    "--tolerance",
                    "1e-2" if name == "f16" else "2e-5",
                    *target,
                    *dims_of(name),
                )
    print(f"{len(forms)} forms")


def exact(x, w, bias):
    h, wd = x.shape[2:]
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = sum(
        np.einsum("nchw,mc->nmhw", x[:, :, i : i + h, j : j + wd], w[:, :, i, j].astype(np.float64))
        for i in range(3)
        for j in range(3)
    )
    return np.maximum(y + bias.astype(np.float64)[None, :, None, None], 0)


BOUND = {"direct": 2e-6, "winograd2": 2e-6, "winograd4": 1e-5, "winograd2x1": 2e-6}


def error(ingot, work):
    told = []
    for channels, size in ((64, 24), (256, 14), (512, 7))[
        : None if os.environ.get("INGOT_ALL") else 2
    ]:
        model, x = work / "conv.onnx", work / "x.npy"
        form = dict(shape=(1, channels, size, size), maps=channels)
        model.write_bytes(conv(**form))
        rng = models.Graph(3)
        w, b = (
            models.numpy_helper.to_array(t)
            for t in (rng.weight(channels, channels, 3, 3), rng.weight(channels)) and rng.weights
        )
        data = np.abs(np.random.default_rng(4).standard_normal(form["shape"])).astype(np.float32)
        np.save(x, data)
        wanted, errors = exact(data, w, b), {}
        for kind in BOUND:
            asked, n = asked_for(ingot, work, model, kind, TARGET)
            call(
                ingot,
                "run",
                model,
                "--input",
                x,
                "--output-dir",
                work / kind,
                "--sched",
                asked,
                *TARGET,
            )
            got = np.load(next((work / kind).glob("output_0.npy")))
            errors[kind] = np.abs(got - wanted).max() / np.abs(wanted).max()
            if n != 1 or errors[kind] > BOUND[kind]:
                raise Wrong(f"{channels}@{size} {kind}: {errors[kind]:.2g} of the range")
        if max(errors["winograd2"], errors["winograd2x1"]) > 1.5 * errors["direct"]:
            raise Wrong(f"{channels}@{size}: {errors}")
        told.append(f"{channels}@{size} " + ", ".join(f"{k} {e:.1e}" for k, e in errors.items()))
    print("; ".join(told))


TIME = ("--prefer", "time")
CHOSEN = (
    # along both axes the arena would be four times as large
    (
        (1, 128, 28, 28),
        (
            (("--prefer", "ram"), "direct"),
            ((), "winograd2x1"),
            (TIME, "winograd2"),
            ((*TIME, "--precision", "1e-5"), "winograd4"),
        ),
    ),
    # one row of tiles after the other takes a quarter more
    ((1, 64, 56, 56), ((("--prefer", "ram"), "direct"), ((), "winograd2"))),
    # it takes as long as its weights take to be read: 4/3 of the direct form's, not 16/9
    ((1, 512, 7, 7), ((TIME, "winograd2x1"),)),
    # strips as small as that take a quarter more, and save less than that of the time
    ((1, 16, 32, 32), (((), "direct"),)),
)


def arena(work):
    return int(
        re.search(
            r"_ARENA_BYTES\(threads\) \(\(size_t\)(\d+)", (work / "c" / "model.h").read_text()
        ).group(1)
    )


def chosen(ingot, work):
    saved, again = work / "chosen.sched", work / "again.sched"
    flags = ("--target", "c:x86-64-v4")
    for shape, cases in CHOSEN:
        model, bytes_of, made = work / "conv.onnx", {}, {}
        model.write_bytes(inside(shape))
        for more, kind in cases:
            call(ingot, "compile", model, "-o", work / "c", "--save-sched", saved, *flags, *more)
            forms = set(re.findall(r" as (winograd\w+)  # reduce", saved.read_text())) or {"direct"}
            if forms != {kind}:
                raise Wrong(f"{shape} {more}: {forms}, not {kind}")
            made[kind] = len(re.findall(r"^kernel ", saved.read_text(), re.M))
            if TIME[1] not in more:
                bytes_of[kind] = arena(work)
        if made.get("winograd4", 0) > made.get("winograd2", 0):
            raise Wrong(
                f"{shape}: one kernel transforms tiles of 4 as it does those of 2: kernels of {made}"
            )
        if bytes_of and max(bytes_of.values()) > 1.25 * bytes_of.get("direct", 0):
            raise Wrong(f"{shape}: arenas of {bytes_of}")
        call(
            ingot,
            "compile",
            model,
            "-o",
            work / "c",
            "--sched",
            saved,
            "--save-sched",
            again,
            *flags,
            *more,
        )
        if saved.read_text() != again.read_text():
            raise Wrong(f"{shape}: what a file says again is not the same")
        if "avx512vl" in pathlib.Path("/proc/cpuinfo").read_text():
            call(ingot, "verify", model, *flags, *more)
    print(f"{len(CHOSEN)} sizes")


def units(ingot, work):
    """A matrix unit multiplies narrow operands as they are many times as fast as lanes multiply
    their transforms."""
    saved, model = work / "chosen.sched", work / "conv.onnx"
    model.write_bytes(conv((1, 128, 28, 28), 128, dtype=models.TensorProto.BFLOAT16))
    for target, fewer in (("c:x86-64-v4", True), ("c:sapphirerapids", False)):
        call(
            ingot,
            "compile",
            model,
            "-o",
            work / "c",
            "--save-sched",
            saved,
            "--target",
            target,
            *TIME,
        )
        if (" as winograd" in saved.read_text()) != fewer or (
            "TC amx.bf16" in saved.read_text()
        ) == fewer:
            raise Wrong(f"{target}: {saved.read_text()}")
    print("2 targets")


def inside(shape):
    """Between convolutions of 1x1."""
    g, (n, c, h, w) = models.Graph(3), shape
    y = g.op("Relu", g.op("Conv", g.input("x", models.F, n, 4, h, w), g.weight(c, 4, 1, 1)))
    y = g.op(
        "Relu", g.op("Add", g.op("Conv", y, g.weight(c, c, 3, 3), g.weight(c), pads=[1] * 4), y)
    )
    g.output("y", g.op("Conv", y, g.weight(4, c, 1, 1)), models.F, n, 4, h, w)
    return g.bytes()


def block(c, h, w):
    """Two convolutions and what goes around them."""
    g = models.Graph(3)
    conv = lambda x: g.op("Conv", x, g.weight(c, c, 3, 3), g.weight(c), pads=[1] * 4)
    x = g.op("Relu", g.input("x", models.F, 1, c, h, w))
    g.output("y", g.op("Relu", g.op("Add", conv(g.op("Relu", conv(x))), x)), models.F, 1, c, h, w)
    return g.bytes()


def normed(c, h, w):
    """What is normed by its mean and variance has to be there as a whole before."""
    g = models.Graph(3)
    conv = lambda x: g.op("Conv", x, g.weight(c, c, 3, 3), g.weight(c), pads=[1] * 4)
    norm = lambda x: g.op("Relu", g.op("InstanceNormalization", x, g.weight(c), g.weight(c)))
    g.output("y", norm(conv(norm(conv(g.input("x", models.F, 1, c, h, w))))), models.F, 1, c, h, w)
    return g.bytes()


def fused(ingot, work):
    model, saved = work / "block.onnx", work / "block.sched"
    model.write_bytes(block(64, 8, 8))
    call(ingot, "compile", model, "-o", work / "c", "--save-sched", saved, *TARGET, *TIME)
    if saved.read_text().count(" as winograd2") != 2:
        raise Wrong("not both convolutions are winograd2")
    lines = [
        line
        for line in saved.read_text().splitlines()
        if re.match("sched|target", line) or " as winograd2" in line
    ]
    saved.write_text("\n".join(lines) + "\n")
    call(ingot, "verify", model, *TARGET, *TIME, "--sched", saved, "--fuse", "all", "--interpret")
    steps = lambda how: len(
        json.loads(call(ingot, "inspect", model, *TARGET, *TIME, "--fuse", how, "--json"))["steps"]
    )
    if steps("all") > 2 or steps("auto") <= steps("all"):
        raise Wrong(f"--fuse all: {steps('all')} steps of two convolutions, auto: {steps('auto')}")


def strips(ingot, work):
    model, saved, again = work / "block.onnx", work / "block.sched", work / "again.sched"
    for net in (block(64, 56, 56), normed(64, 112, 112)):
        model.write_bytes(net)
        call(ingot, "compile", model, "-o", work / "c", "--save-sched", saved, *TARGET)
        call(
            ingot,
            "compile",
            model,
            "-o",
            work / "c",
            "--sched",
            saved,
            "--save-sched",
            again,
            *TARGET,
        )
        if saved.read_text().count(" as winograd2") != 2 or saved.read_text() != again.read_text():
            raise Wrong("what a file says again is not the same")
    # of the second: what lies whole is normed as a whole; the strips of each convolution are a loop
    names = [
        s["name"] for s in json.loads(call(ingot, "inspect", model, *TARGET, "--json"))["steps"]
    ]
    norms = sum("instancenormalization" in name for name in names)
    text, loops = (work / "c" / "model.c").read_text(), loops_of(ingot, model, *TARGET)
    if norms > 12 or loops != 2 or text.count("RUN(") > 16:
        raise Wrong(f"{norms} steps norm, {loops} loops, {text.count('RUN(')} steps are written")


def loops_of(ingot, model, *flags):
    return call(ingot, "inspect", model, *flags, "--dump", "plan").count("  loop trip ")


def weights(ingot, work):
    model = work / "conv.onnx"
    for shape, many in (((1, 64, 112, 112), True), ((1, 512, 28, 28), False)):
        model.write_bytes(inside(shape))
        n = loops_of(ingot, model, "--target", "c:x86-64-v4", *TIME)
        if n != many:
            raise Wrong(f"{shape}: {n} loops over strips")


def bytes_conv(x_type, shape, maps, zero, weights, between=False, **attributes):
    """Sums of i32; between: of what another one makes."""
    g = models.Graph(3)
    x = g.input("x", x_type, *shape)
    z = g.const(zero, np.int8 if x_type == models.TensorProto.INT8 else np.uint8)
    sums = g.op("ConvInteger", x, g.const(weights, np.int8), z, **attributes)
    if between:
        scale, one = g.const(0.01, np.float32), g.const(1, np.float32)
        floats = g.op("Mul", g.op("Cast", sums, to=models.F), scale)
        x = g.op("QuantizeLinear", floats, one, z)
        w = g.const(g.rng.integers(-127, 128, (maps, maps, 3, 3)), np.int8)
        sums = g.op("ConvInteger", x, w, z, pads=[1] * 4)
    g.output("y", sums, models.TensorProto.INT32, *[None] * len(shape))
    return g.bytes()


def sums_of(x, w, zero, pad, group):
    """In i64."""
    n, c, h, wd = x.shape
    x = np.pad(x.astype(np.int64) - zero, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    h, wd = h + 2 * pad - 2, wd + 2 * pad - 2
    parts = []
    for part in range(group):
        each = c // group
        inner = x[:, part * each : (part + 1) * each]
        outer = w[part * len(w) // group : (part + 1) * len(w) // group].astype(np.int64)
        parts.append(
            sum(
                np.einsum("nchw,mc->nmhw", inner[:, :, i : i + h, j : j + wd], outer[:, :, i, j])
                for i in range(3)
                for j in range(3)
            )
        )
    return np.concatenate(parts, 1)


# Zero points, borders, groups, ragged tiles; the largest numbers there are, in whatever order
INTEGERS = {
    "i8": dict(x_type=models.TensorProto.INT8, shape=(1, 16, 9, 14), maps=24, zero=-7),
    "u8": dict(x_type=models.TensorProto.UINT8, shape=(2, 8, 8, 8), maps=8, zero=131),
    "groups": dict(
        x_type=models.TensorProto.INT8, shape=(1, 32, 6, 5), maps=16, zero=-128, group=2
    ),
    "no border": dict(x_type=models.TensorProto.UINT8, shape=(1, 16, 10, 9), maps=8, zero=0, pad=0),
    "largest": dict(
        x_type=models.TensorProto.INT8, shape=(1, 64, 8, 8), maps=8, zero=0, weights=(-128, 127)
    ),
}


def integers(ingot, work):
    model, x, rng = work / "conv.onnx", work / "x.npy", np.random.default_rng(8)
    for name, form in INTEGERS.items():
        form = dict(form)
        pad, group, ends = form.pop("pad", 1), form.get("group", 1), form.pop("weights", None)
        of = (form["maps"], form["shape"][1] // group, 3, 3)
        w = rng.choice(ends, of) if ends else rng.integers(-127, 128, of)
        i8 = form["x_type"] == models.TensorProto.INT8
        low = -128 if i8 else 0
        data = rng.integers(low, low + 256, form["shape"])
        if ends:
            data = np.where(w[0, :, 1, 1] > 0, 127, -128)[None, :, None, None] + 0 * data
        np.save(x, data.astype(np.int8 if i8 else np.uint8))
        model.write_bytes(bytes_conv(**form, weights=w, pads=[pad] * 4))
        wanted = sums_of(data, w, form["zero"], pad, group)
        for kind in ("winograd4", "winograd2", "winograd2x1"):
            if kind != "winograd4" and name != "i8" and not os.environ.get("INGOT_ALL"):
                continue
            asked, n = asked_for(ingot, work, model, kind, TARGET)
            made = ("--sched", asked, *TARGET)
            call(ingot, "run", model, "--input", x, "--output-dir", work / kind, *made)
            got = np.load(next((work / kind).glob("output_0.npy")))
            if n != 1 or not (got == wanted).all():
                raise Wrong(f"{name} as {kind}, of {n}: {np.abs(got - wanted).max()} off")
            if name == "groups":
                call(ingot, "verify", model, "--interpret", *made)
                call(ingot, "verify", model, "--interpret", "--sched", asked, *VNNI)
    # what lies between is made in strips, or as a whole; and it is faster
    shape = (1, 64, 56, 56)
    w = rng.integers(-127, 128, (64, 64, 3, 3))
    model.write_bytes(
        bytes_conv(models.TensorProto.INT8, shape, 64, -128, w, between=True, pads=[1] * 4)
    )
    saved = work / "chosen.sched"
    # what pairs save where fours are twice as fast is less than the memory costs
    asks = ((TARGET, 2), (VNNI, 0), ((*VNNI, *TIME), 2), (("--target", "c:armv8-a"), 0))
    for target, many in asks:
        call(ingot, "compile", model, "-o", work / "c", "--save-sched", saved, *target)
        if saved.read_text().count(" as winograd4") != many:
            raise Wrong(f"{target}: {saved.read_text()}")
    call(ingot, "verify", model, *TARGET)
    # 4608 products of 128 and 127 are beyond 2^25, which tiles of 4 leave
    w = rng.choice((126, 127), (8, 512, 3, 3))
    model.write_bytes(bytes_conv(models.TensorProto.INT8, (1, 512, 6, 6), 8, 0, w, pads=[1] * 4))
    for kind, possible in (("winograd2", 1), ("winograd4", 0)):
        asked, _ = asked_for(ingot, work, model, kind, TARGET)
        call(ingot, "compile", model, "-o", work / "c", "--sched", asked, *TARGET)
        took = "_16x1x" in (work / "c" / "model_kernels_0.c").read_text()
        if took != bool(possible):
            raise Wrong(f"{kind} of sums beyond 2^25: {asked.read_text()}")
    print(f"{len(INTEGERS)} forms")


def left(ingot, work):
    for name, form in LEFT.items():
        model = work / "conv.onnx"
        model.write_bytes(conv(**form))
        _, n = asked_for(ingot, work, model, "winograd2", TARGET)
        if n:
            raise Wrong(f"{name}: it can be winograd2")
    print(f"{len(LEFT)} forms")


if __name__ == "__main__":
    sys.exit(
        main(
            __doc__,
            {
                "kernels": kernels,
                "error": error,
                "chosen": chosen,
                "units": units,
                "fused": fused,
                "strips": strips,
                "weights": weights,
                "bytes": integers,
                "left": left,
            },
        )
    )
