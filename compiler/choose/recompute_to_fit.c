/* recompute_to_fit.c - --max-ram: what is read again long after it was made is made again, until
 * the arena is as small as it has to be.
 *
 * What costs nothing comes first: a run that holds too much comes later, when less is held beside
 * it (the gradient of an embedding, behind those of all layers).
 *
 * Which values?  Every step that holds more than the limit has an excess of bytes, and the sum of
 * these is what is to become zero.  Of all values that are held over such steps the one is made
 * again (runs.c) that takes the most of the excess for its cycles, and so on: of a chain of layers
 * first those that take little time for their bytes, then whole segments.  In the end what turns
 * out not to be needed is undone, the dearest first.
 *
 * The kernels are the same ones, and what is computed twice has the same bits.
 *
 * Requires the kernels' opts and the order of the main steps.  Leaves steps and buffers of their
 * own, and an order in which they come where they are read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optimise.h"
#include "runs.h"

/* A value that could be made again. */
typedef struct {
    RunReader reader;
    double bytes_most, cycles_least; /* of the excess that goes; of the time that it takes */
} MayRemake;
typedef struct {
    int made, like; /* values */
    double cycles;
} MadeAgain;
typedef struct {
    Arena *a;
    double limit;
    MadeAgain *made;
    int nmade;
} ToFit;

static double excess_of(Arena *a, const Runs *r, double limit)
{
    const double *bytes = run_bytes(a, r, run_lives(a, r));
    double excess = 0;
    for (int i = 0; i < r->n; i++)
        excess += fmax(0, bytes[i] - limit);
    return excess;
}

static int by_promise(const void *x, const void *y)
{
    const MayRemake *a = x, *b = y;
    const double p = a->bytes_most * b->cycles_least, q = b->bytes_most * a->cycles_least;
    if (p > q || p < q)
        return p > q ? -1 : 1;
    if (a->reader.value != b->reader.value)
        return a->reader.value - b->reader.value;
    return a->reader.at - b->reader.at;
}

/* All values that are held over steps with an excess, between two runs that use them. */
static MayRemake *candidates(Arena *a, const Runs *r, const RunLife *life, double limit, int *n)
{
    const double *bytes = run_bytes(a, r, life);
    double *excess = NEWN(a, double, r->n + 1); /* of the steps before */
    double *cycles = NEWN(a, double, r->nvalue + 1);
    int *used = NEWN(a, int, r->nvalue + 1); /* last */
    int *over = NEWN(a, int, r->n + 1);
    MayRemake *out = NULL;
    *n = 0;
    for (int i = 0; i < r->n; i++) {
        excess[i + 1] = excess[i] + fmax(0, bytes[i] - limit);
        over[i + 1] = over[i] + (bytes[i] > limit);
    }
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->run[i].nuse; k++) {
            const RunUse u = r->run[i].use[k];
            const RunValue *v = &r->value[u.value];
            if (u.how & TOUCH_WRITES)
                cycles[u.value] += r->cycles[r->run[i].step];
            const int from = used[u.value];
            used[u.value] = i;
            if (!v->may || u.how != TOUCH_READS || life[u.value].writer < 0 ||
                life[u.value].last_writer > from || over[i] == over[from + 1])
                continue;
            const double most =
                fmin(excess[i] - excess[from + 1], v->bytes * (over[i] - over[from + 1]));
            const MayRemake c = {{u.value, i}, most, fmax(1, cycles[u.value])};
            vec_push(a, out, *n, c);
        }
    if (*n)
        qsort(out, (size_t)*n, sizeof *out, by_promise);
    return out;
}

/* What it takes and spares. */
static double spared(const ToFit *f, const Runs *r, const RunLife *life, double now, RunReader at,
                     bool longer, double *cycles)
{
    Arena *scratch = arena_new();
    RunsAgain tried;
    const bool can = runs_again(scratch, r, life, at, longer, &tried);
    const double bytes = can ? now - excess_of(scratch, &tried.runs, f->limit) : 0;
    *cycles = can ? fmax(1, tried.cycles) : 1;
    arena_free(scratch);
    return bytes;
}

