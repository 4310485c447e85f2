/*
 * tflite_quant_table.c - functions of one integer that stands for a real number: tables, made when
 * compiling.
 *
 * Of 8 bits a table has each value. Of 16 bits it has 513, of every 128th argument, and values
 * between are on a line; a sample is moved by half of what that line misses in its middle, as the
 * reference kernels have it. LOGISTIC and TANH of 16 bits have a table of 256 for x >= 0.
 */
#include <math.h>

#include "tflite_quant.h"

#define X n->in[0]

typedef double TfliteFunction(double x, const void *more);

/* ---- 8 bits ---------------------------------------------------------------------------------- */

ingot_tensor *tfl_by_table(TfliteNode *n, const int8_t *table)
{
    const int64_t dims[] = {256};
    const ingot_dtype dtype = tfl_out_dtype(n);
    int32_t lo, hi;
    if (dtype != INGOT_I8 && dtype != INGOT_U8)
        return tfl_unsupported(n, "its result is %s, and its input has 8 bits",
                               ingot_tflite_type_name((int)n->to[0]->type, NULL));
    tfl_range(n->ti[0], &lo, &hi);
    ingot_tensor *values = ingot_data(n->c, NULL, dtype, 1, dims, table);
    ingot_tensor *index = ingot_add_c(n->c, tfl_cast(n, X, INGOT_I32), -(double)lo);
    return ingot_gather(n->c, values, &index);
}

/* ELU, LOGISTIC and TANH are those that XNNPACK takes. */
static bool ties_to_even(TfliteNode *n)
{
    const int op = n->op->builtin;
    return tfl_as_xnnpack(n) && (op == TFL_ELU || op == TFL_LOGISTIC || op == TFL_TANH);
}

/* f32 between all steps, as there. */
static ingot_tensor *by_256(TfliteNode *n, TfliteFunction *f, const void *more)
{
    const ingot_tflite_tensor *ti = n->ti[0], *to = n->to[0];
    const float in = tfl_scale(ti), inverse = 1 / tfl_scale(to);
    int32_t lo, hi, first, last;
    tfl_range(to, &lo, &hi);
    tfl_range(ti, &first, &last);
    int8_t *table = ingot_alloc(n->c, 256);
    const bool even = ties_to_even(n);
    for (int32_t i = first; i <= last; i++) {
        const float x = in * (float)(i - tfl_zero(ti)), y = (float)f((double)x, more);
        const float q = even ? rintf(y * inverse + (float)tfl_zero(to))
                             : roundf(y * inverse) + (float)tfl_zero(to);
        const int32_t v = !(q > (float)lo) ? lo : q > (float)hi ? hi : (int32_t)q;
        table[i - first] = (int8_t)(uint8_t)v;
    }
    return tfl_by_table(n, table);
}

/* ---- 16 bits --------------------------------------------------------------------------------- */

enum { STEPS = 512 };

static double within_16(double x)
{
    return !(x > -32768) ? -32768 : x > 32767 ? 32767 : x;
}

/* What is rounded after each step: to f32, unless it is done in f64. */
static double kept(double x, bool wide)
{
    return wide ? x : (double)(float)x;
}

/* Samples from x0 on, `step` apart; the result's scale is 1 / by. */
static ingot_tensor *samples(TfliteNode *n, TfliteFunction *f, const void *more, double x0,
                             double step, double x1, double by, bool wide)
{
    int32_t *v = ingot_alloc(n->c, (STEPS + 1) * sizeof *v);
    const double half = kept(step / 2, wide);
    for (int i = 0; i < STEPS; i++) {
        const double at = kept(x0 + kept(i * step, wide), wide),
                     to = kept(x0 + kept((i + 1) * step, wide), wide);
        const double y = kept(f(at, more), wide), next = kept(f(to, more), wide),
                     middle = kept(f(kept(at + half, wide), more), wide);
        const double sample = round(kept(y * by, wide));
        const double line = round(kept(kept(kept(next * by, wide) + sample, wide) / 2, wide));
        const double miss = line - round(kept(middle * by, wide));
        v[i] = (int32_t)within_16(sample - round(miss / 2));
    }
    v[STEPS] = (int32_t)within_16(round(kept(kept(f(x1, more), wide) * by, wide)));
    const int64_t dims[] = {STEPS + 1};
    return ingot_data(n->c, NULL, INGOT_I32, 1, dims, v);
}

