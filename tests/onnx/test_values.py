#!/usr/bin/env python3
"""The judge judged: what compare() must accept and reject, of drawn numbers too, that .npy keeps
every value, and whom limits of time end."""

import pathlib
import tempfile
import unittest
import unittest.mock

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

import drawn
import process
import values

f32, f16, bf16 = np.float32, np.float16, ml_dtypes.bfloat16


def strings(*items):
    a = np.empty(len(items), object)
    a[:] = [s.encode() for s in items]
    return a


class Compare(unittest.TestCase):
    def same(self, got, want, **how):
        values.compare(got, want, **how)

    def differ(self, got, want, **how):
        with self.assertRaises(values.Mismatch):
            values.compare(got, want, **how)

    def test_float(self):
        one = np.ones(3, f32)
        self.same(one * f32(1.0009), one)
        self.differ(one * f32(1.0011), one)
        self.same(one * np.nan, one * np.nan)
        self.differ(one * np.nan, one)
        self.differ(one, one * np.nan)
        self.same(one * np.inf, one * np.inf)
        self.differ(one * -np.inf, one * np.inf)
        self.differ(one * f32(3.4e38), one * np.inf)

    def test_shape_and_type(self):
        self.differ(np.ones((3, 1), f32), np.ones(3, f32))
        self.differ(np.ones((), f32), np.ones(1, f32))
        self.differ(np.ones(3), np.ones(3, f32))
        self.differ(np.ones(3, np.int32), np.ones(3, np.int64))
        self.same(np.ones((0, 2), f32), np.ones((0, 2), f32))

    def test_integers_are_exact(self):
        big = np.array([2**62 + 1])
        self.differ(big - 1, big)
        self.same(big, big)
        self.differ(np.array([True]), np.array([False]))
        for t in (np.int8, np.uint8, ml_dtypes.int4, ml_dtypes.uint4):
            self.same(np.array([1, 2], t), np.array([1, 2], t))
            self.differ(np.array([1, 3], t), np.array([1, 2], t))

    def test_units_of_narrow_types(self):
        for t, units in (
            (f16, 2),
            (bf16, 2),
            (ml_dtypes.float8_e5m2, 1),
            (ml_dtypes.float8_e4m3fn, 1),
        ):
            want = np.array([1.0, -2.0, 0.0], t)
            bits = want.view(f"u{want.dtype.itemsize}")
            self.same((bits + np.array(units, bits.dtype)).view(t), want)
            if t is not f16:
                self.differ((bits + np.array(units + 1, bits.dtype)).view(t), want)
        self.same(np.array([-0.0], f16), np.array([0.0], f16))
        self.differ(np.array([np.inf], f16), np.array([65504], f16))
        self.differ(np.array([6], ml_dtypes.float4_e2m1fn), np.array([4], ml_dtypes.float4_e2m1fn))

    def test_share_of_range(self):
        want = np.array([0, 100], f32)
        self.same(want + f32(0.004), want, of_range=5e-5)
        self.differ(want + f32(0.006), want, of_range=5e-5)

    def test_strings_sequences_optionals(self):
        self.same(strings("a", "bc"), strings("a", "bc"))
        self.differ(strings("a", "b"), strings("a", "bc"))
        one = np.ones(1, f32)
        self.same([one, one], [one, one])
        self.differ([one], [one, one])
        self.differ(one, [one])
        self.differ([one], one)
        self.same(None, None)
        self.differ(one, None)
        self.differ(None, one)


class Npy(unittest.TestCase):
    def test_round_trip(self):
        names = [
            "bfloat16",
            "float8_e4m3fn",
            "float8_e5m2",
            "float8_e8m0fnu",
            "float4_e2m1fn",
            "int4",
            "uint4",
            "int2",
        ]
        cases = [np.array([[1, -1]]).astype(getattr(ml_dtypes, n)) for n in names]
        cases += [np.arange(6, dtype=t).reshape(2, 3) for t in ("f4", "f8", "f2", "i1", "u8", "c8")]
        cases += [
            np.array(True),
            np.zeros((0, 3), f32),
            np.asfortranarray(np.arange(6.0).reshape(2, 3)),
            strings("", "zwölf"),
            strings(""),
            strings().reshape(0),
            strings("x").reshape(()),
            [],
            [np.ones(2), np.zeros(1)],
            None,
        ]
        with tempfile.TemporaryDirectory() as d:
            for i, v in enumerate(cases):
                path = pathlib.Path(d) / str(i)
                values.save_npy(path, v)
                values.compare(values.load_npy(path, v), v, rtol=0, atol=0)


