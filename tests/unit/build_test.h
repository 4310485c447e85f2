/* build_test.h - a context for each test of the builder, tensors, and what is expected of them. */
#ifndef BUILD_TEST_H
#define BUILD_TEST_H

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

static ingot_context *c;
static char last[1024];
static int messages, noutput;

static inline void sink(void *user, ingot_level level, const char *text)
{
    (void)user, (void)level;
    strncpy(last, text, sizeof last - 1);
    messages++;
}

static inline int begin(void **state)
{
    (void)state;
    c = ingot_context_new(sink, NULL);
    last[0] = 0;
    messages = noutput = 0;
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    ingot_context_free(c);
    return 0;
}

static inline ingot_dim *k(int64_t v)
{
    return ingot_dim_const(c, v);
}

#define DIMS(...) ((int64_t[]){__VA_ARGS__})
#define RANK(...) ((int)(sizeof(DIMS(__VA_ARGS__)) / sizeof(int64_t)))
#define INPUT(name, dtype, ...) input_of(name, dtype, RANK(__VA_ARGS__), DIMS(__VA_ARGS__))

static inline ingot_tensor *input_of(const char *name, ingot_dtype d, int rank, const int64_t *dims)
{
    ingot_dim *nodes[INGOT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        nodes[i] = k(dims[i]);
    return ingot_input(c, name, d, rank, nodes);
}

/* Input of f32 numbers that look random, and the numbers. */
static inline float *fill(int64_t n, uint32_t seed)
{
    float *v = ingot_alloc(c, (size_t)n * sizeof *v + 1);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(int32_t)(seed >> 8) / 8388608.0f - 1.0f;
    }
    return v;
}

static inline ingot_tensor *data_f(int rank, const int64_t *dims, const float *v)
{
    return ingot_data(c, NULL, INGOT_F32, rank, dims, v);
}

#define F32(v, ...) data_f(RANK(__VA_ARGS__), DIMS(__VA_ARGS__), v)

static inline void expect_shape(ingot_tensor *x, int rank, const int64_t *dims)
{
    int64_t got[INGOT_MAX_RANK];
    assert_false(ingot_is_poison(x));
    assert_int_equal(ingot_rank(x), rank);
    assert_true(ingot_static_shape(x, got));
    for (int i = 0; i < rank; i++)
        assert_int_equal(got[i], dims[i]);
}

#define SHAPE(x, ...) expect_shape(x, RANK(__VA_ARGS__), DIMS(__VA_ARGS__))

static inline void expect_error(ingot_tensor *x, const char *text)
{
    assert_true(ingot_is_poison(x));
    assert_int_equal(messages, 1);
    if (!strstr(last, text))
        fail_msg("'%s' does not contain '%s'", last, text);
    messages = 0;
}

/* Runs the graph on one output and gives its value. */
static inline ingot_value run(ingot_tensor *x, int n_in, const ingot_value *in)
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

static inline const float *run_f(ingot_tensor *x)
{
    ingot_value v = run(x, 0, NULL);
    assert_int_equal(v.dtype, INGOT_F32);
    return v.data;
}

static inline const int64_t *run_i(ingot_tensor *x)
{
    ingot_value v = run(x, 0, NULL);
    assert_int_equal(v.dtype, INGOT_I64);
    return v.data;
}

static inline void near(const float *got, const float *want, int64_t n, float tolerance)
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

static inline void equal_i(const int64_t *got, int64_t n, const int64_t *want)
{
    for (int64_t i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("element %lld: got %lld, want %lld", (long long)i, (long long)got[i],
                     (long long)want[i]);
}

#define EQUAL_I(x, ...) equal_i(run_i(x), RANK(__VA_ARGS__), DIMS(__VA_ARGS__))

/* 0, 1, 2 ... as i64 of a shape. */
#define COUNT(...) count_of(RANK(__VA_ARGS__), DIMS(__VA_ARGS__))

static inline ingot_tensor *count_of(int rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    int64_t *v = ingot_alloc(c, (size_t)n * sizeof *v + 1);
    for (int64_t i = 0; i < n; i++)
        v[i] = i;
    return ingot_data(c, NULL, INGOT_I64, rank, dims, v);
}

static inline ingot_tensor *ints(int64_t n, const int64_t *v)
{
    int64_t *copy = ingot_alloc(c, (size_t)n * sizeof *v);
    memcpy(copy, v, (size_t)n * sizeof *v);
    return ingot_data(c, NULL, INGOT_I64, 1, &n, copy);
}

#define INTS(...) ints(RANK(__VA_ARGS__), DIMS(__VA_ARGS__))

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, begin, end)

#endif
