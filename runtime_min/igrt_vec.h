/*
 * igrt_vec.h - the f32 operations of a model on vectors of 4, 8 and 16 lanes.
 *
 * The functions are igrt_<op>_f32x4, _f32x8, _f32x16 and give, lane by lane, what igrt_<op>_f32 of
 * igrt_num.h gives: the same bits for arithmetic, comparisons, max, min, rounding, conversions, and
 * for the operations that are loops over the C library. exp, log, tanh, erf, sin and cos have
 * vector forms of their own (docs/numerics.md says how exact they are).
 *
 * The code is GNU vector extensions, so it compiles for every ISA that gcc and clang know. Where a
 * plain expression becomes many instructions, the widest native vector is written with intrinsics,
 * and wider ones are made of two halves. A mask is an i32 vector of 0 and -1.
 *
 * Requires gcc or clang, the default rounding mode, no -ffast-math.
 */
#ifndef IGRT_VEC_H
#define IGRT_VEC_H

#include "igrt_num.h"

/* ---- the compiler ------------------------------------------------------------------------ */

#define IGRT_VEC __attribute__((unused, always_inline)) static inline
#define IGRT_VECTOR(N) __attribute__((vector_size(4 * (N))))
#define IGRT_UNALIGNED(N) __attribute__((vector_size(4 * (N)), aligned(4), may_alias))
/* Everything here is inlined, so how a vector that the ISA lacks would be passed does not matter. */
#pragma GCC diagnostic ignored "-Wpsabi"

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#if defined(__clang__) || __GNUC__ >= 12
#define IGRT_SHUFFLES 1
#else
#define IGRT_SHUFFLES 0
#endif

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define IGRT_NEON64 1
#endif

/* ---- types, lanes ------------------------------------------------------------------------ */

typedef float igrt_f32x4 IGRT_VECTOR(4);
typedef float igrt_f32x8 IGRT_VECTOR(8);
typedef float igrt_f32x16 IGRT_VECTOR(16);
typedef int32_t igrt_i32x4 IGRT_VECTOR(4);
typedef int32_t igrt_i32x8 IGRT_VECTOR(8);
typedef int32_t igrt_i32x16 IGRT_VECTOR(16);
typedef uint32_t igrt_u32x4 IGRT_VECTOR(4);
typedef uint32_t igrt_u32x8 IGRT_VECTOR(8);
typedef uint32_t igrt_u32x16 IGRT_VECTOR(16);

/* A value in every lane. */
#define IGRT_SPLATS(T, E)                                                            \
    IGRT_VEC igrt_##T##x4 igrt_splat_##T##x4(E x)                                    \
    {                                                                                \
        return (igrt_##T##x4){x, x, x, x};                                           \
    }                                                                                \
    IGRT_VEC igrt_##T##x8 igrt_splat_##T##x8(E x)                                    \
    {                                                                                \
        return (igrt_##T##x8){x, x, x, x, x, x, x, x};                               \
    }                                                                                \
    IGRT_VEC igrt_##T##x16 igrt_splat_##T##x16(E x)                                  \
    {                                                                                \
        return (igrt_##T##x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};      \
    }
IGRT_SPLATS(f32, float)
IGRT_SPLATS(i32, int32_t)
IGRT_SPLATS(u32, uint32_t)

/* base, base + 1, ... */
IGRT_VEC igrt_i32x4 igrt_iota_i32x4(int base)
{
    return (igrt_i32x4){0, 1, 2, 3} + base;
}

IGRT_VEC igrt_i32x8 igrt_iota_i32x8(int base)
{
    return (igrt_i32x8){0, 1, 2, 3, 4, 5, 6, 7} + base;
}

IGRT_VEC igrt_i32x16 igrt_iota_i32x16(int base)
{
    return (igrt_i32x16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + base;
}

/* The lower half, the upper half, and the vector of two halves. */
#if IGRT_SHUFFLES
#define IGRT_HALVES(T)                                                               \
    IGRT_VEC igrt_##T##x4 igrt_lo_##T##x8(igrt_##T##x8 v)                            \
    {                                                                                \
        return __builtin_shufflevector(v, v, 0, 1, 2, 3);                            \
    }                                                                                \
    IGRT_VEC igrt_##T##x4 igrt_hi_##T##x8(igrt_##T##x8 v)                            \
    {                                                                                \
        return __builtin_shufflevector(v, v, 4, 5, 6, 7);                            \
    }                                                                                \
    IGRT_VEC igrt_##T##x8 igrt_join_##T##x8(igrt_##T##x4 a, igrt_##T##x4 b)          \
    {                                                                                \
        return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);                \
    }                                                                                \
    IGRT_VEC igrt_##T##x8 igrt_lo_##T##x16(igrt_##T##x16 v)                          \
    {                                                                                \
        return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);                \
    }                                                                                \
    IGRT_VEC igrt_##T##x8 igrt_hi_##T##x16(igrt_##T##x16 v)                          \
    {                                                                                \
        return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);          \
    }                                                                                \
    IGRT_VEC igrt_##T##x16 igrt_join_##T##x16(igrt_##T##x8 a, igrt_##T##x8 b)        \
    {                                                                                \
        return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,   \
                                       12, 13, 14, 15);                              \
    }
