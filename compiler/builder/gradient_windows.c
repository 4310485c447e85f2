/* gradient_windows.c - the adjoint of slices and windows: what x gets of a view of it
 * (affine_view.c).
 *
 * An axis of x that one axis of the view reads with a stride gets zeros between.  One that two
 * axes read, o with stride s and the taps k, gets all (o, k) with s o + k = i summed.  With k =
 * s q + r that is, for the s places of each block side by side,
 *
 *     g_x[s o + r] = sum over q of g[o - q, s q + r]
 *
 * a sum over ceil(taps / s) shifted copies of g and no scatter: a kernel of independent results.
 * Where windows do not overlap nothing is summed.  Taps that are d apart are copies at distance
 * d.
 *
 * Where the windows are a factor of a sum of products (a convolution), it is cheaper to read
 * windows of the small g than to sum large windows: the gradient is the transposed convolution
 * of g with the same weights. */
#include <string.h>

#include "gradient.h"

/* One axis of x. */
typedef struct {
    int out, tap;           /* axes of the view, or -1 */
    int64_t stride, apart;  /* from one o to the next, from one tap to the next */
    int64_t taps;           /* 1: no window */
    int64_t copies, phases; /* of g that are summed; places side by side of which each is a sum */
    int64_t step;           /* between copies */
} AxisFold;

/* Which of the two axes are the taps: the fewer, whose number has to be known. */
static bool two_terms(const AffineView *v, int a, const int *axis, AxisFold *f)
{
    int64_t size[2] = {INT64_MAX, INT64_MAX};
    for (int i = 0; i < 2; i++)
        (void)idx_value(v->dims[axis[i]], &size[i]);
    int tap = size[0] < size[1] ? 0 : 1;
    if (size[tap] == INT64_MAX)
        return false;
    f->tap = axis[tap];
    f->out = axis[1 - tap];
    f->taps = size[tap];
    f->apart = v->coef[a][f->tap];
    f->stride = v->coef[a][f->out];
    return true;
}

static bool find_fold(const AffineView *v, int a, AxisFold *f)
{
    int axis[2], n = view_terms(v, a, axis);
    *f = (AxisFold){.out = -1, .tap = -1, .stride = 1, .apart = 1, .taps = 1};
    f->copies = f->phases = f->step = 1;
    if (n > 2 || (n == 2 && !two_terms(v, a, axis, f)))
        return false;
    if (n == 1) {
        f->out = axis[0];
        f->stride = v->coef[a][axis[0]];
    }
    return true;
}

/* All folds, if each axis of the view moves along one axis of x only. */
static bool find_folds(const AffineView *v, AxisFold *f)
{
    unsigned used = 0;
    int rank = v->x->rank;
    for (int a = 0; a < v->x->rank; a++) {
        if (!find_fold(v, a, &f[a]))
            return false;
        for (int i = 0; i < 2; i++) {
            int axis = i ? f[a].tap : f[a].out;
            if (axis >= 0 && used >> axis & 1)
                return false;
            used |= axis >= 0 ? 1u << axis : 0;
        }
        rank += f[a].tap >= 0 ? 2 : f[a].stride != 1;
    }
    return rank <= INGOT_MAX_RANK;
}

/* Axes that move nothing are summed, and those that go backwards turned around: all coefficients
 * are positive then. */
static Node *forward_axes(Context *c, AffineView *v, Node *g)
{
    unsigned still = 0, back = 0;
    for (int k = 0; k < v->rank; k++) {
        bool moves = false;
        for (int a = 0; a < v->x->rank; a++) {
            moves |= v->coef[a][k] != 0;
            if (v->coef[a][k] >= 0)
                continue;
            back |= 1u << k;
            Node *reach = idx_mul(c, idx_sub(c, v->dims[k], idx(c, 1)), idx(c, v->coef[a][k]));
            v->off[a] = idx_add(c, v->off[a], reach);
            v->coef[a][k] = -v->coef[a][k];
        }
        if (!moves && !idx_is(v->dims[k], 1))
            still |= 1u << k;
    }
    return ingot_flip(c, gradient_sum(c, g, still), back);
}

/* [o of each axis of x, then the taps of each that has some] */
static Node *sorted_axes(Context *c, const AffineView *v, const AxisFold *f, Node *g)
{
    int perm[INGOT_MAX_RANK], n = 0, rank = 0;
    unsigned seen = 0;
    Node *dims[INGOT_MAX_RANK];
    for (int side = 0; side < 2; side++)
        for (int a = 0; a < v->x->rank; a++) {
            int axis = side ? f[a].tap : f[a].out;
            if (side && axis < 0)
                continue;
            dims[rank++] = axis < 0 ? idx(c, 1) : v->dims[axis];
            if (axis < 0)
                continue;
            perm[n++] = axis;
            seen |= 1u << axis;
        }
    for (int k = 0; k < v->rank; k++)
        if (!(seen >> k & 1)) /* of size 1 */
            perm[n++] = k;
    return ingot_reshape(c, ingot_permute(c, g, perm), rank, dims);
}

