/* gradient_elementwise.c - g_x += g_y dy/dx of the elementwise ops: x, a and b are the operands,
 * y the result, all of one shape.
 *
 * Slopes are computed from y where that is cheaper: e^x has y, and tanh 1 - y^2, which the
 * forward pass has anyway. */
#include <math.h>

#include "gradient.h"

static Node *square(Context *c, Node *x)
{
    return ingot_mul(c, x, x);
}

static Node *one_less(Context *c, Node *x) /* 1 - x */
{
    return ingot_sub(c, ingot_like(c, x, 1), x);
}

/* ---- of one operand -------------------------------------------------------------------------- */

Node *gradient_cast(Backward *b, Node *n, Node *g, int i)
{
    Node *x = n->src[i];
    return dtype_is_float(x->dtype) ? ingot_cast(b->c, g, (ingot_dtype)x->dtype) : g;
}

/* ingot_stop() is one that changes nothing, and no path; gradient.c knows the one that cuts bits
 * off. */
Node *gradient_bitcast(Backward *b, Node *n, Node *g, int i)
{
    (void)g, (void)i;
    return gradient_no_rule(b, n, "bitcast");
}

Node *gradient_neg(Backward *b, Node *n, Node *g, int i)
{
    (void)n, (void)i;
    return ingot_neg(b->c, g);
}

Node *gradient_abs(Backward *b, Node *n, Node *g, int i)
{
    return ingot_mul(b->c, g, ingot_sign(b->c, n->src[i]));
}

Node *gradient_round(Backward *b, Node *n, Node *g, int i)
{
    (void)n, (void)i;
    return b->straight ? g : NULL;
}

Node *gradient_exp(Backward *b, Node *n, Node *g, int i)
{
    (void)i;
    return ingot_mul(b->c, g, n);
}

Node *gradient_log(Backward *b, Node *n, Node *g, int i)
{
    return ingot_div(b->c, g, n->src[i]);
}

Node *gradient_sin(Backward *b, Node *n, Node *g, int i)
{
    return ingot_mul(b->c, g, ingot_cos(b->c, n->src[i]));
}

Node *gradient_cos(Backward *b, Node *n, Node *g, int i)
{
    return ingot_neg(b->c, ingot_mul(b->c, g, ingot_sin(b->c, n->src[i])));
}

Node *gradient_tan(Backward *b, Node *n, Node *g, int i)
{
    (void)i;
    return ingot_mul(b->c, g, ingot_add_c(b->c, square(b->c, n), 1));
}

Node *gradient_asin(Backward *b, Node *n, Node *g, int i)
{
    Context *c = b->c;
    return ingot_div(c, g, ingot_sqrt(c, one_less(c, square(c, n->src[i]))));
}

Node *gradient_acos(Backward *b, Node *n, Node *g, int i)
{
    return ingot_neg(b->c, gradient_asin(b, n, g, i));
}

Node *gradient_atan(Backward *b, Node *n, Node *g, int i)
{
    return ingot_div(b->c, g, ingot_add_c(b->c, square(b->c, n->src[i]), 1));
}

Node *gradient_sinh(Backward *b, Node *n, Node *g, int i)
{
    return ingot_mul(b->c, g, ingot_cosh(b->c, n->src[i]));
}

Node *gradient_cosh(Backward *b, Node *n, Node *g, int i)
{
    return ingot_mul(b->c, g, ingot_sinh(b->c, n->src[i]));
}

Node *gradient_tanh(Backward *b, Node *n, Node *g, int i)
{
    (void)i;
    return ingot_mul(b->c, g, one_less(b->c, square(b->c, n)));
}

Node *gradient_asinh(Backward *b, Node *n, Node *g, int i)
{
    Context *c = b->c;
    return ingot_div(c, g, ingot_sqrt(c, ingot_add_c(c, square(c, n->src[i]), 1)));
}

Node *gradient_acosh(Backward *b, Node *n, Node *g, int i)
{
    Context *c = b->c;
    return ingot_div(c, g, ingot_sqrt(c, ingot_add_c(c, square(c, n->src[i]), -1)));
}

Node *gradient_atanh(Backward *b, Node *n, Node *g, int i)
{
    return ingot_div(b->c, g, one_less(b->c, square(b->c, n->src[i])));
}

/* 2 / sqrt(pi) e^(-x^2) */
Node *gradient_erf(Backward *b, Node *n, Node *g, int i)
{
    Context *c = b->c;
    Node *bell = ingot_exp(c, ingot_neg(c, square(c, n->src[i])));
    return ingot_mul(c, g, ingot_mul_c(c, bell, 1.1283791670955126));
}

Node *gradient_sqrt(Backward *b, Node *n, Node *g, int i)
{
    (void)i;
    return ingot_div(b->c, ingot_mul_c(b->c, g, 0.5), n);
}

