/* layouts.c - a layout for every buffer of the arena.
 *
 * Contractions say what they want: the axis over which their weights' outputs run should be
 * innermost in what they write, so that its elements are the lanes of a vector; the votes are
 * weighed by operations.  For convolutions this gives channels-last, for matrix products rows.
 * Elementwise and pooling kernels follow their neighbours.  What is read beyond its edges (the
 * padding of a convolution) gets a halo of zeros instead of bounds checks; a step of its own
 * clears it every run, since the bytes may have been used by others.
 *
 * What the model declares (inputs, outputs, state) and what other steps than kernels touch
 * stays dense. */
#include <string.h>

#include "kernel.h"

typedef struct {
    Plan *p;
    Arena *a;
    bool *fixed;             /* by buffer */
    double (*vote)[INGOT_MAX_RANK];
    Step **kernel;           /* kernel steps in order */
    int n;
} Layouts;

static void gather_steps(Layouts *x, Block *b)
{
    for (int i = 0; i < b->n; i++) {
        Step *s = b->step[i];
        if (s->kind == STEP_KERNEL)
            vec_push(x->a, x->kernel, x->n, s);
        for (int j = 0; s->kind != STEP_KERNEL && j < s->nbuf; j++)
            x->fixed[s->bufs[j]->id] = true;
        if (s->cond)
            x->fixed[s->cond->id] = true;
        gather_steps(x, &s->body);
        gather_steps(x, &s->other);
    }
}

static bool const_extent(Node *range, int64_t *n)
{
    return idx_value(range->src[0], n);
}

/* ---- votes ------------------------------------------------------------------------------------ */

/* The output range that should become lanes. */
static Node *wanted_lanes(const Step *s, const View *v)
{
    Context *c = s->kernel->c;
    Node *best = NULL;
    int64_t best_extent = 0;
    for (int pass = 0; pass < 2 && !best; pass++) /* first those that run over constants, whose layout is free */
        for (int i = 0; i < v->nrange; i++) {
            Node *r = v->range[i];
            int64_t extent;
            if (!const_extent(r, &extent) || extent < 4)
                continue;
            bool weight = false, good = true;
            for (int j = 0; j < v->nstore; j++) {
                Move store = access_move(c, v->store[j], r);
                good &= store.kind == MOVE_AXIS && store.stride == 1;
            }
            for (int j = 0; j < v->nfactor; j++) {
                Move m = access_move(c, v->factor[j], r);
                good &= m.kind != MOVE_MIXED && (m.kind == MOVE_NONE || m.stride == 1);
                weight |= m.kind == MOVE_AXIS && s->bufs[v->factor[j]->src[0]->arg.i]->kind == BUF_WEIGHT;
            }
            if (!good || (!pass && !weight))
                continue;
            if (pass || extent > best_extent) { /* without weights: the last one, which is innermost already */
                best = r;
                best_extent = extent;
            }
        }
    return best;
}

static void vote(Layouts *x, const Step *s, Node *access, Node *range, double weight)
{
    const Buffer *b = s->bufs[access->src[0]->arg.i];
    Move m = access_move(s->kernel->c, access, range);
    if (!x->fixed[b->id] && m.kind == MOVE_AXIS && m.stride == 1)
        x->vote[b->id][m.axis] += weight;
}

static void vote_contractions(Layouts *x)
{
    for (int i = 0; i < x->n; i++) {
        const Step *s = x->kernel[i];
        View v = kernel_view(x->a, s->kernel);
        Node *lanes = v.dot ? wanted_lanes(s, &v) : NULL;
        if (!lanes)
            continue;
        double flops = (double)s->kernel->flops;
        for (int j = 0; j < v.nstore; j++)
            vote(x, s, v.store[j], lanes, flops);
        for (int j = 0; j < v.nload; j++)
            vote(x, s, v.load[j], lanes, flops);
        /* the other operand is walked along the longest reduced axis */
        Node *longest = NULL;
        for (uint32_t j = 1; j < v.dot->nsrc; j++)
            if (!longest || v.dot->src[j]->hi > longest->hi)
                longest = v.dot->src[j];
        for (int j = 0; j < v.nfactor; j++)
            if (!depends_on(v.factor[j], lanes))
                vote(x, s, v.factor[j], longest, flops / 4);
    }
}

static int innermost(const Layouts *x, const Buffer *b)
{
    int best = -1;
    for (int i = 0; i < b->rank; i++)
        if (x->vote[b->id][i] > 0 && (best < 0 || x->vote[b->id][i] > x->vote[b->id][best]))
            best = i;
    return best;
}

