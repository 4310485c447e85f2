/*
 * tflite_lstm.c - LSTMs and simple recurrences of floats, with weights of floats or bytes.
 *
 *     i, f, o = sigmoid(W x + R h + p * c + b)      gates; without i: 1 - f
 *     c = f * c + i * tanh(W x + R h + b)           what is between -clip and clip
 *     h = P (o * tanh(c)) + b                       P: a projection, if there is one
 *
 * With a norm, the sum of a gate has mean 0 and variance 1 before its scale and bias.
 * Their states are tensors that the file says are variable: they live from run to run
 * (tflite_graph.c).
 */
#include "tflite_lstm.h"

#define X n->in[0]

enum { GATE_I, GATE_F, GATE_C, GATE_O };

bool tfl_has_any(TfliteNode *n, int from, int to)
{
    for (int i = from; i < to && i < n->n_in; i++)
        if (n->in[i])
            return true;
    return false;
}

bool tfl_has_all(TfliteNode *n, int from, int to)
{
    for (int i = from; i < to; i++)
        if (!tfl_in(n, i))
            return false;
    return true;
}

ingot_tensor *tfl_linear(TfliteNode *n, ingot_tensor *x, int w, bool both_sides)
{
    TfliteBytes b;
    if (!tfl_quantized(n->ti[w]))
        return ingot_linear(n->c, x, n->in[w], NULL);
    if (ingot_is_poison(x) || !tfl_bytes(n, x, 1u << (ingot_rank(x) - 1), both_sides, &b))
        return ingot_poison(n->c);
    return tfl_byte_linear(n, &b, w);
}

/* Weights of the cell may have a scale too. */
static ingot_tensor *peephole(TfliteNode *n, int w, ingot_tensor *cell)
{
    ingot_tensor *p = n->in[w];
    if (tfl_quantized(n->ti[w]))
        p = ingot_mul(n->c, ingot_cast(n->c, tfl_byte_weights(n, w), INGOT_F32),
                      tfl_weight_scales(n, w));
    return ingot_mul(n->c, cell, p);
}

static ingot_tensor *normed(TfliteNode *n, ingot_tensor *x)
{
    if (ingot_is_poison(x))
        return x;
    const unsigned last = 1u << (ingot_rank(x) - 1);
    x = ingot_sub(n->c, x, ingot_mean(n->c, x, last, true));
    ingot_tensor *v = ingot_mean(n->c, ingot_mul(n->c, x, x), last, true);
    return ingot_div(n->c, x, ingot_sqrt(n->c, ingot_add_c(n->c, v, 1e-8)));
}

/* The sum of a gate; sum: of x, at this step. */
static ingot_tensor *gate_of(TfliteNode *n, const TfliteLstm *p, int gate, ingot_tensor *sum,
                             ingot_tensor *h, ingot_tensor *cell)
{
    ingot_context *c = n->c;
    const int hole = p->peephole + gate - (gate == GATE_O);
    sum = ingot_add(c, sum, tfl_linear(n, h, p->recurrent + gate, p->both_sides));
    if (p->peephole && gate != GATE_C && tfl_in(n, hole))
        sum = ingot_add(c, sum, peephole(n, hole, cell));
    if (p->norm && tfl_in(n, p->norm + gate))
        sum = ingot_mul(c, normed(n, sum), n->in[p->norm + gate]);
    sum = ingot_add(c, sum, n->in[p->bias + gate]);
    return gate == GATE_C ? tfl_activate(n, sum, p->function) : ingot_sigmoid(c, sum);
}

static ingot_tensor *clipped(TfliteNode *n, ingot_tensor *x, double clip)
{
    return clip > 0 ? ingot_clamp(n->c, x, -clip, clip) : x;
}

/* sums: of x at this step, NULL where there is no gate i. h and cell become the next ones. */
static void step_of(TfliteNode *n, const TfliteLstm *p, ingot_tensor **sums, ingot_tensor **h,
                    ingot_tensor **cell, int log)
{
    (void)log; /* floats have no scale */
    ingot_context *c = n->c;
    ingot_tensor *f = gate_of(n, p, GATE_F, sums[GATE_F], *h, *cell);
    ingot_tensor *i = sums[GATE_I] ? gate_of(n, p, GATE_I, sums[GATE_I], *h, *cell)
                                   : ingot_sub(c, ingot_like(c, f, 1), f);
    ingot_tensor *g = gate_of(n, p, GATE_C, sums[GATE_C], *h, *cell);
    ingot_tensor *next = ingot_add(c, ingot_mul(c, f, *cell), ingot_mul(c, i, g));
    next = clipped(n, next, p->cell_clip);
    ingot_tensor *o = gate_of(n, p, GATE_O, sums[GATE_O], *h, next);
    ingot_tensor *y = ingot_mul(c, o, tfl_activate(n, next, p->function));
    if (p->projection && tfl_in(n, p->projection)) {
        y = tfl_linear(n, y, p->projection, p->both_sides);
        if (p->projection_bias && tfl_in(n, p->projection_bias))
            y = ingot_add(c, y, n->in[p->projection_bias]);
        y = clipped(n, y, p->projection_clip);
    }
    *h = y;
    *cell = next;
}

