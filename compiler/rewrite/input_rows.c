/* input_rows.c - an input of bytes that a window reads in another shape is copied into that shape.
 *
 *     sum of pad(reshape(x)) * w   ->   sum of pad(keep(reshape(x))) * w     x: [490], 49 rows of
 * 10
 *
 * Products of bytes are taken by fours without lanes only where nothing is checked around their
 * loads, so what they read has a border. Neither the caller's memory has one, nor a copy of it with
 * the same axes (pad_inputs.c), if a row of the image is none of these. Cores without such products
 * (and without floats: Cortex-M3) save the checks. */
#include "rewrite.h"

/* Is some axis of the result a part of one of what is reshaped, or several? */
static bool changes_axes(Node *n)
{
    for (int i = 0; i < n->rank; i++) {
        const int below = axis_below(n, i);
        if (!idx_is(n->shape[i], 1) && (below < 0 || n->src[0]->shape[below] != n->shape[i]))
            return true;
    }
    return false;
}

/* Is it a number more or less? */
static bool is_shifted(Node *n)
{
    return (n->op == OP_ADD || n->op == OP_SUB) && uniform(n->src[1]);
}

static Node *shifted(Context *c, Node *n, Node *x)
{
    Node *by = uniform(n->src[1]);
    return n->op == OP_ADD ? ingot_add(c, x, by) : ingot_sub(c, x, by);
}

/* n, made of bytes of an input element by element, in the shape of a reshape, in which these are
 * stored; NULL: it is not made so. */
static Node *stored_as(Context *c, Node *reshape, Node *n)
{
    if (n->op == OP_INPUT)
        return n->dtype == INGOT_I8 || n->dtype == INGOT_U8
                   ? ingot_contiguous(c, moved(c, reshape, n))
                   : NULL;
    const bool cast = n->op == OP_CAST && n->dtype == INGOT_I32;
    Node *x = cast || is_shifted(n) ? stored_as(c, reshape, n->src[0]) : NULL;
    return !x ? NULL : cast ? ingot_cast(c, x, INGOT_I32) : shifted(c, n, x);
}

/* x with what it reads of an input stored in the shape that it reads; NULL: it reads none so.
 * padded: something above x moves a border around it. */
static Node *with_rows(Context *c, Node *x, bool padded)
{
    Node *rows =
        x->op == OP_RESHAPE && padded && changes_axes(x) ? stored_as(c, x, x->src[0]) : NULL;
    if (rows)
        return rows;
    const bool goes_on = is_move(x) || x->op == OP_CAST || is_shifted(x);
    Node *below = goes_on ? with_rows(c, x->src[0], padded || x->op == OP_PAD) : NULL;
    if (!below)
        return NULL;
    if (is_move(x))
        return moved(c, x, below);
    return x->op == OP_CAST ? ingot_cast(c, below, (ingot_dtype)x->dtype) : shifted(c, x, below);
}

Node *input_rows(Rewrite *r, Node *n)
{
    Node *product = n->src[0];
    if (!r->scalar || !(r->fours || r->soft_floats) || !sums_integers(n))
        return NULL;
    for (int i = 0; i < 2; i++) {
        Node *x = product->src[1 - i], *w = product->src[i];
        const bool bytes = is_weight(w) && is_byte(w, false) && !is_weight(x) && is_byte(x, true);
        Node *rows = bytes && used_again(n, x) ? with_rows(r->c, x, false) : NULL;
        if (rows)
            return ingot_reduce(r->c, INGOT_REDUCE_ADD, ingot_mul(r->c, rows, w), reduce_axes(n),
                                true);
    }
    return NULL;
}
