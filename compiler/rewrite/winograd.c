/* winograd.c - a convolution of stride 1 and three taps in fewer products (Winograd, F(m, 3)).
 *
 * m neighbouring results of a window of 3 take m + 2 products in place of 3 m:
 *
 *     y[m t + e] = sum over a of A[e,a] * ( sum over c of (sum over i of B[a,i] x[m t + i]) * (sum over k of G[a,k] w[k]) )
 *
 * and along two axes (m + 2)^2 in place of 9 m^2.  B, G and A are small and constant: the rows of B and A are chosen by a
 * coordinate, so that copies along that axis (UPCAST) are what each row adds up and nothing else.  What is left is three
 * kernels: x transformed; products of matrices, one for each a; their results transformed back.
 *
 *     x [B, R, o.., C, k..] -> v [a, B, R tiles, C]
 *     w [B, M, C, k..]      -> u [a, B, M, C]            when the model is compiled
 *     sum over C            -> [a, B, R tiles, M] -> y [B, R, o.., M]
 *
 * A window is known by its coordinates: what is read at (o + 1, k) is what is read at (o, k + 1). */
#include <math.h>
#include <string.h>

#include "rewrite.h"

enum { TAPS = 3, MAX_TILE = 4, MAX_POINTS = MAX_TILE + TAPS - 1, MAX_WINDOWS = 2, MAX_STEPS = 64 };

typedef struct {
    int tile, points; /* m and m + 2 */
    double b[MAX_POINTS][MAX_POINTS], g[MAX_POINTS][TAPS], a[MAX_TILE][MAX_POINTS];
} Form;

/* Of the points 0, 1, -1, (2, -2,) infinity. */
static const Form form2 = {.tile = 2,
                           .points = 4,
                           .b = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
                           .g = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}},
                           .a = {{1, 1, 1, 0}, {0, 1, -1, -1}}};
static const Form form4 = {
    .tile = 4,
    .points = 6,
    .b = {{4, 0, -5, 0, 1, 0},
          {0, -4, -4, 1, 1, 0},
          {0, 4, -4, -1, 1, 0},
          {0, -2, -1, 2, 1, 0},
          {0, 2, -1, -2, 1, 0},
          {0, 4, 0, -5, 0, 1}},
    .g = {{1. / 4, 0, 0},
          {-1. / 6, -1. / 6, -1. / 6},
          {-1. / 6, 1. / 6, -1. / 6},
          {1. / 24, 1. / 12, 1. / 6},
          {1. / 24, -1. / 12, 1. / 6},
          {0, 0, 1}},
    .a = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}};

/* The axes of the product, by what moves with them. */
typedef struct Axes {
    Node *x, *w; /* its operands, of size 1 along axes that they do not move with */
    int batch[INGOT_MAX_RANK], nbatch; /* both */
    int row[INGOT_MAX_RANK], nrow;     /* x alone */
    int map[INGOT_MAX_RANK], nmap;     /* w alone */
    int sum[INGOT_MAX_RANK], nsum;     /* both, and it is summed */
    int out[MAX_WINDOWS], tap[MAX_WINDOWS], nwindow;
    int one[INGOT_MAX_RANK], none; /* neither */
} Axes;

/* ---- windows ------------------------------------------------------------------------------------ */

/* An index tensor at coordinates; NULL: it is more than arithmetic on them. */
static Node *index_at(Context *c, Node *t, Node *const *at, int depth)
{
    Node *src[4], *below[INGOT_MAX_RANK], *valid = node_bool(c, true);
    if (t->op == OP_CONST || (t->dtype == INGOT_INDEX && !t->rank))
        return t;
    if (t->op == OP_IOTA)
        return node_cast(c, at[t->arg.i], t->dtype);
    if (depth > MAX_STEPS || dtype_is_float(t->dtype))
        return NULL;
    if (is_move(t) && t->op != OP_GATHER) {
        movement_coords(c, t, at, below, &valid);
        return node_is_const_i(valid, 1) ? index_at(c, t->src[0], below, depth + 1) : NULL;
    }
    if (!op_is_alu(t->op) || t->op == OP_CUSTOM || t->nsrc > 4)
        return NULL;
    for (uint32_t i = 0; i < t->nsrc; i++)
        if (!(src[i] = index_at(c, t->src[i], at, depth + 1)))
            return NULL;
    return t->op == OP_CAST ? node_cast(c, src[0], t->dtype)
                            : node_alu(c, t->op, t->dtype, (int)t->nsrc, src);
}

