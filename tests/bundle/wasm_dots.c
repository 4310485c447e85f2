/* wasm_dots.c - dots of WebAssembly's lanes against those of igrt_dot.h: wrong() is 0, or the line
 * of the first that differs. Bytes are of any value, the least ones often. */
#include "igrt_dot_i16.h"
#include "igrt_dot_vec.h"

static uint32_t next(void)
{
    static uint32_t seed = 1;
    seed = seed * 1664525 + 1013904223;
    return seed >> 8;
}

static uint8_t x[64], w[64];
static int32_t s[16], y[16];

static void draw(int most)
{
    for (int i = 0; i < 64; i++) {
        x[i] = (uint8_t)(next() % 4 ? next() : 0x80u) & most;
        w[i] = (uint8_t)(next() % 4 ? next() : 0x80u);
    }
    for (int i = 0; i < 16; i++)
        s[i] = (int32_t)(next() << 12);
}

static void keep_4(igrt_i32x4 v, int at)
{
    memcpy(y + at, &v, sizeof v);
}

static void keep_8(igrt_i32x8 v, int at)
{
    memcpy(y + at, &v, sizeof v);
}

static void keep_16(igrt_i32x16 v, int at)
{
    memcpy(y + at, &v, sizeof v);
}

/* N lanes of a dot of type TX x TW, by the loads XL and WL. */
#define DOT(X, XL, W, WL, N, MOST)                                                       \
    for (int n = 0; n < 200; n++) {                                                      \
        draw(MOST);                                                                      \
        for (int i = 0; i < 16; i += N)                                                  \
            keep_##N(igrt_dot_##X##_##W##_i32x##N(igrt_load_##XL##x4_i32x##N(x + 4 * i), \
                                                  igrt_load_##WL##x4_i32x##N(w + 4 * i), \
                                                  igrt_load_i32x##N(s + i)),             \
                     i);                                                                 \
        for (int i = 0; i < 16; i++)                                                     \
            if (y[i] != igrt_dot_##XL##_##WL(igrt_load_##XL##x4(x + 4 * i),              \
                                             igrt_load_##WL##x4(w + 4 * i), s[i]))       \
                return __LINE__;                                                         \
    }
#define PAIRS(X, N)                                                                               \
    for (int n = 0; n < 200; n++) {                                                               \
        draw(255);                                                                                \
        for (int i = 0; i < 16; i += N)                                                           \
            keep_##N(igrt_dot_i16_i16_i32x##N(igrt_load_##X##x2_i32x##N(x + 2 * i),               \
                                              igrt_load_i16x2_i32x##N(w + 4 * i),                 \
                                              igrt_load_i32x##N(s + i)),                          \
                     i);                                                                          \
        for (int i = 0; i < 16; i++)                                                              \
            if (y[i] !=                                                                           \
                igrt_dot_i16_i16(igrt_load_##X##x2(x + 2 * i), igrt_load_i16x2(w + 4 * i), s[i])) \
                return __LINE__;                                                                  \
    }

__attribute__((export_name("wrong"))) int wrong(void)
{
    DOT(i8, i8, i8, i8, 4, 255)
    DOT(i8, i8, i8, i8, 8, 255)
    DOT(i8, i8, i8, i8, 16, 255)
    DOT(u8, u8, i8, i8, 4, 255)
    DOT(u8, u8, i8, i8, 16, 255)
    DOT(i8, i8, u8, u8, 4, 255)
    DOT(u8, u8, u8, u8, 4, 255)
    DOT(u8, u8, u8, u8, 16, 255)
    DOT(u7, u8, i8, i8, 4, 127)
    DOT(u7, u8, i8, i8, 8, 127)
    DOT(u7, u8, i8, i8, 16, 127)
    PAIRS(i8, 4)
    PAIRS(u8, 4)
    PAIRS(i8, 16)
    return 0;
}
