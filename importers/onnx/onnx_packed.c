/*
 * onnx_packed.c - sequences whose length only the run knows: their elements are rows of one tensor.
 *
 *     rows    [n, box...]   element i in the corner of row i, anything around it
 *     sizes   i64[n, rank]  the dims of each element, where they are not all those of the box
 *     length  0..n          rows beyond it hold anything
 *
 * n and the box are bounds that are known when compiling. Everything is composed of the builder's
 * operations; a place or a size that decides a shape is read by a step of the program, which fails
 * if it is out of bounds. Appending writes one row, so that in a loop, where the sequence dies,
 * nothing else moves.
 */
#include <string.h>

#include "onnx.h"

Value *value_sequence(ingot_context *c, int count, ingot_dtype dtype)
{
    Value *v = ingot_alloc(c, sizeof *v);
    *v = (Value){.kind = VALUE_SEQUENCE, .n = count, .item_dtype = dtype};
    v->item = ingot_alloc(c, (size_t)(count + 1) * sizeof *v->item);
    return v;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static ingot_dim *number(ingot_context *c, int64_t v)
{
    return ingot_dim_const(c, v);
}

static ingot_tensor *scalar(ingot_context *c, int64_t v)
{
    return ingot_scalar_i(c, INGOT_I64, v);
}

/* An empty sequence of that form. */
static Value *empty_packed(ingot_context *c, int n, ingot_dtype dtype, int rank)
{
    Value *v = value_sequence(c, n, dtype);
    v->item = NULL;
    v->packed = ingot_alloc(c, sizeof *v->packed);
    *v->packed = (Packed){.rank = rank, .length = number(c, 0)};
    return v;
}

/* x with zeros after it along each axis, up to `to`. */
static ingot_tensor *pad_to(ingot_context *c, ingot_tensor *x, const int64_t *to)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    for (int a = 0; a < ingot_rank(x); a++) {
        lo[a] = number(c, 0);
        hi[a] = ingot_dim_sub(c, number(c, to[a]), ingot_shape(x, a));
    }
    return ingot_rank(x) ? ingot_pad(c, x, lo, hi) : x;
}

/* x as the one row of [1, box...]. */
static ingot_tensor *as_row(ingot_context *c, const Packed *p, ingot_tensor *x)
{
    return ingot_unsqueeze(c, pad_to(c, x, p->box), 0);
}

/* The dims of x as a row of sizes. */
static ingot_tensor *size_row(ingot_context *c, ingot_tensor *x)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    shape_of(x, dims);
    return ingot_unsqueeze(c, ingot_from_dims(c, ingot_rank(x), dims), 0);
}

static bool all_equal(const Packed *p)
{
    for (int a = 0; a < p->rank; a++)
        if (!p->equal[a])
            return false;
    return true;
}

/* The sizes as a tensor, also where they are all known. */
static ingot_tensor *sizes_of(ingot_context *c, const Packed *p, int n)
{
    ingot_dim *dims[2] = {number(c, n), number(c, p->rank)}, *box[INGOT_MAX_RANK];
    if (p->sizes)
        return p->sizes;
    for (int a = 0; a < p->rank; a++)
        box[a] = number(c, p->box[a]);
    return ingot_expand(c, ingot_from_dims(c, p->rank, box), 2, dims);
}

void packed_read_dims(ingot_context *c, ingot_tensor *x, int count, const int64_t *hi, int64_t most,
                      ingot_dim **out)
{
    int64_t *ints = ingot_alloc(c, (size_t)(1 + 2 * count) * sizeof *ints);
    for (int k = 0; k < count; k++) {
        ints[2 + 2 * k] = hi ? hi[k] : most;
        out[k] = ingot_call_count(c, "size", 0, ints[2 + 2 * k]);
    }
    ingot_call_desc d = {.name = "readint",
                         .n_in = 1,
                         .in = &x,
                         .n_int = 1 + 2 * count,
                         .ints = ints,
                         .n_count = count,
                         .counts = out};
    ingot_call(c, &d, NULL);
}

/* Row `at` of x, without the axis. */
static ingot_tensor *row(ingot_context *c, ingot_tensor *x, ingot_dim *at)
{
    ingot_dim *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    shape_of(x, size);
    for (int a = 0; a < ingot_rank(x); a++)
        begin[a] = number(c, 0);
    begin[0] = at;
    size[0] = number(c, 1);
    return ingot_squeeze(c, ingot_shrink(c, x, begin, size), 0);
}

