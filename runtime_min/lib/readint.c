/*
 * readint.c - integers of a tensor into sym[], with a check of their bounds.
 *
 * This is how a value that the data decides (a TopK k, a target shape) becomes a run-time dim.
 *
 *   in      0: any integer type or bool, n elements
 *   attr_i  0: status when out of bounds: 0 is ERR_COUNT, 1 is ERR_BIND (bound when compiled)
 *           1 + 2i, 2 + 2i: the least and the largest value allowed for element i
 *           n is the number of elements of in[0] as it was compiled
 *   counts  n: the values
 */
#include "igrt_lib.h"

static int read_one(const igrt_tensor *t, int64_t i, int64_t *value)
{
    const void *p = t->data;
    switch (t->dtype) {
    case IGRT_BOOL:
    case IGRT_U8:
    case IGRT_U4:
    case IGRT_U2: *value = ((const uint8_t *)p)[i]; return 1;
    case IGRT_I8:
    case IGRT_I4:
    case IGRT_I2: *value = ((const int8_t *)p)[i]; return 1;
    case IGRT_I16: *value = ((const int16_t *)p)[i]; return 1;
    case IGRT_U16: *value = ((const uint16_t *)p)[i]; return 1;
    case IGRT_I32: *value = ((const int32_t *)p)[i]; return 1;
    case IGRT_U32: *value = ((const uint32_t *)p)[i]; return 1;
    case IGRT_I64: *value = ((const int64_t *)p)[i]; return 1;
    case IGRT_U64:
        if (((const uint64_t *)p)[i] > INT64_MAX) /* beyond any bound */
            *value = INT64_MAX;
        else
            *value = (int64_t)((const uint64_t *)p)[i];
        return 1;
    default: return 0;
    }
}

IGRT_LIB(readint)
{
    (void)out, (void)nout, (void)attr_f, (void)scratch, (void)scratch_bytes;
    if (nin != 1)
        return IGRT_ERR_UNSUPPORTED;
    const int64_t n = igrt_lib_numel(in, 0, in->rank);
    for (int64_t i = 0; i < n; i++) {
        int64_t value;
        if (!read_one(in, i, &value))
            return IGRT_ERR_UNSUPPORTED;
        if (value < attr_i[1 + 2 * i] || value > attr_i[2 + 2 * i])
            return attr_i[0] ? IGRT_ERR_BIND : IGRT_ERR_COUNT;
        counts[i] = value;
    }
    return IGRT_OK;
}
