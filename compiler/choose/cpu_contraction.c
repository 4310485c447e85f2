/* cpu_contraction.c - opts without search.
 *
 * A contraction gets a register tile: `vectors` vectors of outputs along one axis (the lanes, over
 * which the constant operand is stored contiguously) times `rows` outputs along another, over
 * which that operand is reused.  Per step of the reduced axes it loads vectors + rows values and
 * does vectors * rows multiply-adds.  The constant operand is stored in the order in which the
 * loops read it.  Everything else runs its loops in the order of storage, innermost in lanes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

/* Beyond any stride, and small enough to keep their order. */
static const double LANES_FIRST = 1e12;

enum {
    STAGE_USES = 4 /* loops over rows that have to read a panel again to pay for it */
};

static bool is_read_for_terms(const Node *sum, Node *load)
{
    for (uint32_t i = reduce_ranges(sum); i < sum->nsrc; i++)
        if (depends_on(load, sum->src[i]))
            return true;
    return false;
}

/* Is it read for each term, by whichever of the sums that share their loops? */
static bool is_summed(const View *v, Node *load)
{
    return is_read_for_terms(v->dot, load);
}

/* Is it of a sum, be it that one or one beside it (gates beside what they gate)? */
static bool is_summed_anywhere(const View *v, Node *load)
{
    for (int i = 0; i < v->nreduce; i++)
        if (is_read_for_terms(v->reduce[i], load))
            return true;
    return false;
}

bool walks_pages(const Kernel *k, const View *v, Node *load, const Target *t)
{
    double step = dtype_info[load->dtype].bytes, pages = 1, page = t->machine.page;
    for (uint32_t i = 1; i < v->dot->nsrc; i++) {
        double bytes = step * storage_stride(k, load, v->dot->src[i]);
        if (bytes > 0)
            pages *= 1 + (double)v->dot->src[i]->hi * (bytes < page ? bytes / page : 1);
    }
    return pages > t->machine.pages;
}

/* Operands that are computed when the model runs lie as they were written: the panel that a tile's
 * rows read again and again is copied to a place of its own where it lies badly. */
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
    return panel <= t->machine.far / 2 && (apart || walks_pages(k, v, load, t));
}

/* How many copies the lanes take: what lies apart along them, but not what comes out of a place
 * that rows are transposed into. */
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

/* Are the copies nothing beside the products: of results alone, and what is added to them, of which
 * there are few? So it is of the gradient of a weight, a sum over all pixels of a batch. */
static bool copies_are_little(const Kernel *k, const View *v, const RegisterTile *tile,
                              const Target *t)
{
    enum { COPIES = 8 }; /* in the time of the products; each reads and writes */
    double products = 1, bytes = 0;
    int64_t stride;
    for (int j = 0; j < v->nfactor; j++)
        if (depends_on(v->factor[j], tile->lanes) &&
            (!access_stride(k, v->factor[j], tile->lanes, &stride) || stride != 1))
            return false;
    for (int i = 0; i < k->naxis; i++)
        products *= (double)k->axes[i].range->hi + 1;
    for (int i = 0; i < v->nrange; i++)
        bytes = (bytes > 0 ? bytes : 1) * ((double)v->range[i]->hi + 1);
    bytes *= 2.0 * tile->moves * dtype_info[v->dot->dtype].bytes;
    return t->machine.lanes && v->dot->nsrc > 2 &&
           COPIES * cost_bytes(bytes, INFINITY, t) < products / t->machine.rate[UNIT_TILE];
}

/* The innermost loop over results that a load moves with, or NULL. */
static const NestAxis *loop_of_place(const Nest *nest, const Node *load)
{
    const NestAxis *at = NULL;
    for (int i = 0; i < nest->norder; i++) {
        const NestAxis *x = &nest->axis[nest->order[i]];
        if (!x->reduced && !x->remainder && x->extent != 1 &&
            depends_on(load, nest->k->axes[x->root].range))
            at = x;
    }
    return at;
}

/* Of all sums that share their loops. What comes from memory is asked for while the place before is
 * read, if there are blocks of terms to spread that over: in training, where a weight lies as
 * other products want it. */
