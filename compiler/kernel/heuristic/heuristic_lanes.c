/* heuristic_lanes.c - what can be done in lanes, and how many of them along which axis. */
#include <stdlib.h>
#include <string.h>

#include "heuristic.h"

/* A function of coordinates: these may be what is compared, or become numbers, if they advance evenly along the lanes. */
static bool takes_ramps(const Kernel *k, Node *t, Node *range)
{
    bool ramps = t->op == OP_CAST || (t->op >= OP_EQ && t->op <= OP_LE);
    int64_t step;
    for (uint32_t j = 0; j < t->nsrc; j++)
        if (t->src[j]->dtype == INGOT_INDEX && t->op != OP_REDUCE && t->op != OP_SCAN &&
            depends_on(t->src[j], range) && !(ramps && lane_ramp(k->c, t->src[j], range, &step)))
            return false;
    return true;
}

/* Whether all that depends on range can be computed in its lanes.  Buffers in `free` (by argument) may be laid out as
 * this needs, and `moves` counts other accesses whose stride is not 1: can_lay_out() knows whether they can be copied.
 * lanes: how many, 0: not known.  apart: NULL, or what is loaded may lie apart; becomes the greatest such stride.  In a contraction, whose loads are to be
 * vectors, it may not, nor may a gate differ from lane to lane. */
bool fits_lanes(Arena *a, const Kernel *k, Node *range, int64_t lanes, const bool *free, int *moves,
                int64_t *apart)
{
    int n;
    Node **order = graph_toposort(a, 1, &k->sink->src[0], &n);
    *moves = 0;
    const bool *on = moving(a, order, n, range);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        if (owns_range(t, range) && !lane_op(t))
            return false;
        if (t == range || t->dtype == INGOT_INDEX || t->op == OP_BUFFER || t->op == OP_END ||
            !on[t->id])
            continue;
        if (t->op == OP_STAGE) { /* lies side by side along its last range */
            Node *last = t->src[t->nsrc - 1];
            int64_t step;
            for (uint32_t j = 1 + (uint32_t)t->arg.i; j + 1 < t->nsrc; j++)
                if (depends_on(t->src[j], range))
                    return false;
            if (!lane_op(t) ||
                (depends_on(last, range) && !(lane_ramp(k->c, last, range, &step) && step == 1)))
                return false;
            continue;
        }
        if (t->op != OP_LOAD && t->op != OP_STORE) {
            if (!takes_ramps(k, t, range) || !lane_op(t))
                return false;
            continue;
        }
        if (!lane_type(t->dtype) || (t->op == OP_STORE && !node_is_const_i(t->src[1], 1)) ||
            (depends_on(t->src[1], range) && free && !apart))
            return false;
        Move m = access_move(k->c, t, range);
        if (m.kind == MOVE_MIXED)
            return false;
        if (m.kind == MOVE_NONE)
            continue;
        if (free && free[t->src[0]->arg.i] && !(apart && t->op == OP_LOAD)) {
            if (m.stride != 1 && !interleaved(k, t, range))
                return false;
            continue;
        }
        int64_t stride;
        bool known = vector_stride(k, t, range, lanes, &stride);
        if (apart && t->op == OP_LOAD && (free && free[t->src[0]->arg.i] ? m.stride : known)) {
            *apart = known && llabs(stride) > *apart ? llabs(stride) : *apart;
            continue;
        }
        if ((known && stride == 1) || (free && interleaved(k, t, range)))
            continue;
        if (m.stride != 1 || !free)
            return false;
        ++*moves;
    }
    return true;
}

int64_t lanes_for(const Kernel *k, const Target *t, Node *range, int64_t extent)
{
    int64_t n = lanes_most(k, range, t);
    while (n > extent)
        n /= 2;
    return n >= 4 ? n : 0;
}

enum { FEW = 4 };

/* The lanes of a vector along an axis; of a size of run time, which may be far below its bound, at most a quarter of that. */
int64_t lanes_along(const Kernel *k, const Target *t, Node *range)
{
    int64_t extent = range_extent(range);
    return lanes_for(k, t, range, extent < 0 ? (range->hi + 1) / FEW : extent);
}

/* Of a size of run time a few, for what fills no tile is computed row by row. */
int64_t rows_of(Node *range)
{
    int64_t extent = range_extent(range);
    return extent < 0 ? (range->hi < FEW ? range->hi + 1 : FEW) : extent;
}

enum { SHORT_OPS = 16 };

/* So little is computed along the range, coordinates too, that it may be copied. */
bool is_short(Arena *a, const Kernel *k, Node *range)
{
    int n, ops = 0;
    Node **order = graph_toposort(a, 1, &k->sink->src[0], &n);
    for (int i = 0; i < n; i++)
        if (op_is_alu(order[i]->op) && depends_on(order[i], range))
            ops += op_info[order[i]->op].cost;
    return ops <= SHORT_OPS;
}

/* Is there a function, of which a vector takes a fraction of the time? */
bool has_function(Arena *a, const Kernel *k, Node *range)
{
    int n;
    Node **order = graph_toposort(a, 1, &k->sink->src[0], &n);
    for (int i = 0; i < n; i++)
        if (op_is_alu(order[i]->op) && op_info[order[i]->op].cost >= 16 &&
            depends_on(order[i], range))
            return true;
    return false;
}

bool lanes_possible(Arena *a, const Kernel *k, Node *range)
{
    bool *free = NEWN(a, bool, k->narg);
    int moves;
    memset(free, true, (size_t)k->narg * sizeof *free);
    int64_t apart = 0;
    return fits_lanes(a, k, range, 0, free, &moves, &apart);
}
