/* gpu_run_time.c - opts for GPUs of products of a few rows with a matrix whose size a run says.
 *
 * A decoder's new token meets the keys and values of all tokens before it:
 *
 *     scores[kv, q, pos] = sum over d of query[kv, q, d] * key[kv, pos, d]      8 x 4 x 2,049
 *     y[kv, q, d] = sum over pos of score[kv, q, pos] * value[kv, pos, d]       8 x 4 x 64
 *
 * Each element of the matrix (keys, values) is read once by one item, 16 bytes at a time, and
 * multiplied with all rows (q), which are copies of the item:
 *
 *   - size along the results: an item has a position and walks along its key
 *
 *         UPCAST q 4  UNROLL d 8  MASK pos 64  SPLIT pos 64  BIND pos.o grid  BIND pos.i lane
 *
 *   - size along the terms: items of a group share the positions, each has 8 columns of every
 *     512th, and their sums are joined at the end
 *
 *         UPCAST q 4  UPCAST d 8  BIND d.o grid  MASK pos 512  SPLIT pos 512
 *         SPLIT pos.i 32  BIND pos.i.o lane  BIND pos.i.i warp
 *
 * Whoever runs it says how many groups or turns that are, so no time is lost where a context is
 * short. */
#include "choose.h"

enum {
    AT_ONCE = 4,  /* elements of an item whose loads are under way together */
    MOST_ROWS = 8 /* sums of an item beside each other: they multiply what it has read */
};

/* Positions of a group: groups are many where there are few positions. */
static int64_t columns_of_group(const Machine *m)
{
    return 2 * m->warp;
}

/* Which axes there are. */
typedef struct {
    Node *matrix;       /* the load of it */
    int rows, columns;  /* of results: only the other factor, only the matrix moves; -1: none */
    int shared;         /* of which groups have some rows each, or -1 */
    Node *terms;        /* the one range of terms that has several */
    bool sized, summed; /* some size is a run's; it is that of the terms */
} LongProduct;

/* The factor that lies side by side along a range and is the longer one; NULL: there is none. */
static Node *longer_factor(const View *v)
{
    if (v->nfactor != 2 || !v->dot || v->nreduce != 1 || v->nstore != 1)
        return NULL;
    double size[2] = {1, 1};
    for (int f = 0; f < 2; f++) {
        for (int i = 0; i < v->nrange; i++)
            if (depends_on(v->factor[f], v->range[i]))
                size[f] *= (double)(v->range[i]->hi + 1);
        for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
            if (!depends_on(v->factor[f], v->dot->src[i]))
                return NULL;
    }
    return size[0] == size[1] ? NULL : v->factor[size[1] > size[0]];
}

static bool find_axes(const Nest *n, const View *v, LongProduct *p)
{
    *p = (LongProduct){.matrix = longer_factor(v), .rows = -1, .columns = -1, .shared = -1};
    if (!p->matrix)
        return false;
    const Node *other = v->factor[v->factor[0] == p->matrix];
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
        if (range_extent(v->dot->src[i]) != 1) {
            if (p->terms)
                return false;
            p->terms = v->dot->src[i];
        }
    for (int i = 0; i < v->nrange; i++) {
        const int axis = nest_root(n, v->range[i]);
        const bool here = depends_on(p->matrix, v->range[i]),
                   there = depends_on(other, v->range[i]);
        if (n->axis[axis].extent == 1 || (here && there))
            continue;
        int *const of = here ? &p->columns : &p->rows;
        if ((!here && !there) || *of >= 0)
            return false;
        *of = axis;
    }
    if (!p->terms || p->columns < 0)
        return false;
    p->summed = range_extent(p->terms) < 1;
    p->sized = p->summed || n->axis[p->columns].extent < 0;
    return p->rows < 0 || (n->axis[p->rows].extent > 0 && n->axis[p->rows].extent <= MOST_ROWS);
}

/* A sum of a stored matrix weighed by what is computed of rows, which other reduces along the same
 * terms are part of (few_rows.c). */
static bool find_weighed(const Nest *n, const View *v, LongProduct *p)
{
    Node *sum = NULL, *row = NULL;
    *p = (LongProduct){.rows = -1, .columns = -1, .shared = -1};
    for (int i = 0; i < v->nreduce; i++) {
        Node *r = v->reduce[i], *body = r->src[0];
        if (r->nsrc != 2 || range_extent(r->src[1]) > 0)
            return false;
        for (int k = 0; k < 2 && body->op == OP_MUL && reduce_monoid(r) == INGOT_REDUCE_ADD; k++)
            if (below_casts(body->src[k])->op == OP_LOAD &&
                below_casts(body->src[1 - k])->op != OP_LOAD) {
                if (sum)
                    return false;
                sum = r;
                p->matrix = below_casts(body->src[k]);
                row = body->src[1 - k];
            }
    }
    for (int i = 0; i < v->nrange && sum; i++) {
        const int axis = nest_root(n, v->range[i]);
        const bool here = depends_on(p->matrix, v->range[i]), there = depends_on(row, v->range[i]);
        if (n->axis[axis].extent == 1 || (here && there))
            continue;
        int *const of = here ? &p->columns : &p->rows;
        if ((!here && !there) || *of >= 0)
            return false;
        *of = axis;
    }
    if (!sum || p->columns < 0)
        return false;
    p->terms = sum->src[1];
    return p->rows < 0 || (n->axis[p->rows].extent > 0 && n->axis[p->rows].extent <= MOST_ROWS);
}

static bool lies_along(const Nest *n, const Node *load, Node *range)
{
    int64_t stride;
    return access_stride(n->k, (Node *)load, range, &stride) && stride == 1;
}

