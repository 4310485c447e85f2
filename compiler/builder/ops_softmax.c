/* ops_softmax.c - the softmax family: subtract the greatest element, so that e^x cannot
 * overflow. */
#include <math.h>

#include "ops.h"

/* What is subtracted: the results do not depend on it, so no gradient passes. */
static ingot_tensor *greatest(ingot_context *c, ingot_tensor *x, unsigned axes)
{
    return ingot_stop(c, ingot_reduce(c, INGOT_REDUCE_MAX, x, axes, true));
}

/* x - max(x), in the wide dtype, and e to that; or_zero: without a max of -inf. */
static ingot_tensor *shifted(ingot_context *c, ingot_tensor *x, int axis, bool or_zero,
                             ingot_tensor **exps)
{
    ingot_tensor *wide = ops_widen(c, x);
    ingot_tensor *top = greatest(c, wide, 1u << axis);
    if (or_zero)
        top = ingot_where(c, ingot_eq(c, top, ingot_like(c, top, -INFINITY)), ingot_like(c, top, 0),
                          top);
    ingot_tensor *d = ingot_sub(c, wide, top);
    *exps = ingot_exp(c, d);
    return d;
}

/* e^(x - max) times 1 / sum e^(x - max); or_zero: times 1 where all are 0 */
static ingot_tensor *softmax(ingot_context *c, ingot_tensor *x, int axis, bool or_zero)
{
    ingot_tensor *e;
    if (ingot_is_poison(x) || (axis = ops_axis(c, "softmax", x, axis)) < 0)
        return ingot_poison(c);
    shifted(c, x, axis, or_zero, &e);
    ingot_tensor *sum = ingot_sum(c, e, 1u << axis, true);
    if (or_zero)
        sum = ingot_where(c, ingot_eq(c, sum, ingot_like(c, sum, 0)), ingot_like(c, sum, 1), sum);
    ingot_tensor *scale = ingot_reciprocal(c, sum); /* one division a row */
    return ingot_cast(c, ingot_mul(c, e, scale), ingot_dtype_of(x));
}

ingot_tensor *ingot_softmax(ingot_context *c, ingot_tensor *x, int axis)
{
    return softmax(c, x, axis, false);
}

ingot_tensor *ingot_softmax_or_zero(ingot_context *c, ingot_tensor *x, int axis)
{
    return softmax(c, x, axis, true);
}

/* x - max - log sum e^(x - max) */
ingot_tensor *ingot_log_softmax(ingot_context *c, ingot_tensor *x, int axis)
{
    ingot_tensor *e;
    if (ingot_is_poison(x) || (axis = ops_axis(c, "log_softmax", x, axis)) < 0)
        return ingot_poison(c);
    ingot_tensor *d = shifted(c, x, axis, false, &e);
    ingot_tensor *log_sum = ingot_log(c, ingot_sum(c, e, 1u << axis, true));
    return ingot_cast(c, ingot_sub(c, d, log_sum), ingot_dtype_of(x));
}

/* The place of the first greatest element. An axis that may be empty has a least one behind its
 * end, for there is none to be told: nothing asks. */
static ingot_tensor *first_greatest(ingot_context *c, ingot_tensor *x, int axis)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    if (ingot_dim_lo(ingot_shape(x, axis)) > 0)
        return ingot_argmax(c, x, axis, true, false);
    for (int i = 0; i < ingot_rank(x); i++) {
        lo[i] = ingot_dim_const(c, 0);
        hi[i] = ingot_dim_const(c, i == axis);
    }
    ingot_tensor *wide = ops_widen(c, x);
    x = ingot_pad_value(c, wide, lo, hi, ingot_like(c, wide, -INFINITY));
    return ingot_argmax(c, x, axis, true, false);
}

/* 1 at the first greatest element along the axis, 0 elsewhere */
ingot_tensor *ingot_hardmax(ingot_context *c, ingot_tensor *x, int axis)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    if (ingot_is_poison(x) || (axis = ops_axis(c, "hardmax", x, axis)) < 0)
        return ingot_poison(c);
    ingot_tensor *best = first_greatest(c, x, axis);
    ingot_tensor *at = ingot_iota(c, ops_dims(x, dims), dims, axis);
    return ingot_cast(c, ingot_eq(c, at, best), ingot_dtype_of(x));
}

/* log sum e^x over some axes = max + log sum e^(x - max); a max of +-infinity is not subtracted */
ingot_tensor *ingot_logsumexp(ingot_context *c, ingot_tensor *x, unsigned axes, bool keepdims)
{
    if (ingot_is_poison(x))
        return x;
    ingot_tensor *wide = ops_widen(c, x);
    ingot_tensor *top = greatest(c, wide, axes);
    ingot_tensor *diff = ingot_sub(c, top, top); /* NaN where infinite */
    top = ingot_where(c, ingot_isnan(c, diff), ingot_like(c, top, 0), top);
    ingot_tensor *e = ingot_exp(c, ingot_sub(c, wide, top));
    ingot_tensor *sum = ingot_add(c, ingot_log(c, ingot_sum(c, e, axes, true)), top);
    if (!keepdims) /* of axes that have size 1 by now: only a reshape */
        sum = ingot_sum(c, sum, axes, false);
    return ingot_cast(c, sum, ingot_dtype_of(x));
}
