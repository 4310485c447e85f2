/* joined_parts.c - a sum of parts that zeros surround is these parts side by side.
 *
 *     pad(x, behind) + pad(y, before)    ->   concat(x, y)     where they fill the axis together
 *     bf16(concat(x, y))                 ->   concat(bf16(x), bf16(y))
 *
 * It is what the gradients of a split become: those of queries, keys and values, of one product.
 * The parts of a concat are computed where it lies (concat_in_place.c), while a sum of all would
 * read them again.  Nothing is rounded otherwise, but -0 stays where -0 + 0 is 0. */
#include "builder.h"
#include "rewrite.h"

enum { MOST_PARTS = 16 };

typedef struct {
    Node *x;     /* without its zeros */
    Node *begin; /* along the axis */
} PaddedPart;

/* What n is a sum of; a sum in between has no other reader. */
static bool find_terms(Rewrite *r, Node *n, bool last, Node **term, int *count)
{
    if (n->op == OP_ADD && (last || read_once(r, n)))
        return find_terms(r, n->src[0], false, term, count) &&
               find_terms(r, n->src[1], false, term, count);
    if (*count == MOST_PARTS)
        return false;
    term[(*count)++] = n;
    return true;
}

/* The only axis that zeros are added along; -1: none, or several. */
static int padded_axis(const Node *pad)
{
    int axis = -1;
    for (int d = 0; d < pad->rank; d++) {
        if (idx_is(pad->src[1 + 2 * d], 0) && idx_is(pad->src[2 + 2 * d], 0))
            continue;
        if (axis >= 0)
            return -1;
        axis = d;
    }
    return axis;
}

static bool part_of(Rewrite *r, Node *term, int *axis, PaddedPart *part)
{
    Node *pad = term->op == OP_CAST ? term->src[0] : term;
    const int own = pad->op == OP_PAD ? padded_axis(pad) : -1;
    if (own < 0 || (*axis >= 0 && own != *axis))
        return false;
    *axis = own;
    part->begin = pad->src[1 + 2 * own];
    part->x = term == pad ? pad->src[0] : ingot_cast(r->c, pad->src[0], (ingot_dtype)term->dtype);
    return true;
}

Node *joined_parts(Rewrite *r, Node *n)
{
    Context *c = r->c;
    Node *term[MOST_PARTS], *x[MOST_PARTS];
    PaddedPart part[MOST_PARTS];
    int count = 0, axis = -1;
    if (!dtype_is_float(n->dtype) || !find_terms(r, n, true, term, &count))
        return NULL;
    for (int i = 0; i < count; i++)
        if (!part_of(r, term[i], &axis, &part[i]))
            return NULL;
    Node *at = idx(c, 0);
    for (int done = 0; done < count; done++) {
        int next = done;
        while (next < count && !idx_provably_equal(c, part[next].begin, at))
            next++;
        if (next == count)
            return NULL;
        const PaddedPart p = part[next];
        part[next] = part[done];
        part[done] = p;
        x[done] = p.x;
        at = idx_add(c, at, p.x->shape[axis]);
    }
    return idx_provably_equal(c, at, n->shape[axis]) ? ingot_concat(c, count, x, axis) : NULL;
}

/* Is it what this pass has made of such a node? */
static bool was(Rewrite *r, Node *concat, Op op)
{
    Node *before = concat->op == OP_CONCAT ? node_before(r, concat) : NULL;
    return before && before->op == op;
}

/* Parts of a sum are rounded before they are joined: as they are stored. What has been rounded is
 * not rounded again. */
Node *narrow_parts(Rewrite *r, Node *n)
{
    Node *concat = n->src[0], *x[MOST_PARTS];
    if (!dtype_is_float(n->dtype) || !dtype_is_float(concat->dtype) ||
        dtype_info[concat->dtype].bytes <= dtype_info[n->dtype].bytes)
        return NULL;
    if (concat->op == OP_CAST && concat->src[0]->dtype == n->dtype &&
        was(r, concat->src[0], OP_CAST))
        return concat->src[0];
    if (!was(r, concat, OP_ADD) || concat->nsrc > MOST_PARTS || !read_once(r, concat))
        return NULL;
    for (uint32_t i = 0; i < concat->nsrc; i++)
        x[i] = ingot_cast(r->c, concat->src[i], (ingot_dtype)n->dtype);
    return ingot_concat(r->c, (int)concat->nsrc, x, (int)concat->arg.i);
}

/* What is joined of rounded parts lies in memory in any case. */
Node *kept_parts(Rewrite *r, Node *n)
{
    Node *concat = n->src[0];
    (void)r;
    for (uint32_t i = 0; concat->op == OP_CONCAT && i < concat->nsrc; i++) {
        const Node *x = concat->src[i];
        if (x->op != OP_CAST || !dtype_is_float(x->dtype) || !dtype_is_float(x->src[0]->dtype) ||
            dtype_info[x->src[0]->dtype].bytes <= dtype_info[x->dtype].bytes)
            return NULL;
    }
    return concat->op == OP_CONCAT ? concat : NULL;
}