/* Where x at these coordinates lies below all that moves it: gives that, its coordinates, and whether it is inside. */
static Node *source_of(Context *c, Node *x, Node *const *coords, Node **at, Node **inside)
{
    Node *below[INGOT_MAX_RANK];
    memcpy((void *)at, (void *)(uintptr_t)coords, (size_t)x->rank * sizeof *at);
    *inside = node_bool(c, true);
    while (is_move(x)) {
        Node *from = x->src[0];
        if (x->op == OP_GATHER) {
            for (int i = 0; i < from->rank; i++) {
                Node *v = index_at(c, x->src[1 + i], at, 0);
                if (!v)
                    return x;
                v = idx_max(c, node_cast(c, v, INGOT_INDEX), idx(c, 0));
                below[i] = idx_min(c, v, idx_sub(c, from->shape[i], idx(c, 1)));
            }
        } else {
            Node *valid = node_bool(c, true);
            movement_coords(c, x, at, below, &valid);
            *inside = bool_and(c, *inside, valid);
        }
        memcpy((void *)at, (void *)below, (size_t)from->rank * sizeof *at);
        x = from;
    }
    return x;
}

/* Is x at (o + 1, k) what it is at (o, k + 1)? */
static bool is_window(Context *c, Node *x, int out, int tap)
{
    enum { FIRST_RANGE = 1 << 25 };
    int64_t size, taps;
    if (!idx_value(x->shape[out], &size) || !idx_value(x->shape[tap], &taps) || size < 2)
        return false;
    for (int64_t k = 0; k + 1 < taps; k++) {
        Node *at[2][INGOT_MAX_RANK], *coords[INGOT_MAX_RANK], *inside[2], *leaf[2];
        Node *o = range_new(c, FIRST_RANGE + out, idx(c, size - 1));
        for (int i = 0; i < x->rank; i++)
            coords[i] =
                idx_is(x->shape[i], 1) ? idx(c, 0) : range_new(c, FIRST_RANGE + i, x->shape[i]);
        for (int side = 0; side < 2; side++) {
            coords[out] = side ? o : idx_add(c, o, idx(c, 1));
            coords[tap] = idx(c, k + side);
            leaf[side] = source_of(c, x, coords, at[side], &inside[side]);
        }
        if (leaf[0] != leaf[1] || inside[0] != inside[1] || is_move(leaf[0]))
            return false;
        for (int i = 0; i < leaf[0]->rank; i++)
            if (at[0][i] != at[1][i])
                return false;
    }
    return true;
}

/* ---- the product ---------------------------------------------------------------------------------- */

static bool moves_with(Node *f, int axis)
{
    return !idx_is(f->shape[axis], 1);
}

static bool sort_axes(Context *c, Node *n, Axes *s)
{
    Node *product = n->src[0];
    unsigned reduced = reduce_axes(n);
    int64_t size;
    for (int i = 0; i < product->rank; i++) {
        bool x = moves_with(s->x, i), w = moves_with(s->w, i), sum = reduced >> i & 1;
        if (sum && x != w)
            return false;
        if ((w || sum) && !idx_value(product->shape[i], &size))
            return false;
        if (!x && !w)
            s->one[s->none++] = i;
        else if (sum)
            s->sum[s->nsum++] = i;
        else if (x && w)
            s->batch[s->nbatch++] = i;
        else if (x)
            s->row[s->nrow++] = i;
        else
            s->map[s->nmap++] = i;
    }
    /* of what is summed, windows; each axis is in one */
    for (int k = 0; k < s->nsum; k++)
        for (int o = 0; o < s->nrow; o++) {
            if (!is_window(c, s->x, s->row[o], s->sum[k]))
                continue;
            if (!idx_is(product->shape[s->sum[k]], TAPS) || s->nwindow == MAX_WINDOWS)
                return false;
            s->out[s->nwindow] = s->row[o];
            s->tap[s->nwindow++] = s->sum[k];
            s->nrow--;
            s->nsum--;
            memmove(s->row + o, s->row + o + 1, (size_t)(s->nrow - o) * sizeof *s->row);
            memmove(s->sum + k, s->sum + k + 1, (size_t)(s->nsum - k) * sizeof *s->sum);
            k--;
            break;
        }
    return s->nwindow > 0 && s->nsum > 0 && s->nmap > 0;
}

