/*
 * onnx_rnn.c - ONNX RNN, GRU and LSTM.
 *
 * Shapes: x [T, N, I]; per direction w [G H, I], r [G H, H], G gates of H rows each. What does not
 * depend on the state, x w^T + biases, is one product over all times; the rest is a loop over time:
 *
 *     RNN    h' = f(xw + h r^T)
 *     GRU    z = f(.), r = f(.), c = g(xw + (r * h) r^T), h' = (1 - z) * c + z * h
 *     LSTM   i = f(. + pi * c), f = f(. + pf * c), c' = f * c + i * g(.),
 *            o = f(. + po * c'), h' = o * h(c')
 *
 * A reverse direction runs through the times backwards. Where sequences have lengths, a state stays
 * as it is at times past the length, and the output there is zero.
 */
#include <string.h>

#include "onnx.h"

enum { MAX_ACTS = 6, MAX_GATES = 4 };

typedef struct {
    int kind;
    double alpha, beta;
} Act;

typedef struct Rnn Rnn;

/* One direction. */
typedef struct {
    const Rnn *rnn;
    ingot_tensor *r, *hidden_bias; /* hidden_bias: of GRU with linear_before_reset, [H] */
    ingot_tensor *peephole[3];     /* i, o, f; NULL: none */
    const Act *act;
} Cell;

/* The next states from xw [N, G H], h and c [N, H]. next[1] is c for LSTM. */
typedef void StepFn(const Cell *, ingot_tensor *xw, ingot_tensor *const *state,
                    ingot_tensor **next);

struct Rnn {
    Lowering *n;
    int gates, states, acts; /* acts: of one direction */
    StepFn *step;
    bool layout, linear_before_reset, input_forget;
    int directions;
    bool reverse[2];
    int64_t hidden;
    double clip; /* 0: none */
    Act act[MAX_ACTS];
    ingot_tensor *x, *w, *r, *bias, *lengths, *initial[2], *peephole;
};

/* ---- activations ----------------------------------------------------------------------------- */

enum {
    RELU,
    TANH,
    SIGMOID,
    AFFINE,
    LEAKY_RELU,
    THRESHOLDED_RELU,
    SCALED_TANH,
    HARD_SIGMOID,
    ELU,
    SOFTSIGN,
    SOFTPLUS
};

static const struct {
    const char *name;
    int n_param; /* 1: alpha, 2: alpha and beta */
    double alpha, beta;
} activations[] = {
    [RELU] = {"relu", 0, 0, 0},
    [TANH] = {"tanh", 0, 0, 0},
    [SIGMOID] = {"sigmoid", 0, 0, 0},
    [AFFINE] = {"affine", 2, 1, 0},
    [LEAKY_RELU] = {"leakyrelu", 1, 0.01, 0},
    [THRESHOLDED_RELU] = {"thresholdedrelu", 1, 1, 0},
    [SCALED_TANH] = {"scaledtanh", 2, 1, 1},
    [HARD_SIGMOID] = {"hardsigmoid", 2, 0.2, 0.5},
    [ELU] = {"elu", 1, 1, 0},
    [SOFTSIGN] = {"softsign", 0, 0, 0},
    [SOFTPLUS] = {"softplus", 0, 0, 0},
};

static bool same_name(const char *given, const char *lower)
{
    for (; *given && *lower; given++, lower++) {
        char c = *given >= 'A' && *given <= 'Z' ? (char)(*given + 32) : *given;
        if (c != *lower)
            return false;
    }
    return *given == *lower;
}

