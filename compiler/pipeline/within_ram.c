/* within_ram.c - plans for --max-ram, where the usual one takes more.
 *
 * What is held long is made again; or values are made in patches; or a byte of the arena is worth
 * so many cycles.  Each plan begins with the context as it was, so none depends on what was tried
 * before it: the best one is made again in the end, and what a file of --save-sched says of its
 * limit makes it in another process. */
#include <math.h>

#include "pipeline.h"

/* What is tried: what is held long is made again; values in patches that take such a part of the
 * limit, by an estimate; then a byte is worth so many cycles, times DEAR, for which there are fewer
 * halos, and more is computed again. */
typedef struct {
    double room, price; /* 0: no patches; as the target has it */
    bool again;
} Saving;

static const Saving savings[] = {{0, 0, true},       {1, 0, false},   {0.9, 0, false},
                                 {0.75, 0, false},   {0.6, 0, false}, {0, 1.0 / 16, true},
                                 {0, 1.0 / 4, true}, {0, 1, true},    {0, 4, true},
                                 {0, 16, true},      {0, 64, true},   {0, 256, true}};
enum { SAVINGS = sizeof savings / sizeof *savings };
enum { STEPS = 32 }; /* of the usual arena */

/* A saving, what values in patches take by an estimate, and what a run may hold without the states.
 */
typedef struct {
    const Saving *s; /* NULL: nothing was tried */
    double room, fit;
    PlanTaken taken;
} Tried;

/* What is made again is so for the limit, and for those below it that are so many 32nds of the
 * usual arena, whichever limit is asked for: of those that fit into it the fastest is taken.  So a
 * limit that is a little tighter has no faster plan than a looser one, which could have had it. */
typedef struct {
    Context *c;
    const Target *t;
    const ingot_options *o;
    Clock *k;
    ContextMark *imported;
    Arena *scratch; /* of what the context has got since */
    PlanTaken usual;
    Tried best;      /* of those that fit the fastest; or the smallest */
    PlanTaken first; /* of the last saving the first */
    bool same;       /* this saving changes nothing */
} RamSearch;

static Plan *plan_tried(const RamSearch *x, Tried *w, int64_t limit, bool silent)
{
    ingot_options own = *x->o;
    own.max_ram = limit;
    const Within within = {.room = w->room,
                           .ram = {.byte = w->s ? w->s->price * DEAR : 0, .hold = w->fit},
                           .judge = x->t,
                           .silent = silent};
    return plan_once(x->c, x->t, &own, x->k, &within, &w->taken);
}

/* Whether it fits. */
static bool fits(RamSearch *x, Tried *w, int64_t limit)
{
    Arena *fresh = arena_new();
    context_rewind(x->c, x->imported, fresh);
    arena_free(x->scratch);
    x->scratch = fresh;
    Plan *p = plan_tried(x, w, limit, true);
    plan_free(p);
    return p;
}

/* Values in patches are none that a file could speak of, and it has its own price. */
static bool may_try(const RamSearch *x, const Saving *s)
{
    if (s->price > 0 && (s->price * DEAR <= x->t->machine.byte || x->o->sched))
        return false;
    return !(s->room > 0) || (!x->o->sched && !x->o->save_sched);
}

/* ---- the fastest that fits ------------------------------------------------------------------- */

/* By more than what estimates can tell apart: else what saves less is taken. */
static bool is_faster(const Tried *w, const Tried *than)
{
    enum { TOLD_APART = 32 };
    return !than->s || w->taken.cycles * (1 + 1.0 / TOLD_APART) < than->taken.cycles;
}

/* Whether it fits. */
static bool try_plan(RamSearch *x, const Saving *s, double fit, Tried *w)
{
    const int64_t limit = x->o->max_ram;
    *w = (Tried){.s = s, .room = s->room * (double)limit, .fit = fit};
    const bool good = fits(x, w, limit);
    if (good && is_faster(w, &x->best))
        x->best = *w;
    return good;
}

static bool taken_equal(const PlanTaken *x, const PlanTaken *y)
{
    return x->bytes == y->bytes && !(x->cycles < y->cycles || x->cycles > y->cycles);
}

static double step_of(const RamSearch *x)
{
    return (double)(x->usual.bytes - x->usual.states) / STEPS;
}

/* The next of the steps below. */
static double step_below(const RamSearch *x, double fit)
{
    const double step = step_of(x);
    return floor(step * (ceil(fit / step) - 1));
}

/* The limit, and the steps of the usual arena below it: until plans fit, and some more. Whether any
 * did. */
static bool try_steps(RamSearch *x, const Saving *s)
{
    enum { TRIES = 6, MORE = 2 };
    const double most = (double)(x->o->max_ram - x->usual.states);
    bool fits = false;
    int left = TRIES;
    for (double fit = most; fit > 0 && left > 0; fit = step_below(x, fit), left--) {
        Tried w;
        const bool good = try_plan(x, s, fit, &w);
        if (left == TRIES && !fits) {
            x->same = s->price > 0 && taken_equal(&w.taken, &x->first);
            x->first = w.taken;
        }
        if (x->same)
            return good;
        if (!good || fits)
            continue;
        fits = true;
        left = MORE + 1;
    }
    return fits;
}

