/* slices.c - a kernel that works on a slice of a buffer is given a pointer to the first element it
 * may touch.  What then remains in its text is the shape of the slice and the strides, so that
 * kernels that write the parts of a concat side by side, or read the parts of a split, are the same
 * kernel.
 *
 * After layouts, which tell how far that element is; only where every constructor of the layout
 * keeps distances. */
#include <string.h>

#include "choose.h"

/* Along an axis of which these are the least and the largest coordinate that is touched: the one to
 * point at. With a halo they begin in it, whatever is touched of it, so that a strip at the edge is
 * like the others; 0: all of the axis is touched. */
static int64_t begin_of(const KernelArg *a, int axis, int64_t least, int64_t most)
{
    int64_t before, behind;
    layout_halo(&a->layout, axis, &before, &behind);
    const bool all = least <= 0 && most >= a->dims[axis]->hi - 1;
    return all || least + before < 0 ? 0 : least + before;
}

/* The coordinates to point at, of all accesses to an argument; false: they are 0. */
static bool begins(const Kernel *k, int arg, int64_t *low)
{
    int n, rank = k->args[arg].rank;
    bool touched = false, any = false;
    int64_t high[INGOT_MAX_RANK];
    Node *const *order = kernel_nodes(k, &n);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        if ((t->op != OP_LOAD && t->op != OP_STORE) || t->src[0]->arg.i != arg)
            continue;
        Node *const *coords = t->src + first_coord(t);
        for (int d = 0; d < rank; d++) {
            low[d] = !touched || coords[d]->lo < low[d] ? coords[d]->lo : low[d];
            high[d] = !touched || coords[d]->hi > high[d] ? coords[d]->hi : high[d];
        }
        touched = true;
    }
    for (int d = 0; d < rank && touched; d++) {
        low[d] = begin_of(&k->args[arg], d, low[d], high[d]);
        any |= low[d] > 0;
    }
    return any;
}

static bool keeps_distances(const Layout *l)
{
    for (int i = 0; i < l->n; i++)
        if (l->op[i].kind == LAYOUT_SPLIT || l->op[i].kind == LAYOUT_CUT)
            return false;
    return true;
}

/* How many elements of storage lie before that one. */
static Node *distance(Context *c, const Buffer *b, const int64_t *low)
{
    Node *to[INGOT_MAX_RANK], *from[INGOT_MAX_RANK];
    for (int d = 0; d < b->rank; d++) {
        to[d] = idx(c, low[d]);
        from[d] = idx(c, 0);
    }
    return idx_sub(c, layout_offset(c, &b->layout, b->rank, b->dims, to),
                   layout_offset(c, &b->layout, b->rank, b->dims, from));
}

static Buffer *view(Plan *p, Buffer *b, Node *offset)
{
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffers[i]->base == b && p->buffers[i]->base_offset == offset)
            return p->buffers[i];
    Buffer *v = NEW(p->arena, Buffer);
    *v = *b;
    v->base = b;
    v->base_offset = offset;
    v->id = p->nbuffer;
    vec_push(p->arena, p->buffers, p->nbuffer, v);
    return v;
}

/* Bottom up: a load's coordinates may hold another one. */
static void move_accesses(Arena *a, Kernel *k, int arg, const int64_t *low)
{
    Context *c = k->c;
    int n;
    Node *const *order = kernel_nodes(k, &n), **fresh = NEWN(a, Node *, c->nnode);
    for (int i = 0; i < n; i++) {
        Node *t = order[i], *x = node_rebuilt(c, t, fresh), *src[INGOT_MAX_RANK * 4];
        fresh[t->id] = x;
        if ((t->op != OP_LOAD && t->op != OP_STORE) || t->src[0]->arg.i != arg)
            continue;
        memcpy((void *)src, (void *)x->src, (size_t)x->nsrc * sizeof *src);
        for (int d = 0; d < k->args[arg].rank; d++)
            src[first_coord(t) + d] = idx_sub(c, src[first_coord(t) + d], idx(c, low[d]));
        fresh[t->id] = node_with(c, x, src);
    }
    k->sink = fresh[k->sink->id];
}

/* Has it memory with a first element to point at? What the caller gives may be shorter than the
 * bounds of its dims. */
static bool has_slices(const Buffer *b)
{
    const bool given = b->kind == BUF_INPUT || b->kind == BUF_OUTPUT;
    return !b->base && keeps_distances(&b->layout) &&
           (b->kind == BUF_ARENA || (given && const_dims(b)));
}

void point_at_slices(Plan *p, Step *s)
{
    Arena *a = arena_new();
    for (int i = 0; i < s->nbuf; i++) {
        Buffer *b = s->bufs[i];
        int64_t low[INGOT_MAX_RANK];
        if (!has_slices(b) || !begins(s->kernel, i, low))
            continue;
        s->bufs[i] = view(p, b, distance(p->c, b, low));
        move_accesses(a, s->kernel, i, low);
    }
    arena_free(a);
}
