/*
 * onnx_rnn.c - ONNX RNN, GRU and LSTM: what the attributes and inputs say of each direction, for
 * the op library's layers.
 *
 * Inputs are X [T, N, I], and with an entry a direction W, R, B, the initial states [D, N, H] and
 * the peepholes. Outputs are Y [T, D, N, H] and the last states [D, N, H]. Layout 1 puts N first.
 */
#include <string.h>

#include "onnx.h"

enum { X, W, R, B, LENGTHS, STATE, CELL, PEEPHOLE };

/* ---- activations ----------------------------------------------------------------------------- */

#define ACTIVATION(name, value)                                                            \
    static ingot_tensor *act_##name(ingot_context *c, ingot_tensor *x, double a, double b) \
    {                                                                                      \
        (void)a, (void)b;                                                                  \
        return value;                                                                      \
    }
ACTIVATION(relu, ingot_relu(c, x))
ACTIVATION(tanh, ingot_tanh(c, x))
ACTIVATION(sigmoid, ingot_sigmoid(c, x))
ACTIVATION(affine, ingot_add_c(c, ingot_mul_c(c, x, a), b))
ACTIVATION(leaky_relu, ingot_leaky_relu(c, x, a))
ACTIVATION(thresholded_relu, ingot_thresholded_relu(c, x, a))
ACTIVATION(scaled_tanh, ingot_mul_c(c, ingot_tanh(c, ingot_mul_c(c, x, b)), a))
ACTIVATION(elu, ingot_elu(c, x, a))
ACTIVATION(softsign, ingot_softsign(c, x))
ACTIVATION(softplus, ingot_softplus(c, x))

