/* gpu_wgmma.c - opts without search, for products of matrices whose fragments the items of a
 * warpgroup multiply together.
 *
 * Operands are read where they lie, so a block's results have all of the registers, and boxes bring
 * operands there without any item's doing.  What bounds such a product is the flow of operands into
 * a processor: blocks are as large as the sums leave room for, as long as there are enough of
 * them. */
#include <math.h>
#include <string.h>

#include "gpu.h"

enum {
    NARROW = 64, /* columns that a block may have of any product */
    MOST_WARPS = 4,
    MOST_DEPTH = 6,
    FEWEST = 4,    /* places of groups that stay, if more would fit */
    EVEN = 16,     /* turns, from which on a depth that divides the steps is worth a place */
    LONG_LOOP = 8, /* lines of terms */
    MOST_PARTS = 4
};

typedef struct {
    const Tc *unit;
    int64_t warps, depth; /* warpgroups, one below the other */
    int64_t parts;        /* of the terms, for as many groups of a cluster */
    int64_t sums;         /* that have the rows in common */
    int64_t steps; /* groups stay, and places are those of several blocks: lines of terms of one */
    bool few;      /* rows: each byte of places counts */
    bool turned;   /* sums have the columns in common */
} Tall;

static int64_t place_bytes(const Tall *b)
{
    const int64_t rows = b->warps * b->unit->m, columns = b->unit->n;
    return (b->turned ? b->sums * rows + columns : rows + b->sums * columns) * b->unit->run;
}

/* With what is kept of operands besides, what the groups of a cluster join their sums in, and the
 * tokens. */
static int64_t shared_bytes(const Tall *b)
{
    const int64_t rests = b->warps * tc_rests(b->unit) * dtype_info[b->unit->b].bytes;
    const int64_t join = (b->parts - 1) * b->warps * b->unit->m * b->unit->n * 4;
    return b->depth * place_bytes(b) + rests + (b->few ? join / b->parts : join) + TC_TOKENS;
}

/* Where items add what the unit has summed they have two sums of each of their results. Of several
 * warpgroups, who have what the loaders leave them, they have to fit. */
static bool has_registers(const Tall *b)
{
    const int64_t sums = tc_sums_of(b->unit, b->sums * b->unit->m * b->unit->n);
    return b->warps == 1 || sums + tc_beside(b->unit) <= tc_registers(b->warps);
}

/* Cycles that a block's products over a line of terms take, with so many blocks beside each other.
 * In three each warpgroup takes operands apart before it multiplies, which little hides. */
static double line_cycles(const Tall *b, const GroupProducts *w, double beside)
{
    const double hidden = 0.87;
    const Tc *u = b->unit;
    /* the narrower the terms, the more in a line, and in a cycle; rows are read at the rate of 64
     * columns */
    const int64_t columns = u->n > NARROW ? u->n : NARROW;
    if (u->products == 1)
        return (double)(b->sums * b->warps * u->m * columns * u->run / 2) / w->rate;
    const double alone = (double)b->warps * (w->apart + w->column * u->n);
    return (double)b->warps * beside > 1 ? alone * hidden : alone;
}

/* How many blocks a processor has in all, and how often as many as there is room for. */
typedef struct {
    double each, turns;
    int64_t blocks;
} Share;
static Share share_of(const Extents *e, const Tall *b, const Target *t)
{
    const int64_t rows = b->warps * b->unit->m, columns = b->unit->n,
                  items = (b->warps + 1) * b->unit->lanes; /* one warpgroup loads */
    const int64_t registers =
        tc_sums_of(b->unit, b->sums * rows * columns / b->warps) + tc_beside(b->unit);
    int64_t fits = t->machine.file / (items * registers),
            room = t->machine.shared / shared_bytes(b);
    fits = room < fits ? room : fits;
    fits = fits < 1 || b->steps ? 1 : fits;
    Share s = {.blocks =
                   e->others * ceil_div(e->rows, rows) * ceil_div(e->columns, columns) * b->parts};
    s.each = (double)ceil_div(s.blocks, mma_processors(t, b->parts));
    s.turns = (double)ceil_div((int64_t)s.each, fits);
    return s;
}

