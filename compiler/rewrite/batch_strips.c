/* batch_strips.c - products of matrices that are made of products of matrices, some matrices of the
 * batch at a time.
 *
 *     s[h,i,j] = sum over k of q[h,i,k] k[h,j,k]
 *     y[h,i,d] = sum over j of f(s)[h,i,j] v[h,j,d]     for all h
 *         -> for h in 0..heads: y[h] = the same of q[h], k[h], v[h]
 *
 * What lies between the two is as large as all rows are long, for each head: with a cache of 4,096
 * positions, the scores of 128 tokens and 32 heads are 67 MB.  Of one head they are 2 MB, which the
 * cache holds until the second product reads them, and the next head has the same memory.  What is
 * asked for is the form and no operator: a sum of products, what is made of it by elementwise
 * operations, movement and reduces along other axes, and a sum of products of that, all of which
 * have one axis in common, along which both operands of both sums are divided too: none is read
 * again for each strip.
 *
 * Rows of sizes that are known stay in one kernel (schedule/attention.c), so only those whose size
 * a run says are taken.  Leaves strips (strips.c). */
#include <math.h>

#include "rewrite.h"

enum { MOST_BETWEEN = 64, MOST_MOVES = 16, FAR = 4 }; /* nodes; of L2 */

/* Which part of a value is a strip: so many elements (`unit`) of an axis for each matrix. */
typedef struct {
    int axis;
    int64_t unit;
} StripAxis;

typedef struct {
    Rewrite *r;
    Node *y, *s;                /* the two sums */
    Node *node[MOST_BETWEEN];   /* from the products of s to y, in the order of use */
    StripAxis at[MOST_BETWEEN]; /* axis -1: not asked for */
    Node *part[MOST_BETWEEN];
    int n;
    int64_t matrices, step; /* along the axis; of a strip */
} BatchStrips;

static int place_of(const BatchStrips *b, const Node *n)
{
    for (int i = 0; i < b->n; i++)
        if (b->node[i] == n)
            return i;
    return -1;
}

static bool is_between(const Node *n)
{
    return (op_is_alu(n->op) && n->op != OP_CUSTOM) || op_arranges(n->op) || n->op == OP_REDUCE;
}

/* The largest sum of products that y is made of in this way, or NULL. */
static Node *sum_below(Node *y)
{
    Node *seen[MOST_BETWEEN], *best = NULL;
    int n = 0;
    seen[n++] = y;
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < seen[i]->nsrc; k++) {
            Node *x = seen[i]->src[k];
            bool known = !is_between(x) || x->dtype == INGOT_INDEX;
            for (int j = 0; j < n && !known; j++)
                known = seen[j] == x;
            if (known)
                continue;
            if (is_sum_of_products(x)) {
                best = !best || node_bytes(x) > node_bytes(best) ? x : best;
                continue;
            }
            if (n == MOST_BETWEEN)
                return NULL;
            seen[n++] = x;
        }
    return best;
}

/* All nodes that are made of the products of s, up to y; false: too many, or one that cannot be
 * divided. */
static bool find_between(BatchStrips *b)
{
    int n;
    Node **order = graph_toposort(b->r->a, 1, &b->y, &n);
    for (int i = 0; i < n; i++) {
        bool above = order[i] == b->s->src[0];
        for (uint32_t k = 0; k < order[i]->nsrc; k++)
            above |= place_of(b, order[i]->src[k]) >= 0;
        if (!above)
            continue;
        if (b->n == MOST_BETWEEN || !is_between(order[i]))
            return false;
        b->node[b->n] = order[i];
        b->at[b->n++].axis = -1;
    }
    return true;
}

static Node *product_of(Context *c, Node *const *dim, int n)
{
    Node *size = idx(c, 1);
    for (int i = 0; i < n; i++)
        size = idx_mul(c, size, dim[i]);
    return size;
}

/* Do axes behind this one have so many elements together, `times` as many? */
static bool split_by(Context *c, const Node *n, int axis, int64_t times)
{
    for (int i = axis + 1; i <= n->rank; i++)
        if (product_of(c, n->shape + axis + 1, i - axis - 1) == idx(c, times))
            return true;
    return false;
}

/* The axis of a RESHAPE's source: the same one, the first of those that it joins, or the one that
 * it is the first part of. */
