/* build_library_test.c - values of the op library against plain C loops, through the
 * interpreter. */
#include "build_test.h"

static void test_activations(void **state)
{
    (void)state;
    float v[5] = {-3, -0.5f, 0, 0.7f, 4}, want[5];
    ingot_tensor *x = F32(v, 5);
#define CHECK(tensor, formula)      \
    for (int i = 0; i < 5; i++) {   \
        double u = (double)v[i];    \
        want[i] = (float)(formula); \
    }                               \
    near(run_f(tensor), want, 5, 2e-6f);
    CHECK(ingot_relu(c, x), u > 0 ? u : 0)
    CHECK(ingot_sigmoid(c, x), 1 / (1 + exp(-u)))
    CHECK(ingot_softplus(c, x), log1p(exp(u)))
    CHECK(ingot_gelu(c, x, false), u / 2 * (1 + erf(u / sqrt(2))))
    CHECK(ingot_gelu(c, x, true),
          u / 2 * (1 + tanh(sqrt(2 / 3.14159265358979) * (u + 0.044715 * u * u * u))))
    CHECK(ingot_leaky_relu(c, x, 0.1), u < 0 ? 0.1 * u : u)
    CHECK(ingot_elu(c, x, 2), u < 0 ? 2 * (exp(u) - 1) : u)
    CHECK(ingot_celu(c, x, 2), fmax(0, u) + fmin(0, 2 * (exp(u / 2) - 1)))
    CHECK(ingot_hard_swish(c, x), u * fmax(0, fmin(1, u / 6 + 0.5)))
    CHECK(ingot_mish(c, x), u * tanh(log1p(exp(u))))
    CHECK(ingot_softsign(c, x), u / (1 + fabs(u)))
    CHECK(ingot_soft_shrink(c, x, 0.6, 0.1), u < -0.6 ? u + 0.1 : u > 0.6 ? u - 0.1 : 0)
#undef CHECK
}

static void test_matmul(void **state)
{
    (void)state;
    enum { B = 2, M = 3, K = 4, N = 5 };
    float *a = fill(B * M * K, 1), *b = fill(K * N, 2), want[B * M * N];
    for (int i = 0; i < B * M; i++)
        for (int j = 0; j < N; j++) {
            double s = 0;
            for (int l = 0; l < K; l++)
                s += (double)a[i * K + l] * (double)b[l * N + j];
            want[i * N + j] = (float)s;
        }
    ingot_tensor *x = F32(a, B, M, K), *y = F32(b, K, N);
    SHAPE(ingot_matmul(c, x, y), B, M, N);
    near(run_f(ingot_matmul(c, x, y)), want, B * M * N, 1e-6f);
    near(run_f(ingot_einsum(c, "bij,jk->bik", 2, (ingot_tensor *[]){x, y})), want, B * M * N,
         1e-6f);
    near(run_f(ingot_einsum(c, "...j,jk", 2, (ingot_tensor *[]){x, y})), want, B * M * N, 1e-6f);
    near(run_f(ingot_linear(c, x, ingot_transpose(c, y, 0, 1), NULL)), want, B * M * N, 1e-6f);
    SHAPE(ingot_matmul(c, F32(a, 4), y), N);
    SHAPE(ingot_matmul(c, x, F32(b, 4)), B, M);
    assert_int_equal(ingot_rank(ingot_matmul(c, F32(a, 4), F32(b, 4))), 0);
    /* products of f16 are not rounded: 0.1^2 * 1024 by sums of f16 would be far off */
    ingot_tensor *h = ingot_cast(
        c, ingot_expand(c, ingot_scalar_f(c, INGOT_F32, 0.1), 2, (ingot_dim *[]){k(1), k(1024)}),
        INGOT_F16);
    ingot_tensor *dot = ingot_matmul(c, h, ingot_transpose(c, h, 0, 1));
    assert_int_equal(ingot_dtype_of(dot), INGOT_F16);
    near(run_f(ingot_cast(c, dot, INGOT_F32)), (float[]){10.2350f}, 1, 1e-3f);
}

