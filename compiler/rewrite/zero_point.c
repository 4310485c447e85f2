/* zero_point.c - zero points leave sums of integers.
 *
 *     sum of (x - z) * w  ->  (sum of x * w) - z * (sum of w)       of a constant w
 *
 * What lies in memory is then multiplied as it lies there: nothing is subtracted in the loop, and a unit that multiplies
 * bytes can be used.  The last sum is evaluated when the model is compiled.  Padding was added behind the
 * subtraction and stood for zeros; behind (pad of (x - z)) + z it stands for z, which is what the border of x's buffer is
 * filled with (layouts.c).  All is exact modulo 2^32.  Zero points of weights are subtracted when the model is compiled, if
 * what is left fits into bytes. */
#include "rewrite.h"

Node *scalar_of(Node *n)
{
    while (n->op == OP_EXPAND || n->op == OP_RESHAPE)
        n = n->src[0];
    return n->op == OP_CONST ? n : NULL;
}

/* z, if f moves elements of x - z (or x + -z) for an x of few bits; 0: nothing is subtracted. */
static int64_t zero_of(Node *f)
{
    while (is_move(f))
        f = f->src[0];
    if ((f->op != OP_SUB && f->op != OP_ADD) || f->src[0]->op != OP_CAST ||
        !dtype_is_int(f->src[0]->src[0]->dtype) || dtype_info[f->src[0]->src[0]->dtype].bytes > 2)
        return 0;
    Node *z = scalar_of(f->src[1]);
    return !z ? 0 : f->op == OP_SUB ? z->arg.i : -z->arg.i;
}

bool is_weight(Node *n)
{
    if (!is_constant(n, 0))
        return false;
    while (is_move(n) && n->op != OP_PAD)
        n = n->src[0];
    while (n->op == OP_CAST || n->op == OP_SUB || n->op == OP_ADD)
        n = n->src[0];
    return n->op == OP_DATA;
}

/* Weights less their zero points as i8, if that is where all of them lie: a form that is folded when the model is compiled.  NULL:
 * they have none, or do not. */
static Node *narrow_weight(Rewrite *r, Node *w)
{
    Context *c = r->c;
    if (is_move(w)) {
        Node *x = narrow_weight(r, w->src[0]);
        return x ? moved(c, w, x) : NULL;
    }
    int64_t dims[INGOT_MAX_RANK];
    if ((w->op != OP_SUB && w->op != OP_ADD) || w->dtype != INGOT_I32)
        return NULL;
    Interp *ip = interp_new(c);
    const int32_t *v = interp_eval(ip, w, dims);
    bool fits = v != NULL;
    int64_t n = 1;
    for (int i = 0; i < w->rank; i++)
        n *= dims[i];
    for (int64_t i = 0; i < n && fits; i++)
        fits = v[i] >= -128 && v[i] <= 127;
    interp_free(ip);
    return fits ? ingot_cast(c, ingot_cast(c, w, INGOT_I8), INGOT_I32) : NULL;
}

Node *narrow_weights(Rewrite *r, Node *n)
{
    Context *c = r->c;
    unsigned axes = reduce_axes(n);
    Node *product = n->src[0];
    if (n->dtype != INGOT_I32 || !is_sum_of_products(n))
        return NULL;
    for (int i = 0; i < 2; i++) {
        Node *narrow = is_weight(product->src[i]) ? narrow_weight(r, product->src[i]) : NULL;
        if (narrow)
            return ingot_reduce(c, INGOT_REDUCE_ADD, ingot_mul(c, narrow, product->src[1 - i]),
                                axes, true);
    }
    return NULL;
}

/* The sum of w over the axes, of size 1 wherever w does not vary; NULL if that cannot be said. */
static Node *sum_of(Rewrite *r, Node *w, unsigned axes)
{
    Node *compact = compact_form(r, w);
    int64_t times = 1, extent;
    unsigned varying = 0;
    if (!compact)
        return NULL;
    for (int i = 0; i < w->rank; i++) {
        if (!(axes >> i & 1))
            continue;
        if (!idx_is(compact->shape[i], 1))
            varying |= 1u << i;
        else if (idx_value(w->shape[i], &extent))
            times *= extent;
        else
            return NULL;
    }
    if (varying)
        compact = ingot_reduce(r->c, INGOT_REDUCE_ADD, compact, varying, true);
    return ingot_mul(r->c, compact, node_const_i(r->c, INGOT_I32, (int32_t)times));
}

Node *zero_points(Rewrite *r, Node *n)
{
    Context *c = r->c;
    unsigned axes = reduce_axes(n);
    Node *product = n->src[0];
    if (n->dtype != INGOT_I32 || !is_sum_of_products(n))
        return NULL;
    for (int i = 0; i < 2; i++) {
        Node *x = product->src[i], *w = product->src[1 - i];
        int64_t z = zero_of(x);
        if (!z || is_weight(x) || !is_weight(w))
            continue;
        Node *all = sum_of(r, w, axes), *zero = node_const_i(c, INGOT_I32, z);
        if (!all)
            return NULL;
        Node *sum = ingot_mul(c, ingot_add(c, x, zero), w);
        sum = ingot_reduce(c, INGOT_REDUCE_ADD, sum, axes, true);
        all = ingot_mul(c, all, node_const_i(c, INGOT_I32, -z));
        sum = ingot_add(c, sum, ingot_expand(c, all, n->rank, n->shape));
        return ingot_is_poison(sum) ? NULL : sum;
    }
    return NULL;
}
