/* ops_attention.c - scaled dot-product attention and rotary position embedding. */
#include <math.h>

#include "ops.h"

/* Queries may have `per` times as many heads as keys (grouped-query attention): head h reads key
 * head h / per. As the heads of x [batch, heads, rows, columns] that read one key head: [batch,
 * kv_heads, per, rows, columns]. */
static ingot_tensor *grouped(ingot_context *c, const char *what, ingot_tensor *x, ingot_tensor *kv)
{
    int64_t heads, kv_heads;
    if (ingot_is_poison(x) || ingot_is_poison(kv))
        return ingot_poison(c);
    if (ingot_rank(x) != 4 || ingot_rank(kv) != 4)
        return ingot_error(c, INGOT_INVALID,
                           "%s: operands of rank %d and %d; both must be [batch, heads, ...]", what,
                           ingot_rank(x), ingot_rank(kv));
    if (ingot_dim_equal(ingot_shape(x, 1), ingot_shape(kv, 1)))
        return ingot_unsqueeze(c, x, 2);
    if (!ingot_dim_is_const(ingot_shape(x, 1), &heads) ||
        !ingot_dim_is_const(ingot_shape(kv, 1), &kv_heads))
        return ingot_error(c, INGOT_UNSUPPORTED,
                           "%s: the numbers of heads are not known when compiling", what);
    if (kv_heads < 1 || heads % kv_heads)
        return ingot_error(c, INGOT_INVALID,
                           "%s: %lld query heads are no multiple of %lld key heads", what,
                           (long long)heads, (long long)kv_heads);
    return ingot_reshape(c, x, 5,
                         (ingot_dim *[]){ingot_shape(x, 0), ingot_dim_const(c, kv_heads),
                                         ingot_dim_const(c, heads / kv_heads), ingot_shape(x, 2),
                                         ingot_shape(x, 3)});
}

/* [batch, kv_heads, per, rows, columns] -> [batch, heads, rows, columns] */
static ingot_tensor *ungrouped(ingot_context *c, ingot_tensor *x)
{
    return ingot_is_poison(x) ? x : ingot_flatten(c, x, 1, 3);
}

ingot_tensor *ingot_attention_scores(ingot_context *c, ingot_tensor *q, ingot_tensor *k,
                                     double scale)
{
    k = ops_dequantised(c, k);
    if (ops_shares_keys(c, q, k)) /* stored so: units read it as it lies */
        q = ops_stored(c, q, ingot_dtype_of(k));
    q = grouped(c, "attention", ops_widen(c, q), k);
    if (ingot_is_poison(q))
        return q;
    k = ingot_unsqueeze(c, ingot_transpose(c, ops_widen(c, k), 2, 3),
                        2); /* [batch, kv_heads, 1, size, t] */
    return ungrouped(
        c, ingot_mul_c(c, ingot_matmul(c, q, k), scale)); /* an operand's copy would cost more */
}

/* Are there enough rows for a unit that multiplies numbers as narrow as the values are?  It takes
 * shares that are rounded to them. */
static bool rounds_shares(ingot_context *c, ingot_tensor *p, ingot_tensor *v)
{
    enum { LEAST = 16 };
    if (!ingot_one_product(c) || ingot_is_poison(p) || ingot_is_poison(v) || ingot_rank(p) != 4)
        return false;
    const ingot_dtype d = ingot_dtype_of(v);
    return ops_shares_keys(c, p, v) ||
           ((d == INGOT_F16 || d == INGOT_BF16) && ingot_dim_hi(ingot_shape(p, 2)) >= LEAST &&
            ingot_dim_hi(ingot_shape(p, 3)) >= LEAST);
}

