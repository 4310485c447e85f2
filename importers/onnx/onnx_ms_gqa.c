/*
 * onnx_ms_gqa.c - com.microsoft: GroupQueryAttention and RotaryEmbedding.
 *
 * Queries of `num_heads` heads read keys and values of `kv_num_heads`. The caches are [batch, kv
 * heads, rows, size]; sequence b of the batch has seqlens_k[b] + 1 keys in all, the last of which
 * are this run's:
 *
 *     first[b]   = 0 in a prompt (all keys are new), else seqlens_k[b] + 1 - sequence length
 *     present[b] = past[b] up to row first[b], then the new rows, then zeros
 *     query i sees the keys up to first[b] + i
 */
#include <math.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    LENGTHS,
    TOTAL,
    COS,
    SIN,
    POSITIONS,
    BIAS,
    SINK,
    K_SCALE,
    V_SCALE,
    Q_NORM,
    K_NORM
};

typedef struct {
    int64_t heads, kv_heads, size, window;
    bool causal;
    ingot_tensor *q, *k, *v; /* [batch, heads, sequence, size] */
    ingot_tensor *first;     /* i64 [batch, 1, 1, 1] */
    ingot_dim *rows;         /* of the present */
} Grouped;

/* ---- rotation ------------------------------------------------------------------------------- */

/* Positions i64 [batch or 1, sequence] of one number or of a list of them; `one`: counted on from
 * it. */
static ingot_tensor *positions(Lowering *n, ingot_tensor *given, ingot_dim *sequence, bool one)
{
    if (!one)
        return given;
    ingot_tensor *start = ingot_flatten(n->c, given, 0, ingot_rank(given));
    start = reshape_scalar(n, ingot_slice(n->c, start, 0, dim(n, 0), dim(n, 1), 1));
    ingot_tensor *at = ingot_add(n->c, ingot_iota(n->c, 1, &sequence, 0), as(n, start, INGOT_I64));
    return ingot_unsqueeze(n->c, at, 0);
}

/* x [batch, heads, sequence, size], turned by the caches' angles at positions [batch or 1,
 * sequence]. */
static ingot_tensor *rotated(Lowering *n, ingot_tensor *x, ingot_tensor *at, ingot_tensor *cos,
                             ingot_tensor *sin, bool interleaved)
{
    ingot_tensor *angle[2] = {cos, sin};
    for (int i = 0; i < 2; i++) {
        angle[i] = ingot_take(n->c, angle[i], at, 0); /* [batch, sequence, angles] */
        if (ingot_is_poison(angle[i]))
            return angle[i];
        angle[i] = ingot_unsqueeze(n->c, angle[i], 1);
    }
    return ingot_rotary(n->c, x, angle[0], angle[1], interleaved);
}

static bool check_caches(Lowering *n, ingot_tensor *cos, ingot_tensor *sin)
{
    if (ingot_rank(cos) == 2 && ingot_rank(sin) == 2)
        return true;
    fault(n, "its caches of angles have ranks %d and %d, not 2", ingot_rank(cos), ingot_rank(sin));
    return false;
}

ingot_tensor *onnx_ms_rotary_embedding(Lowering *n)
{
    static const int perm[] = {0, 2, 1, 3};
    ingot_tensor *at = n->in[1], *cos = n->in[2], *sin = n->in[3], *x = X;
    int64_t heads = attr_int(n, "num_heads", 0), half, width;
    bool merged = ingot_rank(X) == 3, one = dim_is(ingot_numel(n->c, at), 1) && ingot_rank(at) == 1;
    double scale = attr_float(n, "scale", 1);
    if (!check_caches(n, cos, sin) || n->failed)
        return ingot_poison(n->c);
    if (scale != 1)
        return unsupported(n, "a scale of %g is not supported", scale);
    if (merged && heads == 0) {
        if (!ingot_dim_is_const(ingot_shape(cos, 1), &half) ||
            !ingot_dim_is_const(ingot_shape(X, 2), &width) || half < 1 || width % (2 * half))
            return fault(n, "its last axis is no multiple of two times the caches' angles");
        heads = width / (2 * half);
    }
    if (merged)
        x = split_heads(n, X, heads);
    if (!x || ingot_is_poison(x) || ingot_rank(x) != 4)
        return n->failed ? ingot_poison(n->c)
                         : fault(n, "its input has rank %d, not 3 or 4", ingot_rank(X));
    at = positions(n, at, ingot_shape(x, 2), one);
    if (ingot_rank(at) != 2)
        return fault(n, "its position_ids have neither one element nor rank 2");
    ingot_tensor *y = rotated(n, x, at, cos, sin, attr_int(n, "interleaved", 0) != 0);
    if (ingot_is_poison(y))
        return y;
    return merged ? ingot_flatten(n->c, ingot_permute(n->c, y, perm), 2, 4) : y;
}

