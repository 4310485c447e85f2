/* shard_states.c - a state that is split as its next value is lies in parts, one on each device.
 *
 *     keys [1,8,past,128]    next: concat {2} keys, k          k is split along 1, the heads
 *     keys.0 [1,4,past,128]  next: concat {2} keys.0, k's first half           on device 0
 *     keys.1 [1,4,past,128]  next: concat {2} keys.1, k's other half           on device 1
 *
 * Functions of a model share states: what the first of them that is planned has decided holds for
 * all. The state itself has no room and no next value from then on. */
#include "shards.h"

void shards_seed_states(Shards *s)
{
    for (int i = 0; i < s->c->nstate; i++) {
        const StateTensor *x = &s->c->states[i];
        if (x->part && x->node->id < s->c->nnode)
            s->seed[x->node->id] = x->axis;
    }
}

/* What a part has room for, by axis. */
static int64_t *room_of(const Shards *s, int state, int axis)
{
    const Node *n = s->c->states[state].node;
    int64_t *room = NEWN(s->c->arena, int64_t, n->rank + 1);
    for (int i = 0; i < n->rank; i++)
        room[i] = state_room_along(s->c, state, i) / (i == axis ? s->n : 1);
    return room;
}

static void make_parts(const Shards *s, int state, int axis)
{
    Context *c = s->c;
    const Node *n = c->states[state].node;
    const char *name = c->states[state].name;
    ingot_dim *dims[INGOT_MAX_RANK];
    Node **part = NEWN(c->arena, Node *, s->n);
    for (int i = 0; i < n->rank; i++)
        dims[i] = n->shape[i];
    dims[axis] = idx_div(c, n->shape[axis], idx(c, s->n));
    for (int d = 0; d < s->n; d++) {
        part[d] = (Node *)(uintptr_t)ingot_growing_state(
            c, arena_printf(c->arena, "%s.%d", name, d), (ingot_dtype)n->dtype, n->rank, dims);
        c->states[part[d]->arg.i].device = d;
        c->states[part[d]->arg.i].room = room_of(s, state, axis);
    }
    c->states[state].part = part;
    c->states[state].axis = axis;
}

/* Along which axis its next value is split, and it can be; WHOLE: none, or it begins as data. */
static int next_axis(const Shards *s, int state)
{
    const StateTensor *x = &s->c->states[state];
    const int axis = x->next && !x->begin && !x->room ? s->axis[x->next->id] : WHOLE;
    return can_split(s, x->node, axis) && s->c->random != x->node ? axis : WHOLE;
}

void shards_split_states(Shards *s)
{
    const int nstate = s->c->states_split ? 0 : s->c->nstate;
    s->c->states_split = true;
    for (int i = 0; i < nstate; i++) {
        const int axis = s->c->states[i].part ? WHOLE : next_axis(s, i);
        if (axis < 0)
            continue;
        s->seed[s->c->states[i].node->id] = axis;
        make_parts(s, i, axis);
    }
    shards_spread(s);
}

Node *state_part(const Shards *s, const Node *state, int device)
{
    return s->c->states[state->arg.i].part[device];
}
