/* gpu_attention.c - opts of a kernel whose sums read rows of other sums, on a GPU whose lanes
 * multiply fragments together: attention.
 *
 * A group has some blocks of rows, and all that they share (keys, values) in places; rows stay in
 * the registers of lanes (tc_rows.c), each in those of one warp, or parts of it in those of
 * several.  Values are not divided: the more groups, the more often what all rows share is
 * copied.
 *
 * Longer rows are taken by blocks: then the places have what a block reads, and what the next one
 * reads is on its way.
 *
 * Few rows (the queries of a token that share a head of keys) of keys as many as a run says: all
 * keys are read once, so groups are as many as bring them, a cluster for each head, of which each
 * warp of each group has every n-th block:
 *
 *     MASK p0 512  SPLIT p0 512  SPLIT p0.i 64  SPLIT p0.i.i 16
 *     BIND p0.i.o cluster  BIND p0.i.i.o warp  STAGE p0.o 2 depth 6 */
#include <math.h>

#include "gpu.h"

/* Two sums of products, the operand of the outer one that is read, and the ranges that they move
 * with. Rows may be made of several inner sums over one range (rows_again.c): `more` beside the
 * first one. */
enum { MOST_MORE = 3 };
typedef struct {
    Node *inner, *outer, *stage, *value;
    Node *rows, *columns, *row, *along;
    Node *more[MOST_MORE];
    int nmore;
} Attention;

static bool find_sums(const View *v, Attention *at)
{
    for (int i = 0; i < v->nreduce; i++) {
        Node *r = v->reduce[i], *product = r->src[0];
        if (!is_sum_of_products(r) || r->nsrc != 2)
            continue;
        Node *x = below_casts(product->src[0]), *y = below_casts(product->src[1]);
        const bool loads = x->op == OP_LOAD && y->op == OP_LOAD;
        if (loads && !at->inner) {
            at->inner = r;
        } else if (loads && at->inner->src[1] == r->src[1] && at->nmore < MOST_MORE) {
            at->more[at->nmore++] = r;
        } else if ((x->op == OP_STAGE) != (y->op == OP_STAGE) &&
                   (x->op == OP_LOAD || y->op == OP_LOAD) && !at->outer) {
            at->outer = r;
            at->stage = x->op == OP_STAGE ? x : y;
            at->value = x->op == OP_STAGE ? y : x;
            at->along = r->src[1];
        }
    }
    return at->inner && at->outer;
}

/* Of the results a range that rows move with and what they share does not, the longest (of several
 * heads that read the same keys each has rows of its own), and the one of the columns. */
static bool find_ranges(const Nest *n, const View *v, Attention *at)
{
    Node *x = below_casts(at->inner->src[0]->src[0]), *y = below_casts(at->inner->src[0]->src[1]);
    for (int i = 0; i < v->nrange; i++) {
        Node *r = v->range[i];
        const bool moves = depends_on(at->stage, r);
        if (mma_most(r) < 2)
            continue;
        if (moves && !depends_on(at->value, r) && depends_on(x, r) != depends_on(y, r)) {
            at->rows = at->rows && mma_most(at->rows) >= mma_most(r) ? at->rows : r;
        } else if (!moves && depends_on(at->value, r)) {
            if (at->columns)
                return false;
            at->columns = r;
        }
    }
    for (int i = 0; i < n->k->naxis && at->rows; i++) {
        Node *r = n->k->axes[i].range;
        if (n->k->axes[i].staged && (depends_on(x, r) || depends_on(y, r)))
            at->row = r;
    }
    for (int i = 1; i < v->nstore && at->columns; i++) /* what rows have one of */
        for (uint32_t j = 3; j < v->store[i]->nsrc; j++)
            if (depends_on(v->store[i]->src[j], at->columns))
                return false;
    return at->rows && at->columns && at->row;
}

static const char *name_of(const Nest *n, Node *range)
{
    return n->k->axes[nest_root(n, range)].name;
}

enum {
    STAGES = 2,     /* of what a block reads */
    OVERLAPPED = 3, /* the same where blocks overlap */
    FEW_STAGES = 6, /* the same of few rows, at most: memory decides, so turns are short, and as
                     * many of them are under way as there is room for */
    EIGHT = 8,      /* keys that figures count at once */
    MOST_ALONG = 16 /* axes along a row */
};

/* How a group computes: blocks of rows, a warp each, times warps that have a part of each row; or
 * so many elements of a row after each other, 0: all at once. */
