/*
 * onnx_own_step.c - a step of training that the file itself has: TrainingInfoProto of the standard.
 *
 *     initialization   a graph without inputs; what it makes are first values of initializers
 *     algorithm        a graph behind the model's own, with inputs and initializers of its own:
 *                      the loss, a node Gradient, the optimizer
 *     update_binding   an initializer of either graph, and the value that it has after a step
 *
 * What is bound is a state, of that name. Inference reads those of the model's graph; a step has
 * the nodes of both graphs. Random first values are drawn when the model is compiled, each time the
 * same.
 */
#include <string.h>

#include "onnx.h"

static const Onnx__TrainingInfoProto *info_of(const Model *m)
{
    return m->file->model->n_training_info ? m->file->model->training_info[0] : NULL;
}

const Onnx__GraphProto *own_step(const Model *m)
{
    const Onnx__TrainingInfoProto *info = info_of(m);
    return info && info->n_update_binding ? info->algorithm : NULL;
}

static bool step_fault(Model *m, const char *name, const char *why)
{
    ingot_set_origin(m->c, NULL, NULL);
    ingot_error(m->c, INGOT_INVALID, "TrainingInfoProto: '%s' %s", name, why);
    return false;
}

/* ---- first values ---------------------------------------------------------------------------- */

/* A message of the context in which the initialization is run. */
static void pass_on(void *user, ingot_level level, const char *message)
{
    ingot_context *outside = user;
    if (level == INGOT_ERROR)
        ingot_error(outside, INGOT_INVALID, "initialization: %s", message);
    else
        ingot_warning(outside, "initialization: %s", message);
}

/* The value, in the memory of `to`. */
static void keep_value(ingot_context *to, const ingot_value *v, ingot_value *kept)
{
    size_t bytes = ingot_dtype_bytes(v->dtype);
    for (int a = 0; a < v->rank; a++)
        bytes *= (size_t)v->dims[a];
    void *data = ingot_alloc(to, bytes + 1);
    if (bytes)
        memcpy(data, v->data, bytes);
    *kept = *v;
    kept->data = data;
}

/* Runs the initialization in a context of its own, m->c for as long. */
static bool run_initialization(Model *m, ingot_context *to, ingot_value *value)
{
    const Onnx__TrainingInfoProto *info = info_of(m);
    Scope *s = ingot_alloc(m->c, sizeof *s);
    *s = (Scope){.n_opset = m->file->model->n_opset_import, .opset = m->file->model->opset_import};
    const size_t n = info->n_initialization_binding;
    ingot_value *out = ingot_alloc(m->c, (n + 1) * sizeof *out);
    bool good =
        scope_initializers(m, s, info->initialization) && build_graph(m, s, info->initialization);
    for (size_t i = 0; i < n && good; i++) {
        char name[32];
        const Value *v = scope_find(m, s, info->initialization_binding[i]->value);
        good = v && v->kind == VALUE_TENSOR && !ingot_is_poison(v->tensor);
        snprintf(name, sizeof name, "value %zu", i);
        if (good)
            ingot_output(m->c, name, v->tensor);
        else if (!ingot_error_count(m->c))
            ingot_error(m->c, INGOT_INVALID, "there is no tensor '%s'",
                        info->initialization_binding[i]->value);
    }
    good = good && ingot_interpret(m->c, 0, NULL, (int)n, out) == INGOT_OK;
    for (size_t i = 0; i < n && good; i++)
        keep_value(to, &out[i], &value[i]);
    return good;
}

/* All first values, once. */
static bool first_values(Model *m)
{
    const Onnx__TrainingInfoProto *info = info_of(m);
    if (m->first_values || !info->n_initialization_binding)
        return true;
    if (!info->initialization)
        return step_fault(m, info->initialization_binding[0]->key,
                          "is to have a value of an initialization that there is not");
    ingot_context *outside = m->c;
    ingot_value *value = ingot_alloc(outside, info->n_initialization_binding * sizeof *value);
    ingot_context *inside = ingot_context_new(pass_on, outside);
    m->c = inside;
    const bool good = run_initialization(m, outside, value);
    m->c = outside;
    ingot_context_free(inside);
    m->first_values = value;
    return good;
}

/* What the initializer begins as: data, or what the initialization made. NULL after an error. */
static ingot_tensor *first_value(Model *m, const char *name, ingot_tensor *data)
{
    const Onnx__TrainingInfoProto *info = info_of(m);
    for (size_t i = 0; i < info->n_initialization_binding; i++) {
        const ingot_value *v = &m->first_values[i];
        int64_t dims[INGOT_MAX_RANK];
        if (strcmp(info->initialization_binding[i]->key, name) != 0)
            continue;
        ingot_static_shape(data, dims);
        if (v->dtype != ingot_dtype_of(data) || v->rank != ingot_rank(data) ||
            (v->rank && memcmp(v->dims, dims, (size_t)v->rank * sizeof *dims) != 0)) {
            step_fault(m, name, "is initialised as another type or shape than it has");
            return NULL;
        }
        return ingot_data(m->c, NULL, v->dtype, v->rank, v->dims, v->data);
    }
    return data;
}

