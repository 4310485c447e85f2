/* ops_index.c - gathers and scatters in the forms of the ONNX specification, and tensors made of
 * coordinates: one-hot, triangles, ranges, running sums, and the pixel shuffles. */
#include "ops.h"

/* ---- gather and scatter ---------------------------------------------------------------------- */

/* Coordinates of `index`'s shape: its own along the other axes, its (wrapped) values along
 * `axis`. */
static bool element_indices(ingot_context *c, const char *what, ingot_tensor *x,
                            ingot_tensor *index, int axis, ingot_tensor **at)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    if (ingot_rank(index) != ingot_rank(x)) {
        ingot_error(c, INGOT_INVALID,
                    "%s: the index has rank %d, the tensor %d; they must be equal", what,
                    ingot_rank(index), ingot_rank(x));
        return false;
    }
    int rank = ops_dims(index, dims);
    for (int a = 0; a < rank; a++)
        at[a] = a == axis ? ingot_wrap_index(c, index, ingot_shape(x, a))
                          : ingot_iota(c, rank, dims, a);
    return true;
}

/* out[i, j] = x[index[i, j], j] for axis 0 (GatherElements, torch.gather) */
ingot_tensor *ingot_gather_elements(ingot_context *c, ingot_tensor *x, ingot_tensor *index,
                                    int axis)
{
    ingot_tensor *at[INGOT_MAX_RANK];
    if (ingot_is_poison(x) || ingot_is_poison(index) ||
        (axis = ops_axis(c, "gather_elements", x, axis)) < 0 ||
        !element_indices(c, "gather_elements", x, index, axis, at))
        return ingot_poison(c);
    return ingot_index_checked(c, ingot_gather(c, x, at), true);
}

ingot_tensor *ingot_scatter_elements(ingot_context *c, ingot_update_op op, ingot_tensor *x,
                                     ingot_tensor *index, ingot_tensor *v, int axis)
{
    ingot_tensor *at[INGOT_MAX_RANK];
    if (ingot_is_poison(x) || ingot_is_poison(index) ||
        (axis = ops_axis(c, "scatter_elements", x, axis)) < 0 ||
        !element_indices(c, "scatter_elements", x, index, axis, at))
        return ingot_poison(c);
    return ingot_index_checked(c, ingot_update(c, op, x, v, at), true);
}

/* The tuples index[..., k] address x's axes b .. b+k-1; axes before are batch, those after are
 * whole slices.  at[]: one index per axis of x over the shape index.shape[:-1] + x.shape[b+k:]. */
static bool tuple_indices(ingot_context *c, const char *what, ingot_tensor *x, ingot_tensor *index,
                          int batch, ingot_tensor **at)
{
    ingot_dim *dims[2 * INGOT_MAX_RANK], *part[2 * INGOT_MAX_RANK];
    int64_t k = 0;
    int tuple = ingot_rank(index) - 1;
    if (tuple < 0 || !ingot_dim_is_const(ingot_shape(index, tuple), &k) || batch < 0 ||
        batch > tuple || batch + k > ingot_rank(x)) {
        ingot_error(
            c, INGOT_INVALID,
            "%s: the index's last dim must be a constant of at most %d, the rank of the tensor "
            "less %d batch axes",
            what, ingot_rank(x) - batch, batch);
        return false;
    }
    int after = batch + (int)k, rank = tuple + ingot_rank(x) - after;
    if (rank > INGOT_MAX_RANK) {
        ingot_error(c, INGOT_UNSUPPORTED, "%s: a result of rank %d", what, rank);
        return false;
    }
    for (int i = 0; i < rank; i++) {
        dims[i] = i < tuple ? ingot_shape(index, i) : ingot_shape(x, after + i - tuple);
        part[i] = i < tuple ? dims[i] : ingot_dim_const(c, 1);
    }
    for (int a = 0; a < ingot_rank(x); a++) {
        if (a < batch || a >= after) {
            at[a] = ingot_iota(c, rank, dims, a < batch ? a : tuple + a - after);
            continue;
        }
        ingot_tensor *column =
            ingot_slice(c, index, tuple, ingot_dim_const(c, a - batch), ingot_dim_const(c, 1), 1);
        column = ingot_wrap_index(c, column, ingot_shape(x, a));
        at[a] = ingot_reshape(c, column, rank, part);
    }
    return true;
}

