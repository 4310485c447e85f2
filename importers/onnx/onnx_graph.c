/*
 * onnx_graph.c - evaluates lists of nodes: names become values, nodes become tensors.
 *
 * Names live in scopes. A subgraph (a branch of If, the body of Loop) opens a scope inside that of
 * its node and sees the names around it; the body of a model-local function sees its formal inputs
 * only. A function is called by evaluating its nodes in a new scope, attributes that refer to the
 * caller's being looked up there (onnx_node.c).
 *
 * ONNX demands that nodes come after what they use; files that break the rule are put in order,
 * and a cycle is an error that names one of its nodes.
 */
#include <stdio.h>
#include <string.h>

#include "onnx.h"

/* ---- names ---------------------------------------------------------------------------------- */

static size_t name_slot(const Names *m, const char *key)
{
    uint64_t h = 1469598103934665603u;
    for (const char *p = key; *p; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    size_t i = (size_t)(h ^ h >> 32) & (m->cap - 1);
    while (m->key[i] && strcmp(m->key[i], key) != 0)
        i = (i + 1) & (m->cap - 1);
    return i;
}

void *names_get(const Names *m, const char *key)
{
    return m->cap ? m->value[name_slot(m, key)] : NULL;
}

void names_put(ingot_context *c, Names *m, const char *key, void *value)
{
    if (2 * m->n >= m->cap) {
        Names old = *m;
        m->cap = old.cap ? 2 * old.cap : 32;
        m->key = ingot_alloc(c, m->cap * sizeof *m->key);
        m->value = ingot_alloc(c, m->cap * sizeof *m->value);
        for (size_t i = 0; i < old.cap; i++)
            if (old.key[i]) {
                size_t to = name_slot(m, old.key[i]);
                m->key[to] = old.key[i];
                m->value[to] = old.value[i];
            }
    }
    size_t i = name_slot(m, key);
    m->n += m->key[i] == NULL;
    m->key[i] = key;
    m->value[i] = value;
}

/* ---- values and scopes ---------------------------------------------------------------------- */

Value *value_tensor(ingot_context *c, ingot_tensor *t)
{
    Value *v = ingot_alloc(c, sizeof *v);
    *v = (Value){.kind = VALUE_TENSOR, .tensor = t};
    return v;
}

int scope_opset(const Scope *s, const char *domain)
{
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    for (size_t i = 0; i < s->n_opset; i++) {
        const char *d = s->opset[i]->domain;
        if (strcmp(strcmp(d, "ai.onnx") == 0 ? "" : d, domain) == 0)
            return s->opset[i]->version > 0 && s->opset[i]->version <= INT32_MAX
                       ? (int)s->opset[i]->version
                       : 0;
    }
    return 0;
}

const char *const *strings_of(Model *m, const OnnxTensor *t, const char *where)
{
    const char **list = ingot_alloc(m->c, ((size_t)t->count + 1) * sizeof *list);
    for (uint64_t i = 0; i < t->count; i++) {
        const ProtobufCBinaryData *s = &t->strings[i];
        char *text = ingot_alloc(m->c, s->len + 1);
        if (s->len && memchr(s->data, 0, s->len)) {
            ingot_error(m->c, INGOT_UNSUPPORTED, "%s: string %llu holds a zero byte", where,
                        (unsigned long long)i);
            return NULL;
        }
        if (s->len)
            memcpy(text, s->data, s->len);
        list[i] = text;
    }
    return list;
}

static ingot_tensor *decoded(Model *m, const OnnxTensor *t, const char *where)
{
    ingot_dtype dtype;
    if (t->rank > INGOT_MAX_RANK)
        return ingot_error(m->c, INGOT_UNSUPPORTED, "%s: rank %zu is above %d", where, t->rank,
                           INGOT_MAX_RANK);
    if (t->dtype == ONNX__TENSOR_PROTO__DATA_TYPE__STRING) {
        const char *const *v = strings_of(m, t, where);
        return v ? ingot_strings(m->c, (int)t->rank, t->dims, v) : ingot_poison(m->c);
    }
    if (!ingot_onnx_dtype(t->dtype, &dtype))
        return ingot_error(m->c, INGOT_UNSUPPORTED, "%s: tensors of type %s are not supported here",
                           where, onnx_dtype_name(t->dtype));
    return ingot_data(m->c, t->name, dtype, (int)t->rank, t->dims, t->data.data);
}

ingot_tensor *proto_tensor(Model *m, const Onnx__TensorProto *proto, const char *where)
{
    OnnxTensor t;
    return onnx_tensor_read(m->file, proto, where, &t) ? decoded(m, &t, where) : ingot_poison(m->c);
}

ingot_tensor *sparse_tensor(Model *m, const Onnx__SparseTensorProto *proto, const char *where)
{
    OnnxTensor t;
    return onnx_tensor_read_sparse(m->file, proto, where, &t) ? decoded(m, &t, where)
                                                              : ingot_poison(m->c);
}

/* The first use of an initializer decodes it. */
static void value_decode(Model *m, Value *v)
{
    char where[160];
    const char *name = v->proto ? v->proto->name : v->sparse->values->name;
    snprintf(where, sizeof where, "initializer '%.100s'", name);
    v->tensor = v->proto ? proto_tensor(m, v->proto, where) : sparse_tensor(m, v->sparse, where);
    v->proto = NULL;
    v->sparse = NULL;
}

Value *scope_find(Model *m, Scope *s, const char *name)
{
    for (; s; s = s->outer) {
        Value *v = names_get(&s->values, name);
        if (v && (v->proto || v->sparse))
            value_decode(m, v);
        if (v)
            return v;
    }
    return NULL;
}

bool scope_define(Model *m, Scope *s, const char *name, Value *v)
{
    if (names_get(&s->values, name)) {
        ingot_error(m->c, INGOT_INVALID, "the name '%s' is defined twice", name);
        return false;
    }
    if (v->kind == VALUE_TENSOR && v->tensor && !v->proto && !v->sparse)
        v->tensor = bounded(m, name, v->tensor);
    names_put(m->c, &s->values, name, v);
    return true;
}

bool scope_initializers(Model *m, Scope *s, const Onnx__GraphProto *g)
{
    bool ok = true;
    for (size_t i = 0; i < g->n_initializer; i++) {
        Value *v = value_tensor(m->c, NULL);
        v->proto = g->initializer[i];
        ok &= scope_define(m, s, v->proto->name, v);
    }
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        Value *v = value_tensor(m->c, NULL);
        v->sparse = g->sparse_initializer[i];
        if (!v->sparse->values) {
            ingot_error(m->c, INGOT_INVALID, "a sparse initializer has no values");
            ok = false;
            continue;
        }
        ok &= scope_define(m, s, v->sparse->values->name, v);
    }
    return ok;
}

