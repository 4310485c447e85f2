/* as_matmul.c - a convolution of 1x1 windows is a product of matrices.
 *
 *     sum over c of x[n, c, h, w] * k[m, c]
 *         -> sum over c of x[n, c, hw] * k[m, c], and hw is h and w again
 *
 * Neighbouring axes become one where one operand varies along both and the other along neither:
 * loops and tiles then run over h and w without a border between rows.  Elementwise readers follow,
 * so that what is stored has the joined axis. */
#include "rewrite.h"

Node *compact_of(Node *f)
{
    while (f->op == OP_EXPAND)
        f = f->src[0];
    return f;
}

/* Not a window, a border or a permutation: its axes lie in memory as they are named. */
static bool lies_so(Node *f)
{
    while (f->op == OP_RESHAPE)
        f = f->src[0];
    return op_info[f->op].cls != MOVE || f->op == OP_KEEP || f->op == OP_CONCAT;
}

static bool both(Node *f, int axis, bool ones)
{
    return idx_is(f->shape[axis], 1) == ones && idx_is(f->shape[axis + 1], 1) == ones;
}

/* The first of two axes of the product that may be one, or -1. */
static int joinable(Node *n, Node **f)
{
    Node *product = n->src[0];
    unsigned reduced = reduce_axes(n);
    int64_t size;
    for (int i = 0; i + 1 < product->rank; i++) {
        if ((reduced >> i & 3) || !both(product, i, false) ||
            !idx_value(product->shape[i], &size) || !idx_value(product->shape[i + 1], &size))
            continue;
        for (int k = 0; k < 2; k++)
            if (both(f[k], i, false) && both(f[1 - k], i, true) && lies_so(f[k]))
                return i;
    }
    return -1;
}

/* The tensor with the axes i and i + 1 as one. */
static Node *joined(Context *c, Node *x, int i)
{
    Node *dims[INGOT_MAX_RANK];
    int n = 0;
    for (int k = 0; k < x->rank; k++)
        if (k != i + 1)
            dims[n++] = k == i ? idx_mul(c, x->shape[i], x->shape[i + 1]) : x->shape[k];
    return ingot_reshape(c, x, n, dims);
}

Node *as_matmul(Rewrite *r, Node *n, bool try)
{
    Context *c = r->c;
    Node *product = n->src[0];
    if (!is_sum_of_products(n))
        return NULL;
    Node *f[2] = {compact_of(product->src[0]), compact_of(product->src[1])};
    int i = joinable(n, f);
    if (i < 0 || try)
        return i < 0 ? NULL : n;
    Node *dims[INGOT_MAX_RANK];
    int rank = product->rank - 1;
    unsigned axes = reduce_axes(n), low = axes & ((1u << (i + 1)) - 1);
    for (int k = 0; k < rank; k++)
        dims[k] = k == i  ? idx_mul(c, product->shape[i], product->shape[i + 1])
                  : k < i ? product->shape[k]
                          : product->shape[k + 1];
    for (int k = 0; k < 2; k++)
        f[k] = ingot_expand(c, joined(c, f[k], i), rank, dims);
    Node *sum = ingot_reduce(c, INGOT_REDUCE_ADD, ingot_mul(c, f[0], f[1]),
                             low | (axes >> 1 & ~((1u << (i + 1)) - 1)), true);
    return ingot_reshape(c, sum, n->rank, n->shape);
}

/* The axis that is two in n, a reshaped sum of as_matmul() or what is made of one; -1: it is
 * none. */
static int split_axis(Node *n)
{
    if (n->op != OP_RESHAPE)
        return -1;
    Node *x = n->src[0];
    bool alu = op_is_alu(x->op) || (x->op == OP_REDUCE && x->nsrc == 1 && x->src[0]->op == OP_MUL);
    int64_t a, b, whole;
    if (!alu)
        return -1;
    /* sizes of one aside, n has one axis more */
    int i = 0, k = 0, at = -1;
    while (i < n->rank || k < x->rank) {
        if (i < n->rank && idx_is(n->shape[i], 1)) {
            i++;
        } else if (k < x->rank && idx_is(x->shape[k], 1)) {
            k++;
        } else if (i < n->rank && k < x->rank && n->shape[i] == x->shape[k]) {
            i++;
            k++;
        } else if (at < 0 && i + 1 < n->rank && k < x->rank && idx_value(n->shape[i], &a) &&
                   idx_value(n->shape[i + 1], &b) && idx_value(x->shape[k], &whole) &&
                   a * b == whole) {
            at = i;
            i += 2;
            k++;
        } else {
            return -1;
        }
    }
    return at;
}

Node *joined_elementwise(Rewrite *r, Node *n)
{
    Context *c = r->c;
    int at = -1;
    if (!op_is_alu(n->op) || n->nsrc > 3 || n->dtype == INGOT_INDEX)
        return NULL;
    for (uint32_t i = 0; i < n->nsrc && at < 0; i++)
        at = split_axis(n->src[i]);
    if (at < 0 || r->visiting == n) /* what was there before is left alone */
        return NULL;
    Node *src[3], *dims[INGOT_MAX_RANK];
    int rank = 0;
    for (int k = 0; k < n->rank; k++)
        if (k != at + 1)
            dims[rank++] = k == at ? idx_mul(c, n->shape[at], n->shape[at + 1]) : n->shape[k];
    for (uint32_t i = 0; i < n->nsrc; i++) {
        Node *x = n->src[i], *compact = compact_of(x);
        bool flat = compact != x && compact->rank == n->rank && both(compact, at, true);
        src[i] = flat ? ingot_expand(c, joined(c, compact, at), rank, dims) : joined(c, x, at);
    }
    Node *y = node_make(c, (Op)n->op, (ingot_dtype)n->dtype, n->arg, (int)n->nsrc, src, rank,
                        src[0]->shape);
    return ingot_reshape(c, y, n->rank, n->shape);
}
