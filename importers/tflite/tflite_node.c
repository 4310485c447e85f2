/*
 * tflite_node.c - what operators share: options, inputs that are known now, axes, images.
 */
#include <string.h>

#include "tflite_model.h"

ingot_dim *tfl_dim(TfliteNode *n, int64_t v)
{
    return ingot_dim_const(n->c, v);
}

ingot_tensor *tfl_in(TfliteNode *n, int i)
{
    return i < n->n_in ? n->in[i] : NULL;
}

int64_t tfl_int(TfliteNode *n, unsigned field, unsigned bytes, int64_t otherwise)
{
    return ingot_tflite_int(&n->op->options, field, bytes, otherwise);
}

int tfl_dims(TfliteNode *n, int i, ingot_dim **out, int most)
{
    ingot_tensor *t = tfl_in(n, i);
    if (!t || ingot_is_poison(t)) {
        if (!t)
            tfl_fault(n, "its input %d is missing", i);
        return -1;
    }
    const int got = ingot_contents(n->c, t, out, most);
    if (got < 0)
        tfl_unsupported(n,
                        "its input %d is no list of up to %d integers that is known before "
                        "the run",
                        i, most);
    return got;
}

int tfl_ints(TfliteNode *n, int i, int64_t *out, int most)
{
    int got = 0;
    ingot_tensor *t = tfl_in(n, i);
    if (t && ingot_is_poison(t))
        return -1;
    if (!t || !ingot_const_ints(n->c, t, out, most, &got)) {
        tfl_unsupported(n,
                        "its input %d is no list of up to %d integers that is known when "
                        "compiling",
                        i, most);
        return -1;
    }
    return got;
}

bool tfl_one_int(TfliteNode *n, int i, int64_t *out)
{
    const int got = tfl_ints(n, i, out, 1);
    if (got == 0)
        tfl_fault(n, "its input %d is empty", i);
    return got == 1;
}

bool tfl_axis(TfliteNode *n, int64_t given, int rank, int *axis)
{
    const int64_t at = given < 0 ? given + rank : given;
    *axis = (int)at;
    if (at >= 0 && at < rank)
        return true;
    tfl_fault(n, "its axis %lld is none of %d", (long long)given, rank);
    return false;
}

bool tfl_axes(TfliteNode *n, int i, int rank, unsigned *axes)
{
    int64_t v[INGOT_MAX_RANK];
    const int got = tfl_ints(n, i, v, INGOT_MAX_RANK);
    *axes = 0;
    for (int k = 0; k < got; k++) {
        int axis;
        if (!tfl_axis(n, v[k], rank, &axis))
            return false;
        *axes |= 1u << axis;
    }
    return got >= 0;
}

ingot_tensor *tfl_cast(TfliteNode *n, ingot_tensor *x, ingot_dtype to)
{
    return ingot_is_poison(x) || ingot_dtype_of(x) == to ? x : ingot_cast(n->c, x, to);
}

void tfl_shape(ingot_tensor *x, ingot_dim **dims)
{
    for (int i = 0; i < ingot_rank(x); i++)
        dims[i] = ingot_shape(x, i);
}

ingot_tensor *tfl_rank(TfliteNode *n, ingot_tensor *x, int rank)
{
    while (!ingot_is_poison(x) && ingot_rank(x) < rank)
        x = ingot_unsqueeze(n->c, x, 0);
    return x;
}

ingot_tensor *tfl_channels_first(TfliteNode *n, ingot_tensor *x)
{
    int perm[INGOT_MAX_RANK] = {0};
    if (ingot_is_poison(x))
        return x;
    const int rank = ingot_rank(x);
    for (int i = 1; i < rank; i++)
        perm[i] = i == 1 ? rank - 1 : i - 1;
    return ingot_permute(n->c, x, perm);
}

ingot_tensor *tfl_channels_last(TfliteNode *n, ingot_tensor *x)
{
    int perm[INGOT_MAX_RANK] = {0};
    if (ingot_is_poison(x))
        return x;
    const int rank = ingot_rank(x);
    for (int i = 1; i < rank; i++)
        perm[i] = i == rank - 1 ? 1 : i + 1;
    return ingot_permute(n->c, x, perm);
}

ingot_tensor *tfl_activate(TfliteNode *n, ingot_tensor *x, int64_t function)
{
    switch (function) {
    case 0: return x;
    case 1: return ingot_relu(n->c, x);
    case 2: return ingot_clamp(n->c, x, -1, 1);
    case 3: return ingot_clamp(n->c, x, 0, 6);
    case 4: return ingot_tanh(n->c, x);
    default:
        return tfl_unsupported(n, "the fused activation function number %lld is not supported",
                               (long long)function);
    }
}

ingot_dtype tfl_out_dtype(TfliteNode *n)
{
    ingot_dtype d = INGOT_F32;
    if (n->n_out)
        tflite_dtype(n->to[0]->type, &d);
    return d;
}

bool tfl_is_float(ingot_tensor *x)
{
    const ingot_dtype d = ingot_dtype_of(x);
    return d == INGOT_F32 || d == INGOT_F16 || d == INGOT_BF16 || d == INGOT_F64;
}

bool tfl_is_bool(ingot_tensor *x)
{
    return !ingot_is_poison(x) && ingot_dtype_of(x) == INGOT_BOOL;
}

bool tfl_positive(TfliteNode *n, const char *what, int64_t v)
{
    if (v >= 1 && v <= 1000000000)
        return true;
    tfl_fault(n, "its %s is %lld, not 1 or more", what, (long long)v);
    return false;
}