static ingot_tensor *activate(const Rnn *s, const Act *act, ingot_tensor *x)
{
    ingot_context *c = s->n->c;
    double a = act->alpha, b = act->beta;
    ingot_tensor *zero = ingot_like(c, x, 0);
    switch (act->kind) {
    case RELU: return ingot_relu(c, x);
    case TANH: return ingot_tanh(c, x);
    case SIGMOID: return ingot_sigmoid(c, x);
    case AFFINE: return ingot_add_c(c, ingot_mul_c(c, x, a), b);
    case LEAKY_RELU: return ingot_where(c, ingot_lt(c, x, zero), ingot_mul_c(c, x, a), x);
    case THRESHOLDED_RELU: return ingot_where(c, ingot_gt(c, x, ingot_like(c, x, a)), x, zero);
    case SCALED_TANH: return ingot_mul_c(c, ingot_tanh(c, ingot_mul_c(c, x, b)), a);
    case HARD_SIGMOID: return ingot_clamp(c, ingot_add_c(c, ingot_mul_c(c, x, a), b), 0, 1);
    case ELU: {
        ingot_tensor *low = ingot_mul_c(c, ingot_add_c(c, ingot_exp(c, x), -1), a);
        return ingot_where(c, ingot_lt(c, x, zero), low, x);
    }
    case SOFTSIGN: return ingot_div(c, x, ingot_add_c(c, ingot_abs(c, x), 1));
    default: return ingot_softplus(c, x);
    }
}

/* max(-clip, min(x, clip)), then the function. */
static ingot_tensor *apply(const Rnn *s, const Act *act, ingot_tensor *x)
{
    if (s->clip > 0)
        x = ingot_clamp(s->n->c, x, -s->clip, s->clip);
    return activate(s, act, x);
}

