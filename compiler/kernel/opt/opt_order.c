/* opt_order.c - JOIN, ORDER and THREAD: which loops there are, in which order, and which of them
 * threads share. */
#include <string.h>

#include "opt.h"

enum { MAX_PARTS = 1 << 16 };

/* Is each reduce over one of the axes one over the other too? */
static bool alike(const Nest *n, int a, int b)
{
    Arena *arena = arena_new();
    int count;
    bool same = true;
    Node **order = graph_toposort(arena, 1, &n->k->sink, &count);
    for (int i = 0; i < count; i++) {
        bool over[2] = {false, false};
        for (uint32_t j = reduce_ranges(order[i]); j < order[i]->nsrc; j++) {
            over[0] |= order[i]->src[j] == n->k->axes[a].range;
            over[1] |= order[i]->src[j] == n->k->axes[b].range;
        }
        same &= over[0] == over[1] && !(over[0] && reduce_size(order[i]) > 1);
    }
    arena_free(arena);
    return same;
}

const char *opt_join(Nest *n, const Opt *o)
{
    int axis[INGOT_MAX_RANK], count = join_axes(n->k, o->axis, axis, INGOT_MAX_RANK);
    if (count < 2 || n->k->sink->nsrc != 1)
        return opt_refuse(n, "JOIN %s: two axes or more are wanted, each once: it has %s", o->axis,
                          opt_axes(n));
    for (int i = 0; i < count; i++) {
        const NestAxis *x = &n->axis[axis[i]];
        bool good = x->reduced
                        ? n->axis[axis[0]].reduced && !x->staged && alike(n, axis[0], axis[i])
                        : opt_is_output(n, axis[i]);
        if (!good || x->scanned || x->extent < 0 || x->reduced != n->axis[axis[0]].reduced)
            return opt_refuse(n,
                              "JOIN %s: %s is no axis of results of constant size, nor one that is "
                              "reduced where the others are",
                              o->axis, x->name);
    }
    nest_replace(n, kernel_join(n->k, axis, count));
    return NULL;
}

const char *opt_order(Nest *n, const Opt *o)
{
    int *order = NULL, norder = 0, row = n->row < 0 ? -1 : nest_loop(n, n->row);
    bool *named = NEWN(n->arena, bool, n->naxis);
    row = row >= 0 && n->axis[row].extent == 1 ? -1 : row;
    for (const char *at = o->axis; *at;) {
        size_t length = strcspn(at, " ");
        int x = nest_find(n, at, length);
        if (x < 0)
            return opt_no_axis(n, "ORDER: ", at, length);
        if (named[x])
            return opt_refuse(n, "ORDER: axis '%.*s' stands there twice", (int)length, at);
        if (row >= 0 && named[row] && !n->axis[x].reduced)
            return opt_refuse(n,
                              "ORDER: %s has to stay innermost, because the remainder of %s is "
                              "computed apart from it",
                              n->axis[row].name, n->axis[n->row].name);
        named[x] = true;
        if (x != row)
            vec_push(n->arena, order, norder, x);
        at += length + (at[length] == ' ');
    }
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n->norder; i++) {
            int x = n->order[i];
            if ((pass && x == row) || (!pass && !named[x] && x != row))
                vec_push(n->arena, order, norder, x);
        }
    const NestAxis *scan = NULL;
    for (int i = 0; i < norder; i++) {
        const NestAxis *x = &n->axis[order[i]];
        if (x->scanned)
            scan = x;
        else if (scan && !x->reduced)
            return opt_refuse(n,
                              "ORDER: %s stays inside of %s: its loop runs in order, each element "
                              "continues the last",
                              scan->name, x->name);
    }
    n->order = order;
    n->norder = norder;
    n->ordered = true;
    return NULL;
}

/* The outermost axis of THREAD a..b; -1: of all loops. */
static const char *thread_from(Nest *n, const Opt *o, int to, int *from)
{
    const char *dots = strstr(o->axis, "..");
    const size_t length = dots ? (size_t)(dots - o->axis) : 0;
    *from = dots ? nest_find(n, o->axis, length) : -1;
    if (!dots)
        return NULL;
    if (*from < 0)
        return opt_no_axis(n, "THREAD: ", o->axis, length);
    const NestAxis *x = &n->axis[*from];
    if (x->reduced || x->extent == 1 || nest_position(n, *from) > nest_position(n, to))
        return opt_refuse(n, "THREAD %s: %s is no loop around %s, or over results", o->axis,
                          x->name, n->axis[to].name);
    return NULL;
}

const char *opt_thread(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    int from;
    const char *why = thread_from(n, o, axis, &from);
    if (why)
        return why;
    if (x->reduced)
        return opt_refuse(n, "THREAD %s: the axis is reduced", o->axis);
    if (n->row >= 0 && axis == nest_loop(n, n->row))
        return opt_refuse(
            n,
            "THREAD %s: the remainder of %s is computed apart from this loop: name a loop outside",
            o->axis, n->axis[n->row].name);
    if (o->amount < 2 || o->amount > MAX_PARTS)
        return opt_refuse(n, "THREAD %s: 2 to %d parts are possible", o->axis, MAX_PARTS);
    if (n->shared && !can_be_cut(n->k))
        return opt_refuse(n, "THREAD %s: the kernel reads what it writes", o->axis);
    for (int i = 0; i < n->nstage; i++)
        if (nest_position(n, axis) > nest_position(n, n->stage[i].axis))
            return opt_refuse(n, "THREAD %s: argument %d is staged outside of this axis", o->axis,
                              n->stage[i].arg);
    if (nest_in_partial(n, axis))
        return opt_refuse(n, "THREAD %s: the sums of its iterations lie in a place (PARTIAL)",
                          o->axis);
    n->thread = axis;
    n->thread_from = from;
    n->parts = (int)o->amount;
    return NULL;
}
