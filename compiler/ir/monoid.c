/* monoid.c - reductions whose state is several values.
 *
 * A monoid has a state of k values, an identity, and an expression that joins two states.  max has
 * one value; the argument of a maximum has two, the maximum and its index:
 *
 *     join((v, i), (w, j)) = w > v, or w == v and j < i ? (w, j) : (v, i)
 *
 * An element is a state too.  A kernel joins one after the other (reduce_step), the parts of a sum
 * that was divided (monoid_join), and what the lanes of a vector have by the block form: plain
 * reductions that give the state of many at once (monoid_block),
 *
 *     v = max over lanes of v[lane]
 *     i = min over lanes of (v[lane] == v ? i[lane] : the largest integer)
 *
 * A NaN is the greatest and the least of all.
 *
 * A scaled sum has an element (x, f), and one value: f times what it was, plus x.  It is made where
 * rows are taken by blocks (tc_rows.c); of a matrix unit's fragment f is f0 and f1 in turn. */
#include <math.h>

#include "ir.h"

static const int state_size[MONOID_COUNT] = {
#define MONOID(id, name, combine) [INGOT_REDUCE_##id] = 1,
#define STATE(id, name, size) [MONOID_##id] = size,
#include "monoids.def"
};

int monoid_size(int monoid)
{
    return state_size[monoid];
}

int monoid_values(int monoid)
{
    return monoid == MONOID_SCALED || monoid == MONOID_SCALED_LINES ? 1 : monoid_size(monoid);
}

Arg reduce_arg(int monoid, unsigned axes, int part)
{
    return (Arg){.i = (int64_t)monoid | (int64_t)axes << 8 | (int64_t)part << 24};
}

Node *reduce_sibling(Context *c, Node *n, int part)
{
    int size = monoid_size(reduce_monoid(n));
    Node *of = size > 1 ? n->src[part] : n;
    return node_make(c, OP_REDUCE, of->dtype, reduce_arg(reduce_monoid(n), reduce_axes(n), part),
                     (int)n->nsrc, n->src, n->rank, n->shape);
}

/* ---- the greatest, the least ----------------------------------------------------------------- */

static bool is_greatest(int monoid)
{
    return monoid == MONOID_ARGMAX || monoid == MONOID_ARGMAX_LAST;
}

static bool is_last(int monoid)
{
    return monoid == MONOID_ARGMAX_LAST || monoid == MONOID_ARGMIN_LAST;
}

static Node *alu(Context *c, Op op, Node *a, Node *b)
{
    bool compares = op >= OP_EQ && op <= OP_LE;
    return node_alu2(c, op, compares ? INGOT_BOOL : (ingot_dtype)a->dtype, a, b);
}

static Node *is_nan(Context *c, Node *x)
{
    return dtype_is_float(x->dtype) ? node_alu1(c, OP_ISNAN, INGOT_BOOL, x) : node_bool(c, false);
}

static Node *negated(Context *c, Node *x)
{
    return node_alu1(c, OP_NOT, INGOT_BOOL, x);
}

/* b is beyond a: greater, or less. */
static Node *is_beyond(Context *c, int monoid, Op op, Node *b, Node *a)
{
    return is_greatest(monoid) ? alu(c, op, a, b) : alu(c, op, b, a);
}

static void choose(Context *c, Node *take, Node *const *a, Node *const *b, Node **out)
{
    for (int i = 0; i < 2; i++)
        out[i] = node_where(c, take, b[i], a[i]);
}

static void join_extremes(Context *c, int monoid, Node *const *a, Node *const *b, Node **out)
{
    Node *tie = alu(c, OP_EQ, a[0], b[0]), *more = is_beyond(c, monoid, OP_LT, b[0], a[0]);
    if (dtype_is_float(a[0]->dtype)) {
        Node *an = is_nan(c, a[0]), *bn = is_nan(c, b[0]);
        tie = alu(c, OP_OR, tie, alu(c, OP_AND, an, bn));
        more = alu(c, OP_OR, more, alu(c, OP_AND, bn, negated(c, an)));
    }
    Node *order = is_last(monoid) ? alu(c, OP_LT, a[1], b[1]) : alu(c, OP_LT, b[1], a[1]);
    choose(c, alu(c, OP_OR, more, alu(c, OP_AND, tie, order)), a, b, out);
}

