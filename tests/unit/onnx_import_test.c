/*
 * onnx_import_test.c - how the importer reads a model's structure: names and scopes, functions,
 * order, free dims, binds, and each way in which a model can be refused. (What operators compute
 * is judged by the official cases: tests/onnx.)
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingot_onnx.h"
#include "onnx_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- models in a few lines ----------------------------------------------------------------- */

enum { MANY = 64 };

static char messages[8192];
static char pool[1 << 18]; /* what the messages of one test point to */
static size_t pool_used;

static void *take(size_t bytes)
{
    void *p = pool + pool_used;
    pool_used += (bytes + 15) & ~(size_t)15;
    assert_true(pool_used <= sizeof pool);
    memset(p, 0, bytes);
    return p;
}

#define MAKE(name, Type, fn)       \
    static Type *name(void)        \
    {                              \
        Type *m = take(sizeof *m); \
        fn(m);                     \
        return m;                  \
    }
MAKE(new_graph, Onnx__GraphProto, onnx__graph_proto__init)
MAKE(new_node, Onnx__NodeProto, onnx__node_proto__init)
MAKE(new_attr, Onnx__AttributeProto, onnx__attribute_proto__init)
MAKE(new_value, Onnx__ValueInfoProto, onnx__value_info_proto__init)
MAKE(new_type, Onnx__TypeProto, onnx__type_proto__init)
MAKE(new_tensor_type, Onnx__TypeProto__Tensor, onnx__type_proto__tensor__init)
MAKE(new_shape, Onnx__TensorShapeProto, onnx__tensor_shape_proto__init)
MAKE(new_dim, Onnx__TensorShapeProto__Dimension, onnx__tensor_shape_proto__dimension__init)
MAKE(new_tensor, Onnx__TensorProto, onnx__tensor_proto__init)
MAKE(new_opset, Onnx__OperatorSetIdProto, onnx__operator_set_id_proto__init)
MAKE(new_function, Onnx__FunctionProto, onnx__function_proto__init)
MAKE(new_model, Onnx__ModelProto, onnx__model_proto__init)
#undef MAKE

#define APPEND(list, count, item)                 \
    do {                                          \
        if (!(list))                              \
            (list) = take(MANY * sizeof *(list)); \
        (list)[(count)++] = (item);               \
    } while (0)

/* "a b c" as a list of names; "-" is one left out. */
static void names(const char *text, size_t *n, char ***list)
{
    char *copy = take(strlen(text) + 1), *rest = NULL;
    strcpy(copy, text);
    for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
        APPEND(*list, *n, strcmp(w, "-") == 0 ? (char *)"" : w);
}

static Onnx__NodeProto *node(const char *op, const char *inputs, const char *outputs)
{
    Onnx__NodeProto *n = new_node();
    n->op_type = (char *)op;
    names(inputs, &n->n_input, &n->input);
    names(outputs, &n->n_output, &n->output);
    return n;
}

static Onnx__AttributeProto *attr(Onnx__NodeProto *n, const char *name, int type)
{
    Onnx__AttributeProto *a = new_attr();
    a->name = (char *)name;
    a->has_type = 1;
    a->type = (Onnx__AttributeProto__AttributeType)type;
    if (n)
        APPEND(n->attribute, n->n_attribute, a);
    return a;
}

static void attr_i(Onnx__NodeProto *n, const char *name, int64_t v)
{
    Onnx__AttributeProto *a = attr(n, name, 2);
    a->has_i = 1;
    a->i = v;
}

static void attr_f(Onnx__NodeProto *n, const char *name, float v)
{
    Onnx__AttributeProto *a = attr(n, name, 1);
    a->has_f = 1;
    a->f = v;
}

/* A value of the dims in text: numbers, names, ? for neither, or named "?", which is !. */
static Onnx__ValueInfoProto *value(const char *name, int dtype, const char *dims)
{
    Onnx__ValueInfoProto *v = new_value();
    char copy[256], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", dims);
    v->name = (char *)name;
    v->type = new_type();
    v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    v->type->tensor_type = new_tensor_type();
    v->type->tensor_type->has_elem_type = 1;
    v->type->tensor_type->elem_type = dtype;
    v->type->tensor_type->shape = new_shape();
    Onnx__TensorShapeProto *s = v->type->tensor_type->shape;
    for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        Onnx__TensorShapeProto__Dimension *d = new_dim();
        if (*w >= '0' && *w <= '9') {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            d->dim_value = atoll(w);
        } else if (*w != '?') {
            char *name_copy = take(strlen(w) + 1);
            strcpy(name_copy, *w == '!' ? "?" : w);
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            d->dim_param = name_copy;
        }
        APPEND(s->dim, s->n_dim, d);
    }
    return v;
}

