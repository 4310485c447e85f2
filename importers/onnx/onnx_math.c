/*
 * onnx_math.c - ONNX operators that work element by element: arithmetic, comparisons, logic,
 * activations, casts. Formulas are those of the operator specification; most are one line.
 */
#include <math.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]
#define Y n->in[1]

/* ---- one builder call each ------------------------------------------------------------------ */

#define UNARY(name)                        \
    ingot_tensor *onnx_##name(Lowering *n) \
    {                                      \
        return ingot_##name(n->c, X);      \
    }
/* clang-format off */
UNARY(neg)
UNARY(abs)
UNARY(sign)
UNARY(exp)
UNARY(log)
UNARY(sin)
UNARY(cos)
UNARY(tan)
UNARY(asin)
UNARY(acos)
UNARY(atan)
UNARY(sinh)
UNARY(cosh)
UNARY(tanh)
UNARY(asinh)
UNARY(acosh)
UNARY(atanh)
UNARY(erf)
UNARY(sqrt)
UNARY(reciprocal)
UNARY(floor)
UNARY(ceil)
UNARY(round)
UNARY(isnan)
UNARY(not)
UNARY(bitnot)
UNARY(relu)
UNARY(sigmoid)
UNARY(softplus)
/* clang-format on */
#undef UNARY

/* Before opset 7, b was laid over a's axes from attribute `axis` on, if `broadcast` was set. */
static ingot_tensor *legacy_operand(Lowering *n)
{
    int axis, rank = ingot_rank(X);
    if (n->version >= 7 || !attr_int(n, "broadcast", 0) || !attr_has(n, "axis"))
        return Y;
    if (!axis_in(n, attr_int(n, "axis", 0), rank, &axis))
        return ingot_poison(n->c);
    if (axis + ingot_rank(Y) > rank)
        return fault(n, "an operand of rank %d does not fit at axis %d", ingot_rank(Y), axis);
    return align_axis(n, Y, axis, rank);
}

#define BINARY(name)                                     \
    ingot_tensor *onnx_##name(Lowering *n)               \
    {                                                    \
        return ingot_##name(n->c, X, legacy_operand(n)); \
    }
BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(and)
BINARY(or)
BINARY(xor)
BINARY(lt)
BINARY(le)
BINARY(gt)
BINARY(ge)
#undef BINARY

ingot_tensor *onnx_eq(Lowering *n)
{
    ingot_tensor *y = legacy_operand(n);
    if (ingot_dtype_of(X) == INGOT_STRING)
        return ingot_string_equal(n->c, X, y);
    return ingot_eq(n->c, X, y);
}

#define FOLD(name)                               \
    ingot_tensor *onnx_##name##_all(Lowering *n) \
    {                                            \
        ingot_tensor *y = X;                     \
        for (int i = 1; i < n->n_in; i++)        \
            y = ingot_##name(n->c, y, n->in[i]); \
        return y;                                \
    }
FOLD(add)
FOLD(max)
FOLD(min)
#undef FOLD

ingot_tensor *onnx_mean_all(Lowering *n)
{
    ingot_tensor *sum = onnx_add_all(n);
    return ingot_div(n->c, sum, like(n, sum, n->n_in));
}

ingot_tensor *onnx_identity(Lowering *n)
{
    n->out_value[0] = n->value[0];
    return X;
}

ingot_tensor *onnx_where(Lowering *n)
{
    return ingot_where(n->c, X, Y, n->in[2]);
}

/* ---- arithmetic ----------------------------------------------------------------------------- */

ingot_tensor *onnx_mod(Lowering *n)
{
    bool c_rule = attr_int(n, "fmod", 0) != 0;
    if (is_float(X) && !c_rule && n->version < 28)
        return fault(n, "floating-point operands need fmod=1 before opset 28");
    return c_rule ? ingot_fmod(n->c, X, Y) : ingot_mod(n->c, X, Y);
}

