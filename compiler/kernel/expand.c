/* expand.c - replay a kernel's opts.
 *
 * A tile is a loop nest whose stores are copies of the kernel's store for neighbouring
 * coordinates.  SPLIT makes two loops of one, so that ORDER can keep a block in cache.  VECTOR turns
 * the inner part of an axis into lanes; UPCAST turns it into copies, which share whatever they have
 * in common because nodes are interned: the copies of a contraction share the loads of their
 * operands, and all their reduces run in one loop.
 * Where the amount does not divide the extent, the rest becomes a tile of its own (PEEL).
 * THREAD marks the outermost loops, which are cut where their iterations end: no tile is divided. */
#include <string.h>

#include "kernel.h"

typedef struct {
    Arena *a;
    Context *c;
    Tiles out;
} Expand;

static Tile *tile_add(Expand *x, const Tile *like)
{
    vec_push(x->a, x->out.tile, x->out.n, *like);
    return &x->out.tile[x->out.n - 1];
}

static int find(const TileAxis *axes, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(axes[i].name, name))
            return i;
    return -1;
}

static void drop(TileAxis *axes, int *n, int i)
{
    memmove(axes + i, axes + i + 1, (size_t)(*n - i - 1) * sizeof *axes);
    --*n;
}

static void replace(Expand *x, Tile *t, Node *from, Node *to)
{
    Node **fresh = NEWN(x->a, Node *, t->nstore);
    for (int i = 0; i < t->nstore; i++)
        fresh[i] = substitute(x->c, t->store[i], 1, &from, &to);
    t->store = fresh;
}

/* The axis becomes a loop of `count` with the suffix .o, or vanishes; gives its counter. */
static Node *outer(Expand *x, Tile *t, TileAxis *axes, int *n, int i, int64_t count)
{
    if (count == 1) {
        drop(axes, n, i);
        return idx(x->c, 0);
    }
    size_t len = strlen(axes[i].name);
    if (len + 3 < sizeof axes[i].name)
        memcpy(axes[i].name + len, ".o", 3);
    axes[i].range = range_new(x->c, t->next++, idx(x->c, count));
    return axes[i].range;
}

/* What remains of an axis when `done` elements at its start are dealt with; no opt touches it again. */
static Node *rest(Expand *x, Tile *t, int axis, int64_t done, int64_t count)
{
    Node *r = idx(x->c, 0);
    if (count == 1) {
        drop(t->axis, &t->naxis, axis);
    } else {
        r = t->axis[axis].range = range_new(x->c, t->next++, idx(x->c, count));
        snprintf(t->axis[axis].name + strlen(t->axis[axis].name),
                 sizeof t->axis[axis].name - strlen(t->axis[axis].name), ".r");
    }
    return idx_add(x->c, idx(x->c, done), r);
}

/* The axis becomes two loops, .o over blocks and .i within one; a block that is not whole is a tile of its own. */
static void split(Expand *x, int tile, const Opt *o)
{
    Tile *t = &x->out.tile[tile];
    int axis = find(t->axis, t->naxis, o->axis);
    int64_t extent, n = o->amount;
    if (axis < 0 || t->ntail || !idx_value(t->axis[axis].range->src[0], &extent) || n >= extent ||
        t->naxis == sizeof t->axis / sizeof *t->axis)
        return;
    int64_t count = extent / n, tail = extent - count * n;
    Node *from = t->axis[axis].range;
    if (tail) {
        Tile *end = tile_add(x, t);
        replace(x, end, from, rest(x, end, axis, count * n, tail));
        t = &x->out.tile[tile];
    }
    memmove(t->axis + axis + 1, t->axis + axis, (size_t)(t->naxis++ - axis) * sizeof *t->axis);
    Node *inner = t->axis[axis + 1].range = range_new(x->c, t->next++, idx(x->c, n));
    snprintf(t->axis[axis + 1].name, sizeof t->axis->name, "%.16s.i", o->axis);
    Node *o_range = outer(x, t, t->axis, &t->naxis, axis, count);
    replace(x, t, from, idx_add(x->c, idx_mul(x->c, o_range, idx(x->c, n)), inner));
}

