/* heuristic_mma.h - a contraction as a product of matrices, for the units of GPUs: what heuristic_mma.c and heuristic_wgmma.c share. */
#ifndef HEURISTIC_MMA_H
#define HEURISTIC_MMA_H

#include "kernel.h"

enum {
    PROCESSORS = 132, /* that can have a group each */
    MOST_RANGES = 8,
    MMA_MOST_NTH = 16,  /* blocks that a tuner may ask for, */
    WGMMA_MOST_NTH = 4, /* and these after them */
    MMA_TURN =
        8 /* blocks of rows that follow each other before the next columns: what they read is in L2 still */
};

/* What becomes one axis: its name. */
typedef struct {
    Node *range[MOST_RANGES];
    const char *of[MOST_RANGES]; /* their names */
    int n;
    const char *name;
} Part;

typedef struct {
    const Tc *unit;
    int64_t arg; /* of an operand */
    Part rows, columns, terms, others;
} Product;

/* Its extents. */
typedef struct {
    int64_t rows, columns, terms, others;
} Extents;

/* "i0.o" */
const char *mma_part(Nest *, const char *axis, const char *part);
int64_t mma_extent(const Nest *, const char *axis);
/* What the product's axes are joined from becomes one axis each. */
bool mma_join(Nest *, Product *);
/* Both operands are staged at this loop over blocks of terms: ahead, if they lie so that they can be; false: not at all. */
bool mma_stage(Nest **, const char *outer, int64_t depth);

/* heuristic_wgmma.c: the same by a warpgroup's unit, if an estimate finds fewer cycles than those.  False: nothing was done. */
bool choose_wgmma_opts(Nest **, const Product *, const Extents *, double cycles);

#endif
