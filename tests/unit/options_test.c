/* options_test.c - ingot_options: zeros are the defaults, and what could not be seen is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot.h"

static char last[512];

static void note(void *user, ingot_level level, const char *message)
{
    (void)user, (void)level;
    snprintf(last, sizeof last, "%s", message);
}

/* The kernels of a sum of products as text. */
static char *kernels(const ingot_options *o)
{
    ingot_context *c = ingot_context_new(note, NULL);
    const int64_t dims[] = {64, 64};
    float *w = ingot_alloc(c, 64 * 64 * sizeof *w);
    ingot_dim *shape[] = {ingot_dim_const(c, 32), ingot_dim_const(c, 64)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, shape);
    ingot_output(c, "y", ingot_matmul(c, x, ingot_data(c, "w", INGOT_F32, 2, dims, w)));
    char *text = ingot_dump(c, o, "kernels");
    ingot_context_free(c);
    return text;
}

static void test_zeros_are_the_defaults(void **state)
{
    (void)state;
    const ingot_options zeros = {0}, sized = {.struct_size = sizeof sized},
                        naive = {.struct_size = sizeof naive, .naive = true};
    char *a = kernels(&zeros), *b = kernels(&sized), *c = kernels(NULL), *d = kernels(&naive);
    assert_non_null(a);
    assert_string_equal(a, b);
    assert_string_equal(a, c);
    assert_string_not_equal(a, d);
    assert_non_null(strstr(a, "igrt_f32x4"));
    assert_null(strstr(d, "igrt_f32x4"));
    free(a), free(b), free(c), free(d);
}

static void test_a_size_of_zero_is_told(void **state)
{
    (void)state;
    const ingot_options forgotten = {.target = "c:c99"};
    assert_null(kernels(&forgotten));
    assert_non_null(strstr(last, "struct_size is 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeros_are_the_defaults),
        cmocka_unit_test(test_a_size_of_zero_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
