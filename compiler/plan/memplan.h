/* memplan.h - what the parts of the memory plan share. */
#ifndef MEMPLAN_H
#define MEMPLAN_H

#include "decisions.h"

#define MAX_TENSOR_BYTES (INT64_C(1) << 40) /* no machine that this is for has more */

typedef struct {
    int step;
    bool read;
} Access;
typedef struct {
    Access *access; /* in order of step number */
    int naccess;
    int held; /* to this step, for those that run aside */
} Usage;

/* What gets an offset: one buffer, or a chain of buffers that succeed one another in place. */
typedef struct {
    int64_t bytes, offset;
    int memory;
    int wanted, line; /* the memory that a file says, and where; -1: none */
    double gain;      /* bytes accessed, by bytes held and steps that they are held for */
    int first, last;
    int id;     /* of its first buffer: makes every order total */
    int leader; /* of the chain; itself if it leads */
} Group;

typedef struct {
    Plan *p;
    Arena *a;
    int64_t align;
    Usage *use;
    Group *group; /* by buffer */
    Step **loops;
    int nloop;
    int from, end;   /* memories of the device at work */
    Group **placed;  /* of the packing at work, in order of offset */
    Buffer **weight; /* in order of first use */
    int nweight;
} Memplan;

/* The group that leads the chain of a buffer's. */
static inline int leader(const Memplan *m, int i)
{
    while (m->group[i].leader != i)
        i = m->group[i].leader;
    return i;
}

/* takeover.c: results join the chains of operands whose bytes they take. */
void take_over(Memplan *);
/* Whether each element of argument `in` is read before the kernel writes what lies in the same
 * place of argument `out`, in whatever order it goes. */
bool reads_what_it_writes(Arena *, const Kernel *, int in, int out);
/* The kernel as it is when both arguments are the same memory. */
void merge_args(Arena *, Kernel *, int in, int out);
/* best_fit.c: memory and offset of each group of the device at work, and the heights of its
 * memories; false: more than there may be. */
bool share_out(Memplan *, Group **order, int n);
/* place_weights.c: offsets of those that steps read, n of them in the order of their first use;
 * false: more than there may be. */
bool weights_place(Plan *, int n, Buffer **weight);

#endif
