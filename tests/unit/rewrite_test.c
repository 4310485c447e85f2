/* rewrite_test.c - rewrites of networks that are deeper than a rule sees at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/compiler.h"
#include "compiler/ingot_ops.h"
#include "compiler/kernel/target.h"

enum { LAYERS = 150, WIDTH = 4 };

/* Layers with a scale behind each product and after each activation: a layer's scale is folded
 * whatever became of the layers below, and a network of any depth comes to rest. */
static void test_deep(void **state)
{
    (void)state;
    float weights[WIDTH * WIDTH], scale[WIDTH];
    Context *c = ingot_context_new(NULL, NULL);
    ingot_tensor *x = ingot_input(
        c, "x", INGOT_F32, 2, (ingot_dim *[]){ingot_dim_const(c, 1), ingot_dim_const(c, WIDTH)});
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < WIDTH * WIDTH; i++)
            weights[i] = (float)(layer + i);
        for (int i = 0; i < WIDTH; i++)
            scale[i] = (float)(2 + layer + i);
        x = ingot_matmul(c, x,
                         ingot_data(c, NULL, INGOT_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights));
        x = ingot_mul(c, x, ingot_data(c, NULL, INGOT_F32, 1, (int64_t[]){WIDTH}, scale));
        x = ingot_relu(c, x);
    }
    ingot_output(c, "y", x);
    assert_true(graph_rewrite(c, NULL, NULL));
    Arena *a = arena_new();
    int n, scaled = 0;
    Node **order = graph_toposort(a, 1, &c->outputs[0].node, &n);
    for (int i = 0; i < n; i++)
        scaled += order[i]->op == OP_MUL && order[i]->rank == 2 && idx_is(order[i]->shape[0], 1);
    assert_int_equal(scaled, 0);
    arena_free(a);
    ingot_context_free(c);
}

enum { BATCH = 8, ROWS = 24, COLUMNS = 16 };

/* Layers of a batch: products, a maximum of each row that the next product reads, and windows of
 * each row alone. */
static Node *layers(Context *c, float *weights)
{
    ingot_dim *dims[] = {ingot_dim_const(c, BATCH), ingot_dim_const(c, ROWS),
                         ingot_dim_const(c, COLUMNS)};
    Node *x = ingot_input(c, "x", INGOT_F32, 3, dims);
    Node *w = ingot_data(c, NULL, INGOT_F32, 2, (int64_t[]){COLUMNS, COLUMNS}, weights);
    const int64_t one[] = {1, 1}, pad[] = {1, 1}, kernel[] = {3, 3};
    x = ingot_relu(c, ingot_matmul(c, x, w));
    Node *image = ingot_reshape_c(c, x, 4, (int64_t[]){BATCH, 1, ROWS, COLUMNS});
    image = ingot_max_pool(c, image, kernel, one, one, pad, pad);
    x = ingot_reshape_c(c, image, 3, (int64_t[]){BATCH, ROWS, COLUMNS});
    x = ingot_sub(c, x, ingot_reduce(c, INGOT_REDUCE_MAX, x, 4, true));
    x = ingot_matmul(c, x, w);
    ingot_output(c, "y", x);
    return x;
}

static void interpret(Context *c, const float *x, float *y)
{
    ingot_value in = {.dtype = INGOT_F32, .rank = 3, .dims = {BATCH, ROWS, COLUMNS}, .data = x},
                out;
    assert_int_equal(ingot_interpret(c, 1, &in, 1, &out), INGOT_OK);
    memcpy(y, out.data, BATCH * ROWS * COLUMNS * sizeof *y);
}

