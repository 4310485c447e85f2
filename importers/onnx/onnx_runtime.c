/*
 * onnx_runtime.c - operators whose axes, bounds or pads only the run knows.
 *
 * Such an input usually decides the shape of the result. It need not be known while compiling if
 * the file declares that shape, or if the shape can be one of a few: then everything else about
 * the input is arithmetic on coordinates, or a choice between a few results.
 */
#include <string.h>

#include "onnx.h"

#define X n->in[0]

enum { MAX_CHOICES = 24 }; /* results computed to choose one of */

/* ---- entries of lists -------------------------------------------------------------------- */

ingot_tensor *list_entry(Lowering *n, int input, int64_t k, int64_t otherwise)
{
    ingot_tensor *list = optional_in(n, input);
    if (!list)
        return ingot_scalar_i(n->c, INGOT_I64, otherwise);
    if (ingot_rank(list))
        list = ingot_slice(n->c, list, 0, dim(n, k), dim(n, 1), 1);
    return as(n, reshape_scalar(n, list), INGOT_I64);
}

/* i < 0 ? i + size : i */
static ingot_tensor *wrapped(Lowering *n, ingot_tensor *i, ingot_tensor *size)
{
    ingot_tensor *below = ingot_lt(n->c, i, ingot_scalar_i(n->c, INGOT_I64, 0));
    return ingot_where(n->c, below, ingot_add(n->c, i, size), i);
}

/* Whether entry k of the axes input is axis a; without such an input entry k is that of axis k. */
static ingot_tensor *entry_is_axis(Lowering *n, int axes_input, int64_t k, int a)
{
    ingot_tensor *rank = ingot_scalar_i(n->c, INGOT_I64, ingot_rank(X));
    ingot_tensor *axis = wrapped(n, list_entry(n, axes_input, k, k), rank);
    return ingot_eq(n->c, axis, ingot_scalar_i(n->c, INGOT_I64, a));
}

static bool list_length(Lowering *n, int input, int64_t most, int64_t *count)
{
    ingot_tensor *list = n->in[input];
    if (ingot_rank(list) <= 1 && ingot_dim_is_const(ingot_numel(n->c, list), count) &&
        *count <= most)
        return true;
    unsupported(n, "the length of its input '%s' is not known when compiling",
                n->proto->input[input]);
    return false;
}

/* ---- slices ------------------------------------------------------------------------------ */

/* The bounds of a slice along an axis of `size` elements, as numpy has them. */
typedef struct {
    ingot_tensor *start, *end, *step;
} RunSlice;

/* ceil((end - start) / step), at least 0, both of them clamped: 0..size upwards, -1..size-1
 * downwards. */
static ingot_tensor *slice_length(Lowering *n, RunSlice *s, ingot_tensor *size)
{
    ingot_context *c = n->c;
    ingot_tensor *zero = ingot_scalar_i(c, INGOT_I64, 0), *last = ingot_add_c(c, size, -1);
    ingot_tensor *down = ingot_lt(c, s->step, zero);
    ingot_tensor *least = ingot_where(c, down, ingot_scalar_i(c, INGOT_I64, -1), zero);
    ingot_tensor *most = ingot_where(c, down, last, size);
    s->start = ingot_min(c, ingot_max(c, wrapped(n, s->start, size), least), most);
    s->end = ingot_min(c, ingot_max(c, wrapped(n, s->end, size), least), most);
    ingot_tensor *span = ingot_sub(c, s->start, s->end); /* -floor(-span / step) */
    span = ingot_div(c, ingot_sub(c, span, ingot_mod(c, span, s->step)), s->step);
    return ingot_max(c, ingot_neg(c, span), zero);
}

/* Element i along an axis is x[start + i step]. Which entry is an axis' may be known at run time
 * only: each axis then asks all entries. */
