/*
 * onnx_signal.c - ONNX operators on signals: DFT, STFT, window functions, MelWeightMatrix.
 *
 * The transform is ingot_dft(). Where only the run knows its length, the file has to declare the
 * shape of the result.
 */
#include <math.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]
#define PI 3.14159265358979323846

static ingot_tensor *input(Lowering *n, int i)
{
    return i < n->n_in ? n->in[i] : NULL;
}

/* A scalar input as an integer that is known now. */
static bool known_int(Lowering *n, int i, int64_t *out)
{
    const int64_t *v;
    if (!input(n, i) || ints_known(n, i, &v) != 1)
        return false;
    *out = v[0];
    return true;
}

static ingot_tensor *f64(Lowering *n, double v)
{
    return ingot_scalar_f(n->c, INGOT_F64, v);
}

static ingot_tensor *i64(Lowering *n, int64_t v)
{
    return ingot_scalar_i(n->c, INGOT_I64, v);
}

/* ---- complex tensors ------------------------------------------------------------------------- */

typedef ingot_tensor *MoveFn(Lowering *, ingot_tensor *, const void *how);

static ingot_complex both(Lowering *n, ingot_complex x, MoveFn *fn, const void *how)
{
    return (ingot_complex){fn(n, x.re, how), x.im ? fn(n, x.im, how) : NULL};
}

/* The axis *how to the end. */
static ingot_tensor *axis_last(Lowering *n, ingot_tensor *x, const void *how)
{
    int perm[INGOT_MAX_RANK], axis = *(const int *)how, rank = ingot_rank(x);
    for (int a = 0; a < rank; a++)
        perm[a] = a < axis ? a : a < rank - 1 ? a + 1 : axis;
    return ingot_permute(n->c, x, perm);
}

/* The last axis to place *how. */
static ingot_tensor *last_axis(Lowering *n, ingot_tensor *x, const void *how)
{
    int perm[INGOT_MAX_RANK], axis = *(const int *)how, rank = ingot_rank(x);
    for (int a = 0; a < rank; a++)
        perm[a] = a < axis ? a : a == axis ? rank - 1 : a - 1;
    return ingot_permute(n->c, x, perm);
}

/* The last axis cut or padded with zeros to *how elements. */
static ingot_tensor *resize_last(Lowering *n, ingot_tensor *x, const void *how)
{
    return ingot_resize_last(n->c, x, *(const int64_t *)how);
}

/* Bins 0..N/2 of a real signal's transform become all N: X[N - k] is X[k] conjugated. */
static ingot_complex mirror(Lowering *n, ingot_complex x, int64_t size)
{
    int64_t half = size / 2 + 1, rest = size - half;
    int last = ingot_rank(x.re) - 1;
    x = both(n, x, resize_last, &half);
    if (rest == 0)
        return x;
    ingot_tensor *re = ingot_slice(n->c, x.re, last, dim(n, rest), dim(n, rest), -1);
    x.re = ingot_concat(n->c, 2, (ingot_tensor *[]){x.re, re}, last);
    if (x.im) {
        ingot_tensor *im = ingot_slice(n->c, x.im, last, dim(n, rest), dim(n, rest), -1);
        x.im = ingot_concat(n->c, 2, (ingot_tensor *[]){x.im, ingot_neg(n->c, im)}, last);
    }
    return x;
}

/* The last axis, of size 1 or 2, as real and imaginary part. */
static bool parts(Lowering *n, ingot_tensor *x, ingot_complex *out)
{
    int last = ingot_rank(x) - 1;
    bool real = dim_is(ingot_shape(x, last), 1);
    if (!real && !dim_is(ingot_shape(x, last), 2)) {
        fault(n, "the last axis of a signal has to have size 1 or 2");
        return false;
    }
    x = widen(n, x);
    out->re = ingot_squeeze(n->c, ingot_slice(n->c, x, last, dim(n, 0), dim(n, 1), 1), last);
    out->im = NULL;
    if (!real)
        out->im = ingot_squeeze(n->c, ingot_slice(n->c, x, last, dim(n, 1), dim(n, 1), 1), last);
    return true;
}

/* [.., bins, parts] */
static ingot_tensor *joined(Lowering *n, ingot_complex x, ingot_dtype dtype)
{
    ingot_tensor *list[2] = {x.re, x.im};
    return as(n, ingot_stack(n->c, x.im ? 2 : 1, list, ingot_rank(x.re)), dtype);
}

