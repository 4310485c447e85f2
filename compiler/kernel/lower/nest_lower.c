/* nest_lower.c - loop nests of what a nest says.
 *
 * The kernel is copied into a context of its own.  Every split is done in every loop nest that has
 * its axis: the whole blocks stay there, a remainder becomes a loop nest of its own behind the
 * others (or stays beside, see RestForm).  Then each range of the kernel is known as an expression
 * of the nest's axes, and the stores are rebuilt with them (lower_node.c), once for each copy that
 * UPCAST makes: copies share whatever they have in common because nodes are interned, and all their
 * reduces run in one loop. */
#include <math.h>
#include <string.h>

#include "lower.h"

/* Rows that groups of a cluster share, and of which all elements may be masked: the greatest of
 * them is asked for that. Of an empty row a block is masked, then, and what does not move along it
 * may stand before the loop. */
static bool masks_all(Lower *q)
{
    bool shared = false, asked = false;
    int n;
    Node **order = graph_toposort(q->a, 1, (Node *const *)&q->k->sink, &n);
    for (int i = 0; i < q->nest->naxis; i++)
        shared |= q->nest->axis[i].bound == BOUND_CLUSTER;
    for (int i = 0; i < n; i++)
        asked |= order[i]->op == OP_EQ && order[i]->src[0]->op == OP_REDUCE &&
                 order[i]->src[1]->op == OP_CONST && node_float(order[i]->src[1]) == -INFINITY;
    return q->nest->tc && shared && asked;
}

/* An expression where it is known at run time only. */
static Node *axis_extent(Lower *q, int axis)
{
    const NestAxis *x = &q->nest->axis[axis];
    if (axis < q->k->naxis && !x->within)
        return q->k->axes[axis].range->src[0];
    if (x->extent >= 0)
        return idx(q->c, x->extent);
    if (axis < q->k->naxis) { /* rounded up */
        const Axis *a = &q->k->axes[axis];
        Node *granule = idx(q->c, x->granule), *end = a->range->src[0];
        if ((a->reduced || a->staged) && end->lo < 1 && masks_all(q))
            end = idx_max(q->c, end, idx(q->c, 1));
        end = idx_div(q->c, idx_add(q->c, end, idx(q->c, x->granule - 1)), granule);
        return idx_mul(q->c, end, granule);
    }
    const Split *s = q->nest->split;
    while (s->outer != axis && s->rest != axis)
        s++;
    Node *whole = axis_extent(q, s->axis), *amount = idx(q->c, s->amount);
    return s->outer == axis ? idx_div(q->c, whole, amount) : idx_mod(q->c, whole, amount);
}

Node *lower_whole(Lower *q, const Split *s)
{
    return idx_mul(q->c, axis_extent(q, s->outer), idx(q->c, s->amount));
}

bool lower_has_rest(Lower *q, const Split *s)
{
    return s->remaining && (s->rest < 0 || !idx_is(axis_extent(q, s->rest), 0));
}

static Node *new_range(Lower *q, Piece *p, int axis)
{
    Node *extent = axis_extent(q, axis);
    return idx_is(extent, 1) ? idx(q->c, 0) : range_new(q->c, p->next++, extent);
}

static void *copied(Lower *q, const void *from, int n, size_t size)
{
    void *to = arena_array(q->a, (size_t)n + 1, size);
    return n ? memcpy(to, from, (size_t)n * size) : to;
}

Piece piece_copy(Lower *q, const Piece *like)
{
    Piece p = *like;
    int n = q->nest->naxis;
    p.at = copied(q, (void *)like->at, n, sizeof *p.at);
    p.first = copied(q, (void *)like->first, n, sizeof *p.first);
    p.sum = copied(q, like->sum, n, sizeof *p.sum);
    p.fresh = copied(q, (void *)like->fresh, q->k->naxis, sizeof *p.fresh);
    p.begun = copied(q, (void *)like->begun, n, sizeof *p.begun);
    p.added = copied(q, (void *)like->added, q->nest->nsplit, sizeof *p.added);
    p.copies = NULL;
    p.tail = NULL;
    p.blocks = NULL;
    p.nblocks = 0;
    p.ncopies = p.ntail = 0;
    for (int i = 0; i < like->ncopies; i++)
        vec_push(q->a, p.copies, p.ncopies, like->copies[i]);
    for (int i = 0; i < like->ntail; i++)
        vec_push(q->a, p.tail, p.ntail, like->tail[i]);
    return p;
}

