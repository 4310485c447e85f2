"""Cases of strings, and of tables that are searched."""

import numpy as np
from float_cases import f32, i32
from writer import cases_of

CASES, case = cases_of(low=-3, high=3)

# ---- tables


def lookup(name, values, shape, dtype):
    @case(f"hashtable_lookup_{name}", low=0, high=9, whole=True)
    def _(m):
        x = m.input("x", (6,), "int32")
        v = m.texts((4,), *values) if dtype == "string" else m.constant(values)
        outs = [m.tensor(shape, dtype), m.tensor((6,), "uint8")]
        m.output(*m.op("HASHTABLE_LOOKUP", [x, m.constant(i32(1, 3, 4, 7)), v], outs))


lookup("f32", f32(4, 2, 3), (6, 2, 3), "float32")
lookup("i32", i32(5, 6, 7, 8), (6,), "int32")
lookup("string", ("a", "", "bcd", "e f"), (6,), "string")


def table(name, to_text):
    """A table that is filled once; what is found, of keys some of which are none, and how many there are."""
    key, value = ("int64", "string") if to_text else ("string", "int64")

    @case(f"hashtable_{name}", low=0, high=9, whole=True, words=("an", "of", "the", "x", ""))
    def _(m):
        options = dict(tableId=7, keyDtype=KIND[key], valueDtype=KIND[value])
        words, numbers = ("the", "of", "and", "of"), np.array([5, -2, 8, 3], np.int64)

        def handle(g):
            return g.op("HASHTABLE", [], [g.tensor((1,), "resource")], HashtableOptions=options)

        def column(g, dtype):
            return g.texts((4,), *words) if dtype == "string" else g.constant(numbers)

        g = m.graph("init")
        g.op(
            "HASHTABLE_IMPORT",
            [handle(g), column(g, key), column(g, value)],
            [],
            HashtableImportOptions={},
        )
        m.op("CALL_ONCE", [], [], CallOnceOptions=dict(initSubgraphIndex=1))
        x = m.input("x", (2, 3), key)
        none = m.texts((), "none") if to_text else m.constant(np.array(-7, np.int64))
        h = handle(m)
        m.output(
            m.op(
                "HASHTABLE_FIND", [h, x, none], [m.tensor((2, 3), value)], HashtableFindOptions={}
            ),
            m.op("HASHTABLE_SIZE", [h], [m.tensor((1,), "int64")], HashtableSizeOptions={}),
        )


KIND = {"string": 5, "int64": 4}
table("of_strings", False)
table("of_numbers", True)

# ---- strings that are moved

X, LIST = ("x", (2, 3), "string"), ("x", (6,), "string")
MOVES = {
    "reshape": ("RESHAPE", 1, [X, i32(3, 2)], (3, 2), dict(ReshapeOptions=dict(newShape=[3, 2]))),
    "squeeze": (
        "SQUEEZE",
        2,
        [("x", (1, 3), "string")],
        (3,),
        dict(SqueezeOptions=dict(squeezeDims=[0])),
    ),
    "slice": ("SLICE", 4, [X, i32(0, 1), i32(2, 2)], (2, 2), dict(SliceOptions={})),
    "strided_slice": (
        "STRIDED_SLICE",
        4,
        [X, i32(1, 2), i32(-3, 0), i32(-1, -1)],
        (2, 2),
        dict(StridedSliceOptions={}),
    ),
    "gather": ("GATHER", 4, [LIST, i32(1, 0, 5)], (3,), dict(GatherOptions={})),
    "gather_nd": (
        "GATHER_ND",
        2,
        [X, np.array([[1, 2], [0, 0]], np.int32)],
        (2,),
        dict(GatherNdOptions={}),
    ),
    "tile": ("TILE", 2, [X, i32(2, 1)], (4, 3), dict(TileOptions={})),
}
for name, (op, version, inputs, shape, options) in MOVES.items():

    @case(f"text_{name}", words=("a", "bb", "", "c"))
    def _(m, op=op, version=version, inputs=inputs, shape=shape, options=options):
        ins = [m.input(*v) if isinstance(v, tuple) else m.constant(v) for v in inputs]
        m.output(m.op(op, ins, [m.tensor(shape, "string")], version, **options))


for op in "EQUAL", "NOT_EQUAL":

    @case(f"text_{op.lower()}", words=("a", "bb"))
    def _(m, op=op):
        ins = [m.input("x", (2, 3), "string"), m.texts((1, 3), "a", "bb", "")]
        name = {"EQUAL": "EqualOptions", "NOT_EQUAL": "NotEqualOptions"}[op]
        m.output(m.op(op, ins, [m.tensor((2, 3), "bool")], 3, **{name: {}}))


@case("text_fill")
def _(m):
    ins = [m.constant(i32(2, 2)), m.texts((), "a b")]
    m.output(m.op("FILL", ins, [m.tensor((2, 2), "string")], FillOptions={}))


def runs(name, words, skips, shorter, sentence):
    @case(f"skip_gram_{name}", words=(sentence,))
    def _(m):
        x, y = m.input("x", (1,), "string"), m.tensor((0,), "string", signature=(-1,))
        options = dict(ngramSize=words, maxSkipSize=skips, includeAllNgrams=shorter)
        m.output(m.op("SKIP_GRAM", [x], [y], SkipGramOptions=options))


for name, words, skips, shorter, sentence in (
    ("plain", 2, 0, False, "the quick brown fox jumps"),
    ("skips", 3, 2, False, "the quick brown\tfox  jumps over it "),
    ("shorter", 3, 1, True, "the quick brown fox jumps"),
    ("few", 3, 1, True, "two words"),
    ("one", 1, 4, False, " leading word goes"),
    ("space", 1, 0, False, " alone"),
    ("empty", 1, 0, False, ""),
    ("letters", 4, 9, True, "a b c d e f"),
):
    runs(name, words, skips, shorter, sentence)

# ---- hashes


def projection(name, shape, dtype, dense, weighted):
    @case(f"lsh_{name}_{'dense' if dense else 'sparse'}", low=-900, high=900, whole=True)
    def _(m):
        ins = [m.constant(f32(3, 5)), m.input("x", shape, dtype)]
        ins += [m.input("w", shape[:1])] if weighted else []
        out = m.tensor((15,) if dense else (3,), "int32")
        m.output(m.op("LSH_PROJECTION", ins, [out], LSHProjectionOptions=dict(type=1 + dense)))


for dense in (False, True):
    for name, shape, dtype in (
        ("3", (4, 3), "uint8"),
        ("4", (4,), "int32"),
        ("12", (4, 3), "float32"),
        ("24", (4, 3), "int64"),
        ("52", (4, 13), "int32"),
        ("128", (2, 16), "int64"),
        ("137", (3, 137), "int8"),
    ):
        projection(name, shape, dtype, dense, len(shape) > 1)
