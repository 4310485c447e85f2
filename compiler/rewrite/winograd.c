/* winograd.c - a convolution of stride 1 and three taps in fewer products (Winograd, F(m, 3)).
 *
 * m neighbouring results of a window of 3 take m + 2 products in place of 3 m:
 *
 *     y[m t + e] = sum over a of A[e,a] * ( sum over c of (sum over i of B[a,i] x[m t + i]) * (sum
 *         over k of G[a,k] w[k]) )
 *
 * and along two axes (m + 2)^2 in place of 9 m^2.  B, G and A are small and constant: the rows of B
 * and A are chosen by a coordinate, so that copies along that axis (UPCAST) are what each row adds
 * up and nothing else.  What is left is three kernels: x transformed; products of matrices, one for
 * each a; their results transformed back.
 *
 *     x [B, R, o.., C, k..] -> v [a, B, R tiles, C]
 *     w [B, M, C, k..]      -> u [a, B, M, C]            when the model is compiled; of a state,
 *                                                        which is trained, in each run
 *     sum over C            -> [a, B, R tiles, M] -> y [B, R, o.., M]
 *
 * Along one axis of two (2x1) the taps of the other one are summed beside C: fewer products than in
 * the direct form, and fewer weights to read than in the form along both. */
#include <string.h>

#include "winograd.h"

#define OF_2                                                             \
    TILE_OF_2, .g = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}}, \
               .a = {{1, 1, 1, 0}, {0, 1, -1, -1}}
const WinogradForm form2 = {OF_2, .windows = 2, .exact = &exact2},
                   form2x1 = {OF_2, .windows = 1, .exact = &exact2x1};
const WinogradForm form4 = {
    TILE_OF_4, .windows = 2, .exact = &exact4,
    .g = {{1. / 4, 0, 0},
          {-1. / 6, -1. / 6, -1. / 6},
          {-1. / 6, 1. / 6, -1. / 6},
          {1. / 24, 1. / 12, 1. / 6},
          {1. / 24, -1. / 12, 1. / 6},
          {0, 0, 1}},
    .a = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}};

/* ---- transforms ------------------------------------------------------------------------------ */

static Node *plus(Context *c, Node *a, double sign, Node *b)
{
    if (!a || !b)
        return !b ? a : sign < 0 ? ingot_neg(c, b) : b;
    return sign < 0 ? ingot_sub(c, a, b) : ingot_add(c, a, b);
}

static Node *times(Context *c, double x, Node *d)
{
    double size = x < 0 ? -x : x;
    return size == 1 ? d : ingot_mul_c(c, d, size);
}

/* The terms of a row at first, first + step .. times a sign, those that are added before those that
 * are taken away. */
Node *row_terms(Context *c, int n, Node *const *d, const double *row, int first, int step,
                double sign)
{
    Node *sum = NULL;
    for (int side = 1; side >= -1; side -= 2)
        for (int i = first; i < n; i += step)
            if (row[i] * sign * side > 0)
                sum = plus(c, sum, side, times(c, row[i], d[i]));
    return sum;
}

/* The sign of the last of these terms; 0: there are none. */
static double sign_of(int n, const double *row, int first)
{
    double sign = 0;
    for (int i = first; i < n; i += 2)
        sign = row[i] > 0 ? 1 : row[i] < 0 ? -1 : sign;
    return sign;
}

/* Even terms and odd ones: rows of p and of -p are the sum and the difference of the same two. */
Node *point_row(Context *c, int n, Node *const *d, const double *row)
{
    double even = sign_of(n, row, 0), odd = sign_of(n, row, 1);
    if (even == 0 || odd == 0)
        return row_terms(c, n, d, row, 0, 1, 1);
    Node *e = row_terms(c, n, d, row, 0, 2, even), *o = row_terms(c, n, d, row, 1, 2, odd);
    return even < 0 && odd > 0 ? plus(c, o, even, e) : plus(c, plus(c, NULL, even, e), odd, o);
}

/* What belongs to p and to -p are neighbours: their sums and differences are the same in all
 * rows. */
