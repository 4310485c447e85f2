/* contraction_test.c - no sum of products of a network is left outside of what its machine
 * multiplies with: blocks of a ResNet, of MobileNet and of BERT, small, of bf16 and of bytes.
 *
 * A kernel may hold several sums: a block and its downsample that are added, queries, keys and
 * values. Each of them is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot_ops.h"
#include "compiler/kernel/kernel.h"
#include "compiler/kernel/tc.h"
#include "compiler/pipeline/pipeline.h"
#include "targets/targets.h"

/* ---- networks -------------------------------------------------------------------------------- */

static ingot_tensor *input(Context *c, const char *name, ingot_dtype d, int rank, const int64_t *n)
{
    ingot_dim *dims[8];
    for (int i = 0; i < rank; i++)
        dims[i] = ingot_dim_const(c, n[i]);
    return ingot_input(c, name, d, rank, dims);
}

static ingot_tensor *weight(Context *c, ingot_dtype d, int rank, const int64_t *n)
{
    static int8_t bytes[1 << 21];
    for (int i = 0; i < 64; i++)
        bytes[i] = (int8_t)(i % 5 - 2);
    return ingot_data(c, NULL, d, rank, n, bytes);
}

/* Of f32; of bytes in and out, where `bytes`. */
static ingot_tensor *conv(Context *c, ingot_tensor *x, int64_t out, int64_t size, int64_t stride,
                          int64_t groups)
{
    int64_t in, pad = size / 2;
    ingot_dim_is_const(ingot_shape(x, 1), &in);
    const bool bytes = ingot_dtype_of(x) == INGOT_U8;
    ingot_tensor *w =
        weight(c, bytes ? INGOT_I8 : INGOT_F32, 4, (int64_t[]){out, in / groups, size, size});
    if (bytes) {
        x = ingot_cast(c, x, INGOT_I32);
        w = ingot_cast(c, w, INGOT_I32);
    }
    return ingot_conv(c, x, w, NULL, (int64_t[]){stride, stride}, (int64_t[]){1, 1},
                      (int64_t[]){pad, pad}, (int64_t[]){pad, pad}, groups);
}

/* After a sum: above zero, and a byte again. */
static ingot_tensor *relu(Context *c, ingot_tensor *y)
{
    if (ingot_dtype_of(y) != INGOT_I32)
        return ingot_relu(c, y);
    y = ingot_mul_c(c, ingot_cast(c, y, INGOT_F32), 1. / 64);
    return ingot_cast(c, ingot_clamp(c, ingot_round(c, y), 0, 255), INGOT_U8);
}

/* As the model is given it, or its bytes. */
static ingot_tensor *image(Context *c, ingot_dtype d, int64_t channels)
{
    ingot_tensor *x = input(c, "x", INGOT_F32, 4, (int64_t[]){1, channels, 14, 14});
    return d == INGOT_F32 ? x : relu(c, ingot_cast(c, ingot_mul_c(c, x, 64), INGOT_I32));
}

static void resnet(Context *c, ingot_dtype d)
{
    ingot_tensor *x = image(c, d, 64);
    ingot_tensor *y = relu(c, conv(c, x, 64, 1, 1, 1));
    y = relu(c, conv(c, y, 64, 3, 2, 1));
    y = relu(c, ingot_add(c, conv(c, y, 128, 1, 1, 1), conv(c, x, 128, 1, 2, 1)));
    ingot_output(c, "y", relu(c, conv(c, y, 24, 3, 1, 1)));
}

/* Three channels, and what a product rounds that is added, too: by a node of another name. */
static void picture(Context *c, ingot_dtype d)
{
    ingot_tensor *x = relu(c, conv(c, image(c, d, 3), 32, 3, 2, 1));
    ingot_tensor *y = conv(c, x, 32, 3, 1, 1);
    ingot_set_origin(c, "/after", "Add");
    ingot_output(c, "y", ingot_add(c, y, x));
}

