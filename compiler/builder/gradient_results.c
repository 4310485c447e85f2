/* gradient_results.c - what a layer makes is as wide as what its products multiply.
 *
 *     y = sum over k of bf16(x) bf16(w) + bias        read as f32(bf16(y)) by all
 *
 * as autocast has it in PyTorch, where bytes decide (ingot_set_rounded_results()): scores of 50,000
 * words are stored in half of the bytes, and so is what an activation reads again for its gradient.
 * One of the factors is a weight: what attention multiplies, two things that are computed, stays as
 * wide as it is summed, for softmax's sake. */
#include "gradient.h"

/* What is moved and rounded only, of a weight. */
static bool is_of_weight(const Node *x)
{
    while (op_arranges(x->op) || x->op == OP_CAST || x->op == OP_KEEP)
        x = x->src[0];
    return op_info[x->op].cls == LEAF && x->op != OP_INPUT;
}

/* The type of what a layer's products multiply, or INGOT_F32. */
static ingot_dtype multiplied_by_layer(const Node *n)
{
    if (n->op != OP_REDUCE || n->dtype != INGOT_F32 || reduce_monoid(n) != INGOT_REDUCE_ADD ||
        n->src[0]->op != OP_MUL)
        return INGOT_F32;
    Node *const *factor = n->src[0]->src;
    const ingot_dtype d = gradient_factor_dtype(factor[0]);
    const bool layer =
        d == gradient_factor_dtype(factor[1]) && is_of_weight(factor[0]) != is_of_weight(factor[1]);
    return layer ? d : INGOT_F32;
}

static Node *reader_of(const Backward *b, Node *const *reader, const Node *n)
{
    Node *t = reader[n->id];
    return t == b->c->poison ? NULL : t;
}

/* With its bias, if it has one. */
static Node *layer_result(const Backward *b, Node *const *reader, Node *sum)
{
    Node *t;
    while ((t = reader_of(b, reader, sum)) && t->op == OP_RESHAPE)
        sum = t;
    const bool biased =
        t && t->op == OP_ADD && t->src[0] != t->src[1] && is_of_weight(t->src[t->src[0] == sum]);
    return biased ? t : sum;
}

void gradient_round_results(Backward *b, int count, Node *const *order)
{
    Context *c = b->c;
    const OriginList *at = c->at;
    Node **reader = NEWN(b->arena, Node *, b->n);
    for (int i = 0; i < count; i++)
        for (uint32_t j = 0; j < order[i]->nsrc; j++) {
            Node **of = &reader[order[i]->src[j]->id];
            *of = *of && *of != order[i] ? c->poison : order[i];
        }
    for (int i = 0; i < count; i++) {
        const ingot_dtype d = multiplied_by_layer(order[i]);
        Node *y = d == INGOT_F32 ? NULL : layer_result(b, reader, order[i]);
        if (!y || map_get(&c->read_as, (uint64_t)y->id + 1))
            continue;
        c->at = c->origins[y->id];
        const Node *t = reader_of(b, reader, y);
        if (!t || t->op != OP_CAST)
            ingot_read_as(c, y, ingot_cast(c, y, d));
    }
    c->at = at;
}
