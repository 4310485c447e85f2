/*
 * onnx_shape.c - ONNX operators that rearrange and repeat tensors: Reshape, Transpose, Concat,
 * Split, Pad, Tile and their kin. Shapes are lists of dims, which may depend on run-time dims; what
 * the data decide has bounds (onnx_size.c) and is read by the run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]

/* ---- reshape and its kin -------------------------------------------------------------------- */

/* The size of each axis of the result, from entries that the data decide. */
static void reshape_sizes(Lowering *n, int rank, ingot_dim *const *entries, ingot_tensor **size)
{
    ingot_context *c = n->c;
    bool zero = attr_int(n, "allowzero", 0) != 0;
    ingot_tensor *all = ingot_from_dim(c, ingot_numel(c, X)),
                 *others = ingot_scalar_i(c, INGOT_I64, 1);
    ingot_tensor *rest[INGOT_MAX_RANK];
    for (int a = 0; a < rank; a++) {
        size[a] = entries[a] ? ingot_from_dim(c, entries[a]) : list_entry(n, 1, a, 0);
        if (!zero && a < ingot_rank(X))
            size[a] = ingot_where(c, ingot_eq(c, size[a], ingot_like(c, size[a], 0)),
                                  ingot_from_dim(c, ingot_shape(X, a)), size[a]);
        rest[a] = ingot_eq(c, size[a], ingot_like(c, size[a], -1));
        others = ingot_where(c, rest[a], others, ingot_mul(c, others, size[a]));
    }
    for (int a = 0; a < rank; a++)
        size[a] = ingot_where(c, rest[a], ingot_div(c, all, ingot_max_c(c, others, 1)), size[a]);
}

/* Entries that the data decide: all of them must have bounds but for one, which is what is left. */
static bool reshape_at_run_time(Lowering *n, int rank, ingot_dim **dims)
{
    ingot_tensor *size[INGOT_MAX_RANK];
    ingot_dim *others = dim(n, 1);
    int left = -1;
    reshape_sizes(n, rank, dims, size);
    for (int a = 0; a < rank; a++) {
        if (dims[a] && dim_is(dims[a], 0) && !attr_int(n, "allowzero", 0) && a < ingot_rank(X))
            dims[a] = ingot_shape(X, a);
        if (!dims[a] || dim_is(dims[a], -1))
            dims[a] = own_size_at_run_time(n, 0, a, rank, size[a], -1);
        int told = a;
        if (!dims[a] && left >= 0 && !(dims[a] = size_at_run_time(n, 0, a, rank, size[a], -1))) {
            told = left;
            left = a;
            dims[told] = size_at_run_time(n, 0, told, rank, size[told], -1);
        }
        if (!dims[told] && left >= 0) {
            unbounded_size(n, 0, told);
            return false;
        }
        if (dims[told])
            others = ingot_dim_mul(n->c, others, dims[told]);
        else
            left = told;
    }
    if (left < 0)
        return true;
    if (ingot_dim_lo(others) < 1) /* nothing follows from others that are 0 */
        dims[left] =
            size_at_run_time(n, 0, left, rank, size[left], ingot_dim_hi(ingot_numel(n->c, X)));
    else
        dims[left] = ingot_dim_div(n->c, ingot_numel(n->c, X), others);
    return size_is(n, 0, left, size[left], dims[left]);
}

/* What the -1 stands for. Sizes that the input has too go, so that it follows from the others where
 * those may be 0: [n, 91, 4] as [n, -1]. NULL, and told: it does not. */
static ingot_dim *left_of_reshape(Lowering *n, int rank, ingot_dim *const *dims, int unknown)
{
    ingot_dim *all = dim(n, 1), *others = dim(n, 1);
    bool gone[INGOT_MAX_RANK] = {0};
    for (int a = 0; a < rank; a++) {
        int b = 0;
        if (a == unknown)
            continue;
        if (dim_is(dims[a], 0)) {
            fault(n, "its shape has a -1 and a 0, so the -1 has no definite value");
            return NULL;
        }
        while (b < ingot_rank(X) && (gone[b] || ingot_shape(X, b) != dims[a]))
            b++;
        if (b < ingot_rank(X))
            gone[b] = true;
        else
            others = ingot_dim_mul(n->c, others, dims[a]);
    }
    for (int b = 0; b < ingot_rank(X); b++)
        if (!gone[b])
            all = ingot_dim_mul(n->c, all, ingot_shape(X, b));
    const int64_t of = ingot_dim_lo(all), by = ingot_dim_lo(others);
    if (of == ingot_dim_hi(all) && by == ingot_dim_hi(others) && by > 0 && of % by) {
        fault(n,
              "its shape has a -1, but the %" PRId64 " elements left for it are no multiple of the "
              "other sizes, %" PRId64,
              of, by);
        return NULL;
    }
    return ingot_dim_div(n->c, all, others);
}

