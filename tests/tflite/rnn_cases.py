"""Cases of recurrences: LSTM with all its parts, simple ones, SVDF; floats, weights of int8, int8."""

import numpy as np
from float_cases import f32
from writer import cases_of

CASES, case = cases_of(low=-1, high=1)
R = np.random.default_rng(13)
T, B, I, C = 4, 2, 5, 6  # steps, batch, inputs, cells


def weights(m, kind, *shape):
    """Floats, or int8 with a scale (kind: hybrid, int8)."""
    if kind == "float":
        return m.constant(f32(*shape, low=-0.5, high=0.5))
    v = R.integers(-127, 128, shape).astype(np.int8)
    return m.constant(v, scale=R.uniform(0.004, 0.009))


def hole(m, kind):
    if kind == "int8":
        return m.constant(R.integers(-9000, 9000, C).astype(np.int16), scale=0.0001)
    return weights(m, kind, C)


def bias(m, kind, n):
    if kind == "int8":
        return m.constant(R.integers(-3000, 3000, n).astype(np.int32), scale=1e-4)
    return m.constant(f32(n))


def variable(m, kind, n, cell=False):
    if kind != "int8":
        return m.tensor((B, n), variable=True)
    if cell:
        return m.tensor((B, n), "int16", scale=2.0**-12, variable=True)
    return m.tensor((B, n), "int8", scale=0.008, zero=-3, variable=True)


def half(m, kind, cifg, peephole, projection, bias_of_projection=True):
    """Inputs 1 to 17 of one direction, and how many it gives."""
    out = 4 if projection else C
    gates = [not cifg, True, True, True]
    ins = [weights(m, kind, C, I) if g else None for g in gates]
    ins += [weights(m, kind, C, out) if g else None for g in gates]
    holes = [peephole and not cifg, peephole, peephole]
    ins += [hole(m, kind) if g else None for g in holes]
    ins += [bias(m, kind, C) if g else None for g in gates]
    ins.append(weights(m, kind, out, C) if projection else None)
    ins.append(bias(m, kind, out) if projection and bias_of_projection else None)
    return ins, out


def x_of(m, kind, shape):
    if kind == "int8":
        return m.input("x", shape, "int8", scale=0.02, zero=5)
    return m.input("x", shape)


def result(m, kind, shape):
    if kind == "int8":
        return m.tensor(shape, "int8", scale=0.008, zero=-3)
    return m.tensor(shape)


def lstm(
    name,
    kind="float",
    cifg=False,
    peephole=False,
    projection=False,
    norm=False,
    major=True,
    one=False,
    clip=0.0,
    asymmetric=False,
):
    @case(name)
    def _(m):
        ins, out = half(m, kind, cifg, peephole, projection)
        shape = (B, I) if one else (T, B, I) if major else (B, T, I)
        ins = [x_of(m, kind, shape), *ins, variable(m, kind, out), variable(m, kind, C, True)]
        norms = [norm and not cifg, norm, norm, norm]
        ins += [m.constant(f32(C, low=0.5, high=1.5)) if g else None for g in norms]
        y = result(m, kind, (*shape[:-1], out))
        mids = None
        if kind == "int8":
            mids = [m.tensor((0,)) for _ in range(4)]
            mids.append(m.tensor((0,), "int8", scale=0.0079, zero=4 if projection else -3))
        o = dict(fusedActivationFunction=4, cellClip=clip, projClip=0.5 if projection else 0.0)
        o["asymmetricQuantizeInputs"] = asymmetric
        if one:
            m.op("LSTM", ins, [y], 4, intermediates=mids, LSTMOptions=o)
        else:
            o["timeMajor"] = major
            m.op(
                "UNIDIRECTIONAL_SEQUENCE_LSTM",
                ins,
                [y],
                3,
                intermediates=mids,
                UnidirectionalSequenceLSTMOptions=o,
            )
        m.output(y)


for kind in ("float", "hybrid", "int8"):
    lstm(f"lstm_{kind}", kind)
    lstm(f"lstm_batches_{kind}", kind, major=False, clip=0.3)
    lstm(f"lstm_cifg_{kind}", kind, cifg=True)
    lstm(f"lstm_peephole_{kind}", kind, peephole=True)
    lstm(f"lstm_projection_{kind}", kind, projection=True)
    lstm(f"lstm_step_{kind}", kind, one=True, peephole=True)
