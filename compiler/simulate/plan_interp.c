/* plan_interp.c - the steps of a plan, one after the other, as a bundle's run() has them: kernels
 * by linear_exec.c, library kernels by the functions that ship with a bundle.
 *
 * Every buffer is where the memory plan has put it, so a buffer that lies on another one, or is
 * updated where it lies, is judged too: with its first step, its bytes are taken to be written by
 * nobody. */
#include "plan_interp.h"

#include <string.h>

#include "interp.h"

typedef struct {
    PlanInterp *x;
    const Plan *p;
    Arena *a;
    Interp *ip; /* run-time integers, and constants */
    LinearInterp m;
    ShadowMemory **memory; /* by Plan.memories */
    ShadowMemory **own;    /* by buffer: of weights, inputs, outputs and locals */
    struct Interpreted {
        Lowered *own; /* that nobody else has asked for, or NULL */
        LinearKernel *lk;
    } * kernel, *naive; /* by Plan.kernels */
} PlanRun;

typedef struct {
    ShadowMemory *m;
    int64_t at;
    int64_t size; /* of the buffer, in bytes; of a view that moves, to the end of what it is in */
} Spot;

static bool fault(PlanRun *r, const Step *s, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool fault(PlanRun *r, const Step *s, const char *format, ...)
{
    char *to = r->x->fault;
    const size_t room = sizeof r->x->fault;
    int n = s ? snprintf(to, room, "step %d, ", s->number) : 0;
    for (int i = 0; s && i < s->norigin && i < 2; i++)
        n += snprintf(to + n, room - (size_t)n, "%s'%.100s' (%.40s)%s", i ? "+ " : "",
                      s->origins[i]->node, s->origins[i]->op,
                      i + 1 < s->norigin && i < 1 ? " " : ", ");
    va_list ap;
    va_start(ap, format);
    vsnprintf(to + n, room - (size_t)n, format, ap);
    va_end(ap);
    return false;
}

static int64_t number(PlanRun *r, Node *n)
{
    return dim_value(r->ip, n);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Subnormal weights become zeros when a bundle is written. */
static void flush(ShadowMemory *m)
{
    for (int64_t i = 0; i + 4 <= m->size; i += 4) {
        uint32_t u;
        memcpy(&u, m->bytes + i, 4);
        u &= u & 0x7f800000u ? UINT32_MAX : 0x80000000u;
        memcpy(m->bytes + i, &u, 4);
    }
}

static ShadowMemory *weight(PlanRun *r, const Buffer *b)
{
    ShadowMemory *m = shadow_new(r->a, b->bytes, (int)elem_bytes(b->dtype));
    Interp *ip = interp_new(r->p->c);
    int64_t dims[INGOT_MAX_RANK];
    const void *data = interp_eval(ip, b->node, dims);
    if (data && b->layout.n)
        layout_pack(&b->layout, b->rank, dims, elem_bytes(b->dtype), data, m->bytes, NULL, NULL);
    else if (data)
        memcpy(m->bytes, data, (size_t)b->bytes);
    interp_free(ip);
    if ((b->dtype == INGOT_F32 || b->dtype == INGOT_C64) && !r->p->c->keep_subnormals)
        flush(m);
    shadow_given(m, 0, m->size);
    return m;
}

static Spot spot_of(PlanRun *r, const Buffer *b)
{
    const Buffer *root = buffer_root(b);
    Spot s = {.size = b->bytes};
    if (root->kind == BUF_ARENA || root->kind == BUF_STATE) {
        s.m = r->memory[root->memory];
        s.at = root->offset;
    } else {
        if (!r->own[root->id])
            r->own[root->id] = root->kind == BUF_WEIGHT
                                   ? weight(r, root)
                                   : shadow_new(r->a, root->bytes > 8 ? root->bytes : 8,
                                                (int)elem_bytes(root->dtype));
        s.m = r->own[root->id];
    }
    const int64_t end = s.at + (root->kind == BUF_INPUT ? s.m->size : root->bytes);
    for (; b->base; b = b->base)
        if (b->base_offset)
            s.at += number(r, b->base_offset) * (int64_t)elem_bytes(b->dtype);
    s.size = s.at + s.size > end ? end - s.at : s.size;
    return s;
}

/* Elements smaller than a cell would race with their neighbours. */
static int cell_of(const Plan *p, int memory)
{
    int cell = 8;
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i], *root = buffer_root(b);
        const int bytes = (int)elem_bytes(b->dtype);
        if ((root->kind == BUF_ARENA || root->kind == BUF_STATE) && root->memory == memory)
            while (bytes % cell || root->offset % cell)
                cell /= 2;
    }
    return cell;
}

