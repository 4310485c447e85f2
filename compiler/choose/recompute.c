/* recompute.c - what is elementwise is computed twice where that makes the arena smaller.
 *
 *     x = f(y)              x = f(y)
 *     a = ..x..             a = ..x..       x ends here
 *     ...  a peak     ->    ...             only y is held
 *     dw = ..x.., ..y..     x' = f(y)
 *                           dw = ..x'.., ..y..
 *
 * A step of training reads again, from the last layer to the first, what the layers have made: for
 * a convolution and its batch norm both the sum y and what becomes of it, x.  The second of these
 * follows from the first, element by element, and the first one is there until the end in any case.
 *
 * The kernel is the same one, so the bundle has no more of them.  How much of it: per cent of the
 * run's time for per cent of the arena, and never more than a LITTLE of the time; more where memory
 * is dear, nothing where time alone counts (--prefer time).
 *
 * Requires the kernels' opts and the order of the main steps.  Leaves steps and buffers of their
 * own behind the peak. */
#include <math.h>
#include <string.h>

#include "cost.h"
#include "optimise.h"
#include "step_order.h"

typedef struct {
    Plan *p;
    Block *b;
    const Target *t;
    Arena *a;
    Lives lives;
    int peak;            /* the step that holds the most */
    double run, spent;   /* cycles: of all steps, of those that run twice */
    const Buffer **next; /* by state: the buffer that lies on it later, or NULL */
} Recompute;

/* A buffer that may be made again. */
typedef struct {
    Buffer *buffer; /* NULL: none */
    int writer, at; /* steps: that makes it, in front of which it is made again */
    int until;      /* its last reader in front of the peak */
    double cycles;
} Again;

static int highest_step(const Lives *l)
{
    int at = 0;
    for (int i = 1; i < l->n; i++)
        at = l->bytes[i] > l->bytes[at] ? i : at;
    return at;
}

static double cycles_of(const Target *t, const Block *b)
{
    double cycles = 0;
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        const double times = s->kind == STEP_LOOP && s->trip ? (double)s->trip->hi : 1;
        cycles += s->kind == STEP_KERNEL ? cost_kernel(s->kernel, t) : 0;
        cycles += times * cycles_of(t, &s->body) + cycles_of(t, &s->other);
    }
    return cycles;
}

/* It stores the buffer and nothing else, and adds nothing up. */
static bool is_elementwise(Arena *a, const Step *s, const Buffer *b)
{
    const Kernel *k = s->kernel;
    int n, nwritten = 0;
    if (s->kind != STEP_KERNEL || s->scratch || k->serial)
        return false;
    for (int i = 0; i < s->nbuf; i++) {
        const KernelArg *x = &k->args[i];
        nwritten += x->written;
        if (x->written && (x->read || s->bufs[i] != b))
            return false;
    }
    Node *const *order = graph_toposort(a, 1, (Node *const *)&k->sink, &n);
    for (int i = 0; i < n; i++)
        if (order[i]->op == OP_REDUCE || order[i]->op == OP_SCAN)
            return false;
    return nwritten == 1;
}

static bool changes(const Recompute *r, const Step *s, const Buffer *root)
{
    const Buffer *next = root->kind == BUF_STATE ? r->next[root->id] : NULL;
    return (step_touches(s, root) | (next ? step_touches(s, next) : 0)) & TOUCH_WRITES;
}

/* Whether the operand is what it was, and there at the peak too; *at comes before who changes it.
 */
static bool is_there(const Recompute *r, const Buffer *operand, int writer, int *at)
{
    const Buffer *root = buffer_root(operand);
    if (root->kind == BUF_WEIGHT || root->kind == BUF_INPUT)
        return true;
    if (root->takes || (root->kind != BUF_ARENA && root->kind != BUF_STATE) ||
        (root->kind == BUF_ARENA && r->lives.of[root->id].last < r->peak))
        return false;
    for (int i = writer + 1; i < *at; i++)
        if (changes(r, r->b->step[i], root))
            *at = i;
    return *at > r->peak;
}

static Again again(const Recompute *r, Buffer *b)
{
    const Life life = r->lives.of[b->id];
    Again x = {.buffer = b, .writer = life.first, .at = -1, .until = -1};
    const Again none = {.buffer = NULL};
    if (b->kind != BUF_ARENA || b->base || b->takes || b->kept || life.first < 0 ||
        life.first >= r->peak || life.last <= r->peak || step_touches(r->b->step[r->peak], b) ||
        !is_elementwise(r->a, r->b->step[x.writer], b))
        return none;
    for (int i = x.writer + 1; i <= life.last; i++) {
        const int how = step_touches(r->b->step[i], b);
        if (how & TOUCH_WRITES)
            return none;
        if (how && i < r->peak)
            x.until = i;
        if (how && i > r->peak && x.at < 0)
            x.at = i;
    }
    const Step *s = r->b->step[x.writer];
    for (int i = 0; i < s->nbuf && x.at >= 0; i++)
        if (s->bufs[i] != b && !is_there(r, s->bufs[i], x.writer, &x.at))
            return none;
    x.cycles = cost_kernel(s->kernel, r->t);
    return x.at < 0 || x.until < 0 ? none : x;
}

