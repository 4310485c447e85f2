/*
 * onnx_sample.c - ONNX operators that read an image at computed places: GridSample, AffineGrid.
 */
#include <string.h>

#include "onnx.h"

#define X n->in[0]
#define Y n->in[1]

/* ---- GridSample ----------------------------------------------------------------------------- */

typedef enum { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } Padding;

/* Along one spatial axis: places of the taps (as floats) and their weights, all [N, 1, out..]. */
typedef struct {
    int n;
    ingot_tensor *place[4], *weight[4], *inside[4];
} Taps;

typedef struct {
    Padding padding;
    bool align;
    const char *mode;
} Sampling;

/* Reflected between lo and hi as often as it takes. */
static ingot_tensor *reflect(Lowering *n, ingot_tensor *x, ingot_tensor *lo, ingot_tensor *hi)
{
    ingot_tensor *range = ingot_sub(n->c, hi, lo), *period = ingot_mul_c(n->c, range, 2);
    ingot_tensor *whole = ingot_max(n->c, period, like(n, x, 1e-30));
    ingot_tensor *d = ingot_abs(n->c, ingot_sub(n->c, x, lo));
    d = ingot_sub(n->c, d, ingot_mul(n->c, ingot_floor(n->c, ingot_div(n->c, d, whole)), whole));
    return ingot_add(n->c, lo, ingot_min(n->c, d, ingot_sub(n->c, period, d)));
}

/* The weights of four neighbours, t being the place between the middle two. */
static void cubic_weights(Lowering *n, ingot_tensor *t, ingot_tensor **w)
{
    const double a = -0.75;
    for (int k = 0; k < 4; k++) {
        ingot_tensor *x = ingot_abs(n->c, ingot_add_c(n->c, t, 1 - k)), *y;
        if (k == 1 || k == 2) { /* ((a + 2) x - (a + 3)) x x + 1 */
            y = ingot_add_c(n->c, ingot_mul_c(n->c, x, a + 2), -(a + 3));
            y = ingot_add_c(n->c, ingot_mul(n->c, ingot_mul(n->c, y, x), x), 1);
        } else { /* ((a x - 5 a) x + 8 a) x - 4 a */
            y = ingot_add_c(n->c, ingot_mul_c(n->c, x, a), -5 * a);
            y = ingot_add_c(n->c, ingot_mul(n->c, y, x), 8 * a);
            y = ingot_add_c(n->c, ingot_mul(n->c, y, x), -4 * a);
        }
        w[k] = y;
    }
}

static Taps axis_taps(Lowering *n, const Sampling *s, ingot_tensor *grid, ingot_dim *size)
{
    Taps taps = {.n = 1};
    ingot_tensor *length = as(n, ingot_from_dim(n->c, size), ingot_dtype_of(grid));
    ingot_tensor *last = ingot_add_c(n->c, length, -1), *zero = like(n, grid, 0), *x;
    ingot_tensor *one_up = ingot_add_c(n->c, grid, 1);
    if (s->align)
        x = ingot_mul(n->c, ingot_mul_c(n->c, one_up, 0.5), last);
    else
        x = ingot_mul_c(n->c, ingot_add_c(n->c, ingot_mul(n->c, one_up, length), -1), 0.5);
    ingot_tensor *lo = s->align ? zero : like(n, grid, -0.5);
    ingot_tensor *hi = s->align ? last : ingot_add_c(n->c, length, -0.5);
    bool nearest = strcmp(s->mode, "nearest") == 0, is_cubic = strcmp(s->mode, "cubic") == 0;
    if (nearest)
        x = ingot_round(n->c, x);
    if (s->padding == PAD_BORDER) {
        /* A cubic's taps are held at the border, not the place between them: from two steps outside
         * on all are the same. */
        double reach = is_cubic ? 2 : 0;
        x = ingot_max(n->c, x, like(n, x, -reach));
        x = ingot_min(n->c, x, ingot_add_c(n->c, last, reach));
    }
    if (s->padding == PAD_REFLECTION)
        x = reflect(n, x, lo, hi);
    ingot_tensor *left = nearest ? x : ingot_floor(n->c, x), *t = ingot_sub(n->c, x, left);
    if (is_cubic) {
        taps.n = 4;
        cubic_weights(n, t, taps.weight);
    } else if (!nearest) {
        taps.n = 2;
        taps.weight[0] = ingot_sub(n->c, like(n, t, 1), t);
        taps.weight[1] = t;
    }
    for (int k = 0; k < taps.n; k++) {
        ingot_tensor *p = ingot_add_c(n->c, left, is_cubic ? k - 1 : k);
        if (s->padding == PAD_ZEROS)
            taps.inside[k] = ingot_and(n->c, ingot_ge(n->c, p, zero), ingot_le(n->c, p, last));
        else if (s->padding == PAD_REFLECTION)
            p = ingot_trunc(n->c, reflect(n, p, lo, hi));
        taps.place[k] = as(n, ingot_min(n->c, ingot_max(n->c, p, zero), last), INGOT_I64);
    }
    return taps;
}

