/* step_order.c - a graph of the main steps of a plan, and orders of it.
 *
 *     write b -> read b -> write b again        edges of a buffer
 *
 * Three orders are tried: the one that changes least (of the steps that have what they need the
 * first one runs), and two greedy ones, in which a step that frees more bytes than it takes runs
 * before any other.  Where there is none, the second of these looks further: all steps that a
 * result still needs run at once, if that frees more than they leave behind
 *
 *     dy (held), x (held):    v = transform x, u = transform dy, dw += v u, ...    x and dy die
 *
 * (Bruno & Sethi's problem is NP-hard; for backward passes, where much dies as soon as a gradient
 * is used, greedy comes near the lower bound). */
#include <math.h>
#include <string.h>

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
    int ahead; /* of these, in a look ahead that began it */
    bool begun;
} Pending;

struct StepOrder {
    Arena *a;
    const Plan *p;
    const Block *b;
    Successors *next;  /* by step */
    StepList *buffers; /* by step: ids of the arena's buffers that it names, each once */
};
typedef enum { ORDER_AS_IS, ORDER_GREEDY, ORDER_AHEAD, ORDERS } OrderRule;
/* An order as far as it has come. */
typedef struct {
    StepOrder *o;
    Pending *of; /* by buffer */
    int *waits;  /* by step: how many it waits for */
    bool *done;  /* by step */
    int *order, n;
    double held, peak, sum; /* bytes; sum: of what is held, over all steps */
    StepList *before;       /* by step: what it waits for */
} Ordering;

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

void step_each_touched(const Step *s, OnTouch *f, void *user)
{
    for (int i = 0; i < s->nbuf; i++)
        f(user, buffer_root(s->bufs[i]), touches_argument(s, i));
    if (s->scratch)
        f(user, buffer_root(s->scratch), TOUCH_WRITES);
    if (s->cond)
        f(user, buffer_root(s->cond), TOUCH_READS);
    for (int i = 0; i < s->body.n; i++)
        step_each_touched(s->body.step[i], f, user);
    for (int i = 0; i < s->other.n; i++)
        step_each_touched(s->other.step[i], f, user);
}

/* As step_each_touched(), of one buffer: what a step does to others is not looked up. */
int step_touches(const Step *s, const Buffer *root)
{
    int how = 0;
    for (int i = 0; i < s->nbuf; i++)
        if (buffer_root(s->bufs[i]) == root)
            how |= touches_argument(s, i);
    if (s->scratch && buffer_root(s->scratch) == root)
        how |= TOUCH_WRITES;
    if (s->cond && buffer_root(s->cond) == root)
        how |= TOUCH_READS;
    for (int i = 0; i < s->body.n; i++)
        how |= step_touches(s->body.step[i], root);
    for (int i = 0; i < s->other.n; i++)
        how |= step_touches(s->other.step[i], root);
    return how;
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
    LastUse *u = &f->use[buffer_memory(root)->id];
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
        if (step_touches(s, buffer_root(check->bufs[i])) & TOUCH_READS)
            return true;
    return !check->nbuf;
}

StepOrder *step_order_new(Arena *a, const Plan *p, const Block *b)
{
    StepOrder *o = NEW(a, StepOrder);
    *o = (StepOrder){a, p, b, NEWN(a, Successors, b->n), NEWN(a, StepList, b->n)};
    EdgeFinder f = {.o = o, .use = NEWN(a, LastUse, p->nbuffer + 1)};
    for (int i = 0; i < p->nbuffer; i++)
        f.use[i].writer = -1;
    for (int i = 0; i < b->n; i++) {
        f.step = i;
        step_each_touched(b->step[i], add_edges, &f);
        const bool whole = stays(p, b->step[i]);
        for (int j = 0; j < i && whole; j++)
            step_before(o, j, i);
        for (int j = i + 1; j < b->n; j++) /* an index is looked at before it is used */
            if (whole || (b->step[i]->kind == STEP_INDEX && reads_same(b->step[i], b->step[j])))
                step_before(o, i, j);
    }
    return o;
}

bool step_stays(const Plan *p, const Step *s)
{
    return s->kind == STEP_INDEX || stays(p, s);
}

