/* random_models.c - small models of random sizes: each a form that opts meet, products and windows,
 * rows and reduces, movement and masks. */
#include <math.h>
#include <string.h>

#include "compiler/ingot_ops.h"
#include "random_models.h"

static uint64_t state;

void random_seed(uint64_t seed)
{
    state = seed;
}

uint32_t random_below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

static int64_t size(int64_t most)
{
    static const int64_t sizes[] = {2,  3,  5,  7,  8,  9,  12, 13, 16,
                                    17, 20, 24, 27, 31, 32, 33, 40, 48};
    int64_t n;
    do
        n = sizes[random_below(sizeof sizes / sizeof *sizes)];
    while (n > most);
    return n;
}

static ingot_tensor *in(Context *c, const char *name, ingot_dtype d, int rank, const int64_t *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = idx(c, n[i]);
    return ingot_input(c, name, d, rank, dims);
}
#define IN(name, d, ...) \
    in(c, name, d, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})

/* A weight of type f32 or i8; the programs fill it with data of their own. */
static ingot_tensor *weight(Context *c, ingot_dtype d, int rank, const int64_t *n)
{
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)n[i];
    unsigned char *bytes = ingot_alloc(c, count * elem_bytes(d));
    for (size_t i = 0; i < count; i++) { /* not all alike, or it would be spelled as a number */
        float f = (float)(1 + i % 2);
        memcpy(bytes + 4 * i * (d == INGOT_F32), &f, d == INGOT_F32 ? 4 : 0);
        bytes[i] = d == INGOT_F32 ? bytes[i] : (unsigned char)(1 + i % 2);
    }
    return ingot_data(c, "w", d, rank, n, bytes);
}
#define WEIGHT(d, ...) \
    weight(c, d, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})

static void out(Context *c, ingot_tensor *t)
{
    ingot_output(c, "y", t);
}

static ingot_dtype some_float(void)
{
    static const ingot_dtype d[] = {INGOT_F32, INGOT_F32, INGOT_F16, INGOT_BF16, INGOT_F64};
    return d[random_below(5)];
}

static void products(Context *c)
{
    ingot_dtype d = some_float();
    int64_t m = size(48), k = size(48), n = size(48);
    ingot_tensor *y = ingot_matmul(c, IN("a", d, m, k), IN("b", d, k, n));
    out(c, random_below(2) ? ingot_relu(c, y) : ingot_add(c, y, IN("d", d, n)));
}

static void batched(Context *c)
{
    int64_t b = size(5), m = size(20), k = size(20), n = size(33);
    ingot_tensor *x = IN("a", INGOT_F32, b, m, k), *y = IN("b", INGOT_F32, b, n, k);
    out(c, ingot_matmul(c, x, ingot_transpose(c, y, 1, 2)));
}

static void linear(Context *c)
{
    int64_t m = size(9), k = size(48), n = size(48);
    out(c, ingot_relu(c, ingot_linear(c, IN("x", INGOT_F32, m, k), WEIGHT(INGOT_F32, n, k),
                                      WEIGHT(INGOT_F32, n))));
}

static void vector_product(Context *c)
{
    int64_t k = size(48), n = size(48);
    out(c, ingot_linear(c, IN("x", INGOT_F32, 1, k), IN("w", INGOT_F32, n, k), NULL));
}

static void narrow_product(Context *c)
{
    static const ingot_dtype types[] = {INGOT_I8, INGOT_U8, INGOT_I16};
    ingot_dtype d = types[random_below(3)];
    int64_t m = size(20), k = size(33), n = size(33);
    ingot_tensor *a = ingot_cast(c, IN("a", d, m, k), INGOT_I32);
    ingot_tensor *y = ingot_matmul(c, a, ingot_cast(c, WEIGHT(INGOT_I8, k, n), INGOT_I32));
    out(c, ingot_cast(c, ingot_clamp(c, y, -100, 100), INGOT_I8));
}

