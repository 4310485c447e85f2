/* compose.c - movement made of movement: squeeze, transpose, slices, concat, tile, windows.
 *
 * A slice with a step and a sliding window are GATHERs whose indices are affine in the result's
 * coordinates; the simplifier sees through them, so they cost no more than a view. */
#include "builder.h"

static bool axis_check(Context *c, const char *what, int rank, int axis)
{
    if (axis >= 0 && axis < rank)
        return true;
    ingot_error(c, INGOT_INVALID, "%s: axis %d of a tensor of rank %d", what, axis, rank);
    return false;
}

ingot_tensor *ingot_unsqueeze(ingot_context *c, ingot_tensor *x, int axis)
{
    Node *dims[INGOT_MAX_RANK + 1];
    if (poisoned(x) || !axis_check(c, "unsqueeze", x->rank + 1, axis))
        return c->poison;
    for (int i = 0; i <= x->rank; i++)
        dims[i] = i == axis ? idx(c, 1) : x->shape[i - (i > axis)];
    return ingot_reshape(c, x, x->rank + 1, dims);
}

ingot_tensor *ingot_squeeze(ingot_context *c, ingot_tensor *x, int axis)
{
    Node *dims[INGOT_MAX_RANK];
    if (poisoned(x) || !axis_check(c, "squeeze", x->rank, axis))
        return c->poison;
    if (x->shape[axis]->op == OP_CONST && !idx_is(x->shape[axis], 1))
        return ingot_error(c, INGOT_INVALID, "squeeze: axis %d of shape %s is not 1", axis,
                           shape_text(c, x->rank, x->shape));
    for (int i = 0; i < x->rank - 1; i++)
        dims[i] = x->shape[i + (i >= axis)];
    return ingot_reshape(c, x, x->rank - 1, dims);
}

ingot_tensor *ingot_flatten(ingot_context *c, ingot_tensor *x, int from, int to)
{
    Node *dims[INGOT_MAX_RANK + 1];
    if (poisoned(x))
        return x;
    if (from < 0 || to < from || to > x->rank)
        return ingot_error(c, INGOT_INVALID, "flatten: axes %d to %d of a tensor of rank %d", from,
                           to, x->rank);
    int n = 0;
    for (int i = 0; i < from; i++)
        dims[n++] = x->shape[i];
    dims[n++] = shape_numel(c, to - from, x->shape + from);
    for (int i = to; i < x->rank; i++)
        dims[n++] = x->shape[i];
    return ingot_reshape(c, x, n, dims);
}

ingot_tensor *ingot_transpose(ingot_context *c, ingot_tensor *x, int a, int b)
{
    int perm[INGOT_MAX_RANK];
    if (poisoned(x) || !axis_check(c, "transpose", x->rank, a) ||
        !axis_check(c, "transpose", x->rank, b))
        return c->poison;
    for (int i = 0; i < x->rank; i++)
        perm[i] = i == a ? b : i == b ? a : i;
    return ingot_permute(c, x, perm);
}

/* base + iota(axis) * step, as an index tensor of the given shape. */
static Node *affine_index(Context *c, int rank, Node *const *dims, int axis, Node *base,
                          int64_t step)
{
    Node *i = ingot_iota(c, rank, dims, axis);
    if (step != 1)
        i = ingot_mul(c, i, node_const_i(c, INGOT_I64, step));
    return idx_is(base, 0) ? i : ingot_add(c, i, ingot_from_dim(c, base));
}

