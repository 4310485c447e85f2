/* tune_command.h - what the files of `ingot tune` share. */
#ifndef TUNE_COMMAND_H
#define TUNE_COMMAND_H

#include "tune_run.h"
#include "verify.h"

/* A decision of the plan the other way round: what that changes, and what it came to
 * (tune_decisions.c). */
typedef struct {
    const char *what, *line; /* in words, and in the file */
    uint64_t about;          /* key of the value, or the kernel */
    Fusion cost;             /* of the scheduler's estimate */
    int *taken;              /* numbers of the steps that are otherwise then */
    uint64_t *put;           /* what is in their place, by step_id() */
    int ntaken, nput;
    double before, after; /* cycles of both, by the estimate of kernels */
    /* of a layout: by step of the plan as it is, of what is in its place; NULL: see
     * changes_complete() */
    const double *cycles;
    const char *key; /* by which the database knows these kernels */
    double was, is;  /* ms; 0: not timed */
    double noise;
    /* by the estimate; where it ran; it won, but beside others or as a whole it does not */
    bool layout, far, won, dropped;
} Decision;

typedef struct {
    Options *o;
    Arena *a;
    Session s;          /* of the network with the compiler's own choices; not with --remote */
    LoadedModel opened; /* what `s` runs */
    LoadedModel m;      /* what is planned and tuned */
    Plan *plan;
    Target target;
    Tuning t;
    Measure measure;
    Database *d;
    Host machine;
    const char *section; /* of the file: the target, and for how many threads */
    StrBuf *text;        /* of the file, with the sections before */
    const char *dir;     /* scratch */
    const char *sched;   /* decisions that the network is built with; NULL: none */
    double network_ms;   /* sum of its steps; 0: not known */
    Roof roof;           /* of one core; no flops: not known */
    TuneKernel **order;  /* those that are asked for, the dearest first */
    int n, nasked;       /* of them those that are searched; all */
    double deadline;     /* of the search: confirming comes after it */
    /* seconds that a network takes to be built, the longest so far; to be profiled */
    double building, profiling;
    Decision *decision;                   /* that were close */
    int ndecision, ndecided;              /* of these the first ones, by rounds before */
    const volatile sig_atomic_t *stopped; /* by the user */
    bool again;                           /* what was searched just now, by what is known of it */
    const char *said;                     /* then: the section that was written */
    double until;                         /* then: what is not known may be confirmed */
    int nplan;                            /* made to see what a decision changes */
    /* of a GPU: what the round before has written, where the user named no file; NULL: nothing */
    const char *found;
    struct NetworkEstimate *estimate;                        /* tune_clock.c */
    Spent began, preparing, variants, decisions, confirming; /* when it began; what went there */
} Tune;

/* So what is tried is compiled when it is tried, and much can be prepared. */
static inline bool driver_compiles(const Target *t)
{
    return !t->compile;
}

/* tune.c: the plan that `ingot compile` makes with a file of decisions (NULL: none), and its
 * kernels. */
ingot_status tune_plan(Tune *, const char *sched, const char *values);
/* Does the step's name, or that of a node that it computes, match (--kernels)?  NULL: all do. */
bool step_matches(const Step *, const char *pattern);
/* The plan of the model as it is opened anew, by a file (NULL: by what the user named) and with the
 * nth of all blocks. */
ingot_status plan_anew(const Tune *, const char *sched, int nth, LoadedModel *, Plan **);

/* tune_network.c: times of the network's steps go to the kernels. */
ingot_status network_profile(Tune *);
/* Times of all steps, the least of what was there and what a profile of the program tells; false:
 * it failed. */
bool network_times(Tune *, const char *entry, double *ms, int n);
ingot_status network_write(const char *file, const StrBuf *);
/* The program by a file of decisions. */
ingot_status network_build(Tune *, const char *file, const char **entry);
/* Milliseconds of a run, the least of several turns: of the program as it is, and of another
 * one. */
ingot_status network_compare(Tune *, const char *entry, double *was, double *is);
/* Another program's results are those of the one as it is, but for how sums are rounded; else
 * INGOT_DIFFERS, after a message. */
ingot_status network_right(const Tune *, const char *entry);
/* tune_clock.c: where steps are counted, estimates in the place of times.  The program was built by
 * the file: its plan is made once more. */
