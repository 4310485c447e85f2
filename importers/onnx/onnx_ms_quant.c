/*
 * onnx_ms_quant.c - com.microsoft: operators on 8-bit numbers.
 *
 *     QLinear...               y = quantize(f(dequantize(a), dequantize(b)))
 *     QGemm                    y = quantize(alpha scale a scale b (A' B' + C)), or the number
 *                              itself
 *     DynamicQuantizeMatMul    A in 8 bits by its own range, then the product of integers
 *
 * Sums are of integers in i32; every value is rounded to 8 bits once.
 */
#include "onnx.h"

#define X n->in[0]

/* Value, scale and zero point (maybe left out) at inputs i, i + 1, i + 2. */
static ingot_tensor *dequantized_at(Lowering *n, int i)
{
    ingot_tensor *zero = optional_in(n, i + 2);
    return dequantized(n, n->in[i], reshape_scalar(n, n->in[i + 1]),
                       zero ? reshape_scalar(n, zero) : NULL);
}

/* With the scale and zero point (maybe left out) at inputs i, i + 1, in the type of x. */
static ingot_tensor *quantized_at(Lowering *n, ingot_tensor *y, int i, ingot_tensor *x)
{
    ingot_tensor *zero = optional_in(n, i + 1);
    if (ingot_is_poison(y))
        return y;
    return quantized(n, y, reshape_scalar(n, n->in[i]), zero ? reshape_scalar(n, zero) : NULL,
                     ingot_dtype_of(x));
}

/* ---- element by element --------------------------------------------------------------------- */

typedef ingot_tensor *BinaryFn(ingot_context *, ingot_tensor *, ingot_tensor *);

static ingot_tensor *binary(Lowering *n, BinaryFn *f)
{
    static const int needed[] = {3, 4, 6};
    if (!inputs_needed(n, 3, needed))
        return ingot_poison(n->c);
    return quantized_at(n, f(n->c, dequantized_at(n, 0), dequantized_at(n, 3)), 6, X);
}

ingot_tensor *onnx_ms_qlinear_add(Lowering *n)
{
    return binary(n, ingot_add);
}

ingot_tensor *onnx_ms_qlinear_mul(Lowering *n)
{
    return binary(n, ingot_mul);
}

ingot_tensor *onnx_ms_qlinear_leaky_relu(Lowering *n)
{
    static const int needed[] = {3};
    if (!inputs_needed(n, 1, needed))
        return ingot_poison(n->c);
    return quantized_at(
        n, ingot_leaky_relu(n->c, dequantized_at(n, 0), attr_float(n, "alpha", 0.01)), 3, X);
}

ingot_tensor *onnx_ms_qlinear_sigmoid(Lowering *n)
{
    static const int needed[] = {3};
    if (!inputs_needed(n, 1, needed))
        return ingot_poison(n->c);
    return quantized_at(n, ingot_sigmoid(n->c, dequantized_at(n, 0)), 3, X);
}

/* Along one axis since opset 13, over all axes from it on before. */
ingot_tensor *onnx_ms_qlinear_softmax(Lowering *n)
{
    static const int needed[] = {3};
    int axis, rank = ingot_rank(X);
    int64_t opset = attr_int(n, "opset", 13);
    ingot_dim *dims[INGOT_MAX_RANK];
    if (!inputs_needed(n, 1, needed) ||
        !axis_in(n, attr_int(n, "axis", opset < 13 ? 1 : -1), rank, &axis))
        return ingot_poison(n->c);
    ingot_tensor *x = dequantized_at(n, 0);
    if (ingot_is_poison(x))
        return x;
    shape_of(x, dims);
    x = ingot_softmax(n->c, opset < 13 ? ingot_flatten(n->c, x, axis, rank) : x, axis);
    return ingot_is_poison(x) ? x : quantized_at(n, ingot_reshape(n->c, x, rank, dims), 3, X);
}

ingot_tensor *onnx_ms_qlinear_where(Lowering *n)
{
    return quantized_at(n, ingot_where(n->c, X, dequantized_at(n, 1), dequantized_at(n, 4)), 7,
                        n->in[1]);
}

