/*
 * onnx_told.c - what the declared outputs tell of the values of inputs.
 *
 * An input may hold sizes (the shape of a crop, the size of a grid), from which the model computes
 * those of its values. If an output whose shape is declared is a Reshape to them, or a Slice of
 * that length, the values are told. From them follow sizes inside, which nothing else bounds. Like
 * all that is declared, such a size is compared with the data when the model runs; the values
 * themselves are not demanded.
 */
#include <string.h>

#include "onnx.h"

enum { MOST_ELEMENTS = 64, MOST_NODES = 64 }; /* elements of an input; nodes on a way */

/* A list of nodes, and the one around it. */
typedef struct GraphLevel {
    const struct GraphLevel *outer;
    const Onnx__GraphProto *graph;
} GraphLevel;

typedef struct Told {
    struct Told *next;
    ingot_tensor *input;
    int count;
    bool known[MOST_ELEMENTS];
    int64_t value[MOST_ELEMENTS];
} Told;

typedef struct {
    Model *model;
    Scope *scope; /* that of the main graph */
    Told *told;
    int depth;
} ToldWalk;

/* ---- names ----------------------------------------------------------------------------------- */

static const Onnx__NodeProto *producer(const GraphLevel **level, const char *name, size_t *output)
{
    for (; *level; *level = (*level)->outer)
        for (size_t i = 0; i < (*level)->graph->n_node; i++) {
            const Onnx__NodeProto *n = (*level)->graph->node[i];
            for (*output = 0; *output < n->n_output; ++*output)
                if (strcmp(n->output[*output], name) == 0)
                    return n;
        }
    return NULL;
}

static ingot_tensor *known_tensor(ToldWalk *w, const char *name)
{
    Value *v = name[0] ? scope_find(w->model, w->scope, name) : NULL;
    return v && v->kind == VALUE_TENSOR && v->tensor && !ingot_is_poison(v->tensor) ? v->tensor
                                                                                    : NULL;
}

/* The integers that a name stands for, if they are constants; -1. */
static int known_list(ToldWalk *w, const GraphLevel *level, const char *name, int64_t *list)
{
    size_t output;
    int count;
    const int64_t *ints;
    ingot_tensor *t = known_tensor(w, name);
    if (t)
        return ingot_const_ints(w->model->c, t, list, INGOT_MAX_RANK, &count) ? count : -1;
    const Onnx__NodeProto *node = producer(&level, name, &output);
    if (!node || strcmp(node->op_type, "Constant") != 0)
        return -1;
    Lowering n = {.c = w->model->c, .model = w->model, .proto = node, .scope = w->scope};
    if (attr_has(&n, "value_int")) {
        list[0] = attr_int(&n, "value_int", 0);
        return 1;
    }
    if (attr_has(&n, "value")) {
        t = attr_tensor(&n, "value");
        return t && !ingot_is_poison(t) &&
                       ingot_const_ints(w->model->c, t, list, INGOT_MAX_RANK, &count)
                   ? count
                   : -1;
    }
    count = attr_has(&n, "value_ints") ? attr_ints(&n, "value_ints", &ints) : -1;
    if (count > INGOT_MAX_RANK)
        return -1;
    if (count > 0)
        memcpy(list, ints, (size_t)count * sizeof *list);
    return count;
}

static int64_t known_length(ToldWalk *w, const GraphLevel *level, const char *name)
{
    int64_t count, list[INGOT_MAX_RANK];
    ingot_tensor *t = known_tensor(w, name);
    if (t)
        return ingot_dim_is_const(ingot_numel(w->model->c, t), &count) ? count : -1;
    return known_list(w, level, name, list);
}

/* The branch that is taken, if that is known. */
static const Onnx__GraphProto *branch_taken(ToldWalk *w, const Onnx__NodeProto *node)
{
    int64_t taken;
    int count;
    ingot_tensor *cond = node->n_input ? known_tensor(w, node->input[0]) : NULL;
    Lowering n = {.c = w->model->c, .model = w->model, .proto = node, .scope = w->scope};
    if (!cond || !ingot_const_ints(w->model->c, cond, &taken, 1, &count) || count != 1)
        return NULL;
    const char *which = taken ? "then_branch" : "else_branch";
    return attr_has(&n, which) ? attr_graph(&n, which) : NULL;
}

