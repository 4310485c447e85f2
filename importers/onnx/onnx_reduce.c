/*
 * onnx_reduce.c - ONNX operators that reduce axes: Reduce*, ArgMax and ArgMin, the softmax family.
 */
#include <math.h>

#include "onnx.h"

#define X n->in[0]

/* ---- Reduce* -------------------------------------------------------------------------------- */

/* Where the axes are an input that only the run knows, what the file declares of the output may
 * tell: an axis of another size than the input's has been reduced. An axis of size 1 may count as
 * reduced or not, the values are the same. Only with keepdims. The run checks it. */
static bool axes_declared(Lowering *n, unsigned *axes)
{
    int64_t dims[INGOT_MAX_RANK], from;
    int rank;
    if (!declared_shape(n, 0, &rank, dims) || rank != ingot_rank(X))
        return false;
    *axes = 0;
    for (int a = 0; a < rank; a++) {
        if (!ingot_dim_is_const(ingot_shape(X, a), &from))
            return false;
        *axes |= from != dims[a] || from == 1 ? 1u << a : 0;
    }
    return true;
}

/* The axes: false after an error. *none: there are none, and nothing is to be reduced. */
static bool reduced_axes(Lowering *n, int axes_input_since, unsigned *axes, bool *none)
{
    const int64_t *list = NULL;
    bool as_input = n->version >= axes_input_since;
    *none = false;
    if (as_input && n->n_in > 1 && n->in[1] && ints_known(n, 1, &list) < 0 &&
        attr_int(n, "keepdims", 1) && axes_declared(n, axes))
        return axes_are(n, *axes);
    int count = ints_attr_or_in(n, "axes", 1, axes_input_since, &list);
    if (count == -2)
        return false;
    if (count > 0)
        return axes_in(n, list, count, ingot_rank(X), axes);
    *none = as_input && attr_int(n, "noop_with_empty_axes", 0) != 0;
    *axes = (1u << ingot_rank(X)) - 1;
    return true;
}

static ingot_tensor *drop_axes(Lowering *n, ingot_tensor *y, unsigned axes)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank = 0;
    for (int a = 0; a < ingot_rank(y); a++)
        if (!(axes >> a & 1))
            dims[rank++] = ingot_shape(y, a);
    return ingot_reshape(n->c, y, rank, dims);
}

static ingot_tensor *reduce_with(Lowering *n, int axes_input_since, ReduceFn *fn)
{
    unsigned axes;
    bool none, keep = attr_int(n, "keepdims", 1) != 0;
    const int64_t *list;
    if (n->version >= axes_input_since && optional_in(n, 1) && ints_known(n, 1, &list) < 0 &&
        !(keep && axes_declared(n, &axes)))
        return reduce_at_run_time(n, fn, keep);
    if (!reduced_axes(n, axes_input_since, &axes, &none) || n->failed)
        return ingot_poison(n->c);
    if (none)
        return fn(n, X, 0);
    ingot_tensor *y = fn(n, X, axes);
    return keep || ingot_is_poison(y) ? y : drop_axes(n, y, axes);
}

static ingot_tensor *sum_of(Lowering *n, ingot_tensor *x, unsigned axes)
{
    return axes ? ingot_sum(n->c, x, axes, true) : x;
}

static ingot_tensor *mean_of(Lowering *n, ingot_tensor *x, unsigned axes)
{
    return axes ? ingot_mean(n->c, x, axes, true) : x;
}

static ingot_tensor *prod_of(Lowering *n, ingot_tensor *x, unsigned axes)
{
    return axes ? ingot_reduce(n->c, INGOT_REDUCE_MUL, x, axes, true) : x;
}

/* On bool, the greatest is whether any is true. */
static ingot_tensor *max_of(Lowering *n, ingot_tensor *x, unsigned axes)
{
    bool logic = ingot_dtype_of(x) == INGOT_BOOL;
    return axes ? ingot_reduce(n->c, logic ? INGOT_REDUCE_OR : INGOT_REDUCE_MAX, x, axes, true) : x;
}

static ingot_tensor *min_of(Lowering *n, ingot_tensor *x, unsigned axes)
{
    bool logic = ingot_dtype_of(x) == INGOT_BOOL;
    return axes ? ingot_reduce(n->c, logic ? INGOT_REDUCE_AND : INGOT_REDUCE_MIN, x, axes, true)
                : x;
}

static ingot_tensor *l1_of(Lowering *n, ingot_tensor *x, unsigned axes)
{
    return sum_of(n, ingot_abs(n->c, x), axes);
}

static ingot_tensor *square_of(Lowering *n, ingot_tensor *x, unsigned axes)
{
    return sum_of(n, ingot_mul(n->c, x, x), axes);
}

