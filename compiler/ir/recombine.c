/* recombine.c - puts quotients and remainders in a sum together again, and extremes.
 *
 *     x/d * d*q + x%d * q          ->  x*q
 *     x*q - x/d * d*q              ->  x%d * q                 of sizes; d constant
 *     y/a * q - (y + k*a)/(a*b) * b*q   ->  (y/a + k)%b * q - k*q   the same; k constant
 *     x/b%a * b*q + x%b * q        ->  x%(a*b) * q
 *     (x/b + e)%a * b*q + x%b * q  ->  (x + e*b)%(a*b) * q   b constant, e without divisions
 *     min(x, y)*q + max(x, y)*q    ->  x*q + y*q
 *     x*q - max(x + a, b)*q        ->  min(-a, x - b)*q       a, b constant; the same of min
 *
 * This is what makes a reshape there and back the identity, and by the last one the last 3 of n
 * elements are no more than 3.  Every rule leaves fewer terms, divisions or extremes, so repeating
 * until nothing changes ends. */
#include "symbolic.h"

/* p without terms i and j, plus scale * e. */
static bool exchange(Poly *p, int i, int j, Node *e, int64_t scale)
{
    Poly q = *p;
    Term a = p->t[i], b = p->t[j];
    if (!poly_add_term(&q, a.base, -a.coef) || !poly_add_term(&q, b.base, -b.coef) ||
        !poly_add(&q, e, scale))
        return false;
    *p = q;
    return true;
}

/* t = q * d * f for some factor f of t with the given op; returns f.  A symbolic d must be one
 * product: compared as such, since making d * f would ask for its recombination in turn. */
static Node *factor_of(Context *c, Term t, Node *d, int64_t q, Op op)
{
    Node *f[MONO_FACTORS];
    int64_t v;
    Poly p;
    if (!poly_of(&p, d) || (p.n ? p.n > 1 || p.k != 0 : p.k == 0))
        return NULL;
    if (__builtin_mul_overflow(p.n ? p.t[0].coef : p.k, q, &v) || v != t.coef)
        return NULL;
    if (p.n == 0)
        return t.base->op == (int)op ? t.base : NULL;
    int n = mono_factors(t.base, f);
    for (int i = 0; i < n; i++)
        if (f[i]->op == (int)op && mono_mul(c, p.t[0].base, f[i]) == t.base)
            return f[i];
    return NULL;
}

/* A sum of coordinates and sizes. */
static bool has_no_divisions(Node *e)
{
    Poly p;
    bool none = poly_of(&p, e);
    for (int i = 0; i < p.n && none; i++)
        none = p.t[i].base->op == OP_RANGE || p.t[i].base->op == OP_VAR;
    return none;
}

/* Term i is rem = x % d with factor q; term j may be its quotient, or the remainder of it. */
static bool join(Context *c, Poly *p, int i, int j)
{
    Node *rem = p->t[i].base, *x = rem->src[0], *d = rem->src[1];
    int64_t q = p->t[i].coef;
    Node *quot = factor_of(c, p->t[j], d, q, OP_FLOORDIV);
    if (quot && quot->src[1] == d && prove_positive(d, x)) {
        if (quot->src[0] == x)
            return exchange(p, i, j, x, q);
        if (idx_mod(c, quot->src[0], d) == rem)
            return exchange(p, i, j, quot->src[0], q);
    }
    Node *outer = factor_of(c, p->t[j], d, q, OP_MOD);
    if (!outer || d->lo < 1 || outer->src[1]->lo < 1)
        return false;
    Node *y = idx_div(c, x, d);
    if (outer->src[0] != y && idx_mod(c, y, outer->src[1]) != outer) {
        Node *e = idx_sub(c, outer->src[0], y);
        if (d->op != OP_CONST || !has_no_divisions(e))
            return false;
        x = idx_add(c, x, idx_mul(c, e, d));
    }
    Node *both = idx_mul(c, d, outer->src[1]);
    return !idx_is(both, INT64_MAX) && exchange(p, i, j, idx_mod(c, x, both), q);
}

/* Term i is -(x/d) * d*q, and the terms of x * q are there, too: what rounding a size down leaves
 * is less than d. Addresses, made of coordinates, have the quotient besides, so they keep it. */