static Node *result_row(Context *c, int n, Node *const *d, const double *row)
{
    Node *sum = row[0] != 0 ? d[0] : NULL;
    for (int i = 1; i < n; i += 2) {
        bool pair = i + 1 < n - 1;
        if (row[i] == 0)
            continue;
        Node *both = pair ? plus(c, d[i], row[i] * row[i + 1], d[i + 1]) : d[i];
        sum = plus(c, sum, row[i], times(c, row[i], both));
    }
    return sum;
}

/* Which one of the rows the coordinate along an axis says. */
Node *chosen_row(Context *c, int axis, int n, Node *const *row)
{
    Node *ones[INGOT_MAX_RANK], *y = row[n - 1];
    for (int i = 0; i < y->rank; i++)
        ones[i] = i == axis ? idx(c, n) : idx(c, 1);
    Node *which = ingot_iota(c, y->rank, ones, axis);
    for (int i = n - 1; i-- > 0;)
        y = ingot_where(c, ingot_eq(c, which, ingot_scalar_i(c, INGOT_I64, i)), row[i], y);
    return y;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

Node *group_size(Context *c, const ProductAxes *s, Node *x, AxisGroup group)
{
    Node *size = idx(c, 1);
    for (int i = 0; i < s->n[group]; i++)
        size = idx_mul(c, size, x->shape[s->axis[group][i]]);
    return size;
}

/* All axes, group after group; gives how many there are. */
int axes_in_order(const ProductAxes *s, const AxisGroup *order, int *perm)
{
    int n = 0;
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < s->n[order[g]]; i++)
            perm[n++] = s->axis[order[g]][i];
    return n;
}

/* Elements at[axis] along axes, which stay as those of size 1; the other axes are WHOLE. */
Node *elements_at(Context *c, Node *x, const int64_t *at)
{
    Node *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    for (int d = 0; d < x->rank; d++) {
        begin[d] = idx(c, at[d] == WHOLE ? 0 : at[d]);
        size[d] = at[d] == WHOLE ? x->shape[d] : idx(c, 1);
    }
    return ingot_shrink(c, x, begin, size);
}

static Node *element(Context *c, Node *x, int axis, int64_t i)
{
    int64_t at[INGOT_MAX_RANK];
    for (int d = 0; d < x->rank; d++)
        at[d] = d == axis ? i : WHOLE;
    return elements_at(c, x, at);
}

/* Every element is read at many points: what is computed from a value that is there as a whole is
 * computed once, and stored. So is what the caller gives, with its padding; it lies as the model
 * declares it, and has no halo. */
static Node *stored(Rewrite *r, Node *x)
{
    const bool pads = x->op == OP_PAD && x->src[0]->op == OP_INPUT;
    if (pads || x->op == OP_INPUT)
        return node_kept(r->c, x);
    if (op_is_alu(x->op))
        return reads_summed(r, x) ? ingot_contiguous(r->c, x) : x;
    if (op_info[x->op].cls != MOVE || x->op == OP_CONCAT || x->op == OP_KEEP)
        return x;
    Node **src = NEWN(r->a, Node *, x->nsrc), *source = stored(r, x->src[0]);
    memcpy((void *)src, (void *)x->src, x->nsrc * sizeof *src);
    src[0] = source;
    return source == x->src[0] ? x : node_with(r->c, x, src);
}

