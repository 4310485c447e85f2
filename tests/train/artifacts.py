#!/usr/bin/env python3
"""Files that say how they are trained: ONNX Runtime's artifacts, and TrainingInfoProto.

    artifacts.py --ingot build/ingot [CASE..]          5 s of a core
    artifacts.py --ingot build/ingot --ort PYTHON      networks of their usual size, beside it: minutes

artifacts.json has small artifacts that ONNX Runtime 1.19.2 made, and what it lost in each step
(artifacts_ort.py --record). `--ort`: a Python with onnxruntime-training-cpu and scikit-learn, which
makes others here.

Exit status 77, skipped: there is no numpy or no onnx, or PYTHON has no onnxruntime.training.
"""

import argparse
import base64
import json
import os
import pathlib
import random
import shutil
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

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
KEPT = json.loads((TREE / "tests/train/artifacts.json").read_text())


def lay(name, at, prefix=""):
    """The artifacts of that name as files; what ONNX Runtime saw."""
    kept = KEPT[name]
    at.mkdir(exist_ok=True)
    for file, text in kept["files"].items():
        (at / f"{prefix}{file}").write_bytes(base64.b64decode(text))
    x = [np.frombuffer(b.encode(), np.uint8).astype(np.float32) / 16 - 65 / 16 for b in kept["x"]]
    labels = np.array(kept["labels"])
    if name == "squares":
        labels = np.eye(10, dtype=np.float32)[labels]
    return kept, [b.reshape(kept["shape"]) for b in x], labels


def command(*words, code=0):
    p = subprocess.run([os.environ["INGOT"], *map(str, words)], capture_output=True, text=True)
    assert p.returncode == code, f"{words}: {p.returncode}: {p.stderr}"
    return p.stderr


def near(what, got, want, tolerance):
    worst = np.abs(np.array(got) - np.array(want)).max()
    assert worst <= tolerance, f"{what}: {worst:.2g} from what is wanted: {got}, {want}"


# ---- ONNX Runtime's artifacts ----------------------------------------------------------------


def case_losses():
    """Losses are ONNX Runtime's, from the first step and from a checkpoint in the middle; run() gives
    what the loss reads, without labels; what was trained goes into a file for inference."""
    for name in KEPT:
        with tempfile.TemporaryDirectory() as at:
            at = pathlib.Path(at)
            kept, x, labels = lay(name, at, "net_" if name == "small" else "")
            file = next(at.glob("*training_model.onnx"))
            m = ingot.train(file, cflags="-O0", target="c")
            first = {n: np.array(a) for n, a in m.states.items()}
            losses = [m.step(b, t, kept["rate"]).item() for b, t in zip(x, labels)]
            near(name, losses, kept["losses"], 2e-6)
            y = m(x[0])
            assert y.shape == (8, 10), f"{name}: run gives {y.shape}"
            states = set(m.states)
            if name == "norms":  # weights, and statistics that follow the batch
                assert {"c0.weight", "b1.var", "fc.bias"} < states, states
                assert np.abs(m.states["b1.var"] - first["b1.var"]).max() > 0.01, "norms: no batch"
            if name == "squares":  # the rest is frozen
                assert states == {"fc2.weight", "fc2.bias", "train.step"}, states
            if name != "squares":
                continue
            m.save(at / "trained.safetensors")
            command("merge", file, at / "trained.safetensors", "-o", at / "net.onnx")
            near("merge", ingot.load(at / "net.onnx", cflags="-O0", target="c")(x[0]), y, 1e-5)


def case_half():
    """From a checkpoint in the middle, with what the optimizer has kept."""
    with tempfile.TemporaryDirectory() as at:
        at = pathlib.Path(at)
        kept, x, labels = lay("small", at)
        (at / "checkpoint").write_bytes(base64.b64decode(kept["half"]))
        m = ingot.train(at / "training_model.onnx", cflags="-O0", target="c")
        assert m.states["train.step"] == 4 and np.abs(m.states["fc1.weight.v"]).max() > 0
        losses = [m.step(b, t, kept["rate"]).item() for b, t in zip(x[4:], labels[4:])]
        near("half", losses, kept["losses"][4:], 2e-6)


