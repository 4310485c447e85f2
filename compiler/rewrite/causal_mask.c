/* causal_mask.c - stored numbers that are one above a diagonal and another up to it are a
 * comparison of coordinates.
 *
 *     [[0 -inf -inf] [0 0 -inf] [0 0 0]]  ->  where(column <= row, 0, -inf)
 *
 * Exporters evaluate causal masks, and models store them as buffers for their longest sequence.  As
 * a comparison a mask takes no memory, is cut without a copy, and tells where rows end
 * (kernel/lower/mask_bounds.c). The lowest float stands for minus infinity; of other finite ones
 * nothing is known to end. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "rewrite.h"

enum { LEAST = 8 }; /* rows and columns: smaller ones may be so by accident, and are of no use */

/* Within: column <= row + shift. */
typedef struct {
    const uint8_t *bytes;
    size_t size; /* of an element */
    int64_t rows, columns, shift;
} Triangle;

static const uint8_t *element(const Triangle *t, int64_t row, int64_t column)
{
    return t->bytes + (size_t)(row * t->columns + column) * t->size;
}

static bool shape_of(const Node *n, Triangle *t)
{
    int64_t dim[2], other;
    for (int i = 0; i < n->rank; i++)
        if (!idx_value(n->shape[i], i < n->rank - 2 ? &other : &dim[i - n->rank + 2]) ||
            (i < n->rank - 2 && other != 1))
            return false;
    t->rows = dim[0];
    t->columns = dim[1];
    return t->rows >= LEAST && t->columns >= LEAST;
}

/* Most data have other elements in their first row already: of them no more is read. */
static bool is_triangle(Triangle *t)
{
    const uint8_t *in = element(t, t->rows - 1, 0), *out = element(t, 0, t->columns - 1);
    if (!memcmp(in, out, t->size))
        return false;
    for (int64_t j = 0; j < t->columns; j++)
        if (memcmp(element(t, 0, j), in, t->size) && memcmp(element(t, 0, j), out, t->size))
            return false;
    int64_t first = 0, row = 0;
    while (first < t->columns && !memcmp(element(t, 0, first), in, t->size))
        first++;
    while (!first && row < t->rows && memcmp(element(t, row, 0), in, t->size))
        row++;
    t->shift = first - 1 - row;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j++)
            if (memcmp(element(t, i, j), j <= i + t->shift ? in : out, t->size))
                return false;
    return true;
}

static Node *number(Context *c, const Node *n, const uint8_t *bytes)
{
    float f;
    if (n->dtype != INGOT_F32)
        return ingot_scalar_i(c, (ingot_dtype)n->dtype, *bytes);
    memcpy(&f, bytes, sizeof f);
    return ingot_scalar_f(c, INGOT_F32, (double)f);
}

Node *triangle(Rewrite *r, Node *n)
{
    Context *c = r->c;
    const Data *data = n->arg.ptr;
    Triangle t = {.bytes = data->bytes, .size = dtype_info[n->dtype].bytes};
    if ((n->dtype != INGOT_F32 && n->dtype != INGOT_U8 && n->dtype != INGOT_BOOL) || n->rank < 2 ||
        !data->bytes || !shape_of(n, &t) || !is_triangle(&t))
        return NULL;
    Node *row = ingot_iota(c, n->rank, n->shape, n->rank - 2),
         *column = ingot_iota(c, n->rank, n->shape, n->rank - 1),
         *last = ingot_add(c, row, ingot_scalar_i(c, INGOT_I64, t.shift)),
         *in = number(c, n, element(&t, t.rows - 1, 0)),
         *out = number(c, n, element(&t, 0, t.columns - 1));
    if (n->dtype == INGOT_F32 && !isinf(node_float(out)) && node_float(out) != -(double)FLT_MAX)
        return NULL;
    Node *mask = n->dtype == INGOT_BOOL && !*element(&t, t.rows - 1, 0) ? ingot_lt(c, last, column)
                                                                        : ingot_le(c, column, last);
    Node *v = n->dtype == INGOT_BOOL ? mask : ingot_where(c, mask, in, out);
    return ingot_is_poison(v) ? NULL : v;
}