/* ---- what is new ---------------------------------------------------------------------------- */

static bool read_options(Lowering *n, Grouped *g)
{
    static const char *const quant[] = {"k_quant_type", "v_quant_type"};
    g->heads = attr_int(n, "num_heads", 0);
    g->kv_heads = attr_int(n, "kv_num_heads", 0);
    g->causal = attr_int(n, "causal", 1) != 0;
    g->window = attr_int(n, "local_window_size", -1);
    if (g->heads < 1 || g->kv_heads < 1 || g->heads > INT32_MAX || g->heads % g->kv_heads)
        fault(n, "its %lld heads are no multiple of its %lld key heads", (long long)g->heads,
              (long long)g->kv_heads);
    for (int i = 0; i < 2; i++)
        if (!attr_is(n, quant[i], "NONE", "NONE"))
            unsupported(n, "caches of quantised keys and values are not supported (%s)", quant[i]);
    if (optional_in(n, K_SCALE) || optional_in(n, V_SCALE))
        unsupported(n, "caches of quantised keys and values are not supported");
    if (attr_int(n, "sliding_window_cache", 0))
        unsupported(
            n, "a cache that drops what left its window (sliding_window_cache) is not supported");
    if (!g->causal && g->window > 0)
        fault(n, "it has a local window, but is not causal");
    if (!optional_in(n, PAST_KEY) != !optional_in(n, PAST_VALUE))
        fault(n, "it has only one of past_key and past_value");
    return !n->failed;
}

/* Query, key and value as heads, apart or in one. */
static bool read_grouped(Lowering *n, Grouped *g)
{
    ingot_tensor *part[3] = {X, optional_in(n, KEY), optional_in(n, VALUE)};
    int64_t heads[3] = {g->heads, g->kv_heads, g->kv_heads}, all = g->heads + 2 * g->kv_heads,
            width, at = 0;
    if (!part[1] != !part[2] || ingot_rank(X) != 3 ||
        !ingot_dim_is_const(ingot_shape(X, 2), &width)) {
        fault(n, "its query has to have rank 3, and key and value have to be there both or none");
        return false;
    }
    if (!part[1] && width % all) {
        fault(n, "its query of %lld columns does not hold %lld heads", (long long)width,
              (long long)all);
        return false;
    }
    for (int i = 0; i < 3; i++) {
        ingot_tensor *x = part[i];
        if (!part[1] || (i == 0 && !optional_in(n, KEY))) {
            int64_t size = width / all * heads[i];
            x = ingot_slice(n->c, X, 2, dim(n, at), dim(n, size), 1);
            at += size;
        }
        x = split_heads(n, x, heads[i]);
        if (!x)
            return false;
        *(i == 0 ? &g->q : i == 1 ? &g->k : &g->v) = x;
    }
    return ingot_dim_is_const(ingot_shape(g->q, 3), &g->size);
}

