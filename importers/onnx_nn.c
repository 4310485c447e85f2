/*
 * onnx_nn.c - ONNX operators of networks: products, convolutions, pools. Windows (kernel, strides,
 * dilations, pads) are read and resolved here; the arithmetic is the op library's.
 */
#include <math.h>
#include <string.h>

#include "onnx.h"
#include "onnx_window.h"

#define X n->in[0]
#define Y n->in[1]

static ingot_tensor *optional_in(Lowering *n, int i)
{
    return i < n->n_in ? n->in[i] : NULL;
}

/* ---- products ----------------------------------------------------------------------------------- */

ingot_tensor *onnx_matmul(Lowering *n)
{
    return ingot_matmul(n->c, X, Y);
}

/* alpha A' B' + beta C */
ingot_tensor *onnx_gemm(Lowering *n)
{
    double alpha = attr_float(n, "alpha", 1), beta = attr_float(n, "beta", 1);
    ingot_tensor *c = optional_in(n, 2);
    if (ingot_rank(X) != 2 || ingot_rank(Y) != 2)
        return fault(n, "its matrices have ranks %d and %d, not 2", ingot_rank(X), ingot_rank(Y));
    ingot_tensor *a = attr_int(n, "transA", 0) ? ingot_transpose(n->c, X, 0, 1) : X;
    ingot_tensor *b = attr_int(n, "transB", 0) ? ingot_transpose(n->c, Y, 0, 1) : Y;
    ingot_tensor *y = ingot_matmul(n->c, a, b);
    if (alpha != 1)
        y = ingot_mul_c(n->c, y, alpha);
    if (!c || beta == 0)
        return y;
    return ingot_add(n->c, y, beta == 1 ? c : ingot_mul_c(n->c, c, beta));
}

ingot_tensor *onnx_einsum(Lowering *n)
{
    const char *equation = attr_string(n, "equation", NULL);
    if (!equation)
        return n->failed ? ingot_poison(n->c) : fault(n, "its equation is missing");
    return ingot_einsum(n->c, equation, n->n_in, n->in);
}

/* x - zero point, in i32 (the zero point by rows or columns, or one for all). */
static ingot_tensor *centred(Lowering *n, ingot_tensor *x, ingot_tensor *zero, int axis)
{
    ingot_tensor *y = as(n, x, INGOT_I32);
    if (!zero)
        return y;
    zero = as(n, zero, INGOT_I32);
    if (ingot_rank(zero) == 1 && ingot_rank(x) > 1 && !dim_is(ingot_shape(zero, 0), 1))
        zero = align_axis(n, zero, axis, ingot_rank(x));
    else if (dim_is(ingot_numel(n->c, zero), 1))
        zero = reshape_scalar(n, zero);
    return ingot_sub(n->c, y, zero);
}

ingot_tensor *onnx_matmul_integer(Lowering *n)
{
    int ra = ingot_rank(X), rb = ingot_rank(Y);
    return ingot_matmul(n->c, centred(n, X, optional_in(n, 2), ra > 1 ? ra - 2 : 0),
                        centred(n, Y, optional_in(n, 3), rb - 1));
}

/* ---- windows ------------------------------------------------------------------------------------- */

/* A list attribute with one entry a spatial axis, or all `otherwise`. */
static bool window_list(Lowering *n, const char *name, int count, int64_t otherwise, int64_t least,
                        int64_t *out)
{
    const int64_t *list;
    int have = attr_ints(n, name, &list);
    if (have >= 0 && have != count) {
        fault(n, "its attribute '%s' has %d entries, not %d", name, have, count);
        return false;
    }
    for (int i = 0; i < count; i++) {
        out[i] = have < 0 ? otherwise : list[i];
        if (out[i] < least || out[i] > INT32_MAX) {
            fault(n, "its attribute '%s' has the entry %lld", name, (long long)out[i]);
            return false;
        }
    }
    return !n->failed;
}

/* SAME: ceil(size / stride) results, the odd pad at the end (UPPER) or the beginning. */
static bool window_same(Lowering *n, Window *w, int i, ingot_dim *size, bool upper)
{
    int64_t total = window_extent(w, i) - 1, in;
    if (ingot_dim_is_const(size, &in)) {
        int64_t out = (in + w->stride[i] - 1) / w->stride[i];
        total = (out - 1) * w->stride[i] + window_extent(w, i) - in;
    } else if (w->stride[i] != 1) {
        unsupported(n, "auto_pad on a dim that is not known when compiling");
        return false;
    }
    total = total < 0 ? 0 : total;
    w->lo[i] = upper ? total / 2 : total - total / 2;
    w->hi[i] = total - w->lo[i];
    return true;
}

