/* target.c - targets from outside the tree. */
#include "target.h"

void target_add(Context *c, const Target *t)
{
    vec_push(c->arena, c->targets, c->ntarget, t);
}