ingot_tensor *slice_at_run_time(Lowering *n)
{
    ingot_context *c = n->c;
    const int64_t *axes = NULL;
    int rank = ingot_rank(X), count = list_size(n, 1);
    int64_t max = INT64_MAX;
    if (count < 0)
        return ingot_poison(c);
    bool known = !optional_in(n, 3) || ints_known(n, 3, &axes) >= 0;
    ingot_tensor *y = X, *zero = ingot_scalar_i(c, INGOT_I64, 0),
                 *one = ingot_scalar_i(c, INGOT_I64, 1);
    for (int a = 0; a < rank; a++) {
        ingot_tensor *size = ingot_from_dim(c, ingot_shape(X, a));
        RunSlice s = {zero, ingot_scalar_i(c, INGOT_I64, max), one};
        bool cut = !known;
        for (int k = 0; k < count; k++) {
            int64_t at = axes ? axes[k] : k;
            if (known && at != a && at + rank != a)
                continue;
            ingot_tensor *start = list_entry(n, 1, k, 0), *end = list_entry(n, 2, k, 0),
                         *step = list_entry(n, 4, k, 1);
            ingot_tensor *mine = known ? NULL : entry_is_axis(n, 3, k, a);
            s.start = mine ? ingot_where(c, mine, start, s.start) : start;
            s.end = mine ? ingot_where(c, mine, end, s.end) : end;
            s.step = mine ? ingot_where(c, mine, step, s.step) : step;
            cut = true;
        }
        if (!cut)
            continue;
        ingot_tensor *length = slice_length(n, &s, size);
        ingot_dim *d = size_at_run_time(n, 0, a, rank, length, ingot_dim_hi(ingot_shape(X, a)));
        if (ingot_is_poison(d))
            return d;
        ingot_tensor *i = ingot_iota(c, 1, &d, 0);
        y = ingot_take(c, y, ingot_add(c, s.start, ingot_mul(c, i, s.step)), a);
    }
    return y;
}

/* ---- pads -------------------------------------------------------------------------------- */

ingot_tensor *pad_place(Lowering *n, ingot_tensor *i, ingot_tensor *size, const char *mode)
{
    ingot_tensor *last = ingot_add_c(n->c, size, -1);
    if (strcmp(mode, "edge") == 0)
        return ingot_min(n->c, ingot_max_c(n->c, i, 0), last);
    if (strcmp(mode, "wrap") == 0)
        return ingot_mod(n->c, i, size);
    /* reflect: 0 1 2 3 2 1 0 1 ... */
    ingot_tensor *period = ingot_max_c(n->c, ingot_mul_c(n->c, last, 2), 1);
    i = ingot_mod(n->c, i, period);
    return ingot_min(n->c, ingot_min(n->c, i, ingot_sub(n->c, period, i)), last);
}

/* The pad before an axis (side 0) or behind it (side 1), out of `count` entries. */
static ingot_tensor *pad_entry(Lowering *n, int axis, int side, int64_t count)
{
    ingot_tensor *pad = ingot_scalar_i(n->c, INGOT_I64, 0);
    for (int64_t k = 0; k < count / 2; k++)
        pad = ingot_where(n->c, entry_is_axis(n, 3, k, axis),
                          list_entry(n, 1, k + side * (count / 2), 0), pad);
    return pad;
}

/* wrap: what negative pads leave of the axis is repeated. */
static ingot_tensor *wrapped_place(Lowering *n, ingot_tensor *i, ingot_tensor *size,
                                   ingot_tensor *lo, ingot_tensor *hi)
{
    ingot_tensor *from = ingot_max_c(n->c, ingot_neg(n->c, lo), 0);
    ingot_tensor *left =
        ingot_sub(n->c, ingot_sub(n->c, size, from), ingot_max_c(n->c, ingot_neg(n->c, hi), 0));
    i = ingot_sub(n->c, i, ingot_max_c(n->c, lo, 0));
    return ingot_add(n->c, from, ingot_mod(n->c, i, ingot_max_c(n->c, left, 1)));
}

