/*
 * igrt_num.h - the numbers of a model, exact and defined for every input.
 *
 * The emitted kernels call these functions, and so does the compiler's reference interpreter: that
 * is why both give the same bits. docs/numerics.md is the contract in prose. Nothing here depends
 * on compiler flags, except that -ffast-math is not supported; where the processor flushes subnormal
 * numbers (igrt.h), arithmetic and comparisons take them for zeros, and casts by bits keep them.
 *
 * A conversion from an unsigned to a signed type of the same width relies on two's complement
 * wrap, which C99 leaves to the implementation and gcc, clang and MSVC all define.
 */
#ifndef IGRT_NUM_H
#define IGRT_NUM_H

/* The same text serves C99, OpenCL C 1.2 and CUDA C++ (by NVRTC, which has no headers, or nvcc). */
#if defined(__OPENCL_C_VERSION__) || defined(__CUDACC__)
#define IGRT_ON_GPU 1
#ifdef __OPENCL_C_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef long int64_t;
typedef ulong uint64_t;
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
#define fmodf fmod
#define copysignf copysign
#define rintf rint
#define erff erf
#define logf log
#define powf pow
#define fmaf fma
#elif defined(__CUDACC_RTC__)
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT64_C(x) x##LL
#define UINT64_C(x) x##ULL
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#include <math.h>
#include <stdint.h>
#endif
#if defined(__OPENCL_C_VERSION__) || defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MAX INT64_C(9223372036854775807)
#define INT64_MIN (-INT64_MAX - 1)
#define UINT64_MAX UINT64_C(18446744073709551615)
#endif
#else
#define IGRT_ON_GPU 0
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__F16C__) && defined(__GNUC__)
#include <immintrin.h>
#endif
#endif

/* Unused ones must not warn, wherever the text ends up. */
#if defined(__CUDACC__)
#define IGRT_INLINE __attribute__((unused)) static __device__ inline
#elif defined(__GNUC__)
#define IGRT_INLINE __attribute__((unused)) static inline
#else
#define IGRT_INLINE static inline
#endif

/* ---- bits -------------------------------------------------------------------------------- */

/* The bit pattern of a float, a double, and back. */
#if defined(__OPENCL_C_VERSION__)
#define igrt_f32_bits(x) as_uint((float)(x))
#define igrt_bits_f32(u) as_float((uint)(u))
#define igrt_f64_bits(x) as_ulong((double)(x))
#define igrt_bits_f64(u) as_double((ulong)(u))
#elif defined(__CUDACC__)
#define igrt_f32_bits(x) __float_as_uint((float)(x))
#define igrt_bits_f32(u) __uint_as_float((uint32_t)(u))
#define igrt_f64_bits(x) ((uint64_t)__double_as_longlong((double)(x)))
#define igrt_bits_f64(u) __longlong_as_double((int64_t)(u))
#else
IGRT_INLINE uint32_t igrt_f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

