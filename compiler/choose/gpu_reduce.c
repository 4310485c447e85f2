/* gpu_reduce.c - opts for GPUs where there are too few results to fill one: the items of a group
 * share the terms of sums.
 *
 * A small contraction (a convolution of one image, a matrix times a vector) has columns in the
 * lanes, where its results and one operand lie side by side; each item has copies along the rows,
 * over which that operand is used again, and one of several parts of the terms.  Operands come from
 * the caches: no item waits for another before the sums are joined.
 *
 * A reduce of rows (a mean, a softmax's sums) has all its terms side by side in the lanes. */
#include <string.h>

#include "choose.h"
#include "gpu_pieces.h"

enum {
    MOST_COPIES = 4, /* of an item, along each */
    LEAST_TERMS = 8, /* of a part */
    LEAST_LOADS = 2  /* of an item for a row that is alone: all others wait for it */
};

int in_grid(Nest *n, int axis, int64_t block)
{
    int64_t extent = n->axis[axis].extent;
    if (extent % block && !nest_opt(n, OPT_MASK, n->axis[axis].name, block))
        return -1;
    if (extent <= block)
        return axis;
    if (block == 1)
        return nest_opt(n, OPT_BIND, n->axis[axis].name, BOUND_GRID) ? axis : -1;
    if (!nest_opt(n, OPT_SPLIT, n->axis[axis].name, block))
        return -1;
    int inner = nest_last_split(n)->inner;
    return nest_opt(n, OPT_BIND, n->axis[nest_last_split(n)->outer].name, BOUND_GRID) ? inner : -1;
}

int longest(const Nest *n, const Node *reduce)
{
    int best = -1;
    for (uint32_t i = reduce_ranges(reduce); i < reduce->nsrc; i++) {
        int axis = nest_root(n, reduce->src[i]);
        if (n->axis[axis].extent > 1 && (best < 0 || n->axis[axis].extent > n->axis[best].extent))
            best = axis;
    }
    return best;
}

bool is_of_same_loads(const Nest *n, const View *v, const Node *range)
{
    const int64_t extent = n->axis[nest_root(n, range)].extent;
    bool same = extent > 1 && extent <= MOST_COPIES && v->nload > 0;
    for (int i = 0; i < v->nload && same; i++)
        same = !depends_on(v->load[i], range);
    return same;
}

/* An axis of results is the grid's; but an item has those that are made of the same loads. */
static bool bind_rest(Nest *n, const View *v, Node *range)
{
    const NestAxis *x = &n->axis[nest_root(n, range)];
    return is_of_same_loads(n, v, range) ? nest_opt(n, OPT_UPCAST, x->name, x->extent)
                                         : nest_opt(n, OPT_BIND, x->name, BOUND_GRID);
}

/* In so many parts, each of terms side by side; -1: it cannot. */
static int divide(Nest *n, int axis, int64_t parts)
{
    int64_t terms = ceil_div(n->axis[axis].extent, parts);
    if (n->axis[axis].extent % terms && !nest_opt(n, OPT_MASK, n->axis[axis].name, terms))
        return -1;
    if (terms > 1 && !nest_opt(n, OPT_SPLIT, n->axis[axis].name, terms))
        return -1;
    int outer = terms > 1 ? nest_last_split(n)->outer : axis;
    return nest_opt(n, OPT_BIND, n->axis[outer].name, BOUND_LANE) ? outer : -1;
}

int lanes_of(Nest *n, int at, int64_t lanes, int64_t copies, bool near)
{
    if (copies > 1 && near) {
        if (!nest_opt(n, OPT_UPCAST, n->axis[at].name, copies))
            return -1;
        at = nest_last_split(n)->outer;
    } else if (copies > 1 && lanes > 1) {
        if (!nest_opt(n, OPT_SPLIT, n->axis[at].name, lanes))
            return -1;
        int far = nest_last_split(n)->outer, in = nest_last_split(n)->inner;
        if (!nest_opt(n, OPT_UPCAST, n->axis[far].name, copies))
            return -1;
        at = in;
    }
    if (lanes > 1 && !nest_opt(n, OPT_BIND, n->axis[at].name, BOUND_LANE))
        return -1;
    return at;
}

