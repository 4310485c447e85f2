/* gradient_test.c - ingot_gradient(): the rule of each op beside central differences, over shapes
 * with broadcasting, axes of size 1, flips and empty axes. */
#include "gradient_cases.h"

#define X x[0]
#define Y x[1]
#define Z x[2]
#define FN(name, expression)                                                \
    static ingot_tensor *f_##name(ingot_context *c, ingot_tensor *const *x) \
    {                                                                       \
        (void)c;                                                            \
        return expression;                                                  \
    }                                                                       \
    struct no_##name
#define D(...)      \
    {               \
        __VA_ARGS__ \
    }

static ingot_dim *k(ingot_context *c, int64_t v)
{
    return ingot_dim_const(c, v);
}

/* ---- elementwise ----------------------------------------------------------------------------- */

#define UNARY(name) FN(name, ingot_##name(c, X))
UNARY(exp);
UNARY(log);
UNARY(sin);
UNARY(cos);
UNARY(tan);
UNARY(asin);
UNARY(acos);
UNARY(atan);
UNARY(sinh);
UNARY(cosh);
UNARY(tanh);
UNARY(asinh);
UNARY(acosh);
UNARY(atanh);
UNARY(erf);
UNARY(sqrt);
UNARY(neg);
UNARY(abs);
UNARY(reciprocal);
#define BINARY(name) FN(name, ingot_##name(c, X, Y))
BINARY(add);
BINARY(sub);
BINARY(mul);
BINARY(div);
BINARY(pow);
BINARY(max);
BINARY(min);
BINARY(mod);
BINARY(fmod);
FN(square, ingot_mul(c, X, X));
FN(quotient_of_itself, ingot_div(c, ingot_add_c(c, X, 1), X));
FN(power_2, ingot_pow(c, X, ingot_like(c, X, 2)));
FN(power_half, ingot_pow(c, X, ingot_like(c, X, 0.5)));
FN(power_0, ingot_add(c, ingot_pow(c, X, ingot_like(c, X, 0)), X));
FN(where, ingot_where(c, ingot_lt(c, X, Y), ingot_sin(c, X), ingot_mul(c, Y, Y)));
FN(sigmoid, ingot_sigmoid(c, X));
FN(gelu, ingot_gelu(c, X, false));
FN(gelu_tanh, ingot_gelu(c, X, true));
FN(mish, ingot_mish(c, X));
FN(selu, ingot_selu(c, X, 1.67, 1.05));
FN(hard_swish, ingot_hard_swish(c, X));
FN(clamp, ingot_clamp(c, X, -0.3, 0.4));
FN(prelu, ingot_prelu(c, X, Y));
FN(through_f32,
   ingot_mul(c, ingot_cast(c, ingot_cast(c, ingot_floor(c, X), INGOT_F32), INGOT_F64), X));

