/* halo_in_place.c - a result and an operand that dies where it is made get one halo, where memory
 * is dear: then the result can lie on the operand's bytes (takeover.c).
 *
 *     x   i8[1,16,32,32] pad(2,1,1) pad(3,1,1)      read by a window, and added to what comes next
 *     y = conv(h) + x    pad(2,0,1) pad(3,0,1)      read by a window that takes steps of two
 *         -> y has the halo of x, and its place: 36,992 bytes for x, h and y, not 54,464
 *
 * Halos differ by who reads. The larger ones of both cost some bytes that are cleared; they are
 * taken where the arena is nearly as full as it gets. */
#include "choose.h"

enum { DEARER = 4, /* more halo is at most such a part of what is saved */ FULL = 4 };

/* Where the pads of a layout end: they come first. */
static int pads_of(const Layout *l)
{
    int n = 0;
    while (n < l->n && l->op[n].kind == LAYOUT_PAD)
        n++;
    return n;
}

static bool equal_but_for_pads(const Layout *a, const Layout *b)
{
    Layout x = {.n = 0}, y = {.n = 0};
    for (int i = pads_of(a); i < a->n; i++)
        x.op[x.n++] = a->op[i];
    for (int i = pads_of(b); i < b->n; i++)
        y.op[y.n++] = b->op[i];
    return layout_equal(&x, &y);
}

/* The layout of a, with the larger of both halos along each axis. */
static Layout joined(const Layout *a, const Layout *b, int rank)
{
    const int64_t fill = pads_of(a) ? layout_fill(a) : layout_fill(b);
    Layout all = {.n = 0};
    for (int d = 0; d < rank; d++) {
        int64_t lo, hi, lo_b, hi_b;
        layout_halo(a, d, &lo, &hi);
        layout_halo(b, d, &lo_b, &hi_b);
        lo = lo > lo_b ? lo : lo_b;
        hi = hi > hi_b ? hi : hi_b;
        if (lo || hi)
            all.op[all.n++] =
                (LayoutOp){.kind = LAYOUT_PAD, .axis = (int8_t)d, .a = lo, .b = hi, .fill = fill};
    }
    for (int i = pads_of(a); i < a->n; i++)
        all.op[all.n++] = a->op[i];
    return all;
}

/* The only result of a kernel that does not read it, or -1. */
static int only_result(const Kernel *k)
{
    int out = -1;
    for (int i = 0; i < k->narg; i++)
        if (k->args[i].written)
            out = out == -1 && !k->args[i].read ? i : -2;
    return out < 0 ? -1 : out;
}

/* Does the kernel read the operand just where it writes? */
static bool reads_there(const Kernel *k, const View *v, int in, int out)
{
    const Node *store = NULL;
    for (int i = 0; i < v->nstore; i++) {
        if (v->store[i]->src[0]->arg.i != out)
            continue;
        if (store)
            return false;
        store = v->store[i];
    }
    for (int i = 0; store && i < v->nload; i++) {
        const Node *load = v->load[i];
        if (load->src[0]->arg.i != in)
            continue;
        if (load->nsrc - 2 != store->nsrc - 3)
            return false;
        for (uint32_t d = 0; d + 2 < load->nsrc; d++)
            if (!idx_provably_equal(k->c, load->src[2 + d], store->src[3 + d]))
                return false;
    }
    return store;
}

static bool alike(const Buffer *a, const Buffer *b)
{
    bool same = a->kind == BUF_ARENA && b->kind == BUF_ARENA && !a->base && !b->base &&
                a->dtype == b->dtype && a->rank == b->rank;
    for (int d = 0; same && d < a->rank; d++)
        same = a->dims[d] == b->dims[d];
    return same && equal_but_for_pads(&a->layout, &b->layout) &&
           (!pads_of(&a->layout) || !pads_of(&b->layout) ||
            layout_fill(&a->layout) == layout_fill(&b->layout));
}

static void lay_out(Buffer *b, const Layout *l)
{
    b->layout = *l;
    buffer_layout_changed(b);
}

/* In place of its operand, if the halos are made equal; what that costs is little. */
static void try_pair(const Lives *lives, double peak, Buffer *in, Buffer *out)
{
    const Life a = lives->of[in->id], b = lives->of[out->id];
    if (a.first < 0 || a.first == a.last || a.last != b.first || !alike(in, out) ||
        layout_equal(&in->layout, &out->layout) || lives->bytes[a.last] * FULL < peak * (FULL - 1))
        return;
    const Layout both = joined(&in->layout, &out->layout, in->rank),
                 was[2] = {in->layout, out->layout};
    const int64_t before = in->bytes + out->bytes;
    lay_out(in, &both);
    lay_out(out, &both);
    if ((in->bytes + out->bytes - before) * DEARER <= out->bytes)
        return;
    lay_out(in, &was[0]);
    lay_out(out, &was[1]);
}

void share_halos(Plan *p, Step *const *kernel, int n, const bool *kept, const Target *t)
{
    if (t->machine.byte < DEAR)
        return;
    Arena *a = arena_new();
    const Lives lives = lives_of(a, p, &p->main);
    double peak = 0;
    for (int i = 0; i < lives.n; i++)
        peak = lives.bytes[i] > peak ? lives.bytes[i] : peak;
    for (int i = 0; i < n; i++) {
        const Step *s = kernel[i];
        const int out = only_result(s->kernel);
        if (out < 0 || kept[s->bufs[out]->id])
            continue;
        const View v = kernel_view(s->kernel);
        for (int j = 0; j < s->nbuf; j++)
            if (j != out && s->kernel->args[j].read && !kept[s->bufs[j]->id] &&
                reads_there(s->kernel, &v, j, out))
                try_pair(&lives, peak, s->bufs[j], s->bufs[out]);
    }
    arena_free(a);
}
