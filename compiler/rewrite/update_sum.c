/* update_sum.c - what changes few rows of a state by a sum is added to the state itself.
 *
 *     w - rate * update_add(0, rows, g)   ->   update_add(w, rows, -rate * g)
 *
 * So the step of an embedding reads and writes the rows of the words that it has seen, where the
 * sum of gradients would be a table as large as the weights, of which all is zeros else.  Rows that
 * are there several times are added one after the other, each rounded. */
#include "builder.h"
#include "rewrite.h"

/* The factor of a product that is one number, or -1. */
static int number_side(const Node *product)
{
    return one_number(product->src[1]) ? 1 : one_number(product->src[0]) ? 0 : -1;
}

/* Rows that are added to zeros, times numbers, whose product becomes *factor; NULL: it is something
 * else, or others read it too. */
static Node *added_to_zeros(Rewrite *r, Node *x, Node **factor, bool *minus)
{
    Context *c = r->c;
    *factor = NULL;
    *minus = false;
    while ((x->op == OP_NEG || x->op == OP_MUL) && read_once(r, x)) {
        const int side = x->op == OP_MUL ? number_side(x) : 1;
        *minus ^= x->op == OP_NEG;
        if (side < 0)
            return NULL;
        if (x->op == OP_MUL) {
            Node *number = ingot_reshape(c, one_number(x->src[side]), 0, NULL);
            *factor = *factor ? ingot_mul(c, *factor, number) : number;
        }
        x = x->src[1 - side];
    }
    const bool adds = x->op == OP_UPDATE && x->arg.i == INGOT_ADD && read_once(r, x);
    return adds && dtype_is_float(x->dtype) &&
                   uniform(x->src[0]) == node_const_zero(c, (ingot_dtype)x->dtype)
               ? x
               : NULL;
}

Node *update_sum(Rewrite *r, Node *n)
{
    Context *c = r->c;
    Node *factor, *state = n->src[0];
    bool minus;
    if (state->op != OP_STATE)
        return NULL;
    Node *update = added_to_zeros(r, n->src[1], &factor, &minus);
    if (!update || update->dtype != state->dtype)
        return NULL;
    Node *src[INGOT_MAX_RANK + 2] = {state, update->src[1]};
    if (factor)
        src[1] = ingot_mul(c, src[1], factor);
    if (minus != (n->op == OP_SUB))
        src[1] = ingot_neg(c, src[1]);
    for (uint32_t i = 2; i < update->nsrc; i++)
        src[i] = update->src[i];
    return node_make(c, OP_UPDATE, (ingot_dtype)n->dtype, update->arg, (int)update->nsrc, src,
                     n->rank, n->shape);
}
