/* sum_parts.c - a long sum of products whose rows L2 does not hold is computed in parts of its
 * terms, for matrix units of CPUs.
 *
 *     y = x w     ->     y0 = x[:, 0:768] w[0:768]
 *                        y1 = y0 + x[:, 768:1536] w[768:1536]
 *                        ..
 *
 * A matrix unit multiplies faster than memory brings weights, so these are read once: a panel of
 * columns, by all rows.  If the rows do not stay in L2 meanwhile, either they come from L3 for each
 * panel, or they are computed in blocks and weights come from memory for each block.  Some terms of
 * all rows do stay there, and so does what has been summed, which is one number for as many terms.
 * Of two layers of a transformer the second has four times as many terms: 128 rows of 3,072 as two
 * parts of bf16 each (--precision bf16x3), times 768 columns, take 1.3 ms in four parts, 2.1 from
 * L3 and 2.4 in two blocks (an Emerald Rapids core).
 *
 * Weights of a part are a constant of their own, so that panels lie in one piece. */
#include <math.h>

#include "rewrite.h"
#include "tc.h"

/* A product of two matrices: what makes it slow, and how it is taken apart. */
typedef struct {
    int axis; /* of the terms */
    int64_t terms;
    const Tc *unit;
    double rows, weights, results; /* bytes */
} PartedSum;

/* Below casts that the unit does by itself and movement. */
static Node *multiplied(Node *factor)
{
    while (factor->op == OP_EXPAND || factor->op == OP_RESHAPE || factor->op == OP_PERMUTE ||
           (factor->op == OP_CAST && factor->dtype == INGOT_F32))
        factor = factor->src[0];
    return factor;
}

/* The only axis of a sum that has several elements; -1: there is none, or another one. */
static int only_axis(const Node *sum, int64_t *terms)
{
    int axis = -1;
    int64_t size;
    for (int i = 0; i < sum->src[0]->rank; i++) {
        if (!(reduce_axes(sum) >> i & 1))
            continue;
        if (!idx_value(sum->src[0]->shape[i], &size) || (size > 1 && axis >= 0))
            return -1;
        axis = size > 1 ? i : axis;
        *terms = size > 1 ? size : *terms;
    }
    return axis;
}

/* Adds the bytes of an operand unless it was counted. */
static void count_operand(Node *x, Node **seen, int *nseen, double *bytes)
{
    for (int i = 0; i < *nseen; i++)
        if (seen[i] == x)
            return;
    seen[(*nseen)++] = x;
    *bytes += node_bytes(x);
}

/* Is it a sum of products that the unit takes, of a matrix that is computed and one of weights? */
static bool is_long_product(const Target *t, Node *n, PartedSum *p)
{
    Node *term[TC_MOST_TERMS], *seen[2][TC_MOST_TERMS];
    int nseen[2] = {0};
    *p = (PartedSum){0};
    if (n->op != OP_REDUCE || n->nsrc != 1 || n->dtype != INGOT_F32 ||
        reduce_monoid(n) != INGOT_REDUCE_ADD || (p->axis = only_axis(n, &p->terms)) < 0)
        return false;
    const int nterm = tc_terms(n->src[0], term, TC_MOST_TERMS);
    for (int i = 0; i < nterm; i++)
        for (int k = 0; k < 2; k++) {
            Node *f = term[i]->src[k], *wide = f, *x = multiplied(f);
            while (is_move(wide))
                wide = wide->src[0];
            if (!tc_widens(&t->machine, wide))
                return false;
            const bool weight = ingot_is_const(x);
            if (k && weight == ingot_is_const(multiplied(term[i]->src[0])))
                return false;
            count_operand(x, seen[weight], &nseen[weight], weight ? &p->weights : &p->rows);
        }
    while ((p->unit = tc_next(&t->machine, p->unit)) && p->unit->acc != INGOT_F32)
        continue;
    if (!nterm || !p->unit)
        return false;
    p->results = node_bytes(n);
    /* each element of one matrix meets each of the other that has its term */
    return node_elements(seen[0][0]) * node_elements(seen[1][0]) ==
           node_elements(n->src[0]) * (double)p->terms;
}

/* How many parts: the rows of one take half of what loops are blocked for; 0: that is no faster.
 * Otherwise weights are read once for each block of rows, and here results twice for each part. */
static int64_t parts_of(const Target *t, const PartedSum *p)
{
    enum { STEPS = 8 }; /* of the unit, at least: what is summed is loaded and stored for them */
    const double room = t->machine.far, blocks = ceil(p->rows / room);
    const int64_t block = STEPS * p->unit->k;
    if (p->rows <= room)
        return 0;
    for (int64_t parts = 2; parts * block <= p->terms; parts++) {
        if (p->terms % (parts * block) || p->rows / (double)parts > room / 2)
            continue;
        const double again = cost_bytes((blocks - 1) * p->weights, p->weights + room, t),
                     between = cost_bytes(2 * (double)(parts - 1) * p->results,
                                          p->results + p->rows / (double)parts, t);
        return 2 * between < again ? parts : 0;
    }
    return 0;
}

/* A factor of so many terms; what is multiplied has the axis where the factor has it. */
static Node *factor_part(Context *c, Node *n, int axis, int64_t from, int64_t terms)
{
    Node *dims[INGOT_MAX_RANK], *begin[INGOT_MAX_RANK], *src;
    for (int i = 0; i < n->rank; i++) {
        dims[i] = i == axis ? idx(c, terms) : n->shape[i];
        begin[i] = idx(c, i == axis ? from : 0);
    }
    if (n->op == OP_CAST && n->dtype == INGOT_F32) {
        src = factor_part(c, n->src[0], axis, from, terms);
        return ingot_cast(c, src, INGOT_F32);
    }
    if (n->op == OP_EXPAND && n->src[0]->shape[axis] == n->shape[axis]) {
        src = factor_part(c, n->src[0], axis, from, terms);
        return ingot_expand(c, src, n->rank, dims);
    }
    if (n->op == OP_RESHAPE) {
        const int below = axis_below(n, axis);
        if (below >= 0 && n->src[0]->shape[below] == n->shape[axis]) {
            src = factor_part(c, n->src[0], below, from, terms);
            return ingot_reshape(c, src, n->rank, dims);
        }
    }
    src = ingot_shrink(c, n, begin, dims);
    return ingot_is_const(n) ? ingot_contiguous(c, src) : src;
}

Node *sum_parts(Rewrite *r, Node *n)
{
    Context *c = r->c;
    PartedSum p;
    const int64_t parts = is_long_product(r->target, n, &p) ? parts_of(r->target, &p) : 0;
    if (!parts)
        return n;
    Node *term[TC_MOST_TERMS], *y = NULL;
    const int nterm = tc_terms(n->src[0], term, TC_MOST_TERMS);
    const int64_t terms = p.terms / parts;
    for (int64_t i = 0; i < parts; i++) {
        Node *body = NULL;
        for (int k = 0; k < nterm; k++) {
            Node *one = ingot_mul(c, factor_part(c, term[k]->src[0], p.axis, i * terms, terms),
                                  factor_part(c, term[k]->src[1], p.axis, i * terms, terms));
            body = body ? ingot_add(c, body, one) : one;
        }
        Node *sum = ingot_reduce(c, INGOT_REDUCE_ADD, body, reduce_axes(n), true);
        y = y ? ingot_add(c, ingot_contiguous(c, y), sum) : sum;
    }
    return y;
}