/* GatherND: out[c..., s...] = x[b..., index[c...][0], ..., index[c...][k-1], s...] */
ingot_tensor *ingot_gather_nd(ingot_context *c, ingot_tensor *x, ingot_tensor *index, int batch)
{
    ingot_tensor *at[INGOT_MAX_RANK];
    if (ingot_is_poison(x) || ingot_is_poison(index) ||
        !tuple_indices(c, "gather_nd", x, index, batch, at))
        return ingot_poison(c);
    return ingot_index_checked(c, ingot_gather(c, x, at), true);
}

ingot_tensor *ingot_scatter_nd(ingot_context *c, ingot_update_op op, ingot_tensor *x,
                               ingot_tensor *index, ingot_tensor *v)
{
    ingot_tensor *at[INGOT_MAX_RANK];
    if (ingot_is_poison(x) || ingot_is_poison(index) ||
        !tuple_indices(c, "scatter_nd", x, index, 0, at))
        return ingot_poison(c);
    return ingot_index_checked(c, ingot_update(c, op, x, v, at), true);
}

/* ---- from coordinates ------------------------------------------------------------------------ */

/* off everywhere but `on` at index[...] along a new axis of size depth; indices -depth..depth-1. */
ingot_tensor *ingot_one_hot(ingot_context *c, ingot_tensor *index, ingot_dim *depth, int axis,
                            ingot_tensor *off, ingot_tensor *on)
{
    ingot_dim *dims[INGOT_MAX_RANK + 1];
    if (ingot_is_poison(index) || ingot_is_poison(depth))
        return ingot_poison(c);
    int rank = ingot_rank(index) + 1, a = axis < 0 ? axis + rank : axis;
    if (a < 0 || a >= rank || rank > INGOT_MAX_RANK)
        return ingot_error(c, INGOT_INVALID, "one_hot: axis %d of a result of rank %d", axis, rank);
    index = ingot_wrap_index(c, ingot_cast(c, index, INGOT_I64), depth);
    for (int i = 0; i < rank; i++)
        dims[i] = i == a ? depth : ingot_dim_const(c, 1);
    ingot_tensor *hot = ingot_eq(c, ingot_iota(c, rank, dims, a), ingot_unsqueeze(c, index, a));
    return ingot_where(c, hot, on, off);
}

/* x where column >= row + k (upper) or column <= row + k (lower), 0 elsewhere, in the last two
 * axes */
ingot_tensor *ingot_trilu(ingot_context *c, ingot_tensor *x, ingot_dim *k, bool upper)
{
    if (ingot_is_poison(x) || ingot_is_poison(k))
        return ingot_poison(c);
    int rank = ingot_rank(x);
    if (rank < 2)
        return ingot_error(c, INGOT_INVALID,
                           "trilu: a tensor of rank %d; it needs rows and columns", rank);
    ingot_dim *dims[2] = {ingot_shape(x, rank - 2), ingot_shape(x, rank - 1)};
    ingot_tensor *row = ingot_add(c, ingot_iota(c, 2, dims, 0), ingot_from_dim(c, k));
    ingot_tensor *column = ingot_iota(c, 2, dims, 1);
    ingot_tensor *keep = upper ? ingot_ge(c, column, row) : ingot_le(c, column, row);
    return ingot_where(c, keep, x, ingot_like(c, x, 0));
}

/* start + i step, n numbers, in start's dtype */
ingot_tensor *ingot_range(ingot_context *c, ingot_dim *n, ingot_tensor *start, ingot_tensor *step)
{
    if (ingot_is_poison(n) || ingot_is_poison(start))
        return ingot_poison(c);
    ingot_tensor *i = ingot_cast(c, ingot_iota(c, 1, &n, 0), ingot_dtype_of(start));
    return ingot_add(c, start, ingot_mul(c, i, step));
}

/* x moved by s along an axis, identity elements coming in; also where s may pass the size. */
static ingot_tensor *shift(ingot_context *c, ingot_tensor *x, int axis, int64_t s,
                           ingot_tensor *fill)
{
    ingot_dim *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK], *lo[INGOT_MAX_RANK];
    int rank = ops_dims(x, size);
    ingot_dim *zero = ingot_dim_const(c, 0);
    for (int i = 0; i < rank; i++)
        begin[i] = lo[i] = zero;
    ingot_dim *n = size[axis];
    size[axis] = ingot_dim_max(c, ingot_dim_sub(c, n, ingot_dim_const(c, s)), zero);
    lo[axis] = ingot_dim_sub(c, n, size[axis]);
    return ingot_pad_value(c, ingot_shrink(c, x, begin, size), lo, begin, fill);
}