/* Kernels without a wish pass on what their neighbours have. */
static bool follow(Layouts *x, const Step *s, bool forward)
{
    View v = kernel_view(x->a, s->kernel);
    bool changed = false;
    for (int j = 0; j < v.nload * v.nstore; j++) {
        Node *load = v.load[j % v.nload], *store = v.store[j / v.nload];
        const Buffer *in = s->bufs[load->src[0]->arg.i], *out = s->bufs[store->src[0]->arg.i];
        const Buffer *from = forward ? in : out, *to = forward ? out : in;
        Node *read = forward ? load : store, *write = forward ? store : load;
        int axis = innermost(x, from);
        if (axis < 0 || x->fixed[to->id] || innermost(x, to) >= 0 || to->kind != BUF_ARENA)
            continue;
        for (int i = 0; i < v.nrange; i++) {
            Move m = access_move(s->kernel->c, read, v.range[i]);
            if (m.kind != MOVE_AXIS || m.axis != axis)
                continue;
            Move w = access_move(s->kernel->c, write, v.range[i]);
            if (w.kind == MOVE_AXIS && w.stride == 1) {
                x->vote[to->id][w.axis] += 1;
                changed = true;
            }
        }
    }
    return changed;
}

static void vote_followers(Layouts *x)
{
    for (int round = 0; round < 4; round++) {
        bool changed = false;
        for (int i = 0; i < x->n; i++)
            changed |= follow(x, x->kernel[i], true);
        for (int i = x->n; i-- > 0;)
            changed |= follow(x, x->kernel[i], false);
        if (!changed)
            break;
    }
}

/* ---- halos ------------------------------------------------------------------------------------- */

enum { MAX_HALO = 8 };
typedef struct {
    int64_t lo[INGOT_MAX_RANK], hi[INGOT_MAX_RANK];
    bool refused, any;
} Halo;

static int conjuncts(Node *gate, Node **out, int n, int max)
{
    if (gate->op == OP_AND) {
        n = conjuncts(gate->src[0], out, n, max);
        return conjuncts(gate->src[1], out, n, max);
    }
    if (n < max)
        out[n++] = gate;
    return n < max ? n : max;
}

/* Is the gate just "inside the buffer"? Then how far outside do the coordinates go? */
static bool is_edge_gate(Context *c, Node *load, const Buffer *b, Halo *h)
{
    Node *parts[32], *edge[2 * INGOT_MAX_RANK];
    int n = conjuncts(load->src[1], parts, 0, 32), nedge = 0;
    for (int i = 0; i < b->rank; i++) {
        Node *e = load->src[2 + i];
        int64_t size;
        if (!idx_value(b->dims[i], &size))
            return false;
        if (e->lo < -MAX_HALO || e->hi >= size + MAX_HALO)
            return false;
        h->lo[i] = e->lo < 0 ? -e->lo : 0;
        h->hi[i] = e->hi >= size ? e->hi - size + 1 : 0;
        if (h->lo[i])
            nedge = conjuncts(idx_le(c, idx(c, 0), e), edge, nedge, 2 * INGOT_MAX_RANK);
        if (h->hi[i])
            nedge = conjuncts(idx_lt(c, e, idx(c, size)), edge, nedge, 2 * INGOT_MAX_RANK);
    }
    for (int i = 0; i < n; i++) {
        bool known = false;
        for (int j = 0; j < nedge; j++)
            known |= parts[i] == edge[j];
        if (!known)
            return false;
    }
    return n == nedge;
}

static void find_halos(Layouts *x, Halo *halo)
{
    for (int i = 0; i < x->n; i++) {
        const Step *s = x->kernel[i];
        View v = kernel_view(x->a, s->kernel);
        if (!v.nreduce)
            continue; /* one check an element is cheaper than a border */
        for (int j = 0; j < v.nload; j++) {
            Node *load = v.load[j];
            const Buffer *b = s->bufs[load->src[0]->arg.i];
            Halo one = {0};
            if (node_is_const_i(load->src[1], 1) || b->kind != BUF_ARENA || x->fixed[b->id] ||
                !is_edge_gate(s->kernel->c, load, b, &one))
                continue;
            Halo *h = &halo[b->id];
            h->any = true;
            for (int d = 0; d < b->rank; d++) {
                h->lo[d] = h->lo[d] > one.lo[d] ? h->lo[d] : one.lo[d];
                h->hi[d] = h->hi[d] > one.hi[d] ? h->hi[d] : one.hi[d];
            }
        }
    }
}

