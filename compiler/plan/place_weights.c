/* place_weights.c - where the constants of a plan lie in its file: in the order of their first use,
 * equal ones once.
 *
 * Several plans of one graph may have one file. Those for C read it as a whole (weights_gather()).
 * With one for a GPU, which has a copy of its own, what is equal in both lies in the middle, so
 * that either's weights are without gaps, and offsets are those from where its own begin:
 *
 *     of the first alone | of both | of the second alone
 *     <------- the first's -------->
 *                        <------- the second's --------> */
#include <stdlib.h>
#include <string.h>

#include "memplan.h"
#include "segments.h"

enum { WEIGHT_ALIGN = 64 };

/* Equal constants: the same recipe, or data of equal bytes, in the same layout. */
static bool same_weight(const Buffer *a, const Buffer *b)
{
    if (a->bytes != b->bytes || a->dtype != b->dtype || !layout_equal(&a->layout, &b->layout))
        return false;
    if (a->layout.n) { /* the same place for each element */
        if (a->rank != b->rank)
            return false;
        for (int i = 0; i < a->rank; i++)
            if (a->dims[i] != b->dims[i])
                return false;
    }
    if (a->node == b->node)
        return true;
    if (!a->node || !b->node || a->node->op != OP_DATA || b->node->op != OP_DATA)
        return false;
    const Data *x = a->node->arg.ptr, *y = b->node->arg.ptr;
    return x->nbytes == y->nbytes &&
           (x->bytes == y->bytes || !memcmp(x->bytes, y->bytes, x->nbytes));
}

/* Only the start of the data is hashed: that tells nearly all apart without reading the whole
 * file. */
static uint64_t weight_key(const Buffer *b)
{
    uint64_t h = hash_bytes((uint64_t)b->dtype, &b->bytes, sizeof b->bytes);
    if (!b->node || b->node->op != OP_DATA)
        return hash_bytes(h, &b->node, sizeof b->node);
    const Data *d = b->node->arg.ptr;
    return hash_bytes(h, d->bytes, d->nbytes < 4096 ? d->nbytes : 4096);
}

/* Takes the next bytes of a file for a weight; gives where they begin. */
static int64_t take_bytes(int64_t *at, int64_t bytes)
{
    const int64_t from = *at;
    *at = ceil_div(from + bytes, WEIGHT_ALIGN) * WEIGHT_ALIGN;
    return from;
}

bool weights_place(Plan *p, int n, Buffer **weight)
{
    Map seen = {0};
    int64_t at = 0;
    bool fits = true;
    for (int i = 0; i < n && fits; i++) {
        Buffer *b = weight[i];
        uint64_t key = weight_key(b);
        const Buffer *same = map_get(&seen, key);
        if (same && same_weight(same, b)) {
            b->offset = same->offset;
            continue;
        }
        map_put(&seen, key, b);
        fits = b->bytes <= MAX_TENSOR_BYTES - at;
        if (fits)
            b->offset = take_bytes(&at, b->bytes);
    }
    map_free(&seen);
    p->weights_bytes = at;
    return fits;
}

int64_t device_weights(const Plan *p, int device)
{
    Map seen = {0};
    int64_t bytes = 0;
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        const uint64_t key = (uint64_t)b->offset + 1;
        if (b->kind != BUF_WEIGHT || b->base || b->last < 0 || b->device != device ||
            map_get(&seen, key))
            continue;
        map_put(&seen, key, p->buffers[i]);
        bytes += b->bytes;
    }
    map_free(&seen);
    return bytes;
}

bool weights_gather(int n, Plan *const *plan)
{
    Arena *a = arena_new();
    Buffer **all = NULL;
    int nall = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < plan[i]->nbuffer; k++) {
            Buffer *b = plan[i]->buffers[k];
            if (b->kind == BUF_WEIGHT && !b->base && b->last >= 0)
                vec_push(a, all, nall, b);
        }
    const bool fits = weights_place(plan[0], nall, all);
    for (int i = 0; i < n; i++) {
        plan[i]->weights_bytes = plan[0]->weights_bytes;
        for (int k = 0; k < plan[i]->nbuffer; k++) {
            Buffer *b = plan[i]->buffers[k];
            if (b->kind == BUF_WEIGHT && b->base)
                b->offset = buffer_root(b)->offset;
        }
    }
    arena_free(a);
    return fits;
}

