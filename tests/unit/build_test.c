/* build_test.c - the builder: shapes, broadcasting, what it refuses and in which words, what it
 * simplifies, control flow and run-time dims. */
#include "build_test.h"

/* ---- shapes and errors ----------------------------------------------------------------------- */

static void test_dims(void **state)
{
    (void)state;
    ingot_dim *n = ingot_dim_var(c, "n", 1, 32);
    assert_ptr_equal(n, ingot_dim_var(c, "n", 1, 32));
    assert_int_equal(ingot_dim_lo(n), 1);
    assert_int_equal(ingot_dim_hi(n), 32);
    ingot_dim *twice = ingot_dim_add(c, n, n);
    assert_true(ingot_dim_equal(twice, ingot_dim_mul(c, n, k(2))));
    assert_true(ingot_dim_equal(ingot_dim_sub(c, twice, n), n));
    int64_t v;
    assert_true(ingot_dim_is_const(ingot_dim_div(c, k(-7), k(2)), &v) && v == -4);
    assert_true(ingot_dim_is_const(ingot_dim_mod(c, k(-7), k(2)), &v) && v == 1);
    assert_false(ingot_dim_is_const(n, NULL));
    assert_int_equal(messages, 0);
    expect_error(ingot_dim_var(c, "n", 1, 64),
                 "'n' was declared with bounds 1..32, now with 1..64");
    expect_error(ingot_dim_var(c, "m", 5, 4), "bounds 5..4");
    expect_error(ingot_dim_div(c, n, k(0)), "division of a dim by zero");
}

static void test_broadcasting(void **state)
{
    (void)state;
    ingot_dim *n = ingot_dim_var(c, "n", 1, 32);
    ingot_tensor *a = INPUT("a", INGOT_F32, 2, 3, 1), *b = INPUT("b", INGOT_F32, 3, 4);
    SHAPE(ingot_add(c, a, b), 2, 3, 4);
    SHAPE(ingot_add(c, a, ingot_scalar_f(c, INGOT_F32, 2)), 2, 3, 1);
    SHAPE(ingot_where(c, ingot_lt(c, a, a), b, ingot_like(c, b, 0)), 2, 3, 4);
    ingot_tensor *s = ingot_input(c, "s", INGOT_F32, 2, (ingot_dim *[]){n, k(3)});
    assert_true(ingot_dim_equal(ingot_shape(ingot_mul(c, s, s), 0), n));
    ingot_tensor *t = ingot_input(c, "t", INGOT_F32, 2, (ingot_dim *[]){k(4), k(3)});
    expect_error(ingot_add(c, a, t), "add: shapes [2, 3, 1] and [4, 3] do not broadcast");
    expect_error(ingot_add(c, s, t), "cannot prove that n and 4 are equal");
    expect_error(ingot_add(c, a, INPUT("i", INGOT_I64, 1)), "operands are f32 and i64");
    expect_error(ingot_exp(c, INPUT("j", INGOT_I64, 1)), "exp needs floats, got i64");
    assert_true(ingot_is_poison(ingot_relu(c, ingot_add(c, ingot_poison(c), a))));
    assert_int_equal(messages, 0);
}

