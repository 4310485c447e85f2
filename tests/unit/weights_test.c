/* What lies in weights: a table that is looked up and multiplied once, numbers of 4 and 2 bits
 * several in a byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codegen/render/codegen.h"
#include "compiler/ingot_ops.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/simulate/plan_interp.h"

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

enum { ROWS = 256, COLUMNS = 192, BLOCK = 32 };
static int8_t numbers[ROWS * COLUMNS];
static float scales[ROWS / BLOCK * COLUMNS];

/* Weights and scales of a product with numbers of a small type, an element a byte in the graph. */
static int64_t small_weights(const char *target, ingot_dtype d)
{
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *dims[] = {ingot_dim_const(c, 3), ingot_dim_const(c, ROWS)};
    ingot_tensor *w = ingot_data(c, "w", d, 2, (const int64_t[]){ROWS, COLUMNS}, numbers);
    ingot_tensor *scale =
        ingot_data(c, "scale", INGOT_F32, 3, (const int64_t[]){ROWS / BLOCK, 1, COLUMNS}, scales);
    w = ingot_reshape_c(c, ingot_cast(c, w, INGOT_F32), 3,
                        (const int64_t[]){ROWS / BLOCK, BLOCK, COLUMNS});
    w = ingot_reshape_c(c, ingot_mul(c, w, scale), 2, (const int64_t[]){ROWS, COLUMNS});
    ingot_output(c, "y", ingot_matmul(c, ingot_input(c, "x", INGOT_F32, 2, dims), w));
    ingot_options o = {.struct_size = sizeof o, .target = target};
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    int64_t bytes = p->weights_bytes;
    assert_int_equal(p->arena_bytes, 0);
    plan_free(p);
    ingot_context_free(c);
    return bytes;
}

/* Two of 4 bits lie in a byte, four of 2 bits. */
static void several_in_a_byte(void **state)
{
    (void)state;
    static const char *const target[] = {"c", "c:c99", "c:x86-64-v4"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(small_weights(target[i], INGOT_I4), ROWS * COLUMNS / 2 + sizeof scales);
        assert_int_equal(small_weights(target[i], INGOT_U4), ROWS * COLUMNS / 2 + sizeof scales);
        assert_int_equal(small_weights(target[i], INGOT_I2), ROWS * COLUMNS / 4 + sizeof scales);
        assert_int_equal(small_weights(target[i], INGOT_U2), ROWS * COLUMNS / 4 + sizeof scales);
    }
}

/* Blocks of a file: a scale of 16 bits and 32 numbers in a piece, in 34 bytes. Of them weights are
 * made that are looked up, and multiplied: scales and numbers lie apart, as narrow as in the file,
 * and once. */
static void blocks_of_a_file(void **state)
{
    (void)state;
    enum { BLOCKS = 18, BYTES = 34, WORDS_OF_FILE = 4096 };
    static uint8_t file[WORDS_OF_FILE * BLOCKS * BYTES];
    static const char *const target[] = {"c", "c:x86-64-v3", "c:x86-64-v4"};
    for (size_t i = 0; i < sizeof file; i++)
        file[i] = (uint8_t)(i * 7 % 64);
    for (int i = 0; i < 3; i++) {
        Context *c = ingot_context_new(NULL, NULL);
        ingot_dim *n[] = {ingot_dim_var(c, "n", 1, 4)};
        ingot_tensor *half = ingot_data(c, "w", INGOT_F16, 3,
                                        (const int64_t[]){WORDS_OF_FILE, BLOCKS, BYTES / 2}, file);
        ingot_tensor *byte =
            ingot_data(c, "w", INGOT_I8, 3, (const int64_t[]){WORDS_OF_FILE, BLOCKS, BYTES}, file);
        half = ingot_slice(c, half, 2, ingot_dim_const(c, 0), ingot_dim_const(c, 1), 1);
        byte = ingot_slice(c, byte, 2, ingot_dim_const(c, 2), ingot_dim_const(c, 32), 1);
        ingot_tensor *w =
            ingot_mul(c, ingot_cast(c, half, INGOT_F32), ingot_cast(c, byte, INGOT_F32));
        w = ingot_reshape_c(c, w, 2, (const int64_t[]){WORDS_OF_FILE, BLOCKS * 32});
        ingot_tensor *x = ingot_take(c, w, ingot_input(c, "id", INGOT_I32, 1, n), 0);
        ingot_tensor *y = ingot_add(c, x, ingot_rms_norm(c, x, 1, NULL, 1e-5));
        y = ingot_slice(c, y, 0, ingot_dim_const(c, 0), ingot_dim_const(c, 1), 1);
        ingot_output(c, "y", ingot_linear(c, y, w, NULL));
        ingot_options o = {.struct_size = sizeof o, .target = target[i]};
        Plan *p = plan_make(c, &o);
        assert_non_null(p);
        assert_in_range(p->weights_bytes, sizeof file, sizeof file + 64);
        plan_free(p);
        ingot_context_free(c);
    }
}

