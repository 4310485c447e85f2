/* gradient_errors_test.c - what has no gradient, what is an error, and what is asked for in other
 * ways: several targets, straight through, custom operators. */
#include <unistd.h>

#include "gradient_cases.h"

static ingot_dim *k(ingot_context *c, int64_t v)
{
    return ingot_dim_const(c, v);
}

static ingot_context *c;

static int begin(void **state)
{
    (void)state;
    c = ingot_context_new(keep_error, NULL);
    last_error[0] = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    ingot_context_free(c);
    return 0;
}

static ingot_tensor *vector(const char *name, ingot_dtype d)
{
    return ingot_input(c, name, d, 1, (ingot_dim *[]){k(c, 4)});
}

static ingot_tensor *total(ingot_tensor *y)
{
    return ingot_sum(c, y, (1u << ingot_rank(y)) - 1, false);
}

/* The gradient of the sum of y. */
static ingot_tensor *gradient(ingot_tensor *y, ingot_tensor *x)
{
    ingot_tensor *g;
    ingot_gradient(c, total(y), 1, &x, &g);
    return g;
}

static void fails(ingot_tensor *y, ingot_tensor *x, const char *text)
{
    last_error[0] = 0;
    ingot_tensor *g = gradient(y, x);
    assert_non_null(g);
    assert_true(ingot_is_poison(g));
    if (!strstr(last_error, text))
        fail_msg("'%s' does not contain '%s'", last_error, text);
}

static bool is_zeros(ingot_tensor *g)
{
    double v[4];
    return g && ingot_is_const(g) && ingot_const_data(c, g, v, sizeof v) && v[0] == 0 && v[3] == 0;
}

static void without_a_gradient(void **state)
{
    (void)state;
    ingot_tensor *x = vector("x", INGOT_F64), *y = vector("y", INGOT_F64);
    ingot_tensor *less = ingot_lt(c, x, y);
    assert_null(gradient(y, x));
    assert_null(gradient(ingot_where(c, less, ingot_like(c, x, 1), ingot_like(c, x, 2)), x));
    assert_null(gradient(ingot_cast(c, less, INGOT_F64), x));
    assert_null(gradient(ingot_mul(c, y, ingot_stop(c, x)), x));
    assert_true(is_zeros(gradient(ingot_floor(c, x), x)));
    assert_true(is_zeros(gradient(ingot_sign(c, ingot_sin(c, x)), x)));
    /* y x with x as a constant: y's gradient is there */
    assert_ptr_equal(
        gradient(ingot_mul(c, y, ingot_stop(c, x)), y),
        ingot_mul(c, ingot_expand(c, ingot_scalar_f(c, INGOT_F64, 1), 1, (ingot_dim *[]){k(c, 4)}),
                  ingot_stop(c, x)));
    assert_string_equal(last_error, "");
}

static void errors(void **state)
{
    (void)state;
    ingot_tensor *x = vector("x", INGOT_F32), *i = vector("i", INGOT_I64), *g, *y;
    ingot_set_file(c, "net.onnx");
    ingot_set_origin(c, "det_1", "Det");
    y = ingot_det(c, ingot_reshape_c(c, x, 2, (int64_t[]){2, 2}));
    ingot_set_origin(c, "elsewhere", "Loss");
    fails(y, x, "net.onnx: node 'det_1' (Det): gradient: there is no rule for 'det'");
    ingot_set_origin(c, "round_1", "Cast");
    ingot_tensor *whole = ingot_cast(c, ingot_cast(c, x, INGOT_I32), INGOT_F32);
    ingot_set_origin(c, NULL, NULL);
    fails(whole, x, "node 'round_1' (Cast): gradient: the loss depends on it through integers");
    fails(ingot_cast(c, ingot_argmax(c, x, 0, false, false), INGOT_F32), x, "through integers");
    fails(ingot_bitcast(
              c, ingot_shl(c, ingot_bitcast(c, x, INGOT_U32), ingot_scalar_i(c, INGOT_U32, 1)),
              INGOT_F32),
          x, "through integers");
    fails(x, i, "tensor 0 is i64; only floats have a gradient");
    fails(x, ingot_expand(c, ingot_like(c, x, 0), 1, (ingot_dim *[]){k(c, 4)}),
          "tensor 0 is the constant 0");
    ingot_gradient(c, x, 1, &x, &g);
    assert_true(ingot_is_poison(g));
    assert_non_null(strstr(last_error, "the loss has shape [4]; it must be one number"));
    ingot_gradient_of(c, NULL, 1, &x, &i, 1, &x, &g);
    assert_non_null(
        strstr(last_error, "result 0 is f32 [4], what is given for its gradient i64 [4]"));
    assert_int_equal(ingot_context_status(c), INGOT_INVALID);
}

