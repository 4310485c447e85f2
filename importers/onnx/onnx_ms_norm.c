/*
 * onnx_ms_norm.c - com.microsoft: normalisations of a sum, and of embeddings.
 *
 *     SkipLayerNormalization    y = norm(x + skip + bias) gamma + beta, and the sum itself
 *     EmbedLayerNormalization   y = norm(word[id] + position[p] + segment[s]) gamma + beta
 */
#include <string.h>

#include "onnx.h"

#define X n->in[0]

/* x + skip + bias, in f32 at least; skip may lack the batch */
static ingot_tensor *skip_sum(Lowering *n, ingot_tensor *bias)
{
    ingot_tensor *sum = ingot_add(n->c, widen(n, X), widen(n, n->in[1]));
    return bias ? ingot_add(n->c, sum, widen(n, bias)) : sum;
}

static bool has_axis(Lowering *n)
{
    if (ingot_rank(X) < 1)
        fault(n, "its input has rank 0");
    return !n->failed;
}

ingot_tensor *onnx_ms_skip_layer_norm(Lowering *n)
{
    if (!has_axis(n))
        return ingot_poison(n->c);
    ingot_tensor *sum = skip_sum(n, optional_in(n, 4));
    if (ingot_is_poison(sum))
        return sum;
    ingot_dtype dtype = ingot_dtype_of(X);
    n->out[3] = as(n, sum, dtype);
    double eps = attr_float(n, "epsilon", 1e-12);
    ingot_tensor *y = ingot_layer_norm_stats(n->c, sum, ingot_rank(sum) - 1, n->in[2],
                                             optional_in(n, 3), eps, &n->out[1], &n->out[2]);
    return as(n, y, dtype);
}

/* 1 / sqrt(mean x^2 + eps) over the axes from `axis` on */
static ingot_tensor *inverse_rms(Lowering *n, ingot_tensor *x, int axis, double eps)
{
    unsigned axes = ((1u << ingot_rank(x)) - 1) & ~((1u << axis) - 1);
    x = widen(n, x);
    x = ingot_mean(n->c, ingot_mul(n->c, x, x), axes, true);
    return ingot_reciprocal(n->c, ingot_sqrt(n->c, ingot_add_c(n->c, x, eps)));
}

ingot_tensor *onnx_ms_skip_simplified_layer_norm(Lowering *n)
{
    if (!has_axis(n))
        return ingot_poison(n->c);
    double eps = attr_float(n, "epsilon", 1e-12);
    ingot_tensor *sum = skip_sum(n, optional_in(n, 3));
    if (ingot_is_poison(sum))
        return sum;
    ingot_dtype dtype = ingot_dtype_of(X);
    int last = ingot_rank(sum) - 1;
    n->out[3] = as(n, sum, dtype);
    if (n->n_out > 2)
        n->out[2] = inverse_rms(n, sum, last, eps);
    return as(n, ingot_rms_norm(n->c, sum, last, n->in[2], eps), dtype);
}

/* RMSNormalization before it was in the standard; also gives 1 / rms. */
ingot_tensor *onnx_ms_simplified_layer_norm(Lowering *n)
{
    double eps = attr_float(n, "epsilon", 1e-5);
    int axis;
    if (!axis_in(n, attr_int(n, "axis", -1), ingot_rank(X), &axis))
        return ingot_poison(n->c);
    if (n->n_out > 1)
        n->out[1] = inverse_rms(n, X, axis, eps);
    ingot_tensor *y = ingot_rms_norm(n->c, X, axis, n->in[1], eps);
    return ingot_is_poison(y) ? y : as(n, y, ingot_dtype_of(n->in[1]));
}

