"""GGUF files for tests: a writer, blocks of every type of weights with random digits, and what they stand for.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; blocks: ggml-common.h there."""

import struct

import numpy as np

U32, I32, F32, BOOL, TEXT, ARRAY = 4, 5, 6, 7, 8, 9
# name: number in files, elements of a block, bytes of a block
TYPES = {
    "F32": (0, 1, 4),
    "F16": (1, 1, 2),
    "Q4_0": (2, 32, 18),
    "Q4_1": (3, 32, 20),
    "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24),
    "Q8_0": (8, 32, 34),
    "Q2_K": (10, 256, 84),
    "Q3_K": (11, 256, 110),
    "Q4_K": (12, 256, 144),
    "Q5_K": (13, 256, 176),
    "Q6_K": (14, 256, 210),
    "IQ4_NL": (20, 32, 18),
    "IQ4_XS": (23, 256, 136),
    "MXFP4": (39, 32, 17),
    "BF16": (30, 1, 2),
}

LISTED = ("IQ4_NL", "IQ4_XS", "MXFP4")  # digits stand for numbers of a list
DENSE = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]
FP4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]


def text(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(b)) + b


def value(v):
    """Type and bytes; a tuple says both."""
    if isinstance(v, bool):
        return BOOL, struct.pack("<B", v)
    if isinstance(v, int):
        return U32, struct.pack("<I", v)
    if isinstance(v, float):
        return F32, struct.pack("<f", v)
    if isinstance(v, (str, bytes)):
        return TEXT, text(v)
    parts = [value(x) for x in v]
    return ARRAY, struct.pack("<IQ", parts[0][0], len(parts)) + b"".join(b for _, b in parts)


