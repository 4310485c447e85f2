/* cpu_tile.c - the register tile of a contraction, by a score: how full its vectors and rows are,
 * what it loads for each multiply-add, which caches that comes from, what has to be copied
 * first. */
#include <math.h>
#include <stdlib.h>

#include "cpu.h"

static double used(int64_t extent, int64_t step)
{
    return (double)extent / (double)(ceil_div(extent, step) * step);
}

/* Over how many rows a vector from L2 has to be used; a block that stays in L1 beside the other
 * operand fills half of it. Vectors of narrow numbers may be more, as whole lines of the cache, two
 * at most: what else an iteration does is done once for all of them. */
enum { MAX_VECTORS = 4, BLOCK_VECTORS = 2, BLOCK_ROWS = 6, L2_ROWS = 8 };

/* A block of bytes whose parts have a scale each, and few dots of four terms: what makes digits and
 * scales is shared by more rows, though sums of the blocks around then wait in L1. */
enum { DOT_TERMS = 4, PART_DOTS = 4, PART_ROWS = 8 };

static bool has_short_parts(const View *v, const Target *t)
{
    int64_t terms = 1;
    bool bytes = !t->machine.pairs;
    for (uint32_t j = 1; j < v->dot->nsrc; j++)
        terms = sat_mul(terms, v->dot->src[j]->hi + 1);
    for (int j = 0; j < v->nfactor; j++)
        bytes &= dtype_info[v->factor[j]->dtype].bytes == 1;
    return v->outer && v->outer->nsrc - reduce_ranges(v->outer) > 1 && bytes &&
           terms <= PART_DOTS * DOT_TERMS && t->machine.registers >= 2 * BLOCK_VECTORS * PART_ROWS;
}

static const double APART = 0.9;   /* of rows in pages of their own */
static const double NEXT = 0.4375; /* of L2, for a block beside the next one */

double flow_of(double each, bool lanes)
{
    const double ENOUGH = 1.6, PLENTY = 2.2, WAIT = 0.3;
    double more = (each < PLENTY ? each : PLENTY) - ENOUGH;
    return more <= 0 ? each : ENOUGH + (lanes ? WAIT * more : 0);
}

/* One in so many sums may have to leave its register: of a window that slides; of a tile in which
 * each has so many others to wait for that its way to L1 and back takes next to no time. That way
 * begins anew in each tile: it pays for sums of many terms. */
enum { SPILL = 4, MANY_TERMS = 128 };

/* A window that slides along the rows: neighbours along them are the innermost reduced loop's next
 * iterations. */
typedef struct {
    int64_t step, taps; /* from row to row, in taps; of that loop. No taps: it is no such window */
    bool vectors;       /* its elements are loaded along the lanes */
} SlidingWindow;

int64_t step_in_taps(int64_t step, int64_t apart, int64_t taps)
{
    const bool common = apart && step % apart == 0 && llabs(step / apart) < taps;
    return common ? llabs(step / apart) : 0;
}

/* C compilers keep what they have loaded of such a window in registers. */
static SlidingWindow window_along(const Kernel *k, const View *v, Node *lanes, Node *rows)
{
    for (int j = 0; j < v->nfactor; j++) {
        int64_t step, inner = 0, extent = 0, stride;
        if (!access_stride(k, v->factor[j], rows, &step) || !step)
            continue;
        for (uint32_t i = 1; i < v->dot->nsrc; i++)
            if (access_stride(k, v->factor[j], v->dot->src[i], &stride) && stride &&
                (!inner || llabs(stride) < inner)) {
                inner = llabs(stride);
                extent = v->dot->src[i]->hi + 1;
            }
        const int64_t taps = step_in_taps(step, inner, extent);
        if (taps)
            return (SlidingWindow){taps, extent, depends_on(v->factor[j], lanes)};
    }
    return (SlidingWindow){0};
}

bool moves_lanes_operand(const View *v, Node *lanes, Node *r)
{
    for (int j = 0; j < v->nfactor; j++)
        if (depends_on(v->factor[j], lanes) && depends_on(v->factor[j], r))
            return true;
    return false;
}

double operand_bytes(const Kernel *k, const View *v, Node *lanes, bool moved)
{
    double sum = 0;
    for (int j = 0; j < v->nfactor; j++) {
        const KernelArg *arg = &k->args[v->factor[j]->src[0]->arg.i];
        double size = dtype_info[v->factor[j]->dtype].bytes;
        for (int d = 0; d < arg->rank; d++)
            size *= (double)arg->dims[d]->hi;
        sum += depends_on(v->factor[j], lanes) == moved ? size : 0;
    }
    return sum;
}

