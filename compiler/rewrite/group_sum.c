/* group_sum.c - sums of groups of channels, by channels first.
 *
 *     x [N, C, H, W] -> [N, G, C / G * H * W]:  sum over the last axis
 *         = sum over C / G of [N, G, C / G] <- [N, C] = sum over H, W
 *
 * Pixels often lie with their channels side by side.  A group has a few of these, which fill no
 * vector; all channels of a pixel fill some, and what is left for the groups is short. */
#include "builder.h"
#include "rewrite.h"

enum { LEAST = 64 /* elements of a channel: else there is nothing to gain */ };

/* x has the axes of s up to `axis`; there its channels, of which the last axis of s has so many
 * with all that is behind them; 0: no. */
static int64_t channels_of_group(const Node *x, const Node *s, int axis)
{
    int64_t c, g, all, behind = 1, size;
    if (x->rank <= s->rank || axis < 1)
        return 0;
    for (int i = 0; i < axis - 1; i++)
        if (x->shape[i] != s->shape[i])
            return 0;
    for (int i = axis; i < x->rank; i++) {
        if (!idx_value(x->shape[i], &size))
            return 0;
        behind *= size;
    }
    if (!idx_value(x->shape[axis - 1], &c) || !idx_value(s->shape[axis - 1], &g) ||
        !idx_value(s->shape[axis], &all) || g < 2 || c % g || c == g || behind < LEAST ||
        all != c / g * behind)
        return 0;
    return c / g;
}

/* What the terms were shaped from. */
static Node *shape_before(Node *n, int deep)
{
    if (n->op == OP_RESHAPE)
        return n->src[0];
    Node *x = NULL;
    for (uint32_t i = 0; i < n->nsrc && deep && !x && op_is_alu(n->op); i++)
        x = shape_before(n->src[i], deep - 1);
    return x;
}

Node *group_sum(Rewrite *r, Node *n)
{
    enum { DEEP = 8 };
    Node *s = n->src[0], *x = shape_before(s, DEEP), *shape[INGOT_MAX_RANK];
    const int axis = s->rank - 1;
    if (!r->float_sums || reduce_size(n) != 1 || reduce_monoid(n) != INGOT_REDUCE_ADD ||
        !dtype_is_float((ingot_dtype)n->dtype) || reduce_axes(n) != 1u << axis || !x)
        return NULL;
    if (!comes_from_products(x, DEEP)) /* dense: a group is one run */
        return NULL;
    const int64_t each = channels_of_group(x, s, axis);
    if (!each)
        return NULL;
    unsigned behind = 0;
    for (int i = axis; i < x->rank; i++)
        behind |= 1u << i;
    Node *channels = ingot_sum(r->c, ingot_reshape(r->c, s, x->rank, x->shape), behind, false);
    for (int i = 0; i < axis; i++)
        shape[i] = s->shape[i];
    shape[axis] = idx(r->c, each);
    return ingot_sum(r->c, ingot_reshape(r->c, channels, s->rank, shape), 1u << axis, true);
}
