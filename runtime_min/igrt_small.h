/*
 * igrt_small.h - numbers of 8, 4 and 2 bits: small floats, and packed integers.
 */
#ifndef IGRT_SMALL_H
#define IGRT_SMALL_H

#include "igrt_bits.h"

/* ---- small floats: one generic rounding, thin wrappers ------------------------------------- */

/*
 * Rounds a finite f32 magnitude (bits a, sign clear) to nearest even in a format with mbits of
 * mantissa and the given bias, and returns exponent and mantissa as one number that just goes on
 * past the format's largest code: the caller compares with that code to find overflow.
 */
IGRT_INLINE uint32_t igrt_small_round(uint32_t a, int mbits, int bias)
{
    const int drop = 23 - mbits;
    const uint32_t min_normal = (uint32_t)(128 - bias) << 23;
    if (a >= min_normal) {
        a -= (uint32_t)(127 - bias) << 23;
        return (a + (1u << (drop - 1)) - 1u + (a >> drop & 1u)) >> drop;
    }
    /* subnormal: add a power of two whose last mantissa bit weighs what the format's last does */
    const uint32_t magic = (uint32_t)(127 + 1 - bias - mbits + 23) << 23;
    return igrt_f32_bits(igrt_bits_f32(a) + igrt_bits_f32(magic)) - magic;
}

/* The value of a finite code (sign clear) in such a format; exact. */
IGRT_INLINE float igrt_small_value(uint32_t code, int mbits, int bias)
{
    const uint32_t m = code << (23 - mbits);
    if (code >> mbits)
        return igrt_bits_f32(m + ((uint32_t)(127 - bias) << 23));
    const uint32_t min_normal = (uint32_t)(128 - bias) << 23;
    return igrt_bits_f32(m + min_normal) - igrt_bits_f32(min_normal);
}

/*
 * f32 -> such a format, with the sign on top of 8 bits: `largest` is the code of its largest value,
 * `over` what is beyond it unless values saturate, `nan` a NaN.
 */
IGRT_INLINE uint8_t igrt_small_signed(float x, int saturate, int mbits, int bias, uint32_t largest,
                                      uint32_t over, uint32_t nan)
{
    const uint32_t u = igrt_f32_bits(x), sign = u >> 24 & 0x80u, a = u & 0x7fffffffu;
    uint32_t r = nan;
    if (a <= 0x7f800000u) {
        r = a < 0x7f800000u ? igrt_small_round(a, mbits, bias) : over;
        if (r > largest)
            r = saturate ? largest : over;
    }
    return (uint8_t)(sign | r);
}

/* The same of a format without -0, whose code is that of NaN (fnuz). */
IGRT_INLINE uint8_t igrt_fnuz_round(float x, int saturate, int mbits, int bias)
{
    const uint32_t u = igrt_f32_bits(x), sign = u >> 24 & 0x80u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return 0x80u;
    const uint32_t r = a < 0x7f800000u ? igrt_small_round(a, mbits, bias) : 0x80u;
    if (r > 0x7fu)
        return (uint8_t)(saturate ? sign | 0x7fu : 0x80u);
    return (uint8_t)(r ? sign | r : 0u);
}

IGRT_INLINE float igrt_fnuz_value(uint8_t c, int mbits, int bias)
{
    if (c == 0x80u)
        return igrt_bits_f32(0x7fc00000u);
    const uint32_t sign = (uint32_t)(c & 0x80u) << 24;
    return igrt_bits_f32(sign | igrt_f32_bits(igrt_small_value(c & 0x7fu, mbits, bias)));
}

/* f8e4m3fn -> f32: exact. 1.4.3, bias 7, no infinity, NaN is S.1111.111. */
IGRT_INLINE float igrt_f8e4m3fn_to_f32(uint8_t c)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    float x;
    asm("{ .reg .b32 two; .reg .b16 low, high; cvt.rn.f16x2.e4m3x2 two, %1; mov.b32 {low, high}, "
        "two; cvt.f32.f16 %0, low; }"
        : "=f"(x)
        : "h"((uint16_t)c));
    return x;
#else
    const uint32_t sign = (uint32_t)(c & 0x80u) << 24;
    if ((c & 0x7fu) == 0x7fu)
        return igrt_bits_f32(sign | 0x7fc00000u);
    return igrt_bits_f32(sign | igrt_f32_bits(igrt_small_value(c & 0x7fu, 3, 7)));
