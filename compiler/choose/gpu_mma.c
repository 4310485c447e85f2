/* gpu_mma.c - opts without search, for contractions on a GPU whose items multiply fragments
 * together (Tc.lanes).
 *
 * An implicit product of matrices: all axes of results that one operand alone moves with are one
 * axis of rows, those of the other one of columns, what is summed is one of terms.  A group has a
 * block of results, each of its warps a part of it, as fragments in registers; blocks of both
 * operands are copied into places of the group ahead of their use.  Blocks are as large as there
 * are still enough of them for all processors. */
#include <math.h>
#include <string.h>

#include "gpu.h"

enum {
    FEW = 4,        /* copies */
    MOST_SIDE = 64, /* rows and columns of a warp's block */
    LEAST_WORK = 1 << 18
};

/* A block of results and of terms, what a warp has of it, and how many blocks of terms are on their
 * way or in use. */
typedef struct {
    int64_t rows, columns, terms, warp_rows, warp_columns, warp_terms, depth;
    int64_t groups; /* of a cluster, that have a part of the terms each */
    /* of the terms that are innermost each has a block, and all of the others: a loop over them */
    bool runs;
} TileSize;

int64_t mma_processors(const Target *t, int64_t cluster)
{
    return cluster > 2 ? t->machine.close : t->machine.processors;
}

static bool add_range(const Kernel *k, JoinedAxis *p, Node *range)
{
    if (p->n == MOST_RANGES)
        return false;
    p->name = p->of[p->n] = k->axes[nest_root_of(k, range)].name;
    p->range[p->n++] = range;
    return true;
}

/* The only one of the axes with which the factor, but not the other one, moves: NULL: there are
 * several that count more than one. */
static Node *lone_range(const View *v, Node *factor, Node *other)
{
    Node *lone = NULL;
    int count = 0;
    for (int i = 0; i < v->nrange; i++)
        if (range_extent(v->range[i]) != 1 && depends_on(factor, v->range[i]) &&
            !depends_on(other, v->range[i])) {
            lone = v->range[i];
            count++;
        }
    return count == 1 ? lone : NULL;
}

/* The axis along which results lie side by side becomes the last one; false: none of these is
 * it. */
static bool side_by_side_last(const Kernel *k, const View *v, JoinedAxis *p)
{
    int64_t stride;
    for (int i = 0; i < p->n; i++) {
        const bool counts = range_extent(p->range[i]) != 1 || i + 1 == p->n;
        if (!counts || !access_stride(k, v->store[0], p->range[i], &stride) || stride != 1)
            continue;
        for (; i + 1 < p->n; i++)
            mma_swap_ranges(p, i, i + 1);
        return true;
    }
    return false;
}

/* The axis along which results lie side by side is one of columns; what both operands move with are
 * others, and so are axes whose extent only the run knows, beside some that are constant: groups
 * count them, and blocks are as if they were not there. An operand that moves with nothing else
 * (a prompt's tokens) is rows of its upper bound, whose blocks the run counts. */
static bool take_apart(const Kernel *k, const View *v, Node *x, Node *y, Product *p)
{
    for (int i = 0; i < v->nrange; i++) {
        Node *r = v->range[i];
        bool a = depends_on(x, r), b = depends_on(y, r);
        const bool is_few = v->nreduce > 1 && range_extent(r) > 0 && range_extent(r) <= FEW;
        const bool other = (a && b) || (range_extent(r) < 0 && r != lone_range(v, x, y) &&
                                        r != lone_range(v, y, x));
        JoinedAxis *const to = other    ? &p->others
                               : a      ? &p->rows
                               : b      ? &p->columns
                               : is_few ? &p->copies
                                        : NULL;
        if (!to || !add_range(k, to, r))
            return false;
    }
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
        if (range_extent(v->dot->src[i]) < 0 || !depends_on(x, v->dot->src[i]) ||
            !depends_on(y, v->dot->src[i]) || !add_range(k, &p->terms, v->dot->src[i]))
            return false;
    if (!p->rows.n || !p->columns.n || !p->terms.n)
        return false;
    if (side_by_side_last(k, v, &p->columns))
        return true;
    JoinedAxis rows = p->rows;
    p->rows = p->columns;
    p->columns = rows;
    return side_by_side_last(k, v, &p->columns);
}

/* The terms that lie side by side in an operand, whose layout is given, are last. */
static void order_terms(const Kernel *k, Node *x, JoinedAxis *terms)
{
    int64_t stride;
    for (int i = 0; i < terms->n; i++) {
        if (!access_stride(k, x, terms->range[i], &stride) || stride != 1)
            continue;
        for (; i + 1 < terms->n; i++)
            mma_swap_ranges(terms, i, i + 1);
        return;
    }
}

