/*
 * tflite_quant_math.c - operators element by element, of integers that stand for real numbers.
 */
#include <math.h>

#include "tflite_quant.h"

#define X n->in[0]

static double scale_in(TfliteNode *n, int i)
{
    return (double)tfl_scale(n->ti[i]);
}

static double scale_out(TfliteNode *n)
{
    return (double)tfl_scale(n->to[0]);
}

bool tfl_power_of_two(float x, int *log)
{
    if (!(x > 0))
        return false;
    const float l = logf(x) * (1.0f / logf(2.0f)), whole = roundf(l);
    *log = (int)whole;
    return fabsf(l - whole) < 1e-3f;
}

/* Sums of 16 bits whose scales are powers of two: the one with the smaller scale is shifted. */
static bool shifts_of(TfliteNode *n, int shift[2])
{
    int a, b, y;
    if (n->to[0]->type != INGOT_TFLITE_INT16 || !tfl_int(n, 1, 1, 1) ||
        !tfl_power_of_two(tfl_scale(n->ti[0]), &a) || !tfl_power_of_two(tfl_scale(n->ti[1]), &b) ||
        !tfl_power_of_two(tfl_scale(n->to[0]), &y))
        return false;
    shift[0] = y - a;
    shift[1] = y - b;
    return shift[0] >= 0 && shift[1] >= 0 && (shift[0] == 0 || shift[1] == 0);
}

/* x and y become multiples of a scale that is fine enough for both, by 20 bits (of 16 bits: 15). */
static ingot_tensor *sum(TfliteNode *n, bool minus)
{
    const int bits = n->to[0]->type == INGOT_TFLITE_INT16 ? 15 : 20;
    const double a = scale_in(n, 0), b = scale_in(n, 1), twice = 2 * (a > b ? a : b);
    const TfliteMultiplier q[] = {tfl_multiplier(a / twice), tfl_multiplier(b / twice),
                                  tfl_multiplier(twice / ((1 << bits) * scale_out(n)))};
    const int64_t function = tfl_int(n, 0, 1, 0);
    ingot_tensor *x[2];
    int shift[2];
    x[0] = tfl_xnnpack_sum(n, minus);
    if (x[0])
        return tfl_finish(n, x[0], function);
    if (shifts_of(n, shift)) {
        for (int i = 0; i < 2; i++) {
            x[i] = tfl_cast(n, n->in[i], INGOT_I32);
            x[i] = ingot_shrr(n->c, x[i], ingot_scalar_i(n->c, INGOT_I32, shift[i]));
        }
        return tfl_finish(n, minus ? ingot_sub(n->c, x[0], x[1]) : ingot_add(n->c, x[0], x[1]),
                          function);
    }
    for (int i = 0; i < 2; i++) {
        const bool half = q[i].m == 1 << 30 && !q[i].shift; /* of the greater scale: exact */
        x[i] = ingot_shl(n->c, tfl_centred(n, i), ingot_scalar_i(n->c, INGOT_I32, bits - half));
        x[i] = half ? x[i] : tfl_rescale(n, x[i], &q[i], 1, 0);
    }
    x[0] = minus ? ingot_sub(n->c, x[0], x[1]) : ingot_add(n->c, x[0], x[1]);
    return tfl_finish(n, tfl_rescale(n, x[0], &q[2], 1, 0), function);
}

ingot_tensor *tflite_q_add(TfliteNode *n)
{
    return sum(n, false);
}

ingot_tensor *tflite_q_sub(TfliteNode *n)
{
    return sum(n, true);
}

/* By 7 bits more than twice the greater scale. */
ingot_tensor *tflite_q_squared_difference(TfliteNode *n)
{
    const float a = tfl_scale(n->ti[0]), b = tfl_scale(n->ti[1]);
    const double twice = (double)(2 * (a > b ? a : b));
    const TfliteMultiplier q[] = {
        tfl_multiplier((double)a / twice), tfl_multiplier((double)b / twice),
        tfl_multiplier(twice * twice / (double)((float)(1 << 14) * tfl_scale(n->to[0])))};
    ingot_tensor *x[2];
    for (int i = 0; i < 2; i++) {
        x[i] = ingot_shl(n->c, tfl_centred(n, i), ingot_scalar_i(n->c, INGOT_I32, 7));
        x[i] = tfl_rescale(n, x[i], &q[i], 1, 0);
    }
    ingot_tensor *d = ingot_sub(n->c, x[0], x[1]);
    return tfl_finish(n, tfl_rescale(n, ingot_mul(n->c, d, d), &q[2], 1, 0), 0);
}

/* Both with the scale 1 / 2^8. */
bool tfl_comparable(TfliteNode *n, ingot_tensor *x[2])
{
    for (int i = 0; i < 2; i++) {
        const TfliteMultiplier q = tfl_multiplier((double)tfl_scale(n->ti[i]));
        if (!tfl_quantized(n->ti[i]))
            return false;
        x[i] = ingot_shl(n->c, tfl_centred(n, i), ingot_scalar_i(n->c, INGOT_I32, 8));
        x[i] = tfl_rescale(n, x[i], &q, 1, 0);
    }
    return true;
}

