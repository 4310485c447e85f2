/* index_bounds.c - are the places that indices speak of there?
 *
 * Indices that are known now, numbers or integers of the run, are compared with the size of the
 * axis that they go into. Where both are numbers the answer is told now; where the run decides the
 * size it becomes a requirement (require.c):
 *
 *     x[-1], x: [N, 3]        N >= 1
 *     x[0, 4, -2]             N >= 5
 *     x[N - 1 - k]            N >= max(N - k, k + 1 - N)
 *
 * An index from data takes the nearest place that there is, so a gather that has elements needs an
 * axis that has some. Nothing is required of what has no elements in that run. */
#include <string.h>

#include "builder.h"

enum { MOST = 1 << 17 /* constant indices */, FEW = 16 /* integers of the run */ };

typedef struct {
    Node *x;          /* the GATHER or UPDATE */
    const Node *each; /* has an element for each index */
    Node *source;     /* what they go into */
    int axis;
    bool wraps; /* what is below zero counts from the end */
    bool *never;
} Places;

/* What ingot_wrap_index() was given, if that is still to be seen. */
static Node *before_wrap(Node *i)
{
    bool wrapped = i->op == OP_WHERE && i->src[1]->op == OP_ADD &&
                   (i->src[1]->src[0] == i->src[2] || i->src[1]->src[1] == i->src[2]);
    return wrapped ? i->src[2] : i;
}

/* Fewer elements with the same values; whether they are what was given before the end was added to
 * what is below zero. */
static Node *shortest(Node *i, bool *given)
{
    for (*given = false;;) {
        Node *unwrapped = before_wrap(i);
        if (unwrapped != i) {
            i = unwrapped;
            *given = true;
        } else if (i->op == OP_RESHAPE || i->op == OP_EXPAND ||
                   (i->op == OP_CAST && dtype_is_int(i->src[0]->dtype) &&
                    dtype_info[i->dtype].bytes >= dtype_info[i->src[0]->dtype].bytes))
            i = i->src[0];
        else
            return i;
    }
}

/* Are there none of such a shape where an axis of this size is empty? */
static bool ends_with(Context *c, int rank, Node *const *dims, Node *size)
{
    Node *none = idx(c, 0);
    for (int d = 0; d < rank; d++) {
        Node *n = dims[d];
        if (n == size || substitute(c, n, 1, &size, &none)->hi < 1 ||
            node_is_const_i(idx_le(c, n, idx_mul(c, size, idx(c, n->hi))), 1))
            return true;
    }
    return false;
}

/* 1, or 0 where the shape has no elements. */
static Node *one_or_none(Context *c, int rank, Node *const *dims)
{
    Node *elements = shape_numel(c, rank, dims);
    return idx_min(c, idx_max(c, elements, idx(c, 0)), idx(c, 1));
}

bool require_place(Context *c, Node *size, int rank, Node *const *dims, const char *what)
{
    return size->lo > 0 || ends_with(c, rank, dims, size) ||
           ingot_require(c, size, one_or_none(c, rank, dims), idx(c, size->hi), what);
}

bool never_place(Context *c, Node *place, const Node *source, int axis, bool wraps)
{
    const char *what = arena_printf(c->arena, "an index into axis %d", axis);
    Node *size = source->shape[axis], *zero = idx(c, 0), *one = idx(c, 1);
    if (c->region && idx_is(size, 0))
        require_or_skip(c, size, one, one,
                        arena_printf(c->arena, "the size of axis %d, for its indices,", axis));
    else if (c->region)
        require_or_skip(c, place, wraps ? idx_sub(c, zero, size) : zero, idx_sub(c, size, one),
                        what);
    else
        ingot_error(c, INGOT_INVALID, "index %s is outside axis %d of shape %s", dim_text(c, place),
                    axis, shape_text(c, source->rank, source->shape));
    return c->region;
}

static bool outside(Context *c, const Places *p, Node *place)
{
    return *p->never = never_place(c, place, p->source, p->axis, p->wraps);
}