/* What a window slides over, along `out`; one tap is left. */
static Node *unrolled(Context *c, Node *x, int out, int tap)
{
    Node *dims[INGOT_MAX_RANK], *index[INGOT_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == tap ? idx(c, 1) : x->shape[i];
    dims[out] = idx_add(c, dims[out], idx(c, TAPS - 1));
    for (int i = 0; i < x->rank; i++)
        index[i] = ingot_iota(c, x->rank, dims, i == tap ? out : i);
    Node *last = ingot_scalar_i(c, INGOT_I64, x->shape[out]->lo - 1);
    index[tap] = ingot_sub(c, ingot_max(c, index[tap], last), last);
    index[out] = ingot_min(c, index[out], last);
    return ingot_gather(c, x, index);
}

/* x as [B, R, tiles, m.., C, taps..], a pair of axes for each window; of one that is not
 * transformed, what it slides over. */
Node *tiled_x(Rewrite *r, const ProductAxes *s, const WinogradForm *f)
{
    int perm[INGOT_MAX_RANK], n = 0;
    Node *dims[INGOT_MAX_RANK], *x = stored(r, s->x);
    Context *c = r->c;
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0}, size;
    (void)axes_in_order(s, (AxisGroup[]){BATCH, ROW, OUT, SUM, TAP, ONE, MAP}, perm);
    x = ingot_permute(c, x, perm);
    n = 0;
    dims[n++] = group_size(c, s, s->x, BATCH);
    dims[n++] = group_size(c, s, s->x, ROW);
    for (int i = 0; i < s->n[OUT]; i++) {
        dims[n] = s->x->shape[s->axis[OUT][i]];
        size = results_of(s, i);
        hi[n++] = (tile_along(f, i) - size % tile_along(f, i)) % tile_along(f, i);
    }
    const int sum = n;
    dims[n++] = group_size(c, s, s->x, SUM);
    for (int i = 0; i < s->n[OUT]; i++)
        dims[n++] = idx(c, TAPS);
    x = ingot_pad_c(c, ingot_reshape(c, x, n, dims), lo, hi, 0);
    for (int i = f->windows; i < s->n[OUT]; i++)
        x = unrolled(c, x, 2 + i, sum + 1 + i);
    n = 2;
    for (int i = 0; i < s->n[OUT]; i++) {
        dims[n++] = idx_div(c, x->shape[2 + i], idx(c, tile_along(f, i)));
        dims[n++] = idx(c, tile_along(f, i));
    }
    for (int i = sum; i < x->rank; i++)
        dims[n++] = x->shape[i];
    return ingot_reshape(c, x, n, dims);
}

