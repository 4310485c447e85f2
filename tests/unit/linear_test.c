/* linear_test.c - the interpreter of linear IR: what it makes of sound statements, and that it
 * finds what was planted into them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot_ops.h"
#include "compiler/simulate/linear_code.h"
#include "linear_run.h"

enum { M = 37, K = 40, N = 50 };

static ingot_tensor *variable(Context *c, const char *name, int64_t rows, int64_t columns)
{
    return ingot_input(c, name, INGOT_F32, 2, (ingot_dim *[]){idx(c, rows), idx(c, columns)});
}

static int64_t elements(const Kernel *k, int i)
{
    return layout_elements(&k->args[i].layout, k->args[i].rank, k->args[i].dims);
}

/* opts: "VECTOR i1 8, UPCAST i0 4" */
static NestRun prepare(ingot_tensor *(*model)(Context *), const char *opts, bool gpu)
{
    Target t = *target_find(gpu ? "opencl" : "c");
    assert_true(gpu || target_tune(&t, "x86-64-v4"));
    Context *c = ingot_context_new(NULL, NULL);
    NestRun r = run_new(c, model(c), &t);
    run_opts(r.nest, opts);
    run_lower(&r, gpu);
    return r;
}

static ingot_tensor *product(Context *c)
{
    return ingot_relu(c, ingot_matmul(c, variable(c, "x", M, K), variable(c, "w", K, N)));
}

static ingot_tensor *product_of_rows(Context *c)
{
    return ingot_matmul(c, variable(c, "x", M, K),
                        ingot_transpose(c, variable(c, "w", N, K), 0, 1));
}

static ingot_tensor *softmax(Context *c)
{
    return ingot_softmax(c, variable(c, "x", M, N), 1);
}

static ingot_tensor *row_sums(Context *c)
{
    return ingot_sum(c, variable(c, "x", M, N), 2, false);
}

/* Every other place of a window has no element of x, and those behind the last element end the
 * loops over terms. */
static ingot_tensor *widened(Context *c)
{
    static const int64_t two[] = {2, 2}, one[] = {1, 1}, zero[] = {0, 0}, before[] = {3, 0};
    const int64_t x[] = {1, 3, 5, 5}, w[] = {3, 2, 4, 4};
    ingot_dim *of_x[4], *of_w[4];
    for (int i = 0; i < 4; i++) {
        of_x[i] = idx(c, x[i]);
        of_w[i] = idx(c, w[i]);
    }
    return ingot_conv_transpose(c, ingot_input(c, "x", INGOT_F32, 4, of_x),
                                ingot_input(c, "w", INGOT_F32, 4, of_w), NULL, two, one, before,
                                zero, zero, 1);
}

/* A scale for each row, which is a sum of products. */
static ingot_tensor *scaled_rows(Context *c)
{
    ingot_tensor *terms = ingot_mul(c, variable(c, "w", M, K), variable(c, "s", 1, K));
    return ingot_mul(c, variable(c, "x", M, N), ingot_relu(c, ingot_sum(c, terms, 2, true)));
}

static ingot_tensor *sums(Context *c)
{
    return ingot_cumsum(c, variable(c, "x", M, N), 0, false, false);
}

/* Eight items share the terms of a row's scale, and walk over a block of the row. */
static const char *const walks =
    "MASK r0 3, SPLIT r0 14, BIND r0.o lane, MASK i1 16, SPLIT i1 16, "
    "BIND i1.o grid, MASK i0 8, SPLIT i0 8, BIND i0.o grid, BIND i0.i lane";

/* Runs it and compares it with the kernel without opts: "", or what is wrong. */
static const char *wrong(NestRun *r, ingot_tensor *(*model)(Context *))
{
    return run_wrong(r, prepare(model, "", r->t->gpu));
}

static void expect(NestRun *r, ingot_tensor *(*model)(Context *), const char *sentence)
{
    const char *fault = wrong(r, model);
    if (*sentence ? !strstr(fault, sentence) : *fault)
        fail_msg("'%s' where '%s' was wanted", fault, sentence);
    run_free(r);
}

