"""A float network as int8, its answers beside those of the original: docs/quantising.md."""

import pathlib
import subprocess
import sys

import ingot
import numpy as np

try:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
except ImportError:
    print("ONNX Runtime is not installed")
    sys.exit(77)

MODEL = "examples/digits/digits.onnx"
lines = pathlib.Path("examples/digits/samples.txt").read_text().splitlines()
words = " ".join(line for line in lines if not line.startswith("#")).split()
images = np.array(words, np.float32).reshape(-1, 65)[:, 1:].reshape(-1, 1, 1, 8, 8)


class Samples(CalibrationDataReader):
    def __init__(self):
        self.left = iter(images)

    def get_next(self):
        image = next(self.left, None)
        return None if image is None else {"image": image}


quantize_static(MODEL, "int8.onnx", Samples(), quant_format=QuantFormat.QDQ, per_channel=True)
exact, small = ingot.load(MODEL), ingot.load("int8.onnx")
alike = sum(int(exact(x).argmax() == small(x).argmax()) for x in images)
print(f"{alike} of {len(images)} read alike")
assert alike >= len(images) - 1
subprocess.run(["ingot", "verify", "int8.onnx"], check=True)