static ingot_tensor *element_at(ingot_context *c, const Packed *p, ingot_dim *at)
{
    ingot_dim *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK], *read[INGOT_MAX_RANK];
    ingot_tensor *x = row(c, p->rows, at);
    if (ingot_is_poison(x) || all_equal(p))
        return x;
    packed_read_dims(c, row(c, p->sizes, at), p->rank, p->box, 0, read);
    for (int a = 0; a < p->rank; a++) {
        begin[a] = number(c, 0);
        size[a] = p->equal[a] ? number(c, p->box[a]) : read[a];
    }
    return ingot_shrink(c, x, begin, size);
}

ingot_tensor *packed_element(ingot_context *c, const Value *v, int i)
{
    return element_at(c, v->packed, number(c, i));
}

/* A place that counts from the end where it is negative as a dim of 0..hi; one that is not below
 * `end` ends the run. */
static ingot_dim *place_of(ingot_context *c, const Packed *p, ingot_tensor *place, ingot_dim *end,
                           int64_t hi)
{
    place = ingot_wrap_index(c, place, p->length);
    ingot_tensor *inside = ingot_lt(c, place, ingot_from_dim(c, end));
    return ingot_read_dim(c, ingot_where(c, inside, place, scalar(c, -1)), "place", 0, hi);
}

ingot_tensor *packed_at(ingot_context *c, const Value *v, ingot_tensor *place)
{
    const Packed *p = v->packed;
    int64_t i;
    int count;
    if (ingot_const_ints(c, place, &i, 1, &count) && count == 1 && i >= 0 &&
        i < ingot_dim_lo(p->length))
        return element_at(c, p, number(c, i));
    if (v->n == 0)
        return ingot_error(c, INGOT_INVALID, "its sequence is empty");
    return element_at(c, p, place_of(c, p, place, p->length, v->n - 1));
}

/* A sequence like v with other rows. */
static Value *with_rows(ingot_context *c, const Value *v, int n, ingot_tensor *rows,
                        ingot_tensor *sizes, ingot_dim *length)
{
    Value *out = value_sequence(c, n, v->item_dtype);
    out->item = NULL;
    out->packed = ingot_alloc(c, sizeof *out->packed);
    *out->packed = *v->packed;
    out->packed->rows = rows;
    out->packed->sizes = sizes;
    out->packed->length = length;
    return out;
}

/* x with n rows, of which the added ones are zero, in boxes that are `box`. */
static ingot_tensor *grow(ingot_context *c, ingot_tensor *x, int n, const int64_t *box)
{
    int64_t to[INGOT_MAX_RANK] = {n};
    memcpy(to + 1, box, (size_t)(ingot_rank(x) - 1) * sizeof *to);
    return pad_to(c, x, to);
}

Value *packed_grow(ingot_context *c, const Value *v, int n, const int64_t *box, const bool *equal)
{
    const Packed *p = v->packed;
    int64_t width = p->rank;
    Value *out = with_rows(c, v, n, grow(c, p->rows, n, box), NULL, p->length);
    bool same = true;
    for (int a = 0; a < p->rank; a++) {
        out->packed->box[a] = box[a];
        out->packed->equal[a] = equal[a];
        same &= equal[a];
    }
    if (!same)
        out->packed->sizes = grow(c, sizes_of(c, p, v->n), n, &width);
    return out;
}

/* What a row is where `place` is j: x put there and the others moved up; all of it elementwise over
 * [n, ...]. */
static ingot_tensor *insert_row(ingot_context *c, ingot_tensor *rows, ingot_tensor *x,
                                ingot_dim *place)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_dim *n = ingot_shape(rows, 0);
    shape_of(rows, dims);
    ingot_tensor *at = ingot_from_dim(c, place), *j = ingot_iota(c, 1, &n, 0);
    ingot_tensor *from = ingot_sub(c, j, ingot_cast(c, ingot_gt(c, j, at), INGOT_I64));
    ingot_tensor *here = ingot_eq(c, ingot_iota(c, ingot_rank(rows), dims, 0), at);
    return ingot_where(c, here, x, ingot_take(c, rows, from, 0));
}

