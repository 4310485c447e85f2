/* build_test.c - the builder: shapes, broadcasting, what it refuses and in which words, what it
 * simplifies, and the values of the op library against plain C loops, through the interpreter. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot.h"

/* ---- fixture -------------------------------------------------------------------------------- */

static ingot_context *c;
static char last[1024];
static int messages, noutput;

static void sink(void *user, ingot_level level, const char *text)
{
    (void)user, (void)level;
    strncpy(last, text, sizeof last - 1);
    messages++;
}

static int begin(void **state)
{
    (void)state;
    c = ingot_context_new(sink, NULL);
    last[0] = 0;
    messages = noutput = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    ingot_context_free(c);
    return 0;
}

static ingot_dim *k(int64_t v)
{
    return ingot_dim_const(c, v);
}

#define DIMS(...) ((int64_t[]){__VA_ARGS__})
#define RANK(...) ((int)(sizeof(DIMS(__VA_ARGS__)) / sizeof(int64_t)))
#define INPUT(name, dtype, ...) input_of(name, dtype, RANK(__VA_ARGS__), DIMS(__VA_ARGS__))

static ingot_tensor *input_of(const char *name, ingot_dtype d, int rank, const int64_t *dims)
{
    ingot_dim *nodes[INGOT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        nodes[i] = k(dims[i]);
    return ingot_input(c, name, d, rank, nodes);
}

/* Input of f32 numbers that look random, and the numbers. */
static float *fill(int64_t n, uint32_t seed)
{
    float *v = ingot_alloc(c, (size_t)n * sizeof *v + 1);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(int32_t)(seed >> 8) / 8388608.0f - 1.0f;
    }
    return v;
}

static ingot_tensor *data_f(int rank, const int64_t *dims, const float *v)
{
    return ingot_data(c, NULL, INGOT_F32, rank, dims, v);
}

#define F32(v, ...) data_f(RANK(__VA_ARGS__), DIMS(__VA_ARGS__), v)

static void expect_shape(ingot_tensor *x, int rank, const int64_t *dims)
{
    int64_t got[INGOT_MAX_RANK];
    assert_false(ingot_is_poison(x));
    assert_int_equal(ingot_rank(x), rank);
    assert_true(ingot_static_shape(x, got));
    for (int i = 0; i < rank; i++)
        assert_int_equal(got[i], dims[i]);
}

#define SHAPE(x, ...) expect_shape(x, RANK(__VA_ARGS__), DIMS(__VA_ARGS__))

static void expect_error(ingot_tensor *x, const char *text)
{
    assert_true(ingot_is_poison(x));
    assert_int_equal(messages, 1);
    if (!strstr(last, text))
        fail_msg("'%s' does not contain '%s'", last, text);
    messages = 0;
}

/* Runs the graph on one output and gives its value. */
static ingot_value run(ingot_tensor *x, int n_in, const ingot_value *in)
{
    char name[32];
    ingot_value all[64];
    if (ingot_is_poison(x))
        fail_msg("poison: %s", last);
    assert_true(noutput < 64);
    snprintf(name, sizeof name, "out%d", noutput++);
    ingot_output(c, name, x);
    assert_int_equal(ingot_interpret(c, n_in, in, noutput, all), INGOT_OK);
    return all[noutput - 1];
}

static const float *run_f(ingot_tensor *x)
{
    ingot_value v = run(x, 0, NULL);
    assert_int_equal(v.dtype, INGOT_F32);
    return v.data;
}

static const int64_t *run_i(ingot_tensor *x)
{
    ingot_value v = run(x, 0, NULL);
    assert_int_equal(v.dtype, INGOT_I64);
    return v.data;
}

static void near(const float *got, const float *want, int64_t n, float tolerance)
{
    for (int64_t i = 0; i < n; i++) {
        float scale = fabsf(want[i]) > 1 ? fabsf(want[i]) : 1;
        if (got[i] == want[i] || (isnan(got[i]) && isnan(want[i])))
            continue;
        if (!(fabsf(got[i] - want[i]) <= tolerance * scale))
            fail_msg("element %lld: got %.9g, want %.9g", (long long)i, (double)got[i],
                     (double)want[i]);
    }
}

