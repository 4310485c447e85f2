/*
 * onnx_make.c - ONNX operators that make tensors out of no other's elements: Constant, Shape, Size,
 * ConstantOfShape, Range.
 */
#include <string.h>

#include "onnx.h"

#define X n->in[0]

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
        return attr_sparse(n, "sparse_value");
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

ingot_tensor *onnx_constant_of_shape(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank;
    ingot_tensor *value = attr_tensor(n, "value");
    if (n->failed || !entries_in(n, 0, &rank, dims))
        return ingot_poison(n->c);
    for (int a = 0; a < rank; a++)
        if (!dims[a] && !(dims[a] = size_at_run_time(n, 0, a, rank, list_entry(n, 0, a, 0), -1)))
            return unbounded_size(n, 0, a);
    if (!dims_positive(n, rank, dims))
        return ingot_poison(n->c);
    if (!value)
        value = ingot_scalar_f(n->c, INGOT_F32, 0);
    if (ingot_is_poison(value) || !dim_is(ingot_numel(n->c, value), 1))
        return ingot_is_poison(value) ? value : fault(n, "its value has to be one element");
    return ingot_expand(n->c, reshape_scalar(n, value), rank, dims);
}

/* ceil((limit - start) / delta), at least 0; of floats, the span is rounded to their type. */
static ingot_tensor *range_length(Lowering *n)
{
    ingot_context *c = n->c;
    ingot_tensor *start = reshape_scalar(n, X), *limit = reshape_scalar(n, n->in[1]);
    ingot_tensor *delta = reshape_scalar(n, n->in[2]), *count;
    if (is_float(X)) {
        ingot_tensor *span = as(n, ingot_sub(c, limit, start), INGOT_F64);
        count = as(n, ingot_ceil(c, ingot_div(c, span, as(n, delta, INGOT_F64))), INGOT_I64);
    } else { /* -floor(-span / delta) */
        ingot_tensor *span = ingot_sub(c, as(n, start, INGOT_I64), as(n, limit, INGOT_I64));
        delta = as(n, delta, INGOT_I64);
        count = ingot_neg(c, ingot_div(c, ingot_sub(c, span, ingot_mod(c, span, delta)), delta));
    }
    /* a step of 0 has no length: none that any bound allows */
    ingot_tensor *none = ingot_eq(c, delta, ingot_like(c, delta, 0));
    return ingot_where(c, none, ingot_like(c, count, -1), ingot_max_c(c, count, 0));
}

/* A scalar input that is known to be a whole number, be it as a float. */
static bool whole_in(Lowering *n, int input, ingot_dim **d)
{
    ingot_tensor *x = reshape_scalar(n, n->in[input]);
    ingot_dim *whole;
    if (is_float(x) &&
        (ingot_contents(n->c, ingot_eq(n->c, x, ingot_trunc(n->c, x)), &whole, 1) != 1 ||
         !dim_is(whole, 1)))
        return false;
    return ingot_contents(n->c, as(n, x, INGOT_I64), d, 1) == 1;
}

/* How many steps lie between start and limit; NULL if there is no bound. */
static ingot_dim *range_count(Lowering *n)
{
    ingot_dim *d[3];
    int64_t step;
    bool known = true;
    for (int i = 0; known && i < 3; i++)
        known = whole_in(n, i, &d[i]);
    if (known && ingot_dim_is_const(d[2], &step) && step != 0) {
        ingot_dim *span =
            step > 0 ? ingot_dim_sub(n->c, d[1], d[0]) : ingot_dim_sub(n->c, d[0], d[1]);
        int64_t size = step > 0 ? step : -step;
        span = ingot_dim_div(n->c, ingot_dim_add(n->c, span, dim(n, size - 1)), dim(n, size));
        return ingot_dim_max(n->c, span, dim(n, 0));
    }
    return size_at_run_time(n, 0, 0, 1, range_length(n), -1);
}

/* start + i * delta */
ingot_tensor *onnx_range(Lowering *n)
{
    ingot_dtype dtype = ingot_dtype_of(X);
    ingot_dim *count = range_count(n);
    if (!count)
        return unbounded_size(n, 0, 0);
    if (!ingot_is_poison(count) && ingot_dim_hi(count) < 0)
        return fault(n, "its step is 0");
    ingot_tensor *i = as(n, ingot_iota(n->c, 1, &count, 0), dtype);
    ingot_tensor *delta = reshape_scalar(n, n->in[2]);
    return ingot_add(n->c, ingot_mul(n->c, i, delta), reshape_scalar(n, X));
}
