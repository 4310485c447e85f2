/*
 * onnx_text.c - ONNX operators on strings, and TfIdfVectorizer: how often each n-gram of a pool
 * occurs.
 *
 * N-grams of strings become those of integers: the places of the words in the sorted pool. The
 * n-grams of one length are compared with all windows of the input at once. A skip count s lets the
 * elements of an n-gram be up to s + 1 places apart, equally spaced.
 */
#include <string.h>

#include <stdlib.h>

#include "onnx.h"
#include "onnx_regex.h"

#define X n->in[0]

/* ---- strings -------------------------------------------------------------------------------- */

static int64_t string_bytes(const Lowering *n)
{
    const ingot_model_options *o = n->model->options;
    return o && o->string_bytes > 0 ? o->string_bytes : INGOT_STRING_BYTES;
}

ingot_tensor *onnx_string_concat(Lowering *n)
{
    return ingot_string_concat(n->c, X, n->in[1], string_bytes(n));
}

/* The locale is not looked at: cases are Unicode's. */
ingot_tensor *onnx_string_normalizer(Lowering *n)
{
    const char *const *words, *change = attr_string(n, "case_change_action", "NONE");
    int to_case = strcmp(change, "LOWER") == 0 ? 1 : strcmp(change, "UPPER") == 0 ? 2 : 0;
    if (to_case == 0 && strcmp(change, "NONE") != 0)
        return fault(n, "its case_change_action '%s' is unknown", change);
    int64_t count = attr_strings(n, "stopwords", &words);
    return ingot_string_normalize(n->c, X, count > 0 ? ingot_strings(n->c, 1, &count, words) : NULL,
                                  to_case, attr_int(n, "is_case_sensitive", 0) != 0,
                                  string_bytes(n));
}

ingot_tensor *onnx_string_split(Lowering *n)
{
    ingot_tensor *out[2];
    int64_t most = attr_int(n, "maxsplit", -1);
    ingot_string_split(n->c, X, attr_string(n, "delimiter", ""), most, string_bytes(n), out);
    n->out[1] = out[1];
    return out[0];
}

ingot_tensor *onnx_regex_full_match(Lowering *n)
{
    const char *pattern = attr_string(n, "pattern", ""), *why;
    const int32_t *program;
    int size = regex_compile(n->c, pattern, &program, &why);
    if (!size)
        return unsupported(n, "its pattern '%.200s': %s", pattern, why);
    return ingot_regex_match(n->c, X, size, program);
}

/* ---- n-grams -------------------------------------------------------------------------------- */

typedef struct {
    ingot_tensor *x; /* i64 [N, C] */
    int64_t least, most, skips;
    const int64_t *counts, *indexes, *pool;
    int n_counts, n_indexes, n_pool;
    int64_t size; /* columns of the result */
} TfIdf;

/* How often each of `grams` n-grams of length k, from pool[from] on, occurs: f32 [N, grams] */
static ingot_tensor *count_grams(Lowering *n, const TfIdf *t, int64_t k, int64_t from,
                                 int64_t grams)
{
    int64_t length, dims[2] = {grams, k};
    ingot_tensor *pool = const_i64(n, 2, dims, t->pool + from), *sum = NULL;
    ingot_dim *zero[2] = {ingot_shape(t->x, 0), dim(n, grams)};
    if (!ingot_dim_is_const(ingot_shape(t->x, 1), &length))
        return unsupported(n, "the length of its input is not known when compiling");
    for (int64_t skip = 0; skip <= (k == 1 ? 0 : t->skips) && (k - 1) * (skip + 1) < length;
         skip++) {
        ingot_tensor *same = NULL, *windows = ingot_window(n->c, t->x, 1, k, 1, skip + 1);
        for (int64_t i = 0; i < k; i++) {
            ingot_tensor *x = ingot_slice(n->c, windows, 2, dim(n, i), dim(n, 1), 1);
            ingot_tensor *gram = ingot_slice(n->c, pool, 1, dim(n, i), dim(n, 1), 1);
            ingot_tensor *eq = ingot_eq(n->c, x, ingot_squeeze(n->c, gram, 1));
            same = same ? ingot_and(n->c, same, eq) : eq;
        }
        same = ingot_sum(n->c, as(n, same, INGOT_F32), 1u << 1, false);
        sum = sum ? ingot_add(n->c, sum, same) : same;
    }
    return sum ? sum : ingot_expand(n->c, ingot_scalar_f(n->c, INGOT_F32, 0), 2, zero);
}