/* Whether it matters that entry a, which the run knows, copies the input's size where it is 0. It
 * does if the result may be empty by another entry in the same run: [1, 0, d] as [d, 0] is [1, 0]
 * if d is 0. If it is not, the run has elements for no elements, which no runtime takes: [n, m] as
 * [m, n] where m is 0. */
static bool copies_at_run_time(Lowering *n, int rank, ingot_dim *const *dims, int a)
{
    if (a >= ingot_rank(X) || ingot_dim_lo(dims[a]) > 0)
        return false;
    ingot_dim *copied = ingot_shape(X, a);
    if (copied == dims[a] || dim_is(copied, 0))
        return false;
    for (int b = 0; b < rank; b++) {
        bool same = dims[b] == dims[a] && b < ingot_rank(X); /* then it is copied, too */
        ingot_dim *other = same ? ingot_shape(X, b) : dims[b];
        if (b != a && other != copied && ingot_dim_lo(other) <= 0)
            return true;
    }
    return false;
}

/* Sizes that are 0 in some runs, in place: d becomes max(d, copied * (1 - min(d, 1))). */
static void copy_at_run_time(Lowering *n, int rank, ingot_dim **dims)
{
    ingot_dim *one = dim(n, 1), *copy[INGOT_MAX_RANK] = {0};
    for (int a = 0; a < rank; a++)
        if (copies_at_run_time(n, rank, dims, a)) {
            ingot_dim *none = ingot_dim_sub(n->c, one, ingot_dim_min(n->c, dims[a], one));
            copy[a] = ingot_dim_max(n->c, dims[a], ingot_dim_mul(n->c, ingot_shape(X, a), none));
        }
    for (int a = 0; a < rank; a++)
        if (copy[a])
            dims[a] = copy[a];
}

/* 0 copies a dim of the input, -1 stands for what is left. Beside a -1 a size that is 0 in some
 * runs stays 0: what is left follows from the others, [2, n, 4] as [n, -1] is [n, 8] whatever n is.
 */
static bool resolve_reshape(Lowering *n, int rank, ingot_dim **dims)
{
    bool zero = attr_int(n, "allowzero", 0) != 0;
    int unknown = -1;
    for (int a = 0; a < rank; a++)
        if (!dims[a])
            return reshape_at_run_time(n, rank, dims) && dims_positive(n, rank, dims);
    for (int a = 0; a < rank; a++) {
        if (dim_is(dims[a], 0) && !zero) {
            if (a >= ingot_rank(X)) {
                fault(n, "entry %d of its shape is 0, but its input has rank %d", a, ingot_rank(X));
                return false;
            }
            dims[a] = ingot_shape(X, a);
        }
        if (dim_is(dims[a], -1)) {
            if (unknown >= 0) {
                fault(n, "its shape has more than one -1");
                return false;
            }
            unknown = a;
        }
    }
    if (unknown < 0 && !zero)
        copy_at_run_time(n, rank, dims);
    if (unknown >= 0 && !(dims[unknown] = left_of_reshape(n, rank, dims, unknown)))
        return false;
    return dims_positive(n, rank, dims);
}

ingot_tensor *onnx_reshape(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    const int64_t *list;
    int rank;
    if (n->version < 5) {
        rank = attr_ints(n, "shape", &list);
        if (rank < 0 || rank > INGOT_MAX_RANK)
            return fault(n, "its attribute 'shape' is missing or too long");
        for (int a = 0; a < rank; a++)
            dims[a] = dim(n, list[a]);
    } else if (n->n_in < 2 || !n->in[1]) {
        return fault(n, "its shape is missing");
    } else if (!entries_in(n, 1, &rank, dims)) {
        return ingot_poison(n->c);
    }
    if (!resolve_reshape(n, rank, dims))
        return ingot_poison(n->c);
    return ingot_reshape(n->c, X, rank, dims);
}

