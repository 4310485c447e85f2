/*
 * tflite_quant_norm.c - SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION of integers that stand for real
 * numbers.
 *
 * What a row has in common (1 / sum, log sum, 1 / length) is computed in fixed point in the graph,
 * step by step as the reference kernels do (gemmlowp's FixedPoint, Apache 2.0; tflite_fixed.c).
 */
#include <math.h>

#include "tflite_quant.h"

#define X n->in[0]

static ingot_tensor *whole(TfliteNode *n, int64_t v)
{
    return ingot_scalar_i(n->c, INGOT_I32, v);
}

static ingot_tensor *times(TfliteNode *n, ingot_tensor *x, int32_t by)
{
    return ingot_mulhi(n->c, x, whole(n, by));
}

/* ---- steps in fixed point -------------------------------------------------------------------- */

ingot_tensor *tfl_leading_zeros(TfliteNode *n, ingot_tensor *x, int least, int most)
{
    ingot_context *c = n->c;
    ingot_tensor *zeros = whole(n, 32 - most);
    for (int k = least + 1; k < most; k++)
        zeros = ingot_add(c, zeros,
                          ingot_cast(c, ingot_lt(c, x, whole(n, (int64_t)1 << k)), INGOT_I32));
    return zeros;
}

/* x 2^e of x >= 0 that stays within i32 */
static ingot_tensor *doubled(TfliteNode *n, ingot_tensor *x, int e)
{
    ingot_tensor *beyond = ingot_gt(n->c, x, whole(n, INT32_MAX >> e));
    return ingot_where(n->c, beyond, whole(n, INT32_MAX), ingot_shl(n->c, x, whole(n, e)));
}

ingot_tensor *tfl_by_one_plus(TfliteNode *n, ingot_tensor *x)
{
    ingot_context *c = n->c;
    ingot_tensor *one = whole(n, 1);
    ingot_tensor *half = ingot_add(c, ingot_shr(c, x, one), whole(n, (int64_t)1 << 30));
    ingot_tensor *y = ingot_add(c, times(n, half, -1010580540), whole(n, 1515870810));
    for (int i = 0; i < 3; i++) { /* Newton's */
        ingot_tensor *error = ingot_sub(c, whole(n, 1 << 29), ingot_mulhi(c, half, y));
        ingot_tensor *step = ingot_shl(c, ingot_mulhi(c, y, error), whole(n, 2));
        y = ingot_add(c, y, step);
    }
    ingot_tensor *twice = ingot_shl(c, y, one);
    return ingot_where(c, ingot_ge(c, y, whole(n, 1 << 30)), whole(n, INT32_MAX), twice);
}

/* ---- sums of exponentials -------------------------------------------------------------------- */

enum { INTEGER_BITS = 5 };

/* A row's differences d to its greatest element, and e^-(d scale beta) of them, by 2^31. */
typedef struct {
    ingot_tensor *d, *e;
    TfliteMultiplier q; /* d times q has INTEGER_BITS */
    int32_t radius;     /* above it, e is 0 */
    int most;           /* a row's sum with 12 integer bits is less than 2^most */
} TfliteExponentials;

static void exponentials(TfliteNode *n, double beta, TfliteExponentials *e)
{
    const unsigned last = 1u << (ingot_rank(X) - 1);
    const double real = beta * (double)tfl_scale(n->ti[0]) * (1 << (31 - INTEGER_BITS));
    e->q = tfl_multiplier(real < 2147483647.0 ? real : 2147483647.0);
    const double radius = floor(31.0 * (1 << (31 - INTEGER_BITS)) / ldexp(1, e->q.shift));
    e->radius = radius < 1e9 ? (int32_t)radius : 1000000000;
    int64_t size = 0;
    int32_t *v = ingot_alloc(n->c, 256 * sizeof *v);
    do
        v[size] = size > e->radius
                      ? 0
                      : tfl_fixed_exp(tfl_fixed_rescale(-(int32_t)size, e->q), INTEGER_BITS);
    while (v[size] && ++size < 256);
    size = size < 256 ? size + 1 : size;
    ingot_tensor *table = ingot_data(n->c, NULL, INGOT_I32, 1, &size, v);
    ingot_tensor *x = tfl_cast(n, X, INGOT_I32);
    e->d = ingot_sub(n->c, ingot_reduce(n->c, INGOT_REDUCE_MAX, x, last, true), x);
    ingot_tensor *at = size < 256 ? ingot_min_c(n->c, e->d, (double)(size - 1)) : e->d;
    e->e = ingot_gather(n->c, table, &at);
    const int64_t terms = ingot_dim_hi(ingot_shape(X, ingot_rank(X) - 1));
    e->most = 20;
    while (e->most < 31 && terms >> (e->most - 19))
        e->most++;
}

/* The sum of a row, with 12 integer bits: at least 2^19, the greatest one's. */
static ingot_tensor *sum_of(TfliteNode *n, TfliteExponentials *e)
{
    ingot_tensor *sum =
        ingot_sum(n->c, ingot_shrr(n->c, e->e, whole(n, 12)), 1u << (ingot_rank(X) - 1), true);
    return ingot_contiguous(n->c, sum);
}

