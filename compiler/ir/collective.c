/* collective.c - what a group of devices, or of processes, makes of one value of each of them.
 *
 *     x0 on device 0, x1 on device 1
 *     all_reduce add        x0 + x1              on either
 *     all_gather {0}        x0, then x1          on either
 *     reduce_scatter add {0}    the first half of x0 + x1 on device 0, the second one on device 1
 *
 * A node is what one member gets; the others' are nodes beside it over the same sources.  Values
 * are combined in the order of the sources, whoever gets the result, and rounded after each: all
 * members have the same bits, in every run. */
#include "ir.h"

const char *const collective_text[COLLECTIVE_KINDS] = {"all_reduce", "all_gather", "reduce_scatter",
                                                       "all_mean"};

Arg collective_arg(const Collective *x)
{
    return (Arg){.i = (int64_t)x->kind | (int64_t)x->monoid << 8 | (int64_t)x->axis << 16 |
                      (int64_t)x->receiver << 24 | (int64_t)x->processes << 40};
}

Collective collective_of(const Node *n)
{
    const int64_t i = n->arg.i;
    return (Collective){.kind = (CollectiveKind)(i & 0xff),
                        .monoid = (int)(i >> 8 & 0xff),
                        .axis = (int)(i >> 16 & 0xff),
                        .receiver = (int)(i >> 24 & 0xffff),
                        .processes = i >> 40 & 1};
}

Node *collective_make(Context *c, const Collective *x, int n, Node *const *src)
{
    Node *shape[INGOT_MAX_RANK];
    for (int i = 0; i < src[0]->rank; i++)
        shape[i] = src[0]->shape[i];
    if (!x->processes && x->kind == ALL_GATHER)
        for (int i = 1; i < n; i++)
            shape[x->axis] = idx_add(c, shape[x->axis], src[i]->shape[x->axis]);
    if (!x->processes && x->kind == REDUCE_SCATTER)
        shape[x->axis] = idx_div(c, shape[x->axis], idx(c, n));
    return node_make(c, OP_COLLECTIVE, (ingot_dtype)src[0]->dtype, collective_arg(x), n, src,
                     src[0]->rank, shape);
}

Node *device_copy(Context *c, Node *x, int device)
{
    return node_make(c, OP_COPY, (ingot_dtype)x->dtype, (Arg){.i = device}, 1, &x, x->rank,
                     x->shape);
}
