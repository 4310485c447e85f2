#!/usr/bin/env python3
"""Models that `ingot compile --train` makes learn as numpy does.

    training.py --ingot build/ingot [CASE..]     25 s of a core

Each case is an ONNX model, what it is to learn, and the same in numpy, in f64 (tape.py). After each
step the losses are compared, after the last all weights and what the optimizer keeps; then what
run() gives, and bytes with three threads. Errors: what is asked for and cannot be.

Exit status 77, skipped: there is no numpy or no onnx.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "compiler/tools/python"))

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import ingot
import tape
from ingot.command import arguments
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


def with_loss(path, batch=8):
    """The file has the loss, of labels that are an input."""
    net, forward, draw = mlp(path, batch)
    net.node("SoftmaxCrossEntropyLoss", ["y", "label"], "cost")
    net.save(path, [("x", FLOAT, [batch, 12]), ("label", INT64, [batch])], [("cost", FLOAT, [])])
    net.only_loss = True
    return net, forward, draw


def cnn(path, batch=6):
    """Two convolutions, each with batch norm (the second as files in training have it), by stride 2 and 1,
    an average over the pixels."""
    net = Net(4)
    net.statistics, net.seen = set(), []
    x = "x"
    for i, (m, c, stride) in enumerate([(6, 3, 2), (8, 6, 1)]):
        x = net.node("Conv", [x, net.weight(f"c{i}.weight", m, c, 3, 3)], f"c{i}", pads=[1] * 4,
                     strides=[stride, stride])  # fmt: skip
        names = [f"b{i}.{n}" for n in ("scale", "bias", "mean", "var")]
        for k, name in enumerate(names):
            net.weights[name] = np.full(m, [1, 0, 0, 1][k], np.float32)
        net.statistics |= set(names[2:])
        results = [f"b{i}", f"b{i}.mean.next", f"b{i}.var.next"][: 1 + 2 * i]
        x = net.node("BatchNormalization", [x, *names], results, momentum=0.8, training_mode=i)
        x = net.node("Relu", [x], f"r{i}")
    x = net.node("GlobalAveragePool", [x], "pooled")
    x = net.node("Flatten", [x], "flat")
    net.node("Gemm", [x, net.weight("fc.weight", 8, 5), net.weight("fc.bias", 5)], "y")
    net.save(path, [("x", FLOAT, [batch, 3, 8, 8])], [("y", FLOAT, [batch, 5])])

    def norm(w, i, x):
        mean = x.mean((0, 2, 3), True)
        d = x - mean
        var = (d * d).mean((0, 2, 3), True)
        net.seen += [(f"b{i}.mean", mean.value.ravel()), (f"b{i}.var", var.value.ravel())]
        y = d * (var + 1e-5) ** -0.5
        return y * w[f"b{i}.scale"].reshape(-1, 1, 1) + w[f"b{i}.bias"].reshape(-1, 1, 1)

    def forward(w, x):
        x = Var(x)
        for i, stride in enumerate((2, 1)):
            x = tape.relu(norm(w, i, tape.conv(x, w[f"c{i}.weight"], stride, 1)))
        return x.mean((2, 3)) @ w["fc.weight"] + w["fc.bias"]

    def follow(w):
        for name, now in net.seen:
            w[name] = 0.8 * w[name] + 0.2 * now
        net.seen.clear()

    net.follow = follow
    return net, forward, lambda r: r.standard_normal((batch, 3, 8, 8)).astype(np.float32)


def transformer(path, batch=2, length=6, width=8, heads=2, words=11):
    """Embeddings, a layer with causal attention and layer norms, scores by the embedding."""
    net, size = Net(5), width // heads
    net.weight("words", words, width)
    net.weight("places", length, width)
    mask = np.where(np.tri(length, dtype=bool), 0, -np.inf).astype(np.float32)
    net.weights.update(mask=mask, scale=np.array(size**-0.5, np.float32))
    net.weights.update(split=np.array([batch, length, heads, size]))
    net.weights.update(joined=np.array([batch, length, width]))
    norms = [f"n{i}.{n}" for i in range(2) for n in ("scale", "bias")]
    for k, name in enumerate(norms):
        net.weights[name] = np.full(width, 1 - k % 2, np.float32)
    x = net.node("Add", [net.node("Gather", ["words", "x"], "found"), "places"], "embedded")
    n = net.node("LayerNormalization", [x, *norms[:2]], "n0")
    parts = {}
    for p in "qkv":
        y = net.node("MatMul", [n, net.weight(p, width, width)], f"{p}_flat")
        y = net.node("Reshape", [y, "split"], f"{p}_split")
        parts[p] = net.node("Transpose", [y], f"{p}_heads",
                            perm=[0, 2, 3, 1] if p == "k" else [0, 2, 1, 3])  # fmt: skip
    s = net.node("Mul", [net.node("MatMul", [parts["q"], parts["k"]], "qk"), "scale"], "scaled")
    s = net.node("Softmax", [net.node("Add", [s, "mask"], "masked")], "shares", axis=-1)
    y = net.node(
        "Transpose", [net.node("MatMul", [s, parts["v"]], "av")], "av_t", perm=[0, 2, 1, 3]
    )
    y = net.node("Reshape", [y, "joined"], "attended")
    x = net.node("Add", [x, net.node("MatMul", [y, net.weight("o", width, width)], "out")], "x1")
    n = net.node("LayerNormalization", [x, *norms[2:]], "n1")
    y = net.node("Tanh", [net.node("MatMul", [n, net.weight("up", width, 16)], "u")], "t")
    x = net.node("Add", [x, net.node("MatMul", [y, net.weight("down", 16, width)], "d")], "x2")
    net.node("MatMul", [x, net.node("Transpose", ["words"], "words_t", perm=[1, 0])], "y")
    net.save(path, [("x", INT64, [batch, length])], [("y", FLOAT, [batch, length, words])])
    net.constants = {"mask", "scale", "split", "joined"}

    def norm(w, i, x):
        d = x - x.mean(-1, True)
        y = d * ((d * d).mean(-1, True) + 1e-5) ** -0.5
        return y * w[f"n{i}.scale"] + w[f"n{i}.bias"]

    def forward(w, x):
        x = w["words"].take(x) + w["places"]
        n = norm(w, 0, x)
        q, k, v = (
            (n @ w[p]).reshape(batch, length, heads, size).transpose(0, 2, 1, 3) for p in "qkv"
        )
        s = tape.softmax((q @ k.transpose(0, 1, 3, 2)) * size**-0.5 + np.maximum(mask, -1e9))
        y = (s @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
        x = x + y @ w["o"]
        x = x + tape.tanh(norm(w, 1, x) @ w["up"]) @ w["down"]
        return x @ w["words"].transpose(1, 0)

    return net, forward, lambda r: r.integers(0, words, (batch, length))


def beside(case, make, loss_of, steps_by, rate, target, *, frozen=(), clip=None, accumulate=1,
           tolerance=2e-6, **options):  # fmt: skip
    """Trains both; loss_of(y, target) and the optimizer steps_by are numpy's."""
    with tempfile.TemporaryDirectory() as at:
        path = pathlib.Path(at) / "net.onnx"
        net, forward, draw = make(path)
        ingot.compile(path, pathlib.Path(at) / "out", train=True, clip=clip, frozen=list(frozen),
                      accumulate=accumulate if accumulate > 1 else None, **options)  # fmt: skip
        model = ingot.Model(pathlib.Path(at) / "out", cflags="-O0")
        fixed = {*frozen, *getattr(net, "constants", ())}
        wide = {n: a.astype(np.float64) for n, a in net.weights.items() if a.dtype == np.float32}
        random, gathered = np.random.default_rng(2), {}
        for i in range(STEPS):
            x, t = draw(random), target(random)
            w = {n: Var(a) for n, a in wide.items()}
            wanted = loss_of(forward(w, x), t)
            wanted.backward()
            for n in wide:
                if n not in fixed and n not in getattr(net, "statistics", ()):
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
        for name, a in {**{n: a for n, a in wide.items() if n not in fixed}, **kept}.items():
            near(case, name, states[name], a, tolerance * 10)
        assert not fixed & set(states), f"{case}: {fixed & set(states)} are states"
        assert states["train.step"] == STEPS // accumulate, f"{case}: {states['train.step']} steps"
        if not hasattr(net, "statistics") and not hasattr(net, "only_loss"):
            x = draw(random)
            y = forward({n: Var(a) for n, a in wide.items()}, x).value
            near(case, "run()", model(x), y, tolerance * 10)
        model.reset()
        first = next(n for n in wide if n not in fixed)
        assert (model.states[first] == net.weights[first]).all()
        others = ingot.Model(pathlib.Path(at) / "out", cflags="-O1", threads=3)
        for _ in range(3):
            x, t = draw(random), target(random)
            assert model.step(x, t, rate) == others.step(x, t, rate), f"{case}: threads"
        for name, a in others.states.items():
            assert a.tobytes() == states[name].tobytes(), f"{case}: {name} with three threads"


