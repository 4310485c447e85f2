/* choose.c - opts for every kernel of a plan, after layouts.c.
 *
 * A contraction's constant operands are stored as its loops read them; a weight wanted in two
 * layouts is stored twice, unless one is good enough for both (share_weights.c).  Where an operand
 * or the result lies badly for the chosen lanes, a copying kernel before or after lays it out
 * again. */
#include <string.h>

#include "choose.h"
#include "cpu.h"
#include "decisions.h"

typedef struct {
    Plan *p;
    const Target *all, *t; /* and the device whose step is at work */
    Arena *a;
    Map decided; /* hash of what a kernel says -> Decided */
} Optimise;

static void take_layouts(Block *b)
{
    for (int i = 0; i < b->n; i++) {
        Step *s = b->step[i];
        for (int j = 0; s->kernel && j < s->nbuf; j++)
            s->kernel->args[j].layout = s->bufs[j]->layout;
        take_layouts(&s->body);
        take_layouts(&s->other);
    }
}

/* The halo of l, then what the rest of `then` does. */
static Layout with_halo(const Layout *l, const Layout *then)
{
    Layout out = {0};
    for (int i = 0; i < l->n && l->op[i].kind == LAYOUT_PAD; i++)
        out.op[out.n++] = l->op[i];
    for (int i = 0; i < then->n && out.n < 8; i++)
        out.op[out.n++] = then->op[i];
    return out;
}

static void optimise_block(Optimise *o, Block *b);

/* Could lay_out() make these lanes contiguous? A result of which only a part is written cannot be
 * copied whole, nor what is read and written, nor what two accesses want in two ways; constants are
 * not copied at all. */
bool can_lay_out(const Kernel *k, const View *v, const Buffer *const *bufs, const bool *free,
                 Node *lanes)
{
    for (int j = -v->nstore; j < v->nload; j++) {
        Node *access = j < 0 ? v->store[-1 - j] : v->load[j];
        int arg = (int)access->src[0]->arg.i;
        int64_t stride;
        Move m = access_move(k->c, access, lanes);
        if (free[arg] || m.kind == MOVE_NONE ||
            (access_stride(k, access, lanes, &stride) && stride == 1) ||
            interleaved(k, access, lanes))
            continue;
        if (bufs[arg]->kind == BUF_WEIGHT || (k->args[arg].read && k->args[arg].written) ||
            (j < 0 && !covers(k, access)))
            return false;
        /* parts that lie apart: of results that weights have, not of pixels */
        for (int i = 0; i < v->nfactor && m.stride != 1; i++)
            if (depends_on(v->factor[i], lanes) && !free[v->factor[i]->src[0]->arg.i])
                return false;
        for (int i = 0; i < v->nload; i++) {
            Move other = access_move(k->c, v->load[i], lanes);
            if (v->load[i]->src[0]->arg.i == arg && other.kind == MOVE_AXIS && other.axis != m.axis)
                return false;
        }
    }
    return true;
}

/* [..][n / block][at][n % block]: what lies side by side in blocks, each with all of `at`. */
static void layout_in_panels(Layout *l, int rank, int side, int at, int64_t block)
{
    int n = 0;
    l->op[l->n++] = (LayoutOp){.kind = LAYOUT_SPLIT, .axis = (int8_t)side, .a = block};
    LayoutOp *op = &l->op[l->n++];
    *op = (LayoutOp){.kind = LAYOUT_PERMUTE, .perm = {.n = rank + 1}};
    for (int i = 0; i <= rank; i++)
        if (i != side && i != side + 1 && i != at + (at > side))
            op->perm.axis[n++] = (int8_t)i;
    op->perm.axis[n++] = (int8_t)side;
    op->perm.axis[n++] = (int8_t)(at + (at > side));
    op->perm.axis[n] = (int8_t)(side + 1);
}

/* The axis of an access of which a tile has whole vectors of rows, and, if apart is not set, that
 * lies side by side; or -1. */
static int side_by_side(const Nest *nest, const View *v, Node *load, bool apart, int64_t *rows)
{
    const Kernel *k = nest->k;
    int64_t stride;
    for (int i = 0; i < v->nrange; i++) {
        Move m = access_move(k->c, load, v->range[i]);
        if (m.kind != MOVE_AXIS ||
            (!apart && (!access_stride(k, load, v->range[i], &stride) || stride != 1)))
            continue;
        for (int j = 0; j < nest->nsplit; j++) {
            const Split *s = &nest->split[j];
            *rows = s->amount;
            if (s->kind == OPT_UPCAST && k->axes[nest->axis[s->axis].root].range == v->range[i] &&
                s->amount % PANEL == 0)
                return m.axis;
        }
    }
    return -1;
}