ingot_tensor *onnx_transpose(Lowering *n)
{
    const int64_t *list;
    int perm[INGOT_MAX_RANK], rank = ingot_rank(X), count = attr_ints(n, "perm", &list);
    unsigned seen;
    if (count >= 0 && count != rank)
        return fault(n, "its permutation has %d entries, its input has rank %d", count, rank);
    if (count >= 0 && !axes_in(n, list, count, rank, &seen))
        return ingot_poison(n->c);
    for (int a = 0; a < rank; a++)
        perm[a] = count < 0 ? rank - 1 - a : (int)(list[a] < 0 ? list[a] + rank : list[a]);
    return ingot_permute(n->c, X, perm);
}

/* Axes that only the run knows: the shape is the one that the file declares, and the run compares
 * it with what the axes make of the input's. False: nothing is declared, or the axes are known. */
static bool declared_reshape(Lowering *n, int input, bool squeeze, ingot_tensor **y)
{
    ingot_context *c = n->c;
    const int64_t *list;
    int64_t dims[INGOT_MAX_RANK];
    int rank, from = ingot_rank(X), count;
    if (n->version < 13 || n->n_in <= input || !n->in[input] || ints_known(n, input, &list) >= 0 ||
        !declared_shape(n, 0, &rank, dims))
        return false;
    *y = ingot_poison(c);
    count = list_size(n, input);
    if (count < 0)
        return true;
    if (rank != (squeeze ? from - count : from + count)) {
        *y = fault(n,
                   "the file declares a result of rank %d, but its input of rank %d has %d axes %s",
                   rank, from, count, squeeze ? "less" : "more");
        return true;
    }
    int wide = squeeze ? from : rank; /* of what the axes count */
    ingot_tensor *zero = ingot_scalar_i(c, INGOT_I64, 0), *one = ingot_scalar_i(c, INGOT_I64, 1);
    ingot_tensor *passed = zero; /* axes of the narrow shape before axis a of the wide one */
    ingot_tensor *size[INGOT_MAX_RANK];
    for (int b = 0; b < rank; b++)
        size[b] = squeeze ? zero : one;
    for (int a = 0; a < wide; a++) {
        ingot_tensor *is = zero;
        for (int k = 0; k < count; k++) {
            ingot_tensor *axis =
                ingot_wrap_index(c, as(n, list_entry(n, input, k, 0), INGOT_I64), dim(n, wide));
            is = ingot_add(c, is,
                           as(n, ingot_eq(c, axis, ingot_scalar_i(c, INGOT_I64, a)), INGOT_I64));
        }
        ingot_tensor *kept = ingot_eq(c, is, zero);
        if (squeeze) { /* axis a of x becomes axis `passed`, or has to be 1 */
            ingot_tensor *d = ingot_from_dim(c, ingot_shape(X, a));
            for (int b = 0; b < rank; b++) {
                ingot_tensor *here =
                    ingot_and(c, kept, ingot_eq(c, passed, ingot_scalar_i(c, INGOT_I64, b)));
                size[b] = ingot_where(c, here, d, size[b]);
            }
            if (!value_is(n, ingot_where(c, kept, one, d), dim(n, 1),
                          "the size of an axis that its axes remove"))
                return true;
        } else { /* axis a of the result is axis `passed` of x, or new */
            for (int b = 0; b < from; b++) {
                ingot_tensor *here =
                    ingot_and(c, kept, ingot_eq(c, passed, ingot_scalar_i(c, INGOT_I64, b)));
                size[a] = ingot_where(c, here, ingot_from_dim(c, ingot_shape(X, b)), size[a]);
            }
        }
        passed = ingot_add(c, passed, as(n, kept, INGOT_I64));
    }
    /* axes given twice, or out of range, leave too many */
    if (!value_is(n, passed, dim(n, squeeze ? rank : from),
                  "the number of axes that its axes leave"))
        return true;
    for (int b = 0; b < rank; b++)
        if (!size_is(n, 0, b, size[b], dim(n, dims[b])))
            return true;
    *y = ingot_reshape_c(c, X, rank, dims);
    return true;
}

ingot_tensor *onnx_squeeze(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    const int64_t *list = NULL;
    unsigned axes = 0;
    int rank = 0;
    ingot_tensor *y;
    if (declared_reshape(n, 1, true, &y))
        return y;
    int count = ints_attr_or_in(n, "axes", 1, 13, &list);
    if (count == -2 || (count >= 0 && !axes_in(n, list, count, ingot_rank(X), &axes)))
        return ingot_poison(n->c);
    for (int a = 0; a < ingot_rank(X); a++) {
        bool one = dim_is(ingot_shape(X, a), 1),
             fixed = ingot_dim_is_const(ingot_shape(X, a), NULL);
        if (count >= 0 && axes >> a & 1 && !one && fixed)
            return fault(n, "axis %d has not size 1", a);
        if (!(count >= 0 ? axes >> a & 1 : one))
            dims[rank++] = ingot_shape(X, a);
    }
    return ingot_reshape(n->c, X, rank, dims);
}