/* ---- order ---------------------------------------------------------------------------------- */

typedef struct NodeEdge {
    size_t to;
    struct NodeEdge *next;
} NodeEdge;

/* A depth-first walk in the given order: nodes that are in a right order stay as they are. */
typedef struct {
    Model *model;
    size_t n;
    Onnx__NodeProto **node;
    Names producer; /* name -> &index[node] */
    size_t *index;
    NodeEdge **uses; /* per node: the nodes it needs; while walking: those not yet looked at */
} Order;

static void order_use(Order *o, size_t node, const char *name)
{
    const size_t *from = names_get(&o->producer, name);
    if (!from)
        return;
    NodeEdge *e = ingot_alloc(o->model->c, sizeof *e);
    *e = (NodeEdge){*from, o->uses[node]};
    o->uses[node] = e;
}

/* Names that a subgraph defines, which may be names around it too. */
typedef struct Defined {
    Names names;
    const struct Defined *around;
} Defined;

static void defines(const Order *o, Defined *d, const Onnx__GraphProto *g)
{
    ingot_context *c = o->model->c;
    for (size_t i = 0; i < g->n_input; i++)
        names_put(c, &d->names, g->input[i]->name, d);
    for (size_t i = 0; i < g->n_initializer; i++)
        names_put(c, &d->names, g->initializer[i]->name, d);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            names_put(c, &d->names, g->node[i]->output[k], d);
}

static void order_use_around(Order *o, size_t node, const char *name, const Defined *d)
{
    for (; d; d = d->around)
        if (names_get(&d->names, name))
            return;
    order_use(o, node, name);
}

/* All that n and its subgraphs read and do not define. The depth is bounded by that of the file's
 * messages. */
static void order_uses(Order *o, size_t node, const Onnx__NodeProto *n, const Defined *around)
{
    for (size_t i = 0; i < n->n_input; i++)
        order_use_around(o, node, n->input[i], around);
    for (size_t a = 0; a < n->n_attribute; a++) {
        const Onnx__AttributeProto *attr = n->attribute[a];
        for (size_t k = 0; k < attr->n_graphs + (attr->g != NULL); k++) {
            const Onnx__GraphProto *g = k < attr->n_graphs ? attr->graphs[k] : attr->g;
            Defined d = {.around = around};
            defines(o, &d, g);
            for (size_t i = 0; i < g->n_node; i++)
                order_uses(o, node, g->node[i], &d);
            for (size_t i = 0; i < g->n_output; i++)
                order_use_around(o, node, g->output[i]->name, &d);
        }
    }
}

