/* shard_states.c - states that lie on several devices.
 *
 * Where the next value is split, the state is, too:
 *
 *     keys [1,8,past,128]    next: concat {2} keys, k          k is split along 1, the heads
 *     keys.0 [1,4,past,128]  next: concat {2} keys.0, k's first half           on device 0
 *     keys.1 [1,4,past,128]  next: concat {2} keys.1, k's other half           on device 1
 *
 * It has no room itself and no next value from then on.
 *
 * Where the next value is whole, and each device computes rows of the batch, each has the state and
 * makes its next value. Of a weight only terms of its gradient cross then:
 *
 *     w                      next: w - rate all_reduce @0 g0 g1                on device 0
 *     w.1                    next: w.1 - rate all_reduce @1 g0 g1              on device 1
 *
 * Functions of a model share states: what the first of them that is planned has decided holds for
 * all. */
#include "shards.h"

void shards_seed_states(Shards *s)
{
    for (int i = 0; i < s->c->nstate; i++) {
        const StateTensor *x = &s->c->states[i];
        if (x->part && x->axis >= 0 && x->node->id < s->c->nnode)
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

/* Each device makes its next value, which is the same everywhere. */
static bool is_everywhere(const Shards *s, int state)
{
    const StateTensor *x = &s->c->states[state];
    return x->next && s->axis[x->next->id] < 0 && !x->grows && !x->part && !x->device &&
           x->node != s->c->random;
}

void shards_repeat_states(Shards *s)
{
    Context *c = s->c;
    const int nstate = c->states_split ? 0 : c->nstate;
    c->states_split = true;
    for (int i = 0; i < nstate; i++) {
        if (!is_everywhere(s, i))
            continue;
        const Node *n = c->states[i].node;
        Node **each = NEWN(c->arena, Node *, s->n);
        each[0] = c->states[i].node;
        for (int d = 1; d < s->n; d++) {
            each[d] = (Node *)(uintptr_t)ingot_growing_state(
                c, arena_printf(c->arena, "%s.%d", c->states[i].name, d), (ingot_dtype)n->dtype,
                n->rank, (ingot_dim *const *)n->shape);
            c->states[each[d]->arg.i].device = d;
            c->states[each[d]->arg.i].begin = c->states[i].begin;
        }
        c->states[i].part = each;
        c->states[i].axis = WHOLE;
    }
}

Node *state_part(const Shards *s, const Node *state, int device)
{
    return s->c->states[state->arg.i].part[device];
}
