/* few_rows.c - rows that weigh a matrix whose size a run says, on GPUs.
 *
 * A decoder's new token has few rows of scores, which are as long as its past:
 *
 *     e = exp(s - max over pos of s)        y[q,d] = sum over pos of e[q,pos] v[pos,d] / sum of e
 *
 * What is reduced of a row is done by the items of each group that multiplies with columns of the
 * matrix (gpu_run_time.c): that is no more than to read the row, and a kernel's begin and end take
 * longer. */
#include "fusion.h"

enum { MOST_ROWS = 8, COLUMNS = 8, STEPS = 6 };

/* Each element is one of the source, as it is or converted. */
static bool is_passed(const Node *n)
{
    return n->op == OP_CAST || (is_move(n) && n->op != OP_CONCAT && n->op != OP_GATHER &&
                                n->op != OP_PAD && n->op != OP_COPY);
}

/* The sum of products that n is a factor of, behind what moves it, and which one; NULL: something
 * else reads it, or it. */
static Node *sum_behind(Sched *s, Node *n, Node *const *uses, int *side)
{
    for (int i = 0; i < STEPS; i++) {
        const Info *f = info_of(s, n);
        Node *t = f->nuse == 1 && !f->root ? uses[f->iuse] : NULL;
        if (!t)
            return NULL;
        if (t->op == OP_MUL) {
            const Info *term = info_of(s, t);
            Node *sum = term->nuse == 1 && !term->root ? uses[term->iuse] : NULL;
            *side = t->src[1] == n;
            return sum && sum->op == OP_REDUCE && sum->nsrc == 1 && sum->dtype == INGOT_F32 &&
                           reduce_monoid(sum) == INGOT_REDUCE_ADD
                       ? sum
                       : NULL;
        }
        if (!is_passed(t))
            return NULL;
        n = t;
    }
    return NULL;
}

/* How many elements there are along these axes; 0: a run says it. */
static int64_t size_along(const Node *n, unsigned axes)
{
    int64_t all = 1, size;
    for (int i = 0; i < n->rank; i++)
        if (axes >> i & 1)
            all = idx_value(n->shape[i], &size) ? sat_mul(all, size) : 0;
    return all;
}

/* Few rows, beside columns of a matrix that lie side by side; what is summed is as long as a run
 * says. */
static bool weighs_matrix(const Node *sum, int side)
{
    const Node *term = sum->src[0];
    Node *row = term->src[side], *matrix = term->src[1 - side];
    const unsigned axes = reduce_axes(sum);
    if (size_along(term, axes) || (axes & (axes - 1)) || row->op != OP_EXPAND)
        return false;
    const int64_t columns = size_along(term, expanded_axes(row)),
                  rows = matrix->op == OP_EXPAND ? size_along(term, expanded_axes(matrix)) : 1;
    const Node *lies = matrix;
    int64_t last;
    while (is_passed(lies))
        lies = lies->src[0];
    return rows && rows <= MOST_ROWS && columns && columns % COLUMNS == 0 && lies->rank &&
           idx_value(lies->shape[lies->rank - 1], &last) && last == columns;
}

bool is_row_of_few(Sched *s, Node *n, Node *const *uses)
{
    const Target *t = s->target;
    if (!t->gpu || !t->unrolls || !t->machine.units || !info_of(s, n)->has_reduce)
        return false;
    const Info *i = info_of(s, n);
    if (n->op == OP_MUL && i->nuse == 1 && !i->root && uses[i->iuse]->op == OP_REDUCE)
        return info_of(s, uses[i->iuse])->sums_rows;
    while (is_move(n) && is_passed(n))
        n = n->src[0];
    i = info_of(s, n);
    if (!i->has_reduce || !i->rows || i->rows == ~0u || !op_is_alu(n->op) || n->dtype != INGOT_F32)
        return false;
    int side;
    Node *sum = sum_behind(s, n, uses, &side);
    if (!sum || !weighs_matrix(sum, side))
        return false;
    info_of(s, sum)->sums_rows = true;
    return true;
}