static void stage_opts(Nest *nest, const View *v, const Buffer *const *bufs,
                       const RegisterTile *tile)
{
    const Kernel *k = nest->k;
    for (int early = k->c->sums_in_blocks; early >= 0; early--)
        for (int j = 0; j < v->nload; j++) {
            Node *load = v->load[j];
            const NestAxis *at = loop_of_place(nest, load);
            if (at && is_summed(v, load) && wants_place(k, v, bufs, tile, load, nest->target) &&
                (!early || is_large(k, bufs, load, BUF_STATE, nest->target) ||
                 is_large(k, bufs, load, BUF_WEIGHT, nest->target)))
                nest_opt(nest, early ? OPT_PREFETCH : OPT_STAGE, at->name,
                         (int)load->src[0]->arg.i);
        }
}

/* Dots of scalars are so short that a loop's own instructions count: some iterations of the
 * innermost one are written out. */
static void unroll_dots(Nest *nest, const LoopPlace *place, int nout, int n)
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
        if (extent % parts == 0 && (loops > 1 || extent > parts || extent <= MOST)) {
            nest_opt_range(nest, OPT_UNROLL, place[at].range, parts);
            return;
        }
}

enum { FEW_VECTORS = 2 };

/* Does a C compiler load a window of scalars once?  It has to write the loop over the taps out.
 * Where the scalars serve few vectors each, they are worth it if they stay in registers, of which
 * the sums leave them half; where they serve more, spreading them once suffices. */
static bool keeps_window(const RegisterTile *tile, int64_t taps, const Target *t)
{
    const int64_t sums = tile->vectors * tile->nrows;
    return sums * taps <= WRITTEN_OUT &&
           (tile->vectors > FEW_VECTORS || 2 * sums <= t->machine.registers);
}

/* A window that slides along the rows: its taps run innermost where each load serves few products,
 * for then C compilers load what neighbours have in common once.  A window of vectors saves loads
 * in any case; one of scalars, which a product spreads over the lanes as it loads them, only if it
 * is kept: else a loop at least as long stays innermost, and any loop if vectors are many. */
static void taps_innermost(const Kernel *k, Node *walked, const RegisterTile *tile,
                           LoopPlace *place, int n, const Target *t)
{
    enum { TAPS = 8 };
    int64_t row, tap;
    if (tile->width <= 1 || !tile->rows || tile->nfour || tile->columns ||
        !access_stride(k, walked, tile->rows, &row) || !row)
        return;
    const bool vectors = depends_on(walked, tile->lanes), many = tile->vectors > FEW_VECTORS;
    if (many && vectors)
        return;
    for (int i = 0; i < n; i++) {
        int64_t extent = range_extent(place[i].range);
        if (extent < 2 || extent > TAPS || !access_stride(k, walked, place[i].range, &tap) ||
            tap != row)
            continue;
        if (!vectors && !keeps_window(tile, extent, t) &&
            (many || range_extent(place[n - 1].range) >= extent))
            return;
        LoopPlace taps = place[i];
        memmove(place + i, place + i + 1, (size_t)(n - 1 - i) * sizeof *place);
        place[n - 1] = taps;
        return;
    }
}

/* Beyond any stride, and beyond that of blocks of rows. */
static const double PANELS_KEY = 1e19, BATCH_KEY = 1e39;

/* Does some loop over results read a panel of what moves with the lanes again?  Where rows are all
 * in the tile, and what is left walks over that operand, none does: an image's pixels in lanes, and
 * the few maps that are made of them. */
static bool reads_panels_again(const View *v, const RegisterTile *tile)
{
    bool again = false, walks = false;
    for (int i = 0; i < v->nrange; i++) {
        Node *r = v->range[i];
        const int64_t copies = r == tile->rows      ? tile->nrows
                               : r == tile->columns ? tile->ncolumns
                                                    : 1;
        if (r == tile->lanes || range_extent(r) == copies)
            continue;
        const bool moves = moves_lanes_operand(v, tile->lanes, r);
        again |= !moves;
        walks |= moves;
    }
    return again || !walks;
}

