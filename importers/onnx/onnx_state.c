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

/* The text that `*` stands for in a name, or NULL; *n: its length. */
static const char *matched(const char *pattern, const char *name, size_t *n)
{
    const char *star = strchr(pattern, '*');
    const size_t before = (size_t)(star - pattern), behind = strlen(star + 1), all = strlen(name);
    if (all < before + behind || strncmp(name, pattern, before) != 0 ||
        strcmp(name + all - behind, star + 1) != 0)
        return NULL;
    *n = all - before - behind;
    return name + before;
}

static const char *with_text(ingot_context *c, const char *pattern, const char *text, size_t n)
{
    const size_t before = strcspn(pattern, "*"), size = strlen(pattern) + n;
    char *name = ingot_alloc(c, size);
    memcpy(name, pattern, before);
    memcpy(name + before, text, n);
    memcpy(name + before + n, pattern + before + 1, size - before - n);
    return name;
}

/* One pair for each input that the pattern fits; no name has a `*` then. */
static int pairs_of(ingot_onnx *m, const ingot_model_state *s, ingot_model_state *pair)
{
    int count = 0;
    if (!strchr(s->input, '*') || !strchr(s->output, '*') ||
        find_io(m->inputs, m->n_inputs, s->input) >= 0) {
        pair[0] = *s;
        return 1;
    }
    for (int i = 0; i < m->n_inputs; i++) {
        size_t n;
        const char *name = m->inputs[i].name, *text = matched(s->input, name, &n);
        if (text)
            pair[count++] = (ingot_model_state){name, with_text(m->c, s->output, text, n)};
    }
    if (!count)
        pair[0] = *s;
    return count ? count : 1;
}

static bool add_state(ingot_onnx *m, const ingot_model_state *s)
{
    int in = find_io(m->inputs, m->n_inputs, s->input);
    int out = find_io(m->outputs, m->n_outputs, s->output);
    if (in < 0 || out < 0) {
        ingot_error(m->c, INGOT_USAGE, "--state %s=%s: the model has no %s '%s'", s->input,
                    s->output, in < 0 ? "input" : "output", in < 0 ? s->input : s->output);
        return false;
    }
    const ingot_model_io *io = &m->inputs[in];
    if (io->kind != INGOT_MODEL_TENSOR || io->rank < 0) {
        ingot_error(m->c, INGOT_UNSUPPORTED,
                    "--state %s=%s: '%s' is no tensor whose dims are declared", s->input, s->output,
                    io->name);
        return false;
    }
    m->states[m->n_states] = *s;
    m->state_inputs[m->n_states++] = *io;
    remove_io(m->inputs, &m->n_inputs, in);
    remove_io(m->outputs, &m->n_outputs, out);
    return true;
}

bool ingot_onnx_set_states(ingot_onnx *m, const ingot_model_state *states, int n)
{
    const size_t most = (size_t)n + (size_t)m->n_inputs + 1;
    ingot_model_state *pair = ingot_alloc(m->c, most * sizeof *pair);
    m->states = ingot_alloc(m->c, most * sizeof *m->states);
    m->state_inputs = ingot_alloc(m->c, most * sizeof *m->state_inputs);
    m->state_tensors = ingot_alloc(m->c, most * sizeof(ingot_tensor *));
    for (int i = 0; i < n; i++)
        for (int j = 0, count = pairs_of(m, &states[i], pair); j < count; j++)
            if (!add_state(m, &pair[j]))
                return false;
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
