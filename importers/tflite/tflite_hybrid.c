/*
 * tflite_hybrid.c - products of floats by weights that are integers with scales ("hybrid", dynamic
 * range quantisation).
 *
 * What is multiplied becomes bytes first, by what a row of it (of images: an image) is when the run
 * comes there:
 *
 *     symmetric:  s = max |x| / 127,           q = round(x / s),     from -127 to 127
 *     asymmetric: s = (max x - min x) / 255,   q = round(x / s) + z, from -128 to 127
 *
 * with 0 among max and min, and z the whole number that stands for 0. Products are summed in i32,
 * and the sum is multiplied by s and by the scale of the weights.
 */
#include "tflite_hybrid.h"

#include "tflite_quant.h"

#define X n->in[0]
#define Y n->in[1]

/* x as whole numbers of a byte, less their zero point, in i32. */
static ingot_tensor *as_bytes(TfliteNode *n, ingot_tensor *q, ingot_tensor *zero, double lo)
{
    q = ingot_cast(n->c, ingot_clamp(n->c, q, lo, 127), INGOT_I8);
    q = ingot_cast(n->c, ingot_contiguous(n->c, q), INGOT_I32);
    return zero ? ingot_sub(n->c, q, zero) : q;
}

static void symmetric(TfliteNode *n, ingot_tensor *x, unsigned axes, TfliteBytes *b)
{
    ingot_context *c = n->c;
    ingot_tensor *most = ingot_reduce(c, INGOT_REDUCE_MAX, ingot_abs(c, x), axes, true);
    ingot_tensor *none = ingot_eq(c, most, ingot_like(c, most, 0));
    ingot_tensor *by = ingot_div(c, ingot_like(c, most, 127), most);
    by = ingot_where(c, none, ingot_like(c, by, 0), by);
    b->scale =
        ingot_where(c, none, ingot_like(c, most, 1), ingot_div(c, most, ingot_like(c, most, 127)));
    b->q = as_bytes(n, tfl_round(n, ingot_mul(c, x, by)), NULL, -127);
}

/* The end of the range that is nearer to 0 decides what stands for it; in f64, but for the range
 * itself, as LiteRT's vector kernels do, which it has for ARM and x86. */
static void asymmetric(TfliteNode *n, ingot_tensor *x, unsigned axes, TfliteBytes *b)
{
    ingot_context *c = n->c;
    ingot_tensor *lo = ingot_min_c(c, ingot_reduce(c, INGOT_REDUCE_MIN, x, axes, true), 0);
    ingot_tensor *hi = ingot_max_c(c, ingot_reduce(c, INGOT_REDUCE_MAX, x, axes, true), 0);
    lo = ingot_contiguous(c, lo);
    hi = ingot_contiguous(c, hi);
    ingot_tensor *range = tfl_cast(n, ingot_contiguous(c, ingot_sub(c, hi, lo)), INGOT_F64);
    lo = tfl_cast(n, lo, INGOT_F64);
    hi = tfl_cast(n, hi, INGOT_F64);
    ingot_tensor *none = ingot_eq(c, range, ingot_like(c, range, 0));
    range = ingot_where(c, none, ingot_like(c, range, 255), range);
    ingot_tensor *scale = ingot_div(c, range, ingot_like(c, range, 255));
    ingot_tensor *below = ingot_div(c, lo, scale), *above = ingot_div(c, hi, scale);
    ingot_tensor *lower = ingot_lt(c, ingot_add_c(c, ingot_abs(c, below), 128),
                                   ingot_add_c(c, ingot_abs(c, above), 127));
    ingot_tensor *z = ingot_where(c, lower, ingot_sub(c, ingot_like(c, below, -128), below),
                                  ingot_sub(c, ingot_like(c, above, 127), above));
    z = ingot_clamp(c, tfl_round(n, z), -128, 127);
    z = ingot_where(c, none, ingot_like(c, z, 0), z);
    z = ingot_contiguous(c, ingot_cast(c, z, INGOT_I32));
    b->scale = ingot_contiguous(c, ingot_cast(c, scale, INGOT_F32));
    ingot_tensor *by = ingot_div(c, ingot_like(c, b->scale, 1), b->scale);
    ingot_tensor *q = tfl_round(n, ingot_mul(c, x, by));
    b->q = as_bytes(n, ingot_add(c, ingot_cast(c, z, INGOT_F32), q), z, -128);
}