/* stride - 1 zeros behind each element along an axis */
static Node *zeros_behind(Context *c, Node *x, int axis, int64_t stride)
{
    Node *dims[INGOT_MAX_RANK + 1];
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    for (int a = 0; a <= x->rank; a++)
        dims[a] = a == axis + 1 ? idx(c, 1) : x->shape[a - (a > axis)];
    hi[axis + 1] = stride - 1;
    Node *y = ingot_pad_c(c, ingot_reshape(c, x, x->rank + 1, dims), lo, hi, 0);
    for (int a = 0; a < x->rank; a++)
        dims[a] = a == axis ? idx_mul(c, x->shape[a], idx(c, stride)) : x->shape[a];
    return ingot_reshape(c, y, x->rank, dims);
}

/* The taps of windows as copies and phases, each two axes; g gets room for the shifts. */
static Node *split_taps(Context *c, const AffineView *v, AxisFold *f, Node *g)
{
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    int rank = v->x->rank, n = rank, at = rank;
    Node *dims[INGOT_MAX_RANK];
    for (int a = 0; a < rank; a++) {
        bool phased = f[a].tap >= 0 && f[a].apart == 1;
        if (phased)
            f[a].phases = f[a].stride;
        else if (f[a].stride > 1)
            g = zeros_behind(c, g, a, f[a].stride);
    }
    for (int a = 0; a < rank; a++) {
        if (f[a].tap < 0)
            continue;
        f[a].copies = ceil_div(f[a].taps, f[a].phases);
        f[a].step = f[a].apart;
        hi[at++] = f[a].copies * f[a].phases - f[a].taps;
        lo[a] = hi[a] = f[a].step * (f[a].copies - 1);
    }
    g = ingot_pad_c(c, g, lo, hi, 0);
    for (int a = 0; a < rank; a++)
        dims[a] = g->shape[a];
    for (int a = 0; a < rank; a++)
        if (f[a].tap >= 0) {
            dims[n++] = idx(c, f[a].copies);
            dims[n++] = idx(c, f[a].phases);
        }
    return ingot_reshape(c, g, n, dims);
}

/* sum over copies q of g[.., o + step (copies - 1 - q), .., q, r] */
static Node *sum_copies(Context *c, const AffineView *v, const AxisFold *f, Node *g)
{
    Node *dims[INGOT_MAX_RANK], *at[INGOT_MAX_RANK];
    int rank = v->x->rank, copy = rank;
    unsigned axes = 0;
    bool overlap = false;
    for (int k = 0; k < g->rank; k++)
        dims[k] = g->shape[k];
    for (int a = 0; a < rank; a++)
        dims[a] = idx_sub(c, dims[a], idx(c, f[a].step * (f[a].copies - 1)));
    for (int k = 0; k < g->rank; k++)
        at[k] = ingot_iota(c, g->rank, dims, k);
    for (int a = 0; a < rank; a++) {
        if (f[a].tap < 0)
            continue;
        int64_t last = f[a].copies - 1;
        if (last) {
            Node *shift = ingot_sub(c, ingot_scalar_i(c, INGOT_I64, last), at[copy]);
            at[a] = ingot_add(c, at[a], ingot_mul_c(c, shift, (double)f[a].step));
        }
        overlap |= last > 0;
        axes |= 1u << copy;
        copy += 2;
    }
    return overlap ? gradient_sum(c, ingot_gather(c, g, at), axes) : g;
}

/* The phases behind their o; then all has the places of x, from off on. */
static Node *joined_phases(Context *c, const AffineView *v, const AxisFold *f, Node *g)
{
    int perm[INGOT_MAX_RANK], n = 0, tap = v->x->rank;
    Node *dims[INGOT_MAX_RANK], *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    for (int a = 0; a < v->x->rank; a++) {
        perm[n++] = a;
        if (f[a].tap >= 0) {
            perm[n++] = tap + 1;
            tap += 2;
        }
        dims[a] = idx_mul(c, g->shape[a], idx(c, f[a].phases));
    }
    for (int k = v->x->rank; k < g->rank; k += 2)
        perm[n++] = k; /* the copies, of size 1 */
    g = ingot_reshape(c, ingot_permute(c, g, perm), v->x->rank, dims);
    for (int a = 0; a < v->x->rank; a++) {
        lo[a] = v->off[a];
        hi[a] = idx_sub(c, idx_sub(c, v->x->shape[a], lo[a]), dims[a]);
    }
    return with_shape(c, ingot_pad(c, g, lo, hi), v->x->shape);
}

