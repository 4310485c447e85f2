"""Add a rewrite: abs(-x) -> abs(x)."""

import numpy as np
from checks import call

HEADINGS = ("Add a rewrite",)
PROGRAMS = ("ingot", "ir_runner")
RULE = """/* abs_of_neg.c - abs(-x) -> abs(x). */
#include "rewrite.h"

Node *abs_of_neg(Rewrite *r, Node *n)
{
    return n->src[0]->op == OP_NEG ? ingot_abs(r->c, n->src[0]->src[0]) : NULL;
}
"""
SHAPE = """# pass rewrite
# A sign that is dropped needs no turning.
%1 = input f32 [4] @0
%2 = neg f32 [4] %1
%3 = abs f32 [4] %2
return %3
# expect
%1 = input f32 [4] @0
%2 = abs f32 [4] %1
return %2
"""


def write(tree):
    tree.insert(
        "compiler/rewrite/rewrites.def",
        'REWRITE("power",',
        'REWRITE("abs-of-neg",  ABS,    abs_of_neg,      false)',
    )
    tree.insert(
        "compiler/rewrite/rewrite.h",
        "Node *small_power(Rewrite *, Node *);",
        "Node *abs_of_neg(Rewrite *, Node *); /* abs_of_neg.c */",
    )
    tree.new("compiler/rewrite/abs_of_neg.c", RULE)
    tree.new("tests/ir/rewrite_abs_of_neg.ir", SHAPE)


def check(tried):
    call(tried.made / "tests/ir_runner", tried.tree / "tests/ir/rewrite_abs_of_neg.ir")
    x = np.linspace(-2, 2, 24).astype(np.float32).reshape(4, 6)
    nodes = [("Neg", ["x"], ["a"]), ("Abs", ["a"], ["b"]), ("Sqrt", ["b"], ["y"])]
    model, data = tried.model("rewrite", nodes, {"x": x}, {"y": np.sqrt(np.abs(x))})
    tried.verify(model)
    text = []
    for flags in ((), ("--no-rewrite", "abs-of-neg")):
        assert tried.run(model, data, "c:c99", "gcc", 1e-6, *flags)
        text.append(tried.text(tried.work / "rewrite_c_c99"))
    assert text[0] != text[1], "--no-rewrite abs-of-neg changes nothing"
    return "with it and without"