/* Are panels of the lanes' operand copied to places, enough for all threads, and come the rows'
 * operands from a cache at least? Then all rows use such a panel, block after block, for each block
 * would copy it anew. */
static bool copies_panels_once(const Kernel *k, const View *v, const Buffer *const *bufs,
                               const RegisterTile *tile, const Target *t)
{
    bool copies = false;
    int64_t panels = 1;
    for (int j = 0; j < v->nload; j++)
        copies |= is_summed(v, v->load[j]) && wants_place(k, v, bufs, tile, v->load[j], t);
    if (!copies)
        return false;
    for (int i = 0; i < v->nrange; i++)
        if (v->range[i] == tile->lanes)
            panels *= ceil_div(v->range[i]->hi + 1, tile->vectors * tile->width);
        else if (moves_lanes_operand(v, tile->lanes, v->range[i]))
            panels *= v->range[i]->hi + 1;
    const double bytes = operand_bytes(k, v, tile->lanes, false);
    return panels >= MAX_THREADS && cost_bytes(1, bytes, t) < cost_bytes(1, INFINITY, t);
}

/* Does r walk over the weights that the lanes move, which L1 does not hold, and over nothing else?
 * So it is of outputs that are stored in blocks, [rows, 256, 32]: their panels are those of both
 * axes. */
static bool walks_weights(const Kernel *k, const View *v, const Buffer *const *bufs,
                          const RegisterTile *tile, Node *r, const Target *t)
{
    if (!t->machine.lanes || r == tile->lanes || r == tile->rows || r == tile->columns ||
        !tile->rows || !moves_lanes_operand(v, tile->lanes, r))
        return false;
    for (int j = 0; j < v->nfactor; j++) {
        const bool weight = is_large(k, bufs, v->factor[j], BUF_WEIGHT, t);
        if (depends_on(v->factor[j], tile->lanes) ? !weight : depends_on(v->factor[j], r))
            return false;
    }
    return tile->reuse && reads_panels_again(v, tile);
}

/* How far out a loop over results is: the greater, the further. panels: copies_panels_once(). */
static double loop_key(const Kernel *k, const View *v, const Buffer *const *bufs,
                       const RegisterTile *tile, Node *r, bool panels, const Target *t)
{
    double key = storage_stride(k, v->store[0], r);
    if (walks_weights(k, v, bufs, tile, r, t))
        key = PANELS_KEY / 2 * (key / (1 + key));
    if (tile->apart) {
        /* what the lanes load stays in cache while all that is made of it is written */
        for (int j = 0; j < v->nfactor; j++)
            if (depends_on(v->factor[j], tile->lanes) && depends_on(v->factor[j], r))
                key += LANES_FIRST;
    } else if (r == tile->lanes && tile->wide && !depends_on(tile->wide, r)) {
        key = -1; /* all weights for the pixels that lie in a place */
    } else if (r == tile->lanes) {
        /* blocks of weights stay in cache while all rows go by; without reuse, as stored */
        key = tile->taps || (tile->reuse && reads_panels_again(v, tile)) ? PANELS_KEY : 0;
    } else if (panels && moves_lanes_operand(v, tile->lanes, r)) {
        key += LANES_FIRST; /* of another panel */
    }
    /* what every operand moves with: one contraction after the other, each on data of its own */
    bool batch = r != tile->lanes && r != tile->rows;
    for (int j = 0; j < v->nfactor; j++)
        batch &= depends_on(v->factor[j], r);
    if (tile->rows && !tile->apart && !tile->nfour && r != tile->columns && !panels &&
        is_block_of_rows(k, v, tile->lanes, tile->rows, r, t))
        key = PANELS_KEY * (2 + key);
    return batch ? BATCH_KEY * (1 + key) : key;
}

/* The operand that is not constant. */
static Node *walked_operand(const View *v, const Buffer *const *bufs, Node *lanes)
{
    Node *walked = NULL;
    for (int j = 0; j < v->nfactor; j++)
        if (bufs[v->factor[j]->src[0]->arg.i]->kind != BUF_WEIGHT &&
            (!walked || !depends_on(v->factor[j], lanes)))
            walked = v->factor[j];
    return walked;
}

