/*
 * onnx_dims.c - what --dim says: sizes and bounds of free dims of inputs, and whether every option
 * means something.
 *
 * An option names a free dim (by the file's name, or x_0), the value of an integer tensor, or the
 * size of a tensor along an axis (TENSOR_AXIS; onnx_size.c does what it says). One that could do
 * nothing is an error, and all errors are told at once: a name that nothing has, an axis that the
 * file fixes, an axis that is a free dim of another name.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.h"

/* ---- free dims ------------------------------------------------------------------------------ */

bool is_free_dim(const Model *m, const char *name)
{
    for (int i = 0; i < m->n_inputs; i++)
        for (int a = 0; a < m->inputs[i].rank; a++)
            if (m->inputs[i].dims[a] < 0 && strcmp(m->inputs[i].dim_names[a], name) == 0)
                return true;
    return is_state_dim(m, name);
}

/* What --dim says of a dim, or of one that it says is the same. */
static const ingot_model_dim *free_dim_option(Model *m, const char *name)
{
    const ingot_model_dim *d = dim_option(m, name);
    for (int i = 0; d && d->same_as && i < m->options->n_dims; i++)
        d = dim_option(m, d->same_as);
    return d && d->same_as ? NULL : d;
}

/* The name by which a free dim is known: that of the dim which --dim a=b says it equals. */
static const char *dim_name(Model *m, const char *name)
{
    const ingot_model_dim *d = dim_option(m, name);
    for (int i = 0; d && d->same_as && i < m->options->n_dims; i++) {
        name = d->same_as;
        d = dim_option(m, name);
    }
    return name;
}

const ingot_model_dim *free_bounds(Model *m, const char *input, const char *name)
{
    const ingot_model_dim *d = free_dim_option(m, name);
    if (!d)
        ingot_error(m->c, INGOT_UNSUPPORTED,
                    "the dim '%s' of input '%s' is free: give its value or its bounds by "
                    "--dim %s=value or --dim %s=lo..hi",
                    name, input, name, name);
    return d;
}

ingot_dim *free_dim(Model *m, const char *input, const char *name)
{
    const ingot_model_dim *d = free_bounds(m, input, name);
    if (!d)
        return NULL;
    return d->lo == d->hi ? ingot_dim_const(m->c, d->lo)
                          : ingot_dim_var(m->c, dim_name(m, name), d->lo, d->hi);
}

static bool named_before(Model *m, int input, int axis)
{
    const char *name = dim_name(m, m->inputs[input].dim_names[axis]);
    for (int i = 0; i <= input; i++)
        for (int a = 0;
             !find_bind(m, m->inputs[i].name) && a < (i < input ? m->inputs[i].rank : axis); a++)
            if (m->inputs[i].dims[a] < 0 && !strcmp(dim_name(m, m->inputs[i].dim_names[a]), name))
                return true;
    return false;
}

/* Does a shell take such a name as it is? */
static bool shell_word(const char *name)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_-./:,+@%";
    return name[strspn(name, plain)] == 0;
}

/* False and one error for all: free dims of which nothing is said. */
bool free_dims_given(Model *m, ingot_status fault)
{
    for (int i = 0; m->options && i < m->options->n_dims; i++)
        if (m->options->dims[i].same_as && !is_free_dim(m, m->options->dims[i].same_as))
            return true; /* which has been told, and what is missing beside it cannot be said */
    char *list = ingot_alloc(m->c, 1), *flags = list, *more;
    int count = 0;
    for (int i = 0; i < m->n_inputs; i++) {
        if (m->inputs[i].kind != INGOT_MODEL_TENSOR || find_bind(m, m->inputs[i].name))
            continue;
        for (int a = 0; a < m->inputs[i].rank; a++) {
            const char *name = m->inputs[i].dim_names[a];
            if (m->inputs[i].dims[a] >= 0 || free_dim_option(m, name) || named_before(m, i, a))
                continue;
            name = dim_name(m, name);
            size_t room =
                strlen(list) + strlen(flags) + 2 * strlen(name) + strlen(m->inputs[i].name) + 64;
            more = ingot_alloc(m->c, room);
            snprintf(more, room, "%s%s'%s' of input '%s'", list, count ? ", " : "", name,
                     m->inputs[i].name);
            list = more;
            more = ingot_alloc(m->c, room);
            const char *quote = shell_word(name) ? "" : "'";
            snprintf(more, room, "%s%s--dim %s%s=1..16%s", flags, count++ ? " " : "", quote, name,
                     quote);
            flags = more;
        }
    }
    if (count)
        ingot_error(m->c, fault, "%s free: %s; a value or bounds for each: %s",
                    count == 1 ? "a dim is" : "dims are", list, flags);
    return !count;
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool is_value_of(const Onnx__GraphProto *g, const char *name);

static bool is_value_of_nodes(size_t n, Onnx__NodeProto *const *node, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < node[i]->n_output; k++)
            if (!strcmp(node[i]->output[k], name))
                return true;
        for (size_t a = 0; a < node[i]->n_attribute; a++) {
            const Onnx__AttributeProto *attr = node[i]->attribute[a];
            for (size_t k = 0; k < attr->n_graphs; k++)
                if (is_value_of(attr->graphs[k], name))
                    return true;
            if (attr->g && is_value_of(attr->g, name))
                return true;
        }
    }
    return false;
}

