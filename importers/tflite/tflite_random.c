/*
 * tflite_random.c - random numbers: of TensorFlow Lite's operators others than LiteRT's, of
 * StableHLO's generator the same bits.
 */
#include "tflite_model.h"

#define X n->in[0]

/* The seed of the options, NULL: there is none. */
static const uint64_t *seed_of(TfliteNode *n, uint64_t *seed)
{
    const uint64_t a = (uint64_t)tfl_int(n, 0, 8, 0), b = (uint64_t)tfl_int(n, 1, 8, 0);
    *seed = a * 0x9e3779b97f4a7c15u + b;
    return a || b ? seed : NULL;
}

static ingot_tensor *drawn(TfliteNode *n, bool normal)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    uint64_t seed;
    const uint64_t *given = seed_of(n, &seed);
    const int rank = tfl_dims(n, 0, dims, INGOT_MAX_RANK);
    if (rank < 0)
        return ingot_poison(n->c);
    return normal ? ingot_random_normal(n->c, INGOT_F32, rank, dims, given)
                  : ingot_random_uniform(n->c, INGOT_F32, rank, dims, given);
}

ingot_tensor *tflite_random_uniform(TfliteNode *n)
{
    return drawn(n, false);
}

ingot_tensor *tflite_random_normal(TfliteNode *n)
{
    return drawn(n, true);
}

ingot_tensor *tflite_multinomial(TfliteNode *n)
{
    uint64_t seed;
    ingot_dim *samples;
    if (tfl_dims(n, 1, &samples, 1) != 1)
        return ingot_poison(n->c);
    ingot_tensor *y = ingot_multinomial(n->c, X, samples, seed_of(n, &seed));
    return tfl_cast(n, y, tfl_out_dtype(n));
}

/* ---- StableHLO's generator --------------------------------------------------------------------
 */

static ingot_tensor *word(TfliteNode *n, uint32_t v)
{
    return ingot_scalar_i(n->c, INGOT_U32, v);
}

/* Half of number i of the state (u64): 0 the low one, 1 the high one. */
static ingot_tensor *state_half(TfliteNode *n, int i, int half)
{
    ingot_context *c = n->c;
    ingot_tensor *v = ingot_slice(c, X, 0, tfl_dim(n, i), tfl_dim(n, 1), 1);
    v = ingot_squeeze(c, v, 0);
    v = half ? ingot_shr(c, v, ingot_scalar_i(c, INGOT_U64, 32)) : v;
    return ingot_cast(c, v, INGOT_U32);
}

/* The product of two words: its low and high word. */
static void product(TfliteNode *n, ingot_tensor *x, uint32_t by, ingot_tensor *out[2])
{
    ingot_context *c = n->c;
    ingot_tensor *all = ingot_mul(c, ingot_cast(c, x, INGOT_U64), ingot_scalar_i(c, INGOT_U64, by));
    out[0] = ingot_cast(c, all, INGOT_U32);
    out[1] = ingot_cast(c, ingot_shr(c, all, ingot_scalar_i(c, INGOT_U64, 32)), INGOT_U32);
}

/* Philox-4x32 of 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"): x is the
 * counter, and becomes what it stands for. */
static void philox(TfliteNode *n, ingot_tensor *const key[2], ingot_tensor *x[4])
{
    ingot_context *c = n->c;
    ingot_tensor *k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; round++) {
        ingot_tensor *a[2], *b[2], *x1 = x[1], *x3 = x[3];
        product(n, x[0], 0xd2511f53u, a);
        product(n, x[2], 0xcd9e8d57u, b);
        x[0] = ingot_xor(c, ingot_xor(c, b[1], x1), k[0]);
        x[1] = b[0];
        x[2] = ingot_xor(c, ingot_xor(c, a[1], x3), k[1]);
        x[3] = a[0];
        k[0] = ingot_add(c, k[0], word(n, 0x9e3779b9u));
        k[1] = ingot_add(c, k[1], word(n, 0xbb67ae85u));
    }
}

/* The counter (its low and high word) by `by` later. */
static void later(TfliteNode *n, ingot_tensor *const counter[2], ingot_tensor *by,
                  ingot_tensor *out[2])
{
    ingot_context *c = n->c;
    out[0] = ingot_add(c, counter[0], by);
    ingot_tensor *carry = ingot_cast(c, ingot_lt(c, out[0], counter[0]), INGOT_U32);
    out[1] = ingot_add(c, counter[1], carry);
}