/* Inputs: scale and zero point of the result, then value, scale and zero point of each part. */
ingot_tensor *onnx_ms_qlinear_concat(Lowering *n)
{
    int axis, count = (n->n_in - 2) / 3;
    ingot_tensor **part = ingot_alloc(n->c, (size_t)(count + 1) * sizeof *part);
    if (count < 1 || n->n_in != 2 + 3 * count)
        return fault(n, "it has %d inputs, not 2 and 3 for each part", n->n_in);
    for (int i = 2; i < n->n_in; i++)
        if (!inputs_needed(n, 1, &i))
            return ingot_poison(n->c);
    if (!axis_in(n, attr_int(n, "axis", 0), ingot_rank(n->in[2]), &axis))
        return ingot_poison(n->c);
    for (int i = 0; i < count; i++)
        part[i] = quantized_at(n, dequantized_at(n, 2 + 3 * i), 0, n->in[1]);
    return ingot_concat(n->c, count, part, axis);
}

/* (A - zero) * (B - zero) in i32 */
ingot_tensor *onnx_ms_mul_integer(Lowering *n)
{
    ingot_tensor *x[2] = {X, n->in[2]};
    static const int needed[] = {2};
    if (!inputs_needed(n, 1, needed))
        return ingot_poison(n->c);
    for (int i = 0; i < 2; i++) {
        ingot_tensor *zero = optional_in(n, 1 + 2 * i);
        x[i] = as(n, x[i], INGOT_I32);
        if (zero)
            x[i] = ingot_sub(n->c, x[i], as(n, reshape_scalar(n, zero), INGOT_I32));
    }
    return ingot_mul(n->c, x[0], x[1]);
}

/* ---- sums over axes ------------------------------------------------------------------------- */

/* The mean over a set of axes, in f32: the sum of integers, times scale / count. */
static ingot_tensor *mean_of_integers(Lowering *n, unsigned axes, bool keep)
{
    ingot_tensor *x = as(n, X, INGOT_I32), *zero = optional_in(n, 2);
    ingot_dim *count = dim(n, 1);
    for (int a = 0; a < ingot_rank(X); a++)
        if (axes >> a & 1)
            count = ingot_dim_mul(n->c, count, ingot_shape(X, a));
    if (zero)
        x = ingot_sub(n->c, x, as(n, reshape_scalar(n, zero), INGOT_I32));
    ingot_tensor *sum = as(n, ingot_sum(n->c, x, axes, keep), INGOT_F32);
    ingot_tensor *scale = as(n, reshape_scalar(n, n->in[1]), INGOT_F32);
    return ingot_mul(n->c, sum,
                     ingot_div(n->c, scale, as(n, ingot_from_dim(n->c, count), INGOT_F32)));
}

ingot_tensor *onnx_ms_qlinear_global_average_pool(Lowering *n)
{
    static const int needed[] = {3};
    int rank = ingot_rank(X);
    bool last = attr_int(n, "channels_last", 0) != 0;
    if (!inputs_needed(n, 1, needed))
        return ingot_poison(n->c);
    if (rank < 3)
        return fault(n, "its input has rank %d, at least 3 is needed", rank);
    unsigned spatial = ((1u << (rank - 2)) - 1) << (last ? 1 : 2);
    return quantized_at(n, mean_of_integers(n, spatial, true), 3, X);
}

/* Axes that are left out are all of them. */
static bool read_axes(Lowering *n, unsigned *axes)
{
    const int64_t *list;
    int count = attr_ints(n, "axes", &list), rank = ingot_rank(X);
    *axes = (1u << rank) - 1;
    return count <= 0 ? !n->failed : axes_in(n, list, count, rank, axes);
}

ingot_tensor *onnx_ms_qlinear_reduce_mean(Lowering *n)
{
    static const int needed[] = {3};
    unsigned axes;
    if (!inputs_needed(n, 1, needed) || !read_axes(n, &axes))
        return ingot_poison(n->c);
    return quantized_at(n, mean_of_integers(n, axes, attr_int(n, "keepdims", 1) != 0), 3, X);
}

ingot_tensor *onnx_ms_reduce_sum_integer(Lowering *n)
{
    unsigned axes;
    if (!read_axes(n, &axes))
        return ingot_poison(n->c);
    ingot_tensor *x = as(n, X, ingot_dtype_of(X) == INGOT_U8 ? INGOT_U32 : INGOT_I32);
    return ingot_sum(n->c, x, axes, attr_int(n, "keepdims", 1) != 0);
}

/* ---- windows -------------------------------------------------------------------------------- */

