/*
 * tflite_segment.c - segments, buckets, diagonals, sparse lists, boxes.
 */
#include <math.h>

#include "tflite_model.h"

#define X n->in[0]
#define Y n->in[1]

/* ---- segments: rows that have one number are combined -----------------------------------------
 */

/* out[ids[i]] is combined with x[i]; ids: [n], x: [n, ..]; numbers that are none are dropped. */
static ingot_tensor *combined(TfliteNode *n, ingot_tensor *x, ingot_tensor *ids, int64_t count,
                              double begin, ingot_update_op op)
{
    ingot_context *c = n->c;
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_tensor *index[INGOT_MAX_RANK];
    if (ingot_is_poison(x) || ingot_is_poison(ids))
        return ingot_poison(c);
    const int rank = ingot_rank(x);
    tfl_shape(x, dims);
    index[0] = ids;
    for (int a = 1; a < rank; a++) {
        index[0] = ingot_unsqueeze(c, index[0], a);
        index[a] = ingot_iota(c, rank, dims, a);
    }
    index[0] = tfl_cast(n, index[0], INGOT_I64);
    dims[0] = tfl_dim(n, count);
    return ingot_update(c, op, ingot_expand(c, ingot_like(c, x, begin), rank, dims), x, index);
}

/* Numbers rise; there are as many rows as the last says. */
ingot_tensor *tflite_segment_sum(TfliteNode *n)
{
    enum { MOST = 1 << 20 };
    int64_t *ids = ingot_alloc(n->c, MOST * sizeof *ids);
    const int got = tfl_ints(n, 1, ids, MOST);
    if (got < 0)
        return ingot_poison(n->c);
    if (!got || ids[got - 1] < 0 || ids[got - 1] > 1000000000 || ingot_rank(X) < 1)
        return tfl_fault(n, "its segments are empty, or negative");
    return combined(n, X, Y, ids[got - 1] + 1, 0, INGOT_ADD);
}

static ingot_tensor *unsorted(TfliteNode *n, double begin, ingot_update_op op)
{
    int64_t count;
    if (!tfl_one_int(n, 2, &count) || ingot_is_poison(X) || ingot_is_poison(Y))
        return ingot_poison(n->c);
    const int rank = ingot_rank(Y);
    if (rank < 1 || rank > ingot_rank(X) || count < 0 || count > 1000000000)
        return tfl_fault(n, "it has %lld segments, by numbers of rank %d", (long long)count, rank);
    return combined(n, ingot_flatten(n->c, X, 0, rank), ingot_flatten(n->c, Y, 0, rank), count,
                    begin, op);
}

static double greatest(TfliteNode *n)
{
    return tfl_is_float(X) ? 3.4028234663852886e38 : 2147483647;
}

ingot_tensor *tflite_unsorted_sum(TfliteNode *n)
{
    return unsorted(n, 0, INGOT_ADD);
}

ingot_tensor *tflite_unsorted_prod(TfliteNode *n)
{
    return unsorted(n, 1, INGOT_MUL);
}

ingot_tensor *tflite_unsorted_max(TfliteNode *n)
{
    return unsorted(n, tfl_is_float(X) ? -greatest(n) : -greatest(n) - 1, INGOT_MAX);
}

ingot_tensor *tflite_unsorted_min(TfliteNode *n)
{
    return unsorted(n, greatest(n), INGOT_MIN);
}

/* ---- buckets, lists, diagonals ----------------------------------------------------------------
 */

/* How many of the bounds are not above x. */
ingot_tensor *tflite_bucketize(TfliteNode *n)
{
    ingot_context *c = n->c;
    const ingot_tflite_list l = ingot_tflite_elements(&n->op->options, 0, 4);
    const int64_t count = (int64_t)l.n;
    const int rank = ingot_rank(X);
    float *v = ingot_alloc(c, (l.n + 1) * sizeof *v);
    for (size_t i = 0; i < l.n; i++)
        v[i] = ingot_tflite_f32(&l, i);
    if (!l.n || rank >= INGOT_MAX_RANK)
        return tfl_fault(n, "it has no bounds, or its input has rank %d", rank);
    ingot_tensor *x = ingot_unsqueeze(c, tfl_cast(n, X, INGOT_F32), rank);
    ingot_tensor *in = ingot_ge(c, x, ingot_data(c, NULL, INGOT_F32, 1, &count, v));
    return ingot_sum(c, ingot_cast(c, in, INGOT_I32), 1u << rank, false);
}

/* Indices (one, [n] or [n, rank]), the shape, values, what is elsewhere. */
ingot_tensor *tflite_sparse_to_dense(TfliteNode *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_context *c = n->c;
    const int rank = tfl_dims(n, 1, dims, INGOT_MAX_RANK);
    ingot_tensor *index = X, *v = n->in[2], *at[INGOT_MAX_RANK];
    if (rank < 1 || ingot_is_poison(index) || ingot_is_poison(v) || ingot_rank(index) > 2)
        return ingot_poison(c);
    index = tfl_cast(n, index, INGOT_I64);
    for (int a = 0; a < rank; a++) {
        at[a] = index;
        if (ingot_rank(index) == 2)
            at[a] = ingot_squeeze(c, ingot_slice(c, index, 1, tfl_dim(n, a), tfl_dim(n, 1), 1), 1);
    }
    return ingot_update(c, INGOT_SET, ingot_expand(c, n->in[3], rank, dims), v, at);
}

ingot_tensor *tflite_unique(TfliteNode *n)
{
    ingot_tensor *out[4];
    const bool wide = tfl_int(n, 0, 1, INGOT_TFLITE_INT32) == INGOT_TFLITE_INT64;
    ingot_unique(n->c, X, -1, false, out);
    if (ingot_is_poison(out[0]))
        return out[0];
    if (n->n_out > 1)
        n->out[1] = tfl_cast(n, out[2], wide ? INGOT_I64 : INGOT_I32);
    return out[0];
}

