/* symbolic_test.c - the integer simplifier against brute force.
 *
 * Random expressions are built twice: as a plain tree that this file evaluates by the definition
 * of each operator, and through the simplifying constructors.  Both are evaluated at every point
 * of the ranges and run-time integers; every node's bounds must contain every value it takes.
 * Last, results that must be reached, by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "points.h"

/* ---- the plain tree ------------------------------------------------------------------------ */

typedef struct Raw Raw;
struct Raw {
    Op op; /* CONST: value; RANGE: leaf number value */
    int64_t value;
    Raw *a, *b, *c;
};

static Raw *raw(Arena *m, Op op, int64_t value, Raw *a, Raw *b, Raw *c)
{
    Raw *r = NEW(m, Raw);
    *r = (Raw){op, value, a, b, c};
    return r;
}

static int64_t raw_eval(const Raw *r, const int64_t *leaf)
{
    int64_t a = r->a ? raw_eval(r->a, leaf) : 0, b = r->b ? raw_eval(r->b, leaf) : 0;
    switch (r->op) {
    case OP_CONST: return r->value;
    case OP_RANGE: return leaf[r->value];
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_FLOORDIV: return floordiv(a, b);
    case OP_MOD: return floormod(a, b);
    case OP_MIN: return a < b ? a : b;
    case OP_MAX: return a > b ? a : b;
    case OP_LT: return a < b;
    case OP_LE: return a <= b;
    case OP_EQ: return a == b;
    case OP_AND: return a && b;
    case OP_OR: return a || b;
    case OP_NOT: return !a;
    case OP_WHERE: return a ? b : raw_eval(r->c, leaf);
    default: fail(); return 0;
    }
}

static Node *raw_build(Context *c, const Raw *r, Node *const *leaf)
{
    Node *a = r->a ? raw_build(c, r->a, leaf) : NULL, *b = r->b ? raw_build(c, r->b, leaf) : NULL;
    switch (r->op) {
    case OP_CONST: return idx(c, r->value);
    case OP_RANGE: return leaf[r->value];
    case OP_ADD: return idx_add(c, a, b);
    case OP_SUB: return idx_sub(c, a, b);
    case OP_MUL: return idx_mul(c, a, b);
    case OP_FLOORDIV: return idx_div(c, a, b);
    case OP_MOD: return idx_mod(c, a, b);
    case OP_MIN: return idx_min(c, a, b);
    case OP_MAX: return idx_max(c, a, b);
    case OP_LT: return idx_lt(c, a, b);
    case OP_LE: return idx_le(c, a, b);
    case OP_EQ: return idx_eq(c, a, b);
    case OP_AND: return bool_and(c, a, b);
    case OP_OR: return bool_or(c, a, b);
    case OP_NOT: return bool_not(c, a);
    case OP_WHERE: return node_where(c, a, b, raw_build(c, r->c, leaf));
    default: fail(); return NULL;
    }
}

static void raw_show(StrBuf *sb, const Raw *r)
{
    if (r->op == OP_CONST)
        sb_printf(sb, "%lld", (long long)r->value);
    else if (r->op == OP_RANGE)
        sb_printf(sb, "x%lld", (long long)r->value);
    else {
        sb_printf(sb, "%s(", op_info[r->op].text);
        for (int i = 0; i < 3; i++) {
            const Raw *s = i == 0 ? r->a : i == 1 ? r->b : r->c;
            if (s && i)
                sb_puts(sb, ", ");
            if (s)
                raw_show(sb, s);
        }
        sb_puts(sb, ")");
    }
}

/* ---- random expressions ---------------------------------------------------------------------- */

static void random_leaves(PointSpace *s, bool symbolic)
{
    static const int extents[] = {1, 2, 3, 4, 5, 6, 7, 8, 12};
    Context *c = s->c;
    int nvar = symbolic ? 1 + pick(2) : 0;
    for (int i = 0; i < nvar; i++) {
        int lo = pick(3);
        var(s, lo, lo + pick(4));
    }
    for (int i = 0, n = 1 + pick(symbolic ? 2 : 3); i < n; i++) {
        Node *e = idx(c, extents[pick(9)]);
        if (nvar && pick(3)) {
            e = s->leaf[pick(nvar)];
            if (pick(3) == 0)
                e = idx_mul(c, e, pick(2) ? idx(c, 2 + pick(2)) : s->leaf[pick(nvar)]);
            if (pick(4) == 0)
                e = idx_add(c, e, idx(c, pick(3)));
        }
        range(s, e);
    }
}