/* Of bytes, as DOT takes them: four terms at once. */
static void byte_product(Context *c)
{
    int64_t m = size(20), k = 4 * size(12), n = size(33);
    ingot_tensor *a =
        ingot_cast(c, IN("a", random_below(2) ? INGOT_I8 : INGOT_U8, m, k), INGOT_I32);
    bool transposed = random_below(3) != 0;
    ingot_tensor *b =
        transposed ? ingot_transpose(c, WEIGHT(INGOT_I8, n, k), 0, 1) : WEIGHT(INGOT_I8, k, n);
    ingot_tensor *y = ingot_matmul(c, a, ingot_cast(c, b, INGOT_I32));
    out(c, random_below(2) ? y : ingot_cast(c, ingot_clamp(c, y, -100, 100), INGOT_I8));
}

static void byte_convolution(Context *c)
{
    int64_t ci = 4 * (1 + random_below(4)), co = size(20), n = 5 + size(9);
    const int64_t one[] = {1, 1};
    ingot_tensor *x = ingot_cast(c, IN("x", INGOT_I8, 1, ci, n, n), INGOT_I32);
    ingot_tensor *w = ingot_cast(c, WEIGHT(INGOT_I8, co, ci, 3, 3), INGOT_I32);
    out(c, ingot_conv(c, x, w, NULL, one, one, one, one, 1));
}

/* Of bf16, as DOT takes them: two terms at once; of two sums, too. */
static void half_product(Context *c)
{
    int64_t m = size(20), n = size(33);
    ingot_tensor *sum = NULL;
    for (int i = random_below(3) ? 1 : 2; i > 0; i--) {
        int64_t k = 2 * size(20);
        ingot_tensor *x = ingot_cast(c, IN(i > 1 ? "a" : "x", INGOT_BF16, m, k), INGOT_F32);
        ingot_tensor *w = random_below(3) ? ingot_transpose(c, WEIGHT(INGOT_BF16, n, k), 0, 1)
                                          : WEIGHT(INGOT_BF16, k, n);
        ingot_tensor *y = ingot_matmul(c, x, ingot_cast(c, w, INGOT_F32));
        sum = sum ? ingot_add(c, sum, y) : y;
    }
    out(c, random_below(2) ? sum : ingot_cast(c, ingot_relu(c, sum), INGOT_BF16));
}

/* Whole groups, or whole parts of a unit's. */
static int64_t unit_terms(bool bytes)
{
    return (bytes ? 4 : 2) * (random_below(2) ? size(20) : 8 * (1 + random_below(4)));
}

/* A product of what units multiply, m x n: of x, or of an input of its own. */
static ingot_tensor *unit_sum(Context *c, const char *name, bool bytes, ingot_tensor *x, int64_t m,
                              int64_t n)
{
    const ingot_dtype d = bytes ? INGOT_I8 : INGOT_BF16, sum = bytes ? INGOT_I32 : INGOT_F32;
    const int64_t k = x ? ingot_dim_lo(ingot_shape(x, 1)) : unit_terms(bytes);
    x = x ? x : IN(name, d, m, k);
    ingot_tensor *w = random_below(3) ? ingot_transpose(c, WEIGHT(d, n, k), 0, 1) : WEIGHT(d, k, n);
    return ingot_matmul(c, ingot_cast(c, x, sum), ingot_cast(c, w, sum));
}

/* Two or three sums of products in one kernel: added, one the gate of another, or each stored. */
static void several_products(Context *c)
{
    static const char *const names[] = {"a", "b", "d"}, *const outs[] = {"q", "k", "v"};
    const bool bytes = random_below(3) == 0;
    const int n = 2 + (int)random_below(2), how = (int)random_below(3);
    const int64_t rows = size(40),
                  columns = random_below(3) ? 16 * (1 + random_below(3)) : size(33);
    ingot_tensor *sum[3], *x = NULL;
    if (how == 2 || random_below(2)) /* of one operand */
        x = IN("x", bytes ? INGOT_I8 : INGOT_BF16, rows, unit_terms(bytes));
    for (int i = 0; i < n; i++)
        sum[i] = unit_sum(c, names[i], bytes, x, rows, columns);
    for (int i = 0; i < n && how == 2; i++)
        ingot_output(c, outs[i], sum[i]);
    if (how == 2)
        return;
    for (int i = 1; i < n; i++)
        sum[0] = how ? ingot_mul(c, ingot_relu(c, sum[0]), sum[i]) : ingot_add(c, sum[0], sum[i]);
    out(c, ingot_relu(c, sum[0]));
}

