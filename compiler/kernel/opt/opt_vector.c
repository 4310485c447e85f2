/* opt_vector.c - VECTOR: an axis becomes the lanes of vectors. */
#include "opt.h"

/* Some value would run over two ranges of lanes. */
static bool two_dimensional(const Nest *n, int axis)
{
    Arena *a = arena_new();
    int count;
    Node **order = graph_toposort(a, 1, &n->k->sink->src[0], &count);
    const bool *on = moving(a, order, count, n->k->axes[axis].range);
    bool both = false;
    for (int i = 0; i < n->naxis && !both; i++) {
        if (n->axis[i].form != AXIS_LANES)
            continue;
        const bool *other = moving(a, order, count, n->k->axes[n->axis[i].root].range);
        for (int j = 0; j < count && !both; j++)
            both = order[j]->dtype != INGOT_INDEX && order[j]->op != OP_END && on[order[j]->id] &&
                   other[order[j]->id];
    }
    arena_free(a);
    return both;
}

bool opt_in_lanes(const Nest *n, int axis)
{
    int8_t *known = &n->shared->in_lanes[axis];
    if (!*known) {
        Arena *a = arena_new();
        *known = lanes_possible(a, n->k, n->k->axes[axis].range) &&
                         !(n->target->gpu && moves_conditions(n->k, n->k->axes[axis].range))
                     ? 1
                     : -1;
        arena_free(a);
    }
    return *known > 0;
}

/* Are there reduces, and none that depends on the range? A loop nest of its own for a remainder
 * would repeat them. */
static bool shares_rows(const Nest *n, int axis)
{
    Arena *a = arena_new();
    int count;
    Node **order = graph_toposort(a, 1, &n->k->sink->src[0], &count);
    bool any = false, shared = true;
    for (int i = 0; i < count && shared; i++)
        if (order[i]->op == OP_REDUCE) {
            any = true;
            shared = !depends_on(order[i], n->k->axes[axis].range);
        }
    arena_free(a);
    return any && shared;
}

/* The innermost loop over outputs. */
static int innermost(const Nest *n)
{
    int last = -1;
    for (int i = 0; i < n->norder; i++) {
        const NestAxis *x = &n->axis[n->order[i]];
        if (!x->reduced && !x->remainder && x->extent != 1 && opt_is_output(n, n->order[i]))
            last = n->order[i];
    }
    return last;
}

/* Are its elements stored in turn with others (join_stores.c)?  That is done with whole vectors. */
static bool is_stored_in_turn(const Nest *n, int axis)
{
    const Node *end = n->k->sink->src[0];
    for (int i = 0; i < end_stores(end); i++)
        if (interleaved(n->k, end->src[i], n->k->axes[n->axis[axis].root].range))
            return true;
    return false;
}

/* What fills no vector: of 8 elements and more a part of a vector, the smallest that holds it: 27 =
 * 16 + the first 11 of 16, 21 = 16 + the first 5 of 8; of one element, or beside vectors of 4, a
 * loop. */
static RestForm rest_of_vector(const Nest *n, const Opt *o, int axis, int *lanes)
{
    const NestAxis *x = &n->axis[axis];
    int64_t left = x->extent < 0 ? -1 : x->extent % o->amount;
    if (x->reduced)
        return REST_LOOP;
    if (axis == innermost(n) && axis < n->k->naxis && shares_rows(n, axis))
        return REST_BESIDE;
    if (left < 2 || o->amount < 8 || is_stored_in_turn(n, axis)) /* of run time: -1 */
        return REST_LOOP;
    for (*lanes = (int)o->amount; *lanes > 8 && *lanes / 2 >= left;)
        *lanes /= 2;
    return REST_LANES;
}

static const char *vector_refused(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    if (!n->shared) /* judged before */
        return NULL;
    int most = n->target->machine.lanes;
    if (!most)
        return opt_refuse(
            n, "VECTOR %s %lld: this target has no vectors (0 lanes); --target c:native may",
            o->axis, (long long)o->amount);
    Node *range = n->k->axes[x->root].range;
    most = lanes_most(n->k, range, n->target);
    if (o->amount > most || (o->amount != 4 && o->amount != 8 && o->amount != 16))
        return opt_refuse(
            n,
            "VECTOR %s %lld: a vector has 4, 8 or 16 lanes, of this target at most %d for "
            "values of %d bits",
            o->axis, (long long)o->amount, most, 8 * lane_bytes(n->k, range));
    if (x->reduced && axis >= n->k->naxis)
        return opt_refuse(
            n,
            "VECTOR %s: of what is reduced only an axis that no other opt has changed "
            "can become lanes",
            o->axis);
    if (x->most < o->amount)
        return opt_refuse(n, "VECTOR %s %lld: the axis has %lld elements", o->axis,
                          (long long)o->amount, (long long)x->most);
    if (opt_overlaps(n, axis))
        return opt_refuse(n, "VECTOR %s: of what OVERLAP took apart some lanes would not be stored",
                          o->axis);
    if (n->lanes && !x->reduced)
        return opt_refuse(n, "VECTOR %s: the kernel has lanes already", o->axis);
    if (n->dots && x->reduced)
        return opt_refuse(n, "VECTOR %s: lanes along a reduced axis do not go with DOT", o->axis);
    if (n->lanes && n->lanes != o->amount)
        return opt_refuse(n, "VECTOR %s %lld: the kernel has vectors of %d lanes already", o->axis,
                          (long long)o->amount, n->lanes);
    if (n->lanes && two_dimensional(n, x->root))
        return opt_refuse(
            n, "VECTOR %s: what runs along it is in the lanes of another axis already", o->axis);
    if (!opt_in_lanes(n, x->root))
        return opt_refuse(
            n, "VECTOR %s: some operation or access along this axis cannot be done in lanes",
            o->axis);
    return NULL;
}

const char *opt_vector(Nest *n, const Opt *o, int axis)
{
    const char *why = vector_refused(n, o, axis);
    if (why)
        return why;
    int lanes = 0;
    RestForm rest = rest_of_vector(n, o, axis, &lanes);
    Split *s = opt_divide(n, o, axis, AXIS_LANES, rest);
    s->lanes = s->form == REST_LANES ? lanes : 0;
    n->lanes = (int)o->amount;
    if (s->form == REST_BESIDE)
        n->row = axis;
    return NULL;
}
