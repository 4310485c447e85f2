/*
 * onnx_ms_attention.c - com.microsoft: Attention, QAttention, MultiHeadAttention.
 *
 *     y = softmax(scale q k^T + bias + mask) v          per head, [batch, heads, sequence, size]
 *
 * Unlike the standard's, masks are finite: a key that is padding gets 'mask_filter_value' (-10000)
 * added, one that comes later than its query the least f32, and a query without any key gives the
 * mean of what is left.
 */
#include <math.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]

/* The operands of one attention, heads apart; NULL: left out. */
typedef struct {
    ingot_tensor *q, *k, *v;
    ingot_tensor *past_k, *past_v; /* what comes before k and v, [batch, heads, past, size] */
    ingot_tensor *mask;            /* i32, in one of the forms below */
    ingot_tensor *bias;            /* [batch or 1, heads or 1, sequence, keys] */
} Heads;

/* ---- masks ---------------------------------------------------------------------------------- */

static bool times(Lowering *n, ingot_dim *d, ingot_dim *batch, int64_t factor, int64_t more)
{
    ingot_dim *v = ingot_dim_add(n->c, ingot_dim_mul(n->c, batch, dim(n, factor)), dim(n, more));
    return ingot_dim_equal(d, v);
}

/* bool [batch, 1, 1, keys] from lengths: [batch] ends, then maybe [batch] beginnings, or what
 * packed sequences have. */
static ingot_tensor *seen_by_length(Lowering *n, ingot_tensor *mask, ingot_dim *batch,
                                    ingot_dim *keys)
{
    ingot_dim *size = ingot_shape(mask, 0);
    bool both = times(n, size, batch, 2, 0);
    if (!both && !ingot_dim_equal(size, batch) && !times(n, size, batch, 3, 2))
        return fault(n, "its mask of lengths has neither batch, 2 batch nor 3 batch + 2 entries");
    ingot_tensor *at = ingot_iota(n->c, 1, &keys, 0), *part[2];
    for (int i = 0; i <= both; i++) {
        ingot_dim *begin = ingot_dim_mul(n->c, batch, dim(n, i));
        part[i] = as(n, ingot_slice(n->c, mask, 0, begin, batch, 1), INGOT_I64);
        part[i] = align_axis(n, part[i], 0, 4);
    }
    ingot_tensor *seen = ingot_lt(n->c, at, part[0]);
    return both ? ingot_and(n->c, seen, ingot_ge(n->c, at, part[1])) : seen;
}

/* bool, broadcast to [batch, heads, sequence, keys]. Forms: lengths; [batch, keys]; [batch,
 * sequence, keys]; [batch, 1, most, most], of which the rows from `past` on count. */
static ingot_tensor *seen_by_mask(Lowering *n, const Heads *h, ingot_dim *past, ingot_dim *keys)
{
    ingot_tensor *mask = h->mask;
    ingot_dim *rows = ingot_shape(h->q, 2);
    int rank = ingot_rank(mask);
    if (rank == 1)
        return seen_by_length(n, mask, ingot_shape(h->q, 0), keys);
    if (rank < 1 || rank > 4)
        return fault(n, "its mask has rank %d, not 1 to 4", rank);
    if (rank < 4)
        mask = ingot_require_size(n->c, mask, rank - 1, keys, "the number of keys in its mask");
    if (rank == 4) {
        mask = ingot_slice(n->c, mask, 2, past, rows, 1);
        mask = ingot_slice(n->c, mask, 3, dim(n, 0), keys, 1);
    } else {
        mask = ingot_unsqueeze(n->c, mask, 1);
        mask = rank == 2 ? ingot_unsqueeze(n->c, mask, 1) : mask;
    }
    return ingot_is_poison(mask) ? mask : ingot_gt(n->c, mask, like(n, mask, 0));
}

/* ---- the core ------------------------------------------------------------------------------- */

static ingot_tensor *merge_heads(Lowering *n, ingot_tensor *x)
{
    static const int perm[] = {0, 2, 1, 3};
    return ingot_is_poison(x) ? x : ingot_flatten(n->c, ingot_permute(n->c, x, perm), 2, 4);
}

/* bool [rows, 1] */
static ingot_tensor *last_row(Lowering *n, ingot_dim *rows)
{
    ingot_dim *dims[] = {rows, dim(n, 1)};
    ingot_tensor *last = ingot_from_dim(n->c, ingot_dim_sub(n->c, rows, dim(n, 1)));
    return ingot_eq(n->c, ingot_iota(n->c, 2, dims, 0), last);
}

