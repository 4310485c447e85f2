/* schedule_control.c - calls, loops and branches become steps; bodies are blocks of their own. */
#include <string.h>

#include "rewrite.h"
#include "schedule_scope.h"

static void schedule_call(BlockScope *at, Node *t)
{
    Sched *s = at->s;
    const Call *call = t->arg.ptr;
    int n = call->n_in + call->n_out;
    Buffer **bufs = NEWN(s->arena, Buffer *, n + 1);
    StoredPlace *tuple = NEWN(s->arena, StoredPlace, call->n_out + 1);
    for (int i = 0; i < call->n_in; i++)
        bufs[i] = schedule_buffer(at, t->src[i]);
    for (int i = 0; i < call->n_out; i++) {
        const ingot_call_out *o = &call->out[i];
        Buffer *b = buffer_new(s, BUF_ARENA, o->dtype, o->rank, o->dims, t);
        b->kept = i >= call->n_out - call->n_kept;
        bufs[call->n_in + i] = tuple[i].buffer = b;
    }
    Step *step = schedule_step(at, STEP_CALL);
    step->name = call->name;
    step->call = call;
    schedule_step_bufs(s, step, n, bufs);
    step_origins(s, step, t);
    if (call->scratch_bytes) {
        Node **dim = NEW(s->arena, Node *);
        *dim = idx(s->c, (int64_t)call->scratch_bytes);
        step->scratch = buffer_new(s, BUF_ARENA, INGOT_U8, 1, dim, t);
    }
    schedule_placed(s, t, call->n_out, tuple);
    info_of(s, t)->tuple = tuple;
    vec_push(s->arena, at->made, at->nmade, t);
}

Step *schedule_copy(BlockScope *at, Buffer *dst, Node *dst_offset, Buffer *src)
{
    Sched *s = at->s;
    Step *step = schedule_step(at, STEP_COPY);
    step->name = "copy";
    step->device = dst->device;
    schedule_step_bufs(s, step, 2, (Buffer *[]){dst, src});
    step->dst_offset = dst_offset;
    step->src_offset = idx(s->c, 0);
    step->elements = idx(s->c, 1);
    for (int i = 0; i < src->rank; i++)
        step->elements = idx_mul(s->c, step->elements, src->dims[i]);
    return step;
}

static void set_integer(Sched *s, Node *param, Node *integer)
{
    info_of(s, param)->scalar = integer;
    vec_push(s->arena, s->plan->placed, s->plan->nplaced,
             ((Placement){.node = param, .integer = integer}));
}

/* Where v begins in an UPDATE along an axis, if it lies there as it is; NULL: it does not. */
static Node *begin_of(Context *c, const Node *t, int axis)
{
    const Node *v = t->src[1];
    Node *coords[INGOT_MAX_RANK], *i;
    for (int d = 0; d < v->rank; d++)
        coords[d] = idx_is(v->shape[d], 1) ? idx(c, 0) : range_new(c, RANGE_ASKED + d, v->shape[d]);
    i = index_at(c, t->src[2 + axis], coords, 0);
    i = i ? idx_from_value(c, i) : NULL;
    i = i ? idx_sub(c, i, coords[axis]) : NULL;
    return i && is_loop_free(i) ? i : NULL;
}

/* Does an iteration write all of the value along every axis but one, and do all iterations all
 * along that? */
bool is_overwritten(Context *c, const Node *control, uint32_t src)
{
    const Loop *loop = control->op == OP_LOOP ? control->arg.ptr : NULL;
    if (!loop || src < 1 || src > (uint32_t)loop->ncarried || loop->has_cond)
        return false;
    Node *t = loop->body->result[src], *from[INGOT_MAX_RANK];
    int64_t n, size = 0, all = 0, end = 0;
    int along = -1;
    if (t->op != OP_UPDATE || t->arg.i != INGOT_SET || t->src[0] != loop->body->param[1 + src] ||
        t->src[1]->rank != t->rank || !idx_value(loop->trip, &n))
        return false;
    for (int d = 0; d < t->rank; d++) {
        from[d] = begin_of(c, t, d);
        if (!from[d])
            return false;
        if (idx_is(from[d], 0) && t->src[1]->shape[d] == t->shape[d])
            continue;
        if (along >= 0 || !idx_value(t->shape[d], &all) || !idx_value(t->src[1]->shape[d], &size))
            return false;
        along = d;
    }
    for (int64_t i = 0; i < n && along >= 0; i++) {
        Node *count = idx(c, i);
        int64_t at;
        if (!idx_value(substitute(c, from[along], 1, &loop->counter, &count), &at) || at > end)
            return false;
        end = at + size > end ? at + size : end;
    }
    return along < 0 ? n > 0 : end >= all;
}

