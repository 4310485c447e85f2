/* split.c - an axis that its readers take apart becomes two.
 *
 * A reshape that joins axes (heads and their channels, say) leaves a range of the product's extent
 * that is divided again wherever a buffer is read: r / 64 selects the head, r % 64 the channel.
 * With r = 64 o + i the quotient is o and the remainder i, so that addresses become sums again:
 * lanes can run along i, and reads along o and i have strides. */
#include <string.h>

#include "schedule.h"

/* By how much the nodes of the expression divide the range, or 0. */
static int64_t divisor(int n, Node *const *order, Node *range)
{
    int64_t extent, by = 0, d;
    if (!idx_value(range->src[0], &extent))
        return 0;
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        if (t->op == OP_SCAN && t->src[1] == range)
            return 0;
        for (int j = 0; t->op == OP_STAGE && j < (int)t->arg.i; j++)
            if (t->src[1 + j] == range)
                return 0;
        bool divides = (t->op == OP_FLOORDIV || t->op == OP_MOD) && t->src[0] == range &&
                       idx_value(t->src[1], &d) && d > 1 && d < extent && extent % d == 0;
        if (divides && d > by)
            by = d;
    }
    return by;
}

/* The node over new sources; a reduce runs over both parts of a range. */
static Node *renewed(Context *c, Node *n, Node *const *src, Node *whole, Node *const *part)
{
    if (n->op != OP_REDUCE)
        return node_with(c, n, src);
    Node *now[INGOT_MAX_RANK * 2 + MAX_STATE];
    int k = (int)reduce_size(n);
    memcpy((void *)now, (void *)(uintptr_t)src, (size_t)k * sizeof *now);
    for (uint32_t i = (uint32_t)k; i < n->nsrc; i++)
        if (n->src[i] == whole) {
            now[k++] = part[0];
            now[k++] = part[1];
        } else {
            now[k++] = src[i];
        }
    return node_make(c, OP_REDUCE, n->dtype, n->arg, k, now, 0, NULL);
}

/* The last of the nodes, sources first, over the parts of the range. */
static Node *split_in(Context *c, Arena *a, int n, Node *const *order, Node *range, Node *sum,
                      Node *const *part)
{
    enum { FEW = 16 };
    Map now = {0}; /* of nodes that are others: by id + 1 */
    Node *to = NULL, *few[FEW];
    for (int i = 0; i < n; i++) {
        Node *t = order[i], **src = NULL;
        for (uint32_t j = 0; j < t->nsrc; j++) {
            Node *other = map_get(&now, (uint64_t)t->src[j]->id + 1);
            if (!other)
                continue;
            if (!src) {
                src = t->nsrc > FEW ? NEWN(a, Node *, t->nsrc) : few;
                memcpy((void *)src, (void *)t->src, t->nsrc * sizeof *src);
            }
            src[j] = other;
        }
        to = t == range ? sum : src ? renewed(c, t, src, range, part) : t;
        if (to != t)
            map_put(&now, (uint64_t)t->id + 1, (void *)to);
    }
    map_free(&now);
    return to;
}

static void split_range(StoreNest *k, Arena *a, int n, Node *const *order, Node *range,
                        int64_t inner)
{
    Context *c = k->s->c;
    int64_t extent;
    (void)idx_value(range->src[0], &extent);
    Node *part[2] = {range_new(c, k->s->naxis, idx(c, extent / inner)),
                     range_new(c, k->s->naxis + 1, idx(c, inner))};
    k->s->naxis += 2;
    Node *sum = idx_add(c, idx_mul(c, part[0], idx(c, inner)), part[1]);
    k->store = split_in(c, a, n, order, range, sum, part);
    for (int i = 0; i < k->nrange; i++)
        if (k->ranges[i] == range) {
            for (int j = k->nrange++; j > i + 1; j--)
                k->ranges[j] = k->ranges[j - 1];
            k->ranges[i] = part[0];
            k->ranges[i + 1] = part[1];
            return;
        }
}

void nest_split(StoreNest *k)
{
    enum { MAX_AXES = INGOT_MAX_RANK * 2 };
    Arena *a = arena_new();
    for (bool again = true; again;) {
        int n, naxes = 0;
        Node **order = graph_toposort(a, 1, &k->store, &n), *range = NULL;
        int64_t inner = 0;
        for (int i = 0; i < n; i++)
            naxes += order[i]->op == OP_RANGE;
        for (int i = 0; i < n && !inner; i++)
            if (order[i]->op == OP_RANGE)
                inner = divisor(n, order, range = order[i]);
        again = inner && naxes < MAX_AXES;
        if (again)
            split_range(k, a, n, order, range, inner);
    }
    arena_free(a);
}
