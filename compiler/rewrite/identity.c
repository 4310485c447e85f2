/* identity.c - arithmetic that changes nothing, and powers that are products.
 *
 * Only what holds for every bit pattern: x * 1, x - 0, x + -0.0, but not x + 0.0, which makes 0.0
 * of -0.0. */
#include <math.h>

#include "builder.h"
#include "rewrite.h"

/* (x - 3) + 5 -> x + 2 of integers, which is exact modulo 2^32; NULL: it is something else. */
static Node *joined_numbers(Context *c, Node *n)
{
    Node *sum = n->src[0], *k[] = {uniform(n->src[1]), NULL};
    if (n->dtype != INGOT_I32 || (sum->op != OP_ADD && sum->op != OP_SUB) || !k[0] ||
        !(k[1] = uniform(sum->src[1])))
        return NULL;
    int64_t z = n->op == OP_ADD ? k[0]->arg.i : -k[0]->arg.i;
    z = (int32_t)(uint32_t)(z + (sum->op == OP_ADD ? k[1]->arg.i : -k[1]->arg.i));
    Node *x = sum->src[0];
    return !z                        ? x
           : z < 0 && z != INT32_MIN ? ingot_sub(c, x, node_const_i(c, INGOT_I32, -z))
                                     : ingot_add(c, x, node_const_i(c, INGOT_I32, z));
}

Node *identity(Rewrite *r, Node *n)
{
    if (n->op == OP_BITCAST) /* the same bits, which ingot_stop() has made -> x */
        return n->dtype == n->src[0]->dtype ? n->src[0] : NULL;
    Node *a = n->src[0], *b = n->src[1], *ka = uniform(a), *kb = uniform(b);
    bool f = dtype_is_float(n->dtype);
    double zero = f && n->op == OP_ADD ? -0.0 : 0;
    switch (n->op) {
    case OP_ADD: /* x + 0 -> x */
        if (const_is(kb, zero))
            return a;
        return const_is(ka, zero) ? b : joined_numbers(r->c, n);
    case OP_MUL: /* x * 1 -> x */
        if (const_is(kb, 1))
            return a;
        return const_is(ka, 1) ? b : NULL;
    case OP_DIV: /* x / 1 -> x */ return const_is(kb, 1) ? a : NULL;
    case OP_MAX: /* max(x, x) -> x */ return a == b || (f && const_is(kb, -INFINITY)) ? a : NULL;
    case OP_MIN: return a == b || (f && const_is(kb, INFINITY)) ? a : NULL;
    case OP_AND: /* x and x, x and true -> x */
        if (a == b)
            return a;
        if (n->dtype != INGOT_BOOL)
            return NULL;
        return const_is(kb, 1) ? a : const_is(ka, 1) ? b : NULL;
    case OP_OR:
        if (a == b)
            return a;
        if (n->dtype != INGOT_BOOL)
            return NULL;
        return const_is(kb, 0) ? a : const_is(ka, 0) ? b : NULL;
    case OP_SUB: /* x - 0 -> x */ return const_is(kb, 0) ? a : joined_numbers(r->c, n);
    case OP_XOR:
    case OP_SHL:
    case OP_SHR: /* x - 0 -> x */ return const_is(kb, 0) ? a : NULL;
    case OP_WHERE: /* g ? x : x -> x */ return b == n->src[2] ? b : NULL;
    default: return NULL;
    }
}

/* x ^ 1 -> x, x ^ 2 -> x * x: both are rounded once.  x ^ 3 -> x * x * x is rounded twice, within
 * what functions of lanes may be off; of narrow floats, of which that is much, in f32. */
Node *small_power(Rewrite *r, Node *n)
{
    Node *x = n->src[0], *k = uniform(n->src[1]);
    if (const_is(k, 1))
        return x;
    if (const_is(k, 2))
        return ingot_mul(r->c, x, x);
    if (!const_is(k, 3))
        return NULL;
    const bool narrow = dtype_is_float(n->dtype) && dtype_info[n->dtype].compute == INGOT_F32;
    Node *wide = narrow ? ingot_cast(r->c, x, INGOT_F32) : x;
    Node *cube = ingot_mul(r->c, ingot_mul(r->c, wide, wide), wide);
    return narrow ? ingot_cast(r->c, cube, (ingot_dtype)n->dtype) : cube;
}

/* A row of numbers that is shaped is a constant of that shape: then its axes are known to whoever
 * lays it out. */
Node *shaped_constant(Rewrite *r, Node *n)
{
    Node *x = n->src[0];
    for (int i = 0; i < n->rank; i++)
        if (!idx_value(n->shape[i], NULL))
            return NULL;
    if (x->op != OP_DATA || x->rank != 1 || n->rank < 2)
        return NULL;
    return node_make(r->c, OP_DATA, (ingot_dtype)x->dtype, x->arg, n->rank, n->shape, n->rank,
                     n->shape);
}