/* Parts of a batch that the cache holds, with the numbers of the whole; none where it holds all. */
static void test_batches(void **state)
{
    (void)state;
    static float weights[COLUMNS * COLUMNS], x[BATCH * ROWS * COLUMNS],
        want[BATCH * ROWS * COLUMNS], got[BATCH * ROWS * COLUMNS];
    for (int i = 0; i < COLUMNS * COLUMNS; i++)
        weights[i] = (float)(i % 7) - 3;
    for (int i = 0; i < BATCH * ROWS * COLUMNS; i++)
        x[i] = (float)(i * 37 % 101) / 8;
    const double whole = 2. * sizeof x;
    for (int parts = 1; parts <= 4; parts *= 2) {
        Context *c = ingot_context_new(NULL, NULL);
        (void)layers(c, weights);
        interpret(c, x, want);
        const Target t = {.machine.lanes = 16,
                          .machine.registers = 32,
                          .machine.cache = whole / parts * 4 / 3 + 64};
        (void)graph_rewrite(c, &t, NULL);
        const Node *y = c->outputs[0].node;
        assert_int_equal(y->op == OP_CONCAT ? (int)y->nsrc : 1, parts);
        interpret(c, x, got);
        assert_memory_equal(got, want, sizeof got);
        ingot_context_free(c);
    }
}

enum { TALL = 96, WIDE = 4, CHANNELS = 8, TAPS = 9 };

/* A large value between two small ones, by windows one row or two apart, and what all of the second
 * is read by. */
static void image_layers(Context *c, const float *weights, int64_t stride)
{
    const int64_t pad[] = {1, 1}, strides[] = {stride, 1};
    ingot_dim *dims[] = {ingot_dim_const(c, 1), ingot_dim_const(c, 1), ingot_dim_const(c, TALL),
                         ingot_dim_const(c, WIDE)};
    Node *x = ingot_input(c, "x", INGOT_F32, 4, dims);
    Node *w = ingot_data(c, NULL, INGOT_F32, 4, (int64_t[]){CHANNELS, 1, 3, 3}, weights);
    Node *v = ingot_data(c, NULL, INGOT_F32, 4, (int64_t[]){1, CHANNELS, 3, 3}, weights);
    x = ingot_relu(c, ingot_conv(c, x, w, NULL, NULL, NULL, pad, pad, 1));
    x = ingot_relu(c, ingot_conv(c, x, v, NULL, strides, NULL, pad, pad, 1));
    ingot_output(c, "y", ingot_sub(c, x, ingot_reduce(c, INGOT_REDUCE_MAX, x, 4, true)));
}

static void interpret_image(Context *c, const float *x, float *y, int rows)
{
    ingot_value in = {.dtype = INGOT_F32, .rank = 4, .dims = {1, 1, TALL, WIDE}, .data = x}, out;
    assert_int_equal(ingot_interpret(c, 1, &in, 1, &out), INGOT_OK);
    memcpy(y, out.data, (size_t)rows * WIDE * sizeof *y);
}

static int parts_of_concats(const Context *c)
{
    Arena *a = arena_new();
    int n, parts = 0;
    Node **order = graph_toposort(a, 1, &c->outputs[0].node, &n);
    for (int i = 0; i < n; i++)
        parts += order[i]->op == OP_CONCAT ? (int)order[i]->nsrc : 0;
    arena_free(a);
    return parts;
}

/* Bands of rows that the cache holds, with the numbers of the whole; none where it holds all, where
 * that is not asked for, where arithmetic takes longer than memory, or more kernels longer than
 * that saves. */
enum { PAYS, OFF, SLOW, MANY_KERNELS, BAND_CASES };

