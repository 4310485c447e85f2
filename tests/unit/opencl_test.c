/* opencl_test.c - what devices of OpenCL have beyond 1.2: the names of targets, sums that
 * neighbours join without memory, bytes that are multiplied by fours; as opts, which are printed,
 * lowered, interpreted beside the kernel without opts and written as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/render/codegen.h"
#include "compiler/ingot_ops.h"
#include "compiler/kernel/kernel.h"
#include "linear_run.h"

static const char *made(Target *t, Arena *a, const char *name)
{
    ingot_status status;
    const char *why = target_make(t, a, name, &status);
    assert_true((why == NULL) == (status == INGOT_OK));
    return why;
}

static void features_by_name(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Target t;
    assert_null(made(&t, a, "opencl"));
    assert_false(t.machine.dot || t.machine.subgroup || t.extensions);
    assert_null(made(&t, a, "opencl:subgroups16+dot8+subgroups32"));
    assert_true(t.machine.dot && t.machine.joins_subgroups && t.machine.subgroup == 32);
    assert_string_equal(t.extensions[0].lacks,
                        "cl_khr_subgroup_shuffle; --target opencl:dot8 does without");
    assert_string_equal(t.extensions[1].lacks, "cl_khr_integer_dot_product; --target "
                                               "opencl:subgroups16+subgroups32 does without");
    assert_null(t.extensions[2].name); /* each once */
    assert_null(made(&t, a, "opencl:fp16"));
    assert_false(t.machine.dot || t.machine.subgroup);
    assert_string_equal(t.extensions[0].lacks, "cl_khr_fp16; --target opencl does without");
    assert_non_null(strstr(made(&t, a, "opencl:dot8+fp61"), "no feature 'fp61'"));
    assert_non_null(made(&t, a, "opencl:dot"));
    assert_non_null(made(&t, a, "opencl:sm_90"));
    arena_free(a);
}

static NestRun prepare(ingot_tensor *(*model)(Context *), const char *target, const char *opts)
{
    Context *c = ingot_context_new(NULL, NULL);
    Arena *a = arena_new();
    Target t;
    assert_null(made(&t, a, target));
    NestRun r = run_new(c, model(c), &t);
    arena_free(a);
    run_opts(r.nest, opts);
    run_lower(&r, true);
    return r;
}

static void expect(ingot_tensor *(*model)(Context *), const char *opts, const char *text, int count)
{
    static const char all[] = "opencl:dot8+subgroups32";
    run_expect(prepare(model, all, opts), prepare(model, all, ""), opts, text, count);
}

static ingot_tensor *input(Context *c, const char *name, ingot_dtype d, int64_t rows,
                           int64_t columns)
{
    return ingot_input(c, name, d, 2,
                       (ingot_dim *[]){(ingot_dim *)(uintptr_t)idx(c, rows),
                                       (ingot_dim *)(uintptr_t)idx(c, columns)});
}

/* ---- sub-groups ------------------------------------------------------------------------------ */

static ingot_tensor *sum_of_rows(Context *c)
{
    return ingot_reduce(c, INGOT_REDUCE_ADD, input(c, "x", INGOT_F32, 6, 100), 1u << 1, false);
}

static ingot_tensor *largest_of_rows(Context *c)
{
    return ingot_reduce(c, INGOT_REDUCE_MAX, input(c, "x", INGOT_F32, 8, 64), 1u << 1, false);
}

/* x + the sum of its row + the largest of its row: results that share two of them. */
static ingot_tensor *of_rows(Context *c)
{
    ingot_tensor *x = input(c, "x", INGOT_F32, 6, 96);
    ingot_tensor *s = ingot_reduce(c, INGOT_REDUCE_ADD, x, 1u << 1, true);
    ingot_tensor *m = ingot_reduce(c, INGOT_REDUCE_MAX, x, 1u << 1, true);
    return ingot_add(c, x, ingot_add(c, s, m));
}

/* Of a matrix with as many columns as a sub-group has lanes. */
static ingot_tensor *largest_of_all(Context *c)
{
    return ingot_reduce(c, INGOT_REDUCE_MAX, input(c, "x", INGOT_F32, 17, 16), 3u, true);
}

static ingot_tensor *first_largest(Context *c)
{
    return ingot_argmax(c, input(c, "x", INGOT_F32, 6, 64), 1, false, false);
}

static void rows_by_subgroups(void **state)
{
    (void)state;
    expect(sum_of_rows,
           "MASK r0 64\nSPLIT r0 64\nSPLIT r0.i 16\nBIND r0.i.o lane\nBIND r0.i.i warp\n"
           "BIND i0 grid\n",
           "igrt_across_add_f32(", 1);
    expect(sum_of_rows, "MASK r0 32\nSPLIT r0 32\nBIND r0.i warp\nBIND i0 lane\n",
           "igrt_across_add_f32(", 1);
    expect(largest_of_rows,
           "SPLIT r0 32\nBIND r0.o lane\nBIND r0.i warp\nSPLIT i0 2\nBIND i0.o grid\n"
           "BIND i0.i lane\n",
           "igrt_across_max_f32(", 1);
    expect(largest_of_all, "BIND r1 warp\nMASK r0 16\nSPLIT r0 16\nBIND r0.i lane\n",
           "igrt_across_max_f32(", 1);
}