/* Cycles that a line of terms takes, of a group that waits for none; beside: blocks that hide each
 * other. */
static double busy_cycles(const Tall *b, const Share *s, double beside, const Target *t)
{
    const GroupProducts *w = &t->machine.group_products;
    const int64_t processors = t->machine.processors,
                  groups = s->blocks < processors ? s->blocks : processors;
    const double busiest = (double)place_bytes(b) / w->flow,
                 together = (double)(place_bytes(b) * groups) / w->flow_all;
    return fmax(fmax(busiest, together), line_cycles(b, w, beside));
}

/* Cycles that the product takes if groups stay, and boxes of whole blocks come ahead: a group waits
 * once, and then brings, multiplies and stores all the time. What a warp has on its way is bounded.
 * (H200, f16, us: 100,352 x 256 x 64 with a residual in blocks of 256x128, 256x64, 128x256: 35.0,
 * 39.3, 42.7, by warps 42.9; 25,088 x 512 x 128 with one, of 256x128, 192x128, 128x256, 128x128:
 * 15.4, 16.6, 17.4, 19.0, by groups of one block each 17.5.) */
static double stay_estimate(const Extents *e, const Tall *b, const Target *t)
{
    const double hidden = 0.9;
    const GroupProducts *w = &t->machine.group_products;
    const Share s = share_of(e, b, t);
    const double warps = (double)(b->warps * b->unit->lanes / t->machine.warp),
                 rate = fmin(w->stored, t->machine.warp_stored * warps),
                 stores = (double)(b->warps * b->unit->m * b->unit->n * (1 + e->read)) / rate,
                 products = (double)b->steps * busy_cycles(b, &s, 1, t);
    return t->machine.start + w->fill +
           s.each * (fmax(products, stores) + (1 - hidden) * fmin(products, stores));
}

/* Cycles that the product takes in such blocks. */
static double estimate(const Extents *e, const Tall *b, const Target *t)
{
    if (b->steps)
        return stay_estimate(e, b, t);
    const GroupProducts *w = &t->machine.group_products;
    const int64_t rows = b->warps * b->unit->m, columns = b->unit->n;
    const Share s = share_of(e, b, t);
    const double steps = (double)ceil_div(e->terms, tc_run(b->unit) * b->parts);
    const double beside = s.each / s.turns; /* that hide each other */
    const double busy = busy_cycles(b, &s, beside, t);
    double step = w->latency / (double)(b->depth - 1) / beside;
    step = step > busy ? step : busy;
    const double join = b->parts > 1 ? (double)(s.blocks * rows * columns) / w->given : 0;
    const double begin = b->unit->products > 1 ? t->machine.start + w->begin3 : t->machine.start;
    const BlockTurns all = {.each = s.each,
                            .beside = beside,
                            .warps = (double)(b->warps * b->unit->lanes / t->machine.warp),
                            .products = steps * step,
                            .results = (double)(rows * columns),
                            .stored = w->stored};
    const double fill = mma_waits(e, &all) ? w->fill / beside : w->fill;
    return begin + join + s.turns * fill + mma_blocks_cycles(e, &all, &t->machine);
}

/* Those that are beside it what one warpgroup would take or another one spares: what is made of the
 * sums. A quarter of a processor that has one warp waits for each operation of it. */
static double finish(const Extents *e, const Tall *b, const Target *t)
{
    const GroupProducts *w = &t->machine.group_products;
    const Share s = share_of(e, b, t);
    const double warps = (double)b->warps * s.each / s.turns,
                 work = (double)(b->warps * b->unit->m * b->unit->n * e->work) / w->finish;
    return (double)(b->warps - 1) * w->group + s.each * (warps > 1 ? work : 2 * work);
}