/* Fills sorted[0..n). False on a cycle. */
static bool order_walk(Order *o, Onnx__NodeProto **sorted)
{
    enum { NEW, OPEN, DONE };
    size_t *stack = ingot_alloc(o->model->c, (o->n + 1) * sizeof *stack), depth = 0, done = 0;
    unsigned char *state = ingot_alloc(o->model->c, o->n + 1);
    for (size_t root = 0; root < o->n; root++) {
        if (state[root] != NEW)
            continue;
        stack[depth++] = root;
        state[root] = OPEN;
        while (depth) {
            size_t at = stack[depth - 1];
            NodeEdge *e = o->uses[at];
            if (!e) {
                state[at] = DONE;
                sorted[done++] = o->node[at];
                depth--;
                continue;
            }
            o->uses[at] = e->next;
            if (state[e->to] == OPEN) {
                const Onnx__NodeProto *n = o->node[e->to];
                ingot_set_origin(o->model->c, node_label(n), n->op_type);
                ingot_error(o->model->c, INGOT_INVALID, "it depends on its own output: a cycle");
                ingot_set_origin(o->model->c, NULL, NULL);
                return false;
            }
            if (state[e->to] == NEW) {
                state[e->to] = OPEN;
                stack[depth++] = e->to;
            }
        }
    }
    return true;
}