/* The sum over all combinations of taps from spatial axis `axis` on; index holds those before. */
static ingot_tensor *sample(Lowering *n, ingot_tensor *x, const Taps *taps, int axis, int axes,
                            ingot_tensor **index)
{
    ingot_tensor *sum = NULL;
    if (axis == axes)
        return ingot_gather(n->c, x, index);
    for (int k = 0; k < taps[axis].n; k++) {
        index[axis + 2] = taps[axis].place[k];
        ingot_tensor *v = sample(n, x, taps, axis + 1, axes, index);
        if (taps[axis].inside[k])
            v = ingot_where(n->c, taps[axis].inside[k], v, like(n, v, 0));
        if (taps[axis].weight[k])
            v = ingot_mul(n->c, v, taps[axis].weight[k]);
        sum = sum ? ingot_add(n->c, sum, v) : v;
    }
    return sum;
}

ingot_tensor *onnx_grid_sample(Lowering *n)
{
    int rank = ingot_rank(X), axes = rank - 2;
    ingot_tensor *index[INGOT_MAX_RANK];
    ingot_dim *lead[INGOT_MAX_RANK];
    Taps taps[3];
    Sampling s = {.align = attr_int(n, "align_corners", 0) != 0,
                  .mode = attr_string(n, "mode", n->version < 20 ? "bilinear" : "linear")};
    const char *padding = attr_string(n, "padding_mode", "zeros");
    s.padding = strcmp(padding, "border") == 0       ? PAD_BORDER
                : strcmp(padding, "reflection") == 0 ? PAD_REFLECTION
                                                     : PAD_ZEROS;
    if (strcmp(s.mode, "bicubic") == 0)
        s.mode = "cubic";
    if (axes < 1 || ingot_rank(Y) != rank || !dim_is(ingot_shape(Y, rank - 1), axes))
        return fault(n, "its input has rank %d, which its grid does not fit", rank);
    if (axes > 3)
        return unsupported(n, "more than three spatial axes are not supported");
    ingot_tensor *x = is_float(X) ? widen(n, X) : as(n, X, INGOT_F32),
                 *grid = as(n, Y, ingot_dtype_of(x));
    if (strcmp(s.mode, "nearest") == 0)
        x = X; /* no arithmetic: an integer of more bits than a float has stays what it is */
    lead[0] = ingot_shape(X, 0);
    lead[1] = ingot_shape(X, 1);
    for (int a = 0; a < axes; a++) {
        /* the grid's last axis counts spatial axes from the last */
        ingot_tensor *g = ingot_slice(n->c, grid, rank - 1, dim(n, axes - 1 - a), dim(n, 1), 1);
        g = ingot_unsqueeze(n->c, ingot_squeeze(n->c, g, rank - 1), 1);
        taps[a] = axis_taps(n, &s, g, ingot_shape(X, a + 2));
        lead[a + 2] = dim(n, 1);
    }
    if (s.padding == PAD_ZEROS && has_no_pixels(X)) {
        for (int a = 0; a < axes; a++)
            lead[a + 2] = ingot_shape(Y, a + 1);
        return ingot_expand(n->c, like(n, X, 0), rank, lead);
    }
    index[0] = ingot_iota(n->c, rank, lead, 0);
    index[1] = ingot_iota(n->c, rank, lead, 1);
    return as(n, sample(n, x, taps, 0, axes, index), ingot_dtype_of(X));
}

