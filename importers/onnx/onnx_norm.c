/*
 * onnx_norm.c - ONNX normalisations, dropout and losses.
 */
#include <string.h>

#include "onnx.h"

#define X n->in[0]
#define Y n->in[1]

/* x scale + bias, one entry of each a channel (axis 1). */
static ingot_tensor *channel_affine(Lowering *n, ingot_tensor *x, ingot_tensor *scale,
                                    ingot_tensor *bias)
{
    ingot_dtype dtype = ingot_dtype_of(x);
    int rank = ingot_rank(x);
    x = ingot_mul(n->c, x, align_axis(n, as(n, scale, dtype), 1, rank));
    return ingot_add(n->c, x, align_axis(n, as(n, bias, dtype), 1, rank));
}

static unsigned all_axes_but(int rank, unsigned but)
{
    return ((1u << rank) - 1) & ~but;
}

/* With this batch's statistics; the running ones follow with the momentum. */
static ingot_tensor *batch_norm_training(Lowering *n, double eps)
{
    double momentum = attr_float(n, "momentum", 0.9);
    unsigned axes = all_axes_but(ingot_rank(X), 2);
    ingot_tensor *x = widen(n, X), *mean = ingot_mean(n->c, x, axes, false);
    ingot_tensor *d = ingot_sub(n->c, x, align_axis(n, mean, 1, ingot_rank(X)));
    ingot_tensor *var = ingot_mean(n->c, ingot_mul(n->c, d, d), axes, false);
    ingot_tensor *now[] = {mean, var};
    for (int i = 0; i < 2; i++) {
        ingot_tensor *old = n->in[3 + i], *wide = as(n, old, ingot_dtype_of(x));
        ingot_tensor *next = ingot_add(n->c, ingot_mul_c(n->c, wide, momentum),
                                       ingot_mul_c(n->c, now[i], 1 - momentum));
        n->out[1 + i] = as(n, next, ingot_dtype_of(old));
        n->out[3 + i] = as(n, now[i], ingot_dtype_of(old)); /* saved, before opset 14 */
        if (is_trained_weight(n->model, old))
            ingot_state_next(n->c, old, n->out[1 + i]);
    }
    ingot_tensor *inverse = ingot_reciprocal(n->c, ingot_sqrt(n->c, ingot_add_c(n->c, var, eps)));
    ingot_tensor *y = ingot_mul(n->c, d, align_axis(n, inverse, 1, ingot_rank(X)));
    return as(n, channel_affine(n, y, Y, n->in[2]), ingot_dtype_of(X));
}

/* Statistics of each element [C, spatial..], as opsets 1 to 7 had: all of these axes are channels.
 */
static ingot_tensor *batch_norm_elements(Lowering *n, double eps)
{
    ingot_tensor *in[4];
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank = ingot_rank(X);
    if (n->n_out > 1 || is_training(n->model))
        return unsupported(n, "spatial=0 is not supported in training");
    for (int i = 0; i < 4; i++) {
        ingot_tensor *p = n->in[1 + i];
        if (ingot_rank(p) != rank - 1)
            return fault(n, "with spatial=0 its input '%s' has to be of rank %d, not %d",
                         n->proto->input[1 + i], rank - 1, ingot_rank(p));
        in[i] = ingot_flatten(n->c, p, 0, rank - 1);
    }
    shape_of(X, dims);
    ingot_tensor *y =
        ingot_batch_norm(n->c, ingot_flatten(n->c, X, 1, rank), in[0], in[1], in[2], in[3], eps);
    return ingot_is_poison(y) ? y : ingot_reshape(n->c, y, rank, dims);
}

ingot_tensor *onnx_batch_norm(Lowering *n)
{
    double eps = attr_float(n, "epsilon", 1e-5);
    if (ingot_rank(X) < 2)
        return fault(n, "its input has rank %d, at least 2 is needed", ingot_rank(X));
    if (n->version < 9 && attr_int(n, "spatial", 1) == 0)
        return batch_norm_elements(n, eps);
    bool training = n->version >= 14 ? attr_int(n, "training_mode", 0) != 0 : n->n_out > 1;
    if (is_training(n->model)) /* statistics that are frozen stay as they are */
        training = is_training_step(n->model) && is_trained_weight(n->model, n->in[3]) &&
                   is_trained_weight(n->model, n->in[4]);
    if (training)
        return batch_norm_training(n, eps);
    for (int i = 0; i < 4 && is_training(n->model); i++) /* as they are, whatever the file says */
        n->out[1 + i] = n->in[3 + i % 2];
    return ingot_batch_norm(n->c, X, Y, n->in[2], n->in[3], n->in[4], eps);
}

