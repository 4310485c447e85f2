/* bundle_write.h - writes a plan as a bundle: a folder of source. */
#ifndef BUNDLE_WRITE_H
#define BUNDLE_WRITE_H

#include "codegen.h"

/* Writes the bundle; an existing one is replaced, nothing is left on failure. */
ingot_status bundle_write(Plan *, const Target *, const ingot_options *, const char *dir);
/* Of a bundle for several targets what each is made of: a GPU's first, if there is one. */
typedef struct {
    Plan *p, **plans; /* of its functions, the first of which is p */
    const Target *target;
    const ingot_options *o;
    const char *name, *suffix; /* as TargetName has them */
    int64_t weights;           /* bytes of its own */
} FatTarget;
/* The same for all of them under one interface. Those for C have one file of weights, whose first
 * `shared` bytes are the last ones of the GPU's. */
ingot_status bundle_write_fat(int n, const FatTarget *, int64_t shared, const ingot_options *,
                              const char *dir);
/* Of n functions of one model: the context has them in this order, and selects the first. */
ingot_status bundle_write_functions(int n, Plan *const *, const Target *, const ingot_options *,
                                    const char *dir);
/* custom_source.c: the C file of a custom operator, for the model of that name. */
void custom_source(StrBuf *, const CustomOp *, const char *model);
/* What kernels need that call functions of one element: their sources, of which every name has
 * `prefix`, and behind the runtime's headers op_swish() and, where the kernels need it,
 * op_swish_x16(). */
void custom_paste(StrBuf *, const CustomOp *, const char *prefix);
void custom_wrappers(StrBuf *, const CustomOp *, const char *prefix, unsigned needs);

#endif