static void check_bands(int64_t stride, int fit, int which)
{
    static float weights[CHANNELS * TAPS], x[TALL * WIDE], want[TALL * WIDE], got[TALL * WIDE];
    for (int i = 0; i < CHANNELS * TAPS; i++)
        weights[i] = (float)(i % 7) - 3;
    for (int i = 0; i < TALL * WIDE; i++)
        x[i] = (float)(i * 37 % 101) / 8;
    const int rows = (int)(TALL / stride), bands = which != PAYS || fit == 1 ? 0 : fit;
    const double whole = 2. * CHANNELS * sizeof x;
    const Target t = {.machine.lanes = 16,
                      .machine.registers = 32,
                      .machine.rate = {2, 32, which == SLOW ? 0.01 : 48},
                      .machine.launch = which == MANY_KERNELS ? 1e6 : 0,
                      .machine.level = {{4 << 10, 16}, {0, 1}},
                      .machine.cache = whole * 1.15 / fit * 4 / 3};
    Context *c = ingot_context_new(NULL, NULL);
    image_layers(c, weights, stride);
    interpret_image(c, x, want, rows);
    (void)graph_rewrite(c, &t, which == OFF ? "bands" : NULL);
    assert_int_equal(parts_of_concats(c), bands);
    interpret_image(c, x, got, rows);
    assert_memory_equal(got, want, (size_t)rows * WIDE * sizeof *got);
    ingot_context_free(c);
}

static void test_bands(void **state)
{
    (void)state;
    for (int64_t stride = 1; stride <= 2; stride++)
        for (int fit = 1; fit <= 4; fit *= 2)
            for (int i = 0; i < BAND_CASES; i++)
                check_bands(stride, fit, i);
}

/* Maps of x alone, each of which then goes on by itself. */
static void map_layers(Context *c, const float *weights)
{
    const int64_t pad[] = {1, 1};
    ingot_dim *dims[] = {ingot_dim_const(c, 1), ingot_dim_const(c, 1), ingot_dim_const(c, TALL),
                         ingot_dim_const(c, WIDE)};
    Node *x = ingot_input(c, "x", INGOT_F32, 4, dims);
    Node *w = ingot_data(c, NULL, INGOT_F32, 4, (int64_t[]){CHANNELS, 1, 3, 3}, weights);
    x = ingot_relu(c, ingot_conv(c, x, w, NULL, NULL, NULL, pad, pad, 1));
    x = ingot_relu(c, ingot_conv(c, x, w, NULL, NULL, NULL, pad, pad, CHANNELS));
    ingot_output(c, "y", ingot_reduce(c, INGOT_REDUCE_MAX, x, 2, true));
}

/* So many patches where the room is for this part of the image's large value, with the numbers of
 * the whole. */
static void check_patches(bool maps, double part, int least, int most)
{
    static float weights[CHANNELS * TAPS], x[TALL * WIDE], want[TALL * WIDE], got[TALL * WIDE];
    for (int i = 0; i < CHANNELS * TAPS; i++)
        weights[i] = (float)(i % 7) - 3;
    for (int i = 0; i < TALL * WIDE; i++)
        x[i] = (float)(i * 37 % 101) / 8;
    const Target t = {.machine.rate = {1, 1, 1}, .machine.byte = 4};
    const double large = CHANNELS * (TALL + 2) * (WIDE + 2) * sizeof *x;
    Context *c = ingot_context_new(NULL, NULL);
    if (maps)
        map_layers(c, weights);
    else
        image_layers(c, weights, 1);
    interpret_image(c, x, want, TALL);
    (void)graph_rewrite(c, &t, NULL);
    assert_int_equal(patches(c, &t, part * large + 2 * sizeof x), most > 0);
    const int parts = parts_of_concats(c);
    assert_in_range(parts, least, most);
    interpret_image(c, x, got, TALL);
    assert_memory_equal(got, want, sizeof want);
    ingot_context_free(c);
}

static void test_patches(void **state)
{
    (void)state;
    check_patches(false, 1, 0, 0);   /* all fits */
    check_patches(false, 0.6, 2, 2); /* rows, of which two halves share two */
    check_patches(false, 0.3, 3, 8);
    check_patches(false, 0.001, 0, 0); /* not even a row */
    check_patches(true, 1.6, 0, 0);
    check_patches(true, 0.9, CHANNELS / 2, CHANNELS / 2); /* maps: none is computed twice */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_deep), cmocka_unit_test(test_batches),
                                       cmocka_unit_test(test_bands),
                                       cmocka_unit_test(test_patches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
