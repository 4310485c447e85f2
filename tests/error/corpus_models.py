"""Cases of make_corpus.py: models whose nodes, shapes, types or constants are not as they should
be."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

from corpus import case, model, node, relu, value, weight

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
    long = [
        node("Relu", (f"v{i}" if i else "x",), (f"v{i + 1}" if i < 4999 else "y",), f"n{i}")
        for i in range(5000)
    ]
    case("chain_5000", model(long), 0)


def functions():
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
    case("op_misspelt", model([node("Gemmm", ("x", "x"))]), 4, ["n0", "did you mean Gemm (ai.onnx"])
    case(
        "op_misspelt_beside_shapes",  # all at once
        model(
            [node("Gemmm", ("x", "x")), node("Concat", ("x", "s"), ("z",), axis=0)],
            weights=[weight("s", np.ones(2, np.float32))],
        ),
        (3, 4),
        ["n0", "did you mean Gemm (ai.onnx", "(Concat): concat"],
        messages=2,
    )
    case("op_other_case", model([node("relu")]), 4, ["n0", "did you mean Relu (ai.onnx"])
    case("op_elsewhere", model([node("Scaler")]), 4, ["n0", "Scaler (ai.onnx.ml"])
    case(
        "op_misspelt_of_domain_missing",
        model([node("FusedMatmul", ("x", "x"), domain="com.microsoft")]),
        3,
        ["n0", "import", "FusedMatMul (com.microsoft"],
    )
    case("op_without_scales", model([node("Upsample", scales=[1.0, 1.0])]), 3, ["n0", "no scales"])
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


def attributes():
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


def bad(name, n, inputs=None, weights=(), out=(2, 3), dtype=T.FLOAT, says=(), status=3):
    case(
        name,
        model([n], inputs, [value("y", out, dtype)], weights),
        status,
        [n.name, n.op_type, *says],
    )


def i64(name, *v):
    return weight(name, np.array(v, np.int64))


def types():
    bad("type_add_float_int64", node("Add", ("x", "b")), [value("x"), value("b", dtype=T.INT64)])
    bad("type_relu_of_bool", node("Relu"), [value("x", dtype=T.BOOL)], dtype=T.BOOL, status=(3, 4))
    bad("type_where_condition_float", node("Where", ("x", "x", "x")))
    bad(
        "type_gather_float_indices",
        node("Gather", ("x", "i")),
        weights=[weight("i", np.zeros(2, np.float32))],
    )


def shapes():
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
    bad("shape_reshape_rest", node("Reshape", ("x", "s")), weights=[i64("s", 4, -1)], says=["-1"])
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
        "shape_split_overflow",
        node("Split", ("x", "s"), ("y", "z"), axis=1),
        weights=[i64("s", 2**62, 2**62)],
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


def shapes_of_constants():
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


def undeclared():
    """The type of an output is left to its node; a fault of that node is told."""
    for name, op, status, says in (
        ("undeclared_output", "Relu", 0, ()),
        ("undeclared_output_of_nothing", "Nothing", 4, ("n0", "Nothing")),
    ):
        case(
            name,
            model([node(op)], outputs=[h.make_empty_tensor_value_info("y")]),
            status,
            says,
            args=("verify", "{model}", "--target", "c"),
        )
    case(
        "free_dims_of_random_data",
        model(
            [node("Relu")], [value("x", ("rows", "n", "rows"))], [value("y", ("rows", "n", "rows"))]
        ),
        2,
        ["dims are free: 'rows' of input 'x', 'n'", "each: --dim rows=N --dim n=N, or"],
        args=("verify", "{model}", "--target", "c"),
    )


def declared():
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

    def weighted(name, declared=(), shown=(), says=(), outputs=None, **more):
        case(
            name,
            model(
                [node("Add", ("x", "w")), node("Mul", ("y", "v"), ("z",), "n1")],
                inputs=[value("x"), *shown],
                outputs=outputs or [value("z")],
                weights=[weight(k, np.ones(3, np.float32)) for k in "wv"],
                value_info=list(declared),
            ),
            3 if says else 0,
            list(says),
            **more,
        )

    weighted(
        "weight_input_type", shown=[value("w", (3,), T.INT64)], says=["n0", "i64 [3]", "f32 [3]"]
    )
    weighted("weight_input_shape", shown=[value("w", (4,))], says=["n0", "'w'", "f32 [4]", "input"])
    weighted("weight_input_rank", shown=[value("w", (1, 3))], says=["n0", "'w'", "f32 [1, 3]"])
    weighted("weight_input_named_dim", shown=[value("w", ("k",))])
    weighted(
        "weight_value_type", [value("w", (3,), T.DOUBLE)], says=["n0", "f64 [3]", "value_info"]
    )
    weighted("weight_value_shape", [value("v", (5,))], says=["n1", "'v'", "f32 [5]", "declare it"])
    weighted(
        "weight_output_shape",
        outputs=[value("z"), value("w", (9,))],
        says=["'w'", "f32 [9]", "output"],
    )
    weighted(
        "weights_declared_thrice",
        [value("v", (5,)), value("y", (2, 3), T.INT64)],
        [value("w", (4,), T.INT64)],
        ["n0", "n1", "i64 [4]", "f32 [5]", "'y' is f32"],
        messages=3,
    )
    body = h.make_graph(
        [node("Identity", ("i",), ("o",), "inner")], "b", [value("i", dtype=T.INT64)], [value("o")]
    )
    case(
        "declared_subgraph_input_type",
        model([node("Scan", ("x",), num_scan_inputs=1, body=body)]),
        3,
        ["n0", "'i'", "'b'", "f32", "i64"],
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
