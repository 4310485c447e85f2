/*
 * onnx_schema.c - what the standard allows a node to have: attributes by name, inputs by type.
 *
 * onnx_schemas.def holds each operator of the standard, all of its versions united: this catches
 * what no version allows, with a message of its own, before a lowering sees the node.
 * onnx_ms_schemas.def does so for ONNX Runtime's own operators; those of other domains are not
 * looked at.
 */
#include <string.h>

#include "base.h"
#include "onnx.h"

typedef struct {
    const char *domain, *name;
    const char *attributes; /* separated by blanks */
    const char *inputs;     /* a word for each, the last for those that follow */
} Schema;

#define ONNX_SCHEMA(domain, name, attributes, inputs) {domain, name, attributes, inputs},
static const Schema schemas[] = {
#include "onnx_ms_schemas.def"
#include "onnx_schemas.def"
};

static const Schema *schema_find(const char *domain, const char *name)
{
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    for (int i = 0; i < COUNT(schemas); i++)
        if (strcmp(schemas[i].name, name) == 0 && strcmp(schemas[i].domain, domain) == 0)
            return &schemas[i];
    return NULL;
}

bool schema_knows(const char *domain, const char *name)
{
    return schema_find(domain, name) != NULL;
}

const char *schema_inputs(const char *domain, const char *name)
{
    const Schema *s = schema_find(domain, name);
    return s ? s->inputs : "";
}

/* Is the word one of those in a list, which end at any of `ends`? */
static bool listed(const char *list, size_t len, const char *ends, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list, *end = list + len; p < end;) {
        size_t k = strcspn(p, ends);
        k = k > (size_t)(end - p) ? (size_t)(end - p) : k;
        if (k == n && memcmp(p, word, n) == 0)
            return true;
        p += k + 1;
    }
    return false;
}

/* The attribute that may have been meant, or NULL. */
static const char *near_attribute(Model *m, const char *list, const char *name)
{
    const char *near = NULL;
    int best = 99;
    for (size_t k; *list; list += k + (list[k] != 0)) {
        k = strcspn(list, " ");
        char *word = ingot_alloc(m->c, k + 1);
        memcpy(word, list, k);
        near = closer(name, word, near, &best);
    }
    return near;
}

bool schema_attributes(Model *m, const Onnx__NodeProto *n)
{
    const Schema *s = custom_find(m, n) ? NULL : schema_find(n->domain, n->op_type);
    bool ok = true;
    for (size_t i = 0; i < n->n_attribute; i++) {
        const char *name = n->attribute[i]->name;
        for (size_t k = 0; k < i; k++)
            if (strcmp(n->attribute[k]->name, name) == 0) {
                ingot_error(m->c, INGOT_INVALID, "its attribute '%s' is given twice", name);
                return false;
            }
        /* names that begin with __ are anybody's */
        if (!s || strncmp(name, "__", 2) == 0 ||
            listed(s->attributes, strlen(s->attributes), " ", name))
            continue;
        const char *near = near_attribute(m, s->attributes, name);
        ingot_error(m->c, INGOT_INVALID, "the operator has no attribute '%s'%s%s%s", name,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        ok = false;
    }
    return ok;
}

/* The classes that a dtype belongs to, besides itself. */
static bool in_class(const char *types, size_t len, ingot_dtype d)
{
    static const struct {
        const char *name;
        unsigned members;
    } classes[] = {
#define BIT(d) (1u << INGOT_##d)
#define FLOATS (BIT(F16) | BIT(BF16) | BIT(F32) | BIT(F64))
#define INTS (BIT(I8) | BIT(I16) | BIT(I32) | BIT(I64))
#define UINTS (BIT(U8) | BIT(U16) | BIT(U32) | BIT(U64))
        {"number", FLOATS | INTS | UINTS},
        {"float", FLOATS},
        {"int", INTS},
        {"uint", UINTS},
        {"float8", BIT(F8E4M3FN) | BIT(F8E4M3FNUZ) | BIT(F8E5M2) | BIT(F8E5M2FNUZ)},
        {"small", BIT(I4) | BIT(U4) | BIT(I2) | BIT(U2) | BIT(F4E2M1)},
    };
    for (int i = 0; i < COUNT(classes); i++)
        if (classes[i].members >> d & 1 && listed(types, len, "+", classes[i].name))
            return true;
    return listed(types, len, "+", ingot_dtype_name(d));
}

bool schema_types(Lowering *n)
{
    const Schema *s = schema_find(n->proto->domain, n->proto->op_type);
    const char *types = s ? s->inputs : "";
    for (int i = 0; i < n->n_in && *types; i++) {
        size_t len = strcspn(types, " ");
        const Value *v = n->value[i];
        if (v && *types != '*' && v->kind == VALUE_TENSOR) {
            ingot_dtype d = ingot_dtype_of(v->tensor);
            if (!in_class(types, len, d)) {
                fault(n, "its input '%s' is %s, which the operator does not take (%.*s)",
                      n->proto->input[i], ingot_dtype_name(d), (int)len, types);
                return false;
            }
        }
        if (types[len])
            types += len + 1;
    }
    return true;
}
