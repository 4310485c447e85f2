/*
 * igrt_vec_base.h - vectors of 4, 8 and 16 lanes: the ISA, types, lanes, and memory.
 */
#ifndef IGRT_VEC_BASE_H
#define IGRT_VEC_BASE_H

#include <stddef.h>

#include "igrt_num.h"

/* ---- the compiler ------------------------------------------------------------------------ */

#define IGRT_VEC __attribute__((unused, always_inline)) static inline
#define IGRT_VECTOR(N) __attribute__((vector_size(4 * (N))))
#define IGRT_UNALIGNED(N) __attribute__((vector_size(4 * (N)), aligned(4), may_alias))
/* Its line is wanted soon, in L2. */
#define igrt_prefetch(p) __builtin_prefetch((p), 0, 2)
/* And is read once, 8 KB later, where a loop asks for it in each iteration.  A Zen has it sooner
 * past L2; Intel's cores hardly have it at all then.  These have 16 lines on their way to L1 at a
 * time and 48 to L2, which memory's latency needs: with AVX2 or more they ask for it in L2, and
 * 3 KB ahead, as their own prefetchers stop at pages of 4 KB. (Of those with vdpbf16ps but no tiles
 * nearly all are Zens.) Others: in L1. */
#if defined(__znver1__) || defined(__znver2__) || defined(__znver3__) || defined(__znver4__) || \
    defined(__znver5__)
#define igrt_prefetch_once(p) __builtin_prefetch((p), 0, 0)
#elif defined(__AVX2__) && (!defined(__AVX512BF16__) || defined(__AMX_TILE__))
#define igrt_prefetch_once(p) __builtin_prefetch((const char *)(p) - (8192 - 3072), 0, 2)
#else
#define igrt_prefetch_once(p) __builtin_prefetch((p), 0, 3)
#endif
/* Everything here is inlined, so how a vector that the ISA lacks would be passed does not matter.
 * (gcc still prints one note about it for such a width; -Wno-psabi is what silences that.) */
#pragma GCC diagnostic ignored "-Wpsabi"

/* immintrin.h declares AVX-512 and AMX for every processor: gcc and clang read it for 0.3 to 0.4 s,
 * several times as long as a kernel takes.  This includes only the parts of it that are used; they
 * ask for the macro that guards the whole, which is taken back after them, so that immintrin.h can
 * still be included.  What parts need of one another is not known for compilers that are not named
 * here; clang reads AVX-512 nearly as long as all. */
#if !defined(__GNUC__)
#define IGRT_X86_PARTS 0
#elif defined(__AVX512VL__) && !defined(__clang__)
#define IGRT_X86_PARTS (__GNUC__ == 12)
#elif defined(__AVX512F__)
#define IGRT_X86_PARTS 0
#elif defined(__clang__)
#define IGRT_X86_PARTS (__clang_major__ >= 8 && __clang_major__ <= 22)
#else
#define IGRT_X86_PARTS (__GNUC__ >= 5 && __GNUC__ <= 15)
#endif

#if defined(__AVX__) && !IGRT_X86_PARTS
#include <immintrin.h>
#elif defined(__AVX__)
#include <smmintrin.h>
#if !defined(_IMMINTRIN_H_INCLUDED) && !defined(__IMMINTRIN_H) /* of gcc, of clang */
#define _IMMINTRIN_H_INCLUDED
#define __IMMINTRIN_H
#include <avxintrin.h>
#if defined(__AVX2__)
#include <avx2intrin.h>
#endif
#if defined(__FMA__)
#include <fmaintrin.h>
#endif
#if defined(__F16C__)
#include <f16cintrin.h>
#endif
#if defined(__AVXVNNI__)
#include <avxvnniintrin.h>
#endif
#if defined(__AVXVNNIINT8__)
#include <avxvnniint8intrin.h>
#endif
#if defined(__AVX512F__)
#include <avx512fintrin.h>
#include <avx512vlintrin.h>
#if defined(__AVX512BW__)
#include <avx512bwintrin.h>
#endif
#if defined(__AVX512VBMI__)
#include <avx512vbmiintrin.h>
#endif
#if defined(__AVX512DQ__)
#include <avx512dqintrin.h>
#include <avx512vldqintrin.h>
#endif
#if defined(__AVX512VNNI__)
#include <avx512vnniintrin.h>
#include <avx512vnnivlintrin.h>
#endif
#if defined(__AVX512BF16__)
#include <avx512bf16vlintrin.h>
/* which has its types */
#include <avx512bf16intrin.h>
#endif
#endif
#undef _IMMINTRIN_H_INCLUDED
#undef __IMMINTRIN_H
#endif
#elif defined(__SSE4_1__)
#include <smmintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define IGRT_NEON64 1
#if defined(__ARM_FEATURE_SVE_BITS) && \
    (__ARM_FEATURE_SVE_BITS == 256 || __ARM_FEATURE_SVE_BITS == 512)
