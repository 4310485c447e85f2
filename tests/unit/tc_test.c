/* tc_test.c - matrix units: products by opts, which are applied, printed, lowered, interpreted
 * beside the kernel without opts and written as text; opts that cannot be done; tiles that hold
 * something else than what is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/render/codegen.h"
#include "compiler/choose/choose.h"
#include "compiler/ingot_ops.h"
#include "compiler/kernel/kernel.h"
#include "linear_run.h"

typedef struct {
    ingot_dtype a, b;
    int64_t m, n, k;
    int window; /* of a convolution, whose results are [m][m]; 0: a product of matrices */
    int64_t k2; /* terms of a second product, which is added; 0: there is none */
} TcProduct;

static const TcProduct bytes = {INGOT_U8, INGOT_I8, 37, 80, 192, 0, 0};
static const TcProduct small_floats = {INGOT_BF16, INGOT_BF16, 32, 64, 64, 0, 0};
static const TcProduct tall = {INGOT_BF16, INGOT_BF16, 128, 48, 64, 0, 0};
static const TcProduct convolution = {INGOT_I8, INGOT_I8, 14, 32, 64, 3, 0};
static const TcProduct few_columns = {INGOT_BF16, INGOT_BF16, 37, 40, 64, 0, 0};
static const TcProduct two_sums = {INGOT_BF16, INGOT_BF16, 37, 64, 64, 0, 96};
static const TcProduct once = {INGOT_BF16, INGOT_BF16, 32, 64,
                               64,         0,          32}; /* no loop of the second */

static ingot_tensor *tensor(Context *c, const char *name, ingot_dtype d, int n, const int64_t *dims)
{
    ingot_dim *size[4];
    for (int i = 0; i < n; i++)
        size[i] = (ingot_dim *)(uintptr_t)idx(c, dims[i]);
    return ingot_input(c, name, d, n, size);
}

static ingot_tensor *product(Context *c, const char *x_name, const char *w_name, const TcProduct *m,
                             int64_t k, ingot_dtype sum)
{
    ingot_tensor *x = tensor(c, x_name, m->a, 2, (int64_t[]){m->m, k});
    ingot_tensor *w = tensor(c, w_name, m->b, 2, (int64_t[]){k, m->n});
    return ingot_matmul(c, ingot_cast(c, x, sum), ingot_cast(c, w, sum));
}

static ingot_tensor *result(Context *c, const TcProduct *m)
{
    ingot_dtype sum = dtype_is_float(m->a) ? INGOT_F32 : INGOT_I32;
    if (m->window) {
        int64_t size = m->m + m->window - 1;
        ingot_tensor *x = tensor(c, "x", m->a, 4, (int64_t[]){1, size, size, m->k});
        ingot_tensor *w = tensor(c, "w", m->b, 4, (int64_t[]){m->n, m->k, m->window, m->window});
        x = ingot_permute(c, x, (int[]){0, 3, 1, 2});
        x = ingot_conv(c, ingot_cast(c, x, sum), ingot_cast(c, w, sum), NULL, (int64_t[]){1, 1},
                       (int64_t[]){1, 1}, (int64_t[]){0, 0}, (int64_t[]){0, 0}, 1);
        return ingot_permute(c, x, (int[]){0, 2, 3, 1});
    }
    ingot_tensor *y = product(c, "x", "w", m, m->k, sum);
    if (m->k2)
        y = ingot_add(c, y, product(c, "x2", "w2", m, m->k2, sum));
    return ingot_relu(c, y);
}

/* An opt a line.  b is laid out for the unit if there is one. */
static NestRun prepare(const TcProduct *m, const char *opts)
{
    Context *c = ingot_context_new(NULL, NULL);
    Target t = *target_find("c");
    assert_true(target_tune(&t, "sapphirerapids"));
    NestRun r = run_new(c, result(c, m), &t);
    run_opts(r.nest, opts);
    const Kernel *k = r.nest->k;
    View v = kernel_view(k);
    for (int i = 0; i < v.nload && r.nest->tc; i++)
        if (depends_on(v.load[i], k->axes[r.nest->axis[r.nest->tc_axis[TC_COLUMNS]].root].range))
            assert_true(tc_layout(r.nest, v.load[i], &k->args[v.load[i]->src[0]->arg.i].layout));
    run_lower(&r, false);
    return r;
}

static void expect(const TcProduct *m, const char *opts, int products)
{
    run_expect(prepare(m, opts), prepare(m, ""), opts, "igrt_amx_dot_", products);
}

static void products_of_bytes(void **state)
{
    (void)state;
    expect(&bytes,
           "SPLIT i0 16\nSPLIT i1 16\nSPLIT r0 64\nUPCAST i0.o 2\nUPCAST i1.o 2\n"
           "TC amx.i8 (i0.i; i1.i; r0.i)\nORDER i1.o.o i0.o.o r0.o\nTHREAD i1.o.o 2\n",
           4 + 2 + 2 + 1);
    expect(&bytes,
           "SPLIT i0 16\nSPLIT i1 16\nSPLIT r0 48\nUPCAST i1.o 5\n"
           "TC amx.i8 (i0.i; i1.i; r0.i)\n",
           10);
}

