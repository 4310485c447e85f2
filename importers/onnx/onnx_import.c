/*
 * onnx_import.c - the importer's public face: opening a model, what its inputs are, whether all of
 * its nodes can be lowered, and building it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "onnx.h"

#define ONNX_OP(domain, name, since, min_in, max_in, max_out, flags, lower) \
    {domain, #name, since, min_in, max_in, max_out, flags, onnx_##lower},
static const OpEntry op_table[] = {
#include "onnx_ops.def"
};

const OpEntry *onnx_op_find(const char *domain, const char *name)
{
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    for (int i = 0; i < COUNT(op_table); i++)
        if (strcmp(op_table[i].name, name) == 0 && strcmp(op_table[i].domain, domain) == 0)
            return &op_table[i];
    return NULL;
}

bool onnx_op_at(int i, ImportedOp *op)
{
    if (i < 0 || i >= COUNT(op_table))
        return false;
    const OpEntry *e = &op_table[i];
    *op = (ImportedOp){
        .domain = *e->domain ? e->domain : "ai.onnx",
        .name = e->name,
        .since = e->since,
        .least = e->min_in,
        .most = e->max_in,
    };
    snprintf(op->inputs, sizeof op->inputs, "%s", schema_inputs(e->domain, e->name));
    return true;
}

bool ingot_onnx_dtype(int32_t onnx, ingot_dtype *out)
{
    /* indexed by TensorProto.DataType */
    static const struct {
        ingot_dtype dtype;
        bool known;
    } table[] = {
        [1] = {INGOT_F32, true},       [2] = {INGOT_U8, true},
        [3] = {INGOT_I8, true},        [4] = {INGOT_U16, true},
        [5] = {INGOT_I16, true},       [6] = {INGOT_I32, true},
        [7] = {INGOT_I64, true},       [8] = {INGOT_STRING, true},
        [9] = {INGOT_BOOL, true},      [10] = {INGOT_F16, true},
        [11] = {INGOT_F64, true},      [12] = {INGOT_U32, true},
        [13] = {INGOT_U64, true},      [14] = {INGOT_C64, true},
        [15] = {INGOT_C128, true},     [16] = {INGOT_BF16, true},
        [17] = {INGOT_F8E4M3FN, true}, [18] = {INGOT_F8E4M3FNUZ, true},
        [19] = {INGOT_F8E5M2, true},   [20] = {INGOT_F8E5M2FNUZ, true},
        [21] = {INGOT_U4, true},       [22] = {INGOT_I4, true},
        [23] = {INGOT_F4E2M1, true},   [24] = {INGOT_F8E8M0, true},
        [25] = {INGOT_U2, true},       [26] = {INGOT_I2, true},
    };
    if (onnx < 0 || onnx >= COUNT(table) || !table[onnx].known)
        return false;
    *out = table[onnx].dtype;
    return true;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* The file layer's messages are whole lines: no origin is put before them. */
static void report_line(void *user, const char *message)
{
    ingot_onnx *m = user;
    ingot_set_file(m->c, NULL);
    ingot_set_origin(m->c, NULL, NULL);
    ingot_error(m->c, INGOT_INVALID, "%s", message);
    if (m->file)
        ingot_set_file(m->c, m->file->path);
}

/* The type of the tensors that a value is or holds: a tensor, a sequence of tensors, or an optional
 * of one of these. */
