/* index_cost.c - what it takes to compute a tensor that is made of coordinates alone: an index
 * table, a mask.
 *
 * Its expression is simplified with the loops that read it, so that most of it is gone: a slice of
 * an IOTA is one more term of an address, a division by a number that divides the extent splits the
 * loop (split.c).  What is left is computed wherever it is read, one element at a time:
 *
 *     min(i, 6 - i)  of an i below 9      two operations of axis 0: the difference is a term of an
 *                                         address
 *     (i + 5) % 7                         one remainder
 *     i / 2          of an i below 8      none
 *
 * Requires that what is stored below the tensor is decided. */
#include "schedule.h"

enum { MAX_PARTS = 256 };

/* Is all of it arithmetic on coordinates, and not stored? */
static bool is_made_of_coordinates(Sched *s, Node *root)
{
    Node *stack[MAX_PARTS], *seen[MAX_PARTS];
    int n = 0, nseen = 0;
    const Info *top = info_of(s, root);
    if (top->loads || top->leaves || top->has_reduce || root->dtype == INGOT_INDEX ||
        dtype_is_float(root->dtype))
        return false;
    stack[n++] = root;
    while (n) {
        Node *t = stack[--n];
        bool known = t->dtype == INGOT_INDEX || t->op == OP_CONST || t->op == OP_IOTA;
        for (int i = 0; i < nseen && !known; i++)
            known = seen[i] == t;
        if (known)
            continue;
        bool moves = op_info[t->op].cls == MOVE && t->op != OP_CONCAT && t->op != OP_KEEP &&
                     t->op != OP_COPY && t->op != OP_GATHER;
        if ((!op_is_alu(t->op) && !moves) || t->op == OP_CUSTOM ||
            (t != root && !is_computed(s, t)) || nseen == MAX_PARTS || n + (int)t->nsrc > MAX_PARTS)
            return false;
        seen[nseen++] = t;
        for (uint32_t i = 0; i < t->nsrc; i++)
            stack[n++] = t->src[i];
    }
    return true;
}

/* Does it stay where an address is a sum of strides times loops, and a condition is a question of
 * where one is? */
static bool stays(const Node *e)
{
    int64_t d, extent;
    bool integer = !dtype_is_float(e->dtype);
    if (e->dtype == INGOT_BOOL)
        return false;
    switch (e->op) {
    case OP_ADD:
    case OP_SUB:
    case OP_NEG: return !integer;
    case OP_MUL: return !integer || (e->src[0]->op != OP_CONST && e->src[1]->op != OP_CONST);
    case OP_CAST: return !integer || dtype_is_float(e->src[0]->dtype);
    case OP_FLOORDIV:
    case OP_MOD:
        return !(e->src[0]->op == OP_RANGE && idx_value(e->src[1], &d) &&
                 idx_value(e->src[0]->src[0], &extent) && d > 0 && extent % d == 0);
    default: return op_is_alu(e->op);
    }
}

static void add_op(CoordOps *ops, unsigned axes, int cost)
{
    int i = 0;
    while (i < ops->n && ops->op[i].axes != axes)
        i++;
    if (i == (int)(sizeof ops->op / sizeof *ops->op)) {
        i--;
        axes |= ops->op[i].axes;
    }
    if (i == ops->n)
        ops->op[ops->n++].cost = 0;
    ops->op[i].axes = axes;
    ops->op[i].cost += cost;
}

static void count(CoordOps *ops, Arena *a, Node *e)
{
    int n;
    Node **order = graph_toposort(a, 1, &e, &n);
    Map axes = {0}; /* by id + 1: the axes that a node depends on, if it does on any */
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        uintptr_t on = t->op == OP_RANGE ? (uintptr_t)1 << (t->arg.i - RANGE_INDEX) : 0;
        for (uint32_t j = 0; j < t->nsrc; j++)
            on |= (uintptr_t)map_get(&axes, (uint64_t)t->src[j]->id + 1);
        if (!on)
            continue;
        map_put(&axes, (uint64_t)t->id + 1, (void *)on);
        if (t->op != OP_RANGE && stays(t))
            add_op(ops, (unsigned)on, op_info[t->op].cost);
    }
    map_free(&axes);
}

const CoordOps *coord_ops(Sched *s, Node *n)
{
    Info *i = info_of(s, n);
    if (i->coords || !is_made_of_coordinates(s, n))
        return i->coords;
    Context *c = s->c;
    Arena *a = arena_new();
    StoreNest *k = NEW(a, StoreNest);
    Node *at[INGOT_MAX_RANK];
    k->s = s;
    for (int d = 0; d < n->rank; d++)
        at[d] = idx_is(n->shape[d], 1) ? idx(c, 0) : range_new(c, RANGE_INDEX + d, n->shape[d]);
    i->coords = NEW(s->arena, CoordOps);
    Node *e = lower_value(k, n, at, node_bool(c, true));
    if (dtype_is_int(n->dtype))
        e = node_cast(c, e, INGOT_INDEX);
    count(i->coords, a, e);
    map_free(&k->memo);
    arena_free(a);
    return i->coords;
}

int coord_cost(Sched *s, Node *n)
{
    const CoordOps *ops = coord_ops(s, n);
    int cost = 0;
    for (int i = 0; ops && i < ops->n; i++)
        cost += ops->op[i].cost;
    return cost;
}
