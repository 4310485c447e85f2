/* gradient_cases.h - a function of tensors, and whether its gradient is what differences say.
 *
 * The loss is the sum of the function's elements, each with a weight of its own.  Along some
 * random directions d of all operands
 *
 *     sum of g d  =  (loss(x + h d) - loss(x - h d)) / 2h          in f64, by the interpreter
 *
 * has to hold.  Then the same of the gradient: the loss is a weighted sum of its elements. */
#ifndef GRADIENT_CASES_H
#define GRADIENT_CASES_H

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

enum { MOST_OPERANDS = 8, MOST_ELEMENTS = 4096 };
enum {
    ONCE = 1,
    WHOLE = 2
}; /* no second derivative; operands are multiples of 1/2, zeros among them */

typedef struct {
    const char *name;
    ingot_tensor *(*f)(ingot_context *, ingot_tensor *const *x);
    double lo, hi; /* of the operands' elements */
    unsigned flags;
    int n;
    int rank[MOST_OPERANDS];
    int64_t dims[MOST_OPERANDS][6];
} GradientCase;

static char last_error[1024];

static inline void keep_error(void *user, ingot_level level, const char *text)
{
    (void)user;
    if (level == INGOT_ERROR)
        snprintf(last_error, sizeof last_error, "%s", text);
}

static uint32_t noise_seed;

/* In [-1, 1). */
static inline double noise(void)
{
    noise_seed = noise_seed * 1664525u + 1013904223u;
    return (double)(int32_t)noise_seed / 2147483648.0;
}

static inline int64_t elements(int rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    return n;
}

/* The sum of all elements, each times a number of its own. */
static inline ingot_tensor *weighted_sum(ingot_context *c, ingot_tensor *y, uint32_t seed)
{
    int64_t dims[INGOT_MAX_RANK];
    int rank = ingot_rank(y);
    unsigned all = (1u << rank) - 1;
    if (!ingot_static_shape(y, dims)) /* every element alike */
        return ingot_sum(c, ingot_mul(c, y, ingot_sin(c, y)), all, false);
    int64_t n = elements(rank, dims);
    double *w = ingot_alloc(c, (size_t)(n + 1) * sizeof *w);
    noise_seed = seed;
    for (int64_t i = 0; i < n; i++)
        w[i] = 1 + 0.5 * noise();
    ingot_tensor *data = ingot_data(c, NULL, INGOT_F64, rank, dims, w);
    return ingot_sum(c, ingot_mul(c, ingot_cast(c, y, INGOT_F64), data), all, false);
}

/* The loss of the function (order 1), or of its gradient, and its gradients. */
static inline ingot_context *built(const GradientCase *q, int order, bool gradients, int *nout)
{
    ingot_context *c = ingot_context_new(keep_error, NULL);
    ingot_tensor *x[MOST_OPERANDS], *g[MOST_OPERANDS];
    char name[32];
    last_error[0] = 0;
    for (int i = 0; i < q->n; i++) {
        ingot_dim *dims[6];
        for (int a = 0; a < q->rank[i]; a++)
            dims[a] = ingot_dim_const(c, q->dims[i][a]);
        snprintf(name, sizeof name, "x%d", i);
        x[i] = ingot_input(c, name, INGOT_F64, q->rank[i], dims);
    }
    ingot_tensor *loss = weighted_sum(c, q->f(c, x), 1);
    if (order == 2) {
        ingot_tensor *sum = NULL;
        ingot_gradient(c, loss, q->n, x, g);
        for (int i = 0; i < q->n; i++) {
            ingot_tensor *part = g[i] ? weighted_sum(c, g[i], 7 + (uint32_t)i) : NULL;
            sum = sum && part ? ingot_add(c, sum, part) : part ? part : sum;
        }
        loss = sum;
    }
    ingot_output(c, "loss", loss);
    *nout = 1;
    if (!gradients)
        return c;
    ingot_gradient(c, loss, q->n, x, g);
    for (int i = 0; i < q->n; i++) {
        snprintf(name, sizeof name, "g%d", i);
        int64_t dims[INGOT_MAX_RANK];
        ingot_dim *shape[INGOT_MAX_RANK];
        for (int a = 0; a < q->rank[i]; a++)
            shape[a] = ingot_shape(x[i], a);
        if (!g[i])
            g[i] = ingot_expand(c, ingot_scalar_f(c, INGOT_F64, 0), q->rank[i], shape);
        if (ingot_is_poison(g[i]))
            fail_msg("%s: %s", q->name, last_error);
        assert_int_equal(ingot_dtype_of(g[i]), INGOT_F64);
        assert_int_equal(ingot_rank(g[i]), q->rank[i]);
        assert_true(ingot_static_shape(g[i], dims));
        assert_memory_equal(dims, q->dims[i], (size_t)q->rank[i] * sizeof *dims);
        ingot_output(c, name, g[i]);
        ++*nout;
    }
    return c;
}

