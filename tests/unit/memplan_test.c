/* memplan_test.c - the memory planner on hand-made and on random plans: no two buffers that are
 * alive at the same time may share a byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/compiler.h"

enum { ALIGN = 64 };

static Plan *plan_begin(Context *c)
{
    return plan_new(c);
}

static Buffer *buffer(Plan *p, BufferKind kind, int64_t bytes)
{
    Buffer *b = NEW(p->arena, Buffer);
    b->id = p->nbuffer;
    b->kind = kind;
    b->dtype = INGOT_U8;
    b->bytes = bytes;
    vec_push(p->arena, p->buffers, p->nbuffer, b);
    return b;
}

static Step *step(Plan *p, Block *block, StepKind kind)
{
    Step *s = NEW(p->arena, Step);
    s->kind = kind;
    s->number = p->nstep++;
    s->first_inner = p->nstep;
    s->last_inner = s->number;
    vec_push(p->arena, block->step, block->n, s);
    return s;
}

static Step *copy(Plan *p, Block *block, Buffer *dst, Buffer *src)
{
    Step *s = step(p, block, STEP_COPY);
    s->nbuf = 2;
    s->bufs = NEWN(p->arena, Buffer *, 2);
    s->bufs[0] = dst;
    s->bufs[1] = src;
    return s;
}

/* out[i] = f(in[i]): may work in place.  Reversed: out[i] = f(in[n-1-i]), and may not. */
static Step *map(Plan *p, Block *block, Buffer *out, Buffer *in, bool reversed)
{
    Step *s = step(p, block, STEP_KERNEL);
    Kernel *k = NEW(p->arena, Kernel);
    Context *c = k->c = context_child(p->c);
    Node *n = idx(c, out->bytes), *yes = node_bool(c, true);
    Node **dims = NEWN(p->arena, Node *, 1);
    dims[0] = n;
    k->narg = 2;
    k->args = NEWN(p->arena, KernelArg, 2);
    k->args[0] = (KernelArg){.dtype = INGOT_U8, .rank = 1, .dims = dims, .written = true};
    k->args[1] = (KernelArg){.dtype = INGOT_U8, .rank = 1, .dims = dims, .read = true};
    Node *r = range_new(c, 0, n);
    Node *at = reversed ? idx_sub(c, idx(c, out->bytes - 1), r) : r;
    Node *from = node_make(c, OP_BUFFER, INGOT_U8, (Arg){.i = 1}, 0, NULL, 0, NULL);
    Node *to = node_make(c, OP_BUFFER, INGOT_U8, (Arg){.i = 0}, 0, NULL, 0, NULL);
    Node *load = node_make(c, OP_LOAD, INGOT_U8, (Arg){0}, 3, (Node *[]){from, yes, at}, 0, NULL);
    Node *store =
        node_make(c, OP_STORE, INGOT_U8, (Arg){0}, 4, (Node *[]){to, yes, load, r}, 0, NULL);
    Node *end = node_make(c, OP_END, INGOT_BOOL, (Arg){0}, 1, &store, 0, NULL);
    k->sink = node_make(c, OP_SINK, INGOT_BOOL, (Arg){0}, 1, &end, 0, NULL);
    vec_push(p->arena, p->kernels, p->nkernel, k);
    s->kernel = k;
    s->nbuf = 2;
    s->bufs = NEWN(p->arena, Buffer *, 2);
    s->bufs[0] = out;
    s->bufs[1] = in;
    return s;
}

static bool overlap(const Buffer *a, const Buffer *b)
{
    return a->bytes && b->bytes && a->memory == b->memory && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

/* Buffers that meet in one step only may be in place there; longer meetings may not share. */
static void check(const Plan *p)
{
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *a = p->buffers[i];
        if (a->kind != BUF_ARENA && a->kind != BUF_STATE)
            continue;
        assert_true(a->offset >= 0 && a->offset % ALIGN == 0);
        assert_true(a->offset + a->bytes <= p->memories[a->memory].bytes);
        if (a->kind == BUF_STATE)
            assert_true(a->memory == p->state_memory && a->offset + a->bytes <= p->state_bytes);
        for (int j = i + 1; j < p->nbuffer; j++) {
            const Buffer *b = p->buffers[j];
            if (b->kind != BUF_ARENA && b->kind != BUF_STATE)
                continue;
            if (a->base || b->base)
                continue;
            bool always = a->kind == BUF_STATE || b->kind == BUF_STATE;
            bool together = always || (a->first <= b->last && b->first <= a->last);
            bool chain = a->last == b->first || b->last == a->first;
            if (together && (always || !chain))
                assert_false(overlap(a, b));
            if (together && !always && chain && overlap(a, b))
                assert_true(a->offset == b->offset && a->bytes == b->bytes); /* in place */
        }
    }
}

