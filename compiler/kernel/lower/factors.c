/* factors.c - factors leave the loops that they do not move with.
 *
 *     sum over a, b of x[a,b] * w[a,b] * s[a]
 *         -> sum over a of s[a] * (sum over b of x[a,b] * w[a,b])
 *
 * Weights of few bits have a scale for each block of terms: it is multiplied once a block, and what
 * is left inside are products that are added as they are made.  Each sum has an accumulator more,
 * so this is for factors that cost each copy of the sum a product: of which every copy has its own,
 * or that move with some copies (rows) where all others move with the rest of them (columns).  What
 * several rows share beside another factor that they share is multiplied once for all of them where
 * it is. */
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

/* Which copies of the sum have a factor of their own: a bit for each axis of copies. */
static unsigned copies_of(const Lower *q, const Piece *p, Node *factor)
{
    unsigned moves = 0;
    for (int i = 0; i < p->ncopies; i++)
        moves |=
            (unsigned)depends_on(factor, q->k->axes[q->nest->axis[p->copies[i].axis].root].range)
            << i;
    return moves;
}

/* Does a factor cost each copy of the sum a product, whichever other one it is multiplied with
 * first?  Of factors as the kernel has them. */
static bool costs_each_copy(const Lower *q, const Piece *p, Node *const *factor, int n, int which)
{
    const unsigned all = (1u << p->ncopies) - 1, own = copies_of(q, p, factor[which]);
    for (int i = 0; i < n && own != all; i++)
        if (i != which && (own | copies_of(q, p, factor[i])) != all)
            return false;
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
    int around = nrange, inside = count, sums = 0;
    if (!p->t.lane || reduce_monoid(n) != INGOT_REDUCE_ADD || count < 2 || count > MAX_FACTORS ||
        factors_of(n->src[0], given, 0) != count || lower_is_partial(q, n))
        return nrange;
    for (int i = 0; i < count; i++) {
        loops[i] = costs_each_copy(q, p, given, count, i) ? loops_around(factor[i], range, nrange)
                                                          : nrange;
        if (loops[i] && loops[i] < around)
            around = loops[i];
    }
    int64_t terms = 1;
    for (int i = around; i < nrange; i++)
        terms = sat_mul(terms, range[i]->hi + 1);
    for (int i = 0; i < count; i++) {
        leaves[i] = loops[i] <= around;
        inside -= leaves[i];
        sums += !leaves[i] && factor[i]->op == OP_ADD; /* of products that are added as they are */
    }
    if (around == nrange || inside + sums < 2 || terms < FEWEST_TERMS)
        return nrange;
    Node *sum = product_of(q->c, factor, leaves, false, count);
    lower_reduce_over(q, p, n, &sum, range + around, nrange - around, &sum);
    *body = node_alu2(q->c, OP_MUL, INGOT_F32, sum, product_of(q->c, factor, leaves, true, count));
    return around;
}
