/*
 * num_test.c - igrt_num.h against independent formulas.
 *
 * Decoding is compared with sign * mantissa * 2^exponent for every code. Encoding is compared at
 * every code, at the middle of every two neighbours and one f32 step to either side of it: rounding
 * is monotonic, so these points decide it for every f32. Integer functions of 8 bits are
 * exhaustive.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "igrt_num.h"

/* ---- formats ----------------------------------------------------------------------------- */

typedef struct Format {
    const char *name;
    int bits, mbits, bias;
    uint32_t top;      /* the largest finite code */
    uint32_t inf, nan; /* codes without sign; inf is 0 where there is none */
    int fnuz;
    float (*decode)(uint32_t code);
    uint32_t (*encode)(float x, int saturate);
    uint32_t (*encode64)(double x, int saturate);
} Format;

/* clang-format off */
static float d_f16(uint32_t c) { return igrt_f16_to_f32((uint16_t)c); }
static float d_bf16(uint32_t c) { return igrt_bf16_to_f32((uint16_t)c); }
static float d_e4(uint32_t c) { return igrt_f8e4m3fn_to_f32((uint8_t)c); }
static float d_e4z(uint32_t c) { return igrt_f8e4m3fnuz_to_f32((uint8_t)c); }
static float d_e5(uint32_t c) { return igrt_f8e5m2_to_f32((uint8_t)c); }
static float d_e5z(uint32_t c) { return igrt_f8e5m2fnuz_to_f32((uint8_t)c); }
static float d_f4(uint32_t c) { return igrt_f4e2m1_to_f32((uint8_t)c); }
static uint32_t e_f16(float x, int s) { (void)s; return igrt_f32_to_f16(x); }
static uint32_t e_bf16(float x, int s) { (void)s; return igrt_f32_to_bf16(x); }
static uint32_t e_e4(float x, int s) { return igrt_f32_to_f8e4m3fn(x, s); }
static uint32_t e_e4z(float x, int s) { return igrt_f32_to_f8e4m3fnuz(x, s); }
static uint32_t e_e5(float x, int s) { return igrt_f32_to_f8e5m2(x, s); }
static uint32_t e_e5z(float x, int s) { return igrt_f32_to_f8e5m2fnuz(x, s); }
static uint32_t e_f4(float x, int s) { (void)s; return igrt_f32_to_f4e2m1(x); }
static uint32_t w_f16(double x, int s) { (void)s; return igrt_f64_to_f16(x); }
static uint32_t w_bf16(double x, int s) { (void)s; return igrt_f64_to_bf16(x); }
static uint32_t w_e4(double x, int s) { return igrt_f64_to_f8e4m3fn(x, s); }
static uint32_t w_e4z(double x, int s) { return igrt_f64_to_f8e4m3fnuz(x, s); }
static uint32_t w_e5(double x, int s) { return igrt_f64_to_f8e5m2(x, s); }
static uint32_t w_e5z(double x, int s) { return igrt_f64_to_f8e5m2fnuz(x, s); }
static uint32_t w_f4(double x, int s) { (void)s; return igrt_f64_to_f4e2m1(x); }

static const Format formats[] = {
    {"f16",        16, 10, 15,  0x7bff, 0x7c00, 0x7e00, 0, d_f16,  e_f16,  w_f16},
    {"bf16",       16, 7,  127, 0x7f7f, 0x7f80, 0x7fc0, 0, d_bf16, e_bf16, w_bf16},
    {"f8e4m3fn",   8,  3,  7,   0x7e,   0,      0x7f,   0, d_e4,   e_e4,   w_e4},
    {"f8e4m3fnuz", 8,  3,  8,   0x7f,   0,      0x80,   1, d_e4z,  e_e4z,  w_e4z},
    {"f8e5m2",     8,  2,  15,  0x7b,   0x7c,   0x7e,   0, d_e5,   e_e5,   w_e5},
    {"f8e5m2fnuz", 8,  2,  16,  0x7f,   0,      0x80,   1, d_e5z,  e_e5z,  w_e5z},
    {"f4e2m1",     4,  1,  1,   0x7,    0,      0,      0, d_f4,   e_f4,   w_f4},
};
/* clang-format on */
enum { N_FORMATS = sizeof formats / sizeof *formats };

static double formula(const Format *f, uint32_t code)
{
    const int m = (int)(code & ((1u << f->mbits) - 1)), e = (int)(code >> f->mbits);
    if (e == 0)
        return ldexp(m, 1 - f->bias - f->mbits);
    return ldexp(m + (1 << f->mbits), e - f->bias - f->mbits);
}