bool window_read(Lowering *n, ingot_tensor *x, ingot_tensor *weight, Window *w)
{
    int64_t pads[2 * INGOT_MAX_RANK], size;
    const char *pad = attr_string(n, "auto_pad", "NOTSET");
    *w = (Window){.n = ingot_rank(x) - 2};
    if (w->n < 1) {
        fault(n, "its input has rank %d, at least 3 is needed", ingot_rank(x));
        return false;
    }
    if (weight && ingot_rank(weight) != ingot_rank(x)) {
        fault(n, "its weights have rank %d, its input has %d", ingot_rank(weight), ingot_rank(x));
        return false;
    }
    if (!weight && !attr_has(n, "kernel_shape")) {
        fault(n, "its attribute 'kernel_shape' is missing");
        return false;
    }
    if (!window_list(n, "kernel_shape", w->n, 0, 0, w->kernel) ||
        !window_list(n, "strides", w->n, 1, 1, w->stride) ||
        !window_list(n, "dilations", w->n, 1, 1, w->dilation) ||
        !window_list(n, "pads", 2 * w->n, 0, weight ? -INT32_MAX : 0, pads))
        return false;
    for (int i = 0; i < w->n; i++) {
        if (weight && !ingot_dim_is_const(ingot_shape(weight, i + 2), &size)) {
            unsupported(n, "the size of its kernel is not known when compiling");
            return false;
        }
        if (weight && w->kernel[i] && w->kernel[i] != size) {
            fault(n, "its kernel_shape is not that of its weights");
            return false;
        }
        w->kernel[i] = weight ? size : w->kernel[i];
        if (w->kernel[i] < 1) {
            fault(n, "its kernel is empty");
            return false;
        }
        w->lo[i] = pads[i];
        w->hi[i] = pads[i + w->n];
        if (strcmp(pad, "VALID") == 0)
            w->lo[i] = w->hi[i] = 0;
        else if (strncmp(pad, "SAME_", 5) == 0 &&
                 !window_same(n, w, i, ingot_shape(x, i + 2), strcmp(pad, "SAME_UPPER") == 0))
            return false;
    }
    return true;
}

/* Rounding up makes one more result if its window starts inside the input or the pad before it. */
bool window_ceil(Lowering *n, ingot_tensor *x, const Window *w, int64_t *more)
{
    bool up = attr_int(n, "ceil_mode", 0) != 0;
    for (int i = 0; i < w->n; i++) {
        int64_t size;
        more[i] = 0;
        if (!up || w->stride[i] == 1)
            continue;
        if (!ingot_dim_is_const(ingot_shape(x, i + 2), &size)) {
            unsupported(n, "ceil_mode on a dim that is not known when compiling");
            return false;
        }
        int64_t span = size + w->lo[i] + w->hi[i] - window_extent(w, i);
        int64_t out = (span < 0 ? 0 : (span + w->stride[i] - 1) / w->stride[i]) + 1;
        if ((out - 1) * w->stride[i] >= size + w->lo[i])
            out--;
        int64_t need = (out - 1) * w->stride[i] - span;
        more[i] = need > 0 ? need : 0;
    }
    return true;
}

ingot_tensor *window_view(Lowering *n, ingot_tensor *x, const Window *w, const int64_t *more,
                          ingot_tensor *fill)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    for (int a = 0; a < ingot_rank(x); a++) {
        lo[a] = dim(n, a < 2 ? 0 : w->lo[a - 2]);
        hi[a] = dim(n, a < 2 ? 0 : w->hi[a - 2] + (more ? more[a - 2] : 0));
    }
    x = ingot_pad_value(n->c, x, lo, hi, fill);
    for (int i = 0; i < w->n; i++)
        x = ingot_window(n->c, x, i + 2, w->kernel[i], w->stride[i], w->dilation[i]);
    return x;
}

unsigned window_axes(const Window *w)
{
    return ((1u << w->n) - 1) << (w->n + 2);
}

/* ---- convolutions ---------------------------------------------------------------------------------- */

