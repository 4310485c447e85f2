/* vec_wide.h - lanes of 64 bits (igrt_vec64.h) against the scalar functions. Included by
 * vec_test.c. */
#ifndef VEC_WIDE_H
#define VEC_WIDE_H

#include "vec_inputs.h"

static double any64(void)
{
    const uint64_t bits = (uint64_t)next() << 32 | next();
    const uint32_t r = next();
    if (r % 4 == 0)
        return (double)special[next() % SPECIAL];
    return r % 4 == 1   ? igrt_bits_f64(bits)
           : r % 4 == 2 ? (double)(int64_t)bits * 0x1p-33
                        : (double)(int64_t)(next() % 9) - 4;
}

static int same64(double x, double y)
{
    return igrt_f64_bits(x) == igrt_f64_bits(y) || (x != x && y != y);
}

#define WIDE1(N, OP, REF)                                             \
    igrt_store_f64x##N(r, igrt_##OP##_f64x##N(igrt_load_f64x##N(a))); \
    for (int i = 0; i < N; i++)                                       \
        assert_true(same64(r[i], REF(a[i])));
#define WIDE2(N, OP, REF)                                                                   \
    igrt_store_f64x##N(r, igrt_##OP##_f64x##N(igrt_load_f64x##N(a), igrt_load_f64x##N(b))); \
    for (int i = 0; i < N; i++)                                                             \
        assert_true(same64(r[i], REF(a[i], b[i])));