static uint32_t sign_of(const Format *f)
{
    return 1u << (f->bits - 1);
}

static void decodes(void **state)
{
    (void)state;
    for (int k = 0; k < N_FORMATS; k++) {
        const Format *f = &formats[k];
        for (uint32_t c = 0; c < sign_of(f) * 2; c++) {
            const uint32_t a = c & (sign_of(f) - 1);
            const float x = f->decode(c);
            if (f->fnuz && c == sign_of(f)) {
                assert_true(isnan(x));
                continue;
            }
            if (a > f->top) {
                assert_true(a == f->inf ? isinf(x) : isnan(x));
                assert_true(!signbit(x) == !(c & sign_of(f)));
                continue;
            }
            assert_true((double)fabsf(x) == formula(f, a));
            assert_true(!signbit(x) == !(c & sign_of(f)));
            assert_int_equal(f->encode(x, 0), c);
            assert_int_equal(f->encode(x, 1), c);
            assert_int_equal(f->encode64(x, 0), c);
        }
    }
}

/* Both signs of x give code. */
static void check_f32(const Format *f, float x, uint32_t code, int saturate)
{
    const uint32_t negative = f->fnuz && code == 0 ? 0 : code | sign_of(f);
    assert_int_equal(f->encode(x, saturate), code);
    assert_int_equal(f->encode(-x, saturate), negative);
}

static void check_f64(const Format *f, double x, uint32_t code, int saturate)
{
    const uint32_t negative = f->fnuz && code == 0 ? 0 : code | sign_of(f);
    assert_int_equal(f->encode64(x, saturate), code);
    assert_int_equal(f->encode64(-x, saturate), negative);
}

static void rounds(void **state)
{
    (void)state;
    for (int k = 0; k < N_FORMATS; k++) {
        const Format *f = &formats[k];
        for (uint32_t c = 0; c < f->top; c++) {
            const double lo = formula(f, c), hi = formula(f, c + 1), mid = 0.5 * (lo + hi);
            const uint32_t even = c & 1 ? c + 1 : c;
            assert_true((double)(float)mid == mid);
            check_f32(f, (float)mid, even, 0);
            check_f32(f, nextafterf((float)mid, -INFINITY), c, 0);
            check_f32(f, nextafterf((float)mid, INFINITY), c + 1, 1);
            /* closer to the middle than f32 can say: a second rounding would be wrong */
            check_f64(f, mid, even, 1);
            check_f64(f, nextafter(mid, -INFINITY), c, 0);
            check_f64(f, nextafter(mid, INFINITY), c + 1, 0);
        }
    }
}

static void overflows(void **state)
{
    (void)state;
    for (int k = 0; k < N_FORMATS; k++) {
        const Format *f = &formats[k];
        const double top = formula(f, f->top), over = formula(f, f->top + 1);
        const double mid = 0.5 * (top + over);
        const int always = f->bits == 4; /* f4e2m1 saturates, f16 and bf16 never do */
        const uint32_t beyond = always ? f->top : f->inf ? f->inf : f->nan;
        const uint32_t at_mid = f->top & 1 ? beyond : f->top;
        const double huge[] = {nextafter(mid, INFINITY), 1e39, 1e300, INFINITY};
        check_f64(f, nextafter(mid, 0), f->top, 0);
        check_f64(f, mid, at_mid, 0);
        for (int i = 0; i < 4; i++) {
            check_f64(f, huge[i], beyond, 0);
            if (f->bits == 8)
                check_f64(f, huge[i], f->top, 1);
        }
        check_f32(f, INFINITY, beyond, 0);
        check_f32(f, 3.4e38f, f->bits == 16 && f->mbits == 7 ? f->inf : beyond, 0);
        if (f->bits == 8) {
            check_f32(f, INFINITY, f->top, 1);
            check_f32(f, 3.4e38f, f->top, 1);
        }
        for (int s = 0; s < 2; s++) {
            const uint32_t nan = f->encode(igrt_bits_f32(0x7fc00000u), s);
            const uint32_t minus = f->encode(igrt_bits_f32(0xffc00000u), s);
            assert_int_equal(nan, always ? 8 : f->nan);
            assert_int_equal(minus, always ? 0 : f->nan | sign_of(f));
            assert_int_equal(f->encode64(NAN, s), nan);
        }
        check_f64(f, 5e-324, 0, 1);
    }
}

