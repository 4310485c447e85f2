/* gather.c - reading and writing at computed coordinates.
 *
 * GATHER has one index tensor per axis of its source, all of the result's shape; take() makes the
 * indices of the other axes iotas, which the simplifier turns back into plain coordinates.  An
 * index known while the graph is built becomes a shrink. */
#include <string.h>

#include "builder.h"
#include "ops.h"

static bool index_check(Context *c, const char *what, Node *i)
{
    if (dtype_is_int(i->dtype))
        return true;
    ingot_error(c, INGOT_INVALID, "%s: the index is %s; it must be an integer", what,
                dtype_info[i->dtype].name);
    return false;
}

/* i64 or i32: what GATHER and UPDATE take. */
static Node *index_cast(Context *c, Node *i)
{
    return i->dtype == INGOT_I32 ? i : ingot_cast(c, i, INGOT_I64);
}

/* Casts and broadcasts n index tensors (and whatever else is in x) to one shape. */
static bool broadcast_all(Context *c, const char *what, int n, Node **x, int *rank, Node **dims)
{
    if (!broadcast_shape(c, what, n, x, rank, dims))
        return false;
    for (int i = 0; i < n; i++)
        x[i] = broadcast_to(c, x[i], *rank, dims);
    return true;
}

/* Of a tensor without elements nothing is read: the run has to have none to read, or not to come
 * to a region, of a branch or a loop, that would. */
static Node *gather_of_none(Context *c, ingot_dtype d, int rank, Node *const *dims)
{
    const char *what = "the number of elements to gather from a tensor without any";
    Node *n = shape_numel(c, rank, dims), *none = idx(c, 0);
    if (n->lo > 0 && !c->region)
        return ingot_error(c, INGOT_INVALID, "gather of %s elements from a tensor without any",
                           shape_text(c, rank, dims));
    if (n->lo > 0)
        require_or_skip(c, n, none, none, what);
    else if (!ingot_require(c, n, none, none, what))
        return c->poison;
    return uniform_make(c, node_const_zero(c, d), rank, dims);
}

ingot_tensor *ingot_gather(ingot_context *c, ingot_tensor *x, ingot_tensor *const *index)
{
    Node *src[1 + INGOT_MAX_RANK], *dims[INGOT_MAX_RANK];
    int rank;
    if (poisoned(x))
        return x;
    if (x->rank == 0)
        return ingot_error(c, INGOT_INVALID, "gather from a scalar");
    for (int i = 0; i < x->rank; i++)
        if (poisoned(index[i]))
            return index[i];
    for (int i = 0; i < x->rank; i++) {
        if (!index_check(c, "gather", index[i]))
            return c->poison;
        src[1 + i] = index_cast(c, index[i]);
    }
    src[0] = x;
    if (!broadcast_all(c, "gather", x->rank, src + 1, &rank, dims))
        return c->poison;
    ingot_dtype d = (ingot_dtype)x->dtype;
    if (shape_is_empty(rank, dims))
        return uniform_make(c, node_const_zero(c, d), rank, dims);
    if (shape_is_empty(x->rank, x->shape))
        return gather_of_none(c, d, rank, dims);
    if (uniform(x))
        return uniform_make(c, uniform(x), rank, dims);
    return node_make(c, OP_GATHER, d, (Arg){0}, 1 + x->rank, src, rank, dims);
}

/* Constant indices none of which is negative need no wrapping. */
static bool never_negative(Node *i)
{
    while (i->op == OP_RESHAPE || i->op == OP_EXPAND || i->op == OP_CAST)
        i = i->src[0];
    if (dtype_info[i->dtype].kind == 'u' || i->op == OP_IOTA)
        return true;
    if (i->dtype == INGOT_INDEX)
        return i->lo >= 0;
    if (i->op == OP_CONST)
        return !dtype_is_float(i->dtype) && i->arg.i >= 0;
    if (i->op != OP_DATA || (i->dtype != INGOT_I64 && i->dtype != INGOT_I32))
        return false;
    const Data *data = i->arg.ptr;
    size_t size = (size_t)dtype_info[i->dtype].bytes;
    if (data->nbytes > 1 << 20)
        return false;
    for (size_t at = size - 1; at < data->nbytes; at += size)
        if (data->bytes[at] & 0x80) /* the sign bit, little-endian */
            return false;
    return true;
}

