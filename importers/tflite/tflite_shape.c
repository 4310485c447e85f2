/*
 * tflite_shape.c - operators that move elements or make tensors of sizes: reshape, transpose,
 * concat, pad, tile and the like. (Those that cut are in tflite_slice.c.)
 *
 * Elements go through as they are, integers that stand for real numbers too, for input and output
 * have the same scale; what is new (padding) is the zero point.
 */
#include "tflite_model.h"

#define X n->in[0]
#define Y n->in[1]

/* New sizes: input 1, or the option of old files. */
static int new_shape(TfliteNode *n, ingot_dim **dims)
{
    if (tfl_in(n, 1))
        return tfl_dims(n, 1, dims, INGOT_MAX_RANK);
    const ingot_tflite_list l = ingot_tflite_elements(&n->op->options, 0, 4);
    if (l.n > INGOT_MAX_RANK) {
        tfl_unsupported(n, "a result of rank %zu is not supported", l.n);
        return -1;
    }
    for (size_t i = 0; i < l.n; i++)
        dims[i] = tfl_dim(n, ingot_tflite_i32(&l, i));
    return (int)l.n;
}

ingot_tensor *tflite_reshape(TfliteNode *n)
{
    ingot_dim *dims[INGOT_MAX_RANK], *known = tfl_dim(n, 1);
    const int rank = new_shape(n, dims);
    int free_axis = -1;
    if (rank < 0)
        return ingot_poison(n->c);
    for (int i = 0; i < rank; i++) {
        int64_t size;
        if (!ingot_dim_is_const(dims[i], &size) || size >= 0) {
            known = ingot_dim_mul(n->c, known, dims[i]);
            continue;
        }
        if (free_axis >= 0 || size != -1)
            return tfl_fault(n, "its new shape has more than one free size, or %lld",
                             (long long)size);
        free_axis = i;
    }
    if (free_axis >= 0) {
        int64_t size;
        if (ingot_dim_is_const(known, &size) && size == 0)
            return tfl_fault(n, "its new shape has a -1 and a 0, so the -1 has no definite value");
        dims[free_axis] = ingot_dim_div(n->c, ingot_numel(n->c, X), known);
    }
    return ingot_reshape(n->c, X, rank, dims);
}

ingot_tensor *tflite_squeeze(TfliteNode *n)
{
    const ingot_tflite_list l = ingot_tflite_elements(&n->op->options, 0, 4);
    const int rank = ingot_rank(X);
    unsigned gone = 0;
    for (size_t i = 0; i < l.n; i++) {
        int axis;
        if (!tfl_axis(n, ingot_tflite_i32(&l, i), rank, &axis))
            return ingot_poison(n->c);
        gone |= 1u << axis;
    }
    ingot_tensor *y = X;
    for (int a = rank; a-- > 0;) {
        int64_t size;
        const bool one = ingot_dim_is_const(ingot_shape(X, a), &size) && size == 1;
        if (l.n ? gone >> a & 1 : one)
            y = ingot_squeeze(n->c, y, a);
    }
    return y;
}

ingot_tensor *tflite_expand_dims(TfliteNode *n)
{
    int64_t given;
    int axis;
    if (!tfl_one_int(n, 1, &given) || !tfl_axis(n, given, ingot_rank(X) + 1, &axis))
        return ingot_poison(n->c);
    return ingot_unsqueeze(n->c, X, axis);
}

ingot_tensor *tflite_transpose(TfliteNode *n)
{
    int64_t given[INGOT_MAX_RANK];
    int perm[INGOT_MAX_RANK];
    const int rank = ingot_rank(X), got = tfl_ints(n, 1, given, INGOT_MAX_RANK);
    if (got < 0)
        return ingot_poison(n->c);
    if (got != rank)
        return tfl_fault(n, "its permutation has %d axes, its input %d", got, rank);
    for (int i = 0; i < rank; i++)
        if (!tfl_axis(n, given[i], rank, &perm[i]))
            return ingot_poison(n->c);
    return ingot_permute(n->c, X, perm);
}

ingot_tensor *tflite_shape(TfliteNode *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    tfl_shape(X, dims);
    return tfl_cast(n, ingot_from_dims(n->c, ingot_rank(X), dims), tfl_out_dtype(n));
}

