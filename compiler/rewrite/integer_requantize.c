/* integer_requantize.c - on a core that computes floats by functions, what a sum of integers
 * becomes is computed in integers.
 *
 *     cast<i8>(min(max(round((float)s * m + b) + z, lo), hi))
 *         ->  cast<i8>(min(max(shrr(mulhi(s 2^k + B, M), n), lo), hi))
 *
 *     M = m 2^(n - k + 31), of all channels together as large as i32 has it
 *     B = (b + z) / m 2^k
 *
 * with k as large as the bounds of s leave room for.  260 instructions of soft floats are 12 then.
 * The result is that of the real numbers m and b, halves away from zero, but for what M and B are
 * off: at most one step beside the floats' (docs/numerics.md). */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "eval.h"
#include "rewrite.h"

typedef struct {
    Rewrite *r;
    double zero;
    bool inside; /* below the rounding */
} Requantize;

enum { SUMMANDS = 4 };

/* (s + sum of a) * m + b, all as large as it is; b may be NULL. */
typedef struct {
    Node *s, *a[SUMMANDS], *m, *b;
    int na;
} Scaled;

/* A sum of integers, of which what is constant (a bias, what a zero point adds) is apart. */
static void take_constants(Context *c, Node *sum, int depth, Scaled *to)
{
    Node *inner = sum;
    while (op_arranges(inner->op))
        inner = inner->src[0];
    to->s = sum;
    if (inner->op != OP_ADD || depth > DEPTH_SOME)
        return;
    if (inner != sum) {
        take_constants(c, sum->src[0], depth + 1, to);
        to->s = to->na ? moved(c, sum, to->s) : sum;
        for (int i = 0; i < to->na; i++)
            to->a[i] = moved(c, sum, to->a[i]);
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (!is_constant(sum->src[i], 0))
            continue;
        take_constants(c, sum->src[1 - i], depth + 1, to);
        if (to->na < SUMMANDS)
            to->a[to->na++] = sum->src[i];
        else
            to->s = ingot_add(c, to->s, sum->src[i]);
        return;
    }
}

static bool scaled_of(Context *c, Node *n, int depth, Scaled *to)
{
    if (depth > DEPTH_SOME || n->dtype != INGOT_F32)
        return false;
    if (op_arranges(n->op)) {
        if (!scaled_of(c, n->src[0], depth + 1, to))
            return false;
        to->s = moved(c, n, to->s);
        for (int i = 0; i < to->na; i++)
            to->a[i] = moved(c, n, to->a[i]);
        to->m = moved(c, n, to->m);
        to->b = to->b ? moved(c, n, to->b) : NULL;
        return true;
    }
    for (int i = 0; i < 2 && (n->op == OP_ADD || n->op == OP_MUL); i++) {
        Node *x = n->src[1 - i], *k = n->src[i];
        if (!is_constant(k, 0))
            continue;
        if (n->op == OP_MUL && x->op == OP_CAST && x->src[0]->dtype == INGOT_I32) {
            *to = (Scaled){.m = k};
            take_constants(c, x->src[0], 0, to);
            return true;
        }
        if (n->op == OP_ADD && scaled_of(c, x, depth + 1, to) && !to->b) {
            to->b = k;
            return true;
        }
    }
    return false;
}

double largest_integer(Node *n, int depth)
{
    double lo, hi;
    if (depth > DEPTH_SOME)
        return INFINITY;
    if (is_move(n))
        return largest_integer(n->src[0], depth + 1);
    if (n->op == OP_ADD || n->op == OP_SUB)
        return largest_integer(n->src[0], depth + 1) + largest_integer(n->src[1], depth + 1);
    if (n->op == OP_REDUCE && reduce_monoid(n) == INGOT_REDUCE_ADD) {
        double terms = 1;
        for (int i = 0; i < n->rank; i++)
            terms *= reduce_axes(n) >> i & 1 ? (double)n->src[0]->shape[i]->hi : 1;
        return terms * largest_integer(n->src[0], depth + 1);
    }
    if (n->op == OP_MUL)
        return largest_integer(n->src[0], depth + 1) * largest_integer(n->src[1], depth + 1);
    return value_range(n, &lo, &hi) ? fmax(-lo, hi) : INFINITY;
}

const double *constant_numbers(Rewrite *r, Node *k, int64_t *dims, int64_t *n, double *most)
{
    *n = 1;
    *most = 0;
    if (!ingot_is_const(k)) /* its shape, or a coordinate in it, is the run's */
        return NULL;
    Interp *ip = interp_new(r->c);
    const double *from = interp_eval(ip, k, dims);
    double *to = NULL;
    for (int i = 0; from && i < k->rank; i++)
        *n *= dims[i];
    if (from) {
        to = NEWN(r->a, double, *n);
        memcpy(to, from, (size_t)*n * sizeof *to);
    }
    interp_free(ip);
    for (int64_t i = 0; to && i < *n; i++)
        *most = isfinite(to[i]) ? fmax(*most, fabs(to[i])) : INFINITY;
    return to;
}