def verify(case, path, **options):
    """Both functions, kernel by kernel and all together."""
    words = arguments({"train": True, **options})
    done = subprocess.run(
        [os.environ["INGOT"], "verify", path, *words], capture_output=True, text=True
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, f"{case}: verify: {told}"
    assert told.count("no kernel differs") == 2, f"{case}: verify: {told}"
    return told


def case_data():
    """`verify --train` with data: the loss is that of them; what is missing is drawn."""
    with tempfile.TemporaryDirectory() as at:
        at = pathlib.Path(at)
        net, forward, draw = mlp(at / "net.onnx")
        random = np.random.default_rng(6)
        x, t = draw(random), labels(random)
        options = {"loss": "cross_entropy:y", "optimizer": "sgd", "target": "c"}
        loss = tape.cross_entropy(forward({n: Var(a) for n, a in net.weights.items()}, x), t).value
        for i, a in enumerate((x, t)):
            np.save(at / f"input_{i}.npy", a)
        told = verify("data", at / "net.onnx", data=at, **options)
        found = re.search(r"train_step: loss is ([0-9.]+)", told)
        assert found and abs(float(found[1]) / loss - 1) < 1e-4, f"data: {loss}: {told}"
        assert "no data for input 2, 'rate'" in told and told.count("no data") == 1, told
        named = [f"target={at}/input_1.npy", f"{at}/input_0.npy"]
        again = verify("data", at / "net.onnx", input=named, **options)
        assert found[0] in again, f"data: {again}"
        np.save(at / "input_1.npy", x)
        try:
            verify("data", at / "net.onnx", data=at, **options)
        except AssertionError as e:
            assert "input 1 are f32[8,12], and input 'target' is i64[8]" in str(e), str(e)
        else:
            assert False, "data: floats are taken for labels"


def near(case, what, got, wanted, tolerance):
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape, f"{case}: {what}: {got.shape}, not {wanted.shape}"
    error = np.abs(got - wanted).max() / max(np.abs(wanted).max(), 1e-3)
    assert error < tolerance, f"{case}: {what} is {error:.2g} off"


def ties(path, batch=4):
    """A pool of maxima that several elements are: its gradient goes to the first."""
    net = Net(16)
    x = net.node("Mul", ["x", net.weight("scale", 2, 8, 9)], "s")
    net.weights["scale"][...] = 1
    x = net.node("MaxPool", [x], "p", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 0, 1])
    net.node("Mul", [x, net.weight("w", 4, 5)], "y")
    net.save(path, [("x", FLOAT, [batch, 2, 8, 9])], [("y", FLOAT, [batch, 2, 4, 5])])

    def forward(w, x):
        return tape.max_pool(Var(x) * w["scale"], (3, 2), 2, ((1, 0), (0, 1))) * w["w"]

    return net, forward, lambda r: r.integers(0, 3, (batch, 2, 8, 9)).astype(np.float32)


