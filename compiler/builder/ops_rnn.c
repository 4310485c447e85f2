/* ops_rnn.c - recurrent layers as loops: LSTM, GRU and plain RNN over x [length, batch, input].
 *
 * The input's share of all gates, x w^T + biases, is one matrix product outside of the loop; the
 * body adds what depends on the state:
 *
 *     RNN    h' = f(xw + h r^T)                                         (Elman, 1990)
 *     GRU    z = f(.), r = f(.), n = g(xw + (r h) r^T), h' = (1 - z) n + z h   (Cho et al., 2014)
 *     LSTM   i = f(. + pi c), f = f(. + pf c), c' = f c + i g(.),
 *            o = f(. + po c'), h' = o h(c')
 *            (Hochreiter and Schmidhuber, 1997)
 *
 * Weights are [gates * hidden, ...] in the order that a string of letters gives, since frameworks
 * disagree. */
#include <string.h>

#include "ops.h"

enum { MAX_GATES = 4, MAX_ACTS = 3 };

typedef struct Layer Layer;
/* The next states from this step's xw [batch, gates * hidden]; next[1] is the cell of an LSTM. */
typedef void LayerStepFn(ingot_context *, const Layer *, ingot_tensor *xw,
                         ingot_tensor *const *state, ingot_tensor **next);
typedef ingot_tensor *PlainFn(ingot_context *, ingot_tensor *);

/* What tells the layers apart. */
typedef struct {
    const char *name, *gates; /* a letter a gate */
    int states;
    LayerStepFn *step;
    PlainFn *usual[MAX_ACTS]; /* the activations unless told */
} LayerKind;

struct Layer {
    const LayerKind *kind;
    const ingot_recurrence *set;
    int64_t hidden;
    int place[MAX_GATES];     /* of each gate's rows, in multiples of hidden */
    ingot_tensor *xw;         /* [length, batch, gates * hidden] */
    ingot_tensor *reset_bias; /* of the GRU's product that the reset gate multiplies, or NULL */
};

/* n times hidden elements of an axis, from the first-th on. */
static ingot_tensor *part(ingot_context *c, const Layer *q, ingot_tensor *x, int axis, int first,
                          int n)
{
    return ingot_slice(c, x, axis, ingot_dim_const(c, first * q->hidden),
                       ingot_dim_const(c, n * q->hidden), 1);
}

static ingot_tensor *activate(ingot_context *c, const Layer *q, int i, ingot_tensor *x)
{
    const ingot_activation *a = &q->set->act[i];
    return a->apply ? a->apply(c, x, a->alpha, a->beta) : q->kind->usual[i](c, x);
}

/* The same of a gate, which clip bounds. */
static ingot_tensor *open(ingot_context *c, const Layer *q, int i, ingot_tensor *x)
{
    double clip = q->set->clip;
    return activate(c, q, i, clip > 0 ? ingot_clamp(c, x, -clip, clip) : x);
}

