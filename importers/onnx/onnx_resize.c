/*
 * onnx_resize.c - ONNX Resize and Upsample: which axes, by how much, and what counts as outside. An
 * axis of which all is known when compiling is ingot_resize()'s; where a size, a scale or the
 * region is known to the run only, its formulas are built as a graph.
 */
#include <math.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]

typedef struct {
    ingot_resize_axis axis; /* what is the same for every axis */
    double extrapolation;
    bool up_where_smaller; /* before opset 11: nearest is the place above where the axis shrinks */
} Style;

/* One axis: its size in and out, out / in as the file gives it, and the region of interest. What
 * only the run knows are f64 scalars; they are NULL where the number beside them is known. up /
 * down is the scale, in integers, or they are NULL. */
typedef struct {
    bool resized;
    ingot_dim *in, *out, *up, *down;
    double scale, roi_start, roi_end;
    ingot_tensor *run_scale, *run_start, *run_end;
} ResizeAxis;

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

static ingot_tensor *f64(Lowering *n, double v)
{
    return ingot_scalar_f(n->c, INGOT_F64, v);
}

/* A number beside x. */
static ingot_tensor *beside(Lowering *n, ingot_tensor *x, double v)
{
    return ingot_scalar_f(n->c, ingot_dtype_of(x), v);
}

static ingot_tensor *dim_f64(Lowering *n, ingot_dim *d)
{
    return as(n, ingot_from_dim(n->c, d), INGOT_F64);
}

/* ---- what is known when compiling ----------------------------------------------------------- */

/* 1 where an axis' element lies in the region of interest. */
static ingot_tensor *inside_region(Lowering *n, const ingot_resize_axis *r, int axis, int64_t in)
{
    double *inside = ingot_alloc(n->c, ((size_t)r->size + 1) * sizeof *inside);
    for (int64_t o = 0; o < r->size; o++)
        inside[o] = !isnan(ingot_resize_source(r, in, o));
    return align_axis(n, const_f64(n, INGOT_BOOL, 1, &r->size, inside), axis, ingot_rank(X));
}

/* Which place is the nearest, of an axis whose scale is known. */
static ingot_resize_nearest nearest_of(const Style *s, const ResizeAxis *a)
{
    return s->up_where_smaller && a->scale < 1 ? INGOT_NEAREST_CEIL : s->axis.nearest;
}

/* The axis as ingot_resize() takes it; false if the run has to tell something. A whole ratio needs
 * no size. */
static bool known_axis(const Style *s, const ResizeAxis *a, ingot_resize_axis *r)
{
    int64_t in;
    *r = s->axis;
    r->scale = a->scale;
    r->roi_start = a->roi_start;
    r->roi_end = a->roi_end;
    r->nearest = nearest_of(s, a);
    if (a->run_scale || a->run_start)
        return false;
    return (ingot_dim_is_const(a->in, &in) && ingot_dim_is_const(a->out, &r->size)) ||
           ingot_resize_repeats(r);
}

/* ---- what only the run knows ----------------------------------------------------------------- */

static ingot_tensor *float_entry(Lowering *n, int input, int64_t k)
{
    ingot_tensor *e = ingot_slice(n->c, n->in[input], 0, dim(n, k), dim(n, 1), 1);
    return as(n, reshape_scalar(n, e), INGOT_F64);
}

static ingot_tensor *run_or(Lowering *n, ingot_tensor *run, double known)
{
    return run ? run : f64(n, known);
}

/* x / scale; where the place is that of one element, an f32, as ingot_resize() has it. */
static ingot_tensor *quotient(Lowering *n, const Style *s, ingot_tensor *x, ingot_tensor *scale)
{
    ingot_tensor *q = ingot_div(n->c, x, scale);
    return s->axis.mode == INGOT_RESIZE_NEAREST ? as(n, as(n, q, INGOT_F32), INGOT_F64) : q;
}

