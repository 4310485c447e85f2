#!/usr/bin/env python3
"""Models of integers (QDQ) that `ingot compile --train --quantised` makes learn as numpy does.

    quantised.py --ingot build/ingot

Activations and weights are rounded to integers in each run; gradients pass as if they were not. Then `ingot merge`
rounds what was trained into the model's integers.

Exit status 77, skipped: there is no numpy or no onnx.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import training  # noqa: I001  it skips where something is missing

import ingot
import numpy as np
import onnx
import tape
from onnx import numpy_helper
from tape import Var

STEPS = 20
RANGE = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 1)}


def along(scale, rank, axis):
    """A vector in a shape that broadcasts."""
    return scale.reshape([-1 if a == axis else 1 for a in range(rank)]) if scale.ndim else scale


class Qdq(training.Net):
    """With nodes that quantise, and weights that are integers in the file."""

    def __init__(self, seed):
        super().__init__(seed)
        self.stand_for, self.how, self.constants = {}, {}, set()

    def numbers(self, name, scale, zero):
        self.weights.update({f"{name}.scale": np.float32(scale), f"{name}.zero": zero})
        self.constants.add(f"{name}.scale")
        return [f"{name}.scale", f"{name}.zero"]

    def rounded(self, x, scale, zero):
        """An activation of uint8."""
        numbers = self.numbers(x, scale, np.uint8(zero))
        q = self.node("QuantizeLinear", [x, *numbers], f"{x}.q")
        return self.node("DequantizeLinear", [q, *numbers], f"{x}.d")

    def integers(self, name, shape, scale, kind, axis=0):
        """Random integers; two are the ends of their range."""
        lo, hi = RANGE[kind] if kind != "int32" else (-300, 300)
        q = self.random.integers(lo, hi + 1, shape).astype(kind)
        q.flat[:2] = lo, hi
        zero = np.full(np.shape(scale), 117 if kind == "uint8" else 0, kind)
        scale = np.asarray(scale, np.float32)
        self.weights[name] = q
        self.how[name] = (along(scale, q.ndim, axis), along(zero, q.ndim, axis), *RANGE[kind])
        whole, zero_at = q.astype(np.float32), self.how[name][1].astype(np.float32)
        self.stand_for[name] = ((whole - zero_at) * self.how[name][0]).astype(np.float32)
        numbers = self.numbers(name, scale, zero)
        return self.node("DequantizeLinear", [name, *numbers], f"{name}.d", axis=axis)

    def read(self, w, name):
        """The weight as nodes read it."""
        scale, zero, lo, hi = self.how[name]
        return tape.fake_quantised(w[name], scale.astype(np.float64), zero.astype(int), lo, hi)


def network(path, batch=6):
    """A convolution with a scale for each channel, a product by uint8 with one, biases of int32."""
    net = Qdq(21)
    per = net.random.uniform(0.002, 0.004, 8)
    x = net.node("Conv", [net.rounded("x", 0.03, 128), net.integers("c.weight", (8, 3, 3, 3), per, "int8"),
                          net.integers("c.bias", (8,), per * 0.03, "int32")], "c", pads=[1] * 4,
                 strides=[2, 2])  # fmt: skip
    r = net.node("Relu", [x], "r")
    x = net.node("GlobalAveragePool", [net.rounded("r", 0.01, 0)], "p")
    x = net.node("Flatten", [x], "f")
    net.node("Gemm", [net.rounded("f", 0.004, 3), net.integers("w", (8, 5), 0.01, "uint8"),
                      net.weight("b", 5)], "y")  # fmt: skip
    net.save(path, [("x", training.FLOAT, [batch, 3, 8, 8])], [("y", training.FLOAT, [batch, 5])])

    def forward(w, x):
        x = tape.fake_quantised(Var(x), 0.03, 128, 0, 255)
        x = tape.conv(x, net.read(w, "c.weight"), 2, 1) + net.read(w, "c.bias").reshape(-1, 1, 1)
        x = tape.fake_quantised(tape.relu(x), 0.01, 0, 0, 255).mean((2, 3))
        return tape.fake_quantised(x, 0.004, 3, 0, 255) @ net.read(w, "w") + w["b"]

    return net, forward, lambda random: random.standard_normal((batch, 3, 8, 8)).astype(np.float32)


def target(random):
    return random.integers(0, 5, 6)


def case_beside():
    """Each step from where the last one led. A number that rounding moves to the next integer is seldom; then the
    step is another one."""
    rate, same = 0.05, 0
    with tempfile.TemporaryDirectory() as at:
        path = pathlib.Path(at) / "net.onnx"
        net, forward, draw = network(path)
        m = ingot.train(path, cflags="-O0", loss="cross_entropy:y", optimizer="sgd", quantised=True)
        for name, a in net.stand_for.items():
            training.near("beside", name, m.states[name], a, 1e-6)
        random = np.random.default_rng(2)
        for _ in range(STEPS):
            x, t = draw(random), target(random)
            w = {n: Var(a.astype(np.float64)) for n, a in m.states.items() if n != "train.step"}
            wanted = tape.cross_entropy(forward(w, x), t)
            wanted.backward()
            y = m(x)
            got = m.step(x, t, rate)
            try:
                training.near("beside", "loss", got, wanted.value, 1e-5)
                training.near("beside", "run()", y, forward(w, x).value, 1e-5)
                for name, a in w.items():
                    training.near("beside", name, (a.value - m.states[name]) / rate, a.grad, 1e-4)
                same += 1
            except AssertionError as e:
                told = e
    assert same >= STEPS - 4, f"{STEPS - same} of {STEPS} steps are others: {told}"


def case_part():
    """The last layer alone; the plan beside the interpreter's."""
    with tempfile.TemporaryDirectory() as at:
        path = pathlib.Path(at) / "net.onnx"
        network(path)
        options = {"loss": "cross_entropy:y", "optimizer": "sgd", "quantised": True}
        m = ingot.train(path, cflags="-O0", trainable="w", **options)
        assert list(m.states) == ["w", "train.step"], f"part: {list(m.states)}"
        training.verify("part", path, target="c", **options)
        plain = ingot.train(
            path, cflags="-O0", trainable="b", loss="cross_entropy:y", optimizer="sgd"
        )
        assert list(plain.states) == ["b", "train.step"], f"part: {list(plain.states)}"


