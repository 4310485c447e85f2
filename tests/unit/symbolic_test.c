/* symbolic_test.c - the integer simplifier against brute force.
 *
 * Random expressions are built twice: as a plain tree that this file evaluates by the definition
 * of each operator, and through the simplifying constructors.  Both are evaluated at every point
 * of the ranges and run-time integers; every node's bounds must contain every value it takes.
 * The same for random chains of movement operations, judged by moving real arrays.  Last, results
 * that must be reached, by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/compiler.h"

static uint64_t state;

static uint64_t random64(void)
{
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int pick(int n)
{
    return (int)(random64() % (uint64_t)n);
}

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

static int64_t floordiv(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static int64_t floormod(int64_t a, int64_t b)
{
    return b == 0 ? 0 : a - b * floordiv(a, b);
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

/* ---- evaluating nodes ------------------------------------------------------------------------ */

enum { LEAVES = 8 };
typedef struct {
    Context *c;
    Arena *m;
    int n;
    Node *leaf[LEAVES];
    int64_t value[LEAVES];
} Space;

static int64_t node_value(Node *n, const int64_t *v)
{
    int64_t a = n->nsrc > 0 ? v[n->src[0]->id] : 0, b = n->nsrc > 1 ? v[n->src[1]->id] : 0;
    switch (n->op) {
    case OP_CONST: return n->arg.i;
    case OP_ADD: return a + b;
    case OP_MUL: return a * b;
    case OP_FLOORDIV: return floordiv(a, b);
    case OP_MOD: return floormod(a, b);
    case OP_MIN: return a < b ? a : b;
    case OP_MAX: return a > b ? a : b;
    case OP_LT: return a < b;
    case OP_EQ: return a == b;
    case OP_AND: return a && b;
    case OP_OR: return a || b;
    case OP_NOT: return !a;
    case OP_WHERE: return a ? b : v[n->src[2]->id];
    default: fail_msg("%s left in an expression", op_info[n->op].text); return 0;
    }
}

typedef struct {
    Node **order;
    int n;
    int64_t *v; /* by id */
} Program;

static Program program(Space *s, int nroot, Node *const *roots)
{
    Program p;
    p.order = graph_toposort(s->m, nroot, roots, &p.n);
    p.v = NEWN(s->m, int64_t, s->c->nnode);
    return p;
}

/* Values of all nodes at the present point, checked against their bounds. */
static void run(Space *s, Program *p)
{
    for (int i = 0; i < s->n; i++)
        p->v[s->leaf[i]->id] = s->value[i];
    for (int i = 0; i < p->n; i++) {
        Node *n = p->order[i];
        if (n->op != OP_RANGE && n->op != OP_VAR)
            p->v[n->id] = node_value(n, p->v);
        int64_t v = p->v[n->id];
        if (v < n->lo || v > n->hi)
            fail_msg("%s has the value %lld outside its bounds %lld..%lld", op_info[n->op].text,
                     (long long)v, (long long)n->lo, (long long)n->hi);
    }
}

static Node *var(Space *s, int64_t lo, int64_t hi)
{
    Context *c = s->c;
    Var v = {.name = arena_printf(c->arena, "n%d", c->nvar), .lo = lo, .hi = hi};
    vec_push(c->arena, c->vars, c->nvar, v);
    Node *n = node_make(c, OP_VAR, INGOT_INDEX, (Arg){.i = c->nvar - 1}, 0, NULL, 0, NULL);
    c->vars[c->nvar - 1].node = n;
    return s->leaf[s->n++] = n;
}

/* A RANGE node even where range_new would give the constant 0. */
static Node *range(Space *s, Node *extent)
{
    Node *r = node_make(s->c, OP_RANGE, INGOT_INDEX, (Arg){.i = s->n}, 1, &extent, 0, NULL);
    return s->leaf[s->n++] = r;
}

static int64_t extent_value(Space *s, int leaf)
{
    if (s->leaf[leaf]->src[0]->op == OP_CONST)
        return s->leaf[leaf]->src[0]->arg.i;
    int n;
    Arena *m = arena_new();
    Node *e = s->leaf[leaf]->src[0], **order = graph_toposort(m, 1, &e, &n);
    int64_t *v = NEWN(m, int64_t, e->id + 1), r;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < leaf; j++)
            if (s->leaf[j] == order[i])
                v[order[i]->id] = s->value[j];
        if (order[i]->op != OP_VAR)
            v[order[i]->id] = node_value(order[i], v);
    }
    r = v[e->id];
    arena_free(m);
    return r;
}

