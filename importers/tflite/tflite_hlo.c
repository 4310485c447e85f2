/*
 * tflite_hlo.c - operators of StableHLO that are more than one of TensorFlow Lite: gathers,
 * scatters, windows, random bits. (https://openxla.org/stablehlo/spec)
 *
 * What a scatter or a window combines elements by is a graph of the file; LiteRT takes those of one
 * operator, and so does this.
 */
#include "tflite_model.h"

#define X n->in[0]
#define Y n->in[1]

/* ---- options --------------------------------------------------------------------------------- */

/* Axes, or sizes, of an option: a list of i64. */
typedef struct {
    int n;
    int64_t v[INGOT_MAX_RANK];
} HloList;

static bool list_of(TfliteNode *n, unsigned field, HloList *out)
{
    const ingot_tflite_list l = ingot_tflite_elements(&n->op->options, field, 8);
    out->n = (int)(l.n < INGOT_MAX_RANK ? l.n : INGOT_MAX_RANK);
    for (int i = 0; i < out->n; i++)
        out->v[i] = ingot_tflite_i64(&l, (size_t)i);
    if (l.n <= INGOT_MAX_RANK)
        return true;
    tfl_fault(n, "its option %u has %zu numbers", field, l.n);
    return false;
}

static bool contains(const HloList *l, int64_t axis)
{
    for (int i = 0; i < l->n; i++)
        if (l->v[i] == axis)
            return true;
    return false;
}

/* A list of axes below `rank`, each of them once. */
static bool axes_of(TfliteNode *n, unsigned field, int rank, HloList *out)
{
    unsigned seen = 0;
    if (!list_of(n, field, out))
        return false;
    for (int i = 0; i < out->n; i++) {
        if (out->v[i] < 0 || out->v[i] >= rank || seen >> out->v[i] & 1) {
            tfl_fault(n, "its option %u has the axis %lld, of %d", field, (long long)out->v[i],
                      rank);
            return false;
        }
        seen |= 1u << out->v[i];
    }
    return true;
}

/* A list of numbers from 1 to a billion, one for each axis of input 0; none: ones. */
static bool sizes_of(TfliteNode *n, unsigned field, const char *what, HloList *out)
{
    const int rank = ingot_rank(X);
    if (!list_of(n, field, out))
        return false;
    for (int i = 0; i < rank && !out->n; i++)
        out->v[i] = 1;
    if (out->n && out->n != rank) {
        tfl_fault(n, "it has %d numbers for its %s, and its input %d axes", out->n, what, rank);
        return false;
    }
    out->n = rank;
    for (int i = 0; i < rank; i++)
        if (!tfl_positive(n, what, out->v[i]))
            return false;
    return true;
}

/* The one operator of a graph that combines two elements; 0: it gives its second input, -1: none of
 * these. */
static int combined_by(TfliteNode *n, int64_t graph)
{
    const ingot_tflite_graph *g =
        graph < 0 ? NULL : ingot_tflite_graph_get(n->s->m->file, (size_t)graph);
    if (!g || g->in.n != 2 || g->out.n != 1 || g->n_ops > 1)
        return -1;
    if (g->n_ops == 1)
        return g->ops[0].builtin;
    return ingot_tflite_i32(&g->out, 0) == ingot_tflite_i32(&g->in, 1) ? 0 : -1;
}

/* ---- gather and scatter -----------------------------------------------------------------------
 */

/* How places in a tensor x follow from a list of starts and from a window around each:
 *
 *     windows   axes of the other tensor (a gather's result, a scatter's updates) that are a
 *               window's; its others are those of the list
 *     dropped   axes of x along which a window has one element, and no axis
 *     map       which axis of x number i of a start is along
 *     vector    which axis of the list has those numbers; its rank: they are single numbers
 */
typedef struct {
    HloList windows, dropped, map;
    int vector, rank;     /* of the other tensor */
    ingot_dim **size;     /* of it */
    ingot_tensor *starts; /* with `vector` as its last axis */
} HloPlaces;

