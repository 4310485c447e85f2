/* bench_cases.c - the graphs that are timed: contractions, windows, rows and movement, in shapes
 * that nobody has tuned for. */
#include <math.h>

#include "bench.h"

#define DIMS(...)                                                                \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) \
    {                                                                            \
        __VA_ARGS__                                                              \
    }

static HostTensor *random_value(BenchGraph *g, HostTensor *v, ingot_dtype d, int rank,
                                const int64_t *dims, uint64_t seed)
{
    *v = (HostTensor){.dtype = d, .rank = rank};
    for (int i = 0; i < rank; i++)
        v->dims[i] = dims[i];
    value_random(g->a, v, seed);
    for (size_t i = 0; g->scale > 0 && d == INGOT_F32 && i < v->count; i++)
        ((float *)v->data)[i] *= (float)g->scale;
    g->bytes += (double)v->bytes;
    return v;
}

static ingot_tensor *input(BenchGraph *g, ingot_dtype d, int rank, const int64_t *dims)
{
    ingot_dim *dim[INGOT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dim[i] = ingot_dim_const(g->c, dims[i]);
    random_value(g, &g->in[g->nin], d, rank, dims, (uint64_t)g->nin + 1);
    const char *name = arena_printf(g->a, "x%d", g->nin++);
    return ingot_input(g->c, name, d, rank, dim);
}

static ingot_tensor *weight(BenchGraph *g, ingot_dtype d, int rank, const int64_t *dims)
{
    HostTensor v;
    random_value(g, &v, d, rank, dims, 77);
    return ingot_data(g->c, NULL, d, rank, dims, v.data);
}

static void output(BenchGraph *g, ingot_tensor *y)
{
    ingot_output(g->c, "y", y);
}

/* ---- contractions ---------------------------------------------------------------------------- */

enum { A_T = 1, B_T = 2, B_CONST = 4 };

static ingot_tensor *matrix(BenchGraph *g, ingot_dtype d, int64_t batch, int64_t m, int64_t n,
                            bool transposed, bool constant)
{
    int64_t dims[3] = {batch, transposed ? n : m, transposed ? m : n};
    int from = batch == 1;
    ingot_tensor *t =
        constant ? weight(g, d, 3 - from, dims + from) : input(g, d, 3 - from, dims + from);
    return transposed ? ingot_transpose(g->c, t, 1 - from, 2 - from) : t;
}

/* [b,m,k] x [b,k,n]; then flags, element type */
static double matmul(BenchGraph *g, const int64_t *p)
{
    ingot_dtype d = (ingot_dtype)p[5] ? (ingot_dtype)p[5] : INGOT_F32;
    ingot_tensor *a = matrix(g, d, p[0], p[1], p[2], p[4] & A_T, false);
    ingot_tensor *b =
        matrix(g, d == INGOT_U8 ? INGOT_I8 : d, p[0], p[2], p[3], p[4] & B_T, p[4] & B_CONST);
    if (d == INGOT_I8 || d == INGOT_U8) {
        a = ingot_cast(g->c, a, INGOT_I32);
        b = ingot_cast(g->c, b, INGOT_I32);
    }
    output(g, ingot_matmul(g->c, a, b));
    return 2.0 * (double)(p[0] * p[1] * p[2] * p[3]);
}

/* [1,n] x [n,n] weights of p[1] bits, which lie in bytes: (digit - 8) * scale, a scale for 32 of a
 * row */
static double matvec_of_digits(BenchGraph *g, const int64_t *p)
{
    int64_t n = p[0], bits = p[1], per = 8 / bits;
    ingot_tensor *b = weight(g, INGOT_U8, DIMS(n, n / per)), *digit[8];
    for (int i = 0; i < per; i++) {
        digit[i] = ingot_shr(g->c, b, ingot_scalar_i(g->c, INGOT_U8, i * bits));
        digit[i] = ingot_and(g->c, digit[i], ingot_scalar_i(g->c, INGOT_U8, (1 << bits) - 1));
    }
    ingot_tensor *w =
        ingot_reshape_c(g->c, ingot_stack(g->c, (int)per, digit, 2), 3, (int64_t[]){n, n / 32, 32});
    w = ingot_add_c(g->c, ingot_cast(g->c, w, INGOT_F32), -(double)(1 << (bits - 1)));
    w = ingot_mul(g->c, w, weight(g, INGOT_F32, DIMS(n, n / 32, 1)));
    w = ingot_transpose(g->c, ingot_reshape_c(g->c, w, 2, (int64_t[]){n, n}), 0, 1);
    output(g, ingot_matmul(g->c, input(g, INGOT_F32, DIMS(1, n)), w));
    return 2.0 * (double)(n * n);
}

/* [1,k] x [k,n] of f32, whose weights lie as the type p[2]; of integers with a scale for each
 * column */
static double matvec_of(BenchGraph *g, const int64_t *p)
{
    ingot_dtype d = (ingot_dtype)p[2];
    ingot_tensor *w = ingot_cast(g->c, weight(g, d, DIMS(p[0], p[1])), INGOT_F32);
    if (d == INGOT_I8)
        w = ingot_mul(g->c, w, weight(g, INGOT_F32, DIMS(1, p[1])));
    output(g, ingot_matmul(g->c, input(g, INGOT_F32, DIMS(1, p[0])), w));
    return 2.0 * (double)(p[0] * p[1]);
}

/* abcd,bdce->aeb of sizes a b c d e */
static double einsum(BenchGraph *g, const int64_t *p)
{
    ingot_tensor *x[2] = {input(g, INGOT_F32, DIMS(p[0], p[1], p[2], p[3])),
                          input(g, INGOT_F32, DIMS(p[1], p[3], p[2], p[4]))};
    output(g, ingot_einsum(g->c, "abcd,bdce->aeb", 2, x));
    return 2.0 * (double)(p[0] * p[1] * p[2] * p[3] * p[4]);
}

/* spatial rank, channels in, out, size, kernel, stride, dilation, groups; then: transposed, binary
 * exponent that all numbers are scaled by; padded so that stride 1 keeps the size */
static double conv(BenchGraph *g, const int64_t *p)
{
    int rank = (int)p[0];
    int64_t in = p[1], out = p[2], size = p[3], kernel = p[4], stride = p[5], dilation = p[6],
            groups = p[7];
    int64_t xs[5] = {1, in}, ws[5] = {out, in / groups}, strides[3], dilations[3], pads[3],
            more[3] = {0};
    double flops = 2.0 * (double)(out * (in / groups));
    g->scale = ldexp(1, (int)p[9]);
    if (p[8])
        ws[0] = in, ws[1] = out;
    for (int i = 0; i < rank; i++) {
        xs[2 + i] = size;
        ws[2 + i] = kernel;
        strides[i] = stride;
        dilations[i] = dilation;
        pads[i] = dilation * (kernel - 1) / 2;
        flops *= (double)((p[8] ? size : (size + stride - 1) / stride) * kernel);
    }
    ingot_tensor *x = input(g, INGOT_F32, 2 + rank, xs), *w = weight(g, INGOT_F32, 2 + rank, ws);
    ingot_tensor *y;
    if (p[8])
        y = ingot_conv_transpose(g->c, x, w, NULL, strides, dilations, pads, pads, more, groups);
    else
        y = ingot_conv(g->c, x, w, NULL, strides, dilations, pads, pads, groups);
    output(g, ingot_relu(g->c, y));
    return flops;
}

/* Transposed: [in, out, k, k] weights, `size` times the stride after it. */
static ingot_tensor *transposed(BenchGraph *g, ingot_tensor *x, const int64_t *p)
{
    int64_t strides[2] = {p[5], p[5]}, one[2] = {1, 1}, none[2] = {0},
            pad[2] = {(p[4] - 1) / 2, (p[4] - 1) / 2};
    return ingot_conv_transpose(g->c, x, weight(g, INGOT_F32, DIMS(p[1], p[2], p[4], p[4])), NULL,
                                strides, one, pad, pad, none, 1);
}

/* The same convolution between others of 1x1, as in a network: its operands lie as it likes. */
static double conv_inside(BenchGraph *g, const int64_t *p)
{
    int64_t in = p[1], out = p[2], size = p[3], one[2] = {1, 1}, none[2] = {0},
            pad[2] = {(p[4] - 1) / 2, (p[4] - 1) / 2};
    int64_t strides[2] = {p[5], p[5]}, after = (size + p[5] - 1) / p[5];
    ingot_tensor *x = input(g, INGOT_F32, DIMS(1, 4, size, size));
    x = ingot_conv(g->c, x, weight(g, INGOT_F32, DIMS(in, 4, 1, 1)), NULL, one, one, none, none, 1);
    x = ingot_relu(g->c, x);
    if (p[8])
        x = transposed(g, x, p);
    else
        x = ingot_conv(g->c, x, weight(g, INGOT_F32, DIMS(out, in / p[7], p[4], p[4])), NULL,
                       strides, one, pad, pad, p[7]);
    x = ingot_conv(g->c, ingot_relu(g->c, x), weight(g, INGOT_F32, DIMS(4, out, 1, 1)), NULL, one,
                   one, none, none, 1);
    output(g, x);
    int64_t most = p[8] ? size : after, last = p[8] ? size * p[5] : after;
    return 2.0 * (double)(in * 4 * size * size + out * (in / p[7]) * p[4] * p[4] * most * most +
                          4 * out * last * last);
}

/* A convolution of 3x3 over each half of the channels: the halves are slices of one value.
 * channels, size */
static double conv_of_slices(BenchGraph *g, const int64_t *p)
{
    int64_t half = p[0] / 2, one[2] = {1, 1}, none[2] = {0};
    ingot_tensor *x = input(g, INGOT_F32, DIMS(1, 4, p[1], p[1])), *y[2];
    x = ingot_relu(g->c, ingot_conv(g->c, x, weight(g, INGOT_F32, DIMS(p[0], 4, 1, 1)), NULL, one,
                                    one, none, none, 1));
    for (int i = 0; i < 2; i++) {
        ingot_dim *begin = ingot_dim_const(g->c, i * half), *count = ingot_dim_const(g->c, half);
        ingot_tensor *part = ingot_slice(g->c, x, 1, begin, count, 1);
        y[i] = ingot_relu(g->c, ingot_conv(g->c, part, weight(g, INGOT_F32, DIMS(half, half, 3, 3)),
                                           NULL, one, one, one, one, 1));
    }
    x = ingot_concat(g->c, 2, y, 1);
    output(g, ingot_conv(g->c, x, weight(g, INGOT_F32, DIMS(4, p[0], 1, 1)), NULL, one, one, none,
                         none, 1));
    return 2.0 * (double)((8 * p[0] + 2 * half * half * 9) * p[1] * p[1]);
}

/* Two layers x + norm(x) w: a sum that the next norm and the next sum read. rows, size */
static double residual(BenchGraph *g, const int64_t *p)
{
    ingot_tensor *x = input(g, INGOT_F32, DIMS(p[0], p[1])),
                 *one = weight(g, INGOT_F32, DIMS(p[1]));
    for (int i = 0; i < 4; i++) {
        ingot_tensor *norm = ingot_layer_norm(g->c, x, -1, one, one, 1e-5);
        x = ingot_add(g->c, x, ingot_matmul(g->c, norm, weight(g, INGOT_F32, DIMS(p[1], p[1]))));
    }
    output(g, x);
    return 8.0 * (double)(p[0] * p[1] * p[1]);
}

/* heads, tokens, size, causal: then what counts is what is not masked */
static double attention(BenchGraph *g, const int64_t *p)
{
    int64_t scores = p[3] ? p[1] * (p[1] + 1) / 2 : p[1] * p[1];
    ingot_tensor *t[3];
    for (int i = 0; i < 3; i++)
        t[i] = input(g, INGOT_F32, DIMS(1, p[0], p[1], p[2]));
    output(g, ingot_attention(g->c, t[0], t[1], t[2], NULL, 0, p[3] != 0));
    return 4.0 * (double)(p[0] * scores * p[2]);
}

/* The image's rows and columns go round by so many. */
static ingot_tensor *roll(BenchGraph *g, ingot_tensor *x, int64_t by, int64_t size)
{
    for (int axis = 0; axis < 2 && by; axis++) {
        int64_t cut[3] = {0, by < 0 ? size + by : by, size};
        ingot_tensor *part[2];
        for (int i = 0; i < 2; i++)
            part[1 - i] = ingot_slice(g->c, x, axis, ingot_dim_const(g->c, cut[i]),
                                      ingot_dim_const(g->c, cut[i + 1] - cut[i]), 1);
        x = ingot_concat(g->c, 2, part, axis);
    }
    return x;
}

static ingot_tensor *linear(BenchGraph *g, ingot_tensor *x, int64_t in, int64_t out)
{
    ingot_tensor *w = weight(g, INGOT_F32, DIMS(in, out));
    return ingot_add(g->c, ingot_matmul(g->c, x, ingot_mul_c(g->c, w, 0.1)),
                     weight(g, INGOT_F32, DIMS(out)));
}

static ingot_tensor *normed(BenchGraph *g, ingot_tensor *x, int64_t channels)
{
    return ingot_layer_norm(g->c, x, -1, weight(g, INGOT_F32, DIMS(channels)),
                            weight(g, INGOT_F32, DIMS(channels)), 1e-5);
}

static ingot_tensor *shaped(BenchGraph *g, ingot_tensor *x, int rank, const int64_t *dims)
{
    return ingot_reshape_c(g->c, x, rank, dims);
}

/* Attention of n heads in windows of side x side pixels of an image. */
static ingot_tensor *in_windows(BenchGraph *g, ingot_tensor *x, int64_t size, int64_t side,
                                int64_t channels, int64_t n)
{
    int64_t across = size / side, d = channels / n;
    ingot_tensor *t[3];
    x = shaped(g, x, DIMS(across, side, across, side, channels));
    x = ingot_permute(g->c, x, (const int[]){0, 2, 1, 3, 4});
    x = shaped(g, x, DIMS(across * across, side * side, channels));
    for (int i = 0; i < 3; i++) {
        t[i] =
            shaped(g, linear(g, x, channels, channels), DIMS(across * across, side * side, n, d));
        t[i] = ingot_permute(g->c, t[i], (const int[]){0, 2, 1, 3});
    }
    x = ingot_attention(g->c, t[0], t[1], t[2], NULL, 0, false);
    x = shaped(g, ingot_permute(g->c, x, (const int[]){0, 2, 1, 3}),
               DIMS(across * across, side * side, channels));
    x = shaped(g, linear(g, x, channels, channels), DIMS(across, across, side, side, channels));
    return shaped(g, ingot_permute(g->c, x, (const int[]){0, 2, 1, 3, 4}),
                  DIMS(size, size, channels));
}

/* Three blocks of attention in windows, of which the second one's are shifted, after a norm of
 * their input. size of the image and of a window, channels, heads */
static double windows(BenchGraph *g, const int64_t *p)
{
    int64_t size = p[0], side = p[1], channels = p[2];
    ingot_tensor *x = normed(g, input(g, INGOT_F32, DIMS(size, size, channels)), channels);
    for (int block = 0; block < 3; block++) {
        int64_t shift = block % 2 * (side / 2);
        ingot_tensor *h = roll(g, normed(g, x, channels), shift, size);
        x = ingot_add(g->c, x, roll(g, in_windows(g, h, size, side, channels, p[3]), -shift, size));
        h = ingot_gelu(g->c, linear(g, normed(g, x, channels), channels, 4 * channels), false);
        x = ingot_add(g->c, x, linear(g, h, 4 * channels, channels));
    }
    output(g, x);
    return 3.0 * (double)(size * size * channels) * (double)(24 * channels + 4 * side * side);
}

/* ---- rows, windows, movement ----------------------------------------------------------------- */

static ingot_tensor *cube(BenchGraph *g, const int64_t *p)
{
    int rank = 0;
    while (rank < 4 && p[rank])
        rank++;
    return input(g, INGOT_F32, rank, p);
}

static double softmax(BenchGraph *g, const int64_t *p)
{
    output(g, ingot_softmax(g->c, cube(g, p), -1));
    return 0;
}

static double layer_norm(BenchGraph *g, const int64_t *p)
{
    ingot_tensor *x = cube(g, p), *scale = weight(g, INGOT_F32, DIMS(p[1])),
                 *bias = weight(g, INGOT_F32, DIMS(p[1]));
    output(g, ingot_layer_norm(g->c, x, -1, scale, bias, 1e-5));
    return 0;
}

static double group_norm(BenchGraph *g, const int64_t *p)
{
    ingot_tensor *x = cube(g, p), *scale = weight(g, INGOT_F32, DIMS(p[1])),
                 *bias = weight(g, INGOT_F32, DIMS(p[1]));
    output(g, ingot_group_norm(g->c, x, 8, scale, bias, 1e-5));
    return 0;
}

/* p[4]: axes */
static double sum(BenchGraph *g, const int64_t *p)
{
    output(g, ingot_sum(g->c, cube(g, p), (unsigned)p[4], false));
    return 0;
}

static double argmax(BenchGraph *g, const int64_t *p)
{
    output(g, ingot_argmax(g->c, cube(g, p), 1, false, false));
    return 0;
}

static double cumsum(BenchGraph *g, const int64_t *p)
{
    output(g, ingot_cumsum(g->c, cube(g, p), (int)p[4], false, false));
    return 0;
}

static double gelu(BenchGraph *g, const int64_t *p)
{
    output(g, ingot_gelu(g->c, cube(g, p), false));
    return 0;
}

static double max_pool(BenchGraph *g, const int64_t *p)
{
    int64_t k[2] = {3, 3}, s[2] = {2, 2}, d[2] = {1, 1}, pad[2] = {1, 1};
    output(g, ingot_max_pool(g->c, cube(g, p), k, s, d, pad, pad));
    return 0;
}

/* rows, of n; then: n is known at run time only */
static double max_of_rows(BenchGraph *g, const int64_t *p)
{
    ingot_dim *dim[2] = {ingot_dim_const(g->c, p[0]), p[2] ? ingot_dim_var(g->c, "n", 1, 2 * p[1])
                                                           : ingot_dim_const(g->c, p[1])};
    random_value(g, &g->in[g->nin++], INGOT_F32, 2, p, 1);
    output(g, ingot_reduce(g->c, INGOT_REDUCE_MAX, ingot_input(g->c, "x", INGOT_F32, 2, dim), 2,
                           false));
    return 0;
}

/* p[4..6]: the permutation */
static double permute(BenchGraph *g, const int64_t *p)
{
    int perm[3] = {(int)p[4], (int)p[5], (int)p[6]};
    output(g, ingot_contiguous(g->c, ingot_permute(g->c, cube(g, p), perm)));
    return 0;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* clang-format off */
const BenchCase cases[] = {
    {"matmul 997x1013x991",             matmul,      {1, 997, 1013, 991},              OF_FLOPS, 88},
    {"einsum abcd,bdce->aeb",           einsum,      {96, 24, 32, 64, 104},            OF_FLOPS, 25},
    {"einsum of primes",                einsum,      {97, 23, 31, 61, 103},            OF_FLOPS, 25},
    {"conv3d 3 groups 4 dilation 2",    conv,        {3, 48, 64, 24, 3, 1, 2, 4},      OF_FLOPS, 20},
    {"conv3d 3 of odd sizes",           conv,        {3, 36, 44, 21, 3, 1, 2, 4},      OF_FLOPS, 20},
    {"conv 3x3 64 56x56",               conv,        {2, 64, 64, 56, 3, 1, 1, 1},      OF_FLOPS, 55},
    {"conv 3x3 64 56x56, subnormal",    conv,        {2, 64, 64, 56, 3, 1, 1, 1, 0, -130}, AS_BEFORE, 83},
    {"softmax 4096x1024",               softmax,     {4096, 1024},                     OF_BYTES, 50},
    {"layer norm 4096x1024",            layer_norm,  {4096, 1024},                     OF_BYTES, 50},
    {"conv transposed 4x4/2 64->32 64x64", conv,     {2, 64, 32, 64, 4, 2, 1, 1, 1},   OF_FLOPS, 50},
    {"conv transposed 2x2/2 64->32 64x64", conv,     {2, 64, 32, 64, 2, 2, 1, 1, 1},   OF_FLOPS, 50},
    {"conv 3x3 64 56x56 inside",        conv_inside, {2, 64, 64, 56, 3, 1, 1, 1},      OF_FLOPS, 0},
    {"conv 3x3 128 28x28 inside",       conv_inside, {2, 128, 128, 28, 3, 1, 1, 1},    OF_FLOPS, 0},
    {"conv 3x3 256 14x14 inside",       conv_inside, {2, 256, 256, 14, 3, 1, 1, 1},    OF_FLOPS, 0},
    {"conv 3x3 512 7x7 inside",         conv_inside, {2, 512, 512, 7, 3, 1, 1, 1},     OF_FLOPS, 0},
    {"conv 3x3/2 128 56x56 inside",     conv_inside, {2, 128, 128, 56, 3, 2, 1, 1},    OF_FLOPS, 0},
    {"conv 3x3 37->53 29x29",           conv,        {2, 37, 53, 29, 3, 1, 1, 1},      OF_FLOPS, 0},
    {"conv 1x1 512->2048 7x7",          conv,        {2, 512, 2048, 7, 1, 1, 1, 1},    OF_FLOPS, 0},
    {"conv 1x1 2048->512 7x7 inside",   conv_inside, {2, 2048, 512, 7, 1, 1, 1, 1},    OF_FLOPS, 0},
    {"conv 1x1 256->64 56x56 inside",   conv_inside, {2, 256, 64, 56, 1, 1, 1, 1},     OF_FLOPS, 0},
    {"conv 7x7/2 3->64 224x224",        conv,        {2, 3, 64, 224, 7, 2, 1, 1},      OF_FLOPS, 0},
    {"conv 7x7/2 1->32 224x224",        conv,        {2, 1, 32, 224, 7, 2, 1, 1},      OF_FLOPS, 0},
    {"conv 3x3 groups 8 256 28x28",     conv_inside, {2, 256, 256, 28, 3, 1, 1, 8},    OF_FLOPS, 0},
    {"depthwise 3x3 144 56x56",         conv_inside, {2, 144, 144, 56, 3, 1, 1, 144},  OF_FLOPS, 0},
    {"depthwise 5x5/2 240 28x28",       conv_inside, {2, 240, 240, 28, 5, 2, 1, 240},  OF_FLOPS, 0},
    {"conv1d 3 64 16384",               conv,        {1, 64, 64, 16384, 3, 1, 1, 1},   OF_FLOPS, 0},
    {"conv transposed 4x4/2 64 28x28",  conv,        {2, 64, 64, 28, 4, 2, 1, 1, 1},   OF_FLOPS, 0},
    {"conv transposed 4x4/2 64->32 inside", conv_inside, {2, 64, 32, 64, 4, 2, 1, 1, 1}, OF_FLOPS, 0},
    {"conv transposed 2x2/2 64->32 inside", conv_inside, {2, 64, 32, 64, 2, 2, 1, 1, 1}, OF_FLOPS, 0},
    {"conv transposed 3x3/2 64->32 64x64", conv,     {2, 64, 32, 64, 3, 2, 1, 1, 1},   OF_FLOPS, 0},
    {"matvec 4096x4096 of 4 bits",      matvec_of_digits, {4096, 4},                   OF_BYTES, 30},
    {"matvec 4096x4096 of 2 bits",      matvec_of_digits, {4096, 2},                   OF_BYTES, 0},
    {"matvec 4096x4096 constant",       matmul,      {1, 1, 4096, 4096, B_CONST},      OF_BYTES, 0},
    {"matvec 4096x4096",                matmul,      {1, 1, 4096, 4096},               OF_BYTES, 0},
    {"matvec 4096x4096 transposed",     matmul,      {1, 1, 4096, 4096, B_T},          OF_BYTES, 0},
    {"matvec 4096x7168 of f32",         matvec_of,   {4096, 7168, INGOT_F32},           OF_BYTES, 90},
    {"matvec 4096x14336 of f16",        matvec_of,   {4096, 14336, INGOT_F16},          OF_BYTES, 90},
    {"matvec 4096x28672 of i8",         matvec_of,   {4096, 28672, INGOT_I8},           OF_BYTES, 90},
    {"matmul 1024 constant",            matmul,      {1, 1024, 1024, 1024, B_CONST},   OF_FLOPS, 92},
    {"matmul 1024",                     matmul,      {1, 1024, 1024, 1024},            OF_FLOPS, 92},
    {"matmul 1024 a b^T",               matmul,      {1, 1024, 1024, 1024, B_T},       OF_FLOPS, 0},
    {"matmul 1024 a^T b",               matmul,      {1, 1024, 1024, 1024, A_T},       OF_FLOPS, 0},
    {"matmul 1024 a^T b^T",             matmul,      {1, 1024, 1024, 1024, A_T | B_T}, OF_FLOPS, 0},
    {"matmul 64x768x3072 constant",     matmul,      {1, 64, 768, 3072, B_CONST},      OF_FLOPS, 85},
    {"matmul 128x768x3072 constant",    matmul,      {1, 128, 768, 3072, B_CONST},     OF_FLOPS, 85},
    {"matmul 197x768x3072 constant",    matmul,      {1, 197, 768, 3072, B_CONST},     OF_FLOPS, 85},
    {"matmul 64x3072x768 constant",     matmul,      {1, 64, 3072, 768, B_CONST},      OF_FLOPS, 85},
    {"matmul 128x3072x768 constant",    matmul,      {1, 128, 3072, 768, B_CONST},     OF_FLOPS, 85},
    {"matmul 197x3072x768 constant",    matmul,      {1, 197, 3072, 768, B_CONST},     OF_FLOPS, 85},
    {"matmul 180x3072x768 constant",    matmul,      {1, 180, 3072, 768, B_CONST},     OF_FLOPS, 85},
    {"matmul 64x768x50257 b^T constant", matmul,     {1, 64, 768, 50257, B_T | B_CONST}, OF_FLOPS, 75},
    {"matmul 997x1013x991 a b^T",       matmul,      {1, 997, 1013, 991, B_T},         OF_FLOPS, 0},
    {"matmul 997x1013x991 a^T b",       matmul,      {1, 997, 1013, 991, A_T},         OF_FLOPS, 0},
    {"matmul 997x1013x991 a^T b^T",     matmul,      {1, 997, 1013, 991, A_T | B_T},   OF_FLOPS, 0},
    {"matmul 12x128x64x128",            matmul,      {12, 128, 64, 128},               OF_FLOPS, 0},
    {"matmul 12x128x64x128 b^T",        matmul,      {12, 128, 64, 128, B_T},          OF_FLOPS, 0},
    {"matmul 12x128x128x64 a^T",        matmul,      {12, 128, 128, 64, A_T},          OF_FLOPS, 0},
    {"matmul 512 f64",                  matmul,      {1, 512, 512, 512, 0, INGOT_F64}, OF_DOUBLES, 40},
    {"matmul 512 f16",                  matmul,      {1, 512, 512, 512, 0, INGOT_F16}, OF_FLOPS, 0},
    {"matmul 512 u8 i8 to i32",         matmul,      {1, 512, 512, 512, B_CONST, INGOT_U8}, OF_DOTS, 85},
    {"matmul 512 i8 to i32",            matmul,      {1, 512, 512, 512, B_CONST, INGOT_I8}, OF_DOTS, 60},
    {"attention 12x128x64",             attention,   {12, 128, 64},                    OF_FLOPS, 0},
    {"attention 12x197x64",             attention,   {12, 197, 64},                    OF_FLOPS, 0},
    {"attention 8x1024x64",             attention,   {8, 1024, 64},                    OF_FLOPS, 0},
    {"attention 8x1024x64 causal",      attention,   {8, 1024, 64, 1},                 OF_FLOPS, 0},
    {"attention 8x1500x64",             attention,   {8, 1500, 64},                    OF_FLOPS, 0},
    {"attention 8x512x64 causal",       attention,   {8, 512, 64, 1},                  OF_FLOPS, 0},
    {"residual 128x768",                residual,    {128, 768},                       OF_FLOPS, 0},
    {"attention in windows 56x56x96",   windows,     {56, 7, 96, 3},                   OF_FLOPS, 30},
    {"conv1d 256/128 1->258 16384",     conv,        {1, 1, 258, 16384, 256, 128, 1, 1}, OF_FLOPS, 0},
    {"conv of slices 128 28x28",        conv_of_slices, {128, 28},                     OF_FLOPS, 0},
    {"group norm 64x112x112",           group_norm,  {1, 64, 112, 112},                OF_BYTES, 0},
    {"sum 512^3 first axis",            sum,         {512, 512, 512, 0, 1},            OF_BYTES, 0},
    {"sum 512^3 middle axis",           sum,         {512, 512, 512, 0, 2},            OF_BYTES, 0},
    {"sum 512^3 last axis",             sum,         {512, 512, 512, 0, 4},            OF_BYTES, 0},
    {"global average 2048 7x7",         sum,         {1, 2048, 7, 7, 12},              OF_BYTES, 0},
    {"max 64x4001",                     max_of_rows, {64, 4001},                       OF_BYTES, 0},
    {"max 64x4001 of a run-time size",  max_of_rows, {64, 4001, 1},                    AS_BEFORE, 77},
    {"argmax 4096x1000",                argmax,      {4096, 1000},                     OF_BYTES, 0},
    {"cumsum 1024x1024 last axis",      cumsum,      {1024, 1024, 0, 0, 1},            OF_BYTES, 0},
    {"cumsum 1024x1024 first axis",     cumsum,      {1024, 1024, 0, 0, 0},            OF_BYTES, 0},
    {"max pool 3x3/2 64x112x112",       max_pool,    {1, 64, 112, 112},                OF_BYTES, 0},
    {"transpose 1024x1024",             permute,     {1024, 1024, 1, 0, 1, 0, 2},      OF_BYTES, 0},
    {"transpose 64x128x128 to 1 0 2",   permute,     {64, 128, 128, 0, 1, 0, 2},       OF_BYTES, 0},
    {"transpose 64x128x128 to 2 1 0",   permute,     {64, 128, 128, 0, 2, 1, 0},       OF_BYTES, 0},
    {"gelu 4M",                         gelu,        {1024, 4096},                     OF_BYTES, 0},
    {0},
};
/* clang-format on */
