/* places_shared.c - places that the items of a group share.
 *
 * The items fill such a place together, in rounds of one element for each, and wait for each other before and after. */
#include "lower.h"

/* Is an axis that is left inside of the one that a place is staged at, or do the items of a group share it? */
static bool inside_stage(const Lower *q, const Stage *s, int leaf)
{
    const NestAxis *x = &q->nest->axis[leaf];
    if (x->bound)
        return x->bound == BOUND_LANE;
    return x->form != AXIS_LOOP || q->nest->axis[s->axis].bound ||
           nest_position(q->nest, leaf) > nest_position(q->nest, s->axis);
}

/* The part of an axis' value that is inside of a place, or outside, and how far the former goes. */
static Node *part_of(Lower *q, const Piece *p, const Stage *s, int axis, bool inside)
{
    const struct Sum *sum = &p->sum[axis];
    if (!sum->split)
        return inside_stage(q, s, axis) == inside ? p->at[axis] : idx(q->c, 0);
    Node *outer =
        idx_mul(q->c, part_of(q, p, s, sum->outer, inside), idx(q->c, sum->split->amount));
    return idx_add(q->c, outer, part_of(q, p, s, sum->inner, inside));
}

static int64_t size_inside(const Lower *q, const Piece *p, const Stage *s, int axis)
{
    const struct Sum *sum = &p->sum[axis];
    if (!sum->split)
        return inside_stage(q, s, axis) ? place_extent(q, p, axis) : 1;
    return (size_inside(q, p, s, sum->outer) - 1) * sum->split->amount +
           size_inside(q, p, s, sum->inner);
}

Node *lower_item(Lower *q, const Piece *p)
{
    Node *item = idx(q->c, 0);
    for (int i = 0; i < p->t.naxis; i++)
        if (p->t.axis[i].bound == BOUND_LANE)
            item =
                idx_add(q->c, idx_mul(q->c, item, p->t.axis[i].range->src[0]), p->t.axis[i].range);
    return item;
}

/* How far the second element along a range lies from the first. */
static int64_t first_stride(Lower *q, Node *access, Node *range)
{
    const KernelArg *a = &q->k->args[access->src[0]->arg.i];
    Node *at = layout_offset(q->c, &a->layout, a->rank, a->dims, access->src + first_coord(access));
    Node *zero = idx(q->c, 0), *one = idx(q->c, 1);
    int64_t stride;
    if (!idx_value(idx_sub(q->c, substitute(q->c, at, 1, &range, &one),
                           substitute(q->c, at, 1, &range, &zero)),
                   &stride))
        return INT64_MAX;
    return stride < 0 ? -stride : stride;
}

/* Memory that a group shares: [reduced axes][axes of results], the last one longer by some elements where the items that fill
 * it walk along another. Item after item copies elements in the order in which they lie in the buffer. */
Node *load_through_shared(Lower *q, Piece *p, Node *n, Node *load)
{
    enum { APART = 4 };
    const Nest *nest = q->nest;
    int stage = nest_stage(nest, n->src[0]->arg.i), root[INGOT_MAX_RANK * 4], nroot = 0,
        walk[INGOT_MAX_RANK * 4];
    int64_t size[INGOT_MAX_RANK * 4], pitch[INGOT_MAX_RANK * 4], stride[INGOT_MAX_RANK * 4];
    if (stage < 0)
        return load;
    const Stage *s = &nest->stage[stage];
    for (int reduced = 1; reduced >= 0; reduced--)
        for (int i = 0; i < q->k->naxis; i++)
            if (nest->axis[i].reduced == reduced && (p->at[i] || p->sum[i].split) &&
                depends_on(n, q->k->axes[i].range))
                root[nroot++] = i;
    if (!nroot)
        return load;
    int64_t elements = 1, room = 1;
    for (int i = 0; i < nroot; i++) {
        size[i] = size_inside(q, p, s, root[i]);
        stride[i] = first_stride(q, n, q->k->axes[root[i]].range);
        elements = sat_mul(elements, size[i]);
        int at = i;
        for (; at > 0 && stride[walk[at - 1]] > stride[i]; at--)
            walk[at] = walk[at - 1];
        walk[at] = i;
    }
    for (int i = nroot; i-- > 0;) {
        pitch[i] = room;
        room = sat_mul(room, size[i] + (i == nroot - 1 && walk[0] != i ? APART : 0));
    }
    q->place[stage] = room > q->place[stage] ? room : q->place[stage];
    int64_t each = nest->items, rounds = (elements + each - 1) / each;
    Node **turn = &p->filled[stage][0], *e = lower_item(q, p), *at = idx(q->c, 0), *fill = at;
    if (!*turn && rounds > 1) {
        TileAxis x = {.name = arena_printf(q->a, "fill%d", stage)};
        x.range = *turn = range_new(q->c, p->next++, idx(q->c, rounds));
        vec_push(q->a, p->t.fill, p->t.nfill, x);
    }
    if (rounds > 1)
        e = idx_add(q->c, idx_mul(q->c, *turn, idx(q->c, each)), e);
    Node *gate = node_bool(q->c, true), *rest = e;
    if (elements % each)
        gate = node_alu2(q->c, OP_LT, INGOT_BOOL, e, idx(q->c, elements));
    Env env = env_new(q, NULL);
    for (int i = 0; i < nroot; i++) {
        int r = walk[i];
        Node *own = i == nroot - 1 ? rest : idx_mod(q->c, rest, idx(q->c, size[r]));
        rest = idx_div(q->c, rest, idx(q->c, size[r]));
        env.value[root[r]] = idx_add(q->c, part_of(q, p, s, root[r], false), own);
        fill = idx_add(q->c, fill, idx_mul(q->c, own, idx(q->c, pitch[r])));
        at = idx_add(q->c, at, idx_mul(q->c, part_of(q, p, s, root[r], true), idx(q->c, pitch[r])));
    }
    env_ready(q, &env);
    q->filling = true;
    Node *value = lower_node(q, p, n, &env), *end[2];
    q->filling = false;
    end[0] = place_store(q, stage, gate, value, fill);
    end[1] = *turn;
    return place_load(q, stage, end, 1 + (rounds > 1), at);
}
