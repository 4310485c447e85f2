/*
 * onnx_shape.c - ONNX operators that make, rearrange and repeat tensors: Constant, Shape, Reshape,
 * Transpose, Concat, Split, Pad, Tile, Range and their kin. Shapes are lists of dims, which may
 * depend on run-time dims; what decides a shape has to be known while compiling otherwise, by
 * value or because the file declares the output's shape.
 */
#include <math.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]

/* ---- constants and sizes -------------------------------------------------------------------- */

static ingot_tensor *list_constant(Lowering *n, ingot_dtype dtype, const void *v, int64_t count)
{
    size_t bytes = (size_t)count * ingot_dtype_bytes(dtype);
    void *copy = ingot_alloc(n->c, bytes + 1);
    if (bytes)
        memcpy(copy, v, bytes);
    return ingot_data(n->c, NULL, dtype, 1, &count, copy);
}

ingot_tensor *onnx_constant(Lowering *n)
{
    const int64_t *ints;
    const float *floats;
    if (attr_has(n, "value"))
        return attr_tensor(n, "value");
    if (attr_has(n, "value_int"))
        return ingot_scalar_i(n->c, INGOT_I64, attr_int(n, "value_int", 0));
    if (attr_has(n, "value_float"))
        return ingot_scalar_f(n->c, INGOT_F32, attr_float(n, "value_float", 0));
    int count = attr_ints(n, "value_ints", &ints);
    if (count >= 0)
        return list_constant(n, INGOT_I64, ints, count);
    count = n->failed ? -1 : attr_floats(n, "value_floats", &floats);
    if (count >= 0)
        return list_constant(n, INGOT_F32, floats, count);
    if (attr_has(n, "sparse_value"))
        return unsupported(n, "sparse constants are not supported");
    if (attr_has(n, "value_string")) {
        const char *text = attr_string(n, "value_string", "");
        return ingot_strings(n->c, 0, NULL, &text);
    }
    const char *const *strings;
    int64_t n_strings = n->failed ? -1 : attr_strings(n, "value_strings", &strings);
    if (n_strings >= 0)
        return ingot_strings(n->c, 1, &n_strings, strings);
    return fault(n, "it has no value");
}

ingot_tensor *onnx_shape(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank = ingot_rank(X);
    int64_t start = attr_int(n, "start", 0), end = attr_int(n, "end", rank);
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    shape_of(X, dims);
    return ingot_from_dims(n->c, (int)(end - start), dims + start);
}

ingot_tensor *onnx_size(Lowering *n)
{
    return ingot_from_dim(n->c, ingot_numel(n->c, X));
}

/* The dims that input i lists, or those the file declares of the output. False after an error. */
static bool shape_in(Lowering *n, int input, int *rank, ingot_dim **dims)
{
    ingot_dim *list[INGOT_MAX_RANK], *const *known;
    int64_t declared[INGOT_MAX_RANK];
    int count = ingot_contents(n->c, n->in[input], list, INGOT_MAX_RANK);
    if (count < 0 && declared_shape(n, 0, rank, declared)) {
        for (int a = 0; a < *rank; a++)
            dims[a] = dim(n, declared[a]);
        return true;
    }
    count = dims_in(n, input, &known);
    if (count > INGOT_MAX_RANK)
        unsupported(n, "a result of rank %d is above %d", count, INGOT_MAX_RANK);
    if (count < 0 || count > INGOT_MAX_RANK)
        return false;
    *rank = count;
    for (int a = 0; a < count; a++)
        dims[a] = known[a];
    return true;
}

/* Every dim has to be at least 0. */
static bool dims_positive(Lowering *n, int rank, ingot_dim *const *dims)
{
    for (int a = 0; a < rank; a++)
        if (ingot_dim_hi(dims[a]) < 0) {
            fault(n, "dim %d of its result is negative", a);
            return false;
        }
    return true;
}

ingot_tensor *onnx_constant_of_shape(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank;
    ingot_tensor *value = attr_tensor(n, "value");
    if (!shape_in(n, 0, &rank, dims) || !dims_positive(n, rank, dims) || n->failed)
        return ingot_poison(n->c);
    if (!value)
        value = ingot_scalar_f(n->c, INGOT_F32, 0);
    if (ingot_is_poison(value) || !dim_is(ingot_numel(n->c, value), 1))
        return ingot_is_poison(value) ? value : fault(n, "its value has to be one element");
    return ingot_expand(n->c, reshape_scalar(n, value), rank, dims);
}

