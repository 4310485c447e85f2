/* SPDX-License-Identifier: MIT-0 */
/*
 * igrt_table.h - bytes that a table of 256 makes of bytes, n of them side by side:
 *
 *     igrt_table_8(y, x, table, flip, n)        y[i] = table[x[i] ^ flip], of bytes with a sign or
 *                                               without one
 *     igrt_table_i8_i16(y, x, table, flip, n)   the same of a table of i8, widened to i16
 *     igrt_table_u8_i16(y, x, table, flip, n)   of u8
 *
 * flip: 128 where x has a sign and its least value stands first, else 0. y may be x.
 *
 * With AVX512-VBMI two tables of 128 bytes are looked up in one instruction each. AVX2 shuffles 16
 * bytes by indices whose top bit is clear, and gives 0 for others, so of a byte v
 *
 *     T0[v] ^ (T0 ^ T1)[v - 16] ^ (T1 ^ T2)[v - 32] ^ ..      T0, T1 ..: 16 bytes of the table each
 *
 * ends with the part that has v: behind it all indices are less than 0. aarch64 looks 64 bytes up
 * at once, and keeps what it has where an index is none of them. Elsewhere it is a loop.
 */
#ifndef IGRT_TABLE_H
#define IGRT_TABLE_H

#include "igrt_vec_base.h"

#if defined(__AVX512VBMI__) && defined(__AVX512BW__)
typedef struct igrt_byte_table {
    __m512i part[4];
} igrt_byte_table;

IGRT_INLINE igrt_byte_table igrt_table_of(const void *table, int flip)
{
    const unsigned char *t = (const unsigned char *)table, *low = t + flip, *high = t + 128 - flip;
    const igrt_byte_table all = {{_mm512_loadu_si512(low), _mm512_loadu_si512(low + 64),
                                  _mm512_loadu_si512(high), _mm512_loadu_si512(high + 64)}};
    return all;
}

IGRT_INLINE __m512i igrt_table_made(const igrt_byte_table *t, __m512i v)
{
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(v),
                                  _mm512_permutex2var_epi8(t->part[0], v, t->part[1]),
                                  _mm512_permutex2var_epi8(t->part[2], v, t->part[3]));
}

/* The first n of 64. */
IGRT_INLINE __m512i igrt_table_first(const igrt_byte_table *t, const char *x, int n)
{
    const __mmask64 some = n < 64 ? ((__mmask64)1 << n) - 1 : ~(__mmask64)0;
    return igrt_table_made(t, _mm512_maskz_loadu_epi8(some, x));
}

IGRT_INLINE void igrt_table_step_8(const igrt_byte_table *t, char *y, const char *x, int n)
{
    const __mmask64 some = n < 64 ? ((__mmask64)1 << n) - 1 : ~(__mmask64)0;
    _mm512_mask_storeu_epi8(y, some, igrt_table_first(t, x, n));
}

#define IGRT_TABLE_WIDE(T)                                                                       \
    IGRT_INLINE void igrt_table_step_##T##_i16(const igrt_byte_table *t, char *y, const char *x, \
                                               int n)                                            \
    {                                                                                            \
        const __mmask64 some = n < 64 ? ((__mmask64)1 << n) - 1 : ~(__mmask64)0;                 \
        const __m512i v = igrt_table_first(t, x, n);                                             \
        _mm512_mask_storeu_epi16(y, (__mmask32)some,                                             \
                                 _mm512_cvtep##T##_epi16(_mm512_castsi512_si256(v)));            \
        _mm512_mask_storeu_epi16(y + 64, (__mmask32)(some >> 32),                                \
                                 _mm512_cvtep##T##_epi16(_mm512_extracti64x4_epi64(v, 1)));      \
    }
IGRT_TABLE_WIDE(i8)
IGRT_TABLE_WIDE(u8)
#define IGRT_TABLE_STEPS(NAME, E)                         \
    const igrt_byte_table t = igrt_table_of(table, flip); \
    for (; i < n; i += 64)                                \
        igrt_table_step_##NAME(&t, (char *)((E *)y + i), (const char *)x + i, n - i);
#elif defined(__AVX2__)
#define IGRT_TABLE_AT_ONCE 32
typedef struct igrt_byte_table {
    unsigned char part[256];
} igrt_byte_table;

IGRT_INLINE igrt_byte_table igrt_table_of(const void *table, int flip)
{
    const unsigned char *t = (const unsigned char *)table;
    igrt_byte_table all;
    for (int half = 0; half < 2; half++) {
        const unsigned char *from = t + (half * 128 ^ flip);
        __m128i before = _mm_setzero_si128();
        for (int i = 0; i < 128; i += 16) {
            const __m128i now = _mm_loadu_si128((const __m128i *)(const void *)(from + i));
            _mm_storeu_si128((__m128i *)(void *)(all.part + half * 128 + i),
                             _mm_xor_si128(now, before));
            before = now;
        }
    }
    return all;
}

IGRT_INLINE __m256i igrt_table_made(const igrt_byte_table *t, const char *x)
{
    const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)x),
                  next = _mm256_set1_epi8(16);
    __m256i low = v, high = _mm256_xor_si256(v, _mm256_set1_epi8(-128)), y = _mm256_setzero_si256(),
            z = y;
    for (int i = 0; i < 128; i += 16) {
        const __m256i a = _mm256_broadcastsi128_si256(
                          _mm_loadu_si128((const __m128i *)(const void *)(t->part + i))),
                      b = _mm256_broadcastsi128_si256(
                          _mm_loadu_si128((const __m128i *)(const void *)(t->part + 128 + i)));
        y = _mm256_xor_si256(y, _mm256_shuffle_epi8(a, low));
        z = _mm256_xor_si256(z, _mm256_shuffle_epi8(b, high));
        low = _mm256_subs_epi8(low, next);
        high = _mm256_subs_epi8(high, next);
    }
    return _mm256_xor_si256(y, z);
}

