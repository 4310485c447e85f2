/* address.c - logical coordinates become storage offsets, through each buffer's layout.  Done
 * before linearising, so that the simplifier sees whole addresses and what it removes is not
 * given a name. */
#include "compiler.h"

static Node *flat(Context *c, const Kernel *k, Node *n, Node **src, int first)
{
    const KernelArg *a = &k->args[src[0]->arg.i];
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
    Node **order = graph_toposort(a, nroot, roots, &n), **fresh = NEWN(a, Node *, n);
    Map at = {0};
    for (int i = 0; i < n; i++) {
        Node *t = order[i], *src[INGOT_MAX_RANK * 4];
        bool changed = false;
        for (uint32_t j = 0; j < t->nsrc; j++) {
            src[j] = fresh[(uintptr_t)map_get(&at, (uint64_t)t->src[j]->id + 1) - 1];
            changed |= src[j] != t->src[j];
        }
        if (t->op == OP_LOAD)
            fresh[i] = flat(c, k, t, src, 2);
        else if (t->op == OP_STORE)
            fresh[i] = flat(c, k, t, src, 3);
        else
            fresh[i] = changed ? node_with(c, t, src) : t;
        map_put(&at, (uint64_t)t->id + 1, (void *)(uintptr_t)(i + 1));
    }
    for (int i = 0; i < nroot; i++)
        out[i] = fresh[(uintptr_t)map_get(&at, (uint64_t)roots[i]->id + 1) - 1];
    map_free(&at);
}
