/* step_order.c - a graph of the main steps of a plan, and orders of it.
 *
 *     write b -> read b -> write b again        edges of a buffer
 *
 * Two orders are tried: the one that changes least (of the steps that have what they need the
 * first one runs), and a greedy one, in which a step that frees more bytes than it takes runs
 * before any other (Bruno & Sethi's problem is NP-hard; for backward passes, where much dies as
 * soon as a gradient is used, greedy comes near the lower bound). */
#include "step_order.h"

typedef struct {
    int *to, n;
} Successors;
typedef struct {
    int *step, n;
} StepList;
/* A buffer of the arena while steps are put in order: how many that name it are to come. */
typedef struct {
    int left;
    bool begun;
} Pending;

struct StepOrder {
    Arena *a;
    const Plan *p;
    const Block *b;
    Successors *next;  /* by step */
    StepList *buffers; /* by step: ids of the arena's buffers that it names, each once */
    int *order;
};

/* ---- what a step does with a buffer -------------------------------------------------------- */

static int touches_argument(const Step *s, int i)
{
    switch (s->kind) {
    case STEP_KERNEL:
    case STEP_INDEX:
        return (s->kernel->args[i].read ? TOUCH_READS : 0) |
               (s->kernel->args[i].written ? TOUCH_WRITES : 0);
    case STEP_CALL: return i < s->call->n_in ? TOUCH_READS : TOUCH_WRITES;
    case STEP_COPY: return i ? TOUCH_READS : TOUCH_WRITES;
    default: return TOUCH_READS | TOUCH_WRITES;
    }
}

typedef void OnTouch(void *user, const Buffer *root, int how);

static void each_touched(const Step *s, OnTouch *f, void *user)
{
    for (int i = 0; i < s->nbuf; i++)
        f(user, buffer_root(s->bufs[i]), touches_argument(s, i));
    if (s->scratch)
        f(user, buffer_root(s->scratch), TOUCH_WRITES);
    if (s->cond)
        f(user, buffer_root(s->cond), TOUCH_READS);
    for (int i = 0; i < s->body.n; i++)
        each_touched(s->body.step[i], f, user);
    for (int i = 0; i < s->other.n; i++)
        each_touched(s->other.step[i], f, user);
}

typedef struct {
    const Buffer *root;
    int how;
} TouchQuestion;

static void ask(void *user, const Buffer *root, int how)
{
    TouchQuestion *x = user;
    x->how |= root == x->root ? how : 0;
}

bool step_touches(const Step *s, const Buffer *root, int how)
{
    TouchQuestion x = {.root = root};
    each_touched(s, ask, &x);
    return x.how & how;
}

/* ---- the graph ----------------------------------------------------------------------------- */

/* Of a buffer: who wrote it last, and who has read it since. */
typedef struct {
    int writer;
    int *reader, nreader;
} LastUse;
typedef struct {
    StepOrder *o;
    LastUse *use; /* by buffer */
    int step;
} EdgeFinder;

void step_before(StepOrder *o, int i, int j)
{
    Successors *s = &o->next[i];
    if (i != j && (!s->n || s->to[s->n - 1] != j))
        vec_push(o->a, s->to, s->n, j);
}

static void add_edges(void *user, const Buffer *root, int how)
{
    EdgeFinder *f = user;
    LastUse *u = &f->use[root->id];
    StepList *named = &f->o->buffers[f->step];
    bool known = root->kind != BUF_ARENA;
    for (int i = 0; i < named->n && !known; i++)
        known = named->step[i] == root->id;
    if (!known)
        vec_push(f->o->a, named->step, named->n, root->id);
    if (u->writer >= 0)
        step_before(f->o, u->writer, f->step);
    if (how & TOUCH_READS)
        vec_push(f->o->a, u->reader, u->nreader, f->step);
    if (!(how & TOUCH_WRITES))
        return;
    for (int i = 0; i < u->nreader; i++)
        step_before(f->o, u->reader[i], f->step);
    u->writer = f->step;
    u->nreader = 0;
}

/* What may end a run, or sets an integer that others use, stays where it is: all that stands in
 * front of it runs before, all behind it after. */
static bool stays(const Plan *p, const Step *s)
{
    return s->kind == STEP_CHECK ||
           (p->c->nvar && s->kind != STEP_KERNEL && s->kind != STEP_COPY && s->kind != STEP_INDEX);
}