/* Two words as one of 64 bits. */
static ingot_tensor *joined(TfliteNode *n, ingot_tensor *lo, ingot_tensor *hi)
{
    ingot_context *c = n->c;
    hi = ingot_shl(c, ingot_cast(c, hi, INGOT_U64), ingot_scalar_i(c, INGOT_U64, 32));
    return ingot_or(c, ingot_cast(c, lo, INGOT_U64), hi);
}

/* Words [blocks, each] as so many elements of output 1. */
static ingot_tensor *bits(TfliteNode *n, ingot_tensor *x, int64_t count, int rank,
                          const int64_t *dims)
{
    ingot_context *c = n->c;
    ingot_dtype dtype;
    tflite_dtype(n->to[1]->type, &dtype);
    const int64_t words = ingot_dtype_bytes(dtype) == 8 ? 2 * count : count;
    x = ingot_slice(c, ingot_flatten(c, x, 0, 2), 0, tfl_dim(n, 0), tfl_dim(n, words), 1);
    if (words > count) {
        ingot_tensor *half[2];
        for (int k = 0; k < 2; k++)
            half[k] = ingot_slice(c, x, 0, tfl_dim(n, k), tfl_dim(n, count), 2);
        x = joined(n, half[0], half[1]);
    }
    if (!ingot_is_poison(x) && ingot_dtype_of(x) != dtype)
        x = ingot_bitcast(c, x, dtype);
    return ingot_reshape_c(c, x, rank, dims);
}

/* The state is a key and a counter (and of Philox perhaps the counter's upper half): words of a
 * block follow from the counter, which is one more for each block. */
ingot_tensor *tflite_hlo_random_bits(TfliteNode *n)
{
    enum { THREEFRY = 2 };
    ingot_context *c = n->c;
    const bool threefry = tfl_int(n, 0, 1, 0) == THREEFRY;
    const int64_t each = threefry ? 2 : 4;
    int64_t size, count = 1, dims[INGOT_MAX_RANK];
    ingot_dtype dtype;
    if (n->n_out != 2 || !n->to[1] || n->to[1]->shape.n > INGOT_MAX_RANK ||
        !tflite_dtype(n->to[1]->type, &dtype) || ingot_dtype_bytes(dtype) < 4 ||
        dtype == INGOT_F32 || dtype == INGOT_F64 || ingot_is_poison(X))
        return tfl_fault(n, "it gives a state and integers of 32 or 64 bits");
    if (ingot_dtype_of(X) != INGOT_U64 || ingot_rank(X) != 1 ||
        !ingot_dim_is_const(ingot_shape(X, 0), &size) || size < 2 || size > (threefry ? 2 : 3))
        return tfl_fault(n, "its state is no list of %s numbers of 64 bits",
                         threefry ? "two" : "two or three");
    const int rank = (int)n->to[1]->shape.n;
    for (int a = 0; a < rank; a++)
        count *= dims[a] = ingot_tflite_i32(&n->to[1]->shape, (size_t)a);
    const int64_t words = ingot_dtype_bytes(dtype) == 8 ? 2 * count : count;
    ingot_dim *blocks = tfl_dim(n, (words + each - 1) / each);
    ingot_tensor *key[2], *from[4], *x[4], *last[2];
    for (int k = 0; k < 2; k++) {
        key[k] = state_half(n, 0, k);
        from[k] = state_half(n, 1, k);
        from[2 + k] = size == 3 ? state_half(n, 2, k) : key[k];
        x[2 + k] = from[2 + k];
    }
    later(n, from, ingot_cast(c, ingot_iota(c, 1, &blocks, 0), INGOT_U32), x);
    later(n, from, ingot_cast(c, ingot_from_dim(c, blocks), INGOT_U32), last);
    if (threefry)
        ingot_threefry(c, key, x, x);
    else
        philox(n, key, x);
    for (int k = 0; k < each; k++)
        x[k] = ingot_expand(c, x[k], 1, &blocks);
    n->out[1] = bits(n, ingot_stack(c, (int)each, x, 1), count, rank, dims);
    ingot_tensor *state[3] = {joined(n, key[0], key[1]), joined(n, last[0], last[1]),
                              joined(n, from[2], from[3])};
    return ingot_stack(c, (int)size, state, 0);
}
