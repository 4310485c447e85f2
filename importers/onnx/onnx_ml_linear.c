/*
 * onnx_ml_linear.c - linear models (ai.onnx.ml): scores of rows, and labels of classes.
 *
 *     score = x w^T + b        [N, features] -> [N, classes]
 *
 * Scores are f32, whatever type the rows have. What post_transform makes of them is as ONNX Runtime
 * has it: one score that is all there is stays as it is.
 */
#include <math.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]

/* ---- scores and labels, of trees too --------------------------------------------------------- */

/* The inverse of the normal distribution by Winitzki's formula of the inverse of erf, with the
 * numbers of ONNX Runtime: probit(p) = sqrt(2) erfinv(2 p - 1), erfinv(x) = sign(x) sqrt(sqrt(v^2 -
 * l / a) - v), v = 2 / (pi a) + l / 2, l = log(1 - x^2), a = 0.147 */
static ingot_tensor *probit(Lowering *n, ingot_tensor *p)
{
    ingot_context *c = n->c;
    ingot_tensor *x = ingot_add_c(c, ingot_mul_c(c, p, 2), -1), *one = like(n, p, 1);
    ingot_tensor *l = ingot_log(c, ingot_mul(c, ingot_sub(c, one, x), ingot_add(c, one, x)));
    ingot_tensor *v = ingot_add_c(c, ingot_mul_c(c, l, 0.5), 2 / (3.14159 * 0.147));
    ingot_tensor *root = ingot_sub(c, ingot_mul(c, v, v), ingot_mul_c(c, l, 1 / 0.147));
    ingot_tensor *y = ingot_mul_c(c, ingot_sqrt(c, ingot_sub(c, ingot_sqrt(c, root), v)), sqrt(2));
    return ingot_where(c, ingot_lt(c, x, like(n, x, 0)), ingot_neg(c, y), y);
}

/* exp(y - most) / sum, where y is no zero; what is one takes no part in the sum, and as good as
 * stays: y exp(-most) / sum. ONNX Runtime counts as zero what is below 1e-7. */
static ingot_tensor *softmax_zero(Lowering *n, ingot_tensor *y)
{
    ingot_context *c = n->c;
    ingot_tensor *zero = ingot_le(c, ingot_abs(c, y), like(n, y, 1e-7));
    ingot_tensor *most = ingot_reduce(c, INGOT_REDUCE_MAX, y, 2u, true);
    ingot_tensor *e = ingot_exp(c, ingot_sub(c, y, most));
    ingot_tensor *sum = ingot_sum(c, ingot_where(c, zero, like(n, y, 0), e), 2u, true);
    ingot_tensor *small = ingot_mul(c, y, ingot_exp(c, ingot_neg(c, most)));
    ingot_tensor *share = ingot_div(c, ingot_where(c, zero, small, e), sum);
    return ingot_where(c, ingot_eq(c, y, like(n, y, 0)), y, share);
}

ingot_tensor *ml_transformed(Lowering *n, ingot_tensor *y, const char *how)
{
    if (strcmp(how, "PROBIT") == 0)
        return probit(n, y);
    if (strcmp(how, "NONE") == 0 || dim_is(ingot_shape(y, 1), 1))
        return y;
    if (strcmp(how, "LOGISTIC") == 0)
        return ingot_sigmoid(n->c, y);
    if (strcmp(how, "SOFTMAX") == 0)
        return ingot_softmax(n->c, y, 1);
    if (strcmp(how, "SOFTMAX_ZERO") == 0)
        return softmax_zero(n, y);
    return fault(n, "its post_transform is '%.50s'", how);
}

int ml_label_count(Lowering *n, const char *ints)
{
    const int64_t *list;
    const char *const *strings;
    int count = attr_ints(n, ints, &list);
    return count > 0 ? count : attr_strings(n, "classlabels_strings", &strings);
}

