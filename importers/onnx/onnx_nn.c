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
    bool ta = attr_int(n, "transA", 0) != 0, tb = attr_int(n, "transB", 0) != 0;
    ingot_tensor *c = optional_in(n, 2);
    if (is_float(X) || (alpha == trunc(alpha) && beta == trunc(beta)))
        return ingot_gemm(n->c, X, Y, c, alpha, beta, ta, tb);
    /* of integers the sum, not each of its numbers, is cut to an integer */
    ingot_tensor *y = as(n, ingot_gemm(n->c, X, Y, NULL, 1, 0, ta, tb), INGOT_F64);
    y = ingot_mul_c(n->c, y, alpha);
    if (c && beta != 0)
        y = ingot_add(n->c, y, ingot_mul_c(n->c, as(n, c, INGOT_F64), beta));
    return as(n, y, ingot_dtype_of(X));
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

/* SAME: ceil(size / stride) results, the odd pad at the end (UPPER) or the beginning. The last
 * window begins at the last multiple of the stride before the end, so what it needs behind it is
 * extent - 1 - (size - 1) % stride. */
static void window_same(Lowering *n, Window *w, int i, ingot_dim *size, bool upper)
{
    ingot_dim *last =
        ingot_dim_mod(n->c, ingot_dim_sub(n->c, size, dim(n, 1)), dim(n, w->stride[i]));
    ingot_dim *total =
        ingot_dim_max(n->c, ingot_dim_sub(n->c, dim(n, window_extent(w, i) - 1), last), dim(n, 0));
    ingot_dim *less = ingot_dim_div(n->c, total, dim(n, 2)),
              *rest = ingot_dim_sub(n->c, total, less);
    ingot_dim *lo = upper ? less : rest, *hi = upper ? rest : less;
    w->lo[i] = w->hi[i] = 0;
    if (ingot_dim_is_const(lo, &w->lo[i]) && ingot_dim_is_const(hi, &w->hi[i]))
        return;
    w->lo[i] = 0;
    w->run_lo[i] = lo;
    w->run_hi[i] = hi;
    w->run = true;
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
    if (!attr_each(n, "kernel_shape", w->n, 0, 0, w->kernel) ||
        !attr_each(n, "strides", w->n, 1, 1, w->stride) ||
        !attr_each(n, "dilations", w->n, 1, 1, w->dilation) ||
        !attr_each(n, "pads", 2 * w->n, 0, weight ? -INT32_MAX : 0, pads))
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
        w->run_lo[i] = w->run_hi[i] = dim(n, 0);
        if (strcmp(pad, "VALID") == 0)
            w->lo[i] = w->hi[i] = 0;
        else if (strncmp(pad, "SAME_", 5) == 0)
            window_same(n, w, i, ingot_shape(x, i + 2), strcmp(pad, "SAME_UPPER") == 0);
    }
    return true;
}

bool window_fits(Lowering *n, ingot_tensor *x, const Window *w)
{
    for (int i = 0; i < w->n; i++) {
        int64_t size = ingot_dim_hi(ingot_shape(x, i + 2)),
                up = attr_int(n, "ceil_mode", 0) ? w->stride[i] - 1 : 0;
        int64_t pads =
            w->lo[i] + w->hi[i] + ingot_dim_hi(w->run_lo[i]) + ingot_dim_hi(w->run_hi[i]);
        if (size > INT32_MAX || size == 0 || size + pads + up >= window_extent(w, i))
            continue;
        fault(n, "its window reaches over %lld elements of axis %d, its padded input has %lld",
              (long long)window_extent(w, i), i + 2, (long long)(size + pads));
        return false;
    }
    return true;
}

