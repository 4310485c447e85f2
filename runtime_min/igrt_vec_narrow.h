/*
 * igrt_vec_narrow.h - what is narrower in memory than in lanes.
 *
 * Integers of 8 and 16 bits are widened to i32 lanes by igrt_load_<type>_i32xN;
 * igrt_store_<type>_i32xN keeps the low bits. f16 and bf16 in memory are f32 lanes; a store rounds
 * to nearest even.
 */
#ifndef IGRT_VEC_NARROW_H
#define IGRT_VEC_NARROW_H

#include "igrt_vec_f32.h"

/* Bytes to i32: gcc takes every lane for itself unless it is told the instruction. */
#define IGRT_WIDEN(T, N, p)                                            \
    IGRT_BY_SVE_##N((igrt_i32x##N)(igrt_sve_i32)IGRT_SVE_WIDEN_##T(p), \
                    __builtin_convertvector(*(const igrt_mem_##T##x##N *)(p), igrt_i32x##N))
#define IGRT_SVE_WIDEN_i8(p) svld1sb_s32(IGRT_SVE_ALL, p)
#define IGRT_SVE_WIDEN_u8(p) svld1ub_s32(IGRT_SVE_ALL, p)
#define IGRT_SVE_WIDEN_i16(p) svld1sh_s32(IGRT_SVE_ALL, p)
#define IGRT_SVE_WIDEN_u16(p) svld1uh_s32(IGRT_SVE_ALL, p)
#define IGRT_WIDEN_i16(N, p) IGRT_WIDEN(i16, N, p)
#define IGRT_WIDEN_u16(N, p) IGRT_WIDEN(u16, N, p)
#define IGRT_WIDEN_i8(N, p) IGRT_WIDEN_i8x##N(p)
#define IGRT_WIDEN_u8(N, p) IGRT_WIDEN_u8x##N(p)
#if defined(__AVX512VL__) && !defined(__clang__)
/* gcc 12 makes one instruction of bytes that are widened and a mask for the lanes, and then fails
 * ("could not split insn"): it does not see what has widened them. */
#define IGRT_WIDENED(N, H)                                  \
    IGRT_VEC igrt_i32x##N igrt_widened_i32x##N(__m##H##i v) \
    {                                                       \
        __asm__("" : "+v"(v));                              \
        return (igrt_i32x##N)v;                             \
    }
IGRT_WIDENED(4, 128)
IGRT_WIDENED(8, 256)
#define IGRT_WIDENED_4(v) igrt_widened_i32x4(v)
#define IGRT_WIDENED_8(v) igrt_widened_i32x8(v)
#else
#define IGRT_WIDENED_4(v) ((igrt_i32x4)(v))
#define IGRT_WIDENED_8(v) ((igrt_i32x8)(v))
#endif
#if defined(__SSE4_1__)
#define IGRT_WIDEN_i8x4(p) IGRT_WIDENED_4(_mm_cvtepi8_epi32(_mm_loadu_si32(p)))
#define IGRT_WIDEN_u8x4(p) IGRT_WIDENED_4(_mm_cvtepu8_epi32(_mm_loadu_si32(p)))
#elif defined(__SSE2__)
#define IGRT_BYTES(lo, hi) _mm_unpacklo_epi16(lo, _mm_unpacklo_epi8(lo, hi))
#define IGRT_WIDEN_i8x4(p) \
    ((igrt_i32x4)_mm_srai_epi32(IGRT_BYTES(_mm_setzero_si128(), _mm_loadu_si32(p)), 24))
#define IGRT_WIDEN_u8x4(p) \
    ((igrt_i32x4)_mm_srli_epi32(IGRT_BYTES(_mm_setzero_si128(), _mm_loadu_si32(p)), 24))
#else
#define IGRT_WIDEN_i8x4(p) IGRT_WIDEN(i8, 4, p)
#define IGRT_WIDEN_u8x4(p) IGRT_WIDEN(u8, 4, p)
#endif
#if defined(__AVX2__)
#define IGRT_EIGHT(p) _mm_loadl_epi64((const __m128i *)(const void *)(p))
#define IGRT_WIDEN_i8x8(p) IGRT_WIDENED_8(_mm256_cvtepi8_epi32(IGRT_EIGHT(p)))
#define IGRT_WIDEN_u8x8(p) IGRT_WIDENED_8(_mm256_cvtepu8_epi32(IGRT_EIGHT(p)))
#else
#define IGRT_WIDEN_i8x8(p) IGRT_WIDEN(i8, 8, p)
#define IGRT_WIDEN_u8x8(p) IGRT_WIDEN(u8, 8, p)
#endif
#if IGRT_HAS_16
#define IGRT_SIXTEEN(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define IGRT_WIDEN_i8x16(p) ((igrt_i32x16)_mm512_cvtepi8_epi32(IGRT_SIXTEEN(p)))
#define IGRT_WIDEN_u8x16(p) ((igrt_i32x16)_mm512_cvtepu8_epi32(IGRT_SIXTEEN(p)))
#else
#define IGRT_WIDEN_i8x16(p) IGRT_WIDEN(i8, 16, p)
#define IGRT_WIDEN_u8x16(p) IGRT_WIDEN(u8, 16, p)
#endif

/* i32 to bytes, modulo 256: the same. */
#define IGRT_KEEP(T, N, p, v)    \
    IGRT_BY_SVE_##N(             \
        IGRT_SVE_KEEP_##T(p, v), \
        (void)(*(igrt_mem_##T##x##N *)(p) = __builtin_convertvector(v, igrt_mem_##T##x##N)))
#define IGRT_SVE_KEEP_i8(p, v) svst1b_s32(IGRT_SVE_ALL, (int8_t *)(p), IGRT_SVE_I(v))
#define IGRT_SVE_KEEP_i16(p, v) svst1h_s32(IGRT_SVE_ALL, (int16_t *)(p), IGRT_SVE_I(v))
#define IGRT_SVE_KEEP_u8 IGRT_SVE_KEEP_i8
#if defined(__AVX2__) && !defined(__AVX512VL__)
/* gcc clears what is above the low bits, and packs. */
IGRT_VEC __m128i igrt_halves_i32x8(igrt_i32x8 v)
{
    const __m256i low = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13));
    return _mm256_castsi256_si128(
        _mm256_permute4x64_epi64(_mm256_shuffle_epi8((__m256i)v, low), 8));
}
#define IGRT_KEEP_i16x8(p, v) _mm_storeu_si128((__m128i *)(void *)(p), igrt_halves_i32x8(v))
#else
#define IGRT_KEEP_i16x8(p, v) IGRT_KEEP(i16, 8, p, v)
#endif
#define IGRT_KEEP_i16x4(p, v) IGRT_KEEP(i16, 4, p, v)
#define IGRT_KEEP_i16x16(p, v) IGRT_KEEP(i16, 16, p, v)
#define IGRT_KEEP_i16(N, p, v) IGRT_KEEP_i16x##N(p, v)
#define IGRT_KEEP_u16(N, p, v) IGRT_KEEP_i16x##N(p, v)
#if defined(__AVX512VL__)
/* gcc takes some of these conversions lane by lane. */
#define IGRT_KEEP_x4(p, v) _mm_storeu_si32(p, _mm_cvtepi32_epi8((__m128i)(v)))
#define IGRT_KEEP_x8(p, v) \
    _mm_storel_epi64((__m128i *)(void *)(p), _mm256_cvtepi32_epi8((__m256i)(v)))
#elif defined(__SSE2__)
IGRT_VEC __m128i igrt_bytes_i32x4(igrt_i32x4 v)
{
    const __m128i x = (__m128i)(v & 255);
    return _mm_packus_epi16(_mm_packs_epi32(x, x), x);
}
IGRT_VEC __m128i igrt_bytes_i32x8(igrt_i32x8 v)
{
    const igrt_i32x8 x = v & 255;
    const __m128i y = _mm_packs_epi32((__m128i)igrt_lo_i32x8(x), (__m128i)igrt_hi_i32x8(x));
    return _mm_packus_epi16(y, y);
}
#define IGRT_KEEP_x4(p, v) _mm_storeu_si32(p, igrt_bytes_i32x4(v))
#define IGRT_KEEP_x8(p, v) _mm_storel_epi64((__m128i *)(void *)(p), igrt_bytes_i32x8(v))
#endif
#if defined(__SSE2__)
#if IGRT_HAS_16
#define IGRT_KEEP_x16(p, v) \
    _mm_storeu_si128((__m128i *)(void *)(p), _mm512_cvtepi32_epi8((__m512i)(v)))
#else
#define IGRT_KEEP_x16(p, v) \
    (IGRT_KEEP_x8(p, igrt_lo_i32x16(v)), IGRT_KEEP_x8((p) + 8, igrt_hi_i32x16(v)))
#endif
#define IGRT_KEEP_i8(N, p, v) IGRT_KEEP_x##N(p, v)
#define IGRT_KEEP_u8(N, p, v) IGRT_KEEP_x##N(p, v)
#else
#define IGRT_KEEP_i8(N, p, v) IGRT_KEEP(i8, N, p, v)
#define IGRT_KEEP_u8(N, p, v) IGRT_KEEP(u8, N, p, v)
#endif

/* The first n lanes; the others are zero when loaded, and not stored. */
#define IGRT_NARROW_PART(T, E, HELD, N)                                                \
    IGRT_VEC igrt_##HELD##x##N igrt_load_part_##T##_##HELD##x##N(const E *p, int n)    \
    {                                                                                  \
        E t[N] = {0};                                                                  \
        memcpy(t, p, (size_t)n * sizeof(E));                                           \
        return igrt_load_##T##_##HELD##x##N(t);                                        \
    }                                                                                  \
    IGRT_VEC void igrt_store_part_##T##_##HELD##x##N(E *p, igrt_##HELD##x##N v, int n) \
    {                                                                                  \
        E t[N];                                                                        \
        igrt_store_##T##_##HELD##x##N(t, v);                                           \
        memcpy(p, t, (size_t)n * sizeof(E));                                           \
    }
#define IGRT_NARROW(T, E, N)                                                          \
    typedef E igrt_mem_##T##x##N                                                      \
        __attribute__((vector_size(sizeof(E) * (N)), aligned(sizeof(E)), may_alias)); \
    IGRT_VEC igrt_i32x##N igrt_load_##T##_i32x##N(const E *p)                         \
    {                                                                                 \
        return IGRT_WIDEN_##T(N, p);                                                  \
    }                                                                                 \
    IGRT_VEC void igrt_store_##T##_i32x##N(E *p, igrt_i32x##N v)                      \
    {                                                                                 \
        IGRT_KEEP_##T(N, p, v);                                                       \
    }                                                                                 \
    IGRT_NARROW_PART(T, E, i32, N)
#define IGRT_NARROWS(T, E) IGRT_NARROW(T, E, 4) IGRT_NARROW(T, E, 8) IGRT_NARROW(T, E, 16)
IGRT_NARROWS(i8, int8_t)
IGRT_NARROWS(u8, uint8_t)
IGRT_NARROWS(i16, int16_t)
IGRT_NARROWS(u16, uint16_t)

/* The machine's instruction does the same, but that it takes numbers below the smallest normal one
 * for zeros. */
#if defined(__AVX512BF16__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define IGRT_BF16_MACHINE(N, P, HALF, STORE)                    \
    IGRT_VEC int igrt_bf16_f32x##N(uint16_t *p, igrt_f32x##N x) \
    {                                                           \
        enum { SUBNORMAL = 0x20 };                              \
        if (P##_fpclass_ps_mask(x, SUBNORMAL))                  \
            return 0;                                           \
        STORE((HALF *)(void *)p, (HALF)P##_cvtneps_pbh(x));     \
        return 1;                                               \
    }
IGRT_BF16_MACHINE(8, _mm256, __m128i, _mm_storeu_si128)
IGRT_BF16_MACHINE(16, _mm512, __m256i, _mm256_storeu_si256)
#define IGRT_BF16_BY_MACHINE_4(x, p)
#define IGRT_BF16_BY_MACHINE_8(x, p) \
    if (igrt_bf16_f32x8(p, x))       \
        return;
#define IGRT_BF16_BY_MACHINE_16(x, p) \
    if (igrt_bf16_f32x16(p, x))       \
        return;
#define IGRT_BF16_BY_MACHINE(N, x, p) IGRT_BF16_BY_MACHINE_##N(x, p)
#else
#define IGRT_BF16_BY_MACHINE(N, x, p)
#endif

/* The nearest number of bf16, in the low half of each lane. */
#define IGRT_NEAR_BF16(N)                                                                       \
    IGRT_VEC igrt_u32x##N igrt_near_bf16_f32x##N(igrt_f32x##N x)                                \
    {                                                                                           \
        const igrt_u32x##N u = (igrt_u32x##N)x;                                                 \
        const igrt_u32x##N near = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;                         \
        const igrt_u32x##N quiet = u >> 16 | 0x40u;                                             \
        return (igrt_u32x##N)igrt_if_eq_f32x##N(x, x, (igrt_f32x##N)near, (igrt_f32x##N)quiet); \
    }
IGRT_NEAR_BF16(4)
IGRT_NEAR_BF16(8)
IGRT_NEAR_BF16(16)

#define IGRT_BF16(N)                                                                        \
    IGRT_VEC igrt_f32x##N igrt_load_bf16_f32x##N(const uint16_t *p)                         \
    {                                                                                       \
        return (igrt_f32x##N)((igrt_u32x##N)igrt_load_u16_i32x##N(p) << 16);                \
    }                                                                                       \
    IGRT_VEC void igrt_store_bf16_f32x##N(uint16_t *p, igrt_f32x##N x)                      \
    {                                                                                       \
        IGRT_BF16_BY_MACHINE(N, x, p)                                                       \
        igrt_store_u16_i32x##N(p, (igrt_i32x##N)igrt_near_bf16_f32x##N(x));                 \
    }                                                                                       \
    IGRT_VEC void igrt_store4_bf16_f32x##N(uint16_t *p, igrt_f32x##N a, igrt_f32x##N b,     \
                                           igrt_f32x##N c, igrt_f32x##N d)                  \
    {                                                                                       \
        int32_t t[2 * N]; /* two numbers each: may_alias is not for what p points to */     \
        igrt_store2_i32x##N(                                                                \
            t, (igrt_i32x##N)(igrt_near_bf16_f32x##N(a) | igrt_near_bf16_f32x##N(b) << 16), \
            (igrt_i32x##N)(igrt_near_bf16_f32x##N(c) | igrt_near_bf16_f32x##N(d) << 16));   \
        memcpy(p, t, sizeof t);                                                             \
    }
IGRT_BF16(4)
IGRT_BF16(8)
IGRT_BF16(16)

/* As igrt_f16_to_f32 and igrt_f32_to_f16, in lanes: each case is computed, and one is taken. */
#define IGRT_EITHER(m, a, b) (((m) & (a)) | (~(m) & (b)))
#define IGRT_LANES_F16(N)                                                                        \
    IGRT_VEC igrt_f32x##N igrt_load_f16_f32x##N(const uint16_t *p)                               \
    {                                                                                            \
        const igrt_i32x##N h = igrt_load_u16_i32x##N(p), e = h & 0x7c00, m = (h & 0x7fff) << 13, \
                           less = igrt_splat_i32x##N(0x38800000),                                \
                           subnormal =                                                           \
                               (igrt_i32x##N)((igrt_f32x##N)(m + less) - (igrt_f32x##N)less),    \
                           odd = 0x7f800000 | m | (((h & 0x3ff) != 0) & (1 << 22)),              \
                           x = IGRT_EITHER(e == 0, subnormal,                                    \
                                           IGRT_EITHER(e == 0x7c00, odd, m + 0x38000000));       \
        return (igrt_f32x##N)(x | (h & 0x8000) << 16);                                           \
    }                                                                                            \
    IGRT_VEC void igrt_store_f16_f32x##N(uint16_t *p, igrt_f32x##N x)                            \
    {                                                                                            \
        const igrt_i32x##N u = (igrt_i32x##N)x, a = u & 0x7fffffff,                              \
                           half = igrt_splat_i32x##N(0x3f000000),                                \
                           less = (igrt_i32x##N)((igrt_f32x##N)a + (igrt_f32x##N)half) - half,   \
                           normal = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13,              \
                           nan = 0x7e00 | (a >> 13 & 0x3ff),                                     \
                           large = IGRT_EITHER(a > 0x7f800000, nan, igrt_splat_i32x##N(0x7c00)), \
                           r = IGRT_EITHER(a < 0x38800000, less,                                 \
                                           IGRT_EITHER(a >= 0x477ff000, large, normal));         \
        igrt_store_u16_i32x##N(p, (u >> 16 & 0x8000) | r);                                       \
    }

#define IGRT_HALVES_F16(N, H)                                                             \
    IGRT_VEC igrt_f32x##N igrt_load_f16_f32x##N(const uint16_t *p)                        \
    {                                                                                     \
        return igrt_join_f32x##N(igrt_load_f16_f32x##H(p), igrt_load_f16_f32x##H(p + H)); \
    }                                                                                     \
    IGRT_VEC void igrt_store_f16_f32x##N(uint16_t *p, igrt_f32x##N x)                     \
    {                                                                                     \
        igrt_store_f16_f32x##H(p, igrt_lo_f32x##N(x));                                    \
        igrt_store_f16_f32x##H(p + H, igrt_hi_f32x##N(x));                                \
    }

#if defined(__F16C__) && defined(__AVX__)
IGRT_VEC igrt_f32x4 igrt_load_f16_f32x4(const uint16_t *p)
{
    return (igrt_f32x4)_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

IGRT_VEC void igrt_store_f16_f32x4(uint16_t *p, igrt_f32x4 x)
{
    _mm_storel_epi64((__m128i *)(void *)p, _mm_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

IGRT_VEC igrt_f32x8 igrt_load_f16_f32x8(const uint16_t *p)
{
    return (igrt_f32x8)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

IGRT_VEC void igrt_store_f16_f32x8(uint16_t *p, igrt_f32x8 x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
#else
/* f16 is the lower half of a lane. */
#define IGRT_SVE_F16(N)                                                                  \
    IGRT_VEC igrt_f32x##N igrt_load_f16_f32x##N(const uint16_t *p)                       \
    {                                                                                    \
        return (igrt_f32x##N)(igrt_sve_f32)svcvt_f32_f16_x(                              \
            IGRT_SVE_ALL, svreinterpret_f16_u32(svld1uh_u32(IGRT_SVE_ALL, p)));          \
    }                                                                                    \
    IGRT_VEC void igrt_store_f16_f32x##N(uint16_t *p, igrt_f32x##N x)                    \
    {                                                                                    \
        svst1h_u32(IGRT_SVE_ALL, p,                                                      \
                   svreinterpret_u32_f16(svcvt_f16_f32_x(IGRT_SVE_ALL, IGRT_SVE_F(x)))); \
    }
#ifdef IGRT_NEON64
IGRT_VEC igrt_f32x4 igrt_load_f16_f32x4(const uint16_t *p)
{
    return (igrt_f32x4)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

IGRT_VEC void igrt_store_f16_f32x4(uint16_t *p, igrt_f32x4 x)
{
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)x)));
}
#else
IGRT_LANES_F16(4)
#endif
IGRT_BY_SVE_8(IGRT_SVE_F16(8), IGRT_HALVES_F16(8, 4))
#endif
#if IGRT_SVE == 16
IGRT_SVE_F16(16)
#elif IGRT_HAS_16
IGRT_VEC igrt_f32x16 igrt_load_f16_f32x16(const uint16_t *p)
{
    return (igrt_f32x16)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

IGRT_VEC void igrt_store_f16_f32x16(uint16_t *p, igrt_f32x16 x)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
#else
IGRT_HALVES_F16(16, 8)
#endif

IGRT_NARROW_PART(f16, uint16_t, f32, 4)
IGRT_NARROW_PART(f16, uint16_t, f32, 8)
IGRT_NARROW_PART(f16, uint16_t, f32, 16)
IGRT_NARROW_PART(bf16, uint16_t, f32, 4)
IGRT_NARROW_PART(bf16, uint16_t, f32, 8)
IGRT_NARROW_PART(bf16, uint16_t, f32, 16)

/* igrt_store_quantized_i8_f32xN(p, x, zero, lo, hi), u8: what igrt_quantize_f32xN gives, stored.
 * Moves to bytes that saturate (x86) cut off one end of the type, and what is beyond i32, which
 * becomes its least number, at the other end or at this one: so one comparison is left. Of a NaN,
 * which is to be the least of all, igrt_above makes lo, and igrt_below keeps it as it is: -2^31. */
#if defined(__SSE2__)
#define IGRT_PLUS(N, x, zero) \
    (igrt_i32x##N)((igrt_u32x##N)igrt_nearest_f32x##N(x) + (uint32_t)(zero))
#define IGRT_NO_LESS(N) igrt_above_f32x##N(x, igrt_splat_f32x##N((float)(lo - zero)))
#define IGRT_NO_MORE(N) igrt_below_f32x##N(igrt_splat_f32x##N((float)(hi - zero)), x)
#if defined(__AVX512VL__)
#define IGRT_ABOVE_u8 1 /* beyond i32, as a number without a sign, is above all */
#define IGRT_BYTES_i8x4(v) _mm_cvtsepi32_epi8((__m128i)(v))
#define IGRT_BYTES_u8x4(v) _mm_cvtusepi32_epi8((__m128i)(v))
#define IGRT_BYTES_i8x8(v) _mm256_cvtsepi32_epi8((__m256i)(v))
#define IGRT_BYTES_u8x8(v) _mm256_cvtusepi32_epi8((__m256i)(v))
#else
#define IGRT_ABOVE_u8 0
#define IGRT_HALVES_i16x4(v) _mm_packs_epi32((__m128i)(v), (__m128i)(v))
#define IGRT_HALVES_i16x8(v) _mm_packs_epi32((__m128i)igrt_lo_i32x8(v), (__m128i)igrt_hi_i32x8(v))
#define IGRT_BYTES_i8x4(v) _mm_packs_epi16(IGRT_HALVES_i16x4(v), _mm_setzero_si128())
#define IGRT_BYTES_u8x4(v) _mm_packus_epi16(IGRT_HALVES_i16x4(v), _mm_setzero_si128())
#define IGRT_BYTES_i8x8(v) _mm_packs_epi16(IGRT_HALVES_i16x8(v), _mm_setzero_si128())
#define IGRT_BYTES_u8x8(v) _mm_packus_epi16(IGRT_HALVES_i16x8(v), _mm_setzero_si128())
#endif
#define IGRT_PUT_x4(T, p, v) _mm_storeu_si32(p, IGRT_BYTES_##T##x4(v))
#define IGRT_PUT_x8(T, p, v) _mm_storel_epi64((__m128i *)(void *)(p), IGRT_BYTES_##T##x8(v))
#define IGRT_PUT_x16(T, p, v) _mm_storeu_si128((__m128i *)(void *)(p), IGRT_BYTES_##T##x16(v))
#define IGRT_BYTES_i8x16(v) _mm512_cvtsepi32_epi8((__m512i)(v))
#define IGRT_BYTES_u8x16(v) _mm512_cvtusepi32_epi8((__m512i)(v))
#define IGRT_ABOVE_i8 (zero < 0)
#define IGRT_PUT_QUANTIZED(T, LEAST, MOST, N)                     \
    if (hi == (MOST) && IGRT_ABOVE_##T) {                         \
        IGRT_PUT_x##N(T, p, IGRT_PLUS(N, IGRT_NO_LESS(N), zero)); \
        return;                                                   \
    }                                                             \
    if (lo == (LEAST) && !IGRT_ABOVE_##T && zero >= 0) {          \
        IGRT_PUT_x##N(T, p, IGRT_PLUS(N, IGRT_NO_MORE(N), zero)); \
        return;                                                   \
    }
#define IGRT_PUT_QUANTIZED_4(T, LEAST, MOST) IGRT_PUT_QUANTIZED(T, LEAST, MOST, 4)
#else
#define IGRT_PUT_QUANTIZED_4(T, LEAST, MOST)
#endif
#if IGRT_HAS_8 && defined(__SSE2__)
#define IGRT_PUT_QUANTIZED_8(T, LEAST, MOST) IGRT_PUT_QUANTIZED(T, LEAST, MOST, 8)
#else
#define IGRT_PUT_QUANTIZED_8(T, LEAST, MOST)
#endif
#if IGRT_HAS_16 && defined(__AVX512VL__)
#define IGRT_PUT_QUANTIZED_16(T, LEAST, MOST) IGRT_PUT_QUANTIZED(T, LEAST, MOST, 16)
#else
#define IGRT_PUT_QUANTIZED_16(T, LEAST, MOST)
#endif
#define IGRT_STORE_QUANTIZED(T, E, LEAST, MOST, N)                                           \
    IGRT_VEC void igrt_store_quantized_##T##_f32x##N(E *p, igrt_f32x##N x, int zero, int lo, \
                                                     int hi)                                 \
    {                                                                                        \
        IGRT_PUT_QUANTIZED_##N(T, LEAST, MOST)                                               \
            igrt_store_##T##_i32x##N(p, igrt_quantize_f32x##N(x, zero, lo, hi));             \
    }
#define IGRT_STORES_QUANTIZED(N)                            \
    IGRT_STORE_QUANTIZED(i8, int8_t, INT8_MIN, INT8_MAX, N) \
    IGRT_STORE_QUANTIZED(u8, uint8_t, 0, UINT8_MAX, N)
IGRT_STORES_QUANTIZED(4)
IGRT_STORES_QUANTIZED(8)
IGRT_STORES_QUANTIZED(16)

#endif