static bool through_reshape(Context *c, const Node *n, StripAxis *at)
{
    const Node *x = n->src[0];
    Node *before = product_of(c, n->shape, at->axis);
    int64_t own, below;
    for (int i = 0; i < x->rank; i++) {
        if (idx_is(x->shape[i], 1) || product_of(c, x->shape, i) != before ||
            !idx_value(n->shape[at->axis], &own) || !idx_value(x->shape[i], &below))
            continue;
        if (own % below == 0 && at->unit % (own / below) == 0 && split_by(c, x, i, own / below)) {
            *at = (StripAxis){i, at->unit / (own / below)};
            return true;
        }
        if (below % own == 0 && split_by(c, n, at->axis, below / own)) {
            *at = (StripAxis){i, at->unit * (below / own)};
            return true;
        }
    }
    return false;
}

/* What a part of n takes of its source: false: all of it, or more than a part. */
static bool axis_of_source(Context *c, const Node *n, const Node *x, StripAxis *at)
{
    switch (n->op) {
    case OP_RESHAPE: return through_reshape(c, n, at);
    case OP_PERMUTE: at->axis = ((const Perm *)n->arg.ptr)->axis[at->axis]; return true;
    case OP_REDUCE: return !(reduce_axes(n) >> at->axis & 1);
    default: return x->rank > at->axis;
    }
}

