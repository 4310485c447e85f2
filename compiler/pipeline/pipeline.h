/* pipeline.h - what the files of pipeline/ share. */
#ifndef PIPELINE_H
#define PIPELINE_H

#include <time.h>

#include "bundle_write.h"
#include "inspect.h"
#include "plan_schedule.h"
#include "targets.h"

/* ---- options.c ------------------------------------------------------------------------------- */

/* Fields that the caller's header does not have yet keep their defaults. */
ingot_options options_complete(Context *, const ingot_options *);
/* What the target's name stands for, in the arena; NULL after a reported error. */
const Target *options_check(Context *, const ingot_options *, Arena *);
/* An error of whoever called; false. */
bool option_wrong(Context *, const char *format, ...) __attribute__((format(printf, 2, 3)));
extern const char *const option_presets[]; /* of --fuse, in the order of Preset */

/* ---- pipeline.c ------------------------------------------------------------------------------ */

typedef struct {
    Context *c;
    int verbose;
    struct timespec since;
} Clock;
Clock clock_start(Context *, const ingot_options *);
void passed(Clock *, const char *pass); /* -v: how long the pass took */
/* Everything up to the finished plan; NULL after a reported error. */
Plan *pipeline_plan(Context *, const Target *, const ingot_options *, Clock *);
/* What a plan is made by. */
typedef struct {
    double room; /* values in patches that take so many bytes by an estimate; 0: they are not */
    PlanRam ram; /* 0: as a file has it, if one is given */
    const Target *judge; /* by whose estimate its time is told; NULL: it is not */
    bool silent;         /* where --max-ram is too little, nothing is said */
} Within;
/* What became of it. */
typedef struct {
    int64_t bytes, states; /* of the arena, too many for --max-ram or not; 0: it came to none */
    double cycles;
} PlanTaken;
/* One plan, whether it is the best or not; NULL: there is none, or --max-ram is too little. */
Plan *plan_once(Context *, const Target *, const ingot_options *, Clock *, const Within *,
                PlanTaken *);
/* --memory and --max-ram (0: none). */
bool plan_fits(const Plan *, int64_t limit, bool silent);
/* within_ram.c: the usual plan, or one for --max-ram; NULL after a reported error. */
Plan *plan_within_ram(Context *, const Target *, const ingot_options *, Clock *);
/* check.c: steps beside the graph (plan_check()); false after a reported fault. */
bool check_plan(Plan *, const Target *, const ingot_options *, Clock *);
/* --save-sched: the file, if one is asked for, is written before the bundle, and has its name, or
 * goes, with it; false after a reported error. */
bool save_begin(Context *, OutFile *, const char *file, const char *text);
bool save_end(Context *, OutFile *, const char *file, bool good);
Plan *plan_saved(Plan *, const ingot_options *); /* where there is no bundle; or NULL */

/* ---- compile.c ------------------------------------------------------------------------------- */

/* The status of what came to no end: of the error that was reported, or else INGOT_BUG. */
ingot_status pipeline_failure(const Context *);
/* What ingot_dump() knows, in order: the graph, the plan, each pass of lowering, kernels; NULL
 * behind the last. */
const char *dump_name(int i);

/* ---- fat.c ----------------------------------------------------------------------------------- */

/* A bundle for several targets. */
ingot_status compile_fat(Context *, const ingot_options *, int n, const TargetName *,
                         const char *dir);

/* ---- functions.c ----------------------------------------------------------------------------- */

/* A bundle of several functions. */
ingot_status compile_functions(Context *, const Target *, const ingot_options *, const char *dir);
/* The plans of all functions, which agree on states and scratch; roots: what each of them computes,
 * if plans of another target were made before. False: an error has been told; those that were made
 * are in p, the others NULL. */
/* What inspection_make() does of a model with several functions. */
bool functions_inspect(Context *, Inspection *, Clock *);
bool functions_plan(Context *, const Target *, const ingot_options *, Clock *,
                    const GraphRoots *roots, Plan **p);

/* compile.c: a plan and all that is known of it; false after a reported error. inspection_free() in
 * either case. */
bool inspection_make(Context *, const ingot_options *, Inspection *);
/* Of a model with several functions: what is told from now on is of this one. False: there is
 * none of that name, and an error was reported. */
bool inspection_select(Context *, Inspection *, const char *function);
void inspection_free(Inspection *);

/* The plan that ingot_compile() writes; NULL after a reported error. */
Plan *plan_make(Context *, const ingot_options *);
/* By Target.nth: what a tuner may try. */
Plan *plan_make_nth(Context *, const ingot_options *, int nth);
/* The bundle of a plan that these options have made. */
ingot_status plan_write(Plan *, const ingot_options *, const char *dir);

#endif
