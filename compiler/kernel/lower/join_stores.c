/* join_stores.c - lanes along an axis whose neighbours are stored two apart.
 *
 *     a0[2 lane] = a
 *     a0[2 lane + 1] = b     ->     a0[2 lane] = a, b
 *
 * The phases of a stride are written so: y[2 q + e].  Neither phase is contiguous, both together
 * are: with q in lanes and both e in one tile, the vectors of the two are interleaved on their way
 * to memory, and whole lines are written in the order that the reader wants. */
#include "kernel.h"
#include "passes.h"

Node *interleaved(const Kernel *k, Node *store, Node *range)
{
    const Node *end = k->sink->src[0];
    int64_t stride, extent;
    if (store->op != OP_STORE || !lane_type(store->dtype) || dtype_info[store->dtype].bytes != 4 ||
        !access_stride(k, store, range, &stride) || stride != 2)
        return NULL;
    for (int i = end_stores(end); i < (int)end->nsrc; i++)
        if (idx_value(end->src[i]->src[0], &extent) && extent == 2 &&
            access_stride(k, store, end->src[i], &stride) && stride == 1)
            return end->src[i];
    return NULL;
}

/* From one lane to the next, in elements; 0 if that is no constant. */
static int64_t lane_stride(Context *c, const Tile *t, const Node *store)
{
    int64_t stride;
    return range_stride(c, store->src[3], t->lane, &stride) ? stride : 0;
}

static bool one_behind(Context *c, const Node *a, const Node *b)
{
    int64_t distance;
    return b && b->nsrc == 4 && a->src[0] == b->src[0] && a->src[1] == b->src[1] &&
           idx_value(idx_sub(c, b->src[3], a->src[3]), &distance) && distance == 1;
}

bool join_stores(Linear *l, const Kernel *k)
{
    const Tile *t = l->tile;
    Context *c = k->c;
    int n = 0, nstore;
    if (!t->lane || t->part || t->ntail)
        return false;
    Node **store = stores_of(l, l->arena, &nstore);
    for (int i = 0; i < nstore; i++) {
        Node *a = store[i];
        if (!a || lane_stride(c, t, a) != 2)
            continue;
        for (int j = 0; j < nstore; j++)
            if (one_behind(c, a, store[j])) {
                Node *src[] = {a->src[0], a->src[1], a->src[2], a->src[3], store[j]->src[2]};
                store[i] = node_make(c, OP_STORE, a->dtype, a->arg, 5, src, 0, NULL);
                store[j] = NULL;
                break;
            }
    }
    for (int i = 0; i < nstore; i++)
        if (store[i])
            store[n++] = store[i];
    set_stores(l, n, store);
    return n < nstore;
}
