"""Cases of branches, loops, variables and recurrences."""

import numpy as np
from float_cases import f32, i32
from writer import cases_of

CASES, case = cases_of(low=-3.0, high=3.0)


def inner(m, name, op, constant, shape, out_dtype="float32", **options):
    """A graph of one operator on its input and a constant."""
    g = m.graph(name)
    x = g.input("a", shape)
    g.output(g.op(op, [x, g.constant(constant)], [g.tensor(shape, out_dtype)], **options))
    return m.graphs.index(g)


@case("if")
def _(m):
    c, x = m.input("c", (1,), "bool"), m.input("x", (2, 3))
    branches = [
        inner(m, f"g{i}", "MUL", np.float32(2 * i - 1), (2, 3), MulOptions={}) for i in range(2)
    ]
    m.output(
        m.op(
            "IF",
            [c, x],
            [m.tensor((2, 3))],
            IfOptions=dict(thenSubgraphIndex=branches[0], elseSubgraphIndex=branches[1]),
        )
    )


@case("while", 1, 3)
def _(m):
    """x doubles, and i counts, as long as i is below 4."""
    i, x = m.input("i", (1,), "int32"), m.input("x", (2, 3))
    cond, body = m.graph("cond"), m.graph("body")
    k, _ = cond.input("k", (1,), "int32"), cond.input("y", (2, 3))
    cond.output(cond.op("LESS", [k, cond.constant(i32(4))], [cond.tensor((1,), "bool")]))
    k, y = body.input("k", (1,), "int32"), body.input("y", (2, 3))
    body.output(
        body.op("ADD", [k, body.constant(i32(1))], [body.tensor((1,), "int32")], AddOptions={}),
        body.op("ADD", [y, y], [body.tensor((2, 3))], AddOptions={}),
    )
    outs = [m.tensor((1,), "int32"), m.tensor((2, 3))]
    m.output(
        *m.op("WHILE", [i, x], outs, WhileOptions=dict(condSubgraphIndex=1, bodySubgraphIndex=2))
    )


@case("variable")
def _(m):
    """A sum over runs, which begins as a constant."""
    x = m.input("x", (2, 3))
    g = m.graph("init")
    h = g.op("VAR_HANDLE", [], [g.tensor((), "resource")], VarHandleOptions=dict(sharedName="sum"))
    g.op("ASSIGN_VARIABLE", [h, g.constant(f32(2, 3))], [], AssignVariableOptions={})
    m.op("CALL_ONCE", [], [], CallOnceOptions=dict(initSubgraphIndex=1))
    h = m.op("VAR_HANDLE", [], [m.tensor((), "resource")], VarHandleOptions=dict(sharedName="sum"))
    was = m.op("READ_VARIABLE", [h], [m.tensor((2, 3))], ReadVariableOptions={})
    now = m.op("ADD", [was, x], [m.tensor((2, 3))], AddOptions={})
    m.op("ASSIGN_VARIABLE", [h, now], [], AssignVariableOptions={})
    again = m.op("READ_VARIABLE", [h], [m.tensor((2, 3))], ReadVariableOptions={})
    m.output(m.op("MUL", [again, x], [m.tensor((2, 3))], MulOptions={}))


for clip in (0.0, 0.4):
    for time_major in (False, True):

        @case(f"lstm_{clip}_{time_major}")
        def _(m, clip=clip, time_major=time_major):
            t, b, n, h = 5, 2, 3, 4
            x = m.input("x", (t, b, n) if time_major else (b, t, n))
            ins = [
                x,
                *(m.constant(f32(h, n)) for _ in range(4)),
                *(m.constant(f32(h, h)) for _ in range(4)),
            ]
            ins += [None] * 3 + [m.constant(f32(h)) for _ in range(4)] + [None] * 2
            ins += [m.tensor((b, h), variable=True) for _ in range(2)] + [None] * 4
            m.output(
                m.op(
                    "UNIDIRECTIONAL_SEQUENCE_LSTM",
                    ins,
                    [m.tensor((t, b, h) if time_major else (b, t, h))],
                    UnidirectionalSequenceLSTMOptions=dict(
                        fusedActivationFunction=4, cellClip=clip, timeMajor=time_major
                    ),
                )
            )


@case("svdf")
def _(m):
    b, n, units, rank, times = 2, 3, 4, 2, 5
    ins = [
        m.input("x", (b, n)),
        m.constant(f32(units * rank, n)),
        m.constant(f32(units * rank, times)),
    ]
    ins += [m.constant(f32(units)), m.tensor((b, times * units * rank), variable=True)]
    options = dict(rank=rank, fusedActivationFunction=1)
    m.output(m.op("SVDF", ins, [m.tensor((b, units))], SVDFOptions=options))