typedef struct {
    int64_t blocks, parts, each;
    int64_t ranks;  /* groups of a cluster that have parts of a row, or 0: ... */
    int64_t stages; /* ... so many blocks of a group are there or on their way */
} RowsSize;

/* Extents, and how many rows there are of each (heads).  Where a mask ends rows, or leaves out what
 * they begin with, row i has `first` + `slope` i elements; else the slope is 0. */
typedef struct {
    int64_t rows, along, terms, columns, others;
    int64_t first, slope;
    int64_t sums;  /* that rows are made of */
    bool again;    /* what the rows are multiplied by is what they are made of */
    bool overlaps; /* a block's results may come with the next one's scores (render_overlap.c) */
} RowsExtents;

/* How much of a row each of so many warps has. */
static int64_t part_of(const RowsExtents *e, const Tc *u, int64_t parts)
{
    const int64_t least = u->k > u->n ? u->k : u->n;
    return ceil_div(ceil_div(e->along, parts), least) * least;
}

/* The registers of a lane that sums of a part and of results take. */
static int64_t rows_registers(const RowsExtents *e, const Tc *u, const RowsSize *s)
{
    return (part_of(e, u, s->parts) + e->columns) * u->m / u->lanes;
}

static bool rows_fit(const RowsExtents *e, const Tc *u, const RowsSize *s, const Machine *m)
{
    const int64_t part = part_of(e, u, s->parts);
    return s->blocks * s->parts <= m->group / m->warp &&
           (s->parts == 1 || part * (s->parts - 1) < e->along) &&
           rows_registers(e, u, s) <= TC_MOST_ROW;
}

/* Bytes that a group copies, and has places for. */
static int64_t rows_copied(const RowsExtents *e, const Tc *u, const RowsSize *s)
{
    const int64_t bytes = dtype_info[u->a].bytes, pad = 2 * TC_PIECE / bytes;
    const int64_t keys = part_of(e, u, s->parts) * s->parts, rows = s->blocks * u->m;
    return ((rows + keys) * (e->terms + pad) + keys * (e->columns + pad)) * bytes;
}

static int64_t rows_bytes(const RowsExtents *e, const Tc *u, const RowsSize *s)
{
    const int64_t joined = s->parts * s->blocks * u->m * (e->columns + TC_PIECE) * 4;
    return rows_copied(e, u, s) + (s->parts > 1 ? joined : 0);
}

/* Cycles that attention takes, but for what it begins with: copies flow into a processor, its warps
 * take turns or each waits for itself, and parts of rows are joined.  Measured on an H100 (12
 * heads, 64 to 197 rows). */
static double rows_cycles(const RowsExtents *e, const Tc *u, const RowsSize *s, const Target *t)
{
    const Machine *m = &t->machine;
    const RowProducts *w = &m->row_products;
    const bool three = u->products > 1;
    const double groups = (double)(e->others * ceil_div(e->rows, s->blocks * u->m));
    const double room = floor((double)m->shared / (double)rows_bytes(e, u, s));
    const double beside = fmin(room, ceil(groups / m->processors));
    const double waves = ceil(groups / (m->processors * beside));
    const double products = (double)(e->terms + e->columns) / (double)u->k;
    const double eights = (double)part_of(e, u, s->parts) / u->n;
    const double warps = ceil(beside * (double)(s->blocks * s->parts) / m->quarters);
    const double issued =
        warps * eights * (products * (three ? w->product3 : w->product) + w->others);
    const double waited = eights * (products * (three ? w->wait3 : w->wait) + w->waited);
    const double crowded = three && rows_registers(e, u, s) > w->registers ? 2 : 1;
    const double join = s->parts > 1 ? (double)s->parts * w->join : 0;
    return waves * (beside * (double)rows_copied(e, u, s) / w->flow +
                    crowded * fmax(issued, waited) + join);
}

/* What all rows share is along these: each warp's part of them. */
static bool rows_parts(Nest *n, const Attention *at, int64_t part, const char **own, int nown)
{
    bool good = true;
    int count = 0;
    for (int i = 0; i < nown; i++)
        own[i] = NULL;
    for (int i = 0; i < n->k->naxis && good; i++) {
        const char *name = n->k->axes[i].name, *warp, *inside;
        if (!n->k->axes[i].reduced || n->k->axes[i].range == at->inner->src[1])
            continue;
        good = mma_mask(n, name, part) && mma_divide(n, name, part, &warp, &inside) && count < nown;
        if (good)
            own[count++] = warp;
    }
    return good;
}