const int *steps_next(const StepOrder *o, int i, int *n)
{
    *n = o->next[i].n;
    return o->next[i].to;
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
static double more_held(const Ordering *x, int step)
{
    double bytes = 0;
    for (int i = 0; i < x->o->buffers[step].n; i++) {
        const Buffer *b = x->o->p->buffers[x->o->buffers[step].step[i]];
        const Pending *of = &x->of[b->id];
        if (counts(b))
            bytes += (of->begun ? 0 : (double)b->bytes) - (of->left > 1 ? 0 : (double)b->bytes);
    }
    return bytes;
}

/* While the step runs. */
static double taken(const Ordering *x, int step)
{
    double bytes = 0;
    for (int i = 0; i < x->o->buffers[step].n; i++) {
        const Buffer *b = x->o->p->buffers[x->o->buffers[step].step[i]];
        bytes += counts(b) && !x->of[b->id].begun ? (double)b->bytes : 0;
    }
    return bytes;
}

static void run_next(Ordering *x, int step)
{
    const StepOrder *o = x->o;
    x->order[x->n++] = step;
    x->done[step] = true;
    x->peak = fmax(x->peak, x->held + taken(x, step));
    x->held += more_held(x, step);
    x->sum += x->held;
    for (int k = 0; k < o->buffers[step].n; k++) {
        x->of[o->buffers[step].step[k]].begun = true;
        x->of[o->buffers[step].step[k]].left--;
    }
    for (int k = 0; k < o->next[step].n; k++)
        x->waits[o->next[step].to[k]]--;
}

/* The step that frees the most; of those that free nothing the first. -1: none frees anything, and
 * that is asked for. */
static int next_step(const Ordering *x, OrderRule rule)
{
    int best = -1;
    double least = 0;
    for (int i = 0; i < x->o->b->n && (rule != ORDER_AS_IS || best < 0); i++) {
        if (x->done[i] || x->waits[i])
            continue;
        const double more = rule == ORDER_AS_IS ? 0 : more_held(x, i);
        if ((best >= 0 || rule == ORDER_AHEAD) && more >= least)
            continue;
        best = i;
        least = more < 0 ? more : 0;
    }
    return best;
}

/* ---- a look ahead --------------------------------------------------------------------------- */

/* How many steps a result may need: the strips of a convolution's gradient, each of a few
 * kernels. */
enum { MOST_AHEAD = 160 };
/* Steps that are not done yet and that a result needs. */
typedef struct {
    int step[MOST_AHEAD], n, seen;
    double net, most; /* bytes that they leave behind, and that they need beside what is held */
} Ahead;

/* The step behind those that it waits for; false: there are too many. */
static bool find_ahead(const Ordering *x, int result, int step, int *mark, Ahead *h)
{
    const StepList *before = &x->before[step];
    if (x->done[step] || mark[step] == result)
        return true;
    mark[step] = result;
    if (h->seen++ == MOST_AHEAD)
        return false;
    for (int i = 0; i < before->n; i++)
        if (!find_ahead(x, result, before->step[i], mark, h))
            return false;
    h->step[h->n++] = step;
    return true;
}

/* What the steps need and leave, as if they ran now. */
static void measure_ahead(Ordering *x, Ahead *h)
{
    h->net = h->most = 0;
    for (int i = 0; i < h->n; i++) {
        const StepList *named = &x->o->buffers[h->step[i]];
        h->most = fmax(h->most, h->net + taken(x, h->step[i]));
        h->net += more_held(x, h->step[i]);
        for (int k = 0; k < named->n; k++) {
            Pending *of = &x->of[named->step[k]];
            of->left--;
            of->ahead += !of->begun || of->ahead;
            of->begun = true;
        }
    }
    for (int i = 0; i < h->n; i++) {
        const StepList *named = &x->o->buffers[h->step[i]];
        for (int k = 0; k < named->n; k++) {
            Pending *of = &x->of[named->step[k]];
            of->left++;
            of->begun = of->begun && !of->ahead;
            of->ahead = 0;
        }
    }
}

/* Of the steps that nobody waits for (next values of states, results) the one that needs the fewest
 * bytes on the way, if more is free then than now: runs all up to there. */
static bool run_ahead(Ordering *x, int *mark)
{
    Ahead best = {.n = 0}, h;
    memset(mark, -1, (size_t)x->o->b->n * sizeof *mark);
    for (int i = 0; i < x->o->b->n; i++) {
        h.n = h.seen = 0;
        if (x->done[i] || x->o->next[i].n || !find_ahead(x, i, i, mark, &h))
            continue;
        measure_ahead(x, &h);
        if (h.net < 0 && (!best.n || h.most < best.most))
            best = h;
    }
    for (int i = 0; i < best.n; i++)
        run_next(x, best.step[i]);
    return best.n;
}

/* A list of steps. */
static Ordering order_by(StepOrder *o, OrderRule rule)
{
    const int n = o->b->n;
    Ordering x = {.o = o,
                  .of = NEWN(o->a, Pending, o->p->nbuffer + 1),
                  .waits = NEWN(o->a, int, n),
                  .done = NEWN(o->a, bool, n),
                  .order = NEWN(o->a, int, n),
                  .before = NEWN(o->a, StepList, n)};
    int *mark = NEWN(o->a, int, n);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < o->next[i].n; k++) {
            StepList *before = &x.before[o->next[i].to[k]];
            x.waits[o->next[i].to[k]]++;
            vec_push(o->a, before->step, before->n, i);
        }
        for (int k = 0; k < o->buffers[i].n; k++)
            x.of[o->buffers[i].step[k]].left++;
    }
    while (x.n < n) {
        int next = next_step(&x, rule);
        if (next < 0 && run_ahead(&x, mark))
            continue;
        if (next < 0)
            next = next_step(&x, ORDER_AS_IS);
        if (next < 0)
            BUG("steps that wait for each other");
        run_next(&x, next);
    }
    return x;
}

/* The one that holds the fewest bytes at its worst; of these, all in all. */
const int *step_order_best(StepOrder *o)
{
    Ordering best = order_by(o, ORDER_AS_IS);
    for (int rule = ORDER_AS_IS + 1; rule < ORDERS; rule++) {
        const Ordering x = order_by(o, (OrderRule)rule);
        if (x.peak < best.peak || (x.peak <= best.peak && x.sum < best.sum))
            best = x;
    }
    return best.order;
}
