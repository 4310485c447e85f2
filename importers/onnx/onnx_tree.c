/*
 * onnx_tree.c - ONNX tree ensembles (ai.onnx.ml): all trees of all rows go down a level at a time.
 *
 *     at[row, tree] = root of the tree
 *     depth times: at = test(x[row, feature[at]], split[at]) ? yes[at] : no[at]
 *     y[row, target] = aggregate over trees of weight[at, target]
 *
 * Leaves lead to themselves. The nodes of all trees are one numbered list, whatever way the file
 * holds them; a node that tests membership in a set is a chain of nodes that test equality.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.h"

#define X n->in[0]

enum { MAX_DEPTH = 256 };
typedef enum { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF } BranchMode;

typedef struct {
    int64_t n, n_roots, n_targets;
    BranchMode *mode;
    int64_t *feature, *yes, *no, *missing, *root;
    double *split;
    double *weight;    /* [n, n_targets] */
    bool *weighs;      /* the same: is there one? */
    ingot_dtype dtype; /* of the splits, weights and results */
} Trees;

static void *room(Lowering *n, int64_t count, size_t size)
{
    return ingot_alloc(n->c, (size_t)count * size + 1);
}

static bool trees_alloc(Lowering *n, Trees *t, int64_t count, int64_t n_targets)
{
    if (count < 1 || n_targets < 1 || count > INT32_MAX / 8 / n_targets) {
        fault(n, "%lld nodes and %lld targets", (long long)count, (long long)n_targets);
        return false;
    }
    t->n = count;
    t->n_targets = n_targets;
    t->mode = room(n, count, sizeof *t->mode);
    t->feature = room(n, count, sizeof *t->feature);
    t->yes = room(n, count, sizeof *t->yes);
    t->no = room(n, count, sizeof *t->no);
    t->missing = room(n, count, sizeof *t->missing);
    t->root = room(n, count, sizeof *t->root);
    t->split = room(n, count, sizeof *t->split);
    t->weight = room(n, count * n_targets, sizeof *t->weight);
    t->weighs = room(n, count * n_targets, sizeof *t->weighs);
    return true;
}

static void add_weight(Trees *t, int64_t node, int64_t target, double w)
{
    t->weight[node * t->n_targets + target] += w;
    t->weighs[node * t->n_targets + target] = true;
}

/* ---- what the run does ---------------------------------------------------------------------- */

/* Levels below the roots. -1 and an error if the nodes are no trees. A path longer than the number
 * of nodes runs in a circle. */
static int trees_depth(Lowering *n, const Trees *t)
{
    int64_t *level = room(n, t->n, sizeof *level),
            *stack = room(n, 2 * t->n + t->n_roots, sizeof *stack);
    int64_t most = 0, seen = 0, top = 0;
    for (int64_t i = 0; i < t->n_roots; i++)
        stack[top++] = t->root[i];
    while (top) {
        int64_t i = stack[--top];
        most = level[i] > most ? level[i] : most;
        if (t->mode[i] == LEAF)
            continue;
        if (++seen > t->n || most > MAX_DEPTH) {
            fault(n, "its nodes form no trees of at most %d levels", MAX_DEPTH);
            return -1;
        }
        level[t->yes[i]] = level[t->no[i]] = level[i] + 1;
        stack[top++] = t->yes[i];
        stack[top++] = t->no[i];
    }
    return (int)most;
}

static ingot_tensor *compare(Lowering *n, BranchMode mode, ingot_tensor *x, ingot_tensor *v)
{
    switch (mode) {
    case LEQ: return ingot_le(n->c, x, v);
    case LT: return ingot_lt(n->c, x, v);
    case GTE: return ingot_ge(n->c, x, v);
    case GT: return ingot_gt(n->c, x, v);
    case EQ: return ingot_eq(n->c, x, v);
    default: return ingot_ne(n->c, x, v);
    }
}

