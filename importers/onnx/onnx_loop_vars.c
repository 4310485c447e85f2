/*
 * onnx_loop_vars.c - what a Loop carries and need not: values that its body hands on as they are,
 * integers that count its iterations; and how often it runs when its condition compares such a
 * count with a bound.
 *
 * Exporters of while loops carry everything: weights, the length, the place where the loop is.
 * What is decided here needs few nodes of the body, of a few types; these are evaluated alone, for
 * an iteration of a known number.
 */
#include <math.h>
#include <string.h>

#include "onnx_control.h"

enum { MAX_SLICE = 64, FAR = 1000 };

static bool is_type(const Onnx__NodeProto *p, const char *type)
{
    return strcmp(p->op_type, type) == 0 && (!p->domain || !p->domain[0]);
}

static Onnx__NodeProto *producer(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            if (strcmp(g->node[i]->output[k], name) == 0)
                return g->node[i];
    return NULL;
}

/* What a value is before it is handed on. */
static const char *origin_of(const Onnx__GraphProto *g, const char *name)
{
    for (size_t most = g->n_node; most-- > 0;) {
        const Onnx__NodeProto *p = producer(g, name);
        if (!p || p->n_input != 1 || !is_type(p, "Identity"))
            break;
        name = p->input[0];
    }
    return name;
}

/* The number of an input of the body, or -1. */
static int input_of(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_input; i++)
        if (strcmp(g->input[i]->name, name) == 0)
            return (int)i;
    return -1;
}

/* ---- values that stay ------------------------------------------------------------------------ */

const Onnx__GraphProto *loop_sorted(Lowering *n, const Onnx__GraphProto *body, int *n_carried,
                                    int *from)
{
    const int all = *n_carried;
    Onnx__GraphProto *g = ingot_alloc(n->c, sizeof *g);
    *g = *body;
    g->input = ingot_alloc(n->c, (body->n_input + 1) * sizeof *g->input);
    g->output = ingot_alloc(n->c, (body->n_output + 1) * sizeof *g->output);
    memcpy(g->input, body->input, 2 * sizeof *g->input);
    g->output[0] = body->output[0];
    *n_carried = 0;
    for (int i = 0, same = all; i < all; i++) {
        const char *name = body->input[2 + i]->name;
        bool changes = strcmp(origin_of(body, body->output[1 + i]->name), name) != 0;
        int to = changes ? (*n_carried)++ : --same;
        from[to] = i;
        g->input[2 + to] = body->input[2 + i];
        if (changes)
            g->output[1 + to] = body->output[1 + i];
    }
    g->n_output = 1 + (size_t)*n_carried;
    for (size_t i = 1 + (size_t)all; i < body->n_output; i++)
        g->output[g->n_output++] = body->output[i];
    return g;
}

static bool reads(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_output; i++)
        if (strcmp(g->output[i]->name, name) == 0)
            return true;
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *p = g->node[i];
        for (size_t k = 0; k < p->n_input; k++)
            if (strcmp(p->input[k], name) == 0)
                return true;
        for (size_t a = 0; a < p->n_attribute; a++) {
            const Onnx__AttributeProto *attr = p->attribute[a];
            for (size_t k = 0; k < attr->n_graphs + (attr->g != NULL); k++)
                if (reads(k < attr->n_graphs ? attr->graphs[k] : attr->g, name))
                    return true;
        }
    }
    return false;
}

bool loop_reads(const Onnx__GraphProto *body, int i_carried)
{
    return reads(body, body->input[2 + i_carried]->name);
}

/* ---- values that count ----------------------------------------------------------------------- */

typedef struct {
    const Onnx__GraphProto *body;
    Onnx__NodeProto *node[MAX_SLICE];
    int n;
    uint64_t inputs; /* that it reads, a bit each; none beyond */
} Slice;

enum { MAX_INPUTS = 64 };

static uint64_t input_bit(int input)
{
    return input < MAX_INPUTS ? UINT64_C(1) << input : 0;
}

/* Adds the nodes that make `name`; false: there are too many, or of types that more than count. */
static bool slice_add(Slice *s, const char *name)
{
    static const char *const types[] = {"Identity", "Cast",    "Add",       "Sub",
                                        "Constant", "Squeeze", "Unsqueeze", "Reshape"};
    int input = input_of(s->body, name);
    Onnx__NodeProto *p = producer(s->body, name);
    bool counts = false;
    if (input >= 0) {
        s->inputs |= input_bit(input);
        return input < MAX_INPUTS;
    }
    if (!p)
        return true; /* of the loop's surroundings */
    for (int i = 0; i < s->n; i++)
        if (s->node[i] == p)
            return true;
    for (int i = 0; i < COUNT(types); i++)
        counts |= is_type(p, types[i]);
    if (!counts || p->n_output != 1 || s->n == MAX_SLICE)
        return false;
    s->node[s->n++] = p;
    for (size_t i = 0; i < p->n_input; i++)
        if (p->input[i][0] && !slice_add(s, p->input[i]))
            return false;
    return true;
}

