/* onnx_window.h - sliding windows of convolutions and pools, resolved from a node's attributes. */
#ifndef INGOT_IMPORTERS_ONNX_WINDOW_H
#define INGOT_IMPORTERS_ONNX_WINDOW_H

#include "onnx.h"

/* One entry a spatial axis; axis i of the window is axis i + 2 of the tensor. */
typedef struct Window {
    int n;
    int64_t kernel[INGOT_MAX_RANK], stride[INGOT_MAX_RANK], dilation[INGOT_MAX_RANK];
    int64_t lo[INGOT_MAX_RANK], hi[INGOT_MAX_RANK];
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
/* What ceil_mode adds to the pads at the end. */
bool window_ceil(Lowering *, ingot_tensor *x, const Window *, int64_t *more);

#endif
