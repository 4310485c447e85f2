/* sub_byte.c - weights of 4 or 2 bits lie two or four in a byte.
 *
 * A constant has an element a byte. What a sum of products reads of it along the axis of the sum is packed:
 *
 *     (float)w[k, n]  ->  (float)(p[k / 2, n] >> 4 (k % 2) & 15) - 8        p[k, n] = w[2 k, n] + 8 | w[2 k + 1, n] + 8 << 4
 *
 * so that a byte is read once for two terms, and what lies side by side across the sum still does: those are lanes.  The
 * 8 makes signed numbers digits; of unsigned ones there is none.  The numbers are the same, bit by bit. */
#include <string.h>

#include "../build/build.h"
#include "rewrite.h"

enum { MAX_DEPTH = 48 };

static int bits_of(int d)
{
    return d == INGOT_I4 || d == INGOT_U4 ? 4 : d == INGOT_I2 || d == INGOT_U2 ? 2 : 0;
}

/* Elements behind an axis that one step along it passes; -1: known at run time only. */
static int64_t step_of(Node *n, int axis)
{
    int64_t step = 1, d;
    for (int i = axis + 1; i < n->rank; i++) {
        if (!idx_value(n->shape[i], &d))
            return -1;
        step *= d;
    }
    return step;
}

/* The bytes: `outer` times `count` elements along the axis, of which each is `inner` numbers. */
static const void *packed(Context *c, const int8_t *from, int bits, int bias, int64_t outer,
                          int64_t count, int64_t inner)
{
    int per = 8 / bits;
    uint8_t *to = NEWN(c->arena, uint8_t, outer * count * inner / per);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < count; k++)
            for (int64_t i = 0; i < inner; i++) {
                unsigned digit = (unsigned)(from[(o * count + k) * inner + i] + bias);
                to[(o * (count / per) + k / per) * inner + i] |=
                    (uint8_t)((digit & ((1u << bits) - 1)) << (k % per * bits));
            }
    return to;
}

/* cast(w) for a constant w */
static Node *unpacked(Rewrite *r, Node *cast, int axis)
{
    Context *c = r->c;
    Node *w = cast->src[0];
    int bits = bits_of(w->dtype), per = 8 / bits, rank = w->rank + 1;
    bool is_signed = dtype_info[w->dtype].kind == 'i';
    int64_t dims[INGOT_MAX_RANK + 1], count, inner = step_of(w, axis), outer = 1;
    if (rank > INGOT_MAX_RANK || dtype_info[cast->dtype].kind == 'u' || cast->dtype == INGOT_BOOL)
        return NULL;
    for (int i = 0; i < w->rank; i++)
        if (!idx_value(w->shape[i], &dims[i < axis ? i : i + 1]))
            return NULL;
    for (int i = 0; i < axis; i++)
        outer *= dims[i];
    count = dims[axis + 1];
    if (count % per)
        return NULL;
    const Data *data = w->arg.ptr;
    dims[axis] = count / per;
    dims[axis + 1] = 1;
    Node *x = ingot_data(c, data->name, INGOT_U8, rank, dims,
                         packed(c, (const int8_t *)data->bytes, bits,
                                is_signed ? 1 << (bits - 1) : 0, outer, count, inner));
    Node *shape[INGOT_MAX_RANK + 1];
    for (int i = 0; i < rank; i++)
        shape[i] = idx(c, i == axis + 1 ? per : dims[i]);
    Node *shift = ingot_mul_c(c, ingot_iota(c, rank, shape, axis + 1), bits);
    x = ingot_shr(c, ingot_expand(c, x, rank, shape), ingot_cast(c, shift, INGOT_U8));
    x = ingot_and(c, x, ingot_like(c, x, (1 << bits) - 1));
    x = ingot_cast(c, ingot_reshape(c, x, w->rank, w->shape), (ingot_dtype)cast->dtype);
    return is_signed ? ingot_add_c(c, x, -(1 << (bits - 1))) : x;
}

int axis_below(Node *reshape, int axis)
{
    Node *x = reshape->src[0];
    int64_t step = step_of(reshape, axis);
    for (int i = x->rank; i-- > 0 && step > 0;)
        if (step_of(x, i) == step && !idx_is(x->shape[i], 1))
            return i;
    return -1;
}

/* n with a constant below it packed along the axis, or NULL. */
static Node *repacked(Rewrite *r, Node *n, int axis, int depth)
{
    if (depth > MAX_DEPTH || axis < 0 || idx_is(n->shape[axis], 1))
        return NULL;
    bool through = op_is_alu(n->op) || n->op == OP_EXPAND;
    if (n->op == OP_CAST && n->src[0]->op == OP_DATA && bits_of(n->src[0]->dtype))
        return unpacked(r, n, axis);
    if (n->op == OP_PERMUTE)
        axis = ((const Perm *)n->arg.ptr)->axis[axis];
    else if (n->op == OP_RESHAPE)
        axis = axis_below(n, axis);
    else if (!through)
        return NULL;
    Node **src = NEWN(r->a, Node *, n->nsrc + 1);
    memcpy((void *)src, n->src, n->nsrc * sizeof *src);
    uint32_t operands = op_is_alu(n->op) ? n->nsrc : 1;
    for (uint32_t i = 0; i < operands; i++) {
        Node *x = repacked(r, n->src[i], axis, depth + 1);
        if (!x || ingot_is_poison(x))
            continue;
        src[i] = x;
        return node_make(r->c, (Op)n->op, (ingot_dtype)n->dtype, n->arg, (int)n->nsrc, src, n->rank,
                         n->shape);
    }
    return NULL;
}

Node *sub_byte(Rewrite *r, Node *n)
{
    int axis = n->rank;
    if (reduce_monoid(n) != INGOT_REDUCE_ADD)
        return NULL;
    while (axis-- > 0 && (!(reduce_axes(n) >> axis & 1) || idx_is(n->src[0]->shape[axis], 1)))
        continue;
    if (below_casts(n->src[0])->op != OP_MUL)
        return NULL;
    Node *x = repacked(r, n->src[0], axis, 0);
    return x ? node_make(r->c, OP_REDUCE, (ingot_dtype)n->dtype, n->arg, 1, &x, n->rank, n->shape)
             : NULL;
}