ingot_tensor *ingot_slice(ingot_context *c, ingot_tensor *x, int axis, ingot_dim *begin,
                          ingot_dim *count, int64_t step)
{
    Node *from[INGOT_MAX_RANK], *size[INGOT_MAX_RANK], *index[INGOT_MAX_RANK];
    if (poisoned(x) || poisoned(begin) || poisoned(count) || !axis_check(c, "slice", x->rank, axis))
        return c->poison;
    if (step == 0)
        return ingot_error(c, INGOT_INVALID, "slice: the step of axis %d is 0", axis);
    if (idx_is(count, 1))
        step = 1;
    for (int i = 0; i < x->rank; i++) {
        from[i] = idx(c, 0);
        size[i] = x->shape[i];
    }
    size[axis] = count;
    from[axis] = begin;
    if (step == 1)
        return ingot_shrink(c, x, from, size);
    if (step == -1) { /* the same elements, last first */
        from[axis] = idx_sub(c, begin, idx_sub(c, count, idx(c, 1)));
        return ingot_flip(c, ingot_shrink(c, x, from, size), 1u << axis);
    }
    if (!shape_check(c, "slice", x->rank, size))
        return c->poison;
    Node *last = idx_add(c, begin, idx_mul(c, idx_sub(c, count, idx(c, 1)), idx(c, step)));
    Node *room = idx_sub(c, idx_sub(c, x->shape[axis], idx(c, 1)), last);
    if (count->lo > 0 && (begin->hi < 0 || last->hi < 0 || room->hi < 0))
        return ingot_error(c, INGOT_INVALID,
                           "slice: axis %d of %s from %s, %s elements by %lld, is not inside it",
                           axis, shape_text(c, x->rank, x->shape), dim_text(c, begin),
                           dim_text(c, count), (long long)step);
    for (int i = 0; i < x->rank; i++)
        index[i] = i == axis ? affine_index(c, x->rank, size, i, begin, step)
                             : ingot_iota(c, x->rank, size, i);
    return ingot_gather(c, x, index);
}

ingot_tensor *ingot_window(ingot_context *c, ingot_tensor *x, int axis, int64_t k, int64_t stride,
                           int64_t dilation)
{
    Node *dims[INGOT_MAX_RANK + 1], *index[INGOT_MAX_RANK];
    if (poisoned(x) || !axis_check(c, "window", x->rank, axis))
        return c->poison;
    if (k < 1 || stride < 1 || dilation < 1)
        return ingot_error(c, INGOT_INVALID,
                           "window: size %lld, stride %lld, dilation %lld; each must be at least 1",
                           (long long)k, (long long)stride, (long long)dilation);
    if (k > 1 && dilation > MAX_ELEMENTS / k)
        return ingot_error(c, INGOT_INVALID, "window: size %lld with dilation %lld is too wide",
                           (long long)k, (long long)dilation);
    Node *room = idx_sub(c, x->shape[axis], idx(c, dilation * (k - 1) + 1));
    Node *out = idx_add(c, idx_div(c, room, idx(c, stride)), idx(c, 1));
    if (out->lo < 0)
        out = idx_max(c, out, idx(c, 0));
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == axis ? out : x->shape[i];
    dims[x->rank] = idx(c, k);
    if (!shape_check(c, "window", x->rank + 1, dims))
        return c->poison;
    if (k == 1 && stride == 1)
        return ingot_reshape(c, x, x->rank + 1, dims);
    for (int i = 0; i < x->rank; i++)
        index[i] = ingot_iota(c, x->rank + 1, dims, i);
    Node *tap = affine_index(c, x->rank + 1, dims, x->rank, idx(c, 0), dilation);
    Node *at = affine_index(c, x->rank + 1, dims, axis, idx(c, 0), stride);
    index[axis] = idx_is(out, 1) ? tap : k == 1 ? at : ingot_add(c, at, tap);
    return ingot_gather(c, x, index);
}

