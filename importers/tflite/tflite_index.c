/*
 * tflite_index.c - reductions, and operators whose indices are data.
 */
#include "tflite_model.h"

#define X n->in[0]
#define Y n->in[1]

/* ---- reductions ------------------------------------------------------------------------------ */

static ingot_tensor *reduced(TfliteNode *n, ingot_reduce_op op)
{
    unsigned axes;
    if (!tfl_axes(n, 1, ingot_rank(X), &axes))
        return ingot_poison(n->c);
    return ingot_reduce(n->c, op, X, axes, tfl_int(n, 0, 1, 0) != 0);
}

ingot_tensor *tflite_reduce_max(TfliteNode *n)
{
    return reduced(n, INGOT_REDUCE_MAX);
}

ingot_tensor *tflite_reduce_min(TfliteNode *n)
{
    return reduced(n, INGOT_REDUCE_MIN);
}

/* Of bools: as bytes, for bools have no maximum. */
static ingot_tensor *of_bools(TfliteNode *n, ingot_reduce_op op)
{
    unsigned axes;
    if (!tfl_axes(n, 1, ingot_rank(X), &axes))
        return ingot_poison(n->c);
    ingot_tensor *y =
        ingot_reduce(n->c, op, tfl_cast(n, X, INGOT_U8), axes, tfl_int(n, 0, 1, 0) != 0);
    return tfl_cast(n, y, INGOT_BOOL);
}

/* Of bools a sum is "any", a product "all". */
ingot_tensor *tflite_sum(TfliteNode *n)
{
    return tfl_is_bool(X) ? of_bools(n, INGOT_REDUCE_MAX) : reduced(n, INGOT_REDUCE_ADD);
}

ingot_tensor *tflite_reduce_prod(TfliteNode *n)
{
    return tfl_is_bool(X) ? of_bools(n, INGOT_REDUCE_MIN) : reduced(n, INGOT_REDUCE_MUL);
}

ingot_tensor *tflite_reduce_any(TfliteNode *n)
{
    return of_bools(n, INGOT_REDUCE_MAX);
}

ingot_tensor *tflite_reduce_all(TfliteNode *n)
{
    return of_bools(n, INGOT_REDUCE_MIN);
}

/* Of integers the quotient is truncated. */
ingot_tensor *tflite_mean(TfliteNode *n)
{
    unsigned axes;
    const int rank = ingot_rank(X);
    if (!tfl_axes(n, 1, rank, &axes))
        return ingot_poison(n->c);
    const bool keep = tfl_int(n, 0, 1, 0) != 0;
    if (tfl_is_float(X))
        return ingot_mean(n->c, X, axes, keep);
    ingot_dim *count = tfl_dim(n, 1);
    for (int a = 0; a < rank; a++)
        if (axes >> a & 1)
            count = ingot_dim_mul(n->c, count, ingot_shape(X, a));
    ingot_tensor *sum = ingot_sum(n->c, tfl_cast(n, X, INGOT_I64), axes, keep);
    return tfl_cast(n, ingot_div(n->c, sum, ingot_from_dim(n->c, count)), ingot_dtype_of(X));
}

static ingot_tensor *extreme(TfliteNode *n,
                             ingot_tensor *(*f)(ingot_context *, ingot_tensor *, int, bool, bool))
{
    int64_t given;
    int axis;
    if (!tfl_one_int(n, 1, &given) || !tfl_axis(n, given, ingot_rank(X), &axis))
        return ingot_poison(n->c);
    ingot_dtype dtype = tfl_out_dtype(n);
    const int64_t type = tfl_int(n, 0, 1, INGOT_TFLITE_FLOAT32); /* which is none: not said */
    if (type == INGOT_TFLITE_INT32 || type == INGOT_TFLITE_INT64)
        tflite_dtype((ingot_tflite_type)type, &dtype);
    return tfl_cast(n, f(n->c, X, axis, false, false), dtype);
}

ingot_tensor *tflite_arg_max(TfliteNode *n)
{
    return extreme(n, ingot_argmax);
}

ingot_tensor *tflite_arg_min(TfliteNode *n)
{
    return extreme(n, ingot_argmin);
}

ingot_tensor *tflite_cumsum(TfliteNode *n)
{
    int64_t given;
    int axis;
    if (!tfl_one_int(n, 1, &given) || !tfl_axis(n, given, ingot_rank(X), &axis))
        return ingot_poison(n->c);
    return ingot_cumsum(n->c, X, axis, tfl_int(n, 0, 1, 0) != 0, tfl_int(n, 1, 1, 0) != 0);
}

/* ---- indices from data ----------------------------------------------------------------------- */

ingot_tensor *tflite_topk(TfliteNode *n)
{
    ingot_dim *k;
    ingot_tensor *out[2];
    if (tfl_dims(n, 1, &k, 1) != 1 || n->n_out < 2 || ingot_rank(X) < 1)
        return ingot_poison(n->c);
    ingot_topk(n->c, X, k, -1, true, out);
    const bool half = n->to[1] && n->to[1]->type == INGOT_TFLITE_INT16;
    n->out[1] = tfl_cast(n, out[1], half ? INGOT_I16 : INGOT_I32);
    return out[0];
}

/* [n, rank] of the places that are not zero. */
ingot_tensor *tflite_where(TfliteNode *n)
{
    ingot_tensor *places = ingot_nonzero(n->c, X);
    return ingot_is_poison(places) ? places : ingot_transpose(n->c, places, 0, 1);
}

