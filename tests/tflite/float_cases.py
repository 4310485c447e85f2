"""Cases of operators on floats, integers and bools: name -> a model, and how its inputs are drawn."""

import numpy as np
from writer import cases_of

CASES, case = cases_of(low=-3.0, high=3.0)
R = np.random.default_rng(7)


def f32(*shape, low=-1.0, high=1.0):
    return R.uniform(low, high, shape).astype(np.float32)


def i32(*values):
    return np.array(values, np.int32)


def unary(op, low=-3.0, high=3.0, version=1, dtype="float32", out=None, name=None, **options):
    @case(name or op.lower(), low, high)
    def _(m):
        x = m.input("x", (2, 3, 5), dtype)
        m.output(m.op(op, [x], [m.tensor((2, 3, 5), out or dtype)], version, **options))


def binary(
    op,
    shapes=((2, 3, 5), (2, 3, 5)),
    dtype="float32",
    out=None,
    name=None,
    low=-3.0,
    high=3.0,
    version=1,
    **options,
):
    @case(name or op.lower(), low, high)
    def _(m):
        x, y = m.input("x", shapes[0], dtype), m.input("y", shapes[1], dtype)
        shape = np.broadcast_shapes(*shapes)
        m.output(m.op(op, [x, y], [m.tensor(shape, out or dtype)], version, **options))


for op in "ABS CEIL COS ELU EXP FLOOR HARD_SWISH LOGISTIC NEG RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 ROUND SIGN SIN SQUARE TANH".split():
    unary(op)
for op in "LOG RSQRT SQRT".split():
    unary(op, 0.1, 9)
unary("ABS", version=4, dtype="int32", name="abs_i32", low=-9, high=9)
unary("NEG", dtype="int64", name="neg_i64", low=-9, high=9)
unary("GELU", GeluOptions=dict(approximate=False))
unary("GELU", name="gelu_tanh", GeluOptions=dict(approximate=True))
unary("LEAKY_RELU", LeakyReluOptions=dict(alpha=0.3))
unary("LOGICAL_NOT", dtype="bool")
unary("CAST", dtype="float32", out="int32", name="cast_f32_i32")
unary("CAST", dtype="int32", out="float32", name="cast_i32_f32", low=-50, high=50)
unary("CAST", dtype="bool", out="float32", name="cast_bool_f32")
unary("CAST", dtype="int64", out="int32", name="cast_i64_i32", low=-50, high=50)
unary("ZEROS_LIKE", ZerosLikeOptions={})
unary("BITCAST", out="int32", name="bitcast")
for op in "ADD SUB MUL DIV".split():
    kind = op.capitalize() + "Options"
    binary(op, **{kind: dict(fusedActivationFunction=0)}, low=0.5)
    for k, name in enumerate(("relu", "relu_n1_to_1", "relu6"), 1):
        binary(
            op,
            name=f"{op.lower()}_{name}",
            low=0.5 if op == "DIV" else -3,
            shapes=((2, 3, 5), (3, 1)),
            **{kind: dict(fusedActivationFunction=k)},
        )
    if op != "DIV":
        binary(op, dtype="int32", name=f"{op.lower()}_i32", low=-40, high=40, **{kind: {}})
binary("DIV", dtype="int32", name="div_i32", low=1, high=40, DivOptions={})
for op in "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL".split():
    binary(op, dtype="int32", out="bool", low=0, high=3)
    binary(op, out="bool", name=op.lower() + "_f32", shapes=((2, 3, 5), (1, 3, 1)))
binary("LOGICAL_AND", dtype="bool")
binary("LOGICAL_OR", dtype="bool")
binary("MAXIMUM", shapes=((2, 3, 5), (5,)))
binary("MINIMUM")
binary("MAXIMUM", dtype="int64", name="maximum_i64", low=-9, high=9)
binary("POW", low=0.2, high=2)
binary("FLOOR_DIV", low=-9, high=9, version=2)
binary(
    "FLOOR_DIV", dtype="int32", name="floor_div_i32", shapes=((2, 3, 5), (2, 3, 5)), low=1, high=9
)
binary("FLOOR_MOD", low=-9, high=9, version=1)
binary("FLOOR_MOD", dtype="int32", name="floor_mod_i32", low=1, high=9)
binary("SQUARED_DIFFERENCE")
binary("SQUARED_DIFFERENCE", dtype="int32", name="squared_difference_i32", low=-9, high=9)
binary("ATAN2")
binary("BITWISE_XOR", dtype="int32", low=0, high=99)
binary("RIGHT_SHIFT", dtype="int32", low=0, high=30)
binary("PRELU", shapes=((2, 3, 5), (1, 1, 5)))


