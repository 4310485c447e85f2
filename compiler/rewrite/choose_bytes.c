/* choose_bytes.c - what becomes the byte that it was is chosen as a byte.
 *
 *     q(max over a window of d(x))  ->  max over the window of x          d: x less a zero point
 *     q(max(d(x), 0))               ->  max(x, q(0))                         times a scale
 *     q(moved d(x))                 ->  moved x                           q: back to bytes
 *
 * where q(d(x)) is x for each of the 256 values that x may have, which are tried.  Networks with
 * QuantizeLinear and DequantizeLinear around each operator have this around those that do no
 * arithmetic (MaxPool, Relu, Reshape ..): they would be stored and read as floats.
 *
 * q is made of steps with numbers that keep the order of what they are given (a sum, a factor above
 * 0, a rounding, a bound), so that the q of a maximum is the maximum of the q.  What a window reads
 * beyond an edge, -inf, becomes q(-inf), the least byte.  The result is the same, bit by bit. */
#include <math.h>
#include <string.h>

#include "eval.h"
#include "rewrite.h"

enum { MOST_LINKS = 16 };
/* Elementwise steps with one number each, the last one first: q, and then d. */
typedef struct {
    Rewrite *r;
    ingot_dtype byte;
    int n;
    Node *link[MOST_LINKS];
} ByteSteps;

/* Where it keeps the order of floats. */
static bool keeps_order(const Node *n)
{
    if (n->op == OP_CAST || n->op == OP_ROUND)
        return true;
    Node *by = uniform(n->src[1]);
    const double k = by && by->dtype == INGOT_F32 ? node_float(by) : NAN;
    return isfinite(k) && (n->op == OP_MUL || n->op == OP_DIV ? k > 0 : true);
}

static bool is_link(Node *n)
{
    switch (n->op) {
    case OP_CAST:
    case OP_ROUND: return true;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MAX:
    case OP_MIN: return uniform(n->src[1]) != NULL;
    default: return false;
    }
}

/* What the chain makes of x, the innermost step first. */
static Node *linked(const ByteSteps *chain, Node *x)
{
    Context *c = chain->r->c;
    for (int i = chain->n; i-- > 0;) {
        Node *n = chain->link[i], *by = n->nsrc > 1 ? uniform(n->src[1]) : NULL;
        switch (n->op) {
        case OP_CAST:
            x = n->arg.i == CAST_LEAST ? ingot_cast_least(c, x, (ingot_dtype)n->dtype)
                                       : ingot_cast(c, x, (ingot_dtype)n->dtype);
            break;
        case OP_ROUND: x = ingot_round(c, x); break;
        case OP_ADD: x = ingot_add(c, x, by); break;
        case OP_SUB: x = ingot_sub(c, x, by); break;
        case OP_MUL: x = ingot_mul(c, x, by); break;
        case OP_DIV: x = ingot_div(c, x, by); break;
        case OP_MAX: x = ingot_max(c, x, by); break;
        default: x = ingot_min(c, x, by); break;
        }
    }
    return x;
}

/* The n bytes that the chain makes of n values of x; false: it cannot be told. */
static bool made_of(const ByteSteps *chain, Node *x, int n, uint8_t *bytes)
{
    Node *y = linked(chain, x);
    if (ingot_is_poison(y))
        return false;
    Interp *ip = interp_new(chain->r->c);
    int64_t dims[INGOT_MAX_RANK];
    const void *got = interp_eval(ip, y, dims);
    if (got)
        memcpy(bytes, got, (size_t)n);
    interp_free(ip);
    return got != NULL;
}

/* Is each byte what the chain makes of it? */
static bool gives_back(const ByteSteps *chain)
{
    enum { VALUES = UINT8_MAX + 1 };
    Context *c = chain->r->c;
    const int64_t dims[] = {VALUES};
    uint8_t *all = NEWN(c->arena, uint8_t, VALUES), got[VALUES];
    for (int i = 0; i < VALUES; i++)
        all[i] = (uint8_t)i;
    return made_of(chain, ingot_data(c, NULL, chain->byte, 1, dims, all), VALUES, got) &&
           !memcmp(got, all, VALUES);
}

