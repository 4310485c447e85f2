/*
 * onnx_sequence.c - ONNX operators on sequences and optionals.
 *
 * A sequence whose length is known is a list of tensors: operators rearrange it and build nothing.
 * Where a place in it is known at run time only, or its length, its elements become rows of one
 * tensor (onnx_packed.c).
 */
#include <string.h>

#include "onnx.h"

static ingot_tensor *give(Lowering *n, Value *v)
{
    n->out_value[0] = v;
    return v->kind == VALUE_TENSOR ? v->tensor : NULL;
}

/* The same after an operator that may fail. */
static ingot_tensor *give_or_fail(Lowering *n, Value *v)
{
    n->failed |= v == NULL;
    return v ? give(n, v) : ingot_poison(n->c);
}

/* The sequence at an input; an optional that holds one is taken for it. NULL after an error. */
static const Value *sequence_in(Lowering *n, int i)
{
    const Value *v = i < n->n_in ? n->value[i] : NULL;
    if (v && v->kind == VALUE_OPTIONAL && v->n == 1)
        v = v->item[0];
    if (v && v->kind == VALUE_SEQUENCE)
        return v;
    fault(n, "input %d has to be a sequence", i);
    return NULL;
}

static bool is_tensor(Lowering *n, const Value *v)
{
    if (v && v->kind == VALUE_TENSOR)
        return true;
    unsupported(n, "only sequences of tensors of numbers are supported");
    return false;
}

/* The input as a constant place in 0..size-1 (negative ones count from `length`). */
static bool place_in(Lowering *n, int input, int length, int size, int *place)
{
    int64_t i;
    if (!int_in(n, input, &i))
        return false;
    i += i < 0 ? length : 0;
    if (i < 0 || i >= size) {
        fault(n, "place %lld is outside a sequence of %d", (long long)i, length);
        return false;
    }
    *place = (int)i;
    return true;
}

/* The sequence as rows if its length or the place in it, an input, is known at run time only; NULL
 * if not. A list whose elements have several ranks cannot. */
static const Value *as_packed(Lowering *n, const Value *s, int input)
{
    const int64_t *known;
    if (s->packed)
        return s;
    if (input >= n->n_in || !n->in[input] || ints_known(n, input, &known) >= 0 || !s->n)
        return NULL;
    int rank = ingot_rank(s->item[0]->tensor);
    for (int i = 1; i < s->n; i++)
        if (ingot_rank(s->item[i]->tensor) != rank)
            return NULL;
    return rank < INGOT_MAX_RANK ? packed_from_list(n->c, s, rank) : NULL;
}

/* The place in an input as a scalar i64; NULL where it is left out. */
static ingot_tensor *place_tensor(Lowering *n, int input)
{
    return input < n->n_in && n->in[input] ? as(n, reshape_scalar(n, n->in[input]), INGOT_I64)
                                           : NULL;
}

/* ---- sequences ------------------------------------------------------------------------------- */

ingot_tensor *onnx_sequence_construct(Lowering *n)
{
    Value *v = value_sequence(n->c, n->n_in, INGOT_F32);
    for (int i = 0; i < n->n_in; i++) {
        if (!is_tensor(n, n->value[i]))
            return ingot_poison(n->c);
        v->item[i] = n->value[i];
        v->item_dtype = ingot_dtype_of(v->item[i]->tensor);
    }
    return give(n, v);
}

ingot_tensor *onnx_sequence_empty(Lowering *n)
{
    Value *v = value_sequence(n->c, 0, INGOT_F32);
    int64_t dtype = attr_int(n, "dtype", 1);
    if (dtype < 0 || dtype > INT32_MAX || !ingot_onnx_dtype((int32_t)dtype, &v->item_dtype))
        return fault(n, "its attribute 'dtype' is no element type");
    return give(n, v);
}

ingot_tensor *onnx_sequence_length(Lowering *n)
{
    const Value *s = sequence_in(n, 0);
    if (!s)
        return ingot_poison(n->c);
    return s->packed ? ingot_from_dim(n->c, s->packed->length)
                     : ingot_scalar_i(n->c, INGOT_I64, s->n);
}

ingot_tensor *onnx_sequence_insert(Lowering *n)
{
    const Value *s = sequence_in(n, 0);
    if (!s || !is_tensor(n, n->value[1]))
        return ingot_poison(n->c);
    int place = s->n;
    ingot_dtype dtype = ingot_dtype_of(n->value[1]->tensor);
    if (s->n && dtype != s->item_dtype)
        return fault(n, "a tensor of %s does not fit a sequence of %s", ingot_dtype_name(dtype),
                     ingot_dtype_name(s->item_dtype));
    const Value *p = as_packed(n, s, 2);
    if (p)
        return give_or_fail(n, packed_insert(n->c, p, n->value[1]->tensor, place_tensor(n, 2)));
    if (n->n_in > 2 && n->in[2] && !place_in(n, 2, s->n, s->n + 1, &place))
        return ingot_poison(n->c);
    Value *v = value_sequence(n->c, s->n + 1, dtype);
    for (int i = 0; i <= s->n; i++)
        v->item[i] = i < place ? s->item[i] : i == place ? n->value[1] : s->item[i - 1];
    return give(n, v);
}