/* A block of a row, if warps or turns have one each; if groups have some it is inside of theirs. */
static const char *part_name(Nest *n, Node *range, bool divided, bool ranks)
{
    const char *name = name_of(n, range);
    for (int i = 0; i < (ranks ? 3 : divided); i++)
        name = mma_part(n, name, "i");
    return name;
}

/* Blocks of all that lies along a row: turns, groups of a cluster, their warps. */
static bool few_parts(Nest *n, const Attention *at, const RowsSize *s, const char **rank,
                      const char **warp, int most)
{
    bool good = true;
    int count = 0;
    for (int i = 0; i < most; i++)
        rank[i] = warp[i] = NULL;
    for (int i = 0; i < n->k->naxis && good; i++) {
        const char *name = n->k->axes[i].name, *turns, *in;
        const int64_t group = s->each * s->parts;
        if (!n->k->axes[i].reduced || n->k->axes[i].range == at->inner->src[1])
            continue;
        good = count < most && nest_opt(n, OPT_MASK, name, group * s->ranks) &&
               mma_divide(n, name, group * s->ranks, &turns, &in) && turns &&
               mma_divide(n, in, group, &rank[count], &in) && rank[count] &&
               mma_divide(n, in, s->each, &warp[count], &in) && warp[count];
        count++;
    }
    return good;
}

/* Of rows that a mask ends the last ones are the longest, and the first ones where it leaves out
 * beginnings.  Groups begin in the order of their numbers, or in the opposite one
 * (render_last_first()), so blocks of rows are outside of heads: then the shortest come last, of
 * all of these.
 * What heads share stays in L2 from one block of rows to the next, or they are outside; but groups
 * that stay all have as much to do only if the blocks of each round are of a length. */
static bool order_groups(Nest *n, const View *v, const Attention *at, const RowsExtents *e,
                         const Tc *u, const char *blocks, bool stays)
{
    const char *inner = "", *outer = "";
    double bytes = (double)(e->along * (e->terms + e->columns) * dtype_info[u->a].bytes);
    if (!blocks || !e->slope)
        return true;
    for (int i = v->nrange; i-- > 0;) {
        if (v->range[i] == at->rows || v->range[i] == at->columns || range_extent(v->range[i]) == 1)
            continue;
        if (depends_on(at->value, v->range[i]))
            bytes *= (double)mma_most(v->range[i]);
        const bool near = stays || 2 * bytes <= n->target->machine.level[0].bytes;
        const char **const to = near ? &inner : &outer;
        *to =
            arena_printf(n->arena, to == &inner ? " %s%s" : "%s %s", name_of(n, v->range[i]), *to);
    }
    return nest_opt(n, OPT_ORDER, arena_printf(n->arena, "%s%s%s", outer, blocks, inner), 0);
}

/* What is read: by the sums that rows are made of, then values. */
enum { MOST_READ = 2 * MOST_MORE + 3 };
static int rows_read(const Attention *at, Node **read)
{
    int n = 0;
    for (int i = -1; i < at->nmore; i++)
        for (int j = 0; j < 2; j++)
            read[n++] = below_casts((i < 0 ? at->inner : at->more[i])->src[0]->src[j]);
    read[n++] = at->value;
    return n;
}

/* Are values what rows are made of, as the keys are of queries' gradients?  Then both have one
 * place, of which a unit takes terms or columns along a line. */
static bool values_again(const Kernel *k, const Attention *at)
{
    Node *read[MOST_READ];
    bool again = false;
    for (int i = rows_read(at, read) - 2; i >= 0; i--)
        again |= !depends_on(read[i], at->rows) && reads_same_box(k, read[i], at->value);
    return again;
}

/* Blocks of rows, and what both sums move with, are groups'; blocks of a group its warps', and so
 * are parts of rows.  What is read is copied once, or, if there are blocks of a row, with each of
 * them. */