/* ---- splits ---------------------------------------------------------------------------------- */

static void take_apart(Piece *p, const Split *s, Node *base, int outer, int inner)
{
    p->at[s->axis] = NULL;
    p->sum[s->axis] = (struct Sum){s, base, outer, inner};
}

static void add_copies(Lower *q, Piece *p, int axis, int64_t n)
{
    struct StoreCopies c = {axis, n};
    vec_push(q->a, p->copies, p->ncopies, c);
}

static void add_lane(Lower *q, Piece *p, int lanes)
{
    p->t.lanes = lanes;
    p->t.lane = range_new(q->c, p->next++, idx(q->c, lanes));
}

/* The remainder, which counts from the end of the whole blocks. */
static void rest_of(Lower *q, Piece *p, const Split *s)
{
    Node *whole = lower_whole(q, s);
    switch (s->form) {
    case REST_COPIES:
        take_apart(p, s, whole, -1, s->inner);
        add_copies(q, p, s->inner, s->remaining);
        break;
    case REST_LANES:
        take_apart(p, s, whole, -1, s->inner);
        add_lane(q, p, s->lanes);
        p->t.part = s->lanes > s->remaining ? (int)s->remaining : 0;
        p->at[s->inner] = p->t.lane;
        break;
    default:
        take_apart(p, s, whole, -1, s->rest);
        p->at[s->rest] = new_range(q, p, s->rest);
        break;
    }
}

static void split_output(Lower *q, int piece, const Split *s)
{
    Piece *p = &q->piece[piece], rest;
    const bool some = lower_has_rest(q, s);
    const bool alone =
        some && (s->form == REST_LOOP || s->form == REST_COPIES || s->form == REST_LANES);
    if (alone) {
        rest = piece_copy(q, p);
        rest_of(q, &rest, s);
    }
    take_apart(p, s, idx(q->c, 0), s->outer, s->inner);
    if (s->kind == OPT_SPLIT)
        p->at[s->inner] = new_range(q, p, s->inner);
    if (s->form == REST_BESIDE && some) {
        p->t.tail.name = arena_strdup(q->a, q->nest->axis[s->rest].name);
        Node *const range = new_range(q, p, s->rest); /* of 4 n + 9 by 4: one, for any n */
        p->t.tail.range = range->op == OP_RANGE ? range : NULL;
        p->t.tail_beside = s->count != 1;
        p->t.ntail = 1;
    }
    p->at[s->outer] = new_range(q, p, s->outer);
    if (s->kind == OPT_UPCAST)
        add_copies(q, p, s->inner, s->amount);
    if (s->kind == OPT_VECTOR) {
        add_lane(q, p, (int)s->amount);
        p->at[s->inner] = p->t.lane;
    }
    if (alone)
        vec_push(q->a, q->piece, q->n, rest);
}

static void tail_loop(Lower *q, Piece *p, const char *name, Node *range)
{
    TileAxis x = {.name = arena_strdup(q->a, name), .range = range};
    if (range->op == OP_RANGE)
        vec_push(q->a, p->tail, p->ntail, x);
}

/* The terms that fill no vector have loops of their own over the other axes of their reduces: what
 * is known inside the first ones ends with them. */
static void tail_of_reduce(Lower *q, Piece *p, const Split *s)
{
    int n, root = q->nest->axis[s->axis].root;
    Node *range = q->k->axes[root].range;
    Node **order = graph_toposort(q->a, end_stores(q->end), q->end->src, &n);
    for (int i = 0; i < n; i++) {
        const Node *r = order[i];
        bool over = false;
        for (uint32_t j = reduce_ranges(r); j < r->nsrc; j++)
            over |= r->src[j] == range;
        for (uint32_t j = reduce_ranges(r); over && j < r->nsrc; j++) {
            int other = nest_root_of(q->k, r->src[j]);
            if (other == root || p->fresh[other])
                continue;
            Node *fresh = p->fresh[other] = range_new(q->c, p->next++, r->src[j]->src[0]);
            tail_loop(q, p, arena_printf(q->a, "r%d", (int)fresh->arg.i), fresh);
        }
    }
    tail_loop(q, p, q->nest->axis[s->rest].name, p->at[s->rest]);
}