/* A buffer that lives where another one's life begins. */
static const Buffer *below(const PlanRun *r, const Buffer *b)
{
    for (int i = 0; i < r->p->nbuffer; i++) {
        const Buffer *o = r->p->buffers[i];
        if (o != b && (o->kind == BUF_ARENA || o->kind == BUF_STATE) && !o->base &&
            o->memory == b->memory && o->first <= b->first && o->last >= b->first &&
            o->offset < b->offset + b->bytes && b->offset < o->offset + o->bytes)
            return o;
    }
    return NULL;
}

/* The bytes of an arena's buffer whose life begins are nobody's; or those of what the step reads
 * last. */
static bool begin_life(PlanRun *r, const Step *s)
{
    for (int i = 0; i < r->p->nbuffer; i++) {
        const Buffer *b = r->p->buffers[i];
        if (b->kind != BUF_ARENA || b->base || b->takes || b->first != s->number || !b->bytes)
            continue;
        const Buffer *o = below(r, b);
        if (!o)
            shadow_forget(r->memory[b->memory], b->offset, b->bytes);
        else if (o->first < s->number && o->last > s->number)
            return fault(r, s, "its buffer %d lies on buffer %d, which step %d still uses", b->id,
                         o->id, o->last);
    }
    return true;
}

static bool all_written(PlanRun *r, const Step *s, const Spot *at, int64_t bytes, const char *what)
{
    for (int64_t i = 0; i < bytes; i += at->m->cell)
        if (!shadow_written(at->m, at->at + i))
            return fault(r, s, "%s: byte %lld of %lld is read, and nothing has written it", what,
                         (long long)i, (long long)bytes);
    return true;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static LinearKernel *lowered(PlanRun *r, const Kernel *k, bool naive)
{
    int i = 0;
    while (r->p->kernels[i] != k)
        i++;
    struct Interpreted *l = naive ? &r->naive[i] : &r->kernel[i];
    if (!l->lk) {
        l->own = naive ? lower_naive(k) : NULL;
        l->lk = linear_kernel(r->a, naive ? l->own : kernel_lowered(k, r->x->gpu));
    }
    return l->lk;
}

static bool run_lowered(PlanRun *r, const Step *s, bool naive, const LinearArg *arg,
                        const int64_t *var)
{
    r->m.most = r->x->most ? r->x->most - r->x->done + r->m.done : 0;
    const int64_t before = r->m.done;
    const bool good = linear_run(&r->m, lowered(r, s->kernel, naive), arg, var, s->scalars);
    r->x->done += r->m.done - before;
    return good || fault(r, s, "%s%s", naive ? "without opts: " : "", r->m.fault);
}

static void *copy_of(Arena *a, const void *bytes, int64_t n)
{
    return n ? memcpy(arena_alloc(a, (size_t)n), bytes, (size_t)n) : arena_alloc(a, 1);
}

/* What is written there, and by whom and for whom. */
typedef struct {
    void *bytes, *wrote, *read;
} Saved;

static int64_t epochs_of(const Spot *p)
{
    return p->size / p->m->cell * (int64_t)sizeof(Epoch);
}

static Saved spot_save(Arena *a, const Spot *p)
{
    const int64_t first = p->at / p->m->cell;
    return (Saved){copy_of(a, p->m->bytes + p->at, p->size),
                   copy_of(a, p->m->wrote + first, epochs_of(p)),
                   copy_of(a, p->m->read + first, epochs_of(p))};
}

static void spot_restore(const Spot *p, const Saved *was)
{
    const int64_t first = p->at / p->m->cell;
    if (!p->size)
        return;
    memcpy(p->m->bytes + p->at, was->bytes, (size_t)p->size);
    memcpy(p->m->wrote + first, was->wrote, (size_t)epochs_of(p));
    memcpy(p->m->read + first, was->read, (size_t)epochs_of(p));
}

/* What the kernel without opts makes of what is written; then all is as it was. */
static bool run_naive(PlanRun *r, Arena *a, const Step *s, const LinearArg *arg, const int64_t *var,
                      const Spot *spot, unsigned char **naive)
{
    const Kernel *k = s->kernel;
    Saved was[64];
    for (int i = 0; i < k->narg; i++)
        if (k->args[i].written)
            was[i] = spot_save(a, &spot[i]);
    bool good = run_lowered(r, s, true, arg, var);
    for (int i = 0; i < k->narg; i++)
        if (k->args[i].written)
            naive[i] = copy_of(a, spot[i].m->bytes + spot[i].at, spot[i].size);
    for (int i = 0; i < k->narg; i++)
        if (k->args[i].written)
            spot_restore(&spot[i], &was[i]);
    return good;
}

static bool step_kernel(PlanRun *r, const Step *s)
{
    const Kernel *k = s->kernel;
    Arena *a = arena_new();
    LinearArg *arg = NEWN(a, LinearArg, k->narg + 1);
    Spot *spot = NEWN(a, Spot, k->narg + 1);
    int64_t *var = NEWN(a, int64_t, k->nvar + 1);
    unsigned char **naive = NEWN(a, unsigned char *, k->narg + 1);
    for (int i = 0; i < k->narg; i++) {
        const int64_t bytes = (int64_t)elem_bytes(k->args[i].dtype);
        int64_t n = layout_elements(&k->args[i].layout, k->args[i].rank, k->args[i].dims);
        spot[i] = spot_of(r, s->bufs[i]);
        n = n > spot[i].size / bytes ? spot[i].size / bytes : n;
        arg[i] = (LinearArg){spot[i].m, spot[i].at, n};
    }
    for (int i = 0; i < k->nvar; i++)
        var[i] = number(r, r->p->c->vars[k->vars[i]].node);
    const bool both = r->x->wrote && !r->x->naive && s->kind == STEP_KERNEL && k->narg <= 64;
    bool good = !both || run_naive(r, a, s, arg, var, spot, naive);
    good = good && run_lowered(r, s, r->x->naive, arg, var);
    for (int i = 0; i < k->narg && good && both; i++)
        if (k->args[i].written && spot[i].size == s->bufs[i]->bytes)
            r->x->wrote(r->x->user, s, s->bufs[i], spot[i].m->bytes + spot[i].at, naive[i]);
    arena_free(a);
    return good;
}

/* ---- other steps ----------------------------------------------------------------------------- */

/* What is made in one way only. */
static void tell_made(PlanRun *r, const Step *s, const Buffer *b)
{
    const Spot at = spot_of(r, b);
    if (r->x->wrote && !r->x->naive && at.size == b->bytes)
        r->x->wrote(r->x->user, s, b, at.m->bytes + at.at, at.m->bytes + at.at);
}

static igrt_tensor describe(PlanRun *r, const Step *s, int i, Spot *spot)
{
    const Buffer *b = s->bufs[i];
    *spot = spot_of(r, b);
    igrt_tensor t = {.data = spot->m->bytes + spot->at, .rank = b->rank};
    t.dtype = (igrt_dtype)(b->dtype + 1);
    spot->size = (int64_t)elem_bytes(b->dtype);
    for (int d = 0; d < b->rank; d++) {
        t.dims[d] = call_decides(s->call, b->dims[d]) ? b->dims[d]->hi : number(r, b->dims[d]);
        spot->size *= t.dims[d];
    }
    return t;
}

static bool set_count(PlanRun *r, const Step *s, int var, int64_t count)
{
    const Var *v = &r->p->c->vars[var];
    if (count < v->lo || count > v->hi)
        return fault(r, s, "%s is %lld, and has to be in %lld..%lld", v->name, (long long)count,
                     (long long)v->lo, (long long)v->hi);
    var_assign(r->ip, var, count, 0);
    return true;
}

static bool step_call(PlanRun *r, const Step *s)
{
    const Call *call = s->call;
    Arena *a = arena_new();
    igrt_tensor *t = NEWN(a, igrt_tensor, s->nbuf + 1);
    Spot *spot = NEWN(a, Spot, s->nbuf + 1);
    int64_t *counts = NEWN(a, int64_t, call->n_count + 1);
    const LibFn fn = call->custom ? NULL : lib_find(call->name);
    const char *why = NULL;
    bool good = fn || call->custom || fault(r, s, "there is no library kernel '%s'", call->name);
    for (int i = 0; i < s->nbuf; i++) {
        t[i] = describe(r, s, i, &spot[i]);
        good = good && (i >= call->n_in || all_written(r, s, &spot[i], spot[i].size, call->name));
    }
    void *scratch = NULL;
    size_t bytes = 0;
    if (s->scratch) {
        scratch = r->memory[s->scratch->memory]->bytes + s->scratch->offset;
        bytes = (size_t)s->scratch->bytes;
    }
    const int nout = s->nbuf - call->n_in;
    int code = IGRT_OK;
    if (good && call->custom)
        code = call->custom->run(call->custom, t, call->n_in, t + call->n_in, nout, call->ints,
                                 call->floats, scratch, bytes, &why);
    else if (good)
        code = (int)fn(t, call->n_in, t + call->n_in, nout, call->ints, call->floats, scratch,
                       bytes, counts);
    if (good && code != IGRT_OK)
        good = fault(r, s, "%s: %s", call->name, why ? why : igrt_status_text((igrt_status)code));
    for (int i = call->n_in; i < s->nbuf && good; i++) {
        shadow_given(spot[i].m, spot[i].at, spot[i].size);
        tell_made(r, s, s->bufs[i]);
    }
    for (int i = 0; i < call->n_count && good; i++)
        good = set_count(r, s, (int)call->counts[i]->arg.i, counts[i]);
    arena_free(a);
    return good;
}

static bool step_copy(PlanRun *r, const Step *s)
{
    const int64_t size = (int64_t)elem_bytes(s->bufs[0]->dtype),
                  bytes = size * number(r, s->elements);
    Spot to = spot_of(r, s->bufs[0]), from = spot_of(r, s->bufs[1]);
    to.at += s->dst_offset ? size * number(r, s->dst_offset) : 0;
    from.at += s->src_offset ? size * number(r, s->src_offset) : 0;
    if (bytes <= 0)
        return true;
    if (to.at < 0 || from.at < 0 || to.at + bytes > to.m->size || from.at + bytes > from.m->size)
        return fault(r, s, "a copy of %lld bytes from %lld to %lld is outside of its buffers",
                     (long long)bytes, (long long)from.at, (long long)to.at);
    if (!all_written(r, s, &from, bytes, "a copy"))
        return false;
    memmove(to.m->bytes + to.at, from.m->bytes + from.at, (size_t)bytes);
    shadow_given(to.m, to.at, bytes);
    tell_made(r, s, s->bufs[0]);
    return true;
}

static bool within(PlanRun *r, const Step *s)
{
    const Require *q = s->require;
    const int64_t value = number(r, q->value), least = number(r, q->least),
                  greatest = number(r, q->greatest);
    return (value >= least && value <= greatest) ||
           fault(r, s, "%s is %lld; it has to be in %lld..%lld", q->what, (long long)value,
                 (long long)least, (long long)greatest);
}

static bool step_index(PlanRun *r, const Step *s)
{
    int64_t index = INT64_MIN;
    if (!step_kernel(r, s))
        return false;
    for (int i = 0; i < s->nbuf; i++)
        if (s->bufs[i]->kind == BUF_LOCAL)
            memcpy(&index, spot_of(r, s->bufs[i]).m->bytes, sizeof index);
    const int64_t size = number(r, s->size), least = s->wraps ? -size : 0;
    index -= s->wraps && index < 0 && index != INT64_MIN ? size : 0;
    return index == INT64_MIN || (index >= least && index < size) ||
           fault(r, s, "an index into axis %d is %lld; it has to be in %lld..%lld", s->axis,
                 (long long)index, (long long)least, (long long)(size - 1));
}

static bool truth(PlanRun *r, const Step *s, bool *is)
{
    const Spot at = spot_of(r, s->cond);
    *is = at.m->bytes[at.at] != 0;
    return all_written(r, s, &at, 1, "a condition");
}

static bool run_block(PlanRun *r, const Block *b);

static bool step_loop(PlanRun *r, const Step *s)
{
    const int64_t trip = s->trip ? number(r, s->trip) : INT64_MAX;
    int64_t i = 0;
    bool go = true;
    for (; i < trip; i++) {
        if (s->cond && !truth(r, s, &go))
            return false;
        if (!go)
            break;
        if (s->counter && s->counter->op == OP_VAR)
            var_assign(r->ip, (int)s->counter->arg.i, i, 0);
        if (!run_block(r, &s->body))
            return false;
    }
    if (s->iterations && s->iterations->op == OP_VAR && s->iterations != s->trip)
        return set_count(r, s, (int)s->iterations->arg.i, i);
    return true;
}

static bool run_block(PlanRun *r, const Block *b)
{
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        bool good = true, is = false;
        if (r->x->before)
            r->x->before(r->x->user, s);
        if (!begin_life(r, s))
            return false;
        switch (s->kind) {
        case STEP_KERNEL: good = step_kernel(r, s); break;
        case STEP_CALL: good = step_call(r, s); break;
        case STEP_COPY: good = step_copy(r, s); break;
        case STEP_IF: good = truth(r, s, &is) && run_block(r, is ? &s->body : &s->other); break;
        case STEP_LOOP: good = step_loop(r, s); break;
        case STEP_CHECK: good = within(r, s); break;
        case STEP_INDEX: good = step_index(r, s); break;
        }
        if (!good)
            return false;
    }
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void give_inputs(PlanRun *r, const ingot_value *in)
{
    for (int i = 0; i < r->p->ndim_source; i++) {
        const DimSource *d = &r->p->dim_sources[i];
        if (d->dim->op == OP_VAR)
            var_assign(r->ip, (int)d->dim->arg.i, in[d->input].dims[d->axis], 0);
    }
    for (int i = 0; i < r->p->c->ninput; i++) {
        const Buffer *b = r->p->input[i];
        if (!b)
            continue;
        const int64_t size = (int64_t)elem_bytes(b->dtype);
        int64_t n = 1;
        for (int a = 0; a < in[i].rank; a++)
            n *= in[i].dims[a];
        ShadowMemory *m = r->own[b->id] = shadow_new(r->a, n * size, (int)size);
        memcpy(m->bytes, in[i].data, (size_t)(n * size));
        shadow_given(m, 0, n * size);
    }
}

static bool take_outputs(PlanRun *r, ingot_value *out)
{
    for (int i = 0; i < r->p->c->noutput; i++) {
        const Buffer *b = r->p->output[i];
        int64_t bytes = (int64_t)elem_bytes(b->dtype);
        out[i] = (ingot_value){.rank = b->rank, .dtype = b->dtype};
        for (int a = 0; a < b->rank; a++)
            bytes *= out[i].dims[a] = number(r, b->dims[a]);
        const Spot at = spot_of(r, b);
        if (!all_written(r, NULL, &at, bytes, arena_printf(r->a, "output %d", i)))
            return false;
        out[i].data = copy_of(r->a, at.m->bytes + at.at, bytes);
    }
    return true;
}

const Data *state_data(const Plan *p, const Buffer *b)
{
    const bool own = b->kind == BUF_STATE && !b->base;
    const Node *begin = own ? p->c->states[b->slot].begin : NULL;
    return begin ? begin->arg.ptr : NULL;
}

/* As they are after reset. */
static void give_states(PlanRun *r)
{
    for (int i = 0; i < r->p->nbuffer; i++) {
        const Buffer *b = r->p->buffers[i];
        if (b->kind != BUF_STATE || b->base)
            continue;
        ShadowMemory *m = r->memory[b->memory];
        const Data *data = state_data(r->p, b);
        if (data)
            memcpy(m->bytes + b->offset, data->bytes, data->nbytes);
        shadow_given(m, b->offset, b->bytes);
    }
}

/* As they are after the run. */
static void take_states(PlanRun *r)
{
    for (int i = 0; r->x->state && i < r->p->nbuffer; i++) {
        const Buffer *b = r->p->buffers[i];
        if (b->kind == BUF_STATE && !b->base)
            r->x->state[b->slot] = copy_of(r->a, r->memory[b->memory]->bytes + b->offset, b->bytes);
    }
}

bool plan_interpret(PlanInterp *x, Arena *a, const ingot_value *in, ingot_value *out)
{
    const Plan *p = x->p;
    const char *why = devices_fault(a, p);
    if (why) {
        snprintf(x->fault, sizeof x->fault, "%s", why);
        return false;
    }
    PlanRun r = {.x = x, .p = p, .a = a, .ip = interp_new(p->c)};
    x->ip = r.ip;
    r.memory = NEWN(a, ShadowMemory *, p->nmemory + 1);
    r.own = NEWN(a, ShadowMemory *, p->nbuffer + 1);
    r.kernel = NEWN(a, struct Interpreted, p->nkernel + 1);
    r.naive = NEWN(a, struct Interpreted, p->nkernel + 1);
    for (int i = 0; i < p->nmemory; i++)
        r.memory[i] = shadow_new(a, p->memories[i].bytes, cell_of(p, i));
    give_states(&r);
    give_inputs(&r, in);
    const uint64_t mode =
        p->c->keep_subnormals ? igrt_fp_mode() : igrt_fp_flush(); /* the model's */
    const bool good = run_block(&r, &p->main) && take_outputs(&r, out);
    igrt_fp_restore(mode);
    if (good)
        take_states(&r);
    for (int i = 0; i < p->nkernel; i++) {
        lowered_free(r.kernel[i].own);
        lowered_free(r.naive[i].own);
    }
    interp_free(r.ip);
    x->ip = NULL;
    return good;
}