/* Of terms that are taken block after block: is a block of them a short piece, less than a page, of
 * each of more rows than are near? Then nothing asks for their lines ahead. */
static bool blocks_walk_pages(const Nest *nest, const View *v, Node *load, int64_t terms)
{
    const Machine *m = &nest->target->machine;
    double rows = 1;
    if (!nest->partial || terms * dtype_info[load->dtype].bytes >= m->page)
        return false;
    for (int i = 0; i < v->nrange; i++)
        if (depends_on(load, v->range[i]) &&
            storage_stride(nest->k, load, v->range[i]) * dtype_info[load->dtype].bytes >= m->page)
            rows *= (double)v->range[i]->hi + 1;
    return rows > m->pages;
}

/* Rows whose terms lie pages apart (a transposed matrix) are brought together, where many vectors
 * of results read them again: in panels of a few rows, so that what is copied goes from line to
 * line as it lies. */
static void copy_columns(const Step *s, const Nest *nest, const View *v, Node *lanes)
{
    enum { VECTORS = 8 };
    const Kernel *k = nest->k;
    const NestAxis *inner = NULL;
    for (int i = 0; i < nest->norder; i++)
        if (nest->axis[nest->order[i]].reduced && nest->axis[nest->order[i]].extent != 1)
            inner = &nest->axis[nest->order[i]];
    for (int j = 0; j < v->nfactor && inner; j++) {
        Node *load = v->factor[j], *range = k->axes[inner->root].range;
        int arg = (int)load->src[0]->arg.i, uses = 0;
        Move m = access_move(k->c, load, range);
        int64_t stride, again = 1;
        for (int i = 0; i < v->nrange; i++)
            if (!depends_on(load, v->range[i]))
                again = sat_mul(again, v->range[i]->hi + 1);
        if (again < VECTORS * nest->lanes)
            continue;
        for (int i = 0; i < v->nload; i++)
            uses += v->load[i]->src[0]->arg.i == arg;
        const bool blocks = blocks_walk_pages(nest, v, load, inner->extent);
        if (depends_on(load, lanes) || m.kind != MOVE_AXIS || uses != 1 ||
            (!blocks && access_stride(k, load, range, &stride) && stride == 1) ||
            s->bufs[arg]->kind == BUF_WEIGHT || k->args[arg].written ||
            k->choice->arg[arg].copied || nest_stage(nest, arg) >= 0 ||
            (!blocks && !walks_pages(k, v, load, nest->target)))
            continue;
        int64_t rows;
        int side = side_by_side(nest, v, load, blocks, &rows), rank = s->bufs[arg]->rank;
        if (blocks && side < 0)
            continue;
        if (side >= 0 && side != m.axis && rank < INGOT_MAX_RANK)
            layout_in_panels(&k->choice->arg[arg].copy, rank, side, m.axis, rows);
        else
            layout_put_last(&k->choice->arg[arg].copy, rank, m.axis);
        k->choice->arg[arg].copied = true;
    }
}

/* Is what the lanes load read again by so many iterations that it pays to have it in panels of a
 * tile's vectors? Gives how many lanes these are, or 0. */
static int64_t lanes_of_panels(const Step *s, const Nest *nest, const View *v, Node *load,
                               Node *lanes)
{
    enum { BLOCKS = 8 };
    const Kernel *k = nest->k;
    const int arg = (int)load->src[0]->arg.i;
    const Node *terms = v->dot ? v->dot->src[v->dot->nsrc - 1] : NULL;
    int64_t block = 1, size, again = 1;
    if (!v->dot || v->dot->nsrc != 2 || s->bufs[arg]->rank >= INGOT_MAX_RANK ||
        !const_dims(s->bufs[arg]) || k->args[arg].written)
        return 0;
    for (int i = 0; i < nest->nsplit; i++)
        if (k->axes[nest->axis[nest->split[i].axis].root].range == lanes)
            block *= nest->split[i].amount;
    for (int i = 0; i < nest->norder; i++) {
        const NestAxis *x = &nest->axis[nest->order[i]];
        if (!x->reduced && !x->remainder && x->form == AXIS_LOOP &&
            !depends_on(load, k->axes[x->root].range))
            again = sat_mul(again, x->extent);
    }
    const Move m = access_move(k->c, load, lanes), t = access_move(k->c, load, terms);
    const bool whole = m.kind == MOVE_AXIS && t.kind == MOVE_AXIS && m.axis != t.axis &&
                       idx_value(s->bufs[arg]->dims[m.axis], &size) && size % block == 0;
    return whole && block > 1 && again >= BLOCKS ? block : 0;
}