IGRT_INLINE void igrt_table_step_8(const igrt_byte_table *t, char *y, const char *x)
{
    _mm256_storeu_si256((__m256i *)(void *)y, igrt_table_made(t, x));
}

#define IGRT_TABLE_WIDE(T)                                                                       \
    IGRT_INLINE void igrt_table_step_##T##_i16(const igrt_byte_table *t, char *y, const char *x) \
    {                                                                                            \
        const __m256i v = igrt_table_made(t, x);                                                 \
        _mm256_storeu_si256((__m256i *)(void *)y,                                                \
                            _mm256_cvtep##T##_epi16(_mm256_castsi256_si128(v)));                 \
        _mm256_storeu_si256((__m256i *)(void *)(y + 32),                                         \
                            _mm256_cvtep##T##_epi16(_mm256_extracti128_si256(v, 1)));            \
    }
IGRT_TABLE_WIDE(i8)
IGRT_TABLE_WIDE(u8)
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define IGRT_TABLE_AT_ONCE 16
typedef struct igrt_byte_table {
    uint8x16x4_t part[4];
} igrt_byte_table;

IGRT_INLINE igrt_byte_table igrt_table_of(const void *table, int flip)
{
    const uint8_t *t = (const uint8_t *)table, *low = t + flip, *high = t + 128 - flip;
    const igrt_byte_table all = {
        {{{vld1q_u8(low), vld1q_u8(low + 16), vld1q_u8(low + 32), vld1q_u8(low + 48)}},
         {{vld1q_u8(low + 64), vld1q_u8(low + 80), vld1q_u8(low + 96), vld1q_u8(low + 112)}},
         {{vld1q_u8(high), vld1q_u8(high + 16), vld1q_u8(high + 32), vld1q_u8(high + 48)}},
         {{vld1q_u8(high + 64), vld1q_u8(high + 80), vld1q_u8(high + 96), vld1q_u8(high + 112)}}}};
    return all;
}

IGRT_INLINE uint8x16_t igrt_table_made(const igrt_byte_table *t, const char *x)
{
    const uint8x16_t v = vld1q_u8((const uint8_t *)x), next = vdupq_n_u8(64);
    uint8x16_t at = v, y = vqtbl4q_u8(t->part[0], at);
    for (int i = 1; i < 4; i++) {
        at = vsubq_u8(at, next);
        y = vqtbx4q_u8(y, t->part[i], at);
    }
    return y;
}

IGRT_INLINE void igrt_table_step_8(const igrt_byte_table *t, char *y, const char *x)
{
    vst1q_u8((uint8_t *)y, igrt_table_made(t, x));
}

IGRT_INLINE void igrt_table_step_i8_i16(const igrt_byte_table *t, char *y, const char *x)
{
    const int8x16_t v = vreinterpretq_s8_u8(igrt_table_made(t, x));
    vst1q_s16((int16_t *)(void *)y, vmovl_s8(vget_low_s8(v)));
    vst1q_s16((int16_t *)(void *)(y + 16), vmovl_high_s8(v));
}

IGRT_INLINE void igrt_table_step_u8_i16(const igrt_byte_table *t, char *y, const char *x)
{
    const uint8x16_t v = igrt_table_made(t, x);
    vst1q_u16((uint16_t *)(void *)y, vmovl_u8(vget_low_u8(v)));
    vst1q_u16((uint16_t *)(void *)(y + 16), vmovl_high_u8(v));
}
#endif
#ifdef IGRT_TABLE_AT_ONCE
/* Of fewer than four times that, what is made of the table first takes longer than a loop. */
#define IGRT_TABLE_STEPS(NAME, E)                                                  \
    if (n >= 4 * IGRT_TABLE_AT_ONCE) {                                             \
        const igrt_byte_table t = igrt_table_of(table, flip);                      \
        for (; i <= n - IGRT_TABLE_AT_ONCE; i += IGRT_TABLE_AT_ONCE)               \
            igrt_table_step_##NAME(&t, (char *)((E *)y + i), (const char *)x + i); \
    }
#elif !defined(IGRT_TABLE_STEPS)
#define IGRT_TABLE_STEPS(NAME, E)
#endif
#define IGRT_TABLE(NAME, T, E)                                                                     \
    IGRT_INLINE void igrt_table_##NAME(void *y, const void *x, const void *table, int flip, int n) \
    {                                                                                              \
        int i = 0;                                                                                 \
        IGRT_TABLE_STEPS(NAME, E)                                                                  \
        for (; i < n; i++)                                                                         \
            ((E *)y)[i] = (E)((const T *)table)[((const uint8_t *)x)[i] ^ flip];                   \
    }
IGRT_TABLE(8, uint8_t, uint8_t)
IGRT_TABLE(i8_i16, int8_t, int16_t)
IGRT_TABLE(u8_i16, uint8_t, int16_t)

#endif
