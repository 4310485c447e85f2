/* ops_attention.c - scaled dot-product attention and rotary position embedding. */
#include <math.h>

#include "ops.h"

/* softmax(q k^T scale + mask) v (Vaswani et al., 2017), for [batch, heads, length, size].  Queries
 * may have G times as many heads as keys (grouped-query attention): head h reads key head h / G. */
ingot_tensor *ingot_attention(ingot_context *c, ingot_tensor *q, ingot_tensor *k, ingot_tensor *v,
                              ingot_tensor *mask, double scale, bool causal)
{
    int64_t heads, kv_heads, size;
    if (ingot_is_poison(q) || ingot_is_poison(k) || ingot_is_poison(v) || (mask && ingot_is_poison(mask)))
        return ingot_poison(c);
    if (ingot_rank(q) != 4 || ingot_rank(k) != 4 || ingot_rank(v) != 4)
        return ingot_error(c, INGOT_INVALID, "attention: q, k, v must be [batch, heads, length, size]");
    if (!ingot_dim_is_const(ingot_shape(q, 1), &heads) ||
        !ingot_dim_is_const(ingot_shape(k, 1), &kv_heads) ||
        !ingot_dim_is_const(ingot_shape(q, 3), &size) || kv_heads < 1 || heads % kv_heads)
        return ingot_error(c, INGOT_INVALID,
                           "attention: heads and their size must be constants, and the heads of q a "
                           "multiple of those of k");
    ingot_dtype d = ingot_dtype_of(q);
    ingot_dim *batch = ingot_shape(q, 0), *s = ingot_shape(q, 2), *t = ingot_shape(k, 2);
    ingot_dim *groups = ingot_dim_const(c, kv_heads), *per = ingot_dim_const(c, heads / kv_heads);
    q = ingot_mul_c(c, ops_widen(c, q), scale != 0 ? scale : 1 / sqrt((double)size));
    q = ingot_reshape(c, q, 5, (ingot_dim *[]){batch, groups, per, s, ingot_shape(q, 3)});
    k = ingot_unsqueeze(c, ingot_transpose(c, ops_widen(c, k), 2, 3), 2); /* [b, g, 1, size, t] */
    v = ingot_unsqueeze(c, ops_widen(c, v), 2);
    ingot_tensor *score = ingot_matmul(c, q, k); /* [b, g, per, s, t] */
    ingot_dim *shape[4] = {batch, ingot_dim_const(c, heads), s, t};
    score = ingot_reshape(c, score, 4, shape);
    if (ingot_is_poison(score))
        return score;
    ingot_tensor *never = ingot_like(c, score, -INFINITY);
    if (mask && ingot_dtype_of(mask) == INGOT_BOOL)
        score = ingot_where(c, mask, score, never);
    else if (mask)
        score = ingot_add(c, score, ingot_cast(c, mask, ingot_dtype_of(score)));
    if (causal) { /* the last query is at the last key */
        ingot_dim *st[2] = {s, t};
        ingot_tensor *row = ingot_add(c, ingot_iota(c, 2, st, 0),
                                      ingot_from_dim(c, ingot_dim_sub(c, t, s)));
        score = ingot_where(c, ingot_le(c, ingot_iota(c, 2, st, 1), row), score, never);
    }
    ingot_tensor *p = ingot_softmax(c, score, -1);
    p = ingot_reshape(c, p, 5, (ingot_dim *[]){batch, groups, per, s, t});
    ingot_tensor *y = ingot_matmul(c, p, v); /* [b, g, per, s, size of v] */
    if (ingot_is_poison(y))
        return y;
    shape[3] = ingot_shape(v, 4);
    return ingot_cast(c, ingot_reshape(c, y, 4, shape), d);
}

/* Pairs (x1, x2) of the last axis are turned by an angle: (x1 cos - x2 sin, x2 cos + x1 sin) (Su et
 * al., 2021).  cos, sin [..., R/2] broadcast; pairs are (i, i + R/2), or (2i, 2i + 1) if interleaved;
 * elements from R on are left alone. */
ingot_tensor *ingot_rotary(ingot_context *c, ingot_tensor *x, ingot_tensor *cos, ingot_tensor *sin,
                           bool interleaved)
{
    int64_t half, size;
    if (ingot_is_poison(x) || ingot_is_poison(cos) || ingot_is_poison(sin))
        return ingot_poison(c);
    int last = ingot_rank(x) - 1;
    if (last < 0 || ingot_rank(cos) < 1 || !ingot_dim_is_const(ingot_shape(x, last), &size) ||
        !ingot_dim_is_const(ingot_shape(cos, ingot_rank(cos) - 1), &half) || 2 * half > size)
        return ingot_error(c, INGOT_INVALID,
                           "rotary: the last dim of cos must be a constant, at most half of x's");
    ingot_dtype d = ingot_dtype_of(x);
    ingot_dim *n = ingot_dim_const(c, half);
    ingot_tensor *wide = ops_widen(c, x), *part[3];
    cos = ingot_cast(c, cos, ingot_dtype_of(wide));
    sin = ingot_cast(c, sin, ingot_dtype_of(wide));
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
    if (2 * half < size) {
        part[0] = turned;
        part[1] = ingot_slice(c, wide, last, ingot_dim_const(c, 2 * half),
                              ingot_dim_const(c, size - 2 * half), 1);
        turned = ingot_concat(c, 2, part, last);
    }
    return ingot_cast(c, turned, d);
}