static bool reads_same(const Step *check, const Step *s)
{
    for (int i = 0; i < check->nbuf; i++)
        if (step_touches(s, buffer_root(check->bufs[i]), TOUCH_READS))
            return true;
    return !check->nbuf;
}

StepOrder *step_order_new(Arena *a, const Plan *p, const Block *b)
{
    StepOrder *o = NEW(a, StepOrder);
    *o = (StepOrder){a, p, b, NEWN(a, Successors, b->n), NEWN(a, StepList, b->n), NULL};
    EdgeFinder f = {.o = o, .use = NEWN(a, LastUse, p->nbuffer + 1)};
    for (int i = 0; i < p->nbuffer; i++)
        f.use[i].writer = -1;
    for (int i = 0; i < b->n; i++) {
        f.step = i;
        each_touched(b->step[i], add_edges, &f);
        const bool whole = stays(p, b->step[i]);
        for (int j = 0; j < i && whole; j++)
            step_before(o, j, i);
        for (int j = i + 1; j < b->n; j++) /* an index is looked at before it is used */
            if (whole || (b->step[i]->kind == STEP_INDEX && reads_same(b->step[i], b->step[j])))
                step_before(o, i, j);
    }
    return o;
}

bool *steps_after(StepOrder *o, int i)
{
    bool *after = NEWN(o->a, bool, o->b->n);
    int *stack = NULL, n = 0;
    vec_push(o->a, stack, n, i);
    while (n) {
        const Successors *s = &o->next[stack[--n]];
        for (int k = 0; k < s->n; k++)
            if (!after[s->to[k]]) {
                after[s->to[k]] = true;
                vec_push(o->a, stack, n, s->to[k]);
            }
    }
    return after;
}

/* ---- orders ------------------------------------------------------------------------------- */

static bool counts(const Buffer *b)
{
    return !b->takes && !b->base;
}

/* Bytes that are held after the step and not before it. */
static double more_held(const StepOrder *o, const Pending *of, int step)
{
    double bytes = 0;
    for (int i = 0; i < o->buffers[step].n; i++) {
        const Buffer *b = o->p->buffers[o->buffers[step].step[i]];
        const Pending *x = &of[b->id];
        if (counts(b))
            bytes += (x->begun ? 0 : (double)b->bytes) - (x->left > 1 ? 0 : (double)b->bytes);
    }
    return bytes;
}

/* While the step runs. */
static double taken(const StepOrder *o, const Pending *of, int step)
{
    double bytes = 0;
    for (int i = 0; i < o->buffers[step].n; i++) {
        const Buffer *b = o->p->buffers[o->buffers[step].step[i]];
        bytes += counts(b) && !of[b->id].begun ? (double)b->bytes : 0;
    }
    return bytes;
}

/* A list of steps, and the bytes that it needs. */
static double order_by(StepOrder *o, bool greedy, int *order)
{
    const int n = o->b->n;
    Pending *of = NEWN(o->a, Pending, o->p->nbuffer + 1);
    int *waits = NEWN(o->a, int, n);
    bool *done = NEWN(o->a, bool, n);
    double held = 0, peak = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < o->next[i].n; k++)
            waits[o->next[i].to[k]]++;
        for (int k = 0; k < o->buffers[i].n; k++)
            of[o->buffers[i].step[k]].left++;
    }
    for (int count = 0; count < n; count++) {
        int best = -1;
        double least = 0;
        for (int i = 0; i < n && (greedy || best < 0); i++) {
            const double more = done[i] || waits[i] ? 0 : greedy ? more_held(o, of, i) : 0;
            if (done[i] || waits[i] || (best >= 0 && more >= least))
                continue;
            best = i;
            least = more < 0 ? more : 0; /* of those that free nothing the first */
        }
        if (best < 0)
            BUG("steps that wait for each other");
        order[count] = best;
        done[best] = true;
        peak = held + taken(o, of, best) > peak ? held + taken(o, of, best) : peak;
        held += more_held(o, of, best);
        for (int k = 0; k < o->buffers[best].n; k++) {
            of[o->buffers[best].step[k]].begun = true;
            of[o->buffers[best].step[k]].left--;
        }
        for (int k = 0; k < o->next[best].n; k++)
            waits[o->next[best].to[k]]--;
    }
    return peak;
}

const int *step_order_best(StepOrder *o)
{
    int *as_is = NEWN(o->a, int, o->b->n), *greedy = NEWN(o->a, int, o->b->n);
    return order_by(o, true, greedy) < order_by(o, false, as_is) ? greedy : as_is;
}
