/*
 * tflite_slice.c - operators that cut pieces out of tensors, or write some: slices, splits, flips.
 */
#include "tflite_model.h"

#define X n->in[0]
#define Y n->in[1]

/* size -1: to the end */
ingot_tensor *tflite_slice(TfliteNode *n)
{
    ingot_dim *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    const int rank = ingot_rank(X);
    const int nb = tfl_dims(n, 1, begin, INGOT_MAX_RANK), ns = tfl_dims(n, 2, size, INGOT_MAX_RANK);
    if (nb < 0 || ns < 0)
        return ingot_poison(n->c);
    if (nb != rank || ns != rank)
        return tfl_fault(n, "it has %d begins and %d sizes, its input %d axes", nb, ns, rank);
    for (int i = 0; i < rank; i++) {
        int64_t v;
        if (ingot_dim_is_const(size[i], &v) && v == -1)
            size[i] = ingot_dim_sub(n->c, ingot_shape(X, i), begin[i]);
    }
    return ingot_shrink(n->c, X, begin, size);
}

/* An end of a range along an axis: from the end if it is negative, and within it. */
static ingot_dim *bound(TfliteNode *n, ingot_dim *v, ingot_dim *size, bool back)
{
    const int64_t lo = back ? -1 : 0;
    ingot_dim *last = back ? ingot_dim_sub(n->c, size, tfl_dim(n, 1)) : size;
    if (ingot_dim_hi(v) < 0)
        v = ingot_dim_add(n->c, v, size);
    else if (ingot_dim_lo(v) < 0)
        return NULL;
    return ingot_dim_max(n->c, ingot_dim_min(n->c, v, last), tfl_dim(n, lo));
}

typedef struct {
    ingot_dim *begin[INGOT_MAX_RANK], *end[INGOT_MAX_RANK];
    int64_t step[INGOT_MAX_RANK];
    unsigned begins, ends, ellipsis, axes, shrinks; /* masks: bit i is entry i */
    bool offset;
} TfliteStrides;

/* One axis of x by entry i. */
static ingot_tensor *stride_axis(TfliteNode *n, ingot_tensor *x, int axis, const TfliteStrides *s,
                                 int i)
{
    ingot_dim *size = ingot_shape(x, axis), *one = tfl_dim(n, 1);
    const int64_t step = s->step[i];
    const bool back = step < 0, single = s->shrinks >> i & 1;
    if (step == 0)
        return tfl_fault(n, "a stride is 0");
    ingot_dim *begin = back ? ingot_dim_sub(n->c, size, one) : tfl_dim(n, 0);
    ingot_dim *end = back ? tfl_dim(n, -1) : size;
    if (!(s->begins >> i & 1))
        begin = bound(n, s->begin[i], size, back);
    if (!(s->ends >> i & 1) && !single) {
        ingot_dim *e = s->offset ? ingot_dim_add(n->c, s->begin[i], s->end[i]) : s->end[i];
        end = bound(n, e, size, back);
    }
    if (!begin || !end)
        return tfl_unsupported(n, "whether a begin or end is negative is not known before the run");
    if (single)
        return ingot_slice(n->c, x, axis, begin, one, 1);
    ingot_dim *span = back ? ingot_dim_sub(n->c, begin, end) : ingot_dim_sub(n->c, end, begin);
    const int64_t by = back ? -step : step;
    ingot_dim *count =
        ingot_dim_div(n->c, ingot_dim_add(n->c, span, tfl_dim(n, by - 1)), tfl_dim(n, by));
    count = ingot_dim_max(n->c, count, tfl_dim(n, 0));
    return ingot_slice(n->c, x, axis, begin, count, step);
}

static int strides_of(TfliteNode *n, TfliteStrides *s)
{
    const int n_begin = tfl_dims(n, 1, s->begin, INGOT_MAX_RANK),
              n_end = tfl_dims(n, 2, s->end, INGOT_MAX_RANK),
              n_step = tfl_ints(n, 3, s->step, INGOT_MAX_RANK);
    s->begins = (unsigned)tfl_int(n, 0, 4, 0);
    s->ends = (unsigned)tfl_int(n, 1, 4, 0);
    s->ellipsis = (unsigned)tfl_int(n, 2, 4, 0);
    s->axes = (unsigned)tfl_int(n, 3, 4, 0);
    s->shrinks = (unsigned)tfl_int(n, 4, 4, 0);
    s->offset = tfl_int(n, 5, 1, 0) != 0;
    if (n_begin < 0 || n_end < 0 || n_step < 0)
        return -1;
    if (n_begin == n_end && n_begin == n_step)
        return n_begin;
    tfl_fault(n, "it has %d begins, %d ends and %d strides", n_begin, n_end, n_step);
    return -1;
}