/* Odometer: sets leaf i (to its next value if `step`) and all after it; false when there is no
 * further point.  An extent over earlier VARs may be 0, which sends it back. */
static bool turn(Space *s, int i, bool step)
{
    while (i < s->n) {
        bool is_var = s->leaf[i]->op == OP_VAR;
        s->value[i] = step ? s->value[i] + 1 : is_var ? s->leaf[i]->lo : 0;
        int64_t last = is_var ? s->leaf[i]->hi : extent_value(s, i) - 1;
        step = s->value[i] > last;
        i += step ? -1 : 1;
        if (i < 0)
            return false;
    }
    return true;
}

static bool first(Space *s)
{
    return turn(s, 0, false);
}

static bool advance(Space *s)
{
    return s->n > 0 && turn(s, s->n - 1, true);
}

static Space space_new(void)
{
    Space s = {.c = ingot_context_new(NULL, NULL), .m = arena_new()};
    return s;
}

static void space_free(Space *s)
{
    arena_free(s->m);
    ingot_context_free(s->c);
}

/* ---- random expressions ------------------------------------------------------------------------ */

static void random_leaves(Space *s, bool symbolic)
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

static Raw *random_expr(Space *s, int depth);

static Raw *random_divisor(Space *s)
{
    static const int divisors[] = {1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 8, 12, 16, 24, -3, -4};
    Raw *leaf = raw(s->m, OP_RANGE, pick(s->n), NULL, NULL, NULL);
    if (s->leaf[leaf->value]->op == OP_VAR && pick(3)) {
        if (pick(3) == 0)
            leaf = raw(s->m, OP_MUL, 0, leaf, raw(s->m, OP_CONST, 2 + pick(3), NULL, NULL, NULL), NULL);
        return leaf;
    }
    return raw(s->m, OP_CONST, divisors[pick(16)], NULL, NULL, NULL);
}

static Raw *random_cond(Space *s, int depth)
{
    Arena *m = s->m;
    static const Op compare[] = {OP_LT, OP_LE, OP_EQ, OP_LT};
    if (depth <= 0 || pick(3) == 0)
        return raw(m, compare[pick(4)], 0, random_expr(s, 2), random_expr(s, pick(2)), NULL);
    int k = pick(5);
    if (k == 4)
        return raw(m, OP_NOT, 0, random_cond(s, depth - 1), NULL, NULL);
    return raw(m, k & 1 ? OP_OR : OP_AND, 0, random_cond(s, depth - 1), random_cond(s, depth - 1), NULL);
}

static Raw *random_expr(Space *s, int depth)
{
    Arena *m = s->m;
    if (depth <= 0 || pick(8) == 0) {
        if (pick(4) == 0)
            return raw(m, OP_CONST, pick(17) - 6, NULL, NULL, NULL);
        return raw(m, OP_RANGE, pick(s->n), NULL, NULL, NULL);
    }
    Raw *a = random_expr(s, depth - 1);
    switch (pick(14)) {
    case 0: case 1: case 2: return raw(m, OP_ADD, 0, a, random_expr(s, depth - 1), NULL);
    case 3: return raw(m, OP_SUB, 0, a, random_expr(s, depth - 1), NULL);
    case 4: case 5: case 6: {
        Raw *b = pick(4) ? raw(m, OP_CONST, pick(13) - 3, NULL, NULL, NULL)
                         : raw(m, OP_RANGE, pick(s->n), NULL, NULL, NULL);
        return raw(m, OP_MUL, 0, a, b, NULL);
    }
    case 7: case 8: return raw(m, OP_FLOORDIV, 0, a, random_divisor(s), NULL);
    case 9: case 10: return raw(m, OP_MOD, 0, a, random_divisor(s), NULL);
    case 11: return raw(m, pick(2) ? OP_MIN : OP_MAX, 0, a, random_expr(s, depth - 1), NULL);
    case 12: { /* x / d * d + x % d, perhaps over another d */
        Raw *d = random_divisor(s), *e = pick(4) ? d : random_divisor(s);
        Raw *q = raw(m, OP_MUL, 0, raw(m, OP_FLOORDIV, 0, a, d, NULL), e, NULL);
        return raw(m, OP_ADD, 0, q, raw(m, OP_MOD, 0, a, d, NULL), NULL);
    }
    default: return raw(m, OP_WHERE, 0, random_cond(s, 0), a, random_expr(s, depth - 1));
    }
}

