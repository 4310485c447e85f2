"""Cases of floats that meet weights of int8 (or 4 bits) with scales: dynamic range quantisation. Results are LiteRT's bits: one that is
another, in the last place, may be another byte behind the next layer."""

import numpy as np
from float_cases import f32, i32, out_size
from quant_cases import constant
from writer import cases_of

CASES, case = cases_of(low=-1, high=2, exact=True)
R = np.random.default_rng(12)


def weights(shape, per=0, axis=0, bits=8):
    top = (1 << (bits - 1)) - 1
    scale = R.uniform(0.005, 0.03, per) if per else 0.013
    return dict(value=R.integers(-top, top + 1, shape).astype(np.int8), scale=scale, axis=axis)


def fully(name, asymmetric, per=0, bits=8):
    @case(name)
    def _(m):
        ws = weights((5, 16), per, bits=bits)
        w = constant(m, ws)
        if bits < 8:
            w = m.constant(ws["value"], dtype=f"int{bits}", scale=ws["scale"], axis=0)
        m.output(
            m.op(
                "FULLY_CONNECTED",
                [m.input("x", (3, 16)), w, m.constant(f32(5))],
                [m.tensor((3, 5))],
                9 if asymmetric else 3,
                FullyConnectedOptions=dict(
                    asymmetricQuantizeInputs=asymmetric, fusedActivationFunction=1
                ),
            )
        )


for asymmetric in (False, True):
    fully(f"h_fully_{asymmetric}", asymmetric)
    fully(f"h_fully_channels_{asymmetric}", asymmetric, 5)
fully("h_fully_4_bits", False, 5, 4)
fully("h_fully_2_bits", False, 5, 2)


@case("h_fully_zeros")
def _(m):
    w, x = constant(m, weights((5, 16))), m.input("x", (2, 16))
    zero = m.op("MUL", [x, m.constant(np.float32(0))], [m.tensor((2, 16))], MulOptions={})
    ins = [zero, w, m.constant(f32(5))]
    m.output(m.op("FULLY_CONNECTED", ins, [m.tensor((2, 5))], 3, FullyConnectedOptions={}))


def conv(name, per, padding, bits=8):
    @case(name)
    def _(m):
        ws = weights((5, 3, 3, 4), per, bits=bits)
        w = m.constant(ws["value"], dtype=f"int{bits}", scale=ws["scale"], axis=0)
        out = (2, out_size(7, 3, 2, 1, padding), out_size(6, 3, 1, 1, padding), 5)
        m.output(
            m.op(
                "CONV_2D",
                [m.input("x", (2, 7, 6, 4)), w, m.constant(f32(5))],
                [m.tensor(out)],
                5 if per else 2,
                Conv2DOptions=dict(
                    padding=padding, strideH=2, strideW=1, fusedActivationFunction=1
                ),
            )
        )


for padding in (0, 1):
    conv(f"h_conv_{padding}", 0, padding)
    conv(f"h_conv_channels_{padding}", 5, padding)
conv("h_conv_4_bits", 5, 0, 4)


@case("h_depthwise")
def _(m):
    w = constant(m, weights((1, 3, 3, 8), 8, 3))
    ins = [m.input("x", (2, 6, 7, 4)), w, m.constant(f32(8))]
    o = dict(padding=0, strideH=1, strideW=1, depthMultiplier=2, fusedActivationFunction=3)
    m.output(m.op("DEPTHWISE_CONV_2D", ins, [m.tensor((2, 6, 7, 8))], 6, DepthwiseConv2DOptions=o))


@case("h_transpose_conv", exact=False)  # LiteRT adds what each input pixel gives, in floats
def _(m):
    w = constant(m, weights((4, 3, 3, 5), 4, 0))
    ins = [m.constant(i32(1, 8, 8, 4)), w, m.input("x", (1, 4, 4, 5)), m.constant(f32(4))]
    o = dict(padding=0, strideH=2, strideW=2)
    m.output(m.op("TRANSPOSE_CONV", ins, [m.tensor((1, 8, 8, 4))], 4, TransposeConvOptions=o))


for asymmetric in (False, True):

    @case(f"h_batch_matmul_{asymmetric}")
    def _(m, asymmetric=asymmetric):
        w = constant(m, weights((2, 8, 5)))
        m.output(
            m.op(
                "BATCH_MATMUL",
                [m.input("x", (2, 3, 8)), w],
                [m.tensor((2, 3, 5))],
                4,
                BatchMatMulOptions=dict(asymmetricQuantizeInputs=asymmetric),
            )
        )


for per in (0, 6):

    @case(f"h_embedding_{per}")
    def _(m, per=per):
        w = constant(m, weights((6, 4), per))
        x = m.constant(i32(3, 0, 5))
        scale = m.input("scale", (1,))
        y = m.op("EMBEDDING_LOOKUP", [x, w], [m.tensor((3, 4))], 3)
        m.output(m.op("MUL", [y, scale], [m.tensor((3, 4))], MulOptions={}))


def in_blocks(m, rows, columns, size, bits):
    w = weights((rows, columns), bits=bits)["value"]
    scales = m.constant(R.uniform(0.005, 0.03, (rows, columns // size)).astype(np.float16))
    return m.constant(w, dtype=f"int{bits}", blocks=(scales, size))


for keep in (False, True):

    @case(f"h_fully_blocks_{keep}", optimized=True, exact=False)  # the reference kernel gives zeros
    def _(m, keep=keep):
        ins = [m.input("x", (2, 3, 128)), in_blocks(m, 5, 128, 32, 4), m.constant(f32(5))]
        made = [m.tensor((2, 3, 5) if keep else (6, 5))]
        m.output(
            m.op("FULLY_CONNECTED", ins, made, 9, FullyConnectedOptions=dict(keepNumDims=keep))
        )


for bits in (4, 2):

    @case(f"h_embedding_blocks_{bits}")
    def _(m, bits=bits):
        w = in_blocks(m, 6, 64, 32, bits)
        y = m.op("EMBEDDING_LOOKUP", [m.constant(i32(3, 0, 5)), w], [m.tensor((3, 64))], 4)
        m.output(m.op("MUL", [y, m.input("scale", (1,))], [m.tensor((3, 64))], MulOptions={}))
