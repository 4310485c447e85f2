/* float_text.c - the shortest decimal number that reads back as the same float.
 *
 * Weights that are written as text are most of what it takes to compile a small model. Most of them
 * are between 1e-9 and 1e6: there the digits are exact in 64 bits, and so is what is read back.
 *
 *     x = mantissa 2^exponent,  x 10^j = (mantissa 5^j) 2^(exponent + j),  0 <= j <= 17
 *
 * All others are printed and read by the C library. */
#include "float_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 6, MOST = 9, POWERS = 18, MANTISSA = 24 };

static const uint64_t five[POWERS] = {UINT64_C(1),
                                      UINT64_C(5),
                                      UINT64_C(25),
                                      UINT64_C(125),
                                      UINT64_C(625),
                                      UINT64_C(3125),
                                      UINT64_C(15625),
                                      UINT64_C(78125),
                                      UINT64_C(390625),
                                      UINT64_C(1953125),
                                      UINT64_C(9765625),
                                      UINT64_C(48828125),
                                      UINT64_C(244140625),
                                      UINT64_C(1220703125),
                                      UINT64_C(6103515625),
                                      UINT64_C(30517578125),
                                      UINT64_C(152587890625),
                                      UINT64_C(762939453125)};
static const double ten[POWERS] = {1e0, 1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,
                                   1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17};

/* A number of so many digits, the first of which stands for 10^place. */
typedef struct {
    uint64_t value;
    int digits, place;
} Decimal;

/* x, which is positive, rounded as the C library does; false: it is none of those above. */
static bool rounded(float x, int digits, Decimal *d)
{
    int exponent;
    const uint64_t mantissa = (uint64_t)ldexpf(frexpf(x, &exponent), MANTISSA);
    const uint64_t first = (uint64_t)ten[digits - 1];
    exponent -= MANTISSA;
    d->digits = digits;
    d->place = (int)floor((exponent + MANTISSA) * 0.30103) + 1; /* log10(2): this, or less */
    for (;; d->place--) {
        const int j = digits - 1 - d->place, right = -(exponent + j);
        if (j < 0 || j >= POWERS || right >= 64 || right < -MANTISSA)
            return false;
        const uint64_t scaled = mantissa * five[j];
        if (right <= 0) {
            if (scaled >> (64 - MANTISSA))
                return false;
            d->value = scaled << -right;
        } else {
            const uint64_t rest = scaled & ((UINT64_C(1) << right) - 1), half = UINT64_C(1)
                                                                                << (right - 1);
            d->value = scaled >> right;
            if (d->value < first)
                continue;
            d->value += rest > half || (rest == half && d->value % 2);
        }
        if (d->value >= first)
            break;
    }
    if (d->value == 10 * first) {
        d->value = first;
        d->place++;
    }
    return d->value < 10 * first;
}

static bool reads_back(const Decimal *d, float x)
{
    const int j = d->digits - 1 - d->place;
    if (j <= -POWERS || j >= POWERS)
        return false;
    const double value = (double)d->value; /* exact, as are the powers: one operation rounds */
    return (float)(j < 0 ? value * ten[-j] : value / ten[j]) == x;
}

/* As %.*g does. */
static void write_decimal(char *text, const Decimal *d)
{
    char digit[MOST + 1];
    int n = d->digits;
    uint64_t rest = d->value;
    for (int i = n - 1; i >= 0; i--, rest /= 10)
        digit[i] = (char)('0' + rest % 10);
    while (n > 1 && digit[n - 1] == '0')
        n--;
    const bool power = d->place < -4 || d->place >= d->digits;
    const int whole = power ? 1 : d->place + 1; /* digits in front of the point */
    if (whole <= 0) {
        *text++ = '0';
        *text++ = '.';
        for (int i = whole; i < 0; i++)
            *text++ = '0';
    }
    for (int i = 0; i < n || i < whole; i++) {
        if (i && i == whole)
            *text++ = '.';
        *text++ = i < n ? digit[i] : '0';
    }
    if (power) { /* of two digits: it is within POWERS */
        *text++ = 'e';
        *text++ = d->place < 0 ? '-' : '+';
        *text++ = (char)('0' + abs(d->place) / 10);
        *text++ = (char)('0' + abs(d->place) % 10);
    }
    *text = 0;
}

void float_text(char text[FLOAT_TEXT], float x)
{
    Decimal d;
    if (x == 0) {
        strcpy(text, signbit(x) ? "-0" : "0");
        return;
    }
    for (int digits = LEAST; digits <= MOST; digits++) {
        if (!rounded(fabsf(x), digits, &d)) {
            snprintf(text, FLOAT_TEXT, "%.*g", digits, (double)x);
            if ((float)strtod(text, NULL) == x)
                return;
        } else if (reads_back(&d, fabsf(x)) || digits == MOST) {
            if (x < 0)
                *text++ = '-';
            write_decimal(text, &d);
            return;
        }
    }
}