static bool bind_rows(Nest *n, const View *v, const Attention *at, const RowsExtents *e,
                      const char *blocks, const char *warp, const char *const *part, int stages,
                      bool again, bool stays)
{
    const char *grid = blocks;
    bool good = part || order_groups(n, v, at, e, n->inner, blocks, stays);
    for (int i = 0; i < v->nrange && good; i++) {
        if (v->range[i] == at->rows || v->range[i] == at->columns || range_extent(v->range[i]) == 1)
            continue;
        const char *other = name_of(n, v->range[i]);
        good = nest_opt(n, OPT_BIND, other, BOUND_GRID);
        grid = grid ? grid : other;
    }
    good = good && mma_bind(n, 1, &blocks, BOUND_GRID) && mma_bind(n, 1, &warp, BOUND_WARP) &&
           (!part || mma_bind(n, MOST_ALONG, part, BOUND_WARP));
    Node *read[MOST_READ];
    int nread = rows_read(at, read);
    for (int i = 0; i < nread && good; i++) {
        if (i == nread - 1 && again)
            continue;
        Opt o = {.kind = OPT_STAGE,
                 .axis = grid,
                 .amount = read[i]->src[0]->arg.i,
                 .tma = tc_in_place(n->inner)};
        if (stages && !depends_on(read[i], at->rows)) {
            o.axis = mma_part(n, name_of(n, i < nread - 1 ? at->row : at->along), "o");
            o.depth = stages;
        }
        good = grid && !opt_apply(n, &o);
    }
    return good && !nest_check(n);
}

static bool rows_opts(Nest *n, const View *v, const Attention *at, const Tc *u,
                      const RowsExtents *e, const RowsSize *s)
{
    const char *rows = name_of(n, at->rows), *columns = name_of(n, at->columns),
               *terms = name_of(n, at->inner->src[1]), *blocks, *warp, *copies, *steps;
    const char *part[MOST_ALONG], *rank[MOST_ALONG], *unit_rows, *unit_columns;
    const int64_t block = u->m * s->blocks, ncolumn = mma_extent(n, columns);
    const int64_t own = s->each ? s->each : part_of(e, u, s->parts);
    if (!mma_mask(n, rows, block) || !mma_mask(n, terms, u->k) ||
        !(s->ranks ? few_parts(n, at, s, rank, part, MOST_ALONG)
                   : rows_parts(n, at, own, part, MOST_ALONG)) ||
        ncolumn % u->n || !mma_divide(n, rows, block, &blocks, &unit_rows) ||
        !mma_divide(n, unit_rows, u->m, &warp, &unit_rows) ||
        !mma_divide(n, columns, u->n, &copies, &unit_columns) ||
        (copies && !nest_opt(n, OPT_UPCAST, copies, ncolumn / u->n)) ||
        !mma_divide(n, terms, u->k, &steps, &terms))
        return false;
    const char *inner = arena_printf(n->arena, "%s (%s; %s; %s)", u->name, unit_rows,
                                     part_name(n, at->row, part[0], s->ranks), terms);
    const char *outer = arena_printf(n->arena, "%s (%s; %s; %s)", u->name, unit_rows, unit_columns,
                                     part_name(n, at->along, part[0], s->ranks));
    if (!nest_opt(n, OPT_TC, inner, 0) || !nest_opt(n, OPT_TC, outer, 0))
        return false;
    if (s->ranks && !mma_bind(n, MOST_ALONG, rank, BOUND_CLUSTER))
        return false;
    return bind_rows(n, v, at, e, blocks, warp, s->each && !s->ranks ? NULL : part,
                     s->ranks  ? (int)s->stages
                     : s->each ? STAGES
                               : 0,
                     false, false);
}

static int64_t blocks_bytes(const RowsExtents *e, const Tc *u, const RowsSize *s)
{
    const int64_t bytes = dtype_info[u->a].bytes, pad = TC_PIECE / bytes;
    return (s->blocks * u->m * (e->terms + pad) +
            STAGES * s->each * (e->terms + e->columns + 2 * pad)) *
           bytes;
}

/* Sums of a block, results, and what is added to these. */
static bool blocks_fit(const RowsExtents *e, const Tc *u, const RowsSize *s, const Machine *m)
{
    return s->blocks <= m->group / m->warp && s->each < e->along &&
           (s->each + 2 * e->columns) * u->m / u->lanes <= TC_MOST_ROW &&
           blocks_bytes(e, u, s) <= m->shared;
}

/* Cycles of a row in blocks: as those of rows, but that a block is copied while the one before is
 * multiplied, and that all items meet before each. */
