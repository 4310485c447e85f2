/*
 * tflite_quant.c - integers that stand for real numbers: real = (integer - zero point) * scale.
 *
 * A sum of products has the scale of x times that of w, and becomes an integer of the result's
 * scale by a multiplier below 1, which is a number of 31 bits and a shift: x * m / 2^31 is rounded,
 * then that by 2^e is (tfl_rescale()). Both roundings are those of the reference kernels, so
 * results are theirs bit by bit.
 */
#include <math.h>

#include "tflite_quant.h"

#define X n->in[0]

bool tfl_quantized(const ingot_tflite_tensor *t)
{
    return t && t->scales.n > 0 &&
           (t->type == INGOT_TFLITE_INT8 || t->type == INGOT_TFLITE_UINT8 ||
            t->type == INGOT_TFLITE_INT16 || t->type == INGOT_TFLITE_INT4 ||
            t->type == INGOT_TFLITE_INT2);
}

bool tfl_is_quantized(TfliteNode *n)
{
    return n->n_out && tfl_quantized(n->to[0]);
}

float tfl_scale(const ingot_tflite_tensor *t)
{
    return t && t->scales.n ? ingot_tflite_f32(&t->scales, 0) : 1;
}

int32_t tfl_zero(const ingot_tflite_tensor *t)
{
    return t && t->zeros.n ? (int32_t)ingot_tflite_i64(&t->zeros, 0) : 0;
}

void tfl_range(const ingot_tflite_tensor *t, int32_t *lo, int32_t *hi)
{
    const int bits = t->type == INGOT_TFLITE_INT16  ? 16
                     : t->type == INGOT_TFLITE_INT4 ? 4
                     : t->type == INGOT_TFLITE_INT2 ? 2
                                                    : 8;
    *lo = t->type == INGOT_TFLITE_UINT8 ? 0 : -(1 << (bits - 1));
    *hi = *lo + (1 << bits) - 1;
}

/* ---- multipliers ----------------------------------------------------------------------------- */

TfliteMultiplier tfl_multiplier(double real)
{
    TfliteMultiplier q = {0, 0};
    if (!(real > 0 && real < 1e30))
        return q;
    int64_t m = (int64_t)round(frexp(real, &q.shift) * 2147483648.0);
    if (m == (int64_t)1 << 31) {
        m /= 2;
        q.shift++;
    }
    if (q.shift < -31)
        return (TfliteMultiplier){0, 0};
    q.m = (int32_t)m;
    return q;
}

ingot_tensor *tfl_i32(TfliteNode *n, const int32_t *v, int64_t count, int rank, int axis)
{
    int64_t dims[INGOT_MAX_RANK];
    int32_t *copy = ingot_alloc(n->c, (size_t)count * sizeof *copy);
    bool same = true;
    for (int64_t i = 0; i < count; i++) {
        copy[i] = v[i];
        same &= v[i] == v[0];
    }
    for (int a = 0; a < rank; a++)
        dims[a] = a == axis ? count : 1;
    return same && count ? ingot_scalar_i(n->c, INGOT_I32, v[0])
                         : ingot_data(n->c, NULL, INGOT_I32, rank, dims, copy);
}

/* Shifts, which are stored as bytes. */
static ingot_tensor *shifts(TfliteNode *n, const int32_t *v, int64_t count, int rank, int axis)
{
    int64_t dims[INGOT_MAX_RANK];
    int8_t *bytes = ingot_alloc(n->c, (size_t)count);
    ingot_tensor *same = tfl_i32(n, v, count, rank, axis);
    if (ingot_is_poison(same) || !ingot_rank(same))
        return same;
    for (int64_t i = 0; i < count; i++)
        bytes[i] = (int8_t)v[i];
    for (int a = 0; a < rank; a++)
        dims[a] = a == axis ? count : 1;
    return ingot_cast(n->c, ingot_data(n->c, NULL, INGOT_I8, rank, dims, bytes), INGOT_I32);
}

