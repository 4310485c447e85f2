/*
 * onnx_random.c - ONNX random numbers: uniform and normal ones, Bernoulli, Multinomial.
 *
 * The generator is that of the builder (compiler/builder/random.c): every run gives other numbers,
 * and the same ones again after a reset. A node with a `seed` draws from it alone, one without from
 * config.seed and from which node it is.
 */
#include <string.h>

#include "onnx.h"

#define X n->in[0]

/* The attribute, or NULL: an integer of Dropout, else the bits of a float. */
static const uint64_t *seed_of(Lowering *n, uint64_t *seed)
{
    bool is_int = strcmp(n->proto->op_type, "Dropout") == 0;
    float value = is_int ? 0 : (float)attr_float(n, "seed", 0);
    *seed = is_int ? (uint64_t)attr_int(n, "seed", 0) : 0;
    if (!is_int)
        memcpy(seed, &value, sizeof value);
    return attr_has(n, "seed") ? seed : NULL;
}

static bool dtype_attr(Lowering *n, ingot_dtype *dtype)
{
    int64_t given = attr_int(n, "dtype", 0);
    if (!attr_has(n, "dtype"))
        return true;
    if (given < 1 || given > INT32_MAX || !ingot_onnx_dtype((int32_t)given, dtype)) {
        fault(n, "its attribute 'dtype' is %lld, which is no type", (long long)given);
        return false;
    }
    return true;
}

/* Of the attribute `shape`, or of the input. */
static bool drawn_shape(Lowering *n, ingot_dtype *dtype, int *rank, ingot_dim **dims)
{
    const int64_t *shape;
    *dtype = INGOT_F32;
    if (n->n_in) {
        *rank = ingot_rank(X);
        shape_of(X, dims);
        *dtype = ingot_dtype_of(X);
        return dtype_attr(n, dtype);
    }
    *rank = attr_ints(n, "shape", &shape);
    if (*rank < 0 || *rank > INGOT_MAX_RANK) {
        fault(n, "its attribute 'shape' is missing or has too many entries");
        return false;
    }
    for (int a = 0; a < *rank; a++) {
        if (shape[a] < 0) {
            fault(n, "its shape has a dim of %lld", (long long)shape[a]);
            return false;
        }
        dims[a] = dim(n, shape[a]);
    }
    return dtype_attr(n, dtype);
}

ingot_tensor *uniform_like(Lowering *n, ingot_tensor *x, ingot_dtype dtype)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    uint64_t seed;
    const uint64_t *given = seed_of(n, &seed);
    shape_of(x, dims);
    return ingot_random_uniform(n->c, dtype, ingot_rank(x), dims, given);
}

typedef ingot_tensor *DrawFn(ingot_context *, ingot_dtype, int rank, ingot_dim *const *dims,
                             const uint64_t *seed);

/* offset + scale x, where draw makes x */
static ingot_tensor *drawn(Lowering *n, DrawFn *draw, double scale, double offset)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_dtype dtype;
    int rank;
    uint64_t seed;
    const uint64_t *given = seed_of(n, &seed);
    if (!drawn_shape(n, &dtype, &rank, dims))
        return ingot_poison(n->c);
    ingot_tensor *x = widen(n, draw(n->c, dtype, rank, dims, given));
    if (ingot_is_poison(x))
        return x;
    return as(n, ingot_add_c(n->c, ingot_mul_c(n->c, x, scale), offset), dtype);
}

/* low + (high - low) u */
ingot_tensor *onnx_random_uniform(Lowering *n)
{
    double low = attr_float(n, "low", 0), high = attr_float(n, "high", 1);
    return drawn(n, ingot_random_uniform, high - low, low);
}

ingot_tensor *onnx_random_uniform_like(Lowering *n)
{
    return onnx_random_uniform(n);
}

/* mean + scale z */
ingot_tensor *onnx_random_normal(Lowering *n)
{
    double mean = attr_float(n, "mean", 0), scale = attr_float(n, "scale", 1);
    return drawn(n, ingot_random_normal, scale, mean);
}

ingot_tensor *onnx_random_normal_like(Lowering *n)
{
    return onnx_random_normal(n);
}

/* 1 with the probability that the input says. */
ingot_tensor *onnx_bernoulli(Lowering *n)
{
    ingot_dtype dtype = ingot_dtype_of(X);
    ingot_tensor *p = widen(n, X), *u = uniform_like(n, p, ingot_dtype_of(p));
    return dtype_attr(n, &dtype) ? as(n, ingot_lt(n->c, u, p), dtype) : ingot_poison(n->c);
}

/* The number of classes whose cumulative probability, out of exp(x), lies at or below a uniform
 * number. */
ingot_tensor *onnx_multinomial(Lowering *n)
{
    ingot_dtype dtype = INGOT_I32;
    int64_t samples = attr_int(n, "sample_size", 1);
    uint64_t seed;
    const uint64_t *given = seed_of(n, &seed);
    if (ingot_rank(X) != 2 || samples < 0)
        return fault(n, "its input has to be [batch, classes], and its sample_size not negative");
    if (!dtype_attr(n, &dtype))
        return ingot_poison(n->c);
    return as(n, ingot_multinomial(n->c, widen(n, X), dim(n, samples), given), dtype);
}