/* One sum by neighbours, the other through memory; or both by neighbours. */
static void rows_of_two_sums(void **state)
{
    (void)state;
    expect(of_rows, "SPLIT r0 8\nBIND r0.i warp\nSPLIT r1 8\nBIND r1.i warp\nBIND i0 grid\n",
           "igrt_across_", 2);
    expect(of_rows, "SPLIT r0 8\nBIND r0.i warp\nSPLIT r1 16\nBIND r1.i lane\nBIND i0 grid\n",
           "igrt_across_", 1);
}

static Nest *nest_of(ingot_tensor *(*model)(Context *), const char *target, NestRun *r)
{
    *r = prepare(model, target, "");
    return r->nest;
}

static void refused(void **state)
{
    (void)state;
    NestRun r;
    refusal(nest_of(largest_of_rows, "opencl", &r), "BIND r0 warp", "no sub-groups");
    run_free(&r);
    refusal(nest_of(largest_of_rows, "opencl:subgroups32", &r), "BIND r0 warp", "up to 32 parts");
    refusal(r.nest, "BIND i0 warp", "of a matrix unit");
    run_free(&r);
    nest_of(sum_of_rows, "opencl:subgroups32", &r);
    refusal(r.nest, "SPLIT r0 20", NULL);
    refusal(r.nest, "BIND r0.i warp", "2, 4, 8");
    run_free(&r);
    nest_of(of_rows, "opencl:subgroups32", &r);
    run_opts(r.nest, "SPLIT r0 8\nBIND r0.i warp\nSPLIT r1 4\n");
    refusal(r.nest, "BIND r1.i warp", "of all axes as many");
    run_free(&r);
    nest_of(largest_of_all, "opencl:subgroups16", &r);
    run_opts(r.nest, "BIND r1 warp\nMASK r0 16\nSPLIT r0 16\n");
    refusal(r.nest, "BIND r0.i warp", "the lanes of a warp are of r1");
    run_free(&r);
    nest_of(first_largest, "opencl:subgroups32", &r);
    run_opts(r.nest, "SPLIT r0 8\n");
    refusal(r.nest, "BIND r0.i warp", "of f32 or i32");
    run_free(&r);
}

/* ---- fours ----------------------------------------------------------------------------------- */

static ingot_tensor *bytes(Context *c)
{
    ingot_tensor *x = ingot_cast(c, input(c, "x", INGOT_I8, 10, 48), INGOT_I32);
    ingot_tensor *w = ingot_cast(c, input(c, "w", INGOT_I8, 36, 48), INGOT_I32);
    return ingot_matmul(c, x, ingot_permute(c, w, (int[]){1, 0}));
}

static ingot_tensor *bytes_apart(Context *c)
{
    ingot_tensor *x = ingot_cast(c, input(c, "x", INGOT_I8, 10, 48), INGOT_I32);
    return ingot_matmul(c, x, ingot_cast(c, input(c, "w", INGOT_I8, 48, 36), INGOT_I32));
}

/* Out of memory, behind the gates of masked rows, and out of places that the group shares. */
static void bytes_by_fours(void **state)
{
    (void)state;
    expect(bytes, "DOT r0 4\n", "igrt_dot_i8_i8(", 1);
    expect(bytes,
           "DOT r0 4\nMASK i0 4\nSPLIT i0 4\nUPCAST i0.i 2\nBIND i0.i.o lane\nBIND i0.o grid\n"
           "BIND i1 grid\n",
           "igrt_dot_i8_i8(", 2);
    expect(bytes,
           "DOT r0 4\nSPLIT r0.o 4\nMASK i0 4\nSPLIT i0 4\nBIND i0.o grid\nBIND i0.i lane\n"
           "SPLIT i1 12\nBIND i1.o grid\nUPCAST i1.i 3\nBIND i1.i.o lane\nORDER r0.o.o r0.o.i\n"
           "STAGE r0.o.o 1\nSTAGE r0.o.o 2\n",
           "igrt_dot_i8_i8(", 3);
    expect(bytes,
           "DOT r0 4\nSPLIT r0.o 3\nBIND r0.o.o lane\nSPLIT i1 12\nBIND i1.o grid\nBIND i1.i lane\n"
           "BIND i0 grid\nORDER r0.o.o i1.i r0.o.i\n",
           "igrt_dot_i8_i8(", 1);
}

/* Fours that do not lie side by side are found before anything is written. */
static void bytes_that_lie_apart(void **state)
{
    (void)state;
    NestRun r;
    run_opts(nest_of(bytes_apart, "opencl:dot8", &r), "DOT r0 4\n");
    const char *why = nest_check(r.nest);
    assert_true(why && strstr(why, "does not lie contiguously"));
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_by_name), cmocka_unit_test(rows_by_subgroups),
        cmocka_unit_test(rows_of_two_sums), cmocka_unit_test(refused),
        cmocka_unit_test(bytes_by_fours),   cmocka_unit_test(bytes_that_lie_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