#define WIDE_INT(N, OP)                                                                     \
    igrt_store_i64x##N(w, igrt_##OP##_i64x##N(igrt_load_i64x##N(u), igrt_load_i64x##N(v))); \
    for (int i = 0; i < N; i++)                                                             \
        assert_true(w[i] == igrt_##OP##_i64(u[i], v[i]));
#define WIDE_COMPARE(N, NAME, OP)                                                                 \
    igrt_store_i32x##N(m, igrt_##NAME##_f64x##N(igrt_load_f64x##N(a), igrt_load_f64x##N(b)));     \
    igrt_store_i32x##N(o, igrt_##NAME##_i64x##N(igrt_load_i64x##N(u), igrt_load_i64x##N(v)));     \
    igrt_store_f64x##N(                                                                           \
        r, igrt_where_f64x##N(igrt_load_i32x##N(m), igrt_load_f64x##N(a), igrt_load_f64x##N(b))); \
    for (int i = 0; i < N; i++) {                                                                 \
        assert_int_equal(m[i], a[i] OP b[i] ? -1 : 0);                                            \
        assert_int_equal(o[i], u[i] OP v[i] ? -1 : 0);                                            \
        assert_true(same64(r[i], a[i] OP b[i] ? a[i] : b[i]));                                    \
    }
#define WIDE_CVT(N, E, FROM, TO, F, DATA, FN)                                                    \
    {                                                                                            \
        F y[N];                                                                                  \
        igrt_store_##TO##x##N(y,                                                                 \
                              igrt_cvt_##FROM##x##N##_##TO##x##N(igrt_load_##FROM##x##N(DATA))); \
        for (int i = 0; i < N; i++)                                                              \
            assert_true(y[i] == (F)FN(DATA[i]) || y[i] != y[i]);                                 \
    }
#define WIDE_ACROSS(N, T, E, NAME, F, DATA)                               \
    {                                                                     \
        E q[N];                                                           \
        memcpy(q, DATA, sizeof q);                                        \
        for (int h = N / 2; h; h /= 2)                                    \
            for (int i = 0; i < h; i++)                                   \
                q[i] = F(q[i], q[i + h]);                                 \
        const E got = igrt_##NAME##_##T##x##N(igrt_load_##T##x##N(DATA)); \
        assert_true(got == q[0] || got != got);                           \
    }
#define WIDE(N)                                                                                   \
    static void wide##N(void **state)                                                             \
    {                                                                                             \
        (void)state;                                                                              \
        double a[N], b[N], r[N];                                                                  \
        int64_t u[N], v[N], w[N];                                                                 \
        float f[N];                                                                               \
        int32_t m[N], o[N];                                                                       \
        for (int round = 0; round < 2000; round++) {                                              \
            for (int i = 0; i < N; i++) {                                                         \
                a[i] = any64();                                                                   \
                b[i] = next() % 8 ? any64() : a[i];                                               \
                f[i] = any();                                                                     \
                u[i] = (int64_t)((uint64_t)next() << 32 | next());                                \
                v[i] = next() % 4 ? (int64_t)next() - 9 : u[i];                                   \
            }                                                                                     \
            WIDE1(N, neg, -)                                                                      \
            WIDE1(N, abs, fabs)                                                                   \
            WIDE1(N, sign, igrt_sign_f64)                                                         \
            WIDE1(N, sqrt, sqrt)                                                                  \
            WIDE1(N, floor, floor)                                                                \
            WIDE1(N, ceil, ceil)                                                                  \
            WIDE1(N, trunc, trunc)                                                                \
            WIDE1(N, round, igrt_round_f64)                                                       \
            WIDE1(N, exp, exp)                                                                    \
            WIDE1(N, log, igrt_log_f64)                                                           \
            WIDE1(N, erf, igrt_erf_f64)                                                           \
            WIDE2(N, max, igrt_max_f64)                                                           \
            WIDE2(N, min, igrt_min_f64)                                                           \
            WIDE2(N, add, IGRT_LANE_ADD)                                                          \
            WIDE2(N, mul, IGRT_LANE_MUL)                                                          \
            WIDE2(N, pow, igrt_pow_f64)                                                           \
            WIDE2(N, mod, igrt_mod_f64)                                                           \
            WIDE_INT(N, add)                                                                      \
            WIDE_INT(N, sub)                                                                      \
            WIDE_INT(N, mul)                                                                      \
            WIDE_INT(N, max)                                                                      \
            WIDE_INT(N, min)                                                                      \
            WIDE_COMPARE(N, eq, ==)                                                               \
            WIDE_COMPARE(N, ne, !=)                                                               \
            WIDE_COMPARE(N, lt, <)                                                                \
            WIDE_COMPARE(N, le, <=)                                                               \
            WIDE_CVT(N, double, f64, i64, int64_t, a, igrt_f64_to_i64)                            \
            WIDE_CVT(N, double, f64, i32, int32_t, a, igrt_f64_to_i32)                            \
            WIDE_CVT(N, double, f64, f32, float, a, )                                             \
            WIDE_CVT(N, float, f32, f64, double, f, )                                             \
            WIDE_CVT(N, float, f32, i64, int64_t, f, igrt_f32_to_i64)                             \
            WIDE_CVT(N, int64_t, i64, f64, double, u, )                                           \
            WIDE_CVT(N, int64_t, i64, f32, float, u, )                                            \
            WIDE_CVT(N, int64_t, i64, i32, int32_t, u, )                                          \
            WIDE_CVT(N, int32_t, i32, i64, int64_t, m, )                                          \
            WIDE_CVT(N, int32_t, i32, f64, double, m, )                                           \
            WIDE_ACROSS(N, f64, double, hmax, igrt_max_f64, a)                                    \
            WIDE_ACROSS(N, f64, double, hadd, IGRT_LANE_ADD, a)                                   \
            WIDE_ACROSS(N, i64, int64_t, hadd, igrt_add_i64, u)                                   \
            WIDE_ACROSS(N, i64, int64_t, hmin, igrt_min_i64, u)                                   \
            igrt_store_f64x##N(r, igrt_muladd_f64x##N(igrt_load_f64x##N(a), igrt_load_f64x##N(b), \
                                                      igrt_splat_f64x##N(a[0])));                 \
            for (int i = 0; i < N; i++)                                                           \
                assert_true(same64(r[i], igrt_muladd_f64(a[i], b[i], a[0])));                     \
        }                                                                                         \
    }
WIDE(4)
WIDE(8)

#endif