static double blocks_cycles(const RowsExtents *e, const Tc *u, const RowsSize *s, const Target *t)
{
    const Machine *m = &t->machine;
    const RowProducts *w = &m->row_products;
    const bool three = u->products > 1;
    const double groups = (double)(e->others * ceil_div(e->rows, s->blocks * u->m));
    const double registers = (double)((s->each + 2 * e->columns) * u->m / u->lanes + tc_beside(u));
    const double warps_room = floor(m->file / (registers * m->warp));
    const double room = fmax(1, fmin(floor((double)m->shared / (double)blocks_bytes(e, u, s)),
                                     floor(warps_room / (double)s->blocks)));
    const double beside = fmin(room, ceil(groups / m->processors));
    const double waves = ceil(groups / (m->processors * beside));
    const double products = (double)(e->terms + e->columns) / (double)u->k;
    const double eights = (double)e->along / u->n;
    const double warps = ceil(beside * (double)s->blocks / m->quarters);
    const double issued =
        warps * eights * (products * (three ? w->product3 : w->product) + w->others);
    const double waited = eights * (products * (three ? w->wait3 : w->wait) + w->waited);
    const double copied = (double)(e->along * (e->terms + e->columns) * dtype_info[u->a].bytes);
    const double meets = (double)ceil_div(e->along, s->each) * w->join;
    return waves * (fmax(beside * copied / w->flow, fmax(issued, waited)) + meets);
}

/* The same of rows that no warps have room for.  A group has no more than a warp for each quarter
 * of a processor: of several small groups some compute while another one meets (H200, 64 terms and
 * columns, causal: 4 warps 223, 8 warps 176 TFLOP/s). */
static bool choose_blocks(const RowsExtents *e, const Tc *u, const Target *t, RowsSize *best)
{
    double least = INFINITY; /* of longer ones a processor has fewer groups */
    for (int64_t blocks = 1; blocks <= t->machine.quarters; blocks *= 2)
        for (int64_t each = 2 * u->m; each <= 4 * u->m; each *= 2) {
            const RowsSize s = {blocks, 1, each, 0, 0};
            if (each % (u->k > u->n ? u->k : u->n) || !blocks_fit(e, u, &s, &t->machine))
                continue;
            const double cycles = blocks_cycles(e, u, &s, t);
            if (cycles < least) {
                least = cycles;
                *best = s;
            }
        }
    return least < INFINITY;
}

/* ---- by warpgroups, operands in places that boxes fill --------------------------------------- */

/* s.blocks: warpgroups; units of both products; do groups stay, as many as there are processors? */
typedef struct {
    RowsSize s;
    const Tc *inner, *outer;
    double cycles;
    bool stays;
} GroupRows;

/* Sums of an item: of both products, and the row again, packed; and what is made of several sums
 * before it is. */
static int64_t group_sums(const RowsExtents *e, const GroupRows *g)
{
    const int64_t row = g->inner->m * g->inner->n / g->inner->lanes;
    return g->outer->m * g->outer->n / g->outer->lanes + e->sums * row + e->sums * row / 2;
}

static int64_t group_terms(const RowsExtents *e, const Tc *u)
{
    return ceil_div(e->terms, tc_run(u)) * tc_run(u);
}

static bool group_again(const RowsExtents *e, const GroupRows *g)
{
    return e->again && group_terms(e, g->inner) == g->outer->n;
}

static int64_t group_bytes(const RowsExtents *e, const GroupRows *g)
{
    const int64_t terms = group_terms(e, g->inner), columns = group_again(e, g) ? 0 : g->outer->n;
    return (g->s.blocks * g->inner->m * terms * e->sums +
            g->s.stages * g->s.each * (terms * e->sums + columns)) *
               dtype_info[g->inner->a].bytes +
           TC_TOKENS;
}

/* What else an item of several warpgroups has is read anew, in part. */
static bool group_fits(const RowsExtents *e, const GroupRows *g, const Machine *m)
{
    const int64_t sums = group_sums(e, g), beside = tc_beside(g->inner);
    return g->s.each < e->along && (g->s.blocks + 1) * g->inner->lanes <= m->group &&
           (g->s.blocks > 1 ? sums + beside / 2 <= tc_registers(g->s.blocks)
                            : sums + beside <= m->item_registers) &&
           group_bytes(e, g) <= m->shared;
}

/* Blocks along a row that groups of so many rows take: of all of them in the mean, and the most. */
static double blocks_along(const RowsExtents *e, int64_t rows, int64_t each, double *most)
{
    const int64_t groups = ceil_div(e->rows, rows), all = ceil_div(e->along, each);
    double sum = 0;
    *most = 0;
    for (int64_t i = 0; i < groups; i++) {
        const int64_t last = (i + 1) * rows < e->rows ? (i + 1) * rows - 1 : e->rows - 1;
        const int64_t longest = e->slope < 0 ? i * rows : last;
        const double own = (double)ceil_div(e->first + longest * e->slope, each);
        const double n = e->slope ? fmin(fmax(1, own), (double)all) : (double)all;
        sum += n;
        *most = fmax(*most, n);
    }
    return sum / (double)groups;
}

