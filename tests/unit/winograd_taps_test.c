/* winograd_taps_test.c - gradients of weights of three taps, computed in fewer products, are those
 * of the sums that they stand for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot_ops.h"
#include "compiler/pipeline/pipeline.h"
#include "rewrite.h"

/* A convolution: of x [batch, channels, pixels..] and so many maps. */
typedef struct {
    const char *name;
    int rank;
    int64_t x[4], w[4], pad, stride, dilation, groups;
    double ram; /* bytes: the less, the narrower the strips */
    int made;   /* how many sums become fewer products */
} Form;

static const Form forms[] = {
    {"even", 4, {1, 8, 8, 12}, {6, 8, 3, 3}, 1, 1, 1, 1, 1e9, 1},
    {"odd", 4, {3, 5, 7, 9}, {4, 5, 3, 3}, 1, 1, 1, 1, 1e9, 1},
    {"no border", 4, {2, 5, 7, 8}, {4, 5, 3, 3}, 0, 1, 1, 1, 1e9, 1},
    {"strips", 4, {2, 64, 31, 30}, {40, 64, 3, 3}, 1, 1, 1, 1, 1e6, 1},
    {"one axis", 3, {2, 5, 11}, {4, 5, 3}, 1, 1, 1, 1, 1e9, 1},
    {"groups", 4, {2, 6, 7, 8}, {4, 3, 3, 3}, 1, 1, 1, 2, 1e9, 1},
    {"3x5", 4, {2, 6, 7, 8}, {4, 6, 3, 5}, 1, 1, 1, 1, 1e9, 1},
    {"stride", 4, {2, 6, 9, 9}, {4, 6, 3, 3}, 1, 2, 1, 1, 1e9, 0},
    {"two taps", 4, {2, 6, 9, 9}, {4, 6, 2, 2}, 1, 1, 1, 1, 1e9, 0},
};

static int made;

static Node *apply_taps(Rewrite *r, Node *n)
{
    if (n->op != OP_REDUCE || !winograd_taps(r, n, true))
        return n;
    made++;
    return winograd_taps(r, n, false);
}

static ingot_tensor *input(Context *c, const char *name, int rank, const int64_t *size)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = ingot_dim_const(c, size[i]);
    return ingot_input(c, name, INGOT_F32, rank, dims);
}

/* The gradient of w, of a loss that weighs results otherwise than evenly. */
static Context *gradient_graph(const Form *q)
{
    const int64_t pad[2] = {q->pad, q->pad}, stride[2] = {q->stride, q->stride},
                  apart[2] = {q->dilation, q->dilation};
    Context *c = ingot_context_new(NULL, NULL);
    ingot_tensor *x = input(c, "x", q->rank, q->x), *w = input(c, "w", q->rank, q->w), *g;
    ingot_tensor *y = ingot_conv(c, x, w, NULL, stride, apart, pad, pad, q->groups);
    ingot_gradient(c, ingot_sum(c, ingot_mul(c, y, ingot_tanh(c, y)), (1u << q->rank) - 1, false),
                   1, &w, &g);
    ingot_output(c, "g", g);
    return c;
}

static ingot_value filled(Context *c, int rank, const int64_t *size)
{
    ingot_value v = {.rank = rank, .dtype = INGOT_F32};
    int64_t n = 1;
    uint32_t seed = 5;
    for (int i = 0; i < rank; i++)
        n *= v.dims[i] = size[i];
    float *data = NEWN(c->arena, float, n);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(int32_t)seed / 2147483648.0f;
    }
    v.data = data;
    return v;
}

static void check_form(const Form *q)
{
    const ingot_options o = {.struct_size = sizeof o, .target = "c:x86-64-v3"};
    Context *c = gradient_graph(q);
    const ingot_value in[2] = {filled(c, q->rank, q->x), filled(c, q->rank, q->w)};
    ingot_value want, got;
    assert_int_equal(ingot_interpret(c, 2, in, 1, &want), INGOT_OK);
    Arena *a = arena_new();
    Rewrite r = {.c = c, .a = a, .apply = apply_taps, .target = options_check(c, &o, a)};
    r.ram = q->ram;
    made = 0;
    (void)rewrite_pass(&r);
    map_free(&r.constants);
    if (made != q->made)
        fail_msg("%s: %d sums are made of fewer products, not %d", q->name, made, q->made);
    assert_int_equal(ingot_interpret(c, 2, in, 1, &got), INGOT_OK);
    const float *is = got.data, *was = want.data;
    float most = 0;
    int64_t n = 1;
    for (int i = 0; i < q->rank; i++)
        n *= q->w[i];
    for (int64_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(was[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(is[i] - was[i]) <= 4e-6f * most))
            fail_msg("%s: element %lld is %.9g, not %.9g", q->name, (long long)i, (double)is[i],
                     (double)was[i]);
    arena_free(a);
    ingot_context_free(c);
}

static void test_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check_form(&forms[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