static void mobilenet(Context *c, ingot_dtype d)
{
    ingot_tensor *x = image(c, d, 24);
    ingot_tensor *y = relu(c, conv(c, x, 96, 1, 1, 1));
    y = relu(c, conv(c, y, 96, 3, 1, 96));
    y = relu(c, conv(c, y, 24, 1, 1, 1));
    y = relu(c, conv(c, y, 16, 1, 1, 1));
    ingot_output(c, "y", relu(c, conv(c, y, 64, 1, 1, 1)));
}

static ingot_tensor *linear(Context *c, ingot_tensor *x, int64_t out, int64_t in)
{
    return ingot_linear(c, x, weight(c, INGOT_F32, 2, (int64_t[]){out, in}),
                        weight(c, INGOT_F32, 1, (int64_t[]){out}));
}

static void bert(Context *c, ingot_dtype d)
{
    enum { ROWS = 32, HEADS = 4, EACH = 32, WIDE = HEADS * EACH };
    ingot_tensor *x = input(c, "x", d, 3, (int64_t[]){1, ROWS, WIDE}), *part[3];
    ingot_dim *dims[] = {ingot_dim_const(c, 1), ingot_dim_const(c, ROWS), ingot_dim_const(c, HEADS),
                         ingot_dim_const(c, EACH)};
    for (int i = 0; i < 3; i++)
        part[i] = ingot_permute(c, ingot_reshape(c, linear(c, x, WIDE, WIDE), 4, dims),
                                (int[]){0, 2, 1, 3});
    ingot_tensor *y = ingot_attention(c, part[0], part[1], part[2], NULL, 0, false);
    dims[2] = ingot_dim_const(c, WIDE);
    y = ingot_reshape(c, ingot_permute(c, y, (int[]){0, 2, 1, 3}), 3, dims);
    y = ingot_add(c, x, linear(c, y, WIDE, WIDE));
    y = linear(c, ingot_gelu(c, linear(c, y, 4 * WIDE, WIDE), false), WIDE, 4 * WIDE);
    ingot_output(c, "y", y);
}

/* What is multiplied by a gate, both of the same bytes: two sums, each over terms of its own. */
static void gated(Context *c, ingot_dtype d)
{
    enum { ROWS = 24, IN = 64, OUT = 96 };
    ingot_tensor *x = input(c, "x", d, 2, (int64_t[]){ROWS, IN}), *y[2];
    static int8_t bytes[2][IN * OUT];
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < IN * OUT; j++)
            bytes[i][j] = (int8_t)(j % (5 + i));
        ingot_tensor *w = ingot_data(c, NULL, INGOT_I8, 2, (int64_t[]){IN, OUT}, bytes[i]);
        y[i] = ingot_matmul(c, ingot_cast(c, x, INGOT_I32), ingot_cast(c, w, INGOT_I32));
        y[i] = ingot_mul_c(c, ingot_cast(c, y[i], INGOT_F32), 1. / 64);
    }
    ingot_output(c, "y", ingot_mul(c, ingot_gelu(c, y[0], false), y[1]));
}

/* A gate and what it opens, of pixels whose lines boxes cannot copy: 14 by 14 halves. */
static void gated_image(Context *c, ingot_dtype d)
{
    enum { CHANNELS = 256, PIXELS = 196 };
    ingot_tensor *x = input(c, "x", d, 2, (int64_t[]){CHANNELS, PIXELS}), *y[2];
    for (int i = 0; i < 2; i++)
        y[i] = ingot_matmul(c, weight(c, d, 2, (int64_t[]){CHANNELS, CHANNELS}), x);
    ingot_output(c, "y", ingot_mul(c, ingot_sigmoid(c, y[0]), y[1]));
}

