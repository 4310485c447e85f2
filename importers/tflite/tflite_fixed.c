/*
 * tflite_fixed.c - functions in fixed point, as the reference kernels compute them, for tables that
 * are made when compiling.
 *
 * A number of k integer bits is an integer by 2^(31-k). Products of numbers of j and k integer bits
 * have j + k. The algorithms are those of gemmlowp's FixedPoint (Apache 2.0): e^x by a Taylor
 * series around -1/8 and one factor a bit of the rest; 1 / (1 + x) by three of Newton's steps.
 */
#include "tflite_quant.h"

int32_t tfl_fixed_high(int32_t x, int32_t m)
{
    if (x == INT32_MIN && m == INT32_MIN)
        return INT32_MAX;
    return (int32_t)(((int64_t)x * m + (1 << 30)) >> 31);
}

int32_t tfl_fixed_halve(int32_t x, int e)
{
    return e ? (int32_t)(((int64_t)x + ((int64_t)1 << (e - 1)) - (x < 0)) >> e) : x;
}

/* x * 2^e that stays within i32 */
static int32_t doubled(int32_t x, int e)
{
    const int64_t y = (int64_t)x * ((int64_t)1 << e);
    return y > INT32_MAX ? INT32_MAX : y < INT32_MIN ? INT32_MIN : (int32_t)y;
}

int32_t tfl_fixed_rescale(int32_t x, TfliteMultiplier q)
{
    const uint32_t left = (uint32_t)x << (q.shift > 0 ? q.shift : 0);
    return tfl_fixed_halve(tfl_fixed_high((int32_t)left, q.m), q.shift < 0 ? -q.shift : 0);
}

/* of -1/4 <= x < 0, without integer bits */
static int32_t exp_of_quarter(int32_t x)
{
    const int32_t eighth = 1895147668 /* e^(-1/8) */, third = 715827883;
    const int32_t a = x + (1 << 28), a2 = tfl_fixed_high(a, a), a3 = tfl_fixed_high(a2, a),
                  a4 = tfl_fixed_high(a2, a2);
    const int32_t rest =
        tfl_fixed_halve(tfl_fixed_high(tfl_fixed_halve(a4, 2) + a3, third) + a2, 1);
    return eighth + tfl_fixed_high(eighth, a + rest);
}

int32_t tfl_fixed_exp(int32_t x, int integer_bits)
{
    static const int32_t factor[] = {/* e^-(2^i), i from -2 on */
                                     1672461947, 1302514674, 790015084, 290630308,
                                     39332535,   720401,     242};
    const int fraction = 31 - integer_bits;
    const int32_t quarter = 1 << (fraction - 2), low = (x & (quarter - 1)) - quarter;
    int32_t y = exp_of_quarter(doubled(low, integer_bits));
    const int32_t rest = low - x;
    for (int i = -2; i < integer_bits && i < 5; i++)
        if (rest & (int32_t)((uint32_t)1 << (fraction + i)))
            y = tfl_fixed_high(y, factor[i + 2]);
    return x == 0 ? INT32_MAX : y;
}

/* 2 / (1 + x) of 0 <= x < 1, with two integer bits */
static int32_t two_by_one_plus(int32_t x)
{
    const int32_t half = (int32_t)(((int64_t)x + INT32_MAX + 1) / 2);
    int32_t y = 1515870810 + tfl_fixed_high(half, -1010580540); /* 48/17 - 32/17 half */
    for (int i = 0; i < 3; i++) {
        const int32_t error = (1 << 29) - tfl_fixed_high(half, y);
        y += doubled(tfl_fixed_high(y, error), 2);
    }
    return y;
}

int32_t tfl_fixed_logistic(int32_t x)
{
    if (x == 0)
        return 1 << 30;
    const int32_t y = doubled(two_by_one_plus(tfl_fixed_exp(x > 0 ? -x : x, 4)), 1);
    return x > 0 ? y : INT32_MAX - y;
}

int32_t tfl_fixed_tanh(int32_t x)
{
    if (x == 0)
        return 0;
    const int32_t e = tfl_fixed_exp(x > 0 ? -x : x, 5); /* of 2 x: the same bits */
    const int32_t y = doubled(two_by_one_plus(e) - (1 << 29), 2);
    return x > 0 ? y : -y;
}