/* Cycles of rows in blocks by warpgroups.  Each multiplies, and waits for what is made of its block
 * before it multiplies again; of all that a processor has, products and instructions add up. Groups
 * beside each other begin at once.  Of rows that a mask ends the longest groups come first, so none
 * is waited for at the end unless it takes longer than all that a processor has.  Where blocks
 * overlap, a processor has one group, whose loader has as many registers as a warpgroup.  Measured
 * on an H200 (causal, 64 and 128 terms, 2,048 to 8,192 keys, one to three warpgroups). */
static double group_cycles(const RowsExtents *e, const GroupRows *g, const Target *t)
{
    const Machine *m = &t->machine;
    const RowProducts *w = &m->row_products;
    const int64_t rows = g->s.blocks * g->inner->m;
    const double groups = (double)(e->others * ceil_div(e->rows, rows));
    const double warps = (double)(g->s.blocks * g->inner->lanes / m->warp) + 1;
    const double registers = (double)(group_sums(e, g) + tc_beside(g->inner)) * m->warp * warps;
    const bool overlap = g->s.stages == OVERLAPPED;
    const double room = overlap ? 1
                                : fmax(1, fmin(floor((double)m->shared / (double)group_bytes(e, g)),
                                               floor(m->file / registers)));
    const double beside = fmin(room, ceil(groups / m->processors));
    const double terms = (double)(group_terms(e, g->inner) * e->sums + g->outer->n);
    const double moved = group_again(e, g) ? terms - (double)g->outer->n : terms;
    const double rate = overlap ? w->rate_overlapped : w->rate;
    const double unit = (double)(g->inner->m * g->s.each) * terms / rate;
    const double eights = (double)g->s.each / EIGHT;
    const double copied = (double)(g->s.each * dtype_info[g->inner->a].bytes) * moved;
    const double made = eights * (overlap ? w->made_overlapped : w->made);
    const double all = beside * (double)g->s.blocks * (unit + made);
    const double alone = unit + eights * w->alone;
    const double block = fmax(beside * copied / w->flow, fmax(all, alone)) + beside * w->join;
    const double begin = g->stays ? (double)g->s.blocks * w->next
                                  : m->group_products.fill + (double)g->s.blocks * w->begin;
    const double turns = groups / (m->processors * beside);
    double most;
    const double mean = blocks_along(e, rows, g->s.each, &most);
    return e->slope ? fmax(turns * (mean * block + begin), most * block + begin)
                    : ceil(turns) * (most * block + begin);
}

/* The narrowest one that has so many columns. */
static const Tc *group_unit(const Target *t, const Tc *like, int64_t columns)
{
    const Tc *best = NULL;
    for (const Tc *u = NULL; (u = tc_next(&t->machine, u));)
        if (tc_in_place(u) && u->a == like->a && u->products == 1 && u->run == TC_RUN &&
            u->n >= columns && (!best || u->n < best->n))
            best = u;
    return best;
}

/* Blocks overlap where several warpgroups take turns: alone, or all at once, they take longer than
 * if no blocks overlap. */
static bool groups_overlap(const RowsExtents *e, const GroupRows *g)
{
    return e->overlaps && g->s.stages == OVERLAPPED && g->s.blocks > 1;
}

static bool choose_groups(const RowsExtents *e, const Tc *like, const Target *t, GroupRows *best)
{
    enum { MOST_GROUPS = 3 };
    const Tc *outer = group_unit(t, like, e->columns);
    best->cycles = INFINITY;
    for (const Tc *u = NULL; outer && (u = tc_next(&t->machine, u));)
        for (int64_t i = 0; i < 2 * MOST_GROUPS; i++) {
            GroupRows g = {{i / 2 + 1, 1, u->n, 0, STAGES + i % 2}, u, outer, 0, false};
            if ((g.s.stages == OVERLAPPED && !groups_overlap(e, &g)) || !tc_in_place(u) ||
                !tc_alike(u, outer) || u->n > 2 * u->m || !group_fits(e, &g, &t->machine))
                continue;
            g.stays = g.s.stages == OVERLAPPED &&
                      e->others * ceil_div(e->rows, g.s.blocks * u->m) > t->machine.processors;
            g.cycles = group_cycles(e, &g, t);
            if (g.cycles < best->cycles)
                *best = g;
        }
    return best->cycles < INFINITY;
}

