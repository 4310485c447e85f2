/*
 * igrt_vec_rows.h - rows in memory that become columns of lanes.
 */
#ifndef IGRT_VEC_ROWS_H
#define IGRT_VEC_ROWS_H

#include "igrt_vec_narrow.h"

/*
 * igrt_load_rows_f32xN(t, p, step, rows, columns): of `rows` rows that begin `step` apart the first
 * `columns` elements, transposed: lane i of t[j] is p[i step + j], 0 from the last row on. t has
 * room for N.
 *
 * A matrix is transposed by log2 N perfect shuffles of its vectors, each of which rotates the bits
 * of an element's place (row, column) by one.
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

#endif
