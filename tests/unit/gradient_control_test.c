/* gradient_control_test.c - gradients through branches and loops: recurrent networks, captured
 * and carried values, sequences, loops that end by a condition, loops in loops; each beside
 * central differences, and once more differentiated. */
#include "gradient_cases.h"

#define D(...)      \
    {               \
        __VA_ARGS__ \
    }
#define X x[0]
#define Y x[1]
#define Z x[2]

static ingot_dim *k(ingot_context *c, int64_t v)
{
    return ingot_dim_const(c, v);
}

static ingot_tensor *total(ingot_context *c, ingot_tensor *x)
{
    return ingot_sum(c, x, (1u << ingot_rank(x)) - 1, false);
}

/* ---- branches -------------------------------------------------------------------------------- */

/* Where the sum of x is positive (times sign): sin(x) y, exp(x); else y^2, x z */
static ingot_tensor *branch(ingot_context *c, ingot_tensor *const *x, double sign)
{
    ingot_tensor *out[2];
    ingot_tensor *cond = ingot_gt(c, ingot_mul_c(c, total(c, X), sign), ingot_like(c, X, 0));
    ingot_region *yes = ingot_region_begin(c);
    ingot_tensor *of_yes[2] = {ingot_mul(c, ingot_sin(c, X), Y), ingot_exp(c, X)};
    ingot_region_end(c, yes, 2, of_yes);
    ingot_region *no = ingot_region_begin(c);
    ingot_tensor *of_no[2] = {ingot_mul(c, Y, Y), ingot_mul(c, X, ingot_cos(c, Z))};
    ingot_region_end(c, no, 2, of_no);
    ingot_if(c, cond, yes, no, 2, out);
    return ingot_sin(c, ingot_add(c, ingot_mul(c, out[0], out[0]), out[1]));
}

static ingot_tensor *f_then(ingot_context *c, ingot_tensor *const *x)
{
    return branch(c, x, 1);
}

static ingot_tensor *f_else(ingot_context *c, ingot_tensor *const *x)
{
    return branch(c, x, -1);
}