ingot_tensor *onnx_sequence_erase(Lowering *n)
{
    const Value *s = sequence_in(n, 0);
    int place = s ? s->n - 1 : 0;
    const Value *p = s ? as_packed(n, s, 1) : NULL;
    if (p)
        return give_or_fail(n, packed_erase(n->c, p, place_tensor(n, 1)));
    if (!s || (n->n_in > 1 && n->in[1] && !place_in(n, 1, s->n, s->n, &place)))
        return ingot_poison(n->c);
    if (place < 0)
        return fault(n, "its sequence is empty");
    Value *v = value_sequence(n->c, s->n - 1, s->item_dtype);
    for (int i = 0; i < v->n; i++)
        v->item[i] = s->item[i + (i >= place)];
    return give(n, v);
}

static ingot_tensor *stack_of(Lowering *n, const Value *s, int axis, bool new_axis)
{
    ingot_tensor **list = ingot_alloc(n->c, (size_t)(s->n + 1) * sizeof *list);
    for (int i = 0; i < s->n; i++)
        list[i] = s->item[i]->tensor;
    return new_axis ? ingot_stack(n->c, s->n, list, axis) : ingot_concat(n->c, s->n, list, axis);
}

ingot_tensor *onnx_sequence_at(Lowering *n)
{
    const Value *s = sequence_in(n, 0);
    int place;
    if (!s || !is_tensor(n, n->value[1]))
        return ingot_poison(n->c);
    const Value *p = as_packed(n, s, 1);
    if (p)
        return packed_at(n->c, p, place_tensor(n, 1));
    return place_in(n, 1, s->n, s->n, &place) ? give(n, s->item[place]) : ingot_poison(n->c);
}

ingot_tensor *onnx_concat_from_sequence(Lowering *n)
{
    const Value *s = sequence_in(n, 0);
    bool new_axis = attr_int(n, "new_axis", 0) != 0;
    int axis;
    if (!s)
        return ingot_poison(n->c);
    if (s->n == 0)
        return fault(n, "its sequence is empty");
    int rank = (s->packed ? s->packed->rank : ingot_rank(s->item[0]->tensor)) + new_axis;
    if (!attr_has(n, "axis"))
        return fault(n, "its attribute 'axis' is missing");
    if (!axis_in(n, attr_int(n, "axis", 0), rank, &axis) || n->failed)
        return ingot_poison(n->c);
    return s->packed ? packed_concat(n->c, s, axis, new_axis) : stack_of(n, s, axis, new_axis);
}

/* Pieces of listed sizes that the run knows: views of x. */
static ingot_tensor *split_by_list(Lowering *n, ingot_tensor *x, int axis, int64_t count)
{
    ingot_dim *size = ingot_shape(x, axis), *begin = dim(n, 0);
    ingot_dim **piece = ingot_alloc(n->c, (size_t)(count + 1) * sizeof *piece);
    ingot_tensor *list = as(n, n->in[1], INGOT_I64), *sum = ingot_sum(n->c, list, 1, false);
    /* pieces that do not cover the axis are out of bounds */
    list = ingot_where(n->c, ingot_eq(n->c, sum, ingot_from_dim(n->c, size)), list,
                       ingot_scalar_i(n->c, INGOT_I64, -1));
    packed_read_dims(n->c, list, (int)count, NULL, ingot_dim_hi(size), piece);
    Value *v = value_sequence(n->c, (int)count, ingot_dtype_of(x));
    for (int i = 0; i < count; i++) {
        v->item[i] = value_tensor(n->c, ingot_slice(n->c, x, axis, begin, piece[i], 1));
        begin = ingot_dim_add(n->c, begin, piece[i]);
    }
    return give(n, v);
}