/* Element i along an axis is x[i - lo], inside x or by the mode's rule. */
ingot_tensor *pad_at_run_time(Lowering *n, ingot_tensor *value, const char *mode)
{
    int64_t count;
    int rank = ingot_rank(X);
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_tensor *index[INGOT_MAX_RANK], *inside = NULL, *zero = ingot_scalar_i(n->c, INGOT_I64, 0);
    if (!list_length(n, 1, 2 * INGOT_MAX_RANK, &count) || rank == 0)
        return rank ? ingot_poison(n->c) : X;
    for (int a = 0; a < rank; a++) {
        ingot_tensor *more = ingot_add(n->c, pad_entry(n, a, 0, count), pad_entry(n, a, 1, count));
        ingot_tensor *size = ingot_add(n->c, ingot_from_dim(n->c, ingot_shape(X, a)), more);
        dims[a] = size_at_run_time(n, 0, a, rank, size, -1);
        if (!dims[a])
            return unbounded_size(n, 0, a);
    }
    for (int a = 0; a < rank; a++) {
        ingot_tensor *size = ingot_from_dim(n->c, ingot_shape(X, a)),
                     *lo = pad_entry(n, a, 0, count), *i = ingot_iota(n->c, rank, dims, a);
        if (strcmp(mode, "wrap") == 0) {
            index[a] = wrapped_place(n, i, size, lo, pad_entry(n, a, 1, count));
            continue;
        }
        index[a] = ingot_sub(n->c, i, lo);
        if (strcmp(mode, "constant") != 0) {
            index[a] = pad_place(n, index[a], size, mode);
            continue;
        }
        ingot_tensor *ok =
            ingot_and(n->c, ingot_ge(n->c, index[a], zero), ingot_lt(n->c, index[a], size));
        inside = inside ? ingot_and(n->c, inside, ok) : ok;
    }
    ingot_tensor *y = ingot_gather(n->c, X, index);
    return inside ? ingot_where(n->c, inside, y, value) : y;
}

/* ---- a choice of axis -------------------------------------------------------------------- */

ingot_tensor *axis_at_run_time(Lowering *n, int input, ingot_tensor *(*fn)(Lowering *, int axis))
{
    int rank = ingot_rank(X);
    if (rank < 1 || rank > MAX_CHOICES)
        return fault(n, "its input has rank %d", rank);
    ingot_tensor *y = fn(n, 0);
    for (int a = 1; a < rank; a++)
        y = ingot_where(n->c, entry_is_axis(n, input, 0, a), fn(n, a), y);
    return y;
}

/* ---- reductions -------------------------------------------------------------------------- */

/* The results of the sets of axes that may be meant. */
typedef struct {
    int n, rank;   /* rank of the results */
    bool narrowed; /* to those that have the shape which the file declares */
    unsigned axes[MAX_CHOICES];
    int64_t dims[MAX_CHOICES][INGOT_MAX_RANK];
} Choices;

static int bits(unsigned v)
{
    int count = 0;
    for (; v; v &= v - 1)
        count++;
    return count;
}

/* All sets of `count` axes whose result has the declared shape (if one is declared). */
static bool choices_find(Lowering *n, int64_t count, bool keep, Choices *c)
{
    int64_t in[INGOT_MAX_RANK], declared[INGOT_MAX_RANK];
    int rank = ingot_rank(X), declared_rank;
    c->n = 0;
    c->rank = keep ? rank : rank - (int)count;
    if (rank > 8 || count > rank || !ingot_static_shape(X, in))
        return false;
    bool check = declared_shape(n, 0, &declared_rank, declared);
    c->narrowed = false;
    for (unsigned axes = 0; axes < 1u << rank; axes++) {
        int64_t dims[INGOT_MAX_RANK];
        int to = 0;
        if (bits(axes) != count)
            continue;
        for (int a = 0; a < rank; a++)
            if (keep || !(axes >> a & 1))
                dims[to++] = axes >> a & 1 ? 1 : in[a];
        if (check && (declared_rank != to || memcmp(dims, declared, (size_t)to * sizeof *dims)))
            c->narrowed = true;
        if (check && (declared_rank != to || memcmp(dims, declared, (size_t)to * sizeof *dims)))
            continue;
        if (c->n == MAX_CHOICES)
            return false;
        c->axes[c->n] = axes;
        memcpy(c->dims[c->n++], dims, sizeof dims);
    }
    return c->n > 0;
}

