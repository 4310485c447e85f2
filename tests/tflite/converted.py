#!/usr/bin/env python3
"""Makes TensorFlow Lite models as their users do: with TensorFlow's converter and Google's quantizer.

    converted.py FOLDER [--filter NAME]             then: models.py --values .. FOLDER

Networks of Keras with random weights, and functions with variables, branches, loops, tables and
several signatures, in f32 and quantised in each way that the converters know.
Exit status 77, skipped: there is no tensorflow (ai-edge-quantizer: its models alone are left out).
"""

import argparse
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
try:
    import numpy as np
    import tensorflow as tf
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

K = tf.keras
L = K.layers
SIDE = 64
IMAGE = (SIDE, SIDE, 3)


def lively(net):
    """Random weights as they are after training: what is 0 or 1 at first is not."""
    r = np.random.default_rng(1)
    for layer in net.layers:
        if isinstance(layer, L.BatchNormalization):
            of = [r.uniform(0.5, 1.5, w.shape) for w in layer.get_weights()]
            layer.set_weights(of)
    return net


def stacked(shape, *layers):
    x = i = K.Input(shape, 1)
    for layer in layers:
        x = layer(x)
    return K.Model(i, x)


def image(make, **how):
    return lively(make(input_shape=IMAGE, weights=None, classes=10, **how))


def attention():
    i = K.Input((16, 32), 1)
    x = L.LayerNormalization()(L.MultiHeadAttention(4, 8)(i, i) + i)
    x = L.Dense(32)(L.Dense(64, activation="gelu")(x)) + x
    return K.Model(i, L.LayerNormalization()(x))


def branches():
    i = K.Input((24, 24, 4), 1)
    a = L.Conv2D(8, 3, 2, "same", activation="relu6")(i)
    b = L.AveragePooling2D(2)(L.SeparableConv2D(8, 3, padding="same", activation="swish")(i))
    c = L.MaxPooling2D(2)(L.Conv2D(8, 3, dilation_rate=2, padding="same")(i))
    x = L.Concatenate()([a + b, L.PReLU()(c), L.LeakyReLU()(b)])
    x = L.UpSampling2D(2, interpolation="bilinear")(x)
    x = L.Conv2DTranspose(4, 3, 2, "same", activation="tanh")(x)
    return K.Model(i, [x, L.GlobalAveragePooling2D()(x), L.GlobalMaxPooling2D()(x)])


def signal():
    return stacked(
        (64, 6),
        L.Conv1D(8, 5, 2, "same", activation="relu"),
        L.Conv1D(8, 3, padding="causal", dilation_rate=2, activation="elu"),
        L.MaxPooling1D(2),
        L.Flatten(),
        L.Dense(12, activation="sigmoid"),
        L.Dense(5, activation="softmax"),
    )


def words():
    i = K.Input((12,), 1, dtype=tf.int32)
    x = L.GlobalAveragePooling1D()(L.Embedding(50, 16)(i))
    return K.Model(i, L.Dense(4, activation="softmax")(x))


NETS = {
    "branches": branches,
    "volume": lambda: stacked((6, 8, 8, 2), L.Conv3D(4, 3, activation="relu"), L.Conv3D(2, 1)),
    "signal": signal,
    "attention": attention,
    "dense": lambda: stacked((64,), L.Dense(32, activation="relu"), L.Dense(10)),
    "words": words,
    "lstm": lambda: stacked((10, 8), L.LSTM(16, return_sequences=True), L.LSTM(12), L.Dense(4)),
    "lstm_two_ways": lambda: stacked((10, 8), L.Bidirectional(L.LSTM(12)), L.Dense(4)),
    "gru": lambda: stacked((10, 8), L.GRU(16, return_sequences=True), L.GRU(12), L.Dense(4)),
    "gru_unrolled": lambda: stacked((5, 8), L.GRU(12, unroll=True), L.Dense(4)),
    "rnn": lambda: stacked((10, 8), L.SimpleRNN(16), L.Dense(4)),
    "conv_lstm": lambda: stacked((4, 8, 8, 2), L.ConvLSTM2D(4, 3, padding="same")),
    "mobilenet": lambda: image(K.applications.MobileNet, alpha=0.25),
    "mobilenet_v2": lambda: image(K.applications.MobileNetV2, alpha=0.35),
    "mobilenet_v3": lambda: image(K.applications.MobileNetV3Small, minimalistic=False),
    "efficientnet_b0": lambda: image(K.applications.EfficientNetB0),
    "efficientnet_v2": lambda: image(K.applications.EfficientNetV2B0),
    "resnet50": lambda: image(K.applications.ResNet50),
    "densenet121": lambda: image(K.applications.DenseNet121),
}
USUAL = ("f32", "dynamic", "f16", "int8", "int16x8")
IN_EACH_WAY = ("dense", "branches", "attention")