/* The value that spares the most for its cycles; false: none spares any. */
static bool one_again(ToFit *f, Runs *r)
{
    Arena *scratch = arena_new();
    const RunLife *life = run_lives(scratch, r);
    const double now = excess_of(scratch, r, f->limit);
    int n;
    const MayRemake *c = candidates(scratch, r, life, f->limit, &n);
    double best = 0, cycles;
    RunReader reader = {-1, -1};
    bool held = false;
    for (int i = 0; i < n && c[i].bytes_most > best * c[i].cycles_least; i++)
        for (int longer = 0; longer < 2; longer++) {
            const double bytes = spared(f, r, life, now, c[i].reader, longer, &cycles);
            if (bytes <= best * cycles)
                continue;
            best = bytes / cycles;
            reader = c[i].reader;
            held = longer;
        }
    RunsAgain again;
    const bool any = best > 0 && runs_again(f->a, r, life, reader, held, &again);
    arena_free(scratch);
    if (!any)
        return false;
    vec_push(f->a, f->made, f->nmade, ((MadeAgain){again.made, reader.value, again.cycles}));
    *r = again.runs;
    return true;
}

/* ---- later ---------------------------------------------------------------------------------- */

/* The list with the least excess, of those in which one run comes later. */
typedef struct {
    double excess;
    int from, to; /* -1: as it is */
} Later;

static void try_later(const ToFit *f, const Runs *r, int from, Later *best)
{
    enum { PLACES = 8 };
    for (int i = 1; i <= PLACES && from >= 0; i++) {
        Arena *scratch = arena_new();
        const int to = from + (r->n - 1 - from) * i / PLACES;
        Runs tried;
        const double excess = to > from && runs_later(scratch, r, from, to, &tried)
                                  ? excess_of(scratch, &tried, f->limit)
                                  : best->excess;
        if (excess < best->excess)
            *best = (Later){excess, from, to};
        arena_free(scratch);
    }
}

/* Of each stretch of runs with an excess the worst one, and those that make what it uses. */
static bool one_later(const ToFit *f, Runs *r)
{
    Arena *scratch = arena_new();
    const RunLife *life = run_lives(scratch, r);
    const double *bytes = run_bytes(scratch, r, life);
    const double now = excess_of(scratch, r, f->limit);
    Later best = {now, -1, -1};
    for (int i = 0, worst = -1; i < r->n; i++) {
        if (bytes[i] > f->limit)
            worst = worst < 0 || bytes[i] > bytes[worst] ? i : worst;
        if (worst < 0 || (i + 1 < r->n && bytes[i + 1] > f->limit))
            continue;
        const ListedRun *run = &r->run[worst];
        try_later(f, r, worst, &best);
        for (int k = 0; k < run->nuse; k++)
            if (r->value[run->use[k].value].counts)
                try_later(f, r, life[run->use[k].value].writer, &best);
        worst = -1;
    }
    arena_free(scratch);
    Runs moved;
    if (best.from < 0 || !runs_later(f->a, r, best.from, best.to, &moved))
        return false;
    *r = moved;
    return true;
}

static int dearest_first(const void *x, const void *y)
{
    const MadeAgain *a = x, *b = y;
    if (a->cycles > b->cycles || a->cycles < b->cycles)
        return a->cycles > b->cycles ? -1 : 1;
    return a->made - b->made;
}

/* Has all that reads a value the other one as well?  What makes that may come later by now. */
static bool has_other(const Runs *r, int value, int other)
{
    bool read = false, has = true;
    for (int i = 0; i < r->n; i++) {
        read |= run_touches(&r->run[i], value) == TOUCH_READS;
        has &= !read || !(run_touches(&r->run[i], other) & TOUCH_WRITES);
    }
    return has;
}

/* Those without which it fits as well are not made. */
static void undo(ToFit *f, Runs *r)
{
    if (f->nmade)
        qsort(f->made, (size_t)f->nmade, sizeof *f->made, dearest_first);
    for (int i = 0; i < f->nmade; i++) {
        const MadeAgain m = f->made[i];
        if (!has_other(r, m.made, m.like))
            continue;
        const Runs tried = runs_without(f->a, r, m.made, m.like);
        if (excess_of(f->a, &tried, f->limit) > 0)
            continue;
        *r = tried;
        for (int k = 0; k < f->nmade; k++)
            f->made[k].like = f->made[k].like == m.made ? m.like : f->made[k].like;
    }
}

/* ---- the plan ------------------------------------------------------------------------------ */

typedef struct {
    Plan *p;
    const Runs *r;
    Buffer **of; /* by value: its buffer */
    Buffer **views;
    const Buffer **viewed;
    int nview, nviewed;
} NewSteps;