/* The first so many of its axes. */
static bool join(Nest *n, JoinedAxis *p, int count)
{
    const char *names = "";
    for (int i = 0; i < count; i++)
        names = arena_printf(n->arena, *names ? "%s %s" : "%s%s", names, p->of[i]);
    p->name =
        count > 1 ? arena_printf(n->arena, "%.6s_%.6s", p->of[0], p->of[count - 1]) : p->of[0];
    Opt o = {.kind = OPT_JOIN, .axis = names};
    return count < 2 || !opt_apply(n, &o);
}

static bool join_for(Nest *n, Product *p, bool runs)
{
    return join(n, &p->rows, p->rows.n) && join(n, &p->columns, p->columns.n) &&
           join(n, &p->terms, p->terms.n - runs);
}

bool mma_join(Nest *n, Product *p)
{
    return join_for(n, p, false);
}

/* Blocks of an axis are the grid's (of terms a loop), their parts warps, what is left fragments of
 * `unit`, of terms a loop: names. */
typedef struct {
    const char *grid, *warp, *unit;
} AxisLevels;
static bool divide(Nest *n, const char *axis, int64_t block, int64_t of_warp, int64_t unit,
                   AxisLevels *p)
{
    const char *copies;
    if (!mma_divide(n, axis, block, &p->grid, &p->unit) ||
        !mma_divide(n, p->unit, of_warp, &p->warp, &p->unit) ||
        !mma_divide(n, p->unit, unit, &copies, &p->unit))
        return false;
    return !copies || nest_opt(n, OPT_UPCAST, copies, of_warp / unit);
}

/* early: the fragments of the next step are loaded before the products of this one. */
static bool block_opts(Nest *n, const Product *p, const TileSize *b, bool early, const char **step)
{
    AxisLevels rows, columns;
    const Tc *u = p->unit;
    const char *outer = p->terms.name, *terms = outer, *inner, *part, *turn, *share = NULL;
    if (b->runs) {
        terms = p->terms.of[p->terms.n - 1];
        if (b->groups > 1 && !mma_divide(n, terms, b->terms, &share, &terms))
            return false;
    } else if (!mma_mask(n, terms, b->terms * b->groups) ||
               (b->groups > 1 &&
                !mma_divide(n, terms, mma_extent(n, terms) / b->groups, &share, &terms)) ||
               !mma_divide(n, terms, b->terms, &outer, &terms))
        return false;
    if (!divide(n, p->rows.name, b->rows, b->warp_rows, u->m, &rows) ||
        !divide(n, p->columns.name, b->columns, b->warp_columns, u->n, &columns) ||
        !mma_turns(n, columns.grid, &rows.grid, &turn) ||
        !mma_divide(n, terms, b->warp_terms, &part, &terms) ||
        !mma_divide(n, terms, u->k, &inner, &terms))
        return false;
    if (!nest_opt(
            n, OPT_TC,
            arena_printf(n->arena, "%s (%s; %s; %s)", u->name, rows.unit, columns.unit, terms), 0))
        return false;
    if (!mma_bind_others(n, &p->others))
        return false;
    const bool sized = rows.grid && columns.grid && mma_extent(n, rows.grid) < 0;
    if ((turn || sized) &&
        !nest_opt(n, OPT_ORDER, mma_grid_order(n, rows.grid, columns.grid, turn, false), 0))
        return false;
    const char *const grid[] = {rows.grid, columns.grid, turn}, *const warp[] = {
                                                                    rows.warp, columns.warp, part};
    if (!mma_bind(n, 3, grid, BOUND_GRID) || !mma_bind(n, 3, warp, BOUND_WARP) ||
        !mma_bind(n, 1, &share, BOUND_CLUSTER))
        return false;
    *step = outer ? outer : rows.grid ? rows.grid : columns.grid;
    if (!*step)
        return false;
    if (outer && inner && !nest_opt(n, OPT_ORDER, arena_printf(n->arena, "%s %s", outer, inner), 0))
        return false;
    return !early || nest_opt(n, OPT_PREFETCH, inner ? inner : outer, p->arg);
}

