/* shards.c - a network that several devices compute together: what each does of it, as a graph.
 *
 *     y = softmax(relu(x w1) w2)      two devices, --parallel tensor
 *
 *     device 0    x - (x w1[:, first half])  - relu - ( w2[first half]) - all_reduce @0 - softmax
 *     device 1    COPY 1 (x) - .. second half ..                        - all_reduce @1
 *
 * Each value is whole on each device that reads it, or split along one of its axes
 * (shard_rules.c), by what is seeded: inputs along their first axis (batch), or products by a
 * constant along an axis of their results (tensor; shard_cost.c). The next product, which sums over
 * that axis, then has a term of its sum on each device.
 *
 * A device's part is made of the parts that it has, so it is found by its number in every COPY and
 * COLLECTIVE below it; constants have no device. Inputs, outputs, library kernels, loops and
 * branches are device 0's: what these need is computed there as the graph has it. So are states,
 * but for those that devices have in parts, or that each has (shard_states.c). */
#include <string.h>

#include "shards.h"

typedef struct {
    Shards s;
    Node ***local; /* by device and id, in the node's own form */
    Node ***term;  /* of a sum over all devices which nobody has asked for yet: each device's */
    int *uses;     /* by id: how many nodes read it, and what the graph gives counts for one */
    bool batch; /* is what is shared: sums over all devices are few and large, as gradients are */
    int split, reduced, gathered;
} Sharding;

/* ---- parts ----------------------------------------------------------------------------------- */

/* The part of x that a device has along an axis. */
static Node *part_of(const Sharding *q, Node *x, int axis, int device)
{
    Context *c = q->s.c;
    Node *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        begin[i] = idx(c, 0);
        size[i] = x->shape[i];
    }
    size[axis] = idx_div(c, x->shape[axis], idx(c, q->s.n));
    begin[axis] = idx_mul(c, size[axis], idx(c, device));
    return ingot_shrink(c, x, begin, size);
}

static Node *gathered(Sharding *q, const Node *x, int axis, int device)
{
    const Collective all = {.kind = ALL_GATHER, .axis = axis, .receiver = device};
    Node *src[MOST_DEVICES];
    for (int d = 0; d < q->s.n; d++)
        src[d] = q->local[d][x->id];
    q->gathered += !device;
    return collective_make(q->s.c, &all, q->s.n, src);
}

/* The sum, on each device. */
static void reduce_terms(Sharding *q, const Node *n)
{
    const int monoid = n->op == OP_REDUCE ? reduce_monoid(n) : INGOT_REDUCE_ADD;
    Node *term[MOST_DEVICES];
    for (int d = 0; d < q->s.n; d++)
        term[d] = q->term[d][n->id];
    for (int d = 0; d < q->s.n; d++) {
        const Collective all = {.kind = ALL_REDUCE, .monoid = monoid, .receiver = d};
        q->local[d][n->id] = collective_make(q->s.c, &all, q->s.n, term);
    }
    q->reduced++;
}

