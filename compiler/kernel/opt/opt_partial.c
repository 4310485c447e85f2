/* opt_partial.c - PARTIAL: loops over results inside of a loop over terms, whose sums lie in a
 * place. */
#include "opt.h"

/* A loop or copies of results that are, for this axis of terms, inside of its loop. */
static bool is_inside(const Nest *n, int axis, int of)
{
    const NestAxis *x = &n->axis[of];
    bool left = x->split < 0 && !x->reduced;
    return left && (x->form != AXIS_LOOP || nest_position(n, of) > nest_position(n, axis));
}

/* Of the sums of a reduce along the axes that are inside: bytes; -1: an extent is known at run time
 * only.  loop: whether one is a loop. */
static int64_t bytes_of_row(const Nest *n, Node *reduce, int axis, bool *loop)
{
    int64_t bytes = 0;
    for (int i = 0; i < (int)reduce_size(reduce); i++)
        bytes += dtype_info[reduce_size(reduce) > 1 ? reduce->src[i]->dtype : reduce->dtype].bytes;
    for (int i = 0; i < n->naxis; i++) {
        const NestAxis *x = &n->axis[i];
        if (!is_inside(n, axis, i) || x->remainder ||
            !depends_on(reduce, n->k->axes[x->root].range))
            continue;
        if (x->extent < 0)
            return -1;
        *loop |= x->form == AXIS_LOOP && x->extent > 1;
        bytes = sat_mul(bytes, x->extent);
    }
    return bytes;
}

/* What is said of one reduce over the axis. */
static const char *reduce_refused(Nest *n, const Opt *o, int axis, Node *reduce, Arena *a)
{
    bool loop = false;
    for (int i = 0; i < n->nsplit; i++)
        if (n->split[i].kind == OPT_PARTIAL &&
            owns_range(reduce, n->k->axes[n->axis[n->split[i].axis].root].range))
            return opt_refuse(n, "PARTIAL %s %lld: sums over %s lie in a place already", o->axis,
                              (long long)o->amount, n->axis[n->split[i].axis].name);
    for (int i = 0; i < n->k->naxis; i++)
        if (n->axis[i].reduced && moves_with(a, reduce, n->k->axes[i].range))
            return opt_refuse(n, "PARTIAL %s %lld: there are other sums for each %s", o->axis,
                              (long long)o->amount, n->k->axes[i].name);
    /* what lies further away than L2 is no place */
    const int64_t room = (int64_t)n->target->machine.far;
    int64_t bytes = bytes_of_row(n, reduce, axis, &loop);
    if (!loop)
        return opt_refuse(n,
                          "PARTIAL %s %lld: no loop over results stands inside of this one: ORDER",
                          o->axis, (long long)o->amount);
    if (bytes < 0 || bytes > room)
        return opt_refuse(
            n,
            "PARTIAL %s %lld: the sums inside of this loop take more than %lld bytes, "
            "or their number is known at run time only",
            o->axis, (long long)o->amount, (long long)room);
    return NULL;
}

static const char *sums_refused(Nest *n, const Opt *o, int axis)
{
    const char *why = NULL;
    Arena *a = arena_new();
    int count;
    Node **order = graph_toposort(a, 1, &n->k->sink, &count);
    for (int i = 0; i < count && !why; i++)
        if (order[i]->op == OP_REDUCE && owns_range(order[i], n->k->axes[n->axis[axis].root].range))
            why = reduce_refused(n, o, axis, order[i], a);
    arena_free(a);
    return why;
}

int opt_ranges_of_rows(const Nest *n)
{
    int count = n->norder;
    for (int i = 0; i < n->nsplit; i++)
        count += n->split[i].kind == OPT_UPCAST;
    return 2 * count;
}

const char *opt_partial(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    const bool whole = x->extent > 0 && x->extent % o->amount == 0;
    bool plain = x->reduced && !n->dots && n->row < 0;
    for (int i = 0; i < n->naxis; i++)
        plain &= !(n->axis[i].form == AXIS_LANES && n->axis[i].reduced) && !n->axis[i].staged &&
                 !n->axis[i].scanned;
    for (int i = 0; i < n->nsplit; i++)
        plain &= n->split[i].form != REST_OVERLAP;
    if (opt_on_gpu(n) || !plain)
        return opt_refuse(n,
                          "PARTIAL %s %lld: it takes a reduced axis of a CPU's kernel without DOT, "
                          "lanes along reduced axes, scans, staged values, OVERLAP and "
                          "remainders of a row",
                          o->axis, (long long)o->amount);
    /* a block of its own has terms enough */
    if (o->amount < (axis < n->k->naxis ? 2 : 1) || o->amount > x->most)
        return opt_refuse(n, "PARTIAL %s %lld: the axis has %lld elements", o->axis,
                          (long long)o->amount, (long long)x->most);
    if (opt_has_rest(n, axis))
        return opt_refuse(n, "PARTIAL %s: the axis is unrolled already, with a rest", o->axis);
    if (!whole && !opt_rest_is_alone(n, axis))
        return opt_refuse(
            n,
            "PARTIAL %s %lld: the axis has %lld elements, which it has to divide where a reduce "
            "runs over others too or the axis has been taken apart",
            o->axis, (long long)o->amount, (long long)x->most);
    if (opt_too_many_copies(n, axis, o->amount))
        return opt_refuse(n, "PARTIAL %s %lld: more copies of terms than there may be", o->axis,
                          (long long)o->amount);
    const char *why = opt_no_room(n, o, 3 + opt_ranges_of_rows(n));
    if (!why && n->shared)
        why = sums_refused(n, o, axis);
    if (why)
        return why;
    opt_divide(n, o, axis, AXIS_COPIES, REST_LOOP);
    n->partial = true;
    return NULL;
}
