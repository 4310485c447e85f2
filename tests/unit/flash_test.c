/*
 * flash_test.c - states in flash: they come back, the power fails at any write, bytes are damaged,
 * what is kept is of another model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "igrt_flash.h"

enum { BLOCKS = 6, SLOT = BLOCKS * IGRT_FLASH_BLOCK, STATES = 4 };

/* Flash whose erased bytes are 0xff; that many more changes work before the power fails. */
typedef struct Flash {
    unsigned char slot[2][SLOT];
    int left;
    unsigned char written[2][BLOCKS];
} Flash;

static int erase(void *user, int slot)
{
    Flash *f = user;
    memset(f->slot[slot], f->left ? 0xff : 0x5a, SLOT);
    memset(f->written[slot], 0, BLOCKS);
    return f->left && f->left--;
}

static int write_block(void *user, int slot, size_t at, const void *block)
{
    Flash *f = user;
    assert_true(at % IGRT_FLASH_BLOCK == 0 && at < SLOT);
    assert_false(f->written[slot][at / IGRT_FLASH_BLOCK]++);
    memcpy(f->slot[slot] + at, block, f->left ? IGRT_FLASH_BLOCK : IGRT_FLASH_BLOCK / 2);
    return f->left && f->left--;
}

static int read_block(void *user, int slot, size_t at, void *block)
{
    const Flash *f = user;
    assert_true(at % IGRT_FLASH_BLOCK == 0 && at < SLOT);
    memcpy(block, f->slot[slot] + at, IGRT_FLASH_BLOCK);
    return 1;
}

static float weight[7][5], moment[35];
static int64_t step;
static uint8_t nothing;
static Flash flash;
static const igrt_flash how = {&flash, erase, write_block, read_block, SLOT};
static igrt_state state[STATES] = {
    {"fc.weight", IGRT_F32, 2, {7, 5}, weight, sizeof weight},
    {"none", IGRT_U8, 1, {0}, &nothing, 0},
    {"fc.weight.m", IGRT_F32, 2, {7, 5}, moment, sizeof moment},
    {"train.step", IGRT_I64, 0, {0}, &step, sizeof step},
};

static void set(int value)
{
    for (int i = 0; i < 35; i++) {
        weight[i / 5][i % 5] = (float)(value * 100 + i);
        moment[i] = (float)(value * 1000 + i);
    }
    step = value;
}

static int is(int value)
{
    for (int i = 0; i < 35; i++)
        if (weight[i / 5][i % 5] != (float)(value * 100 + i) ||
            moment[i] != (float)(value * 1000 + i))
            return 0;
    return step == value;
}

static int save(int value, int left)
{
    set(value);
    flash.left = left;
    return igrt_flash_save(&how, state, STATES);
}

static int load(void)
{
    set(99);
    return igrt_flash_load(&how, state, STATES);
}

static void begin(void)
{
    memset(&flash, 0xff, sizeof flash);
}

static void the_newest_come_back(void **unused)
{
    (void)unused;
    begin();
    assert_false(load());
    assert_true(is(99));
    for (int i = 1; i < 6; i++) {
        assert_true(save(i, -1));
        assert_true(load());
        assert_true(is(i));
    }
}

static void the_power_may_fail(void **unused)
{
    (void)unused;
    for (int before = 1; before < 3; before++)
        for (int left = 0; left <= BLOCKS + 1; left++) {
            begin();
            for (int i = 1; i <= before; i++)
                assert_true(save(i, -1));
            const int saved = save(7, left);
            assert_int_equal(saved, left > BLOCKS); /* one to erase */
            assert_true(load());
            assert_true(is(7) || (!saved && is(before)));
            assert_true(is(before) || left >= BLOCKS);
            assert_true(save(8, -1));
            assert_true(load() && is(8));
        }
}

static void counters_pass_their_end(void **unused)
{
    (void)unused;
    begin();
    assert_true(save(1, -1));
    uint32_t head[4] = {IGRT_FLASH_MAGIC, 0xffffffffu, igrt_flash_kinds(state, STATES), 0};
    head[3] = igrt_flash_sum(igrt_flash_sum(~0u, head + 1, 8), flash.slot[0] + IGRT_FLASH_BLOCK,
                             igrt_flash_blocks(state, STATES) * IGRT_FLASH_BLOCK);
    memcpy(flash.slot[0], head, sizeof head);
    for (int i = 2; i < 5; i++) {
        assert_true(save(i, -1));
        assert_true(load());
        assert_true(is(i));
    }
}

static void damaged_bytes_are_seen(void **unused)
{
    (void)unused;
    for (size_t at = 0; at < 16 + 288; at++) {
        begin();
        assert_true(save(1, -1) && save(2, -1));
        flash.slot[1][at < 16 ? at : IGRT_FLASH_BLOCK + at - 16] ^= 0x10;
        assert_true(load());
        assert_true(is(1));
        flash.slot[0][IGRT_FLASH_BLOCK + 3] ^= 1;
        assert_false(load());
        assert_true(is(99));
    }
}

static void others_are_refused(void **unused)
{
    (void)unused;
    begin();
    assert_true(save(1, -1));
    const igrt_state kept = state[2];
    for (int i = 0; i < 4; i++) {
        state[2].dtype = i == 0 ? IGRT_I32 : kept.dtype;
        state[2].rank = i == 1 ? 1 : kept.rank;
        state[2].dims[0] = i == 2 ? 6 : kept.dims[0];
        state[2].name = i == 3 ? "fc.bias.m" : kept.name;
        assert_false(load());
        assert_true(is(99));
        state[2] = kept;
    }
    assert_false(igrt_flash_load(&how, state, STATES - 1));
    igrt_flash small = how;
    small.bytes = SLOT - IGRT_FLASH_BLOCK;
    assert_false(igrt_flash_load(&small, state, STATES));
    assert_false(igrt_flash_save(&small, state, STATES));
    assert_true(load());
    assert_true(is(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_come_back),    cmocka_unit_test(the_power_may_fail),
        cmocka_unit_test(counters_pass_their_end), cmocka_unit_test(damaged_bytes_are_seen),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
