/* lowered.h - a kernel as it is written: loop nests, and the statements of each. Made once and
 * kept.
 *
 *     Kernel, opts --nest_lower()--> loop nests --decompose()--> --flatten()--> stores
 *                  --passes--> --linearize()--> statements --passes--> those that are written
 *
 * Who asks for it?  The renderer writes the statements, the interpreter runs them, the check runs
 * some, the estimate counts them, reports print them, and a GPU's launch takes its groups and boxes
 * from the loop nest.  All ask kernel_lowered(), so what was checked is what is written:
 *
 *     pipeline.c                 every kernel of the plan, pass after pass, behind kernel_share()
 *     kernel_lowered(k, gpu)     what was made then; made now for a kernel of no plan (a tuner's
 *                                candidate, a test's)
 *
 * Whose is it?  The kernel's: it is freed with the kernel's context.  It lives in a context of its
 * own, that of `tiles.k`, a copy of the kernel whose arguments are followed by places.  A kernel
 * that was lowered does not change any more; nest_keep(), which gives it other opts, drops it. */
#ifndef LOWERED_H
#define LOWERED_H

#include "linear.h"

enum { LOWER_PASSES = 18 };
typedef struct Lowered Lowered;
struct Lowered {
    Tiles tiles;
    Linear *linear;             /* by tile */
    int narg;                   /* of the kernel itself: behind them are places */
    bool gpu;                   /* as a GPU's work item runs it */
    bool items;                 /* then: several work items share the iterations */
    int nopt;                   /* of what was lowered, which must not have changed since ... */
    uint64_t of;                /* ... nor its kernel_hash(), which debug builds look at */
    int passed;                 /* so many of the passes are done */
    bool changed[LOWER_PASSES]; /* which of them changed something */
};

/* What a kernel goes through, in this order; debug builds verify the statements after each.
 * lower/passes.h has what those from statements to statements are about, and each its own file. */
typedef struct {
    const char *name, *makes;
    /* Of a kernel's loop nests, or of the statements of each; false: there was nothing to do.  The
     * first has neither: it makes the loop nests. */
    bool (*nests)(const Tiles *, bool gpu);
    bool (*statements)(Linear *, const Kernel *);
} LowerPass;
extern const LowerPass lower_pass[LOWER_PASSES];
/* The pass of that name, or -1. */
int lower_pass_find(const char *name);

/* A kernel goes through the passes up to this one, if it has not yet. */
void kernel_lower_pass(Kernel *, bool gpu, int pass);
/* The statements of a kernel with its opts, which it keeps. */
const Lowered *kernel_lowered(const Kernel *, bool gpu);
/* The kernel is about to change. */
void kernel_drop_lowered(Kernel *);
/* Those of a nest, those that a kernel has after a pass, and those without its opts, the oracle
 * beside which opts are judged: the caller's, and freed by it. */
Lowered *lower_nest(const Nest *, bool gpu);
Lowered *lower_kernel(const Kernel *, bool gpu, int pass);
Lowered *lower_naive(const Kernel *);
void lowered_free(Lowered *);

#endif