/* ingot_resize_source() of all elements. */
static ingot_tensor *run_place(Lowering *n, const Style *s, const ResizeAxis *a)
{
    ingot_context *c = n->c;
    ingot_tensor *x = as(n, ingot_iota(c, 1, &a->out, 0), INGOT_F64), *one = f64(n, 1);
    ingot_tensor *in = dim_f64(n, a->in), *last = ingot_add_c(c, in, -1);
    ingot_tensor *scale = run_or(n, a->run_scale, a->scale), *size = dim_f64(n, a->out);
    /* how many there are; corners speak of what is not rounded to that */
    bool corners = s->axis.coords == INGOT_COORDS_ALIGN_CORNERS;
    ingot_tensor *width = corners ? ingot_mul(c, scale, in) : size;
    ingot_tensor *single = ingot_eq(c, width, one);
    ingot_tensor *steps = ingot_where(c, single, one, ingot_sub(c, width, one));
    if (corners) {
        ingot_tensor *at = ingot_div(c, ingot_mul(c, x, last), steps);
        return ingot_where(c, single, f64(n, 0), at);
    }
    if (s->axis.coords == INGOT_COORDS_ASYMMETRIC)
        return quotient(n, s, x, scale);
    ingot_tensor *middle = ingot_add_c(c, x, 0.5);
    if (s->axis.coords == INGOT_COORDS_TF_HALF_PIXEL_FOR_NN)
        return quotient(n, s, middle, scale);
    if (s->axis.coords == INGOT_COORDS_TF_CROP_AND_RESIZE) {
        ingot_tensor *start = run_or(n, a->run_start, a->roi_start),
                     *end = run_or(n, a->run_end, a->roi_end);
        ingot_tensor *span = ingot_mul(c, ingot_sub(c, end, start), last);
        ingot_tensor *at = ingot_div(c, ingot_mul(c, x, span), steps);
        at = ingot_where(c, single, ingot_mul_c(c, span, 0.5), at);
        return ingot_add(c, at, ingot_mul(c, start, last));
    }
    if (s->axis.coords == INGOT_COORDS_HALF_PIXEL_SYMMETRIC) {
        middle = ingot_sub(c, middle, ingot_mul_c(c, size, 0.5));
        return ingot_add(c, quotient(n, s, middle, scale), ingot_mul_c(c, last, 0.5));
    }
    ingot_tensor *half = ingot_add_c(c, quotient(n, s, middle, scale), -0.5);
    if (s->axis.coords == INGOT_COORDS_PYTORCH_HALF_PIXEL)
        return ingot_where(c, single, f64(n, 0), half);
    return half;
}

/* ---- places as quotients of integers --------------------------------------------------------- */

/* What lies left of a place, and how far: in f32 where these are exact, in f64 else. */
typedef struct {
    ingot_tensor *low, *ratio;
    ingot_tensor *rest, *whole; /* ratio = rest / whole, in integers; or NULL */
} Place;

/* Whether place = above / whole, for all sizes that there may be, with integers that f32 has, and
 * twice as large ones. */
static bool in_f32(const Style *s, const ResizeAxis *a, ingot_tensor *x)
{
    const double most = 1 << 23;
    double steps = 2 * (double)ingot_dim_hi(a->out) + 1;
    ingot_resize_coords coords = s->axis.coords;
    if (!a->up || (s->axis.mode != INGOT_RESIZE_NEAREST && ingot_dtype_of(x) == INGOT_F64) ||
        coords == INGOT_COORDS_HALF_PIXEL_SYMMETRIC || coords == INGOT_COORDS_TF_CROP_AND_RESIZE)
        return false;
    double up = (double)ingot_dim_hi(a->up), down = (double)ingot_dim_hi(a->down);
    double in = (double)ingot_dim_hi(a->in);
    if (coords == INGOT_COORDS_ALIGN_CORNERS && a->up != a->out)
        return steps * in * down < most && up * in < most;
    return steps * fmax(in, down) + up < most;
}

static ingot_tensor *dim_f32(Lowering *n, ingot_dim *d)
{
    return as(n, ingot_from_dim(n->c, d), INGOT_F32);
}

