/* first_lane.c - the address of an access in lanes is that of its first lane, and how far the others are from it.
 *
 *     a2[(i*64 + lane) + r*4096 + 16]   ->   a2[((i*64 + r*4096) + 16) + lane]
 *
 * So what several accesses have in common stands without the lanes, where it gets a name like that of any other access. */
#include "kernel.h"
#include "nest.h"

static Node *split(Context *c, Node *at, Node *lane)
{
    Node *zero = idx(c, 0), *src[2];
    int64_t step;
    if (!depends_on(at, lane) || !range_stride(c, at, lane, &step))
        return at;
    src[0] = substitute(c, at, 1, &lane, &zero);
    if (src[0]->op == OP_CONST)
        return at;
    src[1] = idx_mul(c, lane, idx(c, step));
    return node_make(c, OP_ADD, INGOT_INDEX, (Arg){0}, 2, src, 0, NULL);
}

void split_lanes(Arena *a, const Kernel *k, Node *lane, int nroot, Node **roots)
{
    Context *c = k->c;
    int n;
    Node **order = graph_toposort(a, nroot, roots, &n), **fresh = NEWN(a, Node *, n);
    Map at = {0};
    for (int i = 0; i < n; i++) {
        Node *t = order[i], *src[INGOT_MAX_RANK * 4];
        bool changed = false, access = t->op == OP_LOAD || t->op == OP_STORE;
        for (uint32_t j = 0; j < t->nsrc; j++) {
            src[j] = fresh[(uintptr_t)map_get(&at, (uint64_t)t->src[j]->id + 1) - 1];
            if (access && (int)j == first_coord(t))
                src[j] = split(c, src[j], lane);
            changed |= src[j] != t->src[j];
        }
        fresh[i] = changed ? node_with(c, t, src) : t;
        map_put(&at, (uint64_t)t->id + 1, (void *)(uintptr_t)(i + 1));
    }
    for (int i = 0; i < nroot; i++)
        roots[i] = fresh[(uintptr_t)map_get(&at, (uint64_t)roots[i]->id + 1) - 1];
    map_free(&at);
}
