/*
 * igrt_num.h - the numbers of a model, exact and defined for every input.
 *
 * The emitted kernels call these functions, and so does the compiler's reference interpreter: that
 * is why both give the same bits. docs/numerics.md is the contract in prose. Nothing here depends
 * on compiler flags, except that -ffast-math is not supported; where the processor flushes
 * subnormal numbers (igrt.h), arithmetic and comparisons take them for zeros, and casts by bits
 * keep them.
 *
 * A conversion from an unsigned to a signed type of the same width relies on two's complement
 * wrap, which C99 leaves to the implementation and gcc, clang and MSVC all define.
 */
#ifndef IGRT_NUM_H
#define IGRT_NUM_H

#include "igrt_small.h"

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

#define IGRT_INT_SIGNED(T, C, U, W)                                    \
    IGRT_INT_COMMON(T, C, U, W)                                        \
    IGRT_INLINE C igrt_abs_##T(C x)                                    \
    {                                                                  \
        return x < 0 ? igrt_neg_##T(x) : x;                            \
    }                                                                  \
    IGRT_INLINE C igrt_sign_##T(C x)                                   \
    {                                                                  \
        return (C)((x > 0) - (x < 0));                                 \
    }                                                                  \
    IGRT_INLINE C igrt_div_##T(C x, C y)                               \
    {                                                                  \
        return y == 0 ? (C)0 : y == -1 ? igrt_neg_##T(x) : (C)(x / y); \
    }                                                                  \
    IGRT_INLINE C igrt_fmod_##T(C x, C y)                              \
    {                                                                  \
        return y == 0 || y == -1 ? (C)0 : (C)(x % y);                  \
    }                                                                  \
    IGRT_INLINE C igrt_floordiv_##T(C x, C y)                          \
    {                                                                  \
        const C q = igrt_div_##T(x, y), r = igrt_fmod_##T(x, y);       \
        return r != 0 && (r < 0) != (y < 0) ? (C)(q - 1) : q;          \
    }                                                                  \
    IGRT_INLINE C igrt_mod_##T(C x, C y)                               \
    {                                                                  \
        const C r = igrt_fmod_##T(x, y);                               \
        return r != 0 && (r < 0) != (y < 0) ? (C)(r + y) : r;          \
    }                                                                  \
    IGRT_INLINE C igrt_shr_##T(C x, C n)                               \
    {                                                                  \
        if ((U)n >= sizeof(C) * 8u)                                    \
            return 0;                                                  \
        return x < 0 ? (C) ~(~x >> (U)n) : (C)(x >> (U)n);             \
    }                                                                  \
    IGRT_INLINE C igrt_pow_##T(C x, C y)                               \
    {                                                                  \
        if (y >= 0)                                                    \
            return igrt_upow_##T(x, (U)y);                             \
        return x == 1 ? (C)1 : x == -1 ? (C)(y % 2 ? -1 : 1) : (C)0;   \
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

/* NaN if either operand is NaN; of two equal operands (0 and -0 too) the second; on NVIDIA's GPUs 0
 * is greater than -0. */
IGRT_INLINE float igrt_max_f32(float x, float y)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(x), "f"(y));
    return most;
#else
    const float z = x > y ? x : y; /* an instruction, and a branch that is rarely taken */
    return x != x ? x : z;
#endif
}

IGRT_INLINE float igrt_min_f32(float x, float y)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float least;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(x), "f"(y));
    return least;
#else
    const float z = x < y ? x : y; /* an instruction, and a branch that is rarely taken */
    return x != x ? x : z;
#endif
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

/* x y / 2^31, rounded to nearest, halves up; of the least number twice it wraps. */
IGRT_INLINE int32_t igrt_mulhi_i32(int32_t x, int32_t y)
{
#if defined(__thumb2__) && defined(__ARM_FEATURE_DSP)
    /* The upper word of x times twice y, rounded; what doubling takes from y is x more or less.
     * Both of y are loop invariants where y is. */
    const int32_t twice = (int32_t)((uint32_t)y << 1);
    const uint32_t lost = (uint32_t)(y >> 31) - (uint32_t)(twice >> 31);
    int32_t high;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(high) : "r"(x), "r"(twice), "r"((uint32_t)x * lost));
    return high;
