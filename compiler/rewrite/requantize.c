/* requantize.c - between a sum of integers and the integer it becomes there is one factor and one
 * summand.
 *
 *     round((float)s * a / b)             ->  round((float)s * (a / b))
 *     round(((float)s * a + c) / b)
 *         -> round((float)s * (a / b) + c / b)        and so with max and min of numbers
 *
 * for a number b > 0 and constant a and c, whose quotients are evaluated when the model is
 * compiled.  s is an integer of the network; what is computed of anything else (an input that is
 * quantised) is divided as the model asks for.  What differs: docs/numerics.md. */
#include "rewrite.h"

bool is_constant(Node *n, int depth)
{
    if (depth > DEPTH_SOME || n->dtype == INGOT_INDEX)
        return n->dtype == INGOT_INDEX;
    bool known = op_is_alu(n->op) || is_move(n) || n->op == OP_REDUCE;
    for (uint32_t i = 0; i < n->nsrc && known; i++)
        known = is_constant(n->src[i], depth + 1);
    return known || n->op == OP_CONST || n->op == OP_DATA || n->op == OP_IOTA;
}

/* k / by of a constant k, as small as it is. */
static Node *quotient(Context *c, Node *k, Node *by)
{
    return op_arranges(k->op) ? moved(c, k, quotient(c, k->src[0], by)) : ingot_div(c, k, by);
}

/* n / by, with a division of constants only; NULL: n is not made of integers. *integer: some are in
 * it. */
static Node *divided(Context *c, Node *n, Node *by, int depth, bool *integer)
{
    if (depth > DEPTH_SOME || n->dtype != INGOT_F32)
        return NULL;
    if (is_constant(n, 0))
        return quotient(c, n, by);
    Node *a, *b;
    switch (n->op) {
    case OP_CAST:
        *integer = true;
        return dtype_is_int(n->src[0]->dtype)
                   ? ingot_mul(c, n, ingot_div(c, node_const_f(c, INGOT_F32, 1), by))
                   : NULL;
    case OP_MUL:
        for (int i = 0; i < 2; i++)
            if (is_constant(n->src[i], 0)) {
                Node *x = n->src[1 - i];
                while (is_move(x) && x->op != OP_GATHER)
                    x = x->src[0];
                *integer |= x->op == OP_CAST && dtype_is_int(x->src[0]->dtype);
                return x->op == OP_CAST && dtype_is_int(x->src[0]->dtype)
                           ? ingot_mul(c, n->src[1 - i], quotient(c, n->src[i], by))
                           : NULL;
            }
        return NULL;
    case OP_ADD:
    case OP_SUB:
    case OP_MAX:
    case OP_MIN:
        a = divided(c, n->src[0], by, depth + 1, integer);
        b = a ? divided(c, n->src[1], by, depth + 1, integer) : NULL;
        if (!b)
            return NULL;
        return n->op == OP_ADD   ? ingot_add(c, a, b)
               : n->op == OP_SUB ? ingot_sub(c, a, b)
               : n->op == OP_MAX ? ingot_max(c, a, b)
                                 : ingot_min(c, a, b);
    case OP_RESHAPE:
    case OP_EXPAND:
    case OP_PERMUTE: {
        a = divided(c, n->src[0], by, depth + 1, integer);
        return a ? moved(c, n, a) : NULL;
    }
    default: return NULL;
    }
}

Node *requantize(Rewrite *r, Node *n)
{
    Node *x = n->src[0];
    bool integer = false;
    if (x->op != OP_DIV || x->dtype != INGOT_F32)
        return NULL;
    Node *by = uniform(x->src[1]);
    if (!by || !(node_float(by) > 0))
        return NULL;
    Node *y = divided(r->c, x->src[0], by, 0, &integer);
    return y && integer && !ingot_is_poison(y) ? ingot_round(r->c, y) : NULL;
}