static const char *describe(Space *s, const Raw *r)
{
    StrBuf sb = {0};
    raw_show(&sb, r);
    for (int i = 0; i < s->n; i++) {
        bool is_var = s->leaf[i]->op == OP_VAR;
        sb_printf(&sb, " x%d=%lld of %s %lld..%lld", i, (long long)s->value[i], is_var ? "var" : "range",
                  (long long)s->leaf[i]->lo, (long long)s->leaf[i]->hi);
    }
    return sb.data; /* read by a failing test only, so never freed */
}

static void check_same(Space *s, const Raw *r, Node *e)
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
        Space s = space_new();
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
        Space s = space_new();
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
        Space s = space_new();
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
        Space s = space_new();
        random_leaves(&s, false);
        Raw *r = random_expr(&s, 4);
        Node *e = raw_build(s.c, r, s.leaf);
        /* x0 = 2 * outer + inner: the split that an optimisation makes */
        Node *old = s.leaf[0];
        int64_t n = (old->src[0]->arg.i + 1) / 2 * 2;
        old = range(&s, idx(s.c, n));
        Node *from = s.leaf[0];
        e = substitute(s.c, e, 1, &from, &old);
        Space t = {.c = s.c, .m = s.m};
        Node *outer = range(&t, idx(s.c, n / 2)), *inner;
        t.n = 20 - 19;
        inner = node_make(s.c, OP_RANGE, INGOT_INDEX, (Arg){.i = 50}, 1, (Node *[]){idx(s.c, 2)}, 0, NULL);
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

/* ---- chains of movement ---------------------------------------------------------------------------- */

/* A real array: elements are 1 + their number in the source, 0 where padded. */
typedef struct {
    int rank;
    int64_t dim[INGOT_MAX_RANK], n;
    int *at;
} Array;

static Array array_new(Arena *m, int rank, const int64_t *dim)
{
    Array a = {.rank = rank, .n = 1};
    for (int i = 0; i < rank; i++)
        a.n *= a.dim[i] = dim[i];
    a.at = NEWN(m, int, a.n + 1);
    return a;
}

static void unravel(const Array *a, int64_t k, int64_t *at)
{
    for (int i = a->rank; i-- > 0; k /= a->dim[i])
        at[i] = k % a->dim[i];
}

static int element(const Array *a, const int64_t *at)
{
    int64_t k = 0;
    for (int i = 0; i < a->rank; i++) {
        if (at[i] < 0 || at[i] >= a->dim[i])
            return 0;
        k = k * a->dim[i] + at[i];
    }
    return a->at[k];
}

static Node *move_node(Space *s, Op op, Arg arg, Node *x, int nextra, const int64_t *extra, int rank,
                       const int64_t *dim)
{
    Node *src[1 + 2 * INGOT_MAX_RANK] = {x}, *shape[INGOT_MAX_RANK];
    for (int i = 0; i < nextra; i++)
        src[1 + i] = idx(s->c, extra[i]);
    for (int i = 0; i < rank; i++)
        shape[i] = idx(s->c, dim[i]);
    return node_make(s->c, op, INGOT_F32, arg, 1 + nextra, src, rank, shape);
}

/* Cuts n into dims at random: factors, with some ones between. */
static int random_dims(int64_t n, int64_t *dim)
{
    int rank = 0;
    while (n > 1 && rank < 5) {
        int64_t f = 2 + pick((int)(n > 12 ? 12 : n));
        if (pick(6) == 0)
            dim[rank++] = 1;
        if (f > n || n % f != 0)
            f = pick(3) ? 1 : n;
        if (f > 1)
            dim[rank++] = f;
        n /= f;
    }
    if (n > 1)
        dim[rank++] = n;
    return rank;
}

