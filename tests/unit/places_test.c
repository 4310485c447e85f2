/* places_test.c - indices that are known now, against sizes that only the run knows: what is
 * required, and of what sizes. */
#include "build_test.h"

#include "compiler/compiler.h"

/* Status by size: x [n, 3] of n = 0, 1, ... 6; '.' ok, 'f' refused. */
static void sizes(ingot_tensor *y, const char *wanted)
{
    static const float v[64] = {1, 2, 3, 4, 5, 6, 7, 8};
    char got[8] = "";
    if (ingot_is_poison(y))
        fail_msg("poison: %s", last);
    ingot_output(c, "y", y);
    for (int64_t n = 0; n < 7; n++) {
        ingot_value in = {.data = v, .dims = {n, 3}, .rank = 2, .dtype = INGOT_F32}, out;
        got[n] = ingot_interpret(c, 1, &in, 1, &out) == INGOT_OK ? '.' : 'f';
    }
    assert_string_equal(got, wanted);
}

static ingot_dim *n;

static ingot_tensor *x_of(int64_t least)
{
    n = ingot_dim_var(c, "n", least, 6);
    return ingot_input(c, "x", INGOT_F32, 2, (ingot_dim *[]){n, k(3)});
}

static ingot_tensor *places(ingot_tensor *x, ingot_tensor *rows, ingot_tensor *columns)
{
    return ingot_index_checked(c, ingot_gather(c, x, (ingot_tensor *[]){rows, columns}), true);
}

static ingot_tensor *row(int64_t i)
{
    return ingot_scalar_i(c, INGOT_I64, i);
}

static void test_first(void **state)
{
    (void)state;
    sizes(ingot_take(c, x_of(0), row(0), 0), "f......");
    assert_non_null(
        strstr(last, "the size of axis 0, for its indices, is 0; it has to be in 1..6"));
}

static void test_last(void **state)
{
    (void)state;
    sizes(ingot_take(c, x_of(0), row(-1), 0), "f......");
}

static void test_list(void **state)
{
    (void)state;
    sizes(ingot_take(c, x_of(0), INTS(0, -4, 1), 0), "ffff...");
}

/* Of any type of integers, moved and cast. */
static void test_moved(void **state)
{
    (void)state;
    ingot_tensor *x = x_of(0), *i = ingot_flip(c, ingot_cast(c, INTS(0, 1, 2), INGOT_U8), 1);
    sizes(ingot_take(c, x, ingot_cast(c, i, INGOT_I32), 0), "fff....");
}

/* A tuple of constants beside one that the run decides. */
static void test_elements(void **state)
{
    (void)state;
    ingot_tensor *x = x_of(0);
    ingot_dim *dims[] = {k(2), k(3)};
    ingot_tensor *at[] = {ingot_iota(c, 2, dims, 0), ingot_iota(c, 2, dims, 1)};
    sizes(places(x, at[0], at[1]), "ff.....");
}

/* Integers of the run: [n - 3]. */
static void test_of_sizes(void **state)
{
    (void)state;
    ingot_tensor *x = x_of(0);
    ingot_tensor *i = ingot_from_dim(c, ingot_dim_sub(c, n, k(3)));
    sizes(ingot_take(c, x, i, 0), "ff.....");
}

/* The nearest place that there is: there is none. */
static void test_edge(void **state)
{
    (void)state;
    ingot_tensor *x = x_of(0), *zero = row(0);
    ingot_dim *out = ingot_dim_add(c, n, k(2));
    ingot_tensor *i = ingot_add_c(c, ingot_iota(c, 1, &out, 0), -1);
    i = ingot_min(c, ingot_max(c, i, zero), ingot_from_dim(c, ingot_dim_sub(c, n, k(1))));
    sizes(ingot_take(c, x, i, 0), "f......");
}

