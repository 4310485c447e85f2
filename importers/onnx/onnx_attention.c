/*
 * onnx_attention.c - ONNX Attention, FlexAttention and RotaryEmbedding.
 *
 *     Y = softmax(cap(scale Q K^T) + bias) V      per head, [batch, heads, sequence, size]
 *
 * bias is 0 where a query may look at a key and -inf (or a given number) elsewhere. Rows that may
 * look at nothing give zeros.
 */
#include <math.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]

ingot_tensor *split_heads(Lowering *n, ingot_tensor *x, int64_t heads)
{
    static const int perm[] = {0, 2, 1, 3};
    int64_t hidden;
    if (ingot_rank(x) != 3 || heads < 1 ||
        (ingot_dim_is_const(ingot_shape(x, 2), &hidden) && hidden % heads)) {
        fault(n, "an input of rank %d cannot be split into %lld heads", ingot_rank(x),
              (long long)heads);
        return NULL;
    }
    ingot_dim *dims[] = {ingot_shape(x, 0), ingot_shape(x, 1), dim(n, heads),
                         ingot_dim_div(n->c, ingot_shape(x, 2), dim(n, heads))};
    return ingot_permute(n->c, ingot_reshape(n->c, x, 4, dims), perm);
}

/* The same of an input that may have its heads apart already. */
static ingot_tensor *with_heads(Lowering *n, ingot_tensor *x, int64_t heads)
{
    return ingot_rank(x) == 4 ? x : split_heads(n, x, heads);
}

static ingot_tensor *merge_heads(Lowering *n, ingot_tensor *x)
{
    static const int perm[] = {0, 2, 1, 3};
    return ingot_flatten(n->c, ingot_permute(n->c, x, perm), 2, 4);
}

/* How many keys come before the first query: a scalar, or [batch, 1, 1, 1]. */
static ingot_tensor *key_offset(Lowering *n, ingot_tensor *q)
{
    ingot_tensor *past = optional_in(n, 4), *filled = optional_in(n, 6);
    if (past)
        return ingot_from_dim(n->c, ingot_shape(past, 2));
    if (!filled)
        return ingot_scalar_i(n->c, INGOT_I64, 0);
    filled = ingot_sub(n->c, as(n, filled, INGOT_I64), ingot_from_dim(n->c, ingot_shape(q, 2)));
    return align_axis(n, filled, 0, 4);
}

static ingot_tensor *masked(Lowering *n, ingot_tensor *scores, ingot_tensor *seen)
{
    return ingot_where(n->c, seen, scores, like(n, scores, -INFINITY));
}

/* Scores with -inf for the keys that a query may not look at, by position. */
static ingot_tensor *hide_keys(Lowering *n, ingot_tensor *scores, ingot_tensor *q)
{
    if (ingot_is_poison(scores))
        return scores;
    ingot_dim *keys = ingot_shape(scores, 3);
    ingot_tensor *filled = optional_in(n, 6);
    int64_t left = attr_int(n, "left_window_size", -1),
            right = attr_int(n, "right_window_size", -1);
    if (attr_int(n, "is_causal", 0))
        right = 0;
    if (left >= 0 || right >= 0)
        scores = masked(n, scores,
                        ingot_band(n->c, ingot_shape(q, 2), keys, key_offset(n, q), left, right));
    if (!filled)
        return scores;
    filled = align_axis(n, as(n, filled, INGOT_I64), 0, 4);
    return masked(n, scores, ingot_lt(n->c, ingot_iota(n->c, 1, &keys, 0), filled));
}

/* A mask that ends before the last key hides the rest; with one column only from opset 24 on, which
 * says so: before, it is for all keys. */
static ingot_tensor *full_mask(Lowering *n, ingot_tensor *mask, ingot_dim *keys)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    int last = ingot_rank(mask) - 1;
    if (last < 0 || (n->version < 24 && dim_is(ingot_shape(mask, last), 1)) ||
        ingot_dim_equal(ingot_shape(mask, last), keys))
        return mask;
    for (int a = 0; a <= last; a++)
        lo[a] = hi[a] = dim(n, 0);
    hi[last] = ingot_dim_max(n->c, ingot_dim_sub(n->c, keys, ingot_shape(mask, last)), dim(n, 0));
    if (ingot_dtype_of(mask) == INGOT_BOOL)
        return ingot_pad(n->c, mask, lo, hi);
    return ingot_pad_value(n->c, mask, lo, hi, like(n, mask, -INFINITY));
}