/* The outcome of each tree's test, by the mode of its node. */
static ingot_tensor *test(Lowering *n, const Trees *t, ingot_tensor *at, ingot_tensor *x,
                          ingot_tensor *v, ingot_tensor *modes)
{
    unsigned used = 0;
    for (int64_t i = 0; i < t->n; i++)
        used |= 1u << t->mode[i];
    ingot_tensor *y = NULL, *mode = ingot_take(n->c, modes, at, 0);
    for (int m = LEQ; m < MEMBER; m++) {
        if (!(used >> m & 1))
            continue;
        ingot_tensor *is = compare(n, (BranchMode)m, x, v);
        y = y ? ingot_where(n->c, ingot_eq(n->c, mode, ingot_scalar_i(n->c, INGOT_I64, m)), is, y)
              : is;
    }
    return y;
}

/* x [N, features] -> the leaf that each tree ends in, [N, trees] */
static ingot_tensor *descend(Lowering *n, const Trees *t, int depth, ingot_tensor *x)
{
    int64_t *mode = room(n, t->n, sizeof *mode);
    bool missing = false;
    for (int64_t i = 0; i < t->n; i++) {
        mode[i] = t->mode[i];
        missing |= t->missing[i] != 0;
    }
    ingot_tensor *modes = const_i64(n, 1, &t->n, mode), *yes = const_i64(n, 1, &t->n, t->yes),
                 *no = const_i64(n, 1, &t->n, t->no), *feature = const_i64(n, 1, &t->n, t->feature),
                 *lost = const_i64(n, 1, &t->n, t->missing),
                 *split = const_f64(n, t->dtype, 1, &t->n, t->split);
    ingot_dim *dims[2] = {ingot_shape(x, 0), dim(n, t->n_roots)};
    ingot_tensor *row = ingot_iota(n->c, 2, dims, 0);
    ingot_tensor *at = ingot_expand(n->c, const_i64(n, 1, &t->n_roots, t->root), 2, dims);
    x = as(n, x, t->dtype);
    for (int d = 0; d < depth; d++) {
        ingot_tensor *index[2] = {row, ingot_take(n->c, feature, at, 0)};
        ingot_tensor *v = ingot_gather(n->c, x, index);
        ingot_tensor *is = test(n, t, at, v, ingot_take(n->c, split, at, 0), modes);
        if (missing) {
            ingot_tensor *tracks =
                ingot_ne(n->c, ingot_take(n->c, lost, at, 0), ingot_scalar_i(n->c, INGOT_I64, 0));
            is = ingot_or(n->c, is, ingot_and(n->c, tracks, ingot_ne(n->c, v, v)));
        }
        at = ingot_where(n->c, is, ingot_take(n->c, yes, at, 0), ingot_take(n->c, no, at, 0));
    }
    return at;
}

/* The weights of the leaves, aggregated: [N, targets] */
static ingot_tensor *aggregate(Lowering *n, const Trees *t, ingot_tensor *at, const char *how)
{
    bool least = strcmp(how, "MIN") == 0, most = strcmp(how, "MAX") == 0;
    int64_t dims[2] = {t->n, t->n_targets}, count = t->n * t->n_targets;
    double none = least ? INFINITY : -INFINITY;
    for (int64_t i = 0; (least || most) && i < count; i++)
        if (!t->weighs[i])
            t->weight[i] = none;
    ingot_tensor *w = ingot_take(n->c, const_f64(n, t->dtype, 2, dims, t->weight), at, 0);
    if (!least && !most) {
        ingot_tensor *sum = ingot_sum(n->c, w, 1u << 1, false);
        return strcmp(how, "AVERAGE") == 0 ? ingot_mul_c(n->c, sum, 1.0 / (double)t->n_roots) : sum;
    }
    ingot_tensor *y =
        ingot_reduce(n->c, least ? INGOT_REDUCE_MIN : INGOT_REDUCE_MAX, w, 1u << 1, false);
    return ingot_where(n->c, ingot_eq(n->c, y, like(n, y, none)), like(n, y, 0), y);
}

/* Adds base values, one a target. */
static ingot_tensor *add_base(Lowering *n, ingot_tensor *y, int64_t n_targets)
{
    const float *base;
    int count = attr_floats(n, "base_values", &base);
    if (count <= 0)
        return y;
    if (count != n_targets)
        return fault(n, "it has %d base_values, not %lld", count, (long long)n_targets);
    double *v = room(n, count, sizeof *v);
    for (int i = 0; i < count; i++)
        v[i] = (double)base[i];
    return ingot_add(n->c, y, const_f64(n, ingot_dtype_of(y), 1, &n_targets, v));
}