static int64_t shared_of(const TileSize *b, const Tc *u)
{
    const int64_t bytes = dtype_info[u->a].bytes, pad = TC_PIECE / bytes;
    int64_t parts = b->terms / b->warp_terms, lines = b->rows + b->columns;
    int64_t join = parts > 1 ? parts * b->rows * (b->columns + 8) * 4 : 0;
    join += (b->groups - 1) * b->rows * b->columns / b->groups * 4;
    return b->depth * lines * (b->terms + pad) * bytes + join;
}

static int64_t loops_of(const Extents *e, const TileSize *b)
{
    return ceil_div(e->terms, b->terms * b->groups);
}

/* No loop goes over blocks of terms: they come when a group begins, and nothing is to be ahead
 * of. */
static bool is_one_block(const Extents *e, const TileSize *b)
{
    return !b->runs && e->terms <= b->terms * b->groups;
}

/* Is the loop over blocks of terms straight-line code, whose addresses are known? */
static bool is_straight(const Extents *e, const TileSize *b, const Tc *u)
{
    return loops_of(e, b) * (b->warp_terms / u->k) <= tc_straight(u);
}

bool mma_waits(const Extents *e, const BlockTurns *b)
{
    return e->read && b->each > 1;
}

/* What a warp has on its way to or from memory is bounded, so that it takes many warps to store
 * results to which operands are added; of blocks beside each other some multiply meanwhile.
 * (Measured on an H200, residual 1x1 convolutions of 32 images: 64 to 256 channels in blocks of
 * 128x256 by 8 warps 51 us, of 128x128 by 8 and as many beside 41.) */
double mma_blocks_cycles(const Extents *e, const BlockTurns *b, const Machine *m)
{
    if (!mma_waits(e, b))
        return b->each * (b->products + b->results / b->stored);
    const double rate = fmin(b->stored, m->warp_stored * b->warps * b->beside),
                 stores = b->results * (1 + e->read) / rate;
    return b->each * (fmax(b->products, stores) + fmin(b->products, stores) / b->beside);
}

/* Cycles that a product takes in such blocks: each part of a processor takes the longest of what it
 * does at once, and an iteration waits for what it reads. */
static double estimate(const Extents *e, const TileSize *b, const Tc *u, const Target *t,
                       bool gather)
{
    enum { HINDRANCE = 4, SUM = 8 /* bytes that are read and written of each sum */ };
    const Machine *m = &t->machine;
    const WarpProducts *w = &m->warp_products;
    const double busy_share =
        0.7; /* of what a warp waits for its three products the unit has no time for others */
    const int64_t bytes = dtype_info[u->a].bytes;
    const bool three = u->products == 3;
    int64_t parts = b->terms / b->warp_terms;
    int64_t warps = b->rows / b->warp_rows * (b->columns / b->warp_columns) * parts;
    int64_t blocks =
        e->others * ceil_div(e->rows, b->rows) * ceil_div(e->columns, b->columns) * b->groups;
    int64_t loops = loops_of(e, b), steps = b->warp_terms / u->k;
    int64_t sums = b->warp_rows * b->warp_columns / u->lanes;
    int64_t registers = warps * u->lanes * (sums + tc_beside(u));
    int64_t fits = m->file / registers, room = m->shared / shared_of(b, u);
    fits = room < fits ? room : fits;
    if (fits < 1)
        return INFINITY;
    double products = (double)(b->warp_rows / u->m * (b->warp_columns / u->n)) *
                      (three ? w->product3 : w->product);
    if (three)
        products += (double)((b->warp_rows + b->warp_columns) * u->k / u->lanes) * w->split;
    double each = (double)ceil_div(blocks, m->processors); /* that a processor has in all */
    const double crowded = (double)ceil_div(blocks, mma_processors(t, b->groups)) / each - 1;
    double turns = (double)ceil_div((int64_t)each, fits);
    double busy = warps > m->quarters ? (double)warps / m->quarters : 1;
    double waiting =
        turns * (double)loops * (w->iteration + (double)steps * (w->step + products * busy));
    double unit = each * (double)loops * (double)steps * products * (double)warps / m->quarters;
    unit *= three ? busy_share : 1;
    double lines = (double)(b->rows + b->columns) * (double)(loops * b->terms * bytes);
    double flow =
        each * lines / w->flow * (b->terms * bytes < m->line ? 1.1 : 1); /* halves of lines */
    double reads =
        (double)(b->rows * (b->columns / b->warp_columns) + b->columns * (b->rows / b->warp_rows));
    double shared = each * (reads * (double)(loops * b->terms * bytes) + lines) / m->shared_rate;
    double join =
        parts > 1 ? (double)(b->rows * b->columns * parts) * SUM / m->shared_rate * each + w->join
                  : 0;
    if (b->groups > 1)
        join += w->meet + w->member * (double)b->groups +
                (double)(b->rows * b->columns) * SUM / w->given * each + w->crowded * crowded;
    double rounds = lines / (double)bytes / (double)(u->lanes * warps), fill = 0;
    if (gather) {
        fill = each * rounds * (double)warps * w->issue / m->quarters;
        waiting += turns * rounds * w->gather;
    }
    const double all[] = {waiting, unit, flow, shared, fill};
    double most = 0, rest = 0;
    for (int i = 0; i < 5; i++) {
        most = all[i] > most ? all[i] : most;
        rest += all[i];
    }
    /* what a group gathers comes before its products: other groups hide it, if there are */
    most += (rest - most) / (gather ? 1 + each / turns : HINDRANCE);
    /* nothing hides that the first blocks come; of f32, which is twice as large, it shows */
    double first = 0;
    if (three)
        first = turns * (double)((b->rows + b->columns) * b->terms * bytes) / w->flow;
    const BlockTurns all_blocks = {.each = each,
                                   .beside = each / turns,
                                   .warps = (double)warps,
                                   .products = most / each,
                                   .results = (double)(b->rows * b->columns),
                                   .stored = w->stored};
    return m->start + first + join + mma_blocks_cycles(e, &all_blocks, m);
}