/* Entries are those of numpy's x[1:5:2, ..., newaxis, 3]. */
ingot_tensor *tflite_strided_slice(TfliteNode *n)
{
    TfliteStrides s = {0};
    const int entries = strides_of(n, &s), rank = ingot_rank(X);
    ingot_tensor *x = X;
    unsigned gone = 0;
    int used = 0, axis = 0;
    if (entries < 0)
        return ingot_poison(n->c);
    for (int i = 0; i < entries; i++)
        used += !(s.ellipsis >> i & 1) && !(s.axes >> i & 1);
    for (int i = 0; i < entries && !ingot_is_poison(x); i++) {
        if (s.ellipsis >> i & 1) {
            axis += rank - used > 0 ? rank - used : 0;
        } else if (s.axes >> i & 1) {
            x = ingot_unsqueeze(n->c, x, axis++);
        } else {
            if (axis >= ingot_rank(x))
                return tfl_fault(n, "it has %d entries, its input %d axes", entries, rank);
            x = stride_axis(n, x, axis, &s, i);
            gone |= (s.shrinks >> i & 1) << axis++;
        }
    }
    for (int a = 32; a-- > 0 && !ingot_is_poison(x);)
        if (gone >> a & 1)
            x = ingot_squeeze(n->c, x, a);
    return x;
}

/* Equal parts: input 0 is the axis. */
ingot_tensor *tflite_split(TfliteNode *n)
{
    int64_t given;
    int axis;
    if (!tfl_one_int(n, 0, &given) || !tfl_axis(n, given, ingot_rank(Y), &axis) || n->n_out < 1)
        return ingot_poison(n->c);
    ingot_dim *size = ingot_dim_div(n->c, ingot_shape(Y, axis), tfl_dim(n, n->n_out));
    for (int i = 0; i < n->n_out; i++)
        n->out[i] = ingot_slice(n->c, Y, axis, ingot_dim_mul(n->c, size, tfl_dim(n, i)), size, 1);
    return n->out[0];
}

/* Parts of sizes that input 1 has; one may be -1. */
ingot_tensor *tflite_split_v(TfliteNode *n)
{
    int64_t given, rest = -1;
    ingot_dim *size[64], *begin = tfl_dim(n, 0), *known = begin;
    int axis;
    const int got = tfl_dims(n, 1, size, 64);
    if (got < 0 || !tfl_one_int(n, 2, &given) || !tfl_axis(n, given, ingot_rank(X), &axis))
        return ingot_poison(n->c);
    if (got != n->n_out || got < 1)
        return tfl_fault(n, "it has %d sizes for %d results", got, n->n_out);
    for (int i = 0; i < got; i++) {
        int64_t v;
        if (ingot_dim_is_const(size[i], &v) && v == -1)
            rest = i;
        else
            known = ingot_dim_add(n->c, known, size[i]);
    }
    if (rest >= 0)
        size[rest] = ingot_dim_sub(n->c, ingot_shape(X, axis), known);
    for (int i = 0; i < got; i++) {
        n->out[i] = ingot_slice(n->c, X, axis, begin, size[i], 1);
        begin = ingot_dim_add(n->c, begin, size[i]);
    }
    return n->out[0];
}

ingot_tensor *tflite_reverse(TfliteNode *n)
{
    unsigned axes;
    return tfl_axes(n, 1, ingot_rank(X), &axes) ? ingot_flip(n->c, X, axes) : ingot_poison(n->c);
}

/* The first lengths[b] elements of sequence b turn around, the others stay. */
ingot_tensor *tflite_reverse_sequence(TfliteNode *n)
{
    int seq, batch;
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_tensor *index[INGOT_MAX_RANK];
    const int rank = ingot_rank(X);
    if (!tfl_axis(n, tfl_int(n, 0, 4, 0), rank, &seq) ||
        !tfl_axis(n, tfl_int(n, 1, 4, 0), rank, &batch))
        return ingot_poison(n->c);
    tfl_shape(X, dims);
    ingot_tensor *length = tfl_cast(n, Y, INGOT_I64);
    for (int i = batch + 1; i < rank; i++)
        length = ingot_unsqueeze(n->c, length, i - batch);
    for (int a = 0; a < rank; a++)
        index[a] = ingot_iota(n->c, rank, dims, a);
    ingot_tensor *at = index[seq];
    ingot_tensor *turned = ingot_sub(n->c, ingot_add_c(n->c, length, -1), at);
    index[seq] = ingot_where(n->c, ingot_lt(n->c, at, length), turned, at);
    return ingot_gather(n->c, X, index);
}

/* x with `update` written where the begins in input 2 say, moved so that it lies inside. */
ingot_tensor *tflite_dynamic_update_slice(TfliteNode *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_tensor *index[INGOT_MAX_RANK];
    const int rank = ingot_rank(X);
    if (ingot_rank(Y) != rank || ingot_rank(n->in[2]) != 1)
        return tfl_fault(n, "its input has rank %d, its update %d", rank, ingot_rank(Y));
    if (rank == 0)
        return Y;
    tfl_shape(Y, dims);
    for (int a = 0; a < rank; a++) {
        ingot_tensor *begin = ingot_slice(n->c, n->in[2], 0, tfl_dim(n, a), tfl_dim(n, 1), 1);
        begin = tfl_cast(n, ingot_squeeze(n->c, begin, 0), INGOT_I64);
        ingot_tensor *most =
            ingot_from_dim(n->c, ingot_dim_sub(n->c, ingot_shape(X, a), ingot_shape(Y, a)));
        begin = ingot_max_c(n->c, ingot_min(n->c, begin, most), 0);
        index[a] = ingot_add(n->c, ingot_iota(n->c, rank, dims, a), begin);
    }
    return ingot_update(n->c, INGOT_SET, X, Y, index);
}