/* x written into row `place`. */
static ingot_tensor *write_row(ingot_context *c, ingot_tensor *rows, ingot_tensor *x,
                               ingot_dim *place)
{
    ingot_tensor *index[INGOT_MAX_RANK];
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank = ingot_rank(rows);
    shape_of(x, dims);
    index[0] = ingot_from_dim(c, place);
    for (int a = 1; a < rank; a++)
        index[a] = ingot_iota(c, rank, dims, a);
    return ingot_update(c, INGOT_SET, rows, x, index);
}

Value *packed_insert(ingot_context *c, const Value *v, ingot_tensor *x, ingot_tensor *place)
{
    const Packed *p = v->packed;
    int64_t box[INGOT_MAX_RANK], size;
    bool equal[INGOT_MAX_RANK];
    int n = p->full ? v->n : v->n + 1;
    if (ingot_rank(x) != p->rank) {
        ingot_error(c, INGOT_UNSUPPORTED,
                    "a tensor of rank %d comes into a sequence of tensors of rank %d",
                    ingot_rank(x), p->rank);
        return NULL;
    }
    for (int a = 0; a < p->rank; a++) {
        int64_t hi = ingot_dim_hi(ingot_shape(x, a));
        box[a] = hi > p->box[a] ? hi : p->box[a];
        equal[a] = p->equal[a] && ingot_dim_is_const(ingot_shape(x, a), &size) && size == p->box[a];
    }
    ingot_dim *at = p->length, *length = ingot_dim_add(c, p->length, number(c, 1));
    if (place)
        at = place_of(c, p, place, length, n - 1);
    Value *out = packed_grow(c, v, n, box, equal);
    Packed *q = out->packed;
    ingot_tensor *(*put)(ingot_context *, ingot_tensor *, ingot_tensor *, ingot_dim *) =
        place ? insert_row : write_row;
    q->rows = put(c, q->rows, as_row(c, q, x), at);
    if (q->sizes)
        q->sizes = put(c, q->sizes, size_row(c, x), at);
    q->length = length;
    if (p->full) /* no room: the run fails */
        q->length = ingot_read_dim(c, ingot_from_dim(c, length), "length", 0, n);
    return out;
}

static ingot_tensor *erase_row(ingot_context *c, ingot_tensor *rows, ingot_dim *place)
{
    ingot_dim *n = ingot_shape(rows, 0);
    ingot_tensor *j = ingot_iota(c, 1, &n, 0);
    ingot_tensor *from =
        ingot_add(c, j, ingot_cast(c, ingot_ge(c, j, ingot_from_dim(c, place)), INGOT_I64));
    return ingot_take(c, rows,
                      ingot_min(c, from, ingot_from_dim(c, ingot_dim_sub(c, n, number(c, 1)))), 0);
}

Value *packed_erase(ingot_context *c, const Value *v, ingot_tensor *place)
{
    const Packed *p = v->packed;
    if (v->n == 0) {
        ingot_error(c, INGOT_INVALID, "its sequence is empty");
        return NULL;
    }
    ingot_dim *at = place_of(c, p, place ? place : scalar(c, -1), p->length, v->n - 1);
    ingot_tensor *rows = erase_row(c, p->rows, at),
                 *sizes = p->sizes ? erase_row(c, p->sizes, at) : NULL;
    ingot_dim *length = ingot_read_dim(
        c, ingot_from_dim(c, ingot_dim_sub(c, p->length, number(c, 1))), "length", 0, v->n - 1);
    return with_rows(c, v, v->n, rows, sizes, length);
}

/* ---- whole sequences ------------------------------------------------------------------------- */

/* The dims that all elements have, read at run time where they are not known; other ones end the
 * run. The axis `but` may differ. */