#endif
}

/* f32 -> f8e4m3fn: nearest even; beyond 448 and infinity: 448 if saturate, else NaN; sign kept. */
IGRT_INLINE uint8_t igrt_f32_to_f8e4m3fn(float x, int saturate)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t two;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(two) : "f"(0.0f), "f"(x));
    if (saturate) /* NaN has no sign there */
        return (uint8_t)((two & 0x7fu) | (igrt_f32_bits(x) >> 24 & 0x80u));
#endif
    return igrt_small_signed(x, saturate, 3, 7, 0x7eu, 0x7fu, 0x7fu);
}

/* f8e4m3fnuz -> f32: exact. 1.4.3, bias 8, no infinity, no -0, NaN is 0x80. */
IGRT_INLINE float igrt_f8e4m3fnuz_to_f32(uint8_t c)
{
    return igrt_fnuz_value(c, 3, 8);
}

/* f32 -> f8e4m3fnuz: nearest even; beyond 240 and infinity: 240 if saturate, else NaN; -0 is 0. */
IGRT_INLINE uint8_t igrt_f32_to_f8e4m3fnuz(float x, int saturate)
{
    return igrt_fnuz_round(x, saturate, 3, 8);
}

/* f8e5m2 -> f32: exact. 1.5.2, bias 15, infinities and NaN as in f16. */
IGRT_INLINE float igrt_f8e5m2_to_f32(uint8_t c)
{
    return igrt_f16_to_f32((uint16_t)(c << 8));
}

/* f32 -> f8e5m2: nearest even; beyond 57344 and infinity: 57344 if saturate, else infinity;
 * NaN is S.11111.10. */
IGRT_INLINE uint8_t igrt_f32_to_f8e5m2(float x, int saturate)
{
    return igrt_small_signed(x, saturate, 2, 15, 0x7bu, 0x7cu, 0x7eu);
}

/* f8e5m2fnuz -> f32: exact. 1.5.2, bias 16, no infinity, no -0, NaN is 0x80. */
IGRT_INLINE float igrt_f8e5m2fnuz_to_f32(uint8_t c)
{
    return igrt_fnuz_value(c, 2, 16);
}

/* f32 -> f8e5m2fnuz: nearest even; beyond 57344 and infinity: 57344 if saturate, else NaN;
 * -0 is 0. */
IGRT_INLINE uint8_t igrt_f32_to_f8e5m2fnuz(float x, int saturate)
{
    return igrt_fnuz_round(x, saturate, 2, 16);
}

/* f8e8m0 -> f32: exact; code c is 2^(c - 127), 255 is NaN. */
IGRT_INLINE float igrt_f8e8m0_to_f32(uint8_t c)
{
    if (c == 0xffu)
        return igrt_bits_f32(0x7fc00000u);
    return igrt_bits_f32(c ? (uint32_t)c << 23 : 0x00400000u);
}

/* Rounding modes of a cast to f8e8m0 (ONNX round_mode). */
enum { IGRT_ROUND_UP = 0, IGRT_ROUND_DOWN = 1, IGRT_ROUND_NEAREST = 2 };

/*
 * f32 -> f8e8m0: the power of two that is next up, down or nearest (1.5 goes up); the sign is
 * ignored; NaN is NaN. Below 2^-127 (zero too) and above 2^127 (infinity too): the least and the
 * largest value if saturate, else NaN.
 */
IGRT_INLINE uint8_t igrt_f32_to_f8e8m0(float x, int saturate, int round_mode)
{
    const uint32_t a = igrt_f32_bits(x) & 0x7fffffffu;
    if (a > 0x7f800000u)
        return 0xffu;
    if (a < 0x00400000u)
        return saturate ? 0x00u : 0xffu;
    uint32_t e = a >> 23, m = a & 0x7fffffu;
    if (e == 0)
        m = (m & 0x3fffffu) << 1; /* 2^-127 is subnormal in f32 */
    if (round_mode == IGRT_ROUND_UP)
        e += m != 0;
    else if (round_mode == IGRT_ROUND_NEAREST)
        e += m >= 0x400000u;
    return (uint8_t)(e < 0xffu ? e : saturate ? 0xfeu : 0xffu);
}

