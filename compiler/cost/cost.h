/* cost.h - what work takes on a machine, in cycles. */
#ifndef COST_H
#define COST_H

#include "plan.h"

/* What takes at most 1 / LITTLE of the time of something else may be done to save memory. */
enum { LITTLE = 32 };
enum { DEAR = 4 }; /* cycles that a byte of memory is worth where it is dear */
/* cost.c: cycles of moving bytes where so many are in use; of a kernel, tiled if it can be. */
double cost_bytes(double bytes, double live, const Target *);
double cost_kernel(const Kernel *, const Target *);

double cost_stored(Node *, const Target *); /* of writing it: its lines are fetched, and go back */
double node_bytes(Node *);                  /* of a tensor, at the upper bounds */
double node_elements(Node *);

/* stream.c: items that a GPU runs beside each other, so that some have what they wait for; items of
 * a group that shares its processor with another one. */
int64_t items_at_once(const Machine *);
int64_t half_group(const Machine *);
/* Of a matrix that a run reads once, times a vector: are there accesses for all these items? Below
 * that it is a kernel's begin and end that takes the time. */
bool stream_is_long(const Machine *, double bytes, bool digits);
/* Elements of so many bytes (below 1: digits) of a row that the items of a group have at once. */
int64_t stream_turn(const Machine *, double element);

#endif
