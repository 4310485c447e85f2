/*
 * onnx_training.c - a model that is to be trained: which tensors of the file are its weights.
 *
 * An initializer is a weight if it is a float that some node reads, unless a node needs to know it
 * now: scales of Resize, bounds of Clip.  What BatchNormalization has as mean and variance are
 * statistics, which in training follow the batches.  A name stands for the tensor that Identity
 * nodes hand on, too: exporters share weights so.
 */
#include <string.h>

#include "onnx.h"

enum { USED = 1, USED_AS_NUMBERS = 2, USED_AS_STATISTIC = 4 };

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

static unsigned use_of(const Onnx__NodeProto *n, size_t input)
{
    for (int i = 0; i < COUNT(inputs_of); i++)
        if (input < 32 && !strcmp(n->op_type, inputs_of[i].op))
            return inputs_of[i].numbers >> input & 1      ? USED_AS_NUMBERS
                   : inputs_of[i].statistics >> input & 1 ? USED_AS_STATISTIC
                                                          : USED;
    return USED;
}

/* Of the main graph's initializers, by name: unsigned. Nodes are walked from the last to the first,
 * so that how an Identity's result is used is known when its input's turn comes. */
static void note_uses(Model *m, Names *uses, size_t n_node, Onnx__NodeProto **node)
{
    for (size_t k = n_node; k-- > 0;) {
        const Onnx__NodeProto *n = node[k];
        const unsigned *handed =
            !strcmp(n->op_type, "Identity") && n->n_output ? names_get(uses, n->output[0]) : NULL;
        for (size_t i = 0; i < n->n_input; i++) {
            unsigned *u = names_get(uses, n->input[i]);
            if (!u)
                names_put(m->c, uses, n->input[i], u = ingot_alloc(m->c, sizeof *u));
            *u |= handed ? *handed : use_of(n, i);
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

static bool weight_type(ingot_tensor *t)
{
    return is_float(t) && ingot_dtype_bytes(ingot_dtype_of(t)) > 1;
}

bool take_weights(Model *m, Scope *s, const Onnx__GraphProto *g)
{
    const ingot_model_training *training = m->options ? m->options->training : NULL;
    Names uses = {0};
    m->n_weights = 0;
    if (!training)
        return true;
    m->weights = ingot_alloc(m->c, (g->n_initializer + 1) * sizeof(ingot_tensor *));
    note_uses(m, &uses, g->n_node, g->node);
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = g->initializer[i]->name;
        const unsigned *u = names_get(&uses, name);
        if (!u || (*u & USED_AS_NUMBERS))
            continue;
        Value *v = scope_find(m, s, name);
        if (!v->tensor || ingot_is_poison(v->tensor) || !weight_type(v->tensor))
            continue;
        ingot_tensor *t = training->weight(training->user, name, *u & USED_AS_STATISTIC, v->tensor);
        if (ingot_is_poison(t))
            return false;
        if (t != v->tensor)
            m->weights[m->n_weights++] = v->tensor = t;
    }
    return true;
}

bool is_training(const Model *m)
{
    return m->options && m->options->training;
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