/* How many steps lie between start and limit, if known. */
static ingot_dim *range_count(Lowering *n)
{
    double v[3];
    ingot_dim *d[3];
    int64_t step, declared[INGOT_MAX_RANK];
    int rank;
    bool ints = !is_float(X);
    for (int i = 0; ints && i < 3; i++)
        ints = ingot_contents(n->c, n->in[i], &d[i], 1) == 1;
    if (ints && ingot_dim_is_const(d[2], &step) && step != 0) {
        ingot_dim *span =
            step > 0 ? ingot_dim_sub(n->c, d[1], d[0]) : ingot_dim_sub(n->c, d[0], d[1]);
        int64_t size = step > 0 ? step : -step;
        span = ingot_dim_div(n->c, ingot_dim_add(n->c, span, dim(n, size - 1)), dim(n, size));
        return ingot_dim_max(n->c, span, dim(n, 0));
    }
    bool known = true;
    for (int i = 0; known && i < 3; i++)
        known = ingot_const_float(n->c, n->in[i], &v[i]);
    if (known && v[2] != 0) {
        double count = ceil((v[1] - v[0]) / v[2]);
        return dim(n, count > 0 && count < 1e15 ? (int64_t)count : 0);
    }
    if (!known && declared_shape(n, 0, &rank, declared) && rank == 1)
        return dim(n, declared[0]);
    return NULL;
}

/* start + i * delta */
ingot_tensor *onnx_range(Lowering *n)
{
    ingot_dtype dtype = ingot_dtype_of(X);
    ingot_dim *count = range_count(n);
    if (!count)
        return unsupported(n, "the length of its result is not known when compiling; --bind gives "
                              "its inputs values");
    ingot_tensor *i = as(n, ingot_iota(n->c, 1, &count, 0), dtype);
    ingot_tensor *delta = reshape_scalar(n, n->in[2]);
    return ingot_add(n->c, ingot_mul(n->c, i, delta), reshape_scalar(n, X));
}

/* ---- reshape and its kin -------------------------------------------------------------------- */

