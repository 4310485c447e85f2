/* affine_view.c - a tensor as another one, read at places that are affine in its own
 * coordinates.
 *
 *     y[r] = x[off + coef r]
 *
 *     windows of 3, two apart:  y[n, o, k] = x[n, 2 o + k]   coef = [[1, 0, 0], [0, 2, 1]]
 *
 * Slices with steps, windows, windows of windows, repeated and split axes are such views.  An
 * axis of size 1 has coordinate 0, and no coefficient. */
#include <string.h>

#include "gradient.h"

/* Axis a of a tensor is axis map[a] of the result, -1: it is of size 1. */
typedef struct {
    int axis[INGOT_MAX_RANK];
    int deep; /* of the index expression */
} AxisMap;

/* A reshape that adds or drops axes of size 1: where the axes of its source go. */
static bool ones_added(const Node *reshape, const AxisMap *to, AxisMap *map)
{
    Node *x = reshape->src[0];
    int at = 0;
    map->deep = to->deep + 1;
    for (int a = 0; a < x->rank; a++) {
        map->axis[a] = -1;
        if (idx_is(x->shape[a], 1))
            continue;
        while (at < reshape->rank && idx_is(reshape->shape[at], 1))
            at++;
        if (at == reshape->rank || reshape->shape[at] != x->shape[a])
            return false;
        map->axis[a] = to->axis[at++];
    }
    return true;
}

/* off + sum coef[k] r_k += f i, for an index tensor i. */
static bool add_index(Context *c, Node *i, const AxisMap *map, int64_t f, int64_t *coef, Node **off)
{
    AxisMap inner = *map;
    Node *k;
    inner.deep++;
    if (inner.deep > DEPTH_FEW)
        return false;
    if (i->dtype == INGOT_INDEX) {
        *off = idx_add(c, *off, idx_mul(c, i, idx(c, f)));
        return i->rank == 0;
    }
    if (dtype_is_float(i->dtype) || i->dtype == INGOT_BOOL)
        return false;
    switch (i->op) {
    case OP_CONST: *off = idx_add(c, *off, idx(c, f * i->arg.i)); return true;
    case OP_IOTA:
        if (!idx_is(i->shape[i->arg.i], 1) && map->axis[i->arg.i] >= 0)
            coef[map->axis[i->arg.i]] += f;
        return true;
    case OP_CAST:
    case OP_EXPAND: return add_index(c, i->src[0], &inner, f, coef, off);
    case OP_RESHAPE:
        return ones_added(i, map, &inner) && add_index(c, i->src[0], &inner, f, coef, off);
    case OP_NEG: return add_index(c, i->src[0], &inner, -f, coef, off);
    case OP_ADD:
    case OP_SUB:
        return add_index(c, i->src[0], &inner, f, coef, off) &&
               add_index(c, i->src[1], &inner, i->op == OP_ADD ? f : -f, coef, off);
    case OP_MUL:
        if ((k = uniform(i->src[1])) != NULL)
            return add_index(c, i->src[0], &inner, f * k->arg.i, coef, off);
        k = uniform(i->src[0]);
        return k && add_index(c, i->src[1], &inner, f * k->arg.i, coef, off);
    default: return false;
    }
}

void view_of(Context *c, Node *x, AffineView *v)
{
    memset(v, 0, sizeof *v);
    v->x = x;
    v->rank = x->rank;
    v->dims = x->shape;
    for (int a = 0; a < x->rank; a++) {
        v->off[a] = idx(c, 0);
        v->coef[a][a] = idx_is(x->shape[a], 1) ? 0 : 1;
    }
}

