/* flatten.c - logical coordinates become storage offsets, through each buffer's layout, and a loop
 * nest's stores its first statements.
 *
 *     a0[i0.o, i1.o*16 + lane] = f32(a1[i0.o, i1.o*16 + lane])
 *         -> a0[i0.o*640 + i1.o*16 + lane] = f32(a1[i0.o*640 + i1.o*16 + lane])
 *
 * So the simplifier sees whole addresses before anything gets a name.  linearize() opens the loops
 * around these stores; the passes between the two change what is stored. */
#include "passes.h"

static Node *flat(Context *c, const Kernel *k, Node *n, Node *const *now)
{
    Node *src[INGOT_MAX_RANK * 4];
    for (uint32_t i = 0; i < n->nsrc; i++)
        src[i] = now[n->src[i]->id];
    const KernelArg *a = &k->args[src[0]->arg.i];
    const int first = first_coord(n);
    src[first] = layout_offset(c, &a->layout, a->rank, a->dims, src + first);
    const int more = (int)n->nsrc - first - a->rank; /* how much of a chunk there is */
    if (more == 1)
        src[first + 1] = src[first + a->rank];
    return node_make(c, n->op, n->dtype, n->arg, first + 1 + more, src, 0, NULL);
}

void flatten_addresses(Arena *a, const Kernel *k, int nroot, Node *const *roots, Node **out)
{
    Context *c = k->c;
    int n;
    Node **order = graph_toposort(a, nroot, roots, &n), **now = NEWN(a, Node *, c->nnode);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        now[t->id] =
            t->op == OP_LOAD || t->op == OP_STORE ? flat(c, k, t, now) : node_rebuilt(c, t, now);
    }
    for (int i = 0; i < nroot; i++)
        out[i] = now[roots[i]->id];
}

bool flatten(Linear *l, const Kernel *k)
{
    const Tile *t = l->tile;
    Node **store = NEWN(l->arena, Node *, t->nstore + 1);
    flatten_addresses(l->arena, k, t->nstore, t->store, store);
    set_stores(l, t->nstore, store);
    return true;
}