/* A state whose rows lie pages apart (a wide matrix) is copied into panels. */
static void copy_panels(const Step *s, const Nest *nest, const View *v, Node *lanes)
{
    const Kernel *k = nest->k;
    for (int j = 0; j < v->nfactor; j++) {
        Node *load = v->factor[j], *terms = v->dot->src[v->dot->nsrc - 1];
        const int arg = (int)load->src[0]->arg.i;
        const int64_t block = lanes_of_panels(s, nest, v, load, lanes);
        int64_t stride;
        if (block && s->bufs[arg]->kind == BUF_STATE && access_stride(k, load, lanes, &stride) &&
            stride == 1 && nest_stage(nest, arg) < 0 && !k->choice->arg[arg].copied &&
            walks_pages(k, v, load, nest->target)) {
            layout_in_panels(&k->choice->arg[arg].copy, s->bufs[arg]->rank,
                             access_move(k->c, load, lanes).axis,
                             access_move(k->c, load, terms).axis, block);
            k->choice->arg[arg].copied = true;
        }
    }
}

/* Rows along the lanes of a place begin at lines of the cache: [..][rows][i / 16][i % 16], of whole
 * blocks. */
static void line_up(Layout *l, int rank, int axis, Node *size)
{
    enum { BLOCK = WIDEST };
    int64_t n;
    if (!idx_value(size, &n) || n % BLOCK == 0) {
        layout_put_last(l, rank, axis);
        return;
    }
    l->op[l->n++] = (LayoutOp){.kind = LAYOUT_SPLIT, .axis = (int8_t)axis, .a = BLOCK};
    LayoutOp *op = &l->op[l->n++];
    *op = (LayoutOp){.kind = LAYOUT_PERMUTE, .perm = {.n = rank + 1}};
    int at = 0;
    for (int i = 0; i <= rank; i++)
        if (i != axis && i != axis + 1)
            op->perm.axis[at++] = (int8_t)i;
    op->perm.axis[at++] = (int8_t)axis;
    op->perm.axis[at] = (int8_t)(axis + 1);
}

/* In the order in which the loops that fill the place read it, block after block, where there are
 * whole blocks of lanes. */
static void in_blocks(const Nest *nest, const View *v, Node *load, Node *lanes, int axis,
                      const Buffer *b, Layout *l)
{
    int64_t block = 1, size;
    int terms = -1;
    for (int i = 0; i < nest->nsplit; i++)
        if (nest->k->axes[nest->axis[nest->split[i].axis].root].range == lanes)
            block *= nest->split[i].amount;
    for (int i = 0; i < v->nreduce; i++) {
        Move m = access_move(nest->k->c, load, v->reduce[i]->src[v->reduce[i]->nsrc - 1]);
        terms = m.kind == MOVE_AXIS && m.axis != axis ? m.axis : terms;
    }
    if (terms < 0 || b->rank == INGOT_MAX_RANK || !idx_value(b->dims[axis], &size) || size % block)
        line_up(l, b->rank, axis, b->dims[axis]);
    else
        layout_in_panels(l, b->rank, axis, terms, block);
}

static bool is_place(const Kernel *k, const Node *range)
{
    for (int i = 0; i < k->naxis; i++)
        if (k->axes[i].range == range)
            return k->axes[i].staged;
    return false;
}

/* The axis that the lanes run along becomes innermost; in panels, where rows would lie pages
 * apart. */
