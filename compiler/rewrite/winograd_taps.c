/* winograd_taps.c - the gradient of a weight of three taps in fewer products (Winograd, F(3, 2)).
 *
 *     y[k] = sum over o of g[o] x[o + k]        k = 0..2, o over pixels, and batch beside
 *
 * A convolution's tile of two results is bilinear in its operands (winograd.c). The sum of products
 * of its results and their gradients g is, seen from w, w times the gradient of w:
 *
 *     sum over e of g[e] (sum over a of A[e,a] (B x)[a] (G w)[a]) = sum over k of w[k] y[k]
 *     y[k] = sum over a of G[a,k] (sum over tiles t of (sum over e of A[e,a] g[2t + e]) (B x)[t,a])
 *
 * Both operands are transformed, products of matrices sum over tiles, one for each point, and their
 * results, of which there are as few as weights, are transformed back:
 *
 *     x [B, R, o.., C, k..] -> v [a, B, R tiles, C]
 *     g [B, R, o.., M]      -> z [a, B, R tiles, M]
 *     sum over R tiles      -> u [a, B, C, M] -> y [B, C, M, k..]
 *
 * What lies between is made in strips of rows of tiles, whose results are added up in one place. */
#include <string.h>

#include "winograd.h"

/* The points of form2 in another order. In the same one, x would be transformed as it is for the
 * forward convolution, and held from there, four times as large as it is. */
const WinogradForm form_taps = {
    .tile = 2,
    .points = 4,
    .windows = 2,
    .b = {{0, -1, 0, 1}, {0, -1, 1, 0}, {0, 1, 1, 0}, {1, 0, -1, 0}},
    .g = {{0, 0, 1}, {.5, -.5, .5}, {.5, .5, .5}, {1, 0, 0}},
    .a = {{0, 1, 1, 1}, {1, -1, 1, 0}},
};

/* g as [B, R, tiles, m.., M], a pair of axes for each window. */
static Node *tiled_g(Context *c, const ProductAxes *s, const WinogradForm *f)
{
    int perm[INGOT_MAX_RANK], n = 0;
    Node *dims[INGOT_MAX_RANK];
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    (void)axes_in_order(s, (AxisGroup[]){BATCH, ROW, OUT, MAP, SUM, TAP, ONE}, perm);
    Node *g = ingot_permute(c, s->w, perm);
    dims[n++] = group_size(c, s, s->w, BATCH);
    dims[n++] = group_size(c, s, s->w, ROW);
    for (int i = 0; i < s->n[OUT]; i++) {
        dims[n] = s->w->shape[s->axis[OUT][i]];
        hi[n++] = rows_of_tiles(s, f, i) * f->tile - results_of(s, i);
    }
    dims[n++] = group_size(c, s, s->w, MAP);
    g = ingot_pad_c(c, ingot_reshape(c, g, n, dims), lo, hi, 0);
    n = 2;
    for (int i = 0; i < s->n[OUT]; i++) {
        dims[n++] = idx(c, rows_of_tiles(s, f, i));
        dims[n++] = idx(c, f->tile);
    }
    dims[n++] = g->shape[g->rank - 1];
    return ingot_reshape(c, g, n, dims);
}

/* z [points.., B, R, tiles.., M] of tiled_g() */
static Node *transformed_g(Context *c, const ProductAxes *s, const WinogradForm *f, Node *g)
{
    const int nw = s->n[OUT];
    Node *dims[INGOT_MAX_RANK], *all[INGOT_MAX_RANK], *t[MAX_TILE], *row[MAX_POINTS];
    int64_t at[INGOT_MAX_RANK];
    int n = 0;
    for (int i = 0; i < nw; i++)
        dims[n++] = idx(c, 1);
    for (int i = 0; i < g->rank; i++) {
        at[i] = WHOLE;
        if (i < 2 || i % 2 == 0 || i == g->rank - 1) /* B, R, tiles, M */
            dims[n++] = g->shape[i];
    }
    for (int i = 0; i < n; i++)
        all[i] = i < nw ? idx(c, f->points) : dims[i];
    for (int j = 0; j < (nw > 1 ? f->tile : 1); j++) {
        Node *d[MAX_TILE];
        for (int i = 0; i < f->tile; i++) {
            at[3] = i;
            if (nw > 1)
                at[5] = j;
            d[i] = ingot_expand(c, ingot_reshape(c, elements_at(c, g, at), n, dims), n, all);
        }
        for (int p = 0; p < f->points; p++)
            row[p] = point_row(c, f->tile, d, (double[]){f->a[0][p], f->a[1][p]});
        t[j] = chosen_row(c, 0, f->points, row);
    }
    for (int p = 0; p < f->points && nw > 1; p++)
        row[p] = point_row(c, f->tile, t, (double[]){f->a[0][p], f->a[1][p]});
    return nw > 1 ? chosen_row(c, 1, f->points, row) : t[0];
}

enum { CHANNELS = 3 + MAX_WINDOWS }; /* the axis of C, behind points, B, R and tiles */