/* Rounding up makes one more result if its window starts inside the input or the pad before it. */
void window_ceil(Lowering *n, ingot_tensor *x, const Window *w, int64_t *more, ingot_dim **run_more)
{
    bool up = attr_int(n, "ceil_mode", 0) != 0;
    for (int i = 0; i < w->n; i++) {
        ingot_dim *zero = dim(n, 0), *one = dim(n, 1), *stride = dim(n, w->stride[i]);
        more[i] = 0;
        run_more[i] = zero;
        if (!up || w->stride[i] == 1)
            continue;
        ingot_dim *begin = ingot_dim_add(
            n->c, ingot_dim_add(n->c, ingot_shape(x, i + 2), dim(n, w->lo[i])), w->run_lo[i]);
        ingot_dim *all =
            ingot_dim_add(n->c, ingot_dim_add(n->c, begin, dim(n, w->hi[i])), w->run_hi[i]);
        ingot_dim *span = ingot_dim_sub(n->c, all, dim(n, window_extent(w, i)));
        ingot_dim *need = ingot_dim_mod(n->c, ingot_dim_sub(n->c, zero, span), stride);
        if (ingot_dim_lo(span) < 0 ||
            w->hi[i] + ingot_dim_hi(w->run_hi[i]) > window_extent(w, i) - w->stride[i]) {
            /* the last window's number: rounded up, or that of the last to start before `begin`
             * ends */
            ingot_dim *rest =
                ingot_dim_add(n->c, ingot_dim_max(n->c, span, zero), dim(n, w->stride[i] - 1));
            ingot_dim *last = ingot_dim_div(n->c, ingot_dim_sub(n->c, begin, one), stride);
            last = ingot_dim_min(n->c, ingot_dim_div(n->c, rest, stride), last);
            need = ingot_dim_max(n->c, ingot_dim_sub(n->c, ingot_dim_mul(n->c, last, stride), span),
                                 zero);
        }
        if (!ingot_dim_is_const(need, &more[i]))
            run_more[i] = need;
    }
}

/* [N, C, spatial..] with pads of this value, or of zeros where that is 0. */
static ingot_tensor *pad_spatial(Lowering *n, ingot_tensor *x, ingot_dim *const *lo,
                                 ingot_dim *const *hi, double value)
{
    ingot_dim *l[INGOT_MAX_RANK], *h[INGOT_MAX_RANK];
    for (int a = 0; a < ingot_rank(x); a++) {
        l[a] = a < 2 ? dim(n, 0) : lo[a - 2];
        h[a] = a < 2 ? dim(n, 0) : hi[a - 2];
    }
    return ingot_pad_value(n->c, x, l, h, like(n, x, value));
}

ingot_tensor *window_pad(Lowering *n, ingot_tensor *x, const Window *w, double value)
{
    return w->run ? pad_spatial(n, x, w->run_lo, w->run_hi, value) : x;
}

/* ---- convolutions --------------------------------------------------------------------------- */

ingot_tensor *onnx_conv(Lowering *n)
{
    Window w;
    if (!window_read(n, X, Y, &w) || !window_fits(n, X, &w))
        return ingot_poison(n->c);
    return ingot_conv(n->c, window_pad(n, X, &w, 0), Y, optional_in(n, 2), w.stride, w.dilation,
                      w.lo, w.hi, attr_int(n, "group", 1));
}

ingot_tensor *onnx_conv_integer(Lowering *n)
{
    Window w;
    if (!window_read(n, X, Y, &w) || !window_fits(n, X, &w))
        return ingot_poison(n->c);
    return ingot_conv(n->c, window_pad(n, centred(n, X, optional_in(n, 2), 1), &w, 0),
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
        int64_t size = 0, total = window_extent(w, i) + out_pads[i] - w->stride[i];
        if (count >= 0 && !ingot_dim_is_const(ingot_shape(X, i + 2), &size)) {
            unsupported(n, "output_shape on a dim that is not known when compiling");
            return false;
        }
        if (count >= 0)
            total += size * w->stride[i] - shape[i + count - w->n];
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
    if (!window_read(n, X, Y, &w) || !attr_each(n, "output_padding", w.n, 0, 0, out_pads) ||
        !transpose_pads(n, &w, out_pads))
        return ingot_poison(n->c);
    return ingot_conv_transpose(n->c, X, Y, optional_in(n, 2), w.stride, w.dilation, w.lo, w.hi,
                                out_pads, attr_int(n, "group", 1));
}

/* ---- pools ---------------------------------------------------------------------------------- */

/* Where the run decides the pads: the mean of what they make, over the share of it that counts. */
static ingot_tensor *average_padded(Lowering *n, const Window *w, ingot_dim *const *more,
                                    bool count_pads)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK], *dims[INGOT_MAX_RANK],
        *none[INGOT_MAX_RANK];
    ingot_tensor *x = widen(n, X);
    for (int i = 0; i < w->n; i++) {
        none[i] = dim(n, 0);
        lo[i] = ingot_dim_add(n->c, dim(n, w->lo[i]), w->run_lo[i]);
        hi[i] = ingot_dim_add(n->c, dim(n, w->hi[i]), w->run_hi[i]);
    }
    shape_of(x, dims);
    dims[0] = dims[1] = dim(n, 1);
    ingot_tensor *ones = ingot_expand(n->c, like(n, x, 1), ingot_rank(x), dims),
                 *part[2] = {x, ones};
    for (int k = 0; k < 2; k++) {
        part[k] = pad_spatial(n, part[k], lo, hi, k && count_pads ? 1 : 0);
        part[k] = pad_spatial(n, part[k], none, more, 0);
        part[k] =
            ingot_avg_pool(n->c, part[k], w->kernel, w->stride, w->dilation, NULL, NULL, true);
    }
    return as(n, ingot_div(n->c, part[0], part[1]), ingot_dtype_of(X));
}