static Node *random_move(Space *s, Node *x, const Array *a, Array *out)
{
    int64_t dim[INGOT_MAX_RANK], extra[2 * INGOT_MAX_RANK] = {0}, at[INGOT_MAX_RANK], from[INGOT_MAX_RANK];
    int rank = a->rank, kind = pick(6);
    Arg arg = {0};
    memcpy(dim, a->dim, sizeof dim);
    if (kind == 0) {
        rank = random_dims(a->n, dim);
        *out = array_new(s->m, rank, dim);
        memcpy(out->at, a->at, (size_t)a->n * sizeof *a->at);
        return move_node(s, OP_RESHAPE, arg, x, rank, dim, rank, dim);
    }
    if (kind == 1) {
        Perm *p = NEW(s->m, Perm);
        p->n = rank;
        for (int i = 0; i < rank; i++)
            p->axis[i] = (int8_t)i;
        for (int i = rank - 1; i > 0; i--) {
            int j = pick(i + 1);
            int8_t t = p->axis[i];
            p->axis[i] = p->axis[j];
            p->axis[j] = t;
        }
        for (int i = 0; i < rank; i++)
            dim[i] = a->dim[p->axis[i]];
        *out = array_new(s->m, rank, dim);
        for (int64_t k = 0; k < out->n; k++) {
            unravel(out, k, at);
            for (int i = 0; i < rank; i++)
                from[p->axis[i]] = at[i];
            out->at[k] = element(a, from);
        }
        arg.ptr = p;
        return move_node(s, OP_PERMUTE, arg, x, 0, NULL, rank, dim);
    }
    Op op = kind == 2 ? OP_PAD : kind == 3 ? OP_SHRINK : kind == 4 ? OP_FLIP : OP_EXPAND;
    int64_t mask = pick(1 << rank);
    for (int i = 0; i < rank; i++) {
        extra[2 * i] = op == OP_SHRINK ? pick((int)dim[i]) : pick(3) ? 0 : pick(3);
        if (op == OP_PAD) {
            extra[2 * i + 1] = pick(3) ? 0 : pick(3);
            dim[i] += extra[2 * i] + extra[2 * i + 1];
        }
        if (op == OP_SHRINK)
            dim[i] = extra[2 * i + 1] = 1 + pick((int)(dim[i] - extra[2 * i]));
        if (op == OP_EXPAND && dim[i] == 1)
            dim[i] = 1 + pick(3);
        if (op == OP_EXPAND)
            extra[i] = dim[i];
    }
    *out = array_new(s->m, rank, dim);
    for (int64_t k = 0; k < out->n; k++) {
        unravel(out, k, at);
        for (int i = 0; i < rank; i++)
            from[i] = op == OP_PAD      ? at[i] - extra[2 * i]
                      : op == OP_SHRINK ? at[i] + extra[2 * i]
                      : op == OP_FLIP   ? (mask >> i & 1 ? dim[i] - 1 - at[i] : at[i])
                      : a->dim[i] == 1  ? 0
                                        : at[i];
        out->at[k] = element(a, from);
    }
    arg.i = op == OP_FLIP ? mask : 0;
    int nextra = op == OP_FLIP ? 0 : op == OP_EXPAND ? rank : 2 * rank;
    return move_node(s, op, arg, x, nextra, extra, rank, dim);
}

