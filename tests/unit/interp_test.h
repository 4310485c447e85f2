/* interp_test.h - a context for each test of the interpreter, constants that are not folded, and
 * values. */
#ifndef INTERP_TEST_H
#define INTERP_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/compiler.h"
#include "runtime_min/igrt_num.h"

static char last_message[512];

static inline void keep(void *user, ingot_level level, const char *message)
{
    (void)user, (void)level;
    snprintf(last_message, sizeof last_message, "%s", message);
}

static inline int setup(void **state)
{
    last_message[0] = 0;
    *state = ingot_context_new(keep, NULL);
    return 0;
}

static inline int teardown(void **state)
{
    ingot_context_free(*state);
    return 0;
}

/* Constant data that the builder cannot fold away. */
static inline ingot_tensor *data(ingot_context *c, ingot_dtype t, int rank, const int64_t *dims,
                                 const void *bytes)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    void *copy = ingot_alloc(c, (size_t)n * ingot_dtype_bytes(t) + 1);
    memcpy(copy, bytes, (size_t)n * ingot_dtype_bytes(t));
    return ingot_data(c, NULL, t, rank, dims, copy);
}

static inline ingot_tensor *vec(ingot_context *c, ingot_dtype t, int64_t n, const void *bytes)
{
    return data(c, t, 1, &n, bytes);
}

static inline void eval(ingot_context *c, ingot_tensor *x, void *out, size_t bytes)
{
    Interp *ip = interp_new(c);
    int64_t dims[INGOT_MAX_RANK], n = 1;
    const void *p = interp_eval(ip, x, dims);
    assert_non_null(p);
    for (int i = 0; i < ingot_rank(x); i++)
        n *= dims[i];
    assert_int_equal((size_t)n * ingot_dtype_bytes(ingot_dtype_of(x)), bytes);
    memcpy(out, p, bytes);
    interp_free(ip);
}
#define COUNT(a) (int64_t)(sizeof(a) / sizeof *(a))
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