static void products_of_small_floats(void **state)
{
    (void)state;
    expect(&small_floats,
           "SPLIT i0 16\nSPLIT i1 16\nSPLIT r0 32\nUPCAST i1.o 2\nUPCAST i0.o 2\n"
           "TC amx.bf16 (i0.i; i1.i; r0.i)\n",
           4);
}

static void convolutions(void **state)
{
    (void)state;
    expect(&convolution, "SPLIT i2 16\nUPCAST i0 2\nUPCAST i2.o 2\nTC amx.i8 (i1; i2.i; r0)\n", 4);
}

/* Two sums, whose fragments take turns: four of each, in the same tiles. Rows are 2 blocks of 16
 * and one of 5, which are a loop nest of their own. */
static void products_of_two_sums(void **state)
{
    (void)state;
    const char *opts = "SPLIT i0 16\nSPLIT i1 16\nSPLIT r0 32\nSPLIT r1 32\nUPCAST i0.o 2\n"
                       "UPCAST i1.o 2\nTC amx.bf16 (i0.i; i1.i; r0.i r1.i)\n";
    expect(&two_sums, opts, 2 * 4 + 2 * 2);
    expect(&once,
           "SPLIT i0 16\nSPLIT i1 16\nSPLIT r0 32\nUPCAST i0.o 2\nUPCAST i1.o 2\n"
           "TC amx.bf16 (i0.i; i1.i; r0.i r1)\n",
           2 * 4);
    NestRun r = prepare(&two_sums, "");
    Nest *n = nest_new(r.p->kernels[0], r.t);
    refusal(n, "SPLIT i0 16", NULL);
    refusal(n, "SPLIT i1 16", NULL);
    refusal(n, "SPLIT r0 32", NULL);
    Nest *other = nest_clone(n);
    refusal(other, "SPLIT r1 16", NULL);
    refusal(other, "TC amx.bf16 (i0.i; i1.i; r0.i r1.i)", "a reduced axis of 32 terms, as r0.i");
    nest_free(other);
    refusal(n, "SPLIT r1 32", NULL);
    refusal(n, "TC amx.bf16 (i0.i; i1.i; r0.i r0.o)", "of the same axis as r0.i");
    refusal(n, "TC amx.bf16 (i0.i; i1.i; r0.i i0.o)", "a reduced axis of 32 terms");
    refusal(n, "TC amx.bf16 (i0.i; i1.i; r0.i r1.i)", NULL);
    assert_non_null(strstr(nest_check(n), "does not lie as amx.bf16 takes it"));
    nest_free(n);
    run_free(&r);
}

/* 37 rows are blocks of 16 that begin at 0, 16 and 21; two at once are blocks 0 and 1, 1 and 2. */
static void rows_that_overlap(void **state)
{
    (void)state;
    expect(&few_columns,
           "OVERLAP i0 16\nOVERLAP i0.o 2\nUPCAST i0.o.i 2\nSPLIT i1 16\nSPLIT r0 32\n"
           "TC amx.bf16 (i0.i; i1.i; r0.i)\nTHREAD i0.o.o 2\n",
           2 + 2);
    NestRun r = prepare(&few_columns, "");
    Nest *n = nest_new(r.p->kernels[0], r.t);
    refusal(n, "OVERLAP i1 16", NULL);
    refusal(n, "SPLIT i0 16", NULL);
    refusal(n, "SPLIT r0 32", NULL);
    refusal(n, "TC amx.bf16 (i0.i; i1.i; r0.i)", "which OVERLAP would store in part");
    nest_free(n);
    run_free(&r);
}

/* 40 columns: two blocks of 16, and one of which 8 are stored. */
static void products_of_few_columns(void **state)
{
    (void)state;
    expect(&few_columns,
           "SPLIT i0 16\nSPLIT i1 16\nSPLIT r0 32\nUPCAST i1.o 2\n"
           "TC amx.bf16 (i0.i; i1.i; r0.i)\n",
           2 * (2 + 1));
}

/* What is told of sums that the unit could have by their types. */
static void outside(void **state)
{
    (void)state;
    static const TcProduct narrow = {INGOT_BF16, INGOT_BF16, 12, 8, 64, 0, 0},
                           floats = {INGOT_F32, INGOT_F32, 32, 64, 64, 0, 0};
    const char *const block = "SPLIT i0 16\nSPLIT i1 16\nSPLIT r0 32\n";
    NestRun r = prepare(&narrow, "");
    Arena *a = arena_new();
    assert_string_equal(outside_reason(a, r.p->kernels[0], r.t),
                        "amx.bf16: it has 12 columns, the unit 16");
    run_free(&r);
    r = prepare(&floats, "");
    assert_null(outside_reason(a, r.p->kernels[0], r.t));
    run_free(&r);
    r = prepare(&small_floats, block);
    nest_keep(r.nest, r.nest->k);
    assert_non_null(strstr(outside_reason(a, r.nest->k, r.t), "lies otherwise"));
    assert_int_equal(sums_by_element(r.nest->k), 1);
    run_free(&r);
    r = prepare(&small_floats, "VECTOR i1 16\n");
    nest_keep(r.nest, r.nest->k);
    assert_int_equal(sums_by_element(r.nest->k), 0);
    run_free(&r);
    char text[160];
    (void)snprintf(text, sizeof text, "%sTC amx.bf16 (i0.i; i1.i; r0.i)\n", block);
    r = prepare(&small_floats, text);
    nest_keep(r.nest, r.nest->k);
    assert_null(outside_reason(a, r.nest->k, r.t));
    assert_int_equal(sums_by_element(r.nest->k), 0);
    run_free(&r);
    arena_free(a);
}