static const Onnx__TypeProto *tensor_type(const Onnx__TypeProto *t, ingot_model_io *io)
{
    io->kind = INGOT_MODEL_TENSOR;
    if (t && t->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE) {
        io->kind = INGOT_MODEL_OPTIONAL;
        t = t->optional_type->elem_type;
    }
    if (t && t->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) {
        io->kind = io->kind == INGOT_MODEL_TENSOR ? INGOT_MODEL_SEQUENCE : io->kind;
        io->sequence = true;
        t = t->sequence_type->elem_type;
    }
    if (t && t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return t;
    io->kind = INGOT_MODEL_OTHER;
    return NULL;
}

/* False if the rank or a dim cannot be. */
static bool describe(ingot_onnx *m, const Onnx__ValueInfoProto *info, ingot_model_io *io)
{
    *io = (ingot_model_io){.name = info->name, .value = info->name, .rank = -1, .dtype = INGOT_F32};
    const Onnx__TypeProto *t = tensor_type(info->type, io);
    if (!info->type || info->type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET) {
        io->undeclared = true;
        return true;
    }
    if (!t || !ingot_onnx_dtype(t->tensor_type->elem_type, &io->dtype)) {
        io->kind = INGOT_MODEL_OTHER;
        return true;
    }
    const Onnx__TensorShapeProto *shape = t->tensor_type->shape;
    if (!shape)
        return true;
    if (shape->n_dim > INGOT_MAX_RANK) {
        ingot_error(m->c, INGOT_UNSUPPORTED, "'%s' has rank %zu, at most %d is supported",
                    info->name, shape->n_dim, INGOT_MAX_RANK);
        return false;
    }
    io->rank = (int)shape->n_dim;
    for (int a = 0; a < io->rank; a++) {
        const Onnx__TensorShapeProto__Dimension *d = shape->dim[a];
        io->dims[a] = -1;
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
            d->dim_value >= 0) {
            io->dims[a] = d->dim_value;
            continue;
        }
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
            d->dim_param[0] &&
            strcmp(d->dim_param, "?") != 0) { /* "?": how some writers say unknown */
            io->dim_names[a] = d->dim_param;
            continue;
        }
        size_t len = strlen(info->name) + 16;
        char *name = ingot_alloc(m->c, len);
        snprintf(name, len, "%s_%d", info->name, a);
        io->dim_names[a] = name;
    }
    return true;
}

static bool is_initializer(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        if (strcmp(g->initializer[i]->name, name) == 0)
            return true;
    for (size_t i = 0; i < g->n_sparse_initializer; i++)
        if (g->sparse_initializer[i]->values &&
            strcmp(g->sparse_initializer[i]->values->name, name) == 0)
            return true;
    return false;
}

/* A list of maps (ZipMap) comes out as the tensor of their values. */
static void take_maps(const Onnx__ValueInfoProto *info, ingot_model_io *io)
{
    const Onnx__TypeProto *t = info->type;
    if (!t || t->value_case != ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE ||
        !t->sequence_type->elem_type)
        return;
    t = t->sequence_type->elem_type;
    if (t->value_case != ONNX__TYPE_PROTO__VALUE_MAP_TYPE)
        return;
    t = t->map_type->value_type;
    if (t && t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
        ingot_onnx_dtype(t->tensor_type->elem_type, &io->dtype)) {
        io->kind = INGOT_MODEL_TENSOR;
        io->sequence = false;
    }
}

static bool is_output(const ingot_onnx *m, const char *name)
{
    const Onnx__GraphProto *g = m->file->model->graph;
    for (size_t i = 0; i < g->n_output; i++)
        if (!strcmp(g->output[i]->name, name))
            return true;
    for (int i = 0; i < m->n_outputs; i++)
        if (!strcmp(m->outputs[i].name, name))
            return true;
    return false;
}

static bool is_input(const ingot_onnx *m, const char *name)
{
    for (int i = 0; i < m->n_inputs; i++)
        if (!strcmp(m->inputs[i].name, name))
            return true;
    return false;
}

/* A value that is an output once more: y_2, y_3.. */
static void name_again(ingot_onnx *m, ingot_model_io *io)
{
    bool again = false;
    for (ingot_model_io *other = m->outputs; other < io; other++)
        again |= !strcmp(other->name, io->value);
    if (!again)
        return;
    size_t room = strlen(io->value) + 16;
    char *name = ingot_alloc(m->c, room);
    for (int k = 2; k == 2 || is_output(m, name); k++)
        snprintf(name, room, "%s_%d", io->value, k);
    io->name = name;
}

/* What a step has beside them: of artifacts the last ones, of a step of its own further ones. */
static bool describe_step(ingot_onnx *m)
{
    const Onnx__GraphProto *g = m->file->model->graph, *step = own_step(m);
    bool ok = true;
    m->run_inputs = m->step_inputs = m->n_inputs;
    m->run_outputs = m->step_outputs = m->n_outputs;
    m->own.own_step = step != NULL;
    if (m->artifacts) {
        m->n_inputs = m->run_inputs = artifacts_inputs(m);
        m->n_outputs = m->run_outputs = artifacts_outputs(m);
        artifacts_select(m, false);
    }
    for (size_t i = 0; step && i < step->n_input; i++)
        if (!is_initializer(step, step->input[i]->name) &&
            !is_initializer(g, step->input[i]->name) && !is_input(m, step->input[i]->name))
            ok &= describe(m, step->input[i], &m->inputs[m->step_inputs++]);
    return ok;
}

