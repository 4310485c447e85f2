/* ops_util.c - helpers of the op library: wide dtypes, axes, per-channel operands, tables. */
#include <string.h>

#include "ops.h"

ingot_dtype ops_wide(ingot_dtype d)
{
    switch (d) {
    case INGOT_F16:
    case INGOT_BF16:
    case INGOT_F8E4M3FN:
    case INGOT_F8E4M3FNUZ:
    case INGOT_F8E5M2:
    case INGOT_F8E5M2FNUZ:
    case INGOT_F8E8M0:
    case INGOT_F4E2M1: return INGOT_F32;
    default: return d;
    }
}

ingot_tensor *ops_widen(ingot_context *c, ingot_tensor *x)
{
    return ingot_is_poison(x) ? x : ingot_cast(c, x, ops_wide(ingot_dtype_of(x)));
}

bool ops_is_float(ingot_tensor *x)
{
    ingot_dtype d = ops_wide(ingot_dtype_of(x));
    return d == INGOT_F32 || d == INGOT_F64;
}

int ops_axis(ingot_context *c, const char *what, ingot_tensor *x, int axis)
{
    int rank = ingot_rank(x), a = axis < 0 ? axis + rank : axis;
    if (a >= 0 && a < rank)
        return a;
    ingot_error(c, INGOT_INVALID, "%s: axis %d of a tensor of rank %d", what, axis, rank);
    return -1;
}

int ops_dims(ingot_tensor *x, ingot_dim **dims)
{
    int rank = ingot_rank(x);
    for (int i = 0; i < rank; i++)
        dims[i] = ingot_shape(x, i);
    return rank;
}

ingot_tensor *ops_channel(ingot_context *c, ingot_tensor *x, int rank)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    if (ingot_is_poison(x) || ingot_rank(x) != 1)
        return x; /* shaped by the caller already */
    for (int i = 0; i < rank; i++)
        dims[i] = i == 1 ? ingot_shape(x, 0) : ingot_dim_const(c, 1);
    return ingot_reshape(c, x, rank, dims);
}

ingot_tensor *ops_reshape_like(ingot_context *c, ingot_tensor *x, ingot_tensor *like)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    if (ingot_is_poison(like))
        return like;
    return ingot_reshape(c, x, ops_dims(like, dims), dims);
}

ingot_tensor *ops_table_i(ingot_context *c, int64_t n, const int64_t *v)
{
    int64_t *data = ingot_alloc(c, (size_t)(n ? n : 1) * sizeof *data);
    memcpy(data, v, (size_t)n * sizeof *data);
    return ingot_data(c, NULL, INGOT_I64, 1, &n, data);
}

ingot_tensor *ops_table_f(ingot_context *c, int64_t n, const double *v, ingot_dtype d)
{
    if (d == INGOT_F64) {
        double *data = ingot_alloc(c, (size_t)(n ? n : 1) * sizeof *data);
        memcpy(data, v, (size_t)n * sizeof *data);
        return ingot_data(c, NULL, INGOT_F64, 1, &n, data);
    }
    float *data = ingot_alloc(c, (size_t)(n ? n : 1) * sizeof *data);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)v[i];
    return ingot_cast(c, ingot_data(c, NULL, INGOT_F32, 1, &n, data), d);
}