static void test_refused(void **state)
{
    (void)state;
    ingot_tensor *x = INPUT("x", INGOT_F32, 2, 6);
    expect_error(ingot_reshape_c(c, x, 2, DIMS(5, 2)), "reshape of [2, 6] to [5, 2]");
    expect_error(ingot_reshape_c(c, x, 2, DIMS(-1, 2)), "dim 0 of shape [-1, 2] is negative");
    expect_error(ingot_permute(c, x, (int[]){0, 0}), "each axis 0..1 must come once");
    expect_error(ingot_expand(c, x, 2, (ingot_dim *[]){k(4), k(6)}), "only dims of size 1");
    expect_error(INPUT("huge", INGOT_F32, 1 << 24, 1 << 24, 2), "more than 2^47 elements");
    expect_error(ingot_shrink(c, x, (ingot_dim *[]){k(1), k(0)}, (ingot_dim *[]){k(2), k(6)}),
                 "axis 0 from 1, 2 elements, is not inside it");
    expect_error(ingot_slice(c, x, 1, k(0), k(4), 2), "is not inside it");
    expect_error(ingot_squeeze(c, x, 0), "axis 0 of shape [2, 6] is not 1");
    expect_error(ingot_matmul(c, x, x), "they must be equal");
    expect_error(ingot_concat(c, 2, (ingot_tensor *[]){x, INPUT("y", INGOT_F32, 3, 5)}, 0),
                 "part 1 is f32 [3, 5], part 0 is f32 [2, 6]");
    expect_error(ingot_take(c, x, ingot_scalar_i(c, INGOT_I64, 6), 1), "outside axis 1");
    expect_error(INPUT("x", INGOT_F32, 1), "two inputs are named 'x'");
    expect_error(ingot_reduce(c, INGOT_REDUCE_ADD, ingot_lt(c, x, x), 1, true), "cast it first");
    expect_error(
        ingot_einsum(c, "ij,jk->il", 2, (ingot_tensor *[]){x, INPUT("z", INGOT_F32, 6, 6)}),
        "output label is in no operand");
    assert_int_equal(ingot_context_status(c), INGOT_INVALID);
}

static void test_origin_in_messages(void **state)
{
    (void)state;
    ingot_set_file(c, "net.onnx");
    ingot_set_origin(c, "layer1", "Conv");
    ingot_tensor *x = INPUT("x", INGOT_F32, 1, 3, 8, 8), *w = INPUT("w", INGOT_F32, 4, 2, 3, 3);
    expect_error(ingot_conv(c, x, w, NULL, NULL, NULL, NULL, NULL, 1),
                 "net.onnx: node 'layer1' (Conv): conv: x has 3 channels");
}

/* ---- algebra at construction ----------------------------------------------------------------- */

static void test_identities(void **state)
{
    (void)state;
    ingot_tensor *x = INPUT("x", INGOT_F32, 2, 6);
    assert_ptr_equal(ingot_cast(c, x, INGOT_F32), x);
    assert_ptr_equal(ingot_reshape_c(c, ingot_reshape_c(c, x, 1, DIMS(12)), 2, DIMS(2, 6)), x);
    assert_ptr_equal(ingot_permute(c, ingot_permute(c, x, (int[]){1, 0}), (int[]){1, 0}), x);
    assert_ptr_equal(ingot_transpose(c, x, 0, 1), ingot_permute(c, x, (int[]){1, 0}));
    assert_ptr_equal(ingot_flip(c, ingot_flip(c, x, 3), 3), x);
    assert_ptr_equal(ingot_pad_c(c, x, DIMS(0, 0), DIMS(0, 0), 5), x);
    assert_ptr_equal(ingot_sum(c, x, 0, true), x);
    assert_ptr_equal(ingot_sum(c, ingot_unsqueeze(c, x, 1), 2, false), x);
    assert_ptr_equal(ingot_where(c, ingot_scalar_i(c, INGOT_BOOL, 1), x, ingot_like(c, x, 0)), x);
    assert_ptr_equal(ingot_not(c, ingot_not(c, ingot_lt(c, x, x))), ingot_lt(c, x, x));
    assert_ptr_equal(
        ingot_pad_c(c, ingot_pad_c(c, x, DIMS(1, 0), DIMS(0, 0), 0), DIMS(-1, 0), DIMS(0, 0), 0),
        ingot_shrink(c, ingot_pad_c(c, x, DIMS(1, 0), DIMS(0, 0), 0), (ingot_dim *[]){k(1), k(0)},
                     (ingot_dim *[]){k(2), k(6)}));
    double v;
    assert_true(ingot_const_float(c, ingot_sqrt(c, ingot_scalar_f(c, INGOT_F32, 16)), &v) &&
                v == 4);
    assert_int_equal(messages, 0);
}

