/* ops_linalg.c - matrix products, as a broadcast multiplication and a sum over the last axis:
 *
 *     a [..., M, 1, K] * b^T [..., 1, N, K]  ->  sum over K  ->  [..., M, N]
 *
 * The scheduler recognises contractions by the axes that each factor uses, so nothing is lost by
 * writing it so.  Narrow floats are multiplied and summed in f32 and rounded once. */
#include "ops.h"

/* sum(a * b) over the last axis in the wide dtype, rounded to d. */
static ingot_tensor *dot_last(ingot_context *c, ingot_tensor *a, ingot_tensor *b, ingot_dtype d)
{
    Products p = {.x = {a}, .w = {b}, .n = 1};
    ingot_tensor *by_blocks = d == INGOT_F32 ? ops_block_product(c, a, b) : NULL;
    if (by_blocks)
        return by_blocks;
    ingot_tensor *product = NULL;
    if (!ingot_is_poison(a) && !ingot_is_poison(b) && !ops_f8_product(c, a, b, &p) &&
        !ops_few_rows(c, a, b))
        p = ops_precision(c, a, ingot_rank(a) - 1, b, ingot_rank(b) - 1);
    for (int i = 0; i < p.n; i++)
        product = ops_products(c, product, p.x[i], p.w[i]);
    if (ingot_is_poison(product))
        return product;
    return ingot_cast(c, ingot_sum(c, product, 1u << (ingot_rank(product) - 1), false), d);
}

ingot_tensor *ingot_matmul(ingot_context *c, ingot_tensor *a, ingot_tensor *b)
{
    if (ingot_is_poison(a) || ingot_is_poison(b))
        return ingot_poison(c);
    int ra = ingot_rank(a), rb = ingot_rank(b);
    if (ra == 0 || rb == 0 || ra >= INGOT_MAX_RANK || rb >= INGOT_MAX_RANK)
        return ingot_error(c, INGOT_INVALID, "matmul: operands of rank %d and %d", ra, rb);
    if (ingot_dtype_of(a) != ingot_dtype_of(b))
        return ingot_error(c, INGOT_INVALID, "matmul: operands are %s and %s; cast one",
                           ingot_dtype_name(ingot_dtype_of(a)),
                           ingot_dtype_name(ingot_dtype_of(b)));
    ingot_dim *k = ingot_shape(a, ra - 1), *l = ingot_shape(b, rb > 1 ? rb - 2 : 0);
    if (!ingot_dim_equal(k, l)) {
        static const char what[] = "the size of its second operand's inner axis";
        if (ingot_dim_is_const(k, NULL) && ingot_dim_is_const(l, NULL))
            return ingot_error(
                c, INGOT_INVALID,
                "matmul: the last dim of the first operand is %lld, the second's last "
                "but one is %lld; they must be equal",
                (long long)ingot_dim_lo(k), (long long)ingot_dim_lo(l));
        ingot_dim *both = ingot_require_equal(c, l, k, what); /* 1 is not stretched here */
        a = ingot_require_size(c, a, ra - 1, both, what);
        b = ingot_require_size(c, b, rb > 1 ? rb - 2 : 0, both, what);
        if (ingot_is_poison(a) || ingot_is_poison(b))
            return ingot_poison(c);
    }
    LowRank sum;
    if (ops_low_rank(c, b, &sum))
        return ingot_add(c, ingot_matmul(c, a, sum.w),
                         ingot_matmul(c, ingot_matmul(c, a, sum.p), sum.q));
    ingot_tensor *left = ra > 1 ? ingot_unsqueeze(c, a, ra - 1) : a; /* [.., M, 1, K] or [K] */
    ingot_tensor *right = b;
    if (rb > 1) { /* [.., 1, N, K]; with a vector on the left there is no M */
        right = ingot_transpose(c, b, rb - 2, rb - 1);
        if (ra > 1)
            right = ingot_unsqueeze(c, right, rb - 2);
    } else if (ra > 1) {
        left = a;
    }
    return dot_last(c, left, right, ingot_dtype_of(a));
}

ingot_tensor *ingot_linear(ingot_context *c, ingot_tensor *x, ingot_tensor *w, ingot_tensor *b)
{
    if (ingot_is_poison(x) || ingot_is_poison(w) || (b && ingot_is_poison(b)))
        return ingot_poison(c);
    if (ingot_rank(w) != 2 || ingot_rank(x) == 0)
        return ingot_error(
            c, INGOT_INVALID,
            "linear: x has rank %d, w has rank %d; w must be [out, in] and x [..., in]",
            ingot_rank(x), ingot_rank(w));
    ingot_tensor *y = ingot_matmul(c, x, ingot_transpose(c, w, 0, 1));
    return b ? ingot_add(c, y, b) : y;
}

/* alpha a b + beta d with optional transposes (ONNX Gemm); d may be NULL. */
ingot_tensor *ingot_gemm(ingot_context *c, ingot_tensor *a, ingot_tensor *b, ingot_tensor *d,
                         double alpha, double beta, bool trans_a, bool trans_b)
{
    if (ingot_is_poison(a) || ingot_is_poison(b) || (d && ingot_is_poison(d)))
        return ingot_poison(c);
    if (ingot_rank(a) != 2 || ingot_rank(b) != 2)
        return ingot_error(c, INGOT_INVALID,
                           "gemm: operands of rank %d and %d; both must be matrices", ingot_rank(a),
                           ingot_rank(b));
    ingot_tensor *y = ingot_matmul(c, trans_a ? ingot_transpose(c, a, 0, 1) : a,
                                   trans_b ? ingot_transpose(c, b, 0, 1) : b);
    y = ingot_mul_c(c, y, alpha);
    return d && beta != 0 ? ingot_add(c, y, ingot_mul_c(c, d, beta)) : y;
}