/* v [points.., B, R, tiles.., C] of tiled_x() */
Node *transformed_x(Context *c, const ProductAxes *s, const WinogradForm *f, Node *x)
{
    Node *dims[INGOT_MAX_RANK], *all[INGOT_MAX_RANK];
    int nw = transformed_windows(s, f), n = 0, sum = 2 + 2 * s->n[OUT];
    for (int i = 0; i < nw; i++)
        dims[n++] = idx(c, 1);
    dims[n++] = x->shape[0];
    dims[n++] = x->shape[1];
    for (int i = 0; i < s->n[OUT]; i++)
        dims[n++] = x->shape[2 + 2 * i];
    dims[n++] = x->shape[sum];
    for (int i = 0; i < n; i++) /* all in one shape: what they share is computed once */
        all[i] = i < nw ? idx(c, f->points) : dims[i];
    Node *d[MAX_POINTS][MAX_POINTS], *t[MAX_POINTS], *row[MAX_POINTS];
    int64_t at[INGOT_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        at[i] = WHOLE;
    int second = nw > 1 ? f->points : 1;
    for (int j = 0; j < second; j++) {
        for (int i = 0; i < f->points; i++) {
            const int point[MAX_WINDOWS] = {i, j};
            for (int w = 0; w < nw; w++) {
                int tap = point[w] < TAPS ? point[w] : TAPS - 1;
                at[3 + 2 * w] = point[w] - tap;
                at[sum + 1 + w] = tap;
            }
            Node *e = elements_at(c, x, at);
            d[j][i] = ingot_expand(c, ingot_reshape(c, e, n, dims), n, all);
        }
        for (int a = 0; a < f->points; a++)
            row[a] = point_row(c, f->points, d[j], f->b[a]);
        t[j] = chosen_row(c, 0, f->points, row);
    }
    if (nw == 1)
        return t[0];
    for (int a = 0; a < f->points; a++)
        row[a] = point_row(c, f->points, t, f->b[a]);
    return chosen_row(c, 1, f->points, row);
}

/* w [B, M, C, taps..] */
static Node *weights_in_order(Context *c, const ProductAxes *s)
{
    int perm[INGOT_MAX_RANK];
    Node *dims[INGOT_MAX_RANK];
    (void)axes_in_order(s, (AxisGroup[]){BATCH, MAP, SUM, TAP, ONE, ROW, OUT}, perm);
    dims[0] = group_size(c, s, s->w, BATCH);
    dims[1] = group_size(c, s, s->w, MAP);
    dims[2] = group_size(c, s, s->w, SUM);
    for (int i = 0; i < s->n[OUT]; i++)
        dims[3 + i] = idx(c, TAPS);
    return ingot_reshape(c, ingot_permute(c, s->w, perm), 3 + s->n[OUT], dims);
}

/* u [points, B, M, C, taps that are not transformed] of constants: each part is computed for
 * itself, when the model is compiled. */
static Node *transformed_constant(Context *c, const ProductAxes *s, const WinogradForm *f)
{
    Node *w = weights_in_order(c, s), *one[INGOT_MAX_RANK], *part[MAX_POINTS * MAX_POINTS];
    const int nw = transformed_windows(s, f), second = nw > 1 ? TAPS : 1, rank = w->rank - nw;
    Node *t[MAX_POINTS][TAPS], *g[TAPS];
    for (int l = 0; l < second; l++) {
        for (int k = 0; k < TAPS; k++) {
            const int64_t at[5] = {WHOLE, WHOLE, WHOLE, k, nw > 1 ? l : WHOLE};
            g[k] = ingot_reshape(c, elements_at(c, w, at), rank, w->shape);
        }
        for (int a = 0; a < f->points; a++)
            t[a][l] = point_row(c, TAPS, g, f->g[a]);
    }
    int parts = 0;
    for (int a = 0; a < f->points; a++)
        for (int b = 0; b < (nw > 1 ? f->points : 1); b++)
            part[parts++] = nw > 1 ? point_row(c, TAPS, t[a], f->g[b]) : t[a][0];
    one[0] = idx(c, 1);
    memcpy((void *)(one + 1), (void *)w->shape, (size_t)rank * sizeof *one);
    for (int i = 0; i < parts; i++)
        part[i] = ingot_reshape(c, part[i], rank + 1, one);
    return concat_of(c, parts, part, 0);
}

/* The same of what a run computes, or a state: one kernel, which reads all taps of a weight and
 * writes all its points. */
static Node *transformed_state(Context *c, const ProductAxes *s, const WinogradForm *f)
{
    Node *w = weights_in_order(c, s), *dims[INGOT_MAX_RANK], *all[INGOT_MAX_RANK];
    const int nw = transformed_windows(s, f), second = nw > 1 ? TAPS : 1, kept = w->rank - nw;
    Node *g[TAPS], *t[TAPS], *row[MAX_POINTS];
    for (int i = 0; i < nw + kept; i++) {
        dims[i] = i < nw ? idx(c, 1) : w->shape[i - nw];
        all[i] = i < nw ? idx(c, f->points) : dims[i];
    }
    for (int l = 0; l < second; l++) {
        for (int k = 0; k < TAPS; k++) {
            const int64_t at[5] = {WHOLE, WHOLE, WHOLE, k, nw > 1 ? l : WHOLE};
            g[k] = ingot_reshape(c, elements_at(c, w, at), nw + kept, dims);
            g[k] = ingot_expand(c, g[k], nw + kept, all);
        }
        for (int a = 0; a < f->points; a++)
            row[a] = point_row(c, TAPS, g, f->g[a]);
        t[l] = chosen_row(c, 0, f->points, row);
    }
    Node *u = t[0];
    for (int b = 0; b < f->points && nw > 1; b++)
        row[b] = point_row(c, TAPS, t, f->g[b]);
    if (nw > 1)
        u = chosen_row(c, 1, f->points, row);
    dims[0] = idx(c, nw > 1 ? f->points * f->points : f->points);
    memcpy((void *)(dims + 1), (void *)(all + nw), (size_t)kept * sizeof *dims);
    return ingot_contiguous(c, ingot_reshape(c, u, 1 + kept, dims));
}

static Node *transformed_w(Context *c, const ProductAxes *s, const WinogradForm *f)
{
    return is_constant(s->w, 0) ? transformed_constant(c, s, f) : transformed_state(c, s, f);
}

/* [points, B, R tiles, M, 1] back to [B, R, out.., M] */
static Node *transformed_back(Context *c, const ProductAxes *s, const WinogradForm *f,
                              Node *product)
{
    int nw = transformed_windows(s, f), n = 0;
    Node *dims[INGOT_MAX_RANK], *all[INGOT_MAX_RANK], *t[MAX_POINTS], *m[MAX_POINTS],
        *row[MAX_TILE];
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0}, size;
    dims[n] = all[n] = group_size(c, s, s->x, BATCH);
    n++;
    dims[n] = all[n] = group_size(c, s, s->x, ROW);
    n++;
    for (int i = 0; i < s->n[OUT]; i++) {
        size = results_of(s, i);
        dims[n] = all[n] = idx(c, ceil_div(size, tile_along(f, i)));
        n++;
        dims[n] = idx(c, 1);
        all[n++] = idx(c, tile_along(f, i));
    }
    dims[n] = all[n] = product->shape[3];
    n++;
    int second = nw > 1 ? f->points : 1;
    for (int b = 0; b < second; b++) {
        for (int a = 0; a < f->points; a++)
            m[a] = ingot_expand(
                c, ingot_reshape(c, element(c, product, 0, a * second + b), n, dims), n, all);
        for (int e = 0; e < f->tile; e++)
            row[e] = result_row(c, f->points, m, f->a[e]);
        t[b] = chosen_row(c, 3, f->tile, row);
    }
    for (int e = 0; e < f->tile && nw > 1; e++)
        row[e] = result_row(c, f->points, t, f->a[e]);
    Node *y = nw > 1 ? chosen_row(c, 5, f->tile, row) : t[0];
    if (f->scale)
        y = unscaled(c, s, f, y);
    n = 2;
    for (int i = 0; i < s->n[OUT]; i++) {
        size = results_of(s, i);
        dims[n] = idx_mul(c, dims[2 + 2 * i], idx(c, tile_along(f, i)));
        hi[n++] = -((tile_along(f, i) - size % tile_along(f, i)) % tile_along(f, i));
    }
    dims[n++] = product->shape[3];
    return ingot_pad_c(c, ingot_reshape(c, y, n, dims), lo, hi, 0);
}