static void equal_i(const int64_t *got, int64_t n, const int64_t *want)
{
    for (int64_t i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("element %lld: got %lld, want %lld", (long long)i, (long long)got[i],
                     (long long)want[i]);
}

#define EQUAL_I(x, ...) equal_i(run_i(x), RANK(__VA_ARGS__), DIMS(__VA_ARGS__))

/* 0, 1, 2 ... as i64 of a shape. */
#define COUNT(...) count_of(RANK(__VA_ARGS__), DIMS(__VA_ARGS__))

static ingot_tensor *count_of(int rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    int64_t *v = ingot_alloc(c, (size_t)n * sizeof *v + 1);
    for (int64_t i = 0; i < n; i++)
        v[i] = i;
    return ingot_data(c, NULL, INGOT_I64, rank, dims, v);
}

static ingot_tensor *ints(int64_t n, const int64_t *v)
{
    int64_t *copy = ingot_alloc(c, (size_t)n * sizeof *v);
    memcpy(copy, v, (size_t)n * sizeof *v);
    return ingot_data(c, NULL, INGOT_I64, 1, &n, copy);
}

#define INTS(...) ints(RANK(__VA_ARGS__), DIMS(__VA_ARGS__))

/* ---- shapes and errors -------------------------------------------------------------------------- */

static void test_dims(void **state)
{
    (void)state;
    ingot_dim *n = ingot_dim_var(c, "n", 1, 32);
    assert_ptr_equal(n, ingot_dim_var(c, "n", 1, 32));
    assert_int_equal(ingot_dim_lo(n), 1);
    assert_int_equal(ingot_dim_hi(n), 32);
    ingot_dim *twice = ingot_dim_add(c, n, n);
    assert_true(ingot_dim_equal(twice, ingot_dim_mul(c, n, k(2))));
    assert_true(ingot_dim_equal(ingot_dim_sub(c, twice, n), n));
    int64_t v;
    assert_true(ingot_dim_is_const(ingot_dim_div(c, k(-7), k(2)), &v) && v == -4);
    assert_true(ingot_dim_is_const(ingot_dim_mod(c, k(-7), k(2)), &v) && v == 1);
    assert_false(ingot_dim_is_const(n, NULL));
    assert_int_equal(messages, 0);
    expect_error(ingot_dim_var(c, "n", 1, 64),
                 "'n' was declared with bounds 1..32, now with 1..64");
    expect_error(ingot_dim_var(c, "m", 5, 4), "bounds 5..4");
    expect_error(ingot_dim_div(c, n, k(0)), "division of a dim by zero");
}

static void test_broadcasting(void **state)
{
    (void)state;
    ingot_dim *n = ingot_dim_var(c, "n", 1, 32);
    ingot_tensor *a = INPUT("a", INGOT_F32, 2, 3, 1), *b = INPUT("b", INGOT_F32, 3, 4);
    SHAPE(ingot_add(c, a, b), 2, 3, 4);
    SHAPE(ingot_add(c, a, ingot_scalar_f(c, INGOT_F32, 2)), 2, 3, 1);
    SHAPE(ingot_where(c, ingot_lt(c, a, a), b, ingot_like(c, b, 0)), 2, 3, 4);
    ingot_tensor *s = ingot_input(c, "s", INGOT_F32, 2, (ingot_dim *[]){n, k(3)});
    assert_true(ingot_dim_equal(ingot_shape(ingot_mul(c, s, s), 0), n));
    ingot_tensor *t = ingot_input(c, "t", INGOT_F32, 2, (ingot_dim *[]){k(4), k(3)});
    expect_error(ingot_add(c, a, t), "add: shapes [2, 3, 1] and [4, 3] do not broadcast");
    expect_error(ingot_add(c, s, t), "cannot prove that n and 4 are equal");
    expect_error(ingot_add(c, a, INPUT("i", INGOT_I64, 1)), "operands are f32 and i64");
    expect_error(ingot_exp(c, INPUT("j", INGOT_I64, 1)), "exp needs floats, got i64");
    assert_true(ingot_is_poison(ingot_relu(c, ingot_add(c, ingot_poison(c), a))));
    assert_int_equal(messages, 0);
}

static void test_refused(void **state)
{
    (void)state;
    ingot_tensor *x = INPUT("x", INGOT_F32, 2, 6);
    expect_error(ingot_reshape_c(c, x, 2, DIMS(5, 2)), "reshape of [2, 6] to [5, 2]");
    expect_error(ingot_reshape_c(c, x, 2, DIMS(-1, 2)), "dim 0 of shape [-1, 2] is negative");
    expect_error(ingot_permute(c, x, (int[]){0, 0}), "each axis 0..1 must come once");
    expect_error(ingot_expand(c, x, 2, (ingot_dim *[]){k(4), k(6)}), "only dims of size 1");
    expect_error(INPUT("huge", INGOT_F32, 1 << 24, 1 << 24, 2), "more than 2^47 elements");
    expect_error(ingot_shrink(c, x, (ingot_dim *[]){k(1), k(0)}, (ingot_dim *[]){k(2), k(6)}),
                 "axis 0 from 1, 2 elements, is not inside it");
    expect_error(ingot_slice(c, x, 1, k(0), k(4), 2), "is not inside it");
    expect_error(ingot_squeeze(c, x, 0), "axis 0 of shape [2, 6] is not 1");
    expect_error(ingot_matmul(c, x, x), "they must be equal");
    expect_error(ingot_concat(c, 2, (ingot_tensor *[]){x, INPUT("y", INGOT_F32, 3, 5)}, 0),
                 "part 1 is f32 [3, 5], part 0 is f32 [2, 6]");
    expect_error(ingot_take(c, x, ingot_scalar_i(c, INGOT_I64, 6), 1), "outside axis 1");
    expect_error(INPUT("x", INGOT_F32, 1), "two inputs are named 'x'");
    expect_error(ingot_reduce(c, INGOT_REDUCE_ADD, ingot_lt(c, x, x), 1, true), "cast it first");
    expect_error(
        ingot_einsum(c, "ij,jk->il", 2, (ingot_tensor *[]){x, INPUT("z", INGOT_F32, 6, 6)}),
        "output label is in no operand");
    assert_int_equal(ingot_context_status(c), INGOT_INVALID);
}

static void test_origin_in_messages(void **state)
{
    (void)state;
    ingot_set_file(c, "net.onnx");
    ingot_set_origin(c, "layer1", "Conv");
    ingot_tensor *x = INPUT("x", INGOT_F32, 1, 3, 8, 8), *w = INPUT("w", INGOT_F32, 4, 2, 3, 3);
    expect_error(ingot_conv(c, x, w, NULL, NULL, NULL, NULL, NULL, 1),
                 "net.onnx: node 'layer1' (Conv): conv: x has 3 channels");
}

/* ---- algebra at construction ------------------------------------------------------------------------ */

static void test_identities(void **state)
{
    (void)state;
    ingot_tensor *x = INPUT("x", INGOT_F32, 2, 6);
    assert_ptr_equal(ingot_cast(c, x, INGOT_F32), x);
    assert_ptr_equal(ingot_reshape_c(c, ingot_reshape_c(c, x, 1, DIMS(12)), 2, DIMS(2, 6)), x);
    assert_ptr_equal(ingot_permute(c, ingot_permute(c, x, (int[]){1, 0}), (int[]){1, 0}), x);
    assert_ptr_equal(ingot_transpose(c, x, 0, 1), ingot_permute(c, x, (int[]){1, 0}));
    assert_ptr_equal(ingot_flip(c, ingot_flip(c, x, 3), 3), x);
    assert_ptr_equal(ingot_pad_c(c, x, DIMS(0, 0), DIMS(0, 0), 5), x);
    assert_ptr_equal(ingot_sum(c, x, 0, true), x);
    assert_ptr_equal(ingot_sum(c, ingot_unsqueeze(c, x, 1), 2, false), x);
    assert_ptr_equal(ingot_where(c, ingot_scalar_i(c, INGOT_BOOL, 1), x, ingot_like(c, x, 0)), x);
    assert_ptr_equal(ingot_not(c, ingot_not(c, ingot_lt(c, x, x))), ingot_lt(c, x, x));
    assert_ptr_equal(
        ingot_pad_c(c, ingot_pad_c(c, x, DIMS(1, 0), DIMS(0, 0), 0), DIMS(-1, 0), DIMS(0, 0), 0),
        ingot_shrink(c, ingot_pad_c(c, x, DIMS(1, 0), DIMS(0, 0), 0), (ingot_dim *[]){k(1), k(0)},
                     (ingot_dim *[]){k(2), k(6)}));
    double v;
    assert_true(ingot_const_float(c, ingot_sqrt(c, ingot_scalar_f(c, INGOT_F32, 16)), &v) &&
                v == 4);
    assert_int_equal(messages, 0);
}

static void test_empty(void **state)
{
    (void)state;
    ingot_tensor *x = INPUT("x", INGOT_F32, 0, 3);
    SHAPE(ingot_exp(c, x), 0, 3);
    SHAPE(ingot_sum(c, x, 1, false), 3);
    SHAPE(ingot_sum(c, x, 2, false), 0);
    SHAPE(ingot_concat(c, 2, (ingot_tensor *[]){x, INPUT("y", INGOT_F32, 2, 3)}, 0), 2, 3);
    SHAPE(ingot_matmul(c, x, INPUT("z", INGOT_F32, 3, 4)), 0, 4);
    SHAPE(ingot_matmul(c, ingot_transpose(c, x, 0, 1), INPUT("w", INGOT_F32, 0, 4)), 3, 4);
    assert_int_equal(messages, 0);
}

/* ---- movement ------------------------------------------------------------------------------------------ */

static void test_movement(void **state)
{
    (void)state;
    ingot_tensor *x = COUNT(2, 3);
    EQUAL_I(ingot_transpose(c, x, 0, 1), 0, 3, 1, 4, 2, 5);
    EQUAL_I(ingot_flip(c, x, 2), 2, 1, 0, 5, 4, 3);
    EQUAL_I(ingot_pad_c(c, x, DIMS(0, 1), DIMS(0, -1), 9), 9, 0, 1, 9, 3, 4);
    EQUAL_I(ingot_slice(c, x, 1, k(0), k(2), 2), 0, 2, 3, 5);
    EQUAL_I(ingot_slice(c, x, 1, k(2), k(2), -2), 2, 0, 5, 3);
    EQUAL_I(ingot_slice(c, x, 1, k(2), k(3), -1), 2, 1, 0, 5, 4, 3);
    EQUAL_I(ingot_concat(c, 2, (ingot_tensor *[]){x, ingot_flip(c, x, 1)}, 1), 0, 1, 2, 3, 4, 5, 3,
            4, 5, 0, 1, 2);
    EQUAL_I(ingot_stack(c, 2, (ingot_tensor *[]){INTS(1, 2), INTS(3, 4)}, 1), 1, 3, 2, 4);
    EQUAL_I(ingot_tile(c, x, (ingot_dim *[]){k(2), k(2)}), 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5, 0, 1,
            2, 0, 1, 2, 3, 4, 5, 3, 4, 5);
    EQUAL_I(ingot_window(c, COUNT(6), 0, 3, 2, 1), 0, 1, 2, 2, 3, 4);
    EQUAL_I(ingot_window(c, COUNT(6), 0, 2, 1, 3), 0, 3, 1, 4, 2, 5);
    SHAPE(ingot_window(c, COUNT(2, 6), 1, 3, 1, 1), 2, 4, 3);
    SHAPE(ingot_window(c, COUNT(2, 2), 1, 3, 1, 1), 2, 0, 3);
    EQUAL_I(ingot_iota(c, 2, (ingot_dim *[]){k(2), k(3)}, 1), 0, 1, 2, 0, 1, 2);
}

static void test_gather(void **state)
{
    (void)state;
    ingot_tensor *x = COUNT(3, 4);
    EQUAL_I(ingot_take(c, x, INTS(2, 0), 0), 8, 9, 10, 11, 0, 1, 2, 3);
    EQUAL_I(ingot_take(c, x, INTS(-1, 1), 1), 3, 1, 7, 5, 11, 9);
    EQUAL_I(ingot_take(c, x, ingot_scalar_i(c, INGOT_I64, -2), 1), 2, 6, 10);
    EQUAL_I(ingot_gather(c, x, (ingot_tensor *[]){INTS(0, 1, 2), INTS(3, 99, -5)}), 3, 7, 8);
    ingot_tensor *zero = ingot_expand(c, ingot_scalar_i(c, INGOT_I64, 0), 1, (ingot_dim *[]){k(4)});
    ingot_tensor *at[1] = {INTS(1, 1, 3, 7)};
    EQUAL_I(ingot_update(c, INGOT_SET, zero, INTS(5, 6, 7, 8), at), 0, 6, 0, 7);
    EQUAL_I(ingot_update(c, INGOT_ADD, zero, INTS(5, 6, 7, 8), at), 0, 11, 0, 7);
    EQUAL_I(ingot_update(c, INGOT_MAX, zero, INTS(6, 5, -7, 8), at), 0, 6, 0, 0);
}

static void test_reduce(void **state)
{
    (void)state;
    ingot_tensor *x = COUNT(2, 3);
    EQUAL_I(ingot_sum(c, x, 1, false), 3, 5, 7);
    near(run_f(ingot_reduce(c, INGOT_REDUCE_MAX, F32(NULL, 0, 2), 1, false)),
         (float[]){-INFINITY, -INFINITY}, 2, 0);
    EQUAL_I(ingot_sum(c, x, 3, true), 15);
    EQUAL_I(ingot_mean(c, x, 2, false), 1, 4);
    EQUAL_I(ingot_reduce(c, INGOT_REDUCE_MAX, x, 2, false), 2, 5);
    float v[6] = {1, 3, 3, NAN, 0, NAN};
    EQUAL_I(ingot_argmax(c, F32(v, 2, 3), 1, false, false), 1, 0);
    EQUAL_I(ingot_argmax(c, F32(v, 2, 3), 1, false, true), 2, 2);
    EQUAL_I(ingot_argmin(c, F32(v, 2, 3), 1, true, false), 0, 0);
    float low[6] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -1, -1};
    EQUAL_I(ingot_argmax(c, F32(low, 2, 3), 1, false, false), 0, 1);
    EQUAL_I(ingot_argmax(c, F32(low, 2, 3), 1, false, true), 2, 2);
    EQUAL_I(ingot_argmin(c, F32(low, 2, 3), 0, false, true), 1, 0, 0);
    /* the mean of large f16 numbers, whose sum is out of range */
    ingot_tensor *h = ingot_cast(c, F32(((float[]){60000, 50000, 40000}), 3), INGOT_F16);
    near(run_f(ingot_cast(c, ingot_mean(c, h, 1, false), INGOT_F32)), (float[]){50000}, 1, 1e-3f);
}