/* The place of each element is above / whole. */
static ingot_tensor *above(Lowering *n, const Style *s, const ResizeAxis *a, ingot_dim **whole)
{
    ingot_context *c = n->c;
    ingot_tensor *x = as(n, ingot_iota(c, 1, &a->out, 0), INGOT_F32), *down = dim_f32(n, a->down);
    ingot_dim *one = dim(n, 1), *last = ingot_dim_sub(c, a->in, one), *width;
    if (s->axis.coords == INGOT_COORDS_ALIGN_CORNERS) {
        /* x (in - 1) / (scale in - 1) */
        bool sizes = a->up == a->out && a->down == a->in;
        width = sizes ? ingot_dim_sub(c, a->out, one)
                      : ingot_dim_sub(c, ingot_dim_mul(c, a->up, a->in), a->down);
        *whole = ingot_dim_max(c, width, one);
        last = sizes ? last : ingot_dim_mul(c, last, a->down);
        return ingot_mul(c, x, dim_f32(n, last));
    }
    *whole = a->up;
    if (s->axis.coords == INGOT_COORDS_ASYMMETRIC)
        return ingot_mul(c, x, down);
    *whole = ingot_dim_mul(c, a->up, dim(n, 2));
    x = ingot_mul(c, ingot_add_c(c, ingot_mul_c(c, x, 2), 1), down);
    if (s->axis.coords == INGOT_COORDS_TF_HALF_PIXEL_FOR_NN)
        return x;
    x = ingot_sub(c, x, dim_f32(n, a->up));
    if (s->axis.coords == INGOT_COORDS_PYTORCH_HALF_PIXEL) {
        /* 0 where there is one */
        ingot_dim *more = ingot_dim_max(c, ingot_dim_sub(c, a->out, one), dim(n, 0));
        x = ingot_mul(c, x, dim_f32(n, ingot_dim_min(c, more, one)));
    }
    return x;
}

/* The quotient, downwards, whatever a GPU's division rounds to. */
static Place exact_place(Lowering *n, const Style *s, const ResizeAxis *a)
{
    ingot_context *c = n->c;
    ingot_dim *size;
    ingot_tensor *x = above(n, s, a, &size), *whole = dim_f32(n, size);
    ingot_tensor *low = ingot_floor(c, ingot_div(c, x, whole));
    ingot_tensor *rest = ingot_sub(c, x, ingot_mul(c, low, whole));
    ingot_tensor *zero = beside(n, x, 0), *one = beside(n, x, 1), *none = beside(n, x, -1);
    ingot_tensor *more = ingot_where(c, ingot_lt(c, rest, whole), zero, one);
    more = ingot_where(c, ingot_lt(c, rest, zero), none, more);
    rest = ingot_sub(c, rest, ingot_mul(c, more, whole));
    return (Place){.low = ingot_add(c, low, more),
                   .ratio = ingot_div(c, rest, whole),
                   .rest = rest,
                   .whole = whole};
}

