/* target.c - targets from outside the tree. */
#include "target.h"

void target_add(Context *c, const Target *t)
{
    vec_push(c->arena, c->targets, c->ntarget, t);
}

const int *targets_by_speed(Arena *a, int n, const Target *const *t)
{
    int *order = NEWN(a, int, n);
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && !t[order[at - 1]]->gpu &&
               machine_speed(&t[order[at - 1]]->machine) > machine_speed(&t[i]->machine);
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return order;
}