ingot_tensor *ingot_attention_values(ingot_context *c, ingot_tensor *p, ingot_tensor *v)
{
    v = ops_dequantised(c, v);
    const ingot_dtype d = ingot_is_poison(p) ? INGOT_F32 : ingot_dtype_of(p);
    if (rounds_shares(c, p, v))
        p = ingot_cast(c, p, ingot_dtype_of(v));
    p = grouped(c, "attention", p, v);
    if (ingot_is_poison(p))
        return p;
    v = ingot_unsqueeze(c, ingot_cast(c, v, ingot_dtype_of(p)), 2);
    return ungrouped(c, ingot_cast(c, ingot_matmul(c, p, v), d));
}

ingot_tensor *ingot_band(ingot_context *c, ingot_dim *s, ingot_dim *t, ingot_tensor *first,
                         int64_t left, int64_t right)
{
    ingot_dim *dims[2] = {s, t};
    ingot_tensor *at = ingot_add(c, ingot_iota(c, 2, dims, 0), first),
                 *column = ingot_iota(c, 2, dims, 1);
    ingot_tensor *before =
        ingot_le(c, ingot_sub(c, at, column), ingot_scalar_i(c, INGOT_I64, left));
    ingot_tensor *after =
        ingot_le(c, ingot_sub(c, column, at), ingot_scalar_i(c, INGOT_I64, right));
    return left < 0 ? after : right < 0 ? before : ingot_and(c, before, after);
}

/* softmax(q k^T scale + mask) v (Vaswani et al., 2017) */
ingot_tensor *ingot_attention(ingot_context *c, ingot_tensor *q, ingot_tensor *k, ingot_tensor *v,
                              ingot_tensor *mask, double scale, bool causal)
{
    int64_t size;
    if (ingot_is_poison(q) || ingot_is_poison(k) || (mask && ingot_is_poison(mask)))
        return ingot_poison(c);
    if (scale == 0 && (ingot_rank(q) != 4 || !ingot_dim_is_const(ingot_shape(q, 3), &size)))
        return ingot_error(c, INGOT_INVALID,
                           "attention: q must be [batch, heads, length, size], size a constant");
    ingot_tensor *score =
        ingot_attention_scores(c, q, k, scale != 0 ? scale : 1 / sqrt((double)size));
    if (ingot_is_poison(score))
        return score;
    ingot_tensor *never = ingot_like(c, score, -INFINITY);
    if (mask && ingot_dtype_of(mask) == INGOT_BOOL)
        score = ingot_where(c, mask, score, never);
    else if (mask)
        score = ingot_add(c, score, ingot_cast(c, mask, ingot_dtype_of(score)));
    if (causal) { /* the last query is at the last key */
        ingot_dim *s = ingot_shape(q, 2), *t = ingot_shape(k, 2);
        ingot_tensor *seen = ingot_band(c, s, t, ingot_from_dim(c, ingot_dim_sub(c, t, s)), -1, 0);
        score = ingot_where(c, seen, score, never);
    }
    ingot_tensor *p =
        mask || causal ? ingot_softmax_or_zero(c, score, -1) : ingot_softmax(c, score, -1);
    return ingot_cast(c, ingot_attention_values(c, p, v), ingot_dtype_of(q));
}

/* Pairs (x1, x2) of the last axis are turned by an angle: (x1 cos - x2 sin, x2 cos + x1 sin) (Su et
 * al., 2021).  cos, sin [..., R/2] broadcast; pairs are (i, i + R/2), or (2i, 2i + 1) if
 * interleaved; elements from R on are left alone. */
/* Halves of all of x, turned, where a kernel begins late and computes at ease (GPUs): each element
 * of both by one expression, so that a kernel writes them, or whoever reads them makes them.
 *
 *     x [.., 2, half]:   x cos + (-x[.., 1, :] sin, x[.., 0, :] sin) */