static bool join_remainder(Context *c, Poly *p, int i)
{
    Node *quot = p->t[i].base, *x = quot->src[0];
    const int64_t coef = p->t[i].coef;
    int64_t d, v;
    Poly of_x, q = *p;
    if (x->last_range != INT32_MIN || !idx_fixed(quot->src[1], &d) || d < 1 || coef == INT64_MIN ||
        coef % d != 0 || !poly_of(&of_x, x) || of_x.n == 0)
        return false;
    for (int j = 0; j < of_x.n; j++) {
        int k = 0;
        while (k < p->n && p->t[k].base != of_x.t[j].base)
            k++;
        if (k == p->n || __builtin_mul_overflow(of_x.t[j].coef, -coef / d, &v) || v != p->t[k].coef)
            return false;
    }
    if (!poly_add_term(&q, quot, -coef) || !poly_add(&q, x, coef / d) ||
        !poly_add(&q, idx_mod(c, x, idx(c, d)), -coef / d))
        return false;
    *p = q;
    return true;
}

/* The same of a quotient: term i is -(y + k*a) / (a*b) * b*q, term j is y/a * q. */
static bool join_nested_remainder(Context *c, Poly *p, int i, int j)
{
    Node *outer = p->t[i].base, *inner = p->t[j].base;
    const int64_t q = p->t[j].coef;
    int64_t d, a, k, v;
    Poly x;
    if (inner->op != OP_FLOORDIV || outer->last_range != INT32_MIN ||
        !idx_fixed(outer->src[1], &d) || !idx_fixed(inner->src[1], &a) || a < 1 || d % a != 0 ||
        d <= a || __builtin_mul_overflow(-(d / a), q, &v) || v != p->t[i].coef ||
        !poly_of(&x, outer->src[0]) || !poly_add(&x, inner->src[0], -1) || x.n != 0 || x.k % a != 0)
        return false;
    k = x.k / a;
    Node *rest = idx_mod(c, idx_add(c, inner, idx(c, k)), idx(c, d / a));
    return exchange(p, i, j, idx_sub(c, rest, idx(c, k)), q);
}

/* Terms i and j are the least and the greatest of the same two. */
static bool join_extremes(Context *c, Poly *p, int i, int j)
{
    Node *least = p->t[i].base, *most = p->t[j].base;
    return most->op == OP_MAX && p->t[i].coef == p->t[j].coef && least->src[0] == most->src[0] &&
           least->src[1] == most->src[1] &&
           exchange(p, i, j, idx_add(c, least->src[0], least->src[1]), p->t[i].coef);
}

/* Term i is an extreme of x and a number, term j is x. */
static bool join_clamped(Context *c, Poly *p, int i, int j)
{
    Node *e = p->t[i].base, *x = p->t[j].base;
    const int64_t q = p->t[j].coef;
    int64_t b;
    Poly a;
    if (p->t[i].coef != -q || !idx_fixed(e->src[1], &b) || !poly_of(&a, e->src[0]) || a.n != 1 ||
        a.t[0].base != x || a.t[0].coef != 1 || a.k == INT64_MIN || b == INT64_MIN)
        return false;
    Node *rest = idx_sub(c, x, idx(c, b)), *most = idx(c, -a.k);
    return exchange(p, i, j, e->op == OP_MAX ? idx_min(c, rest, most) : idx_max(c, rest, most), q);
}

bool poly_recombine(Context *c, Poly *p)
{
    /* The checks divide, and dividing adds: what is nested deeper than this stays apart. */
    static _Thread_local int depth;
    bool changed = false;
    if (p->n < 2 || depth >= 6)
        return false;
    depth++;
    for (int i = 0; i < p->n && !changed; i++)
        for (int j = 0; j < p->n && !changed; j++) {
            const int op = p->t[i].base->op;
            changed = (op == OP_MOD && j != i && join(c, p, i, j)) ||
                      (op == OP_FLOORDIV &&
                       (j == i ? join_remainder(c, p, i) : join_nested_remainder(c, p, i, j))) ||
                      (op == OP_MIN && join_extremes(c, p, i, j)) ||
                      ((op == OP_MIN || op == OP_MAX) && j != i && join_clamped(c, p, i, j));
        }
    depth--;
    return changed;
}