static bool places_of(TfliteNode *n, HloPlaces *p, unsigned first_field, int64_t vector)
{
    const int of_x = ingot_rank(X), of_list = ingot_rank(Y);
    if (ingot_is_poison(X) || ingot_is_poison(Y))
        return false;
    if (vector < 0 || vector > of_list || of_list > 12 || of_x > 12) {
        tfl_fault(n, "its starts have rank %d, and lie along axis %lld", of_list,
                  (long long)vector);
        return false;
    }
    p->vector = (int)vector;
    p->starts = tfl_cast(n, Y, INGOT_I64);
    if (vector == of_list)
        p->starts = ingot_unsqueeze(n->c, p->starts, of_list);
    for (int a = p->vector; a < of_list - 1; a++)
        p->starts = ingot_transpose(n->c, p->starts, a, a + 1);
    p->rank = ingot_rank(p->starts) - 1 + of_x; /* before what is dropped */
    int64_t numbers;
    if (!axes_of(n, first_field + 1, of_x, &p->dropped) ||
        !axes_of(n, first_field + 2, of_x, &p->map))
        return false;
    p->rank -= p->dropped.n;
    if (!axes_of(n, first_field, p->rank, &p->windows))
        return false;
    if (p->windows.n + p->dropped.n == of_x &&
        ingot_dim_is_const(ingot_shape(p->starts, ingot_rank(p->starts) - 1), &numbers) &&
        numbers == p->map.n)
        return true;
    tfl_fault(n,
              "its windows have %d axes and drop %d, its starts are %d numbers, its input has "
              "%d axes",
              p->windows.n, p->dropped.n, p->map.n, of_x);
    return false;
}

/* Number i of each start, with axes of size 1 where windows are. */
static ingot_tensor *start(TfliteNode *n, const HloPlaces *p, int i)
{
    const int last = ingot_rank(p->starts) - 1;
    ingot_tensor *v = ingot_slice(n->c, p->starts, last, tfl_dim(n, i), tfl_dim(n, 1), 1);
    v = ingot_squeeze(n->c, v, last);
    for (int a = 0; a < p->rank; a++)
        if (contains(&p->windows, a))
            v = ingot_unsqueeze(n->c, v, a);
    return v;
}

/* For each axis of x, where in it: its start, no greater than `most` (or NULL), and its place in
 * the window. */
static void indices(TfliteNode *n, const HloPlaces *p, ingot_dim *const *most, ingot_tensor **index)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    for (int a = 0, window = 0; a < ingot_rank(X); a++) {
        ingot_tensor *at = NULL;
        for (int i = 0; i < p->map.n; i++)
            if (p->map.v[i] == a)
                at = start(n, p, i);
        if (at && most) {
            at = ingot_min(n->c, at, ingot_from_dim(n->c, most[a]));
            at = ingot_max_c(n->c, at, 0);
        }
        if (!contains(&p->dropped, a)) {
            const int axis = (int)p->windows.v[window++];
            for (int k = 0; k < p->rank; k++)
                dims[k] = k == axis ? p->size[k] : tfl_dim(n, 1);
            ingot_tensor *place = ingot_iota(n->c, p->rank, dims, axis);
            at = at ? ingot_add(n->c, at, place) : place;
        }
        index[a] = at ? at : ingot_scalar_i(n->c, INGOT_I64, 0);
    }
}

/* A window that would go beyond an end of x starts before. */
ingot_tensor *tflite_hlo_gather(TfliteNode *n)
{
    HloPlaces p;
    HloList size;
    ingot_tensor *index[INGOT_MAX_RANK];
    ingot_dim *most[INGOT_MAX_RANK], *dims[INGOT_MAX_RANK];
    if (!places_of(n, &p, 0, tfl_int(n, 3, 8, 0)) || !list_of(n, 4, &size))
        return ingot_poison(n->c);
    if (size.n != ingot_rank(X))
        return tfl_fault(n, "it has %d sizes, its input %d axes", size.n, ingot_rank(X));
    p.size = dims;
    for (int a = 0, window = 0; a < size.n; a++) {
        if (size.v[a] < 0 || size.v[a] > ingot_dim_hi(ingot_shape(X, a)) ||
            (contains(&p.dropped, a) && size.v[a] > 1))
            return tfl_fault(n, "it takes %lld elements along axis %d", (long long)size.v[a], a);
        most[a] = ingot_dim_sub(n->c, ingot_shape(X, a), tfl_dim(n, size.v[a]));
        if (!contains(&p.dropped, a))
            dims[p.windows.v[window++]] = tfl_dim(n, size.v[a]);
    }
    for (int a = 0, of_list = 0; a < p.rank; a++)
        if (!contains(&p.windows, a))
            dims[a] = ingot_shape(p.starts, of_list++);
    indices(n, &p, most, index);
    return ingot_expand(n->c, ingot_gather(n->c, X, index), p.rank, dims);
}