/* Does it read the value, or give it? */
static bool slice_needs(const Slice *s, const char *name, const char *value)
{
    bool needs = strcmp(name, value) == 0;
    for (int i = 0; i < s->n && !needs; i++)
        for (size_t k = 0; k < s->node[i]->n_input && !needs; k++)
            needs = strcmp(s->node[i]->input[k], value) == 0;
    return needs;
}

/* The integer that these nodes give for such inputs; NULL: it is not known when compiling. */
static ingot_dim *slice_value(Lowering *n, const Slice *s, const char *name, Value **in)
{
    Onnx__GraphProto g = *s->body;
    Onnx__ValueInfoProto output = ONNX__VALUE_INFO_PROTO__INIT, *outputs[] = {&output};
    Value *out[1];
    ingot_dim *value;
    double number;
    output.name = (char *)(uintptr_t)name;
    g.n_output = 1;
    g.output = outputs;
    g.n_node = (size_t)s->n;
    g.node = (Onnx__NodeProto **)(uintptr_t)s->node;
    g.n_value_info = 0;
    g.n_initializer = 0; /* a body may have many, and this is asked again and again */
    g.initializer = ingot_alloc(n->c, (s->body->n_initializer + 1) * sizeof(Onnx__TensorProto *));
    for (size_t i = 0; i < s->body->n_initializer; i++)
        if (slice_needs(s, name, s->body->initializer[i]->name))
            g.initializer[g.n_initializer++] = s->body->initializer[i];
    if (!subgraph(n, &g, (int)g.n_input, in, out) || out[0]->kind != VALUE_TENSOR ||
        ingot_is_poison(out[0]->tensor))
        return NULL;
    ingot_tensor *t = out[0]->tensor;
    if (ingot_const_float(n->c, t, &number) && number != floor(number))
        return NULL;
    return ingot_contents(n->c, ingot_cast(n->c, t, INGOT_I64), &value, 1) == 1 ? value : NULL;
}

/* An integer of one element, as its dims have it. */
static bool is_counter(const ingot_tensor *t)
{
    ingot_tensor *x = (ingot_tensor *)(uintptr_t)t;
    for (int i = 0; i < ingot_rank(x); i++)
        if (!dim_is(ingot_shape(x, i), 1))
            return false;
    return ingot_dtype_of(x) == INGOT_I64 || ingot_dtype_of(x) == INGOT_I32;
}

/* initial + more, of its type and shape. */
static Value *counted(Lowering *n, ingot_tensor *initial, int64_t more)
{
    return value_tensor(n->c, ingot_add(n->c, initial, ingot_like(n->c, initial, (double)more)));
}

/* Iteration k; whether it runs is nothing that is asked. */
static void body_in_iteration(Lowering *n, int64_t k, Value **in)
{
    in[0] = value_tensor(n->c, ingot_scalar_i(n->c, INGOT_I64, k));
    in[1] = value_tensor(n->c, ingot_scalar_i(n->c, INGOT_BOOL, 1));
}

int64_t loop_step(Lowering *n, const Onnx__GraphProto *body, int i_carried, Value *const *carried)
{
    static const int64_t at[] = {0, 1, FAR};
    const char *name = body->output[1 + i_carried]->name;
    ingot_tensor *initial = carried[i_carried]->tensor;
    Slice s = {.body = body};
    int64_t next[COUNT(at)];
    if (!is_counter(initial) || !slice_add(&s, name) || !s.inputs ||
        s.inputs != input_bit(2 + i_carried))
        return 0;
    Value **in = ingot_alloc(n->c, body->n_input * sizeof *in);
    body_in_iteration(n, 0, in);
    memcpy(in + 2, carried, (body->n_input - 2) * sizeof *in);
    for (int i = 0; i < COUNT(at); i++) {
        in[2 + i_carried] = counted(n, ingot_like(n->c, initial, 0), at[i]);
        ingot_dim *value = slice_value(n, &s, name, in);
        if (!value || !ingot_dim_is_const(value, &next[i]))
            return 0;
    }
    return next[1] - next[0] == 1 && next[2] - next[0] == FAR ? next[0] : 0;
}

/* ---- conditions that compare a count --------------------------------------------------------- */

typedef struct {
    Lowering *n;
    const Onnx__GraphProto *body;
    int n_carried;
    Value *const *carried; /* and what stays as it is */
    const int64_t *step;
} Counting;

