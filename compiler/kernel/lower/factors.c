/* factors.c - factors leave the loops that they do not move with.
 *
 *     sum over a, b of x[a,b] * w[a,b] * s[a]
 *         -> sum over a of s[a] * (sum over b of x[a,b] * w[a,b])
 *
 * Weights of few bits have a scale for each block of terms: it is multiplied once a block, and what
 * is left inside are products that are added as they are made.  Each sum has an accumulator more,
 * so this is for factors of which every copy of the sum has its own: what several rows share is
 * multiplied once for all of them where it is. */
#include "lower.h"

enum { MAX_FACTORS = 8, FEWEST_TERMS = 8 };

static int factors_of(Node *n, Node **factor, int count)
{
    if (n->op == OP_MUL && n->dtype == INGOT_F32) {
        count = factors_of(n->src[0], factor, count);
        return factors_of(n->src[1], factor, count);
    }
    if (count < MAX_FACTORS)
        factor[count] = n;
    return count + 1;
}

/* How many of the loops, from the outermost on, are around all that it moves with. */
static int loops_around(Node *factor, Node *const *range, int n)
{
    while (n && !depends_on(factor, range[n - 1]))
        n--;
    return n;
}

/* Does each copy of the sum have its own?  Of a factor as the kernel has it. */
static bool differs_by_copy(const Lower *q, const Piece *p, Node *factor)
{
    for (int i = 0; i < p->ncopies; i++) {
        int root = q->nest->axis[p->copies[i].axis].root;
        if (!depends_on(factor, q->k->axes[root].range))
            return false;
    }
    return true;
}

static Node *product_of(Context *c, Node *const *factor, const bool *taken, bool which, int n)
{
    Node *product = NULL;
    for (int i = 0; i < n; i++)
        if (taken[i] == which)
            product = product ? node_alu2(c, OP_MUL, INGOT_F32, product, factor[i]) : factor[i];
    return product;
}

int lower_factored(Lower *q, const Piece *p, Node *n, Node **body, Node **range, int nrange)
{
    Node *factor[MAX_FACTORS], *given[MAX_FACTORS];
    bool leaves[MAX_FACTORS] = {false};
    int loops[MAX_FACTORS];
    const int count = factors_of(*body, factor, 0);
    int around = nrange, inside = count;
    if (!p->t.lane || reduce_monoid(n) != INGOT_REDUCE_ADD || count < 3 || count > MAX_FACTORS ||
        factors_of(n->src[0], given, 0) != count || lower_is_partial(q, n))
        return nrange;
    for (int i = 0; i < count; i++) {
        loops[i] =
            differs_by_copy(q, p, given[i]) ? loops_around(factor[i], range, nrange) : nrange;
        if (loops[i] && loops[i] < around)
            around = loops[i];
    }
    int64_t terms = 1;
    for (int i = around; i < nrange; i++)
        terms = sat_mul(terms, range[i]->hi + 1);
    for (int i = 0; i < count; i++) {
        leaves[i] = loops[i] <= around;
        inside -= leaves[i];
    }
    if (around == nrange || inside < 2 || terms < FEWEST_TERMS)
        return nrange;
    Node *sum = product_of(q->c, factor, leaves, false, count);
    lower_reduce_over(q, p, n, &sum, range + around, nrange - around, &sum);
    *body = node_alu2(q->c, OP_MUL, INGOT_F32, sum, product_of(q->c, factor, leaves, true, count));
    return around;
}