/* Elements outside of x are dropped. */
ingot_tensor *tflite_hlo_scatter(TfliteNode *n)
{
    HloPlaces p;
    ingot_update_op op;
    ingot_tensor *index[INGOT_MAX_RANK], *v = n->in[2];
    ingot_dim *dims[INGOT_MAX_RANK];
    switch (combined_by(n, tfl_int(n, 6, 4, -1))) {
    case 0: op = INGOT_SET; break;
    case TFL_STABLEHLO_ADD: op = INGOT_ADD; break;
    case TFL_STABLEHLO_MULTIPLY: op = INGOT_MUL; break;
    case TFL_STABLEHLO_MAXIMUM: op = INGOT_MAX; break;
    case TFL_STABLEHLO_MINIMUM: op = INGOT_MIN; break;
    default: return tfl_unsupported(n, "the graph that combines two elements is not supported");
    }
    if (!places_of(n, &p, 1, tfl_int(n, 4, 8, 0)))
        return ingot_poison(n->c);
    if (ingot_is_poison(v) || ingot_rank(v) != p.rank)
        return tfl_fault(n, "its updates have rank %d, not %d", ingot_rank(v), p.rank);
    p.size = dims;
    tfl_shape(v, dims);
    indices(n, &p, NULL, index);
    return ingot_update(n->c, op, X, v, index);
}

/* ---- windows ----------------------------------------------------------------------------------
 */

enum { WINDOW_ADD = 1, WINDOW_MUL, WINDOW_MINIMUM, WINDOW_MAXIMUM, WINDOW_ALL, WINDOW_ANY };

/* x of any type, combined over windows along each axis, and with `first`. */
static ingot_tensor *windowed(TfliteNode *n, ingot_tensor *x, ingot_tensor *first, int64_t by,
                              const HloList *size, const HloList *stride, const HloList *dilation)
{
    static const ingot_reduce_op ops[] = {
        [WINDOW_ADD] = INGOT_REDUCE_ADD,     [WINDOW_MUL] = INGOT_REDUCE_MUL,
        [WINDOW_MINIMUM] = INGOT_REDUCE_MIN, [WINDOW_MAXIMUM] = INGOT_REDUCE_MAX,
        [WINDOW_ALL] = INGOT_REDUCE_MIN,     [WINDOW_ANY] = INGOT_REDUCE_MAX};
    ingot_context *c = n->c;
    const ingot_dtype dtype = ingot_dtype_of(x);
    if (by < WINDOW_ADD || by > WINDOW_ANY)
        return tfl_unsupported(n, "what combines two elements is not supported");
    if (by >= WINDOW_ALL || dtype == INGOT_BOOL) {
        x = tfl_cast(n, ingot_ne(c, tfl_cast(n, x, INGOT_I32), ingot_scalar_i(c, INGOT_I32, 0)),
                     INGOT_I32);
        first = ingot_ne(c, tfl_cast(n, first, INGOT_I32), ingot_scalar_i(c, INGOT_I32, 0));
        first = tfl_cast(n, first, INGOT_I32);
    }
    for (int a = 0; a < size->n && !ingot_is_poison(x); a++) {
        const int64_t extent = (size->v[a] - 1) * dilation->v[a] + 1;
        if (size->v[a] == 1 && stride->v[a] == 1)
            continue;
        if (ingot_dim_hi(ingot_shape(x, a)) < extent)
            return tfl_unsupported(n, "its window of %lld is larger than axis %d",
                                   (long long)extent, a);
        x = ingot_window(c, x, a, size->v[a], stride->v[a], dilation->v[a]);
        x = ingot_is_poison(x) ? x : ingot_reduce(c, ops[by], x, 1u << (ingot_rank(x) - 1), false);
    }
    while (!ingot_is_poison(first) && ingot_rank(first) > 0)
        first = ingot_squeeze(c, first, 0);
    switch (ops[by]) {
    case INGOT_REDUCE_ADD: x = ingot_add(c, x, first); break;
    case INGOT_REDUCE_MUL: x = ingot_mul(c, x, first); break;
    case INGOT_REDUCE_MIN: x = ingot_min(c, x, first); break;
    default: x = ingot_max(c, x, first); break;
    }
    return tfl_cast(n, x, dtype);
}

