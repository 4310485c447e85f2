"""Cases of more_cases.py at the edges of what an operator is told."""

import numpy as np
from case_writer import BOOL, INT64, NODE, RNG, VALUE, floats, scalar
from onnx import helper
from onnx.reference import ReferenceEvaluator


def of_nothing(cases):
    """Places of an axis without elements, which nothing asks for, and sequences without steps."""
    nodes = [NODE("Hardmax", ["x"], [f"y{axis}"], axis=axis) for axis in (0, 1)]
    cases.add("hardmax_of_nothing", nodes, [("x", floats(0, 4))], 13, wanted=["y0", "y1"])
    nodes = [
        NODE(op, ["x"], [f"y{op}{keep}"], axis=0, keepdims=keep)
        for op in ("ArgMax", "ArgMin")
        for keep in (0, 1)
    ]
    wanted = [k.output[0] for k in nodes]
    cases.add("arg_of_nothing", nodes, [("x", floats(0, 0, 2))], 13, wanted=wanted)
    node = NODE("Gather", ["x", "i"], ["y"], axis=1)
    cases.add(
        "gather_none_of_none", node, [("x", floats(3, 0)), ("i", np.zeros((0, 2), np.int64))], 13
    )
    weights = [("w", floats(1, 8, 3)), ("r", floats(1, 8, 2))]
    node = NODE("LSTM", ["x", "w", "r"], ["all"], hidden_size=2)
    cases.add("lstm_of_nothing", node, [("x", floats(0, 2, 3))], 14, weights)
    boxes = np.float32([[0, 0, 3, 3], [1, 1, 2, 2]])
    for mode in ("avg", "max"):
        node = NODE("RoiAlign", ["x", "boxes", "b"], ["y"], mode=mode, sampling_ratio=2)
        cases.add(
            f"roi_align_of_nothing_{mode}",
            node,
            [("x", floats(1, 2, 5, 0)), ("boxes", boxes), ("b", np.zeros(2, np.int64))],
            16,
        )


def by_reference(model, feeds):
    return ReferenceEvaluator(model).run(None, feeds)


def fractions_of_integers(cases):
    """Integers times numbers that are none: what comes out is cut, not what is multiplied."""
    for dtype in (np.int32, np.uint64):
        node = NODE("Gemm", ["a", "b", "c"], ["y"], alpha=0.25, beta=0.6, transB=1)
        given = [("a", (3, 4)), ("b", (5, 4)), ("c", (5,))]
        inputs = [(k, RNG.integers(0, 9, shape).astype(dtype)) for k, shape in given]
        cases.add(f"gemm_fractions_{np.dtype(dtype).name}", node, inputs, 13, truth=by_reference)
    node = NODE("BlackmanWindow", ["n"], ["y"], output_datatype=int(INT64))
    cases.add("blackman_window_i64", node, [], 17, [("n", scalar(np.int64, 10))], {"y": INT64})


def shrunk_integers(cases):
    """Numbers between integers to compare with, and to take away."""
    for dtype in (np.int8, np.uint8, np.int64, np.uint32):
        x = RNG.integers(0 if dtype in (np.uint8, np.uint32) else -5, 6, 9).astype(dtype)
        for bias in (0.0, 1.5):
            node = NODE("Shrink", ["x"], ["y"], lambd=1.5, bias=bias)
            cases.add(f"shrink_{x.dtype}_{bias:.0f}", node, [("x", x)], 9)


def bools(cases):
    """A sum of those is whether any is true."""
    node = NODE("Col2Im", ["x", "image", "block"], ["y"])
    consts = [("image", np.array([5, 5])), ("block", np.array([1, 5]))]
    x = RNG.random((1, 5, 5)) < 0.5
    cases.add("col2im_bool", node, [("x", x)], 18, consts, truth=by_reference)
    image = RNG.integers(-(1 << 62), 1 << 62, (1, 2, 3, 4))
    node = NODE("GridSample", ["x", "grid"], ["y"], mode="nearest")
    given = [("x", image), ("grid", floats(1, 5, 5, 2))]
    cases.add("grid_sample_nearest_i64", node, given, 20, truth=by_reference)
    given = [("x", RNG.random((3, 4)) < 0.5), ("u", RNG.random((3, 4)) < 0.5)]
    given += [("i", RNG.integers(0, 3, (3, 4)))]
    for how in ("add", "mul", "max", "min"):
        node = NODE("ScatterElements", ["x", "i", "u"], ["y"], reduction=how)
        cases.add(f"scatter_elements_bool_{how}", node, given, 18, truth=by_reference)


