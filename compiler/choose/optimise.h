/* optimise.h - layouts and opts for all kernels of a plan. */
#ifndef OPTIMISE_H
#define OPTIMISE_H

#include "plan.h"

/* pad_inputs.c: inputs that contractions read beyond their edges are copied into the arena. */
void copy_inputs(Plan *, const Target *);
/* layouts.c: a layout for every buffer of the arena; halos instead of bounds checks. */
void choose_layouts(Plan *, const Target *);
/* choose.c: opts for every kernel, layouts for its weights, copies where an operand is laid out
 * badly. */
void optimise(Plan *, const Target *);
/* share_weights.c: kernels that look up what another one multiplies read it as that one has it. */
void share_weights(Plan *, const Target *);
/* halos.c: the kernels that write a buffer with a halo first zero it, beside their own loops. */
void clear_halos(Plan *);

/* recompute.c: what is elementwise is made again where it is read, if the arena gets smaller. */
void recompute(Plan *, const Target *);
/* recompute_to_fit.c: whatever is worth it is made again where it is read, until the arena, without
 * the states, takes no more than so many bytes; false: it cannot be so small. */
bool recompute_to_fit(Plan *, const Target *, double bytes);
/* runs.c: an estimate of all steps. */
double plan_cycles(const Plan *, const Target *);

#endif