/* What steps of that size pass over: from the limit down by what is too much. */
static bool try_close(RamSearch *x, const Saving *s)
{
    enum { TRIES = 6, NEAR = 8 }; /* a packing that is so little above what is alive at once */
    const double most = (double)(x->o->max_ram - x->usual.states);
    double fit = most;
    for (int i = 0; i < TRIES && fit > 0; i++) {
        Tried w;
        if (try_plan(x, s, fit, &w))
            return true;
        const double over = (double)(w.taken.bytes - x->o->max_ram);
        if (over <= 0 || over * NEAR > most)
            return false;
        fit -= over;
    }
    return false;
}

static bool try_saving(RamSearch *x, const Saving *s)
{
    Tried w;
    x->same = false;
    return s->again ? try_steps(x, s) || (!x->best.s && !x->same && try_close(x, s))
                    : try_plan(x, s, 0, &w);
}

/* Until one in patches fits; of those with prices, until they get slower. */
static void try_savings(RamSearch *x)
{
    for (int i = 0; i < SAVINGS && !x->c->nerror; i++) {
        const Saving *s = &savings[i];
        const Tried before = x->best;
        if (before.s && before.s->room > 0)
            return;
        if (!may_try(x, s) || (s->room > 0 && before.s))
            continue;
        x->best.s = NULL;
        const bool good = try_saving(x, s);
        const Tried now = x->best;
        if (before.s && (!good || !is_faster(&now, &before)))
            x->best = before;
        if (before.s && good && now.taken.cycles > before.taken.cycles)
            return;
    }
}

/* ---- the smallest ---------------------------------------------------------------------------- */

/* Whether it takes less than all before. */
static bool try_smaller(RamSearch *x, const Saving *s, double most)
{
    const double limit = (double)x->usual.states + most;
    Tried w = {.s = s, .room = s->room * limit, .fit = s->again ? most : 0};
    if (!fits(x, &w, s->again ? INT64_MAX : (int64_t)limit) ||
        w.taken.bytes >= (x->best.s ? x->best.taken : x->usual).bytes)
        return false;
    x->best = w;
    return true;
}

/* From the usual arena down, whichever limit was asked for: so the bytes that a refusal names are
 * those of a plan, and enough. */
static void try_smallest(RamSearch *x)
{
    enum { MISSES = 3 };
    for (int i = 0; i < SAVINGS && !x->c->nerror; i++) {
        if (!may_try(x, &savings[i]))
            continue;
        double most = (double)((x->best.s ? x->best.taken : x->usual).bytes - x->usual.states);
        for (int misses = 0; misses < MISSES && (most = step_below(x, most)) > 0;)
            if (try_smaller(x, &savings[i], most)) {
                most = fmin(most, (double)(x->best.taken.bytes - x->usual.states));
                misses = 0;
            } else {
                misses++;
            }
    }
}

/* ---------------------------------------------------------------------------------------------- */

static void tell_saving(const RamSearch *x)
{
    const long long bytes = (long long)x->best.taken.bytes;
    const Saving *s = x->best.s;
    if (s->room > 0)
        context_report(x->c, INGOT_NOTE, INGOT_OK, "--max-ram: %lld bytes, patch by patch", bytes);
    else if (s->price > 0)
        context_report(x->c, INGOT_NOTE, INGOT_OK,
                       "--max-ram: %lld bytes with bytes worth %g cycles each, not %g", bytes,
                       s->price * DEAR, x->t->machine.byte);
    else
        context_report(x->c, INGOT_NOTE, INGOT_OK,
                       "--max-ram: %lld bytes, some values made twice or later", bytes);
}

Plan *plan_within_ram(Context *c, const Target *t, const ingot_options *o, Clock *k)
{
    const bool may = o->max_ram && !o->naive && !t->gpu;
    RamSearch x = {.c = c, .t = t, .o = o, .k = k};
    Arena *a = arena_new();
    if (may)
        x.imported = context_mark(c, a);
    Tried usual = {0};
    Plan *p = plan_tried(&x, &usual, o->max_ram, may);
    x.usual = usual.taken;
    if (!p && may && x.usual.bytes && !c->nerror) {
        x.scratch = arena_new();
        try_savings(&x);
        if (!x.best.s && !c->nerror)
            try_smallest(&x);
        context_rewind(c, x.imported, NULL);
        arena_free(x.scratch);
        p = plan_tried(&x, &x.best, o->max_ram, false);
        if (p && o->summary)
            tell_saving(&x);
    }
    context_mark_free(x.imported);
    arena_free(a);
    return p;
}