/* The weights of one direction of two, of bytes whose zero point the run computes. */
static void direction(Context *c, ingot_dtype d)
{
    enum { ROWS = 24, IN = 64, OUT = 96 };
    static int8_t bytes[2 * OUT * IN];
    for (int i = 0; i < 2 * OUT * IN; i++)
        bytes[i] = (int8_t)(i % 7);
    ingot_tensor *w = ingot_data(c, NULL, INGOT_I8, 3, (int64_t[]){2, OUT, IN}, bytes);
    w = ingot_squeeze(c, ingot_slice(c, w, 0, ingot_dim_const(c, 1), ingot_dim_const(c, 1), 1), 0);
    w = ingot_cast(c, ingot_transpose(c, w, 0, 1), INGOT_I32);
    ingot_tensor *x = input(c, "x", d, 2, (int64_t[]){ROWS, IN}), *z = input(c, "z", d, 0, NULL);
    x = ingot_sub(c, ingot_cast(c, x, INGOT_I32), ingot_cast(c, z, INGOT_I32));
    ingot_output(c, "y", ingot_matmul(c, x, w));
}

/* A product, a norm of its rows and the product of these, one kernel; rows are no whole number of
 * vectors. */
static void normalised(Context *c, ingot_dtype d)
{
    enum { ROWS = 64, WIDE = 88 };
    ingot_tensor *x = input(c, "x", d, 2, (int64_t[]){ROWS, WIDE}), *y;
    ingot_tensor *one = weight(c, d, 1, (int64_t[]){WIDE});
    y = ingot_add(c, linear(c, x, WIDE, WIDE), input(c, "r", d, 2, (int64_t[]){ROWS, WIDE}));
    y = ingot_layer_norm(c, y, 1, one, one, 1e-6);
    ingot_output(c, "y", ingot_relu(c, linear(c, y, 4 * WIDE, WIDE)));
}

/* A window over each channel, a norm of the channels and a product with a matrix, one kernel: the
 * channels are no whole number of vectors, and the window's weights lie side by side over an area.
 */
static void windowed(Context *c, ingot_dtype d)
{
    enum { WIDE = 40 };
    ingot_tensor *x = input(c, "x", d, 4, (int64_t[]){1, 3, 40, 40}), *y;
    ingot_tensor *one = weight(c, d, 1, (int64_t[]){WIDE});
    y = conv(c, conv(c, x, WIDE, 1, 1, 1), WIDE, 7, 1, WIDE);
    y = ingot_permute(c, ingot_relu(c, y), (int[]){0, 2, 3, 1});
    y = ingot_permute(c, ingot_layer_norm(c, y, 3, one, one, 1e-6), (int[]){0, 3, 1, 2});
    y = ingot_gelu(c, conv(c, y, 4 * WIDE, 1, 1, 1), false);
    ingot_output(c, "y", conv(c, y, WIDE, 1, 1, 1));
}

/* ---- what is asked of a plan ----------------------------------------------------------------- */

static bool has_opt(const Kernel *k, OptKind kind)
{
    bool has = false;
    for (int i = 0; i < k->nopt; i++)
        has |= k->opts[i].kind == kind;
    return has;
}

/* Its sums of products, and how many of them go by a unit or by DOT. */
typedef struct {
    const char *target;
    int sums, scalar, unit;
} SumCounts;

static void count(SumCounts *n, const Kernel *k)
{
    const View v = kernel_view(k);
    Node *term[8];
    for (int i = 0; i < v.nreduce; i++) {
        if (reduce_monoid(v.reduce[i]) != INGOT_REDUCE_ADD || reduce_size(v.reduce[i]) > 1 ||
            !tc_terms(v.reduce[i]->src[0], term, 8))
            continue;
        const bool unit = has_opt(k, OPT_TC), lanes = has_opt(k, OPT_VECTOR);
        n->sums++;
        n->scalar += !unit && !lanes;
        n->unit += unit || has_opt(k, OPT_DOT);
    }
}

/* nodes: those of this name have the other precision, of f32 and bf16. */
static SumCounts counts_of(void (*network)(Context *, ingot_dtype), ingot_dtype d,
                           ingot_precision precision, const char *nodes, const char *target)
{
    Context *c = ingot_context_new(NULL, NULL);
    SumCounts n = {.target = target};
    ingot_set_precision(c, precision);
    if (nodes)
        ingot_set_precision_of(c, nodes,
                               precision == INGOT_PRECISION_F32 ? INGOT_PRECISION_BF16
                                                                : INGOT_PRECISION_F32);
    ingot_set_origin(c, "/block/first", "Conv");
    network(c, d);
    const ingot_options o = {.struct_size = sizeof o, .target = target};
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    Target t;
    ingot_status status;
    Arena *a = arena_new();
    assert_null(target_make(&t, a, target, &status));
    for (int i = 0; i < p->nkernel; i++) {
        count(&n, p->kernels[i]);
        const char *why = outside_reason(a, p->kernels[i], &t);
        if (why) /* for who reads what failed */
            printf("%s %s: %s\n", target, p->kernels[i]->name, why);
    }
    arena_free(a);
    plan_free(p);
    ingot_context_free(c);
    return n;
}

