/* ops_activation.c - activation functions, as the ONNX operator specification defines them
 * (https://onnx.ai/onnx/operators/, one page an operator). */
#include <math.h>

#include "ops.h"

/* max(x, 0) */
ingot_tensor *ingot_relu(ingot_context *c, ingot_tensor *x)
{
    return ingot_max_c(c, x, 0);
}

/* 1 / (1 + e^-x): e^-x overflows to infinity where the result is 0 anyway. */
ingot_tensor *ingot_sigmoid(ingot_context *c, ingot_tensor *x)
{
    return ingot_reciprocal(c, ingot_add_c(c, ingot_exp(c, ingot_neg(c, x)), 1));
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which cannot overflow */
ingot_tensor *ingot_softplus(ingot_context *c, ingot_tensor *x)
{
    ingot_tensor *tail = ingot_exp(c, ingot_neg(c, ingot_abs(c, x)));
    return ingot_add(c, ingot_relu(c, x), ingot_log(c, ingot_add_c(c, tail, 1)));
}

/* x/2 (1 + erf(x / sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
ingot_tensor *ingot_gelu(ingot_context *c, ingot_tensor *x, bool tanh_form)
{
    ingot_tensor *phi;
    if (tanh_form) {
        ingot_tensor *cube = ingot_mul(c, x, ingot_mul(c, x, x));
        ingot_tensor *u = ingot_add(c, x, ingot_mul_c(c, cube, 0.044715));
        phi = ingot_tanh(c, ingot_mul_c(c, u, 0.7978845608028654));
    } else {
        phi = ingot_erf(c, ingot_mul_c(c, x, 0.7071067811865476));
    }
    return ingot_mul(c, ingot_mul_c(c, x, 0.5), ingot_add_c(c, phi, 1));
}

ingot_tensor *ingot_clamp(ingot_context *c, ingot_tensor *x, double lo, double hi)
{
    return ingot_min_c(c, ingot_max_c(c, x, lo), hi);
}

/* x < 0 ? alpha x : x */
ingot_tensor *ingot_leaky_relu(ingot_context *c, ingot_tensor *x, double alpha)
{
    return ingot_prelu(c, x, ingot_like(c, x, alpha));
}

ingot_tensor *ingot_prelu(ingot_context *c, ingot_tensor *x, ingot_tensor *slope)
{
    ingot_tensor *negative = ingot_lt(c, x, ingot_like(c, x, 0));
    return ingot_where(c, negative, ingot_mul(c, x, slope), x);
}

/* e^x - 1 */
static ingot_tensor *exp_minus_one(ingot_context *c, ingot_tensor *x)
{
    return ingot_add_c(c, ingot_exp(c, x), -1);
}

/* x < 0 ? alpha (e^x - 1) : x */
ingot_tensor *ingot_elu(ingot_context *c, ingot_tensor *x, double alpha)
{
    ingot_tensor *negative = ingot_lt(c, x, ingot_like(c, x, 0));
    return ingot_where(c, negative, ingot_mul_c(c, exp_minus_one(c, x), alpha), x);
}

/* gamma * (x > 0 ? x : alpha (e^x - 1)) */
ingot_tensor *ingot_selu(ingot_context *c, ingot_tensor *x, double alpha, double gamma)
{
    return ingot_mul_c(c, ingot_elu(c, x, alpha), gamma);
}

/* max(0, x) + min(0, alpha (e^(x / alpha) - 1)) */
ingot_tensor *ingot_celu(ingot_context *c, ingot_tensor *x, double alpha)
{
    ingot_tensor *low = ingot_mul_c(c, exp_minus_one(c, ingot_mul_c(c, x, 1 / alpha)), alpha);
    return ingot_add(c, ingot_relu(c, x), ingot_min_c(c, low, 0));
}

/* max(0, min(1, alpha x + beta)) */
ingot_tensor *ingot_hard_sigmoid(ingot_context *c, ingot_tensor *x, double alpha, double beta)
{
    return ingot_clamp(c, ingot_add_c(c, ingot_mul_c(c, x, alpha), beta), 0, 1);
}

/* x * hard_sigmoid(x, 1/6, 1/2) */
ingot_tensor *ingot_hard_swish(ingot_context *c, ingot_tensor *x)
{
    return ingot_mul(c, x, ingot_hard_sigmoid(c, x, 1.0 / 6, 0.5));
}

/* x sigmoid(beta x) */
ingot_tensor *ingot_swish(ingot_context *c, ingot_tensor *x, double beta)
{
    return ingot_mul(c, x, ingot_sigmoid(c, ingot_mul_c(c, x, beta)));
}

/* x tanh(softplus x) */
ingot_tensor *ingot_mish(ingot_context *c, ingot_tensor *x)
{
    return ingot_mul(c, x, ingot_tanh(c, ingot_softplus(c, x)));
}

/* x / (1 + |x|) */
ingot_tensor *ingot_softsign(ingot_context *c, ingot_tensor *x)
{
    return ingot_div(c, x, ingot_add_c(c, ingot_abs(c, x), 1));
}

/* x > alpha ? x : 0 */
ingot_tensor *ingot_thresholded_relu(ingot_context *c, ingot_tensor *x, double alpha)
{
    ingot_tensor *above = ingot_gt(c, x, ingot_like(c, x, alpha));
    return ingot_where(c, above, x, ingot_like(c, x, 0));
}

/* ONNX Shrink: x < -lambda ? x + bias : x > lambda ? x - bias : 0 */
ingot_tensor *ingot_soft_shrink(ingot_context *c, ingot_tensor *x, double lambda, double bias)
{
    ingot_tensor *low = ingot_lt(c, x, ingot_like(c, x, -lambda));
    ingot_tensor *high = ingot_gt(c, x, ingot_like(c, x, lambda));
    ingot_tensor *rest =
        ingot_where(c, high, ingot_sub(c, x, ingot_like(c, x, bias)), ingot_like(c, x, 0));
    return ingot_where(c, low, ingot_add_c(c, x, bias), rest);
}