static void copy_turned(const Step *s, const Nest *nest, const View *v, Node *access, Node *lanes,
                        Layout *l)
{
    const Move move = access_move(nest->k->c, access, lanes);
    const int arg = (int)access->src[0]->arg.i, axis = move.axis;
    int64_t block = 0;
    for (int j = 0; j < v->nfactor; j++)
        if (v->factor[j] == access)
            block = lanes_of_panels(s, nest, v, access, lanes);
    const Machine *m = &nest->target->machine;
    const Node *terms = block ? v->dot->src[v->dot->nsrc - 1] : NULL;
    const double row =
        block ? (double)s->bufs[arg]->dims[axis]->hi * (double)dtype_info[access->dtype].bytes : 0;
    if (block && ((double)terms->hi + 1) * (row < m->page ? row / m->page : 1) > m->pages)
        layout_in_panels(l, s->bufs[arg]->rank, axis, access_move(nest->k->c, access, terms).axis,
                         block);
    else
        layout_put_last_by(
            l, s->bufs[arg]->rank, axis,
            access->op == OP_STORE && moves_by_parts(nest->k, access, move) ? move.stride : 1);
}

/* Operands and result whose lanes are not contiguous are to be copied; k is the step's, or a copy
 * of it. */
static void choose_copies(const Step *s, const Nest *nest, Node *lanes)
{
    const Kernel *k = nest->k;
    View v = kernel_view(k);
    for (int j = -v.nstore; j < v.nload; j++) {
        Node *access = j < 0 ? v.store[-1 - j] : v.load[j];
        int arg = (int)access->src[0]->arg.i;
        int64_t stride;
        Move m = access_move(k->c, access, lanes);
        if (m.kind == MOVE_NONE || (access_stride(k, access, lanes, &stride) && stride == 1) ||
            s->bufs[arg]->kind == BUF_WEIGHT || interleaved(k, access, lanes) ||
            nest_stage(nest, arg) >= 0)
            continue;
        ArgChoice *a = &k->choice->arg[arg];
        if (!a->copied && is_place(k, lanes))
            in_blocks(nest, &v, access, lanes, m.axis, s->bufs[arg], &a->copy);
        else if (!a->copied)
            copy_turned(s, nest, &v, access, lanes, &a->copy);
        a->copied = true;
    }
    copy_columns(s, nest, &v, lanes);
    if (v.dot)
        copy_panels(s, nest, &v, lanes);
}

/* What the record says of a step's weights. */
static void lay_out_weights(Optimise *o, Step *s)
{
    for (int i = 0; i < s->nbuf; i++) {
        const ArgChoice *a = &s->kernel->choice->arg[i];
        if (!a->owned || s->bufs[i]->kind != BUF_WEIGHT)
            continue;
        if (a->layout.n)
            s->bufs[i] = buffer_twin(o->p, s->bufs[i], BUF_WEIGHT, &a->layout);
        s->kernel->args[i].layout = a->layout;
    }
}

/* And of copies, which have the halo of what they are copies of: gives the steps before and
 * after. */
static void copy_operands(Optimise *o, Step *s, Step **before, int *nbefore, Step **after,
                          int *nafter)
{
    Kernel *k = s->kernel;
    for (int i = 0; i < s->nbuf; i++) {
        if (!k->choice->arg[i].copied)
            continue;
        Layout l = k->choice->arg[i].copy;
        if (!k->args[i].written) /* it may be read beyond its edges */
            l = with_halo(&s->bufs[i]->layout, &l);
        Buffer *old = s->bufs[i], *fresh = buffer_twin(o->p, old, BUF_ARENA, &l);
        s->bufs[i] = fresh;
        k->args[i].layout = l;
        Step *copy =
            k->args[i].written ? copy_step(o->p, old, fresh, s) : copy_step(o->p, fresh, old, s);
        copy->kernel->choice = choice_copy(o->p, k, i);
        if (k->args[i].written)
            after[(*nafter)++] = copy;
        else
            before[(*nbefore)++] = copy;
    }
}

static void take_want(Optimise *o, Step *s, const Layout *want)
{
    Kernel *k = s->kernel;
    for (int i = 0; i < k->narg; i++)
        if (want[i].n)
            k->choice->arg[i].layout = want[i];
    lay_out_weights(o, s);
}

