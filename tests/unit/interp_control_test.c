/* interp_control_test.c - control flow, run-time dims and contents of shape tensors in the
 * reference interpreter. */
#include "interp_test.h"

static ingot_value value(ingot_dtype t, const void *p, int rank, int64_t d0, int64_t d1)
{
    return (ingot_value){.data = p, .dtype = t, .rank = rank, .dims = {d0, d1}};
}

static void run_time_dims(void **state)
{
    ingot_context *c = *state;
    ingot_dim *n = ingot_dim_var(c, "n", 1, 100);
    ingot_dim *d[2] = {n, ingot_dim_const(c, 2)},
              *e[1] = {ingot_dim_mul(c, n, ingot_dim_const(c, 2))};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, d),
                 *y = ingot_input(c, "y", INGOT_F32, 1, e);
    ingot_output(c, "sum", ingot_add(c, ingot_reshape(c, x, 1, e), y));
    ingot_output(c, "rows", ingot_from_dim(c, n));
    const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {10, 20, 30, 40, 50, 60};
    ingot_value in[2] = {value(INGOT_F32, a, 2, 3, 2), value(INGOT_F32, b, 1, 6, 0)}, out[2];
    assert_int_equal(ingot_interpret(c, 2, in, 2, out), INGOT_OK);
    assert_int_equal(out[0].rank, 1);
    assert_int_equal(out[0].dims[0], 6);
    for (int i = 0; i < 6; i++)
        assert_true(((const float *)out[0].data)[i] == a[i] + b[i]);
    assert_int_equal(*(const int64_t *)out[1].data, 3);
    in[1].dims[0] = 5;
    assert_int_equal(ingot_interpret(c, 2, in, 2, out), INGOT_USAGE);
    assert_string_equal(last_message, "input 'y': dim 0 is 5; it must be 6");
}

/* (a, b) = (b, a + b), stacking a; the condition may end it early. */
static void loop(ingot_context *c, ingot_dim *trip, int64_t limit, ingot_tensor *out[3])
{
    ingot_tensor *start[2] = {ingot_scalar_i(c, INGOT_I64, 0), ingot_scalar_i(c, INGOT_I64, 1)};
    ingot_region *r = ingot_region_begin(c);
    ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_tensor *cond = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *a = ingot_region_param_like(c, r, start[0]),
                 *b = ingot_region_param_like(c, r, start[1]);
    ingot_tensor *next = ingot_add(c, a, b);
    if (limit)
        cond = ingot_lt(c, next, ingot_scalar_i(c, INGOT_I64, limit));
    ingot_tensor *results[4] = {cond, b, next, a};
    ingot_region_end(c, r, 4, results);
    ingot_loop(c, trip, NULL, 2, start, r, 1, out);
}

static void loops(void **state)
{
    ingot_context *c = *state;
    ingot_tensor *out[3];
    int64_t v, stack[10];
    loop(c, ingot_dim_const(c, 10), 0, out);
    eval(c, out[0], &v, sizeof v);
    assert_int_equal(v, 55);
    eval(c, out[2], stack, sizeof stack);
    const int64_t fib[10] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34};
    assert_memory_equal(stack, fib, sizeof fib);

    /* ends early: the number of iterations is a run-time integer */
    loop(c, ingot_dim_const(c, 10), 10, out);
    eval(c, ingot_sum(c, out[2], 1, false), &v, sizeof v);
    assert_int_equal(v, 0 + 1 + 1 + 2 + 3 + 5);
    eval(c, ingot_from_dim(c, ingot_shape(out[2], 0)), &v, sizeof v);
    assert_int_equal(v, 6);

    /* one iteration: no loop is left of it */
    loop(c, ingot_dim_const(c, 1), 0, out);
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(out[i]->op, OP_PROJ);
    eval(c, out[0], &v, sizeof v);
    assert_int_equal(v, 1);
    eval(c, out[2], stack, sizeof v);
    assert_int_equal(stack[0], 0);
    assert_int_equal(out[2]->rank, 1);

    /* none at all */
    ingot_dim *n = ingot_dim_var(c, "trips", 0, 5);
    loop(c, n, 0, out);
    Interp *ip = interp_new(c);
    interp_set_var(ip, (int)n->arg.i, 0);
    int64_t dims[INGOT_MAX_RANK];
    assert_non_null(interp_eval(ip, out[2], dims));
    assert_int_equal(dims[0], 0);
    assert_int_equal(*(const int64_t *)interp_eval(ip, out[1], NULL), 1);
    interp_free(ip);
}