/* Lanes and copies of an item along columns and rows, and how many parts the terms are in. */
typedef struct {
    int64_t lanes[2], copies[2], parts;
} ReduceShape;
enum { COLUMNS, ROWS };

static int64_t tiles_of(const ReduceShape *s, const int64_t extent[2])
{
    int64_t n = 1;
    for (int i = 0; i < 2; i++)
        n *= ceil_div(extent[i], s->lanes[i] * s->copies[i]);
    return n;
}

/* A warp is 8 items along columns and 4 along rows, or all along columns. Copies save loads; fewer
 * are more groups. */
static ReduceShape shape_of(const int64_t extent[2], int64_t others, int64_t terms, int items,
                            const Machine *m)
{
    bool flat = extent[ROWS] < 8;
    ReduceShape s = {.lanes = {flat ? m->warp : m->warp / 4, flat ? 1 : 4},
                     .copies = {flat ? 1 : MOST_COPIES, flat ? 1 : MOST_COPIES},
                     .parts = 1};
    while (s.lanes[COLUMNS] > 4 && s.lanes[COLUMNS] > extent[COLUMNS])
        s.lanes[COLUMNS] /= 2;
    /* a matrix times a vector: as many groups as run beside each other, as long as each has terms
     * for all of its items */
    while (flat && s.lanes[COLUMNS] > m->warp / 4 &&
           sat_mul(others, tiles_of(&s, extent)) < m->processors &&
           terms >= 2 * (m->group / s.lanes[COLUMNS]) * LEAST_TERMS)
        s.lanes[COLUMNS] /= 2;
    while (s.copies[COLUMNS] > 1 && s.copies[COLUMNS] * s.lanes[COLUMNS] >= 2 * extent[COLUMNS])
        s.copies[COLUMNS] /= 2;
    while (s.copies[ROWS] > 1 && s.copies[ROWS] * s.lanes[ROWS] > extent[ROWS])
        s.copies[ROWS] /= 2;
    while (sat_mul(others, tiles_of(&s, extent)) < m->processors &&
           (s.copies[COLUMNS] > 1 || s.copies[ROWS] > 2))
        s.copies[s.copies[COLUMNS] > s.copies[ROWS] ? COLUMNS : ROWS] /= 2;
    int64_t tiles = sat_mul(others, tiles_of(&s, extent));
    const int64_t lanes = s.lanes[COLUMNS] * s.lanes[ROWS],
                  most = (items < m->group ? items : m->group) / lanes;
    while (2 * s.parts <= most && sat_mul(tiles, s.parts * lanes) < items_at_once(m) &&
           terms >= 2 * s.parts * LEAST_TERMS)
        s.parts *= 2;
    return s;
}

/* Terms too few to be divided, and copies that leave too few items: with one for each result there
 * are more that have work while others wait. So it is with convolutions of each channel by its own
 * window. */
static bool is_idle(const ReduceShape *s, const int64_t extent[2], int64_t others, const Machine *m)
{
    int64_t items = s->lanes[COLUMNS] * s->lanes[ROWS];
    return s->parts == 1 && s->copies[COLUMNS] * s->copies[ROWS] > 1 &&
           sat_mul(others, tiles_of(s, extent)) < items_at_once(m) / items;
}

/* An axis of results: blocks are the grid's. The axis of its lanes, or -1. Neighbours along columns
 * are read by neighbouring items, but from images by one item, four at once. */
