/*
 * tflite_math.c - operators element by element. Shapes broadcast as in numpy. Those of integers
 * that stand for real numbers are in tflite_quant_math.c.
 */
#include "tflite_model.h"

#define X n->in[0]
#define Y n->in[1]

#define UNARY(name, call)                      \
    ingot_tensor *tflite_##name(TfliteNode *n) \
    {                                          \
        return call;                           \
    }

UNARY(abs, ingot_abs(n->c, X))
UNARY(ceil, ingot_ceil(n->c, X))
UNARY(cos, ingot_cos(n->c, X))
UNARY(elu, ingot_elu(n->c, X, 1))
UNARY(exp, ingot_exp(n->c, X))
UNARY(floor, ingot_floor(n->c, X))
UNARY(gelu, ingot_gelu(n->c, X, tfl_int(n, 0, 1, 0) != 0))
UNARY(hard_swish, ingot_hard_swish(n->c, X))
UNARY(leaky_relu, ingot_leaky_relu(n->c, X, ingot_tflite_float(&n->op->options, 0, 0)))
UNARY(log, ingot_log(n->c, X))
UNARY(logical_not, ingot_not(n->c, X))
UNARY(logistic, ingot_sigmoid(n->c, X))
UNARY(neg, ingot_neg(n->c, X))
UNARY(prelu, ingot_prelu(n->c, X, Y))
UNARY(relu, ingot_relu(n->c, X))
UNARY(relu6, ingot_clamp(n->c, X, 0, 6))
UNARY(relu_0_to_1, ingot_clamp(n->c, X, 0, 1))
UNARY(relu_n1_to_1, ingot_clamp(n->c, X, -1, 1))
UNARY(round, ingot_round(n->c, X))
UNARY(rsqrt, ingot_reciprocal(n->c, ingot_sqrt(n->c, X)))
UNARY(sign, ingot_sign(n->c, X))
UNARY(sin, ingot_sin(n->c, X))
UNARY(sqrt, ingot_sqrt(n->c, X))
UNARY(square, ingot_mul(n->c, X, X))
UNARY(tanh, ingot_tanh(n->c, X))

#define BINARY(name, function)                 \
    ingot_tensor *tflite_##name(TfliteNode *n) \
    {                                          \
        return ingot_##function(n->c, X, Y);   \
    }

BINARY(bitwise_xor, xor)
BINARY(floor_mod, mod)
BINARY(hlo_shift_left, shl)
BINARY(logical_and, and)
BINARY(logical_or, or)
BINARY(maximum, max)
BINARY(minimum, min)
BINARY(pow, pow)

ingot_tensor *tflite_hlo_add(TfliteNode *n)
{
    return tfl_is_bool(X) ? ingot_or(n->c, X, Y) : ingot_add(n->c, X, Y);
}

ingot_tensor *tflite_hlo_multiply(TfliteNode *n)
{
    return tfl_is_bool(X) ? ingot_and(n->c, X, Y) : ingot_mul(n->c, X, Y);
}

/* Integers that stand for real numbers get one scale. */
#define COMPARE(name, function)                               \
    ingot_tensor *tflite_##name(TfliteNode *n)                \
    {                                                         \
        ingot_tensor *x[2] = {X, Y};                          \
        if (tfl_quantized(n->ti[0]) && !tfl_comparable(n, x)) \
            return tfl_fault(n, "one input has a scale");     \
        return ingot_##function(n->c, x[0], x[1]);            \
    }

COMPARE(greater, gt)
COMPARE(greater_equal, ge)
COMPARE(less, lt)
COMPARE(less_equal, le)
static COMPARE(same_number, eq) static COMPARE(other_number, ne)

    static bool is_text(ingot_tensor *x)
{
    return !ingot_is_poison(x) && ingot_dtype_of(x) == INGOT_STRING;
}

ingot_tensor *tflite_equal(TfliteNode *n)
{
    return is_text(X) ? ingot_string_equal(n->c, X, Y) : tflite_same_number(n);
}

ingot_tensor *tflite_not_equal(TfliteNode *n)
{
    return is_text(X) ? ingot_not(n->c, ingot_string_equal(n->c, X, Y)) : tflite_other_number(n);
}