def case_errors():
    """What is missing or broken is told by name; options go before what files say."""
    with tempfile.TemporaryDirectory() as at:
        at = pathlib.Path(at)
        lay("small", at)
        file, out = at / "training_model.onnx", at / "out"

        def told(word, *options, command_="compile", model=file, code=2):
            words = [command_, model, "-o", out] if command_ == "compile" else [command_, model]
            text = command(*words, *options, code=code)
            assert word in text, f"errors: {options}: {text}"

        told("it is of ONNX Runtime's training artifacts: give the training_model.onnx",
             command_="check", model=at / "optimizer_model.onnx", code=4)  # fmt: skip
        told("a checkpoint of ONNX Runtime's training: give the training_model.onnx", command_="check",
             model=at / "checkpoint", code=3)  # fmt: skip
        told("no weight of the model has such a name", "--train", "--frozen", "fc3*")
        told("has no output 'loss'", "--train", "--loss", "mse:loss")
        optimizer = onnx.load(at / "optimizer_model.onnx")
        node = optimizer.graph.node[1]
        assert node.op_type == "AdamWOptimizer"
        node.op_type = "LambOptimizer"
        onnx.save(optimizer, at / "optimizer_model.onnx")
        told("(LambOptimizer) is not known", "--train")
        (at / "optimizer_model.onnx").unlink()
        told("--optimizer is missing", "--train")
        shutil.copy(file, at / "model.onnx")
        told("its name has to end in 'training_model.onnx'", model=at / "model.onnx")
        whole = (at / "checkpoint").read_bytes()
        (at / "checkpoint").write_bytes(whole[:400])
        told("checkpoint", code=3)
        (at / "checkpoint").unlink()
        told("'checkpoint' in the same folder cannot be read", code=3)
        (at / "checkpoint").write_bytes(whole)
        (at / "eval_model.onnx").unlink()
        told("eval_model.onnx' in the same folder cannot be read", code=3)


def case_mutated():
    """Changed bytes of any artifact: an answer, never a crash."""
    draw = random.Random(7)
    with tempfile.TemporaryDirectory() as at:
        at = pathlib.Path(at)
        for name in KEPT:
            lay(name, at)
            (at / "checkpoint").write_bytes(base64.b64decode(KEPT[name]["half"]))
            mutate(at, draw, 25)


def mutate(at, draw, count, ingot_path=None):
    """The files of a folder, one of them changed; an exit status that tells of a fault is one."""
    files = [f for f in at.iterdir() if f.is_file()]
    for k in range(count):
        file = draw.choice(files)
        whole = bytearray(file.read_bytes())
        changed = whole[: draw.randrange(len(whole))] if draw.random() < 0.15 else bytearray(whole)
        for _ in range(draw.choice([1, 1, 2, 5, 20])):
            if changed:
                near_end = draw.random() < 0.5  # where a FlatBuffer has its tables of fields
                i = (
                    draw.randrange(min(len(changed), 300))
                    if near_end
                    else draw.randrange(len(changed))
                )
                changed[i] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])
        file.write_bytes(changed)
        words = [ingot_path or os.environ["INGOT"], "inspect", at / "training_model.onnx"]
        words = draw.choice(
            [words, [*words[:1], "compile", *words[2:], "-o", at / "out", "--train", "-q"]]
        )
        p = subprocess.run(
            [str(w) for w in words], capture_output=True, text=True, errors="replace"
        )
        shutil.rmtree(at / "out", ignore_errors=True)
        sound = (
            0 <= p.returncode < 70
            and "Sanitizer" not in p.stderr
            and "runtime error" not in p.stderr
        )
        if not sound:
            shutil.copytree(at, f"/tmp/artifacts-{k}", dirs_exist_ok=True)
        assert sound, f"mutated: {words}: {p.returncode}: {p.stderr} (kept in /tmp/artifacts-{k})"
        file.write_bytes(whole)


# ---- TrainingInfoProto -----------------------------------------------------------------------


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def with_step(path, initialized=False, change=None):
    """y = x W, and a step of its own: mean squares, Momentum, a count of steps."""
    preview = "ai.onnx.preview.training"
    weights = np.random.default_rng(0).standard_normal((3, 2)).astype(np.float32)
    net = helper.make_graph(
        [helper.make_node("MatMul", ["x", "W"], ["y"])], "net", [value("x", FLOAT, [4, 3])],
        [value("y", FLOAT, [4, 2])], [numpy_helper.from_array(weights, "W")],
    )  # fmt: skip
    nodes = [
        helper.make_node("Sub", ["y", "target"], ["d"]),
        helper.make_node("Mul", ["d", "d"], ["square"]),
        helper.make_node("ReduceMean", ["square"], ["cost"], keepdims=0),
        helper.make_node("Gradient", ["W", "x", "target"], ["slope"], domain=preview, xs=["W"],
                         zs=["x", "target"], y="cost"),
        helper.make_node("Momentum", ["speed", "T", "W", "slope", "V"], ["W2", "V2"], domain=preview,
                         alpha=0.9, beta=1.0, mode="standard", norm_coefficient=0.0),
        helper.make_node("Add", ["T", "one"], ["T2"]),
    ]  # fmt: skip
    step = helper.make_graph(
        nodes, "step", [value("target", FLOAT, [4, 2]), value("speed", FLOAT, [])],
        [value("cost", FLOAT, []), value("W2", FLOAT, [3, 2]), value("V2", FLOAT, [3, 2]),
         value("T2", INT64, [])],
        [numpy_helper.from_array(np.zeros((3, 2), np.float32), "V"),
         numpy_helper.from_array(np.array(0), "T"), numpy_helper.from_array(np.array(1), "one")],
    )  # fmt: skip
    model = helper.make_model(
        net,
        opset_imports=[helper.make_opsetid("", 15), helper.make_opsetid(preview, 1)],
        ir_version=8,
    )
    info = model.training_info.add()
    info.algorithm.CopyFrom(step)
    for key in ("W", "V", "T"):
        info.update_binding.add(key=key, value=f"{key}2")
    if initialized:
        first = helper.make_node("RandomNormal", [], ["W0"], shape=[3, 2], seed=3.0, scale=0.5)
        info.initialization.CopyFrom(
            helper.make_graph([first], "first", [], [value("W0", FLOAT, [3, 2])])
        )
        info.initialization_binding.add(key="W", value="W0")
    if change:
        change(model)
    onnx.save(model, path)
    return weights