/* Payloads of NaN survive f16 -> f32 -> f16, made quiet. */
static void nan_payloads(void **state)
{
    (void)state;
    for (uint32_t c = 0x7c01; c < 0x8000; c++) {
        const float x = igrt_f16_to_f32((uint16_t)c);
        assert_int_equal(igrt_f32_bits(x), 0x7fc00000u | (c & 0x3ff) << 13);
        assert_int_equal(igrt_f32_to_f16(x), c | 0x200);
    }
    assert_int_equal(igrt_f32_to_f16(igrt_bits_f32(0x7f800001u)), 0x7e00);
    assert_int_equal(igrt_f32_to_bf16(igrt_bits_f32(0xff800001u)), 0xffc0);
}

static void e8m0(void **state)
{
    (void)state;
    for (int c = 0; c < 255; c++) {
        const float x = igrt_f8e8m0_to_f32((uint8_t)c), up = nextafterf(x, INFINITY);
        const int next = c < 254 ? c + 1 : 254, lost = c < 254 ? c + 1 : 255;
        assert_true((double)x == ldexp(1, c - 127));
        for (int mode = 0; mode < 3; mode++)
            for (int sat = 0; sat < 2; sat++)
                assert_int_equal(igrt_f32_to_f8e8m0(x, sat, mode), c);
        assert_int_equal(igrt_f32_to_f8e8m0(up, 1, IGRT_ROUND_UP), next);
        assert_int_equal(igrt_f32_to_f8e8m0(up, 0, IGRT_ROUND_UP), lost);
        assert_int_equal(igrt_f32_to_f8e8m0(up, 0, IGRT_ROUND_DOWN), c);
        assert_int_equal(igrt_f32_to_f8e8m0(1.5f * x, 1, IGRT_ROUND_NEAREST), next);
        assert_int_equal(igrt_f32_to_f8e8m0(nextafterf(1.5f * x, 0), 0, IGRT_ROUND_NEAREST), c);
        assert_int_equal(igrt_f64_to_f8e8m0(ldexp(1, c - 127) * (1 + 1e-15), 1, IGRT_ROUND_UP),
                         next);
    }
    assert_true(isnan(igrt_f8e8m0_to_f32(255)));
    assert_int_equal(igrt_f32_to_f8e8m0(0, 1, IGRT_ROUND_UP), 0);
    assert_int_equal(igrt_f32_to_f8e8m0(0, 0, IGRT_ROUND_NEAREST), 255);
    assert_int_equal(igrt_f32_to_f8e8m0(INFINITY, 1, IGRT_ROUND_UP), 254);
    assert_int_equal(igrt_f32_to_f8e8m0(INFINITY, 0, IGRT_ROUND_UP), 255);
    assert_int_equal(igrt_f32_to_f8e8m0(NAN, 1, IGRT_ROUND_UP), 255);
    assert_int_equal(igrt_f32_to_f8e8m0(-2.0f, 1, IGRT_ROUND_UP), 128);
}

static void odd_rounding_of_integers(void **state)
{
    (void)state;
    /* 2^62 + 2^54 is half way between two bf16; one more goes up, unless f32 lost it before */
    const int64_t half = (INT64_C(1) << 62) + (INT64_C(1) << 54);
    assert_int_equal(igrt_f32_to_bf16(igrt_i64_to_f32_odd(half)), 0x5e80);
    assert_int_equal(igrt_f32_to_bf16(igrt_i64_to_f32_odd(half + 1)), 0x5e81);
    assert_int_equal(igrt_f32_to_bf16(igrt_i64_to_f32_odd(-half - 1)), 0xde81);
    assert_int_equal(igrt_f32_to_bf16(igrt_i64_to_f32_odd(half - 1)), 0x5e80);
    assert_true(igrt_i64_to_f32_odd(INT64_MIN) == -9223372036854775808.0f);
    assert_true(igrt_u64_to_f32_odd(0) == 0.0f && igrt_u64_to_f32_odd(16777215) == 16777215.0f);
    assert_int_equal(igrt_f32_bits(igrt_u64_to_f32_odd(UINT64_MAX)), 0x5f7fffff);
}

/* ---- float -> integer -------------------------------------------------------------------- */