/* Blocks of blocks of a row: turns, groups, warps and what a warp has of a block are the same
 * ranges for all axes along the row (opt_ranges()). */
static void split_row(Lower *q, Piece *p, const Split *s)
{
    const Nest *n = q->nest;
    const Split *like = n->split;
    while (like != s && (like->amount != s->amount || !nest_has_row(n, like->inner)))
        like++;
    const bool first = like == s;
    take_apart(p, s, idx(q->c, 0), s->outer, s->inner);
    p->at[s->outer] = first ? new_range(q, p, s->outer) : p->at[like->outer];
    if (n->axis[s->inner].split >= 0)
        p->at[s->inner] = idx(q->c, 0); /* until it is taken apart in turn */
    else
        p->at[s->inner] = first ? new_range(q, p, s->inner) : p->at[like->inner];
}

/* Partial results in the lanes; where the loop nest has narrower ones, the axis stays a loop. */
static void split_reduced(Lower *q, Piece *p, const Split *s)
{
    const bool nested = s->axis >= q->k->naxis || q->nest->axis[s->inner].split >= 0;
    if (nested && q->nest->inner && nest_has_row(q->nest, s->inner)) {
        split_row(q, p, s);
        return;
    }
    if (s->kind == OPT_VECTOR) {
        if (p->t.lane && (p->t.lanes != (int)s->amount || p->t.part))
            return;
        if (!p->t.lane)
            add_lane(q, p, (int)s->amount);
        p->at[s->inner] = p->t.lane;
    }
    if (s->kind == OPT_DOT) {
        if (!p->t.four)
            p->t.four = range_new(q->c, p->next++, idx(q->c, s->amount));
        p->at[s->inner] = p->t.four;
    }
    if (s->kind == OPT_SPLIT)
        p->at[s->inner] = new_range(q, p, s->inner);
    take_apart(p, s, idx(q->c, 0), s->outer, s->inner);
    p->at[s->outer] = new_range(q, p, s->outer);
    if (lower_has_rest(q, s) && s->rest >= 0) {
        p->at[s->rest] = new_range(q, p, s->rest);
        tail_of_reduce(q, p, s);
    }
}

static void do_splits(Lower *q)
{
    for (int i = 0; i < q->nest->nsplit; i++) {
        const Split *s = &q->nest->split[i];
        for (int j = 0, n = q->n; j < n; j++) {
            if (!q->piece[j].at[s->axis])
                continue;
            if (q->nest->axis[s->axis].reduced)
                split_reduced(q, &q->piece[j], s);
            else
                split_output(q, j, s);
        }
    }
}

/* ---- loop nests ------------------------------------------------------------------------------ */

/* The lanes of a unit: lane 4 line + quad, if rows of sums stay in their registers. */
static void name_lanes(Lower *q, Piece *p)
{
    TileAxis lane = {"lane", p->lane, BOUND_LANE, false};
    if (p->t.quad) {
        lane = (TileAxis){"line", p->lines, BOUND_LANE, false};
        vec_push(q->a, p->t.axis, p->t.naxis, lane);
        lane = (TileAxis){"quad", p->t.quad, BOUND_LANE, false};
    }
    vec_push(q->a, p->t.axis, p->t.naxis, lane);
}

/* Blocks of rows have one loop, whatever is along them. */
static bool has_loop(const Tile *t, const Node *range)
{
    bool found = false;
    for (int i = 0; i < t->nreduce; i++)
        found |= t->reduce[i].range == range;
    return found;
}

