/* place_layers.c - a network as a row of devices, each of which has some of its layers.
 *
 *     x - conv - relu - conv - relu - fc - y
 *         0      0      1      1      1          weights and work in two halves
 *
 * For a model whose weights one device does not hold. Nodes in their order are cut where a device
 * has its share of the time that all take: operations, and weights that come from memory. What only
 * leads to a sum, or only moves what one device reads, is on the device that reads it, so that what
 * crosses is what would be stored anyway.
 *
 * Leaves the devices of nodes that may be anywhere; place_devices.c makes the copies. */
#include "plan_schedule.h"
#include "rewrite.h"

static double time_of(const Target *t, Node *n)
{
    if (is_sum_of_products(n))
        return product_time(t, n);
    const double rate = t->machine.rate[UNIT_VECTOR];
    return op_is_alu(n->op) && rate > 0 ? op_info[n->op].cost * node_elements(n) / rate : 0;
}

/* The device of all that read a node; -1: there are several, or nobody. */
typedef struct {
    int device;
    bool any;
} ReadBy;

/* What is moved; it is not stored where it is not moved elsewhere. */
static Node *moved_value(Node *n)
{
    while (op_info[n->op].cls == MOVE && n->op != OP_CONCAT && n->op != OP_GATHER)
        n = n->src[0];
    return n;
}

/* Work on elements goes where its reader is, if that makes what crosses smaller. */
static void follow_readers(Arena *a, uint32_t nnode, int n, Node *const *node, const bool *may,
                           int *device)
{
    ReadBy *by = NEWN(a, ReadBy, nnode + 1);
    for (int i = n; i-- > 0;) {
        Node *t = node[i];
        double below = 0;
        for (uint32_t j = 0; j < t->nsrc; j++)
            below += may[t->src[j]->id] ? node_bytes(moved_value(t->src[j])) : 0;
        if (may[t->id] && t->op != OP_REDUCE && by[t->id].any && by[t->id].device >= 0 &&
            node_bytes(t) > below)
            device[t->id] = by[t->id].device;
        for (uint32_t j = 0; j < t->nsrc; j++) {
            ReadBy *s = &by[t->src[j]->id];
            const int of = device[t->id];
            s->device = s->any && s->device != of ? -1 : of;
            s->any = true;
        }
    }
}

void place_layers(Arena *a, const Target *t, uint32_t nnode, int n, Node *const *node,
                  const bool *may, int ndevice, int *device)
{
    bool *summed = NEWN(a, bool, nnode + 1); /* the terms of a sum of products */
    double *time = NEWN(a, double, n + 1), all = 0, at = 0;
    for (int i = 0; i < n; i++)
        if (is_sum_of_products(node[i]))
            summed[node[i]->src[0]->id] = true;
    for (int i = 0; i < n; i++) {
        time[i] = summed[node[i]->id] ? 0 : time_of(t, node[i]);
        all += time[i];
    }
    for (int i = 0; i < n; i++) {
        const double middle = at + time[i] / 2;
        const int share = all > 0 ? (int)(middle / all * ndevice) : 0;
        at += time[i];
        if (may[node[i]->id])
            device[node[i]->id] = share < ndevice ? share : ndevice - 1;
    }
    follow_readers(a, nnode, n, node, may, device);
}
