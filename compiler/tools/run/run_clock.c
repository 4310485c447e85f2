/* run_clock.c - the time that budgets are counted in.
 *
 * It is the machine's, unless $INGOT_CLOCK says "steps": then each question is a millisecond later
 * than the one before, what would take long takes what is said of it (clock_pass()), and what
 * candidates and networks are told to take is what they are estimated to.  So a search is the same
 * on every machine, however busy that is: tests set it.  Whoever waits for another program
 * (run_child.c) goes by the machine's. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run.h"

#define QUESTION 1e-3 /* seconds */

static double counted;

bool clock_is_steps(void)
{
    const char *said = getenv("INGOT_CLOCK");
    return said && !strcmp(said, "steps");
}

const char *clock_unknown(void)
{
    const char *said = getenv("INGOT_CLOCK");
    return said && *said && !clock_is_steps() ? said : NULL;
}

double machine_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double seconds_now(void)
{
    return clock_is_steps() ? counted += QUESTION : machine_seconds();
}

void clock_pass(double seconds)
{
    counted += seconds;
}