lstm("lstm_norm", norm=True)
lstm("lstm_norm_cifg", norm=True, cifg=True, peephole=True)
lstm("lstm_asymmetric", "hybrid", asymmetric=True)


@case("lstm_basic")
def _(m):
    x, h, c = m.input("x", (B, I)), m.input("h", (B, C)), m.input("c", (B, C))
    ins = [x, h, m.constant(f32(4 * C, I + C)), m.constant(f32(4 * C)), c]
    outs = [m.tensor((B, C)), m.tensor((B, C)), m.tensor((B, I + C)), m.tensor((B, 4 * C))]
    o = dict(kernelType=1, fusedActivationFunction=4)
    m.op("LSTM", ins, outs, 2, LSTMOptions=o)
    m.output(outs[0], outs[1])


for kind in ("float", "hybrid"):
    for merge in (False, True):

        @case(f"lstm_two_way_{kind}_{merge}")
        def _(m, kind=kind, merge=merge):
            ins, out = half(m, kind, False, True, False)
            back, _ = half(m, kind, False, True, False)
            ins = [m.input("x", (T, B, I)), *ins, *back]
            ins += [variable(m, kind, C) for _ in range(4)] + [None] * 9
            ys = [m.tensor((T, B, 2 * C))] if merge else [m.tensor((T, B, C)) for _ in range(2)]
            o = dict(fusedActivationFunction=4, mergeOutputs=merge, timeMajor=True)
            m.op("BIDIRECTIONAL_SEQUENCE_LSTM", ins, ys, 1, BidirectionalSequenceLSTMOptions=o)
            m.output(*ys)

    def cell(m, kind=kind):
        return [
            weights(m, kind, C, I),
            weights(m, kind, C, C),
            m.constant(f32(C)),
            variable(m, kind, C),
        ]

    @case(f"rnn_{kind}")
    def _(m, cell=cell):
        ins = [m.input("x", (B, I)), *cell(m)]
        m.output(
            m.op("RNN", ins, [m.tensor((B, C))], 2, RNNOptions=dict(fusedActivationFunction=4))
        )

    for major in (False, True):

        @case(f"rnn_sequence_{kind}_{major}")
        def _(m, cell=cell, major=major):
            shape = (T, B) if major else (B, T)
            ins = [m.input("x", (*shape, I)), *cell(m)]
            o = dict(timeMajor=major, fusedActivationFunction=1)
            y = m.tensor((*shape, C))
            m.output(m.op("UNIDIRECTIONAL_SEQUENCE_RNN", ins, [y], 2, SequenceRNNOptions=o))

    # with time first, the kernel for weights of int8 runs the whole sequence once for each step
    @case(f"rnn_two_way_{kind}")
    def _(m, cell=cell, major=kind == "float"):
        shape = (T, B) if major else (B, T)
        ins = [m.input("x", (*shape, I)), *cell(m), *cell(m), None, None, None]
        o = dict(timeMajor=major, fusedActivationFunction=4)
        ys = [m.tensor((*shape, C)) for _ in range(2)]
        m.op("BIDIRECTIONAL_SEQUENCE_RNN", ins, ys, 2, BidirectionalSequenceRNNOptions=o)
        m.output(*ys)

    @case(f"svdf_{kind}")
    def _(m, kind=kind):
        ins = [
            m.input("x", (B, I)),
            weights(m, kind, 8, I),
            weights(m, kind, 8, 3),
            m.constant(f32(4)),
            variable(m, kind, 24),
        ]
        o = dict(rank=2, fusedActivationFunction=1)
        m.output(m.op("SVDF", ins, [m.tensor((B, 4))], 2, SVDFOptions=o))


@case("svdf_int8")
def _(m):
    time = m.constant(R.integers(-9000, 9000, (8, 3)).astype(np.int16), scale=0.0001)
    state = m.tensor((B, 24), "int16", scale=0.0002, variable=True)
    ins = [x_of(m, "int8", (B, I)), weights(m, "int8", 8, I), time, bias(m, "int8", 4), state]
    y = m.tensor((B, 4), "int8", scale=0.009, zero=-5)
    m.output(m.op("SVDF", ins, [y], 3, SVDFOptions=dict(rank=2, fusedActivationFunction=1)))
