/*
 * tflite_nn.c - operators of networks: products, convolutions, pools, norms, resizing.
 *
 *     CONV_2D            x [N,H,W,C], w [M,h,w,C/groups], b [M]  ->  [N,H',W',M]
 *     DEPTHWISE_CONV_2D  x [N,H,W,C], w [1,h,w,C*k]              ->  [N,H',W',C*k]
 *     FULLY_CONNECTED    x [..,I], w [O,I]                       ->  [n,O]
 *
 * SAME: as many windows as size / stride, rounded up; what they need around the image is half
 * before and half (and the odd one) behind it.
 */
#include "tflite_window.h"

#define X n->in[0]
#define Y n->in[1]

/* ---- windows --------------------------------------------------------------------------------- */

bool tfl_window_fits(TfliteNode *n, const TfliteWindow *w)
{
    for (int i = 0; i < w->n; i++)
        if (!tfl_positive(n, "stride", w->stride[i]) ||
            !tfl_positive(n, "dilation", w->dilation[i]) ||
            !tfl_positive(n, "window", w->kernel[i]))
            return false;
    return true;
}

bool tfl_window_pads(TfliteNode *n, ingot_tensor *x, TfliteWindow *w)
{
    w->known = true;
    if (!tfl_window_fits(n, w))
        return false;
    for (int i = 0; i < w->n; i++) {
        ingot_dim *size = ingot_shape(x, 2 + i), *stride = tfl_dim(n, w->stride[i]);
        const int64_t extent = w->dilation[i] * (w->kernel[i] - 1) + 1;
        ingot_dim *last = ingot_dim_mod(n->c, ingot_dim_sub(n->c, size, tfl_dim(n, 1)), stride);
        ingot_dim *all =
            ingot_dim_max(n->c, ingot_dim_sub(n->c, tfl_dim(n, extent - 1), last), tfl_dim(n, 0));
        w->lo[i] = tfl_dim(n, 0);
        w->hi[i] = tfl_dim(n, 0);
        if (w->same) {
            w->lo[i] = ingot_dim_div(n->c, all, tfl_dim(n, 2));
            w->hi[i] = ingot_dim_sub(n->c, all, w->lo[i]);
        }
        w->known &= ingot_dim_is_const(w->lo[i], &w->before[i]) &&
                    ingot_dim_is_const(w->hi[i], &w->behind[i]);
        if (ingot_dim_hi(size) < extent && !w->same) {
            tfl_fault(n, "its window of %lld is larger than the image of %lld", (long long)extent,
                      (long long)ingot_dim_hi(size));
            return false;
        }
    }
    return true;
}

ingot_tensor *tfl_window_pad(TfliteNode *n, ingot_tensor *x, TfliteWindow *w)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    if (w->known)
        return x;
    for (int i = 0; i < ingot_rank(x); i++) {
        lo[i] = i < 2 ? tfl_dim(n, 0) : w->lo[i - 2];
        hi[i] = i < 2 ? tfl_dim(n, 0) : w->hi[i - 2];
    }
    for (int i = 0; i < w->n; i++)
        w->before[i] = w->behind[i] = 0;
    return ingot_pad(n->c, x, lo, hi);
}

/* Sizes of the kernel, which is [M, C, spatial..]. */
static bool kernel_of(TfliteNode *n, ingot_tensor *w, TfliteWindow *win)
{
    for (int i = 0; i < win->n; i++)
        if (!ingot_dim_is_const(ingot_shape(w, 2 + i), &win->kernel[i])) {
            tfl_unsupported(n, "the sizes of its kernel are not known when compiling");
            return false;
        }
    return true;
}