static Place place_of(Lowering *n, const Style *s, const ResizeAxis *a, ingot_tensor *x)
{
    if (in_f32(s, a, x))
        return exact_place(n, s, a);
    ingot_tensor *at = run_place(n, s, a), *low = ingot_add_c(n->c, ingot_ceil(n->c, at), -1);
    return (Place){.low = low, .ratio = ingot_sub(n->c, at, low)};
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
    far = ingot_where(c, ingot_lt(c, x, beside(n, x, 2)), far, beside(n, x, 0));
    return ingot_where(c, ingot_le(c, x, beside(n, x, 1)), near, far);
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

/* The same by integers. */
static ingot_tensor *exact_nearest(Lowering *n, const Style *s, const Place *p)
{
    ingot_context *c = n->c;
    ingot_tensor *zero = beside(n, p->low, 0), *twice = ingot_mul_c(c, p->rest, 2), *stays;
    if (s->axis.nearest == INGOT_NEAREST_FLOOR)
        return p->low;
    if (s->axis.nearest == INGOT_NEAREST_CEIL)
        stays = ingot_le(c, p->rest, zero);
    else if (s->axis.nearest == INGOT_NEAREST_PREFER_CEIL)
        stays = ingot_lt(c, twice, p->whole);
    else
        stays = ingot_le(c, twice, p->whole);
    return ingot_add(c, p->low, ingot_where(c, stays, zero, beside(n, p->low, 1)));
}

/* x[place] along an axis, places outside being those of the border. */
static ingot_tensor *take_clamped(Lowering *n, ingot_tensor *x, ingot_tensor *place, int axis,
                                  const ResizeAxis *a)
{
    ingot_tensor *last = as(n, ingot_from_dim(n->c, a->in), ingot_dtype_of(place));
    last = ingot_add_c(n->c, last, -1);
    place = ingot_min(n->c, ingot_max_c(n->c, place, 0), last);
    return ingot_take(n->c, x, as(n, place, INGOT_I64), axis);
}

/* The number of taps and the offset of the first from the element left of the place; the least
 * scale that the sizes allow decides it. */
static double tap_span(const Style *s, const ResizeAxis *a, int *first)
{
    double scale = a->scale, support = s->axis.mode == INGOT_RESIZE_CUBIC ? 2 : 1;
    if (a->run_scale)
        scale = ((double)ingot_dim_lo(a->out) - 0.5) / (double)ingot_dim_hi(a->in);
    if (!s->axis.antialias || scale >= 1)
        scale = 1;
    if (!(support / scale < 1 << 20))
        return INFINITY;
    *first = (int)floor(-support / scale) + 1;
    return 2 - 2 * *first;
}

/* The nearest places, by which is meant what the scale makes of it. */
static ingot_tensor *nearest_place(Lowering *n, const Style *s, const ResizeAxis *a,
                                   const Place *place)
{
    Style one = *s;
    one.axis.nearest = nearest_of(s, a);
    one.up_where_smaller = false;
    if (s->up_where_smaller && a->run_scale) {
        ingot_tensor *below = nearest_place(n, &one, a, place);
        one.axis.nearest = INGOT_NEAREST_CEIL;
        ingot_tensor *smaller = ingot_lt(n->c, a->run_scale, f64(n, 1));
        return ingot_where(n->c, smaller, nearest_place(n, &one, a, place), below);
    }
    return place->rest ? exact_nearest(n, &one, place)
                       : run_nearest(n, &one, run_place(n, &one, a));
}

/* ingot_resize() as a graph. */
static ingot_tensor *run_axis(Lowering *n, const Style *s, ingot_tensor *x, int axis,
                              const ResizeAxis *a)
{
    enum { MAX_RUN_TAPS = 64 };
    ingot_context *c = n->c;
    ingot_tensor *weight[MAX_RUN_TAPS], *sum = NULL, *y = NULL, *scale;
    int first = 0, rank = ingot_rank(x);
    const Place place = place_of(n, s, a, x);
    if (s->axis.mode == INGOT_RESIZE_NEAREST)
        return take_clamped(n, x, nearest_place(n, s, a, &place), axis, a);
    double span = tap_span(s, a, &first);
    if (span > MAX_RUN_TAPS)
        return unsupported(n, "axis %d may shrink too far for a scale that only the run knows",
                           axis);
    int taps = (int)span;
    ingot_tensor *low = place.low, *ratio = place.ratio, *zero = beside(n, low, 0),
                 *one = beside(n, low, 1), *end = dim_f64(n, a->in);
    if (!s->axis.antialias)
        scale = one;
    else if (place.rest)
        scale = ingot_min_c(c, ingot_div(c, dim_f32(n, a->up), dim_f32(n, a->down)), 1);
    else
        scale = ingot_min_c(c, run_or(n, a->run_scale, a->scale), 1);
    if (place.rest)
        end = dim_f32(n, a->in);
    for (int k = 0; k < taps; k++) {
        ingot_tensor *to = ingot_mul(c, ingot_sub(c, beside(n, low, first + k), ratio), scale);
        ingot_tensor *p = ingot_add_c(c, low, first + k), *w;
        if (s->axis.mode == INGOT_RESIZE_CUBIC)
            w = run_cubic(n, to, s->axis.cubic_a);
        else
            w = ingot_max_c(c, ingot_sub(c, one, ingot_abs(c, to)), 0);
        if (s->axis.exclude_outside) {
            ingot_tensor *in = ingot_and(c, ingot_ge(c, p, zero), ingot_lt(c, p, end));
            w = ingot_where(c, in, w, zero);
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

/* The same of the run's region of interest. */
static ingot_tensor *run_inside(Lowering *n, const Style *s, int axis, const ResizeAxis *a)
{
    ingot_tensor *at = run_place(n, s, a), *last = ingot_add_c(n->c, dim_f64(n, a->in), -1);
    ingot_tensor *inside = ingot_and(n->c, ingot_ge(n->c, at, f64(n, 0)), ingot_le(n->c, at, last));
    return align_axis(n, inside, axis, ingot_rank(X));
}

/* ---- all axes -------------------------------------------------------------------------------- */

/* Integers that are interpolated are rounded, as the standard's reference does it; but linearly and
 * without antialias they are cut off, as ONNX Runtime does it, which has no other way for the
 * rest. */
static bool rounds(Lowering *n, const Style *s)
{
    return !is_float(X) && s->axis.mode != INGOT_RESIZE_NEAREST &&
           (s->axis.antialias || s->axis.mode == INGOT_RESIZE_CUBIC);
}

/* x in the type that is interpolated in. */
static ingot_tensor *interpolated(Lowering *n, const Style *s)
{
    if (is_float(X))
        return widen(n, X);
    return as(n, X,
              rounds(n, s) && ingot_dtype_bytes(ingot_dtype_of(X)) > 2 ? INGOT_F64 : INGOT_F32);
}

static ingot_tensor *resize(Lowering *n, const Style *s, const ResizeAxis *axes)
{
    bool crop = s->axis.coords == INGOT_COORDS_TF_CROP_AND_RESIZE;
    bool whole = s->axis.mode == INGOT_RESIZE_NEAREST && !crop;
    ingot_tensor *y = whole ? X : interpolated(n, s), *inside = NULL;
    for (int i = 0; i < ingot_rank(X) && !ingot_is_poison(y); i++) {
        const ResizeAxis *a = &axes[i];
        ingot_resize_axis r;
        ingot_tensor *ok = NULL;
        int64_t in = 0;
        if (!a->resized || (dim_is(a->in, 0) && dim_is(a->out, 0)))
            continue;
        bool known = known_axis(s, a, &r);
        if (known && crop && ingot_dim_is_const(a->in, &in))
            ok = inside_region(n, &r, i, in);
        else if (crop)
            ok = run_inside(n, s, i, a);
        y = known ? ingot_resize(n->c, y, i, &r) : run_axis(n, s, y, i, a);
        inside = !ok ? inside : inside ? ingot_and(n->c, inside, ok) : ok;
    }
    if (ingot_is_poison(y))
        return y;
    if (inside)
        y = ingot_where(n->c, inside, y, like(n, y, s->extrapolation));
    return rounds(n, s) ? rounded_to_integer(n, y, ingot_dtype_of(X)) : as(n, y, ingot_dtype_of(X));
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

static void axes_start(Lowering *n, ResizeAxis *axes)
{
    for (int a = 0; a < ingot_rank(X); a++) {
        ingot_dim *size = ingot_shape(X, a);
        axes[a] = (ResizeAxis){.in = size, .out = size, .scale = 1, .roi_end = 1};
    }
}

/* floor(scale * in); a scale is a whole number of 1 / 2^k. NULL after an error. */
static ingot_dim *scaled_size(Lowering *n, ingot_dim *in, double scale)
{
    int64_t size;
    int k;
    if (ingot_dim_is_const(in, &size))
        return dim(n, (int64_t)floor(scale * (double)size));
    double part = frexp(scale, &k);
    for (; part != floor(part); k--)
        part *= 2;
    if (k > 30 || k < -40 || part * ldexp(1, k > 0 ? k : 0) * (double)ingot_dim_hi(in) > 0x1p62) {
        unsupported(n, "a scale of %g for a size that is not known when compiling", scale);
        return NULL;
    }
    ingot_dim *out = ingot_dim_mul(n->c, in, dim(n, (int64_t)ldexp(part, k > 0 ? k : 0)));
    return k < 0 ? ingot_dim_div(n->c, out, dim(n, INT64_C(1) << -k)) : out;
}

/* A scale as a quotient of integers, if these are not large. */
static void as_quotient(Lowering *n, ResizeAxis *a)
{
    const double most = 1 << 12;
    double up = a->scale, down = 1;
    while (up != floor(up) && down < most) {
        up *= 2;
        down *= 2;
    }
    if (up == floor(up) && up < most) {
        a->up = dim(n, (int64_t)up);
        a->down = dim(n, (int64_t)down);
    }
}

static bool use_scales(Lowering *n, ResizeAxis *axes, const int *list, int count, const double *v,
                       int n_v)
{
    if (n_v != count) {
        fault(n, "it has %d scales for %d axes", n_v, count);
        return false;
    }
    for (int i = 0; i < count; i++) {
        ResizeAxis *a = &axes[list[i]];
        if (!(v[i] > 0 && v[i] < 1e9)) {
            fault(n, "scale %d is %g", i, v[i]);
            return false;
        }
        if (v[i] == 1)
            continue;
        a->scale = v[i];
        as_quotient(n, a);
        a->out = scaled_size(n, a->in, v[i]);
        a->resized = true;
        if (!a->out)
            return false;
    }
    return true;
}

/* Scales that are data of the run: whether they make what the file declares is checked then, with
 * f32 products. A region of interest stretches them. False after an error. */
static bool use_run_scales(Lowering *n, ResizeAxis *axes, const int *list, int count, int input,
                           bool crop, const int64_t *out)
{
    ingot_context *c = n->c;
    for (int i = 0; i < count; i++) {
        ingot_tensor *in = as(n, ingot_from_dim(c, axes[list[i]].in), INGOT_F32);
        if (crop && given(n, 1)) {
            ingot_tensor *span = ingot_sub(c, float_entry(n, 1, i + count), float_entry(n, 1, i));
            in = ingot_mul(c, in, as(n, span, INGOT_F32));
        }
        in = ingot_floor(c, ingot_mul(c, in, as(n, float_entry(n, input, i), INGOT_F32)));
        if (!size_is(n, 0, list[i], as(n, in, INGOT_I64), dim(n, out[list[i]])))
            return false;
    }
    for (int i = 0; i < count; i++) {
        ResizeAxis *a = &axes[list[i]];
        a->out = dim(n, out[list[i]]);
        a->run_scale = float_entry(n, input, i);
        a->resized = !dim_is(a->in, 1) || !dim_is(a->out, 1);
    }
    return true;
}

/* a / b in f64. */
static ingot_tensor *ratio_f64(Lowering *n, ingot_tensor *a, ingot_dim *b)
{
    return ingot_div(n->c, as(n, a, INGOT_F64), dim_f64(n, b));
}

/* Sizes stretch each axis, or scale all by one factor that makes none larger, or none smaller.
 * want: a dim each. */
static bool use_sizes(Lowering *n, ResizeAxis *axes, const int *list, int count,
                      ingot_dim *const *want)
{
    const char *policy = attr_string(n, "keep_aspect_ratio_policy", "stretch");
    bool stretch = strcmp(policy, "stretch") == 0, smaller = strcmp(policy, "not_larger") == 0,
         known = true;
    double factor = 0;
    ingot_tensor *run = NULL;
    for (int i = 0; i < count; i++) {
        ResizeAxis *a = &axes[list[i]];
        int64_t in = 0, size;
        if (stretch && dim_is(a->in, 0) && dim_is(want[i], 0)) /* stays as it is */
            continue;
        if (ingot_dim_hi(a->in) < 1 || ingot_dim_hi(want[i]) < 0 ||
            ingot_dim_lo(want[i]) > INT32_MAX) {
            unsupported(n, "it cannot resize axis %d of %lld elements to %lld", list[i],
                        (long long)ingot_dim_hi(a->in), (long long)ingot_dim_hi(want[i]));
            return false;
        }
        a->out = want[i];
        a->up = stretch ? want[i] : NULL;
        a->down = stretch ? a->in : NULL;
        if (!ingot_dim_is_const(a->in, &in) || !ingot_dim_is_const(want[i], &size))
            a->run_scale = ratio_f64(n, ingot_from_dim(n->c, want[i]), a->in);
        else
            a->scale = (double)size / (double)in;
        known &= !a->run_scale;
        bool less = smaller ? a->scale < factor : a->scale > factor;
        factor = i == 0 || less ? a->scale : factor;
    }
    for (int i = 0; !stretch && !known && i < count; i++) {
        ingot_tensor *scale = run_or(n, axes[list[i]].run_scale, axes[list[i]].scale);
        run = !run ? scale : smaller ? ingot_min(n->c, run, scale) : ingot_max(n->c, run, scale);
    }
    for (int i = 0; i < count; i++) {
        ResizeAxis *a = &axes[list[i]];
        int64_t in = 0;
        a->resized = true;
        if (!stretch && known) {
            ingot_dim_is_const(a->in, &in);
            a->scale = factor;
            a->out = dim(n, (int64_t)floor(factor * (double)in + 0.5));
        }
        if (!stretch && !known) {
            /* floor(want[j] / in[j] * in + 1/2) of the j that decides */
            a->run_scale = run;
            for (int j = 0; j < count; j++) {
                ingot_dim *twice = ingot_dim_mul(n->c, axes[list[j]].in, dim(n, 2));
                ingot_dim *size =
                    ingot_dim_mul(n->c, ingot_dim_mul(n->c, want[j], a->in), dim(n, 2));
                size = ingot_dim_div(n->c, ingot_dim_add(n->c, size, axes[list[j]].in), twice);
                a->out = j == 0    ? size
                         : smaller ? ingot_dim_min(n->c, a->out, size)
                                   : ingot_dim_max(n->c, a->out, size);
            }
        }
        bool same = ingot_dim_equal(a->in, a->out);
        if (same && stretch)
            a->run_scale = NULL;
        if (same && !a->run_scale && (stretch || a->scale == 1))
            a->resized = false;
    }
    return true;
}

/* Sizes that are data of the run, which checks that they make what the file declares. */
static bool use_run_sizes(Lowering *n, ResizeAxis *axes, const int *list, int count, int input,
                          const int64_t *out)
{
    const char *policy = attr_string(n, "keep_aspect_ratio_policy", "stretch");
    ingot_dim *want[INGOT_MAX_RANK];
    ingot_tensor *factor = NULL;
    for (int i = 0; i < count; i++) {
        ingot_tensor *v = ratio_f64(n, list_entry(n, input, i, 0), axes[list[i]].in);
        bool smaller = strcmp(policy, "not_larger") == 0;
        factor = !factor ? v : smaller ? ingot_min(n->c, factor, v) : ingot_max(n->c, factor, v);
        want[i] = dim(n, out[list[i]]);
    }
    bool stretch = strcmp(policy, "stretch") == 0;
    for (int i = 0; i < count; i++) {
        ingot_tensor *size = list_entry(n, input, i, 0);
        if (!stretch) {
            size = ingot_mul(n->c, factor, dim_f64(n, axes[list[i]].in));
            size = as(n, ingot_floor(n->c, ingot_add_c(n->c, size, 0.5)), INGOT_I64);
        }
        if (!size_is(n, 0, list[i], size, want[i]))
            return false;
    }
    if (stretch)
        return use_sizes(n, axes, list, count, want);
    for (int i = 0; i < count; i++) {
        axes[list[i]].out = want[i];
        axes[list[i]].run_scale = factor;
        axes[list[i]].resized = true;
    }
    return true;
}

/* The region of interest of a crop: all starts, then all ends. */
static bool use_region(Lowering *n, ResizeAxis *axes, const int *list, int count)
{
    const double *v = NULL;
    int64_t length = -1;
    if (given(n, 1))
        ingot_dim_is_const(ingot_numel(n->c, n->in[1]), &length);
    if (length != 2 * count) {
        fault(n, "its region of interest is missing or has another length");
        return false;
    }
    if (ingot_is_const(n->in[1]) && floats_in(n, 1, &v) < 0)
        return false;
    for (int i = 0; i < count; i++) {
        ResizeAxis *a = &axes[list[i]];
        a->roi_start = v ? v[i] : 0;
        a->roi_end = v ? v[i + count] : 1;
        a->run_start = v ? NULL : float_entry(n, 1, i);
        a->run_end = v ? NULL : float_entry(n, 1, i + count);
        a->resized |= !v || v[i] != 0 || v[i + count] != 1;
    }
    return true;
}

/* The declared result, where an input that decides it is data of the run. */
static bool declared_result(Lowering *n, int64_t *out)
{
    int rank;
    return declared_shape(n, 0, &rank, out) && rank == ingot_rank(X);
}

ingot_tensor *onnx_resize(Lowering *n)
{
    ResizeAxis axes[INGOT_MAX_RANK];
    ingot_dim *known[INGOT_MAX_RANK], *const *want = NULL;
    int64_t declared[INGOT_MAX_RANK];
    int list[INGOT_MAX_RANK], count = listed_axes(n, list), n_v;
    const double *v;
    bool old = n->version < 11, ok = false;
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
               .extrapolation = attr_float(n, "extrapolation_value", 0),
               .up_where_smaller = old};
    int scales = old ? 1 : 2, sizes = 3;
    if (count < 0 || n->failed)
        return ingot_poison(n->c);
    axes_start(n, axes);
    if (given(n, scales)) {
        ok = true;
        if (!ingot_is_const(n->in[scales]) && declared_result(n, declared))
            ok = use_run_scales(n, axes, list, count, scales,
                                s.axis.coords == INGOT_COORDS_TF_CROP_AND_RESIZE, declared);
        else
            ok = (n_v = floats_in(n, scales, &v)) >= 0 && use_scales(n, axes, list, count, v, n_v);
    } else if (!old && given(n, sizes)) {
        if (ingot_contents(n->c, n->in[sizes], known, INGOT_MAX_RANK) < 0 &&
            declared_result(n, declared))
            ok = use_run_sizes(n, axes, list, count, sizes, declared);
        else if ((n_v = dims_in(n, sizes, &want)) == count)
            ok = use_sizes(n, axes, list, count, want);
        else if (n_v >= 0)
            fault(n, "it has %d sizes for %d axes", n_v, count);
    } else {
        return fault(n, "it has neither scales nor sizes");
    }
    if (ok && s.axis.coords == INGOT_COORDS_TF_CROP_AND_RESIZE)
        ok = use_region(n, axes, list, count);
    return ok && !n->failed ? resize(n, &s, axes) : ingot_poison(n->c);
}

ingot_tensor *onnx_upsample(Lowering *n)
{
    ResizeAxis axes[INGOT_MAX_RANK];
    int list[INGOT_MAX_RANK], n_v, rank = ingot_rank(X);
    int64_t declared[INGOT_MAX_RANK];
    double made[INGOT_MAX_RANK];
    const double *v = made;
    const float *scales;
    static const char *const modes[] = {"nearest", "linear", "bilinear", NULL};
    int mode = one_of(n, "mode", "nearest", modes);
    Style s = {.axis = {.mode = mode ? INGOT_RESIZE_LINEAR : INGOT_RESIZE_NEAREST,
                        .coords = INGOT_COORDS_ASYMMETRIC,
                        .nearest = INGOT_NEAREST_FLOOR}};
    axes_start(n, axes);
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
    } else if (given(n, 1) && !ingot_is_const(n->in[1]) && declared_result(n, declared)) {
        if (!use_run_scales(n, axes, list, rank, 1, false, declared))
            return ingot_poison(n->c);
        return n->failed ? ingot_poison(n->c) : resize(n, &s, axes);
    } else {
        if (n->n_in < 2 || !n->in[1])
            return fault(n, "it has no scales: from opset 9 on they are its second input");
        n_v = floats_in(n, 1, &v);
    }
    if (n->failed || !use_scales(n, axes, list, rank, v, n_v))
        return ingot_poison(n->c);
    return resize(n, &s, axes);
}