/* The buffer of a value, or a part of it, as `old` is one of the value that it is made like. */
static Buffer *instead_of(NewSteps *x, Buffer *old, int value)
{
    Plan *p = x->p;
    if (!old->base)
        return x->of[value];
    Buffer *base = instead_of(x, old->base, value);
    for (int i = 0; i < x->nview; i++)
        if (x->viewed[i] == old && x->views[i]->base == base)
            return x->views[i];
    Buffer *view = NEW(p->arena, Buffer);
    *view = *old;
    view->base = base;
    view->id = p->nbuffer;
    vec_push(p->arena, p->buffers, p->nbuffer, view);
    vec_push(p->arena, x->views, x->nview, view);
    vec_push(p->arena, x->viewed, x->nviewed, old);
    return view;
}

static Buffer *buffer_of_run(NewSteps *x, const ListedRun *run, Buffer *b)
{
    const Buffer *root = b ? buffer_root(b) : NULL;
    for (int i = 0; i < run->nuse && root; i++) {
        const RunUse *u = &run->use[i];
        if (x->r->value[u->value].of == root->id && x->of[u->value] != root)
            return instead_of(x, b, u->value);
    }
    return b;
}

static void use_buffers(NewSteps *x, const ListedRun *run, Step *s)
{
    for (int i = 0; i < s->nbuf; i++)
        s->bufs[i] = buffer_of_run(x, run, s->bufs[i]);
    for (int i = 0; i < s->nstored; i++)
        s->stored[i].buffer = buffer_of_run(x, run, s->stored[i].buffer);
    s->scratch = buffer_of_run(x, run, s->scratch);
    s->cond = buffer_of_run(x, run, s->cond);
    for (int i = 0; i < s->body.n; i++)
        use_buffers(x, run, s->body.step[i]);
    for (int i = 0; i < s->other.n; i++)
        use_buffers(x, run, s->other.step[i]);
}

static void tell(Plan *p, const ListedRun *run, const NewSteps *x, const Step *copy)
{
    for (int i = 0; i < run->nuse; i++) {
        const int value = run->use[i].value;
        const Buffer *old = p->buffers[x->r->value[value].of];
        if (run->use[i].how & TOUCH_WRITES)
            plan_note(p, (Note){.pass = "recompute",
                                .what = "computed twice",
                                .why = "the arena is to fit into --max-ram, and of what is held "
                                       "this spares the most for its time",
                                .node = old->node,
                                .step = copy,
                                .buffer = x->of[value],
                                .other = old,
                                .operations = -1,
                                .bytes = old->bytes});
    }
}

static void make_steps(Plan *p, const Runs *r)
{
    NewSteps x = {.p = p, .r = r, .of = NEWN(p->arena, Buffer *, r->nvalue + 1)};
    const int n = p->nbuffer;
    Block *b = &p->main;
    Step **steps = NEWN(p->arena, Step *, r->n + 1);
    RunLife *life = run_lives(p->arena, r);
    for (int i = 0; i < r->nvalue; i++) {
        Buffer *old = p->buffers[r->value[i].of];
        x.of[i] = i < n               ? old
                  : life[i].first < 0 ? NULL
                                      : buffer_twin(p, old, BUF_ARENA, &old->layout);
        if (x.of[i] && i >= n)
            place_with(p, old, x.of[i]);
    }
    for (int i = 0; i < r->n; i++) {
        const ListedRun *run = &r->run[i];
        Step *of = b->step[run->step];
        steps[i] = run->again ? step_twin(p, of) : of;
    }
    for (int i = 0; i < r->n; i++) {
        use_buffers(&x, &r->run[i], steps[i]);
        if (r->run[i].again)
            tell(p, &r->run[i], &x, steps[i]);
    }
    b->step = steps;
    b->n = r->n;
}

bool recompute_to_fit(Plan *p, const Target *t, double bytes)
{
    if (p->ndevice > 1)
        return false;
    Arena *a = arena_new();
    ToFit f = {.a = a, .limit = bytes};
    Runs r = runs_of(a, p, t);
    bool moved = false;
    for (bool more = true; more;) {
        more = false;
        while (one_later(&f, &r))
            moved = more = true;
        while (one_again(&f, &r))
            more = true;
    }
    const bool fits = excess_of(a, &r, bytes) <= 0;
    if (fits)
        undo(&f, &r);
    if (f.nmade || moved)
        make_steps(p, &r);
    arena_free(a);
    return fits;
}
