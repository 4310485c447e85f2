/*
 * onnx_linear_attention.c - ONNX LinearAttention and CausalConvWithState: layers that carry a
 * state from call to call.
 *
 * LinearAttention keeps a matrix S [d_k, d_v] a head. At each time t, in f32:
 *
 *     S = exp(g_t) S                  where there is a decay g
 *     v = beta_t (v_t - S^T k_t)      where there is an update rate beta, else v = v_t
 *     S = S + k_t v^T,  o_t = scale S^T q_t
 *
 * Times are a loop whose carried value is S; a group of query heads reads one S.
 */
#include <math.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]

/* [B, T, H D] -> [B, H, T, D], in f32; NULL after an error. */
static ingot_tensor *unpack(Lowering *n, ingot_tensor *x, int64_t heads)
{
    return split_heads(n, as(n, x, INGOT_F32), heads);
}

/* x [B, H, T, D] at one time, with a last axis of 1: [B, H, D, 1]. */
static ingot_tensor *column_at(Lowering *n, ingot_tensor *x, ingot_tensor *t)
{
    return x ? ingot_unsqueeze(n->c, ingot_take(n->c, x, t, 2), 3) : NULL;
}

/* [B, H, D, E] -> [B, H times, D, E], each head repeated. */
static ingot_tensor *repeat_heads(Lowering *n, ingot_tensor *x, int64_t times)
{
    ingot_dim *dims[5];
    if (times == 1)
        return x;
    x = ingot_unsqueeze(n->c, x, 2);
    shape_of(x, dims);
    dims[2] = dim(n, times);
    return ingot_flatten(n->c, ingot_expand(n->c, x, 5, dims), 1, 3);
}

typedef struct {
    ingot_tensor *q, *k, *v, *decay, *beta; /* [B, H, T, D]; decay and beta may be NULL */
    int64_t group;
    ingot_dim *d_k;
    ingot_tensor *scale;
} LinearAttention;

/* The next state, and o_t [B, Hq, d_v]. */
static ingot_tensor *linear_step(Lowering *n, const LinearAttention *l, ingot_tensor *state,
                                 ingot_tensor *t, ingot_tensor **o)
{
    ingot_tensor *q = column_at(n, l->q, t), *k = column_at(n, l->k, t), *v = column_at(n, l->v, t);
    ingot_tensor *decay = column_at(n, l->decay, t), *beta = column_at(n, l->beta, t);
    v = ingot_transpose(n->c, v, 2, 3); /* [B, H, 1, d_v] */
    if (decay)
        state = ingot_mul(n->c, state, ingot_exp(n->c, decay));
    if (beta) {
        ingot_tensor *held = ingot_sum(n->c, ingot_mul(n->c, state, k), 1u << 2, true);
        v = ingot_mul(n->c, beta, ingot_sub(n->c, v, held));
    }
    state = ingot_add(n->c, state, ingot_mul(n->c, k, v));
    ingot_tensor *read = ingot_mul(n->c, repeat_heads(n, state, l->group), q);
    *o = ingot_mul(n->c, ingot_sum(n->c, read, 1u << 2, false), l->scale);
    return state;
}

static bool linear_inputs(Lowering *n, LinearAttention *l)
{
    int64_t hq = attr_int(n, "q_num_heads", 0), hk = attr_int(n, "kv_num_heads", 0), last = 0, size;
    const char *rule = attr_string(n, "update_rule", "gated_delta");
    bool gated = strncmp(rule, "gated", 5) == 0, delta = strstr(rule, "delta") != NULL;
    ingot_tensor *decay = optional_in(n, 4), *beta = optional_in(n, 5);
    if (n->failed || hq < 1 || hk < 1 || hq % hk) {
        fault(n, "it has %lld query heads and %lld key heads", (long long)hq, (long long)hk);
        return false;
    }
    if (gated != (decay != NULL) || delta != (beta != NULL)) {
        fault(n, "its update_rule '%s' does not fit its inputs", rule);
        return false;
    }
    l->group = hq / hk;
    l->q = unpack(n, X, hq);
    l->k = l->q ? unpack(n, n->in[1], hk) : NULL;
    l->v = l->k ? unpack(n, n->in[2], hk) : NULL;
    if (!l->v)
        return false;
    l->d_k = ingot_shape(l->k, 3);
    if (decay && !(l->decay = unpack(n, decay, hk)))
        return false;
    if (beta && ingot_rank(beta) == 3 && !ingot_dim_is_const(ingot_shape(beta, 2), &last)) {
        unsupported(n, "the last size of its beta is not known when compiling");
        return false;
    }
    if (beta && (ingot_rank(beta) != 3 || !(l->beta = unpack(n, beta, last))))
        return n->failed ? false : (fault(n, "its beta has rank %d", ingot_rank(beta)), false);
    double scale = attr_float(n, "scale", 0);
    if (scale == 0 && ingot_dim_is_const(l->d_k, &size))
        scale = 1 / sqrt((double)size);
    l->scale = scale == 0 ? inverse_root(n, l->d_k) : ingot_scalar_f(n->c, INGOT_F32, scale);
    return !n->failed;
}