static int block(Nest *n, const ReduceShape *s, int axis, int along)
{
    int at = in_grid(n, axis, s->lanes[along] * s->copies[along]);
    const bool near = along == ROWS || n->target->machine.images;
    return at < 0 ? -1 : lanes_of(n, at, s->lanes[along], s->copies[along], near);
}

/* Other reduces of the kernel are divided alike, where they can be. */
static void divide_others(Nest *n, const View *v, int64_t parts)
{
    for (int i = 0; i < v->nreduce; i++) {
        int axis = v->reduce[i] == v->dot ? -1 : longest(n, v->reduce[i]);
        if (axis >= 0 && n->axis[axis].split < 0 && !n->axis[axis].bound &&
            n->axis[axis].extent % parts == 0)
            (void)divide(n, axis, parts);
    }
}

bool parts_contraction(Nest *n, const View *v, int rows, int columns, int items, int fours)
{
    int sum = fours < 0 ? longest(n, v->dot) : fours;
    if (sum < 0)
        return false;
    int64_t others = 1, extent[2] = {n->axis[columns].extent, rows >= 0 ? n->axis[rows].extent : 1};
    for (int i = 0; i < v->nrange; i++) {
        int axis = nest_root(n, v->range[i]);
        if (axis != rows && axis != columns)
            others = sat_mul(others, n->axis[axis].most);
    }
    const int terms = n->axis[sum].root;
    const bool window = view_slides(v, n->k->axes[terms].range); /* its few terms are not divided */
    ReduceShape s =
        shape_of(extent, others, window ? 1 : n->axis[sum].extent, items, &n->target->machine);
    if (is_idle(&s, extent, others, &n->target->machine))
        return false;
    const char *order = "";
    if (s.parts > 1) {
        int at = divide(n, sum, s.parts);
        if (at < 0)
            return false;
        order = nest_and_name(n, order, at);
        divide_others(n, v, s.parts);
    }
    if (extent[ROWS] > 1) {
        int at = block(n, &s, rows, ROWS);
        if (at < 0)
            return false;
        order = s.lanes[ROWS] > 1 ? nest_and_name(n, order, at) : order;
    }
    int at = block(n, &s, columns, COLUMNS);
    if (at < 0)
        return false;
    order = nest_and_name(n, order, at);
    for (int i = 0; i < v->nrange; i++) {
        int axis = nest_root(n, v->range[i]);
        if (axis != rows && axis != columns && n->axis[axis].extent != 1 &&
            !bind_rest(n, v, v->range[i]))
            return false;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n->norder; i++) {
            const NestAxis *x = &n->axis[n->order[i]];
            if (x->reduced && !x->bound && x->extent != 1 &&
                (x->root == terms) ==
                    !pass) /* a window is inside: its loops become straight-line */
                order = nest_and_name(n, order, n->order[i]);
        }
    return nest_opt(n, OPT_ORDER, order, 0);
}

/* Blocks of an axis are outermost, what is in them innermost. */
static void in_blocks(Layout *l, int rank, int axis, int64_t block)
{
    l->op[l->n++] = (LayoutOp){.kind = LAYOUT_SPLIT, .axis = (int8_t)axis, .a = block};
    LayoutOp *op = &l->op[l->n++];
    *op = (LayoutOp){.kind = LAYOUT_PERMUTE, .perm = {.n = rank + 1}};
    int n = 0;
    op->perm.axis[n++] = (int8_t)axis;
    for (int i = 0; i < rank + 1; i++)
        if (i != axis && i != axis + 1)
            op->perm.axis[n++] = (int8_t)i;
    op->perm.axis[n] = (int8_t)(axis + 1);
}

/* What is inside of the blocks that are the grid's, of lanes or copies. */
static int64_t block_of(const Nest *n, int axis)
{
    int64_t block = 1;
    for (int i = 0; i < n->naxis; i++)
        if (n->axis[i].root == axis && (n->axis[i].form == AXIS_COPIES ||
                                        (n->axis[i].bound == BOUND_LANE && !n->axis[i].reduced)))
            block *= n->axis[i].extent;
    return block;
}