/* sum over i < 3, j < 4 of (w . w) * (10 i + j): a nest, an invariant, a captured value */
static void nested_loops(void **state)
{
    ingot_context *c = *state;
    static float big[5000];
    double ww = 0;
    for (int i = 0; i < 5000; i++) {
        big[i] = (float)(i % 7);
        ww += (double)big[i] * (double)big[i];
    }
    ingot_tensor *w = vec(c, INGOT_F32, 5000, big), *zero = ingot_scalar_f(c, INGOT_F32, 0),
                 *out[1], *inner[1];
    ingot_region *r = ingot_region_begin(c);
    ingot_tensor *i = ingot_region_param(c, r, INGOT_I64, 0, NULL),
                 *ci = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *s = ingot_region_param_like(c, r, zero);
    ingot_region *q = ingot_region_begin(c);
    ingot_tensor *j = ingot_region_param(c, q, INGOT_I64, 0, NULL),
                 *cj = ingot_region_param(c, q, INGOT_BOOL, 0, NULL);
    ingot_tensor *t = ingot_region_param_like(c, q, zero);
    ingot_tensor *norm = ingot_sum(c, ingot_mul(c, w, w), 1, false);
    ingot_tensor *k = ingot_cast(c, ingot_add(c, ingot_mul_c(c, i, 10), j), INGOT_F32);
    ingot_tensor *rq[2] = {cj, ingot_add(c, t, ingot_mul(c, norm, k))};
    ingot_region_end(c, q, 2, rq);
    ingot_loop(c, ingot_dim_const(c, 4), NULL, 1, &s, q, 0, inner);
    ingot_tensor *rr[2] = {ci, inner[0]};
    ingot_region_end(c, r, 2, rr);
    ingot_loop(c, ingot_dim_const(c, 3), NULL, 1, &zero, r, 0, out);
    float v;
    eval(c, out[0], &v, sizeof v);
    assert_true(v == (float)(ww * (10 * (0 + 1 + 2) * 4 + (0 + 1 + 2 + 3) * 3)));
}

static void branches(void **state)
{
    ingot_context *c = *state;
    ingot_dim *d[1] = {ingot_dim_const(c, 2)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 1, d), *y, *res;
    ingot_tensor *cond = ingot_lt(c, ingot_sum(c, x, 1, false), ingot_scalar_f(c, INGOT_F32, 0));
    ingot_region *a = ingot_region_begin(c);
    res = ingot_neg(c, x);
    ingot_region_end(c, a, 1, &res);
    ingot_region *b = ingot_region_begin(c);
    res = ingot_mul_c(c, x, 2);
    ingot_region_end(c, b, 1, &res);
    ingot_if(c, cond, a, b, 1, &y);
    ingot_output(c, "y", ingot_add(c, y, x));
    const float in[2][2] = {{1, 2}, {-1, -2}}, want[2][2] = {{3, 6}, {0, 0}};
    for (int k = 0; k < 2; k++) {
        ingot_value iv = value(INGOT_F32, in[k], 1, 2, 0), ov;
        assert_int_equal(ingot_interpret(c, 1, &iv, 1, &ov), INGOT_OK);
        assert_memory_equal(ov.data, want[k], sizeof want[k]);
    }
}

/* A shape that a library kernel decides; a value of that shape which does not depend on the
 * kernel's outputs; the count inside a loop. */
static void counts(void **state)
{
    ingot_context *c = *state;
    ingot_dim *d[1] = {ingot_dim_const(c, 6)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 1, d);
    ingot_tensor *at_x = ingot_nonzero(c, x); /* [1, n] */
    ingot_dim *n = ingot_shape(at_x, 1);
    ingot_output(c, "count", ingot_sum(c, ingot_add_c(c, ingot_iota(c, 1, &n, 0), 1), 1, false));
    ingot_output(c, "where", ingot_mul_c(c, at_x, 10));
    const float in[6] = {0, 1, 0, 5, -2, 0};
    ingot_value iv = value(INGOT_F32, in, 1, 6, 0), ov[2];
    assert_int_equal(ingot_interpret(c, 1, &iv, 2, ov), INGOT_OK);
    assert_int_equal(*(const int64_t *)ov[0].data, 1 + 2 + 3);
    assert_int_equal(ov[1].dims[1], 3);
    const int64_t want[3] = {10, 30, 40};
    assert_memory_equal(ov[1].data, want, sizeof want);

    ingot_tensor *zero = ingot_scalar_i(c, INGOT_I64, 0), *out;
    ingot_region *r = ingot_region_begin(c);
    ingot_tensor *i = ingot_region_param(c, r, INGOT_I64, 0, NULL),
                 *cond = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *s = ingot_region_param_like(c, r, zero);
    ingot_tensor *some = ingot_lt(c, ingot_iota(c, 1, d, 0), i); /* i of them are true */
    ingot_tensor *found = ingot_nonzero(c, some);
    ingot_tensor *res[2] = {cond, ingot_add(c, s, ingot_from_dim(c, ingot_shape(found, 1)))};
    ingot_region_end(c, r, 2, res);
    ingot_loop(c, ingot_dim_const(c, 5), NULL, 1, &zero, r, 0, &out);
    int64_t v;
    eval(c, out, &v, sizeof v);
    assert_int_equal(v, 0 + 1 + 2 + 3 + 4);
}

/* ---- contents -------------------------------------------------------------------------------- */