/* Roots and logarithms of integers are taken in f64. */
static ingot_tensor *l2_of(Lowering *n, ingot_tensor *x, unsigned axes)
{
    ingot_tensor *square = square_of(n, is_float(x) ? x : as(n, x, INGOT_F64), axes);
    return as(n, ingot_sqrt(n->c, square), ingot_dtype_of(x));
}

static ingot_tensor *log_sum_of(Lowering *n, ingot_tensor *x, unsigned axes)
{
    ingot_tensor *sum = sum_of(n, is_float(x) ? x : as(n, x, INGOT_F64), axes);
    return as(n, ingot_log(n->c, sum), ingot_dtype_of(x));
}

/* m + log(sum(exp(x - m))), m the greatest, or 0 where that is infinite */
static ingot_tensor *log_sum_exp_of(Lowering *n, ingot_tensor *x0, unsigned axes)
{
    ingot_tensor *x = is_float(x0) ? x0 : as(n, x0, INGOT_F64);
    ingot_tensor *m = max_of(n, x, axes);
    ingot_tensor *infinite = ingot_eq(n->c, ingot_abs(n->c, m), like(n, m, INFINITY));
    m = ingot_where(n->c, infinite, like(n, m, 0), m);
    ingot_tensor *sum = sum_of(n, ingot_exp(n->c, ingot_sub(n->c, x, m)), axes);
    return as(n, ingot_add(n->c, m, ingot_log(n->c, sum)), ingot_dtype_of(x0));
}

#define REDUCE(name, since, fn)                   \
    ingot_tensor *onnx_reduce_##name(Lowering *n) \
    {                                             \
        return reduce_with(n, since, fn);         \
    }
REDUCE(sum, 13, sum_of)
REDUCE(mean, 18, mean_of)
REDUCE(prod, 18, prod_of)
REDUCE(max, 18, max_of)
REDUCE(min, 18, min_of)
REDUCE(l1, 18, l1_of)
REDUCE(l2, 18, l2_of)
REDUCE(square, 18, square_of)
REDUCE(log_sum, 18, log_sum_of)
REDUCE(log_sum_exp, 18, log_sum_exp_of)
#undef REDUCE

/* ---- the place of the greatest -------------------------------------------------------------- */

static bool arg_axis(Lowering *n, int *axis, bool *keep, bool *last)
{
    *keep = attr_int(n, "keepdims", 1) != 0;
    *last = attr_int(n, "select_last_index", 0) != 0;
    return axis_in(n, attr_int(n, "axis", 0), ingot_rank(X), axis) && !n->failed;
}

ingot_tensor *onnx_argmax(Lowering *n)
{
    int axis;
    bool keep, last;
    if (!arg_axis(n, &axis, &keep, &last))
        return ingot_poison(n->c);
    return ingot_argmax(n->c, X, axis, keep, last);
}

ingot_tensor *onnx_argmin(Lowering *n)
{
    int axis;
    bool keep, last;
    if (!arg_axis(n, &axis, &keep, &last))
        return ingot_poison(n->c);
    return ingot_argmin(n->c, X, axis, keep, last);
}

/* ---- softmax -------------------------------------------------------------------------------- */

/* From opset 13 on along one axis; before, over all axes from `axis` on, as if they were one. */
static ingot_tensor *softmax_with(Lowering *n,
                                  ingot_tensor *(*fn)(ingot_context *, ingot_tensor *, int))
{
    ingot_dim *dims[INGOT_MAX_RANK];
    int axis, rank = ingot_rank(X);
    int64_t given = attr_int(n, "axis", n->version < 13 ? 1 : -1);
    if (n->version < 13 && given == rank)
        return fn(n->c, ingot_unsqueeze(n->c, X, rank), rank);
    if (rank == 0 && (given == -1 || given == 0))
        return reshape_scalar(n, fn(n->c, ingot_unsqueeze(n->c, X, 0), 0));
    if (!axis_in(n, given, rank, &axis) || n->failed)
        return ingot_poison(n->c);
    if (n->version >= 13 || axis == rank - 1)
        return fn(n->c, X, axis);
    shape_of(X, dims);
    ingot_tensor *y = fn(n->c, ingot_flatten(n->c, X, axis, rank), axis);
    return ingot_reshape(n->c, y, rank, dims);
}

ingot_tensor *onnx_softmax(Lowering *n)
{
    return softmax_with(n, ingot_softmax);
}

ingot_tensor *onnx_log_softmax(Lowering *n)
{
    return softmax_with(n, ingot_log_softmax);
}

ingot_tensor *onnx_hardmax(Lowering *n)
{
    return softmax_with(n, ingot_hardmax);
}
