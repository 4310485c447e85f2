/*
 * onnx_ms_fused.c - com.microsoft: what ONNX Runtime's optimiser makes of a product or convolution
 * and what follows it, the same on channels-last tensors, and its activations.
 *
 *     FusedConv    y = f(conv(x, w) + b + z)          FusedGemm    y = f(alpha A' B' + beta C)
 *     FusedMatMul  y = alpha A' B'
 */
#include <string.h>

#include "onnx.h"

#define X n->in[0]
#define Y n->in[1]

/* ---- activations after a product ------------------------------------------------------------ */

/* f(x) of the attribute 'activation' with its numbers, of which the first n_given are told; x
 * itself without one. */
static ingot_tensor *activated(Lowering *n, ingot_tensor *x, int n_given, const float *given)
{
    static const struct {
        const char *name;
        double usual[2];
    } known[] = {
        {"", {0}},
        {"Relu", {0}},
        {"Tanh", {0}},
        {"Sigmoid", {0}},
        {"Softplus", {0}},
        {"Softsign", {0}},
        {"HardSwish", {0}},
        {"LeakyRelu", {0.01, 0}},
        {"Elu", {1, 0}},
        {"ThresholdedRelu", {1, 0}},
        {"HardSigmoid", {0.2, 0.5}},
        {"Clip", {-3.402823466e38, 3.402823466e38}},
    };
    const char *name = attr_string(n, "activation", "");
    double v[2];
    int kind = 0;
    while (kind < COUNT(known) && strcmp(known[kind].name, name) != 0)
        kind++;
    if (kind == COUNT(known))
        return unsupported(n, "its activation '%.100s' is not supported", name);
    for (int i = 0; i < 2; i++)
        v[i] = i < n_given ? (double)given[i] : known[kind].usual[i];
    switch (kind) {
    case 1: return ingot_relu(n->c, x);
    case 2: return ingot_tanh(n->c, x);
    case 3: return ingot_sigmoid(n->c, x);
    case 4: return ingot_softplus(n->c, x);
    case 5: return ingot_softsign(n->c, x);
    case 6: return ingot_hard_swish(n->c, x);
    case 7: return ingot_leaky_relu(n->c, x, v[0]);
    case 8: return ingot_elu(n->c, x, v[0]);
    case 9: return ingot_thresholded_relu(n->c, x, v[0]);
    case 10: return ingot_hard_sigmoid(n->c, x, v[0], v[1]);
    case 11: return ingot_clamp(n->c, x, v[0], v[1]);
    default: return x;
    }
}

/* ---- convolutions and pools ----------------------------------------------------------------- */

ingot_tensor *channels_first(Lowering *n, ingot_tensor *x)
{
    int rank = ingot_rank(x), perm[INGOT_MAX_RANK];
    if (rank < 3)
        return fault(n, "its channels come last, but its input has rank %d; at least 3 is needed",
                     rank);
    for (int a = 0; a < rank; a++)
        perm[a] = a == 0 ? 0 : a == 1 ? rank - 1 : a - 1;
    return ingot_permute(n->c, x, perm);
}

ingot_tensor *channels_last(Lowering *n, ingot_tensor *x)
{
    int perm[INGOT_MAX_RANK];
    if (ingot_is_poison(x))
        return x;
    for (int a = 0; a < ingot_rank(x); a++)
        perm[a] = a == 0 ? 0 : a == ingot_rank(x) - 1 ? 1 : a + 1;
    return ingot_permute(n->c, x, perm);
}

/* A lowering of channels-first tensors, of channels-last ones. */
static ingot_tensor *nhwc(Lowering *n, LowerFn *lower)
{
    n->in[0] = channels_first(n, X);
    return ingot_is_poison(X) ? X : channels_last(n, lower(n));
}

/* f(y + z), z being input 3 and maybe left out */
static ingot_tensor *conv_tail(Lowering *n, ingot_tensor *y)
{
    const float *params;
    int count = attr_floats(n, "activation_params", &params);
    if (ingot_is_poison(y))
        return y;
    if (optional_in(n, 3))
        y = ingot_add(n->c, y, n->in[3]);
    return activated(n, y, count, params);
}

ingot_tensor *onnx_ms_fused_conv(Lowering *n)
{
    return conv_tail(n, onnx_conv(n));
}

ingot_tensor *onnx_ms_nhwc_conv(Lowering *n)
{
    return nhwc(n, onnx_conv);
}

ingot_tensor *onnx_ms_nhwc_fused_conv(Lowering *n)
{
    return conv_tail(n, nhwc(n, onnx_conv));
}

ingot_tensor *onnx_ms_nhwc_max_pool(Lowering *n)
{
    return nhwc(n, onnx_max_pool);
}

/* ---- products ------------------------------------------------------------------------------- */

