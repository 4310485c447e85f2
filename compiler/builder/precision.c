/* precision.c - f32 products of matrices by bf16 or f16, which matrix units multiply many times
 * faster.
 *
 * A number is a sum of numbers of bf16, each the rest that the ones before leave: x = h + l (+
 * 2^-17 x), or h + m + l (+ 2^-25 x). The products of the parts that matter are the terms of one
 * longer sum:
 *
 *     bf16     h h
 *     bf16x3   l h + h h + h l                  Markidis et al., NVIDIA Tensor Core
 *                                               Programmability, Performance & Precision, 2018
 *     bf16x6   l h + m h + m m + h m + h h + h l     Henry, Tang, Heinecke, Leveraging the bfloat16
 *                                                    Artificial Intelligence Datatype, 2019
 *
 *     tf32     x and w without their last 13 bits, as matrix units of GPUs read them
 *
 * What is summed is a sum of products then, each of two stored parts.  A unit's fragments are used
 * again by the terms that share a part, so these follow each other.  Where products are to have one
 * term (ingot_one_product()) the parts are laid one behind the other along the axis that is
 * summed. */
#include "ops.h"

enum { MOST_PARTS = 3 };
typedef struct {
    ingot_dtype type;
    int parts, n;
    int x[MOST_PRODUCTS], w[MOST_PRODUCTS]; /* which part: 0 is the first */
} SplitTerms;
static const SplitTerms terms_of[] = {
    [INGOT_PRECISION_BF16] = {INGOT_BF16, 1, 1, {0}, {0}},
    [INGOT_PRECISION_F16] = {INGOT_F16, 1, 1, {0}, {0}},
    [INGOT_PRECISION_BF16X3] = {INGOT_BF16, 2, 3, {1, 0, 0}, {0, 0, 1}},
    [INGOT_PRECISION_BF16X6] = {INGOT_BF16, 3, 6, {2, 1, 1, 0, 0, 0}, {0, 0, 1, 1, 0, 2}},
};

static void split(ingot_context *c, ingot_tensor *x, const SplitTerms *t, ingot_tensor **part)
{
    for (int i = 0; i < t->parts; i++) {
        part[i] = ingot_cast(c, x, t->type);
        x = ingot_sub(c, x, ingot_cast(c, part[i], INGOT_F32));
    }
}

/* The parts that the terms have, one behind the other. */
static ingot_tensor *laid(ingot_context *c, ingot_tensor **part, int axis, const SplitTerms *t,
                          const int *which)
{
    ingot_tensor *all[MOST_PRODUCTS];
    for (int i = 0; i < t->n; i++)
        all[i] = part[which[i]];
    return t->n > 1 ? ingot_concat(c, t->n, all, axis) : *all;
}

/* The first 19 bits: what units for tf32 read of a number. */
static ingot_tensor *cut(ingot_context *c, ingot_tensor *x)
{
    ingot_tensor *bits = ingot_bitcast(c, x, INGOT_U32);
    bits = ingot_and(c, bits, ingot_like(c, bits, 0xffffe000));
    return ingot_bitcast(c, bits, INGOT_F32);
}

/* Few products gain nothing: operands have to be split first. Units multiply terms in pairs, fours
 * or eights. */
static bool is_for_unit(ingot_precision p, ingot_tensor *x, ingot_tensor *w, int w_axis)
{
    enum { FEW = 16, STEP = 8 };
    if (p == INGOT_PRECISION_F32 || p == INGOT_PRECISION_1E5 || p == INGOT_PRECISION_Q8 ||
        p == INGOT_PRECISION_Q16 || ingot_is_poison(x) || ingot_is_poison(w) ||
        ingot_dtype_of(x) != INGOT_F32 || ingot_dtype_of(w) != INGOT_F32 ||
        !ingot_dim_is_const(ingot_shape(w, w_axis), NULL))
        return false;
    const int64_t terms = ingot_dim_lo(ingot_shape(w, w_axis));
    return p == INGOT_PRECISION_TF32 || (terms >= FEW && terms % STEP == 0);
}

Products ops_precision(ingot_context *c, ingot_tensor *x, int x_axis, ingot_tensor *w, int w_axis)
{
    Products out = {.x = {x}, .w = {w}, .n = 1};
    const ingot_precision p = ingot_precision_here(c);
    if (!is_for_unit(p, x, w, w_axis))
        return out;
    if (p == INGOT_PRECISION_TF32) {
        out.x[0] = cut(c, x);
        out.w[0] = cut(c, w);
        return out;
    }
    const SplitTerms *t = &terms_of[p];
    ingot_tensor *xs[MOST_PARTS], *ws[MOST_PARTS];
    split(c, x, t, xs);
    split(c, w, t, ws);
    if (ingot_one_product(c)) {
        out.x[0] = laid(c, xs, x_axis, t, t->x);
        out.w[0] = laid(c, ws, w_axis, t, t->w);
        out.x[0] = t->n > 1 ? out.x[0] : ingot_contiguous(c, out.x[0]); /* a concat is stored */
        return out;
    }
    for (int i = 0; i < t->parts; i++)
        xs[i] = ingot_contiguous(c, xs[i]);
    if (t->parts == 1)
        ingot_read_as(c, x, xs[0]);
    else if (t->parts == 2) /* as many bytes as x itself, which then is not stored */
        ingot_read_as(c, x, ingot_add(c, ops_widen(c, xs[0]), ops_widen(c, xs[1])));
    out.n = t->n;
    for (int i = 0; i < t->n; i++) {
        out.x[i] = xs[t->x[i]];
        out.w[i] = ws[t->w[i]];
    }
    return out;
}

bool ops_takes_parts(ingot_context *c, ingot_tensor *x)
{
    const ingot_precision p = ingot_precision_here(c);
    const bool parts = p == INGOT_PRECISION_BF16 || p == INGOT_PRECISION_F16 ||
                       p == INGOT_PRECISION_BF16X3 || p == INGOT_PRECISION_BF16X6;
    return parts && !ingot_one_product(c) && ingot_dtype_of(x) == INGOT_F32;
}

Products ops_parts(ingot_context *c, ingot_tensor *x, ingot_tensor *w)
{
    const SplitTerms *t = &terms_of[ingot_precision_here(c)];
    ingot_tensor *xs[MOST_PARTS], *ws[MOST_PARTS];
    Products out = {.n = t->n};
    split(c, x, t, xs);
    split(c, w, t, ws);
    for (int i = 0; i < t->n; i++) {
        out.x[i] = ingot_contiguous(c, xs[t->x[i]]);
        out.w[i] = ingot_contiguous(c, ws[t->w[i]]);
    }
    return out;
}

ingot_tensor *ops_products(ingot_context *c, ingot_tensor *sum, ingot_tensor *x, ingot_tensor *w)
{
    ingot_tensor *product = ingot_mul(c, ops_widen(c, x), ops_widen(c, w));
    return sum ? ingot_add(c, sum, product) : product;
}