ingot_tensor *ingot_concat(ingot_context *c, int n, ingot_tensor *const *x, int axis)
{
    Node *dims[INGOT_MAX_RANK];
    if (n < 1)
        return ingot_error(c, INGOT_INVALID, "concat of no tensors");
    for (int i = 0; i < n; i++)
        if (poisoned(x[i]))
            return x[i];
    int rank = x[0]->rank;
    if (!axis_check(c, "concat", rank, axis))
        return c->poison;
    Node **part = NEWN(c->arena, Node *, n);
    int npart = 0;
    bool equal = true;
    for (int a = 0; a < rank; a++)
        dims[a] = a == axis ? idx(c, 0) : x[0]->shape[a];
    for (int i = 0; i < n; i++) {
        bool ok = x[i]->rank == rank && x[i]->dtype == x[0]->dtype;
        for (int a = 0; ok && a < rank; a++)
            ok = a == axis || x[i]->shape[a]->op != OP_CONST || dims[a]->op != OP_CONST ||
                 x[i]->shape[a] == dims[a];
        for (int a = 0; ok && a < rank; a++) {
            if (a == axis)
                continue;
            const char *size = arena_printf(c->arena, "the size of axis %d of part %d", a, i);
            dims[a] = ingot_require_equal(c, x[i]->shape[a], dims[a], size);
            if (poisoned(dims[a]))
                return c->poison;
        }
        if (!ok)
            return ingot_error(
                c, INGOT_INVALID,
                "concat: part %d is %s %s, part 0 is %s %s; all but axis %d must agree", i,
                dtype_info[x[i]->dtype].name, shape_text(c, x[i]->rank, x[i]->shape),
                dtype_info[x[0]->dtype].name, shape_text(c, rank, x[0]->shape), axis);
        dims[axis] = idx_add(c, dims[axis], x[i]->shape[axis]);
        if (idx_is(x[i]->shape[axis], 0))
            continue;
        part[npart++] = x[i];
        equal &= uniform(x[i]) && uniform(x[i]) == uniform(part[0]);
    }
    if (!shape_check(c, "concat", rank, dims))
        return c->poison;
    if (npart == 0 || shape_is_empty(rank, dims))
        return uniform_make(c, node_const_zero(c, (ingot_dtype)x[0]->dtype), rank, dims);
    if (npart == 1)
        return part[0];
    if (equal)
        return uniform_make(c, uniform(part[0]), rank, dims);
    return node_make(c, OP_CONCAT, (ingot_dtype)x[0]->dtype, (Arg){.i = axis}, npart, part, rank,
                     dims);
}

ingot_tensor *ingot_stack(ingot_context *c, int n, ingot_tensor *const *x, int axis)
{
    if (n < 1)
        return ingot_error(c, INGOT_INVALID, "stack of no tensors");
    Node **part = NEWN(c->arena, Node *, n);
    for (int i = 0; i < n; i++)
        part[i] = ingot_unsqueeze(c, x[i], axis);
    return ingot_concat(c, n, part, axis);
}

/* [a, b] -> [1, a, 1, b] -> [r, a, s, b] -> [r*a, s*b]; axes of size 1 or repeated once need no
 * pair. */
ingot_tensor *ingot_tile(ingot_context *c, ingot_tensor *x, ingot_dim *const *repeats)
{
    Node *thin[2 * INGOT_MAX_RANK], *wide[2 * INGOT_MAX_RANK], *out[INGOT_MAX_RANK];
    if (poisoned(x) || !shape_check(c, "tile", x->rank, repeats))
        return c->poison;
    int n = 0;
    for (int i = 0; i < x->rank; i++) {
        out[i] = idx_mul(c, x->shape[i], repeats[i]);
        bool single = idx_is(x->shape[i], 1), once = idx_is(repeats[i], 1);
        if (!single && !once) {
            thin[n] = idx(c, 1);
            wide[n++] = repeats[i];
        }
        thin[n] = x->shape[i];
        wide[n++] = single ? repeats[i] : x->shape[i];
    }
    if (!shape_check(c, "tile", x->rank, out))
        return c->poison;
    if (shape_is_empty(x->rank, out))
        return uniform_make(c, node_const_zero(c, (ingot_dtype)x->dtype), x->rank, out);
    if (n > INGOT_MAX_RANK)
        return ingot_error(c, INGOT_UNSUPPORTED, "tile of %d axes at once", x->rank);
    return ingot_reshape(c, ingot_expand(c, ingot_reshape(c, x, n, thin), n, wide), x->rank, out);
}
