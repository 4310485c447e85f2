/* collectives.c - what a group of devices makes of their values, as what each of them computes:
 *
 *     all_reduce add @1 x0 x1          COPY 1 (x0) + x1
 *     all_gather {0} @0 x0 x1          concat(x0, COPY 0 (x1))
 *     reduce_scatter add {0} @1 x0 x1  COPY 1 (x0[half..]) + x1[half..]
 *
 * So a sum over devices is fused with what reads it, as any other, and is the same on all of them:
 * each adds in the order of the members, what it has got and what it has itself alike.
 *
 * A large sum of more than two devices is made in pieces, one on each of them, which the others
 * then get: of n values 2 (n - 1) / n cross to a device and not n - 1, and the bits are the same.
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

typedef struct {
    const Target *t;
    int *device; /* by id */
} Receivers;

/* Of values on one device, in their order. */
static Node *combined(Context *c, const Collective *x, int n, Node *const *src)
{
    Node *all = src[0];
    for (int i = 1; i < n; i++) {
        Node *two[] = {all, src[i]};
        all = node_make(c, monoid_op((ingot_reduce_op)x->monoid), (ingot_dtype)all->dtype, (Arg){0},
                        2, two, all->rank, all->shape);
    }
    return all;
}

/* Elements of a sum that is to be made in pieces; 0: it is not. */
static int64_t in_pieces(const Target *t, Node *n)
{
    int64_t elements = 1, size;
    for (int i = 0; i < n->rank; i++) {
        if (!idx_value(n->shape[i], &size))
            return 0;
        elements = sat_mul(elements, size);
    }
    const bool pays = collective_of(n).kind == ALL_REDUCE && elements >= n->nsrc &&
                      reduces_in_pieces(t, (int)n->nsrc, node_bytes(n));
    return pays ? elements : 0;
}

/* src: of each member its own value. */
static Node *by_pieces(Rewrite *r, Node *n, Node *const *src, int64_t elements)
{
    const Collective x = collective_of(n);
    const Receivers *m = r->user;
    Context *c = r->c;
    const int members = (int)n->nsrc;
    /* of whole lines: a piece begins where words and vectors do */
    const int64_t line = ceil_div(m->t->machine.line, elem_bytes((ingot_dtype)n->dtype)),
                  most = ceil_div(ceil_div(elements, members), line) * line;
    Node **term = NEWN(r->a, Node *, members), **piece = NEWN(r->a, Node *, members);
    Node *all = idx(c, elements);
    int count = 0;
    for (int i = 0; i < members && i * most < elements; i++) {
        const int owner = m->device[n->src[i]->id];
        Node *begin = idx(c, i * most),
             *size = idx(c, elements - i * most < most ? elements - i * most : most);
        for (int j = 0; j < members; j++) {
            term[j] = ingot_reshape(c, node_kept(c, src[j]), 1, &all);
            term[j] = ingot_shrink(c, term[j], &begin, &size);
            if (m->device[n->src[j]->id] != owner)
                term[j] = device_copy(c, term[j], owner);
        }
        piece[count] = combined(c, &x, members, term);
        if (owner != x.receiver)
            piece[count] = device_copy(c, piece[count], x.receiver);
        count++;
    }
    return ingot_reshape(c, concat_of(c, count, piece, 0), n->rank, n->shape);
}

static Node *as_steps(Rewrite *r, Node *n)
{
    if (n->op != OP_COLLECTIVE || collective_of(n).processes)
        return NULL;
    const Collective x = collective_of(n);
    const Receivers *m = r->user;
    const int64_t elements = in_pieces(m->t, n);
    Context *c = r->c;
    Node **src = NEWN(r->a, Node *, n->nsrc);
    for (uint32_t i = 0; i < n->nsrc; i++)
        src[i] = rewritten(r, n->src[i]);
    if (elements)
        return by_pieces(r, n, src, elements);
    for (uint32_t i = 0; i < n->nsrc; i++) {
        if (x.kind == REDUCE_SCATTER)
            src[i] = piece_of(c, &x, src[i], n->shape);
        if (m->device[n->src[i]->id] != x.receiver)
            src[i] = device_copy(c, src[i], x.receiver);
    }
    if (x.kind == ALL_GATHER)
        return concat_of(c, (int)n->nsrc, src, x.axis);
    return combined(c, &x, (int)n->nsrc, src);
}

void collectives(Context *c, const Target *t)
{
    Arena *a = arena_new();
    int nroot, n, found = 0;
    Node **roots = rewrite_roots(c, a, &nroot), **order = graph_toposort(a, nroot, roots, &n);
    int *device = NEWN(a, int, c->nnode + 1);
    for (int i = 0; i < n; i++) {
        device[order[i]->id] = device_by_graph(c, order[i], device);
        found += order[i]->op == OP_COLLECTIVE && !collective_of(order[i]).processes;
    }
    Rewrite r = {.c = c, .a = a, .renew = as_steps, .user = &(Receivers){t, device}};
    if (found)
        (void)rewrite_pass(&r);
    arena_free(a);
}
