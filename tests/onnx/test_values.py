#!/usr/bin/env python3
"""The judge judged: what compare() must accept and reject, and that .npy keeps every value."""
import pathlib
import tempfile
import unittest

import ml_dtypes
import numpy as np

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
        for t, units in ((f16, 2), (bf16, 2), (ml_dtypes.float8_e5m2, 1), (ml_dtypes.float8_e4m3fn, 1)):
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
    def test_random_masks(self):
        want = np.array([0, 2, 0, 6], np.float32)
        values.compare_drawn(np.array([1, 0, 0, 6], np.float32), want)
        values.compare_drawn(np.array([True, False]), np.array([False, False]))
        for got in (np.array([1, 0, 0, 7], np.float32), np.zeros(3, np.float32), np.zeros(4)):
            with self.assertRaises(values.Mismatch):
                values.compare_drawn(got, want)
        with self.assertRaises(values.Mismatch):
            values.compare_drawn(np.array([0, 2], np.float32), np.array([0, 1], np.float32))

    def test_round_trip(self):
        names = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2"]
        cases = [np.array([[1, -1]]).astype(getattr(ml_dtypes, n)) for n in names]
        cases += [np.arange(6, dtype=t).reshape(2, 3) for t in ("f4", "f8", "f2", "i1", "u8", "c8")]
        cases += [np.array(True), np.zeros((0, 3), f32), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
                  strings("", "zwölf"), strings(""), strings().reshape(0), strings("x").reshape(()),
                  [], [np.ones(2), np.zeros(1)], None]
        with tempfile.TemporaryDirectory() as d:
            for i, v in enumerate(cases):
                path = pathlib.Path(d) / str(i)
                values.save_npy(path, v)
                values.compare(values.load_npy(path, v), v, rtol=0, atol=0)


if __name__ == "__main__":
    unittest.main()