bool is_block_of_rows(const Kernel *k, const View *v, Node *lanes, Node *rows, Node *r,
                      const Target *t)
{
    enum { ENOUGH_ROWS = 6 * MAX_ROWS };
    double used = 1;
    if (!t->machine.lanes || r == lanes || r == rows || r->hi < 1 ||
        moves_lanes_operand(v, lanes, r))
        return false;
    for (int i = 0; i < v->nrange; i++)
        if (v->range[i] != r && v->range[i] != lanes &&
            !moves_lanes_operand(v, lanes, v->range[i]) &&
            storage_stride(k, v->store[0], v->range[i]) < storage_stride(k, v->store[0], r))
            used *= (double)v->range[i]->hi + 1;
    return used >= ENOUGH_ROWS && operand_bytes(k, v, lanes, true) > t->machine.far &&
           operand_bytes(k, v, lanes, false) > t->machine.far;
}

/* What it takes to read the operands that the lanes move, if L2 does not hold them, by the time of
 * all products. */
static double read_again(const Kernel *k, const View *v, Node *lanes, const Target *t)
{
    const double bytes = t->machine.lanes ? operand_bytes(k, v, lanes, true) : 0;
    double products = 1;
    for (int i = 0; i < k->naxis; i++)
        products *= (double)k->axes[i].range->hi + 1;
    return bytes <= t->machine.far
               ? 0
               : cost_bytes(bytes, INFINITY, t) / (2 * products / t->machine.rate[UNIT_TILE]);
}

/* Does the other operand lie side by side along the rows, its terms pages apart? Then it is copied
 * into panels of them. */
static bool in_row_panels(const Kernel *k, const View *v, const Buffer *const *bufs, Node *lanes,
                          Node *rows, const Target *t)
{
    int64_t stride;
    for (int j = 0; j < v->nfactor; j++)
        if (!depends_on(v->factor[j], lanes) && depends_on(v->factor[j], rows))
            return bufs[v->factor[j]->src[0]->arg.i]->kind != BUF_WEIGHT &&
                   access_stride(k, v->factor[j], rows, &stride) && stride == 1 &&
                   walks_pages(k, v, v->factor[j], t);
    return false;
}

/* Do the other operand's rows begin whole pages apart? Then what a step reads of them is in one set
 * of L1. */
static bool in_one_set(const Kernel *k, const View *v, Node *lanes, Node *rows, const Target *t)
{
    int64_t stride;
    for (int j = 0; j < v->nfactor; j++)
        if (!depends_on(v->factor[j], lanes) && access_stride(k, v->factor[j], rows, &stride) &&
            stride && stride * dtype_info[v->factor[j]->dtype].bytes % t->machine.page == 0)
            return true;
    return false;
}

/* How far apart rows lie in what is read of each, in bytes; 0: that is not known. */
static double row_stride(const Kernel *k, const View *v, Node *rows)
{
    double far = 0;
    for (int j = 0; j < v->nfactor; j++) {
        int64_t stride;
        if (!access_stride(k, v->factor[j], rows, &stride))
            return 0;
        const double bytes = (double)llabs(stride) * dtype_info[v->factor[j]->dtype].bytes;
        far = bytes > far ? bytes : far;
    }
    return far;
}

/* Rows of other pages, where neighbours of another axis are not: each is a stream of its own, and
 * what a thread makes of several images is not what it reads next, of one. */
static bool lies_apart(const Kernel *k, const View *v, Node *rows, const Target *t)
{
    const double far = row_stride(k, v, rows);
    bool nearer = false;
    for (int i = 0; i < v->nrange; i++) {
        const double other = row_stride(k, v, v->range[i]);
        nearer |= other > 0 && other < t->machine.page && view_reuses(v, v->range[i], NULL);
    }
    return far >= t->machine.page && nearer;
}