/* Loads that stay within the halo need no gate. */
static void drop_gates(Layouts *x, const Halo *halo)
{
    for (int i = 0; i < x->n; i++) {
        Step *s = x->kernel[i];
        Kernel *k = s->kernel;
        View v = kernel_view(x->a, k);
        for (int j = 0; j < v.nload; j++) {
            Node *load = v.load[j];
            const Buffer *b = s->bufs[load->src[0]->arg.i];
            Halo one = {0};
            if (!halo[b->id].any || node_is_const_i(load->src[1], 1) || !is_edge_gate(k->c, load, b, &one))
                continue;
            bool within = true;
            for (int d = 0; d < b->rank; d++)
                within &= one.lo[d] <= halo[b->id].lo[d] && one.hi[d] <= halo[b->id].hi[d];
            if (!within)
                continue;
            Node *src[INGOT_MAX_RANK + 2];
            memcpy((void *)src, load->src, load->nsrc * sizeof *src);
            src[1] = node_bool(k->c, true);
            Node *open = node_make(k->c, OP_LOAD, load->dtype, load->arg, (int)load->nsrc, src, 0, NULL);
            k->sink = substitute(k->c, k->sink, 1, &load, &open);
        }
    }
}

/* A kernel that zeroes the border: for each side a slab; slabs of later axes leave out what earlier ones did. */
static Kernel *clear_kernel(Layouts *x, const Buffer *b, const Halo *h)
{
    Context *c = context_child(x->p->c);
    Kernel *k = NEW(c->arena, Kernel);
    k->c = c;
    k->narg = 1;
    k->args = NEW(c->arena, KernelArg);
    Node **dims = NEWN(c->arena, Node *, b->rank);
    int64_t size[INGOT_MAX_RANK];
    for (int i = 0; i < b->rank; i++) {
        idx_value(b->dims[i], &size[i]);
        dims[i] = idx(c, size[i]);
    }
    k->args[0] = (KernelArg){.dtype = b->dtype, .rank = b->rank, .dims = dims, .written = true};
    k->axes = NEWN(c->arena, Axis, 2 * b->rank * b->rank + 1);
    Node *ends[2 * INGOT_MAX_RANK];
    int nend = 0;
    Node *buffer = node_make(c, OP_BUFFER, b->dtype, (Arg){0}, 0, NULL, 0, NULL);
    for (int axis = 0; axis < b->rank; axis++)
        for (int side = 0; side < 2; side++) {
            int64_t depth = side ? h->hi[axis] : h->lo[axis];
            if (!depth)
                continue;
            Node *src[INGOT_MAX_RANK + 3] = {buffer, node_bool(c, true), node_const_zero(c, b->dtype)};
            Node *end[INGOT_MAX_RANK + 1];
            int nr = 1;
            for (int i = 0; i < b->rank; i++) {
                int64_t from = i < axis ? 0 : i > axis ? -h->lo[i] : side ? size[i] : -depth;
                int64_t n = i < axis ? size[i] : i > axis ? size[i] + h->lo[i] + h->hi[i] : depth;
                Node *r = n == 1 ? idx(c, 0) : range_new(c, k->naxis, idx(c, n));
                src[3 + i] = idx_add(c, r, idx(c, from));
                if (r->op == OP_RANGE) {
                    Axis *a = &k->axes[k->naxis];
                    snprintf(a->name, sizeof a->name, "i%d", k->naxis++);
                    a->range = end[nr++] = r;
                }
            }
            end[0] = node_make(c, OP_STORE, b->dtype, (Arg){0}, 3 + b->rank, src, 0, NULL);
            ends[nend++] = node_make(c, OP_END, INGOT_BOOL, (Arg){0}, nr, end, 0, NULL);
        }
    k->sink = node_make(c, OP_SINK, INGOT_BOOL, (Arg){0}, nend, ends, 0, NULL);
    return k;
}

static bool writes(const Step *s, const Buffer *b)
{
    for (int i = 0; i < s->nbuf && s->kind == STEP_KERNEL; i++)
        if (s->bufs[i] == b && s->kernel->args[i].written)
            return true;
    return false;
}

static bool writes_inside(const Block *block, const Buffer *b)
{
    for (int i = 0; i < block->n; i++) {
        const Step *s = block->step[i];
        if (writes(s, b) || writes_inside(&s->body, b) || writes_inside(&s->other, b))
            return true;
    }
    return false;
}