static void input(Onnx__GraphProto *g, const char *name, const char *dims)
{
    APPEND(g->input, g->n_input, value(name, 1, dims));
}

static void output(Onnx__GraphProto *g, const char *name, const char *dims)
{
    APPEND(g->output, g->n_output, value(name, 1, dims));
}

static void add(Onnx__GraphProto *g, Onnx__NodeProto *n)
{
    APPEND(g->node, g->n_node, n);
}

static void ints(Onnx__GraphProto *g, const char *name, int count, const int64_t *v)
{
    Onnx__TensorProto *t = new_tensor();
    t->name = (char *)name;
    t->has_data_type = 1;
    t->data_type = 7;
    APPEND(t->dims, t->n_dims, count);
    for (int i = 0; i < count; i++)
        APPEND(t->int64_data, t->n_int64_data, v[i]);
    APPEND(g->initializer, g->n_initializer, t);
}

static Onnx__OperatorSetIdProto *opset(const char *domain, int64_t version)
{
    Onnx__OperatorSetIdProto *o = new_opset();
    o->domain = (char *)domain;
    o->has_version = 1;
    o->version = version;
    return o;
}

static Onnx__ModelProto *model_of(Onnx__GraphProto *g)
{
    Onnx__ModelProto *m = new_model();
    m->has_ir_version = 1;
    m->ir_version = 8;
    m->graph = g;
    APPEND(m->opset_import, m->n_opset_import, opset("", 17));
    return m;
}

/* ---- importing one --------------------------------------------------------------------------- */

static ingot_context *context;
static ingot_onnx *onnx;

static void keep(void *user, ingot_level level, const char *message)
{
    (void)user, (void)level;
    size_t used = strlen(messages);
    snprintf(messages + used, sizeof messages - used, "%s\n", message);
}

static bool import(Onnx__ModelProto *m, const ingot_model_options *o)
{
    static char path[] = "/tmp/onnx_import_test.XXXXXX";
    static uint8_t bytes[1 << 17];
    size_t n = onnx__model_proto__get_packed_size(m);
    assert_true(n <= sizeof bytes);
    onnx__model_proto__pack(m, bytes);
    strcpy(path + strlen(path) - 6, "XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
    context = ingot_context_new(keep, NULL);
    onnx = ingot_onnx_open(context, path);
    unlink(path);
    return onnx && ingot_onnx_check(onnx) && ingot_onnx_build(onnx, o);
}

/* Runs the model on one f32 input of n elements and returns output 0. */
static const float *run(const float *x, int rank, const int64_t *dims)
{
    static ingot_value out[4];
    ingot_value in = {.data = x, .rank = rank, .dtype = INGOT_F32};
    memcpy(in.dims, dims, (size_t)rank * sizeof *dims);
    memset(out, 0, sizeof out);
    assert_int_equal(ingot_interpret(context, 1, &in, ingot_onnx_output_count(onnx), out),
                     INGOT_OK);
    return out[0].data;
}

static void assert_told(const char *part)
{
    if (!strstr(messages, part))
        fail_msg("no '%s' in:\n%s", part, messages);
}

static void assert_refused(Onnx__ModelProto *m, ingot_status status, const char *part)
{
    assert_false(import(m, NULL));
    assert_told(part);
    assert_int_equal(ingot_context_status(context), status);
}

static int setup(void **state)
{
    (void)state;
    messages[0] = '\0';
    pool_used = 0;
    context = NULL;
    onnx = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (context)
        ingot_context_free(context);
    ingot_onnx_close(onnx);
    return 0;
}

/* ---- names and order ------------------------------------------------------------------------- */

static void nodes_in_any_order(void **state)
{
    (void)state;
    const float x[] = {1, -2};
    const int64_t dims[] = {2};
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    add(g, node("Neg", "r", "y"));
    add(g, node("Relu", "x", "r"));
    assert_true(import(model_of(g), NULL));
    const float *y = run(x, 1, dims);
    assert_true(y[0] == -1 && y[1] == 0);
}

static void a_cycle_names_a_node(void **state)
{
    (void)state;
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "a", "2");
    Onnx__NodeProto *n = node("Add", "x b", "a");
    n->name = (char *)"first";
    add(g, n);
    add(g, node("Relu", "a", "b"));
    assert_refused(model_of(g), INGOT_INVALID, "'first' (Add): it depends on its own output");
}

