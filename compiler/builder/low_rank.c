/* low_rank.c - weights with a correction of low rank: w + p q (Hu et al., "LoRA: Low-Rank
 * Adaptation of Large Language Models", arXiv:2106.09685).
 *
 *     w [m, n..]    p [m, r]    q [r, n..]
 *
 * As a tensor it is that sum, for whoever reads it. Products with it never make the sum:
 *
 *     x (w + p q)         = x w + (x p) q                                     x [.., m]
 *     conv(x, w + p q)    = conv(x, w) + conv(conv(x, q), p of one tap)       w [M, C, taps..]
 *
 * which are r (m + n) multiplications a row beside m n, not the m n r of p q; and the gradients of
 * p and q are sums of r m and r n results. That of w, m n results, is not made where nobody wants
 * it.
 *
 * The rule is the builder's, and no rewrite, because gradients are made of the graph as it is
 * built. */
#include "builder.h"
#include "ingot_train.h"
#include "ops.h"

ingot_tensor *ingot_low_rank(ingot_context *c, ingot_tensor *w, ingot_tensor *p, ingot_tensor *q)
{
    if (poisoned(w) || poisoned(p) || poisoned(q))
        return c->poison;
    bool fits = w->rank >= 2 && p->rank == 2 && q->rank == w->rank && p->dtype == w->dtype &&
                q->dtype == w->dtype && p->shape[0] == w->shape[0] && p->shape[1] == q->shape[0];
    for (int a = 1; fits && a < w->rank; a++)
        fits = w->shape[a] == q->shape[a];
    if (!fits)
        return ingot_error(c, INGOT_INVALID,
                           "low_rank: a correction of %s by %s and %s; wanted, of one type: "
                           "[m, n..] by [m, r] and [r, n..]",
                           shape_text(c, w->rank, w->shape), shape_text(c, p->rank, p->shape),
                           shape_text(c, q->rank, q->shape));
    Node *flat = q->rank > 2 ? ingot_flatten(c, q, 1, q->rank) : q;
    Node *sum = ingot_add(c, w, ops_reshape_like(c, ingot_matmul(c, p, flat), w));
    LowRank *l = NEW(c->arena, LowRank);
    *l = (LowRank){w, p, q};
    map_put(&c->low_rank, (uint64_t)sum->id + 1, l);
    return sum;
}

bool ops_low_rank(ingot_context *c, ingot_tensor *w, LowRank *out)
{
    const bool turned = w->op == OP_PERMUTE && w->rank == 2;
    const LowRank *l = map_get(&c->low_rank, (uint64_t)(turned ? w->src[0] : w)->id + 1);
    if (!l)
        return false;
    *out = *l;
    if (turned) { /* (w + p q)^T = w^T + q^T p^T */
        out->w = ingot_transpose(c, l->w, 0, 1);
        out->p = ingot_transpose(c, l->q, 0, 1);
        out->q = ingot_transpose(c, l->p, 0, 1);
    }
    return true;
}

ingot_tensor *ops_low_rank_conv(ingot_context *c, ingot_tensor *x, const LowRank *l,
                                ingot_tensor *b, const int64_t *strides, const int64_t *dilations,
                                const int64_t *pads_lo, const int64_t *pads_hi)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    for (int a = 0; a < l->q->rank; a++)
        dims[a] = a < 2 ? l->p->shape[a] : ingot_dim_const(c, 1);
    ingot_tensor *p = ingot_reshape(c, l->p, l->q->rank, dims);
    ingot_tensor *y = ingot_conv(c, x, l->w, b, strides, dilations, pads_lo, pads_hi, 1);
    ingot_tensor *inner = ingot_conv(c, x, l->q, NULL, strides, dilations, pads_lo, pads_hi, 1);
    return ingot_add(c, y, ingot_conv(c, inner, p, NULL, NULL, NULL, NULL, NULL, 1));
}
