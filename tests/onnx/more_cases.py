#!/usr/bin/env python3
"""Writes ONNX cases that the official suite lacks, with onnxruntime's results as the truth.

    more_cases.py OUT_DIR        OUT_DIR/NAME/{model.onnx,test_data_set_0/...}; exit status 77
                                 without ONNX Runtime

Recurrent networks in every direction with lengths, states, peepholes and activations; quantized
tensors by axis and by block; branches, loops and scans with captures; sequences; signals; boxes;
samples of images; sparse constants.
"""

import sys

from case_writer import (
    BOOL,
    FLOAT,
    INT64,
    NODE,
    RNG,
    VALUE,
    Cases,
    floats,
    ints,
)  # first: it ends where something is missing

import numpy as np
import onnxruntime as ort
from edge_cases import (
    bools,
    collisions,
    cut_pads,
    first_versions,
    fractions_of_integers,
    loops_of_constants,
    of_nothing,
    outputs_again,
    shrunk_integers,
)
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def rnn_case(cases, op, gates, direction, variant):
    time, batch, size, hidden = 5, 3, 4, 6
    d = 2 if direction == "bidirectional" else 1
    attrs = {"hidden_size": hidden, "direction": direction}
    given = {
        "X": floats(time, batch, size),
        "W": floats(d, gates * hidden, size),
        "R": floats(d, gates * hidden, hidden),
    }
    if variant != "plain":
        given["B"] = floats(d, 2 * gates * hidden)
    if variant in ("lengths", "all"):
        given["L"] = np.array([5, 2, 3], np.int32)
    if variant in ("states", "all", "clip"):
        given["H"] = floats(d, batch, hidden)
        if op == "LSTM":
            given["C"] = floats(d, batch, hidden)
    if variant in ("all", "clip") and op == "LSTM":
        given["P"] = floats(d, 3 * hidden)
    if variant == "clip":
        attrs["clip"] = 0.3
    if variant in ("states", "all") and op == "GRU":
        attrs["linear_before_reset"] = 1
    if variant == "states" and op == "LSTM":
        attrs["input_forget"] = 1
    if variant == "activations":
        names, alpha, beta = {
            "RNN": (["LeakyRelu"], [0.3], []),
            "GRU": (["HardSigmoid", "ScaledTanh"], [0.3, 0.8], [0.4, 0.9]),
            "LSTM": (["HardSigmoid", "Softsign", "Affine"], [0.3, 0.7], [0.4, 0.1]),
        }[op]
        attrs.update(activations=names * d, activation_alpha=alpha * d)
        if beta:
            attrs["activation_beta"] = beta * d
    order = ["X", "W", "R", "B", "L", "H"] + (["C", "P"] if op == "LSTM" else [])
    outputs = ["" if variant == "lengths" else "Y", "Yh"] + (["Yc"] if op == "LSTM" else [])
    node = NODE(op, [k if k in given else "" for k in order], outputs, **attrs)
    cases.add(f"{op.lower()}_{direction}_{variant}", node, given.items(), 14)


def recurrent(cases):
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for direction in ("forward", "reverse", "bidirectional"):
            for variant in ("plain", "bias", "lengths", "states", "all", "clip", "activations"):
                rnn_case(cases, op, gates, direction, variant)


