/* halos.c - the kernel that writes a buffer first also zeroes its halo, in every run, since the
 * bytes may have been used by others.  Where kernels like it write the rest of the buffer (strips,
 * one after the other), a step before them does: they stay one kernel.
 *
 * Each side of each axis is a slab, a store with loops of its own (h0, h1, ...) after the kernel's:
 * as deep as the halo, and as long as the storage before it is not cleared yet.  For rows of pixels
 *
 *     aaaaaaaa     a: above, one run
 *     cxxxxxxd     b: below, one run
 *     cxxxxxxd     c, d: a run a row
 *     bbbbbbbb
 *
 * Slabs hold no element that the kernel itself writes, and none of what it loads: they may run in
 * any order, and beside it.
 *
 * Requires the kernels' final layouts and opts: no opt knows the loops of a halo. */
#include "choose.h"

typedef struct {
    Node *range;
    /* in elements of storage; -1 and INT64_MAX where one is known at run time only */
    int64_t extent, stride;
} HaloLoop;

/* By stride, the longest first. */
static void sort_loops(HaloLoop *l, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && l[j - 1].stride < l[j].stride; j--) {
            HaloLoop t = l[j];
            l[j] = l[j - 1];
            l[j - 1] = t;
        }
}

static Node *add_axis(Kernel *k, Node *extent)
{
    Axis *axes = NULL;
    int n = 0, number = 0;
    for (int i = 0; i < k->naxis; i++) {
        vec_push(k->c->arena, axes, n, k->axes[i]);
        number += *k->axes[i].name == 'h';
    }
    Axis x = {.range = range_new(k->c, k->naxis, extent)};
    snprintf(x.name, sizeof x.name, "h%d", number);
    vec_push(k->c->arena, axes, n, x);
    k->axes = axes;
    k->naxis = n;
    return x.range;
}

/* Loops over storage that lies side by side become one. */
static Node *end_of(Kernel *k, Node *store, HaloLoop *loop, int n)
{
    Context *c = k->c;
    Node *from[INGOT_MAX_RANK], *to[INGOT_MAX_RANK], *end[INGOT_MAX_RANK + 1];
    int nend = 1;
    for (int i = 0, next; i < n; i = next) {
        Node *extent = loop[i].range->src[0];
        for (next = i + 1; next < n && loop[next].extent > 0; next++) {
            if (loop[next - 1].stride != sat_mul(loop[next].stride, loop[next].extent))
                break;
            extent = idx_mul(c, extent, loop[next].range->src[0]);
        }
        Node *rest = end[nend++] = add_axis(k, extent);
        for (int j = next; j-- > i;) {
            from[j] = loop[j].range;
            to[j] = j > i ? idx_mod(c, rest, from[j]->src[0]) : rest;
            rest = idx_div(c, rest, from[j]->src[0]);
        }
    }
    end[0] = substitute(c, store, n, from, to);
    return node_make(c, OP_END, INGOT_BOOL, (Arg){0}, nend, end, 0, NULL);
}

/* Zeroes one side of an axis: of the axes before it the elements, of those after it the halo
 * too. */
static Node *clear_slab(Kernel *k, int arg, int axis, bool behind)
{
    Context *c = k->c;
    const KernelArg *a = &k->args[arg];
    Node *src[INGOT_MAX_RANK + 3] = {
        node_make(c, OP_BUFFER, a->dtype, (Arg){.i = arg}, 0, NULL, 0, NULL), node_bool(c, true),
        layout_fill(&a->layout) ? node_const_i(c, a->dtype, layout_fill(&a->layout))
                                : node_const_zero(c, a->dtype)};
    HaloLoop loop[INGOT_MAX_RANK];
    int n = 0;
    for (int i = 0; i < a->rank; i++) {
        int64_t lo, hi;
        layout_halo(&a->layout, i, &lo, &hi);
        Node *extent = i > axis   ? idx_add(c, a->dims[i], idx(c, lo + hi))
                       : i < axis ? a->dims[i]
                                  : idx(c, behind ? hi : lo);
        Node *first = i < axis ? idx(c, 0) : i == axis && behind ? a->dims[i] : idx(c, -lo);
        Node *r = range_new(c, RANGE_ADDED + i, extent);
        src[3 + i] = idx_add(c, r, first);
        if (r->op == OP_RANGE)
            loop[n++] = (HaloLoop){.range = r};
    }
    Node *store = node_make(c, OP_STORE, a->dtype, (Arg){0}, 3 + a->rank, src, 0, NULL);
    for (int i = 0; i < n; i++)
        if (!idx_value(loop[i].range->src[0], &loop[i].extent) ||
            !access_stride(k, store, loop[i].range, &loop[i].stride)) {
            loop[i].extent = -1;
            loop[i].stride = INT64_MAX;
        }
    sort_loops(loop, n);
    return end_of(k, store, loop, n);
}

