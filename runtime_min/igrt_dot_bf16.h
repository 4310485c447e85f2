/*
 * igrt_dot_bf16.h - igrt_dot.h's products of bf16 in lanes: every lane of an i32 vector holds two.
 *
 *     igrt_load_bf16x2_i32xN(p)            two a lane, 2 N neighbours
 *     igrt_splat_bf16x2_i32xN(x)           the same two in all lanes
 *     igrt_dot_bf16_bf16_f32xN(x, w, s)    lane by lane what igrt_dot_bf16_bf16 gives: sums of f32
 *
 * AVX512-BF16 has it as one instruction (vdpbf16ps).  Elsewhere the two of a lane become lanes of
 * f32, and are multiplied and added one after the other.
 */
#ifndef IGRT_DOT_BF16_H
#define IGRT_DOT_BF16_H

#include "igrt_dot.h"
#include "igrt_vec_f32.h"

#define IGRT_PAIRS(N)                                                         \
    IGRT_VEC igrt_i32x##N igrt_load_bf16x2_i32x##N(const void *p)             \
    {                                                                         \
        return *(const igrt_mem_i32x##N *)p;                                  \
    }                                                                         \
    IGRT_VEC igrt_i32x##N igrt_load_part_bf16x2_i32x##N(const void *p, int n) \
    {                                                                         \
        int32_t t[N] = {0};                                                   \
        memcpy(t, p, (size_t)n * 4);                                          \
        return igrt_load_i32x##N(t);                                          \
    }                                                                         \
    IGRT_VEC igrt_i32x##N igrt_splat_bf16x2_i32x##N(igrt_bf16x2 x)            \
    {                                                                         \
        int32_t t;                                                            \
        memcpy(&t, &x, 4);                                                    \
        return igrt_splat_i32x##N(t);                                         \
    }
/* The second of each pair is the upper half of a lane: a f32, but for what is below it. */
#define IGRT_SECOND(N, x) ((igrt_f32x##N)((igrt_u32x##N)(x)&0xffff0000u))
#define IGRT_FIRST(N, x) ((igrt_f32x##N)((igrt_u32x##N)(x) << 16))
#define IGRT_DOT_BF16(N)                                                             \
    IGRT_VEC igrt_f32x##N igrt_dot_bf16_bf16_f32x##N(igrt_i32x##N x, igrt_i32x##N w, \
                                                     igrt_f32x##N s)                 \
    {                                                                                \
        s = igrt_muladd_f32x##N(IGRT_SECOND(N, x), IGRT_SECOND(N, w), s);            \
        return igrt_muladd_f32x##N(IGRT_FIRST(N, x), IGRT_FIRST(N, w), s);           \
    }
#define IGRT_DOT_BF16_UNIT(N, F, V, UNIT)                                            \
    IGRT_VEC igrt_f32x##N igrt_dot_bf16_bf16_f32x##N(igrt_i32x##N x, igrt_i32x##N w, \
                                                     igrt_f32x##N s)                 \
    {                                                                                \
        return (igrt_f32x##N)UNIT((F)s, (V)x, (V)w);                                 \
    }
IGRT_PAIRS(4)
IGRT_PAIRS(8)
IGRT_PAIRS(16)
#if defined(__AVX512BF16__) && defined(__AVX512VL__)
IGRT_DOT_BF16_UNIT(4, __m128, __m128bh, _mm_dpbf16_ps)
IGRT_DOT_BF16_UNIT(8, __m256, __m256bh, _mm256_dpbf16_ps)
#else
IGRT_DOT_BF16(4)
IGRT_DOT_BF16(8)
#endif
#if defined(__AVX512BF16__)
IGRT_DOT_BF16_UNIT(16, __m512, __m512bh, _mm512_dpbf16_ps)
#else
IGRT_DOT_BF16(16)
#endif

#endif
