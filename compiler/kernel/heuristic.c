/* heuristic.c - opts without search.
 *
 * A contraction gets a register tile: `vectors` vectors of outputs along one axis (the lanes, over
 * which the constant operand is stored contiguously) times `rows` outputs along another, over
 * which that operand is reused.  Per step of the reduced axes it loads vectors + rows values and
 * does vectors * rows multiply-adds.  The constant operand is stored in the order in which the
 * loops read it.  Everything else runs its loops in the order of storage, innermost in lanes. */
#include <stdlib.h>
#include <string.h>

#include "heuristic.h"

/* Beyond any stride, and small enough to keep their order. */
static const double LANES_FIRST = 1e12;

enum {
    PAGES = 48,    /* that a core finds without looking far */
    STAGE_USES = 4 /* loops over rows that have to read a panel again to pay for it */
};

bool walks_pages(const Kernel *k, const View *v, Node *load)
{
    double step = dtype_info[load->dtype].bytes, pages = 1;
    for (uint32_t i = 1; i < v->dot->nsrc; i++) {
        double bytes = step * storage_stride(k, load, v->dot->src[i]);
        if (bytes > 0)
            pages *= 1 + (double)v->dot->src[i]->hi * (bytes < PAGE ? bytes / PAGE : 1);
    }
    return pages > PAGES;
}

/* Operands that are computed when the model runs lie as they were written: the panel that a tile's rows read again and again is
 * copied to a place of its own where it lies badly. */
static bool wants_place(const Kernel *k, const View *v, const Buffer *const *bufs,
                        const RegisterTile *tile, Node *load, const Target *t)
{
    int64_t stride;
    if (bufs[load->src[0]->arg.i]->kind == BUF_WEIGHT || !depends_on(load, tile->lanes) ||
        !tile->rows || tile->nfour || depends_on(load, tile->rows) ||
        rows_of(tile->rows) < STAGE_USES * tile->nrows)
        return false;
    bool apart = !access_stride(k, load, tile->lanes, &stride) || stride != 1;
    double panel = (double)(tile->vectors * tile->width * dtype_info[load->dtype].bytes);
    for (uint32_t i = 1; i < v->dot->nsrc; i++)
        panel *= (double)v->dot->src[i]->hi + 1;
    return panel <= t->level[1].bytes / 2 && (apart || walks_pages(k, v, load));
}

/* How many copies the lanes take: what lies apart along them, but not what comes out of a place that rows are transposed into. */
static int copies_of(const Kernel *k, const View *v, const Buffer *const *bufs,
                     const RegisterTile *tile, const Target *t)
{
    int copies = tile->moves;
    int64_t stride;
    for (int j = 0; j < v->nfactor && copies; j++)
        copies -= access_move(k->c, v->factor[j], tile->lanes).kind == MOVE_AXIS &&
                  access_stride(k, v->factor[j], tile->lanes, &stride) && llabs(stride) > 1 &&
                  wants_place(k, v, bufs, tile, v->factor[j], t);
    return copies;
}

static void stage_opts(Nest *nest, const View *v, const Buffer *const *bufs,
                       const RegisterTile *tile)
{
    const Kernel *k = nest->k;
    for (int j = 0; j < v->nfactor; j++) {
        Node *load = v->factor[j];
        int arg = (int)load->src[0]->arg.i, at = -1;
        if (!wants_place(k, v, bufs, tile, load, nest->target))
            continue;
        for (int i = 0; i < nest->norder; i++) {
            const NestAxis *x = &nest->axis[nest->order[i]];
            if (!x->reduced && !x->remainder && x->extent != 1 &&
                depends_on(load, k->axes[x->root].range))
                at = nest->order[i];
        }
        if (at >= 0) {
            nest_opt(nest, OPT_STAGE, nest->axis[at].name, arg);
        }
    }
}

/* The weights of a network come from memory in every run, panel after panel: the next one is asked for while the rows of results use
 * this one, where it has lines enough for their loops. Few weights are there before much of the kernel has run. */
