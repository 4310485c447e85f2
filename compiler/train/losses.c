/* losses.c - losses as one number, composed so that their gradients are cheap: what is picked by a
 * label is a sum of one element and zeros, whose gradient is elementwise; a gather's would be an
 * update of places that only the data knows. */
#include <math.h>

#include "train.h"

ingot_tensor *train_wide(ingot_context *c, ingot_tensor *x)
{
    return ingot_dtype_of(x) == INGOT_F64 ? x : ingot_cast(c, x, INGOT_F32);
}

unsigned train_axes(ingot_tensor *x)
{
    return (1u << ingot_rank(x)) - 1;
}

static int shape_of(ingot_tensor *x, ingot_dim **dims)
{
    for (int a = 0; a < ingot_rank(x); a++)
        dims[a] = ingot_shape(x, a);
    return ingot_rank(x);
}

static int class_axis(ingot_context *c, ingot_tensor *x, const ingot_loss_options *o)
{
    const int rank = ingot_rank(x);
    int axis = o->axis ? o->axis : 1;
    axis = axis < 0 ? axis + rank : axis;
    if (axis >= 0 && axis < rank)
        return axis;
    ingot_error(c, INGOT_USAGE, "cross_entropy: the scores have rank %d, and no axis %d", rank,
                o->axis ? o->axis : 1);
    return -1;
}

/* The sum along the axis of x where the label is, else 0: that one element. labels: of x's rank. */
static ingot_tensor *picked(ingot_context *c, ingot_tensor *x, ingot_tensor *labels, int axis)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_tensor *class = ingot_iota(c, shape_of(x, dims), dims, axis);
    ingot_tensor *here = ingot_eq(c, class, labels);
    return ingot_sum(c, ingot_where(c, here, x, ingot_like(c, x, 0)), 1u << axis, true);
}

/* mean, where some do not count: the sum of the others by their number */
static ingot_tensor *mean_of(ingot_context *c, ingot_tensor *loss, ingot_tensor *counts)
{
    const unsigned all = train_axes(loss);
    if (!counts)
        return ingot_mean(c, loss, all, false);
    ingot_tensor *kept = ingot_where(c, counts, loss, ingot_like(c, loss, 0));
    ingot_tensor *number = ingot_sum(c, ingot_cast(c, counts, ingot_dtype_of(loss)), all, false);
    return ingot_div(c, ingot_sum(c, kept, all, false), ingot_max_c(c, number, 1));
}

/* Labels as i64 with an axis of size 1 for the classes, or NULL and an error. */
static ingot_tensor *labels_of(ingot_context *c, ingot_tensor *x, ingot_tensor *labels, int axis)
{
    bool fits = ingot_rank(labels) == ingot_rank(x) - 1;
    for (int a = 0, k = 0; fits && a < ingot_rank(x); a++)
        if (a != axis)
            fits = ingot_dim_equal(ingot_shape(x, a), ingot_shape(labels, k++));
    if (fits)
        return ingot_unsqueeze(c, ingot_cast(c, labels, INGOT_I64), axis);
    ingot_error(c, INGOT_INVALID,
                "cross_entropy: the labels, of integers, must have the shape of the scores without "
                "axis %d",
                axis);
    return NULL;
}

/* With d = x - max and L = log sum e^d, -log softmax is L - d; of label t, smoothed by s:
 *     (1 - s) (L - d[t]) + s / C sum over j of (L - d[j])  =  L - (1 - s) d[t] - s mean(d) */