/* What `name` is in iteration k; NULL: not known. */
static ingot_dim *value_in(const Counting *l, const char *name, int64_t k)
{
    Lowering *n = l->n;
    Slice s = {.body = l->body};
    if (!slice_add(&s, name) || (s.inputs & 2))
        return NULL;
    Value **in = ingot_alloc(n->c, l->body->n_input * sizeof *in);
    body_in_iteration(n, k, in);
    for (int i = 0; i < (int)l->body->n_input - 2; i++) {
        in[2 + i] = l->carried[i];
        if (i >= l->n_carried || !(s.inputs & input_bit(2 + i)))
            continue;
        if (!l->step[i])
            return NULL;
        in[2 + i] = counted(n, l->carried[i]->tensor, k * l->step[i]);
    }
    return slice_value(n, &s, name, in);
}

/* Whether any input of the body decides it. */
static bool input_read(const Counting *l, const char *name)
{
    Slice s = {.body = l->body};
    return !slice_add(&s, name) || s.inputs;
}

/* After how many iterations a < b, or a <= b, is false, if the first one runs. */
static ingot_dim *compared(const Counting *l, const char *a, const char *b, bool equal)
{
    static const int64_t at[] = {0, 1, FAR};
    ingot_context *c = l->n->c;
    ingot_dim *left[COUNT(at)];
    int64_t one, far, v;
    for (int i = 0; i < COUNT(at); i++) {
        ingot_dim *x = value_in(l, a, at[i]), *y = x ? value_in(l, b, at[i]) : NULL;
        if (!y)
            return NULL;
        left[i] = ingot_dim_add(c, ingot_dim_sub(c, y, x), ingot_dim_const(c, equal));
    }
    if (!ingot_dim_is_const(ingot_dim_sub(c, left[0], left[1]), &one) ||
        !ingot_dim_is_const(ingot_dim_sub(c, left[0], left[2]), &far) || one < 1 ||
        far != FAR * one)
        return NULL;
    if (ingot_dim_is_const(left[0], &v)) /* true in iteration k where left[0] - one * k > 0 */
        return ingot_dim_const(c, 1 + (v > 0 ? (v + one - 1) / one : 0));
    return one == 1 ? ingot_dim_add(c, ingot_dim_max(c, left[0], ingot_dim_const(c, 0)),
                                    ingot_dim_const(c, 1))
                    : NULL;
}

/* What gives the same truth: before it was converted, reshaped, or 0 added. */
static const char *truth_of(const Counting *l, const char *name)
{
    static const char *const same[] = {"Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape"};
    int64_t v;
    for (size_t most = l->body->n_node; most-- > 0;) {
        const Onnx__NodeProto *p = producer(l->body, name);
        const char *next = NULL;
        for (int i = 0; p && i < COUNT(same); i++)
            if (is_type(p, same[i]) && p->n_input)
                next = p->input[0];
        for (int i = 0; p && i < 2 && is_type(p, "Add") && p->n_input == 2; i++) {
            ingot_dim *more = value_in(l, p->input[i], 0);
            if (more && ingot_dim_is_const(more, &v) && v == 0 && !input_read(l, p->input[i]))
                next = p->input[1 - i];
        }
        if (!next)
            break;
        name = next;
    }
    return name;
}

/* After how many iterations `name` is false, if what ends the loop is *exact; else it may end
 * before. */
static ingot_dim *condition(const Counting *l, const char *name, int depth, bool *exact)
{
    enum { MAX_DEPTH = 8 };
    static const struct {
        const char *type;
        bool swapped, equal;
    } kinds[] = {{"Less", false, false},
                 {"LessOrEqual", false, true},
                 {"Greater", true, false},
                 {"GreaterOrEqual", true, true}};
    const Onnx__NodeProto *p = producer(l->body, truth_of(l, name));
    if (!p || p->n_input != 2 || depth == MAX_DEPTH)
        return NULL;
    for (int i = 0; i < COUNT(kinds); i++)
        if (is_type(p, kinds[i].type))
            return compared(l, p->input[kinds[i].swapped], p->input[!kinds[i].swapped],
                            kinds[i].equal);
    if (!is_type(p, "And"))
        return NULL;
    for (int i = 0; i < 2; i++) /* what went before was true */
        if (input_of(l->body, truth_of(l, p->input[i])) == 1)
            return condition(l, p->input[1 - i], depth + 1, exact);
    ingot_dim *x = condition(l, p->input[0], depth + 1, exact),
              *y = condition(l, p->input[1], depth + 1, exact);
    *exact &= x && y;
    return x && y ? ingot_dim_min(l->n->c, x, y) : x ? x : y;
}

ingot_dim *loop_count(Lowering *n, const Onnx__GraphProto *body, int n_carried,
                      Value *const *carried, const int64_t *step, bool *exact)
{
    enum { MOST = 1 << 24 }; /* floats count as far */
    *exact = true;
    ingot_dim *count =
        condition(&(Counting){n, body, n_carried, carried, step}, body->output[0]->name, 0, exact);
    return count && ingot_dim_hi(count) <= MOST ? count : NULL;
}