/* Layouts of constants for the tile in these loops; false if one of them then lies badly for the
 * lanes. What is only added (a bias, rows that are looked up) is laid out if it does not lie along
 * them: its order gains nothing else, and others may read it as it is. */
static bool lay_out_loads(const Kernel *k, const View *v, const RegisterTile *tile,
                          const LoopPlace *place, int n, const bool *free, const Target *t,
                          Layout *want)
{
    Node *loop[INGOT_MAX_RANK * 4];
    bool fits = true;
    for (int i = 0; i < n; i++)
        loop[i] = place[i].range;
    const Packing packing = {.lanes = tile->lanes,
                             .block = tile->vectors * tile->width,
                             .reuse = tile->reuse,
                             .loop = loop,
                             .nloop = n,
                             .four = tile->four,
                             .nfour = tile->nfour,
                             .terms = tile->terms,
                             .shared = t->machine.weight_block};
    for (int j = 0; j < v->nload; j++) {
        int arg = (int)v->load[j]->src[0]->arg.i;
        int64_t stride;
        bool apart = !access_stride(k, v->load[j], tile->lanes, &stride) || stride != 1;
        if (!free[arg] || !depends_on(v->load[j], tile->lanes) ||
            (!apart && !is_summed_anywhere(v, v->load[j])))
            continue;
        if (!packing_layout(k, v->load[j], &packing, &want[arg]))
            fits &= access_stride(k, v->load[j], tile->lanes, &stride) && stride == 1;
    }
    return fits;
}

/* The loops over terms, of all sums of products: of a load that the lanes do not move, the greatest
 * stride is outermost; which digit of a word is taken is innermost. */
static int place_terms(const Nest *nest, const View *v, const Buffer *const *bufs,
                       const RegisterTile *tile, LoopPlace *place)
{
    int n = 0;
    Node *walked = walked_operand(v, bufs, tile->lanes);
    for (uint32_t i = 1; i < v->dot->nsrc; i++) {
        Node *r = v->dot->src[i];
        const bool digits = v->outer && (takes_digits(v->dot->src[0], r) ||
                                         !moves_lanes_operand(v, tile->lanes, r));
        place[n++] =
            (LoopPlace){.range = r, .key = digits ? -1 : storage_stride(nest->k, walked, r)};
    }
    sort_places(place, n);
    if (walked)
        taps_innermost(nest->k, walked, tile, place, n, nest->target);
    return n;
}

/* Sums beside the first one, each over terms of its own (gates beside what they gate): the same of
 * these. */
static int place_other_terms(const Nest *nest, const View *v, const RegisterTile *tile,
                             LoopPlace *place, int max)
{
    int n = 0;
    for (int i = 0; i < v->nreduce && v->outer; i++) {
        const int first = n;
        const Node *sum = v->reduce[i];
        for (uint32_t j = 1; j < sum->nsrc && dot_terms(sum) && n < max; j++) {
            Node *r = sum->src[j];
            double key = -1;
            bool other = true;
            for (uint32_t d = 1; d < v->dot->nsrc; d++)
                other &= v->dot->src[d] != r;
            for (int l = 0; l < v->nload && key < 0 && !takes_digits(sum->src[0], r); l++)
                if (depends_on(v->load[l], r) && depends_on(v->load[l], tile->lanes))
                    key = 0;
            for (int l = 0; l < v->nload && key == 0; l++)
                if (depends_on(v->load[l], r) && !depends_on(v->load[l], tile->lanes))
                    key = storage_stride(nest->k, v->load[l], r);
            if (other)
                place[n++] = (LoopPlace){.range = r, .key = key};
        }
        sort_places(place + first, n - first);
    }
    return n;
}

