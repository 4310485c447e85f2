/*
 * lookup.c - where each element stands in a sorted list (ONNX LabelEncoder, TfIdfVectorizer).
 *
 *   in      0: x, any type but complex
 *           1: keys [k], of the same type, ascending
 *   out     0: i64 with the dims of x: the place of a key that is equal, or -1
 *
 * A NaN equals a NaN, and -0 equals 0. Strings compare by their bytes.
 */
#include "igrt_text.h"

static int compare(const igrt_tensor *a, int64_t i, const igrt_tensor *b, int64_t k)
{
    if (a->dtype == IGRT_STRING) {
        const char *const *s = a->data, *const *t = b->data;
        return strcmp(igrt_text_of(s[i]), igrt_text_of(t[k]));
    }
    const uint64_t x = igrt_lib_key(a, i), y = igrt_lib_key(b, k);
    return (x > y) - (x < y);
}

IGRT_LIB(lookup)
{
    (void)attr_i, (void)attr_f, (void)scratch, (void)scratch_bytes, (void)counts;
    if (nin != 2 || nout != 1 || in[0].dtype != in[1].dtype || out->dtype != IGRT_I64 ||
        (!igrt_lib_has_key(in->dtype) && in->dtype != IGRT_STRING))
        return IGRT_ERR_UNSUPPORTED;
    const int64_t n = igrt_lib_numel(in, 0, in->rank), keys = igrt_lib_numel(&in[1], 0, in[1].rank);
    int64_t *y = out->data;
    for (int64_t i = 0; i < n; i++) {
        int64_t lo = 0, hi = keys;
        for (int step = 0; lo < hi && step < 64; step++) { /* each halves what is left */
            const int64_t mid = lo + (hi - lo) / 2;
            if (compare(in, i, &in[1], mid) > 0)
                lo = mid + 1;
            else
                hi = mid;
        }
        y[i] = lo < keys && compare(in, i, &in[1], lo) == 0 ? lo : -1;
    }
    return IGRT_OK;
}