/* 1 / s of s with 12 integer bits, less than 2^most, as a fraction of 2^31 to be shifted: [0] it,
 * [1] the zero bits in front of s. */
static void reciprocal(TfliteNode *n, ingot_tensor *s, int most, ingot_tensor *out[2])
{
    out[1] = tfl_leading_zeros(n, s, 19, most);
    /* less 1, which is 2^31: the sign's bit */
    ingot_tensor *x = ingot_and(n->c, ingot_shl(n->c, s, out[1]), whole(n, INT32_MAX));
    out[0] = ingot_contiguous(n->c, tfl_by_one_plus(n, x));
}

ingot_tensor *tflite_q_softmax(TfliteNode *n)
{
    ingot_context *c = n->c;
    ingot_tensor *inverse[2];
    TfliteExponentials x;
    int32_t lo, hi;
    const int bits = n->to[0]->type == INGOT_TFLITE_INT16 ? 16 : 8;
    if (ingot_rank(X) < 1)
        return tfl_fault(n, "its input has rank 0");
    if (n->ti[0]->type == INGOT_TFLITE_INT16)
        return tfl_q_softmax_16(n);
    tfl_range(n->to[0], &lo, &hi);
    exponentials(n, (double)ingot_tflite_float(&n->op->options, 0, 0), &x);
    reciprocal(n, sum_of(n, &x), x.most, inverse);
    /* 12 integer bits of the sum, less those in front of it; 31 bits of the product, less 8 */
    ingot_tensor *e = ingot_sub(c, whole(n, 12 + 31 - bits), inverse[1]);
    ingot_tensor *y = ingot_shrr(c, ingot_mulhi(c, x.e, inverse[0]), e);
    y = ingot_clamp(c, ingot_add_c(c, y, lo), lo, hi);
    return ingot_cast(c, y, tfl_out_dtype(n));
}

/* ---- LOG_SOFTMAX ----------------------------------------------------------------------------- */

/* log s of s >= 1 with 12 integer bits, less than 2^most, with 5 of them. s is 2^k r; of two such
 * (k by quarters) the one with the smaller r is taken, which is near sqrt(sqrt(1/2)), and log r is
 * a quotient of polynomials of r's distance q from there:
 *
 *     log s = k log 2 + (q r + alpha_n q^3) / (1 + p (alpha_i + q + alpha_d q^2) + alpha_f q)
 */
static ingot_tensor *log_of(TfliteNode *n, ingot_tensor *s, int most)
{
    const int32_t root_half = 1518500250 /* sqrt(1/2) */, fourth_root = 1805811301;
    ingot_context *c = n->c;
    ingot_tensor *quarter = whole(n, 1 << 23), *bits = whole(n, 25); /* with 6 integer bits */
    ingot_tensor *za = tfl_leading_zeros(n, s, 19, most);
    ingot_tensor *ra = times(n, ingot_shl(c, s, ingot_sub(c, za, whole(n, 1))), root_half);
    ra = doubled(n, ra, 1);
    ingot_tensor *ka = ingot_add(c, ingot_shl(c, ingot_sub(c, whole(n, 12), za), bits), quarter);
    ingot_tensor *zb = tfl_leading_zeros(n, times(n, s, root_half), 18, most);
    ingot_tensor *rb = ingot_shl(c, s, ingot_sub(c, zb, whole(n, 1)));
    rb = ingot_where(c, ingot_eq(c, za, zb), rb, whole(n, INT32_MAX));
    ingot_tensor *kb = ingot_sub(c, ingot_shl(c, ingot_sub(c, whole(n, 13), zb), bits), quarter);
    ingot_tensor *r = ingot_contiguous(c, ingot_min(c, ra, rb)), *k = ingot_max(c, ka, kb);
    ingot_tensor *p = ingot_add(c, ingot_shr(c, r, whole(n, 1)), whole(n, fourth_root / 2 + 1));
    ingot_tensor *q = ingot_shl(c, ingot_sub(c, r, whole(n, fourth_root)), whole(n, 1));
    ingot_tensor *q2 = ingot_mulhi(c, q, q);
    ingot_tensor *above =
        ingot_add(c, ingot_mulhi(c, q, r), times(n, ingot_mulhi(c, q, q2), 117049297));
    ingot_tensor *below = ingot_add(c, whole(n, 1057819769), q);
    below = ingot_mulhi(c, p, ingot_add(c, below, times(n, q2, 127690142)));
    below = ingot_add(c, below, times(n, q, 638450708));
    ingot_tensor *ratio = ingot_mulhi(c, ingot_shrr(c, above, whole(n, 6)),
                                      tfl_by_one_plus(n, ingot_contiguous(c, below)));
    ingot_tensor *y = ingot_add(c, times(n, k, 1488522236 /* log 2 */), ratio);
    return ingot_contiguous(c, ingot_shl(c, y, whole(n, 1)));
}