/* ---- by hand ----------------------------------------------------------------------------- */

static void chain_reuses(void **state)
{
    Context *c = *state;
    Plan *p = plan_begin(c);
    Buffer *in = buffer(p, BUF_INPUT, 1000), *t[6];
    for (int i = 0; i < 6; i++) {
        t[i] = buffer(p, BUF_ARENA, 1000);
        copy(p, &p->main, t[i], i ? t[i - 1] : in);
    }
    assert_true(memplan(p, ALIGN));
    check(p);
    assert_int_equal(p->arena_bytes, 2 * 1024);
    plan_free(p);
}

static void in_place_where_allowed(void **state)
{
    Context *c = *state;
    for (int reversed = 0; reversed < 2; reversed++) {
        Plan *p = plan_begin(c);
        Buffer *in = buffer(p, BUF_INPUT, 64), *a = buffer(p, BUF_ARENA, 64),
               *b = buffer(p, BUF_ARENA, 64);
        Buffer *out = buffer(p, BUF_OUTPUT, 64);
        copy(p, &p->main, a, in);
        Step *s = map(p, &p->main, b, a, reversed);
        copy(p, &p->main, out, b);
        assert_true(memplan(p, ALIGN));
        check(p);
        assert_int_equal(p->arena_bytes, reversed ? 128 : 64);
        assert_int_equal(s->kernel->args[1].read, reversed);
        assert_int_equal(s->kernel->args[0].read, !reversed);
        plan_free(p);
    }
}

/* out[i][0][j] = f(in[i][j]), both column by column; with a halo, or one row by row, the bytes are
 * others. */
static void in_place_where_bytes_are_the_same(void **state)
{
    Context *c = *state;
    enum { SAME, HALO, ROWS, CASES };
    for (int how = 0; how < CASES; how++) {
        Plan *p = plan_begin(c);
        Buffer *in = buffer(p, BUF_INPUT, 64), *a = buffer(p, BUF_ARENA, 64),
               *b = buffer(p, BUF_ARENA, 64), *out = buffer(p, BUF_OUTPUT, 64);
        copy(p, &p->main, a, in);
        Step *s = map(p, &p->main, b, a, false);
        copy(p, &p->main, out, b);
        Kernel *k = s->kernel;
        Node *i = range_new(k->c, 0, idx(k->c, 8)), *j = range_new(k->c, 1, idx(k->c, 8)),
             *yes = node_bool(k->c, true), *none = idx(k->c, 0);
        Node *dims[] = {idx(k->c, 8), idx(k->c, 1), idx(k->c, 8)};
        Node *from = node_make(k->c, OP_BUFFER, INGOT_U8, (Arg){.i = 1}, 0, NULL, 0, NULL);
        Node *to = node_make(k->c, OP_BUFFER, INGOT_U8, (Arg){.i = 0}, 0, NULL, 0, NULL);
        Node *load =
            node_make(k->c, OP_LOAD, INGOT_U8, (Arg){0}, 4, (Node *[]){from, yes, i, j}, 0, NULL);
        Node *store = node_make(k->c, OP_STORE, INGOT_U8, (Arg){0}, 6,
                                (Node *[]){to, yes, load, i, none, j}, 0, NULL);
        Node *end = node_make(k->c, OP_END, INGOT_BOOL, (Arg){0}, 1, &store, 0, NULL);
        k->sink = node_make(k->c, OP_SINK, INGOT_BOOL, (Arg){0}, 1, &end, 0, NULL);
        Node *square[] = {dims[0], dims[2]};
        k->args[0].rank = 3;
        k->args[0].dims = dims;
        k->args[1].rank = 2;
        k->args[1].dims = square;
        k->args[0].layout = (Layout){1, {{.kind = LAYOUT_PERMUTE, .perm = {3, {2, 0, 1}}}}};
        if (how != ROWS)
            k->args[1].layout = (Layout){1, {{.kind = LAYOUT_PERMUTE, .perm = {2, {1, 0}}}}};
        if (how == HALO)
            for (int x = 0; x < 2; x++)
                k->args[x].layout.op[k->args[x].layout.n++] = (LayoutOp){.kind = LAYOUT_PAD};
        assert_true(memplan(p, ALIGN));
        check(p);
        assert_int_equal(p->arena_bytes, how == SAME ? 64 : 128);
        assert_int_equal(k->args[1].read, how != SAME);
        plan_free(p);
    }
}

