/* tune_chains.c - results whose layouts change together, though none of them is worth it alone.
 *
 *     conv
 *         -> a -> depthwise -> b -> conv      a alone: its reader and its writer work across lines;
 *            a and b: neither does
 *
 * Each layout that was tried alone (tune_decisions.c) is or is not the other way round.  What a
 * step takes depends on those that change it:
 *
 *     none, or one of them      known: the plan as it is, or the one with that layout alone; in
 *                               milliseconds where it was timed
 *     all of them               the plan with all layouts the other way round
 *     some                      the sum of what each of them adds
 *
 * least_sum() finds the layouts with which all steps together take least.  What is the other way
 * round then, and hangs together by steps, is a chain: a decision like the others, which is built,
 * timed and confirmed like them. */
#include <stdlib.h>
#include <string.h>

#include "tune_command.h"

enum { MOST_LAYOUTS = 256 };

typedef struct {
    const Steps *base;
    Decision *const *one; /* each layout alone */
    int n;
    bool **changes;       /* by layout and step */
    double **ms;          /* the same: what the step takes with that layout alone */
    const double *all;    /* by step: cycles with all of them */
    const double *cycles; /* and as it is */
} Chains;

/* ---- what a step takes ----------------------------------------------------------------------- */

/* Milliseconds for each cycle of the estimate: as measured of the step as it is. */
static double ms_of_cycle(const Chains *x, int step)
{
    return x->cycles[step] > 0 ? x->base->ms[step] / x->cycles[step] : 0;
}

/* Steps that each layout changes, and what they take then: as it was timed, divided as
 * estimated. */
static void find_changes_of(Chains *x, int i)
{
    Arena *a = x->base->t->a;
    const Decision *d = x->one[i];
    const int n = x->base->n;
    double sum = 0;
    x->changes[i] = NEWN(a, bool, n + 1);
    x->ms[i] = NEWN(a, double, n + 1);
    for (int j = 0; j < d->ntaken; j++)
        x->changes[i][d->taken[j]] = true;
    for (int j = 0; j < n; j++) {
        x->changes[i][j] |= d->cycles[j] != x->cycles[j];
        x->ms[i][j] = d->cycles[j] * ms_of_cycle(x, j);
        sum += x->changes[i][j] ? x->ms[i][j] : 0;
    }
    for (int j = 0; j < n && d->is > 0 && sum > 0; j++)
        x->ms[i][j] *= d->is / sum;
}

static double ms_under(void *user, int step, const bool *other)
{
    const Chains *x = user;
    const double as_it_is = x->base->ms[step];
    double sum = as_it_is;
    int n = 0, changed = 0;
    for (int i = 0; i < x->n; i++) {
        if (!x->changes[i][step])
            continue;
        n++;
        changed += other[i];
        sum += other[i] ? x->ms[i][step] - as_it_is : 0;
    }
    return changed > 1 && changed == n ? x->all[step] * ms_of_cycle(x, step) : sum;
}

/* ---- chains ---------------------------------------------------------------------------------- */

static bool share_step(const Chains *x, int a, int b)
{
    bool common = false;
    for (int i = 0; i < x->base->n && !common; i++)
        common = x->changes[a][i] && x->changes[b][i];
    return common;
}

/* Of those that are the other way round, what hangs together: a line of the file for each. */
static void print_chains(const Chains *x, bool *other, StrBuf *out)
{
    int *member = NEWN(x->base->t->a, int, x->n + 1);
    for (int i = 0; i < x->n; i++) {
        int n = 0;
        if (!other[i])
            continue;
        other[i] = false;
        member[n++] = i;
        for (int j = 0; j < n; j++) /* grows on the way */
            for (int k = 0; k < x->n; k++)
                if (other[k] && share_step(x, member[j], k)) {
                    other[k] = false;
                    member[n++] = k;
                }
        for (int j = 0; j < n && n > 1; j++)
            sb_puts(out, x->one[member[j]]->line);
        sb_puts(out, n > 1 ? "\n" : "");
    }
}

/* Of one kernel one result. */
static int layouts_alone(Tune *t, Decision **out)
{
    int n = 0;
    for (int i = t->ndecided; i < t->ndecision && n < MOST_LAYOUTS; i++) {
        Decision *d = &t->decision[i];
        bool first = d->layout;
        for (int j = 0; j < n && first; j++)
            first = out[j]->about != d->about;
        if (first)
            out[n++] = d;
    }
    return n;
}

/* Lines of each chain, an empty one behind it. */
static ingot_status compute_chains(const Steps *base, Decision *const *one, int n, StrBuf *out)
{
    Tune *t = base->t;
    Arena *a = t->a;
    StrBuf lines = {0};
    ingot_status status = INGOT_OK;
    for (int i = 0; i < n && status == INGOT_OK; i++)
        status = changes_complete(base, one[i]);
    if (status != INGOT_OK)
        return status;
    for (int i = 0; i < n; i++)
        sb_puts(&lines, one[i]->line);
    Plan *p = plan_with(t, lines.data);
    sb_free(&lines);
    if (!p)
        return ingot_context_status(t->m.c);
    Chains x = {.base = base,
                .one = one,
                .n = n,
                .changes = NEWN(a, bool *, n + 1),
                .ms = NEWN(a, double *, n + 1),
                .all = step_cycles(base, p),
                .cycles = step_cycles(base, t->plan)};
    plan_free(p);
    double *weight = NEWN(a, double, n + 1);
    bool *other = NEWN(a, bool, n + 1);
    for (int i = 0; i < n; i++) {
        find_changes_of(&x, i);
        weight[i] = one[i]->was;
    }
    const LeastSum sum = {n, base->n, x.changes, weight, ms_under, &x};
    (void)least_sum(&sum, other);
    print_chains(&x, other, out);
    return INGOT_OK;
}

ingot_status find_chains(const Steps *base, double end, char **lines)
{
    Tune *t = base->t;
    Decision **one = NEWN(t->a, Decision *, t->ndecision + 1);
    static const char head[] = "# chains of layouts\n";
    const int n = layouts_alone(t, one);
    *lines = NULL;
    if (n < 2)
        return INGOT_OK;
    /* times are not the same again, so what was proposed is remembered */
    const char *key = network_key(t, "chains, ", t->t.values ? t->t.values : "");
    char *text = database_outcome(t->d, t->a, key);
    if (!text && seconds_now() >= end)
        return INGOT_OK;
    if (!text) {
        StrBuf sb = {0};
        sb_puts(&sb, head);
        const ingot_status status = compute_chains(base, one, n, &sb);
        text = sb_take(&sb, t->a);
        if (status != INGOT_OK)
            return status;
        if (!database_keep_outcome(t->d, key, text))
            return complain(INGOT_IO, "%s", database_error(t->d));
    }
    *lines = text + strlen(head);
    return INGOT_OK;
}
