/* gradient_softmax.c - the gradient of e^z / sum(e^z), in one step.
 *
 * It depends on each z twice, by itself and by the sum.  The rules of these nodes one after the
 * other would keep e^z and the sum beside the shares p that are made of them.  Together they are
 *
 *     g_z = p (g - sum over j of p g)
 *
 * of p alone, which products have read already, and may have rounded.  What z is less of, so that
 * no e^z is too large, is a matter of z.
 *
 * Of attention, whose shares are read by a sum of products alone, the sum takes no row of g:
 *
 *     y[i,d] = sum over j of p[i,j] v[j,d]     g[i,j] = sum over d of g_y[i,d] v[j,d]
 *     sum over j of p[i,j] g[i,j] = sum over d of y[i,d] g_y[i,d]
 *
 * so that g may go on to g_z element by element (Dao et al., "FlashAttention", 2022). */
#include "gradient.h"

/* The sum of e, which stands in for 1 / sum or for sum itself; another number may stand where it is
 * 0 (ingot_softmax_or_zero()). NULL: it is none. */
static Node *sum_of(Node *x, const Node *e, bool reciprocal, Node **passed, int *npassed)
{
    if (x->op != OP_EXPAND)
        return NULL;
    passed[(*npassed)++] = x;
    x = x->src[0];
    if (reciprocal) {
        if (x->op != OP_DIV || !const_is(uniform(x->src[0]), 1))
            return NULL;
        passed[(*npassed)++] = x;
        x = x->src[1];
    }
    if (x->op == OP_WHERE) {
        passed[(*npassed)++] = x;
        x = x->src[2];
    }
    const bool sums = x->op == OP_REDUCE && reduce_monoid(x) == INGOT_REDUCE_ADD && x->src[0] == e;
    passed[(*npassed)++] = x;
    return sums ? x : NULL;
}

enum { MOST_MOVES = 12 };

/* The only one that has given x a gradient, or NULL. */
static Node *only_reader(const Backward *b, const Node *x)
{
    Node *t = x->id < b->n ? b->reader[x->id] : NULL;
    return t == b->c->poison ? NULL : t;
}

/* What is made of y by moves alone, in the order of `moves`, and stands in memory rounded. */
static Node *stored_result(const Backward *b, Node *y, Node **moves, int *nmove)
{
    *nmove = 0;
    for (Node *x = y; x && *nmove < MOST_MOVES; x = only_reader(b, x)) {
        if (x != y && x->op != OP_RESHAPE && x->op != OP_PERMUTE)
            break;
        if (x != y)
            moves[(*nmove)++] = x;
        Node *stored = map_get(&b->c->read_as, (uint64_t)x->id + 1);
        if (stored)
            return ingot_cast(b->c, stored, (ingot_dtype)y->dtype);
    }
    *nmove = 0;
    return y;
}

static Node *moved_back(Backward *b, Node *const *moves, int nmove, Node *x)
{
    while (nmove-- > 0)
        x = (moves[nmove]->op == OP_RESHAPE ? gradient_reshape : gradient_permute)(b, moves[nmove],
                                                                                   x, 0);
    return x;
}

/* The sum over the rows of p, along this axis, of p times its gradient, repeated along them, by
 * what a sum of products over the same axis has made of p; NULL: p is not read by one alone. */
static Node *sum_by_products(Backward *b, Node *p, int axis)
{
    Context *c = b->c;
    Node *moves[MOST_MOVES], *behind[MOST_MOVES], *t = only_reader(b, p), *last = p;
    int n = 0, m;
    unsigned repeated = 0;
    for (; t && (op_arranges(t->op) || t->op == OP_CAST || t->op == OP_KEEP);
         last = t, t = only_reader(b, t)) {
        if (!op_arranges(t->op))
            continue;
        axis = axis_moved(t, axis);
        if (axis < 0 || repeated || n == MOST_MOVES)
            return NULL;
        if (t->op != OP_EXPAND) {
            moves[n++] = t;
            continue;
        }
        for (int a = 0; a < t->rank; a++)
            repeated |= t->shape[a] != t->src[0]->shape[a] ? 1u << a : 0;
    }
    Node *product = t, *y = product && product->op == OP_MUL ? only_reader(b, product) : NULL;
    if (!y || y->op != OP_REDUCE || reduce_monoid(y) != INGOT_REDUCE_ADD || !b->grad[y->id] ||
        reduce_axes(y) != 1u << axis || product->src[0] == product->src[1] || last == p)
        return NULL;
    Node *g = gradient_rounded(c, y, b->grad[y->id]), *dims[INGOT_MAX_RANK];
    Node *result = stored_result(b, y, behind, &m);
    Node *sum = ingot_mul(c, moved_back(b, behind, m, result), g);
    sum = repeated ? gradient_sum(c, sum, repeated) : sum;
    for (int a = 0; a < sum->rank; a++)
        dims[a] = a == axis ? product->shape[a] : sum->shape[a];
    return moved_back(b, moves, n, ingot_expand(c, sum, sum->rank, dims));
}

/* The gradient as it was summed, before it got the type of shares that were rounded: what it is
 * less of is not made of rounded sums. */
static Node *unrounded(Context *c, Node *g)
{
    if (g->op == OP_CAST && g->src[0]->op == OP_CAST && g->src[0]->src[0]->dtype == g->dtype)
        return g->src[0]->src[0];
    Node *below = g->op == OP_RESHAPE || g->op == OP_PERMUTE ? unrounded(c, g->src[0]) : NULL;
    return below && below != g->src[0] ? move_again(c, g, below) : g;
}

/* Which axis it is; -1: there are several. */
static int only_axis(unsigned axes)
{
    int a = 0;
    while (a < INGOT_MAX_RANK && !(axes >> a & 1))
        a++;
    return axes == 1u << a ? a : -1;
}

bool gradient_softmax(Backward *b, Node *p, Node *g)
{
    enum { MOST_PASSED = 8 };
    Context *c = b->c;
    Node *passed[MOST_PASSED], *sum = NULL, *e = NULL;
    int n = 0;
    if ((p->op != OP_MUL && p->op != OP_DIV) || p->dtype != dtype_info[p->dtype].compute ||
        g->dtype != p->dtype || uniform(g))
        return false;
    for (int j = 0; j < (p->op == OP_MUL ? 2 : 1) && !sum; j++) {
        n = 0;
        e = p->src[j];
        sum = e->op == OP_EXP ? sum_of(p->src[1 - j], e, p->op == OP_MUL, passed, &n) : NULL;
    }
    if (!sum || !has_gradient(b, e->src[0]) || b->target[e->id])
        return false;
    for (int i = 0; i < n; i++)
        if (b->target[passed[i]->id]) /* its own gradient is asked for */
            return false;
    g = unrounded(c, g);
    const int axis = only_axis(reduce_axes(sum));
    Node *all = axis >= 0 ? sum_by_products(b, p, axis) : NULL;
    if (!all)
        all = ingot_expand(c, gradient_sum(c, ingot_mul(c, p, g), reduce_axes(sum)), p->rank,
                           p->shape);
    gradient_give(b, e->src[0], ingot_mul(c, p, ingot_sub(c, g, all)));
    return true;
}