static void names_are_defined_once(void **state)
{
    (void)state;
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    add(g, node("Relu", "x", "y"));
    add(g, node("Neg", "x", "y"));
    assert_refused(model_of(g), INGOT_INVALID, "'y' is defined twice");
}

static void a_missing_input_is_named(void **state)
{
    (void)state;
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    add(g, node("Add", "x nobody", "y"));
    assert_refused(model_of(g), INGOT_INVALID, "(Add): its input 'nobody' is defined nowhere");
}

static void a_missing_output_is_named(void **state)
{
    (void)state;
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    add(g, node("Relu", "x", "z"));
    assert_refused(model_of(g), INGOT_INVALID, "the output 'y' is defined nowhere");
}

static void unsupported_nodes_are_told_at_once(void **state)
{
    (void)state;
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    add(g, node("Nonsense", "x", "a"));
    add(g, node("Relu", "missing", "b"));
    Onnx__NodeProto *n = node("Strange", "a", "y");
    n->name = (char *)"second";
    add(g, n);
    assert_refused(model_of(g), INGOT_UNSUPPORTED, "'a' (Nonsense): operator not supported");
    assert_told("'second' (Strange): operator not supported");
    assert_null(strstr(messages, "missing"));
}

/* ---- opsets and attributes ------------------------------------------------------------------- */

static void opsets_are_checked(void **state)
{
    (void)state;
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    add(g, node("Relu", "x", "y"));
    Onnx__ModelProto *m = model_of(g);
    m->opset_import[0]->version = 99;
    assert_refused(m, INGOT_UNSUPPORTED, "opset 99");
}

static void operators_have_a_first_version(void **state)
{
    (void)state;
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    add(g, node("Mish", "x", "y"));
    assert_refused(model_of(g), INGOT_INVALID, "came with version 18");
}

static void attributes_have_types(void **state)
{
    (void)state;
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2 3");
    output(g, "y", "2 3");
    Onnx__NodeProto *n = node("Softmax", "x", "y");
    attr_f(n, "axis", 1);
    add(g, n);
    assert_refused(model_of(g), INGOT_INVALID, "'axis' has to be an integer, not a float");
}

static void dtypes_of_outputs_are_checked(void **state)
{
    (void)state;
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    add(g, node("Shape", "x", "y"));
    assert_refused(model_of(g), INGOT_INVALID, "the file declares f32");
}

/* ---- inputs and dims ------------------------------------------------------------------------- */

/* x [batch, 2, 3] -> [batch, 6] by way of Shape, Gather, Concat and Reshape. */
static Onnx__ModelProto *flattener(const char *dims)
{
    const int64_t zero[] = {0}, rest[] = {-1};
    Onnx__GraphProto *g = new_graph();
    input(g, "x", dims);
    output(g, "y", "batch 6");
    ints(g, "zero", 1, zero);
    ints(g, "rest", 1, rest);
    add(g, node("Shape", "x", "s"));
    add(g, node("Gather", "s zero", "b"));
    add(g, node("Concat", "b rest", "t"));
    attr_i(g->node[2], "axis", 0);
    add(g, node("Reshape", "x t", "y"));
    return model_of(g);
}

static void free_dims_need_bounds(void **state)
{
    (void)state;
    assert_refused(flattener("batch 2 3"), INGOT_UNSUPPORTED, "bounds for each: --dim batch=1..16");
}

static void shells_get_words(void **state)
{
    (void)state;
    assert_refused(flattener("a+2*b 2 3"), INGOT_UNSUPPORTED, "each: --dim 'a+2*b=1..16'");
}

static void nameless_dims_get_names(void **state)
{
    (void)state;
    assert_refused(flattener("? 2 3"), INGOT_UNSUPPORTED, "'x_0' of input 'x'");
    assert_string_equal(ingot_onnx_input(onnx, 0)->dim_names[0], "x_0");
}

