/* onnx_ml.c - small operators of ai.onnx.ml: preparing features. */
#include "onnx.h"

#define X n->in[0]

/* x > threshold, as 0 or 1 */
ingot_tensor *onnx_binarizer(Lowering *n)
{
    ingot_tensor *above = ingot_gt(n->c, X, like(n, X, attr_float(n, "threshold", 0)));
    return as(n, above, ingot_dtype_of(X));
}

/* Columns of the last axis; a vector is a row. */
ingot_tensor *onnx_array_feature_extractor(Lowering *n)
{
    int rank = ingot_rank(X);
    if (rank < 1)
        return fault(n, "its input is a scalar");
    ingot_tensor *x = rank == 1 ? ingot_unsqueeze(n->c, X, 0) : X;
    ingot_tensor *column = ingot_flatten(n->c, n->in[1], 0, ingot_rank(n->in[1]));
    return ingot_take(n->c, x, column, ingot_rank(x) - 1);
}

/* An attribute with one entry, or one a column: [columns] or a scalar. NULL: left out. */
static ingot_tensor *column_floats(Lowering *n, const char *name)
{
    const float *list;
    int count = attr_floats(n, name, &list);
    int64_t size = count;
    if (count <= 0)
        return NULL;
    if (count != 1 && !(ingot_rank(X) && dim_is(ingot_shape(X, ingot_rank(X) - 1), count)))
        return fault(n, "its attribute '%s' has %d entries", name, count);
    double *v = ingot_alloc(n->c, (size_t)count * sizeof *v);
    for (int i = 0; i < count; i++)
        v[i] = (double)list[i];
    return const_f64(n, INGOT_F32, count > 1, &size, v);
}

/* (x - offset) scale, in f32 */
ingot_tensor *onnx_scaler(Lowering *n)
{
    ingot_tensor *offset = column_floats(n, "offset"), *scale = column_floats(n, "scale");
    ingot_tensor *y = as(n, X, INGOT_F32);
    y = offset ? ingot_sub(n->c, y, offset) : y;
    return scale ? ingot_mul(n->c, y, scale) : y;
}
