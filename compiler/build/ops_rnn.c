/* ops_rnn.c - recurrent layers as loops: LSTM, GRU and plain RNN over x [length, batch, input].
 *
 * The input's share of all gates, x w^T + b, is one matrix product outside the loop; the body adds
 * h r^T for its step.  Weights are [gates * hidden, ...] in the order that a string of letters
 * gives, since frameworks disagree: "iofc" is ONNX's LSTM, "ifgo" PyTorch's (c and g are the same
 * gate). */
#include <string.h>

#include "ops.h"

typedef struct {
    ingot_tensor *xw;    /* [length, batch, gates * hidden] */
    ingot_tensor *rt;    /* [hidden, gates * hidden] */
    int64_t hidden;
    ingot_dim *length, *batch;
} Recurrence;

/* Checks shapes and makes what does not depend on the step. */
static bool prepare(ingot_context *c, const char *what, int64_t gates, ingot_tensor *x, ingot_tensor *w,
                    ingot_tensor *r, ingot_tensor *b, bool reverse, Recurrence *out)
{
    int64_t rows, hidden;
    if (ingot_is_poison(x) || ingot_is_poison(w) || ingot_is_poison(r) || (b && ingot_is_poison(b)))
        return false;
    if (ingot_rank(x) != 3 || ingot_rank(w) != 2 || ingot_rank(r) != 2 ||
        !ingot_dim_is_const(ingot_shape(r, 0), &rows) ||
        !ingot_dim_is_const(ingot_shape(r, 1), &hidden) || rows != gates * hidden ||
        !ingot_dim_equal(ingot_shape(w, 0), ingot_shape(r, 0))) {
        ingot_error(c, INGOT_INVALID,
                    "%s: x must be [length, batch, input], w [%d * hidden, input], r [%d * hidden, hidden]",
                    what, (int)gates, (int)gates);
        return false;
    }
    if (reverse)
        x = ingot_flip(c, x, 1);
    ingot_tensor *xw = ingot_matmul(c, x, ingot_transpose(c, w, 0, 1));
    *out = (Recurrence){.xw = ingot_contiguous(c, b ? ingot_add(c, xw, b) : xw),
                        .rt = ingot_transpose(c, r, 0, 1),
                        .hidden = hidden,
                        .length = ingot_shape(x, 0),
                        .batch = ingot_shape(x, 1)};
    return !ingot_is_poison(out->xw);
}

/* The k-th of the gates in [batch, gates * hidden]. */
static ingot_tensor *gate(ingot_context *c, ingot_tensor *all, int64_t k, int64_t hidden)
{
    return ingot_slice(c, all, 1, ingot_dim_const(c, k * hidden), ingot_dim_const(c, hidden), 1);
}

static ingot_tensor *start(ingot_context *c, const Recurrence *q, ingot_tensor *given)
{
    if (given)
        return given;
    return ingot_expand(c, ingot_like(c, q->xw, 0), 2,
                        (ingot_dim *[]){q->batch, ingot_dim_const(c, q->hidden)});
}

/* Stacked states come in the order of the steps; a reversed layer gives them in the input's order. */
static ingot_tensor *stacked(ingot_context *c, ingot_tensor *y, bool reverse)
{
    return reverse ? ingot_flip(c, y, 1) : y;
}

/* i, f, o = sigmoid, g = tanh;  c' = f c + i g;  h' = o tanh(c') (Hochreiter and Schmidhuber, 1997) */
void ingot_lstm(ingot_context *c, ingot_tensor *x, ingot_tensor *w, ingot_tensor *r, ingot_tensor *b,
                ingot_tensor *h0, ingot_tensor *c0, const char *order, bool reverse, ingot_tensor *out[3])
{
    Recurrence q;
    out[0] = out[1] = out[2] = ingot_poison(c);
    const char *pi = strchr(order, 'i'), *pf = strchr(order, 'f'), *po = strchr(order, 'o');
    const char *pg = strpbrk(order, "cg");
    if (strlen(order) != 4 || !pi || !pf || !po || !pg) {
        ingot_error(c, INGOT_INVALID, "lstm: gates '%s'; the letters i, o, f and c (or g) in their order",
                    order);
        return;
    }
    if (!prepare(c, "lstm", 4, x, w, r, b, reverse, &q))
        return;
    ingot_tensor *carried[2] = {start(c, &q, h0), start(c, &q, c0)}, *got[3];
    ingot_region *body = ingot_region_begin(c);
    ingot_tensor *t = ingot_region_param(c, body, INGOT_I64, 0, NULL);
    ingot_tensor *go = ingot_region_param(c, body, INGOT_BOOL, 0, NULL);
    ingot_tensor *h = ingot_region_param_like(c, body, carried[0]);
    ingot_tensor *s = ingot_region_param_like(c, body, carried[1]);
    ingot_tensor *all = ingot_add(c, ingot_take(c, q.xw, t, 0), ingot_matmul(c, h, q.rt));
    ingot_tensor *i = ingot_sigmoid(c, gate(c, all, pi - order, q.hidden));
    ingot_tensor *f = ingot_sigmoid(c, gate(c, all, pf - order, q.hidden));
    ingot_tensor *o = ingot_sigmoid(c, gate(c, all, po - order, q.hidden));
    ingot_tensor *g = ingot_tanh(c, gate(c, all, pg - order, q.hidden));
    s = ingot_add(c, ingot_mul(c, f, s), ingot_mul(c, i, g));
    h = ingot_mul(c, o, ingot_tanh(c, s));
    ingot_region_end(c, body, 4, (ingot_tensor *[]){go, h, s, h});
    ingot_loop(c, q.length, NULL, 2, carried, body, 1, got);
    out[0] = stacked(c, got[2], reverse);
    out[1] = got[0];
    out[2] = got[1];
}