def samples(net):
    r = np.random.default_rng(2)
    for _ in range(8):
        yield [
            r.integers(0, 50, shape).astype(np.int32)
            if i.dtype == "int32"
            else r.uniform(-1, 1, shape).astype(np.float32)
            for i in net.inputs
            for shape in [
                [n or 1 for n in i.shape]
            ]  # the networks of images leave their batch open
        ]


def quantised(c, net, ops):
    c.optimizations = [tf.lite.Optimize.DEFAULT]
    c.representative_dataset = lambda: samples(net)
    c.target_spec.supported_ops = ops


def as_f32(c, net):
    pass


def as_dynamic(c, net):
    c.optimizations = [tf.lite.Optimize.DEFAULT]


def as_f16(c, net):
    c.optimizations = [tf.lite.Optimize.DEFAULT]
    c.target_spec.supported_types = [tf.float16]


def as_int8(c, net):
    quantised(c, net, [tf.lite.OpsSet.TFLITE_BUILTINS_INT8])
    if all(i.dtype != "int32" for i in net.inputs):
        c.inference_input_type = c.inference_output_type = tf.int8


def as_int8_mixed(c, net):
    """What has no int8 kernel stays in floats, as inputs and outputs."""
    quantised(c, net, [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.TFLITE_BUILTINS_INT8])


def as_uint8_io(c, net):
    as_int8(c, net)
    if all(i.dtype != "int32" for i in net.inputs):
        c.inference_input_type = c.inference_output_type = tf.uint8


def as_int8_per_tensor(c, net):
    as_int8(c, net)
    c._experimental_disable_per_channel = True


def as_int16x8(c, net):
    both = "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
    quantised(c, net, [getattr(tf.lite.OpsSet, both), tf.lite.OpsSet.TFLITE_BUILTINS])


def as_offsets(c, net):
    """Weights behind the FlatBuffer, as in files beyond 2 GB."""
    c._experimental_use_buffer_offset = True


WAYS = {k[3:]: v for k, v in globals().items() if k.startswith("as_") and callable(v)}


class Detector(tf.Module):
    def __init__(self):
        options = (
            'name: "TFLite_Detection_PostProcess" attr { key: "max_detections" value { i: 5 } } '
            'attr { key: "max_classes_per_detection" value { i: 1 } } '
            'attr { key: "nms_score_threshold" value { f: 0.2 } } '
            'attr { key: "nms_iou_threshold" value { f: 0.5 } } '
            'attr { key: "num_classes" value { i: 3 } } '
            'attr { key: "use_regular_nms" value { b: false } } '
            'attr { key: "y_scale" value { f: 10.0 } } attr { key: "x_scale" value { f: 10.0 } } '
            'attr { key: "h_scale" value { f: 5.0 } } attr { key: "w_scale" value { f: 5.0 } }'
        )

        @tf.function(
            input_signature=[tf.TensorSpec(s) for s in ((1, 30, 4), (1, 30, 4), (30, 4))],
            experimental_implements=options,
        )
        def detect(boxes, scores, anchors):
            return (boxes[:, :5], scores[:, :5, 0], scores[:, :5, 1], scores[:, 0, 2])

        at = np.random.default_rng(3).uniform(0.2, 0.8, (30, 4)).astype(np.float32)
        self.anchors, self.post = tf.constant(at), detect

    @tf.function(input_signature=[tf.TensorSpec((1, 30, 4)), tf.TensorSpec((1, 30, 4))])
    def detect(self, boxes, scores):
        return self.post(boxes, tf.nn.sigmoid(scores), self.anchors)


