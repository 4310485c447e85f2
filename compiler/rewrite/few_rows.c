/* few_rows.c - a sum of few rows in a table of zeros is looked up by who reads it.
 *
 *     g = update_add(zeros [words, width], at, d [n, width])      n is much less than words
 *         ->  number = update_set(-1 [words], at, 0..n-1)         the last one of a word counts
 *             sum    = update_add(zeros [n, width], number[at], d)
 *             g[w]   = number[w] < 0 ? 0 : sum[number[w]]
 *
 * The gradient of an embedding is as large then as the words that a step has seen: the table of
 * zeros, which Adam's moments are made of, is in no memory.  Values of a word are added in the same
 * order, so the bits are the same.
 *
 * Waits for update_sum.c, which needs neither. */
#include "builder.h"
#include "rewrite.h"

/* Along an axis all elements are the same, as far as its form tells. */
static bool is_same_along(const Node *n, int axis, int deep)
{
    if (idx_is(n->shape[axis], 1) || n->op == OP_CONST ||
        (n->op == OP_EXPAND && idx_is(n->src[0]->shape[axis], 1)))
        return true;
    if (n->op == OP_IOTA)
        return n->arg.i != axis;
    bool same = deep > 0 && (op_is_alu(n->op) || n->op == OP_EXPAND) && n->op != OP_CUSTOM;
    for (uint32_t i = 0; i < n->nsrc && same; i++)
        same = n->src[i]->dtype == INGOT_INDEX ||
               (n->src[i]->rank == n->rank && is_same_along(n->src[i], axis, deep - 1));
    return same;
}

/* Is it the coordinate along the axis? Bounds that it does not reach change nothing. */
static bool is_coordinate(const Node *n, int axis, const Node *size)
{
    while (n->op == OP_MIN || n->op == OP_MAX || n->op == OP_CAST) {
        int64_t most;
        const Node *bound = n->op == OP_CAST ? NULL : uniform(n->src[1]);
        if (n->op != OP_CAST && (!bound || bound->op != OP_CONST || !idx_value(size, &most) ||
                                 (n->op == OP_MIN ? bound->arg.i < most - 1 : bound->arg.i > 0)))
            return false;
        n = n->src[0];
    }
    return n->op == OP_IOTA && n->arg.i == axis;
}

/* The places of rows, of which the value has `lead` axes; NULL: it is no update of rows. */
static Node *places_of_rows(Context *c, Node *n, int *lead)
{
    Node *x = n->src[0], *v = n->src[1], *at = n->src[2];
    *lead = v->rank - x->rank + 1;
    if (x->rank < 2 || *lead < 1)
        return NULL;
    for (int a = *lead; a < v->rank; a++) {
        const int own = a - *lead + 1;
        if (v->shape[a] != x->shape[own] || !is_coordinate(n->src[2 + own], a, x->shape[own]) ||
            !is_same_along(at, a, DEPTH_FEW))
            return NULL;
        at = ingot_slice(c, at, a, idx(c, 0), idx(c, 1), 1);
    }
    return ingot_cast(c, ingot_reshape(c, at, *lead, v->shape), INGOT_I64);
}

/* The indices of rows of x at these places, in a result of such dims, whose last axes are x's. */
static void index_rows(Context *c, const Node *x, Node *place, int rank, Node *const *dims,
                       Node **index)
{
    const int lead = rank - x->rank + 1;
    Node *wide[INGOT_MAX_RANK];
    for (int a = 0; a < rank; a++)
        wide[a] = a < lead ? dims[a] : idx(c, 1);
    index[0] = ingot_expand(c, ingot_reshape(c, place, rank, wide), rank, dims);
    for (int a = 1; a < x->rank; a++)
        index[a] = ingot_iota(c, rank, dims, lead + a - 1);
}

/* Stored as it is, it gains nothing. */
static bool is_result(const Rewrite *r, const Node *n)
{
    bool found = false;
    for (int i = 0; i < r->nroot && !found; i++)
        found = r->roots[i] == n;
    return found;
}

Node *few_rows(Rewrite *r, Node *n)
{
    enum { FEW = 4 };
    Context *c = r->c;
    Node *x = n->src[0], *v = n->src[1], *index[INGOT_MAX_RANK], *dims[INGOT_MAX_RANK];
    const Node *zero = node_const_zero(c, (ingot_dtype)n->dtype);
    const int64_t size = dims_bound(x->rank, x->shape);
    int lead;
    if (!r->settled || n->arg.i != INGOT_ADD || !dtype_is_float(n->dtype) || uniform(x) != zero ||
        dims_bound(v->rank, v->shape) > size / FEW || size > INT32_MAX || is_result(r, r->visiting))
        return NULL;
    Node *at = places_of_rows(c, n, &lead);
    if (!at)
        return NULL;
    Node *count = shape_numel(c, lead, v->shape), *words = x->shape[0];
    Node *nobody = uniform_make(c, node_const_i(c, INGOT_I32, -1), 1, &words);
    Node *own = ingot_cast(c, ingot_iota(c, 1, &count, 0), INGOT_I32);
    Node *number = ingot_update(c, INGOT_SET, nobody, ingot_reshape(c, own, lead, v->shape), &at);
    dims[0] = count;
    for (int a = 1; a < x->rank; a++)
        dims[a] = x->shape[a];
    Node *zeros = uniform_make(c, uniform(x), x->rank, dims);
    Node *mine = ingot_gather(c, number, &at); /* an update drops what is outside */
    Node *within = ingot_and(c, ingot_ge(c, at, ingot_like(c, at, 0)),
                             ingot_lt(c, at, ingot_from_dim(c, words)));
    mine = ingot_where(c, within, mine, ingot_like(c, mine, -1));
    index_rows(c, zeros, mine, v->rank, v->shape, index);
    Node *sum = ingot_update(c, INGOT_ADD, zeros, v, index);
    Node *none = ingot_lt(c, number, ingot_like(c, number, 0));
    index_rows(c, sum, ingot_max_c(c, number, 0), x->rank, x->shape, index);
    Node *row = ingot_gather(c, sum, index), *ones[INGOT_MAX_RANK];
    for (int a = 0; a < x->rank; a++)
        ones[a] = a ? idx(c, 1) : words;
    none = ingot_expand(c, ingot_reshape(c, none, x->rank, ones), x->rank, x->shape);
    return ingot_where(c, none, ingot_like(c, row, 0), row);
}