static void prefetch_opts(Nest *nest, const View *v, const Buffer *const *bufs,
                          const RegisterTile *tile)
{
    const Kernel *k = nest->k;
    int first = 0; /* outside of it are contractions side by side, each with weights of its own */
    while (first + 1 < nest->norder &&
           k->axes[nest->axis[nest->order[first]].root].range != tile->lanes)
        first++;
    const NestAxis *outer = &nest->axis[nest->order[first]];
    int64_t times = 1, size;
    if (!tile->rows || tile->nfour || k->axes[outer->root].range != tile->lanes)
        return;
    for (int i = 0; i < first; i++)
        for (int j = 0; j < v->nfactor; j++)
            if (!depends_on(v->factor[j], k->axes[nest->axis[nest->order[i]].root].range))
                return;
    for (int i = first + 1; i < nest->norder; i++) {
        const NestAxis *x = &nest->axis[nest->order[i]];
        times = x->reduced || x->remainder ? times : sat_mul(times, x->extent);
    }
    for (int j = 0; j < v->nfactor; j++) {
        int arg = (int)v->factor[j]->src[0]->arg.i;
        double bytes = (double)dtype_info[v->factor[j]->dtype].bytes;
        for (int d = 0; d < k->args[arg].rank; d++)
            bytes *= idx_value(k->args[arg].dims[d], &size) ? (double)size : 0;
        if (bufs[arg]->kind != BUF_WEIGHT || !depends_on(v->factor[j], tile->lanes) || times < 2 ||
            times > tile->vectors * tile->width || bytes <= nest->target->level[0].bytes)
            continue;
        nest_opt(nest, OPT_PREFETCH, outer->name, arg);
        return;
    }
}

/* Is it read for each term, by whichever of the sums that share their loops? */
static bool is_summed(const View *v, Node *load)
{
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
        if (depends_on(load, v->dot->src[i]))
            return true;
    return false;
}

/* Dots of scalars are so short that a loop's own instructions count: some iterations of the innermost one are written out. */
static void unroll_dots(Nest *nest, const Place *place, int nout, int n)
{
    enum { MOST = 4 };
    int at = -1, loops = 0;
    for (int i = nout; i < n; i++) {
        const NestAxis *x = &nest->axis[nest_loop(nest, nest_root(nest, place[i].range))];
        if (x->extent > 1) {
            loops++;
            at = i;
        }
    }
    if (at < 0)
        return;
    int64_t extent = nest->axis[nest_loop(nest, nest_root(nest, place[at].range))].extent;
    for (int64_t parts = MOST; parts > 1; parts--)
        if (extent % parts == 0 && (loops > 1 || extent > parts)) {
            nest_opt_range(nest, OPT_UNROLL, place[at].range, parts);
            return;
        }
}

/* A window that slides along the rows: its taps run innermost where each load serves few products, for then C compilers
 * load what neighbours have in common once. */
static void taps_innermost(const Kernel *k, Node *walked, const RegisterTile *tile, Place *place,
                           int n)
{
    enum { TAPS = 8, FEW_VECTORS = 2 };
    int64_t row, tap;
    if (tile->width <= 1 || tile->vectors > FEW_VECTORS || !tile->rows || tile->nfour ||
        tile->columns || !access_stride(k, walked, tile->rows, &row) || !row)
        return;
    for (int i = 0; i < n; i++) {
        int64_t extent = range_extent(place[i].range);
        if (extent < 2 || extent > TAPS || !access_stride(k, walked, place[i].range, &tap) ||
            tap != row)
            continue;
        Place taps = place[i];
        memmove(place + i, place + i + 1, (size_t)(n - 1 - i) * sizeof *place);
        place[n - 1] = taps;
        return;
    }
}

/* False if a constant then lies badly for the lanes. What is only added (a bias, rows that are looked up) is laid out if it
 * does not lie along them: its order gains nothing else, and others may read it as it is. */
