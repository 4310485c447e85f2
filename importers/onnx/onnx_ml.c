/* onnx_ml.c - small operators of ai.onnx.ml: preparing features. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "igrt_lib.h"
#include "onnx.h"

#define X n->in[0]

/* x > threshold, as 0 or 1 */
ingot_tensor *onnx_binarizer(Lowering *n)
{
    ingot_tensor *above = ingot_gt(n->c, X, like(n, X, attr_float(n, "threshold", 0)));
    return as(n, above, ingot_dtype_of(X));
}

/* Columns of the last axis; a vector is a row. */
ingot_tensor *onnx_array_feature_extractor(Lowering *n)
{
    int rank = ingot_rank(X);
    if (rank < 1)
        return fault(n, "its input is a scalar");
    ingot_tensor *x = rank == 1 ? ingot_unsqueeze(n->c, X, 0) : X;
    ingot_tensor *column = ingot_flatten(n->c, n->in[1], 0, ingot_rank(n->in[1]));
    return ingot_take(n->c, x, column, ingot_rank(x) - 1);
}

/* An attribute with one entry, or one a column: [columns] or a scalar. NULL: left out. */
static ingot_tensor *column_floats(Lowering *n, const char *name)
{
    const float *list;
    int count = attr_floats(n, name, &list);
    int64_t size = count;
    if (count <= 0)
        return NULL;
    if (count != 1 && !(ingot_rank(X) && dim_is(ingot_shape(X, ingot_rank(X) - 1), count)))
        return fault(n, "its attribute '%s' has %d entries", name, count);
    double *v = ingot_alloc(n->c, (size_t)count * sizeof *v);
    for (int i = 0; i < count; i++)
        v[i] = (double)list[i];
    return const_f64(n, INGOT_F32, count > 1, &size, v);
}

/* (x - offset) scale, in f32 */
ingot_tensor *onnx_scaler(Lowering *n)
{
    ingot_tensor *offset = column_floats(n, "offset"), *scale = column_floats(n, "scale");
    ingot_tensor *y = as(n, X, INGOT_F32);
    y = offset ? ingot_sub(n->c, y, offset) : y;
    return scale ? ingot_mul(n->c, y, scale) : y;
}

/* ---- LabelEncoder --------------------------------------------------------------------------- */

/* A list out of the attributes: elements in storage form, or pointers to strings. */
typedef struct {
    ingot_dtype dtype;
    int64_t n;
    const void *data;
} List;

/* The attribute of any type; n is -1 if there is none. */
static List list_attr(Lowering *n, const char *kind)
{
    char name[32], where[64];
    const int64_t *ints;
    const float *floats;
    const char *const *strings;
    List l = {INGOT_I64, -1, NULL};
    snprintf(name, sizeof name, "%s_tensor", kind);
    const OnnxTensor *t = attr_elements(n, name);
    if (t) {
        snprintf(where, sizeof where, "attribute '%s'", name);
        l.n = (int64_t)t->count;
        if (!ingot_onnx_dtype(t->dtype, &l.dtype))
            l.n = -1;
        else
            l.data = l.dtype == INGOT_STRING ? (const void *)strings_of(n->model, t, where)
                                             : t->data.data;
        n->failed |= !l.data;
        return l;
    }
    snprintf(name, sizeof name, "%s_int64s", kind);
    int count = attr_ints(n, name, &ints);
    if (count >= 0)
        return (List){INGOT_I64, count, ints};
    snprintf(name, sizeof name, "%s_floats", kind);
    count = attr_floats(n, name, &floats);
    if (count >= 0)
        return (List){INGOT_F32, count, floats};
    snprintf(name, sizeof name, "%s_strings", kind);
    count = attr_strings(n, name, &strings);
    if (count >= 0)
        return (List){INGOT_STRING, count, strings};
    return l;
}

static size_t list_step(const List *l)
{
    return l->dtype == INGOT_STRING ? sizeof(const char *) : ingot_dtype_bytes(l->dtype);
}

/* A key and where it stood. */
typedef struct {
    const char *text;
    uint64_t number;
    int64_t at;
} LabelKey;

static int compare_keys(const LabelKey *a, const LabelKey *b)
{
    return a->text ? strcmp(a->text, b->text) : (a->number > b->number) - (a->number < b->number);
}