static const struct {
    const char *name;
    int n_param; /* 1: alpha, 2: alpha and beta */
    ingot_activation usual;
} activations[] = {
    {"relu", 0, {act_relu, 0, 0}},
    {"tanh", 0, {act_tanh, 0, 0}},
    {"sigmoid", 0, {act_sigmoid, 0, 0}},
    {"affine", 2, {act_affine, 1, 0}},
    {"leakyrelu", 1, {act_leaky_relu, 0.01, 0}},
    {"thresholdedrelu", 1, {act_thresholded_relu, 1, 0}},
    {"scaledtanh", 2, {act_scaled_tanh, 1, 1}},
    {"hardsigmoid", 2, {ingot_hard_sigmoid, 0.2, 0.5}},
    {"elu", 1, {act_elu, 1, 0}},
    {"softsign", 0, {act_softsign, 0, 0}},
    {"softplus", 0, {act_softplus, 0, 0}},
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

/* Those of all directions, `acts` of each. The lists activation_alpha and activation_beta have
 * entries only for functions that take one. */
static bool read_activations(Lowering *n, int acts, int directions, ingot_recurrence *layer)
{
    const char *const *names;
    const float *alpha, *beta;
    int at_alpha = 0, at_beta = 0, n_names = attr_strings(n, "activations", &names);
    int n_alpha = attr_floats(n, "activation_alpha", &alpha),
        n_beta = attr_floats(n, "activation_beta", &beta);
    if (n_names > 0 && n_names != acts * directions) {
        fault(n, "it has %d activations, not %d", n_names, acts * directions);
        return false;
    }
    for (int i = 0; i < n_names; i++) {
        int kind = 0;
        while (kind < COUNT(activations) && !same_name(names[i], activations[kind].name))
            kind++;
        if (kind == COUNT(activations)) {
            fault(n, "the activation '%s' is unknown", names[i]);
            return false;
        }
        ingot_activation *act = &layer[i / acts].act[i % acts];
        *act = activations[kind].usual;
        if (activations[kind].n_param >= 1 && at_alpha < n_alpha)
            act->alpha = (double)alpha[at_alpha++];
        if (activations[kind].n_param >= 2 && at_beta < n_beta)
            act->beta = (double)beta[at_beta++];
    }
    return !n->failed;
}

/* ---- directions ------------------------------------------------------------------------------ */

/* 1 or 2; 0 after an error. */
static int read_directions(Lowering *n, bool reverse[2])
{
    const char *direction = attr_string(n, "direction", "forward");
    bool both = strcmp(direction, "bidirectional") == 0;
    reverse[0] = strcmp(direction, "reverse") == 0;
    reverse[1] = both;
    if (!both && !reverse[0] && strcmp(direction, "forward") != 0) {
        fault(n, "its direction '%s' is unknown", direction);
        return 0;
    }
    return both ? 2 : 1;
}

/* The axis of an input that has an entry a direction. */
static int direction_axis(int input, bool layout)
{
    return layout && (input == STATE || input == CELL) ? 1 : 0;
}

static bool check_inputs(Lowering *n, int directions, bool layout)
{
    int64_t hidden;
    for (int i = W; i <= PEEPHOLE; i++) {
        ingot_tensor *x = optional_in(n, i);
        int axis = direction_axis(i, layout), rank = i == B || i == PEEPHOLE ? 2 : 3;
        if (!x || i == LENGTHS)
            continue;
        int64_t has = directions;
        const bool known = ingot_rank(x) != rank || ingot_dim_is_const(ingot_shape(x, axis), &has);
        if (ingot_rank(x) != rank || has != directions) {
            fault(n, "its input %d does not have rank %d and %d directions", i, rank, directions);
            return false;
        }
        if (!known) {
            unsupported(n, "how many directions its input %d has is not known when compiling", i);
            return false;
        }
    }
    if (!ingot_dim_is_const(ingot_shape(n->in[R], 2), NULL) ||
        !ingot_dim_is_const(ingot_shape(n->in[R], 1), NULL) ||
        !ingot_dim_is_const(ingot_shape(n->in[W], 1), NULL)) {
        unsupported(n, "its hidden size is not known when compiling");
        return false;
    }
    if (ingot_rank(n->in[X]) != 3 || !ingot_dim_is_const(ingot_shape(n->in[R], 2), &hidden) ||
        attr_int(n, "hidden_size", hidden) != hidden) {
        fault(n, "its inputs X and R do not have rank 3 and its hidden size");
        return false;
    }
    return true;
}

/* Entry d of an input; NULL if that is left out. */
static ingot_tensor *entry(Lowering *n, int input, int d, bool layout)
{
    ingot_tensor *x = optional_in(n, input);
    int axis = direction_axis(input, layout);
    return x ? ingot_squeeze(n->c, ingot_slice(n->c, x, axis, dim(n, d), dim(n, 1), 1), axis)
             : NULL;
}

static void read_direction(Lowering *n, int d, bool layout, ingot_recurrence *out)
{
    ingot_tensor *bias = entry(n, B, d, layout), *half[2] = {NULL, NULL};
    int64_t size;
    if (bias && ingot_dim_is_const(ingot_shape(bias, 0), &size))
        for (int i = 0; i < 2; i++)
            half[i] = ingot_slice(n->c, bias, 0, dim(n, i * (size / 2)), dim(n, size / 2), 1);
    out->w = entry(n, W, d, layout);
    out->r = entry(n, R, d, layout);
    out->b = half[0];
    out->rb = half[1];
    out->lengths = optional_in(n, LENGTHS);
    out->state = entry(n, STATE, d, layout);
    out->cell = entry(n, CELL, d, layout);
    out->peephole = entry(n, PEEPHOLE, d, layout);
    out->clip = attr_float(n, "clip", 0);
    out->reset_after = attr_int(n, "linear_before_reset", 0) != 0;
    out->input_forget = attr_int(n, "input_forget", 0) != 0;
}

/* ---- the operators --------------------------------------------------------------------------- */

typedef void LayerFn(ingot_context *, ingot_tensor *x, const ingot_recurrence *,
                     ingot_tensor **out);

/* More of a direction, for operators that are not the standard's; NULL: nothing. */
typedef void ExtendFn(Lowering *, int d, ingot_recurrence *);

static ingot_tensor *lower(Lowering *n, LayerFn *build, const char *order, int acts, int states,
                           ExtendFn *extend)
{
    static const int batch_first[] = {2, 0, 1, 3};
    ingot_recurrence layer[2] = {{0}};
    ingot_tensor *out[2][3], *each[2];
    bool layout = attr_int(n, "layout", 0) != 0, reverse[2],
         last_only = !n->n_out || !n->proto->output[0][0];
    int directions = read_directions(n, reverse);
    if (!directions || !check_inputs(n, directions, layout) ||
        !read_activations(n, acts, directions, layer))
        return ingot_poison(n->c);
    ingot_tensor *x = layout ? ingot_transpose(n->c, n->in[X], 0, 1) : n->in[X];
    for (int d = 0; d < directions; d++) {
        layer[d].order = order;
        layer[d].reverse = reverse[d];
        layer[d].last_only = last_only;
        read_direction(n, d, layout, &layer[d]);
        if (extend)
            extend(n, d, &layer[d]);
        build(n->c, x, &layer[d], out[d]);
    }
    for (int i = last_only; i <= states && i < n->n_out; i++) {
        for (int d = 0; d < directions; d++)
            each[d] = out[d][i];
        n->out[i] = ingot_stack(n->c, directions, each, i == 0 || layout ? 1 : 0);
    }
    if (!last_only && layout)
        n->out[0] = ingot_permute(n->c, n->out[0], batch_first);
    return n->n_out ? n->out[n->n_out - 1] : x;
}

ingot_tensor *onnx_rnn(Lowering *n)
{
    return lower(n, ingot_rnn, NULL, 1, 1, NULL);
}

ingot_tensor *onnx_gru(Lowering *n)
{
    return lower(n, ingot_gru, "zrh", 2, 1, NULL);
}

ingot_tensor *onnx_lstm(Lowering *n)
{
    return lower(n, ingot_lstm, "iofc", 3, 2, NULL);
}

/* ---- com.microsoft.DynamicQuantizeLSTM: 8-bit weights, transposed ---------------------------- */

enum { W_SCALE = 8, W_ZERO, R_SCALE, R_ZERO };

/* The weights of one direction: [W, R], each [input or hidden, 4 hidden]; scales and zero points
 * are one number or a row. */
typedef struct {
    Lowering *n;
    ingot_tensor *weight[2], *scale[2], *zero[2];
} QuantizedWeights;

/* x is quantised by its own range: all steps at once in x w, one at a time in h r. */
static ingot_tensor *quantized_product(ingot_context *c, void *user, ingot_tensor *x,
                                       bool recurrent)
{
    QuantizedWeights *q = user;
    ingot_tensor *scale, *zero, *y = quantized_by_range(q->n, x, &scale, &zero);
    y = integer_product(q->n, y, q->weight[recurrent], zero, q->zero[recurrent]);
    scale = ingot_mul(c, scale, q->scale[recurrent]);
    return ingot_is_poison(y) ? y : ingot_mul(c, as(q->n, y, INGOT_F32), scale);
}

static void quantized_weights(Lowering *n, int d, ingot_recurrence *layer)
{
    QuantizedWeights *q = ingot_alloc(n->c, sizeof *q);
    q->n = n;
    for (int i = 0; i < 2; i++) {
        q->weight[i] = entry(n, W + i, d, false);
        q->weight[i] = ingot_transpose(n->c, q->weight[i], 0, 1);
        q->scale[i] = scalar_or_row(n, entry(n, W_SCALE + 2 * i, d, false));
        q->zero[i] = scalar_or_row(n, entry(n, W_ZERO + 2 * i, d, false));
    }
    layer->product = quantized_product;
    layer->user = q;
}

ingot_tensor *onnx_ms_dynamic_quantize_lstm(Lowering *n)
{
    static const int needed[] = {W, R, W_SCALE, W_ZERO, R_SCALE, R_ZERO};
    if (!inputs_needed(n, COUNT(needed), needed))
        return ingot_poison(n->c);
    if (ingot_rank(n->in[W]) != 3 || ingot_rank(n->in[R]) != 3)
        return fault(n, "its weights have ranks %d and %d, not 3", ingot_rank(n->in[W]),
                     ingot_rank(n->in[R]));
    for (int i = W; i <= R; i++) /* in the standard's order */
        n->in[i] = ingot_transpose(n->c, n->in[i], 1, 2);
    return lower(n, ingot_lstm, "iofc", 3, 2, quantized_weights);
}
