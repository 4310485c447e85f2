/* zero_point.c - zero points leave sums of integers.
 *
 *     sum of (x - z) * w  ->  (sum of x * w) - z * (sum of w)       of a constant w
 *
 * What lies in memory is then multiplied as it lies there: nothing is subtracted in the loop, and a unit that multiplies
 * bytes can be used.  The last sum is evaluated when the model is compiled.  Padding was added behind the
 * subtraction and stood for zeros; behind (pad of (x - z)) + z it stands for z, which is what the border of x's buffer is
 * filled with (layouts.c).  All is exact modulo 2^32. */
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

/* Numbers of the file, widened, less a zero point, and moved but not padded. */
static bool is_weight(Node *n)
{
    while ((is_move(n) && n->op != OP_PAD) || n->op == OP_CAST ||
           ((n->op == OP_SUB || n->op == OP_ADD) && scalar_of(n->src[1])))
        n = n->src[0];
    return n->op == OP_DATA;
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
    unsigned axes = (unsigned)((uint64_t)n->arg.i >> 8);
    Node *product = n->src[0];
    if (n->dtype != INGOT_I32 || (n->arg.i & 255) != INGOT_REDUCE_ADD || product->op != OP_MUL)
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