@case("add_n")
def _(m):
    x = [m.input(f"x{i}", (3, 4)) for i in range(3)]
    m.output(m.op("ADD_N", x, [m.tensor((3, 4))]))


@case("select")
def _(m):
    c, x, y = m.input("c", (3,), "bool"), m.input("x", (3, 4)), m.input("y", (3, 4))
    m.output(m.op("SELECT", [c, x, y], [m.tensor((3, 4))], SelectOptions={}))


@case("select_v2")
def _(m):
    c, x, y = m.input("c", (3, 1), "bool"), m.input("x", (3, 4)), m.input("y", (4,))
    m.output(m.op("SELECT_V2", [c, x, y], [m.tensor((3, 4))], SelectV2Options={}))


# -- convolutions, products, pools ------------------------------------------------------------


def out_size(size, k, s, d, padding):
    return -(-size // s) if padding == 0 else -(-(size - d * (k - 1)) // s)


def conv(name, h, w, c, maps, k=(3, 3), s=(1, 1), d=(1, 1), padding=0, act=0, groups=1, bias=True):
    @case(name)
    def _(m):
        x = m.input("x", (2, h, w, c))
        ins = [x, m.constant(f32(maps, *k, c // groups))]
        if bias:
            ins.append(m.constant(f32(maps)))
        shape = (
            2,
            out_size(h, k[0], s[0], d[0], padding),
            out_size(w, k[1], s[1], d[1], padding),
            maps,
        )
        m.output(
            m.op(
                "CONV_2D",
                ins,
                [m.tensor(shape)],
                1 if groups == 1 else 6,
                Conv2DOptions=dict(
                    padding=padding,
                    strideH=s[0],
                    strideW=s[1],
                    dilationHFactor=d[0],
                    dilationWFactor=d[1],
                    fusedActivationFunction=act,
                ),
            )
        )


conv("conv_same", 7, 6, 3, 8)
conv("conv_valid_stride", 9, 8, 4, 6, (3, 2), (2, 3), padding=1, act=1)
conv("conv_same_stride", 8, 9, 4, 6, (3, 3), (2, 2), act=3)
conv("conv_dilated", 9, 9, 4, 6, d=(2, 2))
conv("conv_1x1", 5, 5, 8, 4, (1, 1), act=2)
conv("conv_groups", 6, 6, 8, 4, groups=2)


def depthwise(name, h, w, c, times, k=(3, 3), s=(1, 1), d=(1, 1), padding=0, act=0):
    @case(name)
    def _(m):
        x = m.input("x", (2, h, w, c))
        shape = (
            2,
            out_size(h, k[0], s[0], d[0], padding),
            out_size(w, k[1], s[1], d[1], padding),
            c * times,
        )
        m.output(
            m.op(
                "DEPTHWISE_CONV_2D",
                [x, m.constant(f32(1, *k, c * times)), m.constant(f32(c * times))],
                [m.tensor(shape)],
                2,
                DepthwiseConv2DOptions=dict(
                    padding=padding,
                    strideH=s[0],
                    strideW=s[1],
                    depthMultiplier=times,
                    dilationHFactor=d[0],
                    dilationWFactor=d[1],
                    fusedActivationFunction=act,
                ),
            )
        )


depthwise("depthwise", 7, 6, 8, 1)
depthwise("depthwise_times", 7, 6, 3, 4, s=(2, 2), act=3)
depthwise("depthwise_dilated", 9, 9, 4, 1, d=(2, 2), padding=1)


def transpose_conv(name, h, w, c, maps, k, s, padding, bias=False, act=0):
    @case(name)
    def _(m):
        x = m.input("x", (1, h, w, c))
        big = [
            h * s if padding == 0 else (h - 1) * s + k,
            w * s if padding == 0 else (w - 1) * s + k,
        ]
        ins = [m.constant(i32(1, *big, maps)), m.constant(f32(maps, k, k, c)), x]
        if bias:
            ins.append(m.constant(f32(maps)))
        m.output(
            m.op(
                "TRANSPOSE_CONV",
                ins,
                [m.tensor((1, *big, maps))],
                3 if bias else 1,
                TransposeConvOptions=dict(
                    padding=padding, strideH=s, strideW=s, fusedActivationFunction=act
                ),
            )
        )


@case("transpose_conv_to_a_size_of_the_run", low=2, high=3)
def _(m):
    size = m.input("size", (4,), "int32")
    ins = [size, m.constant(f32(2, 2, 2, 3)), m.input("x", (2, 1, 1, 3))]
    o = dict(padding=1, strideH=2, strideW=2)
    m.output(m.op("TRANSPOSE_CONV", ins, [m.tensor((2, 2, 2, 2))], TransposeConvOptions=o))


transpose_conv("transpose_conv_same", 4, 5, 3, 4, 3, 2, 0)
transpose_conv("transpose_conv_valid", 4, 4, 3, 2, 3, 2, 1)
transpose_conv("transpose_conv_bias", 4, 4, 3, 2, 2, 2, 0, True)


@case("conv_3d")
def _(m):
    x = m.input("x", (1, 4, 5, 6, 3))
    m.output(
        m.op(
            "CONV_3D",
            [x, m.constant(f32(2, 3, 3, 3, 4)), m.constant(f32(4))],
            [m.tensor((1, 4, 5, 6, 4))],
            Conv3DOptions=dict(padding=0, strideD=1, strideH=1, strideW=1),
        )
    )


def fully(name, shape, inner, outer, keep=False, act=0, bias=True):
    @case(name)
    def _(m):
        x = m.input("x", shape)
        ins = [x, m.constant(f32(outer, inner)), m.constant(f32(outer)) if bias else None]
        out = (*shape[:-1], outer) if keep else (int(np.prod(shape)) // inner, outer)
        m.output(
            m.op(
                "FULLY_CONNECTED",
                ins,
                [m.tensor(out)],
                5 if keep else 1,
                FullyConnectedOptions=dict(keepNumDims=keep, fusedActivationFunction=act),
            )
        )


fully("fully_connected", (3, 8), 8, 5, act=1)
fully("fully_connected_rows", (2, 4, 4), 8, 5)
fully("fully_connected_keep", (2, 3, 8), 8, 5, keep=True, bias=False)


@case("batch_matmul")
def _(m):
    x, y = m.input("x", (2, 3, 4)), m.input("y", (2, 4, 5))
    m.output(m.op("BATCH_MATMUL", [x, y], [m.tensor((2, 3, 5))], BatchMatMulOptions={}))


@case("batch_matmul_adjoint")
def _(m):
    x, y = m.input("x", (2, 4, 3)), m.input("y", (1, 5, 4))
    m.output(
        m.op(
            "BATCH_MATMUL",
            [x, y],
            [m.tensor((2, 3, 5))],
            BatchMatMulOptions=dict(adjX=True, adjY=True),
        )
    )


for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
    for padding in (0, 1):

        @case(f"{op.lower()}_{padding}")
        def _(m, op=op, padding=padding):
            x = m.input("x", (1, 7, 8, 3))
            shape = (1, out_size(7, 3, 2, 1, padding), out_size(8, 2, 2, 1, padding), 3)
            m.output(
                m.op(
                    op,
                    [x],
                    [m.tensor(shape)],
                    Pool2DOptions=dict(
                        padding=padding,
                        strideH=2,
                        strideW=2,
                        filterHeight=3,
                        filterWidth=2,
                        fusedActivationFunction=padding,
                    ),
                )
            )


def one(
    name,
    op,
    shape,
    out,
    low=-3.0,
    high=3.0,
    dtype="float32",
    more=(),
    version=1,
    out_type=None,
    how=(),
    **options,
):
    @case(name, low, high, **dict.fromkeys(how, True))
    def _(m):
        x = m.input("x", shape, dtype)
        outs = out if isinstance(out, list) else [out]
        types = out_type if isinstance(out_type, list) else [out_type or dtype] * len(outs)
        outs = [m.tensor(o, t) for o, t in zip(outs, types)]
        got = m.op(op, [x, *(m.constant(c) for c in more)], outs, version, **options)
        m.output(*(got if isinstance(got, list) else [got]))


one("softmax", "SOFTMAX", (2, 3, 7), (2, 3, 7), SoftmaxOptions=dict(beta=1.0))
one("softmax_beta", "SOFTMAX", (2, 7), (2, 7), SoftmaxOptions=dict(beta=0.3))
one("log_softmax", "LOG_SOFTMAX", (2, 7), (2, 7))
one("l2_normalization", "L2_NORMALIZATION", (2, 3, 7), (2, 3, 7), L2NormOptions={})
one(
    "local_response",
    "LOCAL_RESPONSE_NORMALIZATION",
    (1, 3, 3, 9),
    (1, 3, 3, 9),
    how=["optimized"],
    LocalResponseNormalizationOptions=dict(radius=2, bias=1.0, alpha=0.2, beta=0.75),
)
for corners, half in ((False, False), (True, False), (False, True)):
    tag = "corners" if corners else "half" if half else "plain"
    o = dict(alignCorners=corners, halfPixelCenters=half)
    one(
        f"resize_bilinear_{tag}",
        "RESIZE_BILINEAR",
        (1, 4, 5, 3),
        (1, 7, 8, 3),
        more=[i32(7, 8)],
        version=3 if half else 1,
        ResizeBilinearOptions=o,
    )
    one(
        f"resize_nearest_{tag}",
        "RESIZE_NEAREST_NEIGHBOR",
        (1, 4, 5, 3),
        (1, 7, 10, 3),
        more=[i32(7, 10)],
        version=3 if half else 1,
        ResizeNearestNeighborOptions=o,
    )
one(
    "resize_bilinear_smaller",
    "RESIZE_BILINEAR",
    (1, 8, 8, 2),
    (1, 3, 5, 2),
    more=[i32(3, 5)],
    ResizeBilinearOptions={},
)

# -- movement -----------------------------------------------------------------------------------

one("reshape", "RESHAPE", (2, 3, 4), (6, 4), more=[i32(-1, 4)], ReshapeOptions={})
one("reshape_to_scalar", "RESHAPE", (1, 1), (), more=[i32()], ReshapeOptions={})
one("squeeze", "SQUEEZE", (1, 3, 1, 4), (3, 1, 4), SqueezeOptions=dict(squeezeDims=[0]))
one("squeeze_all", "SQUEEZE", (1, 3, 1, 4), (3, 4), SqueezeOptions={})
one("expand_dims", "EXPAND_DIMS", (3, 4), (3, 1, 4), more=[i32(1)])
one("transpose", "TRANSPOSE", (2, 3, 4, 5), (5, 2, 4, 3), more=[i32(3, 0, 2, 1)])
one("shape", "SHAPE", (2, 3, 4), (3,), out_type="int32", ShapeOptions=dict(outType=2))
one("rank", "RANK", (2, 3, 4), (), out_type="int32")
one("tile", "TILE", (2, 3), (4, 9), more=[i32(2, 3)])
one("broadcast_to", "BROADCAST_TO", (3, 1), (2, 3, 4), more=[i32(2, 3, 4)], version=2)
one(
    "pad",
    "PAD",
    (1, 3, 4, 2),
    (1, 6, 5, 2),
    more=[np.array([[0, 0], [1, 2], [1, 0], [0, 0]], np.int32)],
)
one("padv2", "PADV2", (3, 4), (4, 6), more=[np.array([[1, 0], [0, 2]], np.int32), np.float32(1.5)])
one(
    "mirror_pad",
    "MIRROR_PAD",
    (3, 4),
    (6, 6),
    more=[np.array([[2, 1], [1, 1]], np.int32)],
    MirrorPadOptions=dict(mode=0),
)
one(
    "mirror_pad_symmetric",
    "MIRROR_PAD",
    (3, 4),
    (7, 9),
    more=[np.array([[3, 1], [2, 3]], np.int32)],
    MirrorPadOptions=dict(mode=1),
)
one(
    "space_to_depth",
    "SPACE_TO_DEPTH",
    (1, 4, 6, 3),
    (1, 2, 3, 12),
    SpaceToDepthOptions=dict(blockSize=2),
)
one(
    "depth_to_space",
    "DEPTH_TO_SPACE",
    (1, 2, 3, 12),
    (1, 4, 6, 3),
    DepthToSpaceOptions=dict(blockSize=2),
)
one(
    "space_to_batch",
    "SPACE_TO_BATCH_ND",
    (2, 4, 5, 3),
    (12, 2, 2, 3),
    more=[i32(2, 3), np.array([[0, 0], [1, 0]], np.int32)],
)
one(
    "batch_to_space",
    "BATCH_TO_SPACE_ND",
    (12, 2, 2, 3),
    (2, 4, 5, 3),
    more=[i32(2, 3), np.array([[0, 0], [1, 0]], np.int32)],
)
one("slice", "SLICE", (3, 4, 5), (2, 4, 2), more=[i32(1, 0, 3), i32(2, -1, 2)])
one("reverse", "REVERSE_V2", (3, 4), (3, 4), more=[i32(1)])
one(
    "reverse_sequence",
    "REVERSE_SEQUENCE",
    (3, 5, 2),
    (3, 5, 2),
    more=[i32(1, 5, 3)],
    ReverseSequenceOptions=dict(seqDim=1, batchDim=0),
)
one("unpack", "UNPACK", (3, 2, 4), [(3, 4), (3, 4)], UnpackOptions=dict(num=2, axis=1))
one(
    "split_v",
    "SPLIT_V",
    (3, 7),
    [(3, 2), (3, 4), (3, 1)],
    more=[i32(2, -1, 1), i32(1)],
    SplitVOptions=dict(numSplits=3),
)


def strided(name, shape, out, begin, end, step, **masks):
    one(
        "strided_slice_" + name,
        "STRIDED_SLICE",
        shape,
        out,
        more=[i32(*begin), i32(*end), i32(*step)],
        StridedSliceOptions=masks,
    )


strided("plain", (4, 6), (2, 3), (1, 0), (3, 6), (1, 2))
strided("masks", (4, 6), (4, 4), (1, 1), (3, 5), (1, 1), beginMask=1, endMask=1)
strided("shrink", (4, 6), (6,), (-1, 0), (0, 6), (1, 1), shrinkAxisMask=1)
strided("back", (4, 6), (4, 6), (-1, -1), (-9, -9), (-1, -1))
strided("ellipsis", (2, 3, 4), (2, 3, 2), (0, 1), (0, 3), (1, 1), ellipsisMask=1)
strided("new_axis", (2, 3), (1, 2, 2), (0, 0, 1), (0, 2, 3), (1, 1, 1), newAxisMask=1)


@case("split")
def _(m):
    x = m.input("x", (3, 6))
    m.output(
        *m.op(
            "SPLIT",
            [m.constant(i32(1)), x],
            [m.tensor((3, 2)) for _ in range(3)],
            SplitOptions=dict(numSplits=3),
        )
    )


@case("concatenation")
def _(m):
    x, y = m.input("x", (2, 3, 4)), m.input("y", (2, 2, 4))
    m.output(
        m.op(
            "CONCATENATION",
            [x, y],
            [m.tensor((2, 5, 4))],
            ConcatenationOptions=dict(axis=-2, fusedActivationFunction=0),
        )
    )


@case("pack")
def _(m):
    x, y = m.input("x", (2, 3)), m.input("y", (2, 3))
    m.output(m.op("PACK", [x, y], [m.tensor((2, 2, 3))], PackOptions=dict(valuesCount=2, axis=1)))


@case("fill")
def _(m):
    x = m.input("x", ())
    m.output(m.op("FILL", [m.constant(i32(2, 3)), x], [m.tensor((2, 3))]))


@case("range")
def _(m):
    ins = [m.constant(np.int32(v)) for v in (1, 10, 4)]
    x = m.input("x", (3,), "int32")
    m.output(
        m.op(
            "ADD",
            [x, m.op("RANGE", ins, [m.tensor((3,), "int32")])],
            [m.tensor((3,), "int32")],
            AddOptions={},
        )
    )


@case("shape_reshape")
def _(m):
    """A chain that computes a shape leaves no trace."""
    x = m.input("x", (2, 3, 4))
    s = m.op("SHAPE", [x], [m.tensor((3,), "int32")], ShapeOptions=dict(outType=2))
    b = m.op(
        "STRIDED_SLICE",
        [s, *(m.constant(i32(v)) for v in (0, 1, 1))],
        [m.tensor((), "int32")],
        StridedSliceOptions=dict(shrinkAxisMask=1),
    )
    p = m.op(
        "PACK",
        [b, m.constant(np.int32(12))],
        [m.tensor((2,), "int32")],
        PackOptions=dict(valuesCount=2, axis=0),
    )
    m.output(m.op("RESHAPE", [x, p], [m.tensor((2, 12))], ReshapeOptions={}))


@case("dynamic_update_slice")
def _(m):
    x, u, i = m.input("x", (4, 5)), m.input("u", (2, 3)), m.input("i", (2,), "int32")
    m.output(m.op("DYNAMIC_UPDATE_SLICE", [x, u, i], [m.tensor((4, 5))]))


# -- reductions, indices --------------------------------------------------------------------------

for op in "MEAN SUM REDUCE_PROD REDUCE_MAX REDUCE_MIN".split():
    one(op.lower(), op, (2, 3, 4, 5), (2, 5), more=[i32(1, 2)], ReducerOptions=dict(keepDims=False))
    one(
        op.lower() + "_keep",
        op,
        (2, 3, 4),
        (2, 3, 1),
        more=[i32(-1)],
        ReducerOptions=dict(keepDims=True),
    )
one("mean_i32", "MEAN", (3, 4), (3,), -9, 9, "int32", more=[i32(1)], ReducerOptions={})
one("sum_i32", "SUM", (3, 4), (3,), -9, 9, "int32", more=[i32(1)], ReducerOptions={})
one("reduce_any", "REDUCE_ANY", (3, 4), (3,), dtype="bool", more=[i32(1)], ReducerOptions={})
one("reduce_all", "REDUCE_ALL", (3, 4), (3,), dtype="bool", more=[i32(1)], ReducerOptions={})
one(
    "arg_max",
    "ARG_MAX",
    (3, 4, 5),
    (3, 5),
    more=[i32(1)],
    out_type="int32",
    ArgMaxOptions=dict(outputType=2),
)
one(
    "arg_min",
    "ARG_MIN",
    (3, 4, 5),
    (3, 4),
    more=[i32(-1)],
    out_type="int64",
    ArgMinOptions=dict(outputType=4),
)
one(
    "cumsum",
    "CUMSUM",
    (3, 4),
    (3, 4),
    more=[i32(1)],
    CumsumOptions=dict(exclusive=True, reverse=True),
)
one("topk", "TOPK_V2", (3, 7), [(3, 4), (3, 4)], more=[i32(4)[0]], out_type=["float32", "int32"])
one(
    "gather",
    "GATHER",
    (4, 5),
    (4, 2, 2),
    more=[np.array([[0, 3], [4, 1]], np.int32)],
    GatherOptions=dict(axis=1),
)
one(
    "gather_batch",
    "GATHER",
    (2, 5, 3),
    (2, 4, 3),
    more=[np.array([[0, 3, 1, 1], [4, 1, 0, 2]], np.int32)],
    version=5,
    GatherOptions=dict(axis=1, batchDims=1),
)
one("gather_nd", "GATHER_ND", (3, 4, 5), (2, 5), more=[np.array([[0, 3], [2, 1]], np.int32)])


@case("gather_data", 0, 4)
def _(m):
    x, i = m.input("x", (4, 5)), m.input("i", (3,), "int32")
    m.output(m.op("GATHER", [x, i], [m.tensor((3, 5))], GatherOptions=dict(axis=0)))


@case("embedding_lookup", 0, 4)
def _(m):
    i = m.input("i", (3,), "int32")
    m.output(m.op("EMBEDDING_LOOKUP", [i, m.constant(f32(4, 6))], [m.tensor((3, 6))]))


@case("one_hot", 0, 4)
def _(m):
    i = m.input("i", (2, 3), "int32")
    ins = [i, *(m.constant(v) for v in (np.int32(4), np.float32(2), np.float32(-1)))]
    m.output(m.op("ONE_HOT", ins, [m.tensor((2, 3, 4))], OneHotOptions=dict(axis=-1)))


@case("scatter_nd")
def _(m):
    v = m.input("v", (3, 4))
    ins = [m.constant(np.array([[1], [0], [1]], np.int32)), v, m.constant(i32(3, 4))]
    m.output(m.op("SCATTER_ND", ins, [m.tensor((3, 4))]))


@case("dequantize_f16")
def _(m):
    x = m.input("x", (2, 4))
    w = m.op("DEQUANTIZE", [m.constant(f32(3, 4).astype(np.float16))], [m.tensor((3, 4))], 3)
    m.output(m.op("FULLY_CONNECTED", [x, w, None], [m.tensor((2, 3))], FullyConnectedOptions={}))
