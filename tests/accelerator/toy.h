/* toy.h - an accelerator from outside the tree: a memory of its own, one unit that multiplies
 * matrices of 8 by 8, twenty ops. */
#ifndef TOY_H
#define TOY_H

#include "compiler/compiler.h"
#include "compiler/kernel/tc.h"

/* The target "toy": C on the host, which is device 0, and the accelerator, which is device 1. */
const Target *toy_target(void);
extern const Tc toy_units[];

#endif