static void test_empty(void **state)
{
    (void)state;
    ingot_tensor *x = INPUT("x", INGOT_F32, 0, 3);
    SHAPE(ingot_exp(c, x), 0, 3);
    SHAPE(ingot_sum(c, x, 1, false), 3);
    SHAPE(ingot_sum(c, x, 2, false), 0);
    SHAPE(ingot_concat(c, 2, (ingot_tensor *[]){x, INPUT("y", INGOT_F32, 2, 3)}, 0), 2, 3);
    SHAPE(ingot_matmul(c, x, INPUT("z", INGOT_F32, 3, 4)), 0, 4);
    SHAPE(ingot_matmul(c, ingot_transpose(c, x, 0, 1), INPUT("w", INGOT_F32, 0, 4)), 3, 4);
    assert_int_equal(messages, 0);
}

/* ---- movement -------------------------------------------------------------------------------- */

static void test_movement(void **state)
{
    (void)state;
    ingot_tensor *x = COUNT(2, 3);
    EQUAL_I(ingot_transpose(c, x, 0, 1), 0, 3, 1, 4, 2, 5);
    EQUAL_I(ingot_flip(c, x, 2), 2, 1, 0, 5, 4, 3);
    EQUAL_I(ingot_pad_c(c, x, DIMS(0, 1), DIMS(0, -1), 9), 9, 0, 1, 9, 3, 4);
    EQUAL_I(ingot_slice(c, x, 1, k(0), k(2), 2), 0, 2, 3, 5);
    EQUAL_I(ingot_slice(c, x, 1, k(2), k(2), -2), 2, 0, 5, 3);
    EQUAL_I(ingot_slice(c, x, 1, k(2), k(3), -1), 2, 1, 0, 5, 4, 3);
    EQUAL_I(ingot_concat(c, 2, (ingot_tensor *[]){x, ingot_flip(c, x, 1)}, 1), 0, 1, 2, 3, 4, 5, 3,
            4, 5, 0, 1, 2);
    EQUAL_I(ingot_stack(c, 2, (ingot_tensor *[]){INTS(1, 2), INTS(3, 4)}, 1), 1, 3, 2, 4);
    EQUAL_I(ingot_tile(c, x, (ingot_dim *[]){k(2), k(2)}), 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5, 0, 1,
            2, 0, 1, 2, 3, 4, 5, 3, 4, 5);
    EQUAL_I(ingot_window(c, COUNT(6), 0, 3, 2, 1), 0, 1, 2, 2, 3, 4);
    EQUAL_I(ingot_window(c, COUNT(6), 0, 2, 1, 3), 0, 3, 1, 4, 2, 5);
    SHAPE(ingot_window(c, COUNT(2, 6), 1, 3, 1, 1), 2, 4, 3);
    SHAPE(ingot_window(c, COUNT(2, 2), 1, 3, 1, 1), 2, 0, 3);
    EQUAL_I(ingot_iota(c, 2, (ingot_dim *[]){k(2), k(3)}, 1), 0, 1, 2, 0, 1, 2);
}

static void test_gather(void **state)
{
    (void)state;
    ingot_tensor *x = COUNT(3, 4);
    EQUAL_I(ingot_take(c, x, INTS(2, 0), 0), 8, 9, 10, 11, 0, 1, 2, 3);
    EQUAL_I(ingot_take(c, x, INTS(-1, 1), 1), 3, 1, 7, 5, 11, 9);
    EQUAL_I(ingot_take(c, x, ingot_scalar_i(c, INGOT_I64, -2), 1), 2, 6, 10);
    EQUAL_I(ingot_gather(c, x, (ingot_tensor *[]){INTS(0, 1, 2), INTS(3, 99, -5)}), 3, 7, 8);
    ingot_tensor *zero = ingot_expand(c, ingot_scalar_i(c, INGOT_I64, 0), 1, (ingot_dim *[]){k(4)});
    ingot_tensor *at[1] = {INTS(1, 1, 3, 7)};
    EQUAL_I(ingot_update(c, INGOT_SET, zero, INTS(5, 6, 7, 8), at), 0, 6, 0, 7);
    EQUAL_I(ingot_update(c, INGOT_ADD, zero, INTS(5, 6, 7, 8), at), 0, 11, 0, 7);
    EQUAL_I(ingot_update(c, INGOT_MAX, zero, INTS(6, 5, -7, 8), at), 0, 6, 0, 0);
}

