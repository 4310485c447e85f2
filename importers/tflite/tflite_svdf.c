/*
 * tflite_svdf.c - SVDF: a layer over time whose weights are a product of two, in floats, with
 * weights of bytes, and in integers.
 *
 *     x [B, I] by weights [U*R, I] is what came last; the state has it and those before, [B, U*R,
 * T], and is weighed along time by [U*R, T]; R of these sums are a unit.
 */
#include "tflite_lstm.h"
#include "tflite_quant.h"

#define X n->in[0]

typedef struct {
    int64_t batch, filters, times, rank;
} TfliteSvdf;

static bool svdf_sizes(TfliteNode *n, TfliteSvdf *s)
{
    s->rank = tfl_int(n, 0, 4, 1);
    if (ingot_rank(X) == 2 && ingot_rank(n->in[1]) == 2 && ingot_rank(n->in[2]) == 2 &&
        tfl_in(n, 4) && tfl_positive(n, "rank", s->rank) &&
        ingot_dim_is_const(ingot_shape(n->in[2], 0), &s->filters) &&
        ingot_dim_is_const(ingot_shape(n->in[2], 1), &s->times) &&
        ingot_dim_is_const(ingot_shape(X, 0), &s->batch) && s->filters % s->rank == 0 &&
        s->times >= 1)
        return true;
    tfl_fault(n, "its input, weights and state do not fit together");
    return false;
}

/* The state with `last` [B, U*R] behind it, [B, U*R, T], and what the next run finds. */
static ingot_tensor *remembered(TfliteNode *n, const TfliteSvdf *s, ingot_tensor *last)
{
    ingot_context *c = n->c;
    ingot_tensor *all =
        ingot_reshape_c(c, n->in[4], 3, (int64_t[]){s->batch, s->filters, s->times});
    ingot_tensor *parts[] = {ingot_slice(c, all, 2, tfl_dim(n, 1), tfl_dim(n, s->times - 1), 1),
                             ingot_unsqueeze(c, last, 2)};
    all = ingot_concat(c, 2, parts, 2);
    if (!ingot_is_poison(all))
        ingot_state_next(c, n->in[4],
                         ingot_reshape_c(c, all, 2, (int64_t[]){s->batch, s->filters * s->times}));
    return all;
}

/* [B, U*R, T] weighed along time, R of it added, and the bias: [B, U] */
static ingot_tensor *units(TfliteNode *n, const TfliteSvdf *s, ingot_tensor *all, ingot_tensor *w)
{
    ingot_context *c = n->c;
    ingot_tensor *y = ingot_sum(c, ingot_mul(c, all, w), 4, false);
    y = ingot_reshape_c(c, y, 3, (int64_t[]){s->batch, s->filters / s->rank, s->rank});
    y = ingot_sum(c, y, 4, false);
    return tfl_in(n, 3) ? ingot_add(c, y, n->in[3]) : y;
}

ingot_tensor *tflite_svdf(TfliteNode *n)
{
    TfliteSvdf s;
    if (!svdf_sizes(n, &s))
        return ingot_poison(n->c);
    if (n->ti[0]->type != INGOT_TFLITE_FLOAT32)
        return tfl_unsupported(n, "its input is integers, and its result is not");
    ingot_tensor *w = n->in[2], *last = tfl_linear(n, X, 1, tfl_int(n, 2, 1, 0) != 0);
    if (ingot_is_poison(last))
        return last;
    if (tfl_quantized(n->ti[2]))
        w = ingot_mul(n->c, ingot_cast(n->c, tfl_byte_weights(n, 2), INGOT_F32),
                      tfl_weight_scales(n, 2));
    return tfl_activate(n, units(n, &s, remembered(n, &s, last), w), tfl_int(n, 1, 1, 0));
}

/* The state has 16 bits, or 8 as tflite-micro knows it: what is new wraps there, where its zero
 * point leads beyond them. Bounds of the type stand for the activation function. */
ingot_tensor *tflite_q_svdf(TfliteNode *n)
{
    TfliteSvdf s;
    if (!svdf_sizes(n, &s))
        return ingot_poison(n->c);
    const ingot_tflite_tensor *state = n->ti[4];
    const bool bytes = state->type == INGOT_TFLITE_INT8;
    if (n->ti[0]->type != INGOT_TFLITE_INT8 || n->ti[2]->type != state->type ||
        (!bytes && state->type != INGOT_TFLITE_INT16))
        return tfl_unsupported(n, "of integers its input is INT8, and its weights of time and its "
                                  "state are both INT8 or both INT16");
    const float one = tfl_scale(n->ti[0]) * tfl_scale(n->ti[1]) / tfl_scale(state),
                two = tfl_scale(state) * tfl_scale(n->ti[2]) / tfl_scale(n->to[0]);
    const TfliteMultiplier q[] = {tfl_multiplier((double)one), tfl_multiplier((double)two)};
    const int32_t zero = bytes ? tfl_zero(state) : 0;
    ingot_tensor *last = ingot_linear(n->c, tfl_centred(n, 0), tfl_byte_weights(n, 1), NULL);
    last = tfl_rescale(n, last, &q[0], 1, 0);
    last = bytes ? ingot_clamp(n->c, last, INT8_MIN, INT8_MAX) : tfl_clamp_16(n, last);
    if (ingot_is_poison(last))
        return last;
    last = ingot_add_c(n->c, last, zero);
    ingot_tensor *all = remembered(n, &s, ingot_cast(n->c, last, bytes ? INGOT_I8 : INGOT_I16));
    all = ingot_add_c(n->c, tfl_cast(n, all, INGOT_I32), -zero);
    ingot_tensor *y = units(n, &s, all, tfl_byte_weights(n, 2));
    return tfl_finish(n, tfl_rescale(n, y, &q[1], 1, 0), 0);
}