/* The opts of a tile; false if they cannot be done, or constants cannot lie as it wants them. */
static bool contraction_opts(Nest *nest, const View *v, const Buffer *const *bufs,
                             const RegisterTile *tile, const bool *free, Layout *want)
{
    const Kernel *k = nest->k;
    LoopPlace place[INGOT_MAX_RANK * 4];
    int n = 0, nout;
    const bool panels = copies_panels_once(k, v, bufs, tile, nest->target);
    for (int i = 0; i < v->nrange; i++)
        place[n++] =
            (LoopPlace){.range = v->range[i],
                        .key = loop_key(k, v, bufs, tile, v->range[i], panels, nest->target)};
    sort_places(place, n);
    nout = n;
    n += place_terms(nest, v, bufs, tile, place + n);
    bool fits = true;
    for (int i = 0; i < tile->nfour; i++)
        fits &= nest_opt_range(nest, OPT_DOT, tile->four[i], tile->terms);
    fits &= tile->width <= 1 || nest_opt_range(nest, OPT_VECTOR, tile->lanes, tile->width);
    if (tile->rows)
        nest_opt_range(nest, OPT_UPCAST, tile->rows, tile->nrows);
    if (tile->columns)
        nest_opt_range(nest, OPT_UPCAST, tile->columns, tile->ncolumns);
    if (tile->vectors > 1)
        nest_opt_range(nest, OPT_UPCAST, tile->lanes, tile->vectors);
    if (tile->taps)
        nest_opt_range(nest, OPT_UNROLL, tile->taps, tile->taps->hi + 1);
    else if (tile->nfour && tile->width <= 1 && tile->terms <= 4)
        unroll_dots(nest, place, nout, n);
    const int more = place_other_terms(nest, v, tile, place + n, INGOT_MAX_RANK * 4 - n);
    if (v->outer) {
        unroll_digits(nest, v, tile, place + nout, n - nout);
        unroll_digits(nest, v, tile, place + n, more);
        if (tile->width > 1)
            unroll_digits_of_blocks(nest, v);
    }
    order_opt(nest, place, n + more);
    stage_wide(nest, tile);
    return lay_out_loads(k, v, tile, place, n, free, nest->target, want) && fits;
}

/* An argument whose layout this kernel alone may choose: a weight that it loads in one place. */
void find_free(const Kernel *k, const View *v, const Buffer *const *bufs, bool *free)
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

/* What is interleaved with these lanes, or NULL; false if that cannot be done. Both share the
 * operand that is in lanes, and there are whole vectors only. */
static bool pair_of(const View *v, const Kernel *k, Node *lanes, const Target *t, Node **pair)
{
    *pair = interleaved(k, v->store[0], lanes);
    for (int j = 1; j < v->nstore; j++)
        if (interleaved(k, v->store[j], lanes) != *pair)
            return false;
    const int64_t extent = range_extent(lanes); /* -1: only a run knows */
    return !*pair || (t->machine.lanes && extent > 0 &&
                      !(extent % lanes_for(k, t, lanes, extent)) && view_reuses(v, lanes, *pair));
}

static const char *axis_name(const Kernel *k, Node *range)
{
    for (int i = 0; i < k->naxis; i++)
        if (k->axes[i].range == range)
            return k->axes[i].name;
    return "?";
}

/* For people: "a tile of 2 vectors of 16 along i0 by 8 of i2: 16 vectors of sums in registers". */
static void tell_tile(StrBuf *sb, const Kernel *k, const RegisterTile *tile)
{
    if (!tile->lanes || !sb)
        return;
    const int64_t sums = tile->vectors * tile->nrows * tile->ncolumns;
    sb_printf(sb, "a tile of %lld vector%s of %lld along %s", (long long)tile->vectors,
              tile->vectors == 1 ? "" : "s", (long long)tile->width, axis_name(k, tile->lanes));
    if (tile->rows)
        sb_printf(sb, " by %lld of %s", (long long)tile->nrows, axis_name(k, tile->rows));
    if (tile->columns)
        sb_printf(sb, " by %lld of %s", (long long)tile->ncolumns, axis_name(k, tile->columns));
    sb_printf(sb, ": %lld vector%s of sums in registers%s. Rated %.4g products in flight\n",
              (long long)sums, sums == 1 ? "" : "s",
              tile->moves ? ", once an operand is copied" : "", tile->score);
}

/* What a tile of a kernel is chosen by. */
typedef struct {
    Arena *a;
    const Kernel *k;
    const View *v;
    const Buffer *const *bufs;
    const Target *t;
    const bool *free; /* by argument: find_free() */
    Node *four[MAX_FOUR];
    int nfour, terms;
    bool may_copy;
    StrBuf *tried; /* or NULL: for people */
} TileChoice;