ingot_tensor *tflite_q_mul(TfliteNode *n)
{
    const float real = tfl_scale(n->ti[0]) * tfl_scale(n->ti[1]) / tfl_scale(n->to[0]);
    const TfliteMultiplier q = tfl_multiplier((double)real);
    ingot_tensor *x = ingot_mul(n->c, tfl_centred(n, 0), tfl_centred(n, 1));
    const bool once = tfl_as_xnnpack(n) && real >= 0x1p-16f && real < 0x1p8f;
    x = once ? tfl_rescale_once(n, x, &real, 1, 0) : tfl_rescale(n, x, &q, 1, 0);
    return tfl_finish(n, x, tfl_int(n, 0, 1, 0));
}

/* a / b by the reciprocal of |b|: both are shifted up as far as they go, which is undone last.
 * By 0 the run of the reference kernels ends; here it is by one step of the scale. */
ingot_tensor *tflite_q_div(TfliteNode *n)
{
    ingot_context *c = n->c;
    const int bits = n->to[0]->type == INGOT_TFLITE_INT16 ? 17 : 9;
    const float real = tfl_scale(n->ti[0]) / (tfl_scale(n->ti[1]) * tfl_scale(n->to[0]));
    const TfliteMultiplier q = tfl_multiplier((double)real);
    ingot_tensor *a = tfl_centred(n, 0), *b = tfl_centred(n, 1);
    ingot_tensor *zero = ingot_scalar_i(c, INGOT_I32, 0), *most = ingot_scalar_i(c, INGOT_I32, 31);
    ingot_tensor *below = ingot_lt(c, b, zero);
    a = ingot_where(c, below, ingot_neg(c, a), a);
    b = ingot_max_c(c, ingot_abs(c, b), 1);
    ingot_tensor *zeros = tfl_leading_zeros(n, b, 0, bits);
    ingot_tensor *rest =
        ingot_and(c, ingot_shl(c, b, zeros), ingot_scalar_i(c, INGOT_I32, INT32_MAX));
    ingot_tensor *other = ingot_add_c(c, ingot_neg(c, a), -1); /* ~a */
    ingot_tensor *size = ingot_where(c, ingot_lt(c, a, zero), other, a);
    ingot_tensor *room = ingot_add_c(c, tfl_leading_zeros(n, size, -1, bits), -1);
    ingot_tensor *y = ingot_mulhi(c, ingot_shl(c, a, room), tfl_by_one_plus(n, rest));
    y = ingot_mulhi(c, y, ingot_scalar_i(c, INGOT_I32, q.m));
    ingot_tensor *down = ingot_add_c(c, ingot_sub(c, room, zeros), 31 - q.shift);
    ingot_tensor *none = ingot_gt(c, down, most);
    y = ingot_where(c, none, zero, ingot_shrr(c, y, ingot_clamp(c, down, 0, 31)));
    return tfl_finish(n, y, tfl_int(n, 0, 1, 0));
}

/* ---- activations ----------------------------------------------------------------------------- */

/* Bounds of RELU_0_TO_1 are those of no fused function. */
ingot_tensor *tflite_q_relu(TfliteNode *n)
{
    const int builtin = n->op->builtin;
    const int function = builtin == TFL_RELU ? 1 : builtin == TFL_RELU6 ? 3 : 2;
    const TfliteMultiplier q = tfl_multiplier((double)(tfl_scale(n->ti[0]) / tfl_scale(n->to[0])));
    ingot_tensor *x = tfl_rescale(n, tfl_centred(n, 0), &q, 1, 0);
    return tfl_finish(n, builtin == TFL_RELU_0_TO_1 ? ingot_max_c(n->c, x, 0) : x, function);
}

/* x times one multiplier where it is positive, y times another one elsewhere. */
static ingot_tensor *by_sign(TfliteNode *n, ingot_tensor *x, ingot_tensor *y, double up,
                             double down)
{
    const TfliteMultiplier a = tfl_multiplier(up), b = tfl_multiplier(down);
    ingot_tensor *positive = ingot_ge(n->c, x, ingot_like(n->c, x, 0));
    return tfl_finish(
        n, ingot_where(n->c, positive, tfl_rescale(n, x, &a, 1, 0), tfl_rescale(n, y, &b, 1, 0)),
        0);
}

ingot_tensor *tflite_q_leaky_relu(TfliteNode *n)
{
    const float alpha = ingot_tflite_float(&n->op->options, 0, 0), scale = tfl_scale(n->ti[0]);
    const double real = (double)(scale * alpha / tfl_scale(n->to[0]));
    ingot_tensor *line = tfl_xnnpack_line(n, alpha), *x = tfl_centred(n, 0);
    if (line)
        return line;
    return by_sign(n, x, real < 0 ? ingot_neg(n->c, x) : x, (double)(scale / tfl_scale(n->to[0])),
                   fabs(real));
}

ingot_tensor *tflite_q_prelu(TfliteNode *n)
{
    const float scale = tfl_scale(n->ti[0]), alpha = tfl_scale(n->ti[1]), y = tfl_scale(n->to[0]);
    ingot_tensor *x = tfl_centred(n, 0);
    return by_sign(n, x, ingot_mul(n->c, x, tfl_centred(n, 1)), (double)(scale / y),
                   (double)(scale * alpha / y));
}