def case_ties():
    beside("ties", ties, tape.mse, tape.Optimizer("sgd"), 0.01,
           lambda r: r.standard_normal((4, 2, 4, 5)).astype(np.float32), loss="mse:y", optimizer="sgd")  # fmt: skip


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


def case_output():
    beside("output", with_loss, tape.cross_entropy, tape.Optimizer("sgd"), 0.1, labels,
           loss="cost", optimizer="sgd")  # fmt: skip


def case_cnn():
    beside("cnn", cnn, tape.cross_entropy, tape.Optimizer("momentum", decay=1e-4), 0.05,
           lambda r: r.integers(0, 5, 6), tolerance=1e-5, loss="cross_entropy:y",
           optimizer="momentum:decay=1e-4")  # fmt: skip


def case_batch():
    """The size of the batch is the run's: batches to learn from, and single samples."""
    with tempfile.TemporaryDirectory() as at:
        path = pathlib.Path(at) / "net.onnx"
        net, forward, _ = cnn(path, "batch")
        m = ingot.train(path, loss="cross_entropy:y", optimizer="sgd", dim={"batch": (1, 9)},
                        cflags="-O1")  # fmt: skip
        wide = {n: a.astype(np.float64) for n, a in net.weights.items()}
        random, sgd = np.random.default_rng(9), tape.Optimizer("sgd")
        for n in (9, 4, 7, 1):
            x = random.standard_normal((n, 3, 8, 8)).astype(np.float32)
            t, w = random.integers(0, 5, n), {n: Var(a) for n, a in wide.items()}
            wanted = tape.cross_entropy(forward(w, x), t)
            wanted.backward()
            sgd.step(wide, {n: w[n].grad for n in wide if n not in net.statistics}, 0.1)
            net.follow(wide)
            near("batch", f"loss of {n} samples", m.step(x, t, 0.1), wanted.value, 1e-5)
        for name, a in wide.items():
            near("batch", name, m.states[name], a, 1e-4)
        assert m(x).shape == (1, 5)


