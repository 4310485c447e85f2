/* ops_pool.c - pooling: windows along the spatial axes 2..rank-1, reduced (ONNX MaxPool,
 * AveragePool, LpPool). */
#include <math.h>

#include "ops.h"

/* Pads with `value` and makes windows: [N, C, o..., k...]; *axes are those of k. */
static ingot_tensor *windows(ingot_context *c, const char *what, ingot_tensor *x, double value,
                             const int64_t *kernel, const int64_t *strides,
                             const int64_t *dilations, const int64_t *pads_lo,
                             const int64_t *pads_hi, unsigned *axes)
{
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    if (ingot_is_poison(x))
        return x;
    int rank = ingot_rank(x);
    if (rank < 3 || rank > (INGOT_MAX_RANK + 2) / 2)
        return ingot_error(c, INGOT_INVALID, "%s: x has rank %d; it must be [N, C, spatial...]",
                           what, rank);
    for (int i = 2; i < rank; i++) {
        lo[i] = pads_lo ? pads_lo[i - 2] : 0;
        hi[i] = pads_hi ? pads_hi[i - 2] : 0;
    }
    x = ingot_pad_c(c, x, lo, hi, value);
    *axes = 0;
    for (int i = 2; i < rank; i++) {
        x = ingot_window(c, x, i, kernel[i - 2], strides ? strides[i - 2] : 1,
                         dilations ? dilations[i - 2] : 1);
        *axes |= 1u << (rank + i - 2);
    }
    return x;
}

ingot_tensor *ingot_max_pool(ingot_context *c, ingot_tensor *x, const int64_t *kernel,
                             const int64_t *strides, const int64_t *dilations,
                             const int64_t *pads_lo, const int64_t *pads_hi)
{
    unsigned axes;
    /* -infinity becomes the least value of an integer type */
    x = windows(c, "max_pool", x, -INFINITY, kernel, strides, dilations, pads_lo, pads_hi, &axes);
    return ingot_max_first(c, x, ingot_is_poison(x) ? 0 : axes, false);
}

ingot_tensor *ingot_max_pool_indices(ingot_context *c, ingot_tensor *x, const int64_t *kernel,
                                     const int64_t *strides, const int64_t *dilations,
                                     const int64_t *pads_lo, const int64_t *pads_hi,
                                     bool column_major)
{
    unsigned axes;
    ingot_dim *dims[INGOT_MAX_RANK];
    if (ingot_is_poison(x))
        return x;
    int rank = ops_dims(x, dims);
    /* The flat position of every element, row-major or with the spatial axes reversed. */
    ingot_dim *stride = ingot_dim_const(c, 1);
    ingot_tensor *flat = ingot_scalar_i(c, INGOT_I64, 0);
    for (int k = 0; k < rank; k++) {
        int i = rank - 1 - k;
        if (column_major && i >= 2)
            i = 2 + k;
        flat = ingot_add(c, flat,
                         ingot_mul(c, ingot_iota(c, rank, dims, i), ingot_from_dim(c, stride)));
        stride = ingot_dim_mul(c, stride, dims[i]);
    }
    ingot_tensor *w =
        windows(c, "max_pool", x, -INFINITY, kernel, strides, dilations, pads_lo, pads_hi, &axes);
    ingot_tensor *at =
        windows(c, "max_pool", flat, -1, kernel, strides, dilations, pads_lo, pads_hi, &axes);
    if (ingot_is_poison(w) || ingot_is_poison(at))
        return ingot_poison(c);
    /* The first place in the window that holds the maximum and is not padding. */
    ingot_tensor *hit = ingot_eq(c, w, ingot_reduce(c, INGOT_REDUCE_MAX, w, axes, true));
    hit = ingot_and(c, hit, ingot_ge(c, at, ingot_like(c, at, 0)));
    ingot_tensor *first = ingot_where(c, hit, at, ingot_scalar_i(c, INGOT_I64, INT64_MAX));
    return ingot_reduce(c, INGOT_REDUCE_MIN, first, axes, false);
}

