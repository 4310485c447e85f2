/*
 * onnx_node.c - what every lowering needs: faults at the node, its attributes by name and type
 * (those of the caller where a function's body refers to them), inputs that have to be known
 * while compiling, and shorthands for small graphs.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "onnx.h"

/* ---- faults --------------------------------------------------------------------------------- */

/* The If in a branch of which the node is, and which only the run decides; NULL: there is none. */
static const Lowering *undecided_if(const Lowering *n)
{
    for (const Scope *s = n->scope; s; s = s->outer    ? s->outer
                                           : s->caller ? s->caller->scope
                                                       : NULL) {
        const int64_t *known;
        if (s->branch_of && ints_known((Lowering *)(uintptr_t)s->branch_of, 0, &known) != 1)
            return s->branch_of;
    }
    return NULL;
}

/* What does not fit in a branch that need not be taken is no fault of the model: an exported
 * network chooses by a size or a rate which part of it suits the input, and the other part need
 * not. */
ingot_tensor *fault(Lowering *n, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const Lowering *maybe = undecided_if(n);
    char text[400];
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (maybe)
        return unsupported(n,
                           "%s; that is in a branch of '%s' (If), which only the run decides: "
                           "--bind gives what decides it a value",
                           text, node_label(maybe->proto));
    n->failed = true;
    return ingot_error(n->c, INGOT_INVALID, "%s", text);
}

ingot_tensor *unsupported(Lowering *n, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    n->failed = true;
    return ingot_error(n->c, INGOT_UNSUPPORTED, "%s", text);
}

/* ---- attributes ----------------------------------------------------------------------------- */

typedef Onnx__AttributeProto Attr;
enum {
    ATTR_FLOAT = 1,
    ATTR_INT,
    ATTR_STRING,
    ATTR_TENSOR,
    ATTR_GRAPH,
    ATTR_FLOATS,
    ATTR_INTS,
    ATTR_STRINGS,
    ATTR_SPARSE = 11
};

static const Attr *attr_named(size_t n, Attr *const *list, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i]->name, name) == 0)
            return list[i];
    return NULL;
}

static const Onnx__FunctionProto *enclosing_function(const Scope *s)
{
    while (s->outer)
        s = s->outer;
    return s->function;
}

static const Lowering *enclosing_call(const Scope *s)
{
    while (s->outer)
        s = s->outer;
    return s->caller;
}

static const Attr *attr_find(Lowering *n, const char *name)
{
    const Lowering *at = n;
    const Attr *a = attr_named(n->proto->n_attribute, n->proto->attribute, name);
    while (a && a->ref_attr_name[0]) {
        const char *ref = a->ref_attr_name;
        const Onnx__FunctionProto *f = enclosing_function(at->scope);
        const Lowering *call = enclosing_call(at->scope);
        if (!call) {
            fault(n, "its attribute '%s' refers to '%s', but it is in no function", name, ref);
            return NULL;
        }
        a = attr_named(call->proto->n_attribute, call->proto->attribute, ref);
        if (!a)
            return attr_named(f->n_attribute_proto, f->attribute_proto, ref);
        at = call;
    }
    return a;
}

/* The type as declared; files of the first versions do not say. */
static int attr_type(const Attr *a)
{
    if (a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED)
        return (int)a->type;
    return a->has_f           ? ATTR_FLOAT
           : a->has_i         ? ATTR_INT
           : a->has_s         ? ATTR_STRING
           : a->t             ? ATTR_TENSOR
           : a->g             ? ATTR_GRAPH
           : a->sparse_tensor ? ATTR_SPARSE
           : a->n_floats      ? ATTR_FLOATS
           : a->n_ints        ? ATTR_INTS
           : a->n_strings     ? ATTR_STRINGS
                              : 0;
}

/* The attribute if it is there and of the type. */
static const Attr *attr_typed(Lowering *n, const char *name, int type)
{
    static const char *const names[] = {"nothing",  "a float", "an integer", "a string",
                                        "a tensor", "a graph", "floats",     "integers",
                                        "strings",  "tensors", "graphs",     "a sparse tensor"};
    const Attr *a = attr_find(n, name);
    if (!a)
        return NULL;
    int is = attr_type(a);
    bool empty_list = is == 0 && type >= ATTR_FLOATS && type <= ATTR_STRINGS;
    if (is == type || empty_list)
        return a;
    fault(n, "its attribute '%s' has to be %s, not %s", name, names[type],
          is < COUNT(names) && is >= 0 ? names[is] : "something else");
    return NULL;
}

bool attr_has(Lowering *n, const char *name)
{
    return attr_find(n, name) != NULL;
}

