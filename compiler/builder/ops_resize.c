/* ops_resize.c - interpolation along one axis (ONNX Resize, torch interpolate): resizing a picture
 * is one call an axis, since all the filters are separable.
 *
 *     y[o] = sum over taps of weight[o][tap] * x[place[o][tap]]
 *
 * Places and weights are computed here, in doubles, and become constants. Nearest neighbours at a
 * whole ratio are a movement of coordinates and need no table. */
#include <math.h>

#include "ops.h"

static double scale_of(const ingot_resize_axis *r, int64_t in)
{
    return r->scale > 0 ? r->scale : (double)r->size / (double)in;
}

/* The next element is another pixel, so of a scale that the file gives, an f32, the quotient is an
 * f32 too: 12 / 2.4 is 5, though an f32 near 2.4 is above it. */
static double quotient(const ingot_resize_axis *r, double x, double scale)
{
    return r->mode == INGOT_RESIZE_NEAREST && r->scale > 0 ? (double)(float)(x / scale) : x / scale;
}

double ingot_resize_source(const ingot_resize_axis *r, int64_t in, int64_t o)
{
    double x = (double)o, n = (double)in, scale = scale_of(r, in), size = (double)r->size;
    double out = r->scale > 0 ? scale * n : size; /* not rounded */
    switch (r->coords) {
    case INGOT_COORDS_ASYMMETRIC: return quotient(r, x, scale);
    case INGOT_COORDS_ALIGN_CORNERS: return out == 1 ? 0 : x * (n - 1) / (out - 1);
    case INGOT_COORDS_PYTORCH_HALF_PIXEL: return size == 1 ? 0 : quotient(r, x + 0.5, scale) - 0.5;
    case INGOT_COORDS_HALF_PIXEL_SYMMETRIC: /* the middle on the middle */
        return quotient(r, x + 0.5 - size / 2, scale) + (n - 1) / 2;
    case INGOT_COORDS_TF_HALF_PIXEL_FOR_NN: return quotient(r, x + 0.5, scale);
    case INGOT_COORDS_TF_CROP_AND_RESIZE: { /* from its start to its end, however many there are */
        double span = (r->roi_end - r->roi_start) * (n - 1);
        double at = r->roi_start * (n - 1) + (size == 1 ? span / 2 : x * span / (size - 1));
        return at < 0 || at > n - 1 ? NAN : at;
    }
    case INGOT_COORDS_HALF_PIXEL:
    default: return quotient(r, x + 0.5, scale) - 0.5;
    }
}

/* Where o lies; far beyond both ends is as good as beyond them by a filter's reach. */
static double source(const ingot_resize_axis *r, int64_t n, int64_t o, int64_t reach)
{
    double at = ingot_resize_source(r, n, o), far = (double)reach;
    return isnan(at) ? 0 : fmax(-far, fmin(at, (double)n + far));
}

