/* strips_test.c - what is computed in strips, one after the other, is a loop of the plan, with one
 * kernel of each kind, whether strips divide the image or not. That the values are right is what
 * tests/ir, tests/onnx and tests/fuzz judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "compiler/ingot_ops.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/rewrite/rewrite.h"

static ingot_tensor *weight(Context *c, int rank, const int64_t *size)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= size[i];
    float *data = NEWN(c->arena, float, n);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)(i * 7 % 13) / 8;
    return ingot_data(c, "w", INGOT_F32, rank, size, data);
}

/* relu(conv(x)), a window of 3x3, as often as said. */
static void expect(const char *target, int64_t channels, int64_t size, int convs, int most,
                   int loops)
{
    const ingot_options o = {.struct_size = sizeof o, .target = target};
    const int64_t pads[] = {1, 1}, w[] = {channels, channels, 3, 3};
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *dim[] = {ingot_dim_const(c, 1), ingot_dim_const(c, channels),
                        ingot_dim_const(c, size), ingot_dim_const(c, size)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 4, dim);
    for (int i = 0; i < convs; i++)
        x = ingot_relu(
            c, ingot_conv(c, x, weight(c, 4, w), weight(c, 1, w), NULL, NULL, pads, pads, 1));
    ingot_output(c, "y", x);
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    int found = 0;
    for (int i = 0; i < p->main.n; i++)
        found += p->main.step[i]->kind == STEP_LOOP;
    if (p->nkernel > most || found != loops)
        fail_msg("%s, %d of %dx%d: %d kernels, %d loops", target, (int)channels, (int)size,
                 (int)size, p->nkernel, found);
    plan_free(p);
    ingot_context_free(c);
}

static void one_convolution(void **state)
{
    (void)state;
    expect("c:x86-64-v4", 64, 56, 1, 5, 1);
    expect("c:x86-64-v4", 64, 57, 1, 5, 1);  /* the last strip begins a row earlier */
    expect("c:x86-64-v4", 128, 28, 1, 6, 1); /* along one axis */
    expect("c:x86-64-v3", 128, 56, 1, 5, 1);
    expect("c:armv8-a", 16, 32, 1, 5, 1);
    expect("c:x86-64-v4", 256, 14, 1, 5, 0); /* as a whole */
}

/* 56 rows are 28 of tiles. Three of these at once would be near, but 30 in all: they come by two.
 * Before it stands a product that is larger, so there is room for more. */
static void no_row_is_made_twice(void **state)
{
    (void)state;
    const int64_t one[] = {128, 256, 1, 1}, w[] = {32, 128, 3, 3}, pads[] = {1, 1};
    const ingot_options o = {.struct_size = sizeof o, .target = "c:x86-64-v4"};
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *dim[] = {idx(c, 1), idx(c, 256), idx(c, 56), idx(c, 56)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 4, dim);
    x = ingot_conv(c, x, weight(c, 4, one), NULL, NULL, NULL, NULL, NULL, 1);
    x = ingot_conv(c, ingot_relu(c, x), weight(c, 4, w), NULL, NULL, NULL, pads, pads, 1);
    ingot_output(c, "y", ingot_relu(c, x));
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    int64_t strips = 0;
    for (int i = 0; i < p->main.n; i++)
        if (p->main.step[i]->kind == STEP_LOOP)
            assert_true(idx_value(p->main.step[i]->trip, &strips));
    assert_int_equal(strips, 14);
    plan_free(p);
    ingot_context_free(c);
}

/* The second one reads what the loop of the first has written, with a border of zeros. */
static void two_convolutions(void **state)
{
    (void)state;
    expect("c:x86-64-v4", 64, 56, 2, 8, 2);
    expect("c:x86-64-v4", 64, 57, 2, 8, 2);
}

/* What is worth memory is measured by the largest product: not by weights that are put together
 * from parts of bytes, for these never are floats in memory. */
static void weights_in_parts_take_none(void **state)
{
    (void)state;
    enum { ROWS = 64, TERMS = 96 };
    const int64_t half[] = {TERMS / 2, 1, ROWS};
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *sizes[] = {ingot_dim_const(c, 1), ingot_dim_const(c, TERMS),
                          ingot_dim_const(c, ROWS)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, sizes),
                 *part =
                     ingot_data(c, "w", INGOT_U8, 3, half, NEWN(c->arena, uint8_t, TERMS * ROWS)),
                 *w = ingot_cast(c, part, INGOT_F32);
    w = ingot_concat(c, 2, (ingot_tensor *[]){w, w}, 1);
    w = ingot_reshape(c, w, 2, sizes + 1);
    Node *y = ingot_matmul(c, x, w);
    while (y->op != OP_REDUCE)
        y = y->src[0];
    Rewrite r = {.c = c, .a = c->arena};
    assert_int_equal(product_ram(&r, y), sizeof(float) * (TERMS + ROWS));
    map_free(&r.constants);
    ingot_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_convolution),
        cmocka_unit_test(no_row_is_made_twice),
        cmocka_unit_test(two_convolutions),
        cmocka_unit_test(weights_in_parts_take_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