bool view_folds(const AffineView *v)
{
    AxisFold f[INGOT_MAX_RANK];
    return find_folds(v, f);
}

Node *view_adjoint(Context *c, const AffineView *view, Node *g)
{
    AffineView v = *view;
    AxisFold f[INGOT_MAX_RANK];
    g = forward_axes(c, &v, g);
    find_folds(&v, f);
    g = split_taps(c, &v, f, sorted_axes(c, &v, f, g));
    return joined_phases(c, &v, f, sum_copies(c, &v, f, g));
}

/* ---- convolutions ---------------------------------------------------------------------------- */

/*     product [N, G, M/G, C/G, o.., k..] = windows of x [N, C, size..] times
 *             w [1, G, M/G, C/G, 1.., k..]
 *     y = its sum over C/G and k.. */
typedef struct {
    Node *x, *w, *product;
    int spatial;
    int64_t stride[INGOT_MAX_RANK], apart[INGOT_MAX_RANK]; /* by spatial axis */
    int64_t lo[INGOT_MAX_RANK], hi[INGOT_MAX_RANK], more[INGOT_MAX_RANK];
} Conv;

/* Axis a of x is that axis of the product times f, and nothing else but what `also` is. */
static bool moves_by(const AffineView *v, int a, int axis, int64_t f, int also, int64_t *by)
{
    for (int k = 0; k < v->rank; k++) {
        int64_t coef = v->coef[a][k];
        if (idx_is(v->dims[k], 1))
            continue;
        if (k == also)
            *by = coef;
        else if (coef != (k == axis ? f : 0))
            return false;
    }
    return idx_is(v->off[a], 0);
}

/* A convolution's windows, in ops_conv.c's order of axes. */
static bool reads_windows(const AffineView *v, Conv *q)
{
    Node *const *d = q->product->shape;
    int64_t per, one = 1;
    bool windows = false;
    if (v->x->rank != 2 + q->spatial || !idx_value(d[3], &per) || !moves_by(v, 0, 0, 1, -1, NULL) ||
        !moves_by(v, 1, 1, per, 3, &one) || one != 1)
        return false;
    for (int i = 0; i < q->spatial; i++) {
        int o = 4 + i, k = o + q->spatial;
        q->stride[i] = q->apart[i] = 1;
        if (!idx_is(d[o], 1))
            q->stride[i] = v->coef[2 + i][o];
        if (!idx_is(d[k], 1))
            q->apart[i] = v->coef[2 + i][k];
        if (q->stride[i] < 1 || q->apart[i] < 1 || !idx_value(d[k], NULL) ||
            !moves_by(v, 2 + i, o, q->stride[i], k, &one))
            return false;
        windows |= q->stride[i] > 1 || !idx_is(d[k], 1);
    }
    return windows;
}

/* w has what a convolution's weights depend on, and y is the sum over the channels and taps. */
static bool sums_weights(Node *reduce, Conv *q)
{
    Node *w = q->w->op == OP_EXPAND ? q->w->src[0] : q->w, *const *d = q->product->shape;
    for (int k = 0; k < reduce->rank; k++) {
        bool tap = k >= 4 + q->spatial, summed = k == 3 || tap, of_w = summed || k == 1 || k == 2;
        if (summed != (reduce_axes(reduce) >> k & 1) && !idx_is(d[k], 1))
            return false;
        if (of_w ? w->shape[k] != d[k] || !idx_value(d[k], NULL) : !idx_is(w->shape[k], 1))
            return false;
    }
    q->w = w;
    return true;
}

/* Zeros around x are the convolution's own, if nobody asks for the gradient of x with them. */
static void take_pads(const Backward *b, Conv *q)
{
    Node *x = q->x;
    int64_t v[2];
    if (x->op != OP_PAD || b->target[x->id])
        return;
    for (int a = 0; a < x->rank; a++)
        for (int i = 0; i < 2; i++)
            if (!idx_value(x->src[1 + 2 * a + i], &v[i]) || (a < 2 && v[i]))
                return;
    for (int i = 0; i < q->spatial; i++) {
        (void)idx_value(x->src[1 + 2 * (2 + i)], &q->lo[i]);
        (void)idx_value(x->src[2 + 2 * (2 + i)], &q->hi[i]);
    }
    q->x = x->src[0];
}