/* The depth is bounded by that of the file's messages. */
static bool is_value_of(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_input; i++)
        if (!strcmp(g->input[i]->name, name))
            return true;
    for (size_t i = 0; i < g->n_initializer; i++)
        if (!strcmp(g->initializer[i]->name, name))
            return true;
    for (size_t i = 0; i < g->n_sparse_initializer; i++)
        if (g->sparse_initializer[i]->values &&
            !strcmp(g->sparse_initializer[i]->values->name, name))
            return true;
    return is_value_of_nodes(g->n_node, g->node, name);
}

/* Has any tensor of the file that name? An element of a sequence (x[0]) counts as it. */
static bool is_value(const Model *m, const char *name)
{
    const Onnx__ModelProto *model = m->file->model;
    if (is_value_of(model->graph, name))
        return true;
    for (size_t i = 0; i < model->n_functions; i++) {
        const Onnx__FunctionProto *f = model->functions[i];
        for (size_t k = 0; k < f->n_input; k++)
            if (!strcmp(f->input[k], name))
                return true;
        if (is_value_of_nodes(f->n_node, f->node, name))
            return true;
    }
    return false;
}

/* "x_2" -> "x" and 2; NULL: it does not end so. What stands in brackets behind it is left out:
 * "x[1]_2". */
static const char *tensor_of(Model *m, const char *name, int *axis)
{
    const char *bar = strrchr(name, '_');
    char *end, *tensor;
    if (!bar || bar == name || bar[1] < '0' || bar[1] > '9')
        return NULL;
    unsigned long v = strtoul(bar + 1, &end, 10);
    if (*end || v > INT32_MAX)
        return NULL;
    *axis = (int)v;
    tensor = ingot_alloc(m->c, (size_t)(bar - name) + 1);
    memcpy(tensor, name, (size_t)(bar - name));
    return tensor;
}

static bool is_group_part(const Model *m, const char *name)
{
    for (int i = 0; i < m->n_inputs; i++) {
        size_t n = strlen(m->inputs[i].name);
        if (m->inputs[i].kind != INGOT_MODEL_TENSOR && !strncmp(name, m->inputs[i].name, n) &&
            (!name[n] || name[n] == '[' || name[n] == '_'))
            return true;
    }
    return false;
}

static const ingot_model_io *tensor_input(const Model *m, const char *name)
{
    for (int i = 0; i < m->n_inputs; i++)
        if (m->inputs[i].kind == INGOT_MODEL_TENSOR && !strcmp(m->inputs[i].name, name))
            return &m->inputs[i];
    for (int i = 0; i < m->n_states; i++)
        if (!strcmp(m->state_inputs[i].name, name))
            return &m->state_inputs[i];
    return NULL;
}

/* ---- options -------------------------------------------------------------------------------- */

/* "--dim x_0=1..8" */
static const char *dim_text(Model *m, const ingot_model_dim *d)
{
    size_t room = strlen(d->name) + (d->same_as ? strlen(d->same_as) : 48) + 16;
    char *text = ingot_alloc(m->c, room);
    if (d->same_as)
        snprintf(text, room, "--dim %s=%s", d->name, d->same_as);
    else if (d->lo == d->hi)
        snprintf(text, room, "--dim %s=%lld", d->name, (long long)d->lo);
    else
        snprintf(text, room, "--dim %s=%lld..%lld", d->name, (long long)d->lo, (long long)d->hi);
    return text;
}