static ingot_tensor *turned_halves(ingot_context *c, ingot_tensor *x, ingot_tensor *cos,
                                   ingot_tensor *sin, int64_t half)
{
    const int rank = ingot_rank(x);
    ingot_dim *dims[INGOT_MAX_RANK], *one = ingot_dim_const(c, 1);
    for (int i = 0; i + 1 < rank; i++)
        dims[i] = ingot_shape(x, i);
    dims[rank - 1] = ingot_dim_const(c, 2);
    dims[rank] = ingot_dim_const(c, half);
    ingot_tensor *pair = ingot_reshape(c, x, rank + 1, dims), *angle[2] = {cos, sin};
    for (int k = 0; k < 2; k++) {
        ingot_dim *at[INGOT_MAX_RANK];
        const int n = ingot_rank(angle[k]);
        for (int i = 0; i + 1 < n; i++)
            at[i] = ingot_shape(angle[k], i);
        at[n - 1] = one;
        at[n] = ingot_shape(angle[k], n - 1);
        angle[k] = ingot_reshape(c, angle[k], n + 1, at);
    }
    ingot_tensor *other = ingot_flip(c, pair, 1u << (rank - 1));
    other = ingot_mul(c, other, angle[1]);
    ingot_tensor *first = ingot_iota(c, 2, dims + rank - 1, 0);
    first = ingot_eq(c, first, ingot_scalar_i(c, ingot_dtype_of(first), 0));
    other = ingot_where(c, first, ingot_neg(c, other), other);
    x = ingot_add(c, ingot_mul(c, pair, angle[0]), other);
    return ingot_flatten(c, x, rank - 1, rank + 1);
}

ingot_tensor *ingot_rotary(ingot_context *c, ingot_tensor *x, ingot_tensor *cos, ingot_tensor *sin,
                           bool interleaved)
{
    int64_t half;
    if (ingot_is_poison(x) || ingot_is_poison(cos) || ingot_is_poison(sin))
        return ingot_poison(c);
    int last = ingot_rank(x) - 1;
    if (last < 0 || ingot_rank(cos) < 1 ||
        !ingot_dim_is_const(ingot_shape(cos, ingot_rank(cos) - 1), &half) ||
        2 * half > ingot_dim_hi(ingot_shape(x, last)))
        return ingot_error(c, INGOT_INVALID,
                           "rotary: the last dim of cos must be a constant, at most half of x's");
    ingot_dtype d = ingot_dtype_of(x);
    ingot_dim *n = ingot_dim_const(c, half);
    ingot_tensor *wide = ops_widen(c, x), *part[3];
    cos = ingot_cast(c, cos, ingot_dtype_of(wide));
    sin = ingot_cast(c, sin, ingot_dtype_of(wide));
    int64_t all;
    if (ingot_one_product(c) && !interleaved && last + 2 <= INGOT_MAX_RANK &&
        ingot_dim_is_const(ingot_shape(x, last), &all) && all == 2 * half)
        return ingot_cast(c, turned_halves(c, wide, cos, sin, half), d);
    int64_t step = interleaved ? 2 : 1, second = interleaved ? 1 : half;
    ingot_tensor *a = ingot_slice(c, wide, last, ingot_dim_const(c, 0), n, step);
    ingot_tensor *b = ingot_slice(c, wide, last, ingot_dim_const(c, second), n, step);
    part[0] = ingot_sub(c, ingot_mul(c, a, cos), ingot_mul(c, b, sin));
    part[1] = ingot_add(c, ingot_mul(c, b, cos), ingot_mul(c, a, sin));
    ingot_tensor *turned;
    if (interleaved) {
        turned = ingot_stack(c, 2, part, last + 1);
        if (ingot_is_poison(turned))
            return turned;
        turned = ingot_flatten(c, turned, last, last + 2);
    } else {
        turned = ingot_concat(c, 2, part, last);
    }
    ingot_dim *both = ingot_dim_const(c, 2 * half),
              *rest = ingot_dim_sub(c, ingot_shape(x, last), both);
    if (!ingot_require(c, ingot_shape(x, last), both, ingot_shape(x, last),
                       "the size that is turned"))
        return ingot_poison(c);
    if (ingot_dim_hi(rest) > 0) {
        part[0] = turned;
        part[1] = ingot_slice(c, wide, last, both, rest, 1);
        turned = ingot_concat(c, 2, part, last);
    }
    return ingot_cast(c, turned, d);
}
