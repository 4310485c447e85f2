/* runs.c - a list of runs, and the same list with a value made again.
 *
 *     y = conv(x)                        y = conv(x)
 *     ..y..            y is held         ..y..            y dies
 *     dw = ..y..                  ->     y' = conv(x)     in front of `at`
 *     z' = f(y)                          dw = ..y'..
 *                                        z' = f(y')
 *
 * What makes a value are all the steps that write it: a kernel, a loop over strips, several that
 * each write a part.  They run again on buffers of their own.  Of what they read it is asked, in
 * this order:
 *
 *     is it there, and has not been changed?      then they read it
 *     is it made again behind `at`?               then it is made now, for both: so a chain is
 *                                                 computed again in segments, each once
 *     else it is held longer, or made again as well
 *
 * (Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174, for chains;
 * Kumar et al., "Efficient Rematerialization for Deep Networks", 2019, for graphs.) */
#include <string.h>

#include "cost.h"
#include "optimise.h"
#include "runs.h"

/* ---- the list of a plan -------------------------------------------------------------------- */

typedef struct {
    Arena *a;
    ListedRun *run;
} UseList;

static void add_use(void *user, const Buffer *root, int how)
{
    UseList *l = user;
    ListedRun *r = l->run;
    for (int i = 0; i < r->nuse; i++)
        if (r->use[i].value == buffer_memory(root)->id) {
            r->use[i].how |= how;
            return;
        }
    vec_push(l->a, r->use, r->nuse, ((RunUse){buffer_memory(root)->id, how}));
}

/* Nothing but its results is changed, and no integers that others use are set. */
static bool is_pure(const Step *s)
{
    bool pure = !s->collective && (s->kind == STEP_KERNEL || s->kind == STEP_COPY ||
                                   (s->kind == STEP_LOOP && s->trip && !s->cond && !s->iterations));
    for (int i = 0; i < s->body.n && pure; i++)
        pure = is_pure(s->body.step[i]);
    return pure;
}

static double step_cycles(const Step *s, const Target *t)
{
    const double times = s->kind == STEP_LOOP && s->trip ? (double)s->trip->hi : 1;
    double cycles = s->kind == STEP_KERNEL ? cost_kernel(s->kernel, t)
                    : s->kind == STEP_COPY ? cost_bytes(2 * (double)s->bufs[0]->bytes, 0, t)
                                           : 0;
    for (int i = 0; i < s->body.n; i++)
        cycles += times * step_cycles(s->body.step[i], t);
    for (int i = 0; i < s->other.n; i++)
        cycles += step_cycles(s->other.step[i], t);
    return cycles;
}

double plan_cycles(const Plan *p, const Target *t)
{
    double cycles = 0;
    for (int i = 0; i < p->main.n; i++)
        cycles += step_cycles(p->main.step[i], t);
    return cycles;
}

Runs runs_of(Arena *a, const Plan *p, const Target *t)
{
    const Block *b = &p->main;
    Runs r = {.a = a,
              .n = b->n,
              .run = NEWN(a, ListedRun, b->n + 1),
              .cycles = NEWN(a, double, b->n + 1),
              .pure = NEWN(a, bool, b->n + 1),
              .stays = NEWN(a, bool, b->n + 1)};
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *x = p->buffers[i];
        const bool counts = x->kind == BUF_ARENA && !x->base && !x->takes,
                   whole = x->kept || x->lent != LENT_NOT;
        const RunValue value = {.of = i,
                                .counts = counts,
                                .may = counts && !whole,
                                .whole = whole,
                                .bytes = (double)x->bytes};
        vec_push(a, r.value, r.nvalue, value);
    }
    for (int i = 0; i < b->n; i++) {
        UseList l = {a, &r.run[i]};
        r.run[i].step = i;
        step_each_touched(b->step[i], add_use, &l);
        r.cycles[i] = step_cycles(b->step[i], t);
        r.pure[i] = is_pure(b->step[i]);
        r.stays[i] = step_stays(p, b->step[i]);
        for (int k = 0; k < r.run[i].nuse; k++)
            r.pure[i] &=
                !(r.run[i].use[k].how & TOUCH_WRITES) || r.value[r.run[i].use[k].value].may;
    }
    return r;
}

