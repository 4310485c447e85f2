/*
 * tflite_sparse.c - sparse weights, which become dense when compiling.
 *
 * SparsityParameters of the schema: an order of levels, each of them an axis of the tensor or,
 * behind those, an axis of its blocks (map says which axis it divides). A level is dense, with a
 * size, or has the places that there are, segment by segment (as CSR):
 *
 *     level 0, dense:  rows 0 1 2
 *     level 1, sparse: segments 0 2 2 3, indices 0 3 1    row 0 has columns 0 and 3, row 2 column 1
 *
 * Elements come in the order of the levels, the first of them slowest. A place of a level is a
 * number among all places of it: of the level behind it the segment of that number is read.
 */
#include <string.h>

#include "tflite_model.h"

enum { MOST_LEVELS = 2 * INGOT_MAX_RANK };

typedef struct {
    int axis;                            /* of the tensor */
    uint64_t times;                      /* an index is so many elements of that axis */
    uint64_t size;                       /* dense: of so many */
    ingot_tflite_list segments, indices; /* else; elements have `wide` bytes */
    unsigned segment_bytes, index_bytes;
    bool dense;
} SparseLevel;

typedef struct {
    SparseLevel level[MOST_LEVELS];
    int n;
} SparseLevels;

/* A union of vectors of i32, u16, u8 in fields `field` (its type) and the next one. */
static ingot_tflite_list numbers(const ingot_tflite_table *t, unsigned field, unsigned *bytes)
{
    static const unsigned of[] = {0, 4, 2, 1};
    const int64_t type = ingot_tflite_int(t, field, 1, 0);
    ingot_tflite_table vector;
    *bytes = type >= 1 && type <= 3 ? of[type] : 0;
    if (!*bytes || !ingot_tflite_inner(t, field + 1, &vector))
        return (ingot_tflite_list){NULL, 0};
    return ingot_tflite_elements(&vector, 0, *bytes);
}

static uint64_t number_at(const ingot_tflite_list *l, unsigned bytes, uint64_t i)
{
    uint64_t v = 0;
    for (unsigned k = bytes; k-- > 0;)
        v = v << 8 | l->at[i * bytes + k];
    return v;
}

/* Levels in their order; NULL, or what is wrong. */
static const char *read_levels(const ingot_tflite_tensor *t, SparseLevels *s)
{
    const ingot_tflite_list order = ingot_tflite_elements(&t->sparsity, 0, 4),
                            map = ingot_tflite_elements(&t->sparsity, 1, 4);
    const size_t rank = t->shape.n;
    unsigned seen = 0;
    uint64_t divided[INGOT_MAX_RANK];
    if (rank > INGOT_MAX_RANK || order.n != rank + map.n || order.n > MOST_LEVELS || !order.n)
        return "its levels are not its axes and blocks";
    s->n = (int)order.n;
    for (size_t a = 0; a < rank; a++)
        divided[a] = 1;
    for (int k = s->n; k-- > 0;) { /* blocks are behind the axes that they divide */
        SparseLevel *l = &s->level[k];
        ingot_tflite_table d;
        const int64_t number = ingot_tflite_i32(&order, (size_t)k);
        if (!ingot_tflite_entry(&t->sparsity, 2, (size_t)k, &d) || number < 0 || number >= s->n ||
            seen >> number & 1)
            return "its levels are broken";
        seen |= 1u << number;
        const int64_t axis =
            (size_t)number < rank ? number : ingot_tflite_i32(&map, (size_t)number - rank);
        if (axis < 0 || (size_t)axis >= rank)
            return "a block is of no axis";
        *l = (SparseLevel){.axis = (int)axis, .dense = ingot_tflite_int(&d, 0, 1, 0) == 0};
        l->size = (uint64_t)ingot_tflite_int(&d, 1, 4, 0) & 0x7fffffff;
        l->times = divided[axis];
        l->segments = numbers(&d, 2, &l->segment_bytes);
        l->indices = numbers(&d, 4, &l->index_bytes);
        if (!l->dense && (!l->segment_bytes || !l->index_bytes))
            return "a level has no indices";
        if ((size_t)number >= rank && (!l->dense || l->size < 1 || divided[axis] > 1))
            return "a block is of no size";
        if ((size_t)number >= rank)
            divided[axis] = l->size;
    }
    return NULL;
}

/* Places of level k behind place `at` of the level before: from *first up to *end. */
static bool places(const SparseLevel *l, uint64_t at, uint64_t *first, uint64_t *end)
{
    if (l->dense) {
        *first = at * l->size;
        *end = *first + l->size;
        return true;
    }
    if (at + 1 >= l->segments.n)
        return false;
    *first = number_at(&l->segments, l->segment_bytes, at);
    *end = number_at(&l->segments, l->segment_bytes, at + 1);
    return *first <= *end && *end <= l->indices.n;
}

/* All places, one after another: each element goes where its indices say. */
static const char *spread(const ingot_tflite_tensor *t, const SparseLevels *s, size_t size,
                          uint8_t *out)
{
    uint64_t at[MOST_LEVELS], first[MOST_LEVELS], end[MOST_LEVELS], element = 0;
    int k = 0;
    if (!places(&s->level[0], 0, &first[0], &end[0]))
        return "its segments are broken";
    at[0] = first[0];
    while (k >= 0) {
        if (at[k] == end[k]) {
            if (--k >= 0)
                at[k]++;
            continue;
        }
        if (k + 1 < s->n) {
            if (!places(&s->level[k + 1], at[k], &first[k + 1], &end[k + 1]))
                return "its segments are broken";
            k++;
            at[k] = first[k];
            continue;
        }
        uint64_t index[INGOT_MAX_RANK] = {0}, to = 0;
        for (int i = 0; i < s->n; i++) {
            const SparseLevel *l = &s->level[i];
            const uint64_t place =
                l->dense ? at[i] - first[i] : number_at(&l->indices, l->index_bytes, at[i]);
            index[l->axis] += place * l->times;
        }
        for (size_t a = 0; a < t->shape.n; a++) {
            const uint64_t dim = (uint64_t)ingot_tflite_i32(&t->shape, a);
            if (index[a] >= dim)
                return "an index is out of its shape";
            to = to * dim + index[a];
        }
        if ((element + 1) * size > t->bytes)
            return "it has fewer elements than indices";
        memcpy(out + to * size, t->data + element * size, size);
        element++;
        at[k]++;
    }
    return NULL;
}

bool tflite_dense(TfliteModel *m, const ingot_tflite_tensor *t, ingot_tflite_tensor *is)
{
    unsigned bits;
    uint64_t count = 1;
    SparseLevels s;
    ingot_tflite_type_name((int)t->type, &bits);
    const char *why =
        t->data && bits >= 8 ? read_levels(t, &s) : "its type or data are not supported";
    for (size_t a = 0; a < t->shape.n && count < 1u << 30; a++)
        count *= (uint64_t)ingot_tflite_i32(&t->shape, a);
    if (!why && count >= 1u << 30)
        why = "it is too large";
    *is = *t;
    is->sparsity = (ingot_tflite_table){0};
    is->bytes = (size_t)count * (bits / 8);
    uint8_t *out = why ? NULL : ingot_alloc(m->c, is->bytes + 1);
    is->data = out;
    if (!why)
        why = spread(t, &s, bits / 8, out);
    if (why)
        ingot_error(m->c, INGOT_UNSUPPORTED, "tensor '%.100s' is sparse: %s", t->name, why);
    return !why;
}

/* Its input has become dense. */
ingot_tensor *tflite_densify(TfliteNode *n)
{
    return n->in[0];
}