ingot_tensor *onnx_average_pool(Lowering *n)
{
    Window w;
    int64_t more[INGOT_MAX_RANK];
    ingot_dim *run_more[INGOT_MAX_RANK];
    bool count_pads = attr_int(n, "count_include_pad", 0) != 0, run;
    if (!window_read(n, X, NULL, &w) || !window_fits(n, X, &w))
        return ingot_poison(n->c);
    window_ceil(n, X, &w, more, run_more);
    run = w.run;
    for (int i = 0; i < w.n; i++)
        run |= !dim_is(run_more[i], 0);
    for (int i = 0; run && i < w.n; i++)
        run_more[i] = ingot_dim_add(n->c, run_more[i], dim(n, more[i]));
    return run ? average_padded(n, &w, run_more, count_pads)
               : ingot_avg_pool_ceil(n->c, X, w.kernel, w.stride, w.dilation, w.lo, w.hi, more,
                                     count_pads);
}

/* Reads the window of a pool in which what ceil_mode adds is padding like any other. */
static bool pool_read(Lowering *n, Window *w)
{
    int64_t more[INGOT_MAX_RANK];
    ingot_dim *run_more[INGOT_MAX_RANK];
    if (!window_read(n, X, NULL, w) || !window_fits(n, X, w))
        return false;
    window_ceil(n, X, w, more, run_more);
    for (int i = 0; i < w->n; i++) {
        w->hi[i] += more[i];
        w->run_hi[i] = ingot_dim_add(n->c, w->run_hi[i], run_more[i]);
        w->run |= !dim_is(run_more[i], 0);
    }
    return true;
}

ingot_tensor *onnx_max_pool(Lowering *n)
{
    Window w;
    if (!pool_read(n, &w))
        return ingot_poison(n->c);
    if (n->n_out > 1 && w.run)
        return unsupported(
            n, "its indices where the pads follow from a size that is not known when compiling");
    if (n->n_out > 1)
        n->out[1] = ingot_max_pool_indices(n->c, X, w.kernel, w.stride, w.dilation, w.lo, w.hi,
                                           attr_int(n, "storage_order", 0) != 0);
    return ingot_max_pool(n->c, window_pad(n, X, &w, -INFINITY), w.kernel, w.stride, w.dilation,
                          w.lo, w.hi);
}

ingot_tensor *onnx_lp_pool(Lowering *n)
{
    Window w;
    if (!pool_read(n, &w))
        return ingot_poison(n->c);
    return ingot_lp_pool(n->c, window_pad(n, X, &w, 0), (double)attr_int(n, "p", 2), w.kernel,
                         w.stride, w.dilation, w.lo, w.hi);
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
    y = ingot_reshape(n->c, ingot_index_checked(n->c, y, false), rank, dims);
    if (!optional_in(n, 2))
        return y;
    bool known = ingot_contents(n->c, n->in[2], lo, rank) == rank;
    known = known || !declared_shape(n, 0, &out_rank, declared) || out_rank != rank;
    if (known && dims_in(n, 2, &given) != rank)
        return n->failed ? ingot_poison(n->c)
                         : fault(n, "its output_shape does not have %d entries", rank);
    for (int a = 0; a < rank; a++) {
        lo[a] = dim(n, 0);
        if (!known && !size_is(n, 0, a, list_entry(n, 2, a, 0), dim(n, declared[a])))
            return ingot_poison(n->c);
        hi[a] = ingot_dim_sub(n->c, known ? given[a] : dim(n, declared[a]), dims[a]);
    }
    return ingot_pad(n->c, y, lo, hi);
}
