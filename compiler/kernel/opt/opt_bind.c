/* opt_bind.c - MASK: an axis is rounded up; BIND: loops that the groups and items of a GPU are. */
#include <limits.h>

#include "opt.h"

/* A reduce with a state of several values runs over the axis. */
static bool in_state(const Nest *n, int axis)
{
    Arena *a = arena_new();
    int count;
    bool found = false;
    Node **order = graph_toposort(a, 1, &n->k->sink, &count);
    for (int i = 0; i < count; i++)
        found |= order[i]->op == OP_REDUCE && reduce_size(order[i]) > 1 &&
                 depends_on(order[i]->src[0], n->k->axes[axis].range);
    arena_free(a);
    return found;
}

const char *opt_mask(Nest *n, const Opt *o, int axis)
{
    NestAxis *x = &n->axis[axis];
    if (n->shared && !opt_on_gpu(n) && (x->extent >= 0 || !x->reduced))
        return opt_refuse(n, "MASK %s: this target has loops of their own for what is left over",
                          o->axis);
    if (axis >= n->k->naxis || x->within || x->split >= 0 || x->bound || o->amount < 2)
        return opt_refuse(n,
                          "MASK %s %lld: it takes an axis that no other opt has changed, and a "
                          "multiple of 2 or more",
                          o->axis, (long long)o->amount);
    if (n->shared && in_state(n, axis))
        return opt_refuse(n, "MASK %s: a reduce along it has a state of several values", o->axis);
    x->within = x->extent;
    x->granule = o->amount;
    x->most = ceil_div(x->most, o->amount) * o->amount;
    if (x->extent >= 0 || x->most == o->amount) /* one block, whatever a run says */
        x->extent = x->most;
    return NULL;
}

/* Of the reduce that has most: how many items of a group have a part of its terms each. */
static int64_t items_of_reduces(const Nest *n, Arena *a)
{
    int count;
    int64_t most = 1;
    Node **order = graph_toposort(a, 1, &n->k->sink, &count);
    for (int i = 0; i < count; i++) {
        int64_t items = 1;
        for (int j = 0; j < n->naxis && order[i]->op == OP_REDUCE; j++) {
            const NestAxis *x = &n->axis[j];
            bool over = false;
            for (uint32_t s = reduce_ranges(order[i]); s < order[i]->nsrc; s++)
                over |= order[i]->src[s] == n->k->axes[x->root].range;
            if (over && x->reduced && x->bound && x->bound != BOUND_CLUSTER)
                items = sat_mul(items, x->extent);
        }
        most = items > most ? items : most;
    }
    return most;
}

/* Some reduce over the axis is computed anew in the loops of another one. */
static bool in_other_reduce(const Nest *n, int root, Arena *a)
{
    int count;
    Node **order = graph_toposort(a, 1, &n->k->sink, &count), *range = n->k->axes[root].range;
    for (int i = 0; i < count; i++) {
        bool over = false;
        for (uint32_t s = 1; s < order[i]->nsrc && order[i]->op == OP_REDUCE; s++)
            over |= order[i]->src[s] == range;
        for (int j = 0; over && j < n->k->naxis; j++)
            if (n->axis[j].reduced && moves_with(a, order[i], n->k->axes[j].range))
                return true;
    }
    return false;
}

static bool has_place(const Nest *n)
{
    for (int i = 0; i < n->k->naxis; i++)
        if (n->axis[i].staged || n->axis[i].scanned)
            return true;
    return n->nstage > 0;
}

/* Items share the terms of a sum. */
static const char *bind_reduced_refused(Nest *n, const Opt *o, int axis, Arena *a)
{
    const NestAxis *x = &n->axis[axis];
    if (n->cluster >= 0 && !n->inner)
        return opt_refuse(n, "BIND %s %s: a cluster shares the terms already", o->axis,
                          bound_name[o->amount]);
    if (o->amount == BOUND_GRID)
        return opt_refuse(n,
                          "BIND %s grid: the groups of a grid do not meet: only the items of one "
                          "group share what is reduced",
                          o->axis);
    const Split *s = n->split;
    for (int i = 0; i < n->nsplit && s->outer != axis; i++)
        s++;
    const bool of_row = n->inner && s < n->split + n->nsplit && nest_has_row(n, s->inner);
    if (n->shared && has_place(n) && !of_row)
        return opt_refuse(n, "BIND %s %s: the kernel has values in places, or a scan", o->axis,
                          bound_name[o->amount]);
    if (n->shared && in_other_reduce(n, x->root, a))
        return opt_refuse(n, "BIND %s %s: what is reduced along it moves with another reduced axis",
                          o->axis, bound_name[o->amount]);
    return NULL;
}

/* Groups that run together have a part of the terms each, and join their sums in memory of the
 * first of them. */
static const char *bind_cluster(Nest *n, const Opt *o, int axis)
{
    enum { MOST = 8 };
    const NestAxis *x = &n->axis[axis];
    const uint64_t apart =
        n->target ? n->target->machine.units : UINT64_MAX; /* groups that meet: sm_90 and later */
    if (!n->tc || !n->tc->lanes || n->tc->acc != INGOT_F32 || !x->reduced ||
        (n->shared && !(apart >> TC_WGMMA64_F16 & 1)))
        return opt_refuse(n,
                          "BIND %s cluster: it is for terms of a matrix unit's sums (TC before) of "
                          "f32, on sm_90a",
                          o->axis);
    bool of_row = false;
    for (int i = 0; i < n->nsplit && n->inner; i++)
        of_row |= n->split[i].outer == axis && nest_has_row(n, n->split[i].inner);
    if (n->inner && !of_row)
        return opt_refuse(n, "BIND %s cluster: of rows in registers it takes blocks of a row",
                          o->axis);
    if (!n->inner && (n->sharing || n->cluster >= 0))
        return opt_refuse(n, "BIND %s cluster: the terms are shared already", o->axis);
    if (x->extent < 2 || x->extent > MOST)
        return opt_refuse(n, "BIND %s cluster: 2 to %d groups meet, this axis has %lld", o->axis,
                          MOST, (long long)x->extent);
    n->axis[axis].bound = BOUND_CLUSTER;
    n->cluster = axis;
    return NULL;
}

