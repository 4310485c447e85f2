/* lowered_test.c - a kernel keeps its statements until it changes; every pass of lowering leaves
 * statements that hold, and can be dumped by its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot_ops.h"
#include "compiler/kernel/lowered.h"
#include "linear_run.h"

static char last[1024];

static void note(void *user, ingot_level level, const char *message)
{
    (void)user, (void)level;
    snprintf(last, sizeof last, "%s", message);
}

static ingot_tensor *product(ingot_context *c, ingot_dtype d)
{
    ingot_dim *m[] = {ingot_dim_const(c, 64), ingot_dim_const(c, 64)};
    ingot_tensor *x = ingot_cast(c, ingot_input(c, "x", d, 2, m), INGOT_F32),
                 *w = ingot_cast(c, ingot_input(c, "w", d, 2, m), INGOT_F32);
    return ingot_relu(c, ingot_matmul(c, x, w));
}

/* Copies ahead, kept fragments and a trigger: all that goes without boxes and clusters. */
static const char opts[] =
    "SPLIT i0 16\nSPLIT i1 8\nSPLIT r0 16\nTC mma.f16 (i0.i; i1.i; r0.i)\nBIND i0.o grid\n"
    "BIND i1.o grid\nPREFETCH r0.o 1\nSTAGE r0.o 1 depth 3\nSTAGE r0.o 2 depth 3\n"
    "TRIGGER waited\n";

static NestRun of_warps(void)
{
    Context *c = ingot_context_new(NULL, NULL);
    Arena *a = arena_new();
    Target t;
    ingot_status status;
    assert_null(target_make(&t, a, "cuda:sm_90a", &status));
    NestRun r = run_new(c, product(c, INGOT_F16), &t);
    arena_free(a);
    run_opts(r.nest, opts);
    run_lower(&r, true);
    return r;
}

static int count_kind(const Linear *l, StmtKind kind)
{
    int n = 0;
    for (int i = 0; i < l->n; i++)
        n += l->stmt[i].kind == kind;
    return n;
}

static void statements_are_kept(void **state)
{
    (void)state;
    NestRun r = of_warps();
    Kernel *k = kernel_copy(r.p->kernels[0]);
    const Lowered *naive = kernel_lowered(k, true);
    assert_ptr_equal(naive, kernel_lowered(k, true));
    assert_int_equal(count_kind(&naive->linear[0], STMT_COMMIT), 0);
    nest_keep(r.nest, k); /* other opts */
    assert_null(k->lowered);
    assert_true(count_kind(&kernel_lowered(k, true)->linear[0], STMT_COMMIT) > 0);
    Kernel *copy = kernel_copy(k); /* which has statements of its own */
    assert_null(copy->lowered);
    ingot_context_free(copy->c);
    ingot_context_free(k->c);
    run_free(&r);
}

static void passes_leave_what_holds(void **state)
{
    (void)state;
    NestRun r = of_warps();
    Kernel *k = kernel_copy(r.p->kernels[0]);
    nest_keep(r.nest, k);
    const int flat = lower_pass_find("flatten"), linearize = lower_pass_find("linearize"),
              ahead = lower_pass_find("pipeline_copies");
    for (int pass = flat; pass < LOWER_PASSES; pass++) {
        Lowered *l = lower_kernel(k, true, pass);
        Arena *a = arena_new();
        int at = 0;
        assert_null(pass < linearize ? stores_verify(a, &l->linear[0], l->tiles.k, &at)
                                     : linear_verify(a, &l->linear[0], l->tiles.k, &at));
        if (pass < linearize)
            assert_int_equal(count_kind(&l->linear[0], STMT_STORE), l->linear[0].n);
        assert_int_equal(count_kind(&l->linear[0], STMT_FILL), pass >= linearize && pass < ahead);
        assert_int_equal(count_kind(&l->linear[0], STMT_WAIT), pass >= ahead);
        arena_free(a);
        lowered_free(l);
    }
    ingot_context_free(k->c);
    run_free(&r);
}

