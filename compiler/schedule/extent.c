/* extent.c - does one kernel hold all that a value is made of?
 *
 * A region (cost.c) knows, but it is walked at coordinates, again for each value that is asked about.  Most of the time
 * something simpler says enough, from what is cheap to what is exact:
 *
 *     1. what the sources have, added up, kept with each value while the graph is walked
 *     2. each node of an elementwise expression once, and each buffer behind it
 *     3. the region */
#include "schedule.h"

static const Extent unknown = {MAX_NODES + 1, 0, 0};

/* Other coordinates of one source, but for a GATHER, whose coordinates tell apart what is one element. */
static bool only_moves(const Node *n)
{
    return op_info[n->op].cls == MOVE && n->op != OP_CONCAT && n->op != OP_KEEP &&
           n->op != OP_GATHER;
}

/* A region has no more than those of its sources together: what two of them share is counted once, and what one of them
 * computes once is computed once there. */
Extent extent_most(Sched *s, Node *n)
{
    Extent most = {!only_moves(n), 0, 0};
    if (!op_is_alu(n->op) && n->op != OP_REDUCE && !only_moves(n))
        return unknown;
    for (unsigned axes = n->op == OP_REDUCE ? reduce_axes(n) : 0; axes; axes &= axes - 1)
        most.loops++;
    for (uint32_t j = 0; j < n->nsrc; j++) {
        Node *src = n->src[j];
        const Extent *x = &info_of(s, src)->most;
        if (src->dtype == INGOT_INDEX || src->op == OP_CONST)
            continue;
        if (!is_computed(s, src)) {
            most.buffers++;
            continue;
        }
        most.nodes += x->nodes;
        most.buffers += x->buffers;
        most.loops += x->loops;
    }
    return most.nodes > MAX_NODES ? unknown : most;
}

typedef struct {
    Map seen;  /* by id + 1 */
    Node *todo[MAX_NODES + 1];
    int ntodo;
    Extent all;
} Count;

static bool first_time(Count *q, const Node *n)
{
    const uint64_t key = (uint64_t)n->id + 1;
    if (map_get(&q->seen, key))
        return false;
    map_put(&q->seen, key, q);
    return true;
}

/* An operand at the coordinates of what reads it. */
static void count_operand(Sched *s, Count *q, Node *x)
{
    if (x->dtype == INGOT_INDEX || x->op == OP_CONST || !first_time(q, x))
        return;
    Node *base = x;
    while (is_computed(s, base) && only_moves(base))
        base = base->src[0];
    if (!is_computed(s, base)) {
        q->all.buffers += base == x || first_time(q, base);
    } else if (base == x && op_is_alu(x->op)) {
        q->all.nodes++;
        if (q->all.nodes <= MAX_NODES)
            q->todo[q->ntodo++] = x;
    } else { /* at coordinates of its own, or in loops */
        const Extent *most = &info_of(s, base)->most;
        q->all.nodes += most->nodes;
        q->all.buffers += most->buffers;
        q->all.loops += most->loops;
    }
}

/* Elementwise nodes run at the coordinates of their result, however many of them read one: each counts once. */
static Extent each_once(Sched *s, Node *n)
{
    Count q = {.all = {0, 0, 0}};
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
        *most = once;
        return true;
    }
    Region r = region_to_fit(s, n);
    if (!r.huge)
        *most = (Extent){r.nodes, r.buffers, r.loops};
    return region_fits(&r);
}
