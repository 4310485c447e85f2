/* exact.c - is every result of a kernel exact, if what it reads are small whole numbers?
 *
 * Sums, products and comparisons of floats that hold small integers round nowhere: then any order
 * of a sum gives the same bits, and two forms of a kernel can be compared bit for bit. */
#include <math.h>

#include "kernel.h"

static bool rounds(Node *n)
{
    if (n->op == OP_CONST && dtype_is_float(n->dtype)) {
        double v = node_float(n);
        return isfinite(v) && (v != floor(v) || fabs(v) > 1000);
    }
    if (is_scalar_argument(n))
        return true;
    if (n->op == OP_REDUCE)
        return n->arg.i == INGOT_REDUCE_MUL && dtype_is_float(n->dtype);
    if (!op_is_alu(n->op) || !dtype_is_float(n->dtype))
        return false;
    switch (n->op) {
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_NEG:
    case OP_ABS:
    case OP_MAX:
    case OP_MIN:
    case OP_WHERE:
    case OP_CAST:
    case OP_FLOOR:
    case OP_CEIL:
    case OP_TRUNC:
    case OP_ROUND:
    case OP_SIGN: return false;
    default: return true;
    }
}

bool kernel_is_exact(const Kernel *k)
{
    Arena *a = arena_new();
    int n;
    Node **order = graph_toposort(a, 1, &k->sink, &n);
    bool exact = true;
    for (int i = 0; i < n; i++)
        exact &= !rounds(order[i]);
    arena_free(a);
    return exact;
}
