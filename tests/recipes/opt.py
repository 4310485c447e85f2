"""Add an opt: BACKWARDS a, a loop that runs from its last iteration to its first."""

import sys

import numpy as np
from checks import call, compilers

HEADINGS = ("Add an opt",)
PROGRAMS = ("ingot", "nest_test", "linear_test", "candidates_test", "random_opts")

OPT = """
const char *opt_backwards(Nest *n, const Opt *o, int axis)
{
    NestAxis *x = &n->axis[axis];
    if (x->backwards)
        return opt_refuse(n, "BACKWARDS %s: it does already", o->axis);
    n->backwards = x->backwards = true;
    return NULL;
}
"""
INDEX = """/* The index that the counter of a loop stands for. */
static Node *counted(Lower *q, const Piece *p, int axis)
{
    Node *at = p->at[axis];
    if (!q->nest->axis[axis].backwards || at->op != OP_RANGE)
        return at;
    return idx_sub(q->c, idx_sub(q->c, at->src[0], idx(q->c, 1)), at);
}

"""
FROM_NEST = """    for (int i = 0; i < n->norder && fits; i++)
        if (n->axis[n->order[i]].backwards) {
            fits = t->nplaced < MAX_PLACED;
            if (fits)
                t->placed[t->nplaced++] = (Placed){OPT_BACKWARDS, ref[n->order[i]], 0};
        }
"""
TRIED = """    for (int at = 0; at < c->from->norder && c->from->nplaced < MAX_PLACED; at++) {
        Tiling t = *c->from;
        t.placed[t.nplaced++] = (Placed){OPT_BACKWARDS, c->from->order[at], 0};
        add_tiling(c, &t);
    }
"""
REFUSALS = """    refusal(n, OPT_BACKWARDS, "i0.i", 0, NULL);
    refusal(n, OPT_BACKWARDS, "i0.i", 0, "it does already");
    refusal(n, OPT_SPLIT, "i0.i", 4, "after BACKWARDS");
"""
CANDIDATES = """/* Loops that run backwards are among what one change makes of the compiler's choice, and can be done. */
static void loops_run_backwards(void **state)
{
    (void)state;
    CandidatesFixture f;
    TuneKernel *k = open_halo(&f);
    Tiling first, *near;
    assert_true(tiling_of(k->base, &first));
    int n = tiling_neighbours(f.c->arena, k->base, &first, &near), found = 0;
    for (int i = 0; i < n; i++) {
        bool backwards = near[i].nplaced && near[i].placed[near[i].nplaced - 1].kind == OPT_BACKWARDS;
        Nest *nest = backwards ? tiling_apply(k->base, &near[i]) : NULL;
        found += nest && nest->backwards;
        nest_free(nest);
    }
    assert_true(found > 0);
    close_halo(&f);
}

"""