static void elementwise(void **state)
{
    (void)state;
#define ONE(name, from, to)                               \
    {                                                     \
#name, f_##name, from, to, 0, 1, D(2), D(D(3, 5)) \
    }
#define TWO(name, from, to)                                              \
    {                                                                    \
#name, f_##name, from, to, 0, 2, D(3, 2), D(D(2, 3, 1), D(1, 4)) \
    }
    static const GradientCase all[] = {
        ONE(exp, -1, 1),         ONE(log, 0.3, 3),        ONE(sin, -2, 2),
        ONE(cos, -2, 2),         ONE(tan, -1, 1),         ONE(asin, -0.8, 0.8),
        ONE(acos, -0.8, 0.8),    ONE(atan, -2, 2),        ONE(sinh, -1, 1),
        ONE(cosh, -1, 1),        ONE(tanh, -2, 2),        ONE(asinh, -2, 2),
        ONE(acosh, 1.3, 3),      ONE(atanh, -0.8, 0.8),   ONE(erf, -2, 2),
        ONE(sqrt, 0.3, 2),       ONE(neg, -1, 1),         ONE(abs, -1, 1),
        ONE(reciprocal, 0.5, 2), ONE(square, -1, 1),      ONE(quotient_of_itself, 0.5, 2),
        ONE(power_2, -2, 2),     ONE(power_half, 0.4, 2), ONE(power_0, -1, 1),
        ONE(sigmoid, -2, 2),     ONE(gelu, -2, 2),        ONE(gelu_tanh, -2, 2),
        ONE(mish, -2, 2),        ONE(selu, -2, 2),        ONE(hard_swish, -4, 4),
        ONE(clamp, -1, 1),       ONE(through_f32, -3, 3), TWO(add, -1, 1),
        TWO(sub, -1, 1),         TWO(mul, -1, 1),         TWO(div, 0.5, 2),
        TWO(pow, 0.5, 2),        TWO(max, -1, 1),         TWO(min, -1, 1),
        TWO(mod, 0.4, 3),        TWO(fmod, 0.4, 3),       TWO(where, -1, 1),
        TWO(prelu, -1, 1)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_case(&all[i]);
}

/* ---- movement -------------------------------------------------------------------------------- */

FN(reshape, ingot_sin(c, ingot_reshape_c(c, X, 2, (int64_t[]){4, 6})));
FN(permute, ingot_sin(c, ingot_permute(c, X, (int[]){2, 0, 1})));
FN(expand, ingot_sin(c, ingot_expand(c, X, 3, (ingot_dim *[]){k(c, 2), k(c, 3), k(c, 4)})));
FN(pad, ingot_exp(c, ingot_pad_c(c, X, (int64_t[]){1, 0, 2}, (int64_t[]){0, 3, 1}, 0)));
FN(pad_value, ingot_exp(c, ingot_pad_c(c, X, (int64_t[]){1, -1, 2}, (int64_t[]){0, 0, -1}, 0.5)));
FN(flip, ingot_sin(c, ingot_mul(c, ingot_flip(c, X, 5), X)));
FN(slice, ingot_sin(c, ingot_slice(c, X, 2, k(c, 1), k(c, 3), 1)));
FN(slice_by_2, ingot_sin(c, ingot_slice(c, X, 2, k(c, 1), k(c, 2), 2)));
FN(slice_back, ingot_sin(c, ingot_slice(c, X, 2, k(c, 3), k(c, 2), -3)));
FN(slice_negative, ingot_sin(c, ingot_slice(c, X, 0, k(c, 2), k(c, 3), -1)));
FN(concat, ingot_sin(c, ingot_concat(c, 3, (ingot_tensor *[]){X, Y, X}, 1)));
FN(tile, ingot_sin(c, ingot_tile(c, X, (ingot_dim *[]){k(c, 2), k(c, 1), k(c, 3)})));
FN(window, ingot_sin(c, ingot_window(c, X, 2, 2, 1, 1)));
FN(window_wide, ingot_sin(c, ingot_window(c, X, 1, 2, 2, 3)));
FN(window_apart, ingot_sin(c, ingot_window(c, X, 1, 2, 3, 1)));
FN(window_over, ingot_sin(c, ingot_window(c, X, 1, 5, 2, 1)));
FN(windows, ingot_sin(c, ingot_window(c, ingot_window(c, X, 1, 3, 2, 1), 2, 2, 1, 2)));
FN(trilu, ingot_sin(c, ingot_trilu(c, X, k(c, 1), true)));
FN(depth_to_space, ingot_sin(c, ingot_depth_to_space(c, X, 2, true)));
FN(contiguous, ingot_sin(c, ingot_contiguous(c, ingot_mul(c, X, X))));

static void movement(void **state)
{
    (void)state;
#define CUBE(name)                                        \
    {                                                     \
#name, f_##name, -1, 1, 0, 1, D(3), D(D(2, 3, 4)) \
    }
#define ROWS(name)                                        \
    {                                                     \
#name, f_##name, -1, 1, 0, 1, D(3), D(D(2, 9, 5)) \
    }
    static const GradientCase all[] = {
        CUBE(reshape),
        CUBE(permute),
        CUBE(pad),
        CUBE(pad_value),
        CUBE(flip),
        CUBE(slice),
        CUBE(slice_by_2),
        CUBE(slice_back),
        CUBE(tile),
        CUBE(trilu),
        CUBE(contiguous),
        CUBE(window),
        ROWS(window_wide),
        ROWS(window_apart),
        ROWS(window_over),
        ROWS(windows),
        {"expand", f_expand, -1, 1, 0, 1, D(3), D(D(2, 1, 4))},
        {"slice_negative", f_slice_negative, -1, 1, 0, 1, D(2), D(D(4, 2))},
        {"depth_to_space", f_depth_to_space, -1, 1, 0, 1, D(4), D(D(1, 8, 2, 3))},
        {"concat", f_concat, -1, 1, 0, 2, D(3, 3), D(D(2, 3, 2), D(2, 1, 2))}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_case(&all[i]);
}

/* ---- reductions ------------------------------------------------------------------------------ */

#define REDUCE(name, op, axes, keep) \
    FN(name, ingot_sin(c, ingot_reduce(c, INGOT_REDUCE_##op, X, axes, keep)));
REDUCE(sum, ADD, 5, false);
REDUCE(greatest, MAX, 6, true);
REDUCE(least, MIN, 2, false);
REDUCE(product, MUL, 5, false);
REDUCE(product_one, MUL, 2, true);
#define SCAN(name, op, axis) FN(name, ingot_sin(c, ingot_scan(c, INGOT_REDUCE_##op, X, axis)))
SCAN(running_sum, ADD, 1);
SCAN(running_max, MAX, 2);
SCAN(running_min, MIN, 0);
SCAN(running_product, MUL, 1);
FN(exclusive, ingot_sin(c, ingot_cumsum(c, X, 2, true, true)));
FN(mean, ingot_exp(c, ingot_mean(c, X, 7, false)));
FN(variance, ingot_mean(c, ingot_mul(c, ingot_sub(c, X, ingot_mean(c, X, 4, true)), X), 4, false));
FN(logsumexp, ingot_logsumexp(c, X, 6, false));
FN(softmax, ingot_softmax(c, X, 1));
FN(log_softmax, ingot_log_softmax(c, X, -1));
FN(lp, ingot_lp_reduce(c, X, 3, 4, false));

static void reductions(void **state)
{
    (void)state;
#define ZEROS(name)                                                         \
    {                                                                       \
#name " with zeros", f_##name, -1, 1, WHOLE, 1, D(3), D(D(2, 3, 4)) \
    }
    static const GradientCase all[] = {CUBE(sum),
                                       CUBE(greatest),
                                       CUBE(least),
                                       CUBE(product),
                                       CUBE(product_one),
                                       ZEROS(product),
                                       ZEROS(product_one),
                                       CUBE(running_sum),
                                       CUBE(running_max),
                                       CUBE(running_min),
                                       CUBE(running_product),
                                       ZEROS(running_product),
                                       CUBE(exclusive),
                                       CUBE(mean),
                                       CUBE(variance),
                                       CUBE(logsumexp),
                                       CUBE(softmax),
                                       CUBE(log_softmax),
                                       CUBE(lp)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_case(&all[i]);
}

/* ---- places ---------------------------------------------------------------------------------- */

static ingot_tensor *ints(ingot_context *c, int rank, const int64_t *dims, const int64_t *v)
{
    int64_t n = elements(rank, dims), *copy = ingot_alloc(c, (size_t)n * sizeof *copy);
    memcpy(copy, v, (size_t)n * sizeof *copy);
    return ingot_data(c, NULL, INGOT_I64, rank, dims, copy);
}
#define INTS(n, ...) ints(c, 1, (int64_t[]){n}, (int64_t[]){__VA_ARGS__})
#define GRID(a, b, ...) ints(c, 2, (int64_t[]){a, b}, (int64_t[]){__VA_ARGS__})

FN(take, ingot_sin(c, ingot_take(c, X, INTS(4, 1, 0, 1, -1), 1)));
FN(clamped,
   ingot_sin(c, ingot_gather(c, X, (ingot_tensor *[]){INTS(4, 0, 2, 7, -5), INTS(4, 1, 1, 3, 0)})));
FN(diagonal,
   ingot_sin(c, ingot_gather(c, X,
                             (ingot_tensor *[]){ingot_iota(c, 1, (ingot_dim *[]){k(c, 3)}, 0),
                                                ingot_iota(c, 1, (ingot_dim *[]){k(c, 3)}, 0)})));
FN(gather_elements,
   ingot_sin(c, ingot_gather_elements(c, X, GRID(2, 4, 0, 1, 1, 2, 2, 2, 0, -1), 0)));
FN(set_twice, ingot_sin(c, ingot_update(c, INGOT_SET, X, Y,
                                        (ingot_tensor *[]){INTS(3, 1, 1, 2), INTS(3, 0, 0, 9)})));
FN(set_rows,
   ingot_sin(c, ingot_scatter_elements(c, INGOT_SET, X, GRID(2, 4, 0, 2, 1, 2, 2, 0, 0, 1), Y, 0)));
FN(add_at, ingot_sin(c, ingot_update(c, INGOT_ADD, X, Y,
                                     (ingot_tensor *[]){INTS(3, 1, 1, 2), INTS(3, 0, 0, -1)})));
FN(mul_at, ingot_sin(c, ingot_update(c, INGOT_MUL, X, Y,
                                     (ingot_tensor *[]){INTS(3, 1, 1, 2), INTS(3, 0, 0, 1)})));
FN(max_at, ingot_sin(c, ingot_update(c, INGOT_MAX, X, Y,
                                     (ingot_tensor *[]){INTS(3, 1, 1, 2), INTS(3, 0, 0, 1)})));
FN(min_at, ingot_sin(c, ingot_update(c, INGOT_MIN, X, Y,
                                     (ingot_tensor *[]){INTS(3, 1, 1, 2), INTS(3, 0, 0, 4)})));

static ingot_tensor *f_topk(ingot_context *c, ingot_tensor *const *x)
{
    ingot_tensor *out[2];
    ingot_topk(c, X, k(c, 2), 1, true, out);
    return ingot_sin(c, out[0]);
}

/* y[0] = x[0] v[0] v[1] v[2] with v[0] = 0, v[3] nowhere; of the gradient of v, weighed, the
 * gradient again: of x0 (v1 v2 + 10 v0 v2 + 100 v0 v1). */
static void factors_of_zero(void **state)
{
    (void)state;
    ingot_context *c = ingot_context_new(NULL, NULL);
    const double at[2][4] = {{2, 7}, {0, 3, 5, 4}}, weight[4] = {1, 10, 100, 1000};
    const double wanted[2][4] = {{15, 0}, {700, 10, 6, 0}};
    const int64_t four = 4;
    ingot_tensor *in[2], *g[2];
    ingot_value given[2], out[2];
    for (int i = 0; i < 2; i++) {
        in[i] = ingot_input(c, i ? "v" : "x", INGOT_F64, 1, (ingot_dim *[]){k(c, i ? 4 : 2)});
        given[i] = (ingot_value){.data = at[i], .dims = {i ? 4 : 2}, .rank = 1, .dtype = INGOT_F64};
    }
    ingot_tensor *index = INTS(4, 0, 0, 0, 9);
    ingot_tensor *y = ingot_sum(c, ingot_update(c, INGOT_MUL, in[0], in[1], &index), 1, false);
    ingot_gradient(c, y, 1, &in[1], g);
    ingot_tensor *w = ingot_data(c, "weight", INGOT_F64, 1, &four, weight);
    ingot_gradient(c, ingot_sum(c, ingot_mul(c, g[0], w), 1, false), 2, in, g);
    ingot_output(c, "gx", g[0]);
    ingot_output(c, "gv", g[1]);
    assert_int_equal(ingot_interpret(c, 2, given, 2, out), INGOT_OK);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < (i ? 4 : 2); j++)
            assert_true(((const double *)out[i].data)[j] == wanted[i][j]);
    ingot_context_free(c);
}

static void places(void **state)
{
    (void)state;
#define FLAT(name)                                     \
    {                                                  \
#name, f_##name, -1, 1, 0, 1, D(2), D(D(3, 4)) \
    }
#define WITH(name, flags, ...)                                      \
    {                                                               \
#name, f_##name, -1, 1, flags, 2, D(2, 1), D(D(3, 4), D(3)) \
    }
    static const GradientCase all[] = {
        FLAT(take),
        FLAT(clamped),
        FLAT(gather_elements),
        FLAT(topk),
        {"diagonal", f_diagonal, -1, 1, 0, 1, D(2), D(D(3, 3))},
        {"set_rows", f_set_rows, -1, 1, 0, 2, D(2, 2), D(D(3, 4), D(2, 4))},
        WITH(set_twice, 0),
        WITH(add_at, 0),
        WITH(mul_at, 0),
        WITH(mul_at, WHOLE | ONCE),
        WITH(max_at, 0),
        WITH(min_at, 0)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_case(&all[i]);
}

/* ---- products, convolutions, pools, norms ---------------------------------------------------- */

FN(matmul, ingot_sin(c, ingot_matmul(c, X, Y)));
FN(linear, ingot_tanh(c, ingot_linear(c, X, Y, Z)));
FN(gemm, ingot_gemm(c, X, Y, Z, 0.5, 2, true, false));
FN(einsum, ingot_einsum(c, "bij,bjk->ik", 2, x));
#define TWO_OF(a, b) ((int64_t[]){a, b})
FN(conv, ingot_sin(c, ingot_conv(c, X, Y, Z, NULL, NULL, TWO_OF(1, 1), TWO_OF(1, 1), 1)));
FN(conv_stride,
   ingot_sin(c, ingot_conv(c, X, Y, Z, TWO_OF(2, 3), NULL, TWO_OF(0, 1), TWO_OF(1, 0), 1)));
FN(conv_dilated,
   ingot_sin(c, ingot_conv(c, X, Y, Z, TWO_OF(1, 2), TWO_OF(2, 1), TWO_OF(2, 0), NULL, 1)));
FN(conv_groups, ingot_sin(c, ingot_conv(c, X, Y, Z, TWO_OF(2, 1), NULL, NULL, TWO_OF(1, 1), 2)));
FN(conv_depthwise, ingot_sin(c, ingot_conv(c, X, Y, Z, NULL, NULL, TWO_OF(1, 1), TWO_OF(1, 1), 4)));
FN(conv_1d, ingot_sin(c, ingot_conv(c, X, Y, NULL, (int64_t[]){2}, NULL, (int64_t[]){1}, NULL, 1)));
FN(conv_transpose, ingot_sin(c, ingot_conv_transpose(c, X, Y, Z, TWO_OF(2, 1), NULL, TWO_OF(1, 0),
                                                     NULL, TWO_OF(1, 0), 1)));
FN(max_pool, ingot_max_pool(c, X, TWO_OF(3, 2), TWO_OF(2, 2), NULL, TWO_OF(1, 0), TWO_OF(1, 0)));
FN(max_pool_apart, ingot_max_pool(c, X, TWO_OF(2, 2), TWO_OF(3, 2), NULL, NULL, NULL));
FN(avg_pool, ingot_sin(c, ingot_avg_pool(c, X, TWO_OF(3, 3), TWO_OF(2, 1), NULL, TWO_OF(1, 1),
                                         TWO_OF(1, 1), false)));
FN(lp_pool, ingot_lp_pool(c, X, 2, TWO_OF(2, 2), NULL, TWO_OF(2, 1), NULL, NULL));
FN(lrn, ingot_lrn(c, X, 3, 0.1, 0.75, 1));
FN(layer_norm, ingot_layer_norm(c, X, -1, Y, Z, 1e-3));
FN(group_norm, ingot_group_norm(c, X, 2, Y, Z, 1e-3));
FN(attention, ingot_attention(c, X, Y, Z, NULL, 0, true));

static ingot_tensor *f_batch_norm(ingot_context *c, ingot_tensor *const *x)
{
    ingot_tensor *mean = ingot_mean(c, X, 13, false);
    ingot_tensor *off = ingot_sub(c, X, ingot_reshape_c(c, mean, 4, (int64_t[]){1, 4, 1, 1}));
    return ingot_batch_norm(c, X, Y, Z, mean, ingot_mean(c, ingot_mul(c, off, off), 13, false),
                            1e-3);
}

static ingot_tensor *f_resize(ingot_context *c, ingot_tensor *const *x)
{
    ingot_resize_axis a = {.size = 7, .mode = INGOT_RESIZE_CUBIC, .cubic_a = -0.75};
    return ingot_sin(c, ingot_resize(c, X, 2, &a));
}

static void networks(void **state)
{
    (void)state;
#define CONV(name, per, m, kh, kw)                                                          \
    {                                                                                       \
#name, f_##name, -1, 1, 0, 3, D(4, 4, 1), D(D(2, 4, 5, 6), D(m, per, kh, kw), D(m)) \
    }
#define IMAGE(name, flags)                                       \
    {                                                            \
#name, f_##name, -1, 1, flags, 1, D(4), D(D(1, 4, 5, 6)) \
    }
    static const GradientCase all[] = {
        {"matmul", f_matmul, -1, 1, 0, 2, D(3, 2), D(D(2, 3, 4), D(4, 5))},
        {"linear", f_linear, -1, 1, 0, 3, D(2, 2, 1), D(D(3, 4), D(5, 4), D(5))},
        {"gemm", f_gemm, -1, 1, 0, 3, D(2, 2, 1), D(D(4, 3), D(4, 5), D(5))},
        {"einsum", f_einsum, -1, 1, 0, 2, D(3, 3), D(D(2, 3, 4), D(2, 4, 5))},
        CONV(conv, 4, 3, 3, 3),
        CONV(conv_stride, 4, 3, 3, 2),
        CONV(conv_dilated, 4, 2, 3, 1),
        CONV(conv_groups, 2, 6, 1, 3),
        CONV(conv_depthwise, 1, 4, 3, 3),
        {"conv_1d", f_conv_1d, -1, 1, 0, 2, D(3, 3), D(D(1, 2, 8), D(3, 2, 3))},
        {"conv_transpose", f_conv_transpose, -1, 1, 0, 3, D(4, 4, 1),
         D(D(1, 2, 3, 4), D(2, 3, 3, 2), D(3))},
        IMAGE(max_pool, 0),
        IMAGE(max_pool_apart, 0),
        IMAGE(avg_pool, 0),
        IMAGE(lp_pool, ONCE),
        IMAGE(lrn, 0),
        {"resize", f_resize, -1, 1, 0, 1, D(3), D(D(1, 2, 4))},
        {"layer_norm", f_layer_norm, -1, 1, 0, 3, D(2, 1, 1), D(D(3, 5), D(5), D(5))},
        {"group_norm", f_group_norm, -1, 1, 0, 3, D(3, 1, 1), D(D(2, 4, 3), D(4), D(4))},
        {"batch_norm", f_batch_norm, -1, 1, 0, 3, D(4, 1, 1), D(D(2, 4, 2, 3), D(4), D(4))},
        {"attention", f_attention, -1, 1, 0, 3, D(4, 4, 4),
         D(D(1, 4, 3, 2), D(1, 2, 3, 2), D(1, 2, 3, 2))}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_case(&all[i]);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

FN(empty_sum, ingot_sin(c, ingot_add(c, ingot_sum(c, X, 1, false), Y)));
FN(empty_concat,
   ingot_sin(c, ingot_concat(c, 2, (ingot_tensor *[]){X, ingot_unsqueeze(c, Y, 0)}, 0)));
FN(ones, ingot_sin(c, ingot_mul(c, ingot_permute(c, ingot_flip(c, X, 3), (int[]){1, 0}), Y)));
FN(scalar, ingot_mul(c, ingot_sin(c, X), ingot_sum(c, Y, 1, false)));

static void sizes(void **state)
{
    (void)state;
    static const GradientCase all[] = {
        {"empty_sum", f_empty_sum, -1, 1, 0, 2, D(2, 1), D(D(0, 3), D(3))},
        {"empty_concat", f_empty_concat, -1, 1, 0, 2, D(2, 1), D(D(0, 3), D(3))},
        {"ones", f_ones, -1, 1, 0, 2, D(2, 2), D(D(1, 3), D(3, 1))},
        {"scalar", f_scalar, -1, 1, 0, 2, D(0, 1), D(D(0), D(3))}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_case(&all[i]);
}

#define CHECK(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK(elementwise),    CHECK(movement), CHECK(reductions),
                                       CHECK(places),         CHECK(networks), CHECK(sizes),
                                       CHECK(factors_of_zero)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
