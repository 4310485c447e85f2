"""What tflite-micro takes and LiteRT does not: CHECKS, each a function (values, folder) that gives '' or what is wrong."""

import math
import subprocess

import numpy as np
from writer import Model

R = np.random.default_rng(17)
CHECKS = {}


def check(make):
    CHECKS[make.__name__] = make
    return make


def run(values, folder, model, *ins):
    """What ingot gives; a text is what went wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.tflite").write_bytes(model.bytes())
    for i, v in enumerate(ins):
        v.tofile(folder / f"in_{i}")
    line = subprocess.run([values, folder], capture_output=True, text=True).stdout.split()[1:]
    return np.fromfile(folder / "out_0", np.int8) if line[:1] == ["0"] else f"status {line}"


def told(got, want):
    if isinstance(got, str):
        return got
    return "" if np.array_equal(got, want.reshape(-1)) else f"{got}, not {want.reshape(-1)}"


def rescaled(x, real):
    """x real, by a multiplier of 31 bits and a shift, each rounded, halves away from zero in the shift."""
    part, shift = math.frexp(real)
    q = round(part * 2**31)
    high = (x.astype(np.int64) * (1 << max(shift, 0)) * q + (1 << 30)) >> 31
    down = max(-shift, 0)
    return (high + (1 << down >> 1) - (high < 0)) >> down if down else high


@check
def svdf_of_bytes(values, folder):
    """The state and the weights of time are bytes."""
    b, i, units, rank, times = 2, 5, 4, 2, 3
    u = units * rank
    x = R.integers(-128, 128, (b, i)).astype(np.int8)
    feature = R.integers(-127, 128, (u, i)).astype(np.int8)
    time = R.integers(-127, 128, (u, times)).astype(np.int8)
    add = R.integers(-900, 900, units).astype(np.int32)
    m = Model()
    ins = [
        m.input("x", (b, i), "int8", scale=0.02, zero=5),
        m.constant(feature, scale=0.006),
        m.constant(time, scale=0.007),
        m.constant(add, scale=1e-4),
        m.tensor((b, u * times), "int8", scale=0.03, zero=-3, variable=True),
    ]
    y = m.tensor((b, units), "int8", scale=0.009, zero=-5)
    m.output(m.op("SVDF", ins, [y], 3, SVDFOptions=dict(rank=rank, fusedActivationFunction=1)))
    f = np.float32
    one, two = float(f(0.02) * f(0.006) / f(0.03)), float(f(0.03) * f(0.007) / f(0.009))
    last = rescaled((x.astype(np.int32) - 5) @ feature.T.astype(np.int32), one)
    last = (np.clip(last, -128, 127) - 3).astype(np.int8).astype(np.int32) + 3
    sums = (last * time[:, -1]).reshape(b, units, rank).sum(2) + add
    want = np.clip(rescaled(sums, two) - 5, -128, 127).astype(np.int8)
    return told(run(values, folder, m, x), want)


def convolution(axis):
    m = Model()
    r = np.random.default_rng(18)
    scale = r.uniform(0.005, 0.03, 6).astype(np.float32)
    w = r.integers(-127, 128, (6, 3, 3, 4)).astype(np.int8)
    ins = [
        m.input("x", (1, 5, 5, 4), "int8", scale=0.04, zero=3),
        m.constant(w, scale=scale),
        m.constant(
            r.integers(-900, 900, 6).astype(np.int32), scale=scale * np.float32(0.04), axis=axis
        ),
    ]
    y = m.tensor((1, 5, 5, 6), "int8", scale=0.1, zero=-4)
    m.output(m.op("CONV_2D", ins, [y], 3, Conv2DOptions=dict(strideH=1, strideW=1)))
    return m


@check
def bias_of_older_converters(values, folder):
    """Its scales have the axis of the weights', which it has not."""
    x = R.integers(-128, 128, (1, 5, 5, 4)).astype(np.int8)
    want = run(values, folder / "axis_0", convolution(0), x)
    return want if isinstance(want, str) else told(run(values, folder, convolution(3), x), want)