/* The result has the base's type; where only one is floating-point, it is computed in f64. */
ingot_tensor *onnx_pow(Lowering *n)
{
    ingot_dtype dtype = ingot_dtype_of(X);
    ingot_tensor *power = legacy_operand(n);
    if (!is_float(X) && is_float(power)) {
        ingot_tensor *y = ingot_pow(n->c, as(n, X, INGOT_F64), as(n, power, INGOT_F64));
        return ingot_cast(n->c, y, dtype);
    }
    return ingot_pow(n->c, X, as(n, power, dtype));
}

/* A count that is negative or the width or more leaves zeros; to the right of a negative number,
 * ones. */
ingot_tensor *onnx_bitshift(Lowering *n)
{
    const char *direction = attr_string(n, "direction", "");
    if (strcmp(direction, "LEFT") == 0)
        return ingot_shl(n->c, X, Y);
    if (strcmp(direction, "RIGHT") == 0 && is_signed(X)) {
        ingot_tensor *last = like(n, Y, 8.0 * (double)ingot_dtype_bytes(ingot_dtype_of(X)) - 1);
        ingot_tensor *some =
            ingot_and(n->c, ingot_ge(n->c, Y, like(n, Y, 0)), ingot_le(n->c, Y, last));
        return ingot_shr(n->c, X, ingot_where(n->c, some, Y, last));
    }
    if (strcmp(direction, "RIGHT") == 0)
        return ingot_shr(n->c, X, Y);
    return fault(n, "its attribute 'direction' has to be LEFT or RIGHT");
}

/* min(max(x, low), high): high wins where they cross. */
ingot_tensor *onnx_clip(Lowering *n)
{
    ingot_tensor *low = NULL, *high = NULL, *y = X;
    if (n->version >= 11) {
        low = n->n_in > 1 && n->in[1] ? reshape_scalar(n, n->in[1]) : NULL;
        high = n->n_in > 2 && n->in[2] ? reshape_scalar(n, n->in[2]) : NULL;
    } else {
        low = attr_has(n, "min") ? like(n, X, attr_float(n, "min", 0)) : NULL;
        high = attr_has(n, "max") ? like(n, X, attr_float(n, "max", 0)) : NULL;
    }
    y = low ? ingot_max(n->c, y, low) : y;
    return high ? ingot_min(n->c, y, high) : y;
}

/* ---- questions ------------------------------------------------------------------------------ */

ingot_tensor *onnx_isinf(Lowering *n)
{
    ingot_tensor *x = widen(n, X);
    bool pos = attr_int(n, "detect_positive", 1) != 0, neg = attr_int(n, "detect_negative", 1) != 0;
    if (pos && neg)
        return ingot_eq(n->c, ingot_abs(n->c, x), like(n, x, INFINITY));
    if (pos || neg)
        return ingot_eq(n->c, x, like(n, x, pos ? INFINITY : -INFINITY));
    return ingot_lt(n->c, x, x);
}

/* ---- types ---------------------------------------------------------------------------------- */

static ingot_tensor *cast_to(Lowering *n, ingot_dtype to)
{
    if (to == INGOT_STRING || ingot_dtype_of(X) == INGOT_STRING)
        return unsupported(n, "casts of strings are not supported");
    if (attr_int(n, "saturate", 1) == 0)
        return ingot_cast_wrap(n->c, X, to);
    return ingot_cast(n->c, X, to);
}

ingot_tensor *onnx_cast(Lowering *n)
{
    static const char *const names[] = {"",        "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                        "INT16",   "INT32",  "INT64",  "STRING", "BOOL",
                                        "FLOAT16", "DOUBLE", "UINT32", "UINT64"};
    ingot_dtype dtype;
    int64_t to = 0;
    if (n->version < 6) {
        const char *name = attr_string(n, "to", "");
        for (int i = 1; i < COUNT(names); i++)
            to = strcmp(name, names[i]) == 0 ? i : to;
    } else {
        to = attr_int(n, "to", 0);
    }
    if (to < 1 || to > INT32_MAX || !ingot_onnx_dtype((int32_t)to, &dtype))
        return fault(n, "its attribute 'to' is no element type");
    return cast_to(n, dtype);
}