static bool contraction_opts(Nest *nest, const View *v, const Buffer *const *bufs,
                             const RegisterTile *tile, const bool *free, Layout *want)
{
    const Kernel *k = nest->k;
    Place place[INGOT_MAX_RANK * 4];
    int n = 0, nout;
    for (int i = 0; i < v->nrange; i++) {
        Node *r = v->range[i];
        Place p = {.range = r, .key = storage_stride(k, v->store[0], r)};
        if (r ==
            tile->lanes) /* blocks of weights stay in cache while all rows go by; without reuse, as stored */
            p.key = tile->reuse ? 1e19 : 0;
        if (tile->apart) { /* what the lanes load stays in cache while all that is made of it is written */
            p.key = storage_stride(k, v->store[0], r);
            for (int j = 0; j < v->nfactor; j++)
                if (depends_on(v->factor[j], tile->lanes) && depends_on(v->factor[j], r))
                    p.key += LANES_FIRST;
        }
        /* what every operand moves with: one contraction after the other, each on data of its own */
        bool batch = r != tile->lanes && r != tile->rows;
        for (int j = 0; j < v->nfactor; j++)
            batch &= depends_on(v->factor[j], r);
        if (batch)
            p.key = 1e20 * (1 + p.key);
        place[n++] = p;
    }
    sort_places(place, n);
    nout = n;
    Node *walked = NULL; /* the operand that is not constant */
    for (int j = 0; j < v->nfactor; j++)
        if (bufs[v->factor[j]->src[0]->arg.i]->kind != BUF_WEIGHT &&
            (!walked || !depends_on(v->factor[j], tile->lanes)))
            walked = v->factor[j];
    for (uint32_t i = 1; i < v->dot->nsrc; i++) {
        Node *r = v->dot->src[i];
        place[n++] = (Place){.range = r, .key = storage_stride(k, walked, r)};
    }
    sort_places(place + nout, n - nout);
    if (walked)
        taps_innermost(k, walked, tile, place + nout, n - nout);
    bool fits = true;
    for (int i = 0; i < tile->nfour; i++)
        fits &= nest_opt_range(nest, OPT_DOT, tile->four[i], 4);
    fits &= tile->width <= 1 || nest_opt_range(nest, OPT_VECTOR, tile->lanes, tile->width);
    if (tile->rows)
        nest_opt_range(nest, OPT_UPCAST, tile->rows, tile->nrows);
    if (tile->columns)
        nest_opt_range(nest, OPT_UPCAST, tile->columns, tile->ncolumns);
    if (tile->vectors > 1)
        nest_opt_range(nest, OPT_UPCAST, tile->lanes, tile->vectors);
    if (tile->nfour && tile->width <= 1)
        unroll_dots(nest, place, nout, n);
    order_opt(nest, place, n);
    Node *loop[INGOT_MAX_RANK * 4];
    for (int i = 0; i < n; i++)
        loop[i] = place[i].range;
    const Packing packing = {.lanes = tile->lanes,
                             .block = tile->vectors * tile->width,
                             .reuse = tile->reuse,
                             .loop = loop,
                             .nloop = n,
                             .four = tile->four,
                             .nfour = tile->nfour};
    for (int j = 0; j < v->nload; j++) {
        int arg = (int)v->load[j]->src[0]->arg.i;
        int64_t stride;
        bool apart = !access_stride(k, v->load[j], tile->lanes, &stride) || stride != 1;
        if (!free[arg] || !depends_on(v->load[j], tile->lanes) ||
            (!apart && !is_summed(v, v->load[j])))
            continue;
        if (!packing_layout(k, v->load[j], &packing, &want[arg]))
            fits &= access_stride(k, v->load[j], tile->lanes, &stride) && stride == 1;
    }
    return fits;
}

/* An argument whose layout this kernel alone may choose: a weight that it loads in one place. */
static void find_free(const Kernel *k, const View *v, const Buffer *const *bufs, bool *free)
{
    for (int i = 0; i < k->narg; i++) {
        int uses = 0;
        for (int j = 0; j < v->nload; j++)
            uses += v->load[j]->src[0]->arg.i == i;
        free[i] = bufs[i]->kind == BUF_WEIGHT && uses == 1;
        for (int d = 0; d < k->args[i].rank; d++)
            free[i] &= idx_value(k->args[i].dims[d], NULL);
    }
}

/* What is interleaved with these lanes, or NULL; false if that cannot be done. Both share the operand that is in lanes,
 * and there are whole vectors only. */
static bool pair_of(const View *v, const Kernel *k, Node *lanes, const Target *t, Node **pair)
{
    *pair = interleaved(k, v->store[0], lanes);
    for (int j = 1; j < v->nstore; j++)
        if (interleaved(k, v->store[j], lanes) != *pair)
            return false;
    return !*pair ||
           (t->lanes && range_extent(lanes) % lanes_for(k, t, lanes, range_extent(lanes)) == 0 &&
            view_reuses(v, lanes, *pair));
}

static const char *axis_name(const Kernel *k, Node *range)
{
    for (int i = 0; i < k->naxis; i++)
        if (k->axes[i].range == range)
            return k->axes[i].name;
    return "?";
}

/* For people: "lanes along i0: 2 vectors of 16, 8 of i2: 12.3". */
static void tell_tile(StrBuf *sb, const Kernel *k, const RegisterTile *tile)
{
    if (!tile->lanes || !sb)
        return;
    sb_printf(sb, "lanes along %s: ", axis_name(k, tile->lanes));
    sb_printf(sb, "%lld x %lld", (long long)tile->vectors, (long long)tile->width);
    if (tile->rows)
        sb_printf(sb, ", %lld of %s", (long long)tile->nrows, axis_name(k, tile->rows));
    if (tile->columns)
        sb_printf(sb, ", %lld of %s", (long long)tile->ncolumns, axis_name(k, tile->columns));
    sb_printf(sb, " in registers%s: %.4g\n", tile->moves ? ", after a copy" : "", tile->score);
}

