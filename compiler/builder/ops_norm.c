/* ops_norm.c - normalisations.  Statistics and arithmetic are in f32 at least; the result is
 * rounded to x's dtype once. */
#include <math.h>

#include "ops.h"

/* (x - mean) / sqrt(var + eps) over the axes, in the wide dtype; *inv receives the last factor. */
static ingot_tensor *standardise(ingot_context *c, ingot_tensor *x, unsigned axes, double eps,
                                 ingot_tensor **mean_out, ingot_tensor **inv_out)
{
    ingot_tensor *wide = ops_widen(c, x);
    ingot_tensor *mean = ingot_mean(c, wide, axes, true);
    ingot_tensor *d = ingot_sub(c, wide, mean);
    ingot_tensor *var = ingot_mean(c, ingot_mul(c, d, d), axes, true);
    ingot_tensor *inv = ingot_reciprocal(c, ingot_sqrt(c, ingot_add_c(c, var, eps)));
    if (mean_out)
        *mean_out = mean;
    if (inv_out)
        *inv_out = inv;
    return ingot_mul(c, d, inv);
}

/* y * scale + bias, widened; back to dtype d */
static ingot_tensor *affine(ingot_context *c, ingot_tensor *y, ingot_tensor *scale,
                            ingot_tensor *bias, ingot_dtype d)
{
    if (ingot_is_poison(y))
        return y;
    if (scale)
        y = ingot_mul(c, y, ingot_cast(c, scale, ingot_dtype_of(y)));
    if (bias)
        y = ingot_add(c, y, ingot_cast(c, bias, ingot_dtype_of(y)));
    return ingot_cast(c, y, d);
}

static unsigned axes_from(ingot_tensor *x, int first)
{
    return ((1u << ingot_rank(x)) - 1) & ~((1u << first) - 1);
}

/* (x - mean) / sqrt(var + eps) * scale + bias, written x a + (bias - mean a) with
 * a = scale / sqrt(var + eps), which is constant where the statistics are. */
ingot_tensor *ingot_batch_norm(ingot_context *c, ingot_tensor *x, ingot_tensor *scale,
                               ingot_tensor *bias, ingot_tensor *mean, ingot_tensor *var,
                               double eps)
{
    if (ingot_is_poison(x) || ingot_is_poison(mean) || ingot_is_poison(var))
        return ingot_poison(c);
    int rank = ingot_rank(x);
    if (rank < 2)
        return ingot_error(c, INGOT_INVALID, "batch_norm: x has rank %d; it must be [N, C, ...]",
                           rank);
    ingot_tensor *wide = ops_widen(c, x);
    ingot_dtype d = ingot_dtype_of(wide);
    ingot_tensor *a =
        ingot_reciprocal(c, ingot_sqrt(c, ingot_add_c(c, ingot_cast(c, var, d), eps)));
    if (scale)
        a = ingot_mul(c, a, ingot_cast(c, scale, d));
    ingot_tensor *b = ingot_mul(c, ingot_cast(c, mean, d), a);
    b = bias ? ingot_sub(c, ingot_cast(c, bias, d), b) : ingot_neg(c, b);
    ingot_tensor *y =
        ingot_add(c, ingot_mul(c, wide, ops_channel(c, a, rank)), ops_channel(c, b, rank));
    return ingot_cast(c, y, ingot_dtype_of(x));
}

ingot_tensor *ingot_layer_norm_stats(ingot_context *c, ingot_tensor *x, int axis,
                                     ingot_tensor *scale, ingot_tensor *bias, double eps,
                                     ingot_tensor **mean, ingot_tensor **inv_std)
{
    if (ingot_is_poison(x) || (axis = ops_axis(c, "layer_norm", x, axis)) < 0) {
        if (mean)
            *mean = ingot_poison(c);
        if (inv_std)
            *inv_std = ingot_poison(c);
        return ingot_poison(c);
    }
    ingot_tensor *y = standardise(c, x, axes_from(x, axis), eps, mean, inv_std);
    return affine(c, y, scale, bias, ingot_dtype_of(x));
}

ingot_tensor *ingot_layer_norm(ingot_context *c, ingot_tensor *x, int axis, ingot_tensor *scale,
                               ingot_tensor *bias, double eps)
{
    return ingot_layer_norm_stats(c, x, axis, scale, bias, eps, NULL, NULL);
}

/* x / sqrt(mean(x^2) + eps) * scale */
ingot_tensor *ingot_rms_norm(ingot_context *c, ingot_tensor *x, int axis, ingot_tensor *scale,
                             double eps)
{
    if (ingot_is_poison(x) || (axis = ops_axis(c, "rms_norm", x, axis)) < 0)
        return ingot_poison(c);
    ingot_tensor *wide = ops_widen(c, x);
    ingot_tensor *ms = ingot_mean(c, ingot_mul(c, wide, wide), axes_from(x, axis), true);
    ingot_tensor *inv = ingot_reciprocal(c, ingot_sqrt(c, ingot_add_c(c, ms, eps)));
    return affine(c, ingot_mul(c, wide, inv), scale, NULL, ingot_dtype_of(x));
}

