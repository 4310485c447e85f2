/*
 * igrt_four.h - four results of sums of bytes are scaled, quantised and stored together: what each
 * function gives is, lane by lane, what its namesake of igrt_num.h gives.
 *
 *     int32_t s0, s1, s2, s3    join, float, muladd with four scales, quantize    4 bytes, anywhere
 *     the same                  mul, mulhi, shr or shrr, clamp                4 bytes
 *
 * The right operand of those that end in _1 is one number, of all four; igrt_four_shr_i8() shifts,
 * and holds what it gives within the bounds of int8_t.
 *
 * Helium (Cortex-M55, M85) has no sums in lanes, for vmladava adds up all lanes; what is made of
 * four sums it computes at once, and stores at four addresses. Elsewhere they are loops.
 *
 * Helium takes subnormal numbers for zeros: these are what a sum is scaled by and what is added to
 * it before it is rounded to an integer, where a number so small is nothing.
 */
#ifndef IGRT_FOUR_H
#define IGRT_FOUR_H

#include "igrt_dot_wide.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)

typedef int32x4_t igrt_four_i32;
typedef float32x4_t igrt_four_f32;

IGRT_INLINE igrt_four_i32 igrt_four_join_i32(int32_t a, int32_t b, int32_t c, int32_t d)
{
    igrt_four_i32 x;
    __asm__("vmov %q0[2], %q0[0], %1, %2" : "=w"(x) : "r"(a), "r"(c));
    __asm__("vmov %q0[3], %q0[1], %1, %2" : "+w"(x) : "r"(b), "r"(d));
    return x;
}

IGRT_INLINE igrt_four_f32 igrt_four_join_f32(float a, float b, float c, float d)
{
    const igrt_four_f32 x = {a, b, c, d};
    return x;
}

#define igrt_four_splat_i32(x) vdupq_n_s32(x)
#define igrt_four_splat_f32(x) vdupq_n_f32(x)
#define igrt_four_add_i32(x, y) vaddq_s32(x, y)
#define igrt_four_sub_i32(x, y) vsubq_s32(x, y)
#define igrt_four_mul_i32(x, y) vmulq_s32(x, y)
#define igrt_four_shr_i32(x, n) vshrq_n_s32(x, n) /* n: a number from 1 to 31 */
#define igrt_four_mulhi_i32(x, y) vqrdmulhq_s32(x, y)
#define igrt_four_add_i32_1(x, y) vaddq_n_s32(x, y)
#define igrt_four_sub_i32_1(x, y) vsubq_n_s32(x, y)
#define igrt_four_mul_i32_1(x, y) vmulq_n_s32(x, y)
#define igrt_four_mulhi_i32_1(x, y) vqrdmulhq_n_s32(x, y)
#define igrt_four_shr_i8(x, n) vshrq_n_s32(vqshlq_n_s32(x, 24 - (n)), 24) /* n: up to 24 */
#define igrt_four_clamp_i32(x, lo, hi) vminq_s32(vmaxq_s32(x, vdupq_n_s32(lo)), vdupq_n_s32(hi))
#define igrt_four_float(x) vcvtq_f32_s32(x)
#define igrt_four_add_f32(x, y) vaddq_f32(x, y)
#define igrt_four_mul_f32(x, y) vmulq_f32(x, y)
#define igrt_four_muladd_f32(x, y, z) vfmaq_f32(z, x, y)

/* One less below zero, where something is shifted out, for that rounds halves up. */
IGRT_INLINE igrt_four_i32 igrt_four_shrr_i32(igrt_four_i32 x, igrt_four_i32 n)
{
    const igrt_four_i32 left = vnegq_s32(n), less = vshrq_n_s32(vandq_s32(x, left), 31);
    return vrshlq_s32(vaddq_s32(x, less), left);
}

/* The greater of a NaN and a number is the number. What is beyond 2^31 stays there. */
IGRT_INLINE igrt_four_i32 igrt_four_quantize(igrt_four_f32 x, int32_t zero, int32_t lo, int32_t hi)
{
    x = vmaxnmq_f32(x, vdupq_n_f32((float)(lo - zero)));
    return vminq_s32(vqaddq_n_s32(vcvtnq_s32_f32(x), zero), vdupq_n_s32(hi));
}

IGRT_INLINE uint32x4_t igrt_four_offsets(int b, int c, int d)
{
    const uint32x4_t at = {0, (uint32_t)b, (uint32_t)c, (uint32_t)d};
    return at;
}

IGRT_INLINE igrt_four_i32 igrt_four_load_i8(const int8_t *p, int b, int c, int d)
{
    if (b == 1 && c == 2 && d == 3)
        return vldrbq_s32(p);
    return vldrbq_gather_offset_s32(p, igrt_four_offsets(b, c, d));
}

IGRT_INLINE igrt_four_i32 igrt_four_load_u8(const uint8_t *p, int b, int c, int d)
{
    if (b == 1 && c == 2 && d == 3)
        return vreinterpretq_s32_u32(vldrbq_u32(p));
    return vreinterpretq_s32_u32(vldrbq_gather_offset_u32(p, igrt_four_offsets(b, c, d)));
}

IGRT_INLINE void igrt_four_store_i8(int8_t *p, int b, int c, int d, igrt_four_i32 x)
{
    if (b == 1 && c == 2 && d == 3)
        vstrbq_s32(p, x);
    else
        vstrbq_scatter_offset_s32(p, igrt_four_offsets(b, c, d), x);
}

