/* one_hot_sum.c - a sum of what is zero but at one place is what stands there.
 *
 *     sum over j of (j == t ? x[j] : 0)   ->   0 <= t < n ? x[t] : 0
 *
 * So a cross entropy over n classes reads one logarithm of each row, and the sum over a row of its
 * gradient is one number.  What is added there else are zeros, so the result is the same. */
#include "builder.h"
#include "rewrite.h"

/* The axis along which `place` counts, if all of them are compared with one number; or -1. */
static int counted_axis(const Node *place, const Node *number, unsigned axes)
{
    const int axis = place->op == OP_IOTA ? (int)place->arg.i : -1;
    const bool one = axis >= 0 && axes >> axis & 1 && number->op == OP_EXPAND &&
                     idx_is(number->src[0]->shape[axis], 1);
    return one ? axis : -1;
}

Node *one_hot_sum(Rewrite *r, Node *n)
{
    Context *c = r->c;
    Node *term = n->src[0], *dims[INGOT_MAX_RANK], *index[INGOT_MAX_RANK];
    const bool minus = term->op == OP_NEG;
    term = minus ? term->src[0] : term;
    if (reduce_size(n) != 1 || reduce_monoid(n) != INGOT_REDUCE_ADD || n->dtype != term->dtype ||
        (n->dtype != INGOT_F32 && n->dtype != INGOT_F64) || term->op != OP_WHERE ||
        term->src[0]->op != OP_EQ || !uniform(term->src[2]) ||
        uniform(term->src[2]) != node_const_zero(c, (ingot_dtype)n->dtype))
        return NULL;
    Node *const *side = term->src[0]->src;
    int axis = counted_axis(side[0], side[1], reduce_axes(n));
    Node *number = side[axis >= 0];
    axis = axis >= 0 ? axis : counted_axis(side[1], side[0], reduce_axes(n));
    if (axis < 0)
        return NULL;
    for (int i = 0; i < term->rank; i++)
        dims[i] = i == axis ? idx(c, 1) : term->shape[i];
    number = ingot_cast(c, ingot_expand(c, number->src[0], term->rank, dims), INGOT_I64);
    Node *last = ingot_add_c(c, ingot_from_dim(c, term->shape[axis]), -1);
    Node *within = ingot_min(c, ingot_max_c(c, number, 0), last);
    for (int i = 0; i < term->rank; i++)
        index[i] = i == axis ? within : ingot_iota(c, term->rank, dims, i);
    Node *x = ingot_gather(c, term->src[1], index);
    x = ingot_where(c, ingot_eq(c, within, number), x, ingot_like(c, x, 0));
    return ingot_sum(c, minus ? ingot_neg(c, x) : x, reduce_axes(n), true);
}
