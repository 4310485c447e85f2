/* shards.h - which part of each value a device has. */
#ifndef SHARDS_H
#define SHARDS_H

#include "rewrite.h"

enum { WHOLE = -1 }; /* no axis is split: whoever needs the value has all of it */

typedef struct {
    Context *c;
    Arena *a;
    const Target *t;
    int n; /* devices */
    Node **order;
    int norder;
    /* by id */
    bool *constant; /* made of constants: any part of it can be had anywhere */
    int *axis;      /* of which each device has an equal part, in their order; or WHOLE */
    int *seed;      /* the same, where nothing that it is made of says so */
} Shards;

/* How a node is computed: in which form each device takes its sources, the first and the others;
 * along which axis its result is then split; whether it is a term of a sum over all devices. */
typedef struct {
    int axis, first, rest;
    bool partial;
} ShardRule;
ShardRule shard_rule(const Shards *, Node *);
/* Can it be cut there into equal parts? */
bool can_split(const Shards *, const Node *, int axis);
/* What leads an axis of a RESHAPE's source leads this one of its result; WHOLE: none. */
int reshaped_axis(const Shards *, const Node *, int axis);
/* Of a GATHER or UPDATE: along which axis of the indices runs the coordinate of this axis of x? */
int index_axis(const Node *, uint32_t first, int axis);

/* shard_constants.c: the part of a constant that a device has. */
Node *constant_part(Shards *, Node *x, int axis, int device);
/* shard_states.c: states whose next values are split lie in parts on the devices; these are seeded.
 * The part, or the whole, that a device has. */
void shards_seed_states(Shards *);
void shards_split_states(Shards *);
/* The same: those whose next values are whole lie on each device. */
void shards_repeat_states(Shards *);
Node *state_part(const Shards *, const Node *state, int device);
/* shard_rules.c: axis[], of all nodes, by what is seeded. */
void shards_spread(Shards *);
/* shard_cost.c: the time of products, and of what devices exchange, where nodes are split so. */
double shards_time(const Shards *);
/* shard_cost.c: products by a constant are split along the axes of their results that make all of
 * it faster. */
void shards_choose(Shards *);
#endif