static void add_slabs(Kernel *k, int arg)
{
    Node *ends[2 + 4 * INGOT_MAX_RANK];
    int nend = 0;
    for (uint32_t i = 0; i < k->sink->nsrc; i++)
        ends[nend++] = k->sink->src[i];
    for (int axis = 0; axis < k->args[arg].rank; axis++) {
        int64_t depth[2];
        layout_halo(&k->args[arg].layout, axis, &depth[0], &depth[1]);
        for (int side = 0; side < 2; side++)
            if (depth[side])
                ends[nend++] = clear_slab(k, arg, axis, side == 1);
    }
    k->sink = node_make(k->c, OP_SINK, INGOT_BOOL, (Arg){0}, nend, ends, 0, NULL);
}

static bool writes(const Step *s, int arg, const Buffer *b)
{
    return s->kind == STEP_KERNEL && s->bufs[arg] == b && s->kernel->args[arg].written;
}

/* Does another step write b in loops like those of this one? */
static bool has_twin(const Block *block, const Step *s, const Buffer *b)
{
    bool any = false;
    for (int i = 0; i < block->n && !any; i++) {
        const Step *t = block->step[i];
        for (int j = 0; j < t->nbuf && t != s && !any; j++)
            any = writes(t, j, b) && s->kernel->choice && t->kernel->choice &&
                  s->kernel->choice->form == t->kernel->choice->form;
        any = any || has_twin(&t->body, s, b) || has_twin(&t->other, s, b);
    }
    return any;
}

/* A step that clears, and does nothing else; b has constant dims. */
static Step *clearing(Plan *p, Buffer *b, const Step *like)
{
    Context *c = context_child(p->c);
    Kernel *k = NEW(c->arena, Kernel);
    Node **dims = NEWN(c->arena, Node *, b->rank);
    for (int i = 0; i < b->rank; i++)
        dims[i] = idx(c, b->dims[i]->hi);
    k->c = c;
    k->device = kernel_device(p, like->device);
    k->narg = 1;
    k->args = NEW(c->arena, KernelArg);
    *k->args = (KernelArg){
        .dtype = b->dtype, .rank = b->rank, .dims = dims, .layout = b->layout, .written = true};
    k->sink = node_make(c, OP_SINK, INGOT_BOOL, (Arg){0}, 0, NULL, 0, NULL);
    add_slabs(k, 0);
    k->bytes = kernel_bytes(k);
    return step_copies(p, k, "clear", NULL, b, like);
}

static void put_before(Plan *p, Block *block, int at, Step *s)
{
    vec_push(p->arena, block->step, block->n, s);
    for (int i = block->n - 1; i > at; i--)
        block->step[i] = block->step[i - 1];
    block->step[at] = s;
}

/* Do iterations of this loop write parts of b one after the other? */
static bool writes_parts(const Block *body, const Buffer *b)
{
    bool any = false;
    for (int i = 0; i < body->n && !any; i++) {
        const Step *s = body->step[i];
        for (int j = 0; j < s->nbuf && !any; j++)
            any = writes(s, j, b) && !covers(s->kernel, s->kernel->sink->src[0]->src[0]);
    }
    return any;
}

/* Clears with the first step that writes b, or before the loop that does part by part; after a
 * branch or a loop that may not have run, with the next one too. */
static bool clear_first(Plan *p, Block *block, Buffer *b)
{
    for (int i = 0; i < block->n; i++) {
        Step *s = block->step[i];
        if (s->kind == STEP_LOOP && const_dims(b) && writes_parts(&s->body, b)) {
            put_before(p, block, i, clearing(p, b, s));
            return true;
        }
        for (int j = 0; j < s->nbuf; j++) {
            if (!writes(s, j, b))
                continue;
            if (const_dims(b) && has_twin(&p->main, s, b))
                put_before(p, block, i, clearing(p, b, s));
            else
                add_slabs(s->kernel, j);
            return true;
        }
        bool body = clear_first(p, &s->body, b), other = clear_first(p, &s->other, b);
        if (body && other)
            return true;
    }
    return false;
}

void clear_halos(Plan *p)
{
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffers[i]->layout.n &&
            p->buffers[i]->layout.op[0].kind == LAYOUT_PAD) /* pads come first */
            (void)clear_first(p, &p->main, p->buffers[i]);
}
