/*
 * tflite_quant_nn.c - operators of networks, of integers that stand for real numbers: products,
 * convolutions, pools, means. (Softmax and norms are in tflite_quant_norm.c.)
 *
 * Zero points are subtracted in i32 and products accumulate in i32 (of 16 bits with a bias of 64
 * bits: in i64), so nothing is rounded before the sum is; padding stands for zero.
 */
#include <math.h>

#include "tflite_quant.h"

#define X n->in[0]

/* ---- products -------------------------------------------------------------------------------- */

/* Operands of a sum of products in i32 or i64, and how it is rescaled. x_at, w_at: inputs. */
typedef struct {
    ingot_tensor *x, *w, *b;
    TfliteMultiplier *q;
    float *once_by; /* the same in f32 */
    int64_t count;
    bool wide, once; /* sums of i64; rounded once, by all bits of the multiplier */
} TfliteProduct;

/* As many multipliers as w has scales. Of one scale, some kernels multiply in f32. */
static void product_multipliers(TfliteNode *n, TfliteProduct *p, int x_at, int w_at, bool single)
{
    const ingot_tflite_tensor *x = n->ti[x_at], *w = n->ti[w_at];
    const double out = (double)tfl_scale(n->to[0]);
    p->count = w->scales.n > 1 ? (int64_t)w->scales.n : 1;
    p->q = ingot_alloc(n->c, (size_t)p->count * sizeof *p->q);
    p->once_by = ingot_alloc(n->c, (size_t)p->count * sizeof *p->once_by);
    for (int64_t i = 0; i < p->count; i++) {
        const float scale = w->scales.n ? ingot_tflite_f32(&w->scales, (size_t)i) : 1;
        const double both = single && p->count == 1 ? (double)(tfl_scale(x) * scale)
                                                    : (double)tfl_scale(x) * (double)scale;
        p->q[i] = tfl_multiplier(both / out);
        p->once_by[i] = tfl_scale(x) * scale / tfl_scale(n->to[0]);
    }
}

static bool product_of(TfliteNode *n, TfliteProduct *p, int x_at, int w_at, int b_at, bool single)
{
    *p =
        (TfliteProduct){.x = tfl_centred(n, x_at), .w = tfl_centred(n, w_at), .b = tfl_in(n, b_at)};
    p->wide =
        n->ti[x_at]->type == INGOT_TFLITE_INT16 &&
        (n->ti[w_at]->type == INGOT_TFLITE_INT16 || !(p->b && ingot_dtype_of(p->b) == INGOT_I32));
    if (!tfl_quantized(n->ti[x_at]) || !tfl_quantized(n->ti[w_at])) {
        tfl_unsupported(n, "its result has a scale, and its input or weights have none");
        return false;
    }
    if (p->wide) {
        p->x = tfl_cast(n, p->x, INGOT_I64);
        p->w = tfl_cast(n, p->w, INGOT_I64);
    }
    if (p->b)
        p->b = tfl_cast(n, p->b, p->wide ? INGOT_I64 : INGOT_I32);
    product_multipliers(n, p, x_at, w_at, single);
    return true;
}

/* y has the channels of the multipliers as its last axis. */
static ingot_tensor *product_done(TfliteNode *n, const TfliteProduct *p, ingot_tensor *y,
                                  int64_t function)
{
    if (ingot_is_poison(y))
        return y;
    const int axis = ingot_rank(y) - 1;
    y = p->once_by && tfl_as_xnnpack(n) ? tfl_rescale_once(n, y, p->once_by, p->count, axis)
        : p->wide || p->once            ? tfl_rescale_wide(n, y, p->q, p->count, axis, p->once)
                             : tfl_rescale(n, tfl_cast(n, y, INGOT_I32), p->q, p->count, axis);
    return tfl_finish(n, y, function);
}