def write(tree):
    tree.insert(
        "compiler/kernel/opts.def",
        'OPT(PARTIAL, "PARTIAL"',
        'OPT(BACKWARDS, "BACKWARDS", "AXIS", "BACKWARDS ORDER THREAD")',
    )
    tree.insert(
        "compiler/kernel/opts.def",
        " *   VECTOR a n  UPCAST a n",
        " *   BACKWARDS a     the loop over a runs from its last iteration to its first",
        before=True,
    )
    tree.replace(
        "compiler/kernel/kernels.h", "k == OPT_JOIN ||", "k == OPT_JOIN || k == OPT_BACKWARDS ||"
    )
    tree.insert(
        "compiler/kernel/nest.h",
        "bool row;       /* attention",
        "    bool backwards; /* BACKWARDS: from the last iteration to the first */",
    )
    tree.insert(
        "compiler/kernel/nest.h",
        "bool partial; /* PARTIAL was done */",
        "    bool backwards; /* BACKWARDS was done */",
    )
    tree.append("compiler/kernel/opt/opt_order.c", OPT)
    tree.insert(
        "compiler/kernel/opt/opt.h",
        "const char *opt_order(Nest *, const Opt *);",
        "const char *opt_backwards(Nest *, const Opt *, int axis);",
    )
    tree.insert(
        "compiler/kernel/opt/opt_apply.c",
        "case OPT_SPLIT: return opt_split",
        "    case OPT_BACKWARDS: return opt_backwards(n, o, axis);",
    )
    tree.insert(
        "compiler/kernel/lower/lower_node.c", "Node *lower_index(Lower *q,", INDEX, before=True
    )
    tree.replace(
        "compiler/kernel/lower/lower_node.c",
        "idx_add(q->c, p->first[axis], p->at[axis]) : p->at[axis];",
        "idx_add(q->c, p->first[axis], counted(q, p, axis)) : counted(q, p, axis);",
    )
    tree.insert(
        "compiler/tools/tune/tiling.c",
        "    fits = fits && t->nplaced + n->nstage",
        FROM_NEST,
        before=True,
    )
    tree.insert(
        "compiler/tools/tune/tiling.c",
        "    for (int arg = 0; arg < k->narg && c->from->nplaced",
        TRIED,
        before=True,
    )
    tree.insert(
        "docs/sched.md",
        "| `ORDER a b c` | orders the loops",
        "| `BACKWARDS a` | the loop over `a` runs from its last iteration to its first; after it come only `ORDER` and `THREAD` | |",
    )
    tree.insert(
        "docs/sched.md",
        '    opt     = ("ORDER"|"JOIN") name { name }',
        '            | "BACKWARDS" name',
    )
    tree.insert(
        "codegen/report/kernels.js",
        "case 'ORDER': return",
        "      case 'BACKWARDS': return `${axis}${of} runs from its last iteration to its first`;",
    )
    tree.replace(
        "tests/fuzz/random_opts.c",
        "OPT_ORDER,  OPT_THREAD};",
        "OPT_ORDER,  OPT_THREAD, OPT_BACKWARDS};",
    )
    tree.insert("tests/unit/nest_test.c", 'refusal(n, OPT_THREAD, "i0.o..i7", 4,', REFUSALS)
    tree.insert("tests/unit/candidates_test.c", "int main(void)", CANDIDATES, before=True)
    tree.replace(
        "tests/unit/candidates_test.c",
        "{cmocka_unit_test(loops_of_halos_count)",
        "{cmocka_unit_test(loops_run_backwards), cmocka_unit_test(loops_of_halos_count)",
    )
    tree.insert(
        "tests/unit/linear_test.c",
        '"VECTOR i1 8, UPCAST i0 3, UNROLL r0 4",',
        '"VECTOR i1 8, BACKWARDS i0, BACKWARDS r0", "VECTOR i1 8, UPCAST i0 3, BACKWARDS i0.o, BACKWARDS i1.o, THREAD i0.o 3",',
    )


def check(tried):
    tried.tests("nest_test", "linear_test", "candidates_test")
    random = np.random.default_rng(2)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((24, 40), (40, 24)))
    model, data = tried.model(
        "opt", [("MatMul", ["x", "w"], ["y"])], {"x": x, "w": w}, {"y": x @ w}
    )
    saved, again = tried.work / "saved.sched", tried.work / "again.sched"
    tried.compile(model, "c:c99", "--save-sched", saved, "--threads", "1")
    lines = saved.read_text().splitlines()
    order = [line for line in lines if line.startswith("  ORDER")]
    assert order, saved.read_text()
    backwards = [f"  BACKWARDS {axis}" for axis in order[0].split()[1:]]
    at = lines.index(order[0]) + 1
    saved.write_text("\n".join(lines[:at] + backwards + lines[at:]) + "\n")
    for cc in compilers():
        assert tried.run(model, data, "c:c99", cc, 1e-5, "--sched", saved, "--save-sched", again)
    assert all(line in again.read_text() for line in backwards), again.read_text()
    tried.verify(model, "--target", "c:c99", "--sched", saved)
    tried.verify(model, "--target", "c:c99", "--sched", saved, "--interpret")
    fuzz = tried.tree / "tests/fuzz/random_opts.py"
    call(sys.executable, fuzz, "--ingot", tried.ingot, "--n", 60, "--seed", 7, "--jobs", 1)
    return f"{len(backwards)} loops"