/* Pieces of one size and a rest; their number, or their size too, is what the run knows. */
static ingot_tensor *split_at_run_time(Lowering *n, ingot_tensor *x, int axis, bool keep)
{
    ingot_tensor *step = NULL;
    const int64_t *known;
    int64_t least = 1, most = ingot_dim_hi(ingot_shape(x, axis)), count;
    if (most > ONNX_MAX_LIST)
        return unsupported(n, "axis %d may be longer than %d", axis, ONNX_MAX_LIST);
    if (n->n_in > 1 && n->in[1]) {
        if (ingot_rank(n->in[1]) > 0 && !ingot_dim_is_const(ingot_shape(n->in[1], 0), &count))
            return unsupported(n, "the number of its pieces is not known when compiling");
        if (ingot_rank(n->in[1]) > 0 && count > ONNX_MAX_LIST)
            return unsupported(n, "it has %lld pieces, more than %d", (long long)count,
                               ONNX_MAX_LIST);
        if (ingot_rank(n->in[1]) > 0)
            return split_by_list(n, x, axis, count);
        step = as(n, n->in[1], INGOT_I64);
        if (ints_known(n, 1, &known) == 1) {
            least = most = known[0];
            if (least < 1)
                return fault(n, "pieces of %lld elements cannot be made", (long long)least);
        }
    } else {
        most = 1;
    }
    return give_or_fail(n, packed_split(n->c, x, axis, step, least, most, keep));
}

/* The sizes of the pieces: one each, equal ones and a rest, or as listed. -1 after an error. */
static int split_sizes(Lowering *n, int64_t size, const int64_t **out)
{
    const int64_t *list;
    int64_t step = 1;
    if (n->n_in > 1 && n->in[1]) {
        int count = ints_in(n, 1, &list);
        if (count < 0)
            return -1;
        if (ingot_rank(n->in[1]) > 0) {
            *out = list;
            return count;
        }
        step = list[0];
    }
    if (step < 1 || (size + step - 1) / step > ONNX_MAX_LIST) {
        fault(n, "pieces of %lld of axis of %lld cannot be made", (long long)step, (long long)size);
        return -1;
    }
    int count = (int)((size + step - 1) / step);
    int64_t *made = ingot_alloc(n->c, (size_t)(count + 1) * sizeof *made);
    for (int i = 0; i < count; i++)
        made[i] = i < count - 1 || size % step == 0 ? step : size % step;
    *out = made;
    return count;
}

ingot_tensor *onnx_split_to_sequence(Lowering *n)
{
    ingot_tensor *x = n->in[0];
    const int64_t *sizes = NULL;
    int64_t size, at = 0;
    int axis;
    bool listed = n->n_in > 1 && n->value[1], keep = listed || attr_int(n, "keepdims", 1) != 0;
    if (!is_tensor(n, n->value[0]) || (listed && !is_tensor(n, n->value[1])) ||
        !axis_in(n, attr_int(n, "axis", 0), ingot_rank(x), &axis))
        return ingot_poison(n->c);
    const int64_t *known;
    if (!ingot_dim_is_const(ingot_shape(x, axis), &size) ||
        (listed && ints_known(n, 1, &known) < 0))
        return split_at_run_time(n, x, axis, keep);
    int count = split_sizes(n, size, &sizes);
    if (count < 0)
        return ingot_poison(n->c);
    Value *v = value_sequence(n->c, count, ingot_dtype_of(x));
    v->item_dtype = ingot_dtype_of(x);
    for (int i = 0; i < count; at += sizes[i++]) {
        if (sizes[i] < 0 || sizes[i] > size - at)
            return fault(n, "its pieces are larger than axis %d", axis);
        ingot_tensor *t = ingot_slice(n->c, x, axis, dim(n, at), dim(n, sizes[i]), 1);
        v->item[i] = value_tensor(n->c, keep ? t : ingot_squeeze(n->c, t, axis));
    }
    if (at != size)
        return fault(n, "its pieces do not cover axis %d", axis);
    return give(n, v);
}

/* One iteration of the body in a loop: its results become rows and sizes. */
static bool map_body(Lowering *n, const Onnx__GraphProto *g, Value *const *sequence,
                     ingot_tensor *i, ingot_tensor **result, Value **out)
{
    Value **in = ingot_alloc(n->c, (size_t)n->n_in * sizeof *in);
    for (int k = 0; k < n->n_in; k++)
        in[k] = sequence[k] ? value_tensor(n->c, packed_at(n->c, sequence[k], i)) : n->value[k];
    if (!subgraph(n, g, n->n_in, in, out))
        return false;
    for (int k = 0; k < n->n_out; k++) {
        if (!is_tensor(n, out[k]) || ingot_is_poison(out[k]->tensor))
            return false;
        Value *one = value_sequence(n->c, 1, ingot_dtype_of(out[k]->tensor));
        one->item[0] = out[k];
        out[k] = packed_from_list(n->c, one, ingot_rank(one->item[0]->tensor));
        result[2 * k] = ingot_squeeze(n->c, out[k]->packed->rows, 0);
        result[2 * k + 1] = ingot_squeeze(n->c, packed_sizes(n->c, out[k]), 0);
    }
    return true;
}