ingot_tensor *ingot_wrap_index(ingot_context *c, ingot_tensor *index, ingot_dim *size)
{
    if (poisoned(index) || poisoned(size) || !index_check(c, "index", index))
        return c->poison;
    if (never_negative(index))
        return index;
    index = index_cast(c, index);
    Node *n = ingot_cast(c, ingot_from_dim(c, size), (ingot_dtype)index->dtype);
    Node *negative = ingot_lt(c, index, ingot_like(c, index, 0));
    return ingot_where(c, negative, ingot_add(c, index, n), index);
}

/* The one integer that an index tensor holds everywhere, if it is known now; negatives wrapped. */
static Node *known_index(Context *c, Node *index, Node *size)
{
    index = movement_repeated(index);
    Node *i = NULL;
    if (index->op == OP_CONST)
        i = idx(c, index->arg.i);
    else if (index->op == OP_CAST && index->src[0]->dtype == INGOT_INDEX)
        i = index->src[0];
    if (!i || (i->lo < 0 && i->hi >= 0))
        return NULL;
    return i->hi < 0 ? idx_add(c, i, size) : i;
}

/* What is taken from places that are not there: no run comes here that has an index. */
static Node *take_outside(Context *c, Node *x, Node *index, Node *place, int axis, int rank,
                          Node *const *dims)
{
    Node *n = shape_numel(c, index->rank, index->shape), *none = idx(c, 0);
    const char *what = arena_printf(c->arena, "the number of indices outside of axis %d", axis);
    if (n->lo > 0 ? !never_place(c, place, x, axis, false) : !ingot_require(c, n, none, none, what))
        return c->poison;
    return uniform_make(c, node_const_zero(c, (ingot_dtype)x->dtype), rank, dims);
}

ingot_tensor *ingot_take(ingot_context *c, ingot_tensor *x, ingot_tensor *index, int axis)
{
    Node *dims[2 * INGOT_MAX_RANK], *at[INGOT_MAX_RANK], *aligned[2 * INGOT_MAX_RANK];
    if (poisoned(x) || poisoned(index) || !index_check(c, "take", index))
        return c->poison;
    if (axis < 0 || axis >= x->rank)
        return ingot_error(c, INGOT_INVALID, "take: axis %d of a tensor of rank %d", axis, x->rank);
    int rank = x->rank + index->rank - 1, after = axis + index->rank;
    for (int i = 0; i < rank; i++)
        dims[i] = i < axis    ? x->shape[i]
                  : i < after ? index->shape[i - axis]
                              : x->shape[i - index->rank + 1];
    if (!shape_check(c, "take", rank, dims))
        return c->poison;
    Node *size = x->shape[axis], *i = known_index(c, index, size);
    if (i && (i->hi < 0 || idx_sub(c, size, i)->hi < 1))
        return take_outside(c, x, index, i, axis, rank, dims);
    if (i && i->lo >= 0 && idx_sub(c, size, i)->lo >= 1) {
        Node *row = ingot_slice(c, x, axis, i, idx(c, 1), 1); /* one place: a slice, repeated */
        for (int a = 0; a < rank; a++)
            aligned[a] = a >= axis && a < after ? idx(c, 1) : dims[a];
        return ingot_expand(c, ingot_reshape(c, row, rank, aligned), rank, dims);
    }
    x = ops_block_weight(c, x);
    for (int a = 0; a < rank; a++)
        aligned[a] = a >= axis && a < after ? dims[a] : idx(c, 1);
    index = ingot_reshape(c, ingot_wrap_index(c, index, size), rank, aligned);
    for (int a = 0; a < x->rank; a++)
        at[a] =
            a == axis ? index : ingot_iota(c, rank, dims, a < axis ? a : a + index->rank - x->rank);
    return ingot_index_checked(c, ingot_gather(c, x, at), true);
}