static bool describe_all(ingot_onnx *m)
{
    const Onnx__GraphProto *g = m->file->model->graph, *step = own_step(m);
    const size_t more = step ? step->n_input : 0;
    bool ok = true;
    m->inputs = ingot_alloc(m->c, (g->n_input + more + 1) * sizeof *m->inputs);
    m->outputs = ingot_alloc(m->c, (g->n_output + 1) * sizeof *m->outputs);
    for (size_t i = 0; i < g->n_input; i++)
        if (!is_initializer(g, g->input[i]->name))
            ok &= describe(m, g->input[i], &m->inputs[m->n_inputs++]);
    for (size_t i = 0; i < g->n_output; i++) {
        ok &= describe(m, g->output[i], &m->outputs[m->n_outputs]);
        if (m->outputs[m->n_outputs].undeclared)
            m->outputs[m->n_outputs].kind = INGOT_MODEL_TENSOR;
        take_maps(g->output[i], &m->outputs[m->n_outputs]);
        name_again(m, &m->outputs[m->n_outputs++]);
    }
    return describe_step(m) && ok;
}

ingot_onnx *ingot_onnx_open(ingot_context *c, const char *path)
{
    FILE *f = fopen(path, "rb");
    ingot_set_origin(c, NULL, NULL);
    if (!f) {
        ingot_set_file(c, NULL);
        ingot_error(c, INGOT_IO, "%s: cannot be opened: %s", path, strerror(errno));
        return NULL;
    }
    fclose(f);
    ingot_onnx *m = calloc(1, sizeof *m);
    if (!m) {
        ingot_error(c, INGOT_IO, "%s: out of memory", path);
        return NULL;
    }
    m->c = c;
    m->file = onnx_file_load(path, &(ImportSink){report_line, m});
    if (m->file) {
        ingot_set_file(c, path);
        if ((!is_training_artifact(m->file) || artifacts_open(m)) && describe_all(m))
            return m;
    }
    ingot_onnx_close(m);
    return NULL;
}

void ingot_onnx_close(ingot_onnx *m)
{
    if (!m)
        return;
    artifacts_close(m);
    onnx_file_close(m->file);
    map_free(&m->refused);
    free(m);
}

const char *ingot_onnx_file(const ingot_onnx *m, int i)
{
    if (m->artifacts)
        return i ? onnx_file_name(m->file, i - 1) : artifacts_path(m);
    return onnx_file_name(m->file, i);
}

int ingot_onnx_input_count(const ingot_onnx *m)
{
    return m->n_inputs;
}

const ingot_model_io *ingot_onnx_input(const ingot_onnx *m, int i)
{
    return &m->inputs[i];
}

int ingot_onnx_output_count(const ingot_onnx *m)
{
    return m->n_outputs;
}

const ingot_model_io *ingot_onnx_output(const ingot_onnx *m, int i)
{
    return &m->outputs[i];
}

/* ---- checking ------------------------------------------------------------------------------- */

static bool checkable_domain(const char *domain)
{
    return strcmp(domain, "") == 0 || strcmp(domain, "ai.onnx") == 0;
}

/* Imports: each domain once; the standard one within what we know, or little above. Few operators
 * change from one opset to the next, and mostly by a type or an attribute, which the check of each
 * node finds. */
static bool check_opsets(Model *m, size_t n, Onnx__OperatorSetIdProto **opset)
{
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        int64_t v = opset[i]->version;
        if (v < 1 || v > INT32_MAX) {
            ingot_error(m->c, INGOT_INVALID, "it imports version %lld of the domain '%s'",
                        (long long)v, opset[i]->domain);
            ok = false;
        } else if (checkable_domain(opset[i]->domain) && v > INGOT_ONNX_MAX_OPSET + ONNX_AHEAD) {
            ingot_error(m->c, INGOT_UNSUPPORTED, "it needs opset %lld, this compiler knows 1 to %d",
                        (long long)v, INGOT_ONNX_MAX_OPSET);
            ok = false;
        } else if (checkable_domain(opset[i]->domain) && v > INGOT_ONNX_MAX_OPSET) {
            ingot_warning(
                m->c,
                "it needs opset %lld, this compiler knows 1 to %d: its operators are taken as "
                "they are in opset %d",
                (long long)v, INGOT_ONNX_MAX_OPSET, INGOT_ONNX_MAX_OPSET);
        }
    }
    return ok;
}

