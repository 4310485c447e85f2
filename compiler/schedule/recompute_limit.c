/* recompute_limit.c - what --fuse all computes again, and where it stops.
 *
 * Without a bound, a convolution whose operand is computed where it is read takes its terms as
 * often as its window has elements, and what two layers share is computed by both, with all that
 * those are made of in turn.  So the operations of each kernel (region.c) are compared with those
 * of the nodes that no kernel before has computed.  The difference is repeated:
 *
 *     of all kernels up to any place of the network no more than MOST_AGAIN times what the nodes up
 *     to there take, each computed once
 *
 * A kernel that would go beyond has to leave a value to another one: that of which storing spares
 * most, and no term of a sum of products. */
#include <math.h>

#include "fusion.h"

enum { MOST = 4 * MAX_NODES, MOST_AGAIN = 8 };

double node_operations(Sched *s, Node *n)
{
    bool none = n->dtype == INGOT_INDEX || op_info[n->op].cls == CONTROL || info_of(s, n)->constant;
    return none ? 0 : node_elements(n->op == OP_REDUCE ? n->src[0] : n) * op_info[n->op].cost;
}

/* Values that the kernel of `root` computes, it first. */
static int computed_by(Sched *s, Node *root, Node **out)
{
    Map seen = {0};
    int n = 0;
    out[n++] = root;
    for (int i = 0; i < n; i++)
        for (uint32_t j = 0; j < out[i]->nsrc; j++) {
            Node *x = out[i]->src[j];
            if (n == MOST || x->dtype == INGOT_INDEX || !is_computed(s, x) ||
                map_get(&seen, (uint64_t)x->id + 1))
                continue;
            map_put(&seen, (uint64_t)x->id + 1, (void *)1);
            out[n++] = x;
        }
    map_free(&seen);
    return n;
}

static double operations(Sched *s, Node *root, bool *fits)
{
    RegionWork r = region_of(s, root);
    double ops = 0;
    *fits = !r.huge;
    for (int u = 0; u < UNITS; u++)
        ops += r.ops[u];
    return ops;
}

/* Is where its elements come from computed, for each of them that is read? */
static bool computes_indices(Sched *s, const Node *n)
{
    int cost = 0;
    for (uint32_t i = 1; i < n->nsrc && n->op == OP_GATHER; i++)
        cost += index_cost(s, n->src[i]) + coord_cost(s, n->src[i]);
    return cost > 0;
}

/* Readers look through movement: so what is stored is the least of what only moves its elements,
 * windows and repeated rows not among it, and before those in another order; but not before indices
 * that each reading would compute again. */
Node *before_moves(Sched *s, Node *n)
{
    Node *least = n;
    while (is_move(n) && is_computed(s, n->src[0]) && !computes_indices(s, n)) {
        n = n->src[0];
        least = node_bytes(n) <= node_bytes(least) ? n : least;
    }
    return least;
}

Node *repeats_too_much(Sched *s, Node *root, Node *const *uses)
{
    Node *node[MOST], *best = NULL;
    int n = computed_by(s, root, node);
    bool fits, apart;
    double ops = operations(s, root, &fits), fresh = 0, least = INFINITY;
    for (int i = 0; i < n; i++)
        fresh += info_of(s, node[i])->once ? 0 : node_operations(s, node[i]);
    double again = ops > fresh ? ops - fresh : 0;
    bool much = !fits || s->repeated + again > MOST_AGAIN * s->operations;
    for (int i = 1; i < n && much; i++) {
        Info *x = info_of(s, node[i]);
        if (!x->spared || is_term(s, node[i], uses))
            continue;
        double own = operations(s, node[i], &apart);
        x->stored = true;
        double both = own + operations(s, root, &apart);
        x->stored = false;
        if (both < least && (both < ops || !fits)) {
            least = both;
            best = node[i];
        }
    }
    for (int i = 0; i < n && !best; i++)
        info_of(s, node[i])->once = true;
    s->repeated += best ? 0 : again;
    return best ? before_moves(s, best) : NULL;
}