static void not_in_place_if_read_later(void **state)
{
    Context *c = *state;
    Plan *p = plan_begin(c);
    Buffer *in = buffer(p, BUF_INPUT, 64), *a = buffer(p, BUF_ARENA, 64),
           *b = buffer(p, BUF_ARENA, 64);
    Buffer *out = buffer(p, BUF_OUTPUT, 64);
    copy(p, &p->main, a, in);
    map(p, &p->main, b, a, false);
    copy(p, &p->main, out, b);
    copy(p, &p->main, out, a);
    assert_true(memplan(p, ALIGN));
    assert_int_equal(p->arena_bytes, 128);
    plan_free(p);
}

/* a is made before the loop and read in its first step: it has to last until the loop ends. */
static void loops_stretch(void **state)
{
    Context *c = *state;
    Plan *p = plan_begin(c);
    Buffer *in = buffer(p, BUF_INPUT, 64), *out = buffer(p, BUF_OUTPUT, 64);
    Buffer *a = buffer(p, BUF_ARENA, 64), *inner = buffer(p, BUF_ARENA, 64),
           *late = buffer(p, BUF_ARENA, 64);
    Buffer *carried = buffer(p, BUF_ARENA, 64);
    copy(p, &p->main, a, in);
    Step *loop = step(p, &p->main, STEP_LOOP);
    copy(p, &loop->body, inner, a);
    copy(p, &loop->body, late, carried);
    copy(p, &loop->body, out, late);
    copy(p, &loop->body, carried, inner);
    loop->last_inner = p->nstep - 1;
    assert_true(memplan(p, ALIGN));
    check(p);
    assert_int_equal(a->last, loop->last_inner);
    assert_true(carried->first <= loop->first_inner && carried->last == loop->last_inner);
    assert_false(overlap(a, late) || overlap(a, inner) || overlap(carried, inner) ||
                 overlap(carried, a));
    plan_free(p);
}

/* The loop's last step reads a, which the next iteration reads again: not in place. */
static void loop_keeps_operand(void **state)
{
    Context *c = *state;
    Plan *p = plan_begin(c);
    Buffer *in = buffer(p, BUF_INPUT, 64), *a = buffer(p, BUF_ARENA, 64),
           *b = buffer(p, BUF_ARENA, 64);
    copy(p, &p->main, a, in);
    Step *loop = step(p, &p->main, STEP_LOOP);
    map(p, &loop->body, b, a, false);
    loop->last_inner = p->nstep - 1;
    assert_true(memplan(p, ALIGN));
    assert_false(overlap(a, b));
    plan_free(p);
}

static void views_and_states(void **state)
{
    Context *c = *state;
    Plan *p = plan_begin(c);
    Buffer *s = buffer(p, BUF_STATE, 10), *t = buffer(p, BUF_STATE, 100),
           *whole = buffer(p, BUF_ARENA, 200);
    Buffer *half = buffer(p, BUF_ARENA, 100), *other = buffer(p, BUF_ARENA, 200),
           *out = buffer(p, BUF_OUTPUT, 200);
    half->base = whole;
    copy(p, &p->main, half, t);
    copy(p, &p->main, other, s);
    copy(p, &p->main, out, whole);
    copy(p, &p->main, out, other);
    assert_true(memplan(p, ALIGN));
    check(p);
    assert_int_equal(s->offset, 0);
    assert_int_equal(t->offset, 64);
    assert_int_equal(p->state_bytes, 192);
    assert_int_equal(half->offset, whole->offset);
    assert_false(overlap(whole, other));
    plan_free(p);
}

static void weights_once(void **state)
{
    Context *c = *state;
    static const float x[] = {1, 2, 3}, y[] = {1, 2, 3}, z[] = {1, 2, 4};
    const float *data[] = {x, y, z};
    Plan *p = plan_begin(c);
    Buffer *w[3], *out = buffer(p, BUF_OUTPUT, 12), *unused = buffer(p, BUF_WEIGHT, 1 << 20);
    for (int i = 0; i < 3; i++) {
        w[i] = buffer(p, BUF_WEIGHT, sizeof x);
        w[i]->node = ingot_data(c, NULL, INGOT_F32, 1, (int64_t[]){3}, data[i]);
        w[i]->dtype = INGOT_F32;
        copy(p, &p->main, out, w[i]);
    }
    assert_true(memplan(p, ALIGN));
    assert_int_equal(w[0]->offset, w[1]->offset);
    assert_int_not_equal(w[0]->offset, w[2]->offset);
    assert_int_equal(p->weights_bytes, 128);
    assert_int_equal(unused->last, -1);
    plan_free(p);
}