static void name_loops(Lower *q, Piece *p)
{
    bool shared = false, ranked = false;
    enum { TURNS = 5 };
    for (int i = 0; i < TURNS * q->nest->norder; i++) { /* the grid, the items of a group, loops */
        if (p->lane && i == (TURNS - 1) * q->nest->norder)
            name_lanes(q, p);
        if (p->t.across && i == (TURNS - 1) * q->nest->norder) {
            const char *name = arena_strdup(q->a, q->nest->axis[q->nest->warp].name);
            vec_push(q->a, p->t.axis, p->t.naxis,
                     ((TileAxis){name, p->t.across, BOUND_LANE, false}));
        }
        int axis = q->nest->order[i % q->nest->norder];
        const NestAxis *x = &q->nest->axis[axis];
        Bound bound = x->bound == BOUND_WARP ? BOUND_LANE : x->bound; /* so many items each */
        TileAxis loop = {arena_strdup(q->a, x->name), p->at[axis], bound, x->scanned};
        loop.range = loop.range && loop.range == p->block ? p->t.along : loop.range;
        static const Bound turn[] = {BOUND_GRID, BOUND_CLUSTER, BOUND_WARP, BOUND_LANE, BOUND_NOT};
        if (!loop.range || loop.range->op != OP_RANGE || x->bound != turn[i / q->nest->norder] ||
            loop.range == p->t.lane || loop.range == p->lines || axis == p->row)
            continue;
        if (x->bound == BOUND_CLUSTER && p->t.ranks) { /* of all axes along a row */
            loop.bound = BOUND_GRID;
            if (!ranked)
                vec_push(q->a, p->t.axis, p->t.naxis, loop);
            ranked = true;
        } else if (x->bound == BOUND_CLUSTER) { /* neighbours in the grid */
            loop.bound = BOUND_GRID;
            p->t.cluster = loop.range;
            p->t.share =
                (int)tc_share(q->nest->copies * tc_per_lane(q->nest->tc, TC_TERMS), x->extent);
            vec_push(q->a, p->t.axis, p->t.naxis, loop);
        } else if (x->reduced && x->bound) {
            const bool across = p->t.across && x->bound == BOUND_WARP;
            if (!shared && !across && p->outer->op == OP_RANGE)
                vec_push(q->a, p->t.axis, p->t.naxis,
                         ((TileAxis){loop.name, p->outer, BOUND_LANE, false}));
            shared |= !across;
        } else if (!x->reduced && !x->bound && lower_is_walked(p, axis)) {
            continue;
        } else if (x->reduced && has_loop(&p->t, loop.range)) {
            continue;
        } else if (x->reduced)
            vec_push(q->a, p->t.reduce, p->t.nreduce, loop);
        else
            vec_push(q->a, p->t.axis, p->t.naxis, loop);
    }
    if (p->row >= 0) { /* inside of all others: the fragments are filled before it */
        const char *name = arena_strdup(q->a, q->nest->axis[p->row].name);
        TileAxis rows = {.name = name, .range = p->at[p->row]};
        vec_push(q->a, p->t.axis, p->t.naxis, rows);
    }
    if (p->turn)
        vec_push(q->a, p->t.axis, p->t.naxis, ((TileAxis){"turn", p->turn, BOUND_NOT, false}));
    for (int i = 0; i < q->nest->naxis; i++) { /* what is in lanes elsewhere, and whole here */
        const NestAxis *x = &q->nest->axis[i];
        TileAxis loop = {.name = arena_strdup(q->a, x->name), .range = p->at[i]};
        if (x->reduced && x->split >= 0 && !p->sum[i].split && p->at[i] && p->at[i]->op == OP_RANGE)
            vec_push(q->a, p->t.reduce, p->t.nreduce, loop);
    }
    for (int i = 0; i < p->ntail; i++)
        vec_push(q->a, p->t.reduce, p->t.nreduce, p->tail[i]);
}

/* Whether the group is the one of its cluster that stores this element of the item's sums. */
static Node *has_share(Lower *q, const Piece *p)
{
    int64_t copies, number = tc_copy_number(q, p, kernel_view(q->k).dot, &copies);
    number = number * tc_per_lane(q->nest->tc, TC_TERMS) + p->element;
    return idx_eq(q->c, p->t.cluster, idx(q->c, number / p->t.share));
}

/* Every copy of one store: those of the first UPCAST are furthest apart. */
static void copy_store(Lower *q, Piece *p, Node *store, int copy, bool beside)
{
    if (copy < p->ncopies && p->part && lower_is_walked(p, p->copies[copy].axis)) {
        copy_store(q, p, store, copy + 1, beside);
        return;
    }
    if (copy < p->ncopies) {
        for (int64_t i = 0; i < p->copies[copy].n; i++) {
            p->at[p->copies[copy].axis] = idx(q->c, i);
            copy_store(q, p, store, copy + 1, beside);
        }
        return;
    }
    if (p->lane && p->element < 0 && !p->part) {
        for (int i = 0; tc_element_set(q, p, i); i++)
            copy_store(q, p, store, copy, beside);
        p->element = -1;
        return;
    }
    Env e = env_new(q, NULL);
    for (int i = 0; i < q->k->naxis; i++)
        if (!q->nest->axis[i].reduced && (p->at[i] || p->sum[i].split))
            e.value[i] = lower_index(q, p, i);
    if (beside) {
        const Split *s = p->sum[q->nest->row].split;
        e.value[q->nest->row] =
            idx_add(q->c, lower_whole(q, s), p->t.tail.range ? p->t.tail.range : idx(q->c, 0));
    }
    env_ready(q, &e);
    if (p->constant)
        e.map[store->src[2]->id] = p->constant;
    Node *v = lower_node(q, p, store, &e);
    if (p->lane && v->op == OP_STORE && node_is_const_i(v->src[1], 0))
        return; /* what a row has one of, at its other elements */
    Node *only = p->t.cluster ? has_share(q, p) : p->walked;
    if (only)
        v = lower_store_only(q, v, only);
    vec_push(q->a, p->t.store, p->t.nstore, v);
}