IMPORT_PRINTF(3, 4)
static bool dim_fault(Model *m, const ingot_model_dim *d, const char *format, ...)
{
    char why[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(why, sizeof why, format, ap);
    va_end(ap);
    ingot_error(m->c, INGOT_USAGE, "%s: %s", dim_text(m, d), why);
    return false;
}

/* The free dims of the model, for a message: ": 'batch', 'n'". */
static const char *free_dim_list(Model *m)
{
    char *list = ingot_alloc(m->c, 1);
    int count = 0;
    for (int i = 0; i < m->n_inputs && count < 8; i++)
        for (int a = 0; a < m->inputs[i].rank && count < 8; a++) {
            const char *name = m->inputs[i].dim_names[a];
            if (m->inputs[i].dims[a] >= 0 || named_before(m, i, a))
                continue;
            size_t room = strlen(list) + strlen(name) + 16;
            char *more = ingot_alloc(m->c, room);
            snprintf(more, room, "%s%s'%s'", list, count++ ? ", " : "", name);
            list = more;
        }
    if (!count)
        return "it has no free dims at all";
    size_t room = strlen(list) + 32;
    char *text = ingot_alloc(m->c, room);
    snprintf(text, room, "its free dims are %s", list);
    return text;
}

/* Is that name a free dim? If not, an error says what it is. */
static bool names_free_dim(Model *m, const ingot_model_dim *d, const char *name)
{
    int axis;
    if (is_free_dim(m, name))
        return true;
    const char *tensor = tensor_of(m, name, &axis);
    const ingot_model_io *io = tensor ? tensor_input(m, tensor) : NULL;
    if (io && axis < io->rank && io->dims[axis] >= 0)
        return dim_fault(m, d, "'%s' is no free dim: the file fixes it to %lld", name,
                         (long long)io->dims[axis]);
    if (io && axis < io->rank)
        return dim_fault(m, d, "the free dim '%s' has the name '%s'", name, io->dim_names[axis]);
    return dim_fault(m, d, "no input has a free dim '%s'; %s", name, free_dim_list(m));
}

/* TENSOR_AXIS of an input. */
static bool input_axis_good(Model *m, const ingot_model_dim *d, const ingot_model_io *io, int axis)
{
    if (io->rank < 0 || find_bind(m, io->name)) /* what is known of it is compared */
        return true;
    if (axis >= io->rank)
        return dim_fault(m, d, "the input '%s' has %d dims", io->name, io->rank);
    if (io->dims[axis] < 0 && !dim_option(m, io->dim_names[axis]))
        return dim_fault(m, d, "that dim of the input '%s' has the name '%s'", io->name,
                         io->dim_names[axis]);
    if (io->dims[axis] < 0 || (d->lo == d->hi && d->lo == io->dims[axis]))
        return true;
    return dim_fault(m, d,
                     "the file fixes axis %d of the input '%s' to %lld; only what is free in the "
                     "file can have another size, or bounds; %s",
                     axis, io->name, (long long)io->dims[axis], free_dim_list(m));
}

static bool dim_option_good(Model *m, const ingot_model_dim *d)
{
    int axis = 0;
    if (d->same_as) {
        bool first = names_free_dim(m, d, d->name), second = names_free_dim(m, d, d->same_as);
        if (first && second && !strcmp(d->name, d->same_as))
            return dim_fault(m, d, "that is one dim, not two");
        return first && second;
    }
    if (d->hi < d->lo)
        return dim_fault(m, d, "these are no bounds");
    if (!is_free_dim(m, d->name) && is_value(m, d->name))
        return true;
    if (d->lo < 0)
        return dim_fault(m, d, "only the value of a tensor can be less than 0, not a size");
    if (is_free_dim(m, d->name) || is_group_part(m, d->name))
        return true;
    const char *tensor = tensor_of(m, d->name, &axis);
    const ingot_model_io *io = tensor ? tensor_input(m, tensor) : NULL;
    if (io)
        return input_axis_good(m, d, io, axis);
    if (tensor && is_value(m, tensor))
        return true;
    return dim_fault(m, d,
                     "no input has a free dim of that name, and no tensor has that name (or "
                     "TENSOR_AXIS); %s",
                     free_dim_list(m));
}

bool bind_fits_dims(Model *m, const ingot_model_io *io, const ingot_model_bind *b)
{
    for (int a = 0; a < io->rank; a++) {
        const ingot_model_dim *d = io->dims[a] < 0 ? free_dim_option(m, io->dim_names[a]) : NULL;
        if (d && (b->dims[a] < d->lo || b->dims[a] > d->hi))
            return dim_fault(m, d, "the value given for input '%s' has %lld elements along axis %d",
                             io->name, (long long)b->dims[a], a);
    }
    return true;
}

bool dim_options_good(Model *m)
{
    bool ok = true;
    for (int i = 0; m->options && i < m->options->n_dims; i++) {
        const ingot_model_dim *d = &m->options->dims[i];
        ok &= dim_option_good(m, d);
        for (int k = 0; k < i; k++)
            if (!strcmp(m->options->dims[k].name, d->name)) {
                ingot_error(m->c, INGOT_USAGE, "--dim %s is given twice", d->name);
                ok = false;
            }
    }
    return ok;
}

/* Whatever is left named nothing. */
bool dim_options_used(Model *m)
{
    bool ok = true;
    for (int i = 0; m->options && i < m->options->n_dims; i++)
        if (!m->dim_used[i] && !is_free_dim(m, m->options->dims[i].name)) {
            ingot_error(m->c, INGOT_USAGE,
                        "--dim %s: no input has a free dim of that name, and no tensor has that "
                        "name (or TENSOR_AXIS)",
                        m->options->dims[i].name);
            ok = false;
        }
    return ok;
}
