/*
 * onnx_quant.c - ONNX operators on quantized numbers: QuantizeLinear and its inverse,
 * QLinearMatMul and QLinearConv.
 *
 *     quantize:    y = saturate(round(x / scale) + zero point), halves to even; the type's least
 *                  number of a NaN
 *     dequantize:  x = (y - zero point) * scale
 *
 * Zero points are subtracted in i32 and products accumulate in i32, so no integer is ever rounded;
 * padding comes after the subtraction and therefore stands for a true zero.
 */
#include <string.h>

#include "onnx.h"
#include "onnx_window.h"

#define X n->in[0]

static ingot_tensor *input(Lowering *n, int i)
{
    return i < n->n_in ? n->in[i] : NULL;
}

/* The least and greatest number of an integer type of up to 16 bits; false for other types. */
static bool int_range(ingot_dtype dtype, double *lo, double *hi)
{
    static const struct {
        ingot_dtype dtype;
        double lo, hi;
    } table[] = {
        {INGOT_U8, 0, 255},         {INGOT_I8, -128, 127}, {INGOT_U16, 0, 65535},
        {INGOT_I16, -32768, 32767}, {INGOT_U4, 0, 15},     {INGOT_I4, -8, 7},
        {INGOT_U2, 0, 3},           {INGOT_I2, -2, 1},
    };
    for (int i = 0; i < COUNT(table); i++)
        if (table[i].dtype == dtype) {
            *lo = table[i].lo;
            *hi = table[i].hi;
            return true;
        }
    return false;
}

/* saturate(round(x) + zero); x is f32 or wider, zero is NULL or of the type `to`. */
static ingot_tensor *round_to(Lowering *n, ingot_tensor *x, ingot_tensor *zero, ingot_dtype to)
{
    double lo, hi;
    if (!int_range(to, &lo, &hi))
        return unsupported(n, "quantizing to %s is not supported", ingot_dtype_name(to));
    x = ingot_round(n->c, x);
    if (zero)
        x = ingot_add(n->c, x, as(n, zero, ingot_dtype_of(x)));
    return ingot_cast_least(n->c, ingot_clamp(n->c, x, lo, hi), to);
}

ingot_tensor *rounded_to_integer(Lowering *n, ingot_tensor *x, ingot_dtype to)
{
    double lo = 0, hi;
    x = ingot_round(n->c, x);
    if (to == INGOT_I32 || to == INGOT_I64) /* these casts saturate */
        return ingot_cast(n->c, x, to);
    if (!int_range(to, &lo, &hi)) /* the last f64 before 2^64 */
        hi = to == INGOT_U32 ? 4294967295.0 : to == INGOT_U64 ? 0x1.fffffffffffffp63 : 1;
    return ingot_cast(n->c, ingot_clamp(n->c, x, lo, hi), to);
}

/* ---- scales and zero points ------------------------------------------------------------------ */

ingot_tensor *spread_blocks(Lowering *n, ingot_tensor *p, ingot_tensor *x, int axis, int64_t block)
{
    int rank = ingot_rank(x);
    ingot_dim *dims[INGOT_MAX_RANK + 1], *begin[INGOT_MAX_RANK];
    if (ingot_rank(p) != rank)
        return fault(n, "scales of blocks need rank %d, not %d", rank, ingot_rank(p));
    if (rank == INGOT_MAX_RANK)
        return unsupported(n, "scales of blocks at rank %d are not supported", rank);
    for (int a = 0; a <= rank; a++)
        dims[a] = a <= axis       ? ingot_shape(p, a)
                  : a == axis + 1 ? dim(n, block)
                                  : ingot_shape(p, a - 1);
    p = ingot_expand(n->c, ingot_unsqueeze(n->c, p, axis + 1), rank + 1, dims);
    p = ingot_flatten(n->c, p, axis, axis + 2);
    for (int a = 0; a < rank; a++) {
        begin[a] = dim(n, 0);
        dims[a] = a == axis ? ingot_shape(x, a) : ingot_shape(p, a);
    }
    return ingot_is_poison(p) ? p : ingot_shrink(n->c, p, begin, dims);
}

static bool is_one_number(ingot_tensor *p)
{
    return ingot_rank(p) == 0 || (ingot_rank(p) == 1 && dim_is(ingot_shape(p, 0), 1));
}