/* 0 copies a dim of the input, -1 stands for what is left. */
static bool resolve_reshape(Lowering *n, int rank, ingot_dim **dims)
{
    bool zero = attr_int(n, "allowzero", 0) != 0;
    ingot_dim *rest = dim(n, 1);
    int unknown = -1;
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
            continue;
        }
        rest = ingot_dim_mul(n->c, rest, dims[a]);
    }
    if (unknown < 0)
        return dims_positive(n, rank, dims);
    ingot_dim *all = ingot_numel(n->c, X);
    if (dim_is(rest, 0)) {
        fault(n, "the -1 of its shape is undetermined beside a 0");
        return false;
    }
    dims[unknown] = ingot_dim_div(n->c, all, rest);
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
    } else if (!shape_in(n, 1, &rank, dims)) {
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

/* An axes input that only the run knows still gives a shape if the file declares it. */
static bool declared_reshape(Lowering *n, int input, ingot_tensor **y)
{
    const int64_t *list;
    int64_t dims[INGOT_MAX_RANK];
    int rank;
    if (n->version < 13 || n->n_in <= input || !n->in[input] || ints_known(n, input, &list) >= 0 ||
        !declared_shape(n, 0, &rank, dims))
        return false;
    *y = ingot_reshape_c(n->c, X, rank, dims);
    return true;
}

ingot_tensor *onnx_squeeze(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    const int64_t *list = NULL;
    unsigned axes = 0;
    int rank = 0;
    ingot_tensor *y;
    if (declared_reshape(n, 1, &y))
        return y;
    int count = ints_attr_or_in(n, "axes", 1, 13, &list);
    if (count == -2 || (count >= 0 && !axes_in(n, list, count, ingot_rank(X), &axes)))
        return ingot_poison(n->c);
    for (int a = 0; a < ingot_rank(X); a++) {
        bool one = dim_is(ingot_shape(X, a), 1);
        if (count >= 0 && axes >> a & 1 && !one)
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
    if (declared_reshape(n, 1, &y))
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

/* Broadcasts both ways: the target's 1 keeps the input's dim. */
ingot_tensor *onnx_expand(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank, from = ingot_rank(X);
    if (!shape_in(n, 1, &rank, dims) || !dims_positive(n, rank, dims))
        return ingot_poison(n->c);
    if (from > rank) {
        memmove(dims + from - rank, dims, (size_t)rank * sizeof *dims);
        for (int a = 0; a < from - rank; a++)
            dims[a] = dim(n, 1);
        rank = from;
    }
    for (int a = 0; a < from; a++) {
        ingot_dim **to = &dims[rank - from + a];
        *to = dim_is(*to, 1) ? ingot_shape(X, a) : *to;
    }
    return ingot_expand(n->c, X, rank, dims);
}

ingot_tensor *onnx_tile(Lowering *n)
{
    ingot_dim *list[INGOT_MAX_RANK], *const *repeats = list;
    int64_t declared[INGOT_MAX_RANK], size, axis, times;
    int rank = ingot_rank(X), out_rank;
    if (n->version < 6) {
        int at;
        if (n->n_in < 3 || !int_in(n, 1, &times) || !int_in(n, 2, &axis) ||
            !axis_in(n, axis, rank, &at))
            return n->failed ? ingot_poison(n->c) : fault(n, "its repeats are missing");
        for (int a = 0; a < rank; a++)
            list[a] = dim(n, a == at ? times : 1);
        return ingot_tile(n->c, X, repeats);
    }
    bool known = ingot_contents(n->c, n->in[1], list, INGOT_MAX_RANK) >= 0;
    if (!known && declared_shape(n, 0, &out_rank, declared) && out_rank == rank) {
        known = true;
        for (int a = 0; a < rank; a++) {
            known &= ingot_dim_is_const(ingot_shape(X, a), &size) && size > 0;
            list[a] = dim(n, known ? declared[a] / size : 1);
        }
        if (known)
            return ingot_tile(n->c, X, repeats);
    }
    int count = dims_in(n, 1, &repeats);
    if (count >= 0 && count != rank)
        return fault(n, "it has %d repeats, its input has rank %d", count, rank);
    return count < 0 || !dims_positive(n, count, repeats) ? ingot_poison(n->c)
                                                          : ingot_tile(n->c, X, repeats);
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

/* The sizes of the n->n_out parts. False after an error. */
static bool split_sizes(Lowering *n, int axis, ingot_dim **sizes)
{
    const int64_t *list = NULL;
    int64_t declared[INGOT_MAX_RANK], total = 0, all;
    int rank, count = -1;
    bool as_input = n->version >= 13 || (n->version < 2 && n->n_in > 1);
    if (as_input && n->n_in > 1 && n->in[1] && ints_known(n, 1, &list) < 0) {
        bool known = true;
        for (int i = 0; known && i < n->n_out; i++) {
            known = declared_shape(n, i, &rank, declared) && rank == ingot_rank(X);
            sizes[i] = dim(n, known ? declared[axis] : 0);
        }
        if (known)
            return true;
    }
    count = ints_attr_or_in(n, "split", 1, as_input ? 1 : 13, &list);
    if (count == -2)
        return false;
    if (count >= 0 && count != n->n_out) {
        fault(n, "it has %d outputs, but %d sizes", n->n_out, count);
        return false;
    }
    if (count >= 0) {
        for (int i = 0; i < count; i++) {
            total += list[i];
            sizes[i] = dim(n, list[i]);
        }
        if (!dims_positive(n, count, sizes))
            return false;
        if (ingot_dim_is_const(ingot_shape(X, axis), &all) && all != total) {
            fault(n, "its parts have %lld elements along axis %d, its input has %lld",
                  (long long)total, axis, (long long)all);
            return false;
        }
        return true;
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

/* x along one axis, where place i of the result reads place pad_place(i - lo) of the input. */
static ingot_tensor *pad_axis(Lowering *n, ingot_tensor *x, int axis, ingot_dim *lo, ingot_dim *hi,
                              const char *mode)
{
    ingot_dim *size = ingot_shape(x, axis);
    ingot_dim *out = ingot_dim_add(n->c, size, ingot_dim_add(n->c, lo, hi));
    ingot_tensor *i = ingot_sub(n->c, ingot_iota(n->c, 1, &out, 0), ingot_from_dim(n->c, lo));
    return ingot_take(n->c, x, pad_place(n, i, ingot_from_dim(n->c, size), mode), axis);
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
    int64_t declared[INGOT_MAX_RANK];
    const char *mode = attr_string(n, "mode", "constant");
    ingot_tensor *y = X, *value = NULL;
    int rank;
    bool constant = strcmp(mode, "constant") == 0;
    if (!constant && strcmp(mode, "reflect") && strcmp(mode, "edge") && strcmp(mode, "wrap"))
        return fault(n, "its mode '%s' is unknown", mode);
    if (n->version < 11)
        value = like(n, X, attr_float(n, "value", 0));
    else
        value = n->n_in > 2 && n->in[2] ? reshape_scalar(n, n->in[2]) : like(n, X, 0);
    if (n->version >= 11 && (n->n_in < 2 || !n->in[1]))
        return fault(n, "its pads are missing");
    if (n->version >= 11 && !pads_known(n) && declared_shape(n, 0, &rank, declared) &&
        rank == ingot_rank(X))
        return pad_at_run_time(n, value, mode, declared);
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
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK],
        *list[INGOT_MAX_RANK], *const *target = list;
    int64_t declared[INGOT_MAX_RANK];
    const int64_t *axes;
    int rank = ingot_rank(X), n_axes = attr_ints(n, "axes", &axes), count, out_rank;
    unsigned set;
    if (n_axes >= 0 && !axes_in(n, axes, n_axes, rank, &set))
        return ingot_poison(n->c);
    int wanted = n_axes < 0 ? rank : n_axes;
    if (ingot_contents(n->c, n->in[1], list, INGOT_MAX_RANK) < 0 &&
        declared_shape(n, 0, &out_rank, declared) && out_rank == rank) {
        count = wanted;
        for (int i = 0; i < count; i++)
            list[i] = dim(n, declared[n_axes < 0 ? i : axes[i] < 0 ? axes[i] + rank : axes[i]]);
    } else {
        count = dims_in(n, 1, &target);
    }
    if (count != wanted)
        return n->failed ? ingot_poison(n->c)
                         : fault(n, "it has %d sizes for %d axes", count, wanted);
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
