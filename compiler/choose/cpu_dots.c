/* cpu_dots.c - the tile of a sum of bytes by fours on a core without lanes, by the instructions
 * that it takes: a load of four bytes and two pairs of 16 bits made of them are three, a dot is two
 * (SMLAD), and registers are few.
 *
 *     for each block of weights    v of them beside each other: 2 v registers
 *       for m pixels               m v sums
 *         for terms                v + m loads; the pixels' one after the other, 2 registers
 *
 * Pairs are made once where a block of weights, or the pixels of a tile, lie in a place as 16 bits
 * (STAGE): a load of four is one instruction then, LDRD.
 *
 * Helium loads 4, 8 or 16 bytes into a vector register by one instruction, and adds all of their
 * products to a sum by another one (vmladava), which takes every second of the other registers.
 *
 * Where each result has weights of its own (a depthwise convolution) it is rows of windows below
 * each other that share loads. */
#include <math.h>

#include "cpu.h"

enum {
    TURN = 5, /* of a loop's iteration, of so many dots of each sum: */
    TURN_DOTS = 4,
    AROUND = 8 * 3, /* of a tile: addresses, loops, sums that begin */
    RESULT = 4 * 3, /* of a result that is quantised; of four at once, with Helium: */
    RESULTS = RESULT,
    AT_ONCE = 4,
    MOST_ROWS = 8,
    VECTORS = 8, /* registers of Helium */
    /* registers beside those that the table has for sums of products, of which some are loaded: */
    POINTERS = 5
};

/* Instructions of a load and of a dot; registers that hold what is loaded, if others than sums: */
typedef struct {
    int load, products, vectors;
} DotCost;

static DotCost dot_cost(const Target *t)
{
    return t->machine.dot_terms > 4 ? (DotCost){.load = 1, .products = 1, .vectors = VECTORS}
                                    : (DotCost){.load = 3, .products = 2};
}

/* Of so many results of a tile. */
static double results_cost(int64_t n, DotCost c)
{
    return (double)(c.vectors ? n / AT_ONCE * RESULTS + n % AT_ONCE * RESULT : n * RESULT);
}

/* Windows that are less than whole are written out beside: it has to be worth that. */
static const double CODE = 1.03;
/* Bytes of an instruction; what one of what is less than a tile is worth, by a byte of RAM. */
enum { WORD = 4, FLASH = 8 };

/* ---- windows in planes ----------------------------------------------------------------------- */

/* The reduced axis, other than that of the fours, whose taps slide along r; *step: in taps. */
static Node *taps_across(const Kernel *k, const View *v, Node *load, Node *r, Node *four,
                         int64_t *step)
{
    int64_t far, apart;
    if (!access_stride(k, load, r, &far) || !far)
        return NULL;
    for (uint32_t i = 1; i < v->dot->nsrc; i++) {
        Node *taps = v->dot->src[i];
        if (taps != four && access_stride(k, load, taps, &apart) &&
            (*step = step_in_taps(far, apart, taps->hi + 1)))
            return taps;
    }
    return NULL;
}

/* Instructions for each result of a tile of m rows: a load and two pairs for each row of the
 * window, two products for each tap; and those of what is left of the extent. */
static double plane_cost(int64_t m, int64_t extent, int64_t taps, int64_t step, DotCost c)
{
    const int64_t rest = extent % m, tiles = extent / m;
    const double whole = (double)(c.load * ((m - 1) * step + taps) + c.products * m * taps),
                 last = (double)(c.load * ((rest - 1) * step + taps) + c.products * rest * taps);
    const double results =
        c.vectors ? (double)tiles * results_cost(m, c) + results_cost(rest, c) : 0;
    return (whole * (double)tiles + (rest ? CODE * last : 0) + results) / (double)extent;
}

/*     for each plane               weights of 3 x 4 bytes, in registers
 *       for each m rows, column    m + 2 loads of four neighbours, of which rows below each other
 *                                  share what lies between them */