static void test_einsum(void **state)
{
    (void)state;
    ingot_tensor *m = COUNT(3, 3);
    EQUAL_I(ingot_einsum(c, "ii->i", 1, &m), 0, 4, 8);
    EQUAL_I(ingot_einsum(c, "ii", 1, &m), 12);
    EQUAL_I(ingot_einsum(c, "ij->ji", 1, &m), 0, 3, 6, 1, 4, 7, 2, 5, 8);
    EQUAL_I(ingot_einsum(c, "ba", 1, &m), 0, 3, 6, 1, 4, 7, 2, 5, 8);
    EQUAL_I(ingot_einsum(c, "i,i", 2, (ingot_tensor *[]){INTS(1, 2, 3), INTS(4, 5, 6)}), 32);
    EQUAL_I(ingot_einsum(c, "i,j->ij", 2, (ingot_tensor *[]){INTS(1, 2), INTS(3, 4)}), 3, 4, 6, 8);
    EQUAL_I(
        ingot_einsum(c, " i j , j , i -> ", 3, (ingot_tensor *[]){m, INTS(1, 1, 1), INTS(1, 0, 2)}),
        3 + 2 * 21);
    EQUAL_I(ingot_einsum(c, "...i->...", 1, &m), 3, 12, 21);
}

/* Direct convolution of [1, C, H, W], group G. */
static void conv_loops(const float *x, const float *w, const float *b, float *y, int C, int H,
                       int W, int M, int kh, int kw, int s, int d, int p, int G, int oh, int ow)
{
    for (int m = 0; m < M; m++)
        for (int i = 0; i < oh; i++)
            for (int j = 0; j < ow; j++) {
                double sum = b ? (double)b[m] : 0;
                for (int ci = 0; ci < C / G; ci++)
                    for (int u = 0; u < kh; u++)
                        for (int v = 0; v < kw; v++) {
                            int yy = i * s + u * d - p, xx = j * s + v * d - p;
                            int ch = m / (M / G) * (C / G) + ci;
                            if (yy >= 0 && yy < H && xx >= 0 && xx < W)
                                sum += (double)x[(ch * H + yy) * W + xx] *
                                       (double)w[((m * (C / G) + ci) * kh + u) * kw + v];
                        }
                y[(m * oh + i) * ow + j] = (float)sum;
            }
}

static void test_conv(void **state)
{
    (void)state;
    /* the last ones: windows wider than the image, of which taps, or all of them, meet nothing */
    static const int cases[][4] = {{1, 1, 0, 1}, {2, 1, 1, 1},  {1, 2, 2, 2},   {2, 2, 3, 4},
                                   {1, 9, 9, 2}, {2, 9, 10, 1}, {17, 20, 25, 1}};
    for (size_t t = 0; t < sizeof cases / sizeof cases[0]; t++) {
        int s = cases[t][0], d = cases[t][1], p = cases[t][2], G = cases[t][3];
        int C = 4, H = 7, W = 6, M = 8, kh = 3, kw = 2;
        int oh = (H + 2 * p - d * (kh - 1) - 1) / s + 1,
            ow = (W + 2 * p - d * (kw - 1) - 1) / s + 1;
        float *x = fill(C * H * W, 3), *w = fill(M * C / G * kh * kw, 4), *b = fill(M, 5);
        float *want = ingot_alloc(c, (size_t)(M * oh * ow) * sizeof *want);
        conv_loops(x, w, b, want, C, H, W, M, kh, kw, s, d, p, G, oh, ow);
        ingot_tensor *y = ingot_conv(c, F32(x, 1, C, H, W), F32(w, M, C / G, kh, kw), F32(b, M),
                                     DIMS(s, s), DIMS(d, d), DIMS(p, p), DIMS(p, p), G);
        SHAPE(y, 1, M, oh, ow);
        near(run_f(y), want, M * oh * ow, 2e-6f);
    }
}