/* x and w have their channels in front. */
ingot_tensor *tfl_convolve(TfliteNode *n, ingot_tensor *x, ingot_tensor *w, ingot_tensor *b,
                           TfliteWindow *win)
{
    int64_t channels, per = 0;
    if (ingot_is_poison(x) || ingot_is_poison(w) || !kernel_of(n, w, win) ||
        !tfl_window_pads(n, x, win))
        return ingot_poison(n->c);
    x = tfl_window_pad(n, x, win);
    if (ingot_is_poison(x) || !ingot_dim_is_const(ingot_shape(x, 1), &channels) ||
        !ingot_dim_is_const(ingot_shape(w, 1), &per) || per < 1 || channels % per)
        return tfl_fault(n, "its weights have %lld channels, its input has no multiple of that",
                         (long long)per);
    return ingot_conv(n->c, x, w, b, win->stride, win->dilation, win->before, win->behind,
                      channels / per);
}

static bool ranks(TfliteNode *n, int rank)
{
    if (ingot_rank(X) == rank && ingot_rank(Y) == rank)
        return true;
    tfl_fault(n, "its input and weights have ranks %d and %d, not %d", ingot_rank(X), ingot_rank(Y),
              rank);
    return false;
}

bool tfl_conv_2d_window(TfliteNode *n, TfliteWindow *win)
{
    *win = (TfliteWindow){.n = 2, .same = tfl_int(n, 0, 1, 0) == 0};
    win->stride[0] = tfl_int(n, 2, 4, 0);
    win->stride[1] = tfl_int(n, 1, 4, 0);
    win->dilation[0] = tfl_int(n, 5, 4, 1);
    win->dilation[1] = tfl_int(n, 4, 4, 1);
    return ranks(n, 4);
}

bool tfl_depthwise_window(TfliteNode *n, TfliteWindow *win)
{
    *win = (TfliteWindow){.n = 2, .same = tfl_int(n, 0, 1, 0) == 0};
    win->stride[0] = tfl_int(n, 2, 4, 0);
    win->stride[1] = tfl_int(n, 1, 4, 0);
    win->dilation[0] = tfl_int(n, 6, 4, 1);
    win->dilation[1] = tfl_int(n, 5, 4, 1);
    return ranks(n, 4);
}

/* [1, h, w, M] -> [M, 1, h, w] */
ingot_tensor *tfl_depthwise_weights(TfliteNode *n, ingot_tensor *w)
{
    return ingot_is_poison(w) ? w : ingot_permute(n->c, w, (int[]){3, 0, 1, 2});
}

ingot_tensor *tflite_conv_2d(TfliteNode *n)
{
    TfliteWindow win;
    if (!tfl_conv_2d_window(n, &win))
        return ingot_poison(n->c);
    ingot_tensor *y =
        tfl_convolve(n, tfl_channels_first(n, X), tfl_channels_first(n, Y), tfl_in(n, 2), &win);
    return tfl_activate(n, tfl_channels_last(n, y), tfl_int(n, 3, 1, 0));
}

ingot_tensor *tflite_depthwise_conv_2d(TfliteNode *n)
{
    TfliteWindow win;
    if (!tfl_depthwise_window(n, &win))
        return ingot_poison(n->c);
    ingot_tensor *y =
        tfl_convolve(n, tfl_channels_first(n, X), tfl_depthwise_weights(n, Y), tfl_in(n, 2), &win);
    return tfl_activate(n, tfl_channels_last(n, y), tfl_int(n, 4, 1, 0));
}

/* w [d, h, w, C, M] */
ingot_tensor *tflite_conv_3d(TfliteNode *n)
{
    TfliteWindow win = {.n = 3, .same = tfl_int(n, 0, 1, 0) == 0};
    static const unsigned stride[] = {1, 3, 2}, dilation[] = {5, 7, 6};
    for (int i = 0; i < 3; i++) {
        win.stride[i] = tfl_int(n, stride[i], 4, 0);
        win.dilation[i] = tfl_int(n, dilation[i], 4, 1);
    }
    if (!ranks(n, 5))
        return ingot_poison(n->c);
    ingot_tensor *w = ingot_permute(n->c, Y, (int[]){4, 3, 0, 1, 2});
    ingot_tensor *y = tfl_convolve(n, tfl_channels_first(n, X), w, tfl_in(n, 2), &win);
    return tfl_activate(n, tfl_channels_last(n, y), tfl_int(n, 4, 1, 0));
}

/* The sizes of the result: those of input 0, or those in the file, as tflite-micro takes them,
 * where only the run knows it. */
