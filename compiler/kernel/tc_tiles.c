/* tc_tiles.c - the products of one step of a matrix unit that has tiles: in which order they come,
 * and which tiles their operands have.
 *
 * A step multiplies one block of terms of all sums that are computed at once. Each sum has a tile
 * for as long as it grows; the others are for operands, some for those that move with rows, some
 * for those of columns, for a tile's shape stays. An operand takes the tile of its kind that has
 * not been used for the longest time. Of four blocks of rows and one of columns, three products
 * each (x = h + l, w = H + L):
 *
 *     term after term      l0 H  l1 H  l2 H  l3 H  h0 H  ..  h3 H  h0 L  ..  h3 L     14 loads
 *     sum after sum        l0 H  h0 H  h0 L  l1 H  h1 H  h1 L  ..                     10, if H and
 *                                                                                     L have tiles
 *
 * A sum's own terms keep their order, so whichever way gives the same bits. */
#include "tc.h"

typedef struct {
    const void *in[TC_MOST_TILES];
    int used[TC_MOST_TILES], n, turn;
} TilePool;

/* Is it to be loaded? */
static bool pool_misses(TilePool *p, const void *operand)
{
    int at = 0;
    for (int i = 0; i < p->n; i++) {
        if (p->in[i] == operand) {
            p->used[i] = ++p->turn;
            return false;
        }
        at = p->used[i] < p->used[at] ? i : at;
    }
    p->in[at] = operand;
    p->used[at] = ++p->turn;
    return true;
}

static void count_loads(const TcPair *pair, int nsum, int nterm, TcStep *s)
{
    TilePool pool[] = {{.n = s->tiles[TC_ROWS]}, {.n = s->tiles[TC_COLUMNS]}};
    s->loads[TC_ROWS] = s->loads[TC_COLUMNS] = 0;
    for (int first = 0; first < nsum; first += s->together)
        for (int t = 0; t < nterm; t++)
            for (int i = first; i < first + s->together && i < nsum; i++) {
                const TcPair *p = &pair[i * nterm + t];
                if (!p->a)
                    continue;
                s->loads[TC_ROWS] += pool_misses(&pool[TC_ROWS], p->a);
                s->loads[TC_COLUMNS] += pool_misses(&pool[TC_COLUMNS], p->b);
            }
}

/* How many operands of a kind the first terms of all sums have. */
static int distinct(const TcPair *pair, int nsum, int nterm, bool columns)
{
    int count = 0;
    for (int i = 0; i < nsum; i++) {
        bool known = false;
        for (int j = 0; j < i; j++)
            known |= columns ? pair[j * nterm].b == pair[i * nterm].b
                             : pair[j * nterm].a == pair[i * nterm].a;
        count += !known;
    }
    return count;
}

bool tc_step(const TcPair *pair, int nsum, int nterm, int room, TcStep *best)
{
    int na = distinct(pair, nsum, nterm, false), nb = distinct(pair, nsum, nterm, true);
    if (room < 2 || room > TC_MOST_TILES)
        return false;
    /* what the outer copies move with comes one after the other, the rest is used again */
    const bool rows_outer = nsum > 1 && pair[0].a == pair[nterm].a;
    while (na + nb > room) {
        int *fewer = rows_outer ? (na > 1 ? &na : &nb) : (nb > 1 ? &nb : &na);
        --*fewer;
    }
    *best = (TcStep){.tiles = {na, nb}, .together = nsum};
    count_loads(pair, nsum, nterm, best);
    for (int together = nsum; together > 0; together--)
        for (int a = 1; a < room && nsum % together == 0; a++) {
            TcStep s = {.tiles = {a, room - a}, .together = together};
            count_loads(pair, nsum, nterm, &s);
            if (s.loads[TC_ROWS] + s.loads[TC_COLUMNS] <
                best->loads[TC_ROWS] + best->loads[TC_COLUMNS])
                *best = s;
        }
    return true;
}
