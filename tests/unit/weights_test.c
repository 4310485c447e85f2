/* A table that is looked up and multiplied is stored once, in the layout of the product, and gives the same rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "compiler/ingot_ops.h"

enum { WORDS = 4096, WIDTH = 64 };

static float table[WORDS * WIDTH];

/* What lies in weights, in bytes. */
static int64_t weights(const char *target, bool residual)
{
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *one[] = {ingot_dim_const(c, 1)};
    ingot_tensor *t = ingot_data(c, "table", INGOT_F32, 2, (const int64_t[]){WORDS, WIDTH}, table);
    ingot_tensor *id = ingot_input(c, "id", INGOT_I64, 1, one), *x = ingot_take(c, t, id, 0);
    ingot_tensor *y = ingot_matmul(c, ingot_mul_c(c, x, 3), ingot_transpose(c, t, 0, 1));
    if (residual) /* x is read beside a product too */
        y = ingot_matmul(c, ingot_add(c, x, ingot_matmul(c, y, t)), ingot_transpose(c, t, 0, 1));
    ingot_output(c, "y", y);
    ingot_options o = {.struct_size = sizeof o, .target = target};
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    int64_t bytes = p->weights_bytes;
    plan_free(p);
    ingot_context_free(c);
    return bytes;
}

static void stored_once(void **state)
{
    (void)state;
    assert_true(weights("c", false) <= (int64_t)sizeof table + 64);
    assert_true(weights("c:x86-64-v4", false) <= (int64_t)sizeof table + 64);
    assert_true(weights("c:c99", false) <= (int64_t)sizeof table + 64);
}

/* Two products want it in two layouts: those it is stored in, and in no third one. */
static void as_the_products_want_it(void **state)
{
    (void)state;
    assert_true(weights("c:x86-64-v4", true) <= 2 * (int64_t)sizeof table + 128);
}

int main(void)
{
    for (int i = 0; i < WORDS * WIDTH; i++)
        table[i] = (float)(i % 97);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_once),
        cmocka_unit_test(as_the_products_want_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
