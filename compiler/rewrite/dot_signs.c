/* dot_signs.c - bytes that are multiplied lie in memory as a unit takes them.
 *
 *     sum of (i32)x * w  ->  sum of ((i32)x' - 128) * w        x' = x + 128, as u8, of i8 x
 *
 * A unit that multiplies bytes without a sign with bytes that have one (Target.any_sign) would add
 * 128 to each x in the loop, and take 128 w away again.  What is stored is x' instead: it is as
 * large, whoever makes x makes it as fast, and the 128 leave the sum as a zero point does
 * (zero_point.c).  A zero point of -128, as that of results of a ReLU, is then none.
 *
 * Where x is quantised, all that widen it read x' (the sum of a residual, beside the product):
 *
 *     (i32)(i8) max(round(v) + z, -128) ..  ->  (i32)(u8) max(round(v) + (z + 128), 0) .. - 128
 *
 * The product says of which casts it is so (Rewrite.signless), and the next pass does it. */
#include <math.h>

#include "rewrite.h"

/* The innermost cast of i8 that f moves elements of, less a number or not. */
static Node *signed_bytes(Node *f)
{
    while (is_move(f))
        f = f->src[0];
    if ((f->op == OP_SUB || f->op == OP_ADD) && uniform(f->src[1]))
        f = f->src[0];
    return f->op == OP_CAST && f->src[0]->dtype == INGOT_I8 ? f : NULL;
}

enum { HALF = INT8_MAX + 1 };

/* The u8 that is 128 more than an i8 that was an i32 (byte_max.c); NULL: x is no such cast. */
static Node *raised_integer(Context *c, Node *x)
{
    double lo, hi;
    Node *f = x->src[0];
    if (x->op != OP_CAST || f->dtype != INGOT_I32 || !value_range(f, &lo, &hi) || lo < INT8_MIN ||
        hi > INT8_MAX)
        return NULL;
    return ingot_cast(c, ingot_add(c, f, node_const_i(c, INGOT_I32, HALF)), INGOT_U8);
}

/* The u8 that is 128 more than what a clamped float of the network becomes as an i8; NULL: x is no
 * such cast. */
static Node *raised(Context *c, Node *x)
{
    if (x->op == OP_RESHAPE) {
        Node *y = raised(c, x->src[0]);
        return y ? moved(c, x, y) : NULL;
    }
    Node *f = x->src[0], *bound[2] = {NULL, NULL};
    if (x->op == OP_CAST && f->dtype == INGOT_I32)
        return raised_integer(c, x);
    if (x->op != OP_CAST || x->arg.i != CAST_LEAST || f->dtype != INGOT_F32)
        return NULL;
    for (; f->op == OP_MAX || f->op == OP_MIN; f = f->src[0]) {
        Node **b = &bound[f->op == OP_MIN];
        if (*b || !(*b = uniform(f->src[1])))
            return NULL;
    }
    Node *z = f->op == OP_ADD ? uniform(f->src[1]) : NULL;
    double zero = z ? node_float(z) : 0;
    f = z ? f->src[0] : f;
    if (!bound[0] || !bound[1] || f->op != OP_ROUND || zero != rint(zero) || fabs(zero) > UINT8_MAX)
        return NULL;
    if (zero + HALF != 0)
        f = ingot_add(c, f, node_const_f(c, INGOT_F32, zero + HALF));
    f = ingot_max(c, f, node_const_f(c, INGOT_F32, node_float(bound[0]) + HALF));
    f = ingot_min(c, f, node_const_f(c, INGOT_F32, node_float(bound[1]) + HALF));
    return ingot_cast_least(c, f, INGOT_U8);
}

bool loses_sign(const Rewrite *r, const Node *cast)
{
    return map_get(&r->signless, (uint64_t)cast->id + 1) != NULL;
}

Node *without_signs(Rewrite *r, Node *cast)
{
    Context *c = r->c;
    if (!loses_sign(r, r->visiting))
        return NULL;
    if (r->halves)
        return widened_cast(r, cast);
    Node *x = raised(c, cast->src[0]);
    return x ? ingot_sub(c, ingot_cast(c, x, INGOT_I32), node_const_i(c, INGOT_I32, HALF)) : NULL;
}

void mark_cast(Rewrite *r, Node *cast)
{
    if (loses_sign(r, cast))
        return;
    map_put(&r->signless, (uint64_t)cast->id + 1, r);
    r->changed = true;
}

bool computed_once(Rewrite *r, Node *x)
{
    for (; x->op == OP_RESHAPE; x = x->src[0])
        if (!read_once(r, x))
            return false;
    return op_is_alu(x->op) && read_once(r, x);
}

/* Nothing but this cast reads what is quantised: then the next pass takes its sign. */
static bool takes_sign(Rewrite *r, Node *cast)
{
    if (!computed_once(r, cast->src[0]) || !raised(r->c, cast->src[0]))
        return false;
    mark_cast(r, cast);
    return true;
}

/* f with x' - 128 for (i32)x. */
static Node *without_sign(Context *c, Node *f)
{
    if (is_move(f))
        return moved(c, f, without_sign(c, f->src[0]));
    Node *cast = signed_bytes(f), *half = node_const_i(c, INGOT_I32, HALF);
    int64_t z = HALF;
    if (f != cast) {
        int64_t number = uniform(f->src[1])->arg.i;
        z += f->op == OP_SUB ? number : -number;
    }
    Node *x = ingot_cast(c, ingot_add(c, cast, half), INGOT_U8);
    if (!op_is_alu(cast->src[0]->op)) /* it is in memory: what stands for it is to be so too */
        x = ingot_contiguous(c, x);
    x = ingot_cast(c, x, INGOT_I32);
    return z ? ingot_sub(c, x, node_const_i(c, INGOT_I32, z)) : x;
}

int64_t uses_of(Node *n, Node *f)
{
    int64_t uses = 1, extent;
    for (int i = 0; i < n->rank; i++) {
        Node *at = f;
        while (at->op == OP_EXPAND && at->shape[i] != at->src[0]->shape[i])
            at = at->src[0];
        if (at != f && idx_is(at->shape[i], 1) && idx_value(n->shape[i], &extent))
            uses *= extent;
    }
    return uses;
}

bool used_again(Node *n, Node *f)
{
    enum { MANY = 16 };
    return uses_of(n, f) >= MANY;
}

/* Nothing else reads the bytes: else they would be stored in both ways.  Those of an input are, by
 * one step before all products. */
bool stored_for_product(Rewrite *r, Node *f, Node *cast)
{
    Node *x = cast->src[0];
    if (!op_is_alu(x->op))
        return !is_move(x);
    for (; f != cast; f = f->src[0])
        if (!read_once(r, f))
            return false;
    return read_once(r, cast) && read_once(r, x);
}

Node *signs(Rewrite *r, Node *n)
{
    Node *product = n->src[0];
    if (!r->one_sign || !sums_integers(n))
        return NULL;
    for (int i = 0; i < 2; i++) {
        Node *x = product->src[i], *w = product->src[1 - i];
        if (is_weight(x) || !is_weight(w) || !signed_bytes(x) || !signed_bytes(w) ||
            !used_again(n, x))
            continue;
        if (takes_sign(r, signed_bytes(x)))
            return NULL;
        if (!stored_for_product(r, x, signed_bytes(x)))
            continue;
        Node *sum = ingot_mul(r->c, without_sign(r->c, x), w);
        return ingot_reduce(r->c, INGOT_REDUCE_ADD, sum, reduce_axes(n), true);
    }
    return NULL;
}