#define FUSED(name)                                                            \
    ingot_tensor *tflite_##name(TfliteNode *n)                                 \
    {                                                                          \
        return tfl_activate(n, ingot_##name(n->c, X, Y), tfl_int(n, 0, 1, 0)); \
    }

FUSED(add)
FUSED(sub)
FUSED(mul)
FUSED(div)

ingot_tensor *tflite_add_n(TfliteNode *n)
{
    ingot_tensor *sum = X;
    for (int i = 1; i < n->n_in; i++)
        sum = ingot_add(n->c, sum, n->in[i]);
    return sum;
}

ingot_tensor *tflite_squared_difference(TfliteNode *n)
{
    ingot_tensor *d = ingot_sub(n->c, X, Y);
    return ingot_mul(n->c, d, d);
}

/* Rounded down, of integers too: -7 by 2 is -4. */
ingot_tensor *tflite_floor_div(TfliteNode *n)
{
    if (tfl_is_float(X))
        return ingot_floor(n->c, ingot_div(n->c, X, Y));
    ingot_tensor *q = ingot_div(n->c, X, Y), *zero = ingot_like(n->c, X, 0);
    ingot_tensor *rest = ingot_sub(n->c, X, ingot_mul(n->c, q, Y));
    ingot_tensor *below = ingot_ne(n->c, ingot_lt(n->c, rest, zero), ingot_lt(n->c, Y, zero));
    below = ingot_and(n->c, below, ingot_ne(n->c, rest, zero));
    return ingot_where(n->c, below, ingot_add_c(n->c, q, -1), q);
}

/* The angle of (x, y): of y / x, and half a turn more where x is below zero. */
ingot_tensor *tflite_atan2(TfliteNode *n)
{
    ingot_context *c = n->c;
    ingot_tensor *y = X, *x = Y, *zero = ingot_like(c, x, 0);
    ingot_tensor *turn =
        ingot_where(c, ingot_lt(c, y, zero), ingot_like(c, x, -3.14159265358979323846),
                    ingot_like(c, x, 3.14159265358979323846));
    ingot_tensor *right = ingot_atan(c, ingot_div(c, y, x));
    ingot_tensor *angle = ingot_where(c, ingot_lt(c, x, zero), ingot_add(c, right, turn), right);
    ingot_tensor *none = ingot_and(c, ingot_eq(c, x, zero), ingot_eq(c, y, zero));
    return ingot_where(c, none, zero, angle);
}

/* Floats become the nearest end of a range of integers that they are out of. */
ingot_tensor *tflite_cast(TfliteNode *n)
{
    const ingot_dtype to = tfl_out_dtype(n);
    ingot_tensor *x = X;
    switch (tfl_is_float(x) ? to : INGOT_F32) {
    case INGOT_I8: x = ingot_clamp(n->c, x, -128, 127); break;
    case INGOT_U8: x = ingot_clamp(n->c, x, 0, 255); break;
    case INGOT_I16: x = ingot_clamp(n->c, x, -32768, 32767); break;
    case INGOT_U16: x = ingot_clamp(n->c, tfl_cast(n, x, INGOT_F32), 0, 65535); break;
    case INGOT_U32:
    case INGOT_U64: x = ingot_max_c(n->c, x, 0); break;
    default: break;
    }
    return tfl_cast(n, x, to);
}

/* Integers without a sign of so many bytes. */
static ingot_dtype word_of(size_t bytes)
{
    return bytes == 1 ? INGOT_U8 : bytes == 2 ? INGOT_U16 : bytes == 4 ? INGOT_U32 : INGOT_U64;
}

static ingot_tensor *bits_as(TfliteNode *n, ingot_tensor *x, ingot_dtype to)
{
    return ingot_is_poison(x) || ingot_dtype_of(x) == to ? x : ingot_bitcast(n->c, x, to);
}

/* Narrower elements lie along a new last axis, the lowest bits first; wider ones take the last axis
 * away. */
ingot_tensor *tflite_bitcast(TfliteNode *n)
{
    enum { MOST_PARTS = 8 };
    const ingot_dtype to = tfl_out_dtype(n);
    if (ingot_is_poison(X))
        return X;
    const size_t from = ingot_dtype_bytes(ingot_dtype_of(X)), into = ingot_dtype_bytes(to);
    const int rank = ingot_rank(X);
    ingot_tensor *part[MOST_PARTS], *y = bits_as(n, X, word_of(from));
    if (to == INGOT_BOOL || tfl_is_bool(X))
        return tfl_unsupported(n, "BOOL is not supported");
    if (from == into)
        return bits_as(n, X, to);
    const ingot_dtype word = word_of(from > into ? from : into);
    const int parts = (int)(from > into ? from / into : into / from);
    const int64_t bits = 8 * (int64_t)(from > into ? into : from);
    if (from > into) {
        for (int i = 0; i < parts; i++)
            part[i] = tfl_cast(n, ingot_shr(n->c, y, ingot_scalar_i(n->c, word, i * bits)),
                               word_of(into));
        return bits_as(n, ingot_stack(n->c, parts, part, rank), to);
    }
    int64_t size;
    if (rank < 1 || !ingot_dim_is_const(ingot_shape(X, rank - 1), &size) || size != parts)
        return tfl_fault(n, "its last axis has not %d elements", parts);
    for (int i = 0; i < parts; i++) {
        part[i] = ingot_slice(n->c, y, rank - 1, tfl_dim(n, i), tfl_dim(n, 1), 1);
        part[i] = tfl_cast(n, ingot_squeeze(n->c, part[i], rank - 1), word);
        part[i] = ingot_shl(n->c, part[i], ingot_scalar_i(n->c, word, i * bits));
        part[0] = i ? ingot_or(n->c, part[0], part[i]) : part[0];
    }
    return bits_as(n, part[0], to);
}

/* Counts beyond the width count as that less one. */
ingot_tensor *tflite_right_shift(TfliteNode *n)
{
    const double most = 8.0 * (double)ingot_dtype_bytes(ingot_dtype_of(X)) - 1;
    return ingot_shr(n->c, X, ingot_clamp(n->c, Y, 0, most));
}

ingot_tensor *tflite_select_v2(TfliteNode *n)
{
    return ingot_where(n->c, X, Y, n->in[2]);
}

/* A condition of rank 1 chooses among the first axis, where the others have more. */
ingot_tensor *tflite_select(TfliteNode *n)
{
    ingot_tensor *cond = X;
    while (ingot_rank(X) == 1 && !ingot_is_poison(cond) && ingot_rank(cond) < ingot_rank(Y))
        cond = ingot_unsqueeze(n->c, cond, ingot_rank(cond));
    return ingot_where(n->c, cond, Y, n->in[2]);
}