const Onnx__FunctionProto *function_find(const Model *m, const Onnx__NodeProto *n)
{
    const Onnx__ModelProto *model = m->file->model;
    for (size_t i = 0; i < model->n_functions; i++) {
        const Onnx__FunctionProto *f = model->functions[i];
        if (strcmp(f->name, n->op_type) == 0 && strcmp(f->overload, n->overload) == 0 &&
            strcmp(domain_text(f->domain), domain_text(n->domain)) == 0)
            return f;
    }
    return NULL;
}

/* An operator that only models for training have, which ONNX Runtime writes: a gradient by name, or
 * an optimizer's step. */
static bool is_of_training(const Onnx__NodeProto *n)
{
    static const char *const endings[] = {"Grad",
                                          "Grad_13",
                                          "Optimizer",
                                          "OptimizerV2",
                                          "InPlaceAccumulator",
                                          "InPlaceAccumulatorV2"};
    const size_t length = strlen(n->op_type);
    bool yes = false;
    for (int i = 0; i < COUNT(endings); i++) {
        const size_t k = strlen(endings[i]);
        yes |= length >= k && !strcmp(n->op_type + length - k, endings[i]);
    }
    return yes && !strcmp(n->domain, "com.microsoft");
}

/* "; did you mean Gemm (ai.onnx, since version 1)?", where the name may be a slip: an operator of
 * that name in another domain, or the nearest one of the node's own, or a function of the file.
 * Nothing of what the standard has and this compiler lacks. */
static void meant_operator(Model *m, const Onnx__NodeProto *n, char *text, size_t bytes)
{
    const Onnx__ModelProto *model = m->file->model;
    const char *own = strcmp(n->domain, "ai.onnx") == 0 ? "" : n->domain, *function = NULL;
    const OpEntry *near = NULL;
    bool known = false;
    int best = 99;
    if (schema_knows(n->domain, n->op_type))
        return;
    for (int i = 0; i < COUNT(op_table); i++) {
        const OpEntry *e = &op_table[i];
        bool own_domain = strcmp(e->domain, own) == 0;
        known |= own_domain;
        if (strcasecmp(e->name, n->op_type) == 0 && best > 0) { /* "relu", or elsewhere */
            near = e;
            best = 0;
        } else if (own_domain && closer(n->op_type, e->name, NULL, &best)) {
            near = e;
        }
    }
    for (size_t i = 0; i < model->n_functions; i++)
        function = closer(n->op_type, model->functions[i]->name, function, &best);
    if (function)
        snprintf(text, bytes, "; did you mean %.60s, a function of the file?", function);
    else if (near)
        snprintf(text, bytes, "; did you mean %s (%s, since version %d)?", near->name,
                 domain_text(near->domain), near->since);
    else if (!known)
        snprintf(text, bytes, "; a C function of yours can be it (--op %.50s:%.50s=FILE.c)",
                 n->domain, n->op_type);
}

static bool check_node(Model *m, const Scope *s, const Onnx__NodeProto *n)
{
    ingot_set_origin(m->c, node_label(n), n->op_type);
    if (custom_find(m, n))
        return schema_attributes(m, n);
    if (function_find(m, n))
        return true;
    const OpEntry *op = onnx_op_find(n->domain, n->op_type);
    int version = scope_opset(s, n->domain);
    char meant[200] = "";
    if (!op && is_of_training(n))
        snprintf(meant, sizeof meant,
                 "; it is of ONNX Runtime's training artifacts: give the training_model.onnx among "
                 "them");
    else if (!op)
        meant_operator(m, n, meant, sizeof meant);
    if (version == 0) {
        ingot_error(m->c, INGOT_INVALID, "the model does not import the domain '%s'%s",
                    domain_text(n->domain), meant);
        return false;
    }
    if (!op && strcmp(n->domain, "com.microsoft.nchwc") == 0) {
        ingot_error(m->c, INGOT_UNSUPPORTED,
                    "operator not supported: ONNX Runtime's optimiser wrote it for one machine "
                    "(%s); save the "
                    "model at its level 'extended', not 'all'",
                    n->domain);
        return false;
    }
    if (!op) {
        ingot_error(m->c, INGOT_UNSUPPORTED, "operator not supported: %s version %d%s",
                    domain_text(n->domain), version, meant);
        return false;
    }
    if (version < op->since) {
        ingot_error(m->c, INGOT_INVALID, "the operator came with version %d of %s, not %d",
                    op->since, domain_text(n->domain), version);
        return false;
    }
    return schema_attributes(m, n);
}

