/* target_costs(): what time goes to, by what is known of a machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "targets/targets.h"

/* A processor that multiplies half a vector at once takes twice as long for products; for all else, and from memory, as long. */
static void halves(void **state)
{
    (void)state;
    Target whole = {.lanes = 16}, half = whole;
    target_costs(&whole, false, false);
    target_costs(&half, true, false);
    assert_true(whole.rate[UNIT_VECTOR] == half.rate[UNIT_VECTOR]);
    assert_true(whole.rate[UNIT_TILE] == 2 * half.rate[UNIT_TILE]);
    assert_true(whole.rate[UNIT_SCALAR] == half.rate[UNIT_SCALAR]);
    assert_memory_equal(whole.level, half.level, sizeof whole.level);
}

/* What is known by its name is the same on every machine that compiles for it. */
static void by_name(void **state)
{
    (void)state;
    Target t = {.lanes = 16}, named = {0};
    target_costs(&t, false, false);
    assert_true(target_tune(&named, "x86-64-v4"));
    assert_memory_equal(t.rate, named.rate, sizeof t.rate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(halves), cmocka_unit_test(by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
