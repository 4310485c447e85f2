/*
 * tflite_xnnpack.c - integers of 8 bits rounded as XNNPACK does it, LiteRT's default delegate.
 *
 * Sums of products are multiplied by one f32 and rounded once, halves to even; a sum of two has
 * multipliers of 21 bits and one shift. So these are nearer to the real number than the reference
 * kernels (tflite_quant.c), and on machines with floats faster. A change of scale and LEAKY_RELU
 * have multipliers of 8 bits behind the point, and are farther from it.
 *
 * Operators that are not here are the same in both, or XNNPACK does not take them.
 */
#include <math.h>

#include "tflite_quant.h"

#define X n->in[0]

static bool bytes(const ingot_tflite_tensor *t)
{
    return tfl_quantized(t) && (t->type == INGOT_TFLITE_INT8 || t->type == INGOT_TFLITE_UINT8);
}

bool tfl_as_xnnpack(TfliteNode *n)
{
    return n->s->m->rounding == INGOT_ROUNDING_XNNPACK && n->n_out && bytes(n->to[0]);
}

ingot_tensor *tfl_rescale_once(TfliteNode *n, ingot_tensor *x, const float *scale, int64_t count,
                               int axis)
{
    int64_t dims[INGOT_MAX_RANK];
    if (ingot_is_poison(x))
        return x;
    const int rank = count > 1 ? ingot_rank(x) : 0;
    for (int a = 0; a < rank; a++)
        dims[a] = a == axis ? count : 1;
    ingot_tensor *by = ingot_data(n->c, NULL, INGOT_F32, rank, dims, scale);
    return ingot_round(n->c, ingot_mul(n->c, ingot_cast(n->c, x, INGOT_F32), by));
}

/* Of the greater scale 21 bits; the results' scale is 1 then. */
ingot_tensor *tfl_xnnpack_sum(TfliteNode *n, bool minus)
{
    enum { BITS = 20 };
    const float out = tfl_scale(n->to[0]), a = tfl_scale(n->ti[0]) / out,
                b = tfl_scale(n->ti[1]) / out, most = a > b ? a : b, least = a > b ? b : a;
    int exponent;
    if (!tfl_as_xnnpack(n) || !bytes(n->ti[0]) || !bytes(n->ti[1]) || !(least >= 0x1p-10f) ||
        !(most < 0x1p8f))
        return NULL;
    (void)frexpf(most, &exponent);
    const int shift = BITS + 1 - exponent;
    ingot_tensor *x = ingot_mul(n->c, tfl_centred(n, 0),
                                ingot_scalar_i(n->c, INGOT_I32, lrintf(ldexpf(a, shift)))),
                 *y = ingot_mul(n->c, tfl_centred(n, 1),
                                ingot_scalar_i(n->c, INGOT_I32, lrintf(ldexpf(b, shift))));
    x = minus ? ingot_sub(n->c, x, y) : ingot_add(n->c, x, y);
    x = ingot_add_c(n->c, x, ldexp(1, shift - 1));
    return ingot_shr(n->c, x, ingot_scalar_i(n->c, INGOT_I32, shift));
}

/* In f32, with the zero points in the summand. */
ingot_tensor *tfl_xnnpack_reduced(TfliteNode *n, unsigned axes, int64_t count, bool mean)
{
    ingot_context *c = n->c;
    float by = tfl_scale(n->ti[0]) / tfl_scale(n->to[0]);
    if (mean)
        by *= 1.0f / (float)count;
    const float zero = (float)tfl_zero(n->to[0]) - (float)(count * tfl_zero(n->ti[0])) * by;
    int32_t lo, hi;
    tfl_range(n->to[0], &lo, &hi);
    ingot_tensor *y = ingot_reduce(c, INGOT_REDUCE_ADD, tfl_cast(n, X, INGOT_I32), axes,
                                   tfl_int(n, 0, 1, 0) != 0);
    y = ingot_cast(c, ingot_contiguous(c, y), INGOT_F32);
    y = ingot_mul(c, y, ingot_scalar_f(c, INGOT_F32, (double)by));
    y = ingot_round(c, ingot_add(c, y, ingot_scalar_f(c, INGOT_F32, (double)zero)));
    return ingot_cast_least(c, ingot_clamp(c, y, lo, hi), tfl_out_dtype(n));
}