/* [B, R, out.., M] with the axes of the reduce. */
static Node *in_place_of(Context *c, const ProductAxes *s, Node *n, Node *y)
{
    int order[INGOT_MAX_RANK], perm[INGOT_MAX_RANK];
    Node *dims[INGOT_MAX_RANK];
    int rank = axes_in_order(s, (AxisGroup[]){BATCH, ROW, OUT, MAP, SUM, TAP, ONE}, order);
    for (int i = 0; i < rank; i++) {
        dims[i] = order[i] == s->axis[OUT][0] ? y->shape[2] : n->shape[order[i]];
        perm[order[i]] = i;
    }
    return ingot_permute(c, ingot_reshape(c, y, rank, dims), perm);
}

/* [points, B, R tiles, M, 1] */
static Node *multiplied(Rewrite *r, const ProductAxes *s, const WinogradForm *f, Node *v, Node *u)
{
    Context *c = r->c;
    const int nw = transformed_windows(s, f), slid = s->n[OUT] - nw, maps = 3 + slid,
              sum = maps + 1;
    Node *rows = group_size(c, s, s->x, ROW), *vd[INGOT_MAX_RANK], *ud[INGOT_MAX_RANK],
         *all[INGOT_MAX_RANK], *one = idx(c, 1);
    unsigned summed = 0;
    for (int i = 0; i < nw; i++)
        rows = idx_mul(c, rows, v->shape[nw + 2 + i]);
    vd[0] = ud[0] = u->shape[0];
    vd[1] = ud[1] = u->shape[1];
    vd[2] = rows;
    for (int i = 0; i < slid; i++)
        vd[3 + i] = v->shape[2 * nw + 2 + i];
    vd[maps] = one;
    vd[sum] = v->shape[v->rank - 1];
    v = ingot_reshape(c, v, sum + 1, vd);
    v = f->scale ? as_pairs(c, v) : ingot_contiguous(c, v);
    for (int i = 0; i < slid; i++)
        v = ingot_window(c, v, 3 + i, TAPS, 1, 1);
    for (int i = 2; i < maps; i++)
        ud[i] = one;
    for (int i = 2; i < u->rank; i++)
        ud[maps + i - 2] = u->shape[i];
    for (int i = 0; i < v->rank; i++) {
        all[i] = i == maps ? ud[i] : v->shape[i];
        summed |= i >= sum ? 1u << i : 0;
    }
    if (f->scale)
        u = ingot_cast(c, ingot_cast(c, u, INGOT_I16), INGOT_I32);
    u = ingot_reshape(c, u, v->rank, ud);
    Node *y = ingot_mul(c, ingot_expand(c, v, v->rank, all), ingot_expand(c, u, v->rank, all));
    y = ingot_reduce(c, INGOT_REDUCE_ADD, y, summed, true);
    no_window(r, y);
    if (!slid)
        return y;
    for (int i = 0; i < slid; i++)
        rows = idx_mul(c, rows, y->shape[3 + i]);
    return ingot_reshape(c, y, 5, (Node *[]){y->shape[0], y->shape[1], rows, y->shape[maps], one});
}

