/* slices.c - a kernel that works on a slice of a buffer is given a pointer to the first element it
 * may touch.  What then remains in its text is the shape of the slice and the strides, so that
 * kernels that write the parts of a concat side by side, or read the parts of a split, are the same
 * kernel. So are those of loops that are alike: where an iteration's part begins is in the pointer.
 *
 * After layouts, which tell how far that element is; only where every constructor of the layout
 * keeps distances. */
#include <string.h>

#include "choose.h"

/* Along an axis of which these are the least and the largest coordinate that is touched: the one to
 * point at. With a halo they begin in it, whatever is touched of it, so that a strip at the edge is
 * like the others, and never before the buffer, where the first parts have a gate in front; 0: all
 * of the axis is touched. */
static Node *begin_of(Context *c, const KernelArg *a, int axis, int64_t least, int64_t most,
                      Node *shift)
{
    int64_t before, behind;
    layout_halo(&a->layout, axis, &before, &behind);
    const bool all = idx_is(shift, 0) && least <= 0 && most >= a->dims[axis]->hi - 1;
    return all ? idx(c, 0) : idx_max(c, idx_add(c, shift, idx(c, least + before)), idx(c, 0));
}

/* Is it a number that a bundle can compute: counters and integers of 64 bits, and conditions of
 * them? Narrow integers wrap, and their bits and floats are values of elements. */
static bool counts(const Context *c, const Node *e)
{
    const bool logic = e->op == OP_AND || e->op == OP_OR || e->op == OP_XOR || e->op == OP_NOT;
    const bool condition = e->dtype == INGOT_BOOL;
    bool all = e->op == OP_VAR
                   ? c->vars[e->arg.i].kind == VAR_PART
                   : e->op != OP_RANGE && e->op != OP_LOAD && e->op != OP_SHL && e->op != OP_SHR &&
                         (!logic || condition) &&
                         (condition || e->dtype == INGOT_INDEX || e->dtype == INGOT_I64);
    for (uint32_t i = 0; i < e->nsrc && all; i++)
        all = counts(c, e->src[i]);
    return all;
}

/* What a coordinate is shifted by in each iteration of loops of the plan: its terms that are made
 * of their counters. */
static Node *shift_of(Context *c, Node *e)
{
    if (e->op == OP_ADD)
        return idx_add(c, shift_of(c, e->src[0]), shift_of(c, e->src[1]));
    return e->op != OP_CONST && counts(c, e) ? e : idx(c, 0);
}

/* The coordinates to point at, of all accesses to an argument; false: they are 0. */
static bool begins(const Kernel *k, int arg, Node **begin)
{
    Context *c = k->c;
    int n, rank = k->args[arg].rank;
    bool touched = false, any = false;
    int64_t low[INGOT_MAX_RANK], high[INGOT_MAX_RANK];
    Node *const *order = kernel_nodes(k, &n);
    for (int pass = 0; pass < 2;
         pass++) { /* by what they are shifted; how far they are from that */
        touched = false;
        for (int i = 0; i < n; i++) {
            Node *t = order[i];
            if ((t->op != OP_LOAD && t->op != OP_STORE) || t->src[0]->arg.i != arg)
                continue;
            Node *const *coords = t->src + first_coord(t);
            for (int d = 0; d < rank; d++) {
                Node *e = coords[d], *shift = pass ? begin[d] : shift_of(c, e);
                begin[d] = pass || !touched || shift == begin[d] ? shift : idx(c, 0);
                e = pass ? idx_sub(c, e, begin[d]) : e;
                low[d] = !touched || e->lo < low[d] ? e->lo : low[d];
                high[d] = !touched || e->hi > high[d] ? e->hi : high[d];
            }
            touched = true;
        }
    }
    for (int d = 0; d < rank && touched; d++) {
        begin[d] = begin_of(c, &k->args[arg], d, low[d], high[d], begin[d]);
        any |= !idx_is(begin[d], 0);
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
static Node *distance(Context *c, const Buffer *b, Node *const *begin)
{
    Arena *a = arena_new();
    Node *to[INGOT_MAX_RANK], *from[INGOT_MAX_RANK];
    for (int d = 0; d < b->rank; d++) {
        to[d] = import_index(c, a, begin[d]);
        from[d] = idx(c, 0);
    }
    arena_free(a);
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
static void move_accesses(Arena *a, Kernel *k, int arg, Node *const *begin)
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
            src[first_coord(t) + d] = idx_sub(c, src[first_coord(t) + d], begin[d]);
        fresh[t->id] = node_with(c, x, src);
    }
    k->sink = fresh[k->sink->id];
}

/* What is known of its elements by their coordinates stays true where these are counted from others
 * on. */
static void move_beyond(Context *c, Beyond *b, Node *const *begin)
{
    if (b->from)
        b->from =
            idx_sub(c, b->row < 0 ? b->from : idx_add(c, b->from, begin[b->row]), begin[b->axis]);
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
        Node *begin[INGOT_MAX_RANK];
        if (!has_slices(b) || !begins(s->kernel, i, begin))
            continue;
        s->bufs[i] = view(p, b, distance(p->c, b, begin));
        move_accesses(a, s->kernel, i, begin);
        move_beyond(s->kernel->c, &s->kernel->args[i].beyond, begin);
    }
    kernel_find_vars(s->kernel);
    for (int i = 0; i < s->nbuf; i++) {
        Beyond *b = &s->kernel->args[i].beyond;
        if (b->from && !kernel_has_sizes(s->kernel, b->from))
            b->from = NULL;
    }
    arena_free(a);
}