static void common_dims(ingot_context *c, const Value *v, int but, ingot_dim **out)
{
    const Packed *p = v->packed;
    ingot_dim *dims[2] = {number(c, v->n), number(c, p->rank)}, *read[INGOT_MAX_RANK];
    bool known = true;
    for (int a = 0; a < p->rank; a++) {
        out[a] = number(c, p->box[a]);
        known &= p->equal[a] || a == but;
    }
    if (known)
        return;
    ingot_tensor *first = row(c, p->sizes, number(c, 0));
    ingot_tensor *differs = ingot_ne(c, p->sizes, first);
    ingot_tensor *inside = ingot_lt(c, ingot_iota(c, 2, dims, 0), ingot_from_dim(c, p->length));
    ingot_tensor *bad = ingot_cast(c, ingot_and(c, differs, inside), INGOT_I64);
    bad = ingot_reduce(c, INGOT_REDUCE_MAX, bad, 1, false);
    if (but >= 0) { /* its axis may differ */
        ingot_dim *rank = number(c, p->rank);
        bad = ingot_mul(
            c, bad,
            ingot_cast(c, ingot_ne(c, ingot_iota(c, 1, &rank, 0), scalar(c, but)), INGOT_I64));
    }
    ingot_tensor *checked = ingot_where(c, ingot_cast(c, bad, INGOT_BOOL), scalar(c, -1), first);
    packed_read_dims(c, checked, p->rank, p->box, 0, read);
    for (int a = 0; a < p->rank; a++)
        if (!p->equal[a] && a != but)
            out[a] = read[a];
}

/* The rows that are there, [length, dims...], and their first axis put at `axis`. */
static ingot_tensor *stacked(ingot_context *c, const Value *v, int axis, ingot_dim *const *dims)
{
    const Packed *p = v->packed;
    ingot_dim *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    int perm[INGOT_MAX_RANK];
    for (int a = 0; a <= p->rank; a++) {
        begin[a] = number(c, 0);
        size[a] = a ? dims[a - 1] : p->length;
        perm[a] = a < axis ? a + 1 : a == axis ? 0 : a;
    }
    return ingot_permute(c, ingot_shrink(c, p->rows, begin, size), perm);
}

/* Elements of several sizes one after another along an axis: place k belongs to element j(k), of
 * which as many end at or before k as come before it. */
static ingot_tensor *concat_unequal(ingot_context *c, const Value *v, int axis,
                                    ingot_dim *const *common)
{
    const Packed *p = v->packed;
    ingot_dim *n = number(c, v->n), *nn[2] = {n, n}, *dims[INGOT_MAX_RANK], *ones[INGOT_MAX_RANK],
              *one = number(c, 1);
    ingot_tensor *index[INGOT_MAX_RANK];
    ingot_tensor *size = ingot_take(c, p->sizes, scalar(c, axis), 1); /* [n] */
    size = ingot_where(c, ingot_lt(c, ingot_iota(c, 1, &n, 0), ingot_from_dim(c, p->length)), size,
                       scalar(c, 0));
    ingot_dim *total =
        ingot_read_dim(c, ingot_sum(c, size, 1, false), "length", 0, v->n * p->box[axis]);
    ingot_tensor *before =
        ingot_lt(c, ingot_iota(c, 2, nn, 1), ingot_iota(c, 2, nn, 0)); /* [j, i]: i < j */
    ingot_tensor *begin = ingot_sum(c, ingot_where(c, before, size, scalar(c, 0)), 2, false);
    ingot_tensor *end = ingot_add(c, begin, size);
    ingot_dim *kn[2] = {total, n};
    ingot_tensor *ended = ingot_le(c, end, ingot_iota(c, 2, kn, 0)); /* [k, j] */
    ingot_tensor *j = ingot_sum(c, ingot_cast(c, ended, INGOT_I64), 2, false);
    ingot_tensor *k = ingot_sub(c, ingot_iota(c, 1, &total, 0), ingot_take(c, begin, j, 0));
    for (int a = 0; a < p->rank; a++) {
        dims[a] = a == axis ? total : common[a];
        ones[a] = a == axis ? total : one;
    }
    index[0] = ingot_reshape(c, j, p->rank, ones);
    for (int a = 0; a < p->rank; a++)
        index[1 + a] =
            a == axis ? ingot_reshape(c, k, p->rank, ones) : ingot_iota(c, p->rank, dims, a);
    return ingot_gather(c, p->rows, index);
}