/* ---- AffineGrid ----------------------------------------------------------------------------- */

/* The coordinates of `length` pixels along an axis. One pixel, whose centre is both corners, lies
 * at 1, as in ONNX Runtime: the standard divides by zero there. */
static ingot_tensor *affine_axis(Lowering *n, ingot_tensor *i, ingot_tensor *length, bool align)
{
    ingot_tensor *last, *after;
    if (!align) {
        i = ingot_div(n->c, ingot_add_c(n->c, ingot_mul_c(n->c, i, 2), 1), length);
        return ingot_add_c(n->c, i, -1);
    }
    last = ingot_add_c(n->c, length, -1);
    after = ingot_mul_c(n->c, ingot_sub(n->c, last, i), 2);
    last = ingot_max_c(n->c, last, 1);
    return ingot_add_c(n->c, ingot_neg(n->c, ingot_div(n->c, after, last)), 1);
}

/* Evenly spaced from -1 to 1 in the last column order x, y(, z); theta maps them. */
ingot_tensor *onnx_affine_grid(Lowering *n)
{
    ingot_dim *dims[INGOT_MAX_RANK], *const *size;
    int64_t declared[INGOT_MAX_RANK], k, step;
    int rank, count;
    ingot_dtype dtype = ingot_dtype_of(X);
    ingot_tensor *sum = NULL;
    bool align = attr_int(n, "align_corners", 0) != 0;
    if (ingot_rank(X) != 3 || !ingot_dim_is_const(ingot_shape(X, 1), &k) || k < 2 || k > 3)
        return fault(n, "its matrices have to be [N, 2, 3] or [N, 3, 4]");
    if (ingot_contents(n->c, Y, dims, 5) >= 0) {
        count = dims_in(n, 1, &size);
        if (count != k + 2)
            return fault(n, "its size has %d entries, not %lld", count, (long long)k + 2);
        memcpy(dims, size + 2, (size_t)k * sizeof *dims);
    } else if (declared_shape(n, 0, &rank, declared) && rank == k + 2) {
        for (int a = 0; a < k; a++) {
            dims[a] = dim(n, declared[a + 1]);
            if (!size_is(n, 0, a + 1, list_entry(n, 1, a + 2, 0), dims[a]))
                return ingot_poison(n->c);
        }
    } else if (dims_in(n, 1, &size) < 0) {
        return ingot_poison(n->c);
    }
    for (int64_t j = 0; j <= k; j++) {
        /* column j of theta, [N, 1.., k], times the coordinate along spatial axis k - 1 - j */
        ingot_tensor *column = ingot_slice(n->c, X, 2, dim(n, j), dim(n, 1), 1);
        ingot_dim *wide[INGOT_MAX_RANK] = {ingot_shape(X, 0)};
        for (step = 1; step <= k; step++)
            wide[step] = dim(n, 1);
        wide[k + 1] = dim(n, k);
        column = ingot_reshape(n->c, column, (int)k + 2, wide);
        if (j < k) {
            ingot_dim *d = dims[k - 1 - j];
            ingot_tensor *i = as(n, ingot_iota(n->c, 1, &d, 0), dtype), *at;
            at = affine_axis(n, i, as(n, ingot_from_dim(n->c, d), dtype), align);
            at = align_axis(n, at, (int)(k - j), (int)k + 2);
            column = ingot_mul(n->c, column, at);
        }
        sum = sum ? ingot_add(n->c, sum, column) : column;
    }
    for (int a = 0; a < k; a++)
        dims[k - a] = dims[k - 1 - a];
    dims[0] = ingot_shape(X, 0);
    dims[k + 1] = dim(n, k);
    return ingot_expand(n->c, sum, (int)k + 2, dims);
}
