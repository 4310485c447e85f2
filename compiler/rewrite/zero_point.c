/* zero_point.c - zero points leave sums of integers.
 *
 *     sum of (x - z) * w  ->  (sum of x * w) - z * (sum of w)       of a constant w
 *
 * What lies in memory is then multiplied as it lies there: nothing is subtracted in the loop, and a
 * unit that multiplies bytes can be used.  The last sum is evaluated when the model is compiled.
 * Padding was added behind the subtraction and stood for zeros; behind (pad of (x - z)) + z it
 * stands for z, which is what the border of x's buffer is filled with (layouts.c).  A zero point
 * that the run computes leaves the same way; there the padded bytes are stored.
 *
 * Zero points of weights are subtracted when the model is compiled, if what is left fits into
 * bytes.  Weights without a sign that leave more lose a half of their range instead, and a sum of
 * x, which all of them share, makes up for it:
 *
 *     sum of x * (w - z)  ->  (sum of x * w') + (128 - z) * (sum of x)       w' = w - 128, as i8
 *
 * All is exact modulo 2^32. */
#include "eval.h"
#include "rewrite.h"

bool sums_integers(Node *n)
{
    return n->dtype == INGOT_I32 && is_sum_of_products(n);
}

Node *one_number(Node *n)
{
    n = movement_repeated(n);
    for (int i = 0; i < n->rank; i++)
        if (!idx_is(n->shape[i], 1))
            return NULL;
    return n;
}

/* dot_signs.c changes it next. */
static bool is_to_change(const Rewrite *r, Node *f)
{
    while (is_move(f) || f->op == OP_SUB || f->op == OP_ADD)
        f = f->src[0];
    return loses_sign(r, f);
}

/* The number, as i32, that is subtracted where f moves elements of x - z (or x + -z) for an x of
 * few bits; NULL: none is. */
static Node *zero_of(Context *c, Node *f)
{
    while (is_move(f))
        f = f->src[0];
    if ((f->op != OP_SUB && f->op != OP_ADD) || f->src[0]->op != OP_CAST ||
        !dtype_is_int(f->src[0]->src[0]->dtype) || dtype_info[f->src[0]->src[0]->dtype].bytes > 2)
        return NULL;
    Node *z = one_number(f->src[1]);
    if (!z || (f->op == OP_ADD && z->op != OP_CONST))
        return NULL;
    z = ingot_reshape(c, z, 0, NULL);
    return f->op == OP_SUB ? z : ingot_neg(c, z);
}

bool is_weight(Node *n)
{
    if (!is_constant(n, 0))
        return false;
    while ((is_move(n) && n->op != OP_PAD) || n->op == OP_CAST || n->op == OP_SUB ||
           n->op == OP_ADD) /* one direction of an LSTM is a part of the data */
        n = n->src[0];
    return n->op == OP_DATA;
}

/* Weights less their zero points as i8, if that is where all of them lie: a form that is folded
 * when the model is compiled.  NULL: they have none, or do not. */
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
        fits = v[i] >= INT8_MIN && v[i] <= INT8_MAX;
    interp_free(ip);
    return fits ? ingot_cast(c, ingot_cast(c, w, INGOT_I8), INGOT_I32) : NULL;
}

Node *sum_over(Rewrite *r, Node *w, Node *compact, unsigned axes)
{
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

/* Weights without a sign less numbers: as i8, 128 less; *rest: what these are too small by.  NULL:
 * they are none. */
static Node *lowered_weight(Context *c, Node *w, Node **rest)
{
    if (is_move(w)) {
        Node *x = lowered_weight(c, w->src[0], rest);
        *rest = x ? moved(c, w, *rest) : NULL;
        return x ? moved(c, w, x) : NULL;
    }
    if (w->op != OP_SUB || w->src[0]->op != OP_CAST || w->src[0]->src[0]->dtype != INGOT_U8)
        return NULL;
    Node *half = node_const_i(c, INGOT_I32, INT8_MAX + 1);
    *rest = ingot_sub(c, half, w->src[1]);
    return ingot_cast(c, ingot_cast(c, ingot_sub(c, w->src[0], half), INGOT_I8), INGOT_I32);
}

/* The sum of x * w, of weights that leave more than i8 holds; NULL: it stays, for nothing
 * multiplies bytes. */
static Node *with_lowered_weights(Rewrite *r, Node *n, Node *x, Node *w)
{
    Context *c = r->c;
    unsigned axes = reduce_axes(n);
    if (is_weight(x) || !used_again(n, x))
        return NULL;
    Node *rest, *low = lowered_weight(c, w, &rest);
    if (!low)
        return NULL;
    Node *product = ingot_mul(c, x, low), *all = sum_over(r, x, compact_of(x), axes);
    rest = compact_form(r, rest);
    for (int i = 0; rest && i < rest->rank; i++)
        if ((axes >> i & 1) && !idx_is(rest->shape[i], 1))
            return NULL;
    if (!all || !rest || !takes_dot(r, product, axes))
        return NULL;
    Node *sum = ingot_reduce(c, INGOT_REDUCE_ADD, product, axes, true);
    return ingot_add(c, sum, ingot_mul(c, all, rest));
}

Node *narrow_weights(Rewrite *r, Node *n)
{
    Context *c = r->c;
    unsigned axes = reduce_axes(n);
    Node *product = n->src[0];
    if (!sums_integers(n))
        return NULL;
    for (int i = 0; i < 2; i++) {
        Node *x = product->src[1 - i], *w = product->src[i];
        if (!is_weight(w))
            continue;
        Node *narrow = narrow_weight(r, w);
        if (narrow)
            return ingot_reduce(c, INGOT_REDUCE_ADD, ingot_mul(c, narrow, x), axes, true);
        Node *sum = with_lowered_weights(r, n, x, w);
        if (sum)
            return sum;
    }
    return NULL;
}

/* (f padded with zeros) + z, of a z that the run computes: the bytes themselves, and where they are
 * padded they are stored so. */
static Node *with_zero(Context *c, Node *f, Node *z)
{
    if (f->op == OP_PAD) {
        Node *x = f;
        while (is_move(x))
            x = x->src[0];
        x = ingot_cast(c, ingot_add(c, f, z), (ingot_dtype)x->src[0]->src[0]->dtype);
        return ingot_cast(c, ingot_contiguous(c, x), INGOT_I32);
    }
    return is_move(f) ? moved(c, f, with_zero(c, f->src[0], z)) : f->src[0];
}

Node *zero_points(Rewrite *r, Node *n)
{
    Context *c = r->c;
    unsigned axes = reduce_axes(n);
    Node *product = n->src[0];
    if (!sums_integers(n))
        return NULL;
    for (int i = 0; i < 2; i++) {
        Node *x = product->src[i], *w = product->src[1 - i];
        Node *z = is_weight(w) && !is_weight(x) ? zero_of(c, x) : NULL;
        if (!z || node_is_const_i(z, 0) || is_to_change(r, x) || (z->op != OP_CONST && !r->dot))
            continue;
        Node *all = sum_over(r, w, compact_form(r, w), axes);
        if (!all)
            return NULL;
        Node *sum = ingot_mul(c, z->op == OP_CONST ? ingot_add(c, x, z) : with_zero(c, x, z), w);
        sum = ingot_reduce(c, INGOT_REDUCE_ADD, sum, axes, true);
        all = ingot_mul(c, all, ingot_neg(c, z));
        sum = ingot_add(c, sum, ingot_expand(c, all, n->rank, n->shape));
        return ingot_is_poison(sum) ? NULL : sum;
    }
    return NULL;
}
