/*
 * igrt_dot.h - sums of four products of bytes, or two of bf16: igrt_dot_<x>_<w>(x, w, s) is
 *
 *     s + x[0] w[0] + x[1] w[1] + x[2] w[2] + x[3] w[3]         of i8 or u8 each, in i32, modulo
 *                                                               2^32
 *     (s + x[1] w[1]) + x[0] w[0]                               of bf16, in f32
 *
 * Products of bf16 are exact in f32, so each sum is rounded once: that is what vdpbf16ps gives,
 * which takes subnormal numbers for zeros.
 *
 * An igrt_i8x4 or igrt_u8x4 is four neighbours in memory, of any alignment.  Helium (Cortex-M55)
 * widens them where they are loaded, and a dot is one vmladava.  With the DSP
 * instructions of ARMv7E-M (Cortex-M4, M7) it is held as two pairs of 16 bits, bytes 0 and 2 and
 * bytes 1 and 3, and a dot is two SMLAD.  Pairs are made where they stand (volatile): a compiler
 * that makes those of later dots first has no registers left for them. OpenCL devices have dot() by
 * cl_khr_integer_dot_product, NVIDIA's GPUs dp4a.
 *
 * An igrt_i16x4 is four bytes that igrt_widen_<x>x4() has stored as 16 bits, in the order in which
 * a dot takes them (STAGE): in pairs, as ARMv7E-M holds them, one LDRD loads it.
 */
#ifndef IGRT_DOT_H
#define IGRT_DOT_H

#include "igrt_num.h"

#define IGRT_DOTS(DOT) DOT(i8, i8) DOT(i8, u8) DOT(u8, i8) DOT(u8, u8)

#if defined(__ARM_FEATURE_MVE)

/* gcc would load all operands first, and has no registers for them. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif
#include <arm_mve.h>

typedef int32x4_t igrt_i8x4;
typedef int32x4_t igrt_u8x4;

IGRT_INLINE igrt_i8x4 igrt_load_i8x4(const void *p)
{
    return vldrbq_s32((const int8_t *)p);
}

IGRT_INLINE igrt_u8x4 igrt_load_u8x4(const void *p)
{
    return vreinterpretq_s32_u32(vldrbq_u32((const uint8_t *)p));
}

typedef int32x4_t igrt_i16x4;

IGRT_INLINE igrt_i16x4 igrt_load_i16x4(const int16_t *p, int at)
{
    return vldrhq_s32(p + at);
}

#define IGRT_WIDEN4(T)                                              \
    IGRT_INLINE void igrt_widen_##T##x4(int16_t *to, const void *p) \
    {                                                               \
        vstrhq_s32(to, igrt_load_##T##x4(p));                       \
    }

#define IGRT_DOT4(X, W)                                                               \
    IGRT_INLINE int32_t igrt_dot_##X##_##W(igrt_##X##x4 x, igrt_##W##x4 w, int32_t s) \
    {                                                                                 \
        return vmladavaq_s32(s, x, w);                                                \
    }

#elif defined(__ARM_FEATURE_DSP) && defined(__thumb2__)

typedef struct igrt_i8x4 {
    int32_t even, odd;
} igrt_i8x4;
typedef igrt_i8x4 igrt_u8x4;

#define IGRT_LOAD4(T, INSTRUCTION)                                                 \
    IGRT_INLINE igrt_##T##x4 igrt_load_##T##x4(const void *p)                      \
    {                                                                              \
        int32_t four;                                                              \
        igrt_##T##x4 x;                                                            \
        memcpy(&four, p, 4);                                                       \
        __asm__ volatile(INSTRUCTION " %0, %1" : "=r"(x.even) : "r"(four));        \
        __asm__ volatile(INSTRUCTION " %0, %1, ror #8" : "=r"(x.odd) : "r"(four)); \
        return x;                                                                  \
    }
IGRT_LOAD4(i8, "sxtb16")
IGRT_LOAD4(u8, "uxtb16")

typedef igrt_i8x4 igrt_i16x4;

/* at: a constant below 512; what it is behind is aligned to 8 bytes. With -Os a call is what gcc
 * makes of it, unless it is told: both ways to load together look long. */