static RegisterTile no_lanes(const TileChoice *q, Node *range, const char *why)
{
    if (q->tried)
        sb_printf(q->tried, "no lanes along %s: %s\n", axis_name(q->k, range), why);
    return (RegisterTile){0};
}

/* Fours without lanes: what lies side by side along results is nothing to them. */
static bool scalar_fours(const TileChoice *q)
{
    return q->nfour && q->terms >= 4 && !q->t->machine.lanes && !q->t->gpu;
}

/* Fours beside fours: what moves with the lanes may be laid so, for nothing else has. */
static bool takes_fours(const TileChoice *q, Node *lanes)
{
    if (scalar_fours(q))
        return true;
    for (int j = 0; j < q->v->nfactor; j++)
        if (depends_on(q->v->factor[j], lanes) && !q->free[q->v->factor[j]->src[0]->arg.i])
            return false;
    return q->nfour > 0;
}

/* The best one with lanes along r; without lanes: there is none. */
static RegisterTile tile_along(const TileChoice *q, Node *r)
{
    const Kernel *k = q->k;
    const View *v = q->v;
    int moves = 0;
    if (lanes_extent(r) < 4)
        return no_lanes(q, r, "it has fewer than 4 elements");
    if (!scalar_fours(q) && !fits_lanes(q->a, k, r, lanes_along(k, q->t, r), q->free, &moves, NULL))
        return no_lanes(q, r, "what depends on it does not lie side by side, or has no lanes");
    bool factor = false, stored = true;
    for (int j = 0; j < v->nstore; j++)
        stored &= access_move(k->c, v->store[j], r).kind != MOVE_NONE;
    for (int j = 0; j < v->nfactor; j++)
        factor |= depends_on(v->factor[j], r);
    if (!factor || !stored)
        return no_lanes(q, r, "no operand, or not the result, moves with it");
    if (moves && (!q->may_copy || !can_lay_out(k, v, q->bufs, q->free, r)))
        return no_lanes(q, r, "a copy of an operand would be needed, and cannot be made");
    Node *pair;
    if (!pair_of(v, k, r, q->t, &pair) || (pair && moves)) /* it saves a copy: not for another */
        return (RegisterTile){0};
    const bool four = takes_fours(q, r);
    RegisterTile tile = pick_tile(k, v, q->bufs, r, pair, four ? q->terms : 0, moves, q->t);
    tile.nfour = four ? q->nfour : 0;
    tile.terms = q->terms;
    memcpy((void *)tile.four, q->four, (size_t)tile.nfour * sizeof *q->four);
    take_turns(k, v, q->t, &tile);
    if (moves)
        tile.score *= !copies_of(k, v, q->bufs, &tile, q->t) || copies_are_little(k, v, &tile, q->t)
                          ? 0.97
                      : moves == 1 ? 0.7
                                   : 0.4;
    tell_tile(q->tried, k, &tile);
    return tile;
}

/* outputs: its lanes are along results; without lanes: there is no tile. */
static RegisterTile best_tile(const TileChoice *q, bool *outputs)
{
    RegisterTile best = {0};
    if (scalar_fours(q))
        best = pick_scalar_tile(q->k, q->v, q->free, q->four, q->nfour, q->terms, q->t);
    *outputs = best.lanes != NULL;
    if (*outputs)
        return best;
    for (int i = 0; i < q->v->nrange; i++) {
        const RegisterTile tile = tile_along(q, q->v->range[i]);
        if (tile.score > best.score)
            best = tile;
    }
    *outputs = best.lanes != NULL;
    if (*outputs && (!best.moves || best.rows))
        return best;
    /* what is used once is not worth a copy */
    const RegisterTile dot = pick_dot_tile(q->a, q->v, q->k, q->free, q->t);
    tell_tile(q->tried, q->k, &dot);
    if (!dot.lanes)
        return best;
    *outputs = false;
    return dot;
}

