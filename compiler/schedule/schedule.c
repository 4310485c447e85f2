/* schedule.c - the graph becomes a plan: a list of steps over buffers.
 *
 * A block (the whole model, a loop's body, a branch) is scheduled by one walk over its nodes,
 * sources first: fuse() marks what is stored, each stored node becomes a kernel that writes
 * its buffer, control nodes become steps that hold blocks of their own.  Values of an outer
 * block keep their buffers inside; buffers made inside are forgotten when the block ends. */
#include <string.h>

#include "schedule.h"
#include "values.h"

typedef struct {
    Sched *s;
    Block *block;
    Node **made; /* nodes that got a buffer in this block */
    int nmade;
} Scope;

/* Where a value lies: in this buffer, from these coordinates on (NULL: it is all of it). */
typedef struct {
    Buffer *buffer;
    Node *const *at;
} Place;

static void schedule_node(Scope *, Node *);

/* ---- steps ------------------------------------------------------------------------------ */

static Step *step_new(Scope *at, StepKind kind)
{
    Sched *s = at->s;
    Step *step = NEW(s->arena, Step);
    step->kind = kind;
    step->name = "";
    vec_push(s->arena, at->block->step, at->block->n, step);
    return step;
}

static void step_bufs(Sched *s, Step *step, int n, Buffer *const *bufs)
{
    step->nbuf = n;
    step->bufs = NEWN(s->arena, Buffer *, n);
    if (n)
        memcpy(step->bufs, bufs, (size_t)n * sizeof *bufs);
}

void plan_note(Plan *p, Note note)
{
    vec_push(p->arena, p->notes, p->nnote, note);
}

/* ---- kernels ------------------------------------------------------------------------------ */

static Node *store_node(Nest *k, Place out, Node *gate, Node *value, Node *const *coords)
{
    Buffer *b = out.buffer;
    Node *src[INGOT_MAX_RANK + 3] = {nest_buffer(k, b), gate, value};
    for (int i = 0; i < b->rank; i++)
        src[3 + i] = out.at ? idx_add(k->s->c, coords[i], out.at[i]) : coords[i];
    return node_make(k->s->c, OP_STORE, b->dtype, (Arg){0}, 3 + b->rank, src, 0, NULL);
}

/* The ranges that a value depends on: those of its own reduces not among them. */
static int free_ranges(Arena *a, Node *value, Node **out, int max)
{
    int n, count = 0;
    Node **order = graph_toposort(a, 1, &value, &n);
    for (int i = 0; i < n; i++) {
        bool reduced = false;
        for (int j = 0; j < n && order[i]->op == OP_RANGE; j++)
            reduced |= owns_range(order[j], order[i]);
        if (order[i]->op == OP_RANGE && !reduced && count < max)
            out[count++] = order[i];
    }
    return count;
}

/* A step before the kernel that uses the index: the greatest one that is out of range, or INT64_MIN. */
static void check_step(Scope *at, const Nest *user, const IndexUse *u)
{
    Sched *s = at->s;
    Context *c = s->c;
    Node *yes = node_bool(c, true), *none = node_const_i(c, INGOT_I64, INT64_MIN);
    Node *fits = bool_and(c, idx_le(c, idx(c, 0), u->index), idx_lt(c, u->index, u->size));
    Node *bad = bool_and(c, u->gate, bool_not(c, fits));
    Nest *k = NEW(s->arena, Nest);
    k->s = s;
    memcpy(k->bufs, user->bufs, sizeof k->bufs);
    k->nbuf = user->nbuf;
    Node *src[1 + 4 * INGOT_MAX_RANK] = {
        node_where(c, bad, node_cast(c, u->index, INGOT_I64), none)};
    int n = free_ranges(s->arena, src[0], src + 1, 4 * INGOT_MAX_RANK);
    Node *worst =
        n ? node_make(c, OP_REDUCE, INGOT_I64, (Arg){.i = INGOT_REDUCE_MAX}, 1 + n, src, 0, NULL)
          : src[0];
    k->store = store_node(k, (Place){buffer_new(s, BUF_LOCAL, INGOT_I64, 0, NULL, u->t), NULL}, yes,
                          worst, NULL);
    Step *step = step_new(at, STEP_INDEX);
    Buffer **bufs;
    step->name = "check";
    step_origins(s, step, u->t);
    step->size = u->size;
    step->axis = u->axis;
    step->wraps = index_check_of(c, u->t) == INDEX_WRAPS;
    step->kernel = kernel_finish(k, &bufs, &n);
    step->kernel->check = true;
    step_bufs(s, step, n, bufs);
}