ingot_tensor *onnx_unsqueeze(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    const int64_t *list = NULL;
    unsigned axes = 0;
    ingot_tensor *y;
    if (declared_reshape(n, 1, false, &y))
        return y;
    int count = ints_attr_or_in(n, "axes", 1, 13, &list), rank = ingot_rank(X) + count;
    if (count < 0)
        return n->failed ? ingot_poison(n->c) : fault(n, "its axes are missing");
    if (rank > INGOT_MAX_RANK)
        return unsupported(n, "a result of rank %d is above %d", rank, INGOT_MAX_RANK);
    if (!axes_in(n, list, count, rank, &axes))
        return ingot_poison(n->c);
    for (int a = 0, from = 0; a < rank; a++)
        dims[a] = axes >> a & 1 ? dim(n, 1) : ingot_shape(X, from++);
    return ingot_reshape(n->c, X, rank, dims);
}

ingot_tensor *onnx_flatten(Lowering *n)
{
    ingot_dim *dims[2] = {dim(n, 1), dim(n, 1)};
    int rank = ingot_rank(X), axis = rank;
    int64_t given = attr_int(n, "axis", 1);
    if (given != rank && !axis_in(n, given, rank, &axis))
        return ingot_poison(n->c);
    for (int a = 0; a < rank; a++)
        dims[a >= axis] = ingot_dim_mul(n->c, dims[a >= axis], ingot_shape(X, a));
    return ingot_reshape(n->c, X, 2, dims);
}

/* ---- repeating ------------------------------------------------------------------------------ */

/* The size of an axis of Expand's result: d is that of the input, entry the target's, of which 1
 * keeps d. NULL after an error. */
static ingot_dim *expanded(Lowering *n, int axis, int rank, ingot_dim *d, ingot_dim *entry,
                           ingot_tensor *value)
{
    static const char what[] = "an entry of its shape";
    bool one = dim_is(d, 1);
    if (entry && (dim_is(entry, 1) || entry == d))
        return d;
    if (entry && (one || ingot_dim_lo(entry) > 1)) /* ingot_expand sees to it that d is that or 1 */
        return entry;
    ingot_tensor *is_one = ingot_eq(n->c, value, ingot_like(n->c, value, 1)),
                 *own = ingot_from_dim(n->c, d);
    if (one) {
        ingot_dim *size = size_at_run_time(n, 0, axis, rank, value, -1);
        if (!size)
            unbounded_size(n, 0, axis);
        return size;
    }
    if (ingot_dim_lo(d) > 1) /* it is 1 or d */
        return value_is(n, ingot_where(n->c, is_one, own, value), d, what) ? d : NULL;
    unsupported(n,
                "axis %d of its input may be 1 and stretched when the model runs, which is not "
                "supported; bounds above 1 "
                "say that it is not",
                axis);
    return NULL;
}

/* Broadcasts both ways: the target's 1 keeps the input's dim. */
ingot_tensor *onnx_expand(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK], *entries[INGOT_MAX_RANK];
    int count, from = ingot_rank(X);
    if (!entries_in(n, 1, &count, entries))
        return ingot_poison(n->c);
    int rank = from > count ? from : count;
    for (int a = 0; a < rank; a++) {
        int at = a - (rank - count), own = a - (rank - from);
        ingot_dim *d = own < 0 ? dim(n, 1) : ingot_shape(X, own),
                  *entry = at < 0 ? dim(n, 1) : entries[at];
        if (entry && ingot_dim_hi(entry) < 0)
            return fault(n, "dim %d of its result is negative", a);
        dims[a] = expanded(n, a, rank, d, entry, at < 0 ? NULL : list_entry(n, 1, at, 0));
        if (!dims[a])
            return ingot_poison(n->c);
    }
    return ingot_expand(n->c, X, rank, dims);
}

/* How often axis a of size d is repeated, which entry a decides when the model runs. NULL after an
 * error. */
