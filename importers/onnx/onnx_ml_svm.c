/*
 * onnx_ml_svm.c - support vector machines (ai.onnx.ml), of which libsvm's numbers are the
 * attributes.
 *
 *     K(x, v)      x.v, (gamma x.v + coef0)^degree, tanh(gamma x.v + coef0) or exp(-gamma |x -
 *                  v|^2)
 *     regression   y = sum over vectors v of weight[v] K(x, v) + rho             [N, features]
 *         -> [N, 1]
 *     classes      s(i, j) = sum over the vectors v of class i of weight[j - 1][v] K(x, v)
 *                          + sum over those of class j of weight[i][v] K(x, v) + rho(i, j),    i <
 *                              j
 *                  is a vote for i where it is above 0, else for j; most votes win, the first class
 *                      of several.
 *
 * The scores are those of the pairs, or probabilities of the classes if the file has what makes
 * them (prob_a, prob_b): a logistic function gives r(i, j), the probability of i among i and j;
 * those of the classes are the p that
 *
 *     minimises  sum over i < j of (r(j, i) p(i) - r(i, j) p(j))^2  where  sum of p = 1
 *
 * found class after class, again and again, until it changes little (Wu, Lin, Weng, "Probability
 * estimates for multi-class classification by pairwise coupling", JMLR 2004, algorithm 2; libsvm's
 * multiclass_probability). It stops early, as ONNX Runtime does: its results are off by up to a
 * thousandth, so another way to the minimum would differ from them.
 */
#include <string.h>

#include "onnx.h"

#define X n->in[0]

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

/* ---- regression ------------------------------------------------------------------------------ */