/* Sums before base values and transform, [N, targets]; poison after an error. */
static ingot_tensor *trees_run(Lowering *n, Trees *t, const char *how)
{
    int64_t width;
    if (ingot_rank(X) != 2)
        return fault(n, "its input has rank %d, not 2", ingot_rank(X));
    if (ingot_dim_is_const(ingot_shape(X, 1), &width))
        for (int64_t i = 0; i < t->n; i++)
            if (t->mode[i] != LEAF && (t->feature[i] < 0 || t->feature[i] >= width))
                return fault(n, "a node asks for feature %lld of %lld", (long long)t->feature[i],
                             (long long)width);
    int depth = trees_depth(n, t);
    if (depth < 0)
        return ingot_poison(n->c);
    return aggregate(n, t, descend(n, t, depth, X), how);
}

/* ---- versions 1 to 3: lists of nodes with numbers of trees and nodes ------------------------ */

typedef struct {
    int64_t tree, node, at;
} TreeKey;

static int key_order(const void *a, const void *b)
{
    const TreeKey *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static int64_t key_find(const TreeKey *keys, int64_t count, int64_t tree, int64_t node)
{
    TreeKey want = {tree, node, 0};
    const TreeKey *k = bsearch(&want, keys, (size_t)count, sizeof *keys, key_order);
    return k ? k->at : -1;
}

static void check_count(Lowering *n, const char *name, int have, int64_t count)
{
    if (have != count && !n->failed)
        fault(n, "its attribute '%s' has %d entries, not %lld", name, have < 0 ? 0 : have,
              (long long)count);
}

/* A list attribute that has to have `count` entries. */
static const int64_t *ints_of(Lowering *n, const char *name, int64_t count)
{
    const int64_t *list;
    check_count(n, name, attr_ints(n, name, &list), count);
    return list;
}

static const float *floats_of(Lowering *n, const char *name, int64_t count)
{
    const float *list;
    check_count(n, name, attr_floats(n, name, &list), count);
    return list;
}

static bool mode_read(Lowering *n, const char *text, BranchMode *mode)
{
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
    for (int i = 0; i < COUNT(names); i++)
        if (strcmp(names[i], text) == 0 && i != MEMBER) {
            *mode = (BranchMode)i;
            return true;
        }
    fault(n, "a node has the mode '%.50s'", text);
    return false;
}

/* weights of leaves: <kind>_treeids, _nodeids, _ids, _weights */
static bool read_weights(Lowering *n, Trees *t, const TreeKey *keys, const char *kind)
{
    char name[4][32];
    static const char *const parts[] = {"treeids", "nodeids", "ids", "weights"};
    const int64_t *ids;
    for (int i = 0; i < 4; i++)
        snprintf(name[i], sizeof name[i], "%s_%s", kind, parts[i]);
    int count = attr_ints(n, name[2], &ids);
    const int64_t *tree = ints_of(n, name[0], count), *node = ints_of(n, name[1], count);
    const float *w = floats_of(n, name[3], count);
    for (int i = 0; i < count && !n->failed; i++) {
        int64_t at = key_find(keys, t->n, tree[i], node[i]);
        if (at < 0 || ids[i] < 0 || ids[i] >= t->n_targets)
            fault(n, "a weight is for node %lld of tree %lld and target %lld, which is not there",
                  (long long)node[i], (long long)tree[i], (long long)ids[i]);
        else
            add_weight(t, at, ids[i], (double)w[i]);
    }
    return !n->failed;
}

static bool read_lists(Lowering *n, Trees *t, int64_t n_targets, const char *kind)
{
    const int64_t *ids;
    const char *const *modes;
    int count = attr_ints(n, "nodes_nodeids", &ids);
    if (attr_has(n, "nodes_values_as_tensor") || attr_has(n, "base_values_as_tensor")) {
        unsupported(n, "values as tensors");
        return false;
    }
    *t = (Trees){.dtype = INGOT_F32};
    if (n->failed || !trees_alloc(n, t, count, n_targets))
        return false;
    const int64_t *tree = ints_of(n, "nodes_treeids", count),
                  *feature = ints_of(n, "nodes_featureids", count),
                  *yes = ints_of(n, "nodes_truenodeids", count),
                  *no = ints_of(n, "nodes_falsenodeids", count), *missing = NULL;
    const float *values = floats_of(n, "nodes_values", count);
    if (attr_has(n, "nodes_missing_value_tracks_true"))
        missing = ints_of(n, "nodes_missing_value_tracks_true", count);
    if (attr_strings(n, "nodes_modes", &modes) != count && !n->failed)
        fault(n, "its attribute 'nodes_modes' has not %d entries", count);
    if (n->failed)
        return false;
    TreeKey *keys = room(n, count, sizeof *keys);
    bool *child = room(n, count, sizeof *child);
    for (int i = 0; i < count; i++)
        keys[i] = (TreeKey){tree[i], ids[i], i};
    qsort(keys, (size_t)count, sizeof *keys, key_order);
    for (int i = 0; i < count; i++) {
        if (!mode_read(n, modes[i], &t->mode[i]))
            return false;
        bool leaf = t->mode[i] == LEAF;
        t->feature[i] = leaf ? 0 : feature[i];
        t->split[i] = (double)values[i];
        t->missing[i] = missing && missing[i];
        t->yes[i] = leaf ? i : key_find(keys, count, tree[i], yes[i]);
        t->no[i] = leaf ? i : key_find(keys, count, tree[i], no[i]);
        if (t->yes[i] < 0 || t->no[i] < 0) {
            fault(n, "node %lld of tree %lld leads to a node that is not there", (long long)ids[i],
                  (long long)tree[i]);
            return false;
        }
        if (!leaf)
            child[t->yes[i]] = child[t->no[i]] = true;
    }
    for (int i = 0; i < count; i++) /* a tree's root is what nothing leads to */
        if (!child[i])
            t->root[t->n_roots++] = i;
    if (!t->n_roots)
        fault(n, "no node is a root");
    return !n->failed && read_weights(n, t, keys, kind);
}

ingot_tensor *onnx_tree_ensemble_regressor(Lowering *n)
{
    Trees t;
    int64_t n_targets = attr_int(n, "n_targets", 1);
    if (!read_lists(n, &t, n_targets, "target"))
        return ingot_poison(n->c);
    ingot_tensor *y = trees_run(n, &t, attr_string(n, "aggregate_function", "SUM"));
    return ingot_is_poison(y) ? y
                              : ml_transformed(n, add_base(n, y, n_targets),
                                               attr_string(n, "post_transform", "NONE"));
}

/* Two classes told by the score y of one: [N, 1] -> [N, 2] and which of the two it is. As ONNX
 * Runtime has it: leaves of class 0 tell how likely 1 is, and 0 is what that leaves, which is
 * transformed by LOGISTIC alone; leaves of class 1 leave 0 with a score of `none`. */
static ingot_tensor *two_classes(Lowering *n, const Trees *t, ingot_tensor *y, ingot_tensor *none,
                                 ingot_tensor **which)
{
    const char *how = attr_string(n, "post_transform", "NONE");
    const bool logistic = strcmp(how, "LOGISTIC") == 0, probit = strcmp(how, "PROBIT") == 0;
    bool positive = true;
    for (int64_t i = 0; i < t->n * t->n_targets; i++)
        positive &= t->weight[i] >= 0;
    *which = ingot_gt(n->c, ingot_squeeze(n->c, y, 1), like(n, y, positive ? 0.5 : 0));
    ingot_tensor *left = none                    ? none
                         : positive && !logistic ? ingot_sub(n->c, like(n, y, 1), y)
                                                 : ingot_neg(n->c, y);
    ingot_tensor *pair = ingot_concat(n->c, 2, (ingot_tensor *[]){left, y}, 1);
    return ml_transformed(n, pair, none || logistic || probit ? how : "NONE");
}

/* A column of [N, 2]. */
static ingot_tensor *score_of(Lowering *n, ingot_tensor *y, int64_t class)
{
    return ingot_slice(n->c, y, 1, dim(n, class), dim(n, 1), 1);
}

ingot_tensor *onnx_tree_ensemble_classifier(Lowering *n)
{
    Trees t;
    static const char ints[] = "classlabels_int64s";
    const int64_t *ids;
    int classes = ml_label_count(n, ints), count = attr_ints(n, "class_ids", &ids);
    if (classes <= 0)
        return fault(n, "it has no labels of its classes");
    bool one = classes == 2 && count > 0;
    for (int i = 1; i < count; i++)
        one &= ids[i] == ids[0];
    if (!read_lists(n, &t, classes, "class"))
        return ingot_poison(n->c);
    ingot_tensor *y = trees_run(n, &t, "SUM"), *which = NULL;
    if (ingot_is_poison(y))
        return y;
    if (one) {
        ingot_tensor *score = add_base(n, score_of(n, y, ids[0]), 1);
        y = two_classes(n, &t, score, ids[0] ? score_of(n, y, 0) : NULL, &which);
    } else {
        y = add_base(n, y, classes);
        which = ingot_argmax(n->c, y, 1, false, false);
        y = ml_transformed(n, y, attr_string(n, "post_transform", "NONE"));
    }
    n->out[0] = ml_labels(n, ints, which);
    n->out[1] = y;
    return n->out[0];
}

/* ---- version 5: nodes and leaves apart, in order -------------------------------------------- */

/* A tensor attribute as numbers; NULL after an error. */
static const double *numbers_of(Lowering *n, const char *name, int64_t count, ingot_dtype *dtype)
{
    ingot_tensor *t = attr_tensor(n, name);
    int64_t dims[INGOT_MAX_RANK];
    if (!t || ingot_is_poison(t) || n->failed) {
        if (!n->failed && !t)
            fault(n, "its attribute '%s' is missing", name);
        n->failed = true;
        return NULL;
    }
    if (ingot_rank(t) != 1 || !ingot_static_shape(t, dims) || dims[0] != count) {
        fault(n, "its attribute '%s' has not %lld entries", name, (long long)count);
        return NULL;
    }
    double *v = room(n, count, sizeof *v);
    if (dtype)
        *dtype = ingot_dtype_of(t);
    if (count && !ingot_const_data(n->c, as(n, t, INGOT_F64), v, (size_t)count * sizeof *v)) {
        fault(n, "its attribute '%s' cannot be read", name);
        return NULL;
    }
    return v;
}

/* Sets of membership tests: values of one after the other, NaN between. */
typedef struct {
    const double *v;
    int64_t n;
} Sets;

static bool sets_read(Lowering *n, Sets *s)
{
    int64_t dims[INGOT_MAX_RANK];
    *s = (Sets){0};
    if (!attr_has(n, "membership_values"))
        return true;
    ingot_tensor *t = attr_tensor(n, "membership_values");
    if (n->failed || !t || ingot_is_poison(t) || ingot_rank(t) != 1 || !ingot_static_shape(t, dims))
        return false;
    s->n = dims[0];
    s->v = numbers_of(n, "membership_values", s->n, NULL);
    return s->v != NULL;
}

static int64_t child_of(Lowering *n, int64_t id, int64_t leaf, int64_t inner, int64_t leaves)
{
    if (id >= 0 && id < (leaf ? leaves : inner))
        return leaf ? inner + id : id;
    fault(n, "a node leads to %s %lld, which is not there", leaf ? "leaf" : "node", (long long)id);
    return 0;
}

/* What the attributes of a TreeEnsemble say. */
typedef struct {
    int inner, leaves, n_roots;
    const int64_t *feature, *roots, *target, *yes, *no, *yes_leaf, *no_leaf;
    const int64_t *missing; /* or NULL */
    const double *mode, *split, *weight;
    int64_t how, post;
    ingot_dtype dtype;
    Sets sets;
} Ensemble;

/* False after an error. */
static bool ensemble_read(Lowering *n, Ensemble *e)
{
    *e = (Ensemble){.dtype = INGOT_F32};
    e->inner = attr_ints(n, "nodes_featureids", &e->feature);
    e->n_roots = attr_ints(n, "tree_roots", &e->roots);
    e->leaves = attr_ints(n, "leaf_targetids", &e->target);
    e->how = attr_int(n, "aggregate_function", 1);
    e->post = attr_int(n, "post_transform", 0);
    if (n->failed)
        return false;
    if (e->inner < 1 || e->n_roots < 1 || e->leaves < 1 || e->how < 0 || e->how > 3 ||
        e->post < 0 || e->post > 4) {
        fault(n,
              "its nodes, leaves, roots, aggregate_function or post_transform are out of bounds");
        return false;
    }
    e->yes = ints_of(n, "nodes_truenodeids", e->inner);
    e->no = ints_of(n, "nodes_falsenodeids", e->inner);
    e->yes_leaf = ints_of(n, "nodes_trueleafs", e->inner);
    e->no_leaf = ints_of(n, "nodes_falseleafs", e->inner);
    e->mode = numbers_of(n, "nodes_modes", e->inner, NULL);
    e->split = numbers_of(n, "nodes_splits", e->inner, &e->dtype);
    e->weight = numbers_of(n, "leaf_weights", e->leaves, NULL);
    if (attr_has(n, "nodes_missing_value_tracks_true"))
        e->missing = ints_of(n, "nodes_missing_value_tracks_true", e->inner);
    if (n->failed)
        return false;
    if (sets_read(n, &e->sets))
        return true;
    if (!n->failed)
        fault(n, "its membership_values cannot be read");
    return false;
}

/* Node i asks whether x is in a set: x = a, or else x = b, or else ..; value: where the set begins;
 * next: the first node that is free. */
static bool member_tests(Lowering *n, Trees *t, const Sets *sets, int64_t i, int64_t *value,
                         int64_t *next)
{
    int64_t at = i, end = t->no[i];
    for (bool first = true;; first = false) {
        if (*value >= sets->n || (first && isnan(sets->v[*value]))) {
            fault(n, "its membership_values are too few");
            return false;
        }
        t->mode[at] = EQ;
        t->split[at] = sets->v[(*value)++];
        if (*value >= sets->n || isnan(sets->v[*value]))
            break;
        t->feature[*next] = t->feature[i];
        t->missing[*next] = t->missing[i];
        t->yes[*next] = t->yes[i];
        t->no[at] = *next;
        at = (*next)++;
    }
    t->no[at] = end;
    ++*value;
    return true;
}

/* Nodes first, then leaves, then what sets take beside. False after an error. */
static bool ensemble_nodes(Lowering *n, const Ensemble *e, Trees *t)
{
    int64_t next = e->inner + e->leaves, value = 0;
    for (int64_t i = 0; i < t->n; i++) {
        t->mode[i] = LEAF;
        t->yes[i] = t->no[i] = i;
    }
    for (int64_t i = 0; i < e->inner; i++) {
        if (!(e->mode[i] >= LEQ && e->mode[i] <= MEMBER)) {
            fault(n, "a node has the mode %g", e->mode[i]);
            return false;
        }
        t->mode[i] = (BranchMode)e->mode[i];
        t->feature[i] = e->feature[i];
        t->missing[i] = e->missing && e->missing[i];
        t->yes[i] = child_of(n, e->yes[i], e->yes_leaf[i], e->inner, e->leaves);
        t->no[i] = child_of(n, e->no[i], e->no_leaf[i], e->inner, e->leaves);
        t->split[i] = e->split[i];
        if (t->mode[i] == MEMBER && !member_tests(n, t, &e->sets, i, &value, &next))
            return false;
    }
    for (int64_t i = 0; i < e->leaves; i++) {
        if (e->target[i] < 0 || e->target[i] >= t->n_targets) {
            fault(n, "a leaf has the target %lld", (long long)e->target[i]);
            return false;
        }
        add_weight(t, e->inner + i, e->target[i], e->weight[i]);
    }
    if (e->n_roots > t->n) {
        fault(n, "it has %d roots of %d nodes", e->n_roots, e->inner);
        return false;
    }
    for (int i = 0; i < e->n_roots; i++)
        t->root[t->n_roots++] = child_of(n, e->roots[i], 0, e->inner, e->leaves);
    return !n->failed;
}

ingot_tensor *onnx_tree_ensemble(Lowering *n)
{
    static const char *const aggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                             "PROBIT"};
    Trees t = {0};
    Ensemble e;
    if (!ensemble_read(n, &e) ||
        !trees_alloc(n, &t, (int64_t)e.inner + e.leaves + e.sets.n, attr_int(n, "n_targets", 1)))
        return ingot_poison(n->c);
    t.dtype = e.dtype;
    if (!ensemble_nodes(n, &e, &t))
        return ingot_poison(n->c);
    ingot_tensor *y = trees_run(n, &t, aggregates[e.how]);
    return ingot_is_poison(y) ? y : ml_transformed(n, y, transforms[e.post]);
}
