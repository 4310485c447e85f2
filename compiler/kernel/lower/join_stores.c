/* join_stores.c - lanes along an axis whose neighbours are stored two or four apart.
 *
 *     a0[2 lane] = a
 *     a0[2 lane + 1] = b     ->     a0[2 lane] = a, b
 *
 * The phases of a stride are written so: y[2 q + e], and the channels of an image whose pixels have
 * four.  None of them is contiguous, all together are: with q in lanes and all e in one tile, their
 * vectors are interleaved on their way to memory, and whole lines are written in the order that the
 * reader wants. */
#include "kernel.h"
#include "passes.h"

/* Of how many bytes may elements be that are stored so far apart? */
static bool has_form(const Node *store, int64_t apart)
{
    const ingot_dtype d = (ingot_dtype)store->dtype;
    return lane_type(d) && ((dtype_info[d].bytes == 4 && (apart == 2 || apart == 4)) ||
                            (d == INGOT_BF16 && apart == 4));
}

Node *interleaved(const Kernel *k, Node *store, Node *range)
{
    const Node *end = k->sink->src[0];
    int64_t apart, stride, extent;
    if (store->op != OP_STORE || !access_stride(k, store, range, &apart) || !has_form(store, apart))
        return NULL;
    for (int i = end_stores(end); i < (int)end->nsrc; i++)
        if (idx_value(end->src[i]->src[0], &extent) && extent == apart &&
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

static bool is_behind(Context *c, const Node *a, const Node *b, int64_t wanted)
{
    int64_t distance;
    return b && b->nsrc == 4 && a->src[0] == b->src[0] && a->src[1] == b->src[1] &&
           idx_value(idx_sub(c, b->src[3], a->src[3]), &distance) && distance == wanted;
}

/* The stores of what lies between the lanes of store i: it first; how many there are. */
static int64_t between(Context *c, Node *const *store, int nstore, int i, int64_t apart, int *which)
{
    int64_t n = 1;
    which[0] = i;
    for (bool found = true; n < apart && found; n += found) {
        found = false;
        for (int j = 0; j < nstore && !found; j++)
            if ((found = is_behind(c, store[i], store[j], n)))
                which[n] = j;
    }
    return n;
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
        int which[MOST_APART];
        const int64_t apart = a ? lane_stride(c, t, a) : 0;
        if (!apart || !has_form(a, apart) || between(c, store, nstore, i, apart, which) != apart)
            continue;
        Node *src[3 + MOST_APART] = {a->src[0], a->src[1], a->src[2], a->src[3]};
        for (int64_t j = 1; j < apart; j++) {
            src[3 + j] = store[which[j]]->src[2];
            store[which[j]] = NULL;
        }
        store[i] = node_make(c, OP_STORE, a->dtype, a->arg, 3 + (int)apart, src, 0, NULL);
    }
    for (int i = 0; i < nstore; i++)
        if (store[i])
            store[n++] = store[i];
    set_stores(l, n, store);
    return n < nstore;
}