/* scale q k^T + bias + mask; k has the past before it. */
static ingot_tensor *masked_scores(Lowering *n, const Heads *h, ingot_dim *past)
{
    int64_t size;
    if (ingot_is_poison(h->q) || ingot_is_poison(h->k))
        return ingot_poison(n->c);
    if (!ingot_dim_is_const(ingot_shape(h->q, 3), &size))
        return unsupported(n, "its head size is not known when compiling");
    double filter = attr_float(n, "mask_filter_value", -10000), scale = attr_float(n, "scale", 0);
    ingot_dim *rows = ingot_shape(h->q, 2), *keys = ingot_shape(h->k, 2);
    ingot_tensor *s =
        ingot_attention_scores(n->c, h->q, h->k, scale != 0 ? scale : 1 / sqrt((double)size));
    ingot_tensor *hidden = NULL;
    if (ingot_is_poison(s))
        return s;
    if (h->bias)
        s = ingot_add(n->c, s, as(n, h->bias, ingot_dtype_of(s)));
    if (h->mask) {
        ingot_tensor *seen = seen_by_mask(n, h, past, keys);
        if (ingot_is_poison(seen))
            return seen;
        hidden = ingot_where(n->c, seen, like(n, s, 0), like(n, s, filter));
    }
    if (attr_int(n, "unidirectional", 0) && !dim_is(rows, 1)) {
        ingot_tensor *seen = ingot_band(n->c, rows, keys, ingot_from_dim(n->c, past), -1, 0);
        if (!ingot_dim_equal(
                keys,
                ingot_dim_add(n->c, past, rows))) /* ONNX Runtime never hides from the last query */
            seen = ingot_or(n->c, seen, last_row(n, rows));
        hidden = ingot_where(n->c, seen, hidden ? hidden : like(n, s, 0),
                             like(n, s, -3.4028234663852886e38));
    }
    return hidden ? ingot_add(n->c, s, hidden) : s;
}

/* The merged heads; *k and *v get the past before them; *scores what softmax saw. */
static ingot_tensor *attend(Lowering *n, Heads *h, ingot_tensor **scores)
{
    ingot_dim *past = h->past_k ? ingot_shape(h->past_k, 2) : dim(n, 0);
    if (h->past_k) {
        h->k = ingot_concat(n->c, 2,
                            (ingot_tensor *[]){as(n, h->past_k, ingot_dtype_of(h->k)), h->k}, 2);
        h->v = ingot_concat(n->c, 2,
                            (ingot_tensor *[]){as(n, h->past_v, ingot_dtype_of(h->v)), h->v}, 2);
    }
    ingot_tensor *s = masked_scores(n, h, past);
    if (scores)
        *scores = s;
    if (ingot_is_poison(s))
        return s;
    ingot_tensor *y = ingot_attention_values(n->c, ingot_softmax(n->c, s, 3), h->v);
    return merge_heads(n, y);
}

/* Options that change what the tensors are, and no CPU of ONNX Runtime's runs. */
static bool plain_options(Lowering *n)
{
    if (attr_int(n, "do_rotary", 0))
        unsupported(n, "do_rotary is not supported");
    else if (attr_int(n, "past_present_share_buffer", 0))
        unsupported(n, "a past that shares its buffer with the present is not supported");
    return !n->failed;
}

/* ---- Attention, QAttention ------------------------------------------------------------------ */

/* `all` is the product [batch, sequence, sum of sizes] with its bias: q, k and v side by side. */
static ingot_tensor *packed_attention(Lowering *n, ingot_tensor *all, Heads *h, ingot_tensor *past)
{
    int64_t heads = attr_int(n, "num_heads", 0), width, at = 0;
    const int64_t *given;
    ingot_tensor *part[3];
    if (ingot_is_poison(all) || !plain_options(n))
        return ingot_poison(n->c);
    int count = attr_ints(n, "qkv_hidden_sizes", &given);
    if (ingot_rank(all) != 3 || !ingot_dim_is_const(ingot_shape(all, 2), &width))
        return fault(n, "its input has rank %d, not 3", ingot_rank(all));
    if (count > 0 && count != 3)
        return fault(n, "its attribute 'qkv_hidden_sizes' has %d entries, not 3", count);
    if (count == 3 ? given[0] < 0 || given[1] < 0 || given[2] < 0 ||
                         given[0] + given[1] + given[2] != width
                   : width % 3)
        return fault(n, "its weights have %lld columns, which are not those of q, k and v",
                     (long long)width);
    for (int i = 0; i < 3; i++) {
        int64_t size = count == 3 ? given[i] : width / 3;
        part[i] = split_heads(n, ingot_slice(n->c, all, 2, dim(n, at), dim(n, size), 1), heads);
        if (!part[i])
            return ingot_poison(n->c);
        at += size;
    }
    h->q = part[0];
    h->k = part[1];
    h->v = part[2];
    if (past) {
        if (ingot_rank(past) != 5 || !dim_is(ingot_shape(past, 0), 2))
            return fault(n, "its past is not [2, batch, heads, past, size]");
        h->past_k = ingot_squeeze(n->c, ingot_slice(n->c, past, 0, dim(n, 0), dim(n, 1), 1), 0);
        h->past_v = ingot_squeeze(n->c, ingot_slice(n->c, past, 0, dim(n, 1), dim(n, 1), 1), 0);
    }
    ingot_tensor *y = attend(n, h, NULL);
    if (n->n_out > 1 && !ingot_is_poison(y))
        n->out[1] = ingot_stack(n->c, 2, (ingot_tensor *[]){h->k, h->v}, 0);
    return y;
}