/* cap tanh(x / cap) */
static ingot_tensor *soft_cap(Lowering *n, ingot_tensor *x, double cap)
{
    return cap > 0 ? ingot_mul_c(n->c, ingot_tanh(n->c, ingot_mul_c(n->c, x, 1 / cap)), cap) : x;
}

ingot_tensor *inverse_root(Lowering *n, ingot_dim *size)
{
    return ingot_reciprocal(n->c, ingot_sqrt(n->c, as(n, ingot_from_dim(n->c, size), INGOT_F32)));
}

/* scale q k^T, where the scale is 1 / sqrt(head size) unless told. */
static ingot_tensor *scaled_scores(Lowering *n, ingot_tensor *q, ingot_tensor *k)
{
    int64_t size = 1;
    bool told = attr_has(n, "scale"), known = told || ingot_dim_is_const(ingot_shape(q, 3), &size);
    double scale = told ? attr_float(n, "scale", 1) : 1 / sqrt((double)size);
    ingot_tensor *scores = ingot_attention_scores(n->c, q, k, scale);
    if (known || ingot_is_poison(scores))
        return scores;
    return ingot_mul(n->c, scores,
                     as(n, inverse_root(n, ingot_shape(q, 3)), ingot_dtype_of(scores)));
}

ingot_tensor *onnx_attention(Lowering *n)
{
    int64_t q_heads = attr_int(n, "q_num_heads", 0), k_heads = attr_int(n, "kv_num_heads", 0);
    int64_t mode = attr_int(n, "qk_matmul_output_mode", 0),
            precision = attr_int(n, "softmax_precision", 0);
    ingot_tensor *q = with_heads(n, X, q_heads), *k = with_heads(n, n->in[1], k_heads);
    ingot_tensor *v = with_heads(n, n->in[2], k_heads), *mask = optional_in(n, 3);
    ingot_tensor *past_k = optional_in(n, 4), *past_v = optional_in(n, 5), *scores, *stage[4];
    ingot_dtype dtype = ingot_dtype_of(X), wide;
    if (!q || !k || !v || n->failed)
        return ingot_poison(n->c);
    if (!past_k != !past_v)
        return fault(n, "it has only one of past_key and past_value");
    if (past_k) {
        k = ingot_concat(n->c, 2, (ingot_tensor *[]){past_k, k}, 2);
        v = ingot_concat(n->c, 2, (ingot_tensor *[]){past_v, v}, 2);
    }
    n->out[1] = k;
    n->out[2] = v;
    scores = scaled_scores(n, q, k);
    if (ingot_is_poison(scores))
        return scores;
    stage[0] = scores;
    stage[1] = scores = soft_cap(n, scores, attr_float(n, "softcap", 0));
    if (mask) {
        mask = full_mask(n, mask, ingot_shape(k, 2));
        scores = ingot_dtype_of(mask) == INGOT_BOOL
                     ? masked(n, scores, mask)
                     : ingot_add(n->c, scores, as(n, mask, ingot_dtype_of(scores)));
    }
    stage[2] = scores = hide_keys(n, scores, q);
    if (precision > 0 && precision < 32 && ingot_onnx_dtype((int32_t)precision, &wide))
        scores = as(n, scores, wide);
    stage[3] = widen(n, ingot_softmax_or_zero(n->c, scores, 3));
    if (mode < 0 || mode > 3)
        return fault(n, "its qk_matmul_output_mode is %lld", (long long)mode);
    n->out[3] = as(n, stage[mode], dtype);
    ingot_tensor *y = as(n, ingot_attention_values(n->c, stage[3], v), dtype);
    return ingot_rank(X) == 3 ? merge_heads(n, y) : y;
}

/* ---- FlexAttention -------------------------------------------------------------------------- */

/* x through a subgraph attribute that keeps its shape; x itself if it is left out. NULL after an
 * error. */