/* What all tiles with these lanes have in common. */
typedef struct {
    const Target *t;
    int64_t extent, width, ncolumns, registers, sums;
    int64_t around; /* sums that each of those is a term of, block by block: a register, too */
    int64_t narrow; /* bytes under a vector in a term, of an operand narrower than sums; or 0 */
    double block;   /* bytes of the lanes' operand under a vector, for all terms */
    /* such a block that all rows read is in L2 beside the next one, and what is left of it is
     * theirs; a larger one comes from further away for each tile */
    double near;
    double again, uses, terms;
    int dot; /* DOT takes so many terms at once, or 0 */
    bool reuse, small, signs, pairs, halves, integers, parts; /* has_short_parts() */
    /* of a sum over batch and pixels of operands that are computed: cycles that a byte of them
     * takes; else 0 */
    double stream;
} TileSearch;

/* May a tile have so many vectors, of the operand that the lanes move? */
static bool may_have(const TileSearch *s, int64_t vectors)
{
    const int64_t bytes = vectors * s->narrow, block = s->t->machine.weight_block,
                  columns = vectors * s->width;
    if (block && columns % block != 0 && block % s->width != 0) /* a vector lies in one block */
        return false;
    if (s->around)
        return vectors == 1 ||
               (vectors <= BLOCK_VECTORS && /* each has two sums; pairs of i16 few rows */
                (s->halves || s->t->machine.registers > 2 * vectors * BLOCK_ROWS));
    const bool alone = s->uses == 1 && s->ncolumns == 1 && !s->dot && !s->narrow;
    return vectors <= (alone ? 2 * MAX_VECTORS : MAX_VECTORS) ||
           (bytes <= 2 * s->t->machine.line && bytes % s->t->machine.line == 0 && s->narrow);
}

static double stream_cycles(const View *v, const Buffer *const *bufs, const Target *t)
{
    bool computed = t->machine.lanes && v->dot->nsrc > 2;
    for (int j = 0; j < v->nfactor; j++)
        computed &= bufs[v->factor[j]->src[0]->arg.i]->kind == BUF_ARENA ||
                    bufs[v->factor[j]->src[0]->arg.i]->kind == BUF_INPUT;
    return computed ? cost_bytes(1, INFINITY, t) : 0;
}

static TileSearch tile_search(const Kernel *k, const View *v, const Buffer *const *bufs,
                              const RegisterTile *first, int dot, const Target *t)
{
    const bool four = dot == 4;
    Node *lanes = first->lanes;
    TileSearch s = {.t = t,
                    .extent = lanes_extent(lanes),
                    .width = first->width,
                    .ncolumns = first->ncolumns,
                    .sums = v->ndot,
                    .around = v->outer ? v->ndot : 0,
                    .parts = has_short_parts(v, t),
                    .block = (double)(first->width * dtype_info[v->dot->dtype].bytes),
                    .near = t->machine.lanes ? t->machine.far * NEXT : INFINITY,
                    .again = read_again(k, v, lanes, t),
                    .stream = stream_cycles(v, bufs, t),
                    .uses = 1,
                    .terms = 1,
                    .reuse = first->reuse,
                    .dot = dot,
                    .small =
                        !t->machine.lanes && t->machine.registers && !dtype_is_float(v->dot->dtype),
                    .signs = four && t->machine.lanes && !t->machine.any_sign,
                    .pairs = four && t->machine.pairs,
                    .halves = dot == 2 && !dtype_is_float(v->dot->dtype),
                    .integers = !dot && t->machine.lanes && !dtype_is_float(v->dot->dtype)};
    s.registers = t->machine.lanes || s.small ? t->machine.registers : t->machine.sums;
    if (t->machine.lanes &&
        s.width * lane_bytes(k, lanes) > 4 * t->machine.lanes) /* a vector takes two */
        s.registers /= 2;
    for (int j = 0; j < v->nfactor && dot; j++) {
        s.signs &= v->factor[j]->dtype == INGOT_I8;
        if (depends_on(v->factor[j], lanes))
            s.block = (double)(s.width * dtype_info[v->factor[j]->dtype].bytes);
    }
    for (uint32_t j = 1; j < v->dot->nsrc; j++) {
        s.block *= (double)v->dot->src[j]->hi + 1;
        s.terms *= (double)v->dot->src[j]->hi + 1;
    }
    for (int j = 0; j < v->nfactor && t->machine.lanes && !dot; j++)
        if (depends_on(v->factor[j], lanes) &&
            dtype_info[v->factor[j]->dtype].bytes < dtype_info[v->dot->dtype].bytes)
            s.narrow += s.width * dtype_info[v->factor[j]->dtype].bytes;
    for (int i = 0; i < v->nrange; i++)
        s.uses *= view_reuses(v, lanes, v->range[i]) ? (double)v->range[i]->hi + 1 : 1;
    return s;
}

