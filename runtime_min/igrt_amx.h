/*
 * igrt_amx.h - AMX: a matrix unit of x86-64 with eight tiles of up to 16 rows of 64 bytes.
 *
 *     igrt_amx_begin(&tiles, sums, a, rows, terms)   the shapes: tiles 0..sums-1 hold sums, the
 *                                                    next `a` operands of `rows` rows, all
 *                                                    others operands of terms / 4 lines; terms:
 *                                                        bytes of a row of a
 *     igrt_amx_load(&tiles, n, p, pitch)             tile n from lines that lie pitch bytes apart
 *     igrt_amx_store(&tiles, n, p, pitch)
 *     igrt_amx_zero(&tiles, n)
 *     igrt_amx_dot_i8_u8(&tiles, c, a, b)            c += a b: i32 sums of products of bytes;
 *                                                    _bf16_bf16: f32 sums
 *     igrt_amx_end(&tiles)
 *
 * A process has to be let use the tiles: igrt_cpu_lacks() asks for them.
 *
 * a is [rows][terms], b [terms / 4][16 columns][4 bytes]: four terms of bytes, or two of bf16.
 * Numbers of tiles are literals.
 *
 * With -DIGRT_EMULATE_AMX, or where the compiler's machine has no AMX, the same in plain C, with
 * the same bits.  Of bf16 the unit sums even and odd terms apart, without infinities in between
 * being told, and takes subnormal numbers as zeros.
 */
#ifndef IGRT_AMX_H
#define IGRT_AMX_H

#include "igrt_num.h"

#if defined(__AMX_TILE__) && defined(__AMX_INT8__) && defined(__AMX_BF16__) && \
    defined(__x86_64__) && !defined(IGRT_EMULATE_AMX)

typedef struct igrt_amx_tiles {
    uint8_t palette, start, none[14];
    uint16_t bytes[16]; /* of a line, by tile */
    uint8_t lines[16];
} igrt_amx_tiles;

IGRT_INLINE void igrt_amx_begin(igrt_amx_tiles *t, int sums, int a, int rows, int terms)
{
    memset(t, 0, sizeof *t);
    t->palette = 1;
    for (int i = 0; i < 8; i++) {
        t->lines[i] = (uint8_t)(i < sums + a ? rows : terms / 4);
        t->bytes[i] = (uint16_t)(i >= sums && i < sums + a ? terms : 64);
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(*t));
}

#define igrt_amx_end(t) __asm__ volatile("tilerelease" : : : "memory")
#define igrt_amx_load(t, n, p, pitch) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #n : : "r"(p), "r"((int64_t)(pitch)) : "memory")
#define igrt_amx_store(t, n, p, pitch)                   \
    __asm__ volatile("tilestored %%tmm" #n ", (%0,%1,1)" \
                     :                                   \
                     : "r"(p), "r"((int64_t)(pitch))     \
                     : "memory")
#define igrt_amx_zero(t, n) __asm__ volatile("tilezero %%tmm" #n : :)
#define IGRT_AMX_DOT(op, c, a, b) __asm__ volatile(op " %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#define igrt_amx_dot_i8_i8(t, c, a, b) IGRT_AMX_DOT("tdpbssd", c, a, b)
#define igrt_amx_dot_i8_u8(t, c, a, b) IGRT_AMX_DOT("tdpbsud", c, a, b)
#define igrt_amx_dot_u8_i8(t, c, a, b) IGRT_AMX_DOT("tdpbusd", c, a, b)
#define igrt_amx_dot_u8_u8(t, c, a, b) IGRT_AMX_DOT("tdpbuud", c, a, b)
#define igrt_amx_dot_bf16_bf16(t, c, a, b) IGRT_AMX_DOT("tdpbf16ps", c, a, b)

#else

typedef struct igrt_amx_tiles {
    uint8_t at[8][16][64];
    int lines[8], bytes[8];
} igrt_amx_tiles;