/* All that both factors move with is the grid's. */
static bool bind_others(Nest *n, const View *v, const LongProduct *p)
{
    for (int i = 0; i < v->nrange; i++) {
        const int axis = nest_root(n, v->range[i]);
        if (axis != p->rows && axis != p->shared && axis != p->columns &&
            n->axis[axis].extent != 1 && !nest_opt(n, OPT_BIND, n->axis[axis].name, BOUND_GRID))
            return false;
    }
    return p->rows < 0 || nest_opt(n, OPT_UPCAST, n->axis[p->rows].name, n->axis[p->rows].extent);
}

/* Blocks of an axis whose size is a run's are turns or groups, what is in one is in lanes, of turns
 * some elements in each, whose loads are under way together. */
static bool bind_sized(Nest *n, int axis, int64_t lanes, bool grid)
{
    int64_t each = grid ? 1 : AT_ONCE;
    while (each > 1 && lanes * each >= n->axis[axis].most)
        each /= 2;
    if (!nest_opt(n, OPT_MASK, n->axis[axis].name, lanes * each) ||
        !nest_opt(n, OPT_SPLIT, n->axis[axis].name, lanes * each))
        return false;
    const int outer = nest_last_split(n)->outer;
    int inner = nest_last_split(n)->inner;
    if (grid)
        return nest_opt(n, OPT_BIND, n->axis[outer].name, BOUND_GRID) &&
               nest_opt(n, OPT_BIND, n->axis[inner].name, BOUND_LANE);
    if (each > 1) {
        if (!nest_opt(n, OPT_SPLIT, n->axis[inner].name, lanes))
            return false;
        inner = nest_last_split(n)->inner;
    }
    return bind_lanes(n, inner, n->target->machine.subgroup);
}

static bool columns_in_lanes(Nest *n, const View *v, const LongProduct *p, int64_t run)
{
    const int terms = nest_root(n, p->terms);
    if (!lies_along(n, p->matrix, p->terms) || n->axis[terms].extent % run ||
        n->axis[p->columns].most < columns_of_group(&n->target->machine))
        return false;
    return bind_others(n, v, p) && nest_opt(n, OPT_UNROLL, n->axis[terms].name, run) &&
           bind_sized(n, p->columns, columns_of_group(&n->target->machine), true);
}

static bool terms_in_lanes(Nest *n, const View *v, const LongProduct *p, int64_t run)
{
    if (!lies_along(n, p->matrix, n->k->axes[p->columns].range) ||
        n->axis[p->columns].extent % run ||
        n->axis[nest_root(n, p->terms)].most < n->target->machine.group)
        return false;
    if (!bind_others(n, v, p) || !nest_opt(n, OPT_UPCAST, n->axis[p->columns].name, run))
        return false;
    const int outer = nest_last_split(n)->outer;
    return (n->axis[outer].extent == 1 || nest_opt(n, OPT_BIND, n->axis[outer].name, BOUND_GRID)) &&
           bind_sized(n, nest_root(n, p->terms), n->target->machine.group, false);
}

/* Some rows are other groups', where there would be fewer groups than processors: what is computed
 * of a row is no more then, and the matrix comes from a cache. */
static bool share_rows(Nest *n, const View *v, LongProduct *p, int64_t run)
{
    int64_t groups = 1, rows = p->rows < 0 ? 1 : n->axis[p->rows].extent;
    const int64_t all = rows;
    for (int i = 0; i < v->nrange; i++) {
        const int axis = nest_root(n, v->range[i]);
        groups = axis == p->rows ? groups : sat_mul(groups, n->axis[axis].most);
    }
    for (groups /= run; rows % 2 == 0 && 2 * groups <= n->target->machine.processors; rows /= 2)
        groups *= 2;
    if (rows == all)
        return true;
    if (!nest_opt(n, OPT_SPLIT, n->axis[p->rows].name, rows))
        return false;
    const int outer = nest_last_split(n)->outer;
    p->shared = p->rows;
    p->rows = rows > 1 ? nest_last_split(n)->inner : -1;
    return nest_opt(n, OPT_BIND, n->axis[outer].name, BOUND_GRID);
}

bool choose_weighed_opts(Nest *n)
{
    const View v = kernel_view(n->k);
    LongProduct p;
    if (!n->target->unrolls || v.nreduce < 2 || !find_weighed(n, &v, &p))
        return false;
    const Machine *m = &n->target->machine;
    const int64_t run = m->access / dtype_info[p.matrix->dtype].bytes;
    if (run < 2 || m->subgroup < m->warp || !share_rows(n, &v, &p, run) ||
        !terms_in_lanes(n, &v, &p, run))
        return false;
    for (int i = 0; i < v.nreduce; i++)
        if (v.reduce[i]->src[1] != p.terms &&
            !bind_sized(n, nest_root(n, v.reduce[i]->src[1]), n->target->machine.group, false))
            return false;
    if (n->target->triggers)
        (void)nest_opt(n, OPT_TRIGGER, "waited", 0);
    return true;
}

bool choose_run_time_opts(Nest *n)
{
    const View v = kernel_view(n->k);
    LongProduct p;
    if (!n->target->unrolls || !find_axes(n, &v, &p) || !p.sized)
        return false;
    const int64_t run = n->target->machine.access / dtype_info[p.matrix->dtype].bytes;
    if (run < 2 || (p.summed && n->axis[p.columns].extent < 0))
        return false;
    if (!(p.summed ? terms_in_lanes(n, &v, &p, run) : columns_in_lanes(n, &v, &p, run)))
        return false;
    if (n->target->triggers)
        (void)nest_opt(n, OPT_TRIGGER, "waited", 0);
    return true;
}