bool is_refused(const Model *m, const Onnx__NodeProto *n)
{
    return map_get(&m->refused, (uintptr_t)n) != NULL;
}

static bool check_or_refuse(Model *m, const Scope *s, Onnx__NodeProto *n)
{
    if (check_node(m, s, n))
        return true;
    map_put(&m->refused, (uintptr_t)n, n);
    return false;
}

/* The depth is bounded by that of the file's messages. */
static bool check_nodes(Model *m, const Scope *s, size_t n_node, Onnx__NodeProto **node)
{
    bool ok = true;
    for (size_t i = 0; i < n_node; i++) {
        ok &= check_or_refuse(m, s, node[i]);
        for (size_t a = 0; a < node[i]->n_attribute; a++) {
            const Onnx__AttributeProto *attr = node[i]->attribute[a];
            for (size_t k = 0; k < attr->n_graphs; k++)
                ok &= check_nodes(m, s, attr->graphs[k]->n_node, attr->graphs[k]->node);
            if (attr->g)
                ok &= check_nodes(m, s, attr->g->n_node, attr->g->node);
        }
    }
    return ok;
}

static bool check_functions(Model *m)
{
    const Onnx__ModelProto *model = m->file->model;
    Names seen = {0};
    bool ok = true;
    for (size_t i = 0; i < model->n_functions; i++) {
        const Onnx__FunctionProto *f = model->functions[i];
        size_t len = strlen(f->domain) + strlen(f->name) + strlen(f->overload) + 3;
        char *key = ingot_alloc(m->c, len);
        snprintf(key, len, "%s\n%s\n%s", f->domain, f->name, f->overload);
        if (names_get(&seen, key)) {
            ingot_error(m->c, INGOT_INVALID,
                        "the function '%s' of the domain '%s' is defined twice", f->name,
                        f->domain);
            ok = false;
        }
        names_put(m->c, &seen, key, model->functions[i]);
        ok &= check_opsets(m, f->n_opset_import, f->opset_import);
    }
    return ok;
}

/* The scope of the main graph. Files of the first IR versions have no imports: opset 1. */
static Scope main_scope(const Model *m)
{
    const Onnx__ModelProto *model = m->file->model;
    if (model->n_opset_import == 0 && model->ir_version < 3) {
        Onnx__OperatorSetIdProto *first = ingot_alloc(m->c, sizeof *first);
        Onnx__OperatorSetIdProto **firsts = ingot_alloc(m->c, sizeof *firsts);
        onnx__operator_set_id_proto__init(first);
        first->version = 1;
        firsts[0] = first;
        return (Scope){.n_opset = 1, .opset = firsts};
    }
    return (Scope){.n_opset = model->n_opset_import, .opset = model->opset_import};
}

bool ingot_onnx_check(ingot_onnx *m)
{
    const Onnx__ModelProto *model = m->file->model;
    Scope s = main_scope(m);
    ingot_set_file(m->c, m->file->path);
    ingot_set_origin(m->c, NULL, NULL);
    bool ok = check_opsets(m, s.n_opset, s.opset);
    ok &= check_functions(m);
    m->hopeless = !ok;
    if (ok)
        ok = check_nodes(m, &s, model->graph->n_node, model->graph->node);
    for (size_t i = 0; !m->hopeless && i < model->n_functions; i++) {
        const Onnx__FunctionProto *f = model->functions[i];
        Scope body = {.function = f, .n_opset = f->n_opset_import, .opset = f->opset_import};
        ok &= check_nodes(m, &body, f->n_node, f->node);
    }
    ingot_set_origin(m->c, NULL, NULL);
    return ok;
}

/* ---- building ------------------------------------------------------------------------------- */

const ingot_model_bind *find_bind(const Model *m, const char *name)
{
    for (int i = 0; m->options && i < m->options->n_binds; i++)
        if (strcmp(m->options->binds[i].name, name) == 0)
            return &m->options->binds[i];
    return NULL;
}

