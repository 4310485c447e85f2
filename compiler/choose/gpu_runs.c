/* gpu_runs.c - opts for GPUs where memory decides: each item reads and writes 16 bytes at a time.
 *
 * Where results lie side by side along channels, and all that is read lies so or does not move with
 * them, an item has as many channels as 16 bytes hold.  Of a window it has some neighbouring
 * results of a row, which share what they read: four of a 3x3 window read six columns, not twelve.
 * The items of a group are neighbours along channels, then along the row, then along rows, which
 * share most of what they read as well:
 *
 *     32 images of 144 x 56 x 56 (i1, i2, i3), f16, 3x3
 *
 *     UPCAST i1 8, UPCAST i3 4        an item: 8 channels of 4 results
 *     i1.o, i2.i lanes                a group: 18 of these along channels, 7 rows
 *
 * Where results are too few for that to fill a GPU, latency decides, and there is an item for each
 * (gpu_reduce.c). */
#include "choose.h"

enum {
    MOST_ROW = 4,  /* results of a row that an item has */
    ROWS_LANES = 8 /* items along rows that a window goes over */
};

/* The range along which results lie side by side, or NULL. */
static Node *stored_along(const Nest *n, const View *v)
{
    int64_t stride;
    for (int i = 0; i < v->nrange; i++)
        if (range_extent(v->range[i]) > 1 &&
            access_stride(n->k, v->store[0], v->range[i], &stride) && stride == 1)
            return v->range[i];
    return NULL;
}

bool goes_along(const Nest *n, Node *load, Node *range, int64_t run, bool *lay_out)
{
    Context *c = n->k->c;
    int64_t stride;
    Node *zero = idx(c, 0);
    const Move m = access_move(c, load, range);
    if (!dtype_is_float(load->dtype) || m.kind != MOVE_AXIS || m.stride != 1)
        return false;
    Node *first = substitute(c, load->src[first_coord(load) + m.axis], 1, &range, &zero);
    *lay_out = !access_stride(n->k, load, range, &stride) || stride != 1;
    return idx_is(idx_mod(c, first, idx(c, run)), 0);
}

/* Elements in 16 bytes of the narrowest of what is read and written along the range; 0: some of it
 * does not lie side by side, and is no weight, which may be laid so. */
static int64_t run_along(const Nest *n, const View *v, const Buffer *const *bufs, Node *range)
{
    int bytes = dtype_info[v->store[0]->dtype].bytes;
    for (int i = 0; i < v->nload; i++)
        if (depends_on(v->load[i], range) && dtype_info[v->load[i]->dtype].bytes < bytes)
            bytes = dtype_info[v->load[i]->dtype].bytes;
    const int64_t run = n->target->machine.access / bytes;
    bool good = bytes == 2 || bytes == 4, lay_out;
    for (int i = 0; i < v->nload && good; i++)
        good = !depends_on(v->load[i], range) ||
               (goes_along(n, v->load[i], range, run, &lay_out) &&
                (!lay_out || bufs[v->load[i]->src[0]->arg.i]->kind == BUF_WEIGHT));
    return good ? run : 0;
}

/* Does the load move with both, along one axis of its buffer? */
static bool slides(const Node *load, Node *a, Node *b)
{
    for (uint32_t i = 2; i < load->nsrc; i++)
        if (depends_on(load->src[i], a) && depends_on(load->src[i], b))
            return true;
    return false;
}

/* All that is reduced are the terms of a window, too few to be divided among items. */
static bool is_window(const View *v, const Machine *m)
{
    const Node *r = v->nreduce ? v->reduce[0] : NULL;
    int64_t terms = 1;
    for (uint32_t i = r ? reduce_ranges(r) : 0; r && i < r->nsrc; i++) {
        const int64_t extent = range_extent(r->src[i]);
        bool any = extent == 1;
        terms = extent < 1 ? INT64_MAX : sat_mul(terms, extent);
        for (int j = 0; j < v->nload && !any; j++)
            for (int k = 0; k < v->nrange && !any; k++)
                any = slides(v->load[j], r->src[i], v->range[k]);
        if (!any)
            return false;
    }
    return v->nreduce < 2 && terms < 2 * m->warp;
}

/* The range of results, but for two of them, whose neighbours are the nearest in memory, or NULL.
 */
static Node *row_of_results(const Nest *n, const View *v, const Node *beside, const Node *but)
{
    Node *best = NULL;
    int64_t nearest = INT64_MAX, stride;
    for (int i = 0; i < v->nrange; i++)
        if (v->range[i] != beside && v->range[i] != but && range_extent(v->range[i]) > 1 &&
            access_stride(n->k, v->store[0], v->range[i], &stride) && stride > 0 &&
            stride < nearest) {
            best = v->range[i];
            nearest = stride;
        }
    return best;
}

static int64_t divisor_upto(int64_t extent, int64_t most)
{
    int64_t d = most < extent ? most : extent;
    while (extent % d)
        d--;
    return d;
}

