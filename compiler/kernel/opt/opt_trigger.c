/* opt_trigger.c - TRIGGER: when the kernel that is enqueued behind this one may begin. STAY: how
 * many groups are launched.
 *
 * Its groups then take what this one leaves free of the processors, get ready and wait for all that
 * is before them, so nothing changes but time: a launch is hidden, and the constants that it
 * multiplies come meanwhile.  Too early, they are in the way of groups of this one. */
#include <stdlib.h>
#include <string.h>

#include "opt.h"

const char *opt_trigger(Nest *n, const Opt *o)
{
    const bool copied = !strcmp(o->axis, "copied"), waited = copied || !strcmp(o->axis, "waited");
    if (n->shared && !(n->target && n->target->triggers))
        return opt_refuse(n, "TRIGGER: kernels of this target begin when those before them end");
    if (n->trigger)
        return opt_refuse(n, "TRIGGER %s: it is said already", o->axis);
    if (!waited && strcmp(o->axis, "summed") != 0)
        return opt_refuse(n, "TRIGGER %s: TRIGGER waited, TRIGGER copied or TRIGGER summed",
                          o->axis);
    if (!waited && !(n->tc && n->tc->lanes && n->nstage && n->stage[0].depth))
        return opt_refuse(n, "TRIGGER summed: it is for sums of a matrix unit whose operands STAGE "
                             "brings ahead");
    if (copied && n->shared && !machine_copies(&n->target->machine))
        return opt_refuse(n, "TRIGGER copied: this machine has no copies to what a group shares");
    n->trigger = copied ? TRIGGER_COPIED : waited ? TRIGGER_WAITED : TRIGGER_SUMMED;
    return NULL;
}

const char *opt_stay(Nest *n, const Opt *o)
{
    enum { MOST = 1 << 16 };
    const int digits = (int)strspn(o->axis, "0123456789");
    const long groups = o->axis[digits] || digits > 5 ? 0 : atol(o->axis);
    if (groups < 1 || groups > MOST)
        return opt_refuse(n, "STAY %s: a number of groups from 1 to %d is wanted", o->axis, MOST);
    if (!n->tc || !tc_in_place(n->tc) || !n->nstage || n->trigger || n->k->crosses)
        return opt_refuse(n, "STAY: it is for products of a warpgroup's unit whose operands come "
                             "by boxes, without TRIGGER");
    n->stay = groups;
    return NULL;
}