void attr_number(Lowering *n, const char *name, ingot_attribute *out)
{
    const Attr *a = attr_find(n, name);
    int type = a ? attr_type(a) : 0;
    *out = (ingot_attribute){.name = name, .kind = INGOT_ATTR_OTHER};
    if (type == ATTR_INT)
        *out = (ingot_attribute){.name = name, .kind = INGOT_ATTR_INT, .i = a->i};
    if (type == ATTR_FLOAT)
        *out = (ingot_attribute){.name = name, .kind = INGOT_ATTR_FLOAT, .f = (double)a->f};
}

int64_t attr_int(Lowering *n, const char *name, int64_t otherwise)
{
    const Attr *a = attr_typed(n, name, ATTR_INT);
    return a ? a->i : otherwise;
}

double attr_float(Lowering *n, const char *name, double otherwise)
{
    const Attr *a = attr_typed(n, name, ATTR_FLOAT);
    return a ? (double)a->f : otherwise;
}

static const char *text_of(Lowering *n, const ProtobufCBinaryData *s)
{
    char *text = ingot_alloc(n->c, s->len + 1);
    if (s->len)
        memcpy(text, s->data, s->len);
    return text;
}

const char *attr_string(Lowering *n, const char *name, const char *otherwise)
{
    const Attr *a = attr_typed(n, name, ATTR_STRING);
    return a ? text_of(n, &a->s) : otherwise;
}

bool attr_is(Lowering *n, const char *name, const char *otherwise, const char *value)
{
    return strcmp(attr_string(n, name, otherwise), value) == 0;
}

int attr_ints(Lowering *n, const char *name, const int64_t **out)
{
    const Attr *a = attr_typed(n, name, ATTR_INTS);
    *out = a ? a->ints : NULL;
    return a ? (int)a->n_ints : -1;
}

bool attr_each(Lowering *n, const char *name, int count, int64_t otherwise, int64_t least,
               int64_t *out)
{
    const int64_t *list;
    int have = attr_ints(n, name, &list);
    if (have >= 0 && have != count) {
        fault(n, "its attribute '%s' has %d entries, not %d", name, have, count);
        return false;
    }
    for (int i = 0; i < count; i++) {
        out[i] = have < 0 ? otherwise : list[i];
        if (out[i] < least || out[i] > INT32_MAX) {
            fault(n, "its attribute '%s' has the entry %lld", name, (long long)out[i]);
            return false;
        }
    }
    return !n->failed;
}

int attr_floats(Lowering *n, const char *name, const float **out)
{
    const Attr *a = attr_typed(n, name, ATTR_FLOATS);
    *out = a ? a->floats : NULL;
    return a ? (int)a->n_floats : -1;
}

int attr_strings(Lowering *n, const char *name, const char *const **out)
{
    const Attr *a = attr_typed(n, name, ATTR_STRINGS);
    *out = NULL;
    if (!a)
        return -1;
    const char **list = ingot_alloc(n->c, (a->n_strings + 1) * sizeof *list);
    for (size_t i = 0; i < a->n_strings; i++)
        list[i] = text_of(n, &a->strings[i]);
    *out = list;
    return (int)a->n_strings;
}

/* Its place, for messages. */
static void attr_where(Lowering *n, const char *name, char where[256])
{
    snprintf(where, 256, "node '%.100s' (%.50s): attribute '%.50s'", node_label(n->proto),
             n->proto->op_type, name);
}

static const Onnx__TensorProto *attr_proto(Lowering *n, const char *name, char where[256])
{
    const Attr *a = attr_typed(n, name, ATTR_TENSOR);
    if (a && !a->t)
        fault(n, "its attribute '%s' has no tensor", name);
    attr_where(n, name, where);
    return a ? a->t : NULL;
}

ingot_tensor *attr_sparse(Lowering *n, const char *name)
{
    char where[256];
    const Attr *a = attr_typed(n, name, ATTR_SPARSE);
    attr_where(n, name, where);
    if (a && a->sparse_tensor)
        return sparse_tensor(n->model, a->sparse_tensor, where);
    return n->failed ? ingot_poison(n->c) : fault(n, "its attribute '%s' has no tensor", name);
}

ingot_tensor *attr_tensor(Lowering *n, const char *name)
{
    char where[256];
    const Onnx__TensorProto *t = attr_proto(n, name, where);
    return t ? proto_tensor(n->model, t, where) : n->failed ? ingot_poison(n->c) : NULL;
}

const OnnxTensor *attr_elements(Lowering *n, const char *name)
{
    char where[256];
    const Onnx__TensorProto *t = attr_proto(n, name, where);
    OnnxTensor *out = ingot_alloc(n->c, sizeof *out);
    if (!t)
        return NULL;
    n->failed |= !onnx_tensor_read(n->model->file, t, where, out);
    return n->failed ? NULL : out;
}

