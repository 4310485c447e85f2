/* cost.c - cycles of moving bytes and of whole kernels, from the figures of a target. */
#include "cost.h"

double node_elements(Node *n)
{
    return (double)dims_bound(n->rank, n->shape);
}

double node_bytes(Node *n)
{
    return node_elements(n) * dtype_info[n->dtype].bytes;
}

double cost_bytes(double bytes, double live, const Target *t)
{
    const Level *l = t->machine.level;
    while (l->bytes > 0 && l->bytes < live)
        l++;
    return bytes / l->rate;
}

double cost_stored(Node *n, const Target *t)
{
    double bytes = node_bytes(n);
    return cost_bytes(2 * bytes, bytes, t) + bytes * t->machine.byte;
}

double cost_kernel(const Kernel *k, const Target *t)
{
    double memory = cost_bytes((double)k->bytes, (double)k->bytes, t),
           arithmetic = (double)k->flops / t->machine.rate[UNIT_TILE];
    return (memory > arithmetic ? memory : arithmetic) + t->machine.launch;
}