/* Statistics of each sample's channel over its spatial axes. */
ingot_tensor *ingot_instance_norm(ingot_context *c, ingot_tensor *x, ingot_tensor *scale,
                                  ingot_tensor *bias, double eps)
{
    if (ingot_is_poison(x))
        return x;
    int rank = ingot_rank(x);
    if (rank < 3)
        return ingot_error(c, INGOT_INVALID,
                           "instance_norm: x has rank %d; it must be [N, C, spatial...]", rank);
    ingot_tensor *y = standardise(c, x, axes_from(x, 2), eps, NULL, NULL);
    return affine(c, y, scale ? ops_channel(c, scale, rank) : NULL,
                  bias ? ops_channel(c, bias, rank) : NULL, ingot_dtype_of(x));
}

/* [N, C, ...] -> [N, G, C/G * ...], statistics over the last axis; scale and bias per channel. */
ingot_tensor *ingot_group_norm(ingot_context *c, ingot_tensor *x, int64_t groups,
                               ingot_tensor *scale, ingot_tensor *bias, double eps)
{
    if (ingot_is_poison(x))
        return x;
    int rank = ingot_rank(x);
    int64_t channels;
    if (rank < 2 || groups < 1 ||
        (ingot_dim_is_const(ingot_shape(x, 1), &channels) && channels % groups))
        return ingot_error(c, INGOT_INVALID,
                           "group_norm: x must be [N, C, ...] with C a multiple of the %lld "
                           "groups",
                           (long long)groups);
    ingot_dim *dims[3] = {ingot_shape(x, 0), ingot_dim_const(c, groups), NULL};
    ingot_dim *rest = ingot_dim_div(c, ingot_shape(x, 1), dims[1]);
    for (int i = 2; i < rank; i++)
        rest = ingot_dim_mul(c, rest, ingot_shape(x, i));
    dims[2] = rest;
    ingot_tensor *y = standardise(c, ingot_reshape(c, x, 3, dims), 1u << 2, eps, NULL, NULL);
    y = ops_reshape_like(c, y, x);
    return affine(c, y, scale ? ops_channel(c, scale, rank) : NULL,
                  bias ? ops_channel(c, bias, rank) : NULL, ingot_dtype_of(x));
}

/* (x - mean) / sqrt(var), with 1e-9 added to the deviation (ONNX MeanVarianceNormalization) */
ingot_tensor *ingot_mean_variance_norm(ingot_context *c, ingot_tensor *x, unsigned axes)
{
    if (ingot_is_poison(x))
        return x;
    ingot_tensor *wide = ops_widen(c, x);
    ingot_tensor *d = ingot_sub(c, wide, ingot_mean(c, wide, axes, true));
    ingot_tensor *std = ingot_sqrt(c, ingot_mean(c, ingot_mul(c, d, d), axes, true));
    return ingot_cast(c, ingot_div(c, d, ingot_add_c(c, std, 1e-9)), ingot_dtype_of(x));
}

/* x / (sum |x|^p)^(1/p) along an axis; 0 where the norm is 0 (ONNX LpNormalization) */
ingot_tensor *ingot_lp_norm(ingot_context *c, ingot_tensor *x, int axis, double p)
{
    if (ingot_is_poison(x) || (axis = ops_axis(c, "lp_norm", x, axis)) < 0)
        return ingot_poison(c);
    ingot_tensor *wide = ops_widen(c, x), *zero = ingot_like(c, wide, 0);
    ingot_tensor *norm = ingot_lp_reduce(c, wide, p, 1u << axis, true);
    ingot_tensor *y = ingot_where(c, ingot_eq(c, norm, zero), zero, ingot_div(c, wide, norm));
    return ingot_cast(c, y, ingot_dtype_of(x));
}

/* x / (bias + alpha / size * sum of x^2 over `size` neighbouring channels)^beta (ONNX LRN) */
ingot_tensor *ingot_lrn(ingot_context *c, ingot_tensor *x, int64_t size, double alpha, double beta,
                        double bias)
{
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    if (ingot_is_poison(x))
        return x;
    if (ingot_rank(x) < 2 || size < 1)
        return ingot_error(c, INGOT_INVALID, "lrn: x must be [N, C, ...] and size at least 1");
    lo[1] = (size - 1) / 2;
    hi[1] = size / 2;
    ingot_tensor *wide = ops_widen(c, x);
    ingot_tensor *near = ingot_pad_c(c, ingot_mul(c, wide, wide), lo, hi, 0);
    near = ingot_window(c, near, 1, size, 1, 1);
    if (ingot_is_poison(near))
        return near;
    ingot_tensor *sum = ingot_sum(c, near, 1u << ingot_rank(x), false);
    ingot_tensor *base = ingot_add_c(c, ingot_mul_c(c, sum, alpha / (double)size), bias);
    ingot_tensor *y = ingot_div(c, wide, ingot_pow(c, base, ingot_like(c, base, beta)));
    return ingot_cast(c, y, ingot_dtype_of(x));
}
