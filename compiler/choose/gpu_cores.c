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
#include "cost_nest.h"

enum { FEWEST = MAX_COPIES / 4 /* results of an item */, MOST_TERMS = 8, ROOM = 64 };
static const double CLEARLY = 0.97; /* of the cycles of what comes before it in the list */

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

/* Cycles of a kernel in this shape, NULL: without any; -1: it cannot be done so. */
static double cost_of(const Kernel *k, const Target *t, const ItemShape *shape)
{
    Kernel *copy = kernel_copy(k);
    copy->nopt = 0;
    copy->opts = NULL;
    Nest *n = nest_new(copy, t);
    double cycles = -1;
    if (!shape || (item_tile(n, shape) && !nest_check(n))) {
        nest_keep(n, copy);
        cycles = cost_nest(copy, t).cycles * rounds_by_share(n);
    }
    nest_free(n);
    ingot_context_free(copy->c);
    return cycles;
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

bool choose_core_opts(Nest **nest)
{
    const Target *t = (*nest)->target;
    ItemShape shape[ROOM];
    const int n = list_shapes(shape, t->machine.core_lanes);
    double least = cost_of((*nest)->k, t, NULL);
    int best = -1;
    for (int i = 0; i < n; i++) {
        const double cycles = cost_of((*nest)->k, t, &shape[i]);
        if (cycles >= 0 && cycles < CLEARLY * least) {
            least = cycles;
            best = i;
        }
    }
    Nest *tiled = best < 0 ? NULL : nest_clone(*nest);
    if (!tiled || !item_tile(tiled, &shape[best])) {
        nest_free(tiled);
        return false;
    }
    nest_free(*nest);
    *nest = tiled;
    return true;
}
