/*
 * tflite_fixed.c - functions in fixed point, as the reference kernels compute them, for tables that
 * are made when compiling.
 *
 * A number of k integer bits is an integer by 2^(31-k). Products of numbers of j and k integer bits
 * have j + k. The algorithms are those of gemmlowp's FixedPoint (Apache 2.0): e^x by a Taylor
 * series around -1/8 and one factor a bit of the rest.
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

TfliteMultiplier tfl_fixed_rsqrt(int32_t x)
{
    int shift = 11, pairs = -1;
    if (x <= 1)
        return (TfliteMultiplier){INT32_MAX, 0};
    for (; x >= 1 << 29; x /= 4)
        shift++;
    while ((int64_t)x << (2 * pairs + 4) < (int64_t)1 << 31)
        pairs++; /* x becomes one of 2^27 to 2^29 */
    x *= 1 << (2 * pairs);
    shift -= pairs;
    const int32_t half = tfl_fixed_halve(x >> 1, 1);
    int32_t y = 1 << 28; /* with three integer bits, as x */
    for (int i = 0; i < 5; i++) {
        const int32_t y3 = doubled(tfl_fixed_high(tfl_fixed_high(y, y), y), 6);
        y = doubled(tfl_fixed_high((1 << 28) + (1 << 27), y) - tfl_fixed_high(half, y3), 3);
    }
    y = tfl_fixed_high(y, 1518500250 /* sqrt(1/2) */);
    if (shift < 0)
        return (TfliteMultiplier){(int32_t)((uint32_t)y << -shift), 0};
    return (TfliteMultiplier){y, -shift};
}