static bool result_sizes(TfliteNode *n, int64_t *size, int rank)
{
    const ingot_tflite_list *shape = &n->to[0]->shape;
    if (!tfl_in(n, 0) || ingot_is_const(n->in[0]) || (int)shape->n != rank)
        return tfl_ints(n, 0, size, 5) == rank;
    for (int i = 0; i < rank; i++)
        size[i] = ingot_tflite_i32(shape, (size_t)i);
    ingot_warning(n->c, "only the run knows its input 0: the sizes of its result are those in the "
                        "file, whatever it says");
    return true;
}

/* The result has the size that input 0 says; what a convolution with that result would have around
 * it is cut off. x is input 2, with its channels in front, w [C, M, spatial..]. */
static ingot_tensor *transposed(TfliteNode *n, ingot_tensor *x, ingot_tensor *w, ingot_tensor *b,
                                int axes, const int64_t *stride)
{
    int64_t size[5], kernel, in, lo[3], hi[3], more[3];
    const bool same = tfl_int(n, 0, 1, 0) == 0;
    if (!result_sizes(n, size, axes + 2) || ingot_is_poison(x) || ingot_is_poison(w))
        return ingot_poison(n->c);
    for (int i = 0; i < axes; i++) {
        if (!ingot_dim_is_const(ingot_shape(w, 2 + i), &kernel) ||
            !ingot_dim_is_const(ingot_shape(x, 2 + i), &in) ||
            !tfl_positive(n, "stride", stride[i]))
            return tfl_unsupported(n, "its sizes are not known when compiling");
        int64_t all = (in - 1) * stride[i] + kernel - size[1 + i];
        lo[i] = same && all > 0 ? all / 2 : 0;
        hi[i] = all > 0 ? all - lo[i] : 0;
        more[i] = all < 0 ? -all : 0;
    }
    return ingot_conv_transpose(n->c, x, w, b, stride, NULL, lo, hi, more, 1);
}

/* w [M, h, w, C] */
ingot_tensor *tfl_transpose_convolve(TfliteNode *n, ingot_tensor *x, ingot_tensor *w,
                                     ingot_tensor *b)
{
    const int64_t stride[] = {tfl_int(n, 2, 4, 0), tfl_int(n, 1, 4, 0)};
    if (ingot_is_poison(x) || ingot_is_poison(w) || ingot_rank(x) != 4 || ingot_rank(w) != 4)
        return tfl_fault(n, "its input or weights have not rank 4");
    w = ingot_permute(n->c, w, (int[]){3, 0, 1, 2});
    return transposed(n, tfl_channels_first(n, x), w, b, 2, stride);
}

/* w [d, h, w, M, C] */
ingot_tensor *tflite_conv_3d_transpose(TfliteNode *n)
{
    const int64_t stride[] = {tfl_int(n, 1, 4, 0), tfl_int(n, 3, 4, 0), tfl_int(n, 2, 4, 0)};
    ingot_tensor *x = n->in[2];
    if (ingot_is_poison(x) || ingot_is_poison(Y) || ingot_rank(x) != 5 || ingot_rank(Y) != 5)
        return tfl_fault(n, "its input or weights have not rank 5");
    if (tfl_int(n, 5, 4, 1) != 1 || tfl_int(n, 6, 4, 1) != 1 || tfl_int(n, 7, 4, 1) != 1)
        return tfl_unsupported(n, "with a dilation it is not supported");
    ingot_tensor *w = ingot_permute(n->c, Y, (int[]){4, 3, 0, 1, 2});
    ingot_tensor *y = transposed(n, tfl_channels_first(n, x), w, tfl_in(n, 3), 3, stride);
    return tfl_activate(n, tfl_channels_last(n, y), tfl_int(n, 4, 1, 0));
}

ingot_tensor *tflite_transpose_conv(TfliteNode *n)
{
    ingot_tensor *y = tfl_transpose_convolve(n, n->in[2], Y, tfl_in(n, 3));
    return tfl_activate(n, tfl_channels_last(n, y), tfl_int(n, 3, 1, 0));
}