static void float_to_int(void **state)
{
    (void)state;
    static const struct {
        double x;
        int64_t i64;
        int32_t i32;
        uint64_t u64;
    } t[] = {
        {NAN, 0, 0, 0},
        {1.99, 1, 1, 1},
        {-1.99, -1, -1, UINT64_MAX},
        {-0.5, 0, 0, 0},
        {2147483647.5, 2147483647, INT32_MAX, 2147483647},
        {2147483648.0, 2147483648, INT32_MAX, 2147483648u},
        {-2147483648.5, -INT64_C(2147483648), INT32_MIN, (uint64_t)-INT64_C(2147483648)},
        {-2147483649.0, -INT64_C(2147483649), INT32_MIN, (uint64_t)-INT64_C(2147483649)},
        {9223372036854774784.0, 9223372036854774784, INT32_MAX, 9223372036854774784u},
        {9223372036854775808.0, INT64_MAX, INT32_MAX, UINT64_C(9223372036854775808)},
        {18446744073709549568.0, INT64_MAX, INT32_MAX, UINT64_C(18446744073709549568)},
        {18446744073709551616.0, INT64_MAX, INT32_MAX, UINT64_MAX},
        {-9223372036854775808.0, INT64_MIN, INT32_MIN, UINT64_C(9223372036854775808)},
        {INFINITY, INT64_MAX, INT32_MAX, UINT64_MAX},
        {-INFINITY, INT64_MIN, INT32_MIN, UINT64_C(9223372036854775808)},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const float f = (float)t[i].x;
        assert_true(igrt_f64_to_i64(t[i].x) == t[i].i64);
        assert_true(igrt_f64_to_i32(t[i].x) == t[i].i32);
        assert_true(igrt_f64_to_u64(t[i].x) == t[i].u64);
        assert_true(igrt_f32_to_i64(f) == igrt_f64_to_i64((double)f));
        assert_true(igrt_f32_to_i32(f) == igrt_f64_to_i32((double)f));
        assert_true(igrt_f32_to_u64(f) == igrt_f64_to_u64((double)f));
    }
    assert_int_equal(igrt_f32_to_u8(300.7f), 44);
    assert_int_equal(igrt_f32_to_u8(-1.5f), 255);
    assert_int_equal(igrt_f32_to_i8(200.0f), -56);
    assert_int_equal(igrt_f64_to_i16(40000.0), -25536);
    assert_int_equal(igrt_f64_to_u16(-1.0), 65535);
    assert_true(igrt_f32_to_u32(-1.0f) == UINT32_MAX && igrt_f32_to_u32(3e9f) == 3000000000u);
    assert_int_equal(igrt_f32_to_i4(-9.0f), 7);
    assert_int_equal(igrt_f32_to_u4(-9.0f), 7);
    assert_int_equal(igrt_f32_to_i2(2.0f), -2);
    assert_int_equal(igrt_f32_to_u2(-1.0f), 3);
    assert_true(igrt_f32_to_bool(NAN) == 1 && igrt_f32_to_bool(-0.0f) == 0);
    assert_true(igrt_f64_to_bool(5e-324) == 1);
}

static void packed(void **state)
{
    (void)state;
    uint8_t p[4] = {0};
    for (size_t i = 0; i < 8; i++)
        igrt_put_u4(p, i, (unsigned)(i * 5));
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(igrt_get_u4(p, i), i * 5 & 15);
        assert_int_equal(igrt_get_i4(p, i), ((int)(i * 5 & 15) ^ 8) - 8);
    }
    assert_int_equal(p[0], 0x50);
    for (size_t i = 0; i < 16; i++)
        igrt_put_u2(p, i, (unsigned)(i * 3));
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(igrt_get_u2(p, i), i * 3 & 3);
        assert_int_equal(igrt_get_i2(p, i), ((int)(i * 3 & 3) ^ 2) - 2);
    }
}

/* ---- integers ---------------------------------------------------------------------------- */

static int floor_div(int x, int y)
{
    const double q = floor((double)x / y);
    return (int)q;
}