/* Do reduces over the axis have a state that neighbours can hand each other? */
static bool can_join(const Nest *n, int axis, Arena *a)
{
    int count;
    Node **order = graph_toposort(a, 1, &n->k->sink, &count),
         *range = n->k->axes[n->axis[axis].root].range;
    for (int i = 0; i < count; i++) {
        const Node *r = order[i];
        if (r->op != OP_REDUCE || !owns_range(r, range))
            continue;
        const int monoid = (int)reduce_monoid(r);
        if (reduce_size(r) > 1 || (r->dtype != INGOT_F32 && r->dtype != INGOT_I32) ||
            (monoid != INGOT_REDUCE_ADD && monoid != INGOT_REDUCE_MAX &&
             monoid != INGOT_REDUCE_MIN))
            return false;
    }
    return true;
}

/* Items that are neighbours and join their parts without memory. */
/* Another axis that a warp's lanes are of, of a reduce that has this axis, too; -1: none. */
static int warp_of_same_reduce(const Nest *n, int axis, Arena *a)
{
    int count;
    Node **order = graph_toposort(a, 1, &n->k->sink, &count);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < n->naxis && order[i]->op == OP_REDUCE; j++)
            if (j != axis && n->axis[j].bound == BOUND_WARP &&
                owns_range(order[i], n->k->axes[n->axis[j].root].range) &&
                owns_range(order[i], n->k->axes[n->axis[axis].root].range))
                return j;
    return -1;
}

static const char *bind_across_refused(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    const int most = n->target ? n->target->machine.subgroup : INT_MAX;
    if (!x->reduced)
        return opt_refuse(n, "BIND %s warp: warps are of a matrix unit: TC comes before", o->axis);
    if (!most)
        return opt_refuse(n, "BIND %s warp: this target has no sub-groups", o->axis);
    if (x->extent < 2 || x->extent > most || x->extent & (x->extent - 1) ||
        (n->warp >= 0 && n->axis[n->warp].extent != x->extent))
        return opt_refuse(n,
                          "BIND %s warp: of what is reduced it takes 2, 4, 8 .. up to %d parts, of "
                          "all axes as many",
                          o->axis, most);
    Arena *a = arena_new();
    const bool good = can_join(n, axis, a);
    const int other = warp_of_same_reduce(n, axis, a);
    arena_free(a);
    if (other >= 0)
        return opt_refuse(n, "BIND %s warp: the lanes of a warp are of %s: BIND %s lane", o->axis,
                          n->axis[other].name, o->axis);
    return good ? NULL
                : opt_refuse(
                      n,
                      "BIND %s warp: neighbours join sums, or the largest or least, of f32 or i32",
                      o->axis);
}

const char *opt_bind(Nest *n, const Opt *o, int axis)
{
    const int most = n->target ? n->target->machine.items : INT_MAX;
    NestAxis *x = &n->axis[axis];
    const char *why = NULL;
    if (n->shared && !opt_on_gpu(n))
        return opt_refuse(n, "BIND %s: this target has no grid: THREAD shares loops among threads",
                          o->axis);
    if (x->bound || (n->shared && n->k->sink->nsrc != 1))
        return opt_refuse(n, "BIND %s: it takes a loop that is not bound already", o->axis);
    if (n->tc && o->amount == BOUND_LANE)
        return opt_refuse(n, "BIND %s lane: the lanes are those of %s: BIND %s warp", o->axis,
                          n->tc->name, o->axis);
    if (!n->tc && o->amount == BOUND_WARP && (why = bind_across_refused(n, o, axis)))
        return why;
    if (o->amount == BOUND_CLUSTER)
        return bind_cluster(n, o, axis);
    Arena *a = arena_new();
    if (x->reduced)
        why = bind_reduced_refused(n, o, axis, a);
    int64_t items = 1, sharing = 1;
    x->bound = (Bound)o->amount;
    for (int i = 0; i < n->naxis; i++)
        if (opt_is_item(n, i) && !n->axis[i].reduced)
            items = n->axis[i].extent < 0 ? INT64_MAX : sat_mul(items, n->axis[i].extent);
    if (n->sharing || x->reduced)
        sharing = items_of_reduces(n, a);
    arena_free(a);
    const int64_t together = sharing * (n->tc ? n->tc->lanes : 1);
    if (!why && opt_is_item(n, axis) && (x->extent < 0 || sat_mul(items, together) > most))
        why = opt_refuse(n, "BIND %s %s: a group has at most %d items, this axis %lld", o->axis,
                         bound_name[o->amount], most, (long long)x->extent);
    const int warp = !n->tc && o->amount == BOUND_WARP ? axis : n->warp;
    if (!why && warp >= 0 && sharing % n->axis[warp].extent)
        why =
            opt_refuse(n, "BIND %s %s: %lld parts are not whole warps of %lld", o->axis,
                       bound_name[o->amount], (long long)sharing, (long long)n->axis[warp].extent);
    if (why) {
        x->bound = BOUND_NOT;
        return why;
    }
    n->warp = warp;
    n->sharing = sharing > 1 ? (int)sharing : n->sharing;
    if (opt_is_item(n, axis))
        n->items = (int)(items * together);
    return NULL;
}