static bool same_shape(const ingot_model_io *io, const ingot_model_bind *b)
{
    bool same = io->dtype == b->dtype && (io->rank < 0 || io->rank == b->rank);
    for (int a = 0; same && a < io->rank; a++)
        same = io->dims[a] < 0 || io->dims[a] == b->dims[a];
    return same;
}

/* Declares an input; its value, or NULL after an error. */
static ingot_tensor *declare_input(Model *m, const ingot_model_io *io)
{
    const ingot_model_bind *b = find_bind(m, io->name);
    ingot_dim *dims[INGOT_MAX_RANK];
    if (io->kind != INGOT_MODEL_TENSOR)
        return ingot_error(m->c, INGOT_UNSUPPORTED,
                           "the input '%s' is no tensor, which is not supported", io->name);
    if (b && !same_shape(io, b))
        return ingot_error(m->c, INGOT_USAGE,
                           "the value given for input '%s' has another type or shape", io->name);
    if (b && !bind_fits_dims(m, io, b))
        return ingot_poison(m->c);
    if (io->rank < 0 && !b)
        return ingot_error(m->c, INGOT_UNSUPPORTED,
                           "the input '%s' has no declared rank, which is not supported", io->name);
    int rank = b ? b->rank : io->rank;
    for (int a = 0; a < rank; a++) {
        dims[a] = b                  ? ingot_dim_const(m->c, b->dims[a])
                  : io->dims[a] >= 0 ? ingot_dim_const(m->c, io->dims[a])
                                     : free_dim(m, io->name, io->dim_names[a]);
        if (!dims[a])
            return ingot_poison(m->c);
    }
    ingot_tensor *t = ingot_input(m->c, io->name, io->dtype, rank, dims);
    if (b && b->dtype == INGOT_STRING)
        return ingot_strings(m->c, b->rank, b->dims, b->bytes);
    return b ? ingot_data(m->c, io->name, b->dtype, b->rank, b->dims, b->bytes) : t;
}

static bool declare_inputs(Model *m, Scope *s)
{
    bool ok = true;
    for (int i = 0; i < m->n_inputs; i++) {
        const ingot_model_io *io = &m->inputs[i];
        bool group = io->kind == INGOT_MODEL_SEQUENCE || io->kind == INGOT_MODEL_OPTIONAL;
        Value *v = group ? group_input(m, io) : value_tensor(m->c, declare_input(m, io));
        ok &= v && !(v->tensor && ingot_is_poison(v->tensor)) && scope_define(m, s, io->name, v);
    }
    ok &= declare_states(m, s);
    for (int i = 0; m->options && i < m->options->n_binds; i++) {
        const char *name = m->options->binds[i].name;
        bool found = false;
        for (int k = 0; k < m->n_inputs; k++)
            found |= strcmp(m->inputs[k].name, name) == 0;
        if (!found) {
            ingot_error(m->c, INGOT_USAGE, "a value is given for '%s', which is no input", name);
            ok = false;
        }
    }
    return ok;
}

/* "[2, n, ?]": what is no number has its name, if there is one. */
static const char *dims_text(Model *m, int rank, const int64_t *dims, const char *const *names)
{
    enum { BYTES = 30 }; /* a dim */
    char *text = ingot_alloc(m->c, (size_t)rank * BYTES + 3), *at = text;
    *at++ = '[';
    for (int a = 0; a < rank; a++) {
        const char *comma = a ? ", " : "";
        if (dims[a] >= 0)
            at += snprintf(at, BYTES, "%s%lld", comma, (long long)dims[a]);
        else
            at += snprintf(at, BYTES, "%s%.24s", comma, names && names[a] ? names[a] : "?");
    }
    strcpy(at, "]");
    return text;
}

static const char *tensor_dims(Model *m, ingot_tensor *t)
{
    int64_t dims[INGOT_MAX_RANK];
    for (int a = 0; a < ingot_rank(t); a++)
        if (!ingot_dim_is_const(ingot_shape(t, a), &dims[a]))
            dims[a] = -1;
    return dims_text(m, ingot_rank(t), dims, NULL);
}

/* False if a dim of the value and of the declaration are numbers and differ. */
static bool output_fits(const ingot_model_io *io, ingot_tensor *t)
{
    int64_t v;
    if (io->rank < 0)
        return true;
    if (io->rank != ingot_rank(t))
        return false;
    for (int a = 0; a < io->rank; a++)
        if (io->dims[a] >= 0 && ingot_dim_is_const(ingot_shape(t, a), &v) && v != io->dims[a])
            return false;
    return true;
}

