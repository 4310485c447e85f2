"""ONNX Runtime as an exact judge of 8-bit products.

On processors without VNNI its kernels for u8 by s8 add pairs of products in 16 bits, which
saturate: the same model has other results there. With weights of u8 (128 more, and so is their
zero point) it takes kernels that are exact on every machine.
"""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as state

# the weights of an operator: which inputs they are, and which are their zero points
WEIGHTS = {
    "ConvInteger": ((1, 3),),
    "DynamicQuantizeLSTM": ((1, 9), (2, 11)),
    "DynamicQuantizeMatMul": ((1, 3),),
    "MatMulInteger": ((1, 3),),
    "MatMulIntegerToFloat": ((1, 5),),
    "QGemm": ((3, 5),),
    "QLinearConv": ((3, 5),),
    "QLinearMatMul": ((3, 5),),
}


def options():
    out = ort.SessionOptions()
    out.add_session_config_entry("session.x64quantprecision", "1")  # the optimiser does as much
    return out


def unsigned(model, feeds):
    """A copy of both whose weights in 8 bits are unsigned."""
    model, feeds = onnx.ModelProto.FromString(model.SerializeToString()), dict(feeds)
    constants = {t.name: t for t in model.graph.initializer}
    inputs = {v.name: v for v in model.graph.input}
    moved = {}

    def value(name):
        return feeds[name] if name in feeds else numpy_helper.to_array(constants[name])

    def more(name):
        """The name of the same, 128 more."""
        if name not in moved:
            moved[name] = name + "_unsigned"
            numbers = np.asarray(value(name).astype(np.int16) + 128, np.uint8)
            if name in feeds:
                feeds[moved[name]] = numbers
                info = model.graph.input.add()
                info.CopyFrom(inputs[name])
                info.name, info.type.tensor_type.elem_type = moved[name], onnx.TensorProto.UINT8
            else:
                model.graph.initializer.append(numpy_helper.from_array(numbers, moved[name]))
        return moved[name]

    for node in model.graph.node:
        for weights, zero in WEIGHTS.get(node.op_type, ()):
            name = node.input[weights] if len(node.input) > weights else ""
            if name not in feeds and name not in constants or value(name).dtype != np.int8:
                continue
            node.input.extend([""] * (zero + 1 - len(node.input)))
            node.input[weights] = more(name)
            if node.input[zero]:
                node.input[zero] = more(node.input[zero])
            else:
                node.input[zero] = "unsigned_zero"
                if "unsigned_zero" not in moved:
                    moved["unsigned_zero"] = ""
                    model.graph.initializer.append(
                        numpy_helper.from_array(np.array(128, np.uint8), "unsigned_zero")
                    )
    return model, feeds


def results(model, feeds, wanted, options):
    """Of the copy, or of the model itself where ONNX Runtime has no such kernel."""

    def run(model, feeds):
        session = ort.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        names = {i.name for i in session.get_inputs()}
        return session.run(wanted, {k: v for k, v in feeds.items() if k in names})

    copy, given = unsigned(model, feeds)
    if copy != model:
        try:
            return run(copy, given)
        except (state.NotImplemented, state.InvalidGraph, state.Fail):
            pass
    return run(model, feeds)
