/* weight_layout.h - layouts of weights, for who searches. */
#ifndef WEIGHT_LAYOUT_H
#define WEIGHT_LAYOUT_H

#include "nest.h"

/* The layout in which the loops of the nest read a weight in order; false if there is none.  base:
 * the kernel. */
bool weight_layout(const Nest *, int arg, Layout *);

#endif