static void int8_exhaustive(void **state)
{
    (void)state;
    for (int x = -128; x < 128; x++) {
        const int8_t a = (int8_t)x;
        const uint8_t ua = (uint8_t)x;
        assert_int_equal(igrt_neg_i8(a), (int8_t)-x);
        assert_int_equal(igrt_abs_i8(a), (int8_t)(x < 0 ? -x : x));
        assert_int_equal(igrt_sign_i8(a), (x > 0) - (x < 0));
        for (int y = -128; y < 128; y++) {
            const int8_t b = (int8_t)y;
            const uint8_t ub = (uint8_t)y;
            assert_int_equal(igrt_add_i8(a, b), (int8_t)(x + y));
            assert_int_equal(igrt_sub_i8(a, b), (int8_t)(x - y));
            assert_int_equal(igrt_mul_i8(a, b), (int8_t)(x * y));
            assert_int_equal(igrt_add_u8(ua, ub), (ua + ub) & 255);
            assert_int_equal(igrt_mul_u8(ua, ub), ua * ub & 255);
            assert_int_equal(igrt_div_i8(a, b), (int8_t)(y ? x / y : 0));
            assert_int_equal(igrt_fmod_i8(a, b), y ? x % y : 0);
            assert_int_equal(igrt_floordiv_i8(a, b), (int8_t)(y ? floor_div(x, y) : 0));
            assert_int_equal(igrt_mod_i8(a, b), y ? x - y * floor_div(x, y) : 0);
            assert_int_equal(igrt_div_u8(ua, ub), ub ? ua / ub : 0);
            assert_int_equal(igrt_mod_u8(ua, ub), ub ? ua % ub : 0);
            assert_int_equal(igrt_shl_i8(a, b), (int8_t)(ub < 8 ? x * (1 << ub) : 0));
            assert_int_equal(igrt_shr_i8(a, b), ub < 8 ? floor_div(x, 1 << ub) : 0);
            assert_int_equal(igrt_shl_u8(ua, ub), ub < 8 ? (ua << ub) & 255 : 0);
            assert_int_equal(igrt_shr_u8(ua, ub), ub < 8 ? ua >> ub : 0);
            assert_int_equal(igrt_max_i8(a, b), x > y ? x : y);
            assert_int_equal(igrt_min_i8(a, b), x < y ? x : y);
            int8_t power = 1;
            for (int i = 0; i < y; i++)
                power = (int8_t)(power * x);
            if (y < 0)
                power = (int8_t)(x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0);
            assert_int_equal(igrt_pow_i8(a, b), power);
        }
    }
}

static void wide_integers(void **state)
{
    (void)state;
    assert_true(igrt_add_i32(INT32_MAX, 1) == INT32_MIN);
    assert_true(igrt_mul_i32(INT32_MIN, -1) == INT32_MIN);
    assert_true(igrt_mul_u16(65535, 65535) == 1);
    assert_true(igrt_mul_i16(-32768, -32768) == 0);
    assert_true(igrt_sub_i64(INT64_MIN, 1) == INT64_MAX);
    assert_true(igrt_mul_i64(INT64_MAX, 2) == -2);
    assert_true(igrt_div_i32(INT32_MIN, -1) == INT32_MIN && igrt_fmod_i32(INT32_MIN, -1) == 0);
    assert_true(igrt_div_i64(INT64_MIN, -1) == INT64_MIN && igrt_mod_i64(INT64_MIN, -1) == 0);
    assert_true(igrt_floordiv_i64(INT64_MIN, -1) == INT64_MIN);
    assert_true(igrt_floordiv_i64(-7, 2) == -4 && igrt_floordiv_i32(7, -2) == -4);
    assert_true(igrt_mod_i64(-7, 2) == 1 && igrt_mod_i32(7, -2) == -1);
    assert_true(igrt_div_u64(1, 0) == 0 && igrt_fmod_u64(1, 0) == 0 && igrt_div_i64(1, 0) == 0);
    assert_true(igrt_shl_i32(1, 31) == INT32_MIN && igrt_shl_i32(1, 32) == 0);
    assert_true(igrt_shl_u64(1, 63) == UINT64_C(1) << 63 && igrt_shl_u64(1, 64) == 0);
    assert_true(igrt_shr_i64(INT64_MIN, 63) == -1 && igrt_shr_i64(-1, -1) == 0);
    assert_true(igrt_pow_i64(3, 39) == INT64_C(4052555153018976267));
    assert_true(igrt_pow_i32(2, 31) == INT32_MIN && igrt_pow_i64(-1, INT64_MIN) == 1);
    assert_true(igrt_abs_i64(INT64_MIN) == INT64_MIN);
}

/* ---- float arithmetic -------------------------------------------------------------------- */