/* The nest with the opts of a tile, or, where weights cannot lie as its lanes want them, NULL. */
static Nest *tiled_nest(const TileChoice *q, const Nest *nest, RegisterTile *tile, Layout *want)
{
    Nest *tiled = nest_clone(nest);
    bool fits = contraction_opts(tiled, q->v, q->bufs, tile, q->free, want);
    if (tile->nfour && !fits) {
        nest_free(tiled);
        tiled = nest_clone(nest);
        memset(want, 0, (size_t)q->k->narg * sizeof *want);
        tile->nfour = 0;
        fits = contraction_opts(tiled, q->v, q->bufs, tile, q->free, want);
    }
    if (tile->width <= 1 || fits)
        return tiled;
    nest_free(tiled);
    memset(want, 0, (size_t)q->k->narg * sizeof *want);
    return NULL;
}

/* The same of the tile, or of another one with the same lanes that takes fewer cycles. */
static Nest *best_of_others(const TileChoice *q, const Nest *nest, RegisterTile *tile, Layout *want)
{
    RegisterTile other[WINDOW_TILES];
    const int n = other_tiles(q->k, q->v, q->bufs, tile, q->t, other);
    Nest *best = tiled_nest(q, nest, tile, want);
    double least = n && best ? nest_cycles(q->k, best, want) : 0;
    Layout *wanted = NEWN(q->a, Layout, q->k->narg);
    for (int i = 0; i < n && best; i++) {
        memset(wanted, 0, (size_t)q->k->narg * sizeof *wanted);
        Nest *tried = tiled_nest(q, nest, &other[i], wanted);
        const double cycles = tried ? nest_cycles(q->k, tried, wanted) : INFINITY;
        if (cycles >= CLEARLY * least) {
            nest_free(tried);
            continue;
        }
        nest_free(best);
        best = tried;
        least = cycles;
        *tile = other[i];
        memcpy(want, wanted, (size_t)q->k->narg * sizeof *want);
    }
    return best;
}

/* Is some operand that lies in rows read again by a loop over results, or laid out as the loops
 * want it? */
static bool reuses_rows(const View *v, const bool *free)
{
    for (int i = 0; i < v->nfactor; i++) {
        int moves = 0, loops = 0;
        for (int j = 0; j < v->nrange; j++) {
            moves += range_extent(v->range[j]) != 1 && depends_on(v->factor[i], v->range[j]);
            loops += range_extent(v->range[j]) != 1;
        }
        if (moves && (moves < loops || free[v->factor[i]->src[0]->arg.i]))
            return true;
    }
    return false;
}

static RegisterTile contraction_tile(TileChoice *q, bool *outputs)
{
    q->nfour = dot_axes(q->k, q->v, q->free, &q->t->machine, q->four, MAX_FOUR, &q->terms);
    return best_tile(q, outputs);
}

/* The same of the nest whose axes of results are joined, where lanes along results have a better
 * tile then. */
static void take_joined(TileChoice *q, Nest **nest, View *v, RegisterTile *best, bool *outputs)
{
    Nest *joined = *outputs && q->t->machine.lanes ? joined_results(*nest) : NULL;
    if (!joined)
        return;
    View view = kernel_view(joined->k);
    TileChoice other = *q;
    bool along = false, *free = NEWN(q->a, bool, joined->k->narg);
    other.k = joined->k;
    other.v = &view;
    other.free = free;
    if (view.dot)
        find_free(joined->k, &view, q->bufs, free);
    const RegisterTile tile =
        view.dot ? contraction_tile(&other, &along) : (RegisterTile){.score = 0};
    if (!along || CLEARLY * tile.score <= best->score) {
        nest_free(joined);
        return;
    }
    nest_free(*nest);
    *nest = joined;
    *v = view;
    *best = tile;
    *outputs = along;
    other.v = v;
    *q = other;
}