static bool size_fits(Lowering *n, int64_t size)
{
    if (size < 1) {
        fault(n, "a transform of length %lld", (long long)size);
        return false;
    }
    if (!ingot_dft_fits(size)) {
        unsupported(n, "transforms of length %lld are not supported", (long long)size);
        return false;
    }
    return true;
}

static ingot_tensor *dft_along(Lowering *n, int axis, int64_t size)
{
    bool inverse = attr_int(n, "inverse", 0) != 0, onesided = attr_int(n, "onesided", 0) != 0;
    ingot_complex x;
    if (!size_fits(n, size) || !parts(n, X, &x))
        return ingot_poison(n->c);
    x = both(n, x, axis_last, &axis);
    x = inverse && onesided ? mirror(n, x, size) : both(n, x, resize_last, &size);
    ingot_dft_plan plan = {.n = size, .inverse = inverse};
    x = ingot_dft(n->c, plan, x, onesided && !inverse ? size / 2 + 1 : size);
    if (inverse) {
        x.re = ingot_mul_c(n->c, x.re, 1.0 / (double)size);
        x.im = onesided ? NULL : ingot_mul_c(n->c, x.im, 1.0 / (double)size);
    }
    return joined(n, both(n, x, last_axis, &axis), ingot_dtype_of(X));
}

/* The length of the transform along an axis; 0 if it is not known. */
static int64_t dft_size(Lowering *n, int axis)
{
    bool inverse = attr_int(n, "inverse", 0) != 0, onesided = attr_int(n, "onesided", 0) != 0;
    int64_t size, dims[INGOT_MAX_RANK];
    int rank;
    if (input(n, 1)) {
        if (known_int(n, 1, &size))
            return size;
        bool all = inverse || !onesided;
        return all && declared_shape(n, 0, &rank, dims) && rank == ingot_rank(X) ? dims[axis] : 0;
    }
    if (!ingot_dim_is_const(ingot_shape(X, axis), &size))
        return 0;
    return inverse && onesided ? 2 * (size - 1) : size;
}

/* Every axis is tried whose result has the declared shape; the run picks one of them. */
static ingot_tensor *dft_any_axis(Lowering *n)
{
    int64_t dims[INGOT_MAX_RANK], is;
    int declared, rank = ingot_rank(X);
    bool inverse = attr_int(n, "inverse", 0) != 0, onesided = attr_int(n, "onesided", 0) != 0;
    ingot_tensor *y = NULL, *picked = as(n, reshape_scalar(n, n->in[2]), INGOT_I64);
    picked = ingot_wrap_index(n->c, picked, dim(n, rank));
    if (!declared_shape(n, 0, &declared, dims) || declared != rank)
        return unsupported(n, "its axis is not known when compiling; --bind gives '%s' a value",
                           n->proto->input[2]);
    ingot_tensor *hits = i64(n, 0), *length = i64(n, 0);
    for (int axis = 0; axis < rank - 1; axis++) {
        int64_t size = dft_size(n, axis), out = onesided && !inverse ? size / 2 + 1 : size;
        bool fits = size > 0;
        for (int a = 0; fits && a < rank - 1; a++)
            fits = ingot_dim_is_const(ingot_shape(X, a), &is) && dims[a] == (a == axis ? out : is);
        if (!fits)
            continue;
        ingot_tensor *this = dft_along(n, axis, size);
        if (n->failed)
            return ingot_poison(n->c);
        ingot_tensor *here = ingot_eq(n->c, picked, i64(n, axis));
        y = y ? ingot_where(n->c, here, this, y) : this;
        hits = ingot_add(n->c, hits, as(n, here, INGOT_I64));
        length = ingot_where(n->c, here, i64(n, size), length);
    }
    if (y && !value_is(n, hits, dim(n, 1),
                       "the number of axes that are its own and give the declared shape"))
        return ingot_poison(n->c);
    if (y && input(n, 1) && !known_int(n, 1, &is)) {
        length = ingot_sub(n->c, as(n, reshape_scalar(n, n->in[1]), INGOT_I64), length);
        if (!value_is(n, length, dim(n, 0),
                      "the difference of its dft_length from the declared shape"))
            return ingot_poison(n->c);
    }
    return y ? y : fault(n, "no axis gives the shape that the file declares");
}

