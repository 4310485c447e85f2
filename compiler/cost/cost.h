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

#endif
