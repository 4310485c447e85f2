/* float_sum.c - sums of integers in f32, where that is exact and faster.
 *
 *     sum of a * b  ->  (i32)(sum of (f32)a * (f32)b)
 *
 * Vectors have a multiply-add of f32, and none of i32.  As long as no partial sum is beyond 2^24
 * each of them is a number of f32, whatever the order: the result is the same.  What a dot takes by
 * fours (igrt_dot.h) stays a sum of integers, and so does what may become larger.
 *
 * Where one instruction multiplies and adds pairs of i16 (vpdpwssd), it takes products of bytes in
 * lanes, too, and what lies in memory are bytes.  So it is if each is read for one result and a
 * load that widens bytes is done beside (a Zen 4, whose vectors of 512 bits are multiplied in
 * halves). What many results side by side read is a float once, and spread as it lies. */
#include <float.h>
#include <math.h>

#include "rewrite.h"

bool is_byte(Node *n, bool zero)
{
    while (n->dtype == INGOT_I32 &&
           (is_move(n) || n->op == OP_CAST ||
            (zero && (n->op == OP_ADD || n->op == OP_SUB) && one_number(n->src[1]))))
        n = n->src[0];
    return n->dtype == INGOT_I8 || n->dtype == INGOT_U8;
}

/* Bytes of a constant, or made of packed ones where they are read: digits. */
static bool is_made_of_bytes(Node *n)
{
    while (is_move(n) || (n->op == OP_CAST && n->dtype == INGOT_I32))
        n = n->src[0];
    return n->dtype == INGOT_U8 && (op_is_alu(n->op) || n->op == OP_KEEP || n->op == OP_DATA) &&
           ingot_is_const(n);
}

/* i16 that were bytes (wide_bytes.c). */
static bool is_wide_byte(Node *n)
{
    while (n->dtype == INGOT_I32 &&
           (is_move(n) || n->op == OP_CAST ||
            ((n->op == OP_ADD || n->op == OP_SUB) && one_number(n->src[1]))))
        n = n->src[0];
    return n->dtype == INGOT_I16;
}

bool takes_dot(Rewrite *r, Node *product, unsigned axes)
{
    for (int i = 0; i < 2 && r->dot; i++) {
        Node *w = product->src[i],
             *compact = is_weight(w) || is_made_of_bytes(w) ? compact_form(r, w) : NULL;
        Node *x = product->src[1 - i];
        const bool wide = r->halves && is_wide_byte(x);
        if (!compact || !is_byte(w, false) || (!is_byte(x, true) && !wide))
            continue;
        for (int d = 0; d < compact->rank; d++) {
            int64_t extent;
            if ((axes >> d & 1) && idx_value(compact->shape[d], &extent) && extent > 0 &&
                extent % 4 == 0)
                return true;
        }
    }
    return false;
}

/* (f32)n, in memory too: what is moved is cast before. */
static Node *as_float(Context *c, Node *n)
{
    return is_move(n) ? moved(c, n, as_float(c, n->src[0])) : ingot_cast(c, n, INGOT_F32);
}

/* Each result has operands of its own (depthwise convolutions), neither of which is read for
 * several results side by side. */
static bool is_apart(Node *product, unsigned axes)
{
    Node *of[2] = {compact_of(product->src[0]), compact_of(product->src[1])};
    bool apart = true, own = false;
    for (int i = 0; i < product->rank; i++) {
        const bool one[2] = {idx_is(of[0]->shape[i], 1), idx_is(of[1]->shape[i], 1)};
        if (axes >> i & 1 || idx_is(product->shape[i], 1))
            continue;
        own |= !one[0] && !one[1];
        apart &= !(is_weight(product->src[0]) ? one[1] : one[0]);
    }
    return apart && own;
}

Node *float_sum(Rewrite *r, Node *n)
{
    Context *c = r->c;
    unsigned axes = reduce_axes(n);
    Node *product = n->src[0];
    if (!r->float_sums || !sums_integers(n))
        return NULL;
    double most = 1;
    for (int i = 0; i < 2; i++) {
        double lo, hi;
        if (!value_range(product->src[i], &lo, &hi))
            return NULL;
        most *= fmax(-lo, hi);
    }
    for (int i = 0; i < product->rank; i++)
        if (axes >> i & 1)
            most *= (double)product->shape[i]->hi;
    if (r->shorts && is_byte(product->src[0], true) && is_byte(product->src[1], true) &&
        is_apart(product, axes))
        return NULL;
    if (most > 1 << FLT_MANT_DIG || takes_dot(r, product, axes))
        return NULL;
    Node *sum = ingot_mul(c, as_float(c, product->src[0]), as_float(c, product->src[1]));
    sum = ingot_cast(c, ingot_reduce(c, INGOT_REDUCE_ADD, sum, axes, true), INGOT_I32);
    return ingot_is_poison(sum) ? NULL : sum;
}
