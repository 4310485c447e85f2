/* gradient_reduce.c - the adjoints of reductions and running reductions.
 *
 *     sum        g_x = g_y, repeated
 *     max, min   g_y, in equal parts for all that equal y; of a max pool to the first of them
 *     product    g_y times the product of the others, by running products from both ends: right
 *                where some are zero, too
 *     running    sum: g_y summed from the end.  max: to the last place that changed it.
 *                product: a loop from the end */
#include "gradient.h"

/* ---- reduce ---------------------------------------------------------------------------------- */

ingot_dtype gradient_factor_dtype(const Node *x)
{
    while (op_arranges(x->op) || x->op == OP_PAD || x->op == OP_GATHER)
        x = x->src[0];
    const bool narrow = x->op == OP_CAST && x->dtype == INGOT_F32 &&
                        (x->src[0]->dtype == INGOT_BF16 || x->src[0]->dtype == INGOT_F16);
    return narrow ? (ingot_dtype)x->src[0]->dtype : INGOT_F32;
}

/* Where a sum of products multiplies rounded numbers (precision.c), so do the products that its
 * gradient is a factor of: y = sum over k of x w, g_x = sum over n of g w, g_w = sum over m of x g.
 * It is stored once so, for both. */
Node *gradient_rounded(Context *c, const Node *sum, Node *g)
{
    const Node *product = sum->src[0];
    if (product->op != OP_MUL)
        return g;
    const ingot_dtype d = gradient_factor_dtype(product->src[0]);
    if (d == INGOT_F32 || d != gradient_factor_dtype(product->src[1]) || uniform(g))
        return g;
    Node *whole = g; /* which a bias adds up, too */
    while (ingot_rounded_results(c) && whole->op == OP_RESHAPE)
        whole = whole->src[0];
    Node *narrow = ingot_contiguous(c, ingot_cast(c, whole, d));
    if (ingot_precision_here(c) == (d == INGOT_BF16 ? INGOT_PRECISION_BF16 : INGOT_PRECISION_F16))
        (whole == g ? ingot_read_as : ingot_summed_as)(c, whole, narrow);
    narrow = ingot_cast(c, narrow, (ingot_dtype)g->dtype);
    return ingot_reshape(c, narrow, g->rank, g->shape);
}

static Node *shared_extreme(Context *c, Node *n, Node *g)
{
    Node *x = n->src[0], *zero = ingot_like(c, g, 0);
    Node *hit = ingot_eq(c, x, ingot_expand(c, n, x->rank, x->shape));
    Node *count = gradient_sum(c, ingot_cast(c, hit, (ingot_dtype)x->dtype), reduce_axes(n));
    Node *share = ingot_expand(c, ingot_div(c, g, count), x->rank, x->shape);
    return ingot_where(c, hit, share, zero);
}

/* Number of each element among those that a reduction joins, in row-major order: a float as long
 * as it has room for all, which is compared and chosen in lanes like the elements. */
static Node *places_of(Context *c, const Node *n)
{
    Node *x = n->src[0], *stride = idx(c, 1);
    double most = 1;
    for (int a = 0; a < x->rank; a++)
        if (reduce_axes(n) >> a & 1)
            most *= (double)x->shape[a]->hi;
    const ingot_dtype d = most < 0x1p24 ? INGOT_F32 : INGOT_I64;
    Node *at = ingot_scalar_i(c, INGOT_I64, 0);
    for (int a = x->rank - 1; a >= 0; a--)
        if (reduce_axes(n) >> a & 1) {
            Node *here = ingot_iota(c, x->rank, x->shape, a);
            at = ingot_add(c, at, ingot_mul(c, here, ingot_from_dim(c, stride)));
            stride = idx_mul(c, stride, x->shape[a]);
        }
    return ingot_cast(c, at, d);
}

/* To the first of those that equal y (ingot_max_first()). */
static Node *first_extreme(Context *c, Node *n, Node *g)
{
    Node *x = n->src[0], *zero = ingot_like(c, g, 0), *at = places_of(c, n);
    Node *hit = ingot_eq(c, x, ingot_expand(c, n, x->rank, x->shape));
    Node *none = ingot_cast(c, ingot_scalar_i(c, INGOT_I64, INT32_MAX), (ingot_dtype)at->dtype);
    Node *first =
        ingot_reduce(c, INGOT_REDUCE_MIN, ingot_where(c, hit, at, none), reduce_axes(n), true);
    first = ingot_contiguous(c, first); /* all elements read it: not computed again for each */
    hit = ingot_eq(c, at, ingot_expand(c, first, x->rank, x->shape));
    return ingot_where(c, hit, ingot_expand(c, g, x->rank, x->shape), zero);
}

/* Of a row [rows, n]: element i is the product of those before it (or behind it). */
static Node *product_of_others(Context *c, Node *rows, bool before)
{
    return ingot_cumulate(c, INGOT_REDUCE_MUL, rows, 1, true, !before);
}

/* The axes in `last` behind all others; perm back: where each axis has gone. */
static void axes_last(int rank, unsigned last, int *perm, int *back)
{
    int at = 0;
    for (int side = 0; side < 2; side++)
        for (int a = 0; a < rank; a++)
            if ((last >> a & 1) == (unsigned)side) {
                back[a] = at;
                perm[at++] = a;
            }
}

