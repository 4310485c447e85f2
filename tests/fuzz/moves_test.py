#!/usr/bin/env python3
"""What sized_moves.py says of small graphs: what rounding may turn into another result, and what it
may not; and sized_exact.py of nodes whose functions round. Nine of ten outputs of drawn graphs that
are off by 3e-4 of their range are seen."""

import sys

import numpy as np
from onnx import TensorProto as T
from onnx import helper
from sized import Model
from sized_exact import exact_outputs
from sized_graphs import draw, unstable
from sized_ops import softmax

F = np.float32


def near(x):
    """Sums that differ by their order."""
    return F(x * (1 + 2.0**-24))


def graph(x, *steps):
    """A chain of (op, function, attributes, constant operands) of x."""
    nodes, functions, weights, last = [], [], {}, "x"
    for i, (op, function, attributes, *constants) in enumerate(steps):
        names = [f"w{i}{j}" for j in range(len(constants))]
        weights.update(zip(names, constants))
        nodes.append(helper.make_node(op, [last, *names], [f"t{i}"], f"n{i}", **attributes))
        functions.append(function)
        last = f"t{i}"
    return Model(
        nodes, functions, {"x": [F(x)]}, {"x": list(np.shape(x))}, weights, [last], {}, [{}]
    )


def boolean(a):
    return a.astype(bool)


LOG_SOFTMAX = ("LogSoftmax", softmax(-1, True), {"axis": -1})
RELU = ("Relu", lambda a: np.maximum(a, 0), {})
TO_BOOL = ("Cast", boolean, {"to": T.BOOL})
TO_INT = ("Cast", lambda a: a.astype(np.int32), {"to": T.INT32})
SUM = ("CumSum", lambda a, _: np.cumsum(a, 0, dtype=F), {}, np.int64(0))
CANCELS = [0.1, 0.2, 0.3, -0.6]
SCALE, ZERO = F(0.5), np.int8(0)


def step(op, function, *constants, **attributes):
    return (op, function, attributes, *constants)


def quantised(a, s, z):
    return np.clip(np.rint(a / s) + z, -128, 127).astype(np.int8)


# One of few values has the same rounding again and again.
FEW = np.repeat(F([1.7, -2.3, 3.1, 0.9, -3.39]), 800)
MEAN = ("ReduceMean", lambda a: np.mean(a, keepdims=True, dtype=F), {"keepdims": 1})
HARDMAX = step("Hardmax", lambda a: F(np.arange(len(a)) == np.argmax(a)), axis=0)
# A cell that is closed: what it lets out is 0 of either sign, or not quite.
CLOSED = step("RNN", lambda x: F([0, 0]) * x, hidden_size=2)
EITHER = {
    "what is left of a sum of thousands": (graph(FEW, MEAN), 1e-3),
    "nothing is left of a log softmax": graph([30.0, 1, 2], LOG_SOFTMAX, TO_BOOL),
    "a sum that cancels, as bool": graph(CANCELS, SUM, TO_BOOL),
    "a sum that is a whole number": graph([0.1] * 10, SUM, TO_INT),
    "floor of it": graph([0.1] * 10, SUM, step("Floor", np.floor)),
    "ceil of it": graph([0.1] * 10, SUM, step("Ceil", np.ceil)),
    "a sum that is a half": graph([0.1] * 5, SUM, step("Round", np.rint)),
    "the sign of nothing": graph(CANCELS, SUM, step("Sign", np.sign)),
    "a sum above its value": graph([0.1] * 10, SUM, step("Greater", np.greater, F(1))),
    "a sum below its value": graph([0.1] * 10, SUM, step("Less", np.less, F(1))),
    "a sum equal to its value": graph([0.1] * 10, SUM, step("Equal", np.equal, F(1))),
    "a sum quantised between two": graph(
        [0.05] * 5, SUM, step("QuantizeLinear", quantised, SCALE, ZERO)
    ),
    "the largest of two that are near": graph(
        [1, near(0.3) / F(0.3)], step("ArgMax", lambda a: np.argmax(a, 0, keepdims=True), axis=0)
    ),
    "the least of two that are near": graph(
        [1, near(0.3) / F(0.3)], step("ArgMin", lambda a: np.argmin(a, 0, keepdims=True), axis=0)
    ),
    "which of two that are near has 1": graph([1, near(0.3) / F(0.3)], HARDMAX),
    "which of two closed cells has 1": graph([-1.0, 1], CLOSED, HARDMAX),
    "what is chosen then": graph(
        CANCELS, SUM, step("Greater", np.greater, F(0)), step("Where", np.where, F(1), F(2))
    ),
}
SURE = {
    "what relu leaves": graph([-1.0, 2], RELU, TO_BOOL),
    "a log softmax far from 0": graph([1.0, 2, 3], LOG_SOFTMAX, TO_BOOL),
    "a sum far from a whole number": graph([0.1] * 3, SUM, TO_INT),
    "a comparison far from it": graph([0.1] * 3, SUM, step("Greater", np.greater, F(0.25))),
    "a sum of thousands": graph(np.abs(FEW), MEAN),
    "the largest of two": graph(
        [1, 1.01], step("ArgMax", lambda a: np.argmax(a, 0, keepdims=True), axis=0)
    ),
    "which of two has 1": graph([1, 1.01], HARDMAX),
}
# Functions that round on the way, what they leave, and what is exact.
ROUNDED = {
    "what an image of one pixel is normalised to": (
        graph(
            [[[3e4]]],
            step("InstanceNormalization", lambda x, s, b: x * s + (b - x * s), F([0.7]), F([0.01])),
        ),
        0.01,
    ),
    "a large number that goes again": (
        graph([3e7], step("Add", np.add, F(0.5)), step("Sub", np.subtract, F(3e7)), TO_INT),
        0,
    ),
    "a part of a large number": (
        graph([3e7], step("Add", np.add, F(0.5)), step("Sub", np.subtract, F(3e7))),
        0.5,
    ),
}


def of_each(model, share):
    return {o: share for o in model.outputs}


def main():
    either = [(k, *(m if isinstance(m, tuple) else (m, 1))) for k, m in EITHER.items()]
    wrong = [k for k, m, share in either if not unstable(m, 0, of_each(m, share))]
    wrong += [k for k, m in SURE.items() if unstable(m, 0, of_each(m, 3e-4))]
    for k, (m, exact) in ROUNDED.items():
        (made,), (rounded,) = exact_outputs(m, 0).values(), list(m.values(0).values())[-1:]
        if made.dtype != rounded.dtype or made != rounded.dtype.type(exact):
            wrong.append(f"{k}: {made}")
    drawn = [draw(f"planted/{i}", None) for i in range(40)]
    planted = [(m, o) for m in drawn for o in m.outputs if m.values(0)[o].size]
    seen = sum(not unstable(m, 0, {o: 3e-4}) for m, o in planted)
    for k in wrong:
        print(f"wrongly judged: {k}")
    print(
        f"{len(EITHER)} that rounding decides, {len(SURE)} that it does not; of {len(planted)} "
        f"faults {seen} are seen"
    )
    return 1 if wrong or 10 * seen < 9 * len(planted) else 0


if __name__ == "__main__":
    sys.exit(main())