/* Have the items registers for the fragments of two steps, with as many groups beside each other as
 * there would be without? */
static bool has_room(const Extents *e, const TileSize *b, const Tc *u, const Target *t)
{
    const Machine *m = &t->machine;
    const int64_t a = b->warp_rows / u->m * tc_per_lane(u, TC_COLUMNS),
                  c = b->warp_columns / u->n * tc_per_lane(u, TC_ROWS);
    const int64_t fragments = (a + c) * dtype_info[u->a].bytes / 4;
    const int64_t warps =
        b->rows / b->warp_rows * (b->columns / b->warp_columns) * (b->terms / b->warp_terms);
    const int64_t sums = b->warp_rows * b->warp_columns / u->lanes;
    const int64_t blocks =
        e->others * ceil_div(e->rows, b->rows) * ceil_div(e->columns, b->columns) * b->groups;
    int64_t beside = ceil_div(blocks, m->processors), room = m->shared / shared_of(b, u);
    beside = room < beside ? room : beside;
    const int64_t fits = m->file / (warps * u->lanes * (sums + tc_beside(u)));
    beside = fits < beside ? fits : beside;
    const int64_t each = m->file / (warps * u->lanes * (beside < 1 ? 1 : beside));
    return (double)(sums + (u->products + 1) * fragments) + m->warp_products.registers <=
           (double)(each < m->item_registers ? each : m->item_registers);
}

static bool same_results(const TileSize *a, const TileSize *b)
{
    return a->rows == b->rows && a->columns == b->columns && a->warp_rows == b->warp_rows &&
           a->warp_columns == b->warp_columns &&
           a->terms / a->warp_terms == b->terms / b->warp_terms && a->groups == b->groups;
}

int mma_rank(Ranking *r, int of, double time, int most)
{
    int at = of < 0 ? r->n - 1 : of;
    if (of < 0 && r->n < most) {
        at = r->n++;
        r->number[at] = at;
        r->time[at] = INFINITY;
    }
    if (r->time[at] <= time)
        return -1;
    const int number = r->number[at];
    for (; at > 0 && r->time[at - 1] > time; at--) {
        r->number[at] = r->number[at - 1];
        r->time[at] = r->time[at - 1];
    }
    r->number[at] = number;
    r->time[at] = time;
    return number;
}

/* Of blocks that differ in how they go through the terms alone one is ranked. */
static void rank_block(Ranking *r, TileSize *ranked, const TileSize *b, double time)
{
    int like = r->n - 1;
    while (like >= 0 && !same_results(&ranked[r->number[like]], b))
        like--;
    const int number = mma_rank(r, like, time, MMA_MOST_NTH);
    if (number >= 0)
        ranked[number] = *b;
}

/* What a product is to be taken apart into blocks by. */
typedef struct {
    const Extents *e;
    const Tc *unit;
    const Target *target;
    bool gather, meets; /* element by element; groups of a cluster may share the terms */
    int64_t run;        /* terms of the innermost of several axes, or 0 */
    TileSize ranked[MMA_MOST_NTH];
    Ranking order;
} Blocks;

/* A block by all depths: the more copies are on their way, the less is waited for. Groups that
 * share terms have few blocks of them each, so that nearly all may be. */
