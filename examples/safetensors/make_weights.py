"""Writes weights for cnn.c, with numpy alone: make_weights.py FILE [f32|f16]

The format: 8 bytes of header length, a JSON header, the tensors' bytes."""

import json
import struct
import sys

import numpy as np

SHAPES = {
    "conv1.weight": (8, 3, 3, 3),
    "conv1.bias": (8,),
    "conv2.weight": (16, 8, 3, 3),
    "conv2.bias": (16,),
    "fc.weight": (10, 16),
    "fc.bias": (10,),
}


def main():
    half = sys.argv[2:] == ["f16"]
    rng = np.random.default_rng(0)
    header, data = {"__metadata__": {"format": "numpy"}}, b""
    for name, shape in SHAPES.items():
        w = rng.standard_normal(shape) / max(1, np.prod(shape[1:])) ** 0.5
        raw = w.astype(np.float16 if half else np.float32).tobytes()
        header[name] = {
            "dtype": "F16" if half else "F32",
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(sys.argv[1], "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


main()
