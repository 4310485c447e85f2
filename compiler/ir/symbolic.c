/* symbolic.c - smart constructors of integer expressions: sums, products, min and max.
 *
 * Every INDEX expression is simplified while it is made, so that equal expressions are nearly
 * always equal pointers.  The canonical form is a polynomial: a left-nested sum of coef * product
 * with the products in node_order() and the constant last; a product is left-nested with its
 * factors in node_order() and its coefficient last.  See symbolic.h for the view as a Poly.
 *
 *     (i + 3) * 4 - i   ->   i * 3 + 12
 *     i / 4 * 8 + i % 4 * 2   ->   i * 2
 *
 * Requires sources of dtype INDEX in the same context.  Divisions are in divmod.c, conditions in
 * condition.c, bounds in interval.c, proofs about symbolic extents in prove.c. */
#include <string.h>

#include "symbolic.h"

Node *idx_number(Context *c, int64_t v)
{
    Node *n = node_make(c, OP_CONST, INGOT_INDEX, (Arg){.i = v}, 0, NULL, 0, NULL);
    if (v >= 0 && v < FEW_IDX)
        c->few[v] = n;
    return n;
}

bool idx_value(const Node *n, int64_t *value)
{
    int64_t v;
    if (n->dtype != INGOT_INDEX || !idx_fixed(n, &v))
        return false;
    if (value)
        *value = v;
    return true;
}

Node *idx_make(Context *c, Op op, Node *a, Node *b)
{
    Node *n = node_make(c, op, INGOT_INDEX, (Arg){0}, 2, (Node *[]){a, b}, 0, NULL);
    int64_t v;
    return idx_fixed(n, &v) ? idx(c, v) : n;
}

/* A loop counter over 0..extent-1.  An extent of 1 leaves no loop: the counter is 0. */
Node *range_new(Context *c, int axis, Node *extent)
{
    if (idx_is(extent, 1))
        return idx(c, 0);
    return node_make(c, OP_RANGE, INGOT_INDEX, (Arg){.i = axis}, 1, &extent, 0, NULL);
}

/* ---- products ---------------------------------------------------------------------------- */

int mono_factors(Node *base, Node **factor)
{
    Node *stack[MONO_FACTORS];
    int nstack = 0, n = 0;
    stack[nstack++] = base;
    while (nstack) {
        Node *e = stack[--nstack];
        if (e->op == OP_MUL) {
            if (nstack + 2 > MONO_FACTORS)
                return -1;
            stack[nstack++] = e->src[0];
            stack[nstack++] = e->src[1];
            continue;
        }
        if (n == MONO_FACTORS)
            return -1;
        int i = n++;
        for (; i > 0 && node_order(factor[i - 1], e) > 0; i--)
            factor[i] = factor[i - 1];
        factor[i] = e;
    }
    return n;
}

static Node *mono_node(Context *c, Node *const *factor, int n)
{
    Node *m = n ? factor[0] : NULL;
    for (int i = 1; i < n; i++)
        m = node_make(c, OP_MUL, INGOT_INDEX, (Arg){0}, 2, (Node *[]){m, factor[i]}, 0, NULL);
    return m;
}

Node *mono_mul(Context *c, Node *a, Node *b)
{
    if (!a || !b)
        return a ? a : b;
    Node *f[MONO_FACTORS * 2], *g[MONO_FACTORS];
    int n = mono_factors(a, f), m = mono_factors(b, g);
    if (n < 0 || m < 0 || n + m > MONO_FACTORS)
        return NULL;
    for (int j = 0; j < m; j++) {
        int i = n++;
        for (; i > 0 && node_order(f[i - 1], g[j]) > 0; i--)
            f[i] = f[i - 1];
        f[i] = g[j];
    }
    return mono_node(c, f, n);
}

bool mono_divide(Context *c, Node *base, Node *by, Node **out)
{
    Node *f[MONO_FACTORS], *g[MONO_FACTORS], *rest[MONO_FACTORS];
    int n = mono_factors(base, f), m = mono_factors(by, g), nrest = 0, j = 0;
    if (n < 0 || m < 0 || m > n)
        return false;
    for (int i = 0; i < n; i++)
        if (j < m && f[i] == g[j])
            j++;
        else
            rest[nrest++] = f[i];
    if (j < m)
        return false;
    *out = mono_node(c, rest, nrest);
    return true;
}

/* ---- sums -------------------------------------------------------------------------------- */

bool poly_add_term(Poly *p, Node *base, int64_t coef)
{
    int i = p->n;
    while (i > 0 && node_order(p->t[i - 1].base, base) > 0)
        i--;
    if (i > 0 && p->t[i - 1].base == base) {
        Term *t = &p->t[i - 1];
        if (__builtin_add_overflow(t->coef, coef, &t->coef) || t->coef == INT64_MIN)
            return false;
        if (t->coef == 0) {
            for (; i < p->n; i++)
                p->t[i - 1] = p->t[i];
            p->n--;
        }
        return true;
    }
    if (coef == 0)
        return true;
    if (p->n == POLY_TERMS || coef == INT64_MIN)
        return false;
    for (int j = p->n++; j > i; j--)
        p->t[j] = p->t[j - 1];
    p->t[i] = (Term){base, coef};
    return true;
}