static void rank_depths(Blocks *q, TileSize b)
{
    enum { MOST = 4, MOST_OF_SHARES = 6 };
    const double two = 1.15, three = 1.02, more = 0.015;
    const int64_t most = b.groups > 1 && is_straight(q->e, &b, q->unit) ? MOST_OF_SHARES : MOST;
    for (b.depth = 2; b.depth <= most && shared_of(&b, q->unit) <= mma_room(q->e, q->target);
         b.depth++) {
        double time = estimate(q->e, &b, q->unit, q->target, q->gather);
        if (q->run && !b.runs && q->meets) /* where a term is is computed in each iteration */
            time += q->target->machine.warp_products.address * (double)loops_of(q->e, &b);
        time *= b.depth == 2 ? two : b.depth == 3 ? three : 1 - more * (double)(b.depth - MOST);
        if (time < INFINITY)
            rank_block(&q->order, q->ranked, &b, time);
    }
}

/* The same by all numbers of groups that can share its terms. */
static void rank_groups(Blocks *q, TileSize b)
{
    const bool meets = q->meets && b.terms == b.warp_terms;
    for (b.groups = 1; b.groups <= (meets ? q->target->machine.cluster : 1); b.groups++) {
        const int64_t each = b.terms * b.groups;
        if (b.groups > 1 && (q->e->terms % each || q->e->terms <= each))
            continue;
        b.runs = each == q->run;
        rank_depths(q, b);
    }
}

/* Of all sizes of blocks that the unit and the GPU can do the one that takes the least; for the
 * tuner (Target.nth) one of the next. They need not be powers of two for products in three, which
 * bound themselves, so that less of a last block that is empty shows; others are bound by what
 * comes. */
static bool pick_block(const Extents *e, const Product *p, const Target *t, bool gather, bool meets,
                       TileSize *best, double *cycles)
{
    const Tc *u = p->unit;
    const int64_t bytes = dtype_info[u->a].bytes, most = t->machine.group / t->machine.warp;
    const bool any = u->products == 3 || t->nth;
    Blocks q = {.e = e, .unit = u, .target = t, .gather = gather, .meets = meets};
    if (p->terms.n > 1 && !gather)
        q.run = range_extent(p->terms.range[p->terms.n - 1]);
    for (int64_t wr = u->m; wr <= MOST_SIDE; wr += any ? u->m : wr)
        for (int64_t wc = u->n; wc <= MOST_SIDE; wc += !any || wc < 2 * u->n ? wc : 2 * u->n)
            for (int64_t down = 1; down <= 4; down *= 2)
                for (int64_t along = 1; along <= 4; along *= 2)
                    for (int64_t parts = 1; parts <= most; parts *= 2)
                        for (int64_t wt = u->k; wt * bytes <= t->machine.line; wt *= 2) {
                            const TileSize b = {wr * down, wc * along, wt * parts, wr,   wc,
                                                wt,        0,          1,          false};
                            int64_t sums = wr * wc / u->lanes, warps = down * along * parts;
                            bool wide = (down > 1 && b.rows >= 2 * e->rows) ||
                                        (along > 1 && b.columns >= 2 * e->columns);
                            if (warps > most ||
                                sums > TC_MOST_SUMS / 2 * (u->a == INGOT_F32 ? 1 : 2) ||
                                (b.terms > u->k && b.terms >= e->terms) ||
                                b.terms * bytes < t->machine.sector || wide)
                                continue;
                            rank_groups(&q, b);
                        }
    const Ranking *r = &q.order;
    if (!r->n)
        return false;
    const int at = t->nth && t->nth - 1 < r->n ? t->nth - 1 : 0;
    *best = q.ranked[r->number[at]];
    *cycles = r->time[at];
    return true;
}

/* The axis of a weight that moves with a range is last; at: where each of its axes is. */
static void put_last(const Nest *n, Node *x, Node *range, int rank, int *at, Layout *l)
{
    const Move m = access_move(n->k->c, x, range);
    if (m.kind != MOVE_AXIS)
        return;
    const int was = at[m.axis];
    layout_put_last(l, rank, was);
    for (int i = 0; i < rank; i++)
        at[i] -= at[i] > was;
    at[m.axis] = rank - 1;
}

/* Do the axes follow each other in an operand as they are joined, if it moves with them at all? */
static bool lies_joined(const Kernel *k, Node *x, const JoinedAxis *p)
{
    int64_t stride, inner;
    for (int i = p->n - 1; i > 0; i--)
        if (!access_stride(k, x, p->range[i], &inner) ||
            !access_stride(k, x, p->range[i - 1], &stride) ||
            stride != inner * range_extent(p->range[i]))
            return false;
    return true;
}