static void test_reduce(void **state)
{
    (void)state;
    ingot_tensor *x = COUNT(2, 3);
    EQUAL_I(ingot_sum(c, x, 1, false), 3, 5, 7);
    near(run_f(ingot_reduce(c, INGOT_REDUCE_MAX, F32(NULL, 0, 2), 1, false)),
         (float[]){-INFINITY, -INFINITY}, 2, 0);
    EQUAL_I(ingot_sum(c, x, 3, true), 15);
    EQUAL_I(ingot_mean(c, x, 2, false), 1, 4);
    EQUAL_I(ingot_reduce(c, INGOT_REDUCE_MAX, x, 2, false), 2, 5);
    float v[6] = {1, 3, 3, NAN, 0, NAN};
    EQUAL_I(ingot_argmax(c, F32(v, 2, 3), 1, false, false), 1, 0);
    EQUAL_I(ingot_argmax(c, F32(v, 2, 3), 1, false, true), 2, 2);
    EQUAL_I(ingot_argmin(c, F32(v, 2, 3), 1, true, false), 0, 0);
    float low[6] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -1, -1};
    EQUAL_I(ingot_argmax(c, F32(low, 2, 3), 1, false, false), 0, 1);
    EQUAL_I(ingot_argmax(c, F32(low, 2, 3), 1, false, true), 2, 2);
    EQUAL_I(ingot_argmin(c, F32(low, 2, 3), 0, false, true), 1, 0, 0);
    /* the mean of large f16 numbers, whose sum is out of range */
    ingot_tensor *h = ingot_cast(c, F32(((float[]){60000, 50000, 40000}), 3), INGOT_F16);
    near(run_f(ingot_cast(c, ingot_mean(c, h, 1, false), INGOT_F32)), (float[]){50000}, 1, 1e-3f);
}

/* ---- control flow ---------------------------------------------------------------------------- */

static void test_loop(void **state)
{
    (void)state;
    /* s = 0; for i < 5: s += x[i] * i, and the running sums */
    ingot_tensor *x = INTS(5, 4, 3, 2, 1), *zero = ingot_scalar_i(c, INGOT_I64, 0), *out[2];
    ingot_region *r = ingot_region_begin(c);
    ingot_tensor *i = ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_tensor *cond = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *s = ingot_region_param_like(c, r, zero);
    ingot_tensor *next = ingot_add(c, s, ingot_mul(c, ingot_take(c, x, i, 0), i));
    ingot_region_end(c, r, 3, (ingot_tensor *[]){cond, next, next});
    ingot_loop(c, k(5), NULL, 1, (ingot_tensor *[]){zero}, r, 1, out);
    SHAPE(out[1], 5);
    EQUAL_I(out[0], 20);
    EQUAL_I(out[1], 0, 4, 10, 16, 20);
    assert_int_equal(messages, 0);
}

static void test_while(void **state)
{
    (void)state;
    /* v = 1; while (v < 100) v *= 3 */
    ingot_tensor *one = ingot_cast(c, INTS(1, 1), INGOT_I64), *out[1];
    one = ingot_take(c, one, ingot_scalar_i(c, INGOT_I64, 0), 0);
    ingot_region *r = ingot_region_begin(c);
    ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *v = ingot_region_param_like(c, r, one);
    ingot_tensor *next = ingot_mul(c, v, ingot_like(c, v, 3));
    ingot_tensor *more = ingot_lt(c, next, ingot_like(c, v, 100));
    ingot_region_end(c, r, 2, (ingot_tensor *[]){more, next});
    ingot_loop(c, NULL, NULL, 1, &one, r, 0, out);
    EQUAL_I(out[0], 243);
}