static ingot_dim *repeats_at_run_time(Lowering *n, int a, ingot_dim *d)
{
    int64_t size, lo, hi;
    ingot_tensor *entry = list_entry(n, 1, a, 0);
    char what[64];
    snprintf(what, sizeof what, "the number of repeats along axis %d", a);
    if (!size_bounds(n, 0, a, ingot_rank(X), &lo, &hi))
        lo = hi = implied_size(n, 0, a, ingot_rank(X));
    if (lo < 0) {
        unbounded_size(n, 0, a);
        return NULL;
    }
    if (!ingot_dim_is_const(d, &size)) {
        unsupported(n,
                    "the size of axis %d and its repeats are both decided when the model runs; "
                    "--dim %s=lo..hi bounds the "
                    "repeats",
                    a, n->proto->input[1]);
        return NULL;
    }
    if (size == 0)
        return dim(n, 1);
    lo = (lo + size - 1) / size;
    hi = hi / size;
    if (lo > hi) {
        fault(n,
              "no number of repeats of its axis %d, of %lld elements, gives what is declared for "
              "its result",
              a, (long long)size);
        return NULL;
    }
    return value_within(n, entry, lo, hi, what);
}

ingot_tensor *onnx_tile(Lowering *n)
{
    ingot_dim *list[INGOT_MAX_RANK];
    int64_t axis, times;
    int rank = ingot_rank(X), count;
    if (n->version < 6) {
        int at;
        if (n->n_in < 3 || !int_in(n, 1, &times) || !int_in(n, 2, &axis) ||
            !axis_in(n, axis, rank, &at))
            return n->failed ? ingot_poison(n->c) : fault(n, "its repeats are missing");
        for (int a = 0; a < rank; a++)
            list[a] = dim(n, a == at ? times : 1);
        return ingot_tile(n->c, X, list);
    }
    if (!entries_in(n, 1, &count, list))
        return ingot_poison(n->c);
    if (count != rank)
        return fault(n, "it has %d repeats, its input has rank %d", count, rank);
    for (int a = 0; a < rank; a++)
        if (!list[a] && !(list[a] = repeats_at_run_time(n, a, ingot_shape(X, a))))
            return ingot_poison(n->c);
    return dims_positive(n, count, list) ? ingot_tile(n->c, X, list) : ingot_poison(n->c);
}

