/* parallel_test.c - networks that several devices share: collectives of the graph, plans of each
 * way to share, run by the interpreter, and faults that are put into them.
 *
 * Data are small integers, whose sums are exact in any order: results are those of the graph, to
 * the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot_ops.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/plan/segments.h"
#include "compiler/simulate/plan_interp.h"

enum { ROWS = 8, WIDE = 48, MOST = 1 << 12 };

static float small_number(int i, int seed)
{
    return (float)((i * 7 + seed * 13 + i / 11) % 5 - 2);
}

static ingot_tensor *input(Context *c, const char *name, int64_t rows, int64_t columns)
{
    return ingot_input(c, name, INGOT_F32, 2,
                       (ingot_dim *[]){ingot_dim_const(c, rows), ingot_dim_const(c, columns)});
}

static ingot_tensor *weight(Context *c, int seed, int64_t rows, int64_t columns)
{
    float *data = arena_alloc(c->arena, (size_t)(rows * columns) * sizeof *data);
    for (int i = 0; i < rows * columns; i++)
        data[i] = small_number(i, seed);
    return ingot_data(c, NULL, INGOT_F32, 2, (int64_t[]){rows, columns}, data);
}

static ingot_tensor *dense(Context *c, ingot_tensor *x, int seed, int64_t in, int64_t out)
{
    return ingot_add(c, ingot_matmul(c, x, weight(c, seed, in, out)), weight(c, seed + 1, 1, out));
}

/* Pairs of products, the greatest of a row between them. */
static void layers(Context *c)
{
    ingot_tensor *x = input(c, "x", ROWS, WIDE);
    for (int i = 0; i < 2; i++) {
        ingot_tensor *h = ingot_relu(c, dense(c, x, 4 * i, WIDE, 4 * WIDE));
        h = dense(c, h, 4 * i + 2, 4 * WIDE, WIDE);
        x = ingot_add(c, x, ingot_sign(c, h));
        x = ingot_sub(c, x, ingot_reduce(c, INGOT_REDUCE_MAX, x, 2, 1));
    }
    ingot_output(c, "y", x);
    ingot_output(c, "sum", ingot_reduce(c, INGOT_REDUCE_ADD, x, 1, 0));
}

/* A product of two values by heads: their axis is the leading part of the one that is split. */
static void heads(Context *c)
{
    ingot_dim *split[] = {ingot_dim_const(c, ROWS), ingot_dim_const(c, 4),
                          ingot_dim_const(c, WIDE)},
              *joined[] = {ingot_dim_const(c, ROWS), ingot_dim_const(c, 4 * WIDE)};
    ingot_tensor *x = input(c, "x", ROWS, WIDE), *q = dense(c, x, 1, WIDE, 4 * WIDE),
                 *k = dense(c, x, 3, WIDE, 4 * WIDE);
    const int by_head[] = {1, 0, 2}, turned[] = {1, 2, 0}, back[] = {1, 0, 2};
    q = ingot_permute(c, ingot_reshape(c, ingot_sign(c, q), 3, split), by_head);
    k = ingot_reshape(c, ingot_sign(c, k), 3, split);
    ingot_tensor *y = ingot_matmul(c, ingot_matmul(c, q, ingot_permute(c, k, turned)), q);
    y = ingot_reshape(c, ingot_permute(c, ingot_sign(c, y), back), 2, joined);
    ingot_output(c, "y", dense(c, y, 5, 4 * WIDE, WIDE));
}

/* What is moved, padded, joined and gathered keeps its rows. */
static void moved(Context *c)
{
    ingot_tensor *x = input(c, "x", ROWS, WIDE), *z = input(c, "z", ROWS, WIDE);
    ingot_tensor *both = ingot_concat(c, 2, (ingot_tensor *[]){x, ingot_relu(c, z)}, 1);
    ingot_tensor *h = dense(c, both, 1, 2 * WIDE, WIDE);
    ingot_output(c, "y", ingot_concat(c, 2, (ingot_tensor *[]){h, x}, 0));
    ingot_output(c, "scan", ingot_scan(c, INGOT_REDUCE_ADD, h, 0));
}