static void test_update(void **state)
{
    (void)state;
    ingot_tensor *x = x_of(0), *at[] = {INTS(2, 1), INTS(0, 0)};
    ingot_tensor *y = ingot_update(c, INGOT_SET, x, ingot_cast(c, INTS(7, 8), INGOT_F32), at);
    sizes(ingot_index_checked(c, y, true), "fff....");
}

static void test_arg(void **state)
{
    (void)state;
    sizes(ingot_argmax(c, x_of(0), 0, true, false), "f......");
    assert_non_null(strstr(last, "of which it gives a place, is 0"));
}

/* What pads below zero take away has to be there. */
static void test_crop(void **state)
{
    (void)state;
    ingot_tensor *x = x_of(0);
    ingot_dim *lo[] = {k(-2), k(0)}, *hi[] = {k(-1), k(1)};
    sizes(ingot_pad(c, x, lo, hi), "fff....");
    assert_non_null(strstr(last, "what negative pads leave of axis 0 is -1; it has to be in 0..3"));
}

/* Where nothing is read in such a run, nothing is required. */
static void test_nothing(void **state)
{
    (void)state;
    ingot_tensor *x = x_of(0), *i = ingot_iota(c, 1, &n, 0);
    ingot_tensor *back = ingot_sub(c, ingot_from_dim(c, ingot_dim_sub(c, n, k(1))), i);
    ingot_tensor *y = ingot_add(c, ingot_take(c, x, back, 0), ingot_take(c, x, INTS(2, 0, 1), 1));
    ingot_dim *half = ingot_dim_div(c, ingot_dim_add(c, n, k(1)), k(2));
    y = ingot_take(c, y, ingot_mul_c(c, ingot_iota(c, 1, &half, 0), 2), 0);
    (void)ingot_argmax(c, x, 1, true, false);
    assert_int_equal(c->require.n, 0);
    sizes(y, ".......");
}

/* Bounds that are enough are no check; those that never are, a fault at once. */
static void test_bounds(void **state)
{
    (void)state;
    ingot_tensor *x = x_of(2), *at[] = {INTS(6), INTS(0)};
    assert_false(ingot_is_poison(ingot_take(c, x, INTS(-2, 1), 0)));
    assert_false(ingot_is_poison(ingot_take(c, x, row(-1), 0)));
    assert_int_equal(c->require.n, 0);
    expect_error(ingot_take(c, x, INTS(0, 6), 0), "index 6 is outside axis 0 of shape [n, 3]");
    expect_error(ingot_take(c, x, INTS(0, -7), 0), "index -7 is outside axis 0 of shape [n, 3]");
    expect_error(ingot_take(c, x, INTS(0, 3), 1), "index 3 is outside axis 1 of shape [n, 3]");
    expect_error(ingot_index_checked(c, ingot_gather(c, x, at), false),
                 "index 6 is outside axis 0");
}

/* Places outside for certain, which nothing asks for: no index at all, or none in such a run. */
static void test_of_none(void **state)
{
    (void)state;
    ingot_dim *none[] = {k(0)};
    ingot_tensor *x = x_of(0);
    ingot_tensor *y = ingot_take(c, x, ingot_expand(c, row(7), 1, none), 0);
    assert_int_equal(c->require.n, 0);
    assert_true(!ingot_is_poison(y) && idx_is(y->shape[0], 0));
    y = ingot_take(c, ingot_slice(c, x, 1, k(0), k(0), 1), ingot_expand(c, row(0), 1, none), 1);
    assert_int_equal(c->require.n, 0);
    assert_false(ingot_is_poison(y));
    sizes(ingot_take(c, x, ingot_expand(c, row(7), 1, &n), 0), ".ffffff");
    assert_non_null(strstr(last, "the number of indices outside of axis 0 is 6; it has to be 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first),    TEST(last),   TEST(list),    TEST(moved), TEST(elements),
        TEST(of_sizes), TEST(edge),   TEST(update),  TEST(arg),   TEST(crop),
        TEST(nothing),  TEST(bounds), TEST(of_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
