#!/usr/bin/env python3
"""Models that `ingot compile --train` makes learn as numpy does.

    training.py --ingot build/ingot [CASE..]     14 s of a core

Each case is an ONNX model, what it is to learn, and the same in numpy, in f64 (tape.py). After each
step the losses are compared, after the last all weights and what the optimizer keeps; then what
run() gives. Errors: what is asked for and cannot be.

Exit status 77, skipped: there is no numpy or no onnx.
"""

import argparse
import os
import pathlib
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "compiler/tools/python"))

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import ingot
import tape
from tape import Var

STEPS = 12


class Net:
    """An ONNX model: weights in f32, nodes, inputs and outputs."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.weights, self.nodes = {}, []

    def weight(self, name, *shape, scale=0.4):
        self.weights[name] = (self.random.standard_normal(shape) * scale).astype(np.float32)
        return name

    def node(self, op, inputs, output, **attributes):
        outputs = output if isinstance(output, list) else [output]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], **attributes))
        return outputs[0]

    def save(self, path, inputs, outputs, opset=17):
        def value(name, kind, shape):
            return helper.make_tensor_value_info(name, kind, shape)

        graph = helper.make_graph(
            self.nodes,
            "net",
            [value(n, k, s) for n, k, s in inputs],
            [value(n, k, s) for n, k, s in outputs],
            [numpy_helper.from_array(a, n) for n, a in self.weights.items()],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8
        )
        path.write_bytes(model.SerializeToString())


FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def mlp(path, batch=8):
    net = Net(1)
    a = net.node("Gemm", ["x", net.weight("fc1.weight", 16, 12), net.weight("fc1.bias", 16)], "a",
                 transB=1)  # fmt: skip
    r = net.node("Relu", [a], "r")
    net.node("Gemm", [r, net.weight("fc2.weight", 5, 16), net.weight("fc2.bias", 5)], "y", transB=1)
    net.save(path, [("x", FLOAT, [batch, 12])], [("y", FLOAT, [batch, 5])])

    def forward(w, x):
        r = tape.relu(Var(x) @ w["fc1.weight"].transpose(1, 0) + w["fc1.bias"])
        return r @ w["fc2.weight"].transpose(1, 0) + w["fc2.bias"]

    return net, forward, lambda random: random.standard_normal((batch, 12)).astype(np.float32)


def beside(case, make, loss_of, steps_by, rate, target, *, frozen=(), clip=None, accumulate=1,
           tolerance=2e-6, **options):  # fmt: skip
    """Trains both; loss_of(y, target) and the optimizer steps_by are numpy's."""
    with tempfile.TemporaryDirectory() as at:
        path = pathlib.Path(at) / "net.onnx"
        net, forward, draw = make(path)
        ingot.compile(path, pathlib.Path(at) / "out", train=True, clip=clip, frozen=list(frozen),
                      accumulate=accumulate if accumulate > 1 else None, **options)  # fmt: skip
        model = ingot.Model(pathlib.Path(at) / "out", cflags="-O1")
        wide = {n: a.astype(np.float64) for n, a in net.weights.items()}
        random, gathered = np.random.default_rng(2), {}
        for i in range(STEPS):
            x, t = draw(random), target(random)
            w = {n: Var(a) for n, a in wide.items()}
            wanted = loss_of(forward(w, x), t)
            wanted.backward()
            for n in wide:
                if n not in frozen and n not in getattr(net, "statistics", ()):
                    gathered[n] = gathered.get(n, 0) + w[n].grad / accumulate
            if (i + 1) % accumulate == 0:
                steps_by.step(wide, tape.clipped(gathered, clip) if clip else gathered, rate)
                gathered = {}
            if hasattr(net, "follow"):
                net.follow(wide)
            got = model.step(x, t, rate)
            near(case, f"loss of step {i}", got, wanted.value, tolerance)
        kept = {f"{n}.m": a for n, a in steps_by.m.items()}
        kept.update({f"{n}.v": a for n, a in steps_by.v.items()})
        states = model.states
        for name, a in {**{n: a for n, a in wide.items() if n not in frozen}, **kept}.items():
            near(case, name, states[name], a, tolerance * 10)
        assert not set(frozen) & set(states), f"{case}: frozen weights are states"
        assert states["train.step"] == STEPS // accumulate, f"{case}: {states['train.step']} steps"
        if not hasattr(net, "statistics"):
            x = draw(random)
            y = forward({n: Var(a) for n, a in wide.items()}, x).value
            near(case, "run()", model(x), y, tolerance * 10)
        model.reset()
        assert (model.states[next(iter(wide))] == next(iter(net.weights.values()))).all()


def near(case, what, got, wanted, tolerance):
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape, f"{case}: {what}: {got.shape}, not {wanted.shape}"
    error = np.abs(got - wanted).max() / max(np.abs(wanted).max(), 1e-3)
    assert error < tolerance, f"{case}: {what} is {error:.2g} off"


def labels(random):
    return random.integers(0, 5, 8)


def case_sgd():
    beside("sgd", mlp, tape.mse, tape.Optimizer("sgd", decay=0.01), 0.05,
           lambda r: r.standard_normal((8, 5)).astype(np.float32),
           loss="mse:y", optimizer="sgd:decay=0.01")  # fmt: skip


def case_momentum():
    beside("momentum", mlp, tape.cross_entropy,
           tape.Optimizer("momentum", beta1=0.8, nesterov=True, decay=1e-3), 0.05, labels,
           frozen=["fc1.bias"], loss="cross_entropy:y",
           optimizer="momentum:beta1=0.8,nesterov,decay=1e-3")  # fmt: skip


def case_adam():
    beside("adam", mlp, lambda y, t: tape.cross_entropy(y, t, smoothing=0.1),
           tape.Optimizer("adam", decay=0.02), 0.01, labels, clip=0.5,
           loss="cross_entropy:y", optimizer="adam:decay=0.02", label_smoothing=0.1)  # fmt: skip


def case_adamw():
    def some(random):
        t = random.integers(0, 5, 8)
        t[random.random(8) < 0.3] = -1
        return t

    beside("adamw", mlp, lambda y, t: tape.cross_entropy(y, t, ignored=-1),
           tape.Optimizer("adamw", beta2=0.99), 0.01, some, accumulate=3, clip=1.0,
           loss="cross_entropy:y", optimizer="adamw:beta2=0.99", ignore_index=-1)  # fmt: skip


CASES = {n[5:]: f for n, f in globals().items() if n.startswith("case_")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ingot", required=True)
    parser.add_argument("cases", nargs="*")
    o = parser.parse_args()
    os.environ["INGOT"], wrong = o.ingot, 0
    chosen = o.cases or list(CASES)
    for case in chosen:
        try:
            CASES[case]()
        except (AssertionError, ingot.Error) as e:
            print(f"{case}: {e}")
            wrong += 1
    print(f"training: {wrong} of {len(chosen)} cases are wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
