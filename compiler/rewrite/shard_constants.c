/* shard_constants.c - the part of a constant that a device has: it has no other bytes of it.
 *
 *     expand(permute(w [64,128]))  along 0    expand(permute(w[64, half]))
 *
 * The part is that of the data itself, below all movement and arithmetic on elements. Rows that lie
 * together in the file are a constant of their own there; of others the floats are a recipe that is
 * evaluated when the weights are written, and integers, which rules look at, are copied. */
#include <string.h>

#include "shards.h"

/* The axis of a RESHAPE's source that leads this one of its result; WHOLE: there is none. */
static int axis_of_source(const Shards *s, const Node *n, int axis)
{
    for (int i = 0; i < n->src[0]->rank; i++)
        if (can_split(s, n->src[0], i) && reshaped_axis(s, n, i) == axis)
            return i;
    return WHOLE;
}

static Node *cut(const Shards *s, Node *x, int axis, int device)
{
    Node *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        begin[i] = idx(s->c, 0);
        size[i] = x->shape[i];
    }
    size[axis] = idx_div(s->c, x->shape[axis], idx(s->c, s->n));
    begin[axis] = idx_mul(s->c, size[axis], idx(s->c, device));
    return ingot_shrink(s->c, x, begin, size);
}

static Node *data_part(const Shards *s, Node *x, int axis, int device)
{
    Context *c = s->c;
    const Data *d = x->arg.ptr;
    int64_t dims[INGOT_MAX_RANK], rows = 1, n;
    for (int i = 0; i < x->rank; i++) {
        if (!idx_value(x->shape[i], &dims[i]))
            return cut(s, x, axis, device);
        rows *= i < axis ? dims[i] : 1;
    }
    dims[axis] /= s->n;
    const size_t part = d->nbytes / (size_t)s->n;
    const uint8_t *from = d->bytes + (size_t)device * (part / (size_t)rows);
    const char *name = d->name ? arena_printf(c->arena, "%s.%d", d->name, device) : NULL;
    if (rows == 1)
        return ingot_data(c, name, (ingot_dtype)x->dtype, x->rank, dims, from);
    if (dtype_is_float(x->dtype))
        return ingot_contiguous(c, cut(s, x, axis, device));
    uint8_t *bytes = arena_alloc(c->arena, part);
    for (n = 0; n < rows; n++)
        memcpy(bytes + (size_t)n * (part / (size_t)rows),
               from + (size_t)n * (d->nbytes / (size_t)rows), part / (size_t)rows);
    return ingot_data(c, name, (ingot_dtype)x->dtype, x->rank, dims, bytes);
}

/* The same of other sources, and as large along an axis as a device's part. */
static Node *resized(const Shards *s, Node *x, int axis, Node *first)
{
    Node *dims[INGOT_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->shape[i];
    dims[axis] = idx_div(s->c, x->shape[axis], idx(s->c, s->n));
    return x->op == OP_EXPAND ? ingot_expand(s->c, first, x->rank, dims)
                              : ingot_reshape(s->c, first, x->rank, dims);
}

/* Numbers along another axis: they are the same on all devices, and rules look for them. */
static Node *counted(const Shards *s, const Node *x, int axis)
{
    Node *dims[INGOT_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->shape[i];
    dims[axis] = idx_div(s->c, x->shape[axis], idx(s->c, s->n));
    return ingot_iota(s->c, x->rank, dims, (int)x->arg.i);
}

static Node *fresh_part(Shards *s, Node *x, int axis, int device)
{
    int of;
    if (x->op == OP_DATA && dtype_bits(x->dtype) >= 8 && x->dtype != INGOT_STRING)
        return data_part(s, x, axis, device);
    if (op_is_alu(x->op) && x->op != OP_CUSTOM) {
        Node *src[MAX_ALU_SRC], *shape[INGOT_MAX_RANK];
        for (uint32_t i = 0; i < x->nsrc; i++)
            src[i] = constant_part(s, x->src[i], axis, device);
        for (int i = 0; i < x->rank; i++)
            shape[i] = src[0]->shape[i];
        return node_make(s->c, (Op)x->op, (ingot_dtype)x->dtype, x->arg, (int)x->nsrc, src, x->rank,
                         shape);
    }
    switch (x->op) {
    case OP_IOTA: return x->arg.i == axis ? cut(s, x, axis, device) : counted(s, x, axis);
    case OP_EXPAND:
        of = idx_is(x->src[0]->shape[axis], 1) ? WHOLE : axis;
        return resized(s, x, axis, of < 0 ? x->src[0] : constant_part(s, x->src[0], of, device));
    case OP_RESHAPE:
        of = axis_of_source(s, x, axis);
        return of < 0 ? cut(s, x, axis, device)
                      : resized(s, x, axis, constant_part(s, x->src[0], of, device));
    case OP_PERMUTE:
        of = ((const Perm *)x->arg.ptr)->axis[axis];
        return move_again(s->c, x, constant_part(s, x->src[0], of, device));
    default: return cut(s, x, axis, device);
    }
}

Node *constant_part(Shards *s, Node *x, int axis, int device)
{
    const uint64_t key =
        ((uint64_t)x->id * INGOT_MAX_RANK + (uint64_t)axis) * MOST_DEVICES + (uint64_t)device + 1;
    Node *part = map_get(&s->c->shard_parts, key);
    if (!part) {
        part = fresh_part(s, x, axis, device);
        map_put(&s->c->shard_parts, key, (void *)(uintptr_t)part);
    }
    return part;
}
