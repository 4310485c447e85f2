/*
 * onnx_size.c - sizes that only the run knows.
 *
 * What decides a size (a limit of Range, the shape of a Reshape) may be computed by the model
 * itself. Such a size is read when the model runs. Its buffer has to have a bound now, which comes
 * from
 *
 *   --dim TENSOR=lo..hi    the value of a tensor: whatever is computed from it is then an
 *                          expression
 *   --dim TENSOR_AXIS=lo..hi   the size of any tensor along an axis
 *   the shape that the file declares, if it is a number: often the size that an exporter has seen,
 *                          so it is compared with what is computed, and a run in which they differ
 *                          ends with a status
 *   the shape that it declares further down, of a value that has the same size (onnx_implied.c), or
 *                          of an output that an input tells the shape of (onnx_told.c)
 *   the operator           a slice is no longer than what it is cut from
 */
#include <stdio.h>
#include <string.h>

#include "onnx.h"

enum { MAX_VALUES = 64 }; /* elements of a tensor whose value is bounded */

/* What nobody bounds is read in these; a dim holds more than any tensor has elements. */
static const int64_t any = INT64_C(1) << 48;

/* ---- what the command line says -------------------------------------------------------------- */

const ingot_model_dim *dim_option(Model *m, const char *name)
{
    for (int i = 0; m->options && i < m->options->n_dims; i++)
        if (strcmp(m->options->dims[i].name, name) == 0) {
            m->dim_used[i] = true;
            return &m->options->dims[i];
        }
    return NULL;
}

/* TENSOR_AXIS, if it is no free dim of an input. */
static const ingot_model_dim *axis_option(Model *m, const char *tensor, int axis)
{
    char *name = ingot_alloc(m->c, strlen(tensor) + 16);
    sprintf(name, "%s_%d", tensor, axis);
    return is_free_dim(m, name) ? NULL : dim_option(m, name);
}

/* What a run reads is a count, which is never less than 0: how far the element is above its least.
 */
static ingot_dim *bound_element(ingot_context *c, ingot_tensor *e, const char *what, int64_t lo,
                                int64_t hi)
{
    ingot_dim *d;
    if (ingot_contents(c, e, &d, 1) == 1)
        return ingot_require_bounds(c, d, lo, hi, what);
    if (lo >= 0)
        return ingot_read_dim(c, e, what, lo, hi);
    char *above = ingot_alloc(c, strlen(what) + 32);
    sprintf(above, "%s, %lld more", what, -(long long)lo);
    ingot_dim *least = ingot_dim_const(c, lo);
    e = ingot_sub(c, e, ingot_from_dim(c, least));
    d = ingot_read_dim(c, e, above, 0, hi - lo);
    return ingot_is_poison(d) ? d : ingot_dim_add(c, d, least);
}

/* The elements of an integer tensor become dims with these bounds. */
static ingot_tensor *bound_value(Model *m, const char *name, ingot_tensor *t,
                                 const ingot_model_dim *o)
{
    ingot_context *c = m->c;
    ingot_dim *dims[INGOT_MAX_RANK], *element[MAX_VALUES];
    int64_t count;
    ingot_dtype dtype = ingot_dtype_of(t);
    if (dtype != INGOT_I64 && dtype != INGOT_I32)
        return ingot_error(
            c, INGOT_USAGE,
            "--dim %s: the tensor of that name is %s; only i32 and i64 can be bounded, and the "
            "sizes of any: --dim %s_0=lo..hi",
            name, ingot_dtype_name(dtype), name);
    if (!ingot_dim_is_const(ingot_numel(c, t), &count) || count > MAX_VALUES)
        return ingot_error(
            c, INGOT_USAGE,
            "--dim %s: the tensor of that name has more than %d elements, or a number of them that "
            "is not known",
            name, MAX_VALUES);
    char *what = ingot_alloc(c, strlen(name) + 64);
    sprintf(what, "the value of '%s'", name);
    ingot_dim *all = ingot_dim_const(c, count), *one = ingot_dim_const(c, 1);
    ingot_tensor *flat = ingot_cast(c, ingot_reshape(c, t, 1, &all), INGOT_I64);
    for (int64_t i = 0; i < count; i++) {
        ingot_tensor *e = ingot_slice(c, flat, 0, ingot_dim_const(c, i), one, 1);
        element[i] = bound_element(c, e, what, o->lo, o->hi);
        if (ingot_is_poison(element[i]))
            return element[i];
    }
    for (int a = 0; a < ingot_rank(t); a++)
        dims[a] = ingot_shape(t, a);
    ingot_tensor *y =
        ingot_reshape(c, ingot_from_dims(c, (int)count, element), ingot_rank(t), dims);
    return ingot_cast(c, y, dtype);
}