ingot_tensor *tfl_rescale(TfliteNode *n, ingot_tensor *x, const TfliteMultiplier *q, int64_t count,
                          int axis)
{
    int32_t *v = ingot_alloc(n->c, (size_t)count * sizeof *v);
    int64_t left = 0, right = 0;
    if (ingot_is_poison(x))
        return x;
    const int rank = ingot_rank(x);
    for (int64_t i = 0; i < count; i++) {
        left += q[i].shift > 0;
        right += q[i].shift < 0;
        v[i] = q[i].shift > 0 ? q[i].shift : 0;
    }
    if (left)
        x = ingot_shl(n->c, x, shifts(n, v, count, rank, axis));
    for (int64_t i = 0; i < count; i++)
        v[i] = q[i].m;
    x = ingot_mulhi(n->c, x, tfl_i32(n, v, count, rank, axis));
    for (int64_t i = 0; i < count; i++)
        v[i] = q[i].shift < 0 ? -q[i].shift : 0;
    return right ? ingot_shrr(n->c, x, shifts(n, v, count, rank, axis)) : x;
}

/* Sums of 64 bits are rounded once: with a multiplier of 16 bits and halves up, or (whole, as
 * FULLY_CONNECTED does in f64) halves away from zero. */
ingot_tensor *tfl_rescale_wide(TfliteNode *n, ingot_tensor *x, const TfliteMultiplier *q,
                               int64_t count, int axis, bool whole)
{
    int64_t dims[INGOT_MAX_RANK], *m = ingot_alloc(n->c, 2 * (size_t)count * sizeof *m);
    int64_t *shift = m + count;
    if (ingot_is_poison(x))
        return x;
    const int rank = ingot_rank(x);
    for (int64_t i = 0; i < count; i++) {
        m[i] = q[i].m < 0x7fff0000 ? (q[i].m + (1 << 15)) >> 16 : 0x7fff;
        shift[i] = 15 - q[i].shift;
        if (whole) {
            m[i] = q[i].m;
            shift[i] = 31 - q[i].shift;
        }
    }
    for (int a = 0; a < rank; a++)
        dims[a] = a == axis ? count : 1;
    ingot_tensor *by = ingot_data(n->c, NULL, INGOT_I64, rank, dims, m),
                 *e = ingot_data(n->c, NULL, INGOT_I64, rank, dims, shift);
    ingot_tensor *half =
        ingot_shl(n->c, ingot_scalar_i(n->c, INGOT_I64, 1), ingot_add_c(n->c, e, -1));
    x = ingot_mul(n->c, tfl_cast(n, x, INGOT_I64), by);
    if (whole) /* one less below zero: -2.5 is -3 */
        x = ingot_add(n->c, x, ingot_shr(n->c, x, ingot_scalar_i(n->c, INGOT_I64, 63)));
    x = ingot_add(n->c, x, half);
    return ingot_cast(n->c, ingot_shr(n->c, x, e), INGOT_I32);
}

/* ---- results --------------------------------------------------------------------------------- */

/* The integer of a real number, as bounds of activations are rounded. */
static int32_t integer_of(const ingot_tflite_tensor *t, float real)
{
    const double q = (double)roundf(real / tfl_scale(t));
    return q > 1e9 ? 1000000000 : !(q > -1e9) ? -1000000000 : tfl_zero(t) + (int32_t)q;
}

bool tfl_activation_range(TfliteNode *n, const ingot_tflite_tensor *t, int64_t function,
                          int32_t *lo, int32_t *hi)
{
    static const float least[] = {0, 0, -1, 0}, most[] = {0, 0, 1, 6};
    tfl_range(t, lo, hi);
    if (function < 0 || function > 3) {
        tfl_unsupported(n, "the fused activation function number %lld is not supported",
                        (long long)function);
        return false;
    }
    if (function) {
        const int32_t bottom = integer_of(t, least[function]);
        *lo = bottom > *lo ? bottom : *lo;
    }
    if (function > 1) {
        const int32_t top = integer_of(t, most[function]);
        *hi = top < *hi ? top : *hi;
    }
    return true;
}

ingot_tensor *tfl_finish(TfliteNode *n, ingot_tensor *x, int64_t function)
{
    const ingot_tflite_tensor *t = n->to[0];
    int32_t lo, hi;
    if (!tfl_activation_range(n, t, function, &lo, &hi))
        return ingot_poison(n->c);
    if (tfl_zero(t))
        x = ingot_add_c(n->c, x, tfl_zero(t));
    x = ingot_clamp(n->c, x, lo, hi);
    return tfl_is_float(x) ? ingot_cast_least(n->c, x, tfl_out_dtype(n))
                           : ingot_cast(n->c, x, tfl_out_dtype(n));
}