/* ---- the op library ---------------------------------------------------------------------------------------- */

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
    static const int cases[][4] = {{1, 1, 0, 1}, {2, 1, 1, 1}, {1, 2, 2, 2}, {2, 2, 3, 4}};
    for (int t = 0; t < 4; t++) {
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

/* ---- control flow ------------------------------------------------------------------------------------------ */

static void test_loop(void **state)
{
    (void)state;
    /* s = 0; for i < 5: s += x[i] * i, and the running sums */
    ingot_tensor *x = INTS(5, 4, 3, 2, 1), *zero = ingot_scalar_i(c, INGOT_I64, 0), *out[2];
    ingot_region *r = ingot_region_begin(c);
    ingot_tensor *i = ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_tensor *cond = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *s = ingot_region_param_like(c, r, zero);
    ingot_tensor *next = ingot_add(c, s, ingot_mul(c, ingot_take(c, x, i, 0), i));
    ingot_region_end(c, r, 3, (ingot_tensor *[]){cond, next, next});
    ingot_loop(c, k(5), NULL, 1, (ingot_tensor *[]){zero}, r, 1, out);
    SHAPE(out[1], 5);
    EQUAL_I(out[0], 20);
    EQUAL_I(out[1], 0, 4, 10, 16, 20);
    assert_int_equal(messages, 0);
}

static void test_while(void **state)
{
    (void)state;
    /* v = 1; while (v < 100) v *= 3 */
    ingot_tensor *one = ingot_cast(c, INTS(1, 1), INGOT_I64), *out[1];
    one = ingot_take(c, one, ingot_scalar_i(c, INGOT_I64, 0), 0);
    ingot_region *r = ingot_region_begin(c);
    ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *v = ingot_region_param_like(c, r, one);
    ingot_tensor *next = ingot_mul(c, v, ingot_like(c, v, 3));
    ingot_tensor *more = ingot_lt(c, next, ingot_like(c, v, 100));
    ingot_region_end(c, r, 2, (ingot_tensor *[]){more, next});
    ingot_loop(c, NULL, NULL, 1, &one, r, 0, out);
    EQUAL_I(out[0], 243);
}

static void test_loop_refused(void **state)
{
    (void)state;
    ingot_tensor *x = INPUT("x", INGOT_F32, 2), *out[1];
    ingot_region *r = ingot_region_begin(c);
    ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_tensor *cond = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *v = ingot_region_param_like(c, r, x);
    ingot_region_end(c, r, 2,
                     (ingot_tensor *[]){cond, ingot_concat(c, 2, (ingot_tensor *[]){v, v}, 0)});
    ingot_loop(c, k(3), NULL, 1, &x, r, 0, out);
    expect_error(out[0], "carried value 0 starts as f32 [2], is f32 [2] inside and f32 [4] after");
    ingot_loop(c, k(3), NULL, 0, NULL, r, 0, out);
    assert_int_equal(messages, 1);
    assert_non_null(strstr(last, "it must have 2 (i, cond, carried) and 1"));
}

static void test_if(void **state)
{
    (void)state;
    ingot_tensor *x = INPUT("x", INGOT_I64, 2), *out[1];
    ingot_tensor *cond = ingot_gt(c, ingot_sum(c, x, 1, false), ingot_scalar_i(c, INGOT_I64, 0));
    ingot_region *a = ingot_region_begin(c);
    ingot_tensor *ra = ingot_mul(c, x, x);
    ingot_region_end(c, a, 1, &ra);
    ingot_region *b = ingot_region_begin(c);
    ingot_tensor *rb = ingot_neg(c, x);
    ingot_region_end(c, b, 1, &rb);
    ingot_if(c, cond, a, b, 1, out);
    SHAPE(out[0], 2);
    int64_t v[2][2] = {{2, 3}, {2, -3}}, want[2][2] = {{4, 9}, {-2, 3}};
    ingot_output(c, "y", out[0]);
    for (int i = 0; i < 2; i++) {
        ingot_value in = {.data = v[i], .dims = {2}, .rank = 1, .dtype = INGOT_I64}, y;
        assert_int_equal(ingot_interpret(c, 1, &in, 1, &y), INGOT_OK);
        equal_i(y.data, 2, want[i]);
    }
    ingot_if(c, ingot_scalar_i(c, INGOT_BOOL, 1), a, b, 1, out);
    assert_ptr_equal(out[0], ra);
}

static void test_library(void **state)
{
    (void)state;
    float v[6] = {0, 2, -0.0f, 3, 1, 0};
    ingot_value out = run(ingot_nonzero(c, F32(v, 2, 3)), 0, NULL);
    assert_int_equal(out.dims[1], 3);
    equal_i(out.data, 6, DIMS(0, 1, 1, 1, 0, 1));
    ingot_tensor *top[2];
    ingot_topk(c, F32(v, 2, 3), k(2), -1, true, top);
    SHAPE(top[0], 2, 2);
    near(run_f(top[0]), (float[]){2, 0, 3, 1}, 4, 0);
    EQUAL_I(top[1], 1, 0, 0, 1);
    ingot_dim *n = ingot_read_dim(c, INTS(4, 7), "n", 0, 9);
    assert_true(ingot_is_poison(n)); /* two elements are no dim */
}

/* ---- run-time dims -------------------------------------------------------------------------------------------- */

static void test_symbolic(void **state)
{
    (void)state;
    ingot_dim *n = ingot_dim_var(c, "n", 1, 8);
    ingot_tensor *x = ingot_input(c, "x", INGOT_I64, 2, (ingot_dim *[]){n, k(4)});
    ingot_tensor *flat = ingot_flatten(c, x, 0, 2);
    ingot_tensor *back = ingot_reshape(c, flat, 3, (ingot_dim *[]){n, k(2), k(2)});
    ingot_output(c, "y", ingot_sum(c, back, 4, false));
    ingot_output(
        c, "z",
        ingot_mul(c, ingot_from_dim(c, ingot_numel(c, x)), ingot_scalar_i(c, INGOT_I64, 3)));
    assert_int_equal(messages, 0);
    int64_t v[12];
    for (int i = 0; i < 12; i++)
        v[i] = i;
    ingot_value in = {.data = v, .dims = {3, 4}, .rank = 2, .dtype = INGOT_I64}, out[2];
    assert_int_equal(ingot_interpret(c, 1, &in, 2, out), INGOT_OK);
    assert_int_equal(out[0].dims[0], 3);
    equal_i(out[0].data, 6, DIMS(1, 5, 9, 13, 17, 21));
    equal_i(out[1].data, 1, DIMS(36));
}

/* ---- requirements ------------------------------------------------------------------------------------------------- */

/* x [n, 4] and y [4, m], of which the model needs n and m to be equal. */
static ingot_status run_required(int64_t n, int64_t m, ingot_value *out)
{
    static const float v[64] = {1, 2, 3, 4, 5, 6, 7, 8};
    ingot_value in[2] = {{.data = v, .dims = {n, 4}, .rank = 2, .dtype = INGOT_F32},
                         {.data = v, .dims = {4, m}, .rank = 2, .dtype = INGOT_F32}};
    return ingot_interpret(c, 2, in, 1, out);
}

static void test_require(void **state)
{
    (void)state;
    ingot_dim *n = ingot_dim_var(c, "n", 1, 8), *m = ingot_dim_var(c, "m", 3, 5);
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, (ingot_dim *[]){n, k(4)});
    ingot_tensor *y = ingot_input(c, "y", INGOT_F32, 2, (ingot_dim *[]){k(4), m});
    assert_ptr_equal(ingot_require_equal(c, n, n, "n"), n);
    assert_ptr_equal(ingot_require_equal(c, k(3), k(3), "3"), k(3));
    expect_error(ingot_require_equal(c, k(2), m, "the count"), "the count is 2; it has to be m");
    assert_true(ingot_require(c, m, k(1), k(5), "m")); /* known: no step */
    ingot_dim *both = ingot_require_equal(c, n, m, "the height");
    assert_ptr_equal(both, m); /* the lower bound of memory */
    assert_ptr_equal(ingot_shape(ingot_require_size(c, x, 0, m, "the height"), 0), m);
    assert_int_equal(ingot_dim_hi(ingot_require_bounds(c, n, 0, 4, "the height")), 4);
    ingot_output(c, "z", ingot_matmul(c, y, x));
    assert_int_equal(messages, 0);
    ingot_value out;
    assert_int_equal(run_required(4, 4, &out), INGOT_OK);
    assert_int_equal(out.dims[0], 4);
    assert_int_equal(run_required(3, 4, &out), INGOT_INVALID);
    assert_non_null(strstr(last, "the height is 3; it has to be 4"));
}

