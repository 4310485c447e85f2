/* cpu_attention.c - opts of a kernel whose sums read rows that it keeps in places: attention.
 *
 *     s[q,j] -> place       lanes along j, `vectors` of them, for each of `rows` queries
 *     e[q,j] -> place       lanes along j
 *     y[q,d]                lanes along d, `vectors` of them, for each of `rows` queries
 *
 * The rows are copies of the stores (UPCAST), so that both sums of products are tiles of rows x
 * vectors in registers, and the places hold that many rows.  Whatever is reduced along a row has
 * its lanes there too, and weights lie as the lanes read them.  A window over each channel, its
 * normalisation and the product with a matrix behind it (ConvNeXt) are of this form too. */
#include <math.h>
#include <string.h>

#include "cpu.h"

/* The place that a factor of a sum's products is read from, or NULL. */
static Node *staged_factor(Node *sum)
{
    Node *product = sum->src[0];
    if (!is_sum_of_products(sum) || sum->nsrc != 2)
        return NULL;
    for (int i = 0; i < 2; i++) {
        Node *x = below_casts(product->src[i]);
        if (x->op == OP_STAGE && x->src[x->nsrc - 1] == sum->src[1])
            return x;
    }
    return NULL;
}

static Node *sum_of_rows(const View *v, Node **staged)
{
    for (int i = 0; i < v->nreduce; i++)
        if ((*staged = staged_factor(v->reduce[i])))
            return v->reduce[i];
    return NULL;
}

typedef struct {
    Node *lanes, *rows;
    int64_t width, vectors, nrows;
    double score;
} RowsTile;

static void pick(RowsTile *best, RowsTile tile, const Target *t)
{
    int64_t extent, rows;
    if (!idx_value(tile.lanes->src[0], &extent) || !idx_value(tile.rows->src[0], &rows))
        return;
    for (tile.vectors = 1; tile.vectors <= 4; tile.vectors++)
        for (tile.nrows = 1; tile.nrows <= MAX_ROWS && tile.nrows <= rows; tile.nrows++) {
            double acc = (double)(tile.vectors * tile.nrows),
                   loads = (double)(tile.vectors + tile.nrows);
            if (extent % (tile.vectors * tile.width) ||
                acc + (double)tile.vectors + 1 > t->machine.registers)
                continue;
            double flow = flow_of(acc / loads, true), latency = fmin(acc, t->machine.chains);
            int64_t whole = ceil_div(rows, tile.nrows) * tile.nrows;
            tile.score = (double)rows / (double)whole * flow * latency * (double)tile.width;
            if (rows % tile.nrows)
                tile.score *= 0.97;
            /* the other operands come from L2 again for each block of rows */
            tile.score *= (double)tile.nrows / (double)(tile.nrows + 1);
            if (tile.score >= best->score)
                *best = tile;
        }
}

typedef struct {
    Node *range;
    int64_t width, block; /* of a vector; elements that one iteration takes */
} RowLanes;

typedef struct {
    Arena *a;
    Nest *nest;
    View v;
    const Buffer *const *bufs;
    bool may_copy, *free;
    RowLanes *vector; /* what has lanes */
    int nvector;
} AttentionOperands;

/* Can lanes run along it, after copies of operands that lie otherwise if need be? */
static bool can_be_lanes(const AttentionOperands *o, Node *range, int64_t width)
{
    int moves;
    int64_t extent;
    const Kernel *k = o->nest->k;
    return idx_value(range->src[0], &extent) && extent >= width &&
           fits_lanes(o->a, k, range, width, o->free, &moves, NULL) &&
           (!moves || (o->may_copy && can_lay_out(k, &o->v, o->bufs, o->free, range)));
}

static void in_lanes(AttentionOperands *o, Node *range, int64_t width)
{
    const RowLanes lanes = {range, width, width};
    if (nest_opt_range(o->nest, OPT_VECTOR, range, width))
        vec_push(o->a, o->vector, o->nvector, lanes);
}

static void unroll_lanes(AttentionOperands *o, OptKind kind, Node *range, int64_t vectors)
{
    nest_opt_range(o->nest, kind, range, vectors);
    for (int i = 0; i < o->nvector; i++)
        o->vector[i].block *= o->vector[i].range == range ? vectors : 1;
}

/* Lanes along a row, where it is reduced or a place is filled with it. */
static bool row_lanes(AttentionOperands *o, Node *range, int64_t width)
{
    bool good = can_be_lanes(o, range, width);
    if (good)
        in_lanes(o, range, width);
    return good;
}

/* Weights lie as the lanes and the loops read them; false: one of them cannot. Where a row is no
 * whole number of vectors, its last one reaches from one block of a weight into the next: there the
 * weight stays as it is, or lies in one block. */
static bool lay_out_rows(const AttentionOperands *o, Layout *want)
{
    const Kernel *k = o->nest->k;
    const View *v = &o->v;
    for (int i = 0; i < o->nvector; i++) {
        Node *loop[INGOT_MAX_RANK * 4], *lanes = o->vector[i].range;
        int n = 0;
        if (v->nrange >= INGOT_MAX_RANK * 4)
            return false;
        for (int j = 0; j < v->nrange; j++)
            if (v->range[j] != lanes)
                loop[n++] = v->range[j];
        loop[n++] = lanes;
        for (int j = 0; j < v->nreduce; j++)
            for (uint32_t l = reduce_ranges(v->reduce[j]); l < v->reduce[j]->nsrc; l++)
                if (v->reduce[j]->src[l] != lanes && n < INGOT_MAX_RANK * 4)
                    loop[n++] = v->reduce[j]->src[l];
        const bool ragged = range_extent(lanes) % o->vector[i].width != 0;
        const Packing packing = {.lanes = lanes,
                                 .block = o->vector[i].block,
                                 .reuse = !ragged,
                                 .loop = loop,
                                 .nloop = n};
        for (int j = 0; j < v->nload; j++) {
            const int arg = (int)v->load[j]->src[0]->arg.i;
            int64_t stride;
            if (!o->free[arg] || !depends_on(v->load[j], lanes) || want[arg].n)
                continue;
            const bool together = access_stride(k, v->load[j], lanes, &stride) && stride == 1;
            if (!(ragged && together) && !packing_layout(k, v->load[j], &packing, &want[arg]) &&
                !together)
                return false;
        }
    }
    return true;
}