/* ---- what is asked of it ------------------------------------------------------------------- */

int run_touches(const ListedRun *r, int value)
{
    for (int i = 0; i < r->nuse; i++)
        if (r->use[i].value == value)
            return r->use[i].how;
    return 0;
}

RunLife *run_lives(Arena *a, const Runs *r)
{
    RunLife *life = NEWN(a, RunLife, r->nvalue + 1);
    for (int i = 0; i < r->nvalue; i++)
        life[i] = (RunLife){-1, -1, -1, -1};
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->run[i].nuse; k++) {
            RunLife *l = &life[r->run[i].use[k].value];
            l->first = l->first < 0 ? i : l->first;
            l->last = i;
            if (!(r->run[i].use[k].how & TOUCH_WRITES))
                continue;
            l->writer = l->writer < 0 ? i : l->writer;
            l->last_writer = i;
        }
    return life;
}

double *run_bytes(Arena *a, const Runs *r, const RunLife *life)
{
    double *bytes = NEWN(a, double, r->n + 1);
    for (int i = 0; i < r->nvalue; i++) {
        const RunValue *v = &r->value[i];
        if (!v->counts || life[i].first < 0)
            continue;
        bytes[v->whole ? 0 : life[i].first] += v->bytes;
        bytes[v->whole ? r->n : life[i].last + 1] -= v->bytes;
    }
    for (int i = 1; i < r->n; i++)
        bytes[i] += bytes[i - 1];
    return bytes;
}

/* Does a run between these two write it? */
static bool changes(const Runs *r, int value, int from, int to)
{
    for (int i = from + 1; i < to; i++)
        if (run_touches(&r->run[i], value) & TOUCH_WRITES)
            return true;
    return false;
}

/* ---- again --------------------------------------------------------------------------------- */

enum { SMALL = 8 }; /* operands of so small a part of the value are held in any case */
typedef enum { NOT_MADE, AT_WORK, MADE } MadeState;
typedef struct {
    const Runs *r;
    const RunLife *life;
    Runs *out;      /* values; runs: what comes in front of `at` */
    int target, at; /* value, run */
    bool longer;
    int *twin;            /* by value: what is made in its place, or -1 */
    MadeState *state;     /* by value */
    bool *copied, *moved; /* by run */
    double cycles;
} Remake;

static bool make_again(Remake *x, int value);
static bool make_now(Remake *x, int value);

static int twin_of(Remake *x, int value)
{
    if (x->twin[value] < 0) {
        x->twin[value] = x->out->nvalue;
        vec_push(x->out->a, x->out->value, x->out->nvalue, x->r->value[value]);
    }
    return x->twin[value];
}

/* What there is of a value in front of `at`: itself, or one that was made in its place; or -1. */
static int what_is_there(const Remake *x, int value)
{
    for (int i = 0; i < x->r->nvalue; i++) {
        const RunLife *l = &x->life[i];
        if (x->r->value[i].of == x->r->value[value].of && i != x->target &&
            l->last_writer < x->at && l->last >= x->at && (i == value || l->writer >= 0))
            return i;
    }
    return -1;
}

static int count_writers(const Runs *r, int value)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += (run_touches(&r->run[i], value) & TOUCH_WRITES) != 0;
    return n;
}

/* One that is made behind `at`, all of it; or -1. */
static int made_later(const Remake *x, int value)
{
    for (int i = 0; i < x->r->nvalue; i++)
        if (x->r->value[i].of == x->r->value[value].of && x->life[i].writer >= x->at &&
            count_writers(x->r, i) == count_writers(x->r, value))
            return i;
    return -1;
}

