/* schedule.c - the graph becomes a plan: a list of steps over buffers.
 *
 * A block (the whole model, a loop's body, a branch) is scheduled by one walk over its nodes,
 * sources first: fuse() marks what is stored, each stored node becomes a kernel that writes
 * its buffer, control nodes become steps that hold blocks of their own.  Values of an outer
 * block keep their buffers inside; buffers made inside are forgotten when the block ends. */
#include <stdlib.h>
#include <string.h>

#include "decisions.h"
#include "schedule_scope.h"

/* ---- steps ------------------------------------------------------------------------------ */

Step *schedule_step(BlockScope *at, StepKind kind)
{
    Sched *s = at->s;
    Step *step = NEW(s->arena, Step);
    step->kind = kind;
    step->name = "";
    vec_push(s->arena, at->block->step, at->block->n, step);
    return step;
}

void schedule_step_bufs(Sched *s, Step *step, int n, Buffer *const *bufs)
{
    step->nbuf = n;
    step->bufs = NEWN(s->arena, Buffer *, n);
    if (n)
        memcpy(step->bufs, bufs, (size_t)n * sizeof *bufs);
}

/* ---- blocks -------------------------------------------------------------------------------- */

typedef struct {
    BlockScope *at;
    Node **order;
    int n;
    Node **stack;
    int nstack;
    Arena *a;       /* of the walk alone */
    uint8_t *state; /* by id */
} ScheduleWalk;

enum { UNSEEN, BELOW, DONE }; /* what is below it is walked; it is in order, or needs no step */

static bool has_value(Sched *s, Node *n)
{
    const Info *i = info_of(s, n);
    return i->buffer || i->scalar || i->tuple;
}

/* A call is told the sizes of its results, so it comes after what sets them: but for those that it
 * sets itself. */
static void push_result_sizes(ScheduleWalk *w, const Call *call)
{
    for (int i = 0; i < call->n_out; i++)
        for (int axis = 0; axis < call->out[i].rank; axis++)
            if (!call_decides(call, call->out[i].dims[axis]))
                vec_push(w->a, w->stack, w->nstack, call->out[i].dims[axis]);
}

/* Nodes of the block in order of evaluation, sources first; stops at values that exist already.  A
 * run-time integer that a step sets depends on that step. */
static void walk_block(ScheduleWalk *w, Node *root)
{
    Sched *s = w->at->s;
    Arena *a = w->a;
    vec_push(a, w->stack, w->nstack, root);
    while (w->nstack) {
        Node *n = w->stack[w->nstack - 1];
        uint8_t *state = &w->state[n->id];
        if (*state == UNSEEN && has_value(s, n))
            *state = DONE;
        if (*state == DONE) {
            w->nstack--;
            continue;
        }
        if (*state == UNSEEN) {
            *state = BELOW;
            Node *setter = n->op == OP_VAR ? s->c->vars[n->arg.i].setter : NULL;
            if (setter)
                vec_push(a, w->stack, w->nstack, setter);
            if (n->op == OP_LOOP && ((const Loop *)n->arg.ptr)->trip)
                vec_push(a, w->stack, w->nstack, ((const Loop *)n->arg.ptr)->trip);
            if (n->op == OP_CALL)
                push_result_sizes(w, n->arg.ptr);
            for (uint32_t i = n->nsrc; i-- > 0;)
                if (w->state[n->src[i]->id] != DONE)
                    vec_push(a, w->stack, w->nstack, n->src[i]);
            continue;
        }
        w->nstack--;
        *state = DONE;
        vec_push(s->arena, w->order, w->n, n);
    }
}

typedef struct {
    int i, below; /* which result; nodes that it needs */
} ResultWork;

static int by_work(const void *x, const void *y)
{
    const ResultWork *a = x, *b = y;
    return a->below != b->below ? (a->below < b->below ? -1 : 1) : a->i - b->i;
}

/* Results of the model; of states those that need the least come first, so a step of training
 * changes the last layer's weights while the gradient is there. */