#include <arm_sve.h>
#define IGRT_SVE (__ARM_FEATURE_SVE_BITS / 32) /* lanes of a register, whose size is known */
#endif
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

#ifndef IGRT_SVE
#define IGRT_SVE 0
#endif

/* RISC-V's V: vectors of any number of lanes are a register or a group of them, as the compiler
 * finds them to be. Only clang has what the functions here are made of (gcc takes the plain forms,
 * and makes of them what it can). */
#if defined(__riscv_v) && defined(__clang__) && __clang_major__ >= 18
#define IGRT_RVV 1
#else
#define IGRT_RVV 0
#endif

/* Whether a register of x86 holds 8 lanes, 16 lanes; IGRT_FITS_8(a, b): a if one of any machine
 * does, b if halves do. */
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
#if IGRT_HAS_8 || IGRT_SVE == 8 || IGRT_RVV
#define IGRT_FITS_8(whole, halves) whole
#else
#define IGRT_FITS_8(whole, halves) halves
#endif
#if IGRT_HAS_16 || IGRT_SVE == 16 || IGRT_RVV
#define IGRT_FITS_16(whole, halves) whole
#else
#define IGRT_FITS_16(whole, halves) halves
#endif

/* a for the lanes of a register of SVE, b for other numbers of lanes. */
#define IGRT_BY_SVE_4(a, b) b
#if IGRT_SVE == 8
#define IGRT_BY_SVE_8(a, b) a
#else
#define IGRT_BY_SVE_8(a, b) b
#endif
#if IGRT_SVE == 16
#define IGRT_BY_SVE_16(a, b) a
#else
#define IGRT_BY_SVE_16(a, b) b
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

/* SVE: registers of the machine as vectors of a size that the compiler knows. All lanes; those that
 * a mask has. */
#if IGRT_SVE
#define IGRT_SVE_SIZE __attribute__((arm_sve_vector_bits(__ARM_FEATURE_SVE_BITS)))
typedef svfloat32_t igrt_sve_f32 IGRT_SVE_SIZE;
typedef svint32_t igrt_sve_i32 IGRT_SVE_SIZE;
typedef svuint32_t igrt_sve_u32 IGRT_SVE_SIZE;
#define IGRT_SVE_F(x) ((igrt_sve_f32)(x))
#define IGRT_SVE_I(x) ((igrt_sve_i32)(x))
#define IGRT_SVE_U(x) ((igrt_sve_u32)(x))
#define IGRT_SVE_ALL svptrue_b32()
#define IGRT_SVE_SET(m) svcmpne_n_s32(IGRT_SVE_ALL, IGRT_SVE_I(m), 0)
#endif

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

/* A sum, in a register before what is written next. gcc would compute all products of several sums
 * first, which takes more registers than there are, and add them where the sums are used. */
#if defined(__GNUC__) && !defined(__clang__)
#define IGRT_NOW(v) __asm__("" : "+v"(v))
#else
#define IGRT_NOW(v) (void)(v)
#endif
#define IGRT_NOW_LANES(N)                                    \
    IGRT_VEC igrt_i32x##N igrt_now_i32x##N(igrt_i32x##N sum) \
    {                                                        \
        IGRT_NOW(sum);                                       \
        return sum;                                          \
    }
