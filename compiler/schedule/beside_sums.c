/* beside_sums.c - two sums of products with one operand in common, on GPUs whose groups have boxes
 * brought to them.
 *
 *     y[i,j] = silu(sum over r of x[i,r] w[j,r]) (sum over r of x[i,r] v[j,r])
 *
 * One kernel has both: blocks of x are brought once for the products of both, and neither sum is
 * stored. A block of results has half as many columns then. */
#include <math.h>

#include "fusion.h"
#include "kernel.h"

enum { STEPS = 8 };

/* What it has been moved and widened from: not what a weight is rounded from. */
static Node *base_of(Node *x)
{
    while (op_arranges(x->op) ||
           (x->op == OP_CAST && dtype_info[x->dtype].bytes > dtype_info[x->src[0]->dtype].bytes))
        x = x->src[0];
    return x;
}

/* The one sum of products that n is made of, element by element; NULL: there is none, or more.
 * turned: elements lie in another order. */
static Node *product_of(Sched *s, Node *n, int steps, bool *turned)
{
    Node *sum = NULL;
    if (n->op == OP_REDUCE)
        return is_sum_of_products(n) && n->dtype == INGOT_F32 ? n : NULL;
    for (uint32_t j = 0; j < n->nsrc; j++) {
        Node *x = n->src[j];
        if (x->dtype == INGOT_INDEX || !is_computed(s, x) || !info_of(s, x)->has_reduce)
            continue;
        const bool turns = n->op == OP_PERMUTE || n->op == OP_FLIP;
        Node *one = steps && (op_is_alu(n->op) || n->op == OP_RESHAPE || turns)
                        ? product_of(s, x, steps - 1, turned)
                        : NULL;
        *turned |= turns;
        if (!one || (sum && sum != one))
            return NULL;
        sum = one;
    }
    return sum;
}

/* Lies in memory: a constant, or what has been stored. */
static bool lies(Sched *s, Node *x)
{
    return info_of(s, x)->constant || !is_computed(s, x);
}

/* The rows that a unit takes which reads such operands where boxes have put them; 0: there is none.
 */
static int rows_by_boxes(const Target *t, const Node *x)
{
    for (const Tc *u = NULL; (u = tc_next(&t->machine, u));)
        if (tc_in_place(u) && u->products == 1 && tc_reads((ingot_dtype)x->dtype, u->a) &&
            dtype_is_float(u->a))
            return u->m;
    return 0;
}

/* Does each of its lines begin at a whole piece of those that boxes copy? Side by side lie the
 * terms, or what follows their axis. */
static bool has_box_lines(const Node *x, double terms)
{
    const int64_t bytes = dtype_info[x->dtype].bytes;
    int64_t size, line = 1;
    for (int i = x->rank; i-- > 0 && idx_value(x->shape[i], &size); line = sat_mul(line, size))
        if (i == x->rank - 1 && size * bytes % BOX_LINE == 0)
            return true;
        else if ((double)size == terms)
            return line * bytes % BOX_LINE == 0;
    return false;
}

/* Is it a product of matrices for blocks of such a unit, of x and a weight? Its weight; or NULL.
 * few: of so few rows, too, that bytes of weights decide. */
static Node *weight_beside(Sched *s, const Node *sum, const Node *x, bool few)
{
    const Node *term = sum->src[0];
    const int least = 2 * rows_by_boxes(s->target, x); /* rows, columns */
    for (int i = 0; i < 2 && least; i++) {
        Node *w = base_of(term->src[1 - i]);
        if (base_of(term->src[i]) != x || w == x || w->dtype != x->dtype || !lies(s, w))
            continue;
        const double results = node_elements(sum), terms = node_elements(term) / results,
                     columns = node_elements(w) / terms, rows = results / columns;
        const bool fits =
            (int64_t)terms * dtype_info[x->dtype].bytes % TC_RUN == 0 && has_box_lines(x, terms);
        const bool many = rows >= least || (few && tc_few_rows((int64_t)rows));
        return columns >= least && many && fits ? w : NULL;
    }
    return NULL;
}

bool is_sum_for_boxes(Sched *s, Node *n)
{
    const Target *t = s->target;
    bool turned = false;
    Node *sum = t->gpu && t->machine.units ? product_of(s, n, STEPS, &turned) : NULL;
    for (int i = 0; i < 2 && sum; i++) {
        Node *x = base_of(sum->src[0]->src[i]);
        if (lies(s, x) && weight_beside(s, sum, x, false))
            return true;
    }
    return false;
}

bool are_sums_beside(Sched *s, Node *n, const Node *reader)
{
    bool turned = false;
    Node *sum = s->target->gpu && s->target->machine.units && op_is_alu(reader->op)
                    ? product_of(s, n, STEPS, &turned)
                    : NULL;
    if (!sum || reader->nsrc != 2 || node_elements(sum) != node_elements(reader))
        return false;
    Node *const y = reader->src[reader->src[0] == n],
                *other = y == n || !is_computed(s, y) ? NULL : product_of(s, y, STEPS, &turned);
    if (!other || (other != sum && turned) || node_elements(other) != node_elements(sum))
        return false;
    for (int i = 0; i < 2; i++) {
        const Node *x = base_of(sum->src[0]->src[i]);
        Node *w = weight_beside(s, sum, x, other != sum);
        Node *v = w ? weight_beside(s, other, x, other != sum) : NULL;
        if (v && lies(s, base_of(sum->src[0]->src[i])) && node_elements(v) == node_elements(w))
            return true;
    }
    return false;
}

/* ---- in one kernel --------------------------------------------------------------------------- */

/* The sum over the ranges of another one, if both multiply one operand; or NULL. */
static Node *along(Context *c, Node *sum, const Node *of)
{
    Node *moved = sum_over_ranges(c, sum, of);
    for (int i = 0; i < 4 && moved; i++)
        if (moved->src[0]->src[i / 2] == of->src[0]->src[i % 2])
            return moved;
    return NULL;
}

/* Does each factor move with so many results that the other does not move with? */
static bool is_matrix_product(const StoreNest *k, const Node *sum, const Target *t)
{
    double own[2] = {1, 1};
    for (int i = 0; i < k->nrange; i++)
        for (int j = 0; j < 2; j++)
            if (depends_on(sum->src[0]->src[j], k->ranges[i]) &&
                !depends_on(sum->src[0]->src[1 - j], k->ranges[i]))
                own[j] *= (double)k->ranges[i]->hi + 1;
    for (int j = 0; j < 2; j++) {
        const Node *x = below_casts(sum->src[0]->src[j]);
        const int least = x->op == OP_LOAD ? rows_by_boxes(t, x) : 0;
        if (!least || own[j] < 2 || fmax(own[0], own[1]) < least)
            return false;
    }
    return true;
}

void nest_join_terms(StoreNest *k)
{
    Node *sum[2];
    int n, nsum = 0;
    const Target *t = k->s->target;
    if (!t || !t->gpu || !t->machine.units)
        return;
    Arena *a = arena_new();
    Node **order = graph_toposort(a, 1, &k->store, &n);
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        if (order[i]->op != OP_REDUCE)
            continue;
        good = nsum < 2 && is_sum_of_products(order[i]) && is_matrix_product(k, order[i], t);
        if (good)
            sum[nsum++] = order[i];
    }
    Node *to = good && nsum == 2 ? along(k->s->c, sum[1], sum[0]) : NULL;
    if (to)
        k->store = substitute(k->s->c, k->store, 1, &sum[1], &to);
    arena_free(a);
}
