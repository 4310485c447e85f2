/*
 * det.c - determinants of square matrices (ONNX Det).
 *
 *   in      0: f32 or f64 [..., n, n]
 *   out     0: the same type [...]
 *   scratch IGRT_DET_SCRATCH(n)
 *
 * Gaussian elimination with partial pivoting, in f64.
 */
#include "igrt_lib.h"

static double determinant(double *a, int64_t n)
{
    double det = 1.0;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k]))
                pivot = i;
        if (pivot != k) {
            for (int64_t j = k; j < n; j++) {
                const double t = a[k * n + j];
                a[k * n + j] = a[pivot * n + j];
                a[pivot * n + j] = t;
            }
            det = -det;
        }
        const double p = a[k * n + k];
        det *= p;
        if (p == 0.0)
            return det; /* the column is zero; infinities and NaN in det stay */
        for (int64_t i = k + 1; i < n; i++) {
            const double f = a[i * n + k] / p;
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= f * a[k * n + j];
        }
    }
    return det;
}

IGRT_LIB(det)
{
    (void)attr_i, (void)attr_f, (void)counts;
    const int rank = in->rank;
    if (nin != 1 || nout != 1 || rank < 2 || in->dims[rank - 1] != in->dims[rank - 2] ||
        (in->dtype != IGRT_F32 && in->dtype != IGRT_F64) || out->dtype != in->dtype)
        return IGRT_ERR_UNSUPPORTED;
    const int64_t n = in->dims[rank - 1], batch = igrt_lib_numel(in, 0, rank - 2);
    if (scratch_bytes < IGRT_DET_SCRATCH(n))
        return IGRT_ERR_SCRATCH;
    double *a = scratch;
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t i = 0; i < n * n; i++)
            a[i] = in->dtype == IGRT_F32 ? (double)((const float *)in->data)[b * n * n + i]
                                         : ((const double *)in->data)[b * n * n + i];
        const double det = determinant(a, n);
        if (in->dtype == IGRT_F32)
            ((float *)out->data)[b] = (float)det;
        else
            ((double *)out->data)[b] = det;
    }
    out->rank = rank - 2;
    for (int d = 0; d < rank - 2; d++)
        out->dims[d] = in->dims[d];
    return IGRT_OK;
}