static Raw *random_expr(PointSpace *s, int depth);

static Raw *random_divisor(PointSpace *s)
{
    static const int divisors[] = {1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 8, 12, 16, 24, -3, -4};
    Raw *leaf = raw(s->m, OP_RANGE, pick(s->n), NULL, NULL, NULL);
    if (s->leaf[leaf->value]->op == OP_VAR && pick(3)) {
        if (pick(3) == 0)
            leaf = raw(s->m, OP_MUL, 0, leaf, raw(s->m, OP_CONST, 2 + pick(3), NULL, NULL, NULL),
                       NULL);
        return leaf;
    }
    return raw(s->m, OP_CONST, divisors[pick(16)], NULL, NULL, NULL);
}

static Raw *random_cond(PointSpace *s, int depth)
{
    Arena *m = s->m;
    static const Op compare[] = {OP_LT, OP_LE, OP_EQ, OP_LT};
    if (depth <= 0 || pick(3) == 0)
        return raw(m, compare[pick(4)], 0, random_expr(s, 2), random_expr(s, pick(2)), NULL);
    int k = pick(5);
    if (k == 4)
        return raw(m, OP_NOT, 0, random_cond(s, depth - 1), NULL, NULL);
    return raw(m, k & 1 ? OP_OR : OP_AND, 0, random_cond(s, depth - 1), random_cond(s, depth - 1),
               NULL);
}

static Raw *random_expr(PointSpace *s, int depth)
{
    Arena *m = s->m;
    if (depth <= 0 || pick(8) == 0) {
        if (pick(4) == 0)
            return raw(m, OP_CONST, pick(17) - 6, NULL, NULL, NULL);
        return raw(m, OP_RANGE, pick(s->n), NULL, NULL, NULL);
    }
    Raw *a = random_expr(s, depth - 1);
    switch (pick(14)) {
    case 0:
    case 1:
    case 2: return raw(m, OP_ADD, 0, a, random_expr(s, depth - 1), NULL);
    case 3: return raw(m, OP_SUB, 0, a, random_expr(s, depth - 1), NULL);
    case 4:
    case 5:
    case 6: {
        Raw *b = pick(4) ? raw(m, OP_CONST, pick(13) - 3, NULL, NULL, NULL)
                         : raw(m, OP_RANGE, pick(s->n), NULL, NULL, NULL);
        return raw(m, OP_MUL, 0, a, b, NULL);
    }
    case 7:
    case 8: return raw(m, OP_FLOORDIV, 0, a, random_divisor(s), NULL);
    case 9:
    case 10: return raw(m, OP_MOD, 0, a, random_divisor(s), NULL);
    case 11: return raw(m, pick(2) ? OP_MIN : OP_MAX, 0, a, random_expr(s, depth - 1), NULL);
    case 12: { /* x / d * d + x % d, perhaps over another d; or (x / d + y) % b * d + x % d */
        Raw *d = random_divisor(s), *e = pick(4) ? d : random_divisor(s);
        Raw *q = raw(m, OP_FLOORDIV, 0, a, d, NULL);
        if (pick(2)) {
            q = pick(3) ? raw(m, OP_ADD, 0, q, random_expr(s, pick(3)), NULL) : q;
            q = raw(m, OP_MOD, 0, q, random_divisor(s), NULL);
        }
        q = raw(m, OP_MUL, 0, q, e, NULL);
        return raw(m, OP_ADD, 0, q, raw(m, OP_MOD, 0, a, d, NULL), NULL);
    }
    default: return raw(m, OP_WHERE, 0, random_cond(s, 0), a, random_expr(s, depth - 1));
    }
}

static const char *describe(PointSpace *s, const Raw *r)
{
    StrBuf sb = {0};
    raw_show(&sb, r);
    for (int i = 0; i < s->n; i++) {
        bool is_var = s->leaf[i]->op == OP_VAR;
        sb_printf(&sb, " x%d=%lld of %s %lld..%lld", i, (long long)s->value[i],
                  is_var ? "var" : "range", (long long)s->leaf[i]->lo, (long long)s->leaf[i]->hi);
    }
    return sb.data; /* read by a failing test only, so never freed */
}