/* ---- products -------------------------------------------------------------------------------- */

ingot_tensor *tfl_rows(TfliteNode *n, ingot_tensor *x, ingot_tensor *w, bool keep)
{
    if (ingot_is_poison(x) || ingot_is_poison(w))
        return ingot_poison(n->c);
    if (ingot_rank(w) != 2)
        return tfl_fault(n, "its weights have rank %d, not 2", ingot_rank(w));
    if (keep && ingot_rank(x) >= 1)
        return x;
    ingot_dim *dims[2] = {NULL, ingot_shape(w, 1)};
    if (ingot_dim_is_const(dims[1], &(int64_t){0}) && ingot_dim_lo(dims[1]) < 1)
        return tfl_fault(n, "its weights are empty");
    dims[0] = ingot_dim_div(n->c, ingot_numel(n->c, x), dims[1]);
    return ingot_reshape(n->c, x, 2, dims);
}

ingot_tensor *tflite_fully_connected(TfliteNode *n)
{
    if (tfl_int(n, 1, 1, 0))
        return tfl_unsupported(n, "shuffled weights are not supported");
    ingot_tensor *x = tfl_rows(n, X, Y, tfl_int(n, 2, 1, 0) != 0);
    return tfl_activate(n, ingot_linear(n->c, x, Y, tfl_in(n, 2)), tfl_int(n, 0, 1, 0));
}

ingot_tensor *tfl_adjoint(TfliteNode *n, ingot_tensor *x, unsigned option)
{
    const int rank = ingot_rank(x);
    return tfl_int(n, option, 1, 0) && rank >= 2 ? ingot_transpose(n->c, x, rank - 2, rank - 1) : x;
}

ingot_tensor *tflite_batch_matmul(TfliteNode *n)
{
    return ingot_matmul(n->c, tfl_adjoint(n, X, 0), tfl_adjoint(n, Y, 1));
}

/* ---- pools ----------------------------------------------------------------------------------- */

bool tfl_pool_window(TfliteNode *n, TfliteWindow *win, ingot_tensor **x)
{
    *win = (TfliteWindow){.n = 2, .same = tfl_int(n, 0, 1, 0) == 0, .dilation = {1, 1}};
    win->stride[0] = tfl_int(n, 2, 4, 0);
    win->stride[1] = tfl_int(n, 1, 4, 0);
    win->kernel[0] = tfl_int(n, 4, 4, 0);
    win->kernel[1] = tfl_int(n, 3, 4, 0);
    if (ingot_rank(X) != 4) {
        tfl_fault(n, "its input has rank %d, not 4", ingot_rank(X));
        return false;
    }
    *x = tfl_channels_first(n, X);
    if (!tfl_window_pads(n, *x, win))
        return false;
    if (!win->known)
        tfl_unsupported(n, "padding of an image whose size is not known is not supported");
    return win->known;
}

ingot_tensor *tflite_average_pool(TfliteNode *n)
{
    TfliteWindow w;
    ingot_tensor *x;
    if (!tfl_pool_window(n, &w, &x))
        return ingot_poison(n->c);
    x = ingot_avg_pool(n->c, x, w.kernel, w.stride, NULL, w.before, w.behind, false);
    return tfl_activate(n, tfl_channels_last(n, x), tfl_int(n, 5, 1, 0));
}

ingot_tensor *tflite_l2_pool(TfliteNode *n)
{
    TfliteWindow w;
    ingot_tensor *x;
    if (!tfl_pool_window(n, &w, &x))
        return ingot_poison(n->c);
    x = ingot_mul(n->c, x, x);
    x = ingot_avg_pool(n->c, x, w.kernel, w.stride, NULL, w.before, w.behind, false);
    x = ingot_sqrt(n->c, x);
    return tfl_activate(n, tfl_channels_last(n, x), tfl_int(n, 5, 1, 0));
}

ingot_tensor *tflite_max_pool(TfliteNode *n)
{
    TfliteWindow w;
    ingot_tensor *x;
    if (!tfl_pool_window(n, &w, &x))
        return ingot_poison(n->c);
    x = ingot_max_pool(n->c, x, w.kernel, w.stride, NULL, w.before, w.behind);
    return tfl_activate(n, tfl_channels_last(n, x), tfl_int(n, 5, 1, 0));
}

