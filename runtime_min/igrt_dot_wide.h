/*
 * igrt_dot_wide.h - sums of 8 and 16 products of bytes: igrt_dot8_<x>_<w>(x, w, s) and
 * igrt_dot16_<x>_<w>(x, w, s) are
 *
 *     s + x[0] w[0] + .. + x[15] w[15]                          of i8 or u8 each, in i32, modulo
 *                                                               2^32
 *
 * An igrt_i8x16 is sixteen neighbours in memory, of any alignment. Helium (Cortex-M55, M85) has
 * them in a vector register and sums all products by one instruction, vmladava; eight are widened
 * to 16 bits where they are loaded.  It multiplies no bytes of two kinds:
 *
 *     u w = (u - 128) w + 128 w         u - 128: the highest bit the other way
 *
 * Elsewhere they are so many fours.
 */
#ifndef IGRT_DOT_WIDE_H
#define IGRT_DOT_WIDE_H

#include "igrt_dot.h"

#if defined(__ARM_FEATURE_MVE)

typedef int16x8_t igrt_i8x8;
typedef int16x8_t igrt_u8x8;
typedef int8x16_t igrt_i8x16;
typedef uint8x16_t igrt_u8x16;

IGRT_INLINE igrt_i8x8 igrt_load_i8x8(const void *p)
{
    return vldrbq_s16((const int8_t *)p);
}

IGRT_INLINE igrt_u8x8 igrt_load_u8x8(const void *p)
{
    return vreinterpretq_s16_u16(vldrbq_u16((const uint8_t *)p));
}

IGRT_INLINE igrt_i8x16 igrt_load_i8x16(const void *p)
{
    return vldrbq_s8((const int8_t *)p);
}

IGRT_INLINE igrt_u8x16 igrt_load_u8x16(const void *p)
{
    return vldrbq_u8((const uint8_t *)p);
}

#define IGRT_DOT8(X, W)                                                                \
    IGRT_INLINE int32_t igrt_dot8_##X##_##W(igrt_##X##x8 x, igrt_##W##x8 w, int32_t s) \
    {                                                                                  \
        return vmladavaq_s16(s, x, w);                                                 \
    }

IGRT_INLINE int32_t igrt_dot16_i8_i8(igrt_i8x16 x, igrt_i8x16 w, int32_t s)
{
    return vmladavaq_s8(s, x, w);
}

IGRT_INLINE int32_t igrt_dot16_u8_u8(igrt_u8x16 x, igrt_u8x16 w, int32_t s)
{
    return (int32_t)vmladavaq_u8((uint32_t)s, x, w);
}

IGRT_INLINE int32_t igrt_dot16_u8_i8(igrt_u8x16 x, igrt_i8x16 w, int32_t s)
{
    const int8x16_t less = vreinterpretq_s8_u8(veorq_u8(x, vdupq_n_u8(128)));
    return vmladavaq_s8(igrt_add_i32(s, vaddvq_s8(w) * 128), less, w);
}

IGRT_INLINE int32_t igrt_dot16_i8_u8(igrt_i8x16 x, igrt_u8x16 w, int32_t s)
{
    return igrt_dot16_u8_i8(w, x, s);
}

#else

/* 8 bytes as two fours, 16 as two times 8. */
#define IGRT_TWO_OF(T, N, HALF)                                   \
    typedef struct igrt_##T##x##N {                               \
        igrt_##T##x##HALF low, high;                              \
    } igrt_##T##x##N;                                             \
    IGRT_INLINE igrt_##T##x##N igrt_load_##T##x##N(const void *p) \
    {                                                             \
        igrt_##T##x##N x;                                         \
        x.low = igrt_load_##T##x##HALF(p);                        \
        x.high = igrt_load_##T##x##HALF((const char *)p + HALF);  \
        return x;                                                 \
    }
IGRT_TWO_OF(i8, 8, 4)
IGRT_TWO_OF(u8, 8, 4)
IGRT_TWO_OF(i8, 16, 8)
IGRT_TWO_OF(u8, 16, 8)

#define IGRT_DOT8(X, W)                                                                 \
    IGRT_INLINE int32_t igrt_dot8_##X##_##W(igrt_##X##x8 x, igrt_##W##x8 w, int32_t s)  \
    {                                                                                   \
        return igrt_dot_##X##_##W(x.high, w.high, igrt_dot_##X##_##W(x.low, w.low, s)); \
    }
#define IGRT_DOT16(X, W)                                                                  \
    IGRT_INLINE int32_t igrt_dot16_##X##_##W(igrt_##X##x16 x, igrt_##W##x16 w, int32_t s) \
    {                                                                                     \
        return igrt_dot8_##X##_##W(x.high, w.high, igrt_dot8_##X##_##W(x.low, w.low, s)); \
    }

#endif

IGRT_DOTS(IGRT_DOT8)
#ifdef IGRT_DOT16
IGRT_DOTS(IGRT_DOT16)
#endif

#endif