/* i32 of these numbers times 2^by, to the nearest. */
static Node *integers(Rewrite *r, const double *from, int rank, const int64_t *dims, int64_t n,
                      int by)
{
    int32_t *to = NEWN(r->c->arena, int32_t, n);
    for (int64_t i = 0; i < n; i++)
        to[i] = (int32_t)fmax(fmin(rint(ldexp(from[i], by)), INT32_MAX), INT32_MIN);
    return ingot_data(r->c, NULL, INGOT_I32, rank, dims, to);
}

/* round(n) + zero, in integers; NULL: it is no such value. */
static Node *rounded(const Requantize *q, Node *n)
{
    enum {
        LEAST_BITS = 4,
        MOST_BITS = 8,
        BITS = CHAR_BIT * sizeof(int32_t) - 1
    }; /* below the ones of s */
    Rewrite *r = q->r;
    Context *c = r->c;
    Scaled y;
    if (!scaled_of(c, n, 0, &y))
        return NULL;
    Node *m = compact_form(r, y.m), *b = y.b ? compact_form(r, y.b) : NULL;
    if (!m || (y.b && !b))
        return NULL;
    m = ingot_cast(c, m, INGOT_F64);
    Node *offset = node_const_f(c, INGOT_F64, q->zero);
    offset = ingot_div(c, b ? ingot_add(c, ingot_cast(c, b, INGOT_F64), offset) : offset, m);
    for (int i = 0; i < y.na; i++) {
        Node *a = compact_form(r, y.a[i]);
        if (!a)
            return NULL;
        offset = ingot_add(c, offset, ingot_cast(c, a, INGOT_F64));
    }
    int64_t mdims[INGOT_MAX_RANK], bdims[INGOT_MAX_RANK], nm, nb;
    double most, far;
    const double *factor = constant_numbers(r, m, mdims, &nm, &most),
                 *begin = constant_numbers(r, offset, bdims, &nb, &far);
    const double reach = largest_integer(y.s, 0) + far;
    int k, e;
    if (!factor || !begin || !(most > 0) || !(reach < INT32_MAX))
        return NULL;
    (void)frexp(reach + 1, &k); /* below 2^k */
    k = BITS - k < MOST_BITS ? BITS - k : MOST_BITS;
    (void)frexp(most, &e);
    const int n_bits = k - e; /* the largest factor is below 2^31 */
    if (k < LEAST_BITS || n_bits < MOST_BITS || n_bits >= BITS)
        return NULL;
    Node *s = ingot_mul(c, y.s, node_const_i(c, INGOT_I32, (int64_t)1 << k));
    s = ingot_add(c, s, integers(r, begin, offset->rank, bdims, nb, k));
    s = ingot_mulhi(c, s, integers(r, factor, m->rank, mdims, nm, n_bits - k + BITS));
    return ingot_shrr(c, s, node_const_i(c, INGOT_I32, n_bits));
}

/* The same of what is clamped, and moved by a whole number, behind the rounding. */
static Node *in_integers(Requantize *q, Node *n, int depth)
{
    Context *c = q->r->c;
    if (depth > DEPTH_SOME || n->dtype != INGOT_F32)
        return NULL;
    if (n->op == OP_ROUND && !q->inside) {
        q->inside = true;
        return in_integers(q, n->src[0], depth + 1);
    }
    Node *by = n->op == OP_MAX || n->op == OP_MIN || (n->op == OP_ADD && !q->inside)
                   ? uniform(n->src[1])
                   : NULL;
    if (!by)
        return q->inside ? rounded(q, n) : NULL;
    const double number = node_float(by);
    if (!(fabs(number) < INT16_MAX) || (!q->inside && number != rint(number)))
        return NULL;
    if (n->op == OP_ADD) {
        q->zero += number;
        return in_integers(q, n->src[0], depth + 1);
    }
    const bool clamps_sum = q->inside;
    Node *x = in_integers(q, n->src[0], depth + 1);
    Node *limit = node_const_i(c, INGOT_I32, (int64_t)(rint(number) + (clamps_sum ? q->zero : 0)));
    return !x ? NULL : n->op == OP_MAX ? ingot_max(c, x, limit) : ingot_min(c, x, limit);
}

Node *integer_requantize(Rewrite *r, Node *n)
{
    Requantize q = {.r = r};
    if (!r->soft_floats || !r->settled || (n->dtype != INGOT_I8 && n->dtype != INGOT_U8))
        return NULL;
    Node *y = in_integers(&q, n->src[0], 0);
    return y && !ingot_is_poison(y) ? ingot_cast(r->c, y, (ingot_dtype)n->dtype) : NULL;
}
