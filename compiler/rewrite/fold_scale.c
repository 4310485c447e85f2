/* fold_scale.c - a constant scale and shift behind a sum of products are part of its weights and of
 * its bias.
 *
 *     (sum of x * w) * a
 *         -> sum of x * (w * a)        a does not vary along the sum, nor where w does not
 *     (sum + b) * a               ->  sum' + b * a
 *     (sum + b) + c               ->  sum + (b + c)
 *     move(sum + b) + c           ->  move(sum + (b + c'))         of integers
 *
 * for constants w, a, b, c: batch normalisation behind a convolution, the alpha of a product.  The
 * sum may have been moved before it is scaled.  Weights that lie in memory as something narrower
 * stay so, and so does what somebody else reads too: it would be computed, or stored, twice. */
#include "rewrite.h"

/* The compact form of a constant operand; NULL: it is none, or read by others too. */
static Node *own_constant(Rewrite *r, Node *n)
{
    if (!is_constant(n, 0) || n->dtype == INGOT_INDEX)
        return NULL;
    return read_once(r, n) || uniform(n) ? compact_of(n) : NULL;
}

/* ---- moving a scale back to what was moved --------------------------------------------------- */

/* The scale of a reshaped tensor as one of its source.  Axes that become others do so in groups: in
 * each, the scale varies along all axes or along none. */
static Node *before_reshape(Context *c, Node *move, Node *k)
{
    Node *x = move->src[0], *dims[INGOT_MAX_RANK], *full[INGOT_MAX_RANK];
    int i = 0, j = 0;
    while (i < x->rank || j < move->rank) {
        int first = i, begin = j;
        int64_t below = 1, above = 1, d;
        if (i < x->rank && j < move->rank && x->shape[i] == move->shape[j]) {
            i++;
            j++;
        } else {
            do {
                bool take = j == move->rank || (i < x->rank && below <= above);
                Node *dim = take ? x->shape[i++] : move->shape[j++];
                if (!idx_value(dim, &d) || d < 1)
                    return NULL;
                if (take)
                    below *= d;
                else
                    above *= d;
            } while (below != above && (i < x->rank || j < move->rank));
            if (below != above)
                return NULL;
        }
        bool varies = false;
        for (int a = begin; a < j; a++)
            varies |= !idx_is(k->shape[a], 1);
        for (int a = begin; a < j; a++)
            full[a] = varies ? move->shape[a] : k->shape[a];
        for (int a = first; a < i; a++)
            dims[a] = varies ? x->shape[a] : idx(c, 1);
    }
    return ingot_reshape(c, ingot_expand(c, k, move->rank, full), x->rank, dims);
}

/* The scale k of what `move` gives (compact: along each axis its size, or 1) as one of its source;
 * NULL: it is none. */
static Node *before_move(Context *c, Node *move, Node *k)
{
    Node *x = move->src[0], *ones[INGOT_MAX_RANK];
    bool one = true;
    for (int i = 0; i < move->rank; i++)
        one &= idx_is(k->shape[i], 1);
    for (int i = 0; i < x->rank && one; i++)
        ones[i] = idx(c, 1);
    if (one)
        return ingot_reshape(c, k, x->rank, ones);
    switch (move->op) {
    case OP_RESHAPE: return before_reshape(c, move, k);
    case OP_PERMUTE: {
        int back[INGOT_MAX_RANK];
        for (int i = 0; i < move->rank; i++)
            back[((const Perm *)move->arg.ptr)->axis[i]] = i;
        return ingot_permute(c, k, back);
    }
    case OP_EXPAND:
    case OP_PAD:
    case OP_SHRINK:
        for (int i = 0; i < move->rank; i++)
            if (!idx_is(k->shape[i], 1) && move->shape[i] != x->shape[i])
                return NULL;
        return k;
    case OP_FLIP:
        for (int i = 0; i < move->rank; i++)
            if (!idx_is(k->shape[i], 1) && move->arg.i >> i & 1)
                return NULL;
        return k;
    default: return NULL;
    }
}

/* ---- what takes a scale ---------------------------------------------------------------------- */

/* Weights as wide as they are in memory, that nobody else reads. */
static bool is_plain_weight(Rewrite *r, Node *w, ingot_dtype d, int depth)
{
    if (depth > DEPTH_SOME || w->dtype != d || (w->op != OP_CONST && !read_once(r, w)))
        return false;
    if (w->op == OP_DATA || w->op == OP_CONST)
        return true;
    if (is_move(w))
        return w->op != OP_GATHER && is_plain_weight(r, w->src[0], d, depth + 1);
    if (w->op != OP_MUL && w->op != OP_DIV)
        return false;
    return is_plain_weight(r, w->src[0], d, depth + 1) && is_constant(w->src[1], 0);
}

/* w * k, multiplied as it lies in memory if that can be said. */
static Node *scaled_weight(Context *c, Node *w, Node *k)
{
    Node *before = is_move(w) ? before_move(c, w, k) : NULL;
    return before ? moved(c, w, scaled_weight(c, w->src[0], before)) : ingot_mul(c, w, k);
}

