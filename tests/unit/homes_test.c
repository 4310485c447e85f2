/* homes_test.c - which values are written right into the concats that contain them: by the number
 * of kernels and of buffers in the schedule.  That the values are right is what tests/onnx and
 * tests/fuzz judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/compiler.h"
#include "targets/targets.h"

static ingot_context *c;
static Plan *p;

static int begin(void **state)
{
    (void)state;
    c = ingot_context_new(NULL, NULL);
    p = NULL;
    return 0;
}

static int end(void **state)
{
    (void)state;
    plan_free(p);
    ingot_context_free(c);
    return 0;
}

#define CONCAT(axis, ...)                                                    \
    ingot_concat(c, (int)(sizeof((Node *[]){__VA_ARGS__}) / sizeof(Node *)), \
                 (Node *[]){__VA_ARGS__}, axis)

static void output(Node *x)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    ingot_output(c, names[c->noutput], x);
}

static Node *input(ingot_dim *rows, int64_t columns)
{
    return ingot_input(c, "x", INGOT_F32, 2, (ingot_dim *[]){rows, idx(c, columns)});
}

/* What a kernel of its own makes, and another one reads. */
static Node *made(Node *x)
{
    Node *y = ingot_contiguous(c, ingot_exp(c, x));
    output(ingot_sum(c, y, 3, false));
    return y;
}

static Node *columns(Node *x, int64_t from, int64_t n)
{
    return ingot_slice(c, x, 1, idx(c, from), idx(c, n), 1);
}

/* A reader of a concat. */
static void reads(Node *x)
{
    output(ingot_sum(c, x, 3, false));
}

static void count_block(const Block *b, int *kernels)
{
    for (int i = 0; i < b->n; i++) {
        *kernels += b->step[i]->kind == STEP_KERNEL;
        count_block(&b->step[i]->body, kernels);
        count_block(&b->step[i]->other, kernels);
    }
}

/* Kernels, without those that make the outputs, and buffers of the arena. */
static void expect(int kernels, int buffers)
{
    p = schedule(c, 2, target_find("c"));
    assert_non_null(p);
    int nkernel = 0, nbuffer = 0;
    count_block(&p->main, &nkernel);
    for (int i = 0; i < p->nbuffer; i++)
        nbuffer += p->buffers[i]->kind == BUF_ARENA;
    assert_int_equal(nkernel - c->noutput, kernels);
    assert_int_equal(nbuffer, buffers);
}

static void parts_are_written_in_place(void **state)
{
    (void)state;
    Node *x = input(idx(c, 3), 4), *a = made(x), *b = made(ingot_neg(c, x));
    reads(CONCAT(1, a, b));
    expect(2, 1);
}

/* Every concat of a dense block is the beginning of the last one. */
static void prefixes_are_views(void **state)
{
    (void)state;
    Node *part[5] = {made(input(idx(c, 3), 4))};
    for (int i = 1; i < 5; i++) {
        Node *all = i == 1 ? part[0] : ingot_concat(c, i, part, 1);
        part[i] = made(columns(all, i - 1, 4));
    }
    reads(ingot_concat(c, 5, part, 1));
    expect(5, 1);
}

static void concats_nest(void **state)
{
    (void)state;
    Node *x = input(idx(c, 3), 4), *a = made(x), *b = made(ingot_neg(c, x));
    Node *row = CONCAT(1, a, b), *below = made(ingot_neg(c, row));
    reads(row);
    reads(CONCAT(0, below, row));
    expect(3, 1);
}

static void what_is_there_twice_is_copied_once(void **state)
{
    (void)state;
    Node *a = made(input(idx(c, 3), 4));
    reads(CONCAT(1, a, a));
    expect(2, 1);
}

static void two_concats_share_no_part(void **state)
{
    (void)state;
    Node *x = input(idx(c, 3), 4), *a = made(x), *b = made(ingot_neg(c, x));
    reads(CONCAT(1, a, b));
    reads(CONCAT(1, b, a));
    expect(4, 2);
}

static void a_split_that_is_joined_is_whole(void **state)
{
    (void)state;
    Node *x = input(idx(c, 3), 4), *a = made(x), *b = made(columns(a, 1, 2));
    reads(CONCAT(1, columns(a, 0, 1), columns(a, 1, 3), b));
    expect(2, 1);
}

static void a_concat_of_one_values_slices_is_that_value(void **state)
{
    (void)state;
    Node *a = made(input(idx(c, 3), 6));
    reads(CONCAT(1, columns(a, 1, 2), columns(a, 3, 2)));
    expect(1, 1);
}

static void slices_in_another_order_are_copied(void **state)
{
    (void)state;
    Node *a = made(input(idx(c, 3), 4));
    reads(CONCAT(1, columns(a, 2, 2), columns(a, 0, 2)));
    expect(3, 2);
}

static void a_part_of_a_part_is_copied(void **state)
{
    (void)state;
    Node *x = input(idx(c, 3), 4), *a = made(x), *b = made(ingot_neg(c, x));
    reads(CONCAT(1, columns(a, 0, 3), b));
    expect(2, 2); /* the copy; a and b, which read x, are one kernel */
}

static void what_nobody_else_reads_needs_no_home(void **state)
{
    (void)state;
    Node *x = input(idx(c, 3), 4);
    reads(CONCAT(1, ingot_exp(c, x), ingot_log(c, x)));
    expect(2, 1);
}

static void results_have_buffers_of_their_own(void **state)
{
    (void)state;
    Node *x = input(idx(c, 3), 4), *a = made(x), *b = made(ingot_neg(c, x));
    output(a);
    reads(CONCAT(1, a, b));
    expect(1, 1); /* a is an output, and made by one kernel with b; then it is copied */
}

static void what_a_call_reads_has_a_buffer_of_its_own(void **state)
{
    (void)state;
    Node *x = input(idx(c, 3), 4), *a = made(x), *b = made(ingot_neg(c, x)), *best[2];
    ingot_topk(c, a, idx(c, 2), 1, true, best);
    reads(best[0]);
    reads(CONCAT(1, a, b));
    expect(2,
           5); /* a, the concat; values, indices and scratch of the call. a and b are one kernel */
}

static void rows_may_be_a_run_time_dim(void **state)
{
    (void)state;
    Node *rows = ingot_dim_var(c, "rows", 1, 9), *x = input(rows, 4), *a = made(x),
         *b = made(ingot_neg(c, x));
    reads(CONCAT(0, a, b));
    expect(2, 1);
}

/* Where the second part ends is not known before a step has counted. */
static void counts_come_too_late(void **state)
{
    (void)state;
    Node *x = input(idx(c, 3), 2), *a = made(x);
    Node *where = ingot_transpose(c, ingot_nonzero(c, x), 0, 1); /* [n, 2] */
    Node *b = ingot_cast(c, where, INGOT_F32);
    reads(CONCAT(0, a, b));
    expect(3, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(parts_are_written_in_place),
        TEST(prefixes_are_views),
        TEST(concats_nest),
        TEST(what_is_there_twice_is_copied_once),
        TEST(two_concats_share_no_part),
        TEST(a_split_that_is_joined_is_whole),
        TEST(a_concat_of_one_values_slices_is_that_value),
        TEST(slices_in_another_order_are_copied),
        TEST(a_part_of_a_part_is_copied),
        TEST(what_nobody_else_reads_needs_no_home),
        TEST(results_have_buffers_of_their_own),
        TEST(what_a_call_reads_has_a_buffer_of_its_own),
        TEST(rows_may_be_a_run_time_dim),
        TEST(counts_come_too_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