static void build_stores(Lower *q, Piece *p)
{
    bool beside = p->t.ntail > 0;
    for (int pass = 0; pass < 1 + beside; pass++) {
        p->t.ntail = pass ? p->t.nstore : 0;
        for (int i = 0; i < end_stores(q->end); i++)
            copy_store(q, p, q->end->src[i], 0, pass == 1);
    }
}

/* Loops over the same axis; the inner part of a block is another loop than that over blocks. */
static bool same_loop(const Nest *n, int a, int b)
{
    const NestAxis *x = &n->axis[a], *y = &n->axis[b];
    return x->root == y->root && x->inner == y->inner;
}

static int axis_of_loop(const Lower *q, const Piece *p, int loop)
{
    for (int i = 0; i < q->nest->norder; i++)
        if (p->at[q->nest->order[i]] == p->t.axis[loop].range)
            return q->nest->order[i];
    BUG("a loop without an axis");
}

/* Does a loop have as many iterations in each iteration of the others? */
static bool is_regular(const Tile *t, int loop)
{
    bool regular = true;
    for (int i = 0; i < t->naxis; i++)
        regular &= !depends_on(t->axis[loop].range->src[0], t->axis[i].range);
    return regular;
}

/* Is a loop one of loops from .. end - 1 of the first loop nest, which become one? */
static bool is_among(const Lower *q, const Piece *p, int loop, int from, int end)
{
    bool among = false;
    if (!is_regular(&p->t, loop))
        return false;
    for (int i = from; i < end; i++)
        among |= same_loop(q->nest, axis_of_loop(q, &q->piece[0], i), axis_of_loop(q, p, loop));
    return among;
}

/* The loops of the first loop nest from the first to the last one that are named are cut; in those
 * of remainders, those of them that are left. What clears a halo has no such loop: it is cut in its
 * outermost one. */
static void share_among_threads(Lower *q)
{
    const Piece *first = &q->piece[0];
    int from = 0, end = 0;
    for (int i = 0; i < first->t.naxis && !end; i++) {
        const int axis = axis_of_loop(q, first, i);
        from = axis == q->nest->thread_from ? i : from;
        end = axis == q->nest->thread ? i + 1 : 0;
    }
    if (!end) {
        from = 0;
        end = first->t.naxis > 0;
    }
    for (int i = 0; i < q->n; i++) {
        Tile *t = &q->piece[i].t;
        const Piece *p = &q->piece[i];
        const int inside = t->naxis - t->tail_beside - (p->row >= 0);
        t->parts = q->nest->parts;
        while (t->uncut < inside && !is_among(q, p, t->uncut, from, end))
            t->uncut++;
        while (t->uncut + t->fused < inside && is_among(q, p, t->uncut + t->fused, from, end))
            t->fused++;
        if (!t->fused)
            t->uncut = 0;
    }
}

/* STAGE with depth: a counter of the iterations that are filled for. */
static void fill_ahead(Lower *q, Piece *p)
{
    const Stage *s = NULL;
    for (int i = 0; i < q->nest->nstage && !s; i++)
        s = q->nest->stage[i].depth ? &q->nest->stage[i] : NULL;
    Node *range = s ? p->at[s->axis] : NULL;
    range = range && range == p->block ? p->t.along : range;
    if (!range || range->op != OP_RANGE)
        return;
    /* no more than there are iterations to fill for, unless those of the next block follow */
    int64_t most = q->nest->stay ? s->depth : range->hi + 2;
    p->t.ahead_of = range;
    p->t.depth = (int)(s->depth < most ? s->depth : most);
    p->t.ahead = range_new(q->c, p->next++, p->t.ahead_of->src[0]);
    vec_push(q->a, p->t.fill, p->t.nfill, ((TileAxis){.name = "ahead", .range = p->t.ahead}));
    if (s->tma)
        p->t.box = NEWN(q->a, Box, p->t.nbox = q->nest->nstage);
}

