/*
 * onnx_training.c - a model that is to be trained: which tensors of the file are its weights.
 *
 * An initializer is a weight if it is a float that some node reads, unless a node needs to know it
 * now: scales of Resize, bounds of Clip.  What BatchNormalization has as mean and variance are
 * statistics, which in training follow the batches.  A name stands for the tensor that Identity
 * nodes hand on, too: exporters share weights so.
 */
#include <stdio.h>
#include <string.h>

#include "onnx.h"

enum {
    USED = 1,
    USED_AS_NUMBERS = 2,
    USED_AS_STATISTIC = 4,
    USED_BY_ROWS = 8, /* as products read it: ingot_weight_form */
    USED_BY_COLUMNS = 16
};

/* Inputs, as bits, that are no weights: numbers that decide what the node does, or statistics. */
static const struct {
    const char *op;
    unsigned numbers, statistics;
} inputs_of[] = {
    {"BatchNormalization", 0, 1u << 3 | 1u << 4},
    {"Clip", 1u << 1 | 1u << 2, 0},
    {"DequantizeLinear", ~0u, 0},
    {"Dropout", 1u << 1, 0},
    {"NonMaxSuppression", ~0u, 0},
    {"OneHot", ~0u, 0},
    {"Pad", 1u << 2, 0},
    {"Pow", 1u << 1, 0},
    {"QuantizeLinear", ~1u, 0},
    {"Range", ~0u, 0},
    {"Resize", ~1u, 0},
    {"Upsample", ~1u, 0},
};

int64_t int_attribute(const Onnx__NodeProto *n, const char *name, int64_t otherwise)
{
    for (size_t i = 0; i < n->n_attribute; i++)
        if (!strcmp(n->attribute[i]->name, name))
            return n->attribute[i]->i;
    return otherwise;
}

Onnx__TensorProto *initializer_named(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        if (!strcmp(g->initializer[i]->name, name))
            return g->initializer[i];
    return NULL;
}

/* The second input of a product. */
static unsigned use_of_factor(const Onnx__NodeProto *n)
{
    if (!strcmp(n->op_type, "Conv") ||
        (!strcmp(n->op_type, "Gemm") && int_attribute(n, "transB", 0)))
        return USED_BY_ROWS;
    return !strcmp(n->op_type, "Gemm") || !strcmp(n->op_type, "MatMul") ? USED_BY_COLUMNS : 0;
}

static unsigned use_of(const Onnx__NodeProto *n, size_t input)
{
    const unsigned factor = input == 1 ? use_of_factor(n) : 0;
    for (int i = 0; i < COUNT(inputs_of); i++)
        if (input < 32 && !strcmp(n->op_type, inputs_of[i].op))
            return inputs_of[i].numbers >> input & 1      ? USED_AS_NUMBERS
                   : inputs_of[i].statistics >> input & 1 ? USED_AS_STATISTIC
                                                          : USED;
    return USED | factor;
}

/* What the input of an Identity or of a Transpose, of a matrix, is used for: what the result is. */
static unsigned handed_on(const Onnx__NodeProto *n, unsigned use)
{
    const unsigned rows = use & USED_BY_ROWS, columns = use & USED_BY_COLUMNS;
    if (!strcmp(n->op_type, "Identity"))
        return use;
    return USED | (rows ? USED_BY_COLUMNS : 0) | (columns ? USED_BY_ROWS : 0);
}

/* Of the main graph's initializers, by name: unsigned. Nodes are walked from the last to the first,
 * so that how an Identity's result is used is known when its input's turn comes. */
static void note_uses(Model *m, Names *uses, size_t n_node, Onnx__NodeProto **node)
{
    for (size_t k = n_node; k-- > 0;) {
        const Onnx__NodeProto *n = node[k];
        const bool hands = !strcmp(n->op_type, "Identity") || !strcmp(n->op_type, "Transpose");
        const unsigned *handed = hands && n->n_output ? names_get(uses, n->output[0]) : NULL;
        for (size_t i = 0; i < n->n_input; i++) {
            unsigned *u = names_get(uses, n->input[i]);
            if (!u)
                names_put(m->c, uses, n->input[i], u = ingot_alloc(m->c, sizeof *u));
            *u |= handed ? handed_on(n, *handed) : use_of(n, i);
        }
        for (size_t a = 0; a < n->n_attribute; a++) {
            const Onnx__AttributeProto *attr = n->attribute[a];
            for (size_t g = 0; g < attr->n_graphs; g++)
                note_uses(m, uses, attr->graphs[g]->n_node, attr->graphs[g]->node);
            if (attr->g)
                note_uses(m, uses, attr->g->n_node, attr->g->node);
        }
    }
}