/* z, r = sigmoid;  n = tanh(x w_n + b_n + r * (h r_n + c_n)) or, with the reset applied before the
 * product, tanh(x w_n + b_n + (r * h) r_n + c_n);  h' = (1 - z) n + z h  (Cho et al., 2014). */
void ingot_gru(ingot_context *c, ingot_tensor *x, ingot_tensor *w, ingot_tensor *r, ingot_tensor *b,
               ingot_tensor *rb, ingot_tensor *h0, const char *order, bool reset_after, bool reverse,
               ingot_tensor *out[2])
{
    Recurrence q;
    out[0] = out[1] = ingot_poison(c);
    const char *pz = strchr(order, 'z'), *pr = strchr(order, 'r'), *pn = strpbrk(order, "hn");
    if (strlen(order) != 3 || !pz || !pr || !pn) {
        ingot_error(c, INGOT_INVALID, "gru: gates '%s'; the letters z, r and h (or n) in their order",
                    order);
        return;
    }
    if (!prepare(c, "gru", 3, x, w, r, b, reverse, &q))
        return;
    ingot_tensor *carried = start(c, &q, h0), *got[2];
    ingot_tensor *bias = rb ? ingot_unsqueeze(c, rb, 0) /* [1, 3 * hidden] */
                            : ingot_expand(c, ingot_like(c, q.xw, 0), 2,
                                           (ingot_dim *[]){ingot_dim_const(c, 1),
                                                           ingot_dim_const(c, 3 * q.hidden)});
    ingot_region *body = ingot_region_begin(c);
    ingot_tensor *t = ingot_region_param(c, body, INGOT_I64, 0, NULL);
    ingot_tensor *go = ingot_region_param(c, body, INGOT_BOOL, 0, NULL);
    ingot_tensor *h = ingot_region_param_like(c, body, carried);
    ingot_tensor *xw = ingot_take(c, q.xw, t, 0);
    ingot_tensor *hr = ingot_add(c, ingot_matmul(c, h, q.rt), bias);
    ingot_tensor *sum = ingot_add(c, xw, hr);
    ingot_tensor *z = ingot_sigmoid(c, gate(c, sum, pz - order, q.hidden));
    ingot_tensor *reset = ingot_sigmoid(c, gate(c, sum, pr - order, q.hidden));
    ingot_tensor *n = gate(c, hr, pn - order, q.hidden);
    if (reset_after) {
        n = ingot_mul(c, reset, n);
    } else {
        ingot_tensor *rn = gate(c, q.rt, pn - order, q.hidden);
        n = ingot_add(c, ingot_matmul(c, ingot_mul(c, reset, h), rn),
                      gate(c, bias, pn - order, q.hidden));
    }
    n = ingot_tanh(c, ingot_add(c, gate(c, xw, pn - order, q.hidden), n));
    h = ingot_add(c, n, ingot_mul(c, z, ingot_sub(c, h, n)));
    ingot_region_end(c, body, 3, (ingot_tensor *[]){go, h, h});
    ingot_loop(c, q.length, NULL, 1, &carried, body, 1, got);
    out[0] = stacked(c, got[1], reverse);
    out[1] = got[0];
}

/* h' = tanh(x w^T + b + h r^T), or relu */
void ingot_rnn(ingot_context *c, ingot_tensor *x, ingot_tensor *w, ingot_tensor *r, ingot_tensor *b,
               ingot_tensor *h0, bool relu, bool reverse, ingot_tensor *out[2])
{
    Recurrence q;
    out[0] = out[1] = ingot_poison(c);
    if (!prepare(c, "rnn", 1, x, w, r, b, reverse, &q))
        return;
    ingot_tensor *carried = start(c, &q, h0), *got[2];
    ingot_region *body = ingot_region_begin(c);
    ingot_tensor *t = ingot_region_param(c, body, INGOT_I64, 0, NULL);
    ingot_tensor *go = ingot_region_param(c, body, INGOT_BOOL, 0, NULL);
    ingot_tensor *h = ingot_region_param_like(c, body, carried);
    h = ingot_add(c, ingot_take(c, q.xw, t, 0), ingot_matmul(c, h, q.rt));
    h = relu ? ingot_relu(c, h) : ingot_tanh(c, h);
    ingot_region_end(c, body, 3, (ingot_tensor *[]){go, h, h});
    ingot_loop(c, q.length, NULL, 1, &carried, body, 1, got);
    out[0] = stacked(c, got[1], reverse);
    out[1] = got[0];
}
