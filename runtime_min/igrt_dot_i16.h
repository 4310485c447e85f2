/*
 * igrt_dot_i16.h - sums of two products of i16: igrt_dot_i16_i16(x, w, s) is
 *
 *     s + x[0] w[0] + x[1] w[1]                                 in i32, modulo 2^32
 *
 * and in lanes, where every lane of an i32 vector holds two numbers:
 *
 *     igrt_load_i16x2_i32xN(p)             two a lane, 2 N neighbours; of i8x2, u8x2 bytes that are
 *                                          widened
 *     igrt_splat_i16x2_i32xN(x)            the same two in all lanes; of i8x2, u8x2 alike
 *     igrt_dot_i16_i16_i32xN(x, w, s)      lane by lane what igrt_dot_i16_i16 gives
 *     igrt_dot_now_i16_i16_i32xN(x, w, s)  the same, computed before what is written next
 *     igrt_muladd_i16_i32xN(x, w, s)       s + x w of lanes that hold one number of 16 bits
 *     igrt_muladd_u16_i32xN(x, w, s)       the same where x is none below 0
 *
 * On x86 it is pmaddwd and an addition, and one instruction (vpdpwssd) with VNNI;
 * i32x4.dot_i16x8_s of WebAssembly is the same as pmaddwd. Nothing there
 * saturates: of i16 a sum of two products leaves i32 for four times -2^15 alone, which wraps as it
 * has to.
 */
#ifndef IGRT_DOT_I16_H
#define IGRT_DOT_I16_H

#include "igrt_vec_base.h"

typedef struct igrt_i16x2 {
    int16_t at[2];
} igrt_i16x2, igrt_i8x2, igrt_u8x2;

#define IGRT_LOAD2(T, E)                                      \
    IGRT_INLINE igrt_##T##x2 igrt_load_##T##x2(const void *p) \
    {                                                         \
        E t[2];                                               \
        igrt_i16x2 x;                                         \
        memcpy(t, p, sizeof t);                               \
        x.at[0] = t[0];                                       \
        x.at[1] = t[1];                                       \
        return x;                                             \
    }                                                         \
    IGRT_INLINE igrt_##T##x2 igrt_zero_##T##x2(void)          \
    {                                                         \
        const igrt_i16x2 x = {{0}};                           \
        return x;                                             \
    }
IGRT_LOAD2(i16, int16_t)
IGRT_LOAD2(i8, int8_t)
IGRT_LOAD2(u8, uint8_t)

IGRT_INLINE int32_t igrt_dot_i16_i16(igrt_i16x2 x, igrt_i16x2 w, int32_t s)
{
    return igrt_add_i32(igrt_add_i32(s, x.at[0] * w.at[0]), x.at[1] * w.at[1]);
}

/* Bytes to pairs of i16: 2 N of them. */
#define IGRT_PAIR8(p) _mm_loadl_epi64((const __m128i *)(const void *)(p))
#define IGRT_PAIR16(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define IGRT_PAIR32(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define IGRT_PAIRS_HALVES(T, N, H, p)               \
    igrt_join_i32x##N(igrt_load_##T##x2_i32x##H(p), \
                      igrt_load_##T##x2_i32x##H((const char *)(p) + 2 * (H)))
#define IGRT_PAIRS_i8x8(p) IGRT_PAIRS_HALVES(i8, 8, 4, p)
#define IGRT_PAIRS_u8x8(p) IGRT_PAIRS_HALVES(u8, 8, 4, p)
#define IGRT_PAIRS_i8x16(p) IGRT_PAIRS_HALVES(i8, 16, 8, p)
#define IGRT_PAIRS_u8x16(p) IGRT_PAIRS_HALVES(u8, 16, 8, p)
#define IGRT_DOT_I16_HALVES(N, H)                                                             \
    igrt_join_i32x##N(                                                                        \
        igrt_dot_i16_i16_i32x##H(igrt_lo_i32x##N(x), igrt_lo_i32x##N(w), igrt_lo_i32x##N(s)), \
        igrt_dot_i16_i16_i32x##H(igrt_hi_i32x##N(x), igrt_hi_i32x##N(w), igrt_hi_i32x##N(s)))