/* Where a loop has what it carries and what it collects, and its condition (or NULL): with what
 * they hold before the first iteration. What is overwritten part by part may have a home, or be
 * what the caller gets. */
static Buffer *loop_buffers(BlockScope *at, Node *t, StoredPlace *tuple)
{
    Sched *s = at->s;
    const Loop *loop = t->arg.ptr;
    struct Region *body = loop->body;
    int nc = loop->ncarried;
    Buffer *cond = NULL;
    if (loop->has_cond) {
        cond = schedule_arena(at, body->param[1]);
        schedule_into(at, t->src[0], (StoredPlace){cond, NULL});
    }
    for (int i = 0; i < nc; i++) {
        const bool overwritten = is_overwritten(s->c, t, 1 + (uint32_t)i);
        const Info *made = info_of(s, tuple_result(s->c, t, i));
        if (overwritten && (made->home || made->shared))
            tuple[i] = schedule_place_of(at, tuple_result(s->c, t, i));
        else
            tuple[i].buffer = schedule_arena(at, body->param[2 + i]);
        if (!overwritten)
            schedule_into(at, t->src[1 + i], tuple[i]);
    }
    for (int i = 0; i < loop->nscan; i++) {
        Node *r = body->result[1 + nc + i], **dims = NEWN(s->arena, Node *, r->rank + 1);
        dims[0] = loop->iterations;
        for (int d = 0; d < r->rank; d++)
            dims[1 + d] = r->shape[d];
        tuple[nc + i].buffer = buffer_new(s, BUF_ARENA, r->dtype, r->rank + 1, dims, t);
    }
    return cond;
}

/* The body: results that are not those of before are computed apart, then copied to where the next
 * iteration reads them, or to their place in what is collected. Parts of what the caller gets lie
 * as the kernels that compute them want it before they are copied there. */
static void loop_results(BlockScope *inner, const Loop *loop, Buffer *cond,
                         const StoredPlace *tuple)
{
    Sched *s = inner->s;
    Context *c = s->c;
    struct Region *body = loop->body;
    int nc = loop->ncarried, nresult = body->nresult, nwanted = 0;
    StoredPlace *next = NEWN(s->arena, StoredPlace, nresult),
                *dest = NEWN(s->arena, StoredPlace, 2 * nresult);
    Node **wanted = NEWN(s->arena, Node *, 2 * nresult);
    bool *in_place = NEWN(s->arena, bool, nresult);
    for (int i = 0; i < nresult; i++) {
        Node *t = body->result[i];
        bool unchanged = (i == 0 && (!cond || t == body->param[1])) ||
                         (i >= 1 && i <= nc && t == body->param[1 + i]);
        in_place[i] =
            i >= 1 && i <= nc && dies_in_updates(s, body->param[1 + i], t, nresult, body->result);
        if (unchanged)
            continue;
        next[i] = in_place[i] ? tuple[i - 1] : (StoredPlace){schedule_arena(inner, t), NULL};
        if (in_place[i] && next[i].buffer->kind == BUF_OUTPUT)
            wanted[nwanted++] = t->src[1];
        wanted[nwanted] = t;
        dest[nwanted++] = next[i];
    }
    schedule_block(inner, nwanted, wanted, dest, &body->require);
    for (int i = 0; i < nresult; i++) {
        if (!next[i].buffer || in_place[i])
            continue;
        Node *offset = idx(c, 0);
        Buffer *to = i == 0 ? cond : tuple[i - 1].buffer;
        if (i > nc) {
            offset = loop->counter;
            for (int j = 0; j < body->result[i]->rank; j++)
                offset = idx_mul(c, offset, body->result[i]->shape[j]);
        }
        schedule_copy(inner, to, offset, next[i].buffer);
    }
}