/* A zero point; NULL: it is zero. Those of float8 are so by the specification. */
static ingot_tensor *zero_point(ingot_tensor *zero)
{
    return zero && is_float(zero) && ingot_dtype_of(zero) != INGOT_F4E2M1 ? NULL : zero;
}

/* A scale or zero point in a shape that broadcasts to x. */
static ingot_tensor *spread(Lowering *n, ingot_tensor *p, ingot_tensor *x)
{
    int axis, rank = ingot_rank(x);
    int64_t block = n->version >= 21 ? attr_int(n, "block_size", 0) : 0;
    int64_t given = attr_int(n, "axis", 1);
    if (!p)
        return NULL;
    if (is_one_number(p))
        return reshape_scalar(n, p);
    if (block < 0)
        return fault(n, "its attribute 'block_size' is negative");
    if (!axis_in(n, given, rank, &axis))
        return ingot_poison(n->c);
    if (block)
        return spread_blocks(n, p, x, axis, block);
    if (ingot_rank(p) != 1)
        return fault(n, "its scale has rank %d; without blocks it may be 0 or 1", ingot_rank(p));
    return align_axis(n, p, axis, rank);
}

/* An element type given by an attribute, 0 meaning `otherwise`. False after an error. */
static bool dtype_attr(Lowering *n, const char *name, ingot_dtype otherwise, ingot_dtype *out)
{
    int64_t v = attr_int(n, name, 0);
    *out = otherwise;
    if (v == 0 || (v > 0 && v <= INT32_MAX && ingot_onnx_dtype((int32_t)v, out)))
        return true;
    fault(n, "its attribute '%s' is no element type", name);
    return false;
}

ingot_tensor *onnx_quantize_linear(Lowering *n)
{
    ingot_tensor *zero = input(n, 2), *scale = n->in[1];
    ingot_dtype to, narrow = ingot_dtype_of(scale), precision;
    if (n->version < 23 || (narrow != INGOT_F16 && narrow != INGOT_BF16))
        narrow = INGOT_F32; /* before opset 23 nothing is said about the division's precision */
    if (!dtype_attr(n, "output_dtype", zero ? ingot_dtype_of(zero) : INGOT_U8, &to) ||
        !dtype_attr(n, "precision", narrow, &precision))
        return ingot_poison(n->c);
    if (zero && to != ingot_dtype_of(zero))
        return fault(n, "its output is %s, but its zero point %s", ingot_dtype_name(to),
                     ingot_dtype_name(ingot_dtype_of(zero)));
    bool saturate = attr_int(n, "saturate", 1) != 0;
    zero = spread(n, zero, X);
    scale = spread(n, scale, X);
    if (n->failed)
        return ingot_poison(n->c);
    ingot_tensor *y = ingot_div(n->c, as(n, X, precision), as(n, scale, precision));
    y = widen(n, y);
    double lo, hi;
    if (int_range(to, &lo, &hi))
        return round_to(n, y, zero, to);
    if (zero_point(zero))
        y = ingot_add(n->c, y, as(n, zero, ingot_dtype_of(y)));
    return saturate ? ingot_cast(n->c, y, to) : ingot_cast_wrap(n->c, y, to);
}

ingot_tensor *quantized(Lowering *n, ingot_tensor *x, ingot_tensor *scale, ingot_tensor *zero,
                        ingot_dtype to)
{
    x = as(n, x, INGOT_F32);
    return round_to(n, ingot_div(n->c, x, as(n, scale, INGOT_F32)), zero, to);
}

ingot_tensor *dequantized(Lowering *n, ingot_tensor *x, ingot_tensor *scale, ingot_tensor *zero)
{
    if (!is_float(x)) {
        x = as(n, x, INGOT_I32);
        x = zero ? ingot_sub(n->c, x, as(n, zero, INGOT_I32)) : x;
    }
    return ingot_mul(n->c, as(n, x, INGOT_F32), as(n, scale, INGOT_F32));
}

static bool same_input(const Onnx__NodeProto *a, const Onnx__NodeProto *b, size_t i)
{
    const bool in_a = i < a->n_input, in_b = i < b->n_input;
    return !strcmp(in_a ? a->input[i] : "", in_b ? b->input[i] : "");
}