/* The transpose by its definition: every input element is spread over the output. */
static void test_conv_transpose(void **state)
{
    (void)state;
    static const int cases[][5] = {
        {1, 1, 0, 0, 1},
        {2, 1, 1, 1, 1},
        {3, 2, 2, 0, 2},
        {2, 1, 4, 0, 1},
        /* phases without weights, dilations that share a factor with the stride or not */
        {2, 2, 1, 1, 1},
        {4, 6, 2, 3, 2},
        {2, 3, 1, 1, 2},
        {3, 2, 0, 1, 1},
        {4, 1, 0, 2, 1},
        {5, 3, 0, 0, 1},
        {7, 3, 1, 2, 4}};
    for (size_t t = 0; t < sizeof cases / sizeof cases[0]; t++) {
        int s = cases[t][0], d = cases[t][1], p = cases[t][2], extra = cases[t][3], G = cases[t][4];
        int C = 4, H = 5, W = 4, M = 2, kh = 3, kw = 2; /* M per group */
        int oh = (H - 1) * s + d * (kh - 1) + 1 - 2 * p + extra;
        int ow = (W - 1) * s + d * (kw - 1) + 1 - 2 * p + extra;
        if (oh < 1 || ow < 1)
            continue;
        float *x = fill(C * H * W, 6), *w = fill(C * M * kh * kw, 7);
        float *want = ingot_alloc(c, (size_t)(M * G * oh * ow) * sizeof *want);
        for (int ci = 0; ci < C; ci++)
            for (int m = 0; m < M; m++)
                for (int i = 0; i < H; i++)
                    for (int j = 0; j < W; j++)
                        for (int u = 0; u < kh; u++)
                            for (int v = 0; v < kw; v++) {
                                int yy = i * s + u * d - p, xx = j * s + v * d - p;
                                int mo = ci / (C / G) * M + m;
                                if (yy >= 0 && yy < oh && xx >= 0 && xx < ow)
                                    want[(mo * oh + yy) * ow + xx] +=
                                        x[(ci * H + i) * W + j] *
                                        w[((ci * M + m) * kh + u) * kw + v];
                            }
        ingot_tensor *y =
            ingot_conv_transpose(c, F32(x, 1, C, H, W), F32(w, C, M, kh, kw), NULL, DIMS(s, s),
                                 DIMS(d, d), DIMS(p, p), DIMS(p, p), DIMS(extra, extra), G);
        SHAPE(y, 1, M * G, oh, ow);
        near(run_f(y), want, M * G * oh * ow, 4e-6f);
    }
}

static void test_pools(void **state)
{
    (void)state;
    float v[16];
    for (int i = 0; i < 16; i++)
        v[i] = (float)i;
    ingot_tensor *x = F32(v, 1, 1, 4, 4);
    near(run_f(ingot_max_pool(c, x, DIMS(2, 2), DIMS(2, 2), NULL, NULL, NULL)),
         (float[]){5, 7, 13, 15}, 4, 0);
    near(run_f(ingot_max_pool(c, ingot_neg(c, x), DIMS(3, 3), DIMS(2, 2), NULL, DIMS(1, 1),
                              DIMS(0, 0))),
         (float[]){0, -1, -4, -5}, 4, 0);
    /* what is padded never wins: the least i8 */
    ingot_tensor *small = ingot_cast(c, ingot_neg(c, x), INGOT_I8);
    small = ingot_max_pool(c, small, DIMS(3, 3), DIMS(2, 2), NULL, DIMS(1, 1), DIMS(0, 0));
    EQUAL_I(ingot_cast(c, small, INGOT_I64), 0, -1, -4, -5);
    near(run_f(ingot_avg_pool(c, x, DIMS(3, 3), DIMS(3, 3), NULL, DIMS(1, 1), DIMS(1, 1), false)),
         (float[]){2.5f, 4.5f, 10.5f, 12.5f}, 4, 1e-6f);
    near(run_f(ingot_avg_pool(c, x, DIMS(3, 3), DIMS(3, 3), NULL, DIMS(1, 1), DIMS(1, 1), true)),
         (float[]){10 / 9.f, 18 / 9.f, 42 / 9.f, 50 / 9.f}, 4, 1e-6f);
    /* ceil mode: the last window of [3, 4) has one element, which is its mean */
    near(run_f(ingot_avg_pool_ceil(c, F32(v, 1, 1, 4), DIMS(3), DIMS(3), NULL, NULL, NULL, DIMS(2),
                                   true)),
         (float[]){1, 3}, 2, 1e-6f);
    EQUAL_I(ingot_max_pool_indices(c, x, DIMS(2, 2), DIMS(2, 2), NULL, NULL, NULL, false), 5, 7, 13,
            15);
    EQUAL_I(ingot_max_pool_indices(c, x, DIMS(2, 2), DIMS(2, 2), NULL, NULL, NULL, true), 5, 13, 7,
            15);
    near(run_f(ingot_lp_pool(c, F32(v, 1, 1, 4), 2, DIMS(2), DIMS(2), NULL, NULL, NULL)),
         (float[]){1, 3.6055513f}, 2, 1e-6f);
}