ingot_status network_note(Tune *, const char *file, const char *entry);
void network_estimates(Tune *, const char *entry, double *ms, int n);
/* Milliseconds of a run. */
double network_estimate(Tune *, const char *entry);
/* A file of these lines for the target. */
ingot_status network_write_lines(const Tune *, const char *file, const char *lines);
/* The search ends where what is left of the budget is as long as confirming takes.  Some of it is
 * for what is searched next, whatever came before took. */
void set_deadline(Tune *);
/* From now on plan, program and times are those of the network with these lines. */
ingot_status network_take(Tune *, const char *lines);
/* Winners that cannot be replayed, or are not faster in the network, are winners no more; the file
 * goes to *text.  What the database knows of it is not timed again. */
ingot_status network_confirm(Tune *, StrBuf *text);
/* In the pass over what was searched just now: its time is over. */
bool network_late(const Tune *);
/* What came of a network in the database; where no time is given, what was found in too little time
 * too (whole: false). */
const char *network_known(const Tune *, const char *key);
ingot_status network_keep(const Tune *, const char *key, const char *text, bool whole);
/* By which the database knows the network: its kernels and threads, what is decided about it, and
 * what else that depends on. */
const char *network_key(const Tune *, const char *what, const char *more);
/* By which it knows what this text says, by so many threads. */
const char *text_key(const Tune *, const char *what, const char *text);
/* By which it knows what the winner of a kernel, in the place of the compiler's choice, takes in
 * networks. */
const char *winner_key(const Tune *, const TuneKernel *);

/* tune_variants.c: computes values in other ways where the network is faster by that; the plan, the
 * program and the times are then those of the network with these. */
ingot_status network_variants(Tune *);

/* tune_decisions.c: takes decisions of the plan that were close the other way round where the
 * network is faster by that; then as network_take(). */
ingot_status network_decisions(Tune *);
void explain_decisions(const Tune *);

/* tune_changes.c: the steps of a plan, by number. */
typedef struct {
    Tune *t;
    Step **step;
    uint64_t *id; /* by steps_id(); 0: nobody asked yet */
    double *ms;
    int n;
} Steps;
Steps steps_of(Tune *, const Plan *);
/* What a step is, in any plan of this graph. */
uint64_t steps_id(const Steps *, int i);
/* The file for plan_with(), the plan by these lines too; NULL after a message. */
const char *decisions_file(const Tune *);
Plan *plan_with(Tune *, const char *lines);
/* By step of the plan as it is: cycles, by the estimate, of what computes the same value in another
 * one, with the copies of operands before it. */
double *step_cycles(const Steps *base, const Plan *);
/* What another plan changes. */
void find_changes(const Steps *base, const Steps *other, Decision *);
/* What a decision's lines change, as far as the database knows it: all but what is put there and
 * the cycles by step. */
typedef enum { NOT_KNOWN, KNOWN, KNOWN_NONE /* the lines make no plan */ } Known;
Known changes_known(const Steps *base, Decision *);
/* By a plan, for the database too; !*good: the lines make none. */
ingot_status changes_find(const Steps *base, Decision *, bool *good);
/* By a plan, what the database does not tell. */
ingot_status changes_complete(const Steps *base, Decision *);

/* tune_chains.c: of the layouts that were tried alone those that should change together, as lines
 * of the file, an empty one behind each chain; NULL: there are not enough, or what is not known has
 * no time any more. */
ingot_status find_chains(const Steps *base, double end, char **lines);

/* tune_gpu.c: all of a GPU's, or the part of it that the options ask for; what comes of it goes to
 * Tune.text. */
ingot_status tune_on_gpu(Tune *);
/* tune_times.c: the file that a folder was prepared with (--sched) is that of the user from now
 * on. */
ingot_status tune_gpu_prepared(Tune *, const char *dir);

/* tune_roof.c: what one core can do, measured once; false: it is not known. */
bool tune_roof(Tune *);
/* What the kernels may gain. */
ingot_status tune_hopes(Tune *);
/* Of a kernel's time, what the roof allows: operations, or bytes at the bandwidth of the level that
 * holds them (*what). */
double roof_share(const Roof *, const Kernel *, double ns, const char **what);

/* tune_explain.c */
void tune_explain(Tune *);

/* tune_apart.c: --prepare, --measure */
ingot_status tune_prepare(Tune *, const char *dir);
/* Whether there is what --prepare leaves; if not, it is told. */
bool tune_prepared(const Tune *, const char *dir);
/* Until it is stopped, or the deadline. */
ingot_status tune_measure(Tune *, const char *dir, const volatile sig_atomic_t *stopped);

ingot_status command_tune(Options *); /* tune.c */

#endif