/* x (i32, of 16 bits) */
static ingot_tensor *looked_up(TfliteNode *n, ingot_tensor *table, ingot_tensor *x)
{
    ingot_context *c = n->c;
    ingot_tensor *seven = ingot_scalar_i(c, INGOT_I32, 7);
    ingot_tensor *at = ingot_add_c(c, ingot_shr(c, x, seven), 256), *next = ingot_add_c(c, at, 1);
    ingot_tensor *rest = ingot_and(c, x, ingot_scalar_i(c, INGOT_I32, 127));
    ingot_tensor *y = ingot_gather(c, table, &at);
    ingot_tensor *slope = ingot_sub(c, ingot_gather(c, table, &next), y);
    return ingot_add(c, y, ingot_shr(c, ingot_add_c(c, ingot_mul(c, slope, rest), 64), seven));
}

static ingot_tensor *by_513(TfliteNode *n, TfliteFunction *f, const void *more)
{
    const double in = (double)tfl_scale(n->ti[0]), out = (double)tfl_scale(n->to[0]);
    const double x0 = kept(in * -32768, false), x1 = kept(in * 32767, false);
    const double y0 = kept(out * -32768, false), y1 = kept(out * 32767, false);
    if (tfl_zero(n->ti[0]) || tfl_zero(n->to[0]))
        return tfl_unsupported(n, "of INT16 with a zero point it is not supported");
    ingot_tensor *table = samples(n, f, more, x0, kept(kept(x1 - x0, false) / STEPS, false), x1,
                                  kept(65536 / kept(y1 - y0, false), false), false);
    return ingot_cast(n->c, looked_up(n, table, tfl_cast(n, X, INGOT_I32)), INGOT_I16);
}

static ingot_tensor *by_samples(TfliteNode *n, TfliteFunction *f, const void *more)
{
    if (n->ti[0]->type != n->to[0]->type)
        return tfl_unsupported(n, "its input and result are of different types");
    return n->ti[0]->type == INGOT_TFLITE_INT16 ? by_513(n, f, more) : by_256(n, f, more);
}

/* ---- LOGISTIC and TANH of 16 bits -------------------------------------------------------------
 */

/* x in 1/(3 * 2^12), by a multiplier and a shift. */
static ingot_tensor *in_thirds(TfliteNode *n, int most_shift)
{
    const float scale = tfl_scale(n->ti[0]);
    int log, shift = 0;
    int64_t by = 0;
    const bool power = tfl_power_of_two(scale, &log) && 12 + log >= 0 && 12 + log <= most_shift;
    if (power) {
        by = (int64_t)3 << (12 + log);
    } else {
        double m = (double)scale * 4096.0 * 3.0;
        for (; m <= 32767.0 / 2.0 && shift <= 30; shift++)
            m *= 2;
        by = m < 2147483647.0 ? (int64_t)m : 2147483647;
    }
    ingot_tensor *x =
        ingot_mul(n->c, tfl_cast(n, X, INGOT_I32), ingot_scalar_i(n->c, INGOT_I32, by));
    if (!shift)
        return x;
    x = ingot_add(n->c, x, ingot_scalar_i(n->c, INGOT_I32, (int64_t)1 << (shift - 1)));
    return ingot_shr(n->c, x, ingot_scalar_i(n->c, INGOT_I32, shift));
}

static double sigmoid(double x)
{
    return 65536.0 / (1.0 + exp(-x / 24.0));
}

/* 2^16 / (1 + e^-(i / 24)), moved by half of what a line to the next one misses in its middle. */
static ingot_tensor *sigmoids(TfliteNode *n)
{
    int32_t *v = ingot_alloc(n->c, 257 * sizeof *v);
    for (int i = 0; i < 255; i++) {
        const double miss = (sigmoid(i) + sigmoid(i + 1)) / 2 - sigmoid(i + 0.5);
        v[i] = (int32_t)round(sigmoid(i) - miss / 2);
    }
    v[255] = v[256] = 65535;
    return ingot_data(n->c, NULL, INGOT_I32, 1, (const int64_t[]){257}, v);
}

