/*
 * igrt_vec.h - the f32 operations of a model on vectors of 4, 8 and 16 lanes.
 *
 * The functions are igrt_<op>_f32x4, _f32x8, _f32x16 and give, lane by lane, what igrt_<op>_f32 of
 * igrt_num.h gives: the same bits for arithmetic, comparisons, max, min, rounding, conversions, and
 * for the operations that are loops over the C library. exp, log, tanh, erf, sin and cos have
 * vector forms of their own (docs/numerics.md says how exact they are).
 *
 * The code is GNU vector extensions, so it compiles for every ISA that gcc and clang know. Where a
 * plain expression becomes many instructions, the widest native vector is written with intrinsics,
 * and wider ones are made of two halves. A mask is an i32 vector of 0 and -1.
 *
 * Requires gcc or clang, the default rounding mode, no -ffast-math.
 */
#ifndef IGRT_VEC_H
#define IGRT_VEC_H

#include "igrt_vec_apart.h"
#include "igrt_vec_base.h"
#include "igrt_vec_f32.h"
#include "igrt_vec_i32.h"
#include "igrt_vec_math.h"
#include "igrt_vec_narrow.h"
#include "igrt_vec_rows.h"

#endif