/* Registers beside the sums, of which each vector has so many. */
static int64_t operand_registers(const TileSearch *s, int64_t vectors, int64_t each)
{
    if (s->pairs) /* two each, bytes 0 and 2 and bytes 1 and 3; those of rows come one by one */
        return 2 * (s->sums * vectors + 1);
    if (s->halves) /* and the products, before they are added */
        return s->sums * vectors + 2;
    if (s->signs) /* a sum beside each vector, and what flips a sign */
        return 2 * s->sums * vectors + 3;
    if (s->dot && s->small) /* two registers each, of which those of one side come one by one */
        return 2 * ((vectors < each ? vectors : each) + 1);
    /* of rows and vectors those that are fewer stay; the others come one by one */
    return s->sums * (s->t->machine.lanes && each < vectors ? each : vectors) + 1;
}

static bool has_registers(const TileSearch *s, int64_t vectors, int64_t each)
{
    const int64_t sums = (s->parts ? s->sums : s->sums + s->around) * vectors * each,
                  spilt = s->t->machine.lanes && !s->dot && s->terms >= MANY_TERMS
                              ? sums / s->t->machine.spills
                              : 0;
    return sums + operand_registers(s, vectors, each) <=
           s->registers + (s->dot && s->small) + spilt;
}

/* What the rows of a tile are. */
typedef struct {
    int64_t count;
    SlidingWindow window;
    /* they are copied into panels; in_one_set(); lies_apart(); is_block_of_rows() of some
     * axis */
    bool panels, one_set, apart, blocks;
    double step; /* bytes from a row to the next one, of the other operand */
} TileRows;

static TileRows rows_along(const Kernel *k, const View *v, const Buffer *const *bufs, Node *lanes,
                           Node *rows, const Target *t)
{
    TileRows r = {.count = rows_of(rows),
                  .window = window_along(k, v, lanes, rows),
                  .panels = in_row_panels(k, v, bufs, lanes, rows, t),
                  .apart = lies_apart(k, v, rows, t)};
    for (int j = 0; j < v->nfactor; j++) {
        int64_t stride;
        if (!depends_on(v->factor[j], lanes) && access_stride(k, v->factor[j], rows, &stride))
            r.step = (double)llabs(stride) * dtype_info[v->factor[j]->dtype].bytes;
    }
    if (v->outer && range_extent(rows) < 0 && rows->hi >= BLOCK_ROWS) /* two sums for each */
        r.count = has_short_parts(v, t) && rows->hi >= PART_ROWS ? PART_ROWS : BLOCK_ROWS;
    r.one_set = !r.panels && in_one_set(k, v, lanes, rows, t);
    for (int i = 0; i < v->nrange; i++)
        r.blocks |= is_block_of_rows(k, v, lanes, rows, v->range[i], t);
    return r;
}

/* Is the window loaded once for all of its rows and taps? So it is where each lane has weights of
 * its own, which leave registers to it, and a C compiler writes out the loop over the taps. */
static bool loads_window_once(const TileSearch *s, int64_t vectors, int64_t m,
                              const SlidingWindow *w)
{
    return !s->reuse && w->vectors && s->sums * vectors * m * s->ncolumns * w->taps <= WRITTEN_OUT;
}

/* How fast the products of a tile come, one after the other: by what is loaded for each, and how
 * many do not wait for each other. Those of a short window begin beside the last ones of the tile
 * before. */
static double pace_of(const TileSearch *s, int64_t vectors, int64_t m, const SlidingWindow *w)
{
    enum { SUMS_OF_WINDOW = 8 };
    const double rows = (double)(m * s->ncolumns), wide = (double)(s->sums * vectors),
                 acc = wide * rows;
    double each = s->reuse ? acc / (wide + rows) : acc / (acc + wide), most = s->t->machine.chains;
    if (loads_window_once(s, vectors, m, w)) {
        each = (double)(m * w->taps) / (double)((m - 1) * w->step + 2 * w->taps);
        most = SUMS_OF_WINDOW;
    }
    return flow_of(each, s->t->machine.lanes > 0) * (acc < most ? acc : most);
}

/* The same where it is the lanes' lines that products wait for, a few of each term, beside rows
 * that are walked (the taps of a window): a score as pace_of() would give it, which ends where
 * products alone take as long. */
