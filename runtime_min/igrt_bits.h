/*
 * igrt_bits.h - the language that the numbers of a model are written in, the bits of floats,
 * rounding to odd, f16 and bf16.
 */
#ifndef IGRT_BITS_H
#define IGRT_BITS_H

/* The same text serves C99, OpenCL C 1.2, CUDA C++ (by NVRTC, which has no headers, or nvcc) and
 * HIP (igrt_amd.h comes before). */
#if defined(__OPENCL_C_VERSION__) || defined(__CUDACC__) || defined(__HIP__)
#define IGRT_ON_GPU 1
#ifdef __OPENCL_C_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef long int64_t;
typedef ulong uint64_t;
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
/* Its functions are overloaded: all of math.h that it has. */
#define acosf acos
#define acoshf acosh
#define asinf asin
#define asinhf asinh
#define atanf atan
#define atan2f atan2
#define atanhf atanh
#define cbrtf cbrt
#define ceilf ceil
#define copysignf copysign
#define cosf cos
#define coshf cosh
#define erff erf
#define erfcf erfc
#define expf exp
#define exp2f exp2
#define expm1f expm1
#define fabsf fabs
#define fdimf fdim
#define floorf floor
#define fmaf fma
#define fmaxf fmax
#define fminf fmin
#define fmodf fmod
#define frexpf frexp
#define hypotf hypot
#define ilogbf ilogb
#define ldexpf ldexp
#define lgammaf lgamma
#define logf log
#define log10f log10
#define log1pf log1p
#define log2f log2
#define logbf logb
#define modff modf
#define nextafterf nextafter
#define powf pow
#define remainderf remainder
#define remquof remquo
#define rintf rint
#define roundf round
#define sinf sin
#define sinhf sinh
#define sqrtf sqrt
#define tanf tan
#define tanhf tanh
#define tgammaf tgamma
#define truncf trunc
#elif defined(__CUDACC_RTC__) || defined(__HIP__)
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
#if defined(__OPENCL_C_VERSION__) || defined(__CUDACC_RTC__) || defined(__HIP__)
#ifdef __OPENCL_C_VERSION__
typedef char int8_t; /* as vload4() has it */
#else
typedef signed char int8_t;
#endif
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
#endif

/* Unused ones must not warn, wherever the text ends up. */
#if defined(__CUDACC__) || defined(__HIP__)
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
#elif defined(__CUDACC__) || defined(__HIP__)
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
    /* _cvtsh_ss without immintrin.h, which takes longer to read than most kernels to compile */
#ifdef __clang__ /* clang 22 no longer has the builtin */
    __fp16 x;
    memcpy(&x, &h, sizeof x);
    return (float)x;
#else
    typedef short Halves __attribute__((vector_size(16)));
    return __builtin_ia32_vcvtph2ps((Halves){(short)h})[0];
#endif
#elif defined(__aarch64__) && defined(__GNUC__) && !IGRT_ON_GPU
    __fp16 x;
    memcpy(&x, &h, sizeof x);
    return (float)x;
#elif defined(__CUDA_ARCH__)
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
#elif defined(IGRT_HALF)
    return convert_float(as_half(h));
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

/* f32 -> f16: nearest even, overflow to infinity; a NaN is made quiet, keeps sign and payload (on
 * CUDA it is 0x7fff, of --target opencl:fp16 the device's own). */
IGRT_INLINE uint16_t igrt_f32_to_f16(float x)
{
#if defined(__CUDA_ARCH__)
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
#elif defined(IGRT_HALF)
    return as_ushort(convert_half_rte(x));
#elif defined(__aarch64__) && defined(__GNUC__) && !IGRT_ON_GPU
    const __fp16 y = (__fp16)x;
    uint16_t h;
    memcpy(&h, &y, sizeof h);
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

/* f32 -> bf16: nearest even, overflow to infinity; a NaN is made quiet, keeps sign and payload, but
 * on NVIDIA, whose instruction has one NaN. */
IGRT_INLINE uint16_t igrt_f32_to_bf16(float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t two; /* a pair of them is faster than one */
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(0.0f), "f"(x));
    return (uint16_t)two;
#else
    const uint32_t u = igrt_f32_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
#endif
}

/* The same, as f32. */
IGRT_INLINE float igrt_round_bf16(float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t two; /* its upper half is bits of an f32 */
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(x), "f"(0.0f));
    return igrt_bits_f32(two);
#else
    return igrt_bf16_to_f32(igrt_f32_to_bf16(x));
#endif
}

/* Two of them, x in the lower half: one instruction. */
IGRT_INLINE uint32_t igrt_pair_bf16(float x, float y)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t two;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(y), "f"(x));
    return two;
#else
    return igrt_f32_to_bf16(x) | (uint32_t)igrt_f32_to_bf16(y) << 16;
#endif
}

IGRT_INLINE uint32_t igrt_pair_f16(float x, float y)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t two;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(y), "f"(x));
    return two;
#else
    return igrt_f32_to_f16(x) | (uint32_t)igrt_f32_to_f16(y) << 16;
#endif
}

/* f64 -> bf16: one rounding to nearest even. */
IGRT_INLINE uint16_t igrt_f64_to_bf16(double x)
{
    return igrt_f32_to_bf16(igrt_f64_to_f32_odd(x));
}

#endif
