/*
 * text.c - a constant tensor of strings.
 *
 *   in      0: u8 [bytes], the strings one after another, each ended by a zero
 *   out     0: strings, as many as the bytes hold
 */
#include "igrt_lib.h"

IGRT_LIB(text)
{
    (void)attr_i, (void)attr_f, (void)scratch, (void)scratch_bytes, (void)counts;
    if (nin != 1 || nout != 1 || in->dtype != IGRT_U8 || out->dtype != IGRT_STRING)
        return IGRT_ERR_UNSUPPORTED;
    const int64_t n = igrt_lib_numel(out, 0, out->rank);
    const char *s = in->data, *end = s + igrt_lib_numel(in, 0, in->rank);
    const char **y = out->data;
    for (int64_t i = 0; i < n; i++) {
        const char *zero = memchr(s, 0, (size_t)(end - s));
        if (!zero)
            return IGRT_ERR_UNSUPPORTED;
        y[i] = s;
        s = zero + 1;
    }
    return IGRT_OK;
}