/* Some writers call each dim "?" that they do not know: these are not one. */
static void dims_of_no_name_are_several(void **state)
{
    (void)state;
    const ingot_model_dim sizes[] = {{"x_1", 1, 4}, {"x_2", 1, 5}};
    const ingot_model_options o = {.struct_size = sizeof o, .dims = sizes, .n_dims = 2};
    const float x[6] = {[5] = -7};
    const int64_t dims[] = {1, 2, 3};
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "1 ! !");
    output(g, "y", "1 ! !");
    add(g, node("Neg", "x", "y"));
    assert_true(import(model_of(g), &o));
    assert_true(run(x, 3, dims)[5] == 7);
}

/* How places of anchors are made: a range of floats up to a dim. */
static void a_float_may_be_a_dim(void **state)
{
    (void)state;
    const ingot_model_dim size = {"size", 1, 4};
    const ingot_model_options o = {.struct_size = sizeof o, .dims = &size, .n_dims = 1};
    const float x[3] = {[2] = 7};
    const int64_t dims[] = {3};
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "size");
    output(g, "y", "size");
    add(g, node("Shape", "x", "s"));
    add(g, node("Squeeze", "s", "n"));
    add(g, node("Cast", "n", "f"));
    attr_i(g->node[2], "to", 1);
    add(g, node("Sub", "f f", "start"));
    add(g, node("Exp", "start", "step"));
    add(g, node("Range", "start f step", "i"));
    add(g, node("Add", "x i", "y"));
    assert_true(import(model_of(g), &o));
    assert_true(run(x, 1, dims)[2] == 9);
}

static void free_dims_run_through_shapes(void **state)
{
    (void)state;
    const ingot_model_dim batch = {"batch", 1, 4};
    const ingot_model_options o = {.struct_size = sizeof o, .dims = &batch, .n_dims = 1};
    const float x[18] = {[17] = 7};
    const int64_t dims[] = {3, 2, 3};
    assert_true(import(flattener("batch 2 3"), &o));
    assert_true(run(x, 3, dims)[17] == 7);
}

static void initializers_may_be_inputs(void **state)
{
    (void)state;
    const int64_t shape[] = {1, 2};
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    APPEND(g->input, g->n_input, value("shape", 7, "2"));
    ints(g, "shape", 2, shape);
    output(g, "y", "1 2");
    add(g, node("Reshape", "x shape", "y"));
    assert_true(import(model_of(g), NULL));
    assert_int_equal(ingot_onnx_input_count(onnx), 1);
}

static void inputs_may_be_bound(void **state)
{
    (void)state;
    static const int64_t shape[] = {2, 1}, two[] = {2};
    const ingot_model_bind bind = {"shape", INGOT_I64, 1, two, shape};
    const ingot_model_options o = {.struct_size = sizeof o, .binds = &bind, .n_binds = 1};
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    APPEND(g->input, g->n_input, value("shape", 7, "2"));
    output(g, "y", "a b");
    add(g, node("Reshape", "x shape", "y"));
    assert_refused(model_of(g), INGOT_UNSUPPORTED, "--bind gives an input");
    teardown(NULL);
    context = NULL;
    assert_true(import(model_of(g), &o));
}

static void optional_inputs_may_be_left_out(void **state)
{
    (void)state;
    const float x[] = {1, -2};
    const int64_t dims[] = {2};
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    add(g, node("Clip", "x - zero", "y"));
    Onnx__NodeProto *zero = node("Constant", "", "zero");
    attr_f(zero, "value_float", 0);
    add(g, zero);
    assert_true(import(model_of(g), NULL));
    const float *y = run(x, 1, dims);
    assert_true(y[0] == 0 && y[1] == -2);
}

/* ---- functions and subgraphs ----------------------------------------------------------------- */

static Onnx__FunctionProto *function(const char *name, const char *inputs, const char *outputs)
{
    Onnx__FunctionProto *f = new_function();
    f->name = (char *)name;
    f->domain = (char *)"mine";
    names(inputs, &f->n_input, &f->input);
    names(outputs, &f->n_output, &f->output);
    APPEND(f->opset_import, f->n_opset_import, opset("", 17));
    APPEND(f->opset_import, f->n_opset_import, opset("mine", 1));
    return f;
}

static Onnx__NodeProto *call(const char *name, const char *inputs, const char *outputs)
{
    Onnx__NodeProto *n = node(name, inputs, outputs);
    n->domain = (char *)"mine";
    return n;
}

