/*
 * onnx_index.c - ONNX operators that read or write elements at computed places: Gather*,
 * Scatter*, Slice, OneHot, Trilu, Compress, TopK, cumulative sums.
 */
#include <string.h>

#include "onnx.h"

#define X n->in[0]
#define Y n->in[1]

/* ---- gather --------------------------------------------------------------------------------- */

ingot_tensor *onnx_gather(Lowering *n)
{
    int axis;
    if (!axis_in(n, attr_int(n, "axis", 0), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    return ingot_take(n->c, X, Y, axis);
}

/* Coordinates of the elements of a tensor shaped like t; along `axis` they are t itself. */
static void element_index(Lowering *n, ingot_tensor *x, ingot_tensor *t, int axis,
                          ingot_tensor **index)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank = ingot_rank(t);
    shape_of(t, dims);
    for (int a = 0; a < rank; a++)
        index[a] = a == axis ? ingot_wrap_index(n->c, as(n, t, INGOT_I64), ingot_shape(x, a))
                             : ingot_iota(n->c, rank, dims, a);
}

ingot_tensor *onnx_gather_elements(Lowering *n)
{
    ingot_tensor *index[INGOT_MAX_RANK];
    int axis;
    if (ingot_rank(X) != ingot_rank(Y))
        return fault(n, "its inputs have ranks %d and %d, which have to be equal", ingot_rank(X),
                     ingot_rank(Y));
    if (!axis_in(n, attr_int(n, "axis", 0), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    element_index(n, X, Y, axis, index);
    return ingot_index_checked(n->c, ingot_gather(n->c, X, index), true);
}

/* x[t[.., 0], t[.., 1], ..] for tuples in the last axis of t; `batch` leading axes are shared. The
 * index tensors have t's leading axes and then x's axes that no tuple reaches. */
static bool tuple_index(Lowering *n, ingot_tensor *x, ingot_tensor *t, int batch,
                        ingot_tensor **index)
{
    int64_t k;
    int lead = ingot_rank(t) - 1, rank = 0;
    if (ingot_rank(t) < 1 || !ingot_dim_is_const(ingot_shape(t, lead), &k)) {
        unsupported(n, "the last dim of its indices is not known when compiling");
        return false;
    }
    if (batch < 0 || batch > lead || k < 0 || k + batch > ingot_rank(x)) {
        fault(n, "indices of %lld places and %d batch axes do not fit rank %d", (long long)k, batch,
              ingot_rank(x));
        return false;
    }
    int done = batch + (int)k, out_rank = lead + ingot_rank(x) - done;
    if (out_rank > INGOT_MAX_RANK) {
        unsupported(n, "a result of rank %d is above %d", out_rank, INGOT_MAX_RANK);
        return false;
    }
    ingot_dim *dims[INGOT_MAX_RANK];
    for (; rank < lead; rank++)
        dims[rank] = ingot_shape(t, rank);
    for (int a = done; a < ingot_rank(x); a++)
        dims[rank++] = ingot_shape(x, a);
    for (int a = 0; a < ingot_rank(x); a++) {
        if (a < batch || a >= done) {
            index[a] = ingot_iota(n->c, out_rank, dims, a < batch ? a : a - done + lead);
            continue;
        }
        ingot_tensor *i = ingot_slice(n->c, t, lead, dim(n, a - batch), dim(n, 1), 1);
        i = ingot_wrap_index(n->c, as(n, ingot_squeeze(n->c, i, lead), INGOT_I64),
                             ingot_shape(x, a));
        i = align_axis(n, i, 0, out_rank);
        index[a] = out_rank ? ingot_expand(n->c, i, out_rank, dims) : i;
    }
    return true;
}

ingot_tensor *onnx_gather_nd(Lowering *n)
{
    ingot_tensor *index[INGOT_MAX_RANK];
    int64_t batch = attr_int(n, "batch_dims", 0);
    if (batch > INGOT_MAX_RANK || !tuple_index(n, X, Y, (int)batch, index))
        return n->failed ? ingot_poison(n->c) : fault(n, "its batch_dims are out of range");
    return ingot_index_checked(n->c, ingot_gather(n->c, X, index), true);
}

/* ---- scatter -------------------------------------------------------------------------------- */

static bool reduction(Lowering *n, ingot_update_op *op)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    static const ingot_update_op ops[] = {INGOT_SET, INGOT_ADD, INGOT_MUL, INGOT_MAX, INGOT_MIN};
    const char *name = attr_string(n, "reduction", "none");
    for (int i = 0; i < COUNT(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *op = ops[i];
            return true;
        }
    fault(n, "its reduction '%s' is unknown", name);
    return false;
}

/* x with updates. Of bools a sum and the greatest are whether one is true, a product and the least
 * whether all are: in u8, which has an order. */
static ingot_tensor *updated(Lowering *n, ingot_update_op op, ingot_tensor **index)
{
    ingot_tensor *x = X, *update = n->in[2];
    bool logic = ingot_dtype_of(x) == INGOT_BOOL && op != INGOT_SET;
    if (logic) {
        x = as(n, x, INGOT_U8);
        update = as(n, update, INGOT_U8);
        op = op == INGOT_ADD || op == INGOT_MAX ? INGOT_MAX : INGOT_MIN;
    }
    x = ingot_index_checked(n->c, ingot_update(n->c, op, x, update, index), true);
    return logic ? as(n, x, INGOT_BOOL) : x;
}

ingot_tensor *onnx_scatter_elements(Lowering *n)
{
    ingot_tensor *index[INGOT_MAX_RANK];
    ingot_update_op op;
    int axis;
    if (ingot_rank(X) != ingot_rank(Y))
        return fault(n, "its inputs have ranks %d and %d, which have to be equal", ingot_rank(X),
                     ingot_rank(Y));
    if (!reduction(n, &op) || !axis_in(n, attr_int(n, "axis", 0), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    element_index(n, X, Y, axis, index);
    return updated(n, op, index);
}

ingot_tensor *onnx_scatter_nd(Lowering *n)
{
    ingot_tensor *index[INGOT_MAX_RANK];
    ingot_update_op op;
    if (!reduction(n, &op) || !tuple_index(n, X, Y, 0, index))
        return ingot_poison(n->c);
    return updated(n, op, index);
}

/* cache[b, .., (start[b] + i) along axis, ..] = update */
ingot_tensor *onnx_tensor_scatter(Lowering *n)
{
    ingot_tensor *index[INGOT_MAX_RANK];
    ingot_dim *dims[INGOT_MAX_RANK];
    int axis, rank = ingot_rank(X);
    bool circular = attr_is(n, "mode", "linear", "circular");
    if (ingot_rank(Y) != rank || !axis_in(n, attr_int(n, "axis", -2), rank, &axis) || axis == 0)
        return n->failed ? ingot_poison(n->c) : fault(n, "its axis or ranks do not fit");
    shape_of(Y, dims);
    for (int a = 0; a < rank; a++)
        index[a] = ingot_iota(n->c, rank, dims, a);
    if (n->n_in > 2 && n->in[2])
        index[axis] =
            ingot_add(n->c, index[axis], align_axis(n, as(n, n->in[2], INGOT_I64), 0, rank));
    if (circular)
        index[axis] = ingot_mod(n->c, index[axis], ingot_from_dim(n->c, ingot_shape(X, axis)));
    return ingot_index_checked(n->c, ingot_update(n->c, INGOT_SET, X, Y, index), false);
}

/* ---- slices --------------------------------------------------------------------------------- */

/* size - size / 2 is never below zero, which its bounds alone do not tell. */
static bool never_below_zero(Lowering *n, ingot_dim *at)
{
    return ingot_dim_lo(at) >= 0 || ingot_dim_equal(ingot_dim_max(n->c, at, dim(n, 0)), at);
}

/* A start or end of a slice, from 0 (or -1) up; NULL if nothing is known of it. */
static ingot_dim *slice_bound(Lowering *n, ingot_dim *at, ingot_dim *size, int64_t lo,
                              ingot_dim *hi)
{
    if (ingot_dim_hi(at) >= 0 && !never_below_zero(n, at)) {
        if (ingot_dim_lo(at) <= -(INT64_C(1) << 40) || ingot_dim_hi(at) >= INT64_C(1) << 40)
            return NULL;
        ingot_dim *below = ingot_dim_max(n->c, ingot_dim_sub(n->c, dim(n, 0), at), dim(n, 0));
        ingot_dim *wraps =
            ingot_dim_min(n->c, below, dim(n, 1)); /* 1 where it counts from the end */
        at = ingot_dim_add(n->c, at, ingot_dim_mul(n->c, size, wraps));
    } else if (ingot_dim_hi(at) < 0) {
        if (ingot_dim_lo(at) <= -(INT64_C(1) << 62))
            return dim(n, lo);
        at = ingot_dim_add(n->c, at, size);
    } else if (ingot_dim_lo(at) >= INT64_C(1) << 40) {
        return hi;
    }
    return ingot_dim_min(n->c, ingot_dim_max(n->c, at, dim(n, lo)), hi);
}

static ingot_tensor *slice_axis(Lowering *n, ingot_tensor *x, int axis, ingot_dim *start,
                                ingot_dim *end, int64_t step)
{
    ingot_dim *size = ingot_shape(x, axis), *last = ingot_dim_sub(n->c, size, dim(n, 1));
    int64_t stride = step > 0 ? step : -step;
    bool down = step < 0;
    start = slice_bound(n, start, size, 0, down ? last : size);
    end = slice_bound(n, end, size, down ? -1 : 0, down ? last : size);
    if (!start || !end)
        return unsupported(n, "its bounds are not known when compiling");
    ingot_dim *span = down ? ingot_dim_sub(n->c, start, end) : ingot_dim_sub(n->c, end, start);
    ingot_dim *count =
        ingot_dim_div(n->c, ingot_dim_add(n->c, span, dim(n, stride - 1)), dim(n, stride));
    count = ingot_dim_max(n->c, count, dim(n, 0));
    if (dim_is(size, 0))
        return x;
    if (dim_is(count, 0))
        start = dim(n, 0);
    return ingot_slice(n->c, x, axis, start, count, step);
}

static int slice_lists(Lowering *n, ingot_dim *const **starts, ingot_dim *const **ends,
                       const int64_t **axes, const int64_t **steps)
{
    const int64_t *list[2];
    int count, counts[4] = {-1, -1, -1, -1};
    if (n->version < 10) {
        static const char *const names[] = {"starts", "ends"};
        ingot_dim **made[2];
        for (int k = 0; k < 2; k++) {
            counts[k] = attr_ints(n, names[k], &list[k]);
            made[k] =
                ingot_alloc(n->c, (size_t)(counts[k] < 0 ? 1 : counts[k] + 1) * sizeof *made[k]);
            for (int i = 0; i < counts[k]; i++)
                made[k][i] = dim(n, list[k][i]);
        }
        *starts = made[0];
        *ends = made[1];
        counts[2] = attr_ints(n, "axes", axes);
    } else {
        if (n->n_in < 3 || !Y || !n->in[2]) {
            fault(n, "its starts or ends are missing");
            return -1;
        }
        counts[0] = dims_in(n, 1, starts);
        counts[1] = n->failed ? -1 : dims_in(n, 2, ends);
        if (!n->failed && n->n_in > 3 && n->in[3])
            counts[2] = ints_in(n, 3, axes);
        if (!n->failed && n->n_in > 4 && n->in[4])
            counts[3] = ints_in(n, 4, steps);
    }
    if (n->failed)
        return -1;
    count = counts[0];
    if (count < 0 || counts[1] != count || (counts[2] >= 0 && counts[2] != count) ||
        (counts[3] >= 0 && counts[3] != count) || (counts[2] < 0 && count > ingot_rank(X))) {
        fault(n, "its starts, ends, axes and steps do not have the same length");
        return -1;
    }
    return count;
}

static bool slice_known(Lowering *n)
{
    ingot_dim *list[INGOT_MAX_RANK];
    for (int i = 1; i < n->n_in; i++)
        if (n->in[i] && ingot_contents(n->c, n->in[i], list, INGOT_MAX_RANK) < 0)
            return false;
    return true;
}

ingot_tensor *onnx_slice(Lowering *n)
{
    ingot_dim *const *starts, *const *ends;
    const int64_t *axes = NULL, *steps = NULL;
    unsigned seen = 0;
    if (n->version >= 10 && n->n_in > 2 && Y && n->in[2] && !slice_known(n))
        return slice_at_run_time(n);
    int count = slice_lists(n, &starts, &ends, &axes, &steps);
    if (count < 0 || (axes && !axes_in(n, axes, count, ingot_rank(X), &seen)))
        return ingot_poison(n->c);
    ingot_tensor *y = X;
    for (int i = 0; i < count && !ingot_is_poison(y); i++) {
        int64_t step = steps ? steps[i] : 1;
        int axis = (int)(axes ? (axes[i] < 0 ? axes[i] + ingot_rank(X) : axes[i]) : i);
        if (step == 0)
            return fault(n, "step %d is 0", i);
        step = step < -INT32_MAX ? -INT32_MAX : step > INT32_MAX ? INT32_MAX : step;
        y = slice_axis(n, y, axis, starts[i], ends[i], step);
    }
    return y;
}

/* ---- made from coordinates ------------------------------------------------------------------ */

/* Depth on a new axis: on where the index is the place along it. */
ingot_tensor *onnx_one_hot(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK], *depth, *one = dim(n, 1);
    int axis, rank = ingot_rank(X) + 1;
    if (rank > INGOT_MAX_RANK)
        return unsupported(n, "a result of rank %d is above %d", rank, INGOT_MAX_RANK);
    if (!axis_in(n, attr_int(n, "axis", -1), rank, &axis))
        return ingot_poison(n->c);
    ingot_tensor *depth_in = as(n, reshape_scalar(n, Y), INGOT_I64);
    depth = size_at_run_time(n, 0, axis, rank, depth_in, -1);
    if (!depth)
        return unbounded_size(n, 0, axis);
    if (ingot_is_poison(depth))
        return depth;
    ingot_tensor *i = ingot_unsqueeze(n->c, as(n, X, INGOT_I64), axis);
    shape_of(i, dims);
    dims[axis] = depth;
    ingot_tensor *hit =
        ingot_eq(n->c, ingot_iota(n->c, rank, dims, axis), ingot_wrap_index(n->c, i, depth));
    ingot_tensor *off = reshape_scalar(n, ingot_slice(n->c, n->in[2], 0, dim(n, 0), one, 1));
    ingot_tensor *on = reshape_scalar(n, ingot_slice(n->c, n->in[2], 0, one, one, 1));
    return ingot_where(n->c, hit, on, off);
}

ingot_tensor *onnx_trilu(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank = ingot_rank(X);
    if (rank < 2)
        return fault(n, "its input has to have rank 2 or more");
    shape_of(X, dims);
    ingot_tensor *k = n->n_in > 1 && Y ? as(n, reshape_scalar(n, Y), INGOT_I64)
                                       : ingot_scalar_i(n->c, INGOT_I64, 0);
    ingot_tensor *row = ingot_iota(n->c, 2, dims + rank - 2, 0),
                 *column = ingot_iota(n->c, 2, dims + rank - 2, 1);
    ingot_tensor *limit = ingot_add(n->c, row, k);
    bool upper = attr_int(n, "upper", 1) != 0;
    ingot_tensor *kept = upper ? ingot_ge(n->c, column, limit) : ingot_le(n->c, column, limit);
    return ingot_where(n->c, kept, X,
                       ingot_cast(n->c, ingot_scalar_i(n->c, INGOT_I64, 0), ingot_dtype_of(X)));
}

ingot_tensor *onnx_eye_like(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_dtype dtype = ingot_dtype_of(X);
    if (ingot_rank(X) != 2)
        return fault(n, "its input has to have rank 2");
    if (attr_has(n, "dtype") && !ingot_onnx_dtype((int32_t)attr_int(n, "dtype", 0), &dtype))
        return fault(n, "its attribute 'dtype' is no element type");
    shape_of(X, dims);
    ingot_tensor *row = ingot_iota(n->c, 2, dims, 0), *column = ingot_iota(n->c, 2, dims, 1);
    ingot_tensor *k = ingot_scalar_i(n->c, INGOT_I64, attr_int(n, "k", 0));
    return ingot_cast(n->c, ingot_eq(n->c, column, ingot_add(n->c, row, k)), dtype);
}

/* ---- results whose size depends on data ----------------------------------------------------- */

ingot_tensor *onnx_nonzero(Lowering *n)
{
    return ingot_nonzero(n->c, X);
}

/* The slices (or, without an axis, elements) where the condition is true. */
ingot_tensor *onnx_compress(Lowering *n)
{
    int axis = -1;
    if (attr_has(n, "axis") && !axis_in(n, attr_int(n, "axis", 0), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    return ingot_compress(n->c, X, Y, axis);
}

ingot_tensor *onnx_unique(Lowering *n)
{
    int axis = -1;
    ingot_tensor *out[4];
    if (attr_has(n, "axis") && !axis_in(n, attr_int(n, "axis", 0), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    ingot_unique(n->c, X, axis, attr_int(n, "sorted", 1) != 0, out);
    for (int i = 1; i < 4; i++)
        n->out[i] = out[i];
    return out[0];
}

ingot_tensor *onnx_topk(Lowering *n)
{
    ingot_dim *k;
    ingot_tensor *out[2];
    int axis;
    if (!axis_in(n, attr_int(n, "axis", -1), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    if (n->version < 10) {
        k = dim(n, attr_int(n, "k", 0));
    } else if (n->n_in < 2) {
        return fault(n, "its k is missing");
    } else {
        k = size_at_run_time(n, 0, axis, ingot_rank(X), Y, ingot_dim_hi(ingot_shape(X, axis)));
        ingot_dim *size = ingot_shape(X, axis);
        if (!ingot_require(n->c, k, dim(n, 0), size, "its k"))
            return ingot_poison(n->c);
    }
    ingot_topk(n->c, X, k, axis, attr_int(n, "largest", 1) != 0, out);
    n->out[1] = out[1];
    return out[0];
}

/* ---- running sums and reversed sequences ---------------------------------------------------- */

static ingot_tensor *cumulate_axis(Lowering *n, ingot_reduce_op op, int axis)
{
    bool exclusive = attr_int(n, "exclusive", 0) != 0, reverse = attr_int(n, "reverse", 0) != 0;
    return ingot_cumulate(n->c, op, X, axis, exclusive, reverse);
}

static ingot_tensor *sum_along(Lowering *n, int axis)
{
    return cumulate_axis(n, INGOT_REDUCE_ADD, axis);
}

static ingot_tensor *product_along(Lowering *n, int axis)
{
    return cumulate_axis(n, INGOT_REDUCE_MUL, axis);
}

static ingot_tensor *cumulate(Lowering *n, ingot_tensor *(*along)(Lowering *, int axis))
{
    const int64_t *list;
    int axis, rank = ingot_rank(X);
    if (rank > 0 && dim_is(ingot_numel(n->c, Y), 1) && ints_known(n, 1, &list) < 0)
        return axis_at_run_time(n, 1, along);
    if (ints_in(n, 1, &list) != 1)
        return n->failed ? ingot_poison(n->c) : fault(n, "its axis has to be one number");
    return axis_in(n, list[0], rank, &axis) ? along(n, axis) : ingot_poison(n->c);
}

ingot_tensor *onnx_cumsum(Lowering *n)
{
    return cumulate(n, sum_along);
}

ingot_tensor *onnx_cumprod(Lowering *n)
{
    return cumulate(n, product_along);
}

/* The first length[b] elements along the time axis are reversed. */
ingot_tensor *onnx_reverse_sequence(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_tensor *index[INGOT_MAX_RANK];
    int rank = ingot_rank(X), batch, time;
    if (!axis_in(n, attr_int(n, "batch_axis", 1), rank, &batch) ||
        !axis_in(n, attr_int(n, "time_axis", 0), rank, &time))
        return ingot_poison(n->c);
    shape_of(X, dims);
    for (int a = 0; a < rank; a++)
        index[a] = ingot_iota(n->c, rank, dims, a);
    ingot_tensor *length = align_axis(n, as(n, Y, INGOT_I64), batch, rank), *t = index[time];
    ingot_tensor *back = ingot_add_c(n->c, ingot_sub(n->c, length, t), -1);
    index[time] = ingot_where(n->c, ingot_lt(n->c, t, length), back, t);
    return ingot_gather(n->c, X, index);
}