/* The lists activation_alpha and activation_beta have entries only for functions that take one. */
static bool read_activations(Rnn *s, const char *const *defaults)
{
    Lowering *n = s->n;
    const char *const *names;
    const float *alpha, *beta;
    int total = s->acts * s->directions, at_alpha = 0, at_beta = 0;
    int n_names = attr_strings(n, "activations", &names);
    int n_alpha = attr_floats(n, "activation_alpha", &alpha);
    int n_beta = attr_floats(n, "activation_beta", &beta);
    if (n_names > 0 && n_names != total) {
        fault(n, "it has %d activations, not %d", n_names, total);
        return false;
    }
    for (int i = 0; i < total; i++) {
        const char *name = n_names > 0 ? names[i] : defaults[i % s->acts];
        int kind = 0;
        while (kind < COUNT(activations) && !same_name(name, activations[kind].name))
            kind++;
        if (kind == COUNT(activations)) {
            fault(n, "the activation '%s' is unknown", name);
            return false;
        }
        s->act[i] = (Act){kind, activations[kind].alpha, activations[kind].beta};
        if (activations[kind].n_param >= 1 && at_alpha < n_alpha)
            s->act[i].alpha = (double)alpha[at_alpha++];
        if (activations[kind].n_param >= 2 && at_beta < n_beta)
            s->act[i].beta = (double)beta[at_beta++];
    }
    return !n->failed;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* `count` pieces of H along an axis, from the first-th on. */
static ingot_tensor *piece(const Rnn *s, ingot_tensor *x, int axis, int first, int count)
{
    Lowering *n = s->n;
    return ingot_slice(n->c, x, axis, dim(n, first * s->hidden), dim(n, count * s->hidden), 1);
}

/* x[d] */
static ingot_tensor *row(const Rnn *s, ingot_tensor *x, int d)
{
    Lowering *n = s->n;
    x = ingot_slice(n->c, x, 0, dim(n, d), dim(n, 1), 1);
    return ingot_is_poison(x) ? x : ingot_squeeze(n->c, x, 0);
}

static ingot_tensor *swap(const Rnn *s, ingot_tensor *x)
{
    return x && s->layout ? ingot_transpose(s->n->c, x, 0, 1) : x;
}

/* x at time t. */
static ingot_tensor *at_time(const Rnn *s, ingot_tensor *x, ingot_tensor *t)
{
    ingot_dim *dims[2] = {ingot_shape(x, 1), ingot_shape(x, 2)};
    ingot_context *c = s->n->c;
    return ingot_gather(
        c, x, (ingot_tensor *[]){t, ingot_iota(c, 2, dims, 0), ingot_iota(c, 2, dims, 1)});
}

/* ---- the cells ------------------------------------------------------------------------------- */

static void rnn_step(const Cell *k, ingot_tensor *xw, ingot_tensor *const *state,
                     ingot_tensor **next)
{
    ingot_context *c = k->rnn->n->c;
    ingot_tensor *sum = ingot_add(c, xw, ingot_linear(c, state[0], k->r, NULL));
    next[0] = apply(k->rnn, &k->act[0], sum);
}

/* Gates z, r, h. */
static void gru_step(const Cell *k, ingot_tensor *xw, ingot_tensor *const *state,
                     ingot_tensor **next)
{
    const Rnn *s = k->rnn;
    ingot_context *c = s->n->c;
    ingot_tensor *h = state[0], *x_h = piece(s, xw, 1, 2, 1), *hr, *candidate;
    ingot_tensor *zr = ingot_linear(c, h, piece(s, k->r, 0, 0, 2), NULL);
    zr = apply(s, &k->act[0], ingot_add(c, piece(s, xw, 1, 0, 2), zr));
    ingot_tensor *z = piece(s, zr, 1, 0, 1), *r = piece(s, zr, 1, 1, 1),
                 *w = piece(s, k->r, 0, 2, 1);
    if (s->linear_before_reset)
        hr = ingot_mul(c, r, ingot_linear(c, h, w, k->hidden_bias));
    else
        hr = ingot_linear(c, ingot_mul(c, r, h), w, NULL);
    candidate = apply(s, &k->act[1], ingot_add(c, x_h, hr));
    ingot_tensor *rest = ingot_sub(c, ingot_like(c, z, 1), z);
    next[0] = ingot_add(c, ingot_mul(c, rest, candidate), ingot_mul(c, z, h));
}

static ingot_tensor *peep(const Cell *k, ingot_tensor *gate, ingot_tensor *c, int i)
{
    ingot_context *ctx = k->rnn->n->c;
    return k->peephole[i] ? ingot_add(ctx, gate, ingot_mul(ctx, k->peephole[i], c)) : gate;
}

/* Gates i, o, f, c. */
static void lstm_step(const Cell *k, ingot_tensor *xw, ingot_tensor *const *state,
                      ingot_tensor **next)
{
    const Rnn *s = k->rnn;
    ingot_context *ctx = s->n->c;
    ingot_tensor *c = state[1], *gate[MAX_GATES];
    ingot_tensor *all = ingot_add(ctx, xw, ingot_linear(ctx, state[0], k->r, NULL));
    for (int g = 0; g < 4; g++)
        gate[g] = piece(s, all, 1, g, 1);
    ingot_tensor *i = apply(s, &k->act[0], peep(k, gate[0], c, 0)), *f;
    if (s->input_forget)
        f = ingot_sub(ctx, ingot_like(ctx, i, 1), i);
    else
        f = apply(s, &k->act[0], peep(k, gate[2], c, 2));
    ingot_tensor *candidate = apply(s, &k->act[1], gate[3]);
    next[1] = ingot_add(ctx, ingot_mul(ctx, f, c), ingot_mul(ctx, i, candidate));
    ingot_tensor *o = apply(s, &k->act[0], peep(k, gate[1], next[1], 1));
    next[0] = ingot_mul(ctx, o, activate(s, &k->act[2], next[1])); /* clip is for gates */
}

/* ---- one direction --------------------------------------------------------------------------- */

/* x w^T + all biases that are added to it, [T, N, G H]; fills in the cell. */
static ingot_tensor *prepare(const Rnn *s, int d, Cell *k)
{
    ingot_context *c = s->n->c;
    ingot_tensor *bias = NULL;
    *k = (Cell){.rnn = s, .r = row(s, s->r, d), .act = s->act + d * s->acts};
    if (s->bias) {
        ingot_tensor *all = row(s, s->bias, d);
        ingot_tensor *recurrent = piece(s, all, 0, s->gates, s->gates);
        bias = piece(s, all, 0, 0, s->gates);
        if (s->linear_before_reset) {
            int64_t zero[1] = {0}, room[1] = {s->hidden};
            k->hidden_bias = piece(s, recurrent, 0, 2, 1);
            recurrent = ingot_pad_c(c, piece(s, recurrent, 0, 0, 2), zero, room, 0);
        }
        bias = ingot_add(c, bias, recurrent);
    }
    for (int i = 0; s->peephole && i < 3; i++)
        k->peephole[i] = piece(s, row(s, s->peephole, d), 0, i, 1);
    return ingot_contiguous(c, ingot_linear(c, s->x, row(s, s->w, d), bias));
}

static ingot_tensor *initial_state(const Rnn *s, int i, int d)
{
    ingot_dim *dims[2] = {ingot_shape(s->x, 1), dim(s->n, s->hidden)};
    if (s->initial[i])
        return row(s, s->initial[i], d);
    return ingot_expand(s->n->c, ingot_like(s->n->c, s->x, 0), 2, dims);
}

/* final[0..states): last states [N, H]; *y: outputs [T, N, H] if stacked. */
static bool run_direction(const Rnn *s, int d, bool stacked, ingot_tensor **final, ingot_tensor **y)
{
    Lowering *n = s->n;
    Cell k;
    ingot_dim *times = ingot_shape(s->x, 0);
    ingot_tensor *xw = prepare(s, d, &k), *state[2], *inside[2], *out[3], *result[4];
    for (int i = 0; i < s->states; i++)
        state[i] = initial_state(s, i, d);
    if (ingot_is_poison(xw) || ingot_is_poison(state[0]) || ingot_is_poison(state[s->states - 1]))
        return false;
    ingot_region *body = ingot_region_begin(n->c);
    ingot_tensor *t = ingot_region_param(n->c, body, INGOT_I64, 0, NULL);
    result[0] = ingot_region_param(n->c, body, INGOT_BOOL, 0, NULL);
    for (int i = 0; i < s->states; i++)
        inside[i] = ingot_region_param_like(n->c, body, state[i]);
    if (s->reverse[d])
        t = ingot_sub(n->c, ingot_add_c(n->c, ingot_from_dim(n->c, times), -1), t);
    s->step(&k, at_time(s, xw, t), inside, result + 1);
    result[1 + s->states] = result[1];
    if (s->lengths) {
        ingot_tensor *valid = ingot_lt(n->c, t, ingot_unsqueeze(n->c, s->lengths, 1));
        result[1 + s->states] = ingot_where(n->c, valid, result[1], ingot_like(n->c, s->x, 0));
        for (int i = 0; i < s->states; i++)
            result[1 + i] = ingot_where(n->c, valid, result[1 + i], inside[i]);
    }
    ingot_region_end(n->c, body, 1 + s->states + stacked, result);
    ingot_loop(n->c, times, NULL, s->states, state, body, stacked, out);
    for (int i = 0; i < s->states; i++)
        final[i] = out[i];
    *y = stacked ? out[s->states] : NULL;
    if (stacked && s->reverse[d])
        *y = ingot_flip(n->c, *y, 1);
    return !ingot_is_poison(out[0]) && (!stacked || !ingot_is_poison(*y));
}

/* ---- the operators --------------------------------------------------------------------------- */

static ingot_tensor *input(Lowering *n, int i)
{
    return i < n->n_in ? n->in[i] : NULL;
}

static bool has_shape(ingot_tensor *x, int rank, int64_t first, int64_t last)
{
    return ingot_rank(x) == rank && dim_is(ingot_shape(x, 0), first) &&
           (last < 0 || dim_is(ingot_shape(x, rank - 1), last));
}

static bool read_shapes(Rnn *s)
{
    Lowering *n = s->n;
    if (ingot_rank(s->x) != 3 || ingot_rank(s->w) != 3 || ingot_rank(s->r) != 3 ||
        !ingot_dim_is_const(ingot_shape(s->r, 2), &s->hidden)) {
        fault(n, "its inputs X, W and R have to have rank 3, and R known dims");
        return false;
    }
    int64_t d = s->directions, h = s->hidden, given = attr_int(n, "hidden_size", s->hidden);
    if (given != h || !has_shape(s->w, 3, d, -1) || !has_shape(s->r, 3, d, h) ||
        !dim_is(ingot_shape(s->w, 1), s->gates * h) ||
        !dim_is(ingot_shape(s->r, 1), s->gates * h) ||
        (s->bias && !has_shape(s->bias, 2, d, 2 * s->gates * h)) ||
        (s->peephole && !has_shape(s->peephole, 2, d, 3 * h)) ||
        (s->lengths && ingot_rank(s->lengths) != 1)) {
        fault(n, "its weights do not fit %lld directions and hidden size %lld", (long long)d,
              (long long)given);
        return false;
    }
    for (int i = 0; i < s->states; i++) {
        s->initial[i] = swap(s, s->initial[i]);
        if (s->initial[i] && !has_shape(s->initial[i], 3, d, h)) {
            fault(n, "an initial state does not fit its weights");
            return false;
        }
    }
    s->x = swap(s, s->x);
    return true;
}

static bool read_node(Rnn *s, const char *const *defaults)
{
    Lowering *n = s->n;
    const char *direction = attr_string(n, "direction", "forward");
    bool both = strcmp(direction, "bidirectional") == 0;
    s->directions = both ? 2 : 1;
    s->reverse[0] = strcmp(direction, "reverse") == 0;
    s->reverse[1] = both;
    if (!both && !s->reverse[0] && strcmp(direction, "forward") != 0) {
        fault(n, "its direction '%s' is unknown", direction);
        return false;
    }
    s->layout = attr_int(n, "layout", 0) != 0;
    s->clip = attr_float(n, "clip", 0);
    s->x = n->in[0];
    s->w = n->in[1];
    s->r = n->in[2];
    s->bias = input(n, 3);
    s->lengths = input(n, 4);
    s->initial[0] = input(n, 5);
    if (s->lengths)
        s->lengths = as(n, s->lengths, INGOT_I64);
    return read_shapes(s) && read_activations(s, defaults);
}

/* Y [T, D, N, H] and last states [D, N, H]; layout 1 puts N first. */
static ingot_tensor *lower(Rnn *s, const char *const *defaults)
{
    static const int batch_first[] = {2, 0, 1, 3};
    Lowering *n = s->n;
    ingot_tensor *y[2], *final[2][2], *state[2];
    bool stacked = n->n_out > 0 && n->proto->output[0][0];
    if (!read_node(s, defaults))
        return ingot_poison(n->c);
    for (int d = 0; d < s->directions; d++)
        if (!run_direction(s, d, stacked, final[d], &y[d])) {
            n->failed = true;
            return ingot_poison(n->c);
        }
    for (int i = 0; i < s->states; i++) {
        for (int d = 0; d < s->directions; d++)
            state[d] = final[d][i];
        if (n->n_out > 1 + i)
            n->out[1 + i] = ingot_stack(n->c, s->directions, state, s->layout ? 1 : 0);
    }
    if (!stacked)
        return n->out[n->n_out - 1];
    ingot_tensor *all = ingot_stack(n->c, s->directions, y, 1);
    return s->layout ? ingot_permute(n->c, all, batch_first) : all;
}

ingot_tensor *onnx_rnn(Lowering *n)
{
    static const char *const defaults[] = {"Tanh"};
    Rnn s = {.n = n, .gates = 1, .states = 1, .acts = 1, .step = rnn_step};
    return lower(&s, defaults);
}

ingot_tensor *onnx_gru(Lowering *n)
{
    static const char *const defaults[] = {"Sigmoid", "Tanh"};
    Rnn s = {.n = n, .gates = 3, .states = 1, .acts = 2, .step = gru_step};
    s.linear_before_reset = attr_int(n, "linear_before_reset", 0) != 0;
    return lower(&s, defaults);
}

ingot_tensor *onnx_lstm(Lowering *n)
{
    static const char *const defaults[] = {"Sigmoid", "Tanh", "Tanh"};
    Rnn s = {.n = n, .gates = 4, .states = 2, .acts = 3, .step = lstm_step};
    s.input_forget = attr_int(n, "input_forget", 0) != 0;
    s.initial[1] = input(n, 6);
    s.peephole = input(n, 7);
    return lower(&s, defaults);
}
