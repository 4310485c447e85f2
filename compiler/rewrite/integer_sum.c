/* integer_sum.c - scales leave sums.
 *
 *     sum of (float)x * s * (float)w * t  ->  (float)(sum of x * w) * s * t
 *
 * where x and w are integers (of a quantised network: a number less its zero point), or f8 where a
 * matrix unit multiplies that, and the scales do not vary along the sum.  Integers are then summed
 * exactly, f8 in f32, and what lies in memory can be as narrow as it was in the file.  Where
 * something else varies along the sum (weights alone are integers), or i32 is too narrow for it,
 * the scales leave all the same and the sum stays one of floats.
 *
 * A product is taken apart into factors, down through what only moves elements. */
#include <math.h>
#include <string.h>

#include "rewrite.h"

enum { MAX_FACTORS = 8 };

/* Integers have the shape of the sum's operand.  What is not is compact: along each axis it has the
 * size of the operand's, or 1 if it does not vary there. */
typedef struct {
    Node *node;
    bool integer;
} Factor;
typedef struct {
    Rewrite *r;
    Factor factor[MAX_FACTORS];
    int n;
    bool floats; /* some of what counts as integers is f8 */
} FactorList;

/* ---- integers that are held as floats ------------------------------------------------------ */

/* (float)x for an x of f8 that matrix units multiply */
static bool is_f8(const Rewrite *r, const Node *n)
{
    return r->f8 && n->op == OP_CAST && n->dtype == INGOT_F32 &&
           (n->src[0]->dtype == INGOT_F8E4M3FN || n->src[0]->dtype == INGOT_F8E5M2);
}

/* (float)x for an x of few bits */
static bool is_small_integer(const Rewrite *r, Node *n)
{
    double lo, hi;
    if (is_f8(r, n))
        return true;
    return n->op == OP_CAST && n->dtype == INGOT_F32 && dtype_is_int(n->src[0]->dtype) &&
           value_range(n->src[0], &lo, &hi) && lo >= -UINT16_MAX - 1 && hi <= UINT16_MAX + 1;
}

/* (half)(x * s) of f8, which may have been moved: models of f16 round what they dequantise. Gives
 * x * s, or x as f32. */
static Node *below_half(const Rewrite *r, Node *n)
{
    if (is_move(n)) {
        Node *x = below_half(r, n->src[0]);
        return x ? moved(r->c, n, x) : NULL;
    }
    Node *x = n->op == OP_CAST ? n->src[0] : NULL;
    if (x && (x->dtype == INGOT_F8E4M3FN || x->dtype == INGOT_F8E5M2))
        return ingot_cast(r->c, x, INGOT_F32);
    const bool scaled = x && x->dtype == INGOT_F32 && x->op == OP_MUL;
    return scaled && (is_f8(r, x->src[0]) || is_f8(r, x->src[1])) ? x : NULL;
}

static Node *dequantised(const Rewrite *r, Node *n)
{
    const bool wide = r->f8 && n->op == OP_CAST && n->dtype == INGOT_F32 &&
                      (n->src[0]->dtype == INGOT_F16 || n->src[0]->dtype == INGOT_BF16);
    return wide ? below_half(r, n->src[0]) : NULL;
}

static bool has_integer(const Rewrite *r, Node *n, int depth)
{
    if (depth > DEPTH_ANY || n->dtype != INGOT_F32)
        return false;
    if (n->op == OP_MUL)
        return has_integer(r, n->src[0], depth + 1) || has_integer(r, n->src[1], depth + 1);
    return is_small_integer(r, n) || dequantised(r, n) ||
           (is_move(n) && has_integer(r, n->src[0], depth + 1));
}

/* ---- moving factors -------------------------------------------------------------------------- */

Node *moved(Context *c, Node *move, Node *x)
{
    Node **src = NEWN(c->arena, Node *, move->nsrc);
    memcpy((void *)src, move->src, move->nsrc * sizeof *src);
    src[0] = x;
    return node_make(c, (Op)move->op, (ingot_dtype)x->dtype, move->arg, (int)move->nsrc, src,
                     move->rank, move->shape);
}