/* [points.., B, R, tiles.., channels] as [points, B, R, tiles.., C, M], of which it has one. */
static Node *as_factor(Context *c, const ProductAxes *s, Node *v, bool maps)
{
    const int nw = s->n[OUT];
    Node *dims[CHANNELS + 2];
    dims[0] = idx(c, 1);
    for (int i = 0; i < nw; i++)
        dims[0] = idx_mul(c, dims[0], v->shape[i]);
    for (int i = 1; i < CHANNELS; i++)
        dims[i] = i < 3 + nw ? v->shape[nw + i - 1] : idx(c, 1);
    dims[CHANNELS] = maps ? idx(c, 1) : v->shape[v->rank - 1];
    dims[CHANNELS + 1] = maps ? v->shape[v->rank - 1] : idx(c, 1);
    return ingot_contiguous(c, ingot_reshape(c, v, CHANNELS + 2, dims));
}

/* u [points, B, C, M] of so many rows of tiles from first on. */
static Node *strip_of_taps(Rewrite *r, const ProductAxes *s, Node *x, Node *g, int64_t first,
                           int64_t rows)
{
    Context *c = r->c;
    Node *part[2] = {x, g}, *all[CHANNELS + 2];
    for (int k = 0; k < 2; k++) {
        Node *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
        for (int i = 0; i < part[k]->rank; i++) {
            begin[i] = idx(c, i == 2 ? first : 0);
            size[i] = i == 2 ? idx(c, rows) : part[k]->shape[i];
        }
        part[k] = ingot_shrink(c, part[k], begin, size);
    }
    Node *v = as_factor(c, s, transformed_x(c, s, &form_taps, part[0]), false);
    Node *z = as_factor(c, s, transformed_g(c, s, &form_taps, part[1]), true);
    unsigned summed = 0;
    for (int i = 0; i < CHANNELS + 2; i++) {
        all[i] = i == CHANNELS + 1 ? z->shape[i] : v->shape[i];
        summed |= i > 1 && i < CHANNELS ? 1u << i : 0;
    }
    Node *u =
        ingot_mul(c, ingot_expand(c, v, CHANNELS + 2, all), ingot_expand(c, z, CHANNELS + 2, all));
    u = ingot_reduce(c, INGOT_REDUCE_ADD, u, summed, true);
    no_window(r, u);
    return ingot_reshape(c, u, 4, (Node *[]){all[0], all[1], all[CHANNELS], all[CHANNELS + 1]});
}

/* u [points, B, C, M] back to [B, C, M, taps..]: sums over points of G[a,k] u[a]. */
static Node *taps_of(Context *c, const ProductAxes *s, const WinogradForm *f, Node *u)
{
    const int nw = s->n[OUT], second = nw > 1 ? f->points : 1, n = 3 + nw;
    Node *dims[5] = {u->shape[1], u->shape[2], u->shape[3], idx(c, 1), idx(c, 1)}, *all[5];
    Node *t[MAX_POINTS], *d[MAX_POINTS], *row[TAPS];
    int64_t at[4] = {0, WHOLE, WHOLE, WHOLE};
    for (int i = 0; i < n; i++)
        all[i] = i < 3 ? dims[i] : idx(c, TAPS);
    for (int b = 0; b < second; b++) {
        for (int a = 0; a < f->points; a++) {
            at[0] = a * second + b;
            d[a] = ingot_expand(c, ingot_reshape(c, elements_at(c, u, at), n, dims), n, all);
        }
        for (int k = 0; k < TAPS; k++) {
            double column[MAX_POINTS];
            for (int a = 0; a < f->points; a++)
                column[a] = f->g[a][k];
            row[k] = row_terms(c, f->points, d, column, 0, 1, 1);
        }
        t[b] = chosen_row(c, 3, TAPS, row);
    }
    for (int k = 0; k < TAPS && nw > 1; k++) {
        double column[MAX_POINTS];
        for (int a = 0; a < f->points; a++)
            column[a] = f->g[a][k];
        row[k] = row_terms(c, f->points, t, column, 0, 1, 1);
    }
    return nw > 1 ? chosen_row(c, 4, TAPS, row) : t[0];
}

/* [B, C, M, taps..] with the axes of the reduce. */
static Node *as_reduced(Context *c, const ProductAxes *s, Node *n, Node *y)
{
    int order[INGOT_MAX_RANK], perm[INGOT_MAX_RANK];
    Node *dims[INGOT_MAX_RANK];
    const int rank = axes_in_order(s, (AxisGroup[]){BATCH, SUM, MAP, TAP, ONE, ROW, OUT}, order);
    for (int i = 0; i < rank; i++) {
        dims[i] = n->shape[order[i]];
        perm[order[i]] = i;
    }
    return ingot_permute(c, ingot_reshape(c, y, rank, dims), perm);
}

Node *winograd_taps(Rewrite *r, Node *n, bool try)
{
    Context *c = r->c;
    const WinogradForm *f = &form_taps;
    const ProductAxes *s = winograd_taps_axes(r, n);
    if (!s || try)
        return s ? n : NULL;
    const int64_t step = rows_of_strip(r, n, s, f), all = rows_of_tiles(s, f, 0);
    Node *x = tiled_x(r, s, f), *g = tiled_g(c, s, f), *u = NULL;
    for (int64_t at = 0; at < all; at += step) {
        Node *part = strip_of_taps(r, s, x, g, at, all - at < step ? all - at : step);
        u = ingot_contiguous(c, u ? ingot_add(c, u, part) : part);
    }
    return as_reduced(c, s, n, taps_of(c, s, f, u));
}