/* The nodes in an order in which each comes after those it needs; NULL after an error. */
static Onnx__NodeProto **ordered(Model *m, size_t n, Onnx__NodeProto **node)
{
    Order o = {.model = m, .n = n, .node = node};
    o.index = ingot_alloc(m->c, (n + 1) * sizeof *o.index);
    o.uses = ingot_alloc(m->c, (n + 1) * sizeof *o.uses);
    for (size_t i = 0; i < n; i++) {
        o.index[i] = i;
        for (size_t k = 0; k < node[i]->n_output; k++)
            if (node[i]->output[k][0])
                names_put(m->c, &o.producer, node[i]->output[k], &o.index[i]);
    }
    for (size_t i = 0; i < n; i++)
        order_uses(&o, i, node[i], NULL);
    Onnx__NodeProto **sorted = ingot_alloc(m->c, (n + 1) * sizeof *sorted);
    return order_walk(&o, sorted) ? sorted : NULL;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

const char *node_label(const Onnx__NodeProto *n)
{
    if (n->name[0])
        return n->name;
    for (size_t i = 0; i < n->n_output; i++)
        if (n->output[i][0])
            return n->output[i];
    return "";
}

const char *domain_text(const char *domain)
{
    return domain[0] ? domain : "ai.onnx";
}

static bool run_nodes(Model *m, Scope *s, size_t n_node, Onnx__NodeProto **node);

static bool nesting_enter(Model *m)
{
    if (m->nesting < ONNX_MAX_NESTING) {
        m->nesting++;
        return true;
    }
    ingot_error(m->c, INGOT_UNSUPPORTED, "graphs and functions are nested deeper than %d levels",
                ONNX_MAX_NESTING);
    return false;
}

static int node_inputs(const Onnx__NodeProto *n)
{
    int count = (int)n->n_input;
    while (count && !n->input[count - 1][0])
        count--;
    return count;
}

/* Looks up the inputs. False after an error. */
static bool read_inputs(Lowering *n, bool *poisoned)
{
    n->in = ingot_alloc(n->c, (size_t)(n->n_in + 8) * sizeof *n->in);
    n->value = ingot_alloc(n->c, (size_t)(n->n_in + 8) * sizeof *n->value);
    for (int i = 0; i < n->n_in; i++) {
        const char *name = n->proto->input[i];
        if (!name[0])
            continue;
        Value *v = scope_find(n->model, n->scope, name);
        if (!v) {
            fault(n, "its input '%s' is defined nowhere", name);
            return false;
        }
        if (v->kind == VALUE_ABSENT)
            continue;
        n->value[i] = v;
        n->in[i] = v->kind == VALUE_TENSOR ? v->tensor : NULL;
        *poisoned |= n->in[i] && ingot_is_poison(n->in[i]);
    }
    while (n->n_in && !n->value[n->n_in - 1])
        n->n_in--;
    return true;
}

/* Calls a model-local function: its nodes in a scope that holds its formal inputs. */
static void call_function(Lowering *n, const Onnx__FunctionProto *f)
{
    for (const Scope *s = n->scope; s; s = s->caller ? s->caller->scope : s->outer)
        if (s->function == f) {
            fault(n, "the function '%s' calls itself", f->name);
            return;
        }
    if ((size_t)n->n_in > f->n_input || (size_t)n->n_out > f->n_output) {
        fault(n, "the function '%s' has %zu inputs and %zu outputs", f->name, f->n_input,
              f->n_output);
        return;
    }
    Scope *s = ingot_alloc(n->c, sizeof *s);
    *s =
        (Scope){.caller = n, .function = f, .n_opset = f->n_opset_import, .opset = f->opset_import};
    for (size_t i = 0; i < f->n_input; i++) {
        Value *v = i < (size_t)n->n_in ? n->value[i] : NULL;
        if (!scope_define(n->model, s, f->input[i], v ? v : ingot_alloc(n->c, sizeof *v)))
            n->failed = true;
    }
    if (n->failed || !nesting_enter(n->model))
        return;
    bool ok = run_nodes(n->model, s, f->n_node, f->node);
    n->model->nesting--;
    ingot_set_origin(n->c, node_label(n->proto), n->proto->op_type);
    for (int i = 0; ok && i < n->n_out; i++) {
        Value *v = scope_find(n->model, s, f->output[i]);
        if (!v)
            fault(n, "the output '%s' of the function is defined nowhere", f->output[i]);
        n->out_value[i] = v;
    }
}

static void call_lowering(Lowering *n, const OpEntry *op)
{
    for (int i = 0; i < op->min_in; i++)
        if (i >= n->n_in || !n->value[i]) {
            fault(n, "input %d is missing", i);
            return;
        }
    if (op->max_in >= 0 && n->n_in > op->max_in) {
        fault(n, "it has %d inputs, at most %d are allowed", n->n_in, op->max_in);
        return;
    }
    if (op->max_out >= 0 && n->n_out > op->max_out) {
        fault(n, "it has %d outputs, at most %d are allowed", n->n_out, op->max_out);
        return;
    }
    for (int i = 0; i < n->n_in && !op->any_value; i++)
        if (n->value[i] && n->value[i]->kind != VALUE_TENSOR) {
            unsupported(n, "input %d is a %s", i,
                        n->value[i]->kind == VALUE_SEQUENCE ? "sequence" : "optional");
            return;
        }
    if (!schema_types(n))
        return;
    ingot_tensor *y = op->lower(n);
    if (n->n_out && !n->out[0])
        n->out[0] = y;
}

/* The file may declare the type of a value inside; a wrong element type is an error. */
static bool check_declared(Lowering *n, const char *name, ingot_tensor *t)
{
    const Onnx__ValueInfoProto *info = names_get(&n->scope->declared, name);
    ingot_dtype dtype;
    if (!info || !info->type || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        !ingot_onnx_dtype(info->type->tensor_type->elem_type, &dtype) || dtype == ingot_dtype_of(t))
        return true;
    fault(n, "its output '%s' is %s, the file declares %s", name,
          ingot_dtype_name(ingot_dtype_of(t)), ingot_dtype_name(dtype));
    return false;
}

/* Gives the outputs their names. */
static bool define_outputs(Lowering *n)
{
    bool ok = !n->failed;
    for (size_t i = 0; i < n->proto->n_output; i++) {
        const char *name = n->proto->output[i];
        if (!name[0])
            continue;
        Value *v = (int)i < n->n_out && ok ? n->out_value[i] : NULL;
        if (!v) {
            ingot_tensor *t = (int)i < n->n_out && ok ? n->out[i] : NULL;
            if (!t && ok && !ingot_is_poison(n->out[0] ? n->out[0] : ingot_poison(n->c)))
                unsupported(n, "output %zu ('%s') is not supported", i, name);
            if (t && !ingot_is_poison(t) && !check_declared(n, name, t))
                t = NULL;
            v = value_tensor(n->c, t ? t : ingot_poison(n->c));
        }
        if (!scope_define(n->model, n->scope, name, v))
            return false;
    }
    return true;
}

static bool run_node(Model *m, Scope *s, const Onnx__NodeProto *proto)
{
    ingot_source_node *told = onnx_source(m, proto);
    int inside = m->inside;
    m->inside = ingot_source(m->c, told) + 1;
    Lowering *n = ingot_alloc(m->c, sizeof *n);
    *n = (Lowering){.c = m->c, .model = m, .proto = proto, .scope = s};
    n->version = scope_opset(s, proto->domain);
    n->n_in = node_inputs(proto);
    for (n->n_out = (int)proto->n_output; n->n_out && !proto->output[n->n_out - 1][0];)
        n->n_out--;
    n->out = ingot_alloc(m->c, (size_t)(n->n_out + 8) * sizeof *n->out);
    n->out_value = ingot_alloc(m->c, (size_t)(n->n_out + 8) * sizeof *n->out_value);
    ingot_set_origin(m->c, node_label(proto), proto->op_type);
    ingot_set_module(m->c, onnx_module(m->c, proto));

    bool poisoned = false;
    if (m->evaluated > ONNX_MAX_NODES) /* said once */
        return false;
    if (++m->evaluated > ONNX_MAX_NODES) {
        unsupported(n, "the model has more than %d nodes", ONNX_MAX_NODES);
        return false;
    }
    if (is_refused(m, proto) || !read_inputs(n, &poisoned)) {
        n->failed = true;
        m->inside = inside;
        return define_outputs(n);
    }
    ingot_custom_op *custom = custom_find(m, proto);
    const Onnx__FunctionProto *f = function_find(m, proto);
    const OpEntry *op = f ? NULL : onnx_op_find(proto->domain, proto->op_type);
    if (poisoned)
        n->failed = true;
    else if (custom)
        call_custom(n, custom);
    else if (f)
        call_function(n, f);
    else if (op)
        call_lowering(n, op);
    else
        unsupported(n, "operator not supported");
    m->inside = inside;
    for (int i = 0; i < told->n_in; i++)
        told->in[i].tensor = i < n->n_in && n->value[i] ? n->value[i]->tensor : NULL;
    for (int i = 0; i < told->n_out; i++)
        told->out[i].tensor = i < n->n_out && !n->failed ? n->out[i] : NULL;
    return define_outputs(n);
}

static bool run_nodes(Model *m, Scope *s, size_t n_node, Onnx__NodeProto **node)
{
    Onnx__NodeProto **sorted = ordered(m, n_node, node);
    s->node = sorted;
    s->n_node = sorted ? n_node : 0;
    for (size_t i = 0; sorted && i < n_node; i++)
        if (!run_node(m, s, sorted[i]))
            return false;
    return sorted != NULL;
}

/* ---- graphs --------------------------------------------------------------------------------- */

bool build_graph(Model *m, Scope *s, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_value_info; i++)
        names_put(m->c, &s->declared, g->value_info[i]->name, g->value_info[i]);
    for (size_t i = 0; i < g->n_output; i++)
        names_put(m->c, &s->declared, g->output[i]->name, g->output[i]);
    return run_nodes(m, s, g->n_node, g->node);
}