/* Places from lo to hi. False after an error. */
static bool require_room(Context *c, const Places *p, Node *lo, Node *hi)
{
    Node *size = p->source->shape[p->axis];
    const bool below = !p->wraps && lo->lo < 0;
    if (below && lo->hi < 0)
        return outside(c, p, lo);
    if (hi->lo >= size->hi || lo->hi < -size->hi)
        return outside(c, p, hi->lo >= size->hi ? hi : lo);
    if (!below && hi->hi < size->lo && lo->lo >= -size->lo)
        return true;
    Node *zero = idx(c, 0), *need = idx_max(c, idx_add(c, hi, idx(c, 1)), idx_sub(c, zero, lo));
    const char *what = arena_printf(c->arena, "the size of axis %d, for its indices,", p->axis);
    if (!below && node_is_const_i(need, 1))
        return require_place(c, size, p->each->rank, p->each->shape, what);
    if (!below && node_is_const_i(idx_le(c, need, size), 1))
        return true;
    Node *one = one_or_none(c, p->each->rank, p->each->shape);
    if (below && !ingot_require(c, idx_mul(c, lo, one), zero, idx(c, lo->hi),
                                arena_printf(c->arena, "an index into axis %d", p->axis)))
        return false;
    return ingot_require(c, size, idx_mul(c, need, one), idx(c, size->hi), what);
}

/* Constants of the file, or made of them: false where they are not, or too many. */
static bool constant_bounds(Context *c, Node *i, Node **lo, Node **hi)
{
    int64_t dims[INGOT_MAX_RANK], n = 1, least = INT64_MAX, most = INT64_MIN, v;
    if (!ingot_static_shape(i, dims) || !ingot_is_const(i))
        return false;
    for (int d = 0; d < i->rank; d++)
        n = sat_mul(n, dims[d]);
    if (i->dtype != INGOT_I64 && i->dtype != INGOT_I32)
        i = ingot_cast(c, i, INGOT_I64);
    const size_t width = elem_bytes((ingot_dtype)i->dtype);
    if (n < 1 || n > MOST)
        return false;
    Arena *a = arena_new();
    uint8_t *bytes = NEWN(a, uint8_t, n * (int64_t)width);
    bool good = ingot_const_data(c, i, bytes, (size_t)n * width);
    for (int64_t k = 0; k < n && good; k++) {
        int32_t narrow;
        memcpy(&narrow, bytes + (size_t)k * width, sizeof narrow);
        v = narrow;
        if (width == sizeof v)
            memcpy(&v, bytes + (size_t)k * width, sizeof v);
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    arena_free(a);
    if (good) {
        *lo = idx(c, least);
        *hi = idx(c, most);
    }
    return good;
}

/* An integer of the run. Where it is below zero for certain, N - 3 stands for -3 by now, and is no
 * index that could be below zero again. */
static bool require_one(Context *c, const Places *p, Node *i, bool given)
{
    Places settled = *p;
    if (p->wraps && !given && i->lo < 0) {
        Node *back = idx_sub(c, i, p->source->shape[p->axis]);
        if (back->hi < 0)
            i = back;
        else
            settled.wraps = false;
    }
    return require_room(c, &settled, i, i);
}

/* Indices of which nothing is known need an axis that has a place, if there are any. */
static bool require_any(Context *c, const Places *p, const Node *i)
{
    Node *size = p->source->shape[p->axis], *any = one_or_none(c, i->rank, i->shape);
    if (any->hi < 1)
        return true;
    if (any->lo < 1 && size->hi < 1)
        return ingot_require(
            c, size, any, idx(c, 1),
            arena_printf(c->arena, "the size of axis %d, for its indices,", p->axis));
    return require_room(c, p, idx(c, 0), idx(c, 0));
}

/* Indices along one axis. False after an error. */
static bool require_places(Context *c, const Places *p, Node *index)
{
    bool given;
    Node *i = shortest(index, &given), *lo = idx(c, 0), *hi, *integer[FEW], *size;
    if (i->op == OP_IOTA) {
        size = i->shape[i->arg.i];
        return size == p->source->shape[p->axis] ||
               require_room(c, p, lo, idx_sub(c, size, idx(c, 1)));
    }
    if (constant_bounds(c, i, &lo, &hi))
        return require_room(c, p, lo, hi);
    int n = ingot_contents(c, i, integer, FEW);
    for (int k = 0; k < n; k++)
        if (!require_one(c, p, integer[k], given))
            return false;
    return n >= 0 || p->x->op == OP_UPDATE || require_any(c, p, i);
}

bool index_places(Context *c, Node *x, bool wraps, bool *never)
{
    const bool update = x->op == OP_UPDATE;
    Places p = {.x = x,
                .each = update ? x->src[1] : x,
                .source = x->src[0],
                .wraps = wraps,
                .never = never};
    if (shape_is_empty(p.each->rank, p.each->shape)) {
        *never = false;
        return true;
    }
    for (*never = false; p.axis < p.source->rank && !*never; p.axis++)
        if (!require_places(c, &p, x->src[(update ? 2 : 1) + p.axis]))
            return false;
    return true;
}