#else
#define IGRT_HALVES_N(T, N, H)                                                       \
    typedef union igrt_pair_##T##x##N {                                              \
        igrt_##T##x##N v;                                                            \
        igrt_##T##x##H h[2];                                                         \
    } igrt_pair_##T##x##N;                                                           \
    IGRT_VEC igrt_##T##x##H igrt_lo_##T##x##N(igrt_##T##x##N v)                      \
    {                                                                                \
        return ((igrt_pair_##T##x##N){v}).h[0];                                      \
    }                                                                                \
    IGRT_VEC igrt_##T##x##H igrt_hi_##T##x##N(igrt_##T##x##N v)                      \
    {                                                                                \
        return ((igrt_pair_##T##x##N){v}).h[1];                                      \
    }                                                                                \
    IGRT_VEC igrt_##T##x##N igrt_join_##T##x##N(igrt_##T##x##H a, igrt_##T##x##H b)  \
    {                                                                                \
        return ((igrt_pair_##T##x##N){.h = {a, b}}).v;                               \
    }
#define IGRT_HALVES(T) IGRT_HALVES_N(T, 8, 4) IGRT_HALVES_N(T, 16, 8)
#endif
IGRT_HALVES(f32)
IGRT_HALVES(i32)

/* ---- memory ------------------------------------------------------------------------------ */

/* Any alignment, any declared type. The part functions touch the first n elements only, 0 <= n <= N;
 * the other lanes are loaded as 0. */
#define IGRT_MEMORY(T, E, N)                                                         \
    typedef E igrt_mem_##T##x##N IGRT_UNALIGNED(N);                                  \
    IGRT_VEC igrt_##T##x##N igrt_load_##T##x##N(const E *p)                          \
    {                                                                                \
        return *(const igrt_mem_##T##x##N *)p;                                       \
    }                                                                                \
    IGRT_VEC void igrt_store_##T##x##N(E *p, igrt_##T##x##N v)                       \
    {                                                                                \
        *(igrt_mem_##T##x##N *)p = v;                                                \
    }
#define IGRT_PARTS(T, E, N)                                                          \
    IGRT_VEC igrt_##T##x##N igrt_load_part_##T##x##N(const E *p, int n)              \
    {                                                                                \
        E t[N] = {0};                                                                \
        for (int i = 0; i < n; i++)                                                  \
            t[i] = p[i];                                                             \
        return igrt_load_##T##x##N(t);                                               \
    }                                                                                \
    IGRT_VEC void igrt_store_part_##T##x##N(E *p, igrt_##T##x##N v, int n)           \
    {                                                                                \
        E t[N];                                                                      \
        igrt_store_##T##x##N(t, v);                                                  \
        for (int i = 0; i < n; i++)                                                  \
            p[i] = t[i];                                                             \
    }
IGRT_MEMORY(f32, float, 4)
IGRT_MEMORY(f32, float, 8)
IGRT_MEMORY(f32, float, 16)
IGRT_MEMORY(i32, int32_t, 4)
IGRT_MEMORY(i32, int32_t, 8)
IGRT_MEMORY(i32, int32_t, 16)

#if defined(__AVX__)
/* Masked moves: a lane whose mask is 0 is not touched. */
#define IGRT_PARTS_AVX(N, P)                                                         \
    IGRT_VEC igrt_f32x##N igrt_load_part_f32x##N(const float *p, int n)              \
    {                                                                                \
        const igrt_i32x##N m = igrt_iota_i32x##N(0) < igrt_splat_i32x##N(n);         \
        return (igrt_f32x##N)P##_maskload_ps(p, IGRT_M##N(m));                       \
    }                                                                                \
    IGRT_VEC void igrt_store_part_f32x##N(float *p, igrt_f32x##N v, int n)           \
    {                                                                                \
        const igrt_i32x##N m = igrt_iota_i32x##N(0) < igrt_splat_i32x##N(n);         \
        P##_maskstore_ps(p, IGRT_M##N(m), v);                                        \
    }
#define IGRT_M4(m) ((__m128i)(m))
#define IGRT_M8(m) ((__m256i)(m))
IGRT_PARTS_AVX(4, _mm)
IGRT_PARTS_AVX(8, _mm256)
#else
IGRT_PARTS(f32, float, 4)
IGRT_PARTS(f32, float, 8)
#endif
#if defined(__AVX512F__)
IGRT_VEC igrt_f32x16 igrt_load_part_f32x16(const float *p, int n)
{
    return (igrt_f32x16)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}

IGRT_VEC void igrt_store_part_f32x16(float *p, igrt_f32x16 v, int n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), v);
}
#else
IGRT_PARTS(f32, float, 16)
#endif
IGRT_PARTS(i32, int32_t, 4)
IGRT_PARTS(i32, int32_t, 8)
IGRT_PARTS(i32, int32_t, 16)

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
#define IGRT_PICK(N, m, a, b)                                                        \
    ((igrt_f32x##N)((IGRT_BITS(N, a) & (m)) | (IGRT_BITS(N, b) & ~(m))))

#define IGRT_PLAIN_BASE(N)                                                           \
    IGRT_VEC igrt_f32x##N igrt_above_f32x##N(igrt_f32x##N x, igrt_f32x##N y)         \
    {                                                                                \
        return IGRT_PICK(N, IGRT_BITS(N, x > y), x, y);                              \
    }                                                                                \
    IGRT_VEC igrt_f32x##N igrt_below_f32x##N(igrt_f32x##N x, igrt_f32x##N y)         \
    {                                                                                \
        return IGRT_PICK(N, IGRT_BITS(N, x < y), x, y);                              \
    }                                                                                \
    IGRT_VEC igrt_f32x##N igrt_max_f32x##N(igrt_f32x##N x, igrt_f32x##N y)           \
    {                                                                                \
        return IGRT_PICK(N, IGRT_BITS(N, x > y) | IGRT_BITS(N, x != x), x, y);       \
    }                                                                                \
    IGRT_VEC igrt_f32x##N igrt_min_f32x##N(igrt_f32x##N x, igrt_f32x##N y)           \
    {                                                                                \
        return IGRT_PICK(N, IGRT_BITS(N, x < y) | IGRT_BITS(N, x != x), x, y);       \
    }
#define IGRT_PLAIN_WHERE(N)                                                          \
    IGRT_VEC igrt_f32x##N igrt_where_f32x##N(igrt_i32x##N m, igrt_f32x##N a,         \
                                             igrt_f32x##N b)                         \
    {                                                                                \
        return IGRT_PICK(N, m, a, b);                                                \
    }
#define IGRT_PLAIN_MULADD(N)                                                         \
    IGRT_VEC igrt_f32x##N igrt_muladd_f32x##N(igrt_f32x##N x, igrt_f32x##N y,        \
                                              igrt_f32x##N z)                        \
    {                                                                                \
        return x * y + z;                                                            \
    }
#define IGRT_IF(N, NAME, OP)                                                         \
    IGRT_VEC igrt_f32x##N igrt_if_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y,   \
                                                   igrt_f32x##N a, igrt_f32x##N b)   \
    {                                                                                \
        return igrt_where_f32x##N(IGRT_BITS(N, x OP y), a, b);                       \
    }
#define IGRT_IFS(N) IGRT_IF(N, eq, ==) IGRT_IF(N, ne, !=) IGRT_IF(N, lt, <) IGRT_IF(N, le, <=)

/* A function of one lane at a time. */
#define IGRT_LANES1(N, NAME, FN)                                                     \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x)                      \
    {                                                                                \
        float t[N];                                                                  \
        igrt_store_f32x##N(t, x);                                                    \
        for (int i = 0; i < N; i++)                                                  \
            t[i] = FN(t[i]);                                                         \
        return igrt_load_f32x##N(t);                                                 \
    }
#define IGRT_LANES2(N, NAME, FN)                                                     \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y)      \
    {                                                                                \
        float t[N], u[N];                                                            \
        igrt_store_f32x##N(t, x);                                                    \
        igrt_store_f32x##N(u, y);                                                    \
        for (int i = 0; i < N; i++)                                                  \
            t[i] = FN(t[i], u[i]);                                                   \
        return igrt_load_f32x##N(t);                                                 \
    }
#define IGRT_LANES_ROUNDING(N)                                                       \
    IGRT_LANES1(N, floor, floorf)                                                    \
    IGRT_LANES1(N, ceil, ceilf)                                                      \
    IGRT_LANES1(N, trunc, truncf)                                                    \
    IGRT_LANES1(N, round, rintf)

/* An intrinsic as a function. */
#define IGRT_NATIVE1(N, NAME, CALL)                                                  \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x)                      \
    {                                                                                \
        return (igrt_f32x##N)CALL;                                                   \
    }
#define IGRT_NATIVE2(N, NAME, CALL)                                                  \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y)      \
    {                                                                                \
        return (igrt_f32x##N)CALL;                                                   \
    }
#define IGRT_NATIVE3(N, NAME, CALL)                                                  \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y,      \
                                                igrt_f32x##N z)                      \
    {                                                                                \
        return (igrt_f32x##N)CALL;                                                   \
    }
#define IGRT_NATIVE_WHERE(N, CALL)                                                   \
    IGRT_VEC igrt_f32x##N igrt_where_f32x##N(igrt_i32x##N m, igrt_f32x##N a,         \
                                             igrt_f32x##N b)                         \
    {                                                                                \
        return (igrt_f32x##N)CALL;                                                   \
    }

/* The function on two halves. */
#define IGRT_SPLIT1(N, H, NAME)                                                      \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x)                      \
    {                                                                                \
        return igrt_join_f32x##N(igrt_##NAME##_f32x##H(igrt_lo_f32x##N(x)),          \
                                 igrt_##NAME##_f32x##H(igrt_hi_f32x##N(x)));         \
    }
#define IGRT_SPLIT2(N, H, NAME)                                                      \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y)      \
    {                                                                                \
        return igrt_join_f32x##N(                                                    \
            igrt_##NAME##_f32x##H(igrt_lo_f32x##N(x), igrt_lo_f32x##N(y)),           \
            igrt_##NAME##_f32x##H(igrt_hi_f32x##N(x), igrt_hi_f32x##N(y)));          \
    }
#define IGRT_SPLIT3(N, H, NAME)                                                      \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y,      \
                                                igrt_f32x##N z)                      \
    {                                                                                \
        return igrt_join_f32x##N(                                                    \
            igrt_##NAME##_f32x##H(igrt_lo_f32x##N(x), igrt_lo_f32x##N(y),            \
                                  igrt_lo_f32x##N(z)),                               \
            igrt_##NAME##_f32x##H(igrt_hi_f32x##N(x), igrt_hi_f32x##N(y),            \
                                  igrt_hi_f32x##N(z)));                              \
    }
#define IGRT_SPLIT_WHERE(N, H)                                                       \
    IGRT_VEC igrt_f32x##N igrt_where_f32x##N(igrt_i32x##N m, igrt_f32x##N a,         \
                                             igrt_f32x##N b)                         \
    {                                                                                \
        return igrt_join_f32x##N(                                                    \
            igrt_where_f32x##H(igrt_lo_i32x##N(m), igrt_lo_f32x##N(a),               \
                               igrt_lo_f32x##N(b)),                                  \
            igrt_where_f32x##H(igrt_hi_i32x##N(m), igrt_hi_f32x##N(a),               \
                               igrt_hi_f32x##N(b)));                                 \
    }
#define IGRT_SPLIT_BASE(N, H)                                                        \
    IGRT_SPLIT_WHERE(N, H)                                                           \
    IGRT_IFS(N)                                                                      \
    IGRT_SPLIT2(N, H, above)                                                         \
    IGRT_SPLIT2(N, H, below)                                                         \
    IGRT_SPLIT2(N, H, max)                                                           \
    IGRT_SPLIT2(N, H, min)                                                           \
    IGRT_SPLIT1(N, H, sqrt)                                                          \
    IGRT_SPLIT1(N, H, floor)                                                         \
    IGRT_SPLIT1(N, H, ceil)                                                          \
    IGRT_SPLIT1(N, H, trunc)                                                         \
    IGRT_SPLIT1(N, H, round)                                                         \
    IGRT_SPLIT3(N, H, muladd)

/* 4 lanes */
#if defined(__SSE2__)
#if defined(__SSE4_1__)
IGRT_NATIVE_WHERE(4, _mm_blendv_ps(b, a, (__m128)m))
IGRT_NATIVE1(4, floor, _mm_floor_ps(x))
IGRT_NATIVE1(4, ceil, _mm_ceil_ps(x))
IGRT_NATIVE1(4, trunc, _mm_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(4, round, _mm_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#else
IGRT_PLAIN_WHERE(4)
IGRT_LANES_ROUNDING(4)
#endif
IGRT_NATIVE2(4, above, _mm_max_ps(x, y))
IGRT_NATIVE2(4, below, _mm_min_ps(x, y))
IGRT_NATIVE2(4, max, igrt_where_f32x4((igrt_i32x4)(x != x), x, _mm_max_ps(x, y)))
IGRT_NATIVE2(4, min, igrt_where_f32x4((igrt_i32x4)(x != x), x, _mm_min_ps(x, y)))
IGRT_NATIVE1(4, sqrt, _mm_sqrt_ps(x))
#elif defined(IGRT_NEON64)
IGRT_NATIVE_WHERE(4, vbslq_f32((uint32x4_t)m, (float32x4_t)a, (float32x4_t)b))
IGRT_PLAIN_BASE(4)
IGRT_NATIVE1(4, sqrt, vsqrtq_f32((float32x4_t)x))
IGRT_NATIVE1(4, floor, vrndmq_f32((float32x4_t)x))
IGRT_NATIVE1(4, ceil, vrndpq_f32((float32x4_t)x))
IGRT_NATIVE1(4, trunc, vrndq_f32((float32x4_t)x))
IGRT_NATIVE1(4, round, vrndnq_f32((float32x4_t)x))
#else
IGRT_PLAIN_WHERE(4)
IGRT_PLAIN_BASE(4)
IGRT_LANES1(4, sqrt, sqrtf)
IGRT_LANES_ROUNDING(4)
#endif
IGRT_IFS(4)
#if defined(__FMA__)
IGRT_NATIVE3(4, muladd, _mm_fmadd_ps(x, y, z))
#elif defined(__ARM_FEATURE_FMA) && defined(IGRT_NEON64)
IGRT_NATIVE3(4, muladd, vfmaq_f32((float32x4_t)z, (float32x4_t)x, (float32x4_t)y))
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

/* 8 lanes */
#if defined(__AVX__)
IGRT_NATIVE_WHERE(8, _mm256_blendv_ps(b, a, (__m256)m))
IGRT_IFS(8)
IGRT_NATIVE2(8, above, _mm256_max_ps(x, y))
IGRT_NATIVE2(8, below, _mm256_min_ps(x, y))
IGRT_NATIVE2(8, max, igrt_if_ne_f32x8(x, x, x, _mm256_max_ps(x, y)))
IGRT_NATIVE2(8, min, igrt_if_ne_f32x8(x, x, x, _mm256_min_ps(x, y)))
IGRT_NATIVE1(8, sqrt, _mm256_sqrt_ps(x))
IGRT_NATIVE1(8, floor, _mm256_floor_ps(x))
IGRT_NATIVE1(8, ceil, _mm256_ceil_ps(x))
IGRT_NATIVE1(8, trunc, _mm256_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(8, round, _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#if defined(__FMA__)
IGRT_NATIVE3(8, muladd, _mm256_fmadd_ps(x, y, z))
#else
IGRT_PLAIN_MULADD(8)
#endif
#else
IGRT_SPLIT_BASE(8, 4)
#endif

/* 16 lanes */
#if defined(__AVX512F__)
#define IGRT_IF512(NAME, PREDICATE)                                                  \
    IGRT_VEC igrt_f32x16 igrt_if_##NAME##_f32x16(igrt_f32x16 x, igrt_f32x16 y,       \
                                                 igrt_f32x16 a, igrt_f32x16 b)       \
    {                                                                                \
        return (igrt_f32x16)_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, PREDICATE), b, a); \
    }
IGRT_IF512(eq, _CMP_EQ_OQ)
IGRT_IF512(ne, _CMP_NEQ_UQ)
IGRT_IF512(lt, _CMP_LT_OQ)
IGRT_IF512(le, _CMP_LE_OQ)
IGRT_NATIVE_WHERE(16, _mm512_mask_blend_ps(
                          _mm512_cmplt_epi32_mask((__m512i)m, _mm512_setzero_si512()), b, a))
IGRT_NATIVE2(16, above, _mm512_max_ps(x, y))
IGRT_NATIVE2(16, below, _mm512_min_ps(x, y))
/* x where x is a NaN, else what the instruction gives */
IGRT_NATIVE2(16, max, _mm512_mask_max_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, y))
IGRT_NATIVE2(16, min, _mm512_mask_min_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, y))
IGRT_NATIVE1(16, sqrt, _mm512_sqrt_ps(x))
IGRT_NATIVE1(16, floor, _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(16, ceil, _mm512_roundscale_ps(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(16, trunc, _mm512_roundscale_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC))
IGRT_NATIVE1(16, round, _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#if defined(__FMA__)
IGRT_NATIVE3(16, muladd, _mm512_fmadd_ps(x, y, z))
#else
IGRT_PLAIN_MULADD(16)
#endif
#else
IGRT_SPLIT_BASE(16, 8)
#endif

/* ---- built on those, for every width ----------------------------------------------------- */

#define IGRT_COMPARE(N, NAME, OP)                                                    \
    IGRT_VEC igrt_i32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y)      \
    {                                                                                \
        return (igrt_i32x##N)(x OP y);                                               \
    }
#define IGRT_ARITH(N, NAME, OP)                                                      \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x, igrt_f32x##N y)      \
    {                                                                                \
        return x OP y;                                                               \
    }
#define IGRT_MASKS(N, NAME, OP)                                                      \
    IGRT_VEC igrt_i32x##N igrt_##NAME##_mask_f32x##N(igrt_i32x##N x, igrt_i32x##N y) \
    {                                                                                \
        return x OP y;                                                               \
    }
#define IGRT_SIMPLE(N)                                                               \
    IGRT_ARITH(N, add, +)                                                            \
    IGRT_ARITH(N, sub, -)                                                            \
    IGRT_ARITH(N, mul, *)                                                            \
    IGRT_ARITH(N, div, /)                                                            \
    IGRT_COMPARE(N, eq, ==)                                                          \
    IGRT_COMPARE(N, ne, !=)                                                          \
    IGRT_COMPARE(N, lt, <)                                                           \
    IGRT_COMPARE(N, le, <=)                                                          \
    IGRT_MASKS(N, and, &)                                                            \
    IGRT_MASKS(N, or, |)                                                             \
    IGRT_MASKS(N, xor, ^)                                                            \
    IGRT_VEC igrt_i32x##N igrt_not_mask_f32x##N(igrt_i32x##N x)                      \
    {                                                                                \
        return ~x;                                                                   \
    }                                                                                \
    IGRT_VEC igrt_i32x##N igrt_isnan_f32x##N(igrt_f32x##N x)                         \
    {                                                                                \
        return (igrt_i32x##N)(x != x);                                               \
    }                                                                                \
    IGRT_VEC igrt_f32x##N igrt_neg_f32x##N(igrt_f32x##N x)                           \
    {                                                                                \
        return -x;                                                                   \
    }                                                                                \
    IGRT_VEC igrt_f32x##N igrt_abs_f32x##N(igrt_f32x##N x)                           \
    {                                                                                \
        return (igrt_f32x##N)(IGRT_BITS(N, x) & 0x7fffffff);                         \
    }                                                                                \
    /* a zero in the first place: NaN and -0 stay themselves */                      \
    IGRT_VEC igrt_f32x##N igrt_relu_f32x##N(igrt_f32x##N x)                          \
    {                                                                                \
        return igrt_above_f32x##N(igrt_splat_f32x##N(0.0f), x);                      \
    }                                                                                \
    /* the magnitude of x with the sign of y */                                      \
    IGRT_VEC igrt_f32x##N igrt_copysign_f32x##N(igrt_f32x##N x, igrt_f32x##N y)      \
    {                                                                                \
        return (igrt_f32x##N)((IGRT_BITS(N, x) & INT32_MAX) |                        \
                              (IGRT_BITS(N, y) & INT32_MIN));                        \
    }                                                                                \
    IGRT_VEC igrt_f32x##N igrt_sign_f32x##N(igrt_f32x##N x)                          \
    {                                                                                \
        return igrt_if_lt_f32x##N(igrt_splat_f32x##N(0.0f), igrt_abs_f32x##N(x),     \
                                  igrt_copysign_f32x##N(igrt_splat_f32x##N(1.0f), x), x); \
    }
IGRT_SIMPLE(4)
IGRT_SIMPLE(8)
IGRT_SIMPLE(16)

#endif