/* Without such an axis there is no window to look for. */
static bool has_taps(Node *n)
{
    bool some = false;
    for (int i = 0; i < n->src[0]->rank; i++)
        some |= (reduce_axes(n) >> i & 1) && idx_is(n->src[0]->shape[i], TAPS);
    return some;
}

static bool sort_product(Context *c, Node *n, Axes *s)
{
    Node *product = n->src[0];
    *s = (Axes){0};
    if ((n->arg.i & 255) != INGOT_REDUCE_ADD || n->dtype != INGOT_F32 || product->op != OP_MUL ||
        !has_taps(n))
        return false;
    for (int side = 0; side < 2; side++) {
        Axes one = {.x = compact_of(product->src[side]), .w = compact_of(product->src[1 - side])};
        if (!is_constant(one.w, 0) || is_constant(one.x, 0) || !sort_axes(c, n, &one))
            continue;
        *s = one;
        return true;
    }
    return false;
}

/* The axes of a product that has windows, or NULL. */
static const Axes *windows_of(Rewrite *r, Node *n)
{
    if (r->product != n) {
        Axes *s = NEW(r->a, Axes);
        r->product = n;
        r->windows = sort_product(r->c, n, s) ? s : NULL;
    }
    return r->windows;
}

/* ---- transforms ----------------------------------------------------------------------------------- */

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

/* The terms of a row at first, first + step .. times a sign, those that are added before those that are taken away. */
static Node *terms(Context *c, int n, Node *const *d, const double *row, int first, int step,
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
static Node *point_row(Context *c, int n, Node *const *d, const double *row)
{
    double even = sign_of(n, row, 0), odd = sign_of(n, row, 1);
    if (even == 0 || odd == 0)
        return terms(c, n, d, row, 0, 1, 1);
    Node *e = terms(c, n, d, row, 0, 2, even), *o = terms(c, n, d, row, 1, 2, odd);
    return even < 0 && odd > 0 ? plus(c, o, even, e) : plus(c, plus(c, NULL, even, e), odd, o);
}

/* What belongs to p and to -p are neighbours: their sums and differences are the same in all rows. */
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
static Node *chosen(Context *c, int axis, int n, Node *const *row)
{
    Node *ones[INGOT_MAX_RANK], *y = row[n - 1];
    for (int i = 0; i < y->rank; i++)
        ones[i] = i == axis ? idx(c, n) : idx(c, 1);
    Node *which = ingot_iota(c, y->rank, ones, axis);
    for (int i = n - 1; i-- > 0;)
        y = ingot_where(c, ingot_eq(c, which, ingot_scalar_i(c, INGOT_I64, i)), row[i], y);
    return y;
}

/* ---- shapes ------------------------------------------------------------------------------------- */

static Node *size_of(Context *c, Node *x, int n, const int *axis)
{
    Node *size = idx(c, 1);
    for (int i = 0; i < n; i++)
        size = idx_mul(c, size, x->shape[axis[i]]);
    return size;
}

static int list(int *perm, int at, int n, const int *axis)
{
    memcpy(perm + at, axis, (size_t)n * sizeof *axis);
    return at + n;
}

/* Element i along an axis, which stays as one of size 1. */
static Node *element(Context *c, Node *x, int axis, int64_t i)
{
    Node *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    for (int d = 0; d < x->rank; d++) {
        begin[d] = idx(c, d == axis ? i : 0);
        size[d] = d == axis ? idx(c, 1) : x->shape[d];
    }
    return ingot_shrink(c, x, begin, size);
}

/* Along a window. */
static int64_t results_of(const Axes *s, int window)
{
    int64_t size = 0;
    (void)idx_value(s->x->shape[s->out[window]], &size);
    return size;
}

/* x as [B, R, tiles, m.., C, taps..], a pair of axes for each window. */
static Node *tiled(Context *c, const Axes *s, const Form *f)
{
    int perm[INGOT_MAX_RANK], n = 0;
    Node *dims[INGOT_MAX_RANK], *x = s->x;
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0}, size;
    n = list(perm, n, s->nbatch, s->batch);
    n = list(perm, n, s->nrow, s->row);
    n = list(perm, n, s->nwindow, s->out);
    n = list(perm, n, s->nsum, s->sum);
    n = list(perm, n, s->nwindow, s->tap);
    n = list(perm, n, s->none, s->one);
    n = list(perm, n, s->nmap, s->map);
    x = ingot_permute(c, x, perm);
    n = 0;
    dims[n++] = size_of(c, s->x, s->nbatch, s->batch);
    dims[n++] = size_of(c, s->x, s->nrow, s->row);
    for (int i = 0; i < s->nwindow; i++) {
        dims[n] = s->x->shape[s->out[i]];
        size = results_of(s, i);
        hi[n++] = (f->tile - size % f->tile) % f->tile;
    }
    dims[n++] = size_of(c, s->x, s->nsum, s->sum);
    for (int i = 0; i < s->nwindow; i++)
        dims[n++] = idx(c, TAPS);
    x = ingot_pad_c(c, ingot_reshape(c, x, n, dims), lo, hi, 0);
    n = 2;
    for (int i = 0; i < s->nwindow; i++) {
        dims[n++] = idx_div(c, x->shape[2 + i], idx(c, f->tile));
        dims[n++] = idx(c, f->tile);
    }
    dims[n++] = x->shape[2 + s->nwindow];
    for (int i = 0; i < s->nwindow; i++)
        dims[n++] = idx(c, TAPS);
    return ingot_reshape(c, x, n, dims);
}