Names onnx_weight_uses(Model *m, const Onnx__GraphProto *g)
{
    Names uses = {0};
    note_uses(m, &uses, g->n_node, g->node);
    return uses;
}

bool onnx_weight_type(ingot_dtype d)
{
    return d == INGOT_F16 || d == INGOT_BF16 || d == INGOT_F32 || d == INGOT_F64;
}

bool onnx_integer_weight_type(ingot_dtype d)
{
    return d == INGOT_I8 || d == INGOT_U8 || d == INGOT_I16 || d == INGOT_U16 || d == INGOT_I32;
}

ingot_model_weight onnx_weight(const char *name, unsigned use, int rank)
{
    ingot_weight_form form = INGOT_WEIGHT_OTHER;
    if (use & USED_BY_ROWS && rank >= 2)
        form = INGOT_WEIGHT_ROWS;
    else if (use & USED_BY_COLUMNS && rank == 2)
        form = INGOT_WEIGHT_COLUMNS;
    return (ingot_model_weight){.name = name, .statistic = use & USED_AS_STATISTIC, .form = form};
}

/* The first node that reads each name, of those that say their module: strings. */
static Names modules_of_readers(Model *m, const Onnx__GraphProto *g)
{
    Names modules = {0};
    for (size_t k = 0; k < g->n_node; k++) {
        const char *module = onnx_module(m->c, g->node[k]);
        for (size_t i = 0; module && i < g->node[k]->n_input; i++)
            if (!names_get(&modules, g->node[k]->input[i]))
                names_put(m->c, &modules, g->node[k]->input[i], (void *)(uintptr_t)module);
    }
    return modules;
}

/* A name with a dot is a path already, of the parameter that it was in PyTorch. */
static const char *weight_path(Model *m, const Names *modules, const char *name)
{
    const char *module = strchr(name, '.') ? NULL : names_get(modules, name);
    if (!module)
        return NULL;
    const size_t room = strlen(module) + strlen(name) + 2;
    char *path = ingot_alloc(m->c, room);
    snprintf(path, room, "%s.%s", module, name);
    return path;
}

bool take_weights(Model *m, Scope *s, const Onnx__GraphProto *g)
{
    const ingot_model_training *training = m->options ? m->options->training : NULL;
    m->n_weights = 0;
    if (!training)
        return true;
    if (is_own_training(m))
        return take_updated(m, s);
    const Names uses = onnx_weight_uses(m, g);
    const Names modules = modules_of_readers(m, g);
    m->weights = ingot_alloc(m->c, (g->n_initializer + 1) * sizeof(ingot_tensor *));
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = g->initializer[i]->name;
        const unsigned *u = names_get(&uses, name);
        if (!u || (*u & USED_AS_NUMBERS))
            continue;
        Value *v = scope_find(m, s, name);
        if (!v->tensor || ingot_is_poison(v->tensor) ||
            !onnx_weight_type(ingot_dtype_of(v->tensor)))
            continue;
        ingot_model_weight w = onnx_weight(name, *u, ingot_rank(v->tensor));
        w.path = weight_path(m, &modules, name);
        artifacts_wish(m, &w);
        ingot_tensor *t = training->weight(training->user, &w, v->tensor);
        if (ingot_is_poison(t))
            return false;
        if (t != v->tensor)
            m->weights[m->n_weights++] = v->tensor = t;
    }
    return true;
}

bool is_main_initializer(const Lowering *n, int input)
{
    return initializer_named(n->model->file->model->graph, n->proto->input[input]) &&
           !n->scope->outer && !n->scope->function && ingot_is_const(n->in[input]);
}

bool is_own_training(const Model *m)
{
    return m->options && m->options->training && m->options->training->own && !m->artifacts;
}

bool is_training(const Model *m)
{
    return m->options && m->options->training && !is_own_training(m);
}

bool is_training_step(const Model *m)
{
    return is_training(m) && m->options->training->step;
}

bool is_trained_weight(const Model *m, ingot_tensor *t)
{
    for (int i = 0; i < m->n_weights; i++)
        if (m->weights[i] == t)
            return true;
    return false;
}
