/* turned_sums.c - sums that the elements along a short axis have in common are computed once for
 * all of them.
 *
 * Rope turns pairs of results of a product: both elements of a pair are made of both sums.
 *
 *     y[h, 0, d] = s[h, 2 d] cos[d] - s[h, 2 d + 1] sin[d]
 *     y[h, 1, d] = s[h, 2 d + 1] cos[d] + s[h, 2 d] sin[d]
 *
 * As an expression of the loop i along the axis it reads s at 2 d + i and at 2 d - i + 1: two sums
 * that move with i.  Those of i = 0 are those of i = 1 in another order, so
 *
 *     s[h, 2 d + i] = where(i == 0, s[h, 2 d], s[h, 2 d + 1])
 *
 * and no sum moves with i any more: whoever has them has all elements of the axis. */
#include "kernel.h"
#include "schedule.h"

enum { FEW = 4 }; /* sums; elements of the axis */

/* A sum for an element of the axis, over the ranges of the first sum. */
typedef struct {
    Node *sum[FEW];         /* of the kernel, that move with the axis */
    Node *other[FEW * FEW]; /* all that there are for its elements */
    int which[FEW][FEW];    /* by sum and element, the one that it is */
    int nsum, nother;
    int64_t extent;
} TurnedSums;

/* The reduces that differ along the range; false: they are more than a few, or no plain ones. */
static bool find_sums(Arena *a, const StoreNest *k, Node *range, TurnedSums *t)
{
    int n;
    Node *store = k->store, **order = graph_toposort(a, 1, &store, &n);
    const bool *moves = moving(a, order, n, range);
    t->nsum = 0;
    for (int i = 0; i < n; i++) {
        Node *x = order[i];
        if (x->op == OP_SCAN || x->op == OP_STAGE)
            return false;
        if (x->op != OP_REDUCE || !moves[x->id])
            continue;
        for (int j = 0; j < t->nsum; j++)
            if (depends_on(x, t->sum[j]))
                return false;
        if (t->nsum == FEW || reduce_size(x) != 1)
            return false;
        t->sum[t->nsum++] = x;
    }
    return t->nsum > 1;
}

Node *sum_over_ranges(Context *c, Node *sum, const Node *of)
{
    Node *from[INGOT_MAX_RANK * 2], *to[INGOT_MAX_RANK * 2];
    const uint32_t first = reduce_ranges(sum), nrange = sum->nsrc - first;
    if (nrange != of->nsrc - reduce_ranges(of) || nrange > INGOT_MAX_RANK * 2)
        return NULL;
    for (uint32_t i = 0; i < nrange; i++) {
        from[i] = sum->src[first + i];
        to[i] = of->src[reduce_ranges(of) + i];
        if (from[i]->src[0] != to[i]->src[0])
            return NULL;
    }
    return substitute(c, sum, (int)nrange, from, to);
}

/* All sums for all elements of the axis. */
static bool list_sums(Context *c, Node *range, TurnedSums *t)
{
    t->nother = 0;
    for (int j = 0; j < t->nsum; j++)
        for (int64_t v = 0; v < t->extent; v++) {
            Node *at = idx(c, v), *one = substitute(c, t->sum[j], 1, &range, &at);
            one = one->op == OP_REDUCE ? sum_over_ranges(c, one, t->sum[0]) : NULL;
            if (!one)
                return false;
            int i = 0;
            while (i < t->nother && t->other[i] != one)
                i++;
            if (i == t->nother)
                t->other[t->nother++] = one;
            t->which[j][v] = i;
        }
    return t->nother <= t->nsum;
}

static void turn(StoreNest *k, Node *range, const TurnedSums *t)
{
    Context *c = k->s->c;
    Node *own[FEW], *to[FEW];
    for (int i = 0; i < t->nother; i++)
        own[i] = sum_over_ranges(c, t->other[i], t->sum[i]);
    for (int j = 0; j < t->nsum; j++) {
        to[j] = own[t->which[j][t->extent - 1]];
        for (int64_t v = t->extent - 1; v-- > 0;)
            to[j] = node_where(c, idx_eq(c, range, idx(c, v)), own[t->which[j][v]], to[j]);
    }
    k->store = substitute(c, k->store, t->nsum, t->sum, to);
}

void nest_share_sums(StoreNest *k)
{
    const Target *target = k->s->target;
    if (!target || !target->gpu || !target->machine.units)
        return;
    for (int i = 0; i < k->nrange; i++) {
        TurnedSums t;
        Arena *a = arena_new();
        const bool found = idx_value(k->ranges[i]->src[0], &t.extent) && t.extent <= FEW &&
                           find_sums(a, k, k->ranges[i], &t) &&
                           list_sums(k->s->c, k->ranges[i], &t);
        if (found)
            turn(k, k->ranges[i], &t);
        arena_free(a);
    }
}
