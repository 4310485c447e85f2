/*
 * igrt_vec64.h - lanes of 64 bits: igrt_vec.h on vectors of 4 and 8 lanes of f64 and i64.
 *
 * The functions are igrt_<op>_f64xN and igrt_<op>_i64xN and give, lane by lane, what igrt_<op>_f64
 * and igrt_<op>_i64 of igrt_num.h give, bit for bit; what belongs to the C library is called lane
 * by lane.  A mask is the i32 vector of as many lanes, as in igrt_vec.h, so that a condition on f32
 * can choose between numbers of 64 bits and the other way round.
 */
#ifndef IGRT_VEC64_H
#define IGRT_VEC64_H

#include "igrt_vec_apart.h"
#include "igrt_vec_rows.h"

typedef double igrt_f64x4 __attribute__((vector_size(32)));
typedef double igrt_f64x8 __attribute__((vector_size(64)));
typedef int64_t igrt_i64x4 __attribute__((vector_size(32)));
typedef int64_t igrt_i64x8 __attribute__((vector_size(64)));
typedef uint64_t igrt_u64x4 __attribute__((vector_size(32)));
typedef uint64_t igrt_u64x8 __attribute__((vector_size(64)));

/* ---- memory, masks -------------------------------------------------------------------------- */

/* i32 lanes to i64 and back: gcc takes several shuffles unless it is told the instruction. */
#define IGRT_WIDE64_4(m) __builtin_convertvector(m, igrt_i64x4)
#define IGRT_HALF64_4(m) __builtin_convertvector(m, igrt_i32x4)
#if IGRT_HAS_16
#define IGRT_WIDE64_8(m) ((igrt_i64x8)_mm512_cvtepi32_epi64((__m256i)(m)))
#define IGRT_HALF64_8(m) ((igrt_i32x8)_mm512_cvtepi64_epi32((__m512i)(m)))
#else
#define IGRT_WIDE64_8(m) __builtin_convertvector(m, igrt_i64x8)
#define IGRT_HALF64_8(m) __builtin_convertvector(m, igrt_i32x8)
#endif

