/* random.c - random numbers from a counter: Threefry-2x32 with 20 rounds (Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011), composed of integer arithmetic, so that they are
 * the same bits everywhere.
 *
 *     (a, b) = threefry(key, counter)      both are two words of 32 bits
 *
 * The key of an operator is threefry of (seed, which operator, which run), and once more for each
 * loop around it, of the iteration; the counter is an element's place.  What runs differ by is a
 * state tensor of the model, u64 [seed, runs done], which begins as [config.seed, 0] after init and
 * reset. */
#include "builder.h"

typedef struct {
    Node *w[2]; /* u32, broadcasting */
} ThreefryPair;

static Node *u32(Context *c, int64_t v)
{
    return ingot_scalar_i(c, INGOT_U32, v);
}

static Node *rotate(Context *c, Node *x, int by)
{
    return ingot_or(c, ingot_shl(c, x, u32(c, by)), ingot_shr(c, x, u32(c, 32 - by)));
}

static ThreefryPair threefry(Context *c, ThreefryPair key, ThreefryPair x)
{
    static const int by[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    Node *parity = ingot_xor(c, ingot_xor(c, key.w[0], key.w[1]), u32(c, 0x1bd11bda));
    Node *k[3] = {key.w[0], key.w[1], parity};
    x.w[0] = ingot_add(c, x.w[0], k[0]);
    x.w[1] = ingot_add(c, x.w[1], k[1]);
    for (int round = 0; round < 20; round++) {
        x.w[0] = ingot_add(c, x.w[0], x.w[1]);
        x.w[1] = ingot_xor(c, rotate(c, x.w[1], by[round % 8]), x.w[0]);
        if (round % 4 != 3)
            continue;
        int s = round / 4 + 1;
        x.w[0] = ingot_add(c, x.w[0], k[s % 3]);
        x.w[1] = ingot_add(c, x.w[1], ingot_add(c, k[(s + 1) % 3], u32(c, s)));
    }
    return x;
}

void ingot_threefry(ingot_context *c, ingot_tensor *const key[2], ingot_tensor *const counter[2],
                    ingot_tensor *out[2])
{
    ThreefryPair y =
        threefry(c, (ThreefryPair){{key[0], key[1]}}, (ThreefryPair){{counter[0], counter[1]}});
    out[0] = y.w[0];
    out[1] = y.w[1];
}

/* The low and high half of a u64. */
static ThreefryPair halves(Context *c, Node *x)
{
    Node *high = ingot_shr(c, x, ingot_scalar_i(c, INGOT_U64, 32));
    return (ThreefryPair){{ingot_cast(c, x, INGOT_U32), ingot_cast(c, high, INGOT_U32)}};
}

/* u64 [seed, runs done]; the first use makes it. */
static Node *state_of(Context *c)
{
    static const int64_t two = 2;
    static const uint64_t one_more[2] = {0, 1};
    if (!c->random)
        c->random = ingot_state(c, "random", INGOT_U64, 1, &two);
    if (!c->states[c->random->arg.i].next) /* of each function that draws */
        ingot_state_next(
            c, c->random,
            ingot_add(c, c->random, ingot_data(c, NULL, INGOT_U64, 1, &two, one_more)));
    return c->random;
}

static ThreefryPair state_word(Context *c, int i)
{
    Node *w = ingot_slice(c, state_of(c), 0, idx(c, i), idx(c, 1), 1);
    return halves(c, ingot_reshape(c, w, 0, NULL));
}

static ThreefryPair key_of(Context *c, const uint64_t *seed)
{
    ThreefryPair run = state_word(c, 1), key;
    if (seed) {
        key =
            (ThreefryPair){{u32(c, (int64_t)(*seed & UINT32_MAX)), u32(c, (int64_t)(*seed >> 32))}};
        run.w[1] = u32(c, 0);
    } else {
        key = state_word(c, 0);
        run.w[1] = u32(c, ++c->nrandom);
    }
    key = threefry(c, key, run);
    for (const struct Region *r = c->region; r; r = r->outer) {
        if (!r->nparam) /* a branch */
            continue;
        Node *i = ingot_cast(c, r->param[0], INGOT_U64);
        key = threefry(c, key, halves(c, i));
    }
    return key;
}

/* 64 random bits an element. */
static ThreefryPair bits_of(Context *c, int rank, Node *const *dims, const uint64_t *seed)
{
    Node *n = idx(c, 1);
    for (int a = 0; a < rank; a++)
        n = ingot_dim_mul(c, n, dims[a]);
    Node *place = ingot_reshape(c, ingot_iota(c, 1, &n, 0), rank, dims);
    return threefry(c, key_of(c, seed),
                    (ThreefryPair){{ingot_cast(c, place, INGOT_U32), u32(c, 0)}});
}

/* The upper `bits` of a word as a number in [0, 1). */
static Node *fraction(Context *c, Node *word, int bits, ingot_dtype dtype)
{
    Node *x = ingot_cast(c, ingot_shr(c, word, u32(c, 32 - bits)), dtype);
    return ingot_mul_c(c, x, 1.0 / (double)(INT64_C(1) << bits));
}

static bool random_check(Context *c, ingot_dtype d, int rank, Node *const *dims)
{
    if (!shape_check(c, "random", rank, dims))
        return false;
    if (d == INGOT_F16 || d == INGOT_BF16 || d == INGOT_F32 || d == INGOT_F64)
        return true;
    ingot_error(c, INGOT_INVALID, "random: %s is no type of random numbers", ingot_dtype_name(d));
    return false;
}

ingot_tensor *ingot_random_uniform(ingot_context *c, ingot_dtype d, int rank,
                                   ingot_dim *const *dims, const uint64_t *seed)
{
    if (!random_check(c, d, rank, dims))
        return c->poison;
    ThreefryPair b = bits_of(c, rank, dims, seed);
    if (d != INGOT_F64) /* as many bits as the type has */
        return ingot_cast(c,
                          fraction(c, b.w[0],
                                   d == INGOT_F32   ? 24
                                   : d == INGOT_F16 ? 11
                                                    : 8,
                                   INGOT_F32),
                          d);
    Node *low = ingot_mul_c(c, fraction(c, b.w[1], 21, INGOT_F64), 1.0 / 4294967296.0);
    return ingot_add(c, ingot_mul_c(c, ingot_cast(c, b.w[0], INGOT_F64), 1.0 / 4294967296.0), low);
}

/* Box and Muller's: sqrt(-2 log u) cos(2 pi v) with u in (0, 1], v in [0, 1); in f64, so that the
 * last bit of the C library's log and cos hardly ever shows in a narrower type. */
ingot_tensor *ingot_random_normal(ingot_context *c, ingot_dtype d, int rank, ingot_dim *const *dims,
                                  const uint64_t *seed)
{
    if (!random_check(c, d, rank, dims))
        return c->poison;
    ThreefryPair b = bits_of(c, rank, dims, seed);
    Node *u = ingot_add_c(c, ingot_cast(c, b.w[0], INGOT_F64), 1),
         *v = ingot_cast(c, b.w[1], INGOT_F64);
    u = ingot_log(c, ingot_mul_c(c, u, 1.0 / 4294967296.0));
    v = ingot_cos(c, ingot_mul_c(c, v, 6.283185307179586 / 4294967296.0));
    return ingot_cast(c, ingot_mul(c, ingot_sqrt(c, ingot_mul_c(c, u, -2)), v), d);
}

/* Which of the running sums of e^x a uniform number, by their total, is below first. */
ingot_tensor *ingot_multinomial(ingot_context *c, ingot_tensor *x, ingot_dim *samples,
                                const uint64_t *seed)
{
    if (ingot_is_poison(x))
        return x;
    if (ingot_rank(x) != 2)
        return ingot_error(c, INGOT_INVALID, "multinomial: its input has rank %d, not 2",
                           ingot_rank(x));
    Node *p = ingot_exp(c, ingot_sub(c, x, ingot_reduce(c, INGOT_REDUCE_MAX, x, 1u << 1, true)));
    Node *below = ingot_cumsum(c, p, 1, false, false), *classes = ingot_shape(x, 1);
    Node *dims[2] = {ingot_shape(x, 0), samples};
    Node *all = ingot_slice(c, below, 1, ingot_dim_sub(c, classes, idx(c, 1)), idx(c, 1), 1);
    Node *u = ingot_random_uniform(c, ingot_dtype_of(x), 2, dims, seed);
    u = ingot_unsqueeze(c, ingot_mul(c, u, all), 2); /* [batch, samples, 1] */
    Node *passed = ingot_ge(c, u, ingot_unsqueeze(c, below, 1));
    Node *k = ingot_sum(c, ingot_cast(c, passed, INGOT_I64), 1u << 2, false);
    Node *last = ingot_add_c(c, ingot_from_dim(c, classes), -1);
    return ingot_min(c, k, last); /* where rounding makes u the total */
}