static void overflow_is_told(void **state)
{
    Context *c = *state;
    Plan *p = plan_begin(c);
    Buffer *in = buffer(p, BUF_INPUT, 8), *a = buffer(p, BUF_ARENA, (INT64_C(1) << 40) - 100);
    Buffer *b = buffer(p, BUF_ARENA, (INT64_C(1) << 40) - 100), *out = buffer(p, BUF_OUTPUT, 8);
    copy(p, &p->main, a, in);
    copy(p, &p->main, b, a);
    copy(p, &p->main, out, b);
    assert_false(memplan(p, ALIGN));
    assert_int_equal(ingot_context_status(c), INGOT_UNSUPPORTED);
    plan_free(p);
}

/* ---- several memories --------------------------------------------------------------------- */

static void memory(Plan *p, const char *name, int64_t limit)
{
    Memory m = {.name = name, .limit = limit};
    vec_push(p->arena, p->memories, p->nmemory, m);
}

/* The last reader of something large does not wait until its own result is wanted, but for what it
 * needs and for whom it disturbs. */
static void last_reader_runs_early(void **state)
{
    Context *c = *state;
    for (int disturbs = 0; disturbs < 2; disturbs++) {
        Plan *p = plan_begin(c);
        Buffer *in = buffer(p, BUF_INPUT, 2048), *out = buffer(p, BUF_OUTPUT, 2048);
        Buffer *large = buffer(p, BUF_ARENA, 2048), *small = buffer(p, BUF_ARENA, 256),
               *other = buffer(p, BUF_ARENA, 2048), *late = buffer(p, BUF_ARENA, 256);
        map(p, &p->main, large, in, false);
        map(p, &p->main, small, large, true);
        map(p, &p->main, other, disturbs ? late : small, true);
        Step *reads = map(p, &p->main, out, other, true);
        Step *moves = map(p, &p->main, late, large, true);
        map(p, &p->main, out, late, true);
        map(p, &p->main, out, small, true);
        run_early(p);
        assert_ptr_equal(p->main.step[disturbs ? 4 : 2], moves);
        assert_ptr_equal(p->main.step[disturbs ? 3 : 4], reads);
        plan_free(p);
    }
}

/* Of three that are alive together, the one that is read most often takes the first memory. */
static void hot_first(void **state)
{
    Context *c = *state;
    Plan *p = plan_begin(c);
    memory(p, "fast", 64);
    memory(p, "slow", 0);
    Buffer *in = buffer(p, BUF_INPUT, 64), *out = buffer(p, BUF_OUTPUT, 64), *t[3];
    for (int i = 0; i < 3; i++)
        t[i] = buffer(p, BUF_ARENA, 64);
    for (int i = 0; i < 3; i++)
        copy(p, &p->main, t[i], in);
    copy(p, &p->main, out, t[1]);
    copy(p, &p->main, out, t[1]);
    for (int i = 0; i < 3; i++)
        copy(p, &p->main, out, t[i]);
    assert_true(memplan(p, ALIGN));
    check(p);
    assert_int_equal(t[0]->memory, 1);
    assert_int_equal(t[1]->memory, 0);
    assert_int_equal(t[2]->memory, 1);
    assert_int_equal(p->memories[0].bytes, 64);
    assert_int_equal(p->memories[1].bytes, 128);
    assert_int_equal(p->arena_bytes, 192);
    plan_free(p);
}

/* What is read most fits into both memories, the other one into the first alone: it has to give
 * way. */
static void hot_gives_way(void **state)
{
    Context *c = *state;
    Plan *p = plan_begin(c);
    memory(p, "fast", 256);
    memory(p, "slow", 128);
    Buffer *in = buffer(p, BUF_INPUT, 256), *out = buffer(p, BUF_OUTPUT, 256);
    Buffer *hot = buffer(p, BUF_ARENA, 128), *large = buffer(p, BUF_ARENA, 256);
    copy(p, &p->main, hot, in);
    copy(p, &p->main, large, in);
    for (int i = 0; i < 9; i++)
        copy(p, &p->main, out, hot);
    copy(p, &p->main, out, large);
    assert_true(memplan(p, ALIGN));
    check(p);
    assert_int_equal(hot->memory, 1);
    assert_int_equal(large->memory, 0);
    assert_true(p->memories[1].bytes <= 128);
    plan_free(p);
}

