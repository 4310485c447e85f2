/*
 * tflite_quant.c - integers that stand for real numbers: real = (integer - zero point) * scale.
 */
#include <math.h>

#include "tflite_model.h"

#define X n->in[0]

bool tfl_quantized(const ingot_tflite_tensor *t)
{
    return t && t->scales.n > 0 &&
           (t->type == INGOT_TFLITE_INT8 || t->type == INGOT_TFLITE_UINT8 ||
            t->type == INGOT_TFLITE_INT16 || t->type == INGOT_TFLITE_INT4);
}

bool tfl_is_quantized(TfliteNode *n)
{
    return n->n_out && tfl_quantized(n->to[0]);
}

double tfl_scale(const ingot_tflite_tensor *t)
{
    return t->scales.n ? (double)ingot_tflite_f32(&t->scales, 0) : 1;
}

int32_t tfl_zero(const ingot_tflite_tensor *t)
{
    return t->zeros.n ? (int32_t)ingot_tflite_i64(&t->zeros, 0) : 0;
}

void tfl_range(const ingot_tflite_tensor *t, int32_t *lo, int32_t *hi)
{
    *lo = t->type == INGOT_TFLITE_UINT8   ? 0
          : t->type == INGOT_TFLITE_INT16 ? -32768
          : t->type == INGOT_TFLITE_INT4  ? -8
                                          : -128;
    *hi = t->type == INGOT_TFLITE_UINT8   ? 255
          : t->type == INGOT_TFLITE_INT16 ? 32767
          : t->type == INGOT_TFLITE_INT4  ? 7
                                          : 127;
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

ingot_tensor *tflite_dequantize(TfliteNode *n)
{
    const ingot_tflite_tensor *t = n->ti[0];
    if (!t->scales.n) /* f16 weights */
        return tfl_cast(n, X, INGOT_F32);
    ingot_tensor *x = tfl_cast(n, tfl_cast(n, X, INGOT_I32), INGOT_F32);
    x = ingot_sub(n->c, x, along_axis(n, t, true));
    return ingot_mul(n->c, x, along_axis(n, t, false));
}