bool poly_add(Poly *p, Node *e, int64_t scale)
{
    Term stack[POLY_TERMS];
    int n = 0;
    stack[n++] = (Term){e, scale};
    while (n) {
        Term t = stack[--n];
        int64_t v;
        if (idx_fixed(t.base, &v)) {
            if (__builtin_mul_overflow(v, t.coef, &v) || __builtin_add_overflow(p->k, v, &p->k))
                return false;
            continue;
        }
        Node *const *s = t.base->src;
        bool sum = t.base->op == OP_ADD || t.base->op == OP_SUB;
        if (sum && n + 2 <= POLY_TERMS) {
            if (t.coef == INT64_MIN)
                return false;
            stack[n++] = (Term){s[1], t.base->op == OP_SUB ? -t.coef : t.coef};
            stack[n++] = (Term){s[0], t.coef};
            continue;
        }
        if (t.base->op == OP_MUL && idx_fixed(s[1], &v)) {
            if (__builtin_mul_overflow(v, t.coef, &v))
                return false;
            stack[n++] = (Term){s[0], v};
            continue;
        }
        if (!poly_add_term(p, t.base, t.coef))
            return false;
    }
    return true;
}

bool poly_of(Poly *p, Node *e)
{
    p->n = 0;
    p->k = 0;
    return poly_add(p, e, 1);
}

bool poly_add_poly(Poly *p, const Poly *q, int64_t scale)
{
    int64_t v;
    if (__builtin_mul_overflow(q->k, scale, &v) || __builtin_add_overflow(p->k, v, &p->k))
        return false;
    for (int i = 0; i < q->n; i++)
        if (__builtin_mul_overflow(q->t[i].coef, scale, &v) || !poly_add_term(p, q->t[i].base, v))
            return false;
    return true;
}

void poly_bounds(const Poly *p, int64_t *lo, int64_t *hi)
{
    *lo = *hi = p->k;
    for (int i = 0; i < p->n; i++) {
        Node *b = p->t[i].base;
        int64_t x = bound_mul(b->lo, p->t[i].coef), y = bound_mul(b->hi, p->t[i].coef);
        *lo = lo_add(*lo, x < y ? x : y);
        *hi = hi_add(*hi, x < y ? y : x);
    }
}

static Node *poly_chain(Context *c, const Poly *p)
{
    Node *sum = NULL;
    for (int i = 0; i < p->n; i++) {
        Node *t = p->t[i].base;
        if (p->t[i].coef != 1)
            t = node_make(c, OP_MUL, INGOT_INDEX, (Arg){0}, 2, (Node *[]){t, idx(c, p->t[i].coef)},
                          0, NULL);
        sum = sum ? node_make(c, OP_ADD, INGOT_INDEX, (Arg){0}, 2, (Node *[]){sum, t}, 0, NULL) : t;
    }
    if (!sum || p->k != 0) {
        Node *k = idx(c, p->k);
        sum = sum ? node_make(c, OP_ADD, INGOT_INDEX, (Arg){0}, 2, (Node *[]){sum, k}, 0, NULL) : k;
    }
    int64_t v;
    return idx_fixed(sum, &v) ? idx(c, v) : sum;
}

Node *poly_node(Context *c, const Poly *p)
{
    Poly q; /* of which most terms are empty */
    q.n = p->n;
    q.k = p->k;
    memcpy(q.t, p->t, (size_t)p->n * sizeof *q.t);
    while (poly_recombine(c, &q))
        continue;
    return poly_chain(c, &q);
}

/* A sum that does not fit a Poly: one opaque node, constants saturate. */
static Node *sum_opaque(Context *c, Node *a, Node *b)
{
    int64_t x, y;
    if (idx_fixed(a, &x) && idx_fixed(b, &y))
        return idx(c, sat_add(x, y));
    bool swap = a->op == OP_CONST || (b->op != OP_CONST && node_order(a, b) > 0);
    return idx_make(c, OP_ADD, swap ? b : a, swap ? a : b);
}

Node *idx_add(Context *c, Node *a, Node *b)
{
    if (idx_is(b, 0))
        return a;
    if (idx_is(a, 0))
        return b;
    int64_t x, y;
    if (idx_fixed(a, &x) && idx_fixed(b, &y))
        return idx(c, sat_add(x, y));
    Poly p;
    if (!poly_of(&p, a) || !poly_add(&p, b, 1))
        return sum_opaque(c, a, b);
    return poly_node(c, &p);
}

Node *idx_sub(Context *c, Node *a, Node *b)
{
    if (a == b)
        return idx(c, 0);
    if (idx_is(b, 0))
        return a;
    int64_t x, y, difference;
    if (idx_fixed(a, &x) && idx_fixed(b, &y) && !__builtin_sub_overflow(x, y, &difference))
        return idx(c, difference);
    Poly p;
    if (!poly_of(&p, a) || !poly_add(&p, b, -1))
        return sum_opaque(c, a, idx_mul(c, b, idx(c, -1)));
    return poly_node(c, &p);
}