/* x rsqrt(mean x^2 + eps) scale f(gate), over groups as long as scale */
ingot_tensor *onnx_ms_gated_rms_norm(Lowering *n)
{
    ingot_dtype dtype = ingot_dtype_of(X);
    const char *name = attr_string(n, "activation", "silu");
    ingot_dim *dims[INGOT_MAX_RANK + 1];
    int64_t group, size;
    int rank = ingot_rank(X);
    bool sigmoid = strcmp(name, "sigmoid") == 0;
    if (!sigmoid && strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0)
        return fault(n, "its activation '%.100s' is none of silu, swish, sigmoid", name);
    if (rank < 1 || rank == INGOT_MAX_RANK || ingot_rank(n->in[1]) != 1 ||
        !ingot_dim_is_const(ingot_shape(n->in[1], 0), &group) ||
        !ingot_dim_is_const(ingot_shape(X, rank - 1), &size) || group < 1 || size % group)
        return fault(n, "its last axis is no multiple of the length of its scale");
    shape_of(X, dims);
    dims[rank - 1] = dim(n, size / group);
    dims[rank] = dim(n, group);
    ingot_tensor *x = ingot_reshape(n->c, widen(n, X), rank + 1, dims), *gate = widen(n, n->in[2]);
    ingot_tensor *y =
        ingot_rms_norm(n->c, x, rank, widen(n, n->in[1]), attr_float(n, "epsilon", 1e-5));
    if (ingot_is_poison(y))
        return y;
    gate = sigmoid ? ingot_sigmoid(n->c, gate) : ingot_swish(n->c, gate, 1);
    return as(n, ingot_mul(n->c, ingot_flatten(n->c, y, rank - 1, rank + 1), gate), dtype);
}

/* ---- groups --------------------------------------------------------------------------------- */

/* x, its channels last unless the node says otherwise, in groups; then SiLU if asked for */
static ingot_tensor *group_norm(Lowering *n, ingot_tensor *x)
{
    bool last = attr_int(n, "channels_last", 1) != 0;
    int64_t groups = attr_int(n, "groups", 0), activation = attr_int(n, "activation", 0), channels;
    if (ingot_is_poison(x))
        return x;
    ingot_dtype dtype = ingot_dtype_of(X);
    ingot_tensor *y = last ? channels_first(n, x) : x;
    if (ingot_is_poison(y))
        return y;
    if (activation != 0 && activation != 1)
        return fault(n, "its attribute 'activation' is %lld, not 0 or 1", (long long)activation);
    if (ingot_rank(y) < 2 || groups < 1 || !ingot_dim_is_const(ingot_shape(y, 1), &channels) ||
        channels % groups)
        return fault(n, "its channels are no multiple of 'groups'");
    y = ingot_group_norm(n->c, y, groups, widen(n, n->in[1]), widen(n, n->in[2]),
                         attr_float(n, "epsilon", 1e-5));
    if (ingot_is_poison(y))
        return y;
    y = activation ? ingot_swish(n->c, y, 1) : y;
    return as(n, last ? channels_last(n, y) : y, dtype);
}

ingot_tensor *onnx_ms_group_norm(Lowering *n)
{
    return group_norm(n, widen(n, X));
}

/* x + skip + bias first; skip may be [N, C] or [N, 1, 1, C] */
ingot_tensor *onnx_ms_skip_group_norm(Lowering *n)
{
    bool last = attr_int(n, "channels_last", 1) != 0;
    ingot_tensor *skip = widen(n, n->in[3]), *bias = optional_in(n, 4), *sum = widen(n, X);
    int rank = ingot_rank(X);
    if (ingot_rank(skip) == 2 && rank > 2)
        for (int a = 2; a < rank; a++)
            skip = ingot_unsqueeze(n->c, skip, last ? 1 : 2);
    sum = ingot_add(n->c, sum, skip);
    if (bias)
        sum = ingot_add(n->c, sum, last ? widen(n, bias) : align_axis(n, widen(n, bias), 1, rank));
    if (n->n_out > 1 && !ingot_is_poison(sum))
        n->out[1] = as(n, sum, ingot_dtype_of(X));
    return group_norm(n, sum);
}

