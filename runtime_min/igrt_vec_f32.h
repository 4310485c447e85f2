/*
 * igrt_vec_f32.h - f32 lanes: arithmetic, comparisons, rounding, all lanes into one, and
 * conversions to and from i32.
 */
#ifndef IGRT_VEC_F32_H
#define IGRT_VEC_F32_H

#include "igrt_vec_base.h"

/* ---- one instruction each, where there is one -------------------------------------------- */

/*
 * Beside operations of the model there are two helpers: igrt_above(x, y) is x > y ? x : y and
 * igrt_below(x, y) is x < y ? x : y, so y where either is a NaN: what x86 calls max and min.
 * igrt_if_lt(x, y, a, b) is x < y ? a : b, and so on: with AVX-512 this saves making a mask vector
 * from a mask register and going back.
 *
 * First the plain forms, then intrinsics, then for each width the best of: intrinsics, two halves.
 */
#define IGRT_BITS(N, x) ((igrt_i32x##N)(x))
#define IGRT_PICK(N, m, a, b) ((igrt_f32x##N)((IGRT_BITS(N, a) & (m)) | (IGRT_BITS(N, b) & ~(m))))

#define IGRT_PLAIN_BASE(N)                                                     \
    IGRT_VEC igrt_f32x##N igrt_above_f32x##N(igrt_f32x##N x, igrt_f32x##N y)   \
    {                                                                          \
        return IGRT_PICK(N, IGRT_BITS(N, x > y), x, y);                        \
    }                                                                          \
    IGRT_VEC igrt_f32x##N igrt_below_f32x##N(igrt_f32x##N x, igrt_f32x##N y)   \
    {                                                                          \
        return IGRT_PICK(N, IGRT_BITS(N, x < y), x, y);                        \
    }                                                                          \
    IGRT_VEC igrt_f32x##N igrt_max_f32x##N(igrt_f32x##N x, igrt_f32x##N y)     \
    {                                                                          \
        return IGRT_PICK(N, IGRT_BITS(N, x > y) | IGRT_BITS(N, x != x), x, y); \
    }                                                                          \
    IGRT_VEC igrt_f32x##N igrt_min_f32x##N(igrt_f32x##N x, igrt_f32x##N y)     \
    {                                                                          \
        return IGRT_PICK(N, IGRT_BITS(N, x < y) | IGRT_BITS(N, x != x), x, y); \
    }
#define IGRT_PLAIN_WHERE(N)                                                                  \
    IGRT_VEC igrt_f32x##N igrt_where_f32x##N(igrt_i32x##N m, igrt_f32x##N a, igrt_f32x##N b) \
    {                                                                                        \
        return IGRT_PICK(N, m, a, b);                                                        \
    }
#define IGRT_PLAIN_MULADD(N)                                                                  \
    IGRT_VEC igrt_f32x##N igrt_muladd_f32x##N(igrt_f32x##N x, igrt_f32x##N y, igrt_f32x##N z) \
    {                                                                                         \
        return x * y + z;                                                                     \
    }
