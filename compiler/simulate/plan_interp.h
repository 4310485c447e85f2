/* plan_interp.h - a whole plan by the interpreter of linear IR: every step on the memory that the
 * plan gives it. */
#ifndef PLAN_INTERP_H
#define PLAN_INTERP_H

#include "linear_interp.h"
#include "plan.h"

typedef struct PlanInterp {
    const Plan *p;
    bool gpu;
    bool naive;   /* the kernels without opts alone */
    int64_t most; /* instructions; 0: any number */
    /* Is told before each step; and after each kernel what it has made of one of its buffers, and
     * what it makes of it without opts, on the same operands; after calls and copies twice the
     * same.  NULL: not asked. */
    void (*before)(void *user, const Step *);
    void (*wrote)(void *user, const Step *, const Buffer *, const unsigned char *got,
                  const unsigned char *naive);
    void *user;
    const unsigned char **state; /* by number: takes what each is after the run; NULL: not asked */
    struct Interp *ip;           /* while it runs: the run-time integers */
    int64_t done;                /* instructions */
    char fault[1200];            /* the first, or "" */
} PlanInterp;

/* What a buffer of a state begins with; NULL: it is none, or begins as zeros. */
const Data *state_data(const Plan *, const Buffer *);

/* in: dense, one for each input of the model; out: data in the arena.  States are as after a reset.
 * False after a fault: x->done is x->most if that was why. */
bool plan_interpret(PlanInterp *, Arena *, const ingot_value *in, ingot_value *out);

#endif