ingot_tensor *onnx_cast_like(Lowering *n)
{
    return cast_to(n, ingot_dtype_of(Y));
}

ingot_tensor *onnx_bitcast_to(Lowering *n)
{
    ingot_dtype dtype;
    int64_t to = attr_int(n, "to", 0);
    if (to < 1 || to > INT32_MAX || !ingot_onnx_dtype((int32_t)to, &dtype))
        return fault(n, "its attribute 'to' is no element type");
    if (ingot_dtype_bytes(dtype) != ingot_dtype_bytes(ingot_dtype_of(X)))
        return fault(n, "%s and %s have elements of different sizes",
                     ingot_dtype_name(ingot_dtype_of(X)), ingot_dtype_name(dtype));
    return ingot_bitcast(n->c, X, dtype);
}

/* ---- activations: the op library's, with ONNX's defaults ------------------------------------ */

#define ACTIVATION(name, call)             \
    ingot_tensor *onnx_##name(Lowering *n) \
    {                                      \
        return call;                       \
    }
ACTIVATION(celu, ingot_celu(n->c, X, attr_float(n, "alpha", 1)))
ACTIVATION(elu, ingot_elu(n->c, X, attr_float(n, "alpha", 1)))
ACTIVATION(gelu, ingot_gelu(n->c, X, attr_is(n, "approximate", "none", "tanh")))
ACTIVATION(hardsigmoid,
           ingot_hard_sigmoid(n->c, X, attr_float(n, "alpha", 0.2), attr_float(n, "beta", 0.5)))
ACTIVATION(hardswish, ingot_hard_swish(n->c, X))
ACTIVATION(leaky_relu, ingot_leaky_relu(n->c, X, attr_float(n, "alpha", 0.01)))
ACTIVATION(mish, ingot_mish(n->c, X))
ACTIVATION(softsign, ingot_softsign(n->c, X))
ACTIVATION(swish, ingot_swish(n->c, X, attr_float(n, "alpha", 1)))
ACTIVATION(swiglu, ingot_mul(n->c, ingot_swish(n->c, X, attr_float(n, "alpha", 1)), Y))
ACTIVATION(thresholded_relu, ingot_thresholded_relu(n->c, X, attr_float(n, "alpha", 1)))
#undef ACTIVATION

/* Of integers what is left is cut to one, not the numbers that it is compared with. */
ingot_tensor *onnx_shrink(Lowering *n)
{
    double lambda = attr_float(n, "lambd", 0.5), bias = attr_float(n, "bias", 0);
    bool exact = ingot_dtype_bytes(ingot_dtype_of(X)) <= 2; /* in f32 */
    ingot_tensor *x = is_float(X) ? X : as(n, X, exact ? INGOT_F32 : INGOT_F64);
    return as(n, ingot_soft_shrink(n->c, x, lambda, bias), ingot_dtype_of(X));
}

/* The constants had four digits before opset 6. */
ingot_tensor *onnx_selu(Lowering *n)
{
    bool old = n->version < 6;
    double alpha = attr_float(n, "alpha", old ? 1.6732 : 1.67326319217681884765625);
    return ingot_selu(n->c, X, alpha,
                      attr_float(n, "gamma", old ? 1.0507 : 1.05070102214813232421875));
}

/* Before opset 7, a slope of rank 1 had one entry a channel. */
ingot_tensor *onnx_prelu(Lowering *n)
{
    ingot_tensor *slope = Y;
    if (n->version < 7 && ingot_rank(Y) == 1 && ingot_rank(X) > 1 && !dim_is(ingot_shape(Y, 0), 1))
        slope = align_axis(n, Y, 1, ingot_rank(X));
    return ingot_prelu(n->c, X, slope);
}