def functions():
    """Of each name: a converter of functions of TensorFlow."""
    out = {}

    def made(name, module, sets=(tf.lite.OpsSet.TFLITE_BUILTINS,), **functions):
        def convert():
            concrete = [f.get_concrete_function() for f in functions.values()]
            c = tf.lite.TFLiteConverter.from_concrete_functions(concrete, module)
            if len(functions) > 1 or name == "signature":
                folder = tempfile_of(name)
                tf.saved_model.save(module, folder, signatures=functions)
                c = tf.lite.TFLiteConverter.from_saved_model(folder)
            c.target_spec.supported_ops = list(sets)
            c.allow_custom_ops = True
            return c

        out[name] = convert

    f32 = tf.TensorSpec((1, 8), tf.float32)

    class Counter(tf.Module):
        def __init__(self):
            self.sum = tf.Variable(tf.ones((1, 8)))

        @tf.function(input_signature=[f32])
        def add(self, x):
            return {"sum": self.sum.assign_add(x)}

        @tf.function(input_signature=[f32])
        def scaled(self, x):
            return {"product": self.sum * x}

    m = Counter()
    made("variables", m, add=m.add, scaled=m.scaled)

    class Loop(tf.Module):
        @tf.function(input_signature=[f32])
        def loop(self, x):
            go_on = lambda i, y: tf.logical_and(i < 10, tf.reduce_sum(tf.abs(y)) < 50)  # noqa: E731
            return tf.while_loop(go_on, lambda i, y: (i + 1, y * 1.5 + 0.1), (0, x))[1]

        @tf.function(input_signature=[f32])
        def branch(self, x):
            return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sort(x), lambda: tf.exp(x))

    m = Loop()
    made("while", m, loop=m.loop)
    made("if", m, branch=m.branch)
    made("signature", m, loop=m.loop, branch=m.branch)

    class Other(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((1, 6, 9), tf.float32)])
        def picks(self, x):
            top = tf.math.top_k(x, 3)
            at = tf.argmax(x, -1, tf.int32)
            return (
                top.values,
                top.indices,
                tf.gather(x, at, axis=-1),
                tf.cumsum(x, 1),
                tf.one_hot(at, 9),
            )

        @tf.function(input_signature=[tf.TensorSpec((4, 64), tf.float32)])
        def spectrum(self, x):
            return tf.abs(tf.signal.rfft(x * 0.5))

        @tf.function(input_signature=[tf.TensorSpec((20, 4)), tf.TensorSpec((20,))])
        def boxes(self, b, s):
            two = tf.abs(b[:, :2])
            box = tf.concat([two, two + 0.5 + tf.abs(b[:, 2:])], 1)
            return tf.image.non_max_suppression_padded(box, s, 5, 0.3, pad_to_max_output_size=True)

        @tf.function(input_signature=[tf.TensorSpec((3, 4, 5)), tf.TensorSpec((3, 5, 2))])
        def einsum(self, a, b):
            return tf.einsum("bij,bjk->bki", a, b), tf.linalg.matmul(a, a, transpose_b=True)

        @tf.function(input_signature=[tf.TensorSpec((1, 4, 4, 8))])
        def moves(self, x):
            y = tf.nn.depth_to_space(x, 2), tf.nn.space_to_depth(x, 2), tf.reverse(x, [1])
            z = tf.pad(x, [[0, 0], [1, 2], [2, 1], [0, 0]], "REFLECT"), tf.roll(x, 1, 2)
            w = (
                tf.strided_slice(x, [0, 3, 0, 0], [1, 0, 4, 8], [1, -1, 2, 3]),
                tf.tile(x, [1, 2, 1, 1]),
            )
            return (*y, *z, *w, tf.image.resize(x, (7, 5)), tf.image.resize(x, (8, 8), "nearest"))

        @tf.function(input_signature=[tf.TensorSpec((1, 8), tf.float32)])
        def flex(self, x):
            return tf.raw_ops.Erfinv(x=x * 0.5) + tf.math.special.dawsn(x)

    m = Other()
    for name in ("picks", "spectrum", "boxes", "einsum", "moves"):
        made(name, m, **{name: getattr(m, name)})
    made("flex", m, (tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS), flex=m.flex)

    m = Detector()
    made("detection", m, detect=m.detect)
    return out


