/* cpu_turns.c - tiles whose sums come in turn: of dots of bytes so short that what is made of each
 * sum takes a good part of the time.
 *
 *     4 pixels x 4 vectors    16 sums at once, then 16 results
 *     28 pixels x 2 vectors   8 sums at once, seven times; the results of each eight are made amid
 *                             the dots of the next (spread_stores.c)
 *
 * Where registers do not hold the sums of a tile, lowering makes such turns of them: a tile that is
 * so large is all that has to be chosen. */
#include "cpu.h"

/* A turn is 4 rows of 2 vectors: eight sums wait for nothing, and as many of the turn before have
 * registers beside them. What is made of the last turn's sums of a tile is amid no dots, so there
 * are several. */
enum { ROWS = 4, VECTORS = 2, LEAST_TURNS = 4, MOST_TURNS = 7 };
enum { LEAST_ROWS = LEAST_TURNS * ROWS, MOST_ROWS = MOST_TURNS * ROWS };
/* An operation of what is made of a sum counts beside so many of its dots; where there are fewer
 * than these, what is made of sums takes all the time. */
enum { DOTS_BESIDE = 8, LEAST_DOTS = 2 * ROWS };

/* Has a store's value as many operations as are left, without those of sums and of addresses? */
static bool has_operations(const Node *n, int64_t *left)
{
    if (*left <= 0 || n->dtype == INGOT_INDEX || n->op == OP_REDUCE || n->op == OP_LOAD)
        return *left <= 0;
    *left -= n->nsrc > 0;
    for (uint32_t i = 0; i < n->nsrc; i++)
        (void)has_operations(n->src[i], left);
    return *left <= 0;
}

static bool is_row(const View *v, const RegisterTile *tile, Node *r)
{
    return r != tile->lanes && view_reuses(v, tile->lanes, r) && view_reuses(v, r, NULL);
}

/* The most rows along an axis that leave no rest, by fours; 0: there are none. */
static int64_t rows_in_turn(const Node *r)
{
    const int64_t extent = range_extent(r);
    for (int64_t m = MOST_ROWS; extent > 0 && m >= LEAST_ROWS; m -= ROWS)
        if (extent % m == 0)
            return m;
    return 0;
}

/* How many of these rows there are together with all of a short row; 1: that leaves a rest. */
static int64_t columns_in_turn(int64_t row, const Node *r)
{
    for (int64_t m = row > 0 ? MOST_ROWS / row : 1; m > 1; m--)
        if (range_extent(r) % m == 0 && row * m % ROWS == 0 && row * m >= LEAST_ROWS)
            return m;
    return 1;
}

/* The dots of a result, where all that is summed is dots, each sum's along one axis; else 0. */
static int64_t dots_of_result(const Kernel *k, const View *v, const RegisterTile *tile)
{
    int64_t dots = 0;
    if (k->naxis != v->nrange + tile->nfour)
        return 0;
    for (int i = 0; i < tile->nfour; i++)
        dots += range_extent(tile->four[i]) / 4;
    return dots;
}

/* Is what is made of its sums worth it, and a vector a line of the cache, which as few registers
 * multiply as hold two turns and more? */
static bool is_short_of_dots(const Kernel *k, const View *v, const RegisterTile *tile,
                             const Target *t)
{
    const Machine *m = &t->machine;
    if (!tile->lanes || !tile->rows || tile->columns || !tile->nfour || tile->terms != 4 ||
        tile->width != m->lanes || m->lanes * 4 != m->line || m->pairs || v->nstore != 1 ||
        v->outer || m->registers < 3 * ROWS * VECTORS ||
        range_extent(tile->lanes) % (VECTORS * tile->width) != 0)
        return false;
    const int64_t dots = dots_of_result(k, v, tile);
    int64_t operations = ceil_div(dots, DOTS_BESIDE);
    return dots >= LEAST_DOTS && has_operations(v->store[0]->src[2], &operations);
}

void take_turns(const Kernel *k, const View *v, const Target *t, RegisterTile *tile)
{
    if (!is_short_of_dots(k, v, tile, t))
        return;
    const int64_t row = range_extent(tile->rows), rows = rows_in_turn(tile->rows);
    for (int i = v->nrange; !rows && i-- > 0;) {
        Node *r = v->range[i];
        const int64_t n = r != tile->rows && is_row(v, tile, r) ? columns_in_turn(row, r) : 1;
        if (n == 1)
            continue;
        tile->columns = r;
        tile->ncolumns = n;
    }
    if (!rows && !tile->columns)
        return;
    tile->nrows = rows ? rows : row;
    tile->vectors = VECTORS;
}