static void upcast_copies(Expand *x, Tile *t, Node *from, Node *base, int64_t n)
{
    Node **fresh = NEWN(x->a, Node *, t->nstore * n);
    int count = 0;
    for (int i = 0; i < t->nstore; i++)
        for (int64_t u = 0; u < n; u++) {
            Node *to = idx_add(x->c, base, idx(x->c, u));
            fresh[count++] = substitute(x->c, t->store[i], 1, &from, &to);
        }
    t->store = fresh;
    t->nstore = count;
}

static void upcast(Expand *x, int tile, const Opt *o)
{
    Tile *t = &x->out.tile[tile];
    int axis = find(t->axis, t->naxis, o->axis);
    int64_t extent, n = o->amount;
    if (axis < 0 || t->ntail || !idx_value(t->axis[axis].range->src[0], &extent))
        return;
    if (n > extent)
        n = extent;
    int64_t count = extent / n, tail = extent - count * n;
    Node *from = t->axis[axis].range;
    if (tail) {
        Tile copy = *t;
        drop(copy.axis, &copy.naxis, axis);
        upcast_copies(x, &copy, from, idx(x->c, count * n), tail);
        tile_add(x, &copy);
        t = &x->out.tile[tile];
    }
    Node *o_range = outer(x, t, t->axis, &t->naxis, axis, count);
    upcast_copies(x, t, from, idx_mul(x->c, o_range, idx(x->c, n)), n);
}

/* A lane range: never a loop. */
static void make_lane(Expand *x, Tile *t, int64_t lanes)
{
    t->lanes = (int)lanes;
    t->lane = range_new(x->c, t->next++, idx(x->c, lanes));
}

/* Reduces that are the same for the whole axis would be repeated by a tile of its own for the rest: it joins this one. */
static bool shares_rows(Expand *x, const Tile *t, Node *range)
{
    int n;
    Node **order = graph_toposort(x->a, t->nstore, t->store, &n);
    bool any = false;
    for (int i = 0; i < n; i++)
        if (order[i]->op == OP_REDUCE) {
            int m;
            Node **below = graph_toposort(x->a, 1, &order[i], &m);
            for (int j = 0; j < m; j++)
                if (below[j] == range)
                    return false;
            any = true;
        }
    return any;
}

static void vector_row(Expand *x, Tile *t, int axis, int64_t extent, int64_t n)
{
    Context *c = x->c;
    Node *from = t->axis[axis].range, **stores = NEWN(x->a, Node *, 2 * t->nstore);
    int64_t count = extent / n, tail = extent - count * n;
    t->ntail = t->nstore;
    t->tail_beside = count > 1;
    snprintf(t->tail.name, sizeof t->tail.name, "%.16s.r", t->axis[axis].name);
    t->tail.range = tail > 1 ? range_new(c, t->next++, idx(c, tail)) : NULL;
    Node *end = idx_add(c, idx(c, count * n), t->tail.range ? t->tail.range : idx(c, 0));
    Node *o_range = outer(x, t, t->axis, &t->naxis, axis, count);
    make_lane(x, t, n);
    Node *to = idx_add(c, idx_mul(c, o_range, idx(c, n)), t->lane);
    for (int i = 0; i < t->nstore; i++) {
        stores[i] = substitute(c, t->store[i], 1, &from, &to);
        stores[t->nstore + i] = substitute(c, t->store[i], 1, &from, &end);
    }
    t->store = stores;
    t->nstore *= 2;
}