/* What an equal kernel has. */
static void take_decided(Optimise *o, Step *s, const Decided *d, Step **before, int *nbefore,
                         Step **after, int *nafter)
{
    Kernel *k = s->kernel;
    k->choice->tried = d->k->choice->tried;
    take_want(o, s, d->want);
    for (int i = 0; i < k->narg; i++) {
        k->choice->arg[i].copied = d->k->choice->arg[i].copied;
        k->choice->arg[i].copy = d->k->choice->arg[i].copy;
    }
    copy_operands(o, s, before, nbefore, after, nafter);
    k->opts = NULL;
    k->nopt = 0;
    for (int i = 0; i < d->k->nopt; i++)
        vec_push(k->c->arena, k->opts, k->nopt, opt_copy(k->c->arena, &d->k->opts[i]));
}

/* What a file says of it, if it does; whether nothing is left to choose. */
static bool take_given(Optimise *o, Step *s, const Choice *given, Step **before, int *nbefore,
                       Step **after, int *nafter)
{
    Kernel *k = s->kernel;
    for (int i = 0; i < s->nbuf; i++)
        k->choice->arg[i].owned |= s->bufs[i]->kind == BUF_WEIGHT;
    if (!given)
        return false;
    if (!replay_args(o->p, s, given, before != NULL))
        return true;
    lay_out_weights(o, s);
    copy_operands(o, s, before, nbefore, after, nafter);
    return replay_opts(o->p, k, o->t, given);
}

/* Is it of known dims, but for how many images there are? */
static bool known_but_batch(const Buffer *b)
{
    for (int i = 1; i < b->rank; i++)
        if (!idx_value(b->dims[i], NULL))
            return false;
    return true;
}

/* Operands of known dims may be copied by further steps, if there may be any. */
static bool may_copy(const Optimise *o, const Step *s, bool steps)
{
    bool may = steps && values_preset(o->p) != PRESET_ALL;
    for (int i = 0; i < s->nbuf; i++)
        may &= known_but_batch(s->bufs[i]) || s->bufs[i]->kind == BUF_WEIGHT;
    return may;
}

static void optimise_step(Optimise *o, Step *s, Step **before, int *nbefore, Step **after,
                          int *nafter)
{
    Kernel *k = s->kernel;
    const Choice *given = choice_of_opts(o->p, k->choice);
    if (take_given(o, s, given, before, nbefore, after, nafter))
        return;
    if (k->serial || k->sink->nsrc != 1)
        return;
    const bool copies = may_copy(o, s, before && !given);
    Decided *d = given ? NULL : decided(&o->decided, o->a, s, copies);
    if (d && d->k) {
        take_decided(o, s, d, before, nbefore, after, nafter);
        return;
    }
    Nest *nest = nest_new(k, o->t);
    Layout *want = NEWN(o->a, Layout, k->narg);
    Node *lanes[WIDEST];
    int nlanes;
    StrBuf tried = {0};
    choose_opts(o->a, &nest, (const Buffer *const *)s->bufs, copies, &tried, want, lanes, &nlanes);
    k->choice->tried = tried.data ? arena_strdup(o->p->arena, tried.data) : NULL;
    sb_free(&tried);
    agree_on_weights(o->p->c, nest, (const Buffer *const *)s->bufs, want);
    take_want(o, s, want);
    for (int i = 0; i < k->narg; i++)
        nest->k->args[i].layout = k->args[i].layout;
    for (int i = 0; i < nlanes && copies; i++)
        choose_copies(s, nest, lanes[i]);
    if (!given) /* those of an entry whose opts do not fit are there */
        copy_operands(o, s, before, nbefore, after, nafter);
    for (int i = 0; i < k->narg; i++) /* those of copies too */
        nest->k->args[i].layout = k->args[i].layout;
    if (nest_check(nest)) { /* it reckoned with another layout: the naive form is right with any */
        nest_free(nest);
        nest = nest_new(k, o->t);
    }
    choose_threads(nest);
    nest_keep(nest, k);
    nest_free(nest);
    if (d) {
        d->k = k;
        d->want = want;
    }
}

/* A GPU's kernels keep the layouts that their buffers have, but for weights, and for what is
 * copied. */
static void optimise_gpu_step(Optimise *o, Step *s, Step **before, int *nbefore, Step **after,
                              int *nafter)
{
    Kernel *k = s->kernel;
    if (k->serial || k->sink->nsrc != 1)
        return;
    const Choice *given = choice_of_opts(o->p, k->choice);
    if (take_given(o, s, given, before, nbefore, after, nafter))
        return;
    Nest *nest = nest_new(k, o->t);
    Layout *want = NEWN(o->a, Layout, k->narg);
    choose_gpu_opts(o->a, &nest, (const Buffer *const *)s->bufs, may_copy(o, s, before && !given),
                    want);
    take_want(o, s, want);
    if (!given)
        copy_operands(o, s, before, nbefore, after, nafter);
    for (int i = 0; i < k->narg; i++) /* those of weights and copies */
        nest->k->args[i].layout = k->args[i].layout;
    nest_keep(nest, k);
    nest_free(nest);
}