ingot_tensor *onnx_ms_fused_gemm(Lowering *n)
{
    float given[2] = {(float)attr_float(n, "activation_alpha", 0),
                      (float)attr_float(n, "activation_beta", 0)};
    int count = attr_has(n, "activation_beta") ? 2 : attr_has(n, "activation_alpha") ? 1 : 0;
    ingot_tensor *y = onnx_gemm(n);
    return ingot_is_poison(y) ? y : activated(n, y, count, given);
}

/* An operand with its axes in matmul's order: `batch` says that its rows are axis 0, before the
 * batches; `swap` that the last two axes change places. A vector stays. */
static ingot_tensor *operand(Lowering *n, ingot_tensor *x, bool batch, bool swap)
{
    int rank = ingot_rank(x), perm[INGOT_MAX_RANK];
    if (rank < 2)
        return x;
    for (int a = 0; a < rank; a++)
        perm[a] = a;
    for (int a = 0; batch && a < rank - 1; a++)
        perm[a] = a == rank - 2 ? 0 : a + 1;
    if (swap) {
        int last = perm[rank - 1];
        perm[rank - 1] = perm[rank - 2];
        perm[rank - 2] = last;
    }
    return ingot_permute(n->c, x, perm);
}

ingot_tensor *onnx_ms_fused_matmul(Lowering *n)
{
    double alpha = attr_float(n, "alpha", 1);
    ingot_tensor *a =
        operand(n, X, attr_int(n, "transBatchA", 0) != 0, attr_int(n, "transA", 0) != 0);
    ingot_tensor *b =
        operand(n, Y, attr_int(n, "transBatchB", 0) != 0, attr_int(n, "transB", 0) != 0);
    ingot_tensor *y = ingot_matmul(n->c, a, b);
    return alpha == 1 || ingot_is_poison(y) ? y : ingot_mul_c(n->c, y, alpha);
}

/* ---- activations with a bias ---------------------------------------------------------------- */

ingot_tensor *onnx_ms_bias_gelu(Lowering *n)
{
    return ingot_gelu(n->c, ingot_add(n->c, X, Y), false);
}

ingot_tensor *onnx_ms_fast_gelu(Lowering *n)
{
    return ingot_gelu(n->c, optional_in(n, 1) ? ingot_add(n->c, X, Y) : X, true);
}

/* x sigmoid(alpha x) */
ingot_tensor *onnx_ms_quick_gelu(Lowering *n)
{
    return ingot_swish(n->c, X, attr_float(n, "alpha", 1.702));
}

/* left gelu(right) of the halves of x + bias */
ingot_tensor *onnx_ms_bias_split_gelu(Lowering *n)
{
    ingot_tensor *x = ingot_add(n->c, X, Y), *half[2];
    int64_t size;
    if (ingot_is_poison(x))
        return x;
    int last = ingot_rank(x) - 1;
    if (last < 0 || !ingot_dim_is_const(ingot_shape(x, last), &size) || size % 2)
        return fault(n, "its last axis does not have two halves");
    for (int i = 0; i < 2; i++)
        half[i] = ingot_slice(n->c, x, last, dim(n, i * (size / 2)), dim(n, size / 2), 1);
    return ingot_mul(n->c, half[0], ingot_gelu(n->c, half[1], false));
}

/* x + bias + skip */
ingot_tensor *onnx_ms_bias_add(Lowering *n)
{
    return ingot_add(n->c, ingot_add(n->c, X, Y), n->in[2]);
}

/* softmax(x + bias) over the axes from `axis` on, which count as one */
ingot_tensor *onnx_ms_bias_softmax(Lowering *n)
{
    ingot_tensor *x = ingot_add(n->c, X, Y);
    ingot_dim *dims[INGOT_MAX_RANK];
    int axis;
    if (ingot_is_poison(x))
        return x;
    int rank = ingot_rank(x);
    if (!axis_in(n, attr_int(n, "axis", 1), rank, &axis))
        return ingot_poison(n->c);
    shape_of(x, dims);
    ingot_tensor *y = ingot_softmax(n->c, ingot_flatten(n->c, x, axis, rank), axis);
    return ingot_is_poison(y) ? y : ingot_reshape(n->c, y, rank, dims);
}

/* x + bias + residual: inference only */
ingot_tensor *onnx_ms_bias_dropout(Lowering *n)
{
    int64_t training = 0;
    ingot_dim *dims[INGOT_MAX_RANK];
    if (optional_in(n, 4) && !int_in(n, 4, &training))
        return ingot_poison(n->c);
    if (training)
        return unsupported(n, "training with a random mask is not supported");
    ingot_tensor *y = ingot_add(n->c, X, Y);
    shape_of(X, dims);
    if (n->n_out > 1)
        n->out[1] =
            ingot_expand(n->c, ingot_cast(n->c, ingot_scalar_i(n->c, INGOT_I64, 1), INGOT_BOOL),
                         ingot_rank(X), dims);
    return optional_in(n, 2) ? ingot_add(n->c, y, n->in[2]) : y;
}
