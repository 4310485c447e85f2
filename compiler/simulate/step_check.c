/* step_check.c - one step beside the graph: a few iterations of its kernel's statements, on
 * operands that are drawn, and what they have written beside what the graph says of these elements.
 * Where all of them are one number (0 behind a Relu, a saturated byte, a sum that is lost in its
 * own rounding) other operands are drawn: a kernel that is wrong would have written that, too.
 *
 *     statements, loops sampled -> elements written        the step's buffers, layouts, numbers
 *     the value that is stored there -> the same elements   the graph, down to what the step reads
 *
 * The two meet in nothing but what the buffers hold, which follows from the values that lie
 * there. */
#include "step_check.h"

#include <math.h>
#include <string.h>

#include "igrt_num.h"

/* Results of a step, of a further step of the same kernel; how many writes are remembered; a kernel
 * is heavy from so many operations on; what a float may be off beyond what its error says, as a
 * share: 2^-18; how often operands are drawn again where results tell nothing. */
enum { RESULTS = 64, AGAIN = 8, KEPT = 1024, HEAVY = 50 * 1000, SLACK_BITS = 18, REDRAWN = 3 };

typedef struct {
    int arg;
    int64_t at; /* element of storage */
} Written;

/* What the graph said of one stored value so far: within which bounds, and how much of that may be
 * rounding. */
typedef struct {
    int n;
    double least, most, slack;
} ResultSpread;

typedef struct {
    Checker *x;
    const Step *s;
    const Kernel *k;
    Arena *a;              /* of one run */
    ResultSpread *told;    /* by stored value */
    ShadowMemory **memory; /* by argument */
    LinearArg *arg;
    int *source;      /* by argument: whose contents it has before the step; -1: nobody's */
    Written *written; /* some of them, evenly chosen */
    int nwritten;
    int64_t count, stride; /* how many there were; of so many one is kept */
} CheckRun;

