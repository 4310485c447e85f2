/* vec_pairs.h - of vec_test.c: two products of i16 at once, igrt_dot_i16.h.
 * Included by vec_test.c. */
#ifndef VEC_PAIRS_H
#define VEC_PAIRS_H

#include "runtime_min/igrt_dot_i16.h"

static uint32_t next(void); /* random bits */

/* Two products of i16 modulo 2^32, the least of them too; bytes are widened by the load. */
#define PAIRS(N, T, E)                                                                            \
    for (int n = 0; n < 2000; n++) {                                                              \
        E w[32];                                                                                  \
        int16_t x[32];                                                                            \
        int32_t s[16], y[16];                                                                     \
        for (int i = 0; i < 32; i++) {                                                            \
            x[i] = next() % 8 ? (int16_t)next() : INT16_MIN;                                      \
            w[i] = next() % 8 ? (E)next() : (E)INT16_MIN;                                         \
        }                                                                                         \
        for (int i = 0; i < 16; i++) {                                                            \
            s[i] = (int32_t)next();                                                               \
            y[i] = (int32_t)((uint32_t)s[i] + (uint32_t)(x[2 * i] * w[2 * i]) +                   \
                             (uint32_t)(x[2 * i + 1] * w[2 * i + 1]));                            \
            assert_int_equal(                                                                     \
                igrt_dot_i16_i16(igrt_load_i16x2(x + 2 * i), igrt_load_##T##x2(w + 2 * i), s[i]), \
                y[i]);                                                                            \
        }                                                                                         \
        const igrt_i32x##N a = igrt_dot_i16_i16_i32x##N(                                          \
            igrt_load_i16x2_i32x##N(x), igrt_load_##T##x2_i32x##N(w), igrt_load_i32x##N(s));      \
        const igrt_i32x##N b =                                                                    \
            igrt_dot_i16_i16_i32x##N(igrt_load_##T##x2_i32x##N(w),                                \
                                     igrt_load_part_i16x2_i32x##N(x, 3), igrt_load_i32x##N(s));   \
        const igrt_i32x##N c = igrt_dot_i16_i16_i32x##N(                                          \
            igrt_load_part_##T##x2_i32x##N(w, 3), igrt_splat_i16x2_i32x##N(igrt_load_i16x2(x)),   \
            igrt_load_i32x##N(s));                                                                \
        const igrt_i32x##N d = igrt_splat_##T##x2_i32x##N(igrt_load_##T##x2(w));                  \
        for (int i = 0; i < N; i++) {                                                             \
            assert_int_equal(a[i], y[i]);                                                         \
            assert_int_equal(b[i], i < 3 ? y[i] : s[i]);                                          \
            assert_int_equal(c[i], i ? c[i] : y[0]);                                              \
            assert_int_equal(c[i], i < 3 ? c[i] : s[i]);                                          \
            assert_int_equal((int16_t)(d[i] & 0xffff), w[0]);                                     \
            assert_int_equal(d[i] >> 16, w[1]);                                                   \
        }                                                                                         \
    }
/* One product in each lane; u: where one of both has no sign. */
#define SHORTS_IN_LANES(N)                                                               \
    for (int n = 0; n < 2000; n++) {                                                     \
        int32_t x[N], u[N], w[N], s[N];                                                  \
        for (int i = 0; i < N; i++) {                                                    \
            x[i] = next() % 8 ? (int16_t)next() : INT16_MIN;                             \
            w[i] = next() % 8 ? (int16_t)next() : INT16_MIN;                             \
            u[i] = (uint8_t)next();                                                      \
            s[i] = (int32_t)next();                                                      \
        }                                                                                \
        const igrt_i32x##N of_w = igrt_load_i32x##N(w), sum = igrt_load_i32x##N(s);      \
        const igrt_i32x##N a = igrt_muladd_i16_i32x##N(igrt_load_i32x##N(x), of_w, sum); \
        const igrt_i32x##N b = igrt_muladd_u16_i32x##N(igrt_load_i32x##N(u), of_w, sum); \
        for (int i = 0; i < N; i++) {                                                    \
            assert_int_equal(a[i], (int32_t)((uint32_t)s[i] + (uint32_t)(x[i] * w[i]))); \
            assert_int_equal(b[i], (int32_t)((uint32_t)s[i] + (uint32_t)(u[i] * w[i]))); \
        }                                                                                \
    }
static void dots_of_i16(void **state)
{
    (void)state;
    SHORTS_IN_LANES(4)
    SHORTS_IN_LANES(8)
    SHORTS_IN_LANES(16)
    PAIRS(4, i16, int16_t)
    PAIRS(8, i16, int16_t)
    PAIRS(16, i16, int16_t)
    PAIRS(4, i8, int8_t)
    PAIRS(8, i8, int8_t)
    PAIRS(16, i8, int8_t)
    PAIRS(4, u8, uint8_t)
    PAIRS(8, u8, uint8_t)
    PAIRS(16, u8, uint8_t)
}

#endif