/* The end of a residual block that halves the image: windows and points, each of its own image. */
static void several_convolutions(Context *c)
{
    const bool bytes = random_below(3) == 0;
    const ingot_dtype d = bytes ? INGOT_I8 : INGOT_BF16, sum = bytes ? INGOT_I32 : INGOT_F32;
    const int64_t ci = 4 * (1 + random_below(8)), cj = 4 * (1 + random_below(8)),
                  co = 16 * (1 + random_below(2)), n = 3 + random_below(7), one[] = {1, 1},
                  two[] = {2, 2};
    ingot_tensor *x = ingot_cast(c, IN("x", d, 1, ci, n, n), sum),
                 *s = ingot_cast(c, IN("s", d, 1, cj, 2 * n, 2 * n), sum);
    x = ingot_conv(c, x, ingot_cast(c, WEIGHT(d, co, ci, 3, 3), sum), NULL, one, one, one, one, 1);
    s = ingot_conv(c, s, ingot_cast(c, WEIGHT(d, co, cj, 1, 1), sum), NULL, two, one, NULL, NULL,
                   1);
    out(c, ingot_relu(c, ingot_add(c, x, s)));
}

static void half_convolution(Context *c)
{
    int64_t ci = 2 * (1 + random_below(8)), co = size(20), n = 5 + size(9);
    const int64_t one[] = {1, 1};
    ingot_tensor *x = ingot_cast(c, IN("x", INGOT_BF16, 1, ci, n, n), INGOT_F32);
    ingot_tensor *w = ingot_cast(c, WEIGHT(INGOT_BF16, co, ci, 3, 3), INGOT_F32);
    out(c, ingot_conv(c, x, w, NULL, one, one, one, one, 1));
}

static void three_products(Context *c)
{
    int64_t m = size(17), k = size(24), n = size(20);
    ingot_tensor *x = IN("x", INGOT_F32, m, k);
    for (int i = 0; i < 3; i++)
        ingot_output(c,
                     i == 0   ? "q"
                     : i == 1 ? "k"
                              : "v",
                     ingot_matmul(c, x, WEIGHT(INGOT_F32, k, n)));
}

static void convolution(Context *c)
{
    int64_t groups = (int64_t)1 << random_below(3), ci = groups * size(9), co = groups * size(16);
    int64_t h = 8 + size(13), w = 8 + size(13), kh = 1 + random_below(4), kw = 1 + random_below(4);
    const int64_t stride[] = {1 + random_below(2), 1 + random_below(3)},
                  dilation[] = {1 + random_below(random_below(4) ? 2 : 12), 1},
                  around = dilation[0] > 2 ? dilation[0] * (kh - 1) / 2 : 0;
    const int64_t lo[] = {around + random_below(2), random_below(3)},
                  hi[] = {around + random_below(2), random_below(2)};
    bool depthwise = random_below(3) == 0;
    if (depthwise)
        groups = co = ci;
    ingot_tensor *y =
        ingot_conv(c, IN("x", INGOT_F32, 1, ci, h, w), WEIGHT(INGOT_F32, co, ci / groups, kh, kw),
                   WEIGHT(INGOT_F32, co), stride, dilation, lo, hi, groups);
    out(c, ingot_relu(c, y));
}

/* Two windows over one image, which may share their loops: what is around it is zero for the first
 * one alone. */
