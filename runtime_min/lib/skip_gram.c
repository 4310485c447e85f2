/*
 * skip_gram.c - runs of words of a sentence, some of which may be left out (TensorFlow Lite's
 * SKIP_GRAM).
 *
 *   in      0: strings; the first one is the sentence
 *   out     0: strings [m]: words with a space between them
 *           1: u8, room for their text
 *   attr_i  0: n, words of a run
 *           1: at most so many words are left out between two of them
 *           2: 1: shorter runs too
 *   scratch IGRT_SKIP_GRAM_SCRATCH(n)
 *   counts  0: m, at most the bound that out[0] has on entry
 *
 * Runs come in the order of their words; shorter ones follow those that begin like them. A sentence
 * of fewer than n words has none.
 */
#include "igrt_text.h"

typedef struct GramWord {
    const char *at;
    int64_t size;
    int64_t number;
} GramWord;

/* As isspace() of the C locale. */
static int is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* From s, the first byte that is a space (or is none). */
static const char *find_space(const char *s, const char *end, int space)
{
    for (ptrdiff_t most = end - s; most > 0 && is_space(*s) != space; most--)
        s++;
    return s;
}

/* The word that begins at `from` or behind it; 0 if there is none. */
static int next_word(const char *from, const char *end, GramWord *w)
{
    w->at = find_space(from, end, 0);
    w->size = find_space(w->at, end, 1) - w->at;
    w->number++;
    return w->size > 0;
}

/* TensorFlow Lite takes the first byte for one of a word. If it is a space, this word is dropped,
 * unless it is the only one. */
static int first_word(const char *text, const char *end, GramWord *w)
{
    const char *behind = text < end ? find_space(text + 1, end, 1) : end;
    w->number = -1;
    if (text == end || !is_space(*text))
        return next_word(text, end, w);
    if (behind < end)
        return next_word(behind, end, w);
    w->at = text;
    w->size = end - text;
    w->number = 0;
    return 1;
}

/* A bound of the steps that the search takes: twice as many as there are beginnings of runs. */
static int64_t most_steps(int64_t words, int64_t n, int64_t skips)
{
    const int64_t most = INT64_MAX / 8, choices = skips < words ? skips + 1 : words;
    int64_t level = words, all = words;
    for (int64_t k = 1; k < n && all < most; k++) {
        level = choices > 0 && level > most / choices ? most : level * choices;
        all = level > most - all ? most : all + level;
    }
    return 2 * all + 2;
}

static int add_run(igrt_text *text, const GramWord *w, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if ((i && !igrt_text_add(text, " ", 1)) || !igrt_text_add(text, w[i].at, (size_t)w[i].size))
            return 0;
    return igrt_text_add(text, "", 1);
}

static int64_t count_words(const char *sentence, const char *end)
{
    GramWord w;
    int64_t words = 0;
    int more = first_word(sentence, end, &w);
    for (int64_t most = end - sentence; most > 0 && more; most--) {
        more = next_word(w.at + w.size, end, &w);
        words++;
    }
    return words;
}

IGRT_LIB(skip_gram)
{
    (void)attr_f;
    const int64_t n = attr_i[0], skips = attr_i[1], shorter = attr_i[2];
    if (nin != 1 || nout != 2 || in[0].dtype != IGRT_STRING || out[0].dtype != IGRT_STRING || n < 1)
        return IGRT_ERR_UNSUPPORTED;
    if (scratch_bytes < IGRT_SKIP_GRAM_SCRATCH(n))
        return IGRT_ERR_SCRATCH;
    GramWord *run = scratch;
    const char *const *x = in->data;
    const char **y = out->data;
    const char *sentence = igrt_text_of(igrt_lib_numel(in, 0, in->rank) > 0 ? x[0] : NULL);
    const char *end = sentence + strlen(sentence);
    const int64_t words = count_words(sentence, end), room = out->dims[0];
    igrt_text text = igrt_text_begin(&out[1]);
    int64_t m = 0, size = 0, steps = 0;
    if (words >= n) {
        steps = most_steps(words, n, skips);
        first_word(sentence, end, &run[size++]);
        if (n > 1)
            run[1] = run[0];
    }
    /* run[0..size) is there; run[size]: the word that was tried last at this place, or the one
     * before it */
    for (int64_t i = 0; i < steps && size >= 0; i++) {
        if (size < n && (size == 0 || run[size].number - run[size - 1].number <= skips)) {
            GramWord next = run[size];
            if (next_word(next.at + next.size, end, &next)) {
                run[size++] = next;
                if (size < n)
                    run[size] = next;
                continue;
            }
        }
        if (size == n || (size > 0 && shorter)) {
            if (m == room)
                return IGRT_ERR_COUNT;
            y[m++] = text.at;
            if (!add_run(&text, run, size))
                return IGRT_ERR_TEXT;
        }
        size--;
    }
    out->dims[0] = m;
    counts[0] = m;
    return IGRT_OK;
}
