/* f8_products.c - products with weights as products of f8 (--precision fp8).
 *
 * Each row of both operands has a scale, by which its largest element becomes the largest number of
 * f8e4m3fn:
 *
 *     x[m,k] ~ s[m] q[m,k]        s = max |x[m,:]| / 448, q = x / s as f8e4m3fn
 *     w[n,k] ~ t[n] u[n,k]        the same, when the model is compiled
 *
 *     sum over k of x w  ~  (sum over k of q u) s[m] t[n]
 *
 * A number of f8e4m3fn has four bits whatever its size, down to 2^-15 of the largest: so a scale
 * for each row is enough, and blocks of a row need none of their own. The graph says q s and u t;
 * that scales leave the sum is integer_sum.c's doing, as for files that come with f8. */
#include "builder.h"
#include "ops.h"

enum { DEEP = 16 /* nodes that are looked at below an operand */ };
enum { STEP = 16, LEAST = 32 }; /* terms: copies bring them in pieces of 16 bytes */

/* A row of zeros has a scale all the same. */
static const double least_scale = 1e-30, most_f8 = 448;

/* Is it f8 times scales, as files have it? */
static bool is_of_f8(const Node *n, int deep)
{
    if (n->op == OP_CAST)
        return n->src[0]->dtype == INGOT_F8E4M3FN || n->src[0]->dtype == INGOT_F8E5M2;
    if (!deep || (n->op != OP_MUL && !op_arranges(n->op) && n->op != OP_SHRINK))
        return false;
    return is_of_f8(n->src[0], deep - 1) || (n->op == OP_MUL && is_of_f8(n->src[1], deep - 1));
}

typedef struct {
    Node *q, *scale; /* f8e4m3fn; f32, of size 1 along the last axis */
} F8Rows;

/* stored: q is computed at run time, of x as bf16 has it: a kernel that computes x for nobody else
 * stores 2 bytes of it, whatever its range. All that is said of a scale stands inside of its
 * maximum: so the row has one number, which the kernel that rounds the row stores beside it. */
static F8Rows rows_of(Context *c, Node *x, bool stored)
{
    const int last = x->rank - 1;
    if (stored)
        x = ops_widen(c, ingot_cast(c, x, INGOT_BF16));
    Node *size = ingot_max_c(c, ingot_mul_c(c, ingot_abs(c, x), 1 / most_f8), least_scale),
         *scale = ingot_reduce(c, INGOT_REDUCE_MAX, size, 1u << last, true),
         *per = ingot_div(c, ingot_like(c, scale, 1), scale),
         *q = ingot_cast(c, ingot_mul(c, x, per), INGOT_F8E4M3FN);
    return (F8Rows){stored ? ingot_contiguous(c, q) : q, scale};
}

/* x, as it is read from its rows of f8. What leaves rows as they are comes behind that: so a norm's
 * kernel rounds its rows itself. */
static Node *as_f8(Context *c, Node *x, bool stored)
{
    Node *base = x, *dims[INGOT_MAX_RANK];
    if (is_of_f8(x, DEEP))
        return x;
    while (stored && base->op == OP_RESHAPE && base->src[0]->rank &&
           base->src[0]->shape[base->src[0]->rank - 1] == base->shape[base->rank - 1])
        base = base->src[0];
    const F8Rows rows = rows_of(c, base, stored);
    for (int i = 0; i < x->rank; i++)
        dims[i] = i + 1 < x->rank ? x->shape[i] : idx(c, 1);
    Node *q = ingot_reshape(c, rows.q, x->rank, x->shape);
    return ingot_mul(c, ingot_cast(c, q, INGOT_F32), ingot_reshape(c, rows.scale, x->rank, dims));
}

/* Weights of few bits stay as they are. */
static bool is_weight(Context *c, Node *n)
{
    return ingot_is_const(n) &&
           (is_of_f8(n, DEEP) || !ops_is_of_narrow(n) || ops_widened_from(c, n, INGOT_F16) ||
            ops_widened_from(c, n, INGOT_BF16));
}

bool ops_f8_product(ingot_context *c, ingot_tensor *x, ingot_tensor *w, Products *out)
{
    int64_t terms;
    if (!ingot_f8_here(c) || !ingot_one_product(c) || x->dtype != INGOT_F32 ||
        w->dtype != INGOT_F32 || !x->rank || !w->rank ||
        !ingot_dim_is_const(w->shape[w->rank - 1], &terms) || terms < LEAST || terms % STEP ||
        is_weight(c, x) == is_weight(c, w))
        return false;
    const bool turned = is_weight(c, x);
    Node *weight = turned ? x : w, *data = turned ? w : x;
    /* what one row multiplies is read once whatever it has: its elements stay as they are */
    const bool one = ops_rows_beside(data, weight) <= 1;
    weight = as_f8(c, weight, false);
    data = one ? data : as_f8(c, data, true);
    *out = (Products){.x = {turned ? weight : data}, .w = {turned ? data : weight}, .n = 1};
    return true;
}