def case_transformer():
    beside("transformer", transformer, lambda y, t: tape.cross_entropy(y, t, axis=2),
           tape.Optimizer("adamw"), 0.003, lambda r: r.integers(0, 11, (2, 6)), clip=1.0,
           tolerance=1e-5, loss="cross_entropy:y", class_axis=-1, optimizer="adamw")  # fmt: skip


def grouped(path, batch=6):
    """Two convolutions, the second one in groups, and a product."""
    net = Net(14)
    x = net.node("Conv", ["x", net.weight("c0.weight", 6, 3, 3, 3), net.weight("c0.bias", 6)], "c0",
                 pads=[1] * 4, strides=[2, 2])  # fmt: skip
    x = net.node("Relu", [x], "r0")
    x = net.node("Conv", [x, net.weight("c1.weight", 4, 3, 3, 3)], "c1", pads=[1] * 4, group=2)
    x = net.node("GlobalAveragePool", [net.node("Relu", [x], "r1")], "pooled")
    net.node("MatMul", [net.node("Flatten", [x], "flat"), net.weight("fc.weight", 4, 5)], "y")
    net.save(path, [("x", FLOAT, [batch, 3, 8, 8])], [("y", FLOAT, [batch, 5])])

    def whole(w):
        """The weight of one group that computes the same."""
        halves = np.zeros((4, 6, 3, 3))
        halves[:2, :3] = halves[2:, 3:] = 1
        return (w.reshape(4, 1, 3, 3, 3) + np.zeros((1, 2, 1, 1, 1))).reshape(4, 6, 3, 3) * halves

    def forward(w, x):
        x = tape.conv(Var(x), w["c0.weight"], 2, 1) + w["c0.bias"].reshape(-1, 1, 1)
        x = tape.relu(tape.conv(tape.relu(x), whole(w["c1.weight"]), 1, 1))
        return x.mean((2, 3)) @ w["fc.weight"]

    return net, forward, lambda r: r.standard_normal((batch, 3, 8, 8)).astype(np.float32)


COLUMNS = {"fc.weight", "q", "v", "up", "down"}  # [in, out]: of MatMul


def with_adapters(weights, factors, scale):
    """w + scale B A, where there are A and B; [in, out] has it transposed."""
    w = {n: Var(a) for n, a in weights.items()}
    for name in weights:
        if name + ".lora_A" in factors:
            a, b = (factors[f"{name}.lora_{k}"] for k in "AB")
            sum_ = b @ a.reshape(a.shape[0], -1)
            turned = name in COLUMNS
            w[name] += (sum_.transpose(1, 0) if turned else sum_.reshape(*w[name].shape)) * scale
    return w


def adapters(case, make, loss_of, target, adapted, extra=(), **options):
    """--lora beside the same in numpy; then `ingot merge`, and the merged model beside run()."""
    scale, rank = 3 / 2, 2
    with tempfile.TemporaryDirectory() as at:
        at = pathlib.Path(at)
        net, forward, draw = make(at / "net.onnx")
        lora = [f"r={rank}:alpha=3:{name}" for name in adapted]
        ingot.compile(at / "net.onnx", at / "out", train=True, lora=lora, trainable=list(extra),
                      optimizer="adamw", **options)  # fmt: skip
        model = ingot.Model(at / "out", cflags="-O1")
        wide = {n: a.astype(np.float64) for n, a in net.weights.items() if a.dtype == np.float32}
        trained = {n: a.astype(np.float64) for n, a in model.states.items()
                   if n in extra or n.endswith((".lora_A", ".lora_B"))}  # fmt: skip
        assert len(trained) == 2 * len(adapted) + len(extra), f"{case}: {list(trained)}"
        random, adamw = np.random.default_rng(2), tape.Optimizer("adamw")
        for i in range(STEPS):
            x, t = draw(random), target(random)
            v = {n: Var(a) for n, a in trained.items()}
            wanted = loss_of(forward({**with_adapters(wide, v, scale),
                                      **{n: v[n] for n in extra}}, x), t)  # fmt: skip
            wanted.backward()
            adamw.step(trained, {n: a.grad for n, a in v.items()}, 0.01)
            near(case, f"loss of step {i}", model.step(x, t, 0.01), wanted.value, 1e-5)
        for name, a in trained.items():
            near(case, name, model.states[name], a, 1e-4)
        merge(case, at, model, draw(random), {
            **{n: a.value for n, a in with_adapters(wide, {n: Var(a) for n, a in trained.items()},
                                                    scale).items()},
            **{n: trained[n] for n in extra}})  # fmt: skip


