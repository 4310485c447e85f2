/*
 * onnx_implied.c - what the file says of a size further down.
 *
 * A file may declare the shape of an output of the model, but none of the values before it. Where
 * the data decide a size and nothing else bounds it, the axis is followed through the nodes that
 * use the tensor, as far as they keep it: element by element, casts, transposes, new axes, other
 * parts of a Concat, calls of functions and out of them, out of a branch. The first value on the
 * way whose shape is declared tells the size. It is a guess of what the run will bring, like any
 * declared shape, and compared with the data in the same way.
 *
 * An axis is followed only where the result has its size whatever that is: an axis that is added to
 * another of 5 elements may have 5 or 1, so it ends there.
 */
#include <string.h>

#include "onnx.h"

enum { ONE = -1, OTHER = -2 }; /* axes that are 1, and those of which nothing is known */

/* The axes of a value: which axis of the tensor in question each of them is. */
typedef struct {
    int rank;
    int axis[INGOT_MAX_RANK];
} AxisTrace;

typedef struct {
    Model *model;
    Scope *scope; /* whose values are known; NULL: of a function that is called */
    Names traces; /* AxisTrace */
    int axis;
    int64_t size; /* the answer, or -1 */
} ImpliedWalk;

/* ---- what is known of a value ---------------------------------------------------------------- */

static AxisTrace *trace_new(ImpliedWalk *w, const char *name, int rank)
{
    AxisTrace *t = ingot_alloc(w->model->c, sizeof *t);
    t->rank = rank;
    names_put(w->model->c, &w->traces, name, t);
    return t;
}

/* That of a name which has been met, or of a tensor that has been made. NULL: nothing is known. */
static const AxisTrace *trace_of(ImpliedWalk *w, const char *name)
{
    AxisTrace *t = names_get(&w->traces, name);
    Value *v = t || !w->scope ? NULL : scope_find(w->model, w->scope, name);
    if (t || !v || v->kind != VALUE_TENSOR || !v->tensor || ingot_is_poison(v->tensor))
        return t;
    t = trace_new(w, name, ingot_rank(v->tensor));
    for (int a = 0; a < t->rank; a++)
        t->axis[a] = dim_is(ingot_shape(v->tensor, a), 1) ? ONE : OTHER;
    return t;
}

