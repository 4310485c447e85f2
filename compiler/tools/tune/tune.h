/* tune.h - search for the opts of kernels: candidates, what they are estimated and measured to
 * cost, and what is remembered of that.
 *
 *     plan --tune_kernels()--> kernels, equal ones once
 *     kernel --search()--> candidates --estimate()--> the best few --cases_write()--> C
 *         --measure()--> times --> database
 *
 * A candidate is a Tiling: how axes are taken apart, in which order the loops run, and what is
 * placed or asked for ahead.  It starts from the heuristic's, is changed one step at a time, and
 * becomes opts again by opt_apply(), which alone knows what can be done. */
#ifndef TUNE_H
#define TUNE_H

#include "codegen.h"
#include "cost_nest.h"
#include "nest.h"
#include "weight_layout.h"

/* ---- tiling.c ------------------------------------------------------------------------------- */

enum { MAX_CUTS = 16, MAX_LOOPS = 40, MAX_PLACED = 4 };
/* A loop of a nest, by what it is part of: an axis of the kernel (root), or the inner part that
 * SPLIT number of - 1 made of it.  Of either the outermost part that later cuts left. */
typedef struct {
    int root, of;
} LoopRef;
typedef struct {
    OptKind kind;
    LoopRef loop;
    int64_t amount;
} Cut;
/* STAGE or PREFETCH of an argument, at a loop; PARTIAL of so many terms of one. */
typedef struct {
    OptKind kind;
    LoopRef loop;
    int arg;
} Placed;
typedef struct {
    Cut cut[MAX_CUTS];
    int ncut;
    Placed placed[MAX_PLACED]; /* as far as they can be done */
    int nplaced;
    LoopRef order[MAX_LOOPS]; /* outermost first */
    int norder;
    bool ordered; /* by an opt, even if it says what is the case anyway */
} Tiling;

/* False if the nest has more than a tiling holds. */
bool tiling_of(const Nest *, Tiling *);
/* A clone of `base` (a nest without opts) with them, THREAD included; NULL if they cannot be
 * done. */
Nest *tiling_apply(const Nest *base, const Tiling *);
/* All tilings that one change makes of this one, most of which cannot be done. */
int tiling_neighbours(Arena *, const Nest *base, const Tiling *, Tiling **out);

/* ---- weight_layout.c ------------------------------------------------------------------------- */

/* ---- cost_nest.c ----------------------------------------------------------------------------- */

/* ---- least_sum.c ----------------------------------------------------------------------------- */

/* n things, each of which can be in two ways. */
typedef struct {
    int n, nstep;
    bool *const *changes; /* by thing and step: whether what the step takes depends on it */
    const double
        *weight; /* by thing: where too many are in common, the least are left as they are */
    double (*cost)(void *user, int step, const bool *way); /* of a step, by the ways of things */
    void *user;
} LeastSum;
/* The ways for which the sum over all steps is least, and that sum. */
double least_sum(const LeastSum *, bool *way);

/* ---- kernels.c: what is to be tuned ---------------------------------------------------------- */

typedef enum {
    UNTIMED,
    RIGHT,   /* timed; its results are those of the naive kernel */
    WRONG,   /* they are not */
    CRASHED, /* it ended the process */
    HUNG,    /* it did not end in time */
    REFUSED  /* by the C compiler */
} Verdict;
extern const char *const verdict_name[]; /* "right" */
#define TUNE_AT_ROOF 0.97 /* of what the machine can do: what is left is hardly more than noise */

typedef struct {
    Tiling tiling;
    Opt *opts;
    int nopt;
    const Layout **layout; /* by argument; NULL: as the kernel has it */
    const char *text;      /* its opts and layouts in one line */
    /* hash of the emitted function, by candidate_source(): equal ones are timed once */
    uint64_t source;
    Estimate estimate;
    double predicted; /* ns, by the time of what it was made from */
    Verdict verdict;
    double ns, base_ns; /* of it, and of the heuristic's beside it in the same run */
    double noise;       /* of that run, as a share */
    int round;
} Candidate;

typedef struct {
    Arena *a;
    const Target *target;
    Kernel *naive; /* as the plan has it, without opts */
    Kernel *loops; /* the same without what clears halos: what opts are for */
    Nest *base;    /* of `loops` */
    const Step **step;
    int nstep;
    bool *follows; /* by argument: a weight whose layout is that of the loops */
    uint64_t key[2];
    char hash[40];         /* the key as text */
    Candidate **candidate; /* [0]: the heuristic's */
    int n;
    Map by_text, by_source; /* candidates; by what is emitted those that somebody asked for */
    int best;               /* the fastest that is right and beats the noise; 0: none does */
    double ms;              /* in the network, of all its steps; 0: not known */
    double hope;            /* of these, what a search may gain at most */
    double roof_ns;         /* no run takes less, on one core; 0: not known */
    bool at_roof;           /* there is nothing to gain */
    bool done;              /* the search has ended by itself */
    int tried, seen;        /* candidates timed in this search; estimated */
    bool known;             /* the database had the answer */
} TuneKernel;

typedef struct {
    Plan *p;
    Arena *a;
    const Target *target;
    TuneKernel **kernel;
    int n;
    int64_t span, arena; /* bytes that a run of the network touches; of these, in the arena */
    const char *values;  /* lines of the file: decisions that the plan was made with; NULL: none */
} Tuning;

/* Of a plan, whose kernels have the heuristic's opts, and the decisions that it was made with. */
void tune_kernels(Tuning *, Plan *, const Target *, const char *values);
void tune_free(Tuning *);
/* A candidate out of opts, or of a tiling; NULL if it cannot be done.  In the arena of the
 * kernel. */
Candidate *candidate_of(TuneKernel *, const Tiling *);
/* The kernel that is emitted for it, in a context of its own. */
Kernel *candidate_kernel(const TuneKernel *, const Candidate *);
/* Of the form that Candidate.text has; NULL if it is none, or cannot be done. */
Candidate *candidate_read(TuneKernel *, const char *text);
/* What it should cost, worked out once. */
const Estimate *candidate_estimate(const TuneKernel *, Candidate *);
/* Adds it, unless one with the same text is there: then that one. */
Candidate *candidate_add(TuneKernel *, Candidate *);
/* Hash of what is emitted for it, worked out once: that takes as long as its estimate. */
uint64_t candidate_source(TuneKernel *, Candidate *);
/* The first that was asked for of those for which the same is emitted. */
Candidate *candidate_first(TuneKernel *, Candidate *);

#endif
