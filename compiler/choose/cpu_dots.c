/* cpu_dots.c - the tile of a sum of bytes by fours on a core without lanes, by the instructions
 * that it takes: a load of four bytes and two pairs of 16 bits made of them are three, a dot is two
 * (SMLAD), and registers are few.
 *
 *     for each block of weights    v of them beside each other: 2 v registers
 *       for m pixels               m v sums
 *         for terms                v + m loads; the pixels' one after the other, 2 registers
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
/* Bytes of an instruction; what one is worth, by a byte of RAM, which every run uses. */
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

/* Instructions of a tile of v weights and m pixels, of so many dots of each. */
static double tile_cost(int64_t v, int64_t m, double dots, const Target *t)
{
    const DotCost c = dot_cost(t);
    const double each = (double)(c.load * (v + m) + c.products * v * m) + (double)TURN / TURN_DOTS;
    return dots * each + AROUND + results_cost(v * m, c);
}

/* The same of what is less than a tile, so many times, with what its text takes in flash. */
static double rest_cost(int64_t v, int64_t m, double dots, double times, const Target *t)
{
    const double text = dots < TURN_DOTS ? dots : TURN_DOTS;
    return times < 1 ? 0
                     : times * tile_cost(v, m, dots, t) +
                           FLASH * t->machine.byte * WORD * tile_cost(v, m, text, t);
}

/* Of rows and columns, with the tiles that are less than whole. */
static double conv_cost(int64_t v, int64_t columns, int64_t m, int64_t rows, double dots,
                        double times, const Target *t)
{
    const double across = (double)(columns / v), down = (double)(rows / m);
    const int64_t left = columns % v, last = rows % m;
    return times * across * down * tile_cost(v, m, dots, t) +
           rest_cost(left, m, dots, left ? times * down : 0, t) +
           rest_cost(v, last, dots, last ? times * across : 0, t) +
           rest_cost(left, last, dots, left && last ? times : 0, t);
}

/* Are there registers for so many sums, and what is loaded for them? */
static bool tile_fits(int64_t v, int64_t m, const Target *t)
{
    const int vectors = dot_cost(t).vectors, all = t->machine.registers + POINTERS - 2;
    const int64_t held = (m > 1 ? v : 1) + 1; /* those that all pixels share, and a pixel's */
    return vectors ? 2 * v * m <= all && held < vectors : v * m + 2 * held <= all;
}

/* Of weights w along `lanes`, and pixels of x along the others; least: of what was found before. */
static void best_along(const View *v, const Node *w, Node *lanes, double dots, const Target *t,
                       double *least, RegisterTile *best)
{
    const int64_t columns = range_extent(lanes);
    double all = 1;
    for (int i = 0; i < v->nrange; i++)
        all *= (double)v->range[i]->hi + 1;
    for (int i = -1; i < v->nrange; i++) {
        Node *r = i < 0 ? NULL : v->range[i];
        const int64_t rows = r ? range_extent(r) : 1;
        if (r && (r == lanes || depends_on(w, r) || rows < 2 || !view_reuses(v, r, NULL)))
            continue;
        for (int64_t n = 1; n <= columns && n <= MOST_ROWS; n++)
            for (int64_t m = r ? 2 : 1; m <= rows && m <= (r ? MOST_ROWS : 1); m++) {
                const double cost =
                    conv_cost(n, columns, m, rows, dots, all / (double)(columns * rows), t);
                if (!tile_fits(n, m, t) || cost > *least)
                    continue;
                *least = cost;
                best->lanes = lanes;
                best->vectors = n;
                best->rows = m > 1 ? r : NULL;
                best->nrows = m;
            }
    }
}

static RegisterTile conv_tile(const View *v, const bool *free, int terms, const Target *t)
{
    RegisterTile best = {.width = 1, .vectors = 1, .nrows = 1, .ncolumns = 1, .reuse = true};
    double dots = 1, least = INFINITY;
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
        dots *= (double)v->dot->src[i]->hi + 1;
    for (int j = 0; j < v->nfactor && v->nfactor == 2 && !v->outer; j++) {
        Node *w = v->factor[j], *x = v->factor[1 - j];
        for (int i = 0; i < v->nrange && free[w->src[0]->arg.i]; i++)
            if (depends_on(w, v->range[i]) && !depends_on(x, v->range[i]) &&
                range_extent(v->range[i]) > 0)
                best_along(v, w, v->range[i], dots / terms, t, &least, &best);
    }
    return best;
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