static Node *scaled_sum(Rewrite *r, Node *n, Node *k)
{
    Context *c = r->c;
    Node *product = n->src[0];
    if (!is_sum_of_products(n) || n->nsrc != 1 || !read_once(r, product))
        return NULL;
    for (int i = 0; i < 2; i++) {
        Node *w = product->src[i], *compact = compact_of(w), *other = product->src[1 - i];
        bool fits = is_constant(w, 0) && !is_constant(other, 0) && read_once(r, w) &&
                    is_plain_weight(r, compact, (ingot_dtype)n->dtype, 0);
        for (int a = 0; a < n->rank && fits; a++)
            fits = idx_is(k->shape[a], 1) || compact->shape[a] == k->shape[a];
        if (!fits)
            continue;
        Node *by[2] = {other, other};
        by[i] = ingot_expand(c, scaled_weight(c, compact, k), w->rank, w->shape);
        return ingot_reduce(c, INGOT_REDUCE_ADD, ingot_mul(c, by[0], by[1]), reduce_axes(n), true);
    }
    return NULL;
}

/* n * k, with k in the weights of all sums that n is made of; NULL: it cannot be there. */
static Node *scaled(Rewrite *r, Node *n, Node *k, int depth)
{
    Context *c = r->c;
    if (depth > DEPTH_SOME || !read_once(r, n))
        return NULL;
    if (n->op == OP_REDUCE)
        return scaled_sum(r, n, k);
    if (n->op == OP_ADD || n->op == OP_SUB)
        for (int i = 0; i < 2; i++) {
            Node *b = own_constant(r, n->src[i]), *x;
            if (!b || !(x = scaled(r, n->src[1 - i], k, depth + 1)))
                continue;
            b = ingot_expand(c, ingot_mul(c, b, k), n->rank, n->shape);
            Node *by[2] = {x, x};
            by[i] = b;
            return n->op == OP_ADD ? ingot_add(c, by[0], by[1]) : ingot_sub(c, by[0], by[1]);
        }
    if (n->op == OP_CONCAT) {
        Node **part = NEWN(r->a, Node *, n->nsrc);
        if (!idx_is(k->shape[n->arg.i], 1))
            return NULL;
        for (uint32_t i = 0; i < n->nsrc; i++)
            if (!(part[i] = scaled(r, n->src[i], k, depth + 1)))
                return NULL;
        return ingot_concat(c, (int)n->nsrc, part, (int)n->arg.i);
    }
    if (!is_move(n))
        return NULL;
    Node *before = before_move(c, n, k),
         *x = before ? scaled(r, n->src[0], before, depth + 1) : NULL;
    return x ? moved(c, n, x) : NULL;
}

Node *fold_scale(Rewrite *r, Node *n)
{
    Context *c = r->c;
    if (!dtype_is_float(n->dtype))
        return NULL;
    for (int i = 0; i < (n->op == OP_DIV ? 1 : 2); i++) {
        Node *k = n->src[1 - i], *y;
        if (!is_constant(k, 0) || is_constant(n->src[i], 0))
            continue;
        k = compact_of(k);
        if (n->op == OP_DIV)
            k = ingot_div(c, ingot_like(c, k, 1), k);
        y = scaled(r, n->src[i], k, 0);
        return y && !ingot_is_poison(y) ? y : NULL;
    }
    return NULL;
}

/* ---- shifts ---------------------------------------------------------------------------------- */

static bool is_moved_sum(const Node *n)
{
    while (is_move(n))
        n = n->src[0];
    return is_sum_of_products(n);
}

Node *fold_shift(Rewrite *r, Node *n)
{
    Context *c = r->c;
    if (!dtype_is_float(n->dtype))
        return NULL;
    for (int i = 0; i < 4; i++) {
        Node *sum = n->src[i & 1], *x;
        bool minus = sum->op == OP_SUB && !(i >> 1);
        if ((sum->op != OP_ADD && !minus) || !read_once(r, sum) ||
            !is_moved_sum(x = sum->src[i >> 1]))
            continue;
        Node *b = own_constant(r, sum->src[1 - (i >> 1)]),
             *more = own_constant(r, n->src[1 - (i & 1)]);
        if (!b || !more)
            continue;
        b = minus ? ingot_sub(c, more, b) : ingot_add(c, b, more);
        return ingot_add(c, x, ingot_expand(c, b, n->rank, n->shape));
    }
    return NULL;
}

/* n + k of whole numbers, exact modulo 2^32: with k in what is added to the sum that n is, moved.
 * NULL: it cannot be there. */
static Node *with_number(Rewrite *r, Node *n, Node *k, int depth)
{
    Context *c = r->c;
    if (depth > DEPTH_SOME || !read_once(r, n))
        return NULL;
    if (is_move(n) && n->op != OP_PAD) { /* which stands for zeros, not for k */
        Node *before = before_move(c, n, k),
             *x = before ? with_number(r, n->src[0], before, depth + 1) : NULL;
        return x ? moved(c, n, x) : NULL;
    }
    for (int i = 0; i < 2 && n->op == OP_ADD; i++) {
        Node *b = own_constant(r, n->src[i]), *sum = n->src[1 - i];
        if (b && is_moved_sum(sum))
            return ingot_add(c, sum, ingot_expand(c, ingot_add(c, b, k), n->rank, n->shape));
    }
    return NULL;
}

/* Of sums that are taken by fours, or without lanes: an array less, and its addition for each
 * result. */
Node *fold_number(Rewrite *r, Node *n)
{
    for (int i = 0; i < 2 && (r->dot || r->scalar) && dtype_is_int(n->dtype); i++) {
        Node *k = own_constant(r, n->src[i]),
             *y = k && !is_constant(n->src[1 - i], 0) ? with_number(r, n->src[1 - i], k, 0) : NULL;
        if (y && !ingot_is_poison(y))
            return y;
    }
    return NULL;
}