/* Sums over the rows of all devices, which are added, moved and rounded. */
static void summed(Context *c)
{
    ingot_tensor *x = input(c, "x", ROWS, WIDE), *z = input(c, "z", ROWS, WIDE);
    ingot_dim *turned[] = {ingot_dim_const(c, WIDE), ingot_dim_const(c, 1)};
    x = ingot_reduce(c, INGOT_REDUCE_ADD, ingot_mul(c, x, x), 1, 0);
    z = ingot_reduce(c, INGOT_REDUCE_ADD, z, 1, 0);
    x = ingot_reshape(c, ingot_add(c, x, z), 2, turned);
    ingot_output(c, "y", ingot_cast(c, ingot_cast(c, x, INGOT_F16), INGOT_F32));
}

/* Of a weight the gradient, as training has it: a sum of products over the rows of all devices. */
static void outer(Context *c)
{
    const int turned[] = {1, 0};
    ingot_tensor *x = input(c, "x", 12, WIDE), *z = dense(c, x, 1, WIDE, 4 * WIDE);
    ingot_output(c, "y", ingot_matmul(c, ingot_permute(c, x, turned), ingot_sign(c, z)));
}

/* Of each row the element whose number its greatest one is. */
static void picked(Context *c)
{
    ingot_dim *dims[] = {ingot_dim_const(c, ROWS), ingot_dim_const(c, WIDE)};
    ingot_tensor *x = input(c, "x", ROWS, WIDE), *z = input(c, "z", ROWS, WIDE);
    ingot_tensor *most = ingot_cast(c, ingot_reduce(c, INGOT_REDUCE_MAX, z, 2, 1), INGOT_I64);
    ingot_tensor *here = ingot_eq(c, ingot_iota(c, 2, dims, 1), most);
    x = ingot_where(c, here, x, ingot_like(c, x, 0));
    ingot_output(c, "y", ingot_reduce(c, INGOT_REDUCE_ADD, x, 2, 1));
}

typedef struct {
    void (*build)(Context *);
    const char *way;
} ParallelCase;
static const ParallelCase cases[] = {{layers, "tensor"}, {layers, "batch"}, {layers, "layers"},
                                     {heads, "tensor"},  {heads, "layers"}, {moved, "batch"},
                                     {summed, "batch"},  {picked, "batch"}, {outer, "batch"}};

/* ---- values ---------------------------------------------------------------------------------- */

static void give_inputs(Context *c, Arena *a, ingot_value *in)
{
    for (int i = 0; i < c->ninput; i++) {
        const Node *n = c->inputs[i].node;
        float *x = arena_alloc(a, MOST * sizeof *x);
        in[i] = (ingot_value){.data = x, .rank = n->rank, .dtype = INGOT_F32};
        for (int d = 0; d < n->rank; d++)
            in[i].dims[d] = n->shape[d]->hi;
        for (int k = 0; k < MOST; k++)
            x[k] = small_number(k, 9 + i);
    }
}

static bool same_values(int n, const ingot_value *got, const ingot_value *want)
{
    for (int i = 0; i < n; i++) {
        size_t bytes = elem_bytes(want[i].dtype);
        for (int d = 0; d < want[i].rank; d++)
            bytes *= (size_t)want[i].dims[d];
        if (memcmp(got[i].data, want[i].data, bytes))
            return false;
    }
    return true;
}

/* Are the plan's results those of the graph as it was imported? A fault counts as none. */
static bool runs_as(const Plan *p, const ingot_value *want, Arena *a)
{
    ingot_value in[4], got[8];
    PlanInterp run = {.p = p};
    give_inputs(p->c, a, in);
    return plan_interpret(&run, a, in, got) && same_values(p->c->noutput, got, want);
}

static ingot_options options(const char *way, int devices)
{
    return (ingot_options){.struct_size = sizeof(ingot_options),
                           .target = "c:x86-64-v3",
                           .devices = devices,
                           .parallel = way};
}

/* ---- collectives of the graph ---------------------------------------------------------------- */