/* The first `batch` axes of x and of the index are the same. */
static ingot_tensor *gather_batched(TfliteNode *n, int axis, int batch)
{
    const int rank = ingot_rank(X), ri = ingot_rank(Y), out = rank - 1 + ri - batch;
    ingot_dim *dims[2 * INGOT_MAX_RANK];
    ingot_tensor *index[INGOT_MAX_RANK];
    if (out > INGOT_MAX_RANK || batch > axis || batch > ri)
        return tfl_fault(n, "its batch of %d axes is more than its axis %d, or its index has",
                         batch, axis);
    for (int i = 0; i < out; i++)
        dims[i] = i < axis                ? ingot_shape(X, i)
                  : i < axis + ri - batch ? ingot_shape(Y, i - axis + batch)
                                          : ingot_shape(X, i - (ri - batch) + 1);
    ingot_tensor *at =
        tfl_cast(n, Y, INGOT_I64); /* [batch.., index..] -> among the result's axes */
    for (int i = batch; i < axis; i++)
        at = ingot_unsqueeze(n->c, at, i);
    while (!ingot_is_poison(at) && ingot_rank(at) < out)
        at = ingot_unsqueeze(n->c, at, ingot_rank(at));
    for (int a = 0; a < rank; a++)
        index[a] = a == axis ? at : ingot_iota(n->c, out, dims, a < axis ? a : a - 1 + ri - batch);
    return ingot_gather(n->c, X, index);
}

ingot_tensor *tflite_gather(TfliteNode *n)
{
    int axis;
    int64_t batch = tfl_int(n, 1, 4, 0);
    if (!tfl_axis(n, tfl_int(n, 0, 4, 0), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    batch = batch < 0 ? batch + ingot_rank(Y) : batch;
    if (batch < 0 || batch > ingot_rank(Y))
        return tfl_fault(n, "its batch_dims is %lld", (long long)batch);
    return batch ? gather_batched(n, axis, (int)batch) : ingot_take(n->c, X, Y, axis);
}

ingot_tensor *tflite_gather_nd(TfliteNode *n)
{
    return ingot_gather_nd(n->c, X, Y, 0);
}

/* Rows of a table: input 0 has their numbers. */
ingot_tensor *tflite_embedding_lookup(TfliteNode *n)
{
    return ingot_take(n->c, Y, X, 0);
}

/* Rows (input 0) times weights (3) are added where their places [n, k] (1) but for the last number
 * agree, in a tensor of the shape (2) but for the last size; a MEAN is that by the sum of the
 * weights, SQRTN by the root of the sum of their squares. */
ingot_tensor *tflite_embedding_sparse(TfliteNode *n)
{
    ingot_context *c = n->c;
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_tensor *rows = n->in[4], *w = n->in[3];
    const int64_t combiner = tfl_int(n, 0, 1, 0);
    const int k = tfl_dims(n, 2, dims, INGOT_MAX_RANK), rank = ingot_rank(rows);
    if (k < 0)
        return ingot_poison(c);
    if (k < 2 || rank < 1 || k - 2 + rank > INGOT_MAX_RANK || ingot_rank(Y) != 2)
        return tfl_fault(n, "its shape has %d sizes, its rows %d axes", k, rank);
    for (int a = 1; a < rank; a++)
        dims[k - 2 + a] = ingot_shape(rows, a);
    ingot_tensor *place = ingot_slice(c, Y, 1, tfl_dim(n, 0), tfl_dim(n, k - 1), 1);
    place = tfl_cast(n, place, INGOT_I64);
    ingot_tensor *zero = ingot_scalar_f(c, INGOT_F32, 0);
    ingot_tensor *zeros = ingot_expand(c, zero, k - 2 + rank, dims);
    ingot_tensor *total = ingot_expand(c, zero, k - 1, dims);
    total = ingot_scatter_nd(c, INGOT_ADD, total, place, combiner == 2 ? ingot_mul(c, w, w) : w);
    while (!ingot_is_poison(w) && ingot_rank(w) < rank)
        w = ingot_unsqueeze(c, w, ingot_rank(w));
    ingot_tensor *v = ingot_mul(c, ingot_take(c, rows, X, 0), w);
    ingot_tensor *y = ingot_scatter_nd(c, INGOT_ADD, zeros, place, v);
    if (combiner == 0)
        return y;
    total = combiner == 2 ? ingot_sqrt(c, total) : total;
    while (!ingot_is_poison(total) && ingot_rank(total) < k - 2 + rank)
        total = ingot_unsqueeze(c, total, ingot_rank(total));
    ingot_tensor *none = ingot_eq(c, total, zero);
    return ingot_where(c, none, y, ingot_div(c, y, total));
}

/* Values are added where indices meet. */
ingot_tensor *tflite_scatter_nd(TfliteNode *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    const int rank = tfl_dims(n, 2, dims, INGOT_MAX_RANK);
    if (rank < 0)
        return ingot_poison(n->c);
    ingot_tensor *zeros = ingot_expand(n->c, ingot_like(n->c, Y, 0), rank, dims);
    return ingot_scatter_nd(n->c, INGOT_ADD, zeros, X, Y);
}

ingot_tensor *tflite_one_hot(TfliteNode *n)
{
    ingot_dim *depth;
    const int64_t given = tfl_int(n, 0, 4, 0);
    int axis;
    if (tfl_dims(n, 1, &depth, 1) != 1 || !tfl_axis(n, given, ingot_rank(X) + 1, &axis))
        return ingot_poison(n->c);
    /* a negative index is that of no element, and does not count from the end */
    ingot_tensor *index = tfl_cast(n, X, INGOT_I64);
    ingot_tensor *below = ingot_lt(n->c, index, ingot_like(n->c, index, 0));
    index = ingot_where(n->c, below, ingot_from_dim(n->c, depth), index);
    return ingot_one_hot(n->c, index, depth, axis, n->in[3], n->in[2]);
}