static Onnx__ModelProto *with_function(Onnx__GraphProto *g, Onnx__FunctionProto *f)
{
    Onnx__ModelProto *m = model_of(g);
    APPEND(m->opset_import, m->n_opset_import, opset("mine", 1));
    APPEND(m->functions, m->n_functions, f);
    return m;
}

/* Leaky(x) = LeakyRelu(x, alpha = slope), slope given by the caller or 0.5 */
static void functions_take_attributes(void **state)
{
    (void)state;
    const float x[] = {-8, 1};
    const int64_t dims[] = {2};
    Onnx__FunctionProto *f = function("Leaky", "a", "b");
    Onnx__NodeProto *body = node("LeakyRelu", "a", "b"), *given = call("Leaky", "x", "p");
    attr(body, "alpha", 1)->ref_attr_name = (char *)"slope";
    APPEND(f->node, f->n_node, body);
    Onnx__AttributeProto *standard = attr(NULL, "slope", 1);
    standard->has_f = 1;
    standard->f = 0.5f;
    APPEND(f->attribute_proto, f->n_attribute_proto, standard);
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    attr_f(given, "slope", 0.25f);
    add(g, given);
    add(g, call("Leaky", "p", "y"));
    assert_true(import(with_function(g, f), NULL));
    assert_true(run(x, 1, dims)[0] == -1);
}

static void functions_may_not_call_themselves(void **state)
{
    (void)state;
    Onnx__FunctionProto *f = function("Again", "a", "b");
    APPEND(f->node, f->n_node, call("Again", "a", "b"));
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    add(g, call("Again", "x", "y"));
    assert_refused(with_function(g, f), INGOT_INVALID, "'Again' calls itself");
}

static void functions_see_their_inputs_only(void **state)
{
    (void)state;
    Onnx__FunctionProto *f = function("Peek", "a", "b");
    APPEND(f->node, f->n_node, node("Add", "a x", "b"));
    Onnx__GraphProto *g = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    add(g, call("Peek", "x", "y"));
    assert_refused(with_function(g, f), INGOT_INVALID, "its input 'x' is defined nowhere");
}

/* if (sum(x) > 0) y = -x else y = x */
static void subgraphs_see_the_names_around_them(void **state)
{
    (void)state;
    const float x[] = {3, -1};
    const int64_t dims[] = {2};
    Onnx__GraphProto *g = new_graph(), *then_graph = new_graph(), *else_graph = new_graph();
    input(g, "x", "2");
    output(g, "y", "2");
    add(then_graph, node("Neg", "x", "t"));
    output(then_graph, "t", "2");
    add(else_graph, node("Identity", "x", "e"));
    output(else_graph, "e", "2");
    Onnx__NodeProto *sum = node("ReduceSum", "x", "s"), *branch = node("If", "c", "y");
    Onnx__NodeProto *zero = node("Constant", "", "zero");
    attr_i(sum, "keepdims", 0);
    attr_f(zero, "value_float", 0);
    attr(branch, "then_branch", 5)->g = then_graph;
    attr(branch, "else_branch", 5)->g = else_graph;
    add(g, sum);
    add(g, zero);
    add(g, node("Greater", "s zero", "c"));
    add(g, branch);
    assert_true(import(model_of(g), NULL));
    assert_true(run(x, 1, dims)[0] == -3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nodes_in_any_order),
        TEST(a_cycle_names_a_node),
        TEST(names_are_defined_once),
        TEST(a_missing_input_is_named),
        TEST(a_missing_output_is_named),
        TEST(unsupported_nodes_are_told_at_once),
        TEST(opsets_are_checked),
        TEST(operators_have_a_first_version),
        TEST(attributes_have_types),
        TEST(dtypes_of_outputs_are_checked),
        TEST(free_dims_need_bounds),
        TEST(shells_get_words),
        TEST(nameless_dims_get_names),
        TEST(dims_of_no_name_are_several),
        TEST(a_float_may_be_a_dim),
        TEST(free_dims_run_through_shapes),
        TEST(initializers_may_be_inputs),
        TEST(inputs_may_be_bound),
        TEST(optional_inputs_may_be_left_out),
        TEST(functions_take_attributes),
        TEST(functions_may_not_call_themselves),
        TEST(functions_see_their_inputs_only),
        TEST(subgraphs_see_the_names_around_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