ingot_tensor *onnx_ms_qlinear_average_pool(Lowering *n)
{
    static const int needed[] = {3};
    ingot_tensor *given = X;
    bool last = attr_int(n, "channels_last", 0) != 0;
    if (!inputs_needed(n, 1, needed))
        return ingot_poison(n->c);
    n->in[0] = dequantized_at(n, 0);
    n->in[0] = last && !ingot_is_poison(X) ? channels_first(n, X) : X;
    if (ingot_is_poison(X))
        return X;
    ingot_tensor *y = onnx_average_pool(n);
    return quantized_at(n, last ? channels_last(n, y) : y, 3, given);
}

ingot_tensor *onnx_ms_qlinear_conv(Lowering *n)
{
    if (!attr_int(n, "channels_last", 0))
        return onnx_qlinear_conv(n);
    n->in[0] = channels_first(n, X);
    return ingot_is_poison(X) ? X : channels_last(n, onnx_qlinear_conv(n));
}

/* ---- products ------------------------------------------------------------------------------- */

ingot_tensor *scalar_or_row(Lowering *n, ingot_tensor *p)
{
    return p && dim_is(ingot_numel(n->c, p), 1) ? reshape_scalar(n, p) : p;
}

/* ab scale a scale b + bias */
static ingot_tensor *scaled_product(Lowering *n, ingot_tensor *ab, ingot_tensor *scale_a,
                                    ingot_tensor *scale_b, ingot_tensor *bias)
{
    ingot_tensor *scale = ingot_mul(n->c, scalar_or_row(n, scale_a), scalar_or_row(n, scale_b));
    if (ingot_is_poison(scale))
        return scale;
    ingot_tensor *y = ingot_mul(n->c, as(n, ab, ingot_dtype_of(scale)), scale);
    return bias ? ingot_add(n->c, y, bias) : y;
}

ingot_tensor *onnx_ms_matmul_integer_to_float(Lowering *n)
{
    ingot_tensor *ab = integer_product(n, X, n->in[1], optional_in(n, 4), optional_in(n, 5));
    if (!dim_is(ingot_numel(n->c, n->in[2]), 1))
        return unsupported(n, "a scale of A with several entries is not supported");
    return scaled_product(n, ab, n->in[2], n->in[3], optional_in(n, 6));
}

ingot_tensor *onnx_ms_dynamic_quantize_matmul(Lowering *n)
{
    ingot_tensor *scale, *zero, *a = quantized_by_range(n, X, &scale, &zero);
    ingot_tensor *ab = integer_product(n, a, n->in[1], zero, optional_in(n, 3));
    return scaled_product(n, ab, scale, n->in[2], optional_in(n, 4));
}

ingot_tensor *onnx_ms_matmul_integer16(Lowering *n)
{
    return ingot_matmul(n->c, as(n, X, INGOT_I32), as(n, n->in[1], INGOT_I32));
}

ingot_tensor *onnx_ms_qgemm(Lowering *n)
{
    enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };
    ingot_tensor *a = n->in[A], *b = n->in[B], *c = optional_in(n, C),
                 *zero = optional_in(n, Y_ZERO);
    double alpha = attr_float(n, "alpha", 1);
    if (ingot_rank(a) != 2 || ingot_rank(b) != 2)
        return fault(n, "its matrices have ranks %d and %d, not 2", ingot_rank(a), ingot_rank(b));
    a = attr_int(n, "transA", 0) ? ingot_transpose(n->c, a, 0, 1) : a;
    b = attr_int(n, "transB", 0) ? ingot_transpose(n->c, b, 0, 1) : b;
    ingot_tensor *ab = integer_product(n, a, b, n->in[A_ZERO], n->in[B_ZERO]);
    if (c)
        ab = ingot_add(n->c, ab, as(n, c, INGOT_I32));
    ingot_tensor *scale =
        ingot_mul(n->c, scalar_or_row(n, n->in[A_SCALE]), scalar_or_row(n, n->in[B_SCALE]));
    if (ingot_is_poison(scale))
        return scale;
    scale = alpha == 1 ? scale : ingot_mul_c(n->c, scale, alpha);
    ingot_tensor *y = ingot_mul(n->c, as(n, ab, INGOT_F32), scale);
    return optional_in(n, Y_SCALE) ? quantized_at(n, y, Y_SCALE, zero ? zero : n->in[A]) : y;
}