/* Blocks of all that lies along a row: the names of what is inside those of both sums. */
static bool split_along(Nest *n, const Attention *at, int64_t each)
{
    bool good = true;
    for (int i = 0; i < n->k->naxis && good; i++) {
        const char *name = n->k->axes[i].name, *blocks, *inside;
        if (n->k->axes[i].reduced && n->k->axes[i].range != at->inner->src[1])
            good = mma_divide(n, name, each, &blocks, &inside);
    }
    return good;
}

static bool group_opts(Nest *n, const View *v, const Attention *at, const RowsExtents *e,
                       const GroupRows *g)
{
    const char *rows = name_of(n, at->rows), *columns = name_of(n, at->columns),
               *terms = name_of(n, at->inner->src[1]), *blocks, *warp, *lines, *steps;
    const Tc *u = g->inner;
    if (!split_along(n, at, g->s.each) || !mma_mask(n, columns, g->outer->n) ||
        !mma_divide(n, rows, g->s.blocks * u->m, &blocks, &rows) ||
        !mma_divide(n, rows, u->m, &warp, &rows) ||
        (e->terms > tc_run(u) && !mma_divide(n, terms, tc_run(u), &lines, &terms)) ||
        !mma_divide(n, terms, u->k, &steps, &terms))
        return false;
    const char *inner = arena_printf(n->arena, "%s (%s; %s; %s)", u->name, rows,
                                     mma_part(n, name_of(n, at->row), "i"), terms);
    const char *outer = arena_printf(n->arena, "%s (%s; %s; %s)", g->outer->name, rows, columns,
                                     mma_part(n, name_of(n, at->along), "i"));
    if (!nest_opt(n, OPT_TC, inner, 0) || !nest_opt(n, OPT_TC, outer, 0) ||
        !bind_rows(n, v, at, e, blocks, warp, NULL, (int)g->s.stages, group_again(e, g), g->stays))
        return false;
    const char *all = arena_printf(n->arena, "%d", n->target->machine.processors);
    return !g->stays || (nest_opt(n, OPT_STAY, all, 0) && !nest_check(n));
}

static bool try_groups(Nest **nest, const View *v, const Attention *at, const RowsExtents *e,
                       const GroupRows *g)
{
    Nest *tried = nest_clone(*nest);
    const bool good = group_opts(tried, v, at, e, g);
    nest_free(good ? *nest : tried);
    *nest = good ? tried : *nest;
    return good;
}

/* Of all sizes that a group has room for the one of the fewest cycles. */
static bool choose_size(const RowsExtents *e, const Tc *u, const Target *t, RowsSize *best)
{
    double least = INFINITY;
    for (int64_t blocks = 1; blocks <= 4; blocks *= 2)
        for (int64_t parts = 1; parts <= 8; parts++) {
            const RowsSize s = {blocks, parts, 0, 0, 0};
            if (!rows_fit(e, u, &s, &t->machine) || rows_bytes(e, u, &s) > t->machine.shared)
                continue;
            const double cycles = rows_cycles(e, u, &s, t);
            if (cycles < least) {
                least = cycles;
                *best = s;
            }
        }
    return least < INFINITY;
}

/* Bytes that a group has places for: what it copies, and sums of its warps, and of all of them for
 * the others of its cluster (lower_shares.c). */
static int64_t few_bytes(const RowsExtents *e, const Tc *u, const RowsSize *s)
{
    const int64_t bytes = dtype_info[u->a].bytes, pad = TC_PIECE / bytes,
                  sums = u->m * (e->columns + EIGHT), keys = s->stages * s->each * s->parts;
    return (u->m * (e->terms + pad) + keys * (e->terms + e->columns + 2 * pad)) * bytes +
           (s->parts + 3) * sums * dtype_info[INGOT_F32].bytes;
}

/* Few rows of keys whose number a run says: as many groups as fill a GPU and can meet, of a warp
 * for each quarter of a processor. */
