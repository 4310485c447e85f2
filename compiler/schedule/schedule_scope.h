/* schedule_scope.h - a block that is being scheduled: what the files of schedule.c share. */
#ifndef SCHEDULE_SCOPE_H
#define SCHEDULE_SCOPE_H

#include "schedule.h"

typedef struct {
    Sched *s;
    Block *block;
    Node **made; /* nodes that got a buffer in this block */
    int nmade;
} BlockScope;

/* schedule.c: a step behind those of the block; its operands. */
Step *schedule_step(BlockScope *, StepKind);
void schedule_step_bufs(Sched *, Step *, int n, Buffer *const *bufs);
/* Schedules what is needed for n results, and the requirements of the block.  dest[i]: where result
 * i must be; without a buffer, or NULL: anywhere. */
void schedule_block(BlockScope *, int n, Node *const *results, const StoredPlace *dest,
                    const Requires *);
/* Values of a block are forgotten behind it. */
void schedule_end(BlockScope *);

/* schedule_store.c: one kernel stores t at a place: computed, down to what is stored, for the node
 * `root`, or (NULL) copied from where it lies.  Or with as many kernels as an update or a concat
 * takes. */
void schedule_store(BlockScope *, Node *t, Node *root, StoredPlace out);
void schedule_into(BlockScope *, Node *t, StoredPlace out);
Node *copied_value(Sched *, Node *copy, Node **from);
/* Where t lies from now on; a new buffer in the arena. */
void schedule_set_buffer(BlockScope *, Node *t, Buffer *);
void schedule_set_place(BlockScope *, Node *t, StoredPlace);
void schedule_placed(Sched *, Node *t, int n, const StoredPlace *); /* all that t gives */
/* Where t is to be stored: in a buffer of its own, or in its home. */
StoredPlace schedule_place_of(BlockScope *, Node *t);
Buffer *schedule_arena(BlockScope *, Node *t);
/* A buffer that holds t and nothing else, for steps that read memory (calls, conditions). */
Buffer *schedule_buffer(BlockScope *, Node *t);

/* schedule_control.c: the steps of a node that is stored; a step that copies a buffer into
 * another. */
void schedule_node(BlockScope *, Node *t);
Step *schedule_copy(BlockScope *, Buffer *dst, Node *dst_offset, Buffer *src);

#endif
