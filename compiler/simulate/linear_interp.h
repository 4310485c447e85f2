/* linear_interp.h - the interpreter of linear IR: runs the statements that linearize() makes of a
 * kernel, on buffers in memory, as the emitted text would, for any target, without a compiler or a
 * device.
 *
 * Nothing is computed anew: a name is read as it was named, an accumulator as it is by then.  What
 * the text would do wrong is a fault, told with the kernel, the statement and the coordinates:
 *
 *     a value outside of the loop that made it; an accumulator that has not all of its terms;
 *     an element that nothing has written, or that is none of the buffer's;
 *     a race: two threads at one element, of which one writes, and nothing orders them.
 *
 * A thread is a part of a kernel (THREAD), or a work item of a GPU.  Races are found by
 * happens-before: every cell of memory knows who wrote it last and who read it since, as an epoch,
 * the clock of a thread.  So no order of threads has to be tried.  A barrier advances the clocks
 * that the items of a group have for the places that they share; of all other memory, what the
 * items of one group alone have read before it may be written behind it. */
#ifndef LINEAR_INTERP_H
#define LINEAR_INTERP_H

#include "lowered.h"

/* ---- linear_memory.c ------------------------------------------------------------------------ */

typedef uint64_t Epoch; /* clock << 32 | thread; 0: never */

enum { WARP_CLOCK = 12 };

/* Bytes, with shadow memory. */
typedef struct {
    unsigned char *bytes;
    int64_t size;
    int cell, shift; /* bytes that share an epoch, 1 << shift: they are written and read together */
    Epoch *wrote, *read;
    /* of the readers: their group, and by how many barriers; 0: they are not of one group */
    uint64_t *within;
    uint8_t *busy; /* products that read it are under way: so many */
    /* Of places: items of a warp, which also wait for each other alone. The clock is then the
     * number of barriers of the group << WARP_CLOCK | those of the warp since; 0: it is not. */
    int warp;
} ShadowMemory;
ShadowMemory *shadow_new(Arena *, int64_t size, int cell);
/* The same, of which only what is touched takes memory and time. */
ShadowMemory *shadow_sparse(Arena *, int64_t size, int cell);
/* Given from outside, or no longer what it was. */
void shadow_given(ShadowMemory *, int64_t from, int64_t size);
void shadow_forget(ShadowMemory *, int64_t from, int64_t size);
bool shadow_written(const ShadowMemory *, int64_t at);

/* ---- linear_code.c -------------------------------------------------------------------------- */

/* A kernel's statements.  They may be changed before it runs for the first time. */
typedef struct {
    Arena *arena;
    const Kernel *k; /* a copy, in whose context the statements' nodes are */
    Linear *tile;
    int n,
        narg; /* narg: arguments that are given; those behind them are places, each thread's own */
    bool items;   /* a work item for each element of the outputs, or as BIND says */
    const Tc *tc; /* of which so many items come to each product together, or NULL */
    /* so many work items share the places, and wait for each other at barriers; 0: each is on its
     * own */
    int group;
    bool loader; /* one more item has boxes copied */
    int warp;    /* so many items come to products, or to what they join, together; 1: none do */
    int cluster; /* so many groups have parts of the same sums; 1: none */
    bool ranks;  /* which they join in places, where they meet */
    int parts;
    struct LinearCode *code; /* made when it runs */
} LinearKernel;
/* What was lowered has to live as long. */
LinearKernel *linear_kernel(Arena *, const Lowered *);

/* ---- linear_exec.c -------------------------------------------------------------------------- */

typedef struct {
    ShadowMemory *memory;
    int64_t at;   /* the first byte */
    int64_t size; /* in elements; 0: as the layout says */
} LinearArg;

/* A few iterations in place of all: of each loop over outputs one is run, of a GPU's work items
 * those of one group.  Loops over terms, and those that fill places, run as they are.
 * ALL: no iteration is left out, of a kernel whose iterations see what others have left. */
typedef enum { SAMPLE_FIRST, SAMPLE_LAST, SAMPLE_DRAWN, SAMPLE_ALL } SampleWhich;
typedef struct {
    SampleWhich which;
    uint64_t seed; /* DRAWN: which iteration it is follows from this and from how many there are */
    /* An argument is read, elements first..first+n-1, some of which nobody has written: they get
     * what they hold.  False: they are none that may be read. */
    bool (*draw)(void *user, int arg, int64_t first, int64_t n);
    void (*wrote)(void *user, int arg, int64_t first, int64_t n); /* is written now */
    void *user;
} LinearSample;

typedef struct {
    uint32_t clock;             /* of the launch that runs: everything before it happened before */
    int64_t done;               /* instructions */
    int64_t most;               /* that may be done; 0: any number */
    char fault[1024];           /* the first, or "" */
    bool backwards;             /* threads run last to first */
    const LinearSample *sample; /* NULL: all is run */
} LinearInterp;
/* Runs a kernel on its arguments; var: values of its run-time integers, in the order of
 * Kernel.vars; scalar: of Kernel.scalars, or NULL: their least.  False after a fault. */
bool linear_run(LinearInterp *, LinearKernel *, const LinearArg *arg, const int64_t *var,
                const double *scalar);
/* linear_same.c: has the argument been written where and as it should be?  Floats may be apart by
 * this share of their value.  False: what differs is in `fault`. */
bool linear_same(const Kernel *, int arg, const LinearArg *got, const LinearArg *want, double apart,
                 char fault[1024]);

#endif