/* A path that is not asked for may have no rule, and so may one that a stop ends. */
static void not_on_the_way(void **state)
{
    (void)state;
    ingot_tensor *x = vector("x", INGOT_F64), *y = vector("y", INGOT_F64), *g;
    ingot_tensor *det = ingot_det(c, ingot_reshape_c(c, y, 2, (int64_t[]){2, 2}));
    g = gradient(ingot_mul(c, x, det), x);
    assert_non_null(g);
    assert_false(ingot_is_poison(g));
    det = ingot_det(c, ingot_reshape_c(c, x, 2, (int64_t[]){2, 2}));
    g = gradient(ingot_mul(c, x, ingot_stop(c, det)), x);
    assert_false(ingot_is_poison(g));
    assert_string_equal(last_error, "");
}

/* Indices are numbers of places: what is chosen changes in steps, and what is taken has a
 * gradient. */
static void chosen_by_value(void **state)
{
    (void)state;
    ingot_tensor *x = vector("x", INGOT_F64), *out[2];
    ingot_topk(c, x, k(c, 2), 0, true, out);
    assert_false(ingot_is_poison(gradient(ingot_take(c, x, out[1], 0), x)));
    assert_string_equal(last_error, "");
    fails(ingot_cast(c, out[1], INGOT_F64), x, "through integers");
}

static void several_targets(void **state)
{
    (void)state;
    ingot_tensor *x = vector("x", INGOT_F64), *y = ingot_mul(c, x, x), *z = ingot_exp(c, y);
    ingot_tensor *in[3] = {x, y, x}, *g[3];
    ingot_gradient(c, total(z), 3, in, g);
    assert_ptr_equal(g[0], g[2]);
    ingot_output(c, "gx", g[0]);
    ingot_output(c, "gy", g[1]);
    const double v[4] = {0.5, -1, 0, 2};
    ingot_value at = {.data = v, .rank = 1, .dims = {4}, .dtype = INGOT_F64}, out[2];
    assert_int_equal(ingot_interpret(c, 1, &at, 2, out), INGOT_OK);
    for (int i = 0; i < 4; i++) {
        double e = exp(v[i] * v[i]);
        assert_true(fabs(((const double *)out[0].data)[i] - 2 * v[i] * e) < 1e-12 * e * 4);
        assert_true(((const double *)out[1].data)[i] == e);
    }
}

/* x / 0.25, rounded and held within -2..2, as an i8, and back: straight through where that is
 * within the range, its ends too. */
static void straight_through(void **state)
{
    (void)state;
    ingot_tensor *x = vector("x", INGOT_F32), *g;
    ingot_tensor *q = ingot_clamp(c, ingot_round(c, ingot_mul_c(c, x, 4)), -2, 2);
    q = ingot_cast(c, ingot_cast(c, q, INGOT_I8), INGOT_F32);
    q = ingot_mul_c(c, q, 0.25);
    const ingot_gradient_options through = {.struct_size = sizeof through,
                                            .straight_through = true};
    ingot_gradient_of(c, &through, 1, &q, NULL, 1, &x, &g);
    assert_false(ingot_is_poison(g));
    ingot_output(c, "g", g);
    const float v[4] = {0.3f, -1, -0.5f, 2}, want[4] = {1, 0, 1, 0};
    ingot_value at = {.data = v, .rank = 1, .dims = {4}, .dtype = INGOT_F32}, out;
    assert_int_equal(ingot_interpret(c, 1, &at, 1, &out), INGOT_OK);
    assert_memory_equal(out.data, want, sizeof want);
    fails(q, x, "through integers");
}

