/* packing.c - a weight in the order in which the loops of a contraction read it:
 *
 *     [axes of loops outside][blocks of lanes][other axes, as the loops run]
 *         [lanes of a block][fours of bytes, pairs of bf16]
 *
 * A block is what one iteration of the loop over the lanes' axis takes (or, where machines share
 * the weight, of a length that suits all of them), the last one is as long as
 * what is left (CUT); outside of it are contractions side by side.  So each step of the reduced
 * axes reads one run of memory, which the next step continues. */
#include <string.h>

#include "choose.h"

/* Which loop moves each axis of the argument, by its number; false if one moves two of them. */
static bool axis_owners(const Kernel *k, Node *load, const Packing *p, int lane_axis, int *owner)
{
    for (int i = 0; i < p->nloop; i++) {
        Move m = access_move(k->c, load, p->loop[i]);
        if (m.kind == MOVE_MIXED)
            return false;
        if (m.kind == MOVE_AXIS && m.axis != lane_axis)
            owner[m.axis] = i;
    }
    return true;
}

/* How long blocks are: as one iteration takes them; where several machines read the weight, as long
 * as the longest of their vectors. */
static int64_t block_of(const Packing *p, int64_t extent)
{
    if (!p->shared)
        return p->block;
    return extent <= p->shared ? extent : extent % p->shared == 0 ? p->shared : p->block;
}

bool packing_layout(const Kernel *k, Node *load, const Packing *p, Layout *l)
{
    const KernelArg *arg = &k->args[load->src[0]->arg.i];
    int owner[INGOT_MAX_RANK], four_axis = -1;
    int64_t size, extent = p->lanes->hi + 1;
    for (int d = 0; d < arg->rank; d++)
        owner[d] = -1;
    Move m = access_move(k->c, load, p->lanes);
    const int lane_axis = m.axis;
    if (m.kind != MOVE_AXIS || arg->rank > INGOT_MAX_RANK - 2 ||
        !idx_value(arg->dims[lane_axis], &size) || !axis_owners(k, load, p, lane_axis, owner))
        return false;
    for (int i = 0; i < p->nfour; i++) {
        Move w = access_move(k->c, load, p->four[i]);
        four_axis = w.kind == MOVE_AXIS ? w.axis : four_axis;
    }
    /* 1000 outputs for several machines: 1008, in blocks of 16 */
    const int64_t rest = p->shared && p->reuse && size == extent && extent > p->shared
                             ? extent % p->shared
                             : 0,
                  padded = rest ? p->shared - rest : 0, block = block_of(p, extent + padded);
    /* an axis of which the lanes are a part (a group's outputs): whole blocks in each */
    const bool whole = size == extent || (size % extent == 0 && extent % block == 0);
    const bool split = p->reuse && whole && size > block;
    *l = (Layout){0};
    if (padded)
        l->op[l->n++] =
            (LayoutOp){.kind = LAYOUT_PAD, .axis = (int8_t)lane_axis, .a = 0, .b = padded};
    if (split)
        l->op[l->n++] = (LayoutOp){.kind = (size + padded) % block ? LAYOUT_CUT : LAYOUT_SPLIT,
                                   .axis = (int8_t)lane_axis,
                                   .a = block};
    if (four_axis >= 0)
        l->op[l->n++] = (LayoutOp){.kind = LAYOUT_SPLIT,
                                   .axis = (int8_t)(four_axis + (split && four_axis > lane_axis)),
                                   .a = p->terms};
    int8_t order[INGOT_MAX_RANK + 2];
    int8_t at[INGOT_MAX_RANK]; /* where the outer part of an axis is now */
    int n = 0;
    for (int d = 0; d < arg->rank; d++)
        at[d] = (int8_t)(d + (split && d > lane_axis) + (four_axis >= 0 && d > four_axis));
    int first = 0; /* the loop over the lanes' axis */
    for (int i = 0; i < p->nloop; i++)
        first = p->loop[i] == p->lanes ? i : first;
    for (int i = 0; i < first && split; i++)
        for (int d = 0; d < arg->rank; d++)
            if (d != lane_axis && owner[d] == i)
                order[n++] = at[d];
    if (split)
        order[n++] = at[lane_axis];
    for (int i = -1; i < p->nloop; i++)
        for (int d = 0; d < arg->rank && (i < 0 || i >= first || !split); d++)
            if (d != lane_axis && owner[d] == i)
                order[n++] = at[d];
    order[n++] = (int8_t)(at[lane_axis] + split);
    if (four_axis >= 0)
        order[n++] = (int8_t)(at[four_axis] + 1);
    LayoutOp *op = &l->op[l->n++];
    *op = (LayoutOp){.kind = LAYOUT_PERMUTE, .perm = {.n = n}};
    memcpy(op->perm.axis, order, (size_t)n);
    return true;
}
