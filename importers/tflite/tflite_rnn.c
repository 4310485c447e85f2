/*
 * tflite_rnn.c - recurrent operators of floats: UNIDIRECTIONAL_SEQUENCE_LSTM, SVDF.
 *
 * Their states are tensors that the file says are variable: they live from run to run, zeros at
 * first (tflite_graph.c makes states of them).
 */
#include "tflite_model.h"

#define X n->in[0]

/* Inputs: x; weights of x and of the state, for the gates i f c o; three peepholes; biases; weights
 * and bias of a projection; state, cell; four scales of a norm. */
enum { OF_X = 1, OF_STATE = 5, PEEPHOLE = 9, BIAS = 12, PROJECTION = 16, STATE = 18, CELL = 19 };

static bool has_any(TfliteNode *n, int from, int to)
{
    for (int i = from; i < to && i < n->n_in; i++)
        if (n->in[i])
            return true;
    return false;
}

static bool has_all(TfliteNode *n, int from, int to)
{
    for (int i = from; i < to; i++)
        if (!tfl_in(n, i))
            return false;
    return true;
}

static ingot_tensor *gates(TfliteNode *n, int from)
{
    return ingot_concat(n->c, 4, n->in + from, 0);
}

/* x [T, B, I]: one step after the other; cells stay within -clip and clip. */
static void clipped_lstm(TfliteNode *n, ingot_tensor *x, const ingot_recurrence *p, double clip,
                         ingot_tensor *out[3])
{
    ingot_context *c = n->c;
    ingot_tensor *gate[4], *carried[] = {p->state, p->cell}, *loop[3];
    ingot_dim *size = ingot_shape(p->state, 1);
    ingot_tensor *sums = ingot_linear(c, x, p->w, p->b); /* [T, B, 4 H] */
    if (ingot_is_poison(sums)) {
        out[0] = sums;
        return;
    }
    ingot_region *r = ingot_region_begin(c);
    ingot_tensor *t = ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_tensor *go = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *h = ingot_region_param_like(c, r, p->state);
    ingot_tensor *cell = ingot_region_param_like(c, r, p->cell);
    ingot_tensor *g = ingot_add(c, ingot_take(c, sums, t, 0), ingot_linear(c, h, p->r, NULL));
    for (int i = 0; i < 4; i++)
        gate[i] = ingot_slice(c, g, 1, ingot_dim_mul(c, size, tfl_dim(n, i)), size, 1);
    cell = ingot_add(c, ingot_mul(c, ingot_sigmoid(c, gate[1]), cell),
                     ingot_mul(c, ingot_sigmoid(c, gate[0]), ingot_tanh(c, gate[2])));
    cell = ingot_clamp(c, cell, -clip, clip);
    h = ingot_mul(c, ingot_sigmoid(c, gate[3]), ingot_tanh(c, cell));
    ingot_region_end(c, r, 4, (ingot_tensor *[]){go, h, cell, h});
    ingot_loop(c, ingot_shape(x, 0), NULL, 2, carried, r, 1, loop);
    out[0] = loop[2];
    out[1] = loop[0];
    out[2] = loop[1];
}

ingot_tensor *tflite_sequence_lstm(TfliteNode *n)
{
    ingot_tensor *out[3], *x = X;
    const bool time_major = tfl_int(n, 3, 1, 0) != 0;
    const double clip = (double)ingot_tflite_float(&n->op->options, 1, 0);
    if (has_any(n, PEEPHOLE, BIAS) || has_any(n, PROJECTION, STATE) || has_any(n, 20, 24))
        return tfl_unsupported(n, "peepholes, projections and norms are not supported");
    if (!has_all(n, OF_X, PEEPHOLE) || !has_all(n, BIAS, PROJECTION) ||
        !has_all(n, STATE, CELL + 1))
        return tfl_unsupported(n, "without all four gates and states it is not supported");
    if (tfl_int(n, 0, 1, 0) != 4 || clip < 0)
        return tfl_unsupported(n, "with another function than TANH it is not supported");
    if (ingot_rank(x) != 3 || ingot_dtype_of(n->in[OF_X]) != INGOT_F32)
        return tfl_unsupported(n, "its weights are no FLOAT32, or its input has not rank 3");
    const ingot_recurrence r = {.w = gates(n, OF_X),
                                .r = gates(n, OF_STATE),
                                .b = gates(n, BIAS),
                                .state = n->in[STATE],
                                .cell = n->in[CELL],
                                .order = "ifco"};
    x = time_major ? x : ingot_transpose(n->c, x, 0, 1);
    if (clip > 0)
        clipped_lstm(n, x, &r, clip, out);
    else
        ingot_lstm(n->c, x, &r, out);
    if (ingot_is_poison(out[0]))
        return out[0];
    ingot_state_next(n->c, n->in[STATE], out[1]);
    ingot_state_next(n->c, n->in[CELL], out[2]);
    return time_major ? out[0] : ingot_transpose(n->c, out[0], 0, 1);
}

/* x [B, I] by weights [U*R, I] is what came last; the state has it and those before, [B, U*R, T],
 * and is weighed along time by [U*R, T]; R of these sums are a unit. */
ingot_tensor *tflite_svdf(TfliteNode *n)
{
    ingot_context *c = n->c;
    const int64_t rank = tfl_int(n, 0, 4, 1);
    int64_t filters, times, batch;
    if (ingot_rank(X) != 2 || ingot_rank(n->in[1]) != 2 || ingot_rank(n->in[2]) != 2 ||
        !tfl_in(n, 4) || !tfl_positive(n, "rank", rank) ||
        !ingot_dim_is_const(ingot_shape(n->in[2], 0), &filters) ||
        !ingot_dim_is_const(ingot_shape(n->in[2], 1), &times) ||
        !ingot_dim_is_const(ingot_shape(X, 0), &batch) || filters % rank || times < 1)
        return tfl_fault(n, "its input, weights and state do not fit together");
    if (ingot_dtype_of(n->in[1]) != INGOT_F32)
        return tfl_unsupported(n, "its weights are no FLOAT32");
    ingot_tensor *last = ingot_linear(c, X, n->in[1], NULL);
    ingot_tensor *all = ingot_reshape_c(c, n->in[4], 3, (int64_t[]){batch, filters, times});
    ingot_tensor *parts[] = {ingot_slice(c, all, 2, tfl_dim(n, 1), tfl_dim(n, times - 1), 1),
                             ingot_unsqueeze(c, last, 2)};
    all = ingot_concat(c, 2, parts, 2);
    if (ingot_is_poison(all))
        return all;
    ingot_state_next(c, n->in[4], ingot_reshape_c(c, all, 2, (int64_t[]){batch, filters * times}));
    ingot_tensor *y = ingot_sum(c, ingot_mul(c, all, n->in[2]), 4, false);
    y = ingot_reshape_c(c, y, 3, (int64_t[]){batch, filters / rank, rank});
    y = ingot_sum(c, y, 4, false);
    if (tfl_in(n, 3))
        y = ingot_add(c, y, n->in[3]);
    return tfl_activate(n, y, tfl_int(n, 1, 1, 0));
}
