/*
 * onnx_ml_linear.c - linear models and support vector machines (ai.onnx.ml): scores of rows, and labels of classes.
 *
 *     linear   score = x w^T + b                                  [N, features] -> [N, classes]
 *     SVM      y = sum over vectors v of weight[v] K(x, v) + rho  [N, features] -> [N, 1]
 *              K = x.v, (gamma x.v + coef0)^degree, tanh(gamma x.v + coef0) or exp(-gamma |x - v|^2)
 *
 * Scores are f32, whatever type the rows have. What post_transform makes of them is as ONNX Runtime has it: one
 * score that is all there is stays as it is.
 */
#include <math.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]

/* ---- scores and labels, of trees too --------------------------------------------------------- */

ingot_tensor *ml_transformed(Lowering *n, ingot_tensor *y, const char *how)
{
    if (strcmp(how, "PROBIT") == 0)
        return unsupported(n, "its post_transform is PROBIT; NONE, LOGISTIC, SOFTMAX and "
                              "SOFTMAX_ZERO are supported");
    if (strcmp(how, "NONE") == 0 || dim_is(ingot_shape(y, 1), 1))
        return y;
    if (strcmp(how, "LOGISTIC") == 0)
        return ingot_sigmoid(n->c, y);
    if (strcmp(how, "SOFTMAX") == 0)
        return ingot_softmax(n->c, y, 1);
    if (strcmp(how, "SOFTMAX_ZERO") == 0) { /* zeros take no part and stay */
        ingot_tensor *zero = ingot_eq(n->c, y, like(n, y, 0));
        ingot_tensor *soft =
            ingot_softmax(n->c, ingot_where(n->c, zero, like(n, y, -INFINITY), y), 1);
        return ingot_where(n->c, zero, y, soft);
    }
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

/* Rows of f32: a vector is one row. NULL after an error. */
static ingot_tensor *rows_of_features(Lowering *n)
{
    int rank = ingot_rank(X);
    if (rank == 1 || rank == 2)
        return as(n, rank == 1 ? ingot_unsqueeze(n->c, X, 0) : X, INGOT_F32);
    fault(n, "its input has rank %d, not 1 or 2", rank);
    return NULL;
}

/* A list attribute as [rows, columns]; one of the two may be -1, and follows. NULL after an error. */
static ingot_tensor *float_matrix(Lowering *n, const char *name, int64_t rows, int64_t columns)
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
    ingot_tensor *x = rows_of_features(n);
    int64_t features = -1;
    if (!x)
        return NULL;
    ingot_dim_is_const(ingot_shape(x, 1), &features);
    ingot_tensor *w = float_matrix(n, "coefficients", count, features), *b = NULL;
    if (w && attr_has(n, "intercepts")) {
        b = float_matrix(n, "intercepts", 1, count);
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

/* One score of two classes: [1 - s, s], or the logistic function of [-s, s]. */
static ingot_tensor *second_class(Lowering *n, ingot_tensor *s, const char *how)
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
    n->out[1] =
        classes == 1 && labels == 2 ? second_class(n, score, how) : ml_transformed(n, score, how);
    return n->out[0];
}

/* ---- support vectors -------------------------------------------------------------------------- */

/* K of rows x [N, features] and vectors v [M, features]: [N, M]. */
static ingot_tensor *kernel_of(Lowering *n, ingot_tensor *x, ingot_tensor *v)
{
    const char *kind = attr_string(n, "kernel_type", "LINEAR");
    const float *p;
    int count = attr_floats(n, "kernel_params", &p);
    double gamma = count > 0 ? (double)p[0] : 0, coef = count > 1 ? (double)p[1] : 0,
           degree = count > 2 ? (double)p[2] : 0;
    if (strcmp(kind, "RBF") == 0) {
        ingot_tensor *d = ingot_sub(n->c, ingot_unsqueeze(n->c, x, 1), ingot_unsqueeze(n->c, v, 0));
        ingot_tensor *square = ingot_sum(n->c, ingot_mul(n->c, d, d), 1u << 2, false);
        return ingot_exp(n->c, ingot_mul_c(n->c, square, -gamma));
    }
    ingot_tensor *dot = ingot_linear(n->c, x, v, NULL);
    if (strcmp(kind, "LINEAR") == 0)
        return dot;
    dot = ingot_add_c(n->c, ingot_mul_c(n->c, dot, gamma), coef);
    if (strcmp(kind, "SIGMOID") == 0)
        return ingot_tanh(n->c, dot);
    if (strcmp(kind, "POLY") == 0)
        return ingot_pow(n->c, dot, like(n, dot, degree));
    return fault(n, "its kernel_type is '%.50s', not LINEAR, POLY, RBF or SIGMOID", kind);
}

/* Without support vectors its coefficients are those of a linear function. */
ingot_tensor *onnx_svm_regressor(Lowering *n)
{
    int64_t count = attr_int(n, "n_supports", 0), features = -1;
    ingot_tensor *x = rows_of_features(n), *y;
    const float *rho;
    if (!x)
        return ingot_poison(n->c);
    ingot_dim_is_const(ingot_shape(x, 1), &features);
    ingot_tensor *w = float_matrix(n, "coefficients", 1, count > 0 ? count : features);
    if (w && count > 0) {
        ingot_tensor *v = float_matrix(n, "support_vectors", count, features);
        x = v ? kernel_of(n, x, v) : NULL;
    }
    if (!w || !x || n->failed)
        return ingot_poison(n->c);
    if (attr_floats(n, "rho", &rho) < 1)
        return fault(n, "it has no rho");
    y = ingot_add_c(n->c, ingot_linear(n->c, x, w, NULL), (double)rho[0]);
    if (attr_int(n, "one_class", 0))
        return ingot_where(n->c, ingot_gt(n->c, y, like(n, y, 0)), like(n, y, 1), like(n, y, -1));
    return ml_transformed(n, y, attr_string(n, "post_transform", "NONE"));
}