class Draws(unittest.TestCase):
    """One node, y = op(...), and w = Neg(x) beside it, which is exact."""

    def model(self, op, inputs, outputs="y", **attributes):
        nodes = [
            helper.make_node(op, inputs.split(), outputs.split(), **attributes),
            helper.make_node("Neg", ["x"], ["w"]),
            helper.make_node("Identity", ["y"], ["v"]),
        ]
        graph = helper.make_graph(
            nodes, "g", [], [onnx.ValueInfoProto(name=n) for n in outputs.split() + ["w", "v"]]
        )
        return helper.make_model(graph)

    def judge(self, good, op, inputs, known, y, want, name="y", results=None, **attributes):
        model = self.model(op, inputs, "y z" if op == "Dropout" else "y", **attributes)
        judge = drawn.Drawn(model, known)
        if good:
            judge.compare(name, y, want, results or {})
        else:
            with self.assertRaises(values.Mismatch):
                judge.compare(name, y, want, results or {})

    def test_bernoulli(self):
        r = np.random.default_rng(1)
        p = np.full(1000, 0.3, f32)
        y, want = ((r.random(1000) < 0.3).astype(f32) for _ in range(2))
        self.judge(True, "Bernoulli", "x", {"x": p}, y, want)
        self.judge(True, "Bernoulli", "x", {}, y, want)
        self.judge(True, "Bernoulli", "x", {"x": p}, y, want, "v")
        for name in "yv":
            self.judge(False, "Bernoulli", "x", {"x": p}, 1 - y, want, name)
            self.judge(False, "Bernoulli", "x", {"x": p}, 2 * y, want, name)
            self.judge(False, "Bernoulli", "x", {"x": p}, y[1:], want, name)
            self.judge(False, "Bernoulli", "x", {"x": p}, y.astype(np.float64), want, name)
        self.judge(
            False,
            "Bernoulli",
            "x",
            {"x": np.zeros(3, f32)},
            np.array([0, 0, 1], f32),
            np.zeros(3, f32),
        )
        self.judge(False, "Bernoulli", "x", {"x": p}, p, -p, "w")  # nothing drawn: exact

    def test_numbers(self):
        r = np.random.default_rng(1)
        x = np.zeros(1000, f32)
        u, n = r.uniform(2, 6, 1000).astype(f32), r.normal(1, 2, 1000).astype(f32)
        told = {
            "RandomUniformLike": (u, {"low": 2.0, "high": 6.0}),
            "RandomNormalLike": (n, {"mean": 1.0, "scale": 2.0}),
        }
        for op, (y, attributes) in told.items():
            self.judge(True, op, "x", {"x": x}, y, y[::-1].copy(), **attributes)
            centre = f32(4 if op == "RandomUniformLike" else 1)
            for wrong in (y + f32(1), (y - centre) * f32(0.5) + centre, y * 0 + centre):
                self.judge(False, op, "x", {"x": x}, wrong, y, **attributes)
        self.judge(
            False,
            "RandomUniformLike",
            "x",
            {"x": x[:3]},
            f32([2, 3, 7]),
            f32([2, 3, 4]),
            low=2.0,
            high=6.0,
        )

    def test_multinomial(self):
        x = np.log(np.array([[0.2, 0.8]], f32))
        y = (np.random.default_rng(1).random((1, 500)) < 0.8).astype(np.int32)
        self.judge(True, "Multinomial", "x", {"x": x}, y, y, sample_size=500)
        self.judge(False, "Multinomial", "x", {"x": x}, 1 - y, y, sample_size=500)
        self.judge(False, "Multinomial", "x", {"x": x}, y + 1, y, sample_size=500)

    def test_dropout(self):
        r = np.random.default_rng(1)
        x, keep = r.normal(0, 1, 400).astype(f32), r.random(400) < 0.25
        y = np.where(keep, x * 4, 0).astype(f32)
        known = {"x": x, "r": np.array(0.75, f32), "t": np.array(True)}
        self.judge(True, "Dropout", "x r t", known, y, y[::-1].copy())
        self.judge(True, "Dropout", "x r t", known, keep, ~keep, "z", {"y": y})
        self.judge(False, "Dropout", "x r t", known, ~keep, keep, "z", {"y": y})
        for wrong in (y / 2, x * 4, np.zeros(400, f32)):
            self.judge(False, "Dropout", "x r t", known, wrong, y)
        for other in ({"r": np.array(0, f32)}, {"t": np.array(False)}):  # nothing drawn: exact
            self.judge(True, "Dropout", "x r t", {**known, **other}, x, x)
            self.judge(False, "Dropout", "x r t", {**known, **other}, y, x)
            self.judge(False, "Dropout", "x r t", {**known, **other}, y, x, "v")


class Processes(unittest.TestCase):
    """A limit is of time that a process has a core: what hangs is ended by it, what waits for
    others is not."""

    def test_hangs(self):
        done = process.call(["sh", "-c", "while :; do :; done"], 1)
        self.assertTrue(done.timed_out and process.crashed(done) is None)

    def test_waits(self):
        done = process.call(["sh", "-c", "sleep 1.5; echo done; exit 3"], 1)
        self.assertEqual((done.timed_out, done.rc, done.out), (False, 3, "done\n"))

    def test_waits_for_ever(self):
        with unittest.mock.patch.object(process, "WAITS", 0.5):
            self.assertTrue(process.call(["sleep", "100"], 1).timed_out)


if __name__ == "__main__":
    unittest.main()