#else

typedef struct igrt_four_i32 {
    int32_t at[4];
} igrt_four_i32;
typedef struct igrt_four_f32 {
    float at[4];
} igrt_four_f32;

#define IGRT_FOUR(T, TYPE)                                                       \
    IGRT_INLINE igrt_four_##T igrt_four_join_##T(TYPE a, TYPE b, TYPE c, TYPE d) \
    {                                                                            \
        const igrt_four_##T x = {{a, b, c, d}};                                  \
        return x;                                                                \
    }                                                                            \
    IGRT_INLINE igrt_four_##T igrt_four_splat_##T(TYPE x)                        \
    {                                                                            \
        return igrt_four_join_##T(x, x, x, x);                                   \
    }
IGRT_FOUR(i32, int32_t)
IGRT_FOUR(f32, float)

#define IGRT_FOUR_OF(NAME, T, OUT, EXPRESSION)                                     \
    IGRT_INLINE igrt_four_##OUT igrt_four_##NAME(igrt_four_##T x, igrt_four_##T y) \
    {                                                                              \
        igrt_four_##OUT r;                                                         \
        for (int i = 0; i < 4; i++)                                                \
            r.at[i] = EXPRESSION;                                                  \
        return r;                                                                  \
    }
IGRT_FOUR_OF(add_i32, i32, i32, igrt_add_i32(x.at[i], y.at[i]))
IGRT_FOUR_OF(sub_i32, i32, i32, igrt_sub_i32(x.at[i], y.at[i]))
IGRT_FOUR_OF(mul_i32, i32, i32, igrt_mul_i32(x.at[i], y.at[i]))
IGRT_FOUR_OF(mulhi_i32, i32, i32, igrt_mulhi_i32(x.at[i], y.at[i]))
IGRT_FOUR_OF(shrr_i32, i32, i32, igrt_shrr_i32(x.at[i], y.at[i]))
IGRT_FOUR_OF(add_f32, f32, f32, x.at[i] + y.at[i])
IGRT_FOUR_OF(mul_f32, f32, f32, x.at[i] * y.at[i])

#define igrt_four_add_i32_1(x, y) igrt_four_add_i32(x, igrt_four_splat_i32(y))
#define igrt_four_sub_i32_1(x, y) igrt_four_sub_i32(x, igrt_four_splat_i32(y))
#define igrt_four_mul_i32_1(x, y) igrt_four_mul_i32(x, igrt_four_splat_i32(y))
#define igrt_four_mulhi_i32_1(x, y) igrt_four_mulhi_i32(x, igrt_four_splat_i32(y))
#define igrt_four_shr_i8(x, n) igrt_four_clamp_i32(igrt_four_shr_i32(x, n), INT8_MIN, INT8_MAX)

IGRT_INLINE igrt_four_f32 igrt_four_float(igrt_four_i32 x)
{
    return igrt_four_join_f32((float)x.at[0], (float)x.at[1], (float)x.at[2], (float)x.at[3]);
}

IGRT_INLINE igrt_four_i32 igrt_four_shr_i32(igrt_four_i32 x, int n)
{
    for (int i = 0; i < 4; i++)
        x.at[i] = igrt_shr_i32(x.at[i], n);
    return x;
}

IGRT_INLINE igrt_four_i32 igrt_four_clamp_i32(igrt_four_i32 x, int32_t lo, int32_t hi)
{
    for (int i = 0; i < 4; i++)
        x.at[i] = igrt_clamp_i32(x.at[i], lo, hi);
    return x;
}

IGRT_INLINE igrt_four_f32 igrt_four_muladd_f32(igrt_four_f32 x, igrt_four_f32 y, igrt_four_f32 z)
{
    for (int i = 0; i < 4; i++)
        z.at[i] = igrt_muladd_f32(x.at[i], y.at[i], z.at[i]);
    return z;
}

IGRT_INLINE igrt_four_i32 igrt_four_quantize(igrt_four_f32 x, int32_t zero, int32_t lo, int32_t hi)
{
    igrt_four_i32 r;
    for (int i = 0; i < 4; i++)
        r.at[i] = igrt_quantize_f32(x.at[i], zero, lo, hi);
    return r;
}

#define IGRT_FOUR_LOAD(T, TYPE)                                                      \
    IGRT_INLINE igrt_four_i32 igrt_four_load_##T(const TYPE *p, int b, int c, int d) \
    {                                                                                \
        return igrt_four_join_i32(p[0], p[b], p[c], p[d]);                           \
    }
IGRT_FOUR_LOAD(i8, int8_t)
IGRT_FOUR_LOAD(u8, uint8_t)

IGRT_INLINE void igrt_four_store_i8(int8_t *p, int b, int c, int d, igrt_four_i32 x)
{
    p[0] = (int8_t)x.at[0];
    p[b] = (int8_t)x.at[1];
    p[c] = (int8_t)x.at[2];
    p[d] = (int8_t)x.at[3];
}

#endif

IGRT_INLINE void igrt_four_store_u8(uint8_t *p, int b, int c, int d, igrt_four_i32 x)
{
    igrt_four_store_i8((int8_t *)p, b, c, d, x);
}

#endif