def merge(case, at, model, x, wanted):
    """What was trained, as a model and as weights."""
    model.save(at / "states.safetensors")
    y = model(x)
    for file in ("merged.onnx", "merged.safetensors"):
        command = [os.environ["INGOT"], "merge", at / "net.onnx", at / "states.safetensors"]
        p = subprocess.run([*command, "-o", at / file], capture_output=True, text=True)
        assert p.returncode == 0, f"{case}: merge: {p.stderr}"
    merged = ingot.compile(at / "merged.onnx", at / "merged")
    near(case, "the merged model", ingot.Model(merged, cflags="-O1")(x), y, 1e-5)
    data = (at / "merged.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    for name, w in json.loads(data[8:start]).items():
        lo, hi = (start + k for k in w["data_offsets"])
        got = np.frombuffer(data[lo:hi], np.float32).reshape(w["shape"])
        if name in wanted and not np.isinf(got).any():
            near(case, f"merged {name}", got, wanted[name], 1e-4)
    found = {t.name: t for t in onnx.load(at / "merged.onnx").graph.initializer}
    assert found.keys() == {t.name for t in onnx.load(at / "net.onnx").graph.initializer}
    assert all((numpy_helper.to_array(found[n]).shape == a.shape for n, a in wanted.items()))


def case_lora():
    adapters("lora", mlp, tape.cross_entropy, labels, ["fc1.weight", "fc2.weight"],
             extra=["fc1.bias"], loss="cross_entropy:y")  # fmt: skip


def case_lora_conv():
    adapters("lora_conv", grouped, tape.cross_entropy, lambda r: r.integers(0, 5, 6),
             ["c0.weight", "c1.weight", "fc.weight"], loss="cross_entropy:y")  # fmt: skip


def case_lora_transformer():
    adapters("lora_transformer", transformer, lambda y, t: tape.cross_entropy(y, t, axis=2),
             lambda r: r.integers(0, 11, (2, 6)), ["words", "q", "v", "up", "down"],
             loss="cross_entropy:y", class_axis=-1)  # fmt: skip


def case_paths():
    """A weight that the exporter named is found by the module of the node that reads it."""
    with tempfile.TemporaryDirectory() as at:
        path, net = pathlib.Path(at) / "net.onnx", Net(9)
        net.node("MatMul", ["x", net.weight("val_4", 3, 4)], "h")
        net.nodes[0].metadata_props.add(key="pkg.torch.onnx.name_scopes",
                                        value="['', 'b.0', 'b.0.attn', 'linear_1']")  # fmt: skip
        net.node("MatMul", ["h", net.weight("onnx::MatMul_7", 4, 2)], "y")
        net.nodes[1].name = "/b.1/head/MatMul"
        net.save(path, [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 2])])
        for glob, name in ("b.0.attn.*", "val_4"), ("b.1.head.*", "onnx::MatMul_7"):
            assert set(ingot.train(path, loss="mse:y", optimizer="sgd", trainable=[glob], target="c",
                                   cflags="-O0").states) - {"train.step"} == {name}, glob  # fmt: skip


def losses(path, draw, target, rate, steps, **options):
    m = ingot.train(path, cflags="-O1", target="c", **options)
    random = np.random.default_rng(3)
    return np.array([m.step(draw(random), target(random), rate) for _ in range(steps)]), m


def case_precision():
    """Products of bf16 and of f16 learn as those of f32 do: weights stay f32, gradients too, but
    where they are multiplied."""
    for make, target, options in [
        (wide_cnn, lambda r: r.integers(0, 5, 16), {"loss": "cross_entropy:y"}),
        (transformer, lambda r: r.integers(0, 11, (4, 16)),
         {"loss": "cross_entropy:y", "class_axis": -1}),
    ]:  # fmt: skip
        with tempfile.TemporaryDirectory() as at:
            path = pathlib.Path(at) / "net.onnx"
            sizes = {"batch": 4, "length": 16, "width": 32, "heads": 2}
            _, _, draw = make(path, **(sizes if make is transformer else {}))
            plan = (path, draw, target, 0.002, 20)
            wanted, m = losses(*plan, optimizer="adamw", **options)
            kinds = [{"precision": "bf16"}, {"precision": "f16", "loss_scale": 1024}]
            for more in kinds if make is wide_cnn else kinds[:1]:
                got, n = losses(*plan, optimizer="adamw", **more, **options)
                near("precision", f"{make.__name__} {more}", got, wanted, 1e-2)
                assert (got != wanted).all(), f"precision: {more}: nothing was rounded"
                for name, a in m.states.items():
                    assert n.states[name].dtype == a.dtype, f"precision: {name}"
            if make is wide_cnn:
                verify("precision", path, optimizer="sgd", precision="bf16", **options)
            assert wanted[-5:].mean() < wanted[:5].mean(), f"precision: {wanted}"