/* Groups that take one block after the other (STAY) end each with a whole turn through their
 * places: so many; 0: there would be too few, which costs more (8,192 x 768 x 50,304 with 3: 0.87
 * ms for 0.78 with 4). */
static int64_t even_depth(const Extents *e, const Tall *b, const Target *t)
{
    const int64_t steps = ceil_div(e->terms, tc_run(b->unit));
    int64_t depth = b->depth;
    if (b->unit->products > 1 || b->parts > 1 || b->warps < 2 ||
        share_of(e, b, t).blocks <= t->machine.processors)
        return 0;
    while (depth > 0 && (steps % depth || steps == depth))
        depth--;
    return depth == b->depth || depth >= FEWEST ? depth : 0;
}

/* The same block with places of several, if groups may stay: of short loops, whose boxes would all
 * come at the beginning of a group, and whose results would be stored at its end. One line of terms
 * is made two: what is not there is zero, and no memory is read for it. Parts of lines are not
 * worth their places (mobilenet_v2, whose products have 16 to 144 terms: 0.539 ms for 0.526). */
static bool in_turns(const Extents *e, const Tall *b, const Target *t, Tall *out)
{
    const int64_t line = tc_run(b->unit);
    *out = *b;
    out->steps = ceil_div(e->terms, line);
    out->steps = out->steps < 2 ? 2 : out->steps;
    out->depth = t->machine.shared / place_bytes(b);
    while (out->depth > 0 && (out->depth % out->steps || shared_bytes(out) > t->machine.shared))
        out->depth--;
    return out->depth >= FEWEST && e->terms % line == 0 && b->unit->products == 1 &&
           b->parts == 1 && b->warps > 1 && b->sums == 1 && !e->run &&
           share_of(e, out, t).blocks > t->machine.processors;
}

/* As many lines of terms ahead as shared memory and the loop have. A long loop ends with a whole
 * turn through its places (f32, 128 steps: 1.33 ms with 4 of them, 1.47 with 5). */
static int64_t depth_of(const Extents *e, Tall b, const Target *t)
{
    const int64_t line = tc_run(b.unit), terms = e->terms / b.parts, steps = ceil_div(terms, line);
    while (b.depth > 2 && (shared_bytes(&b) > mma_room(e, t) || b.depth * line >= terms + line))
        b.depth--;
    while (b.depth > 4 && steps >= EVEN * b.depth && steps % b.depth)
        b.depth--;
    const int64_t even = even_depth(e, &b, t);
    return even ? even : b.depth;
}

static void rank_tall(Ranking *r, Tall *found, const Extents *e, const Tall *b, const Target *t,
                      double most)
{
    const double all = estimate(e, b, t);
    if (all >= most || shared_bytes(b) > mma_room(e, t))
        return;
    const int number = mma_rank(r, -1, all + finish(e, b, t), WGMMA_MOST_NTH);
    if (number >= 0)
        found[number] = *b;
}

/* Units of few columns, or of short lines, are for products that have no more columns and a long
 * loop over terms (windows): where few terms make the loop, groups that stay have been measured to
 * lose with short lines, and more columns want wider blocks. Three products of a term (tf32x3) are
 * work enough for few columns. */
static bool suits_narrow(const Extents *e, const Tc *u)
{
    return ((u->n >= NARROW || u->products > 1) && u->run == TC_RUN) ||
           (e->terms >= LONG_LOOP * tc_run(u) && (u->n >= NARROW || e->columns <= u->n));
}

/* Can terms be divided among so many groups of a cluster? */
static bool is_even(const Extents *e, const Tc *u, int64_t parts)
{
    const int64_t line = tc_run(u);
    return parts == 1 || (u->acc == INGOT_F32 && e->sums == 1 && e->terms % (parts * line) == 0 &&
                          e->terms > parts * line);
}

/* Of few rows: would there be a processor for each of more groups? Half of all would leave
 * half of the memory's rate. */
