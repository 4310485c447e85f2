/*
 * onnx_custom.c - nodes whose operator is a C function of the user's (--op).
 */
#include <string.h>

#include "onnx.h"

void ingot_onnx_set_ops(ingot_onnx *m, const ingot_model_op *ops, int n)
{
    m->ops = ops;
    m->n_ops = n;
}

ingot_custom_op *custom_find(const Model *m, const Onnx__NodeProto *n)
{
    for (int i = 0; i < m->n_ops; i++) {
        const char *name = m->ops[i].name, *colon = strrchr(name, ':');
        const char *type = colon ? colon + 1 : name, *domain = domain_text(n->domain);
        size_t len = colon ? (size_t)(colon - name) : 0;
        bool same = len ? strlen(domain) == len && memcmp(domain, name, len) == 0
                        : strcmp(domain, "ai.onnx") == 0;
        if (same && strcmp(type, n->op_type) == 0)
            return m->ops[i].op;
    }
    return NULL;
}

void call_custom(Lowering *n, ingot_custom_op *op)
{
    for (int i = 0; i < n->n_in; i++)
        if (!n->in[i]) {
            fault(n, "input %d of a custom operator is %s", i,
                  n->value[i] ? "no tensor" : "left out");
            return;
        }
    size_t count = n->proto->n_attribute;
    ingot_attribute *attr = ingot_alloc(n->c, (count + 1) * sizeof *attr);
    for (size_t i = 0; i < count; i++)
        attr_number(n, n->proto->attribute[i]->name, &attr[i]);
    if (!n->failed)
        ingot_custom(n->c, op, n->n_in, n->in, (int)count, attr, n->n_out, n->out);
}