ingot_tensor *tflite_q_conv_2d(TfliteNode *n)
{
    TfliteWindow win;
    TfliteProduct p;
    if (!tfl_conv_2d_window(n, &win) ||
        !product_of(n, &p, 0, 1, 2, n->ti[0]->type == INGOT_TFLITE_UINT8))
        return ingot_poison(n->c);
    ingot_tensor *y =
        tfl_convolve(n, tfl_channels_first(n, p.x), tfl_channels_first(n, p.w), p.b, &win);
    return product_done(n, &p, tfl_channels_last(n, y), tfl_int(n, 3, 1, 0));
}

ingot_tensor *tflite_q_depthwise_conv_2d(TfliteNode *n)
{
    TfliteWindow win;
    TfliteProduct p;
    if (!tfl_depthwise_window(n, &win) ||
        !product_of(n, &p, 0, 1, 2, n->ti[0]->type == INGOT_TFLITE_UINT8))
        return ingot_poison(n->c);
    ingot_tensor *y =
        tfl_convolve(n, tfl_channels_first(n, p.x), tfl_depthwise_weights(n, p.w), p.b, &win);
    return product_done(n, &p, tfl_channels_last(n, y), tfl_int(n, 4, 1, 0));
}

ingot_tensor *tflite_q_transpose_conv(TfliteNode *n)
{
    TfliteProduct p;
    if (!product_of(n, &p, 2, 1, 3, n->ti[2]->type == INGOT_TFLITE_UINT8))
        return ingot_poison(n->c);
    ingot_tensor *y = tfl_transpose_convolve(n, p.x, p.w, p.b);
    return product_done(n, &p, tfl_channels_last(n, y), tfl_int(n, 3, 1, 0));
}

ingot_tensor *tflite_q_fully_connected(TfliteNode *n)
{
    TfliteProduct p;
    if (tfl_int(n, 1, 1, 0))
        return tfl_unsupported(n, "shuffled weights are not supported");
    if (!product_of(n, &p, 0, 1, 2, false))
        return ingot_poison(n->c);
    p.once = n->ti[1]->type != INGOT_TFLITE_INT16;
    if (n->s->m->rounding == INGOT_ROUNDING_XNNPACK && n->to[0]->type == INGOT_TFLITE_INT16 &&
        p.once && !(p.b && n->ti[2]->type == INGOT_TFLITE_INT64))
        p.once = p.wide = false; /* of 16 bits the default kernel has sums of 32 */
    p.x = tfl_rows(n, p.x, p.w, tfl_int(n, 2, 1, 0) != 0);
    return product_done(n, &p, ingot_linear(n->c, p.x, p.w, p.b), tfl_int(n, 0, 1, 0));
}

ingot_tensor *tflite_q_batch_matmul(TfliteNode *n)
{
    TfliteProduct p;
    if (!product_of(n, &p, 0, 1, 9, true) || ingot_is_poison(p.x) || ingot_is_poison(p.w))
        return ingot_poison(n->c);
    p.once_by = NULL; /* XNNPACK does not take it */
    ingot_tensor *y = ingot_matmul(n->c, tfl_adjoint(n, p.x, 0), tfl_adjoint(n, p.w, 1));
    return product_done(n, &p, y, 0);
}

/* ---- pools and means ------------------------------------------------------------------------- */

/* [N, C, H, W] -> [N, C, H', W']: the sum of each window, which has `value` around it */
static ingot_tensor *windows(TfliteNode *n, ingot_tensor *x, const TfliteWindow *w,
                             ingot_reduce_op op, double value)
{
    int64_t lo[4] = {0, 0, w->before[0], w->before[1]}, hi[4] = {0, 0, w->behind[0], w->behind[1]};
    x = ingot_pad_c(n->c, x, lo, hi, value);
    x = ingot_window(n->c, x, 2, w->kernel[0], w->stride[0], 1);
    if (!ingot_is_poison(x))
        x = ingot_window(n->c, x, 3, w->kernel[1], w->stride[1], 1);
    return ingot_is_poison(x) ? x : ingot_reduce(n->c, op, x, 0x30, false);
}

/* How much of a window is inside of an axis, of each result. */
static int32_t inside(const TfliteWindow *w, int axis, int64_t size, int64_t at)
{
    const int64_t first = at * w->stride[axis] - w->before[axis], last = first + w->kernel[axis];
    return (int32_t)((last < size ? last : size) - (first > 0 ? first : 0));
}