/* Which value a run that comes again reads for the one that run i reads; -1: there is none. */
static int operand_of(Remake *x, int value, int i)
{
    const RunValue *v = &x->r->value[value];
    if (!v->may)
        return changes(x->r, value, i, x->at) ? -1 : value;
    if (x->state[value] == AT_WORK || x->life[value].last_writer >= i)
        return -1;
    if (x->state[value] == MADE)
        return x->twin[value];
    const int there = what_is_there(x, value);
    if (there >= 0)
        return there;
    const int later = made_later(x, value);
    if (later >= 0)
        return make_now(x, later) ? later : -1;
    if (value != x->target && x->life[value].writer >= 0 &&
        (x->longer || SMALL * v->bytes <= x->r->value[x->target].bytes))
        return value;
    return make_again(x, value) ? x->twin[value] : -1;
}

/* Those that write the value before run i does. */
static bool copy_writers(Remake *x, int value, int i);

static bool copy_run(Remake *x, int i)
{
    const ListedRun *run = &x->r->run[i];
    if (x->copied[i])
        return true;
    if (i >= x->at || !x->r->pure[run->step])
        return false;
    ListedRun copy = {.step = run->step, .again = true};
    for (int k = 0; k < run->nuse; k++) {
        RunUse u = run->use[k];
        if (u.how & TOUCH_WRITES) {
            if (u.how & TOUCH_READS && !copy_writers(x, u.value, i))
                return false;
            u.value = twin_of(x, u.value);
        } else {
            u.value = operand_of(x, u.value, i);
        }
        if (u.value < 0)
            return false;
        vec_push(x->out->a, copy.use, copy.nuse, u);
    }
    x->copied[i] = true;
    x->cycles += x->r->cycles[run->step];
    vec_push(x->out->a, x->out->run, x->out->n, copy);
    return true;
}

static bool copy_writers(Remake *x, int value, int i)
{
    for (int k = x->life[value].writer; k >= 0 && k < i; k++)
        if (run_touches(&x->r->run[k], value) & TOUCH_WRITES && !copy_run(x, k))
            return false;
    return true;
}

static bool make_again(Remake *x, int value)
{
    if (x->state[value] != NOT_MADE || !x->r->value[value].may || x->life[value].writer < 0)
        return x->state[value] == MADE;
    x->state[value] = AT_WORK;
    if (!copy_writers(x, value, x->life[value].last_writer + 1))
        return false;
    x->state[value] = MADE;
    return true;
}

/* Run i, which comes behind `at`, and all that it waits for, come in front of it. */
static bool move_run(Remake *x, int i)
{
    const ListedRun *run = &x->r->run[i];
    if (x->moved[i])
        return true;
    if (i == x->at || !run->again)
        return false;
    for (int k = 0; k < run->nuse; k++) {
        const int value = run->use[k].value;
        const RunLife *l = &x->life[value];
        const bool writes = run->use[k].how & TOUCH_WRITES;
        if (value == x->target)
            return false;
        if (!x->r->value[value].may && changes(x->r, value, x->at - 1, i))
            return false;
        for (int w = l->writer; w >= x->at && w < i; w++)
            if (run_touches(&x->r->run[w], value) & TOUCH_WRITES && !move_run(x, w))
                return false;
        if (x->r->value[value].may && !writes && l->last_writer >= i)
            return false;
    }
    x->moved[i] = true;
    vec_push(x->out->a, x->out->run, x->out->n, *run);
    return true;
}

static bool make_now(Remake *x, int value)
{
    const RunLife *l = &x->life[value];
    for (int i = l->writer; i <= l->last_writer; i++)
        if (run_touches(&x->r->run[i], value) & TOUCH_WRITES && !move_run(x, i))
            return false;
    return true;
}

/* The run with another value in place of one that it reads. */
static ListedRun read_instead(Arena *a, const ListedRun *of, int value, int other)
{
    ListedRun run = *of;
    if (!run_touches(of, value))
        return run;
    run.use = NULL;
    run.nuse = 0;
    for (int i = 0; i < of->nuse; i++) {
        RunUse u = of->use[i];
        u.value = u.value == value ? other : u.value;
        vec_push(a, run.use, run.nuse, u);
    }
    return run;
}