bool tfl_bytes(TfliteNode *n, ingot_tensor *x, unsigned axes, bool both_sides, TfliteBytes *b)
{
    *b = (TfliteBytes){x, x};
    if (ingot_is_poison(x))
        return false;
    if (ingot_dtype_of(x) != INGOT_F32) {
        tfl_unsupported(n, "its weights have scales, and its input is no FLOAT32");
        return false;
    }
    if (both_sides)
        asymmetric(n, x, axes, b);
    else
        symmetric(n, x, axes, b);
    return !ingot_is_poison(b->q);
}

ingot_tensor *tfl_byte_weights(TfliteNode *n, int i)
{
    const ingot_tflite_tensor *w = n->ti[i];
    for (size_t k = 0; k < w->zeros.n; k++)
        if (ingot_tflite_i64(&w->zeros, k))
            return tfl_unsupported(n, "its weights have a zero point, which is not 0");
    return tfl_cast(n, n->in[i], INGOT_I32);
}

ingot_tensor *tfl_weight_scales(TfliteNode *n, int i)
{
    const ingot_tflite_list *s = &n->ti[i]->scales;
    const int64_t count = (int64_t)s->n;
    float *v = ingot_alloc(n->c, (size_t)count * sizeof *v);
    for (size_t k = 0; k < s->n; k++)
        v[k] = ingot_tflite_f32(s, k);
    return count == 1 ? ingot_scalar_f(n->c, INGOT_F32, (double)v[0])
                      : ingot_data(n->c, NULL, INGOT_F32, 1, &count, v);
}

ingot_tensor *tfl_byte_linear(TfliteNode *n, const TfliteBytes *x, int w)
{
    ingot_tensor *y = ingot_linear(n->c, x->q, tfl_byte_weights(n, w), NULL);
    ingot_tensor *scale = ingot_mul(n->c, x->scale, tfl_weight_scales(n, w));
    return ingot_mul(n->c, tfl_cast(n, y, INGOT_F32), scale);
}

/* Sums y (i32), whose last axis is that of the weights' scales. */
static ingot_tensor *finish(TfliteNode *n, ingot_tensor *y, const TfliteBytes *x, int bias,
                            int64_t function, bool each_in_turn)
{
    if (ingot_is_poison(y))
        return y;
    ingot_tensor *scale = tfl_weight_scales(n, 1);
    y = ingot_cast(n->c, y, INGOT_F32);
    if (each_in_turn)
        y = ingot_mul(n->c, ingot_mul(n->c, y, scale), x->scale);
    else
        y = ingot_mul(n->c, y, ingot_mul(n->c, x->scale, scale));
    if (tfl_in(n, bias))
        y = ingot_add(n->c, y, n->in[bias]);
    return tfl_activate(n, y, function);
}

static unsigned all_but_first(ingot_tensor *x)
{
    return ((1u << ingot_rank(x)) - 1) & ~1u;
}

/* Of weights with several scales images are asymmetric. */
ingot_tensor *tflite_h_conv_2d(TfliteNode *n)
{
    TfliteWindow win;
    TfliteBytes x;
    if (!tfl_conv_2d_window(n, &win) ||
        !tfl_bytes(n, X, all_but_first(X), n->ti[1]->scales.n > 1, &x))
        return ingot_poison(n->c);
    ingot_tensor *y = tfl_convolve(n, tfl_channels_first(n, x.q),
                                   tfl_channels_first(n, tfl_byte_weights(n, 1)), NULL, &win);
    return finish(n, tfl_channels_last(n, y), &x, 2, tfl_int(n, 3, 1, 0), n->ti[1]->scales.n > 1);
}