static double score_of_stream(const TileSearch *s, double wide, int64_t each, const TileRows *rows)
{
    const double element = s->block / s->terms / (double)s->width,
                 most = flow_of(INFINITY, true) * (double)(s->t->machine.chains * s->width),
                 products = wide * (double)(each * s->width) / s->t->machine.rate[UNIT_TILE],
                 bytes = (wide * (double)s->width + (double)each) * element;
    const bool walked = rows->step >= s->t->machine.line;
    return s->stream > 0 && walked ? most * products / (bytes * s->stream) : 0;
}

/* What flipping the sign of a row's bytes takes, in products, beside which it is done where these
 * have half of the machine's vectors. */
static double flips(const TileSearch *s)
{
    return machine_in_halves(&s->t->machine) ? 0 : 1;
}

/* m rows at a time. */
static double tile_score(const TileSearch *s, int64_t vectors, int64_t m, const TileRows *rows)
{
    const int64_t each = m * s->ncolumns;
    const double acc = (double)(s->sums * vectors * each), wide = (double)(s->sums * vectors);
    double score = used(s->extent, vectors * s->width) * used(rows->count, m) *
                   pace_of(s, vectors, m, &rows->window) * (double)(s->width > 0 ? s->width : 1);
    if (s->dot == 2) /* two terms at once, as fast as the machine does that */
        score *= s->halves ? s->t->machine.dot_i16 : s->t->machine.dot_bf16;
    if (s->dot == 4 && s->t->machine.lanes &&
        !s->pairs) /* four terms at once, beside what signs take */
        score *= 4 * acc / (acc + (s->signs ? wide + flips(s) * (double)each : 0));
    if (s->pairs) /* beside what makes pairs of them */
        score *= 2 * acc / (acc + wide + (double)each);
    if (s->integers) /* a product and a sum are two operations */
        score /= 2;
    /* a block of the lanes' operand that L1 does not hold comes from L2 again for every m rows;
     * bytes fast enough */
    if (!s->signs && !s->pairs && s->block * wide > s->t->machine.near / 2 && m < L2_ROWS)
        score *= (double)(L2_ROWS + m) / (2.0 * L2_ROWS);
    const double near = rows->blocks ? 2 * s->near : s->near;
    if (s->uses > m && s->block * wide > near)
        score = fmax(score * near / (s->block * wide),
                     fmin(score, score_of_stream(s, wide, each, rows)));
    /* whole rows leave no tile behind, which reads all of the lanes' operand again */
    if (rows->count % m)
        score *= 0.93 / (1 + s->again);
    if (s->extent % (vectors * s->width))
        score *= 0.95;
    if (rows->panels && m % PANEL)
        score *= 0.9;
    if (rows->one_set && m > s->t->machine.ways)
        score *= s->t->machine.ways / (double)m;
    return rows->apart && m > 1 ? score * APART : score;
}

static bool reused_rows(const View *v, Node *lanes, Node *rows)
{
    return rows != lanes && view_reuses(v, lanes, rows) && view_reuses(v, rows, NULL);
}

/* Rows that are too few to use a vector from L2 for: all of them, and some along a second axis (3x3
 * pixels are nine rows). */
static void add_columns(const Kernel *k, const View *v, const TileSearch *s, RegisterTile *best)
{
    Node *rows = best->rows;
    const int64_t nr = rows ? rows_of(rows) : 0;
    if (!s->t->machine.lanes || !rows || best->columns || best->nrows != nr || nr > L2_ROWS / 2 ||
        s->block * (double)best->vectors <= s->t->machine.near / 2)
        return;
    for (int64_t vectors = 1; vectors <= MAX_VECTORS && vectors * s->width <= s->extent; vectors++)
        for (int i = 0; i < v->nrange; i++) {
            const int64_t nc = rows_of(v->range[i]);
            if (v->range[i] == rows || !reused_rows(v, best->lanes, v->range[i]) ||
                window_along(k, v, best->lanes, v->range[i]).taps ||
                in_one_set(k, v, best->lanes, v->range[i], s->t))
                continue;
            for (int64_t c = 2; c <= nc && c * nr <= MAX_ROWS && has_registers(s, vectors, c * nr);
                 c++) {
                const double score = tile_score(s, vectors, c * nr, &(TileRows){.count = nc * nr});
                if (score > best->score * 1.001) {
                    best->columns = v->range[i];
                    best->ncolumns = c;
                    best->vectors = vectors;
                    best->score = score;
                }
            }
        }
}