/* So many neighbours of an axis, as many as divide it, are items of a group, blocks are the
 * grid's. Their names go in front of an order. */
static bool lanes_and_grid(Nest *n, int axis, int64_t *left, int64_t most, const char **order)
{
    const int64_t extent = n->axis[axis].extent,
                  lanes = divisor_upto(extent, most < *left ? most : *left);
    int inner = axis, outer = -1;
    if (lanes < extent && lanes > 1) {
        if (!nest_opt(n, OPT_SPLIT, n->axis[axis].name, lanes))
            return false;
        outer = nest_last_split(n)->outer;
        inner = nest_last_split(n)->inner;
    } else if (lanes == 1) {
        outer = axis;
        inner = -1;
    }
    if ((outer >= 0 && n->axis[outer].extent != 1 &&
         !nest_opt(n, OPT_BIND, n->axis[outer].name, BOUND_GRID)) ||
        (inner >= 0 && n->axis[inner].extent != 1 &&
         !nest_opt(n, OPT_BIND, n->axis[inner].name, BOUND_LANE)))
        return false;
    if (inner >= 0 && n->axis[inner].extent != 1)
        *order = **order ? arena_printf(n->arena, "%s %s", n->axis[inner].name, *order)
                         : n->axis[inner].name;
    *left /= lanes;
    return true;
}

/* What is left of an axis, some neighbours of which are copies of an item; -1: it cannot be. */
static int copies(Nest *n, const Node *range, int64_t size)
{
    const int axis = nest_root(n, range);
    if (size == 1)
        return axis;
    return nest_opt(n, OPT_UPCAST, n->axis[axis].name, size) ? nest_last_split(n)->outer : -1;
}

/* Copies of an item, neighbours of it in its group, the grid. */
static bool bind_runs(Nest *n, const View *v, Node *beside, int64_t run, int64_t full)
{
    const int64_t items = n->target->machine.group / 4;
    Node *row = row_of_results(n, v, beside, NULL), *rows = row_of_results(n, v, beside, row);
    int64_t each = row && v->nreduce ? divisor_upto(range_extent(row), MOST_ROW) : 1, left = items;
    while (each > 1 && full / each < (int64_t)n->target->machine.processors * items)
        each = divisor_upto(each, each - 1);
    const char *order = "";
    const int axis = copies(n, beside, run), along = row ? copies(n, row, each) : -1;
    if (axis < 0 || (row && along < 0) ||
        !lanes_and_grid(n, axis, &left, n->target->machine.warp, &order))
        return false;
    const int64_t down = left < ROWS_LANES ? left : ROWS_LANES,
                  room = row && rows && v->nreduce ? left / divisor_upto(range_extent(rows), down)
                                                   : left;
    if (row && !lanes_and_grid(n, along, &left, room, &order))
        return false;
    for (int i = v->nrange; i-- > 0;)
        if (v->range[i] != beside && v->range[i] != row && range_extent(v->range[i]) != 1 &&
            !lanes_and_grid(n, nest_root(n, v->range[i]), &left, left, &order))
            return false;
    for (int i = 0; i < n->norder; i++)
        if (n->axis[n->order[i]].reduced)
            order = nest_and_name(n, order, n->order[i]);
    return !*order || nest_opt(n, OPT_ORDER, order, 0);
}

/* Results that lie side by side along several short axes, of elements that lie otherwise (an image
 * whose three channels become innermost, and four): an item has 16 bytes of the innermost two.
 *
 *     32 images of 230 x 230 x 4 (i1, i2, i3), f16     UPCAST i3 4, UPCAST i2 2 */
static bool bind_short_runs(Nest *n, const View *v, Node *beside, int64_t items)
{
    const Machine *m = &n->target->machine;
    const int bytes = dtype_info[v->store[0]->dtype].bytes;
    const int64_t own = range_extent(beside), /* 0: only a run knows */
        run = m->access / bytes, each = own > 0 ? run / own : 0;
    Node *row = row_of_results(n, v, beside, NULL);
    int64_t stride, left = m->group;
    if (v->nreduce || !each || own >= run || run % own || !row ||
        !access_stride(n->k, v->store[0], row, &stride) || stride != own ||
        range_extent(row) % each || items / run < (int64_t)m->processors * m->group)
        return false;
    for (int i = 0; i < v->nload; i++)
        if (depends_on(v->load[i], row) &&
            (!access_stride(n->k, v->load[i], row, &stride) || stride != 1))
            return false;
    const char *order = "";
    const int along = copies(n, row, each);
    if (along < 0 || !nest_opt(n, OPT_UPCAST, n->axis[nest_root(n, beside)].name, own) ||
        !lanes_and_grid(n, along, &left, left, &order))
        return false;
    for (int i = v->nrange; i-- > 0;)
        if (v->range[i] != beside && v->range[i] != row && range_extent(v->range[i]) != 1 &&
            !nest_opt(n, OPT_BIND, n->axis[nest_root(n, v->range[i])].name, BOUND_GRID))
            return false;
    return true;
}

