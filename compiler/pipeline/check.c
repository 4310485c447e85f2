/* check.c - before anything is written: some results of every step beside the graph
 * (interp/plan_check.c). */
#include "pipeline.h"
#include "plan_check.h"

bool check_plan(Plan *p, const Target *t, const ingot_options *o, Clock *k)
{
    PlanCheck check;
    const bool good = plan_check(p, t->gpu, &check);
    passed(k, "check");
    if (!good)
        context_report(p->c, INGOT_ERROR, INGOT_BUG,
                       "%s: a fault of the compiler, not of the model: what would be written is "
                       "not what the graph "
                       "says: %s; please report it (--no-check leaves this out)",
                       p->c->file ? p->c->file : "model", check.fault);
    else if (o->verbose)
        context_report(p->c, INGOT_NOTE, INGOT_OK,
                       "  checked %lld results of %d of %d steps, by %.1f million operations",
                       (long long)check.results, check.nchecked, check.nstep,
                       (double)check.operations * 1e-6);
    return good;
}
