/* cpu_lanes.c - what can be done in lanes, and how many of them along which axis. */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

int64_t lanes_for(const Kernel *k, const Target *t, Node *range, int64_t extent)
{
    int64_t n = lanes_most(k, range, t);
    while (n >= 4 && n > extent)
        n /= 2;
    return n >= 4 ? n : 0;
}

enum { FEW = 4 };

/* The lanes of a vector along an axis; of a size of run time, which may be far below its bound, at
 * most a quarter of that. */
int64_t lanes_along(const Kernel *k, const Target *t, Node *range)
{
    return lanes_for(k, t, range, lanes_extent(range));
}

int64_t lanes_extent(const Node *range)
{
    const int64_t extent = range_extent(range);
    return extent < 0 ? (range->hi + 1) / FEW : extent;
}

/* Of a size of run time a few, for what fills no tile is computed row by row. */
int64_t rows_of(Node *range)
{
    int64_t extent = range_extent(range);
    return extent < 0 ? (range->hi < FEW ? range->hi + 1 : FEW) : extent;
}

/* So little is computed along the range, coordinates too, that it may be copied. */
bool is_short(Arena *a, const Kernel *k, Node *range)
{
    int n, ops = 0;
    Node **order = graph_toposort(a, 1, &k->sink->src[0], &n);
    for (int i = 0; i < n; i++)
        if (op_is_alu(order[i]->op) && depends_on(order[i], range))
            ops += op_info[order[i]->op].cost;
    return ops <= COST_FUNCTION;
}

/* Is there a function, of which a vector takes a fraction of the time? */
bool has_function(Arena *a, const Kernel *k, Node *range)
{
    int n;
    Node **order = graph_toposort(a, 1, &k->sink->src[0], &n);
    for (int i = 0; i < n; i++)
        if (op_is_alu(order[i]->op) && op_info[order[i]->op].cost >= COST_FUNCTION &&
            depends_on(order[i], range))
            return true;
    return false;
}