/* The table at |x| / 2^bits, by 2^bits; `most` from its 255th element on. */
static ingot_tensor *at_sigmoid(TfliteNode *n, ingot_tensor *x, int bits, int64_t most)
{
    ingot_context *c = n->c;
    ingot_tensor *size = ingot_abs(c, x), *shift = ingot_scalar_i(c, INGOT_I32, bits);
    ingot_tensor *whole = ingot_shr(c, size, shift);
    ingot_tensor *beyond = ingot_ge(c, whole, ingot_like(c, whole, 255));
    ingot_tensor *at = ingot_min_c(c, whole, 255), *next = ingot_add_c(c, at, 1);
    ingot_tensor *table = sigmoids(n), *a = ingot_gather(c, table, &at);
    ingot_tensor *rise = ingot_sub(c, ingot_gather(c, table, &next), a);
    ingot_tensor *rest = ingot_and(c, size, ingot_scalar_i(c, INGOT_I32, (1 << bits) - 1));
    ingot_tensor *y = ingot_add(c, ingot_shl(c, a, shift), ingot_mul(c, rest, rise));
    return ingot_where(c, beyond, ingot_scalar_i(c, INGOT_I32, most), y);
}

static ingot_tensor *logistic_16(TfliteNode *n)
{
    ingot_context *c = n->c;
    ingot_tensor *x = in_thirds(n, 0);
    if (ingot_is_poison(x))
        return x;
    ingot_tensor *y = at_sigmoid(n, x, 9, 0x7fff << 10);
    ingot_tensor *other = ingot_sub(c, ingot_scalar_i(c, INGOT_I32, (1 << 25) + (1 << 9) - 1), y);
    y = ingot_where(c, ingot_ge(c, x, ingot_like(c, x, 0)), ingot_add_c(c, y, 1 << 9), other);
    return ingot_cast(c, ingot_shr(c, y, ingot_scalar_i(c, INGOT_I32, 10)), INGOT_I16);
}

static ingot_tensor *tanh_16(TfliteNode *n)
{
    ingot_context *c = n->c;
    ingot_tensor *x = in_thirds(n, 1);
    if (ingot_is_poison(x))
        return x;
    ingot_tensor *y = at_sigmoid(n, x, 8, 0xffff << 8);
    ingot_tensor *other = ingot_sub(c, ingot_scalar_i(c, INGOT_I32, (1 << 23) + (1 << 7) - 1), y);
    y = ingot_where(c, ingot_ge(c, x, ingot_like(c, x, 0)),
                    ingot_add_c(c, y, -(1 << 23) + (1 << 7)), other);
    return ingot_cast(c, ingot_shr(c, y, ingot_scalar_i(c, INGOT_I32, 8)), INGOT_I16);
}

/* ---- functions ------------------------------------------------------------------------------- */

static double exp_of(double x, const void *more)
{
    (void)more;
    return (double)expf((float)x);
}

ingot_tensor *tflite_q_exp(TfliteNode *n)
{
    return by_samples(n, exp_of, NULL);
}

static double log_of(double x, const void *least)
{
    return x <= 0 ? (double)*(const float *)least : (double)logf((float)x);
}

ingot_tensor *tflite_q_log(TfliteNode *n)
{
    int32_t lo, hi;
    tfl_range(n->to[0], &lo, &hi);
    const float least = (float)(lo - tfl_zero(n->to[0])) * tfl_scale(n->to[0]);
    return by_samples(n, log_of, &least);
}

static double elu_of(double x, const void *more)
{
    (void)more;
    return x < 0 ? (double)expm1f((float)x) : x;
}

ingot_tensor *tflite_q_elu(TfliteNode *n)
{
    return by_samples(n, elu_of, NULL);
}

static double gelu_of(double x, const void *more)
{
    const float v = (float)x;
    if (*(const bool *)more)
        return (double)(0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v))));
    return (double)(0.5f * v * (1 + erff(v * 0.70710678118654752440f)));
}

ingot_tensor *tflite_q_gelu(TfliteNode *n)
{
    const bool tanh_form = tfl_int(n, 0, 1, 0) != 0;
    return by_samples(n, gelu_of, &tanh_form);
}

static double logistic_of(double x, const void *more)
{
    (void)more;
    return (double)(1.0f / (1.0f + expf(-(float)x)));
}

ingot_tensor *tflite_q_logistic(TfliteNode *n)
{
    return n->ti[0]->type == INGOT_TFLITE_INT16 ? logistic_16(n) : by_256(n, logistic_of, NULL);
}

static double tanh_of(double x, const void *more)
{
    (void)more;
    return (double)tanhf((float)x);
}

