/* segments.h - what each device does between two waits. */
#ifndef SEGMENTS_H
#define SEGMENTS_H

#include "plan.h"

typedef struct {
    int device;
    Block block; /* steps of the main block, in order */
    int *waits;  /* by device: how many of its segments are done before */
} Segment;
typedef struct {
    int n, ndevice;
    Segment *segment; /* in an order in which one thread can run them */
} Segments;

/* segments.c: of a plan whose buffers have their places. */
Segments plan_segments(Arena *, const Plan *);
/* segments.c: why two steps of different devices may run at the same time, or in another order, and
 * must not; NULL: none. Looks at all pairs. */
const char *segments_fault(Arena *, const Plan *, const Segments *);
/* place_weights.c: how many bytes of the weights the steps of a device read. */
int64_t device_weights(const Plan *, int device);

#endif