static ingot_tensor *by_label(ingot_context *c, ingot_tensor *x, ingot_tensor *labels, int axis,
                              const ingot_loss_options *o)
{
    const unsigned along = 1u << axis;
    ingot_tensor *t = labels_of(c, x, labels, axis), *counts = NULL;
    if (!t)
        return ingot_poison(c);
    ingot_tensor *top = ingot_stop(c, ingot_reduce(c, INGOT_REDUCE_MAX, x, along, true));
    ingot_tensor *d = ingot_sub(c, x, top);
    ingot_tensor *log_sum = ingot_log(c, ingot_sum(c, ingot_exp(c, d), along, true));
    ingot_tensor *at = ingot_mul_c(c, picked(c, d, t, axis), 1 - o->smoothing);
    ingot_tensor *loss = ingot_sub(c, log_sum, at);
    if (o->smoothing != 0)
        loss = ingot_sub(c, loss, ingot_mul_c(c, ingot_mean(c, d, along, true), o->smoothing));
    ingot_tensor *classes = ingot_from_dim(c, ingot_shape(x, axis));
    ingot_tensor *known =
        ingot_and(c, ingot_ge(c, t, ingot_like(c, t, 0)), ingot_lt(c, t, classes));
    loss = ingot_where(c, known, loss, ingot_like(c, loss, NAN));
    if (o->ignores)
        counts = ingot_ne(c, t, ingot_scalar_i(c, INGOT_I64, o->ignored));
    return mean_of(c, loss, counts);
}

/* -sum over j of p[j] log softmax(x)[j], the mean of that */
static ingot_tensor *by_probability(ingot_context *c, ingot_tensor *x, ingot_tensor *p, int axis,
                                    const ingot_loss_options *o)
{
    if (o->ignores)
        return ingot_error(c, INGOT_USAGE,
                           "cross_entropy: labels that are probabilities cannot be ignored");
    p = ingot_cast(c, p, ingot_dtype_of(x));
    if (o->smoothing != 0) {
        ingot_tensor *classes =
            ingot_cast(c, ingot_from_dim(c, ingot_shape(x, axis)), ingot_dtype_of(x));
        ingot_tensor *share = ingot_div(c, ingot_like(c, x, o->smoothing), classes);
        p = ingot_add(c, ingot_mul_c(c, p, 1 - o->smoothing), share);
    }
    ingot_tensor *log_p = ingot_log_softmax(c, x, axis);
    ingot_tensor *loss = ingot_neg(c, ingot_sum(c, ingot_mul(c, p, log_p), 1u << axis, true));
    return mean_of(c, loss, NULL);
}

static bool is_float(ingot_dtype d)
{
    return d == INGOT_F16 || d == INGOT_BF16 || d == INGOT_F32 || d == INGOT_F64;
}

ingot_tensor *ingot_cross_entropy(ingot_context *c, ingot_tensor *x, ingot_tensor *labels,
                                  const ingot_loss_options *options)
{
    const ingot_loss_options usual = {0}, *o = options ? options : &usual;
    if (ingot_is_poison(x) || ingot_is_poison(labels))
        return ingot_poison(c);
    if (!is_float(ingot_dtype_of(x)))
        return ingot_error(c, INGOT_INVALID, "cross_entropy: the scores are %s; floats are wanted",
                           ingot_dtype_name(ingot_dtype_of(x)));
    const int axis = class_axis(c, x, o);
    if (axis < 0)
        return ingot_poison(c);
    x = train_wide(c, x);
    return is_float(ingot_dtype_of(labels)) ? by_probability(c, x, labels, axis, o)
                                            : by_label(c, x, labels, axis, o);
}

ingot_tensor *ingot_mse(ingot_context *c, ingot_tensor *y, ingot_tensor *target)
{
    if (ingot_is_poison(y) || ingot_is_poison(target))
        return ingot_poison(c);
    y = train_wide(c, y);
    ingot_tensor *d = ingot_sub(c, y, ingot_cast(c, target, ingot_dtype_of(y)));
    return ingot_mean(c, ingot_mul(c, d, d), train_axes(d), false);
}

ingot_tensor *ingot_dropout(ingot_context *c, ingot_tensor *x, double ratio)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    if (ingot_is_poison(x))
        return x;
    if (!(ratio >= 0 && ratio < 1))
        return ingot_error(c, INGOT_USAGE, "dropout: the ratio is %g; 0 to less than 1 is wanted",
                           ratio);
    if (ratio == 0)
        return x;
    ingot_tensor *u = ingot_random_uniform(c, INGOT_F32, shape_of(x, dims), dims, NULL);
    ingot_tensor *keep = ingot_ge(c, u, ingot_scalar_f(c, INGOT_F32, ratio));
    return ingot_where(c, keep, ingot_mul_c(c, x, 1 / (1 - ratio)), ingot_like(c, x, 0));
}