ingot_tensor *ml_labels(Lowering *n, const char *ints, ingot_tensor *which)
{
    const int64_t *list;
    const char *const *strings;
    int64_t size = attr_ints(n, ints, &list);
    which = as(n, which, INGOT_I64);
    if (size > 0)
        return ingot_take(n->c, const_i64(n, 1, &size, list), which, 0);
    size = attr_strings(n, "classlabels_strings", &strings);
    return size > 0 ? ingot_take(n->c, ingot_strings(n->c, 1, &size, strings), which, 0) : which;
}

/* ---- linear ---------------------------------------------------------------------------------- */

ingot_tensor *ml_rows(Lowering *n)
{
    int rank = ingot_rank(X);
    if (rank == 1 || rank == 2)
        return as(n, rank == 1 ? ingot_unsqueeze(n->c, X, 0) : X, INGOT_F32);
    fault(n, "its input has rank %d, not 1 or 2", rank);
    return NULL;
}

ingot_tensor *ml_matrix(Lowering *n, const char *name, int64_t rows, int64_t columns)
{
    const float *list;
    int64_t count = attr_floats(n, name, &list), known = rows < 0 ? columns : rows;
    if (count <= 0 || known <= 0 || count % known != 0 ||
        (rows > 0 && columns > 0 && count != rows * columns)) {
        fault(n, "its attribute '%s' has %lld entries, which are no %lld %s", name,
              (long long)(count < 0 ? 0 : count), (long long)known,
              rows < 0 ? "columns of rows" : "rows");
        return NULL;
    }
    int64_t dims[2] = {rows < 0 ? count / columns : rows, columns < 0 ? count / rows : columns};
    return ingot_data(n->c, NULL, INGOT_F32, 2, dims, list);
}

/* x w^T + b of `count` rows of coefficients; NULL after an error. */
static ingot_tensor *linear_scores(Lowering *n, int64_t count)
{
    ingot_tensor *x = ml_rows(n);
    int64_t features = -1;
    if (!x)
        return NULL;
    ingot_dim_is_const(ingot_shape(x, 1), &features);
    ingot_tensor *w = ml_matrix(n, "coefficients", count, features), *b = NULL;
    if (w && attr_has(n, "intercepts")) {
        b = ml_matrix(n, "intercepts", 1, count);
        if (!b)
            return NULL;
        b = ingot_squeeze(n->c, b, 0);
    }
    return w ? ingot_linear(n->c, x, w, b) : NULL;
}

ingot_tensor *onnx_linear_regressor(Lowering *n)
{
    ingot_tensor *y = linear_scores(n, attr_int(n, "targets", 1));
    return y ? ml_transformed(n, y, attr_string(n, "post_transform", "NONE")) : ingot_poison(n->c);
}

ingot_tensor *ml_second_class(Lowering *n, ingot_tensor *s, const char *how)
{
    bool logistic = strcmp(how, "LOGISTIC") == 0;
    ingot_tensor *pair[2] = {logistic ? ingot_neg(n->c, s) : ingot_sub(n->c, like(n, s, 1), s), s};
    return ml_transformed(n, ingot_concat(n->c, 2, pair, 1), logistic ? how : "NONE");
}

ingot_tensor *onnx_linear_classifier(Lowering *n)
{
    static const char ints[] = "classlabels_ints";
    const float *b;
    int classes = attr_floats(n, "intercepts", &b), labels = ml_label_count(n, ints);
    if (classes <= 0)
        return fault(n, "it has no intercepts, one for each class");
    if (labels > 0 && labels != classes && !(classes == 1 && labels == 2))
        return fault(n, "it has %d labels of %d classes", labels, classes);
    ingot_tensor *score = linear_scores(n, classes);
    if (!score)
        return ingot_poison(n->c);
    ingot_tensor *which = classes == 1
                              ? ingot_gt(n->c, ingot_squeeze(n->c, score, 1), like(n, score, 0))
                              : ingot_argmax(n->c, score, 1, false, false);
    const char *how = attr_string(n, "post_transform", "NONE");
    n->out[0] = ml_labels(n, ints, which);
    n->out[1] = classes == 1 && labels == 2 ? ml_second_class(n, score, how)
                                            : ml_transformed(n, score, how);
    return n->out[0];
}
