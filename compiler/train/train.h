/* train.h - what the files of train/ share: compositions of the public API, but for the names of
 * states. */
#ifndef TRAIN_H
#define TRAIN_H

#include "ingot_train.h"

/* f32, or f64 if x is that: what narrow floats are computed in. */
ingot_tensor *train_wide(ingot_context *, ingot_tensor *x);
/* All axes of x. */
unsigned train_axes(ingot_tensor *x);

#endif