ingot_tensor *onnx_conv(Lowering *n)
{
    Window w;
    if (!window_read(n, X, Y, &w))
        return ingot_poison(n->c);
    return ingot_conv(n->c, X, Y, optional_in(n, 2), w.stride, w.dilation, w.lo, w.hi,
                      attr_int(n, "group", 1));
}

ingot_tensor *onnx_conv_integer(Lowering *n)
{
    Window w;
    if (!window_read(n, X, Y, &w))
        return ingot_poison(n->c);
    return ingot_conv(n->c, centred(n, X, optional_in(n, 2), 1), centred(n, Y, optional_in(n, 3), 0), NULL,
                      w.stride, w.dilation, w.lo, w.hi, attr_int(n, "group", 1));
}

/* output_shape, or SAME's size * stride, decides the pads. */
static bool transpose_pads(Lowering *n, Window *w, int64_t *out_pads)
{
    const int64_t *shape;
    int count = attr_ints(n, "output_shape", &shape);
    const char *pad = attr_string(n, "auto_pad", "NOTSET");
    bool same = strncmp(pad, "SAME_", 5) == 0;
    if (count < 0 && !same)
        return true;
    if (count >= 0 && count != w->n && count != w->n + 2) {
        fault(n, "its attribute 'output_shape' has %d entries", count);
        return false;
    }
    for (int i = 0; i < w->n; i++) {
        int64_t size, out;
        if (!ingot_dim_is_const(ingot_shape(X, i + 2), &size)) {
            unsupported(n, "output_shape or auto_pad on a dim that is not known when compiling");
            return false;
        }
        out = count >= 0 ? shape[i + count - w->n] : size * w->stride[i];
        int64_t total = (size - 1) * w->stride[i] + out_pads[i] + window_extent(w, i) - out;
        if (total < 0) {
            out_pads[i] -= total;
            total = 0;
        }
        w->lo[i] = strcmp(pad, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
        w->hi[i] = total - w->lo[i];
    }
    return true;
}

ingot_tensor *onnx_conv_transpose(Lowering *n)
{
    Window w;
    int64_t out_pads[INGOT_MAX_RANK];
    if (!window_read(n, X, Y, &w) || !window_list(n, "output_padding", w.n, 0, 0, out_pads) ||
        !transpose_pads(n, &w, out_pads))
        return ingot_poison(n->c);
    return ingot_conv_transpose(n->c, X, Y, optional_in(n, 2), w.stride, w.dilation, w.lo, w.hi, out_pads,
                                attr_int(n, "group", 1));
}

/* ---- pools ------------------------------------------------------------------------------------------ */

/* How many elements of each window along spatial axis i are inside: [1, .., out, .., 1]. */
static ingot_tensor *window_counts(Lowering *n, const Window *w, int i, int64_t size, int64_t more,
                                   bool pads, ingot_dtype dtype)
{
    int64_t from = pads ? -w->lo[i] : 0, to = size + (pads ? w->hi[i] : 0);
    int64_t out = (size + w->lo[i] + w->hi[i] + more - window_extent(w, i)) / w->stride[i] + 1;
    double *count = ingot_alloc(n->c, (size_t)(out > 0 ? out : 1) * sizeof *count);
    for (int64_t o = 0; o < out; o++)
        for (int64_t k = 0; k < w->kernel[i]; k++) {
            int64_t at = o * w->stride[i] - w->lo[i] + k * w->dilation[i];
            count[o] += at >= from && at < to;
        }
    out = out < 0 ? 0 : out;
    return align_axis(n, const_f64(n, dtype, 1, &out, count), i + 2, w->n + 2);
}

ingot_tensor *onnx_average_pool(Lowering *n)
{
    Window w;
    int64_t more[INGOT_MAX_RANK], size;
    bool pads = attr_int(n, "count_include_pad", 0) != 0;
    if (!window_read(n, X, NULL, &w) || !window_ceil(n, X, &w, more))
        return ingot_poison(n->c);
    ingot_tensor *x = widen(n, X), *count = NULL;
    ingot_tensor *sum = ingot_sum(n->c, window_view(n, x, &w, more, like(n, x, 0)), window_axes(&w), false);
    double whole = 1;
    for (int i = 0; i < w.n; i++) {
        if (!(more[i] || (!pads && (w.lo[i] || w.hi[i])))) {
            whole *= (double)w.kernel[i];
            continue;
        }
        if (!ingot_dim_is_const(ingot_shape(X, i + 2), &size))
            return unsupported(n, "an average over padded dims that are not known when compiling");
        ingot_tensor *c = window_counts(n, &w, i, size, more[i], pads, ingot_dtype_of(x));
        count = count ? ingot_mul(n->c, count, c) : c;
    }
    if (whole != 1 || !count)
        count = count ? ingot_mul_c(n->c, count, whole) : like(n, x, whole);
    return as(n, ingot_div(n->c, sum, count), ingot_dtype_of(X));
}

static ingot_tensor *lowest(Lowering *n, ingot_dtype dtype)
{
    switch (dtype) {
    case INGOT_I8: return ingot_scalar_i(n->c, dtype, INT8_MIN);
    case INGOT_I16: return ingot_scalar_i(n->c, dtype, INT16_MIN);
    case INGOT_I32: return ingot_scalar_i(n->c, dtype, INT32_MIN);
    case INGOT_I64: return ingot_scalar_i(n->c, dtype, INT64_MIN);
    case INGOT_U8: case INGOT_U16: case INGOT_U32: case INGOT_U64: case INGOT_BOOL:
        return ingot_scalar_i(n->c, dtype, 0);
    default: return ingot_scalar_f(n->c, dtype, -INFINITY);
    }
}

/* Each element's place in x, row-major. */
static ingot_tensor *flat_places(Lowering *n, ingot_tensor *x)
{
    ingot_dim *dims[INGOT_MAX_RANK], *all = ingot_numel(n->c, x);
    int rank = ingot_rank(x);
    shape_of(x, dims);
    return ingot_reshape(n->c, ingot_iota(n->c, 1, &all, 0), rank, dims);
}

/* Row-major places inside the last w->n axes as column-major ones. */
static ingot_tensor *column_major(Lowering *n, ingot_tensor *place, ingot_tensor *x, const Window *w)
{
    ingot_dim *plane = dim(n, 1);
    for (int i = 0; i < w->n; i++)
        plane = ingot_dim_mul(n->c, plane, ingot_shape(x, i + 2));
    ingot_tensor *size = ingot_from_dim(n->c, plane), *rest = ingot_mod(n->c, place, size);
    ingot_tensor *y = ingot_sub(n->c, place, rest);
    for (int i = w->n - 1; i >= 0; i--) {
        ingot_dim *before = dim(n, 1), *d = ingot_shape(x, i + 2);
        for (int k = 0; k < i; k++)
            before = ingot_dim_mul(n->c, before, ingot_shape(x, k + 2));
        ingot_tensor *at = ingot_mod(n->c, rest, ingot_from_dim(n->c, d));
        rest = ingot_div(n->c, rest, ingot_from_dim(n->c, d));
        y = ingot_add(n->c, y, ingot_mul(n->c, at, ingot_from_dim(n->c, before)));
    }
    return y;
}

ingot_tensor *onnx_max_pool(Lowering *n)
{
    Window w;
    int64_t more[INGOT_MAX_RANK];
    if (!window_read(n, X, NULL, &w) || !window_ceil(n, X, &w, more))
        return ingot_poison(n->c);
    ingot_tensor *fill = lowest(n, ingot_dtype_of(X));
    ingot_tensor *view = window_view(n, X, &w, more, fill);
    ingot_tensor *y = ingot_reduce(n->c, INGOT_REDUCE_MAX, view, window_axes(&w), false);
    if (n->n_out < 2)
        return y;
    /* the least place in the window whose value is the greatest */
    ingot_tensor *far = ingot_scalar_i(n->c, INGOT_I64, INT64_MAX);
    ingot_tensor *place = window_view(n, flat_places(n, X), &w, more, far);
    ingot_tensor *top = ingot_reduce(n->c, INGOT_REDUCE_MAX, view, window_axes(&w), true);
    ingot_tensor *hit = ingot_where(n->c, ingot_eq(n->c, view, top), place, far);
    n->out[1] = ingot_reduce(n->c, INGOT_REDUCE_MIN, hit, window_axes(&w), false);
    if (attr_int(n, "storage_order", 0))
        n->out[1] = column_major(n, n->out[1], X, &w);
    return y;
}

/* (sum |x|^p)^(1/p) */
static ingot_tensor *p_norm(Lowering *n, ingot_tensor *x, int64_t p, unsigned axes, bool keep)
{
    ingot_tensor *a = ingot_abs(n->c, x);
    if (p == 1)
        return ingot_sum(n->c, a, axes, keep);
    if (p == 2)
        return ingot_sqrt(n->c, ingot_sum(n->c, ingot_mul(n->c, x, x), axes, keep));
    ingot_tensor *sum = ingot_sum(n->c, ingot_pow(n->c, a, like(n, x, (double)p)), axes, keep);
    return ingot_pow(n->c, sum, like(n, x, 1.0 / (double)p));
}

ingot_tensor *onnx_lp_pool(Lowering *n)
{
    Window w;
    int64_t more[INGOT_MAX_RANK];
    if (!window_read(n, X, NULL, &w) || !window_ceil(n, X, &w, more))
        return ingot_poison(n->c);
    return p_norm(n, window_view(n, X, &w, more, like(n, X, 0)), attr_int(n, "p", 2), window_axes(&w), false);
}

static unsigned spatial_axes(Lowering *n)
{
    return ((1u << ingot_rank(X)) - 1) & ~3u;
}

ingot_tensor *onnx_global_average_pool(Lowering *n)
{
    return ingot_mean(n->c, X, spatial_axes(n), true);
}

ingot_tensor *onnx_global_max_pool(Lowering *n)
{
    return ingot_reduce(n->c, INGOT_REDUCE_MAX, X, spatial_axes(n), true);
}

ingot_tensor *onnx_global_lp_pool(Lowering *n)
{
    return p_norm(n, X, attr_int(n, "p", 2), spatial_axes(n), true);
}

/* x / |x|_p along an axis; 0 where the norm is 0 */
ingot_tensor *onnx_lp_normalization(Lowering *n)
{
    int axis;
    if (!axis_in(n, attr_int(n, "axis", -1), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    ingot_tensor *norm = p_norm(n, X, attr_int(n, "p", 2), 1u << axis, true);
    ingot_tensor *zero = ingot_eq(n->c, norm, like(n, norm, 0));
    return ingot_where(n->c, zero, like(n, X, 0), ingot_div(n->c, X, norm));
}

/* Zeros, with x at the places that a MaxPool told; a larger output_shape adds zeros behind. */
ingot_tensor *onnx_max_unpool(Lowering *n)
{
    Window w;
    ingot_dim *dims[INGOT_MAX_RANK], *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK], *const *given = NULL, *all = dim(n, 1);
    int64_t declared[INGOT_MAX_RANK];
    int rank = ingot_rank(X), out_rank;
    if (!window_read(n, X, NULL, &w))
        return ingot_poison(n->c);
    for (int a = 0; a < rank; a++) {
        dims[a] = ingot_shape(X, a);
        if (a >= 2) {
            ingot_dim *steps = ingot_dim_mul(n->c, ingot_dim_sub(n->c, dims[a], dim(n, 1)), dim(n, w.stride[a - 2]));
            int64_t rest = window_extent(&w, a - 2) - w.lo[a - 2] - w.hi[a - 2];
            dims[a] = ingot_dim_add(n->c, steps, dim(n, rest));
        }
        all = ingot_dim_mul(n->c, all, dims[a]);
    }
    ingot_tensor *zero = ingot_expand(n->c, like(n, X, 0), 1, &all), *place = ingot_flatten(n->c, Y, 0, rank);
    ingot_tensor *y = ingot_update(n->c, INGOT_SET, zero, ingot_flatten(n->c, X, 0, rank), &place);
    y = ingot_reshape(n->c, y, rank, dims);
    if (!optional_in(n, 2))
        return y;
    bool known = ingot_contents(n->c, n->in[2], lo, rank) == rank;
    known = known || !declared_shape(n, 0, &out_rank, declared) || out_rank != rank;
    if (known && dims_in(n, 2, &given) != rank)
        return n->failed ? ingot_poison(n->c) : fault(n, "its output_shape does not have %d entries", rank);
    for (int a = 0; a < rank; a++) {
        lo[a] = dim(n, 0);
        hi[a] = ingot_dim_sub(n->c, known ? given[a] : dim(n, declared[a]), dims[a]);
    }
    return ingot_pad(n->c, y, lo, hi);
}