/* ---- of a GPU's and others
 * ---------------------------------------------------------------------------- */

/* A weight that has bytes of a plan's file, or several that are equal. */
typedef struct PlacedWeight PlacedWeight;
struct PlacedWeight {
    Buffer *b;
    int64_t from, to;    /* where it was, and is to be */
    PlacedWeight *other; /* the equal one of the other plan, or NULL */
};

typedef struct {
    PlacedWeight *of;
    int n;
    Map at; /* where it was, plus one -> PlacedWeight */
} PlacedList;

static bool has_place(const Buffer *b)
{
    return b->kind == BUF_WEIGHT && !b->base && b->last >= 0 && b->bytes;
}

/* In the order in which they lie. */
static int by_place(const void *x, const void *y)
{
    const PlacedWeight *a = x, *b = y;
    return (a->from > b->from) - (a->from < b->from);
}

static PlacedList placed_of(Arena *a, int n, Plan *const *plan)
{
    PlacedList list = {0};
    for (int k = 0; k < n; k++)
        for (int i = 0; i < plan[k]->nbuffer; i++) {
            Buffer *b = plan[k]->buffers[i];
            if (!has_place(b) || map_get(&list.at, (uint64_t)b->offset + 1))
                continue;
            map_put(&list.at, (uint64_t)b->offset + 1, b);
            const PlacedWeight w = {.b = b, .from = b->offset};
            vec_push(a, list.of, list.n, w);
        }
    if (!list.n)
        return list;
    qsort(list.of, (size_t)list.n, sizeof *list.of, by_place);
    for (int i = 0; i < list.n; i++)
        map_put(&list.at, (uint64_t)list.of[i].from + 1, &list.of[i]);
    return list;
}

/* Each has one equal one at most: equal weights of one plan are one already. */
static void find_equal(PlacedList *first, PlacedList *second)
{
    Map seen = {0};
    for (int i = 0; i < first->n; i++)
        map_put(&seen, weight_key(first->of[i].b), &first->of[i]);
    for (int i = 0; i < second->n; i++) {
        PlacedWeight *same = map_get(&seen, weight_key(second->of[i].b));
        if (!same || same->other || !same_weight(same->b, second->of[i].b))
            continue;
        same->other = &second->of[i];
        second->of[i].other = same;
    }
    map_free(&seen);
}

/* Those that the other plan has too, or has not, behind what is there. */
static void take_some(PlacedList *list, bool shared, int64_t *at)
{
    for (int i = 0; i < list->n; i++)
        if ((list->of[i].other != NULL) == shared)
            list->of[i].to = take_bytes(at, list->of[i].b->bytes);
}

static void move_weights(Plan *p, PlacedList *list, int64_t bytes)
{
    for (int i = 0; i < p->nbuffer; i++) {
        Buffer *b = p->buffers[i];
        if (has_place(b))
            b->offset = ((const PlacedWeight *)map_get(&list->at, (uint64_t)b->offset + 1))->to;
        else if (b->kind == BUF_WEIGHT && !b->base) /* of no bytes */
            b->offset = 0;
    }
    p->weights_bytes = bytes;
}

int64_t weights_join(Plan *first, int n, Plan *const *second)
{
    Arena *a = arena_new();
    PlacedList x = placed_of(a, 1, &first), y = placed_of(a, n, second);
    int64_t own = 0, shared = 0;
    find_equal(&x, &y);
    take_some(&x, false, &own);
    take_some(&y, true, &shared);
    for (int i = 0; i < x.n; i++)
        if (x.of[i].other)
            x.of[i].to = own + x.of[i].other->to;
    int64_t all = shared;
    take_some(&y, false, &all);
    move_weights(first, &x, own + shared);
    for (int i = 0; i < n; i++)
        move_weights(second[i], &y, all);
    map_free(&x.at);
    map_free(&y.at);
    arena_free(a);
    return shared;
}