#define IGRT_MEMORY64(T, E, N)                                                                 \
    typedef E igrt_mem_##T##x##N __attribute__((vector_size(8 * (N)), aligned(8), may_alias)); \
    IGRT_VEC igrt_##T##x##N igrt_load_##T##x##N(const E *p)                                    \
    {                                                                                          \
        return *(const igrt_mem_##T##x##N *)p;                                                 \
    }                                                                                          \
    IGRT_VEC void igrt_store_##T##x##N(E *p, igrt_##T##x##N v)                                 \
    {                                                                                          \
        *(igrt_mem_##T##x##N *)p = v;                                                          \
    }                                                                                          \
    IGRT_VEC igrt_##T##x##N igrt_splat_##T##x##N(E x)                                          \
    {                                                                                          \
        return x - (igrt_##T##x##N){0}; /* x - 0 is x, of -0 too */                            \
    }                                                                                          \
    IGRT_VEC igrt_##T##x##N igrt_where_##T##x##N(igrt_i32x##N m, igrt_##T##x##N a,             \
                                                 igrt_##T##x##N b)                             \
    {                                                                                          \
        const igrt_i64x##N wide = IGRT_WIDE64_##N(m);                                          \
        return (igrt_##T##x##N)(((igrt_i64x##N)a & wide) | ((igrt_i64x##N)b & ~wide));         \
    }
#define IGRT_COMPARE64(T, N, NAME, OP)                                                \
    IGRT_VEC igrt_i32x##N igrt_##NAME##_##T##x##N(igrt_##T##x##N x, igrt_##T##x##N y) \
    {                                                                                 \
        return IGRT_HALF64_##N((igrt_i64x##N)(x OP y));                               \
    }
#define IGRT_COMPARES64(T, N)    \
    IGRT_COMPARE64(T, N, eq, ==) \
    IGRT_COMPARE64(T, N, ne, !=) \
    IGRT_COMPARE64(T, N, lt, <)  \
    IGRT_COMPARE64(T, N, le, <=)
#define IGRT_TYPES64(N)            \
    IGRT_MEMORY64(i64, int64_t, N) \
    IGRT_MEMORY64(f64, double, N)  \
    IGRT_COMPARES64(i64, N)        \
    IGRT_COMPARES64(f64, N)
IGRT_TYPES64(4)
IGRT_TYPES64(8)
IGRT_PARTS(i64, int64_t, 4)
IGRT_PARTS(f64, double, 4)
#if IGRT_HAS_16
#define IGRT_PARTS512_64(T, E, V, S)                                                \
    IGRT_VEC igrt_##T##x8 igrt_load_part_##T##x8(const E *p, int n)                 \
    {                                                                               \
        return (igrt_##T##x8)_mm512_maskz_loadu_##S((__mmask8)((1u << n) - 1u), p); \
    }                                                                               \
    IGRT_VEC void igrt_store_part_##T##x8(E *p, igrt_##T##x8 v, int n)              \
    {                                                                               \
        _mm512_mask_storeu_##S(p, (__mmask8)((1u << n) - 1u), (V)v);                \
    }
IGRT_PARTS512_64(i64, int64_t, __m512i, epi64)
IGRT_PARTS512_64(f64, double, __m512d, pd)
#else
IGRT_PARTS(i64, int64_t, 8)
IGRT_PARTS(f64, double, 8)
#endif

IGRT_WIDE_APART(i64, int64_t, 4)
IGRT_WIDE_APART(i64, int64_t, 8)
IGRT_WIDE_APART(f64, double, 4)
IGRT_WIDE_APART(f64, double, 8)

#if !defined(__clang__) && __GNUC__ < 12 /* the places of lanes have their width */
#undef IGRT_SHUFFLE
#define IGRT_SHUFFLE(N, a, b, ...) __builtin_shuffle(a, b, (igrt_i64x##N){__VA_ARGS__})
#endif
IGRT_LOAD_ROWS(4, f64x4, f64, double)
IGRT_LOAD_ROWS(8, f64x8, f64, double)
IGRT_LOAD_ROWS(4, i64x4, i64, int64_t)
IGRT_LOAD_ROWS(8, i64x8, i64, int64_t)

/* ---- integers, which wrap -------------------------------------------------------------------- */

#define IGRT_INT64(N, NAME, OP)                                                 \
    IGRT_VEC igrt_i64x##N igrt_##NAME##_i64x##N(igrt_i64x##N x, igrt_i64x##N y) \
    {                                                                           \
        return (igrt_i64x##N)((igrt_u64x##N)x OP(igrt_u64x##N) y);              \
    }
#define IGRT_INTS64(N)                                                     \
    IGRT_INT64(N, add, +)                                                  \
    IGRT_INT64(N, sub, -)                                                  \
    IGRT_INT64(N, mul, *)                                                  \
    IGRT_INT64(N, and, &)                                                  \
    IGRT_VEC igrt_i64x##N igrt_max_i64x##N(igrt_i64x##N x, igrt_i64x##N y) \
    {                                                                      \
        const igrt_i64x##N m = (igrt_i64x##N)(x < y);                      \
        return (y & m) | (x & ~m);                                         \
    }                                                                      \
    IGRT_VEC igrt_i64x##N igrt_min_i64x##N(igrt_i64x##N x, igrt_i64x##N y) \
    {                                                                      \
        const igrt_i64x##N m = (igrt_i64x##N)(y < x);                      \
        return (y & m) | (x & ~m);                                         \
    }
IGRT_INTS64(4)
IGRT_INTS64(8)

/* ---- f64 ------------------------------------------------------------------------------------- */

#define IGRT_PICK64(N, m, a, b) \
    ((igrt_f64x##N)(((igrt_i64x##N)(a) & (m)) | ((igrt_i64x##N)(b) & ~(m))))
#define IGRT_PLAIN64(N)                                                              \
    IGRT_VEC igrt_f64x##N igrt_max_f64x##N(igrt_f64x##N x, igrt_f64x##N y)           \
    {                                                                                \
        return IGRT_PICK64(N, (igrt_i64x##N)(x > y) | (igrt_i64x##N)(x != x), x, y); \
    }                                                                                \
    IGRT_VEC igrt_f64x##N igrt_min_f64x##N(igrt_f64x##N x, igrt_f64x##N y)           \
    {                                                                                \
        return IGRT_PICK64(N, (igrt_i64x##N)(x < y) | (igrt_i64x##N)(x != x), x, y); \
    }                                                                                \
    IGRT_LANES1(f64, double, N, sqrt, sqrt)                                          \
    IGRT_LANES1(f64, double, N, floor, floor)                                        \
    IGRT_LANES1(f64, double, N, ceil, ceil)                                          \
    IGRT_LANES1(f64, double, N, trunc, trunc)                                        \
    IGRT_LANES1(f64, double, N, round, igrt_round_f64)
#define IGRT_EACH64_MULADD(N)                                                                 \
    IGRT_VEC igrt_f64x##N igrt_muladd_f64x##N(igrt_f64x##N x, igrt_f64x##N y, igrt_f64x##N z) \
    {                                                                                         \
        for (int i = 0; i < N; i++)                                                           \
            z[i] = igrt_muladd_f64(x[i], y[i], z[i]);                                         \
        return z;                                                                             \
    }

#if defined(__AVX__)
IGRT_NATIVE2(f64, 4, max,
             _mm256_blendv_pd(_mm256_max_pd(x, y), x, _mm256_cmp_pd(x, x, _CMP_UNORD_Q)))
IGRT_NATIVE2(f64, 4, min,
             _mm256_blendv_pd(_mm256_min_pd(x, y), x, _mm256_cmp_pd(x, x, _CMP_UNORD_Q)))
IGRT_NATIVE1(f64, 4, sqrt, _mm256_sqrt_pd(x))
IGRT_NATIVE1(f64, 4, floor, _mm256_floor_pd(x))
IGRT_NATIVE1(f64, 4, ceil, _mm256_ceil_pd(x))
IGRT_NATIVE1(f64, 4, trunc, _mm256_round_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(f64, 4, round, _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#else
IGRT_PLAIN64(4)
#endif
#if IGRT_HAS_16
IGRT_NATIVE2(f64, 8, max, _mm512_mask_max_pd(x, _mm512_cmp_pd_mask(x, x, _CMP_ORD_Q), x, y))
IGRT_NATIVE2(f64, 8, min, _mm512_mask_min_pd(x, _mm512_cmp_pd_mask(x, x, _CMP_ORD_Q), x, y))
IGRT_NATIVE1(f64, 8, sqrt, _mm512_sqrt_pd(x))
IGRT_NATIVE1(f64, 8, floor, _mm512_roundscale_pd(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(f64, 8, ceil, _mm512_roundscale_pd(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(f64, 8, trunc, _mm512_roundscale_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(f64, 8, round, _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#else
IGRT_PLAIN64(8)
#endif
#if defined(__FMA__)
IGRT_NATIVE3(f64, 4, muladd, _mm256_fmadd_pd(x, y, z))
#if IGRT_HAS_16
IGRT_NATIVE3(f64, 8, muladd, _mm512_fmadd_pd(x, y, z))
#else
IGRT_EACH64_MULADD(8)
#endif
#elif defined(__aarch64__)
IGRT_EACH64_MULADD(4)
IGRT_EACH64_MULADD(8)
#else
IGRT_NATIVE3(f64, 4, muladd, (x * y + z))
IGRT_NATIVE3(f64, 8, muladd, (x * y + z))
#endif

#define IGRT_SIMPLE64(N)                                     \
    IGRT_VEC igrt_i32x##N igrt_isnan_f64x##N(igrt_f64x##N x) \
    {                                                        \
        return igrt_ne_f64x##N(x, x);                        \
    }                                                        \
    IGRT_NATIVE1(f64, N, neg, (-x))                          \
    IGRT_NATIVE1(f64, N, abs, ((igrt_i64x##N)x & INT64_MAX)) \
    IGRT_NATIVE2(f64, N, add, (x + y))                       \
    IGRT_NATIVE2(f64, N, mul, (x * y))                       \
    IGRT_LANES1(f64, double, N, sign, igrt_sign_f64)         \
    IGRT_LANES1(f64, double, N, exp, exp)                    \
    IGRT_LANES1(f64, double, N, log, igrt_log_f64)           \
    IGRT_LANES1(f64, double, N, sin, sin)                    \
    IGRT_LANES1(f64, double, N, cos, cos)                    \
    IGRT_LANES1(f64, double, N, tan, tan)                    \
    IGRT_LANES1(f64, double, N, asin, asin)                  \
    IGRT_LANES1(f64, double, N, acos, acos)                  \
    IGRT_LANES1(f64, double, N, atan, atan)                  \
    IGRT_LANES1(f64, double, N, sinh, sinh)                  \
    IGRT_LANES1(f64, double, N, cosh, cosh)                  \
    IGRT_LANES1(f64, double, N, tanh, tanh)                  \
    IGRT_LANES1(f64, double, N, asinh, asinh)                \
    IGRT_LANES1(f64, double, N, acosh, acosh)                \
    IGRT_LANES1(f64, double, N, atanh, atanh)                \
    IGRT_LANES1(f64, double, N, erf, igrt_erf_f64)           \
    IGRT_LANES2(f64, double, N, pow, igrt_pow_f64)           \
    IGRT_LANES2(f64, double, N, mod, igrt_mod_f64)           \
    IGRT_LANES2(f64, double, N, fmod, igrt_fmod_f64)
IGRT_SIMPLE64(4)
IGRT_SIMPLE64(8)

/* ---- all lanes into one: lane i with lane i + N/2, then so on with the halves ---------------- */

#define IGRT_ACROSS64(N, T, E, NAME, OP)                 \
    IGRT_VEC E igrt_##NAME##_##T##x##N(igrt_##T##x##N v) \
    {                                                    \
        E t[N];                                          \
        igrt_store_##T##x##N(t, v);                      \
        for (int halved = 1; halved <= 3; halved++)      \
            for (int i = 0; i < N >> halved; i++)        \
                t[i] = OP(t[i], t[i + (N >> halved)]);   \
        return t[0];                                     \
    }
#define IGRT_ACROSS64_ALL(N)                           \
    IGRT_ACROSS64(N, f64, double, hadd, IGRT_LANE_ADD) \
    IGRT_ACROSS64(N, f64, double, hmul, IGRT_LANE_MUL) \
    IGRT_ACROSS64(N, f64, double, hmax, igrt_max_f64)  \
    IGRT_ACROSS64(N, f64, double, hmin, igrt_min_f64)  \
    IGRT_ACROSS64(N, i64, int64_t, hadd, igrt_add_i64) \
    IGRT_ACROSS64(N, i64, int64_t, hmul, igrt_mul_i64) \
    IGRT_ACROSS64(N, i64, int64_t, hmax, igrt_max_i64) \
    IGRT_ACROSS64(N, i64, int64_t, hmin, igrt_min_i64)
IGRT_ACROSS64_ALL(4)
IGRT_ACROSS64_ALL(8)

/* ---- conversions ----------------------------------------------------------------------------- */

/* igrt_cvt_<from>_<to>, and igrt_low_<from>_i32xN: the low 32 bits of a float -> i64, which
 * saturates. */
#define IGRT_CVT64(N, FROM, TO)                                                      \
    IGRT_VEC igrt_##TO##x##N igrt_cvt_##FROM##x##N##_##TO##x##N(igrt_##FROM##x##N x) \
    {                                                                                \
        return __builtin_convertvector(x, igrt_##TO##x##N);                          \
    }
#define IGRT_EACH_CVT64(N, FROM, E, TO, F, NAME, FN)                                      \
    IGRT_VEC igrt_##TO##x##N igrt_##NAME##_##FROM##x##N##_##TO##x##N(igrt_##FROM##x##N x) \
    {                                                                                     \
        E t[N];                                                                           \
        F u[N];                                                                           \
        igrt_store_##FROM##x##N(t, x);                                                    \
        for (int i = 0; i < N; i++)                                                       \
            u[i] = (F)FN(t[i]);                                                           \
        return igrt_load_##TO##x##N(u);                                                   \
    }
#define IGRT_CONVERT64(N)                                               \
    IGRT_CVT64(N, f64, f32)                                             \
    IGRT_CVT64(N, i32, f64)                                             \
    IGRT_VEC igrt_i64x##N igrt_cvt_i32x##N##_i64x##N(igrt_i32x##N x)    \
    {                                                                   \
        return IGRT_WIDE64_##N(x);                                      \
    }                                                                   \
    IGRT_VEC igrt_i32x##N igrt_cvt_i64x##N##_i32x##N(igrt_i64x##N x)    \
    {                                                                   \
        return IGRT_HALF64_##N(x);                                      \
    }                                                                   \
    IGRT_CVT64(N, i64, f32)                                             \
    IGRT_CVT64(N, i64, f64)                                             \
    IGRT_EACH_CVT64(N, f64, double, i64, int64_t, cvt, igrt_f64_to_i64) \
    IGRT_EACH_CVT64(N, f32, float, i64, int64_t, cvt, igrt_f32_to_i64)  \
    IGRT_EACH_CVT64(N, f64, double, i32, int32_t, cvt, igrt_f64_to_i32) \
    IGRT_EACH_CVT64(N, f64, double, i32, int32_t, low, igrt_f64_to_u32)
IGRT_CONVERT64(4)
IGRT_CONVERT64(8)

/* f32 -> f64 by halves: gcc 12 ends by an internal error where what takes two registers is
 * converted at once and then compared. */
#define IGRT_HALVES_CVT64(N, HALF)                                             \
    typedef float igrt_half_f32x##N __attribute__((vector_size(4 * (HALF))));  \
    typedef double igrt_half_f64x##N __attribute__((vector_size(8 * (HALF)))); \
    IGRT_VEC igrt_f64x##N igrt_cvt_f32x##N##_f64x##N(igrt_f32x##N x)           \
    {                                                                          \
        const union {                                                          \
            igrt_f32x##N v;                                                    \
            igrt_half_f32x##N half[2];                                         \
        } from = {x};                                                          \
        const union {                                                          \
            igrt_half_f64x##N half[2];                                         \
            igrt_f64x##N v;                                                    \
        } to = {{__builtin_convertvector(from.half[0], igrt_half_f64x##N),     \
                 __builtin_convertvector(from.half[1], igrt_half_f64x##N)}};   \
        return to.v;                                                           \
    }
#if defined(__clang__) || IGRT_HAS_8
IGRT_CVT64(4, f32, f64)
#else
IGRT_HALVES_CVT64(4, 2)
#endif
#if defined(__clang__) || IGRT_HAS_16
IGRT_CVT64(8, f32, f64)
#else
IGRT_HALVES_CVT64(8, 4)
#endif

#endif