ingot_tensor *tflite_rank(TfliteNode *n)
{
    return ingot_scalar_i(n->c, INGOT_I32, ingot_rank(X));
}

/* ---- several tensors ------------------------------------------------------------------------- */

ingot_tensor *tflite_concatenation(TfliteNode *n)
{
    int axis;
    if (!tfl_axis(n, tfl_int(n, 0, 4, 0), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    ingot_tensor *y = ingot_concat(n->c, n->n_in, n->in, axis);
    return tfl_activate(n, y, tfl_int(n, 1, 1, 0));
}

ingot_tensor *tflite_pack(TfliteNode *n)
{
    int axis;
    if (!tfl_axis(n, tfl_int(n, 1, 4, 0), ingot_rank(X) + 1, &axis))
        return ingot_poison(n->c);
    return ingot_stack(n->c, n->n_in, n->in, axis);
}

ingot_tensor *tflite_unpack(TfliteNode *n)
{
    int axis;
    if (!tfl_axis(n, tfl_int(n, 1, 4, 0), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    for (int i = 0; i < n->n_out; i++)
        n->out[i] =
            ingot_squeeze(n->c, ingot_slice(n->c, X, axis, tfl_dim(n, i), tfl_dim(n, 1), 1), axis);
    return n->out[0];
}

/* ---- repeating ------------------------------------------------------------------------------- */

ingot_tensor *tflite_tile(TfliteNode *n)
{
    ingot_dim *repeats[INGOT_MAX_RANK];
    const int got = tfl_dims(n, 1, repeats, INGOT_MAX_RANK);
    if (got < 0)
        return ingot_poison(n->c);
    if (got != ingot_rank(X))
        return tfl_fault(n, "it has %d repeats, its input %d axes", got, ingot_rank(X));
    return ingot_tile(n->c, X, repeats);
}

ingot_tensor *tflite_broadcast_to(TfliteNode *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    const int rank = tfl_dims(n, 1, dims, INGOT_MAX_RANK);
    return rank < 0 ? ingot_poison(n->c) : ingot_expand(n->c, X, rank, dims);
}

/* The shape that two shapes broadcast to. */
ingot_tensor *tflite_broadcast_args(TfliteNode *n)
{
    ingot_dim *a[INGOT_MAX_RANK], *b[INGOT_MAX_RANK], *dims[INGOT_MAX_RANK];
    const int na = tfl_dims(n, 0, a, INGOT_MAX_RANK), nb = tfl_dims(n, 1, b, INGOT_MAX_RANK);
    const int rank = na > nb ? na : nb;
    if (na < 0 || nb < 0)
        return ingot_poison(n->c);
    for (int i = 0; i < rank; i++) {
        ingot_dim *x = i < rank - na ? tfl_dim(n, 1) : a[i - (rank - na)];
        ingot_dim *y = i < rank - nb ? tfl_dim(n, 1) : b[i - (rank - nb)];
        dims[i] = ingot_dim_equal(x, tfl_dim(n, 1)) ? y : x;
    }
    return tfl_cast(n, ingot_from_dims(n->c, rank, dims), ingot_dtype_of(X));
}

ingot_tensor *tflite_fill(TfliteNode *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    const int rank = tfl_dims(n, 0, dims, INGOT_MAX_RANK);
    return rank < 0 ? ingot_poison(n->c) : ingot_expand(n->c, Y, rank, dims);
}

ingot_tensor *tflite_zeros_like(TfliteNode *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    tfl_shape(X, dims);
    return ingot_expand(n->c, ingot_like(n->c, X, 0), ingot_rank(X), dims);
}

/* start, start + step .. before limit: as many as are known before the run. */
ingot_tensor *tflite_range(TfliteNode *n)
{
    double v[3];
    ingot_dim *d[3];
    for (int i = 0; i < 3; i++)
        if (ingot_is_poison(n->in[i]))
            return n->in[i];
    if (tfl_is_float(X)) {
        for (int i = 0; i < 3; i++)
            if (!ingot_const_float(n->c, n->in[i], &v[i]))
                return tfl_unsupported(n, "its inputs are not known when compiling");
        const double count = v[2] == 0 ? -1 : (v[1] - v[0]) / v[2];
        if (!(count >= 0 && count < 1e9))
            return tfl_fault(n, "from %g to %g in steps of %g there are no elements", v[0], v[1],
                             v[2]);
        const int64_t whole = (int64_t)count;
        return ingot_range(n->c, tfl_dim(n, whole + ((double)whole < count)), X, n->in[2]);
    }
    int64_t step;
    for (int i = 0; i < 3; i++)
        if (tfl_dims(n, i, &d[i], 1) != 1)
            return ingot_poison(n->c);
    if (!ingot_dim_is_const(d[2], &step) || step == 0)
        return tfl_unsupported(n, "its step is 0, or not known when compiling");
    ingot_dim *span = step > 0 ? ingot_dim_sub(n->c, d[1], d[0]) : ingot_dim_sub(n->c, d[0], d[1]);
    step = step > 0 ? step : -step;
    ingot_dim *count =
        ingot_dim_div(n->c, ingot_dim_add(n->c, span, tfl_dim(n, step - 1)), tfl_dim(n, step));
    return ingot_range(n->c, ingot_dim_max(n->c, count, tfl_dim(n, 0)), X, n->in[2]);
}

/* ---- pads ------------------------------------------------------------------------------------ */

/* [rank, 2] of input 1: before and behind each axis. */
static bool pads_of(TfliteNode *n, ingot_dim **lo, ingot_dim **hi)
{
    ingot_dim *all[2 * INGOT_MAX_RANK];
    const int rank = ingot_rank(X), got = tfl_dims(n, 1, all, 2 * INGOT_MAX_RANK);
    if (got >= 0 && got != 2 * rank)
        tfl_fault(n, "it has %d pads, for %d axes", got, rank);
    for (int i = 0; i < rank && got == 2 * rank; i++) {
        lo[i] = all[2 * i];
        hi[i] = all[2 * i + 1];
    }
    return got == 2 * rank;
}

ingot_tensor *tflite_pad(TfliteNode *n)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    if (!pads_of(n, lo, hi))
        return ingot_poison(n->c);
    ingot_tensor *value = tfl_in(n, 2);
    if (value && ingot_rank(value) == 1)
        value = ingot_squeeze(n->c, value, 0);
    if (!value)
        value = tfl_quantized(n->ti[0]) ? ingot_like(n->c, X, tfl_zero(n->ti[0]))
                                        : ingot_like(n->c, X, 0);
    return ingot_pad_value(n->c, X, lo, hi, value);
}

/* Of {a b c} REFLECT (0) makes {c b | a b c | b a}, SYMMETRIC {b a | a b c | c b}: the axis is read
 * in an order that is known now. */
ingot_tensor *tflite_mirror_pad(TfliteNode *n)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    const int64_t again = tfl_int(n, 0, 1, 0) ? 1 : 0;
    ingot_tensor *y = X;
    if (!pads_of(n, lo, hi))
        return ingot_poison(n->c);
    for (int a = 0; a < ingot_rank(X); a++) {
        int64_t size, before, behind;
        if (!ingot_dim_is_const(lo[a], &before) || !ingot_dim_is_const(hi[a], &behind) ||
            !ingot_dim_is_const(ingot_shape(X, a), &size))
            return tfl_unsupported(n, "its sizes are not known when compiling");
        const int64_t most = size - 1 + again, all = before + size + behind;
        if (before < 0 || behind < 0 || before > most || behind > most)
            return tfl_fault(n, "axis %d of size %lld is mirrored by %lld and %lld", a,
                             (long long)size, (long long)before, (long long)behind);
        if (all == size)
            continue;
        int32_t *order = ingot_alloc(n->c, (size_t)all * sizeof *order);
        for (int64_t i = 0; i < all; i++) {
            const int64_t at = i - before;
            order[i] = (int32_t)(at < 0       ? -at - again
                                 : at >= size ? 2 * size - 2 - at + again
                                              : at);
        }
        y = ingot_take(n->c, y, ingot_data(n->c, NULL, INGOT_I32, 1, &all, order), a);
    }
    return y;
}

ingot_tensor *tfl_spread(TfliteNode *n, ingot_tensor *x, int axis, int64_t between,
                         ingot_tensor *value)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    if (between < 1 || ingot_is_poison(x))
        return x;
    if (ingot_rank(x) == INGOT_MAX_RANK || between > 1000000000)
        return tfl_unsupported(n, "a dilation of rank %d or by %lld is not supported",
                               ingot_rank(x), (long long)between);
    x = ingot_unsqueeze(n->c, x, axis + 1);
    for (int i = 0; i < ingot_rank(x); i++) {
        lo[i] = tfl_dim(n, 0);
        hi[i] = tfl_dim(n, i == axis + 1 ? between : 0);
    }
    x = ingot_flatten(n->c, ingot_pad_value(n->c, x, lo, hi, value), axis, axis + 2);
    if (ingot_is_poison(x))
        return x;
    ingot_dim *size = ingot_dim_sub(n->c, ingot_shape(x, axis), tfl_dim(n, between));
    size = ingot_dim_max(n->c, size, tfl_dim(n, 0));
    return ingot_slice(n->c, x, axis, tfl_dim(n, 0), size, 1);
}

ingot_tensor *tflite_dilate(TfliteNode *n)
{
    int64_t by[INGOT_MAX_RANK];
    const int rank = ingot_rank(X), got = tfl_ints(n, 1, by, INGOT_MAX_RANK);
    ingot_tensor *y = X;
    if (got >= 0 && got != rank)
        return tfl_fault(n, "it has %d dilations, for %d axes", got, rank);
    for (int a = 0; a < got; a++)
        y = tfl_positive(n, "dilation", by[a]) ? tfl_spread(n, y, a, by[a] - 1, n->in[2])
                                               : ingot_poison(n->c);
    return got < 0 ? ingot_poison(n->c) : y;
}

/* Between elements, then around them; negative edges crop. */
ingot_tensor *tflite_hlo_pad(TfliteNode *n)
{
    ingot_dim *edge[2][INGOT_MAX_RANK];
    ingot_tflite_list l[3];
    ingot_tensor *y = X;
    for (unsigned k = 0; k < 3; k++) {
        l[k] = ingot_tflite_elements(&n->op->options, k, 8);
        if (l[k].n != (size_t)ingot_rank(X))
            return tfl_fault(n, "it has %zu pads, for %d axes", l[k].n, ingot_rank(X));
    }
    for (int a = 0; a < ingot_rank(X); a++) {
        const int64_t between = ingot_tflite_i64(&l[2], (size_t)a);
        if (between < 0)
            return tfl_fault(n, "a pad between elements is negative");
        y = tfl_spread(n, y, a, between, Y);
        for (int k = 0; k < 2; k++)
            edge[k][a] = tfl_dim(n, ingot_tflite_i64(&l[k], (size_t)a));
    }
    return ingot_pad_value(n->c, y, edge[0], edge[1], Y);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static ingot_tensor *by_blocks(TfliteNode *n, bool to_depth)
{
    const int64_t block = tfl_int(n, 0, 4, 0);
    if (ingot_rank(X) != 4 || !tfl_positive(n, "block", block))
        return tfl_fault(n, "its input has rank %d, not 4", ingot_rank(X));
    ingot_tensor *x = tfl_channels_first(n, X);
    return tfl_channels_last(n, to_depth ? ingot_space_to_depth(n->c, x, block)
                                         : ingot_depth_to_space(n->c, x, block, false));
}

ingot_tensor *tflite_space_to_depth(TfliteNode *n)
{
    return by_blocks(n, true);
}

ingot_tensor *tflite_depth_to_space(TfliteNode *n)
{
    return by_blocks(n, false);
}

/* Blocks of spatial axes, and pads or crops; how many axes, 0 after a fault. */
static int blocks_of(TfliteNode *n, int64_t *block, int64_t *edge)
{
    const int axes = tfl_ints(n, 1, block, 4), edges = tfl_ints(n, 2, edge, 8);
    if (axes < 1 || edges != 2 * axes || ingot_rank(X) < axes + 1 ||
        ingot_rank(X) + axes > INGOT_MAX_RANK) {
        if (axes >= 0 && edges >= 0)
            tfl_fault(n, "it has %d blocks and %d edges, its input %d axes", axes, edges,
                      ingot_rank(X));
        return 0;
    }
    for (int i = 0; i < axes; i++)
        if (!tfl_positive(n, "block", block[i]) || edge[2 * i] < 0 || edge[2 * i + 1] < 0) {
            tfl_fault(n, "its blocks or edges are negative");
            return 0;
        }
    return axes;
}

/* [N, h*b, w*c, ..] -> [b*c*N, h, w, ..] */
ingot_tensor *tflite_space_to_batch(TfliteNode *n)
{
    int64_t block[4], edge[8];
    const int axes = blocks_of(n, block, edge), rank = ingot_rank(X);
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK], *dims[INGOT_MAX_RANK];
    int perm[INGOT_MAX_RANK], to = 0;
    if (!axes)
        return ingot_poison(n->c);
    for (int i = 0; i < rank; i++) {
        lo[i] = tfl_dim(n, i >= 1 && i <= axes ? edge[2 * i - 2] : 0);
        hi[i] = tfl_dim(n, i >= 1 && i <= axes ? edge[2 * i - 1] : 0);
    }
    const double zero = tfl_quantized(n->ti[0]) ? tfl_zero(n->ti[0]) : 0;
    ingot_tensor *x = ingot_pad_value(n->c, X, lo, hi, ingot_like(n->c, X, zero));
    if (ingot_is_poison(x))
        return x;
    /* [N, h, b, w, c, ..] */
    dims[0] = ingot_shape(x, 0);
    for (int i = 0; i < axes; i++) {
        dims[1 + 2 * i] = ingot_dim_div(n->c, ingot_shape(x, 1 + i), tfl_dim(n, block[i]));
        dims[2 + 2 * i] = tfl_dim(n, block[i]);
        perm[to++] = 2 + 2 * i;
    }
    perm[to++] = 0;
    for (int i = 0; i < axes; i++)
        perm[to++] = 1 + 2 * i;
    for (int i = axes + 1; i < rank; i++) {
        dims[axes + i] = ingot_shape(x, i);
        perm[to++] = axes + i;
    }
    x = ingot_permute(n->c, ingot_reshape(n->c, x, rank + axes, dims), perm);
    return ingot_flatten(n->c, x, 0, axes + 1);
}

/* [b*c*N, h, w, ..] -> [N, h*b, w*c, ..] */
ingot_tensor *tflite_batch_to_space(TfliteNode *n)
{
    int64_t block[4], edge[8], all = 1;
    const int axes = blocks_of(n, block, edge), rank = ingot_rank(X);
    ingot_dim *dims[INGOT_MAX_RANK], *begin[INGOT_MAX_RANK];
    int perm[INGOT_MAX_RANK], to = 0;
    if (!axes)
        return ingot_poison(n->c);
    for (int i = 0; i < axes; i++) {
        dims[i] = tfl_dim(n, block[i]);
        all *= block[i];
    }
    dims[axes] = ingot_dim_div(n->c, ingot_shape(X, 0), tfl_dim(n, all));
    perm[to++] = axes;
    for (int i = 1; i < rank; i++) {
        dims[axes + i] = ingot_shape(X, i);
        perm[to++] = axes + i;
        if (i <= axes)
            perm[to++] = i - 1;
    }
    ingot_tensor *x = ingot_permute(n->c, ingot_reshape(n->c, X, rank + axes, dims), perm);
    for (int i = 1; i <= axes; i++)
        x = ingot_flatten(n->c, x, i, i + 2);
    if (ingot_is_poison(x))
        return x;
    for (int i = 0; i < rank; i++) {
        const bool cut = i >= 1 && i <= axes;
        begin[i] = tfl_dim(n, cut ? edge[2 * i - 2] : 0);
        dims[i] = ingot_shape(x, i);
        if (cut)
            dims[i] = ingot_dim_sub(n->c, dims[i], tfl_dim(n, edge[2 * i - 2] + edge[2 * i - 1]));
    }
    return ingot_shrink(n->c, x, begin, dims);
}
