/*
 * ops_fourier.c - discrete Fourier transforms.
 *
 * A transform of length N = P Q is two of lengths P and Q with a multiplication between them
 * (Cooley and Tukey); lengths that have no small divisor are products with a matrix of sines and
 * cosines. Tables are built as graphs, and evaluated here where the length is known.
 */
#include "ops.h"

#define PI 3.14159265358979323846

enum {
    MAX_FACTOR = 32,    /* transforms of up to this length are done by one matrix */
    MAX_TABLE = 1 << 22 /* elements of a table */
};

ingot_tensor *ingot_freeze(ingot_context *c, ingot_tensor *t)
{
    int64_t dims[INGOT_MAX_RANK], count = 1;
    if (ingot_is_poison(t) || !ingot_is_const(t) || !ingot_static_shape(t, dims))
        return t;
    for (int a = 0; a < ingot_rank(t); a++) {
        if (dims[a] > MAX_TABLE || count * dims[a] > MAX_TABLE)
            return t;
        count *= dims[a];
    }
    size_t bytes = (size_t)count * ingot_dtype_bytes(ingot_dtype_of(t));
    void *data = ingot_alloc(c, bytes + 1);
    if (!bytes || !ingot_const_data(c, t, data, bytes))
        return t;
    return ingot_data(c, NULL, ingot_dtype_of(t), ingot_rank(t), dims, data);
}

static ingot_dim *dim(ingot_context *c, int64_t v)
{
    return ingot_dim_const(c, v);
}

static ingot_tensor *as(ingot_context *c, ingot_tensor *x, ingot_dtype to)
{
    return ingot_dtype_of(x) == to ? x : ingot_cast(c, x, to);
}

/* ---- complex tensors ------------------------------------------------------------------------- */

typedef ingot_tensor *PartFn(ingot_context *, ingot_tensor *, const void *how);

static ingot_complex both(ingot_context *c, ingot_complex x, PartFn *fn, const void *how)
{
    return (ingot_complex){fn(c, x.re, how), x.im ? fn(c, x.im, how) : NULL};
}

static ingot_tensor *stored(ingot_context *c, ingot_tensor *x, const void *how)
{
    (void)how;
    return ingot_contiguous(c, x);
}

/* The last axis [P * Q] as [P, Q]; how: {P, Q} */
static ingot_tensor *split_last(ingot_context *c, ingot_tensor *x, const void *how)
{
    const int64_t *factor = how;
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank = ingot_rank(x);
    for (int i = 0; i < rank; i++)
        dims[i] = ingot_shape(x, i);
    dims[rank - 1] = dim(c, factor[0]);
    dims[rank] = dim(c, factor[1]);
    return ingot_reshape(c, x, rank + 1, dims);
}

static ingot_tensor *swap_last(ingot_context *c, ingot_tensor *x, const void *how)
{
    (void)how;
    return ingot_transpose(c, x, ingot_rank(x) - 1, ingot_rank(x) - 2);
}

static ingot_tensor *join_last(ingot_context *c, ingot_tensor *x, const void *how)
{
    (void)how;
    return ingot_flatten(c, x, ingot_rank(x) - 2, ingot_rank(x));
}

ingot_tensor *ingot_resize_last(ingot_context *c, ingot_tensor *x, int64_t size)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    int last = ingot_rank(x) - 1;
    for (int a = 0; a <= last; a++)
        lo[a] = hi[a] = dim(c, 0);
    hi[last] = ingot_dim_sub(c, dim(c, size), ingot_shape(x, last));
    return ingot_pad(c, x, lo, hi);
}

static ingot_tensor *resize_last(ingot_context *c, ingot_tensor *x, const void *how)
{
    return ingot_resize_last(c, x, *(const int64_t *)how);
}