static ingot_tensor *modified(Lowering *n, const char *name, ingot_tensor *x)
{
    Value *in, *out;
    if (!attr_has(n, name))
        return x;
    const Onnx__GraphProto *g = attr_graph(n, name);
    if (g && g->n_output != 1)
        fault(n, "its attribute '%s' has %zu outputs, not 1", name, g->n_output);
    in = value_tensor(n->c, x);
    if (!g || n->failed || !subgraph(n, g, 1, &in, &out))
        return NULL;
    if (out->kind != VALUE_TENSOR || ingot_is_poison(out->tensor))
        return NULL;
    return as(n, out->tensor, ingot_dtype_of(x));
}

/* softmax(score_mod(scale Q K^T)) V, the probabilities through prob_mod. */
ingot_tensor *onnx_flex_attention(Lowering *n)
{
    ingot_tensor *q = X, *k = n->in[1], *v = n->in[2];
    ingot_dtype dtype = ingot_dtype_of(X), wide = dtype == INGOT_F64 ? INGOT_F64 : INGOT_F32;
    int64_t precision = attr_int(n, "softmax_precision", 0);
    if (ingot_rank(q) != 4 || ingot_rank(k) != 4 || ingot_rank(v) != 4)
        return fault(n, "its inputs have to have rank 4");
    if (precision > 0 && precision < 32 && !ingot_onnx_dtype((int32_t)precision, &wide))
        return fault(n, "its softmax_precision is no element type");
    ingot_tensor *scores = scaled_scores(n, q, k);
    if (ingot_is_poison(scores))
        return scores;
    scores = as(n, scores, wide);
    scores = modified(n, "score_mod", scores);
    ingot_tensor *p = scores ? modified(n, "prob_mod", ingot_softmax(n->c, scores, 3)) : NULL;
    if (!p)
        return ingot_poison(n->c);
    return as(n, ingot_attention_values(n->c, p, v), ingot_dtype_of(v));
}

/* ---- RotaryEmbedding ------------------------------------------------------------------------ */

ingot_tensor *onnx_rotary_embedding(Lowering *n)
{
    static const int perm[] = {0, 2, 1, 3};
    int64_t heads = attr_int(n, "num_heads", 0), turned = attr_int(n, "rotary_embedding_dim", 0),
            size;
    bool neighbours = attr_int(n, "interleaved", 0) != 0;
    ingot_tensor *positions = optional_in(n, 3), *angle[2], *x = X;
    if (ingot_rank(X) == 3)
        x = split_heads(n, X, heads);
    if (!x || ingot_rank(x) != 4)
        return n->failed ? ingot_poison(n->c)
                         : fault(n, "its input has rank %d, not 3 or 4", ingot_rank(X));
    x = ingot_permute(n->c, x, perm); /* [batch, sequence, heads, size] */
    if (!ingot_dim_is_const(ingot_shape(x, 3), &size) && turned)
        size = ingot_dim_hi(ingot_shape(x, 3)) < INT32_MAX ? ingot_dim_hi(ingot_shape(x, 3))
                                                           : INT32_MAX;
    else if (!ingot_dim_is_const(ingot_shape(x, 3), &size))
        return unsupported(n, "its head size is not known when compiling");
    turned = turned ? turned : size;
    if (turned < 2 || turned > size || turned % 2)
        return fault(n, "its rotary_embedding_dim is %lld", (long long)turned);
    for (int i = 0; i < 2; i++) {
        ingot_tensor *cache = n->in[1 + i];
        int last = ingot_rank(cache) - 1;
        if (last < 0 || !dim_is(ingot_shape(cache, last), turned / 2))
            return fault(n, "its caches do not have %lld angles a position",
                         (long long)(turned / 2));
        cache = positions ? ingot_take(n->c, cache, positions, 0) : cache;
        angle[i] = ingot_unsqueeze(n->c, cache, ingot_rank(cache) - 1);
    }
    ingot_tensor *y = ingot_rotary(n->c, x, angle[0], angle[1], neighbours);
    return ingot_rank(X) == 3 ? ingot_flatten(n->c, y, 2, 4) : ingot_permute(n->c, y, perm);
}