#define IGRT_DOT_I16x8 IGRT_DOT_I16_HALVES(8, 4)
#define IGRT_DOT_I16x16 IGRT_DOT_I16_HALVES(16, 8)
#define IGRT_DOT_I16_X86(N, V, P) (igrt_i32x##N) P##_add_epi32((V)s, P##_madd_epi16((V)x, (V)w))
#if defined(__SSE2__)
#define IGRT_DOT_I16x4 IGRT_DOT_I16_X86(4, __m128i, _mm)
#if defined(__SSE4_1__)
#define IGRT_PAIRS_i8x4(p) ((igrt_i32x4)_mm_cvtepi8_epi16(IGRT_PAIR8(p)))
#define IGRT_PAIRS_u8x4(p) ((igrt_i32x4)_mm_cvtepu8_epi16(IGRT_PAIR8(p)))
#else
#define IGRT_PAIRS_i8x4(p) \
    ((igrt_i32x4)_mm_srai_epi16(_mm_unpacklo_epi8(_mm_setzero_si128(), IGRT_PAIR8(p)), 8))
#define IGRT_PAIRS_u8x4(p) ((igrt_i32x4)_mm_unpacklo_epi8(IGRT_PAIR8(p), _mm_setzero_si128()))
#endif
#elif defined(__wasm_simd128__)
#define IGRT_DOT_I16x4 \
    (igrt_i32x4) wasm_i32x4_add((v128_t)s, wasm_i32x4_dot_i16x8((v128_t)x, (v128_t)w))
