/* tune_changes.c - what a decision of the plan changes when it is taken the other way round.
 *
 *     the plan as it is, and the plan with the decision's lines     steps that only one of them
 *                                                                   has; cycles of both, by
 *                                                                   cost_nest()
 *
 * A plan of a large network takes seconds, so what it told is remembered: in the database, by the
 * program of the network as it is (its entry in the cache is named by all that a plan depends on:
 * model, dims, target, decisions, and this ingot) and the lines.  What takes part in a network that
 * is built needs its plan again (changes_complete()). */
#include <stdlib.h>
#include <string.h>

#include "inspect.h"
#include "tune_command.h"

/* ---- beside another plan --------------------------------------------------------------------- */

/* What a step is, in any plan of this graph. */
static uint64_t step_id(const Step *s)
{
    const Node *value = s->value ? s->value : s->nstored ? s->stored->node : NULL;
    const uint64_t part[] = {(uint64_t)s->kind, s->kernel ? kernel_hash(s->kernel, 1) : 0,
                             (uint64_t)(uintptr_t)value};
    return hash_bytes(3, part, sizeof part);
}

Steps steps_of(Tune *t, const Plan *p)
{
    return (Steps){.t = t,
                   .step = plan_steps(p, t->a),
                   .id = NEWN(t->a, uint64_t, p->nstep + 1),
                   .n = p->nstep};
}

uint64_t steps_id(const Steps *s, int i)
{
    if (!s->id[i])
        s->id[i] = step_id(s->step[i]);
    return s->id[i];
}

static double cycles_of(const Tune *t, const Step *s)
{
    return s->kernel ? cost_nest(s->kernel, &t->target).cycles : 0;
}

/* A line of what the database knows a region by. */
static void add_kernel(StrBuf *sb, char sign, const Step *s)
{
    sb_printf(sb, "%c %016llx %s\n", sign,
              (unsigned long long)(s->kernel ? kernel_hash(s->kernel, 1) : 0),
              s->kernel ? "" : s->name);
}

void find_changes(const Steps *base, const Steps *other, Decision *d)
{
    Tune *t = base->t;
    bool *same = NEWN(t->a, bool, base->n + 1);
    StrBuf sb = {0};
    d->taken = NULL;
    d->put = NULL;
    d->ntaken = d->nput = 0;
    d->before = d->after = 0;
    for (int i = 0; i < other->n; i++) {
        int j = 0;
        while (j < base->n && (same[j] || steps_id(base, j) != steps_id(other, i)))
            j++;
        if (j < base->n) {
            same[j] = true;
            continue;
        }
        vec_push(t->a, d->put, d->nput, steps_id(other, i));
        d->after += cycles_of(t, other->step[i]);
        add_kernel(&sb, '+', other->step[i]);
    }
    for (int i = 0; i < base->n; i++) {
        if (same[i])
            continue;
        vec_push(t->a, d->taken, d->ntaken, i);
        d->before += cycles_of(t, base->step[i]);
        add_kernel(&sb, '-', base->step[i]);
    }
    d->key = text_key(t, "decision, ", sb.data ? sb.data : "");
    sb_free(&sb);
}

const char *decisions_file(const Tune *t)
{
    return arena_printf(t->a, "%s/decisions.sched", t->dir);
}

Plan *plan_with(Tune *t, const char *lines)
{
    t->nplan++;
    ingot_options o = t->o->compile;
    o.verbose = 0;
    o.sched = decisions_file(t);
    const char *all = arena_printf(t->a, "%s%s", t->t.values ? t->t.values : "", lines);
    return network_write_lines(t, o.sched, all) == INGOT_OK ? plan_make(t->m.c, &o) : NULL;
}