/* False and an error: the graph declares another element type for what it is given. */
static bool input_as_declared(Lowering *n, const Onnx__GraphProto *g,
                              const Onnx__ValueInfoProto *info, const Value *v)
{
    ingot_dtype dtype;
    if (!v || v->kind != VALUE_TENSOR || !v->tensor || ingot_is_poison(v->tensor) || !info->type ||
        info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        !ingot_onnx_dtype(info->type->tensor_type->elem_type, &dtype) ||
        dtype == ingot_dtype_of(v->tensor))
        return true;
    fault(n, "the input '%s' of its subgraph '%s' is given %s, the file declares %s", info->name,
          g->name, ingot_dtype_name(ingot_dtype_of(v->tensor)), ingot_dtype_name(dtype));
    return false;
}

bool subgraph(Lowering *n, const Onnx__GraphProto *g, int n_in, Value **in, Value **out)
{
    if ((size_t)n_in != g->n_input) {
        fault(n, "its subgraph '%s' has %zu inputs, not %d", g->name, g->n_input, n_in);
        return false;
    }
    Scope *s = ingot_alloc(n->c, sizeof *s);
    *s = (Scope){.outer = n->scope,
                 .graph = g,
                 .branch_of = strcmp(n->proto->op_type, "If") == 0 ? n : NULL,
                 .n_opset = n->scope->n_opset,
                 .opset = n->scope->opset};
    for (int i = 0; i < n_in; i++)
        if (!input_as_declared(n, g, g->input[i], in[i]) ||
            !scope_define(n->model, s, g->input[i]->name, in[i]))
            return false;
    if (!nesting_enter(n->model))
        return false;
    bool ok = scope_initializers(n->model, s, g) && build_graph(n->model, s, g);
    n->model->nesting--;
    ingot_set_origin(n->c, node_label(n->proto), n->proto->op_type);
    for (size_t i = 0; ok && i < g->n_output; i++) {
        out[i] = scope_find(n->model, s, g->output[i]->name);
        if (!out[i]) {
            fault(n, "the output '%s' of its subgraph is defined nowhere", g->output[i]->name);
            return false;
        }
    }
    return ok;
}