static int compare_places(const void *a, const void *b)
{
    const LabelKey *x = a, *y = b;
    int c = compare_keys(x, y);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* Sorts keys, and values with them; of equal keys the last counts. Their new number. */
static int64_t sort_keys(Lowering *n, List *keys, List *values)
{
    LabelKey *key = ingot_alloc(n->c, ((size_t)keys->n + 1) * sizeof *key);
    /* elements may be unaligned in the file */
    size_t a = list_step(keys), b = list_step(values), bytes = (size_t)keys->n * a;
    void *copy = ingot_alloc(n->c, bytes + 1);
    memcpy(copy, keys->data, bytes);
    igrt_tensor t = {
        .data = copy, .dtype = (igrt_dtype)(keys->dtype + 1), .rank = 1, .dims = {keys->n}};
    for (int64_t i = 0; i < keys->n; i++)
        key[i] = keys->dtype == INGOT_STRING ? (LabelKey){((const char *const *)copy)[i], 0, i}
                                             : (LabelKey){NULL, igrt_lib_key(&t, i), i};
    qsort(key, (size_t)keys->n, sizeof *key, compare_places);
    char *k = ingot_alloc(n->c, bytes + 1), *v = ingot_alloc(n->c, (size_t)(keys->n + 1) * b);
    int64_t count = 0;
    for (int64_t i = 0; i < keys->n; i++) {
        if (i + 1 < keys->n && compare_keys(&key[i], &key[i + 1]) == 0)
            continue;
        memcpy(k + (size_t)count * a, (const char *)copy + (size_t)key[i].at * a, a);
        memcpy(v + (size_t)count * b, (const char *)values->data + (size_t)key[i].at * b, b);
        count++;
    }
    keys->data = k;
    values->data = v;
    return count;
}

static ingot_tensor *list_tensor(Lowering *n, const List *l, int64_t count)
{
    if (l->dtype == INGOT_STRING)
        return ingot_strings(n->c, 1, &count, l->data);
    return ingot_data(n->c, NULL, l->dtype, 1, &count, l->data);
}

/* What stands for a key that is not there. */
static ingot_tensor *default_value(Lowering *n, const List *values)
{
    const OnnxTensor *t = attr_elements(n, "default_tensor");
    ingot_dtype dtype;
    if (t && t->count == 1 && ingot_onnx_dtype(t->dtype, &dtype) && dtype == values->dtype)
        return list_tensor(n,
                           &(List){dtype, 1,
                                   dtype == INGOT_STRING
                                       ? (const void *)strings_of(n->model, t, "default_tensor")
                                       : t->data.data},
                           1);
    if (t || n->failed)
        return fault(n, "its default_tensor has to be one value of the type of its values");
    const char *text = attr_string(n, "default_string", "_Unused");
    int64_t one = 1;
    if (values->dtype == INGOT_STRING)
        return ingot_strings(n->c, 1, &one, &text);
    ingot_tensor *v = values->dtype == INGOT_F32
                          ? ingot_scalar_f(n->c, INGOT_F32, attr_float(n, "default_float", -0.0))
                      : values->dtype == INGOT_I64
                          ? ingot_scalar_i(n->c, INGOT_I64, attr_int(n, "default_int64", -1))
                      : values->dtype == INGOT_F64 || values->dtype == INGOT_F16
                          ? ingot_scalar_f(n->c, values->dtype, -0.0)
                          : ingot_scalar_i(n->c, values->dtype, -1);
    return ingot_unsqueeze(n->c, v, 0);
}

/* 0, 1, .. */
static const int64_t *places(Lowering *n, int64_t count)
{
    int64_t *place = ingot_alloc(n->c, ((size_t)count + 1) * sizeof *place);
    for (int64_t i = 0; i < count; i++)
        place[i] = i;
    return place;
}

/* Version 1: a list of strings, and their places. */
static bool classes(Lowering *n, List *keys, List *values)
{
    const char *const *strings;
    int count = attr_strings(n, "classes_strings", &strings);
    if (count < 0)
        return false;
    *keys = (List){INGOT_STRING, count, strings};
    *values = (List){INGOT_I64, count, places(n, count)};
    if (ingot_dtype_of(X) != INGOT_STRING) {
        List swap = *keys;
        *keys = *values;
        *values = swap;
    }
    return true;
}

/* The value of the key that equals an element of x; a table of values by the place in the sorted
 * keys, what stands for any other last. Without that, any other ends the run. */
static ingot_tensor *mapped(Lowering *n, ingot_tensor *x, List keys, List values,
                            ingot_tensor *otherwise)
{
    int64_t count = sort_keys(n, &keys, &values);
    ingot_tensor *parts[2] = {list_tensor(n, &values, count), otherwise};
    ingot_tensor *at = ingot_lookup(n->c, x, list_tensor(n, &keys, count));
    ingot_tensor *none = ingot_lt(n->c, at, like(n, at, 0));
    at = ingot_where(n->c, none, like(n, at, (double)count), at);
    if (otherwise)
        return ingot_take(n->c, ingot_concat(n->c, 2, parts, 0), at, 0);
    none =
        ingot_sum(n->c, ingot_cast(n->c, ingot_flatten(n->c, none, 0, ingot_rank(none)), INGOT_I64),
                  1, false);
    ingot_dim *others = ingot_read_dim(n->c, none, "others", 0, INT64_MAX), *zero = dim(n, 0);
    if (!ingot_require(n->c, others, zero, zero,
                       "the number of elements that it has no category for"))
        return ingot_poison(n->c);
    return ingot_take(n->c, parts[0], at, 0);
}

ingot_tensor *onnx_label_encoder(Lowering *n)
{
    List keys, values;
    if (!classes(n, &keys, &values)) {
        keys = list_attr(n, "keys");
        values = list_attr(n, "values");
    }
    if (n->failed)
        return ingot_poison(n->c);
    if (keys.n < 0 || keys.n != values.n)
        return fault(n, "it has %lld keys and %lld values", (long long)keys.n, (long long)values.n);
    if (keys.dtype != ingot_dtype_of(X))
        return fault(n, "its keys are %s, its input is %s", ingot_dtype_name(keys.dtype),
                     ingot_dtype_name(ingot_dtype_of(X)));
    return mapped(n, X, keys, values, default_value(n, &values));
}

/* ---- CategoryMapper: numbers of names, or names of numbers ----------------------------------- */

ingot_tensor *onnx_category_mapper(Lowering *n)
{
    const int64_t *ints;
    const char *const *strings, *text = attr_string(n, "default_string", "_Unused");
    int64_t count = attr_ints(n, "cats_int64s", &ints), one = 1;
    if (count < 0 || attr_strings(n, "cats_strings", &strings) != count)
        return fault(n, "its attributes 'cats_int64s' and 'cats_strings' have to be of one length");
    List number = {INGOT_I64, count, ints}, name = {INGOT_STRING, count, strings};
    if (ingot_dtype_of(X) == INGOT_STRING)
        return mapped(
            n, X, name, number,
            ingot_unsqueeze(n->c, ingot_scalar_i(n->c, INGOT_I64, attr_int(n, "default_int64", -1)),
                            0));
    return mapped(n, X, number, name, ingot_strings(n->c, 1, &one, &text));
}

/* ---- features as numbers --------------------------------------------------------------------- */

/* One more axis: 1 where the element is that category; one in no list is beyond the last, or ends
 * the run (zeros = 0). Numbers are compared as integers. */
ingot_tensor *onnx_one_hot_encoder(Lowering *n)
{
    const int64_t *ints;
    const char *const *strings;
    bool text = ingot_dtype_of(X) == INGOT_STRING;
    int64_t count =
        text ? attr_strings(n, "cats_strings", &strings) : attr_ints(n, "cats_int64s", &ints);
    if (count <= 0)
        return fault(n, "it has no attribute '%s', which its input of type %s needs",
                     text ? "cats_strings" : "cats_int64s", ingot_dtype_name(ingot_dtype_of(X)));
    List keys = {text ? INGOT_STRING : INGOT_I64, count, text ? (const void *)strings : ints},
         place = {INGOT_I64, count, places(n, count)};
    ingot_tensor *unknown = attr_int(n, "zeros", 1) ? const_i64(n, 1, &(int64_t){1}, &count) : NULL;
    ingot_tensor *at = mapped(n, text ? X : as(n, X, INGOT_I64), keys, place, unknown);
    return ingot_one_hot(n->c, at, dim(n, count), -1, ingot_scalar_f(n->c, INGOT_F32, 0),
                         ingot_scalar_f(n->c, INGOT_F32, 1));
}

/* What is missing (a number, or NaN) is replaced, by one value or one a column. */
ingot_tensor *onnx_imputer(Lowering *n)
{
    const int64_t *ints;
    int64_t count = attr_ints(n, "imputed_value_int64s", &ints);
    if (is_float(X)) {
        double missing = attr_float(n, "replaced_value_float", 0);
        ingot_tensor *value = column_floats(n, "imputed_value_floats");
        ingot_tensor *hole =
            missing != missing ? ingot_ne(n->c, X, X) : ingot_eq(n->c, X, like(n, X, missing));
        return value ? ingot_where(n->c, hole, as(n, value, ingot_dtype_of(X)), X)
                     : fault(n, "it has no imputed_value_floats, which its input's type needs");
    }
    if (count < 1 || (count > 1 && !dim_is(ingot_shape(X, ingot_rank(X) - 1), count)))
        return fault(n,
                     "its attribute 'imputed_value_int64s' has %lld entries, not 1 or one for "
                     "each column",
                     (long long)(count < 0 ? 0 : count));
    ingot_tensor *missing =
        ingot_scalar_i(n->c, ingot_dtype_of(X), attr_int(n, "replaced_value_int64", 0));
    ingot_tensor *value = as(n, const_i64(n, 1, &count, ints), ingot_dtype_of(X));
    return ingot_where(n->c, ingot_eq(n->c, X, missing), value, X);
}

/* Rows over their maximum, their sum of absolute values, or their length; rows of zeros stay. */
ingot_tensor *onnx_normalizer(Lowering *n)
{
    const char *norm = attr_string(n, "norm", "MAX");
    ingot_tensor *x = as(n, X, INGOT_F32), *by;
    if (ingot_rank(x) < 1 || ingot_rank(x) > 2)
        return fault(n, "its input has rank %d, not 1 or 2", ingot_rank(x));
    unsigned row = 1u << (ingot_rank(x) - 1);
    if (strcmp(norm, "MAX") == 0)
        by = ingot_reduce(n->c, INGOT_REDUCE_MAX, x, row, true);
    else if (strcmp(norm, "L1") == 0)
        by = ingot_sum(n->c, ingot_abs(n->c, x), row, true);
    else if (strcmp(norm, "L2") == 0)
        by = ingot_sqrt(n->c, ingot_sum(n->c, ingot_mul(n->c, x, x), row, true));
    else
        return fault(n, "its norm is '%.50s', not MAX, L1 or L2", norm);
    by = ingot_where(n->c, ingot_eq(n->c, by, like(n, by, 0)), like(n, by, 1), by);
    return ingot_div(n->c, x, by);
}

/* Input i as [rows, width] of f32, cut off or filled up with zeros. NULL after an error. */
static ingot_tensor *features_of(Lowering *n, int i, int64_t width)
{
    ingot_tensor *x = as(n, n->in[i], INGOT_F32);
    int64_t have;
    if (ingot_rank(x) == 1)
        x = ingot_unsqueeze(n->c, x, 0);
    if (ingot_rank(x) != 2 || !ingot_dim_is_const(ingot_shape(x, 1), &have)) {
        fault(n, "its input '%s' has to have rank 1 or 2 and a known number of columns",
              n->proto->input[i]);
        return NULL;
    }
    if (have >= width)
        return ingot_slice(n->c, x, 1, dim(n, 0), dim(n, width), 1);
    return ingot_pad_c(n->c, x, (int64_t[2]){0, 0}, (int64_t[2]){0, width - have}, 0);
}

ingot_tensor *onnx_feature_vectorizer(Lowering *n)
{
    const int64_t *widths;
    int count = attr_ints(n, "inputdimensions", &widths);
    ingot_tensor **parts = ingot_alloc(n->c, (size_t)n->n_in * sizeof *parts);
    if (count != n->n_in)
        return fault(n, "it has %d inputdimensions, and %d inputs", count < 0 ? 0 : count, n->n_in);
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i] || widths[i] < 1 || widths[i] > INT32_MAX)
            return fault(
                n, "input %d is left out, or its entry of inputdimensions is out of bounds", i);
        parts[i] = features_of(n, i, widths[i]);
        if (!parts[i])
            return ingot_poison(n->c);
    }
    return ingot_concat(n->c, n->n_in, parts, 1);
}