def tempfile_of(name):
    import tempfile

    return tempfile.mkdtemp(prefix=f"ingot-{name}-")


def recipes():
    """Ways of Google's quantizer: of each name, what it makes of a model in f32."""
    try:
        from ai_edge_quantizer import quantizer, recipe
    except ModuleNotFoundError:
        return {}
    out = {}

    def of(name, recipe_of, calibrated=False):
        def convert(f32, net):
            q = quantizer.Quantizer(f32, recipe_of())
            data = None
            if calibrated:
                from ai_edge_litert.interpreter import Interpreter

                runner = Interpreter(model_content=f32).get_signature_list()
                key = next(iter(runner))
                names = runner[key]["inputs"]
                data = q.calibrate({key: [dict(zip(names, s)) for s in samples(net)]})
            return bytes(q.quantize(data).quantized_model)

        out[name] = convert

    of("q_dynamic8", recipe.dynamic_wi8_afp32)
    of("q_weights8", recipe.weight_only_wi8_afp32)
    of("q_weights4", recipe.weight_only_wi4_afp32)
    of("q_dynamic4", recipe.dynamic_wi4_afp32)
    of("q_dynamic2", recipe.dynamic_wi2c_afp32)
    of("q_blocks4", recipe.dynamic_wi4b32_afp32)
    of("q_blocks8", recipe.dynamic_wi8b32_afp32)
    of("q_static8", recipe.static_wi8_ai8, True)
    of("q_static16", recipe.static_wi8_ai16, True)
    return out


def in_another(opt):
    """The same in a process of its own, and again after a crash of the converter, without that one."""
    while True:
        done = subprocess.run([sys.executable, *sys.argv, "--here"], check=False).returncode
        trying = list(opt.folder.glob("*.trying"))
        for file in trying:
            print(f"{file.stem}: the converter crashed", flush=True)
            file.rename(file.with_suffix(".crashed"))
        if done >= 0 or not trying:
            return done


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--filter", default="")
    p.add_argument("--here", action="store_true", help="without a process for it")
    opt = p.parse_args()
    opt.folder.mkdir(parents=True, exist_ok=True)
    if not opt.here:
        return in_another(opt)
    made = 0

    def save(name, make):
        nonlocal made
        file = opt.folder / f"{name}.tflite"
        trying = file.with_suffix(".trying")
        if opt.filter not in name or file.exists() or file.with_suffix(".crashed").exists():
            return
        trying.touch()
        try:
            file.write_bytes(make())
            made += 1
        except Exception as e:  # the converter's: there is then no such file
            print(f"{name}: {str(e).strip().splitlines()[0][:150]}", flush=True)
        trying.unlink()

    for name, convert in functions().items():
        save(name, lambda convert=convert: convert().convert())
    for name, build in NETS.items():
        K.utils.set_random_seed(1)
        net = build()
        ways = WAYS if name in IN_EACH_WAY else USUAL
        for way in ways:

            def make(told=WAYS[way], net=net):
                c = tf.lite.TFLiteConverter.from_keras_model(net)
                told(c, net)
                return c.convert()

            save(f"{name}_{way}", make)
        f32 = opt.folder / f"{name}_f32.tflite"
        if f32.exists() and name in IN_EACH_WAY:
            for way, convert in recipes().items():
                save(f"{name}_{way}", lambda c=convert, net=net, f=f32: c(f.read_bytes(), net))
    print(f"{made} models made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