ingot_tensor *onnx_instance_norm(Lowering *n)
{
    return ingot_instance_norm(n->c, X, Y, n->in[2], attr_float(n, "epsilon", 1e-5));
}

/* Scale and bias are per group before opset 21, per channel from then on. */
ingot_tensor *onnx_group_norm(Lowering *n)
{
    int64_t groups = attr_int(n, "num_groups", 0), channels;
    ingot_tensor *affine[] = {Y, n->in[2]};
    if (ingot_rank(X) < 2 || groups < 1 ||
        (ingot_dim_is_const(ingot_shape(X, 1), &channels) && channels % groups))
        return fault(n, "its channels are no multiple of num_groups");
    for (int i = 0; i < 2 && n->version < 21; i++) {
        ingot_dim *dims[] = {dim(n, groups),
                             ingot_dim_div(n->c, ingot_shape(X, 1), dim(n, groups))};
        ingot_tensor *wide = ingot_expand(n->c, ingot_unsqueeze(n->c, affine[i], 1), 2, dims);
        affine[i] = ingot_flatten(n->c, wide, 0, 2);
    }
    return ingot_group_norm(n->c, X, groups, affine[0], affine[1], attr_float(n, "epsilon", 1e-5));
}

/* Also gives mean and inverse deviation, in the stash type (f32, or bf16), of f64 too. */
ingot_tensor *onnx_layer_norm(Lowering *n)
{
    int axis;
    double eps = attr_float(n, "epsilon", 1e-5);
    ingot_dtype stash = INGOT_F32;
    if (!axis_in(n, attr_int(n, "axis", -1), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    (void)ingot_onnx_dtype((int32_t)attr_int(n, "stash_type", 1), &stash);
    if (stash != INGOT_F32 && stash != INGOT_BF16)
        return fault(n, "its attribute 'stash_type' is %s, not f32 or bf16",
                     ingot_dtype_name(stash));
    ingot_tensor *y =
        ingot_layer_norm_stats(n->c, X, axis, Y, optional_in(n, 2), eps, &n->out[1], &n->out[2]);
    for (int i = 1; i < 3 && !ingot_is_poison(y); i++)
        n->out[i] = as(n, n->out[i], stash);
    return y;
}

ingot_tensor *onnx_rms_norm(Lowering *n)
{
    int axis;
    if (!axis_in(n, attr_int(n, "axis", -1), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    return ingot_rms_norm(n->c, X, axis, Y, attr_float(n, "epsilon", 1e-5));
}

ingot_tensor *onnx_mean_variance_norm(Lowering *n)
{
    static const int64_t usual[] = {0, 2, 3};
    const int64_t *list;
    unsigned axes;
    int count = attr_ints(n, "axes", &list);
    if (!axes_in(n, count < 0 ? usual : list, count < 0 ? 3 : count, ingot_rank(X), &axes))
        return ingot_poison(n->c);
    return ingot_mean_variance_norm(n->c, X, axes);
}

ingot_tensor *onnx_lp_normalization(Lowering *n)
{
    int axis;
    if (!axis_in(n, attr_int(n, "axis", -1), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    return ingot_lp_norm(n->c, X, axis, (double)attr_int(n, "p", 2));
}

ingot_tensor *onnx_lrn(Lowering *n)
{
    return ingot_lrn(n->c, X, attr_int(n, "size", 0), attr_float(n, "alpha", 1e-4),
                     attr_float(n, "beta", 0.75), attr_float(n, "bias", 1));
}

/* Whether it drops: NULL: never. Training before opset 12, which attributes decided, is not known
 * here: those models are for inference, unless they are trained. */
static ingot_tensor *drops(Lowering *n)
{
    if (is_training(n->model))
        return is_training_step(n->model) ? ingot_scalar_i(n->c, INGOT_BOOL, 1) : NULL;
    return n->version >= 12 ? optional_in(n, 2) : NULL;
}

/* In training: what a mask keeps, over 1 - ratio; else the identity, and a mask of ones. */
ingot_tensor *onnx_dropout(Lowering *n)
{
    ingot_tensor *training = drops(n), *y = X, *keep = NULL;
    ingot_tensor *ratio =
        n->version >= 12 ? optional_in(n, 1) : like(n, X, attr_float(n, "ratio", 0.5));
    const int64_t *mode;
    const double *known;
    if (training && !is_training(n->model) && ints_known(n, 2, &mode) == 1) /* a constant */
        training = mode[0] ? training : NULL;
    if (training && n->version >= 12 && ratio && ingot_is_const(ratio) &&
        floats_in(n, 1, &known) == 1 && known[0] == 0)
        training = NULL;
    if (training) {
        ingot_tensor *x = widen(n, X), *u = uniform_like(n, X, INGOT_F32);
        ingot_tensor *r = ratio ? as(n, reshape_scalar(n, ratio), INGOT_F32)
                                : ingot_scalar_f(n->c, INGOT_F32, 0.5);
        training = as(n, reshape_scalar(n, training), INGOT_BOOL);
        keep = ingot_or(n->c, ingot_ge(n->c, u, r), ingot_not(n->c, training));
        r = as(n, ingot_where(n->c, training, r, like(n, r, 0)), ingot_dtype_of(x));
        y = ingot_div(n->c, x, ingot_sub(n->c, like(n, r, 1), r));
        y = as(n, ingot_where(n->c, keep, y, like(n, x, 0)), ingot_dtype_of(X));
    }
    if (n->n_out > 1) {
        ingot_dim *dims[INGOT_MAX_RANK];
        shape_of(X, dims);
        keep = keep ? keep
                    : ingot_expand(n->c, ingot_scalar_i(n->c, INGOT_BOOL, 1), ingot_rank(X), dims);
        n->out[1] = as(n, keep, n->version >= 10 ? INGOT_BOOL : ingot_dtype_of(X));
    }
    return y;
}

/* ---- losses --------------------------------------------------------------------------------- */

/* -w[t] logp[n, t, d..], 0 where t is ignored; then none, sum or weighted mean */
static ingot_tensor *nll(Lowering *n, ingot_tensor *logp, ingot_tensor *target,
                         ingot_tensor *weight)
{
    const char *reduction = attr_string(n, "reduction", "mean");
    ingot_tensor *index[INGOT_MAX_RANK], *t = as(n, target, INGOT_I64), *used = NULL;
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank = ingot_rank(logp);
    if (rank < 2 || ingot_rank(target) != rank - 1)
        return fault(n, "its scores have rank %d, its labels %d", rank, ingot_rank(target));
    if (attr_has(n, "ignore_index")) {
        used = ingot_ne(n->c, t, ingot_scalar_i(n->c, INGOT_I64, attr_int(n, "ignore_index", 0)));
        t = ingot_where(n->c, used, t, ingot_scalar_i(n->c, INGOT_I64, 0));
    }
    shape_of(t, dims);
    for (int a = 0; a < rank; a++)
        index[a] = a == 1 ? t : ingot_iota(n->c, rank - 1, dims, a ? a - 1 : 0);
    ingot_tensor *picked = ingot_index_checked(n->c, ingot_gather(n->c, logp, index), false);
    ingot_tensor *loss = ingot_neg(n->c, picked);
    ingot_tensor *one = like(n, logp, 1), *w = weight ? ingot_take(n->c, weight, t, 0) : NULL;
    if (used)
        w = ingot_where(n->c, used, w ? w : one, like(n, logp, 0));
    if (w)
        loss = ingot_mul(n->c, loss, w);
    if (strcmp(reduction, "none") == 0)
        return loss;
    unsigned all = all_axes_but(rank - 1, 0);
    if (strcmp(reduction, "sum") == 0)
        return ingot_sum(n->c, loss, all, false);
    if (strcmp(reduction, "mean") != 0)
        return fault(n, "its reduction '%s' is unknown", reduction);
    if (!w)
        return ingot_mean(n->c, loss, all, false);
    return ingot_div(n->c, ingot_sum(n->c, loss, all, false), ingot_sum(n->c, w, all, false));
}

ingot_tensor *onnx_nll_loss(Lowering *n)
{
    return nll(n, X, Y, optional_in(n, 2));
}

ingot_tensor *onnx_softmax_cross_entropy(Lowering *n)
{
    if (ingot_rank(X) < 2)
        return fault(n, "its scores have rank %d, at least 2 is needed", ingot_rank(X));
    n->out[1] = ingot_log_softmax(n->c, X, 1);
    return nll(n, n->out[1], Y, optional_in(n, 2));
}