/* A list of maps from classes to numbers, one a row. C has no type for them: it stays the tensor of
 * the numbers, and the classes are told beside it. */
ingot_tensor *onnx_zip_map(Lowering *n)
{
    const int64_t *number = NULL;
    const char *const *name = NULL;
    int numbers = attr_ints(n, "classlabels_int64s", &number),
        names = attr_strings(n, "classlabels_strings", &name),
        count = numbers > 0 ? numbers : names;
    int64_t columns;
    if (n->failed)
        return ingot_poison(n->c);
    if (!X)
        return fault(n, "its input is no tensor");
    if ((numbers > 0) == (names > 0))
        return fault(n, "it has %s",
                     numbers > 0 ? "classes as integers and as strings" : "no classes");
    int rank = ingot_rank(X);
    if (rank < 1 || rank > 2)
        return fault(n, "its input has rank %d, not 1 or 2", rank);
    if (ingot_dim_is_const(ingot_shape(X, rank - 1), &columns) && columns != count)
        return fault(n, "it has %d classes for %lld columns", count, (long long)columns);
    ValueClasses *classes = ingot_alloc(n->c, sizeof *classes);
    *classes = (ValueClasses){count, numbers > 0 ? NULL : name, numbers > 0 ? number : NULL};
    n->out_value[0] = value_tensor(n->c, X);
    n->out_value[0]->classes = classes;
    return X;
}