/* The index of b is greater than that of a. */
static void next_extreme(Context *c, int monoid, Node *const *a, Node *const *b, Node **out)
{
    bool is_float = dtype_is_float(a[0]->dtype);
    Node *take;
    if (is_last(monoid)) {
        take = is_beyond(c, monoid, OP_LE, b[0], a[0]);
        if (is_float)
            take = alu(c, OP_OR, take, is_nan(c, b[0]));
    } else if (is_float) { /* !(b <= a): a NaN too */
        take = negated(c, is_beyond(c, monoid, OP_LE, a[0], b[0]));
        take = alu(c, OP_AND, take, negated(c, is_nan(c, a[0])));
    } else {
        take = is_beyond(c, monoid, OP_LT, b[0], a[0]);
    }
    choose(c, take, a, b, out);
}

static Node *plain_reduce(Context *c, ingot_reduce_op op, Node *x, Node *range)
{
    return node_make(c, OP_REDUCE, x->dtype, reduce_arg(op, 0, 0), 2, (Node *[]){x, range}, 0,
                     NULL);
}

static void block_extreme(Context *c, int monoid, Node *const *x, Node *range, Node **out)
{
    ingot_reduce_op index = is_last(monoid) ? INGOT_REDUCE_MAX : INGOT_REDUCE_MIN;
    out[0] =
        plain_reduce(c, is_greatest(monoid) ? INGOT_REDUCE_MAX : INGOT_REDUCE_MIN, x[0], range);
    Node *hit = alu(c, OP_EQ, x[0], out[0]);
    if (dtype_is_float(x[0]->dtype))
        hit = alu(c, OP_OR, hit, is_nan(c, x[0]));
    Node *none = monoid_identity(c, index, (ingot_dtype)x[1]->dtype);
    out[1] = plain_reduce(c, index, node_where(c, hit, x[1], none), range);
}

/* ---- all ------------------------------------------------------------------------------------- */

Node *reduce_identity(Context *c, const Node *n)
{
    int monoid = reduce_monoid(n);
    if (monoid < INGOT_REDUCE_COUNT)
        return monoid_identity(c, (ingot_reduce_op)monoid, (ingot_dtype)n->dtype);
    if (monoid_values(monoid) < monoid_size(monoid))
        return node_const_zero(c, (ingot_dtype)n->dtype);
    if (reduce_part(
            n)) /* where all elements are equal to the identity, the first is as good as it */
        return node_const_i(c, (ingot_dtype)n->dtype, 0);
    return monoid_identity(c, is_greatest(monoid) ? INGOT_REDUCE_MAX : INGOT_REDUCE_MIN,
                           (ingot_dtype)n->dtype);
}

void monoid_join(Context *c, int monoid, Node *const *a, Node *const *b, Node **out)
{
    if (monoid < INGOT_REDUCE_COUNT)
        out[0] =
            node_alu2(c, monoid_op((ingot_reduce_op)monoid), (ingot_dtype)a[0]->dtype, a[0], b[0]);
    else
        join_extremes(c, monoid, a, b, out);
}

void monoid_block(Context *c, int monoid, Node *const *x, Node *range, Node **out)
{
    if (monoid < INGOT_REDUCE_COUNT)
        out[0] = plain_reduce(c, (ingot_reduce_op)monoid, x[0], range);
    else
        block_extreme(c, monoid, x, range, out);
}

/* Does x grow from each element of the reduce to the next? */
static bool is_ascending(Context *c, const Node *n, Node *x)
{
    uint32_t first = reduce_size(n);
    int64_t step;
    x = below_casts(x);
    if (n->nsrc != first + 1 || x->dtype != INGOT_INDEX)
        return false;
    Node *range = n->src[first], *next = idx_add(c, range, idx(c, 1));
    return idx_value(idx_sub(c, substitute(c, x, 1, &range, &next), x), &step) && step > 0;
}

void reduce_step(Context *c, Node *n, Node **out)
{
    int monoid = reduce_monoid(n), size = monoid_size(monoid);
    Node *before[MAX_STATE];
    for (int i = 0; i < size; i++)
        before[i] = node_make(c, OP_PARAM, n->src[i]->dtype, reduce_arg(monoid, reduce_axes(n), i),
                              (int)n->nsrc, n->src, 0, NULL);
    if (monoid == MONOID_SCALED)
        out[0] = alu(c, OP_ADD, alu(c, OP_MUL, before[0], n->src[1]), n->src[0]);
    else if (is_ascending(c, n, n->src[1]))
        next_extreme(c, monoid, before, n->src, out);
    else
        join_extremes(c, monoid, before, n->src, out);
}