/* The set that the input holds. */
static ingot_tensor *axes_mask(Lowering *n, int64_t count)
{
    ingot_tensor *mask = ingot_scalar_i(n->c, INGOT_I64, 0);
    ingot_tensor *rank = ingot_scalar_i(n->c, INGOT_I64, ingot_rank(X));
    ingot_tensor *one = ingot_scalar_i(n->c, INGOT_I64, 1);
    for (int64_t k = 0; k < count; k++) {
        ingot_tensor *axis = wrapped(n, list_entry(n, 1, k, 0), rank);
        mask = ingot_or(n->c, mask, ingot_shl(n->c, one, axis));
    }
    return mask;
}

bool axes_are(Lowering *n, unsigned axes)
{
    int64_t count, ones = 0, all = (INT64_C(1) << ingot_rank(X)) - 1;
    if (!list_length(n, 1, INGOT_MAX_RANK, &count))
        return false;
    for (int a = 0; a < ingot_rank(X); a++)
        ones |= dim_is(ingot_shape(X, a), 1) ? INT64_C(1) << a : 0;
    bool none = attr_int(n, "noop_with_empty_axes", 0) != 0;
    ingot_tensor *mask =
        count ? axes_mask(n, count) : ingot_scalar_i(n->c, INGOT_I64, none ? 0 : all);
    mask = ingot_and(n->c, mask, ingot_scalar_i(n->c, INGOT_I64, ~ones));
    return value_is(n, mask, dim(n, axes & ~ones),
                    "the set of its axes, one bit an axis, that the declared shape of its "
                    "result tells,");
}

/* Each choice is padded to a common size; what the run has chosen is cut out of it. */
ingot_tensor *reduce_at_run_time(Lowering *n, ReduceFn *fn, bool keep)
{
    Choices c;
    int64_t count, most[INGOT_MAX_RANK];
    ingot_dim *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    if (!list_length(n, 1, INGOT_MAX_RANK, &count))
        return ingot_poison(n->c);
    if (!choices_find(n, count, keep, &c))
        return unsupported(n, "its axes are not known when compiling; --bind gives them values");
    ingot_tensor *mask = axes_mask(n, count), *y = NULL, *hit = ingot_scalar_i(n->c, INGOT_I64, 0);
    for (int i = 0; i < c.n; i++) {
        ingot_tensor *this = ingot_eq(n->c, mask, ingot_scalar_i(n->c, INGOT_I64, c.axes[i]));
        hit = ingot_add(n->c, hit, as(n, this, INGOT_I64));
    }
    if (!value_is(n, hit, dim(n, 1),
                  c.narrowed
                      ? "the number of sets of axes that are its own and give the declared shape"
                      : "the number of sets of axes that are its own"))
        return ingot_poison(n->c);
    memcpy(most, c.dims[0], sizeof most);
    for (int i = 1; i < c.n; i++)
        for (int a = 0; a < c.rank; a++)
            most[a] = c.dims[i][a] > most[a] ? c.dims[i][a] : most[a];
    for (int i = 0; i < c.n; i++) {
        ingot_tensor *one = ingot_reshape_c(n->c, fn(n, X, c.axes[i]), c.rank, c.dims[i]);
        for (int a = 0; a < c.rank; a++) {
            begin[a] = dim(n, 0);
            hi[a] = dim(n, most[a] - c.dims[i][a]);
        }
        one = ingot_pad(n->c, one, begin, hi);
        ingot_tensor *this = ingot_eq(n->c, mask, ingot_scalar_i(n->c, INGOT_I64, c.axes[i]));
        y = y ? ingot_where(n->c, this, one, y) : one;
    }
    bool vary = false;
    for (int a = 0; a < c.rank; a++) {
        ingot_tensor *d = ingot_scalar_i(n->c, INGOT_I64, c.dims[0][a]);
        int64_t least = most[a];
        for (int i = 0; i < c.n; i++) {
            ingot_tensor *this = ingot_eq(n->c, mask, ingot_scalar_i(n->c, INGOT_I64, c.axes[i]));
            d = ingot_where(n->c, this, ingot_scalar_i(n->c, INGOT_I64, c.dims[i][a]), d);
            least = c.dims[i][a] < least ? c.dims[i][a] : least;
        }
        size[a] = least == most[a] ? dim(n, least)
                                   : ingot_read_dim(n->c, d, "reduced_dim", least, most[a]);
        vary |= least != most[a];
    }
    return vary ? ingot_shrink(n->c, y, begin, size) : y;
}