double *step_cycles(const Steps *base, const Plan *p)
{
    Tune *t = base->t;
    Step *const *step = plan_steps(p, t->a);
    double *cycles = NEWN(t->a, double, base->n + 1), copies = 0;
    Map of = {0}; /* by value: the step of this plan + 1 */
    double *at = NEWN(t->a, double, p->nstep + 1);
    for (int i = 0; i < p->nstep; i++) {
        const Step *s = step[i];
        copies += cycles_of(t, s);
        if (!s->kernel || !s->value || (s->choice && s->choice->copy))
            continue;
        at[i] = copies;
        copies = 0;
        map_put(&of, (uint64_t)(uintptr_t)s->value, (void *)(uintptr_t)(i + 1));
    }
    for (int i = 0; i < base->n; i++) {
        const Step *s = base->step[i];
        const bool computes = s->kernel && s->value && !(s->choice && s->choice->copy);
        const uintptr_t there =
            computes ? (uintptr_t)map_get(&of, (uint64_t)(uintptr_t)s->value) : 0;
        cycles[i] = there ? at[there - 1] : 0;
    }
    map_free(&of);
    return cycles;
}

/* ---- remembered ------------------------------------------------------------------------------ */

/* "# 0123..: 1234.5 cycles for 1300, 2 put, taken 17 18" */
static const char no_plan[] = "# no plan", form[] = "# %s: %.17g cycles for %.17g, %d put, taken";

static const char *memo_key(const Tune *t, const char *lines)
{
    const char *slash = strrchr(t->s.entry, '/');
    return text_key(t, "changes, ",
                    arena_printf(t->a, "%s\n%s", slash ? slash + 1 : t->s.entry, lines));
}

static bool keep_changes(Tune *t, const Decision *d, bool good)
{
    StrBuf sb = {0};
    if (good)
        sb_printf(&sb, form, d->key, d->after, d->before, d->nput);
    else
        sb_puts(&sb, no_plan);
    for (int i = 0; i < d->ntaken && good; i++)
        sb_printf(&sb, " %d", d->taken[i]);
    const bool kept = database_keep_outcome(t->d, memo_key(t, d->line), sb.data);
    sb_free(&sb);
    return kept;
}

/* False: it is no such text, or of another plan. */
static bool read_changes(const Steps *base, const char *text, Decision *d)
{
    const char *key = text + 2;
    char *at = strlen(text) > 2 ? strchr(key, ':') : NULL;
    const int length = (int)(at ? at - key : 0);
    int used = 0;
    if (!at ||
        sscanf(at, ": %lf cycles for %lf, %d put, taken%n", &d->after, &d->before, &d->nput,
               &used) != 3 ||
        !used)
        return false;
    d->key = arena_printf(base->t->a, "%.*s", length, key);
    d->taken = NULL;
    d->ntaken = 0;
    for (at += used; *at;) {
        const int step = (int)strtol(at, &at, 10);
        if (step < 0 || step >= base->n || (*at && *at != ' '))
            return false;
        vec_push(base->t->a, d->taken, d->ntaken, step);
    }
    return true;
}

Known changes_known(const Steps *base, Decision *d)
{
    const char *text = database_outcome(base->t->d, base->t->a, memo_key(base->t, d->line));
    if (text && !strcmp(text, no_plan))
        return KNOWN_NONE;
    return text && read_changes(base, text, d) ? KNOWN : NOT_KNOWN;
}

/* Lines that make no plan are told of by nobody. */
static Plan *plan_or_none(Tune *t, const char *lines)
{
    const int nerror = t->m.c->nerror;
    const ingot_status status = t->m.c->status;
    Plan *p = plan_with(t, lines);
    if (!p) {
        t->m.c->nerror = nerror;
        t->m.c->status = status;
    }
    return p;
}

ingot_status changes_find(const Steps *base, Decision *d, bool *good)
{
    Tune *t = base->t;
    Plan *p = plan_or_none(t, d->line);
    *good = p != NULL;
    if (p) {
        const Steps other = steps_of(t, p);
        find_changes(base, &other, d);
        d->cycles = d->layout ? step_cycles(base, p) : NULL;
        plan_free(p);
    }
    return keep_changes(t, d, *good) ? INGOT_OK : complain(INGOT_IO, "%s", database_error(t->d));
}

ingot_status changes_complete(const Steps *base, Decision *d)
{
    bool good = true;
    if ((d->put || !d->nput) && (d->cycles || !d->layout))
        return INGOT_OK;
    const ingot_status status = changes_find(base, d, &good);
    if (status == INGOT_OK && !good)
        BUG("lines that made a plan make none now");
    return status;
}