static bool fault(const CheckRun *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fault(const CheckRun *r, const char *format, ...)
{
    const Step *s = r->s;
    StrBuf sb = {0};
    sb_printf(&sb, "step %d, %s", s->number, r->k->name);
    for (int i = 0; i < s->norigin && i < 2; i++)
        sb_printf(&sb, "%s'%.100s' (%.40s)", i ? " + " : ", ", s->origins[i]->node,
                  s->origins[i]->op);
    sb_puts(&sb, ": ");
    va_list ap;
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    snprintf(r->x->check->fault, sizeof r->x->check->fault, "%s", sb.data);
    sb_free(&sb);
    return false;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool in_memory(const Buffer *b)
{
    return b->kind == BUF_ARENA || b->kind == BUF_STATE;
}

/* Of an operand that the result lies on (takeover.c) the kernel reads the result's argument. */
static void find_sources(CheckRun *r)
{
    for (int i = 0; i < r->k->narg; i++) {
        const KernelArg *a = &r->k->args[i];
        const Buffer *b = r->s->bufs[i];
        r->source[i] = a->read ? i : -1;
        for (int j = 0; j < r->k->narg && a->read && a->written; j++) {
            const KernelArg *o = &r->k->args[j];
            const Buffer *ob = r->s->bufs[j];
            if (j != i && !o->read && !o->written && in_memory(b) && in_memory(ob) && !b->base &&
                !ob->base && ob->memory == b->memory && ob->offset == b->offset)
                r->source[i] = j;
        }
    }
}

static int64_t elements_of_arg(const CheckRun *r, int i)
{
    const KernelArg *a = &r->k->args[i];
    int64_t from, most = layout_elements(&a->layout, a->rank, a->dims);
    const Buffer *b = drawn_root(r->x->drawn, r->s->bufs[i], &from);
    if (from) {
        const int64_t left = layout_elements(&b->layout, b->rank, b->dims) - from;
        return left < most ? left : most;
    }
    if ((b->kind != BUF_INPUT && b->kind != BUF_OUTPUT) || a->layout.n)
        return most;
    int64_t n = 1;
    const int64_t *dims = drawn_dims(r->x->drawn, b);
    for (int d = 0; d < b->rank; d++)
        n = sat_mul(n, dims[d]);
    return n < most ? n : most;
}

/* Each argument has a memory of its own, and those that lie on each other one together. */
static void give_memory(CheckRun *r)
{
    const Kernel *k = r->k;
    for (int i = 0; i < k->narg; i++) {
        const Buffer *b = r->s->bufs[i];
        const int64_t size = (int64_t)elem_bytes(k->args[i].dtype), n = elements_of_arg(r, i);
        for (int j = 0; j < i && in_memory(b) && !b->base; j++) {
            const Buffer *o = r->s->bufs[j];
            if (in_memory(o) && !o->base && o->memory == b->memory && o->offset == b->offset &&
                k->args[j].dtype == k->args[i].dtype && r->memory[j]->size >= n * size)
                r->memory[i] = r->memory[j];
        }
        if (!r->memory[i])
            r->memory[i] = shadow_sparse(r->a, n * size > 8 ? n * size : 8, (int)size);
        r->arg[i] = (LinearArg){r->memory[i], 0, n};
        if (!n) /* 0 would be as many as the layout says */
            r->arg[i].at = r->memory[i]->size, r->arg[i].size = -1;
    }
}

/* A loop that reads one element after the other has the next ones drawn with this one. */
static int64_t draw_upto(const ShadowMemory *m, int64_t size, int64_t first, int64_t n)
{
    enum { AHEAD = 16 };
    const bool follows = first && shadow_written(m, (first - 1) * size);
    const int64_t all = m->size / size, upto = first + (follows && n < AHEAD ? AHEAD : n);
    return upto < all ? upto : all > first + n ? all : first + n;
}

static bool draw(void *user, int arg, int64_t first, int64_t n)
{
    CheckRun *r = user;
    if (r->source[arg] < 0)
        return false;
    const Buffer *b = r->s->bufs[r->source[arg]];
    ShadowMemory *m = r->memory[arg];
    const int64_t size = (int64_t)elem_bytes(b->dtype);
    const int64_t upto = draw_upto(m, size, first, n);
    for (int64_t i = first, end; i < upto; i = end) {
        const bool known = shadow_written(m, i * size);
        for (end = i + 1; end < upto && shadow_written(m, end * size) == known;)
            end++;
        if (known)
            continue;
        drawn_stored(r->x->drawn, b, i, end - i, m->bytes + i * size);
        shadow_given(m, i * size, (end - i) * size);
    }
    return true;
}

/* Of few all are kept; of many every other one, every fourth .. */
static void wrote(void *user, int arg, int64_t first, int64_t n)
{
    CheckRun *r = user;
    for (int64_t i = first; i < first + n; i++, r->count++) {
        if (r->count % r->stride)
            continue;
        if (r->nwritten == KEPT) {
            for (int j = 0; j < KEPT / 2; j++)
                r->written[j] = r->written[2 * j];
            r->nwritten = KEPT / 2;
            r->stride *= 2;
            if (r->count % r->stride)
                continue;
        }
        r->written[r->nwritten++] = (Written){arg, i};
    }
}

/* ---- what the graph says --------------------------------------------------------------------- */

static bool is_read(const CheckRun *r, int arg)
{
    for (int i = 0; i < r->k->narg; i++)
        if (r->source[i] == arg)
            return true;
    return false;
}

/* The argument by which the step reads what lies in that buffer, or in a copy of it; -1: it does
 * not. */
static int argument_of(const CheckRun *r, const Buffer *b)
{
    b = buffer_root(b);
    for (int i = 0; i < r->k->narg; i++)
        if (buffer_root(r->s->bufs[i]) == b && is_read(r, i))
            return i;
    for (int i = 0; i < r->k->narg; i++) {
        const Buffer *o = buffer_root(r->s->bufs[i]);
        if (o->node && o->node == b->node && o->dtype == b->dtype && o->rank == b->rank &&
            is_read(r, i) && o->kind != BUF_STATE &&
            (b->node->op != OP_CALL && b->node->op != OP_LOOP))
            return i;
    }
    return -1;
}

static void contents(CheckRun *r, const Buffer *b, Node *const *begin, int lanes,
                     int64_t *const *at, char *out)
{
    int64_t first[INGOT_MAX_RANK] = {0};
    for (int i = 0; i < b->rank && begin; i++)
        first[i] = dim_value(r->x->ip, begin[i]);
    drawn_elements(r->x->drawn, b, lanes, at, first, out);
}

/* What an UPDATE changes lies where it is stored. */
static bool before_update(CheckRun *r, const Node *n, int lanes, int64_t *const *at, void *out)
{
    for (int i = 0; i < r->s->nstored && r->k->serial; i++)
        if (r->s->stored[i].node == n) {
            contents(r, r->s->stored[i].buffer, r->s->stored[i].at, lanes, at, out);
            return true;
        }
    return false;
}

static bool leaf(void *user, Node *n, int part, int lanes, int64_t *const *at, void *out)
{
    CheckRun *r = user;
    const Checker *x = r->x;
    if (part < 0)
        return before_update(r, n, lanes, at, out);
    for (int i = 0; i < r->k->narg; i++)
        if (r->s->bufs[i]->kind == BUF_WEIGHT && r->s->bufs[i]->node == n && is_read(r, i)) {
            contents(r, r->s->bufs[i], NULL, lanes, at, out);
            return true;
        }
    for (int i = (int)(uintptr_t)map_get(&x->placed, (uint64_t)n->id + 1); i; i = x->next[i - 1]) {
        const Placement *p = &x->p->placed[i - 1];
        const int arg = p->buffer && p->part == part ? argument_of(r, p->buffer) : -1;
        if (arg < 0)
            continue;
        contents(r, buffer_root(r->s->bufs[arg]), p->at, lanes, at, out);
        return true;
    }
    if (n->op != OP_INPUT && n->op != OP_STATE)
        return false;
    const int64_t *dims = element_dims(
        x->elements, n); /* the step is not given it: its numbers are none of the step's */
    const size_t size = elem_bytes((ingot_dtype)n->dtype);
    for (int k = 0; k < lanes; k++) {
        int64_t coord[INGOT_MAX_RANK];
        for (int i = 0; i < n->rank; i++)
            coord[i] = at[i][k];
        drawn_node(x->drawn, n, dims, coord, (char *)out + (size_t)k * size);
    }
    return true;
}

static Node *integer(void *user, Node *n)
{
    const Checker *x = ((CheckRun *)user)->x;
    for (int i = (int)(uintptr_t)map_get(&x->placed, (uint64_t)n->id + 1); i; i = x->next[i - 1])
        if (!x->p->placed[i - 1].buffer)
            return x->p->placed[i - 1].integer;
    return NULL;
}

/* ---- beside each other ----------------------------------------------------------------------- */

static double slack_of(ingot_dtype t, double want, double error)
{
    if (!dtype_is_float(t))
        return error > 0 ? error + 1 : 0;
    return 4 * error + ldexp(fabs(want), -SLACK_BITS) + 2 * element_eps(t) * fabs(want) + 0x1p-120;
}

static bool agrees(ingot_dtype t, const void *got, const void *want, double error, double *g,
                   double *w)
{
    alu_cast(INGOT_F64, t, 0, 1, g, got);
    if (!dtype_is_float(t)) {
        alu_cast(INGOT_F64, t, 0, 1, w, want);
        return error > 0 ? fabs(*g - *w) <= slack_of(t, *w, error) || t == INGOT_BOOL
                         : !memcmp(got, want, elem_bytes(t));
    }
    memcpy(w, want, sizeof *w);
    if (isnan(*w) || isinf(*w))
        return isnan(*w) ? isnan(*g) : *g == *w;
    return fabs(*g - *w) <= slack_of(t, *w, error);
}

static void tell(ResultSpread *told, ingot_dtype t, double want, double error)
{
    if (!isfinite(want))
        return;
    const double slack = slack_of(t, want, error);
    told->n++;
    told->least = want < told->least ? want : told->least;
    told->most = want > told->most ? want : told->most;
    told->slack = slack > told->slack ? slack : told->slack;
}

/* Whether all results are one number, but for their rounding; a single one tells if it is not 0. */
static bool is_flat(const ResultSpread *told)
{
    if (told->n == 1)
        return fabs(told->most) <= told->slack;
    return told->most - told->least <= told->slack;
}

/* The results of one stored value. */
static bool compare_some(CheckRun *r, const Stored *st, int n, const Written *sample,
                         int64_t *const *at)
{
    Checker *x = r->x;
    Lanes want;
    Node *v = st->node;
    if (!elements_of(x->elements, v, !st->copy, n, at, &want))
        return true;
    const size_t size = element_bytes_of(v), stored = elem_bytes((ingot_dtype)v->dtype);
    for (int k = 0; k < n; k++) {
        const double error = want.error ? want.error[k] : 0;
        double g, w;
        const ShadowMemory *m = r->memory[sample[k].arg];
        if (!(error < INFINITY))
            continue;
        x->check->results++;
        const bool good = agrees((ingot_dtype)v->dtype, m->bytes + sample[k].at * (int64_t)stored,
                                 (char *)want.v + (size_t)k * size, error, &g, &w);
        tell(&r->told[st - r->s->stored], (ingot_dtype)v->dtype, w, error);
        if (good)
            continue;
        StrBuf sb = {0};
        for (int i = 0; i < v->rank; i++)
            sb_printf(&sb, "%s%lld", i ? "," : "", (long long)at[i][k]);
        (void)fault(r, "its result [%s] is %.9g, and the graph says %.9g", sb.data ? sb.data : "",
                    g, w);
        sb_free(&sb);
        return false;
    }
    return true;
}

/* One by itself shows what they take; then as many as there are operations for. */
static bool compare(CheckRun *r, const Stored *st, int n, const Written *sample, int64_t *const *at)
{
    Elements *e = r->x->elements;
    const int64_t before = e->left;
    if (!compare_some(r, st, 1, sample, at))
        return false;
    const int64_t each = before - e->left + 1, room = e->left / each;
    const int rest = n - 1, some = room < rest ? (int)room : rest;
    if (e->left < 0 || !some)
        return true;
    int64_t *x[INGOT_MAX_RANK];
    Written *w = NEWN(r->a, Written, some);
    for (int i = 0; i < INGOT_MAX_RANK; i++)
        x[i] = NEWN(r->a, int64_t, some);
    for (int k = 0; k < some; k++) { /* the last one, and between */
        const int from = n - 1 - (int)((int64_t)k * rest / some);
        w[k] = sample[from];
        for (int i = 0; i < st->node->rank; i++)
            x[i][k] = at[i][from];
    }
    return compare_some(r, st, some, w, x);
}

/* Whose element it is: coordinates in the value that is stored there. */
static bool belongs(CheckRun *r, const Stored *st, const Written *w, int64_t *own)
{
    int64_t coord[INGOT_MAX_RANK], from;
    const Buffer *b = drawn_root(r->x->drawn, r->s->bufs[w->arg], &from);
    if ((buffer_root(st->buffer) != b && r->s->nstored > 1) || st->node->rank != b->rank ||
        !layout_find(&b->layout, b->rank, drawn_dims(r->x->drawn, b), w->at + from, coord))
        return false;
    const int64_t *dims = element_dims(r->x->elements, st->node);
    for (int i = 0; i < b->rank; i++) {
        own[i] = coord[i] - (st->at ? dim_value(r->x->ip, st->at[i]) : 0);
        if (own[i] < 0 || own[i] >= dims[i])
            return false;
    }
    return true;
}

/* Of a copy that another step asked for: it is what it is a copy of. */
static bool compare_copy(CheckRun *r, const Written *w)
{
    const Buffer *b = r->s->bufs[w->arg];
    int64_t coord[INGOT_MAX_RANK];
    _Alignas(16) char want[16];
    for (int j = 0; j < r->k->narg; j++) {
        if (r->source[j] != j || r->s->bufs[j]->rank != b->rank ||
            !layout_find(&b->layout, b->rank, drawn_dims(r->x->drawn, b), w->at, coord))
            continue;
        const size_t size = elem_bytes(b->dtype);
        drawn_element(r->x->drawn, r->s->bufs[j], coord, want);
        r->x->check->results++;
        if (memcmp(r->memory[w->arg]->bytes + (size_t)w->at * size, want, size) != 0)
            return fault(r, "its copy, element %lld of storage, is not what is copied",
                         (long long)w->at);
    }
    return true;
}

static bool compare_all(CheckRun *r, int most)
{
    const Step *s = r->s;
    const int n = r->nwritten < most ? r->nwritten : most;
    Written *sample = NEWN(r->a, Written, n + 1), *own = NEWN(r->a, Written, n + 1);
    for (int k = 0; k < n; k++) /* the first, the last, and between */
        sample[k] = r->written[n > 1 ? (int)((int64_t)k * (r->nwritten - 1) / (n - 1)) : 0];
    for (int i = 0; i < s->nstored; i++) {
        const Stored *st = &s->stored[i];
        int64_t *at[INGOT_MAX_RANK];
        int count = 0;
        for (int d = 0; d < INGOT_MAX_RANK; d++)
            at[d] = NEWN(r->a, int64_t, n + 1);
        for (int k = 0; k < n; k++) {
            int64_t x[INGOT_MAX_RANK];
            if (!belongs(r, st, &sample[k], x))
                continue;
            for (int d = 0; d < st->node->rank; d++)
                at[d][count] = x[d];
            own[count++] = sample[k];
        }
        if (count && !compare(r, st, count, own, at))
            return false;
    }
    for (int k = 0; k < n && !s->nstored; k++)
        if (!compare_copy(r, &sample[k]))
            return false;
    return true;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static LinearKernel *lowered(Checker *x, const Kernel *k, CheckedKernel *ck, bool plain)
{
    CheckedForm *f = plain ? &ck->plain : &ck->form;
    if (!f->lk) {
        f->own = plain ? lower_naive(k) : NULL;
        f->lk = linear_kernel(ck->a, plain ? f->own : kernel_lowered(k, x->gpu));
    }
    return f->lk;
}

/* The statements of one sample, and what they have written beside the graph. */
static bool run(CheckRun r, LinearKernel *lk, SampleWhich which, uint64_t seed, int most,
                int64_t operations)
{
    Checker *x = r.x;
    const Kernel *k = r.k;
    Arena *a = r.a = arena_new();
    r.stride = 1;
    r.memory = NEWN(a, ShadowMemory *, k->narg + 1);
    r.arg = NEWN(a, LinearArg, k->narg + 1);
    r.source = NEWN(a, int, k->narg + 1);
    r.written = NEWN(a, Written, KEPT);
    x->drawn->seed = hash_bytes(seed, &r.s->number, sizeof r.s->number);
    find_sources(&r);
    give_memory(&r);
    const LinearSample sample = {which, x->drawn->seed, draw, wrote, &r};
    LinearInterp m = {.most = operations, .sample = &sample};
    int64_t *var = NEWN(a, int64_t, k->nvar + 1);
    for (int i = 0; i < k->nvar; i++)
        var[i] = dim_value(x->ip, x->p->c->vars[k->vars[i]].node);
    const bool ended = linear_run(&m, lk, r.arg, var, r.s->scalars);
    const bool unknown = !ended && (m.done >= m.most || strstr(m.fault, "there is no form"));
    Elements *e = x->elements;
    e->leaf = leaf;
    e->integer = integer;
    e->user = &r;
    e->left = operations;
    const bool good = unknown || (ended ? compare_all(&r, most) : fault(&r, "%s", m.fault));
    x->check->operations += m.done + operations - e->left;
    arena_free(a);
    return good;
}

static bool tells_nothing(const CheckRun *r)
{
    for (int i = 0; i < r->s->nstored; i++)
        if (is_flat(&r->told[i]))
            return true;
    return false;
}

bool step_check(Checker *x, const Step *s, CheckedKernel *ck, int64_t most)
{
    static const DrawRange other[REDRAWN] = {DRAW_SIGNED, DRAW_NEGATIVE, DRAW_SMALL};
    const int64_t results = x->check->results, begun = x->check->operations;
    const bool again = ck->seen;
    LinearKernel *lk = lowered(x, s->kernel, ck, again && ck->heavy);
    CheckRun r = {.x = x, .s = s, .k = s->kernel, .told = NEWN(x->a, ResultSpread, s->nstored + 1)};
    bool good = true;
    ck->seen = true;
    for (int i = 0; i < s->nstored; i++)
        r.told[i] = (ResultSpread){0, INFINITY, -INFINITY, 0};
    const int first = again ? SAMPLE_DRAWN : SAMPLE_FIRST, last = SAMPLE_DRAWN + REDRAWN;
    for (int which = first; which <= last && good; which++) {
        const int64_t before = x->check->operations, left = most - (before - begun);
        const int redrawn = which - SAMPLE_DRAWN - 1;
        if (which > first && left < before - begun)
            break; /* one more would take more than there is */
        if (redrawn >= 0 && !tells_nothing(&r))
            break;
        x->drawn->range = redrawn >= 0            ? other[redrawn]
                          : which == SAMPLE_DRAWN ? DRAW_POSITIVE
                                                  : DRAW_SIGNED;
        good = run(r, lk,
                   s->kernel->serial ? SAMPLE_ALL
                   : redrawn < 0     ? (SampleWhich)which
                                     : SAMPLE_DRAWN,
                   (uint64_t)which + 1, again ? AGAIN : RESULTS / 3, left);
        ck->heavy |= x->check->operations - before > HEAVY;
    }
    x->check->nchecked += x->check->results > results;
    return good;
}