#elif defined(__thumb2__)
    /* twice the upper word, what is above the fraction of the lower one, and its first bit */
    const int64_t both = (int64_t)x * y;
    int32_t high = (int32_t)(both >> 32);
    uint32_t low = (uint32_t)both;
    __asm__("lsls %1, %1, #1\n\tadc %0, %0, %0\n\tadd %0, %0, %1, lsr #31"
            : "+r"(high), "+r"(low)
            :
            : "cc");
    return high;
#else
    return (int32_t)(((int64_t)x * y + 1073741824) >> 31);
#endif
}

/* The same of y from 2^30 on: twice y is 2^32 less a number below zero, whose product lacks x. */
IGRT_INLINE int32_t igrt_mulhi_half_i32(int32_t x, int32_t y)
{
#if defined(__thumb2__) && defined(__ARM_FEATURE_DSP)
    const int32_t twice = (int32_t)((uint32_t)y << 1);
    int32_t high;
    __asm__("smmlar %0, %1, %2, %1" : "=r"(high) : "r"(x), "r"(twice));
    return high;
#else
    return igrt_mulhi_i32(x, y);
#endif
}

/* The same of y from 0 to 2^30 - 1, which is doubled without loss. */
IGRT_INLINE int32_t igrt_mulhi_low_i32(int32_t x, int32_t y)
{
#if defined(__thumb2__) && defined(__ARM_FEATURE_DSP)
    int32_t high;
    __asm__("smmulr %0, %1, %2" : "=r"(high) : "r"(x), "r"(y * 2));
    return high;
#elif defined(__thumb2__) || (defined(__riscv_xlen) && __riscv_xlen == 32)
    const int64_t both = (int64_t)x * (y * 2);
    return (int32_t)(both >> 32) + (int32_t)((uint32_t)both >> 31);
#else
    return igrt_mulhi_i32(x, y);
#endif
}

/* x / 2^n, rounded to nearest, halves away from zero; 0 if n, read as unsigned, is 32 or more. The
 * least number, from which nothing can be taken, counts as the greatest. */
IGRT_INLINE int32_t igrt_shrr_i32(int32_t x, int32_t n)
{
#if defined(__thumb2__)
    /* One less below zero, with a carry; the carry is the last bit that is shifted out, if one is;
     * it is added: of n = 0 that is x again, of 32 and more 0. Shifts take a byte of n. */
    int32_t y;
    n = (uint32_t)n > 255u ? 255 : n;
    __asm__("adds %0, %1, %1, asr #31\n\tasrs %0, %0, %2\n\tadc %0, %0, #0"
            : "=&r"(y)
            : "r"(x), "r"(n)
            : "cc");
    return y;
#else
    if ((uint32_t)n - 1u >= 31u)
        return n ? 0 : x;
    x = (int32_t)((uint32_t)x - (uint32_t)(x < 0)) >> (n - 1);
    return (x >> 1) + (x & 1);
#endif
}

/* The same of n from 0 to 31. */
IGRT_INLINE int32_t igrt_shrr_word_i32(int32_t x, int32_t n)
{
#if defined(__thumb2__)
    int32_t y;
    __asm__("adds %0, %1, %1, asr #31\n\tasrs %0, %0, %2\n\tadc %0, %0, #0"
            : "=&r"(y)
            : "r"(x), "r"(n)
            : "cc");
    return y;
#else
    return igrt_shrr_i32(x, n);
#endif
}

/* x held within lo..hi, constants. The builtins are one instruction, which has room for a shift. */
IGRT_INLINE int32_t igrt_clamp_i32(int32_t x, int32_t lo, int32_t hi)
{
#if defined(__thumb2__) && (defined(__clang__) || __GNUC__ >= 10)
    if (lo == -128 && hi == 127)
        return __builtin_arm_ssat(x, 8);
    if (lo == 0 && hi == 255)
        return (int32_t)__builtin_arm_usat(x, 8);
#endif
    return x < lo ? lo : x > hi ? hi : x;
}