ingot_tensor *onnx_linear_attention(Lowering *n)
{
    static const int perm[] = {1, 0, 2, 3};
    LinearAttention l = {0};
    ingot_tensor *past = optional_in(n, 3), *result[3], *out[2];
    if (!linear_inputs(n, &l))
        return ingot_poison(n->c);
    ingot_dim *dims[] = {ingot_shape(l.k, 0), ingot_shape(l.k, 1), l.d_k, ingot_shape(l.v, 3)};
    ingot_tensor *state = past ? as(n, past, INGOT_F32)
                               : ingot_expand(n->c, ingot_scalar_f(n->c, INGOT_F32, 0), 4, dims);
    ingot_region *body = ingot_region_begin(n->c);
    ingot_tensor *t = ingot_region_param(n->c, body, INGOT_I64, 0, NULL);
    result[0] = ingot_region_param(n->c, body, INGOT_BOOL, 0, NULL);
    ingot_tensor *inside = ingot_region_param_like(n->c, body, state);
    result[1] = linear_step(n, &l, inside, t, &result[2]);
    ingot_region_end(n->c, body, 3, result);
    ingot_loop(n->c, ingot_shape(l.q, 2), NULL, 1, &state, body, 1, out);
    n->out[1] = as(n, out[0], ingot_dtype_of(past ? past : X));
    /* [T, B, H, d_v] -> [B, T, H d_v] */
    ingot_tensor *y = ingot_flatten(n->c, ingot_permute(n->c, out[1], perm), 2, 4);
    return as(n, y, ingot_dtype_of(X));
}

/* The convolution of channels whose number only the run knows: x [N, C, L], w [C, 1, k]. */
static ingot_tensor *each_channel(Lowering *n, ingot_tensor *x, ingot_tensor *w, ingot_tensor *bias,
                                  int64_t k)
{
    ingot_dtype dtype = ingot_dtype_of(x);
    ingot_tensor *windows = ingot_window(n->c, widen(n, x), 2, k, 1, 1); /* [N, C, L - k + 1, k] */
    ingot_tensor *y = ingot_sum(n->c, ingot_mul(n->c, windows, widen(n, w)), 1u << 3, false);
    if (bias)
        y = ingot_add(n->c, y, ingot_unsqueeze(n->c, widen(n, bias), 1));
    return as(n, y, dtype);
}

/* Each channel with its own kernel over the past; the state is the last k - 1 inputs. */
ingot_tensor *onnx_causal_conv(Lowering *n)
{
    static const int64_t one[] = {1}, none[] = {0};
    const char *activation = attr_string(n, "activation", "none");
    ingot_tensor *w = n->in[1], *past = optional_in(n, 3);
    int64_t k, channels = 0;
    if (ingot_rank(X) != 3 || ingot_rank(w) != 3)
        return fault(n, "its input and weights have ranks %d and %d, not 3", ingot_rank(X),
                     ingot_rank(w));
    if (!ingot_dim_is_const(ingot_shape(w, 2), &k))
        return unsupported(n, "the size of its kernel is not known when compiling");
    if (!past) {
        ingot_dim *dims[] = {ingot_shape(X, 0), ingot_shape(X, 1), dim(n, k - 1)};
        past = ingot_expand(n->c, like(n, X, 0), 3, dims);
    }
    ingot_tensor *x = ingot_concat(n->c, 2, (ingot_tensor *[]){past, X}, 2);
    if (ingot_is_poison(x))
        return x;
    ingot_tensor *y =
        ingot_dim_is_const(ingot_shape(w, 0), &channels)
            ? ingot_conv(n->c, x, w, optional_in(n, 2), one, one, none, none, channels)
            : each_channel(n, x, w, optional_in(n, 2), k);
    ingot_dim *last = ingot_dim_sub(n->c, ingot_shape(x, 2), dim(n, k - 1));
    n->out[1] = ingot_slice(n->c, x, 2, last, dim(n, k - 1), 1);
    if (strcmp(activation, "none") == 0)
        return y;
    if (strcmp(activation, "silu") != 0 && strcmp(activation, "swish") != 0)
        return fault(n, "its activation '%s' is unknown", activation);
    ingot_tensor *wide = widen(n, y);
    return as(n, ingot_mul(n->c, wide, ingot_sigmoid(n->c, wide)), ingot_dtype_of(X));
}
