"""Cases of StableHLO's gathers, scatters, windows, branches and random bits."""

import numpy as np
from control_cases import inner
from writer import cases_of

CASES, case = cases_of(low=-3, high=3)


# ---- places


def gather(
    name, shape, starts, result, offset, collapsed, index_map, vector, sizes, dtype="float32"
):
    @case(f"hlo_gather_{name}", low=-1, high=4)
    def _(m):
        options = dict(
            offsetDims=offset,
            collapsedSliceDims=collapsed,
            startIndexMap=index_map,
            indexVectorDim=vector,
            sliceSizes=sizes,
        )
        ins = [m.input("x", shape, dtype), m.input("at", starts, "int32")]
        m.output(
            m.op("STABLEHLO_GATHER", ins, [m.tensor(result, dtype)], StablehloGatherOptions=options)
        )


gather("last", (3, 4, 2), (2, 3, 2), (2, 3, 2, 2), [2, 3], [0], [1, 0], 2, [1, 2, 2])
gather("first", (3, 4, 2), (2, 5), (5, 2), [1], [0, 1], [0, 1], 0, [1, 1, 2], "int64")
gather("middle", (4, 5, 3), (2, 2, 3), (3, 2, 3, 2), [0, 2], [1], [1, 2], 1, [3, 1, 3])
gather("of_numbers", (5, 3), (4,), (4, 3), [1], [0], [0], 1, [1, 3], "int8")

BODIES = {
    "update": None,
    "add": "STABLEHLO_ADD",
    "multiply": "STABLEHLO_MULTIPLY",
    "maximum": "STABLEHLO_MAXIMUM",
    "minimum": "STABLEHLO_MINIMUM",
}


def body(m, op, dtype="float32", **options):
    """A graph that combines two elements."""
    g = m.graph("body")
    x, y = g.input("x", (), dtype), g.input("y", (), dtype)
    g.output(y if op is None else g.op(op, [x, y], [g.tensor((), dtype)], **options))
    return m.graphs.index(g)


def scatter(name, op, dtype="float32"):
    @case(f"hlo_scatter_{name}_{dtype}", low=-1, high=5)
    def _(m):
        options = dict(
            updateWindowDims=[2, 3],
            insertedWindowDims=[0],
            scatterDimsToOperandDims=[1, 0],
            indexVectorDim=2,
            updateComputationSubgraphIndex=body(m, op, dtype),
        )
        ins = [
            m.input("x", (3, 4, 2), dtype),
            m.input("at", (2, 3, 2), "int64"),
            m.input("v", (2, 3, 2, 2), dtype),
        ]
        m.output(
            m.op(
                "STABLEHLO_SCATTER",
                ins,
                [m.tensor((3, 4, 2), dtype)],
                StablehloScatterOptions=options,
            )
        )


for name, op in BODIES.items():
    scatter(name, op)
for dtype in (
    "float16",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float64",
):
    scatter("add", "STABLEHLO_ADD", dtype)
scatter("update", None, "bool")


# ---- windows

WINDOWS = {
    "ADD": ("ADD", dict(AddOptions={})),
    "MUL": ("MUL", dict(MulOptions={})),
    "MINIMUM": ("MINIMUM", {}),
    "MAXIMUM": ("MAXIMUM", {}),
    "ALL": ("LOGICAL_AND", {}),
    "ANY": ("LOGICAL_OR", {}),
}
NUMBER = {"ADD": 1, "MUL": 2, "MINIMUM": 3, "MAXIMUM": 4, "ALL": 5, "ANY": 6}


def windows(function, dtype):
    op, more = WINDOWS[function]
    first = np.array(1, dtype)

    @case(f"reduce_window_{function.lower()}_{dtype}", low=0, high=3)
    def _(m):
        ins = [m.input("x", (5, 6), dtype), m.constant(first)]
        ins += [m.constant(np.array(v, np.int64)) for v in ([2, 3], [1, 2], [2, 1])]
        out = m.tensor((3, 2), dtype)
        m.output(
            m.op(
                "REDUCE_WINDOW",
                ins,
                [out],
                ReduceWindowOptions=dict(reduceFunction=NUMBER[function]),
            )
        )

    @case(f"hlo_reduce_window_{function.lower()}_{dtype}", low=0, high=3)
    def _(m):
        options = dict(
            windowDimensions=[2, 3],
            windowStrides=[1, 2],
            baseDilations=[1, 2],
            windowDilations=[2, 1],
            padding=[1, 0, -1, 2],
            bodySubgraphIndex=body(m, op, dtype, **more),
        )
        ins = [m.input("x", (4, 3), dtype), m.constant(first)]
        m.output(
            m.op(
                "STABLEHLO_REDUCE_WINDOW",
                ins,
                [m.tensor((3, 2), dtype)],
                StablehloReduceWindowOptions=options,
            )
        )


for function in "ADD", "MUL", "MINIMUM", "MAXIMUM":
    for dtype in "float32", "int8", "uint8", "int16", "int32", "int64", "float64":
        windows(function, dtype)
for function in "ALL", "ANY":
    windows(function, "bool")


# ---- branches


def branches(name, low, high):
    @case(f"hlo_case_{name}", low=low, high=high)
    def _(m):
        which, x = m.input("which", (1,), "int32"), m.input("x", (2, 3))
        graphs = [
            inner(m, f"g{i}", "MUL", np.float32(i + 2), (2, 3), MulOptions={}) for i in range(3)
        ]
        options = dict(branchSubgraphIndices=graphs)
        m.output(
            m.op("STABLEHLO_CASE", [which, x], [m.tensor((2, 3))], StablehloCaseOptions=options)
        )


for i in range(3):
    branches(str(i), i, i + 1)
branches("below", -5, -4)
branches("above", 7, 8)


# ---- random bits


def bits(algorithm, state, shape, dtype):
    @case(f"hlo_random_{algorithm}_{state}_{dtype}", low=0, high=1 << 62)
    def _(m):
        x = m.input("state", (state,), "uint64")
        outs = [m.tensor((state,), "uint64"), m.tensor(shape, dtype)]
        options = dict(algorithm={"default": 0, "philox": 1, "threefry": 2}[algorithm])
        m.output(
            *m.op("STABLEHLO_RNG_BIT_GENERATOR", [x], outs, StablehloRngBitGeneratorOptions=options)
        )


for dtype in "int32", "uint32", "int64", "uint64":
    bits("threefry", 2, (3, 5), dtype)
    bits("philox", 2, (3, 7), dtype)
    bits("philox", 3, (3, 5), dtype)
    bits("default", 3, (2, 5), dtype)


@case("hlo_random_carry")
def _(m):
    """The low word of the counter has its greatest value."""
    x = m.constant(np.array([123456789012345, 0x7_FFFF_FFFE], np.uint64))
    outs = [m.tensor((2,), "uint64"), m.tensor((7,), "uint32")]
    m.output(
        *m.op(
            "STABLEHLO_RNG_BIT_GENERATOR",
            [x],
            outs,
            StablehloRngBitGeneratorOptions=dict(algorithm=2),
        )
    )