/* v [points.., B, R, tiles.., C] of tiled() */
static Node *transformed_x(Context *c, const Axes *s, const Form *f, Node *x)
{
    Node *dims[INGOT_MAX_RANK], *all[INGOT_MAX_RANK];
    int nw = s->nwindow, n = 0, sum = 2 + 2 * nw;
    for (int i = 0; i < nw; i++)
        dims[n++] = idx(c, 1);
    dims[n++] = x->shape[0];
    dims[n++] = x->shape[1];
    for (int i = 0; i < nw; i++)
        dims[n++] = x->shape[2 + 2 * i];
    dims[n++] = x->shape[sum];
    for (int i = 0; i < n; i++) /* all in one shape: what they share is computed once */
        all[i] = i < nw ? idx(c, f->points) : dims[i];
    Node *d[MAX_POINTS][MAX_POINTS], *t[MAX_POINTS], *row[MAX_POINTS];
    int second = nw > 1 ? f->points : 1;
    for (int j = 0; j < second; j++) {
        for (int i = 0; i < f->points; i++) {
            const int point[MAX_WINDOWS] = {i, j};
            Node *e = x;
            for (int w = 0; w < nw; w++) {
                int tap = point[w] < TAPS ? point[w] : TAPS - 1;
                e = element(c, element(c, e, 3 + 2 * w, point[w] - tap), sum + 1 + w, tap);
            }
            d[j][i] = ingot_expand(c, ingot_reshape(c, e, n, dims), n, all);
        }
        for (int a = 0; a < f->points; a++)
            row[a] = point_row(c, f->points, d[j], f->b[a]);
        t[j] = chosen(c, 0, f->points, row);
    }
    if (nw == 1)
        return t[0];
    for (int a = 0; a < f->points; a++)
        row[a] = point_row(c, f->points, t, f->b[a]);
    return chosen(c, 1, f->points, row);
}