/* Weights lie as the lanes, or the copies of an item, read them. */
void parts_layouts(const Nest *n, const View *v, const Buffer *const *bufs, int rows, int columns,
                   Layout *want)
{
    const int of[2] = {columns, rows};
    for (int i = 0; i < v->nfactor; i++) {
        int arg = (int)v->factor[i]->src[0]->arg.i, rank = bufs[arg]->rank;
        bool settled = bufs[arg]->kind != BUF_WEIGHT || rank > INGOT_MAX_RANK - 2;
        for (int j = 0; j < 2 && !settled; j++) {
            Move m = of[j] < 0 ? (Move){.kind = MOVE_NONE}
                               : access_move(n->k->c, v->factor[i], n->k->axes[of[j]].range);
            int64_t block = of[j] < 0 ? 1 : block_of(n, of[j]), size;
            settled = m.kind != MOVE_NONE;
            if (m.kind != MOVE_AXIS || m.stride != 1 || want[arg].n)
                continue;
            if (block > 1 && idx_value(bufs[arg]->dims[m.axis], &size) && size > block)
                in_blocks(&want[arg], rank, m.axis, block);
            else
                layout_put_last(&want[arg], rank, m.axis);
        }
    }
}

/* Does some reduce move with it? Else it is the row that all items of a group walk over when they
 * know what they share. */
bool is_of_reduces(const View *v, Node *range)
{
    for (int i = 0; i < v->nreduce; i++)
        if (depends_on(v->reduce[i], range))
            return true;
    return false;
}

bool bind_lanes(Nest *n, int axis, int64_t warp)
{
    if (warp <= 1)
        return nest_opt(n, OPT_BIND, n->axis[axis].name, BOUND_LANE);
    if (n->axis[axis].extent > warp) {
        if (!nest_opt(n, OPT_SPLIT, n->axis[axis].name, warp) ||
            !nest_opt(n, OPT_BIND, n->axis[nest_last_split(n)->outer].name, BOUND_LANE))
            return false;
        axis = nest_last_split(n)->inner;
    }
    return nest_opt(n, OPT_BIND, n->axis[axis].name, BOUND_WARP);
}

/* The terms of a reduce are divided among at most so many lanes, the last axes first; among how
 * many. */
static int64_t bind_terms(Nest *n, const Node *r, int64_t most, int64_t warp)
{
    int64_t bound = 1;
    for (int i = 0; i < n->naxis; i++) /* what a reduce before has as well */
        for (uint32_t j = reduce_ranges(r); j < r->nsrc; j++)
            if ((n->axis[i].bound == BOUND_LANE || n->axis[i].bound == BOUND_WARP) &&
                n->axis[i].root == nest_root(n, r->src[j]))
                bound *= n->axis[i].extent;
    if (bound > 1)
        return bound;
    for (uint32_t i = r->nsrc; i-- > reduce_ranges(r);) {
        int axis = nest_root(n, r->src[i]);
        int64_t extent = n->axis[axis].most, lanes = most / bound, whole;
        lanes = lanes < extent ? lanes : extent;
        if (lanes < 2)
            continue;
        if (n->axis[axis].extent < 0) { /* known at run time only: so many at a time */
            if (r->nsrc > reduce_ranges(r) + 1 || bound > 1 || lanes == extent)
                return 0;
            return nest_opt(n, OPT_MASK, n->axis[axis].name, lanes) &&
                           nest_opt(n, OPT_SPLIT, n->axis[axis].name, lanes) &&
                           bind_lanes(n, nest_last_split(n)->inner, warp)
                       ? lanes
                       : 0;
        }
        for (whole = lanes; extent % whole;)
            whole--;
        if (2 * whole > lanes && whole % warp == 0)
            lanes = whole;
        else if (lanes % warp || !nest_opt(n, OPT_MASK, n->axis[axis].name, lanes))
            return 0;
        extent = n->axis[axis].extent;
        if (lanes < extent && !nest_opt(n, OPT_SPLIT, n->axis[axis].name, lanes))
            return 0;
        /* the lanes of a warp are of one axis: what the last one left are items beside them */
        if (!bind_lanes(n, lanes < extent ? nest_last_split(n)->inner : axis, bound > 1 ? 1 : warp))
            return 0;
        bound *= lanes;
    }
    return bound;
}

