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

/* ---- products ------------------------------------------------------------------------------- */

ingot_tensor *onnx_matmul(Lowering *n)
{
    return ingot_matmul(n->c, X, Y);
}

/* alpha A' B' + beta C */
ingot_tensor *onnx_gemm(Lowering *n)
{
    double alpha = attr_float(n, "alpha", 1), beta = attr_float(n, "beta", 1);
    if (ingot_rank(X) != 2 || ingot_rank(Y) != 2)
        return fault(n, "its matrices have ranks %d and %d, not 2", ingot_rank(X), ingot_rank(Y));
    return ingot_gemm(n->c, X, Y, optional_in(n, 2), alpha, beta, attr_int(n, "transA", 0) != 0,
                      attr_int(n, "transB", 0) != 0);
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

ingot_tensor *integer_product(Lowering *n, ingot_tensor *a, ingot_tensor *b, ingot_tensor *zero_a,
                              ingot_tensor *zero_b)
{
    if (ingot_is_poison(a) || ingot_is_poison(b))
        return ingot_poison(n->c);
    int ra = ingot_rank(a), rb = ingot_rank(b);
    return ingot_matmul(n->c, centred(n, a, zero_a, ra > 1 ? ra - 2 : 0),
                        centred(n, b, zero_b, rb - 1));
}

ingot_tensor *onnx_matmul_integer(Lowering *n)
{
    return integer_product(n, X, Y, optional_in(n, 2), optional_in(n, 3));
}

/* ---- windows -------------------------------------------------------------------------------- */

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

static bool auto_pad_known(Lowering *n, const char *pad)
{
    if (strcmp(pad, "NOTSET") && strcmp(pad, "VALID") && strcmp(pad, "SAME_UPPER") &&
        strcmp(pad, "SAME_LOWER"))
        fault(n, "its attribute 'auto_pad' is '%.100s'", pad);
    return !n->failed;
}

bool window_read(Lowering *n, ingot_tensor *x, ingot_tensor *weight, Window *w)
{
    int64_t pads[2 * INGOT_MAX_RANK], size;
    const char *pad = attr_string(n, "auto_pad", "NOTSET");
    *w = (Window){.n = ingot_rank(x) - 2};
    if (!auto_pad_known(n, pad))
        return false;
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

bool window_fits(Lowering *n, ingot_tensor *x, const Window *w)
{
    for (int i = 0; i < w->n; i++) {
        int64_t size = ingot_dim_hi(ingot_shape(x, i + 2)),
                up = attr_int(n, "ceil_mode", 0) ? w->stride[i] - 1 : 0;
        if (size > INT32_MAX || size == 0 || size + w->lo[i] + w->hi[i] + up >= window_extent(w, i))
            continue;
        fault(n, "its window reaches over %lld elements of axis %d, its padded input has %lld",
              (long long)window_extent(w, i), i + 2, (long long)(size + w->lo[i] + w->hi[i]));
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

/* ---- convolutions --------------------------------------------------------------------------- */

ingot_tensor *onnx_conv(Lowering *n)
{
    Window w;
    if (!window_read(n, X, Y, &w) || !window_fits(n, X, &w))
        return ingot_poison(n->c);
    return ingot_conv(n->c, X, Y, optional_in(n, 2), w.stride, w.dilation, w.lo, w.hi,
                      attr_int(n, "group", 1));
}

ingot_tensor *onnx_conv_integer(Lowering *n)
{
    Window w;
    if (!window_read(n, X, Y, &w) || !window_fits(n, X, &w))
        return ingot_poison(n->c);
    return ingot_conv(n->c, centred(n, X, optional_in(n, 2), 1),
                      centred(n, Y, optional_in(n, 3), 0), NULL, w.stride, w.dilation, w.lo, w.hi,
                      attr_int(n, "group", 1));
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
    return ingot_conv_transpose(n->c, X, Y, optional_in(n, 2), w.stride, w.dilation, w.lo, w.hi,
                                out_pads, attr_int(n, "group", 1));
}

/* ---- pools ---------------------------------------------------------------------------------- */

ingot_tensor *onnx_average_pool(Lowering *n)
{
    Window w;
    int64_t more[INGOT_MAX_RANK];
    if (!window_read(n, X, NULL, &w) || !window_fits(n, X, &w) || !window_ceil(n, X, &w, more))
        return ingot_poison(n->c);
    return ingot_avg_pool_ceil(n->c, X, w.kernel, w.stride, w.dilation, w.lo, w.hi, more,
                               attr_int(n, "count_include_pad", 0) != 0);
}

/* Reads the window of a pool in which what ceil_mode adds is padding like any other. */
static bool pool_read(Lowering *n, Window *w)
{
    int64_t more[INGOT_MAX_RANK];
    if (!window_read(n, X, NULL, w) || !window_fits(n, X, w) || !window_ceil(n, X, w, more))
        return false;
    for (int i = 0; i < w->n; i++)
        w->hi[i] += more[i];
    return true;
}

ingot_tensor *onnx_max_pool(Lowering *n)
{
    Window w;
    if (!pool_read(n, &w))
        return ingot_poison(n->c);
    if (n->n_out > 1)
        n->out[1] = ingot_max_pool_indices(n->c, X, w.kernel, w.stride, w.dilation, w.lo, w.hi,
                                           attr_int(n, "storage_order", 0) != 0);
    return ingot_max_pool(n->c, X, w.kernel, w.stride, w.dilation, w.lo, w.hi);
}

ingot_tensor *onnx_lp_pool(Lowering *n)
{
    Window w;
    if (!pool_read(n, &w))
        return ingot_poison(n->c);
    return ingot_lp_pool(n->c, X, (double)attr_int(n, "p", 2), w.kernel, w.stride, w.dilation, w.lo,
                         w.hi);
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
    return ingot_lp_reduce(n->c, X, (double)attr_int(n, "p", 2), spatial_axes(n), true);
}

/* Zeros, with x at the places that a MaxPool told; a larger output_shape adds zeros behind. */
ingot_tensor *onnx_max_unpool(Lowering *n)
{
    Window w;
    ingot_dim *dims[INGOT_MAX_RANK], *lo[INGOT_MAX_RANK],
        *hi[INGOT_MAX_RANK], *const *given = NULL, *all = dim(n, 1);
    int64_t declared[INGOT_MAX_RANK];
    int rank = ingot_rank(X), out_rank;
    if (!window_read(n, X, NULL, &w))
        return ingot_poison(n->c);
    for (int a = 0; a < rank; a++) {
        dims[a] = ingot_shape(X, a);
        if (a >= 2) {
            ingot_dim *steps = ingot_dim_mul(n->c, ingot_dim_sub(n->c, dims[a], dim(n, 1)),
                                             dim(n, w.stride[a - 2]));
            int64_t rest = window_extent(&w, a - 2) - w.lo[a - 2] - w.hi[a - 2];
            dims[a] = ingot_dim_add(n->c, steps, dim(n, rest));
        }
        all = ingot_dim_mul(n->c, all, dims[a]);
    }
    ingot_tensor *zero = ingot_expand(n->c, like(n, X, 0), 1, &all),
                 *place = ingot_flatten(n->c, Y, 0, rank);
    ingot_tensor *y = ingot_update(n->c, INGOT_SET, zero, ingot_flatten(n->c, X, 0, rank), &place);
    y = ingot_reshape(n->c, y, rank, dims);
    if (!optional_in(n, 2))
        return y;
    bool known = ingot_contents(n->c, n->in[2], lo, rank) == rank;
    known = known || !declared_shape(n, 0, &out_rank, declared) || out_rank != rank;
    if (known && dims_in(n, 2, &given) != rank)
        return n->failed ? ingot_poison(n->c)
                         : fault(n, "its output_shape does not have %d entries", rank);
    for (int a = 0; a < rank; a++) {
        lo[a] = dim(n, 0);
        hi[a] = ingot_dim_sub(n->c, known ? given[a] : dim(n, declared[a]), dims[a]);
    }
    return ingot_pad(n->c, y, lo, hi);
}
