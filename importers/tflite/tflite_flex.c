/*
 * tflite_flex.c - options of custom operators: a map in FlexBuffers, of which numbers are read.
 *
 *     ... map: keys' list (offset), bytes of a key's offset, count, values.., types of values..
 *     ... root: offset back to the map; its type; its bytes          (the end of the buffer)
 *
 * https://flatbuffers.dev/internals (FlexBuffers). A type is a byte: what it is, and in the two
 * lowest bits the logarithm of its bytes. All is checked before it is read.
 */
#include <math.h>
#include <string.h>

#include "tflite_flex.h"

enum { FLEX_INT = 1, FLEX_UINT, FLEX_FLOAT, FLEX_FAR_INT = 6, FLEX_FAR_UINT, FLEX_FAR_FLOAT };
enum { FLEX_MAP = 9, FLEX_BOOL = 26 };

/* A map: where its values are, how many, and bytes of each. */
typedef struct {
    ingot_tflite_list l;
    size_t at, count, width, keys, key_width;
} FlexMap;

static bool bytes_at(const ingot_tflite_list *l, size_t at, size_t width, uint64_t *v)
{
    *v = 0;
    if (width > 8 || at > l->n || l->n - at < width)
        return false;
    for (size_t i = width; i-- > 0;)
        *v = *v << 8 | l->at[at + i];
    return true;
}

/* What an offset at `at` leads back to. */
static bool back(const ingot_tflite_list *l, size_t at, size_t width, size_t *to)
{
    uint64_t offset;
    if (!bytes_at(l, at, width, &offset) || offset > at)
        return false;
    *to = at - (size_t)offset;
    return true;
}

static bool map_of(const ingot_tflite_list *l, FlexMap *m)
{
    uint64_t v;
    *m = (FlexMap){.l = *l};
    if (l->n < 3)
        return false;
    const size_t root = l->at[l->n - 1], type = l->at[l->n - 2];
    m->width = (size_t)1 << (type & 3);
    if (type >> 2 != FLEX_MAP || root < 1 || root > 8 || l->n - 2 < root ||
        !back(l, l->n - 2 - root, root, &m->at) || m->at < 3 * m->width)
        return false;
    if (!bytes_at(l, m->at - m->width, m->width, &v) || v > l->n)
        return false;
    m->count = (size_t)v;
    if (!bytes_at(l, m->at - 2 * m->width, m->width, &v) || v < 1 || v > 8)
        return false;
    m->key_width = (size_t)v;
    return back(l, m->at - 3 * m->width, m->width, &m->keys) &&
           m->count <= (l->n - m->at) / (m->width + 1) &&
           m->count <= (l->n - m->keys) / m->key_width;
}

static const char *key_of(const FlexMap *m, size_t i)
{
    size_t to;
    if (!back(&m->l, m->keys + i * m->key_width, m->key_width, &to) ||
        !memchr(m->l.at + to, 0, m->l.n - to))
        return NULL;
    return (const char *)m->l.at + to;
}

static double float_of(uint64_t v, size_t width)
{
    double d = NAN;
    float f;
    const uint32_t word = (uint32_t)v;
    if (width == 8) {
        memcpy(&d, &v, sizeof d);
    } else if (width == 4) {
        memcpy(&f, &word, sizeof f);
        d = (double)f;
    }
    return d;
}

static bool value_of(const FlexMap *m, size_t i, TfliteNumber *out)
{
    size_t at = m->at + i * m->width, width = m->width;
    const unsigned type = m->l.at[m->at + m->count * m->width + i];
    unsigned kind = type >> 2;
    uint64_t v;
    if (kind >= FLEX_FAR_INT && kind <= FLEX_FAR_FLOAT) {
        if (!back(&m->l, at, width, &at))
            return false;
        width = (size_t)1 << (type & 3);
        kind -= FLEX_FAR_INT - FLEX_INT;
    }
    if (!bytes_at(&m->l, at, width, &v))
        return false;
    const unsigned shift = 64 - 8 * (unsigned)width;
    out->is_float = kind == FLEX_FLOAT;
    out->i = kind == FLEX_INT ? (int64_t)(v << shift) >> shift : (int64_t)v;
    out->f = out->is_float ? float_of(v, width) : (double)out->i;
    return kind == FLEX_INT || kind == FLEX_UINT || kind == FLEX_FLOAT || kind == FLEX_BOOL;
}

int tflite_flex_numbers(const ingot_tflite_list *options, TfliteNumber *out, int most)
{
    FlexMap m;
    int n = 0;
    if (!options->n || !map_of(options, &m))
        return options->n ? -1 : 0;
    for (size_t i = 0; i < m.count && n < most; i++) {
        const char *key = key_of(&m, i);
        if (!key)
            return -1;
        out[n] = (TfliteNumber){.name = key};
        if (value_of(&m, i, &out[n]))
            n++;
    }
    return n;
}
