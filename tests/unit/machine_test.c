/* target_costs(): what time goes to, by what is known of a machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "targets/targets.h"

/* A processor that multiplies half a vector at once takes twice as long for products; for all else,
 * and from memory, as long. */
static void halves(void **state)
{
    (void)state;
    Target whole = {.machine.lanes = 16}, half = whole;
    target_costs(&whole, false, false);
    target_costs(&half, true, false);
    assert_true(whole.machine.rate[UNIT_VECTOR] == half.machine.rate[UNIT_VECTOR]);
    assert_true(whole.machine.rate[UNIT_TILE] == 2 * half.machine.rate[UNIT_TILE]);
    assert_true(whole.machine.rate[UNIT_SCALAR] == half.machine.rate[UNIT_SCALAR]);
    assert_memory_equal(whole.machine.level, half.machine.level, sizeof whole.machine.level);
}

/* What is known by its name is the same on every machine that compiles for it. */
static void by_name(void **state)
{
    (void)state;
    Target t = {.machine.lanes = 16}, named = {0};
    target_costs(&t, false, false);
    assert_true(target_tune(&named, "x86-64-v4"));
    assert_memory_equal(t.machine.rate, named.machine.rate, sizeof t.machine.rate);
}

/* What "native" is here has a name, which says the same; such names have their figures behind them,
 * in order. */
static void everywhere(void **state)
{
    (void)state;
    static const char *const wrong[] = {"x86-64-v4+cache",   "x86-64-v4+cache1",
                                        "x86-64-v4+cache1g", "x86-64-v4+cache1m+halves",
                                        "+halves",           "native+cache1m"};
    Arena *a = arena_new();
    Target here = {0}, named = {0};
    const char *name = native_name(a);
    if (name) {
        assert_true(target_tune(&here, "native") && target_tune(&named, name));
        assert_true(here.machine.lanes == named.machine.lanes &&
                    here.machine.registers == named.machine.registers);
        assert_true(here.machine.dot == named.machine.dot &&
                    here.machine.pairs == named.machine.pairs);
        assert_true(here.machine.units == named.machine.units &&
                    here.machine.any_sign == named.machine.any_sign);
        assert_true(here.machine.cache == named.machine.cache);
        assert_memory_equal(here.machine.rate, named.machine.rate, sizeof here.machine.rate);
    }
    assert_true(target_tune(&named, "x86-64-v4+vnni+halves+cache1280k"));
    assert_true(named.machine.lanes == 16 && named.machine.dot && !named.machine.pairs &&
                named.machine.cache == 1280 << 10);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(target_tune(&named, wrong[i]));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(halves), cmocka_unit_test(by_name),
                                       cmocka_unit_test(everywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