/* The byte that a float becomes, a constant; NULL: it cannot be told. */
static Node *byte_of(const ByteSteps *chain, double f)
{
    Context *c = chain->r->c;
    uint8_t byte;
    if (!made_of(chain, node_const_f(c, INGOT_F32, f), 1, &byte))
        return NULL;
    return node_const_i(c, chain->byte, chain->byte == INGOT_I8 ? (int8_t)byte : byte);
}

/* Elements that a PAD adds are not chosen: where(pad(true), pad(x), k). */
static bool masks_padding(Node *mask, Node *pad)
{
    if (mask->op != OP_PAD || pad->op != OP_PAD || mask->nsrc != pad->nsrc)
        return false;
    for (uint32_t i = 1; i < pad->nsrc; i++)
        if (mask->src[i] != pad->src[i])
            return false;
    Node *inside = uniform(mask->src[0]);
    return inside && inside->arg.i == 1;
}

static Node *chosen(ByteSteps chain, Node *n, int depth);

static Node *chosen_branch(ByteSteps chain, Node *mask, Node *x, int depth)
{
    Context *c = chain.r->c;
    if (mask && masks_padding(mask, x)) {
        Node *inner = chosen(chain, x->src[0], depth + 1);
        return inner ? moved(c, x, inner) : NULL;
    }
    Node *k = uniform(x);
    if (!k || k->dtype != INGOT_F32)
        return chosen(chain, x, depth + 1);
    k = byte_of(&chain, node_float(k));
    return k ? ingot_expand(c, k, x->rank, x->shape) : NULL;
}

/* The bytes that the chain makes of n, chosen as bytes; NULL: it makes others. */
static Node *chosen(ByteSteps chain, Node *n, int depth)
{
    Context *c = chain.r->c;
    if (depth > DEPTH_SOME)
        return NULL;
    for (; is_link(n); n = n->src[0]) {
        if (chain.n == MOST_LINKS)
            return NULL;
        chain.link[chain.n++] = n;
        if (n->op == OP_CAST && n->src[0]->dtype == chain.byte)
            return gives_back(&chain) ? n->src[0] : NULL;
    }
    if (n->dtype != INGOT_F32)
        return NULL;
    for (int i = 0; i < chain.n; i++)
        if (!keeps_order(chain.link[i]))
            return NULL;
    if (is_move(n)) {
        Node *zero = n->op == OP_PAD ? byte_of(&chain, 0) : NULL;
        if (n->op == OP_PAD && !(zero && zero->arg.i == 0))
            return NULL;
        Node *x = chosen(chain, n->src[0], depth + 1);
        return x ? moved(c, n, x) : NULL;
    }
    if (n->op == OP_REDUCE && reduce_monoid(n) == INGOT_REDUCE_MAX && n->nsrc == 1 &&
        read_once(chain.r, n)) {
        Node *least = byte_of(&chain, -INFINITY);
        if (!least || least->arg.i != dtype_least(chain.byte))
            return NULL;
        Node *x = chosen(chain, n->src[0], depth + 1);
        return x ? ingot_reduce(c, INGOT_REDUCE_MAX, x, reduce_axes(n), true) : NULL;
    }
    if (n->op == OP_WHERE) {
        Node *a = chosen_branch(chain, n->src[0], n->src[1], depth);
        Node *b = a ? chosen_branch(chain, NULL, n->src[2], depth) : NULL;
        return b ? ingot_where(c, n->src[0], a, b) : NULL;
    }
    return NULL;
}

Node *choose_bytes(Rewrite *r, Node *cast)
{
    const ingot_dtype byte = (ingot_dtype)cast->dtype;
    if ((byte != INGOT_I8 && byte != INGOT_U8) || cast->src[0]->dtype != INGOT_F32)
        return NULL;
    Node *y = chosen((ByteSteps){.r = r, .byte = byte}, cast, 0);
    return y && !ingot_is_poison(y) ? y : NULL;
}