static bool declare_outputs(Model *m, Scope *s)
{
    bool ok = true;
    for (int i = 0; i < m->n_outputs; i++) {
        const ingot_model_io *io = &m->outputs[i];
        Value *v = scope_find(m, s, io->value);
        if (!v) {
            ingot_error(m->c, INGOT_INVALID, "the output '%s' is defined nowhere", io->name);
            ok = false;
        } else if (v->kind == VALUE_SEQUENCE || v->kind == VALUE_OPTIONAL ||
                   (v->kind == VALUE_TENSOR && io->kind == INGOT_MODEL_OPTIONAL)) {
            ok &= group_output(m, io, v);
        } else if (v->kind != VALUE_TENSOR) {
            ingot_error(m->c, INGOT_UNSUPPORTED,
                        "the output '%s' is no tensor, which is not supported", io->name);
            ok = false;
        } else if (ingot_is_poison(v->tensor)) {
            ok = false;
        } else if (io->kind == INGOT_MODEL_TENSOR && !io->undeclared &&
                   io->dtype != ingot_dtype_of(v->tensor)) {
            ingot_error(m->c, INGOT_INVALID, "the output '%s' is %s, the file declares %s",
                        io->name, ingot_dtype_name(ingot_dtype_of(v->tensor)),
                        ingot_dtype_name(io->dtype));
            ok = false;
        } else {
            if (!output_fits(io, v->tensor))
                ingot_warning(m->c, "the output '%s' is %s, the file declares %s: the nodes decide",
                              io->name, tensor_dims(m, v->tensor),
                              dims_text(m, io->rank, io->dims, io->dim_names));
            if (is_training(m) && m->options->training->output) {
                m->options->training->output(m->options->training->user, io->name, v->tensor);
                continue;
            }
            ingot_output(m->c, io->name, v->tensor);
            if (v->classes)
                ingot_output_classes(m->c, io->name, v->classes->n, v->classes->name,
                                     v->classes->number);
        }
    }
    return ok;
}

/* The inputs, nodes and outputs are now those of a step with the file's loss, or of inference. */
static void select_function(Model *m)
{
    const ingot_model_training *t = m->options ? m->options->training : NULL;
    const bool step = t && t->step && t->own;
    artifacts_select(m, step);
    if (m->n_states) /* which have changed the lists; no step has them */
        return;
    m->n_inputs = step ? m->step_inputs : m->run_inputs;
    m->n_outputs = step ? m->step_outputs : m->run_outputs;
}

/* What a step of the file's own has behind the graph. */
static bool build_rest(Model *m, Scope *s)
{
    if (is_own_training(m) && m->options->training->step && !build_own_step(m, s))
        return false;
    return declare_outputs(m, s) && update_states(m, s);
}

bool ingot_onnx_build(ingot_onnx *m, const ingot_model_options *options)
{
    int errors = ingot_error_count(m->c);
    Scope *s = ingot_alloc(m->c, sizeof *s);
    *s = main_scope(m);
    m->options = options;
    select_function(m);
    ingot_set_file(m->c, m->file->path);
    ingot_set_origin(m->c, NULL, NULL);
    m->dim_used =
        ingot_alloc(m->c, (size_t)(options ? options->n_dims + 1 : 1) * sizeof *m->dim_used);
    if (m->hopeless)
        return false;
    bool ok = dim_options_good(m);
    ok &= free_dims_given(m, ok ? INGOT_UNSUPPORTED : INGOT_USAGE);
    m->evaluated = 0;
    if (is_training_step(m) && own_step(m))
        ingot_warning(m->c, "the file has a step of its own (TrainingInfoProto), which is not "
                            "taken: --loss and --optimizer decide");
    declared_initializers(m);
    ok = ok && declare_inputs(m, s) && scope_initializers(m, s, m->file->model->graph) &&
         take_weights(m, s, m->file->model->graph) && build_graph(m, s, m->file->model->graph);
    ingot_set_origin(m->c, NULL, NULL);
    ok = ok && build_rest(m, s) && dim_options_used(m);
    m->options = NULL;
    select_function(m);
    m->options = options;
    return ok && ingot_error_count(m->c) == errors;
}