ingot_tensor *bounded(Model *m, const char *name, ingot_tensor *t)
{
    if (!m->options || !m->options->n_dims || ingot_is_poison(t))
        return t;
    const ingot_model_dim *o = is_free_dim(m, name) ? NULL : dim_option(m, name);
    if (o)
        t = bound_value(m, name, t, o);
    for (int a = 0; !ingot_is_poison(t) && a < ingot_rank(t); a++) {
        o = axis_option(m, name, a);
        if (!o)
            continue;
        char *what = ingot_alloc(m->c, strlen(name) + 64);
        int64_t size;
        sprintf(what, "the size of '%s' along axis %d", name, a);
        if (ingot_dim_is_const(ingot_shape(t, a), &size) && o->lo < o->hi && size >= o->lo &&
            size <= o->hi && !m->options->n_binds) /* a bound value may be why it is known */
            ingot_warning(m->c, "--dim %s=%lld..%lld does nothing: %s is %lld in every run",
                          o->name, (long long)o->lo, (long long)o->hi, what, (long long)size);
        ingot_dim *d = ingot_require_bounds(m->c, ingot_shape(t, a), o->lo, o->hi, what);
        t = ingot_require_size(m->c, t, a, d, what);
    }
    return t;
}

/* ---- one size -------------------------------------------------------------------------------- */

bool declared_dims(const Scope *s, const char *name, int rank, int64_t *dims)
{
    const Onnx__ValueInfoProto *info = names_get(&s->declared, name);
    if (!info || !info->type || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        !info->type->tensor_type->shape || rank < 0 || rank > INGOT_MAX_RANK ||
        info->type->tensor_type->shape->n_dim != (size_t)rank)
        return false;
    for (int a = 0; a < rank; a++) {
        const Onnx__TensorShapeProto__Dimension *d = info->type->tensor_type->shape->dim[a];
        dims[a] = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
                          d->dim_value >= 0
                      ? d->dim_value
                      : -1;
    }
    return true;
}

int64_t declared_size(Lowering *n, int output, int axis, int rank)
{
    int64_t dims[INGOT_MAX_RANK];
    return output < n->n_out && n->proto->output[output][0] &&
                   declared_dims(n->scope, n->proto->output[output], rank, dims)
               ? dims[axis]
               : -1;
}

static const char *what_size(Lowering *n, int output, int axis)
{
    const char *name = output < n->n_out ? n->proto->output[output] : "";
    char *what = ingot_alloc(n->c, strlen(name) + 64);
    sprintf(what, "the size of its result '%s' along axis %d", name, axis);
    return what;
}

bool size_bounds(Lowering *n, int output, int axis, int rank, int64_t *lo, int64_t *hi)
{
    const ingot_model_dim *o = NULL;
    if (output < n->n_out && n->proto->output[output][0])
        o = axis_option(n->model, n->proto->output[output], axis);
    *lo = o ? o->lo : declared_size(n, output, axis, rank);
    *hi = o ? o->hi : *lo;
    return *lo >= 0;
}

/* An i64 scalar that is known now, as an expression or by evaluating it. */
static bool known_value(Lowering *n, ingot_tensor *value, ingot_dim **d)
{
    int64_t v;
    int one;
    if (ingot_contents(n->c, value, d, 1) == 1)
        return true;
    if (!ingot_const_ints(n->c, value, &v, 1, &one) &&
        !(ingot_is_const(value) && ingot_const_data(n->c, value, &v, sizeof v)))
        return false;
    *d = dim(n, v);
    return true;
}

