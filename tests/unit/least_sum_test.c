/* least_sum_test.c - the least of all 2^n, by trying them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/tools/tune/tune.h"

enum { THINGS = 10, STEPS = 14, EACH = 3, ROUNDS = 200 };

/* Steps depend on up to EACH things; by their ways a number by lot. */
typedef struct {
    int on[STEPS][EACH], n[STEPS];
    double cost[STEPS][1 << EACH];
    bool changes[THINGS][STEPS], *by_thing[THINGS];
    double weight[THINGS];
} LeastSumCase;

static double cost_of(void *user, int step, const bool *way)
{
    const LeastSumCase *c = user;
    int state = 0;
    for (int i = 0; i < c->n[step]; i++)
        state |= way[c->on[step][i]] << i;
    return c->cost[step][state];
}

static void make_case(LeastSumCase *c)
{
    memset(c, 0, sizeof *c);
    for (int i = 0; i < THINGS; i++)
        c->by_thing[i] = c->changes[i];
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < EACH; i++) {
            const int thing = rand() % THINGS;
            if (c->changes[thing][step])
                continue;
            c->changes[thing][step] = true;
            c->on[step][c->n[step]++] = thing;
        }
        for (int i = 0; i < 1 << EACH; i++)
            c->cost[step][i] = rand() % 1000;
    }
}

static double sum_of(LeastSumCase *c, const bool *way)
{
    double sum = 0;
    for (int step = 0; step < STEPS; step++)
        sum += cost_of(c, step, way);
    return sum;
}

static void least_of_all(void **state)
{
    (void)state;
    srand(3);
    for (int round = 0; round < ROUNDS; round++) {
        LeastSumCase c;
        bool way[THINGS], found[THINGS];
        double least = 1e300;
        make_case(&c);
        for (int s = 0; s < 1 << THINGS; s++) {
            for (int i = 0; i < THINGS; i++)
                way[i] = s >> i & 1;
            const double sum = sum_of(&c, way);
            least = sum < least ? sum : least;
        }
        const LeastSum sum = {THINGS, STEPS, c.by_thing, c.weight, cost_of, &c};
        const double got = least_sum(&sum, found);
        assert_true(got == least);
        assert_true(sum_of(&c, found) == least);
    }
}

/* More in common than a state holds: those that weigh least stay as they are, and nothing else
 * does. */
static double all_or_nothing(void *user, int step, const bool *way)
{
    (void)step;
    int n = 0;
    for (int i = 0; i < *(int *)user; i++)
        n += way[i];
    return -n;
}

static void too_many_in_common(void **state)
{
    (void)state;
    enum { MANY = 20 };
    int n = MANY, others = 0;
    bool changes[MANY][2], *by_thing[MANY], way[MANY];
    double weight[MANY];
    for (int i = 0; i < MANY; i++) {
        by_thing[i] = changes[i];
        changes[i][0] = changes[i][1] = true;
        weight[i] = i;
    }
    const LeastSum sum = {MANY, 2, by_thing, weight, all_or_nothing, &n};
    (void)least_sum(&sum, way);
    for (int i = 0; i < MANY; i++)
        others += way[i];
    assert_true(others > 8 && others < MANY && way[MANY - 1] && !way[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(least_of_all),
                                       cmocka_unit_test(too_many_in_common)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