#define IGRT_PAIRS_i8x4(p) ((igrt_i32x4)wasm_i16x8_load8x8(p))
#define IGRT_PAIRS_u8x4(p) ((igrt_i32x4)wasm_u16x8_load8x8(p))
#else
IGRT_VEC igrt_i32x4 igrt_pairs_i32x4(const igrt_i16x2 *p)
{
    igrt_i32x4 v;
    memcpy(&v, p, sizeof v);
    return v;
}
#define IGRT_PAIRS_OF(T, p)                                             \
    igrt_pairs_i32x4((const igrt_i16x2[]){                              \
        igrt_load_##T##x2(p), igrt_load_##T##x2((const char *)(p) + 2), \
        igrt_load_##T##x2((const char *)(p) + 4), igrt_load_##T##x2((const char *)(p) + 6)})
#define IGRT_PAIRS_i8x4(p) IGRT_PAIRS_OF(i8, p)
#define IGRT_PAIRS_u8x4(p) IGRT_PAIRS_OF(u8, p)
#if defined(__aarch64__) && defined(__ARM_NEON)
#define IGRT_I16S(v) vreinterpretq_s16_s32((int32x4_t)(v))
#define IGRT_DOT_I16x4                                                                          \
    (igrt_i32x4)                                                                                \
        vaddq_s32((int32x4_t)s,                                                                 \
                  vpaddq_s32(vmull_s16(vget_low_s16(IGRT_I16S(x)), vget_low_s16(IGRT_I16S(w))), \
                             vmull_high_s16(IGRT_I16S(x), IGRT_I16S(w))))
#else
#define IGRT_LOW_I16(v) ((igrt_i32x4)((igrt_u32x4)(v) << 16) >> 16)
#define IGRT_DOT_I16x4                                                             \
    (igrt_i32x4)((igrt_u32x4)s + (igrt_u32x4)(IGRT_LOW_I16(x) * IGRT_LOW_I16(w)) + \
                 (igrt_u32x4)((x >> 16) * (w >> 16)))
#endif
#endif
#if defined(__AVX2__)
#undef IGRT_PAIRS_i8x8
#undef IGRT_PAIRS_u8x8
#undef IGRT_DOT_I16x8
#define IGRT_PAIRS_i8x8(p) ((igrt_i32x8)_mm256_cvtepi8_epi16(IGRT_PAIR16(p)))
#define IGRT_PAIRS_u8x8(p) ((igrt_i32x8)_mm256_cvtepu8_epi16(IGRT_PAIR16(p)))
#define IGRT_DOT_I16x8 IGRT_DOT_I16_X86(8, __m256i, _mm256)
#endif
#if defined(__AVX512BW__)
#undef IGRT_PAIRS_i8x16
#undef IGRT_PAIRS_u8x16
#undef IGRT_DOT_I16x16
#define IGRT_PAIRS_i8x16(p) ((igrt_i32x16)_mm512_cvtepi8_epi16(IGRT_PAIR32(p)))
#define IGRT_PAIRS_u8x16(p) ((igrt_i32x16)_mm512_cvtepu8_epi16(IGRT_PAIR32(p)))
#define IGRT_DOT_I16x16 IGRT_DOT_I16_X86(16, __m512i, _mm512)
#endif

#if defined(__AVX512VNNI__)
#undef IGRT_DOT_I16x16
#define IGRT_DOT_I16x16 (igrt_i32x16) _mm512_dpwssd_epi32((__m512i)s, (__m512i)x, (__m512i)w)
#endif
#if (defined(__AVX512VNNI__) && defined(__AVX512VL__)) || defined(__AVXVNNI__)
#undef IGRT_DOT_I16x4
#undef IGRT_DOT_I16x8
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
#define IGRT_DPWSSD(P) P##_dpwssd_epi32
#else
#define IGRT_DPWSSD(P) P##_dpwssd_avx_epi32
#endif
#define IGRT_DOT_I16x4 (igrt_i32x4) IGRT_DPWSSD(_mm)((__m128i)s, (__m128i)x, (__m128i)w)
#define IGRT_DOT_I16x8 (igrt_i32x8) IGRT_DPWSSD(_mm256)((__m256i)s, (__m256i)x, (__m256i)w)
#endif

#define IGRT_PAIRS_IN_LANES(T, E, N, LOAD)                                     \
    IGRT_VEC igrt_i32x##N igrt_load_##T##x2_i32x##N(const void *p)             \
    {                                                                          \
        return LOAD;                                                           \
    }                                                                          \
    IGRT_VEC igrt_i32x##N igrt_load_part_##T##x2_i32x##N(const void *p, int n) \
    {                                                                          \
        E t[2 * (N)] = {0};                                                    \
        memcpy(t, p, (size_t)n * 2 * sizeof(E));                               \
        return igrt_load_##T##x2_i32x##N(t);                                   \
    }                                                                          \
    IGRT_VEC igrt_i32x##N igrt_splat_##T##x2_i32x##N(igrt_##T##x2 x)           \
    {                                                                          \
        int32_t t;                                                             \
        memcpy(&t, &x, 4);                                                     \
        return igrt_splat_i32x##N(t);                                          \
    }
#define IGRT_I16_IN_LANES(N)                                                                       \
    IGRT_PAIRS_IN_LANES(i16, int16_t, N, *(const igrt_mem_i32x##N *)p)                             \
    IGRT_PAIRS_IN_LANES(i8, int8_t, N, IGRT_PAIRS_i8x##N(p))                                       \
    IGRT_PAIRS_IN_LANES(u8, uint8_t, N, IGRT_PAIRS_u8x##N(p))                                      \
    IGRT_VEC igrt_i32x##N igrt_dot_i16_i16_i32x##N(igrt_i32x##N x, igrt_i32x##N w, igrt_i32x##N s) \
    {                                                                                              \
        return IGRT_DOT_I16x##N;                                                                   \
    }                                                                                              \
    IGRT_VEC igrt_i32x##N igrt_dot_now_i16_i16_i32x##N(igrt_i32x##N x, igrt_i32x##N w,             \
                                                       igrt_i32x##N s)                             \
    {                                                                                              \
        return IGRT_NOW_##N(igrt_dot_i16_i16_i32x##N(x, w, s));                                    \
    }                                                                                              \
    IGRT_VEC igrt_i32x##N igrt_muladd_u16_i32x##N(igrt_i32x##N x, igrt_i32x##N w, igrt_i32x##N s)  \
    {                                                                                              \
        return igrt_dot_i16_i16_i32x##N(x, w, s);                                                  \
    }                                                                                              \
    IGRT_VEC igrt_i32x##N igrt_muladd_i16_i32x##N(igrt_i32x##N x, igrt_i32x##N w, igrt_i32x##N s)  \
    {                                                                                              \
        return igrt_dot_i16_i16_i32x##N(x, w & UINT16_MAX, s);                                     \
    }
IGRT_I16_IN_LANES(4)
IGRT_I16_IN_LANES(8)
IGRT_I16_IN_LANES(16)

#endif
