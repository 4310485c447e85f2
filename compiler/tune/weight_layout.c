/* weight_layout.c - weights as the loops of a nest read them: [blocks of lanes][other axes as the loops run][lanes][fours].
 *
 * A block is what one iteration of the loop over the lanes' axis takes: lanes times the copies of them.  So each step of the
 * reduced axes reads one run of memory, which the next step continues. */
#include <string.h>

#include "kernel/kernel.h"
#include "tune.h"

typedef struct {
    int lanes, four[4]; /* roots, -1: none */
    int nfour;
    int64_t block;
} Blocks;

static Blocks blocks_of(const Nest *n)
{
    Blocks b = {.lanes = -1, .block = 1};
    for (int i = 0; i < n->nsplit; i++) {
        const Split *s = &n->split[i];
        int root = n->axis[s->axis].root;
        if (s->kind == OPT_VECTOR)
            b.lanes = root;
        if (s->kind == OPT_DOT && b.nfour < 4)
            b.four[b.nfour++] = root;
    }
    for (int i = 0; i < n->nsplit; i++)
        if (n->axis[n->split[i].axis].root == b.lanes &&
            (n->split[i].kind == OPT_VECTOR || n->split[i].kind == OPT_UPCAST))
            b.block *= n->split[i].amount;
    return b;
}

/* Which loop moves each axis of the argument, by its place in the order; false if one is moved by two. */
static bool owners(const Nest *n, Node *load, int lane_axis, int *owner)
{
    int place = 0;
    bool *seen = NEWN(n->arena, bool, n->k->naxis + 1);
    for (int i = 0; i < n->norder; i++) {
        int root = n->axis[n->order[i]].root;
        if (seen[root])
            continue;
        seen[root] = true;
        Move m = access_move(n->k->c, load, n->k->axes[root].range);
        if (m.kind == MOVE_MIXED)
            return false;
        if (m.kind == MOVE_AXIS && m.axis != lane_axis)
            owner[m.axis] = place;
        place++;
    }
    return true;
}

bool weight_layout(const Nest *n, int arg, Layout *l)
{
    Context *c = n->k->c;
    const KernelArg *x = &n->k->args[arg];
    Arena *a = arena_new();
    View v = kernel_view(a, n->k);
    Blocks b = blocks_of(n);
    Node *load = NULL, *lanes = b.lanes < 0 ? NULL : n->k->axes[b.lanes].range;
    bool reuse = false;
    int64_t extent, size;
    for (int i = 0; i < v.nload; i++)
        load = v.load[i]->src[0]->arg.i == arg ? v.load[i] : load;
    for (int i = 0; i < v.nfactor && lanes; i++)
        reuse |= !depends_on(v.factor[i], lanes);
    arena_free(a);
    int owner[INGOT_MAX_RANK], four_axis = -1;
    for (int d = 0; d < x->rank; d++)
        owner[d] = -1;
    if (!load || !lanes || x->rank > 6 || !idx_value(lanes->src[0], &extent))
        return false;
    Move m = access_move(c, load, lanes);
    if (m.kind != MOVE_AXIS || !owners(n, load, m.axis, owner) ||
        !idx_value(x->dims[m.axis], &size))
        return false;
    for (int i = 0; i < b.nfour; i++) {
        Move w = access_move(c, load, n->k->axes[b.four[i]].range);
        four_axis = w.kind == MOVE_AXIS ? w.axis : four_axis;
    }
    /* an axis of which the lanes are a part (a group's outputs): whole blocks in each */
    if (size != extent && (size % extent || extent % b.block))
        size = 0;
    bool split = reuse && size > b.block;
    *l = (Layout){0};
    int lane_axis = m.axis, nperm = 0;
    int8_t order[INGOT_MAX_RANK + 2], at[INGOT_MAX_RANK];
    if (split)
        l->op[l->n++] = (LayoutOp){.kind = LAYOUT_SPLIT, .axis = (int8_t)lane_axis, .a = b.block};
    if (four_axis >= 0)
        l->op[l->n++] = (LayoutOp){.kind = LAYOUT_SPLIT,
                                   .axis = (int8_t)(four_axis + (split && four_axis > lane_axis)),
                                   .a = 4};
    for (int d = 0; d < x->rank; d++) /* where the outer part of an axis is now */
        at[d] = (int8_t)(d + (split && d > lane_axis) + (four_axis >= 0 && d > four_axis));
    if (split)
        order[nperm++] = at[lane_axis];
    for (int i = -1; i < n->norder; i++)
        for (int d = 0; d < x->rank; d++)
            if (d != lane_axis && owner[d] == i)
                order[nperm++] = at[d];
    order[nperm++] = (int8_t)(at[lane_axis] + split);
    if (four_axis >= 0)
        order[nperm++] = (int8_t)(at[four_axis] + 1);
    LayoutOp *op = &l->op[l->n++];
    *op = (LayoutOp){.kind = LAYOUT_PERMUTE, .perm = {.n = nperm}};
    memcpy(op->perm.axis, order, (size_t)nperm);
    return true;
}