static void windows(Context *c)
{
    const int64_t ci = 16 + size(16), n = 4 + random_below(8), k = 2 + random_below(2),
                  one[] = {1, 1}, lo[] = {0, 0, 1, 1};
    ingot_tensor *x = IN("x", INGOT_F32, 1, ci, n, n),
                 *more = ingot_pad_c(c, x, lo, lo, (double)random_below(3));
    if (random_below(2))
        more = ingot_add(c, more, WEIGHT(INGOT_F32, 1, ci, 1, 1));
    out(c, ingot_conv(c, x, WEIGHT(INGOT_F32, 8, ci, k, k), NULL, one, one, one, one, 1));
    ingot_output(
        c, "z", ingot_conv(c, more, WEIGHT(INGOT_F32, 8, ci, k, k), NULL, one, one, NULL, NULL, 1));
}

/* Two, so that the first has a halo to clear. */
static void convolutions(Context *c)
{
    int64_t ci = size(5), co = size(20), cz = size(17), n = 7 + size(9);
    const int64_t one[] = {1, 1};
    ingot_tensor *y = ingot_conv(c, IN("x", INGOT_F32, 1, ci, n, n),
                                 WEIGHT(INGOT_F32, co, ci, 3, 3), NULL, one, one, one, one, 1);
    y = ingot_conv(c, ingot_relu(c, y), WEIGHT(INGOT_F32, cz, co, 3, 3), NULL, one, one, one, one,
                   1);
    out(c, y);
}

static void transposed(Context *c)
{
    int64_t ci = size(9), co = size(12), n = 4 + size(9), s = 1 + random_below(2),
            k = s + random_below(3);
    const int64_t stride[] = {s, s}, one[] = {1, 1}, zero[] = {0, 0};
    out(c, ingot_conv_transpose(c, IN("x", INGOT_F32, 1, ci, n, n), WEIGHT(INGOT_F32, ci, co, k, k),
                                NULL, stride, one, zero, zero, zero, 1));
}

static void pooling(Context *c)
{
    int64_t ch = size(20), n = 6 + size(13), k = 2 + random_below(2);
    const int64_t kernel[] = {k, k}, stride[] = {1 + random_below(2), 2}, one[] = {1, 1},
                  pad[] = {random_below(2), 0};
    ingot_tensor *x = IN("x", INGOT_F32, 1, ch, n, n);
    out(c, random_below(2) ? ingot_max_pool(c, x, kernel, stride, one, pad, pad)
                           : ingot_avg_pool(c, x, kernel, stride, one, pad, pad, true));
}

static void softmax(Context *c)
{
    int64_t a = size(9), b = size(24), n = size(48);
    out(c,
        ingot_softmax(c, IN("x", INGOT_F32, a, b, n), random_below(2) ? -1 : (int)random_below(3)));
}

static void norms(Context *c)
{
    int64_t a = size(12), n = size(48);
    ingot_tensor *x = IN("x", INGOT_F32, 2, a, n), *scale = WEIGHT(INGOT_F32, n);
    switch (random_below(3)) {
    case 0: out(c, ingot_layer_norm(c, x, 2, scale, WEIGHT(INGOT_F32, n), 1e-5)); break;
    case 1: out(c, ingot_rms_norm(c, x, 2, scale, 1e-5)); break;
    default:
        out(c, ingot_instance_norm(c, x, WEIGHT(INGOT_F32, a), WEIGHT(INGOT_F32, a), 1e-5));
        break;
    }
}

static void attention(Context *c)
{
    int64_t h = 1 + random_below(3), s = size(20), t = size(24), e = size(20);
    out(c, ingot_attention(c, IN("q", INGOT_F32, 1, h, s, e), IN("k", INGOT_F32, 1, h, t, e),
                           IN("v", INGOT_F32, 1, h, t, e), NULL, 0, random_below(2) && s <= t));
}

/* Rows that stay in their kernel, and end at a diagonal. */
static void masked_attention(Context *c)
{
    int64_t h = 1 + random_below(2), t = 16 + size(33), s = 4 + size(12), e = 8 << random_below(2);
    out(c, ingot_attention(c, IN("q", INGOT_F32, 1, h, s, e), IN("k", INGOT_F32, 1, h, t, e),
                           IN("v", INGOT_F32, 1, h, t, e), NULL, 0, random_below(4) != 0));
}