/* Without support vectors its coefficients are those of a linear function. */
ingot_tensor *onnx_svm_regressor(Lowering *n)
{
    int64_t count = attr_int(n, "n_supports", 0), features = -1;
    ingot_tensor *x = ml_rows(n), *y;
    const float *rho;
    if (!x)
        return ingot_poison(n->c);
    ingot_dim_is_const(ingot_shape(x, 1), &features);
    ingot_tensor *w = ml_matrix(n, "coefficients", 1, count > 0 ? count : features);
    if (w && count > 0) {
        ingot_tensor *v = ml_matrix(n, "support_vectors", count, features);
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

/* ---- classes --------------------------------------------------------------------------------- */

typedef struct {
    int64_t classes, pairs, vectors; /* vectors: 0 of a linear function */
    const int64_t *of_class;         /* how many vectors are of each class */
    const float *rho, *prob_a, *prob_b;
    int n_rho;
} SvmModel;

static bool machine_read(Lowering *n, SvmModel *m)
{
    const float *w;
    *m = (SvmModel){.classes = ml_label_count(n, "classlabels_ints")};
    int counts = attr_ints(n, "vectors_per_class", &m->of_class),
        n_a = attr_floats(n, "prob_a", &m->prob_a), n_b = attr_floats(n, "prob_b", &m->prob_b);
    m->pairs = m->classes * (m->classes - 1) / 2;
    m->n_rho = attr_floats(n, "rho", &m->rho);
    if (n->failed)
        return false;
    if (m->classes < 1)
        return fault(n, "it has no labels of classes"), false;
    for (int i = 0; i < counts; i++) {
        if (m->of_class[i] < 0 || m->of_class[i] > INT32_MAX)
            return fault(n, "its attribute 'vectors_per_class' has the entry %lld",
                         (long long)m->of_class[i]),
                   false;
        m->vectors += m->of_class[i];
        if (m->vectors > INT32_MAX)
            return fault(n,
                         "its attribute 'vectors_per_class' counts more vectors than a file holds"),
                   false;
    }
    if (m->vectors && (counts != m->classes || m->classes < 2))
        return fault(n, "its vectors are of %d classes, it has labels of %lld%s", counts,
                     (long long)m->classes, m->classes < 2 ? "; two are the least" : ""),
               false;
    if (m->n_rho < (m->vectors ? m->pairs : 1))
        return fault(n, "it has %d entries of rho, which need %lld", m->n_rho < 0 ? 0 : m->n_rho,
                     (long long)(m->vectors ? m->pairs : 1)),
               false;
    if (m->vectors && (n_a > 0 || n_b > 0) && (n_a < m->pairs || n_b < m->pairs))
        return fault(n,
                     "it has %d entries of prob_a and %d of prob_b, not %lld, one for each pair "
                     "of classes",
                     n_a < 0 ? 0 : n_a, n_b < 0 ? 0 : n_b, (long long)m->pairs),
               false;
    if (n_a <= 0)
        m->prob_a = NULL;
    int64_t weights = attr_floats(n, "coefficients", &w), most = m->vectors * (m->classes - 1);
    if (m->vectors && weights != most)
        return fault(n,
                     "its attribute 'coefficients' has %lld entries, not %lld: a row of its "
                     "%lld vectors for each class but one",
                     (long long)(weights < 0 ? 0 : weights), (long long)most,
                     (long long)m->vectors),
               false;
    return true;
}

/* A list of `count` floats that exists in the file. */
static ingot_tensor *floats_1d(Lowering *n, const float *v, int64_t count)
{
    return ingot_data(n->c, NULL, INGOT_F32, 1, &count, v);
}

/* For all pairs i < j in order: which of the two is `first`, by f(i, j). */
typedef int64_t PairFn(int64_t i, int64_t j, int64_t classes);

static ingot_tensor *of_pairs(Lowering *n, const SvmModel *m, PairFn *fn)
{
    int64_t *list = ingot_alloc(n->c, ((size_t)m->pairs + 1) * sizeof *list), e = 0;
    for (int64_t i = 0; i < m->classes; i++)
        for (int64_t j = i + 1; j < m->classes; j++)
            list[e++] = fn(i, j, m->classes);
    return const_i64(n, 1, &m->pairs, list);
}

/* Where sums (below) has what the vectors of i, or of j, say of the pair. */
static int64_t said_by_first(int64_t i, int64_t j, int64_t classes)
{
    return i * (classes - 1) + j - 1;
}

static int64_t said_by_second(int64_t i, int64_t j, int64_t classes)
{
    return j * (classes - 1) + i;
}

/* [N, pairs] out of K(x, v) [N, vectors]: of each class the sums of its vectors with each row of
 * weights, then those two of each pair. */
static ingot_tensor *pair_scores(Lowering *n, const SvmModel *m, ingot_tensor *k)
{
    ingot_context *c = n->c;
    int64_t rows = m->classes - 1, at = 0;
    const float *w;
    ingot_tensor **sums = ingot_alloc(c, (size_t)m->classes * sizeof *sums);
    attr_floats(n, "coefficients", &w);
    ingot_tensor *weight = ingot_data(c, NULL, INGOT_F32, 2, (int64_t[2]){rows, m->vectors}, w);
    for (int64_t i = 0; i < m->classes; i++) {
        ingot_dim *from = dim(n, at), *size = dim(n, m->of_class[i]);
        sums[i] = ingot_linear(c, ingot_slice(c, k, 1, from, size, 1),
                               ingot_slice(c, weight, 1, from, size, 1), NULL);
        at += m->of_class[i];
    }
    ingot_tensor *all = ingot_concat(c, (int)m->classes, sums, 1);
    ingot_tensor *s = ingot_add(c, ingot_take(c, all, of_pairs(n, m, said_by_first), 1),
                                ingot_take(c, all, of_pairs(n, m, said_by_second), 1));
    return ingot_add(c, s, floats_1d(n, m->rho, m->pairs));
}

/* The class with most votes. */
static ingot_tensor *elected(Lowering *n, const SvmModel *m, ingot_tensor *score)
{
    int64_t classes = m->classes, e = 0;
    if (classes == 2)
        return ingot_le(n->c, ingot_squeeze(n->c, score, 1), like(n, score, 0));
    /* 1 for i or for j: j has a vote of each pair to begin with, which a win of i takes away */
    double *votes = ingot_alloc(n->c, (size_t)(classes * m->pairs) * sizeof *votes);
    double *start = ingot_alloc(n->c, (size_t)classes * sizeof *start);
    for (int64_t i = 0; i < classes; i++)
        for (int64_t j = i + 1; j < classes; j++, e++) {
            votes[i * m->pairs + e] = 1;
            votes[j * m->pairs + e] = -1;
            start[j] += 1;
        }
    ingot_tensor *won = as(n, ingot_gt(n->c, score, like(n, score, 0)), INGOT_F32);
    ingot_tensor *sum =
        ingot_linear(n->c, won, const_f64(n, INGOT_F32, 2, (int64_t[2]){classes, m->pairs}, votes),
                     const_f64(n, INGOT_F32, 1, &classes, start));
    return ingot_argmax(n->c, sum, 1, false, false);
}

/* r [N, classes, classes] of the pairs' scores: r(j, i) = 1 - r(i, j); what stands in the diagonal
 * is 0. */
static ingot_tensor *pair_probabilities(Lowering *n, const SvmModel *m, ingot_tensor *score)
{
    ingot_context *c = n->c;
    int64_t size = m->classes, e = 0;
    ingot_tensor *a = floats_1d(n, m->prob_a, m->pairs), *b = floats_1d(n, m->prob_b, m->pairs);
    ingot_tensor *r = ingot_sigmoid(c, ingot_neg(c, ingot_add(c, ingot_mul(c, score, a), b)));
    r = ingot_clamp(c, r, 1e-7, 1 - 1e-7);
    ingot_tensor *parts[] = {r, ingot_sub(c, like(n, r, 1), r)};
    int64_t *place = ingot_alloc(c, (size_t)(size * size) * sizeof *place);
    double *apart = ingot_alloc(c, (size_t)(size * size) * sizeof *apart);
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = i + 1; j < size; j++, e++) {
            place[i * size + j] = e;
            place[j * size + i] = e + m->pairs;
            apart[i * size + j] = apart[j * size + i] = 1;
        }
    int64_t dims[2] = {size, size};
    ingot_tensor *matrix =
        ingot_take(c, ingot_concat(c, 2, parts, 1), const_i64(n, 2, dims, place), 1);
    return ingot_where(c, const_f64(n, INGOT_BOOL, 2, dims, apart), matrix, like(n, r, 0));
}

/* One value of each row: column t of [N, classes] as [N, 1]. */
static ingot_tensor *column(Lowering *n, ingot_tensor *x, ingot_tensor *t)
{
    return ingot_take(n->c, x, ingot_unsqueeze(n->c, t, 0), 1);
}

/* One round over all classes: p(t) is made the best one beside the others, and all are scaled to a
 * sum of 1. q p and p q p follow without being computed anew. */
static ingot_tensor *coupled_round(Lowering *n, int64_t classes, ingot_tensor *q, ingot_tensor *p,
                                   ingot_tensor *qp, ingot_tensor *pqp)
{
    ingot_context *c = n->c;
    ingot_tensor *start[3] = {p, qp, pqp}, *next[4], *out[3];
    ingot_region *body = ingot_region_begin(c);
    ingot_tensor *t = ingot_region_param(c, body, INGOT_I64, 0, NULL);
    next[0] = ingot_region_param(c, body, INGOT_BOOL, 0, NULL);
    for (int i = 0; i < 3; i++)
        next[i + 1] = ingot_region_param_like(c, body, start[i]);
    p = next[1], qp = next[2], pqp = next[3];
    ingot_tensor *row = ingot_squeeze(c, ingot_take(c, q, ingot_unsqueeze(c, t, 0), 1), 1);
    ingot_tensor *own = column(n, row, t), *qp_t = column(n, qp, t);
    ingot_tensor *diff = ingot_div(c, ingot_sub(c, pqp, qp_t), own);
    ingot_tensor *scale = ingot_add_c(c, diff, 1);
    ingot_tensor *is_t = ingot_eq(c, ingot_iota(c, 1, (ingot_dim *[]){dim(n, classes)}, 0), t);
    ingot_tensor *moved = ingot_where(c, is_t, ingot_add(c, p, diff), p);
    ingot_tensor *more = ingot_add(c, ingot_mul(c, diff, own), ingot_mul_c(c, qp_t, 2));
    more = ingot_add(c, pqp, ingot_mul(c, diff, more));
    next[1] = ingot_div(c, moved, scale);
    next[2] = ingot_div(c, ingot_add(c, qp, ingot_mul(c, diff, row)), scale);
    next[3] = ingot_div(c, ingot_div(c, more, scale), scale);
    ingot_region_end(c, body, 4, next);
    ingot_loop(c, dim(n, classes), NULL, 3, start, body, 0, out);
    return out[0];
}

/* p [N, classes] of r; a row that has come near enough stays. */
static ingot_tensor *coupled(Lowering *n, const SvmModel *m, ingot_tensor *r)
{
    ingot_context *c = n->c;
    int64_t classes = m->classes, dims[2] = {classes, classes};
    double *eye = ingot_alloc(c, (size_t)(classes * classes) * sizeof *eye);
    for (int64_t i = 0; i < classes; i++)
        eye[i * classes + i] = 1;
    ingot_tensor *back = ingot_permute(c, r, (int[]){0, 2, 1});
    ingot_tensor *own = ingot_sum(c, ingot_mul(c, back, back), 1u << 2, true);
    ingot_tensor *q = ingot_where(c, const_f64(n, INGOT_BOOL, 2, dims, eye), own,
                                  ingot_neg(c, ingot_mul(c, r, back)));
    ingot_dim *shape[2] = {ingot_shape(r, 0), ingot_shape(r, 1)};
    ingot_tensor *start[1] = {ingot_expand(c, like(n, r, 1.0 / (double)classes), 2, shape)};
    ingot_tensor *result[2], *out[1];

    ingot_region *body = ingot_region_begin(c);
    ingot_region_param(c, body, INGOT_I64, 0, NULL);
    ingot_region_param(c, body, INGOT_BOOL, 0, NULL);
    ingot_tensor *p = ingot_region_param_like(c, body, start[0]);
    ingot_tensor *qp = ingot_sum(c, ingot_mul(c, q, ingot_unsqueeze(c, p, 1)), 1u << 2, false);
    ingot_tensor *pqp = ingot_sum(c, ingot_mul(c, p, qp), 1u << 1, true);
    ingot_tensor *error =
        ingot_reduce(c, INGOT_REDUCE_MAX, ingot_abs(c, ingot_sub(c, qp, pqp)), 1u << 1, true);
    ingot_tensor *far = ingot_ge(c, error, like(n, error, 0.005 / (double)classes));
    ingot_tensor *any = ingot_reduce(c, INGOT_REDUCE_MAX, as(n, far, INGOT_I32), 3, false);
    result[0] = ingot_gt(c, any, like(n, any, 0));
    result[1] = ingot_where(c, far, coupled_round(n, classes, q, p, qp, pqp), p);
    ingot_region_end(c, body, 2, result);
    ingot_loop(c, dim(n, classes > 100 ? classes : 100), NULL, 1, start, body, 0, out);
    return out[0];
}

/* No vectors: a linear function of each class, and one number added to all. */
static ingot_tensor *linear_machine(Lowering *n, const SvmModel *m, ingot_tensor *x,
                                    ingot_tensor **which)
{
    const float *v;
    int64_t features = -1, count = attr_floats(n, "coefficients", &v);
    ingot_dim_is_const(ingot_shape(x, 1), &features);
    ingot_tensor *w = ml_matrix(n, "coefficients", m->classes, features);
    if (!w)
        return ingot_poison(n->c);
    ingot_tensor *s = ingot_add_c(n->c, ingot_linear(n->c, x, w, NULL), (double)m->rho[0]);
    *which = ingot_argmax(n->c, s, 1, false, false);
    if (m->classes != 2 || m->n_rho != 1 || m->prob_a)
        return s;
    /* As ONNX Runtime has it: a greatest score above 0, or of 1/2 where no weight is negative, is
     * the second class. */
    bool positive = true;
    for (int64_t i = 0; i < count; i++)
        positive &= v[i] >= 0;
    ingot_tensor *most = ingot_reduce(n->c, INGOT_REDUCE_MAX, s, 1u << 1, false);
    ingot_tensor *high = positive ? ingot_ge(n->c, most, like(n, most, 0.5))
                                  : ingot_gt(n->c, most, like(n, most, 0));
    *which = ingot_where(n->c, high, like(n, *which, 1), *which);
    return s;
}

/* Scores of the pairs, or probabilities of the classes. */
static ingot_tensor *vector_machine(Lowering *n, const SvmModel *m, ingot_tensor *x,
                                    ingot_tensor **which)
{
    int64_t features = -1;
    ingot_dim_is_const(ingot_shape(x, 1), &features);
    ingot_tensor *v = ml_matrix(n, "support_vectors", m->vectors, features);
    ingot_tensor *k = v ? kernel_of(n, x, v) : NULL;
    if (!k || n->failed)
        return ingot_poison(n->c);
    ingot_tensor *s = pair_scores(n, m, k);
    *which = elected(n, m, s);
    return m->prob_a ? coupled(n, m, pair_probabilities(n, m, s)) : s;
}

ingot_tensor *onnx_svm_classifier(Lowering *n)
{
    SvmModel m;
    ingot_tensor *x = ml_rows(n), *which = NULL;
    const char *how = attr_string(n, "post_transform", "NONE");
    if (!x || !machine_read(n, &m))
        return ingot_poison(n->c);
    ingot_tensor *s = (m.vectors ? vector_machine : linear_machine)(n, &m, x, &which);
    if (!which || n->failed)
        return ingot_poison(n->c);
    n->out[0] = ml_labels(n, "classlabels_ints", which);
    if (m.vectors && m.classes == 2 && !m.prob_a) {
        if (strcmp(how, "PROBIT") == 0)
            return unsupported(n, "its post_transform is PROBIT, of which one score has no second");
        ingot_tensor *pair[2] = {ingot_neg(n->c, s), s};
        n->out[1] =
            strcmp(how, "NONE") == 0 ? ingot_concat(n->c, 2, pair, 1) : ml_second_class(n, s, how);
    } else {
        n->out[1] = ml_transformed(n, s, how);
    }
    return n->out[0];
}