/* x - the greatest - log of the row's sum. What lies below the range of fixed point is the least.
 */
ingot_tensor *tflite_q_log_softmax(TfliteNode *n)
{
    ingot_context *c = n->c;
    TfliteExponentials x;
    int32_t lo, hi;
    if (ingot_rank(X) < 1)
        return tfl_fault(n, "its input has rank 0");
    tfl_range(n->to[0], &lo, &hi);
    exponentials(n, 1, &x);
    ingot_tensor *log = log_of(n, sum_of(n, &x), x.most);
    const int up = x.q.shift > 0 ? x.q.shift < 31 ? x.q.shift : 31 : 0;
    const TfliteMultiplier back = tfl_multiplier(ldexp(1, 31 - up) / x.q.m);
    ingot_tensor *least = ingot_add(c, log, whole(n, INT32_MIN));
    least = ingot_max(c, tfl_rescale(n, least, &back, 1, 0), whole(n, -x.radius - 1));
    ingot_tensor *d = ingot_neg(c, x.d);
    ingot_tensor *y = ingot_sub(c, tfl_rescale(n, d, &x.q, 1, 0), log);
    y = ingot_shrr(c, y, whole(n, 31 - INTEGER_BITS - 4));
    y = ingot_clamp(c, ingot_add_c(c, y, hi), lo, hi);
    y = ingot_where(c, ingot_gt(c, d, least), y, whole(n, lo));
    return ingot_cast(c, y, tfl_out_dtype(n));
}

/* ---- L2_NORMALIZATION ------------------------------------------------------------------------ */

/* 1 / sqrt s of a whole number: [0] a fraction of 2^31, [1] to be shifted down by so much. As
 * tfl_fixed_rsqrt(), of what the run computes. */
static void inverse_root(TfliteNode *n, ingot_tensor *s, ingot_tensor *out[2])
{
    ingot_context *c = n->c;
    ingot_tensor *one = whole(n, 1), *two = whole(n, 2), *zero = whole(n, 0);
    ingot_tensor *large = ingot_ge(c, s, whole(n, 1 << 29));
    ingot_tensor *x = ingot_where(c, large, ingot_shr(c, s, two), s);
    x = ingot_max(c, x, two);
    ingot_tensor *pairs = ingot_sub(c, tfl_leading_zeros(n, x, 1, 29), one);
    pairs = ingot_sub(c, ingot_shr(c, pairs, one), one);
    x = ingot_shl(c, x, ingot_shl(c, pairs, one)); /* 2^27 to 2^29: with three integer bits */
    ingot_tensor *shift = ingot_sub(c, whole(n, 11), pairs);
    shift = ingot_add(c, shift, ingot_cast(c, large, INGOT_I32));
    ingot_tensor *half = ingot_contiguous(c, ingot_shrr(c, ingot_shr(c, x, one), one));
    ingot_tensor *y = whole(n, 1 << 28);
    for (int i = 0; i < 5; i++) { /* Newton's */
        ingot_tensor *y3 = doubled(n, ingot_mulhi(c, ingot_mulhi(c, y, y), y), 6);
        ingot_tensor *more = times(n, y, (1 << 28) + (1 << 27));
        y = doubled(n, ingot_sub(c, more, ingot_mulhi(c, half, y3)), 3);
        y = ingot_contiguous(c, y);
    }
    y = times(n, y, 1518500250 /* sqrt(1/2) */);
    y = ingot_shl(c, y, ingot_max(c, ingot_neg(c, shift), zero));
    ingot_tensor *none = ingot_le(c, s, one);
    out[0] = ingot_contiguous(c, ingot_where(c, none, whole(n, INT32_MAX), y));
    out[1] = ingot_contiguous(c, ingot_where(c, none, zero, ingot_max(c, shift, zero)));
}

/* x / sqrt(sum of x^2), by 128: of INT8 both shifts are one, of UINT8 it is multiplied first. */
ingot_tensor *tflite_q_l2_normalization(TfliteNode *n)
{
    ingot_context *c = n->c;
    ingot_tensor *root[2], *x = tfl_centred(n, 0);
    ingot_tensor *seven = whole(n, 7), *zero = whole(n, 0);
    if (ingot_is_poison(x))
        return x;
    if (ingot_rank(x) < 1)
        return tfl_fault(n, "its input has rank 0");
    ingot_tensor *sum = ingot_sum(c, ingot_mul(c, x, x), 1u << (ingot_rank(x) - 1), true);
    inverse_root(n, ingot_contiguous(c, sum), root);
    ingot_tensor *up = seven, *down = root[1];
    if (n->ti[0]->type == INGOT_TFLITE_INT8) {
        up = ingot_max(c, ingot_sub(c, seven, root[1]), zero);
        down = ingot_max(c, ingot_sub(c, root[1], seven), zero);
    }
    ingot_tensor *y = ingot_shrr(c, ingot_mulhi(c, ingot_shl(c, x, up), root[0]), down);
    return tfl_finish(n, y, 0);
}
