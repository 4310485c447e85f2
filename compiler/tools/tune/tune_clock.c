/* tune_clock.c - what networks take where steps are counted (tune/clock.c): a cycle of the estimate
 * is a nanosecond.
 *
 * The program runs all the same, in the caller: one that fails is found.  Its steps are those of
 * the plan that it was built from. */
#include <string.h>

#include "inspect.h"
#include "tune_command.h"

#define OTHER 1e-3 /* milliseconds of a step that has no estimate */

typedef struct NetworkEstimate {
    const char *entry;
    double *ms; /* by step */
    int n;
    struct NetworkEstimate *next;
} NetworkEstimate;

static NetworkEstimate *add_estimate(Tune *t, const char *entry, const Plan *p)
{
    NetworkEstimate *e = NEW(t->a, NetworkEstimate);
    Step *const *step = plan_steps(p, t->a);
    *e = (NetworkEstimate){entry, NEWN(t->a, double, p->nstep + 1), p->nstep, t->estimate};
    for (int i = 0; i < p->nstep; i++)
        e->ms[i] = step[i]->kernel ? cost_nest(step[i]->kernel, &t->target).cycles * 1e-6 : OTHER;
    return t->estimate = e;
}

static NetworkEstimate *find_estimate(const Tune *t, const char *entry)
{
    NetworkEstimate *e = t->estimate;
    while (e && strcmp(e->entry, entry) != 0)
        e = e->next;
    return e;
}

ingot_status network_note(Tune *t, const char *file, const char *entry)
{
    LoadedModel m;
    Plan *p;
    if (find_estimate(t, entry))
        return INGOT_OK;
    const ingot_status status = plan_anew(t, file, 0, &m, &p);
    if (p)
        add_estimate(t, entry, p);
    plan_free(p);
    model_close(&m);
    return status;
}

/* Of a program that was not noted: it is that of the plan as it is, before anything was decided. */
static const NetworkEstimate *estimate_of(Tune *t, const char *entry)
{
    const NetworkEstimate *e = find_estimate(t, entry);
    return e ? e : add_estimate(t, entry, t->plan);
}

void network_estimates(Tune *t, const char *entry, double *ms, int n)
{
    const NetworkEstimate *e = estimate_of(t, entry);
    for (int i = 0; i < n && i < e->n; i++)
        ms[i] = e->ms[i];
}

double network_estimate(Tune *t, const char *entry)
{
    const NetworkEstimate *e = estimate_of(t, entry);
    double sum = 0;
    for (int i = 0; i < e->n; i++)
        sum += e->ms[i];
    return sum;
}
