/*
 * nonzero.c - coordinates of the elements that are not zero (ONNX NonZero).
 *
 *   in      0: any type but string, rank r
 *   out     0: i64 [r, n], column c the coordinates of the c-th such element in row-major order;
 *              dims[1] is the bound of n on entry
 *   counts  0: n
 *
 * -0 is zero, NaN is not. Two passes, because the rows lie n apart.
 */
#include "igrt_lib.h"

/* The bits of an element of `bytes` bytes that make it differ from zero: all, or all but
 * the sign. */
static uint64_t value_mask(igrt_dtype dtype)
{
    switch (dtype) {
    case IGRT_F16:
    case IGRT_BF16: return 0x7fff;
    case IGRT_F32: return 0x7fffffff;
    case IGRT_F64:
    case IGRT_C128: return UINT64_C(0x7fffffffffffffff);
    case IGRT_C64: return UINT64_C(0x7fffffff7fffffff);
    case IGRT_F8E4M3FN:
    case IGRT_F8E5M2: return 0x7f; /* in the fnuz types 0x80 is NaN */
    case IGRT_F4E2M1: return 7;
    default: return UINT64_MAX;
    }
}

static int is_nonzero(const unsigned char *p, igrt_dtype dtype, size_t bytes, uint64_t mask)
{
    uint64_t a = 0, b = 0;
    if (dtype == IGRT_F8E8M0)
        return 1; /* has no zero */
    if (bytes == 1)
        return (*p & mask) != 0;
    if (bytes == 16) {
        memcpy(&a, p, 8);
        memcpy(&b, p + 8, 8);
    } else if (bytes == 2) {
        uint16_t h;
        memcpy(&h, p, 2);
        a = h;
    } else if (bytes == 4) {
        uint32_t w;
        memcpy(&w, p, 4);
        a = w;
    } else {
        memcpy(&a, p, 8);
    }
    return ((a | b) & mask) != 0;
}

IGRT_LIB(nonzero)
{
    (void)attr_i, (void)attr_f, (void)scratch, (void)scratch_bytes;
    if (nin != 1 || nout != 1 || in->dtype == IGRT_STRING || out->dtype != IGRT_I64)
        return IGRT_ERR_UNSUPPORTED;
    const int rank = in->rank;
    const int64_t total = igrt_lib_numel(in, 0, rank);
    const size_t bytes = igrt_dtype_bytes(in->dtype);
    const uint64_t mask = value_mask(in->dtype);
    const unsigned char *x = in->data;
    int64_t n = 0;
    for (int64_t i = 0; i < total; i++)
        n += is_nonzero(x + (size_t)i * bytes, in->dtype, bytes, mask);
    if (n > out->dims[1])
        return IGRT_ERR_COUNT;
    out->rank = 2;
    out->dims[0] = rank;
    out->dims[1] = n;
    counts[0] = n;

    int64_t at[IGRT_MAX_RANK] = {0}, *y = out->data;
    for (int64_t i = 0, column = 0; i < total && column < n; i++) {
        if (is_nonzero(x + (size_t)i * bytes, in->dtype, bytes, mask)) {
            for (int d = 0; d < rank; d++)
                y[d * n + column] = at[d];
            column++;
        }
        for (int d = rank; d-- > 0;) {
            if (++at[d] < in->dims[d])
                break;
            at[d] = 0;
        }
    }
    return IGRT_OK;
}