static void nest_end(Scope *at, Nest *k, Node *origin)
{
    for (int i = 0; i < k->nuse; i++)
        check_step(at, k, &k->use[i]);
    Step *step = step_new(at, STEP_KERNEL);
    Buffer **bufs;
    int n;
    step->value = origin;
    step->stored = NEW(at->s->arena, Stored);
    step->stored[step->nstored++] =
        (Stored){.node = origin, .copy = origin != k->root && !is_computed(at->s, origin)};
    step_computes(at->s, step, origin);
    if (at->s->opt_level)
        nest_split(k);
    if (at->s->opt_level)
        nest_part_operands(k);
    step->kernel = kernel_finish(k, &bufs, &n);
    step_bufs(at->s, step, n, bufs);
    map_free(&k->memo);
}

static void nest_ranges(Nest *k, int rank, Node *const *dims, Node **coords)
{
    Context *c = k->s->c;
    for (int i = 0; i < rank; i++) {
        coords[i] = idx_is(dims[i], 1) ? idx(c, 0) : range_new(c, k->s->naxis++, dims[i]);
        if (coords[i]->op == OP_RANGE)
            k->ranges[k->nrange++] = coords[i];
    }
}

/* One kernel: out = t. */
static void store_value(Scope *at, Node *t, Node *root, Place out)
{
    Sched *s = at->s;
    if (dims_bound(t->rank, t->shape) == 0)
        return;
    Nest *k = NEW(s->arena, Nest);
    k->s = s;
    k->root = root;
    Node *coords[INGOT_MAX_RANK], *yes = node_bool(s->c, true);
    nest_ranges(k, t->rank, t->shape, coords);
    Node *value = lower_value(k, t, coords, yes);
    k->store = store_node(k, out, yes, value, coords);
    nest_end(at, k, t);
}

static Op update_op(int64_t how)
{
    switch (how) {
    case INGOT_ADD: return OP_ADD;
    case INGOT_MUL: return OP_MUL;
    case INGOT_MAX: return OP_MAX;
    default: return OP_MIN;
    }
}

/* out = x; then, in order, out[index] = v (or combined with what is there). */
static void store_update(Scope *at, Node *t, Place out)
{
    Sched *s = at->s;
    Context *c = s->c;
    Node *x = t->src[0], *v = t->src[1];
    const Info *there = info_of(s, x);
    bool in_place = there->buffer == out.buffer && !there->at && !out.at;
    if (!in_place)
        store_value(at, x, t, out);
    if (dims_bound(v->rank, v->shape) == 0 || dims_bound(x->rank, x->shape) == 0)
        return;
    Nest *k = NEW(s->arena, Nest);
    k->s = s;
    k->root = t;
    k->serial = true;
    Node *coords[INGOT_MAX_RANK], *to[INGOT_MAX_RANK], *gate = node_bool(c, true);
    nest_ranges(k, v->rank, v->shape, coords);
    for (int i = 0; i < x->rank; i++) {
        to[i] =
            node_cast(c, lower_value(k, t->src[2 + i], coords, node_bool(c, true)), INGOT_INDEX);
        note_index(k, t, i, to[i], node_bool(c, true));
        gate = bool_and(c, gate, idx_le(c, idx(c, 0), to[i]));
        gate = bool_and(c, gate, idx_lt(c, to[i], x->shape[i]));
    }
    Node *value = lower_value(k, v, coords, node_bool(c, true));
    if (t->arg.i != INGOT_SET) {
        Node *old = load_value(k, out.buffer, out.at, to, gate);
        value = node_alu2(c, update_op(t->arg.i), t->dtype, old, value);
    }
    k->store = store_node(k, out, gate, value, to);
    nest_end(at, k, t);
}