/* Sums of narrow floats are computed in f32: 4096 times 1 is not 256. */
static void narrow_sums(void **state)
{
    (void)state;
    ingot_tensor *x = ingot_input(c, "x", INGOT_BF16, 0, NULL), *g;
    ingot_tensor *many = ingot_expand(c, x, 1, (ingot_dim *[]){k(c, 4096)});
    ingot_gradient_of(c, NULL, 1, &many, NULL, 1, &x, &g);
    double v;
    assert_true(ingot_const_float(c, ingot_cast(c, g, INGOT_F64), &v));
    assert_true(v == 4096);
}

/* ---- custom operators ----------------------------------------------------------------------- */

static const char custom_text[] =
    "#include <stdint.h>\n"
    "/* elementwise\n * default[k] = 1 */\n"
    "double cube(double x, double y, double k) { return k * x * x * x * y; }\n"
    "/* elementwise\n * default[k] = 1 */\n"
    "double cube_x(double x, double y, double z, double g, double k)\n"
    "{ (void)z; return g * k * 3 * x * x * y; }\n"
    "/* out[y] = in[x] */\n"
    "void sums(const double *x, double *y, int64_t n_x)\n"
    "{ double s = 0; for (int64_t i = 0; i < n_x; i++) y[i] = s += x[i]; }\n"
    "/* out[d] = in[x] */\n"
    "void sums_x(const double *x, const double *y, const double *g, double *d, int64_t n_x)\n"
    "{ double s = 0; (void)x, (void)y; for (int64_t i = n_x; i-- > 0;) d[i] = s += g[i]; }\n";

static char custom_file[] = "/tmp/ingot_gradient_XXXXXX.c";

/* The file's functions by their names. */
static void custom_ops(int n, const char *const *name, ingot_custom_op **op)
{
    int fd = mkstemps(custom_file, 2);
    assert_true(fd >= 0 && write(fd, custom_text, sizeof custom_text - 1) > 0);
    close(fd);
    for (int i = 0; i < n; i++)
        op[i] = ingot_custom_open(c, custom_file, name[i]);
}

static void of_custom_operators(void **state)
{
    (void)state;
    static const char *const name[] = {"cube", "cube_x", "sums", "sums_x"};
    ingot_tensor *x = vector("x", INGOT_F64), *y = vector("y", INGOT_F64), *cubes, *z, *g;
    ingot_custom_op *op[4];
    custom_ops(4, name, op);
    ingot_attribute two = {.name = "k", .kind = INGOT_ATTR_FLOAT, .f = 2};
    ingot_custom(c, op[0], 2, (ingot_tensor *[]){x, y}, 1, &two, 1, &cubes);
    if (ingot_context_status(c) == INGOT_UNSUPPORTED) { /* built without libclang */
        unlink(custom_file);
        skip();
    }
    if (ingot_is_poison(cubes))
        fail_msg("%s", last_error);
    ingot_custom_gradient(c, op[0], 0, op[1]);
    ingot_custom(c, op[2], 1, &cubes, 0, NULL, 1, &z);
    fails(z, x, "there is no rule for 'sums'");
    ingot_custom_gradient(c, op[2], 0, op[3]);
    fails(z, y, "there is no rule for 'cube'");
    g = gradient(z, x);
    assert_false(ingot_is_poison(g));
    ingot_output(c, "g", g);
    const double vx[4] = {1, 2, -1, 0.5}, vy[4] = {1, 1, 2, 4};
    ingot_value in[2] = {{.data = vx, .rank = 1, .dims = {4}, .dtype = INGOT_F64},
                         {.data = vy, .rank = 1, .dims = {4}, .dtype = INGOT_F64}},
                out;
    assert_int_equal(ingot_interpret(c, 2, in, 1, &out), INGOT_OK);
    unlink(custom_file);
    for (int i = 0; i < 4; i++) /* element i is in 4 - i of the sums */
        assert_true(((const double *)out.data)[i] == (4 - i) * 2 * 3 * vx[i] * vx[i] * vy[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(without_a_gradient), TEST(errors),
                                       TEST(not_on_the_way),     TEST(chosen_by_value),
                                       TEST(several_targets),    TEST(straight_through),
                                       TEST(narrow_sums),        TEST(of_custom_operators)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