/* The range of results along which an access lies side by side, or NULL. */
static Node *range_beside(const Kernel *k, const View *v, Node *access)
{
    int64_t stride;
    for (int i = 0; i < v->nrange; i++)
        if (range_extent(v->range[i]) > 1 && access_stride(k, access, v->range[i], &stride) &&
            stride == 1)
            return v->range[i];
    return NULL;
}

/* A range along which some load lies side by side that moves with `stored` too, and does not lie
 * side by side along that; *sector: so many of its elements are one of memory. */
static Node *read_across(const Nest *n, const View *v, Node *stored, int64_t *sector)
{
    for (int i = 0; i < v->nload; i++) {
        Node *read = range_beside(n->k, v, v->load[i]);
        *sector = n->target->machine.sector / (int64_t)elem_bytes((ingot_dtype)v->load[i]->dtype);
        if (read && read != stored && depends_on(v->load[i], stored))
            return read;
    }
    return NULL;
}

/* A block of an axis is in a group, blocks are the grid's: gives what is inside of one, or -1, and
 * its place in an order. */
static int ordered_block(Nest *n, const Node *range, int64_t size, const char **order)
{
    const int axis = nest_root(n, range), at = in_grid(n, axis, size);
    if (at >= 0 && at != axis)
        *order = nest_and_name(n, *order, nest_last_split(n)->outer);
    return at;
}

/* Is there a result of each element of a sector for as many items as a GPU runs at once? */
static bool fills_with_sectors(const Nest *n, const View *v, int64_t sector)
{
    int64_t results = 1;
    for (int i = 0; i < v->nrange; i++)
        results = sat_mul(results, n->axis[nest_root(n, v->range[i])].most);
    return results / sector >= items_at_once(&n->target->machine);
}

bool parts_turned(Nest *n, const View *v)
{
    const Machine *m = &n->target->machine;
    int64_t lanes = m->group / 2, sector;
    Node *stored = range_beside(n->k, v, v->store[0]);
    Node *read = stored ? read_across(n, v, stored, &sector) : NULL;
    if (!read || v->nreduce || range_extent(read) % sector)
        return false;
    if (!fills_with_sectors(n, v, sector)) /* with half of them, which one access reads? */
        sector /= 2;
    if (!fills_with_sectors(n, v, sector))
        return false;
    while (lanes > m->warp && lanes > range_extent(stored))
        lanes /= 2;
    for (int i = 0; i < v->nrange; i++)
        if (v->range[i] != stored && v->range[i] != read && range_extent(v->range[i]) != 1 &&
            !nest_opt(n, OPT_BIND, n->axis[nest_root(n, v->range[i])].name, BOUND_GRID))
            return false;
    const char *order = ""; /* groups that follow each other read what is beside it */
    const int at = ordered_block(n, stored, lanes, &order);
    const int copies = at < 0 ? -1 : ordered_block(n, read, sector, &order);
    return copies >= 0 && nest_opt(n, OPT_BIND, n->axis[at].name, BOUND_LANE) &&
           nest_opt(n, OPT_UPCAST, n->axis[copies].name, sector) &&
           (!*order || nest_opt(n, OPT_ORDER, order, 0));
}

