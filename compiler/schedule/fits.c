/* fits.c - does one kernel hold all that a value is made of?
 *
 * A region (region.c) knows, but it is walked at coordinates, again for each value that is asked
 * about.  Most of the time something simpler says enough, from what is cheap to what is exact:
 *
 *     1. what the sources have, added up, kept with each value while the graph is walked
 *     2. each node of an elementwise expression once, and each buffer behind it
 *     3. the region */
#include "fusion.h"

static const Extent unknown = {.nodes = MAX_NODES + 1};

static bool only_moves(const Node *n)
{
    return is_move(n) && n->op != OP_GATHER;
}

/* Numbers are written where they are used. */
static bool is_number(const Node *n)
{
    return n->dtype == INGOT_INDEX || n->op == OP_CONST || n->op == OP_IOTA;
}

/* What another operand reads, too: one value may be the same. */
static void add_reads(Extent *all, int buffers, const Node *one)
{
    if (!buffers || (one && one == all->one))
        return;
    all->one = all->buffers ? NULL : one;
    all->buffers += buffers;
}

/* A region has no more than those of its sources together: what two of them share is counted once,
 * and what one of them computes once is computed once there. */
Extent extent_most(Sched *s, Node *n)
{
    Extent most = {.nodes = !only_moves(n)};
    if (!op_is_alu(n->op) && n->op != OP_REDUCE && n->op != OP_GATHER && !only_moves(n))
        return unknown;
    for (unsigned axes = n->op == OP_REDUCE ? reduce_axes(n) : 0; axes; axes &= axes - 1)
        most.loops++;
    for (uint32_t j = 0; j < n->nsrc; j++) {
        Node *src = n->src[j];
        if (is_number(src))
            continue;
        if (!is_computed(s, src)) {
            add_reads(&most, 1, src);
            continue;
        }
        const Extent *x = &info_of(s, src)->most;
        most.nodes += x->nodes;
        most.loops += x->loops;
        add_reads(&most, x->buffers, x->one);
    }
    return most.nodes > MAX_NODES ? unknown : most;
}

typedef struct {
    Map seen; /* by id + 1 */
    Node *todo[MAX_NODES + 1];
    int ntodo;
    Extent all; /* .one is not kept */
} ExtentWalk;

static bool first_time(ExtentWalk *q, const Node *n)
{
    const uint64_t key = (uint64_t)n->id + 1;
    if (map_get(&q->seen, key))
        return false;
    map_put(&q->seen, key, q);
    return true;
}

/* An operand at the coordinates of what reads it. */
static void count_operand(Sched *s, ExtentWalk *q, Node *x)
{
    if (is_number(x) || !first_time(q, x))
        return;
    Node *base = x;
    while (is_computed(s, base) && only_moves(base))
        base = base->src[0];
    if (!is_computed(s, base)) {
        q->all.buffers += !is_number(base) && (base == x || first_time(q, base));
    } else if (base == x && op_is_alu(x->op)) {
        q->all.nodes++;
        if (q->all.nodes <= MAX_NODES)
            q->todo[q->ntodo++] = x;
    } else { /* at coordinates of its own, or in loops */
        const Extent *most = &info_of(s, base)->most;
        q->all.nodes += most->nodes;
        q->all.loops += most->loops;
        q->all.buffers += most->one ? first_time(q, most->one) : most->buffers;
    }
}

/* Elementwise nodes run at the coordinates of their result, however many of them read one: each
 * counts once. */
static Extent each_once(Sched *s, Node *n)
{
    ExtentWalk q = {.ntodo = 0};
    while (only_moves(n) && is_computed(s, n->src[0]))
        n = n->src[0];
    if (n->op == OP_REDUCE) { /* its operand is computed in the same loops, all of it */
        q.all = (Extent){.nodes = 1};
        for (unsigned axes = reduce_axes(n); axes; axes &= axes - 1)
            q.all.loops++;
        q.todo[q.ntodo++] = n;
    } else {
        count_operand(s, &q, n);
    }
    while (q.ntodo && q.all.nodes <= MAX_NODES) {
        Node *t = q.todo[--q.ntodo];
        for (uint32_t j = 0; j < t->nsrc; j++)
            count_operand(s, &q, t->src[j]);
    }
    map_free(&q.seen);
    return q.all.nodes > MAX_NODES ? unknown : q.all;
}

static bool fits(const Node *n, const Extent *x)
{
    return x->nodes <= MAX_NODES && x->buffers <= MAX_BUFFERS && n->rank + x->loops <= MAX_LOOPS;
}

bool extent_fits(Sched *s, Node *n)
{
    Extent *most = &info_of(s, n)->most;
    if (fits(n, most))
        return true;
    const Extent once = each_once(s, n);
    if (fits(n, &once)) {
        *most = (Extent){once.nodes, once.buffers, once.loops, most->one};
        return true;
    }
    RegionWork r = region_to_fit(s, n);
    if (!r.huge)
        *most = (Extent){r.nodes, r.buffers, r.loops, NULL};
    return region_fits(&r);
}