static void vector_output(Expand *x, int tile, const Opt *o)
{
    Tile *t = &x->out.tile[tile];
    int axis = find(t->axis, t->naxis, o->axis);
    int64_t extent, n = o->amount;
    if (axis < 0 || t->lane || !idx_value(t->axis[axis].range->src[0], &extent))
        return;
    if (extent > n && extent % n && axis == t->naxis - 1 &&
        shares_rows(x, t, t->axis[axis].range)) {
        vector_row(x, t, axis, extent, n);
        return;
    }
    int64_t done = 0;
    Node *from = t->axis[axis].range;
    Tile whole = *t;
    /* a part of a vector for what remains, or one element: 27 = 16 + the first 11 of 16; 16 + 5: of 8 */
    for (bool first = true; done < extent; first = false) {
        int64_t left = extent - done;
        bool part = n > left && left > 1 && n >= 8;
        while (n > left && !(part && n / 2 < left) && !(part && n == 8))
            n /= 2;
        if (!first) {
            tile_add(x, &whole);
            t = &x->out.tile[x->out.n - 1];
        }
        if (part) {
            drop(t->axis, &t->naxis, axis);
            make_lane(x, t, n);
            t->part = n > left ? (int)left : 0;
            replace(x, t, from, idx_add(x->c, idx(x->c, done), t->lane));
            break;
        }
        if (n < 4) {
            replace(x, t, from, rest(x, t, axis, done, extent - done));
            break;
        }
        int64_t count = (extent - done) / n;
        Node *o_range = outer(x, t, t->axis, &t->naxis, axis, count);
        if (done && count > 1)
            memcpy(t->axis[axis].name + strlen(t->axis[axis].name) - 1, "r", 2);
        make_lane(x, t, n);
        Node *to = idx_add(x->c, idx_mul(x->c, o_range, idx(x->c, n)), t->lane);
        replace(x, t, from, idx_add(x->c, idx(x->c, done), to));
        done += count * n;
    }
}

/* A reduced axis: partial results in the lanes, joined at the end; then the elements that remain. */
static void vector_reduce(Expand *x, Tile *t, const Opt *o)
{
    int axis = find(t->reduce, t->nreduce, o->axis);
    int64_t extent, n = o->amount;
    if (axis < 0 || !idx_value(t->reduce[axis].range->src[0], &extent) || n > extent)
        return;
    Context *c = x->c;
    int64_t count = extent / n, tail = extent - count * n;
    Node *from = t->reduce[axis].range;
    if (!t->lane || t->lanes != n || t->part) {
        if (t->lane)
            return;
        make_lane(x, t, n);
    }
    Node *loop = count > 1 ? range_new(c, t->next++, idx(c, count)) : NULL;
    Node *last = tail > 1 ? range_new(c, t->next++, idx(c, tail)) : NULL;
    Node *main_at = idx_add(c, idx_mul(c, loop ? loop : idx(c, 0), idx(c, n)), t->lane);
    Node *tail_at = idx_add(c, idx(c, count * n), last ? last : idx(c, 0));
    /* the tail's loops are others: what is known inside the first ones ends with them */
    Node *old[INGOT_MAX_RANK + 1] = {from}, *now[INGOT_MAX_RANK + 1] = {tail_at};
    int nold = 1;
    for (int i = 0; i < t->nstore; i++) {
        int ns;
        Node **order = graph_toposort(x->a, 1, &t->store[i], &ns), *r = NULL;
        for (int j = 0; j < ns && !r; j++)
            for (uint32_t s = 1; order[j]->op == OP_REDUCE && s < order[j]->nsrc; s++)
                if (order[j]->src[s] == from)
                    r = order[j];
        if (!r)
            continue;
        Node *src[INGOT_MAX_RANK + 2], *tail_src[INGOT_MAX_RANK + 2];
        int k = 1, kt = 1;
        src[0] = substitute(c, r->src[0], 1, &from, &main_at);
        for (uint32_t s = 1; s < r->nsrc; s++) {
            Node *range = r->src[s];
            if (range != from) {
                int o_at = 0;
                while (o_at < nold && old[o_at] != range)
                    o_at++;
                if (o_at == nold) {
                    old[nold] = range;
                    now[nold++] = tail ? range_new(c, t->next++, range->src[0]) : range;
                }
                src[k++] = range;
                tail_src[kt++] = now[o_at];
                continue;
            }
            if (loop)
                src[k++] = loop;
            if (last)
                tail_src[kt++] = last;
        }
        tail_src[0] = substitute(c, r->src[0], nold, old, now);
        Node *wide = k > 1 ? node_make(c, OP_REDUCE, r->dtype, r->arg, k, src, 0, NULL) : src[0];
        Node *joined =
            node_make(c, OP_REDUCE, r->dtype, r->arg, 2, (Node *[]){wide, t->lane}, 0, NULL);
        if (tail) {
            Node *more = kt > 1 ? node_make(c, OP_REDUCE, r->dtype, r->arg, kt, tail_src, 0, NULL)
                                : tail_src[0];
            joined = node_alu2(c, monoid_op((ingot_reduce_op)r->arg.i), r->dtype, joined, more);
        }
        t->store[i] = substitute(c, t->store[i], 1, &r, &joined);
    }
    if (loop) {
        t->reduce[axis].range = loop;
        snprintf(t->reduce[axis].name + strlen(t->reduce[axis].name), 3, ".o");
    } else {
        drop(t->reduce, &t->nreduce, axis);
    }
    for (int i = 1; tail && i < nold && t->nreduce < INGOT_MAX_RANK * 2; i++) {
        TileAxis *end = &t->reduce[t->nreduce++];
        snprintf(end->name, sizeof end->name, "r%d", (int)now[i]->arg.i);
        end->range = now[i];
    }
    if (last && t->nreduce < INGOT_MAX_RANK * 2) {
        TileAxis *end = &t->reduce[t->nreduce++];
        snprintf(end->name, sizeof end->name, "%.16s.r", o->axis);
        end->range = last;
    }
}

