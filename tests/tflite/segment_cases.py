"""Cases of segments, buckets, diagonals, sparse lists and boxes."""

import numpy as np
from float_cases import f32, i32
from writer import cases_of

CASES, case = cases_of(low=-3, high=3)
R = np.random.default_rng(15)


def one(name, op, inputs, outputs, version=1, how=None, **options):
    """inputs: constants, or (name, shape[, type]); outputs: (shape[, type])."""

    @case(name, **(how or {}))
    def _(m):
        ins = [m.input(*v) if isinstance(v, tuple) else m.constant(v) for v in inputs]
        outs = [m.tensor(*v) for v in outputs]
        m.op(op, ins, outs, version, **options)
        m.output(*outs)


one("dilate", "DILATE", [("x", (3, 4)), i32(2, 3), np.float32(7)], [((5, 10),)], DilateOptions={})
for op in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM", "SHIFT_LEFT"):
    dtype = "int32" if op == "SHIFT_LEFT" else "float32"
    o = dict(StablehloShiftLeftOptions={}) if op == "SHIFT_LEFT" else {}
    ins = [("x", (3, 4), dtype), ("y", (3, 4), dtype)]
    how = dict(low=0, high=7, whole=True) if op == "SHIFT_LEFT" else None
    one(f"hlo_{op.lower()}", f"STABLEHLO_{op}", ins, [((3, 4), dtype)], how=how, **o)
one("hlo_and", "STABLEHLO_AND", [("x", (9,), "bool"), ("y", (9,), "bool")], [((9,), "bool")])
one(
    "hlo_pad",
    "STABLEHLO_PAD",
    [("x", (3, 4)), np.float32(7)],
    [((6, 9),)],
    StablehloPadOptions=dict(
        edgePaddingLow=[1, -1], edgePaddingHigh=[0, 0], interiorPadding=[1, 2]
    ),
)
for k, combiner in enumerate(("sum", "mean", "sqrtn")):
    one(
        f"embedding_sparse_{combiner}",
        "EMBEDDING_LOOKUP_SPARSE",
        [
            i32(1, 3, 0, 2),
            np.array([[0, 0], [0, 3], [2, 0], [2, 1]], np.int32),
            i32(3, 4),
            ("w", (4,)),
            f32(5, 2, 3),
        ],
        [((3, 2, 3),)],
        EmbeddingLookupSparseOptions=dict(combiner=k),
    )


def densify(name, order, blocks, levels, count):
    @case(f"densify_{name}")
    def _(m):
        w = m.constant(f32(count))
        m.sparse(w, order, blocks, levels)
        m.g.tensors[w.number].shape = [4, 6]
        w = m.op("DENSIFY", [w], [m.tensor((4, 6))])
        ins = [m.input("x", (3, 6)), w, m.constant(f32(4))]
        m.output(m.op("FULLY_CONNECTED", ins, [m.tensor((3, 4))], FullyConnectedOptions={}))


densify("rows", [0, 1], [], [4, ([0, 2, 2, 5, 6], [0, 3, 1, 2, 5, 4])], 6)
densify("blocks", [0, 1, 2, 3], [0, 1], [2, ([0, 1, 3], [2, 0, 1]), 2, 2], 12)
IDS = i32(0, 0, 1, 2)
one("segment_sum", "SEGMENT_SUM", [("x", (4, 3)), IDS], [((3, 3),)], SegmentSumOptions={})
for what in ("SUM", "PROD", "MAX", "MIN"):
    for dtype in ("float32", "int32"):
        one(
            f"unsorted_segment_{what.lower()}_{dtype}",
            f"UNSORTED_SEGMENT_{what}",
            [("x", (4, 3), dtype), i32(2, 0, -1, 2), np.int32(4)],
            [((4, 3), dtype)],
            **{f"UnsortedSegment{what.capitalize()}Options": {}},
        )
one(
    "unsorted_segment_sum_2",
    "UNSORTED_SEGMENT_SUM",
    [("x", (2, 2, 3)), np.array([[1, 0], [1, 1]], np.int32), np.int32(2)],
    [((2, 3),)],
    UnsortedSegmentSumOptions={},
)
one(
    "bucketize",
    "BUCKETIZE",
    [("x", (3, 7))],
    [((3, 7), "int32")],
    BucketizeOptions=dict(boundaries=[-1.5, 0.0, 0.25, 2.0]),
)
one("matrix_diag", "MATRIX_DIAG", [("x", (2, 4))], [((2, 4, 4),)], MatrixDiagOptions={})
for r, c in ((3, 4), (4, 3)):
    one(
        f"matrix_set_diag_{r}",
        "MATRIX_SET_DIAG",
        [("x", (2, r, c)), ("d", (2, 3))],
        [((2, r, c),)],
        MatrixSetDiagOptions={},
    )
