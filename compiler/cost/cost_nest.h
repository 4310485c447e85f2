/* cost_nest.h - what a kernel takes, once its loops are known. */
#ifndef COST_NEST_H
#define COST_NEST_H

#include "target.h"

/* What a kernel with its opts is estimated to take: cycles of one core, and what they are made
 * of. */
typedef struct {
    double cycles;
    /* operations, loads and stores at the rates of the core, with latency and what registers cannot
     * hold */
    double issue;
    double memory; /* lines that move between levels of memory */
    double loops;  /* loops entered and counted */
    double pieces; /* code of vectors and of rests to begin with */
    double operations, loads, stores,
        spills;        /* instructions; of those before, what has no register */
    double traffic[4]; /* bytes that come into level i from the next */
    int statements;
} Estimate;
Estimate cost_nest(const Kernel *, const Target *);
/* Cycles of one of each; of a byte by the level that it comes into. */
typedef struct {
    double load, store, operation, byte[3];
} EstimateWeights;
extern const EstimateWeights estimate_weights;

#endif
