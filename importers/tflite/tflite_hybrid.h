/* tflite_hybrid.h - products of floats by weights that are integers with scales (tflite_hybrid.c).
 */
#ifndef TFLITE_HYBRID_H
#define TFLITE_HYBRID_H

#include "tflite_window.h"

/* Floats as bytes: x is q times scale, about. */
typedef struct {
    ingot_tensor *q;     /* i32, the zero point subtracted */
    ingot_tensor *scale; /* f32, of size 1 along the axes that share one */
} TfliteBytes;

/** x by a scale for each of what is not on these axes; both_sides: the range need not lie
 * symmetrically around 0. False after a fault. */
bool tfl_bytes(TfliteNode *, ingot_tensor *x, unsigned axes, bool both_sides, TfliteBytes *);
/** Input i, integers without zero points, in i32. */
ingot_tensor *tfl_byte_weights(TfliteNode *, int i);
/** Scales of input i: one number, or a vector. */
ingot_tensor *tfl_weight_scales(TfliteNode *, int i);
/** x [.., I] by input w [O, I], in which each block of a row has a scale (tflite_blocks.c); rows of
 * such weights, as floats. */
ingot_tensor *tfl_blocks_linear(TfliteNode *, ingot_tensor *x, int w);
ingot_tensor *tfl_blocks_rows(TfliteNode *, ingot_tensor *rows, int w);
/** x [.., I] by input w [O, I] in f32. */
ingot_tensor *tfl_byte_linear(TfliteNode *, const TfliteBytes *x, int w);

#endif