static void check_same(PointSpace *s, const Raw *r, Node *e)
{
    Program p = program(s, 1, &e);
    for (bool more = first(s); more; more = advance(s)) {
        run(s, &p);
        if (p.v[e->id] != raw_eval(r, s->value))
            fail_msg("%lld instead of %lld: %s", (long long)p.v[e->id],
                     (long long)raw_eval(r, s->value), describe(s, r));
    }
}

static void random_expressions(void **unused)
{
    (void)unused;
    for (int seed = 0; seed < 12000; seed++) {
        state = (uint64_t)seed * 7919 + 1;
        PointSpace s = space_new();
        random_leaves(&s, seed & 1);
        Raw *r = seed % 5 == 4 ? random_cond(&s, 3) : random_expr(&s, 2 + pick(4));
        check_same(&s, r, raw_build(s.c, r, s.leaf));
        space_free(&s);
    }
}

/* Rebuilding a simplified expression changes nothing further. */
static void rebuilding_is_stable(void **unused)
{
    (void)unused;
    int changed = 0;
    for (int seed = 0; seed < 3000; seed++) {
        state = (uint64_t)seed * 104729 + 5;
        PointSpace s = space_new();
        random_leaves(&s, seed & 1);
        Raw *r = random_expr(&s, 4);
        Node *e = raw_build(s.c, r, s.leaf), *old = s.leaf[s.n - 1];
        Node *fresh = node_make(s.c, OP_RANGE, INGOT_INDEX, (Arg){.i = 99}, 1, old->src, 0, NULL);
        Node *there = substitute(s.c, e, 1, &old, &fresh);
        Node *back = substitute(s.c, there, 1, &fresh, &old);
        check_same(&s, r, back);
        changed += back != e;
        space_free(&s);
    }
    assert_true(changed < 60);
}

static void random_assumptions(void **unused)
{
    (void)unused;
    for (int seed = 0; seed < 4000; seed++) {
        state = (uint64_t)seed * 15485863 + 3;
        PointSpace s = space_new();
        random_leaves(&s, seed & 1);
        Raw *r = seed % 4 ? random_expr(&s, 3) : random_cond(&s, 2), *q = random_cond(&s, 2);
        Node *e = raw_build(s.c, r, s.leaf), *cond = raw_build(s.c, q, s.leaf);
        Node *given = simplify_given(s.c, e, cond);
        Program p = program(&s, 1, &given);
        for (bool more = first(&s); more; more = advance(&s)) {
            if (!raw_eval(q, s.value))
                continue;
            run(&s, &p);
            if (p.v[given->id] != raw_eval(r, s.value))
                fail_msg("%s given %s", describe(&s, r), describe(&s, q));
        }
        space_free(&s);
    }
}

static void random_substitutions(void **unused)
{
    (void)unused;
    for (int seed = 0; seed < 2000; seed++) {
        state = (uint64_t)seed * 32452843 + 9;
        PointSpace s = space_new();
        random_leaves(&s, false);
        Raw *r = random_expr(&s, 4);
        Node *e = raw_build(s.c, r, s.leaf);
        /* x0 = 2 * outer + inner: the split that an optimisation makes */
        Node *old = s.leaf[0];
        int64_t n = (old->src[0]->arg.i + 1) / 2 * 2;
        old = range(&s, idx(s.c, n));
        Node *from = s.leaf[0];
        e = substitute(s.c, e, 1, &from, &old);
        PointSpace t = {.c = s.c, .m = s.m};
        Node *outer = range(&t, idx(s.c, n / 2)), *inner;
        t.n = 20 - 19;
        inner = node_make(s.c, OP_RANGE, INGOT_INDEX, (Arg){.i = 50}, 1, (Node *[]){idx(s.c, 2)}, 0,
                          NULL);
        t.leaf[t.n++] = inner;
        for (int i = 1; i < s.n - 1; i++)
            t.leaf[t.n++] = s.leaf[i];
        t.leaf[0] = outer = node_make(s.c, OP_RANGE, INGOT_INDEX, (Arg){.i = 51}, 1,
                                      (Node *[]){idx(s.c, n / 2)}, 0, NULL);
        Node *split = idx_add(s.c, idx_mul(s.c, outer, idx(s.c, 2)), inner);
        Node *got = substitute(s.c, e, 1, &old, &split);
        Program p = program(&t, 1, &got);
        for (bool more = first(&t); more; more = advance(&t)) {
            int64_t point[LEAVES] = {t.value[0] * 2 + t.value[1]};
            for (int i = 2; i < t.n; i++)
                point[i - 1] = t.value[i];
            if (point[0] >= from->src[0]->arg.i)
                continue; /* outside the range that the simplifier was told */
            run(&t, &p);
            if (p.v[got->id] != raw_eval(r, point))
                fail_msg("after a split: %s", describe(&s, r));
        }
        space_free(&s);
    }
}