/* Of a group: BIND of nothing but groups leaves one. */
static int items_of(const Nest *n)
{
    bool grid = false;
    for (int i = 0; i < n->naxis; i++)
        grid |= n->axis[i].bound == BOUND_GRID;
    return n->items ? n->items : grid && !n->tc;
}

static void lower_end(Lower *q, Tiles *out)
{
    const Nest *n = q->nest;
    Piece p = {.next = q->k->naxis};
    for (int i = 0; i < q->k->naxis; i++) /* behind all numbers of the kernel's ranges */
        p.next = q->k->axes[i].range->arg.i < p.next ? p.next : (int)q->k->axes[i].range->arg.i + 1;
    p.at = NEWN(q->a, Node *, n->naxis + 1);
    p.first = NEWN(q->a, Node *, n->naxis + 1);
    p.sum = NEWN(q->a, struct Sum, n->naxis + 1);
    p.fresh = NEWN(q->a, Node *, q->k->naxis + 1);
    p.begun = NEWN(q->a, Node *, n->naxis + 1);
    p.added = NEWN(q->a, Node **, n->nsplit + 1);
    for (int i = 0; i < q->k->naxis; i++) {
        bool here = n->axis[i].reduced;
        for (uint32_t s = 1; s < q->end->nsrc && !here; s++)
            here = q->end->src[s] == q->k->axes[i].range;
        p.at[i] = here ? q->k->axes[i].range : NULL;
        if (here && n->axis[i].within)
            p.at[i] = new_range(q, &p, i);
    }
    p.t.items = items_of(n);
    p.t.trigger = n->trigger;
    p.t.stay = n->stay;
    q->piece = NULL;
    q->n = 0;
    vec_push(q->a, q->piece, q->n, p);
    do_splits(q);
    split_masked_stores(q);
    for (int i = 0; i < q->n; i++) {
        Piece *at = &q->piece[i];
        tc_begin(q, at);
        if (!n->partial && !at->constant) /* their loops go over whole rows */
            bound_masked_loops(q, at);
        if (!at->constant)
            bound_padded_loops(q, at);
        if (n->sharing)
            shares_begin(q, at);
        name_loops(q, at);
        find_masked_groups(q, at);
        if (n->sharing)
            shares_walk(q, at);
        at->t.nprefetched = n->nprefetched;
        for (int j = 0; j < n->nprefetched; j++) {
            Node *range = at->at[n->prefetched[j].axis];
            at->t.prefetched[j] = n->prefetched[j];
            if (range && range->op == OP_RANGE && (at->t.lanes || n->tc))
                at->t.prefetched[j].range = range;
        }
        fill_ahead(q, at);
        at->filled = NEWN(q->a, Node **, n->nstage + 1);
        for (int j = 0; j < n->nstage; j++)
            if (n->items || place_wanted(q, at, &n->stage[j]))
                at->filled[j] = NEWN(q->a, Node *, n->naxis + 1);
    }
    for (int i = 0; i < q->n; i++)
        build_stores(q, &q->piece[i]);
    if (n->parts)
        share_among_threads(q);
    for (int i = 0; i < q->n; i++)
        vec_push(out->k->c->arena, out->tile, out->n, q->piece[i].t);
}

Tiles nest_lower(const Nest *n)
{
    Tiles out = {.k = kernel_copy(n->k)};
    Lower q = {.a = out.k->c->arena, .nest = n, .k = out.k, .c = out.k->c};
    q.known = q.c->nnode;
    q.place = NEWN(q.a, int64_t, n->nstage + 1);
    for (uint32_t i = 0; i < q.k->sink->nsrc; i++) {
        q.end = q.k->sink->src[i];
        lower_end(&q, &out);
    }
    if (n->nstage || q.nstaged)
        add_places(&q, &out);
    return out;
}

void tiles_free(Tiles *t)
{
    ingot_context_free(t->k->c);
    *t = (Tiles){0};
}
