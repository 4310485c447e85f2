/*
 * tflite_quant_lstm.c - LSTMs of int8, whose cell has 16 bits.
 *
 * Sums of gates are integers of 16 bits with the scale 2^-12, bounded after each part that is
 * added, and gates are fractions of 2^15 (tflite_fixed16.c). The cell's scale is a power of two.
 */
#include <math.h>

#include "tflite_lstm.h"
#include "tflite_quant.h"

enum { GATE_I, GATE_F, GATE_C, GATE_O };

static float scale_of(TfliteNode *n, int i)
{
    return tfl_scale(n->ti[i]);
}

static ingot_tensor *rescaled(TfliteNode *n, ingot_tensor *x, float real)
{
    const TfliteMultiplier q = tfl_multiplier((double)real);
    return tfl_rescale(n, x, &q, 1, 0);
}

static ingot_tensor *halved(TfliteNode *n, ingot_tensor *x, int e)
{
    return ingot_shrr(n->c, x, ingot_scalar_i(n->c, INGOT_I32, e));
}

/* x less its zero point, by input w. */
static ingot_tensor *part(TfliteNode *n, ingot_tensor *x, const ingot_tflite_tensor *like, int w,
                          int bias)
{
    x = tfl_cast(n, x, INGOT_I32);
    if (tfl_zero(like))
        x = ingot_add_c(n->c, x, -(double)tfl_zero(like));
    x = ingot_linear(n->c, x, tfl_byte_weights(n, w), bias ? n->in[bias] : NULL);
    return rescaled(n, x, scale_of(n, w) * tfl_scale(like) / 0x1p-12f);
}

/* Of x [T, B, I] and all steps. */
static ingot_tensor *sum_of_x(TfliteNode *n, ingot_tensor *x, const TfliteLstm *p, int gate)
{
    return tfl_clamp_16(n, part(n, x, n->ti[0], p->x + gate, p->bias + gate));
}

static ingot_tensor *gate_of(TfliteNode *n, const TfliteLstm *p, int gate, ingot_tensor *sum,
                             ingot_tensor *h, ingot_tensor *cell)
{
    const int hole = p->peephole + gate - (gate == GATE_O);
    sum = ingot_add(n->c, sum, part(n, h, n->ti[p->state], p->recurrent + gate, 0));
    sum = tfl_clamp_16(n, sum);
    if (gate != GATE_C && tfl_in(n, hole)) {
        ingot_tensor *x = ingot_mul(n->c, cell, tfl_byte_weights(n, hole));
        x = rescaled(n, x, scale_of(n, p->cell) * scale_of(n, hole) / 0x1p-12f);
        sum = tfl_clamp_16(n, ingot_add(n->c, sum, x));
    }
    sum = ingot_contiguous(n->c, sum);
    return gate == GATE_C ? tfl_tanh_16(n, sum, 3) : tfl_logistic_16(n, sum, 3);
}

/* o * tanh(c) becomes an integer of the hidden tensor's scale, and is projected if that is asked
 * for. */
static ingot_tensor *output_of(TfliteNode *n, const TfliteLstm *p, ingot_tensor *o,
                               ingot_tensor *cell, int log)
{
    const ingot_tflite_graph *g = n->s->g;
    const ingot_tflite_tensor *hidden = &g->tensors[ingot_tflite_i32(&n->op->intermediate, 4)];
    const ingot_tflite_tensor *state = n->ti[p->state];
    const float real = (float)(0x1p-15 / (double)tfl_scale(hidden) * 0x1p-15);
    ingot_tensor *y = ingot_mul(n->c, o, tfl_tanh_16(n, cell, 15 + log));
    y = rescaled(n, y, real);
    const bool projects = tfl_in(n, p->projection) != NULL;
    const int32_t zero = tfl_zero(hidden);
    y = ingot_clamp(n->c, ingot_add_c(n->c, y, projects ? -zero : zero), -128, 127);
    if (!projects)
        return y;
    /* effective bias: zero * sum of weights */
    y = ingot_add_c(n->c, y, zero);
    y = ingot_linear(n->c, y, tfl_byte_weights(n, p->projection), tfl_in(n, p->projection_bias));
    y = rescaled(n, y, scale_of(n, p->projection) * tfl_scale(hidden) / tfl_scale(state));
    y = ingot_clamp(n->c, ingot_add_c(n->c, y, tfl_zero(state)), -128, 127);
    const double clip = floor(p->projection_clip / (double)tfl_scale(n->to[0]));
    return clip > 0 ? ingot_clamp(n->c, y, clip < 127 ? -clip : -127, clip < 127 ? clip : 127) : y;
}

static void step_of(TfliteNode *n, const TfliteLstm *p, ingot_tensor **sums, ingot_tensor **h,
                    ingot_tensor **cell, int log)
{
    ingot_context *c = n->c;
    const double clip = floor(p->cell_clip / (double)scale_of(n, p->cell));
    ingot_tensor *old = ingot_cast(c, *cell, INGOT_I32);
    ingot_tensor *f = gate_of(n, p, GATE_F, sums[GATE_F], *h, old);
    ingot_tensor *i = sums[GATE_I] ? gate_of(n, p, GATE_I, sums[GATE_I], *h, old)
                                   : ingot_sub(c, ingot_scalar_i(c, INGOT_I32, 32767), f);
    ingot_tensor *g = gate_of(n, p, GATE_C, sums[GATE_C], *h, old);
    ingot_tensor *next = halved(n, ingot_mul(c, f, old), 15);
    next = tfl_clamp_16(n, ingot_add(c, next, halved(n, ingot_mul(c, i, g), 30 + log)));
    if (clip > 0)
        next = ingot_clamp(c, next, clip < 32767 ? -clip : -32767, clip < 32767 ? clip : 32767);
    next = ingot_contiguous(c, next);
    ingot_tensor *o = gate_of(n, p, GATE_O, sums[GATE_O], *h, next);
    *h = ingot_contiguous(c, ingot_cast(c, output_of(n, p, o, next, log), INGOT_I8));
    *cell = ingot_cast(c, next, INGOT_I16);
}

/* Is it the kernel with gates of 16 bits? */
static bool fits(TfliteNode *n, const TfliteLstm *p, int *log)
{
    if (n->op->intermediate.n != 5 || ingot_tflite_i32(&n->op->intermediate, 4) < 0 ||
        n->ti[p->cell]->type != INGOT_TFLITE_INT16 || n->ti[p->state]->type != INGOT_TFLITE_INT8)
        tfl_unsupported(n, "of INT8 it has other intermediates than 5, or its cell is no INT16");
    else if (tfl_has_any(n, p->norm, p->norm + 4))
        tfl_unsupported(n, "of INT8 with a norm it is not supported");
    else if (!tfl_power_of_two(tfl_scale(n->ti[p->cell]), log) || *log < -15 || *log > -9)
        tfl_unsupported(n, "the scale of its cell is no power of two from 2^-15 to 2^-9");
    else
        return true;
    return false;
}

ingot_tensor *tfl_quant_lstm(TfliteNode *n, ingot_tensor *x, const TfliteLstm *p)
{
    ingot_tensor *sums[4] = {NULL};
    int log;
    if (!fits(n, p, &log))
        return ingot_poison(n->c);
    for (int g = 0; g < 4; g++)
        if (tfl_in(n, p->x + g))
            sums[g] = sum_of_x(n, x, p, g);
    return tfl_lstm_steps(n, x, p, sums, step_of, log);
}
