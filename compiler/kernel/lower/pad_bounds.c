/* pad_bounds.c - loops over the taps of a window begin and end where it meets what it slides over.
 *
 *     y[i] = sum over r, c of x[i s + r d - p, c] w[r, c]        x: n rows, and zeros around them
 *
 * A tap beside x adds nothing: of all r those count that have 0 <= i s + r d - p < n.  So the loop
 * over r goes from ceil((p - i s) / d) to ceil((n + p - i s) / d), within the window.  Of the
 * copies and lanes of a loop nest, which share their loops, the first one that begins and the last
 * one that ends count.  Of images as small as their windows are wide (dilated ones, the last ones
 * of a network, the frames of a film) much of the work is left out: of 16 rows by taps 12 apart one
 * half.
 *
 * There have to be loops inside that are longer than it takes to find out; short ones are written
 * out by C compilers, and should have constant bounds.  What is left out is zero times a finite
 * weight (docs/numerics.md): a nest without opts has all of its loops. */
#include "lower.h"

enum { INSIDE = 16 /* iterations of the loops inside that are worth it */ };

/* A factor of the term that is zero where its coordinate along *axis leaves the buffer, which moves
 * with the range by *stride.
 * NULL: there is none. */
static const Node *padded_factor(const Lower *q, const Node *term, Node *range, int *axis,
                                 int64_t *stride)
{
    if (term->op == OP_CAST)
        return padded_factor(q, term->src[0], range, axis, stride);
    if (term->op == OP_MUL) {
        const Node *load = padded_factor(q, term->src[0], range, axis, stride);
        return load ? load : padded_factor(q, term->src[1], range, axis, stride);
    }
    if (term->op != OP_LOAD || !dtype_is_float((ingot_dtype)term->dtype) || term->arg.i ||
        term->src[0]->op != OP_BUFFER)
        return NULL;
    const KernelArg *arg = &q->k->args[term->src[0]->arg.i];
    if (layout_fill(&arg->layout) || arg->moved) /* of a part the edge is elsewhere */
        return NULL;
    for (int i = 0; i < arg->rank; i++) {
        Node *x = term->src[first_coord(term) + i];
        if ((x->lo < 0 || x->hi >= arg->dims[i]->lo) && depends_on(x, range) &&
            range_stride(q->c, x, range, stride) && *stride > 0) {
            *axis = i;
            return term;
        }
    }
    return NULL;
}

static Node *ceil_by(Context *c, Node *x, int64_t by)
{
    return idx_div(c, idx_add(c, x, idx(c, by - 1)), idx(c, by));
}

/* Iterations of the sum's loops inside of that of an axis. */
static int64_t inside_of(const Lower *q, const Node *sum, int axis)
{
    int64_t n = 1;
    bool inside = false;
    for (int i = 0; i < q->nest->norder; i++) {
        const NestAxis *x = &q->nest->axis[q->nest->order[i]];
        if (inside && x->reduced && lower_is_over(q, sum, q->nest->order[i]))
            n = sat_mul(n, x->extent < 0 ? 1 : x->extent);
        inside |= q->nest->order[i] == axis;
    }
    return n;
}

/* Does each node that has the range of its own (kernels that became one share their loops) leave
 * the image where the load does? */
static bool all_leave(const Lower *q, Node *const *order, int n, Node *range, const Node *load,
                      int axis)
{
    const Node *at = load->src[first_coord(load) + axis],
               *size = q->k->args[load->src[0]->arg.i].dims[axis];
    for (int i = 0; i < n; i++) {
        int nown = 0, other;
        int64_t stride;
        Node *const *own = order[i]->op == OP_REDUCE || order[i]->op == OP_STAGE
                               ? own_ranges(order[i], &nown)
                               : NULL;
        bool over = false;
        for (int j = 0; j < nown; j++)
            over |= own[j] == range;
        if (!over)
            continue;
        if (order[i]->op != OP_REDUCE || reduce_size(order[i]) != 1 ||
            reduce_monoid(order[i]) != INGOT_REDUCE_ADD)
            return false;
        const Node *its = padded_factor(q, order[i]->src[0], range, &other, &stride);
        if (!its || its->src[first_coord(its) + other] != at ||
            q->k->args[its->src[0]->arg.i].dims[other] != size)
            return false;
    }
    return true;
}

static void bound_loop(Lower *q, Piece *p, Node *const *order, int norder, Node *sum, Node *range)
{
    Context *c = q->c;
    const int root = nest_root_of(q->k, range);
    Node *loop = p->at[root], *zero = idx(c, 0);
    int axis;
    int64_t stride;
    if (!loop || loop->op != OP_RANGE || p->sum[root].split || p->fresh[root] || p->first[root] ||
        loop->src[0] != range->src[0] || range->src[0]->lo < 1 || inside_of(q, sum, root) < INSIDE)
        return;
    const Node *load = padded_factor(q, sum->src[0], range, &axis, &stride);
    if (!load || !all_leave(q, order, norder, range, load, axis))
        return;
    Node *at = substitute(c, load->src[first_coord(load) + axis], 1, &range, &zero);
    if (!lower_known_outside(q, at))
        return;
    Node *least = lower_extreme(q, p, at, false), *greatest = lower_extreme(q, p, at, true),
         *extent = range->src[0], *size = q->k->args[load->src[0]->arg.i].dims[axis];
    if (!least || !greatest)
        return;
    Node *first = idx_max(c, ceil_by(c, idx_sub(c, zero, greatest), stride), zero),
         *end = idx_min(c, ceil_by(c, idx_sub(c, size, least), stride), extent);
    first = idx_min(c, first, idx_sub(c, extent, idx(c, 1)));
    Node *count = idx_max(c, idx_sub(c, end, first), idx(c, 1));
    if (count == extent)
        return;
    p->at[root] = range_new(c, (int)loop->arg.i, count);
    p->first[root] = first;
}

void bound_padded_loops(Lower *q, Piece *p)
{
    const Nest *n = q->nest;
    if (!n->nopt || n->items || n->sharing || n->tc || p->t.tc || n->nstage || n->partial)
        return;
    int norder;
    Node **order = graph_toposort(q->a, end_stores(q->end), q->end->src, &norder);
    for (int i = 0; i < norder; i++) {
        Node *sum = order[i];
        if (sum->op != OP_REDUCE || reduce_size(sum) != 1 || reduce_monoid(sum) != INGOT_REDUCE_ADD)
            continue;
        for (uint32_t j = reduce_ranges(sum); j < sum->nsrc; j++)
            bound_loop(q, p, order, norder, sum, sum->src[j]);
    }
}
