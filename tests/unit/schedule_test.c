/* schedule_test.c - what becomes one kernel: operands in common, and axes that readers divide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/compiler.h"
#include "compiler/ingot_ops.h"
#include "targets/targets.h"

enum { ROWS = 37, DEPTH = 24, HEADS = 3, WIDTH = 5 };

static ingot_tensor *variable(Context *c, const char *name, int64_t rows, int64_t columns)
{
    ingot_dim *dims[2] = {idx(c, rows), idx(c, columns)};
    return ingot_input(c, name, INGOT_F32, 2, dims);
}

/* x w, its columns as heads: [HEADS, ROWS, WIDTH], or with the last two exchanged. */
static ingot_tensor *projection(Context *c, ingot_tensor *x, const char *weight, bool exchanged)
{
    ingot_tensor *y = ingot_matmul(c, x, variable(c, weight, DEPTH, HEADS * WIDTH));
    ingot_dim *dims[3] = {idx(c, ROWS), idx(c, HEADS), idx(c, WIDTH)};
    return ingot_permute(c, ingot_reshape(c, y, 3, dims),
                         exchanged ? (int[]){1, 2, 0} : (int[]){1, 0, 2});
}

static int stores(const Plan *p, int step)
{
    return end_stores(p->main.step[step]->kernel->sink->src[0]);
}

static void contractions_of_one_operand(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_tensor *x = variable(c, "x", ROWS, DEPTH);
    ingot_output(c, "q", projection(c, x, "wq", false));
    ingot_output(c, "k", projection(c, x, "wk", true));
    ingot_output(c, "v", projection(c, x, "wv", false));
    Plan *p = schedule(c, 2, target_find("c"));
    assert_non_null(p);
    assert_int_equal(p->main.n, 1);
    assert_int_equal(stores(p, 0), 3);
    plan_free(p);
    ingot_context_free(c);
}

/* The second needs the first; the third reads another operand. */
static void what_stays_apart(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_tensor *x = variable(c, "x", ROWS, ROWS), *w = variable(c, "w", ROWS, ROWS);
    ingot_tensor *first = ingot_matmul(c, x, w), *second = ingot_matmul(c, first, x);
    ingot_output(c, "first", first);
    ingot_output(c, "second", second);
    ingot_output(c, "third",
                 ingot_matmul(c, variable(c, "z", ROWS, ROWS), variable(c, "u", ROWS, ROWS)));
    Plan *p = schedule(c, 2, target_find("c"));
    assert_non_null(p);
    for (int i = 0; i < p->main.n; i++)
        assert_int_equal(stores(p, i), 1);
    plan_free(p);
    ingot_context_free(c);
}

/* Joined heads are read through quotients and remainders: the kernel has an axis for each part. */
static void divided_axes(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *dims[3] = {idx(c, HEADS), idx(c, ROWS), idx(c, WIDTH)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 3, dims),
                 *joined = ingot_permute(c, x, (int[]){1, 0, 2});
    ingot_output(c, "y",
                 ingot_reshape(c, joined, 2, (ingot_dim *[]){idx(c, ROWS), idx(c, HEADS * WIDTH)}));
    Plan *p = schedule(c, 2, target_find("c"));
    assert_non_null(p);
    assert_int_equal(p->main.n, 1);
    const Kernel *k = p->main.step[0]->kernel;
    assert_int_equal(k->naxis, 3);
    for (uint32_t i = 0; i < k->c->nnode; i++)
        assert_true(k->c->nodes[i]->op != OP_FLOORDIV && k->c->nodes[i]->op != OP_MOD);
    plan_free(p);
    ingot_context_free(c);
}

/* A row is written behind those that are there; the memory is that of the longest. */
static void states_that_grow(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *past = ingot_dim_var(c, "past", 0, ROWS - 1), *dims[2] = {past, idx(c, WIDTH)};
    ingot_tensor *s = ingot_growing_state(c, "rows", INGOT_F32, 2, dims);
    ingot_tensor *x = variable(c, "x", 1, WIDTH),
                 *next = ingot_concat(c, 2, (ingot_tensor *[]){s, x}, 0);
    ingot_state_next(c, s, next);
    ingot_output(c, "sum", ingot_sum(c, next, 1, false));
    Plan *p = schedule(c, 2, target_find("c"));
    assert_non_null(p);
    assert_int_equal(p->main.n, 2);
    assert_int_equal(p->state[0]->bytes, ROWS * WIDTH * 4);
    assert_ptr_equal(p->main.step[0]->bufs[0], p->state[0]);
    plan_free(p);
    ingot_context_free(c);
}

/* A call whose results have a size that another call reads comes after that one, though it has none
 * of its results for an operand. */
static void calls_of_read_sizes(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_tensor *k = ingot_input(c, "k", INGOT_I64, 0, NULL), *best[2];
    ingot_topk(c, variable(c, "x", ROWS, WIDTH), ingot_read_dim(c, k, "best", 0, WIDTH), 1, true,
               best);
    ingot_output(c, "best", best[0]);
    Plan *p = schedule(c, 2, target_find("c"));
    assert_non_null(p);
    int read = 0, sorted = 0;
    for (int i = 0; i < p->main.n; i++) {
        read += !strcmp(p->main.step[i]->name, "readint");
        if (!strcmp(p->main.step[i]->name, "topk")) {
            assert_int_equal(read, 1);
            sorted++;
        }
    }
    assert_int_equal(sorted, 1);
    plan_free(p);
    ingot_context_free(c);
}

static void states_that_cannot_grow(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *late = ingot_dim_var(c, "late", 1, ROWS), *past = ingot_dim_var(c, "past", 0, ROWS);
    assert_true(ingot_is_poison(
        ingot_growing_state(c, "a", INGOT_F32, 2, (ingot_dim *[]){late, idx(c, WIDTH)})));
    assert_int_equal(ingot_error_count(c), 1);
    ingot_tensor *s =
        ingot_growing_state(c, "b", INGOT_F32, 2, (ingot_dim *[]){past, idx(c, WIDTH)});
    ingot_state_next(c, s, variable(c, "wide", 3, WIDTH + 1));
    assert_int_equal(ingot_error_count(c), 2);
    ingot_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contractions_of_one_operand),
        cmocka_unit_test(what_stays_apart),
        cmocka_unit_test(divided_axes),
        cmocka_unit_test(states_that_grow),
        cmocka_unit_test(calls_of_read_sizes),
        cmocka_unit_test(states_that_cannot_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
