/* The tuner's clock, which may count steps, and limits of child processes, which are times of a
 * core: a busy machine ends nobody. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compiler/tools/tune/tune_run.h"

static void steps(void **state)
{
    (void)state;
    setenv("INGOT_CLOCK", "steps", 1);
    assert_true(clock_is_steps() && !clock_unknown());
    const double began = seconds_now();
    for (int i = 0; i < 999; i++)
        (void)seconds_now();
    clock_pass(2);
    assert_true(seconds_now() - began > 2.9999 && seconds_now() - began < 3.002);
    setenv("INGOT_CLOCK", "hours", 1);
    assert_true(!clock_is_steps());
    assert_string_equal(clock_unknown(), "hours");
    setenv("INGOT_CLOCK", "", 1);
    assert_true(!clock_is_steps() && !clock_unknown());
    unsetenv("INGOT_CLOCK");
    const double now = machine_seconds();
    assert_true(!clock_is_steps() && !clock_unknown() && seconds_now() >= now);
}

static Child start(const char *script, int most)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    Child c;
    assert_true(child_start(&c, argv, NULL, true, false, most));
    return c;
}

/* One that waits is waited for; one that takes its core is late, with whatever it says before. */
static void lines(void **state)
{
    (void)state;
    Arena *a = arena_new();
    bool late;
    Child c = start("sleep 0.3; echo one; while :; do :; done", 0);
    const char *line = child_line(&c, a, 0.2, 1000, &late);
    assert_true(line && !late);
    assert_string_equal(line, "one");
    assert_null(child_line(&c, a, 0.2, 1000, &late));
    assert_true(late);
    assert_int_equal(child_end(&c, 0), 128 + SIGKILL);

    c = start("sleep 100", 0); /* for as many times as long */
    assert_null(child_line(&c, a, 0.01, 5, &late));
    assert_true(late);
    assert_int_equal(child_end(&c, 0), 128 + SIGKILL);

    c = start("exit 3", 0);
    assert_null(child_line(&c, a, 10, 10, &late));
    assert_true(!late);
    assert_int_equal(child_end(&c, 100), 3);
    arena_free(a);
}

static void limit(void **state)
{
    (void)state;
    Child c = start("while :; do :; done", 1);
    assert_int_equal(child_end(&c, 1e6), 128 + SIGKILL);
    c = start("sleep 1.2; exit 4", 1);
    assert_int_equal(child_end(&c, 1e6), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(lines),
                                       cmocka_unit_test(limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
