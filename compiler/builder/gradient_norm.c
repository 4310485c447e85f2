/* gradient_norm.c - the gradient of what has been normalised, in one step.
 *
 *     m = mean(x)   d = x - m   v = mean(d^2)   i = 1 / sqrt(v + eps)   z = d i
 *
 * z depends on each x three times: by itself, by m and by v.  The rules of these nodes one after
 * the other would sum over all of x for v, and once more for m.  Together they are
 *
 *     g_x = i (g - mean(g) - z mean(g z))
 *
 * of which a scale and a bias behind z need the same two sums: g_bias = sum(g), g_scale = sum(g z)
 * (Ioffe and Szegedy, "Batch Normalization", 2015).  Without m, as in an RMS norm, it is
 * i (g - z mean(g z)). */
#include "gradient.h"

enum { MOST_PASSED = 24 };

typedef struct {
    Node *x, *deviation, *mean; /* mean: as x has it, NULL: there is none */
    Node *inverse;              /* i, as z has it; NULL: `root` is its reciprocal */
    Node *root, *count;
    unsigned axes;
    Node *passed[MOST_PASSED]; /* what is between z and x */
    int npassed;
} Normalised;

static bool pass(Normalised *n, Node *t)
{
    if (n->npassed == MOST_PASSED)
        return false;
    n->passed[n->npassed++] = t;
    return true;
}

static Node *below_shapes(Normalised *n, Node *t)
{
    while (t->op == OP_RESHAPE && pass(n, t))
        t = t->src[0];
    return t;
}

/* The tensor whose mean this is, with the axes; NULL: it is no mean. */
static Node *mean_of(Normalised *n, Node *t, unsigned *axes, Node **sums)
{
    t = below_shapes(n, t);
    if (t->op != OP_DIV || !uniform(t->src[1]) || !pass(n, t))
        return NULL;
    n->count = t->src[1];
    *sums = t = below_shapes(n, t->src[0]);
    for (*axes = 0; t->op == OP_REDUCE && reduce_monoid(t) == INGOT_REDUCE_ADD && pass(n, t);
         t = t->src[0])
        *axes |= reduce_axes(t);
    return *axes ? t : NULL;
}

/* Does what is repeated have the axes of the sums where they are, below shapes of the same order?
 */
static bool lies_alike(Context *c, const Node *repeated, const Node *sums)
{
    const Node *t = repeated->src[0];
    return t->rank == sums->rank && shape_same(c, t->rank, t->shape, sums->shape);
}

/* mean((t)^2), below the root of it and a number: v. */
static bool is_of_variance(Context *c, Normalised *n, Node *repeated, bool reciprocal)
{
    unsigned axes;
    Node *sums, *t = repeated->op == OP_EXPAND ? repeated->src[0] : NULL;
    if (!t || !pass(n, repeated))
        return false;
    t = below_shapes(n, t);
    if (reciprocal) {
        if (t->op != OP_DIV || !const_is(uniform(t->src[0]), 1) || !pass(n, t))
            return false;
        t = below_shapes(n, t->src[1]);
    }
    if (t->op != OP_SQRT || !pass(n, t))
        return false;
    t = below_shapes(n, t->src[0]);
    if (t->op == OP_ADD && uniform(t->src[1]) && pass(n, t))
        t = t->src[0];
    t = mean_of(n, t, &axes, &sums);
    n->axes = axes;
    return t && t->op == OP_MUL && t->src[0] == n->deviation && t->src[1] == n->deviation &&
           pass(n, t) && lies_alike(c, repeated, sums);
}

/* x is what d is made of, by its mean over the same axes; or d itself. */
static bool find_mean(Context *c, Normalised *n)
{
    Node *d = n->deviation, *sums, *own = d->op == OP_SUB ? d->src[1] : NULL;
    const unsigned axes = n->axes;
    n->x = d;
    if (!own || own->op != OP_EXPAND)
        return true;
    if (!pass(n, own) || mean_of(n, own->src[0], &n->axes, &sums) != d->src[0])
        return false;
    n->x = d->src[0];
    n->mean = own;
    return n->axes == axes && lies_alike(c, own, sums) && pass(n, d);
}

static bool find_normalised(Context *c, Node *z, Normalised *n)
{
    *n = (Normalised){.x = NULL};
    if (z->op != OP_MUL && z->op != OP_DIV)
        return false;
    for (int j = 0; j < (z->op == OP_MUL ? 2 : 1); j++) {
        *n = (Normalised){.deviation = z->src[j]};
        if (is_of_variance(c, n, z->src[1 - j], z->op == OP_MUL)) {
            *(z->op == OP_MUL ? &n->inverse : &n->root) = z->src[1 - j];
            return find_mean(c, n);
        }
    }
    return false;
}

/* A factor that is the same for all that is summed leaves the sums. */
static Node *without_factor(Node *g, unsigned axes, Node **factor)
{
    *factor = NULL;
    if (g->op != OP_MUL || g->src[1]->op != OP_EXPAND)
        return g;
    const Node *x = g->src[1]->src[0];
    for (int a = 0; a < x->rank; a++)
        if (axes >> a & 1 && !idx_is(x->shape[a], 1))
            return g;
    *factor = g->src[1];
    return g->src[0];
}

static Node *mean_like(Context *c, Node *x, unsigned axes, Node *count, const Node *like)
{
    Node *sum = gradient_sum(c, x, axes);
    Node *n = uniform_make(c, uniform(count), sum->rank, sum->shape);
    return ingot_expand(c, ingot_div(c, sum, n), like->rank, like->shape);
}

bool gradient_normalised(Backward *b, Node *z, Node *g)
{
    Context *c = b->c;
    Normalised n;
    if (z->dtype != dtype_info[z->dtype].compute || g->dtype != z->dtype || uniform(g) ||
        !find_normalised(c, z, &n) || !has_gradient(b, n.x))
        return false;
    for (int i = 0; i < n.npassed; i++)
        if (b->target[n.passed[i]->id]) /* its own gradient is asked for */
            return false;
    Node *factor, *own = without_factor(g, n.axes, &factor);
    Node *slope = ingot_mul(c, z, mean_like(c, ingot_mul(c, own, z), n.axes, n.count, z));
    Node *rest = n.mean ? ingot_sub(c, own, mean_like(c, own, n.axes, n.count, z)) : own;
    rest = ingot_sub(c, rest, slope);
    rest = n.inverse ? ingot_mul(c, rest, n.inverse) : ingot_div(c, rest, n.root);
    gradient_give(b, n.x, factor ? ingot_mul(c, rest, factor) : rest);
    return true;
}