static bool takes_more(const Extents *e, const Tall *b, const Target *t)
{
    Tall more = *b;
    if (b->warps > 1)
        more.warps--;
    else
        more.parts *= 2;
    return e->turned && more.parts <= MOST_PARTS && is_even(e, b->unit, more.parts) &&
           share_of(e, &more, t).blocks <= t->machine.processors;
}

/* The one of number `nth`, from 0, in the order of their estimates. Lines of 64 bytes bring too
 * little for rows of which half are none (H200, f16: windows of 32 channels of 32 images of
 * 224x224, these channels as rows: 0.52 ms, by warps 0.41; the pixels as rows: 0.17, by warps
 * 0.37). */
static bool pick_block(const Extents *e, const Tc *like, const Target *t, Tall *best, double most,
                       int nth)
{
    Tall found[WGMMA_MOST_NTH], turns;
    Ranking r = {.n = 0};
    for (int i = 0; i < TC_COUNT; i++)
        for (int64_t warps = 1; warps <= MOST_WARPS; warps++)
            for (int64_t parts = 1; parts <= MOST_PARTS; parts *= 2) {
                const Tc *u = &tc_units[i];
                Tall b = {u, warps, MOST_DEPTH, parts, e->sums, 0, e->few, e->turned};
                b.depth = e->turned ? 2 * MOST_DEPTH : b.depth;
                const bool wide = ((warps > 1 || u->run < TC_RUN) && warps * u->m >= 2 * e->rows) ||
                                  (u->n > NARROW && u->n >= 2 * e->columns);
                if (!(t->machine.units >> i & 1) || !tc_in_place(u) || u->a != like->a ||
                    u->products != like->products || wide || !is_even(e, u, parts) ||
                    !has_registers(&b) || (u->n == MMA_TURNED) != e->turned ||
                    (!e->turned && !suits_narrow(e, u)) || (e->run && e->run % u->n) ||
                    takes_more(e, &b, t))
                    continue;
                b.depth = depth_of(e, b, t);
                rank_tall(&r, found, e, &b, t, most);
                if (in_turns(e, &b, t, &turns))
                    rank_tall(&r, found, e, &turns, t, most);
            }
    if (nth < r.n)
        *best = found[r.number[nth]];
    return nth < r.n;
}

/* Is all that moves with rows in L2 while all columns go past, and not the other way round? (H200,
 * bf16: 8,192 x 50,304 x 768, 77 MB of columns beside 13 of rows.) */
static bool rows_stay(const Tc *u, const Extents *e, const Target *t)
{
    const int64_t line = e->terms * dtype_info[u->a].bytes,
                  most = (int64_t)t->machine.level[0].bytes / 2;
    return e->rows * line <= most && e->columns * line > most;
}

/* outer: the loop over blocks of terms, at which operands are staged. */
static bool block_opts(Nest *n, const Product *p, const Extents *e, const Tall *b,
                       const char **outer)
{
    const Tc *u = b->unit;
    const char *rows, *columns, *terms, *row, *column, *term, *warp, *step, *turn;
    const char *part = NULL, *own = p->terms.name;
    if (b->parts > 1 && !mma_divide(n, own, mma_extent(n, own) / b->parts, &part, &own))
        return false;
    if (b->steps && !mma_mask(n, own, b->steps * tc_run(u)))
        return false;
    if (!mma_divide(n, p->rows.name, u->m * b->warps, &rows, &row) ||
        !mma_divide(n, p->columns.name, u->n, &columns, &column) ||
        !mma_divide(n, own, tc_run(u), &terms, &term) || !terms ||
        !mma_divide(n, row, u->m, &warp, &row) || !mma_divide(n, term, u->k, &step, &term) ||
        !mma_turns(n, columns, &rows, &turn))
        return false;
    if (!nest_opt(n, OPT_TC, arena_printf(n->arena, "%s (%s; %s; %s)", u->name, row, column, term),
                  0))
        return false;
    const char *order = mma_grid_order(n, rows, columns, turn, rows_stay(p->unit, e, n->target)),
               *const grid[] = {rows, columns, turn};
    order = *order ? arena_printf(n->arena, "%s ", order) : order;
    order = arena_printf(n->arena, step ? "%s%s %s" : "%s%s", order, terms, step);
    if (!nest_opt(n, OPT_ORDER, order, 0))
        return false;
    if (!mma_bind_others(n, &p->others) || !mma_bind(n, 3, grid, BOUND_GRID) ||
        !mma_bind(n, 1, &warp, BOUND_WARP))
        return false;
    *outer = terms;
    return !part || nest_opt(n, OPT_BIND, part, BOUND_CLUSTER);
}

