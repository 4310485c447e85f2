/* text_test.c - IR text of graphs made by the builder: printing and parsing gives the same nodes in
 * the same context, and the same text in another one; broken text gives a message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/compiler.h"

static void round_trip(Context *c, int n, Node *const *roots)
{
    char error[256] = "";
    int m = 0;
    StrBuf first = {0}, second = {0};
    text_print_names(&first, c, n, roots);
    Node **back = text_parse(c, first.data, &m, error, sizeof error);
    if (!back)
        fail_msg("%s\n%s", error, first.data);
    assert_int_equal(n, m);
    for (int i = 0; i < n; i++)
        assert_ptr_equal(roots[i], back[i]);
    Context *other = ingot_context_new(NULL, NULL);
    back = text_parse(other, first.data, &m, error, sizeof error);
    if (!back)
        fail_msg("%s\n%s", error, first.data);
    text_print_names(&second, other, m, back);
    assert_string_equal(first.data, second.data);
    verify(m, back, 0, "parse");
    ingot_context_free(other);
    sb_free(&first);
    sb_free(&second);
}

static void builder_graphs(void **unused)
{
    (void)unused;
    static const float weights[3] = {1.5f, -0.0f, 3e-40f};
    static float many[1000];
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *batch = ingot_dim_var(c, "batch \"of\" rows", 1, 32),
              *dims[2] = {batch, ingot_dim_const(c, 3)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, dims);
    ingot_tensor *w = ingot_data(c, "weights", INGOT_F32, 1, (int64_t[]){3}, weights);
    ingot_tensor *big = ingot_data(c, NULL, INGOT_F32, 2, (int64_t[]){1000, 1}, many);
    ingot_tensor *y = ingot_add(c, ingot_mul(c, x, w), ingot_scalar_f(c, INGOT_F32, 0.1));
    y = ingot_permute(c, ingot_flip(c, y, 2), (int[]){1, 0});
    y = ingot_concat(c, 2, (ingot_tensor *[]){y, ingot_exp(c, y)}, 0);
    ingot_tensor *roots[] = {ingot_sum(c, y, 1, true), ingot_argmax(c, x, 1, false, true), big,
                             ingot_cast(c, ingot_contiguous(c, y), INGOT_BF16)};
    round_trip(c, 4, roots);
    ingot_context_free(c);
}

static void regions(void **unused)
{
    (void)unused;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *four = ingot_dim_const(c, 4);
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 1, &four),
                 *k = ingot_input(c, "k", INGOT_F32, 1, &four);
    ingot_region *body = ingot_region_begin(c);
    ingot_tensor *i = ingot_region_param(c, body, INGOT_I64, 0, NULL);
    ingot_tensor *cond = ingot_region_param(c, body, INGOT_BOOL, 0, NULL);
    ingot_tensor *v = ingot_region_param_like(c, body, x);
    ingot_tensor *even = ingot_eq(c, ingot_mod(c, i, ingot_scalar_i(c, INGOT_I64, 2)),
                                  ingot_scalar_i(c, INGOT_I64, 0));
    ingot_region *yes = ingot_region_begin(c);
    ingot_tensor *a = ingot_add(c, v, k);
    ingot_region_end(c, yes, 1, &a);
    ingot_region *no = ingot_region_begin(c);
    ingot_tensor *b = ingot_mul(c, v, k), *chosen, *out[2];
    ingot_region_end(c, no, 1, &b);
    ingot_if(c, even, yes, no, 1, &chosen);
    ingot_region_end(c, body, 3, (ingot_tensor *[]){cond, chosen, v});
    ingot_loop(c, ingot_dim_const(c, 10), NULL, 1, &x, body, 1, out);
    assert_int_equal(ingot_error_count(c), 0);
    round_trip(c, 2, out);
    ingot_context_free(c);
}

static void deep_graphs(void **unused)
{
    (void)unused;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *four = ingot_dim_const(c, 4);
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 1, &four), *y = x;
    for (int i = 0; i < 50000; i++)
        y = ingot_add(c, ingot_neg(c, y), x);
    round_trip(c, 1, &y);
    ingot_context_free(c);
}

static void mistakes(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "line 1: expected a node or 'return'"},
        {"%1 = frob f32\nreturn %1\n", "line 1: expected an op"},
        {"%1 = const f64 0x1p+0\n%2 = add f32 %1 %3\nreturn %2\n",
         "line 2: a node that has not been defined"},
        {"%1 = const f32 0x1p+0\n%2 = neg f32 %1 %1\nreturn %2\n",
         "line 2: wrong number of sources"},
        {"# comment\n\n%1 = input f33 [2] @0\nreturn %1\n", "line 3: expected a dtype"},
        {"%1 = const f32 0x1p+0 rest\nreturn %1\n", "line 1: something after the node"},
        {"%1 = data f32 [1] bytes=4 hash=0x1 hex=0000803f\nreturn %1\n",
         "line 1: the hash is not that of the bytes"},
        {"return 1 2\n%1 = const f32 0x1p+0\n", "line 2: something after 'return'"},
        {"%1 = var index @0 \"n\" 1..2\n%2 = var index @0 \"n\" 1..3\nreturn %1\n",
         "line 2: this variable has another name or other bounds in the context"},
        {"%1 = loop u8 trip=3 iterations=3 counter=none carried=0 scan=0 cond=0 true {\nreturn "
         "%1\n",
         "line 2: expected params, captures and results at the end of a region"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Context *c = ingot_context_new(NULL, NULL);
        char error[256] = "";
        int n;
        assert_null(text_parse(c, cases[i].text, &n, error, sizeof error));
        assert_string_equal(error, cases[i].error);
        ingot_context_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builder_graphs),
        cmocka_unit_test(regions),
        cmocka_unit_test(deep_graphs),
        cmocka_unit_test(mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