def wide_cnn(path, batch=16):
    net = Net(15)
    x = net.node("Conv", ["x", net.weight("c0", 16, 3, 3, 3)], "y0", pads=[1] * 4)
    x = net.node("MaxPool", [net.node("Relu", [x], "r0")], "p0", kernel_shape=[2, 2],
                 strides=[2, 2])  # fmt: skip
    x = net.node("Conv", [x, net.weight("c1", 32, 16, 3, 3, scale=0.1)], "y1", pads=[1] * 4,
                 strides=[2, 2])  # fmt: skip
    x = net.node("Flatten", [net.node("Relu", [x], "r1")], "f")
    net.node("Gemm", [x, net.weight("w", 5, 128, scale=0.1), net.weight("b", 5)], "y", transB=1)
    net.save(path, [("x", FLOAT, [batch, 3, 8, 8])], [("y", FLOAT, [batch, 5])])
    return net, None, lambda r: r.standard_normal((batch, 3, 8, 8)).astype(np.float32)


def case_loss_scale():
    """A scale that is too large: steps are skipped and it is halved, until gradients are finite;
    then the same weights as without one."""
    with tempfile.TemporaryDirectory() as at:
        path = pathlib.Path(at) / "net.onnx"
        _, _, draw = mlp(path)
        for accumulate in (None, 2):
            usual = {"loss": "cross_entropy:y", "optimizer": "momentum", "accumulate": accumulate,
                     "cflags": "-O1"}  # fmt: skip
            m = ingot.train(path, loss_scale=2.0**60, **usual)
            random, skipped = np.random.default_rng(4), 0
            x, t = draw(random), labels(random)
            m.states["fc2.weight"][...] *= 2.0**70
            first = m.states["fc1.weight"].copy()
            while m.states["train.step"] == 0 and skipped < 99:
                assert (m.states["fc1.weight"] == first).all(), "loss_scale: a step was not skipped"
                for _ in range(accumulate or 1):
                    m.step(x, t, 0.01)
                skipped += 1
            skipped -= 1
            assert 0 < skipped < 99, f"loss_scale: {skipped}"
            assert m.states["train.scale"] == 2.0 ** (60 - skipped), "loss_scale: not halved"
            assert m.states["train.finite"] == 1, "loss_scale: steps that went well"
            plain = ingot.train(path, **usual)
            plain.states["fc2.weight"][...] *= 2.0**70
            for _ in range(accumulate or 1):
                plain.step(x, t, 0.01)
            for name, a in plain.states.items():
                near("loss_scale", name, m.states[name], a, 1e-6)


def chain(path, batch=64, width=48, layers=10):
    net, x = Net(16), "x"
    for i in range(layers):
        a = net.node("MatMul", [x, net.weight(f"w{i}", width, width, scale=0.2)], f"a{i}")
        x = net.node("Tanh", [a], f"t{i}")
    net.node("MatMul", [x, net.weight("last", width, 5)], "y")
    net.save(path, [("x", FLOAT, [batch, width])], [("y", FLOAT, [batch, 5])])
    return net, None, lambda random: random.standard_normal((batch, width)).astype(np.float32)


def case_limit():
    """In less memory layers are computed again, and losses and weights have the same bits."""
    with tempfile.TemporaryDirectory() as at:
        path = pathlib.Path(at) / "net.onnx"
        _, _, draw = chain(path)
        plan = (path, draw, lambda r: r.integers(0, 5, 64), 0.01, 3)
        usual = {"loss": "cross_entropy:y", "optimizer": "adamw"}
        wanted, m = losses(*plan, **usual)
        states = sum(a.nbytes for a in m.states.values())
        limit = states + (m._arena.nbytes - states) * 3 // 5
        got, n = losses(*plan, max_ram=limit, **usual)
        assert n._arena.nbytes <= limit, f"limit: {n._arena.nbytes} bytes"
        assert (got == wanted).all(), f"limit: {got}, not {wanted}"
        for name, a in m.states.items():
            assert (n.states[name] == a).all(), f"limit: other bits of '{name}'"


def case_biases():
    """Biases alone: there are no other states, and no gradients of others are made."""
    frozen = ["fc1.weight", "fc2.weight"]
    beside("biases", mlp, tape.cross_entropy, tape.Optimizer("sgd"), 0.1, labels, frozen=frozen,
           trainable="*.bias", loss="cross_entropy:y", optimizer="sgd")  # fmt: skip