const Onnx__GraphProto *attr_graph(Lowering *n, const char *name)
{
    const Attr *a = attr_typed(n, name, ATTR_GRAPH);
    if (a && a->g)
        return a->g;
    if (!n->failed)
        fault(n, "its attribute '%s' is missing", name);
    return NULL;
}

/* ---- inputs that are known ------------------------------------------------------------------ */

bool axis_in(Lowering *n, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank) {
        fault(n, "axis %lld is outside a tensor of rank %d", (long long)axis, rank);
        return false;
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

bool axes_in(Lowering *n, const int64_t *axes, int count, int rank, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < count; i++) {
        int axis;
        if (!axis_in(n, axes[i], rank, &axis))
            return false;
        if (*out >> axis & 1) {
            fault(n, "axis %lld is given twice", (long long)axes[i]);
            return false;
        }
        *out |= 1u << axis;
    }
    return true;
}

ingot_tensor *optional_in(const Lowering *n, int input)
{
    return input < n->n_in ? n->in[input] : NULL;
}

bool inputs_needed(Lowering *n, int count, const int *list)
{
    for (int i = 0; i < count; i++)
        if (!optional_in(n, list[i])) {
            fault(n, "input %d is missing", list[i]);
            return false;
        }
    return true;
}

static void not_known(Lowering *n, int input)
{
    unsupported(n,
                "its input '%s' decides a shape, but is not known when compiling; "
                "--bind gives it a value, or --dim %s=lo..hi bounds its elements",
                n->proto->input[input], n->proto->input[input]);
}

int dims_in(Lowering *n, int input, ingot_dim *const **out)
{
    ingot_tensor *t = n->in[input];
    int64_t max = ingot_dim_hi(ingot_numel(n->c, t));
    max = max > ONNX_MAX_LIST ? ONNX_MAX_LIST : max;
    ingot_dim **dims = ingot_alloc(n->c, (size_t)(max + 1) * sizeof *dims);
    int count = ingot_contents(n->c, t, dims, (int)max);
    if (count < 0)
        not_known(n, input);
    *out = dims;
    return count;
}

int ints_known(Lowering *n, int input, const int64_t **out)
{
    ingot_tensor *t = n->in[input];
    int64_t max = ingot_dim_hi(ingot_numel(n->c, t));
    int count;
    if (max > ONNX_MAX_LIST)
        return -1;
    int64_t *v = ingot_alloc(n->c, (size_t)(max + 1) * sizeof *v);
    *out = v;
    return ingot_const_ints(n->c, t, v, (int)max, &count) ? count : -1;
}

int ints_in(Lowering *n, int input, const int64_t **out)
{
    int count = ints_known(n, input, out);
    if (count < 0)
        not_known(n, input);
    return count;
}

int floats_in(Lowering *n, int input, const double **out)
{
    ingot_tensor *t = n->in[input];
    int64_t dims[INGOT_MAX_RANK], count = 1;
    *out = NULL;
    if (!ingot_is_const(t) || !ingot_static_shape(t, dims)) {
        not_known(n, input);
        return -1;
    }
    for (int a = 0; a < ingot_rank(t); a++)
        count *= dims[a];
    if (count > ONNX_MAX_LIST) {
        unsupported(n, "its input '%s' has too many elements", n->proto->input[input]);
        return -1;
    }
    double *v = ingot_alloc(n->c, (size_t)(count + 1) * sizeof *v);
    *out = v;
    if (count &&
        !ingot_const_data(n->c, ingot_cast(n->c, t, INGOT_F64), v, (size_t)count * sizeof *v)) {
        not_known(n, input);
        return -1;
    }
    return (int)count;
}

int ints_attr_or_in(Lowering *n, const char *attr, int input, int since, const int64_t **out)
{
    if (n->version < since)
        return attr_ints(n, attr, out);
    if (n->n_in <= input || !n->in[input])
        return -1;
    int count = ints_in(n, input, out);
    return count < 0 ? -2 : count;
}

bool int_in(Lowering *n, int input, int64_t *out)
{
    const int64_t *v;
    int count = ints_in(n, input, &v);
    if (count == 1)
        *out = v[0];
    else if (count >= 0)
        fault(n, "its input '%s' has to be one number, not %d", n->proto->input[input], count);
    return count == 1;
}

bool float_in(Lowering *n, int input, double *out)
{
    const double *v;
    int count = floats_in(n, input, &v);
    if (count == 1)
        *out = v[0];
    else if (count >= 0)
        fault(n, "its input '%s' has to be one number, not %d", n->proto->input[input], count);
    return count == 1;
}