def cut_pads(cases):
    """wrap repeats what negative pads leave."""
    pads = {
        f"p{i}": np.array(p)
        for i, p in enumerate(([2, 0, -1, 0], [-1, -2, 5, 0], [7, -1, -2, 9], [-2, 3, -1, -3]))
    }
    nodes = [
        NODE("Pad", ["x", p], [f"{mode}_{p}"], mode=mode)
        for p in pads
        for mode in ("wrap", "edge", "constant")
    ]
    outputs = [k.output[0] for k in nodes]
    cases.add("pad_cut", nodes, [("x", floats(5, 6))], 19, pads.items(), wanted=outputs)
    cases.add("pad_cut_run", nodes, [("x", floats(5, 6)), *pads.items()], 19, wanted=outputs)


def outputs_again(cases):
    """A value, and an input, that are outputs more than once, beside one whose name a second time
    might take."""
    nodes = [NODE("Relu", ["x"], ["y"]), NODE("Neg", ["y"], ["y_2"])]
    cases.add(
        "outputs_again", nodes, [("x", floats(3, 4))], 17, wanted=["y", "y_2", "x", "y", "x", "y"]
    )


def collisions(cases):
    """Many updates of one place, which a constant names."""
    for how in ("add", "mul", "max", "min"):
        x, u = floats(3, 2), floats(3, 4)
        for axis, data, new in ((1, x, u), (0, x.T.copy(), u.T.copy())):
            cases.add(
                f"scatter_elements_{how}_one_place_{axis}",
                NODE("ScatterElements", ["x", "i", "u"], ["y"], axis=axis, reduction=how),
                [("x", data), ("u", new)],
                18,
                [("i", np.ones(new.shape, np.int64))],
            )
        cases.add(
            f"scatter_nd_{how}_one_place",
            NODE("ScatterND", ["x", "i", "u"], ["y"], reduction=how),
            [("x", floats(3)), ("u", floats(4))],
            18,
            [("i", np.ones((4, 1), np.int64))],
        )


def first_versions(cases):
    """What only the first versions of an operator have: before opset 11 the nearest is the place
    above where an axis shrinks; statistics of each element before opset 9."""
    x, scales = floats(1, 2, 10, 7), np.array([1, 1, 0.6, 2.4], np.float32)
    node = NODE("Resize", ["x", "scales"], ["y"], mode="nearest")
    cases.add("resize_10_places", node, [("x", x)], 10, [("scales", scales)])
    cases.add("resize_10_run_scales", node, [("x", x), ("scales", scales)], 10)
    cases.add(
        "batch_norm_7_elements",
        NODE("BatchNormalization", ["x", *"sbmv"], ["y"], spatial=0),
        [("x", floats(3, 2, 4))],
        7,
        [(k, np.abs(floats(2, 4)) + np.float32(0.5)) for k in "sbmv"],
    )
    cases.add(
        "resize_nothing_to_nothing",
        NODE("Resize", ["x", "", "", "sizes"], ["y"], mode="nearest"),
        [("x", floats(0, 2, 3, 3))],
        18,
        [("sizes", np.array([0, 2, 6, 6]))],
    )


def loops_of_constants(cases):
    """How often only the run says, so what they make is no constant, though all they carry is."""
    body = helper.make_graph(
        [NODE("Identity", ["go"], ["goes"]), NODE("Add", ["v", "one"], ["w"])],
        "body",
        [VALUE("i", INT64, []), VALUE("go", BOOL, []), VALUE("v", INT64, [2])],
        [VALUE("goes", BOOL, []), VALUE("w", INT64, [2])],
    )
    nodes = [
        NODE("Loop", ["times", "", "begin"], ["last"], body=body),
        NODE("Mod", ["last", "five"], ["place"]),
        NODE("Gather", ["rows", "place"], ["y"]),
    ]
    consts = [("one", scalar(np.int64, 1)), ("five", scalar(np.int64, 5))]
    consts += [("begin", np.array([0, 3])), ("rows", floats(5, 2))]
    cases.add("loop_of_constants", nodes, [("times", scalar(np.int64, 4))], 18, consts)
