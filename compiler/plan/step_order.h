/* step_order.h - orders of the main steps of a plan in which each has what it needs. */
#ifndef STEP_ORDER_H
#define STEP_ORDER_H

#include "plan.h"

/* What a step, or one inside of it, does with a buffer or a view of it. */
enum { TOUCH_READS = 1, TOUCH_WRITES = 2 };
int step_touches(const Step *, const Buffer *root);
/* Each buffer that it names, with what it does with it there. */
typedef void OnTouch(void *user, const Buffer *root, int how);
void step_each_touched(const Step *, OnTouch *, void *user);

/* Whether it stays where it is: no other may pass it. */
bool step_stays(const Plan *, const Step *);

typedef struct StepOrder StepOrder;
/* As the steps stand now: who reads a buffer comes behind who writes it, and before who writes it
 * again. Buffers have bytes of their own. */
StepOrder *step_order_new(Arena *, const Plan *, const Block *);
/* One more: step i comes before step j.  Nothing that comes behind j may be i. */
void step_before(StepOrder *, int i, int j);
/* By step: whether it can only come behind step i. */
bool *steps_after(StepOrder *, int i);
/* The steps that have to come behind step i, of those that it is next to. */
const int *steps_next(const StepOrder *, int i, int *n);
/* The order, a list of steps, which of those that were tried needs the fewest bytes. */
const int *step_order_best(StepOrder *);

#endif