/* The kernels at distance x: a triangle, and Keys' cubic with free parameter a. */
static double filter(ingot_resize_mode mode, double x, double a)
{
    x = fabs(x);
    if (mode == INGOT_RESIZE_LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t nearest(ingot_resize_nearest how, double x)
{
    double low = floor(x), part = x - low;
    bool up = how == INGOT_NEAREST_CEIL          ? part > 0
              : how == INGOT_NEAREST_FLOOR       ? false
              : how == INGOT_NEAREST_PREFER_CEIL ? part >= 0.5
                                                 : part > 0.5;
    return (int64_t)low + up;
}

static int64_t clamp(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* [.., n, 1, ..] -> [.., n, ratio, ..] -> [.., n ratio, ..] */
static ingot_tensor *repeat(ingot_context *c, ingot_tensor *x, int axis, int64_t ratio)
{
    ingot_dim *dims[INGOT_MAX_RANK + 1];
    x = ingot_unsqueeze(c, x, axis + 1);
    if (ingot_is_poison(x))
        return x;
    int rank = ops_dims(x, dims);
    dims[axis + 1] = ingot_dim_const(c, ratio);
    return ingot_flatten(c, ingot_expand(c, x, rank, dims), axis, axis + 2);
}

bool ingot_resize_repeats(const ingot_resize_axis *r)
{
    bool moves =
        r->coords == INGOT_COORDS_ALIGN_CORNERS || r->coords == INGOT_COORDS_TF_CROP_AND_RESIZE;
    if (r->mode != INGOT_RESIZE_NEAREST || moves || r->scale < 1 || r->scale > 4096 ||
        r->scale != floor(r->scale))
        return false;
    /* Where o lies moves on by 1 in every `ratio` elements: those of a few are those of all. */
    int64_t ratio = (int64_t)r->scale, n = 4;
    ingot_resize_axis whole = *r;
    whole.size = ratio * n;
    for (int64_t o = 0; o < whole.size; o++)
        if (clamp(nearest(r->nearest, source(&whole, n, o, 1)), n) != o / ratio)
            return false;
    return true;
}

static ingot_tensor *resize_nearest(ingot_context *c, ingot_tensor *x, int axis,
                                    const ingot_resize_axis *r, int64_t in)
{
    int64_t *place = ingot_alloc(c, (size_t)r->size * sizeof *place + 1);
    int64_t ratio = r->size % in == 0 ? r->size / in : 0;
    bool repeats = ratio > 0;
    for (int64_t o = 0; o < r->size; o++) {
        place[o] = clamp(nearest(r->nearest, source(r, in, o, 1)), in);
        repeats &= ratio > 0 && place[o] == o / ratio;
    }
    return repeats ? repeat(c, x, axis, ratio)
                   : ingot_take(c, x, ops_table_i(c, r->size, place), axis);
}

ingot_tensor *ingot_resize(ingot_context *c, ingot_tensor *x, int axis, const ingot_resize_axis *r)
{
    int64_t in;
    if (ingot_is_poison(x) || (axis = ops_axis(c, "resize", x, axis)) < 0)
        return ingot_poison(c);
    if (!ingot_dim_is_const(ingot_shape(x, axis), &in) && ingot_resize_repeats(r))
        return repeat(c, x, axis, (int64_t)r->scale);
    if (!ingot_dim_is_const(ingot_shape(x, axis), &in))
        return ingot_error(c, INGOT_UNSUPPORTED, "resize: axis %d has a run-time size", axis);
    if (in < 1 || r->size < 0 || r->size > INT32_MAX)
        return ingot_error(c, INGOT_INVALID, "resize: axis %d from %lld to %lld elements", axis,
                           (long long)in, (long long)r->size);
    double scale = scale_of(r, in);
    if (r->mode == INGOT_RESIZE_NEAREST)
        return resize_nearest(c, x, axis, r, in);

    double shrink =
        r->antialias && scale < 1 ? scale : 1; /* the filter is stretched by 1 / shrink */
    double support = r->size ? (r->mode == INGOT_RESIZE_LINEAR ? 1 : 2) / shrink : 1;
    int64_t taps = support < 4096 ? 2 * (int64_t)ceil(support) : INT32_MAX, n = r->size;
    if (taps > 4096 || n > (1 << 28) / taps)
        return ingot_error(c, INGOT_UNSUPPORTED, "resize: a filter of %lld elements",
                           (long long)taps);
    int64_t *place = ingot_alloc(c, (size_t)(n * taps) * sizeof *place);
    double *weight = ingot_alloc(c, (size_t)(n * taps) * sizeof *weight);
    for (int64_t o = 0; o < n; o++) {
        double at = source(r, in, o, taps), sum = 0;
        int64_t first = (int64_t)ceil(at) - taps / 2;
        for (int64_t t = 0; t < taps; t++) {
            double w = filter(r->mode, ((double)(first + t) - at) * shrink, r->cubic_a);
            if (r->exclude_outside && (first + t < 0 || first + t >= in))
                w = 0;
            place[t * n + o] = clamp(first + t, in);
            weight[t * n + o] = w;
            sum += w;
        }
        for (int64_t t = 0; t < taps && sum != 0; t++)
            weight[t * n + o] /= sum;
    }
    ingot_dtype d = ingot_dtype_of(x);
    ingot_tensor *wide = ops_widen(c, x), *y = NULL;
    if (!ops_is_float(wide))
        wide = ingot_cast(c, wide, INGOT_F32);
    ingot_dim *dims[INGOT_MAX_RANK + 1], *ones[INGOT_MAX_RANK + 1];
    int rank = ingot_rank(x);
    for (int i = 0; i < rank; i++)
        ones[i] = ingot_dim_const(c, i == axis ? n : 1);
    if (taps <= 4) { /* few taps are written out, many are a sum over an axis of their own */
        for (int64_t t = 0; t < taps; t++) {
            ingot_tensor *w = ops_table_f(c, n, weight + t * n, ingot_dtype_of(wide));
            ingot_tensor *v = ingot_take(c, wide, ops_table_i(c, n, place + t * n), axis);
            v = ingot_mul(c, v, ingot_reshape(c, w, rank, ones));
            y = y ? ingot_add(c, y, v) : v;
        }
    } else {
        ingot_tensor *i = ops_table_i(c, n * taps, place);
        ingot_tensor *w = ops_table_f(c, n * taps, weight, ingot_dtype_of(wide));
        for (int a = 0; a <= rank; a++)
            dims[a] = ingot_dim_const(c, a == axis ? taps : a == axis + 1 ? n : 1);
        i = ingot_reshape_c(c, i, 2, (int64_t[]){taps, n});
        y = ingot_mul(c, ingot_take(c, wide, i, axis), ingot_reshape(c, w, rank + 1, dims));
        y = ingot_is_poison(y) ? y : ingot_sum(c, y, 1u << axis, false);
    }
    if (!ops_is_float(x) && !ingot_is_poison(y))
        y = ingot_round(c, y);
    return ingot_cast(c, y, d);
}
