/* devices_test.c - buffers and steps of several devices: memories that nothing shares, and steps
 * that reach for what another device has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/compiler.h"

enum { ALIGN = 64, BYTES = 1000, ROOM = 1024 };

static Buffer *buffer(Plan *p, BufferKind kind, int device)
{
    Buffer *b = NEW(p->arena, Buffer);
    *b = (Buffer){
        .id = p->nbuffer, .kind = kind, .dtype = INGOT_U8, .bytes = BYTES, .device = device};
    vec_push(p->arena, p->buffers, p->nbuffer, b);
    return b;
}

/* A step that writes to one buffer and reads another; as the check sees it, whatever is computed.
 */
static Step *step(Plan *p, StepKind kind, Buffer *to, Buffer *from, int device)
{
    Step *s = NEW(p->arena, Step);
    *s = (Step){.kind = kind, .number = p->nstep++, .device = device, .name = "move", .nbuf = 2};
    s->first_inner = p->nstep;
    s->last_inner = s->number;
    s->bufs = NEWN(p->arena, Buffer *, 2);
    s->bufs[0] = to;
    s->bufs[1] = from;
    vec_push(p->arena, p->main.step, p->main.n, s);
    return s;
}

/* in -> a (0) -> b (1) -> d (1) -> e (0) -> out: on either device two are alive at once. */
static Plan *there_and_back(Context *c, int ndevice)
{
    Plan *p = plan_new(c);
    p->ndevice = ndevice;
    const int there = ndevice - 1;
    Buffer *in = buffer(p, BUF_INPUT, 0), *a = buffer(p, BUF_ARENA, 0),
           *b = buffer(p, BUF_ARENA, there), *d = buffer(p, BUF_ARENA, there),
           *e = buffer(p, BUF_ARENA, 0), *out = buffer(p, BUF_OUTPUT, 0);
    step(p, STEP_COPY, a, in, 0);
    step(p, STEP_COPY, b, a, there);
    step(p, STEP_COPY, d, b, there);
    step(p, STEP_COPY, e, d, 0);
    step(p, STEP_COPY, out, e, 0);
    return p;
}

static void each_has_an_arena(void **state)
{
    Plan *p = there_and_back(*state, 2);
    assert_true(memplan(p, ALIGN));
    assert_null(devices_fault(p->arena, p));
    assert_int_equal(p->nmemory, 2);
    for (int i = 0; i < p->nmemory; i++)
        assert_int_equal(p->memories[i].device, i);
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffers[i]->kind == BUF_ARENA)
            assert_int_equal(p->memories[p->buffers[i]->memory].device, p->buffers[i]->device);
    assert_int_equal(p->memories[0].bytes, ROOM); /* a is dead when e is made */
    assert_int_equal(p->memories[1].bytes, 2 * ROOM);
    assert_int_equal(p->arena_bytes, ROOM);
    plan_free(p);
}

static void memories_are_of_the_first(void **state)
{
    Plan *p = there_and_back(*state, 2);
    vec_push(p->arena, p->memories, p->nmemory, ((Memory){.name = "fast", .limit = ROOM}));
    vec_push(p->arena, p->memories, p->nmemory, ((Memory){.name = "slow"}));
    assert_true(memplan(p, ALIGN));
    assert_int_equal(p->nmemory, 3);
    assert_int_equal(memories_from(p, 1), 2);
    assert_int_equal(memories_end(p, 1), 3);
    assert_int_equal(p->memories[2].bytes, 2 * ROOM);
    assert_int_equal(p->memories[0].bytes, ROOM);
    plan_free(p);
}

static void one_device_is_as_before(void **state)
{
    Plan *p = there_and_back(*state, 1);
    assert_true(memplan(p, ALIGN));
    assert_null(devices_fault(p->arena, p));
    assert_int_equal(p->nmemory, 1);
    assert_int_equal(p->arena_bytes, 2 * ROOM);
    StrBuf sb = {0};
    plan_print(&sb, p);
    assert_null(strstr(sb.data, "device"));
    sb_free(&sb);
    plan_free(p);
}

static void printed(void **state)
{
    Plan *p = there_and_back(*state, 2);
    assert_true(memplan(p, ALIGN));
    StrBuf sb = {0};
    plan_print(&sb, p);
    assert_non_null(strstr(sb.data, "\ndevice 1 arena 2048\n"));
    assert_non_null(strstr(sb.data, "buffer b2 arena u8[] at 0 device 1 layout dense\n"));
    assert_non_null(strstr(sb.data, "  copy b2 b1 device 1\n"));
    assert_non_null(strstr(sb.data, "  copy b4 b3\n"));
    sb_free(&sb);
    plan_free(p);
}

static void expect_fault(Plan *p, const char *says)
{
    const char *why = devices_fault(p->arena, p);
    assert_non_null(why);
    if (!strstr(why, says))
        fail_msg("'%s' is not in '%s'", says, why);
    plan_free(p);
}

static void faults_are_found(void **state)
{
    Plan *p = there_and_back(*state, 2);
    p->main.step[1]->kind = STEP_CALL; /* anything but a copy stays at home */
    expect_fault(p, "step 1 (move) runs on device 1 and uses buffer b1 of device 0");
    p = there_and_back(*state, 2);
    p->main.step[3]->device = 1; /* a copy belongs to where it brings something */
    expect_fault(p, "step 3 (move) runs on device 1 and uses buffer b4 of device 0");
    p = there_and_back(*state, 2);
    p->main.step[2]->device = 2;
    expect_fault(p, "step 2 (move) runs on device 2: there are devices 0 to 1");
    p = there_and_back(*state, 2);
    p->buffers[0]->device = 1;
    expect_fault(p, "buffer b0, which the caller has, is of device 1");
    p = there_and_back(*state, 2);
    p->buffers[3]->base = p->buffers[4]; /* a view lies where its buffer does */
    expect_fault(p, "uses buffer b3 of device 0");
    p = there_and_back(*state, 2);
    Step *inner = p->main.step[1], *loop = p->main.step[4];
    loop->kind = STEP_LOOP;
    loop->nbuf = 0;
    vec_push(p->arena, loop->body.step, loop->body.n, inner);
    inner->device = 0;
    memmove(p->main.step + 1, p->main.step + 2, 3 * sizeof *p->main.step);
    p->main.n--;
    expect_fault(p, "step 1 (move) runs on device 0 and uses buffer b2 of device 1");
}

static int begin(void **state)
{
    *state = ingot_context_new(NULL, NULL);
    return 0;
}

static int end(void **state)
{
    ingot_context_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_has_an_arena, begin, end),
        cmocka_unit_test_setup_teardown(memories_are_of_the_first, begin, end),
        cmocka_unit_test_setup_teardown(one_device_is_as_before, begin, end),
        cmocka_unit_test_setup_teardown(printed, begin, end),
        cmocka_unit_test_setup_teardown(faults_are_found, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