/* A requirement inside a branch holds where the branch is taken. */
static void test_require_in_branch(void **state)
{
    (void)state;
    ingot_dim *n = ingot_dim_var(c, "n", 1, 8);
    ingot_tensor *x = ingot_input(c, "x", INGOT_I64, 1, (ingot_dim *[]){n}), *y;
    ingot_tensor *first = ingot_reshape(c, ingot_slice(c, x, 0, k(0), k(1), 1), 0, NULL);
    ingot_region *then_branch = ingot_region_begin(c);
    (void)ingot_require_equal(c, n, k(3), "n");
    ingot_tensor *a = ingot_add_c(c, first, 1);
    ingot_region_end(c, then_branch, 1, &a);
    ingot_region *else_branch = ingot_region_begin(c);
    ingot_tensor *b = ingot_add_c(c, first, 2);
    ingot_region_end(c, else_branch, 1, &b);
    ingot_if(c, ingot_gt(c, first, ingot_like(c, first, 0)), then_branch, else_branch, 1, &y);
    ingot_output(c, "y", y);
    static const struct {
        int64_t first, n;
        ingot_status status;
    } tries[] = {{1, 3, INGOT_OK}, {0, 2, INGOT_OK}, {1, 2, INGOT_INVALID}};
    for (int i = 0; i < 3; i++) {
        int64_t v[8] = {tries[i].first};
        ingot_value in = {.data = v, .dims = {tries[i].n}, .rank = 1, .dtype = INGOT_I64}, out;
        assert_int_equal(ingot_interpret(c, 1, &in, 1, &out), tries[i].status);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(dims),
        TEST(broadcasting),
        TEST(refused),
        TEST(origin_in_messages),
        TEST(identities),
        TEST(empty),
        TEST(movement),
        TEST(gather),
        TEST(reduce),
        TEST(activations),
        TEST(matmul),
        TEST(einsum),
        TEST(conv),
        TEST(conv_transpose),
        TEST(pools),
        TEST(norms),
        TEST(loop),
        TEST(while),
        TEST(loop_refused),
        TEST(if),
        TEST(library),
        TEST(symbolic),
        TEST(require),
        TEST(require_in_branch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
