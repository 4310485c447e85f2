/*
 * string_normalize.c - leaves out stopwords and changes the case (ONNX StringNormalizer).
 *
 *   in      0: strings [n] or [1, n]
 *           1: strings [k], the stopwords; may be left out
 *   out     0: strings [m] or [1, m]: those that are no stopword, in another case; one empty
 *              string if none is left
 *           1: u8, room for their text
 *   attr_i  0: 0 the case stays, 1 lower, 2 upper
 *           1: 1 if the case counts when looking for stopwords
 *   counts  0: m
 *
 * Cases are the simple mappings of Unicode, one character for one.
 */
#include "igrt_text.h"

static int same_word(const char *a, const char *b, int exact)
{
    if (exact)
        return strcmp(a, b) == 0;
    for (size_t i = 0, most = strlen(a); i < most && *a && *b; i++)
        if (igrt_text_lower(igrt_text_next(&a)) != igrt_text_lower(igrt_text_next(&b)))
            return 0;
    return *a == *b;
}

static int add_word(igrt_text *text, const char *s, int64_t to)
{
    for (size_t i = 0, most = strlen(s); i < most && *s; i++) {
        char bytes[4];
        int32_t c = igrt_text_next(&s);
        c = to == 1 ? igrt_text_lower(c) : to == 2 ? igrt_text_upper(c) : c;
        if (!igrt_text_add(text, bytes, (size_t)igrt_text_encode(c, bytes)))
            return 0;
    }
    return igrt_text_add(text, "", 1);
}

IGRT_LIB(string_normalize)
{
    (void)attr_f, (void)scratch, (void)scratch_bytes;
    if (nin < 1 || nin > 2 || nout != 2 || in->dtype != IGRT_STRING || out->dtype != IGRT_STRING ||
        in->rank < 1 || in->rank > 2 || out->rank != in->rank)
        return IGRT_ERR_UNSUPPORTED;
    const int64_t n = igrt_lib_numel(in, 0, in->rank), room = out->dims[out->rank - 1];
    const int64_t n_stop = nin > 1 ? igrt_lib_numel(&in[1], 0, in[1].rank) : 0;
    const char *const *x = in->data, *const *stop = nin > 1 ? in[1].data : NULL;
    const char **y = out->data;
    igrt_text text = igrt_text_begin(&out[1]);
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) {
        const char *word = igrt_text_of(x[i]);
        int stopped = 0;
        for (int64_t k = 0; k < n_stop && !stopped; k++)
            stopped = same_word(word, igrt_text_of(stop[k]), attr_i[1] != 0);
        if (stopped)
            continue;
        if (m == room)
            return IGRT_ERR_COUNT;
        y[m++] = text.at;
        if (!add_word(&text, word, attr_i[0]))
            return IGRT_ERR_TEXT;
    }
    if (m == 0 && room)
        y[m++] = "";
    out->dims[out->rank - 1] = m;
    counts[0] = m;
    return IGRT_OK;
}