/* The same of all results y along an axis, computed: [1, 1, H', 1] or [1, 1, 1, W'] of i32. */
static ingot_tensor *inside_of_each(TfliteNode *n, const TfliteWindow *w, int axis, int64_t size,
                                    ingot_tensor *y)
{
    ingot_context *c = n->c;
    ingot_dim *one = ingot_dim_const(c, 1), *dims[4] = {one, one, one, one};
    dims[2 + axis] = ingot_shape(y, 2 + axis);
    ingot_tensor *at = ingot_mul_c(c, ingot_iota(c, 4, dims, 2 + axis), w->stride[axis]);
    ingot_tensor *first = ingot_add_c(c, at, -w->before[axis]);
    ingot_tensor *last = ingot_add_c(c, first, w->kernel[axis]);
    last = ingot_min_c(c, last, (double)size);
    return ingot_cast(c, ingot_sub(c, last, ingot_max_c(c, first, 0)), INGOT_I32);
}

/* [1, 1, H', W'] of i32 */
static ingot_tensor *counts(TfliteNode *n, const TfliteWindow *w, ingot_tensor *x, ingot_tensor *y)
{
    int64_t in[4], out[4];
    if (!ingot_static_shape(x, in) || !ingot_static_shape(y, out))
        return tfl_unsupported(n, "the size of its image is not known when compiling");
    enum { TABLE = 1 << 20 }; /* numbers; more than any image has places, and they are computed */
    if (out[2] > TABLE || out[3] > TABLE || out[2] * out[3] > TABLE)
        return ingot_mul(n->c, inside_of_each(n, w, 0, in[2], y),
                         inside_of_each(n, w, 1, in[3], y));
    const int64_t dims[] = {1, 1, out[2], out[3]};
    int32_t *v = ingot_alloc(n->c, (size_t)(out[2] * out[3] + 1) * sizeof *v);
    bool same = true;
    for (int64_t i = 0; i < out[2] * out[3]; i++) {
        v[i] = inside(w, 0, in[2], i / out[3]) * inside(w, 1, in[3], i % out[3]);
        same &= v[i] == v[0];
    }
    return same ? ingot_scalar_i(n->c, INGOT_I32, v[0])
                : ingot_data(n->c, NULL, INGOT_I32, 4, dims, v);
}

/* The mean is of the integers, for input and output have one scale; halves away from zero. */
ingot_tensor *tflite_q_average_pool(TfliteNode *n)
{
    TfliteWindow w;
    ingot_tensor *x;
    int32_t lo, hi;
    if (!tfl_pool_window(n, &w, &x) ||
        !tfl_activation_range(n, n->to[0], tfl_int(n, 5, 1, 0), &lo, &hi))
        return ingot_poison(n->c);
    ingot_tensor *y = windows(n, tfl_cast(n, x, INGOT_I32), &w, INGOT_REDUCE_ADD, 0);
    if (ingot_is_poison(y))
        return y;
    ingot_tensor *count = counts(n, &w, x, y);
    ingot_tensor *half = ingot_shr(n->c, count, ingot_scalar_i(n->c, INGOT_I32, 1));
    ingot_tensor *above = ingot_gt(n->c, y, ingot_like(n->c, y, 0));
    y = ingot_where(n->c, above, ingot_add(n->c, y, half), ingot_sub(n->c, y, half));
    y = ingot_clamp(n->c, ingot_div(n->c, y, count), lo, hi);
    return tfl_channels_last(n, ingot_cast(n->c, y, tfl_out_dtype(n)));
}

ingot_tensor *tflite_q_max_pool(TfliteNode *n)
{
    TfliteWindow w;
    ingot_tensor *x;
    int32_t lo, hi, least, most;
    if (!tfl_pool_window(n, &w, &x) ||
        !tfl_activation_range(n, n->to[0], tfl_int(n, 5, 1, 0), &lo, &hi))
        return ingot_poison(n->c);
    tfl_range(n->to[0], &least, &most);
    ingot_tensor *y = windows(n, x, &w, INGOT_REDUCE_MAX, least);
    if (lo > least || hi < most)
        y = ingot_clamp(n->c, y, lo, hi);
    return tfl_channels_last(n, y);
}