/* Weights lie as their terms follow each other, those of a row or column side by side, and rows
 * begin at multiples of 16 bytes. Terms of one axis stay where they are, unless the unit takes them
 * no other way, or word by word. Columns of several axes (of a transposed convolution channels, of
 * each place of a window) lie as they are joined. */
static void lay_out(const Nest *n, const View *v, const Buffer *const *bufs, const Product *p,
                    Layout *want)
{
    const JoinedAxis *terms = &p->terms, *columns = &p->columns;
    const bool whole = dtype_info[p->unit->a].bytes != 2;
    for (int i = 0; i < v->nfactor; i++) {
        Node *x = v->factor[i];
        const int arg = (int)x->src[0]->arg.i, rank = bufs[arg]->rank;
        if (bufs[arg]->kind != BUF_WEIGHT)
            continue;
        int at[INGOT_MAX_RANK]; /* an axis of the buffer, after what has been put last so far */
        for (int j = 0; j < rank; j++)
            at[j] = j;
        const bool moves = depends_on(x, columns->range[0]) && !lies_joined(n->k, x, columns);
        for (int j = 0; j < columns->n && moves; j++)
            put_last(n, x, columns->range[j], rank, at, &want[arg]);
        for (int j = 0; j < terms->n && (terms->n > 1 || whole); j++)
            put_last(n, x, terms->range[j], rank, at, &want[arg]);
        pitch_weight(bufs[arg], n->target, &want[arg]);
    }
}

/* What is made of a sum before it is stored, in additions. */
static int work_of(const View *v, Arena *a)
{
    int n, work = 0;
    Node *value = v->store[0]->src[2], **order = graph_toposort(a, 1, &value, &n);
    for (int i = 0; i < n; i++)
        if (order[i]->dtype != INGOT_INDEX && (order[i] == v->dot || depends_on(order[i], v->dot)))
            work += order[i] == v->dot ? 0 : op_info[order[i]->op].cost;
    return work;
}

/* Operands of what is made of a sum that move with all that results do. */
static int beside_results(const View *v, const Product *p)
{
    int count = 0;
    for (int i = 0; i < v->nload; i++) {
        bool moves = true;
        for (int j = 0; j < v->nfactor; j++)
            moves = moves && v->load[i] != v->factor[j];
        for (int j = 0; j < p->rows.n; j++)
            moves = moves && depends_on(v->load[i], p->rows.range[j]);
        for (int j = 0; j < p->columns.n; j++)
            moves = moves && depends_on(v->load[i], p->columns.range[j]);
        count += moves;
    }
    return count;
}

bool mma_wgmma_opts(Nest **nest, Product p, const Extents *e, double cycles)
{
    Nest *tiled = nest_clone(*nest);
    bool good = mma_join(tiled, &p);
    for (int i = 0; i < p.copies.n && good; i++)
        good = nest_opt(tiled, OPT_UPCAST, p.copies.of[i], range_extent(p.copies.range[i]));
    good = good && choose_wgmma_opts(&tiled, &p, e, cycles);
    nest_free(good ? *nest : tiled);
    if (good)
        *nest = tiled;
    return good;
}

/* What of a kernel its operands are: those that are no weights may be copied, or not. */
typedef struct {
    Arena *a;
    const View *v;
    const Buffer *const *bufs;
    bool may_copy;
} MmaOperands;

/* Copies of operands with their terms side by side, the last of `terms` innermost: gives the bytes
 * that they read and write; -1: one cannot be copied, or none has to be.  Weights have what
 * lay_out() gives them. */
static int64_t turn_operands(const Nest *n, const MmaOperands *o, const JoinedAxis *terms,
                             Layout *copy)
{
    int64_t bytes = 0, stride;
    for (int i = 0; i < o->v->nfactor; i++) {
        Node *x = o->v->factor[i], *last = terms->range[terms->n - 1];
        const int arg = (int)x->src[0]->arg.i;
        const Buffer *b = o->bufs[arg];
        if (b->kind == BUF_WEIGHT || (access_stride(n->k, x, last, &stride) && stride == 1))
            continue;
        if (n->k->args[arg].written || only_load(o->a, n->k->sink, arg) != x)
            return -1;
        for (int j = 0; j < terms->n; j++) {
            const Move m = access_move(n->k->c, x, terms->range[j]);
            if (m.kind != MOVE_AXIS || m.stride != 1)
                return -1;
            layout_put_last(&copy[arg], b->rank, m.axis);
        }
        pitch_weight(b, n->target, &copy[arg]);
        bytes = sat_add(bytes, 2 * b->bytes);
    }
    return bytes ? bytes : -1;
}