ingot_tensor *tfl_lstm_steps(TfliteNode *n, ingot_tensor *x, const TfliteLstm *p,
                             ingot_tensor **sums, TfliteLstmStep *step, int log)
{
    ingot_context *c = n->c;
    ingot_tensor *here[4] = {NULL}, *loop[3], *carried[] = {n->in[p->state], n->in[p->cell]};
    if (ingot_is_poison(sums[GATE_F]) || ingot_is_poison(sums[GATE_C]))
        return ingot_poison(c);
    ingot_region *r = ingot_region_begin(c);
    ingot_tensor *t = ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_tensor *go = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *h = ingot_region_param_like(c, r, carried[0]);
    ingot_tensor *cell = ingot_region_param_like(c, r, carried[1]);
    for (int g = 0; g < 4; g++)
        if (sums[g])
            here[g] = ingot_take(c, sums[g], t, 0);
    step(n, p, here, &h, &cell, log);
    ingot_region_end(c, r, 4, (ingot_tensor *[]){go, h, cell, h});
    ingot_loop(c, ingot_shape(x, 0), NULL, 2, carried, r, 1, loop);
    if (ingot_is_poison(loop[0]))
        return loop[0];
    ingot_state_next(c, n->in[p->state], loop[0]);
    ingot_state_next(c, n->in[p->cell], loop[1]);
    return loop[2];
}

ingot_tensor *tfl_lstm(TfliteNode *n, ingot_tensor *x, const TfliteLstm *p)
{
    ingot_tensor *sums[4] = {NULL};
    if (p->backward && !ingot_is_poison(x))
        x = ingot_flip(n->c, x, 1);
    for (int g = 0; g < 4; g++)
        if (tfl_in(n, p->x + g))
            sums[g] = tfl_linear(n, x, p->x + g, p->both_sides);
    ingot_tensor *y = tfl_lstm_steps(n, x, p, sums, step_of, 0);
    return p->backward && !ingot_is_poison(y) ? ingot_flip(n->c, y, 1) : y;
}

/* ---- sequences ------------------------------------------------------------------------------- */

static ingot_tensor *swapped(TfliteNode *n, ingot_tensor *x, bool swap)
{
    return swap && !ingot_is_poison(x) ? ingot_transpose(n->c, x, 0, 1) : x;
}

/* Inputs: x; weights of x and of the state, for the gates i f c o; three peepholes; biases; weights
 * and bias of a projection; state, cell; four scales of a norm. */
enum { OF_X = 1, OF_STATE = 5, PEEPHOLE = 9, BIAS = 12, PROJECTION = 16, STATE = 18, NORM = 20 };

/* All gates, nothing else: the common one. */
static bool is_plain(TfliteNode *n, const TfliteLstm *p)
{
    return tfl_has_all(n, OF_X, PEEPHOLE) && tfl_has_all(n, BIAS, PROJECTION) &&
           !tfl_has_any(n, PEEPHOLE, BIAS) && !tfl_has_any(n, PROJECTION, STATE) &&
           !tfl_has_any(n, NORM, 24) && p->function == 4 && p->cell_clip == 0 &&
           ingot_dtype_of(n->in[OF_X]) == INGOT_F32;
}

static ingot_tensor *plain_lstm(TfliteNode *n, ingot_tensor *x)
{
    ingot_tensor *out[3];
    const ingot_recurrence r = {.w = ingot_concat(n->c, 4, n->in + OF_X, 0),
                                .r = ingot_concat(n->c, 4, n->in + OF_STATE, 0),
                                .b = ingot_concat(n->c, 4, n->in + BIAS, 0),
                                .state = n->in[STATE],
                                .cell = n->in[STATE + 1],
                                .order = "ifco"};
    ingot_lstm(n->c, x, &r, out);
    if (ingot_is_poison(out[0]))
        return out[0];
    ingot_state_next(n->c, n->in[STATE], out[1]);
    ingot_state_next(n->c, n->in[STATE + 1], out[2]);
    return out[0];
}

/* What a gate needs is there: all of i, or nothing. */
static bool complete(TfliteNode *n, const TfliteLstm *p)
{
    const bool cifg = !tfl_in(n, p->x);
    if (tfl_has_all(n, p->x + cifg, p->x + 4) &&
        tfl_has_all(n, p->recurrent + cifg, p->recurrent + 4) &&
        tfl_has_all(n, p->bias + cifg, p->bias + 4) && tfl_in(n, p->state) && tfl_in(n, p->cell) &&
        (!p->norm || !tfl_has_any(n, p->norm, p->norm + 4) ||
         tfl_has_all(n, p->norm + cifg, p->norm + 4)))
        return true;
    tfl_fault(n, "weights, biases or states of a gate are missing");
    return false;
}