static bool varies(Node *compact, int axis)
{
    return !idx_is(compact->shape[axis], 1);
}

static bool is_one_number(Node *compact)
{
    for (int i = 0; i < compact->rank; i++)
        if (varies(compact, i))
            return false;
    return true;
}

static bool size_before(Node *n, int axis, int64_t *size)
{
    int64_t d;
    *size = 1;
    for (int i = 0; i < axis; i++) {
        if (!idx_value(n->shape[i], &d))
            return false;
        *size *= d;
    }
    return true;
}

/* Which axes of the reshaped tensor are this axis of its source: one or, where it is taken apart
 * (groups), n of them?  The first; -1: none. */
static int reshaped_axes(Node *move, int axis, int *n)
{
    int64_t before, here, size, part;
    Node *x = move->src[0];
    int i = 0;
    *n = 1;
    if (!size_before(x, axis, &before))
        return -1;
    while (i < move->rank &&
           !(size_before(move, i, &here) && here == before && !idx_is(move->shape[i], 1)))
        i++;
    if (i == move->rank)
        return -1;
    if (move->shape[i] == x->shape[axis])
        return i;
    if (!idx_value(x->shape[axis], &size) || size < 1)
        return -1;
    for (*n = 0; size > 1; ++*n) {
        if (i + *n == move->rank || !idx_value(move->shape[i + *n], &part) || size % part)
            return -1;
        size /= part;
    }
    return i;
}

/* And of the gathered one: the one whose coordinate it is read with. */
static int gathered_axis(Node *move, int axis)
{
    Node *index = move->src[1 + axis];
    bool along = index->op == OP_IOTA && move->shape[index->arg.i] == move->src[0]->shape[axis];
    return along ? (int)index->arg.i : -1;
}

/* The compact form of move(x) for a compact x, or NULL. */
static Node *moved_compact(Context *c, Node *move, Node *x)
{
    Node *dims[INGOT_MAX_RANK];
    int last = -1;
    for (int i = 0; i < move->rank; i++)
        dims[i] = idx(c, 1);
    switch (move->op) {
    case OP_EXPAND: return x;
    case OP_PERMUTE: {
        int perm[INGOT_MAX_RANK];
        for (int i = 0; i < move->rank; i++)
            perm[i] = ((const Perm *)move->arg.ptr)->axis[i];
        return ingot_permute(c, x, perm);
    }
    case OP_PAD:
        for (int i = 0; i < x->rank; i++)
            if (varies(x, i) &&
                (!idx_is(move->src[1 + 2 * i], 0) || !idx_is(move->src[2 + 2 * i], 0)))
                return NULL;
        return x;
    case OP_RESHAPE:
    case OP_GATHER:
        for (int i = 0; i < x->rank; i++) {
            if (!varies(x, i))
                continue;
            int n = 1,
                to = move->op == OP_RESHAPE ? reshaped_axes(move, i, &n) : gathered_axis(move, i);
            if (to <= last) /* not there, or in another order */
                return NULL;
            for (int k = to; k < to + n; k++)
                dims[k] = n > 1 ? move->shape[k] : x->shape[i];
            last = to + n - 1;
        }
        return ingot_reshape(c, x, move->rank, dims);
    default: return is_one_number(x) ? ingot_reshape(c, x, move->rank, dims) : NULL;
    }
}

Node *compact_form(Rewrite *r, Node *n)
{
    if (!is_move(n))
        return n;
    Node *x = compact_form(r, n->src[0]);
    return x ? moved_compact(r->c, n, x) : NULL;
}

/* ---- taking a product apart ------------------------------------------------------------------ */

static bool add_factor(FactorList *p, Node *n, bool integer)
{
    if (p->n == MAX_FACTORS)
        return false;
    p->factor[p->n++] = (Factor){n, integer};
    return true;
}