/* The axis along which all between y and s is divided; false: it is not. */
static bool divides(BatchStrips *b, int axis)
{
    for (int i = 0; i < b->n; i++)
        b->at[i].axis = -1;
    b->at[b->n - 1] = (StripAxis){axis, 1};
    for (int i = b->n; i-- > 1;) {
        const Node *n = b->node[i];
        for (uint32_t k = 0; k < n->nsrc; k++) {
            const int j = place_of(b, n->src[k]);
            StripAxis at = b->at[i];
            if (j < 0)
                continue;
            if (at.axis < 0 || !axis_of_source(b->r->c, n, n->src[k], &at) ||
                idx_is(n->src[k]->shape[at.axis], 1) ||
                (b->at[j].axis >= 0 && (b->at[j].axis != at.axis || b->at[j].unit != at.unit)))
                return false;
            b->at[j] = at;
        }
    }
    return b->at[0].axis >= 0;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* x with this size along its axis. */
static void dims_of_part(const BatchStrips *b, const Node *x, StripAxis at, Node **dims)
{
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == at.axis ? idx(b->r->c, at.unit * b->step) : x->shape[i];
}

static Node *move_of_part(const BatchStrips *b, const Node *move, StripAxis at, Node *x)
{
    Node *dims[INGOT_MAX_RANK];
    int perm[INGOT_MAX_RANK];
    for (int i = 0; i < move->rank && move->op == OP_PERMUTE; i++)
        perm[i] = ((const Perm *)move->arg.ptr)->axis[i];
    dims_of_part(b, move, at, dims);
    switch (move->op) {
    case OP_RESHAPE: return ingot_reshape(b->r->c, x, move->rank, dims);
    case OP_EXPAND: return ingot_expand(b->r->c, x, move->rank, dims);
    case OP_PERMUTE: return ingot_permute(b->r->c, x, perm);
    default: return ingot_cast(b->r->c, x, (ingot_dtype)move->dtype);
    }
}

/* A strip of what is there before: taken as it lies, so that casts and movement are the strip's.
 * *divided: false if all strips read all of it. */
static Node *operand_part(const BatchStrips *b, Node *x, StripAxis at, Node *first, bool *divided)
{
    Context *c = b->r->c;
    Node *move[MOST_MOVES], *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    StripAxis of[MOST_MOVES];
    int n = 0;
    while (n < MOST_MOVES && !idx_is(x->shape[at.axis], 1) &&
           (op_arranges(x->op) || x->op == OP_CAST)) {
        StripAxis below = at;
        if (!axis_of_source(c, x, x->src[0], &below))
            break;
        move[n] = x;
        of[n++] = at;
        x = x->src[0];
        at = below;
    }
    *divided = !idx_is(x->shape[at.axis], 1);
    dims_of_part(b, x, at, size);
    for (int i = 0; i < x->rank; i++)
        begin[i] = i == at.axis ? idx_mul(c, first, idx(c, at.unit)) : idx(c, 0);
    Node *part = *divided ? ingot_shrink(c, x, begin, size) : x;
    while (n-- > 0)
        part = move_of_part(b, move[n], of[n], part);
    return part;
}

/* Both operands of a sum of products are divided. */
static bool operands_divided(const BatchStrips *b, const Node *sum, StripAxis at)
{
    const Node *product = sum->src[0];
    for (uint32_t k = 0; k < 2; k++) {
        bool divided = true;
        if (place_of(b, product->src[k]) < 0)
            (void)operand_part(b, product->src[k], at, idx(b->r->c, 0), &divided);
        if (!divided)
            return false;
    }
    return true;
}

static Node *part_of(BatchStrips *b, int i, Node *first)
{
    Node *n = b->node[i], *dims[INGOT_MAX_RANK], **src = NEWN(b->r->a, Node *, n->nsrc + 1);
    bool divided;
    for (uint32_t k = 0; k < n->nsrc; k++) {
        const int j = place_of(b, n->src[k]);
        const bool index = n->src[k]->dtype == INGOT_INDEX;
        if (j >= 0)
            src[k] = b->part[j];
        else
            src[k] = index ? n->src[k] : operand_part(b, n->src[k], b->at[i], first, &divided);
    }
    if (op_arranges(n->op))
        return move_of_part(b, n, b->at[i], src[0]);
    dims_of_part(b, n, b->at[i], dims);
    return node_make(b->r->c, (Op)n->op, (ingot_dtype)n->dtype, n->arg, (int)n->nsrc, src, n->rank,
                     dims);
}

/* ---- whether --------------------------------------------------------------------------------- */

/* Matrices of a strip: what lies between stays in L2, if that does not make too many strips. */
static int64_t step_of_strips(const BatchStrips *b, int64_t matrices)
{
    const double each = 2 * node_bytes(b->s) / (double)matrices;
    int64_t step = (int64_t)(b->r->target->machine.far / each);
    step = step < 1 ? 1 : step;
    while (step < matrices && (matrices % step || matrices / step > MOST_PIECES))
        step++;
    return step;
}

/* Only a run says how long rows are. */
static bool has_open_size(const Node *n)
{
    for (int i = 0; i < n->rank; i++)
        if (!idx_value(n->shape[i], NULL))
            return true;
    return false;
}

static bool find(BatchStrips *b, Rewrite *r, Node *n)
{
    *b = (BatchStrips){.r = r, .y = n};
    if (r->target->gpu || !is_sum_of_products(n) || !(b->s = sum_below(n)) ||
        !has_open_size(b->s) || node_bytes(b->s) <= FAR * r->target->machine.far ||
        node_bytes(b->s) <= node_bytes(n) || !find_between(b))
        return false;
    for (int axis = 0; axis < n->rank; axis++) {
        if (!idx_value(n->shape[axis], &b->matrices) || b->matrices < 2 ||
            reduce_axes(n) >> axis & 1)
            continue;
        b->step = step_of_strips(b, b->matrices);
        if (b->step < b->matrices && divides(b, axis) && operands_divided(b, n, b->at[b->n - 1]) &&
            operands_divided(b, b->s, b->at[0]))
            return true;
    }
    return false;
}

Node *batch_strips(Rewrite *r, Node *n, bool try)
{
    BatchStrips b;
    if (!find(&b, r, n))
        return NULL;
    if (try)
        return n;
    const StripAxis *y = &b.at[b.n - 1];
    Strips of = {.counter = parts_counter(r->c, b.matrices / b.step),
                 .axis = y->axis,
                 .size = idx(r->c, b.matrices)};
    of.first = idx_mul(r->c, of.counter, idx(r->c, b.step));
    for (int i = 0; i < b.n; i++)
        b.part[i] = part_of(&b, i, of.first);
    of.part = b.part[b.n - 1];
    return strips(r, &of);
}

/* What lies between is written and read, twice each; and a per cent less of the largest product's
 * memory is worth a per cent of time. */
double batch_strips_time(Rewrite *r, Node *n)
{
    const Target *t = r->target;
    BatchStrips b;
    if (!find(&b, r, n))
        return INFINITY;
    const double strips = (double)(b.matrices / b.step), bytes = node_bytes(b.s),
                 products = 2 * (node_elements(b.s->src[0]) + node_elements(n->src[0])) /
                            t->machine.rate[UNIT_TILE],
                 whole = products + cost_bytes(4 * bytes, 2 * bytes, t),
                 parts = products + cost_bytes(4 * bytes, 2 * bytes / strips, t) +
                         4 * strips * t->machine.launch,
                 saved = fmin(1, 2 * (bytes - bytes / strips) / r->ram);
    return parts / whole * (1 - saved / 2);
}