/* a b, b = cosine + i sine with tables. */
static ingot_complex times(ingot_context *c, ingot_complex a,
                           ingot_tensor *(*mul)(ingot_context *, ingot_tensor *, ingot_tensor *),
                           ingot_tensor *cosine, ingot_tensor *sine)
{
    ingot_complex y = {mul(c, a.re, cosine), mul(c, a.re, sine)};
    if (a.im) {
        y.re = ingot_sub(c, y.re, mul(c, a.im, sine));
        y.im = ingot_add(c, y.im, mul(c, a.im, cosine));
    }
    return y;
}

/* ---- the transform --------------------------------------------------------------------------- */

/* cos or sin of sign 2 pi (row column mod length) / length, [rows, columns]; rows from the length
 * on are zero. */
static ingot_tensor *table(ingot_context *c, const ingot_dft_plan *p, int64_t rows, int64_t columns,
                           bool sine, ingot_dtype dtype)
{
    ingot_dim *dims[2] = {dim(c, rows), dim(c, columns)};
    ingot_tensor *length = p->length ? p->length : ingot_scalar_i(c, INGOT_I64, p->n);
    ingot_tensor *row = ingot_iota(c, 2, dims, 0), *column = ingot_iota(c, 2, dims, 1);
    ingot_tensor *turn = ingot_mod(c, ingot_mul(c, row, column), length);
    turn = ingot_mul_c(c, as(c, turn, INGOT_F64), p->inverse ? 2 * PI : -2 * PI);
    turn = ingot_div(c, turn, as(c, length, INGOT_F64));
    ingot_tensor *t = sine ? ingot_sin(c, turn) : ingot_cos(c, turn);
    if (p->length)
        t = ingot_where(c, ingot_lt(c, row, length), t, ingot_scalar_f(c, INGOT_F64, 0));
    return ingot_freeze(c, as(c, t, dtype));
}

/* The first factor to take out: of large lengths the largest divisor that one matrix is good for.
 * The inverse of twice an odd length takes out 2, as common FFTs do: what they leave where the
 * exact result is zero (1e-7 of the largest term) is what the published results of ONNX contain. */
static int64_t divisor(int64_t size, bool inverse)
{
    if (inverse && size % 4 == 2)
        return 2;
    for (int64_t p = MAX_FACTOR; p > 1 && size > MAX_FACTOR; p--)
        if (size % p == 0)
            return p;
    return size;
}

bool ingot_dft_fits(int64_t size)
{
    int64_t left = size;
    if (size < 1)
        return false;
    while (left > MAX_FACTOR && divisor(left, false) < left)
        left /= divisor(left, false);
    return left <= MAX_TABLE / left && size <= MAX_TABLE;
}

ingot_complex ingot_dft(ingot_context *c, ingot_dft_plan plan, ingot_complex x, int64_t bins)
{
    ingot_dtype dtype = ingot_dtype_of(x.re);
    int64_t p = plan.length ? plan.n : divisor(plan.n, plan.inverse),
            q = plan.n / p; /* q is 1 for primes */
    if (q == 1) {
        ingot_tensor *cosine = table(c, &plan, plan.n, bins, false, dtype);
        ingot_tensor *sine = table(c, &plan, plan.n, bins, true, dtype);
        return both(c, times(c, x, ingot_matmul, cosine, sine), stored, NULL);
    }
    /* x[q n1 + n2], y[k1 + p k2]: over n1, turned by k1 n2, over n2 */
    ingot_dft_plan inner = {.n = p, .inverse = plan.inverse},
                   outer = {.n = q, .inverse = plan.inverse};
    x = both(c, both(c, x, split_last, (int64_t[]){p, q}), swap_last, NULL);
    x = ingot_dft(c, inner, x, p);
    x = times(c, x, ingot_mul, table(c, &plan, q, p, false, dtype),
              table(c, &plan, q, p, true, dtype));
    x = ingot_dft(c, outer, both(c, x, swap_last, NULL), q);
    x = both(c, both(c, x, swap_last, NULL), join_last, NULL);
    return bins == plan.n ? x : both(c, x, resize_last, &bins);
}
