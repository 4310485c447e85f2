/*
 * vec_test.c - igrt_vec.h lane by lane against the scalar functions of igrt_num.h, and its own exp,
 * log, tanh, erf, sin, cos against double.
 *
 * vec_native_test.c is this file for the ISA of the machine, so that both the plain forms and the
 * ones written with intrinsics are run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime_min/igrt_dot_bf16.h"
#include "runtime_min/igrt_dot_vec.h"
#include "runtime_min/igrt_vec.h"
#include "runtime_min/igrt_vec64.h"
#include "vec_digits.h"
#include "vec_inputs.h"
#include "vec_pairs.h"
#include "vec_tables.h"
#include "vec_turns.h"
#include "vec_wide.h"

/* ---- lane by lane ------------------------------------------------------------------------- */

static float neg1(float x)
{
    return -x;
}

static float add2(float x, float y)
{
    return x + y;
}

static float sub2(float x, float y)
{
    return x - y;
}

static float mul2(float x, float y)
{
    return x * y;
}

static float div2(float x, float y)
{
    return x / y;
}

static float above2(float x, float y)
{
    return x > y ? x : y;
}

static float below2(float x, float y)
{
    return x < y ? x : y;
}

#define UNARY(N, OP, REF)                                             \
    igrt_store_f32x##N(r, igrt_##OP##_f32x##N(igrt_load_f32x##N(a))); \
    for (int i = 0; i < N; i++)                                       \
        same(#OP " x" #N, r[i], REF(a[i]), a[i], 0);
#define BINARY(N, OP, REF)                                                                  \
    igrt_store_f32x##N(r, igrt_##OP##_f32x##N(igrt_load_f32x##N(a), igrt_load_f32x##N(b))); \
    for (int i = 0; i < N; i++)                                                             \
        same(#OP " x" #N, r[i], REF(a[i], b[i]), a[i], b[i]);
#define COMPARE(N, NAME, OP)                                                                      \
    igrt_store_i32x##N(m, igrt_##NAME##_f32x##N(igrt_load_f32x##N(a), igrt_load_f32x##N(b)));     \
    igrt_store_f32x##N(                                                                           \
        r, igrt_where_f32x##N(igrt_load_i32x##N(m), igrt_load_f32x##N(c), igrt_load_f32x##N(a))); \
    igrt_store_f32x##N(q, igrt_if_##NAME##_f32x##N(igrt_load_f32x##N(a), igrt_load_f32x##N(b),    \
                                                   igrt_load_f32x##N(c), igrt_load_f32x##N(a)));  \
    for (int i = 0; i < N; i++) {                                                                 \
        assert_int_equal(m[i], a[i] OP b[i] ? -1 : 0);                                            \
        same("where", r[i], a[i] OP b[i] ? c[i] : a[i], a[i], b[i]);                              \
        same("if_" #NAME, q[i], r[i], a[i], b[i]);                                                \
    }
#define ACROSS(N, NAME, F)            \
    for (int i = 0; i < N; i++)       \
        q[i] = a[i];                  \
    for (int h = N / 2; h; h /= 2)    \
        for (int i = 0; i < h; i++)   \
            q[i] = F(q[i], q[i + h]); \
    same(#NAME " x" #N, igrt_##NAME##_f32x##N(igrt_load_f32x##N(a)), q[0], a[0], a[1]);

#define LANES(N)                                                                                  \
    static void lanes##N(void **state)                                                            \
    {                                                                                             \
        (void)state;                                                                              \
        float a[N], b[N], c[N], r[N], q[N];                                                       \
        int32_t m[N];                                                                             \
        for (int round = 0; round < 3000; round++) {                                              \
            for (int i = 0; i < N; i++) {                                                         \
                a[i] = any();                                                                     \
                b[i] = next() % 8 ? any() : a[i];                                                 \
                c[i] = any();                                                                     \
            }                                                                                     \
            UNARY(N, neg, neg1)                                                                   \
            UNARY(N, abs, fabsf)                                                                  \
            UNARY(N, relu, igrt_relu_f32)                                                         \
            UNARY(N, sign, igrt_sign_f32)                                                         \
            UNARY(N, sqrt, sqrtf)                                                                 \
            UNARY(N, floor, floorf)                                                               \
            UNARY(N, ceil, ceilf)                                                                 \
            UNARY(N, trunc, truncf)                                                               \
            UNARY(N, round, igrt_round_f32)                                                       \
            UNARY(N, tan, tanf)                                                                   \
            UNARY(N, asin, asinf)                                                                 \
            UNARY(N, acos, acosf)                                                                 \
            UNARY(N, atan, atanf)                                                                 \
            UNARY(N, sinh, sinhf)                                                                 \
            UNARY(N, cosh, coshf)                                                                 \
            UNARY(N, asinh, asinhf)                                                               \
            UNARY(N, acosh, acoshf)                                                               \
            UNARY(N, atanh, atanhf)                                                               \
            BINARY(N, add, add2)                                                                  \
            BINARY(N, sub, sub2)                                                                  \
            BINARY(N, mul, mul2)                                                                  \
            BINARY(N, div, div2)                                                                  \
            BINARY(N, above, above2)                                                              \
            BINARY(N, below, below2)                                                              \
            BINARY(N, max, igrt_max_f32)                                                          \
            BINARY(N, min, igrt_min_f32)                                                          \
            BINARY(N, copysign, copysignf)                                                        \
            BINARY(N, pow, powf)                                                                  \
            BINARY(N, mod, igrt_mod_f32)                                                          \
            BINARY(N, fmod, igrt_fmod_f32)                                                        \
            COMPARE(N, eq, ==)                                                                    \
            COMPARE(N, ne, !=)                                                                    \
            COMPARE(N, lt, <)                                                                     \
            COMPARE(N, le, <=)                                                                    \
            ACROSS(N, hadd, add2)                                                                 \
            ACROSS(N, hmul, mul2)                                                                 \
            ACROSS(N, hmax, igrt_max_f32)                                                         \
            ACROSS(N, hmin, igrt_min_f32)                                                         \
            igrt_store_f32x##N(r, igrt_muladd_f32x##N(igrt_load_f32x##N(a), igrt_load_f32x##N(b), \
                                                      igrt_load_f32x##N(c)));                     \
            igrt_store_i32x##N(m, igrt_isnan_f32x##N(igrt_load_f32x##N(a)));                      \
            for (int i = 0; i < N; i++) {                                                         \
                same("muladd x" #N, r[i], igrt_muladd_f32(a[i], b[i], c[i]), a[i], b[i]);         \
                assert_int_equal(m[i], a[i] != a[i] ? -1 : 0);                                    \
            }                                                                                     \
        }                                                                                         \
        const igrt_i32x##N few = igrt_iota_i32x##N(0) < 2, all = few | ~few;                      \
        assert_true(igrt_any_f32x##N(few));                                                       \
        assert_false(igrt_any_f32x##N(igrt_and_mask_f32x##N(few, igrt_not_mask_f32x##N(few))));   \
        igrt_store_i32x##N(m, igrt_or_mask_f32x##N(few, igrt_xor_mask_f32x##N(few, all)));        \
        for (int i = 0; i < N; i++)                                                               \
            assert_int_equal(m[i], -1);                                                           \
    }
LANES(4)
LANES(8)
LANES(16)

/* ---- memory and conversions ---------------------------------------------------------------- */

#define PART(T, E, N)                                                                      \
    for (int n = 0; n <= N; n++) {                                                         \
        E from[N], to[N + 2];                                                              \
        for (int i = 0; i < N; i++)                                                        \
            from[i] = (E)(i + 1);                                                          \
        for (int i = 0; i < N + 2; i++)                                                    \
            to[i] = (E)-1;                                                                 \
        /* what lies behind the first n elements is not touched, and not read: see ASan */ \
        igrt_store_part_##T##x##N(to + 1, igrt_load_part_##T##x##N(from + N - n, n), n);   \
        for (int i = 0; i < N + 2; i++)                                                    \
            assert_true(to[i] == (i >= 1 && i <= n ? (E)(N - n + i) : (E)-1));             \
        igrt_store_##T##x##N(to + 1, igrt_load_part_##T##x##N(from, n));                   \
        for (int i = 0; i < N; i++)                                                        \
            assert_true(to[i + 1] == (i < n ? (E)(i + 1) : (E)0));                         \
    }

static void parts(void **state)
{
    (void)state;
    PART(f32, float, 4)
    PART(f32, float, 8)
    PART(f32, float, 16)
    PART(i32, int32_t, 4)
    PART(i32, int32_t, 8)
    PART(i32, int32_t, 16)
}

/* What is not chosen is not read: ASan watches the edges of an array of its own size. */
#define APART(T, E, R, STORE, N)                                                                   \
    for (int step = -3; step <= 5; step++)                                                         \
        for (int first = 0; first < N; first++)                                                    \
            for (int n = 0; first + n <= N; n++) {                                                 \
                const int size = n ? (n - 1) * abs(step) + 1 : 1, base = step < 0 ? size - 1 : 0;  \
                E *from = malloc((size_t)size * sizeof(E));                                        \
                R to[N];                                                                           \
                for (int i = 0; i < size; i++)                                                     \
                    from[i] = (E)(i + 1);                                                          \
                const igrt_i32x##N m = igrt_first_i32x##N(first + n) & ~igrt_first_i32x##N(first); \
                STORE(to, igrt_load_mask_##T##x##N(from, base - first * step, step, m));           \
                for (int i = 0; i < N; i++)                                                        \
                    assert_true(to[i] == (i >= first && i < first + n                              \
                                              ? (R)(base + (i - first) * step + 1)                 \
                                              : (R)0));                                            \
                if (n == N) {                                                                      \
                    STORE(to, igrt_load_step_##T##x##N(from + base, step));                        \
                    for (int i = 0; i < N; i++)                                                    \
                        assert_true(to[i] == (R)(base + i * step + 1));                            \
                }                                                                                  \
                free(from);                                                                        \
            }

#define ROWS(T, E, R, V, STORE, N)                                                          \
    for (int rows = 1; rows <= N; rows++)                                                   \
        for (int columns = 1; columns <= N; columns++) {                                    \
            const int step = columns + 3, size = (rows - 1) * step + columns;               \
            E *from = malloc((size_t)size * sizeof(E));                                     \
            igrt_##V##x##N t[N];                                                            \
            R to[N];                                                                        \
            for (int i = 0; i < size; i++)                                                  \
                from[i] = (E)(i % 99 + 1);                                                  \
            igrt_load_rows_##T##x##N(t, from, step, rows, columns);                         \
            for (int j = 0; j < columns; j++) {                                             \
                STORE(to, t[j]);                                                            \
                for (int i = 0; i < N; i++)                                                 \
                    assert_true(to[i] == (i < rows ? (R)((i * step + j) % 99 + 1) : (R)0)); \
            }                                                                               \
            free(from);                                                                     \
        }

static void rows_to_columns(void **state)
{
    (void)state;
    ROWS(f32, float, float, f32, igrt_store_f32x4, 4)
    ROWS(f32, float, float, f32, igrt_store_f32x8, 8)
    ROWS(f32, float, float, f32, igrt_store_f32x16, 16)
    ROWS(i8_i32, int8_t, int32_t, i32, igrt_store_i32x8, 8)
    ROWS(i32, int32_t, int32_t, i32, igrt_store_i32x16, 16)
    ROWS(f64, double, double, f64, igrt_store_f64x4, 4)
    ROWS(i64, int64_t, int64_t, i64, igrt_store_i64x8, 8)
}

static void apart(void **state)
{
    (void)state;
    APART(f32, float, float, igrt_store_f32x4, 4)
    APART(f32, float, float, igrt_store_f32x8, 8)
    APART(f32, float, float, igrt_store_f32x16, 16)
    APART(i32, int32_t, int32_t, igrt_store_i32x16, 16)
    APART(i8_i32, int8_t, int32_t, igrt_store_i32x8, 8)
    APART(f64, double, double, igrt_store_f64x4, 4)
    APART(i64, int64_t, int64_t, igrt_store_i64x8, 8)
    int32_t t[16];
    igrt_store_i32x16(t, igrt_ramp_i32x16(-5, 3));
    for (int i = 0; i < 16; i++)
        assert_int_equal(t[i], 3 * i - 5);
}

/* Bytes that are widened and then chosen by a mask, in a loop, as padded windows have them. */
#define MASKED(N, T, E)                                                                          \
    {                                                                                            \
        E p[N + 1];                                                                              \
        int32_t t[N];                                                                            \
        for (int i = 0; i <= N; i++)                                                             \
            p[i] = (E)next();                                                                    \
        igrt_i32x##N s = igrt_splat_i32x##N(0);                                                  \
        for (int r = 0; r < 2; r++)                                                              \
            s = igrt_add_i32x##N(                                                                \
                s,                                                                               \
                igrt_where_i32x##N(igrt_lt_i32x##N(igrt_iota_i32x##N(r), igrt_splat_i32x##N(3)), \
                                   igrt_load_##T##_i32x##N(p + r), igrt_splat_i32x##N(0)));      \
        igrt_store_i32x##N(t, s);                                                                \
        for (int i = 0; i < N; i++)                                                              \
            assert_int_equal(t[i], (i < 3 ? p[i] : 0) + (i < 2 ? p[i + 1] : 0));                 \
    }

static void masked_bytes(void **state)
{
    (void)state;
    MASKED(4, i8, int8_t)
    MASKED(4, u8, uint8_t)
    MASKED(8, i8, int8_t)
    MASKED(8, u8, uint8_t)
    MASKED(16, i8, int8_t)
    MASKED(8, i16, int16_t)
}

#define SMALL(N, T, TO, FROM)                                                                  \
    for (uint32_t u = 0; u < 65536; u += N) {                                                  \
        for (int i = 0; i < N; i++)                                                            \
            h[i] = (uint16_t)(u + (uint32_t)i);                                                \
        igrt_store_f32x##N(x, igrt_load_##T##_f32x##N(h));                                     \
        for (int i = 0; i < N; i++)                                                            \
            assert_int_equal(igrt_f32_bits(x[i]), igrt_f32_bits(FROM(h[i])));                  \
        for (int i = 0; i < N; i++) /* ties and their neighbours among them */                 \
            x[i] = igrt_bits_f32(igrt_f32_bits(x[i]) + (next() % 5 - 2) + (next() & 0xf000u)); \
        igrt_store_##T##_f32x##N(h, igrt_load_f32x##N(x));                                     \
        for (int i = 0; i < N; i++)                                                            \
            assert_int_equal(h[i], TO(x[i]));                                                  \
    }
#define NARROW(N, T, E)                                                    \
    {                                                                      \
        E s[N];                                                            \
        for (int i = 0; i < N; i++)                                        \
            k[i] = (int32_t)next();                                        \
        igrt_store_##T##_i32x##N(s, igrt_load_i32x##N(k));                 \
        igrt_store_i32x##N(k + 16, igrt_load_##T##_i32x##N(s));            \
        for (int i = 0; i < N; i++)                                        \
            assert_int_equal(k[16 + i], (E)k[i]);                          \
        const int part = round % N;                                        \
        igrt_store_i32x##N(k + 16, igrt_load_part_##T##_i32x##N(s, part)); \
        for (int i = 0; i < N; i++)                                        \
            assert_int_equal(k[16 + i], i < part ? (E)k[i] : 0);           \
        memset(s, 0, sizeof s);                                            \
        igrt_store_part_##T##_i32x##N(s, igrt_load_i32x##N(k), part);      \
        for (int i = 0; i < N; i++)                                        \
            assert_int_equal(s[i], i < part ? (E)k[i] : 0);                \
    }
#define CONVERT(N)                                                               \
    SMALL(N, f16, igrt_f32_to_f16, igrt_f16_to_f32)                              \
    SMALL(N, bf16, igrt_f32_to_bf16, igrt_bf16_to_f32)                           \
    for (int round = 0; round < 3000; round++) {                                 \
        NARROW(N, i8, int8_t)                                                    \
        NARROW(N, u8, uint8_t)                                                   \
        NARROW(N, i16, int16_t)                                                  \
        NARROW(N, u16, uint16_t)                                                 \
        for (int i = 0; i < N; i++)                                              \
            k[i] = (int32_t)next() >> next() % 32;                               \
        igrt_store_f32x##N(x, igrt_cvt_i32x##N##_f32x##N(igrt_load_i32x##N(k))); \
        for (int i = 0; i < N; i++)                                              \
            same("cvt", x[i], (float)k[i], (float)k[i], 0);                      \
        for (int i = 0; i < N; i++)                                              \
            x[i] = any();                                                        \
        igrt_store_i32x##N(k, igrt_cvt_f32x##N##_i32x##N(igrt_load_f32x##N(x))); \
        for (int i = 0; i < N; i++)                                              \
            assert_int_equal(k[i], igrt_f32_to_i32(x[i]));                       \
    }

static void conversions(void **state)
{
    (void)state;
    uint16_t h[16];
    float x[16];
    int32_t k[32];
    CONVERT(4)
    CONVERT(8)
    CONVERT(16)
}

/* ---- integers ------------------------------------------------------------------------------ */

#define INT_OP(N, OP)                                                                       \
    igrt_store_i32x##N(c, igrt_##OP##_i32x##N(igrt_load_i32x##N(a), igrt_load_i32x##N(b))); \
    for (int i = 0; i < N; i++)                                                             \
        assert_int_equal(c[i], igrt_##OP##_i32(a[i], b[i]));
#define INT_COMPARE(N, NAME, OP)                                                              \
    igrt_store_i32x##N(c, igrt_##NAME##_i32x##N(igrt_load_i32x##N(a), igrt_load_i32x##N(b))); \
    for (int i = 0; i < N; i++)                                                               \
        assert_int_equal(c[i], -(a[i] OP b[i]));
#define INT_WRAP(N, T, E)                                                 \
    igrt_store_i32x##N(c, igrt_wrap_##T##_i32x##N(igrt_load_i32x##N(a))); \
    for (int i = 0; i < N; i++)                                           \
        assert_int_equal(c[i], (E)a[i]);
#define INT_ACROSS(N, NAME, OP)                                     \
    for (int w = N / 2, i = (memcpy(c, a, sizeof c), 0); w; w /= 2) \
        for (i = 0; i < w; i++)                                     \
            c[i] = igrt_##OP##_i32(c[i], c[i + w]);                 \
    assert_int_equal(igrt_##NAME##_i32x##N(igrt_load_i32x##N(a)), c[0]);
#define LOW(N)                                                               \
    for (int i = 0; i < N; i++) {                                            \
        x[i] = any();                                                        \
        if (next() % 2) /* both sides of 2^31 and 2^63 */                    \
            x[i] = ldexpf((float)(int32_t)next(), (int)(next() % 36));       \
    }                                                                        \
    igrt_store_i32x##N(c, igrt_low_f32x##N##_i32x##N(igrt_load_f32x##N(x))); \
    for (int i = 0; i < N; i++)                                              \
        assert_int_equal(c[i], (int32_t)(uint32_t)(uint64_t)igrt_f32_to_i64(x[i]));
/* clang-format off */
#define INTEGERS(N)                                                                               \
    for (int round = 0; round < 3000; round++) {                                                  \
        for (int i = 0; i < N; i++) {                                                             \
            a[i] = (int32_t)next() >> next() % 32;                                                \
            b[i] = next() % 4 ? (int32_t)next() >> next() % 32 : a[i];                            \
        }                                                                                         \
        INT_OP(N, add) INT_OP(N, sub) INT_OP(N, mul) INT_OP(N, max) INT_OP(N, min)                \
        INT_COMPARE(N, eq, ==) INT_COMPARE(N, ne, !=) INT_COMPARE(N, lt, <) INT_COMPARE(N, le, <=) \
        INT_WRAP(N, i8, int8_t) INT_WRAP(N, u8, uint8_t)                                          \
        INT_WRAP(N, i16, int16_t) INT_WRAP(N, u16, uint16_t)                                      \
        INT_ACROSS(N, hadd, add) INT_ACROSS(N, hmul, mul)                                         \
        INT_ACROSS(N, hmax, max) INT_ACROSS(N, hmin, min)                                         \
        LOW(N)                                                                                    \
    }
/* clang-format on */

static void integers(void **state)
{
    (void)state;
    int32_t a[16], b[16], c[16];
    float x[16];
    INTEGERS(4)
    INTEGERS(8)
    INTEGERS(16)
}

/* What the comment of igrt_quantize_f32 says. */
static int quantized(float x, int zero, int lo, int hi)
{
    const float y = igrt_round_f32(x) + (float)zero;
    return x != x ? lo : y < (float)lo ? lo : y > (float)hi ? hi : (int)y;
}

static void quantize(void **state)
{
    static const int how[][3] = {{0, -128, 127}, {-128, -128, 127}, {37, 0, 255},
                                 {-5, -3, 90},   {65535, 0, 65535}, {1, -32768, 32767}};
    (void)state;
    for (int n = 0; n < 200000; n++) {
        const int *h = how[n % 6];
        float x[16];
        int32_t y[16];
        for (int i = 0; i < 16; i++) {
            x[i] = n % 2 ? any() : (float)((int)(next() % 2001) - 1000) * 0.5f;
            y[i] = quantized(x[i], h[0], h[1], h[2]);
            assert_int_equal(igrt_quantize_f32(x[i], h[0], h[1], h[2]), y[i]);
        }
        const igrt_i32x16 got = igrt_quantize_f32x16(igrt_load_f32x16(x), h[0], h[1], h[2]);
        const igrt_i32x8 half = igrt_quantize_f32x8(igrt_load_f32x8(x), h[0], h[1], h[2]);
        const igrt_i32x4 part = igrt_quantize_f32x4(igrt_load_f32x4(x), h[0], h[1], h[2]);
        for (int i = 0; i < 16; i++)
            assert_int_equal(i < 4 ? part[i] : i < 8 ? half[i] : got[i], y[i]);
        for (int i = 0; i < 8; i++)
            assert_int_equal(got[i], y[i]);
        const igrt_f32x16 less = igrt_quantized_f32x16(igrt_load_f32x16(x), h[0], h[1], h[2]);
        for (int i = 0; i < 16; i++)
            assert_true(less[i] == igrt_quantized_f32(x[i], h[0], h[1], h[2]) &&
                        less[i] == (float)(y[i] - h[0]));
    }
}

#define STORED(N)                                                                   \
    {                                                                               \
        int8_t a[N];                                                                \
        uint8_t b[N];                                                               \
        igrt_store_quantized_i8_f32x##N(a, igrt_load_f32x##N(x), h[0], h[1], h[2]); \
        igrt_store_quantized_u8_f32x##N(b, igrt_load_f32x##N(x), g[0], g[1], g[2]); \
        for (int i = 0; i < N; i++) {                                               \
            assert_int_equal(a[i], quantized(x[i], h[0], h[1], h[2]));              \
            assert_int_equal(b[i], quantized(x[i], g[0], g[1], g[2]));              \
        }                                                                           \
    }
/* Bytes, whose ends a move may cut off, of numbers beyond i32 too. */
static void stores_quantized(void **state)
{
    static const int i8[][3] = {{0, -128, 127},    {-128, -128, 127}, {127, -128, 127},
                                {-5, -3, 90},      {6, -128, 90},     {-9, 0, 127},
                                {-700, -128, 127}, {700, -128, 127}},
                     u8[][3] = {{0, 0, 255},  {128, 0, 255}, {255, 0, 255},  {37, 3, 90},
                                {37, 0, 200}, {0, 9, 255},   {-700, 0, 255}, {700, 0, 255}};
    static const float beyond[] = {3e9f,     -3e9f,     2147483520.0f, -2147483648.0f,
                                   INFINITY, -INFINITY, NAN,           1e38f};
    (void)state;
    for (int n = 0; n < 100000; n++) {
        const int *h = i8[n % 8], *g = u8[n / 8 % 8];
        float x[16];
        for (int i = 0; i < 16; i++)
            x[i] = next() % 4 == 0 ? beyond[next() % 8]
                   : next() % 2    ? any()
                                   : (float)((int)(next() % 2001) - 1000) * 0.5f;
        STORED(4)
        STORED(8)
        STORED(16)
    }
}

/* Digits of up to 16 bits at every place of a word, those that a significand holds and those beyond
 * it. */
static void digit(void **state)
{
    static const int mask[] = {1, 3, 15, 255, 1023, 65535}, less[] = {0, 8, -3, 128, 65535};
    (void)state;
    for (int n = 0; n < 60000; n++) {
        const int m = mask[n % 6], shift = (int)(next() % 32), k = less[next() % 5];
        uint32_t x[16];
        for (int i = 0; i < 16; i++)
            x[i] = next();
        const igrt_i32x16 word = igrt_load_i32x16((const int32_t *)x);
        const igrt_f32x16 got = igrt_digit_f32x16(word, shift, m, k);
        const igrt_f32x8 half = igrt_digit_f32x8(igrt_lo_i32x16(word), shift, m, k);
        const igrt_f32x4 part = igrt_digit_f32x4(igrt_lo_i32x8(igrt_lo_i32x16(word)), shift, m, k);
        for (int i = 0; i < 16; i++) {
            const float y = (float)((int)(x[i] >> shift & (uint32_t)m) - k);
            const float z = igrt_digit_f32(x[i], shift, m, k);
            assert_memory_equal(&z, &y, 4);
            assert_true(got[i] == y && (i >= 8 || half[i] == y) && (i >= 4 || part[i] == y));
        }
    }
}

/* Bytes of words, with their signs, at their tops. */
static void top_byte(void **state)
{
    (void)state;
    for (int n = 0; n < 20000; n++) {
        const int shift = (int)(next() % 32) & (n % 2 ? 24 : 31);
        uint32_t x[16];
        for (int i = 0; i < 16; i++)
            x[i] = next();
        const igrt_i32x16 word = igrt_load_i32x16((const int32_t *)x);
        const igrt_i32x16 up = igrt_shl_i32x16(word, igrt_splat_i32x16(shift));
        const igrt_f32x16 got = igrt_top_byte_f32x16(word, shift);
        const igrt_f32x8 half = igrt_top_byte_f32x8(igrt_lo_i32x16(word), shift);
        const igrt_f32x4 part = igrt_top_byte_f32x4(igrt_lo_i32x8(igrt_lo_i32x16(word)), shift);
        for (int i = 0; i < 16; i++) {
            const float y = 16777216.0f * (float)(int8_t)(x[i] << shift >> 24);
            assert_int_equal(up[i], (int32_t)(x[i] << shift));
            assert_true(igrt_top_byte_f32((int32_t)x[i], shift) == y);
            assert_true(got[i] == y && (i >= 8 || half[i] == y) && (i >= 4 || part[i] == y));
        }
    }
}

/* Products with fractions and rounded shifts, of any words, small ones and the ends. */
static void fractions(void **state)
{
    static const int32_t ends[] = {0, 1, -1, INT32_MAX, INT32_MIN, 1 << 30, -(1 << 30)};
    (void)state;
    for (int n = 0; n < 20000; n++) {
        int32_t x[16], y[16], e[16];
        for (int i = 0; i < 16; i++) {
            x[i] = next() % 8 ? (int32_t)next() >> next() % 32 : ends[next() % 7];
            y[i] = next() % 8 ? (int32_t)next() : ends[next() % 7];
            e[i] = (int32_t)(next() % 16 ? next() % 33 : next());
        }
        const igrt_i32x16 a = igrt_load_i32x16(x), b = igrt_load_i32x16(y), c = igrt_load_i32x16(e);
        const igrt_i32x16 high = igrt_mulhi_i32x16(a, b), less = igrt_shrr_i32x16(a, c);
        const igrt_i32x8 high8 = igrt_mulhi_i32x8(igrt_lo_i32x16(a), igrt_lo_i32x16(b));
        const igrt_i32x4 high4 =
            igrt_mulhi_i32x4(igrt_lo_i32x8(igrt_lo_i32x16(a)), igrt_lo_i32x8(igrt_lo_i32x16(b)));
        for (int i = 0; i < 16; i++) {
            const double exact = floor((double)x[i] * y[i] / 2147483648.0 + 0.5);
            const int32_t want = igrt_mulhi_i32(x[i], y[i]);
            if (x[i] != INT32_MIN || y[i] != INT32_MIN)
                assert_true(fabs(want - exact) <= (fabs((double)x[i] * y[i]) < 0x1p52 ? 0 : 1));
            if (x[i] != INT32_MIN && e[i] >= 0 && e[i] < 32)
                assert_true(igrt_shrr_i32(x[i], e[i]) == round(ldexp(x[i], -e[i])));
            assert_true(high[i] == want && less[i] == igrt_shrr_i32(x[i], e[i]));
            assert_true((i >= 8 || high8[i] == want) && (i >= 4 || high4[i] == want));
        }
    }
}

/* Four products of bytes, as they stand there. */
#define DOT(X, XT, W, WT)                                                                        \
    for (int n = 0; n < 3000; n++) {                                                             \
        XT x[64];                                                                                \
        WT w[64];                                                                                \
        int32_t s[16], y[16];                                                                    \
        for (int i = 0; i < 64; i++) {                                                           \
            x[i] = (XT)(next() % 4 ? next() : 0x80u);                                            \
            w[i] = (WT)(next() % 4 ? next() : 0x80u);                                            \
        }                                                                                        \
        for (int i = 0; i < 16; i++) {                                                           \
            y[i] = s[i] = (int32_t)next();                                                       \
            for (int j = 4 * i; j < 4 * i + 4; j++)                                              \
                y[i] = igrt_add_i32(y[i], x[j] * w[j]);                                          \
            assert_int_equal(igrt_dot_##X##_##W(igrt_load_##X##x4(x + 4 * i),                    \
                                                igrt_load_##W##x4(w + 4 * i), s[i]),             \
                             y[i]);                                                              \
        }                                                                                        \
        const igrt_i32x16 a = igrt_dot_##X##_##W##_i32x16(                                       \
            igrt_load_##X##x4_i32x16(x), igrt_load_##W##x4_i32x16(w), igrt_load_i32x16(s));      \
        const igrt_i32x8 b = igrt_dot_##X##_##W##_i32x8(                                         \
            igrt_load_##X##x4_i32x8(x), igrt_load_part_##W##x4_i32x8(w, 5), igrt_load_i32x8(s)); \
        const igrt_i32x4 c =                                                                     \
            igrt_dot_##X##_##W##_i32x4(igrt_splat_##X##x4_i32x4(igrt_load_##X##x4(x)),           \
                                       igrt_load_##W##x4_i32x4(w), igrt_load_i32x4(s));          \
        for (int i = 0; i < 16; i++)                                                             \
            assert_int_equal(a[i], y[i]);                                                        \
        for (int i = 0; i < 8; i++)                                                              \
            assert_int_equal(b[i], i < 5 ? y[i] : s[i]);                                         \
        assert_int_equal(c[0], y[0]);                                                            \
        assert_int_equal(                                                                        \
            c[3], igrt_dot_##X##_##W(igrt_load_##X##x4(x), igrt_load_##W##x4(w + 12), s[3]));    \
    }
static void dots(void **state)
{
    (void)state;
    DOT(i8, int8_t, i8, int8_t)
    DOT(i8, int8_t, u8, uint8_t)
    DOT(u8, uint8_t, i8, int8_t)
    DOT(u8, uint8_t, u8, uint8_t)
    const int8_t x[4] = {-128, -1, 0, 127};
    int32_t y[16];
    igrt_store_i32x16(y, igrt_splat_flipped_i8x4_i32x16(igrt_load_i8x4(x)));
    for (int i = 0; i < 64; i++)
        assert_int_equal(((const uint8_t *)y)[i], x[i % 4] + 128);
}

/* Two products of bf16: the second first, each sum rounded once. */
static void dots_of_bf16(void **state)
{
    (void)state;
    for (int n = 0; n < 3000; n++) {
        uint16_t x[32], w[32];
        float s[16], y[16];
        for (int i = 0; i < 32; i++) { /* 2^-20 to 2^20 */
            x[i] = (uint16_t)(next() & 0x807f) | (uint16_t)((107 + next() % 40) << 7);
            w[i] = (uint16_t)(next() & 0x807f) | (uint16_t)((107 + next() % 40) << 7);
        }
        for (int i = 0; i < 16; i++) {
            s[i] = (float)(int32_t)next() * 0x1p-20f;
            y[i] = s[i] + igrt_bf16_to_f32(x[2 * i + 1]) * igrt_bf16_to_f32(w[2 * i + 1]);
            y[i] = y[i] + igrt_bf16_to_f32(x[2 * i]) * igrt_bf16_to_f32(w[2 * i]);
            assert_true(igrt_dot_bf16_bf16(igrt_load_bf16x2(x + 2 * i), igrt_load_bf16x2(w + 2 * i),
                                           s[i]) == y[i]);
        }
        const igrt_f32x16 a = igrt_dot_bf16_bf16_f32x16(
            igrt_load_bf16x2_i32x16(x), igrt_load_bf16x2_i32x16(w), igrt_load_f32x16(s));
        const igrt_f32x8 b = igrt_dot_bf16_bf16_f32x8(
            igrt_load_bf16x2_i32x8(x), igrt_load_part_bf16x2_i32x8(w, 5), igrt_load_f32x8(s));
        const igrt_f32x4 c =
            igrt_dot_bf16_bf16_f32x4(igrt_splat_bf16x2_i32x4(igrt_load_bf16x2(x)),
                                     igrt_load_bf16x2_i32x4(w), igrt_load_f32x4(s));
        for (int i = 0; i < 16; i++)
            assert_true(a[i] == y[i] && (i >= 8 || b[i] == (i < 5 ? y[i] : s[i])));
        assert_true(c[0] == y[0] &&
                    c[3] == igrt_dot_bf16_bf16(igrt_load_bf16x2(x), igrt_load_bf16x2(w + 6), s[3]));
    }
}

/* ---- accuracy ------------------------------------------------------------------------------ */

/* The error in units of the last place of the nearest f32. */
static double ulps(float got, double want)
{
    const float near = (float)want;
    if (want != want || got != got)
        return (want != want) == (got != got) ? 0 : 1e9;
    if (got == near) {
        if (signbit(got) != signbit(near))
            return 1e9;
        if (isinf(got))
            return 0;
    }
    if (isinf(got) || isinf(near)) /* only the last finite number is next to infinity */
        return fabsf(isinf(got) ? near : got) >= 3.4028234e38f ? 1 : 1e9;
    int e;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (want == 0 || e < -125 ? -125 : e) - 24);
}

#define ACCURATE(N, F, LIMIT)                                                                 \
    for (uint64_t u = 0; u < UINT64_C(0x100000000); u += (uint64_t)step * N) {                \
        for (int i = 0; i < N; i++)                                                           \
            x[i] = igrt_bits_f32((uint32_t)(u + (uint64_t)step * (uint64_t)i));               \
        if (u / step / N % 64 == 0)                                                           \
            x[u / step / N / 64 % N] = special[u / step / N / 64 % SPECIAL];                  \
        igrt_store_f32x##N(y, igrt_##F##_f32x##N(igrt_load_f32x##N(x)));                      \
        for (int i = 0; i < N; i++)                                                           \
            if (ulps(y[i], F((double)x[i])) > LIMIT)                                          \
                fail_msg(#F " x%d of %.9g is %.9g, want %.9g", N, (double)x[i], (double)y[i], \
                         F((double)x[i]));                                                    \
    }
#define ACCURACY(N)                       \
    static void accuracy##N(void **state) \
    {                                     \
        (void)state;                      \
        enum { step = 9973 };             \
        float x[N], y[N];                 \
        ACCURATE(N, exp, 1.25)            \
        ACCURATE(N, log, 1.25)            \
        ACCURATE(N, tanh, 1.5)            \
        ACCURATE(N, erf, 1.5)             \
        ACCURATE(N, sin, 3.0)             \
        ACCURATE(N, cos, 3.0)             \
    }
ACCURACY(4)
ACCURACY(8)
ACCURACY(16)

/* ---- lanes of 64 bits: vec_wide.h --------------------------------------------------------- */

static void wide_parts(void **state)
{
    (void)state;
    PART(f64, double, 4)
    PART(f64, double, 8)
    PART(i64, int64_t, 4)
    PART(i64, int64_t, 8)
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes4),
        cmocka_unit_test(lanes8),
        cmocka_unit_test(lanes16),
        cmocka_unit_test(parts),
        cmocka_unit_test(pairs),
        cmocka_unit_test(fours),
        cmocka_unit_test(conversions),
        cmocka_unit_test(accuracy4),
        cmocka_unit_test(accuracy8),
        cmocka_unit_test(accuracy16),
        cmocka_unit_test(integers),
        cmocka_unit_test(quantize),
        cmocka_unit_test(digit),
        cmocka_unit_test(top_byte),
        cmocka_unit_test(fractions),
        cmocka_unit_test(dots),
        cmocka_unit_test(stores_quantized),
        cmocka_unit_test(dots_of_bf16),
        cmocka_unit_test(dots_of_i16),
        cmocka_unit_test(tables),
        cmocka_unit_test(digit_pairs),
        cmocka_unit_test(wide4),
        cmocka_unit_test(wide8),
        cmocka_unit_test(wide_parts),
        cmocka_unit_test(apart),
        cmocka_unit_test(masked_bytes),
        cmocka_unit_test(rows_to_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