/* ---- results that must be reached ------------------------------------------------------------ */

#define K(v) idx(c, v)
#define ADD(a, b) idx_add(c, a, b)
#define SUB(a, b) idx_sub(c, a, b)
#define MUL(a, b) idx_mul(c, a, b)
#define DIV(a, b) idx_div(c, a, b)
#define MOD(a, b) idx_mod(c, a, b)
#define same(a, b) assert_ptr_equal(a, b)

static void constants_and_terms(void **unused)
{
    (void)unused;
    PointSpace s = space_new();
    Context *c = s.c;
    Node *i = range(&s, K(8)), *j = range(&s, K(4)), *x = range(&s, K(100));
    same(ADD(i, K(0)), i);
    same(MUL(i, K(1)), i);
    same(MUL(i, K(0)), K(0));
    same(ADD(i, j), ADD(j, i));
    same(SUB(ADD(i, j), i), j);
    same(MUL(ADD(i, K(3)), K(4)), ADD(MUL(i, K(4)), K(12)));
    same(MUL(ADD(i, j), x), ADD(MUL(x, j), MUL(i, x)));
    same(ADD(ADD(i, K(5)), ADD(j, K(-5))), ADD(i, j));
    same(range_new(c, 7, K(1)), K(0));
    same(ADD(K(INT64_MAX), K(1)), K(INT64_MAX));
    same(MUL(K(INT64_MIN), K(2)), K(INT64_MIN));
    assert_int_equal(ADD(MUL(i, K(4)), j)->lo, 0);
    assert_int_equal(ADD(MUL(i, K(4)), j)->hi, 31);
    assert_int_equal(MOD(x, K(7))->hi, 6);
    assert_int_equal(DIV(SUB(i, K(9)), K(4))->lo, -3);
    assert_int_equal(DIV(SUB(i, K(9)), K(4))->hi, -1);
    same(idx_min(c, i, K(7)), i);
    same(idx_max(c, i, K(8)), K(8));
    same(idx_min(c, idx_min(c, x, K(50)), K(60)), idx_min(c, x, K(50)));
    same(idx_min(c, ADD(i, j), i), i);
    same(idx_min(c, x, idx_max(c, x, i)), x);
    same(ADD(idx_min(c, x, K(5)), SUB(idx_max(c, x, K(5)), K(5))), x);
    same(ADD(MUL(idx_min(c, x, i), K(3)), MUL(idx_max(c, i, x), K(3))), MUL(ADD(x, i), K(3)));
    same(SUB(x, idx_max(c, SUB(x, K(3)), K(0))), idx_min(c, x, K(3)));
    same(MUL(SUB(x, idx_min(c, ADD(x, K(2)), K(9))), K(5)),
         MUL(idx_max(c, SUB(x, K(9)), K(-2)), K(5)));
    space_free(&s);
}