/* A panel has 32 lines, which are asked for in 8 blocks of rows with 2 of terms each. */
static void panels_ahead(void **state)
{
    (void)state;
    const char *opts = "SPLIT i0 16\nSPLIT i1 16\nSPLIT r0 32\nTC amx.bf16 (i0.i; i1.i; r0.i)\n"
                       "ORDER i1.o i0.o r0.o\nPREFETCH i1.o 2\n";
    run_expect(prepare(&tall, opts), prepare(&tall, ""), opts, "igrt_prefetch(a2 + (r0_o*64 + v1",
               2);
    /* a load follows each of four products but the last: what is asked for comes behind that */
    const char *four = "SPLIT i0 16\nSPLIT i1 16\nSPLIT r0 32\nUPCAST i0.o 4\n"
                       "TC amx.bf16 (i0.i; i1.i; r0.i)\nORDER i1.o i0.o.o r0.o\nPREFETCH i1.o 2\n";
    run_expect(prepare(&tall, four), prepare(&tall, ""), four,
               "igrt_amx_dot_bf16_bf16(&tiles, 3, 4, 7);\n                igrt_prefetch(a2 + ", 1);
}

static void refusals(void **state)
{
    (void)state;
    NestRun r = prepare(&bytes, "");
    Nest *n = nest_new(r.p->kernels[0], r.t);
    refusal(n, "TC amx.i4 (i0; i1; r0)", "there are amx.i8 amx.bf16");
    refusal(n, "TC amx.i8 (i0; i1)", "is wanted");
    refusal(n, "TC amx.i8 (i0; i3; r0)", "no axis 'i3'");
    refusal(n, "TC amx.i8 (i0; i1; r0)", "2 to 16 rows, 16 columns");
    refusal(n, "SPLIT i0 16", NULL);
    refusal(n, "SPLIT i1 16", NULL);
    refusal(n, "SPLIT r0 64", NULL);
    refusal(n, "TC amx.bf16 (i0.i; i1.i; r0.i)", "2 to 16 rows");
    refusal(n, "TC amx.i8 (r0.i; i1.i; r0.i)", "an axis of results");
    refusal(n, "UPCAST i0.o 2", NULL);
    Nest *wide = nest_clone(n);
    refusal(wide, "UPCAST i1.o 3", NULL);
    refusal(wide, "TC amx.i8 (i0.i; i1.i; r0.i)", "10 fragments at once");
    nest_free(wide);
    refusal(n, "TC amx.i8 (i0.i; i1.i; r0.i)", NULL);
    refusal(n, "UPCAST i1.o 2", "after TC");
    assert_non_null(strstr(nest_check(n), "[r0.i / 4][i1.i][4]"));
    nest_free(n);
    Target other = *target_find("c");
    assert_true(target_tune(&other, "x86-64-v4"));
    n = nest_new(r.p->kernels[0], &other);
    refusal(n, "SPLIT i0 16", NULL);
    refusal(n, "SPLIT i1 16", NULL);
    refusal(n, "SPLIT r0 64", NULL);
    refusal(n, "TC amx.i8 (i0.i; i1.i; r0.i)", "no such unit (it has: none)");
    nest_free(n);
    run_free(&r);
}

/* The tile of an operand that is used later is given to another one. */
static void lost_fragments(void **state)
{
    (void)state;
    NestRun r =
        prepare(&bytes, "SPLIT i0 16\nSPLIT i1 16\nSPLIT r0 64\nUPCAST i0.o 2\nUPCAST i1.o 2\n"
                        "TC amx.i8 (i0.i; i1.i; r0.i)\n");
    Linear *l = &r.lk->tile[0];
    int8_t *last = NULL;
    for (int i = 0; i < l->n; i++)
        if (l->stmt[i].kind == STMT_LET && l->fragment[l->stmt[i].node->id])
            last = l->stmt[i].tile;
    assert_non_null(last);
    *last = 6;
    const char *fault = run_wrong(&r, prepare(&bytes, ""));
    if (!strstr(fault, "does not hold what is wanted"))
        fail_msg("'%s'", fault);
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_bytes),
        cmocka_unit_test(products_of_small_floats),
        cmocka_unit_test(rows_that_overlap),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(panels_ahead),
        cmocka_unit_test(products_of_two_sums),
        cmocka_unit_test(products_of_few_columns),
        cmocka_unit_test(outside),
        cmocka_unit_test(refusals),
        cmocka_unit_test(lost_fragments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
