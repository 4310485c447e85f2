/* onnx_source.c - what reports tell of a node: names, attributes as text, and the groups it stands
 * in.
 *
 * The groups are what the exporter says: torch.onnx writes a list of module names beside each node
 * ("['', 'encoder', 'encoder.layer.0', 'matmul']"), older exporters put them into the node's name
 * ("/encoder/layer.0/MatMul"). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "onnx.h"

enum { MAX_ELEMENTS = 32, MAX_TEXT = 240 };

/* Text that grows in the context's memory up to a length, and tells that it was longer. */
typedef struct {
    char text[MAX_TEXT + 8];
    size_t n;
    bool cut;
} Short;

static void short_put(Short *s, const char *text, size_t n)
{
    size_t room = MAX_TEXT - s->n;
    s->cut |= n > room;
    if (n) /* an empty name may have no bytes at all */
        memcpy(s->text + s->n, text, n < room ? n : room);
    s->n += n < room ? n : room;
}

static const char *short_keep(ingot_context *c, Short *s)
{
    if (s->cut)
        memcpy(s->text + s->n, "...", 3), s->n += 3;
    char *out = ingot_alloc(c, s->n + 1);
    memcpy(out, s->text, s->n);
    return out;
}

static void put_integer(Short *s, int64_t v)
{
    char text[32];
    short_put(s, text, (size_t)snprintf(text, sizeof text, "%" PRId64, v));
}

static void put_number(Short *s, double v)
{
    char text[32];
    short_put(s, text, (size_t)snprintf(text, sizeof text, "%.7g", v));
}

static void put_tensor(Short *s, const Onnx__TensorProto *t)
{
    short_put(s, onnx_dtype_name(t->data_type), strlen(onnx_dtype_name(t->data_type)));
    short_put(s, "[", 1);
    for (size_t i = 0; i < t->n_dims; i++) {
        short_put(s, ",", i > 0);
        put_integer(s, t->dims[i]);
    }
    short_put(s, "]", 1);
}

static void put_graph(Short *s, const Onnx__GraphProto *g)
{
    short_put(s, "a graph of ", 11);
    put_integer(s, (int64_t)g->n_node);
    short_put(s, " nodes", 6);
}

static const char *attribute_text(ingot_context *c, const Onnx__AttributeProto *a)
{
    Short s = {.n = 0};
    switch (a->type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT: put_integer(&s, a->i); break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT: put_number(&s, (double)a->f); break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        short_put(&s, (const char *)a->s.data, a->s.len);
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        if (a->t)
            put_tensor(&s, a->t);
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH:
        if (a->g)
            put_graph(&s, a->g);
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS: {
        size_t n = a->n_ints + a->n_floats + a->n_strings;
        for (size_t i = 0; i < n && i < MAX_ELEMENTS; i++) {
            short_put(&s, ", ", i ? 2 : 0);
            if (i < a->n_ints)
                put_integer(&s, a->ints[i]);
            else if (i < a->n_floats)
                put_number(&s, (double)a->floats[i]);
            else if (i < a->n_strings)
                short_put(&s, (const char *)a->strings[i].data, a->strings[i].len);
        }
        s.cut |= n > MAX_ELEMENTS;
        break;
    }
    default: short_put(&s, "of another kind", 15); break;
    }
    return short_keep(c, &s);
}

/* "['', 'm', 'm.h.0', 'tanh']" -> "m/m.h.0": all but the first and the last. */
static const char *scope_of_list(ingot_context *c, const char *list)
{
    char *out = ingot_alloc(c, strlen(list) + 1);
    size_t n = 0, last = 0;
    for (const char *p = list; (p = strchr(p, '\'')) != NULL;) {
        const char *end = strchr(p + 1, '\'');
        if (!end)
            break;
        last = n;
        if (n && end > p + 1)
            out[n++] = '/';
        memcpy(out + n, p + 1, (size_t)(end - p - 1));
        n += (size_t)(end - p - 1);
        p = end + 1;
    }
    out[last] = 0;
    return out;
}

/* "/encoder/layer.0/MatMul" -> "encoder/layer.0" */
static const char *scope_of_name(ingot_context *c, const char *name)
{
    const char *from = *name == '/' ? name + 1 : name, *end = strrchr(from, '/');
    if (!end)
        return NULL;
    char *out = ingot_alloc(c, (size_t)(end - from) + 1);
    memcpy(out, from, (size_t)(end - from));
    return out;
}

/* "['', 'm', 'm.h.0', 'tanh']", or NULL */
static const char *scopes_of_torch(const Onnx__NodeProto *n)
{
    for (size_t i = 0; i < n->n_metadata_props; i++)
        if (!strcmp(n->metadata_props[i]->key, "pkg.torch.onnx.name_scopes"))
            return n->metadata_props[i]->value;
    return NULL;
}

static const char *scope_of(ingot_context *c, const Onnx__NodeProto *n)
{
    const char *list = scopes_of_torch(n);
    return list ? scope_of_list(c, list) : scope_of_name(c, node_label(n));
}

const char *onnx_module(ingot_context *c, const Onnx__NodeProto *n)
{
    const char *list = scopes_of_torch(n), *scope = scope_of(c, n);
    const char *last = scope ? strrchr(scope, '/') : NULL;
    if (!scope || !*scope)
        return NULL;
    if (list)
        return last ? last + 1 : scope;
    char *module = ingot_alloc(c, strlen(scope) + 1);
    for (size_t i = 0; scope[i]; i++)
        module[i] = scope[i] == '/' ? '.' : scope[i];
    return module;
}

ingot_source_node *onnx_source(Model *m, const Onnx__NodeProto *n)
{
    ingot_context *c = m->c;
    ingot_source_node *s = ingot_alloc(c, sizeof *s);
    *s = (ingot_source_node){.node = node_label(n),
                             .op = n->op_type,
                             .domain = n->domain,
                             .scope = scope_of(c, n),
                             .inside = m->inside - 1,
                             .n_in = (int)n->n_input,
                             .n_out = (int)n->n_output,
                             .n_attr = (int)n->n_attribute};
    s->in = ingot_alloc(c, (n->n_input + 1) * sizeof *s->in);
    s->out = ingot_alloc(c, (n->n_output + 1) * sizeof *s->out);
    s->attr = ingot_alloc(c, (2 * n->n_attribute + 1) * sizeof *s->attr);
    for (size_t i = 0; i < n->n_input; i++)
        s->in[i].name = n->input[i];
    for (size_t i = 0; i < n->n_output; i++)
        s->out[i].name = n->output[i];
    for (size_t i = 0; i < n->n_attribute; i++) {
        s->attr[2 * i] = n->attribute[i]->name;
        s->attr[2 * i + 1] = attribute_text(c, n->attribute[i]);
    }
    return s;
}
