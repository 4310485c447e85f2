/* row_blocks.c - can what a kernel makes of rows of sums be made block after block?
 *
 *     m = max over j of s        e = exp(s - m)        l = sum over j of e        y = sum over j of
 * e v
 *
 * exp(s - m) is exp(s - m') exp(m' - m).  So what was summed while the greatest was m' is
 * multiplied by exp(m' - m) once a block has a greater one, and then it is as if m had been known
 * from the beginning (tc_rows.c).  This takes terms of sums that are such an exponential times what
 * no row has been reduced to, or have nothing to do with what rows are reduced to. */
#include "kernel.h"

/* Is it reduced along a row that stays in registers? */
static bool is_along(const Nest *n, const Kernel *k, const Node *r)
{
    bool row = false;
    for (int i = 0; i < n->naxis && r->op == OP_REDUCE && r->nsrc == 2; i++)
        row |= n->axis[i].row && k->axes[n->axis[i].root].range == r->src[1];
    return row;
}

static bool has_along(const Nest *n, const Kernel *k, Node *value)
{
    Arena *a = arena_new();
    int count;
    Node **order = graph_toposort(a, 1, &value, &count);
    bool found = false;
    for (int i = 0; i < count && !found; i++)
        found = is_along(n, k, order[i]);
    arena_free(a);
    return found;
}

/* The greatest of a row, or another number where that is minus infinity. */
static Node *greatest(const Nest *n, const Kernel *k, Node *x)
{
    if (x->op == OP_WHERE && x->src[0]->op == OP_EQ && x->src[0]->src[0] == x->src[2] &&
        x->src[0]->src[1]->op == OP_CONST && x->src[1]->op == OP_CONST)
        x = x->src[2];
    if (x->op == OP_BITCAST) /* what no gradient passes */
        x = x->src[0];
    return is_along(n, k, x) && reduce_monoid(x) == INGOT_REDUCE_MAX && !has_along(n, k, x->src[0])
               ? x
               : NULL;
}

static bool is_zero(const Node *x)
{
    return x->op == OP_CONST && dtype_is_float((ingot_dtype)x->dtype) && node_float(x) == 0;
}

Node *row_shift(const Nest *n, const Kernel *k, Node *x, bool *good)
{
    if (!has_along(n, k, x))
        return NULL;
    if (x->op == OP_CAST || x->op == OP_STAGE)
        return row_shift(n, k, x->src[0], good);
    if (x->op == OP_MUL || x->op == OP_DIV) {
        const int other = x->op == OP_DIV || !has_along(n, k, x->src[1]);
        *good = *good && !has_along(n, k, x->src[other]);
        return row_shift(n, k, x->src[1 - other], good);
    }
    if (x->op == OP_WHERE && is_zero(x->src[2])) {
        *good = *good && !has_along(n, k, x->src[0]);
        return row_shift(n, k, x->src[1], good);
    }
    const Node *less = x->op == OP_EXP ? x->src[0] : NULL;
    Node *shift = less && less->op == OP_SUB ? greatest(n, k, less->src[1]) : NULL;
    *good = *good && shift && !has_along(n, k, less->src[0]);
    return shift;
}

/* Outside of the sums along rows nothing is known but these, and the greatest of all. */
static bool reads_elements(const Nest *n, const Kernel *k, const Node *x)
{
    if (is_along(n, k, x))
        return reduce_monoid(x) != INGOT_REDUCE_ADD && reduce_monoid(x) != INGOT_REDUCE_MAX;
    if (x->op == OP_STAGE)
        return true;
    for (uint32_t i = 0; i < x->nsrc; i++)
        if (x->dtype != INGOT_INDEX && reads_elements(n, k, x->src[i]))
            return true;
    return false;
}

bool rows_go_by_blocks(const Nest *n)
{
    Arena *a = arena_new();
    int count;
    Node **order = graph_toposort(a, 1, &n->k->sink, &count);
    bool good = true;
    for (int i = 0; i < count && good; i++) {
        Node *x = order[i];
        if (is_along(n, n->k, x) && reduce_monoid(x) == INGOT_REDUCE_ADD)
            (void)row_shift(n, n->k, x->src[0], &good);
        else if (is_along(n, n->k, x))
            good = reduce_monoid(x) == INGOT_REDUCE_MAX && !has_along(n, n->k, x->src[0]);
        else if (x->op == OP_STORE)
            good = !reads_elements(n, n->k, x->src[2]);
    }
    arena_free(a);
    return good;
}
