/* spread_prefetches.c - what a matrix unit's next panel is asked for comes amid the products.
 *
 *     loop r                              loop r
 *         prefetch 0 .. prefetch 7            load a0, b0
 *         load a0, b0                         s0 += a0 b0
 *         s0 += a0 b0                         load b1
 *         load b1                    ->       s1 += a0 b1
 *         s1 += a0 b1                         load a1
 *         load a1                             s2 += a1 b0
 *         s2 += a1 b0                         prefetch 0 .. prefetch 3
 *         s3 += a1 b1                         s3 += a1 b1
 *                                             prefetch 4 .. prefetch 7
 *
 * A core has few places for lines that are under way to L1 (16), and a line that comes from memory
 * takes one as it passes.  Where many are asked for at once, the tiles' own lines, which wait in
 * L2, find none (64 rows by 3,072, of two parts each, --precision bf16x3: 0.87 ms a layer
 * for 1.04). */
#include "passes.h"

/* Prefetches from `at` on, and behind how many of the products in their loop they can stand. */
typedef struct {
    int n, places, end;
} PrefetchRun;

/* Behind a product that no load follows: a tile that is loaded comes before what is asked for. */
static bool is_place_to_ask(const Linear *l, int i)
{
    return l->stmt[i].kind == STMT_UPDATE && (i + 1 == l->n || l->stmt[i + 1].kind != STMT_LET);
}

static bool asked_at(const Linear *l, int at, PrefetchRun *q)
{
    const int depth = l->stmt[at].depth;
    *q = (PrefetchRun){0};
    int i = at;
    for (; i < l->n && l->stmt[i].kind == STMT_PREFETCH && l->stmt[i].depth == depth; i++)
        q->n++;
    for (; i < l->n && l->stmt[i].depth == depth &&
           (l->stmt[i].kind == STMT_LET || l->stmt[i].kind == STMT_UPDATE);
         i++)
        q->places += is_place_to_ask(l, i);
    q->end = i;
    return q->n > 1 && q->places > 0;
}

bool spread_prefetches(Linear *l, const Kernel *k)
{
    (void)k;
    bool changed = false;
    if (!l->tile->tc || l->tile->tc->lanes)
        return false;
    for (int i = 0; i < l->n; i++) {
        PrefetchRun q;
        if (!asked_at(l, i, &q))
            continue;
        Arena *a = arena_new();
        Stmt *out = NEWN(a, Stmt, q.end - i);
        int n = 0, asked = 0, place = 0;
        for (int j = i + q.n; j < q.end; j++) {
            out[n++] = l->stmt[j];
            place += is_place_to_ask(l, j);
            while (asked < q.n * place / q.places)
                out[n++] = l->stmt[i + asked++];
        }
        for (int j = 0; j < n; j++)
            l->stmt[i + j] = out[j];
        arena_free(a);
        i = q.end - 1;
        changed = true;
    }
    return changed;
}
