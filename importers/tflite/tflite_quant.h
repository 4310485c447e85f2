/* tflite_quant.h - arithmetic on integers that stand for real numbers (tflite_quant.c). */
#ifndef TFLITE_QUANT_H
#define TFLITE_QUANT_H

#include "tflite_window.h"

/* m / 2^31 * 2^shift; m has 31 bits, unless it is 0 */
typedef struct {
    int32_t m;
    int shift;
} TfliteMultiplier;

/** The least and greatest integer of its type. */
void tfl_range(const ingot_tflite_tensor *, int32_t *lo, int32_t *hi);
/** The nearest one; 0 of what is no positive number. */
TfliteMultiplier tfl_multiplier(double real);
/** x (i32) times q, rounded to i32; count: 1, or one for each element of that axis. */
ingot_tensor *tfl_rescale(TfliteNode *, ingot_tensor *x, const TfliteMultiplier *q, int64_t count,
                          int axis);
/** The same of x in i64 (or i32), rounded once; whole: by all bits of the multiplier. */
ingot_tensor *tfl_rescale_wide(TfliteNode *, ingot_tensor *x, const TfliteMultiplier *q,
                               int64_t count, int axis, bool whole);
/** To the nearest whole number, halves away from zero, of floats. */
ingot_tensor *tfl_round(TfliteNode *, ingot_tensor *x);
/** Constants along an axis; one number if they are equal. */
ingot_tensor *tfl_i32(TfliteNode *, const int32_t *, int64_t count, int rank, int axis);
/** Input i as i32, less its zero point. */
ingot_tensor *tfl_centred(TfliteNode *, int i);
/** x (i32) has output 0's scale: its zero point is added, and bounds of the type and of the fused
 * activation function hold. */
ingot_tensor *tfl_finish(TfliteNode *, ingot_tensor *x, int64_t function);
/** Those bounds. */
bool tfl_activation_range(TfliteNode *, const ingot_tflite_tensor *, int64_t function, int32_t *lo,
                          int32_t *hi);
/** table[x] for an input of 8 bits: of each integer, from the least on, what it becomes. */
ingot_tensor *tfl_by_table(TfliteNode *, const int8_t *table);

/* ---- as XNNPACK (tflite_xnnpack.c) -----------------------------------------------------------
 */

/** Is the result of 8 bits, and is --rounding xnnpack given? */
bool tfl_as_xnnpack(TfliteNode *);
/** x (i32) times f32, rounded once to f32, halves to even; count: 1, or one for each of that axis.
 */
ingot_tensor *tfl_rescale_once(TfliteNode *, ingot_tensor *x, const float *scale, int64_t count,
                               int axis);
/** Inputs 0 and 1 in steps of the result's scale (i32); x where it is positive, else down x, in
 * another scale. NULL: as the reference kernels. */
ingot_tensor *tfl_xnnpack_sum(TfliteNode *, bool minus);
ingot_tensor *tfl_xnnpack_line(TfliteNode *, float down);
/** SUM or MEAN of so many elements; RESIZE_BILINEAR. */
ingot_tensor *tfl_xnnpack_reduced(TfliteNode *, unsigned axes, int64_t count, bool mean);
ingot_tensor *tfl_xnnpack_resized(TfliteNode *, const int64_t *in, const int64_t *out);

/* ---- fixed point, when compiling (tflite_fixed.c) ---------------------------------------------
 */

/** x m / 2^31 and x / 2^e rounded, as in the graph; x * q. */
int32_t tfl_fixed_high(int32_t x, int32_t m);
int32_t tfl_fixed_halve(int32_t x, int e);
int32_t tfl_fixed_rescale(int32_t x, TfliteMultiplier q);
/** e^x of x <= 0 with so many integer bits, as a fraction of 2^31. */
int32_t tfl_fixed_exp(int32_t x, int integer_bits);
/** 1 / sqrt x of a whole number. */
TfliteMultiplier tfl_fixed_rsqrt(int32_t x);

/* ---- fixed point of 16 bits, in the graph (tflite_fixed16.c) --------------------------------- */

/** x (i32) within 16 bits. */
ingot_tensor *tfl_clamp_16(TfliteNode *, ingot_tensor *x);
/** 1 / (1 + e^-x) and tanh x of x (i32, of 16 bits) with so many integer bits, as a fraction of
 * 2^15. */
ingot_tensor *tfl_logistic_16(TfliteNode *, ingot_tensor *x, int integer_bits);
ingot_tensor *tfl_tanh_16(TfliteNode *, ingot_tensor *x, int integer_bits);
/* ---- fixed point of 32 bits, in the graph (tflite_quant_norm.c) ------------------------------ */

/** The zero bits in front of x (i32), which is 2^least or more and less than 2^most. */
ingot_tensor *tfl_leading_zeros(TfliteNode *, ingot_tensor *x, int least, int most);
/** 1 / (1 + x) of 0 <= x < 1, both fractions of 2^31. */
ingot_tensor *tfl_by_one_plus(TfliteNode *, ingot_tensor *x);

/** The operator of 16 bits (tflite_quant_table.c). */
ingot_tensor *tfl_q_softmax_16(TfliteNode *);
/** Is it a power of two? Its logarithm (tflite_quant_math.c). */
bool tfl_power_of_two(float x, int *log);

#endif