/* x [.., rows, columns] with d [.., k] on its diagonal. */
static ingot_tensor *with_diagonal(TfliteNode *n, ingot_tensor *x, ingot_tensor *d)
{
    ingot_dim *dims[INGOT_MAX_RANK], *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    ingot_context *c = n->c;
    if (ingot_is_poison(x) || ingot_is_poison(d))
        return ingot_poison(c);
    const int rank = ingot_rank(x);
    if (rank < 2 || ingot_rank(d) != rank - 1)
        return tfl_fault(n, "of rank %d a diagonal has not rank %d", rank, ingot_rank(d));
    tfl_shape(x, dims);
    for (int a = 0; a < rank - 1; a++)
        lo[a] = hi[a] = tfl_dim(n, 0);
    hi[rank - 2] = ingot_dim_sub(c, dims[rank - 2], ingot_shape(d, rank - 2));
    d = ingot_unsqueeze(c, ingot_pad(c, d, lo, hi), rank - 1);
    ingot_tensor *on =
        ingot_eq(c, ingot_iota(c, rank, dims, rank - 2), ingot_iota(c, rank, dims, rank - 1));
    return ingot_where(c, on, d, x);
}

ingot_tensor *tflite_matrix_set_diag(TfliteNode *n)
{
    return with_diagonal(n, X, Y);
}

ingot_tensor *tflite_matrix_diag(TfliteNode *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    const int rank = ingot_rank(X);
    if (rank < 1 || rank >= INGOT_MAX_RANK)
        return tfl_fault(n, "its input has rank %d", rank);
    tfl_shape(X, dims);
    dims[rank] = dims[rank - 1];
    return with_diagonal(n, ingot_expand(n->c, ingot_like(n->c, X, 0), rank + 1, dims), X);
}

/* ---- floats as if they had been integers ------------------------------------------------------
 */

/* The range is moved so that 0 is a whole number. */
ingot_tensor *tflite_fake_quant(TfliteNode *n)
{
    const ingot_tflite_table *o = &n->op->options;
    const int64_t bits = tfl_int(n, 2, 4, 0), narrow = tfl_int(n, 3, 1, 0) ? 1 : 0;
    const float lo = ingot_tflite_float(o, 0, 0), hi = ingot_tflite_float(o, 1, 0);
    if (bits < 2 || bits > 16 || !(hi > lo))
        return tfl_fault(n, "it has %lld bits, from %g to %g", (long long)bits, (double)lo,
                         (double)hi);
    const float least = (float)narrow, most = (float)((1 << bits) - 1);
    const float scale = (hi - lo) / (most - least), zero = least - lo / scale;
    const float z = zero < least ? least : zero > most ? most : roundf(zero);
    const float bottom = (least - z) * scale, top = (most - z) * scale;
    ingot_context *c = n->c;
    ingot_tensor *x = ingot_clamp(c, X, (double)bottom, (double)top);
    ingot_tensor *base = ingot_scalar_f(c, INGOT_F32, (double)bottom);
    x = ingot_mul(c, ingot_sub(c, x, base), ingot_scalar_f(c, INGOT_F32, (double)(1 / scale)));
    x = ingot_floor(c, ingot_add_c(c, x, 0.5));
    return ingot_add(c, ingot_mul(c, x, ingot_scalar_f(c, INGOT_F32, (double)scale)), base);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* boxes [N, 4], scores [N], how many, overlap, least score (and a softness, which has to be 0):
 * numbers of boxes, with zeros up to so many; their scores; how many they are. */
static ingot_tensor *suppressed(TfliteNode *n, bool scores)
{
    ingot_context *c = n->c;
    int64_t most;
    double iou, sigma = 0;
    if (!tfl_one_int(n, 2, &most) || most < 0 || most > 1000000 ||
        !ingot_const_float(c, n->in[3], &iou) ||
        (scores && !ingot_const_float(c, n->in[5], &sigma)))
        return tfl_unsupported(n, "how many boxes, or how they overlap, is not known when "
                                  "compiling");
    if (sigma != 0)
        return tfl_unsupported(n, "soft suppression (sigma %g) is not supported", sigma);
    const float below = nextafterf((float)iou, -INFINITY); /* an overlap of just that is one */
    ingot_tensor *kept =
        ingot_nms(c, ingot_unsqueeze(c, X, 0), ingot_unsqueeze(c, ingot_unsqueeze(c, Y, 0), 0),
                  ingot_scalar_i(c, INGOT_I64, most), ingot_scalar_f(c, INGOT_F32, (double)below),
                  n->in[4], false);
    if (ingot_is_poison(kept))
        return kept;
    ingot_dim *lo = tfl_dim(n, 0), *hi = ingot_dim_sub(c, tfl_dim(n, most), ingot_shape(kept, 0));
    kept = ingot_squeeze(c, ingot_slice(c, kept, 1, tfl_dim(n, 2), tfl_dim(n, 1), 1), 1);
    ingot_tensor *count = ingot_cast(c, ingot_from_dim(c, ingot_shape(kept, 0)), INGOT_I32);
    if (scores && n->n_out > 1)
        n->out[1] = ingot_pad(c, ingot_take(c, Y, kept, 0), &lo, &hi);
    if (n->n_out > 1 + scores)
        n->out[1 + scores] = count;
    return ingot_pad(c, ingot_cast(c, kept, INGOT_I32), &lo, &hi);
}

ingot_tensor *tflite_nms(TfliteNode *n)
{
    return suppressed(n, false);
}

ingot_tensor *tflite_nms_scores(TfliteNode *n)
{
    return suppressed(n, true);
}
