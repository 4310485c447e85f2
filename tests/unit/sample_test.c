/*
 * sample_test.c - which token is drawn: limits on what may be, seeds, penalties.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "igrt_sample.h"

#include <math.h>
#include <string.h>

enum { WORDS = 600, DRAWS = 3000 };

static float logits[WORDS];

/* Token (37 i) % WORDS is the i-th most likely, each one e^-0.5 times as likely as the one before.
 */
static void fill(void)
{
    for (int i = 0; i < WORDS; i++)
        logits[37 * i % WORDS] = 20 - 0.5f * (float)i;
}

static int32_t draw(igrt_sampling *how)
{
    fill();
    return igrt_sample(how, logits, WORDS, NULL, 0);
}

/* The place of a token among the likeliest. */
static int place_of(int32_t id)
{
    for (int i = 0; i < WORDS; i++)
        if (37 * i % WORDS == id)
            return i;
    return -1;
}

static void the_likeliest_is_taken(void **state)
{
    (void)state;
    igrt_sampling how = {.seed = 5};
    assert_int_equal(draw(&how), 0);
    assert_true(how.seed == 5); /* nothing was drawn */
    how = (igrt_sampling){.temperature = 2, .top_k = 1};
    for (int i = 0; i < 50; i++)
        assert_int_equal(draw(&how), 0);
    how = (igrt_sampling){0};
    fill();
    logits[0] = NAN;
    assert_int_equal(igrt_sample(&how, logits, WORDS, NULL, 0), 37);
    for (int i = 0; i < WORDS; i++)
        logits[i] = 1; /* of equals the first */
    assert_int_equal(igrt_sample(&how, logits, WORDS, NULL, 0), 0);
}

/* The largest place that is drawn, and how often the first one is. */
static int largest_place(igrt_sampling how, double *first)
{
    int most = 0, n = 0;
    for (int i = 0; i < DRAWS; i++) {
        const int place = place_of(draw(&how));
        most = place > most ? place : most;
        n += !place;
    }
    *first = n / (double)DRAWS;
    return most;
}

static void limits_hold(void **state)
{
    (void)state;
    const double share = 1 - exp(-0.5); /* of the first of all */
    double first;
    assert_true(largest_place((igrt_sampling){.temperature = 1, .seed = 1}, &first) > 8);
    assert_true(fabs(first - share) < 0.03);
    assert_int_equal(largest_place((igrt_sampling){.temperature = 1, .top_k = 3}, &first), 2);
    assert_true(fabs(first - share / (1 - exp(-1.5))) < 0.03);
    /* 1 - e^-0.5 k >= 0.6 from k = 2 on */
    assert_int_equal(largest_place((igrt_sampling){.temperature = 1, .top_p = 0.6f}, &first), 1);
    /* e^-0.5 k >= 0.3 up to k = 2 */
    assert_int_equal(largest_place((igrt_sampling){.temperature = 1, .min_p = 0.3f}, &first), 2);
    assert_true(largest_place((igrt_sampling){.temperature = 50}, &first) > 300);
}

static void seeds_are_all_there_is(void **state)
{
    (void)state;
    igrt_sampling a = {.temperature = 1.5f, .seed = 7}, b = a, c = {.temperature = 1.5f, .seed = 8};
    int same = 0;
    for (int i = 0; i < 100; i++) {
        const int32_t x = draw(&a);
        assert_int_equal(x, draw(&b));
        same += x == draw(&c);
    }
    assert_true(same < 70);
}

static void what_came_lately_is_less_likely(void **state)
{
    (void)state;
    const int32_t ids[] = {0, 0, 0, 37, -1, WORDS}; /* those that are none are no matter */
    igrt_sampling how = {.repeat_penalty = 1.1f};
    fill();
    assert_int_equal(igrt_sample(&how, logits, WORDS, ids, 6), 74);
    assert_true(fabsf(logits[0] - 20 / 1.1f) < 1e-4f); /* once, however often it came */
    how.repeat_last = 3;
    fill();
    assert_int_equal(igrt_sample(&how, logits, WORDS, ids, 6), 0); /* too long ago */
    fill();
    logits[74] = -2;
    how.repeat_last = 1;
    (void)igrt_sample(&how, logits, WORDS, (const int32_t[]){74}, 1);
    assert_true(fabsf(logits[74] + 2.2f) < 1e-5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_likeliest_is_taken),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(seeds_are_all_there_is),
        cmocka_unit_test(what_came_lately_is_less_likely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
