/* tflite_window.h - windows over images, and what floats and integers share of them. */
#ifndef TFLITE_WINDOW_H
#define TFLITE_WINDOW_H

#include "tflite_model.h"

typedef struct {
    int n; /* spatial axes */
    bool same, known;
    int64_t kernel[3], stride[3], dilation[3];
    int64_t before[3], behind[3]; /* what is around the image, if it is known when compiling */
    ingot_dim *lo[3], *hi[3];
} TfliteWindow;

/** Options; false after a fault. */
bool tfl_conv_2d_window(TfliteNode *, TfliteWindow *);
bool tfl_depthwise_window(TfliteNode *, TfliteWindow *);
/** x: input 0 with its channels in front. */
bool tfl_pool_window(TfliteNode *, TfliteWindow *, ingot_tensor **x);
bool tfl_window_fits(TfliteNode *, const TfliteWindow *);
/** What is around x [N, C, spatial..]. */
bool tfl_window_pads(TfliteNode *, ingot_tensor *x, TfliteWindow *);
/** x with zeros around it, where the run alone knows how many. */
ingot_tensor *tfl_window_pad(TfliteNode *, ingot_tensor *x, TfliteWindow *);
/** [N, M, ..] of x [N, C, ..] and w [M, C/groups, ..]; b may be NULL. */
ingot_tensor *tfl_convolve(TfliteNode *, ingot_tensor *x, ingot_tensor *w, ingot_tensor *b,
                           TfliteWindow *);
ingot_tensor *tfl_transpose_convolve(TfliteNode *, ingot_tensor *x, ingot_tensor *w,
                                     ingot_tensor *b);
ingot_tensor *tfl_depthwise_weights(TfliteNode *, ingot_tensor *w);
/** x [.., I] as [n, I], as FULLY_CONNECTED takes it. */
ingot_tensor *tfl_rows(TfliteNode *, ingot_tensor *x, ingot_tensor *w, bool keep);
/** x with its last two axes swapped, if that option says so. */
ingot_tensor *tfl_adjoint(TfliteNode *, ingot_tensor *x, unsigned option);
ingot_tensor *tfl_resize(TfliteNode *, ingot_tensor *x, unsigned options, ingot_resize_mode);

#endif