static RegisterTile plane_tile(const Kernel *k, const View *v, const bool *free, Node *four,
                               const Target *t)
{
    RegisterTile best = {.width = 1, .vectors = 1, .nrows = 1, .ncolumns = 1};
    if (v->nfactor != 2 || v->ndot != 1 || v->outer)
        return best;
    const int weight = free[v->factor[0]->src[0]->arg.i] ? 0 : 1;
    Node *w = v->factor[weight], *x = v->factor[1 - weight], *plane = NULL;
    if (!free[w->src[0]->arg.i])
        return best;
    for (int i = 0; i < v->nrange; i++) {
        if (!depends_on(w, v->range[i]))
            continue;
        if (!depends_on(x, v->range[i])) /* others read it again: no plane of its own */
            return best;
        plane = v->range[i];
    }
    const DotCost c = dot_cost(t);
    double least = INFINITY;
    for (int i = 0; i < v->nrange && plane; i++) {
        Node *r = v->range[i];
        int64_t step = 0;
        Node *taps =
            depends_on(w, r) || range_extent(r) < 1 ? NULL : taps_across(k, v, x, r, four, &step);
        for (int64_t m = 1; taps && m <= range_extent(r); m++) {
            const int64_t rows = taps->hi + 1;
            const double cost = plane_cost(m, range_extent(r), rows, step, c);
            const bool fits = c.vectors ? 2 * rows < c.vectors && m <= MOST_ROWS
                                        : m + 2 * rows + 2 <= t->machine.registers + POINTERS;
            if (!fits || m * rows > WRITTEN_OUT || cost >= least)
                continue;
            least = cost;
            best.lanes = plane;
            best.rows = m > 1 ? r : NULL;
            best.nrows = m;
            best.taps = taps;
        }
    }
    return best;
}

/* ---- weights that pixels share --------------------------------------------------------------- */

/* Which operand lies widened in a place (STAGE): for all pixels a block of weights, for all weights
 * the pixels of a tile. */
typedef enum { PLACE_NONE, PLACE_WEIGHTS, PLACE_PIXELS } WidePlace;
enum {
    WIDE_LOAD = 1, /* instructions of a load, */
    WIDEN = 8,     /* of four bytes that are widened, */
    SPILL = 1,     /* of each dot where the address of a place finds no register left */
    WIDE_BYTES = 2
};

/* A sum of products of bytes by fours, of weights along one axis and pixels along another. */
typedef struct {
    const Target *t;
    double dots;           /* of a result */
    int terms;             /* of a dot */
    int64_t columns, rows; /* weights; pixels */
    double times;          /* that there are so many of both */
    double weights;        /* that other weights come */
} Sums;

/* Registers for so many sums, and for what is loaded for them: weights that all pixels share, a
 * pixel. */
static int64_t held(int64_t v, int64_t m)
{
    return v * m + 2 * ((m > 1 ? v : 1) + 1);
}

static int64_t all_registers(const Target *t)
{
    return t->machine.registers + POINTERS - 2;
}

/* Instructions of a tile of v weights and m pixels, of so many dots of each. */
static double tile_cost(int64_t v, int64_t m, double dots, WidePlace place, const Target *t)
{
    const DotCost c = dot_cost(t);
    const double w = place == PLACE_WEIGHTS ? WIDE_LOAD : c.load,
                 x = place == PLACE_PIXELS ? WIDE_LOAD : c.load;
    const double spilled = place && held(v, m) == all_registers(t) ? SPILL : 0;
    const double each = w * (double)v + x * (double)m + (double)(c.products * v * m) +
                        (double)TURN / TURN_DOTS + spilled;
    return dots * each + AROUND + results_cost(v * m, c);
}

/* The same so many times, with what its text takes in flash. */
static double tiles_cost(const Sums *s, int64_t v, int64_t m, double times, double flash,
                         WidePlace place)
{
    const double text = s->dots < TURN_DOTS ? s->dots : TURN_DOTS;
    return times < 1 ? 0
                     : times * tile_cost(v, m, s->dots, place, s->t) +
                           flash * s->t->machine.byte * WORD * tile_cost(v, m, text, place, s->t);
}

/* What a place takes: it is filled for each block (and for the pixels that are less than a tile
 * anew), and has bytes. */
static double place_cost(const Sums *s, int64_t v, int64_t m, WidePlace place)
{
    const int64_t last = s->rows % m;
    const double across = (double)ceil_div(s->columns, v);
    const double bytes = (double)(place == PLACE_WEIGHTS ? v : m) * s->dots * s->terms * WIDE_BYTES;
    const double fills = place == PLACE_WEIGHTS
                             ? (double)s->columns * s->weights * (last && s->rows > m ? 2 : 1)
                             : (double)s->rows * s->times * (s->columns % v && across > 1 ? 2 : 1);
    return place == PLACE_NONE ? 0 : WIDEN * fills * s->dots + s->t->machine.byte * bytes;
}

/* Of rows and columns, with the tiles that are less than whole. */
static double conv_cost(const Sums *s, int64_t v, int64_t m, WidePlace place)
{
    const double across = (double)(s->columns / v), down = (double)(s->rows / m);
    const int64_t left = s->columns % v, last = s->rows % m;
    return tiles_cost(s, v, m, s->times * across * down, 1, place) +
           tiles_cost(s, left, m, left ? s->times * down : 0, FLASH, place) +
           tiles_cost(s, v, last, last ? s->times * across : 0, FLASH, place) +
           tiles_cost(s, left, last, left && last ? s->times : 0, FLASH, place) +
           place_cost(s, v, m, place);
}