static void walk_results(ScheduleWalk *w, int n, Node *const *results)
{
    const int nout = w->at->block == &w->at->s->plan->main ? w->at->s->c->noutput : n;
    ResultWork *work = NEWN(w->a, ResultWork, n + 1);
    for (int i = nout; i < n; i++) {
        Arena *a = arena_new();
        work[i].i = i;
        (void)graph_toposort(a, 1, &results[i], &work[i].below);
        arena_free(a);
    }
    for (int i = 0; i < nout; i++)
        walk_block(w, results[i]);
    if (n > nout)
        qsort(work + nout, (size_t)(n - nout), sizeof *work, by_work);
    for (int i = nout; i < n; i++)
        walk_block(w, results[work[i].i]);
}

static void mark_root(Sched *s, Node *n)
{
    info_of(s, n)->root = true;
}

/* Which device has a value: what it is made of does, but for constants, which lie wherever they are
 * read. */
static int device_of(Sched *s, const Node *n)
{
    int device = n->op == OP_STATE ? s->c->states[n->arg.i].device : 0;
    if (n->op == OP_COPY)
        return (int)n->arg.i;
    for (uint32_t i = 0; i < n->nsrc; i++) {
        const int of = n->src[i]->dtype == INGOT_INDEX ? 0 : info_of(s, n->src[i])->device;
        device = of > device ? of : device;
    }
    return device;
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

/* Check what can be checked by now: before any step that may rely on it, since who mixes two sizes
 * reads tensors of both, and a tensor comes after its size. */
static void check_ready(BlockScope *at, const Requires *r, bool *done)
{
    Sched *s = at->s;
    for (int i = 0; i < r->n; i++) {
        const Require *q = r->item[i];
        if (done[i] || !all_set(s, q->value) || !all_set(s, q->least) || !all_set(s, q->greatest))
            continue;
        Step *step = schedule_step(at, STEP_CHECK);
        step->name = "check";
        step->require = q;
        if (q->origin)
            step_origin(s->arena, step, q->origin);
        done[i] = true;
    }
}

/* Schedule what is needed for n results, and the requirements of the block.  dest[i]: where result
 * i must be, or NULL: anywhere. */
void schedule_block(BlockScope *at, int n, Node *const *results, const StoredPlace *dest,
                    const Requires *require)
{
    Sched *s = at->s;
    ScheduleWalk w = {.at = at, .a = arena_new()};
    w.state = NEWN(w.a, uint8_t, s->c->nnode);
    bool *checked = NEWN(s->arena, bool, require->n + 1);
    for (int i = 0; i < require->n; i++) {
        walk_block(&w, require->item[i]->value);
        walk_block(&w, require->item[i]->least);
        walk_block(&w, require->item[i]->greatest);
    }
    walk_results(&w, n, results);
    for (int i = 0; at->block == &s->plan->main && i < s->c->noutput_group; i++) {
        const IoGroup *g = &s->c->output_groups[i];
        if (g->length)
            walk_block(&w, g->length);
        if (g->present)
            walk_block(&w, g->present);
    }
    arena_free(w.a);
    for (int i = 0; i < w.n; i++) {
        info_of(s, w.order[i])->root = info_of(s, w.order[i])->brought = false;
        info_of(s, w.order[i])->device = device_of(s, w.order[i]);
    }
    for (int i = 0; i < n; i++)
        mark_root(s, results[i]);
    for (int i = 0; i < w.n; i++) {
        Node *t = w.order[i];
        bool reads_memory = t->op == OP_CALL || t->op == OP_LOOP || t->op == OP_IF ||
                            t->op == OP_COPY || t->op == OP_COLLECTIVE;
        info_of(s, t)->brought = t->op == OP_COPY && !info_of(s, t)->root;
        if (reads_memory)
            mark_root(s, t); /* it may be here for a run-time integer that it sets */
        Node *from;
        for (uint32_t j = 0; reads_memory && j < t->nsrc; j++)
            if (!is_overwritten(s->c, t, j))
                mark_root(s, t->op == OP_COPY ? copied_value(s, t, &from) : t->src[j]);
    }
    fuse(s, w.n, w.order);
    order_beside_rows(s, w.n, w.order);
    find_homes(s, w.n, w.order);
    for (int i = 0; i < n && dest; i++) /* only an update's own dest is where its operand lies */
        for (Node *t = results[i]; dest[i].buffer && (t->op == OP_UPDATE || t->op == OP_CONCAT);
             t = t->src[0])
            if (info_of(s, t->src[0])->buffer == dest[i].buffer)
                place_updates(s, results[i], dest[i].buffer);
    for (int i = 0; i < n && dest; i++) {
        Node *t = results[i];
        const bool parts =
            t->op == OP_PROJ && is_overwritten(s->c, t->src[0], 1 + (uint32_t)t->arg.i);
        if (parts && dest[i].buffer && !info_of(s, t)->home)
            info_of(s, t)->shared = dest[i].buffer;
    }
    check_ready(at, require, checked);
    for (int i = 0; i < w.n; i++) {
        Node *t = w.order[i];
        if (!info_of(s, t)->stored || info_of(s, t)->beside || has_value(s, t))
            continue;
        StoredPlace to = {0};
        for (int j = 0; j < n && dest; j++)
            if (results[j] == t && dest[j].buffer &&
                (!to.buffer || dest[j].buffer->kind == BUF_STATE))
                to = dest[j];
        if (to.buffer) {
            schedule_into(at, t, to);
            schedule_set_place(at, t, to);
        } else {
            schedule_node(at, t);
        }
        if (op_info[t->op].cls == CONTROL)
            check_ready(at, require, checked);
    }
    for (int j = 0; j < n && dest; j++)
        if (dest[j].buffer && info_of(s, results[j])->buffer != dest[j].buffer)
            schedule_into(at, results[j], dest[j]);
}

void schedule_end(BlockScope *at)
{
    for (int i = 0; i < at->nmade; i++) {
        info_of(at->s, at->made[i])->buffer = NULL;
        info_of(at->s, at->made[i])->at = NULL;
        info_of(at->s, at->made[i])->tuple = NULL;
        info_of(at->s, at->made[i])->scalar = NULL;
    }
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* The dims of a state's buffer: of one that grows the greatest that its next value has, so that its
 * rows stay in their places. */
static Node *const *state_room(Sched *s, const StateTensor *state)
{
    Node *n = state->node;
    if (!state->grows)
        return n->shape;
    Node **dims = NEWN(s->arena, Node *, n->rank + 1);
    for (int i = 0; i < n->rank; i++)
        dims[i] = idx(s->c, state_room_along(s->c, (int)n->arg.i, i));
    return dims;
}

static void declare_inputs(Sched *s, BlockScope *at)
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
        schedule_set_buffer(at, n, b);
        for (int axis = 0; axis < n->rank; axis++)
            if (!idx_value(n->shape[axis], NULL)) {
                DimSource d = {.input = i, .axis = axis, .dim = n->shape[axis]};
                vec_push(s->arena, p->dim_sources, p->ndim_source, d);
            }
    }
    p->state = NEWN(s->arena, Buffer *, c->nstate + 1);
    p->begin = NEWN(s->arena, Buffer *, c->nstate + 1);
    for (int i = 0; i < c->nstate; i++) {
        Node *n = c->states[i].node;
        Buffer *b = buffer_new(s, BUF_STATE, n->dtype, n->rank, state_room(s, &c->states[i]), n);
        b->slot = i;
        b->name = c->states[i].name;
        b->device = info_of(s, n)->device = c->states[i].device;
        p->state[i] = b;
        schedule_set_buffer(at, n, b);
        Node *begin =
            c->function ? NULL : c->states[i].begin; /* the first function's plan has it */
        p->begin[i] =
            !begin ? NULL : buffer_new(s, BUF_WEIGHT, n->dtype, n->rank, begin->shape, begin);
    }
}