static void divisions(void **unused)
{
    (void)unused;
    PointSpace s = space_new();
    Context *c = s.c;
    Node *i = range(&s, K(8)), *j = range(&s, K(4)), *k = range(&s, K(3)), *x = range(&s, K(100));
    same(DIV(ADD(MUL(i, K(4)), j), K(4)), i);
    same(MOD(ADD(MUL(i, K(4)), j), K(4)), j);
    same(DIV(ADD(MUL(i, K(12)), ADD(MUL(j, K(3)), k)), K(3)), ADD(MUL(i, K(4)), j));
    same(MOD(DIV(ADD(MUL(i, K(12)), ADD(MUL(j, K(3)), k)), K(3)), K(4)), j);
    same(DIV(DIV(x, K(3)), K(5)), DIV(x, K(15)));
    same(MOD(MOD(x, K(12)), K(4)), MOD(x, K(4)));
    same(DIV(MOD(x, K(12)), K(4)), MOD(DIV(x, K(4)), K(3)));
    same(ADD(MUL(DIV(x, K(7)), K(7)), MOD(x, K(7))), x);
    same(ADD(MUL(DIV(x, K(7)), K(14)), MUL(MOD(x, K(7)), K(2))), MUL(x, K(2)));
    same(ADD(MUL(MOD(DIV(x, K(3)), K(5)), K(3)), MOD(x, K(3))), MOD(x, K(15)));
    /* lanes of three axes that are one: the parts of 32 x + l by 96, 24 and 1 */
    Node *l = range(&s, K(32)), *at = ADD(l, MUL(x, K(8)));
    same(ADD(MUL(MOD(ADD(x, DIV(at, K(24))), K(4)), K(24)), MOD(at, K(24))),
         MOD(ADD(l, MUL(x, K(32))), K(96)));
    same(ADD(ADD(MUL(MOD(ADD(x, DIV(at, K(24))), K(4)), K(24)), MOD(at, K(24))),
             MUL(DIV(x, K(3)), K(96))),
         ADD(l, MUL(x, K(32))));
    same(DIV(ADD(MUL(x, K(6)), K(4)), K(4)), ADD(x, ADD(DIV(x, K(2)), K(1))));
    same(MOD(ADD(MUL(x, K(6)), K(3)), K(4)), ADD(MUL(MOD(ADD(x, K(1)), K(2)), K(2)), K(1)));
    same(MOD(SUB(K(7), j), K(4)), SUB(K(3), j));
    same(DIV(SUB(K(7), j), K(4)), K(1));
    same(MOD(ADD(MUL(i, K(8)), x), K(8)), MOD(x, K(8)));
    same(DIV(ADD(x, K(-1)), K(4)), ADD(DIV(ADD(x, K(3)), K(4)), K(-1)));
    same(MOD(i, K(8)), i);
    same(MOD(i, K(9)), i);
    same(DIV(i, K(8)), K(0));
    space_free(&s);
}

static void symbolic_extents(void **unused)
{
    (void)unused;
    PointSpace s = space_new();
    Context *c = s.c;
    Node *n = var(&s, 0, 64), *m = var(&s, 1, 16);
    Node *i = range(&s, K(8)), *j = range(&s, n), *k = range(&s, m);
    Node *flat = ADD(MUL(ADD(MUL(i, n), j), m), k);
    same(DIV(ADD(MUL(k, n), j), n), k);
    same(MOD(ADD(MUL(k, n), j), n), j);
    same(MOD(flat, m), k);
    same(MOD(DIV(flat, m), n), j);
    same(DIV(flat, MUL(m, n)), i);
    same(DIV(MOD(flat, MUL(m, n)), m), j);
    same(idx_lt(c, j, n), node_bool(c, true));
    same(idx_lt(c, ADD(MUL(j, m), k), MUL(n, m)), node_bool(c, true));
    same(idx_lt(c, flat, MUL(MUL(n, m), K(8))), node_bool(c, true));
    same(idx_le(c, MUL(n, m), ADD(MUL(j, m), k)), node_bool(c, false));
    same(idx_min(c, j, n), j);
    same(idx_min(c, j, SUB(n, K(1))), j);
    same(idx_max(c, SUB(n, K(1)), j), SUB(n, K(1)));
    assert_true(idx_provably_equal(c, MUL(ADD(n, K(1)), m), ADD(MUL(n, m), m)));
    /* what is padded up to a multiple of 6, of half a size that is padded itself */
    same(SUB(ADD(n, K(12)), MUL(DIV(ADD(n, K(12)), K(6)), K(6))), MOD(n, K(6)));
    Node *half = ADD(DIV(ADD(n, K(1)), K(2)), K(13)), *fill = SUB(K(6), MOD(half, K(6)));
    same(SUB(half, MUL(DIV(half, K(6)), K(6))), MOD(half, K(6)));
    assert_int_equal(SUB(fill, MUL(DIV(fill, K(6)), K(6)))->hi, 5);
    /* a strided window stays within its input */
    Node *out = range(&s, ADD(DIV(SUB(n, K(3)), K(2)), K(1))), *tap = range(&s, K(3));
    same(idx_lt(c, ADD(MUL(out, K(2)), tap), n), node_bool(c, true));
    /* flip of a symbolic axis, taken apart again */
    Node *flip = SUB(SUB(n, K(1)), j);
    same(DIV(ADD(MUL(i, n), flip), n), i);
    same(MOD(ADD(MUL(i, n), flip), n), flip);
    space_free(&s);
}