bool view_of_places(Context *c, Node *x, Node *const *index, AffineView *v)
{
    AxisMap map = {.deep = 0};
    memset(v, 0, sizeof *v);
    v->x = x;
    v->rank = x->rank ? index[0]->rank : 0;
    v->dims = x->rank ? index[0]->shape : NULL;
    for (int k = 0; k < v->rank; k++)
        map.axis[k] = k;
    for (int a = 0; a < x->rank; a++) {
        v->off[a] = idx(c, 0);
        if (!add_index(c, index[a], &map, 1, v->coef[a], &v->off[a]))
            return false;
        for (int k = 0; k < v->rank; k++)
            if (idx_is(v->dims[k], 1))
                v->coef[a][k] = 0;
    }
    return true;
}

bool view_is_inside(Context *c, const AffineView *v)
{
    for (int a = 0; a < v->x->rank; a++) {
        Node *least = v->off[a], *most = v->off[a];
        for (int k = 0; k < v->rank; k++) {
            Node *reach = idx_mul(c, idx_sub(c, v->dims[k], idx(c, 1)), idx(c, v->coef[a][k]));
            if (v->coef[a][k] > 0)
                most = idx_add(c, most, reach);
            else if (v->coef[a][k] < 0)
                least = idx_add(c, least, reach);
        }
        if (least->lo < 0 || idx_sub(c, v->x->shape[a], most)->lo < 1)
            return false;
    }
    return true;
}

int view_terms(const AffineView *v, int a, int *axis)
{
    int n = 0;
    for (int k = 0; k < v->rank; k++)
        if (v->coef[a][k]) {
            if (n < 2)
                axis[n] = k;
            n++;
        }
    return n;
}

/* Each axis of the source is split: its coordinate is a sum of those of the parts. */
static bool split_places(Context *c, Node *reshape, AffineView *v)
{
    Node *x = reshape->src[0];
    int at = 0;
    for (int a = 0; a < x->rank; a++) {
        int from = at;
        Node *size = idx(c, 1);
        while (at < reshape->rank && !(size == x->shape[a] && !idx_is(reshape->shape[at], 1)))
            size = idx_mul(c, size, reshape->shape[at++]);
        if (size != x->shape[a])
            return false;
        int64_t stride = 1, dim;
        bool known = true;
        v->off[a] = idx(c, 0);
        for (int k = at; k-- > from;) {
            if (idx_is(reshape->shape[k], 1))
                continue;
            if (!known)
                return false;
            v->coef[a][k] = stride;
            known = idx_value(reshape->shape[k], &dim); /* an unknown size may be the outermost */
            stride *= known ? dim : 1;
        }
    }
    return at == reshape->rank;
}

/* What the source of a view is a view of. */
static bool view_below(Context *c, Node *n, AffineView *v)
{
    memset(v, 0, sizeof *v);
    v->rank = n->rank;
    v->dims = n->shape;
    v->x = n->nsrc ? n->src[0] : NULL;
    switch (n->op) {
    case OP_GATHER: return view_of_places(c, n->src[0], n->src + 1, v) && view_is_inside(c, v);
    case OP_RESHAPE: return split_places(c, n, v);
    case OP_EXPAND:
        for (int a = 0; a < n->rank; a++) {
            v->off[a] = idx(c, 0);
            v->coef[a][a] = idx_is(v->x->shape[a], 1) ? 0 : 1;
        }
        return true;
    default: return false;
    }
}

bool view_deeper(Context *c, AffineView *v)
{
    AffineView below, sum;
    if (!view_below(c, v->x, &below))
        return false;
    memset(&sum, 0, sizeof sum);
    sum.x = below.x;
    sum.rank = v->rank;
    sum.dims = v->dims;
    for (int a = 0; a < below.x->rank; a++) {
        sum.off[a] = below.off[a];
        for (int m = 0; m < v->x->rank; m++) {
            int64_t f = below.coef[a][m];
            sum.off[a] = idx_add(c, sum.off[a], idx_mul(c, v->off[m], idx(c, f)));
            for (int k = 0; k < v->rank; k++)
                sum.coef[a][k] += f * v->coef[m][k];
        }
    }
    *v = sum;
    return true;
}