/* Of the scales of a DequantizeLinear, for integers of this rank. */
static int64_t scales_axis(const Onnx__NodeProto *p, int rank)
{
    const int64_t axis = int_attribute(p, "axis", 1);
    return axis < 0 ? axis + rank : axis;
}

/* The node reads integers as those before it do: each with the same scale and zero point. */
static bool reads_alike(Lowering *n)
{
    const Onnx__NodeProto *p = n->proto, *first = names_get(&n->model->integers, p->input[0]);
    if (!first)
        names_put(n->c, &n->model->integers, p->input[0], (void *)(uintptr_t)p);
    if (!first || first == p)
        return true;
    const int rank = ingot_rank(X);
    return same_input(first, p, 1) && same_input(first, p, 2) &&
           (is_one_number(n->in[1]) ||
            (scales_axis(first, rank) == scales_axis(p, rank) &&
             int_attribute(first, "block_size", 0) == int_attribute(p, "block_size", 0)));
}

/* Integers of the file as a weight that is trained: floats, rounded again. x, if they are none. */
static ingot_tensor *trained_integers(Lowering *n, ingot_tensor *x, ingot_tensor *scale,
                                      ingot_tensor *zero)
{
    const ingot_model_training *training = n->model->options ? n->model->options->training : NULL;
    if (!training || !training->quantised || !onnx_integer_weight_type(ingot_dtype_of(x)) ||
        ingot_dtype_of(n->in[1]) != INGOT_F32 || !is_main_initializer(n, 0) ||
        !is_main_initializer(n, 1) || (input(n, 2) && !is_main_initializer(n, 2)))
        return x;
    ingot_tensor *data = ingot_contiguous(n->c, dequantized(n, x, scale, zero));
    const ingot_model_weight w = {.name = n->proto->input[0], .integers = true};
    ingot_tensor *t = training->weight(training->user, &w, data);
    if (t == data || ingot_is_poison(t))
        return t == data ? x : t;
    if (!reads_alike(n))
        return unsupported(n,
                           "'%s' has another scale here than elsewhere: as one weight it cannot "
                           "be trained; --frozen '%s'",
                           w.name, w.name);
    t = ingot_div(n->c, t, as(n, scale, INGOT_F32));
    return ingot_dtype_of(x) == INGOT_I32 ? rounded_to_integer(n, t, INGOT_I32)
                                          : round_to(n, t, zero, ingot_dtype_of(x));
}

ingot_tensor *onnx_dequantize_linear(Lowering *n)
{
    ingot_tensor *scale = n->in[1], *zero = input(n, 2), *x = X;
    ingot_dtype to;
    if (!dtype_attr(n, "output_dtype", ingot_dtype_of(scale), &to))
        return ingot_poison(n->c);
    zero = zero_point(spread(n, zero, X));
    scale = spread(n, scale, X);
    x = n->failed ? x : trained_integers(n, x, scale, zero);
    if (n->failed)
        return ingot_poison(n->c);
    if (!is_float(x)) {
        x = as(n, x, INGOT_I32);
        if (zero)
            x = ingot_sub(n->c, x, as(n, zero, INGOT_I32));
        zero = NULL;
    }
    x = as(n, x, INGOT_F32);
    if (zero)
        x = ingot_sub(n->c, x, as(n, zero, INGOT_F32));
    return as(n, ingot_mul(n->c, x, as(n, scale, INGOT_F32)), to);
}

/* scale = (max(0, x) - min(0, x)) / 255, zero point = saturate(round(-min / scale)) */
ingot_tensor *quantized_by_range(Lowering *n, ingot_tensor *x, ingot_tensor **scale,
                                 ingot_tensor **zero)
{
    *scale = *zero = ingot_poison(n->c);
    if (ingot_is_poison(x))
        return x;
    unsigned all = (1u << ingot_rank(x)) - 1;
    ingot_tensor *most = ingot_reduce(n->c, INGOT_REDUCE_MAX, x, all, false);
    ingot_tensor *least = ingot_reduce(n->c, INGOT_REDUCE_MIN, x, all, false);
    most = ingot_max_c(n->c, most, 0);
    least = ingot_min_c(n->c, least, 0);
    ingot_tensor *same = ingot_eq(n->c, most, least);
    *scale = ingot_div(n->c, ingot_sub(n->c, most, least), like(n, x, 255));
    *scale = ingot_where(n->c, same, like(n, x, 1), *scale);
    *zero = ingot_div(n->c, ingot_neg(n->c, least), *scale);
    *zero = ingot_contiguous(n->c, round_to(n, *zero, NULL, INGOT_U8));
    *scale = ingot_contiguous(n->c, *scale);
    return round_to(n, ingot_div(n->c, x, *scale), *zero, INGOT_U8);
}