/* Which run-time dims the selected function has anything to do with. */
static bool *dims_used(Sched *s)
{
    Context *c = s->c;
    int n, nroot = 0;
    Node **nodes = graph_nodes(s->arena, c, &n), **roots = NULL;
    for (int i = 0; i < n; i++) {
        for (int a = 0; a < nodes[i]->rank; a++)
            vec_push(s->arena, roots, nroot, nodes[i]->shape[a]);
        vec_push(s->arena, roots, nroot, nodes[i]);
    }
    bool *used = NEWN(s->arena, bool, c->nvar + 1);
    Node **all = nroot ? graph_toposort(s->arena, nroot, roots, &n) : NULL;
    for (int i = 0; all && i < n; i++)
        if (all[i]->op == OP_VAR)
            used[all[i]->arg.i] = true;
    return used;
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
    const bool *used = s->c->nfunction ? dims_used(s) : NULL;
    for (int v = 0; v < s->c->nvar; v++) {
        Var *var = &s->c->vars[v];
        if (var->kind == VAR_DIM && !set[v] && (!used || used[v]))
            ingot_error(s->c, INGOT_UNSUPPORTED,
                        "run-time dim '%s' is the size of no input's axis, so its value "
                        "cannot be known when the model runs",
                        var->name);
    }
}

