/*
 * string_concat.c - each string of one tensor followed by that of another (ONNX StringConcat).
 *
 *   in      0, 1: strings of the same dims
 *   out     0: strings of the same dims
 *           1: u8, room for their text
 */
#include "igrt_text.h"

IGRT_LIB(string_concat)
{
    (void)attr_i, (void)attr_f, (void)scratch, (void)scratch_bytes, (void)counts;
    if (nin != 2 || nout != 2 || in[0].dtype != IGRT_STRING || in[1].dtype != IGRT_STRING)
        return IGRT_ERR_UNSUPPORTED;
    const int64_t n = igrt_lib_numel(in, 0, in->rank);
    const char *const *a = in[0].data, *const *b = in[1].data;
    const char **y = out->data;
    igrt_text text = igrt_text_begin(&out[1]);
    for (int64_t i = 0; i < n; i++) {
        const char *first = igrt_text_of(a[i]), *second = igrt_text_of(b[i]);
        y[i] = text.at;
        if (!igrt_text_add(&text, first, strlen(first)) ||
            !igrt_text_add(&text, second, strlen(second) + 1))
            return IGRT_ERR_TEXT;
    }
    return IGRT_OK;
}