/* Rows of f32 times bytes with a sign: as what they lie there, and each result. */
static ingot_dtype product_of_bytes(const char *target, int rows)
{
    static int8_t bytes[ROWS * COLUMNS];
    static float x[2 * ROWS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        bytes[i] = (int8_t)(i * 37 % 256 - 128);
    for (int i = 0; i < rows * ROWS; i++)
        x[i] = (float)(i % 31 - 15) / 8;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *dims[] = {ingot_dim_const(c, rows), ingot_dim_const(c, ROWS)};
    ingot_tensor *w = ingot_data(c, "w", INGOT_I8, 2, (const int64_t[]){ROWS, COLUMNS}, bytes);
    ingot_output(
        c, "y",
        ingot_matmul(c, ingot_input(c, "x", INGOT_F32, 2, dims), ingot_cast(c, w, INGOT_F32)));
    ingot_options o = {.struct_size = sizeof o, .target = target};
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    assert_int_equal(p->weights_bytes, sizeof bytes);
    Arena *a = arena_new();
    PlanInterp run = {.p = p};
    ingot_value in[] = {{.dtype = INGOT_F32, .rank = 2, .dims = {rows, ROWS}, .data = x}}, out[1];
    assert_true(plan_interpret(&run, a, in, out));
    for (int i = 0; i < rows * COLUMNS; i++) { /* sums of eighths: exact in any order */
        float sum = 0;
        for (int k = 0; k < ROWS; k++)
            sum += x[i / COLUMNS * ROWS + k] * (float)bytes[k * COLUMNS + i % COLUMNS];
        assert_true(((const float *)out[0].data)[i] == sum);
    }
    ingot_dtype d = INGOT_BOOL;
    for (int i = 0; i < p->kernels[0]->narg; i++)
        if (p->kernels[0]->args[i].dtype != INGOT_F32)
            d = (ingot_dtype)p->kernels[0]->args[i].dtype;
    arena_free(a);
    plan_free(p);
    ingot_context_free(c);
    return d;
}

/* Four bytes lie in a word where each is multiplied once, in 16 lanes. */
static void four_in_a_word(void **state)
{
    (void)state;
    assert_int_equal(product_of_bytes("c:x86-64-v4", 1), INGOT_I32);
    assert_int_equal(product_of_bytes("c:x86-64-v4", 2), INGOT_I8);
    assert_int_equal(product_of_bytes("c:x86-64-v3", 1), INGOT_I8);
    assert_int_equal(product_of_bytes("c", 1), INGOT_I8);
}

int main(void)
{
    for (int i = 0; i < WORDS * WIDTH; i++)
        table[i] = (float)(i % 97);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        numbers[i] = (int8_t)(i % 2);
    for (int i = 0; i < ROWS / BLOCK * COLUMNS; i++)
        scales[i] = (float)(i % 89);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_once),       cmocka_unit_test(as_the_products_want_it),
        cmocka_unit_test(several_in_a_byte), cmocka_unit_test(blocks_of_a_file),
        cmocka_unit_test(four_in_a_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
