/*
 * igrt_vec_i32.h - integers in lanes.
 */
#ifndef IGRT_VEC_I32_H
#define IGRT_VEC_I32_H

#include "igrt_vec_narrow.h"

/*
 * i32 lanes wrap. Lanes that hold a narrower integer are wrapped to it by igrt_wrap_<type>; those
 * that hold f16 or bf16 are rounded by igrt_round_<type>. igrt_low_f32xN_i32xN gives the low 32
 * bits of the integer: of f32 -> i64, which saturates.
 */
#define IGRT_INT2(N, NAME, OP)                                                  \
    IGRT_VEC igrt_i32x##N igrt_##NAME##_i32x##N(igrt_i32x##N x, igrt_i32x##N y) \
    {                                                                           \
        return (igrt_i32x##N)((igrt_u32x##N)x OP(igrt_u32x##N) y);              \
    }
#define IGRT_INT_COMPARE(N, NAME, OP)                                           \
    IGRT_VEC igrt_i32x##N igrt_##NAME##_i32x##N(igrt_i32x##N x, igrt_i32x##N y) \
    {                                                                           \
        return (igrt_i32x##N)(x OP y);                                          \
    }
#define IGRT_INT_WRAP(N, T, BITS)                                                 \
    IGRT_VEC igrt_i32x##N igrt_wrap_i##T##_i32x##N(igrt_i32x##N x)                \
    {                                                                             \
        return (igrt_i32x##N)((igrt_u32x##N)x << (32 - (BITS))) >> (32 - (BITS)); \
    }                                                                             \
    IGRT_VEC igrt_i32x##N igrt_wrap_u##T##_i32x##N(igrt_i32x##N x)                \
    {                                                                             \
        return x & ((1 << (BITS)) - 1);                                           \
    }
#define IGRT_INT_ROUND(N, T)                                       \
    IGRT_VEC igrt_f32x##N igrt_round_##T##_f32x##N(igrt_f32x##N x) \
    {                                                              \
        uint16_t t[N];                                             \
        igrt_store_##T##_f32x##N(t, x);                            \
        return igrt_load_##T##_f32x##N(t);                         \
    }
/* max or min in one instruction: gcc makes up to four of a choice. */
#define IGRT_CHOICE_max(N, x, y) igrt_where_i32x##N(igrt_lt_i32x##N(x, y), y, x)
#define IGRT_CHOICE_min(N, x, y) igrt_where_i32x##N(igrt_lt_i32x##N(y, x), y, x)
#if IGRT_RVV
#define IGRT_MORE_4(OP, x, y) __builtin_elementwise_##OP(x, y)
#elif defined(__SSE4_1__)
#define IGRT_MORE_4(OP, x, y) ((igrt_i32x4)_mm_##OP##_epi32((__m128i)(x), (__m128i)(y)))
#elif defined(IGRT_NEON64)
#define IGRT_MORE_4(OP, x, y) ((igrt_i32x4)v##OP##q_s32((int32x4_t)(x), (int32x4_t)(y)))
#else
#define IGRT_MORE_4(OP, x, y) IGRT_CHOICE_##OP(4, x, y)
#endif
#if IGRT_RVV
#define IGRT_MORE_8(OP, x, y) __builtin_elementwise_##OP(x, y)
#elif IGRT_HAS_8 && defined(__AVX2__)
#define IGRT_MORE_8(OP, x, y) ((igrt_i32x8)_mm256_##OP##_epi32((__m256i)(x), (__m256i)(y)))
#elif IGRT_SVE == 8
#define IGRT_MORE_8(OP, x, y) IGRT_SVE_MORE(8, OP, x, y)
#else
#define IGRT_MORE_8(OP, x, y) IGRT_HALVES(8, 4, OP, x, y)
#endif
#if IGRT_RVV
#define IGRT_MORE_16(OP, x, y) __builtin_elementwise_##OP(x, y)
#elif IGRT_HAS_16
#define IGRT_MORE_16(OP, x, y) ((igrt_i32x16)_mm512_##OP##_epi32((__m512i)(x), (__m512i)(y)))
#elif IGRT_SVE == 16
#define IGRT_MORE_16(OP, x, y) IGRT_SVE_MORE(16, OP, x, y)
#else
#define IGRT_MORE_16(OP, x, y) IGRT_HALVES(16, 8, OP, x, y)
#endif
#define IGRT_SVE_MORE(N, OP, x, y) \
    ((igrt_i32x##N)(igrt_sve_i32)sv##OP##_s32_x(IGRT_SVE_ALL, IGRT_SVE_I(x), IGRT_SVE_I(y)))
#define IGRT_HALVES(N, H, OP, x, y)                                                \
    igrt_join_i32x##N(igrt_##OP##_i32x##H(igrt_lo_i32x##N(x), igrt_lo_i32x##N(y)), \
                      igrt_##OP##_i32x##H(igrt_hi_i32x##N(x), igrt_hi_i32x##N(y)))
#define IGRT_INTS(N)                                                                         \
    IGRT_INT2(N, add, +)                                                                     \
    IGRT_INT2(N, sub, -)                                                                     \
    IGRT_INT2(N, mul, *)                                                                     \
    IGRT_INT2(N, and, &)                                                                     \
    IGRT_INT2(N, or, |)                                                                      \
    IGRT_INT2(N, xor, ^)                                                                     \
    IGRT_INT2(N, shl, <<)                                                                    \
    IGRT_INT2(N, shr, >>)                                                                    \
    IGRT_INT_COMPARE(N, eq, ==)                                                              \
    IGRT_INT_COMPARE(N, ne, !=)                                                              \
    IGRT_INT_COMPARE(N, lt, <)                                                               \
    IGRT_INT_COMPARE(N, le, <=)                                                              \
    IGRT_INT_WRAP(N, 8, 8)                                                                   \
    IGRT_INT_WRAP(N, 16, 16)                                                                 \
    IGRT_INT_ROUND(N, f16)                                                                   \
    IGRT_INT_ROUND(N, bf16)                                                                  \
    IGRT_VEC igrt_i32x##N igrt_where_i32x##N(igrt_i32x##N m, igrt_i32x##N a, igrt_i32x##N b) \
    {                                                                                        \
        return IGRT_EITHER(m, a, b);                                                         \
    }                                                                                        \
    IGRT_VEC igrt_i32x##N igrt_max_i32x##N(igrt_i32x##N x, igrt_i32x##N y)                   \
    {                                                                                        \
        return IGRT_MORE_##N(max, x, y);                                                     \
    }                                                                                        \
    IGRT_VEC igrt_i32x##N igrt_min_i32x##N(igrt_i32x##N x, igrt_i32x##N y)                   \
    {                                                                                        \
        return IGRT_MORE_##N(min, x, y);                                                     \
    }                                                                                        \
    IGRT_VEC igrt_i32x##N igrt_low_f32x##N##_i32x##N(igrt_f32x##N x)                         \
    {                                                                                        \
        /* from 2^31 on x is a whole number, and so is what remains of it modulo 2^32 */     \
        const igrt_f32x##N half = igrt_splat_f32x##N(2147483648.0f), size = half + half;     \
        const igrt_f32x##N top = igrt_splat_f32x##N(9223372036854775808.0f), zero = {0};     \
        igrt_f32x##N y = x - size * igrt_floor_f32x##N(x * (1.0f / 4294967296.0f));          \
        y = igrt_if_le_f32x##N(half, y, y - size, y);                                        \
        y = igrt_if_le_f32x##N(half, igrt_abs_f32x##N(x), y, x);                             \
        y = igrt_if_le_f32x##N(top, igrt_abs_f32x##N(x), zero, y);                           \
        y = igrt_if_le_f32x##N(top, x, -igrt_splat_f32x##N(1.0f), y);                        \
        y = igrt_if_ne_f32x##N(x, x, zero, y);                                               \
        return __builtin_convertvector(y, igrt_i32x##N);                                     \
    }
IGRT_INTS(4)
IGRT_INTS(8)
IGRT_INTS(16)

/*
 * Products with fractions: a product has 64 bits, two of four lanes a register.
 */
#define IGRT_RVV_MULHI(N)                                                                 \
    typedef int64_t igrt_wide_i32x##N __attribute__((vector_size(8 * (N))));              \
    IGRT_VEC igrt_i32x##N igrt_mulhi_i32x##N(igrt_i32x##N x, igrt_i32x##N y)              \
    {                                                                                     \
        const igrt_wide_i32x##N a = __builtin_convertvector(x, igrt_wide_i32x##N),        \
                                b = __builtin_convertvector(y, igrt_wide_i32x##N);        \
        return __builtin_convertvector((a * b + (INT64_C(1) << 30)) >> 31, igrt_i32x##N); \
    }
#if IGRT_RVV
IGRT_RVV_MULHI(4)
#elif defined(IGRT_NEON64)
IGRT_VEC igrt_i32x4 igrt_mulhi_i32x4(igrt_i32x4 x, igrt_i32x4 y)
{
    const int64x2_t lo = vmull_s32(vget_low_s32((int32x4_t)x), vget_low_s32((int32x4_t)y));
    const int64x2_t hi = vmull_high_s32((int32x4_t)x, (int32x4_t)y);
    return (igrt_i32x4)vcombine_s32(vrshrn_n_s64(lo, 31), vrshrn_n_s64(hi, 31));
}
#elif defined(__SSE4_1__)
IGRT_VEC igrt_i32x4 igrt_mulhi_i32x4(igrt_i32x4 x, igrt_i32x4 y)
{
    const __m128i half = _mm_set1_epi64x(1 << 30);
    const __m128i a = _mm_add_epi64(_mm_mul_epi32((__m128i)x, (__m128i)y), half);
    const __m128i b = _mm_add_epi64(
        _mm_mul_epi32(_mm_srli_epi64((__m128i)x, 32), _mm_srli_epi64((__m128i)y, 32)), half);
    return (igrt_i32x4)_mm_blend_epi16(_mm_srli_epi64(a, 31), _mm_slli_epi64(b, 1), 0xcc);
}
#else
IGRT_VEC igrt_i32x4 igrt_mulhi_i32x4(igrt_i32x4 x, igrt_i32x4 y)
{
    return (igrt_i32x4){igrt_mulhi_i32(x[0], y[0]), igrt_mulhi_i32(x[1], y[1]),
                        igrt_mulhi_i32(x[2], y[2]), igrt_mulhi_i32(x[3], y[3])};
}
#endif
/* (x y + 2^30) >> 31: twice the upper half, and what the two upper bits of the lower half make. */
#define IGRT_SVE_MULHI(N)                                                                         \
    IGRT_VEC igrt_i32x##N igrt_mulhi_i32x##N(igrt_i32x##N x, igrt_i32x##N y)                      \
    {                                                                                             \
        const igrt_i32x##N high =                                                                 \
            (igrt_i32x##N)(igrt_sve_i32)svmulh_s32_x(IGRT_SVE_ALL, IGRT_SVE_I(x), IGRT_SVE_I(y)); \
        const igrt_u32x##N low = (igrt_u32x##N)x * (igrt_u32x##N)y;                               \
        return (igrt_i32x##N)(((igrt_u32x##N)high << 1) + (((low >> 30) + 1u) >> 1));             \
    }
#if IGRT_RVV
IGRT_RVV_MULHI(8)
#elif IGRT_SVE == 8
IGRT_SVE_MULHI(8)
#elif defined(__AVX2__)
IGRT_VEC igrt_i32x8 igrt_mulhi_i32x8(igrt_i32x8 x, igrt_i32x8 y)
{
    const __m256i half = _mm256_set1_epi64x(1 << 30);
    const __m256i a = _mm256_add_epi64(_mm256_mul_epi32((__m256i)x, (__m256i)y), half);
    const __m256i b = _mm256_add_epi64(
        _mm256_mul_epi32(_mm256_srli_epi64((__m256i)x, 32), _mm256_srli_epi64((__m256i)y, 32)),
        half);
    return (igrt_i32x8)_mm256_blend_epi32(_mm256_srli_epi64(a, 31), _mm256_slli_epi64(b, 1), 0xaa);
}
#else
IGRT_VEC igrt_i32x8 igrt_mulhi_i32x8(igrt_i32x8 x, igrt_i32x8 y)
{
    return igrt_join_i32x8(igrt_mulhi_i32x4(igrt_lo_i32x8(x), igrt_lo_i32x8(y)),
                           igrt_mulhi_i32x4(igrt_hi_i32x8(x), igrt_hi_i32x8(y)));
}
#endif
#if IGRT_RVV
IGRT_RVV_MULHI(16)
#elif IGRT_SVE == 16
IGRT_SVE_MULHI(16)
#elif defined(__AVX512F__)
IGRT_VEC igrt_i32x16 igrt_mulhi_i32x16(igrt_i32x16 x, igrt_i32x16 y)
{
    const __m512i half = _mm512_set1_epi64(1 << 30);
    const __m512i a = _mm512_add_epi64(_mm512_mul_epi32((__m512i)x, (__m512i)y), half);
    const __m512i b = _mm512_add_epi64(
        _mm512_mul_epi32(_mm512_srli_epi64((__m512i)x, 32), _mm512_srli_epi64((__m512i)y, 32)),
        half);
    return (igrt_i32x16)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(a, 31),
                                                _mm512_slli_epi64(b, 1));
}
#else
IGRT_VEC igrt_i32x16 igrt_mulhi_i32x16(igrt_i32x16 x, igrt_i32x16 y)
{
    return igrt_join_i32x16(igrt_mulhi_i32x8(igrt_lo_i32x16(x), igrt_lo_i32x16(y)),
                            igrt_mulhi_i32x8(igrt_hi_i32x16(x), igrt_hi_i32x16(y)));
}
#endif
#define IGRT_INT_SHRR(N)                                                       \
    IGRT_VEC igrt_i32x##N igrt_shrr_i32x##N(igrt_i32x##N x, igrt_i32x##N n)    \
    {                                                                          \
        const igrt_i32x##N none = (igrt_i32x##N)(n == 0),                      \
                           far = (igrt_i32x##N)((igrt_u32x##N)n > 31u);        \
        const igrt_i32x##N y = igrt_add_i32x##N(x, x >> 31) >> ((n - 1) & 31); \
        const igrt_i32x##N z = (y >> 1) + (y & 1);                             \
        return (x & none) | (z & ~none & ~far);                                \
    }
IGRT_INT_SHRR(4)
IGRT_INT_SHRR(8)
IGRT_INT_SHRR(16)

#define IGRT_INT_ACROSS(NAME, OP)                                                            \
    IGRT_VEC int32_t igrt_##NAME##_i32x4(igrt_i32x4 v)                                       \
    {                                                                                        \
        return igrt_##OP##_i32(igrt_##OP##_i32(v[0], v[2]), igrt_##OP##_i32(v[1], v[3]));    \
    }                                                                                        \
    IGRT_VEC int32_t igrt_##NAME##_i32x8(igrt_i32x8 v)                                       \
    {                                                                                        \
        return igrt_##NAME##_i32x4(igrt_##OP##_i32x4(igrt_lo_i32x8(v), igrt_hi_i32x8(v)));   \
    }                                                                                        \
    IGRT_VEC int32_t igrt_##NAME##_i32x16(igrt_i32x16 v)                                     \
    {                                                                                        \
        return igrt_##NAME##_i32x8(igrt_##OP##_i32x8(igrt_lo_i32x16(v), igrt_hi_i32x16(v))); \
    }
IGRT_INT_ACROSS(hadd, add)
IGRT_INT_ACROSS(hmul, mul)
IGRT_INT_ACROSS(hmax, max)
IGRT_INT_ACROSS(hmin, min)

#endif