IGRT_INLINE void igrt_amx_begin(igrt_amx_tiles *t, int sums, int a, int rows, int terms)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < 8; i++) {
        t->lines[i] = i < sums + a ? rows : terms / 4;
        t->bytes[i] = i >= sums && i < sums + a ? terms : 64;
    }
}

IGRT_INLINE void igrt_amx_end(igrt_amx_tiles *t)
{
    (void)t;
}

IGRT_INLINE void igrt_amx_load(igrt_amx_tiles *t, int n, const void *p, int64_t pitch)
{
    for (int i = 0; i < t->lines[n]; i++)
        memcpy(t->at[n][i], (const char *)p + i * pitch, (size_t)t->bytes[n]);
}

IGRT_INLINE void igrt_amx_store(const igrt_amx_tiles *t, int n, void *p, int64_t pitch)
{
    for (int i = 0; i < t->lines[n]; i++)
        memcpy((char *)p + i * pitch, t->at[n][i], (size_t)t->bytes[n]);
}

IGRT_INLINE void igrt_amx_zero(igrt_amx_tiles *t, int n)
{
    memset(t->at[n], 0, sizeof t->at[n]);
}

#define IGRT_AMX_BYTES(X, W)                                                                   \
    IGRT_INLINE void igrt_amx_dot_##X##_##W(igrt_amx_tiles *t, int c, int a, int b)            \
    {                                                                                          \
        for (int m = 0; m < t->lines[c]; m++)                                                  \
            for (int n = 0; n < 16; n++) {                                                     \
                int32_t sum;                                                                   \
                memcpy(&sum, t->at[c][m] + 4 * n, 4);                                          \
                for (int k = 0; k < t->bytes[a]; k++)                                          \
                    sum = igrt_add_i32(sum, IGRT_AMX_##X(t->at[a][m][k]) *                     \
                                                IGRT_AMX_##W(t->at[b][k / 4][4 * n + k % 4])); \
                memcpy(t->at[c][m] + 4 * n, &sum, 4);                                          \
            }                                                                                  \
    }
#define IGRT_AMX_i8(x) ((x) - ((x)&128) * 2)
#define IGRT_AMX_u8(x) (int)(x)
IGRT_AMX_BYTES(i8, i8)
IGRT_AMX_BYTES(i8, u8)
IGRT_AMX_BYTES(u8, i8)
IGRT_AMX_BYTES(u8, u8)

/* The upper half of an f32; subnormal numbers are zeros. */
IGRT_INLINE float igrt_amx_bf16(const uint8_t *p)
{
    const uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 24;
    return igrt_bits_f32(bits & 0x7f800000u ? bits : bits & 0x80000000u);
}

IGRT_INLINE float igrt_amx_flush(float x)
{
    const uint32_t bits = igrt_f32_bits(x);
    return igrt_bits_f32(bits & 0x7f800000u ? bits : bits & 0x80000000u);
}

IGRT_INLINE void igrt_amx_dot_bf16_bf16(igrt_amx_tiles *t, int c, int a, int b)
{
    for (int m = 0; m < t->lines[c]; m++)
        for (int n = 0; n < 16; n++) {
            float sum, part[2] = {0.0f, 0.0f};
            memcpy(&sum, t->at[c][m] + 4 * n, 4);
            for (int k = 0; k < t->bytes[a] / 2; k++) {
                const float x = igrt_amx_bf16(t->at[a][m] + 2 * k);
                const float y = igrt_amx_bf16(t->at[b][k / 2] + 4 * n + 2 * (k % 2));
                part[k % 2] = igrt_amx_flush(part[k % 2] + x * y);
            }
            sum = igrt_amx_flush(igrt_amx_flush(sum) + igrt_amx_flush(part[0] + part[1]));
            memcpy(t->at[c][m] + 4 * n, &sum, 4);
        }
}

#endif

#endif