static void test_loop_refused(void **state)
{
    (void)state;
    ingot_tensor *x = INPUT("x", INGOT_F32, 2), *out[1];
    ingot_region *r = ingot_region_begin(c);
    ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_tensor *cond = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *v = ingot_region_param_like(c, r, x);
    ingot_region_end(c, r, 2,
                     (ingot_tensor *[]){cond, ingot_concat(c, 2, (ingot_tensor *[]){v, v}, 0)});
    ingot_loop(c, k(3), NULL, 1, &x, r, 0, out);
    expect_error(out[0], "carried value 0 starts as f32 [2], is f32 [2] inside and f32 [4] after");
    ingot_loop(c, k(3), NULL, 0, NULL, r, 0, out);
    assert_int_equal(messages, 1);
    assert_non_null(strstr(last, "it must have 2 (i, cond, carried) and 1"));
}

static void test_if(void **state)
{
    (void)state;
    ingot_tensor *x = INPUT("x", INGOT_I64, 2), *out[1];
    ingot_tensor *cond = ingot_gt(c, ingot_sum(c, x, 1, false), ingot_scalar_i(c, INGOT_I64, 0));
    ingot_region *a = ingot_region_begin(c);
    ingot_tensor *ra = ingot_mul(c, x, x);
    ingot_region_end(c, a, 1, &ra);
    ingot_region *b = ingot_region_begin(c);
    ingot_tensor *rb = ingot_neg(c, x);
    ingot_region_end(c, b, 1, &rb);
    ingot_if(c, cond, a, b, 1, out);
    SHAPE(out[0], 2);
    int64_t v[2][2] = {{2, 3}, {2, -3}}, want[2][2] = {{4, 9}, {-2, 3}};
    ingot_output(c, "y", out[0]);
    for (int i = 0; i < 2; i++) {
        ingot_value in = {.data = v[i], .dims = {2}, .rank = 1, .dtype = INGOT_I64}, y;
        assert_int_equal(ingot_interpret(c, 1, &in, 1, &y), INGOT_OK);
        equal_i(y.data, 2, want[i]);
    }
    ingot_if(c, ingot_scalar_i(c, INGOT_BOOL, 1), a, b, 1, out);
    assert_ptr_equal(out[0], ra);
}

static void test_library(void **state)
{
    (void)state;
    float v[6] = {0, 2, -0.0f, 3, 1, 0};
    ingot_value out = run(ingot_nonzero(c, F32(v, 2, 3)), 0, NULL);
    assert_int_equal(out.dims[1], 3);
    equal_i(out.data, 6, DIMS(0, 1, 1, 1, 0, 1));
    ingot_tensor *top[2];
    ingot_topk(c, F32(v, 2, 3), k(2), -1, true, top);
    SHAPE(top[0], 2, 2);
    near(run_f(top[0]), (float[]){2, 0, 3, 1}, 4, 0);
    EQUAL_I(top[1], 1, 0, 0, 1);
    ingot_dim *rows = ingot_dim_var(c, "rows", 1, 8);
    ingot_tensor *x = ingot_input(c, "sorted", INGOT_F32, 1, &rows);
    ingot_topk(c, x, rows, 0, true, top);
    assert_ptr_equal(ingot_shape(top[0], 0), rows); /* a sort has its input's size */
    ingot_dim *n = ingot_read_dim(c, INTS(4, 7), "n", 0, 9);
    assert_true(ingot_is_poison(n)); /* two elements are no dim */
}

/* ---- run-time dims --------------------------------------------------------------------------- */

/* A size that a step sets is that of an input: the input says its own, which the run requires. */
static void test_counted_input(void **state)
{
    (void)state;
    int64_t number = 2;
    ingot_dim *n = ingot_read_dim(c, ingot_input(c, "k", INGOT_I64, 0, NULL), "n", 0, 4);
    ingot_dim *size[] = {ingot_dim_mul(c, n, k(2)), k(1)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, size);
    assert_ptr_equal(ingot_shape(x, 0), size[0]);
    ingot_output(c, "y", ingot_neg(c, x));
    float data[8] = {0};
    ingot_value in[] = {{.data = &number, .dtype = INGOT_I64},
                        {.data = data, .dtype = INGOT_F32, .rank = 2, .dims = {4, 1}}},
                out;
    assert_int_equal(ingot_interpret(c, 2, in, 1, &out), INGOT_OK);
    assert_int_equal(out.dims[0], 4);
    in[1].dims[0] = 8;
    assert_int_equal(ingot_interpret(c, 2, in, 1, &out), INGOT_INVALID);
    assert_non_null(strstr(last, "the size of axis 0 of input 'x' is 8; it has to be 4"));
}

