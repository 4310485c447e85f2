/* step_check.h - a step of a plan by itself: what plan_check.c and step_check.c share. */
#ifndef STEP_CHECK_H
#define STEP_CHECK_H

#include "drawn.h"
#include "element.h"
#include "linear_interp.h"
#include "plan_check.h"

typedef struct {
    const Plan *p;
    PlanCheck *check;
    bool gpu;
    Arena *a; /* of one choice of run-time integers */
    Interp *ip;
    Drawn *drawn;
    Elements *elements;
    Map placed;   /* node -> its first Placement */
    int *next;    /* of each, the one after it */
    int64_t left; /* operations */
    int nstep;    /* that are still to come */
    Map lowered;  /* kernel -> struct CheckedKernel */
} Checker;

typedef struct {
    Lowered *own;     /* that nobody else has asked for, or NULL */
    LinearKernel *lk; /* NULL: not made yet */
} CheckedForm;

typedef struct CheckedKernel {
    Arena *a;
    bool known;              /* there is an interpreter for it */
    CheckedForm form, plain; /* with its opts, and without */
    bool seen;               /* some step of it has been looked at, with these run-time integers */
    /* a tile takes long: of further steps, whose statements are the same, the plain form is run */
    bool heavy;
} CheckedKernel;

/* False: what is wrong is in the fault. most: operations for it. */
bool step_check(Checker *, const Step *, CheckedKernel *, int64_t most);

#endif