/* u [points, B, M, C]; each part is computed for itself. */
static Node *transformed_w(Context *c, const Axes *s, const Form *f)
{
    int perm[INGOT_MAX_RANK], n = 0, nw = s->nwindow;
    Node *dims[INGOT_MAX_RANK], *one[4] = {idx(c, 1)}, *part[MAX_POINTS * MAX_POINTS];
    n = list(perm, n, s->nbatch, s->batch);
    n = list(perm, n, s->nmap, s->map);
    n = list(perm, n, s->nsum, s->sum);
    n = list(perm, n, nw, s->tap);
    n = list(perm, n, s->none, s->one);
    n = list(perm, n, s->nrow, s->row);
    n = list(perm, n, nw, s->out);
    Node *w = ingot_permute(c, s->w, perm);
    dims[0] = size_of(c, s->w, s->nbatch, s->batch);
    dims[1] = size_of(c, s->w, s->nmap, s->map);
    dims[2] = size_of(c, s->w, s->nsum, s->sum);
    for (int i = 0; i < nw; i++)
        dims[3 + i] = idx(c, TAPS);
    w = ingot_reshape(c, w, 3 + nw, dims);
    Node *t[MAX_POINTS][TAPS], *g[TAPS];
    int second = nw > 1 ? TAPS : 1;
    for (int l = 0; l < second; l++) {
        for (int k = 0; k < TAPS; k++) {
            Node *e = element(c, w, 3, k);
            g[k] = ingot_reshape(c, nw > 1 ? element(c, e, 4, l) : e, 3, dims);
        }
        for (int a = 0; a < f->points; a++)
            t[a][l] = point_row(c, TAPS, g, f->g[a]);
    }
    int parts = 0;
    for (int a = 0; a < f->points; a++)
        for (int b = 0; b < (nw > 1 ? f->points : 1); b++)
            part[parts++] = nw > 1 ? point_row(c, TAPS, t[a], f->g[b]) : t[a][0];
    memcpy((void *)(one + 1), (void *)dims, 3 * sizeof *dims);
    for (int i = 0; i < parts; i++)
        part[i] = ingot_reshape(c, part[i], 4, one);
    return concat_of(c, parts, part, 0);
}

/* [points, B, R tiles, M, 1] back to [B, R, out.., M]; of so many results along the first window. */
static Node *transformed_back(Context *c, const Axes *s, const Form *f, Node *product,
                              int64_t results)
{
    int nw = s->nwindow, n = 0;
    Node *dims[INGOT_MAX_RANK], *all[INGOT_MAX_RANK], *t[MAX_POINTS], *m[MAX_POINTS],
        *row[MAX_TILE];
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0}, size;
    dims[n++] = size_of(c, s->x, s->nbatch, s->batch);
    dims[n++] = size_of(c, s->x, s->nrow, s->row);
    for (int i = 0; i < nw; i++) {
        size = i ? results_of(s, i) : results;
        dims[n++] = idx(c, (size + f->tile - 1) / f->tile);
        dims[n++] = idx(c, 1);
    }
    dims[n++] = product->shape[3];
    for (int i = 0; i < n; i++)
        all[i] = i >= 2 && i < n - 1 && i % 2 ? idx(c, f->tile) : dims[i];
    int second = nw > 1 ? f->points : 1;
    for (int b = 0; b < second; b++) {
        for (int a = 0; a < f->points; a++)
            m[a] = ingot_expand(
                c, ingot_reshape(c, element(c, product, 0, a * second + b), n, dims), n, all);
        for (int e = 0; e < f->tile; e++)
            row[e] = result_row(c, f->points, m, f->a[e]);
        t[b] = chosen(c, 3, f->tile, row);
    }
    for (int e = 0; e < f->tile && nw > 1; e++)
        row[e] = result_row(c, f->points, t, f->a[e]);
    Node *y = nw > 1 ? chosen(c, 5, f->tile, row) : t[0];
    n = 2;
    for (int i = 0; i < nw; i++) {
        size = i ? results_of(s, i) : results;
        dims[n] = idx_mul(c, dims[2 + 2 * i], idx(c, f->tile));
        hi[n++] = -((f->tile - size % f->tile) % f->tile);
    }
    dims[n++] = product->shape[3];
    return ingot_pad_c(c, ingot_reshape(c, y, n, dims), lo, hi, 0);
}

