/* wgsl.h - WGSL as a language of kernels. */
#ifndef WGSL_H
#define WGSL_H

#include "codegen/render/language.h"

extern const Language wgsl_language;
/* Items of a group of the kernel that was lowered to this. */
int wgsl_group(const Tiles *, bool serial);

#endif