/* The axis of results along which what is reduced lies side by side; -1: along none. */
static int side_by_side(const Nest *n, const View *v)
{
    int64_t stride;
    const Node *r = v->reduce[0];
    for (int i = 0; i < v->nrange; i++)
        for (int j = 0; j < v->nload; j++)
            if (n->axis[nest_root(n, v->range[i])].extent > 1 &&
                depends_on(v->load[j], v->range[i]) &&
                depends_on(v->load[j], r->src[reduce_ranges(r)]) &&
                access_stride(n->k, v->load[j], v->range[i], &stride) && stride == 1)
                return nest_root(n, v->range[i]);
    return -1;
}

/* How many neighbours of an axis of results are a sector of the memory that is read along it. */
static int64_t sector_along(const Nest *n, const View *v, int axis)
{
    int64_t stride, most = 1;
    for (int i = 0; i < v->nload; i++) {
        const int64_t each =
            n->target->machine.sector / (int64_t)elem_bytes((ingot_dtype)v->load[i]->dtype);
        if (access_stride(n->k, v->load[i], n->k->axes[axis].range, &stride) && stride == 1)
            most = each > most ? each : most;
    }
    return most;
}

/* Do the terms of a sum lie side by side? An item for each result would read them a line of memory
 * at a time, however many items there are. */
static bool terms_side_by_side(const Nest *n, const View *v)
{
    int64_t stride;
    const Node *r = v->reduce[0];
    for (int j = 0; j < v->nload; j++)
        if (access_stride(n->k, v->load[j], r->src[r->nsrc - 1], &stride) && stride == 1)
            return true;
    return false;
}

/* The last axis of results that the reduces move with, or -1. */
static int last_of_reduces(const Nest *n, const View *v)
{
    int last = -1;
    for (int i = 0; i < v->nrange; i++)
        if (n->axis[nest_root(n, v->range[i])].extent != 1 && is_of_reduces(v, v->range[i]))
            last = nest_root(n, v->range[i]);
    return last;
}

/* Each group has so many rows along this axis, of which an item has `run`, and one along others. */
static bool bind_rows(Nest *n, const View *v, int inner, int64_t each, int64_t run)
{
    for (int i = 0; i < v->nrange; i++) {
        int axis = nest_root(n, v->range[i]);
        if (n->axis[axis].extent == 1 || !is_of_reduces(v, v->range[i]))
            continue;
        if (axis == inner && each > 1 && n->axis[axis].extent % (each * run) == 0) {
            const int at = in_grid(n, axis, each * run);
            if (at < 0 || lanes_of(n, at, each, run, true) < 0)
                return false;
        } else if (!bind_rest(n, v, v->range[i])) {
            return false;
        }
    }
    return true;
}

/* Items that are neighbours have neighbours of the results, behind which come the parts of the
 * terms. */
static bool order_lanes(Nest *n)
{
    const char *order = "";
    for (int reduced = 1; reduced >= 0; reduced--)
        for (int i = 0; i < n->norder; i++) {
            const NestAxis *x = &n->axis[n->order[i]];
            if (x->bound == BOUND_LANE && x->reduced == reduced)
                order = nest_and_name(n, order, n->order[i]);
        }
    for (int i = 0; i < n->norder; i++)
        if (n->axis[n->order[i]].reduced && !n->axis[n->order[i]].bound)
            order = nest_and_name(n, order, n->order[i]);
    return nest_opt(n, OPT_ORDER, order, 0);
}

static ReducedRows rows_of(const Nest *n, const View *v)
{
    ReducedRows s = {.terms = 1, .rows = 1};
    const Node *r = v->reduce[0];
    for (int i = 0; i < v->nrange; i++) {
        const int64_t most = n->axis[nest_root(n, v->range[i])].most;
        if (is_of_reduces(v, v->range[i]))
            s.rows = sat_mul(s.rows, most);
        else
            s.walked |= most > 1;
    }
    for (uint32_t i = reduce_ranges(r); i < r->nsrc; i++)
        s.terms = sat_mul(s.terms, n->axis[nest_root(n, r->src[i])].most);
    return s;
}

