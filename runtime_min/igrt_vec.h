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

#include <stddef.h>

#include "igrt_num.h"

/* ---- the compiler ------------------------------------------------------------------------ */

#define IGRT_VEC __attribute__((unused, always_inline)) static inline
#define IGRT_VECTOR(N) __attribute__((vector_size(4 * (N))))
#define IGRT_UNALIGNED(N) __attribute__((vector_size(4 * (N)), aligned(4), may_alias))
/* Its line is wanted soon, in L2. */
#define igrt_prefetch(p) __builtin_prefetch((p), 0, 2)
/* Everything here is inlined, so how a vector that the ISA lacks would be passed does not matter.
 * (gcc still prints one note about it for such a width; -Wno-psabi is what silences that.) */
#pragma GCC diagnostic ignored "-Wpsabi"

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE4_1__)
#include <smmintrin.h> /* a tenth of immintrin.h, which takes longer than all the rest here */
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define IGRT_NEON64 1
#endif

/* Whether a register holds 8 lanes, 16 lanes. */
#if defined(__AVX__)
#define IGRT_HAS_8 1
#else
#define IGRT_HAS_8 0
#endif
#if defined(__AVX512F__)
#define IGRT_HAS_16 1
#else
#define IGRT_HAS_16 0
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
#define IGRT_SPLATS(T, E)                                                       \
    IGRT_VEC igrt_##T##x4 igrt_splat_##T##x4(E x)                               \
    {                                                                           \
        return (igrt_##T##x4){x, x, x, x};                                      \
    }                                                                           \
    IGRT_VEC igrt_##T##x8 igrt_splat_##T##x8(E x)                               \
    {                                                                           \
        return (igrt_##T##x8){x, x, x, x, x, x, x, x};                          \
    }                                                                           \
    IGRT_VEC igrt_##T##x16 igrt_splat_##T##x16(E x)                             \
    {                                                                           \
        return (igrt_##T##x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; \
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

/* base, base + step, ...; a mask of the first n lanes. */
#define IGRT_RAMP(N)                                            \
    IGRT_VEC igrt_i32x##N igrt_ramp_i32x##N(int base, int step) \
    {                                                           \
        return igrt_iota_i32x##N(0) * step + base;              \
    }                                                           \
    IGRT_VEC igrt_i32x##N igrt_first_i32x##N(int n)             \
    {                                                           \
        return (igrt_i32x##N)(igrt_iota_i32x##N(0) < n);        \
    }
IGRT_RAMP(4)
IGRT_RAMP(8)
IGRT_RAMP(16)

/*
 * The lower half, the upper half, and the vector of two halves. gcc moves the halves of a vector
 * that the ISA lacks lane by lane if asked to shuffle, and by vectors through a union.
 */
#define IGRT_LOW4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3)
#define IGRT_HIGH4(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7)
#define IGRT_ALL8(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
#define IGRT_LOW8 IGRT_ALL8
#define IGRT_HIGH8(a, b) __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15)
#define IGRT_ALL16(a, b) \
    __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define IGRT_SHUFFLES(T, N, H)                                                      \
    IGRT_VEC igrt_##T##x##H igrt_lo_##T##x##N(igrt_##T##x##N v)                     \
    {                                                                               \
        return IGRT_LOW##H(v, v);                                                   \
    }                                                                               \
    IGRT_VEC igrt_##T##x##H igrt_hi_##T##x##N(igrt_##T##x##N v)                     \
    {                                                                               \
        return IGRT_HIGH##H(v, v);                                                  \
    }                                                                               \
    IGRT_VEC igrt_##T##x##N igrt_join_##T##x##N(igrt_##T##x##H a, igrt_##T##x##H b) \
    {                                                                               \
        return IGRT_ALL##N(a, b);                                                   \
    }
#define IGRT_UNIONS(T, N, H)                                                        \
    typedef union igrt_pair_##T##x##N {                                             \
        igrt_##T##x##N v;                                                           \
        igrt_##T##x##H h[2];                                                        \
    } igrt_pair_##T##x##N;                                                          \
    IGRT_VEC igrt_##T##x##H igrt_lo_##T##x##N(igrt_##T##x##N v)                     \
    {                                                                               \
        return ((igrt_pair_##T##x##N){.v = v}).h[0];                                \
    }                                                                               \
    IGRT_VEC igrt_##T##x##H igrt_hi_##T##x##N(igrt_##T##x##N v)                     \
    {                                                                               \
        return ((igrt_pair_##T##x##N){.v = v}).h[1];                                \
    }                                                                               \
    IGRT_VEC igrt_##T##x##N igrt_join_##T##x##N(igrt_##T##x##H a, igrt_##T##x##H b) \
    {                                                                               \
        return ((igrt_pair_##T##x##N){.h = {a, b}}).v;                              \
    }
#if defined(__clang__) || (__GNUC__ >= 12 && IGRT_HAS_8)
IGRT_SHUFFLES(f32, 8, 4)
IGRT_SHUFFLES(i32, 8, 4)
#else
IGRT_UNIONS(f32, 8, 4)
IGRT_UNIONS(i32, 8, 4)
#endif
#if defined(__clang__) || (__GNUC__ >= 12 && IGRT_HAS_16)
IGRT_SHUFFLES(f32, 16, 8)
IGRT_SHUFFLES(i32, 16, 8)
#else
IGRT_UNIONS(f32, 16, 8)
IGRT_UNIONS(i32, 16, 8)
#endif

/* ---- memory ------------------------------------------------------------------------------ */

/* Any alignment, any declared type. The part functions touch the first n elements only,
 * 0 <= n <= N; the other lanes are loaded as 0. */
#define IGRT_MEMORY(T, E, N)                                   \
    typedef E igrt_mem_##T##x##N IGRT_UNALIGNED(N);            \
    IGRT_VEC igrt_##T##x##N igrt_load_##T##x##N(const E *p)    \
    {                                                          \
        return *(const igrt_mem_##T##x##N *)p;                 \
    }                                                          \
    IGRT_VEC void igrt_store_##T##x##N(E *p, igrt_##T##x##N v) \
    {                                                          \
        *(igrt_mem_##T##x##N *)p = v;                          \
    }
#define IGRT_PARTS(T, E, N)                                                \
    IGRT_VEC igrt_##T##x##N igrt_load_part_##T##x##N(const E *p, int n)    \
    {                                                                      \
        E t[N] = {0};                                                      \
        for (int i = 0; i < n; i++)                                        \
            t[i] = p[i];                                                   \
        return igrt_load_##T##x##N(t);                                     \
    }                                                                      \
    IGRT_VEC void igrt_store_part_##T##x##N(E *p, igrt_##T##x##N v, int n) \
    {                                                                      \
        E t[N];                                                            \
        igrt_store_##T##x##N(t, v);                                        \
        for (int i = 0; i < n; i++)                                        \
            p[i] = t[i];                                                   \
    }
IGRT_MEMORY(f32, float, 4)
IGRT_MEMORY(f32, float, 8)
IGRT_MEMORY(f32, float, 16)
IGRT_MEMORY(i32, int32_t, 4)
IGRT_MEMORY(i32, int32_t, 8)
IGRT_MEMORY(i32, int32_t, 16)

/* igrt_store2_f32x4(p, a, b) stores a and b interleaved: a[0], b[0], a[1], b[1], ... */
#if defined(__clang__) || __GNUC__ >= 12
#define IGRT_SHUFFLE(N, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define IGRT_SHUFFLE(N, a, b, ...) __builtin_shuffle(a, b, (igrt_i32x##N){__VA_ARGS__})
#endif
#define IGRT_FIRST4(a, b) IGRT_SHUFFLE(4, a, b, 0, 4, 1, 5)
#define IGRT_LAST4(a, b) IGRT_SHUFFLE(4, a, b, 2, 6, 3, 7)
#define IGRT_FIRST8(a, b) IGRT_SHUFFLE(8, a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define IGRT_LAST8(a, b) IGRT_SHUFFLE(8, a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define IGRT_FIRST16(a, b) \
    IGRT_SHUFFLE(16, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define IGRT_LAST16(a, b) \
    IGRT_SHUFFLE(16, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define IGRT_STORE2(T, E, N)                                                      \
    IGRT_VEC void igrt_store2_##T##x##N(E *p, igrt_##T##x##N a, igrt_##T##x##N b) \
    {                                                                             \
        igrt_store_##T##x##N(p, IGRT_FIRST##N(a, b));                             \
        igrt_store_##T##x##N(p + N, IGRT_LAST##N(a, b));                          \
    }
#define IGRT_STORE2_HALVES(T, E, N, H)                                            \
    IGRT_VEC void igrt_store2_##T##x##N(E *p, igrt_##T##x##N a, igrt_##T##x##N b) \
    {                                                                             \
        igrt_store2_##T##x##H(p, igrt_lo_##T##x##N(a), igrt_lo_##T##x##N(b));     \
        igrt_store2_##T##x##H(p + N, igrt_hi_##T##x##N(a), igrt_hi_##T##x##N(b)); \
    }
IGRT_STORE2(f32, float, 4)
IGRT_STORE2(i32, int32_t, 4)
#if IGRT_HAS_8
IGRT_STORE2(f32, float, 8)
IGRT_STORE2(i32, int32_t, 8)
#else
IGRT_STORE2_HALVES(f32, float, 8, 4)
IGRT_STORE2_HALVES(i32, int32_t, 8, 4)
#endif
#if IGRT_HAS_16
IGRT_STORE2(f32, float, 16)
IGRT_STORE2(i32, int32_t, 16)
#else
IGRT_STORE2_HALVES(f32, float, 16, 8)
IGRT_STORE2_HALVES(i32, int32_t, 16, 8)
#endif

#if IGRT_HAS_8
/* Masked moves: a lane whose mask is 0 is not touched. */
#define IGRT_PARTS_AVX(N, P)                                                 \
    IGRT_VEC igrt_f32x##N igrt_load_part_f32x##N(const float *p, int n)      \
    {                                                                        \
        const igrt_i32x##N m = igrt_iota_i32x##N(0) < igrt_splat_i32x##N(n); \
        return (igrt_f32x##N)P##_maskload_ps(p, IGRT_M##N(m));               \
    }                                                                        \
    IGRT_VEC void igrt_store_part_f32x##N(float *p, igrt_f32x##N v, int n)   \
    {                                                                        \
        const igrt_i32x##N m = igrt_iota_i32x##N(0) < igrt_splat_i32x##N(n); \
        P##_maskstore_ps(p, IGRT_M##N(m), v);                                \
    }
#define IGRT_M4(m) ((__m128i)(m))
#define IGRT_M8(m) ((__m256i)(m))
IGRT_PARTS_AVX(4, _mm)
IGRT_PARTS_AVX(8, _mm256)
#else
IGRT_PARTS(f32, float, 4)
IGRT_PARTS(f32, float, 8)
#endif
#if IGRT_HAS_16
IGRT_VEC igrt_f32x16 igrt_load_part_f32x16(const float *p, int n)
{
    return (igrt_f32x16)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}

IGRT_VEC void igrt_store_part_f32x16(float *p, igrt_f32x16 v, int n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), v);
}
#else
IGRT_VEC igrt_f32x16 igrt_load_part_f32x16(const float *p, int n)
{
    const int rest = n > 8 ? n - 8 : 0;
    return igrt_join_f32x16(igrt_load_part_f32x8(p, n - rest),
                            igrt_load_part_f32x8(rest ? p + 8 : p, rest));
}

IGRT_VEC void igrt_store_part_f32x16(float *p, igrt_f32x16 v, int n)
{
    const int rest = n > 8 ? n - 8 : 0;
    igrt_store_part_f32x8(p, igrt_lo_f32x16(v), n - rest);
    igrt_store_part_f32x8(rest ? p + 8 : p, igrt_hi_f32x16(v), rest);
}
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

/* 4 lanes */
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
#if IGRT_HAS_8
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
IGRT_SPLIT_BASE(8, 4)
#endif

/* 16 lanes */
#if IGRT_HAS_16
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
IGRT_SPLIT_BASE(16, 8)
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
#else
    return igrt_any_f32x4(igrt_lo_i32x8(m) | igrt_hi_i32x8(m));
#endif
}

IGRT_VEC int igrt_any_f32x16(igrt_i32x16 m)
{
#if IGRT_HAS_16
    return _mm512_test_epi32_mask((__m512i)m, (__m512i)m) != 0;
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

/* ---- conversions --------------------------------------------------------------------------- */

/*
 * igrt_cvt_<from>_<to>. f32 -> i32 truncates, a NaN is 0, out of range is the nearest end. Integers
 * in memory are widened to i32 lanes by igrt_load_<type>_i32xN; igrt_store_<type>_i32xN keeps the
 * low bits. f16 and bf16 in memory are f32 lanes; a store rounds to nearest even.
 */
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
IGRT_SMALL(4)
IGRT_SMALL(8)
IGRT_SMALL(16)
IGRT_CONVERT(4)
IGRT_CONVERT(8)
IGRT_CONVERT(16)

/* igrt_quantize_f32 of igrt_num.h: what is added in f32 leaves an integer in the lower bits. */
#define IGRT_QUANTIZE(N)                                                                  \
    IGRT_VEC igrt_i32x##N igrt_quantize_f32x##N(igrt_f32x##N x, int zero, int lo, int hi) \
    {                                                                                     \
        igrt_f32x##N y = igrt_above_f32x##N(x, igrt_splat_f32x##N((float)(lo - zero)));   \
        y = igrt_below_f32x##N(y, igrt_splat_f32x##N((float)(hi - zero)));                \
        y = igrt_if_eq_f32x##N(x, x, y, igrt_splat_f32x##N((float)-zero)) + 12582912.0f;  \
        return (igrt_i32x##N)y - (0x4b400000 - zero);                                     \
    }
IGRT_QUANTIZE(4)
IGRT_QUANTIZE(8)
IGRT_QUANTIZE(16)

/* Bytes to i32: gcc takes every lane for itself unless it is told the instruction. */
#define IGRT_WIDEN(T, N, p) __builtin_convertvector(*(const igrt_mem_##T##x##N *)(p), igrt_i32x##N)
#define IGRT_WIDEN_i16(N, p) IGRT_WIDEN(i16, N, p)
#define IGRT_WIDEN_u16(N, p) IGRT_WIDEN(u16, N, p)
#define IGRT_WIDEN_i8(N, p) IGRT_WIDEN_i8x##N(p)
#define IGRT_WIDEN_u8(N, p) IGRT_WIDEN_u8x##N(p)
#if defined(__SSE4_1__)
#define IGRT_WIDEN_i8x4(p) ((igrt_i32x4)_mm_cvtepi8_epi32(_mm_loadu_si32(p)))
#define IGRT_WIDEN_u8x4(p) ((igrt_i32x4)_mm_cvtepu8_epi32(_mm_loadu_si32(p)))
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
#define IGRT_WIDEN_i8x8(p) ((igrt_i32x8)_mm256_cvtepi8_epi32(IGRT_EIGHT(p)))
#define IGRT_WIDEN_u8x8(p) ((igrt_i32x8)_mm256_cvtepu8_epi32(IGRT_EIGHT(p)))
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
#define IGRT_KEEP(T, N, p, v) \
    (*(igrt_mem_##T##x##N *)(p) = __builtin_convertvector(v, igrt_mem_##T##x##N))
#define IGRT_KEEP_i16(N, p, v) IGRT_KEEP(i16, N, p, v)
#define IGRT_KEEP_u16(N, p, v) IGRT_KEEP(u16, N, p, v)
#if defined(__SSE2__) && !defined(__AVX512VL__)
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
#if IGRT_HAS_16
#define IGRT_KEEP_i8x16(p, v) IGRT_KEEP(i8, 16, p, v)
#define IGRT_KEEP_u8x16(p, v) IGRT_KEEP(u8, 16, p, v)
#else
#define IGRT_KEEP_i8x16(p, v) \
    (IGRT_KEEP_x8(p, igrt_lo_i32x16(v)), IGRT_KEEP_x8((p) + 8, igrt_hi_i32x16(v)))
#define IGRT_KEEP_u8x16 IGRT_KEEP_i8x16
#endif
#define IGRT_KEEP_i8x4 IGRT_KEEP_x4
#define IGRT_KEEP_i8x8 IGRT_KEEP_x8
#define IGRT_KEEP_u8x4 IGRT_KEEP_x4
#define IGRT_KEEP_u8x8 IGRT_KEEP_x8
#define IGRT_KEEP_i8(N, p, v) IGRT_KEEP_i8x##N(p, v)
#define IGRT_KEEP_u8(N, p, v) IGRT_KEEP_u8x##N(p, v)
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

/* The machine's instruction does the same, but that it takes numbers below the smallest normal one for zeros. */
#if defined(__AVX512BF16__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
IGRT_VEC int igrt_bf16_f32x16(uint16_t *p, igrt_f32x16 x)
{
    enum { SUBNORMAL = 0x20 };
    if (_mm512_fpclass_ps_mask((__m512)x, SUBNORMAL))
        return 0;
    _mm256_storeu_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh((__m512)x));
    return 1;
}
IGRT_VEC int igrt_bf16_f32x8(uint16_t *p, igrt_f32x8 x)
{
    enum { SUBNORMAL = 0x20 };
    if (_mm256_fpclass_ps_mask((__m256)x, SUBNORMAL))
        return 0;
    _mm_storeu_si128((__m128i *)p, (__m128i)_mm256_cvtneps_pbh((__m256)x));
    return 1;
}
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

#define IGRT_BF16(N)                                                                             \
    IGRT_VEC igrt_f32x##N igrt_load_bf16_f32x##N(const uint16_t *p)                              \
    {                                                                                            \
        return (igrt_f32x##N)((igrt_u32x##N)igrt_load_u16_i32x##N(p) << 16);                     \
    }                                                                                            \
    IGRT_VEC void igrt_store_bf16_f32x##N(uint16_t *p, igrt_f32x##N x)                           \
    {                                                                                            \
        IGRT_BF16_BY_MACHINE(N, x, p)                                                            \
        const igrt_u32x##N u = (igrt_u32x##N)x;                                                  \
        const igrt_u32x##N near = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;                          \
        const igrt_u32x##N quiet = u >> 16 | 0x40u;                                              \
        igrt_store_u16_i32x##N(                                                                  \
            p, (igrt_i32x##N)igrt_if_eq_f32x##N(x, x, (igrt_f32x##N)near, (igrt_f32x##N)quiet)); \
    }
IGRT_BF16(4)
IGRT_BF16(8)
IGRT_BF16(16)

#define IGRT_LANES_F16(N)                                             \
    IGRT_VEC igrt_f32x##N igrt_load_f16_f32x##N(const uint16_t *p)    \
    {                                                                 \
        float t[N];                                                   \
        for (int i = 0; i < N; i++)                                   \
            t[i] = igrt_f16_to_f32(p[i]);                             \
        return igrt_load_f32x##N(t);                                  \
    }                                                                 \
    IGRT_VEC void igrt_store_f16_f32x##N(uint16_t *p, igrt_f32x##N x) \
    {                                                                 \
        float t[N];                                                   \
        igrt_store_f32x##N(t, x);                                     \
        for (int i = 0; i < N; i++)                                   \
            p[i] = igrt_f32_to_f16(t[i]);                             \
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
IGRT_LANES_F16(4)
IGRT_HALVES_F16(8, 4)
#endif
#if IGRT_HAS_16
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

/* ---- lanes that lie apart, and those that a mask chooses ------------------------------------- */

/*
 * igrt_load_step_f32xN(p, step) loads p[0], p[step], p[2 step], ...; igrt_load_mask_f32xN(a, at, step, m) loads
 * a[at], a[at + step], ... where the mask is set, and zeros elsewhere: what is not chosen may lie
 * outside of all there is. Both for what is narrower in memory too, igrt_load_step_i8_i32xN().
 */
#define IGRT_LANES_APART(NAME, E, N, R, LOAD)                                        \
    IGRT_VEC R igrt_load_step_##NAME##x##N(const E *p, ptrdiff_t step)               \
    {                                                                                \
        E t[N];                                                                      \
        for (int i = 0; i < N; i++)                                                  \
            t[i] = p[i * step];                                                      \
        return LOAD(t);                                                              \
    }                                                                                \
    IGRT_VEC R igrt_load_mask_##NAME##x##N(const E *a, ptrdiff_t at, ptrdiff_t step, \
                                           igrt_i32x##N m)                           \
    {                                                                                \
        E t[N];                                                                      \
        for (int i = 0; i < N; i++)                                                  \
            t[i] = m[i] ? a[at + i * step] : (E)0;                                   \
        return LOAD(t);                                                              \
    }
#define IGRT_NARROW_APART(T, E, HELD, N) \
    IGRT_LANES_APART(T##_##HELD, E, N, igrt_##HELD##x##N, igrt_load_##T##_##HELD##x##N)
#define IGRT_NARROWS_APART(N)                \
    IGRT_NARROW_APART(i8, int8_t, i32, N)    \
    IGRT_NARROW_APART(u8, uint8_t, i32, N)   \
    IGRT_NARROW_APART(i16, int16_t, i32, N)  \
    IGRT_NARROW_APART(u16, uint16_t, i32, N) \
    IGRT_NARROW_APART(f16, uint16_t, f32, N) \
    IGRT_NARROW_APART(bf16, uint16_t, f32, N)
IGRT_NARROWS_APART(4)
IGRT_NARROWS_APART(8)
IGRT_NARROWS_APART(16)
#define IGRT_WIDE_APART(T, E, N) IGRT_LANES_APART(T, E, N, igrt_##T##x##N, igrt_load_##T##x##N)
IGRT_WIDE_APART(f32, float, 4)
IGRT_WIDE_APART(i32, int32_t, 4)
IGRT_WIDE_APART(i32, int32_t, 8)
IGRT_WIDE_APART(i32, int32_t, 16)
/* Two apart: the even ones of the first N, and the odd ones of those that end with the last lane. */
#define IGRT_EVEN8(a, b) IGRT_SHUFFLE(8, a, b, 0, 2, 4, 6, 9, 11, 13, 15)
#define IGRT_EVEN16(a, b) \
    IGRT_SHUFFLE(16, a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31)
/* An address that nothing is read from may be no element's: reckoned without pointers. */
#define IGRT_AT(a, at) ((const float *)((uintptr_t)(a) + (uintptr_t)(at) * sizeof(float)))
#if IGRT_HAS_8
IGRT_VEC igrt_f32x8 igrt_load_step_f32x8(const float *p, ptrdiff_t step)
{
    if (step == 2)
        return IGRT_EVEN8(igrt_load_f32x8(p), igrt_load_f32x8(p + 7));
    return (igrt_f32x8){p[0],        p[step],     p[2 * step], p[3 * step],
                        p[4 * step], p[5 * step], p[6 * step], p[7 * step]};
}

IGRT_VEC igrt_f32x8 igrt_load_mask_f32x8(const float *a, ptrdiff_t at, ptrdiff_t step, igrt_i32x8 m)
{
    if (step == 1)
        return (igrt_f32x8)_mm256_maskload_ps(IGRT_AT(a, at), (__m256i)m);
    if (step == 2) {
        const igrt_i32x8 lo = IGRT_SHUFFLE(8, m, m, 0, 0, 1, 1, 2, 2, 3, 3),
                         hi = IGRT_SHUFFLE(8, m, m, 4, 4, 4, 5, 5, 6, 6, 7);
        const igrt_i32x8 even = {-1, 0, -1, 0, -1, 0, -1, 0}, odd = {0, -1, 0, -1, 0, -1, 0, -1};
        return IGRT_EVEN8((igrt_f32x8)_mm256_maskload_ps(IGRT_AT(a, at), (__m256i)(lo & even)),
                          (igrt_f32x8)_mm256_maskload_ps(IGRT_AT(a, at + 7), (__m256i)(hi & odd)));
    }
    float t[8];
    for (int i = 0; i < 8; i++)
        t[i] = m[i] ? a[at + i * step] : 0.0f;
    return igrt_load_f32x8(t);
}
#else
IGRT_WIDE_APART(f32, float, 8)
#endif
#if IGRT_HAS_16
IGRT_VEC igrt_f32x16 igrt_load_step_f32x16(const float *p, ptrdiff_t step)
{
    if (step == 2)
        return IGRT_EVEN16(igrt_load_f32x16(p), igrt_load_f32x16(p + 15));
    return (igrt_f32x16)_mm512_i32gather_ps((__m512i)igrt_ramp_i32x16(0, (int)step), p, 4);
}

IGRT_VEC igrt_f32x16 igrt_load_mask_f32x16(const float *a, ptrdiff_t at, ptrdiff_t step,
                                           igrt_i32x16 m)
{
    const __mmask16 k = _mm512_test_epi32_mask((__m512i)m, (__m512i)m);
    if (step == 1)
        return (igrt_f32x16)_mm512_maskz_loadu_ps(k, IGRT_AT(a, at));
    if (step == 2) {
        const igrt_i32x16 lo = IGRT_FIRST16(m, m), hi = IGRT_LAST16(m, m);
        const __mmask16 even = _mm512_test_epi32_mask((__m512i)lo, (__m512i)lo) & 0x5555,
                        odd = _mm512_test_epi32_mask((__m512i)hi, (__m512i)hi) & 0xaaaa;
        return IGRT_EVEN16((igrt_f32x16)_mm512_maskz_loadu_ps(even, IGRT_AT(a, at)),
                           (igrt_f32x16)_mm512_maskz_loadu_ps(odd, IGRT_AT(a, at + 15)));
    }
    return (igrt_f32x16)_mm512_mask_i32gather_ps(
        _mm512_setzero_ps(), k, (__m512i)igrt_ramp_i32x16(0, (int)step), IGRT_AT(a, at), 4);
}
#else
IGRT_WIDE_APART(f32, float, 16)
#endif

/* ---- rows that become columns ------------------------------------------------------------------ */

/*
 * igrt_load_rows_f32xN(t, p, step, rows, columns): of `rows` rows that begin `step` apart the first `columns` elements, transposed:
 * lane i of t[j] is p[i step + j], 0 from the last row on. t has room for N.
 *
 * A matrix is transposed by log2 N perfect shuffles of its vectors, each of which rotates the bits of an element's place
 * (row, column) by one.
 */
#define IGRT_SHUFFLE_ROWS(N, a, b, i)                 \
    b[2 * (i)] = IGRT_FIRST##N(a[i], a[(i) + N / 2]); \
    b[2 * (i) + 1] = IGRT_LAST##N(a[i], a[(i) + N / 2]);
#define IGRT_SHUFFLE_ALL4(a, b)   \
    IGRT_SHUFFLE_ROWS(4, a, b, 0) \
    IGRT_SHUFFLE_ROWS(4, a, b, 1)
#define IGRT_SHUFFLE_ALL8(a, b)   \
    IGRT_SHUFFLE_ROWS(8, a, b, 0) \
    IGRT_SHUFFLE_ROWS(8, a, b, 1) \
    IGRT_SHUFFLE_ROWS(8, a, b, 2) \
    IGRT_SHUFFLE_ROWS(8, a, b, 3)
#define IGRT_SHUFFLE_ALL16(a, b)   \
    IGRT_SHUFFLE_ROWS(16, a, b, 0) \
    IGRT_SHUFFLE_ROWS(16, a, b, 1) \
    IGRT_SHUFFLE_ROWS(16, a, b, 2) \
    IGRT_SHUFFLE_ROWS(16, a, b, 3) \
    IGRT_SHUFFLE_ROWS(16, a, b, 4) \
    IGRT_SHUFFLE_ROWS(16, a, b, 5) \
    IGRT_SHUFFLE_ROWS(16, a, b, 6) \
    IGRT_SHUFFLE_ROWS(16, a, b, 7)
#define IGRT_TRANSPOSE4(t, u) \
    IGRT_SHUFFLE_ALL4(t, u)   \
    IGRT_SHUFFLE_ALL4(u, t)
#define IGRT_TRANSPOSE8(t, u) \
    IGRT_SHUFFLE_ALL8(t, u)   \
    IGRT_SHUFFLE_ALL8(u, t)   \
    IGRT_SHUFFLE_ALL8(t, u)   \
    memcpy(t, u, sizeof u);
#define IGRT_TRANSPOSE16(t, u) \
    IGRT_SHUFFLE_ALL16(t, u)   \
    IGRT_SHUFFLE_ALL16(u, t)   \
    IGRT_SHUFFLE_ALL16(t, u)   \
    IGRT_SHUFFLE_ALL16(u, t)
#define IGRT_ROW(N, i, SUFFIX)                                              \
    if (rows > i)                                                           \
        t[i] = columns < N ? igrt_load_part_##SUFFIX(p + i * step, columns) \
                           : igrt_load_##SUFFIX(p + i * step);
#define IGRT_ROWS4(N, S) \
    IGRT_ROW(N, 0, S)    \
    IGRT_ROW(N, 1, S)    \
    IGRT_ROW(N, 2, S)    \
    IGRT_ROW(N, 3, S)
#define IGRT_ROWS8(N, S) \
    IGRT_ROWS4(N, S)     \
    IGRT_ROW(N, 4, S)    \
    IGRT_ROW(N, 5, S)    \
    IGRT_ROW(N, 6, S)    \
    IGRT_ROW(N, 7, S)
#define IGRT_ROWS16(N, S) \
    IGRT_ROWS8(N, S)      \
    IGRT_ROW(N, 8, S)     \
    IGRT_ROW(N, 9, S)     \
    IGRT_ROW(N, 10, S)    \
    IGRT_ROW(N, 11, S)    \
    IGRT_ROW(N, 12, S)    \
    IGRT_ROW(N, 13, S)    \
    IGRT_ROW(N, 14, S)    \
    IGRT_ROW(N, 15, S)
#define IGRT_LOAD_ROWS(N, SUFFIX, HELD, E)                                                    \
    IGRT_VEC void igrt_load_rows_##SUFFIX(igrt_##HELD##x##N *out, const E *p, ptrdiff_t step, \
                                          int rows, int columns)                              \
    {                                                                                         \
        igrt_##HELD##x##N t[N] = {{0}}, u[N];                                                 \
        IGRT_ROWS##N(N, SUFFIX) IGRT_TRANSPOSE##N(t, u) memcpy(out, t, sizeof t);             \
    }
#define IGRT_LOAD_ALL_ROWS(N)                     \
    IGRT_LOAD_ROWS(N, f32x##N, f32, float)        \
    IGRT_LOAD_ROWS(N, i32x##N, i32, int32_t)      \
    IGRT_LOAD_ROWS(N, i8_i32x##N, i32, int8_t)    \
    IGRT_LOAD_ROWS(N, u8_i32x##N, i32, uint8_t)   \
    IGRT_LOAD_ROWS(N, i16_i32x##N, i32, int16_t)  \
    IGRT_LOAD_ROWS(N, u16_i32x##N, i32, uint16_t) \
    IGRT_LOAD_ROWS(N, f16_f32x##N, f32, uint16_t) \
    IGRT_LOAD_ROWS(N, bf16_f32x##N, f32, uint16_t)
IGRT_LOAD_ALL_ROWS(4)
IGRT_LOAD_ALL_ROWS(8)
IGRT_LOAD_ALL_ROWS(16)

/* ---- integers ------------------------------------------------------------------------------ */

/*
 * i32 lanes wrap. Lanes that hold a narrower integer are wrapped to it by igrt_wrap_<type>; those
 * that hold f16 or bf16 are rounded by igrt_round_<type>. igrt_low_f32xN_i32xN gives the low 32 bits
 * of the integer: of f32 -> i64, which saturates.
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
#define IGRT_INTS(N)                                                                         \
    IGRT_INT2(N, add, +)                                                                     \
    IGRT_INT2(N, sub, -)                                                                     \
    IGRT_INT2(N, mul, *)                                                                     \
    IGRT_INT2(N, and, &)                                                                     \
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
        return (a & m) | (b & ~m);                                                           \
    }                                                                                        \
    IGRT_VEC igrt_i32x##N igrt_max_i32x##N(igrt_i32x##N x, igrt_i32x##N y)                   \
    {                                                                                        \
        return igrt_where_i32x##N(igrt_lt_i32x##N(x, y), y, x);                              \
    }                                                                                        \
    IGRT_VEC igrt_i32x##N igrt_min_i32x##N(igrt_i32x##N x, igrt_i32x##N y)                   \
    {                                                                                        \
        return igrt_where_i32x##N(igrt_lt_i32x##N(y, x), y, x);                              \
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

/* ---- exp, log, tanh, erf ------------------------------------------------------------------- */

/*
 * Argument reduction as Cody and Waite have it, polynomials fitted for the least largest relative
 * error with coefficients that are f32, no branches. An integer n is found as the low bits of
 * x + 1.5 * 2^23, which rounds to nearest.
 *
 * e^x = 2^n * e^r, r = x - n * ln 2 (in two parts, the first of 9 bits, so n * part is exact),
 * e^r = 1 + r * (1 + r * P(r)), |r| <= ln 2 / 2. The result is e^r; *n is n in its low bits, above
 * which is rubbish that a shift by 23 removes.
 */
#define IGRT_MAGIC 12582912.0f
#define IGRT_EXP(N)                                                                            \
    IGRT_VEC igrt_f32x##N igrt_exp_reduced_f32x##N(igrt_f32x##N x, igrt_f32x##N *n)            \
    {                                                                                          \
        const igrt_f32x##N magic = igrt_splat_f32x##N(IGRT_MAGIC);                             \
        const igrt_f32x##N t = igrt_muladd_f32x##N(x, igrt_splat_f32x##N(1.44269504f), magic); \
        const igrt_f32x##N k = t - magic;                                                      \
        igrt_f32x##N r = igrt_muladd_f32x##N(k, igrt_splat_f32x##N(-0.693359375f), x);         \
        r = igrt_muladd_f32x##N(k, igrt_splat_f32x##N(2.12194440e-4f), r);                     \
        igrt_f32x##N p = igrt_splat_f32x##N(1.382261165e-03f);                                 \
        p = igrt_muladd_f32x##N(p, r, igrt_splat_f32x##N(8.368839510e-03f));                   \
        p = igrt_muladd_f32x##N(p, r, igrt_splat_f32x##N(4.166824743e-02f));                   \
        p = igrt_muladd_f32x##N(p, r, igrt_splat_f32x##N(1.666651964e-01f));                   \
        p = igrt_muladd_f32x##N(p, r, igrt_splat_f32x##N(4.999999404e-01f));                   \
        p = igrt_muladd_f32x##N(p, r, igrt_splat_f32x##N(1.0f));                               \
        *n = t;                                                                                \
        return igrt_muladd_f32x##N(p, r, igrt_splat_f32x##N(1.0f));                            \
    }                                                                                          \
    /* e^x where that is a normal number; anything for a NaN */                                \
    IGRT_VEC igrt_f32x##N igrt_exp_normal_f32x##N(igrt_f32x##N x)                              \
    {                                                                                          \
        igrt_f32x##N n;                                                                        \
        const igrt_f32x##N y = igrt_exp_reduced_f32x##N(x, &n);                                \
        return (igrt_f32x##N)((igrt_u32x##N)y + ((igrt_u32x##N)n << 23));                      \
    }                                                                                          \
    IGRT_VEC igrt_f32x##N igrt_exp_f32x##N(igrt_f32x##N x)                                     \
    {                                                                                          \
        igrt_f32x##N n;                                                                        \
        x = igrt_below_f32x##N(igrt_splat_f32x##N(89.0f), x);                                  \
        x = igrt_above_f32x##N(igrt_splat_f32x##N(-104.0f), x);                                \
        const igrt_f32x##N y = igrt_exp_reduced_f32x##N(x, &n);                                \
        return igrt_scale_f32x##N(y, n);                                                       \
    }

#define IGRT_SCALE(N)                                                                             \
    /* y * 2^n, rounded once; n as igrt_exp_reduced leaves it, |n| < 252 */                       \
    IGRT_VEC igrt_f32x##N igrt_scale_f32x##N(igrt_f32x##N y, igrt_f32x##N n)                      \
    {                                                                                             \
        const igrt_u32x##N magic = (igrt_u32x##N)igrt_splat_f32x##N(IGRT_MAGIC);                  \
        const igrt_u32x##N k = (igrt_u32x##N)n - magic;                                           \
        const igrt_u32x##N half = (igrt_u32x##N)((igrt_i32x##N)k >> 1);                           \
        return y * (igrt_f32x##N)((half + 127u) << 23) * (igrt_f32x##N)((k - half + 127u) << 23); \
    }
IGRT_SCALE(4)
#if IGRT_HAS_8
IGRT_SCALE(8)
#endif
#if IGRT_HAS_16
IGRT_VEC igrt_f32x16 igrt_scale_f32x16(igrt_f32x16 y, igrt_f32x16 n)
{
    return (igrt_f32x16)_mm512_scalef_ps(y, n - IGRT_MAGIC);
}
#endif
IGRT_EXP(4)
#if IGRT_HAS_8
IGRT_EXP(8)
#else
IGRT_SPLIT1(8, 4, exp)
#endif
#if IGRT_HAS_16
IGRT_EXP(16)
#else
IGRT_SPLIT1(16, 8, exp)
#endif

/*
 * x = 2^e * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), by the bits, subnormal numbers scaled up first;
 * log x = e * ln 2 + f - f^2/2 + f^3 * P(f), smallest terms first.
 */
#define IGRT_LOG(N)                                                                              \
    IGRT_VEC igrt_f32x##N igrt_log_f32x##N(igrt_f32x##N x)                                       \
    {                                                                                            \
        const igrt_f32x##N zero = {0}, least = igrt_splat_f32x##N(1.17549435e-38f);              \
        const igrt_u32x##N u =                                                                   \
            (igrt_u32x##N)igrt_if_lt_f32x##N(x, least, x * 8388608.0f, x) - 0x3f3504f3u;         \
        const igrt_f32x##N f = (igrt_f32x##N)((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;             \
        igrt_f32x##N e = __builtin_convertvector((igrt_i32x##N)u >> 23, igrt_f32x##N);           \
        e = igrt_if_lt_f32x##N(x, least, e - 23.0f, e);                                          \
        igrt_f32x##N p = igrt_splat_f32x##N(-7.635727525e-02f);                                  \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(1.276306361e-01f));                     \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(-1.316024661e-01f));                    \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(1.420145929e-01f));                     \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(-1.662332416e-01f));                    \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(2.000124604e-01f));                     \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(-2.500082254e-01f));                    \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(3.333333135e-01f));                     \
        const igrt_f32x##N z = f * f;                                                            \
        igrt_f32x##N y = igrt_muladd_f32x##N(e, igrt_splat_f32x##N(-2.12194440e-4f), z * f * p); \
        y = igrt_muladd_f32x##N(z, igrt_splat_f32x##N(-0.5f), y) + f;                            \
        y = igrt_muladd_f32x##N(e, igrt_splat_f32x##N(0.693359375f), y);                         \
        y = igrt_if_lt_f32x##N(x, igrt_splat_f32x##N(INFINITY), y, x);                           \
        y = igrt_if_eq_f32x##N(x, zero, igrt_splat_f32x##N(-INFINITY), y);                       \
        return igrt_if_lt_f32x##N(x, zero, igrt_splat_f32x##N(NAN), y);                          \
    }
IGRT_LOG(4)
#if IGRT_HAS_8
IGRT_LOG(8)
#else
IGRT_SPLIT1(8, 4, log)
#endif
#if IGRT_HAS_16
IGRT_LOG(16)
#else
IGRT_SPLIT1(16, 8, log)
#endif

/*
 * a = |x|: tanh a = a + a^3 * P(a^2) below 0.625, else 1 - 2 / (e^2a + 1); 1 from 9.1 on.
 * A NaN takes the first form.
 */
#define IGRT_TANH(N)                                                                              \
    IGRT_VEC igrt_f32x##N igrt_tanh_f32x##N(igrt_f32x##N x)                                       \
    {                                                                                             \
        const igrt_i32x##N sign = IGRT_BITS(N, x) & INT32_MIN;                                    \
        const igrt_f32x##N a = igrt_below_f32x##N(igrt_splat_f32x##N(9.1f), igrt_abs_f32x##N(x)); \
        const igrt_f32x##N z = a * a;                                                             \
        igrt_f32x##N p = igrt_splat_f32x##N(-5.698029883e-03f);                                   \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(2.063232102e-02f));                      \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(-5.373743549e-02f));                     \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(1.333141178e-01f));                      \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(-3.333328068e-01f));                     \
        p = igrt_muladd_f32x##N(p * z, a, a);                                                     \
        const igrt_f32x##N q = 1.0f - 2.0f / (igrt_exp_normal_f32x##N(a + a) + 1.0f);             \
        const igrt_f32x##N y = igrt_if_le_f32x##N(igrt_splat_f32x##N(0.625f), a, q, p);           \
        return (igrt_f32x##N)(IGRT_BITS(N, y) | sign);                                            \
    }
IGRT_TANH(4)
#if IGRT_HAS_8
IGRT_TANH(8)
#else
IGRT_SPLIT1(8, 4, tanh)
#endif
#if IGRT_HAS_16
IGRT_TANH(16)
#else
IGRT_SPLIT1(16, 8, tanh)
#endif

/*
 * a = |x|: erf a = a + a * P(a^2) below 0.875, else 1 - e^Q(a), Q fitted to log erfc; 1 from 4 on.
 * A NaN takes the first form.
 */
#define IGRT_ERF(N)                                                                               \
    IGRT_VEC igrt_f32x##N igrt_erf_f32x##N(igrt_f32x##N x)                                        \
    {                                                                                             \
        const igrt_i32x##N sign = IGRT_BITS(N, x) & INT32_MIN;                                    \
        const igrt_f32x##N a = igrt_below_f32x##N(igrt_splat_f32x##N(4.0f), igrt_abs_f32x##N(x)); \
        const igrt_f32x##N z = a * a;                                                             \
        igrt_f32x##N p = igrt_splat_f32x##N(-6.135461153e-04f);                                   \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(5.018357188e-03f));                      \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(-2.678139694e-02f));                     \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(1.128214672e-01f));                      \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(-3.761251569e-01f));                     \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(1.283791512e-01f));                      \
        p = igrt_muladd_f32x##N(p, a, a);                                                         \
        igrt_f32x##N q = igrt_splat_f32x##N(1.999224332e-04f);                                    \
        q = igrt_muladd_f32x##N(q, a, igrt_splat_f32x##N(-3.082180861e-03f));                     \
        q = igrt_muladd_f32x##N(q, a, igrt_splat_f32x##N(2.238171175e-02f));                      \
        q = igrt_muladd_f32x##N(q, a, igrt_splat_f32x##N(-1.042515412e-01f));                     \
        q = igrt_muladd_f32x##N(q, a, igrt_splat_f32x##N(-6.368191838e-01f));                     \
        q = igrt_muladd_f32x##N(q, a, igrt_splat_f32x##N(-1.127890229e+00f));                     \
        q = igrt_muladd_f32x##N(q, a, igrt_splat_f32x##N(-1.440132910e-04f));                     \
        q = 1.0f - igrt_exp_normal_f32x##N(q);                                                    \
        const igrt_f32x##N y = igrt_if_le_f32x##N(igrt_splat_f32x##N(0.875f), a, q, p);           \
        return (igrt_f32x##N)(IGRT_BITS(N, y) | sign);                                            \
    }
IGRT_ERF(4)
#if IGRT_HAS_8
IGRT_ERF(8)
#else
IGRT_SPLIT1(8, 4, erf)
#endif
#if IGRT_HAS_16
IGRT_ERF(16)
#else
IGRT_SPLIT1(16, 8, erf)
#endif

/* ---- sin, cos ------------------------------------------------------------------------------ */

/*
 * r = |x| - n * pi/2 in parts (f32 parts where multiply-add rounds once, else parts of 11 bits, so
 * that n * part is exact); sin r = r + r^3 * S(r^2), cos r = 1 - r^2/2 + r^4 * C(r^2). Which of the
 * two it is, and the sign, are the last two bits of n. Lanes beyond 10^4 go to the C library.
 */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define IGRT_PIO2_1 1.57079637e+00f
#define IGRT_PIO2_2 -4.37113883e-08f
#define IGRT_PIO2_3 -1.71512489e-15f
#define IGRT_PIO2_4 0.0f
#else
#define IGRT_PIO2_1 1.5703125f
#define IGRT_PIO2_2 4.837512969970703125e-4f
#define IGRT_PIO2_3 7.549533620476723e-08f
#define IGRT_PIO2_4 2.563344152e-12f
#endif
#define IGRT_CIRCLE(N, NAME, QUARTER, ODD, LIBM)                                                \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x)                                 \
    {                                                                                           \
        const igrt_f32x##N magic = igrt_splat_f32x##N(IGRT_MAGIC), a = igrt_abs_f32x##N(x);     \
        const igrt_f32x##N t = igrt_muladd_f32x##N(a, igrt_splat_f32x##N(0.636619772f), magic); \
        const igrt_u32x##N n = (igrt_u32x##N)t + QUARTER;                                       \
        const igrt_f32x##N k = t - magic;                                                       \
        igrt_f32x##N r = igrt_muladd_f32x##N(k, igrt_splat_f32x##N(-(IGRT_PIO2_1)), a);         \
        r = igrt_muladd_f32x##N(k, igrt_splat_f32x##N(-(IGRT_PIO2_2)), r);                      \
        r = igrt_muladd_f32x##N(k, igrt_splat_f32x##N(-(IGRT_PIO2_3)), r);                      \
        r = igrt_muladd_f32x##N(k, igrt_splat_f32x##N(-(IGRT_PIO2_4)), r);                      \
        const igrt_f32x##N z = r * r;                                                           \
        igrt_f32x##N s = igrt_splat_f32x##N(-1.950993465e-04f);                                 \
        s = igrt_muladd_f32x##N(s, z, igrt_splat_f32x##N(8.332115598e-03f));                    \
        s = igrt_muladd_f32x##N(s, z, igrt_splat_f32x##N(-1.666665375e-01f));                   \
        s = igrt_muladd_f32x##N(s * z, r, r);                                                   \
        igrt_f32x##N c = igrt_splat_f32x##N(2.443210906e-05f);                                  \
        c = igrt_muladd_f32x##N(c, z, igrt_splat_f32x##N(-1.388730831e-03f));                   \
        c = igrt_muladd_f32x##N(c, z, igrt_splat_f32x##N(4.166664556e-02f));                    \
        c = igrt_muladd_f32x##N(z * z, c, 1.0f - 0.5f * z);                                     \
        const igrt_f32x##N m = igrt_where_f32x##N(-(igrt_i32x##N)(n & 1u), c, s);               \
        const igrt_u32x##N flip = (n & 2u) << 30 ^ ((igrt_u32x##N)x & (ODD));                   \
        const igrt_f32x##N y = (igrt_f32x##N)((igrt_u32x##N)m ^ flip);                          \
        if (!igrt_any_f32x##N(igrt_lt_f32x##N(igrt_splat_f32x##N(1e4f), a)))                    \
            return y;                                                                           \
        float u[N], v[N];                                                                       \
        igrt_store_f32x##N(u, x);                                                               \
        igrt_store_f32x##N(v, y);                                                               \
        for (int i = 0; i < N; i++)                                                             \
            v[i] = fabsf(u[i]) > 1e4f ? LIBM(u[i]) : v[i];                                      \
        return igrt_load_f32x##N(v);                                                            \
    }
#define IGRT_CIRCLES(N)                        \
    IGRT_CIRCLE(N, sin, 0u, 0x80000000u, sinf) \
    IGRT_CIRCLE(N, cos, 1u, 0u, cosf)
IGRT_CIRCLES(4)
#if IGRT_HAS_8
IGRT_CIRCLES(8)
#else
IGRT_SPLIT1(8, 4, sin)
IGRT_SPLIT1(8, 4, cos)
#endif
#if IGRT_HAS_16
IGRT_CIRCLES(16)
#else
IGRT_SPLIT1(16, 8, sin)
IGRT_SPLIT1(16, 8, cos)
#endif

/* ---- the C library, lane by lane ----------------------------------------------------------- */

#define IGRT_LIBRARY(N)                           \
    IGRT_LANES1(f32, float, N, tan, tanf)         \
    IGRT_LANES1(f32, float, N, asin, asinf)       \
    IGRT_LANES1(f32, float, N, acos, acosf)       \
    IGRT_LANES1(f32, float, N, atan, atanf)       \
    IGRT_LANES1(f32, float, N, sinh, sinhf)       \
    IGRT_LANES1(f32, float, N, cosh, coshf)       \
    IGRT_LANES1(f32, float, N, asinh, asinhf)     \
    IGRT_LANES1(f32, float, N, acosh, acoshf)     \
    IGRT_LANES1(f32, float, N, atanh, atanhf)     \
    IGRT_LANES2(f32, float, N, pow, powf)         \
    IGRT_LANES2(f32, float, N, mod, igrt_mod_f32) \
    IGRT_LANES2(f32, float, N, fmod, igrt_fmod_f32)
IGRT_LIBRARY(4)
IGRT_LIBRARY(8)
IGRT_LIBRARY(16)

#endif