/* ---- norms ----------------------------------------------------------------------------------- */

ingot_tensor *tflite_softmax(TfliteNode *n)
{
    const double beta = (double)ingot_tflite_float(&n->op->options, 0, 0);
    return ingot_softmax(n->c, beta == 1 ? X : ingot_mul_c(n->c, X, beta), -1);
}

ingot_tensor *tflite_log_softmax(TfliteNode *n)
{
    return ingot_log_softmax(n->c, X, -1);
}

ingot_tensor *tflite_l2_normalization(TfliteNode *n)
{
    const int rank = ingot_rank(X);
    if (rank < 1)
        return tfl_fault(n, "its input has rank 0");
    ingot_tensor *sum = ingot_sum(n->c, ingot_mul(n->c, X, X), 1u << (rank - 1), true);
    ingot_tensor *length = ingot_sqrt(n->c, ingot_max_c(n->c, sum, 1e-6));
    return tfl_activate(n, ingot_div(n->c, X, length), tfl_int(n, 0, 1, 0));
}

/* x / (bias + alpha * sum of x^2 over `radius` channels to either side)^beta */
ingot_tensor *tflite_local_response(TfliteNode *n)
{
    const int64_t radius = tfl_int(n, 0, 4, 0);
    const ingot_tflite_table *o = &n->op->options;
    if (ingot_rank(X) != 4 || radius < 0 || radius > 10000)
        return tfl_fault(n, "its radius is %lld, and its input has rank %d, not 4",
                         (long long)radius, ingot_rank(X));
    const int64_t size = 2 * radius + 1;
    ingot_tensor *y = ingot_lrn(
        n->c, tfl_channels_first(n, X), size, (double)size * (double)ingot_tflite_float(o, 2, 0),
        (double)ingot_tflite_float(o, 3, 0), (double)ingot_tflite_float(o, 1, 0));
    return tfl_channels_last(n, y);
}

/* ---- resizing -------------------------------------------------------------------------------- */

ingot_tensor *tfl_resize(TfliteNode *n, ingot_tensor *x, unsigned options, ingot_resize_mode mode)
{
    int64_t size[2];
    const bool corners = tfl_int(n, options, 1, 0) != 0, half = tfl_int(n, options + 1, 1, 0) != 0;
    if (tfl_ints(n, 1, size, 2) != 2)
        return ingot_poison(n->c);
    if (ingot_rank(x) != 4)
        return tfl_fault(n, "its input has rank %d, not 4", ingot_rank(x));
    for (int i = 0; i < 2 && !ingot_is_poison(x); i++) {
        int64_t in = 0;
        if (!tfl_positive(n, "size", size[i]))
            return ingot_poison(n->c);
        if (!ingot_dim_is_const(ingot_shape(x, 1 + i), &in))
            return tfl_unsupported(n, "the size of its image is not known when compiling");
        ingot_resize_axis a = {.size = size[i], .mode = mode};
        a.coords = corners && size[i] > 1                 ? INGOT_COORDS_ALIGN_CORNERS
                   : half && mode == INGOT_RESIZE_NEAREST ? INGOT_COORDS_TF_HALF_PIXEL_FOR_NN
                   : half                                 ? INGOT_COORDS_HALF_PIXEL
                                                          : INGOT_COORDS_ASYMMETRIC;
        a.nearest = corners ? INGOT_NEAREST_PREFER_CEIL : INGOT_NEAREST_FLOOR;
        if (in != size[i])
            x = ingot_resize(n->c, x, 1 + i, &a);
    }
    return x;
}

ingot_tensor *tflite_resize_bilinear(TfliteNode *n)
{
    return tfl_resize(n, X, 2, INGOT_RESIZE_LINEAR);
}

ingot_tensor *tflite_resize_nearest(TfliteNode *n)
{
    return tfl_resize(n, X, 0, INGOT_RESIZE_NEAREST);
}