ingot_dim *value_within(Lowering *n, ingot_tensor *value, int64_t lo, int64_t hi, const char *what)
{
    ingot_dim *d;
    value = as(n, reshape_scalar(n, value), INGOT_I64);
    if (known_value(n, value, &d))
        return ingot_require_bounds(n->c, d, lo, hi, what);
    if (lo < hi)
        return ingot_read_dim(n->c, value, what, lo, hi);
    d = ingot_read_dim(n->c, value, what, -any, any); /* the message says what was read */
    return ingot_require_equal(n->c, d, dim(n, lo), what);
}

bool value_is(Lowering *n, ingot_tensor *value, ingot_dim *d, const char *what)
{
    ingot_dim *v;
    value = as(n, reshape_scalar(n, value), INGOT_I64);
    if (!known_value(n, value, &v))
        v = ingot_read_dim(n->c, value, what, -any, any);
    return ingot_require(n->c, v, d, d, what);
}

ingot_dim *own_size_at_run_time(Lowering *n, int output, int axis, int rank, ingot_tensor *value,
                                int64_t most)
{
    ingot_dim *d;
    int64_t lo, hi;
    const char *what = what_size(n, output, axis);
    value = as(n, reshape_scalar(n, value), INGOT_I64);
    if (known_value(n, value, &d))
        return d;
    if (size_bounds(n, output, axis, rank, &lo, &hi))
        return value_within(n, value, lo, hi, what);
    return most >= 0 ? ingot_read_dim(n->c, value, what, 0, most) : NULL;
}

ingot_dim *size_at_run_time(Lowering *n, int output, int axis, int rank, ingot_tensor *value,
                            int64_t most)
{
    ingot_dim *d = own_size_at_run_time(n, output, axis, rank, value, most);
    int64_t size = d ? -1 : implied_size(n, output, axis, rank);
    ingot_dim *told;
    if (!d && size < 0 &&
        (!known_value(n, as_told(n, as(n, reshape_scalar(n, value), INGOT_I64)), &told) ||
         !ingot_dim_is_const(told, &size)))
        return NULL;
    return size < 0 ? d : value_within(n, value, size, size, what_size(n, output, axis));
}

bool size_is(Lowering *n, int output, int axis, ingot_tensor *value, ingot_dim *d)
{
    return value_is(n, value, d, what_size(n, output, axis));
}

ingot_tensor *unbounded_size(Lowering *n, int output, int axis)
{
    const char *name = n->proto->output[output];
    return unsupported(
        n,
        "the size of its result '%s' along axis %d is decided by the data; --dim %s_%d=lo..hi "
        "bounds it, and --bind gives an input of the model a value",
        name, axis, name, axis);
}

/* ---- lists of sizes -------------------------------------------------------------------------- */

ingot_dim *entry_dim(Lowering *n, int input, int64_t k)
{
    ingot_dim *d;
    return ingot_contents(n->c, list_entry(n, input, k, 0), &d, 1) == 1 ? d : NULL;
}

int list_size(Lowering *n, int input)
{
    int64_t count;
    ingot_tensor *list = n->in[input];
    if (ingot_rank(list) > 1 || !ingot_dim_is_const(ingot_numel(n->c, list), &count)) {
        unsupported(n, "the length of its input '%s' is not known when compiling",
                    n->proto->input[input]);
        return -1;
    }
    if (count > INGOT_MAX_RANK) {
        unsupported(n, "its input '%s' has %lld entries; ranks go to %d", n->proto->input[input],
                    (long long)count, INGOT_MAX_RANK);
        return -1;
    }
    return (int)count;
}

bool entries_in(Lowering *n, int input, int *rank, ingot_dim **dims)
{
    *rank = list_size(n, input);
    for (int a = 0; a < *rank; a++)
        dims[a] = entry_dim(n, input, a);
    return *rank >= 0;
}

bool dims_positive(Lowering *n, int rank, ingot_dim *const *dims)
{
    for (int a = 0; a < rank; a++)
        if (ingot_dim_hi(dims[a]) < 0) {
            fault(n, "dim %d of its result is negative", a);
            return false;
        }
    return true;
}
