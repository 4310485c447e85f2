/*
 * igrt_dot_vec.h - igrt_dot.h in lanes: every lane of an i32 vector holds four bytes, or a sum.
 *
 *     igrt_load_i8x4_i32xN(p)              four bytes a lane, 4 N neighbours
 *     igrt_splat_i8x4_i32xN(x)             the same four in all lanes
 *     igrt_dot_u8_i8_i32xN(x, w, s)        lane by lane what igrt_dot_u8_i8 gives
 *
 * AVX-512 VNNI and AVX-VNNI multiply u8 with i8; an i8 x with i8 w is (x + 128) w - 128 w there.
 * AVX-VNNI-INT8 multiplies bytes of any sign.
 * SSE2, AVX2 and AVX-512BW without them multiply pairs of i16 (pmaddwd): bytes 0 and 2, bytes 1 and
 * 3 of a lane, of any sign; so does WebAssembly.  Its relaxed instructions have dots of bytes with
 * a sign and bytes below 128; of others each engine may give what it likes.  NEON multiplies bytes
 * to i16; with DOTPROD it has dots of two i8 and of two u8, with I8MM of u8 and i8: without, u8 x
 * is (x - 128) + 128.
 */
#ifndef IGRT_DOT_VEC_H
#define IGRT_DOT_VEC_H

#include "igrt_dot.h"
#include "igrt_vec_base.h"