ingot_tensor *onnx_concat(Lowering *n)
{
    int axis;
    if (!attr_has(n, "axis") && n->version >= 4)
        return fault(n, "its attribute 'axis' is missing");
    if (!axis_in(n, attr_int(n, "axis", 1), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    for (int i = 0; i < n->n_in; i++)
        if (!n->in[i])
            return fault(n, "input %d is missing", i);
    return n->n_in == 1 ? X : ingot_concat(n->c, n->n_in, n->in, axis);
}

/* ---- splitting ------------------------------------------------------------------------------ */

/* Sizes that the data decide: each is at most that of the axis, and all together are. */
static bool split_at_run_time(Lowering *n, int axis, ingot_dim **sizes)
{
    ingot_dim *all = ingot_shape(X, axis), *total = dim(n, 0);
    ingot_tensor *list = n->in[1];
    int64_t count;
    if (ingot_rank(list) != 1 || !ingot_dim_is_const(ingot_shape(list, 0), &count) ||
        count != n->n_out) {
        fault(n, "its sizes are not one for each of its %d outputs", n->n_out);
        return false;
    }
    for (int i = 0; i < n->n_out; i++) {
        sizes[i] =
            size_at_run_time(n, i, axis, ingot_rank(X), list_entry(n, 1, i, 0), ingot_dim_hi(all));
        total = ingot_dim_add(n->c, total, sizes[i]);
    }
    return ingot_require(n->c, total, all, all, "the sum of its sizes");
}

/* The sizes of the n->n_out parts. False after an error. */
static bool split_sizes(Lowering *n, int axis, ingot_dim **sizes)
{
    const int64_t *list = NULL;
    int64_t total = 0, all;
    int count = -1;
    bool as_input = n->version >= 13 || (n->version < 2 && n->n_in > 1);
    if (as_input && n->n_in > 1 && n->in[1] && ints_known(n, 1, &list) < 0)
        return split_at_run_time(n, axis, sizes);
    count = ints_attr_or_in(n, "split", 1, as_input ? 1 : 13, &list);
    if (count == -2)
        return false;
    if (count >= 0 && count != n->n_out) {
        fault(n, "it has %d outputs, but %d sizes", n->n_out, count);
        return false;
    }
    if (count >= 0) {
        for (int i = 0; i < count; i++)
            sizes[i] = dim(n, list[i]);
        if (!dims_positive(n, count, sizes))
            return false;
        for (int i = 0; i < count; i++) /* as much as there can be, and no more */
            total += list[i] < INT64_MAX - total ? list[i] : INT64_MAX - total;
        if (ingot_dim_is_const(ingot_shape(X, axis), &all) && all != total) {
            fault(n, "its parts have %lld elements along axis %d, its input has %lld",
                  (long long)total, axis, (long long)all);
            return false;
        }
        return ingot_require(n->c, ingot_shape(X, axis), dim(n, total), dim(n, total),
                             "the size of its axis, the sum of its parts,");
    }
    /* Equal parts; the last may be smaller from opset 18 on. */
    int64_t parts = n->version >= 18 ? attr_int(n, "num_outputs", n->n_out) : n->n_out;
    ingot_dim *whole = ingot_shape(X, axis), *zero = dim(n, 0), *count_dim = dim(n, parts);
    bool known = ingot_dim_is_const(whole, &all);
    if (parts < n->n_out || parts < 1 || (n->version < 18 && known && all % parts)) {
        fault(n, "%lld elements cannot be split into %lld equal parts",
              (long long)ingot_dim_hi(whole), (long long)parts);
        return false;
    }
    ingot_dim *size = ingot_dim_div(n->c, ingot_dim_add(n->c, whole, dim(n, parts - 1)), count_dim);
    if (n->version < 18) {
        size = ingot_dim_div(n->c, whole, count_dim);
        for (int i = 0; i < n->n_out; i++)
            sizes[i] = size;
        ingot_dim *used = ingot_dim_mul(n->c, size, count_dim);
        return ingot_require(n->c, whole, used, used, "the size of its axis, in equal parts,");
    }
    for (int i = 0; i < n->n_out; i++) {
        ingot_dim *left = ingot_dim_sub(n->c, whole, ingot_dim_mul(n->c, size, dim(n, i)));
        sizes[i] = ingot_dim_max(n->c, ingot_dim_min(n->c, left, size), zero);
    }
    return true;
}

ingot_tensor *onnx_split(Lowering *n)
{
    int axis;
    ingot_dim **sizes = ingot_alloc(n->c, (size_t)(n->n_out + 1) * sizeof *sizes);
    if (!axis_in(n, attr_int(n, "axis", 0), ingot_rank(X), &axis) || !split_sizes(n, axis, sizes))
        return ingot_poison(n->c);
    ingot_dim *at = dim(n, 0);
    for (int i = 0; i < n->n_out; i++) {
        n->out[i] = ingot_slice(n->c, X, axis, at, sizes[i], 1);
        at = ingot_dim_add(n->c, at, sizes[i]);
    }
    return n->out[0];
}

/* ---- padding -------------------------------------------------------------------------------- */

/* min(|i|, 2 last - |i|): the place that i of -last ... 2 last reads, without a remainder. */
static ingot_tensor *reflect_once(Lowering *n, ingot_tensor *i, ingot_tensor *size)
{
    ingot_tensor *twice = ingot_mul_c(n->c, ingot_add_c(n->c, size, -1), 2);
    i = ingot_max(n->c, i, ingot_neg(n->c, i));
    return ingot_min(n->c, i, ingot_sub(n->c, twice, i));
}

/* What negative pads leave of x: wrap repeats that. The pads are then those that are left. */
static ingot_tensor *pad_cut(Lowering *n, ingot_tensor *x, int axis, ingot_dim **lo, ingot_dim **hi)
{
    ingot_dim *zero = dim(n, 0), *size = ingot_shape(x, axis);
    if (ingot_dim_lo(*lo) >= 0 && ingot_dim_lo(*hi) >= 0)
        return x;
    ingot_dim *from = ingot_dim_max(n->c, ingot_dim_sub(n->c, zero, *lo), zero);
    ingot_dim *behind = ingot_dim_max(n->c, ingot_dim_sub(n->c, zero, *hi), zero);
    size = ingot_dim_sub(n->c, ingot_dim_sub(n->c, size, from), behind);
    *lo = ingot_dim_max(n->c, *lo, zero);
    *hi = ingot_dim_max(n->c, *hi, zero);
    if (ingot_dim_hi(size) < 1 && (!dim_is(*lo, 0) || !dim_is(*hi, 0)))
        return fault(n, "its negative pads leave nothing of axis %d that the others could repeat",
                     axis);
    return ingot_slice(n->c, x, axis, from, ingot_dim_max(n->c, size, zero), 1);
}

/* x along one axis, where place i of the result reads place pad_place(i - lo) of the input. */
static ingot_tensor *pad_axis(Lowering *n, ingot_tensor *x, int axis, ingot_dim *lo, ingot_dim *hi,
                              const char *mode)
{
    if (strcmp(mode, "wrap") == 0)
        x = pad_cut(n, x, axis, &lo, &hi);
    if (ingot_is_poison(x))
        return x;
    ingot_dim *size = ingot_shape(x, axis);
    ingot_dim *out = ingot_dim_add(n->c, size, ingot_dim_add(n->c, lo, hi));
    ingot_tensor *i = ingot_sub(n->c, ingot_iota(n->c, 1, &out, 0), ingot_from_dim(n->c, lo));
    ingot_tensor *length = ingot_from_dim(n->c, size);
    int64_t k, before, behind;
    bool once = strcmp(mode, "reflect") == 0 && ingot_dim_is_const(size, &k) &&
                ingot_dim_is_const(lo, &before) && ingot_dim_is_const(hi, &behind) && before < k &&
                behind < k;
    return ingot_take(n->c, x, once ? reflect_once(n, i, length) : pad_place(n, i, length, mode),
                      axis);
}

/* The pads of each axis: false after an error. */
static bool pad_amounts(Lowering *n, ingot_dim **lo, ingot_dim **hi)
{
    int rank = ingot_rank(X), n_axes = rank, count;
    const int64_t *list, *axes = NULL;
    ingot_dim *const *pads;
    unsigned set = 0;
    for (int a = 0; a < rank; a++)
        lo[a] = hi[a] = dim(n, 0);
    if (n->version < 11) {
        count = attr_ints(n, n->version < 2 ? "paddings" : "pads", &list);
        ingot_dim **made = ingot_alloc(n->c, (size_t)(count < 0 ? 1 : count + 1) * sizeof *made);
        for (int i = 0; i < count; i++)
            made[i] = dim(n, list[i]);
        pads = made;
    } else {
        count = dims_in(n, 1, &pads);
    }
    if (n->failed)
        return false;
    if (n->n_in > 3 && n->in[3]) {
        n_axes = ints_in(n, 3, &axes);
        if (n_axes < 0 || !axes_in(n, axes, n_axes, rank, &set))
            return false;
    }
    if (count != 2 * n_axes) {
        fault(n, "it has %d pads for %d axes", count, n_axes);
        return false;
    }
    for (int i = 0; i < n_axes; i++) {
        int64_t a = axes ? (axes[i] < 0 ? axes[i] + rank : axes[i]) : i;
        lo[a] = pads[i];
        hi[a] = pads[i + n_axes];
    }
    return true;
}

/* False if pads or axes are known at run time only. */
static bool pads_known(Lowering *n)
{
    ingot_dim *list[2 * INGOT_MAX_RANK];
    const int64_t *axes;
    return ingot_contents(n->c, n->in[1], list, COUNT(list)) >= 0 &&
           (!optional_in(n, 3) || ints_known(n, 3, &axes) >= 0);
}

ingot_tensor *onnx_pad(Lowering *n)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    const char *mode = attr_string(n, "mode", "constant");
    ingot_tensor *y = X, *value = NULL;
    bool constant = strcmp(mode, "constant") == 0;
    if (!constant && strcmp(mode, "reflect") && strcmp(mode, "edge") && strcmp(mode, "wrap"))
        return fault(n, "its mode '%s' is unknown", mode);
    if (n->version < 11)
        value = like(n, X, attr_float(n, "value", 0));
    else
        value = n->n_in > 2 && n->in[2] ? reshape_scalar(n, n->in[2]) : like(n, X, 0);
    if (n->version >= 11 && (n->n_in < 2 || !n->in[1]))
        return fault(n, "its pads are missing");
    if (n->version >= 11 && !pads_known(n))
        return pad_at_run_time(n, value, mode);
    if (!pad_amounts(n, lo, hi))
        return ingot_poison(n->c);
    if (constant)
        return ingot_pad_value(n->c, X, lo, hi, value);
    for (int a = 0; a < ingot_rank(X); a++) {
        if (!dim_is(lo[a], 0) || !dim_is(hi[a], 0))
            y = pad_axis(n, y, a, lo[a], hi[a], mode);
    }
    return y;
}

/* The middle of x along some axes, padded with zeros where it is too small. */
ingot_tensor *onnx_center_crop_pad(Lowering *n)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK], *target[INGOT_MAX_RANK];
    const int64_t *axes;
    int rank = ingot_rank(X), n_axes = attr_ints(n, "axes", &axes), count;
    unsigned set;
    if (n_axes >= 0 && !axes_in(n, axes, n_axes, rank, &set))
        return ingot_poison(n->c);
    int wanted = n_axes < 0 ? rank : n_axes;
    if (!entries_in(n, 1, &count, target))
        return ingot_poison(n->c);
    if (count != wanted)
        return fault(n, "it has %d sizes for %d axes", count, wanted);
    for (int i = 0; i < count; i++) {
        int a = (int)(n_axes < 0 ? i : axes[i] < 0 ? axes[i] + rank : axes[i]);
        if (!target[i] &&
            !(target[i] = size_at_run_time(n, 0, a, rank, list_entry(n, 1, i, 0), -1)))
            return unbounded_size(n, 0, a);
    }
    for (int a = 0; a < rank; a++)
        lo[a] = hi[a] = dim(n, 0);
    for (int i = 0; i < count; i++) {
        int64_t a = n_axes < 0 ? i : axes[i] < 0 ? axes[i] + rank : axes[i];
        ingot_dim *more = ingot_dim_sub(n->c, target[i], ingot_shape(X, (int)a)), *zero = dim(n, 0),
                  *two = dim(n, 2);
        ingot_dim *less = ingot_dim_max(n->c, ingot_dim_sub(n->c, zero, more), zero);
        lo[a] = ingot_dim_div(n->c, ingot_dim_max(n->c, more, zero), two);
        lo[a] = ingot_dim_sub(n->c, lo[a], ingot_dim_div(n->c, less, two));
        hi[a] = ingot_dim_sub(n->c, more, lo[a]);
    }
    return ingot_pad(n->c, X, lo, hi);
}