def case_own_step():
    """A step that the file has itself, with first values of the file and drawn ones."""
    x, target = np.random.default_rng(1).standard_normal((2, 4, 3)).astype(np.float32)
    target = target[:, :2]
    for initialized in (False, True):
        with tempfile.TemporaryDirectory() as at:
            file = pathlib.Path(at) / "net.onnx"
            weights = with_step(file, initialized)
            m = ingot.train(file, cflags="-O0", target="c")
            assert set(m.states) == {"W", "V", "T"}, m.states
            w, v = np.array(m.states["W"]), 0
            assert np.array_equal(w, weights) != initialized and np.abs(w).max() < 3
            for _ in range(4):
                d = x @ w - target
                near("own step", m.step(x, target, 0.1), (d * d).mean(), 1e-6)
                v = 0.9 * v + x.T @ d * 2 / d.size
                w = w - 0.1 * v
            near("own step: weights", m.states["W"], w, 1e-6)
            assert m.states["T"] == 4
            near("own step: run", m(x), x @ w, 1e-6)


def case_own_errors():
    """A step that is broken is refused, and the fault is named."""

    def binding(key, value):
        def change(model):
            model.training_info[0].update_binding[0].key = key
            model.training_info[0].update_binding[0].value = value

        return change

    def first(model):
        model.training_info[0].initialization_binding[0].key = "V"

    with tempfile.TemporaryDirectory() as at:
        at = pathlib.Path(at)
        for change, initialized, word, code in [
            (binding("T", "W2"), False, "'T' is given two new values", 3),
            (binding("U", "W2"), False, "'U' is given a new value, and is no initializer", 3),
            (binding("W", "T2"), False, "'W' is given a new value of another type or shape", 3),
            (binding("W", "Z"), False, "'Z' is to be a new value, and no tensor", 3),
            (lambda m: m.training_info.append(m.training_info[0]), False, "2 steps", 4),
            (lambda m: m.training_info[0].ClearField("initialization"), True, "initialization", 3),
            (lambda m: m.training_info[0].initialization.node[0].input.append("x"), True, "'x'", 3),
        ]:
            with_step(at / "net.onnx", initialized, change)
            told = command("compile", at / "net.onnx", "-o", at / "out", "--train", code=code)
            assert word in told, f"own errors: {word}: {told}"
        with_step(at / "net.onnx")
        told = command(
            "compile", at / "net.onnx", "-o", at / "out", "--train", "--optimizer", "sgd", code=2
        )
        assert "the file has a step of its own" in told, told
        told = command("compile", at / "net.onnx", "-o", at / "out", "--train", "--loss", "mse:y",
                       "--optimizer", "sgd")  # fmt: skip
        assert "which is not taken" in told, told


# ---- larger networks -------------------------------------------------------------------------


def batch_norm(x, scale, bias, _mean, _var):
    d = x - x.mean((0, 2, 3), True)
    d = d * ((d * d).mean((0, 2, 3), True) + 1e-5) ** -0.5
    return d * scale.reshape(1, -1, 1, 1) + bias.reshape(1, -1, 1, 1)


def conv(x, w, bias=None, strides=(1, 1), pads=(0, 0, 0, 0), group=1, **_):
    y = tape.conv(x, w, strides[0], pads[0], group > 1)
    return y + bias.reshape(1, -1, 1, 1) if bias else y


