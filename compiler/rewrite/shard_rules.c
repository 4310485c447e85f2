/* shard_rules.c - a value that is split among devices splits what is made of it.
 *
 *     x [8,64] along 0    x @ w [8,16]         along 0
 *     x [8,64] along 1    x * w, then summed   a term of the sum on each device: all-reduced
 *     x [8,64] along 1    reshape [8,4,16]     along 1, the heads
 *     x [8,64] along 1    softmax of rows      its sum needs all of a row: the maxima, and the
 *                                              sums, are all-reduced
 *
 * One pass from the leaves up; where sources are split in different ways, or a node needs more than
 * its part, values are gathered. */
#include "shards.h"

bool can_split(const Shards *s, const Node *n, int axis)
{
    int64_t size;
    return axis >= 0 && axis < n->rank && idx_value(n->shape[axis], &size) && size >= s->n &&
           size % s->n == 0;
}

/* Axes from..to of a RESHAPE's source become these of its result, in the same order. */
typedef struct {
    int from, to, of_from, of_to;
} ReshapeGroup;

/* The next group; false: its sizes are not known. */
static bool next_group(const Node *n, ReshapeGroup *g)
{
    const Node *x = n->src[0];
    g->from = g->to;
    g->of_from = g->of_to;
    int64_t a = 1, b = 1, size;
    if (g->to < x->rank && g->of_to < n->rank && x->shape[g->to] == n->shape[g->of_to]) {
        g->to++;
        g->of_to++;
        return true;
    }
    do {
        const bool more = g->to < x->rank && (a <= b || g->of_to >= n->rank);
        if (!more && g->of_to >= n->rank)
            return false;
        if (!idx_value(more ? x->shape[g->to] : n->shape[g->of_to], &size) || size < 1)
            return false;
        *(more ? &a : &b) = sat_mul(more ? a : b, size);
        *(more ? &g->to : &g->of_to) += 1;
    } while (a != b);
    return true;
}

int reshaped_axis(const Shards *s, const Node *n, int axis)
{
    ReshapeGroup g = {0};
    while (g.to < n->src[0]->rank) {
        if (!next_group(n, &g))
            return WHOLE;
        if (axis < g.from || axis >= g.to)
            continue;
        for (int i = g.from; i < axis; i++)
            if (!idx_is(n->src[0]->shape[i], 1))
                return WHOLE;
        for (int i = g.of_from; i < g.of_to; i++)
            if (!idx_is(n->shape[i], 1))
                return can_split(s, n, i) ? i : WHOLE;
    }
    return WHOLE;
}

int index_axis(const Node *n, uint32_t first, int axis)
{
    const Node *index = n->src[first + (uint32_t)axis], *x = n->src[0];
    const int k = index->op == OP_IOTA ? (int)index->arg.i : WHOLE;
    return k >= 0 && x->shape[axis] == index->shape[k] ? k : WHOLE;
}

/* How the first of some sources is split that is; WHOLE: none is. */
static int first_split(const Shards *s, const Node *n, uint32_t from)
{
    for (uint32_t i = from; i < n->nsrc; i++)
        if (!s->constant[n->src[i]->id] && s->axis[n->src[i]->id] >= 0)
            return s->axis[n->src[i]->id];
    return WHOLE;
}

static int moved_axis(const Shards *s, Node *n, int a)
{
    const Node *x = n->src[0];
    switch (n->op) {
    case OP_RESHAPE: return reshaped_axis(s, n, a);
    case OP_PERMUTE:
        for (int i = 0; i < n->rank; i++)
            if (((const Perm *)n->arg.ptr)->axis[i] == a)
                return i;
        return WHOLE;
    case OP_PAD: return idx_is(n->src[1 + 2 * a], 0) && idx_is(n->src[2 + 2 * a], 0) ? a : WHOLE;
    case OP_SHRINK: return idx_is(n->src[1 + 2 * a], 0) && n->shape[a] == x->shape[a] ? a : WHOLE;
    case OP_FLIP: return n->arg.i >> a & 1 ? WHOLE : a;
    case OP_EXPAND:
    case OP_KEEP: return a;
    default: return WHOLE;
    }
}

static ShardRule gather_rule(const Shards *s, const Node *n)
{
    const int x = s->constant[n->src[0]->id] ? WHOLE : s->axis[n->src[0]->id],
              at = x >= 0 ? index_axis(n, 1, x) : WHOLE;
    if (at >= 0)
        return (ShardRule){.axis = at, .first = x, .rest = at};
    const int index = first_split(s, n, 1);
    return (ShardRule){.axis = index, .first = WHOLE, .rest = index};
}

/* A part of what is added to zeros is a term; rows that belong to an axis of x stay with it. */
static ShardRule update_rule(const Shards *s, const Node *n)
{
    const int v = first_split(s, n, 1);
    const Node *zero = uniform(n->src[0]);
    ShardRule r = {.axis = WHOLE, .first = WHOLE, .rest = WHOLE};
    for (int i = 0; i < n->rank && v >= 0; i++)
        if (index_axis(n, 2, i) == v && can_split(s, n, i))
            return (ShardRule){.axis = i, .first = i, .rest = v};
    if (v >= 0 && n->arg.i == INGOT_ADD && zero && const_is((Node *)zero, 0))
        return (ShardRule){.axis = WHOLE, .first = WHOLE, .rest = v, .partial = true};
    return r;
}

static ShardRule reduce_rule(const Shards *s, const Node *n)
{
    const int a = first_split(s, n, 0);
    const bool summed = a >= 0 && reduce_axes(n) >> a & 1;
    if (summed && (n->op == OP_SCAN || reduce_size(n) > 1))
        return (ShardRule){.axis = WHOLE, .first = WHOLE, .rest = WHOLE};
    return (ShardRule){.axis = summed ? WHOLE : a, .first = a, .rest = a, .partial = summed};
}

ShardRule shard_rule(const Shards *s, Node *n)
{
    const ShardRule whole = {.axis = WHOLE, .first = WHOLE, .rest = WHOLE};
    int a;
    if (op_info[n->op].cls == LEAF)
        return (ShardRule){.axis = s->seed[n->id], .first = WHOLE, .rest = WHOLE};
    if (op_is_alu(n->op)) {
        a = first_split(s, n, 0);
        a = a < 0 ? s->seed[n->id] : a;
        return (ShardRule){.axis = a, .first = a, .rest = a};
    }
    switch (n->op) {
    case OP_REDUCE:
    case OP_SCAN: return reduce_rule(s, n);
    case OP_GATHER: return gather_rule(s, n);
    case OP_UPDATE: return update_rule(s, n);
    case OP_CONCAT:
        a = first_split(s, n, 0);
        a = a == (int)n->arg.i ? WHOLE : a;
        return (ShardRule){.axis = a, .first = a, .rest = a};
    default:
        if (op_info[n->op].cls != MOVE)
            return whole;
        a = s->axis[n->src[0]->id];
        const int to = a < 0 ? WHOLE : moved_axis(s, n, a);
        return to < 0 ? whole : (ShardRule){.axis = to, .first = a, .rest = WHOLE};
    }
}

void shards_spread(Shards *s)
{
    for (int i = 0; i < s->norder; i++) {
        Node *n = s->order[i];
        s->axis[n->id] = s->constant[n->id] ? WHOLE : shard_rule(s, n).axis;
    }
}
