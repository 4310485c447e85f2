/* byte_max.c - the largest and the least of bytes are found in lanes.
 *
 *     max over a window of x  ->  (i8)(max over it of (i32)x)        x: i8 or u8, and min alike
 *
 * Vectors are of 32 bits; what loads bytes into them widens these, and what stores bytes narrows
 * them. The result is one of the bytes, or the least (the largest) of its type. */
#include "rewrite.h"

Node *byte_max(Rewrite *r, Node *n)
{
    Context *c = r->c;
    const int op = reduce_monoid(n);
    const ingot_dtype byte = (ingot_dtype)n->dtype;
    if (!r->float_sums || (byte != INGOT_I8 && byte != INGOT_U8) || n->nsrc != 1 ||
        (op != INGOT_REDUCE_MAX && op != INGOT_REDUCE_MIN))
        return NULL;
    Node *x = ingot_cast(c, n->src[0], INGOT_I32);
    x = ingot_reduce(c, (ingot_reduce_op)op, x, reduce_axes(n), true);
    x = op == INGOT_REDUCE_MAX
            ? ingot_max(c, x, node_const_i(c, INGOT_I32, dtype_least(byte)))
            : ingot_min(c, x, node_const_i(c, INGOT_I32, (int64_t)dtype_most(byte)));
    return ingot_is_poison(x) ? NULL : ingot_cast(c, x, byte);
}