/* The sum of what the integers stand for; `mean`: the multiplier is divided by their number. */
static ingot_tensor *reduced(TfliteNode *n, bool mean)
{
    unsigned axes;
    const int rank = ingot_rank(X);
    int64_t count = 1, size;
    TfliteMultiplier q = tfl_multiplier((double)tfl_scale(n->ti[0]) / (double)tfl_scale(n->to[0]));
    if (!tfl_axes(n, 1, rank, &axes))
        return ingot_poison(n->c);
    for (int a = 0; a < rank; a++)
        if (axes >> a & 1) {
            if (!ingot_dim_is_const(ingot_shape(X, a), &size))
                return tfl_unsupported(n, "the number of its elements is not known when compiling");
            count *= size;
        }
    if (tfl_as_xnnpack(n) && count > 0)
        return tfl_xnnpack_reduced(n, axes, count, mean);
    if (mean && count > 0) {
        int shift = 0;
        while (shift < 32 && shift < 31 + q.shift && count >> (shift + 1))
            shift++;
        q.m = (int32_t)(((int64_t)q.m << shift) / count);
        q.shift -= shift;
    }
    ingot_tensor *y =
        ingot_reduce(n->c, INGOT_REDUCE_ADD, tfl_centred(n, 0), axes, tfl_int(n, 0, 1, 0) != 0);
    return tfl_finish(n, tfl_rescale(n, y, &q, 1, 0), 0);
}

ingot_tensor *tflite_q_mean(TfliteNode *n)
{
    return reduced(n, true);
}

/* Of INT8 and INT16 as LiteRT's default kernel does it, in f32. */
static ingot_tensor *summed(TfliteNode *n)
{
    unsigned axes;
    const float scale = tfl_scale(n->ti[0]) / tfl_scale(n->to[0]);
    ingot_tensor *x = tfl_cast(n, X, INGOT_I32);
    if (!tfl_axes(n, 1, ingot_rank(X), &axes))
        return ingot_poison(n->c);
    ingot_dim *count = tfl_dim(n, 1);
    for (int a = 0; a < ingot_rank(X); a++)
        if (axes >> a & 1)
            count = ingot_dim_mul(n->c, count, ingot_shape(X, a));
    ingot_tensor *y = ingot_reduce(n->c, INGOT_REDUCE_ADD, x, axes, tfl_int(n, 0, 1, 0) != 0);
    ingot_tensor *zeros = ingot_cast(n->c, ingot_from_dim(n->c, count), INGOT_F32);
    zeros = ingot_mul(
        n->c, zeros, ingot_scalar_f(n->c, INGOT_F32, (double)((float)-tfl_zero(n->ti[0]) * scale)));
    y = ingot_mul(n->c, ingot_cast(n->c, ingot_contiguous(n->c, y), INGOT_F32),
                  ingot_scalar_f(n->c, INGOT_F32, (double)scale));
    y = ingot_cast(n->c, tfl_round(n, ingot_add(n->c, y, zeros)), INGOT_I32);
    return tfl_finish(n, y, 0);
}

ingot_tensor *tflite_q_sum(TfliteNode *n)
{
    return n->ti[0]->type == INGOT_TFLITE_UINT8 || tfl_as_xnnpack(n) ? reduced(n, false)
                                                                     : summed(n);
}

/* One element after another, and after each product it is rescaled: by the scale of x and the root
 * of the result's scale, so that all of them make both. */