static bool is_op(const Onnx__NodeProto *node, const char *op)
{
    return strcmp(node->op_type, op) == 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void tell_input(ToldWalk *w, const char *name, int64_t k, int64_t v)
{
    int64_t count;
    ingot_tensor *x = known_tensor(w, name);
    Told *t = w->told;
    bool input = false;
    for (int i = 0; i < w->model->n_inputs; i++)
        input |= strcmp(w->model->inputs[i].name, name) == 0;
    if (!input || !x || ingot_is_const(x) ||
        !ingot_dim_is_const(ingot_numel(w->model->c, x), &count) || k >= count ||
        count > MOST_ELEMENTS)
        return;
    while (t && t->input != x)
        t = t->next;
    if (!t) {
        t = ingot_alloc(w->model->c, sizeof *t);
        *t = (Told){.next = w->told, .input = x, .count = (int)count};
        w->told = t;
    }
    if (!t->known[k])
        t->value[k] = v;
    t->known[k] = true;
}

/* Element k of a list is v. */
static void tell_value(ToldWalk *w, const GraphLevel *level, const char *name, int64_t k, int64_t v)
{
    size_t output;
    const Onnx__NodeProto *node = producer(&level, name, &output);
    if (!node) {
        tell_input(w, name, k, v);
        return;
    }
    if (w->depth >= MOST_NODES || function_find(w->model, node) || !node->n_input)
        return;
    w->depth++;
    if (is_op(node, "Identity") || is_op(node, "Cast") || is_op(node, "Unsqueeze") ||
        is_op(node, "Squeeze") || is_op(node, "Reshape")) {
        tell_value(w, level, node->input[0], k, v);
    } else if (is_op(node, "Concat")) { /* of lists: sizes have one axis */
        int64_t length = 0;
        for (size_t i = 0; i < node->n_input && length >= 0 && k >= 0; i++) {
            length = known_length(w, level, node->input[i]);
            if (k < length)
                tell_value(w, level, node->input[i], k, v);
            k -= length;
        }
    } else if (is_op(node, "Split") &&
               node->n_input == 1) { /* equal parts, the last may be short */
        int64_t length = known_length(w, level, node->input[0]), parts = (int64_t)node->n_output;
        if (length > 0)
            tell_value(w, level, node->input[0],
                       (int64_t)output * ((length + parts - 1) / parts) + k, v);
    } else if (is_op(node, "If")) {
        const Onnx__GraphProto *g = branch_taken(w, node);
        if (g && output < g->n_output)
            tell_value(w, &(GraphLevel){level, g}, g->output[output]->name, k, v);
    }
    w->depth--;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void tell_shape(ToldWalk *w, const GraphLevel *level, const char *name, int rank,
                       const int64_t *dims);

/* From start to start + length: an entry of length is the size of its axis. */
static void tell_slice(ToldWalk *w, const GraphLevel *level, const Onnx__NodeProto *node, int rank,
                       const int64_t *dims)
{
    size_t output;
    int64_t axes[INGOT_MAX_RANK], before[INGOT_MAX_RANK];
    const GraphLevel *at = level;
    if (node->n_input < 3 || (node->n_input > 4 && node->input[4][0]))
        return;
    bool all = node->n_input < 4 || !node->input[3][0];
    int count = all ? rank : known_list(w, level, node->input[3], axes);
    const Onnx__NodeProto *sum = producer(&at, node->input[2], &output);
    memcpy(before, dims, sizeof before);
    for (int k = 0; k < count; k++) {
        int64_t a = all ? k : axes[k] + (axes[k] < 0 ? rank : 0);
        if (a < 0 || a >= rank)
            return;
        before[a] = -1;
        if (dims[a] < 0 || !sum || !is_op(sum, "Add") || sum->n_input != 2)
            continue;
        for (int i = 0; i < 2; i++)
            if (strcmp(sum->input[i], node->input[1]) == 0)
                tell_value(w, at, sum->input[1 - i], k, dims[a]);
    }
    if (count >= 0)
        tell_shape(w, level, node->input[0], rank, before);
}

static void tell_squeezed(ToldWalk *w, const GraphLevel *level, const Onnx__NodeProto *node,
                          int rank, const int64_t *dims)
{
    int64_t axes[INGOT_MAX_RANK], wide[INGOT_MAX_RANK];
    unsigned set = 0;
    int count = node->n_input > 1 ? known_list(w, level, node->input[1], axes) : -1;
    if (count < 0 || rank + count > INGOT_MAX_RANK)
        return;
    for (int k = 0; k < count; k++) {
        int64_t a = axes[k] + (axes[k] < 0 ? rank + count : 0);
        if (a < 0 || a >= rank + count || set >> a & 1)
            return;
        set |= 1u << a;
    }
    for (int a = 0, from = 0; a < rank + count; a++)
        wide[a] = set >> a & 1 ? 1 : dims[from++];
    tell_shape(w, level, node->input[0], rank + count, wide);
}

/* A value has these dims, -1 where nothing is told. */
static void tell_shape(ToldWalk *w, const GraphLevel *level, const char *name, int rank,
                       const int64_t *dims)
{
    size_t output;
    const Onnx__NodeProto *node = producer(&level, name, &output);
    if (!node || w->depth >= MOST_NODES || function_find(w->model, node) || !node->n_input)
        return;
    w->depth++;
    if (is_op(node, "Identity") || is_op(node, "Cast") || is_op(node, "CastLike"))
        tell_shape(w, level, node->input[0], rank, dims);
    else if (is_op(node, "Slice"))
        tell_slice(w, level, node, rank, dims);
    else if (is_op(node, "Squeeze"))
        tell_squeezed(w, level, node, rank, dims);
    else if (is_op(node, "ConstantOfShape") || (is_op(node, "Reshape") && node->n_input > 1))
        for (int a = 0; a < rank; a++) {
            if (dims[a] >= 0)
                tell_value(w, level, node->input[node->n_input - 1], a, dims[a]);
        }
    else if (is_op(node, "If")) {
        const Onnx__GraphProto *g = branch_taken(w, node);
        if (g && output < g->n_output)
            tell_shape(w, &(GraphLevel){level, g}, g->output[output]->name, rank, dims);
    }
    w->depth--;
}

/* The input as it is told to be. */
static ingot_tensor *told_input(ToldWalk *w, const Told *t)
{
    ingot_context *c = w->model->c;
    ingot_tensor *part[MOST_ELEMENTS];
    ingot_dim *dims[INGOT_MAX_RANK], *all = ingot_dim_const(c, t->count);
    ingot_dtype dtype = ingot_dtype_of(t->input);
    ingot_tensor *flat = ingot_reshape(c, t->input, 1, &all);
    ingot_dim *one = ingot_dim_const(c, 1);
    for (int k = 0; k < t->count; k++)
        part[k] = t->known[k] ? ingot_reshape(c, ingot_scalar_i(c, dtype, t->value[k]), 1, &one)
                              : ingot_slice(c, flat, 0, ingot_dim_const(c, k), one, 1);
    shape_of(t->input, dims);
    return ingot_reshape(c, ingot_concat(c, t->count, part, 0), ingot_rank(t->input), dims);
}

ingot_tensor *as_told(Lowering *n, ingot_tensor *value)
{
    const Onnx__GraphProto *g = n->model->file->model->graph;
    ToldWalk w = {.model = n->model, .scope = n->scope};
    while (w.scope->outer || w.scope->caller)
        w.scope = w.scope->outer ? w.scope->outer : w.scope->caller->scope;
    GraphLevel main = {NULL, g};
    for (int i = 0; i < n->model->n_outputs; i++) {
        const ingot_model_io *io = &n->model->outputs[i];
        if (io->kind == INGOT_MODEL_TENSOR && io->rank >= 0)
            tell_shape(&w, &main, io->name, io->rank, io->dims);
    }
    for (const Told *t = w.told; t; t = t->next)
        value = ingot_assuming(n->c, value, t->input, told_input(&w, t));
    return value;
}
