/* precision.c - f32 products of matrices by bf16 or f16, which matrix units multiply many times faster.
 *
 * A number is a sum of numbers of bf16, each the rest that the ones before leave: x = h + l (+ 2^-17 x), or h + m + l (+ 2^-25 x).
 * The products of the parts that matter are the terms of one longer sum, small ones first:
 *
 *     bf16     h h
 *     bf16x3   l h + h l + h h                  Markidis et al., NVIDIA Tensor Core Programmability, Performance & Precision, 2018
 *     bf16x6   l h + m m + h l + m h + h m + h h     Henry, Tang, Heinecke, Leveraging the bfloat16 Artificial Intelligence Datatype, 2019
 *
 *     tf32     x and w without their last 13 bits, as matrix units of GPUs read them
 *
 * so the operands are laid one behind the other along the axis that is summed, and the product is one of bf16. */
#include "ops.h"

enum { MOST_TERMS = 6, MOST_PARTS = 3 };
typedef struct {
    ingot_dtype type;
    int parts, n;
    int x[MOST_TERMS], w[MOST_TERMS]; /* which part: 0 is the first */
} Terms;
static const Terms terms_of[] = {
    [INGOT_PRECISION_BF16] = {INGOT_BF16, 1, 1, {0}, {0}},
    [INGOT_PRECISION_F16] = {INGOT_F16, 1, 1, {0}, {0}},
    [INGOT_PRECISION_BF16X3] = {INGOT_BF16, 2, 3, {1, 0, 0}, {0, 1, 0}},
    [INGOT_PRECISION_BF16X6] = {INGOT_BF16, 3, 6, {2, 1, 0, 1, 0, 0}, {0, 1, 2, 0, 1, 0}},
};

static ingot_tensor *laid(ingot_context *c, ingot_tensor *x, int axis, const Terms *t,
                          const int *which)
{
    ingot_tensor *part[MOST_PARTS], *all[MOST_TERMS];
    for (int i = 0; i < t->parts; i++) {
        part[i] = ingot_cast(c, x, t->type);
        x = ingot_sub(c, x, ingot_cast(c, part[i], INGOT_F32));
    }
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

void ops_precision(ingot_context *c, ingot_tensor **x, int x_axis, ingot_tensor **w, int w_axis)
{
    enum { FEW = 16 };
    ingot_precision p = ingot_precision_of(c);
    if (p == INGOT_PRECISION_F32 || p == INGOT_PRECISION_1E5 || ingot_is_poison(*x) ||
        ingot_is_poison(*w) || ingot_dtype_of(*x) != INGOT_F32 || ingot_dtype_of(*w) != INGOT_F32 ||
        !ingot_dim_is_const(ingot_shape(*w, w_axis), NULL))
        return;
    if (p != INGOT_PRECISION_TF32 && ingot_dim_lo(ingot_shape(*w, w_axis)) % FEW)
        return;
    if (p == INGOT_PRECISION_TF32) {
        *x = cut(c, *x);
        *w = cut(c, *w);
        return;
    }
    const Terms *t = &terms_of[p];
    *x = ingot_contiguous(c, laid(c, *x, x_axis, t, t->x));
    *w = laid(c, *w, w_axis, t, t->w);
}