/* The bits of a mask, from bit `shift` on, less a number. */
IGRT_INLINE float igrt_digit_f32(uint32_t x, int shift, int mask, int less)
{
    return (float)((int32_t)(x >> shift & (uint32_t)mask) - less);
}

/* The byte of a word that a shift brings to its top, with its sign, times 2^24. */
IGRT_INLINE float igrt_top_byte_f32(int32_t x, int shift)
{
    return (float)(int32_t)((uint32_t)x << shift & 0xff000000u);
}

/* x rounded (halves to even), moved by `zero` and held within lo..hi; lo of a NaN.  All three are
 * of 16 bits, with a sign or without: what is clamped first is so small that an addition leaves no
 * bits behind the point. */
IGRT_INLINE int32_t igrt_quantize_f32(float x, int32_t zero, int32_t lo, int32_t hi)
{
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__ARM_FP)
    /* as the FPU rounds, and both saturate; a NaN is 0, and so the least number where `zero` is */
    float whole;
    int32_t y;
    __asm__("vcvtr.s32.f32 %0, %1" : "=t"(whole) : "t"(x));
    memcpy(&y, &whole, 4);
#ifndef __ARM_FEATURE_MVE
    if (lo == zero && hi - zero == 255) { /* as of what ends with a ReLU */
        __asm__("usat %0, #8, %1" : "=r"(y) : "r"(y));
        return y + zero;
    }
#endif
    __asm__("qadd %0, %1, %2" : "=r"(y) : "r"(y), "r"(zero));
    if (lo == -128 && hi == 127)
        __asm__("ssat %0, #8, %1" : "=r"(y) : "r"(y));
    else if (lo == 0 && hi == 255)
        __asm__("usat %0, #8, %1" : "=r"(y) : "r"(y));
    else
        y = y < lo ? lo : y > hi ? hi : y;
    return lo == zero || x == x ? y : lo;
#else
    const float least = (float)(lo - zero), most = (float)(hi - zero);
    float y = x > least ? x : least;
    y = y < most ? y : most;
    y = (y + 12582912.0f) - 12582912.0f;
    return (int32_t)y + zero;
#endif
}