ingot_tensor *tflite_q_tanh(TfliteNode *n)
{
    return n->ti[0]->type == INGOT_TFLITE_INT16 ? tanh_16(n) : by_256(n, tanh_of, NULL);
}

/* Rounded toward zero, of 8 and 16 bits. */
ingot_tensor *tflite_q_sqrt(TfliteNode *n)
{
    const ingot_tflite_tensor *ti = n->ti[0], *to = n->to[0];
    ingot_context *c = n->c;
    int32_t lo, hi;
    tfl_range(to, &lo, &hi);
    ingot_tensor *x = ingot_cast(c, tfl_centred(n, 0), INGOT_F32);
    x = ingot_mul(c, x, ingot_scalar_f(c, INGOT_F32, (double)tfl_scale(ti)));
    x = ingot_sqrt(c, ingot_max_c(c, x, 0));
    x = ingot_div(c, x, ingot_scalar_f(c, INGOT_F32, (double)tfl_scale(to)));
    x = ingot_add_c(c, ingot_cast(c, ingot_trunc(c, x), INGOT_I32), tfl_zero(to));
    return ingot_cast(c, ingot_clamp(c, x, lo, hi), tfl_out_dtype(n));
}

static double rsqrt_of(double x, const void *scale)
{
    return x <= 0 ? (double)(32767 * *(const float *)scale) : (double)(1.0f / sqrtf((float)x));
}

/* Of 8 bits by 20 bits more; of 0 the greatest. */
ingot_tensor *tflite_q_rsqrt(TfliteNode *n)
{
    const ingot_tflite_tensor *ti = n->ti[0], *to = n->to[0];
    const float out = tfl_scale(to), root = sqrtf(tfl_scale(ti)) * out;
    TfliteMultiplier q = tfl_multiplier(1.0 / (double)root);
    if (ti->type == INGOT_TFLITE_INT16)
        return by_513(n, rsqrt_of, &out);
    q.shift -= 20;
    int8_t *table = ingot_alloc(n->c, 256);
    for (int i = -128; i < 128; i++) {
        const int32_t x = i - tfl_zero(ti);
        TfliteMultiplier r = tfl_fixed_rsqrt(x);
        r.shift += 20;
        const int32_t y = tfl_fixed_rescale(tfl_fixed_rescale(1, r), q) + tfl_zero(to);
        table[i + 128] = (int8_t)(x == 0 || y > 127 ? 127 : y < -128 ? -128 : y);
    }
    return tfl_by_table(n, table);
}

ingot_tensor *tflite_q_abs(TfliteNode *n)
{
    const TfliteMultiplier q = tfl_multiplier((double)(tfl_scale(n->ti[0]) / tfl_scale(n->to[0])));
    ingot_tensor *x = ingot_abs(n->c, tfl_centred(n, 0));
    return tfl_finish(
        n, tfl_scale(n->ti[0]) == tfl_scale(n->to[0]) ? x : tfl_rescale(n, x, &q, 1, 0), 0);
}

/* ---- x * min(max(x + 3, 0), 6) / 6, of 8 bits -------------------------------------------------
 */

static int32_t high_16(int32_t a, int32_t b)
{
    return (a * b + (1 << 14)) >> 15;
}

static int32_t left_16(int32_t x, int e)
{
    return (int32_t)within_16(ldexp(x, e));
}

/* The upper half of a multiplier, rounded. */
static int32_t multiplier_16(TfliteMultiplier q)
{
    return q.m >= INT32_MAX - (1 << 15) ? 32767 : (q.m + (1 << 15)) >> 16;
}

static int32_t hard_swish_of(int32_t x, TfliteMultiplier out, TfliteMultiplier relu)
{
    const int32_t wide = x * 128, on_output = high_16(wide, multiplier_16(out));
    int32_t r = wide;
    if (relu.shift > 0)
        r = left_16(r, relu.shift - 1);
    r = high_16(r, multiplier_16(relu));
    if (relu.shift > 0)
        r = left_16(r, 1);
    if (relu.shift < 0)
        r = tfl_fixed_halve(r, -relu.shift);
    r = (r + (1 << 15)) >> 1;
    return tfl_fixed_halve(r * on_output / (1 << 15), -out.shift);
}