/* A reduce over the range in some store, or NULL. */
static Node *reduce_over(Expand *x, const Tile *t, Node *range)
{
    int n;
    Node **order = graph_toposort(x->a, t->nstore, t->store, &n);
    for (int i = 0; i < n; i++)
        for (uint32_t s = 1; order[i]->op == OP_REDUCE && s < order[i]->nsrc; s++)
            if (order[i]->src[s] == range)
                return order[i];
    return NULL;
}

/* n terms of a reduce a step, each with an accumulator of its own, joined at the end: one need not wait for the other. */
static void unroll(Expand *x, Tile *t, const Opt *o)
{
    Context *c = x->c;
    int axis = find(t->reduce, t->nreduce, o->axis);
    int64_t extent, n = o->amount;
    if (axis < 0 || !idx_value(t->reduce[axis].range->src[0], &extent) || extent % n)
        return;
    Node *from = t->reduce[axis].range,
         *loop = outer(x, t, t->reduce, &t->nreduce, axis, extent / n);
    for (Node *r; (r = reduce_over(x, t, from));) {
        Node **src = NEWN(x->a, Node *, r->nsrc), *joined = NULL;
        for (int64_t u = 0; u < n; u++) {
            Node *to = idx_add(c, idx_mul(c, loop, idx(c, n)), idx(c, u));
            int k = 1;
            src[0] = substitute(c, r->src[0], 1, &from, &to);
            for (uint32_t s = 1; s < r->nsrc; s++)
                if (r->src[s] != from || loop->op == OP_RANGE)
                    src[k++] = r->src[s] == from ? loop : r->src[s];
            Node *part =
                k > 1 ? node_make(c, OP_REDUCE, r->dtype, r->arg, k, src, 0, NULL) : src[0];
            joined =
                joined ? node_alu2(c, monoid_op((ingot_reduce_op)r->arg.i), r->dtype, joined, part)
                       : part;
        }
        replace(x, t, r, joined);
    }
}

/* Output loops and reduce loops in the order named; those not named keep their place after them. */
static void order_axes(TileAxis *axes, int n, const char *names)
{
    int at = 0;
    while (*names) {
        size_t len = strcspn(names, " ");
        for (int i = at; i < n; i++)
            if (strlen(axes[i].name) == len && !memcmp(axes[i].name, names, len)) {
                TileAxis moved = axes[i];
                memmove(axes + at + 1, axes + at, (size_t)(i - at) * sizeof *axes);
                axes[at++] = moved;
                break;
            }
        names += len;
        names += *names == ' ';
    }
}

/* The ranges of every reduce in the order of t->reduce. */
static void order_reduces(Expand *x, Tile *t)
{
    for (int i = 0; i < t->nstore; i++)
        for (bool again = true; again;) {
            int n;
            Node **order = graph_toposort(x->a, 1, &t->store[i], &n);
            again = false;
            for (int j = 0; j < n && !again; j++) {
                Node *r = order[j], *src[INGOT_MAX_RANK + 1];
                if (r->op != OP_REDUCE || r->nsrc < 3)
                    continue;
                int k = 1;
                src[0] = r->src[0];
                for (int a = 0; a < t->nreduce; a++)
                    for (uint32_t s = 1; s < r->nsrc; s++)
                        if (r->src[s] == t->reduce[a].range)
                            src[k++] = r->src[s];
                if (k != (int)r->nsrc || !memcmp(src, r->src, (size_t)k * sizeof *src))
                    continue;
                Node *fresh = node_make(x->c, OP_REDUCE, r->dtype, r->arg, k, src, 0, NULL);
                t->store[i] = substitute(x->c, t->store[i], 1, &r, &fresh);
                again = true;
            }
        }
}