static TfliteLstm whole_lstm(TfliteNode *n)
{
    return (TfliteLstm){.x = OF_X,
                        .recurrent = OF_STATE,
                        .peephole = PEEPHOLE,
                        .bias = BIAS,
                        .norm = NORM,
                        .projection = PROJECTION,
                        .projection_bias = PROJECTION + 1,
                        .state = STATE,
                        .cell = STATE + 1,
                        .function = tfl_int(n, 0, 1, 0),
                        .cell_clip = (double)ingot_tflite_float(&n->op->options, 1, 0),
                        .projection_clip = (double)ingot_tflite_float(&n->op->options, 2, 0)};
}

ingot_tensor *tflite_sequence_lstm(TfliteNode *n)
{
    TfliteLstm p = whole_lstm(n);
    const bool swap = !tfl_int(n, 3, 1, 0);
    p.both_sides = tfl_int(n, 4, 1, 0) != 0;
    if (ingot_rank(X) != 3)
        return tfl_fault(n, "its input has rank %d, not 3", ingot_rank(X));
    if (tfl_int(n, 5, 1, 0))
        return tfl_unsupported(n, "diagonal recurrent weights are not supported");
    if (!complete(n, &p))
        return ingot_poison(n->c);
    ingot_tensor *x = swapped(n, X, swap);
    if (n->ti[0]->type == INGOT_TFLITE_INT8)
        return swapped(n, tfl_quant_lstm(n, x, &p), swap);
    return swapped(n, is_plain(n, &p) ? plain_lstm(n, x) : tfl_lstm(n, x, &p), swap);
}

/* x, h, weights, biases, c -> h, c, and two that are scratch. Gates lie as i c f o. */
static ingot_tensor *basic_lstm(TfliteNode *n)
{
    ingot_context *c = n->c;
    ingot_tensor *gate[4], *both[] = {X, n->in[1]};
    if (n->n_in != 5 || n->n_out < 2 || ingot_dtype_of(X) != INGOT_F32 || ingot_rank(X) < 1 ||
        !tfl_has_all(n, 0, 5))
        return tfl_unsupported(n, "of such inputs the basic kernel is not supported");
    const int last = ingot_rank(X) - 1;
    ingot_tensor *x = ingot_concat(c, 2, both, last);
    ingot_tensor *sums = ingot_linear(c, x, n->in[2], n->in[3]);
    if (ingot_is_poison(sums) || ingot_is_poison(n->in[4]))
        return ingot_poison(c);
    ingot_dim *size = ingot_shape(n->in[4], ingot_rank(n->in[4]) - 1);
    for (int i = 0; i < 4; i++)
        gate[i] = ingot_slice(c, sums, last, ingot_dim_mul(c, size, tfl_dim(n, i)), size, 1);
    ingot_tensor *in = ingot_mul(c, ingot_sigmoid(c, gate[0]), ingot_tanh(c, gate[1]));
    ingot_tensor *cell = ingot_mul(c, ingot_sigmoid(c, gate[2]), n->in[4]);
    n->out[1] = ingot_add(c, cell, in);
    if (n->n_out > 2)
        n->out[2] = x;
    if (n->n_out > 3)
        n->out[3] = sums;
    return ingot_mul(c, ingot_sigmoid(c, gate[3]), ingot_tanh(c, n->out[1]));
}

/* One step: x [B, I] -> [B, O] */
ingot_tensor *tflite_lstm(TfliteNode *n)
{
    TfliteLstm p = whole_lstm(n);
    p.both_sides = tfl_int(n, 4, 1, 0) != 0;
    if (tfl_int(n, 3, 1, 0) == 1)
        return basic_lstm(n);
    if (n->n_in < 20 || ingot_rank(X) != 2)
        return tfl_fault(n, "it has %d inputs, the first of rank %d, not 20 or 24 and 2", n->n_in,
                         ingot_rank(X));
    if (!complete(n, &p))
        return ingot_poison(n->c);
    ingot_tensor *x = ingot_unsqueeze(n->c, X, 0);
    x = n->ti[0]->type == INGOT_TFLITE_INT8 ? tfl_quant_lstm(n, x, &p) : tfl_lstm(n, x, &p);
    return ingot_is_poison(x) ? x : ingot_squeeze(n->c, x, 0);
}

