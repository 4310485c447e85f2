/*
 * tflite_text.c - strings, hashes, and tables that are searched: by numbers that are sorted
 * (HASHTABLE_LOOKUP), or from strings to numbers and back (HASHTABLE).
 *
 * A constant of strings is u32 count, u32 count + 1 places, bytes: string i lies from place i to
 * place i + 1. HASHTABLE gives the number of a table, as VAR_HANDLE does of a variable.
 * HASHTABLE_IMPORT fills it, once, with constants, so a table is two lists when the model is
 * compiled: keys in order, and what belongs to each.
 */
#include <stdlib.h>
#include <string.h>

#include "tflite_model.h"

#define X n->in[0]
#define Y n->in[1]

/* ---- constants --------------------------------------------------------------------------------
 */

static uint32_t number_at(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

const char **tflite_strings(TfliteModel *m, const ingot_tflite_tensor *t, int64_t count)
{
    const uint64_t head = 4 * ((uint64_t)count + 2);
    bool good = count < INT32_MAX / 8 && t->bytes >= head && number_at(t->data) == (uint64_t)count;
    const char **text = ingot_alloc(m->c, good ? ((size_t)count + 1) * sizeof *text : 1);
    for (int64_t i = 0; i < count && good; i++) {
        const uint64_t from = number_at(t->data + 4 + 4 * i), to = number_at(t->data + 8 + 4 * i);
        good =
            from >= head && to >= from && to <= t->bytes && !memchr(t->data + from, 0, to - from);
        char *copy = ingot_alloc(m->c, good ? to - from + 1 : 1);
        memcpy(copy, t->data + from, good ? to - from : 0);
        text[i] = copy;
    }
    if (good)
        return text;
    ingot_error(m->c, INGOT_INVALID,
                "tensor '%.100s': it is no list of %lld strings, or one of them has a NUL", t->name,
                (long long)count);
    return NULL;
}

/* ---- HASHTABLE_LOOKUP --------------------------------------------------------------------------
 */

/* Rows (input 2) that belong to keys (1, ascending); zeros where x is no key. */
ingot_tensor *tflite_hashtable_lookup(TfliteNode *n)
{
    ingot_context *c = n->c;
    ingot_tensor *v = n->in[2];
    if (ingot_is_poison(X) || ingot_is_poison(v) || n->n_out != 2 || ingot_rank(X) != 1 ||
        ingot_rank(v) < 1)
        return tfl_fault(n, "it looks up a list of numbers, among rows, and has two outputs");
    ingot_tensor *at = ingot_lookup(c, X, Y);
    ingot_tensor *there = ingot_ge(c, at, ingot_scalar_i(c, INGOT_I64, 0));
    n->out[1] = tfl_cast(n, there, INGOT_U8);
    ingot_tensor *rows = ingot_take(c, v, ingot_max_c(c, at, 0), 0);
    for (int a = 1; a < ingot_rank(v); a++)
        there = ingot_unsqueeze(c, there, a);
    const char *empty = "";
    ingot_tensor *none =
        ingot_dtype_of(v) == INGOT_STRING ? ingot_strings(c, 0, NULL, &empty) : ingot_like(c, v, 0);
    return ingot_where(c, there, rows, none);
}

/* ---- HASHTABLE ---------------------------------------------------------------------------------
 */

ingot_tensor *tflite_hashtable(TfliteNode *n)
{
    TfliteModel *m = n->s->m;
    const int64_t id = tfl_int(n, 0, 4, 0);
    for (int i = 0; i < m->n_tables; i++)
        if (m->tables[i].id == id)
            return ingot_scalar_i(n->c, INGOT_I32, i);
    m->tables = tfl_more(m, m->tables, m->n_tables, sizeof *m->tables);
    m->tables[m->n_tables] = (TfliteTable){.id = id};
    return ingot_scalar_i(n->c, INGOT_I32, m->n_tables++);
}

static TfliteTable *table_of(TfliteNode *n)
{
    int64_t number;
    TfliteModel *m = n->s->m;
    if (!tfl_one_int(n, 0, &number))
        return NULL;
    if (number >= 0 && number < m->n_tables)
        return &m->tables[number];
    tfl_fault(n, "its input 0 is no table");
    return NULL;
}

typedef struct {
    const char *text; /* NULL: a number */
    int64_t number;
    int64_t row;
} TableKey;

static int order(const void *a, const void *b)
{
    const TableKey *x = a, *y = b;
    const int by_text = x->text ? strcmp(x->text, y->text) : 0;
    if (by_text)
        return by_text;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* A constant of strings or of INT64. */
static bool column_of(TfliteNode *n, int i, int64_t count, TableKey *out)
{
    const ingot_tflite_tensor *t = n->ti[i];
    const bool text = t->type == INGOT_TFLITE_STRING;
    if (!t->data || (!text && t->type != INGOT_TFLITE_INT64)) {
        tfl_unsupported(n, "what a table begins with is no constant of STRING or INT64");
        return false;
    }
    const char **strings = text ? tflite_strings(n->s->m, t, count) : NULL;
    const ingot_tflite_list numbers = {t->data, (size_t)count};
    for (int64_t k = 0; k < count && (strings || !text); k++)
        out[k] = text ? (TableKey){strings[k], 0, k}
                      : (TableKey){NULL, ingot_tflite_i64(&numbers, (size_t)k), k};
    return strings || !text;
}

static ingot_tensor *list_of(TfliteNode *n, const TableKey *v, int64_t count)
{
    const char **text = ingot_alloc(n->c, ((size_t)count + 1) * sizeof *text);
    int64_t *number = ingot_alloc(n->c, ((size_t)count + 1) * sizeof *number);
    for (int64_t i = 0; i < count; i++) {
        text[i] = v[i].text;
        number[i] = v[i].number;
    }
    return count && text[0] ? ingot_strings(n->c, 1, &count, text)
                            : ingot_data(n->c, NULL, INGOT_I64, 1, &count, number);
}

/* Of equal keys the first counts, and so does the first import. */
ingot_tensor *tflite_hashtable_import(TfliteNode *n)
{
    TfliteTable *t = table_of(n);
    int64_t count = 1, kept = 0;
    if (!t || t->keys)
        return ingot_poison(n->c);
    for (size_t a = 0; a < n->ti[1]->shape.n; a++)
        count *= ingot_tflite_i32(&n->ti[1]->shape, a);
    int64_t values = 1;
    for (size_t a = 0; a < n->ti[2]->shape.n; a++)
        values *= ingot_tflite_i32(&n->ti[2]->shape, a);
    if (count < 1 || count != values)
        return tfl_fault(n, "it has %lld keys and %lld values", (long long)count,
                         (long long)values);
    TableKey *keys = ingot_alloc(n->c, (size_t)count * sizeof *keys),
             *value = ingot_alloc(n->c, (size_t)count * sizeof *value),
             *of = ingot_alloc(n->c, (size_t)count * sizeof *of);
    if (!column_of(n, 1, count, keys) || !column_of(n, 2, count, value))
        return ingot_poison(n->c);
    qsort(keys, (size_t)count, sizeof *keys, order);
    for (int64_t i = 0; i < count; i++) {
        const bool again = kept && keys[i].number == keys[kept - 1].number &&
                           (!keys[i].text || !strcmp(keys[i].text, keys[kept - 1].text));
        if (again)
            continue;
        of[kept] = value[keys[i].row];
        keys[kept++] = keys[i];
    }
    t->count = kept;
    t->keys = list_of(n, keys, kept);
    t->values = list_of(n, of, kept);
    return ingot_poison(n->c);
}

static bool filled(TfliteNode *n, const TfliteTable *t)
{
    if (t && !t->keys)
        tfl_fault(n, "the table is read before it is filled");
    return t && t->keys;
}

ingot_tensor *tflite_hashtable_find(TfliteNode *n)
{
    const TfliteTable *t = table_of(n);
    ingot_context *c = n->c;
    ingot_tensor *none = n->in[2];
    if (!filled(n, t) || ingot_is_poison(Y) || ingot_is_poison(none))
        return ingot_poison(c);
    if (ingot_dtype_of(Y) != ingot_dtype_of(t->keys) ||
        ingot_dtype_of(none) != ingot_dtype_of(t->values))
        return tfl_fault(n, "its table has keys or values of another type");
    while (!ingot_is_poison(none) && ingot_rank(none) > 0)
        none = ingot_squeeze(c, none, 0);
    ingot_tensor *at = ingot_lookup(c, Y, t->keys);
    ingot_tensor *v = ingot_take(c, t->values, ingot_max_c(c, at, 0), 0);
    return ingot_where(c, ingot_ge(c, at, ingot_scalar_i(c, INGOT_I64, 0)), v, none);
}

ingot_tensor *tflite_hashtable_size(TfliteNode *n)
{
    const TfliteTable *t = table_of(n);
    if (!filled(n, t))
        return ingot_poison(n->c);
    int64_t *count = ingot_alloc(n->c, sizeof *count);
    *count = t->count;
    return ingot_data(n->c, NULL, INGOT_I64, 1, (int64_t[]){1}, count);
}

ingot_tensor *tflite_lsh_projection(TfliteNode *n)
{
    enum { SPARSE = 1, DENSE = 2 };
    const int64_t kind = tfl_int(n, 0, 1, 0);
    if (kind != SPARSE && kind != DENSE)
        return tfl_fault(n, "its type is %lld, neither sparse nor dense", (long long)kind);
    return ingot_lsh_projection(n->c, Y, X, tfl_in(n, 2), kind == DENSE);
}

/* As many runs as a string has bytes, as with StringSplit: only the sentence knows. */
ingot_tensor *tflite_skip_gram(TfliteNode *n)
{
    const int64_t words = tfl_int(n, 0, 4, 0), skips = tfl_int(n, 1, 4, 0),
                  bytes = n->s->m->string_bytes;
    return ingot_skip_gram(n->c, X, words, skips, tfl_int(n, 2, 1, 0) != 0, bytes, bytes);
}
