/* first_lane.c - the address of an access in lanes is that of its first lane, and how far the
 * others are from it.
 *
 *     a2[(i*64 + lane) + r*4096 + 16]   ->   a2[((i*64 + r*4096) + 16) + lane]
 *
 * So what several accesses have in common stands without the lanes, where it gets a name like that
 * of any other access. */
#include <string.h>

#include "kernel.h"
#include "nest.h"

static Node *split_access(Context *c, Node *access, Node *lane)
{
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

void split_lanes(Arena *a, const Kernel *k, Node *lane, int nroot, Node **roots)
{
    Context *c = k->c;
    int n;
    Node **order = graph_toposort(a, nroot, roots, &n), **now = NEWN(a, Node *, c->nnode);
    for (int i = 0; i < n; i++) {
        Node *x = node_rebuilt(c, order[i], now);
        now[order[i]->id] = x->op == OP_LOAD || x->op == OP_STORE ? split_access(c, x, lane) : x;
    }
    for (int i = 0; i < nroot; i++)
        roots[i] = now[roots[i]->id];
}