static void branches(void **state)
{
    (void)state;
    static const GradientCase all[] = {
        {"then", f_then, 0.1, 1, 0, 3, D(1, 1, 1), D(D(4), D(4), D(4))},
        {"else", f_else, 0.1, 1, 0, 3, D(1, 1, 1), D(D(4), D(4), D(4))}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_case(&all[i]);
}

/* ---- loops ----------------------------------------------------------------------------------- */

typedef struct {
    ingot_region *body;
    ingot_tensor *i, *cond, *carried[3];
} LoopBody;

static LoopBody body_begin(ingot_context *c, int n, ingot_tensor *const *start)
{
    LoopBody b = {.body = ingot_region_begin(c)};
    b.i = ingot_region_param(c, b.body, INGOT_I64, 0, NULL);
    b.cond = ingot_region_param(c, b.body, INGOT_BOOL, 0, NULL);
    for (int i = 0; i < n; i++)
        b.carried[i] = ingot_region_param_like(c, b.body, start[i]);
    return b;
}

/* s = tanh(s w + row t of x), stacking s^2; x [5, 3], w [3, 3], start [3] */
static ingot_tensor *f_steps(ingot_context *c, ingot_tensor *const *x)
{
    ingot_tensor *out[2];
    LoopBody b = body_begin(c, 1, &Z);
    ingot_tensor *row = ingot_take(c, X, b.i, 0);
    ingot_tensor *s = ingot_tanh(c, ingot_add(c, ingot_matmul(c, b.carried[0], Y), row));
    ingot_region_end(c, b.body, 3, (ingot_tensor *[]){b.cond, s, ingot_mul(c, s, s)});
    ingot_loop(c, k(c, 5), NULL, 1, &Z, b.body, 1, out);
    return ingot_concat(c, 2, (ingot_tensor *[]){ingot_unsqueeze(c, out[0], 0), out[1]}, 0);
}

/* Two carried values, of which one has no path; what is captured is used in every way:
 * elementwise, as a product, as is. */
static ingot_tensor *f_captured(ingot_context *c, ingot_tensor *const *x)
{
    ingot_tensor *start[2] = {X, ingot_expand(c, ingot_like(c, X, 2), 1, (ingot_dim *[]){k(c, 3)})};
    ingot_tensor *out[2];
    LoopBody b = body_begin(c, 2, start);
    ingot_tensor *p = b.carried[0], *q = b.carried[1];
    ingot_tensor *next = ingot_add(c, ingot_sin(c, ingot_mul(c, p, Y)), ingot_matmul(c, Z, p));
    next = ingot_add(c, ingot_mul(c, next, q), Y);
    ingot_region_end(c, b.body, 3, (ingot_tensor *[]){b.cond, next, ingot_mul_c(c, q, 0.5)});
    ingot_loop(c, k(c, 3), NULL, 2, start, b.body, 0, out);
    return out[0];
}

static ingot_tensor *steeper(ingot_context *c, ingot_tensor *p, ingot_tensor *y)
{
    ingot_tensor *more = ingot_mul(c, y, ingot_exp(c, ingot_neg(c, p)));
    return ingot_add(c, p, ingot_mul_c(c, more, 0.5));
}

/* Until the carried sum is beyond a bound, at most 10 times: it ends after a few. */
static ingot_tensor *f_until(ingot_context *c, ingot_tensor *const *x)
{
    ingot_tensor *out[2];
    LoopBody b = body_begin(c, 1, &X);
    ingot_tensor *next = steeper(c, b.carried[0], Y);
    ingot_tensor *go = ingot_lt(c, total(c, next), ingot_scalar_f(c, INGOT_F64, 3));
    ingot_region_end(c, b.body, 2, (ingot_tensor *[]){go, next});
    ingot_loop(c, k(c, 10), NULL, 1, &X, b.body, 0, out);
    return ingot_sin(c, out[0]);
}

/* The same with the steps stacked, whose number only the run knows. */
static ingot_tensor *f_until_stacked(ingot_context *c, ingot_tensor *const *x)
{
    ingot_tensor *out[2];
    LoopBody b = body_begin(c, 1, &X);
    ingot_tensor *next = steeper(c, b.carried[0], Y);
    ingot_tensor *go = ingot_lt(c, total(c, next), ingot_scalar_f(c, INGOT_F64, 3));
    ingot_region_end(c, b.body, 3, (ingot_tensor *[]){go, next, ingot_mul(c, next, Y)});
    ingot_loop(c, k(c, 10), NULL, 1, &X, b.body, 1, out);
    return ingot_sum(c, ingot_sin(c, out[1]), 1, false);
}

/* A loop in a loop, over the outer's value, the outer's captures and the outer's counter. */
static ingot_tensor *f_nested(ingot_context *c, ingot_tensor *const *x)
{
    ingot_tensor *out[1], *in[2];
    LoopBody b = body_begin(c, 1, &X);
    ingot_tensor *start = ingot_sin(c, b.carried[0]);
    LoopBody q = body_begin(c, 1, &start);
    ingot_tensor *t = ingot_cast(c, ingot_add(c, b.i, q.i), INGOT_F64);
    ingot_tensor *next =
        ingot_add(c, ingot_matmul(c, Y, q.carried[0]), ingot_mul(c, b.carried[0], t));
    next = ingot_mul_c(c, ingot_tanh(c, next), 0.7);
    ingot_region_end(c, q.body, 3, (ingot_tensor *[]){q.cond, next, ingot_mul(c, next, next)});
    ingot_loop(c, k(c, 2), NULL, 1, &start, q.body, 1, in);
    ingot_tensor *sum = ingot_add(c, in[0], ingot_sum(c, in[1], 1, false));
    ingot_region_end(c, b.body, 2, (ingot_tensor *[]){b.cond, sum});
    ingot_loop(c, k(c, 3), NULL, 1, &X, b.body, 0, out);
    return out[0];
}

/* A branch in a loop. */
static ingot_tensor *f_branch_in_loop(ingot_context *c, ingot_tensor *const *x)
{
    ingot_tensor *out[1], *chosen;
    LoopBody b = body_begin(c, 1, &X);
    ingot_tensor *even = ingot_eq(c, ingot_mod(c, b.i, ingot_scalar_i(c, INGOT_I64, 2)),
                                  ingot_scalar_i(c, INGOT_I64, 0));
    ingot_region *yes = ingot_region_begin(c);
    ingot_tensor *of_yes = ingot_sin(c, ingot_mul(c, b.carried[0], Y));
    ingot_region_end(c, yes, 1, &of_yes);
    ingot_region *no = ingot_region_begin(c);
    ingot_tensor *of_no = ingot_add(c, ingot_exp(c, b.carried[0]), Y);
    ingot_region_end(c, no, 1, &of_no);
    ingot_if(c, even, yes, no, 1, &chosen);
    ingot_region_end(c, b.body, 2, (ingot_tensor *[]){b.cond, ingot_mul_c(c, chosen, 0.5)});
    ingot_loop(c, k(c, 4), NULL, 1, &X, b.body, 0, out);
    return out[0];
}

/* Products of others, running maxima and the like inside of a body. */
static ingot_tensor *f_ops_in_loop(ingot_context *c, ingot_tensor *const *x)
{
    ingot_tensor *out[1];
    LoopBody b = body_begin(c, 1, &X);
    ingot_tensor *s = b.carried[0];
    ingot_tensor *product = ingot_reduce(c, INGOT_REDUCE_MUL, s, 2, true);
    ingot_tensor *scan = ingot_scan(c, INGOT_REDUCE_MUL, s, 1),
                 *soft = ingot_softmax(c, ingot_add(c, s, Y), 1);
    s = ingot_add(c, ingot_add(c, product, scan), soft);
    s = ingot_mul_c(c, ingot_add(c, s, ingot_cumsum(c, s, 0, true, false)), 0.3);
    ingot_region_end(c, b.body, 2, (ingot_tensor *[]){b.cond, s});
    ingot_loop(c, k(c, 3), NULL, 1, &X, b.body, 0, out);
    return out[0];
}

static void loops(void **state)
{
    (void)state;
    static const GradientCase all[] = {
        {"steps", f_steps, -1, 1, 0, 3, D(2, 2, 1), D(D(5, 3), D(3, 3), D(3))},
        {"captured", f_captured, -1, 1, 0, 3, D(1, 1, 2), D(D(3), D(3), D(3, 3))},
        {"until", f_until, 0.1, 1, 0, 2, D(1, 1), D(D(3), D(3))},
        {"until_stacked", f_until_stacked, 0.1, 1, 0, 2, D(1, 1), D(D(3), D(3))},
        {"nested", f_nested, -1, 1, 0, 2, D(1, 2), D(D(3), D(3, 3))},
        {"branch in loop", f_branch_in_loop, -1, 1, 0, 2, D(1, 1), D(D(3), D(3))},
        {"ops in loop", f_ops_in_loop, -1, 1, 0, 2, D(2, 2), D(D(2, 3), D(2, 3))}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_case(&all[i]);
}

/* ---- recurrent networks ---------------------------------------------------------------------- */

static ingot_tensor *f_lstm(ingot_context *c, ingot_tensor *const *x)
{
    ingot_tensor *out[3];
    ingot_lstm(c, X, &(ingot_recurrence){.w = Y, .r = Z, .b = x[3], .peephole = x[4]}, out);
    return ingot_add(c, ingot_mul(c, out[0], out[1]), out[2]);
}

static ingot_tensor *f_gru(ingot_context *c, ingot_tensor *const *x)
{
    ingot_tensor *out[2],
        *lengths = ingot_data(c, NULL, INGOT_I64, 1, (int64_t[]){2}, (int64_t[]){4, 2});
    lengths = ingot_add(c, ingot_scalar_i(c, INGOT_I64, 3),
                        ingot_iota(c, 1, (ingot_dim *[]){k(c, 2)}, 0));
    ingot_gru(
        c, X,
        &(ingot_recurrence){
            .w = Y, .r = Z, .rb = x[3], .lengths = lengths, .reverse = true, .reset_after = true},
        out);
    return ingot_sin(c, ingot_add(c, out[0], out[1]));
}

static ingot_tensor *f_rnn(ingot_context *c, ingot_tensor *const *x)
{
    ingot_tensor *out[2];
    ingot_rnn(c, X, &(ingot_recurrence){.w = Y, .r = Z, .state = x[3], .last_only = true}, out);
    return out[1];
}

static void recurrent(void **state)
{
    (void)state;
    static const GradientCase all[] = {
        {"lstm", f_lstm, -1, 1, 0, 5, D(3, 2, 2, 1, 1),
         D(D(4, 2, 3), D(8, 3), D(8, 2), D(8), D(6))},
        {"gru", f_gru, -1, 1, 0, 4, D(3, 2, 2, 1), D(D(4, 2, 3), D(6, 3), D(6, 2), D(6))},
        {"rnn", f_rnn, -1, 1, 0, 4, D(3, 2, 2, 2), D(D(3, 2, 3), D(2, 3), D(2, 2), D(2, 2))}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_case(&all[i]);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static ingot_tensor *first_gradient(ingot_context *c, ingot_tensor *y, ingot_tensor *x)
{
    ingot_tensor *g;
    last_error[0] = 0;
    ingot_gradient(c, total(c, y), 1, &x, &g);
    return g;
}

static void errors(void **state)
{
    (void)state;
    ingot_context *c = ingot_context_new(keep_error, NULL);
    ingot_tensor *x = ingot_input(c, "x", INGOT_F64, 1, (ingot_dim *[]){k(c, 4)}), *out[1];
    /* nothing says how often */
    LoopBody b = body_begin(c, 1, &x);
    ingot_tensor *next = ingot_mul_c(c, b.carried[0], 2);
    ingot_tensor *go = ingot_lt(c, total(c, next), ingot_scalar_f(c, INGOT_F64, 40));
    ingot_region_end(c, b.body, 2, (ingot_tensor *[]){go, next});
    ingot_loop(c, NULL, NULL, 1, &x, b.body, 0, out);
    assert_true(ingot_is_poison(first_gradient(c, out[0], x)));
    assert_non_null(strstr(last_error, "this loop has no bound on its iterations"));
    /* no rule inside of a body; integers that are carried */
    ingot_set_origin(c, "det_2", "Det");
    b = body_begin(c, 1, &x);
    next = ingot_mul(c, b.carried[0],
                     ingot_det(c, ingot_reshape_c(c, b.carried[0], 2, (int64_t[]){2, 2})));
    ingot_region_end(c, b.body, 2, (ingot_tensor *[]){b.cond, next});
    ingot_loop(c, k(c, 3), NULL, 1, &x, b.body, 0, out);
    assert_true(ingot_is_poison(first_gradient(c, out[0], x)));
    assert_non_null(strstr(last_error, "node 'det_2' (Det): gradient: there is no rule for 'det'"));
    ingot_tensor *whole = ingot_cast(c, x, INGOT_I32);
    b = body_begin(c, 1, &whole);
    ingot_region_end(c, b.body, 2, (ingot_tensor *[]){b.cond, ingot_add(c, b.carried[0], whole)});
    ingot_loop(c, k(c, 3), NULL, 1, &whole, b.body, 0, out);
    assert_true(ingot_is_poison(first_gradient(c, ingot_cast(c, out[0], INGOT_F64), x)));
    assert_non_null(strstr(last_error, "through integers"));
    ingot_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(branches), cmocka_unit_test(loops),
                                       cmocka_unit_test(recurrent), cmocka_unit_test(errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
