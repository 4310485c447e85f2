/* cost_access.h - the places that an access touches in its loops (cost_nest.c). */
#ifndef INGOT_COST_ACCESS_H
#define INGOT_COST_ACCESS_H

#include <stdbool.h>

#include "base.h"

enum { MAX_DEPTH = 24 };
#define JUMPS 4099.0 /* stands for bytes that are no constant: nothing slides along by them */

typedef struct {
    int arg;
    bool store;
    double bytes;             /* of one access */
    int nest, depth;          /* the loops around it, and how many */
    double stride[MAX_DEPTH]; /* bytes, by loop */
    double lanes, lane_step;  /* that lie apart: how many, by how many bytes; 1: none do */
    double *at;           /* bytes, ascending: accesses with the same strides, all counters zero */
    double copies, apart; /* how many these are, and how near to one another */
    double run, runs_apart; /* so many follow each other; the next as many begin so far from them */
} LoopAccess;

/* More places of an access: n of them, and each again so many times, a stride further each time.
 * Those that it has already are not more. */
void access_add_places(Arena *, LoopAccess *, int n, const double *place, double stride, int trips);
/* Bytes of lines that an access touches in its loops from depth d on, each place once; trips: how
 * often each of its loops goes round. */
double access_footprint(const LoopAccess *, int d, const double *trips, double line);

#endif