def case_dropout():
    """Drops other elements in each step and the same ones after a reset, none in run(); the
    gradient is that of what is left, beside differences."""
    with tempfile.TemporaryDirectory() as at:
        path, net = pathlib.Path(at) / "net.onnx", Net(6)
        net.weights["ratio"] = np.array(0.4, np.float32)
        net.node("Dropout", [net.node("MatMul", ["x", net.weight("a", 12, 16)], "h"), "ratio"], "d")
        net.node("MatMul", ["d", net.weight("b", 16, 5)], "y")
        net.save(path, [("x", FLOAT, [8, 12])], [("y", FLOAT, [8, 5])])
        ingot.compile(path, pathlib.Path(at) / "out", train=True, loss="mse:y", optimizer="sgd")
        model = ingot.Model(pathlib.Path(at) / "out", cflags="-O1")
        random = np.random.default_rng(7)
        x, t = (random.standard_normal((8, n)).astype(np.float32) for n in (12, 5))
        near(
            "dropout",
            "run()",
            model(x),
            x.astype(float) @ net.weights["a"] @ net.weights["b"],
            1e-6,
        )
        losses = [model.step(x, t, 0).item() for _ in range(4)]
        model.reset()
        assert losses == [model.step(x, t, 0).item() for _ in range(4)], "dropout: after a reset"
        assert len(set(losses)) == 4, f"dropout: the same masks in each step: {losses}"
        states = model.states

        def loss(rate, **moved):
            model.reset()
            for name, way in moved.items():
                states[name][...] += way
            return model.step(x, t, rate).item()

        for name in "ab":
            way = random.standard_normal(states[name].shape).astype(np.float32)
            slope = (loss(0, **{name: 0.01 * way}) - loss(0, **{name: -0.01 * way})) / 0.02
            loss(1)
            found = ((net.weights[name] - states[name]) * way).sum()
            near("dropout", f"the gradient of {name}", found, slope, 1e-3)


def case_command():
    """`ingot bench --train` times a step, and the program of a bundle runs one: --function."""
    with tempfile.TemporaryDirectory() as at:
        at = pathlib.Path(at)
        net, forward, draw = mlp(at / "net.onnx")
        random = np.random.default_rng(11)
        x, t = draw(random), labels(random)

        def call(*words, code=0):
            p = subprocess.run([str(w) for w in words], capture_output=True, text=True,
                               env={**os.environ, "INGOT_CACHE": str(at / "cache")})  # fmt: skip
            assert p.returncode == code, f"command: {words}: {p.returncode}: {p.stderr}"
            return p.stdout if code == 0 else p.stderr

        usual = ["--train", "--loss", "cross_entropy:y", "--optimizer", "sgd"]
        bench = [os.environ["INGOT"], "bench", at / "net.onnx", "--seconds", "0"]
        told = json.loads(call(*bench, *usual))
        assert told["function"] == "train_step" and told["calls"] == 3, f"command: {told}"
        told = call(*bench, *usual, "--trace", at / "t.json", code=2)
        assert "--trace is of run alone" in told, f"command: {told}"
        program = next((at / "cache").glob("*/model"))
        assert "input  2: rate f32[]" in call(program, "--help"), "command: --help"
        (at / "in").mkdir()
        for i, a in enumerate([x, t]):
            np.save(at / f"in/input_{i}.npy", a)
        step = [program, "--function", "train_step", at / "in", at / "out"]
        assert "input_2.npy" in call(*step, code=2), "command: no rate"
        np.save(at / "in/input_2.npy", np.float32(0.1))
        call(*step)
        wanted = tape.cross_entropy(forward({n: Var(a) for n, a in net.weights.items()}, x), t)
        near("command", "the loss", np.load(at / "out/output_0.npy"), wanted.value, 2e-6)
        told = call(program, "--function", "nix", at / "in", at / "out", code=1)
        assert "there is no function 'nix'" in told, f"command: {told}"


def foreign(at):
    """What other frameworks say of training, and is nothing alone: refused by name."""
    model = onnx.load(at / "mlp.onnx")
    model.graph.node[0].op_type, model.graph.node[0].domain = "ReluGrad", "com.microsoft"
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, at / "grad.onnx")
    (at / "checkpoint").write_bytes(b"\x10\0\0\0ODTC" + bytes(64))
    for file, told in [
        ("grad.onnx", "(ReluGrad): operator not supported: com.microsoft version 1; it is of ONNX"),
        ("checkpoint", "a checkpoint of ONNX Runtime's training"),
    ]:
        p = subprocess.run(
            [os.environ["INGOT"], "check", at / file], capture_output=True, text=True
        )
        assert p.returncode and told in p.stderr, f"foreign: {file}: {p.stderr}"


