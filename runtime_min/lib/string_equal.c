/*
 * string_equal.c - whether strings have the same bytes (ONNX Equal).
 *
 *   in      0, 1: strings of the same dims
 *   out     0: bool of the same dims
 */
#include "igrt_text.h"

IGRT_LIB(string_equal)
{
    (void)attr_i, (void)attr_f, (void)scratch, (void)scratch_bytes, (void)counts;
    if (nin != 2 || nout != 1 || in[0].dtype != IGRT_STRING || in[1].dtype != IGRT_STRING ||
        out->dtype != IGRT_BOOL)
        return IGRT_ERR_UNSUPPORTED;
    const int64_t n = igrt_lib_numel(in, 0, in->rank);
    const char *const *a = in[0].data, *const *b = in[1].data;
    uint8_t *y = out->data;
    for (int64_t i = 0; i < n; i++)
        y[i] = strcmp(igrt_text_of(a[i]), igrt_text_of(b[i])) == 0;
    return IGRT_OK;
}
