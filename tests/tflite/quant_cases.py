"""Cases of operators on integers that stand for real numbers: int8, uint8, int16 with int8 weights; per tensor, per channel."""

import numpy as np
from float_cases import f32, i32, out_size
from writer import cases_of

CASES, case = cases_of(low=-1, high=1)
R = np.random.default_rng(11)
# type -> scales of inputs and of results, zero points
KINDS = {"i8": ("int8", 3, -4), "u8": ("uint8", 120, 130), "i16": ("int16", 0, 0)}


def x_scale(kind):
    return 0.0003 if kind == "i16" else 0.05


def weights(shape, kind, per, axis):
    """int8 (of uint8: that), with a scale for each of `per`."""
    if kind == "u8":
        return dict(value=R.integers(0, 256, shape).astype(np.uint8), scale=0.02, zero=117)
    scale = R.uniform(0.005, 0.03, per) if per else 0.013
    return dict(value=R.integers(-127, 128, shape).astype(np.int8), scale=scale, axis=axis)


def bias(m, maps, kind, w, wide=True):
    scale = np.atleast_1d(np.asarray(w["scale"], np.float32)) * np.float32(x_scale(kind))
    dtype = np.int64 if kind == "i16" and wide else np.int32
    v = R.integers(-900, 900, maps).astype(dtype)
    return m.constant(v, scale=scale, zero=0)


def constant(m, w):
    return m.constant(w["value"], scale=w["scale"], zero=w.get("zero", 0), axis=w.get("axis", 0))


def data(m, kind, shape, name="x", scale=None):
    dtype, zero, _ = KINDS[kind]
    return m.input(name, shape, dtype, scale=scale or x_scale(kind), zero=zero)


def result(m, kind, shape, scale):
    dtype, _, zero = KINDS[kind]
    return m.tensor(shape, dtype, scale=scale, zero=zero)