/* The terms of rows in the lanes. */
bool parts_rows(Nest *n, const View *v, int64_t warp)
{
    if (!v->nreduce)
        return false;
    for (int i = 1; i < v->nreduce; i++) /* all over the same axes */
        if (v->reduce[i]->nsrc != v->reduce[0]->nsrc)
            return false;
    const Machine *m = &n->target->machine;
    const ReducedRows s = rows_of(n, v);
    const int beside = side_by_side(n, v);
    const bool enough = s.rows > items_at_once(m) && (beside >= 0 || !terms_side_by_side(n, v));
    if ((enough && !s.walked) || s.terms < m->warp || s.terms == INT64_MAX)
        return false;
    if (warp > 1 && beside >= 0) /* neighbours have neighbours of the results */
        return false;
    const int inner = beside < 0 ? last_of_reduces(n, v) : beside;
    int64_t items = half_group(m);
    int64_t each = s.rows >= TOGETHER * m->processors ? items / m->warp
                   : beside >= 0                      ? BESIDE
                                                      : 1,
            bound = 1;
    if (beside >= 0 && s.rows >= TOGETHER * m->processors && each < sector_along(n, v, beside))
        each = sector_along(n, v, beside);
    const int64_t columns = pieces_of_columns(n, v, &s, beside, &each);
    int64_t pieces = 0;
    int64_t run = beside < 0 ? pieces_of_terms(n, v, &s, &pieces) : 1;
    if (run > 1)
        each = items / pieces;
    while (columns == 1 && run == 1 && 2 * items <= n->target->machine.items &&
           s.terms > (s.rows == 1 && m->units ? LEAST_LOADS : m->loads) * (items / each))
        items *= 2;
    if (s.walked && beside < 0 && m->units && s.terms > TOGETHER * TOGETHER * (items / each))
        each = 1; /* of a long row an item keeps so many pieces, of as many elements */
    if (s.walked && beside < 0) {
        pieces = items / each;
        run = pieces_of_rows(n, v, &s, &pieces);
    }
    if (run == 1 && each > 1 && s.walked && beside < 0) { /* a row for itself can be divided? */
        pieces = items;
        run = pieces_of_rows(n, v, &s, &pieces);
        each = run > 1 ? 1 : each;
    }
    for (int i = 0; i < v->nreduce; i++) {
        int64_t lanes = run == 1 ? bind_terms(n, v->reduce[i], items / each, warp)
                        : bind_pieces(n, v->reduce[i], pieces, run, warp) ? pieces
                                                                          : 0;
        if (i && lanes != bound)
            return false;
        bound = lanes;
    }
    if (run > 1 && s.walked &&
        !nest_opt(n, OPT_UPCAST, n->axis[nest_root(n, walked_range(v))].name, run))
        return false;
    if ((run == 1 && bound < m->warp / 2) || !bind_rows(n, v, inner, each, columns) ||
        (beside >= 0 && !order_lanes(n)))
        return false;
    /* of few groups all others are free */
    if ((s.rows == 1 || tc_few_rows(s.rows) || (beside >= 0 && s.rows / each <= m->processors)) &&
        m->units && n->target->triggers)
        (void)nest_opt(n, OPT_TRIGGER, "waited", 0);
    return true;
}

/* ---- results that share a sum ---------------------------------------------------------------- */

static bool is_of_sum(const Nest *n, const View *v, int i)
{
    return n->axis[nest_root(n, v->range[i])].most > 1 && depends_on(v->dot, v->range[i]);
}

/* The parts of the one reduced axis that has several terms are lanes; -1: it cannot be. */
static int lanes_of_terms(Nest *n, const View *v, int64_t parts)
{
    int axis = longest(n, v->dot);
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc && axis >= 0; i++) {
        const int other = nest_root(n, v->dot->src[i]);
        if (other != axis && n->axis[other].extent != 1)
            return -1;
    }
    if (axis < 0 ||
        (n->axis[axis].extent % parts && !nest_opt(n, OPT_MASK, n->axis[axis].name, parts)))
        return -1;
    return divide(n, axis, parts);
}