static void in_order(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    Arena *a = arena_new();
    const float x[3][4] = {{1, 2, 3, 1e8f}, {10, 20, 30, 1}, {100, 200, 300, -1e8f}};
    ingot_tensor *src[3];
    for (int i = 0; i < 3; i++)
        src[i] = ingot_data(c, NULL, INGOT_F32, 1, (int64_t[]){4}, x[i]);
    const Collective sum = {.kind = ALL_REDUCE, .monoid = INGOT_REDUCE_ADD, .receiver = 2},
                     all = {.kind = ALL_GATHER, .receiver = 1},
                     part = {.kind = REDUCE_SCATTER, .monoid = INGOT_REDUCE_MAX, .receiver = 1};
    ingot_output(c, "sum", collective_make(c, &sum, 3, src));
    ingot_output(c, "turned", collective_make(c, &sum, 3, (Node *[]){src[2], src[0], src[1]}));
    ingot_output(c, "all", collective_make(c, &all, 2, src));
    ingot_output(c, "part", collective_make(c, &part, 2, src));
    ingot_value out[4];
    assert_int_equal(ingot_interpret(c, 0, NULL, 4, out), INGOT_OK);
    const float *s = out[0].data, *t = out[1].data;
    assert_true(s[0] == 111 && s[2] == 333);
    assert_true(s[3] == 0 && t[3] == 1); /* 1e8 + 1 is 1e8: ranks in another order are seen */
    assert_int_equal(out[2].dims[0], 8);
    assert_memory_equal(out[2].data, x, sizeof(float[8]));
    assert_int_equal(out[3].dims[0], 2);
    assert_memory_equal(out[3].data, ((float[]){30, 1e8f}), sizeof(float[2]));
    arena_free(a);
    ingot_context_free(c);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static Plan *plan_for(Context *c, const ParallelCase *k, int devices, Arena *a, ingot_value *want)
{
    ingot_value in[4];
    const ingot_options o = options(k->way, devices);
    k->build(c);
    give_inputs(c, a, in);
    assert_int_equal(ingot_interpret(c, c->ninput, in, c->noutput, want), INGOT_OK);
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    return p;
}

static void shared_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int devices = 2; devices <= 4; devices += 2) {
            Context *c = ingot_context_new(NULL, NULL);
            Arena *a = arena_new();
            ingot_value want[8], in[4], graph[8];
            Plan *p = plan_for(c, &cases[i], devices, a, want);
            int used[MOST_DEVICES] = {0}, nused = 0;
            for (int k = 0; k < p->main.n; k++)
                nused += !used[p->main.step[k]->device]++;
            assert_true(nused == devices || (nused > 1 && !strcmp(cases[i].way, "layers")));
            assert_int_equal(p->ndevice, devices);
            give_inputs(c, a, in); /* the graph with its collectives */
            assert_int_equal(ingot_interpret(c, c->ninput, in, c->noutput, graph), INGOT_OK);
            assert_true(same_values(c->noutput, graph, want));
            assert_true(runs_as(p, want, a));
            plan_free(p);
            arena_free(a);
            ingot_context_free(c);
        }
}

/* What sums make together crosses once, as it is rounded. */
static void terms_cross_once(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    Arena *a = arena_new();
    ingot_value want[8];
    Plan *p = plan_for(c, &(ParallelCase){summed, "batch"}, 2, a, want);
    int n, crosses = 0;
    Node **nodes = graph_nodes(a, c, &n);
    for (int i = 0; i < n; i++)
        if (nodes[i]->op == OP_COLLECTIVE) {
            assert_int_equal(nodes[i]->dtype, INGOT_F16);
            crosses++;
        }
    assert_int_equal(crosses, 1);
    plan_free(p);
    arena_free(a);
    ingot_context_free(c);
}

/* Of a sum that more than two devices make, each adds a piece and gets the others, with the bits of
 * the whole: of the last device there may be none. */
