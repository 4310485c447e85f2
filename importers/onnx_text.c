/*
 * onnx_text.c - ONNX TfIdfVectorizer over integers: how often each n-gram of a pool occurs.
 *
 * The n-grams of one length are compared with all windows of the input at once. A skip count s
 * lets the elements of an n-gram be up to s + 1 places apart, equally spaced.
 */
#include <string.h>

#include "onnx.h"

#define X n->in[0]

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

static bool tfidf_read(Lowering *n, TfIdf *t)
{
    t->least = attr_int(n, "min_gram_length", 1);
    t->most = attr_int(n, "max_gram_length", 1);
    t->skips = attr_int(n, "max_skip_count", 0);
    t->n_counts = attr_ints(n, "ngram_counts", &t->counts);
    t->n_indexes = attr_ints(n, "ngram_indexes", &t->indexes);
    t->n_pool = attr_ints(n, "pool_int64s", &t->pool);
    if (t->n_pool < 0) {
        unsupported(n, "only pools of integers are supported");
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
    t->x = as(n, ingot_rank(X) == 1 ? ingot_unsqueeze(n->c, X, 0) : X, INGOT_I64);
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