/* What the sum does not move with is one axis, where it can be. */
static void join_walked(Nest *n, const View *v)
{
    const char *names = "";
    for (int i = 0; i < v->nrange; i++)
        if (n->axis[nest_root(n, v->range[i])].extent > 1 && !is_of_sum(n, v, i))
            names = nest_and_name(n, names, nest_root(n, v->range[i]));
    if (strchr(names, ' '))
        nest_opt(n, OPT_JOIN, names, 0);
}

/* So many results of the last axis that the sum does not move with are a group's. */
static bool bind_walked(Nest *n, const View *v, int64_t block)
{
    bool walked = false;
    for (int i = v->nrange; i-- > 0;) {
        const int axis = nest_root(n, v->range[i]);
        const int64_t extent = n->axis[axis].extent;
        if (extent == 1 || is_of_sum(n, v, i))
            continue;
        const bool blocks = !walked && extent > 0;
        if (!blocks && !nest_opt(n, OPT_BIND, n->axis[axis].name, BOUND_GRID))
            return false;
        if (blocks && extent > block && in_grid(n, axis, block) < 0)
            return false;
        walked |= blocks;
    }
    return walked;
}

/* Of each line of lanes an item has one result, or some, so that all groups run beside each other:
 * what an item loads it stores before it loads again.  All of them if the sum takes longer than
 * that. */
static int64_t walked_block(const Nest *n, const View *v, int64_t groups, int64_t lines)
{
    if (n->axis[longest(n, v->dot)].extent > lines * n->target->machine.loads)
        return INT64_MAX;
    return lines * ceil_div(groups, lines * TOGETHER * n->target->machine.processors);
}

/* A block of the last axis that the sum moves with is in the lanes, which is given; or -1. */
static int bind_columns(Nest *n, const View *v, int columns, int64_t lanes)
{
    for (int i = 0; i < v->nrange; i++) {
        const int axis = nest_root(n, v->range[i]);
        if (is_of_sum(n, v, i) && axis != columns &&
            !nest_opt(n, OPT_BIND, n->axis[axis].name, BOUND_GRID))
            return -1;
    }
    const int at = in_grid(n, columns, lanes);
    return at >= 0 && nest_opt(n, OPT_BIND, n->axis[at].name, BOUND_LANE) ? at : -1;
}

int parts_walked(Nest *n)
{
    View v = kernel_view(n->k);
    if (v.nreduce != 1)
        return -1;
    join_walked(n, &v);
    v = kernel_view(n->k);
    int64_t stride, groups = 1, items = half_group(&n->target->machine);
    int last = -1;
    for (int i = 0; i < v.nrange; i++) {
        groups = sat_mul(groups, n->axis[nest_root(n, v.range[i])].most);
        last = is_of_sum(n, &v, i) ? i : last;
    }
    const int columns = last < 0 ? -1 : nest_root(n, v.range[last]);
    if (columns < 0 || n->axis[columns].extent < 2 || longest(n, v.dot) < 0)
        return -1;
    const int64_t extent = n->axis[columns].extent;
    const bool beside = access_stride(n->k, v.store[0], v.range[last], &stride) && stride == 1;
    int64_t lanes = beside ? n->target->machine.warp : BESIDE;
    while (lanes > BESIDE && lanes > extent)
        lanes /= 2;
    groups = groups / extent * ceil_div(extent, lanes);
    const int64_t block = walked_block(n, &v, groups, items / lanes);
    const bool done = lanes_of_terms(n, &v, items / lanes) >= 0 && bind_walked(n, &v, block) &&
                      bind_columns(n, &v, columns, lanes) >= 0 && order_lanes(n);
    return done ? columns : -1;
}