static bool no_lanes(StrBuf *sb, const Kernel *k, Node *range, const char *why)
{
    if (sb)
        sb_printf(sb, "no lanes along %s: %s\n", axis_name(k, range), why);
    return true;
}

void choose_opts(Arena *a, Nest **nest, const Buffer *const *bufs, bool may_copy, StrBuf *tried,
                 Layout *want, Node **lanes, int *nlanes)
{
    const Kernel *k = (*nest)->k;
    const Target *t = (*nest)->target;
    View v = kernel_view(a, k);
    *nlanes = 0;
    Nest *rows = nest_clone(*nest);
    if (staged_rows_opts(a, rows, bufs, may_copy, lanes, nlanes)) {
        nest_free(*nest);
        *nest = rows;
        return;
    }
    nest_free(rows);
    if (!v.dot) {
        plain_opts(a, *nest, &v);
        return;
    }
    if (t->units && choose_tc_opts(a, nest, &v, bufs, may_copy, want, lanes))
        return;
    bool *free = NEWN(a, bool, k->narg);
    find_free(k, &v, bufs, free);
    RegisterTile best = {0};
    Node *four[MAX_FOUR];
    int nfour = t->dot ? dot_axes(k, &v, free, four, MAX_FOUR) : 0;
    for (int i = 0; i < v.nrange; i++) {
        Node *r = v.range[i];
        int moves;
        int64_t extent = range_extent(r);
        if (extent < 4 && no_lanes(tried, k, r, "it is too short"))
            continue;
        if (!fits_lanes(a, k, r, lanes_along(k, t, r), free, &moves, NULL) &&
            no_lanes(tried, k, r, "what depends on it does not lie side by side, or has no lanes"))
            continue;
        bool factor = false, stored = true;
        for (int j = 0; j < v.nstore; j++)
            stored &= access_move(k->c, v.store[j], r).kind == MOVE_AXIS;
        for (int j = 0; j < v.nfactor; j++)
            factor |= depends_on(v.factor[j], r);
        if ((!factor || !stored) &&
            no_lanes(tried, k, r, "no operand, or not the result, moves with it"))
            continue;
        if (moves && (!may_copy || !can_lay_out(k, &v, bufs, free, r)) &&
            no_lanes(tried, k, r, "a copy of an operand would be needed, and cannot be made"))
            continue;
        Node *pair;
        if (!pair_of(&v, k, r, t, &pair) || (pair && moves)) /* it saves a copy: not for another */
            continue;
        RegisterTile tile = pick_tile(k, &v, bufs, r, pair, nfour && !moves, moves, t);
        tile.nfour = moves ? 0 : nfour;
        memcpy((void *)tile.four, four, (size_t)tile.nfour * sizeof *four);
        if (moves)
            tile.score *= !copies_of(k, &v, bufs, &tile, t) ? 0.97 : moves == 1 ? 0.7 : 0.4;
        tell_tile(tried, k, &tile);
        if (tile.score > best.score)
            best = tile;
    }
    bool outputs = best.lanes != NULL;
    if (!outputs || (best.moves && !best.rows)) { /* what is used once is not worth a copy */
        RegisterTile dot = pick_dot_tile(a, &v, k, free, t);
        tell_tile(tried, k, &dot);
        if (dot.lanes) {
            best = dot;
            outputs = false;
        }
    }
    if (!best.lanes) {
        plain_opts(a, *nest, &v);
        return;
    }
    Nest *tiled = nest_clone(*nest);
    bool fits = contraction_opts(tiled, &v, bufs, &best, free, want);
    if (best.nfour && !fits) {
        nest_free(tiled);
        tiled = nest_clone(*nest);
        memset(want, 0, (size_t)k->narg * sizeof *want);
        best.nfour = 0;
        fits = contraction_opts(tiled, &v, bufs, &best, free, want);
    }
    if (best.width > 1 && !fits) {
        nest_free(tiled);
        memset(want, 0, (size_t)k->narg * sizeof *want);
        plain_opts(a, *nest, &v);
        return;
    }
    if (outputs && best.width > 1)
        prefetch_opts(tiled, &v, bufs, &best);
    if (outputs && best.width > 1)
        stage_opts(tiled, &v, bufs, &best);
    nest_free(*nest);
    *nest = tiled;
    if (outputs)
        lanes[(*nlanes)++] = best.lanes;
}
