/* tune_run.h - candidates built and run in child processes, and the database of what came of it. */
#ifndef TUNE_RUN_H
#define TUNE_RUN_H

#include <signal.h>
#include <sys/types.h>

#include "run.h"
#include "tune.h"

/* ---- source.c -------------------------------------------------------------------------------- */

typedef struct {
    TuneKernel *kernel;
    Candidate **candidate; /* [0]: the one to beat */
    int n;
    /* [0] was compared with the naive form before: the others are compared with it, which is
     * faster */
    bool judged;
} TuneCaseOf;
extern const RuntimeFile tune_files[]; /* harness/ */
/* tune_ways.c, of a GPU's program, and what is particular to CUDA and to OpenCL. */
extern const RuntimeFile ways_files[];
extern const char tune_head[]; /* what files of candidates include first */
/* Whether the program holds the case with this one too: of how a weight is stored there are some
 * ways at most. */
bool case_takes(const TuneCaseOf *, const Candidate *);
/* Writes the program into the folder, `chunk` candidates a file; false with why. */
bool cases_write(const Tuning *, const char *dir, const TuneCaseOf *, int n, int chunk,
                 const char **why);

/* ---- run_clock.c ----------------------------------------------------------------------------- */

/* ---- run_child.c ----------------------------------------------------------------------------- */

/* ---- measure.c ------------------------------------------------------------------------------- */

typedef struct {
    const char *const
        *cc;            /* words of the C compiler, with the flags of the target; ended by NULL */
    const char *remote; /* a command that builds and runs the folder elsewhere; NULL: here */
    double seconds;     /* to time the candidates of one kernel */
    const char *cpu, *compiler;          /* told by the last program */
    Spent estimating, building, running; /* what went there */
    const char *why;                     /* what failed */
} Measure;
/* Builds the folder's program; files that the compiler refuses mark their candidates.  False: it
 * cannot be built. */
bool measure_build(Measure *, Tuning *, const char *dir, const TuneCaseOf *, int n);
/* Runs it: verdicts and times go to the candidates. */
bool measure_run(Measure *, Tuning *, const char *dir, const TuneCaseOf *, int n, bool check_only);
/* The same of one case. */
bool measure_one(Measure *, Tuning *, const char *dir, const TuneCaseOf *, int n, int number);

/* ---- database.c ------------------------------------------------------------------------------ */

typedef struct Database Database;
/* Opens or makes it; NULL with why, which begins with its name. */
Database *database_open(Arena *, const char *file, const char **why);
void database_close(Database *);
/* Where times were taken: the target's flags, the CPU, the compiler. */
typedef struct {
    const char *target, *cpu, *compiler;
} Host;
bool database_machine(Database *, const Host *);
/* What is known of the kernel: its candidates are added, with verdicts and times; the fastest
 * `most` of them (0: all). */
bool database_read(Database *, TuneKernel *, int most);
/* Verdicts and times of candidates, in one transaction. */
bool database_write(Database *, TuneKernel *, Candidate *const *, int n);
/* Whether the kernel was searched to the end; what a search leaves. */
bool database_done(Database *, TuneKernel *, int beam);
bool database_finish(Database *, TuneKernel *, int beam);
/* The file that a search came to in its network, by what the search said; NULL: not known. */
char *database_outcome(Database *, Arena *, const char *key);
bool database_keep_outcome(Database *, const char *key, const char *text);
/* What kernels in the place of others took in a network, by what the search calls both: false if it
 * is not known. */
bool database_region(Database *, const char *key, double *was_ns, double *is_ns, double *noise);
bool database_keep_region(Database *, const char *key, const char *name, double was_ns,
                          double is_ns, double noise);
/* JSON, a line an entry; importing fails with why, or for a fault of the database. */
bool database_export(Database *, StrBuf *);
bool database_import(Database *, Arena *, const char *text, int *n, const char **why);
/* The first fault of the file, with its name and what to do; NULL: none. */
const char *database_error(const Database *);
/* Held while times are taken: two tuners on one machine would disturb each other. */
int database_lock(Database *);
void database_unlock(Database *, int lock);

/* ---- search.c -------------------------------------------------------------------------------- */

typedef struct {
    Tuning *t;
    Measure *m;
    Database *d;
    const char *dir; /* for programs of candidates */
    int beam;
    int width;                            /* candidates of a kernel timed at once */
    double deadline;                      /* by seconds_now() */
    bool all;                             /* read all that the database knows, for --explain */
    const volatile sig_atomic_t *stopped; /* by the user: no further round */
    void (*progress)(void *, const TuneKernel *k); /* after each round, and once k->done */
    void *user;
} Search;
/* Up to its deadline.  False: something that is no candidate's fault failed (Measure.why). */
bool search_kernels(Search *, TuneKernel *const *, int n);
/* What the database knows of a kernel that is not searched; false as search_kernels(). */
bool search_known(Search *, TuneKernel *);
/* The best few by estimate alone, and behind them some by lot, for a round that is timed
 * elsewhere. */
int search_guess(Search *, TuneKernel *, int most, int lot, Candidate **out);

/* ---- tuned.c --------------------------------------------------------------------------------- */

/* A section of the file ("c:native threads 2"): entries of the kernels whose best candidate is not
 * the heuristic's. */
void tuned_print(StrBuf *, const Tuning *, const char *section, const Host *);

#endif
