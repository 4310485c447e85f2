/* runs.h - the main steps of a plan as a list of runs, of which some come twice: a model in which
 * recompute_to_fit.c tries what to make again, before anything is done to the plan.
 *
 * A value is what lies in a buffer with bytes of its own.  The first ones are those of the plan, by
 * the buffer's id; those behind them are made by runs that come again. */
#ifndef RUNS_H
#define RUNS_H

#include "step_order.h"

typedef struct {
    int value, how; /* TOUCH_* */
} RunUse;
typedef struct {
    int step; /* of the plan's main steps */
    bool again;
    int nuse;
    RunUse *use; /* each value once */
} ListedRun;
typedef struct {
    int of;      /* a buffer of the plan: its own, or that which it is made like */
    bool counts; /* in the arena */
    bool may;    /* another buffer may have it */
    bool whole;  /* held from the first run to the last, whoever uses it */
    double bytes;
} RunValue;
typedef struct {
    Arena *a;
    ListedRun *run;
    RunValue *value;
    int n, nvalue;
    double *cycles; /* by step of the plan */
    bool *pure;     /* by step: it gives the same when it runs again */
    bool *stays;    /* by step: no other may pass it */
} Runs;
/* Of a value the first and the last run that use it, and that write it; -1: none. */
typedef struct {
    int first, last, writer, last_writer;
} RunLife;

/* A run that reads a value. */
typedef struct {
    int value, at;
} RunReader;

Runs runs_of(Arena *, const Plan *, const Target *);
/* By value. */
RunLife *run_lives(Arena *, const Runs *);
/* By run: bytes of the arena that are held. */
double *run_bytes(Arena *, const Runs *, const RunLife *);
/* What a run does with a value: TOUCH_*. */
int run_touches(const ListedRun *, int value);

/* A list in which a value is made again, which is called `made` there. */
typedef struct {
    Runs runs;
    int made;
    double cycles;
} RunsAgain;

/* In front of its reader, for this one and those behind it.  Operands that are gone by then are
 * held longer, or made again as well if they are large and `longer` does not say otherwise; those
 * that are made again later on are made now.  False: it cannot be. */
bool runs_again(Arena *, const Runs *, const RunLife *, RunReader, bool longer, RunsAgain *);
/* The list in which run `from`, and what waits for it, comes behind run `to`: what does not wait
 * passes.  False: nothing passes. */
bool runs_later(Arena *, const Runs *, int from, int to, Runs *out);
/* The list in which the other value is read in place of this one, without the runs that nobody
 * needs any more. */
Runs runs_without(Arena *, const Runs *, int value, int other);

#endif