ingot_tensor *tflite_q_reduce_prod(TfliteNode *n)
{
    ingot_context *c = n->c;
    unsigned axes;
    int64_t count = 1, size;
    const int rank = ingot_rank(X);
    int perm[INGOT_MAX_RANK], kept = 0, gone = 0;
    ingot_dim *dims[INGOT_MAX_RANK + 1];
    if (!tfl_axes(n, 1, rank, &axes))
        return ingot_poison(c);
    for (int a = 0; a < rank; a++)
        gone += axes >> a & 1;
    for (int a = 0, last = rank - gone; a < rank; a++) {
        if (!(axes >> a & 1)) {
            dims[kept] = ingot_shape(X, a);
            perm[kept++] = a;
            continue;
        }
        if (!ingot_dim_is_const(ingot_shape(X, a), &size) || size < 1)
            return tfl_unsupported(n, "the number of its elements is not known when compiling");
        count *= size;
        perm[last++] = a;
    }
    const double root = pow((double)tfl_scale(n->to[0]), 1.0 / (double)count);
    const TfliteMultiplier q = tfl_multiplier((double)tfl_scale(n->ti[0]) / root);
    dims[kept] = tfl_dim(n, count);
    ingot_tensor *x = ingot_reshape(c, ingot_permute(c, tfl_centred(n, 0), perm), kept + 1, dims);
    ingot_tensor *y, *first = ingot_take(c, x, ingot_scalar_i(c, INGOT_I64, 0), kept);
    ingot_region *r = ingot_region_begin(c);
    ingot_tensor *i = ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_tensor *go = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *so_far = ingot_region_param_like(c, r, first);
    ingot_tensor *next = tfl_cast(n, ingot_take(c, x, ingot_add_c(c, i, 1), kept), INGOT_I64);
    next = ingot_mul(c, tfl_cast(n, so_far, INGOT_I64), next);
    next = tfl_rescale_wide(n, next, &q, 1, 0, false);
    ingot_region_end(c, r, 2, (ingot_tensor *[]){go, next});
    ingot_loop(c, tfl_dim(n, count - 1), NULL, 1, &first, r, 0, &y);
    y = tfl_finish(n, tfl_rescale_wide(n, y, &q, 1, 0, false), 0);
    for (int a = 0; a < rank && tfl_int(n, 0, 1, 0); a++)
        if (axes >> a & 1)
            y = ingot_unsqueeze(c, y, a);
    return y;
}

/* ---- others ---------------------------------------------------------------------------------- */