IGRT_INLINE __attribute__((always_inline)) igrt_i16x4 igrt_load_i16x4(const int16_t *p, int at)
{
    igrt_i16x4 x;
#if defined(__OPTIMIZE__) && !defined(__clang__)
    if (__builtin_constant_p(at)) {
        __asm__ volatile("ldrd %0, %1, [%2, %3]"
                         : "=r"(x.even), "=r"(x.odd)
                         : "r"(p), "i"(2 * at), "m"(*(const int16_t(*)[4])(p + at)));
        return x;
    }
#endif
    memcpy(&x, p + at, sizeof x);
    return x;
}

#define IGRT_WIDEN4(T)                                              \
    IGRT_INLINE void igrt_widen_##T##x4(int16_t *to, const void *p) \
    {                                                               \
        const igrt_##T##x4 x = igrt_load_##T##x4(p);                \
        memcpy(to, &x.even, 4);                                     \
        memcpy(to + 2, &x.odd, 4);                                  \
    }

IGRT_INLINE int32_t igrt_pairs(int32_t x, int32_t w, int32_t s)
{
    int32_t sum;
    __asm__ volatile("smlad %0, %1, %2, %3" : "=r"(sum) : "r"(x), "r"(w), "r"(s));
    return sum;
}

#define IGRT_DOT4(X, W)                                                               \
    IGRT_INLINE int32_t igrt_dot_##X##_##W(igrt_##X##x4 x, igrt_##W##x4 w, int32_t s) \
    {                                                                                 \
        return igrt_pairs(x.odd, w.odd, igrt_pairs(x.even, w.even, s));               \
    }

#elif defined(__OPENCL_C_VERSION__)

typedef char4 igrt_i8x4;
typedef uchar4 igrt_u8x4;
#define igrt_load_i8x4(p) vload4(0, p)
#define igrt_load_u8x4(p) vload4(0, p)
#define igrt_zero_i8x4() ((char4)(0))
#define igrt_zero_u8x4() ((uchar4)(0))

#ifdef __opencl_c_integer_dot_product_input_4x8bit
#define IGRT_DOT4(X, W)                                                               \
    IGRT_INLINE int32_t igrt_dot_##X##_##W(igrt_##X##x4 x, igrt_##W##x4 w, int32_t s) \
    {                                                                                 \
        return igrt_add_i32((int32_t)dot(x, w), s);                                   \
    }
#else
#define IGRT_DOT4(X, W)                                                               \
    IGRT_INLINE int32_t igrt_dot_##X##_##W(igrt_##X##x4 x, igrt_##W##x4 w, int32_t s) \
    {                                                                                 \
        const int4 p = convert_int4(x) * convert_int4(w);                             \
        return igrt_add_i32(s, p.x + p.y + p.z + p.w);                                \
    }
#endif

#else

typedef struct igrt_i8x4 {
#ifdef __CUDACC__
    int32_t four;
#else
    int8_t at[4];
#endif
} igrt_i8x4;
typedef struct igrt_u8x4 {
#ifdef __CUDACC__
    int32_t four;
#else
    uint8_t at[4];
#endif
} igrt_u8x4;

#define IGRT_LOAD4(T)                                         \
    IGRT_INLINE igrt_##T##x4 igrt_load_##T##x4(const void *p) \
    {                                                         \
        igrt_##T##x4 x;                                       \
        memcpy(&x, p, 4);                                     \
        return x;                                             \
    }                                                         \
    IGRT_INLINE igrt_##T##x4 igrt_zero_##T##x4(void)          \
    {                                                         \
        const igrt_##T##x4 x = {0};                           \
        return x;                                             \
    }
IGRT_LOAD4(i8)
IGRT_LOAD4(u8)

#ifdef __CUDACC__
#define IGRT_TYPE_i8 "s32"
#define IGRT_TYPE_u8 "u32"
#define IGRT_DOT4(X, W)                                                               \
    IGRT_INLINE int32_t igrt_dot_##X##_##W(igrt_##X##x4 x, igrt_##W##x4 w, int32_t s) \
    {                                                                                 \
        asm("dp4a." IGRT_TYPE_##X "." IGRT_TYPE_##W " %0, %1, %2, %0;"                \
            : "+r"(s)                                                                 \
            : "r"(x.four), "r"(w.four));                                              \
        return s;                                                                     \
    }
#else
typedef struct igrt_i16x4 {
    int16_t at[4];
} igrt_i16x4;

IGRT_INLINE igrt_i16x4 igrt_load_i16x4(const int16_t *p, int at)
{
    igrt_i16x4 x;
    memcpy(&x, p + at, sizeof x);
    return x;
}

