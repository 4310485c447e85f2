/* ingot_ops.h - the op library: every operator that is a composition of the primitives of
 * ingot.h.  Included by ingot.h; nothing here touches the compiler's internals, and anything a
 * user could write himself belongs here or in his own code.
 *
 * Shapes are written [N, C, H, W]; axis arguments may be negative where said so. */
#ifndef INGOT_OPS_H
#define INGOT_OPS_H

/* Activations; formulas as in the ONNX operator specification. */
ingot_tensor *ingot_relu(ingot_context *, ingot_tensor *);
ingot_tensor *ingot_sigmoid(ingot_context *, ingot_tensor *);
ingot_tensor *ingot_softplus(ingot_context *, ingot_tensor *);
ingot_tensor *ingot_gelu(ingot_context *, ingot_tensor *, bool tanh_form);
ingot_tensor *ingot_clamp(ingot_context *, ingot_tensor *, double lo, double hi);

/* Linear algebra.  matmul follows numpy.matmul (1-D operands, broadcast batches); accumulates in
 * the accumulate type of the dtype. */
ingot_tensor *ingot_matmul(ingot_context *, ingot_tensor *a, ingot_tensor *b);
/* y = x w^T + b with w [out, in], b [out] or NULL: the layout of safetensors checkpoints. */
ingot_tensor *ingot_linear(ingot_context *, ingot_tensor *x, ingot_tensor *w, ingot_tensor *b);
ingot_tensor *ingot_einsum(ingot_context *, const char *equation, int n, ingot_tensor *const *operands);

/* Softmax family along one axis (may be negative); max-subtracted. */
ingot_tensor *ingot_softmax(ingot_context *, ingot_tensor *, int axis);
ingot_tensor *ingot_log_softmax(ingot_context *, ingot_tensor *, int axis);

/* n-d convolution: x [N, C, d...], w [M, C/group, k...], b [M] or NULL; arrays have one entry per
 * spatial axis; pads_lo/pads_hi are zeros added before and after. */
ingot_tensor *ingot_conv(ingot_context *, ingot_tensor *x, ingot_tensor *w, ingot_tensor *b,
                         const int64_t *strides, const int64_t *dilations, const int64_t *pads_lo,
                         const int64_t *pads_hi, int64_t group);
/* Transposed: w [C, M/group, k...]; out_pads are added to the end of the result. */
ingot_tensor *ingot_conv_transpose(ingot_context *, ingot_tensor *x, ingot_tensor *w, ingot_tensor *b,
                                   const int64_t *strides, const int64_t *dilations, const int64_t *pads_lo,
                                   const int64_t *pads_hi, const int64_t *out_pads, int64_t group);
/* Pooling over the axes 2..rank-1. */
ingot_tensor *ingot_max_pool(ingot_context *, ingot_tensor *x, const int64_t *kernel, const int64_t *strides,
                             const int64_t *dilations, const int64_t *pads_lo, const int64_t *pads_hi);
ingot_tensor *ingot_avg_pool(ingot_context *, ingot_tensor *x, const int64_t *kernel, const int64_t *strides,
                             const int64_t *dilations, const int64_t *pads_lo, const int64_t *pads_hi,
                             bool count_pads);

/* Normalisations.  Statistics in f32 or wider. scale / bias may be NULL; they broadcast to x's shape. */
ingot_tensor *ingot_batch_norm(ingot_context *, ingot_tensor *x, ingot_tensor *scale, ingot_tensor *bias,
                               ingot_tensor *mean, ingot_tensor *var, double eps); /* channel axis 1 */
ingot_tensor *ingot_layer_norm(ingot_context *, ingot_tensor *x, int axis, ingot_tensor *scale,
                               ingot_tensor *bias, double eps);
ingot_tensor *ingot_rms_norm(ingot_context *, ingot_tensor *x, int axis, ingot_tensor *scale, double eps);

/* Positions (i64 [rank, n]) of the nonzero elements in row-major order; n is a run-time dim. */
ingot_tensor *ingot_nonzero(ingot_context *, ingot_tensor *);
/* The k greatest (or smallest) along an axis, sorted; ties by index. out[0] values, out[1] i64 indices. */
void ingot_topk(ingot_context *, ingot_tensor *, ingot_dim *k, int axis, bool largest, ingot_tensor *out[2]);

#endif
