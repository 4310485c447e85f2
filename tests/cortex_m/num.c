/* num.c - what igrt_num.h, igrt_dot.h, igrt_dot_wide.h and igrt_four.h have in instructions of a
 * core gives what they say in C, for numbers at the edges and drawn ones. It says "ok", or what
 * differs. */
#include <stdbool.h>

#include "igrt_dot_wide.h"
#include "igrt_four.h"

#include "board.h"

enum { DRAWN = 200, BYTES = 16 };

static const int32_t edges[] = {0,
                                1,
                                -1,
                                2,
                                -2,
                                3,
                                -3,
                                127,
                                128,
                                -128,
                                -129,
                                255,
                                256,
                                1073741823,
                                1073741824,
                                1073741825,
                                INT32_MAX,
                                INT32_MIN,
                                -INT32_MAX,
                                -1073741824,
                                INT32_MAX - 1,
                                INT32_MIN + 2};
enum { EDGES = sizeof edges / sizeof *edges };

static uint32_t state = 1;

static int32_t drawn(void)
{
    state = state * 1664525u + 1013904223u;
    return (int32_t)(state ^ state >> 15);
}

static int32_t number(int i)
{
    return i < EDGES ? edges[i] : drawn() >> (i & 31);
}

static void differs(const char *what, int32_t x, int32_t y)
{
    board_say(what);
    board_say_number(" ", (uint32_t)x);
    board_say_number("  ", (uint32_t)y);
    board_leave(1);
}

/* x / 2^n, halves away from zero; the least number counts as the greatest. */
static int32_t shifted(int32_t x, int32_t n)
{
    if (n < 0 || n > 31)
        return 0;
    if (!n)
        return x;
    const int64_t size = x == INT32_MIN ? INT32_MAX : x < 0 ? -(int64_t)x : x;
    const int32_t y = (int32_t)((size + ((int64_t)1 << (n - 1))) >> n);
    return x < 0 && x != INT32_MIN ? -y : y;
}

static int32_t clamped(int64_t x, int32_t lo, int32_t hi)
{
    return (int32_t)(x < lo ? lo : x > hi ? hi : x);
}

/* To the nearest, halves to even, of what is below 2^22. */
static int32_t rounded(float x)
{
    const int32_t down = (int32_t)x - (x < (float)(int32_t)x);
    const float part = x - (float)down;
    return down + (part > 0.5f || (part == 0.5f && (down & 1)));
}

static void integers(int32_t x, int32_t y)
{
    const int64_t product = (int64_t)x * y;
    if (igrt_mulhi_i32(x, y) != (int32_t)(uint32_t)((product + 1073741824) >> 31))
        differs("mulhi", x, y);
    const int32_t half = (y & INT32_MAX) | 1 << 30;
    if (igrt_mulhi_half_i32(x, half) != (int32_t)(((int64_t)x * half + 1073741824) >> 31))
        differs("mulhi_half", x, half);
    const int32_t low = (int32_t)((uint32_t)y & 0x3fffffffu);
    if (igrt_mulhi_low_i32(x, low) != (int32_t)(((int64_t)x * low + 1073741824) >> 31))
        differs("mulhi_low", x, low);
    if (igrt_clamp_i32(x, -128, 127) != clamped(x, -128, 127) ||
        igrt_clamp_i32(x, 0, 255) != clamped(x, 0, 255) ||
        igrt_clamp_i32(x, -5, 100) != clamped(x, -5, 100))
        differs("clamp", x, 0);
    const int by = y & 31; /* downward, as division of the 64 bits above all sums */
    const int64_t above = (int64_t)1 << 40, down = (x + above) / ((int64_t)1 << by);
    if (igrt_shr_i32(x, by) != (int32_t)(down - above / ((int64_t)1 << by)) ||
        igrt_clamp_i32(igrt_shr_i32(x, 7), -128, 127) != clamped(igrt_shr_i32(x, 7), -128, 127))
        differs("shr", x, by);
}