/* What a device has of a value, split along this axis, or WHOLE. */
static Node *as_wanted(Sharding *q, Node *x, int axis, int device)
{
    const int has = q->s.axis[x->id];
    if (q->term[device][x->id] && !q->local[device][x->id])
        reduce_terms(q, x);
    if (x->dtype == INGOT_INDEX)
        return x;
    if (q->s.constant[x->id])
        return axis < 0 ? x : constant_part(&q->s, x, axis, device);
    if (has == axis)
        return q->local[device][x->id];
    Node *whole = has < 0 ? q->local[device][x->id] : gathered(q, x, has, device);
    return axis < 0 ? whole : part_of(q, whole, axis, device);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static Node *brought(const Sharding *q, Node *x, int device)
{
    return device ? device_copy(q->s.c, x, device) : x;
}

/* The coordinates along an axis of the part of an index tensor. */
static Node *own_coordinates(const Sharding *q, const Node *index, int axis)
{
    Node *dims[INGOT_MAX_RANK];
    for (int i = 0; i < index->rank; i++)
        dims[i] = index->shape[i];
    dims[axis] = idx_div(q->s.c, dims[axis], idx(q->s.c, q->s.n));
    return node_make(q->s.c, OP_IOTA, (ingot_dtype)index->dtype, index->arg, index->rank, dims,
                     index->rank, dims);
}

/* Of a split result the dims that a device has. */
static void own_shape(const Sharding *q, const Node *n, int axis, Node **shape)
{
    for (int i = 0; i < n->rank; i++)
        shape[i] = n->shape[i];
    if (axis >= 0)
        shape[axis] = idx_div(q->s.c, shape[axis], idx(q->s.c, q->s.n));
}

static Node *node_again(Context *c, Node *n, Node **src, Node *const *shape)
{
    Node *again = n->op == OP_PERMUTE ? move_again(c, n, src[0]) : NULL;
    return again ? again
                 : node_make(c, (Op)n->op, (ingot_dtype)n->dtype, n->arg, (int)n->nsrc, src,
                             n->rank, shape);
}

static Node *own_node(Sharding *q, Node *n, const ShardRule *r, int device)
{
    Context *c = q->s.c;
    Node *shape[INGOT_MAX_RANK], **src = NEWN(q->s.a, Node *, n->nsrc + 1);
    const bool moves =
        n->op == OP_RESHAPE || n->op == OP_EXPAND || n->op == OP_SHRINK || n->op == OP_PAD;
    const uint32_t indices = n->op == OP_GATHER ? 1 : n->op == OP_UPDATE ? 2 : n->nsrc;
    own_shape(q, n, r->axis, shape);
    src[0] = as_wanted(q, n->src[0], r->first, device);
    for (uint32_t i = 1; i < n->nsrc; i++)
        src[i] = as_wanted(q, n->src[i], r->rest, device);
    for (uint32_t i = indices; i < n->nsrc && r->first >= 0; i++)
        if (i - indices == (uint32_t)r->first) /* it counts within the part of x */
            src[i] = own_coordinates(q, n->src[i], r->rest);
    if (moves && n->op == OP_SHRINK && r->axis >= 0)
        src[2 + 2 * r->axis] = shape[r->axis];
    for (int i = 0; i < n->rank && moves && n->op != OP_SHRINK && n->op != OP_PAD; i++)
        src[1 + i] = shape[i];
    return node_again(c, n, src, shape);
}

/* ---- terms of sums over all devices -----------------------------------------------------------
 *
 *     g = sum(dy x) + scatter(dz), then rounded        g0 = bf16(sum(dy0 x0) + scatter(dz0))  on 0
 *                                                      g = all_reduce add g0 g1
 *
 * What several such sums make together crosses once, and as it is rounded. */

static bool is_term(const Sharding *q, const Node *x)
{
    return q->term[0][x->id] && q->uses[x->id] == 1 &&
           (x->op != OP_REDUCE || reduce_monoid(x) == INGOT_REDUCE_ADD);
}

/* Is what each device makes of its terms a term of what it makes of the sums? Of a sum that is
 * rounded, but for the order in which it is rounded and added. */
static bool makes_term(const Sharding *q, const Node *n)
{
    const Node *x = n->nsrc ? n->src[0] : NULL;
    if (!q->batch)
        return false;
    if (n->op == OP_ADD)
        return is_term(q, x) && is_term(q, n->src[1]);
    if (n->op == OP_CAST && !n->arg.i)
        return is_term(q, x) && dtype_is_float(n->dtype) && dtype_is_float(x->dtype) &&
               elem_bytes((ingot_dtype)n->dtype) < elem_bytes((ingot_dtype)x->dtype);
    return (n->op == OP_RESHAPE || n->op == OP_PERMUTE) && is_term(q, x);
}

static void make_terms(Sharding *q, Node *n)
{
    for (int d = 0; d < q->s.n; d++) {
        Node **src = NEWN(q->s.a, Node *, n->nsrc);
        for (uint32_t i = 0; i < n->nsrc; i++)
            src[i] = n->src[i]->dtype == INGOT_INDEX ? n->src[i] : q->term[d][n->src[i]->id];
        q->term[d][n->id] = node_again(q->s.c, n, src, n->shape);
    }
}

static void make_local(Sharding *q, Node *n)
{
    const int axis = q->s.axis[n->id];
    const OpClass cls = (OpClass)op_info[n->op].cls;
    if (q->s.constant[n->id])
        return;
    if (makes_term(q, n)) {
        make_terms(q, n);
        return;
    }
    const ShardRule r = shard_rule(&q->s, n);
    for (int d = 0; d < q->s.n; d++) {
        if (n->op == OP_STATE && q->s.c->states[n->arg.i].part)
            q->local[d][n->id] = state_part(&q->s, n, d);
        else if (cls == LEAF || cls == CONTROL)
            q->local[d][n->id] = brought(q, axis < 0 ? n : part_of(q, n, axis, d), d);
        else
            (r.partial ? q->term : q->local)[d][n->id] = own_node(q, n, &r, d);
    }
    q->split += axis >= 0;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static bool is_split_already(const Shards *s)
{
    for (int i = 0; i < s->norder; i++)
        if (s->order[i]->op == OP_COPY || s->order[i]->op == OP_COLLECTIVE)
            return true;
    return false;
}

static void find_constants(Shards *s)
{
    for (int i = 0; i < s->norder; i++) {
        const Node *n = s->order[i];
        bool all = n->op != OP_INPUT && n->op != OP_STATE && n->op != OP_PARAM &&
                   op_info[n->op].cls != CONTROL;
        for (uint32_t k = 0; k < n->nsrc; k++)
            all &= s->constant[n->src[k]->id] || n->src[k]->dtype == INGOT_INDEX;
        s->constant[n->id] = all || n->dtype == INGOT_INDEX;
    }
}

/* Inputs along their first axis, those of which it has one size. */
static void seed_batch(Shards *s)
{
    const Context *c = s->c;
    Node *rows = NULL;
    for (int i = 0; i < c->ninput; i++) {
        Node *x = c->inputs[i].node;
        if (!can_split(s, x, 0) || (rows && x->shape[0] != rows))
            continue;
        rows = x->shape[0];
        s->seed[x->id] = 0;
    }
}

static void exchange_roots(Sharding *q)
{
    Context *c = q->s.c;
    for (int i = 0; i < c->noutput; i++)
        c->outputs[i].node = as_wanted(q, c->outputs[i].node, WHOLE, 0);
    for (int i = 0; i < c->nstate; i++) {
        StateTensor *state = &c->states[i];
        Node *next = state->next;
        for (int d = 0; d < q->s.n && state->part && next; d++)
            c->states[state->part[d]->arg.i].next = as_wanted(q, next, state->axis, d);
        if (state->part && state->axis >= 0)
            state->next = NULL;
        else if (!state->part && next && !state->room && !state->device)
            state->next = as_wanted(q, next, WHOLE, 0);
    }
}

static void count_uses(Sharding *q, int nroot, Node *const *roots)
{
    q->uses = NEWN(q->s.a, int, q->s.c->nnode + 1);
    for (int i = 0; i < nroot; i++)
        q->uses[roots[i]->id]++;
    for (int i = 0; i < q->s.norder; i++)
        for (uint32_t k = 0; k < q->s.order[i]->nsrc; k++)
            q->uses[q->s.order[i]->src[k]->id]++;
}

bool shards(Context *c, const Target *t, Parallel how, int devices)
{
    Sharding q = {.s = {.c = c, .a = arena_new(), .t = t, .n = devices},
                  .batch = how == PARALLEL_BATCH};
    Shards *s = &q.s;
    int nroot;
    const uint32_t nnode = c->nnode;
    Node **roots = rewrite_roots(c, s->a, &nroot);
    s->order = graph_toposort(s->a, nroot, roots, &s->norder);
    s->constant = NEWN(s->a, bool, nnode + 1);
    s->axis = NEWN(s->a, int, nnode + 1);
    s->seed = NEWN(s->a, int, nnode + 1);
    for (uint32_t i = 0; i < nnode; i++)
        s->axis[i] = s->seed[i] = WHOLE;
    if (is_split_already(s)) {
        arena_free(s->a);
        return true;
    }
    find_constants(s);
    if (how == PARALLEL_BATCH)
        seed_batch(s);
    else
        shards_seed_states(s);
    if (how == PARALLEL_TENSOR)
        shards_choose(s);
    shards_spread(s);
    if (how == PARALLEL_TENSOR && t->gpu)
        shards_split_states(s);
    if (how == PARALLEL_BATCH && t->gpu)
        shards_repeat_states(s);
    q.local = NEWN(s->a, Node **, devices);
    q.term = NEWN(s->a, Node **, devices);
    for (int d = 0; d < devices; d++) {
        q.local[d] = NEWN(s->a, Node *, nnode + 1);
        q.term[d] = NEWN(s->a, Node *, nnode + 1);
    }
    count_uses(&q, nroot, roots);
    const OriginList *at = c->at;
    for (int i = 0; i < s->norder; i++) {
        c->at = c->origins[s->order[i]->id];
        make_local(&q, s->order[i]);
    }
    c->at = at;
    if (q.split)
        exchange_roots(&q);
    arena_free(s->a);
    return q.split > 0;
}