static void states_together(void **state)
{
    Context *c = *state;
    Plan *p = plan_begin(c);
    memory(p, "fast", 128);
    memory(p, "slow", 1024);
    Buffer *s = buffer(p, BUF_STATE, 100), *t = buffer(p, BUF_STATE, 100),
           *small = buffer(p, BUF_ARENA, 100);
    Buffer *out = buffer(p, BUF_OUTPUT, 100), *large = buffer(p, BUF_ARENA, 500);
    copy(p, &p->main, small, s);
    copy(p, &p->main, large, t);
    copy(p, &p->main, out, small);
    copy(p, &p->main, out, large);
    assert_true(memplan(p, ALIGN));
    check(p);
    assert_int_equal(p->state_memory, 1);
    assert_int_equal(s->memory, 1);
    assert_int_equal(large->offset, 256);
    assert_int_equal(small->memory, 0);
    plan_free(p);
}

static void too_small_is_told(void **state)
{
    Context *c = *state;
    Plan *p = plan_begin(c);
    memory(p, "fast", 64);
    memory(p, "slow", 128);
    Buffer *in = buffer(p, BUF_INPUT, 256), *out = buffer(p, BUF_OUTPUT, 256),
           *a = buffer(p, BUF_ARENA, 256);
    const Buffer *worst[3];
    copy(p, &p->main, a, in);
    copy(p, &p->main, out, a);
    assert_true(memplan(p, ALIGN));
    check(p);
    assert_int_equal(p->memories[1].bytes, 256);
    assert_int_equal(memplan_peak(p, 1, worst, 3), 1);
    assert_ptr_equal(worst[0], a);
    assert_int_equal(memplan_peak(p, 0, worst, 3), 0);
    plan_free(p);
}

/* ---- random plans ------------------------------------------------------------------------ */

static uint32_t random_below(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % n;
}

static void random_block(Plan *p, Block *block, Buffer **live, int *nlive, uint64_t *seed,
                         int depth)
{
    int n = 1 + (int)random_below(seed, 12);
    for (int i = 0; i < n; i++) {
        if (depth < 3 && random_below(seed, 6) == 0) {
            Step *loop = step(p, block, STEP_LOOP);
            int outer = *nlive; /* what is made inside is forgotten outside */
            random_block(p, &loop->body, live, nlive, seed, depth + 1);
            loop->last_inner = p->nstep - 1;
            *nlive = outer;
            continue;
        }
        Buffer *from = live[random_below(seed, (uint32_t)*nlive)];
        Buffer *to =
            buffer(p, BUF_ARENA, 1 + random_below(seed, 3) * 64 + random_below(seed, 2) * 500);
        if (to->bytes == from->bytes && from->kind == BUF_ARENA)
            map(p, block, to, from, random_below(seed, 3) == 0);
        else
            copy(p, block, to, from);
        live[(*nlive)++] = to;
    }
}

static void random_plans(void **state)
{
    Context *c = *state;
    uint64_t seed = 1;
    for (int round = 0; round < 300; round++) {
        Plan *p = plan_begin(c);
        Buffer *live[2048];
        int nlive = 0;
        live[nlive++] = buffer(p, BUF_INPUT, 64);
        if (round % 3 == 0)
            live[nlive++] = buffer(p, BUF_STATE, 65);
        if (round % 4 > 1)
            memory(p, "first", 64 * (1 + random_below(&seed, 20)));
        if (round % 4 > 2)
            memory(p, "second", 64 * (1 + random_below(&seed, 20)));
        if (p->nmemory)
            memory(p, "last", 0);
        random_block(p, &p->main, live, &nlive, &seed, 0);
        assert_true(memplan(p, ALIGN));
        check(p);
        for (int k = 0; k + 1 < p->nmemory; k++)
            assert_true(p->memories[k].bytes <= p->memories[k].limit);
        plan_free(p);
    }
}

static int setup(void **state)
{
    *state = ingot_context_new(NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    ingot_context_free(*state);
    return 0;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(chain_reuses),  TEST(in_place_where_allowed), TEST(not_in_place_if_read_later),
        TEST(loops_stretch), TEST(loop_keeps_operand),     TEST(views_and_states),
        TEST(weights_once),  TEST(overflow_is_told),       TEST(hot_first),
        TEST(hot_gives_way), TEST(states_together),        TEST(too_small_is_told),
        TEST(random_plans),  TEST(last_reader_runs_early), TEST(in_place_where_bytes_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