/* first: how many keys each sequence has before its queries; rows: of the present. */
static bool read_lengths(Lowering *n, Grouped *g)
{
    ingot_dim *const *total, *sequence = ingot_shape(g->q, 2), *past = dim(n, 0);
    int count = dims_in(n, TOTAL, &total);
    if (count != 1) {
        if (!n->failed)
            fault(n, "its total_sequence_length is not one number");
        return false;
    }
    if (optional_in(n, PAST_KEY)) {
        if (ingot_rank(n->in[PAST_KEY]) != 4 || ingot_rank(n->in[PAST_VALUE]) != 4) {
            fault(n, "its past_key and past_value are not [batch, heads, rows, size]");
            return false;
        }
        past = ingot_shape(n->in[PAST_KEY], 2);
    }
    g->rows = ingot_dim_max(n->c, total[0], past);
    ingot_tensor *length = as(n, n->in[LENGTHS], INGOT_I64),
                 *zero = ingot_scalar_i(n->c, INGOT_I64, 0);
    length = ingot_flatten(n->c, length, 0, ingot_rank(length));
    ingot_tensor *first =
        ingot_sub(n->c, ingot_add_c(n->c, length, 1), ingot_from_dim(n->c, sequence));
    if (ingot_dim_equal(sequence, total[0]))
        first = ingot_mul(n->c, first, zero);
    else if (ingot_dim_hi(sequence) >= ingot_dim_lo(total[0]))
        first = ingot_where(
            n->c, ingot_eq(n->c, ingot_from_dim(n->c, sequence), ingot_from_dim(n->c, total[0])),
            zero, first);
    g->first = align_axis(n, first, 0, 4);
    return !ingot_is_poison(g->first);
}

/* Norms of heads, then rotation. */
static bool turn(Lowering *n, Grouped *g)
{
    ingot_tensor **x[2] = {&g->q, &g->k}, *cos = optional_in(n, COS), *sin = optional_in(n, SIN);
    ingot_tensor *given = optional_in(n, POSITIONS), *at;
    ingot_dim *sequence = ingot_shape(g->q, 2);
    for (int i = 0; i < 2; i++)
        if (optional_in(n, Q_NORM + i))
            *x[i] = ingot_rms_norm(n->c, *x[i], 3, n->in[Q_NORM + i],
                                   attr_float(n, "qk_norm_epsilon", 1e-6));
    if (!attr_int(n, "do_rotary", 0))
        return !n->failed;
    if (!cos || !sin) {
        fault(n, "it rotates, but has no caches of angles");
        return false;
    }
    if (!check_caches(n, cos, sin))
        return false;
    if (given) { /* a prompt goes on from its first position */
        at = positions(n, given, sequence, ingot_dim_lo(sequence) > 1);
    } else {
        ingot_dim *dims[] = {dim(n, 1), sequence};
        at = ingot_flatten(n->c, g->first, 1, 4); /* [batch, 1] */
        at = ingot_add(n->c, at, ingot_iota(n->c, 2, dims, 1));
    }
    for (int i = 0; i < 2; i++)
        *x[i] = rotated(n, *x[i], at, cos, sin, attr_int(n, "rotary_interleaved", 0) != 0);
    return !ingot_is_poison(g->q) && !ingot_is_poison(g->k);
}

/* ---- caches --------------------------------------------------------------------------------- */

/* past up to row `first`, then the new rows, then zeros: [batch, heads, rows, size] */
static ingot_tensor *present(Lowering *n, const Grouped *g, ingot_tensor *past, ingot_tensor *fresh)
{
    ingot_dim *dims[4], *sequence = ingot_shape(fresh, 2);
    if (past && ingot_dim_hi(ingot_shape(past, 2)) == 0) /* the first run of an exported decoder */
        past = NULL;
    shape_of(fresh, dims);
    if (!past && ingot_dim_equal(g->rows, sequence))
        return fresh;
    dims[2] = g->rows;
    ingot_tensor *row = ingot_iota(n->c, 4, dims, 2), *index[4],
                 *since = ingot_sub(n->c, row, g->first);
    for (int a = 0; a < 4; a++)
        index[a] = a == 2 ? since : ingot_iota(n->c, 4, dims, a);
    ingot_tensor *zero = like(n, fresh, 0), *seq = ingot_from_dim(n->c, sequence);
    ingot_tensor *y =
        ingot_where(n->c, ingot_lt(n->c, since, seq), ingot_gather(n->c, fresh, index), zero);
    if (!past)
        return y;
    index[2] = row;
    past = ingot_gather(n->c, as(n, past, ingot_dtype_of(fresh)), index);
    return ingot_where(n->c, ingot_lt(n->c, row, g->first), past, y);
}

/* ---- the operator --------------------------------------------------------------------------- */

/* [batch or 1, heads or 1, sequence, total], with zeros for the rows of the caches behind the
 * total. */