/* ---- embeddings ----------------------------------------------------------------------------- */

/* What EmbedLayerNormalization looks up, in f32 or f16; NULL: left out. */
typedef struct {
    ingot_tensor *ids, *segments, *word, *position, *segment, *gamma, *beta, *mask, *places;
} Embedding;

/* The number of ones in each row of the mask; zeros without one. */
static ingot_tensor *mask_index(Lowering *n, const Embedding *e)
{
    ingot_dim *batch = ingot_shape(e->ids, 0);
    if (!e->mask)
        return ingot_expand(n->c, ingot_scalar_i(n->c, INGOT_I32, 0), 1, &batch);
    ingot_tensor *one = ingot_eq(n->c, e->mask, like(n, e->mask, 1));
    return ingot_sum(n->c, as(n, one, INGOT_I32), 2, false);
}

static ingot_tensor *embedded(Lowering *n, const Embedding *e)
{
    if (ingot_rank(e->ids) != 2)
        return fault(n, "its input_ids have rank %d, not 2", ingot_rank(e->ids));
    ingot_tensor *sum = ingot_take(n->c, widen(n, e->word), e->ids, 0),
                 *position = widen(n, e->position);
    if (e->places)
        position = ingot_take(n->c, position, e->places, 0);
    else
        position = ingot_slice(n->c, position, 0, dim(n, 0), ingot_shape(e->ids, 1), 1);
    sum = ingot_add(n->c, sum, position);
    if (e->segment) {
        ingot_tensor *segments =
            e->segments ? e->segments : ingot_mul(n->c, e->ids, like(n, e->ids, 0));
        sum = ingot_add(n->c, sum, ingot_take(n->c, widen(n, e->segment), segments, 0));
    }
    if (ingot_is_poison(sum))
        return sum;
    n->out[1] = mask_index(n, e);
    ingot_dtype dtype = ingot_dtype_of(e->gamma);
    n->out[2] = as(n, sum, dtype);
    return as(n, ingot_layer_norm(n->c, sum, 2, e->gamma, e->beta, attr_float(n, "epsilon", 1e-12)),
              dtype);
}

ingot_tensor *onnx_ms_embed_layer_norm(Lowering *n)
{
    static const int needed[] = {2, 3, 5, 6};
    if (!inputs_needed(n, COUNT(needed), needed))
        return ingot_poison(n->c);
    Embedding e = {.ids = X,
                   .segments = n->in[1],
                   .word = n->in[2],
                   .position = n->in[3],
                   .segment = n->in[4],
                   .gamma = n->in[5],
                   .beta = n->in[6],
                   .mask = optional_in(n, 7),
                   .places = optional_in(n, 8)};
    return embedded(n, &e);
}

/* The same of 8-bit tables: values at 2 to 6, scales at 8 to 12, zero points at 13 to 17. */
ingot_tensor *onnx_ms_qembed_layer_norm(Lowering *n)
{
    static const int needed[] = {2, 3, 5, 6, 8, 9, 11, 12, 13, 14, 16, 17};
    ingot_tensor *table[5];
    if (!inputs_needed(n, COUNT(needed), needed))
        return ingot_poison(n->c);
    for (int i = 0; i < 5; i++) {
        table[i] = n->in[2 + i];
        if (!table[i])
            continue;
        if (!n->in[8 + i] || !n->in[13 + i])
            return fault(n, "its table %d has no scale or no zero point", i);
        table[i] = dequantized(n, table[i], reshape_scalar(n, n->in[8 + i]),
                               reshape_scalar(n, n->in[13 + i]));
    }
    Embedding e = {.ids = X,
                   .segments = n->in[1],
                   .word = table[0],
                   .position = table[1],
                   .segment = table[2],
                   .gamma = table[3],
                   .beta = table[4],
                   .mask = n->in[7]};
    return embedded(n, &e);
}