/* (cond, carried..., scan...) live in buffers; the body computes the next ones apart and copies
 * them over at its end, so that every read of an iteration sees the old values. */
static void schedule_loop(BlockScope *at, Node *t)
{
    Sched *s = at->s;
    const Loop *loop = t->arg.ptr;
    struct Region *body = loop->body;
    int nc = loop->ncarried, ntuple = nc + loop->nscan;
    StoredPlace *tuple = NEWN(s->arena, StoredPlace, ntuple + 1);
    for (uint32_t i = 1 + (uint32_t)nc; i < t->nsrc; i++) /* captures */
        if (t->src[i]->dtype != INGOT_INDEX && !info_of(s, t->src[i])->buffer)
            (void)schedule_buffer(at, t->src[i]);
    Buffer *cond = loop_buffers(at, t, tuple);
    Step *step = schedule_step(at, STEP_LOOP);
    step->name = "loop";
    step_origins(s, step, t);
    step->trip = loop->trip;
    step->counter = loop->counter;
    step->cond = cond;
    step->iterations = loop->iterations != loop->trip ? loop->iterations : NULL;

    BlockScope inner = {.s = s, .block = &step->body};
    set_integer(s, body->param[0], loop->counter);
    vec_push(s->arena, inner.made, inner.nmade, body->param[0]);
    if (cond) {
        schedule_set_buffer(&inner, body->param[1], cond);
    } else {
        set_integer(s, body->param[1], idx(s->c, 1));
        vec_push(s->arena, inner.made, inner.nmade, body->param[1]);
    }
    for (int i = 0; i < nc; i++)
        schedule_set_place(&inner, body->param[2 + i], tuple[i]);
    loop_results(&inner, loop, cond, tuple);
    schedule_end(&inner);
    schedule_placed(s, t, ntuple, tuple);
    info_of(s, t)->tuple = tuple;
    vec_push(s->arena, at->made, at->nmade, t);
    for (int i = 0; i < nc; i++)
        if (is_overwritten(s->c, t, 1 + (uint32_t)i))
            schedule_set_place(at, tuple_result(s->c, t, i), tuple[i]);
}

static void schedule_if(BlockScope *at, Node *t)
{
    Sched *s = at->s;
    const If *branch = t->arg.ptr;
    StoredPlace *tuple = NEWN(s->arena, StoredPlace, branch->n + 1);
    for (uint32_t i = 1; i < t->nsrc; i++)
        if (t->src[i]->dtype != INGOT_INDEX && !info_of(s, t->src[i])->buffer)
            (void)schedule_buffer(at, t->src[i]);
    Buffer *cond = schedule_buffer(at, t->src[0]);
    for (int i = 0; i < branch->n; i++)
        tuple[i].buffer = schedule_arena(at, branch->then_branch->result[i]);
    Step *step = schedule_step(at, STEP_IF);
    step->name = "if";
    step_origins(s, step, t);
    step->cond = cond;
    for (int side = 0; side < 2; side++) {
        struct Region *r = side ? branch->else_branch : branch->then_branch;
        BlockScope inner = {.s = s, .block = side ? &step->other : &step->body};
        schedule_block(&inner, branch->n, r->result, tuple, &r->require);
        schedule_end(&inner);
    }
    schedule_placed(s, t, branch->n, tuple);
    info_of(s, t)->tuple = tuple;
    vec_push(s->arena, at->made, at->nmade, t);
}

void schedule_node(BlockScope *at, Node *t)
{
    switch (t->op) {
    case OP_CALL: schedule_call(at, t); break;
    case OP_LOOP: schedule_loop(at, t); break;
    case OP_IF: schedule_if(at, t); break;
    default: (void)schedule_buffer(at, t); break;
    }
}