/* f4e2m1 -> f32: exact, of the low four bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. */
IGRT_INLINE float igrt_f4e2m1_to_f32(uint8_t c)
{
    const uint32_t sign = (uint32_t)(c & 8u) << 28;
    return igrt_bits_f32(sign | igrt_f32_bits(igrt_small_value(c & 7u, 1, 1)));
}

/* f32 -> f4e2m1, low four bits: nearest even; beyond 6 and infinity: 6; the sign is kept. There is
 * no NaN: it becomes a zero of the opposite sign (as in ml_dtypes, the ONNX reference). */
IGRT_INLINE uint8_t igrt_f32_to_f4e2m1(float x)
{
    const uint32_t u = igrt_f32_bits(x), sign = u >> 28 & 8u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (uint8_t)(sign ^ 8u);
    const uint32_t r = a < 0x7f800000u ? igrt_small_round(a, 1, 1) : 7u;
    return (uint8_t)(sign | (r > 7u ? 7u : r));
}

/* f64 -> small floats: one rounding. */
IGRT_INLINE uint8_t igrt_f64_to_f8e4m3fn(double x, int saturate)
{
    return igrt_f32_to_f8e4m3fn(igrt_f64_to_f32_odd(x), saturate);
}

IGRT_INLINE uint8_t igrt_f64_to_f8e4m3fnuz(double x, int saturate)
{
    return igrt_f32_to_f8e4m3fnuz(igrt_f64_to_f32_odd(x), saturate);
}

IGRT_INLINE uint8_t igrt_f64_to_f8e5m2(double x, int saturate)
{
    return igrt_f32_to_f8e5m2(igrt_f64_to_f32_odd(x), saturate);
}

IGRT_INLINE uint8_t igrt_f64_to_f8e5m2fnuz(double x, int saturate)
{
    return igrt_f32_to_f8e5m2fnuz(igrt_f64_to_f32_odd(x), saturate);
}

IGRT_INLINE uint8_t igrt_f64_to_f8e8m0(double x, int saturate, int round_mode)
{
    return igrt_f32_to_f8e8m0(igrt_f64_to_f32_odd(x), saturate, round_mode);
}

IGRT_INLINE uint8_t igrt_f64_to_f4e2m1(double x)
{
    return igrt_f32_to_f4e2m1(igrt_f64_to_f32_odd(x));
}

/* ---- sub-byte integers ------------------------------------------------------------------- */

/* Wrap to 4 or 2 bits; one element a byte, signed ones sign-extended. */
IGRT_INLINE int8_t igrt_wrap_i4(int64_t x)
{
    return (int8_t)(((int)(x & 15) ^ 8) - 8);
}

IGRT_INLINE uint8_t igrt_wrap_u4(int64_t x)
{
    return (uint8_t)(x & 15);
}

IGRT_INLINE int8_t igrt_wrap_i2(int64_t x)
{
    return (int8_t)(((int)(x & 3) ^ 2) - 2);
}

IGRT_INLINE uint8_t igrt_wrap_u2(int64_t x)
{
    return (uint8_t)(x & 3);
}

/* Element i of packed data: the first element is in the lowest bits of a byte. */
IGRT_INLINE uint8_t igrt_get_u4(const uint8_t *p, size_t i)
{
    return (uint8_t)(p[i / 2] >> (i % 2 * 4) & 15u);
}

IGRT_INLINE int8_t igrt_get_i4(const uint8_t *p, size_t i)
{
    return igrt_wrap_i4(igrt_get_u4(p, i));
}

IGRT_INLINE uint8_t igrt_get_u2(const uint8_t *p, size_t i)
{
    return (uint8_t)(p[i / 4] >> (i % 4 * 2) & 3u);
}

IGRT_INLINE int8_t igrt_get_i2(const uint8_t *p, size_t i)
{
    return igrt_wrap_i2(igrt_get_u2(p, i));
}

/* Sets element i of packed data to the low bits of x. */
IGRT_INLINE void igrt_put_u4(uint8_t *p, size_t i, unsigned x)
{
    const unsigned s = (unsigned)(i % 2 * 4);
    p[i / 2] = (uint8_t)((p[i / 2] & ~(15u << s)) | (x & 15u) << s);
}

IGRT_INLINE void igrt_put_u2(uint8_t *p, size_t i, unsigned x)
{
    const unsigned s = (unsigned)(i % 4 * 2);
    p[i / 4] = (uint8_t)((p[i / 4] & ~(3u << s)) | (x & 3u) << s);
}

#endif