static void sound(void **state)
{
    (void)state;
    static const char *const opts[] = {
        "",
        "VECTOR i1 16, UPCAST i0 4",
        "VECTOR i1 8, UPCAST i0 3, UNROLL r0 4",
        "VECTOR i1 8, UPCAST i0 2, UNROLL r0 3",
        "VECTOR i1 8, ORDER i1.o i0 r0, PREFETCH i1.o 2",
        "VECTOR i1 8, ORDER i1.o i0 r0, PREFETCH r0 2",
        "SPLIT i0 5, UPCAST i1 7, THREAD i0.o 3",
        "OVERLAP i0 4, UPCAST i0.i 4, VECTOR i1 16",
        "OVERLAP i0 5, OVERLAP i0.o 3, UPCAST i0.o.i 3, THREAD i0.o.o 2"};
    for (size_t i = 0; i < sizeof opts / sizeof *opts; i++) {
        NestRun r = prepare(product, opts[i], false);
        r.m.backwards = true;
        expect(&r, product, "");
    }
    NestRun rows = prepare(softmax, "VECTOR i1 16", false),
            scans = prepare(sums, "VECTOR i1 16", false);
    assert_true(linear_run(&rows.m, rows.lk, rows.arg, NULL, NULL));
    run_free(&rows);
    expect(&scans, sums, "");
    NestRun lanes = prepare(row_sums, "VECTOR r0 8", false);
    expect(&lanes, row_sums, "");
    NestRun rest = prepare(row_sums, "VECTOR r0 4, UNROLL r0.o 3", false);
    expect(&rest, row_sums, "");
    NestRun items = prepare(product, "", true);
    expect(&items, product, "");
    NestRun parts = prepare(row_sums, "BIND i0 grid, SPLIT r0 10, BIND r0.i lane", true);
    expect(&parts, row_sums, "");
    NestRun walked = prepare(scaled_rows, walks, true);
    expect(&walked, scaled_rows, "");
}

/* So many work items as an expression of a run-time size says, of which a statement has the name
 * too. */
static ingot_tensor *rows_of_some(Context *c)
{
    ingot_dim *n = ingot_dim_var(c, "n", 1, 5), *dim[] = {n, idx(c, 3)};
    ingot_dim *begin[] = {idx(c, 1), idx(c, 0)},
              *size[] = {idx_sub(c, idx_min(c, n, idx(c, 3)), idx(c, 1)), idx(c, 3)};
    return ingot_shrink(c, ingot_input(c, "x", INGOT_F32, 2, dim), begin, size);
}

static void items_of_an_expression(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 5; n++) {
        NestRun r = prepare(rows_of_some, "", true);
        if (!linear_run(&r.m, r.lk, r.arg, &n, NULL))
            fail_msg("%s", r.m.fault);
        const int64_t written = n < 3 ? n - 1 : 2; /* rows of 3 */
        for (int64_t i = 0; i < 6; i++)
            assert_int_equal(shadow_written(r.arg[0].memory, 4 * i), i < 3 * written);
        run_free(&r);
    }
}

/* ---- planted faults -------------------------------------------------------------------------- */

static int find(const Linear *l, StmtKind kind, int from)
{
    while (from < l->n && l->stmt[from].kind != kind)
        from++;
    assert_true(from < l->n);
    return from;
}

/* Statement `from` comes before statement `to`. */
static void move_up(Linear *l, int from, int to)
{
    Stmt s = l->stmt[from];
    memmove(&l->stmt[to + 1], &l->stmt[to], (size_t)(from - to) * sizeof s);
    l->stmt[to] = s;
}

/* What a store writes, at another offset. */
static void store_at(NestRun *r, Node *offset)
{
    Linear *l = &r->lk->tile[0];
    Stmt *s = &l->stmt[find(l, STMT_STORE, 0)];
    Node *src[] = {s->node->src[0], s->node->src[1], s->node->src[2], offset};
    s->node =
        node_make(r->lowered->tiles.k->c, OP_STORE, s->node->dtype, s->node->arg, 4, src, 0, NULL);
}