ingot_tensor *tfl_centred(TfliteNode *n, int i)
{
    ingot_tensor *x = tfl_in(n, i);
    if (!x || ingot_is_poison(x))
        return ingot_poison(n->c);
    x = tfl_cast(n, x, INGOT_I32);
    return tfl_zero(n->ti[i]) ? ingot_add_c(n->c, x, -(double)tfl_zero(n->ti[i])) : x;
}

/* Scales and zero points in a shape that broadcasts to the tensor. */
static ingot_tensor *along_axis(TfliteNode *n, const ingot_tflite_tensor *t, bool zeros)
{
    const int64_t count = (int64_t)t->scales.n, rank = (int64_t)t->shape.n;
    int64_t dims[INGOT_MAX_RANK];
    float *v = ingot_alloc(n->c, (size_t)count * sizeof *v);
    for (int64_t i = 0; i < count; i++)
        v[i] = !zeros       ? ingot_tflite_f32(&t->scales, (size_t)i)
               : t->zeros.n ? (float)ingot_tflite_i64(&t->zeros, (size_t)i)
                            : 0;
    for (int64_t i = 0; i < rank; i++)
        dims[i] = i == t->axis ? count : 1;
    return ingot_data(n->c, NULL, INGOT_F32, count > 1 ? (int)rank : 0, dims, v);
}

ingot_tensor *tfl_round(TfliteNode *n, ingot_tensor *x)
{
    ingot_tensor *whole = ingot_trunc(n->c, x), *rest = ingot_abs(n->c, ingot_sub(n->c, x, whole));
    ingot_tensor *more = ingot_ge(n->c, rest, ingot_like(n->c, x, 0.5));
    return ingot_where(n->c, more, ingot_add(n->c, whole, ingot_sign(n->c, x)), whole);
}

/* Of floats: rounded, halves away from zero. Of integers: another scale. */
ingot_tensor *tflite_quantize(TfliteNode *n)
{
    const ingot_tflite_tensor *t = n->to[0];
    int32_t lo, hi;
    if (!t->scales.n || (!tfl_quantized(t) && t->type != INGOT_TFLITE_INT32))
        return tfl_unsupported(n, "its result has no scale, or is %s",
                               ingot_tflite_type_name((int)t->type, NULL));
    if (!tfl_is_float(X) && t->type == INGOT_TFLITE_INT32) {
        const TfliteMultiplier q =
            tfl_multiplier((double)tfl_scale(n->ti[0]) / (double)tfl_scale(t));
        return ingot_add_c(n->c, tfl_rescale(n, tfl_centred(n, 0), &q, 1, 0), tfl_zero(t));
    }
    if (!tfl_is_float(X)) {
        const TfliteMultiplier q =
            tfl_multiplier((double)tfl_scale(n->ti[0]) / (double)tfl_scale(t));
        ingot_tensor *line = tfl_xnnpack_line(n, 1);
        return line ? line : tfl_finish(n, tfl_rescale(n, tfl_centred(n, 0), &q, 1, 0), 0);
    }
    if (!tfl_quantized(t))
        return tfl_unsupported(n, "to INT32 it is not supported");
    tfl_range(t, &lo, &hi);
    ingot_tensor *x = tfl_cast(n, X, INGOT_F32);
    if (tfl_as_xnnpack(n)) { /* by the reciprocal, halves to even */
        const float by = 1 / tfl_scale(t);
        x = ingot_round(n->c, ingot_mul(n->c, x, ingot_scalar_f(n->c, INGOT_F32, (double)by)));
    } else {
        x = tfl_round(n, ingot_div(n->c, x, ingot_scalar_f(n->c, INGOT_F32, (double)tfl_scale(t))));
    }
    x = ingot_add_c(n->c, x, tfl_zero(t));
    return ingot_cast(n->c, ingot_clamp(n->c, x, lo, hi), tfl_out_dtype(n));
}

ingot_tensor *tflite_dequantize(TfliteNode *n)
{
    const ingot_tflite_tensor *t = n->ti[0];
    if (!t->scales.n) /* f16 weights */
        return tfl_cast(n, X, INGOT_F32);
    ingot_tensor *x = tfl_cast(n, tfl_cast(n, X, INGOT_I32), INGOT_F32);
    x = ingot_sub(n->c, x, along_axis(n, t, true));
    return ingot_mul(n->c, x, along_axis(n, t, false));
}