/* y[j, i] = x[i, j] in 4 lanes along i, with 4 copies along j, after a pass. */
static Lowered *transposed(Context *c, const char *pass)
{
    ingot_dim *m[] = {ingot_dim_const(c, 8), ingot_dim_const(c, 12)};
    const int turned[] = {1, 0};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, m);
    Target t;
    ingot_status status;
    Arena *a = arena_new();
    assert_null(target_make(&t, a, "c:x86-64-v4", &status));
    NestRun r = run_new(c, ingot_neg(c, ingot_permute(c, x, turned)), &t);
    run_opts(r.nest, "VECTOR i1 4\nUPCAST i0 4\n");
    Kernel *k = kernel_copy(r.p->kernels[0]);
    nest_keep(r.nest, k);
    Lowered *l = lower_kernel(k, false, lower_pass_find(pass));
    ingot_context_free(k->c);
    run_free(&r);
    arena_free(a);
    return l;
}

/* What the value of the first store becomes, in statements that have been right. */
static const char *refused(Arena *a, const char *pass, Node *(*change)(const Linear *, Context *))
{
    Context *c = ingot_context_new(NULL, NULL);
    Lowered *l = transposed(c, pass);
    Linear *s = &l->linear[0];
    int at = -1;
    assert_null(stores_verify(a, s, l->tiles.k, &at));
    s->stmt[1].node = change(s, l->tiles.k->c);
    const char *wrong = stores_verify(a, s, l->tiles.k, &at);
    if (wrong)
        assert_int_equal(at, 1);
    lowered_free(l);
    return wrong;
}

static Node *with_value(const Linear *l, Context *c, Node *value)
{
    return node_with_source(c, l->stmt[1].node, 2, value);
}

static Node *row_behind(const Linear *l, Context *c)
{
    Node *neg = l->stmt[1].node->src[2], *rows = neg->src[0]->src[0];
    return with_value(l, c, node_make(c, OP_PROJ, rows->dtype, (Arg){.i = 4}, 1, &rows, 0, NULL));
}

static Node *rows_of_five(const Linear *l, Context *c)
{
    Node *load = l->stmt[1].node->src[2]->src[0];
    Node *src[] = {load->src[0], load->src[1], load->src[2], idx(c, 5)};
    return with_value(l, c, node_make(c, OP_LOAD, load->dtype, (Arg){0}, 4, src, 0, NULL));
}

static Node *other_range(const Linear *l, Context *c)
{
    Node *extent = idx(c, 4), *own = l->stmt[1].node->src[3];
    Node *range = node_make(c, OP_RANGE, INGOT_INDEX, (Arg){.i = 40}, 1, &extent, 0, NULL);
    return node_with_source(c, l->stmt[1].node, 3, idx_add(c, own, range));
}

static Node *two_values(const Linear *l, Context *c)
{
    const Node *s = l->stmt[1].node;
    Node *src[] = {s->src[0], s->src[1], s->src[2], s->src[3], l->stmt[0].node->src[2]};
    return node_make(c, OP_STORE, s->dtype, s->arg, 5, src, 0, NULL);
}

static void stores_that_do_not_hold(void **state)
{
    (void)state;
    Arena *a = arena_new();
    assert_string_equal(refused(a, "join_loads", row_behind), "a row is taken that was not loaded");
    assert_string_equal(refused(a, "flatten", rows_of_five),
                        "more rows are loaded than there are lanes");
    assert_string_equal(refused(a, "flatten", other_range), "range 40 is none of the loop nest");
    assert_string_equal(refused(a, "flatten", two_values),
                        "values are stored in turn, and lanes do not lie as far apart");
    arena_free(a);
}

static void each_is_dumped(void **state)
{
    (void)state;
    for (int pass = 0; pass < LOWER_PASSES; pass++) {
        ingot_context *c = ingot_context_new(note, NULL);
        ingot_output(c, "y", product(c, INGOT_F32));
        char *text = ingot_dump(c, NULL, lower_pass[pass].name), head[80];
        snprintf(head, sizeof head, " after %s", lower_pass[pass].name);
        assert_non_null(text);
        assert_non_null(strstr(text, head));
        assert_non_null(strstr(text, pass ? "a0[" : "for i0"));
        free(text);
        assert_null(ingot_dump(c, NULL, "lower"));
        assert_non_null(strstr(last, lower_pass[pass].name)); /* which there are is told */
        ingot_context_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_are_kept),
        cmocka_unit_test(passes_leave_what_holds),
        cmocka_unit_test(stores_that_do_not_hold),
        cmocka_unit_test(each_is_dumped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