def clip(x, lo, hi):
    inside = (x.value >= lo.value) & (x.value <= hi.value)
    return tape.elementwise(x, np.clip(x.value, lo.value, hi.value), inside)


WIDE = {
    "Conv": conv,
    "BatchNormalization": lambda *x, **_: batch_norm(*x),
    "Clip": clip,
    "Relu": tape.relu,
    "MaxPool": lambda x, kernel_shape, strides: tape.max_pool(
        x, kernel_shape, strides[0], ((0, 0), (0, 0))
    ),
    "Flatten": lambda x: x.reshape(x.shape[0], -1),
    "GlobalAveragePool": lambda x: x.mean((2, 3), True),
    "Add": lambda a, b: a + b,
    "Gemm": lambda a, b, c, transB: a @ b.transpose(1, 0) + c,
}


def wide_losses(file, seen):
    """Losses of the same steps (SGD, cross entropy) in f64, by numpy."""
    graph, rate = onnx.load(file).graph, float(seen["rate"])
    w = {t.name: tape.Var(numpy_helper.to_array(t)) for t in graph.initializer}
    losses = []
    for x, labels in zip(seen["x"], seen["labels"]):
        v = {**w, "x": tape.Var(x)}
        for node in graph.node:
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            attributes.pop("training_mode", None)
            v[node.output[0]] = WIDE[node.op_type](*(v[i] for i in node.input), **attributes)
        loss = tape.cross_entropy(v["scores"], labels)
        loss.backward()
        losses.append(float(loss.value))
        for name in seen["trained"]:
            w[name] = tape.Var(w[name].value - rate * w[name].grad)
    return np.array(losses)


def beside_ort(python, steps):
    """Networks of their usual size: losses of ONNX Runtime's steps, and ours. Rounding that a network
    magnifies is told apart by losses in f64: ours are no further from those than twice its own."""
    script = TREE / "tests/train/artifacts_ort.py"
    if subprocess.run(
        [python, "-c", "import onnxruntime.training.api"], capture_output=True
    ).returncode:
        probe = f"import runpy; runpy.run_path({str(script)!r})"
        p = subprocess.run([python, "-c", probe], capture_output=True, text=True)
        if p.returncode:
            print(f"skipped: {python} has no onnxruntime.training: {p.stderr.splitlines()[-1]}")
            sys.exit(77)
    for name, count in steps:
        with tempfile.TemporaryDirectory() as at:
            at = pathlib.Path(at)
            subprocess.run([python, script, name, at, str(count)], check=True, capture_output=True)
            seen = np.load(at / "seen.npz")
            for file, first in [(at, 0), (at / "half", count // 2)]:
                m = ingot.train(file / "training_model.onnx", cflags="-O2",
                                dim=[f"batch={seen['x'].shape[1]}"])  # fmt: skip
                losses = [m.step(seen["x"][k], seen["labels"][k], seen["rate"]).item()
                          for k in range(first, count)]  # fmt: skip
                theirs = seen["losses"][first:]
                worst = off(losses, theirs)
                told = (
                    f"{name:16} steps {first:2} to {count}: {worst:.1e} from ONNX Runtime's losses"
                )
                good = worst <= 1e-3
                if not good and not first:
                    wide = wide_losses(at / "net.onnx", seen)
                    ours, its = off(losses, wide), off(theirs, wide)
                    told += f"; from those in f64 {ours:.1e}, its own {its:.1e}"
                    good = ours <= 2 * its
                print(told, flush=True)
                assert good, f"{name}: {losses}, {theirs.tolist()}"


def off(got, wanted):
    return (np.abs(np.array(got) - wanted) / np.abs(wanted)).max()


CASES = {n[5:]: f for n, f in globals().items() if n.startswith("case_")}


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--ingot", default="build/ingot")
    args.add_argument("--ort", metavar="PYTHON")
    args.add_argument("--mutate", type=int, help="so many changed files of each")
    args.add_argument("cases", nargs="*")
    args = args.parse_args()
    os.environ["INGOT"] = str(pathlib.Path(args.ingot).resolve())
    if args.ort:
        beside_ort(args.ort, [("mlp", 40), ("cnn", 40), ("mobilenet_last", 20), ("mobilenet", 20)])
        return
    if args.mutate:
        for name in KEPT:
            with tempfile.TemporaryDirectory() as at:
                at = pathlib.Path(at)
                lay(name, at)
                (at / "checkpoint").write_bytes(base64.b64decode(KEPT[name]["half"]))
                mutate(at, random.Random(name), args.mutate)
        print(f"{args.mutate * len(KEPT)} changed files, no fault")
        return
    for name in args.cases or CASES:
        CASES[name]()
        print(f"{name}: good")


if __name__ == "__main__":
    main()