static void test_symbolic(void **state)
{
    (void)state;
    ingot_dim *n = ingot_dim_var(c, "n", 1, 8);
    ingot_tensor *x = ingot_input(c, "x", INGOT_I64, 2, (ingot_dim *[]){n, k(4)});
    ingot_tensor *flat = ingot_flatten(c, x, 0, 2);
    ingot_tensor *back = ingot_reshape(c, flat, 3, (ingot_dim *[]){n, k(2), k(2)});
    ingot_output(c, "y", ingot_sum(c, back, 4, false));
    ingot_output(
        c, "z",
        ingot_mul(c, ingot_from_dim(c, ingot_numel(c, x)), ingot_scalar_i(c, INGOT_I64, 3)));
    assert_int_equal(messages, 0);
    int64_t v[12];
    for (int i = 0; i < 12; i++)
        v[i] = i;
    ingot_value in = {.data = v, .dims = {3, 4}, .rank = 2, .dtype = INGOT_I64}, out[2];
    assert_int_equal(ingot_interpret(c, 1, &in, 2, out), INGOT_OK);
    assert_int_equal(out[0].dims[0], 3);
    equal_i(out[0].data, 6, DIMS(1, 5, 9, 13, 17, 21));
    equal_i(out[1].data, 1, DIMS(36));
}

/* ---- requirements ---------------------------------------------------------------------------- */

/* x [n, 4] and y [4, m], of which the model needs n and m to be equal. */
static ingot_status run_required(int64_t n, int64_t m, ingot_value *out)
{
    static const float v[64] = {1, 2, 3, 4, 5, 6, 7, 8};
    ingot_value in[2] = {{.data = v, .dims = {n, 4}, .rank = 2, .dtype = INGOT_F32},
                         {.data = v, .dims = {4, m}, .rank = 2, .dtype = INGOT_F32}};
    return ingot_interpret(c, 2, in, 1, out);
}

static void test_require(void **state)
{
    (void)state;
    ingot_dim *n = ingot_dim_var(c, "n", 1, 8), *m = ingot_dim_var(c, "m", 3, 5);
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, (ingot_dim *[]){n, k(4)});
    ingot_tensor *y = ingot_input(c, "y", INGOT_F32, 2, (ingot_dim *[]){k(4), m});
    assert_ptr_equal(ingot_require_equal(c, n, n, "n"), n);
    assert_ptr_equal(ingot_require_equal(c, k(3), k(3), "3"), k(3));
    expect_error(ingot_require_equal(c, k(2), m, "the count"), "the count is 2; it has to be m");
    assert_true(ingot_require(c, m, k(1), k(5), "m")); /* known: no step */
    ingot_dim *both = ingot_require_equal(c, n, m, "the height");
    assert_ptr_equal(both, m); /* the lower bound of memory */
    assert_ptr_equal(ingot_shape(ingot_require_size(c, x, 0, m, "the height"), 0), m);
    assert_int_equal(ingot_dim_hi(ingot_require_bounds(c, n, 0, 4, "the height")), 4);
    ingot_output(c, "z", ingot_matmul(c, y, x));
    assert_int_equal(messages, 0);
    ingot_value out;
    assert_int_equal(run_required(4, 4, &out), INGOT_OK);
    assert_int_equal(out.dims[0], 4);
    assert_int_equal(run_required(3, 4, &out), INGOT_INVALID);
    assert_non_null(strstr(last, "the height is 3; it has to be 4"));
}

