#!/usr/bin/env python3
"""Writes the corpus of bad (and oddly good) models: OUT_DIR/NAME/model.onnx and a manifest.

    make_corpus.py OUT_DIR

Each case states which exit status ingot must end with and which words its message must hold.
Statuses: 0 compiles, 2 usage, 3 the model is invalid, 4 valid but not supported, 6 file error.
Where the damage is random (bit flips) any honest answer is right, but never a crash.
Every byte comes from a fixed seed.
"""

import argparse
import json
import pathlib
import random
import shutil

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
    """core wrapped `depth` times; around is the path of field numbers of one level, outermost first."""
    parts, size = [core], len(core)
    for _ in range(depth):
        for number in reversed(around):
            head = varint(number << 3 | 2) + varint(size)
            parts.append(head)
            size += len(head)
    return b"".join(reversed(parts))


# -- the file itself --------------------------------------------------------------------------


def bytes_and_wire():
    good = mlp().SerializeToString(deterministic=True)
    case("empty_file", b"", 3)
    case("missing_file", None, 6)
    case("text_file", b"this is not a model\n" * 40, 3)
    case("zip_file", b"PK\x03\x04" + bytes(200), 3)
    case("zeros", bytes(4096), 3)
    case("random_bytes", np.random.Generator(np.random.PCG64(1)).bytes(5000), 3, damage=True)
    rng = random.Random(11)
    cuts = sorted({1, 2, 7, len(good) - 1} | {rng.randrange(8, len(good)) for _ in range(16)})
    for cut in cuts:
        case(f"truncated_{cut}", good[:cut], 3, damage=True)
    for i in range(80):
        data = bytearray(good)
        for _ in range(rng.choice((1, 1, 1, 3, 10))):
            bit = rng.randrange(len(data) * 8)
            data[bit // 8] ^= 1 << bit % 8
        case(f"flipped_{i:02}", bytes(data), (0, 3, 4), damage=True)
    for i in range(20):
        data = bytearray(good)
        at = rng.randrange(len(data))
        n = rng.randrange(1, 12)
        data[at : at + n] = rng.choice(
            (b"", b"\xff" * n, rng.randbytes(n), bytes(data[at : at + n]) * 2)
        )
        case(f"spliced_{i:02}", bytes(data), (0, 3, 4), damage=True)

    opset = field(8, b"\x10" + varint(OPSET))
    head = b"\x08\x08" + opset
    case("wire_group_10000", head + b"\x3b" * 10000, 3)
    case("wire_type_7", head + b"\x3f\x00", 3)
    case("wire_field_0", head + b"\x02\x00", 3)
    case("wire_overlong_varint", b"\x08" + b"\xff" * 11 + b"\x01" + opset, 3)
    case("wire_length_beyond_file", head + varint(7 << 3 | 2) + varint(1 << 40) + b"abc", 3)
    case("wire_length_max", head + varint(7 << 3 | 2) + varint((1 << 64) - 1) + b"abc", 3)
    # GraphProto.node(1) . NodeProto.attribute(5) . AttributeProto.g(6)
    case("nested_subgraphs_10000", head + field(7, nested(10000, (1, 5, 6), field(2, b"g"))), 3)
    # TypeProto.sequence_type(4) . elem_type(1), under ModelProto.graph.input.type
    case(
        "nested_types_10000",
        head + field(7, field(11, field(1, b"x") + field(2, nested(10000, (4, 1), b"")))),
        3,
    )
    # SequenceProto-like nesting in an unknown field must be skipped, not followed
    case(
        "nested_unknown_10000",
        relu().SerializeToString() + field(4000, nested(10000, (1,), b"")),
        (0, 3),
    )


# -- model and graph --------------------------------------------------------------------------


def structure():
    m = relu()
    m.ClearField("graph")
    case("no_graph", m, 3, "graph")
    case("no_opset", model([node("Relu")], opsets=[]), (0, 3), note="IR 3 and later require it")
    case("opset_0", model([node("Relu")], opset=0), 3, "version 0")
    case("opset_negative", model([node("Relu")], opset=-3), 3, "version -3")
    case("opset_9999", model([node("Relu")], opset=9999), 4, "opset")
    case("opset_ahead", model([node("Relu")], opset=30), 0, "opset 30")
    case("opset_ahead_new_attribute", model([node("Relu", slope=0.5)], opset=30), 3, "slope")
    case(
        "opset_of_used_domain_missing",
        model([node("Scaler", domain="ai.onnx.ml")]),
        3,
        "ai.onnx.ml",
    )
    case("opset_twice", model([node("Relu")], opsets=[("", 17), ("", 13)]), (0, 3))
    case("ir_version_9999", model([node("Relu")], ir=9999), (0, 4))
    case("no_outputs", model([node("Relu")], outputs=[]), 3, "output")
    case("no_nodes_output_is_input", model([], outputs=[value("x")]), 0, build=True)
    case("output_not_produced", model([node("Relu")], outputs=[value("z")]), 3, "z")
    case("input_not_produced", model([node("Relu", ("nowhere",))]), 3, ["nowhere", "n0"])
    case(
        "cycle_of_two",
        model(
            [
                node("Add", ("x", "b"), ("a",), "first"),
                node("Relu", ("a",), ("b",), "second"),
                node("Relu", ("b",), ("y",), "third"),
            ]
        ),
        3,
        "first",
    )
    case("cycle_of_one", model([node("Add", ("x", "y"), ("y",), "self")]), 3, "self")
    case(
        "not_sorted",
        model([node("Relu", ("a",), ("y",), "second"), node("Neg", ("x",), ("a",), "first")]),
        (0, 3),
    )
    case("output_name_twice", model([node("Relu"), node("Neg", name="n1")]), 3, "y")
    case(
        "output_shadows_input",
        model([node("Relu", ("x",), ("x",)), node("Neg", name="n1")]),
        3,
        "x",
    )
    case("input_name_twice", model([node("Relu")], inputs=[value("x"), value("x")]), 3, "x")
    case(
        "initializer_name_twice",
        model([node("Add", ("x", "w"))], weights=[weight("w", np.ones(3, np.float32))] * 2),
        3,
        "w",
    )
    case("empty_input_name", model([node("Relu", ("",))]), 3, ["n0", "Relu"])
    case("empty_op_type", model([node("")]), (3, 4), "n0")
    case("unnamed_input", model([node("Relu")], inputs=[value("x"), value("")]), (0, 3))
    case(
        "input_without_type",
        model([node("Relu")], inputs=[h.make_empty_tensor_value_info("x")]),
        (3, 4),
        "x",
    )
    case(
        "recursive_function",
        model(
            [node("F", domain="f")],
            opsets=[("", 17), ("f", 1)],
            functions=[
                h.make_function(
                    "f",
                    "F",
                    ["a"],
                    ["b"],
                    [h.make_node("F", ["a"], ["b"], domain="f")],
                    [h.make_opsetid("", 17), h.make_opsetid("f", 1)],
                )
            ],
        ),
        3,
        "F",
    )
    chain = [
        h.make_function(
            "f",
            f"F{i}",
            ["a"],
            ["b"],
            [
                h.make_node(
                    f"F{i + 1}" if i < 2999 else "Relu",
                    ["a"],
                    ["b"],
                    domain="f" if i < 2999 else "",
                )
            ],
            [h.make_opsetid("", 17), h.make_opsetid("f", 1)],
        )
        for i in range(3000)
    ]
    case(
        "function_chain_3000",
        model([node("F0", domain="f")], opsets=[("", 17), ("f", 1)], functions=chain),
        (0, 3, 4),
    )
    bomb = [
        h.make_function(
            "f",
            f"F{i}",
            ["a"],
            ["b"],
            [
                h.make_node(
                    f"F{i + 1}" if i < 39 else "Relu", ["a"], ["c"], domain="f" if i < 39 else ""
                ),
                h.make_node(
                    f"F{i + 1}" if i < 39 else "Relu", ["c"], ["b"], domain="f" if i < 39 else ""
                ),
            ],
            [h.make_opsetid("", 17), h.make_opsetid("f", 1)],
        )
        for i in range(40)
    ]
    case(
        "function_bomb_2_to_40",
        model([node("F0", domain="f")], opsets=[("", 17), ("f", 1)], functions=bomb),
        (3, 4),
        note="forty lines that expand to 2^40 nodes",
    )
    case(
        "function_twice",
        model(
            [node("F", domain="f")],
            opsets=[("", 17), ("f", 1)],
            functions=[
                h.make_function(
                    "f",
                    "F",
                    ["a"],
                    ["b"],
                    [h.make_node("Relu", ["a"], ["b"])],
                    [h.make_opsetid("", 17)],
                ),
                h.make_function(
                    "f",
                    "F",
                    ["a"],
                    ["b"],
                    [h.make_node("Neg", ["a"], ["b"])],
                    [h.make_opsetid("", 17)],
                ),
            ],
        ),
        3,
        "F",
    )
    long = [
        node("Relu", (f"v{i}" if i else "x",), (f"v{i + 1}" if i < 4999 else "y",), f"n{i}")
        for i in range(5000)
    ]
    case("chain_5000", model(long), 0)


def operators():
    case("op_unknown", model([node("NoSuchOp")]), 4, ["n0", "NoSuchOp"])
    case(
        "op_of_unknown_domain",
        model([node("Magic", domain="com.example")], opsets=[("", 17), ("com.example", 1)]),
        4,
        ["n0", "Magic", "com.example"],
    )
    case(
        "op_of_one_machine",
        model(
            [node("Conv", ("x", "x"), domain="com.microsoft.nchwc")],
            opsets=[("", 17), ("com.microsoft.nchwc", 1)],
        ),
        4,
        ["n0", "com.microsoft.nchwc", "extended"],
    )
    case(
        "microsoft_attribute_unknown",
        model(
            [node("FastGelu", domain="com.microsoft", beta=1)],
            opsets=[("", 17), ("com.microsoft", 1)],
        ),
        3,
        ["n0", "beta"],
    )
    case(
        "microsoft_bits",
        model(
            [
                node(
                    "MatMulNBits",
                    ("x", "b", "s"),
                    domain="com.microsoft",
                    K=3,
                    N=2,
                    bits=3,
                    block_size=16,
                )
            ],
            weights=[
                weight("b", np.zeros((2, 1, 6), np.uint8)),
                weight("s", np.zeros(2, np.float32)),
            ],
            opsets=[("", 17), ("com.microsoft", 1)],
        ),
        4,
        ["n0", "3 bits"],
    )
    case("op_newer_than_opset", model([node("Gelu")], opset=17), (3, 4), ["n0", "Gelu"])
    case(
        "op_removed_from_opset",
        model([node("Upsample", ("x", "s"))], weights=[weight("s", np.ones(2, np.float32))]),
        (0, 3, 4),
        ["n0", "Upsample"],
    )
    case(
        "op_three_unknown",
        model(
            [
                node("NoSuchA", ("x",), ("a",), "first"),
                node("NoSuchB", ("a",), ("b",), "second"),
                node("NoSuchC", ("b",), ("y",), "third"),
            ]
        ),
        4,
        ["first", "NoSuchA", "second", "NoSuchB", "third", "NoSuchC"],
        messages=3,
    )
    case("too_few_inputs", model([node("Add", ("x",))]), 3, ["n0", "Add"])
    case("no_inputs", model([node("Relu", ())]), 3, ["n0", "Relu"])
    case("too_many_inputs", model([node("Relu", ("x", "x"))]), 3, ["n0", "Relu"])
    case("too_many_outputs", model([node("Relu", ("x",), ("y", "z"))]), 3, ["n0", "Relu"])
    case(
        "no_node_outputs",
        model([node("Relu", ("x",), ()), node("Neg", name="n1")]),
        (0, 3),
        ["n0", "Relu"],
    )

    # attributes
    case(
        "attr_missing",
        model([node("Concat", ("x", "x"))], outputs=[value("y", (4, 3))]),
        3,
        ["n0", "Concat", "axis"],
    )
    case("attr_missing_cast", model([node("Cast")]), 3, ["n0", "Cast", "to"])
    case("attr_string_for_int", model([node("Softmax", axis="one")]), 3, ["n0", "Softmax", "axis"])
    case(
        "attr_float_for_ints",
        model([node("Transpose", perm=1.5)], outputs=[value("y", (3, 2))]),
        3,
        ["n0", "Transpose", "perm"],
    )
    case(
        "attr_tensor_for_int",
        model([node("Softmax", axis=weight("t", np.ones(1)))]),
        3,
        ["n0", "axis"],
    )
    twice = node("Softmax", axis=0)
    twice.attribute.append(h.make_attribute("axis", 1))
    case("attr_twice", model([twice]), 3, ["n0", "axis"])
    untyped = node("Softmax")
    untyped.attribute.add().name = "axis"
    case("attr_without_type", model([untyped]), 3, ["n0", "axis"])
    case("attr_unknown", model([node("Relu", colour=3)]), 3, ["n0", "colour"])
    outside = node("Softmax")
    outside.attribute.add(name="axis", ref_attr_name="axis", type=onnx.AttributeProto.INT)
    case("attr_reference_outside_function", model([outside]), 3, ["n0", "axis"])
    case("attr_axis_out_of_range", model([node("Softmax", axis=2)]), 3, ["n0", "axis"])
    case("attr_axis_huge", model([node("Softmax", axis=-(2**63))]), 3, ["n0", "axis"])
    case(
        "attr_perm_not_a_permutation",
        model([node("Transpose", perm=[0, 0])]),
        3,
        ["n0", "Transpose"],
    )
    case("attr_perm_too_short", model([node("Transpose", perm=[0])]), 3, ["n0", "Transpose"])
    case("attr_cast_to_999", model([node("Cast", to=999)]), 3, ["n0", "Cast"])
    case("attr_cast_to_undefined", model([node("Cast", to=0)]), 3, ["n0", "Cast"])

    image, kernel = [value("x", (1, 2, 5, 5))], weight("w", np.ones((4, 2, 3, 3), np.float32))

    def conv(name, says=(), status=3, out=(1, 4, 3, 3), w=kernel, **attrs):
        case(
            f"conv_{name}",
            model([node("Conv", ("x", "w"), name="conv1", **attrs)], image, [value("y", out)], [w]),
            status,
            ["conv1", "Conv", *says],
        )

    conv("stride_0", strides=[0, 1])
    conv("stride_negative", strides=[-1, 1])
    conv("dilation_0", dilations=[0, 0])
    conv("group_0", group=0)
    conv("group_most", group=2**63 - 1)
    conv("group_3", group=3)
    conv("strides_of_three", strides=[1, 1, 1])
    conv("pads_of_three", pads=[1, 1, 1])
    conv("pads_negative_beyond", pads=[-9, -9, -9, -9])
    conv("pads_huge", pads=[2**62, 0, 2**62, 0], status=(3, 4))
    conv("kernel_shape_differs", kernel_shape=[5, 5])
    conv("auto_pad_unknown", auto_pad="SOMEWHERE")
    conv("channels_differ", w=weight("w", np.ones((4, 3, 3, 3), np.float32)))
    conv("kernel_beyond_input", w=weight("w", np.ones((4, 2, 9, 9), np.float32)))
    conv("kernel_rank_3", w=weight("w", np.ones((4, 2, 3), np.float32)))
    conv("kernel_int", w=weight("w", np.ones((4, 2, 3, 3), np.int32)))


def shapes_and_types():
    def bad(name, n, inputs=None, weights=(), out=(2, 3), dtype=T.FLOAT, says=(), status=3):
        case(
            name,
            model([n], inputs, [value("y", out, dtype)], weights),
            status,
            [n.name, n.op_type, *says],
        )

    i64 = lambda name, *v: weight(name, np.array(v, np.int64))  # noqa: E731
    bad("type_add_float_int64", node("Add", ("x", "b")), [value("x"), value("b", dtype=T.INT64)])
    bad("type_relu_of_bool", node("Relu"), [value("x", dtype=T.BOOL)], dtype=T.BOOL, status=(3, 4))
    bad("type_where_condition_float", node("Where", ("x", "x", "x")))
    bad(
        "type_gather_float_indices",
        node("Gather", ("x", "i")),
        weights=[weight("i", np.zeros(2, np.float32))],
    )
    bad("shape_add", node("Add", ("x", "b")), [value("x"), value("b", (2, 4))])
    bad("shape_matmul", node("MatMul", ("x", "b")), [value("x"), value("b", (4, 5))], out=(2, 5))
    bad("shape_gemm_rank_3", node("Gemm", ("x", "b")), [value("x", (2, 3, 4)), value("b", (4, 5))])
    bad(
        "shape_concat",
        node("Concat", ("x", "b"), axis=0),
        [value("x"), value("b", (2, 4))],
        out=(4, 3),
    )
    bad(
        "shape_concat_ranks",
        node("Concat", ("x", "b"), axis=0),
        [value("x"), value("b", (2,))],
        out=(4, 3),
    )
    bad("shape_reshape_count", node("Reshape", ("x", "s")), weights=[i64("s", 4, 2)], out=(4, 2))
    bad("shape_reshape_two_minus_ones", node("Reshape", ("x", "s")), weights=[i64("s", -1, -1)])
    bad("shape_reshape_minus_two", node("Reshape", ("x", "s")), weights=[i64("s", -2, 3)])
    bad(
        "shape_reshape_float",
        node("Reshape", ("x", "s")),
        weights=[weight("s", np.ones(2, np.float32))],
    )
    bad("shape_reshape_overflow", node("Reshape", ("x", "s")), weights=[i64("s", 2**32, 2**32)])
    bad(
        "shape_expand_overflow",
        node("Expand", ("x", "s")),
        weights=[i64("s", 2**40, 2**40, 2, 3)],
        status=(3, 4),
    )
    bad("shape_squeeze_not_1", node("Squeeze", ("x", "a")), weights=[i64("a", 0)], out=(3,))
    bad(
        "shape_split_sum",
        node("Split", ("x", "s"), ("y", "z"), axis=1),
        weights=[i64("s", 1, 1)],
        out=(2, 1),
    )
    bad(
        "shape_split_negative",
        node("Split", ("x", "s"), ("y", "z"), axis=1),
        weights=[i64("s", 4, -1)],
        out=(2, 4),
    )
    bad(
        "shape_slice_lengths",
        node("Slice", ("x", "s", "e", "a")),
        weights=[i64("s", 0), i64("e", 1, 1), i64("a", 0)],
    )
    bad(
        "shape_slice_step_0",
        node("Slice", ("x", "s", "e", "a", "t")),
        weights=[i64("s", 0), i64("e", 1), i64("a", 0), i64("t", 0)],
    )
    bad("shape_pad_count", node("Pad", ("x", "p")), weights=[i64("p", 1, 1)])
    bad(
        "shape_pad_huge",
        node("Pad", ("x", "p")),
        weights=[i64("p", 2**62, 0, 2**62, 0)],
        status=(3, 4),
    )
    bad("shape_tile_negative", node("Tile", ("x", "r")), weights=[i64("r", -1, 1)])
    bad(
        "shape_constantofshape_huge",
        node("ConstantOfShape", ("s",)),
        [],
        [i64("s", 2**31, 2**31)],
        out=None,
        status=(3, 4),
    )
    bad(
        "shape_constantofshape_negative",
        node("ConstantOfShape", ("s",)),
        [],
        [i64("s", -5)],
        out=None,
    )
    bad(
        "shape_range_huge",
        node("Range", ("a", "b", "c")),
        [],
        [weight("a", np.int64(0)), weight("b", np.int64(2**62)), weight("c", np.int64(1))],
        out=None,
        dtype=T.INT64,
        status=(3, 4),
    )
    bad(
        "shape_range_step_0",
        node("Range", ("a", "b", "c")),
        [],
        [weight("a", np.int64(0)), weight("b", np.int64(5)), weight("c", np.int64(0))],
        out=None,
        dtype=T.INT64,
        status=(3, 4),
    )
    bad(
        "gather_constant_index_beyond",
        node("Gather", ("x", "i")),
        weights=[i64("i", 7)],
        out=(1, 3),
    )
    bad("einsum_nonsense", node("Einsum", ("x",), equation="ij->ijk,,"), status=(3, 4))
    bad(
        "batchnorm_length",
        node("BatchNormalization", ("x", "s", "s", "s", "s")),
        [value("x", (1, 2, 3, 3))],
        [weight("s", np.ones(5, np.float32))],
        out=(1, 2, 3, 3),
    )
    bad(
        "maxpool_kernel_0",
        node("MaxPool", kernel_shape=[0, 0]),
        [value("x", (1, 1, 4, 4))],
        out=None,
    )
    bad(
        "resize_without_sizes",
        node("Resize", ("x", "", "", "")),
        [value("x", (1, 1, 4, 4))],
        out=None,
    )

    case(
        "declared_output_shape_differs",
        model([node("Relu")], outputs=[value("y", (3, 3))]),
        (0, 3),
        "y",
        note="exporters leave stale shapes; what the nodes say counts",
    )
    case(
        "declared_output_type_differs",
        model([node("Relu")], outputs=[value("y", dtype=T.INT32)]),
        3,
        "y",
    )
    case(
        "declared_inner_shape_differs",
        model(
            [node("Relu", ("x",), ("t",)), node("Neg", ("t",), ("y",), "n1")],
            value_info=[value("t", (9, 9))],
        ),
        (0, 3),
    )
    case("declared_type_0", model([node("Relu")], inputs=[value("x", dtype=0)]), (3, 4), "x")
    case("declared_type_999", model([node("Relu")], inputs=[value("x", dtype=999)]), (3, 4), "x")
    case(
        "dim_negative",
        model([node("Relu")], inputs=[value("x", (-2, 3))], outputs=[value("y", (-2, 3))]),
        (3, 4),
        "x",
        note="some exporters mean a free dim by -1",
    )
    for name, dims in (
        ("2_40", (2**40,)),
        ("2_62", (2**62,)),
        ("product_overflows", (2**32, 2**32)),
        ("product_wraps_to_0", (2**32, 2**32, 16)),
        ("max", (2**63 - 1,)),
        ("max_twice", (2**63 - 1, 2)),
    ):
        case(
            f"dims_{name}",
            model([node("Relu")], inputs=[value("x", dims)], outputs=[value("y", dims)]),
            (0, 3, 4),
            "x",
            note="nobody has the memory, but it is the caller's",
        )
    case(
        "rank_200",
        model([node("Relu")], inputs=[value("x", (1,) * 200)], outputs=[value("y", (1,) * 200)]),
        (0, 4),
        messages=2,
    )
    case(
        "dim_without_value",
        model([node("Relu")], inputs=[value("x", (None, 3))], outputs=[value("y", (None, 3))]),
        4,
        "x",
    )
    case(
        "dim_named_without_value",
        model(
            [node("Relu")], inputs=[value("x", ("batch", 3))], outputs=[value("y", ("batch", 3))]
        ),
        (0, 4),
    )


def tensors():
    def with_weight(name, t, status=3, says="w", shape=(3,)):
        case(
            f"weight_{name}",
            model([node("Add", ("x", "w"))], weights=[t], inputs=[value("x")]),
            status,
            says,
        )

    def raw(dims, data, dtype=T.FLOAT):
        return onnx.TensorProto(name="w", data_type=dtype, dims=dims, raw_data=data)

    with_weight("raw_too_short", raw([3], bytes(11)))
    with_weight("raw_too_long", raw([3], bytes(13)))
    with_weight("raw_empty", raw([3], b""))
    with_weight("no_data", onnx.TensorProto(name="w", data_type=T.FLOAT, dims=[3]))
    with_weight(
        "float_data_too_short",
        onnx.TensorProto(name="w", data_type=T.FLOAT, dims=[3], float_data=[1, 2]),
    )
    with_weight(
        "data_in_wrong_field",
        onnx.TensorProto(name="w", data_type=T.FLOAT, dims=[3], int64_data=[1, 2, 3]),
    )
    both = onnx.TensorProto(
        name="w", data_type=T.FLOAT, dims=[3], float_data=[1, 2, 3], raw_data=bytes(12)
    )
    with_weight("data_in_two_fields", both, (0, 3), ())
    with_weight("dim_negative", raw([-3], bytes(12)))
    with_weight("dims_overflow", raw([2**62, 4], bytes(12)))
    with_weight("dims_wrap_to_12_bytes", raw([2**62 + 3], bytes(12)))
    with_weight("type_0", raw([3], bytes(12), 0))
    with_weight("type_999", raw([3], bytes(12), 999), (3, 4))
    with_weight("string_in_raw", raw([3], bytes(12), T.STRING))
    with_weight("unnamed", onnx.TensorProto(data_type=T.FLOAT, dims=[3], raw_data=bytes(12)), 3, ())
    case(
        "weight_bool_of_7",
        model([node("Where", ("w", "x", "x"))], weights=[raw([3], b"\7\0\1", T.BOOL)]),
        (0, 3),
    )
    case(
        "weight_differs_from_input",
        model(
            [node("Add", ("x", "w"))],
            inputs=[value("x"), value("w", (5,))],
            weights=[weight("w", np.ones(3, np.float32))],
        ),
        (0, 3),
    )

    def external(name, status, says=("w",), files=None, links=None, **entries):
        t = onnx.TensorProto(name="w", data_type=T.FLOAT, dims=[3], data_location=T.EXTERNAL)
        for k, v in entries.items():
            t.external_data.add(key=k, value=str(v))
        case(
            f"external_{name}",
            model([node("Add", ("x", "w"))], weights=[t]),
            status,
            says,
            files=files,
            links=links,
        )

    data = {"w.bin": bytes(range(12))}
    external("good", 0, (), data, location="w.bin")
    external("parent", 3, files={"../outside.bin": bytes(12)}, location="../outside.bin")
    external(
        "parent_inside",
        3,
        files={"../outside.bin": bytes(12), "sub/x": b""},
        location="sub/../../outside.bin",
    )
    external("absolute", 3, location="/etc/passwd")
    external(
        "link_to_outside",
        3,
        files={"../outside.bin": bytes(12)},
        links={"w.bin": "../outside.bin"},
        location="w.bin",
    )
    external(
        "link_folder_to_outside",
        3,
        files={"../outside.bin": bytes(12)},
        links={"sub": ".."},
        location="sub/outside.bin",
    )
    external("folder", (3, 6), files={"sub/x": b""}, location="sub")
    external("fifo_device", 3, location="/dev/zero")
    external("missing", (3, 6), location="nothing.bin")
    external("no_location", 3, offset=0)
    external("location_empty", 3, location="")
    external("offset_beyond", 3, files=data, location="w.bin", offset=100)
    external("offset_negative", 3, files=data, location="w.bin", offset=-4)
    external("offset_huge", 3, files=data, location="w.bin", offset=2**64 - 4)
    external("offset_not_a_number", 3, files=data, location="w.bin", offset="four")
    external("length_differs", 3, files=data, location="w.bin", length=8)
    external("too_short", 3, files={"w.bin": bytes(8)}, location="w.bin")


def sparse_constants():
    def constant(name, says, at, values=(1.0, 2.0), dims=(2, 3), dtype=np.int64):
        t = h.make_sparse_tensor(
            weight("v", np.float32(values)), weight("i", np.array(at, dtype)), list(dims)
        )
        case(
            f"sparse_{name}",
            model([node("Constant", (), ("c",), "c0", sparse_value=t), node("Add", ("x", "c"))]),
            3,
            ["c0", "sparse_value", says],
        )

    constant("outside", "outside its dims", [1, 6])
    constant("outside_row", "outside its dims", [[0, 1], [1, 3]])
    constant("negative", "outside its dims", [-1, 2])
    constant("falling", "rising order", [3, 1])
    constant("twice", "rising order", [[0, 1], [0, 1]])
    constant("too_many", "do not match", [0, 1, 2])
    constant("columns", "do not match", [[0, 1, 0], [1, 1, 0]])
    constant("floats", "do not match", [0, 1], dtype=np.float32)
    constant("matrix", "list of numbers", [0, 1], values=[[1.0], [2.0]])


def classical():
    def use(name, says, op, **attrs):
        case(
            f"ml_{name}",
            model(
                [node(op, ("x",), ("y", "z"), name="m0", domain="ai.onnx.ml", **attrs)],
                outputs=[value("z", (2, 2))],
                opsets=[("", 17), ("ai.onnx.ml", 1)],
            ),
            3,
            ["m0", op, says],
        )

    def maps(name, status, says, kind=T.INT64, **attrs):
        out = h.make_sequence_type_proto(
            h.make_map_type_proto(kind, h.make_tensor_type_proto(T.FLOAT, []))
        )
        case(
            f"ml_zipmap_{name}",
            model(
                [node("ZipMap", name="m0", domain="ai.onnx.ml", **attrs)],
                outputs=[h.make_value_info("y", out)],
                opsets=[("", 17), ("ai.onnx.ml", 1)],
            ),
            status,
            says,
            build=status == 0,
        )

    maps("numbers", 0, (), classlabels_int64s=[-(2**63), -5, 2**63 - 1])
    maps("names", 0, (), T.STRING, classlabels_strings=["*/", 'a"b\\n', "\xe9??/"])
    maps("count", 3, ["m0", "2 classes for 3 columns"], classlabels_int64s=[1, 2])
    maps("none", 3, ["m0", "no classes"])
    maps(
        "both",
        3,
        ["m0", "integers and as strings"],
        classlabels_int64s=[1, 2, 3],
        classlabels_strings=list("abc"),
    )
    good = dict(
        coefficients=[1.0, 2.0, 3.0],
        support_vectors=[0.5] * 9,
        vectors_per_class=[1, 2],
        rho=[0.1],
        kernel_type="RBF",
        kernel_params=[0.5, 0.0, 3.0],
        classlabels_ints=[0, 1],
    )
    for what, says, change in (
        ("no_labels", "no labels", {"classlabels_ints": None}),
        ("rho", "rho", {"rho": None}),
        ("one_class", "two are the least", {"classlabels_ints": [7], "vectors_per_class": [3]}),
        ("classes", "labels of 3", {"classlabels_ints": [1, 2, 3]}),
        ("weights", "coefficients", {"coefficients": [1.0]}),
        ("vectors", "support_vectors", {"support_vectors": [1.0] * 7}),
        ("count", "vectors_per_class", {"vectors_per_class": [-1, 4]}),
        ("prob", "prob_a", {"prob_a": [1.0]}),
        ("kernel", "SINE", {"kernel_type": "SINE"}),
        ("many", "vectors_per_class", {"vectors_per_class": [2**31 - 1] * 2}),
    ):
        use(f"svm_{what}", says, "SVMClassifier", **{**good, **change})


def control_flow():
    then = h.make_graph([node("Relu", ("x",), ("t",), "inner")], "then", [], [value("t")])
    cond = [value("x"), value("c", (), T.BOOL)]
    case(
        "if_without_else",
        model([node("If", ("c",), then_branch=then)], cond),
        3,
        ["n0", "else_branch"],
    )
    other = h.make_graph(
        [node("Cast", ("x",), ("e",), "inner2", to=T.INT32)],
        "else",
        [],
        [value("e", dtype=T.INT32)],
    )
    case(
        "if_branch_types_differ",
        model([node("If", ("c",), then_branch=then, else_branch=other)], cond),
        3,
        ["n0", "If"],
    )
    two = h.make_graph(
        [node("Relu", ("x",), ("a",), "i1"), node("Neg", ("x",), ("b",), "i2")],
        "else",
        [],
        [value("a"), value("b")],
    )
    case(
        "if_branch_output_counts_differ",
        model([node("If", ("c",), then_branch=then, else_branch=two)], cond),
        3,
        ["n0", "If"],
    )
    case(
        "if_condition_float",
        model([node("If", ("x",), then_branch=then, else_branch=then)]),
        3,
        ["n0", "If"],
    )
    body = h.make_graph(
        [node("Relu", ("v",), ("w",), "inner")], "body", [value("i", (), T.INT64)], [value("w")]
    )
    case(
        "loop_body_signature",
        model([node("Loop", ("m", "", "x"), body=body)], weights=[weight("m", np.int64(3))]),
        3,
        ["n0", "Loop"],
    )
    body = h.make_graph(
        [node("Relu", ("v",), ("w",), "inner"), node("Not", ("v",), ("c",), "inner2")],
        "body",
        [value("v", (), T.BOOL)],
        [value("c", (), T.BOOL), value("w")],
    )
    case(
        "loop_body_inputs",
        model([node("Loop", ("m", "", "x"), body=body)], weights=[weight("m", np.int64(3))]),
        3,
        ["n0", "Loop", "1 inputs, not 3"],
    )
    axes = weight("axes", np.array([0], np.int64))
    unfit = h.make_graph(
        [node("Squeeze", ("x", "axes"), ("t",), "inner")], "then", [], [value("t")]
    )
    case(
        "if_branch_does_not_fit",
        model([node("If", ("c",), then_branch=unfit, else_branch=then)], cond, weights=[axes]),
        4,
        ["inner", "Squeeze", "n0", "--bind"],
    )
    unknown = h.make_graph([node("NoSuchOp", ("x",), ("t",), "inner")], "then", [], [value("t")])
    case(
        "if_unknown_op_inside",
        model([node("If", ("c",), then_branch=unknown, else_branch=then)], cond),
        4,
        ["inner", "NoSuchOp"],
    )
    scope = h.make_graph(
        [node("Relu", ("x",), ("hidden",), "i1"), node("Neg", ("hidden",), ("t",), "i2")],
        "then",
        [],
        [value("t")],
    )
    case(
        "subgraph_name_used_outside",
        model(
            [
                node("If", ("c",), ("a",), then_branch=scope, else_branch=then),
                node("Relu", ("hidden",), ("y",), "n1"),
            ],
            cond,
        ),
        3,
        ["hidden", "n1"],
    )
    case(
        "split_into_too_many",
        model(
            [node("SplitToSequence", ("x", "k"), ("s",)), node("SequenceLength", ("s",))],
            [value("x"), value("k", (2**31 - 1,), T.INT64)],
            [value("y", (), T.INT64)],
        ),
        4,
        ["SplitToSequence", "2147483647 pieces"],
    )


# -- odd but good -----------------------------------------------------------------------------


def zero_sizes():
    def good(name, nodes, inputs, out, weights=(), dtype=T.FLOAT):
        case(f"zero_{name}", model(nodes, inputs, [value("y", out, dtype)], weights), 0, build=True)

    good("relu", [node("Relu")], [value("x", (0, 3))], (0, 3))
    good("concat", [node("Concat", ("x", "b"), axis=0)], [value("x", (0, 3)), value("b")], (2, 3))
    good("matmul_k", [node("MatMul", ("x", "b"))], [value("x", (2, 0)), value("b", (0, 4))], (2, 4))
    good("matmul_m", [node("MatMul", ("x", "b"))], [value("x", (0, 3)), value("b", (3, 4))], (0, 4))
    good(
        "reducesum",
        [node("ReduceSum", ("x", "a"), keepdims=0)],
        [value("x", (0, 3))],
        (3,),
        [weight("a", np.array([0], np.int64))],
    )
    good(
        "weight",
        [node("Concat", ("x", "w"), axis=0)],
        [value("x")],
        (2, 3),
        [weight("w", np.zeros((0, 3), np.float32))],
    )
    good("transpose", [node("Transpose", perm=[1, 0])], [value("x", (0, 3))], (3, 0))
    good("all", [node("Add", ("x", "x"))], [value("x", (0, 0))], (0, 0))
    case(
        "zero_resize",
        model(
            [node("Resize", ("x", "", "", "s"), mode="cubic", antialias=1)],
            [value("x", (2, 4))],
            [value("y", (0, 2))],
            [weight("s", np.array([0, 2], np.int64))],
            opset=19,
        ),
        0,
        build=True,
    )


def hostile_names():
    names = {
        "comment_end": "*/ #error no /*",
        "newline": "a\nb",
        "backslash": "end\\",
        "quote": '"%s%n"',
        "keyword": "int",
        "own": "model_run",
        "digits": "9lives",
        "unicode": "größe_層",
        "trigraph": "what??/",
        "dots": "a.b/c:0",
        "dollar": "$(id)",
        "long": "n" * 100_000,
        "main": "main",
        "escape": "\x1b[31m\x07",
    }
    for name, text in names.items():
        m = model(
            [
                node("Relu", (text,), (f"{text}_t",), text),
                node("Neg", (f"{text}_t",), (f"{text}_y",), f"{text}2"),
            ],
            [value(text)],
            [value(f"{text}_y")],
        )
        m.graph.name = text
        m.producer_name = text
        m.doc_string = text
        case(f"name_{name}", m, 0, build=True)
        # the same name in a message: one printable line of a sane length
        case(f"message_{name}", model([node("NoSuchOp", name=text)]), 4, "NoSuchOp")
    m = relu()
    m.graph.node[0].name = "not_utf8_?"
    case("name_not_utf8", m.SerializeToString().replace(b"utf8_?", b"utf8_\xff"), (0, 3))
    case(
        "name_mangles_alike",
        model(
            [node("Relu", ("a.b",), ("a/b",)), node("Neg", ("a/b",), ("a:b",), "n1")],
            [value("a.b")],
            [value("a:b")],
        ),
        0,
        build=True,
    )
    case(
        "name_empty_nodes",
        model([node("Relu", ("x",), ("t",), ""), node("Neg", ("t",), ("y",), "")]),
        0,
        build=True,
    )
    case(
        "name_twice_nodes",
        model([node("Relu", ("x",), ("t",)), node("Neg", ("t",), ("y",))]),
        (0, 3),
    )


# -- the command line -------------------------------------------------------------------------


def usage():
    """args of their own: {model} and {out} stand for the paths."""
    m = relu()
    dyn = model(
        [node("Relu")], inputs=[value("x", ("batch", 3))], outputs=[value("y", ("batch", 3))]
    )

    def use(name, args, status=2, says=(), mod=m, **more):
        case(f"usage_{name}", mod, status, says, args=args, **more)

    use("nothing", [])
    use("unknown_command", ["frobnicate", "{model}"], says="frobnicate")
    use("unknown_flag", ["compile", "{model}", "-o", "{out}", "--frobnicate"], says="--frobnicate")
    use("no_model", ["compile", "-o", "{out}"])
    use("no_output", ["compile", "{model}"], says="-o")
    use("two_models", ["compile", "{model}", "{model}", "-o", "{out}"])
    use("flag_without_value", ["compile", "{model}", "-o"], says="-o")
    use(
        "target_unknown", ["compile", "{model}", "-o", "{out}", "--target", "abacus"], says="abacus"
    )
    use(
        "target_machine_unknown",
        ["compile", "{model}", "-o", "{out}", "--target", "c:abacus"],
        says="abacus",
    )
    for what, bad in (
        ("digit", "9x"),
        ("space", "a b"),
        ("path", "../x"),
        ("empty", ""),
        ("quote", "a\"b"),
        ("keyword", "int"),
    ):
        use(f"name_{what}", ["compile", "{model}", "-o", "{out}", "--name", bad], says="--name")
    for what, bad in (("no_value", "k"), ("no_name", "=5"), ("empty", "")):
        use(f"bind_{what}", ["compile", "{model}", "-o", "{out}", "--bind", bad], says="--bind")
    use(
        "bind_unknown",
        ["compile", "{model}", "-o", "{out}", "--bind", "nosuch=5"],
        (2, 3),
        says="nosuch",
    )
    for what, bad in (
        ("no_value", "batch"),
        ("words", "batch=one..two"),
        ("reversed", "batch=8..1"),
        ("negative", "batch=-4..2"),
        ("huge", "batch=1..99999999999999999999"),
        ("open", "batch=1.."),
    ):
        use(
            f"dim_{what}",
            ["compile", "{model}", "-o", "{out}", "--dim", bad],
            says="--dim",
            mod=dyn,
        )
    fixed = model(
        [node("Relu", ("x",), ("r",)), node("Neg", ("r",), name="n1")],
        inputs=[value("x", (1, 3)), value("n", ("seq",), T.INT64)],
        outputs=[value("y", (1, 3))],
    )
    for what, flags, says, n, rc in (
        (
            "bounds",
            ("x_0=1..8",),
            ("x_0=1..8", "fixes axis 0 of the input 'x' to 1", "'seq'"),
            1,
            2,
        ),
        ("size", ("x_1=4",), ("fixes axis 1 of the input 'x' to 3",), 1, 2),
        ("same", ("x_0=1",), (), 1, 0),
        ("axis", ("x_7=2",), ("'x' has 2 dims",), 1, 2),
        ("other_name", ("n_0=2",), ("has the name 'seq'",), 2, 2),
        ("equal", ("seq=x_0",), ("x_0", "fixes it to 1"), 1, 2),
        ("itself", ("seq=seq",), ("one dim",), 2, 2),
        ("inside", ("r_0=1..8",), ("does nothing", "along axis 0 is 1"), 1, 0),
        ("value", ("x=1..8",), ("f32",), 1, 2),
        ("all", ("x_0=1..8", "nosuch=3", "x_9=1", "w_0=1"), ("x_0", "nosuch", "x_9", "w_0"), 4, 2),
    ):
        seq = () if any(f.startswith(("seq", "n_0")) for f in flags) else ("seq=4",)
        use(
            f"dim_fixed_{what}",
            [
                "compile",
                "{model}",
                "-o",
                "{out}",
                *(w for f in (*flags, *seq) for w in ("--dim", f)),
            ],
            rc,
            says,
            mod=fixed,
            messages=n,
        )
    use(
        "dim_of_bound",
        ["compile", "{model}", "-o", "{out}", "--dim", "seq=1..2", "--bind", "n=1,2,3"],
        2,
        ("'n' has 3 elements",),
        mod=fixed,
    )
    use(
        "dim_unknown",
        ["compile", "{model}", "-o", "{out}", "--dim", "nosuch=1..8"],
        (2, 3),
        says="nosuch",
    )
    wide = model(
        [
            node("ReduceSum", outputs=("s",), name="sum", keepdims=1),
            node("Div", ("x", "s"), ("d",), "share"),
            node("Transpose", ("d",), ("t",), "turn"),
            node("MatMul", ("d", "t"), ("y",), "product"),
        ],
        inputs=[value("x", (64, 64))],
        outputs=[value("y", (64, 64))],
    )
    use(
        "max_ram",
        ["compile", "{model}", "-o", "{out}", "--max-ram", "1k"],
        4,
        ("1024", "share", "f32[64,64]", "16384 bytes"),
        wide,
    )
    use(
        "max_vram",
        ["compile", "{model}", "-o", "{out}", "--target", "opencl", "--max-vram", "40k"],
        4,
        ("--max-vram", "40960", "share", "32768 inputs"),
        wide,
    )
    use(
        "max_vram_word",
        ["compile", "{model}", "-o", "{out}", "--max-vram", "much"],
        says="--max-vram",
    )
    use(
        "prefer",
        ["compile", "{model}", "-o", "{out}", "--prefer", "speed"],
        says=("--prefer", "ram", "time"),
    )
    for what, bad in (("word", "much"), ("nothing", "0"), ("huge", "9999999999G")):
        use(
            f"max_ram_{what}",
            ["compile", "{model}", "-o", "{out}", "--max-ram", bad],
            says="--max-ram",
        )

    def memory(name, *sizes, status=2, says="--memory", mod=m, flags=()):
        args = [
            "compile",
            "{model}",
            "-o",
            "{out}",
            *(w for s in sizes for w in ("--memory", s)),
            *flags,
        ]
        use(f"memory_{name}", args, status, says, mod)

    memory(
        "small",
        "dtcm=64",
        "sram=1k",
        status=4,
        says=("sram", "1024 bytes", "15360 bytes too small", "share"),
        mod=wide,
    )
    memory("small_alone", "sram=1k", status=4, says=("sram", "bytes too small", "share"), mod=wide)
    memory(
        "max_ram",
        "dtcm=64",
        "sram",
        status=4,
        says=("--max-ram", "2048", "share"),
        mod=wide,
        flags=("--max-ram", "2k"),
    )
    memory("gpu", "dtcm=64k", "sram", says=("--memory", "opencl"), flags=("--target", "opencl"))
    memory("twice", "dtcm=64k", "DTCM=64k", says=("DTCM", "two"))
    memory("open", "dtcm", "sram=64k", says=("dtcm", "last"))
    for what, bad in (
        ("name", "=64k"),
        ("empty", ""),
        ("digit", "1a=64k"),
        ("letters", "d-tcm=64k"),
        ("size", "dtcm=much"),
        ("no_size", "dtcm="),
        ("nothing", "dtcm=0"),
        ("huge", "dtcm=9999999999G"),
    ):
        memory(what, bad)
    use(
        "out_is_a_file", ["compile", "{model}", "-o", "{file}"], 6, files={"taken": b"here already"}
    )
    use(
        "out_below_a_file",
        ["compile", "{model}", "-o", "{file}/sub"],
        6,
        files={"taken": b"here already"},
    )
    use("model_is_a_folder", ["compile", "{folder}", "-o", "{out}"], (3, 6))
    use("model_is_empty_word", ["compile", "", "-o", "{out}"], (2, 6))
    use(
        "run_data_missing",
        ["run", "{model}", "--data", "{folder}/nosuch", "--output-dir", "{out}"],
        6,
    )
    use("run_data_empty", ["run", "{model}", "--data", "{folder}", "--output-dir", "{out}"], (3, 6))
    use(
        "bench_threads_0",
        ["bench", "{model}", "--data", "{folder}", "--threads", "0"],
        says="--threads",
    )
    use("check_missing_file", ["check", "{folder}/nosuch.onnx"], 6, says="nosuch.onnx")
    use(
        "inspect_missing_file", ["inspect", "{folder}/nosuch.onnx", "--json"], 6, says="nosuch.onnx"
    )


GROUPS = (
    bytes_and_wire,
    structure,
    operators,
    shapes_and_types,
    tensors,
    sparse_constants,
    classical,
    control_flow,
    zero_sizes,
    hostile_names,
    usage,
)


def make(out):
    """Writes the corpus; returns the manifest (the cases without their bytes)."""
    out = pathlib.Path(out)
    shutil.rmtree(out, ignore_errors=True)
    CASES.clear()
    for g in GROUPS:
        g()
    assert len({c["name"] for c in CASES}) == len(CASES)
    manifest = []
    for c in CASES:
        # NAME/ is what '..' of the model's folder may see; the model lies in NAME/m
        folder = out / c["name"] / "m"
        folder.mkdir(parents=True)
        if c["model"] is not None:
            (folder / "model.onnx").write_bytes(c["model"])
        for name, data in c["files"].items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for name, to in c["links"].items():
            (folder / name).symlink_to(to)
        manifest.append(
            {
                k: c[k]
                for k in ("name", "status", "says", "args", "build", "messages", "damage", "note")
            }
        )
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


if __name__ == "__main__":
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("out_dir")
    print(len(make(p.parse_args().out_dir)), "cases")