/* The nest of a tile whose computed operands are copied for DOT, or NULL (cpu_pairs.c). */
static Nest *pairs_opts(const TileChoice *q, const Nest *nest, RegisterTile *tile, Layout *want)
{
    bool *free = NEWN(q->a, bool, q->k->narg), outputs = false;
    TileChoice other = *q;
    memcpy(free, q->free, (size_t)q->k->narg * sizeof *free);
    other.free = free;
    other.tried = NULL;
    if (!q->may_copy || tile->nfour || !free_pairs(q->k, q->v, q->bufs, q->t, free))
        return NULL;
    RegisterTile best = contraction_tile(&other, &outputs);
    Nest *tiled =
        outputs && best.nfour == 1 && best.width > 1 ? tiled_nest(&other, nest, &best, want) : NULL;
    if (tiled && best.nfour && copy_pairs(q->a, tiled, q->v, q->bufs, &best, want)) {
        *tile = best;
        return tiled;
    }
    if (tiled)
        nest_free(tiled);
    memset(want, 0, (size_t)q->k->narg * sizeof *want);
    return NULL;
}

/* What is asked for ahead and copied to places, of the nest of a tile or, where this takes fewer
 * cycles, of its blocks of rows. */
static Nest *with_places(const TileChoice *q, Nest *tiled, const RegisterTile *tile,
                         const Layout *want)
{
    Nest *blocks = row_blocks(tiled, q->v, tile), *both[] = {tiled, blocks};
    for (int i = 0; i < 2 && both[i]; i++) {
        prefetch_opts(both[i], q->v, q->bufs, tile);
        stage_opts(both[i], q->v, q->bufs, tile);
    }
    if (!blocks)
        return tiled;
    const bool better = nest_cycles(q->k, blocks, want) < CLEARLY * nest_cycles(q->k, tiled, want);
    nest_free(better ? tiled : blocks);
    return better ? blocks : tiled;
}

void choose_opts(Arena *a, Nest **nest, const Buffer *const *bufs, bool may_copy, StrBuf *tried,
                 Layout *want, Node **lanes, int *nlanes)
{
    const Kernel *k = (*nest)->k;
    const Target *t = (*nest)->target;
    View v = kernel_view(k);
    *nlanes = 0;
    Nest *rows = nest_clone(*nest);
    if (staged_rows_opts(a, rows, bufs, may_copy, want, lanes, nlanes)) {
        nest_free(*nest);
        *nest = rows;
        return;
    }
    nest_free(rows);
    *nlanes = 0;
    memset(want, 0, (size_t)k->narg * sizeof *want);
    if (v.dot && has_units(&t->machine) &&
        choose_tc_opts(a, nest, &v, bufs, may_copy, want, lanes)) {
        *nlanes = 1; /* along its columns: what is stored otherwise is copied */
        return;
    }
    bool *free = NEWN(a, bool, k->narg), outputs = false;
    TileChoice q = {.a = a,
                    .k = k,
                    .v = &v,
                    .bufs = bufs,
                    .t = t,
                    .free = free,
                    .may_copy = may_copy,
                    .tried = tried};
    RegisterTile best = {0};
    if (v.dot)
        find_free(k, &v, bufs, free);
    Node *columns = long_sum_opts(a, nest, &v, free);
    if (columns) {
        lanes[(*nlanes)++] = columns; /* blocks of columns are copied to where they lie together */
        return;
    }
    Nest *whole = v.dot && !reuses_rows(&v, free) ? nest_clone(*nest) : NULL;
    if (whole && whole_rows_opts(a, whole, &v)) {
        nest_free(*nest);
        *nest = whole;
        return;
    }
    nest_free(whole);
    if (v.dot) {
        best = contraction_tile(&q, &outputs);
        take_joined(&q, nest, &v, &best, &outputs);
    }
    Nest *tiled = v.dot ? pairs_opts(&q, *nest, &best, want) : NULL;
    outputs |= tiled != NULL;
    if (!tiled && best.lanes)
        tiled = best_of_others(&q, *nest, &best, want);
    if (!tiled) {
        plain_opts(a, *nest, &v);
        return;
    }
    if (outputs && best.width > 1)
        tiled = with_places(&q, tiled, &best, want);
    if (best.width > 1)
        prefetch_states(tiled, &v, bufs, outputs);
    nest_free(*nest);
    *nest = tiled;
    if (outputs && !scalar_fours(&q))
        lanes[(*nlanes)++] = best.lanes;
}
