"""Values of the ONNX test data, between .pb, .npy and numpy, and how they are compared.

A value is a numpy array, a list of values (a sequence) or None (an absent optional).
Strings are object arrays of bytes.

    tensor      x.npy        types numpy lacks: raw V1 / V2, below 8 bits one element a byte
    sequence    x/0.npy ...  a folder
    absent      no file
"""

import pathlib

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

# Below 16 bits a tolerance of "two units" is most of the range: narrower types get fewer.
ULPS = {
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 0,
    "float4_e2m1fn": 0,
}
BITS = {"float4_e2m1fn": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


class Mismatch(Exception):
    """The two values differ; the text says where and by how much."""


# -- protobuf ---------------------------------------------------------------------------------


def _tensor(t):
    if t.data_type == onnx.TensorProto.STRING:
        a = np.empty(len(t.string_data), object)
        a[:] = list(t.string_data)
        return a.reshape(tuple(t.dims))
    return numpy_helper.to_array(t)


def _sequence(s):
    kinds = onnx.SequenceProto
    if s.elem_type == kinds.SEQUENCE:
        return [_sequence(v) for v in s.sequence_values]
    if s.elem_type == kinds.OPTIONAL:
        return [_optional(v) for v in s.optional_values]
    if s.elem_type == kinds.SPARSE_TENSOR or s.elem_type == kinds.MAP:
        raise ValueError("sequences of maps or sparse tensors are not understood")
    return [_tensor(v) for v in s.tensor_values]


def _optional(o):
    kinds = onnx.OptionalProto
    if o.elem_type == kinds.UNDEFINED:
        return None
    if o.elem_type == kinds.SEQUENCE:
        return _sequence(o.sequence_value) if o.HasField("sequence_value") else None
    if o.elem_type == kinds.OPTIONAL:
        return _optional(o.optional_value) if o.HasField("optional_value") else None
    if o.elem_type == kinds.TENSOR:
        return _tensor(o.tensor_value) if o.HasField("tensor_value") else None
    raise ValueError("optionals of maps or sparse tensors are not understood")


PROTO = {
    "tensor_type": (onnx.TensorProto, _tensor),
    "sequence_type": (onnx.SequenceProto, _sequence),
    "optional_type": (onnx.OptionalProto, _optional),
}


def load_pb(path, kind):
    """The value in a .pb file; kind is the declared TypeProto case, which the bytes do not tell."""
    if kind not in PROTO:
        raise ValueError(f"values of {kind} are not understood")
    message, convert = PROTO[kind]
    proto = message()
    proto.ParseFromString(pathlib.Path(path).read_bytes())
    return convert(proto)


# -- npy --------------------------------------------------------------------------------------


def _to_plain(a):
    if a.dtype == object:
        flat = [x if isinstance(x, bytes) else str(x).encode() for x in a.ravel()]
        return np.array(flat, f"S{max([len(x) for x in flat] + [1])}").reshape(a.shape)
    if a.dtype.type.__module__.startswith("ml_dtypes"):
        return np.frombuffer(a.tobytes(), f"V{a.dtype.itemsize}").reshape(a.shape)
    return a


def save_npy(path, value):
    """Writes PATH.npy, or the folder PATH for a sequence, or nothing for an absent optional."""
    path = pathlib.Path(path)
    if value is None:
        return
    if isinstance(value, list):
        path.mkdir()
        for i, v in enumerate(value):
            save_npy(path / str(i), v)
        return
    np.save(
        path.with_name(path.name + ".npy"),
        np.asarray(_to_plain(value), order="C"),
        allow_pickle=False,
    )


def load_npy(path, like):
    """The value at PATH (a file or a folder), read in the types of `like`."""
    path = pathlib.Path(path)
    if path.is_dir():
        items = sorted(path.iterdir(), key=lambda p: int(p.stem))
        kinds = like if isinstance(like, list) else []
        first = kinds[0] if kinds else None
        return [
            load_npy(p.with_suffix(""), kinds[i] if i < len(kinds) else first)
            for i, p in enumerate(items)
        ]
    file = path.with_name(path.name + ".npy")
    if not file.exists():
        return None
    a = np.load(file, allow_pickle=False)
    if a.dtype.kind == "S":
        out = np.empty(a.shape, object)
        out.ravel()[...] = list(a.ravel()) if a.size else []
        return out
    if a.dtype.kind == "V" and isinstance(like, np.ndarray):
        want = like.dtype
        if want.type.__module__.startswith("ml_dtypes") and want.itemsize == a.dtype.itemsize:
            raw = np.frombuffer(a.tobytes(), np.uint8)
            if want.name in BITS:
                raw = raw & ((1 << BITS[want.name]) - 1)
            return np.frombuffer(raw.tobytes(), want).reshape(a.shape)
    return a


# -- comparison -------------------------------------------------------------------------------


def _ordered(a):
    """Bit patterns as integers in the order of the values, neighbours one apart."""
    bits = BITS.get(a.dtype.name, a.dtype.itemsize * 8)
    u = np.frombuffer(a.tobytes(), {1: np.uint8, 2: np.uint16}[a.dtype.itemsize]).astype(np.int64)
    u &= (1 << bits) - 1
    if a.dtype.name == "float8_e8m0fnu":
        return u
    sign = 1 << (bits - 1)
    return np.where(u & sign, -(u & (sign - 1)), u)


def _worst(bad, got, want, what):
    n = int(bad.sum())
    i = int(np.flatnonzero(bad.ravel())[0])
    at = list(int(k) for k in np.unravel_index(i, bad.shape))
    return Mismatch(
        f"{n} of {bad.size} values differ, {what}first at {at}: "
        f"{got.ravel()[i]!s} for {want.ravel()[i]!s}"
    )


def _compare_array(got, want, rtol, atol, of_range):
    if not isinstance(got, np.ndarray):
        raise Mismatch("no tensor where one is expected")
    if got.dtype != want.dtype:
        raise Mismatch(f"dtype {got.dtype} for {want.dtype}")
    if got.shape != want.shape:
        raise Mismatch(f"shape {list(got.shape)} for {list(want.shape)}")
    if want.size == 0:
        return 0.0
    name = want.dtype.name
    if want.dtype.kind == "O":
        # S pads with zero bytes: a trailing one is no part of the string
        plain = [
            [(s if isinstance(s, bytes) else str(s).encode()).rstrip(b"\0") for s in a.ravel()]
            for a in (got, want)
        ]
        bad = np.array([g != w for g, w in zip(*plain)]).reshape(want.shape)
        if bad.any():
            raise _worst(bad, got, want, "")
        return 0.0
    got, want = np.atleast_1d(got), np.atleast_1d(want)
    if name not in ULPS and want.dtype.kind not in "fc":  # integers and bool: exact
        bad = got.astype(np.int64) != want.astype(np.int64) if name in BITS else got != want
        if bad.any():
            raise _worst(bad, got, want, "")
        return 0.0

    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        g, w = got.astype(wide), want.astype(wide)
        err = np.abs(g - w)
        finite = np.isfinite(g) & np.isfinite(w)
        same = (g == w) | (np.isnan(g) & np.isnan(w))
        if of_range is not None:
            seen = w[np.isfinite(w)]
            span = float(seen.max() - seen.min()) if seen.size else 0.0
            span = span or float(np.abs(seen).max(initial=0.0)) or 1.0
            close = err <= of_range * span
        else:
            close = err <= atol + rtol * np.abs(w)
        if name in ULPS:
            close = (np.abs(_ordered(got) - _ordered(want)).reshape(got.shape) <= ULPS[name]) | (
                close if want.dtype.itemsize > 1 else False
            )
        bad = ~(same | (finite & close))
    worst = float(err[finite].max(initial=0.0))
    if bad.any():
        scale = f", {worst / span:.3g} of the range" if of_range is not None else ""
        raise _worst(bad, got, want, f"largest error {worst:.3g}{scale}, ")
    return worst / span if of_range is not None else worst


def compare(got, want, rtol=1e-3, atol=1e-7, of_range=None):
    """Raises Mismatch, or returns the largest error (a share of the output's range with
    of_range)."""
    if want is None:
        if got is not None:
            raise Mismatch("a value where the optional is absent")
        return 0.0
    if isinstance(want, list):
        if not isinstance(got, list):
            raise Mismatch("no sequence where one is expected" if got is not None else "no output")
        if len(got) != len(want):
            raise Mismatch(f"a sequence of {len(got)} for {len(want)}")
        return max([compare(g, w, rtol, atol, of_range) for g, w in zip(got, want)] or [0.0])
    if got is None:
        raise Mismatch("no output")
    if isinstance(got, list):
        raise Mismatch("a sequence where a tensor is expected")
    return _compare_array(got, want, rtol, atol, of_range)