/* Does a window slide along r, whichever of the reduced axes its taps are?  Gives how many these
 * are, or 0. */
static int64_t taps_along(const Kernel *k, const View *v, Node *r)
{
    for (int j = 0; j < v->nfactor; j++) {
        int64_t step, stride;
        if (!access_stride(k, v->factor[j], r, &step) || !step)
            continue;
        for (uint32_t i = 1; i < v->dot->nsrc; i++)
            if (access_stride(k, v->factor[j], v->dot->src[i], &stride) &&
                step_in_taps(step, stride, v->dot->src[i]->hi + 1))
                return v->dot->src[i]->hi + 1;
    }
    return 0;
}

/* Windows that take steps, each lane with weights of its own: neighbours share little along a row,
 * and as much from row to row, where it comes from further away.  Few of both may be written out
 * whole (3x3 in steps of two, 96x56x56 results on a Zen 4: 112 us by rows of 14, 84 by 2 of each of
 * 3 rows); in steps of one nothing is gained. */
static int window_tiles(const Kernel *k, const View *v, const RegisterTile *tile, const Target *t,
                        RegisterTile *out)
{
    Node *rows = tile->rows;
    const SlidingWindow w = rows ? window_along(k, v, tile->lanes, rows) : (SlidingWindow){0};
    int n = 0;
    if (!t->machine.lanes || tile->reuse || tile->columns || tile->vectors > 1 || v->ndot > 1 ||
        !w.vectors || w.step < 2)
        return 0;
    for (int i = 0; i < v->nrange; i++) {
        Node *r = v->range[i];
        const int64_t taps = r == rows || r == tile->lanes ? 0 : taps_along(k, v, r);
        if (!taps || !reused_rows(v, tile->lanes, r))
            continue;
        for (int64_t down = rows_of(r); down > 1; down--)
            for (int64_t along = rows_of(rows); along > 0; along--)
                if (taps * w.taps * along * down <= WRITTEN_OUT && n < WINDOW_TILES) {
                    out[n] = *tile;
                    out[n].nrows = along;
                    out[n].columns = r;
                    out[n++].ncolumns = down;
                }
    }
    return n;
}

/* pair: what is interleaved with the lanes, or NULL. */
static RegisterTile pick_vectors(const Kernel *k, const View *v, const Buffer *const *bufs,
                                 Node *lanes, Node *pair, int terms, int moves, const Target *t,
                                 int64_t least)
{
    RegisterTile best = {.lanes = lanes,
                         .columns = pair,
                         .width = t->machine.lanes ? lanes_along(k, t, lanes) : 1,
                         .vectors = 1,
                         .nrows = 1,
                         .ncolumns = pair ? 2 : 1,
                         .apart = pair != NULL,
                         .moves = moves};
    for (int j = 0; j < v->nfactor; j++)
        best.reuse |= !depends_on(v->factor[j], lanes);
    const TileSearch s = tile_search(k, v, bufs, &best, terms, t);
    /* of a size of run time one: what fills none is computed row by row */
    const int64_t most = range_extent(lanes) < 0 ? 1 : 2 * MAX_VECTORS;
    for (int64_t vectors = least; vectors <= most && vectors * s.width <= s.extent; vectors++)
        for (int i = v->nrange;
             i-- > -1;) { /* -1 stands for no rows; of equals the last axis: its rows lie close */
            Node *rows = i >= 0 ? v->range[i] : NULL;
            if ((pair && rows == pair) || (rows && !reused_rows(v, lanes, rows)))
                continue;
            TileRows r = rows && t->machine.lanes ? rows_along(k, v, bufs, lanes, rows, t)
                                                  : (TileRows){.count = rows ? rows_of(rows) : 1};
            r.blocks &= terms != 4 && !pair;
            for (int64_t m = 1; m <= r.count && m <= (t->machine.lanes ? MAX_ROWS : 4); m++) {
                const int64_t each = m * s.ncolumns; /* of a vector */
                if (!has_registers(&s, vectors, each) || !may_have(&s, vectors))
                    break;
                const int64_t sums = s.sums * vectors * each,
                              over = sums + operand_registers(&s, vectors, each) + m - s.registers;
                if (r.window.taps && (double)over > (double)sums / SPILL)
                    continue;
                const double score = tile_score(&s, vectors, m, &r);
                if (score > best.score * 1.001) {
                    best.rows = m > 1 ? rows : NULL;
                    best.vectors = vectors;
                    best.nrows = m;
                    best.score = score;
                }
            }
        }
    add_columns(k, v, &s, &best);
    best.waits = best.nrows < s.uses && s.near < s.block * (double)(s.sums * (best.vectors + 1)) &&
                 best.vectors * s.sums * best.nrows * best.ncolumns < t->machine.chains;
    return best;
}