def conv(
    name, kind, h, w, c, maps, k=(3, 3), s=(1, 1), d=(1, 1), padding=0, act=0, per=True, out=None
):
    @case(f"{name}_{kind}")
    def _(m):
        ws = weights((maps, *k, c), kind, maps if per and kind != "u8" else 0, 0)
        shape = (
            1,
            out_size(h, k[0], s[0], d[0], padding),
            out_size(w, k[1], s[1], d[1], padding),
            maps,
        )
        m.output(
            m.op(
                "CONV_2D",
                [data(m, kind, (1, h, w, c)), constant(m, ws), bias(m, maps, kind, ws)],
                [result(m, kind, shape, out or (0.001 if kind == "i16" else 0.11))],
                {"i8": 3, "u8": 1, "i16": 4}[kind],
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


@case("q_conv_i32_i16")
def _(m):
    ws = weights((6, 3, 3, 4), "i16", 6, 0)
    ins = [data(m, "i16", (1, 5, 5, 4)), constant(m, ws), bias(m, 6, "i16", ws, False)]
    o = dict(strideH=1, strideW=1, quantizedBiasType=2)
    m.output(m.op("CONV_2D", ins, [result(m, "i16", (1, 5, 5, 6), 0.001)], 8, Conv2DOptions=o))


def fully_i16_weights(name, biased):
    @case(name)
    def _(m):
        ws = R.integers(-900, 900, (5, 16)).astype(np.int16), 0.001
        w = m.constant(ws[0], scale=ws[1], zero=0)
        b = R.integers(-(2**20), 2**20, 5).astype(np.int32)
        b = m.constant(b, scale=ws[1] * x_scale("i16"), zero=0) if biased else None
        o = dict(quantizedBiasType=2 if biased else 4)
        y = result(m, "i16", (3, 5), 0.001)
        m.output(
            m.op(
                "FULLY_CONNECTED", [data(m, "i16", (3, 16)), w, b], [y], 11, FullyConnectedOptions=o
            )
        )


fully_i16_weights("q_fully_i16_weights", False)
fully_i16_weights("q_fully_i16_weights_bias", True)


def depthwise(name, kind, h, w, c, times, k=(3, 3), s=(1, 1), padding=0, act=0, per=True):
    @case(f"{name}_{kind}")
    def _(m):
        ws = weights((1, *k, c * times), kind, c * times if per and kind != "u8" else 0, 3)
        shape = (
            1,
            out_size(h, k[0], s[0], 1, padding),
            out_size(w, k[1], s[1], 1, padding),
            c * times,
        )
        m.output(
            m.op(
                "DEPTHWISE_CONV_2D",
                [data(m, kind, (1, h, w, c)), constant(m, ws), bias(m, c * times, kind, ws)],
                [result(m, kind, shape, 0.001 if kind == "i16" else 0.08)],
                {"i8": 3, "u8": 1, "i16": 5}[kind],
                DepthwiseConv2DOptions=dict(
                    padding=padding,
                    strideH=s[0],
                    strideW=s[1],
                    depthMultiplier=times,
                    fusedActivationFunction=act,
                ),
            )
        )


def fully(name, kind, shape, inner, outer, act=0, per=False, wide=True, with_bias=True):
    @case(f"{name}_{kind}")
    def _(m):
        ws = weights((outer, inner), kind, outer if per else 0, 0)
        b = bias(m, outer, kind, ws, wide) if with_bias else None
        m.output(
            m.op(
                "FULLY_CONNECTED",
                [data(m, kind, shape), constant(m, ws), b],
                [
                    result(
                        m,
                        kind,
                        (int(np.prod(shape)) // inner, outer),
                        0.001 if kind == "i16" else 0.1,
                    )
                ],
                {"i8": 4, "u8": 1, "i16": 7}[kind] if not per else 12,
                FullyConnectedOptions=dict(
                    fusedActivationFunction=act, quantizedBiasType=0 if wide else 2
                ),
            )
        )


for kind in KINDS:
    conv("q_conv", kind, 7, 6, 5, 8)
    conv("q_conv_tensor", kind, 6, 6, 4, 3, padding=1, act=1, per=False)
    conv("q_conv_stride", kind, 8, 9, 4, 6, (3, 2), (2, 2), act=3)
    conv("q_conv_large", kind, 4, 4, 4, 3, (1, 1), per=False, out=1e-5 if kind == "i16" else 0.0004)
    depthwise("q_depthwise", kind, 7, 6, 8, 1, act=3)
    depthwise("q_depthwise_times", kind, 7, 6, 3, 4, s=(2, 2), padding=1)
    fully("q_fully", kind, (3, 16), 16, 5, act=1)
    fully("q_fully_plain", kind, (2, 2, 8), 8, 5, with_bias=kind == "i16")
fully("q_fully_channels", "i8", (3, 16), 16, 5, per=True)
fully("q_fully_i32", "i16", (3, 16), 16, 5, wide=False)


def elementwise(op, kind, shapes=((2, 3, 5), (2, 3, 5)), act=0, name=None, scales=None, **options):
    @case(f"{name or 'q_' + op.lower()}_{kind}")
    def _(m):
        s = scales or ((0.0003, 0.0005, 0.0007) if kind == "i16" else (0.05, 0.02, 0.07))
        if op == "MUL" and kind != "i16":
            s = (0.05, 0.02, 0.09)
        if op == "MUL" and kind == "i16":
            s = (0.0003, 0.0005, 0.004)
        x, y = (data(m, kind, shapes[i], "xy"[i], s[i]) for i in range(2))
        m.output(
            m.op(
                op,
                [x, y],
                [result(m, kind, np.broadcast_shapes(*shapes), s[2])],
                2,
                **{op.capitalize() + "Options": dict(fusedActivationFunction=act, **options)},
            )
        )


for kind in KINDS:
    no_pot = dict(potScaleInt16=False) if kind == "i16" else {}
    for op in ("ADD", "SUB", "MUL"):
        o = no_pot if op != "MUL" else {}
        elementwise(op, kind, **o)
        elementwise(op, kind, ((2, 3, 5), (1, 3, 1)), 3, f"q_{op.lower()}_relu6", **o)
elementwise("ADD", "i16", name="q_add_pot", scales=(2.0**-12, 2.0**-10, 2.0**-10))
elementwise("SUB", "i16", name="q_sub_pot", scales=(2.0**-10, 2.0**-12, 2.0**-10))


def unary(
    op,
    kind,
    out=None,
    scale=None,
    zero=None,
    name=None,
    shape=(3, 70),
    version=1,
    out_type=None,
    x=None,
    **options,
):
    @case(f"{name or 'q_' + op.lower()}_{kind}")
    def _(m):
        dtype, _, z = KINDS[kind]
        y = m.tensor(
            out or shape,
            out_type or dtype,
            scale=scale or x_scale(kind),
            zero=z if zero is None else zero,
        )
        m.output(m.op(op, [data(m, kind, shape, scale=x)], [y], version, **options))


for kind in KINDS:
    unary("RELU", kind, scale=0.04 if kind != "i16" else 0.0002)
    unary("RELU6", kind, scale=0.04 if kind != "i16" else 0.0002)
    unary(
        "LEAKY_RELU",
        kind,
        scale=0.03 if kind != "i16" else 0.0002,
        LeakyReluOptions=dict(alpha=0.3),
    )
    for padding in (0, 1):
        for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            unary(
                op,
                kind,
                (1, out_size(7, 3, 2, 1, padding), out_size(8, 2, 2, 1, padding), 3),
                zero=KINDS[kind][1],
                name=f"q_{op.lower()}_{padding}",
                shape=(1, 7, 8, 3),
                version=2,
                Pool2DOptions=dict(
                    padding=padding,
                    strideH=2,
                    strideW=2,
                    filterHeight=3,
                    filterWidth=2,
                    fusedActivationFunction=padding,
                ),
            )
unary("RELU_N1_TO_1", "i8", scale=0.04)
for kind, zero in (("i8", -128), ("u8", 0)):
    for x, name in ((None, ""), (0.11, "_wide"), (0.003, "_narrow")):
        o = dict(version=2, x=x)
        unary("LOGISTIC", kind, scale=1 / 256, zero=zero, name=f"q_logistic{name}", **o)
        unary("TANH", kind, scale=1 / 128, zero=zero + 128, name=f"q_tanh{name}", **o)
for x in (2.0**-12, 2.0**-11, 0.0003, 0.002, 0.00001):
    o = dict(version=3, x=x, shape=(30, 70), scale=1 / 32768)
    for op in ("LOGISTIC", "TANH"):
        unary(op, "i16", name=f"q_{op.lower()}_{x:.5f}", **o)
for beta, x in ((1.0, 0.0005), (0.3, 0.002)):
    o = dict(scale=1 / 32768, version=3, x=x, shape=(40, 9), SoftmaxOptions=dict(beta=beta))
    unary("SOFTMAX", "i16", name=f"q_softmax_{beta}", **o)
for kind in ("i8", "i16"):
    x = 0.0003 if kind == "i16" else 0.05
    y = 0.0007 if kind == "i16" else 0.09
    unary("EXP", kind, scale=5 * y, version=2, x=x / 2)
    unary("LOG", kind, scale=y / 2, version=2, x=x)
    unary("ABS", kind, scale=x / 1.4, version=4)
    unary("GELU", kind, scale=x / 1.4, version=2, GeluOptions=dict(approximate=True))
    unary("GELU", kind, scale=x / 1.4, version=2, name="q_gelu_erf", GeluOptions={})
unary("ABS", "i8", name="q_abs_same", version=2)


@case("q_rsqrt_i8")
def _(m):
    x = m.input("x", (3, 70), "int8", scale=0.02, zero=-128)
    m.output(m.op("RSQRT", [x], [result(m, "i8", (3, 70), 0.03)], 2))


@case("q_rsqrt_i16", whole=True, low=1, high=32767)
def _(m):
    x = m.input("x", (3, 70), "int16", scale=0.0002)
    m.output(m.op("RSQRT", [x], [m.tensor((3, 70), "int16", scale=0.0005)], 3))


@case("q_sqrt_i16", whole=True, low=1, high=32767)
def _(m):
    x = m.input("x", (3, 70), "int16", scale=0.0002)
    m.output(m.op("SQRT", [x], [m.tensor((3, 70), "int16", scale=0.0001)], 2))


unary("ELU", "i8", scale=0.04)
unary("GELU", "u8", scale=0.04, version=2, GeluOptions={})
unary("HARD_SWISH", "i8", scale=0.06)
unary("HARD_SWISH", "u8", scale=0.06)
unary("HARD_SWISH", "i8", name="q_hard_swish_wide", scale=0.11, x=0.11)
for op in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"):
    for kind in KINDS if op in ("EQUAL", "NOT_EQUAL") else ("i8", "u8"):

        @case(f"q_{op.lower()}_{kind}")
        def _(m, op=op, kind=kind):
            x = data(m, kind, (3, 70))
            y = data(m, kind, (3, 70), "y", x_scale(kind) * 1.3)
            m.output(m.op(op, [x, y], [m.tensor((3, 70), "bool")], 2))


for shapes in (((3, 70), (3, 70)), ((2, 3, 5), (1, 3, 1))):

    @case(f"q_squared_difference_{len(shapes[0])}")
    def _(m, shapes=shapes):
        x, y = data(m, "i8", shapes[0]), data(m, "i8", shapes[1], "y", 0.03)
        m.output(m.op("SQUARED_DIFFERENCE", [x, y], [result(m, "i8", shapes[0], 0.6)], 2))


for kind, zero in (("i8", -128), ("u8", 0)):
    for beta, x in ((1.0, 0.05), (0.3, 0.3)):
        unary(
            "SOFTMAX",
            kind,
            scale=1 / 256,
            zero=zero,
            version=2,
            x=x,
            name=f"q_softmax_{beta}",
            shape=(40, 9),
            SoftmaxOptions=dict(beta=beta),
        )
unary(
    "SOFTMAX",
    "i8",
    scale=1 / 32768,
    zero=0,
    version=2,
    name="q_softmax_to_i16",
    shape=(20, 30),
    out_type="int16",
    SoftmaxOptions=dict(beta=1.0),
)


def more(
    name, op, kind, shape, out, constants, version=1, scale=None, zero=None, how=(), **options
):
    @case(f"{name}_{kind}", **dict.fromkeys(how, True))
    def _(m):
        dtype, z, _ = KINDS[kind]
        y = m.tensor(out, dtype, scale=scale or x_scale(kind), zero=z if zero is None else zero)
        m.output(
            m.op(
                op,
                [data(m, kind, shape), *(m.constant(c) for c in constants)],
                [y],
                version,
                **options,
            )
        )


for kind in KINDS:
    for op in ("MEAN", "SUM"):
        # the reference kernel of SUM does not rescale
        o = dict(
            how=["optimized"] if op == "SUM" and kind != "u8" else [],
            version=2 if op == "MEAN" else 1,
            ReducerOptions=dict(keepDims=op == "MEAN"),
        )
        keep = (2, 1, 1, 5) if op == "MEAN" else (2, 5)
        more(
            f"q_{op.lower()}",
            op,
            kind,
            (2, 7, 5, 5),
            keep,
            [i32(1, 2)],
            scale=2.3 * x_scale(kind),
            zero=0 if kind == "i16" else 9,
            **o,
        )
        more(
            f"q_{op.lower()}_last",
            op,
            kind,
            (2, 7, 5),
            (2, 7, 1) if op == "MEAN" else (2, 7),
            [i32(-1)],
            **o,
        )
    more("q_pad", "PAD", kind, (2, 3), (4, 6), [np.array([[1, 1], [0, 3]], np.int32)], 2)
    more("q_reshape", "RESHAPE", kind, (2, 6), (3, 4), [i32(3, 4)], ReshapeOptions={})
    for half in (False, True):
        more(
            f"q_resize_bilinear_{half}",
            "RESIZE_BILINEAR",
            kind,
            (1, 4, 5, 3),
            (1, 7, 8, 3),
            [i32(7, 8)],
            3,
            ResizeBilinearOptions=dict(halfPixelCenters=half),
        )
more(
    "q_resize_bilinear_corners",
    "RESIZE_BILINEAR",
    "i8",
    (1, 4, 5, 3),
    (1, 7, 8, 3),
    [i32(7, 8)],
    2,
    ResizeBilinearOptions=dict(alignCorners=True),
)
more("q_gather", "GATHER", "i8", (4, 5), (4, 2), [i32(3, 0)], GatherOptions=dict(axis=1))
more("q_reduce_max", "REDUCE_MAX", "i8", (4, 5), (4,), [i32(1)], 2, ReducerOptions={})
more(
    "q_resize_nearest",
    "RESIZE_NEAREST_NEIGHBOR",
    "i8",
    (1, 4, 5, 3),
    (1, 8, 10, 3),
    [i32(8, 10)],
    2,
    ResizeNearestNeighborOptions={},
)


for kind, slope in (("i8", "int8"), ("u8", "uint8"), ("i16", "int8")):

    @case(f"q_prelu_{kind}")
    def _(m, kind=kind, slope=slope):
        i = np.iinfo(slope)
        alpha = np.random.default_rng(3).integers(i.min, i.max + 1, (1, 1, 6))
        alpha = m.constant(alpha.astype(slope), scale=0.01, zero=0 if kind == "i16" else 4)
        x = data(m, kind, (2, 3, 6))
        m.output(m.op("PRELU", [x, alpha], [result(m, kind, (2, 3, 6), 0.04)]))


def divided(name, kind, shapes, scale, act=0):
    """By a constant that is nowhere 0, for LiteRT ends the run there. And x is not near 0: of quotients below a half LiteRT shifts
    by more than 31 bits, which makes any number of them."""
    dtype, zero, _ = KINDS[kind]
    i = np.iinfo(dtype)

    @case(f"{name}_{kind}", low=zero + (i.max - zero) // 3, high=i.max + 1, whole=True)
    def _(m):
        y = R.integers(i.min, i.max + 1, shapes[1])
        y = np.where(y == zero, zero + 1, y).astype(dtype)
        ins = [data(m, kind, shapes[0]), m.constant(y, scale=x_scale(kind) / 3, zero=zero)]
        out = [result(m, kind, np.broadcast_shapes(*shapes), scale)]
        m.output(m.op("DIV", ins, out, 2, DivOptions=dict(fusedActivationFunction=act)))


for kind in KINDS:
    divided("q_div", kind, ((3, 70), (3, 70)), 0.03)
    divided("q_div_relu6", kind, ((2, 3, 50), (3, 1)), 0.5, 3)
for kind, zero in (("i8", 127), ("u8", 255)):
    for x, name in ((None, ""), (0.3, "_wide"), (0.004, "_narrow")):
        o = dict(scale=1 / 16, zero=zero, version=2, x=x, shape=(20, 9), LogSoftmaxOptions={})
        unary("LOG_SOFTMAX", kind, name=f"q_log_softmax{name}", **o)
    o = dict(scale=1 / 128, zero=zero - 127, version=2, L2NormOptions={})
    unary("L2_NORMALIZATION", kind, shape=(20, 9), name="q_l2_normalization", **o)
    unary("L2_NORMALIZATION", kind, shape=(2, 9000), name="q_l2_normalization_long", **o)
for kind in ("i8", "i16"):
    for axes, out in (((-1,), (4, 3)), ((0, 2), (3,))):
        o = dict(version=2, scale=0.02, ReducerOptions={})
        more(f"q_reduce_prod_{len(axes)}", "REDUCE_PROD", kind, (4, 3, 2), out, [i32(*axes)], **o)


@case("q_transpose_conv_i8")
def _(m):
    ws = weights((4, 3, 3, 5), "i8", 4, 0)
    ins = [
        m.constant(i32(1, 8, 8, 4)),
        constant(m, ws),
        data(m, "i8", (1, 4, 4, 5)),
        bias(m, 4, "i8", ws),
    ]
    m.output(
        m.op(
            "TRANSPOSE_CONV",
            ins,
            [result(m, "i8", (1, 8, 8, 4), 0.09)],
            3,
            TransposeConvOptions=dict(padding=0, strideH=2, strideW=2),
        )
    )


@case("q_batch_matmul_i8")
def _(m):
    x, y = data(m, "i8", (2, 3, 8)), data(m, "i8", (2, 8, 5), "y")
    m.output(
        m.op("BATCH_MATMUL", [x, y], [result(m, "i8", (2, 3, 5), 0.2)], 2, BatchMatMulOptions={})
    )


@case("q_concatenation_u8")
def _(m):
    x, y = data(m, "u8", (2, 3)), data(m, "u8", (2, 4), "y", scale=0.03)
    m.output(
        m.op(
            "CONCATENATION",
            [x, y],
            [result(m, "u8", (2, 7), 0.06)],
            ConcatenationOptions=dict(axis=1),
        )
    )


@case("q_concatenation_i8")
def _(m):
    x, y = data(m, "i8", (2, 3)), data(m, "i8", (2, 4), "y")
    out = m.tensor((2, 7), "int8", scale=0.05, zero=3)
    m.output(m.op("CONCATENATION", [x, y], [out], 2, ConcatenationOptions=dict(axis=1)))


for kind in KINDS:

    @case(f"quantize_{kind}")
    def _(m, kind=kind):
        x = m.input("x", (4, 90))
        m.output(m.op("QUANTIZE", [x], [result(m, kind, (4, 90), x_scale(kind) / 9)], 2))

    @case(f"dequantize_{kind}")
    def _(m, kind=kind):
        m.output(m.op("DEQUANTIZE", [data(m, kind, (4, 90))], [m.tensor((4, 90))], 2))

    @case(f"requantize_{kind}")
    def _(m, kind=kind):
        m.output(
            m.op(
                "QUANTIZE",
                [data(m, kind, (4, 90))],
                [result(m, kind, (4, 90), x_scale(kind) * 1.7)],
                2,
            )
        )


@case("requantize_u8_i8")
def _(m):
    m.output(
        m.op(
            "QUANTIZE",
            [data(m, "u8", (4, 90))],
            [m.tensor((4, 90), "int8", scale=0.05, zero=-8)],
            2,
        )
    )


@case("requantize_i8_i16")
def _(m):
    m.output(
        m.op("QUANTIZE", [data(m, "i8", (4, 90))], [m.tensor((4, 90), "int16", scale=0.0005)], 2)
    )


for kind in ("i8", "i16"):

    @case(f"requantize_i32_{kind}", low=-(2**20), high=2**20)
    def _(m, kind=kind):
        x = m.input("x", (4, 90), "int32", scale=2.0**-20, zero=0)
        m.output(m.op("QUANTIZE", [x], [result(m, kind, (4, 90), x_scale(kind) / 5)], 3))


@case("dequantized_weights")
def _(m):
    w = m.constant(
        R.integers(-127, 128, (5, 8)).astype(np.int8), scale=R.uniform(0.01, 0.02, 5), axis=0
    )
    w = m.op("DEQUANTIZE", [w], [m.tensor((5, 8))], 2)
    m.output(
        m.op(
            "FULLY_CONNECTED",
            [m.input("x", (3, 8)), w, m.constant(f32(5))],
            [m.tensor((3, 5))],
            FullyConnectedOptions={},
        )
    )
