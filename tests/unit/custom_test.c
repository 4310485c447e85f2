/* custom_test.c - custom operators from C: a function of one element, folded and interpreted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler.h"

static void a_function_of_one_element(void **state)
{
    (void)state;
    ingot_context *c = ingot_context_new(NULL, NULL);
    ingot_custom_op *op = ingot_custom_open(c, "examples/custom_op/swish.c", NULL);
    ingot_attribute beta = {.name = "beta", .kind = INGOT_ATTR_FLOAT, .f = 0.0};
    static const float two[2] = {2.0f, -3.0f};
    ingot_tensor *x = ingot_data(c, "x", INGOT_F32, 1, (int64_t[]){2}, two), *y;
    ingot_custom(c, op, 1, &x, 1, &beta, 1, &y);
    if (ingot_context_status(c) == INGOT_UNSUPPORTED) { /* built without libclang */
        ingot_context_free(c);
        skip();
    }
    assert_int_equal(ingot_context_status(c), INGOT_OK);
    assert_true(ingot_is_const(y)); /* x / (1 + exp(0)) of constants */
    Interp *ip = interp_new(c);
    int64_t dims[INGOT_MAX_RANK];
    const float *v = interp_eval(ip, y, dims);
    assert_non_null(v);
    assert_int_equal(dims[0], 2);
    assert_true(v[0] == 1.0f && v[1] == -1.5f);
    interp_free(ip);
    assert_ptr_equal(op, ingot_custom_open(c, "examples/custom_op/swish.c", NULL));
    beta.name = "gamma";
    ingot_custom(c, op, 1, &x, 1, &beta, 1, &y);
    assert_true(ingot_is_poison(y));
    assert_int_equal(ingot_context_status(c), INGOT_INVALID);
    ingot_context_free(c);
}

static void its_node_as_text(void **state)
{
    (void)state;
    ingot_context *c = ingot_context_new(NULL, NULL);
    ingot_custom_op *op = ingot_custom_open(c, "examples/custom_op/swish.c", NULL);
    ingot_attribute beta = {.name = "beta", .kind = INGOT_ATTR_FLOAT, .f = 1.5};
    ingot_dim *two = ingot_dim_const(c, 2);
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 1, &two), *y, *z;
    ingot_custom(c, op, 1, &x, 1, &beta, 1, &y);
    ingot_custom(c, op, 1, &x, 1, &beta, 1, &z);
    if (ingot_context_status(c) == INGOT_UNSUPPORTED) { /* built without libclang */
        ingot_context_free(c);
        skip();
    }
    assert_ptr_equal(y, z);
    assert_int_equal(y->op, OP_CUSTOM);
    StrBuf sb = {0};
    char error[200];
    int n;
    text_print(&sb, 1, &y);
    assert_non_null(strstr(sb.data, "custom f32 [2] \"op_swish\" ints() floats(0x1.8p+0)"));
    Node **back = text_parse(c, sb.data, &n, error, sizeof error);
    assert_non_null(back);
    assert_ptr_equal(back[0], y);
    sb_free(&sb);
    ingot_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_function_of_one_element),
                                       cmocka_unit_test(its_node_as_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