/* ---- states ---------------------------------------------------------------------------------- */

/* The name is an initializer of this function. */
static bool is_initializer_of(const Model *m, const char *name, bool step)
{
    const Onnx__GraphProto *graph[] = {m->file->model->graph, own_step(m)};
    return initializer_named(graph[0], name) || (step && initializer_named(graph[1], name));
}

static bool bindings_good(Model *m)
{
    const Onnx__TrainingInfoProto *info = info_of(m);
    Names keys = {0};
    if (m->file->model->n_training_info > 1) {
        ingot_error(m->c, INGOT_UNSUPPORTED,
                    "the file has %zu steps (TrainingInfoProto), of which one is supported",
                    m->file->model->n_training_info);
        return false;
    }
    for (size_t i = 0; i < info->n_update_binding; i++) {
        const char *key = info->update_binding[i]->key;
        if (names_get(&keys, key))
            return step_fault(m, key, "is given two new values");
        if (!is_initializer_of(m, key, true))
            return step_fault(m, key, "is given a new value, and is no initializer");
        names_put(m->c, &keys, key, m);
    }
    for (size_t i = 0; i < info->n_initialization_binding; i++)
        if (!names_get(&keys, info->initialization_binding[i]->key))
            return step_fault(m, info->initialization_binding[i]->key,
                              "is initialised, and no step gives it a value");
    return true;
}

bool take_updated(Model *m, Scope *s)
{
    const ingot_model_training *training = m->options->training;
    const Onnx__TrainingInfoProto *info = info_of(m);
    if (!bindings_good(m) || !first_values(m) ||
        (training->step && !scope_initializers(m, s, info->algorithm)))
        return false;
    for (size_t i = 0; i < info->n_update_binding; i++) {
        const char *key = info->update_binding[i]->key;
        if (!is_initializer_of(m, key, training->step))
            continue;
        Value *v = scope_find(m, s, key);
        if (!v || v->kind != VALUE_TENSOR || ingot_is_poison(v->tensor))
            return false;
        ingot_tensor *data = first_value(m, key, v->tensor);
        const ingot_model_weight w = {.name = key, .wanted = true};
        if (!data)
            return false;
        v->tensor = training->weight(training->user, &w, data);
        if (ingot_is_poison(v->tensor))
            return false;
    }
    return true;
}

/* ---- the step -------------------------------------------------------------------------------- */

static bool is_new_value(const Model *m, const char *name)
{
    const Onnx__TrainingInfoProto *info = info_of(m);
    for (size_t i = 0; i < info->n_update_binding; i++)
        if (!strcmp(info->update_binding[i]->value, name))
            return true;
    return false;
}

/* Outputs of the algorithm that are no new values. */
static bool step_outputs(Model *m, Scope *s)
{
    const Onnx__GraphProto *g = own_step(m);
    int n = 0;
    for (size_t i = 0; i < g->n_output; i++) {
        const char *name = g->output[i]->name;
        const Value *v = scope_find(m, s, name);
        if (is_new_value(m, name))
            continue;
        if (!v || v->kind != VALUE_TENSOR)
            return step_fault(m, name, "is an output of the algorithm, and no tensor");
        if (ingot_is_poison(v->tensor))
            return false;
        ingot_output(m->c, name, v->tensor);
        n++;
    }
    m->n_outputs = n ? 0 : m->n_outputs; /* those of the network, where there are no others */
    return true;
}

static bool new_value(Model *m, Scope *s, const Onnx__StringStringEntryProto *binding)
{
    const Value *state = scope_find(m, s, binding->key), *next = scope_find(m, s, binding->value);
    if (!next || next->kind != VALUE_TENSOR)
        return step_fault(m, binding->value, "is to be a new value, and no tensor");
    if (ingot_is_poison(next->tensor) || ingot_is_poison(state->tensor))
        return false;
    bool same = ingot_dtype_of(next->tensor) == ingot_dtype_of(state->tensor) &&
                ingot_rank(next->tensor) == ingot_rank(state->tensor);
    for (int a = 0; same && a < ingot_rank(state->tensor); a++)
        same = ingot_dim_equal(ingot_shape(next->tensor, a), ingot_shape(state->tensor, a));
    if (!same)
        return step_fault(m, binding->key, "is given a new value of another type or shape");
    ingot_state_next(m->c, state->tensor, next->tensor);
    return true;
}

bool build_own_step(Model *m, Scope *s)
{
    const Onnx__TrainingInfoProto *info = info_of(m);
    bool good = build_graph(m, s, info->algorithm);
    ingot_set_origin(m->c, NULL, NULL);
    good = good && step_outputs(m, s);
    for (size_t i = 0; i < info->n_update_binding && good; i++)
        good = new_value(m, s, info->update_binding[i]);
    return good;
}