/* What a mask leaves of a row, in one of the forms that models have. */
static void masked_rows(Context *c)
{
    int64_t m = size(20), n = size(48);
    ingot_dim *dims[2] = {idx(c, m), idx(c, n)};
    ingot_tensor *x = IN("x", INGOT_F32, m, n), *no = ingot_like(c, x, -INFINITY),
                 *row = ingot_iota(c, 2, dims, 0), *column = ingot_iota(c, 2, dims, 1);
    row = ingot_add(c, row, ingot_scalar_i(c, INGOT_I64, (int64_t)random_below(9) - 4));
    ingot_tensor *mask = random_below(2) ? ingot_le(c, column, row) : ingot_lt(c, row, column);
    bool not = mask->op == OP_LT;
    switch (random_below(3)) {
    case 0:
        out(c, ingot_sum(c, ingot_where(c, mask, x, ingot_like(c, x, 0)), 2, random_below(2)));
        break;
    case 1:
        out(c, ingot_reduce(c, INGOT_REDUCE_MAX,
                            not ? ingot_where(c, mask, no, x) : ingot_where(c, mask, x, no), 2,
                            false));
        break;
    default:
        out(c, ingot_softmax_or_zero(
                   c, ingot_add(c, x, ingot_where(c, mask, ingot_like(c, x, 0), no)), -1));
        break;
    }
}

static void reduces(Context *c)
{
    static const ingot_reduce_op op[] = {INGOT_REDUCE_ADD, INGOT_REDUCE_MAX, INGOT_REDUCE_MIN};
    static const ingot_dtype type[] = {INGOT_F32, INGOT_F32, INGOT_I32,
                                       INGOT_I8,  INGOT_I64, INGOT_F16};
    int64_t a = size(12), b = size(20), n = size(40);
    ingot_tensor *x = IN("x", type[random_below(6)], a, b, n);
    out(c, ingot_reduce(c, op[random_below(3)], x, 1 + random_below(7), random_below(2)));
}

static void arguments(Context *c)
{
    static const ingot_dtype type[] = {INGOT_F32, INGOT_F32, INGOT_F16,
                                       INGOT_I32, INGOT_U8,  INGOT_I64};
    int64_t a = size(20), n = size(48);
    ingot_tensor *x = IN("x", type[random_below(6)], a, n);
    int axis = (int)random_below(2);
    out(c, random_below(2) ? ingot_argmax(c, x, axis, true, random_below(2))
                           : ingot_argmin(c, x, axis, true, random_below(2)));
}

static void cumulated(Context *c)
{
    int64_t a = size(20), n = size(24);
    out(c, ingot_cumsum(c, IN("x", INGOT_F32, a, n), (int)random_below(2), random_below(2),
                        random_below(2)));
}

static void copies(Context *c)
{
    static const ingot_dtype type[] = {INGOT_F32, INGOT_I8, INGOT_I64, INGOT_F16};
    int64_t a = size(24), b = size(33), d = size(17);
    ingot_dtype t = type[random_below(4)];
    ingot_tensor *x = IN("x", t, a, b, d);
    static const int perm[][3] = {{2, 1, 0}, {1, 0, 2}, {0, 2, 1}, {2, 0, 1}, {1, 2, 0}};
    ingot_tensor *y = ingot_permute(c, x, perm[random_below(5)]);
    out(c, random_below(2) ? y : ingot_flip(c, y, 1 + random_below(7)));
}

static void joined(Context *c)
{
    int64_t a = size(9), b = size(20), d = size(20), e = size(9);
    ingot_tensor *part[] = {IN("x", INGOT_F32, a, b, e),
                            ingot_relu(c, IN("y", INGOT_F32, a, d, e))};
    out(c, ingot_add_c(c, ingot_concat(c, 2, part, 1), 1));
}

static void blocks(Context *c)
{
    int64_t ch = 4 * size(8), n = size(13);
    ingot_tensor *x = IN("x", INGOT_F32, 1, ch, 2 * n, 2 * n);
    out(c, random_below(2) ? ingot_depth_to_space(c, x, 2, random_below(2))
                           : ingot_space_to_depth(c, x, 2));
}