/* Parts of another scale than the result's are brought to it, rounded in f32. */
ingot_tensor *tflite_q_concatenation(TfliteNode *n)
{
    int axis;
    int32_t lo, hi;
    const ingot_tflite_tensor *t = n->to[0];
    ingot_tensor **part = ingot_alloc(n->c, (size_t)n->n_in * sizeof *part);
    const float inverse = 1.0f / tfl_scale(t);
    tfl_range(t, &lo, &hi);
    if (!tfl_axis(n, tfl_int(n, 0, 4, 0), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    for (int i = 0; i < n->n_in; i++) {
        const float scale = tfl_scale(n->ti[i]);
        const int32_t zero = tfl_zero(n->ti[i]);
        part[i] = n->in[i];
        if (scale == tfl_scale(t) && zero == tfl_zero(t))
            continue;
        const float by = scale * inverse;
        ingot_tensor *x = ingot_cast(n->c, tfl_cast(n, n->in[i], INGOT_I32), INGOT_F32);
        x = ingot_mul(n->c, x, ingot_scalar_f(n->c, INGOT_F32, (double)by));
        x = ingot_add(n->c, x, ingot_scalar_f(n->c, INGOT_F32, (double)((float)-zero * by)));
        x = ingot_add_c(n->c, tfl_round(n, x), tfl_zero(t));
        part[i] = ingot_cast(n->c, ingot_clamp(n->c, x, lo, hi), tfl_out_dtype(n));
    }
    return ingot_concat(n->c, n->n_in, part, axis);
}

/* Taps of an axis: two indices of each result, and the weight of the second, by 2^10; of floats: as
 * it is. */
static void taps(TfliteNode *n, int64_t in, int64_t out, ingot_tensor *index[2],
                 ingot_tensor **weight, int axis)
{
    const bool corners = tfl_int(n, 2, 1, 0) != 0, half = tfl_int(n, 3, 1, 0) != 0,
               floats = n->ti[0]->type == INGOT_TFLITE_UINT8;
    const bool ends = corners && out > 1;
    const int64_t step =
        ends ? (1024 * (in - 1) + (out - 1) / 2) / (out - 1) : (1024 * in + out / 2) / out;
    const float scale = ends ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
    int32_t *v = ingot_alloc(n->c, 3 * (size_t)out * sizeof *v);
    float *w = ingot_alloc(n->c, (size_t)out * sizeof *w);
    for (int64_t i = 0; i < out; i++) {
        const int64_t at = half ? i * step + step / 2 - 512 : i * step;
        const float x = half ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
        const int64_t low = floats ? (int64_t)floorf(x) : at > 0 ? at / 1024 : 0;
        const int64_t next = floats ? (int64_t)ceilf(x) : (at + 1023) / 1024;
        v[i] = (int32_t)(low < in - 1 ? low > 0 ? low : 0 : in - 1);
        v[out + i] = (int32_t)(next < in - 1 ? next : in - 1);
        v[2 * out + i] = (int32_t)(at - 1024 * low);
        w[i] = x - (float)v[i];
    }
    for (int k = 0; k < 2; k++)
        index[k] = ingot_data(n->c, NULL, INGOT_I32, 1, &out, v + k * out);
    *weight = tfl_i32(n, v + 2 * out, out, 4, axis);
    if (floats)
        *weight = ingot_data(n->c, NULL, INGOT_F32, 4,
                             (int64_t[]){1, axis == 1 ? out : 1, axis == 2 ? out : 1, 1}, w);
}

/* The taps' values times their weights: of 8 bits with a sign in i32, of 16 bits in i64, else in
 * f32. */
static ingot_tensor *resized(TfliteNode *n, const int64_t *in, const int64_t *size)
{
    ingot_context *c = n->c;
    ingot_tensor *index[2][2], *weight[2], *sum = NULL;
    const ingot_tflite_type type = n->ti[0]->type;
    const ingot_dtype wide = type == INGOT_TFLITE_UINT8   ? INGOT_F32
                             : type == INGOT_TFLITE_INT16 ? INGOT_I64
                                                          : INGOT_I32;
    for (int i = 0; i < 2; i++) {
        taps(n, in[1 + i], size[i], index[i], &weight[i], 1 + i);
        weight[i] = tfl_cast(n, weight[i], wide);
    }
    ingot_tensor *whole = ingot_like(c, weight[0], wide == INGOT_F32 ? 1 : 1024);
    for (int k = 0; k < 4; k++) {
        ingot_tensor *t = ingot_take(c, ingot_take(c, X, index[0][k & 1], 1), index[1][k >> 1], 2);
        ingot_tensor *a = k & 1 ? weight[0] : ingot_sub(c, whole, weight[0]);
        ingot_tensor *b = k >> 1 ? weight[1] : ingot_sub(c, whole, weight[1]);
        t = ingot_mul(c, ingot_mul(c, tfl_cast(n, t, wide), a), b);
        sum = sum ? ingot_add(c, sum, t) : t;
    }
    if (wide == INGOT_F32)
        return ingot_cast(c, ingot_add_c(c, sum, 0.5), INGOT_U8);
    /* halves away from zero */
    ingot_tensor *above = ingot_gt(c, sum, ingot_like(c, sum, 0));
    sum = ingot_where(c, above, ingot_add_c(c, sum, 1 << 19), ingot_add_c(c, sum, -(1 << 19)));
    return ingot_cast(c, ingot_div(c, sum, ingot_like(c, sum, 1 << 20)), tfl_out_dtype(n));
}

ingot_tensor *tflite_q_resize_bilinear(TfliteNode *n)
{
    int64_t size[2], in[4];
    if (tfl_ints(n, 1, size, 2) != 2 || !tfl_positive(n, "size", size[0]) ||
        !tfl_positive(n, "size", size[1]))
        return ingot_poison(n->c);
    if (ingot_rank(X) != 4 || !ingot_static_shape(X, in) || in[1] < 1 || in[2] < 1)
        return tfl_unsupported(n, "the size of its image is not known when compiling");
    return tfl_as_xnnpack(n) ? tfl_xnnpack_resized(n, in, size) : resized(n, in, size);
}
