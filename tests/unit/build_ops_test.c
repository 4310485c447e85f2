/* build_ops_test.c - the larger operators of the op library against plain loops: gathers and
 * scatters, running sums, attention, rotary embedding, recurrences, resizing.  The numbers for
 * resizing come from the ONNX reference implementation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot.h"

static ingot_context *c;
static char last[1024];
static int declared; /* outputs */

static void sink(void *user, ingot_level level, const char *text)
{
    (void)user, (void)level;
    strncpy(last, text, sizeof last - 1);
}

static int begin(void **state)
{
    (void)state;
    c = ingot_context_new(sink, NULL);
    declared = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    ingot_context_free(c);
    return 0;
}

#define DIMS(...) ((int64_t[]){__VA_ARGS__})
#define RANK(...) ((int)(sizeof(DIMS(__VA_ARGS__)) / sizeof(int64_t)))
#define F32(v, ...) ingot_data(c, NULL, INGOT_F32, RANK(__VA_ARGS__), DIMS(__VA_ARGS__), v)
#define I64(v, ...) ingot_data(c, NULL, INGOT_I64, RANK(__VA_ARGS__), DIMS(__VA_ARGS__), v)

static ingot_dim *k(int64_t v)
{
    return ingot_dim_const(c, v);
}

static float *fill(int64_t n, uint32_t seed)
{
    float *v = ingot_alloc(c, (size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(int32_t)(seed >> 8) / 8388608.0f - 1.0f;
    }
    return v;
}

static int64_t *count(int64_t n)
{
    int64_t *v = ingot_alloc(c, (size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = i;
    return v;
}

static const void *run(ingot_tensor *x, ingot_dtype dtype, int64_t n)
{
    ingot_value out[16];
    char name[32];
    if (ingot_is_poison(x))
        fail_msg("poison: %s", last);
    assert_true(declared < 16);
    snprintf(name, sizeof name, "y%d", declared++);
    ingot_output(c, name, x);
    assert_int_equal(ingot_interpret(c, 0, NULL, declared, out), INGOT_OK);
    const ingot_value *v = &out[declared - 1];
    int64_t elements = 1;
    for (int i = 0; i < v->rank; i++)
        elements *= v->dims[i];
    assert_int_equal(elements, n);
    assert_int_equal(v->dtype, dtype);
    return v->data;
}

static void near(ingot_tensor *x, const float *want, int64_t n, float tolerance)
{
    const float *got = run(x, INGOT_F32, n);
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= tolerance * fmaxf(1, fabsf(want[i]))))
            fail_msg("element %lld: got %.9g, want %.9g", (long long)i, (double)got[i],
                     (double)want[i]);
}

static void equal(ingot_tensor *x, const int64_t *want, int64_t n)
{
    const int64_t *got = run(x, INGOT_I64, n);
    for (int64_t i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("element %lld: got %lld, want %lld", (long long)i, (long long)got[i],
                     (long long)want[i]);
}

#define EQUAL(x, ...) equal(x, DIMS(__VA_ARGS__), RANK(__VA_ARGS__))
#define NEAR(x, ...)                                                                           \
    near(x, (float[]){__VA_ARGS__}, (int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), \
         2e-6f)

static void test_gathers(void **state)
{
    (void)state;
    ingot_tensor *x = I64(count(6), 2, 3);
    EQUAL(ingot_gather_elements(c, x, I64(DIMS(1, 0, -1, 0), 2, 2), 1), 1, 0, 5, 3);
    EQUAL(ingot_gather_nd(c, x, I64(DIMS(1, 0, 0, -1), 2, 2), 0), 3, 2);
    EQUAL(ingot_gather_nd(c, x, I64(DIMS(1, 0), 2, 1), 0), 3, 4, 5, 0, 1, 2);
    EQUAL(ingot_gather_nd(c, x, I64(DIMS(1, 2), 2, 1), 1), 1, 5);
    ingot_tensor *v = I64(DIMS(70, 80), 1, 2);
    EQUAL(ingot_scatter_elements(c, INGOT_SET, x, I64(DIMS(1, -1), 1, 2), v, 1), 0, 70, 80, 3, 4,
          5);
    EQUAL(ingot_scatter_elements(c, INGOT_ADD, x, I64(DIMS(1, 1), 1, 2), v, 1), 0, 151, 2, 3, 4, 5);
    EQUAL(ingot_scatter_nd(c, INGOT_MAX, x, I64(DIMS(1), 1, 1), I64(DIMS(0, 9, 0), 1, 3)), 0, 1, 2,
          3, 9, 5);
    ingot_tensor *off = ingot_scalar_i(c, INGOT_I64, 0), *on = ingot_scalar_i(c, INGOT_I64, 1);
    EQUAL(ingot_one_hot(c, I64(DIMS(2, -3, 5), 3), k(3), -1, off, on), 0, 0, 1, 1, 0, 0, 0, 0, 0);
    EQUAL(ingot_trilu(c, x, k(1), true), 0, 1, 2, 0, 0, 5);
    EQUAL(ingot_trilu(c, x, k(-1), false), 0, 0, 0, 3, 0, 0);
    EQUAL(ingot_range(c, k(3), ingot_scalar_i(c, INGOT_I64, 5), ingot_scalar_i(c, INGOT_I64, -2)),
          5, 3, 1);
}

static void test_cumsum(void **state)
{
    (void)state;
    enum { N = 37 };
    int64_t *v = count(2 * N), want[2 * N];
    for (int mode = 0; mode < 4; mode++) {
        bool exclusive = mode & 1, reverse = mode & 2;
        for (int row = 0; row < 2; row++) {
            int64_t sum = 0;
            for (int j = 0; j < N; j++) {
                int at = row * N + (reverse ? N - 1 - j : j);
                want[at] = exclusive ? sum : sum + v[at];
                sum += v[at];
            }
        }
        equal(ingot_cumsum(c, I64(v, 2, N), -1, exclusive, reverse), want, 2 * N);
    }
    EQUAL(ingot_cumulate(c, INGOT_REDUCE_MUL, I64(DIMS(2, 3, 4), 3), 0, false, false), 2, 6, 24);
}

static void test_pixel_shuffles(void **state)
{
    (void)state;
    ingot_tensor *x = I64(count(8), 1, 8, 1, 1);
    EQUAL(ingot_depth_to_space(c, x, 2, false), 0, 2, 4, 6, 1, 3, 5, 7);
    EQUAL(ingot_depth_to_space(c, x, 2, true), 0, 1, 2, 3, 4, 5, 6, 7);
    equal(ingot_space_to_depth(c, ingot_depth_to_space(c, x, 2, false), 2), count(8), 8);
}

static void test_attention(void **state)
{
    (void)state;
    enum { B = 2, H = 4, G = 2, S = 3, T = 5, D = 4, E = 6 };
    float *q = fill(B * H * S * D, 1), *kk = fill(B * G * T * D, 2), *v = fill(B * G * T * E, 3);
    float *mask = fill(S * T, 4), *want = ingot_alloc(c, B * H * S * E * sizeof *want);
    ingot_tensor *tq = F32(q, B, H, S, D), *tk = F32(kk, B, G, T, D), *tv = F32(v, B, G, T, E);
    for (int causal = 0; causal < 2; causal++) {
        for (int h = 0; h < B * H; h++)
            for (int i = 0; i < S; i++) {
                double p[T], sum = 0;
                int g = h / H * G + h % H / (H / G);
                for (int j = 0; j < T; j++) {
                    double dot = 0;
                    for (int d = 0; d < D; d++)
                        dot += (double)q[(h * S + i) * D + d] * (double)kk[(g * T + j) * D + d];
                    p[j] = exp(dot / 2 + (double)mask[i * T + j]);
                    if (causal && j > i + T - S)
                        p[j] = 0;
                    sum += p[j];
                }
                for (int e = 0; e < E; e++) {
                    double y = 0;
                    for (int j = 0; j < T; j++)
                        y += p[j] / sum * (double)v[(g * T + j) * E + e];
                    want[(h * S + i) * E + e] = (float)y;
                }
            }
        near(ingot_attention(c, tq, tk, tv, F32(mask, S, T), 0, causal), want, B * H * S * E,
             2e-6f);
    }
}

/* A window of one key before and none behind; the second query of two sees nothing. */
static void test_attention_masked(void **state)
{
    (void)state;
    ingot_tensor *first = ingot_scalar_i(c, INGOT_I64, 1);
    EQUAL(ingot_cast(c, ingot_band(c, k(2), k(4), first, 1, 0), INGOT_I64), 1, 1, 0, 0, 0, 1, 1, 0);
    EQUAL(ingot_cast(c, ingot_band(c, k(2), k(4), first, -1, 1), INGOT_I64), 1, 1, 1, 0, 1, 1, 1,
          1);
    EQUAL(ingot_cast(c, ingot_band(c, k(2), k(4), first, 0, -1), INGOT_I64), 0, 1, 1, 1, 0, 0, 1,
          1);
    ingot_tensor *q = F32(fill(8, 1), 1, 2, 2, 2), *kv = F32(((float[]){1, 2, 3, 4}), 1, 1, 2, 2);
    ingot_tensor *seen = ingot_gt(c, I64(DIMS(0, 1, 0, 0), 2, 2), ingot_scalar_i(c, INGOT_I64, 0));
    NEAR(ingot_attention(c, q, kv, kv, seen, 0, false), 3, 4, 0, 0, 3, 4, 0, 0);
}

static void test_rotary(void **state)
{
    (void)state;
    float x[5] = {1, 2, 3, 4, 9}, co[2] = {0.5f, 0.25f}, si[2] = {2, 3};
    ingot_tensor *t = F32(x, 1, 5), *tc = F32(co, 1, 2), *ts = F32(si, 1, 2);
    NEAR(ingot_rotary(c, t, tc, ts, false), 0.5f - 6, 0.5f - 12, 1.5f + 2, 1 + 6, 9);
    NEAR(ingot_rotary(c, t, tc, ts, true), 0.5f - 4, 1 + 2, 0.75f - 12, 1 + 9, 9);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

enum { L = 4, B = 2, I = 3, H = 5 };

/* x w^T + b (+ h r^T) of one row. */
static double gate(const float *x, const float *w, const float *b, const double *h, const float *r,
                   int row)
{
    double s = b ? (double)b[row] : 0;
    for (int i = 0; x && i < I; i++)
        s += (double)x[i] * (double)w[row * I + i];
    for (int i = 0; h && i < H; i++)
        s += h[i] * (double)r[row * H + i];
    return s;
}

static void test_lstm(void **state)
{
    (void)state;
    float *x = fill(L * B * I, 1), *w = fill(4 * H * I, 2), *r = fill(4 * H * H, 3),
          *b = fill(4 * H, 4);
    for (int reverse = 0; reverse < 2; reverse++) {
        float all[L * B * H], hn[B * H], cn[B * H];
        for (int n = 0; n < B; n++) {
            double h[H] = {0}, s[H] = {0}, next[H];
            for (int step = 0; step < L; step++) {
                int t = reverse ? L - 1 - step : step;
                const float *xt = x + (t * B + n) * I;
                for (int j = 0; j < H; j++) { /* rows in the order i, f, g, o */
                    double gi = sigmoid(gate(xt, w, b, h, r, j));
                    double gf = sigmoid(gate(xt, w, b, h, r, H + j));
                    double gg = tanh(gate(xt, w, b, h, r, 2 * H + j));
                    double go = sigmoid(gate(xt, w, b, h, r, 3 * H + j));
                    s[j] = gf * s[j] + gi * gg;
                    next[j] = go * tanh(s[j]);
                }
                memcpy(h, next, sizeof h);
                for (int j = 0; j < H; j++)
                    all[(t * B + n) * H + j] = (float)h[j];
            }
            for (int j = 0; j < H; j++) {
                hn[n * H + j] = (float)h[j];
                cn[n * H + j] = (float)s[j];
            }
        }
        ingot_tensor *out[3];
        ingot_recurrence set = {.w = F32(w, 4 * H, I),
                                .r = F32(r, 4 * H, H),
                                .b = F32(b, 4 * H),
                                .order = "ifgo",
                                .reverse = reverse};
        ingot_lstm(c, F32(x, L, B, I), &set, out);
        near(out[0], all, L * B * H, 3e-6f);
        near(out[1], hn, B * H, 3e-6f);
        near(out[2], cn, B * H, 3e-6f);
    }
}

static void test_gru(void **state)
{
    (void)state;
    float *x = fill(L * B * I, 1), *w = fill(3 * H * I, 2), *r = fill(3 * H * H, 3),
          *b = fill(3 * H, 4), *rb = fill(3 * H, 5);
    for (int after = 0; after < 2; after++) {
        float all[L * B * H];
        for (int n = 0; n < B; n++) {
            double h[H] = {0}, z[H], reset[H], rh[H], next[H];
            for (int t = 0; t < L; t++) { /* rows in the order z, r, h */
                const float *xt = x + (t * B + n) * I;
                for (int j = 0; j < H; j++) {
                    z[j] = sigmoid(gate(xt, w, b, h, r, j) + (double)rb[j]);
                    reset[j] = sigmoid(gate(xt, w, b, h, r, H + j) + (double)rb[H + j]);
                    rh[j] = reset[j] * h[j];
                }
                for (int j = 0; j < H; j++) {
                    int row = 2 * H + j;
                    double in = gate(xt, w, b, NULL, NULL, row);
                    double rec = after ? reset[j] * gate(NULL, NULL, rb, h, r, row)
                                       : gate(NULL, NULL, rb, rh, r, row);
                    next[j] = (1 - z[j]) * tanh(in + rec) + z[j] * h[j];
                }
                /* reset of later rows needs all of h, so it is replaced only now */
                memcpy(h, next, sizeof h);
                for (int j = 0; j < H; j++)
                    all[(t * B + n) * H + j] = (float)h[j];
            }
        }
        ingot_tensor *out[2];
        ingot_recurrence set = {.w = F32(w, 3 * H, I),
                                .r = F32(r, 3 * H, H),
                                .b = F32(b, 3 * H),
                                .rb = F32(rb, 3 * H),
                                .order = "zrh",
                                .reset_after = after};
        ingot_gru(c, F32(x, L, B, I), &set, out);
        near(out[0], all, L * B * H, 3e-6f);
        near(out[1], all + (L - 1) * B * H, B * H, 3e-6f);
    }
}

/* A sequence shorter than the others keeps its state; what comes after is zero. */
static void test_rnn_lengths(void **state)
{
    (void)state;
    float *x = fill(L * B * I, 1), *w = fill(H * I, 2), *r = fill(H * H, 3), last_of[B * H],
          all[L * B * H];
    int64_t lengths[B] = {L, 2};
    ingot_recurrence set = {.w = F32(w, H, I), .r = F32(r, H, H)};
    ingot_tensor *out[2];
    ingot_rnn(c, F32(x, L, B, I), &set, out);
    memcpy(all, run(out[0], INGOT_F32, L * B * H), sizeof all);
    for (int j = 0; j < H; j++) {
        last_of[j] = all[(L - 1) * B * H + j];
        last_of[H + j] = all[(1 * B + 1) * H + j];
        for (int t = 2; t < L; t++)
            all[(t * B + 1) * H + j] = 0;
    }
    set.lengths = I64(lengths, B);
    ingot_rnn(c, F32(x, L, B, I), &set, out);
    near(out[0], all, L * B * H, 0);
    near(out[1], last_of, B * H, 0);
    set.last_only = true;
    ingot_rnn(c, F32(x, L, B, I), &set, out);
    assert_null(out[0]);
    near(out[1], last_of, B * H, 0);
    set.order = "z";
    ingot_rnn(c, F32(x, L, B, I), &set, out);
    assert_true(ingot_is_poison(out[1]) && strstr(last, "rnn: gates 'z'"));
}

static void test_resize(void **state)
{
    (void)state;
    float v[5] = {1, 2, 4, 8, 3};
    ingot_tensor *x = F32(v, 5);
    ingot_resize_axis r = {.size = 8, .mode = INGOT_RESIZE_LINEAR, .cubic_a = -0.75};
    NEAR(ingot_resize(c, x, 0, &r), 1, 1.4375f, 2.125f, 3.375f, 5.25f, 7.75f, 5.1875f, 3);
    r.coords = INGOT_COORDS_ALIGN_CORNERS;
    NEAR(ingot_resize(c, x, 0, &r), 1, 1.571429f, 2.285714f, 3.428571f, 5.142857f, 7.428571f,
         5.857143f, 3);
    r.coords = INGOT_COORDS_HALF_PIXEL;
    r.mode = INGOT_RESIZE_CUBIC;
    NEAR(ingot_resize(c, x, 0, &r), 0.9071655f, 1.268311f, 2.129578f, 3.022522f, 5.642761f,
         8.012756f, 5.472046f, 2.535828f);
    r.mode = INGOT_RESIZE_NEAREST;
    NEAR(ingot_resize(c, x, 0, &r), 1, 1, 2, 4, 4, 8, 3, 3);
    r.size = 10;
    NEAR(ingot_resize(c, x, 0, &r), 1, 1, 2, 2, 4, 4, 8, 8, 3, 3);
    r = (ingot_resize_axis){.size = 3, .mode = INGOT_RESIZE_LINEAR, .antialias = true};
    NEAR(ingot_resize(c, x, 0, &r), 1.375f, 4.444445f, 4.875f);
    r.coords = INGOT_COORDS_ASYMMETRIC;
    r.nearest = INGOT_NEAREST_CEIL;
    r.mode = INGOT_RESIZE_NEAREST;
    NEAR(ingot_resize(c, x, 0, &r), 1, 4, 3);
    r = (ingot_resize_axis){.size = 2,
                            .mode = INGOT_RESIZE_CUBIC,
                            .antialias = true,
                            .exclude_outside = true,
                            .cubic_a = -0.75};
    NEAR(ingot_resize(c, x, 0, &r), 2.326792f, 5.358799f);
    r = (ingot_resize_axis){.size = 3,
                            .mode = INGOT_RESIZE_LINEAR,
                            .coords = INGOT_COORDS_TF_CROP_AND_RESIZE,
                            .roi_start = 0.25,
                            .roi_end = 1};
    NEAR(ingot_resize(c, x, 0, &r), 2, 6, 3); /* places 1, 2.5, 4 */
    r.scale = 0.8;                            /* the same: 4 of 5, 3 in the crop */
    NEAR(ingot_resize(c, x, 0, &r), 2, 6, 3);
    r.roi_end = 1.75;
    assert_true(ingot_resize_source(&r, 5, 0) == 1 && isnan(ingot_resize_source(&r, 5, 2)));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, begin, end)
    const struct CMUnitTest tests[] = {TEST(gathers),
                                       TEST(cumsum),
                                       TEST(pixel_shuffles),
                                       TEST(attention),
                                       TEST(rotary),
                                       TEST(lstm),
                                       TEST(gru),
                                       TEST(resize),
                                       TEST(rnn_lengths),
                                       TEST(attention_masked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