ingot_tensor *ingot_cumulate(ingot_context *c, ingot_reduce_op op, ingot_tensor *x, int axis,
                             bool exclusive, bool reverse)
{
    if (ingot_is_poison(x) || (axis = ops_axis(c, "cumulate", x, axis)) < 0)
        return ingot_poison(c);
    if (exclusive && op != INGOT_REDUCE_ADD && op != INGOT_REDUCE_MUL)
        return ingot_error(c, INGOT_UNSUPPORTED, "cumulate: exclusive sums and products only");
    ingot_dtype d = ingot_dtype_of(x);
    ingot_tensor *y = ops_widen(c, reverse ? ingot_flip(c, x, 1u << axis) : x);
    if (exclusive)
        y = shift(c, y, axis, 1, ingot_like(c, y, op == INGOT_REDUCE_ADD ? 0 : 1));
    y = ingot_scan(c, op, y, axis);
    return ingot_cast(c, reverse ? ingot_flip(c, y, 1u << axis) : y, d);
}

ingot_tensor *ingot_cumsum(ingot_context *c, ingot_tensor *x, int axis, bool exclusive,
                           bool reverse)
{
    return ingot_cumulate(c, INGOT_REDUCE_ADD, x, axis, exclusive, reverse);
}

/* ---- pixel shuffles -------------------------------------------------------------------------- */

static bool shuffle_check(ingot_context *c, const char *what, ingot_tensor *x, int64_t block)
{
    if (ingot_rank(x) == 4 && block >= 1)
        return true;
    ingot_error(c, INGOT_INVALID, "%s: x has rank %d, block is %lld; x must be [N, C, H, W]", what,
                ingot_rank(x), (long long)block);
    return false;
}

/* DCR: [N, b, b, C/bb, H, W] -> N, C/bb, H, b, W, b;  CRD: [N, C/bb, b, b, H, W] -> the same */
ingot_tensor *ingot_depth_to_space(ingot_context *c, ingot_tensor *x, int64_t block, bool crd)
{
    if (ingot_is_poison(x) || !shuffle_check(c, "depth_to_space", x, block))
        return ingot_poison(c);
    ingot_dim *b = ingot_dim_const(c, block), *n = ingot_shape(x, 0), *h = ingot_shape(x, 2);
    ingot_dim *w = ingot_shape(x, 3);
    ingot_dim *depth = ingot_dim_div(c, ingot_shape(x, 1), ingot_dim_const(c, block * block));
    ingot_tensor *y = crd ? ingot_reshape(c, x, 6, (ingot_dim *[]){n, depth, b, b, h, w})
                          : ingot_reshape(c, x, 6, (ingot_dim *[]){n, b, b, depth, h, w});
    y = ingot_permute(c, y, crd ? (int[]){0, 1, 4, 2, 5, 3} : (int[]){0, 3, 4, 1, 5, 2});
    return ingot_reshape(c, y, 4,
                         (ingot_dim *[]){n, depth, ingot_dim_mul(c, h, b), ingot_dim_mul(c, w, b)});
}

/* [N, C, H/b, b, W/b, b] -> N, b, b, C, H/b, W/b */
ingot_tensor *ingot_space_to_depth(ingot_context *c, ingot_tensor *x, int64_t block)
{
    if (ingot_is_poison(x) || !shuffle_check(c, "space_to_depth", x, block))
        return ingot_poison(c);
    ingot_dim *b = ingot_dim_const(c, block), *n = ingot_shape(x, 0), *depth = ingot_shape(x, 1);
    ingot_dim *h = ingot_dim_div(c, ingot_shape(x, 2), b),
              *w = ingot_dim_div(c, ingot_shape(x, 3), b);
    ingot_tensor *y = ingot_reshape(c, x, 6, (ingot_dim *[]){n, depth, h, b, w, b});
    y = ingot_permute(c, y, (int[]){0, 3, 5, 1, 2, 4});
    ingot_dim *channels = ingot_dim_mul(c, depth, ingot_dim_const(c, block * block));
    return ingot_reshape(c, y, 4, (ingot_dim *[]){n, channels, h, w});
}
