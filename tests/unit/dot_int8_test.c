/* dot_int8_test.c - dots of bytes by AVX-VNNI-INT8, whose instructions are written out here: the
 * same bits as igrt_dot.h gives, on a machine and for a compiler that have none of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if !defined(__AVX2__)
int main(void)
{
    puts("skipped: this is no x86-64");
    return 0;
}
#else
#include <immintrin.h>

/* Intel's Architecture Instruction Set Extensions reference, VPDPB[SU,UU,SS]D: each lane of s plus
 * four products of bytes, modulo 2^32. */
#define EMULATED(NAME, V, XT, WT)                        \
    __attribute__((unused)) static V NAME(V s, V x, V w) \
    {                                                    \
        uint32_t sum[sizeof(V) / 4];                     \
        XT a[sizeof(V)];                                 \
        WT b[sizeof(V)];                                 \
        memcpy(sum, &s, sizeof s);                       \
        memcpy(a, &x, sizeof x);                         \
        memcpy(b, &w, sizeof w);                         \
        for (size_t i = 0; i < sizeof(V); i++)           \
            sum[i / 4] += (uint32_t)(a[i] * b[i]);       \
        memcpy(&s, sum, sizeof s);                       \
        return s;                                        \
    }
EMULATED(ssd_4, __m128i, int8_t, int8_t)
EMULATED(uud_4, __m128i, uint8_t, uint8_t)
EMULATED(usd_4, __m128i, uint8_t, int8_t)
EMULATED(ssd_8, __m256i, int8_t, int8_t)
EMULATED(uud_8, __m256i, uint8_t, uint8_t)
EMULATED(usd_8, __m256i, uint8_t, int8_t)
#undef _mm_dpbusd_avx_epi32
#undef _mm256_dpbusd_avx_epi32
#undef _mm_dpbssd_epi32
#undef _mm256_dpbssd_epi32
#undef _mm_dpbuud_epi32
#undef _mm256_dpbuud_epi32
#define _mm_dpbssd_epi32 ssd_4
#define _mm_dpbuud_epi32 uud_4
#define _mm_dpbusd_avx_epi32 usd_4
#define _mm256_dpbssd_epi32 ssd_8
#define _mm256_dpbuud_epi32 uud_8
#define _mm256_dpbusd_avx_epi32 usd_8
#define __AVXVNNI__ 1
#define __AVXVNNIINT8__ 1

#include "runtime_min/igrt_dot_vec.h"

static uint32_t next(void)
{
    static uint32_t seed = 1;
    seed = seed * 1664525 + 1013904223;
    return seed >> 8;
}

#define DOT(X, XT, W, WT)                                                                         \
    for (int n = 0; n < 500; n++) {                                                               \
        XT x[64];                                                                                 \
        WT w[64];                                                                                 \
        int32_t s[16], y[16];                                                                     \
        for (int i = 0; i < 64; i++) {                                                            \
            x[i] = (XT)(next() % 4 ? next() : 0x80u);                                             \
            w[i] = (WT)(next() % 4 ? next() : 0x80u);                                             \
        }                                                                                         \
        for (int i = 0; i < 16; i++) {                                                            \
            s[i] = (int32_t)(next() << 12);                                                       \
            y[i] = igrt_dot_##X##_##W(igrt_load_##X##x4(x + 4 * i), igrt_load_##W##x4(w + 4 * i), \
                                      s[i]);                                                      \
        }                                                                                         \
        const igrt_i32x4 a = igrt_dot_##X##_##W##_i32x4(                                          \
            igrt_load_##X##x4_i32x4(x), igrt_load_##W##x4_i32x4(w), igrt_load_i32x4(s));          \
        const igrt_i32x8 b = igrt_dot_##X##_##W##_i32x8(                                          \
            igrt_load_##X##x4_i32x8(x), igrt_load_##W##x4_i32x8(w), igrt_load_i32x8(s));          \
        const igrt_i32x16 c = igrt_dot_##X##_##W##_i32x16(                                        \
            igrt_load_##X##x4_i32x16(x), igrt_load_##W##x4_i32x16(w), igrt_load_i32x16(s));       \
        for (int i = 0; i < 16; i++)                                                              \
            assert_true(c[i] == y[i] && (i >= 8 || b[i] == y[i]) && (i >= 4 || a[i] == y[i]));    \
    }

static void of_any_sign(void **state)
{
    (void)state;
    DOT(i8, int8_t, i8, int8_t)
    DOT(i8, int8_t, u8, uint8_t)
    DOT(u8, uint8_t, i8, int8_t)
    DOT(u8, uint8_t, u8, uint8_t)
}

int main(void)
{
    if (!__builtin_cpu_supports("avx2")) {
        puts("skipped: this machine has no AVX2");
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_any_sign)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
