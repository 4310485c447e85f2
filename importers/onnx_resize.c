/*
 * onnx_resize.c - ONNX Resize and Upsample: which axes, by how much, and what counts as outside. Where all is known
 * when compiling, ingot_resize() does each axis; where only the run knows scales, its formulas are built as a graph.
 */
#include <math.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]

typedef struct {
    ingot_resize_axis axis; /* what is the same for every axis */
    double extrapolation;
} Style;

/* One axis: size in and out, out / in as the file gives it, and the region of interest. */
typedef struct {
    int64_t in, out;
    double scale, roi_start, roi_end;
} Axis;

/* The position of an attribute's text in a list that NULL ends, -1 after an error. */
static int one_of(Lowering *n, const char *attribute, const char *otherwise,
                  const char *const *names)
{
    const char *given = attr_string(n, attribute, otherwise);
    for (int i = 0; names[i]; i++)
        if (!strcmp(given, names[i]))
            return i;
    fault(n, "its attribute '%s' is '%.100s'", attribute, given);
    return -1;
}

/* The names of ingot_ops.h's enumerators, in their order. */
static const char *const mode_names[] = {"nearest", "linear", "cubic", NULL};
static const char *const coords_names[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
static const char *const nearest_names[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil", NULL};

/* An input that is there and not empty. */
static bool given(Lowering *n, int i)
{
    return i < n->n_in && n->in[i] && !dim_is(ingot_numel(n->c, n->in[i]), 0);
}

/* ---- what is known when compiling ----------------------------------------------------------- */

/* 1 where an axis' element lies in the region of interest. */
static ingot_tensor *inside_region(Lowering *n, const ingot_resize_axis *r, int axis, int rank,
                                   const Axis *a)
{
    double *in = ingot_alloc(n->c, ((size_t)a->out + 1) * sizeof *in);
    for (int64_t o = 0; o < a->out; o++)
        in[o] = !isnan(ingot_resize_source(r, a->in, o));
    return align_axis(n, const_f64(n, INGOT_BOOL, 1, &a->out, in), axis, rank);
}

static ingot_tensor *resize(Lowering *n, const Style *s, const Axis *axes, unsigned resized)
{
    bool crop = s->axis.coords == INGOT_COORDS_TF_CROP_AND_RESIZE;
    bool whole = s->axis.mode == INGOT_RESIZE_NEAREST && !crop;
    ingot_tensor *y = whole ? X : is_float(X) ? widen(n, X) : as(n, X, INGOT_F32), *inside = NULL;
    for (int a = 0; a < ingot_rank(X) && !ingot_is_poison(y); a++) {
        ingot_resize_axis r = s->axis;
        if (!(resized >> a & 1) || (axes[a].in == 0 && axes[a].out == 0))
            continue;
        r.size = axes[a].out;
        r.scale = axes[a].scale;
        r.roi_start = axes[a].roi_start;
        r.roi_end = axes[a].roi_end;
        y = ingot_resize(n->c, y, a, &r);
        if (crop) {
            ingot_tensor *ok = inside_region(n, &r, a, ingot_rank(X), &axes[a]);
            inside = inside ? ingot_and(n->c, inside, ok) : ok;
        }
    }
    if (inside && !ingot_is_poison(y))
        y = ingot_where(n->c, inside, y, like(n, y, s->extrapolation));
    return as(n, y, ingot_dtype_of(X));
}

/* ---- scales that only the run knows ------------------------------------------------------- */

/* The same formulas as graphs, in f64, where the file declares the result's shape. */
typedef struct {
    ingot_tensor *scale, *roi_start, *roi_end; /* scalars */
} RunAxis;

static ingot_tensor *f64(Lowering *n, double v)
{
    return ingot_scalar_f(n->c, INGOT_F64, v);
}

static ingot_tensor *float_entry(Lowering *n, int input, int64_t k)
{
    ingot_tensor *e = ingot_slice(n->c, n->in[input], 0, dim(n, k), dim(n, 1), 1);
    return as(n, reshape_scalar(n, e), INGOT_F64);
}

/* ingot_resize_source() of all elements. */
static ingot_tensor *run_place(Lowering *n, const Style *s, const Axis *a, const RunAxis *r)
{
    ingot_context *c = n->c;
    ingot_dim *out = dim(n, a->out);
    ingot_tensor *x = as(n, ingot_iota(c, 1, &out, 0), INGOT_F64);
    double last = (double)(a->in - 1);
    ingot_tensor *width = ingot_mul_c(c, r->scale, (double)a->in), *one = f64(n, 1);
    ingot_tensor *single = ingot_eq(c, width, one);
    ingot_tensor *steps = ingot_where(c, single, one, ingot_sub(c, width, one));
    ingot_tensor *half = ingot_div(c, ingot_add_c(c, x, 0.5), r->scale);
    if (s->axis.coords == INGOT_COORDS_ALIGN_CORNERS) {
        ingot_tensor *at = ingot_div(c, ingot_mul_c(c, x, last), steps);
        return ingot_where(c, single, f64(n, 0), at);
    }
    if (s->axis.coords == INGOT_COORDS_ASYMMETRIC)
        return ingot_div(c, x, r->scale);
    if (s->axis.coords == INGOT_COORDS_TF_HALF_PIXEL_FOR_NN)
        return half;
    if (s->axis.coords == INGOT_COORDS_TF_CROP_AND_RESIZE) {
        ingot_tensor *span = ingot_mul_c(c, ingot_sub(c, r->roi_end, r->roi_start), last);
        ingot_tensor *at = ingot_div(c, ingot_mul(c, x, span), steps);
        at = ingot_where(c, single, ingot_mul_c(c, span, 0.5), at);
        return ingot_add(c, at, ingot_mul_c(c, r->roi_start, last));
    }
    half = ingot_add_c(c, half, -0.5);
    if (s->axis.coords == INGOT_COORDS_PYTORCH_HALF_PIXEL)
        return ingot_where(c, single, f64(n, -0.5), half);
    if (s->axis.coords == INGOT_COORDS_HALF_PIXEL_SYMMETRIC) {
        ingot_tensor *adjust = ingot_div(c, f64(n, (double)a->out), width);
        ingot_tensor *shift = ingot_mul_c(c, ingot_sub(c, one, adjust), (double)a->in / 2);
        return ingot_add(c, shift, half);
    }
    return half;
}

/* Keys' cubic. */
static ingot_tensor *run_cubic(Lowering *n, ingot_tensor *to, double a)
{
    ingot_context *c = n->c;
    ingot_tensor *x = ingot_abs(c, to);
    ingot_tensor *near = ingot_add_c(c, ingot_mul_c(c, x, a + 2), -(a + 3));
    near = ingot_add_c(c, ingot_mul(c, ingot_mul(c, near, x), x), 1);
    ingot_tensor *far = ingot_add_c(c, ingot_mul_c(c, x, a), -5 * a);
    far = ingot_add_c(c, ingot_mul(c, far, x), 8 * a);
    far = ingot_add_c(c, ingot_mul(c, far, x), -4 * a);
    far = ingot_where(c, ingot_lt(c, x, f64(n, 2)), far, f64(n, 0));
    return ingot_where(c, ingot_le(c, x, f64(n, 1)), near, far);
}

static ingot_tensor *run_nearest(Lowering *n, const Style *s, ingot_tensor *at)
{
    if (s->axis.nearest == INGOT_NEAREST_FLOOR)
        return ingot_floor(n->c, at);
    if (s->axis.nearest == INGOT_NEAREST_CEIL)
        return ingot_ceil(n->c, at);
    if (s->axis.nearest == INGOT_NEAREST_PREFER_CEIL)
        return ingot_floor(n->c, ingot_add_c(n->c, at, 0.5));
    return ingot_ceil(n->c, ingot_add_c(n->c, at, -0.5));
}

/* x[place] along an axis, places outside being those of the border. */
static ingot_tensor *take_clamped(Lowering *n, ingot_tensor *x, ingot_tensor *place, int axis,
                                  const Axis *a)
{
    place = ingot_min(n->c, ingot_max_c(n->c, place, 0), f64(n, (double)(a->in - 1)));
    return ingot_take(n->c, x, as(n, place, INGOT_I64), axis);
}

/* The number of taps and the offset of the first from the element left of the place. */
static int tap_span(const Style *s, const Axis *a, int *first)
{
    double scale = s->axis.antialias && a->scale < 1 ? a->scale : 1;
    if (s->axis.mode == INGOT_RESIZE_NEAREST) {
        *first = 0;
        return 1;
    }
    *first = (int)floor((s->axis.mode == INGOT_RESIZE_CUBIC ? -2 : -1) / scale) + 1;
    return 2 - 2 * *first;
}

/* ingot_resize(), with as many taps as the least scale that gives a->out needs. */
static ingot_tensor *run_axis(Lowering *n, const Style *s, ingot_tensor *x, int axis, const Axis *a,
                              const RunAxis *r)
{
    enum { MAX_RUN_TAPS = 64 };
    ingot_context *c = n->c;
    ingot_tensor *at = run_place(n, s, a, r), *weight[MAX_RUN_TAPS], *sum = NULL, *y = NULL;
    Axis least = *a;
    int first, rank = ingot_rank(x);
    least.scale = ((double)a->out - 0.5) / (double)a->in;
    int taps = tap_span(s, &least, &first);
    if (s->axis.mode == INGOT_RESIZE_NEAREST)
        return take_clamped(n, x, run_nearest(n, s, at), axis, a);
    if (taps > MAX_RUN_TAPS)
        return unsupported(n, "axis %d shrinks too far for a scale that only the run knows", axis);
    ingot_tensor *scale = s->axis.antialias ? ingot_min_c(c, r->scale, 1) : f64(n, 1);
    ingot_tensor *low = ingot_add_c(c, ingot_ceil(c, at), -1), *ratio = ingot_sub(c, at, low);
    for (int k = 0; k < taps; k++) {
        ingot_tensor *to = ingot_mul(c, ingot_sub(c, f64(n, first + k), ratio), scale);
        ingot_tensor *p = ingot_add_c(c, low, first + k), *w;
        if (s->axis.mode == INGOT_RESIZE_CUBIC)
            w = run_cubic(n, to, s->axis.cubic_a);
        else
            w = ingot_max_c(c, ingot_sub(c, f64(n, 1), ingot_abs(c, to)), 0);
        if (s->axis.exclude_outside) {
            ingot_tensor *in =
                ingot_and(c, ingot_ge(c, p, f64(n, 0)), ingot_lt(c, p, f64(n, (double)a->in)));
            w = ingot_where(c, in, w, f64(n, 0));
        }
        weight[k] = w;
        sum = sum ? ingot_add(c, sum, w) : w;
    }
    for (int k = 0; k < taps; k++) {
        ingot_tensor *w = weight[k];
        if (s->axis.exclude_outside || s->axis.antialias)
            w = ingot_div(c, w, sum);
        w = align_axis(n, as(n, w, ingot_dtype_of(x)), axis, rank);
        ingot_tensor *v = take_clamped(n, x, ingot_add_c(c, low, first + k), axis, a);
        v = ingot_mul(c, v, w);
        y = y ? ingot_add(c, y, v) : v;
    }
    return y;
}

static ingot_tensor *resize_at_run_time(Lowering *n, const Style *s, Axis *axes, const int *list,
                                        int count, int scales, int sizes, const int64_t *out)
{
    ingot_dtype dtype = ingot_dtype_of(X);
    const char *policy = attr_string(n, "keep_aspect_ratio_policy", "stretch");
    bool crop = s->axis.coords == INGOT_COORDS_TF_CROP_AND_RESIZE;
    bool smaller = strcmp(policy, "not_larger") == 0;
    ingot_tensor *y = is_float(X) ? widen(n, X) : as(n, X, INGOT_F32), *factor = NULL;
    ingot_tensor *inside = NULL;
    if (crop && !given(n, 1))
        return fault(n, "its region of interest is missing");
    if (!scales && !sizes)
        return fault(n, "it has neither scales nor sizes");
    for (int i = 0; sizes && i < count; i++) {
        if (axes[list[i]].in < 1)
            return unsupported(n, "the size of axis %d is not known when compiling", list[i]);
        ingot_tensor *v = as(n, list_entry(n, sizes, i, 0), INGOT_F64);
        v = ingot_mul_c(n->c, v, 1 / (double)axes[list[i]].in);
        factor = !factor ? v : smaller ? ingot_min(n->c, factor, v) : ingot_max(n->c, factor, v);
    }
    for (int i = 0; i < count && !ingot_is_poison(y); i++) {
        Axis *a = &axes[list[i]];
        RunAxis r = {.scale = factor};
        a->out = out[list[i]];
        if (a->in < 1)
            return unsupported(n, "the size of axis %d is not known when compiling", list[i]);
        if (scales)
            r.scale = float_entry(n, scales, i);
        else if (strcmp(policy, "stretch") == 0)
            r.scale = f64(n, (double)a->out / (double)a->in);
        if (crop) {
            r.roi_start = float_entry(n, 1, i);
            r.roi_end = float_entry(n, 1, i + count);
            ingot_tensor *at = run_place(n, s, a, &r), *zero = f64(n, 0);
            ingot_tensor *ok = ingot_and(n->c, ingot_ge(n->c, at, zero),
                                         ingot_le(n->c, at, f64(n, (double)(a->in - 1))));
            ok = align_axis(n, ok, list[i], ingot_rank(X));
            inside = inside ? ingot_and(n->c, inside, ok) : ok;
        }
        if (a->in > 1 || a->out > 1)
            y = run_axis(n, s, y, list[i], a, &r);
    }
    if (inside && !ingot_is_poison(y))
        y = ingot_where(n->c, inside, y, like(n, y, s->extrapolation));
    return as(n, y, dtype);
}

/* ---- what the file asks for ----------------------------------------------------------------- */

/* The axes that lists refer to, in their order: their number, or -1 after an error. */
static int listed_axes(Lowering *n, int *list)
{
    const int64_t *axes;
    unsigned set;
    int rank = ingot_rank(X), count = attr_ints(n, "axes", &axes);
    if (count >= 0 && !axes_in(n, axes, count, rank, &set))
        return -1;
    for (int i = 0; i < (count < 0 ? rank : count); i++)
        list[i] = count < 0 ? i : (int)(axes[i] < 0 ? axes[i] + rank : axes[i]);
    return n->failed ? -1 : count < 0 ? rank : count;
}

static void use_scale(Axis *a, double scale)
{
    a->scale = scale;
    a->out = (int64_t)floor(scale * (double)a->in);
}

static bool use_scales(Lowering *n, Axis *axes, const int *list, int count, const double *v,
                       int n_v, unsigned *resized)
{
    if (n_v != count) {
        fault(n, "it has %d scales for %d axes", n_v, count);
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (!(v[i] > 0 && v[i] < 1e9)) {
            fault(n, "scale %d is %g", i, v[i]);
            return false;
        }
        bool free_dim = axes[list[i]].in < 0;
        if (v[i] == 1)
            continue;
        if (free_dim) {
            unsupported(n, "the size of axis %d is not known when compiling", list[i]);
            return false;
        }
        use_scale(&axes[list[i]], v[i]);
        *resized |= 1u << list[i];
    }
    return true;
}

/* Sizes stretch each axis, or scale all by one factor that makes none larger, or none smaller. */
static bool use_sizes(Lowering *n, Axis *axes, const int *list, int count, int input,
                      unsigned *resized)
{
    const int64_t *v;
    int n_v = ints_in(n, input, &v);
    const char *policy = attr_string(n, "keep_aspect_ratio_policy", "stretch");
    bool stretch = strcmp(policy, "stretch") == 0;
    if (n_v != count) {
        if (n_v >= 0)
            fault(n, "it has %d sizes for %d axes", n_v, count);
        return false;
    }
    double factor = 0;
    for (int i = 0; i < count; i++) {
        Axis *a = &axes[list[i]];
        if (a->in < 1 || v[i] < 0 || v[i] > INT32_MAX) {
            unsupported(n, "it cannot resize axis %d to %lld", list[i], (long long)v[i]);
            return false;
        }
        a->out = v[i];
        a->scale = (double)v[i] / (double)a->in;
        bool less = strcmp(policy, "not_larger") == 0 ? a->scale < factor : a->scale > factor;
        factor = i == 0 || less ? a->scale : factor;
    }
    for (int i = 0; i < count; i++) {
        Axis *a = &axes[list[i]];
        if (!stretch) {
            a->scale = factor;
            a->out = (int64_t)floor(factor * (double)a->in + 0.5);
        }
        if (a->out != a->in || a->scale != 1)
            *resized |= 1u << list[i];
    }
    return true;
}

static void axes_start(Lowering *n, Axis *axes)
{
    (void)n;
    for (int a = 0; a < ingot_rank(X); a++) {
        axes[a] = (Axis){.in = -1, .scale = 1, .roi_end = 1};
        ingot_dim_is_const(ingot_shape(X, a), &axes[a].in);
        axes[a].out = axes[a].in;
    }
}

/* Whether scales, sizes and region are known now. */
static bool knows_all(Lowering *n, int scales, int sizes, const Style *s)
{
    const int64_t *v;
    bool crop = s->axis.coords == INGOT_COORDS_TF_CROP_AND_RESIZE;
    if (crop && given(n, 1) && !ingot_is_const(n->in[1]))
        return false;
    if (given(n, scales))
        return ingot_is_const(n->in[scales]);
    return !given(n, sizes) || ints_known(n, sizes, &v) >= 0;
}

ingot_tensor *onnx_resize(Lowering *n)
{
    Axis axes[INGOT_MAX_RANK];
    int64_t declared[INGOT_MAX_RANK];
    int rank, list[INGOT_MAX_RANK], count = listed_axes(n, list), n_v;
    const double *v;
    unsigned resized = 0;
    bool old = n->version < 11;
    int mode = one_of(n, "mode", "nearest", mode_names);
    int coords = one_of(n, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel",
                        coords_names);
    int nearest = one_of(n, "nearest_mode", old ? "floor" : "round_prefer_floor", nearest_names);
    Style s = {.axis = {.mode = (ingot_resize_mode)mode,
                        .coords = (ingot_resize_coords)coords,
                        .nearest = (ingot_resize_nearest)nearest,
                        .cubic_a = attr_float(n, "cubic_coeff_a", -0.75),
                        .antialias = attr_int(n, "antialias", 0) != 0,
                        .exclude_outside = attr_int(n, "exclude_outside", 0) != 0},
               .extrapolation = attr_float(n, "extrapolation_value", 0)};
    int scales = old ? 1 : 2, sizes = 3;
    if (count < 0 || n->failed)
        return ingot_poison(n->c);
    axes_start(n, axes);
    if (!knows_all(n, scales, sizes, &s) && declared_shape(n, 0, &rank, declared) &&
        rank == ingot_rank(X))
        return resize_at_run_time(n, &s, axes, list, count, given(n, scales) ? scales : 0,
                                  given(n, scales) ? 0 : sizes, declared);
    if (s.axis.coords == INGOT_COORDS_TF_CROP_AND_RESIZE) {
        if (!given(n, 1) || (n_v = floats_in(n, 1, &v)) != 2 * count)
            return n->failed ? ingot_poison(n->c)
                             : fault(n, "its region of interest is missing or has another length");
        for (int i = 0; i < count; i++) {
            axes[list[i]].roi_start = v[i];
            axes[list[i]].roi_end = v[i + count];
        }
    }
    bool ok = false;
    if (given(n, scales))
        ok = (n_v = floats_in(n, scales, &v)) >= 0 &&
             use_scales(n, axes, list, count, v, n_v, &resized);
    else if (!old && given(n, sizes))
        ok = use_sizes(n, axes, list, count, sizes, &resized);
    else
        return fault(n, "it has neither scales nor sizes");
    if (s.axis.coords == INGOT_COORDS_TF_CROP_AND_RESIZE)
        for (int i = 0; i < count; i++)
            if (axes[list[i]].roi_start != 0 || axes[list[i]].roi_end != 1)
                resized |= 1u << list[i];
    return ok ? resize(n, &s, axes, resized) : ingot_poison(n->c);
}

ingot_tensor *onnx_upsample(Lowering *n)
{
    Axis axes[INGOT_MAX_RANK];
    int list[INGOT_MAX_RANK], n_v, rank = ingot_rank(X), out_rank;
    int64_t declared[INGOT_MAX_RANK];
    bool known = true;
    double made[INGOT_MAX_RANK];
    const double *v = made;
    const float *scales;
    unsigned resized = 0;
    static const char *const modes[] = {"nearest", "linear", "bilinear", NULL};
    int mode = one_of(n, "mode", "nearest", modes);
    Style s = {.axis = {.mode = mode ? INGOT_RESIZE_LINEAR : INGOT_RESIZE_NEAREST,
                        .coords = INGOT_COORDS_ASYMMETRIC,
                        .nearest = INGOT_NEAREST_FLOOR}};
    for (int a = 0; a < rank; a++)
        list[a] = a;
    if (n->version < 7) {
        for (n_v = 0; n_v < rank; n_v++)
            made[n_v] = n_v == rank - 2   ? attr_float(n, "height_scale", 1)
                        : n_v == rank - 1 ? attr_float(n, "width_scale", 1)
                                          : 1;
    } else if (n->version < 9) {
        n_v = attr_floats(n, "scales", &scales);
        for (int a = 0; a < n_v && a < rank; a++)
            made[a] = (double)scales[a];
    } else {
        known = !given(n, 1) || ingot_is_const(n->in[1]) ||
                !declared_shape(n, 0, &out_rank, declared) || out_rank != rank;
        n_v = known && n->n_in > 1 ? floats_in(n, 1, &v) : -1;
    }
    axes_start(n, axes);
    if (!known)
        return resize_at_run_time(n, &s, axes, list, rank, 1, 0, declared);
    if (n->failed || !use_scales(n, axes, list, rank, v, n_v, &resized))
        return ingot_poison(n->c);
    return resize(n, &s, axes, resized);
}
