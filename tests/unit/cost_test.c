/* cost_region(): each node of a region once, a reduce at its full length, bytes by the level that
 * holds them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/schedule/schedule.h"

#include "compiler/ingot_ops.h"

enum { ROWS = 40, COLUMNS = 96, DEPTH = 64 };

static const Target machine = {.machine.rate = {2, 8, 12},
                               .machine.level = {{32 << 10, 64}, {0, 5}},
                               .machine.line = 64,
                               .machine.launch = 500};

static Context *c;
static Sched *s;
static Arena *a;

static int start(void **state)
{
    (void)state;
    c = ingot_context_new(NULL, NULL);
    a = arena_new();
    s = NEW(a, Sched);
    *s = (Sched){.c = c, .arena = a, .scratch = a, .fuse_rows = true, .target = &machine};
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(a);
    ingot_context_free(c);
    return 0;
}

static Node *input(const char *name, int64_t rows, int64_t columns)
{
    ingot_dim *d[] = {ingot_dim_const(c, rows), ingot_dim_const(c, columns)};
    return ingot_input(c, name, INGOT_F32, 2, d);
}

static double all_ops(const RegionWork *r)
{
    double n = 0;
    for (int u = 0; u < UNITS; u++)
        n += r->ops[u];
    return n;
}

/* Squared four times: four multiplications, one load. */
static void each_node_once(void **state)
{
    (void)state;
    Node *x = input("x", ROWS, COLUMNS);
    for (int i = 0; i < 4; i++)
        x = ingot_mul(c, x, x);
    RegionWork r = region_of(s, x);
    assert_true(r.ops[UNIT_VECTOR] == 4.0 * ROWS * COLUMNS && all_ops(&r) == r.ops[UNIT_VECTOR]);
    assert_true(r.bytes == 4.0 * ROWS * COLUMNS);
    assert_int_equal(r.buffers, 1);
}

static void a_product_at_its_full_length(void **state)
{
    (void)state;
    Node *x = input("x", ROWS, DEPTH), *y = input("y", DEPTH, COLUMNS);
    RegionWork r = region_of(s, ingot_matmul(c, x, y));
    assert_true(r.ops[UNIT_TILE] == 2.0 * ROWS * DEPTH * COLUMNS);
    assert_true(all_ops(&r) == r.ops[UNIT_TILE]);
    assert_true(r.bytes == 4.0 * (ROWS * DEPTH + DEPTH * COLUMNS));
}

/* A row's greatest number is found once a row where there is a loop over rows, and for each element
 * where each is a work item. */
static void rows(void **state)
{
    (void)state;
    Node *x = input("x", ROWS, COLUMNS);
    Node *most = ingot_reduce(c, INGOT_REDUCE_MAX, x, 2, true);
    Node *y = ingot_sub(c, x, ingot_expand(c, most, 2, x->shape));
    double most_cost = op_info[OP_REDUCE].cost;
    RegionWork r = region_of(s, y);
    assert_true(all_ops(&r) == (1 + most_cost) * ROWS * COLUMNS);
    assert_true(r.bytes == 4.0 * ROWS * COLUMNS);
    s->fuse_rows = false;
    r = region_of(s, y);
    assert_true(all_ops(&r) == ROWS * COLUMNS * (1 + most_cost * COLUMNS));
}

/* Beside another reduce a sum of products is no tile. */
static void a_product_in_company(void **state)
{
    (void)state;
    Node *x = input("x", ROWS, DEPTH), *y = input("y", DEPTH, COLUMNS),
         *z = input("z", ROWS, COLUMNS);
    Node *row = ingot_expand(c, ingot_reduce(c, INGOT_REDUCE_MAX, z, 2, true), 2, z->shape);
    RegionWork r = region_of(s, ingot_add(c, ingot_matmul(c, x, y), row));
    assert_true(r.ops[UNIT_TILE] == 0 && r.ops[UNIT_SCALAR] == 2.0 * ROWS * DEPTH * COLUMNS);
}

/* What is stored ends a region; of a slice only that is read. */
static void what_is_read(void **state)
{
    (void)state;
    Node *x = input("x", ROWS, COLUMNS), *e = ingot_exp(c, x);
    Node *part = ingot_slice(c, e, 0, idx(c, 4), idx(c, 8), 1);
    RegionWork r = region_of(s, ingot_neg(c, part));
    assert_true(r.bytes == 4.0 * 8 * COLUMNS);
    assert_true(all_ops(&r) == (1 + op_info[OP_EXP].cost) * 8.0 * COLUMNS);
    info_of(s, e)->stored = true;
    r = region_of(s, ingot_neg(c, part));
    assert_true(all_ops(&r) == 8.0 * COLUMNS);
}

/* Two products of one operand: as one kernel they read it once, and a copy computes nothing. */
static void several_values(void **state)
{
    (void)state;
    Node *x = input("x", ROWS, DEPTH), *y = input("y", DEPTH, COLUMNS),
         *z = input("z", DEPTH, COLUMNS);
    Stored all[] = {{ingot_matmul(c, x, y), false}, {ingot_matmul(c, x, z), false}};
    RegionWork r = region_of_all(s, 2, all);
    assert_true(all_ops(&r) == 2 * 2.0 * ROWS * DEPTH * COLUMNS);
    assert_true(r.bytes == 4.0 * (ROWS * DEPTH + 2 * DEPTH * COLUMNS));
    assert_int_equal(r.buffers, 3);
    assert_true(region_fits(&r));
    info_of(s, all[1].node)->stored = all[1].copy = true;
    r = region_of_all(s, 2, all);
    assert_true(all_ops(&r) == 2.0 * ROWS * DEPTH * COLUMNS);
    assert_true(r.bytes == 4.0 * (ROWS * DEPTH + DEPTH * COLUMNS + ROWS * COLUMNS));
}

static void memory_or_arithmetic(void **state)
{
    (void)state;
    Target t = {.machine.rate = {1, 10, 20},
                .machine.level = {{1000, 8}, {0, 2}},
                .machine.line = 64,
                .machine.launch = 7};
    RegionWork r = {.ops = {5, 100, 400}, .bytes = 800};
    assert_true(cost_region(&r, &t) == 100 + 7); /* 800 / 8 */
    r.bytes = 1600;
    assert_true(cost_region(&r, &t) == 800 + 7); /* 1600 / 2: it does not fit */
    r.bytes = 80;
    assert_true(cost_region(&r, &t) == 5 + 10 + 20 + 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_node_once, start, end),
        cmocka_unit_test_setup_teardown(a_product_at_its_full_length, start, end),
        cmocka_unit_test_setup_teardown(rows, start, end),
        cmocka_unit_test_setup_teardown(a_product_in_company, start, end),
        cmocka_unit_test_setup_teardown(what_is_read, start, end),
        cmocka_unit_test_setup_teardown(several_values, start, end),
        cmocka_unit_test(memory_or_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
