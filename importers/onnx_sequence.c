/*
 * onnx_sequence.c - ONNX operators on sequences and optionals.
 *
 * A sequence is a list of tensors that only the importer knows; its length is known while
 * compiling. Operators rearrange the list and build nothing, except where a place in it is known at
 * run time only: then equal shapes are stacked and one is picked.
 */
#include <string.h>

#include "onnx.h"

static Value *new_value(Lowering *n, ValueKind kind, int count)
{
    Value *v = ingot_alloc(n->c, sizeof *v);
    *v = (Value){.kind = kind, .n = count, .item_dtype = INGOT_F32};
    v->item = ingot_alloc(n->c, (size_t)(count + 1) * sizeof *v->item);
    return v;
}

static ingot_tensor *give(Lowering *n, Value *v)
{
    n->out_value[0] = v;
    return v->kind == VALUE_TENSOR ? v->tensor : NULL;
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

/* ---- sequences ------------------------------------------------------------------------------- */

ingot_tensor *onnx_sequence_construct(Lowering *n)
{
    Value *v = new_value(n, VALUE_SEQUENCE, n->n_in);
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
    Value *v = new_value(n, VALUE_SEQUENCE, 0);
    int64_t dtype = attr_int(n, "dtype", 1);
    if (dtype < 0 || dtype > INT32_MAX || !ingot_onnx_dtype((int32_t)dtype, &v->item_dtype))
        return fault(n, "its attribute 'dtype' is no element type");
    return give(n, v);
}

ingot_tensor *onnx_sequence_length(Lowering *n)
{
    const Value *s = sequence_in(n, 0);
    return s ? ingot_scalar_i(n->c, INGOT_I64, s->n) : ingot_poison(n->c);
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
    if (n->n_in > 2 && n->in[2] && !place_in(n, 2, s->n, s->n + 1, &place))
        return ingot_poison(n->c);
    Value *v = new_value(n, VALUE_SEQUENCE, s->n + 1);
    v->item_dtype = dtype;
    for (int i = 0; i <= s->n; i++)
        v->item[i] = i < place ? s->item[i] : i == place ? n->value[1] : s->item[i - 1];
    return give(n, v);
}

ingot_tensor *onnx_sequence_erase(Lowering *n)
{
    const Value *s = sequence_in(n, 0);
    int place = s ? s->n - 1 : 0;
    if (!s || (n->n_in > 1 && n->in[1] && !place_in(n, 1, s->n, s->n, &place)))
        return ingot_poison(n->c);
    if (place < 0)
        return fault(n, "its sequence is empty");
    Value *v = new_value(n, VALUE_SEQUENCE, s->n - 1);
    v->item_dtype = s->item_dtype;
    for (int i = 0; i < v->n; i++)
        v->item[i] = s->item[i + (i >= place)];
    return give(n, v);
}

static bool equal_shapes(const Value *s)
{
    const ingot_tensor *first = s->n ? s->item[0]->tensor : NULL;
    for (int i = 1; i < s->n; i++) {
        ingot_tensor *t = s->item[i]->tensor;
        if (ingot_rank(t) != ingot_rank(first))
            return false;
        for (int a = 0; a < ingot_rank(t); a++)
            if (!ingot_dim_equal(ingot_shape(t, a), ingot_shape(first, a)))
                return false;
    }
    return s->n > 0;
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
    const int64_t *known;
    int place;
    if (!s || !is_tensor(n, n->value[1]))
        return ingot_poison(n->c);
    if (ints_known(n, 1, &known) < 0 && equal_shapes(s) &&
        ingot_rank(s->item[0]->tensor) < INGOT_MAX_RANK)
        return ingot_take(n->c, stack_of(n, s, 0, true), reshape_scalar(n, n->in[1]), 0);
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
    int rank = ingot_rank(s->item[0]->tensor) + new_axis;
    if (!attr_has(n, "axis"))
        return fault(n, "its attribute 'axis' is missing");
    if (!axis_in(n, attr_int(n, "axis", 0), rank, &axis) || n->failed)
        return ingot_poison(n->c);
    return stack_of(n, s, axis, new_axis);
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
    if (!ingot_dim_is_const(ingot_shape(x, axis), &size))
        return unsupported(n, "the size of axis %d is not known when compiling", axis);
    int count = split_sizes(n, size, &sizes);
    if (count < 0)
        return ingot_poison(n->c);
    Value *v = new_value(n, VALUE_SEQUENCE, count);
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

/* The body for each element of the first sequence, and those at the same place of the others. */
ingot_tensor *onnx_sequence_map(Lowering *n)
{
    const Onnx__GraphProto *g = attr_graph(n, "body");
    const Value *s = sequence_in(n, 0);
    if (!g || !s)
        return ingot_poison(n->c);
    if (g->n_output < (size_t)n->n_out)
        return fault(n, "its body has %zu outputs, which does not fit", g->n_output);
    Value **in = ingot_alloc(n->c, (size_t)n->n_in * sizeof *in);
    Value **out = ingot_alloc(n->c, (g->n_output + 1) * sizeof *out);
    for (int k = 0; k < n->n_out; k++)
        n->out_value[k] = new_value(n, VALUE_SEQUENCE, s->n);
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
    Value *v = new_value(n, VALUE_OPTIONAL, n->n_in);
    if (n->n_in)
        v->item[0] = n->value[0];
    return give(n, v);
}

ingot_tensor *onnx_optional_has_element(Lowering *n)
{
    const Value *v = n->n_in ? n->value[0] : NULL;
    return ingot_scalar_i(n->c, INGOT_BOOL, v && (v->kind != VALUE_OPTIONAL || v->n));
}

ingot_tensor *onnx_optional_get_element(Lowering *n)
{
    Value *v = n->value[0];
    if (v->kind != VALUE_OPTIONAL)
        return give(n, v);
    return v->n ? give(n, v->item[0]) : fault(n, "its optional is empty");
}
