/* clone.h - a part of a graph again, over other values (clone.c). */
#ifndef CLONE_H
#define CLONE_H

#include "builder.h"

typedef struct {
    Context *c;
    Arena *arena;
    uint32_t n;         /* nodes before: those are what can be cloned */
    Node **now;         /* by id: what stands for it; NULL: not yet visited */
    const char *failed; /* why something could not be */
} Clone;
Clone clone_begin(Context *, Arena *);
void clone_set(Clone *, Node *old, Node *now);
void clone_nodes(Clone *, int nroot, Node *const *root); /* and all below */
Node *clone_of(const Clone *, Node *);

#endif
