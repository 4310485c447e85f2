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
    const int linearize = lower_pass_find("linearize"), ahead = lower_pass_find("pipeline_copies");
    for (int pass = linearize; pass < LOWER_PASSES; pass++) {
        Lowered *l = lower_kernel(k, true, pass);
        Arena *a = arena_new();
        int at = 0;
        assert_null(linear_verify(a, &l->linear[0], l->tiles.k, &at));
        assert_int_equal(count_kind(&l->linear[0], STMT_FILL), pass < ahead);
        assert_int_equal(count_kind(&l->linear[0], STMT_WAIT), pass >= ahead);
        arena_free(a);
        lowered_free(l);
    }
    ingot_context_free(k->c);
    run_free(&r);
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
        cmocka_unit_test(each_is_dumped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