static bool choose_few(const Attention *at, const RowsExtents *e, const Tc *u, const Target *t,
                       int64_t beside, RowsSize *best)
{
    enum { MOST = 8 };
    const Machine *m = &t->machine;
    RowsSize s = {1, m->quarters, u->m, 1, FEW_STAGES};
    const int64_t clusters = sat_mul(e->others, beside);
    while (2 * s.ranks <= MOST && 2 * s.ranks <= m->cluster &&
           (2 * s.ranks * clusters <= (2 * s.ranks > 2 ? m->close : m->processors) ||
            (s.ranks == 1 && 2 * e->others <= m->processors)))
        s.ranks *= 2;
    /* the product behind it has room beside it (mma_room()): its first weights come meanwhile */
    const int64_t room = beside > 1 ? m->shared / 8 * 5 : m->shared;
    while (s.stages > 1 && few_bytes(e, u, &s) > room)
        s.stages--;
    if (s.stages < STAGES || range_extent(at->rows) < 1 || e->rows > u->m ||
        range_extent(at->along) > 0 || s.ranks < 2 || u->products > 1 ||
        s.each * s.parts * s.ranks >= e->along || few_bytes(e, u, &s) > room ||
        (s.each + 2 * e->columns) * u->m / u->lanes > TC_MOST_ROW)
        return false;
    *best = s;
    return true;
}

/* Of a kernel that fills a part of its buffer, how many fill all of it: one of each slot, which are
 * one launch (together.c). */
static int64_t kernels_beside(const Kernel *k, const View *v)
{
    const KernelArg *arg = &k->args[v->store[0]->src[0]->arg.i];
    int64_t all = 1, own = 1, extent;
    for (int i = 0; i < arg->rank; i++)
        all = idx_value(arg->dims[i], &extent) ? sat_mul(all, extent) : 0;
    for (int i = 0; i < v->nrange; i++)
        own = sat_mul(own, mma_most(v->range[i]));
    return all > own ? all / own : 1;
}

/* How many elements of a row its mask leaves, if that grows or falls by as much from each row to
 * the next; at least, where only a run says how many the first row has (tokens before a prompt). */
static void find_mask(const Nest *n, const Attention *at, RowsExtents *e)
{
    const Kernel *k = n->k;
    Context *c = k->c;
    Node *limit = mask_limit(k, at->outer, at->along), *zero = idx(c, 0);
    limit = limit ? limit : mask_rest(n->arena, k, at->outer, at->along);
    if (limit && depends_on(limit, at->rows) && range_stride(c, limit, at->rows, &e->slope))
        e->first = substitute(c, limit, 1, &at->rows, &zero)->lo;
    else
        e->slope = 0;
}

bool choose_rows_opts(Nest **nest)
{
    const View v = kernel_view((*nest)->k);
    const Target *t = (*nest)->target;
    Attention at = {.rows = NULL};
    if (!find_sums(&v, &at) || !find_ranges(*nest, &v, &at))
        return false;
    RowsExtents e = {mma_most(at.rows),
                     mma_most(at.along),
                     range_extent(at.inner->src[1]),
                     range_extent(at.columns),
                     1,
                     0,
                     0,
                     1 + at.nmore,
                     values_again((*nest)->k, &at),
                     false};
    e.overlaps = !at.nmore && !e.again && range_extent(at.along) > 0;
    for (int i = 0; i < v.nrange; i++)
        if (v.range[i] != at.columns && v.range[i] != at.rows)
            e.others = sat_mul(e.others, mma_least(v.range[i]));
    find_mask(*nest, &at, &e);
    for (int i = 0; i < TC_COUNT; i++) {
        const Tc *u = &tc_units[i];
        RowsSize size = {0};
        GroupRows groups = {.inner = NULL};
        Node *range[] = {at.rows, at.columns, at.along};
        if (!(t->machine.units >> i & 1) || u->lanes != t->machine.warp ||
            !tc_takes(u, at.outer, range))
            continue;
        const int64_t beside = kernels_beside((*nest)->k, &v);
        const bool few = choose_few(&at, &e, u, t, beside, &size),
                   longer = !few && e.along > TC_LONG_ROW,
                   by_warps = few || (longer && choose_blocks(&e, u, t, &size)) ||
                              choose_size(&e, u, t, &size);
        const double cycles = by_warps && longer ? blocks_cycles(&e, u, &size, t) : INFINITY;
        Nest *tried = nest_clone(*nest);
        bool good = longer && choose_groups(&e, u, t, &groups) && groups.cycles < cycles;
        if (good && !try_groups(&tried, &v, &at, &e, &groups)) {
            groups.stays = false;
            good = try_groups(&tried, &v, &at, &e, &groups);
        }
        if (!good && by_warps)
            good = rows_opts(tried, &v, &at, u, &e, &size);
        nest_free(good ? *nest : tried);
        if (!good)
            continue;
        *nest = tried;
        if (few && t->triggers)
            (void)nest_opt(tried, OPT_TRIGGER, "waited", 0);
        return true;
    }
    return false;
}