static void contents(void **state)
{
    ingot_context *c = *state;
    ingot_dim *n = ingot_dim_var(c, "batch", 1, 64);
    ingot_dim *d[3] = {n, ingot_dim_const(c, 12), ingot_dim_const(c, 5)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 3, d);
    ingot_tensor *shape = ingot_from_dims(c, 3, d);
    ingot_dim *out[8];

    assert_int_equal(ingot_contents(c, shape, out, 8), 3);
    assert_true(out[0] == n && ingot_dim_is_const(out[1], NULL));
    /* concat(shape[0] * 4, -1, shape[1] / 4) through take, stack and casts */
    const int64_t zero = 0, minus = -1;
    ingot_tensor *first = ingot_take(c, shape, vec(c, INGOT_I64, 1, &zero), 0);
    ingot_tensor *last = ingot_take(c, shape, vec(c, INGOT_I64, 1, &minus), 0);
    ingot_tensor *parts[3] = {
        ingot_mul_c(c, ingot_cast(c, first, INGOT_I32), 4), vec(c, INGOT_I32, 1, (int32_t[]){-1}),
        ingot_div(c, ingot_cast(c, last, INGOT_I32), ingot_scalar_i(c, INGOT_I32, 2))};
    ingot_tensor *cat = ingot_cast(c, ingot_concat(c, 3, parts, 0), INGOT_I64);
    assert_int_equal(ingot_contents(c, cat, out, 8), 3);
    assert_true(ingot_dim_equal(out[0], ingot_dim_mul(c, n, ingot_dim_const(c, 4))));
    int64_t v = 0;
    assert_true(ingot_dim_is_const(out[1], &v) && v == -1);
    assert_true(ingot_dim_is_const(out[2], &v) && v == 2);
    assert_int_equal(ingot_contents(c, cat, out, 2), -1);
    /* product of all, comparison as 0 or 1 */
    assert_int_equal(ingot_contents(c, ingot_reduce(c, INGOT_REDUCE_MUL, shape, 1, false), out, 1),
                     1);
    assert_true(ingot_dim_equal(out[0], ingot_numel(c, x)));
    ingot_tensor *less = ingot_lt(c, shape, ingot_scalar_i(c, INGOT_I64, 100));
    assert_int_equal(ingot_contents(c, less, out, 8), 3);
    assert_true(ingot_dim_is_const(out[0], &v) && v == 1);
    ingot_tensor *where = ingot_where(c, ingot_eq(c, shape, ingot_scalar_i(c, INGOT_I64, 12)),
                                      ingot_neg(c, shape), shape);
    assert_int_equal(ingot_contents(c, where, out, 8), 3);
    assert_true(ingot_dim_is_const(out[1], &v) && v == -12);
    /* what Resize is given: floor(float(shape) * scale), where the dims are constant */
    const float scale[2] = {2.5f, 0.4f};
    ingot_tensor *hw = ingot_from_dims(c, 2, d + 1);
    ingot_tensor *size = ingot_cast(
        c, ingot_floor(c, ingot_mul(c, ingot_cast(c, hw, INGOT_F32), vec(c, INGOT_F32, 2, scale))),
        INGOT_I64);
    int64_t ints[4];
    int count;
    assert_true(ingot_const_ints(c, size, ints, 4, &count));
    assert_true(count == 2 && ints[0] == 30 && ints[1] == 2);
    double f;
    assert_true(ingot_const_float(c, ingot_exp(c, ingot_scalar_f(c, INGOT_F32, 1)), &f));
    assert_true(f == (double)expf(1));
    /* scatter into a shape */
    ingot_tensor *at0[1] = {vec(c, INGOT_I64, 1, &zero)};
    ingot_tensor *scattered = ingot_update(c, INGOT_SET, shape, last, at0);
    assert_int_equal(ingot_contents(c, scattered, out, 8), 3);
    assert_true(ingot_dim_is_const(out[0], &v) && v == 5);
    /* data */
    assert_int_equal(ingot_contents(c, ingot_cast(c, ingot_sum(c, x, 7, false), INGOT_I64), out, 8),
                     -1);
    assert_false(ingot_const_ints(c, shape, ints, 4, &count));
    assert_false(ingot_is_const(shape));
    assert_true(ingot_is_const(size));
    float data_out[2];
    assert_true(ingot_const_data(c, ingot_mul_c(c, vec(c, INGOT_F32, 2, scale), 2), data_out,
                                 sizeof data_out));
    assert_true(data_out[0] == 5.0f && data_out[1] == 0.8f);
}

static void unbound(void **state)
{
    ingot_context *c = *state;
    ingot_dim *d[1] = {ingot_dim_const(c, 2)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 1, d);
    Interp *ip = interp_new(c);
    assert_null(interp_eval(ip, ingot_neg(c, x), NULL));
    assert_string_equal(last_message, "interpreter: input x has no value");
    const float v[2] = {1, 2};
    interp_bind(ip, x, v);
    const float *r = interp_eval(ip, ingot_neg(c, x), NULL);
    assert_true(r && r[1] == -2);
    interp_free(ip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(run_time_dims), TEST(loops),    TEST(nested_loops), TEST(branches),
        TEST(counts),        TEST(contents), TEST(unbound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