#define IGRT_WIDEN4(T)                                              \
    IGRT_INLINE void igrt_widen_##T##x4(int16_t *to, const void *p) \
    {                                                               \
        const igrt_##T##x4 x = igrt_load_##T##x4(p);                \
        for (int i = 0; i < 4; i++)                                 \
            to[i] = x.at[i];                                        \
    }

#define IGRT_DOT4(X, W)                                                                    \
    IGRT_INLINE int32_t igrt_dot_##X##_##W(igrt_##X##x4 x, igrt_##W##x4 w, int32_t s)      \
    {                                                                                      \
        return igrt_add_i32(s, x.at[0] * w.at[0] + x.at[1] * w.at[1] + x.at[2] * w.at[2] + \
                                   x.at[3] * w.at[3]);                                     \
    }
#endif

#endif

IGRT_DOTS(IGRT_DOT4)
#ifdef IGRT_WIDEN4
IGRT_WIDEN4(i8)
IGRT_WIDEN4(u8)
typedef igrt_i16x4 igrt_widex4; /* igrt_dot_wide_<w>(): of what was widened */
IGRT_DOT4(wide, i8)
IGRT_DOT4(wide, u8)
IGRT_DOT4(i8, wide)
IGRT_DOT4(u8, wide)
IGRT_DOT4(wide, wide)
#endif
/* u7: bytes below 128, which lanes may take otherwise. */
IGRT_INLINE int32_t igrt_dot_u7_i8(igrt_u8x4 x, igrt_i8x4 w, int32_t s)
{
    return igrt_dot_u8_i8(x, w, s);
}
IGRT_INLINE int32_t igrt_dot_i8_u7(igrt_i8x4 x, igrt_u8x4 w, int32_t s)
{
    return igrt_dot_i8_u8(x, w, s);
}

#if !defined(__OPENCL_C_VERSION__) && !(defined(__ARM_FEATURE_DSP) && defined(__thumb2__))
/* Bits of four bytes: of each and the same number, or of each and another. */
#define IGRT_BITS4(NAME, EXPRESSION)                             \
    IGRT_INLINE igrt_u8x4 igrt_##NAME##_u8x4(igrt_u8x4 x, int k) \
    {                                                            \
        uint32_t a;                                              \
        memcpy(&a, &x, 4);                                       \
        a = EXPRESSION;                                          \
        memcpy(&x, &a, 4);                                       \
        return x;                                                \
    }
#define IGRT_BITS4_OF(NAME, OP)                                         \
    IGRT_BITS4(NAME, a OP((uint32_t)k * 0x01010101u))                   \
    IGRT_INLINE igrt_u8x4 igrt_##NAME##_u8x4s(igrt_u8x4 x, igrt_u8x4 y) \
    {                                                                   \
        uint32_t a, b;                                                  \
        memcpy(&a, &x, 4);                                              \
        memcpy(&b, &y, 4);                                              \
        a = a OP b;                                                     \
        memcpy(&x, &a, 4);                                              \
        return x;                                                       \
    }
IGRT_BITS4_OF(and, &)
IGRT_BITS4_OF(or, |)
IGRT_BITS4_OF(xor, ^)
IGRT_BITS4(shr, a >> k & (255u >> k) * 0x01010101u)
IGRT_BITS4(shl, a << k & (255u << k & 255) * 0x01010101u)
#endif

#ifndef __OPENCL_C_VERSION__
typedef struct igrt_bf16x2 {
    uint16_t at[2];
} igrt_bf16x2;

IGRT_INLINE igrt_bf16x2 igrt_load_bf16x2(const void *p)
{
    igrt_bf16x2 x;
    memcpy(&x, p, sizeof x);
    return x;
}

IGRT_INLINE igrt_bf16x2 igrt_zero_bf16x2(void)
{
    const igrt_bf16x2 x = {{0}};
    return x;
}

IGRT_INLINE float igrt_dot_bf16_bf16(igrt_bf16x2 x, igrt_bf16x2 w, float s)
{
    s = igrt_muladd_f32(igrt_bf16_to_f32(x.at[1]), igrt_bf16_to_f32(w.at[1]), s);
    return igrt_muladd_f32(igrt_bf16_to_f32(x.at[0]), igrt_bf16_to_f32(w.at[0]), s);
}
#endif

#endif