/* A signal of no length has no bins, or the one of a real signal, in which nothing is added up. */
static ingot_tensor *dft_of_nothing(Lowering *n, int axis)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    const int rank = ingot_rank(X);
    for (int i = 0; i < rank; i++)
        dims[i] = ingot_shape(X, i);
    dims[axis] = dim(n, attr_int(n, "onesided", 0) != 0);
    dims[rank - 1] = dim(n, 2);
    return ingot_expand(n->c, ingot_like(n->c, X, 0), rank, dims);
}

ingot_tensor *onnx_dft(Lowering *n)
{
    int axis, rank = ingot_rank(X);
    int64_t given = n->version < 20 ? attr_int(n, "axis", 1) : -2;
    if (rank < 2)
        return fault(n, "its input has to have rank 2 or more");
    if (n->version >= 20 && input(n, 2) && !known_int(n, 2, &given))
        return dft_any_axis(n);
    if (!axis_in(n, given, rank, &axis))
        return ingot_poison(n->c);
    if (axis == rank - 1)
        return fault(n, "its axis is that of real and imaginary parts");
    int64_t size = dft_size(n, axis);
    if (size == 0 && !input(n, 1) && dim_is(ingot_shape(X, axis), 0))
        return dft_of_nothing(n, axis);
    if (size == 0)
        return unsupported(n, "its length is not known when compiling");
    if (input(n, 1) && !value_is(n, n->in[1], dim(n, size), "its dft_length"))
        return ingot_poison(n->c);
    return dft_along(n, axis, size);
}

/* ---- STFT ------------------------------------------------------------------------------------ */

/* [batch, time] -> [batch, frames, size], frame f from time f * step on; where only the run knows
 * the step, `frames` is what the file declares. */
typedef struct {
    int64_t step, frames, size;
    ingot_tensor *run_step;
} Frames;

static ingot_tensor *frame(Lowering *n, ingot_tensor *x, const void *how)
{
    const Frames *f = how;
    if (!f->run_step)
        return ingot_window(n->c, x, 1, f->size, f->step, 1);
    ingot_dim *dims[3] = {ingot_shape(x, 0), dim(n, f->frames), dim(n, f->size)};
    ingot_tensor *time = ingot_mul(n->c, ingot_iota(n->c, 3, dims, 1), f->run_step);
    time = ingot_add(n->c, time, ingot_iota(n->c, 3, dims, 2));
    return ingot_gather(n->c, x, (ingot_tensor *[]){ingot_iota(n->c, 3, dims, 0), time});
}

/* What is declared is what the run computes: frames, and their length. */
static bool stft_checks(Lowering *n, bool onesided, const Frames *f, const ingot_dft_plan *p,
                        const int64_t *dims)
{
    ingot_context *c = n->c;
    ingot_tensor *length = p->length ? p->length : i64(n, f->size);
    ingot_tensor *room = ingot_sub(c, ingot_from_dim(c, ingot_shape(X, 1)), length);
    ingot_tensor *frames = ingot_add_c(c, ingot_div(c, room, f->run_step), 1);
    frames = ingot_where(c, ingot_lt(c, room, i64(n, 0)), i64(n, 0), frames);
    ingot_tensor *bins = onesided ? ingot_add_c(c, ingot_div(c, length, i64(n, 2)), 1) : length;
    return size_is(n, 0, 1, frames, dim(n, dims[1])) &&
           (!p->length || size_is(n, 0, 2, bins, dim(n, dims[2]))) &&
           (!p->length || !input(n, 2) ||
            value_is(n, length, ingot_shape(n->in[2], 0),
                     "its frame_length, which differs from its window's length,"));
}