RegisterTile pick_tile(const Kernel *k, const View *v, const Buffer *const *bufs, Node *lanes,
                       Node *pair, int terms, int moves, const Target *t)
{
    return pick_vectors(k, v, bufs, lanes, pair, terms, moves, t, 1);
}

/* A block of one vector alone is in L2, and the rows are few: its sums wait for themselves (7 x 7
 * results of 512 maps, 256 KB). Wider tiles read blocks from further away, and wait for nothing. */
static int wider_tiles(const Kernel *k, const View *v, const Buffer *const *bufs,
                       const RegisterTile *tile, const Target *t, RegisterTile *out)
{
    if (!tile->waits || tile->nfour || tile->columns)
        return 0;
    *out = pick_vectors(k, v, bufs, tile->lanes, NULL, 0, tile->moves, t, tile->vectors + 1);
    return out->score > 0;
}

int other_tiles(const Kernel *k, const View *v, const Buffer *const *bufs, const RegisterTile *tile,
                const Target *t, RegisterTile *out)
{
    const int n = window_tiles(k, v, tile, t, out);
    return n ? n : wider_tiles(k, v, bufs, tile, t, out);
}

/* Are there sums of whole rows, one beside the other, which all elements of a row need (a norm's
 * gradient)?  With lanes along the terms of one the other would go element by element: such rows
 * have a form of their own. */
static bool sums_of_rows(const View *v)
{
    bool others = false, shared = false;
    for (int i = 0; i < v->nreduce; i++)
        others |= v->reduce[i]->src[v->reduce[i]->nsrc - 1] != v->dot->src[v->dot->nsrc - 1];
    for (int i = 0; i < v->nrange; i++)
        shared |= v->range[i]->hi > 0 && !depends_on(v->dot, v->range[i]);
    return others && shared;
}

/* Lanes along a reduced axis, whose sums are joined at the end: where the results do not lie side
 * by side, or are few, but both operands do.  rows * columns results share their loads. */
RegisterTile pick_dot_tile(Arena *a, const View *v, const Kernel *k, const bool *free,
                           const Target *t)
{
    RegisterTile best = {.vectors = 1, .nrows = 1, .ncolumns = 1};
    if (sums_of_rows(v))
        return best;
    for (uint32_t i = 1; i < v->dot->nsrc && t->machine.lanes; i++) {
        int64_t extent = v->dot->src[i]->hi + 1, width = lanes_along(k, t, v->dot->src[i]);
        int moves;
        if (width && used(extent, width) * (double)width > best.score &&
            fits_lanes(a, k, v->dot->src[i], width, free, &moves, NULL) && !moves) {
            best.lanes = v->dot->src[i];
            best.width = width;
            best.score = used(extent, width) * (double)width;
        }
    }
    double most = 1;
    for (int i = 0; i < v->nrange && best.lanes; i++)
        for (int j = -1; j < v->nrange; j++) {
            Node *rows = v->range[i], *columns = j < 0 ? NULL : v->range[j];
            int64_t nr = rows_of(rows), nc = columns ? rows_of(columns) : 1;
            if (rows == columns || !view_reuses(v, rows, columns) ||
                (columns && !view_reuses(v, columns, rows)))
                continue;
            for (int64_t m = 1; m <= nr && m <= 8; m++)
                for (int64_t c = 1; c <= nc && c <= 4; c++) {
                    double acc = (double)(m * c * v->ndot), loads = (double)(m + c * v->ndot);
                    double score = used(nr, m) * used(nc, c) * (acc / loads) *
                                   (acc < t->machine.chains ? acc : t->machine.chains);
                    if (acc + (double)m + 1 > t->machine.registers || score <= most)
                        continue;
                    most = score;
                    best.rows = m > 1 ? rows : NULL;
                    best.columns = c > 1 ? columns : NULL;
                    best.nrows = m;
                    best.ncolumns = c;
                }
        }
    return best;
}