static void sums_in_pieces(void **state)
{
    (void)state;
    for (int devices = 3; devices <= 4; devices++) {
        Context *c = ingot_context_new(NULL, NULL);
        Arena *a = arena_new();
        ingot_value want[8];
        Plan *p = plan_for(c, &(ParallelCase){outer, "batch"}, devices, a, want);
        const int64_t piece = 4 * WIDE * WIDE / devices;
        int pieces = 0, placed = 0;
        int64_t size, from, to;
        for (int i = 0; i < p->main.n; i++) {
            const Step *s = p->main.step[i];
            if (s->kind != STEP_COPY || s->bufs[0]->device == s->bufs[1]->device ||
                !idx_value(s->elements, &size) || size != piece)
                continue;
            assert_true(idx_value(s->src_offset, &from));
            pieces += from > 0;
            placed += s->dst_offset && idx_value(s->dst_offset, &to) && to > 0;
        }
        assert_int_equal(pieces, (devices - 1) * (devices - 1)); /* those of the first begin at 0 */
        assert_int_equal(placed, devices - 1);
        assert_true(runs_as(p, want, a));
        plan_free(p);
        arena_free(a);
        ingot_context_free(c);
    }
}

/* Numbers along an axis that is not split are no part of others: rules look for them. */
static void numbers_are_found(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    Arena *a = arena_new();
    ingot_value want[8];
    Plan *p = plan_for(c, &(ParallelCase){picked, "batch"}, 2, a, want);
    int n;
    Node **nodes = graph_nodes(a, c, &n);
    for (int i = 0; i < n; i++)
        assert_false(nodes[i]->op == OP_SHRINK && nodes[i]->src[0]->op == OP_IOTA);
    plan_free(p);
    arena_free(a);
    ingot_context_free(c);
}

/* Each wait that is there is needed, and none is missing. */
static void waits_are_found(void **state)
{
    (void)state;
    int missing = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Context *c = ingot_context_new(NULL, NULL);
        Arena *a = arena_new();
        ingot_value want[8];
        Plan *p = plan_for(c, &cases[i], 2, a, want);
        const Segments s = plan_segments(a, p);
        const char *why = segments_fault(a, p, &s);
        if (why)
            fail_msg("%s", why);
        for (int k = 0; k < s.n; k++)
            for (int d = 0; d < 2; d++) {
                int *waits = &s.segment[k].waits[d], before = 0;
                for (int j = 0; j < k; j++)
                    if (s.segment[j].device == s.segment[k].device)
                        before = before > s.segment[j].waits[d] ? before : s.segment[j].waits[d];
                if (*waits <= before)
                    continue; /* an earlier segment of the device has waited for it */
                *waits -= 1;
                why = segments_fault(a, p, &s);
                assert_non_null(why);
                assert_non_null(strstr(why, "does not wait for step"));
                *waits += 1;
                missing++;
            }
        plan_free(p);
        arena_free(a);
        ingot_context_free(c);
    }
    assert_true(missing > 12);
}

/* A copy from a wrong place of a peer, or to one, is seen in the results. */
static void offsets_are_found(void **state)
{
    (void)state;
    const ParallelCase of[] = {{layers, "tensor"}, {moved, "batch"}};
    for (size_t i = 0; i < 2; i++) {
        Context *c = ingot_context_new(NULL, NULL);
        Arena *a = arena_new();
        ingot_value want[8];
        Plan *p = plan_for(c, &of[i], 2, a, want);
        int tried = 0;
        for (int k = 0; k < p->main.n; k++) {
            Step *s = p->main.step[k];
            if (s->kind != STEP_COPY || s->bufs[0]->device == s->bufs[1]->device)
                continue;
            Node *was = s->src_offset, *elements = s->elements;
            s->src_offset = idx_add(c, was, idx(c, 1));
            s->elements = idx_sub(c, elements, idx(c, 1));
            assert_false(runs_as(p, want, a));
            s->src_offset = was;
            s->elements = elements;
            tried++;
        }
        assert_true(tried > 1 && runs_as(p, want, a));
        plan_free(p);
        arena_free(a);
        ingot_context_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),         cmocka_unit_test(shared_out),
        cmocka_unit_test(terms_cross_once), cmocka_unit_test(numbers_are_found),
        cmocka_unit_test(waits_are_found),  cmocka_unit_test(offsets_are_found),
        cmocka_unit_test(sums_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
