#!/usr/bin/env python3
"""A keyword-spotting network small enough to be trained here, quantised to 8 bits as QDQ:
DIR/model.onnx and DIR/test_data_set_0.

    make_model.py DIR [learn]

A sound is 49 frames of 10 bands. There are four "words": a tone that rises, one that falls, two
beats, noise. Two convolutions with drawn weights make features of it, of which a layer that is
fitted by least squares makes scores.

learn: a network for learn.c. The scores are in f32, of weights that are fitted without one of the
words, the two beats; DIR/sounds.h has sounds for the board to learn from, and others to judge by.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

WORDS, FRAMES, BANDS = 4, 49, 10


def sounds(rng, n):
    label = rng.integers(0, WORDS, n)
    frame, band = np.mgrid[0:FRAMES, 0:BANDS]
    x = rng.normal(0, 0.3, (n, FRAMES, BANDS))
    for i, word in enumerate(label):
        at, width = rng.uniform(-4, 4), rng.uniform(0.7, 1.5)
        line = (frame + at) * BANDS / FRAMES
        if word == 0:
            x[i] += 2 * np.exp(-(((band - line) / width) ** 2))
        elif word == 1:
            x[i] += 2 * np.exp(-(((BANDS - band - line) / width) ** 2))
        elif word == 2:
            x[i] += 2 * np.exp(-(((frame - 14 - at) / 3) ** 2)) + 2 * np.exp(
                -(((frame - 34 - at) / 3) ** 2)
            )
        else:
            x[i] += rng.normal(0, 0.8, (FRAMES, BANDS))
    return x.astype(np.float32).reshape(n, FRAMES * BANDS), label


class Builder:
    def __init__(self):
        self.nodes, self.data = [], []

    def const(self, name, value):
        self.data.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def fake(self, x, name, scale, zero=0):
        """QuantizeLinear and back."""
        s, z = (
            self.const(name + "_scale", np.float32(scale)),
            self.const(name + "_zero", np.int8(zero)),
        )
        q = self.node("QuantizeLinear", [x, s, z], name + "_q")
        return self.node("DequantizeLinear", [q, s, z], name + "_dq")

    def weight(self, name, w):
        scale = np.float32(np.abs(w).max() / 127)
        q = self.const(name, np.clip(np.rint(w / scale), -127, 127).astype(np.int8))
        return self.node(
            "DequantizeLinear",
            [q, self.const(name + "_scale", scale), self.const(name + "_zero", np.int8(0))],
            name + "_dq",
        )


def network(conv1, conv2, dense, bias, learns=False):
    b = Builder()
    x = b.fake("sound", "in", 1 / 24)
    x = b.node(
        "Reshape", [x, b.const("shape", np.array([-1, 1, FRAMES, BANDS], np.int64))], "image"
    )
    x = b.node("Conv", [x, b.weight("conv1_w", conv1)], "conv1", pads=[1, 1, 1, 1], strides=[2, 2])
    x = b.fake(b.node("Relu", [x], "relu1"), "a1", 1 / 12, -128)
    x = b.node("Conv", [x, b.weight("conv2_w", conv2)], "conv2", pads=[1, 1, 1, 1], strides=[2, 1])
    x = b.fake(b.node("Relu", [x], "relu2"), "a2", 1 / 8, -128)
    x = b.fake(
        b.node("AveragePool", [x], "pool", kernel_shape=[4, 2], strides=[4, 2]), "a3", 1 / 24, -128
    )
    features = b.node("Flatten", [x], "features")
    outputs = [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", "f"])]
    if learns:
        head = [b.const("head.weight", dense), b.const("head.bias", bias)]
        b.node("Gemm", [features, *head], "scores", transB=1)
        outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, WORDS])]
    elif dense is not None:
        x = b.fake(
            b.node(
                "Gemm",
                [features, b.weight("dense_w", dense), b.const("dense_b", bias)],
                "dense",
                transB=1,
            ),
            "a4",
            1 / 40,
        )
        b.node("Softmax", [x], "word", axis=1)
        outputs = [helper.make_tensor_value_info("word", TensorProto.FLOAT, [1, WORDS])]
    n = "n" if dense is None else 1
    graph = helper.make_graph(
        b.nodes,
        "kws",
        [helper.make_tensor_value_info("sound", TensorProto.FLOAT, [n, FRAMES * BANDS])],
        outputs,
        b.data,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def fitted(conv1, conv2, known):
    """The layer of scores, by least squares on sounds of these words: weights, biases."""
    x, label = sounds(np.random.default_rng(1), 600)
    x, label = x[np.isin(label, known)], label[np.isin(label, known)]
    f = ReferenceEvaluator(network(conv1, conv2, None, None)).run(None, {"sound": x})[0]
    one = np.c_[f, np.ones(len(f))]
    want = 4 * np.eye(WORDS)[label] - 1
    fit = np.linalg.solve(one.T @ one + 0.5 * np.eye(one.shape[1]), one.T @ want)
    return fit[:-1].T.astype(np.float32), fit[-1].astype(np.float32)


def write_sounds(path):
    """For the board: eight sounds of each word to learn from, and 25 of each to judge by."""
    x, label = sounds(np.random.default_rng(3), 400)
    order = [np.flatnonzero(label == w)[:33] for w in range(WORDS)]
    chosen = [i[k] for k in range(33) for i in order]
    q = np.clip(np.rint(x[chosen] * 24), -128, 127).astype(np.int8)
    rows = ",\n".join("{" + ",".join(map(str, row)) + "}" for row in q)
    labels = ",".join(str(label[i]) for i in chosen)
    path.write_text(
        f"/* {len(chosen)} sounds, in 1/24, of which the first {8 * WORDS} are to learn from. */\n"
        f"enum {{ SOUNDS = {len(chosen)}, LESSONS = {8 * WORDS}, NEW_WORD = 2 }};\n"
        f"static const signed char sounds[SOUNDS][{FRAMES * BANDS}] = {{\n{rows}}};\n"
        f"static const unsigned char words[SOUNDS] = {{{labels}}};\n"
    )


def main():
    folder, learns = pathlib.Path(sys.argv[1]), sys.argv[2:] == ["learn"]
    rng = np.random.default_rng(1)
    conv1 = rng.normal(0, 0.35, (8, 1, 3, 3)).astype(np.float32)
    conv2 = rng.normal(0, 0.15, (16, 8, 3, 3)).astype(np.float32)
    known = [0, 1, 3] if learns else range(WORDS)
    model = network(conv1, conv2, *fitted(conv1, conv2, known), learns)
    run = ReferenceEvaluator(model)
    x, label = sounds(np.random.default_rng(2), 100)
    x, label = x[np.isin(label, known)], label[np.isin(label, known)]
    right = sum(int(run.run(None, {"sound": s[None]})[0].argmax()) == w for s, w in zip(x, label))
    print(f"{right} of {len(x)} sounds are heard right")
    if right < 0.9 * len(x):
        sys.exit("the network has not learned")
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(folder / "model.onnx"))
    np.save(data / "input_0.npy", x[:1])
    np.save(data / "output_0.npy", run.run(None, {"sound": x[:1]})[0])
    if learns:
        write_sounds(folder / "sounds.h")


main()
