/* block_digits_test.c - numbers of 1 to 8 bits whose neighbours share a byte are packed anew: the
 * same numbers, in a form that is left as it is. And products of such weights. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler.h"
#include "ingot_ops.h"
#include "ops.h"

enum { ROWS = 3, COUNT = 32 };

/* [ROWS, COUNT], of which `per` neighbours are digits of `bits` of one byte. */
static ingot_tensor *neighbours(ingot_context *c, const uint8_t *bytes, int bits, int per)
{
    const int64_t count = COUNT / per;
    ingot_tensor *part[8], *x = ingot_data(c, "w", INGOT_U8, 2, (int64_t[]){ROWS, count}, bytes);
    for (int i = 0; i < per; i++) {
        part[i] = ingot_shr(c, x, ingot_scalar_i(c, INGOT_U8, i * bits));
        part[i] = ingot_and(c, part[i], ingot_scalar_i(c, INGOT_U8, (1 << bits) - 1));
    }
    return ingot_reshape_c(c, ingot_stack(c, per, part, 2), 2, (int64_t[]){ROWS, COUNT});
}

static void the_same_numbers(void **state)
{
    (void)state;
    uint8_t bytes[ROWS * COUNT];
    for (int i = 0; i < ROWS * COUNT; i++)
        bytes[i] = (uint8_t)(i * 73 + 11);
    for (int bits = 1; bits <= 4; bits++)
        for (int high = 0; high <= 3 && bits + high < 7; high++) {
            ingot_context *c = ingot_context_new(NULL, NULL);
            ingot_tensor *u = neighbours(c, bytes, bits, bits > 2 ? 2 : 4);
            if (high) { /* and bits above them, of eight neighbours in a byte */
                ingot_tensor *top = neighbours(c, bytes + 1, 1, 8);
                u = ingot_or(c, u, ingot_shl(c, top, ingot_scalar_i(c, INGOT_U8, bits + high - 1)));
            }
            ingot_tensor *packed = ops_block_digits(c, u);
            assert_int_equal(ingot_context_status(c), INGOT_OK);
            assert_ptr_not_equal(packed, u);
            assert_ptr_equal(ops_block_digits(c, packed), packed);
            Interp *one = interp_new(c), *two = interp_new(c);
            const uint8_t *want = interp_eval(one, u, NULL), *got = interp_eval(two, packed, NULL);
            assert_memory_equal(got, want, ROWS * COUNT);
            interp_free(one);
            interp_free(two);
            ingot_context_free(c);
        }
}

/* Digits of words, whole bytes, and blocks that are too small are left as they are. */
static void what_is_left(void **state)
{
    (void)state;
    static const uint8_t bytes[ROWS * COUNT];
    ingot_context *c = ingot_context_new(NULL, NULL);
    ingot_tensor *x = ingot_data(c, "w", INGOT_U8, 2, (int64_t[]){ROWS, COUNT}, bytes);
    assert_ptr_equal(ops_block_digits(c, x), x);
    ingot_tensor *low = ingot_and(c, x, ingot_scalar_i(c, INGOT_U8, 15));
    assert_ptr_equal(ops_block_digits(c, low), low);
    ingot_tensor *few = ingot_slice(c, neighbours(c, bytes, 4, 2), 1, ingot_dim_const(c, 0),
                                    ingot_dim_const(c, 12), 1);
    assert_ptr_equal(ops_block_digits(c, few), few);
    ingot_context_free(c);
}

/* The scale of a block of the other operand has 16 bits, but not if it is so small, or so large,
 * that f16 has fewer digits for it, or none. */
static void activations_of_any_size(void **state)
{
    (void)state;
    int8_t bytes[ROWS * COUNT];
    float scales[ROWS], x[COUNT];
    for (int i = 0; i < ROWS * COUNT; i++)
        bytes[i] = (int8_t)(i * 73 + 11);
    for (int i = 0; i < ROWS; i++)
        scales[i] = 0.5f + (float)i;
    for (int e = -60; e <= 60; e++) {
        double want[ROWS] = {0}, range = 0;
        ingot_context *c = ingot_context_new(NULL, NULL);
        ingot_set_precision(c, INGOT_PRECISION_Q8);
        for (int i = 0; i < COUNT; i++)
            x[i] = ldexpf((float)((i * 29 + 7) % 64 - 31), e);
        for (int i = 0; i < ROWS * COUNT; i++) {
            want[i / COUNT] += (double)x[i % COUNT] * bytes[i] * (double)scales[i / COUNT];
            range += fabs((double)x[i % COUNT] * bytes[i]);
        }
        ingot_tensor *w = ingot_data(c, "w", INGOT_I8, 3, (int64_t[]){ROWS, 1, COUNT}, bytes),
                     *s = ingot_data(c, "s", INGOT_F32, 3, (int64_t[]){ROWS, 1, 1}, scales);
        w = ingot_mul(c, ingot_cast(c, w, INGOT_F32), s);
        w = ingot_reshape_c(c, w, 2, (int64_t[]){ROWS, COUNT});
        ingot_tensor *row = ingot_data(c, "x", INGOT_F32, 2, (int64_t[]){1, COUNT}, x);
        Interp *ip = interp_new(c);
        const float *y = interp_eval(ip, ingot_linear(c, row, w, NULL), NULL);
        for (int i = 0; i < ROWS; i++)
            assert_true(fabs(y[i] - want[i]) < 5e-3 * range);
        interp_free(ip);
        ingot_context_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_numbers),
                                       cmocka_unit_test(what_is_left),
                                       cmocka_unit_test(activations_of_any_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