/* What x has behind the last window. */
static bool find_rest(Context *c, Conv *q)
{
    for (int i = 0; i < q->spatial; i++) {
        Node *o = q->product->shape[4 + i];
        int64_t reach = q->apart[i] * (ingot_dim_lo(q->product->shape[4 + q->spatial + i]) - 1) + 1;
        Node *end = idx_mul(c, idx_sub(c, o, idx(c, 1)), idx(c, q->stride[i]));
        end = idx_add(c, end, idx(c, reach - q->lo[i] - q->hi[i]));
        if (!idx_value(idx_sub(c, q->x->shape[2 + i], end), &q->more[i]) || q->more[i] < 0)
            return false;
    }
    return idx_value(q->x->shape[1], NULL);
}

static bool find_conv(const Backward *b, Node *reduce, int side, Conv *q)
{
    AffineView v;
    Node *a = reduce->src[0]->src[side];
    *q = (Conv){.product = reduce->src[0], .w = reduce->src[0]->src[1 - side]};
    q->spatial = (reduce->rank - 4) / 2;
    if (reduce->rank < 6 || reduce->rank % 2 || !has_gradient(b, a))
        return false;
    view_of(b->c, a, &v);
    bool found = false;
    do {
        if (reads_windows(&v, q)) {
            found = true;
            q->x = v.x;
        }
    } while (!b->target[v.x->id] && view_deeper(b->c, &v));
    if (!found || !sums_weights(reduce, q))
        return false;
    take_pads(b, q);
    return find_rest(b->c, q);
}

/* Has each window one element, of which some are passed over? */
static bool takes_some(const Conv *q)
{
    bool one = true, passes = false;
    for (int i = 0; i < q->spatial; i++) {
        one &= idx_is(q->product->shape[4 + q->spatial + i], 1) && !q->lo[i] && !q->hi[i];
        passes |= q->stride[i] > 1;
    }
    return one && passes;
}

/* The gradient of x. Where windows take some of its elements alone, the others have none: products
 * of those that are taken, and zeros between them. */
static Node *gradient_of_windows(Context *c, Conv *q, Node *gy, Node *w, int64_t groups)
{
    if (!takes_some(q))
        return ingot_conv_transpose(c, gy, w, NULL, q->stride, q->apart, q->lo, q->hi, q->more,
                                    groups);
    int64_t one[INGOT_MAX_RANK], none[INGOT_MAX_RANK] = {0};
    for (int i = 0; i < q->spatial; i++)
        one[i] = 1;
    Node *x = ingot_contiguous(
        c, ingot_conv_transpose(c, gy, w, NULL, one, one, none, none, none, groups));
    for (int i = 0; i < q->spatial && !poisoned(x); i++) {
        x = q->stride[i] > 1 ? zeros_behind(c, x, 2 + i, q->stride[i]) : x;
        if (q->more[i] < q->stride[i] - 1)
            x = ingot_slice(c, x, 2 + i, idx(c, 0), q->x->shape[2 + i], 1);
        int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
        hi[2 + i] = q->more[i] - (q->stride[i] - 1);
        x = hi[2 + i] > 0 ? ingot_pad_c(c, x, lo, hi, 0) : x;
    }
    return x;
}

bool gradient_convolution(Backward *b, Node *reduce, Node *g)
{
    Context *c = b->c;
    Node *product = reduce->src[0], *dims[INGOT_MAX_RANK], *const *d = product->shape;
    int side = 0, spatial;
    Conv q;
    if (product->op != OP_MUL || b->target[product->id])
        return false;
    while (side < 2 && !find_conv(b, reduce, side, &q))
        side++;
    if (side == 2)
        return false;
    spatial = q.spatial;
    dims[0] = d[0];
    dims[1] = idx_mul(c, d[1], d[2]);
    for (int i = 0; i < spatial; i++)
        dims[2 + i] = d[4 + i];
    Node *gy = ingot_reshape(c, g, 2 + spatial, dims);
    dims[0] = dims[1];
    dims[1] = d[3];
    for (int i = 0; i < spatial; i++)
        dims[2 + i] = d[4 + spatial + i];
    Node *w = ingot_reshape(c, q.w, 2 + spatial, dims);
    gradient_give(b, q.x, gradient_of_windows(c, &q, gy, w, ingot_dim_lo(d[1])));
    Node *other = product->src[1 - side];
    if (has_gradient(b, other))
        gradient_give(b, other,
                      ingot_mul(c, ingot_expand(c, g, product->rank, d), product->src[side]));
    return true;
}
