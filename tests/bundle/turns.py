#!/usr/bin/env python3
"""Short sums of dots of bytes come in turn, on machines whose vectors are lines of the cache.

    turns.py --ingot build/ingot [CHECK...]

turns  results of eight sums are stored amid the terms of the next eight; the interpreter of
       statements agrees
"""

import sys

from run import Wrong, call, main, np, without_fault  # skips where there is no onnx
from onnx import TensorProto, helper
from units import model, quantized


def turns(ingot, work):
    """A sum of 16 dots of bytes, in a tile of more sums than registers hold."""
    rng = np.random.default_rng(5)
    turned = helper.make_node("Transpose", ["x"], ["xt"], perm=[0, 3, 1, 2])
    back = helper.make_node("Transpose", ["yt"], ["y"], perm=[0, 2, 3, 1])
    told = []
    for rows, wanted in ((16, "UPCAST i1 16"), (14, "UPCAST i0 2")):
        node, weights = quantized(rng, "QLinearConv", (32, 64, 1, 1), np.uint8(3))
        path = model(
            work / f"turns{rows}.onnx",
            TensorProto.UINT8,
            [1, rows, rows, 64],
            TensorProto.UINT8,
            [turned, node, back],
            [1, rows, rows, 32],
            weights,
        )
        bundle, sched, target = work / "turns", work / "opts.sched", "c:x86-64-v4+vnni"
        call(ingot, "compile", path, "-o", bundle, "--target", target, "--save-sched", sched)
        text = (bundle / "model_kernels_0.c").read_text()
        if wanted not in sched.read_text() or "r0_o = 4; r0_o < 8" not in text:
            raise Wrong(f"{path.stem}: no sums in turn: {sched.read_text()}")
        checked = without_fault(ingot, work, path, "--target", target)
        if "compared with the interpreter's: equal" not in checked:
            raise Wrong(checked)
        told.append(path.stem)
    print(", ".join(told))


if __name__ == "__main__":
    sys.exit(main(__doc__, {"turns": turns}))