static void a_remainder_dropped(void **state)
{
    (void)state;
    NestRun r = prepare(product, "VECTOR i1 16, UPCAST i0 4", false);
    r.lk->n--;
    expect(&r, product, "a0[36,48] is not written");
    r = prepare(product, "VECTOR i1 16, UPCAST i0 4", false);
    memmove(&r.lk->tile[0], &r.lk->tile[1], (size_t)--r.lk->n * sizeof(Linear));
    expect(&r, product, "a0[0,0] is not written");
}

static void an_index_swapped(void **state)
{
    (void)state;
    NestRun r = prepare(product, "", false);
    Context *c = r.lowered->tiles.k->c;
    const Tile *t = &r.lowered->tiles.tile[0];
    store_at(&r, idx_add(c, idx_mul(c, t->axis[1].range, idx(c, N)), t->axis[0].range));
    expect(&r, product,
           "writes a0, element 1850 of its 1850, outside of the buffer; at i0 = 0, i1 = 37");
    r = prepare(product, "", false);
    c = r.lowered->tiles.k->c;
    t = &r.lowered->tiles.tile[0];
    store_at(&r, idx_add(c, idx_mul(c, t->axis[1].range, idx(c, M)), t->axis[0].range));
    expect(&r, product, "a0[0,1] has another value");
}

static void a_let_moved_out_of_its_loop(void **state)
{
    (void)state;
    NestRun r = prepare(product, "UPCAST i0 4", false);
    Linear *l = &r.lk->tile[0];
    int inner = find(l, STMT_LOOP, find(l, STMT_ACC, 0)), let = find(l, STMT_LET, inner);
    move_up(l, let, inner);
    expect(&r, product, "reads the counter of r0, and no such loop is open here");
}

static void a_value_used_outside_of_its_loop(void **state)
{
    (void)state;
    NestRun r = prepare(product, "UPCAST i0 4", false);
    Linear *l = &r.lk->tile[0];
    int end = find(l, STMT_END, 0);
    move_up(l, end, find(l, STMT_UPDATE, 0)); /* the loop ends before its sums are added to */
    expect(&r, product, "before the statement that makes it, or outside of its loop");
}

static void a_thread_cut_through_a_reduce(void **state)
{
    (void)state;
    NestRun r = prepare(product, "", false);
    Linear *l = &r.lk->tile[0];
    Tile cut = *l->tile;
    TileAxis axis[] = {cut.reduce[0], cut.axis[0], cut.axis[1]};
    cut.axis = axis;
    cut.naxis = 3;
    cut.fused = 1;
    cut.parts = r.lk->parts = 4;
    l->tile = &cut;
    l->fused = idx(r.lowered->tiles.k->c, K);
    l->inner = NEWN(r.a, Node *, 1);
    l->inner[0] = idx(r.lowered->tiles.k->c, 1);
    l->stmt[find(l, STMT_LOOP, find(l, STMT_ACC, 0))] = (Stmt){.kind = STMT_PARTS};
    l->stmt[find(l, STMT_END, 0)].node = NULL;
    expect(&r, product, "uses an accumulator (reduce f32) that has 10 of its 40 terms");
}

static void an_accumulator_not_reset(void **state)
{
    (void)state;
    NestRun r = prepare(product, "", false);
    Linear *l = &r.lk->tile[0];
    int acc = find(l, STMT_ACC, 0);
    move_up(l, acc, acc - 1);
    expect(&r, product, "the accumulator starts outside of the loop over i1");
    r = prepare(product, "", false);
    l = &r.lk->tile[0];
    acc = find(l, STMT_ACC, 0);
    memmove(&l->stmt[acc], &l->stmt[acc + 1], (size_t)(--l->n - acc) * sizeof *l->stmt);
    expect(&r, product, "adds to an accumulator that has not been started");
}

static void a_sum_read_too_soon(void **state)
{
    (void)state;
    NestRun r = prepare(product, "", false);
    Linear *l = &r.lk->tile[0];
    move_up(l, find(l, STMT_STORE, 0), find(l, STMT_END, 0));
    expect(&r, product, "has 1 of its 40 terms; at i0 = 0, i1 = 0, r0 = 0");
}

