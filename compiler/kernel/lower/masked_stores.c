/* masked_stores.c - of results that a mask leaves out, no sums are computed.
 *
 *     s[i,j] = where(j <= i + past, sum over k of q[i,k] k[j,k], -inf)
 *
 *     for i, for j in blocks up to i + past      the sums, and where()
 *     for i, for the other blocks of j           -inf
 *
 * A loop nest computes a block of rows and columns at a time.  Its loop over j ends behind the last
 * block of which the mask leaves something, and a loop nest of its own stores the constant in the
 * others: of the scores of a prompt that is one half.  What is stored is the same in any case.
 *
 * The comparison has to be of two axes: one with a constant leaves out a border at most.
 *
 * On a GPU a block is a group's: one that has nothing else stores the constant, and ends. */
#include "lower.h"

enum { VALUE = 2, WORTH = 8 /* terms of a sum */ };

/* Terms of all sums below the value. */
static int64_t terms_below(Lower *q, Node *value)
{
    int n;
    int64_t terms = 0;
    Node **order = graph_toposort(q->a, 1, &value, &n);
    for (int i = 0; i < n; i++) {
        int64_t one = 1;
        for (uint32_t j = reduce_ranges(order[i]); order[i]->op == OP_REDUCE && j < order[i]->nsrc;
             j++)
            one = sat_mul(one, order[i]->src[j]->src[0]->hi);
        terms += order[i]->op == OP_REDUCE ? one : 0;
    }
    return terms;
}

/* The loop over an axis of results, and how many elements one iteration has: an iteration i begins
 * at i * step. -1: it is none of this form. */
static int loop_over(Lower *q, const Piece *p, int root, int64_t *step)
{
    Node *loops[INGOT_MAX_RANK * 2];
    int axis = root, n = 0;
    *step = 1;
    while (p->sum[axis].split) {
        const struct Sum *s = &p->sum[axis];
        if (s->split->form == REST_OVERLAP || !idx_is(s->base, 0) || s->outer < 0)
            return -1;
        *step *= s->split->amount;
        axis = s->outer;
    }
    lower_loops(q, p, root, loops, &n);
    return n == 1 && *loops == p->at[axis] && !p->first[axis] && !q->nest->axis[root].within ? axis
                                                                                             : -1;
}

/* Is all that it depends on known outside of an axis's loop? */
static bool known_before(const Lower *q, const Piece *p, Node *e, int axis)
{
    bool inside = false;
    for (int i = 0; i < q->nest->norder; i++) {
        const int at = q->nest->order[i];
        inside |= at == axis;
        if (inside && p->at[at] && p->at[at]->op == OP_RANGE && depends_on(e, p->at[at]))
            return false;
    }
    return true;
}

/* The loop nest that stores the constant: no sums, and lanes of results alone. */
static Piece constant_piece(Lower *q, const Piece *like, Node *constant)
{
    Piece p = piece_copy(q, like);
    bool lanes = false;
    for (int i = 0; i < q->nest->naxis; i++) {
        if (q->nest->axis[i].reduced) {
            p.at[i] = NULL;
            p.sum[i].split = NULL;
        }
        lanes |= p.at[i] && p.at[i] == p.t.lane;
    }
    p.ntail = 0;
    p.t.four = NULL;
    p.t.lane = lanes ? p.t.lane : NULL;
    p.t.lanes = lanes ? p.t.lanes : 0;
    p.constant = constant;
    return p;
}

static bool split_piece(Lower *q, Piece *p, Piece *rest, Node *value, int root)
{
    Context *c = q->c;
    int64_t step;
    Node *limit, *constant = mask_constant(q->k, value, q->k->axes[root].range, &limit);
    const int axis = constant ? loop_over(q, p, root, &step) : -1;
    if (axis < 0 || !lower_known_outside(q, limit) || terms_below(q, value) < WORTH ||
        limit->lo == limit->hi || (q->nest->parts && q->nest->thread_from == axis))
        return false;
    bool moves = false; /* with another axis of results */
    for (int i = 0; i < q->k->naxis; i++)
        moves |= depends_on(limit, q->k->axes[i].range);
    Node *most = moves ? lower_extreme(q, p, limit, true) : NULL, *loop = p->at[axis];
    if (!most || !known_before(q, p, most, axis))
        return false;
    Node *blocks =
             idx_div(c, idx_add(c, idx_max(c, most, idx(c, 1)), idx(c, step - 1)), idx(c, step)),
         *count = idx_min(c, loop->src[0], blocks), *others = idx_sub(c, loop->src[0], count);
    if (count == loop->src[0] || others->hi < 1)
        return false;
    *rest = constant_piece(q, p, constant);
    rest->first[axis] = count;
    rest->at[axis] = range_new(c, rest->next++, others);
    p->at[axis] = range_new(c, (int)loop->arg.i, count);
    return true;
}

void split_masked_stores(Lower *q)
{
    const Nest *n = q->nest;
    const Node *store = q->end->src[0];
    if (q->k->items || !n->nopt || n->items || n->sharing || n->tc || n->nstage || n->partial ||
        q->k->serial || end_stores(q->end) != 1)
        return;
    for (int i = 0, pieces = q->n; i < pieces; i++) {
        Piece rest;
        bool some = false;
        for (int r = q->k->naxis; r-- > 0 && !some;)
            some = !n->axis[r].reduced && !q->piece[i].t.ntail && !q->piece[i].t.tail_beside &&
                   split_piece(q, &q->piece[i], &rest, store->src[VALUE], r);
        if (some)
            vec_push(q->a, q->piece, q->n, rest);
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Does the group's number alone decide? */
static bool is_of_groups(const Lower *q, const Piece *p, Node *e)
{
    int n;
    Node **order = graph_toposort(q->a, 1, &e, &n);
    for (int i = 0; i < n; i++) {
        bool grid = order[i]->op != OP_RANGE;
        for (int j = 0; j < q->nest->naxis && !grid; j++)
            grid = p->at[j] == order[i] && q->nest->axis[j].bound == BOUND_GRID;
        if (!grid)
            return false;
    }
    return true;
}

void find_masked_groups(Lower *q, Piece *p)
{
    const Node *store = q->end->src[0];
    if (q->n != 1 || q->k->sink->nsrc != 1 || end_stores(q->end) != 1 || q->k->serial ||
        !q->nest->items || !p->t.tc || tc_in_place(p->t.tc) || p->t.along || p->constant)
        return;
    for (int r = q->k->naxis; r-- > 0;) {
        Node *range = q->k->axes[r].range, *limit,
             *value = q->nest->axis[r].reduced ? NULL
                                               : mask_value(q->k, store->src[VALUE], range, &limit);
        if (!value || !lower_known_outside(q, limit))
            continue;
        Node *most = lower_extreme_of_group(q, p, limit, true),
             *first = lower_extreme_of_group(q, p, range, false);
        if (most && first && is_of_groups(q, p, most) && is_of_groups(q, p, first)) {
            p->t.nothing = node_alu2(q->c, OP_LE, INGOT_BOOL, most, first);
            p->t.instead = value;
            return;
        }
    }
}