static void floats(void **state)
{
    (void)state;
    assert_true(isnan(igrt_max_f32(NAN, 1)) && isnan(igrt_max_f32(1, NAN)));
    assert_true(isnan(igrt_min_f32(NAN, 1)) && isnan(igrt_min_f32(1, NAN)));
    assert_true(isnan(igrt_max_f64(NAN, 1)) && isnan(igrt_min_f64(1, NAN)));
    assert_true(igrt_max_f32(2, 1) == 2 && igrt_min_f32(2, 1) == 1);
    assert_true(signbit(igrt_max_f32(0.0f, -0.0f)) && !signbit(igrt_max_f32(-0.0f, 0.0f)));
    assert_true(isnan(igrt_relu_f32(NAN)) && igrt_relu_f32(-1) == 0 && igrt_relu_f32(3) == 3);
    assert_true(isnan(igrt_sign_f32(NAN)) && igrt_sign_f32(-3) == -1 && igrt_sign_f64(2) == 1);
    assert_true(igrt_round_f32(2.5f) == 2 && igrt_round_f32(-1.5f) == -2 &&
                igrt_round_f64(0.5) == 0);
    assert_true(igrt_fmod_f32(-7, 2) == -1 && igrt_mod_f32(-7, 2) == 1 &&
                igrt_mod_f64(7, -2) == -1);
    assert_true(signbit(igrt_mod_f32(4, -2)) && isnan(igrt_mod_f32(1, 0)));
    assert_true(fabs(igrt_erf_f64(0.5) - 0.52049987781304653768) < 1e-15);
    static const float by[] = {1.4142135f, 1.4140625f, 768, 3, -7e-9f, 9e11f, 1.9999999f, 1e-12f};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        float high = (float)(1 / (double)by[i]);
        if (fabs((double)high) > fabs(1 / (double)by[i]))
            high = nextafterf(high, 0);
        const float low = (float)(1 / (double)by[i] - (double)high);
        for (uint64_t u = 0; u < UINT64_C(1) << 32; u += 39119) {
            const float x = igrt_bits_f32((uint32_t)u), want = x / by[i];
            const float got = igrt_quotient_f32(x, high, low);
            const float unit = nextafterf(fabsf(want), INFINITY) - fabsf(want);
            const int tiny = fabsf(x) < 0x1p-60f; /* its product with `low` may be nothing */
            assert_true(igrt_f32_bits(got) == igrt_f32_bits(want) || (isnan(got) && isnan(want)) ||
                        (tiny && fabsf(got - want) <= unit));
        }
    }
    for (float x = -12; x < 12; x += 0x1p-9f) {
        const double erf_of = erf((double)x);
        assert_true(fabs((double)igrt_erf_and_f32(x, 1) - (erf_of + 1)) < 4e-7);
        assert_true(fabs((double)igrt_erf_and_f32(x, -0.5f) - (erf_of - 0.5)) < 4e-7);
    }
    assert_true(igrt_erf_and_f32(-INFINITY, 1) == 0 && igrt_erf_and_f32(INFINITY, 1) == 2 &&
                igrt_erf_and_f32(-1e30f, 1) == 0 && igrt_erf_and_f32(0, 1) == 1 &&
                isnan(igrt_erf_and_f32(NAN, 1)));
    assert_true(igrt_muladd_f32(2, 3, 4) == 10 && igrt_muladd_f64(2, 3, 4) == 10);
}

/* e^x for targets that have no C library's: to 1.25 units in the last place. */
static void one_exp(void **state)
{
    (void)state;
    enum { STEP = 9973 };
    for (uint64_t u = 0; u < UINT64_C(0x100000000); u += STEP) {
        const float x = igrt_bits_f32((uint32_t)u), got = igrt_exp_f32(x);
        const double want = exp((double)x);
        int e = -125;
        if (want > 0x1p-126 && want < 0x1p128)
            (void)frexp(want, &e);
        const int off = !(fabs((double)got - want) <= 1.25 * ldexp(1, e - 24));
        if (want >= 0x1.fffffep127 ? got < 0x1.fffffep127f : x == x ? off : got == got)
            fail_msg("exp of %.9g is %.9g, want %.9g", (double)x, (double)got, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes),
        cmocka_unit_test(rounds),
        cmocka_unit_test(overflows),
        cmocka_unit_test(nan_payloads),
        cmocka_unit_test(e8m0),
        cmocka_unit_test(odd_rounding_of_integers),
        cmocka_unit_test(float_to_int),
        cmocka_unit_test(packed),
        cmocka_unit_test(int8_exhaustive),
        cmocka_unit_test(wide_integers),
        cmocka_unit_test(one_exp),
        cmocka_unit_test(floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