#define IGRT_NOW_4(sum) (sum)
#define IGRT_NOW_8(sum) (sum)
#define IGRT_NOW_16(sum) (sum)
#if defined(__SSE2__)
IGRT_NOW_LANES(4)
#undef IGRT_NOW_4
#define IGRT_NOW_4(sum) igrt_now_i32x4(sum)
#endif
#if defined(__AVX2__)
IGRT_NOW_LANES(8)
#undef IGRT_NOW_8
#define IGRT_NOW_8(sum) igrt_now_i32x8(sum)
#endif
#if defined(__AVX512BW__)
IGRT_NOW_LANES(16)
#undef IGRT_NOW_16
#define IGRT_NOW_16(sum) igrt_now_i32x16(sum)
#endif

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
/* The same of four, without a detour by memory, which waits for four stores. */
#define IGRT_PARTS4(T, E)                                                           \
    IGRT_VEC igrt_##T##x4 igrt_load_part_##T##x4(const E *p, int n)                 \
    {                                                                               \
        return (igrt_##T##x4){n > 0 ? p[0] : 0, n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, \
                              n > 3 ? p[3] : 0};                                    \
    }                                                                               \
    IGRT_VEC void igrt_store_part_##T##x4(E *p, igrt_##T##x4 v, int n)              \
    {                                                                               \
        for (int i = 0; i < 4 && i < n; i++)                                        \
            p[i] = v[i];                                                            \
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
#define IGRT_STORE2S(T, E)                                            \
    IGRT_STORE2(T, E, 4)                                              \
    IGRT_FITS_8(IGRT_STORE2(T, E, 8), IGRT_STORE2_HALVES(T, E, 8, 4)) \
    IGRT_FITS_16(IGRT_STORE2(T, E, 16), IGRT_STORE2_HALVES(T, E, 16, 8))
IGRT_STORE2S(f32, float)
IGRT_STORE2S(i32, int32_t)
/* igrt_store4_f32x4(p, a, b, c, d) stores four interleaved: a[0], b[0], c[0], d[0], a[1], ... */
#define IGRT_STORE4(T, E, N)                                                      \
    IGRT_VEC void igrt_store4_##T##x##N(E *p, igrt_##T##x##N a, igrt_##T##x##N b, \
                                        igrt_##T##x##N c, igrt_##T##x##N d)       \
    {                                                                             \
        igrt_store2_##T##x##N(p, IGRT_FIRST##N(a, c), IGRT_FIRST##N(b, d));       \
        igrt_store2_##T##x##N(p + 2 * N, IGRT_LAST##N(a, c), IGRT_LAST##N(b, d)); \
    }
#define IGRT_STORE4_HALVES(T, E, N, H)                                                             \
    IGRT_VEC void igrt_store4_##T##x##N(E *p, igrt_##T##x##N a, igrt_##T##x##N b,                  \
                                        igrt_##T##x##N c, igrt_##T##x##N d)                        \
    {                                                                                              \
        igrt_store4_##T##x##H(p, igrt_lo_##T##x##N(a), igrt_lo_##T##x##N(b), igrt_lo_##T##x##N(c), \
                              igrt_lo_##T##x##N(d));                                               \
        igrt_store4_##T##x##H(p + 2 * N, igrt_hi_##T##x##N(a), igrt_hi_##T##x##N(b),               \
                              igrt_hi_##T##x##N(c), igrt_hi_##T##x##N(d));                         \
    }
#define IGRT_STORE4S(T, E)                                            \
    IGRT_STORE4(T, E, 4)                                              \
    IGRT_FITS_8(IGRT_STORE4(T, E, 8), IGRT_STORE4_HALVES(T, E, 8, 4)) \
    IGRT_FITS_16(IGRT_STORE4(T, E, 16), IGRT_STORE4_HALVES(T, E, 16, 8))
IGRT_STORE4S(f32, float)
IGRT_STORE4S(i32, int32_t)

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
#define IGRT_PARTS_SVE(N)                                                         \
    IGRT_VEC igrt_f32x##N igrt_load_part_f32x##N(const float *p, int n)           \
    {                                                                             \
        return (igrt_f32x##N)(igrt_sve_f32)svld1_f32(svwhilelt_b32_s32(0, n), p); \
    }                                                                             \
    IGRT_VEC void igrt_store_part_f32x##N(float *p, igrt_f32x##N v, int n)        \
    {                                                                             \
        svst1_f32(svwhilelt_b32_s32(0, n), p, IGRT_SVE_F(v));                     \
    }
IGRT_PARTS4(f32, float)
IGRT_BY_SVE_8(IGRT_PARTS_SVE(8), IGRT_PARTS(f32, float, 8))
#endif
#if IGRT_SVE == 16
IGRT_PARTS_SVE(16)
#elif IGRT_HAS_16
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
IGRT_PARTS4(i32, int32_t)
IGRT_PARTS(i32, int32_t, 8)
IGRT_PARTS(i32, int32_t, 16)

#endif