ingot_tensor *packed_concat(ingot_context *c, const Value *v, int axis, bool new_axis)
{
    const Packed *p = v->packed;
    ingot_dim *dims[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    common_dims(c, v, new_axis ? -1 : axis, dims);
    if (new_axis)
        return stacked(c, v, axis, dims);
    if (!p->equal[axis])
        return concat_unequal(c, v, axis, dims);
    for (int a = 0; a < p->rank; a++)
        size[a] = a == axis ? ingot_dim_mul(c, p->length, dims[a]) : dims[a];
    return ingot_reshape(c, stacked(c, v, axis, dims), p->rank, size);
}

ingot_tensor *packed_sizes(ingot_context *c, const Value *v)
{
    return sizes_of(c, v->packed, v->n);
}

Value *packed_from_rows(ingot_context *c, const Value *like, int n, ingot_tensor *rows,
                        ingot_tensor *sizes, ingot_dim *length)
{
    const Packed *p = like->packed;
    int64_t width = p->rank;
    return with_rows(c, like, n, grow(c, rows, n, p->box),
                     all_equal(p) ? NULL : grow(c, sizes, n, &width), length);
}

/* ---- pieces of a tensor ---------------------------------------------------------------------- */

/* Element [j, ..., k, ...] of the result is x[..., j step + k, ...]. */
static ingot_tensor *pieces(ingot_context *c, ingot_tensor *x, int axis, ingot_tensor *step,
                            int64_t n, int64_t most)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_tensor *index[INGOT_MAX_RANK];
    int rank = ingot_rank(x) + 1;
    dims[0] = number(c, n);
    for (int a = 0; a < rank - 1; a++)
        dims[1 + a] = a == axis ? number(c, most) : ingot_shape(x, a);
    for (int a = 0; a < rank - 1; a++)
        index[a] = ingot_iota(c, rank, dims, 1 + a);
    index[axis] = ingot_add(c, index[axis], ingot_mul(c, ingot_iota(c, rank, dims, 0), step));
    return ingot_gather(c, x, index);
}

Value *packed_split(ingot_context *c, ingot_tensor *x, int axis, ingot_tensor *step, int64_t least,
                    int64_t most, bool keep)
{
    ingot_dim *size = ingot_shape(x, axis);
    int64_t n = (ingot_dim_hi(size) + least - 1) / least, elements = n;
    int rank = ingot_rank(x);
    Value *v = empty_packed(c, (int)n, ingot_dtype_of(x), rank);
    Packed *p = v->packed;
    ingot_tensor *whole = ingot_from_dim(c, size), *zero = scalar(c, 0), *one = scalar(c, 1);
    for (int a = 0; a < rank; a++) {
        int64_t known;
        p->box[a] = a == axis ? most : ingot_dim_hi(ingot_shape(x, a));
        p->equal[a] = a == axis ? most == 1 : ingot_dim_is_const(ingot_shape(x, a), &known);
        elements = p->box[a] && elements > INT32_MAX / p->box[a] ? INT32_MAX : elements * p->box[a];
    }
    if (rank >= INGOT_MAX_RANK || elements >= INT32_MAX) {
        ingot_error(c, INGOT_UNSUPPORTED,
                    "pieces of a size that is not known when compiling take too much room");
        return NULL;
    }
    step = step ? step : one;
    ingot_tensor *safe = ingot_max(c, step, one);
    ingot_tensor *count = ingot_div(c, ingot_sub(c, ingot_add(c, whole, safe), one), safe);
    count = ingot_where(c, ingot_lt(c, step, one), scalar(c, -1), count);
    p->length = ingot_read_dim(c, count, "pieces", 0, n);
    p->rows = grow(c, pieces(c, x, axis, safe, n, most), (int)n, p->box);
    if (!all_equal(p)) {
        ingot_dim *dims[2] = {number(c, n), number(c, rank)}, *all[INGOT_MAX_RANK];
        shape_of(x, all);
        ingot_tensor *rest = ingot_sub(c, whole, ingot_mul(c, ingot_iota(c, 2, dims, 0), safe));
        rest = ingot_max(c, ingot_min(c, rest, safe), zero);
        ingot_tensor *here = ingot_eq(c, ingot_iota(c, 2, dims, 1), scalar(c, axis));
        p->sizes = ingot_where(c, here, rest, ingot_from_dims(c, rank, all));
    }
    if (keep || most != 1)
        return v;
    p->rows = ingot_squeeze(c, p->rows, 1 + axis);
    if (p->sizes) { /* without the column of the axis */
        ingot_dim *left = number(c, rank - 1);
        ingot_tensor *a = ingot_iota(c, 1, &left, 0);
        a = ingot_add(c, a, ingot_cast(c, ingot_ge(c, a, scalar(c, axis)), INGOT_I64));
        p->sizes = ingot_take(c, p->sizes, a, 1);
    }
    for (int a = axis; a < rank - 1; a++) {
        p->box[a] = p->box[a + 1];
        p->equal[a] = p->equal[a + 1];
    }
    p->rank--;
    return v;
}