/* Insert a clearing step before the first step that writes the buffer: a branch, if both sides do. */
static bool clear_before(Layouts *x, Block *block, Buffer *b, const Halo *h)
{
    for (int i = 0; i < block->n; i++) {
        Step *s = block->step[i];
        if (writes(s, b) || (writes_inside(&s->body, b) && writes_inside(&s->other, b))) {
            Step *clear = NEW(x->p->arena, Step), **steps = NEWN(x->p->arena, Step *, block->n * 2 + 2);
            clear->kind = STEP_KERNEL;
            clear->name = "clear";
            clear->kernel = clear_kernel(x, b, h);
            for (int j = 0; j < s->nbuf; j++)
                if (s->bufs[j] == b)
                    clear->kernel->choice = choice_part(x->p, s->kernel, PART_CLEAR, j, 1);
            clear->nbuf = 1;
            clear->bufs = NEW(x->p->arena, Buffer *);
            clear->bufs[0] = b;
            memcpy(steps, block->step, (size_t)i * sizeof *steps);
            steps[i] = clear;
            memcpy(steps + i + 1, block->step + i, (size_t)(block->n - i) * sizeof *steps);
            block->step = steps;
            block->n++;
            return true;
        }
        if (clear_before(x, &s->body, b, h) || clear_before(x, &s->other, b, h))
            return true;
    }
    return false;
}

/* ---- the record ------------------------------------------------------------------------------- */

/* A border as the pads of a layout, and back. */
static void pads_of(const Layout *l, Halo *h)
{
    *h = (Halo){0};
    for (int i = 0; i < l->n && l->op[i].kind == LAYOUT_PAD; i++) {
        h->lo[l->op[i].axis] = l->op[i].a;
        h->hi[l->op[i].axis] = l->op[i].b;
        h->any = true;
    }
}

static void record(Layouts *x, int nbuffer)
{
    bool *written = NEWN(x->a, bool, nbuffer);
    for (int i = 0; i < x->n; i++) {
        const Step *s = x->kernel[i];
        for (int j = 0; j < s->nbuf; j++) {
            const Buffer *b = s->bufs[j];
            if (!s->kernel->args[j].written || written[b->id])
                continue;
            written[b->id] = true;
            s->kernel->choice->arg[j].owned = !x->fixed[b->id];
            s->kernel->choice->arg[j].layout = b->layout;
        }
    }
}

/* ---- the pass ----------------------------------------------------------------------------------- */

static void add_permute(Buffer *b, int last)
{
    bool already = true;
    for (int i = last + 1; i < b->rank; i++)
        already &= idx_is(b->dims[i], 1);
    if (already || b->layout.n >= 8)
        return;
    LayoutOp *op = &b->layout.op[b->layout.n++];
    *op = (LayoutOp){.kind = LAYOUT_PERMUTE, .perm = {.n = b->rank}};
    int n = 0;
    for (int i = 0; i < b->rank; i++)
        if (i != last)
            op->perm.axis[n++] = (int8_t)i;
    op->perm.axis[n] = (int8_t)last;
}

void buffer_layout_changed(Buffer *b)
{
    b->bytes = sat_mul(layout_elements(&b->layout, b->rank, b->dims), dtype_info[b->dtype].bytes);
}

void choose_layouts(Plan *p)
{
    Layouts x = {.p = p, .a = arena_new()};
    int nbuffer = p->nbuffer;
    x.fixed = NEWN(x.a, bool, nbuffer);
    x.vote = arena_array(x.a, (size_t)nbuffer, sizeof *x.vote);
    for (int i = 0; i < nbuffer; i++)
        x.fixed[i] = p->buffers[i]->kind != BUF_ARENA || p->buffers[i]->base || p->buffers[i]->rank < 1;
    gather_steps(&x, &p->main);
    vote_contractions(&x);
    vote_followers(&x);
    Halo *halo = NEWN(x.a, Halo, nbuffer);
    find_halos(&x, halo);
    const Layout **given = replay_layouts(p, x.a, x.kernel, x.n, x.fixed);
    for (int i = 0; i < nbuffer; i++)
        if (given[i])
            pads_of(given[i], &halo[i]);
    drop_gates(&x, halo);
    for (int i = 0; i < nbuffer; i++) {
        Buffer *b = p->buffers[i];
        if (x.fixed[i])
            continue;
        for (int d = 0; d < b->rank && halo[i].any && !given[i]; d++)
            if (halo[i].lo[d] || halo[i].hi[d])
                b->layout.op[b->layout.n++] =
                    (LayoutOp){.kind = LAYOUT_PAD, .axis = (int8_t)d, .a = halo[i].lo[d], .b = halo[i].hi[d]};
        int last = innermost(&x, b);
        if (given[i])
            b->layout = *given[i];
        else if (last >= 0)
            add_permute(b, last);
        if (b->layout.n)
            buffer_layout_changed(b);
        if (halo[i].any && !clear_before(&x, &p->main, b, &halo[i]))
            BUG("a buffer with a halo is never written");
    }
    record(&x, nbuffer);
    arena_free(x.a);
}