static inline void run_case(ingot_context *c, const GradientCase *q, double *const *x, int nout,
                            ingot_value *out)
{
    ingot_value in[MOST_OPERANDS];
    for (int i = 0; i < q->n; i++) {
        in[i] = (ingot_value){.data = x[i], .rank = q->rank[i], .dtype = INGOT_F64};
        memcpy(in[i].dims, q->dims[i], sizeof q->dims[i]);
    }
    if (ingot_interpret(c, q->n, in, nout, out) != INGOT_OK)
        fail_msg("%s: %s", q->name, last_error);
}

static inline void check_order(const GradientCase *q, int order, uint32_t seed)
{
    int nout, one;
    double *x[MOST_OPERANDS], *at[MOST_OPERANDS], *d[MOST_OPERANDS];
    ingot_context *c = built(q, order, true, &nout), *plain = built(q, order, false, &one);
    ingot_value out[1 + MOST_OPERANDS], loss[2];
    noise_seed = seed;
    for (int i = 0; i < q->n; i++) {
        int64_t n = elements(q->rank[i], q->dims[i]);
        x[i] = malloc((size_t)(n + 1) * 3 * sizeof **x);
        at[i] = x[i] + n;
        d[i] = at[i] + n;
        for (int64_t k = 0; k < n; k++) {
            x[i][k] = q->lo + (q->hi - q->lo) * (noise() + 1) / 2;
            if (q->flags & WHOLE)
                x[i][k] = rint(2 * x[i][k]) / 2;
        }
    }
    run_case(c, q, x, nout, out);
    for (int turn = 0; turn < 3; turn++) {
        const double h = 1e-5;
        double slope = 0, size = 0;
        for (int i = 0; i < q->n; i++)
            for (int64_t k = 0; k < elements(q->rank[i], q->dims[i]); k++) {
                d[i][k] = noise();
                double term = ((const double *)out[1 + i].data)[k] * d[i][k];
                slope += term;
                size += fabs(term);
            }
        for (int side = 0; side < 2; side++) {
            for (int i = 0; i < q->n; i++)
                for (int64_t k = 0; k < elements(q->rank[i], q->dims[i]); k++)
                    at[i][k] = x[i][k] + (side ? -h : h) * d[i][k];
            run_case(plain, q, at, 1, &loss[side]);
        }
        double up = *(const double *)loss[0].data, down = *(const double *)loss[1].data;
        double want = (up - down) / (2 * h), scale = fmax(1, fmax(size, fabs(up)));
        if (!(fabs(slope - want) <= 2e-7 * scale))
            fail_msg("%s, derivative %d: %.12g, by differences %.12g", q->name, order, slope, want);
    }
    for (int i = 0; i < q->n; i++)
        free(x[i]);
    ingot_context_free(c);
    ingot_context_free(plain);
}

static inline void check_case(const GradientCase *q)
{
    check_order(q, 1, 12345);
    if (!(q->flags & ONCE))
        check_order(q, 2, 54321);
}

#endif
