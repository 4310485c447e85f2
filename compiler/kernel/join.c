/* join.c - several axes of results become one, of which they are quotients and remainders.
 *
 * That is a change of the kernel's expression, the only one that an opt makes: everything after it sees a kernel with fewer
 * axes. */
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
    Node *end = k->sink->src[0], **src = NEWN(c->arena, Node *, end->nsrc);
    int nsrc = 0, stores = end_stores(end);
    bool placed = false;
    for (int i = 0; i < (int)end->nsrc; i++) {
        Node *s = substitute(c, end->src[i], k->naxis, from, to);
        if (i >= stores) {
            bool member = false;
            for (int j = 0; j < n; j++)
                member |= end->src[i] == from[axis[j]];
            if (member && placed)
                continue;
            placed |= member;
            s = member ? joined : s;
        }
        src[nsrc++] = s;
    }
    end = node_make(c, OP_END, INGOT_BOOL, (Arg){0}, nsrc, src, 0, NULL);
    k->sink = node_make(c, OP_SINK, INGOT_BOOL, (Arg){0}, 1, &end, 0, NULL);
    k->axes = axes;
    k->naxis = naxis;
    return k;
}