def write(path, keys, tensors):
    """tensors: name -> (type, shape outermost first, bytes)."""
    out = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys))
    for k, v in keys.items():
        kind, data = value(v)
        out += text(k) + struct.pack("<I", kind) + data
    data = b""
    for name, (kind, shape, body) in tensors.items():
        data += bytes(-len(data) % 32)
        dims = shape[::-1]
        out += text(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
        out += struct.pack("<IQ", TYPES[kind][0], len(data))
        data += body
    path.write_bytes(out + bytes(-len(out) % 32) + data)


def halves(b, at, n=1):
    return np.ascontiguousarray(b[:, at : at + 2 * n]).view(np.float16).astype(np.float64)


def nibbles(q):
    """Low digits, then high ones."""
    return np.concatenate([q & 15, q >> 4], -1)


def bits(q, n):
    """[.., bytes] -> [.., bytes * 8 / n], lowest first in each byte"""
    return np.stack([q >> i & ((1 << n) - 1) for i in range(0, 8, n)], -1).reshape(
        *q.shape[:-1], -1
    )


def k_scales(s):
    low, high = s[:, :4], s[:, 4:8]
    scale = np.concatenate([low & 63, (s[:, 8:] & 15) | (low >> 6 << 4)], 1)
    return scale, np.concatenate([high & 63, (s[:, 8:] >> 4) | (high >> 6 << 4)], 1)


def q3_scales(s):
    low = np.concatenate([s[:, :8] & 15, s[:, :8] >> 4], 1)
    high = np.concatenate([s[:, 8:] >> 2 * i & 3 for i in range(4)], 1)
    return (low | high << 4).astype(int) - 32


def dequantised(kind, body, rows, columns):
    """f64 [rows, columns], a type at a time and as its definition says."""
    if kind in ("F32", "F16"):
        return (
            np.frombuffer(body, np.float32 if kind == "F32" else np.float16)
            .reshape(rows, columns)
            .astype(float)
        )
    if kind == "BF16":
        u = np.frombuffer(body, np.uint16).astype(np.uint32) << 16
        return u.view(np.float32).reshape(rows, columns).astype(float)
    b = np.frombuffer(body, np.uint8).reshape(-1, TYPES[kind][2])
    n, d = len(b), halves(b, 0)
    if kind == "Q4_0":
        w = d * (nibbles(b[:, 2:]).astype(int) - 8)
    elif kind == "Q4_1":
        w = d * nibbles(b[:, 4:]) + halves(b, 2)
    elif kind == "Q5_0":
        w = d * ((nibbles(b[:, 6:]) | bits(b[:, 2:6], 1) << 4).astype(int) - 16)
    elif kind == "Q5_1":
        w = d * (nibbles(b[:, 8:]) | bits(b[:, 4:8], 1) << 4) + halves(b, 2)
    elif kind == "Q8_0":
        w = d * b[:, 2:].view(np.int8)
    elif kind == "IQ4_NL":
        w = d * np.array(DENSE)[nibbles(b[:, 2:])]
    elif kind == "MXFP4":
        w = 2.0 ** (b[:, :1].astype(int) - 127) * np.array(FP4)[nibbles(b[:, 1:])]
    elif kind == "IQ4_XS":
        high = b[:, 2:4].copy().view(np.uint16) >> 2 * np.arange(8, dtype=np.uint16) & 3
        scale = np.stack([b[:, 4:8] & 15, b[:, 4:8] >> 4], -1).reshape(n, 8) | high << 4
        digits = nibbles(b[:, 8:].reshape(n, 8, 16))
        w = (d * (scale.astype(int) - 32))[:, :, None] * np.array(DENSE)[digits]
    elif kind in ("Q4_K", "Q5_K"):
        scale, low = k_scales(b[:, 4:16])
        q = b[:, 16 if kind == "Q4_K" else 48 :].reshape(n, 4, 32)
        q = np.stack([q & 15, q >> 4], 2).reshape(n, 8, 32)
        if kind == "Q5_K":
            q = q | np.stack([b[:, 16:48] >> i & 1 for i in range(8)], 1) << 4
        w = (d * scale)[:, :, None] * q - (halves(b, 2) * low)[:, :, None]
    elif kind == "Q6_K":
        low, high = b[:, :128].reshape(n, 2, 2, 32), b[:, 128:192].reshape(n, 2, 32)
        q = np.stack(
            [low[:, :, 0] & 15, low[:, :, 1] & 15, low[:, :, 0] >> 4, low[:, :, 1] >> 4], 2
        )
        q = q | np.stack([high >> 2 * i & 3 for i in range(4)], 2) << 4
        scale = halves(b, 208) * b[:, 192:208].view(np.int8)
        w = scale[:, :, None] * (q.reshape(n, 16, 16).astype(int) - 32)
    else:
        at = {"Q2_K": 16, "Q3_K": 32}[kind]
        q = b[:, at : at + 64].reshape(n, 2, 32)
        q = np.stack([q >> 2 * i & 3 for i in range(4)], 2)
        if kind == "Q2_K":
            w = (halves(b, 80) * (b[:, :16] & 15))[:, :, None] * q.reshape(n, 16, 16)
            w = w - (halves(b, 82) * (b[:, :16] >> 4))[:, :, None]
        else:
            top = np.stack([b[:, :32] >> i & 1 for i in range(8)], 1).reshape(n, 2, 4, 32)
            scale = halves(b, 108) * q3_scales(b[:, 96:108])
            w = scale[:, :, None] * ((q | top << 2).reshape(n, 16, 16).astype(int) - 4)
    return w.reshape(rows, columns)


def random_weights(rng, kind, rows, columns, size):
    """Bytes of rows of blocks whose elements are about as large as size."""
    if kind in ("F32", "F16", "BF16"):
        x = (rng.standard_normal((rows, columns)) * size).astype(np.float32)
        if kind == "BF16":
            return (x.view(np.uint32) >> 16).astype(np.uint16).tobytes()
        return x.astype(np.float32 if kind == "F32" else np.float16).tobytes()
    block, nbytes = TYPES[kind][1:]
    n = rows * columns // block
    b = rng.integers(0, 256, (n, nbytes), np.uint8)
    largest = {"Q8_0": 128, "Q2_K": 24, "Q3_K": 64, "Q4_K": 500, "Q5_K": 1000, "Q6_K": 2000}
    largest |= {"IQ4_NL": 100, "IQ4_XS": 1500}
    if kind == "MXFP4":
        b[:, 0] = 127 + np.frexp(size / 4)[1] - rng.integers(0, 2, n)
        return b.tobytes()

    def scale(at, low):
        h = rng.uniform(0.5, 1, (n, 1)) * (-1.0 if low else 1.0) * size / largest.get(kind, 8)
        b[:, at : at + 2] = h.astype(np.float16).view(np.uint8)

    scale({"Q2_K": 80, "Q3_K": 108, "Q6_K": 208}.get(kind, 0), False)
    if kind in ("Q4_1", "Q5_1"):
        scale(2, True)
    if kind in ("Q4_K", "Q5_K", "Q2_K"):
        scale(82 if kind == "Q2_K" else 2, False)
    return b.tobytes()