/* x w^T, or x r^T */
static ingot_tensor *product(ingot_context *c, const ingot_recurrence *s, ingot_tensor *x,
                             bool recurrent)
{
    return s->product ? s->product(c, s->user, x, recurrent)
                      : ingot_linear(c, x, recurrent ? s->r : s->w, NULL);
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void rnn_step(ingot_context *c, const Layer *q, ingot_tensor *xw, ingot_tensor *const *state,
                     ingot_tensor **next)
{
    next[0] = open(c, q, 0, ingot_add(c, xw, ingot_linear(c, state[0], q->set->r, NULL)));
}

static void gru_step(ingot_context *c, const Layer *q, ingot_tensor *xw, ingot_tensor *const *state,
                     ingot_tensor **next)
{
    ingot_tensor *h = state[0], *r = q->set->r, *rn = part(c, q, r, 0, 2, 1);
    ingot_tensor *zr = ingot_linear(c, h, part(c, q, r, 0, 0, 2), NULL);
    zr = open(c, q, 0, ingot_add(c, part(c, q, xw, 1, 0, 2), zr));
    ingot_tensor *z = part(c, q, zr, 1, q->place[0], 1), *reset = part(c, q, zr, 1, q->place[1], 1);
    ingot_tensor *n = q->set->reset_after
                          ? ingot_mul(c, reset, ingot_linear(c, h, rn, q->reset_bias))
                          : ingot_linear(c, ingot_mul(c, reset, h), rn, NULL);
    n = open(c, q, 1, ingot_add(c, part(c, q, xw, 1, 2, 1), n));
    ingot_tensor *rest = ingot_sub(c, ingot_like(c, z, 1), z);
    next[0] = ingot_add(c, ingot_mul(c, rest, n), ingot_mul(c, z, h));
}

/* A gate's sum, and its peephole's part of the cell s. */
static ingot_tensor *peep(ingot_context *c, const Layer *q, ingot_tensor *all, int gate,
                          ingot_tensor *s)
{
    static const int order[] = {0, 2, 1}; /* of i, f, o among the peepholes */
    ingot_tensor *sum = part(c, q, all, 1, q->place[gate], 1), *p = q->set->peephole;
    return p ? ingot_add(c, sum, ingot_mul(c, part(c, q, p, 0, order[gate], 1), s)) : sum;
}

static void lstm_step(ingot_context *c, const Layer *q, ingot_tensor *xw,
                      ingot_tensor *const *state, ingot_tensor **next)
{
    enum { I, F, O, G };
    ingot_tensor *s = state[1], *all = ingot_add(c, xw, product(c, q->set, state[0], true));
    ingot_tensor *i = open(c, q, 0, peep(c, q, all, I, s));
    ingot_tensor *f = q->set->input_forget ? ingot_sub(c, ingot_like(c, i, 1), i)
                                           : open(c, q, 0, peep(c, q, all, F, s));
    ingot_tensor *g = open(c, q, 1, part(c, q, all, 1, q->place[G], 1));
    next[1] = ingot_add(c, ingot_mul(c, f, s), ingot_mul(c, i, g));
    ingot_tensor *o = open(c, q, 0, peep(c, q, all, O, next[1]));
    next[0] = ingot_mul(c, o, activate(c, q, 2, next[1]));
}

/* ---- what all have in common ----------------------------------------------------------------- */

/* Which rows each gate has; g is another name of c, n of h. */
static bool find_gates(ingot_context *c, Layer *q)
{
    const char *gates = q->kind->gates, *order = q->set->order ? q->set->order : gates;
    unsigned found = 0;
    size_t n = strlen(gates);
    for (size_t i = 0; i < strlen(order) && i < n; i++) {
        char letter = order[i] == 'g' ? 'c' : order[i] == 'n' ? 'h' : order[i];
        const char *at = strchr(gates, letter);
        if (at) {
            found |= 1u << (at - gates);
            q->place[at - gates] = (int)i;
        }
    }
    /* The GRU's z and r are one product. */
    if (strlen(order) == n && found == (1u << n) - 1 && (n != 3 || q->place[2] == 2))
        return true;
    ingot_error(c, INGOT_INVALID, "%s: gates '%s'; the letters of '%s' are needed%s", q->kind->name,
                order, gates, n == 3 ? ", h (or n) the last" : "");
    return false;
}

/* NULL, or of this rank with so many elements along the last axis. */
static bool fits(ingot_tensor *x, int rank, int64_t last)
{
    int64_t size;
    return !x || (ingot_rank(x) == rank && ingot_dim_is_const(ingot_shape(x, rank - 1), &size) &&
                  size == last);
}

static bool check_shapes(ingot_context *c, ingot_tensor *x, Layer *q)
{
    const ingot_recurrence *s = q->set;
    int64_t rows = -1, gates = (int64_t)strlen(q->kind->gates);
    if (ingot_rank(x) == 3 && ingot_rank(s->w) == 2 && ingot_rank(s->r) == 2 &&
        ingot_dim_is_const(ingot_shape(s->r, 0), &rows) &&
        ingot_dim_is_const(ingot_shape(s->r, 1), &q->hidden) && rows == gates * q->hidden &&
        ingot_dim_equal(ingot_shape(s->w, 0), ingot_shape(s->r, 0)) && fits(s->b, 1, rows) &&
        fits(s->rb, 1, rows) && fits(s->peephole, 1, 3 * q->hidden) &&
        fits(s->state, 2, q->hidden) && fits(s->cell, 2, q->hidden) &&
        (!s->lengths || ingot_rank(s->lengths) == 1))
        return true;
    ingot_error(c, INGOT_INVALID,
                "%s: x must be [length, batch, input], w [%d * hidden, input], r [%d * hidden, "
                "hidden], biases "
                "[%d * hidden], peepholes [3 * hidden], states [batch, hidden], lengths [batch]",
                q->kind->name, (int)gates, (int)gates, (int)gates);
    return false;
}

/* Checks what is given, and makes what does not depend on the step. */
static bool prepare(ingot_context *c, ingot_tensor *x, Layer *q)
{
    const ingot_recurrence *s = q->set;
    ingot_tensor *const given[] = {x,        s->w,    s->r,       s->b,       s->rb,
                                   s->state, s->cell, s->lengths, s->peephole};
    ingot_tensor *bias = s->b, *rb = s->rb;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i] && ingot_is_poison(given[i]))
            return false;
    if (!find_gates(c, q) || !check_shapes(c, x, q))
        return false;
    if (rb && s->reset_after) { /* a part stays with the product */
        q->reset_bias = part(c, q, rb, 0, 2, 1);
        rb = ingot_pad_c(c, part(c, q, rb, 0, 0, 2), (int64_t[]){0}, &q->hidden, 0);
    }
    if (rb)
        bias = bias ? ingot_add(c, bias, rb) : rb;
    ingot_tensor *xw = s->product ? product(c, s, x, false) : ingot_linear(c, x, s->w, bias);
    q->xw = ingot_contiguous(c, s->product && bias ? ingot_add(c, xw, bias) : xw);
    return !ingot_is_poison(q->xw);
}