static void test_norms(void **state)
{
    (void)state;
    enum { N = 2, C = 4, D = 6 };
    float *v = fill(N * C * D, 8), *g = fill(C * D, 9), *b = fill(C * D, 10), want[N * C * D];
    ingot_tensor *x = F32(v, N, C, D);
    for (int i = 0; i < N * C; i++) { /* layer norm over the last axis */
        double m = 0, s = 0;
        for (int j = 0; j < D; j++)
            m += (double)v[i * D + j] / D;
        for (int j = 0; j < D; j++)
            s += ((double)v[i * D + j] - m) * ((double)v[i * D + j] - m) / D;
        for (int j = 0; j < D; j++)
            want[i * D + j] =
                (float)(((double)v[i * D + j] - m) / sqrt(s + 1e-5) * (double)g[j] + (double)b[j]);
    }
    near(run_f(ingot_layer_norm(c, x, -1, F32(g, D), F32(b, D), 1e-5)), want, N * C * D, 3e-6f);
    for (int i = 0; i < N * C; i++)
        for (int j = 0; j < D; j++) {
            int ch = i % C;
            want[i * D + j] = (float)(((double)v[i * D + j] - (double)b[ch]) /
                                          sqrt((double)fabsf(g[4 + ch]) + 1e-5) * (double)g[ch] +
                                      0.5);
        }
    ingot_tensor *half =
        ingot_expand(c, ingot_scalar_f(c, INGOT_F32, 0.5), 1, (ingot_dim *[]){k(C)});
    ingot_tensor *var = ingot_abs(c, F32(g + 4, C));
    near(run_f(ingot_batch_norm(c, x, F32(g, C), half, F32(b, C), var, 1e-5)), want, N * C * D,
         3e-6f);
    for (int i = 0; i < N * 2; i++) { /* two groups of two channels */
        double m = 0, s = 0;
        for (int j = 0; j < 2 * D; j++)
            m += (double)v[i * 2 * D + j] / (2 * D);
        for (int j = 0; j < 2 * D; j++)
            s += pow((double)v[i * 2 * D + j] - m, 2) / (2 * D);
        for (int j = 0; j < 2 * D; j++)
            want[i * 2 * D + j] = (float)(((double)v[i * 2 * D + j] - m) / sqrt(s + 1e-5));
    }
    near(run_f(ingot_group_norm(c, x, 2, NULL, NULL, 1e-5)), want, N * C * D, 3e-6f);
    float s[3] = {1, 2, 3}, e = expf(-1) + expf(-2) + 1;
    near(run_f(ingot_softmax(c, F32(s, 3), -1)), (float[]){expf(-2) / e, expf(-1) / e, 1 / e}, 3,
         1e-6f);
    near(run_f(ingot_log_softmax(c, F32(s, 3), 0)), (float[]){-2 - logf(e), -1 - logf(e), -logf(e)},
         3, 1e-6f);
    float inf[2] = {-INFINITY, -INFINITY};
    near(run_f(ingot_logsumexp(c, F32(inf, 2), 1, false)), (float[]){-INFINITY}, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(activations),    TEST(matmul), TEST(einsum), TEST(conv),
        TEST(conv_transpose), TEST(pools),  TEST(norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