ingot_tensor *tflite_h_depthwise_conv_2d(TfliteNode *n)
{
    TfliteWindow win;
    TfliteBytes x;
    if (!tfl_depthwise_window(n, &win) || !tfl_bytes(n, X, all_but_first(X), true, &x))
        return ingot_poison(n->c);
    ingot_tensor *y = tfl_convolve(n, tfl_channels_first(n, x.q),
                                   tfl_depthwise_weights(n, tfl_byte_weights(n, 1)), NULL, &win);
    return finish(n, tfl_channels_last(n, y), &x, 2, tfl_int(n, 4, 1, 0), false);
}

ingot_tensor *tflite_h_transpose_conv(TfliteNode *n)
{
    TfliteBytes x;
    if (!tfl_bytes(n, n->in[2], all_but_first(n->in[2]), true, &x))
        return ingot_poison(n->c);
    ingot_tensor *y = tfl_transpose_convolve(n, x.q, tfl_byte_weights(n, 1), NULL);
    return finish(n, tfl_channels_last(n, y), &x, 3, tfl_int(n, 3, 1, 0), true);
}

ingot_tensor *tflite_h_fully_connected(TfliteNode *n)
{
    TfliteBytes b;
    if (tfl_int(n, 1, 1, 0))
        return tfl_unsupported(n, "shuffled weights are not supported");
    ingot_tensor *x = tfl_rows(n, X, Y, tfl_int(n, 2, 1, 0) != 0);
    if (tfl_has_blocks(n->ti[1])) {
        x = tfl_blocks_linear(n, x, 1);
        x = tfl_in(n, 2) ? ingot_add(n->c, x, n->in[2]) : x;
        return tfl_activate(n, x, tfl_int(n, 0, 1, 0));
    }
    if (ingot_is_poison(x) || ingot_rank(x) < 1 ||
        !tfl_bytes(n, x, 1u << (ingot_rank(x) - 1), tfl_int(n, 3, 1, 0) != 0, &b))
        return ingot_poison(n->c);
    return finish(n, ingot_linear(n->c, b.q, tfl_byte_weights(n, 1), NULL), &b, 2,
                  tfl_int(n, 0, 1, 0), false);
}

ingot_tensor *tflite_h_batch_matmul(TfliteNode *n)
{
    TfliteBytes b;
    ingot_tensor *x = tfl_adjoint(n, X, 0), *w = tfl_byte_weights(n, 1);
    if (ingot_is_poison(x) || ingot_is_poison(w) || ingot_rank(x) < 2 ||
        !tfl_bytes(n, x, 1u << (ingot_rank(x) - 1), tfl_int(n, 2, 1, 0) != 0, &b))
        return ingot_poison(n->c);
    return finish(n, ingot_matmul(n->c, b.q, tfl_adjoint(n, w, 1)), &b, 9, 0, false);
}

/* Rows of the weights, as floats. */
ingot_tensor *tflite_h_embedding_lookup(TfliteNode *n)
{
    if (tfl_has_blocks(n->ti[1]))
        return tfl_blocks_rows(n, X, 1);
    ingot_tensor *y = ingot_take(n->c, tfl_byte_weights(n, 1), X, 0);
    ingot_tensor *scale = tfl_weight_scales(n, 1);
    if (ingot_is_poison(y))
        return y;
    if (ingot_rank(scale) > 0)
        scale = ingot_take(n->c, scale, X, 0);
    while (ingot_rank(scale) > 0 && ingot_rank(scale) < ingot_rank(y))
        scale = ingot_unsqueeze(n->c, scale, ingot_rank(scale));
    return ingot_mul(n->c, ingot_cast(n->c, y, INGOT_F32), scale);
}
