/* tile_graph.c - rows of images whose values no cache holds are computed one band after the other.
 *
 *     y = g(f(x))
 *         -> concat(g(f(x[rows 0..])), g(f(x[rows k - 1..])), ...)     where f(x) is large, x and y
 *            are not
 *
 * What a layer writes of an image of 640x640 comes from memory when the next one reads it; of a
 * band of its rows it is in the cache.  Values that all goes through are the borders between which
 * that is done: small ones, with what is large between two of them.  A band takes some rows more of
 * f(x) than its share, those that windows of two bands share, so bands are as high as the cache
 * allows, and there are none where these rows take longer than what memory takes beyond arithmetic.
 *
 * Requires that nothing is in parts along another axis (batches.c).  Leaves concats of what is
 * stored. */
#include <math.h>

#include "builder.h"
#include "cost.h"
#include "rewrite.h"

enum { MOST_BANDS = MOST_PIECES / 2 };
static const double OVERLAP = 1.1; /* how much more than its share a band may take of a sum */

typedef struct {
    Context *c;
    const Target *t;
    Arena *a;
    Borders of;
    double room;
} Bands;

/* One that is small. */
static bool is_small_border(const Bands *b, int i)
{
    return is_border(&b->of, i) && 2 * node_bytes(b->of.order[i]) <= b->room;
}

/* What lies between two borders. */
typedef struct {
    Node *x, *y;          /* the borders */
    double most, weights; /* bytes of the largest sum; of constants */
    double saved;         /* cycles that memory takes less if all sums stay in the cache */
    int sums;
    bool inside; /* results of the model are y at most */
} Stretch;

/* Cycles of moving bytes that the largest cache holds. */
static double cached(double bytes, const Target *t)
{
    const Level *l = t->machine.level;
    while (l[0].bytes > 0 && l[1].bytes > 0)
        l++;
    return bytes / l->rate;
}

/* Cycles of a sum. */
static double time_of(const Bands *b, const Node *sum)
{
    return 2 * node_elements(sum->src[0]) / b->t->machine.rate[UNIT_TILE];
}

/* Cycles by which a sum is done sooner if it, and who reads it, find its elements in the cache:
 * none where arithmetic takes longer than memory. */
static double saved_of(const Bands *b, Node *sum)
{
    const double bytes = 2 * node_bytes(sum), time = time_of(b, sum);
    if (bytes <= b->room)
        return 0;
    return fmax(time, cost_bytes(bytes, INFINITY, b->t)) - fmax(time, cached(bytes, b->t));
}

static Stretch stretch_of(const Bands *b, Node *x, int from, int to)
{
    Stretch s = {.x = x, .y = b->of.order[to], .inside = true};
    for (int i = from; i < to; i++) {
        Node *t = b->of.order[i];
        s.inside &= !b->of.result[t->id];
        s.weights += t->op == OP_DATA ? node_bytes(t) : 0;
        if (t->op != OP_REDUCE || !b->of.run[t->id])
            continue;
        s.most = fmax(s.most, node_bytes(t));
        s.saved += saved_of(b, t);
        s.sums++;
    }
    return s;
}

/* Cycles of all sums that these are made of. */
static double time_below(const Bands *b, int64_t n, Node *const *roots)
{
    double time = 0;
    int norder;
    Node **order = graph_toposort(b->a, (int)n, roots, &norder);
    for (int i = 0; i < norder; i++)
        time += order[i]->op == OP_REDUCE ? time_of(b, order[i]) : 0;
    return time;
}

/* Rows that two bands share are computed twice, and all bands read the weights. */
static bool pays(const Bands *b, const Stretch *s, int64_t n, Node *const *part)
{
    const double again = cost_bytes(s->weights, INFINITY, b->t) + s->sums * b->t->machine.launch,
                 twice = time_below(b, n, part) - time_below(b, 1, &s->y);
    return twice + (double)(n - 1) * again < s->saved;
}

static Node *in_bands(const Bands *b, const Stretch *s, int axis, int64_t rows, int64_t n)
{
    Node *y = s->y;
    Node *part[MOST_BANDS];
    for (int64_t i = 0; i < n; i++) {
        const GraphPart p = {.axis = axis,
                             .lo = i * rows / n,
                             .hi = (i + 1) * rows / n,
                             .kept = s->x,
                             .share = OVERLAP / (double)n};
        if (!roots_part(b->c, b->a, 1, &y, &p, &part[i]))
            return NULL;
        part[i] = ingot_contiguous(b->c, part[i]);
    }
    return pays(b, s, n, part) ? concat_of(b->c, (int)n, part, axis) : NULL;
}

/* y in as many bands as it takes that their values are in the cache; NULL: that can not be, or does
 * not pay. */
static Node *banded(const Bands *b, const Stretch *s)
{
    const Node *y = s->y;
    for (int axis = 2; axis < y->rank; axis++) {
        int64_t rows;
        if (!idx_value(y->shape[axis], &rows))
            return NULL;
        for (int64_t n = 2; n <= MOST_BANDS && n <= rows; n++) {
            Node *of = rows % n || 2 * OVERLAP * s->most > b->room * (double)n
                           ? NULL
                           : in_bands(b, s, axis, rows, n);
            if (of)
                return of;
        }
    }
    return NULL;
}

/* The first stretch that it helps; false: none is left. */
static bool next_bands(Context *c, const Target *t)
{
    Bands b = {.c = c, .t = t, .a = arena_new(), .room = t->machine.cache * 3 / 4};
    int nroot, from = 0, last = -1;
    Node **roots = rewrite_roots(c, b.a, &nroot), *x = NULL;
    Node *whole = NULL, *parts = NULL;
    b.of = find_borders(c, b.a, nroot, roots);
    for (int i = 0; i <= b.of.n && !parts; i++) {
        const bool sum =
            i == b.of.n || (b.of.order[i]->op == OP_REDUCE && b.of.run[b.of.order[i]->id]);
        if (sum && last >= from) { /* what is behind the border begins */
            const Stretch s = stretch_of(&b, x, from, last);
            whole = s.y;
            parts = x && s.inside && s.y->op != OP_CONCAT && 2 * s.most > b.room ? banded(&b, &s)
                                                                                 : NULL;
            x = s.y;
            from = last + 1;
        }
        if (i < b.of.n && is_small_border(&b, i))
            last = i;
    }
    const bool any = parts && exchange_border(c, b.a, whole, parts);
    arena_free(b.a);
    return any;
}

bool bands(Context *c, const Target *t)
{
    bool any = false;
    while (!c->nstate && !c->noutput_group && !t->gpu && t->machine.cache && t->machine.lanes &&
           t->machine.byte < DEAR && next_bands(c, t))
        any = true;
    return any;
}