/* Which function of REDUCE_WINDOW an operator is. */
static int64_t window_function(int builtin)
{
    switch (builtin) {
    case TFL_ADD:
    case TFL_STABLEHLO_ADD: return WINDOW_ADD;
    case TFL_MUL:
    case TFL_STABLEHLO_MULTIPLY: return WINDOW_MUL;
    case TFL_MAXIMUM:
    case TFL_STABLEHLO_MAXIMUM: return WINDOW_MAXIMUM;
    case TFL_MINIMUM:
    case TFL_STABLEHLO_MINIMUM: return WINDOW_MINIMUM;
    case TFL_LOGICAL_AND:
    case TFL_STABLEHLO_AND: return WINDOW_ALL;
    case TFL_LOGICAL_OR: return WINDOW_ANY;
    default: return 0;
    }
}

ingot_tensor *tflite_hlo_reduce_window(TfliteNode *n)
{
    HloList size, stride, base, dilation, pads;
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    const int rank = ingot_rank(X);
    ingot_tensor *x = X;
    if (!sizes_of(n, 0, "window", &size) || !sizes_of(n, 1, "stride", &stride) ||
        !sizes_of(n, 2, "dilation", &base) || !sizes_of(n, 3, "dilation", &dilation) ||
        !list_of(n, 4, &pads))
        return ingot_poison(n->c);
    if (pads.n && pads.n != 2 * rank)
        return tfl_fault(n, "it has %d pads, for %d axes", pads.n, rank);
    ingot_tensor *value = Y;
    while (!ingot_is_poison(value) && ingot_rank(value) > 0)
        value = ingot_squeeze(n->c, value, 0);
    for (int a = 0; a < rank; a++) {
        x = tfl_spread(n, x, a, base.v[a] - 1, value);
        lo[a] = tfl_dim(n, pads.n ? pads.v[2 * a] : 0);
        hi[a] = tfl_dim(n, pads.n ? pads.v[2 * a + 1] : 0);
    }
    x = ingot_is_poison(x) ? x : ingot_pad_value(n->c, x, lo, hi, value);
    if (ingot_is_poison(x))
        return x;
    return windowed(n, x, value, window_function(combined_by(n, tfl_int(n, 5, 4, -1))), &size,
                    &stride, &dilation);
}

ingot_tensor *tflite_reduce_window(TfliteNode *n)
{
    HloList list[3];
    static const char *const what[] = {"window", "stride", "dilation"};
    for (int k = 0; k < 3; k++) {
        list[k].n = tfl_ints(n, 2 + k, list[k].v, INGOT_MAX_RANK);
        if (list[k].n < 0)
            return ingot_poison(n->c);
        if (list[k].n != ingot_rank(X))
            return tfl_fault(n, "it has %d numbers for its %s, and its input %d axes", list[k].n,
                             what[k], ingot_rank(X));
        for (int a = 0; a < list[k].n; a++)
            if (!tfl_positive(n, what[k], list[k].v[a]))
                return ingot_poison(n->c);
    }
    return windowed(n, X, Y, tfl_int(n, 0, 4, 0), &list[0], &list[1], &list[2]);
}
