/* split_lanes.c - the address of an access in lanes is that of its first lane, and how far the
 * others are from it.
 *
 *     a2[(i*64 + lane) + r*4096 + 16]   ->   a2[((i*64 + r*4096) + 16) + lane]
 *
 * So what several accesses have in common stands without the lanes, where it gets a name like that
 * of any other access. */
#include "kernel.h"
#include "passes.h"

static Node *split_access(Context *c, const Tile *t, Node *access)
{
    Node *lane = t->lane;
    const int coord = first_coord(access);
    Node *at = access->src[coord], *zero = idx(c, 0), *part[2];
    int64_t step;
    if (!depends_on(at, lane) || !range_stride(c, at, lane, &step))
        return access;
    part[0] = substitute(c, at, 1, &lane, &zero);
    if (part[0]->op == OP_CONST)
        return access;
    part[1] = idx_mul(c, lane, idx(c, step));
    return node_with_source(c, access, coord,
                            node_make(c, OP_ADD, INGOT_INDEX, (Arg){0}, 2, part, 0, NULL));
}

bool split_lanes(Linear *l, const Kernel *k)
{
    const Tile *t = l->tile;
    return t->lane && !t->four && !t->tc && change_accesses(l, k->c, split_access);
}