/* Where there is nothing to read, the run has to read nothing. */
static void test_gather_of_nothing(void **state)
{
    (void)state;
    ingot_dim *n = ingot_dim_var(c, "n", 0, 8);
    ingot_tensor *none = ingot_data(c, "none", INGOT_F32, 2, DIMS(0, 3), "");
    ingot_tensor *at = ingot_input(c, "at", INGOT_I64, 1, &n);
    ingot_output(c, "y", ingot_take(c, none, at, 0));
    ingot_tensor *four = ingot_iota(c, 1, (ingot_dim *[]){k(4)}, 0);
    expect_error(ingot_gather(c, none, (ingot_tensor *[]){four, four}), "gather of [4] elements");
    static const int64_t zeros[8];
    ingot_value in = {.data = zeros, .dims = {0}, .rank = 1, .dtype = INGOT_I64}, out;
    assert_int_equal(ingot_interpret(c, 1, &in, 1, &out), INGOT_OK);
    assert_int_equal(out.dims[0], 0);
    in.dims[0] = 2;
    assert_int_equal(ingot_interpret(c, 1, &in, 1, &out), INGOT_INVALID);
    assert_non_null(strstr(last, "to gather from a tensor without any is 6; it has to be 0"));
}

/* A tensor without elements has any shape that has none in the run. */
static void test_reshape_of_nothing(void **state)
{
    (void)state;
    ingot_dim *n = ingot_dim_var(c, "n", 0, 8), *two = k(2);
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, (ingot_dim *[]){n, k(4)});
    ingot_tensor *none = ingot_slice(c, x, 1, k(0), k(0), 1);
    ingot_tensor *y = ingot_reshape(c, none, 2, (ingot_dim *[]){two, n});
    expect_error(ingot_reshape(c, none, 1, &two), "has 0 elements but the new shape has 2");
    assert_false(ingot_is_poison(y));
    ingot_output(c, "y", y);
    ingot_value in = {.data = "", .dims = {0, 4}, .rank = 2, .dtype = INGOT_F32}, out;
    assert_int_equal(ingot_interpret(c, 1, &in, 1, &out), INGOT_OK);
    assert_int_equal(out.dims[0], 2);
    in.dims[0] = 1;
    assert_int_equal(ingot_interpret(c, 1, &in, 1, &out), INGOT_INVALID);
    assert_non_null(strstr(last, "the number of elements of its new shape is 2; it has to be 0"));
}

/* A requirement inside a branch holds where the branch is taken. */
static void test_require_in_branch(void **state)
{
    (void)state;
    ingot_dim *n = ingot_dim_var(c, "n", 1, 8);
    ingot_tensor *x = ingot_input(c, "x", INGOT_I64, 1, (ingot_dim *[]){n}), *y;
    ingot_tensor *first = ingot_reshape(c, ingot_slice(c, x, 0, k(0), k(1), 1), 0, NULL);
    ingot_region *then_branch = ingot_region_begin(c);
    (void)ingot_require_equal(c, n, k(3), "n");
    ingot_tensor *a = ingot_add_c(c, first, 1);
    ingot_region_end(c, then_branch, 1, &a);
    ingot_region *else_branch = ingot_region_begin(c);
    ingot_tensor *b = ingot_add_c(c, first, 2);
    ingot_region_end(c, else_branch, 1, &b);
    ingot_if(c, ingot_gt(c, first, ingot_like(c, first, 0)), then_branch, else_branch, 1, &y);
    ingot_output(c, "y", y);
    static const struct {
        int64_t first, n;
        ingot_status status;
    } tries[] = {{1, 3, INGOT_OK}, {0, 2, INGOT_OK}, {1, 2, INGOT_INVALID}};
    for (int i = 0; i < 3; i++) {
        int64_t v[8] = {tries[i].first};
        ingot_value in = {.data = v, .dims = {tries[i].n}, .rank = 1, .dtype = INGOT_I64}, out;
        assert_int_equal(ingot_interpret(c, 1, &in, 1, &out), tries[i].status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dims),
        TEST(broadcasting),
        TEST(refused),
        TEST(origin_in_messages),
        TEST(identities),
        TEST(empty),
        TEST(movement),
        TEST(gather),
        TEST(reduce),
        TEST(loop),
        TEST(while),
        TEST(loop_refused),
        TEST(if),
        TEST(library),
        TEST(counted_input),
        TEST(symbolic),
        TEST(gather_of_nothing),
        TEST(reshape_of_nothing),
        TEST(require),
        TEST(require_in_branch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