static void expect(const char *what, SumCounts n, int outside)
{
    if (n.scalar || n.sums - n.unit > outside)
        print_error("%s for %s: %d sums, %d in scalars, %d by a unit, and %d may be by none\n",
                    what, n.target, n.sums, n.scalar, n.unit, outside);
    assert_true(n.sums > 0 && !n.scalar && n.sums - n.unit <= outside);
}

/* A convolution of each channel by itself has no columns for a unit. */
static void halves(void **state)
{
    (void)state;
    static const char *const targets[] = {"c:sapphirerapids", "c:x86-64-v4+vnni+bf16"};
    for (int i = 0; i < 2; i++) {
        const ingot_precision p = INGOT_PRECISION_BF16;
        expect("resnet", counts_of(resnet, INGOT_F32, p, NULL, targets[i]), 0);
        expect("mobilenet", counts_of(mobilenet, INGOT_F32, p, NULL, targets[i]), i ? 1 : 2);
        expect("bert", counts_of(bert, INGOT_F32, p, NULL, targets[i]), i ? 2 : 0);
    }
    const SumCounts f32 = counts_of(bert, INGOT_F32, INGOT_PRECISION_F32, NULL, "c:x86-64-v4+vnni");
    expect("f32", f32, f32.sums);
    const SumCounts image =
        counts_of(gated_image, INGOT_F16, INGOT_PRECISION_F32, NULL, "cuda:sm_90a");
    expect("gated image", image, 0);
    const SumCounts rows =
        counts_of(normalised, INGOT_F32, INGOT_PRECISION_F32, NULL, "c:x86-64-v4");
    expect("normalised", rows, rows.sums);
    const SumCounts taps = counts_of(windowed, INGOT_F32, INGOT_PRECISION_F32, NULL, "c:x86-64-v4");
    expect("windowed", taps, taps.sums);
}

static void bytes(void **state)
{
    (void)state;
    static const char *const targets[] = {"c:sapphirerapids", "c:x86-64-v4+vnni",
                                          "c:x86-64-v4+vnni+bf16"};
    for (int i = 0; i < 3; i++) {
        expect("resnet", counts_of(resnet, INGOT_U8, INGOT_PRECISION_F32, NULL, targets[i]), 0);
        expect("direction", counts_of(direction, INGOT_U8, INGOT_PRECISION_F32, NULL, targets[i]),
               0);
        expect("gated", counts_of(gated, INGOT_U8, INGOT_PRECISION_F32, NULL, targets[i]), 0);
        expect("mobilenet", counts_of(mobilenet, INGOT_U8, INGOT_PRECISION_F32, NULL, targets[i]),
               1);
    }
}

/* --precision WHAT:GLOB. */
static void by_name(void **state)
{
    (void)state;
    const ingot_precision p = INGOT_PRECISION_BF16;
    const char *target = "c:x86-64-v4+vnni+bf16";
    assert_int_equal(counts_of(resnet, INGOT_F32, p, "/block/*", target).unit, 0);
    assert_int_equal(counts_of(picture, INGOT_F32, p, "/block/*", target).unit, 0);
    assert_int_equal(counts_of(picture, INGOT_F32, p, "/other/*", target).unit, 2);
    assert_int_equal(counts_of(picture, INGOT_F32, INGOT_PRECISION_F32, "/block/*", target).unit,
                     2);
    expect("resnet", counts_of(resnet, INGOT_F32, p, "/other/*", target), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(halves), cmocka_unit_test(bytes),
                                       cmocka_unit_test(by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