/* ---- of two, and three ----------------------------------------------------------------------- */

Node *gradient_sub(Backward *b, Node *n, Node *g, int i)
{
    (void)n;
    return i ? ingot_neg(b->c, g) : g;
}

Node *gradient_mul(Backward *b, Node *n, Node *g, int i)
{
    Node *other = n->src[1 - i];
    if (!dtype_is_float(other->dtype)) /* of integers (straight_through) */
        other = ingot_cast(b->c, other, (ingot_dtype)g->dtype);
    return ingot_mul(b->c, g, other);
}

/* g / b, and -g y / b: of 1 / b, -g y^2 */
Node *gradient_div(Backward *b, Node *n, Node *g, int i)
{
    Context *c = b->c;
    if (!dtype_is_float(n->dtype))
        return gradient_no_rule(b, n, "div of integers");
    if (i == 0)
        return ingot_div(c, g, n->src[1]);
    Node *slope = const_is(uniform(n->src[0]), 1) ? square(c, n) : ingot_div(c, n, n->src[1]);
    return ingot_neg(c, ingot_mul(c, g, slope));
}

/* a - b floor(a / b), with trunc for FMOD */
Node *gradient_mod(Backward *b, Node *n, Node *g, int i)
{
    Context *c = b->c;
    if (!dtype_is_float(n->dtype))
        return gradient_no_rule(b, n, op_info[n->op].text);
    if (i == 0)
        return g;
    Node *times = ingot_div(c, n->src[0], n->src[1]);
    times = n->op == OP_MOD ? ingot_floor(c, times) : ingot_trunc(c, times);
    return ingot_neg(c, ingot_mul(c, g, times));
}

/* b a^(b - 1), and 0 where b is 0, whatever a is */
static Node *base_slope(Context *c, Node *a, Node *b)
{
    Node *k = uniform(b);
    if (const_is(k, 2))
        return ingot_mul_c(c, a, 2);
    if (k && node_float(k) != 0)
        return ingot_mul(c, b, ingot_pow(c, a, ingot_add_c(c, b, -1)));
    Node *none = ingot_eq(c, b, ingot_like(c, b, 0)), *one = ingot_like(c, b, 1);
    Node *power = ingot_pow(c, a, ingot_sub(c, ingot_where(c, none, one, b), one));
    return ingot_mul(c, b, power);
}

/* y log a, and 0 where a is 0 */
static Node *exponent_slope(Context *c, Node *a, Node *y)
{
    Node *none = ingot_eq(c, a, ingot_like(c, a, 0)), *one = ingot_like(c, a, 1);
    return ingot_mul(c, y, ingot_log(c, ingot_where(c, none, one, a)));
}

Node *gradient_pow(Backward *b, Node *n, Node *g, int i)
{
    Node *slope = i ? exponent_slope(b->c, n->src[0], n) : base_slope(b->c, n->src[0], n->src[1]);
    return ingot_mul(b->c, g, slope);
}

/* round(x), or that and a zero point. */
static bool is_rounded(const Node *x)
{
    return x->op == OP_ROUND ||
           (x->op == OP_ADD && (x->src[0]->op == OP_ROUND || x->src[1]->op == OP_ROUND));
}

/* All of g where the operand is the greater (or less).  Of equals each gets half if both have a
 * gradient, else nothing: max(x, 0) is flat at 0, as elsewhere.  But the least and the greatest of
 * the numbers that x is rounded to are as good as those between (straight_through). Which it was
 * the result says as well, which is stored where it is read rounded (ingot_set_rounded_results()).
 */
Node *gradient_extreme(Backward *b, Node *n, Node *g, int i)
{
    Context *c = b->c;
    Node *x = n->src[i], *other = n->src[1 - i], *zero = ingot_like(c, g, 0), *tie = zero;
    if (has_gradient(b, other))
        tie = ingot_where(c, ingot_eq(c, x, other), ingot_mul_c(c, g, 0.5), zero);
    else if (b->straight && is_rounded(n->op == OP_MAX || x->op != OP_MAX ? x : x->src[0]))
        tie = ingot_where(c, ingot_eq(c, x, other), g, zero);
    if (tie == zero && ingot_rounded_results(c) && map_get(&c->read_as, (uint64_t)n->id + 1))
        x = n;
    Node *wins = n->op == OP_MAX ? ingot_gt(c, x, other) : ingot_lt(c, x, other);
    return ingot_where(c, wins, g, tie);
}

Node *gradient_where(Backward *b, Node *n, Node *g, int i)
{
    Node *zero = ingot_like(b->c, g, 0);
    return i == 1 ? ingot_where(b->c, n->src[0], g, zero) : ingot_where(b->c, n->src[0], zero, g);
}