static void a_scan_out_of_order(void **state)
{
    (void)state;
    NestRun r = prepare(sums, "", false);
    Linear *l = &r.lk->tile[0];
    int update = find(l, STMT_UPDATE, 0);
    vec_push(r.a, l->stmt, l->n, l->stmt[update]);
    move_up(l, l->n - 1, update);
    expect(&r, sums, "adds term 0 to a scan that has 1");
}

/* What items read in front of a barrier of their group may be written behind it, whoever has read
 * it since; not what another one, or one of another group, has read since. */
static void readers(void **state)
{
    static const struct {
        struct {
            int item, group, barriers;
        } read[3], write;
        AccessFault how;
    } given[] = {
        {{{0, 1, 0}, {1, 1, 0}, {0, 1, 0}}, {0, 1, 1}, ACCESS_GOOD},
        {{{0, 1, 0}, {1, 1, 0}, {0, 1, 2}}, {0, 1, 2}, ACCESS_GOOD},
        {{{0, 1, 0}, {1, 1, 0}, {1, 1, 2}}, {0, 1, 2}, ACCESS_READ_RACE},
        {{{0, 1, 0}, {1, 1, 1}, {0, 1, 1}}, {0, 1, 1}, ACCESS_READ_RACE},
        {{{0, 1, 0}, {9, 2, 0}, {0, 1, 2}}, {0, 1, 2}, ACCESS_READ_RACE},
        {{{0, 1, 0}, {0, 1, 2}, {9, 2, 0}}, {0, 1, 3}, ACCESS_READ_RACE},
        {{{0, 1, 0}, {1, 1, 1}, {1, 1, 2}}, {9, 2, 3}, ACCESS_READ_RACE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        Arena *a = arena_new();
        ShadowMemory *m = shadow_new(a, 4, 4);
        int64_t where;
        shadow_given(m, 0, 4);
        const Epoch launch = (Epoch)9 << 32;
        for (int r = 0; r < 3; r++)
            assert_int_equal(
                shadow_read(m, 0, 4, launch | (Epoch)given[i].read[r].item,
                            (uint64_t)given[i].read[r].group << 32 | given[i].read[r].barriers,
                            &where),
                ACCESS_GOOD);
        assert_int_equal(
            shadow_write(m, 0, 4, launch | (Epoch)given[i].write.item,
                         (uint64_t)given[i].write.group << 32 | given[i].write.barriers, &where),
            given[i].how);
        arena_free(a);
    }
}

static void races(void **state)
{
    (void)state;
    NestRun r = prepare(product, "THREAD i0 4", false);
    store_at(&r, r.lowered->tiles.tile[0].axis[1].range);
    expect(&r, product,
           "a race: writes a0[0,0], which another part writes; at i0 = 9, i1 = 0; in part 1");
    r = prepare(product, "", true);
    store_at(&r, r.lowered->tiles.tile[0].axis[0].range);
    expect(&r, product, "a race: writes a0[0,0], which another work item writes");
    r = prepare(product, "THREAD i0 4", false); /* in place, where others read */
    for (int i = 0; i < r.lk->narg; i++)
        if (r.lk->k->args[i].read && elements(r.lk->k, i) == K * N)
            for (int j = 0; j < r.lk->narg; j++)
                if (r.lk->k->args[j].written)
                    r.arg[j].memory = r.arg[i].memory;
    expect(&r, product, "a race: reads a2[0,0], which another part writes");
}

/* Groups of 8 x 8 items that share blocks of both operands. */
static const char *const blocks = "MASK i0 8, MASK i1 8, SPLIT i0 8, SPLIT i1 8, SPLIT r0 8, BIND "
                                  "i0.o grid, BIND i1.o grid, BIND i0.i lane, "
                                  "BIND i1.i lane, STAGE r0.o 1, STAGE r0.o 2";

/* Without one barrier after the other: an item reads what another has not filled, or fills what it
 * still reads. */
static void each_barrier(ingot_tensor *(*model)(Context *), const char *opts, int items, int least)
{
    NestRun r = prepare(model, opts, true);
    int barriers = 0;
    assert_int_equal(r.lk->group, items);
    for (int i = 0; i < r.lk->tile[0].n; i++)
        barriers += r.lk->tile[0].stmt[i].kind == STMT_BARRIER;
    assert_true(barriers >= least);
    expect(&r, model, "");
    for (int left = 0; left < barriers; left++) {
        r = prepare(model, opts, true);
        Linear *l = &r.lk->tile[0];
        int at = find(l, STMT_BARRIER, 0);
        for (int i = 0; i < left; i++)
            at = find(l, STMT_BARRIER, at + 1);
        memmove(&l->stmt[at], &l->stmt[at + 1], (size_t)(l->n - at - 1) * sizeof *l->stmt);
        l->n--;
        const char *fault = wrong(&r, model);
        if (!strstr(fault, "which nothing has written") && !strstr(fault, "a race: "))
            fail_msg("without barrier %d: '%s'", left, fault);
        run_free(&r);
    }
}

static void a_barrier_left_out(void **state)
{
    (void)state;
    each_barrier(product, blocks, 64, 2);
    each_barrier(scaled_rows, walks, 24, 1);
}

/* What a result loads is on its way before items wait for each other. */
static void a_load_before_the_barrier(void **state)
{
    (void)state;
    NestRun r = prepare(
        scaled_rows, "SPLIT r0 20, BIND r0.o lane, BIND i0 grid, SPLIT i1 2, BIND i1.o grid", true);
    const Linear *l = &r.lk->tile[0];
    const int barrier = find(l, STMT_BARRIER, 0);
    int loads = 0;
    for (int i = 0; i < barrier; i++)
        loads += l->stmt[i].kind == STMT_LET && l->stmt[i].node->op == OP_LOAD;
    assert_int_equal(loads, 1);
    expect(&r, scaled_rows, "");
}

static void nothing_written(void **state)
{
    (void)state;
    NestRun r = prepare(softmax, "VECTOR i1 16", false);
    for (int i = 0; i < r.lk->narg; i++)
        shadow_forget(r.arg[i].memory, 20 * 4, 4);
    assert_false(linear_run(&r.m, r.lk, r.arg, NULL, NULL));
    assert_non_null(strstr(r.m.fault, "[0,20], which nothing has written"));
    run_free(&r);
}

/* x is copied for each block of rows: here always to the first elements. */
static void a_place_not_filled(void **state)
{
    (void)state;
    const char *opts = "VECTOR i1 16, UPCAST i0 4, STAGE i0.o 1";
    NestRun r = prepare(product, opts, false);
    assert_true(r.lk->k->narg > r.lk->narg);
    expect(&r, product, "");
    r = prepare(product, opts, false);
    Linear *l = &r.lk->tile[0];
    Context *c = r.lowered->tiles.k->c;
    Stmt *fill = &l->stmt[find(l, STMT_STORE, 0)];
    Node *n = fill->node, *from = l->tile->fill[0].range, *to = idx(c, 0);
    assert_int_equal(n->src[0]->arg.i, r.lk->narg);
    Node *src[] = {n->src[0], n->src[1], n->src[2], substitute(c, n->src[3], 1, &from, &to)};
    fill->node = node_make(c, OP_STORE, n->dtype, n->arg, 4, src, 0, NULL);
    expect(&r, product, "which nothing has written; at i0.o = 0, i1.o = 0, r0 = 1");
}

/* What is in lanes lies a row apart: a place is filled with rows that are transposed in registers,
 * the last ones of which begin before the end of those before. */
static void a_place_of_rows(void **state)
{
    (void)state;
    static const char *const opts[] = {
        "VECTOR i1 16, UPCAST i0 3, ORDER i1.o i0.o r0, STAGE i1.o 2",
        "VECTOR i1 8, UPCAST i0 3, UPCAST i1.o 3, ORDER i1.o.o i0.o r0, STAGE i1.o.o 2"};
    for (int i = 0; i < 2; i++) {
        NestRun r = prepare(product_of_rows, opts[i], false);
        const Linear *l = &r.lk->tile[0];
        bool rows = false;
        for (int j = 0; j < find(l, STMT_ACC, 0); j++)
            rows |= l->stmt[j].kind == STMT_LET && is_rows(l->stmt[j].node);
        assert_true(rows);
        expect(&r, product_of_rows, "");
    }
}

/* Loops that read a place end at a mask, those that fill it do not: what is behind the mask is no
 * element of x there either. */
static void a_place_behind_a_mask(void **state)
{
    (void)state;
    static const char *const opts[] = {
        "ORDER i2 i1 i0 r2 r0 r1, STAGE i2 1", "ORDER i1 i2 i0 r0 r1 r2, STAGE i1 1",
        "UPCAST i2 2, UNROLL r1 2, ORDER i1 i2.o i0 r0 r1.o r2, STAGE i1 1"};
    for (size_t i = 0; i < sizeof opts / sizeof *opts; i++) {
        NestRun r = prepare(widened, opts[i], false);
        expect(&r, widened, "");
    }
}

/* ((x w) u) (x w): a plan of three kernels; the second buffer on the first one, which the third
 * kernel reads too. */
static void a_buffer_on_a_live_one(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_tensor *t = ingot_matmul(c, variable(c, "x", 8, 8), variable(c, "w", 8, 8));
    ingot_tensor *u = ingot_matmul(c, t, variable(c, "u", 8, 8));
    ingot_output(c, "y", ingot_matmul(c, u, t));
    Plan *p = schedule(c, 2, target_find("c"));
    assert_non_null(p);
    kernel_share(p);
    assert_true(memplan(p, 64));
    float data[64] = {1};
    ingot_value in[3], out[1];
    for (int i = 0; i < 3; i++)
        in[i] = (ingot_value){.data = data, .rank = 2, .dims = {8, 8}, .dtype = INGOT_F32};
    Buffer *first = p->main.step[0]->bufs[0], *second = p->main.step[1]->bufs[0];
    assert_true(first->kind == BUF_ARENA && second->kind == BUF_ARENA);
    Arena *a = arena_new();
    PlanInterp good = {.p = p};
    assert_true(plan_interpret(&good, a, in, out));
    assert_int_equal(((const float *)out[0].data)[0], 1);
    second->offset = first->offset;
    PlanInterp bad = {.p = p};
    assert_false(plan_interpret(&bad, a, in, out));
    assert_non_null(strstr(bad.fault, "which step 2 still uses"));
    arena_free(a);
    plan_free(p);
    ingot_context_free(c);
}

static void no_form(void **state)
{
    (void)state;
    NestRun r = prepare(product, "", false);
    r.lk->tile[0].stmt[0].kind = (StmtKind)77;
    expect(&r, product, "(unknown): there is no form for");
    r = prepare(product, "", false);
    Linear *l = &r.lk->tile[0];
    int store = find(l, STMT_STORE, 0);
    Context *c = r.lowered->tiles.k->c;
    Node *n = l->stmt[store].node, *value = n->src[2];
    Node *keep = node_make(c, OP_KEEP, value->dtype, (Arg){0}, 1, &value, 0, NULL);
    Node *src[] = {n->src[0], n->src[1], keep, n->src[3]};
    l->stmt[store].node = node_make(c, OP_STORE, n->dtype, n->arg, 4, src, 0, NULL);
    expect(&r, product, "there is no form for keep in an expression");
    r = prepare(product, "", false);
    r.m.most = 1000;
    expect(&r, product, "more than 1000 instructions");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound),
        cmocka_unit_test(items_of_an_expression),
        cmocka_unit_test(a_remainder_dropped),
        cmocka_unit_test(an_index_swapped),
        cmocka_unit_test(a_let_moved_out_of_its_loop),
        cmocka_unit_test(a_value_used_outside_of_its_loop),
        cmocka_unit_test(a_thread_cut_through_a_reduce),
        cmocka_unit_test(an_accumulator_not_reset),
        cmocka_unit_test(a_sum_read_too_soon),
        cmocka_unit_test(a_scan_out_of_order),
        cmocka_unit_test(races),
        cmocka_unit_test(readers),
        cmocka_unit_test(a_barrier_left_out),
        cmocka_unit_test(a_load_before_the_barrier),
        cmocka_unit_test(nothing_written),
        cmocka_unit_test(a_place_not_filled),
        cmocka_unit_test(a_place_of_rows),
        cmocka_unit_test(a_place_behind_a_mask),
        cmocka_unit_test(a_buffer_on_a_live_one),
        cmocka_unit_test(no_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