static void random_movement(void **unused)
{
    (void)unused;
    static const int64_t sizes[] = {1, 2, 3, 4, 6, 8, 7, 12};
    for (int seed = 0; seed < 6000; seed++) {
        state = (uint64_t)seed * 49979687 + 11;
        Space s = space_new();
        int64_t dim[4];
        int rank = 1 + pick(3);
        for (int i = 0; i < rank; i++)
            dim[i] = sizes[pick(8)];
        Array a = array_new(s.m, rank, dim), source = a;
        for (int64_t k = 0; k < a.n; k++)
            a.at[k] = (int)k + 1;
        Node *shape[4], *x;
        for (int i = 0; i < rank; i++)
            shape[i] = idx(s.c, dim[i]);
        x = node_make(s.c, OP_INPUT, INGOT_F32, (Arg){0}, rank, shape, rank, shape);
        for (int i = 0, n = 1 + pick(6); i < n; i++) {
            Array next;
            Node *y = random_move(&s, x, &a, &next);
            if (next.n > 3000 || next.rank > 6)
                continue;
            a = next;
            x = y;
        }
        Node *at[INGOT_MAX_RANK], *from[INGOT_MAX_RANK], *valid = node_bool(s.c, true);
        for (int i = 0; i < a.rank; i++)
            at[i] = range(&s, idx(s.c, a.dim[i]));
        int n = x->rank;
        for (Node *y = x; y->op != OP_INPUT; y = y->src[0]) {
            Node *v;
            movement_coords(s.c, y, at, from, &v);
            valid = bool_and(s.c, valid, v);
            n = y->src[0]->rank;
            memcpy((void *)at, (void *)from, (size_t)n * sizeof *at);
        }
        from[n] = valid;
        memcpy((void *)from, (void *)at, (size_t)n * sizeof *at);
        Program p = program(&s, n + 1, from);
        int64_t k = 0;
        for (bool more = first(&s); more; more = advance(&s), k++) {
            run(&s, &p);
            int64_t point[INGOT_MAX_RANK];
            for (int i = 0; i < n; i++)
                point[i] = p.v[from[i]->id];
            if (p.v[valid->id] && element(&source, point) == 0)
                fail_msg("seed %d: a valid coordinate outside the source", seed);
            if ((p.v[valid->id] ? element(&source, point) : 0) != a.at[k])
                fail_msg("seed %d: the wrong element", seed);
        }
        space_free(&s);
    }
}

/* ---- results that must be reached ------------------------------------------------------------------ */

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
    Space s = space_new();
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
    space_free(&s);
}

static void divisions(void **unused)
{
    (void)unused;
    Space s = space_new();
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
    Space s = space_new();
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
    Space s = space_new();
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
    same(idx_eq(c, ADD(MUL(i, K(4)), j), K(5)), bool_and(c, idx_eq(c, i, K(1)), idx_eq(c, j, K(1))));
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

static void reshape_there_and_back(void **unused)
{
    (void)unused;
    Space s = space_new();
    Context *c = s.c;
    Node *n = var(&s, 1, 9);
    Node *dims[] = {n, K(2), K(3), K(8), K(1)}, *merged[] = {MUL(n, K(6)), K(2), K(4)};
    Node *src[6], *at[5], *mid[3], *back[5], *valid;
    Node *x = node_make(c, OP_INPUT, INGOT_F32, (Arg){0}, 5, dims, 5, dims);
    src[0] = x;
    memcpy((void *)(src + 1), (void *)merged, sizeof merged);
    Node *y = node_make(c, OP_RESHAPE, INGOT_F32, (Arg){0}, 4, src, 3, merged);
    src[0] = y;
    memcpy((void *)(src + 1), (void *)dims, sizeof dims);
    Node *z = node_make(c, OP_RESHAPE, INGOT_F32, (Arg){0}, 6, src, 5, dims);
    for (int i = 0; i < 5; i++)
        at[i] = range_new(c, i, dims[i]);
    movement_coords(c, z, at, mid, &valid);
    movement_coords(c, y, mid, back, &valid);
    for (int i = 0; i < 5; i++)
        same(back[i], at[i]);
    for (int i = 0; i < 3; i++)
        at[i] = range_new(c, i, merged[i]);
    movement_coords(c, y, at, back, &valid);
    movement_coords(c, z, back, mid, &valid);
    for (int i = 0; i < 3; i++)
        same(mid[i], at[i]);
    space_free(&s);
}

static void integers_behind_values(void **unused)
{
    (void)unused;
    Space s = space_new();
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
        cmocka_unit_test(constants_and_terms),
        cmocka_unit_test(divisions),
        cmocka_unit_test(symbolic_extents),
        cmocka_unit_test(conditions),
        cmocka_unit_test(reshape_there_and_back),
        cmocka_unit_test(integers_behind_values),
        cmocka_unit_test(random_expressions),
        cmocka_unit_test(rebuilding_is_stable),
        cmocka_unit_test(random_assumptions),
        cmocka_unit_test(random_substitutions),
        cmocka_unit_test(random_movement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
