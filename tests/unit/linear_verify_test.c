/* linear_verify_test.c - loads stay inside of loops that may have no iteration, and one that was
 * taken out is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot_ops.h"
#include "linear_run.h"

/* x[n], n 0..9, times the first elements of s, which may have none, and of t, which has one. */
static ingot_tensor *scaled(Context *c)
{
    ingot_dim *n[] = {ingot_dim_var(c, "n", 0, 9)}, *one[] = {idx(c, 1)}, *begin[] = {idx(c, 0)};
    ingot_dim *m = ingot_dim_var(c, "m", 0, 4), *k = ingot_dim_var(c, "k", 1, 4);
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 1, n);
    ingot_tensor *s = ingot_shrink(c, ingot_input(c, "s", INGOT_F32, 1, &m), begin, one),
                 *t = ingot_shrink(c, ingot_input(c, "t", INGOT_F32, 1, &k), begin, one);
    return ingot_mul(c, ingot_mul(c, x, ingot_expand(c, s, 1, n)), ingot_expand(c, t, 1, n));
}

static ingot_tensor *scaled_softmax(Context *c)
{
    return ingot_softmax(c, scaled(c), 0);
}

static NestRun statements(ingot_tensor *(*model)(Context *))
{
    Target t = *target_find("c");
    Context *c = ingot_context_new(NULL, NULL);
    NestRun r = run_new(c, model(c), &t);
    r.lowered = lower_nest(r.nest, false);
    r.lk = linear_kernel(r.a, r.lowered);
    return r;
}

static const char *refused(NestRun *r)
{
    int at = -1;
    return linear_verify(r->a, &r->lk->tile[0], r->lowered->tiles.k, &at);
}

/* Statements that load the first element of the only argument with these dims, and in how many
 * loops each stands. */
static int loads_of(const NestRun *r, int64_t least, int *at)
{
    const Linear *l = &r->lk->tile[0];
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        const Node *load = l->stmt[i].node;
        if (l->stmt[i].kind != STMT_LET || load->op != OP_LOAD || !idx_is(load->src[2], 0))
            continue;
        const KernelArg *arg = &r->lowered->tiles.k->args[load->src[0]->arg.i];
        if (arg->dims[0]->lo == least && arg->dims[0]->hi == 4)
            at[n++] = i;
    }
    return n;
}

static void load_first(NestRun *r, int at)
{
    Linear *l = &r->lk->tile[0];
    Stmt s = l->stmt[at];
    memmove(&l->stmt[1], &l->stmt[0], (size_t)at * sizeof s);
    s.depth = 0;
    l->stmt[0] = s;
}

static void what_is_there_leaves_its_loop(void **state)
{
    (void)state;
    NestRun r = statements(scaled);
    int at[8];
    assert_null(refused(&r));
    assert_int_equal(loads_of(&r, 1, at), 1);
    assert_int_equal(r.lk->tile[0].stmt[at[0]].depth, 0);
    assert_int_equal(loads_of(&r, 0, at), 1);
    assert_int_equal(r.lk->tile[0].stmt[at[0]].depth, 1);
    run_free(&r);
}

static void what_may_not_be_there_is_refused_before_it(void **state)
{
    (void)state;
    NestRun r = statements(scaled);
    int at[8];
    assert_int_equal(loads_of(&r, 0, at), 1);
    load_first(&r, at[0]);
    const char *why = refused(&r);
    assert_non_null(why);
    assert_non_null(strstr(why, "outside of the loop over i0, which may have no iteration"));
    LinearArg none[8] = {{0}};
    assert_false(linear_run(&r.m, r.lk, none, (const int64_t[]){0, 0, 1}, NULL));
    assert_non_null(strstr(r.m.fault, "statement 0 of loop nest 0 (let, load f32"));
    assert_non_null(strstr(r.m.fault, "which may have no iteration"));
    run_free(&r);
}

/* A maximum, a sum and results, each in loops of its own: none of them may load for the others. */
static void each_reader_loads_for_itself(void **state)
{
    (void)state;
    NestRun r = statements(scaled_softmax);
    int at[8];
    assert_null(refused(&r));
    assert_int_equal(loads_of(&r, 1, at), 1);
    assert_int_equal(r.lk->tile[0].stmt[at[0]].depth, 0);
    assert_int_equal(loads_of(&r, 0, at), 3);
    load_first(&r, at[0]);
    assert_non_null(refused(&r));
    run_free(&r);
}

/* y[i] = the sum of x[r, i % n], i < 3 n: n is 0 or 1, so this is x[r, 0] if there is an i. */
static ingot_tensor *repeated(Context *c, bool least)
{
    ingot_dim *n = ingot_dim_var(c, "n", 0, 1), *m = ingot_dim_var(c, "m", 1, 5);
    ingot_dim *shape[] = {m, n}, *three[] = {idx(c, 3), n}, *row[] = {idx_mul(c, n, idx(c, 3))};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, shape);
    ingot_tensor *sum = least ? ingot_argmin(c, x, 0, true, false) : ingot_sum(c, x, 1, true);
    return ingot_reshape(c, ingot_expand(c, sum, 2, three), 1, row);
}

static ingot_tensor *repeated_sum(Context *c)
{
    return repeated(c, false);
}

/* The value is read by the index alone. */
static ingot_tensor *repeated_index(Context *c)
{
    return repeated(c, true);
}

static int find(const Linear *l, StmtKind kind)
{
    for (int i = 0; i < l->n; i++)
        if (l->stmt[i].kind == kind)
            return i;
    return -1;
}

static void a_sum_of_what_may_not_be_there_stays_where_it_is_read(void **state)
{
    (void)state;
    NestRun r = statements(repeated_index);
    assert_null(refused(&r));
    assert_int_equal(r.lk->tile[0].stmt[find(&r.lk->tile[0], STMT_ACC)].depth, 1);
    run_free(&r);
    r = statements(repeated_sum);
    Linear *l = &r.lk->tile[0];
    assert_null(refused(&r));
    const int acc = find(l, STMT_ACC), end = find(l, STMT_END);
    assert_int_equal(l->stmt[acc].depth, 1);
    assert_int_equal(l->stmt[0].kind, STMT_LOOP);
    /* the sum before the loop over results, which is opened behind it */
    Stmt loop = l->stmt[0];
    for (int i = 0; i < end; i++) {
        l->stmt[i] = l->stmt[i + 1];
        l->stmt[i].depth--;
    }
    l->stmt[end] = loop;
    assert_non_null(refused(&r));
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_leaves_its_loop),
        cmocka_unit_test(what_may_not_be_there_is_refused_before_it),
        cmocka_unit_test(each_reader_loads_for_itself),
        cmocka_unit_test(a_sum_of_what_may_not_be_there_stays_where_it_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
