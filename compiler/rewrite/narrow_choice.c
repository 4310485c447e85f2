/* narrow_choice.c - a choice between a widened number and zero is made before it is widened.
 *
 *     c ? f32(x) : 0  ->  f32(c ? x : 0)
 *
 * So it is stored as narrow as it is: the gradient behind a relu, of a product that was rounded. */
#include "builder.h"
#include "rewrite.h"

Node *narrow_choice(Rewrite *r, Node *n)
{
    for (int i = 1; i < 3; i++) {
        Node *wide = n->src[i], *src[] = {n->src[0], NULL, NULL};
        Node *x = wide->op == OP_CAST ? wide->src[0] : NULL;
        if (!x || !dtype_is_float(x->dtype) || !dtype_is_float(n->dtype) ||
            dtype_info[x->dtype].bytes >= dtype_info[n->dtype].bytes ||
            !const_is(uniform(n->src[3 - i]), 0))
            continue;
        src[i] = x;
        src[3 - i] =
            uniform_make(r->c, node_const_zero(r->c, (ingot_dtype)x->dtype), x->rank, x->shape);
        return ingot_cast(r->c, ingot_where(r->c, src[0], src[1], src[2]), (ingot_dtype)n->dtype);
    }
    return NULL;
}
