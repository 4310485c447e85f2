/* layouts.c - a layout for every buffer of the arena.
 *
 * Contractions say what they want: the axis over which their weights' outputs run should be
 * innermost in what they write, so that its elements are the lanes of a vector; the votes are
 * weighed by operations.  For convolutions this gives channels-last, for matrix products rows.
 * Elementwise and pooling kernels follow their neighbours.  What is read beyond its edges (the
 * padding of a convolution) gets a halo of zeros instead of bounds checks; halos.c clears it.
 *
 * Where a matrix unit has lines of terms brought to it, axes that a sum of products runs along
 * follow each other.
 *
 * What the model declares (inputs, outputs, state) and what other steps than kernels touch
 * stays dense. */
#include <stdlib.h>
#include <string.h>

#include "choose.h"

typedef struct {
    Plan *p;
    Arena *a;
    bool *fixed;  /* by buffer */
    bool *weight; /* a constant, a state, or made of such alone (weights that a step rounds) */
    double (*vote)[INGOT_MAX_RANK];
    Step **kernel; /* kernel steps of a device, in order */
    double *times; /* that each of them runs: the trips of the loops around it */
    int n, ntimes, device;
    bool gpu;
} Layouts;

static void gather_steps(Layouts *x, Block *b, double times)
{
    for (int i = 0; i < b->n; i++) {
        Step *s = b->step[i];
        if (s->kind == STEP_KERNEL && s->device == x->device) {
            vec_push(x->a, x->kernel, x->n, s);
            vec_push(x->a, x->times, x->ntimes, times);
        }
        for (int j = 0; !s->kernel && j < s->nbuf; j++)
            x->fixed[s->bufs[j]->id] = true;
        if (s->cond)
            x->fixed[s->cond->id] = true;
        gather_steps(x, &s->body, s->trip ? times * (double)s->trip->hi : times);
        gather_steps(x, &s->other, times);
    }
}

static bool const_extent(Node *range, int64_t *n)
{
    return idx_value(range->src[0], n);
}

/* ---- votes ----------------------------------------------------------------------------------- */

/* A depthwise convolution: nothing that it reads is read again by another lane. */
static bool each_by_itself(const View *v, const Node *lanes)
{
    bool all = v->nfactor > 1;
    for (int j = 0; j < v->nfactor; j++)
        all &= depends_on(v->factor[j], lanes);
    return all;
}

/* Whether what a step writes is made of weights, and of nothing else. */
static bool of_weights(const Layouts *x, const Step *s)
{
    bool reads = false, all = true;
    for (int j = 0; j < s->nbuf; j++) {
        const KernelArg *arg = &s->kernel->args[j];
        reads |= arg->read;
        all &= arg->read ? x->weight[s->bufs[j]->id] : s->bufs[j]->kind == BUF_ARENA;
        all &= !arg->read || !arg->written;
    }
    return reads && all;
}

/* Constants and states: one that is a weight while it is trained is copied into the order of the
 * loops where that pays. And what all its steps make of nothing else: weights that a step rounds.
 */
static void find_weights(Layouts *x)
{
    for (int i = 0; i < x->p->nbuffer; i++) {
        const Buffer *b = x->p->buffers[i];
        x->weight[i] = b->kind == BUF_WEIGHT || (b->kind == BUF_STATE && const_dims(b));
    }
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j < x->kernel[i]->nbuf; j++)
            if (x->kernel[i]->kernel->args[j].written)
                x->weight[x->kernel[i]->bufs[j]->id] |= x->kernel[i]->bufs[j]->kind == BUF_ARENA;
    for (bool less = true; less;) {
        less = false;
        for (int i = 0; i < x->n; i++) {
            const Step *s = x->kernel[i];
            const bool made = of_weights(x, s);
            for (int j = 0; j < s->nbuf && !made; j++)
                if (s->kernel->args[j].written && s->bufs[j]->kind == BUF_ARENA) {
                    less |= x->weight[s->bufs[j]->id];
                    x->weight[s->bufs[j]->id] = false;
                }
        }
    }
}

