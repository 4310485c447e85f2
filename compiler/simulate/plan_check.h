/* plan_check.h - every step of a plan beside the graph, at a few of its results: what a compiler
 * looks at before it hands anything out. */
#ifndef PLAN_CHECK_H
#define PLAN_CHECK_H

#include "plan.h"

typedef struct {
    int nstep, nchecked; /* kernels that are steps; those of which a result was looked at */
    int64_t results;
    int64_t operations; /* that this took: instructions, and operations of the graph */
    char fault[1600];   /* "step 12, k07_conv, 'conv1' (Conv): ..", or "" */
} PlanCheck;

/* False: there is a fault. */
bool plan_check(const Plan *, bool gpu, PlanCheck *);

#endif