ingot_tensor *ingot_avg_pool_ceil(ingot_context *c, ingot_tensor *x, const int64_t *kernel,
                                  const int64_t *strides, const int64_t *dilations,
                                  const int64_t *pads_lo, const int64_t *pads_hi,
                                  const int64_t *extra_hi, bool count_pads)
{
    unsigned axes;
    if (ingot_is_poison(x))
        return x;
    int rank = ingot_rank(x);
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0}, elements = 1;
    bool whole = true; /* every window lies in what is counted */
    for (int i = 0; i < rank - 2; i++) {
        lo[i] = pads_lo ? pads_lo[i] : 0;
        hi[i] = pads_hi ? pads_hi[i] : 0;
        whole &= count_pads || (lo[i] == 0 && hi[i] == 0);
        if (extra_hi && extra_hi[i]) {
            hi[i] += extra_hi[i];
            whole = false;
        }
        elements *= kernel[i];
    }
    ingot_dtype d = ingot_dtype_of(x);
    ingot_tensor *wide = ops_widen(c, x);
    ingot_tensor *w = windows(c, "avg_pool", wide, 0, kernel, strides, dilations, lo, hi, &axes);
    if (ingot_is_poison(w))
        return w;
    ingot_tensor *sum = ingot_sum(c, w, axes, false);
    if (whole)
        return ingot_cast(c, ingot_div(c, sum, ingot_like(c, sum, (double)elements)), d);
    /* The same windows over ones: how many counted elements each has. */
    ingot_dim *dims[INGOT_MAX_RANK];
    int64_t l[INGOT_MAX_RANK] = {0}, h[INGOT_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++) {
        dims[i] = i < 2 ? ingot_dim_const(c, 1) : ingot_shape(x, i);
        if (i >= 2 && count_pads) { /* declared padding counts, the extra of ceil mode does not */
            l[i] = lo[i - 2];
            h[i] = pads_hi ? pads_hi[i - 2] : 0;
            dims[i] = ingot_dim_add(c, dims[i], ingot_dim_const(c, l[i] + h[i]));
            lo[i - 2] = 0;
            hi[i - 2] -= h[i];
        }
    }
    ingot_tensor *ones = ingot_expand(c, ingot_like(c, wide, 1), rank, dims);
    ones = windows(c, "avg_pool", ones, 0, kernel, strides, dilations, lo, hi, &axes);
    return ingot_cast(c, ingot_div(c, sum, ingot_sum(c, ones, axes, false)), d);
}

ingot_tensor *ingot_avg_pool(ingot_context *c, ingot_tensor *x, const int64_t *kernel,
                             const int64_t *strides, const int64_t *dilations,
                             const int64_t *pads_lo, const int64_t *pads_hi, bool count_pads)
{
    return ingot_avg_pool_ceil(c, x, kernel, strides, dilations, pads_lo, pads_hi, NULL,
                               count_pads);
}

/* |x|^p, with the cheap cases spelled out */
static ingot_tensor *abs_power(ingot_context *c, ingot_tensor *x, double p)
{
    if (p == 2)
        return ingot_mul(c, x, x);
    return p == 1 ? ingot_abs(c, x) : ingot_pow(c, ingot_abs(c, x), ingot_like(c, x, p));
}

static ingot_tensor *root(ingot_context *c, ingot_tensor *x, double p)
{
    if (p == 2)
        return ingot_sqrt(c, x);
    return p == 1 ? x : ingot_pow(c, x, ingot_like(c, x, 1 / p));
}

/* (sum |x|^p)^(1/p) over each window */
ingot_tensor *ingot_lp_pool(ingot_context *c, ingot_tensor *x, double p, const int64_t *kernel,
                            const int64_t *strides, const int64_t *dilations,
                            const int64_t *pads_lo, const int64_t *pads_hi)
{
    unsigned axes;
    if (ingot_is_poison(x))
        return x;
    ingot_dtype d = ingot_dtype_of(x);
    x = windows(c, "lp_pool", abs_power(c, ops_widen(c, x), p), 0, kernel, strides, dilations,
                pads_lo, pads_hi, &axes);
    if (ingot_is_poison(x))
        return x;
    return ingot_cast(c, root(c, ingot_sum(c, x, axes, false), p), d);
}

/* (sum |x|^p)^(1/p) over whole axes; p is 1 or 2 in ReduceL1, ReduceL2, GlobalLpPool's default */
ingot_tensor *ingot_lp_reduce(ingot_context *c, ingot_tensor *x, double p, unsigned axes,
                              bool keepdims)
{
    if (ingot_is_poison(x))
        return x;
    ingot_dtype d = ingot_dtype_of(x);
    ingot_tensor *sum = ingot_sum(c, abs_power(c, ops_widen(c, x), p), axes, keepdims);
    if (!ops_is_float(x) && p != 1) /* integers: the root in double precision, cut back */
        return ingot_cast(c, root(c, ingot_cast(c, sum, INGOT_F64), p), d);
    return ingot_cast(c, root(c, sum, p), d);
}