/* 8 bits behind the point, of both. */
static ingot_tensor *coarse(TfliteNode *n, ingot_tensor *x, float up)
{
    return ingot_mul(n->c, x, ingot_scalar_i(n->c, INGOT_I32, lrintf(up * 256)));
}

ingot_tensor *tfl_xnnpack_line(TfliteNode *n, float down)
{
    const float up = tfl_scale(n->ti[0]) / tfl_scale(n->to[0]);
    if (!tfl_as_xnnpack(n) || n->ti[0]->type != n->to[0]->type || !(up >= 0x1p-8f) ||
        !(up <= 0x1p7f) || !(fabsf(down * up) >= 0x1p-8f) || !(fabsf(down * up) < 0x1.fffcp6f))
        return NULL;
    ingot_tensor *x = tfl_centred(n, 0), *y = coarse(n, x, up);
    if (down < 1 || down > 1)
        y = ingot_where(n->c, ingot_ge(n->c, x, ingot_like(n->c, x, 0)), y,
                        coarse(n, x, up * down));
    y = ingot_add_c(n->c, y, 128);
    return tfl_finish(n, ingot_shr(n->c, y, ingot_scalar_i(n->c, INGOT_I32, 8)), 0);
}

/* ---- RESIZE_BILINEAR ------------------------------------------------------------------------- */

enum { TAP = 11 }; /* bits of a weight */

/* Of an axis: two indices of each result, and the second's weight. */
static void taps(TfliteNode *n, int64_t in, int64_t out, ingot_tensor *index[2],
                 ingot_tensor **weight, int axis)
{
    const bool corners = tfl_int(n, 2, 1, 0) != 0, half = tfl_int(n, 3, 1, 0) != 0 && !corners;
    const int less = corners && out > 1;
    const float scale = (float)(in - less) / (float)(out - less),
                first = half ? 0.5f * scale - 0.5f : 0;
    int32_t *v = ingot_alloc(n->c, 3 * (size_t)out * sizeof *v);
    for (int64_t i = 0; i < out; i++) {
        const float last = (float)(in - 1), at = (float)i * scale + first,
                    x = at < 0      ? 0
                        : at > last ? last
                                    : at;
        v[i] = (int32_t)x;
        v[out + i] = v[i] < in - 1 ? v[i] + 1 : (int32_t)in - 1;
        v[2 * out + i] = (int32_t)lrintf((x - (float)v[i]) * (1 << TAP));
    }
    for (int k = 0; k < 2; k++)
        index[k] = ingot_data(n->c, NULL, INGOT_I32, 1, &out, v + k * out);
    *weight = tfl_i32(n, v + 2 * out, out, 4, axis);
}

/* a 2^TAP + (b - a) weight */
static ingot_tensor *between(TfliteNode *n, ingot_tensor *a, ingot_tensor *b, ingot_tensor *weight)
{
    ingot_tensor *whole = ingot_mul(n->c, a, ingot_scalar_i(n->c, INGOT_I32, 1 << TAP));
    return ingot_add(n->c, whole, ingot_mul(n->c, ingot_sub(n->c, b, a), weight));
}

ingot_tensor *tfl_xnnpack_resized(TfliteNode *n, const int64_t *in, const int64_t *out)
{
    ingot_tensor *index[2][2], *weight[2], *row[2];
    for (int i = 0; i < 2; i++)
        taps(n, in[1 + i], out[i], index[i], &weight[i], 1 + i);
    for (int i = 0; i < 2; i++) {
        ingot_tensor *x[2];
        for (int k = 0; k < 2; k++)
            x[k] =
                tfl_cast(n, ingot_take(n->c, ingot_take(n->c, X, index[0][i], 1), index[1][k], 2),
                         INGOT_I32);
        row[i] = between(n, x[0], x[1], weight[1]);
    }
    ingot_tensor *y = ingot_add_c(n->c, between(n, row[0], row[1], weight[0]), 1 << (2 * TAP - 1));
    y = ingot_shr(n->c, y, ingot_scalar_i(n->c, INGOT_I32, 2 * TAP));
    return ingot_cast(n->c, y, tfl_out_dtype(n));
}
