/* candidates.c - what a kernel takes by opts that are tried: passes list them, cost_nest() picks.
 */
#include "choose.h"
#include "cost_nest.h"

double nest_cycles(const Kernel *k, const Nest *n, const Layout *want)
{
    Kernel *copy = kernel_copy(k);
    for (int i = 0; i < copy->narg && want; i++)
        if (want[i].n)
            copy->args[i].layout = want[i];
    nest_keep(n, copy);
    const double cycles = cost_nest(copy, n->target).cycles;
    ingot_context_free(copy->c);
    return cycles;
}
