#!/usr/bin/env python3
"""Writes cases of sequences and optionals whose length, places and sizes only the run knows, and of
zero points that it computes; of shapes that are sizes of a tensor.

    sequence_cases.py OUT_DIR        OUT_DIR/sequence/NAME/{model.onnx,test_data_set_N/...}

Each has several data sets, so that `run.py --data-dims` compiles it for bounds: the shortest
sequence and the longest, the smallest element and the largest. onnxruntime's results are the truth.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

NODE = helper.make_node
RNG = np.random.default_rng(1)
FLOAT, INT32, INT64, BOOL = (
    TensorProto.FLOAT,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.BOOL,
)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def tensor(dtype, shape=None):
    return helper.make_tensor_type_proto(dtype, shape)


def sequence(dtype, shape=None):
    return helper.make_sequence_type_proto(tensor(dtype, shape))


def optional(type_proto):
    return helper.make_optional_type_proto(type_proto)


def scalar(v):
    return np.array(v, np.int64)


def graph(name, nodes, inputs, outputs, consts=()):
    info = [[onnx.ValueInfoProto(name=k, type=t) for k, t in pairs] for pairs in (inputs, outputs)]
    return helper.make_graph(
        nodes, name, *info, [numpy_helper.from_array(np.asarray(v), k) for k, v in consts]
    )


def to_pb(value, name, type_proto):
    kind = type_proto.WhichOneof("value")
    if kind == "optional_type":
        if value is None:
            return onnx.OptionalProto(name=name).SerializeToString()
        return numpy_helper.from_optional(value, name).SerializeToString()
    if kind == "sequence_type":
        s = onnx.SequenceProto(name=name, elem_type=onnx.SequenceProto.TENSOR)
        s.tensor_values.extend(numpy_helper.from_array(v) for v in value)
        return s.SerializeToString()
    return numpy_helper.from_array(value, name).SerializeToString()


def write(out, name, nodes, inputs, outputs, sets, consts=(), opset=18, want=None):
    """sets: lists of input values; want(set): the outputs where onnxruntime cannot tell."""
    model = helper.make_model(
        graph(name, nodes, inputs, outputs, consts), opset_imports=[helper.make_opsetid("", opset)]
    )
    model.ir_version = 9
    folder = out / "sequence" / name
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    session = (
        None
        if want
        else ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    )
    for i, values in enumerate(sets):
        results = (
            want(*values) if want else session.run(None, dict(zip([k for k, _ in inputs], values)))
        )
        data = folder / f"test_data_set_{i}"
        data.mkdir(exist_ok=True)
        for what, pairs, list_ in (("input", inputs, values), ("output", outputs, results)):
            for k, ((label, type_proto), v) in enumerate(zip(pairs, list_)):
                (data / f"{what}_{k}.pb").write_bytes(to_pb(v, label, type_proto))


def lists(*shapes):
    return [floats(*s) for s in shapes]


def rows(*counts):
    """Sequences of as many elements, of one dim that differs, two that do not."""
    return [[floats(2, int(RNG.integers(1, 6)), 3) for _ in range(n)] for n in counts]


def places(out):
    x, i, y = (
        ("x", sequence(FLOAT, [2, "n", 3])),
        ("i", tensor(INT64, [])),
        ("y", tensor(FLOAT, None)),
    )
    s = ("s", sequence(FLOAT, None))
    a, b, c = rows(1, 3, 4)
    write(
        out,
        "at",
        [NODE("SequenceAt", ["x", "i"], ["y"])],
        [x, i],
        [y],
        [[a, scalar(-1)], [b, scalar(1)], [c, scalar(-4)], [c, scalar(3)]],
    )
    write(
        out,
        "length",
        [NODE("SequenceLength", ["x"], ["k"])],
        [x],
        [("k", tensor(INT64, []))],
        [[a], [b], [[]]],
    )
    write(
        out,
        "erase",
        [NODE("SequenceErase", ["x", "i"], ["s"])],
        [x, i],
        [s],
        [[a, scalar(0)], [b, scalar(-1)], [c, scalar(1)]],
    )
    write(out, "erase_last", [NODE("SequenceErase", ["x"], ["s"])], [x], [s], [[a], [b], [c]])
    t = ("t", tensor(FLOAT, [2, 7, 3]))
    write(
        out,
        "insert",
        [NODE("SequenceInsert", ["x", "t", "i"], ["s"])],
        [x, t, i],
        [s],
        [
            [[], floats(2, 7, 3), scalar(0)],
            [b, floats(2, 7, 3), scalar(-2)],
            [c, floats(2, 7, 3), scalar(4)],
        ],
    )
    write(
        out,
        "append",
        [NODE("SequenceInsert", ["x", "t"], ["s"])],
        [x, t],
        [s],
        [[[], floats(2, 7, 3)], [b, floats(2, 7, 3)]],
    )
    # a list of known length, a place that the run knows
    write(
        out,
        "at_of_list",
        [NODE("SequenceConstruct", ["a", "b", "c"], ["l"]), NODE("SequenceAt", ["l", "i"], ["y"])],
        [
            ("a", tensor(FLOAT, [2, 3])),
            ("b", tensor(FLOAT, [4, 3])),
            ("c", tensor(FLOAT, [1, 3])),
            i,
        ],
        [y],
        [[floats(2, 3), floats(4, 3), floats(1, 3), scalar(k)] for k in (0, 1, -1)],
    )
    write(
        out,
        "scalars",
        [NODE("SequenceInsert", ["x", "t", "i"], ["s"])],
        [("x", sequence(INT64, [])), ("t", tensor(INT64, [])), i],
        [("s", sequence(INT64, []))],
        [[[scalar(5), scalar(6)], scalar(7), scalar(1)], [[], scalar(7), scalar(0)]],
    )


def concats(out):
    x, y = ("x", sequence(FLOAT, [2, "n", 3])), ("y", tensor(FLOAT, None))
    a, b, c = rows(1, 3, 4)
    for axis in (1, -2):
        write(
            out,
            f"concat_{axis % 3}_{axis < 0}",
            [NODE("ConcatFromSequence", ["x"], ["y"], axis=axis)],
            [x],
            [y],
            [[a], [b], [c]],
        )
    even = [[floats(2, k, 3) for _ in range(m)] for k, m in ((1, 1), (4, 3), (2, 5))]
    for axis in (0, 2):
        write(
            out,
            f"concat_{axis}",
            [NODE("ConcatFromSequence", ["x"], ["y"], axis=axis)],
            [x],
            [y],
            [[v] for v in even],
        )
    for axis in (0, 1, -1):
        write(
            out,
            f"stack_{axis % 4}",
            [NODE("ConcatFromSequence", ["x"], ["y"], axis=axis, new_axis=1)],
            [x],
            [y],
            [[v] for v in even],
        )


def splits(out):
    s, y = ("s", sequence(FLOAT, None)), ("y", tensor(FLOAT, None))
    x = ("x", tensor(FLOAT, ["n", 4]))
    k = ("k", tensor(INT64, []))
    write(
        out,
        "split_each",
        [NODE("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0)],
        [x],
        [s],
        [[floats(n, 4)] for n in (1, 3, 5)],
    )
    write(
        out,
        "split_each_keep",
        [NODE("SplitToSequence", ["x"], ["s"], axis=0)],
        [x],
        [s],
        [[floats(n, 4)] for n in (1, 3, 5)],
    )
    write(
        out,
        "split_twos",
        [NODE("SplitToSequence", ["x", "two"], ["s"], axis=0)],
        [x],
        [s],
        [[floats(n, 4)] for n in (1, 4, 5)],
        [("two", scalar(2))],
    )
    write(
        out,
        "split_by",
        [NODE("SplitToSequence", ["x", "k"], ["s"], axis=0)],
        [x, k],
        [s],
        [[floats(n, 4), scalar(v)] for n, v in ((1, 1), (5, 2), (5, 5), (4, 7), (5, 1))],
    )
    write(
        out,
        "split_list",
        [NODE("SplitToSequence", ["x", "k"], ["s"], axis=1)],
        [("x", tensor(FLOAT, [2, 6])), ("k", tensor(INT64, [3]))],
        [s],
        [[floats(2, 6), np.array(v, np.int64)] for v in ([1, 2, 3], [0, 6, 0], [2, 2, 2])],
    )
    write(
        out,
        "split_and_join",
        [
            NODE("SplitToSequence", ["x", "two"], ["s"], axis=0),
            NODE("ConcatFromSequence", ["s"], ["y"], axis=0),
        ],
        [x],
        [y],
        [[floats(n, 4)] for n in (1, 4, 5)],
        [("two", scalar(2))],
    )


def maps(out):
    x, s = ("x", sequence(FLOAT, ["n", 3])), ("s", sequence(FLOAT, None))
    body = graph(
        "body",
        [NODE("ReduceSum", ["e", "axes"], ["m"], keepdims=0), NODE("Mul", ["e", "w"], ["f"])],
        [("e", tensor(FLOAT, ["n", 3])), ("w", tensor(FLOAT, [3]))],
        [("m", tensor(FLOAT, ["n"])), ("f", tensor(FLOAT, ["n", 3]))],
        [("axes", np.array([1], np.int64))],
    )
    sets = [
        [lists(*[(int(RNG.integers(1, 5)), 3) for _ in range(n)]), floats(3)] for n in (1, 2, 4)
    ]
    write(
        out,
        "map",
        [NODE("SequenceMap", ["x", "w"], ["s", "t"], body=body)],
        [x, ("w", tensor(FLOAT, [3]))],
        [s, ("t", sequence(FLOAT, None))],
        sets,
        want=lambda x, w: [[e.sum(1) for e in x], [e * w for e in x]],
    )


def loops(out):
    """A sequence that grows in a loop, and one that is read there."""
    x, s = ("x", sequence(FLOAT, ["n"])), ("s", sequence(FLOAT, None))
    body = graph(
        "body",
        [
            NODE("Identity", ["c"], ["c2"]),
            NODE("SequenceAt", ["x", "i"], ["e"]),
            NODE("Neg", ["e"], ["f"]),
            NODE("SequenceInsert", ["acc", "f"], ["acc2"]),
        ],
        [("i", tensor(INT64, [])), ("c", tensor(BOOL, [])), ("acc", sequence(FLOAT, None))],
        [("c2", tensor(BOOL, [])), ("acc2", sequence(FLOAT, None))],
    )
    nodes = [
        NODE("SequenceLength", ["x"], ["k"]),
        NODE("SequenceEmpty", [], ["none"], dtype=FLOAT),
        NODE("Loop", ["k", "", "none"], ["s"], body=body),
    ]
    write(
        out,
        "loop",
        nodes,
        [x],
        [s],
        [[lists(*[(int(RNG.integers(1, 5)),) for _ in range(n)])] for n in (1, 2, 4)],
    )
    nodes = nodes[:2] + [NODE("Loop", ["k", "", "x"], ["s"], body=body)]
    write(
        out,
        "loop_append",
        [nodes[0], nodes[2]],
        [x],
        [s],
        [[lists(*[(int(RNG.integers(1, 5)),) for _ in range(n)])] for n in (1, 2, 4)],
    )


def const(name, v):
    return NODE("Constant", [], [name], value=numpy_helper.from_array(np.asarray(v)))


NUMBER, TRUTH = tensor(INT64, []), tensor(BOOL, [])


def counted(out):
    """Loops that exporters make of `while`: what stays is carried too, and the end is where a count
    meets a bound."""
    row = tensor(FLOAT, [3])
    body = graph(
        "body",
        [
            NODE("Gather", ["x", "t"], ["now"]),
            NODE("Mul", ["h", "u"], ["old"]),
            NODE("Add", ["now", "old"], ["h2"]),
            NODE("Add", ["t", "one"], ["t2"]),
            NODE("Cast", ["t2"], ["tf"], to=FLOAT),
            NODE("Cast", ["n"], ["nf"], to=FLOAT),
            NODE("Less", ["tf", "nf"], ["c2"]),
            NODE("Identity", ["h2"], ["hs"]),
            NODE("Identity", ["n"], ["n2"]),
        ],
        [("i", NUMBER), ("c", TRUTH), ("t", NUMBER), ("n", NUMBER), ("h", row), ("u", row)],
        [("c2", TRUTH), ("t2", NUMBER), ("n2", NUMBER), ("h2", row), ("u", row), ("hs", row)],
        [("one", scalar(1))],
    )
    nodes = [
        NODE("Shape", ["x"], ["dims"], start=0, end=1),
        NODE("Squeeze", ["dims"], ["size"]),
        const("start", scalar(0)),
        const("go", np.array(True)),
        NODE(
            "Loop",
            ["", "go", "start", "size", "h0", "w"],
            ["end", "left", "last", "same", "all"],
            body=body,
        ),
    ]
    write(
        out,
        "while_counted",
        nodes,
        [("x", tensor(FLOAT, ["n", 3])), ("h0", row), ("w", row)],
        [("left", NUMBER), ("last", row), ("same", row), ("all", tensor(FLOAT, None))],
        [[floats(n, 3), floats(3), floats(3)] for n in (1, 2, 5)],
    )


def left_early(out):
    """The place is counted as a float, and may be left before its bound."""
    body = graph(
        "body",
        [
            NODE("Cast", ["p"], ["pf"], to=FLOAT),
            NODE("Add", ["pf", "onef"], ["qf"]),
            NODE("Cast", ["qf"], ["q"], to=INT64),
            NODE("Min", ["q", "five"], ["end"]),
            NODE("Range", ["p", "end", "one"], ["at"]),
            NODE("Gather", ["x", "at"], ["now"]),
            NODE("ReduceSum", ["now"], ["sum"], keepdims=0),
            NODE("Add", ["acc", "sum"], ["acc2"]),
            NODE("Less", ["q", "five"], ["in"]),
            NODE("Less", ["acc2", "limit"], ["low"]),
            NODE("And", ["in", "low"], ["c2"]),
        ],
        [("i", NUMBER), ("c", TRUTH), ("p", NUMBER), ("acc", tensor(FLOAT, []))],
        [("c2", TRUTH), ("q", NUMBER), ("acc2", tensor(FLOAT, []))],
        [("onef", np.float32(1)), ("one", scalar(1)), ("five", scalar(5))],
    )
    nodes = [
        const("start", scalar(0)),
        const("go", np.array(True)),
        const("zero", np.float32(0)),
        const("most", np.array([1000])),
        NODE("Loop", ["most", "go", "start", "zero"], ["place", "sum"], body=body),
    ]
    write(
        out,
        "while_place",
        nodes,
        [("x", tensor(FLOAT, [5, 2])), ("limit", tensor(FLOAT, []))],
        [("place", NUMBER), ("sum", tensor(FLOAT, []))],
        [[np.abs(floats(5, 2)), np.array(limit, np.float32)] for limit in (1.5, 1000)],
    )


def many_carried(out):
    many = [f"m{k}" for k in range(70)]
    body = graph(
        "body",
        [
            NODE("Add", ["t", "one"], ["t2"]),
            NODE("Less", ["t2", "n"], ["c2"]),
            NODE("Cast", ["t"], ["now"], to=FLOAT),
        ]
        + [NODE("Add", [k, "now"], [k + "_2"]) for k in many]
        + [NODE("Identity", ["m69_2"], ["s"])],
        [("i", NUMBER), ("c", TRUTH), ("t", NUMBER)] + [(k, tensor(FLOAT, [])) for k in many],
        [("c2", TRUTH), ("t2", NUMBER)]
        + [(k + "_2", tensor(FLOAT, [])) for k in many]
        + [("s", tensor(FLOAT, []))],
        [("one", scalar(1)), ("n", scalar(3))],
    )
    ends = ["end"] + [f"e{k}" for k in range(70)] + ["all"]
    write(
        out,
        "while_many",
        [
            const("start", scalar(0)),
            const("go", np.array(True)),
            NODE("Loop", ["", "go", "start"] + ["x"] * 70, ends, body=body),
        ],
        [("x", tensor(FLOAT, []))],
        [("e69", tensor(FLOAT, [])), ("all", tensor(FLOAT, None))],
        [[np.array(2, np.float32)]],
    )


def undefined(out):
    """What begins as anything, since nobody reads it before it is written; and one element that gets
    an axis."""
    body = graph(
        "body",
        [
            NODE("Gather", ["x", "t"], ["now"]),
            NODE("Unsqueeze", ["now", "first"], ["u2"]),
            NODE("Reshape", ["f", "row"], ["f1"]),
            NODE("Not", ["f1"], ["f2"]),
            NODE("Add", ["t", "one"], ["t2"]),
            NODE("Less", ["t2", "three"], ["in"]),
            NODE("ReduceSum", ["now"], ["sum"], keepdims=0),
            NODE("Less", ["sum", "limit"], ["low"]),
            NODE("And", ["in", "low"], ["c2"]),
        ],
        [("i", NUMBER), ("c", TRUTH), ("t", NUMBER), ("f", TRUTH), ("u", tensor(FLOAT, None))],
        [("c2", TRUTH), ("t2", NUMBER), ("f2", tensor(BOOL, None)), ("u2", tensor(FLOAT, None))],
        [
            ("one", scalar(1)),
            ("three", scalar(3)),
            ("first", np.array([0])),
            ("row", np.array([1])),
        ],
    )
    nodes = [
        const("start", scalar(0)),
        const("go", np.array(True)),
        const("none", np.array([1e27], np.float32)),
        NODE("Loop", ["", "go", "start", "go", "none"], ["place", "odd", "last"], body=body),
    ]
    write(
        out,
        "while_undefined",
        nodes,
        [("x", tensor(FLOAT, [3, 3])), ("limit", tensor(FLOAT, []))],
        [("place", NUMBER), ("odd", tensor(BOOL, None)), ("last", tensor(FLOAT, None))],
        [[floats(3, 3), np.array(limit, np.float32)] for limit in (-100, 100)],
    )


def whiles(out):
    for write_cases in (counted, left_early, many_carried, undefined):
        write_cases(out)


def branches(out):
    c, x, s = ("c", tensor(BOOL, [])), ("x", tensor(FLOAT, [5])), ("s", sequence(FLOAT, None))
    none = graph(
        "none", [NODE("SequenceEmpty", [], ["e"], dtype=FLOAT)], [], [("e", sequence(FLOAT, None))]
    )
    two = graph(
        "two",
        [
            NODE("Split", ["x"], ["p", "q"], axis=0, num_outputs=2),
            NODE("SequenceConstruct", ["p", "x", "q"], ["l"]),
        ],
        [],
        [("l", sequence(FLOAT, None))],
    )
    sets = [[np.array(v), floats(5)] for v in (True, False)]
    split = [NODE("If", ["c"], ["s"], then_branch=two, else_branch=none)]
    write(out, "if_empty", split, [c, x], [s], sets)
    nothing = graph(
        "nothing",
        [NODE("Optional", [], ["q"], type=tensor(FLOAT, [5]))],
        [],
        [("q", optional(tensor(FLOAT, [5])))],
    )
    some = graph(
        "some", [NODE("Optional", ["x"], ["p"])], [], [("p", optional(tensor(FLOAT, [5])))]
    )
    write(
        out,
        "if_optional",
        [NODE("If", ["c"], ["o"], then_branch=some, else_branch=nothing)],
        [c, x],
        [("o", optional(tensor(FLOAT, [5])))],
        sets,
        want=lambda c, x: [x if c else None],
    )
    o = ("o", optional(tensor(FLOAT, ["n"])))
    one = graph(
        "one", [NODE("ReduceMax", ["x"], ["m"], keepdims=0)], [], [("m", tensor(FLOAT, []))]
    )
    row = graph("row", [NODE("ReduceMin", ["x"], ["m"])], [], [("m", tensor(FLOAT, [1]))])
    write(
        out,
        "if_rank",
        [
            NODE("If", ["c"], ["k"], then_branch=one, else_branch=row),
            NODE("Mul", ["x", "k"], ["y"]),
        ],
        [c, x],
        [("y", tensor(FLOAT, None))],
        sets,
    )
    get = graph(
        "get", [NODE("OptionalGetElement", ["o"], ["v"])], [], [("v", tensor(FLOAT, ["n"]))]
    )
    other = graph("other", [NODE("Identity", ["x"], ["w"])], [], [("w", tensor(FLOAT, [5]))])
    write(
        out,
        "optional_or",
        [
            NODE("OptionalHasElement", ["o"], ["h"]),
            NODE("If", ["h"], ["y"], then_branch=get, else_branch=other),
        ],
        [o, x],
        [("y", tensor(FLOAT, None))],
        [[None, floats(5)], [floats(3), floats(5)], [floats(4), floats(5)]],
        want=lambda o, x: [x if o is None else o],
    )


def zero_points(out):
    """Products of bytes with a zero point that the run computes; weights that leave more than a
    byte less theirs."""
    for name, kernel, pad, stride in (
        ("zero_point_conv", 3, 1, 1),
        ("zero_point_stride", 3, 1, 2),
        ("zero_point_places", 1, 0, 1),
    ):
        w = RNG.integers(0, 256, (32, 8, kernel, kernel)).astype(np.uint8)
        nodes = [
            NODE("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
            NODE(
                "ConvInteger",
                ["q", "w", "z", "wz"],
                ["y"],
                kernel_shape=[kernel] * 2,
                pads=[pad] * 4,
                strides=[stride] * 2,
            ),
        ]
        write(
            out,
            name,
            nodes,
            [("x", tensor(FLOAT, [1, 8, 9, 9]))],
            [("y", tensor(INT32, None))],
            [[floats(1, 8, 9, 9) + k] for k in range(2)],
            [("w", w), ("wz", np.uint8(121))],
        )
    w = RNG.integers(0, 256, (64, 48)).astype(np.uint8)
    nodes = [
        NODE("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        NODE("MatMulInteger", ["q", "w", "z", "wz"], ["y"]),
    ]
    for name, zero in (
        ("zero_point", np.uint8(117)),
        ("zero_point_columns", RNG.integers(60, 190, 48).astype(np.uint8)),
    ):
        write(
            out,
            name,
            nodes,
            [("x", tensor(FLOAT, [5, 64]))],
            [("y", tensor(INT32, None))],
            [[floats(5, 64) - k] for k in range(2)],
            [("w", w), ("wz", zero)],
        )


def copied_sizes(out):
    """Entries of a Reshape's shape that are sizes: one that is 0 in a run copies the input's."""
    for name, shape, picked, consts in (
        ("copied_beside_zero", [1, 0, "n"], (2,), [0]),  # [1, 0, n] as [n, 0]
        ("copied_twice", [4, "n", "n"], (1, 0, 2), []),  # [4, n, n] as [n, 4, n]
    ):
        rank = len(picked) + len(consts)

        def copied(x, picked=picked, consts=consts):
            sizes = [x.shape[i] for i in picked] + consts
            return [x.reshape([k or x.shape[a] for a, k in enumerate(sizes)])]

        write(
            out,
            name,
            [
                NODE("Shape", ["x"], ["sizes"]),
                NODE("Gather", ["sizes", "picked"], ["some"]),
                NODE("Concat", ["some", "consts"], ["shape"], axis=0),
                NODE("Reshape", ["x", "shape"], ["y"]),
            ],
            [("x", tensor(FLOAT, shape))],
            [("y", tensor(FLOAT, [None] * rank))],
            [[floats(*(n if k == "n" else k for k in shape))] for n in (0, 1, 5)],
            [("picked", np.array(picked)), ("consts", np.array(consts, np.int64))],
            want=copied,  # onnxruntime takes the n of a declared shape for a -1
        )


def main(out):
    out = pathlib.Path(out)
    for write_cases in (
        places,
        concats,
        splits,
        maps,
        loops,
        whiles,
        branches,
        zero_points,
        copied_sizes,
    ):
        write_cases(out)
    print(len(list(out.glob("sequence/*"))), "cases")


if __name__ == "__main__":
    main(sys.argv[1])