/* The same less `zero`, as f32: what a network that goes on with it would make of the integer. */
IGRT_INLINE float igrt_quantized_f32(float x, int32_t zero, int32_t lo, int32_t hi)
{
    return (float)(igrt_quantize_f32(x, zero, lo, hi) - zero);
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

/* WebAssembly with -mrelaxed-simd: the engine chooses how often a multiply-add is rounded. Before
 * clang 16 the instructions had other numbers. */
#if defined(__wasm_relaxed_simd__)
#if !__has_builtin(__builtin_wasm_relaxed_madd_f32x4)
#error "relaxed SIMD of WebAssembly is for clang 16 and newer"
#endif
#define IGRT_RELAXED 1
typedef float igrt_relaxed __attribute__((vector_size(16)));
#endif

/* x * y + z: one rounding where the ISA has a fused multiply-add, else two. */
IGRT_INLINE float igrt_muladd_f32(float x, float y, float z)
{
#if defined(IGRT_RELAXED)
    const igrt_relaxed a = {x, x, x, x}, b = {y, y, y, y}, c = {z, z, z, z};
    return __builtin_wasm_relaxed_madd_f32x4(a, b, c)[0];
#elif defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__riscv_flen) || \
    defined(__CUDACC__) || defined(__HIP__)
    return fmaf(x, y, z);
#else
    return x * y + z;
#endif
}

/* e^x where the C library's takes data of its own and says errno (targets without an operating
 * system): that of igrt_vec_math.h, 2^n e^r, to 1.2 ulp. */
IGRT_INLINE float igrt_exp_f32(float x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: n are the low bits of the sum */
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    const float t = igrt_muladd_f32(x, 1.44269504f, magic), k = t - magic;
    float r = igrt_muladd_f32(k, -0.693359375f, x), p = 1.382261165e-03f;
    r = igrt_muladd_f32(k, 2.12194440e-4f, r);
    p = igrt_muladd_f32(p, r, 8.368839510e-03f);
    p = igrt_muladd_f32(p, r, 4.166824743e-02f);
    p = igrt_muladd_f32(p, r, 1.666651964e-01f);
    p = igrt_muladd_f32(p, r, 4.999999404e-01f);
    p = igrt_muladd_f32(p, r, 1.0f);
    p = igrt_muladd_f32(p, r, 1.0f);
    const int32_t n = x == x ? (int32_t)k : 0, low = n / 2; /* twice, for there is no 2^128 */
    return p * igrt_bits_f32((uint32_t)(low + 127) << 23) *
           igrt_bits_f32((uint32_t)(n - low + 127) << 23);
}

IGRT_INLINE double igrt_muladd_f64(double x, double y, double z)
{
#if defined(__FMA__) || defined(__aarch64__) || defined(__CUDACC__) || defined(__HIP__)
    return fma(x, y, z);
#else
    return x * y + z;
#endif
}

#ifndef __OPENCL_C_VERSION__
/* x / by of a constant `by` between 2^-40 and 2^40, without the branch of a division: high and low
 * are the two parts of 1 / by, high toward zero, so that both have one sign and zeros and
 * infinities need nothing of their own. Rounded once, but for at most a few of the 2^23
 * significands that x can have, and within one unit in the last place below 2^-100 [Brisebarre,
 * Muller, Raina, "Accelerating correctly rounded floating-point division when the divisor is known
 * in advance", 2004]. */
IGRT_INLINE float igrt_quotient_f32(float x, float high, float low)
{
    return fmaf(x, high, x * low);
}

/* erf(x) + c, for what is rounded to 16 bits: erf errs by less than 4e-7. There is no branch:
 * 1 - erf(|x|) is 2^(-|x| q(|x|)), and 0 where that is subnormal. */
IGRT_INLINE float igrt_erf_and_f32(float x, float c)
{
    const float t = fabsf(x);
    float q = 4.946040917e-06f, rest;
    q = fmaf(q, t, -8.353139856e-05f);
    q = fmaf(q, t, 2.525284945e-04f);
    q = fmaf(q, t, 2.846391173e-03f);
    q = fmaf(q, t, -3.006038256e-02f);
    q = fmaf(q, t, 1.492799819e-01f);
    q = fmaf(q, t, 9.182580709e-01f);
    q = fmaf(q, t, 1.627918601e+00f);
#if defined(__CUDA_ARCH__)
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(rest) : "f"(-(q * t)));
#else
    rest = exp2f(-(q * t));
#endif
    return x < 0.0f ? (c == 1.0f ? rest : rest + (c - 1.0f)) : c + 1.0f - rest;
}

/* e^x, for what is rounded to 16 bits: within 2^-22 + |x| 2^-23 of itself, and 0 where that is
 * subnormal. */
IGRT_INLINE float igrt_exp_near_f32(float x)
{
#if defined(__CUDA_ARCH__)
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
    return y;
#else
    return exp2f(x * 1.44269504f);
#endif
}

/* The same of x k - m, by one multiply-add: x k is far from the ends of f32. */
IGRT_INLINE float igrt_exp_near_of_f32(float x, float k, float m)
{
    const float t = fmaf(x, k * 1.44269504f, -(m * 1.44269504f));
#if defined(__CUDA_ARCH__)
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(t));
    return y;
#else
    return exp2f(t);
#endif
}

/* 1 / x of an x from 1 on, without the branch of a division: within one unit in the last place, 0
 * where the quotient would be subnormal. */
IGRT_INLINE float igrt_reciprocal_f32(float x)
{
#if defined(__CUDA_ARCH__)
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / x;
#endif
}

/* tanh(x), for what is then added to a number from 0.5 on, and rounded to 16 bits: within 4e-7. */
IGRT_INLINE float igrt_tanh_near_f32(float x)
{
#if defined(__CUDA_ARCH__)
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 2.88539008f));
    return fmaf(-2.0f, igrt_reciprocal_f32(y + 1.0f), 1.0f);
#else
    return fmaf(-2.0f, igrt_reciprocal_f32(exp2f(x * 2.88539008f) + 1.0f), 1.0f);
#endif
}
#endif

#endif