/* ---- blocks of pixels ----------------------------------------------------------------------- */

/* [N, C, H, W] with C = c b b; DCR: b b c, CRD: c b b. */
ingot_tensor *onnx_depth_to_space(Lowering *n)
{
    static const int dcr[] = {0, 3, 4, 1, 5, 2}, crd[] = {0, 1, 4, 2, 5, 3};
    int64_t b = attr_int(n, "blocksize", 0), c = 0;
    bool crd_mode = attr_is(n, "mode", "DCR", "CRD");
    if (ingot_rank(X) != 4)
        return fault(n, "its input has to have rank 4");
    if (b < 1 || b > 1 << 15 || (ingot_dim_is_const(ingot_shape(X, 1), &c) && c % (b * b)))
        return fault(n, "its channels have to be a multiple of its squared blocksize");
    ingot_dim *N = ingot_shape(X, 0), *H = ingot_shape(X, 2), *W = ingot_shape(X, 3),
              *B = dim(n, b);
    ingot_dim *C = ingot_dim_div(n->c, ingot_shape(X, 1), dim(n, b * b));
    ingot_dim *split_dcr[] = {N, B, B, C, H, W}, *split_crd[] = {N, C, B, B, H, W};
    ingot_dim *joined[] = {N, C, ingot_dim_mul(n->c, H, B), ingot_dim_mul(n->c, W, B)};
    ingot_tensor *y = ingot_reshape(n->c, X, 6, crd_mode ? split_crd : split_dcr);
    return ingot_reshape(n->c, ingot_permute(n->c, y, crd_mode ? crd : dcr), 4, joined);
}