static bool is_weight(const Layouts *x, const Step *s, const Node *factor)
{
    return x->weight[s->bufs[factor->src[0]->arg.i]->id];
}

/* The output range that should become lanes: the longest, but the maps of a group, if they fill a
 * vector, before the groups, each of which reads its own. */
static Node *wanted_lanes(const Layouts *x, const Step *s, const View *v, const Target *t)
{
    enum { WEIGHTS, ALONG, PARTS };
    Context *c = s->kernel->c;
    Node *best = NULL;
    int64_t best_extent = 0;
    bool best_shares = false, weights = false;
    for (int j = 0; j < v->nfactor; j++)
        weights |= is_weight(x, s, v->factor[j]);
    /* first those that run over constants, whose layout is free; last of these those whose results
     * are parts of an axis, which are copied */
    for (int pass = 0; pass <= PARTS && !best; pass++)
        for (int i = 0; i < v->nrange; i++) {
            Node *r = v->range[i];
            int64_t extent;
            bool counted = const_extent(r, &extent);
            if (!counted && pass == ALONG) /* of run time: what is innermost already stays so */
                best = NULL;
            /* few rows beside weights: what reads them has whole lines of terms */
            if (!counted || extent < 4 || (t->gpu && weights && pass && tc_few_rows(extent)))
                continue;
            bool weight = false, good = true;
            for (int j = 0; j < v->nstore; j++) {
                Move store = access_move(c, v->store[j], r);
                good &= (store.kind == MOVE_AXIS && store.stride == 1) ||
                        (pass == PARTS && moves_by_parts(s->kernel, v->store[j], store)) ||
                        (store.kind == MOVE_NONE && j > 0) || /* what a row has one of */
                        interleaved(s->kernel, v->store[j], r);
            }
            for (int j = 0; j < v->nfactor; j++) {
                Move m = access_move(c, v->factor[j], r);
                good &= m.kind != MOVE_MIXED && (m.kind == MOVE_NONE || m.stride == 1);
                weight |= m.kind == MOVE_AXIS && is_weight(x, s, v->factor[j]);
            }
            if (!good || (pass != ALONG && !weight))
                continue;
            const bool shares =
                t->machine.lanes && extent >= t->machine.lanes && !each_by_itself(v, r);
            /* without weights: the last one, which is innermost already; of a sum over rows and
             * more rather one that fills a vector */
            const bool rows = v->dot && v->dot->nsrc > 2;
            if (pass == ALONG ? !rows || shares >= best_shares
                              : (shares == best_shares ? extent > best_extent : shares)) {
                best = r;
                best_extent = extent;
                best_shares = shares;
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

/* Is it better to walk an operand along this reduced axis, innermost in memory: it is longer, or
 * (of integers, where that is what they are for, or bf16) can be taken by fours, or pairs. */
static bool walks_better(const Node *dot, const Node *r, const Node *than, const Target *t)
{
    const bool floats = dtype_is_float(dot->dtype);
    const int each = dot_terms(dot), terms = floats || each == 2 ? each : 4;
    bool fours = machine_dots(&t->machine, terms, floats), four = terms && !((r->hi + 1) % terms);
    if (!than)
        return true;
    if (fours && four != !((than->hi + 1) % terms))
        return four;
    return r->hi >= than->hi; /* of equals the last, which is innermost already */
}

/* Does the target have a matrix unit for such operands? of_lines: one that takes f32 whole, of
 * lines of terms alone. */
static bool has_unit(const View *v, const Target *t, bool of_lines)
{
    for (const Tc *u = NULL; (u = tc_next(&t->machine, u));)
        if (v->nfactor == 2 && (!of_lines || tc_rests(u)) &&
            tc_reads((ingot_dtype)v->factor[0]->dtype, u->a) &&
            tc_reads((ingot_dtype)v->factor[1]->dtype, u->b))
            return true;
    return false;
}

enum { MAX_CONJUNCTS = 32 };

/* Of a sum over rows and more (batch and pixels, of two operands that are computed: the gradient of
 * a weight), an operand's own output range, which others do not move with: a tile reads some of its
 * elements for each term, and they should be neighbours. Then it lies as other kernels have it,
 * too. NULL: walk it. */
static Node *neighbours_of(const Layouts *x, const Step *s, const View *v, const Node *factor)
{
    Node *own = NULL;
    int along = 0;
    for (int j = 0; j < v->nfactor; j++)
        if (is_weight(x, s, v->factor[j]))
            return NULL;
    for (int i = 0; i < v->nrange; i++) {
        bool shared = v->nfactor > 1;
        for (int j = 0; j < v->nfactor; j++)
            shared &= depends_on(v->factor[j], v->range[i]);
        if (!shared && access_move(s->kernel->c, factor, v->range[i]).kind == MOVE_AXIS)
            own = own ? NULL : v->range[i];
    }
    for (uint32_t j = 1; j < v->dot->nsrc; j++)
        along += access_move(s->kernel->c, factor, v->dot->src[j]).kind == MOVE_AXIS;
    return along > 1 ? own : NULL;
}

/* The reduced axis that an operand is walked along best; NULL: there is none. */
static Node *best_walked(const View *v, const Target *t)
{
    Node *best = NULL;
    for (uint32_t j = 1; j < v->dot->nsrc; j++)
        if (walks_better(v->dot, v->dot->src[j], best, t))
            best = v->dot->src[j];
    return best;
}

/* Four terms of one result at once, without lanes: what is read lies along them, and a store of one
 * byte has no wish.  So the input of a depthwise convolution lies by planes, and that of a
 * pointwise one by pixels. */
static Node *walked_by_fours(const View *v, const Target *t)
{
    bool bytes = v->dot && !t->machine.lanes && !t->gpu && machine_dots(&t->machine, 4, false);
    for (int j = 0; j < v->nfactor; j++) /* gates, which halos will replace, may be around them */
        bytes &= dtype_info[v->factor[j]->dtype].bytes == 1 && dtype_is_int(v->factor[j]->dtype);
    Node *walked = bytes ? best_walked(v, t) : NULL;
    return walked && (walked->hi + 1) % 4 == 0 ? walked : NULL;
}

/* What a contraction loses without its lanes, beside others that do as many operations.  A vector
 * of n elements takes n loads if these do not lie side by side.  Where each lane has its own, lanes
 * along a row are there in any case: a load begins anywhere, and n bytes / line of them, of which
 * each is two, lie in two lines. */
static double lost_share(const View *v, const Node *lanes, const Target *t)
{
    const double bytes = (double)elem_bytes(v->factor[0]->dtype);
    return each_by_itself(v, lanes) ? bytes / t->machine.line : 1;
}

/* A row that something is reduced over first, and that is then written whole (softmax, and its
 * gradient), is made in lanes along itself; across, it is written element by element: what that
 * takes more, in products of tiles. */
static void vote_rows(Layouts *x, const Step *s, const View *v, double times, const Target *t)
{
    const double *rate = t->machine.rate,
                 more = rate[UNIT_TILE] / rate[UNIT_SCALAR] - rate[UNIT_TILE] / rate[UNIT_VECTOR],
                 weight = (double)s->kernel->flops * times * more;
    for (int i = 0; i < v->nrange; i++) {
        bool whole = v->nreduce > 0;
        for (int j = 0; j < v->nreduce; j++)
            whole &= !depends_on(v->reduce[j], v->range[i]);
        for (int j = 0; j < v->nstore && whole; j++)
            vote(x, s, v->store[j], v->range[i], weight);
    }
}

static void vote_contractions(Layouts *x, const Target *t)
{
    for (int i = 0; i < x->n; i++) {
        const Step *s = x->kernel[i];
        View v = kernel_view(s->kernel);
        Node *four = walked_by_fours(&v, t);
        for (int j = 0; j < v.nfactor && four; j++)
            vote(x, s, v.factor[j], four, (double)s->kernel->flops * x->times[i]);
        if (four)
            continue;
        Node *lanes = v.dot ? wanted_lanes(x, s, &v, t) : NULL;
        if (!v.dot && t->machine.lanes && !t->gpu)
            vote_rows(x, s, &v, x->times[i], t);
        if (!lanes || (t->gpu && !has_unit(&v, t, false)))
            continue;
        const double flops = (double)s->kernel->flops * x->times[i] * lost_share(&v, lanes, t);
        for (int j = 0; j < v.nstore; j++)
            vote(x, s, v.store[j], lanes, flops);
        for (int j = 0; j < v.nload; j++)
            vote(x, s, v.load[j], lanes, flops);
        const int along = t->gpu ? axis_of_reader(x->kernel, x->n, x->fixed, x->weight, s) : -1;
        if (along >= 0)
            x->vote[s->bufs[v.store[0]->src[0]->arg.i]->id][along] += 2 * flops;
        /* the other operand is walked along the longest reduced axis */
        Node *longest = best_walked(&v, t);
        for (int j = 0; j < v.nfactor; j++) {
            Node *own = neighbours_of(x, s, &v, v.factor[j]);
            if (!depends_on(v.factor[j], lanes))
                vote(x, s, v.factor[j], own ? own : longest, flops / 4);
        }
    }
}

/* Of equals the first; of products on a GPU the last, which is innermost already: its units read 16
 * bits either way. */
static int innermost(const Layouts *x, const Buffer *b)
{
    const double *vote = x->vote[b->id];
    int best = -1;
    for (int i = 0; i < b->rank; i++) {
        const bool last = x->gpu && vote[i] > x->n; /* kernels without a wish have one each */
        if (vote[i] > 0 && (best < 0 || (last ? vote[i] >= vote[best] : vote[i] > vote[best])))
            best = i;
    }
    return best;
}

/* Kernels without a wish pass on what their neighbours have. */
static bool follow(Layouts *x, const Step *s, bool forward)
{
    View v = kernel_view(s->kernel);
    bool changed = false;
    for (int j = 0; j < v.nload * v.nstore; j++) {
        Node *load = v.load[j % v.nload], *store = v.store[j / v.nload];
        const Buffer *in = s->bufs[load->src[0]->arg.i], *out = s->bufs[store->src[0]->arg.i];
        const Buffer *from = forward ? in : out, *to = forward ? out : in;
        Node *read = forward ? load : store, *write = forward ? store : load;
        int axis = innermost(x, from);
        if (axis < 0 || x->fixed[to->id] || innermost(x, to) >= 0 || to->kind != BUF_ARENA)
            continue;
        /* of axes that were one (channels, in groups) the one that lies side by side */
        int along = -1;
        int64_t least = INT64_MAX;
        for (int i = 0; i < v.nrange; i++) {
            Move m = access_move(s->kernel->c, read, v.range[i]);
            if (m.kind != MOVE_AXIS || m.axis != axis || llabs(m.stride) >= least)
                continue;
            Move w = access_move(s->kernel->c, write, v.range[i]);
            if (w.kind == MOVE_AXIS && w.stride == 1) {
                along = w.axis;
                least = llabs(m.stride);
            }
        }
        if (along >= 0)
            x->vote[to->id][along] += 1;
        changed |= along >= 0;
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

/* ---- halos ----------------------------------------------------------------------------------- */

/* Elements of a halo along an axis, at each end: so many, or a part of a long axis (a row of pixels
 * of four channels). */
static int64_t most_halo(int64_t size)
{
    enum { MOST = 8, PART = 8 };
    return size > MOST * PART ? size / PART : MOST;
}

typedef struct {
    int64_t lo[INGOT_MAX_RANK], hi[INGOT_MAX_RANK];
    int64_t fill;
    double gates; /* cycles that the loads take to see whether they are inside */
    bool any;
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
static bool is_edge_gate(const Kernel *k, Node *load, Halo *h)
{
    Context *c = k->c;
    const KernelArg *arg = &k->args[load->src[0]->arg.i];
    Node *parts[MAX_CONJUNCTS], *edge[2 * INGOT_MAX_RANK];
    int n = conjuncts(load->src[1], parts, 0, MAX_CONJUNCTS), nedge = 0;
    for (int i = 0; i < arg->rank; i++) {
        Node *e = load->src[2 + i];
        int64_t size;
        if (!idx_value(
                arg->dims[i],
                &size)) { /* at run time only: it may be walked from end to end, no further */
            if (e->op != OP_RANGE || e->src[0] != arg->dims[i])
                return false;
            continue;
        }
        if (e->lo < -most_halo(size) || e->hi >= size + most_halo(size))
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

bool reads_beyond(const Kernel *k, Node *load)
{
    Halo h = {0};
    return !node_is_const_i(load->src[1], 1) && is_edge_gate(k, load, &h);
}

/* What has to lie beyond the edges for the gate to be needless.  A load is zero there; but what is
 * made of it may be chosen by the same gate: gate ? (i32)load - 7 : 0 wants sevens, of integers,
 * and so does gate ? (i32)load : 7.  *choice: that WHERE, or NULL. */
static int64_t wanted_fill(const Kernel *k, Node *load, Node **choice)
{
    int n;
    Node *const *order = kernel_nodes(k, &n), *at = load;
    int64_t fill = 0; /* such that `at` is zero */
    *choice = NULL;
    for (int i = 0; i < n; i++) { /* readers come after what they read */
        Node *t = order[i];
        bool reads = false;
        for (uint32_t j = 0; j < t->nsrc; j++)
            reads |= t->src[j] == at;
        if (!reads || t->op == OP_END)
            continue;
        bool other = t->op == OP_WHERE && t->src[2]->op == OP_CONST &&
                     (dtype_is_int(t->dtype) || t->src[2] == node_const_zero(k->c, t->dtype));
        if (other && t->src[0] == load->src[1] && t->src[1] == at && t->src[2] != at) {
            *choice = t;
            return dtype_is_int(t->dtype) ? fill + t->src[2]->arg.i : fill;
        }
        bool number =
            t->nsrc == 2 && t->src[0] == at && t->src[1]->op == OP_CONST && dtype_is_int(t->dtype);
        if (number && t->op == OP_SUB)
            fill += t->src[1]->arg.i;
        else if (number && t->op == OP_ADD)
            fill -= t->src[1]->arg.i;
        else if (t->op != OP_CAST || !(dtype_is_int(load->dtype) || dtype_is_float(t->dtype)))
            break; /* of a zero a zero */
        at = t;
    }
    *choice = NULL;
    return 0;
}

/* Does the type of the load have such a number? */
static bool fill_fits(Context *c, ingot_dtype d, int64_t fill)
{
    return !fill || (dtype_is_int(d) && node_const_i(c, d, fill)->arg.i == fill);
}

/* How often e is computed; all: in every loop over outputs. */
static double iterations(const Kernel *k, Node *e, bool all)
{
    double n = 1;
    for (int i = 0; i < k->naxis; i++)
        if ((all && !k->axes[i].reduced) || depends_on(e, k->axes[i].range))
            n *= (double)k->axes[i].range->src[0]->hi;
    return n;
}

/* Cycles that a load's gate takes: its conditions in the loops that they depend on, and a choice
 * beside each operation of the reduce; without one, where it is loaded. */
static double cost_of_gate(const Kernel *k, Node *load, bool reduces, const Target *t)
{
    Node *part[MAX_CONJUNCTS];
    int n = conjuncts(load->src[1], part, 0, MAX_CONJUNCTS);
    double cycles = iterations(k, load, reduces) / t->machine.rate[UNIT_TILE];
    for (int i = 0; i < n; i++)
        cycles += iterations(k, part[i], false) / t->machine.rate[UNIT_SCALAR];
    return cycles;
}

/* What a sum loses where its loads have gates: its products are not taken by fours. */
static double cost_without_fours(const Step *s, const View *v, Node *load, const Target *t)
{
    bool factor = false;
    for (int j = 0; j < v->nfactor; j++)
        factor |= v->factor[j] == load;
    Node *walked = factor ? walked_by_fours(v, t) : NULL;
    return walked ? iterations(s->kernel, v->dot->src[0], true) *
                        (1 / t->machine.rate[UNIT_SCALAR] - 1 / t->machine.rate[UNIT_TILE])
                  : 0;
}

double cost_at_edges(const Step *s, const View *v, Node *load, const Target *t)
{
    return cost_of_gate(s->kernel, load, v->nreduce, t) + cost_without_fours(s, v, load, t);
}

/* A halo is cleared in every run, and takes its bytes where the arena is full. */
static bool halo_pays(const Lives *lives, const Halo *h, const Buffer *b, const Target *t)
{
    const Life life = lives->of[b->id];
    double plain = (double)elem_bytes(b->dtype), padded = plain;
    for (int d = 0; d < b->rank; d++) {
        double size = (double)b->dims[d]->hi;
        plain *= size;
        padded *= size + (double)(h->lo[d] + h->hi[d]);
    }
    double more = padded - plain;
    double grows = t->machine.byte > 0 && life.first >= 0 ? arena_growth(lives, life, more) : 0;
    return h->gates > cost_bytes(more, padded, t) + grows * t->machine.byte;
}

/* Is an element read more than once: by a sum, or in several places, which a window has that is
 * written out? One check an element is cheaper than a border. */
static bool reads_again(const View *v, const Node *load)
{
    int places = 0;
    for (int i = 0; i < v->nload; i++)
        places += v->load[i]->src[0] == load->src[0];
    return v->nreduce || places > 1;
}

static void find_halos(Layouts *x, const Target *t, Halo *halo)
{
    for (int i = 0; i < x->n; i++) {
        const Step *s = x->kernel[i];
        View v = kernel_view(s->kernel);
        for (int j = 0; j < v.nload; j++) {
            Node *load = v.load[j];
            const Buffer *b = s->bufs[load->src[0]->arg.i];
            Halo one = {0};
            if (!reads_again(&v, load) || node_is_const_i(load->src[1], 1) ||
                b->kind != BUF_ARENA || x->fixed[b->id] || !is_edge_gate(s->kernel, load, &one))
                continue;
            Halo *h = &halo[b->id];
            Node *choice;
            int64_t fill = wanted_fill(s->kernel, load, &choice);
            if ((h->any && h->fill != fill) || !fill_fits(s->kernel->c, load->dtype, fill))
                continue;
            h->any = true;
            h->fill = fill;
            h->gates += cost_at_edges(s, &v, load, t) * x->times[i];
            for (int d = 0; d < b->rank; d++) {
                h->lo[d] = h->lo[d] > one.lo[d] ? h->lo[d] : one.lo[d];
                h->hi[d] = h->hi[d] > one.hi[d] ? h->hi[d] : one.hi[d];
            }
        }
    }
    const Lives lives = lives_of(x->a, x->p, &x->p->main);
    for (int i = 0; i < x->p->nbuffer; i++)
        if (halo[i].any && !halo_pays(&lives, &halo[i], x->p->buffers[i], t))
            halo[i] = (Halo){0};
}

/* Loads that stay within the halo need no gate. */
static void drop_gates(Layouts *x, const Halo *halo)
{
    for (int i = 0; i < x->n; i++) {
        Step *s = x->kernel[i];
        Kernel *k = s->kernel;
        View v = kernel_view(k);
        for (int j = 0; j < v.nload; j++) {
            Node *load = v.load[j];
            const Buffer *b = s->bufs[load->src[0]->arg.i];
            Halo one = {0};
            if (node_is_const_i(load->src[1], 1) || !is_edge_gate(k, load, &one))
                continue;
            bool within = true;
            for (int d = 0; d < b->rank; d++)
                within &= one.lo[d] <= halo[b->id].lo[d] && one.hi[d] <= halo[b->id].hi[d];
            Node *choice;
            if (wanted_fill(k, load, &choice) != halo[b->id].fill || !within)
                continue;
            if (choice)
                k->sink = substitute(k->c, k->sink, 1, &choice, &choice->src[1]);
            Node *src[INGOT_MAX_RANK + 2];
            memcpy((void *)src, load->src, load->nsrc * sizeof *src);
            src[1] = node_bool(k->c, true);
            Node *open =
                node_make(k->c, OP_LOAD, load->dtype, load->arg, (int)load->nsrc, src, 0, NULL);
            k->sink = substitute(k->c, k->sink, 1, &load, &open);
        }
    }
}

/* ---- lines of terms -------------------------------------------------------------------------- */

/* The one axis of an operand that moves with this reduced range and with nothing else (it is no
 * window's), whole; or -1. */
static int axis_of_terms(const Step *s, const View *v, Node *operand, Node *range)
{
    Context *c = s->kernel->c;
    const Buffer *b = s->bufs[operand->src[0]->arg.i];
    const Move m = access_move(c, operand, range);
    int64_t extent;
    if (m.kind != MOVE_AXIS || m.stride != 1 || !const_extent(range, &extent) ||
        !idx_is(b->dims[m.axis], extent))
        return -1;
    for (int i = 0; i < v->nrange; i++) {
        const Move other = access_move(c, operand, v->range[i]);
        if (other.kind == MOVE_MIXED || (other.kind == MOVE_AXIS && other.axis == m.axis))
            return -1;
    }
    return m.axis;
}

/* The axes, as bits, along which a product's terms lie in an operand; 0: not along axes alone. */
static unsigned terms_of(const Step *s, const View *v, Node *operand)
{
    unsigned all = 0;
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++) {
        if (v->dot->src[i]->hi == 0)
            continue;
        const int axis = axis_of_terms(s, v, operand, v->dot->src[i]);
        if (axis < 0)
            return 0;
        all |= 1u << axis;
    }
    return all;
}

/* Has the target a unit that takes lines of terms? */
static bool takes_lines(const Target *t)
{
    for (const Tc *u = NULL; (u = tc_next(&t->machine, u));)
        if (tc_rests(u))
            return true;
    return false;
}

/* Which axes of each buffer all products that read it have their terms along, for units that boxes
 * bring lines of terms to; 0: there are none, or they differ. */
static unsigned *find_terms(const Layouts *x, int nbuffer, const Target *t)
{
    unsigned *terms = NEWN(x->a, unsigned, nbuffer);
    bool *differs = NEWN(x->a, bool, nbuffer);
    for (int i = 0; i < x->n && takes_lines(t); i++) {
        const Step *s = x->kernel[i];
        const View v = kernel_view(s->kernel);
        for (int j = 0; j < v.nfactor && v.dot && has_unit(&v, t, true); j++) {
            const int id = s->bufs[v.factor[j]->src[0]->arg.i]->id;
            const unsigned wanted = terms_of(s, &v, v.factor[j]);
            differs[id] |= !wanted || (terms[id] && terms[id] != wanted);
            terms[id] = differs[id] ? 0 : wanted;
        }
    }
    return terms;
}

/* Terms along several axes (heads of attention, and what each of them has) are one line if these
 * axes follow each other, innermost. last: what is to be innermost, or -1: what is so. False: it is
 * none of them, or there is nothing to change. */
static bool line_up_terms(Buffer *b, unsigned terms, int last)
{
    LayoutOp op = {.kind = LAYOUT_PERMUTE, .perm = {.n = b->rank}};
    int n = 0, before = -1;
    bool moved = false;
    for (int i = b->rank - 1; i >= 0 && last < 0; i--)
        last = idx_is(b->dims[i], 1) ? -1 : i;
    if (last < 0 || !(terms >> last & 1))
        return false;
    for (int which = 0; which < 3; which++) /* others, terms, the last of them */
        for (int i = 0; i < b->rank; i++)
            if ((i == last ? 2 : (int)(terms >> i & 1)) == which) {
                op.perm.axis[n++] = (int8_t)i;
                if (idx_is(b->dims[i], 1))
                    continue;
                moved |= i < before;
                before = i;
            }
    if (!(terms & (terms - 1)) || !moved)
        return false;
    b->layout.op[b->layout.n++] = op;
    return true;
}

/* ---- the record ------------------------------------------------------------------------------ */

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

/* ---- the pass -------------------------------------------------------------------------------- */

static void add_permute(Buffer *b, int last)
{
    bool already = true;
    for (int i = last + 1; i < b->rank; i++)
        already &= idx_is(b->dims[i], 1);
    if (!already)
        layout_put_last(&b->layout, b->rank, last);
}

/* Of the buffers of a device: no other one's kernels read or write them. */
static void layouts_on(Plan *p, const Target *t, int device)
{
    Layouts x = {.p = p, .a = arena_new(), .device = device, .gpu = t->gpu};
    int nbuffer = p->nbuffer;
    x.fixed = NEWN(x.a, bool, nbuffer);
    x.weight = NEWN(x.a, bool, nbuffer);
    x.vote = arena_array(x.a, (size_t)nbuffer, sizeof *x.vote);
    for (int i = 0; i < nbuffer; i++)
        x.fixed[i] = p->buffers[i]->kind != BUF_ARENA || p->buffers[i]->base ||
                     p->buffers[i]->rank < 1 || p->buffers[i]->device != device;
    gather_steps(&x, &p->main, 1);
    find_weights(&x);
    vote_contractions(&x, t);
    vote_followers(&x);
    Halo *halo = NEWN(x.a, Halo, nbuffer);
    if (!t->gpu) /* whose kernels have one loop nest, and copy behind a gate */
        find_halos(&x, t, halo);
    const Layout **given = replay_layouts(p, x.a, x.kernel, x.n, x.fixed);
    for (int i = 0; i < nbuffer; i++)
        for (int d = 0; given[i] && d < p->buffers[i]->rank; d++)
            layout_halo(given[i], d, &halo[i].lo[d], &halo[i].hi[d]);
    for (int i = 0; i < nbuffer; i++)
        halo[i].fill = given[i] ? layout_fill(given[i]) : halo[i].fill;
    drop_gates(&x, halo);
    const unsigned *terms = find_terms(&x, nbuffer, t);
    const bool *boxed = find_boxed(x.a, p, x.kernel, x.n, t);
    for (int i = 0; i < nbuffer; i++) {
        Buffer *b = p->buffers[i];
        if (x.fixed[i])
            continue;
        for (int d = 0; d < b->rank && !given[i]; d++)
            if (halo[i].lo[d] || halo[i].hi[d])
                b->layout.op[b->layout.n++] = (LayoutOp){.kind = LAYOUT_PAD,
                                                         .axis = (int8_t)d,
                                                         .a = halo[i].lo[d],
                                                         .b = halo[i].hi[d],
                                                         .fill = halo[i].fill};
        int last = innermost(&x, b);
        if (given[i])
            b->layout = *given[i];
        else if (!line_up_terms(b, terms[i], last) && !(boxed[i] && put_size_first(b, last)) &&
                 last >= 0)
            add_permute(b, last);
        if (b->layout.n)
            buffer_layout_changed(b);
    }
    bool *kept = NEWN(x.a, bool, nbuffer);
    for (int i = 0; i < nbuffer; i++)
        kept[i] = x.fixed[i] || given[i];
    choose_pitches(p, x.kernel, x.n, kept, t);
    share_halos(p, x.kernel, x.n, kept, t);
    record(&x, nbuffer);
    arena_free(x.a);
}

void choose_layouts(Plan *p, const Target *t)
{
    for (int device = 0; device < p->ndevice; device++)
        layouts_on(p, target_device(t, device), device);
}