/* Few groups leave processors to those of the next kernel, which begin early and are in nobody's
 * way; those of few rows leave room (mma_room()). */
static void let_next_begin(Nest *n, const Extents *e, const Tall *b)
{
    if (n->target->triggers && b->unit->products == 1 &&
        (e->few || share_of(e, b, n->target).blocks <= n->target->machine.processors / 2))
        (void)nest_opt(n, OPT_TRIGGER, "waited", 0);
}

/* As many groups as there are processors take the blocks one after the other, if two of them would
 * not fit beside each other: boxes of a block come while results of the one before are stored, and
 * a warpgroup that is done goes on while others are still storing. (H200, bf16: 8,192 x 3,072 x 768
 * 69 to 62 us, with a GELU's gradient behind it 101 to 90; x 2,304 53 to 47.) */
static void let_stay(Nest **nest, const Extents *e, const Tall *b)
{
    const Target *t = (*nest)->target;
    if ((*nest)->trigger || share_of(e, b, t).blocks <= t->machine.processors ||
        (!b->steps && 2 * shared_bytes(b) <= t->machine.shared))
        return;
    Nest *tried = nest_clone(*nest);
    const char *groups = arena_printf(tried->arena, "%d", t->machine.processors);
    const bool good = nest_opt(tried, OPT_STAY, groups, 0) && !nest_check(tried);
    nest_free(good ? *nest : tried);
    if (good)
        *nest = tried;
}

static bool tile(Nest **nest, const Product *p, const Extents *e, const Tall *b)
{
    Nest *tiled = nest_clone(*nest);
    const char *outer;
    const bool good = block_opts(tiled, p, e, b, &outer) && mma_stage(&tiled, outer, b->depth);
    if (good) {
        let_next_begin(tiled, e, b);
        let_stay(&tiled, e, b);
    }
    nest_free(good ? *nest : tiled);
    if (good)
        *nest = tiled;
    return good;
}

/* If a block does not suit what lies around it, the next best is tried. */
bool choose_wgmma_opts(Nest **nest, const Product *p, const Extents *e, double cycles)
{
    Tall b = {0};
    const Target *t = (*nest)->target;
    const int nth = t->nth ? t->nth - 1 - MMA_MOST_NTH : 0;
    bool good = false;
    for (int i = nth;
         i >= 0 && !good && pick_block(e, p->unit, t, &b, t->nth ? INFINITY : cycles, i);
         i = t->nth ? -1 : i + 1)
        good = tile(nest, p, e, &b);
    return good;
}

/* Few rows as columns: a place has no more of them than there are, and the rows of a block are
 * those of weights. */
bool mma_few_opts(Nest **nest, const View *v, const Product *p, const Extents *e)
{
    Product q = *p;
    Extents of = *e;
    if (!e->few || e->run)
        return false;
    if (e->rows < e->columns) {
        q.rows = p->columns;
        q.columns = p->rows;
        of.rows = e->columns;
        of.columns = e->rows;
    }
    of.turned = true;
    mma_order_rows((*nest)->k, v->factor[!depends_on(v->factor[0], q.rows.range[0])], &q.rows);
    if (of.columns > MMA_TURNED || of.rows < 2 * tc_units[TC_WGMMA8_F16].m)
        return false;
    return mma_wgmma_opts(nest, q, &of, INFINITY);
}