ingot_tensor *onnx_dynamic_quantize_linear(Lowering *n)
{
    return quantized_by_range(n, X, &n->out[1], &n->out[2]);
}

/* ---- products -------------------------------------------------------------------------------- */

/* x - zero in i32 (f32 for float8); zero may be NULL and broadcasts to x. */
static ingot_tensor *centered(Lowering *n, ingot_tensor *x, ingot_tensor *zero)
{
    ingot_dtype wide = is_float(x) ? INGOT_F32 : INGOT_I32;
    x = as(n, x, wide);
    zero = zero_point(zero);
    return zero ? ingot_sub(n->c, x, as(n, zero, wide)) : x;
}

/* A scale or zero point of a matmul operand: a number, a vector over its rows (its columns for the
 * second operand), or already in a shape that broadcasts. */
static ingot_tensor *along(Lowering *n, ingot_tensor *p, bool rows)
{
    if (!p || ingot_rank(p) != 1)
        return p;
    if (dim_is(ingot_shape(p, 0), 1))
        return reshape_scalar(n, p);
    return rows ? ingot_unsqueeze(n->c, p, 1) : p;
}

/* y = quantize((scale a * scale b / scale y) * ab) */
static ingot_tensor *requantize(Lowering *n, ingot_tensor *ab, ingot_tensor *scale_a,
                                ingot_tensor *scale_b, ingot_tensor *scale_y, ingot_tensor *zero_y)
{
    ingot_tensor *scale = ingot_mul(n->c, as(n, scale_a, INGOT_F32), as(n, scale_b, INGOT_F32));
    scale = ingot_div(n->c, scale, as(n, scale_y, INGOT_F32));
    ingot_tensor *y = ingot_mul(n->c, as(n, ab, INGOT_F32), scale);
    ingot_dtype to = ingot_dtype_of(zero_y);
    return is_float(zero_y) ? ingot_cast(n->c, y, to) : round_to(n, y, zero_y, to);
}

ingot_tensor *onnx_qlinear_matmul(Lowering *n)
{
    ingot_tensor *a = centered(n, X, along(n, n->in[2], true));
    ingot_tensor *b = centered(n, n->in[3], along(n, n->in[5], false));
    if (is_float(a) || is_float(b)) { /* one of them may have float8 */
        a = as(n, a, INGOT_F32);
        b = as(n, b, INGOT_F32);
    }
    return requantize(n, ingot_matmul(n->c, a, b), along(n, n->in[1], true),
                      along(n, n->in[4], false), along(n, n->in[6], true),
                      along(n, n->in[7], true));
}

/* A number, or one entry an output channel, which is axis `axis` of `rank`. */
static ingot_tensor *per_channel(Lowering *n, ingot_tensor *p, int axis, int rank)
{
    if (!p)
        return NULL;
    if (ingot_rank(p) == 1 && !dim_is(ingot_shape(p, 0), 1))
        return align_axis(n, p, axis, rank);
    return reshape_scalar(n, p);
}

ingot_tensor *onnx_qlinear_conv(Lowering *n)
{
    int rank = ingot_rank(X);
    ingot_tensor *w = n->in[3];
    Window win;
    if (!window_read(n, X, w, &win) || !window_fits(n, X, &win))
        return ingot_poison(n->c);
    ingot_tensor *x = centered(n, X, per_channel(n, n->in[2], 1, rank));
    x = window_pad(n, x, &win, 0);
    w = centered(n, w, per_channel(n, n->in[5], 0, rank));
    ingot_tensor *y = ingot_conv(n->c, x, w, input(n, 8), win.stride, win.dilation, win.lo, win.hi,
                                 attr_int(n, "group", 1));
    if (ingot_is_poison(y))
        return y;
    return requantize(n, y, reshape_scalar(n, n->in[1]), per_channel(n, n->in[4], 1, rank),
                      reshape_scalar(n, n->in[6]), reshape_scalar(n, n->in[7]));
}