def quantized(cases):
    for dtype in (np.int8, np.uint8, np.int16, np.uint16):
        name, lo, hi = np.dtype(dtype).name, np.iinfo(dtype).min, np.iinfo(dtype).max
        x, q = floats(3, 4, 5) * 300, ints(dtype, 3, 4, 5)
        for axis, block, shape in (
            (1, 0, (4,)),
            (1, 2, (3, 2, 5)),
            (2, 3, (3, 4, 2)),
            (0, 2, (2, 4, 5)),
        ):
            s, z = np.abs(floats(*shape)) + 0.1, RNG.integers(lo // 3, hi // 3, shape).astype(dtype)
            attrs = {"axis": axis, "block_size": block} if block else {"axis": axis}
            for op, v in (("QuantizeLinear", x), ("DequantizeLinear", q)):
                cases.add(
                    f"{op.lower()}_{name}_{axis}_{block}",
                    NODE(op, ["x", "s", "z"], ["y"], **attrs),
                    [("x", v), ("s", s), ("z", z)],
                    21,
                )
        odd = np.tile(np.float32([np.nan, np.inf, -np.inf, -0.0, 0.25]), 8)
        cases.add(
            f"quantizelinear_{name}_odd",
            NODE("QuantizeLinear", ["x", "s", "z"], ["y"]),
            [("x", odd), ("s", np.float32(0.1)), ("z", np.array(3, dtype))],
            21,
        )
    cases.add(
        "dynamicquantizelinear_positive",
        NODE("DynamicQuantizeLinear", ["x"], ["y", "s", "z"]),
        [("x", np.abs(floats(30, 4)))],
        13,
    )


def quantized_products(cases):
    for x_type, w_type in ((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)):
        name = f"{np.dtype(x_type).name}_{np.dtype(w_type).name}"
        for group in (1, 2):
            one = w_type == np.uint8
            values = {
                "x": ints(x_type, 2, 4, 9, 8),
                "xs": np.float32(0.02),
                "xz": ints(x_type, 1)[0],
                "w": ints(w_type, 6, 4 // group, 3, 3),
                "ws": np.float32(0.01) if one else np.abs(floats(6)) * 0.01 + 0.001,
                "wz": ints(w_type, 1)[0] if one else np.zeros(6, w_type),
                "ys": np.float32(0.7),
                "yz": ints(x_type, 1)[0],
                "b": RNG.integers(-1000, 1000, 6).astype(np.int32),
            }
            node = NODE(
                "QLinearConv", list(values), ["y"], group=group, pads=[1, 0, 2, 1], strides=[2, 1]
            )
            cases.add(f"qlinearconv_{name}_{group}", node, values.items(), 10)
        a, b, bz = ints(x_type, 2, 5, 7), ints(w_type, 7, 6), ints(w_type, 6)
        values = {
            "a": a,
            "as": np.float32(0.02),
            "az": ints(x_type, 1)[0],
            "b": b,
            "bs": np.abs(floats(6)) * 0.01 + 0.001,
            "bz": bz,
            "ys": np.float32(0.4),
            "yz": ints(x_type, 1)[0],
        }
        cases.add(
            f"qlinearmatmul_{name}", NODE("QLinearMatMul", list(values), ["y"]), values.items(), 10
        )
        values = {"a": a, "b": b, "az": ints(x_type, 1)[0], "bz": bz}
        cases.add(
            f"matmulinteger_{name}", NODE("MatMulInteger", list(values), ["y"]), values.items(), 10
        )


def graph(nodes, inputs, outputs, consts=()):
    return helper.make_graph(
        nodes,
        "body",
        inputs,
        outputs,
        [numpy_helper.from_array(np.asarray(v), k) for k, v in consts],
    )


def branches(cases):
    then = graph([NODE("Add", ["x", "y"], ["r"])], [], [VALUE("r", FLOAT, None)])
    other = graph(
        [NODE("Sub", ["x", "k"], ["q"])], [], [VALUE("q", FLOAT, None)], [("k", np.float32(2))]
    )
    node = NODE("If", ["c"], ["z"], then_branch=then, else_branch=other)
    for c in (True, False):
        inputs = [("x", floats(3, 4)), ("y", floats(4))]
        cases.add(f"if_{c}", node, inputs + [("c", np.array(c))], 13)
        cases.add(f"if_known_{c}", node, inputs, 13, [("c", np.array(c))])


LOOP_IN = [VALUE("i", INT64, []), VALUE("ci", BOOL, [])]


def loops(cases):
    step = [
        NODE("Add", ["v", "w"], ["v2"]),
        NODE("ReduceSum", ["v2"], ["sum"], keepdims=0),
        NODE("Less", ["sum", "lim"], ["co"]),
    ]
    v, v2 = VALUE("v", FLOAT, [3]), VALUE("v2", FLOAT, [3])
    inputs = [("v0", np.ones(3, np.float32)), ("w", np.full(3, 0.7, np.float32))]
    limit = [("lim", np.float32(10))]
    body = graph(step, LOOP_IN + [v], [VALUE("co", BOOL, []), v2], limit)
    for c in (True, False):
        cases.add(
            f"loop_while_{c}",
            NODE("Loop", ["", "c", "v0"], ["vf"], body=body),
            inputs + [("c", np.array(c))],
            13,
        )
    nodes = [
        NODE("Loop", ["M", "", "v0"], ["vf"], body=body),
        NODE("TopK", ["vf", "two"], ["top", "place"]),  # asks whether vf is a constant
    ]
    consts = [("two", np.array([2])), ("M", np.int64(20))]
    cases.add("loop_while_top", nodes, inputs, 13, consts)
    stacked = step + [NODE("Cast", ["i"], ["fi"], to=1), NODE("Mul", ["v2", "fi"], ["s"])]
    body = graph(stacked, LOOP_IN + [v], [VALUE("co", BOOL, []), v2, VALUE("s", FLOAT, [3])], limit)
    for trip in (2, 20):
        cases.add(
            f"loop_stacked_{trip}",
            NODE("Loop", ["M", "", "v0"], ["vf", "ss"], body=body),
            inputs,
            13,
            [("M", np.int64(trip))],
        )
    cases.add(
        "loop_stacked_run",
        NODE("Loop", ["M", "", "v0"], ["vf", "ss"], body=body),
        inputs + [("M", np.array(2))],
        13,
    )
    body = graph(
        [NODE("Concat", ["v", "v0"], ["v2"], axis=0), NODE("Identity", ["ci"], ["co"])],
        LOOP_IN + [VALUE("v", FLOAT, None)],
        [VALUE("co", BOOL, []), VALUE("v2", FLOAT, None)],
    )
    cases.add(
        "loop_grows",
        NODE("Loop", ["M", "", "v0"], ["vf"], body=body),
        inputs[:1],
        13,
        [("M", np.int64(4))],
    )
    inner = graph(
        [
            NODE("Add", ["a", "fi"], ["a1"]),
            NODE("Add", ["a1", "w"], ["a2"]),
            NODE("Identity", ["cj"], ["cp"]),
        ],
        [VALUE("j", INT64, []), VALUE("cj", BOOL, []), VALUE("a", FLOAT, [3])],
        [VALUE("cp", BOOL, []), VALUE("a2", FLOAT, [3])],
    )
    body = graph(
        [
            NODE("Cast", ["i"], ["fi"], to=1),
            NODE("Loop", ["K", "", "v"], ["v2"], body=inner),
            NODE("Identity", ["ci"], ["co"]),
            NODE("Identity", ["v2"], ["s"]),
        ],
        LOOP_IN + [v],
        [VALUE("co", BOOL, []), v2, VALUE("s", FLOAT, [3])],
    )
    cases.add(
        "loop_nested",
        NODE("Loop", ["M", "", "v0"], ["vf", "sf"], body=body),
        inputs,
        13,
        [("M", np.int64(4)), ("K", np.int64(3))],
    )


def scans(cases):
    s, x, y = (VALUE(k, FLOAT, [3]) for k in "sxy")
    out = [VALUE(k, FLOAT, [3]) for k in ("s2", "o", "p")]
    body = graph(
        [
            NODE("Add", ["s", "x"], ["s2"]),
            NODE("Mul", ["s2", "y"], ["o"]),
            NODE("Identity", ["s2"], ["p"]),
        ],
        [s, x, y],
        out,
    )
    for d in range(4):
        node = NODE(
            "Scan",
            ["s0", "X", "Y"],
            ["sf", "O", "P"],
            num_scan_inputs=2,
            body=body,
            scan_input_axes=[1, -2],
            scan_input_directions=[d & 1, d >> 1],
            scan_output_axes=[1, 0],
            scan_output_directions=[d >> 1, d & 1],
        )
        cases.add(
            f"scan_{d}", node, [("s0", floats(3)), ("X", floats(3, 5)), ("Y", floats(5, 3))], 11
        )
    body = graph(
        [NODE("Add", ["s", "x"], ["s2"]), NODE("Identity", ["s2"], ["p"])], [s, x], [out[0], out[2]]
    )
    inputs = [("s0", floats(2, 3)), ("X", floats(2, 5, 3))]
    for d in (0, 1):
        node = NODE(
            "Scan", ["", "s0", "X"], ["sf", "P"], num_scan_inputs=1, body=body, directions=[d]
        )
        cases.add(f"scan8_{d}", node, inputs, 8)
    node = NODE("Scan", ["L", "s0", "X"], ["sf", "P"], num_scan_inputs=1, body=body)
    cases.add("scan8_lengths", node, inputs + [("L", np.array([5, 3], np.int64))], 8)


def sequences(cases):
    cases.add(
        "sequence_edit",
        [
            NODE("SplitToSequence", ["x", "sp"], ["s"], axis=1),
            NODE("SequenceErase", ["s", "p"], ["s2"]),
            NODE("SequenceInsert", ["s2", "t", "p"], ["s3"]),
            NODE("ConcatFromSequence", ["s3"], ["y"], axis=1),
        ],
        [("x", floats(2, 7)), ("t", floats(2, 2))],
        13,
        [("sp", np.int64(3)), ("p", np.int64(-2))],
    )
    cases.add(
        "sequence_at_run",
        [NODE("SequenceConstruct", ["x", "y"], ["s"]), NODE("SequenceAt", ["s", "p"], ["z"])],
        [("x", floats(2, 7)), ("y", floats(2, 7)), ("p", np.array(-1))],
        13,
    )
    seq = helper.make_tensor_sequence_value_info
    body = graph(
        [NODE("SequenceInsert", ["s", "x"], ["s2"]), NODE("Identity", ["ci"], ["co"])],
        LOOP_IN + [seq("s", FLOAT, None)],
        [VALUE("co", BOOL, []), seq("s2", FLOAT, None)],
    )
    cases.add(
        "sequence_loop",
        [
            NODE("SequenceEmpty", [], ["e"]),
            NODE("Loop", ["M", "", "e"], ["sf"], body=body),
            NODE("ConcatFromSequence", ["sf"], ["y"], axis=0),
        ],
        [("x", floats(2, 3))],
        13,
        [("M", np.int64(3))],
    )


def regions(cases):
    x = floats(2, 3, 12, 14)
    rois = [[0, 0, 9, 7], [3, 2, 13, 11], [1.5, 2.5, 4, 5], [-2, -1, 5, 6], [-9, 2.7, 31, 40]]
    rois = np.array(rois, np.float32)  # the last one is larger than the image
    for mode in ("avg", "max"):
        for ratio in (0, 3):
            for how in ("half_pixel", "output_half_pixel"):
                node = NODE(
                    "RoiAlign",
                    ["x", "r", "b"],
                    ["y"],
                    mode=mode,
                    output_height=4,
                    output_width=3,
                    sampling_ratio=ratio,
                    spatial_scale=0.9,
                    coordinate_transformation_mode=how,
                )
                cases.add(
                    f"roialign_{mode}_{ratio}_{how}",
                    node,
                    [("x", x), ("r", rois), ("b", np.array([0, 1, 1, 0, 1]))],
                    16,
                )
    node = NODE("ConvTranspose", ["x", "w"], ["y"], strides=[5000])  # more zeros than phases
    cases.add("conv_transpose_far", node, [("x", floats(1, 1, 2)), ("w", floats(1, 1, 3))], 11)
    for offset_group in (1, 2):
        for group in (1, 2):
            inputs = [
                ("x", floats(2, 4, 8, 9)),
                ("w", floats(6, 4 // group, 3, 2)),
                ("o", floats(2, offset_group * 12, 4, 10) * 2),
                ("b", floats(6)),
                ("m", floats(2, offset_group * 6, 4, 10)),
            ]
            node = NODE(
                "DeformConv",
                [k for k, _ in inputs],
                ["y"],
                pads=[1, 1, 2, 1],
                strides=[2, 1],
                dilations=[2, 1],
                group=group,
                offset_group=offset_group,
            )
            cases.add(f"deformconv_{offset_group}_{group}", node, inputs, 19)
    for center in (0, 1):
        inputs = [
            ("b", np.abs(floats(2, 30, 4)) * 3),
            ("s", np.abs(floats(2, 3, 30))),
            ("m", np.array([5])),
            ("i", np.array([0.3], np.float32)),
            ("t", np.array([0.2], np.float32)),
        ]
        cases.add(
            f"nms_{center}",
            NODE("NonMaxSuppression", [k for k, _ in inputs], ["y"], center_point_box=center),
            inputs,
            11,
        )


def sizes(cases):
    """Rows that the data choose, seen as [rows, -1]: the -1 follows where there may be none."""
    step = [
        ("b0", np.array([0])),
        ("b1", np.array([1])),
        ("e", np.array([12])),
        ("one", np.array([1])),
        ("four", np.array([4])),
    ]
    nodes = [
        NODE("Compress", ["x", "c"], ["r"], axis=0),
        NODE("Shape", ["r"], ["s"], end=1),
        NODE("Concat", ["s", "left"], ["to"], axis=0),
        NODE("Reshape", ["r", "to"], ["flat"]),
        NODE("Slice", ["flat", "b0", "e", "one", "four"], ["p"]),
        NODE("Slice", ["flat", "b1", "e", "one", "four"], ["q"]),
        NODE("Sub", ["p", "q"], ["y"]),
    ]
    cases.add(
        "reshape_chosen_rows",
        nodes,
        [("x", floats(80, 3, 4)), ("c", np.arange(80) % 3 == 1)],
        15,
        step + [("left", np.array([-1]))],
    )


def samples(cases):
    """Every mode, padding and corner of GridSample at once, around the image and far from it."""
    for axes, modes in ((2, ("linear", "nearest", "cubic")), (3, ("linear", "nearest"))):
        nodes = [
            NODE(
                "GridSample",
                ["x", "g"],
                [f"{mode}_{pad}_{align}"],
                mode=mode,
                padding_mode=pad,
                align_corners=align,
            )
            for mode in modes
            for pad in ("zeros", "border", "reflection")
            for align in (0, 1)
        ]
        grid = RNG.uniform(-1.7, 1.7, (2, *(7, 4, 3)[:axes], axes)).astype(np.float32)
        grid[0, 0] = RNG.uniform(-9, 9, grid[0, 0].shape)
        cases.add(
            f"gridsample_{axes}d",
            nodes,
            [("x", floats(2, 3, *(5, 4, 6)[:axes])), ("g", grid)],
            20,
            wanted=[k.output[0] for k in nodes],
        )


def one_pixel(cases):
    """Where both corners are one centre."""
    nodes = [
        NODE("AffineGrid", ["t", f"s{i}"], [f"y{i}{align}"], align_corners=align)
        for i in range(3)
        for align in (0, 1)
    ]
    sizes = ([2, 1, 1, 4], [2, 1, 3, 1], [2, 1, 1, 1])
    consts = [(f"s{i}", np.array(v)) for i, v in enumerate(sizes)]
    outputs = [k.output[0] for k in nodes]
    cases.add("affinegrid_one_pixel", nodes, [("t", floats(2, 2, 3))], 20, consts, wanted=outputs)


def resized_integers(cases):
    """Interpolated integers are rounded and stay in their range: by the standard's reference. With
    odd sizes of no common factor nothing lies half way between two integers, and no place but the
    first beside one by a rounding error."""

    def by_reference(model, feeds):
        return ReferenceEvaluator(model).run(None, feeds)

    for dtype in (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.int64, np.uint64):
        info = np.iinfo(dtype)
        x = RNG.integers(
            max(info.min, -999), min(info.max, 999), (1, 1, 9, 7), dtype, endpoint=True
        )
        if info.bits == 8:  # some that a cubic carries out of the range
            x = np.where(RNG.random(x.shape) < 0.3, info.max, x).astype(dtype)
        elif not info.min:
            x = np.where(RNG.random(x.shape) < 0.3, 0, x).astype(dtype)
        nodes = [
            NODE(
                "Resize",
                ["x", "", "", size],
                [f"{mode}_{size}_{aa}"],
                mode=mode,
                antialias=aa,
                coordinate_transformation_mode="asymmetric",
                cubic_coeff_a=-0.7,
            )
            for mode, aa in (("linear", 1), ("cubic", 1), ("cubic", 0))
            for size in ("less", "more")
        ]
        sizes = [("less", np.array([1, 1, 5, 5])), ("more", np.array([1, 1, 13, 17]))]
        cases.add(
            f"resize_{np.dtype(dtype).name}",
            nodes,
            [("x", x)],
            18,
            sizes,
            wanted=[k.output[0] for k in nodes],
            truth=by_reference,
        )
        if info.bits == 32:  # more bits than a f32 has
            cases.add(
                f"resize_{np.dtype(dtype).name}_large",
                nodes[:2],
                [("x", ints(dtype, 1, 1, 9, 7))],
                18,
                sizes,
                wanted=[k.output[0] for k in nodes[:2]],
                truth=by_reference,
            )
    cases.add(
        "resize_uint8_cut",
        NODE("Resize", ["x", "", "", "s"], ["y"], mode="linear"),
        [("x", ints(np.uint8, 1, 1, 4, 4))],
        18,
        [("s", np.array([1, 1, 16, 16]))],
    )  # weights that no type rounds


def resized_places(cases):
    """Scales that f32 has not, whose quotients are whole numbers all the same: which element is the
    nearest there. One of pytorch_half_pixel alone is the first."""
    scales = np.array([1, 1, 0.6, 2.4], np.float32)
    nodes = [
        NODE(
            "Resize",
            ["x", "", "scales"],
            [f"{coords}_{nearest}"],
            mode="nearest",
            nearest_mode=nearest,
            coordinate_transformation_mode=coords,
        )
        for coords in ("asymmetric", "half_pixel", "pytorch_half_pixel")
        for nearest in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    ]
    nodes += [
        NODE(
            "Resize",
            ["x", "", "", "one"],
            [f"{mode}_{aa}"],
            mode=mode,
            antialias=aa,
            coordinate_transformation_mode="pytorch_half_pixel",
        )
        for mode in ("linear", "cubic")
        for aa in (0, 1)
    ]
    cases.add(
        "resize_places",
        nodes,
        [("x", floats(1, 2, 10, 7))],
        18,
        [("scales", scales), ("one", np.array([1, 2, 1, 1]))],
        wanted=[k.output[0] for k in nodes],
    )
    # 1.5 and 1.6 elements are one: pytorch_half_pixel's first, the middle of the others
    nodes = [
        NODE(
            "Resize",
            ["x", "roi" if coords == "tf_crop_and_resize" else "", "scales"],
            [f"{coords}_{mode}_{nearest}"],
            mode=mode,
            nearest_mode=nearest,
            coordinate_transformation_mode=coords,
        )
        for coords in ("pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize")
        for mode, nearest in (
            ("nearest", "floor"),
            ("nearest", "ceil"),
            ("nearest", "round_prefer_floor"),
            ("nearest", "round_prefer_ceil"),
            ("linear", "floor"),
            ("cubic", "floor"),
        )
    ]
    cases.add(
        "resize_to_one",
        nodes,
        [("x", floats(1, 2, 3, 4))],
        19,
        [
            ("scales", np.array([1, 1, 0.5, 0.4], np.float32)),
            ("roi", np.array([0, 0, 0.125, 0.25, 1, 1, 0.875, 0.75], np.float32)),
        ],
        wanted=[k.output[0] for k in nodes],
    )


def sparse(dims, values, indices, name="s"):
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.asarray(values), name),
        numpy_helper.from_array(np.asarray(indices, np.int64), name + "_at"),
        dims,
    )


def sparse_constants(cases):
    """Places as one number or as coordinates, of several types, and none at all."""
    nodes, outputs = [], []
    for i, dtype in enumerate(
        (np.float32, np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8, np.bool_)
    ):
        values = np.array([1, 0, 1, 1], dtype)
        for how, at in (
            ("linear", [0, 5, 6, 23]),
            ("places", [[0, 0, 0], [0, 1, 1], [0, 1, 2], [1, 2, 3]]),
        ):
            nodes += [
                NODE("Constant", [], [f"{how}{i}"], sparse_value=sparse([2, 3, 4], values, at)),
                NODE("Identity", [f"{how}{i}"], [f"y{how}{i}"]),
            ]
            outputs.append(f"y{how}{i}")
    nodes += [
        NODE(
            "Constant",
            [],
            ["none"],
            sparse_value=sparse([3, 4], np.zeros(0, np.float32), np.zeros((0, 2))),
        ),
        NODE("Constant", [], ["row"], sparse_value=sparse([4], np.float32([2.5]), [2])),
        NODE("Add", ["x", "none"], ["x1"]),
        NODE("Mul", ["x1", "row"], ["y"]),
    ]
    cases.add("constant_sparse", nodes, [("x", floats(3, 4))], 13, wanted=[*outputs, "y"])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ort.set_default_logger_severity(4)
    cases = Cases(sys.argv[1])
    for family in (
        recurrent,
        quantized,
        quantized_products,
        branches,
        loops,
        scans,
        sequences,
        regions,
        sizes,
        samples,
        one_pixel,
        resized_integers,
        resized_places,
        cut_pads,
        sparse_constants,
        outputs_again,
        collisions,
        of_nothing,
        first_versions,
        fractions_of_integers,
        bools,
        shrunk_integers,
        loops_of_constants,
    ):
        family(cases)
    print(cases.n, "cases")


if __name__ == "__main__":
    main()
