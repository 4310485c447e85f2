"""Cases of branches, loops, variables and recurrences."""

import numpy as np
from flatbuffers import flexbuffers
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


@case("composite")
def _(m):
    x = m.input("x", (2, 3))
    g = inner(m, "g", "MUL", np.float32(-1.5), (2, 3), MulOptions={})
    options = dict(name="user.scale", decompositionSubgraphIndex=g, version=1)
    options["compositeAttributes"] = np.frombuffer(flexbuffers.Dumps({}), np.uint8)
    m.output(
        m.op("STABLEHLO_COMPOSITE", [x], [m.tensor((2, 3))], StableHLOCompositeOptions=options)
    )


@case("while_rows")
def _(m):
    """Row k of y becomes x + k, for each k, as Keras writes what an LSTM gives."""
    x, y = m.input("x", (1, 3)), m.input("y", (4, 3))
    cond, body = m.graph("cond"), m.graph("body")
    k, _, _ = cond.input("k", (), "int32"), cond.input("a", (1, 3)), cond.input("b", (4, 3))
    cond.output(cond.op("LESS", [k, cond.constant(np.int32(4))], [cond.tensor((), "bool")]))
    k, a, b = body.input("k", (), "int32"), body.input("a", (1, 3)), body.input("b", (4, 3))

    def op(name, inputs, shape, dtype="float32", **options):
        return body.op(name, inputs, [body.tensor(shape, dtype, signature=shape)], **options)

    def joined(number, rest):
        one = op("RESHAPE", [number, body.constant(i32(1))], (1,), "int32")
        parts = [one, body.constant(i32(rest))]
        return op("CONCATENATION", parts, (2,), "int32", ConcatenationOptions={})

    def rows(begin, size):
        slice_of = [body.tensor((1, 3), signature=(-1, 3))]
        return body.op("SLICE", [b, begin, size], slice_of, SliceOptions={})

    after = op("ADD", [k, body.constant(np.int32(1))], (), "int32", AddOptions={})
    row = op("ADD", [a, op("CAST", [k], (), CastOptions={})], (1, 3), AddOptions={})
    front = rows(body.constant(i32(0, 0)), joined(k, -1))
    behind = rows(joined(after, 0), body.constant(i32(-1, -1)))
    whole = op("CONCATENATION", [front, row, behind], (4, 3), ConcatenationOptions={})
    body.output(after, a, whole)
    outs = [m.tensor((), "int32"), m.tensor((1, 3)), m.tensor((4, 3))]
    begin = [m.constant(np.int32(0)), x, y]
    options = dict(condSubgraphIndex=1, bodySubgraphIndex=2)
    m.output(m.op("WHILE", begin, outs, WhileOptions=options)[2])


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


def handle(g, name="sum"):
    return g.op(
        "VAR_HANDLE", [], [g.tensor((), "resource")], VarHandleOptions=dict(sharedName=name)
    )


def read(g, h, shape=(2, 3)):
    return g.op("READ_VARIABLE", [h], [g.tensor(shape)], ReadVariableOptions={})


def assign(g, h, value):
    g.op("ASSIGN_VARIABLE", [h, value], [], AssignVariableOptions={})


def begins(m, name="sum"):
    g = m.graph("init " + name)
    assign(g, handle(g, name), g.constant(f32(2, 3)))
    m.op("CALL_ONCE", [], [], CallOnceOptions=dict(initSubgraphIndex=m.graphs.index(g)))


def adds(m, name, variable, factor, also=None):
    """A graph: the variable grows by factor times x, and so does what it gives."""
    g = m.graph(name)
    x = g.input("a", (2, 3))
    h = handle(g, variable)
    by = g.op("MUL", [x, g.constant(np.float32(factor))], [g.tensor((2, 3))], MulOptions={})
    now = g.op("ADD", [read(g, h), by], [g.tensor((2, 3))], AddOptions={})
    assign(g, h, now)
    if also:
        assign(g, handle(g, also), by)
    g.output(now)
    return m.graphs.index(g)


def choose(g, c, x, branches):
    options = dict(thenSubgraphIndex=branches[0], elseSubgraphIndex=branches[1])
    return g.op("IF", [c, x], [g.tensor((2, 3))], IfOptions=options)