static bool schedule_graph(Sched *s)
{
    Context *c = s->c;
    Plan *p = s->plan;
    Arena *a = p->arena;
    BlockScope at = {.s = s, .block = &p->main};
    declare_inputs(s, &at);
    check_dims_known(s);
    int nout = c->noutput, n = nout + c->nstate;
    Node **results = NEWN(a, Node *, n + 1);
    StoredPlace *dest = NEWN(a, StoredPlace, n + 1);
    p->output = NEWN(a, Buffer *, nout + 1);
    for (int i = 0; i < nout; i++) {
        Node *t = results[i] = c->outputs[i].node;
        Buffer *b = p->output[i] = buffer_new(s, BUF_OUTPUT, t->dtype, t->rank, t->shape, t);
        b->slot = i;
        b->name = c->outputs[i].name;
        dest[i].buffer = b;
    }
    for (int i = 0; i < c->nstate; i++) {
        Node *next = c->states[i].next ? c->states[i].next : c->states[i].node;
        results[nout + i] = next;
    }
    for (int i = 0; i < c->nstate; i++) {
        Node *next = results[nout + i], *state = c->states[i].node;
        bool in_place = c->states[i].grows ? is_appended_to(state, next)
                                           : dies_in_updates(s, state, next, n, results);
        if (next == state)
            continue;
        dest[nout + i].buffer =
            in_place ? p->state[i]
                     : buffer_new(s, BUF_ARENA, next->dtype, next->rank, next->shape, next);
        dest[nout + i].buffer->device = c->states[i].device;
    }
    if (!c->nerror) {
        schedule_block(&at, n, results, dest, &c->require);
        for (int i = 0; i < c->nstate; i++)
            if (!dest[nout + i].buffer || dest[nout + i].buffer == p->state[i])
                continue;
            else if (c->states[i].grows)
                schedule_store(&at, results[nout + i], NULL, (StoredPlace){p->state[i], NULL});
            else
                schedule_copy(&at, p->state[i], idx(c, 0), dest[nout + i].buffer);
    }
    if (c->nerror)
        return false;
    if (s->fuse_rows)
        merge_kernels(s);
    return true;
}

bool plan_schedule(Plan *p, int opt_level, const Target *target)
{
    Context *c = p->c;
    if (c->nerror)
        return false;
    ingot_set_origin(c, NULL, NULL);
    Sched s = {.c = c,
               .arena = p->arena,
               .scratch = arena_new(),
               .plan = p,
               .opt_level = opt_level,
               .check = !target->gpu,
               .fuse_rows = opt_level > 0,
               .target = target,
               .ngraph = c->nnode};
    const bool done = schedule_graph(&s);
    arena_free(s.scratch);
    return done;
}

Plan *schedule(Context *c, int opt_level, const Target *target)
{
    Plan *p = plan_new(c);
    if (plan_schedule(p, opt_level, target))
        return p;
    plan_free(p);
    return NULL;
}