static void conditions(void **unused)
{
    (void)unused;
    PointSpace s = space_new();
    Context *c = s.c;
    Node *i = range(&s, K(8)), *j = range(&s, K(4)), *x = range(&s, K(100));
    Node *yes = node_bool(c, true), *no = node_bool(c, false);
    same(idx_lt(c, i, K(8)), yes);
    same(idx_lt(c, i, K(0)), no);
    same(idx_le(c, K(2), i), bool_not(c, idx_lt(c, i, K(2))));
    same(idx_lt(c, MUL(i, K(4)), K(10)), idx_lt(c, i, K(3)));
    same(idx_lt(c, ADD(MUL(i, K(4)), j), K(8)), idx_lt(c, i, K(2)));
    same(idx_lt(c, DIV(x, K(3)), K(5)), idx_lt(c, x, K(15)));
    same(idx_eq(c, MUL(i, K(2)), K(5)), no);
    same(idx_eq(c, ADD(MUL(i, K(4)), j), K(5)),
         bool_and(c, idx_eq(c, i, K(1)), idx_eq(c, j, K(1))));
    Node *a = idx_lt(c, x, K(30)), *b = idx_le(c, K(10), x), *d = idx_lt(c, x, K(20));
    same(bool_and(c, a, d), d);
    same(bool_or(c, a, d), a);
    same(bool_and(c, idx_lt(c, x, K(5)), b), no);
    same(bool_or(c, a, b), yes);
    same(bool_and(c, a, bool_not(c, a)), no);
    same(bool_and(c, bool_and(c, a, b), bool_and(c, b, a)), bool_and(c, b, a));
    same(bool_not(c, bool_not(c, bool_and(c, a, b))), bool_and(c, a, b));
    same(bool_and(c, a, bool_or(c, a, b)), a);
    /* under an assumption */
    Node *cond = bool_and(c, b, d);
    same(simplify_given(c, a, cond), yes);
    same(simplify_given(c, idx_max(c, x, K(10)), cond), x);
    same(simplify_given(c, idx_min(c, idx_max(c, SUB(x, K(10)), K(0)), K(9)), cond), SUB(x, K(10)));
    same(simplify_given(c, MOD(SUB(x, K(10)), K(10)), cond), SUB(x, K(10)));
    same(simplify_given(c, DIV(ADD(i, j), K(5)), idx_lt(c, ADD(i, j), K(5))), K(0));
    same(simplify_given(c, node_where(c, cond, i, j), cond), i);
    space_free(&s);
}

static void integers_behind_values(void **unused)
{
    (void)unused;
    PointSpace s = space_new();
    Context *c = s.c;
    Node *i = range(&s, K(8)), *n = var(&s, 1, 100);
    Node *v = node_cast(c, i, INGOT_I64), *w = node_cast(c, SUB(i, K(4)), INGOT_I32);
    same(node_cast(c, v, INGOT_INDEX), i);
    Node *five = node_const_i(c, INGOT_I64, 5);
    same(idx_from_value(c, node_alu2(c, OP_ADD, INGOT_I64, v, five)), ADD(i, K(5)));
    same(idx_from_value(c, node_alu2(c, OP_MUL, INGOT_I64, v, v)), MUL(i, i));
    /* i - 4 < 0 ? i - 4 + n : i - 4 */
    Node *zero = node_const_i(c, INGOT_I32, 0), *size = node_cast(c, n, INGOT_I32);
    Node *wrapped = node_where(c, node_alu2(c, OP_LT, INGOT_BOOL, w, zero),
                               node_alu2(c, OP_ADD, INGOT_I32, w, size), w);
    same(idx_from_value(c, wrapped),
         node_where(c, idx_lt(c, i, K(4)), ADD(SUB(i, K(4)), n), SUB(i, K(4))));
    /* 8-bit arithmetic may wrap: not that integer */
    Node *b = node_cast(c, MUL(i, K(10)), INGOT_I8);
    assert_non_null(idx_from_value(c, b));
    assert_null(idx_from_value(c, node_alu2(c, OP_ADD, INGOT_I8, b, b)));
    space_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_and_terms),    cmocka_unit_test(divisions),
        cmocka_unit_test(symbolic_extents),       cmocka_unit_test(conditions),
        cmocka_unit_test(integers_behind_values), cmocka_unit_test(random_expressions),
        cmocka_unit_test(rebuilding_is_stable),   cmocka_unit_test(random_assumptions),
        cmocka_unit_test(random_substitutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