#define IGRT_FOURS(T, N)                                                       \
    IGRT_VEC igrt_i32x##N igrt_load_##T##x4_i32x##N(const void *p)             \
    {                                                                          \
        return *(const igrt_mem_i32x##N *)p;                                   \
    }                                                                          \
    IGRT_VEC igrt_i32x##N igrt_load_part_##T##x4_i32x##N(const void *p, int n) \
    {                                                                          \
        int32_t t[N] = {0};                                                    \
        memcpy(t, p, (size_t)n * 4);                                           \
        return igrt_load_i32x##N(t);                                           \
    }                                                                          \
    IGRT_VEC igrt_i32x##N igrt_splat_##T##x4_i32x##N(igrt_##T##x4 x)           \
    {                                                                          \
        int32_t t;                                                             \
        memcpy(&t, &x, 4);                                                     \
        return igrt_splat_i32x##N(t);                                          \
    }
/* x + 128 of each, as u8: igrt_dot_u8_i8 of it is the i8 dot, and 128 times the sum of the other
 * bytes. */
#define IGRT_FLIPPED(N)                                                          \
    IGRT_VEC igrt_i32x##N igrt_splat_flipped_i8x4_i32x##N(igrt_i8x4 x)           \
    {                                                                            \
        int32_t t;                                                               \
        memcpy(&t, &x, 4);                                                       \
        return igrt_splat_i32x##N(t) ^ igrt_splat_i32x##N(INT32_MIN | 0x808080); \
    }
IGRT_FLIPPED(4)
IGRT_FLIPPED(8)
IGRT_FLIPPED(16)
IGRT_FOURS(i8, 4)
IGRT_FOURS(i8, 8)
IGRT_FOURS(i8, 16)
IGRT_FOURS(u8, 4)
IGRT_FOURS(u8, 8)
IGRT_FOURS(u8, 16)

/* Bits of the bytes: of each and the same number, or of each and another. */
#define IGRT_BYTE_BITS_(N, NAME, EXPRESSION)                                \
    IGRT_VEC igrt_i32x##N igrt_##NAME##_u8x4_i32x##N(igrt_i32x##N x, int k) \
    {                                                                       \
        return (igrt_i32x##N)(EXPRESSION);                                  \
    }
#define IGRT_BYTES_OF(N, k) igrt_splat_i32x##N((int32_t)((uint32_t)(k)*0x01010101u))
#define IGRT_BYTE_BITS_OF(N, NAME, OP)                                                \
    IGRT_BYTE_BITS_(N, NAME, x OP IGRT_BYTES_OF(N, k))                                \
    IGRT_VEC igrt_i32x##N igrt_##NAME##_u8x4s_i32x##N(igrt_i32x##N x, igrt_i32x##N y) \
    {                                                                                 \
        return x OP y;                                                                \
    }
/* Moved, and some of them: one mask does both. */
#define IGRT_BYTE_DIGIT(N, NAME, MOVED, INSIDE)                                            \
    IGRT_VEC igrt_i32x##N igrt_##NAME##_and_u8x4_i32x##N(igrt_i32x##N x, int k, int digit) \
    {                                                                                      \
        const uint32_t mask = (uint32_t)digit & (INSIDE);                                  \
        return (igrt_i32x##N)(MOVED)&IGRT_BYTES_OF(N, mask);                               \
    }
#define IGRT_BYTE_BITS(N)                                                                       \
    IGRT_BYTE_BITS_OF(N, and, &)                                                                \
    IGRT_BYTE_BITS_OF(N, or, |)                                                                 \
    IGRT_BYTE_BITS_OF(N, xor, ^)                                                                \
    IGRT_BYTE_BITS_(N, shr, ((igrt_u32x##N)x >> k) & (igrt_u32x##N)IGRT_BYTES_OF(N, 255u >> k)) \
    IGRT_BYTE_BITS_(N, shl,                                                                     \
                    ((igrt_u32x##N)x << k) & (igrt_u32x##N)IGRT_BYTES_OF(N, 255u << k & 255))   \
    IGRT_BYTE_DIGIT(N, shr, (igrt_u32x##N)x >> k, 255u >> k)                                    \
    IGRT_BYTE_DIGIT(N, shl, (igrt_u32x##N)x << k, 255u << k & 255)
IGRT_BYTE_BITS(4)
IGRT_BYTE_BITS(8)
IGRT_BYTE_BITS(16)

/* Byte b of every lane. */
#define IGRT_BYTE_i8(N, x, b) ((igrt_i32x##N)((igrt_u32x##N)(x) << (24 - 8 * (b))) >> 24)
#define IGRT_BYTE_u8(N, x, b) ((igrt_i32x##N)((igrt_u32x##N)(x) >> (8 * (b))) & 255)
#define IGRT_DOT_PLAIN(X, W, N)                                                        \
    IGRT_VEC igrt_i32x##N igrt_dot_##X##_##W##_i32x##N(igrt_i32x##N x, igrt_i32x##N w, \
                                                       igrt_i32x##N s)                 \
    {                                                                                  \
        const igrt_i32x##N a = IGRT_BYTE_##X(N, x, 0) * IGRT_BYTE_##W(N, w, 0) +       \
                               IGRT_BYTE_##X(N, x, 1) * IGRT_BYTE_##W(N, w, 1);        \
        const igrt_i32x##N b = IGRT_BYTE_##X(N, x, 2) * IGRT_BYTE_##W(N, w, 2) +       \
                               IGRT_BYTE_##X(N, x, 3) * IGRT_BYTE_##W(N, w, 3);        \
        return (igrt_i32x##N)((igrt_u32x##N)s + (igrt_u32x##N)(a + b));                \
    }
#define IGRT_DOT_UNIT(N, V, UNIT)                                                                \
    IGRT_VEC igrt_i32x##N igrt_dot_u8_i8_i32x##N(igrt_i32x##N x, igrt_i32x##N w, igrt_i32x##N s) \
    {                                                                                            \
        return (igrt_i32x##N)UNIT((V)s, (V)x, (V)w);                                             \
    }                                                                                            \
    IGRT_VEC igrt_i32x##N igrt_dot_i8_u8_i32x##N(igrt_i32x##N x, igrt_i32x##N w, igrt_i32x##N s) \
    {                                                                                            \
        return igrt_dot_u8_i8_i32x##N(w, x, s);                                                  \
    }                                                                                            \
    IGRT_VEC igrt_i32x##N igrt_dot_i8_i8_i32x##N(igrt_i32x##N x, igrt_i32x##N w, igrt_i32x##N s) \
    {                                                                                            \
        const igrt_i32x##N zero = {0}, half = igrt_splat_i32x##N(INT32_MIN | 0x808080);          \
        const igrt_i32x##N more = igrt_dot_u8_i8_i32x##N(half, w, zero); /* 128 w */             \
        return (igrt_i32x##N)((igrt_u32x##N)igrt_dot_u8_i8_i32x##N(x ^ half, w, s) -             \
                              (igrt_u32x##N)more);                                               \
    }                                                                                            \
    IGRT_DOT_PLAIN(u8, u8, N)
/* By bytes of any sign: P is what names of intrinsics begin with. */
#define IGRT_DOT_ANY(X, W, N, UNIT)                                                    \
    IGRT_VEC igrt_i32x##N igrt_dot_##X##_##W##_i32x##N(igrt_i32x##N x, igrt_i32x##N w, \
                                                       igrt_i32x##N s)                 \
    {                                                                                  \
        return (igrt_i32x##N)UNIT;                                                     \
    }
#define IGRT_DOT_INT8(N, V, P)                                      \
    IGRT_DOT_ANY(i8, i8, N, P##_dpbssd_epi32((V)s, (V)x, (V)w))     \
    IGRT_DOT_ANY(u8, u8, N, P##_dpbuud_epi32((V)s, (V)x, (V)w))     \
    IGRT_DOT_ANY(u8, i8, N, P##_dpbusd_avx_epi32((V)s, (V)x, (V)w)) \
    IGRT_DOT_ANY(i8, u8, N, P##_dpbusd_avx_epi32((V)s, (V)w, (V)x))
/* By bytes of SVE: where one has no sign and the other has, x - 128 has one, and 128 w is added. */
#define IGRT_SVE_s8(x) svreinterpret_s8_s32(IGRT_SVE_I(x))
#define IGRT_SVE_u8(x) svreinterpret_u8_s32(IGRT_SVE_I(x))
#if defined(__ARM_FEATURE_SVE_MATMUL_INT8)
#define IGRT_SVE_MIXED svusdot_s32(IGRT_SVE_I(s), IGRT_SVE_u8(x), IGRT_SVE_s8(w))
#else
#define IGRT_SVE_MIXED                                                                             \
    svsub_s32_x(IGRT_SVE_ALL,                                                                      \
                svdot_s32(IGRT_SVE_I(s), IGRT_SVE_s8(x ^ (INT32_MIN | 0x808080)), IGRT_SVE_s8(w)), \
                svdot_s32(svdup_n_s32(0), svdup_n_s8(-128), IGRT_SVE_s8(w)))
#endif
#define IGRT_DOT_SVE(N)                                                                  \
    IGRT_DOT_ANY(i8, i8, N,                                                              \
                 (igrt_sve_i32)svdot_s32(IGRT_SVE_I(s), IGRT_SVE_s8(x), IGRT_SVE_s8(w))) \
    IGRT_DOT_ANY(u8, u8, N,                                                              \
                 (igrt_sve_u32)svdot_u32(IGRT_SVE_U(s), IGRT_SVE_u8(x), IGRT_SVE_u8(w))) \
    IGRT_DOT_ANY(u8, i8, N, (igrt_sve_i32)IGRT_SVE_MIXED)                                \
    IGRT_DOT_ANY(i8, u8, N, igrt_dot_u8_i8_i32x##N(w, x, s))
#define IGRT_DOTS_VEC(DOT, N) DOT(u8, i8, N) DOT(i8, u8, N) DOT(i8, i8, N) DOT(u8, u8, N)

/* By pairs of i16: P is what names of intrinsics begin with. */
#define IGRT_EVEN_i8(P, x) P##_srai_epi16(P##_slli_epi16(x, 8), 8)
#define IGRT_EVEN_u8(P, x) P##_srli_epi16(P##_slli_epi16(x, 8), 8)
#define IGRT_ODD_i8(P, x) P##_srai_epi16(x, 8)
#define IGRT_ODD_u8(P, x) P##_srli_epi16(x, 8)
#define IGRT_DOT_PAIRS(X, W, N, V, P)                                                  \
    IGRT_VEC igrt_i32x##N igrt_dot_##X##_##W##_i32x##N(igrt_i32x##N x, igrt_i32x##N w, \
                                                       igrt_i32x##N s)                 \
    {                                                                                  \
        const V even = P##_madd_epi16(IGRT_EVEN_##X(P, (V)x), IGRT_EVEN_##W(P, (V)w)), \
                odd = P##_madd_epi16(IGRT_ODD_##X(P, (V)x), IGRT_ODD_##W(P, (V)w));    \
        return (igrt_i32x##N)P##_add_epi32(P##_add_epi32(even, (V)s), odd);            \
    }
#define IGRT_DOT_SSE2(X, W, N) IGRT_DOT_PAIRS(X, W, N, __m128i, _mm)
#define IGRT_DOT_AVX2(X, W, N) IGRT_DOT_PAIRS(X, W, N, __m256i, _mm256)
#define IGRT_DOT_AVX512(X, W, N) IGRT_DOT_PAIRS(X, W, N, __m512i, _mm512)
/* The same by WebAssembly: u8 shifts as i16 without a sign, and there is none above 255. */
#define IGRT_EVEN_WASM_i8(x) wasm_i16x8_shr(wasm_i16x8_shl((v128_t)(x), 8), 8)
#define IGRT_EVEN_WASM_u8(x) wasm_v128_and((v128_t)(x), wasm_i16x8_splat(255))
#define IGRT_ODD_WASM_i8(x) wasm_i16x8_shr((v128_t)(x), 8)
#define IGRT_ODD_WASM_u8(x) wasm_u16x8_shr((v128_t)(x), 8)
#define IGRT_DOT_WASM(X, W, N)                                                                  \
    IGRT_VEC igrt_i32x4 igrt_dot_##X##_##W##_i32x4(igrt_i32x4 x, igrt_i32x4 w, igrt_i32x4 s)    \
    {                                                                                           \
        const v128_t even = wasm_i32x4_dot_i16x8(IGRT_EVEN_WASM_##X(x), IGRT_EVEN_WASM_##W(w)), \
                     odd = wasm_i32x4_dot_i16x8(IGRT_ODD_WASM_##X(x), IGRT_ODD_WASM_##W(w));    \
        return (igrt_i32x4)wasm_i32x4_add(wasm_i32x4_add(even, (v128_t)s), odd);                \
    }
/* By halves. */
#define IGRT_DOT_HALVES_(X, W, N, H)                                                               \
    IGRT_VEC igrt_i32x##N igrt_dot_##X##_##W##_i32x##N(igrt_i32x##N x, igrt_i32x##N w,             \
                                                       igrt_i32x##N s)                             \
    {                                                                                              \
        return igrt_join_i32x##N(igrt_dot_##X##_##W##_i32x##H(                                     \
                                     igrt_lo_i32x##N(x), igrt_lo_i32x##N(w), igrt_lo_i32x##N(s)),  \
                                 igrt_dot_##X##_##W##_i32x##H(                                     \
                                     igrt_hi_i32x##N(x), igrt_hi_i32x##N(w), igrt_hi_i32x##N(s))); \
    }
#define IGRT_DOT_HALVES(X, W, N) IGRT_DOT_HALVES_##N(X, W)
#define IGRT_DOT_HALVES_8(X, W) IGRT_DOT_HALVES_(X, W, 8, 4)
#define IGRT_DOT_HALVES_16(X, W) IGRT_DOT_HALVES_(X, W, 16, 8)
/* Products of bytes fit in i16, and u16 of two u8; TYPE is that of the products. */
#define IGRT_DOT_NEON(X, W, TYPE, LO, HI)                                                    \
    IGRT_VEC igrt_i32x4 igrt_dot_##X##_##W##_i32x4(igrt_i32x4 x, igrt_i32x4 w, igrt_i32x4 s) \
    {                                                                                        \
        return (igrt_i32x4)((igrt_u32x4)s +                                                  \
                            (igrt_u32x4)vpaddq_s32((int32x4_t)vpaddlq_##TYPE(LO),            \
                                                   (int32x4_t)vpaddlq_##TYPE(HI)));          \
    }

#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
IGRT_DOT_UNIT(4, __m128i, _mm_dpbusd_epi32)
IGRT_DOT_UNIT(8, __m256i, _mm256_dpbusd_epi32)
#elif defined(__AVXVNNI__) && defined(__AVXVNNIINT8__)
IGRT_DOT_INT8(4, __m128i, _mm)
IGRT_DOT_INT8(8, __m256i, _mm256)
#elif defined(__AVXVNNI__)
IGRT_DOT_UNIT(4, __m128i, _mm_dpbusd_avx_epi32)
IGRT_DOT_UNIT(8, __m256i, _mm256_dpbusd_avx_epi32)
#elif defined(__SSE2__)
IGRT_DOTS_VEC(IGRT_DOT_SSE2, 4)
#if defined(__AVX2__)
IGRT_DOTS_VEC(IGRT_DOT_AVX2, 8)
#else
IGRT_DOTS_VEC(IGRT_DOT_HALVES, 8)
#endif
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define IGRT_BYTES_s8(x) vreinterpretq_s8_s32((int32x4_t)(x))
#define IGRT_BYTES_u8(x) vreinterpretq_u8_s32((int32x4_t)(x))
#define IGRT_LOW_s16_i8(x) vmovl_s8(vget_low_s8(IGRT_BYTES_s8(x)))
#define IGRT_HIGH_s16_i8(x) vmovl_high_s8(IGRT_BYTES_s8(x))
#define IGRT_LOW_s16_u8(x) vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(IGRT_BYTES_u8(x))))
#define IGRT_HIGH_s16_u8(x) vreinterpretq_s16_u16(vmovl_high_u8(IGRT_BYTES_u8(x)))
#if defined(__ARM_FEATURE_DOTPROD)
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define IGRT_DOT_MIXED(s, x, w) vusdotq_s32(s, x, w)
#else
#define IGRT_DOT_MIXED(s, x, w)                                                   \
    vsubq_s32(vdotq_s32(s, vreinterpretq_s8_u8(veorq_u8(x, vdupq_n_u8(128))), w), \
              vdotq_s32(vdupq_n_s32(0), vdupq_n_s8(-128), w))
#endif
IGRT_VEC igrt_i32x4 igrt_dot_i8_i8_i32x4(igrt_i32x4 x, igrt_i32x4 w, igrt_i32x4 s)
{
    return (igrt_i32x4)vdotq_s32((int32x4_t)s, IGRT_BYTES_s8(x), IGRT_BYTES_s8(w));
}
IGRT_VEC igrt_i32x4 igrt_dot_u8_u8_i32x4(igrt_i32x4 x, igrt_i32x4 w, igrt_i32x4 s)
{
    return (igrt_i32x4)vdotq_u32((uint32x4_t)s, IGRT_BYTES_u8(x), IGRT_BYTES_u8(w));
}
IGRT_VEC igrt_i32x4 igrt_dot_u8_i8_i32x4(igrt_i32x4 x, igrt_i32x4 w, igrt_i32x4 s)
{
    return (igrt_i32x4)IGRT_DOT_MIXED((int32x4_t)s, IGRT_BYTES_u8(x), IGRT_BYTES_s8(w));
}
IGRT_VEC igrt_i32x4 igrt_dot_i8_u8_i32x4(igrt_i32x4 x, igrt_i32x4 w, igrt_i32x4 s)
{
    return igrt_dot_u8_i8_i32x4(w, x, s);
}
#else
IGRT_DOT_NEON(i8, i8, s16, vmull_s8(vget_low_s8(IGRT_BYTES_s8(x)), vget_low_s8(IGRT_BYTES_s8(w))),
              vmull_high_s8(IGRT_BYTES_s8(x), IGRT_BYTES_s8(w)))
IGRT_DOT_NEON(u8, u8, u16, vmull_u8(vget_low_u8(IGRT_BYTES_u8(x)), vget_low_u8(IGRT_BYTES_u8(w))),
              vmull_high_u8(IGRT_BYTES_u8(x), IGRT_BYTES_u8(w)))
IGRT_DOT_NEON(u8, i8, s16, vmulq_s16(IGRT_LOW_s16_u8(x), IGRT_LOW_s16_i8(w)),
              vmulq_s16(IGRT_HIGH_s16_u8(x), IGRT_HIGH_s16_i8(w)))
IGRT_DOT_NEON(i8, u8, s16, vmulq_s16(IGRT_LOW_s16_i8(x), IGRT_LOW_s16_u8(w)),
              vmulq_s16(IGRT_HIGH_s16_i8(x), IGRT_HIGH_s16_u8(w)))
#endif
IGRT_BY_SVE_8(IGRT_DOT_SVE(8), IGRT_DOTS_VEC(IGRT_DOT_HALVES, 8))
#elif defined(__wasm_simd128__)
IGRT_DOTS_VEC(IGRT_DOT_WASM, 4)
IGRT_DOTS_VEC(IGRT_DOT_HALVES, 8)
#else
IGRT_DOTS_VEC(IGRT_DOT_PLAIN, 4)
IGRT_DOTS_VEC(IGRT_DOT_PLAIN, 8)
#endif
#if IGRT_SVE == 16
IGRT_DOT_SVE(16)
#elif defined(__AVX512VNNI__)
IGRT_DOT_UNIT(16, __m512i, _mm512_dpbusd_epi32)
#elif defined(__AVX512BW__)
IGRT_DOTS_VEC(IGRT_DOT_AVX512, 16)
#elif defined(__SSE2__) || (defined(__aarch64__) && defined(__ARM_NEON)) || \
    defined(__wasm_simd128__)
IGRT_DOTS_VEC(IGRT_DOT_HALVES, 16)
#else
IGRT_DOTS_VEC(IGRT_DOT_PLAIN, 16)
#endif

/* Of bytes below 128 and bytes with a sign: pairs of products fit in i16, which AVX2 adds at once
 * (pmaddubsw). */
#define IGRT_DOT_SMALL(N, SUM)                                                                   \
    IGRT_VEC igrt_i32x##N igrt_dot_u7_i8_i32x##N(igrt_i32x##N x, igrt_i32x##N w, igrt_i32x##N s) \
    {                                                                                            \
        return SUM;                                                                              \
    }                                                                                            \
    IGRT_VEC igrt_i32x##N igrt_dot_i8_u7_i32x##N(igrt_i32x##N x, igrt_i32x##N w, igrt_i32x##N s) \
    {                                                                                            \
        return igrt_dot_u7_i8_i32x##N(w, x, s);                                                  \
    }
#define IGRT_DOT_SMALL_PAIRS(N, V, P)              \
    IGRT_DOT_SMALL(N, (igrt_i32x##N)P##_add_epi32( \
                          (V)s, P##_madd_epi16(P##_maddubs_epi16((V)x, (V)w), P##_set1_epi16(1))))
#if defined(__AVX2__) && !defined(__AVXVNNI__) && \
    !(defined(__AVX512VNNI__) && defined(__AVX512VL__))
IGRT_DOT_SMALL_PAIRS(4, __m128i, _mm)
IGRT_DOT_SMALL_PAIRS(8, __m256i, _mm256)
#elif defined(IGRT_RELAXED)
typedef signed char igrt_bytes __attribute__((vector_size(16)));
IGRT_DOT_SMALL(4, (igrt_i32x4)__builtin_wasm_relaxed_dot_i8x16_i7x16_add_s_i32x4((igrt_bytes)w,
                                                                                 (igrt_bytes)x, s))
IGRT_DOT_SMALL(
    8, igrt_join_i32x8(igrt_dot_u7_i8_i32x4(igrt_lo_i32x8(x), igrt_lo_i32x8(w), igrt_lo_i32x8(s)),
                       igrt_dot_u7_i8_i32x4(igrt_hi_i32x8(x), igrt_hi_i32x8(w), igrt_hi_i32x8(s))))
#else
IGRT_DOT_SMALL(4, igrt_dot_u8_i8_i32x4(x, w, s))
IGRT_DOT_SMALL(8, igrt_dot_u8_i8_i32x8(x, w, s))
#endif
#if defined(__AVX512BW__) && !defined(__AVX512VNNI__)
IGRT_DOT_SMALL_PAIRS(16, __m512i, _mm512)
#else
IGRT_DOT_SMALL(16, igrt_dot_u8_i8_i32x16(x, w, s))
#endif

/* Of so few bits that several pairs of products add up within i16: they become i32 once for all.
 *
 *     igrt_pairs_u7_i8_i32xN(x, w)           products of a dot, in whatever lanes they are added
 *     igrt_pairs_more_u7_i8_i32xN(x, w, p)   the same, added to others
 *     igrt_pairs_sum_i32xN(p, s)             lane by lane what dots would have added to s */
#define IGRT_DOT_PAIR_SUMS(N, PRODUCTS, MORE, SUM)                                      \
    IGRT_VEC igrt_i32x##N igrt_pairs_u7_i8_i32x##N(igrt_i32x##N x, igrt_i32x##N w)      \
    {                                                                                   \
        return PRODUCTS;                                                                \
    }                                                                                   \
    IGRT_VEC igrt_i32x##N igrt_pairs_more_u7_i8_i32x##N(igrt_i32x##N x, igrt_i32x##N w, \
                                                        igrt_i32x##N p)                 \
    {                                                                                   \
        return MORE;                                                                    \
    }                                                                                   \
    IGRT_VEC igrt_i32x##N igrt_pairs_i8_u7_i32x##N(igrt_i32x##N x, igrt_i32x##N w)      \
    {                                                                                   \
        return igrt_pairs_u7_i8_i32x##N(w, x);                                          \
    }                                                                                   \
    IGRT_VEC igrt_i32x##N igrt_pairs_more_i8_u7_i32x##N(igrt_i32x##N x, igrt_i32x##N w, \
                                                        igrt_i32x##N p)                 \
    {                                                                                   \
        return igrt_pairs_more_u7_i8_i32x##N(w, x, p);                                  \
    }                                                                                   \
    IGRT_VEC igrt_i32x##N igrt_pairs_sum_i32x##N(igrt_i32x##N p, igrt_i32x##N s)        \
    {                                                                                   \
        return SUM;                                                                     \
    }
#define IGRT_DOT_PAIRS_16(N, V, P)                                                          \
    IGRT_DOT_PAIR_SUMS(                                                                     \
        N, (igrt_i32x##N)P##_maddubs_epi16((V)x, (V)w),                                     \
        igrt_now_i32x##N((igrt_i32x##N)P##_add_epi16(P##_maddubs_epi16((V)x, (V)w), (V)p)), \
        (igrt_i32x##N)P##_add_epi32(P##_madd_epi16((V)p, P##_set1_epi16(1)), (V)s))
#define IGRT_DOT_PAIRS_32(N)                                                   \
    IGRT_DOT_PAIR_SUMS(N, igrt_dot_u7_i8_i32x##N(x, w, igrt_splat_i32x##N(0)), \
                       igrt_dot_u7_i8_i32x##N(x, w, p),                        \
                       (igrt_i32x##N)((igrt_u32x##N)p + (igrt_u32x##N)s))
#if defined(__AVX2__) && !defined(__AVXVNNI__) && \
    !(defined(__AVX512VNNI__) && defined(__AVX512VL__))
IGRT_DOT_PAIRS_16(4, __m128i, _mm)
IGRT_DOT_PAIRS_16(8, __m256i, _mm256)
#else
IGRT_DOT_PAIRS_32(4)
IGRT_DOT_PAIRS_32(8)
#endif
#if defined(__AVX512BW__) && !defined(__AVX512VNNI__)
IGRT_DOT_PAIRS_16(16, __m512i, _mm512)
#else
IGRT_DOT_PAIRS_32(16)
#endif

#endif
