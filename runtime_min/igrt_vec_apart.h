/*
 * igrt_vec_apart.h - lanes that lie apart in memory, and those that a mask chooses.
 */
#ifndef IGRT_VEC_APART_H
#define IGRT_VEC_APART_H

#include "igrt_vec_narrow.h"

/*
 * igrt_load_step_f32xN(p, step) loads p[0], p[step], p[2 step], ...; igrt_load_mask_f32xN(a, at,
 * step, m) loads a[at], a[at + step], ... where the mask is set, and zeros elsewhere: what is not
 * chosen may lie outside of all there is. Both for what is narrower in memory too,
 * igrt_load_step_i8_i32xN().
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
/* Two apart: the even ones of the first N, and the odd ones of those that end with the last
 * lane. */
#define IGRT_EVEN8(a, b) IGRT_SHUFFLE(8, a, b, 0, 2, 4, 6, 9, 11, 13, 15)
#define IGRT_EVEN16(a, b) \
    IGRT_SHUFFLE(16, a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31)
/* An address that nothing is read from may be no element's: reckoned without pointers. */
#define IGRT_AT(a, at) ((const float *)((uintptr_t)(a) + (uintptr_t)(at) * sizeof(float)))
#define IGRT_SVE_APART(N)                                                                        \
    IGRT_VEC igrt_f32x##N igrt_load_step_f32x##N(const float *p, ptrdiff_t step)                 \
    {                                                                                            \
        return (igrt_f32x##N)(igrt_sve_f32)svld1_gather_s32index_f32(IGRT_SVE_ALL, p,            \
                                                                     svindex_s32(0, (int)step)); \
    }                                                                                            \
    IGRT_VEC igrt_f32x##N igrt_load_mask_f32x##N(const float *a, ptrdiff_t at, ptrdiff_t step,   \
                                                 igrt_i32x##N m)                                 \
    {                                                                                            \
        if (step == 1)                                                                           \
            return (igrt_f32x##N)(igrt_sve_f32)svld1_f32(IGRT_SVE_SET(m), IGRT_AT(a, at));       \
        return (igrt_f32x##N)(igrt_sve_f32)svld1_gather_s32index_f32(                            \
            IGRT_SVE_SET(m), IGRT_AT(a, at), svindex_s32(0, (int)step));                         \
    }
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
IGRT_BY_SVE_8(IGRT_SVE_APART(8), IGRT_WIDE_APART(f32, float, 8))
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
IGRT_BY_SVE_16(IGRT_SVE_APART(16), IGRT_WIDE_APART(f32, float, 16))
#endif

#endif
