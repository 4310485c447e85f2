/* language_wgsl.h - WGSL, WebGPU's shading language. */
#ifndef LANGUAGE_WGSL_H
#define LANGUAGE_WGSL_H

#include "language.h"

extern const Language wgsl_language;

/* Of every kernel that is no group's. */
enum { WGSL_GROUP = 64 };
/* Items of a group. */
int wgsl_group(const Tiles *, bool alone);
/* wgsl_runtime.c: the functions of igrt_num.wgsl that a text calls, and what these call; `first`
 * has some that take the place of others. */
void wgsl_runtime(StrBuf *, const char *first, const char *text);

#endif