/* A view is read through its own buffer. */
static bool has_views(const Plan *p, const Buffer *b)
{
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffers[i]->base == b)
            return true;
    return false;
}

static void read_instead(Step *s, const Buffer *old, Buffer *twin)
{
    for (int i = 0; i < s->nbuf; i++)
        if (s->bufs[i] == old)
            s->bufs[i] = twin;
    s->cond = s->cond == old ? twin : s->cond;
    for (int i = 0; i < s->body.n; i++)
        read_instead(s->body.step[i], old, twin);
    for (int i = 0; i < s->other.n; i++)
        read_instead(s->other.step[i], old, twin);
}

/* The arena if the buffer is made again, at its worst. */
static double peak_then(const Recompute *r, const Again *x)
{
    const Life life = r->lives.of[x->buffer->id];
    double *bytes = NEWN(r->a, double, r->lives.n), most = 0;
    memcpy(bytes, r->lives.bytes, (size_t)r->lives.n * sizeof *bytes);
    for (int i = x->until + 1; i < x->at; i++)
        bytes[i] -= (double)x->buffer->bytes;
    const Step *s = r->b->step[x->writer];
    for (int k = 0; k < s->nbuf; k++) { /* operands live longer */
        const Buffer *root = buffer_root(s->bufs[k]);
        const int last = r->lives.of[root->id].last;
        for (int i = last + 1; root->kind == BUF_ARENA && root != x->buffer && i <= x->at; i++)
            bytes[i] += (double)root->bytes;
    }
    for (int i = 0; i < r->lives.n; i++)
        most = fmax(most, bytes[i]);
    return life.last < x->at ? INFINITY : most;
}

static void make_again(Recompute *r, const Again *x)
{
    Plan *p = r->p;
    Block *b = r->b;
    Buffer *old = x->buffer, *twin = buffer_twin(p, old, BUF_ARENA, &old->layout);
    Step *copy = step_twin(p, b->step[x->writer]);
    Step **steps = NEWN(p->arena, Step *, b->n + 1);
    for (int i = 0; i < copy->nstored; i++)
        if (copy->stored[i].buffer == old)
            copy->stored[i].buffer = twin;
    read_instead(copy, old, twin);
    for (int i = x->at; i < b->n; i++)
        read_instead(b->step[i], old, twin);
    memcpy(steps, b->step, (size_t)x->at * sizeof *steps);
    steps[x->at] = copy;
    memcpy(steps + x->at + 1, b->step + x->at, (size_t)(b->n - x->at) * sizeof *steps);
    b->step = steps;
    b->n++;
    place_with(p, old, twin);
    plan_note(p, (Note){.pass = "recompute",
                        .what = "computed twice",
                        .why = "what it is made of is there in any case, and the arena is smaller",
                        .node = old->node,
                        .step = copy,
                        .buffer = twin,
                        .other = old,
                        .operations = -1,
                        .bytes = old->bytes});
}

/* Of the time, for an arena that becomes so much smaller; one that the first cache holds is small
 * enough. */
static bool is_little(const Recompute *r, double cycles, double now, double then)
{
    return now > (double)r->t->machine.level[0].bytes && r->spent + cycles <= r->run / LITTLE &&
           cycles / r->run <= (now - then) / now;
}

/* The one that spares the most bytes for its time, if it is worth that. */
static bool recompute_one(Recompute *r)
{
    r->lives = lives_of(r->a, r->p, r->b);
    r->peak = highest_step(&r->lives);
    const double now = r->lives.bytes[r->peak], least = now / (LITTLE * LITTLE);
    Again best = {.buffer = NULL};
    double most = 0, then = 0;
    for (int i = 0; i < r->p->nbuffer; i++) {
        const Again x = again(r, r->p->buffers[i]);
        const double spares = x.buffer ? now - peak_then(r, &x) : 0;
        if (spares >= least && spares / x.cycles > most && !has_views(r->p, x.buffer)) {
            best = x;
            most = spares / x.cycles;
            then = now - spares;
        }
    }
    if (!best.buffer)
        return false;
    if (best.cycles > (now - then) * r->t->machine.byte && !is_little(r, best.cycles, now, then))
        return false;
    r->spent += best.cycles;
    make_again(r, &best);
    return true;
}

void recompute(Plan *p, const Target *t)
{
    Arena *a = arena_new();
    Recompute r = {.p = p, .b = &p->main, .t = t, .run = cycles_of(t, &p->main)};
    r.next = NEWN(a, const Buffer *, p->nbuffer + 1);
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffers[i]->takes)
            r.next[p->buffers[i]->takes->id] = p->buffers[i];
    bool more = p->ndevice == 1;
    while (more) {
        r.a = arena_new();
        more = recompute_one(&r);
        arena_free(r.a);
    }
    arena_free(a);
}
