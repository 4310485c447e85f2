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

static bool copies_results(const Lower *q, int split)
{
    const Split *s = &q->nest->split[split];
    return s->kind == OPT_UPCAST && !q->nest->axis[s->axis].reduced;
}

/* Which copies of the sum have a factor of their own: a bit for each UPCAST of results. A rest has
 * those of a whole tile: so a sum is added up in the same order wherever it lies, and a row of
 * tokens is the same bits among however many. */
static unsigned copies_of(const Lower *q, Node *factor)
{
    unsigned moves = 0;
    for (int i = 0, bit = 0; i < q->nest->nsplit; i++)
        if (copies_results(q, i))
            moves |= (unsigned)depends_on(
                         factor, q->k->axes[q->nest->axis[q->nest->split[i].axis].root].range)
                     << bit++;
    return moves;
}

/* Does a factor cost each copy of the sum a product, whichever other one it is multiplied with
 * first?  Of factors as the kernel has them. */
static bool costs_each_copy(const Lower *q, Node *const *factor, int n, int which)
{
    int copies = 0;
    for (int i = 0; i < q->nest->nsplit; i++)
        copies += copies_results(q, i);
    const unsigned all = (1u << copies) - 1, own = copies_of(q, factor[which]);
    for (int i = 0; i < n && own != all; i++)
        if (i != which && (own | copies_of(q, factor[i])) != all)
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

/* Of each copy's terms the factors, in the order that the kernel has them in; false: they are not
 * as many, or too many. */
static bool factors_of_copies(Node *n, Node *const *copy, int copies, Node *(*factor)[MAX_FACTORS],
                              Node **given, int *count)
{
    *count = factors_of(n->src[0], given, 0);
    bool alike = *count >= 2 && *count <= MAX_FACTORS;
    for (int i = 0; i < copies && alike; i++)
        alike = factors_of(copy[i], factor[i], 0) == *count;
    return alike;
}

/* How many loops are around all that factor i of every copy moves with; all of them, if copies
 * differ in it. */
static int loops_around_copies(Node *(*factor)[MAX_FACTORS], int copies, int i, Node *const *range,
                               int n)
{
    for (int j = 1; j < copies; j++)
        if (factor[j][i] != factor[0][i])
            return n;
    return loops_around(factor[0][i], range, n);
}

Node *lower_added(Lower *q, const Node *sum, Node *const *term, int n)
{
    Node *all = term[0];
    for (int i = 1; i < n; i++)
        all = node_alu2(q->c, OP_ADD, sum->dtype, all, term[i]);
    return all;
}

int lower_factored(Lower *q, Piece *p, Node *n, Node *const *copy, int copies, Node **range,
                   int nrange, Node **body)
{
    Node *given[MAX_FACTORS],
        *(*factor)[MAX_FACTORS] = (void *)NEWN(q->a, Node *, MAX_FACTORS * copies);
    bool leaves[MAX_FACTORS] = {false};
    int loops[MAX_FACTORS], count;
    const Target *t = q->nest->target; /* NULL: opts that another nest has had already */
    const bool items = q->nest->sharing && !q->nest->tc && (!t || t->machine.units);
    *body = lower_added(q, n, copy, copies);
    if (!(p->t.lane || items) || reduce_monoid(n) != INGOT_REDUCE_ADD ||
        !factors_of_copies(n, copy, copies, factor, given, &count) || lower_is_partial(q, n))
        return nrange;
    int around = nrange, inside = count, sums = 0;
    for (int i = 0; i < count; i++) {
        loops[i] = loops_around_copies(factor, copies, i, range, nrange);
        if ((loops[i] || items) && loops[i] < around && costs_each_copy(q, given, count, i))
            around = loops[i];
    }
    int64_t terms = copies;
    for (int i = around; i < nrange; i++)
        terms = sat_mul(terms, range[i]->hi + 1);
    for (int i = 0; i < count; i++) {
        leaves[i] = loops[i] <= around;
        inside -= leaves[i];
        /* of products that are added as they are */
        sums += !leaves[i] && factor[0][i]->op == OP_ADD;
    }
    if (around == nrange || inside + sums < 2 || terms < (items ? 2 : FEWEST_TERMS))
        return nrange;
    Node **left = NEWN(q->a, Node *, copies), *sum;
    for (int i = 0; i < copies; i++)
        left[i] = product_of(q->c, factor[i], leaves, false, count);
    lower_sum_over(q, p, n, left, copies, range + around, nrange - around, &sum);
    *body =
        node_alu2(q->c, OP_MUL, INGOT_F32, sum, product_of(q->c, factor[0], leaves, true, count));
    return around;
}