ingot_tensor *onnx_ms_attention(Lowering *n)
{
    Heads h = {.mask = optional_in(n, 3), .bias = optional_in(n, 5)};
    ingot_tensor *x = ingot_matmul(n->c, X, n->in[1]), *bias = optional_in(n, 2);
    if (optional_in(n, 6))
        return unsupported(n, "past_sequence_length (a shared buffer) is not supported");
    return packed_attention(n, bias ? ingot_add(n->c, x, bias) : x, &h, optional_in(n, 4));
}

ingot_tensor *onnx_ms_qattention(Lowering *n)
{
    Heads h = {.mask = optional_in(n, 5)};
    ingot_tensor *x = integer_product(n, X, n->in[1], optional_in(n, 6), optional_in(n, 7));
    ingot_tensor *scale = ingot_mul(n->c, reshape_scalar(n, n->in[3]), scalar_or_row(n, n->in[4]));
    x = ingot_mul(n->c, as(n, x, ingot_dtype_of(scale)), scale);
    return packed_attention(n, ingot_add(n->c, x, n->in[2]), &h, optional_in(n, 8));
}

/* ---- MultiHeadAttention --------------------------------------------------------------------- */

/* Entry i of axis 3 of [batch, sequence, heads, entries, size], heads before the sequence. */
static ingot_tensor *packed_entry(Lowering *n, ingot_tensor *x, int64_t i)
{
    static const int perm[] = {0, 2, 1, 3};
    x = ingot_squeeze(n->c, ingot_slice(n->c, x, 3, dim(n, i), dim(n, 1), 1), 3);
    return ingot_is_poison(x) ? x : ingot_permute(n->c, x, perm);
}

/* An input [batch, sequence, heads size] (or with its heads apart already) as heads, its part of
 * the bias added, which begins at *at. NULL after an error. */
static ingot_tensor *with_bias(Lowering *n, ingot_tensor *x, int64_t heads, ingot_tensor *bias,
                               int64_t *at)
{
    int64_t size;
    if (ingot_rank(x) == 4)
        return x;
    if (ingot_rank(x) != 3 || !ingot_dim_is_const(ingot_shape(x, 2), &size)) {
        fault(n, "an input has rank %d, not 3", ingot_rank(x));
        return NULL;
    }
    if (bias)
        x = ingot_add(n->c, x, ingot_slice(n->c, bias, 0, dim(n, *at), dim(n, size), 1));
    *at += size;
    return ingot_is_poison(x) ? NULL : split_heads(n, x, heads);
}

/* q, k and v out of their forms: apart; k and v in one; all in one. */
static bool read_heads(Lowering *n, Heads *h)
{
    int64_t heads = attr_int(n, "num_heads", 0), at = 0;
    ingot_tensor *key = optional_in(n, 1), *value = optional_in(n, 2), *bias = optional_in(n, 3);
    if (!key) {
        if (ingot_rank(X) != 5 || !dim_is(ingot_shape(X, 3), 3) || bias) {
            fault(n, "without a key, its query has to be [batch, sequence, heads, 3, size], and "
                     "without a bias");
            return false;
        }
        h->q = packed_entry(n, X, 0);
        h->k = packed_entry(n, X, 1);
        h->v = packed_entry(n, X, 2);
        return !ingot_is_poison(h->v);
    }
    h->q = with_bias(n, X, heads, bias, &at);
    if (!h->q)
        return false;
    if (ingot_rank(key) == 5) {
        if (value || bias || !dim_is(ingot_shape(key, 3), 2)) {
            fault(n, "its key of rank 5 has to be [batch, sequence, heads, 2, size], without a "
                     "value and a bias");
            return false;
        }
        h->k = packed_entry(n, key, 0);
        h->v = packed_entry(n, key, 1);
        return !ingot_is_poison(h->v);
    }
    if (!value || ingot_rank(key) != ingot_rank(value)) {
        fault(n, "its key and value do not have the same rank");
        return false;
    }
    h->k = with_bias(n, key, heads, bias, &at);
    h->v = h->k ? with_bias(n, value, heads, bias, &at) : NULL;
    return h->v != NULL;
}

ingot_tensor *onnx_ms_multi_head_attention(Lowering *n)
{
    Heads h = {.mask = optional_in(n, 4),
               .bias = optional_in(n, 5),
               .past_k = optional_in(n, 6),
               .past_v = optional_in(n, 7)};
    ingot_tensor *scores;
    if (!h.past_k != !h.past_v)
        return fault(n, "it has only one of past_key and past_value");
    if (optional_in(n, 8) || optional_in(n, 9))
        return unsupported(
            n, "past_sequence_length and cache_indirection (a shared buffer) are not supported");
    if (optional_in(n, 1) && ingot_rank(n->in[1]) == 4 && h.past_k)
        return fault(n, "its key of rank 4 is a past already, but it has a past_key");
    if (!read_heads(n, &h))
        return ingot_poison(n->c);
    ingot_tensor *y = attend(n, &h, &scores);
    n->out[1] = h.k;
    n->out[2] = h.v;
    n->out[3] = scores;
    return ingot_is_poison(y) ? y : as(n, y, ingot_dtype_of(X));
}
