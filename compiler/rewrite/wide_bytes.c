/* wide_bytes.c - bytes that sums of products read again and again are stored as i16.
 *
 *     sum of (i32)x * (i32)w  ->  sum of (i32)x' * (i32)w       x' = (i16)x, of i8 or u8 x
 *
 * x86 without VNNI multiplies no bytes exactly, but pairs of i16 (pmaddwd, igrt_dot_i16.h). Bytes
 * would be taken apart into these wherever they are read, which takes three operations for each
 * four, beside the four of their products. What is stored is x' instead: a vector of weights is
 * widened by the instruction that loads it, and x' is spread over the lanes as it lies.
 *
 * Where x is computed it becomes an i16 for all who widen it:
 *
 *     (i32)(i8) max(round(v) + z, -128) ..  ->  (i32)(i16)(i8) max(round(v) + z, -128) ..
 *
 * So it is, too, of products block by block (--precision q8) whose weights have all bits of a byte.
 * Digits are below 128, which has an instruction of its own (igrt_dot_vec.h).
 *
 * The product says of which casts it is so (Rewrite.signless), and the next pass does it. What an
 * input has is stored once more. */
#include "rewrite.h"

/* The innermost cast of bytes that f moves elements of, less a number or not. */
static Node *bytes_below(Node *f)
{
    while (is_move(f))
        f = f->src[0];
    if ((f->op == OP_SUB || f->op == OP_ADD) && uniform(f->src[1]))
        f = f->src[0];
    const bool bytes = f->op == OP_CAST && f->dtype == INGOT_I32 &&
                       (f->src[0]->dtype == INGOT_I8 || f->src[0]->dtype == INGOT_U8);
    return bytes ? f : NULL;
}

/* (i32) of the byte's value as an i16 in memory. */
static Node *widened(Context *c, Node *byte)
{
    return ingot_cast(c, ingot_contiguous(c, ingot_cast(c, byte, INGOT_I16)), INGOT_I32);
}

Node *widened_cast(Rewrite *r, Node *cast)
{
    return widened(r->c, cast->src[0]);
}

/* f of that. */
static Node *widened_factor(Context *c, Node *f, Node *cast)
{
    if (is_move(f))
        return moved(c, f, widened_factor(c, f->src[0], cast));
    Node *x = widened(c, cast->src[0]);
    return f == cast ? x : node_alu2(c, f->op, INGOT_I32, x, f->src[1]);
}

/* May it be made of some bits of a byte? */
static bool has_digits(const Node *w, int depth)
{
    if (w->op == OP_AND || w->op == OP_SHR || depth > DEPTH_FEW)
        return true;
    for (uint32_t i = 0; i < (is_move(w) ? 1 : op_is_alu(w->op) ? w->nsrc : 0); i++)
        if (has_digits(w->src[i], depth + 1))
            return true;
    return false;
}

/* Weights that lie as bytes, and not as digits: maybe with the other sign. */
static bool is_plain_weight(Node *w)
{
    if (!is_byte(w, false))
        return false;
    if (is_weight(w))
        return true;
    while (is_move(w) || (w->op == OP_CAST && w->dtype == INGOT_I32))
        w = w->src[0];
    return ingot_is_const(w) && !has_digits(w, 0);
}

Node *wide_bytes(Rewrite *r, Node *n)
{
    Node *product = n->src[0];
    if (!r->halves || !sums_integers(n) || !takes_dot(r, product, reduce_axes(n)))
        return NULL;
    for (int i = 0; i < 2; i++) {
        Node *x = product->src[i], *cast = bytes_below(x);
        if (is_weight(x) || !cast || !is_plain_weight(product->src[1 - i]) || !used_again(n, x))
            continue;
        if (computed_once(r, cast->src[0])) {
            mark_cast(r, cast);
            return NULL;
        }
        if (!stored_for_product(r, x, cast))
            continue;
        Node *wide = widened_factor(r->c, x, cast);
        Node *sum = ingot_mul(r->c, i ? product->src[0] : wide, i ? wide : product->src[1]);
        return ingot_reduce(r->c, INGOT_REDUCE_ADD, sum, reduce_axes(n), true);
    }
    return NULL;
}