ingot_tensor *tflite_q_hard_swish(TfliteNode *n)
{
    const ingot_tflite_tensor *ti = n->ti[0], *to = n->to[0];
    const float fine = (1.0f / 128.0f) * tfl_scale(ti);
    const TfliteMultiplier out = tfl_multiplier((double)(fine / tfl_scale(to))),
                           relu = tfl_multiplier((double)(fine / (3.0f / 32768.0f)));
    int32_t lo, hi, first, last;
    if (ti->type == INGOT_TFLITE_INT16 || ti->type != to->type || out.shift > 0)
        return tfl_unsupported(n, "of INT16, or with such scales, it is not supported");
    tfl_range(to, &lo, &hi);
    tfl_range(ti, &first, &last);
    int8_t *table = ingot_alloc(n->c, 256);
    for (int32_t i = first; i <= last; i++) {
        const int32_t y = hard_swish_of(i - tfl_zero(ti), out, relu) + tfl_zero(to);
        table[i - first] = (int8_t)(uint8_t)(y < lo ? lo : y > hi ? hi : y);
    }
    return tfl_by_table(n, table);
}

/* ---- SOFTMAX of 16 bits -----------------------------------------------------------------------
 */

static double plain_exp(double x, const void *more)
{
    (void)more;
    return exp(x);
}

static double by_one_plus(double x, const void *more)
{
    (void)more;
    return 1.0 / (1.0 + x);
}

/* e^x of -10 <= x <= 0 and 1 / (1 + x) of 0 <= x <= 1, by 2^15. */
static void softmax_tables(TfliteNode *n, ingot_tensor *table[2])
{
    const double by = 65536 / (2.0 / 65535 * 32767 - 2.0 / 65535 * -32768);
    const double e0 = 10.0 / 65535 * -65535, r1 = 1.0 / 65535 * 65535;
    table[0] = samples(n, plain_exp, NULL, e0, (0 - e0) / STEPS, 0, by, true);
    table[1] = samples(n, by_one_plus, NULL, 0, r1 / STEPS, r1, by, true);
}

ingot_tensor *tfl_q_softmax_16(TfliteNode *n)
{
    ingot_context *c = n->c;
    const unsigned last = 1u << (ingot_rank(X) - 1);
    const double beta = (double)ingot_tflite_float(&n->op->options, 0, 0);
    const float real = tfl_scale(n->ti[0]) * (float)beta;
    const TfliteMultiplier q = tfl_multiplier((double)real / (10.0 / 65535.0));
    ingot_tensor *table[2], *x = tfl_cast(n, X, INGOT_I32);
    softmax_tables(n, table);
    ingot_tensor *most = ingot_reduce(c, INGOT_REDUCE_MAX, x, last, true);
    x = tfl_rescale(n, ingot_sub(c, x, most), &q, 1, 0);
    x = tfl_clamp_16(n, ingot_add_c(c, x, 32767));
    ingot_tensor *e = ingot_contiguous(c, looked_up(n, table[0], x));
    ingot_tensor *sum = ingot_contiguous(c, ingot_sum(c, e, last, true));
    /* the zero bits in front of the sum, which is positive */
    ingot_tensor *zeros = ingot_scalar_i(c, INGOT_I32, 1);
    for (int k = 0; k <= 30; k++)
        zeros =
            ingot_add(c, zeros,
                      ingot_cast(c, ingot_lt(c, sum, ingot_scalar_i(c, INGOT_I32, (int64_t)1 << k)),
                                 INGOT_I32));
    ingot_tensor *s = ingot_shl(c, tfl_cast(n, sum, INGOT_I64),
                                tfl_cast(n, ingot_add_c(c, zeros, -1), INGOT_I64));
    s = ingot_shr(c, ingot_add_c(c, s, 1 << 13), ingot_scalar_i(c, INGOT_I64, 14));
    s = tfl_clamp_16(n, ingot_add_c(c, ingot_cast(c, s, INGOT_I32), -98304));
    ingot_tensor *inverse = ingot_contiguous(c, looked_up(n, table[1], s));
    ingot_tensor *shift = ingot_sub(c, ingot_scalar_i(c, INGOT_I32, 31), zeros);
    ingot_tensor *half = ingot_shl(c, ingot_scalar_i(c, INGOT_I32, 1), ingot_add_c(c, shift, -1));
    ingot_tensor *y = ingot_shr(c, ingot_add(c, ingot_mul(c, e, inverse), half), shift);
    return ingot_cast(c, ingot_clamp(c, y, 0, 32767), INGOT_I16);
}