static Node *product_opaque(Context *c, Node *a, Node *b)
{
    int64_t x, y;
    if (idx_fixed(a, &x) && idx_fixed(b, &y))
        return idx(c, sat_mul(x, y));
    bool swap = a->op == OP_CONST || (b->op != OP_CONST && node_order(a, b) > 0);
    return idx_make(c, OP_MUL, swap ? b : a, swap ? a : b);
}

Node *idx_mul(Context *c, Node *a, Node *b)
{
    if (idx_is(a, 0) || idx_is(b, 0))
        return idx(c, 0);
    if (idx_is(b, 1))
        return a;
    if (idx_is(a, 1))
        return b;
    int64_t x, y;
    if (idx_fixed(a, &x) && idx_fixed(b, &y))
        return idx(c, sat_mul(x, y));
    Poly p, q, r = {0};
    if (!poly_of(&p, a) || !poly_of(&q, b) || (p.n + 1) * (q.n + 1) > POLY_TERMS)
        return product_opaque(c, a, b);
    /* Distribute, so that (i * N + j) * M shows its strides. */
    if (!poly_add_poly(&r, &p, q.k))
        return product_opaque(c, a, b);
    for (int j = 0; j < q.n; j++) {
        int64_t v;
        if (__builtin_mul_overflow(p.k, q.t[j].coef, &v) || !poly_add_term(&r, q.t[j].base, v))
            return product_opaque(c, a, b);
        for (int i = 0; i < p.n; i++) {
            Node *m = mono_mul(c, p.t[i].base, q.t[j].base);
            if (!m || __builtin_mul_overflow(p.t[i].coef, q.t[j].coef, &v) ||
                !poly_add_term(&r, m, v))
                return product_opaque(c, a, b);
        }
    }
    return poly_node(c, &r);
}

/* The same for run-time sizes: each step is a node. */
static Node *flat_stepwise(Context *c, int n, Node *const *dims, Node *const *at)
{
    Node *flat = idx(c, 0);
    for (int i = 0; i < n; i++)
        flat = idx_add(c, idx_mul(c, flat, dims[i]), at[i]);
    return flat;
}

Node *idx_flat(Context *c, int n, Node *const *dims, Node *const *at)
{
    Poly p = {.n = 0};
    int64_t stride = 1, size;
    for (int i = n; i-- > 0;) {
        if (!poly_add(&p, at[i], stride))
            return flat_stepwise(c, n, dims, at);
        if (i > 0 && (!idx_fixed(dims[i], &size) || __builtin_mul_overflow(stride, size, &stride)))
            return flat_stepwise(c, n, dims, at);
    }
    return poly_node(c, &p);
}

bool idx_provably_equal(Context *c, Node *a, Node *b)
{
    return a == b || idx_is(idx_sub(c, a, b), 0);
}

/* ---- min and max ------------------------------------------------------------------------- */

/* min(min(x, y), y) -> min(x, y);  min(x, max(x, y)) -> x */
static bool extreme_contains(Node *e, Node *part, Op op)
{
    while (e->op == (int)op) {
        if (e->src[1] == part)
            return true;
        e = e->src[0];
    }
    return e == part;
}

static Node *extreme(Context *c, Node *a, Node *b, Op op)
{
    Op other = op == OP_MIN ? OP_MAX : OP_MIN;
    Node *low = op == OP_MIN ? a : b, *high = op == OP_MIN ? b : a;
    if (a == b || prove_le(c, low, high))
        return a;
    if (prove_le(c, high, low))
        return b;
    if (extreme_contains(a, b, op) || extreme_contains(b, a, other))
        return a;
    if (extreme_contains(b, a, op) || extreme_contains(a, b, other))
        return b;
    int64_t x, y;
    /* min(min(e, x), y) -> min(e, min(x, y)): constants meet, and stay last. */
    if (idx_fixed(a, &x)) {
        Node *t = a;
        a = b;
        b = t;
    }
    if (idx_fixed(b, &y) && a->op == (int)op && idx_fixed(a->src[1], &x))
        return extreme(c, a->src[0], idx(c, op == OP_MIN ? (x < y ? x : y) : (x > y ? x : y)), op);
    if (!idx_fixed(b, &y)) {
        if (a->op == (int)op && idx_fixed(a->src[1], &x))
            return extreme(c, extreme(c, a->src[0], b, op), a->src[1], op);
        if (b->op == (int)op && idx_fixed(b->src[1], &x))
            return extreme(c, extreme(c, a, b->src[0], op), b->src[1], op);
        if (node_order(a, b) > 0) {
            Node *t = a;
            a = b;
            b = t;
        }
    }
    return idx_make(c, op, a, b);
}

Node *idx_min(Context *c, Node *a, Node *b)
{
    return extreme(c, a, b, OP_MIN);
}

Node *idx_max(Context *c, Node *a, Node *b)
{
    return extreme(c, a, b, OP_MAX);
}