IGRT_INLINE float igrt_bits_f32(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

IGRT_INLINE uint64_t igrt_f64_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

IGRT_INLINE double igrt_bits_f64(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}
#endif

/* ---- round to odd ------------------------------------------------------------------------ */

/*
 * Rounding to odd: an inexact result is truncated and its last bit set. f32 keeps at least two
 * more bits than any smaller float type, so rounding to odd f32 first and then to nearest gives
 * exactly what one rounding would [Boldo and Melquiond, "When double rounding is odd", 2005].
 */

/* f64 -> f32, to odd; never overflows to infinity nor underflows to zero; NaN stays NaN. */
IGRT_INLINE float igrt_f64_to_f32_odd(double x)
{
    const uint64_t b = igrt_f64_bits(x), a = b & UINT64_C(0x7fffffffffffffff);
    if (a >= UINT64_C(0x7ff0000000000000))
        return (float)x;
    if (a >= UINT64_C(0x47f0000000000000)) /* 2^128 and up */
        return igrt_bits_f32((uint32_t)(b >> 63) << 31 | 0x7f7fffffu);
    const float f = (float)x;
    uint32_t u = igrt_f32_bits(f);
    const double back = (double)f;
    if (back == x)
        return f;
    if ((igrt_f64_bits(back) & UINT64_C(0x7fffffffffffffff)) > a)
        u--;
    return igrt_bits_f32(u | 1u);
}

/* u64, i64 -> f32, to odd. */
IGRT_INLINE float igrt_u64_to_f32_odd(uint64_t x)
{
    if (x >> 53) /* so that f64 holds it; bit 11 is far below what f32 keeps */
        x = ((x >> 11) | ((x & 0x7ffu) != 0)) << 11;
    return igrt_f64_to_f32_odd((double)x);
}

IGRT_INLINE float igrt_i64_to_f32_odd(int64_t x)
{
    return x < 0 ? -igrt_u64_to_f32_odd(0u - (uint64_t)x) : igrt_u64_to_f32_odd((uint64_t)x);
}

/* ---- f16, bf16 --------------------------------------------------------------------------- */

/* f16 -> f32: exact; a NaN is made quiet and keeps its sign and payload (as F16C does). */
IGRT_INLINE float igrt_f16_to_f32(uint16_t h)
{
#if defined(__F16C__) && defined(__GNUC__) && !IGRT_ON_GPU
    return _cvtsh_ss(h);
#elif defined(__CUDA_ARCH__)
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
#else
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = h & 0x7c00u;
    uint32_t m = (uint32_t)(h & 0x7fffu) << 13;
    if (e == 0x7c00u)
        return igrt_bits_f32(sign | 0x7f800000u | m | (uint32_t)((h & 0x3ffu) != 0) << 22);
    if (e == 0) /* subnormal: m * 2^-24, through 2^-14 + m * 2^-24 - 2^-14 */
        m = igrt_f32_bits(igrt_bits_f32(m + 0x38800000u) - igrt_bits_f32(0x38800000u));
    else
        m += 0x38000000u; /* rebias: 127 - 15 */
    return igrt_bits_f32(sign | m);
#endif
}

/* f32 -> f16: nearest even, overflow to infinity; a NaN is made quiet, keeps sign and payload (on CUDA it is 0x7fff). */
IGRT_INLINE uint16_t igrt_f32_to_f16(float x)
{
#if defined(__CUDA_ARCH__)
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
#else
    const uint32_t u = igrt_f32_bits(x), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    uint32_t r;
    if (a > 0x7f800000u)
        r = 0x7e00u | (a >> 13 & 0x3ffu);
    else if (a >= 0x477ff000u) /* 65520, half way from the largest f16 to 2^16 */
        r = 0x7c00u;
    else if (a < 0x38800000u) /* below 2^-14: the sum's last bit weighs 2^-24, so it rounds */
        r = igrt_f32_bits(igrt_bits_f32(a) + 0.5f) - 0x3f000000u;
    else
        r = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;
    return (uint16_t)(sign | r);
#endif
}

/* f64 -> f16: one rounding to nearest even. */
IGRT_INLINE uint16_t igrt_f64_to_f16(double x)
{
    return igrt_f32_to_f16(igrt_f64_to_f32_odd(x));
}

/* bf16 -> f32: exact, the upper half of the bits. */
IGRT_INLINE float igrt_bf16_to_f32(uint16_t h)
{
    return igrt_bits_f32((uint32_t)h << 16);
}

/* f32 -> bf16: nearest even, overflow to infinity; a NaN is made quiet, keeps sign and payload. */
IGRT_INLINE uint16_t igrt_f32_to_bf16(float x)
{
    const uint32_t u = igrt_f32_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

/* f64 -> bf16: one rounding to nearest even. */
IGRT_INLINE uint16_t igrt_f64_to_bf16(double x)
{
    return igrt_f32_to_bf16(igrt_f64_to_f32_odd(x));
}

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

/* f8e4m3fn -> f32: exact. 1.4.3, bias 7, no infinity, NaN is S.1111.111. */
IGRT_INLINE float igrt_f8e4m3fn_to_f32(uint8_t c)
{
    const uint32_t sign = (uint32_t)(c & 0x80u) << 24;
    if ((c & 0x7fu) == 0x7fu)
        return igrt_bits_f32(sign | 0x7fc00000u);
    return igrt_bits_f32(sign | igrt_f32_bits(igrt_small_value(c & 0x7fu, 3, 7)));
}

/* f32 -> f8e4m3fn: nearest even; beyond 448 and infinity: 448 if saturate, else NaN; sign kept. */
IGRT_INLINE uint8_t igrt_f32_to_f8e4m3fn(float x, int saturate)
{
    const uint32_t u = igrt_f32_bits(x), sign = u >> 24 & 0x80u, a = u & 0x7fffffffu;
    uint32_t r = 0x7fu;
    if (a <= 0x7f800000u) {
        r = a < 0x7f800000u ? igrt_small_round(a, 3, 7) : 0x7fu;
        if (r > 0x7eu)
            r = saturate ? 0x7eu : 0x7fu;
    }
    return (uint8_t)(sign | r);
}

/* f8e4m3fnuz -> f32: exact. 1.4.3, bias 8, no infinity, no -0, NaN is 0x80. */
IGRT_INLINE float igrt_f8e4m3fnuz_to_f32(uint8_t c)
{
    if (c == 0x80u)
        return igrt_bits_f32(0x7fc00000u);
    const uint32_t sign = (uint32_t)(c & 0x80u) << 24;
    return igrt_bits_f32(sign | igrt_f32_bits(igrt_small_value(c & 0x7fu, 3, 8)));
}

/* f32 -> f8e4m3fnuz: nearest even; beyond 240 and infinity: 240 if saturate, else NaN; -0 is 0. */
IGRT_INLINE uint8_t igrt_f32_to_f8e4m3fnuz(float x, int saturate)
{
    const uint32_t u = igrt_f32_bits(x), sign = u >> 24 & 0x80u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return 0x80u;
    const uint32_t r = a < 0x7f800000u ? igrt_small_round(a, 3, 8) : 0x80u;
    if (r > 0x7fu)
        return (uint8_t)(saturate ? sign | 0x7fu : 0x80u);
    return (uint8_t)(r ? sign | r : 0u);
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
    const uint32_t u = igrt_f32_bits(x), sign = u >> 24 & 0x80u, a = u & 0x7fffffffu;
    uint32_t r = 0x7eu;
    if (a <= 0x7f800000u) {
        r = a < 0x7f800000u ? igrt_small_round(a, 2, 15) : 0x7cu;
        if (r > 0x7bu)
            r = saturate ? 0x7bu : 0x7cu;
    }
    return (uint8_t)(sign | r);
}

/* f8e5m2fnuz -> f32: exact. 1.5.2, bias 16, no infinity, no -0, NaN is 0x80. */
IGRT_INLINE float igrt_f8e5m2fnuz_to_f32(uint8_t c)
{
    if (c == 0x80u)
        return igrt_bits_f32(0x7fc00000u);
    const uint32_t sign = (uint32_t)(c & 0x80u) << 24;
    return igrt_bits_f32(sign | igrt_f32_bits(igrt_small_value(c & 0x7fu, 2, 16)));
}

/* f32 -> f8e5m2fnuz: nearest even; beyond 57344 and infinity: 57344 if saturate, else NaN;
 * -0 is 0. */
IGRT_INLINE uint8_t igrt_f32_to_f8e5m2fnuz(float x, int saturate)
{
    const uint32_t u = igrt_f32_bits(x), sign = u >> 24 & 0x80u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return 0x80u;
    const uint32_t r = a < 0x7f800000u ? igrt_small_round(a, 2, 16) : 0x80u;
    if (r > 0x7fu)
        return (uint8_t)(saturate ? sign | 0x7fu : 0x80u);
    return (uint8_t)(r ? sign | r : 0u);
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

/* ---- float -> integer -------------------------------------------------------------------- */

/* f64 -> i64, u64, i32: truncates towards zero; NaN is 0.
 * i64 and i32 saturate. u64 saturates above; a negative number goes through i64 and wraps. */
IGRT_INLINE int64_t igrt_f64_to_i64(double x)
{
    if (x >= 9223372036854775808.0)
        return INT64_MAX;
    if (x > -9223372036854775808.0)
        return (int64_t)x;
    return x != x ? 0 : INT64_MIN;
}

IGRT_INLINE uint64_t igrt_f64_to_u64(double x)
{
    if (x >= 9223372036854775808.0) {
        if (x >= 18446744073709551616.0)
            return UINT64_MAX;
        return (uint64_t)(int64_t)(x - 9223372036854775808.0) ^ UINT64_C(0x8000000000000000);
    }
    return (uint64_t)igrt_f64_to_i64(x);
}

IGRT_INLINE int32_t igrt_f64_to_i32(double x)
{
    if (x >= 2147483647.0)
        return INT32_MAX;
    if (x > -2147483649.0)
        return (int32_t)x;
    return x != x ? 0 : INT32_MIN;
}

/* The same from f32. */
IGRT_INLINE int64_t igrt_f32_to_i64(float x)
{
    if (x >= 9223372036854775808.0f)
        return INT64_MAX;
    if (x >= -9223372036854775808.0f)
        return (int64_t)x;
    return x != x ? 0 : INT64_MIN;
}

IGRT_INLINE uint64_t igrt_f32_to_u64(float x)
{
    return igrt_f64_to_u64((double)x);
}

/* Of what is known to be in range, or NaN. */
IGRT_INLINE int32_t igrt_small_f32_i32(float x)
{
    return x == x ? (int32_t)x : 0;
}

IGRT_INLINE int32_t igrt_f32_to_i32(float x)
{
    if (x >= 2147483648.0f)
        return INT32_MAX;
    if (x >= -2147483648.0f)
        return (int32_t)x;
    return x != x ? 0 : INT32_MIN;
}

/* f -> u32 and the narrow types: to i64 as above, then wrap to the low bits (what numpy gives on
 * x86-64 for every value that fits an i64). */
#define IGRT_F_TO_NARROW(T, U, F, C)     \
    IGRT_INLINE C igrt_##F##_to_##T(U x) \
    {                                    \
        return (C)igrt_##F##_to_i64(x);  \
    }
IGRT_F_TO_NARROW(i8, float, f32, int8_t)
IGRT_F_TO_NARROW(u8, float, f32, uint8_t)
IGRT_F_TO_NARROW(i16, float, f32, int16_t)
IGRT_F_TO_NARROW(u16, float, f32, uint16_t)
IGRT_F_TO_NARROW(u32, float, f32, uint32_t)
IGRT_F_TO_NARROW(i8, double, f64, int8_t)
IGRT_F_TO_NARROW(u8, double, f64, uint8_t)
IGRT_F_TO_NARROW(i16, double, f64, int16_t)
IGRT_F_TO_NARROW(u16, double, f64, uint16_t)
IGRT_F_TO_NARROW(u32, double, f64, uint32_t)
#undef IGRT_F_TO_NARROW

#define IGRT_F_TO_SUB(T, C)                       \
    IGRT_INLINE C igrt_f32_to_##T(float x)        \
    {                                             \
        return igrt_wrap_##T(igrt_f32_to_i64(x)); \
    }                                             \
    IGRT_INLINE C igrt_f64_to_##T(double x)       \
    {                                             \
        return igrt_wrap_##T(igrt_f64_to_i64(x)); \
    }
IGRT_F_TO_SUB(i4, int8_t)
IGRT_F_TO_SUB(u4, uint8_t)
IGRT_F_TO_SUB(i2, int8_t)
IGRT_F_TO_SUB(u2, uint8_t)
#undef IGRT_F_TO_SUB

/* f -> bool: 0 for either zero, else 1 (NaN too). */
IGRT_INLINE uint8_t igrt_f32_to_bool(float x)
{
    return x != 0.0f;
}

IGRT_INLINE uint8_t igrt_f64_to_bool(double x)
{
    return x != 0.0;
}

/* ---- integer arithmetic ------------------------------------------------------------------ */

/*
 * For T in i8 .. u64, C its C type, U its unsigned type, W an unsigned type that is not promoted
 * to int, so that no operation overflows a signed type:
 *
 *   add sub mul neg abs   wrap modulo 2^bits; abs(MIN) is MIN
 *   div                   truncates; x / 0 is 0; MIN / -1 is MIN
 *   floordiv              rounds down; x / 0 is 0; MIN / -1 is MIN
 *   fmod                  x - y * trunc(x / y), the sign of x (C's %); x % 0 is 0; MIN % -1 is 0
 *   mod                   x - y * floor(x / y), the sign of y (Python's %); x % 0 is 0
 *   shl                   wraps; 0 if n, read as unsigned, is the width or more
 *   shr                   arithmetic if signed; 0 if n, read as unsigned, is the width or more
 *   pow                   wraps; x^0 is 1; y < 0: 1 / x^-y truncated: 0 but for x = 1 and -1
 *   sign                  -1, 0, 1
 */
#define IGRT_INT_COMMON(T, C, U, W)                                 \
    IGRT_INLINE C igrt_add_##T(C x, C y)                            \
    {                                                               \
        return (C)(U)((W)x + (W)y);                                 \
    }                                                               \
    IGRT_INLINE C igrt_sub_##T(C x, C y)                            \
    {                                                               \
        return (C)(U)((W)x - (W)y);                                 \
    }                                                               \
    IGRT_INLINE C igrt_mul_##T(C x, C y)                            \
    {                                                               \
        return (C)(U)((W)x * (W)y);                                 \
    }                                                               \
    IGRT_INLINE C igrt_neg_##T(C x)                                 \
    {                                                               \
        return (C)(U)((W)0 - (W)x);                                 \
    }                                                               \
    IGRT_INLINE C igrt_shl_##T(C x, C n)                            \
    {                                                               \
        return (U)n < sizeof(C) * 8u ? (C)(U)((W)x << (U)n) : (C)0; \
    }                                                               \
    IGRT_INLINE C igrt_max_##T(C x, C y)                            \
    {                                                               \
        return x > y ? x : y;                                       \
    }                                                               \
    IGRT_INLINE C igrt_min_##T(C x, C y)                            \
    {                                                               \
        return x < y ? x : y;                                       \
    }                                                               \
    IGRT_INLINE C igrt_upow_##T(C x, U n)                           \
    {                                                               \
        C r = 1;                                                    \
        for (; n; n = (U)(n >> 1)) {                                \
            if (n & 1u)                                             \
                r = igrt_mul_##T(r, x);                             \
            x = igrt_mul_##T(x, x);                                 \
        }                                                           \
        return r;                                                   \
    }

#define IGRT_INT_SIGNED(T, C, U, W)                                              \
    IGRT_INT_COMMON(T, C, U, W)                                                  \
    IGRT_INLINE C igrt_abs_##T(C x)                                              \
    {                                                                            \
        return x < 0 ? igrt_neg_##T(x) : x;                                      \
    }                                                                            \
    IGRT_INLINE C igrt_sign_##T(C x)                                             \
    {                                                                            \
        return (C)((x > 0) - (x < 0));                                           \
    }                                                                            \
    IGRT_INLINE C igrt_div_##T(C x, C y)                                         \
    {                                                                            \
        return y == 0 ? (C)0 : y == -1 ? igrt_neg_##T(x) : (C)(x / y);           \
    }                                                                            \
    IGRT_INLINE C igrt_fmod_##T(C x, C y)                                        \
    {                                                                            \
        return y == 0 || y == -1 ? (C)0 : (C)(x % y);                            \
    }                                                                            \
    IGRT_INLINE C igrt_floordiv_##T(C x, C y)                                    \
    {                                                                            \
        const C q = igrt_div_##T(x, y), r = igrt_fmod_##T(x, y);                 \
        return r != 0 && (r < 0) != (y < 0) ? (C)(q - 1) : q;                    \
    }                                                                            \
    IGRT_INLINE C igrt_mod_##T(C x, C y)                                         \
    {                                                                            \
        const C r = igrt_fmod_##T(x, y);                                         \
        return r != 0 && (r < 0) != (y < 0) ? (C)(r + y) : r;                    \
    }                                                                            \
    IGRT_INLINE C igrt_shr_##T(C x, C n)                                         \
    {                                                                            \
        if ((U)n >= sizeof(C) * 8u)                                              \
            return 0;                                                            \
        return x < 0 ? (C)(U) ~(W)((W)(U) ~(W)x >> (U)n) : (C)(U)((W)x >> (U)n); \
    }                                                                            \
    IGRT_INLINE C igrt_pow_##T(C x, C y)                                         \
    {                                                                            \
        if (y >= 0)                                                              \
            return igrt_upow_##T(x, (U)y);                                       \
        return x == 1 ? (C)1 : x == -1 ? (C)(y % 2 ? -1 : 1) : (C)0;             \
    }

#define IGRT_INT_UNSIGNED(T, C, U, W)                   \
    IGRT_INT_COMMON(T, C, U, W)                         \
    IGRT_INLINE C igrt_abs_##T(C x)                     \
    {                                                   \
        return x;                                       \
    }                                                   \
    IGRT_INLINE C igrt_sign_##T(C x)                    \
    {                                                   \
        return x != 0;                                  \
    }                                                   \
    IGRT_INLINE C igrt_div_##T(C x, C y)                \
    {                                                   \
        return y == 0 ? (C)0 : (C)(x / y);              \
    }                                                   \
    IGRT_INLINE C igrt_fmod_##T(C x, C y)               \
    {                                                   \
        return y == 0 ? (C)0 : (C)(x % y);              \
    }                                                   \
    IGRT_INLINE C igrt_floordiv_##T(C x, C y)           \
    {                                                   \
        return igrt_div_##T(x, y);                      \
    }                                                   \
    IGRT_INLINE C igrt_mod_##T(C x, C y)                \
    {                                                   \
        return igrt_fmod_##T(x, y);                     \
    }                                                   \
    IGRT_INLINE C igrt_shr_##T(C x, C n)                \
    {                                                   \
        return n < sizeof(C) * 8u ? (C)(x >> n) : (C)0; \
    }                                                   \
    IGRT_INLINE C igrt_pow_##T(C x, C y)                \
    {                                                   \
        return igrt_upow_##T(x, y);                     \
    }

/* clang-format off */
IGRT_INT_SIGNED(i8, int8_t, uint8_t, uint32_t)
IGRT_INT_SIGNED(i16, int16_t, uint16_t, uint32_t)
IGRT_INT_SIGNED(i32, int32_t, uint32_t, uint32_t)
IGRT_INT_SIGNED(i64, int64_t, uint64_t, uint64_t)
IGRT_INT_UNSIGNED(u8, uint8_t, uint8_t, uint32_t)
IGRT_INT_UNSIGNED(u16, uint16_t, uint16_t, uint32_t)
IGRT_INT_UNSIGNED(u32, uint32_t, uint32_t, uint32_t)
IGRT_INT_UNSIGNED(u64, uint64_t, uint64_t, uint64_t)
/* clang-format on */
#undef IGRT_INT_COMMON
#undef IGRT_INT_SIGNED
#undef IGRT_INT_UNSIGNED

/* ---- float arithmetic -------------------------------------------------------------------- */

/* NaN if either operand is NaN; of two equal operands (0 and -0 too) the second. */
IGRT_INLINE float igrt_max_f32(float x, float y)
{
    const float z = x > y ? x : y; /* an instruction, and a branch that is rarely taken */
    return x != x ? x : z;
}

IGRT_INLINE float igrt_min_f32(float x, float y)
{
    const float z = x < y ? x : y; /* an instruction, and a branch that is rarely taken */
    return x != x ? x : z;
}

IGRT_INLINE double igrt_max_f64(double x, double y)
{
    const double z = x > y ? x : y; /* an instruction, and a branch that is rarely taken */
    return x != x ? x : z;
}

IGRT_INLINE double igrt_min_f64(double x, double y)
{
    const double z = x < y ? x : y; /* an instruction, and a branch that is rarely taken */
    return x != x ? x : z;
}

/* max(x, 0) that keeps NaN and -0. */
IGRT_INLINE float igrt_relu_f32(float x)
{
    return x < 0.0f ? 0.0f : x;
}

IGRT_INLINE double igrt_relu_f64(double x)
{
    return x < 0.0 ? 0.0 : x;
}

/* -1, 1, or x itself if it is a zero or NaN. */
IGRT_INLINE float igrt_sign_f32(float x)
{
    return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
}

IGRT_INLINE double igrt_sign_f64(double x)
{
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
}

/* To the nearest integer, ties to even; in the default rounding mode. */
IGRT_INLINE float igrt_round_f32(float x)
{
#if defined(__arm__) && !defined(__ARM_FEATURE_DIRECTED_ROUNDING) && __FLT_EVAL_METHOD__ == 0
    /* no instruction for it: what is added leaves no bits behind the point */
    const float whole = 12582912.0f, y = (x + whole) - whole;
    return fabsf(x) < 4194304.0f ? copysignf(y, x) : x;
#else
    return rintf(x);
#endif
}

/* x rounded (halves to even), moved by `zero` and held within lo..hi; 0 of a NaN.  All three are of 16 bits, with a sign or without:
 * what is clamped first is so small that an addition leaves no bits behind the point. */
IGRT_INLINE int32_t igrt_quantize_f32(float x, int32_t zero, int32_t lo, int32_t hi)
{
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__ARM_FP)
    /* as the FPU rounds, and both saturate; a NaN is 0 */
    float whole;
    int32_t y;
    __asm__("vcvtr.s32.f32 %0, %1" : "=t"(whole) : "t"(x));
    memcpy(&y, &whole, 4);
    __asm__("qadd %0, %1, %2" : "=r"(y) : "r"(y), "r"(zero));
    if (lo == -128 && hi == 127)
        __asm__("ssat %0, #8, %1" : "=r"(y) : "r"(y));
    else if (lo == 0 && hi == 255)
        __asm__("usat %0, #8, %1" : "=r"(y) : "r"(y));
    else
        y = y < lo ? lo : y > hi ? hi : y;
    return x == x ? y : 0;
#else
    const float least = (float)(lo - zero), most = (float)(hi - zero);
    float y = x > least ? x : least;
    y = y < most ? y : most;
    y = (y + 12582912.0f) - 12582912.0f;
    return x == x ? (int32_t)y + zero : 0;
#endif
}

IGRT_INLINE double igrt_round_f64(double x)
{
    return rint(x);
}

/* x - y * trunc(x / y), exact, the sign of x; NaN if y is 0 or x infinite (C's fmod). */
IGRT_INLINE float igrt_fmod_f32(float x, float y)
{
    return fmodf(x, y);
}

IGRT_INLINE double igrt_fmod_f64(double x, double y)
{
    return fmod(x, y);
}

/* x - y * floor(x / y), the sign of y, one rounding after fmod (Python's %). */
IGRT_INLINE float igrt_mod_f32(float x, float y)
{
    const float r = fmodf(x, y);
    if (r == 0.0f)
        return copysignf(0.0f, y);
    return (r < 0.0f) != (y < 0.0f) ? r + y : r;
}

IGRT_INLINE double igrt_mod_f64(double x, double y)
{
    const double r = fmod(x, y);
    if (r == 0.0)
        return copysign(0.0, y);
    return (r < 0.0) != (y < 0.0) ? r + y : r;
}

/* log and pow of the C library, which look at bits: what compares equal to zero is one, subnormal
 * numbers too where they are flushed. */
IGRT_INLINE float igrt_log_f32(float x)
{
    return x == 0.0f ? -INFINITY : logf(x);
}

IGRT_INLINE double igrt_log_f64(double x)
{
    return x == 0.0 ? -(double)INFINITY : log(x);
}

IGRT_INLINE float igrt_pow_f32(float x, float y)
{
    return powf(x == 0.0f ? copysignf(0.0f, x) : x, y);
}

IGRT_INLINE double igrt_pow_f64(double x, double y)
{
    return pow(x == 0.0 ? copysign(0.0, x) : x, y);
}

/* erf of the C library (glibc and musl: below 1 ulp). */
IGRT_INLINE float igrt_erf_f32(float x)
{
    return erff(x);
}

IGRT_INLINE double igrt_erf_f64(double x)
{
    return erf(x);
}

/* x * y + z: one rounding where the ISA has a fused multiply-add, else two. */
IGRT_INLINE float igrt_muladd_f32(float x, float y, float z)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__CUDACC__)
    return fmaf(x, y, z);
#else
    return x * y + z;
#endif
}

IGRT_INLINE double igrt_muladd_f64(double x, double y, double z)
{
#if defined(__FMA__) || defined(__aarch64__) || defined(__CUDACC__)
    return fma(x, y, z);
#else
    return x * y + z;
#endif
}

#ifndef __OPENCL_C_VERSION__
/* x / by, rounded once, of a `by` between 2^-40 and 2^40 and near = 1 / by, without the branch of a division: the error of the quotient is
 * known exactly, and corrects it [Markstein, "Computation of elementary functions on the IBM RS/6000", 1990]. */
IGRT_INLINE float igrt_quotient_f32(float x, float by, float near)
{
    const float a = fabsf(x);
    const float to = a < 8.6736174e-19f ? 1.8446744e19f : a > 1.1529215e18f ? 5.4210109e-20f : 1.0f;
    const float back = a < 8.6736174e-19f  ? 5.4210109e-20f
                       : a > 1.1529215e18f ? 1.8446744e19f
                                           : 1.0f;
    const float y = x * to,
                q = y * near; /* scaled by a power of two: nothing over- or underflows */
    const float better = fmaf(fmaf(-q, by, y), near, q);
    return (a > 0.0f && a < INFINITY ? better : q) * back;
}
#endif

#endif