/* Step, number and size of the frames, and the plan of their transform. False after an error. */
static bool stft_plan(Lowering *n, bool onesided, Frames *f, ingot_dft_plan *p)
{
    int64_t dims[INGOT_MAX_RANK];
    int rank;
    bool declared = declared_shape(n, 0, &rank, dims) && rank == 4;
    ingot_dim *size = input(n, 2) ? ingot_shape(n->in[2], 0) : ingot_shape(X, 1);
    *f = (Frames){.step = 0};
    bool any_step = !known_int(n, 1, &f->step),
         any_size = input(n, 3) && !known_int(n, 3, &f->size);
    if (declared &&
        (any_step || any_size)) { /* frames of a length that is a bound are not as many */
        f->run_step = as(n, reshape_scalar(n, n->in[1]), INGOT_I64);
        f->frames = dims[1];
        f->step = 1;
    }
    if (declared && any_size) {
        p->length = as(n, reshape_scalar(n, n->in[3]), INGOT_I64);
        f->size = onesided ? 2 * dims[2] - 1 : dims[2];
    } else if (!input(n, 3) && !ingot_dim_is_const(size, &f->size)) {
        f->size = 0;
    }
    p->n = f->size;
    if (f->step > 0 && f->size > 0)
        return size_fits(n, f->size) && (!f->run_step || stft_checks(n, onesided, f, p, dims));
    unsupported(n, "its frame_step and frame_length are not known when compiling");
    return false;
}

ingot_tensor *onnx_stft(Lowering *n)
{
    ingot_tensor *x = X, *window = input(n, 2);
    bool onesided = attr_int(n, "onesided", 1) != 0;
    Frames f;
    ingot_dft_plan plan = {0};
    ingot_complex s;
    if (ingot_rank(x) == 2)
        x = ingot_unsqueeze(n->c, x, 2);
    if (ingot_rank(x) != 3 || (window && ingot_rank(window) != 1))
        return fault(n, "its signal has to have rank 3 and its window rank 1");
    if (!stft_plan(n, onesided, &f, &plan) || !parts(n, x, &s))
        return ingot_poison(n->c);
    if (window && !plan.length && !dim_is(ingot_shape(window, 0), f.size))
        return fault(n, "its window does not have the length of a frame");
    s = both(n, s, frame, &f);
    if (window) {
        window = resize_last(n, as(n, window, ingot_dtype_of(s.re)), &f.size);
        s.re = ingot_mul(n->c, s.re, window);
        s.im = s.im ? ingot_mul(n->c, s.im, window) : NULL;
    }
    return joined(n, ingot_dft(n->c, plan, s, onesided ? f.size / 2 + 1 : f.size),
                  ingot_dtype_of(x));
}

/* ---- tables of numbers ----------------------------------------------------------------------- */

static bool output_dtype(Lowering *n, ingot_dtype *out)
{
    int64_t v = attr_int(n, "output_datatype", 1);
    if (v > 0 && v <= INT32_MAX && ingot_onnx_dtype((int32_t)v, out))
        return true;
    fault(n, "its attribute 'output_datatype' is no element type");
    return false;
}

/* a - b cos(2 pi i / N) + c cos(4 pi i / N), N the size (less 1 if not periodic) */
static ingot_tensor *cosine_window(Lowering *n, double a, double b, double c)
{
    ingot_dim *size;
    ingot_dtype dtype;
    if (!output_dtype(n, &dtype))
        return ingot_poison(n->c);
    size = size_at_run_time(n, 0, 0, 1, X, -1);
    if (!size)
        return unbounded_size(n, 0, 0);
    if (ingot_is_poison(size))
        return size;
    bool periodic = attr_int(n, "periodic", 1) != 0;
    ingot_dim *period = periodic ? size : ingot_dim_sub(n->c, size, dim(n, 1));
    period = ingot_dim_max(n->c, period, dim(n, 1));
    ingot_tensor *turn = as(n, ingot_iota(n->c, 1, &size, 0), INGOT_F64);
    turn = ingot_mul_c(n->c, turn, 2 * PI);
    turn = ingot_div(n->c, turn, as(n, ingot_from_dim(n->c, period), INGOT_F64));
    ingot_tensor *y = ingot_add_c(n->c, ingot_mul_c(n->c, ingot_cos(n->c, turn), -b), a);
    if (c != 0)
        y = ingot_add(n->c, y, ingot_mul_c(n->c, ingot_cos(n->c, ingot_mul_c(n->c, turn, 2)), c));
    if (dtype != INGOT_F64) /* a peak that is 1 but for rounding is 1, of integers too */
        y = as(n, y, INGOT_F32);
    return ingot_freeze(n->c, as(n, y, dtype));
}

ingot_tensor *onnx_hann_window(Lowering *n)
{
    return cosine_window(n, 0.5, 0.5, 0);
}

ingot_tensor *onnx_hamming_window(Lowering *n)
{
    return cosine_window(n, 25.0 / 46, 21.0 / 46, 0);
}

