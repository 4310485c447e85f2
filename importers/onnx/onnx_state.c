/*
 * onnx_state.c - inputs and outputs that are one tensor, which lives in the context from run to
 * run.
 *
 * A decoder's cache comes in and goes out again, with a row more.  As a state it stays where it is:
 * a free dim of the input is its length, which is 0 at first and grows.
 */
#include <string.h>

#include "onnx.h"

static int find_io(const ingot_model_io *io, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(io[i].name, name))
            return i;
    return -1;
}

static void remove_io(ingot_model_io *io, int *n, int i)
{
    memmove(io + i, io + i + 1, (size_t)(*n - i - 1) * sizeof *io);
    (*n)--;
}

bool ingot_onnx_set_states(ingot_onnx *m, const ingot_model_state *states, int n)
{
    m->states = states;
    m->state_inputs = ingot_alloc(m->c, ((size_t)n + 1) * sizeof *m->state_inputs);
    m->state_tensors = ingot_alloc(m->c, ((size_t)n + 1) * sizeof(ingot_tensor *));
    for (int i = 0; i < n; i++) {
        int in = find_io(m->inputs, m->n_inputs, states[i].input);
        int out = find_io(m->outputs, m->n_outputs, states[i].output);
        if (in < 0 || out < 0) {
            ingot_error(m->c, INGOT_USAGE, "--state %s=%s: the model has no %s '%s'",
                        states[i].input, states[i].output, in < 0 ? "input" : "output",
                        in < 0 ? states[i].input : states[i].output);
            return false;
        }
        const ingot_model_io *io = &m->inputs[in];
        if (io->kind != INGOT_MODEL_TENSOR || io->rank < 0) {
            ingot_error(m->c, INGOT_UNSUPPORTED,
                        "--state %s=%s: '%s' is no tensor whose dims are declared", states[i].input,
                        states[i].output, io->name);
            return false;
        }
        m->state_inputs[m->n_states++] = *io;
        remove_io(m->inputs, &m->n_inputs, in);
        remove_io(m->outputs, &m->n_outputs, out);
    }
    return true;
}

bool is_state_dim(const Model *m, const char *name)
{
    for (int i = 0; i < m->n_states; i++)
        for (int a = 0; a < m->state_inputs[i].rank; a++)
            if (m->state_inputs[i].dims[a] < 0 && !strcmp(m->state_inputs[i].dim_names[a], name))
                return true;
    return false;
}

bool declare_states(Model *m, Scope *s)
{
    bool ok = true;
    for (int i = 0; i < m->n_states; i++) {
        const ingot_model_io *io = &m->state_inputs[i];
        ingot_dim *dims[INGOT_MAX_RANK];
        bool known = true;
        for (int a = 0; a < io->rank && known; a++) {
            dims[a] = io->dims[a] >= 0 ? ingot_dim_const(m->c, io->dims[a])
                                       : free_dim(m, io->name, io->dim_names[a]);
            known = dims[a] != NULL;
        }
        ingot_tensor *t = known ? ingot_growing_state(m->c, io->name, io->dtype, io->rank, dims)
                                : ingot_poison(m->c);
        m->state_tensors[i] = t;
        ok &= !ingot_is_poison(t) && scope_define(m, s, io->name, value_tensor(m->c, t));
    }
    return ok;
}

bool update_states(Model *m, Scope *s)
{
    for (int i = 0; i < m->n_states; i++) {
        const ingot_model_state *pair = &m->states[i];
        Value *v = scope_find(m, s, pair->output);
        ingot_tensor *was = m->state_tensors[i];
        bool same = v && v->kind == VALUE_TENSOR && !ingot_is_poison(v->tensor) &&
                    ingot_dtype_of(v->tensor) == ingot_dtype_of(was) &&
                    ingot_rank(v->tensor) == ingot_rank(was);
        for (int a = 0; same && a < ingot_rank(was); a++)
            same = !ingot_dim_is_const(ingot_shape(was, a), NULL) || /* a length */
                   ingot_dim_equal(ingot_shape(v->tensor, a), ingot_shape(was, a));
        if (!same) {
            ingot_error(m->c, INGOT_UNSUPPORTED,
                        "--state %s=%s: the output has another type or shape than the input; a "
                        "state keeps its size, but for free dims of the input",
                        pair->input, pair->output);
            return false;
        }
        ingot_state_next(m->c, was, v->tensor);
    }
    return true;
}