bool declared_shape(Lowering *n, int output, int *rank, int64_t *dims)
{
    const Onnx__ValueInfoProto *info = NULL;
    if (output < n->n_out && n->proto->output[output][0])
        info = names_get(&n->scope->declared, n->proto->output[output]);
    if (!info || !info->type || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        !info->type->tensor_type->shape || info->type->tensor_type->shape->n_dim > INGOT_MAX_RANK)
        return false;
    const Onnx__TensorShapeProto *shape = info->type->tensor_type->shape;
    *rank = (int)shape->n_dim;
    for (int a = 0; a < *rank; a++) {
        const Onnx__TensorShapeProto__Dimension *d = shape->dim[a];
        if (d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
            d->dim_value < 0)
            return false;
        dims[a] = d->dim_value;
    }
    return true;
}

/* ---- shorthands ----------------------------------------------------------------------------- */

ingot_dim *dim(Lowering *n, int64_t v)
{
    return ingot_dim_const(n->c, v);
}

void shape_of(ingot_tensor *x, ingot_dim **dims)
{
    for (int a = 0; a < ingot_rank(x); a++)
        dims[a] = ingot_shape(x, a);
}

bool dim_is(ingot_dim *d, int64_t value)
{
    int64_t v;
    return ingot_dim_is_const(d, &v) && v == value;
}

bool has_no_pixels(ingot_tensor *image)
{
    for (int a = 2; a < ingot_rank(image); a++)
        if (dim_is(ingot_shape(image, a), 0))
            return true;
    return false;
}

ingot_tensor *align_axis(Lowering *n, ingot_tensor *x, int axis, int rank)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    for (int a = 0; a < rank; a++)
        dims[a] = a >= axis && a < axis + ingot_rank(x) ? ingot_shape(x, a - axis) : dim(n, 1);
    return ingot_reshape(n->c, x, rank, dims);
}

ingot_tensor *reshape_scalar(Lowering *n, ingot_tensor *x)
{
    return ingot_rank(x) ? ingot_reshape(n->c, x, 0, NULL) : x;
}

ingot_tensor *like(Lowering *n, ingot_tensor *x, double v)
{
    return ingot_like(n->c, x, v);
}

static int64_t product(int rank, const int64_t *dims)
{
    int64_t count = 1;
    for (int a = 0; a < rank; a++)
        count *= dims[a];
    return count;
}

ingot_tensor *const_i64(Lowering *n, int rank, const int64_t *dims, const int64_t *v)
{
    size_t bytes = (size_t)product(rank, dims) * sizeof *v;
    int64_t *copy = ingot_alloc(n->c, bytes + 1);
    if (bytes)
        memcpy(copy, v, bytes);
    return ingot_data(n->c, NULL, INGOT_I64, rank, dims, copy);
}

ingot_tensor *const_f64(Lowering *n, ingot_dtype dtype, int rank, const int64_t *dims,
                        const double *v)
{
    int64_t count = product(rank, dims);
    if (dtype == INGOT_F32) {
        float *f = ingot_alloc(n->c, (size_t)count * sizeof *f + 1);
        for (int64_t i = 0; i < count; i++)
            f[i] = (float)v[i];
        return ingot_data(n->c, NULL, INGOT_F32, rank, dims, f);
    }
    double *copy = ingot_alloc(n->c, (size_t)count * sizeof *v + 1);
    if (count)
        memcpy(copy, v, (size_t)count * sizeof *v);
    return as(n, ingot_data(n->c, NULL, INGOT_F64, rank, dims, copy), dtype);
}

bool is_float(ingot_tensor *x)
{
    switch (ingot_dtype_of(x)) {
    case INGOT_F16:
    case INGOT_BF16:
    case INGOT_F32:
    case INGOT_F64:
    case INGOT_F8E4M3FN:
    case INGOT_F8E4M3FNUZ:
    case INGOT_F8E5M2:
    case INGOT_F8E5M2FNUZ:
    case INGOT_F8E8M0:
    case INGOT_F4E2M1: return true;
    default: return false;
    }
}

bool is_signed(ingot_tensor *x)
{
    switch (ingot_dtype_of(x)) {
    case INGOT_I8:
    case INGOT_I16:
    case INGOT_I32:
    case INGOT_I64:
    case INGOT_I4:
    case INGOT_I2: return true;
    default: return is_float(x);
    }
}

ingot_tensor *as(Lowering *n, ingot_tensor *x, ingot_dtype dtype)
{
    return ingot_dtype_of(x) == dtype ? x : ingot_cast(n->c, x, dtype);
}

ingot_tensor *widen(Lowering *n, ingot_tensor *x)
{
    return is_float(x) && ingot_dtype_bytes(ingot_dtype_of(x)) < 4 ? as(n, x, INGOT_F32) : x;
}
