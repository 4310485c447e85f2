/*
 * string_split.c - the pieces of strings between delimiters (ONNX StringSplit).
 *
 *   in      0: strings [dims]
 *           1: u8, the delimiter, ended by a zero; empty: any amount of white space, and none
 *              before the first piece or after the last
 *   out     0: strings [dims, m]: the pieces, then empty strings
 *           1: i64 [dims], how many pieces
 *           2: u8, room for the text of the pieces
 *   attr_i  0: at most this many splits; what follows the last one is one piece. Below 0: any
 *   counts  0: m, the largest number of pieces, at most the bound out[0] has on entry
 */
#include "igrt_text.h"

/* What is left of a string to be split. */
typedef struct Rest {
    const char *at; /* NULL: nothing */
    const char *end;
    const char *delimiter;
    int64_t splits; /* still allowed; negative: any */
} Rest;

static const char *skip_space(const char *s, const char *end, int is_space)
{
    for (ptrdiff_t most = end - s; most > 0 && *s; most--) {
        const char *next = s;
        if (igrt_text_is_space(igrt_text_next(&next)) != is_space)
            break;
        s = next;
    }
    return s;
}

static Rest all_of(const char *text, const char *delimiter, int64_t splits)
{
    const Rest r = {text, text + strlen(text), delimiter, splits};
    return r;
}

/* The next piece and its length; NULL if there is none. */
static const char *next_piece(Rest *r, size_t *length)
{
    const char *piece = r->at, *end = NULL;
    const int space = *r->delimiter == 0;
    if (!piece)
        return NULL;
    if (space) {
        piece = skip_space(piece, r->end, 1);
        if (!*piece) {
            r->at = NULL;
            return NULL;
        }
    }
    if (r->splits != 0)
        end = space ? skip_space(piece, r->end, 0) : strstr(piece, r->delimiter);
    if (end && (!space || *end))
        r->at = space ? end : end + strlen(r->delimiter);
    else
        r->at = NULL;
    r->splits -= r->splits > 0;
    *length = (size_t)((end ? end : r->end) - piece);
    return piece;
}

IGRT_LIB(string_split)
{
    (void)attr_f, (void)scratch, (void)scratch_bytes;
    if (nin != 2 || nout != 3 || in[0].dtype != IGRT_STRING || in[1].dtype != IGRT_U8 ||
        out[0].dtype != IGRT_STRING || out[1].dtype != IGRT_I64 || out[0].rank != in->rank + 1)
        return IGRT_ERR_UNSUPPORTED;
    const int64_t n = igrt_lib_numel(in, 0, in->rank), room = out->dims[in->rank];
    const char *const *x = in->data, *delimiter = in[1].data;
    const char **y = out->data;
    int64_t *pieces = out[1].data, most = 0;
    igrt_text text = igrt_text_begin(&out[2]);
    for (int64_t i = 0; i < n; i++) {
        Rest r = all_of(igrt_text_of(x[i]), delimiter, attr_i[0]);
        const int64_t letters = r.end - r.at;
        size_t length;
        pieces[i] = 0;
        for (int64_t k = 0; k <= letters && next_piece(&r, &length); k++)
            pieces[i]++;
        most = pieces[i] > most ? pieces[i] : most;
    }
    if (most > room)
        return IGRT_ERR_COUNT;
    for (int64_t i = 0; i < n; i++) {
        Rest r = all_of(igrt_text_of(x[i]), delimiter, attr_i[0]);
        for (int64_t k = 0; k < most; k++) {
            size_t length;
            const char *piece = next_piece(&r, &length);
            y[i * most + k] = piece ? text.at : "";
            if (piece && (!igrt_text_add(&text, piece, length) || !igrt_text_add(&text, "", 1)))
                return IGRT_ERR_TEXT;
        }
    }
    out->dims[in->rank] = most;
    counts[0] = most;
    return IGRT_OK;
}