/* out: all states, the last ones. */
static void run(ingot_context *c, const LayerKind *kind, ingot_tensor *x,
                const ingot_recurrence *set, ingot_tensor **out)
{
    Layer q = {.kind = kind, .set = set};
    ingot_tensor *const given[] = {set->state, set->cell};
    ingot_tensor *start[2], *state[2], *result[4], *got[3];
    int n = kind->states, stacked = !set->last_only;
    for (int i = 0; i <= n; i++)
        out[i] = ingot_poison(c);
    if (!prepare(c, x, &q))
        return;
    ingot_dim *length = ingot_shape(x, 0),
              *dims[] = {ingot_shape(x, 1), ingot_dim_const(c, q.hidden)};
    ingot_tensor *zero = ingot_like(c, x, 0);
    for (int i = 0; i < n; i++)
        start[i] = given[i] ? given[i] : ingot_expand(c, zero, 2, dims);
    ingot_region *body = ingot_region_begin(c);
    ingot_tensor *t = ingot_region_param(c, body, INGOT_I64, 0, NULL);
    result[0] = ingot_region_param(c, body, INGOT_BOOL, 0, NULL);
    for (int i = 0; i < n; i++)
        state[i] = ingot_region_param_like(c, body, start[i]);
    if (set->reverse)
        t = ingot_sub(c, ingot_add_c(c, ingot_from_dim(c, length), -1), t);
    kind->step(c, &q, ingot_element(c, q.xw, t, 0), state, result + 1);
    result[1 + n] = result[1];
    if (set->lengths) {
        ingot_tensor *valid =
            ingot_lt(c, t, ingot_unsqueeze(c, ingot_cast(c, set->lengths, INGOT_I64), 1));
        result[1 + n] = ingot_where(c, valid, result[1], zero);
        for (int i = 0; i < n; i++)
            result[1 + i] = ingot_where(c, valid, result[1 + i], state[i]);
    }
    ingot_region_end(c, body, 1 + n + stacked, result);
    ingot_loop(c, length, NULL, n, start, body, stacked, got);
    out[0] = !stacked ? NULL : set->reverse ? ingot_flip(c, got[n], 1) : got[n];
    for (int i = 0; i < n; i++)
        out[1 + i] = got[i];
}

void ingot_lstm(ingot_context *c, ingot_tensor *x, const ingot_recurrence *set,
                ingot_tensor *out[3])
{
    static const LayerKind lstm = {
        "lstm", "ifoc", 2, lstm_step, {ingot_sigmoid, ingot_tanh, ingot_tanh}};
    run(c, &lstm, x, set, out);
}

void ingot_gru(ingot_context *c, ingot_tensor *x, const ingot_recurrence *set, ingot_tensor *out[2])
{
    static const LayerKind gru = {"gru", "zrh", 1, gru_step, {ingot_sigmoid, ingot_tanh}};
    run(c, &gru, x, set, out);
}

void ingot_rnn(ingot_context *c, ingot_tensor *x, const ingot_recurrence *set, ingot_tensor *out[2])
{
    static const LayerKind rnn = {"rnn", "h", 1, rnn_step, {ingot_tanh}};
    run(c, &rnn, x, set, out);
}