/* Adds the counts of n-grams id.. of length k into the columns that they belong to. */
static ingot_tensor *add_grams(Lowering *n, const TfIdf *t, ingot_tensor *y, int64_t k, int64_t id,
                               int64_t from, int64_t grams)
{
    ingot_tensor *v = count_grams(n, t, k, from, grams);
    ingot_dim *dims[2] = {ingot_shape(t->x, 0), dim(n, grams)};
    ingot_tensor *column = const_i64(n, 1, &grams, t->indexes + id);
    return ingot_update(n->c, INGOT_ADD, y, v,
                        (ingot_tensor *[]){ingot_iota(n->c, 2, dims, 0), column});
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The pool of strings as integers: their places in the sorted list *keys. */
static void number_words(Lowering *n, TfIdf *t, const char *const *words, ingot_tensor **keys)
{
    const char **sorted = ingot_alloc(n->c, ((size_t)t->n_pool + 1) * sizeof *sorted);
    int64_t *pool = ingot_alloc(n->c, ((size_t)t->n_pool + 1) * sizeof *pool), count = 0;
    for (int i = 0; i < t->n_pool; i++)
        sorted[i] = words[i];
    qsort(sorted, (size_t)t->n_pool, sizeof *sorted, compare_words);
    for (int i = 0; i < t->n_pool; i++)
        if (count == 0 || strcmp(sorted[count - 1], sorted[i]) != 0)
            sorted[count++] = sorted[i];
    for (int i = 0; i < t->n_pool; i++) {
        const char **at = bsearch(&words[i], sorted, (size_t)count, sizeof *sorted, compare_words);
        pool[i] = at - sorted;
    }
    t->pool = pool;
    *keys = ingot_strings(n->c, 1, &count, sorted);
}

static bool tfidf_read(Lowering *n, TfIdf *t)
{
    const char *const *words;
    ingot_tensor *keys = NULL;
    t->least = attr_int(n, "min_gram_length", 1);
    t->most = attr_int(n, "max_gram_length", 1);
    t->skips = attr_int(n, "max_skip_count", 0);
    t->n_counts = attr_ints(n, "ngram_counts", &t->counts);
    t->n_indexes = attr_ints(n, "ngram_indexes", &t->indexes);
    t->n_pool = attr_ints(n, "pool_int64s", &t->pool);
    if (t->n_pool < 0 && (t->n_pool = attr_strings(n, "pool_strings", &words)) > 0)
        number_words(n, t, words, &keys);
    if (t->n_pool < 0 || (keys != NULL) != (ingot_dtype_of(X) == INGOT_STRING)) {
        fault(n, "its pool is missing, or of another type than its input");
        return false;
    }
    if (n->failed || t->n_counts < 0 || t->n_indexes < 1 || t->least < 1 || t->most < t->least ||
        t->skips < 0 || t->skips > ONNX_MAX_LIST || ingot_rank(X) < 1 || ingot_rank(X) > 2) {
        fault(n, "its attributes or the rank of its input do not fit");
        return false;
    }
    for (int i = 0; i < t->n_indexes; i++) {
        if (t->indexes[i] < 0 || t->indexes[i] >= INT32_MAX) {
            fault(n, "its attribute 'ngram_indexes' has the entry %lld", (long long)t->indexes[i]);
            return false;
        }
        t->size = t->indexes[i] >= t->size ? t->indexes[i] + 1 : t->size;
    }
    t->x = ingot_rank(X) == 1 ? ingot_unsqueeze(n->c, X, 0) : X;
    t->x = keys ? ingot_lookup(n->c, t->x, keys) : as(n, t->x, INGOT_I64);
    return true;
}

/* TF: the counts; IDF: the weights of those that occur; TFIDF: both. */
static ingot_tensor *weigh(Lowering *n, const TfIdf *t, ingot_tensor *y)
{
    const float *given;
    const char *mode = attr_string(n, "mode", "TF");
    int count = attr_floats(n, "weights", &given);
    bool idf = strcmp(mode, "IDF") == 0;
    if (!idf && strcmp(mode, "TF") != 0 && strcmp(mode, "TFIDF") != 0)
        return fault(n, "its mode '%s' is unknown", mode);
    if (idf)
        y = as(n, ingot_gt(n->c, y, like(n, y, 0)), INGOT_F32);
    if (strcmp(mode, "TF") == 0 || count <= 0)
        return y;
    if (count < t->size)
        return fault(n, "it has %d weights for %lld columns", count, (long long)t->size);
    return ingot_mul(n->c, y, ingot_data(n->c, NULL, INGOT_F32, 1, &t->size, given));
}

ingot_tensor *onnx_tfidf_vectorizer(Lowering *n)
{
    TfIdf t = {.size = 0};
    int64_t id = 0;
    if (!tfidf_read(n, &t))
        return ingot_poison(n->c);
    ingot_dim *dims[2] = {ingot_shape(t.x, 0), dim(n, t.size)};
    ingot_tensor *y = ingot_expand(n->c, ingot_scalar_f(n->c, INGOT_F32, 0), 2, dims);
    for (int i = 0; i < t.n_counts; i++) {
        int64_t from = t.counts[i], end = i + 1 < t.n_counts ? t.counts[i + 1] : t.n_pool,
                k = i + 1;
        if (from < 0 || end < from || end > t.n_pool || (end - from) % k ||
            id + (end - from) / k > t.n_indexes)
            return fault(n, "its attribute 'ngram_counts' does not fit its pool");
        int64_t grams = (end - from) / k;
        if (grams && k >= t.least && k <= t.most)
            y = add_grams(n, &t, y, k, id, from, grams);
        id += grams;
    }
    y = weigh(n, &t, y);
    return ingot_rank(X) == 1 && !ingot_is_poison(y) ? ingot_squeeze(n->c, y, 0) : y;
}