/* [B, R, out.., M] with the axes of the reduce. */
static Node *in_place_of(Context *c, const Axes *s, Node *n, Node *y)
{
    int order[INGOT_MAX_RANK], perm[INGOT_MAX_RANK], rank = 0;
    Node *dims[INGOT_MAX_RANK];
    rank = list(order, rank, s->nbatch, s->batch);
    rank = list(order, rank, s->nrow, s->row);
    rank = list(order, rank, s->nwindow, s->out);
    rank = list(order, rank, s->nmap, s->map);
    rank = list(order, rank, s->nsum, s->sum);
    rank = list(order, rank, s->nwindow, s->tap);
    rank = list(order, rank, s->none, s->one);
    for (int i = 0; i < rank; i++) {
        dims[i] = order[i] == s->out[0] ? y->shape[2] : n->shape[order[i]];
        perm[order[i]] = i;
    }
    return ingot_permute(c, ingot_reshape(c, y, rank, dims), perm);
}

/* ---- strips ------------------------------------------------------------------------------------- */

/* What lies in memory between the three kernels, of one row of tiles; of all of them. */
static double bytes_between(const Axes *s, Node *n, const Form *f, double *all)
{
    double bytes = 0, points = 1;
    for (int side = 0; side < 2; side++) {
        Node *of = side ? n : s->x;
        double numbers = sizeof(float);
        for (int i = 0; i < s->nbatch; i++)
            numbers *= (double)of->shape[s->batch[i]]->hi;
        for (int i = 0; i < s->nrow; i++)
            numbers *= (double)of->shape[s->row[i]]->hi;
        for (int i = 0; i < (side ? s->nmap : s->nsum); i++)
            numbers *= (double)of->shape[side ? s->map[i] : s->sum[i]]->hi;
        bytes += numbers;
    }
    for (int i = 0; i < s->nwindow; i++) {
        points *= f->points;
        if (i)
            bytes *= (double)((results_of(s, i) + f->tile - 1) / f->tile);
    }
    *all = bytes * points * (double)((results_of(s, 0) + f->tile - 1) / f->tile);
    return bytes * points;
}

enum { NEAR = 1 << 20, FAR = 4, MOST_STRIPS = 16 };

/* Rows of tiles of a strip: what is near stays in L2; what would not be far from it stays whole, if there is room for it. */
static int64_t rows_of_strip(const Axes *s, Node *n, const Form *f, double room)
{
    double all, row = bytes_between(s, n, f, &all);
    int64_t rows = (results_of(s, 0) + f->tile - 1) / f->tile;
    double most = room < NEAR ? room : NEAR;
    if (all <= (double)FAR * NEAR && all <= room)
        return rows;
    int64_t strips = (int64_t)(all / (row > most ? row : most)) + 1;
    if (strips > MOST_STRIPS)
        strips = MOST_STRIPS;
    if (strips > rows)
        strips = rows;
    return (rows + strips - 1) / strips;
}

/* Rows of tiles from first on, up to as many results along the first window. */
static Node *strip(Context *c, const Axes *s, const Form *f, Node *x, Node *u, int64_t first,
                   int64_t results)
{
    int nw = s->nwindow;
    Node *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK], *rows = size_of(c, s->x, s->nrow, s->row);
    for (int i = 0; i < x->rank; i++) {
        begin[i] = idx(c, i == 2 ? first : 0);
        size[i] = i == 2 ? idx(c, (results + f->tile - 1) / f->tile) : x->shape[i];
    }
    Node *v = transformed_x(c, s, f, ingot_shrink(c, x, begin, size));
    for (int i = 0; i < nw; i++)
        rows = idx_mul(c, rows, v->shape[nw + 2 + i]);
    Node *vd[5] = {u->shape[0], u->shape[1], rows, idx(c, 1), v->shape[v->rank - 1]},
         *ud[5] = {u->shape[0], u->shape[1], idx(c, 1), u->shape[2], u->shape[3]}, *all[5];
    for (int i = 0; i < 5; i++)
        all[i] = idx_is(vd[i], 1) ? ud[i] : vd[i];
    v = ingot_expand(c, ingot_contiguous(c, ingot_reshape(c, v, 5, vd)), 5, all);
    u = ingot_expand(c, ingot_reshape(c, u, 5, ud), 5, all);
    Node *product = ingot_reduce(c, INGOT_REDUCE_ADD, ingot_mul(c, v, u), 1u << 4, true);
    return transformed_back(c, s, f, product, results);
}

/* ---- how long it takes --------------------------------------------------------------------------- */

