/* shard_cost.c - which products are split among devices, where all of them have the same input.
 *
 *     h = relu(x w1), y = h w2      w1 by columns: h is split, and w2, summed over its rows, is
 * too: half of both weights on either device, for one all-reduce of y
 *
 * A product by a constant can be split along an axis of its result that the constant alone has.
 * Whether that pays is seen by the whole graph: all products, and the weights that they read, take
 * 1 / n of their time where they are split; what is gathered or all-reduced takes that of a copy.
 * Candidates are tried one after the other, each beside those that were taken before it. */
#include <math.h>

#include "shards.h"

/* Of a copy of so many bytes between two devices. */
static double copy_time(const Target *t, double bytes)
{
    enum { SLOWER = 4 }; /* than memory, where the machine does not say */
    const Machine *m = &t->machine;
    const double moved = m->link > 0 ? bytes / m->link : SLOWER * cost_bytes(bytes, INFINITY, t);
    return moved + m->launch;
}

static double exchange_time(const Shards *s, double bytes)
{
    return (s->n - 1) * copy_time(s->t, bytes);
}

bool reduces_in_pieces(const Target *t, int n, double bytes)
{
    return 2 * copy_time(t, bytes / n) < copy_time(t, bytes);
}

static double reduce_time(const Shards *s, double bytes)
{
    return reduces_in_pieces(s->t, s->n, bytes) ? 2 * exchange_time(s, bytes / s->n)
                                                : exchange_time(s, bytes);
}

/* The constant that a factor is made of by movement, and as another type, or NULL. */
static Node *weight_of(Node *factor)
{
    while (
        ((op_info[factor->op].cls == MOVE && factor->op != OP_CONCAT) || factor->op == OP_CAST) &&
        factor->nsrc)
        factor = factor->src[0];
    return factor->op == OP_DATA ? factor : NULL;
}

double product_time(const Target *t, Node *sum)
{
    double bytes = 0;
    for (uint32_t k = 0; k < 2; k++) {
        Node *w = weight_of(sum->src[0]->src[k]);
        bytes += w ? node_bytes(w) : 0;
    }
    return fmax(2 * node_elements(sum->src[0]) / t->machine.rate[UNIT_TILE],
                cost_bytes(bytes, INFINITY, t));
}

/* What it takes to have the sources of a node as its rule wants them. */
static double gather_time(const Shards *s, Node *n, const ShardRule *r)
{
    double time = 0;
    for (uint32_t i = 0; i < n->nsrc; i++) {
        Node *x = n->src[i];
        const int wanted = i ? r->rest : r->first;
        if (!s->constant[x->id] && s->axis[x->id] >= 0 && s->axis[x->id] != wanted)
            time += exchange_time(s, node_bytes(x));
    }
    return time;
}

double shards_time(const Shards *s)
{
    double time = 0;
    for (int i = 0; i < s->norder; i++) {
        Node *n = s->order[i];
        if (s->constant[n->id])
            continue;
        const ShardRule r = shard_rule(s, n);
        time += gather_time(s, n, &r);
        if (r.partial)
            time += reduce_time(s, node_bytes(n));
        if (is_sum_of_products(n))
            time += product_time(s->t, n) / (r.axis >= 0 || r.partial ? s->n : 1);
    }
    for (int i = 0; i < s->c->noutput; i++) {
        Node *y = s->c->outputs[i].node;
        time += !s->constant[y->id] && s->axis[y->id] >= 0 ? exchange_time(s, node_bytes(y)) : 0;
    }
    return time;
}

/* Is it the same along an axis? */
static bool repeated_along(const Node *factor, int axis)
{
    return factor->op == OP_EXPAND && idx_is(factor->src[0]->shape[axis], 1);
}

/* The axis of a sum's result that one of its factors, a constant, has alone; WHOLE: there is none
 * that can be split. */
static int own_axis(const Shards *s, const Node *sum)
{
    Node *product = sum->src[0];
    for (uint32_t k = 0; k < 2; k++) {
        Node *w = product->src[k], *x = product->src[1 - k];
        if (!s->constant[w->id] || s->constant[x->id] || !weight_of(w))
            continue;
        for (int axis = 0; axis < sum->rank; axis++)
            if (!(reduce_axes(sum) >> axis & 1) && !repeated_along(w, axis) &&
                repeated_along(x, axis) && can_split(s, sum, axis))
                return axis;
    }
    return WHOLE;
}

void shards_choose(Shards *s)
{
    shards_spread(s);
    double best = shards_time(s);
    for (int i = 0; i < s->norder; i++) {
        const Node *sum = s->order[i];
        const int axis = is_sum_of_products(sum) ? own_axis(s, sum) : WHOLE;
        if (axis < 0 || s->axis[sum->src[0]->id] >= 0)
            continue;
        s->seed[sum->src[0]->id] = axis;
        shards_spread(s);
        const double time = shards_time(s);
        if (time < best) {
            best = time;
            continue;
        }
        s->seed[sum->src[0]->id] = WHOLE;
        shards_spread(s);
    }
}
