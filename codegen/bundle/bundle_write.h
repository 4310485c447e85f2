/* bundle_write.h - writes a plan as a bundle: a folder of source. */
#ifndef BUNDLE_WRITE_H
#define BUNDLE_WRITE_H

#include "codegen.h"

/* Writes the bundle; an existing one is replaced, nothing is left on failure. */
ingot_status bundle_write(Plan *, const Target *, const ingot_options *, const char *dir);
/* Of a bundle for a GPU and for C where there is none: what each is made of, in this order. */
typedef struct {
    Plan *p;
    const Target *target;
    const ingot_options *o;
} Half;
/* The same for both under one interface; the last `shared` bytes of the first plan's weights are
 * the first ones of the second's. */
ingot_status bundle_write_halves(const Half half[2], int64_t shared, const ingot_options *,
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