static void optimise_any(Optimise *o, Step *s, Step **before, int *nbefore, Step **after,
                         int *nafter)
{
    (o->t->gpu ? optimise_gpu_step : optimise_step)(o, s, before, nbefore, after, nafter);
}

static void add_copy(Optimise *o, Block *b, Step *copy)
{
    int none = 0;
    optimise_any(o, copy, NULL, &none, NULL, &none);
    vec_push(o->p->arena, b->step, b->n, copy);
}

static void optimise_block(Optimise *o, Block *b)
{
    Block fresh = {0};
    for (int i = 0; i < b->n; i++) {
        Step *s = b->step[i], *before[MAX_ACCESS], *after[MAX_ACCESS];
        int nbefore = 0, nafter = 0;
        o->t = target_device(o->all, s->device);
        if (s->kind == STEP_KERNEL)
            optimise_any(o, s, before, &nbefore, after, &nafter);
        optimise_block(o, &s->body);
        optimise_block(o, &s->other);
        o->t = target_device(o->all, s->device);
        for (int j = 0; j < nbefore; j++)
            add_copy(o, &fresh, before[j]);
        vec_push(o->p->arena, fresh.step, fresh.n, s);
        for (int j = 0; j < nafter; j++)
            add_copy(o, &fresh, after[j]);
    }
    *b = fresh;
}

/* The opts were chosen without the loops that clear a halo, which come last: with these there may
 * be too many, and a kernel of several stores joins no axes. */
static void leave_room(const Plan *p, Kernel *k)
{
    if (!k->nopt || *k->axes[k->naxis - 1].name != 'h' || kernel_has_room(k))
        return;
    const Choice *given = choice_of_opts(p, k->choice);
    if (given && given->nopt)
        sched_error(p, given->opt_line[given->nopt - 1],
                    "with the loops that clear the halo of what it stores, the kernel would have "
                    "more loops than are allowed, or joined axes among them");
    k->nopt = 0;
    k->opts = NULL;
}

/* Memory for the places of a kernel that are not its own variables: parts may run side by side,
 * each has its own. */
static void give_scratch(Plan *p, Step *s, const Target *t)
{
    Kernel *k = s->kernel;
    int parts = kernel_parts(k);
    k->scratch = kernel_scratch(k);
    if (places_are_local(k->scratch, t))
        k->scratch = 0;
    if (!k->scratch)
        return;
    Node **dim = NEWN(p->arena, Node *, 1);
    *dim = idx(p->c, sat_mul(k->scratch, parts ? parts : 1));
    Buffer *b = NEW(p->arena, Buffer);
    *b = (Buffer){
        .id = p->nbuffer, .kind = BUF_ARENA, .dtype = INGOT_U8, .rank = 1, .dims = dim, .slot = -1};
    b->device = s->device;
    buffer_layout_changed(b);
    vec_push(p->arena, p->buffers, p->nbuffer, b);
    s->scratch = b;
}

static void finish_kernels(Plan *p, Block *b, const Target *t)
{
    for (int i = 0; i < b->n; i++) {
        Step *s = b->step[i];
        if (s->kind == STEP_KERNEL) {
            if (!t->gpu) /* whose buffers begin where a device lets them */
                point_at_slices(p, s);
            leave_room(p, s->kernel);
            give_scratch(p, s, target_device(t, s->device));
        }
        finish_kernels(p, &s->body, t);
        finish_kernels(p, &s->other, t);
    }
}

void optimise(Plan *p, const Target *t)
{
    Optimise o = {.p = p, .all = t, .t = t, .a = arena_new()};
    take_layouts(&p->main);
    if (!t->gpu)
        share_weights(p, t);
    optimise_block(&o, &p->main);
    forget_decided(&o.decided);
    if (!t->gpu)
        clear_halos(p);
    finish_kernels(p, &p->main, t);
    arena_free(o.a);
}