static void elementwise(Context *c)
{
    ingot_dtype d = some_float();
    int64_t a = size(24), n = size(48);
    ingot_tensor *x = IN("x", d, a, n), *y = IN("y", d, random_below(2) ? 1 : a, n),
                 *z = IN("z", d, a, 1);
    ingot_tensor *s = ingot_add(c, ingot_mul(c, x, y), z);
    out(c, random_below(2) ? s : ingot_where(c, ingot_lt(c, x, y), s, ingot_mul_c(c, y, 2)));
}

static void functions(Context *c)
{
    int64_t a = size(24), n = size(48);
    ingot_tensor *x = IN("x", INGOT_F32, a, n);
    switch (random_below(4)) {
    case 0: out(c, ingot_gelu(c, x, random_below(2))); break;
    case 1: out(c, ingot_sigmoid(c, x)); break;
    case 2: out(c, ingot_mish(c, x)); break;
    default: out(c, ingot_softsign(c, x)); break;
    }
}

static void gathers(Context *c)
{
    int64_t a = size(20), n = size(33), k = size(20);
    ingot_tensor *x = IN("x", INGOT_F32, a, n);
    if (random_below(2))
        out(c, ingot_take(c, x, IN("i", INGOT_I64, k), 0));
    else
        out(c, ingot_gather_elements(c, x, IN("i", INGOT_I64, k, n), 0));
}

static void scatters(Context *c)
{
    int64_t a = size(20), n = size(33), k = size(20);
    ingot_tensor *x = IN("x", INGOT_F32, a, n);
    out(c, ingot_scatter_elements(c, random_below(2) ? INGOT_ADD : INGOT_SET, x,
                                  IN("i", INGOT_I64, k, n), IN("v", INGOT_F32, k, n), 0));
}

/* Sizes of run time, up to a bound. */
static void bounded(Context *c)
{
    ingot_dim *n = ingot_dim_var(c, "n", 1, 20 + size(48)), *k = idx(c, size(33)),
              *m = idx(c, size(33));
    bool rows = random_below(2);
    ingot_tensor *x =
        ingot_input(c, "x", INGOT_F32, 2, (ingot_dim *[]){rows ? n : k, rows ? k : n});
    switch (random_below(4)) {
    case 0:
        out(c, ingot_relu(c, ingot_matmul(c, x,
                                          ingot_input(c, "w", INGOT_F32, 2,
                                                      (ingot_dim *[]){rows ? k : n, m}))));
        break;
    case 1: out(c, ingot_softmax(c, x, (int)random_below(2))); break;
    case 2: out(c, ingot_add_c(c, ingot_relu(c, ingot_transpose(c, x, 0, 1)), 1)); break;
    default: out(c, ingot_sum(c, ingot_mul(c, x, x), 1 + random_below(3), true)); break;
    }
}

static void resized(Context *c)
{
    int64_t ch = size(17), n = size(12);
    ingot_resize_axis a = {.size = 2 * n,
                           .mode = random_below(2) ? INGOT_RESIZE_NEAREST : INGOT_RESIZE_LINEAR};
    ingot_tensor *x = IN("x", INGOT_F32, 1, ch, n, n);
    out(c, ingot_resize(c, ingot_resize(c, x, 2, &a), 3, &a));
}

void (*const random_models[])(Context *) = {
    products, convolution, convolution, convolutions, linear, windows, vector_product,
    narrow_product, transposed, softmax, norms, attention, reduces, arguments, batched, cumulated,
    copies, joined, blocks, pooling, elementwise, functions, gathers, scatters, bounded, resized,
    three_products, masked_attention, masked_rows,
    /* what units multiply */
    byte_product, byte_convolution, half_product, half_product, half_convolution, several_products,
    several_products, several_convolutions};

const size_t random_nmodel = sizeof random_models / sizeof *random_models, random_nunit = 8;