/* A Lowering of a node that is only looked at. */
static Lowering peek(ImpliedWalk *w, const Onnx__NodeProto *node)
{
    return (Lowering){
        .c = w->model->c, .model = w->model, .proto = node, .scope = w->scope, .version = 1};
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* All inputs broadcast, or the shape of the first. */
static const char *const broadcasting[] = {
    "Add",   "And",     "BitwiseAnd",     "BitwiseOr", "BitwiseXor", "BitShift", "Clip",  "Div",
    "Equal", "Greater", "GreaterOrEqual", "Less",      "Max",        "Mean",     "Min",   "Mod",
    "Mul",   "Or",      "LessOrEqual",    "Pow",       "Sub",        "Sum",      "Where", "Xor",
};
static const char *const like_first[] = {
    "Abs",        "Acos",       "Acosh",
    "Asin",       "Asinh",      "Atan",
    "Atanh",      "BitwiseNot", "Cast",
    "CastLike",   "Ceil",       "Celu",
    "Cos",        "Cosh",       "CumSum",
    "Dropout",    "Elu",        "Erf",
    "Exp",        "Floor",      "Gelu",
    "HardSwish",  "Hardmax",    "HardSigmoid",
    "Identity",   "IsInf",      "IsNaN",
    "LeakyRelu",  "Log",        "Mish",
    "LogSoftmax", "Neg",        "Not",
    "Reciprocal", "Relu",       "Round",
    "Selu",       "Shrink",     "Sigmoid",
    "Sign",       "Sin",        "Sinh",
    "Softmax",    "Softplus",   "Softsign",
    "Sqrt",       "Swish",      "Tan",
    "Tanh",       "Trilu",      "ThresholdedRelu",
};

static bool among(const char *name, const char *const *list, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

/* Two axes of which one is stretched, or that have to be equal. */
static int joined(int a, int b)
{
    return a == ONE ? b : b == ONE || a == b ? a : OTHER;
}

static void trace_broadcast(ImpliedWalk *w, const Onnx__NodeProto *node)
{
    AxisTrace t = {0};
    for (size_t i = 0; i < node->n_input; i++) {
        const AxisTrace *in = node->input[i][0] ? trace_of(w, node->input[i]) : &t;
        if (!in)
            return;
        int rank = in->rank > t.rank ? in->rank : t.rank;
        AxisTrace both = {.rank = rank};
        for (int a = 0; a < rank; a++) {
            int x = a - (rank - t.rank), y = a - (rank - in->rank);
            both.axis[a] = joined(x < 0 ? ONE : t.axis[x], y < 0 ? ONE : in->axis[y]);
        }
        t = both;
    }
    *trace_new(w, node->output[0], t.rank) = t;
}

static void trace_transpose(ImpliedWalk *w, const Onnx__NodeProto *node, const AxisTrace *in)
{
    const int64_t *perm;
    Lowering n = peek(w, node);
    int count = attr_ints(&n, "perm", &perm);
    if (n.failed || (count >= 0 && count != in->rank))
        return;
    AxisTrace *t = trace_new(w, node->output[0], in->rank);
    for (int a = 0; a < in->rank; a++) {
        int64_t from = count < 0 ? in->rank - 1 - a : perm[a] + (perm[a] < 0 ? in->rank : 0);
        t->axis[a] = from >= 0 && from < in->rank ? in->axis[from] : OTHER;
    }
}

/* The axes of Squeeze and Unsqueeze; -1 if they are not known by now. */
static int known_axes(ImpliedWalk *w, const Onnx__NodeProto *node, int64_t *list)
{
    const int64_t *attr;
    Lowering n = peek(w, node);
    int count = attr_ints(&n, "axes", &attr);
    if (n.failed || count > INGOT_MAX_RANK)
        return -1;
    if (count >= 0)
        memcpy(list, attr, (size_t)count * sizeof *list);
    if (count >= 0 || node->n_input < 2 || !w->scope)
        return count;
    Value *v = scope_find(w->model, w->scope, node->input[1]);
    if (!v || v->kind != VALUE_TENSOR || !v->tensor || ingot_is_poison(v->tensor) ||
        !ingot_const_ints(w->model->c, v->tensor, list, INGOT_MAX_RANK, &count))
        return -1;
    return count;
}

static void trace_squeeze(ImpliedWalk *w, const Onnx__NodeProto *node, const AxisTrace *in,
                          bool squeeze)
{
    int64_t list[INGOT_MAX_RANK];
    unsigned axes = 0;
    int count = known_axes(w, node, list), rank = squeeze ? in->rank : in->rank + count;
    if (count < 0 || rank > INGOT_MAX_RANK)
        return;
    for (int i = 0; i < count; i++) {
        int64_t a = list[i] + (list[i] < 0 ? rank : 0);
        if (a < 0 || a >= rank || axes >> a & 1)
            return;
        axes |= 1u << a;
    }
    AxisTrace *t = trace_new(w, node->output[0], squeeze ? rank - count : rank);
    for (int a = 0, narrow = 0; a < rank; a++) {
        bool listed = axes >> a & 1;
        if (squeeze && !listed)
            t->axis[narrow++] = in->axis[a];
        else if (!squeeze)
            t->axis[a] = listed ? ONE : in->axis[narrow++];
    }
}

/* All axes but one are those of all inputs. */
static void trace_concat(ImpliedWalk *w, const Onnx__NodeProto *node)
{
    Lowering n = peek(w, node);
    int64_t axis = attr_int(&n, "axis", 1);
    AxisTrace t = {.rank = -1};
    for (size_t i = 0; i < node->n_input; i++) {
        const AxisTrace *in = trace_of(w, node->input[i]);
        if (!in)
            continue;
        if (t.rank < 0)
            t = *in;
        for (int a = 0; a < t.rank && a < in->rank; a++)
            t.axis[a] = in->axis[a] >= 0 ? in->axis[a] : t.axis[a];
    }
    axis += axis < 0 ? t.rank : 0;
    if (n.failed || axis < 0 || axis >= t.rank)
        return;
    t.axis[axis] = OTHER;
    *trace_new(w, node->output[0], t.rank) = t;
}

static void trace_constant(ImpliedWalk *w, const Onnx__NodeProto *node)
{
    Lowering n = peek(w, node);
    const OnnxTensor *e = attr_has(&n, "value") ? attr_elements(&n, "value") : NULL;
    bool scalar = attr_has(&n, "value_int") || attr_has(&n, "value_float");
    if (n.failed || (!e && !scalar) || (e && e->rank > INGOT_MAX_RANK))
        return;
    AxisTrace *t = trace_new(w, node->output[0], e ? (int)e->rank : 0);
    for (int a = 0; a < t->rank; a++)
        t->axis[a] = e->dims[a] == 1 ? ONE : OTHER;
}

/* ---- the way down ---------------------------------------------------------------------------- */

/* Is the value declared, and is the axis in question one of its axes? */
static void conclude(ImpliedWalk *w, const char *name)
{
    int64_t dims[INGOT_MAX_RANK];
    const AxisTrace *t = names_get(&w->traces, name);
    if (!t || !w->scope || w->size >= 0 || !declared_dims(w->scope, name, t->rank, dims))
        return;
    for (int a = 0; a < t->rank && w->size < 0; a++)
        if (t->axis[a] == w->axis)
            w->size = dims[a];
}

static void walk_nodes(ImpliedWalk *w, size_t n_node, Onnx__NodeProto **node, int depth);

/* What a called function does to the shapes of its inputs. */
static void trace_call(ImpliedWalk *w, const Onnx__NodeProto *node, const Onnx__FunctionProto *f,
                       int depth)
{
    ImpliedWalk in = {.model = w->model, .axis = w->axis, .size = -1};
    if (depth >= ONNX_MAX_NESTING || node->n_output > f->n_output)
        return;
    for (size_t i = 0; i < f->n_input && i < node->n_input; i++) {
        const AxisTrace *t = node->input[i][0] ? trace_of(w, node->input[i]) : NULL;
        if (t)
            *trace_new(&in, f->input[i], t->rank) = *t;
    }
    walk_nodes(&in, f->n_node, f->node, depth + 1);
    for (size_t i = 0; i < node->n_output; i++) {
        const AxisTrace *t = names_get(&in.traces, f->output[i]);
        if (t && node->output[i][0])
            *trace_new(w, node->output[i], t->rank) = *t;
    }
}

/* Attributes of a called function's node that its call decides. */
static bool is_open(const ImpliedWalk *w, const Onnx__NodeProto *node)
{
    for (size_t i = 0; !w->scope && i < node->n_attribute; i++)
        if (node->attribute[i]->ref_attr_name && node->attribute[i]->ref_attr_name[0])
            return true;
    return false;
}

static void trace_node(ImpliedWalk *w, const Onnx__NodeProto *node, int depth)
{
    const char *op = node->op_type;
    const Onnx__FunctionProto *f = function_find(w->model, node);
    const AxisTrace *first =
        node->n_input && node->input[0][0] ? trace_of(w, node->input[0]) : NULL;
    if (f) {
        trace_call(w, node, f, depth);
        return;
    }
    if (strcmp(domain_text(node->domain), "ai.onnx") != 0 || !node->n_output ||
        !node->output[0][0] || is_open(w, node) || names_get(&w->traces, node->output[0]))
        return;
    if (strcmp(op, "Constant") == 0)
        trace_constant(w, node);
    else if (strcmp(op, "Concat") == 0)
        trace_concat(w, node);
    else if (among(op, broadcasting, COUNT(broadcasting)))
        trace_broadcast(w, node);
    else if (first && among(op, like_first, COUNT(like_first)))
        *trace_new(w, node->output[0], first->rank) = *first;
    else if (first && strcmp(op, "Transpose") == 0)
        trace_transpose(w, node, first);
    else if (first && (strcmp(op, "Squeeze") == 0 || strcmp(op, "Unsqueeze") == 0))
        trace_squeeze(w, node, first, op[0] == 'S');
}

/* Files whose nodes come in another order are followed as far as the order goes. */
static void walk_nodes(ImpliedWalk *w, size_t n_node, Onnx__NodeProto **node, int depth)
{
    for (size_t i = 0; i < n_node && w->size < 0; i++) {
        trace_node(w, node[i], depth);
        for (size_t k = 0; k < node[i]->n_output; k++)
            if (node[i]->output[k][0])
                conclude(w, node[i]->output[k]);
    }
}

/* The name in the list of nodes around this one that is output i of it, if any. */
static const char *outer_name(const Scope *s, const char *name)
{
    const Lowering *node = s->caller ? s->caller : s->branch_of;
    size_t count = s->caller ? s->function->n_output : s->graph ? s->graph->n_output : 0;
    for (size_t i = 0; node && i < count && i < node->proto->n_output; i++) {
        const char *out = s->caller ? s->function->output[i] : s->graph->output[i]->name;
        if (strcmp(out, name) == 0 && node->proto->output[i][0])
            return node->proto->output[i];
    }
    return NULL;
}

/* Outwards: what has been traced, and leaves the function or the branch, goes on around it. */
static void walk_scope(ImpliedWalk *w)
{
    walk_nodes(w, w->scope->n_node, w->scope->node, 0);
    const Lowering *node = w->scope->caller ? w->scope->caller : w->scope->branch_of;
    if (!node || w->size >= 0)
        return;
    ImpliedWalk out = {.model = w->model, .scope = node->scope, .axis = w->axis, .size = -1};
    bool any = false;
    for (size_t k = 0; k < w->traces.cap; k++) {
        const char *name = w->traces.key[k], *outer = name ? outer_name(w->scope, name) : NULL;
        const AxisTrace *t = outer ? w->traces.value[k] : NULL;
        bool has = false;
        for (int a = 0; t && a < t->rank; a++)
            has |= t->axis[a] == w->axis;
        if (!has)
            continue;
        *trace_new(&out, outer, t->rank) = *t;
        conclude(&out, outer);
        any = true;
    }
    if (any && out.size < 0)
        walk_scope(&out);
    w->size = out.size;
}

int64_t implied_size(Lowering *n, int output, int axis, int rank)
{
    ImpliedWalk w = {.model = n->model, .scope = n->scope, .axis = axis, .size = -1};
    if (output >= n->n_out || !n->proto->output[output][0])
        return -1;
    AxisTrace *t = trace_new(&w, n->proto->output[output], rank);
    for (int a = 0; a < rank; a++)
        t->axis[a] = a;
    walk_scope(&w);
    return w.size;
}
