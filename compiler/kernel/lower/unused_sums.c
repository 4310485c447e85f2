/* unused_sums.c - a block of results that a mask leaves out has no terms.
 *
 *     s[i,j] = where(j <= i + past, sum over k of q[i,k] k[j,k], -inf)
 *
 * A loop nest computes a block of rows and columns at a time.  Where no element of it takes the
 * sum, by comparisons of coordinates, the sum's loops have no iterations: of the scores of a prompt
 * that is one half.  What is stored is the same in any case.
 *
 * The comparison has to be of two axes: one with a constant leaves out a border at most, and each
 * block would find out for nothing. */
#include "lower.h"

enum { WORTH = 8 /* terms of a sum */ };

static int axes_of(const Lower *q, const Node *at)
{
    int n = 0;
    for (int i = 0; i < q->k->naxis; i++)
        n += depends_on(at, q->k->axes[i].range);
    return n;
}

/* Greater than zero if the condition may be so for any element of the piece; NULL: not known. */
static Node *may_be(Lower *q, Piece *p, Node *n, bool so)
{
    Context *c = q->c;
    if (n->op == OP_NOT)
        return may_be(q, p, n->src[0], !so);
    if (n->op == OP_AND || n->op == OP_OR) {
        Node *x = may_be(q, p, n->src[0], so), *y = may_be(q, p, n->src[1], so);
        if ((n->op == OP_AND) == so)
            return x && y ? idx_min(c, x, y) : x ? x : y;
        return x && y ? idx_max(c, x, y) : NULL;
    }
    if ((n->op != OP_LT && n->op != OP_LE) || n->src[0]->dtype != INGOT_INDEX)
        return NULL;
    const bool equal = (n->op == OP_LE) == so; /* a <= b: b - a + 1; not a < b: a - b + 1 */
    Node *d = so ? idx_sub(c, n->src[1], n->src[0]) : idx_sub(c, n->src[0], n->src[1]);
    d = idx_add(c, d, idx(c, equal));
    return axes_of(q, d) > 1 && lower_known_outside(q, d) ? lower_extreme(q, p, d, true) : NULL;
}

/* Sums below a node. */
static int sums_below(const Lower *q, Node *root)
{
    int n, found = 0;
    Node **order = graph_toposort(q->a, 1, &root, &n);
    for (int i = 0; i < n; i++)
        found += order[i]->op == OP_REDUCE;
    return found;
}

/* The WHERE of which one branch has all the sums. */
static Node *masked_sum(const Lower *q, bool *so)
{
    enum { STORED = 2 };
    Node *n = q->end->src[0]->src[STORED];
    const int all = sums_below(q, n);
    while (all && n->op != OP_WHERE && n->op != OP_REDUCE && op_is_alu(n->op)) {
        uint32_t i = 0;
        while (i < n->nsrc && !sums_below(q, n->src[i]))
            i++;
        if (i == n->nsrc || sums_below(q, n->src[i]) != all)
            return NULL;
        n = n->src[i];
    }
    if (!all || n->op != OP_WHERE || sums_below(q, n->src[0]))
        return NULL;
    const int first = sums_below(q, n->src[1]), second = sums_below(q, n->src[2]);
    *so = first > 0;
    return (first == all && !second) || (second == all && !first) ? n : NULL;
}

void bound_unused_sums(Lower *q, Piece *p)
{
    const Nest *n = q->nest;
    Context *c = q->c;
    bool so;
    if (!n->nopt || n->items || n->sharing || n->tc || p->t.tc || n->nstage || n->partial ||
        end_stores(q->end) != 1)
        return;
    int64_t terms = 1;
    for (int i = 0; i < q->k->naxis; i++)
        if (n->axis[i].reduced)
            terms = sat_mul(terms, n->axis[i].extent < 0 ? WORTH : n->axis[i].extent);
    Node *where = terms < WORTH ? NULL : masked_sum(q, &so),
         *some = where ? may_be(q, p, where->src[0], so) : NULL;
    if (!some || some->lo > 0)
        return;
    some = idx_max(c, some, idx(c, 0));
    for (int i = 0; i < n->naxis; i++) {
        Node *loop = p->at[i];
        if (!n->axis[n->axis[i].root].reduced || !loop || loop->op != OP_RANGE ||
            loop == p->t.lane || loop == p->t.four || loop->src[0]->hi < 2 || p->first[i])
            continue;
        Node *now = range_new(c, (int)loop->arg.i,
                              idx_min(c, loop->src[0], idx_mul(c, some, loop->src[0])));
        for (int j = 0; j < p->ntail; j++)
            p->tail[j].range = p->tail[j].range == loop ? now : p->tail[j].range;
        p->at[i] = now;
    }
}
