/* gradient_move.c - the adjoints of movement: the inverse where there is one, a sum where
 * elements were repeated, and zeros where they were left out.
 *
 *     y = expand x   g_x = sum of g_y over the new axes        y = pad x      g_x = shrink g_y
 *     y = permute x  g_x = permute back g_y                     y = shrink x   g_x = pad g_y */
#include "gradient.h"

Node *gradient_reshape(Backward *b, Node *n, Node *g, int i)
{
    return ingot_reshape(b->c, g, n->src[i]->rank, n->src[i]->shape);
}

Node *gradient_permute(Backward *b, Node *n, Node *g, int i)
{
    (void)i;
    int back[INGOT_MAX_RANK];
    const Perm *p = n->arg.ptr;
    for (int a = 0; a < n->rank; a++)
        back[p->axis[a]] = a;
    return ingot_permute(b->c, g, back);
}

Node *gradient_expand(Backward *b, Node *n, Node *g, int i)
{
    Node *x = n->src[i];
    unsigned axes = 0;
    for (int a = 0; a < n->rank; a++)
        if (idx_is(x->shape[a], 1) && !idx_is(n->shape[a], 1))
            axes |= 1u << a;
    return gradient_sum(b->c, g, axes);
}

Node *gradient_pad(Backward *b, Node *n, Node *g, int i)
{
    Node *begin[INGOT_MAX_RANK];
    for (int a = 0; a < n->rank; a++)
        begin[a] = n->src[1 + 2 * a];
    return ingot_shrink(b->c, g, begin, n->src[i]->shape);
}

Node *gradient_shrink(Backward *b, Node *n, Node *g, int i)
{
    Context *c = b->c;
    Node *x = n->src[i], *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    for (int a = 0; a < n->rank; a++) {
        lo[a] = n->src[1 + 2 * a];
        hi[a] = idx_sub(c, x->shape[a], idx_add(c, lo[a], n->shape[a]));
        if (hi[a]->lo < 0) /* x is known to have it: what shrink requires */
            hi[a] = idx_max(c, hi[a], idx(c, 0));
    }
    return with_shape(c, ingot_pad(c, g, lo, hi), x->shape);
}

Node *gradient_flip(Backward *b, Node *n, Node *g, int i)
{
    (void)i;
    return ingot_flip(b->c, g, (unsigned)n->arg.i);
}

/* The part of g where operand i lies. */
Node *gradient_concat(Backward *b, Node *n, Node *g, int i)
{
    Context *c = b->c;
    Node *begin[INGOT_MAX_RANK];
    int axis = (int)n->arg.i;
    for (int a = 0; a < n->rank; a++)
        begin[a] = idx(c, 0);
    for (int k = 0; k < i; k++)
        begin[axis] = idx_add(c, begin[axis], n->src[k]->shape[axis]);
    return ingot_shrink(c, g, begin, n->src[i]->shape);
}