static Node *product_slope(Context *c, Node *n)
{
    Node *x = n->src[0], *two[2] = {idx(c, 1), idx(c, 1)};
    int perm[INGOT_MAX_RANK], back[INGOT_MAX_RANK];
    unsigned axes = reduce_axes(n);
    axes_last(x->rank, axes, perm, back);
    for (int a = 0; a < x->rank; a++)
        two[axes >> a & 1] = idx_mul(c, two[axes >> a & 1], x->shape[a]);
    Node *turned = ingot_permute(c, x, perm), *rows = ingot_reshape(c, turned, 2, two);
    Node *others =
        ingot_mul(c, product_of_others(c, rows, true), product_of_others(c, rows, false));
    return ingot_permute(c, ingot_reshape(c, others, x->rank, turned->shape), back);
}

Node *gradient_reduce(Backward *b, Node *n, Node *g, int i)
{
    Context *c = b->c;
    Node *x = n->src[i];
    if (monoid_size(reduce_monoid(n)) > 1)
        return gradient_no_rule(b, n, "argmax");
    switch (reduce_monoid(n)) {
    case INGOT_REDUCE_ADD:
        g = gradient_rounded(c, n, g);
        if (gradient_convolution(b, n, g))
            return NULL;
        return ingot_expand(c, g, x->rank, x->shape);
    case INGOT_REDUCE_MAX:
    case INGOT_REDUCE_MIN:
        return is_max_first(c, n) ? first_extreme(c, n, g) : shared_extreme(c, n, g);
    case INGOT_REDUCE_MUL:
        return ingot_mul(c, ingot_expand(c, g, x->rank, x->shape), product_slope(c, n));
    default: return gradient_no_rule(b, n, "reduce by bits");
    }
}

/* ---- scan ------------------------------------------------------------------------------------ */

static Node *sum_from_end(Context *c, Node *g, int axis)
{
    ingot_dtype d = (ingot_dtype)g->dtype;
    Node *back = ingot_flip(c, ingot_cast(c, g, dtype_info[d].compute), 1u << axis);
    back = ingot_flip(c, ingot_scan(c, INGOT_REDUCE_ADD, back, axis), 1u << axis);
    return ingot_cast(c, back, d);
}

/* The last place up to each element that was beyond all before it; then every g is added where
 * its maximum came from. */
static Node *extreme_from_places(Context *c, Node *n, Node *g, int axis, bool greatest)
{
    Node *x = n->src[0], *at[INGOT_MAX_RANK];
    for (int a = 0; a < x->rank; a++)
        at[a] = ingot_iota(c, x->rank, x->shape, a);
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    lo[axis] = 1;
    hi[axis] = -1;
    Node *before = ingot_pad_c(c, n, lo, hi, 0);
    Node *changed = greatest ? ingot_gt(c, x, before) : ingot_lt(c, x, before);
    Node *zero = ingot_scalar_i(c, INGOT_I64, 0);
    Node *place = ingot_where(c, changed, at[axis], zero); /* the first is where all begin */
    at[axis] = ingot_scan(c, INGOT_REDUCE_MAX, place, axis);
    return ingot_update(c, INGOT_ADD, gradient_zeros(c, x), g, at);
}

/* y_i = x_0 .. x_i.  With s_i = g_i + x_(i+1) s_(i+1), the sum over all later y of what they are
 * times beyond x_i, and p_i the product before x_i: g_x = p s. */
static Node *product_from_end(Context *c, Node *n, Node *g, int axis)
{
    Node *x = n->src[0], *size = x->shape[axis], *got[2];
    Node *next = ingot_slice(c, x, axis, idx(c, 1), idx_sub(c, size, idx(c, 1)), 1);
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    hi[axis] = 1;
    next = ingot_pad_c(c, next, lo, hi, 0); /* x_(i+1), and 0 behind the last */
    ingot_region *body = ingot_region_begin(c);
    Node *i = ingot_region_param(c, body, INGOT_I64, 0, NULL);
    Node *go = ingot_region_param(c, body, INGOT_BOOL, 0, NULL);
    Node *start = gradient_zeros(c, gradient_place(c, g, ingot_scalar_i(c, INGOT_I64, 0), axis));
    Node *s = ingot_region_param_like(c, body, start);
    Node *t = ingot_sub(c, ingot_add_c(c, ingot_from_dim(c, size), -1), i);
    s = ingot_add(c, gradient_place(c, g, t, axis),
                  ingot_mul(c, gradient_place(c, next, t, axis), s));
    ingot_region_end(c, body, 3, (Node *[]){go, s, s});
    ingot_loop(c, size, NULL, 1, &start, body, 1, got);
    int perm[INGOT_MAX_RANK];
    for (int a = 0; a < x->rank; a++) /* [time, others] -> time at its axis */
        perm[a] = a == axis ? 0 : a < axis ? a + 1 : a;
    Node *sums = ingot_permute(c, ingot_flip(c, got[1], 1), perm);
    return ingot_mul(c, sums, ingot_cumulate(c, INGOT_REDUCE_MUL, x, axis, true, false));
}

Node *gradient_scan(Backward *b, Node *n, Node *g, int i)
{
    (void)i;
    int axis = 0;
    while (!(reduce_axes(n) >> axis & 1))
        axis++;
    switch (reduce_monoid(n)) {
    case INGOT_REDUCE_ADD: return sum_from_end(b->c, g, axis);
    case INGOT_REDUCE_MAX: return extreme_from_places(b->c, n, g, axis, true);
    case INGOT_REDUCE_MIN: return extreme_from_places(b->c, n, g, axis, false);
    case INGOT_REDUCE_MUL: return product_from_end(b->c, n, g, axis);
    default: return gradient_no_rule(b, n, "scan by bits");
    }
}