/* An operand that a warpgroup's unit takes no other way than with its terms side by side is copied
 * so, where that takes less all the same. */
static bool turned_opts(Nest **nest, const MmaOperands *o, const Product *p, const Extents *e,
                        double cycles)
{
    const double gain = 0.9; /* estimates of two forms are not that close */
    const Machine *m = &(*nest)->target->machine;
    Kernel *k = (*nest)->k;
    Layout *copy = NEWN(o->a, Layout, k->narg), *was = NEWN(o->a, Layout, k->narg);
    const int64_t bytes = turn_operands(*nest, o, &p->terms, copy);
    if (bytes < 0)
        return false;
    for (int i = 0; i < k->narg; i++) {
        was[i] = k->args[i].layout;
        if (copy[i].n)
            k->args[i].layout = copy[i];
    }
    const bool good =
        mma_wgmma_opts(nest, *p, e, gain * cycles - m->turned - (double)bytes / m->level[0].rate);
    for (int i = 0; i < k->narg; i++) {
        k->args[i].layout = was[i];
        if (!good || !copy[i].n)
            continue;
        k->choice->arg[i].copied = true;
        k->choice->arg[i].copy = copy[i];
    }
    return good;
}

/* Blocks whose terms groups of a cluster share, if they take clearly less than those that one group
 * has. */
static void share_terms(const Extents *e, const Product *p, const Target *t, TileSize *best,
                        double cycles)
{
    const double gain = 0.9;
    TileSize b;
    double less;
    if (mma_can_meet(t, p->unit) && pick_block(e, p, t, false, true, &b, &less) &&
        less < gain * cycles)
        *best = b;
}

/* The gradient of a convolution by its weights: columns are channels of taps, which lie side by
 * side in the operand, but not in results. Boxes bring a tap's channels of many pixels, so columns
 * are in the operand's order. */
static bool taps_opts(Nest **nest, const MmaOperands *o, const Product *p, const Extents *e,
                      double cycles)
{
    const Kernel *k = (*nest)->k;
    Product q = *p;
    Extents of = *e;
    int64_t stride;
    Node *last = q.columns.range[q.columns.n - 1],
         *y = o->v->factor[depends_on(o->v->factor[1], last)];
    mma_order_rows(k, y, &q.columns);
    last = q.columns.range[q.columns.n - 1];
    if (last == p->columns.range[q.columns.n - 1] || !access_stride(k, y, last, &stride) ||
        stride != 1)
        return false;
    of.run = range_extent(last);
    return mma_wgmma_opts(nest, q, &of, cycles);
}

/* gather: element by element. */
static bool product_opts(Nest **nest, const MmaOperands *o, Product p, const Extents *e,
                         bool gather)
{
    const Target *t = (*nest)->target;
    TileSize b = {0};
    double cycles;
    const char *step;
    if (!gather && !t->nth && mma_few_opts(nest, o->v, &p, e))
        return true;
    if (e->sums > 1)
        return !gather && !t->nth && mma_wgmma_opts(nest, p, e, INFINITY);
    if (!pick_block(e, &p, t, gather, t->nth && !gather && mma_can_meet(t, p.unit), &b, &cycles))
        return false;
    if (!gather && (taps_opts(nest, o, &p, e, cycles) || mma_wgmma_opts(nest, p, e, cycles)))
        return true;
    if (!gather && !t->nth && o->may_copy && turned_opts(nest, o, &p, e, cycles))
        return true;
    if (!gather && !t->nth)
        share_terms(e, &p, t, &b, cycles);
    /* fragments that are loaded ahead are for a loop: of straight-line code compilers load them
     * early themselves */
    const bool straight = p.unit->products == 1 && is_straight(e, &b, p.unit);
    const bool ahead = !straight && !is_one_block(e, &b) && has_room(e, &b, p.unit, t);
    if (!join_for(*nest, &p, b.runs) || !block_opts(*nest, &p, &b, ahead, &step) ||
        !mma_stage(nest, step, gather || is_one_block(e, &b) ? 0 : b.depth))
        return false;
    if (t->triggers && p.unit->products == 1 && !gather)
        (void)nest_opt(*nest, OPT_TRIGGER, b.groups > 1 || e->few ? "waited" : "summed", 0);
    return true;
}