/* Two directions have 17 inputs each; behind their four states is another input. */
ingot_tensor *tflite_two_way_lstm(TfliteNode *n)
{
    const bool swap = !tfl_int(n, 4, 1, 1);
    ingot_tensor *y[2];
    if (ingot_rank(X) != 3 || n->ti[0]->type == INGOT_TFLITE_INT8)
        return tfl_unsupported(n, "its input has rank %d, not 3, or is INT8", ingot_rank(X));
    if (tfl_has_any(n, 39, 48))
        return tfl_unsupported(n, "auxiliary inputs are not supported");
    for (int i = 0; i < 2; i++) {
        const int base = 17 * i;
        TfliteLstm p = {.x = base + 1,
                        .recurrent = base + 5,
                        .peephole = base + 9,
                        .bias = base + 12,
                        .projection = base + 16,
                        .projection_bias = base + 17,
                        .state = 35 + 2 * i,
                        .cell = 36 + 2 * i,
                        .function = tfl_int(n, 0, 1, 0),
                        .cell_clip = (double)ingot_tflite_float(&n->op->options, 1, 0),
                        .projection_clip = (double)ingot_tflite_float(&n->op->options, 2, 0),
                        .both_sides = tfl_int(n, 5, 1, 0) != 0,
                        .backward = i == 1};
        if (!complete(n, &p))
            return ingot_poison(n->c);
        y[i] = swapped(n, tfl_lstm(n, swapped(n, X, swap), &p), swap);
    }
    if (tfl_int(n, 3, 1, 0))
        return ingot_concat(n->c, 2, y, 2);
    if (n->n_out > 1)
        n->out[1] = y[1];
    return y[0];
}

/* ---- h = f(W x + R h + b) -------------------------------------------------------------------- */

/* x [T, B, I]; w: number of the input W, R, b and h behind it */
static ingot_tensor *simple(TfliteNode *n, ingot_tensor *x, int w, int64_t function,
                            bool both_sides, bool backward)
{
    ingot_context *c = n->c;
    ingot_tensor *loop[2];
    if (backward && !ingot_is_poison(x))
        x = ingot_flip(c, x, 1);
    ingot_tensor *sums = tfl_linear(n, x, w, both_sides);
    if (ingot_is_poison(sums))
        return sums;
    sums = ingot_add(c, sums, n->in[w + 2]);
    ingot_region *r = ingot_region_begin(c);
    ingot_tensor *t = ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_tensor *go = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *h = ingot_region_param_like(c, r, n->in[w + 3]);
    h = ingot_add(c, ingot_take(c, sums, t, 0), tfl_linear(n, h, w + 1, both_sides));
    h = tfl_activate(n, h, function);
    ingot_region_end(c, r, 3, (ingot_tensor *[]){go, h, h});
    ingot_loop(c, ingot_shape(x, 0), NULL, 1, n->in + w + 3, r, 1, loop);
    if (ingot_is_poison(loop[0]))
        return loop[0];
    ingot_state_next(c, n->in[w + 3], loop[0]);
    return backward ? ingot_flip(c, loop[1], 1) : loop[1];
}

ingot_tensor *tflite_rnn(TfliteNode *n)
{
    if (ingot_rank(X) != 2)
        return tfl_fault(n, "its input has rank %d, not 2", ingot_rank(X));
    ingot_tensor *y = simple(n, ingot_unsqueeze(n->c, X, 0), 1, tfl_int(n, 0, 1, 0),
                             tfl_int(n, 1, 1, 0) != 0, false);
    return ingot_is_poison(y) ? y : ingot_squeeze(n->c, y, 0);
}

ingot_tensor *tflite_sequence_rnn(TfliteNode *n)
{
    const bool swap = !tfl_int(n, 0, 1, 0);
    if (ingot_rank(X) != 3)
        return tfl_fault(n, "its input has rank %d, not 3", ingot_rank(X));
    return swapped(
        n, simple(n, swapped(n, X, swap), 1, tfl_int(n, 1, 1, 0), tfl_int(n, 2, 1, 0) != 0, false),
        swap);
}

ingot_tensor *tflite_two_way_rnn(TfliteNode *n)
{
    const bool swap = !tfl_int(n, 0, 1, 0), both_sides = tfl_int(n, 3, 1, 0) != 0;
    ingot_tensor *y[2], *x = swapped(n, X, swap);
    if (ingot_rank(X) != 3 || !tfl_has_all(n, 0, 9))
        return tfl_fault(n, "its input has rank %d, not 3, or weights are missing", ingot_rank(X));
    if (tfl_has_any(n, 9, 12))
        return tfl_unsupported(n, "auxiliary inputs are not supported");
    for (int i = 0; i < 2; i++)
        y[i] = swapped(n, simple(n, x, 1 + 4 * i, tfl_int(n, 1, 1, 0), both_sides, i == 1), swap);
    if (tfl_int(n, 2, 1, 0))
        return ingot_concat(n->c, 2, y, 2);
    if (n->n_out > 1)
        n->out[1] = y[1];
    return y[0];
}