/* Is t, a stored value or a slice of one, at that place already? */
static bool lies_at(Sched *s, Node *t, Place place)
{
    Node *at[INGOT_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        at[i] = idx(s->c, 0);
    for (; t->op == OP_SHRINK && !info_of(s, t)->buffer; t = t->src[0])
        for (int i = 0; i < t->rank; i++)
            at[i] = idx_add(s->c, at[i], t->src[1 + 2 * i]);
    Info *f = info_of(s, t);
    bool same = f->buffer == place.buffer;
    for (int i = 0; i < t->rank && same; i++)
        same =
            idx_provably_equal(s->c, f->at ? idx_add(s->c, at[i], f->at[i]) : at[i], place.at[i]);
    return same;
}

static void store_concat(Scope *at, Node *t, Place out)
{
    Context *c = at->s->c;
    int axis = (int)t->arg.i;
    Node *to[INGOT_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        to[i] = out.at ? out.at[i] : idx(c, 0);
    for (uint32_t i = 0; i < t->nsrc; i++) {
        Place part = {out.buffer, to};
        if (!lies_at(at->s, t->src[i], part))
            store_value(at, t->src[i], t, part);
        to[axis] = idx_add(c, to[axis], t->src[i]->shape[axis]);
    }
}

/* Compute t into `out` with kernels of its own. */
static void compute_into(Scope *at, Node *t, Place out)
{
    Info *i = info_of(at->s, t);
    if (i->buffer || i->foldable) {
        store_value(at, t, NULL, out); /* a copy */
        return;
    }
    if (t->op == OP_UPDATE)
        store_update(at, t, out);
    else if (t->op == OP_CONCAT)
        store_concat(at, t, out);
    else
        store_value(at, t, t, out);
}

static void set_place(Scope *at, Node *t, Place place)
{
    info_of(at->s, t)->buffer = place.buffer;
    info_of(at->s, t)->at = place.at;
    vec_push(at->s->arena, at->made, at->nmade, t);
}

static void set_buffer(Scope *at, Node *t, Buffer *b)
{
    set_place(at, t, (Place){b, NULL});
}

static Buffer *arena_buffer(Scope *at, Node *t)
{
    return buffer_new(at->s, BUF_ARENA, t->dtype, t->rank, t->shape, t);
}

/* Where t is to be stored: in a buffer of its own, or in its home. */
static Place place_of(Scope *at, Node *t)
{
    Sched *s = at->s;
    Node **shift = NULL;
    int rank = t->rank;
    Info *i = info_of(s, t);
    for (; !i->buffer && i->home; t = i->home, i = info_of(s, t)) {
        if (!shift) {
            shift = NEWN(s->arena, Node *, rank + 1);
            for (int d = 0; d < rank; d++)
                shift[d] = idx(s->c, 0);
        }
        for (int d = 0; d < rank; d++)
            shift[d] = idx_add(s->c, shift[d], i->home_at[d]);
    }
    for (int d = 0; d < rank && shift && i->buffer && i->at; d++)
        shift[d] = idx_add(s->c, shift[d], i->at[d]);
    if (!i->buffer && !i->shared)
        i->shared = arena_buffer(at, t);
    return (Place){i->buffer ? i->buffer : i->shared, shift};
}

/* Is it all of the buffer? A state that grows, and what is in its home, are not. */
static bool fills(Sched *s, Node *t, const Buffer *b)
{
    bool all = !info_of(s, t)->at;
    for (int d = 0; d < t->rank && all; d++)
        all = idx_provably_equal(s->c, t->shape[d], b->dims[d]);
    return all;
}

/* A buffer that holds t and nothing else, for steps that read memory (calls, conditions). */
static Buffer *buffer_of(Scope *at, Node *t)
{
    Info *i = info_of(at->s, t);
    if (i->buffer && fills(at->s, t, i->buffer))
        return i->buffer;
    if (i->buffer) {
        Buffer *copy = arena_buffer(at, t);
        store_value(at, t, NULL, (Place){copy, NULL});
        return copy;
    }
    if (t->op == OP_PROJ && info_of(at->s, t->src[0])->tuple)
        return info_of(at->s, t->src[0])->tuple[t->arg.i];
    if (t->op == OP_DATA || i->foldable)
        return weight_buffer(at->s, t);
    Place place = place_of(at, t);
    compute_into(at, t, place);
    set_place(at, t, place);
    return place.buffer;
}

/* ---- blocks -------------------------------------------------------------------------------- */

typedef struct {
    Scope *at;
    Node **order;
    int n;
    Node **stack;
    int nstack;
} Walk;

static bool has_value(Sched *s, Node *n)
{
    return info_of(s, n)->buffer || info_of(s, n)->scalar || info_of(s, n)->tuple;
}

/* Nodes of the block in order of evaluation, sources first; stops at values that exist already.  A
 * run-time integer that a step sets depends on that step. */
static void walk_block(Walk *w, Node *root, Map *state)
{
    Sched *s = w->at->s;
    Arena *a = s->arena;
    vec_push(a, w->stack, w->nstack, root);
    while (w->nstack) {
        Node *n = w->stack[w->nstack - 1];
        uintptr_t seen = (uintptr_t)map_get(state, (uint64_t)n->id + 1);
        if (seen == 2 || (seen == 0 && has_value(s, n))) {
            w->nstack--;
            if (seen == 0)
                map_put(state, (uint64_t)n->id + 1, (void *)2);
            continue;
        }
        if (seen == 0) {
            map_put(state, (uint64_t)n->id + 1, (void *)1);
            Node *setter = n->op == OP_VAR ? s->c->vars[n->arg.i].setter : NULL;
            if (setter)
                vec_push(a, w->stack, w->nstack, setter);
            if (n->op == OP_LOOP && ((const Loop *)n->arg.ptr)->trip)
                vec_push(a, w->stack, w->nstack, ((const Loop *)n->arg.ptr)->trip);
            for (uint32_t i = n->nsrc; i-- > 0;)
                vec_push(a, w->stack, w->nstack, n->src[i]);
            continue;
        }
        w->nstack--;
        map_put(state, (uint64_t)n->id + 1, (void *)2);
        vec_push(a, w->order, w->n, n);
    }
}

static void mark_root(Sched *s, Node *n)
{
    info_of(s, n)->root = true;
}

/* ---- requirements --------------------------------------------------------------------------- */

/* Whether no step that is to come sets an integer of this expression. */
static bool all_set(Sched *s, Node *n)
{
    Node *setter = n->op == OP_VAR ? s->c->vars[n->arg.i].setter : NULL;
    bool set = !setter || has_value(s, setter);
    for (uint32_t i = 0; i < n->nsrc && set; i++)
        set = all_set(s, n->src[i]);
    return set;
}

/* Check what can be checked by now: before any step that may rely on it, since who mixes two sizes reads tensors of
 * both, and a tensor comes after its size. */
static void check_ready(Scope *at, const Requires *r, bool *done)
{
    Sched *s = at->s;
    for (int i = 0; i < r->n; i++) {
        const Require *q = r->item[i];
        if (done[i] || !all_set(s, q->value) || !all_set(s, q->least) || !all_set(s, q->greatest))
            continue;
        Step *step = step_new(at, STEP_CHECK);
        step->name = "check";
        step->require = q;
        if (q->origin)
            step_origin(s->arena, step, q->origin);
        done[i] = true;
    }
}

/* Schedule what is needed for n results, and the requirements of the block.  dest[i]: where result i must be, or NULL:
 * anywhere. */
static void schedule_block(Scope *at, int n, Node *const *results, Buffer *const *dest,
                           const Requires *require)
{
    Sched *s = at->s;
    Walk w = {.at = at};
    Map state = {0};
    bool *checked = NEWN(s->arena, bool, require->n + 1);
    for (int i = 0; i < require->n; i++) {
        walk_block(&w, require->item[i]->value, &state);
        walk_block(&w, require->item[i]->least, &state);
        walk_block(&w, require->item[i]->greatest, &state);
    }
    for (int i = 0; i < n; i++)
        walk_block(&w, results[i], &state);
    for (int i = 0; at->block == &s->plan->main && i < s->c->noutput_group; i++) {
        const IoGroup *g = &s->c->output_groups[i];
        if (g->length)
            walk_block(&w, g->length, &state);
        if (g->present)
            walk_block(&w, g->present, &state);
    }
    map_free(&state);
    for (int i = 0; i < w.n; i++)
        info_of(s, w.order[i])->root = false;
    for (int i = 0; i < n; i++)
        mark_root(s, results[i]);
    for (int i = 0; i < w.n; i++) {
        Node *t = w.order[i];
        bool reads_memory = t->op == OP_CALL || t->op == OP_LOOP || t->op == OP_IF;
        if (reads_memory)
            mark_root(s, t); /* it may be here for a run-time integer that it sets */
        for (uint32_t j = 0; reads_memory && j < t->nsrc; j++)
            mark_root(s, t->src[j]);
    }
    fuse(s, w.n, w.order);
    find_homes(s, w.n, w.order);
    for (int i = 0; i < n && dest; i++) /* only an update's own dest is where its operand lies */
        for (Node *t = results[i]; dest[i] && (t->op == OP_UPDATE || t->op == OP_CONCAT);
             t = t->src[0])
            if (info_of(s, t->src[0])->buffer == dest[i])
                place_updates(s, results[i], dest[i]);
    check_ready(at, require, checked);
    for (int i = 0; i < w.n; i++) {
        Node *t = w.order[i];
        if (!info_of(s, t)->stored || has_value(s, t))
            continue;
        Buffer *to = NULL;
        for (int j = 0; j < n && dest; j++)
            if (results[j] == t && dest[j] && (!to || dest[j]->kind == BUF_STATE))
                to = dest[j];
        if (to) {
            compute_into(at, t, (Place){to, NULL});
            set_buffer(at, t, to);
        } else {
            schedule_node(at, t);
        }
        if (op_info[t->op].cls == CONTROL)
            check_ready(at, require, checked);
    }
    for (int j = 0; j < n && dest; j++)
        if (dest[j] && info_of(s, results[j])->buffer != dest[j])
            compute_into(at, results[j], (Place){dest[j], NULL});
}

static void scope_end(Scope *at)
{
    for (int i = 0; i < at->nmade; i++) {
        info_of(at->s, at->made[i])->buffer = NULL;
        info_of(at->s, at->made[i])->at = NULL;
        info_of(at->s, at->made[i])->tuple = NULL;
        info_of(at->s, at->made[i])->scalar = NULL;
    }
}

/* ---- control -------------------------------------------------------------------------------- */

static void schedule_call(Scope *at, Node *t)
{
    Sched *s = at->s;
    const Call *call = t->arg.ptr;
    int n = call->n_in + call->n_out;
    Buffer **bufs = NEWN(s->arena, Buffer *, n + 1),
           **tuple = NEWN(s->arena, Buffer *, call->n_out + 1);
    for (int i = 0; i < call->n_in; i++)
        bufs[i] = buffer_of(at, t->src[i]);
    for (int i = 0; i < call->n_out; i++) {
        const ingot_call_out *o = &call->out[i];
        bufs[call->n_in + i] = tuple[i] = buffer_new(s, BUF_ARENA, o->dtype, o->rank, o->dims, t);
        tuple[i]->kept = i >= call->n_out - call->n_kept;
    }
    Step *step = step_new(at, STEP_CALL);
    step->name = call->name;
    step->call = call;
    step_bufs(s, step, n, bufs);
    step_origins(s, step, t);
    if (call->scratch_bytes) {
        Node **dim = NEW(s->arena, Node *);
        *dim = idx(s->c, (int64_t)call->scratch_bytes);
        step->scratch = buffer_new(s, BUF_ARENA, INGOT_U8, 1, dim, t);
    }
    info_of(s, t)->tuple = tuple;
    vec_push(s->arena, at->made, at->nmade, t);
}

static Step *copy_step(Scope *at, Buffer *dst, Node *dst_offset, Buffer *src)
{
    Sched *s = at->s;
    Step *step = step_new(at, STEP_COPY);
    step->name = "copy";
    step_bufs(s, step, 2, (Buffer *[]){dst, src});
    step->dst_offset = dst_offset;
    step->src_offset = idx(s->c, 0);
    step->elements = idx(s->c, 1);
    for (int i = 0; i < src->rank; i++)
        step->elements = idx_mul(s->c, step->elements, src->dims[i]);
    return step;
}

/* (cond, carried..., scan...) live in buffers; the body computes the next ones apart and copies
 * them over at its end, so that every read of an iteration sees the old values. */
static void schedule_loop(Scope *at, Node *t)
{
    Sched *s = at->s;
    Context *c = s->c;
    const Loop *loop = t->arg.ptr;
    struct Region *body = loop->body;
    int nc = loop->ncarried, ntuple = nc + loop->nscan;
    Buffer **tuple = NEWN(s->arena, Buffer *, ntuple + 1), *cond = NULL;
    for (uint32_t i = 1 + (uint32_t)nc; i < t->nsrc; i++) /* captures */
        if (t->src[i]->dtype != INGOT_INDEX && !info_of(s, t->src[i])->buffer)
            (void)buffer_of(at, t->src[i]);
    bool cond_read = loop->has_cond;
    if (cond_read) {
        cond = arena_buffer(at, body->param[1]);
        compute_into(at, t->src[0], (Place){cond, NULL});
    }
    for (int i = 0; i < nc; i++) {
        tuple[i] = arena_buffer(at, body->param[2 + i]);
        compute_into(at, t->src[1 + i], (Place){tuple[i], NULL});
    }
    for (int i = 0; i < loop->nscan; i++) {
        Node *r = body->result[1 + nc + i], **dims = NEWN(s->arena, Node *, r->rank + 1);
        dims[0] = loop->iterations;
        for (int d = 0; d < r->rank; d++)
            dims[1 + d] = r->shape[d];
        tuple[nc + i] = buffer_new(s, BUF_ARENA, r->dtype, r->rank + 1, dims, t);
    }
    Step *step = step_new(at, STEP_LOOP);
    step->name = "loop";
    step_origins(s, step, t);
    step->trip = loop->trip;
    step->counter = loop->counter;
    step->cond = cond;
    step->iterations = loop->iterations != loop->trip ? loop->iterations : NULL;

    Scope inner = {.s = s, .block = &step->body};
    info_of(s, body->param[0])->scalar = loop->counter;
    vec_push(s->arena, inner.made, inner.nmade, body->param[0]);
    if (cond) {
        set_buffer(&inner, body->param[1], cond);
    } else {
        info_of(s, body->param[1])->scalar = idx(c, 1);
        vec_push(s->arena, inner.made, inner.nmade, body->param[1]);
    }
    for (int i = 0; i < nc; i++)
        set_buffer(&inner, body->param[2 + i], tuple[i]);
    int nresult = body->nresult;
    Buffer **next = NEWN(s->arena, Buffer *, nresult);
    for (int i = 0; i < nresult; i++) {
        bool unchanged = (i == 0 && (!cond || body->result[0] == body->param[1])) ||
                         (i >= 1 && i <= nc && body->result[i] == body->param[1 + i]);
        bool in_place =
            i >= 1 && i <= nc &&
            dies_in_updates(s, body->param[1 + i], body->result[i], nresult, body->result);
        if (!unchanged)
            next[i] = in_place ? tuple[i - 1] : arena_buffer(&inner, body->result[i]);
    }
    int nwanted = 0;
    Node **wanted = NEWN(s->arena, Node *, nresult);
    Buffer **dest = NEWN(s->arena, Buffer *, nresult);
    for (int i = 0; i < nresult; i++)
        if (next[i]) {
            wanted[nwanted] = body->result[i];
            dest[nwanted++] = next[i];
        }
    schedule_block(&inner, nwanted, wanted, dest, &body->require);
    for (int i = 0; i < nresult; i++) {
        if (!next[i] || (i >= 1 && i <= nc && next[i] == tuple[i - 1]))
            continue;
        Node *offset = idx(c, 0);
        Buffer *to = i == 0 ? cond : tuple[i - 1];
        if (i > nc) {
            offset = loop->counter;
            for (int j = 0; j < body->result[i]->rank; j++)
                offset = idx_mul(c, offset, body->result[i]->shape[j]);
        }
        copy_step(&inner, to, offset, next[i]);
    }
    scope_end(&inner);
    info_of(s, t)->tuple = tuple;
    vec_push(s->arena, at->made, at->nmade, t);
}

static void schedule_if(Scope *at, Node *t)
{
    Sched *s = at->s;
    const If *branch = t->arg.ptr;
    Buffer **tuple = NEWN(s->arena, Buffer *, branch->n + 1);
    for (uint32_t i = 1; i < t->nsrc; i++)
        if (t->src[i]->dtype != INGOT_INDEX && !info_of(s, t->src[i])->buffer)
            (void)buffer_of(at, t->src[i]);
    Buffer *cond = buffer_of(at, t->src[0]);
    for (int i = 0; i < branch->n; i++)
        tuple[i] = arena_buffer(at, branch->then_branch->result[i]);
    Step *step = step_new(at, STEP_IF);
    step->name = "if";
    step_origins(s, step, t);
    step->cond = cond;
    for (int side = 0; side < 2; side++) {
        struct Region *r = side ? branch->else_branch : branch->then_branch;
        Scope inner = {.s = s, .block = side ? &step->other : &step->body};
        schedule_block(&inner, branch->n, r->result, tuple, &r->require);
        scope_end(&inner);
    }
    info_of(s, t)->tuple = tuple;
    vec_push(s->arena, at->made, at->nmade, t);
}

static void schedule_node(Scope *at, Node *t)
{
    switch (t->op) {
    case OP_CALL: schedule_call(at, t); break;
    case OP_LOOP: schedule_loop(at, t); break;
    case OP_IF: schedule_if(at, t); break;
    default: (void)buffer_of(at, t); break;
    }
}

/* ---- the plan --------------------------------------------------------------------------------- */

/* The dims of a state's buffer: of one that grows the greatest that its next value has, so that its rows stay in their
 * places. */
static Node *const *state_room(Sched *s, const StateTensor *state)
{
    Node *n = state->node;
    if (!state->grows)
        return n->shape;
    Node **dims = NEWN(s->arena, Node *, n->rank + 1);
    for (int i = 0; i < n->rank; i++) {
        int64_t now = n->shape[i]->hi, then = state->next ? state->next->shape[i]->hi : 0;
        dims[i] = idx(s->c, now > then ? now : then);
    }
    return dims;
}

static void declare_inputs(Sched *s, Scope *at)
{
    Plan *p = s->plan;
    Context *c = s->c;
    p->input = NEWN(s->arena, Buffer *, c->ninput + 1);
    for (int i = 0; i < c->ninput; i++) {
        Node *n = c->inputs[i].node;
        Buffer *b = buffer_new(s, BUF_INPUT, n->dtype, n->rank, n->shape, n);
        b->slot = i;
        b->name = c->inputs[i].name;
        p->input[i] = b;
        set_buffer(at, n, b);
        for (int axis = 0; axis < n->rank; axis++)
            if (!idx_value(n->shape[axis], NULL)) {
                DimSource d = {.input = i, .axis = axis, .dim = n->shape[axis]};
                vec_push(s->arena, p->dim_sources, p->ndim_source, d);
            }
    }
    p->state = NEWN(s->arena, Buffer *, c->nstate + 1);
    for (int i = 0; i < c->nstate; i++) {
        Node *n = c->states[i].node;
        Buffer *b = buffer_new(s, BUF_STATE, n->dtype, n->rank, state_room(s, &c->states[i]), n);
        b->slot = i;
        b->name = c->states[i].name;
        p->state[i] = b;
        set_buffer(at, n, b);
    }
}

/* Every run-time dim of an input must be a plain integer somewhere, or nobody can know it. */
static void check_dims_known(Sched *s)
{
    Plan *p = s->plan;
    bool *set = NEWN(s->arena, bool, s->c->nvar + 1);
    for (int i = 0; i < s->c->nvar; i++)
        set[i] = s->c->vars[i].length;
    for (int i = 0; i < p->ndim_source; i++)
        if (p->dim_sources[i].dim->op == OP_VAR)
            set[p->dim_sources[i].dim->arg.i] = true;
    for (int i = 0; i < s->c->ninput_group; i++) {
        const IoGroup *g = &s->c->input_groups[i];
        if (g->length && g->length->op == OP_VAR)
            set[g->length->arg.i] = true;
        if (g->present && g->present->op == OP_VAR)
            set[g->present->arg.i] = true;
    }
    for (int v = 0; v < s->c->nvar; v++) {
        Var *var = &s->c->vars[v];
        if (var->kind == VAR_DIM && !set[v])
            ingot_error(s->c, INGOT_UNSUPPORTED,
                        "run-time dim '%s' is the size of no input's axis, so its value "
                        "cannot be known when the model runs",
                        var->name);
    }
}

Plan *plan_new(Context *c)
{
    Arena *a = arena_new();
    Plan *p = NEW(a, Plan);
    p->c = c;
    p->arena = a;
    return p;
}

bool plan_schedule(Plan *p, int opt_level, const Target *target)
{
    Context *c = p->c;
    if (c->nerror)
        return false;
    ingot_set_origin(c, NULL, NULL);
    Arena *a = p->arena;
    Sched *s = NEW(a, Sched);
    *s = (Sched){.c = c,
                 .arena = a,
                 .plan = p,
                 .opt_level = opt_level,
                 .check = !target->gpu,
                 .fuse_rows = opt_level > 0,
                 .target = target};
    s->info = NEWN(a, Info *, INFO_CHUNKS);
    find_readers(s);
    Scope at = {.s = s, .block = &p->main};
    declare_inputs(s, &at);
    check_dims_known(s);
    int nout = c->noutput, n = nout + c->nstate;
    Node **results = NEWN(a, Node *, n + 1);
    Buffer **dest = NEWN(a, Buffer *, n + 1);
    p->output = NEWN(a, Buffer *, nout + 1);
    for (int i = 0; i < nout; i++) {
        Node *t = results[i] = c->outputs[i].node;
        dest[i] = p->output[i] = buffer_new(s, BUF_OUTPUT, t->dtype, t->rank, t->shape, t);
        dest[i]->slot = i;
        dest[i]->name = c->outputs[i].name;
    }
    for (int i = 0; i < c->nstate; i++) {
        Node *next = c->states[i].next ? c->states[i].next : c->states[i].node;
        results[nout + i] = next;
    }
    for (int i = 0; i < c->nstate; i++) {
        Node *next = results[nout + i], *state = c->states[i].node;
        bool in_place = c->states[i].grows ? is_appended_to(state, next)
                                           : dies_in_updates(s, state, next, n, results);
        if (next != state)
            dest[nout + i] =
                in_place ? p->state[i]
                         : buffer_new(s, BUF_ARENA, next->dtype, next->rank, next->shape, next);
    }
    if (!c->nerror) {
        schedule_block(&at, n, results, dest, &c->require);
        for (int i = 0; i < c->nstate; i++)
            if (!dest[nout + i] || dest[nout + i] == p->state[i])
                continue;
            else if (c->states[i].grows)
                store_value(&at, results[nout + i], NULL, (Place){p->state[i], NULL});
            else
                copy_step(&at, p->state[i], idx(c, 0), dest[nout + i]);
    }
    if (c->nerror)
        return false;
    if (s->fuse_rows && !s->target->gpu)
        merge_kernels(s);
    return true;
}

Plan *schedule(Context *c, int opt_level, const Target *target)
{
    Plan *p = plan_new(c);
    if (plan_schedule(p, opt_level, target))
        return p;
    plan_free(p);
    return NULL;
}

/* Kernels that were not shared yet belong to their steps. */
static void free_kernels(Block *b)
{
    for (int i = 0; i < b->n; i++) {
        if (b->step[i]->kernel)
            ingot_context_free(b->step[i]->kernel->c);
        free_kernels(&b->step[i]->body);
        free_kernels(&b->step[i]->other);
    }
}

void plan_free(Plan *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->nkernel; i++)
        ingot_context_free(p->kernels[i]->c);
    if (!p->nkernel)
        free_kernels(&p->main);
    values_free(p);
    arena_free(p->arena);
}
