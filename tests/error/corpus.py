"""What the cases of make_corpus.py are made of: models in few words, and the list of the cases."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

OPSET = 17
CASES = []


def case(
    name,
    model,
    status,
    says=(),
    *,
    files=None,
    links=None,
    args=(),
    build=False,
    messages=1,
    damage=False,
    note="",
):
    """One case. model: bytes or ModelProto or None; says: words of the message, any letter case;
    messages: how many; damage: random, so the message's wording is not pinned."""
    data = (
        model.SerializeToString(deterministic=True) if isinstance(model, onnx.ModelProto) else model
    )
    CASES.append(
        dict(
            name=name,
            model=data,
            status=[status] if isinstance(status, int) else list(status),
            says=[says] if isinstance(says, str) else list(says),
            files=files or {},
            links=links or {},
            args=list(args),
            build=build,
            messages=messages,
            damage=damage,
            note=note,
        )
    )


# -- pieces -----------------------------------------------------------------------------------


def value(name, shape=(2, 3), dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, shape)


def graph(nodes, inputs=None, outputs=None, weights=(), **more):
    inputs = [value("x")] if inputs is None else inputs
    outputs = [value("y")] if outputs is None else outputs
    return h.make_graph(nodes, "g", inputs, outputs, list(weights), **more)


def model(
    nodes,
    inputs=None,
    outputs=None,
    weights=(),
    opset=OPSET,
    opsets=None,
    functions=(),
    ir=8,
    **more,
):
    imports = (
        [h.make_opsetid("", opset)] if opsets is None else [h.make_opsetid(d, v) for d, v in opsets]
    )
    return h.make_model(
        graph(nodes, inputs, outputs, weights, **more),
        opset_imports=imports,
        ir_version=ir,
        functions=list(functions),
        producer_name="corpus",
    )


def node(op, inputs=("x",), outputs=("y",), name="n0", **attrs):
    return h.make_node(op, list(inputs), list(outputs), name=name, **attrs)


def weight(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def relu():
    return model([node("Relu")])


def mlp():
    rng = np.random.Generator(np.random.PCG64(7))
    w = [
        weight("w1", rng.standard_normal((3, 5)).astype(np.float32)),
        weight("b1", np.ones(5, np.float32)),
        weight("w2", rng.standard_normal((5, 2)).astype(np.float32)),
        weight("b2", np.zeros(2, np.float32)),
    ]
    return model(
        [
            node("Gemm", ("x", "w1", "b1"), ("h",), "fc1"),
            node("Relu", ("h",), ("r",), "act"),
            node("Gemm", ("r", "w2", "b2"), ("s",), "fc2"),
            node("Softmax", ("s",), ("y",), "prob", axis=1),
        ],
        outputs=[value("y", (2, 2))],
        weights=w,
    )


# wire format by hand, for what the protobuf library refuses to write


def varint(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def nested(depth, around, core):
    """core wrapped `depth` times; around is the path of field numbers of one level, outermost
    first."""
    parts, size = [core], len(core)
    for _ in range(depth):
        for number in reversed(around):
            head = varint(number << 3 | 2) + varint(size)
            parts.append(head)
            size += len(head)
    return b"".join(reversed(parts))
