/* segments.h - what each device does between two waits. */
#ifndef SEGMENTS_H
#define SEGMENTS_H

#include "plan.h"

/* Of a copy from another device, where that device sends it: who has the value sends it, and who
 * wants it takes it. */
typedef enum { WHOLE_STEP, STEP_SENDS, STEP_TAKES } StepPart;
typedef struct {
    int device;     /* or the number of a queue of copies */
    Block block;    /* steps of the main block, in order */
    StepPart *part; /* by step of it */
    int *waits;     /* by device: how many of its segments are done before */
} Segment;
typedef struct {
    int n, ndevice;   /* and queues of copies behind them */
    Segment *segment; /* in an order in which one thread can run them */
} Segments;

/* segments.c: of a plan whose buffers have their places. */
Segments plan_segments(Arena *, const Plan *);
/* segments.c: the same for devices that go through what they are given beforehand, with no word
 * between them but for what they wait for. A copy of up to `sent` bytes is sent: taking it waits
 * for it, so that nobody else has to. Each device has a queue for other copies to it, number
 * ndevice + device, which do not hold it up. */
Segments plan_queues(Arena *, const Plan *, int64_t sent);
/* segments.c: why two steps of different devices may run at the same time, or in another order, and
 * must not; NULL: none. Looks at all pairs. */
const char *segments_fault(Arena *, const Plan *, const Segments *);
/* place_weights.c: how many bytes of the weights the steps of a device read. */
int64_t device_weights(const Plan *, int device);

#endif