static bool take_apart(FactorList *p, Node *n)
{
    Context *c = p->r->c;
    if (!has_integer(p->r, n, 0)) {
        while (n->op == OP_EXPAND)
            n = n->src[0];
        return add_factor(p, n, false);
    }
    if (n->op == OP_CAST) {
        Node *whole = dequantised(p->r, n);
        const bool f8 = is_f8(p->r, n);
        p->floats |= f8;
        return whole ? take_apart(p, whole)
                     : add_factor(p, f8 ? n : ingot_cast(c, n->src[0], INGOT_I32), true);
    }
    if (n->op == OP_MUL)
        return take_apart(p, n->src[0]) && take_apart(p, n->src[1]);
    int first = p->n;
    if (!take_apart(p, n->src[0]))
        return false;
    for (int i = first; i < p->n; i++) {
        Factor *f = &p->factor[i];
        f->node = f->integer ? moved(c, n, f->node) : moved_compact(c, n, f->node);
        if (!f->node)
            return false;
    }
    return true;
}

/* ---- the sum --------------------------------------------------------------------------------- */

static Node *times(Context *c, Node *a, Node *b)
{
    return a ? ingot_mul(c, a, b) : b;
}

/* Is no sum of this many products outside of i32? */
static bool fits_i32(const FactorList *p, double terms)
{
    double most = terms;
    for (int i = 0; i < p->n; i++) {
        double lo, hi;
        if (p->factor[i].integer && value_range(p->factor[i].node, &lo, &hi))
            most *= fmax(-lo, hi);
    }
    return most <= INT32_MAX;
}

/* Is each element of f8 multiplied once, as weights are by a vector? */
static bool is_read_once(const FactorList *p, Node *body)
{
    int64_t all, own;
    bool once = size_before(body, body->rank, &all);
    for (int i = 0; i < p->n && once; i++) {
        Node *x = p->factor[i].node;
        while (is_move(x))
            x = x->src[0];
        once = !p->factor[i].integer || (size_before(x, x->rank, &own) && own >= all);
    }
    return once;
}

Node *integer_sum(Rewrite *r, Node *n)
{
    Context *c = r->c;
    FactorList p = {.r = r};
    unsigned axes = reduce_axes(n);
    if (n->dtype != INGOT_F32 || reduce_monoid(n) != INGOT_REDUCE_ADD ||
        !has_integer(r, n->src[0], 0) || !take_apart(&p, n->src[0]))
        return NULL;
    Node *body = n->src[0], *outside = NULL;
    bool inside[MAX_FACTORS] = {false};
    int integers = 0, left = 0;
    double terms = 1;
    for (int i = 0; i < body->rank; i++)
        if (axes >> i & 1)
            terms *= (double)body->shape[i]->hi;
    for (int i = 0; i < p.n; i++) {
        Node *f = p.factor[i].node;
        integers += p.factor[i].integer;
        for (int d = 0; d < body->rank && !p.factor[i].integer; d++)
            inside[i] |= (axes >> d & 1) && varies(f, d);
        left += inside[i];
        if (!p.factor[i].integer && !inside[i])
            outside = times(c, outside, f);
    }
    if (p.floats && left && !is_read_once(&p, body))
        return NULL; /* no unit multiplies them so */
    bool exact = !left && !p.floats && fits_i32(&p, terms);
    if (!outside && (!exact || r->float_sums || integers < 2))
        return NULL; /* nothing to gain */
    Node *product = NULL;
    for (int i = 0; i < p.n; i++) {
        Node *f = p.factor[i].node;
        if (p.factor[i].integer)
            product = times(c, product, exact ? f : ingot_cast(c, f, INGOT_F32));
        else if (inside[i])
            product = times(c, product, ingot_expand(c, f, body->rank, body->shape));
    }
    Node *sum = ingot_reduce(c, INGOT_REDUCE_ADD, product, axes, true);
    sum = ingot_cast(c, sum, INGOT_F32);
    if (outside)
        sum = ingot_mul(c, sum, ingot_expand(c, outside, n->rank, n->shape));
    return ingot_is_poison(sum) ? NULL : sum;
}