ingot_tensor *ingot_element(ingot_context *c, ingot_tensor *x, ingot_tensor *i, int axis)
{
    Node *index[INGOT_MAX_RANK], *dims[INGOT_MAX_RANK];
    if (poisoned(x) || poisoned(i))
        return c->poison;
    if (axis < 0 || axis >= x->rank)
        return ingot_error(c, INGOT_INVALID, "element: axis %d of a tensor of rank %d", axis,
                           x->rank);
    const int rank = x->rank - 1;
    for (int a = 0; a < rank; a++)
        dims[a] = x->shape[a + (a >= axis)];
    if (shape_is_empty(1, x->shape + axis))
        return ingot_expand(c, ingot_like(c, x, 0), rank, dims);
    for (int a = 0; a <= rank; a++)
        index[a] = a == axis ? i : ingot_iota(c, rank, dims, a - (a > axis));
    return ingot_gather(c, x, index);
}

/* Beside the contents of tensors in the context's memo. */
static uint64_t check_key(Node *n)
{
    return context_key(MEMO_CHECKED, n->id);
}

ingot_tensor *ingot_index_checked(ingot_context *c, ingot_tensor *x, bool wraps)
{
    if (x->op != OP_GATHER && x->op != OP_UPDATE)
        return x;
    bool never;
    if (!index_places(c, x, wraps, &never))
        return c->poison;
    if (never)
        return x->op == OP_UPDATE
                   ? x->src[0]
                   : uniform_make(c, node_const_zero(c, (ingot_dtype)x->dtype), x->rank, x->shape);
    map_put(&c->memo, check_key(x), (void *)(uintptr_t)(wraps ? INDEX_WRAPS : INDEX_PLAIN));
    return x;
}

IndexCheck index_check_of(Context *c, Node *n)
{
    return (IndexCheck)(uintptr_t)map_get(&c->memo, check_key(n));
}

ingot_tensor *ingot_update(ingot_context *c, ingot_update_op op, ingot_tensor *x, ingot_tensor *v,
                           ingot_tensor *const *index)
{
    Node *src[2 + INGOT_MAX_RANK], *dims[INGOT_MAX_RANK];
    int rank;
    if (poisoned(x) || poisoned(v))
        return c->poison;
    if ((int)op < 0 || op > INGOT_MIN)
        return ingot_error(c, INGOT_INVALID, "update %d does not exist", (int)op);
    if (x->dtype != v->dtype)
        return ingot_error(c, INGOT_INVALID, "update: the tensor is %s, the new values %s",
                           dtype_info[x->dtype].name, dtype_info[v->dtype].name);
    if (op != INGOT_SET && !dtype_is_float(x->dtype) && !dtype_is_int(x->dtype))
        return ingot_error(c, INGOT_UNSUPPORTED, "update of %s by arithmetic",
                           dtype_info[x->dtype].name);
    if (x->rank == 0)
        return ingot_error(c, INGOT_INVALID, "update of a scalar");
    for (int i = 0; i < x->rank; i++) {
        if (poisoned(index[i]) || !index_check(c, "update", index[i]))
            return c->poison;
        src[2 + i] = index_cast(c, index[i]);
    }
    src[0] = x;
    src[1] = v;
    if (!broadcast_all(c, "update", 1 + x->rank, src + 1, &rank, dims))
        return c->poison;
    if (shape_is_empty(rank, dims) || shape_is_empty(x->rank, x->shape))
        return x;
    return node_make(c, OP_UPDATE, (ingot_dtype)x->dtype, (Arg){.i = op}, 2 + x->rank, src, x->rank,
                     x->shape);
}

ingot_tensor *ingot_contiguous(ingot_context *c, ingot_tensor *x)
{
    switch (x->op) {
    case OP_POISON:
    case OP_INPUT:
    case OP_DATA:
    case OP_STATE:
    case OP_PARAM:
    case OP_CONST:
    case OP_KEEP:
    case OP_UPDATE:
    case OP_PROJ: return x; /* stored in any case */
    default: break;
    }
    if (uniform(x))
        return x;
    return node_kept(c, x);
}