for dtype in ("float32", "int32"):
    value = np.array([3, 5], dtype)
    for name, index in (("", i32(1, 4)), ("_2", np.array([[0, 1], [2, 0]], np.int32))):
        shape = i32(6) if index.ndim == 1 else i32(3, 4)
        one(
            f"sparse_to_dense_{dtype}{name}",
            "SPARSE_TO_DENSE",
            [index, shape, ("v", (2,), dtype), np.array(9, dtype)],
            [(tuple(shape), dtype)],
            SparseToDenseOptions={},
        )
one(
    "unique",
    "UNIQUE",
    [("x", (9,), "int32")],
    [((9,), "int32"), ((9,), "int32")],
    UniqueOptions=dict(idxOutType=2),
)
one(
    "fake_quant",
    "FAKE_QUANT",
    [("x", (3, 70))],
    [((3, 70),)],
    FakeQuantOptions=dict(min=-1.3, max=2.1, numBits=8),
)
one(
    "conv_3d_transpose",
    "CONV_3D_TRANSPOSE",
    [i32(1, 4, 6, 8, 3), f32(2, 3, 3, 3, 5), ("x", (1, 2, 3, 4, 5)), f32(3)],
    [((1, 4, 6, 8, 3),)],
    Conv3DOptions=dict(
        padding=0,
        strideD=2,
        strideH=2,
        strideW=2,
        dilationDFactor=1,
        dilationHFactor=1,
        dilationWFactor=1,
    ),
)
AT = R.uniform(0, 1, (20, 2))
BOXES = np.concatenate([AT, AT + R.uniform(0.1, 0.6, (20, 2))], 1).astype(np.float32)
for version, more, outs in (
    (4, [], [((6,), "int32"), ((), "int32")]),
    (5, [np.float32(0)], [((6,), "int32"), ((6,),), ((), "int32")]),
):
    one(
        f"non_max_suppression_v{version}",
        f"NON_MAX_SUPPRESSION_V{version}",
        [BOXES, ("scores", (20,)), np.int32(6), np.float32(0.3), np.float32(0.1), *more],
        outs,
        how=dict(low=0, high=1),
        **{f"NonMaxSuppressionV{version}Options": {}},
    )


def spectrum(name, shape, lengths, op, mid=None):
    """RFFT2D; mid: it goes through RESHAPE and SQUEEZE or EXPAND_DIMS as a complex tensor."""

    @case(name)
    def _(m):
        out = (*shape[:-2], lengths[0], lengths[1] // 2 + 1)
        y = m.op(
            "RFFT2D",
            [m.input("x", shape), m.constant(i32(*lengths))],
            [m.tensor(out, "complex64")],
            Rfft2dOptions={},
        )
        if mid:
            flat = (*shape[:-2], lengths[0] * out[-1])
            y = m.op("RESHAPE", [y, m.constant(i32(*flat))], [m.tensor(flat, "complex64")])
            y = m.op(
                "EXPAND_DIMS",
                [y, m.constant(i32(0))],
                [m.tensor((1, *flat), "complex64")],
                ExpandDimsOptions={},
            )
            y = m.op(
                "SQUEEZE", [y], [m.tensor(flat, "complex64")], SqueezeOptions=dict(squeezeDims=[0])
            )
            out = flat
        m.output(m.op(op, [y], [m.tensor(out)]))


spectrum("rfft_abs", (3, 1, 64), (1, 64), "COMPLEX_ABS")
spectrum("rfft2d_real", (2, 8, 16), (8, 16), "REAL")
spectrum("rfft2d_imag", (2, 8, 16), (16, 8), "IMAG")
spectrum("rfft_moved", (3, 1, 300), (1, 512), "COMPLEX_ABS", True)
for dtype in "int32", "int64":
    shapes = [np.array([4, 1, 3], dtype), np.array([5, 1], dtype)]
    one(f"broadcast_args_{dtype}", "BROADCAST_ARGS", shapes, [((3,), dtype)], BroadcastToOptions={})
for dtype in "bool", "int32", "float32", "uint8":
    how = dict(low=0, high=2, whole=True)
    one(
        f"where_{dtype}",
        "WHERE",
        [("x", (3, 4), dtype)],
        [((12, 2), "int64")],
        how=how,
        WhereOptions={},
    )