/* Where a sequence's length is known at run time only the body is that of a loop. */
static ingot_tensor *map_at_run_time(Lowering *n, const Onnx__GraphProto *g)
{
    int results = 2 * n->n_out;
    Value **sequence = ingot_alloc(n->c, (size_t)(n->n_in + 1) * sizeof *sequence);
    Value **out = ingot_alloc(n->c, (g->n_output + 1) * sizeof *out);
    ingot_tensor **result = ingot_alloc(n->c, (size_t)(results + 1) * sizeof *result);
    for (int k = 0; k < n->n_in; k++) {
        Value *v = n->value[k];
        if (!v)
            return fault(n, "input %d is missing", k);
        if (v->kind != VALUE_SEQUENCE)
            continue;
        if (!v->packed && !v->n)
            return fault(n, "input %d is an empty sequence", k);
        sequence[k] = v->packed ? v : packed_from_list(n->c, v, ingot_rank(v->item[0]->tensor));
    }
    ingot_dim *trip = sequence[0]->packed->length;
    ingot_region *r = ingot_region_begin(n->c);
    ingot_tensor *i = ingot_region_param(n->c, r, INGOT_I64, 0, NULL);
    result[0] = ingot_region_param(n->c, r, INGOT_BOOL, 0, NULL);
    bool ok = map_body(n, g, sequence, i, result + 1, out);
    ingot_region_end(n->c, r, ok ? 1 + results : 0, result);
    if (ok) {
        ingot_loop(n->c, trip, NULL, 0, NULL, r, results, result);
        for (int k = 0; k < results; k++)
            ok &= !ingot_is_poison(result[k]);
    }
    if (!ok) {
        n->failed = true;
        return ingot_poison(n->c);
    }
    for (int k = 0; k < n->n_out; k++)
        n->out_value[k] =
            packed_from_rows(n->c, out[k], sequence[0]->n, result[2 * k], result[2 * k + 1], trip);
    return NULL;
}

/* The body for each element of the first sequence, and those at the same place of the others. */
ingot_tensor *onnx_sequence_map(Lowering *n)
{
    const Onnx__GraphProto *g = attr_graph(n, "body");
    const Value *s = sequence_in(n, 0);
    if (!g || !s)
        return ingot_poison(n->c);
    if (g->n_output < (size_t)n->n_out)
        return fault(n, "its body has %zu outputs, which does not fit", g->n_output);
    for (int k = 0; k < n->n_in; k++)
        if (n->value[k] && n->value[k]->packed)
            return map_at_run_time(n, g);
    Value **in = ingot_alloc(n->c, (size_t)n->n_in * sizeof *in);
    Value **out = ingot_alloc(n->c, (g->n_output + 1) * sizeof *out);
    for (int k = 0; k < n->n_out; k++)
        n->out_value[k] = value_sequence(n->c, s->n, INGOT_F32);
    for (int i = 0; i < s->n; i++) {
        for (int k = 0; k < n->n_in; k++) {
            Value *v = n->value[k];
            bool list = v && v->kind == VALUE_SEQUENCE;
            if (!v || (list && i >= v->n))
                return fault(n, "input %d is missing or too short", k);
            in[k] = list ? v->item[i] : v;
        }
        if (!subgraph(n, g, n->n_in, in, out)) {
            n->failed = true;
            return ingot_poison(n->c);
        }
        for (int k = 0; k < n->n_out; k++) {
            if (!is_tensor(n, out[k]))
                return ingot_poison(n->c);
            n->out_value[k]->item[i] = out[k];
            n->out_value[k]->item_dtype = ingot_dtype_of(out[k]->tensor);
        }
    }
    return NULL;
}

/* ---- optionals ------------------------------------------------------------------------------- */

ingot_tensor *onnx_optional(Lowering *n)
{
    Value *v = value_sequence(n->c, n->n_in, INGOT_F32);
    v->kind = VALUE_OPTIONAL;
    if (n->n_in)
        v->item[0] = n->value[0];
    return give(n, v);
}

ingot_tensor *onnx_optional_has_element(Lowering *n)
{
    const Value *v = n->n_in ? n->value[0] : NULL;
    if (v && v->present)
        return ingot_cast(n->c, ingot_from_dim(n->c, v->present), INGOT_BOOL);
    return ingot_scalar_i(n->c, INGOT_BOOL, v && (v->kind != VALUE_OPTIONAL || v->n));
}

ingot_tensor *onnx_optional_get_element(Lowering *n)
{
    Value *v = n->value[0];
    if (v->kind != VALUE_OPTIONAL)
        return give(n, v);
    if (v->present) {
        ingot_dim *one = dim(n, 1);
        return ingot_require(n->c, v->present, one, one, "the presence of its optional")
                   ? give(n, v->item[0])
                   : ingot_poison(n->c);
    }
    return v->n ? give(n, v->item[0]) : fault(n, "its optional is empty");
}