ingot_tensor *onnx_space_to_depth(Lowering *n)
{
    static const int dcr[] = {0, 3, 5, 1, 2, 4}, crd[] = {0, 1, 3, 5, 2, 4};
    int64_t b = attr_int(n, "blocksize", 0);
    const char *mode = attr_string(n, "mode", "DCR"); /* since opset 28 */
    const int *perm = strcmp(mode, "CRD") == 0 ? crd : dcr;
    if (perm == dcr && strcmp(mode, "DCR") != 0)
        return fault(n, "its mode '%s' is unknown", mode);
    if (ingot_rank(X) != 4 || b < 1 || b > 1 << 15)
        return fault(n, "its input has to have rank 4, and its blocksize has to be positive");
    ingot_dim *N = ingot_shape(X, 0), *C = ingot_shape(X, 1), *B = dim(n, b);
    ingot_dim *H = ingot_dim_div(n->c, ingot_shape(X, 2), B),
              *W = ingot_dim_div(n->c, ingot_shape(X, 3), B);
    ingot_dim *split[] = {N, C, H, B, W, B};
    ingot_dim *joined[] = {N, ingot_dim_mul(n->c, C, dim(n, b * b)), H, W};
    ingot_tensor *y = ingot_reshape(n->c, X, 6, split);
    return ingot_reshape(n->c, ingot_permute(n->c, y, perm), 4, joined);
}
