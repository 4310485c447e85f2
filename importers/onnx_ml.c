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
} Key;

static int compare_keys(const Key *a, const Key *b)
{
    return a->text ? strcmp(a->text, b->text) : (a->number > b->number) - (a->number < b->number);
}

static int compare_places(const void *a, const void *b)
{
    const Key *x = a, *y = b;
    int c = compare_keys(x, y);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* Sorts keys, and values with them; of equal keys the last counts. Their new number. */
static int64_t sort_keys(Lowering *n, List *keys, List *values)
{
    Key *key = ingot_alloc(n->c, ((size_t)keys->n + 1) * sizeof *key);
    /* elements may be unaligned in the file */
    size_t a = list_step(keys), b = list_step(values), bytes = (size_t)keys->n * a;
    void *copy = ingot_alloc(n->c, bytes + 1);
    memcpy(copy, keys->data, bytes);
    igrt_tensor t = {
        .data = copy, .dtype = (igrt_dtype)(keys->dtype + 1), .rank = 1, .dims = {keys->n}};
    for (int64_t i = 0; i < keys->n; i++)
        key[i] = keys->dtype == INGOT_STRING ? (Key){((const char *const *)copy)[i], 0, i}
                                             : (Key){NULL, igrt_lib_key(&t, i), i};
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

/* Version 1: a list of strings, and their places. */
static bool classes(Lowering *n, List *keys, List *values)
{
    const char *const *strings;
    int count = attr_strings(n, "classes_strings", &strings);
    if (count < 0)
        return false;
    int64_t *place = ingot_alloc(n->c, ((size_t)count + 1) * sizeof *place);
    for (int i = 0; i < count; i++)
        place[i] = i;
    *keys = (List){INGOT_STRING, count, strings};
    *values = (List){INGOT_I64, count, place};
    if (ingot_dtype_of(X) != INGOT_STRING) {
        List swap = *keys;
        *keys = *values;
        *values = swap;
    }
    return true;
}

/* The value of the key that equals an element; a table of values by the place in the sorted keys, the
 * default last. */
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
    ingot_tensor *otherwise = default_value(n, &values);
    int64_t count = sort_keys(n, &keys, &values);
    ingot_tensor *parts[2] = {list_tensor(n, &values, count), otherwise};
    ingot_tensor *table = ingot_concat(n->c, 2, parts, 0);
    ingot_tensor *at = ingot_lookup(n->c, X, list_tensor(n, &keys, count));
    at = ingot_where(n->c, ingot_lt(n->c, at, like(n, at, 0)), like(n, at, (double)count), at);
    return ingot_take(n->c, table, at, 0);
}