ingot_tensor *onnx_blackman_window(Lowering *n)
{
    return cosine_window(n, 0.42, 0.5, 0.08);
}

static ingot_tensor *scalar_f64(Lowering *n, int i)
{
    return as(n, reshape_scalar(n, n->in[i]), INGOT_F64);
}

/* 2595 log10(1 + hertz / 700) */
static ingot_tensor *mel_of(Lowering *n, ingot_tensor *hertz)
{
    ingot_tensor *x = ingot_add_c(n->c, ingot_div(n->c, hertz, f64(n, 700)), 1);
    return ingot_div(n->c, ingot_mul_c(n->c, ingot_log(n->c, x), 2595), f64(n, log(10)));
}

/* Corner i of the triangles, as a bin of the spectrum: floor((dft_length + 1) hertz / rate). */
static ingot_tensor *mel_corner(Lowering *n, ingot_tensor *i, ingot_tensor *step, ingot_tensor *low)
{
    ingot_tensor *mel = ingot_add(n->c, ingot_mul(n->c, as(n, i, INGOT_F64), step), low);
    ingot_tensor *x =
        ingot_exp(n->c, ingot_mul_c(n->c, ingot_div(n->c, mel, f64(n, 2595)), log(10)));
    x = ingot_mul_c(n->c, ingot_add_c(n->c, x, -1), 700);
    x = ingot_mul(n->c, x, ingot_add_c(n->c, scalar_f64(n, 1), 1));
    return ingot_floor(n->c, ingot_div(n->c, x, scalar_f64(n, 2)));
}

/* A triangle a column: it rises from a corner to the next one and falls to the one after that. */
ingot_tensor *onnx_mel_weight_matrix(Lowering *n)
{
    int64_t declared[INGOT_MAX_RANK], bins, size;
    ingot_dtype dtype;
    int rank;
    if (!output_dtype(n, &dtype))
        return ingot_poison(n->c);
    if (known_int(n, 0, &bins) && known_int(n, 1, &size)) {
        size = size / 2 + 1;
    } else {
        if (!declared_shape(n, 0, &rank, declared) || rank != 2)
            return unsupported(n, "its num_mel_bins and dft_length are not known when compiling");
        size = declared[0];
        bins = declared[1];
        ingot_tensor *half =
            ingot_div(n->c, as(n, reshape_scalar(n, n->in[1]), INGOT_I64), i64(n, 2));
        if (!size_is(n, 0, 0, ingot_add_c(n->c, half, 1), dim(n, size)) ||
            !size_is(n, 0, 1, n->in[0], dim(n, bins)))
            return ingot_poison(n->c);
    }
    if (bins < 0 || size < 1)
        return fault(n, "its num_mel_bins or dft_length is negative");
    ingot_dim *dims[2] = {dim(n, size), dim(n, bins)};
    ingot_tensor *low = mel_of(n, scalar_f64(n, 3)), *high = mel_of(n, scalar_f64(n, 4));
    ingot_tensor *step = ingot_div(n->c, ingot_sub(n->c, high, low), f64(n, (double)(bins + 2)));
    ingot_tensor *i = ingot_iota(n->c, 2, dims, 1), *j = ingot_iota(n->c, 2, dims, 0);
    ingot_tensor *l = mel_corner(n, i, step, low);
    ingot_tensor *m = mel_corner(n, ingot_add_c(n->c, i, 1), step, low);
    ingot_tensor *h = mel_corner(n, ingot_add_c(n->c, i, 2), step, low);
    j = as(n, j, INGOT_F64);
    ingot_tensor *rise = ingot_div(n->c, ingot_sub(n->c, j, l), ingot_sub(n->c, m, l));
    ingot_tensor *fall = ingot_div(n->c, ingot_sub(n->c, h, j), ingot_sub(n->c, h, m));
    ingot_tensor *rises = ingot_and(n->c, ingot_ge(n->c, j, l), ingot_lt(n->c, j, m));
    ingot_tensor *falls = ingot_and(n->c, ingot_ge(n->c, j, m), ingot_lt(n->c, j, h));
    ingot_tensor *y = ingot_where(n->c, rises, rise, as(n, ingot_eq(n->c, j, m), INGOT_F64));
    y = ingot_where(n->c, falls, fall, y);
    return ingot_freeze(n->c, as(n, y, dtype));
}
