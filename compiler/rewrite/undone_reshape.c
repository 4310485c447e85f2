/* undone_reshape.c - elementwise work between two reshapes of which the second undoes the first.
 *
 *     reshape(f(reshape(x), m), shape of x)  ->  f(x, reshape(m))
 *
 * Exporters write a normalisation of groups as one of instances: [N, C, H, W] becomes [N, groups, C
 * / groups * H * W] and back.  What is stored has the axes of x then, so that layouts, lanes and
 * loops may be those of its channels and pixels.  Those are more axes than between the two: the
 * other way round, what has them would lose them.  And what was joined has to be what m is made of:
 * rows of a layer normalisation are as good with their pixels counted through.  Of a value that no
 * convolution or product makes, whose channels lie one behind the other, a group is one run, which
 * is best read so. */
#include "builder.h"
#include "rewrite.h"

enum { DEEP = 8, CHEAP = 4 /* cost of what may be computed for both shapes */ };

static bool has_shape(const Node *x, const Node *like)
{
    if (x->rank != like->rank)
        return false;
    for (int i = 0; i < x->rank; i++)
        if (x->shape[i] != like->shape[i])
            return false;
    return true;
}

static bool is_elementwise(const Node *n)
{
    return op_is_alu(n->op) && n->op != OP_CUSTOM && n->dtype != INGOT_INDEX && n->rank > 0;
}

bool comes_from_products(const Node *n, int deep)
{
    bool found = n->op == OP_REDUCE && is_sum_of_products(n);
    const bool through = is_elementwise(n) || op_info[n->op].cls == MOVE;
    for (uint32_t i = 0; i < n->nsrc && deep && through && !found; i++)
        found = comes_from_products(n->src[i], deep - 1);
    return found;
}

/* Is it made, element by element, of something that had this shape before? */
static bool comes_from(const Node *n, const Node *like, int deep)
{
    if (n->op == OP_RESHAPE)
        return has_shape(n->src[0], like) && comes_from_products(n->src[0], DEEP);
    bool found = false;
    for (uint32_t i = 0; i < n->nsrc && deep && is_elementwise(n) && !found; i++)
        found = comes_from(n->src[i], like, deep - 1);
    return found;
}

static bool is_one(const Node *x, int axis)
{
    return axis < x->rank && idx_is(x->shape[axis], 1);
}

/* Bit i: axis i of x is no axis of `apart`, which has the same elements in others: runs of axes of
 * both that have as many.  Axes of one element are of no run. */
static unsigned joined_axes(const Node *x, const Node *apart)
{
    unsigned joined = 0;
    for (int i = 0, j = 0;;) {
        int64_t here = 1, there = 1, size;
        while (is_one(x, i))
            i++;
        while (is_one(apart, j))
            j++;
        if (i == x->rank)
            return joined;
        if (j < apart->rank && x->shape[i] == apart->shape[j]) {
            i++;
            j++;
            continue;
        }
        do { /* the smaller one goes on */
            const Node *from = here <= there ? x : apart;
            int *at = from == x ? &i : &j;
            if (*at == from->rank || !idx_value(from->shape[*at], &size))
                return 0;
            joined |= from == x && size != 1 ? 1u << i : 0;
            *(from == x ? &here : &there) *= size;
            ++*at;
        } while (here != there);
    }
}

/* Is a reduce over one of these axes in it? */
static bool is_reduced(const Node *n, unsigned axes, int deep)
{
    bool reduced = n->op == OP_REDUCE && reduce_axes(n) & axes;
    for (uint32_t i = 0;
         i < n->nsrc && deep && !reduced && (is_elementwise(n) || n->op == OP_EXPAND); i++)
        reduced = is_reduced(n->src[i], axes, deep - 1);
    return reduced;
}

Node *undone_reshape(Rewrite *r, Node *n)
{
    Node *x = n->src[0], *src[4];
    if (n->rank <= x->rank || !is_elementwise(x) || x->nsrc > sizeof src / sizeof *src ||
        !comes_from(x, n, DEEP) || !is_reduced(x, joined_axes(x, n), DEEP) ||
        (op_info[x->op].cost > CHEAP && !read_once(r, x)))
        return NULL;
    for (uint32_t i = 0; i < x->nsrc; i++)
        src[i] = ingot_reshape(r->c, x->src[i], n->rank, n->shape);
    return node_make(r->c, (Op)x->op, (ingot_dtype)x->dtype, x->arg, (int)x->nsrc, src, n->rank,
                     n->shape);
}