static double bytes_of(const Node *n)
{
    double bytes = dtype_info[n->dtype].bytes;
    for (int i = 0; i < n->rank; i++)
        bytes *= (double)n->shape[i]->hi;
    return bytes;
}

double product_ram(Node *n)
{
    Node *product = n->op == OP_REDUCE ? n->src[0] : n;
    double bytes = bytes_of(n);
    if (product->op != OP_MUL || (n->arg.i & 255) != INGOT_REDUCE_ADD)
        return 0;
    for (int side = 0; side < 2; side++) {
        Node *x = product->src[side];
        while (is_move(x))
            x = x->src[0];
        bytes += is_constant(x, 0) ? 0 : bytes_of(x);
    }
    return bytes;
}

static double room_for(const Rewrite *r, Node *n)
{
    const double MORE = 1.25;
    return MORE * r->ram - product_ram(n);
}

static double extent(Node *n, int count, const int *axis)
{
    double size = 1;
    for (int i = 0; i < count; i++)
        size *= (double)n->shape[axis[i]]->hi;
    return size;
}

/* Cycles of products, two operations a term, beside weights that come from memory. */
static double products(const Target *t, double terms, double weights)
{
    return 2 * terms / t->rate[UNIT_TILE] + cost_bytes(weights * sizeof(float), INFINITY, t);
}

/* As a part of what the direct form takes. */
static double winograd_time(Rewrite *r, Node *n, const Form *f)
{
    const Target *t = r->target;
    const Axes *w = t->gpu || !t->lanes || t->byte > 0 ? NULL : windows_of(r, n);
    if (!w)
        return INFINITY;
    Axes s = *w;
    double all, row = bytes_between(&s, n, f, &all), batch = extent(s.x, s.nbatch, s.batch),
                sum = extent(s.x, s.nsum, s.sum), maps = extent(s.w, s.nmap, s.map),
                rows = extent(s.x, s.nrow, s.row), out = 1, tiles = 1, taps = 1, points = 1,
                room = room_for(r, n);
    for (int i = 0; i < s.nwindow; i++) {
        out *= (double)results_of(&s, i);
        tiles *= (double)((results_of(&s, i) + f->tile - 1) / f->tile);
        taps *= TAPS;
        points *= f->points;
    }
    double live = row * (double)rows_of_strip(&s, n, f, room), steps = 3 * ceil(all / live);
    if (sum < t->lanes || maps < t->lanes || live > room) /* no lanes for the transforms */
        return INFINITY;
    double direct = products(t, batch * rows * out * sum * maps * taps, batch * sum * maps * taps),
           fewer =
               products(t, batch * rows * tiles * sum * maps * points, batch * sum * maps * points);
    /* each byte between them is written and read, and lines that are written are fetched before */
    return (fewer + cost_bytes(3 * all, live, t) + steps * t->launch) / direct;
}

double winograd2_time(Rewrite *r, Node *n)
{
    return winograd_time(r, n, &form2);
}

double winograd4_time(Rewrite *r, Node *n)
{
    return r->c->precision == INGOT_PRECISION_1E5 ? winograd_time(r, n, &form4) : INFINITY;
}

/* ---- the rewrite ------------------------------------------------------------------------------------ */

static Node *winograd(Rewrite *r, Node *n, bool try, const Form *f)
{
    Context *c = r->c;
    const Axes *w = windows_of(r, n);
    if (!w || try)
        return w ? n : NULL;
    Axes s = *w;
    int64_t step = rows_of_strip(&s, n, f, room_for(r, n)) * f->tile, all = results_of(&s, 0);
    Node *x = tiled(c, &s, f), *u = transformed_w(c, &s, f), *part[MOST_STRIPS];
    int count = 0;
    for (int64_t at = 0; at < all; at += step) {
        int64_t results = all - at < step ? all - at : step;
        part[count++] = in_place_of(c, &s, n, strip(c, &s, f, x, u, at / f->tile, results));
    }
    return count > 1 ? strips(r, count, part, s.out[0]) : part[0];
}

Node *winograd2(Rewrite *r, Node *n, bool try)
{
    return winograd(r, n, try, &form2);
}

Node *winograd4(Rewrite *r, Node *n, bool try)
{
    return winograd(r, n, try, &form4);
}
