/* onnx_window.h - sliding windows of convolutions and pools, resolved from a node's attributes. */
#ifndef INGOT_IMPORTERS_ONNX_WINDOW_H
#define INGOT_IMPORTERS_ONNX_WINDOW_H

#include "onnx.h"

/* One entry a spatial axis; axis i of the window is axis i + 2 of the tensor. */
typedef struct Window {
    int n;
    int64_t kernel[INGOT_MAX_RANK], stride[INGOT_MAX_RANK], dilation[INGOT_MAX_RANK];
    int64_t lo[INGOT_MAX_RANK], hi[INGOT_MAX_RANK]; /* pads */
    /* Pads that follow from run-time sizes come on top of these, where `run` is set. */
    bool run;
    ingot_dim *run_lo[INGOT_MAX_RANK], *run_hi[INGOT_MAX_RANK];
} Window;

/* Elements from a window's first to its last. */
static inline int64_t window_extent(const Window *w, int i)
{
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

/* kernel_shape (or the shape of the weights), strides, dilations, pads, auto_pad. */
bool window_read(Lowering *, ingot_tensor *x, ingot_tensor *weight, Window *);
/* False and an error if the window is larger than the padded input. */
bool window_fits(Lowering *, ingot_tensor *x, const Window *);
/* What ceil_mode adds behind the pads: constants in more, or else expressions in run_more. */
void window_ceil(Lowering *, ingot_tensor *x, const Window *, int64_t *more, ingot_dim **run_more);
/* x with the pads that follow from run-time sizes, of this value. */
ingot_tensor *window_pad(Lowering *, ingot_tensor *x, const Window *, double value);

#endif