@case("if_assigns")
def _(m):
    """Of two variables one branch assigns one, the other both."""
    c, x = m.input("c", (1,), "bool"), m.input("x", (2, 3))
    begins(m)
    begins(m, "last")
    y = choose(m, c, x, [adds(m, "yes", "sum", 2), adds(m, "no", "sum", -1, "last")])
    m.output(y, read(m, handle(m)), read(m, handle(m, "last")))


@case("if_in_if_assigns")
def _(m):
    c, d, x = m.input("c", (1,), "bool"), m.input("d", (1,), "bool"), m.input("x", (2, 3))
    begins(m)
    leaves = [adds(m, f"leaf {i}", "sum", i) for i in range(3)]
    g = m.graph("inner")
    inside = [g.input("d", (1,), "bool"), g.input("x", (2, 3))]
    g.output(choose(g, *inside, leaves[:2]))
    g = m.graph("other")
    inside = [g.input("d", (1,), "bool"), g.input("x", (2, 3))]
    g.output(choose(g, *inside, leaves[1:]))
    options = dict(thenSubgraphIndex=len(m.graphs) - 2, elseSubgraphIndex=len(m.graphs) - 1)
    y = m.op("IF", [c, d, x], [m.tensor((2, 3))], IfOptions=options)
    m.output(y, read(m, handle(m)))


def counted(m, body_of):
    """i counts up to 4; the body gives the next i and x."""
    i, x = m.input("i", (1,), "int32"), m.input("x", (2, 3))
    cond, body = m.graph("cond"), m.graph("body")
    k, _ = cond.input("k", (1,), "int32"), cond.input("y", (2, 3))
    cond.output(cond.op("LESS", [k, cond.constant(i32(4))], [cond.tensor((1,), "bool")]))
    k, y = body.input("k", (1,), "int32"), body.input("y", (2, 3))
    nxt = body.op("ADD", [k, body.constant(i32(1))], [body.tensor((1,), "int32")], AddOptions={})
    body.output(nxt, body_of(body, k, y))
    outs = [m.tensor((1,), "int32"), m.tensor((2, 3))]
    options = dict(condSubgraphIndex=m.graphs.index(cond), bodySubgraphIndex=m.graphs.index(body))
    return m.op("WHILE", [i, x], outs, WhileOptions=options)


@case("while_assigns", 1, 3)
def _(m):
    begins(m)

    def body(g, k, y):
        h = handle(g)
        now = g.op("ADD", [read(g, h), y], [g.tensor((2, 3))], AddOptions={})
        assign(g, h, now)
        return g.op("MUL", [now, g.constant(np.float32(0.5))], [g.tensor((2, 3))], MulOptions={})

    m.output(*counted(m, body), read(m, handle(m)))


@case("while_if_assigns", 1, 3)
def _(m):
    """Every other turn adds to the variable."""
    begins(m)
    branches = [adds(m, "yes", "sum", 0.5), adds(m, "no", "other", 2)]
    begins(m, "other")

    def body(g, k, y):
        odd = g.op(
            "FLOOR_MOD", [k, g.constant(i32(2))], [g.tensor((1,), "int32")], FloorModOptions={}
        )
        odd = g.op("EQUAL", [odd, g.constant(i32(1))], [g.tensor((1,), "bool")], EqualOptions={})
        return choose(g, odd, y, branches)

    m.output(*counted(m, body), read(m, handle(m)), read(m, handle(m, "other")))


@case("while_in_while", 1, 3)
def _(m):
    def outer(g, k, y):
        cond, body = m.graph("inner cond"), m.graph("inner body")
        j, _ = cond.input("j", (1,), "int32"), cond.input("z", (2, 3))
        cond.output(cond.op("LESS", [j, cond.constant(i32(3))], [cond.tensor((1,), "bool")]))
        j, z = body.input("j", (1,), "int32"), body.input("z", (2, 3))
        body.output(
            body.op("ADD", [j, body.constant(i32(1))], [body.tensor((1,), "int32")], AddOptions={}),
            body.op(
                "MUL", [z, body.constant(np.float32(1.5))], [body.tensor((2, 3))], MulOptions={}
            ),
        )
        outs = [g.tensor((1,), "int32"), g.tensor((2, 3))]
        options = dict(
            condSubgraphIndex=m.graphs.index(cond), bodySubgraphIndex=m.graphs.index(body)
        )
        return g.op("WHILE", [g.constant(i32(0)), y], outs, WhileOptions=options)[1]

    m.output(*counted(m, outer))


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