/* The other sum of products, which fills a place along range, or NULL. */
static Node *filling_sum(const View *v, const Node *sum, Node *range)
{
    for (int i = 0; i < v->nreduce; i++)
        if (v->reduce[i] != sum && depends_on(v->reduce[i]->src[0], range) &&
            v->reduce[i]->src[0]->op == OP_MUL)
            return v->reduce[i];
    return NULL;
}

/* Is it what a place is filled with? */
static bool is_filling(const Kernel *k, const View *v, const Node *sum, const Node *reduce)
{
    for (int i = 0; i < k->naxis; i++)
        if (k->axes[i].staged && filling_sum(v, sum, k->axes[i].range) == reduce)
            return true;
    return false;
}

/* What the sum's other operand moves with comes first, then the rows, which share it, then the
 * lanes. */
static void order_loops(Nest *nest, const View *v, const Node *sum, const RowsTile *tile)
{
    const char *names = "";
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < v->nrange; i++) {
            Node *r = v->range[i];
            int mine = r == tile->lanes ? 2 : 1, loop = nest_loop(nest, nest_root(nest, r));
            for (int l = 0; l < v->nload && r != tile->lanes; l++)
                if (depends_on(v->load[l], sum->src[1]) && depends_on(v->load[l], r))
                    mine = 0;
            if (mine == turn)
                names = nest_and_name(nest, names, loop);
        }
    nest_opt(nest, OPT_ORDER, names, 0);
}

bool staged_rows_opts(Arena *a, Nest *nest, const Buffer *const *bufs, bool may_copy, Layout *want,
                      Node **lanes, int *nlanes)
{
    const Kernel *k = nest->k;
    AttentionOperands o = {.a = a,
                           .nest = nest,
                           .v = kernel_view(k),
                           .bufs = bufs,
                           .may_copy = may_copy,
                           .free = NEWN(a, bool, k->narg)};
    const View *v = &o.v;
    find_free(k, v, bufs, o.free);
    Node *staged, *sum = sum_of_rows(v, &staged);
    RowsTile best = {.score = 0};
    *nlanes = 0;
    if (!sum || !nest->target->machine.lanes)
        return false;
    int64_t most = nest->target->machine.lanes; /* of the widest value that moves along a row */
    for (int i = 0; i < k->naxis; i++) {
        int64_t n = k->axes[i].staged ? lanes_along(k, nest->target, k->axes[i].range) : 0;
        most = n && n < most ? n : most;
    }
    for (int i = 0; i < v->nrange; i++)
        for (int j = 0; j < v->nrange; j++) {
            RowsTile tile = {.lanes = v->range[i], .rows = v->range[j]};
            tile.width = lanes_along(k, nest->target, tile.lanes);
            int64_t extent;
            while (tile.width > 4 && idx_value(tile.lanes->src[0], &extent) &&
                   (extent % tile.width || tile.width > most))
                tile.width /= 2;
            if (i == j || !tile.width || depends_on(staged, tile.lanes) ||
                !depends_on(sum, tile.lanes) || !depends_on(staged, tile.rows) ||
                !can_be_lanes(&o, tile.lanes, tile.width))
                continue;
            bool reused = false; /* some factor of the sum does not move with the rows */
            for (int l = 0; l < v->nload; l++)
                reused |= depends_on(v->load[l], sum->src[1]) && !depends_on(v->load[l], tile.rows);
            if (reused)
                pick(&best, tile, nest->target);
        }
    if (best.score <= 0)
        return false;
    lanes[(*nlanes)++] = best.lanes;
    in_lanes(&o, best.lanes, best.width);
    for (int i = 0; i < v->nreduce; i++) {
        Node *r = v->reduce[i];
        if (r != sum && r->nsrc == 2 && !is_filling(k, v, sum, r))
            row_lanes(&o, r->src[1], best.width);
    }
    Node *tiled[MAX_LANES];
    int ntiled = 0;
    for (int i = 0; i < k->naxis; i++) {
        Node *range = k->axes[i].range, *fill = filling_sum(v, sum, range);
        if (!k->axes[i].staged)
            continue;
        bool good = row_lanes(&o, range, best.width);
        if (good && fill && ntiled < MAX_LANES - 1)
            lanes[(*nlanes)++] = tiled[ntiled++] = range;
        if (!good && fill) /* as both of its operands lie */
            row_lanes(&o, fill->src[fill->nsrc - 1], best.width);
    }
    nest_opt_range(nest, OPT_UPCAST, best.rows, best.nrows);
    if (best.vectors > 1)
        unroll_lanes(&o, OPT_UPCAST, best.lanes, best.vectors);
    for (int i = 0; i < ntiled && best.vectors > 1; i++)
        unroll_lanes(&o, OPT_UNROLL, tiled[i], best.vectors);
    order_loops(nest, v, sum, &best);
    return lay_out_rows(&o, want);
}
