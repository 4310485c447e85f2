/* join.c - several axes of results become one, of which they are quotients and remainders.
 *
 * That is a change of the kernel's expression, the only one that an opt makes: everything after it
 * sees a kernel with fewer axes. */
#include <string.h>

#include "kernel.h"

static int axis_named(const Kernel *k, const char *name, size_t length)
{
    for (int i = 0; i < k->naxis; i++)
        if (strlen(k->axes[i].name) == length && !memcmp(k->axes[i].name, name, length))
            return i;
    return -1;
}

int join_axes(const Kernel *k, const char *names, int *axis, int most)
{
    int n = 0;
    for (const char *at = names; *at && n < most;) {
        size_t length = strcspn(at, " ");
        axis[n] = axis_named(k, at, length);
        if (axis[n] < 0)
            return -1;
        for (int i = 0; i < n; i++)
            if (axis[i] == axis[n])
                return -1;
        n++;
        at += length + (at[length] == ' ');
    }
    return n;
}

/* The expression with other ranges; where one of several is a loop that have become one, so that
 * they are expressions of it, that one is the loop. */
static Node *rebuilt(Context *c, Node *sink, int n, Node *const *from, Node *const *to,
                     Node *joined)
{
    Arena *a = arena_new();
    int count;
    Node **order = graph_toposort(a, 1, &sink, &count), **map = NEWN(a, Node *, c->nnode);
    for (int i = 0; i < count; i++) {
        Node *x = order[i], **src = NEWN(a, Node *, x->nsrc + 1);
        for (int j = 0; j < n; j++)
            if (from[j] == x)
                map[x->id] = to[j];
        if (map[x->id])
            continue;
        uint32_t first = x->op == OP_END ? (uint32_t)end_stores(x) : reduce_ranges(x), nsrc = 0;
        bool changed = false, placed = false;
        for (uint32_t j = 0; j < x->nsrc; j++) {
            Node *s = map[x->src[j]->id];
            bool member = j >= first && s->op != OP_RANGE;
            for (int k = 0; k < n && j >= first; k++)
                member |= from[k] == x->src[j] && to[k] == joined;
            if (member && placed)
                continue;
            placed |= member;
            src[nsrc] = member ? joined : s;
            changed |= src[nsrc++] != x->src[j];
        }
        map[x->id] = !changed ? x
                     : nsrc == x->nsrc
                         ? node_with(c, x, src)
                         : node_make(c, x->op, x->dtype, x->arg, (int)nsrc, src, x->rank, x->shape);
    }
    sink = map[sink->id];
    arena_free(a);
    return sink;
}

/* The last of them runs fastest. */
Kernel *kernel_join(const Kernel *old, const int *axis, int n)
{
    Kernel *k = kernel_copy(old);
    Context *c = k->c;
    Axis *axes = NEWN(c->arena, Axis, k->naxis);
    Node **from = NEWN(c->arena, Node *, k->naxis), **to = NEWN(c->arena, Node *, k->naxis);
    int64_t extent = 1, size;
    for (int i = 0; i < n; i++)
        extent = sat_mul(extent, idx_value(k->axes[axis[i]].range->src[0], &size) ? size : 1);
    int naxis = 0;
    Node *joined = NULL;
    for (int i = 0; i < k->naxis; i++) {
        bool member = false;
        for (int j = 0; j < n; j++)
            member |= axis[j] == i;
        from[i] = k->axes[i].range;
        if (member && joined)
            continue;
        axes[naxis] = k->axes[i];
        Node *range = axes[naxis].range =
            range_new(c, naxis, member ? idx(c, extent) : from[i]->src[0]);
        if (member) {
            joined = range;
            snprintf(axes[naxis].name, sizeof axes[naxis].name, "%.6s_%.6s", k->axes[axis[0]].name,
                     k->axes[axis[n - 1]].name);
        }
        to[i] = range;
        naxis++;
    }
    Node *rest = joined;
    for (int j = n; j-- > 0;) {
        Node *whole = from[axis[j]]->src[0];
        to[axis[j]] = j ? idx_mod(c, rest, whole) : rest;
        rest = idx_div(c, rest, whole);
    }
    Node *sink = rebuilt(c, k->sink, k->naxis, from, to, joined);
    k->sink = sink;
    k->axes = axes;
    k->naxis = naxis;
    return k;
}
