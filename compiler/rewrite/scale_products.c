/* scale_products.c - a number that all products of a sum are multiplied by is multiplied once,
 * behind it.
 *
 *     sum of (x * a) * (y * b)   ->   (sum of x * y) * (a * b)
 *
 * for numbers a, b, in front of what moves and widens the operands, or rounds them alike: attention
 * that scales queries, or both queries and keys.  A matrix unit reads operands as they are stored,
 * so a scaled one is a kernel of its own; behind the sum it is part of another. */
#include <math.h>

#include "rewrite.h"

typedef struct {
    Node *by[4]; /* numbers, of any float type */
    int n;
} Scales;

/* The number that is spread over n, or NULL. */
static Node *number(Node *n)
{
    while (n->op == OP_EXPAND || n->op == OP_RESHAPE) {
        bool one = true;
        for (int i = 0; i < n->rank; i++)
            one &= idx_is(n->shape[i], 1);
        if (one && n->op == OP_RESHAPE)
            break;
        n = n->src[0];
    }
    for (int i = 0; i < n->rank; i++)
        if (!idx_is(n->shape[i], 1))
            return NULL;
    return is_constant(n, 0) ? n : NULL;
}

/* Does the cast round what is not scaled as what is?  Powers of two change exponents alone, and
 * bf16 has those of f32; what is less than 1 has made nothing of the rest infinite. */
static bool rounds_alike(const Node *cast, const Scales *s, int first)
{
    bool alike = cast->dtype == INGOT_BF16 && cast->src[0]->dtype == INGOT_F32;
    for (int i = first; i < s->n && alike; i++) {
        Node *one = uniform(s->by[i]);
        int exponent;
        alike = one && fabs(frexp(node_float(one), &exponent)) == 0.5 && exponent <= 1;
    }
    return alike;
}

/* n without its scale, which *s gets; NULL: it has none. */
static Node *unscaled(Rewrite *r, Node *n, Scales *s, int depth)
{
    Context *c = r->c;
    if (depth > DEPTH_FEW || !dtype_is_float(n->dtype))
        return NULL;
    if (is_move(n) && n->op != OP_GATHER && n->op != OP_PAD) {
        Node *x = unscaled(r, n->src[0], s, depth + 1);
        return x ? moved(c, n, x) : NULL;
    }
    if (n->op == OP_CAST && dtype_is_float(n->src[0]->dtype)) {
        const int first = s->n;
        Node *x = unscaled(r, n->src[0], s, depth + 1);
        if (x && dtype_info[n->src[0]->dtype].bytes > dtype_info[n->dtype].bytes &&
            !rounds_alike(n, s, first))
            x = NULL;
        s->n = x ? s->n : first;
        return x ? ingot_cast(c, x, (ingot_dtype)n->dtype) : NULL;
    }
    if (n->op != OP_MUL)
        return NULL;
    for (int i = 0; i < 2; i++) {
        Node *k = number(n->src[i]);
        if (!k || is_constant(n->src[1 - i], 0))
            continue;
        s->by[s->n++] = k;
        return n->src[1 - i];
    }
    return NULL;
}

Node *scale_products(Rewrite *r, Node *n)
{
    Context *c = r->c;
    Node *factor[2], *ones[INGOT_MAX_RANK];
    Scales s = {.n = 0};
    if (!is_sum_of_products(n) || n->nsrc != 1 || n->dtype != INGOT_F32)
        return n;
    Node *product = n->src[0];
    if (is_constant(product->src[0], 0) || is_constant(product->src[1], 0))
        return n;
    for (int i = 0; i < 2; i++) {
        Node *x = unscaled(r, product->src[i], &s, 0);
        factor[i] = x ? x : product->src[i];
    }
    if (!s.n)
        return n;
    Node *y =
        ingot_reduce(c, INGOT_REDUCE_ADD, ingot_mul(c, factor[0], factor[1]), reduce_axes(n), true);
    for (int i = 0; i < n->rank; i++)
        ones[i] = idx(c, 1);
    for (int i = 0; i < s.n; i++)
        y = ingot_mul(c, y, ingot_reshape(c, ingot_cast(c, s.by[i], INGOT_F32), n->rank, ones));
    return ingot_is_poison(y) ? n : y;
}