/* Loops over the same axis; the inner part of a split one is another loop than its outer part. */
static bool same_axis(const TileAxis *a, const TileAxis *b)
{
    size_t n = strcspn(a->name, ".");
    return n == strcspn(b->name, ".") && !memcmp(a->name, b->name, n) &&
           !strstr(a->name, ".i") == !strstr(b->name, ".i");
}

/* The loops of the first tile down to the one that is named are cut; in the tiles of rests, those of them that are left.
 * An END that has no such loop (it clears a halo) is cut in its outermost one. */
static void thread(Expand *x, const Opt *o)
{
    const Tile *first = &x->out.tile[0];
    int n = find(first->axis, first->naxis, o->axis) + 1;
    n += n == 0 && first->naxis > 0;
    for (int i = 0; i < x->out.n; i++) {
        Tile *t = &x->out.tile[i];
        bool among = true;
        t->parts = (int)o->amount;
        while (among && t->fused < t->naxis - t->tail_beside) {
            among = false;
            for (int j = 0; j < n; j++)
                among |= same_axis(&first->axis[j], &t->axis[t->fused]);
            t->fused += among;
        }
    }
}

static void apply(Expand *x, int tile, const Opt *o)
{
    Tile *t = &x->out.tile[tile];
    switch (o->kind) {
    case OPT_SPLIT: split(x, tile, o); break;
    case OPT_UPCAST: upcast(x, tile, o); break;
    case OPT_UNROLL: unroll(x, t, o); break;
    case OPT_VECTOR:
        if (find(t->reduce, t->nreduce, o->axis) >= 0)
            vector_reduce(x, t, o);
        else
            vector_output(x, tile, o);
        break;
    case OPT_ORDER:
        order_axes(t->axis, t->naxis - t->tail_beside, o->order); /* the row stays innermost */
        order_axes(t->reduce, t->nreduce, o->order);
        order_reduces(x, t);
        break;
    case OPT_THREAD:
        if (tile == 0) /* of all tiles at once */
            thread(x, o);
        break;
    default: BUG("opt %d has no expansion", (int)o->kind);
    }
}

static void first_tile(Expand *x, const Kernel *k, Node *end)
{
    Tile t = {.next = k->naxis};
    t.nstore = end_stores(end);
    t.store = NEWN(x->a, Node *, t.nstore);
    memcpy((void *)t.store, end->src, (size_t)t.nstore * sizeof *t.store);
    for (int i = 0; i < k->naxis; i++) {
        TileAxis axis = {.range = k->axes[i].range};
        snprintf(axis.name, sizeof axis.name, "%s", k->axes[i].name);
        if (k->axes[i].kind == AXIS_REDUCE)
            t.reduce[t.nreduce++] = axis;
        for (uint32_t s = (uint32_t)t.nstore; k->axes[i].kind != AXIS_REDUCE && s < end->nsrc; s++)
            if (end->src[s] == axis.range)
                t.axis[t.naxis++] = axis;
    }
    tile_add(x, &t);
}

Tiles kernel_expand(Arena *a, const Kernel *k)
{
    Expand all = {a, k->c, {0}};
    for (uint32_t e = 0; e < k->sink->nsrc; e++) {
        Expand x = {a, k->c, {0}};
        first_tile(&x, k, k->sink->src[e]);
        for (int i = 0; i < k->nopt; i++)
            for (int j = 0, n = x.out.n; j < n; j++)
                apply(&x, j, &k->opts[i]);
        for (int j = 0; j < x.out.n; j++)
            tile_add(&all, &x.out.tile[j]);
    }
    return all.out;
}

int kernel_parts(const Kernel *k)
{
    for (int i = 0; i < k->nopt; i++)
        if (k->opts[i].kind == OPT_THREAD)
            return (int)k->opts[i].amount;
    return 0;
}