/* Are there so many columns that memory decides, and not what of a fragment is empty? */
static bool fills(const Target *t, int64_t columns)
{
    return columns >= (int64_t)t->machine.processors * t->machine.group;
}

static bool takes_sums(const Product *p, const View *v)
{
    Node *range[] = {p->rows.range[0], p->columns.range[0], p->terms.range[0]};
    bool takes = true;
    for (int i = 0; i < v->nreduce; i++)
        takes &= tc_takes(p->unit, v->reduce[i], range);
    return takes;
}

bool choose_mma_opts(Arena *a, Nest **nest, const Buffer *const *bufs, bool may_copy, Layout *want)
{
    const Kernel *k = (*nest)->k;
    View v = kernel_view(k);
    const MmaOperands operands = {a, &v, bufs, may_copy};
    Node *term[TC_MOST_TERMS], *operand[MMA_MOST_OPERANDS];
    if (!v.dot || v.nstore != 1 || !mma_operands(k, &v, operand) || k->flops < LEAST_WORK)
        return false;
    for (int i = 0; i < v.nreduce; i++)
        if (tc_terms(v.reduce[i]->src[0], term, TC_MOST_TERMS) != 1)
            return false;
    for (int i = 0; i < TC_COUNT; i++) {
        Product p = {.unit = &tc_units[i], .arg = v.factor[0]->src[0]->arg.i};
        Node *x = v.factor[0], *y = v.factor[1];
        if (!((*nest)->target->machine.units >> i & 1) || !p.unit->lanes || tc_in_place(p.unit) ||
            !take_apart(k, &v, x, y, &p))
            continue;
        if (!depends_on(x, p.rows.range[0])) {
            x = v.factor[1];
            y = v.factor[0];
        }
        if (!takes_sums(&p, &v))
            continue;
        int64_t rows = 1, columns = 1, terms = 1, others = 1;
        for (int j = 0; j < p.rows.n; j++)
            rows = sat_mul(rows, mma_most(p.rows.range[j]));
        for (int j = 0; j < p.columns.n; j++)
            columns = sat_mul(columns, mma_most(p.columns.range[j]));
        for (int j = 0; j < p.terms.n; j++)
            terms = sat_mul(terms, range_extent(p.terms.range[j]));
        for (int j = 0; j < p.others.n; j++)
            others = sat_mul(others, mma_least(p.others.range[j]));
        const bool of_weights = bufs[x->src[0]->arg.i]->kind == BUF_WEIGHT,
                   of_data = bufs[y->src[0]->arg.i]->kind != BUF_WEIGHT;
        const bool narrow =
            (rows < p.unit->m / 2 && !(of_weights && of_data && fills((*nest)->target, columns))) ||
            columns < p.unit->n;
        const bool of_few = mma_can_meet((*nest)->target, p.unit) && of_data != (rows < columns) &&
                            of_weights == of_data && mma_has_few_rows(&p, rows, columns);
        if ((narrow && !of_few) || 2 * terms < p.unit->k)
            continue;
        order_terms(k, bufs[x->src[0]->arg.i]->kind == BUF_WEIGHT ? y : x, &p.terms);
        mma_order_rows(k, x, &p.rows);
        Layout *weights = NEWN(a, Layout, k->narg);
        for (int j = 0; j < v.nreduce; j++) {
            const View sum = view_of_sum(k, v.reduce[j]);
            lay_out(*nest, &sum, bufs, &p, weights);
        }
        Nest *tiled = NULL;
        Layout *was = NEWN(a, Layout, k->narg);
        for (int j = 0; j < k->narg; j++) {
            was[j] = k->args[j].layout;
            if (weights[j].n)
                k->args[j].layout = weights[j];
        }
        const Extents e = {
            rows,      columns, terms, others, work_of(&v, a), beside_results(&v, &p),
            v.nreduce, of_few,  false, 0};
        bool good = false;
        for (int gather = 0; gather < 2 && !good && !(gather && narrow); gather++) {
            if (tiled)
                nest_free(tiled);
            tiled = nest_clone(*nest);
            good = narrow ? mma_few_opts(&tiled, &v, &p, &e)
                          : product_opts(&tiled, &operands, p, &e, gather);
        }
        for (int j = 0; j < k->narg && !good; j++)
            k->args[j].layout = was[j];
        if (good)
            memcpy(want, weights, (size_t)k->narg * sizeof *want);
        nest_free(good ? *nest : tiled);
        if (!good)
            continue;
        *nest = tiled;
        return true;
    }
    return false;
}