/* Several sums of a few terms each, of the same loads: an item has all of them, of as many
 * neighbours as leave items for all processors.
 *
 *     2 x 32 x 256 x 56 sums of 56 terms (i0, i1, i2, i3), bf16     UPCAST i0 2, UPCAST i2 8 */
bool choose_joint_sums(Nest *n, const Buffer *const *bufs)
{
    const View v = kernel_view(n->k);
    const Machine *m = &n->target->machine;
    Node *beside = v.nstore == 1 && v.nreduce == 1 ? stored_along(n, &v) : NULL, *joint = NULL;
    int64_t run = beside ? run_along(n, &v, bufs, beside) : 0, items = 1, left = m->group / 4;
    for (int i = 0; i < v.nrange; i++) {
        items = range_extent(v.range[i]) < 1 ? 0 : sat_mul(items, range_extent(v.range[i]));
        joint = is_of_same_loads(n, &v, v.range[i]) ? v.range[i] : joint;
    }
    if (!run || !joint || joint == beside || v.reduce[0]->nsrc != reduce_ranges(v.reduce[0]) + 1 ||
        range_extent(v.reduce[0]->src[v.reduce[0]->nsrc - 1]) > 4 * m->warp)
        return false;
    items /= range_extent(joint);
    while (run > 1 &&
           (range_extent(beside) % run || items / run < (int64_t)m->processors * m->group))
        run /= 2;
    const char *order = "";
    if (!nest_opt(n, OPT_UPCAST, n->axis[nest_root(n, joint)].name, range_extent(joint)))
        return false;
    const int axis = copies(n, beside, run);
    if (axis < 0 || !lanes_and_grid(n, axis, &left, m->warp, &order))
        return false;
    for (int i = v.nrange; i-- > 0;)
        if (v.range[i] != beside && v.range[i] != joint && range_extent(v.range[i]) != 1 &&
            !lanes_and_grid(n, nest_root(n, v.range[i]), &left, left, &order))
            return false;
    return !*order || nest_opt(n, OPT_ORDER, order, 0);
}

/* Rows of numbers that are computed from bytes, as many as a run says (a cache of keys or values in
 * bytes): an item has 16 bytes of results, whose place is computed once, and what the blocks have
 * once, is read once.
 *
 *     8 x (past + 1) x 2 x 32 (i0, i1, i2, i3), f16 of i8     UPCAST i3 8 */
static bool copies_of_bytes(Nest *n, const View *v, const Node *beside)
{
    const int64_t run = n->target->machine.access / dtype_info[v->store[0]->dtype].bytes;
    bool sized = false, bytes = false;
    int64_t stride;
    if (v->nreduce || v->nstore != 1 || range_extent(beside) < 1 || range_extent(beside) % run)
        return false;
    for (int i = 0; i < v->nrange; i++)
        sized |= range_extent(v->range[i]) < 1;
    for (int i = 0; i < v->nload; i++) {
        if (!depends_on(v->load[i], beside))
            continue;
        if (dtype_info[v->load[i]->dtype].bytes != 1 ||
            !access_stride(n->k, v->load[i], beside, &stride) || stride != 1)
            return false;
        bytes = true;
    }
    return sized && bytes && copies(n, beside, run) >= 0;
}

bool choose_run_opts(Nest *n, const Buffer *const *bufs, Layout *want)
{
    const View v = kernel_view(n->k);
    const Machine *m = &n->target->machine;
    const bool floats = v.nstore && v.nload && dtype_is_float(v.store[0]->dtype);
    Node *beside = floats ? stored_along(n, &v) : NULL;
    const int64_t run = beside ? run_along(n, &v, bufs, beside) : 0;
    int64_t items = 1;
    for (int i = 0; i < v.nrange; i++)
        items = range_extent(v.range[i]) < 1 ? 0 : sat_mul(items, range_extent(v.range[i]));
    if (beside && !run && copies_of_bytes(n, &v, beside))
        return true;
    if (beside && !run)
        return bind_short_runs(n, &v, beside, items);
    if (!run || range_extent(beside) % run || !is_window(&v, m) ||
        items / run < (int64_t)m->processors * m->group ||
        !bind_runs(n, &v, beside, run, items / run))
        return false;
    for (int i = 0; i < v.nload; i++) {
        const int arg = (int)v.load[i]->src[0]->arg.i;
        bool lay_out = false;
        if (depends_on(v.load[i], beside) && goes_along(n, v.load[i], beside, run, &lay_out) &&
            lay_out && !want[arg].n)
            layout_put_last(&want[arg], bufs[arg]->rank,
                            access_move(n->k->c, v.load[i], beside).axis);
    }
    return true;
}
