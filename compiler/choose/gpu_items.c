/* gpu_items.c - tiles of items that share no memory.
 *
 * An item has so many results along rows (over which an operand is used again) and along columns
 * (neighbours in memory), and maybe several terms of a sum at a time:
 *
 *     {rows 16, columns 4} of 128 x 28 x 28 results      UPCAST i0 16  UPCAST i2 4  BIND i2.o lane
 * ..
 *
 * It is what a device with caches and vectors of its own may like better than groups that share
 * their operands: gpu_cores.c chooses among such shapes by their cost, a tuner tries some. */
#include "choose.h"

/* What divides the extent: not more than wanted, and more than half of it; 0: nothing does. */
static int64_t divisor_near(int64_t extent, int64_t want)
{
    for (int64_t d = want < extent ? want : extent; 2 * d > want; d--)
        if (extent % d == 0)
            return d;
    return extent < want ? extent : 0;
}

/* What is left of the axis where so many of it are copies; -1: it cannot be. */
static int copies_of(Nest *n, int axis, int64_t want, OptKind kind)
{
    if (axis < 0 || want < 2 || n->axis[axis].extent < 2)
        return axis;
    int64_t amount = divisor_near(n->axis[axis].extent, want);
    if (amount < 2 && !nest_opt(n, OPT_MASK, n->axis[axis].name, amount = want))
        return -1;
    return nest_opt(n, kind, n->axis[axis].name, amount) ? nest_last_split(n)->outer : -1;
}

/* All loops over results are the grid's that are nobody's yet. */
static bool bind_grid(Nest *n, const View *v)
{
    for (int i = 0; i < v->nrange; i++) {
        const NestAxis *x = &n->axis[nest_loop(n, nest_root(n, v->range[i]))];
        if (x->form == AXIS_LOOP && x->extent != 1 && !x->bound &&
            !nest_opt(n, OPT_BIND, x->name, BOUND_GRID))
            return false;
    }
    return true;
}

/* Neighbours of this axis are items of a group; all else is the grid's. */
static bool bind_items(Nest *n, const View *v, int axis)
{
    const int64_t extent = n->axis[axis].extent, most = 2 * n->target->machine.warp,
                  lanes = divisor_near(extent, most);
    if (extent > most && lanes) {
        if (!nest_opt(n, OPT_SPLIT, n->axis[axis].name, lanes))
            return false;
        axis = nest_last_split(n)->inner;
    }
    if (n->axis[axis].extent > 1 && !nest_opt(n, OPT_BIND, n->axis[axis].name, BOUND_LANE))
        return false;
    return bind_grid(n, v);
}

/* The axis along which results lie side by side, else the last one. */
static int item_columns(const Nest *n, const View *v)
{
    int64_t stride;
    int last = -1;
    for (int i = 0; i < v->nrange; i++)
        if (range_extent(v->range[i]) > 1)
            last = nest_root(n, v->range[i]);
    for (int i = 0; i < v->nrange; i++)
        if (range_extent(v->range[i]) > 1 &&
            access_stride(n->k, v->store[0], v->range[i], &stride) && stride == 1)
            return nest_root(n, v->range[i]);
    return last;
}

/* The longest other axis, of those along which an operand is used again, where there are such; -1:
 * there is none. */
static int item_rows(const Nest *n, const View *v, int columns)
{
    int best = -1;
    bool reuses = false;
    for (int i = 0; i < v->nrange; i++) {
        const int axis = nest_root(n, v->range[i]);
        if (axis == columns || n->axis[axis].extent < 2)
            continue;
        const bool again = v->dot && view_reuses(v, n->k->axes[columns].range, v->range[i]);
        if (best < 0 || again > reuses ||
            (again == reuses && n->axis[axis].extent > n->axis[best].extent)) {
            best = axis;
            reuses = again;
        }
    }
    return best;
}

/* The longest axis of the first reduce, or -1. */
static int terms_of(const Nest *n, const View *v)
{
    const Node *r = v->dot ? v->dot : v->nreduce ? v->reduce[0] : NULL;
    int best = -1;
    for (uint32_t i = r ? reduce_ranges(r) : 0; r && i < r->nsrc; i++) {
        const int axis = nest_root(n, r->src[i]);
        if (best < 0 || n->axis[axis].extent > n->axis[best].extent)
            best = axis;
    }
    return best;
}

bool item_tile(Nest *n, const ItemShape *s)
{
    View v = kernel_view(n->k);
    if (v.nstore == 1 && s->joined) {
        if (!join_columns(n, &v))
            return false;
        v = kernel_view(n->k);
    }
    int columns = v.nstore == 1 ? item_columns(n, &v) : -1;
    if (columns < 0)
        return false;
    int rows = item_rows(n, &v, columns);
    const int terms = s->terms > 1 ? terms_of(n, &v) : -1;
    if ((s->rows > 1 && rows < 0) || (s->terms > 1 && terms < 0))
        return false;
    if (s->terms > 1 && copies_of(n, terms, s->terms, OPT_UNROLL) < 0)
        return false;
    rows = copies_of(n, rows, s->rows, OPT_UPCAST);
    columns = copies_of(n, columns, s->columns, OPT_UPCAST);
    if (columns < 0 || (rows < 0 && s->rows > 1))
        return false;
    return s->groups == ITEMS_NUMBERED ||
           (s->groups == ITEMS_ALONE
                ? bind_grid(n, &v)
                : bind_items(n, &v, n->axis[columns].extent > 1 || rows < 0 ? columns : rows));
}