static bool tile_fits(int64_t v, int64_t m, const Target *t)
{
    const int vectors = dot_cost(t).vectors;
    const int64_t loaded = (m > 1 ? v : 1) + 1;
    return vectors ? 2 * v * m <= all_registers(t) && loaded < vectors
                   : held(v, m) <= all_registers(t);
}

/* May the operand lie in a place, of so many blocks: does something read it there again, and
 * nothing check bounds? Few dots are written out, and their weights stay in registers as they are.
 */
static bool may_be_wide(const Sums *s, Node *load, double blocks, double again)
{
    return !dot_cost(s->t).vectors && s->dots >= TURN_DOTS && blocks > 1 && again > 1 &&
           node_is_const_i(load->src[1], 1);
}

/* Of weights w along `lanes`, and pixels of x along the others; least: of what was found before. */
static void best_along(const View *v, Node *const *wx, Node *lanes, Sums *s, double *least,
                       RegisterTile *best)
{
    Node *w = wx[0];
    double all = 1;
    s->columns = range_extent(lanes);
    s->weights = 1;
    for (int i = 0; i < v->nrange; i++) {
        all *= (double)v->range[i]->hi + 1;
        if (v->range[i] != lanes && depends_on(w, v->range[i]))
            s->weights *= (double)v->range[i]->hi + 1;
    }
    for (int i = -1; i < v->nrange; i++) {
        Node *r = i < 0 ? NULL : v->range[i];
        s->rows = r ? range_extent(r) : 1;
        s->times = all / (double)(s->columns * s->rows);
        if (r && (r == lanes || depends_on(w, r) || s->rows < 2 || !view_reuses(v, r, NULL)))
            continue;
        for (int64_t n = 1; n <= s->columns && n <= MOST_ROWS; n++)
            for (int64_t m = r ? 2 : 1; m <= s->rows && m <= (r ? MOST_ROWS : 1); m++)
                for (WidePlace place = PLACE_NONE; place <= PLACE_PIXELS; place++) {
                    const double pixels = s->times / s->weights * (double)s->rows / (double)m,
                                 blocks = s->weights * (double)s->columns / (double)n,
                                 around = place == PLACE_WEIGHTS ? blocks : pixels;
                    const double cost = conv_cost(s, n, m, place);
                    if (!tile_fits(n, m, s->t) || cost > *least ||
                        (place && !may_be_wide(s, wx[place - 1], around, pixels * blocks / around)))
                        continue;
                    *least = cost;
                    best->lanes = lanes;
                    best->vectors = n;
                    best->rows = m > 1 ? r : NULL;
                    best->nrows = m;
                    best->wide = place ? wx[place - 1] : NULL;
                }
    }
}

static RegisterTile conv_tile(const View *v, const bool *free, int terms, const Target *t)
{
    RegisterTile best = {.width = 1, .vectors = 1, .nrows = 1, .ncolumns = 1, .reuse = true};
    Sums s = {.t = t, .dots = 1, .terms = terms};
    double least = INFINITY;
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
        s.dots *= (double)v->dot->src[i]->hi + 1;
    s.dots /= terms;
    for (int j = 0; j < v->nfactor && v->nfactor == 2 && !v->outer; j++) {
        Node *w = v->factor[j], *x = v->factor[1 - j], *wx[] = {w, x};
        for (int i = 0; i < v->nrange && free[w->src[0]->arg.i]; i++)
            if (depends_on(w, v->range[i]) && !depends_on(x, v->range[i]) &&
                range_extent(v->range[i]) > 0)
                best_along(v, wx, v->range[i], &s, &least, &best);
    }
    return best;
}

void stage_wide(Nest *nest, const RegisterTile *tile)
{
    int at = -1;
    for (int i = 0; i < nest->norder && tile->wide && tile->nfour; i++) {
        const NestAxis *x = &nest->axis[nest->order[i]];
        if (!x->reduced && !x->remainder && x->extent != 1 &&
            depends_on(tile->wide, nest->k->axes[x->root].range))
            at = nest->order[i];
    }
    if (at >= 0)
        nest_opt(nest, OPT_STAGE, nest->axis[at].name, (int)tile->wide->src[0]->arg.i);
}

RegisterTile pick_scalar_tile(const Kernel *k, const View *v, const bool *free, Node *const *four,
                              int nfour, int terms, const Target *t)
{
    RegisterTile tile = nfour == 1 ? plane_tile(k, v, free, four[0], t) : (RegisterTile){0};
    if (!tile.lanes)
        tile = conv_tile(v, free, terms, t);
    tile.nfour = nfour;
    tile.terms = terms;
    for (int i = 0; i < nfour; i++)
        tile.four[i] = four[i];
    return tile;
}