#define IGRT_COMPARE(N, NAME, OP)                                               \
    IGRT_VEC igrt_i32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y) \
    {                                                                           \
        return (igrt_i32x##N)(x OP y);                                          \
    }
#define IGRT_COMPARES(N)    \
    IGRT_COMPARE(N, eq, ==) \
    IGRT_COMPARE(N, ne, !=) \
    IGRT_COMPARE(N, lt, <)  \
    IGRT_COMPARE(N, le, <=)
#define IGRT_IF(N, NAME)                                                                           \
    IGRT_VEC igrt_f32x##N igrt_if_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y, igrt_f32x##N a, \
                                                   igrt_f32x##N b)                                 \
    {                                                                                              \
        return igrt_where_f32x##N(igrt_##NAME##_f32x##N(x, y), a, b);                              \
    }
#define IGRT_IFS(N) IGRT_IF(N, eq) IGRT_IF(N, ne) IGRT_IF(N, lt) IGRT_IF(N, le)

/* A function of one lane at a time. T: f32 or f64, E: its C type. */
#define IGRT_LANES1(T, E, N, NAME, FN)                                \
    IGRT_VEC igrt_##T##x##N igrt_##NAME##_##T##x##N(igrt_##T##x##N x) \
    {                                                                 \
        E t[N];                                                       \
        igrt_store_##T##x##N(t, x);                                   \
        for (int i = 0; i < N; i++)                                   \
            t[i] = FN(t[i]);                                          \
        return igrt_load_##T##x##N(t);                                \
    }
#define IGRT_LANES2(T, E, N, NAME, FN)                                                  \
    IGRT_VEC igrt_##T##x##N igrt_##NAME##_##T##x##N(igrt_##T##x##N x, igrt_##T##x##N y) \
    {                                                                                   \
        E t[N], u[N];                                                                   \
        igrt_store_##T##x##N(t, x);                                                     \
        igrt_store_##T##x##N(u, y);                                                     \
        for (int i = 0; i < N; i++)                                                     \
            t[i] = FN(t[i], u[i]);                                                      \
        return igrt_load_##T##x##N(t);                                                  \
    }
/* a + 2^23 - 2^23 rounds a to nearest; from 2^23 on, and for a NaN, x is the answer. */
#define IGRT_PLAIN_ROUNDING(N)                                                        \
    IGRT_VEC igrt_f32x##N igrt_whole_f32x##N(igrt_f32x##N x, igrt_f32x##N y)          \
    {                                                                                 \
        const igrt_f32x##N a = (igrt_f32x##N)(IGRT_BITS(N, x) & INT32_MAX);           \
        const igrt_i32x##N bits = IGRT_BITS(N, y) | (IGRT_BITS(N, x) & INT32_MIN);    \
        return IGRT_PICK(N, IGRT_BITS(N, a < 8388608.0f), bits, x);                   \
    }                                                                                 \
    IGRT_VEC igrt_f32x##N igrt_round_f32x##N(igrt_f32x##N x)                          \
    {                                                                                 \
        const igrt_f32x##N a = (igrt_f32x##N)(IGRT_BITS(N, x) & INT32_MAX);           \
        return igrt_whole_f32x##N(x, (a + 8388608.0f) - 8388608.0f);                  \
    }                                                                                 \
    IGRT_VEC igrt_f32x##N igrt_trunc_f32x##N(igrt_f32x##N x)                          \
    {                                                                                 \
        const igrt_f32x##N a = (igrt_f32x##N)(IGRT_BITS(N, x) & INT32_MAX);           \
        const igrt_f32x##N t = (a + 8388608.0f) - 8388608.0f;                         \
        return igrt_whole_f32x##N(x, IGRT_PICK(N, IGRT_BITS(N, t > a), t - 1.0f, t)); \
    }                                                                                 \
    IGRT_VEC igrt_f32x##N igrt_floor_f32x##N(igrt_f32x##N x)                          \
    {                                                                                 \
        const igrt_f32x##N t = igrt_round_f32x##N(x);                                 \
        return IGRT_PICK(N, IGRT_BITS(N, t > x), t - 1.0f, t);                        \
    }                                                                                 \
    IGRT_VEC igrt_f32x##N igrt_ceil_f32x##N(igrt_f32x##N x)                           \
    {                                                                                 \
        const igrt_f32x##N t = igrt_round_f32x##N(x);                                 \
        return igrt_whole_f32x##N(x, IGRT_PICK(N, IGRT_BITS(N, t < x), t + 1.0f, t)); \
    }

/* An intrinsic as a function. */
#define IGRT_NATIVE1(T, N, NAME, CALL)                                \
    IGRT_VEC igrt_##T##x##N igrt_##NAME##_##T##x##N(igrt_##T##x##N x) \
    {                                                                 \
        return (igrt_##T##x##N)CALL;                                  \
    }
#define IGRT_NATIVE2(T, N, NAME, CALL)                                                  \
    IGRT_VEC igrt_##T##x##N igrt_##NAME##_##T##x##N(igrt_##T##x##N x, igrt_##T##x##N y) \
    {                                                                                   \
        return (igrt_##T##x##N)CALL;                                                    \
    }
#define IGRT_NATIVE3(T, N, NAME, CALL)                                                  \
    IGRT_VEC igrt_##T##x##N igrt_##NAME##_##T##x##N(igrt_##T##x##N x, igrt_##T##x##N y, \
                                                    igrt_##T##x##N z)                   \
    {                                                                                   \
        return (igrt_##T##x##N)CALL;                                                    \
    }
#define IGRT_NATIVE_WHERE(N, CALL)                                                           \
    IGRT_VEC igrt_f32x##N igrt_where_f32x##N(igrt_i32x##N m, igrt_f32x##N a, igrt_f32x##N b) \
    {                                                                                        \
        return (igrt_f32x##N)CALL;                                                           \
    }

/* The function on two halves. */
#define IGRT_SPLIT1(N, H, NAME)                                              \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x)              \
    {                                                                        \
        return igrt_join_f32x##N(igrt_##NAME##_f32x##H(igrt_lo_f32x##N(x)),  \
                                 igrt_##NAME##_f32x##H(igrt_hi_f32x##N(x))); \
    }
#define IGRT_SPLIT2(N, H, NAME)                                                                  \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y)                  \
    {                                                                                            \
        return igrt_join_f32x##N(igrt_##NAME##_f32x##H(igrt_lo_f32x##N(x), igrt_lo_f32x##N(y)),  \
                                 igrt_##NAME##_f32x##H(igrt_hi_f32x##N(x), igrt_hi_f32x##N(y))); \
    }
#define IGRT_SPLIT3(N, H, NAME)                                                                 \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y, igrt_f32x##N z) \
    {                                                                                           \
        return igrt_join_f32x##N(                                                               \
            igrt_##NAME##_f32x##H(igrt_lo_f32x##N(x), igrt_lo_f32x##N(y), igrt_lo_f32x##N(z)),  \
            igrt_##NAME##_f32x##H(igrt_hi_f32x##N(x), igrt_hi_f32x##N(y), igrt_hi_f32x##N(z))); \
    }
#define IGRT_SPLIT_WHERE(N, H)                                                               \
    IGRT_VEC igrt_f32x##N igrt_where_f32x##N(igrt_i32x##N m, igrt_f32x##N a, igrt_f32x##N b) \
    {                                                                                        \
        return igrt_join_f32x##N(                                                            \
            igrt_where_f32x##H(igrt_lo_i32x##N(m), igrt_lo_f32x##N(a), igrt_lo_f32x##N(b)),  \
            igrt_where_f32x##H(igrt_hi_i32x##N(m), igrt_hi_f32x##N(a), igrt_hi_f32x##N(b))); \
    }
#define IGRT_SPLIT_COMPARE(N, H, NAME)                                                           \
    IGRT_VEC igrt_i32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y)                  \
    {                                                                                            \
        return igrt_join_i32x##N(igrt_##NAME##_f32x##H(igrt_lo_f32x##N(x), igrt_lo_f32x##N(y)),  \
                                 igrt_##NAME##_f32x##H(igrt_hi_f32x##N(x), igrt_hi_f32x##N(y))); \
    }
#define IGRT_SPLIT_BASE(N, H)    \
    IGRT_SPLIT_COMPARE(N, H, eq) \
    IGRT_SPLIT_COMPARE(N, H, ne) \
    IGRT_SPLIT_COMPARE(N, H, lt) \
    IGRT_SPLIT_COMPARE(N, H, le) \
    IGRT_SPLIT_WHERE(N, H)       \
    IGRT_IFS(N)                  \
    IGRT_SPLIT2(N, H, above)     \
    IGRT_SPLIT2(N, H, below)     \
    IGRT_SPLIT2(N, H, max)       \
    IGRT_SPLIT2(N, H, min)       \
    IGRT_SPLIT1(N, H, sqrt)      \
    IGRT_SPLIT1(N, H, floor)     \
    IGRT_SPLIT1(N, H, ceil)      \
    IGRT_SPLIT1(N, H, trunc)     \
    IGRT_SPLIT1(N, H, round)     \
    IGRT_SPLIT3(N, H, muladd)

/* SVE, of all lanes of a register */
#define IGRT_SVE_IF(N, NAME, PREDICATE)                                                            \
    IGRT_VEC igrt_f32x##N igrt_if_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y, igrt_f32x##N a, \
                                                   igrt_f32x##N b)                                 \
    {                                                                                              \
        const svbool_t m = PREDICATE(IGRT_SVE_ALL, IGRT_SVE_F(x), IGRT_SVE_F(y));                  \
        return (igrt_f32x##N)(igrt_sve_f32)svsel_f32(m, IGRT_SVE_F(a), IGRT_SVE_F(b));             \
    }
#define IGRT_SVE1(N, NAME, CALL) \
    IGRT_NATIVE1(f32, N, NAME, (igrt_sve_f32)CALL(IGRT_SVE_ALL, IGRT_SVE_F(x)))
#define IGRT_SVE_BASE(N)                                                                         \
    IGRT_COMPARES(N)                                                                             \
    IGRT_SVE_IF(N, eq, svcmpeq_f32)                                                              \
    IGRT_SVE_IF(N, ne, svcmpne_f32)                                                              \
    IGRT_SVE_IF(N, lt, svcmplt_f32)                                                              \
    IGRT_SVE_IF(N, le, svcmple_f32)                                                              \
    IGRT_NATIVE_WHERE(N, (igrt_sve_f32)svsel_f32(IGRT_SVE_SET(m), IGRT_SVE_F(a), IGRT_SVE_F(b))) \
    IGRT_NATIVE2(f32, N, above, igrt_if_lt_f32x##N(y, x, x, y))                                  \
    IGRT_NATIVE2(f32, N, below, igrt_if_lt_f32x##N(x, y, x, y))                                  \
    IGRT_NATIVE2(f32, N, max, igrt_if_ne_f32x##N(x, x, x, igrt_above_f32x##N(x, y)))             \
    IGRT_NATIVE2(f32, N, min, igrt_if_ne_f32x##N(x, x, x, igrt_below_f32x##N(x, y)))             \
    IGRT_SVE1(N, sqrt, svsqrt_f32_x)                                                             \
    IGRT_SVE1(N, floor, svrintm_f32_x)                                                           \
    IGRT_SVE1(N, ceil, svrintp_f32_x)                                                            \
    IGRT_SVE1(N, trunc, svrintz_f32_x)                                                           \
    IGRT_SVE1(N, round, svrintn_f32_x)                                                           \
    IGRT_NATIVE3(                                                                                \
        f32, N, muladd,                                                                          \
        (igrt_sve_f32)svmla_f32_x(IGRT_SVE_ALL, IGRT_SVE_F(z), IGRT_SVE_F(x), IGRT_SVE_F(y)))

/* RISC-V's V, of as many lanes as there are: instructions by the compiler's names for them */
#define IGRT_RVV_BASE(N)                                      \
    IGRT_COMPARES(N)                                          \
    IGRT_PLAIN_WHERE(N)                                       \
    IGRT_PLAIN_BASE(N)                                        \
    IGRT_IFS(N)                                               \
    IGRT_NATIVE1(f32, N, sqrt, __builtin_elementwise_sqrt(x)) \
    IGRT_PLAIN_ROUNDING(N)                                    \
    IGRT_NATIVE3(f32, N, muladd, __builtin_elementwise_fma(x, y, z))

/* 4 lanes */
#if IGRT_RVV
IGRT_RVV_BASE(4)
#else
IGRT_COMPARES(4)
#if defined(__SSE2__)
#if defined(__SSE4_1__)
IGRT_NATIVE_WHERE(4, _mm_blendv_ps(b, a, (__m128)m))
IGRT_NATIVE1(f32, 4, floor, _mm_floor_ps(x))
IGRT_NATIVE1(f32, 4, ceil, _mm_ceil_ps(x))
IGRT_NATIVE1(f32, 4, trunc, _mm_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(f32, 4, round, _mm_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#else
IGRT_PLAIN_WHERE(4)
IGRT_PLAIN_ROUNDING(4)
#endif
IGRT_NATIVE2(f32, 4, above, _mm_max_ps(x, y))
IGRT_NATIVE2(f32, 4, below, _mm_min_ps(x, y))
IGRT_NATIVE2(f32, 4, max, igrt_where_f32x4((igrt_i32x4)(x != x), x, _mm_max_ps(x, y)))
IGRT_NATIVE2(f32, 4, min, igrt_where_f32x4((igrt_i32x4)(x != x), x, _mm_min_ps(x, y)))
IGRT_NATIVE1(f32, 4, sqrt, _mm_sqrt_ps(x))
#elif defined(IGRT_NEON64)
IGRT_NATIVE_WHERE(4, vbslq_f32((uint32x4_t)m, (float32x4_t)a, (float32x4_t)b))
IGRT_PLAIN_BASE(4)
IGRT_NATIVE1(f32, 4, sqrt, vsqrtq_f32((float32x4_t)x))
IGRT_NATIVE1(f32, 4, floor, vrndmq_f32((float32x4_t)x))
IGRT_NATIVE1(f32, 4, ceil, vrndpq_f32((float32x4_t)x))
IGRT_NATIVE1(f32, 4, trunc, vrndq_f32((float32x4_t)x))
IGRT_NATIVE1(f32, 4, round, vrndnq_f32((float32x4_t)x))
#elif defined(__wasm_simd128__) /* pmax(y, x) is x > y ? x : y */
IGRT_PLAIN_WHERE(4)
IGRT_NATIVE2(f32, 4, above, (igrt_f32x4)wasm_f32x4_pmax((v128_t)y, (v128_t)x))
IGRT_NATIVE2(f32, 4, below, (igrt_f32x4)wasm_f32x4_pmin((v128_t)y, (v128_t)x))
IGRT_NATIVE2(f32, 4, max, igrt_where_f32x4((igrt_i32x4)(x != x), x, igrt_above_f32x4(x, y)))
IGRT_NATIVE2(f32, 4, min, igrt_where_f32x4((igrt_i32x4)(x != x), x, igrt_below_f32x4(x, y)))
IGRT_NATIVE1(f32, 4, sqrt, (igrt_f32x4)wasm_f32x4_sqrt((v128_t)x))
IGRT_NATIVE1(f32, 4, floor, (igrt_f32x4)wasm_f32x4_floor((v128_t)x))
IGRT_NATIVE1(f32, 4, ceil, (igrt_f32x4)wasm_f32x4_ceil((v128_t)x))
IGRT_NATIVE1(f32, 4, trunc, (igrt_f32x4)wasm_f32x4_trunc((v128_t)x))
IGRT_NATIVE1(f32, 4, round, (igrt_f32x4)wasm_f32x4_nearest((v128_t)x))
#else
IGRT_PLAIN_WHERE(4)
IGRT_PLAIN_BASE(4)
IGRT_LANES1(f32, float, 4, sqrt, sqrtf)
IGRT_PLAIN_ROUNDING(4)
#endif
IGRT_IFS(4)
#if defined(__FMA__)
IGRT_NATIVE3(f32, 4, muladd, _mm_fmadd_ps(x, y, z))
#elif defined(__ARM_FEATURE_FMA) && defined(IGRT_NEON64)
IGRT_NATIVE3(f32, 4, muladd, vfmaq_f32((float32x4_t)z, (float32x4_t)x, (float32x4_t)y))
#elif defined(IGRT_RELAXED)
IGRT_NATIVE3(f32, 4, muladd, __builtin_wasm_relaxed_madd_f32x4(x, y, z))
#elif defined(__ARM_FEATURE_FMA)
IGRT_VEC igrt_f32x4 igrt_muladd_f32x4(igrt_f32x4 x, igrt_f32x4 y, igrt_f32x4 z)
{
    for (int i = 0; i < 4; i++)
        z[i] = igrt_muladd_f32(x[i], y[i], z[i]);
    return z;
}
#else
IGRT_PLAIN_MULADD(4)
#endif
#endif

/* 8 lanes */
#if IGRT_RVV
IGRT_RVV_BASE(8)
#elif IGRT_HAS_8
IGRT_COMPARES(8)
IGRT_NATIVE_WHERE(8, _mm256_blendv_ps(b, a, (__m256)m))
IGRT_IFS(8)
IGRT_NATIVE2(f32, 8, above, _mm256_max_ps(x, y))
IGRT_NATIVE2(f32, 8, below, _mm256_min_ps(x, y))
IGRT_NATIVE2(f32, 8, max, igrt_if_ne_f32x8(x, x, x, _mm256_max_ps(x, y)))
IGRT_NATIVE2(f32, 8, min, igrt_if_ne_f32x8(x, x, x, _mm256_min_ps(x, y)))
IGRT_NATIVE1(f32, 8, sqrt, _mm256_sqrt_ps(x))
IGRT_NATIVE1(f32, 8, floor, _mm256_floor_ps(x))
IGRT_NATIVE1(f32, 8, ceil, _mm256_ceil_ps(x))
IGRT_NATIVE1(f32, 8, trunc, _mm256_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(f32, 8, round, _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#if defined(__FMA__)
IGRT_NATIVE3(f32, 8, muladd, _mm256_fmadd_ps(x, y, z))
#else
IGRT_PLAIN_MULADD(8)
#endif
#else
IGRT_BY_SVE_8(IGRT_SVE_BASE(8), IGRT_SPLIT_BASE(8, 4))
#endif

/* 16 lanes */
#if IGRT_RVV
IGRT_RVV_BASE(16)
#elif IGRT_HAS_16
IGRT_COMPARES(16)
#define IGRT_IF512(NAME, PREDICATE)                                                           \
    IGRT_VEC igrt_f32x16 igrt_if_##NAME##_f32x16(igrt_f32x16 x, igrt_f32x16 y, igrt_f32x16 a, \
                                                 igrt_f32x16 b)                               \
    {                                                                                         \
        return (igrt_f32x16)_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, PREDICATE), b, a);  \
    }
IGRT_IF512(eq, _CMP_EQ_OQ)
IGRT_IF512(ne, _CMP_NEQ_UQ)
IGRT_IF512(lt, _CMP_LT_OQ)
IGRT_IF512(le, _CMP_LE_OQ)
IGRT_NATIVE_WHERE(16,
                  _mm512_mask_blend_ps(_mm512_cmplt_epi32_mask((__m512i)m, _mm512_setzero_si512()),
                                       b, a))
IGRT_NATIVE2(f32, 16, above, _mm512_max_ps(x, y))
IGRT_NATIVE2(f32, 16, below, _mm512_min_ps(x, y))
/* x where x is a NaN, else what the instruction gives */
IGRT_NATIVE2(f32, 16, max, _mm512_mask_max_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, y))
IGRT_NATIVE2(f32, 16, min, _mm512_mask_min_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, y))
IGRT_NATIVE1(f32, 16, sqrt, _mm512_sqrt_ps(x))
IGRT_NATIVE1(f32, 16, floor, _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(f32, 16, ceil, _mm512_roundscale_ps(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(f32, 16, trunc, _mm512_roundscale_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(f32, 16, round, _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#if defined(__FMA__)
IGRT_NATIVE3(f32, 16, muladd, _mm512_fmadd_ps(x, y, z))
#else
IGRT_PLAIN_MULADD(16)
#endif
#else
IGRT_BY_SVE_16(IGRT_SVE_BASE(16), IGRT_SPLIT_BASE(16, 8))
#endif

/* ---- built on those, for every width ----------------------------------------------------- */

#define IGRT_ARITH(N, NAME, OP)                                                 \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y) \
    {                                                                           \
        return x OP y;                                                          \
    }
#define IGRT_MASKS(N, NAME, OP)                                                      \
    IGRT_VEC igrt_i32x##N igrt_##NAME##_mask_f32x##N(igrt_i32x##N x, igrt_i32x##N y) \
    {                                                                                \
        return x OP y;                                                               \
    }
#define IGRT_SIMPLE(N)                                                                        \
    IGRT_ARITH(N, add, +)                                                                     \
    IGRT_ARITH(N, sub, -)                                                                     \
    IGRT_ARITH(N, mul, *)                                                                     \
    IGRT_ARITH(N, div, /)                                                                     \
    IGRT_MASKS(N, and, &)                                                                     \
    IGRT_MASKS(N, or, |)                                                                      \
    IGRT_MASKS(N, xor, ^)                                                                     \
    IGRT_VEC igrt_i32x##N igrt_not_mask_f32x##N(igrt_i32x##N x)                               \
    {                                                                                         \
        return ~x;                                                                            \
    }                                                                                         \
    IGRT_VEC igrt_i32x##N igrt_isnan_f32x##N(igrt_f32x##N x)                                  \
    {                                                                                         \
        return igrt_ne_f32x##N(x, x);                                                         \
    }                                                                                         \
    IGRT_VEC igrt_f32x##N igrt_neg_f32x##N(igrt_f32x##N x)                                    \
    {                                                                                         \
        return -x;                                                                            \
    }                                                                                         \
    IGRT_VEC igrt_f32x##N igrt_abs_f32x##N(igrt_f32x##N x)                                    \
    {                                                                                         \
        return (igrt_f32x##N)(IGRT_BITS(N, x) & 0x7fffffff);                                  \
    }                                                                                         \
    /* a zero in the first place: NaN and -0 stay themselves */                               \
    IGRT_VEC igrt_f32x##N igrt_relu_f32x##N(igrt_f32x##N x)                                   \
    {                                                                                         \
        return igrt_above_f32x##N(igrt_splat_f32x##N(0.0f), x);                               \
    }                                                                                         \
    /* the magnitude of x with the sign of y */                                               \
    IGRT_VEC igrt_f32x##N igrt_copysign_f32x##N(igrt_f32x##N x, igrt_f32x##N y)               \
    {                                                                                         \
        return (igrt_f32x##N)((IGRT_BITS(N, x) & INT32_MAX) | (IGRT_BITS(N, y) & INT32_MIN)); \
    }                                                                                         \
    IGRT_VEC igrt_f32x##N igrt_sign_f32x##N(igrt_f32x##N x)                                   \
    {                                                                                         \
        return igrt_if_lt_f32x##N(igrt_splat_f32x##N(0.0f), igrt_abs_f32x##N(x),              \
                                  igrt_copysign_f32x##N(igrt_splat_f32x##N(1.0f), x), x);     \
    }
IGRT_SIMPLE(4)
IGRT_SIMPLE(8)
IGRT_SIMPLE(16)

/* ---- any lane, all lanes into one --------------------------------------------------------- */

/* 1 if a lane of the mask is set. */
IGRT_VEC int igrt_any_f32x4(igrt_i32x4 m)
{
#if defined(__SSE2__)
    return _mm_movemask_ps((__m128)m) != 0;
#else
    return (m[0] | m[1] | m[2] | m[3]) != 0;
#endif
}

IGRT_VEC int igrt_any_f32x8(igrt_i32x8 m)
{
#if defined(__AVX__)
    return _mm256_movemask_ps((__m256)m) != 0;
#elif IGRT_SVE == 8
    return svptest_any(IGRT_SVE_ALL, IGRT_SVE_SET(m));
#else
    return igrt_any_f32x4(igrt_lo_i32x8(m) | igrt_hi_i32x8(m));
#endif
}

IGRT_VEC int igrt_any_f32x16(igrt_i32x16 m)
{
#if IGRT_HAS_16
    return _mm512_test_epi32_mask((__m512i)m, (__m512i)m) != 0;
#elif IGRT_SVE == 16
    return svptest_any(IGRT_SVE_ALL, IGRT_SVE_SET(m));
#else
    return igrt_any_f32x8(igrt_lo_i32x16(m) | igrt_hi_i32x16(m));
#endif
}

/* Lane i with lane i + N/2, then so on with the halves: the order never depends on the ISA. */
#define IGRT_ACROSS(NAME, OP, LANE)                                                          \
    IGRT_VEC float igrt_##NAME##_f32x4(igrt_f32x4 v)                                         \
    {                                                                                        \
        return LANE(LANE(v[0], v[2]), LANE(v[1], v[3]));                                     \
    }                                                                                        \
    IGRT_VEC float igrt_##NAME##_f32x8(igrt_f32x8 v)                                         \
    {                                                                                        \
        return igrt_##NAME##_f32x4(igrt_##OP##_f32x4(igrt_lo_f32x8(v), igrt_hi_f32x8(v)));   \
    }                                                                                        \
    IGRT_VEC float igrt_##NAME##_f32x16(igrt_f32x16 v)                                       \
    {                                                                                        \
        return igrt_##NAME##_f32x8(igrt_##OP##_f32x8(igrt_lo_f32x16(v), igrt_hi_f32x16(v))); \
    }
#define IGRT_LANE_ADD(x, y) ((x) + (y))
#define IGRT_LANE_MUL(x, y) ((x) * (y))
IGRT_ACROSS(hadd, add, IGRT_LANE_ADD)
IGRT_ACROSS(hmul, mul, IGRT_LANE_MUL)
IGRT_ACROSS(hmax, max, igrt_max_f32)
IGRT_ACROSS(hmin, min, igrt_min_f32)

/* Four vectors' sums at once, each in the same order. */
IGRT_VEC igrt_f32x4 igrt_hadd4_f32x4(igrt_f32x4 a, igrt_f32x4 b, igrt_f32x4 c, igrt_f32x4 d)
{
    const igrt_f32x4 ab = IGRT_SHUFFLE(4, a, b, 0, 1, 4, 5) + IGRT_SHUFFLE(4, a, b, 2, 3, 6, 7),
                     cd = IGRT_SHUFFLE(4, c, d, 0, 1, 4, 5) + IGRT_SHUFFLE(4, c, d, 2, 3, 6, 7);
    return IGRT_SHUFFLE(4, ab, cd, 0, 2, 4, 6) + IGRT_SHUFFLE(4, ab, cd, 1, 3, 5, 7);
}

#define IGRT_HALVES8(a, b)                             \
    (IGRT_SHUFFLE(8, a, b, 0, 1, 2, 3, 8, 9, 10, 11) + \
     IGRT_SHUFFLE(8, a, b, 4, 5, 6, 7, 12, 13, 14, 15))
IGRT_VEC igrt_f32x4 igrt_hadd4_f32x8(igrt_f32x8 a, igrt_f32x8 b, igrt_f32x8 c, igrt_f32x8 d)
{
    const igrt_f32x8 ab = IGRT_HALVES8(a, b), cd = IGRT_HALVES8(c, d);
    igrt_f32x8 s = IGRT_SHUFFLE(8, ab, cd, 0, 1, 4, 5, 8, 9, 12, 13) +
                   IGRT_SHUFFLE(8, ab, cd, 2, 3, 6, 7, 10, 11, 14, 15);
    s += IGRT_SHUFFLE(8, s, s, 1, 0, 3, 2, 5, 4, 7, 6);
    return igrt_lo_f32x8(IGRT_SHUFFLE(8, s, s, 0, 2, 4, 6, 0, 2, 4, 6));
}

#define IGRT_HALVES16(a, b)                                                           \
    (IGRT_SHUFFLE(16, a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) + \
     IGRT_SHUFFLE(16, a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
IGRT_VEC igrt_f32x4 igrt_hadd4_f32x16(igrt_f32x16 a, igrt_f32x16 b, igrt_f32x16 c, igrt_f32x16 d)
{
    const igrt_f32x16 ab = IGRT_HALVES16(a, b), cd = IGRT_HALVES16(c, d);
    igrt_f32x16 s =
        IGRT_SHUFFLE(16, ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
        IGRT_SHUFFLE(16, ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    s += IGRT_SHUFFLE(16, s, s, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    s += IGRT_SHUFFLE(16, s, s, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    s = IGRT_SHUFFLE(16, s, s, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
    return igrt_lo_f32x8(igrt_lo_f32x16(s));
}

/* ---- conversions --------------------------------------------------------------------------- */

/* igrt_cvt_<from>_<to>. f32 -> i32 truncates, a NaN is 0, out of range is the nearest end. */
#define IGRT_CONVERT(N)                                                               \
    IGRT_VEC igrt_f32x##N igrt_cvt_i32x##N##_f32x##N(igrt_i32x##N x)                  \
    {                                                                                 \
        return __builtin_convertvector(x, igrt_f32x##N);                              \
    }                                                                                 \
    IGRT_VEC igrt_i32x##N igrt_cvt_f32x##N##_i32x##N(igrt_f32x##N x)                  \
    {                                                                                 \
        const igrt_f32x##N top = igrt_splat_f32x##N(2147483648.0f), zero = {0};       \
        const igrt_i32x##N big = igrt_le_f32x##N(top, x);                             \
        igrt_f32x##N y = igrt_above_f32x##N(x, -top); /* NaN: -2^31 */                \
        y = igrt_if_le_f32x##N(top, y, zero, y);                                      \
        y = igrt_if_ne_f32x##N(x, x, zero, y);                                        \
        return (__builtin_convertvector(y, igrt_i32x##N) & ~big) | (big & INT32_MAX); \
    }
/* f32 -> i32 of what is known to be in range, or NaN, which is 0. */
#define IGRT_SMALL(N)                                                                    \
    IGRT_VEC igrt_i32x##N igrt_small_f32x##N##_i32x##N(igrt_f32x##N x)                   \
    {                                                                                    \
        const igrt_f32x##N zero = {0};                                                   \
        return __builtin_convertvector(igrt_if_eq_f32x##N(x, x, x, zero), igrt_i32x##N); \
    }
/* The instruction of SVE does all of it. */
#define IGRT_SVE_CONVERT(N)                                                              \
    IGRT_VEC igrt_f32x##N igrt_cvt_i32x##N##_f32x##N(igrt_i32x##N x)                     \
    {                                                                                    \
        return (igrt_f32x##N)(igrt_sve_f32)svcvt_f32_s32_x(IGRT_SVE_ALL, IGRT_SVE_I(x)); \
    }                                                                                    \
    IGRT_VEC igrt_i32x##N igrt_cvt_f32x##N##_i32x##N(igrt_f32x##N x)                     \
    {                                                                                    \
        return (igrt_i32x##N)(igrt_sve_i32)svcvt_s32_f32_x(IGRT_SVE_ALL, IGRT_SVE_F(x)); \
    }                                                                                    \
    IGRT_VEC igrt_i32x##N igrt_small_f32x##N##_i32x##N(igrt_f32x##N x)                   \
    {                                                                                    \
        return igrt_cvt_f32x##N##_i32x##N(x);                                            \
    }
IGRT_SMALL(4)
IGRT_CONVERT(4)
IGRT_BY_SVE_8(IGRT_SVE_CONVERT(8), IGRT_SMALL(8) IGRT_CONVERT(8))
IGRT_BY_SVE_16(IGRT_SVE_CONVERT(16), IGRT_SMALL(16) IGRT_CONVERT(16))

/* A small x, to the nearest integer: what is added in f32 leaves one in the lower bits. */
#define IGRT_NEAREST(N, CALL)                                  \
    IGRT_VEC igrt_i32x##N igrt_nearest_f32x##N(igrt_f32x##N x) \
    {                                                          \
        return (igrt_i32x##N)CALL;                             \
    }
#define IGRT_PLAIN_NEAREST(N) IGRT_NEAREST(N, (x + 12582912.0f) - 0x4b400000)
#if defined(__SSE2__)
IGRT_NEAREST(4, _mm_cvtps_epi32(x))
#else
IGRT_PLAIN_NEAREST(4)
#endif
#if IGRT_HAS_8
IGRT_NEAREST(8, _mm256_cvtps_epi32(x))
#else
IGRT_PLAIN_NEAREST(8)
#endif
#if IGRT_HAS_16
IGRT_NEAREST(16, _mm512_cvtps_epi32(x))
#else
IGRT_PLAIN_NEAREST(16)
#endif

/* igrt_quantize_f32 of igrt_num.h, and igrt_quantized_f32. */
#define IGRT_QUANTIZE(N)                                                                   \
    IGRT_VEC igrt_f32x##N igrt_within_f32x##N(igrt_f32x##N x, int zero, int lo, int hi)    \
    {                                                                                      \
        x = igrt_above_f32x##N(x, igrt_splat_f32x##N((float)(lo - zero)));                 \
        return igrt_below_f32x##N(x, igrt_splat_f32x##N((float)(hi - zero)));              \
    }                                                                                      \
    IGRT_VEC igrt_i32x##N igrt_quantize_f32x##N(igrt_f32x##N x, int zero, int lo, int hi)  \
    {                                                                                      \
        return igrt_nearest_f32x##N(igrt_within_f32x##N(x, zero, lo, hi)) + zero;          \
    }                                                                                      \
    IGRT_VEC igrt_f32x##N igrt_quantized_f32x##N(igrt_f32x##N x, int zero, int lo, int hi) \
    {                                                                                      \
        return (igrt_within_f32x##N(x, zero, lo, hi) + 12582912.0f) - 12582912.0f;         \
    }
/* igrt_digit_f32: the bits stay where they are in the significand of 2^(23 - shift), whose last bit
 * is worth 2^-shift; what is taken away from that is exact.  Bits that reach beyond the significand
 * are moved down before. */
#define IGRT_BITS_OR(N, x, mask, bits) (((x)&igrt_splat_i32x##N(mask)) | igrt_splat_i32x##N(bits))
#define IGRT_BITS_OR_4(x, mask, bits) IGRT_BITS_OR(4, x, mask, bits)
#define IGRT_BITS_OR_8(x, mask, bits) IGRT_BITS_OR(8, x, mask, bits)
#if IGRT_HAS_16
#define IGRT_BITS_OR_16(x, mask, bits)                                                      \
    ((igrt_i32x16)_mm512_ternarylogic_epi32((__m512i)(x), (__m512i)igrt_splat_i32x16(mask), \
                                            (__m512i)igrt_splat_i32x16(bits), 0xea))
#else
#define IGRT_BITS_OR_16(x, mask, bits) IGRT_BITS_OR(16, x, mask, bits)
#endif
#define IGRT_DIGIT(N)                                                                           \
    IGRT_VEC igrt_f32x##N igrt_digit_f32x##N(igrt_i32x##N x, int shift, int mask, int less)     \
    {                                                                                           \
        enum { SIGNIFICAND = 23, ONE = 127 };                                                   \
        const int beyond = (int64_t)mask << shift >> SIGNIFICAND != 0, at = beyond ? 0 : shift; \
        const igrt_i32x##N y = beyond ? (igrt_i32x##N)((igrt_u32x##N)x >> shift) : x;           \
        const int32_t whole = (ONE + SIGNIFICAND - at) << SIGNIFICAND;                          \
        return (igrt_f32x##N)IGRT_BITS_OR_##N(y, mask << at, whole) -                           \
               (igrt_bits_f32((uint32_t)whole) + (float)less);                                  \
    }
IGRT_DIGIT(4)
IGRT_DIGIT(8)
IGRT_DIGIT(16)

/* igrt_top_byte_f32. A shift by 8 or 16 is a shuffle that leaves the other bytes zero. */
#define IGRT_TOP_BYTE(N)                                                                         \
    IGRT_VEC igrt_f32x##N igrt_top_byte_f32x##N(igrt_i32x##N x, int shift)                       \
    {                                                                                            \
        return __builtin_convertvector((igrt_i32x##N)(IGRT_BYTE_UP_##N((igrt_u32x##N)x, shift)), \
                                       igrt_f32x##N);                                            \
    }
#define IGRT_BYTE_UP(x, shift) ((x) << (shift)&0xff000000u) /* of words without a sign */
#define IGRT_BYTE_UP_4(x, shift) IGRT_BYTE_UP(x, shift)
#define IGRT_BYTE_UP_8(x, shift) IGRT_BYTE_UP(x, shift)
#if IGRT_HAS_16 && defined(__AVX512BW__)
IGRT_VEC igrt_u32x16 igrt_byte_up_16(igrt_u32x16 x, int shift)
{
    const uint32_t first = 0x03808080u - ((uint32_t)shift / 8 << 24), next = 4u << 24;
    const igrt_u32x16 from = {first, first + next, first + 2 * next, first + 3 * next,
                              first, first + next, first + 2 * next, first + 3 * next,
                              first, first + next, first + 2 * next, first + 3 * next,
                              first, first + next, first + 2 * next, first + 3 * next};
    return shift == 8 || shift == 16 ? (igrt_u32x16)_mm512_shuffle_epi8((__m512i)x, (__m512i)from)
                                     : IGRT_BYTE_UP(x, shift);
}
#define IGRT_BYTE_UP_16(x, shift) igrt_byte_up_16(x, shift)
#else
#define IGRT_BYTE_UP_16(x, shift) IGRT_BYTE_UP(x, shift)
#endif
IGRT_TOP_BYTE(4)
IGRT_TOP_BYTE(8)
IGRT_TOP_BYTE(16)
IGRT_QUANTIZE(4)
IGRT_QUANTIZE(8)
IGRT_QUANTIZE(16)

#endif
