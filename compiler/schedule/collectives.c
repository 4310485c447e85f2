/* collectives.c - what a group of devices makes of their values, as what each of them computes:
 *
 *     all_reduce add @1 x0 x1          COPY 1 (x0) + x1
 *     all_gather {0} @0 x0 x1          concat(x0, COPY 0 (x1))
 *     reduce_scatter add {0} @1 x0 x1  COPY 1 (x0[half..]) + x1[half..]
 *
 * So a sum over devices is fused with what reads it, as any other, and is the same on all of them:
 * each adds in the order of the members, what it has got and what it has itself alike.
 *
 * Requires COPY nodes where values cross otherwise. Leaves no COLLECTIVE of devices; those of
 * processes stay, and become steps. */
#include "plan_schedule.h"
#include "rewrite.h"

int device_by_graph(const Context *c, const Node *n, const int *device)
{
    int of = 0;
    if (n->op == OP_COPY)
        return (int)n->arg.i;
    if (n->op == OP_COLLECTIVE && !collective_of(n).processes)
        return collective_of(n).receiver;
    if (n->op == OP_STATE)
        return c->states[n->arg.i].device;
    if (op_info[n->op].cls == CONTROL && n->op != OP_COLLECTIVE)
        return 0;
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (n->src[i]->dtype != INGOT_INDEX && device[n->src[i]->id] > of)
            of = device[n->src[i]->id];
    return of;
}

/* The piece of x that the receiver has of a sum. */
static Node *piece_of(Context *c, const Collective *x, Node *of, Node *const *shape)
{
    Node *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    for (int i = 0; i < of->rank; i++) {
        size[i] = shape[i];
        begin[i] = i == x->axis ? idx_mul(c, size[i], idx(c, x->receiver)) : idx(c, 0);
    }
    return ingot_shrink(c, of, begin, size);
}

static Node *as_steps(Rewrite *r, Node *n)
{
    if (n->op != OP_COLLECTIVE || collective_of(n).processes)
        return NULL;
    const Collective x = collective_of(n);
    const int *device = r->user;
    Context *c = r->c;
    Node **src = NEWN(r->a, Node *, n->nsrc), *all;
    for (uint32_t i = 0; i < n->nsrc; i++) {
        src[i] = rewritten(r, n->src[i]);
        if (x.kind == REDUCE_SCATTER)
            src[i] = piece_of(c, &x, src[i], n->shape);
        if (device[n->src[i]->id] != x.receiver)
            src[i] = device_copy(c, src[i], x.receiver);
    }
    if (x.kind == ALL_GATHER)
        return concat_of(c, (int)n->nsrc, src, x.axis);
    all = src[0];
    for (uint32_t i = 1; i < n->nsrc; i++) {
        Node *two[] = {all, src[i]};
        all = node_make(c, monoid_op((ingot_reduce_op)x.monoid), (ingot_dtype)n->dtype, (Arg){0}, 2,
                        two, n->rank, n->shape);
    }
    return all;
}

void collectives(Context *c)
{
    Arena *a = arena_new();
    int nroot, n, found = 0;
    Node **roots = rewrite_roots(c, a, &nroot), **order = graph_toposort(a, nroot, roots, &n);
    int *device = NEWN(a, int, c->nnode + 1);
    for (int i = 0; i < n; i++) {
        device[order[i]->id] = device_by_graph(c, order[i], device);
        found += order[i]->op == OP_COLLECTIVE && !collective_of(order[i]).processes;
    }
    Rewrite r = {.c = c, .a = a, .renew = as_steps, .user = device};
    if (found)
        (void)rewrite_pass(&r);
    arena_free(a);
}