/* ---- from lists ------------------------------------------------------------------------------ */

static ingot_tensor *rows_of(ingot_context *c, int n, ingot_tensor **row, ingot_dtype dtype,
                             int rank, const int64_t *dims)
{
    ingot_dim *all[INGOT_MAX_RANK] = {number(c, 0)};
    for (int a = 0; a < rank; a++)
        all[1 + a] = number(c, dims[a]);
    if (n)
        return ingot_concat(c, n, row, 0);
    return ingot_expand(c, ingot_cast(c, ingot_scalar_i(c, INGOT_I32, 0), dtype), 1 + rank, all);
}

/* Rows of all elements, and of their sizes where those are not the same for all.  length: NULL,
 * there are as many as rows. */
static Value *packed_of_rows(ingot_context *c, Value *v, ingot_tensor **row, ingot_tensor **size,
                             ingot_dim *length)
{
    Packed *p = v->packed;
    const int64_t width = p->rank;
    p->rows = rows_of(c, v->n, row, v->item_dtype, p->rank, p->box);
    if (!all_equal(p))
        p->sizes = rows_of(c, v->n, size, INGOT_I64, 1, &width);
    p->length = length ? length : number(c, v->n);
    return v;
}

Value *packed_from_list(ingot_context *c, const Value *list, int rank)
{
    Value *v = empty_packed(c, list->n, list->item_dtype, rank);
    Packed *p = v->packed;
    ingot_tensor **row = ingot_alloc(c, (size_t)(list->n + 1) * sizeof *row);
    ingot_tensor **size = ingot_alloc(c, (size_t)(list->n + 1) * sizeof *size);
    for (int a = 0; a < rank; a++) {
        p->equal[a] = true;
        for (int i = 0; i < list->n; i++) {
            ingot_dim *d = ingot_shape(list->item[i]->tensor, a);
            int64_t hi = ingot_dim_hi(d);
            p->equal[a] &= ingot_dim_is_const(d, NULL) && (i == 0 || hi == p->box[a]);
            p->box[a] = hi > p->box[a] ? hi : p->box[a];
        }
    }
    for (int i = 0; i < list->n; i++) {
        row[i] = as_row(c, p, list->item[i]->tensor);
        size[i] = size_row(c, list->item[i]->tensor);
    }
    return packed_of_rows(c, v, row, size, NULL);
}

Value *packed_input(ingot_context *c, const Value *list, ingot_tensor *const *x,
                    ingot_dim *const *here, ingot_dim *length, int rank, const int64_t *lo,
                    const int64_t *hi)
{
    Value *v = empty_packed(c, list->n, list->item_dtype, rank);
    Packed *p = v->packed;
    ingot_tensor **row = ingot_alloc(c, (size_t)(list->n + 1) * sizeof *row);
    ingot_tensor **size = ingot_alloc(c, (size_t)(list->n + 1) * sizeof *size);
    for (int a = 0; a < rank; a++) {
        p->box[a] = hi[a];
        p->equal[a] = lo[a] == hi[a];
    }
    for (int i = 0; i < list->n; i++) {
        int64_t to[1 + INGOT_MAX_RANK] = {1};
        ingot_dim *dims[INGOT_MAX_RANK];
        bool always = dim_is(here[i], 1);
        for (int a = 0; a < rank; a++) {
            to[1 + a] = hi[a];
            dims[a] = ingot_shape(x[i], a + !always);
        }
        row[i] = pad_to(c, always ? ingot_unsqueeze(c, x[i], 0) : x[i], to);
        size[i] = ingot_unsqueeze(c, ingot_from_dims(c, rank, dims), 0);
    }
    return packed_of_rows(c, v, row, size, length);
}
