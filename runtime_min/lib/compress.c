/*
 * compress.c - the slices along an axis whose condition is true (ONNX Compress).
 *
 *   in      0: x, any type
 *           1: condition, bool [m]; m may be less than the dim, then the rest is dropped
 *   out     0: the type of x; dims[axis] is the bound on entry
 *   attr_i  0: axis, 0 <= axis < rank, or -1: x is flattened first
 *   counts  0: how many slices
 */
#include "igrt_lib.h"

IGRT_LIB(compress)
{
    (void)attr_f, (void)scratch, (void)scratch_bytes;
    if (nin != 2 || nout != 1 || in[1].dtype != IGRT_BOOL || out->dtype != in->dtype)
        return IGRT_ERR_UNSUPPORTED;
    const int flat = attr_i[0] < 0, axis = flat ? 0 : (int)attr_i[0];
    if (!flat && axis >= in->rank)
        return IGRT_ERR_UNSUPPORTED;
    const int64_t outer = flat ? 1 : igrt_lib_numel(in, 0, axis);
    const int64_t dim = flat ? igrt_lib_numel(in, 0, in->rank) : in->dims[axis];
    const size_t inner = (size_t)(flat ? 1 : igrt_lib_numel(in, axis + 1, in->rank));
    const size_t bytes = inner * igrt_dtype_bytes(in->dtype);
    const uint8_t *take = in[1].data;
    const int64_t given = igrt_lib_numel(&in[1], 0, in[1].rank), m = given < dim ? given : dim;
    int64_t n = 0;
    for (int64_t i = 0; i < m; i++)
        n += take[i] != 0;
    if (n > out->dims[axis])
        return IGRT_ERR_COUNT;

    const unsigned char *from = in->data;
    unsigned char *to = out->data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < m; i++) {
            if (!take[i])
                continue;
            memcpy(to, from + (size_t)(o * dim + i) * bytes, bytes);
            to += bytes;
        }
    const int rank = flat ? 1 : in->rank;
    out->rank = rank;
    for (int d = 0; d < rank; d++)
        out->dims[d] = d == axis ? n : in->dims[d];
    counts[0] = n;
    return IGRT_OK;
}