static void floats(float x)
{
    static const int32_t zeros[] = {-128, 0, 3, 127, 255};
    for (int i = 0; i < 5; i++) {
        const int32_t z = zeros[i];
        const int32_t y = x > 1e6f    ? 1000000
                          : x < -1e6f ? -1000000
                          : x == x    ? rounded(x)
                                      : -1000000;
        if (igrt_quantize_f32(x, z, -128, 127) != clamped((int64_t)y + z, -128, 127) ||
            igrt_quantize_f32(x, z, 0, 255) != clamped((int64_t)y + z, 0, 255) ||
            igrt_quantize_f32(x, z, -8, 7) != clamped((int64_t)y + z, -8, 7))
            differs("quantize", (int32_t)(x * 256), z);
    }
}

static int32_t sum(const int8_t *x, bool unsigned_x, const int8_t *w, bool unsigned_w, int n,
                   int32_t s)
{
    for (int i = 0; i < n; i++)
        s = igrt_add_i32(s,
                         (unsigned_x ? (uint8_t)x[i] : x[i]) * (unsigned_w ? (uint8_t)w[i] : w[i]));
    return s;
}

#define CHECK(N, NAME, X, W, UX, UW)                                                  \
    if (igrt_##NAME##_##X##_##W(igrt_load_##X##x##N(x), igrt_load_##W##x##N(w), s) != \
        sum(x, UX, w, UW, N, s))                                                      \
        differs(#NAME "_" #X "_" #W, x[0], w[0]);
#define ALL(N, NAME)                     \
    CHECK(N, NAME, i8, i8, false, false) \
    CHECK(N, NAME, i8, u8, false, true)  \
    CHECK(N, NAME, u8, i8, true, false)  \
    CHECK(N, NAME, u8, u8, true, true)

/* What was widened, in the place of one operand or of both. */
#define WIDE(X, W, UX, UW)                                                             \
    igrt_widen_##X##x4(place, x);                                                      \
    igrt_widen_##W##x4(place + 4, w);                                                  \
    if (igrt_dot_wide_##W(igrt_load_i16x4(place, 0), igrt_load_##W##x4(w), s) !=       \
            sum(x, UX, w, UW, 4, s) ||                                                 \
        igrt_dot_##X##_wide(igrt_load_##X##x4(x), igrt_load_i16x4(place, 4), s) !=     \
            sum(x, UX, w, UW, 4, s) ||                                                 \
        igrt_dot_wide_wide(igrt_load_i16x4(place, 0), igrt_load_i16x4(place, 4), s) != \
            sum(x, UX, w, UW, 4, s))                                                   \
        differs("wide_" #X "_" #W, x[0], w[0]);

static void dots(void)
{
    static igrt_i16x4 places[2];
    int16_t *const place = (int16_t *)(void *)places;
    static int8_t memory[2 * BYTES + 3];
    static const int8_t ends[] = {-128, 127, -1, 0};
    for (int turn = 0; turn < DRAWN; turn++) {
        const int8_t *x = memory + turn % 4, *w = memory + BYTES + turn % 3;
        const int32_t s = number(turn);
        for (int i = 0; i < (int)sizeof memory; i++)
            memory[i] = turn < 16 ? ends[i < BYTES ? turn % 4 : turn / 4] : (int8_t)drawn();
        ALL(4, dot)
        ALL(8, dot8)
        ALL(16, dot16)
        WIDE(i8, i8, false, false)
        WIDE(i8, u8, false, true)
        WIDE(u8, i8, true, false)
        WIDE(u8, u8, true, true)
    }
}

/* Four at once give what each gives alone, at addresses beside each other and apart. */
static void fours(const int32_t *x, const float *scale)
{
    static const int apart[][3] = {{1, 2, 3}, {7, 14, 21}, {-3, 5, 1}};
    static const int32_t zeros[] = {-128, 21, 0};
    for (int i = 0; i < 3; i++) {
        const int *d = apart[i], z = zeros[i];
        int8_t memory[32], *to = memory + 4, at[4];
        uint8_t bytes[32];
        for (int j = 0; j < 32; j++)
            bytes[j] = (uint8_t)(memory[j] = (int8_t)drawn());
        const igrt_four_i32 old = igrt_four_load_i8(to, d[0], d[1], d[2]),
                            low = igrt_four_load_u8(bytes + 4, d[0], d[1], d[2]);
        for (int j = 0; j < 4; j++) {
            const int k = j ? d[j - 1] : 0;
            const float y = igrt_muladd_f32((float)(igrt_add_i32(x[j], to[k])), scale[j],
                                            (float)igrt_sub_i32(bytes[4 + k], x[j]) * 0.25f);
            at[j] = (int8_t)igrt_quantize_f32(y, z, -128, 127);
        }
        const igrt_four_i32 sums = igrt_four_join_i32(x[0], x[1], x[2], x[3]);
        const igrt_four_f32 y =
            igrt_four_muladd_f32(igrt_four_float(igrt_four_add_i32(sums, old)),
                                 igrt_four_join_f32(scale[0], scale[1], scale[2], scale[3]),
                                 igrt_four_mul_f32(igrt_four_float(igrt_four_sub_i32(low, sums)),
                                                   igrt_four_splat_f32(0.25f)));
        igrt_four_store_i8(to, d[0], d[1], d[2], igrt_four_quantize(y, z, -128, 127));
        for (int j = 0; j < 4; j++)
            if (to[j ? d[j - 1] : 0] != at[j])
                differs("four", x[j], j);
    }
}

/* Integers by one number, shifted and held within bytes. */
static void fours_of_one(const int32_t *x, int32_t by)
{
    int8_t to[4];
    const igrt_four_i32 all = igrt_four_join_i32(x[0], x[1], x[2], x[3]);
    const int32_t m = by == INT32_MIN ? 1 : by;
    igrt_four_store_i8(
        to, 1, 2, 3,
        igrt_four_shr_i8(
            igrt_four_mulhi_i32_1(igrt_four_add_i32_1(igrt_four_mul_i32_1(all, 16), by), m), 5));
    for (int j = 0; j < 4; j++) {
        const int32_t y = igrt_mulhi_i32(igrt_add_i32(igrt_mul_i32(x[j], 16), by), m);
        if (to[j] != igrt_clamp_i32(igrt_shr_i32(y, 5), INT8_MIN, INT8_MAX))
            differs("four of one", x[j], by);
    }
    igrt_four_store_i8(to, 1, 2, 3, igrt_four_shr_i8(igrt_four_sub_i32_1(all, by), 24));
    for (int j = 0; j < 4; j++)
        if (to[j] != igrt_shr_i32(igrt_sub_i32(x[j], by), 24))
            differs("four of one, by 24", x[j], by);
}

static void draw_fours(void)
{
    for (int turn = 0; turn < DRAWN; turn++) {
        int32_t x[4];
        float scale[4];
        for (int i = 0; i < 4; i++) {
            x[i] = number(turn + i);
            scale[i] = turn % 9 == i ? NAN : (float)(drawn() % 1000) / (float)(1 << turn % 30);
        }
        fours(x, scale);
        fours_of_one(x, number(turn));
        fours_of_one(x, drawn());
    }
}

int main(void)
{
    for (int i = 0; i < EDGES + DRAWN; i++) {
        const int32_t x = number(i);
        for (int j = 0; j < EDGES; j++)
            integers(x, edges[j]);
        integers(x, drawn());
        for (int n = -1; n < 34; n++)
            if (igrt_shrr_i32(x, n) != shifted(x, n))
                differs("shrr", x, n);
        for (int n = 0; n < 32; n++)
            if (igrt_shrr_word_i32(x, n) != shifted(x, n))
                differs("shrr_word", x, n);
        floats((float)(x % 100000) / 128);
        floats((float)(x % 1000) / 2);
    }
    floats(1e9f);
    floats(-1e9f);
    floats(NAN);
    dots();
    draw_fours();
    board_say("ok\n");
    return 0;
}