/* The results of all of x. */
static Node *computed(Rewrite *r, const ProductAxes *s, const WinogradForm *f, Node *n, Node *u)
{
    Node *v = transformed_x(r->c, s, f, tiled_x(r, s, f)),
         *y = transformed_back(r->c, s, f, multiplied(r, s, f, v, u));
    return in_place_of(r->c, s, n, y);
}

/* ---- the rewrite ----------------------------------------------------------------------------- */

/* So many results along the first window at a time; the last ones begin where there are as many. */
static Node *in_turn(Rewrite *r, const ProductAxes *s, const WinogradForm *f, Node *n, Node *u,
                     int64_t step)
{
    Context *c = r->c;
    const int64_t all = results_of(s, 0), count = ceil_div(all, step);
    const int axis = s->axis[OUT][0];
    Node *counter = parts_counter(c, count), *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    Strips of = {.counter = counter, .axis = axis, .size = idx(c, all)};
    of.first = idx_mul(c, counter, idx(c, step));
    if (count * step > all)
        of.first = idx_min(c, of.first, idx(c, all - step));
    for (int i = 0; i < s->x->rank; i++) {
        begin[i] = i == axis ? of.first : idx(c, 0);
        size[i] = i == axis ? idx(c, step) : s->x->shape[i];
    }
    ProductAxes part = *s;
    part.x = ingot_shrink(c, s->x, begin, size);
    of.part = computed(r, &part, f, n, u);
    return strips(r, &of);
}

/* Integers are multiplied as pairs of 16 bits, where the machine does that in lanes. */
const WinogradForm *winograd_form(const Rewrite *r, const Node *n, const ProductAxes *s,
                                  const WinogradForm *f)
{
    if (!s || (f->windows == 1 && s->n[OUT] == 1))
        return NULL;
    if (n->dtype == INGOT_F32)
        return f;
    const Machine *m = r->target ? &r->target->machine : NULL;
    const bool pairs = m && m->lanes && machine_dots(m, 2, false);
    return f->exact && pairs && is_exact(r->c, s, f->exact) ? f->exact : NULL;
}

static Node *winograd(Rewrite *r, Node *n, bool try, const WinogradForm *wanted)
{
    const ProductAxes *s = winograd_axes(r, n);
    const WinogradForm *f = winograd_form(r, n, s, wanted);
    if (!f)
        return NULL;
    if (try)
        return n;
    const int64_t step = rows_of_strip(r, n, s, f) * f->tile;
    Node *u = transformed_w(r->c, s, f);
    return step < results_of(s, 0) ? in_turn(r, s, f, n, u, step) : computed(r, s, f, n, u);
}

Node *winograd2(Rewrite *r, Node *n, bool try)
{
    return winograd(r, n, try, &form2);
}

Node *winograd4(Rewrite *r, Node *n, bool try)
{
    return winograd(r, n, try, &form4);
}

Node *winograd2x1(Rewrite *r, Node *n, bool try)
{
    return winograd(r, n, try, &form2x1);
}
