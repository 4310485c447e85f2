/* gpu_cores.c - opts without search for devices of OpenCL whose processors are cores of a CPU.
 *
 * What a group shares lies in memory like all else there, and its items run one after the other: a
 * copy of an operand for them is work for nothing, and so is a barrier.  What counts is what counts
 * on any core.  An item has a tile of results, whose sums stay in registers: straight-line code, of
 * which the driver's compiler makes vectors along what lies side by side.
 *
 *     128 x 28 x 28 results of a 3x3 convolution      UPCAST i0 16  UPCAST i2 4  BIND i0.o grid ..
 *
 * Tiles of 16 to 64 results are tried, and none, and cost_nest() tells which takes least. */
#include "choose.h"

enum { FEWEST = MAX_COPIES / 4 /* results of an item */, MOST_TERMS = 8, ROOM = 64 };

/* Groups are dealt to the processors: as many rounds as the last one to end has. */
static double rounds_by_share(const Nest *n)
{
    int64_t groups = 1;
    for (int i = 0; i < n->naxis; i++)
        if (n->axis[i].bound == BOUND_GRID)
            groups = sat_mul(groups, n->axis[i].most);
    const int64_t each = n->target->machine.processors;
    return groups > 1 ? (double)(ceil_div(groups, each) * each) / (double)groups : 1;
}

/* The nest in this shape, and its cycles; NULL: it cannot be done so. */
static Nest *shaped(const Nest *nest, const ItemShape *shape, double *cycles)
{
    Nest *n = nest_clone(nest);
    if (!item_tile(n, shape) || nest_check(n)) {
        nest_free(n);
        return NULL;
    }
    *cycles = nest_cycles(nest->k, n, NULL) * rounds_by_share(n);
    return n;
}

/* Rows and columns, of which a vector holds all, first those whose columns go on
 * from one row of pixels to the next, of which fewer are left over; and some terms of a sum, where
 * results are few. */
static int list_shapes(ItemShape shape[ROOM], int lanes)
{
    int n = 0;
    for (int joined = 1; joined >= 0; joined--)
        for (int results = FEWEST; results <= MAX_COPIES; results *= 2)
            for (int columns = 1; columns <= results && columns <= lanes; columns *= 2)
                shape[n++] = (ItemShape){.rows = results / columns,
                                         .columns = columns,
                                         .terms = 1,
                                         .joined = joined,
                                         .groups = ITEMS_ALONE};
    for (int columns = 1; columns <= MOST_TERMS; columns *= 2)
        shape[n++] =
            (ItemShape){.rows = 1, .columns = columns, .terms = MOST_TERMS, .groups = ITEMS_ALONE};
    return n;
}

void choose_core_opts(Nest **nest)
{
    ItemShape shape[ROOM];
    const int n = list_shapes(shape, (*nest)->target->machine.core_lanes);
    Nest *best = nest_clone(*nest);
    double least = nest_cycles((*nest)->k, best, NULL), cycles;
    for (int i = 0; i < n; i++) {
        Nest *tried = shaped(*nest, &shape[i], &cycles);
        if (!tried || cycles >= CLEARLY * least) {
            nest_free(tried);
            continue;
        }
        nest_free(best);
        best = tried;
        least = cycles;
    }
    nest_free(*nest);
    *nest = best;
}