static ingot_tensor *bias_of_rows(Lowering *n, ingot_tensor *bias, ingot_dim *rows)
{
    ingot_dim *none = dim(n, 0), *lo[] = {none, none, none, none}, *hi[] = {none, none, none, none};
    if (ingot_rank(bias) != 4)
        return fault(n, "its attention_bias has rank %d, not 4", ingot_rank(bias));
    hi[3] = ingot_dim_max(n->c, none, ingot_dim_sub(n->c, rows, ingot_shape(bias, 3)));
    return dim_is(hi[3], 0) ? bias : ingot_pad(n->c, bias, lo, hi);
}

/* softmax with one more term in the sum: e^sink of each head, or e^0 */
static ingot_tensor *softmax_with_sink(Lowering *n, ingot_tensor *s, ingot_tensor *sink)
{
    sink = sink ? align_axis(n, as(n, sink, ingot_dtype_of(s)), 1, 4) : like(n, s, 0);
    ingot_tensor *most = ingot_max(n->c, ingot_reduce(n->c, INGOT_REDUCE_MAX, s, 8, true), sink);
    ingot_tensor *e = ingot_exp(n->c, ingot_sub(n->c, s, most));
    ingot_tensor *sum =
        ingot_add(n->c, ingot_sum(n->c, e, 8, true), ingot_exp(n->c, ingot_sub(n->c, sink, most)));
    return ingot_div(n->c, e, sum);
}

ingot_tensor *onnx_ms_group_query_attention(Lowering *n)
{
    static const int perm[] = {0, 2, 1, 3}, needed[] = {LENGTHS, TOTAL};
    Grouped g = {0};
    if (!inputs_needed(n, COUNT(needed), needed) || !read_options(n, &g) || !read_grouped(n, &g) ||
        !read_lengths(n, &g) || !turn(n, &g))
        return ingot_poison(n->c);
    double scale = attr_float(n, "scale", 0), cap = attr_float(n, "softcap", 0);
    int64_t stage = attr_int(n, "qk_output", 0);
    ingot_dtype dtype = ingot_dtype_of(X);
    ingot_tensor *k = present(n, &g, optional_in(n, PAST_KEY), g.k), *bias = optional_in(n, BIAS);
    ingot_tensor *v = present(n, &g, optional_in(n, PAST_VALUE), g.v);
    n->out[1] = k;
    n->out[2] = v;
    ingot_tensor *s =
        ingot_attention_scores(n->c, g.q, k, scale != 0 ? scale : 1 / sqrt((double)g.size));
    if (ingot_is_poison(s))
        return s;
    if (cap > 0)
        s = ingot_mul_c(n->c, ingot_tanh(n->c, ingot_mul_c(n->c, s, 1 / cap)), cap);
    if (bias) {
        bias = bias_of_rows(n, bias, g.rows);
        s = ingot_is_poison(bias) ? bias : ingot_add(n->c, s, as(n, bias, ingot_dtype_of(s)));
    }
    if (ingot_is_poison(s))
        return s;
    ingot_tensor *seen;
    ingot_dim *sequence = ingot_shape(g.q, 2);
    if (g.causal) {
        seen = ingot_band(n->c, sequence, g.rows, g.first, g.window > 0 ? g.window - 1 : -1, 0);
    } else {
        ingot_tensor *end = ingot_add(n->c, g.first, ingot_from_dim(n->c, sequence));
        seen = ingot_lt(n->c, ingot_iota(n->c, 1, &g.rows, 0), end);
    }
    ingot_tensor *hidden = ingot_where(n->c, seen, s, like(n, s, -INFINITY));
    bool sink = optional_in(n, SINK) || attr_int(n, "smooth_softmax", 0);
    ingot_tensor *p = sink ? softmax_with_sink(n, hidden, optional_in(n, SINK))
                           : ingot_softmax_or_zero(n->c, hidden, 3);
    if (stage < 0 || stage > 2)
        return fault(n, "its qk_output is %lld, not 0 to 2", (long long)stage);
    if (n->n_out > 3)
        n->out[3] = as(n, stage == 2 ? p : ingot_where(n->c, seen, s, like(n, s, 0)), dtype);
    ingot_tensor *y = ingot_attention_values(n->c, p, v);
    return ingot_is_poison(y)
               ? y
               : ingot_flatten(n->c, ingot_permute(n->c, as(n, y, dtype), perm), 2, 4);
}
