/* cpu_row_blocks.c - products whose rows come from memory: the gradient of an embedding, 50,257
 * words by 768, a sum over the tokens of a batch.
 *
 *     panel after panel                       block of rows after block
 *     for panels of columns:                  for rows, block by block:
 *         for rows:                               for panels of columns:
 *             a tile                                  for rows of the block:
 *                                                         a tile
 *
 * On the left each panel reads all rows, from memory where no cache holds them; on the right those
 * of a block stay in L2, while panels, which are few, are read again from a nearer level. */
#include <math.h>

#include "cpu.h"

/* The loop over the tile's rows if these come from memory for each panel, and nothing else walks
 * over them; or -1. */
static int rows_loop(const Nest *nest, const View *v, const RegisterTile *tile)
{
    const Target *t = nest->target;
    const Kernel *k = nest->k;
    if (!t->machine.lanes || t->gpu || v->outer || tile->nfour || tile->apart || !tile->rows ||
        range_extent(tile->rows) < 0)
        return -1;
    for (int i = 0; i < v->nrange; i++)
        for (int j = 0; j < v->nfactor; j++)
            if (v->range[i] != tile->rows && range_extent(v->range[i]) != 1 &&
                !depends_on(v->factor[j], tile->lanes) && depends_on(v->factor[j], v->range[i]))
                return -1;
    const double bytes = operand_bytes(k, v, tile->lanes, false);
    const int rows = nest_loop(nest, nest_root(nest, tile->rows)),
              panels = nest_loop(nest, nest_root(nest, tile->lanes));
    return cost_bytes(1, bytes, t) >= cost_bytes(1, INFINITY, t) && nest->axis[panels].extent > 1 &&
                   nest_position(nest, panels) < nest_position(nest, rows)
               ? rows
               : -1;
}

/* As many iterations of that loop as have their rows in half of L2, rather some that leave nothing
 * over; 0: no two. */
static int64_t block_of(const Nest *nest, const View *v, const RegisterTile *tile, int rows)
{
    const int64_t count = nest->axis[rows].extent;
    const double bytes = operand_bytes(nest->k, v, tile->lanes, false),
                 each = bytes * (double)tile->nrows / (double)range_extent(tile->rows);
    const int64_t most = (int64_t)(nest->target->machine.far / 2 / each);
    for (int64_t n = most; n > most / 2 && n > 1; n--)
        if (count % n == 0)
            return n < count ? n : 0;
    return most > 1 && most < count ? most : 0;
}

Nest *row_blocks(const Nest *tiled, const View *v, const RegisterTile *tile)
{
    const int rows = rows_loop(tiled, v, tile);
    const int64_t block = rows < 0 ? 0 : block_of(tiled, v, tile, rows);
    if (!block)
        return NULL;
    Nest *nest = nest_clone(tiled);
    if (nest_opt(nest, OPT_SPLIT, nest->axis[rows].name, block)) {
        const int outer = nest_last_split(nest)->outer;
        const char *names = nest_and_name(nest, "", outer);
        for (int i = 0; i < nest->norder; i++)
            if (nest->order[i] != outer)
                names = nest_and_name(nest, names, nest->order[i]);
        if (nest_opt(nest, OPT_ORDER, names, 0))
            return nest;
    }
    nest_free(nest);
    return NULL;
}
