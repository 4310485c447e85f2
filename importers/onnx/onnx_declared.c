/*
 * onnx_declared.c - initializers whose type or shape is declared as another.
 *
 * A file may say what a constant is in two more places: as an input of the graph that has it as its
 * default, and among the values (or outputs) whose types are told. Both have to be what the
 * constant is. A size without a number, or a declaration without a shape, says nothing.
 */
#include <stdio.h>
#include <string.h>

#include "onnx.h"

typedef struct {
    int32_t type;
    size_t rank;
    const int64_t *dims;
} Initializer;

/* A node that reads the name, in this list or in graphs inside it; NULL: none. */
static const Onnx__NodeProto *reader_of(size_t n_node, Onnx__NodeProto **node, const char *name)
{
    const Onnx__NodeProto *inside = NULL;
    for (size_t i = 0; i < n_node && !inside; i++) {
        for (size_t k = 0; k < node[i]->n_input; k++)
            if (strcmp(node[i]->input[k], name) == 0)
                return node[i];
        for (size_t a = 0; a < node[i]->n_attribute && !inside; a++) {
            const Onnx__AttributeProto *attr = node[i]->attribute[a];
            for (size_t k = 0; k < attr->n_graphs && !inside; k++)
                inside = reader_of(attr->graphs[k]->n_node, attr->graphs[k]->node, name);
            if (attr->g && !inside)
                inside = reader_of(attr->g->n_node, attr->g->node, name);
        }
    }
    return inside;
}

static bool is_output(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_output; i++)
        if (strcmp(g->output[i]->name, name) == 0)
            return true;
    return false;
}

static bool agrees(const Initializer *x, const Onnx__TypeProto__Tensor *t)
{
    bool same = !t->elem_type || t->elem_type == x->type;
    if (!t->shape)
        return same;
    same &= t->shape->n_dim == x->rank;
    for (size_t a = 0; a < x->rank && same; a++) {
        const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[a];
        same = d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
               d->dim_value == x->dims[a];
    }
    return same;
}

enum { TYPE_TEXT = 200 }; /* bytes; more axes than fit are cut off */

static const char *type_name(int32_t type)
{
    ingot_dtype dtype;
    return ingot_onnx_dtype(type, &dtype) ? ingot_dtype_name(dtype) : onnx_dtype_name(type);
}

/* "f32 [2, n, ?]" */
static void declared_text(char *text, const Onnx__TypeProto__Tensor *t)
{
    int at = snprintf(text, TYPE_TEXT, "%s", type_name(t->elem_type));
    for (size_t a = 0; t->shape && a < t->shape->n_dim && at < TYPE_TEXT; a++) {
        const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[a];
        const char *before = a ? ", " : " [";
        size_t room = (size_t)(TYPE_TEXT - at);
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            at += snprintf(text + at, room, "%s%lld", before, (long long)d->dim_value);
        else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
            at += snprintf(text + at, room, "%s%.40s", before, d->dim_param);
        else
            at += snprintf(text + at, room, "%s?", before);
    }
    if (t->shape && at < TYPE_TEXT)
        snprintf(text + at, (size_t)(TYPE_TEXT - at), "%s", t->shape->n_dim ? "]" : " []");
}

static void initializer_text(char *text, const Initializer *x)
{
    int at = snprintf(text, TYPE_TEXT, "%s", type_name(x->type));
    for (size_t a = 0; a < x->rank && at < TYPE_TEXT; a++)
        at += snprintf(text + at, (size_t)(TYPE_TEXT - at), "%s%lld", a ? ", " : " [",
                       (long long)x->dims[a]);
    if (at < TYPE_TEXT)
        snprintf(text + at, (size_t)(TYPE_TEXT - at), "%s", x->rank ? "]" : " []");
}

static void check_list(Model *m, const Onnx__GraphProto *g, const Names *initializers, size_t n,
                       Onnx__ValueInfoProto **info, const char *where)
{
    char is[TYPE_TEXT], declared[TYPE_TEXT];
    for (size_t i = 0; i < n; i++) {
        const Onnx__TypeProto *type = info[i]->type;
        const Initializer *x = names_get(initializers, info[i]->name);
        if (!x || !type || type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET)
            continue;
        bool tensor = type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
        if (tensor && agrees(x, type->tensor_type))
            continue;
        const Onnx__NodeProto *reader = reader_of(g->n_node, g->node, info[i]->name);
        if (!reader && !is_output(g, info[i]->name))
            continue;
        initializer_text(is, x);
        if (tensor)
            declared_text(declared, type->tensor_type);
        if (reader)
            ingot_set_origin(m->c, node_label(reader), reader->op_type);
        ingot_error(m->c, INGOT_INVALID,
                    "%s initializer '%.100s' is %s, but %s of that name is declared %s; declare it "
                    "as %s, or leave it out there",
                    reader ? "its" : "the", info[i]->name, is, where,
                    tensor ? declared : "as no tensor", is);
        ingot_set_origin(m->c, NULL, NULL);
    }
}

static void note_initializer(Model *m, Names *names, const char *name, int32_t type, size_t rank,
                             const int64_t *dims)
{
    Initializer *x = ingot_alloc(m->c, sizeof *x);
    *x = (Initializer){type, rank, dims};
    if (!names_get(names, name))
        names_put(m->c, names, name, x);
}

static void check_graph(Model *m, const Onnx__GraphProto *g);

static void check_inside(Model *m, size_t n_node, Onnx__NodeProto **node)
{
    for (size_t i = 0; i < n_node; i++)
        for (size_t a = 0; a < node[i]->n_attribute; a++) {
            const Onnx__AttributeProto *attr = node[i]->attribute[a];
            for (size_t k = 0; k < attr->n_graphs; k++)
                check_graph(m, attr->graphs[k]);
            if (attr->g)
                check_graph(m, attr->g);
        }
}

/* The depth is bounded by that of the file's messages. */
static void check_graph(Model *m, const Onnx__GraphProto *g)
{
    Names names = {0};
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__TensorProto *t = g->initializer[i];
        note_initializer(m, &names, t->name, t->data_type, t->n_dims, t->dims);
    }
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *t = g->sparse_initializer[i];
        if (t->values)
            note_initializer(m, &names, t->values->name, t->values->data_type, t->n_dims, t->dims);
    }
    if (names.n) {
        check_list(m, g, &names, g->n_input, g->input, "the graph's input");
        check_list(m, g, &names, g->n_value_info, g->value_info, "the value (value_info)");
        check_list(m, g, &names, g->n_output, g->output, "the graph's output");
    }
    check_inside(m, g->n_node, g->node);
}

void declared_initializers(Model *m)
{
    const Onnx__ModelProto *model = m->file->model;
    check_graph(m, model->graph);
    for (size_t i = 0; i < model->n_functions; i++)
        check_inside(m, model->functions[i]->n_node, model->functions[i]->node);
}