static Runs values_copy(Arena *a, const Runs *r)
{
    Runs out = *r;
    out.a = a;
    out.run = NULL;
    out.n = 0;
    out.value = vec_of(a, r->value, (size_t)r->nvalue, sizeof *r->value);
    return out;
}

bool runs_again(Arena *a, const Runs *r, const RunLife *life, RunReader what, bool longer,
                RunsAgain *out)
{
    Runs made = values_copy(a, r);
    Remake x = {.r = r, .life = life, .out = &made, .target = what.value, .at = what.at};
    x.longer = longer;
    x.twin = NEWN(a, int, r->nvalue);
    x.state = NEWN(a, MadeState, r->nvalue);
    x.copied = NEWN(a, bool, r->n);
    x.moved = NEWN(a, bool, r->n);
    memset(x.twin, -1, (size_t)r->nvalue * sizeof *x.twin);
    if (!make_again(&x, what.value))
        return false;
    *out = (RunsAgain){made, x.twin[what.value], x.cycles};
    Runs *all = &out->runs;
    all->run = NULL;
    all->n = 0;
    for (int i = 0; i < x.at; i++)
        vec_push(a, all->run, all->n, r->run[i]);
    for (int i = 0; i < made.n; i++)
        vec_push(a, all->run, all->n, made.run[i]);
    for (int i = x.at; i < r->n; i++)
        if (!x.moved[i])
            vec_push(a, all->run, all->n, read_instead(a, &r->run[i], what.value, out->made));
    return true;
}

/* ---- later --------------------------------------------------------------------------------- */

/* Of a value, what the runs that come later do with it: TOUCH_*. */
static bool waits(const ListedRun *run, const int *touched)
{
    for (int i = 0; i < run->nuse; i++) {
        const RunUse *u = &run->use[i];
        if ((touched[u->value] & TOUCH_WRITES) || (touched[u->value] && u->how & TOUCH_WRITES))
            return true;
    }
    return false;
}

bool runs_later(Arena *a, const Runs *r, int from, int to, Runs *out)
{
    int *touched = NEWN(a, int, r->nvalue + 1), *later = NULL, nlater = 0;
    *out = values_copy(a, r);
    out->run = NEWN(a, ListedRun, r->n + 1);
    for (int i = 0; i < r->n; i++) {
        const ListedRun *run = &r->run[i];
        const bool between = i >= from && i <= to;
        if (between && r->stays[run->step])
            return false;
        if (between && (i == from || waits(run, touched))) {
            vec_push(a, later, nlater, i);
            for (int k = 0; k < run->nuse; k++)
                touched[run->use[k].value] |= run->use[k].how;
        } else {
            out->run[out->n++] = *run;
        }
        for (int k = 0; k < nlater && i == to; k++)
            out->run[out->n++] = r->run[later[k]];
    }
    return nlater < to - from + 1;
}

/* ---- without ------------------------------------------------------------------------------- */

/* A run that comes again, of whose results nobody reads one. */
static bool is_idle(const Runs *r, int i)
{
    const ListedRun *run = &r->run[i];
    bool idle = run->again;
    for (int k = 0; k < run->nuse && idle; k++)
        for (int j = i + 1; j < r->n && run->use[k].how & TOUCH_WRITES && idle; j++)
            idle = !(run_touches(&r->run[j], run->use[k].value) & TOUCH_READS);
    return idle;
}

Runs runs_without(Arena *a, const Runs *r, int value, int other)
{
    Runs out = values_copy(a, r);
    for (int i = 0; i < r->n; i++)
        vec_push(a, out.run, out.n,
                 run_touches(&r->run[i], value) == TOUCH_READS
                     ? read_instead(a, &r->run[i], value, other)
                     : r->run[i]);
    for (int i = out.n; i-- > 0;) /* the last first: so what they alone need is idle, too */
        if (is_idle(&out, i)) {
            memmove(out.run + i, out.run + i + 1, (size_t)(out.n - i - 1) * sizeof *out.run);
            out.n--;
        }
    return out;
}
