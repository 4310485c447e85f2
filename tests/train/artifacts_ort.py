"""ONNX Runtime's on-device training: makes artifacts of networks, trains them, and keeps what it saw.

    artifacts_ort.py NAME FOLDER [STEPS]     by a Python with onnxruntime-training-cpu, scikit-learn
    artifacts_ort.py --record FILE           all small ones, as artifacts.py reads them

FOLDER has the network (net.onnx), the artifacts, `half/` the same with the checkpoint after half of the steps,
and seen.npz: batches, labels, losses, the names of weights that are trained. No PyTorch is needed.
"""

import base64
import importlib.machinery
import json
import os
import pathlib
import shutil
import sys
import tempfile
import types

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

# onnxruntime.training reads torch for its other half: without that.
package = types.ModuleType("onnxruntime.training")
package.__path__ = [os.path.join(os.path.dirname(onnxruntime.__file__), "training")]
package.__spec__ = importlib.machinery.ModuleSpec("onnxruntime.training", None, is_package=True)
sys.modules["onnxruntime.training"] = package
from onnxruntime.training import artifacts, onnxblock  # noqa: E402
from onnxruntime.training.api import CheckpointState, Module, Optimizer  # noqa: E402


class Net:
    """A network: weights, nodes, which weights are statistics."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.weights, self.nodes, self.statistics = {}, [], []

    def weight(self, name, *shape, terms=None):
        scale = np.sqrt(2 / (terms or np.prod(shape[1:])))
        self.weights[name] = (self.random.standard_normal(shape) * scale).astype(np.float32)
        return name

    def number(self, name, value, *shape):
        self.weights[name] = np.full(shape, value, np.float32)
        return name

    def node(self, op, inputs, output=None, **attributes):
        output = output or f"v{len(self.nodes)}"
        more = [f"{output}.mean", f"{output}.var"] if op == "BatchNormalization" else []
        self.nodes.append(helper.make_node(op, inputs, [output, *more], name=output, **attributes))
        return output

    def conv(self, x, name, out, channels, size, stride=1, group=1, bias=False):
        terms = out * size * size / group if group > 1 else None
        inputs = [x, self.weight(f"{name}.weight", out, channels // group, size, size, terms=terms)]
        if bias:
            inputs.append(self.number(f"{name}.bias", 0.0, out))
        return self.node("Conv", inputs, kernel_shape=[size] * 2, pads=[size // 2] * 4,
                         strides=[stride] * 2, group=group)  # fmt: skip

    def norm(self, x, name, channels):
        inputs = [self.number(f"{name}.{part}", value, channels)
                  for part, value in [("weight", 1), ("bias", 0), ("mean", 0), ("var", 1)]]  # fmt: skip
        self.statistics += inputs[2:]
        return self.node("BatchNormalization", [x, *inputs], training_mode=1)

    def linear(self, x, name, out, channels, output=None):
        inputs = [
            x,
            self.weight(f"{name}.weight", out, channels),
            self.number(f"{name}.bias", 0.0, out),
        ]
        return self.node("Gemm", inputs, output, transB=1)

    def model(self, shape, classes, batch):
        def value(name, dims):
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, *dims])

        values = [numpy_helper.from_array(a, n) for n, a in self.weights.items()]
        graph = helper.make_graph(
            self.nodes, "net", [value("x", shape)], [value("scores", [classes])], values
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def mlp(net, inside=128, inputs=784):
    y = net.node("Relu", [net.linear("x", "fc1", inside, inputs)])
    net.linear(y, "fc2", 10, inside, "scores")
    return [inputs]


def small(net):
    return mlp(net, 12, 64)


def cnn(net):
    y = "x"
    for i, (out, channels) in enumerate([(32, 1), (64, 32)]):
        y = net.node("Relu", [net.conv(y, f"conv{i}", out, channels, 3, bias=True)])
        y = net.node("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2])
    net.linear(net.node("Flatten", [y]), "fc", 10, 3136, "scores")
    return [1, 28, 28]


def norms(net):
    """Two convolutions with batch norm, of images of 8x8."""
    y = net.conv("x", "c0", 4, 1, 3)
    y = net.node("Relu", [net.norm(y, "b0", 4)])
    y = net.conv(y, "c1", 6, 4, 3, 2)
    y = net.node("Relu", [net.norm(y, "b1", 6)])
    y = net.node("Flatten", [net.node("GlobalAveragePool", [y])])
    net.linear(y, "fc", 10, 6, "scores")
    return [1, 8, 8]


def mobilenet(net, size=96):
    """MobileNetV2; what is added to a block's input begins as zero."""
    zero, six = net.number("zero", 0.0), net.number("six", 6.0)

    def block(x, name, out, channels, kernel, stride=1, group=1, clip=True):
        y = net.norm(net.conv(x, name, out, channels, kernel, stride, group), f"{name}.norm", out)
        return net.node("Clip", [y, zero, six]) if clip else y

    y, channels, k = block("x", "first", 32, 3, 3, 2), 32, 0
    for factor, out, count, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                       (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:  # fmt: skip
        for i in range(count):
            x, inner, step = y, channels * factor, stride if i == 0 else 1
            if factor > 1:
                y = block(y, f"{k}.in", inner, channels, 1)
            y = block(y, f"{k}.by", inner, inner, 3, step, inner)
            y = block(y, f"{k}.out", out, inner, 1, clip=False)
            if step == 1 and channels == out:
                net.weights[f"{k}.out.norm.weight"][:] = 0
                y = net.node("Add", [x, y])
            channels, k = out, k + 1
    y = net.node("GlobalAveragePool", [block(y, "last", 1280, channels, 1)])
    net.linear(net.node("Flatten", [y]), "fc", 10, 1280, "scores")
    return [3, size, size]


def adamw(**options):
    return lambda: onnxblock.optim.AdamW(**options)


CLIPPED = {"weight_decay": 0.05, "betas": (0.8, 0.95), "eps": 1e-4}
CASES = {  # network, optimizer, rate, batch, loss, which weights are trained
    "small": (small, adamw(**CLIPPED, clip_grad=onnxblock.optim.ClipGradNorm(0.5)), 0.02, 8, "CrossEntropyLoss", ""),
    "norms": (norms, onnxblock.optim.SGD, 0.1, 8, "CrossEntropyLoss", ""),
    "squares": (small, onnxblock.optim.SGD, 0.05, 8, "MSELoss", "fc2"),
    "mlp": (mlp, onnxblock.optim.AdamW, 1e-3, 32, "CrossEntropyLoss", ""),
    "cnn": (cnn, onnxblock.optim.SGD, 0.05, 32, "CrossEntropyLoss", ""),
    "mobilenet": (mobilenet, onnxblock.optim.SGD, 1e-3, 16, "CrossEntropyLoss", ""),
    "mobilenet_last": (mobilenet, onnxblock.optim.AdamW, 1e-3, 16, "CrossEntropyLoss", "fc"),
}  # fmt: skip
SMALL = ["small", "norms", "squares"]


def digits():
    from sklearn.datasets import load_digits

    data = load_digits()
    return data.images.astype(np.float32) / 16, data.target.astype(np.int64)


def batch_of(random, shape, count, data):
    """Digits as images of that shape, as large as they have to be; noise where they have colours."""
    images, labels = data
    which = random.integers(0, len(images), count)
    x, size = images[which], shape[-1] if len(shape) > 1 else int(shape[0] ** 0.5)
    place = np.arange(size) * 8 // size
    x = x[:, place][:, :, place].reshape(count, 1, size, size)
    if len(shape) > 1 and shape[0] == 3:
        x = x + 0.5 * random.standard_normal((count, *shape))
    return x.reshape(count, *shape).astype(np.float32), labels[which]


def train(name, folder, steps, batch="batch"):
    make, optimizer, rate, count, loss, trained = CASES[name]
    net = Net(3)
    shape = make(net)
    real = [n for n, a in net.weights.items() if a.ndim and n not in net.statistics]
    wanted = [n for n in real if n.startswith(trained)]
    folder.mkdir(parents=True, exist_ok=True)
    model = net.model(shape, 10, batch)
    onnx.save(model, folder / "net.onnx")
    artifacts.generate_artifacts(
        model, requires_grad=wanted,
        frozen_params=[n for n, a in net.weights.items() if a.ndim and n not in wanted],
        loss=getattr(artifacts.LossType, loss), optimizer=optimizer(), artifact_directory=folder,
    )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    state = CheckpointState.load_checkpoint(str(folder / "checkpoint"))
    module = Module(str(folder / "training_model.onnx"), state, session_options=options)
    by = Optimizer(str(folder / "optimizer_model.onnx"), module)
    by.set_learning_rate(rate)
    random, data = np.random.default_rng(5), digits()
    seen = {"x": [], "labels": [], "losses": []}
    for k in range(steps):
        if k == steps // 2:
            half = folder / "half"
            half.mkdir(exist_ok=True)
            for file in folder.glob("*.onnx"):
                shutil.copy(file, half)
            CheckpointState.save_checkpoint(state, str(half / "checkpoint"), True)
        x, labels = batch_of(random, shape, count, data)
        labels = labels if loss == "CrossEntropyLoss" else np.eye(10, dtype=np.float32)[labels]
        seen["x"].append(x)
        seen["labels"].append(labels)
        seen["losses"].append(float(module(x, labels)))
        by.step()
        module.lazy_reset_grad()
    np.savez(folder / "seen.npz", rate=np.float32(rate), trained=wanted, **seen)


def text_of(path):
    return base64.b64encode(path.read_bytes()).decode()


def record(file):
    found = {}
    for name in SMALL:
        with tempfile.TemporaryDirectory() as at:
            at = pathlib.Path(at)
            train(name, at, 8, CASES[name][3])
            seen = np.load(at / "seen.npz")
            files = [at / f"{n}_model.onnx" for n in ("training", "eval", "optimizer")]
            found[name] = {
                "rate": float(seen["rate"]),
                "losses": seen["losses"].tolist(),
                "labels": seen["labels"].tolist() if seen["labels"].ndim == 2 else seen["labels"].argmax(2).tolist(),
                # digits have 17 values
                "x": ["".join(chr(65 + round(v * 16)) for v in x.ravel()) for x in seen["x"]],
                "shape": list(seen["x"].shape[1:]),
                "files": {f.name: text_of(f) for f in [*files, at / "checkpoint"]},
                "half": text_of(at / "half/checkpoint"),
            }  # fmt: skip
    pathlib.Path(file).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "--record":
        record(sys.argv[2])
    else:
        steps = int(sys.argv[3]) if len(sys.argv) > 3 else 20
        train(sys.argv[1], pathlib.Path(sys.argv[2]), steps)
