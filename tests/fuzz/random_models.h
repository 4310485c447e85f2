/* random_models.h - what random_opts.c draws its kernels from. */
#ifndef RANDOM_MODELS_H
#define RANDOM_MODELS_H

#include "compiler/compiler.h"

void random_seed(uint64_t);
/* The next number, from 0 to n - 1. */
uint32_t random_below(uint32_t n);
/* Each builds a model whose sizes are drawn. */
extern void (*const random_models[])(Context *);
extern const size_t random_nmodel, random_nunit; /* the last ones: of what units multiply */

#endif