def case_noise():
    """A weight that moves nothing: its gradient is what rounding leaves of 0. Whoever computes it
    in another order has another one, of which `verify` does not speak as of a fault."""
    with tempfile.TemporaryDirectory() as at:
        path, net, shape = pathlib.Path(at) / "m.onnx", Net(9), [8, 3, 16, 7]
        y = net.node("Add", ["x", net.weight("shift", 7)], "a")
        y = net.node("Softmax", [y], "s", axis=1)  # the same is added to all that it divides
        net.node("Mul", [y, net.weight("scale", 7)], "y")
        net.save(path, [("x", FLOAT, shape)], [("y", FLOAT, shape)])
        for optimizer in ("momentum", "adam"):
            told = verify(f"noise {optimizer}", path, target="c", loss="mse:y", optimizer=optimizer)
            assert "state shift.m compared with the interpreter's" in told, told
            assert "other roundings move it as far" in told, told
            assert not any(k in told for k in ("state scale.m", "state scale compared")), told


def case_errors():
    """What is asked for and cannot be: one message, which says what would be right."""
    with tempfile.TemporaryDirectory() as at:
        good, det = pathlib.Path(at) / "mlp.onnx", pathlib.Path(at) / "det.onnx"
        mlp(good)
        net = Net(8)
        y = net.node("MatMul", ["x", net.weight("first.weight", 3, 3)], "h")
        y = net.node("Det", [y], "volume")
        net.node("Mul", [y, net.weight("last.weight", 2)], "y")
        net.save(det, [("x", FLOAT, [2, 3, 3])], [("y", FLOAT, [2])])
        usual = {"loss": "mse:y", "optimizer": "sgd"}
        for file, options, told in [
            (good, {}, "--loss is missing"),
            (good, {"loss": "mse:y"}, "--optimizer is missing"),
            (good, {**usual, "loss": "mse:z"}, "the model has no output 'z'; there are: 'y'"),
            (good, {**usual, "loss": "y"}, "that output is more than one number"),
            (good, {**usual, "optimizer": "sgdw"}, "choose sgd, momentum, adam or adamw"),
            (good, {**usual, "optimizer": "sgd:speed=1"}, "rate=R"),
            (good, {**usual, "frozen": ["fc3.*"]}, "'fc3.*': no weight of the model"),
            (good, {**usual, "frozen": ["*"]}, "there is nothing to train"),
            (good, {**usual, "loss": "cross_entropy:y", "class_axis": 2}, "no axis 2"),
            (good, {**usual, "lora": "r=2:*.bias"}, "'*.bias': no weight of the model that a"),
            (good, {**usual, "lora": "r=0:*"}, "r=8:GLOB or r=8:alpha=16:GLOB is wanted"),
            (good, {**usual, "lora": "r=4:alpha=x:*"}, "r=8:GLOB or r=8:alpha=16:GLOB is wanted"),
            (good, {**usual, "target": "cuda:sm_80+c"}, "a model of several functions"),
            (det, usual, "node 'volume' (Det): gradient: there is no rule for 'det'"),
            (det, usual, "--frozen GLOB leaves the weights before them"),
        ]:
            try:
                ingot.compile(file, pathlib.Path(at) / "out", train=True, **options)
            except ingot.Error as e:
                assert told in str(e), f"errors: {options}: {e}"
            else:
                assert False, f"errors: {options} is taken"
            assert not (pathlib.Path(at) / "out").exists(), "errors: a bundle is left"
        try:
            ingot.compile(good, pathlib.Path(at) / "out", loss="mse:y")
        except ingot.UsageError as e:
            assert "are for --train" in str(e), str(e)
        foreign(pathlib.Path(at))
        m = ingot.train(det, frozen="first.*", cflags="-O1", **usual)
        x, t = np.eye(3, dtype=np.float32)[None].repeat(2, 0), np.ones(2, np.float32)
        losses = [m.step(x, t, 0.3).item() for _ in range(9)]
        assert losses[-1] < losses[0] and list(m.states) == ["last.weight", "train.step"]


CASES = {n[5:]: f for n, f in globals().items() if n.startswith("case_")}


def main(what, cases):
    parser = argparse.ArgumentParser()
    parser.add_argument("--ingot", required=True)
    parser.add_argument("cases", nargs="*")
    o = parser.parse_args()
    os.environ["INGOT"], wrong = o.ingot, 0
    chosen = o.cases or list(cases)
    for case in chosen:
        try:
            cases[case]()
        except (AssertionError, ingot.Error) as e:
            print(f"{case}: {e}")
            wrong += 1
    print(f"{what}: {wrong} of {len(chosen)} cases are wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main("training", CASES))
