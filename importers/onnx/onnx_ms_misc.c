/*
 * onnx_ms_misc.c - com.microsoft: operators that the standard took over later, or that are one
 * line.
 */
#include <string.h>

#include "onnx.h"

#define X n->in[0]
#define Y n->in[1]

/* What the standard's last version does. */
static ingot_tensor *standard(Lowering *n, LowerFn *lower)
{
    n->version = INGOT_ONNX_MAX_OPSET;
    return lower(n);
}

ingot_tensor *onnx_ms_pad(Lowering *n)
{
    return standard(n, onnx_pad);
}

ingot_tensor *onnx_ms_trilu(Lowering *n)
{
    return standard(n, onnx_trilu);
}

ingot_tensor *onnx_ms_gather_nd(Lowering *n)
{
    return standard(n, onnx_gather_nd);
}

ingot_tensor *onnx_ms_grid_sample(Lowering *n)
{
    return onnx_grid_sample(n); /* whose modes have their first names */
}

/* A step of 1 unless told. */
ingot_tensor *onnx_ms_range(Lowering *n)
{
    if (!optional_in(n, 2)) {
        n->in[2] = like(n, X, 1);
        n->n_in = 3;
    }
    return standard(n, onnx_range);
}

ingot_tensor *onnx_ms_expand_dims(Lowering *n)
{
    int64_t given;
    int axis;
    if (!int_in(n, 1, &given) || !axis_in(n, given, ingot_rank(X) + 1, &axis))
        return ingot_poison(n->c);
    return ingot_unsqueeze(n->c, X, axis);
}

/* In the order in which they come; places of all, and how many there are of each. */
ingot_tensor *onnx_ms_unique(Lowering *n)
{
    ingot_tensor *out[4];
    if (ingot_rank(X) != 1)
        return fault(n, "its input has rank %d, not 1", ingot_rank(X));
    ingot_unique(n->c, X, -1, false, out);
    n->out[1] = out[2];
    n->out[2] = out[3];
    return out[0];
}

/* Distances of rows: |a|^2 - 2 ab + |b|^2 would lose digits, so differences are squared. */
ingot_tensor *onnx_ms_cdist(Lowering *n)
{
    const char *metric = attr_string(n, "metric", "sqeuclidean");
    bool root = strcmp(metric, "euclidean") == 0;
    if (!root && strcmp(metric, "sqeuclidean") != 0)
        return unsupported(n, "the metric '%.100s' is not supported", metric);
    if (ingot_rank(X) != 2 || ingot_rank(Y) != 2)
        return fault(n, "its matrices have ranks %d and %d, not 2", ingot_rank(X), ingot_rank(Y));
    ingot_tensor *d = ingot_sub(n->c, ingot_unsqueeze(n->c, X, 1), ingot_unsqueeze(n->c, Y, 0));
    ingot_tensor *sum = ingot_sum(n->c, ingot_mul(n->c, d, d), 4, false);
    return root ? ingot_sqrt(n->c, sum) : sum;
}

/* ---- linear attention ----------------------------------------------------------------------- */

/* False and an error where an attribute that the standard has not is set. */
static bool attribute_usual(Lowering *n, const char *name, int64_t usual)
{
    int64_t v = attr_int(n, name, usual);
    if (v != usual)
        unsupported(n, "its attribute '%s' is %lld, only %lld is supported", name, (long long)v,
                    (long long)usual);
    return !n->failed;
}

ingot_tensor *onnx_ms_linear_attention(Lowering *n)
{
    return attribute_usual(n, "state_window", 0) ? onnx_linear_attention(n) : ingot_poison(n->c);
}

ingot_tensor *onnx_ms_causal_conv(Lowering *n)
{
    if (!attribute_usual(n, "state_window", 0) || !attribute_usual(n, "channels_last", 0) ||
        !attribute_usual(n, "dilation", 1) || !attribute_usual(n, "ndim", 1))
        return ingot_poison(n->c);
    return onnx_causal_conv(n);
}