def case_merge():
    with tempfile.TemporaryDirectory() as at:
        at = pathlib.Path(at)
        net, _, draw = network(at / "net.onnx")
        m = ingot.train(
            at / "net.onnx", cflags="-O0", loss="cross_entropy:y", optimizer="adamw", quantised=True
        )
        random = np.random.default_rng(3)
        losses = [m.step(draw(random), np.arange(6) % 5, 0.01).item() for _ in range(STEPS)]
        assert losses[-1] < losses[0], f"merge: {losses}"
        m.save(at / "states.safetensors")
        command = [os.environ["INGOT"], "merge", at / "net.onnx", at / "states.safetensors"]
        p = subprocess.run([*command, "-o", at / "merged.onnx"], capture_output=True, text=True)
        assert p.returncode == 0 and "4 of 10 weights" in p.stderr, f"merge: {p.stderr}"
        found = {
            t.name: numpy_helper.to_array(t)
            for t in onnx.load(at / "merged.onnx").graph.initializer
        }
        for name, (scale, zero, lo, hi) in net.how.items():
            q = np.round(m.states[name] / scale).astype(np.float64) + zero
            assert (found[name] == np.clip(q, lo, hi)).all(), f"merge: {name}"
            assert found[name].dtype == net.weights[name].dtype, f"merge: {name}"
            assert name == "c.bias" or (found[name] != net.weights[name]).any(), f"merge: {name}"
        x = draw(random)
        y = ingot.load(at / "merged.onnx", cflags="-O0")(x)
        training.near("merge", "the merged model", y, m(x), 1e-6)


def case_apart():
    """Integers that two nodes read as the same numbers, or along other axes or in other blocks."""
    rows, blocks = np.linspace(0.002, 0.004, 4), np.linspace(0.002, 0.004, 8).reshape(2, 4)
    for scales, first, other, same in (
        (rows, {"axis": 0}, {"axis": -2}, True),
        (rows, {"axis": 0}, {"axis": 1}, False),
        (blocks, {"axis": 0, "block_size": 2}, {"axis": -2, "block_size": 2}, True),
        (blocks, {"axis": 0, "block_size": 2}, {"axis": 0, "block_size": 3}, False),
    ):
        net = Qdq(4)
        q = net.random.integers(-128, 128, (4, 4)).astype("int8")
        net.weights.update(
            w=q, scale=scales.astype(np.float32), zero=np.zeros(scales.shape, "int8")
        )
        for x, y, how in (("x", "m", first), ("m", "y", other)):
            w = net.node("DequantizeLinear", ["w", "scale", "zero"], f"{y}.w", **how)
            net.node("MatMul", [x, w], y)
        with tempfile.TemporaryDirectory() as at:
            path, out = pathlib.Path(at) / "net.onnx", pathlib.Path(at) / "out"
            shape = (training.FLOAT, [2, 4])
            net.save(path, [("x", *shape)], [("y", *shape)], 21)
            command = [os.environ["INGOT"], "compile", path, "-o", out, "--train", "--quantised"]
            command += ["--loss", "mse:y", "--optimizer", "sgd"]
            p = subprocess.run(command, capture_output=True, text=True)
            told = "has another scale here than elsewhere" in p.stderr
            assert (p.returncode, told) == ((0, False) if same else (4, True)), f"apart: {p.stderr}"


CASES = {n[5:]: f for n, f in globals().items() if n.startswith("case_")}


if __name__ == "__main__":
    sys.exit(training.main("quantised", CASES))
