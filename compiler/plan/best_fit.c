/* best_fit.c - the packing of rectangles time x bytes: greedy best fit in several orders, each
 * again with what ended highest in front, of which the best is kept; and of several memories, which
 * takes what.
 *
 * It is NP-hard; greedy by size comes close to the lower bound, at which it stops. */
#include <stdlib.h>
#include <string.h>

#include "memplan.h"

static int by_size(const void *x, const void *y)
{
    const Group *a = *(Group *const *)x, *b = *(Group *const *)y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static int by_time(const void *x, const void *y)
{
    const Group *a = *(Group *const *)x, *b = *(Group *const *)y;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return by_size(x, y);
}

static int by_duration(const void *x, const void *y)
{
    const Group *a = *(Group *const *)x, *b = *(Group *const *)y;
    int da = a->last - a->first, db = b->last - b->first;
    if (da != db)
        return da > db ? -1 : 1;
    return by_size(x, y);
}

static int by_gain(const void *x, const void *y)
{
    const Group *a = *(Group *const *)x, *b = *(Group *const *)y;
    if (a->gain != b->gain)
        return a->gain > b->gain ? -1 : 1;
    return by_size(x, y);
}

static int by_offset(const void *x, const void *y)
{
    const Group *a = *(Group *const *)x, *b = *(Group *const *)y;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Places the groups in the order given, each into the tightest gap between those already placed
 * that live at the same time, else on top. What would end above `room` is not placed but moved to
 * the start of `order`; *left counts it. Returns the height. */
static int64_t place(Memplan *m, Group **order, int n, int64_t room, int *left)
{
    int64_t height = 0;
    int nplaced = 0;
    *left = 0;
    for (int i = 0; i < n; i++) {
        Group *g = order[i];
        int64_t end = 0, best = -1, best_gap = INT64_MAX;
        for (int k = 0; k < nplaced; k++) {
            const Group *o = m->placed[k];
            if (o->last < g->first || o->first > g->last)
                continue;
            int64_t gap = o->offset - end;
            if (gap >= g->bytes && gap < best_gap) {
                best = end;
                best_gap = gap;
            }
            int64_t top = o->offset + o->bytes;
            end = top > end ? top : end;
        } /* bytes are multiples of the alignment, so offsets are */
        int64_t offset = best >= 0 ? best : end;
        if (offset > room - g->bytes) {
            order[(*left)++] = g;
            continue;
        }
        g->offset = offset;
        int64_t top = g->offset + g->bytes;
        height = top > height ? top : height;
        int at = nplaced++;
        for (; at > 0 && by_offset(&m->placed[at - 1], &g) > 0; at--)
            m->placed[at] = m->placed[at - 1];
        m->placed[at] = g;
    }
    return height;
}

/* What no placement can stay below: the most bytes that are alive at once. */
static int64_t most_alive(const Plan *p, Group *const *group, int n)
{
    int64_t most = 0;
    for (int step = 0; step < p->nstep; step++) {
        int64_t sum = 0;
        for (int i = 0; i < n; i++)
            if (group[i]->first <= step && step <= group[i]->last)
                sum = sat_add(sum, group[i]->bytes);
        most = sum > most ? sum : most;
    }
    return most;
}

/* Moves what stands at `at` to the front, where it finds its place earlier. */
static void raise_group(Group **order, int at)
{
    Group *first = order[at];
    memmove(order + 1, order, (size_t)at * sizeof *order);
    *order = first;
}

static int highest(Group *const *order, int n)
{
    int at = 0;
    for (int i = 1; i < n; i++)
        if (order[i]->offset + order[i]->bytes > order[at]->offset + order[at]->bytes)
            at = i;
    return at;
}

/* Places all n groups in one memory, as low as can be found. Returns the height; above
 * MAX_TENSOR_BYTES: it cannot be. */
static int64_t pack(Memplan *m, Group *const *group, int n)
{
    static int (*const orders[])(const void *, const void *) = {by_size, by_time, by_duration};
    enum { ROUNDS = 30 };
    Group **order = NEWN(m->a, Group *, n + 1);
    int64_t *offset = NEWN(m->a, int64_t, m->p->nbuffer + 1);
    int64_t best = MAX_TENSOR_BYTES + 1, bound = most_alive(m->p, group, n);
    for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++) {
        memcpy(order, group, (size_t)n * sizeof *order);
        qsort(order, (size_t)n, sizeof order[0], orders[k]);
        for (int round = 0; round < ROUNDS && best != bound; round++) {
            int left;
            int64_t height = place(m, order, n, MAX_TENSOR_BYTES, &left);
            if (left)
                break;
            if (height < best) {
                best = height;
                for (int i = 0; i < n; i++)
                    offset[order[i]->id] = order[i]->offset;
            }
            raise_group(order, highest(order, n));
        }
    }
    for (int i = 0; i < n; i++)
        group[i]->offset = offset[group[i]->id];
    return best;
}

/* ---- memories ------------------------------------------------------------------------------ */

/* What memory k has for the groups, beside the states. */
static int64_t room(const Plan *p, int k)
{
    int64_t limit = p->memories[k].limit ? p->memories[k].limit : MAX_TENSOR_BYTES;
    return limit - p->memories[k].states;
}

/* Each memory takes those that come first in `order`, as far as it has room; the last one takes
 * what is left, and as soon as all that is left goes into one, it goes there. Fills the memories'
 * heights. */
static void fill_memories(Memplan *m, Group *const *order, int n, int64_t *height)
{
    const Plan *p = m->p;
    Group **rest = NEWN(m->a, Group *, n + 1), **here = NEWN(m->a, Group *, n + 1);
    memcpy(rest, order, (size_t)n * sizeof *rest);
    for (int k = m->from; k < m->end; k++) {
        bool last = k + 1 == m->end, all = last || most_alive(p, rest, n) <= room(p, k);
        int left = 0, nhere = 0, nrest = 0;
        for (int i = 0; i < n; i++) {
            bool may = last || rest[i]->wanted < 0 || rest[i]->wanted == k;
            rest[i]->memory = may ? k : -1;
            if (may)
                here[nhere++] = rest[i];
        }
        height[k] = all ? pack(m, here, nhere) : INT64_MAX;
        if (!last && height[k] > room(p, k))
            height[k] = place(m, here, nhere, room(p, k), &left);
        for (int i = 0; i < left; i++)
            here[i]->memory = -1;
        for (int i = 0; i < n; i++)
            if (rest[i]->memory < 0)
                rest[nrest++] = rest[i];
        n = nrest;
    }
}

/* The group of the last memory that ends highest among those which are small enough for another
 * one; -1: there is none. */
static int to_move(const Memplan *m, Group *const *order, int n)
{
    const Plan *p = m->p;
    int at = -1;
    for (int i = 0; i < n; i++) {
        const Group *g = order[i];
        bool other = false;
        for (int k = m->from; k + 1 < m->end; k++)
            other |= g->bytes <= room(p, k);
        if (other && g->wanted < 0 && g->memory == m->end - 1 &&
            (at < 0 || g->offset + g->bytes > order[at]->offset + order[at]->bytes))
            at = i;
    }
    return at;
}

/* Shares the groups out by gain; where the last memory does not hold what is left then, by whatever
 * order works, each tried again with what was too much in front. */
bool share_out(Memplan *m, Group **order, int n)
{
    static int (*const orders[])(const void *, const void *) = {by_gain, by_size, by_time,
                                                                by_duration};
    enum { ROUNDS = 10 };
    Plan *p = m->p;
    int last = m->end - 1;
    Group *best = NEWN(m->a, Group, p->nbuffer + 1);
    int64_t *height = NEWN(m->a, int64_t, p->nmemory), most = INT64_MAX;
    for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++) {
        qsort(order, (size_t)n, sizeof order[0], orders[k]);
        for (int round = 0, at = 0; round < ROUNDS && at >= 0 && most > room(p, last); round++) {
            fill_memories(m, order, n, height);
            if (height[last] < most) {
                most = height[last];
                for (int i = 0; i < n; i++)
                    best[order[i]->id] = *order[i];
                for (int i = m->from; i <= last; i++)
                    p->memories[i].bytes = height[i];
            }
            at = to_move(m, order, n);
            if (at >= 0)
                raise_group(order, at);
        }
    }
    for (int i = 0; i < n; i++)
        *order[i] = best[order[i]->id];
    return most <= MAX_TENSOR_BYTES - p->state_bytes;
}
