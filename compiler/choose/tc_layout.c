/* tc_layout.c - an operand as a matrix unit's loops read it:
 *
 *     [blocks of columns][other axes, as the loops run][blocks of terms][fragments of a
 *         block][terms / group][columns][group]
 *
 * A block of columns is what the copies of an iteration take: each step reads one run of memory,
 * which the next step continues. */
#include <string.h>

#include "choose.h"

typedef struct {
    Layout *l;
    int piece[INGOT_MAX_RANK], n; /* what each axis is by now */
} Pieces;

/* The axis that is this piece becomes two, which are piece and next. */
static bool split(Pieces *p, int piece, int next, int64_t by)
{
    int at = 0;
    while (at < p->n && p->piece[at] != piece)
        at++;
    if (at == p->n || p->n >= INGOT_MAX_RANK || p->l->n >= 7)
        return false;
    p->l->op[p->l->n++] = (LayoutOp){.kind = LAYOUT_SPLIT, .axis = (int8_t)at, .a = by};
    memmove(&p->piece[at + 2], &p->piece[at + 1], (size_t)(p->n - at - 1) * sizeof *p->piece);
    p->piece[at + 1] = next;
    p->n++;
    return true;
}

static void put(const Pieces *p, LayoutOp *order, int piece)
{
    for (int i = 0; i < p->n; i++)
        if (p->piece[i] == piece)
            order->perm.axis[order->perm.n++] = (int8_t)i;
}

/* The terms of the sum that multiplies what is loaded. */
static int terms_of(const Nest *n, Node *load)
{
    for (int i = 0; i < n->ntc_more; i++)
        if (depends_on(load, n->k->axes[n->axis[n->tc_more[i]].root].range))
            return n->tc_more[i];
    return n->tc_axis[TC_TERMS];
}

bool tc_layout(const Nest *n, Node *load, Layout *l)
{
    enum { COLUMN = INGOT_MAX_RANK, FRAGMENT, LANE, TERM, LINE, GROUP };
    const Kernel *k = n->k;
    const KernelArg *arg = &k->args[load->src[0]->arg.i];
    const int column = n->axis[n->tc_axis[TC_COLUMNS]].root, term = n->axis[terms_of(n, load)].root;
    Move c = access_move(k->c, load, k->axes[column].range);
    Move t = access_move(k->c, load, k->axes[term].range);
    int64_t columns, terms, step = n->axis[n->tc_axis[TC_TERMS]].extent, block = n->tc->n;
    if (c.kind != MOVE_AXIS || t.kind != MOVE_AXIS || c.axis == t.axis ||
        !idx_value(arg->dims[c.axis], &columns) || !idx_value(arg->dims[t.axis], &terms))
        return false;
    for (int i = 0; i < n->nsplit; i++)
        if (n->split[i].kind == OPT_UPCAST && n->axis[n->split[i].axis].root == column)
            block *= n->split[i].amount;
    *l = (Layout){0};
    const int64_t part = columns % n->tc->n;
    if (part) { /* zeros, which a block of fewer columns reads too */
        l->op[l->n++] = (LayoutOp){.kind = LAYOUT_PAD, .axis = c.axis, .b = n->tc->n - part};
        columns += n->tc->n - part;
    }
    block = columns % block ? n->tc->n : block;
    Pieces p = {.l = l, .n = arg->rank};
    for (int d = 0; d < arg->rank; d++)
        p.piece[d] = d == c.axis ? COLUMN : d == t.axis ? TERM : d;
    bool good = columns > block ? split(&p, COLUMN, FRAGMENT, block) : true;
    if (columns <= block)
        for (int d = 0; d < p.n; d++)
            p.piece[d] = p.piece[d] == COLUMN ? FRAGMENT : p.piece[d];
    good = good && split(&p, FRAGMENT, LANE, n->tc->n);
    if (terms > step)
        good = good && split(&p, TERM, LINE, step);
    else
        for (int d = 0; d < p.n; d++)
            p.piece[d] = p.piece[d] == TERM ? LINE : p.piece[d];
    good = good && split(&p, LINE, GROUP, n->tc->group);
    if (!good)
        return false;
    LayoutOp *order = &l->op[l->n++];
    *order = (LayoutOp){.kind = LAYOUT_PERMUTE};
    put(&p, order, COLUMN);
    for (int i = -1; i < n->norder; i++) /* what no loop moves first, then as the loops run */
        for (int d = 0; d < arg->rank; d++) {
            int owner = -1;
            for (int j = n->norder; j-- > 0;)
                if (access_move(k->c, load, k->axes[n->axis[n->order[j]].root].range).axis == d)
                    owner = j;
            if (owner == i && d != c.axis && d != t.axis)
                put(&p, order, d);
        }
    put(&p, order, TERM);
    put(&p, order, FRAGMENT);
    put(&p, order, LINE);
    put(&p, order, LANE);
    put(&p, order, GROUP);
    return order->perm.n == p.n;
}
