/*
 * tflite_fixed16.c - functions in fixed point of 16 bits, in the graph, as the reference kernels of
 * LSTMs compute them.
 *
 * A number of k integer bits is an integer by 2^(15-k), held in i32. The algorithms are those of
 * tflite_fixed.c (gemmlowp's FixedPoint, Apache 2.0) with constants of 16 bits.
 */
#include "tflite_quant.h"

static ingot_tensor *whole(TfliteNode *n, int64_t v)
{
    return ingot_scalar_i(n->c, INGOT_I32, v);
}

/* A constant of 32 bits as one of 16. */
static ingot_tensor *half_word(TfliteNode *n, int32_t v)
{
    return whole(n, tfl_fixed_halve(v, 16));
}

static ingot_tensor *plus(TfliteNode *n, ingot_tensor *x, int32_t v)
{
    return ingot_add(n->c, x, whole(n, v));
}

/* x y / 2^15, halves up */
static ingot_tensor *high(TfliteNode *n, ingot_tensor *x, ingot_tensor *y)
{
    return ingot_shr(n->c, plus(n, ingot_mul(n->c, x, y), 1 << 14), whole(n, 15));
}

static ingot_tensor *halve(TfliteNode *n, ingot_tensor *x, int e)
{
    return ingot_shrr(n->c, x, whole(n, e));
}

ingot_tensor *tfl_clamp_16(TfliteNode *n, ingot_tensor *x)
{
    return ingot_clamp(n->c, x, -32768, 32767);
}

static ingot_tensor *doubled(TfliteNode *n, ingot_tensor *x, int e)
{
    return tfl_clamp_16(n, ingot_shl(n->c, x, whole(n, e)));
}

static ingot_tensor *where_zero(TfliteNode *n, ingot_tensor *x, int32_t yes, ingot_tensor *no)
{
    return ingot_where(n->c, ingot_eq(n->c, x, whole(n, 0)), whole(n, yes), no);
}

/* of -1/4 <= x < 0, without integer bits */
static ingot_tensor *exp_of_quarter(TfliteNode *n, ingot_tensor *x)
{
    ingot_tensor *eighth = half_word(n, 1895147668) /* e^(-1/8) */;
    ingot_tensor *a = plus(n, x, 1 << 12), *a2 = high(n, a, a), *a3 = high(n, a2, a),
                 *a4 = high(n, a2, a2);
    ingot_tensor *rest = ingot_add(n->c, halve(n, a4, 2), a3);
    rest = ingot_add(n->c, high(n, rest, half_word(n, 715827883)), a2);
    rest = ingot_add(n->c, a, halve(n, rest, 1));
    return tfl_clamp_16(n, ingot_add(n->c, eighth, high(n, eighth, rest)));
}

/* e^x of x <= 0 */
static ingot_tensor *exp_of(TfliteNode *n, ingot_tensor *x, int integer_bits)
{
    static const int32_t factor[] = {/* e^-(2^i), i from -2 on */
                                     1672461947, 1302514674, 790015084, 290630308,
                                     39332535,   720401,     242};
    const int fraction = 15 - integer_bits;
    const int32_t quarter = 1 << (fraction - 2);
    ingot_tensor *low = plus(n, ingot_and(n->c, x, whole(n, quarter - 1)), -quarter);
    ingot_tensor *y = exp_of_quarter(n, doubled(n, low, integer_bits));
    ingot_tensor *rest = ingot_sub(n->c, low, x);
    for (int i = -2; i < integer_bits && i < 5; i++) {
        ingot_tensor *bit = ingot_and(n->c, rest, whole(n, 1 << (fraction + i)));
        bit = ingot_eq(n->c, bit, whole(n, 0));
        y = ingot_where(n->c, bit, y, high(n, y, half_word(n, factor[i + 2])));
    }
    if (integer_bits > 5) /* below -32 */
        y = ingot_where(n->c, ingot_lt(n->c, x, whole(n, -(1 << (20 - integer_bits)))), whole(n, 0),
                        y);
    return where_zero(n, x, 32767, y);
}

/* 2 / (1 + x) of 0 <= x < 1, with two integer bits */
static ingot_tensor *two_by_one_plus(TfliteNode *n, ingot_tensor *x)
{
    ingot_tensor *half = ingot_shr(n->c, plus(n, x, 32768), whole(n, 1));
    ingot_tensor *y = ingot_add(n->c, half_word(n, 1515870810),
                                high(n, half, half_word(n, -1010580540))); /* 48/17 - 32/17 half */
    for (int i = 0; i < 3; i++) {
        ingot_tensor *error = ingot_sub(n->c, whole(n, 1 << 13), high(n, half, y));
        y = ingot_add(n->c, y, doubled(n, high(n, y, error), 2));
    }
    return y;
}

static ingot_tensor *less_than_zero(TfliteNode *n, ingot_tensor *x)
{
    return ingot_lt(n->c, x, whole(n, 0));
}

ingot_tensor *tfl_logistic_16(TfliteNode *n, ingot_tensor *x, int integer_bits)
{
    ingot_tensor *e = exp_of(n, ingot_neg(n->c, ingot_abs(n->c, x)), integer_bits);
    ingot_tensor *y = doubled(n, two_by_one_plus(n, e), 1);
    y = ingot_where(n->c, less_than_zero(n, x), ingot_sub(n->c, whole(n, 32767), y), y);
    return where_zero(n, x, 1 << 14, y);
}

ingot_tensor *tfl_tanh_16(TfliteNode *n, ingot_tensor *x, int integer_bits)
{
    /* of 2 x: the same bits */
    ingot_tensor *e = exp_of(n, ingot_neg(n->c, ingot_abs(n->c, x)), integer_bits + 1);
    ingot_tensor *y = doubled(n, plus(n, two_by_one_plus(n, e), -(1 << 13)), 2);
    y = ingot_where(n->c, less_than_zero(n, x), ingot_neg(n->c, y), y);
    return where_zero(n, x, 0, y);
}
