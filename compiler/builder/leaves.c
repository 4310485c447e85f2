/* leaves.c - inputs, outputs, constants, states, iotas, and the uniform tensors made of one
 * constant.
 *
 * Constant data stays where it is (a mapped weights file); only small tensors are looked at, since
 * one whose elements are all equal is worth more as a constant than as memory. */
#include <math.h>
#include <string.h>

#include "builder.h"
#include "eval.h"
#include "igrt_num.h"

/* ---- uniform tensors ----------------------------------------------------------------------- */

/* scalar -> RESHAPE to ones -> EXPAND: the only form the builder makes. */
Node *uniform_make(Context *c, Node *scalar, int rank, Node *const *dims)
{
    if (rank == 0)
        return scalar;
    Node *src[1 + INGOT_MAX_RANK] = {scalar};
    Node *one = idx(c, 1);
    bool all_ones = true;
    for (int i = 0; i < rank; i++) {
        src[1 + i] = one;
        all_ones &= dims[i] == one;
    }
    ingot_dtype d = (ingot_dtype)scalar->dtype;
    Node *x = node_make(c, OP_RESHAPE, d, (Arg){0}, 1 + rank, src, rank, src + 1);
    if (all_ones)
        return x;
    src[0] = x;
    for (int i = 0; i < rank; i++)
        src[1 + i] = dims[i];
    return node_make(c, OP_EXPAND, d, (Arg){0}, 1 + rank, src, rank, dims);
}

bool const_is(Node *k, double value)
{
    if (!k || k->op != OP_CONST)
        return false;
    if (!dtype_is_float(k->dtype))
        return (double)k->arg.i == value;
    double v = node_float(k);
    return memcmp(&v, &value, sizeof v) == 0;
}

/* ---- inputs, outputs, states ---------------------------------------------------------------- */

static Node *leaf_make(Context *c, Op op, ingot_dtype d, Arg arg, int rank, Node *const *dims)
{
    return node_make(c, op, d, arg, rank, dims, rank, dims);
}

static bool dtype_check(Context *c, const char *what, ingot_dtype d)
{
    if ((int)d >= 0 && d < INGOT_DTYPE_COUNT && d != INGOT_INDEX)
        return true;
    ingot_error(c, INGOT_INVALID, "%s: %d is no element type", what, (int)d);
    return false;
}

/* Does a step of the run set a part of it? */
static bool is_counted(const Context *c, const Node *dim)
{
    if (dim->op == OP_VAR)
        return c->vars[dim->arg.i].kind != VAR_DIM;
    for (uint32_t i = 0; i < dim->nsrc; i++)
        if (is_counted(c, dim->src[i]))
            return true;
    return false;
}

/* What the caller gives has sizes before the first step: one that a step sets is required then. */
static ingot_tensor *sized_input(Context *c, const char *name, Node *x, Node *const *asked)
{
    for (int a = 0; a < x->rank; a++)
        if (!ingot_require(c, x->shape[a], asked[a], asked[a],
                           arena_printf(c->arena, "the size of axis %d of input '%s'", a, name)))
            return c->poison;
    return with_shape(c, x, asked);
}

ingot_tensor *ingot_input(ingot_context *c, const char *name, ingot_dtype d, int rank,
                          ingot_dim *const *dims)
{
    Node *given[INGOT_MAX_RANK];
    if (!name)
        return ingot_error(c, INGOT_INVALID, "an input needs a name");
    if (!dtype_check(c, "input", d) || !shape_check(c, "input", rank, dims))
        return c->poison;
    for (int i = 0; i < c->ninput; i++)
        if (!strcmp(c->inputs[i].name, name))
            return ingot_error(c, INGOT_INVALID, "two inputs are named '%s'", name);
    for (int a = 0; a < rank; a++)
        given[a] = !is_counted(c, dims[a])
                       ? dims[a]
                       : var_new(c, VAR_DIM, arena_printf(c->arena, "%s_%d", name, c->nvar),
                                 dims[a]->lo, dims[a]->hi)
                             ->node;
    const Arg number = {.i = c->ninput + (int64_t)c->function * FUNCTION_INPUTS};
    NamedNode in = {.name = arena_strdup(c->arena, name),
                    .node = leaf_make(c, OP_INPUT, d, number, rank, given)};
    in.here = group_here(c, c->input_groups, c->ninput_group, c->ninput, in.node);
    vec_push(c->arena, c->inputs, c->ninput, in);
    return sized_input(c, in.name, in.node, dims);
}

void ingot_output(ingot_context *c, const char *name, ingot_tensor *x)
{
    if (poisoned(x))
        return;
    if (!name) {
        ingot_error(c, INGOT_INVALID, "an output needs a name");
        return;
    }
    if (c->region) {
        ingot_error(c, INGOT_INVALID, "output '%s' is declared inside a region; declare it after",
                    name);
        return;
    }
    for (int i = 0; i < c->noutput; i++)
        if (!strcmp(c->outputs[i].name, name)) {
            ingot_error(c, INGOT_INVALID, "two outputs are named '%s'", name);
            return;
        }
    NamedNode out = {.name = arena_strdup(c->arena, name), .node = x};
    out.here = group_here(c, c->output_groups, c->noutput_group, c->noutput, x);
    vec_push(c->arena, c->outputs, c->noutput, out);
}

void ingot_output_classes(ingot_context *c, const char *output, int n, const char *const *name,
                          const int64_t *number)
{
    Classes *classes = NEWN(c->arena, Classes, 1);
    classes->n = n;
    if (name) {
        classes->name = NEWN(c->arena, const char *, n + 1);
        for (int i = 0; i < n; i++)
            classes->name[i] = arena_strdup(c->arena, name[i]);
    } else {
        classes->number = NEWN(c->arena, int64_t, n + 1);
        for (int i = 0; i < n; i++)
            classes->number[i] = number[i];
    }
    for (int i = 0; i < c->noutput; i++)
        if (!strcmp(c->outputs[i].name, output))
            c->outputs[i].classes = classes;
}

/* Constant dims as nodes; false (with a report) if they are no shape. */
static bool dims_from_ints(Context *c, const char *what, int rank, const int64_t *dims, Node **out)
{
    if (rank < 0 || rank > INGOT_MAX_RANK)
        return shape_check(c, what, rank, NULL);
    for (int i = 0; i < rank; i++)
        out[i] = idx(c, dims[i]);
    return shape_check(c, what, rank, out);
}

/* Whose dims are checked. */
static Node *state_make(Context *c, const char *name, ingot_dtype d, int rank, Node *const *dims)
{
    for (int i = 0; i < c->nstate; i++)
        if (!strcmp(c->states[i].name, name))
            return (Node *)(uintptr_t)ingot_error(c, INGOT_INVALID,
                                                  "two state tensors are named '%s'", name);
    StateTensor s = {.name = arena_strdup(c->arena, name),
                     .node = leaf_make(c, OP_STATE, d, (Arg){.i = c->nstate}, rank, dims)};
    for (int i = 0; i < rank; i++)
        s.grows |= dims[i]->op == OP_VAR;
    vec_push(c->arena, c->states, c->nstate, s);
    return s.node;
}

ingot_tensor *ingot_state(ingot_context *c, const char *name, ingot_dtype d, int rank,
                          const int64_t *dims)
{
    Node *nodes[INGOT_MAX_RANK];
    if (!name)
        return ingot_error(c, INGOT_INVALID, "a state tensor needs a name");
    if (!dtype_check(c, "state", d) || !dims_from_ints(c, "state", rank, dims, nodes))
        return c->poison;
    return state_make(c, name, d, rank, nodes);
}

ingot_tensor *ingot_growing_state(ingot_context *c, const char *name, ingot_dtype d, int rank,
                                  ingot_dim *const *dims)
{
    if (!name)
        return ingot_error(c, INGOT_INVALID, "a state tensor needs a name");
    if (!dtype_check(c, "state", d) || !shape_check(c, "state", rank, dims))
        return c->poison;
    for (int i = 0; i < rank; i++) {
        bool variable = dims[i]->op == OP_VAR && c->vars[dims[i]->arg.i].kind == VAR_DIM;
        if (dims[i]->op != OP_CONST && !variable)
            return ingot_error(c, INGOT_INVALID,
                               "state '%s': dim %d is %s; a number or a run-time dim is wanted",
                               name, i, dim_text(c, dims[i]));
        if (variable && dims[i]->lo != 0)
            return ingot_error(c, INGOT_USAGE,
                               "state '%s': its length '%s' begins at %lld; it is empty at first, "
                               "so the bounds have to begin at 0",
                               name, c->vars[dims[i]->arg.i].name, (long long)dims[i]->lo);
        if (variable)
            c->vars[dims[i]->arg.i].length = true;
    }
    return state_make(c, name, d, rank, dims);
}

/* The length after a run is the same for all states that have it. */
static bool lengths_next(Context *c, Node *state, Node *next)
{
    const char *name = c->states[state->arg.i].name;
    for (int i = 0; i < state->rank; i++) {
        if (state->shape[i]->op != OP_VAR) {
            if (shape_same(c, 1, &state->shape[i], &next->shape[i]))
                continue;
            ingot_error(c, INGOT_UNSUPPORTED,
                        "state '%s' is %s, its next value %s: only dims that are lengths grow",
                        name, shape_text(c, state->rank, state->shape),
                        shape_text(c, next->rank, next->shape));
            return false;
        }
        Var *v = &c->vars[state->shape[i]->arg.i];
        if (v->next && !shape_same(c, 1, &v->next, &next->shape[i])) {
            ingot_error(c, INGOT_UNSUPPORTED,
                        "state '%s' has %s rows after a run, other states of length '%s' %s", name,
                        dim_text(c, next->shape[i]), v->name, dim_text(c, v->next));
            return false;
        }
        v->next = next->shape[i];
    }
    return true;
}

void ingot_state_next(ingot_context *c, ingot_tensor *state, ingot_tensor *next)
{
    if (poisoned(state) || poisoned(next))
        return;
    if (state->op != OP_STATE) {
        ingot_error(c, INGOT_INVALID, "the tensor to be updated was not made by ingot_state");
        return;
    }
    bool grows = c->states[state->arg.i].grows,
         same = state->dtype == next->dtype && state->rank == next->rank;
    if (!same || (!grows && !shape_same(c, state->rank, state->shape, next->shape))) {
        ingot_error(c, INGOT_INVALID, "state '%s' is %s %s, its next value %s %s; they must agree",
                    c->states[state->arg.i].name, dtype_info[state->dtype].name,
                    shape_text(c, state->rank, state->shape), dtype_info[next->dtype].name,
                    shape_text(c, next->rank, next->shape));
        return;
    }
    if (c->states[state->arg.i].next) {
        ingot_error(c, INGOT_INVALID, "state '%s' has two next values",
                    c->states[state->arg.i].name);
        return;
    }
    if (grows && !lengths_next(c, (Node *)(uintptr_t)state, (Node *)(uintptr_t)next))
        return;
    c->states[state->arg.i].next = next;
}

/* A constant as one piece of data, whatever it is made of. */
static Node *as_data(Context *c, Node *x, const int64_t *dims)
{
    if (x->op == OP_DATA)
        return x;
    Data *data = NEW(c->arena, Data);
    size_t bytes = elem_bytes((ingot_dtype)x->dtype);
    for (int i = 0; i < x->rank; i++)
        bytes *= (size_t)dims[i];
    void *to = ingot_alloc(c, bytes + 1);
    *data = (Data){.bytes = to, .nbytes = bytes};
    if (!ingot_const_data(c, x, to, bytes))
        return c->poison;
    return leaf_make(c, OP_DATA, (ingot_dtype)x->dtype, (Arg){.ptr = data}, x->rank, x->shape);
}

ingot_tensor *ingot_state_from(ingot_context *c, const char *name, ingot_tensor *begin)
{
    int64_t dims[INGOT_MAX_RANK];
    if (poisoned(begin))
        return begin;
    if (!ingot_is_const(begin) || !ingot_static_shape(begin, dims))
        return ingot_error(c, INGOT_INVALID,
                           "state '%s' begins as something that depends on an input, a state or a "
                           "run-time dim; a constant is wanted",
                           name ? name : "");
    ingot_tensor *state = ingot_state(c, name, (ingot_dtype)begin->dtype, begin->rank, dims);
    if (!poisoned(state) && !const_is(uniform((Node *)(uintptr_t)begin), 0))
        c->states[state->arg.i].begin = as_data(c, (Node *)(uintptr_t)begin, dims);
    return state;
}

/* Letters, digits and _, and no other thing that a bundle names <model>_<name>. */
int ingot_function_name(const char *name)
{
    static const char *const taken[] = {"run",    "init",   "reset",   "selftest", "deinit",
                                        "ctx",    "config", "inputs",  "status",   "outputs",
                                        "target", "state",  "weights", "kernels"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (!strcmp(name, taken[i]))
            return false;
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name) &&
           strlen(name) < 32;
}

void ingot_function(ingot_context *c, const char *name)
{
    if (!name || !ingot_function_name(name)) {
        ingot_error(c, INGOT_INVALID,
                    "function '%s': up to 31 small letters, digits and _ are wanted, and no name "
                    "that every model has (run, init, state ..)",
                    name ? name : "");
        return;
    }
    for (int i = 0; i < c->nfunction; i++)
        if (!strcmp(c->functions[i].name, name)) {
            ingot_error(c, INGOT_INVALID, "two functions are named '%s'", name);
            return;
        }
    if (c->region) {
        ingot_error(c, INGOT_INVALID, "function '%s' begins inside a region", name);
        return;
    }
    function_begin(c, name);
}

/* ---- constants ------------------------------------------------------------------------------- */

/* One element in storage form as a CONST; NULL for types that have no scalar constants here. */
static Node *element_const(Context *c, ingot_dtype d, const uint8_t *p)
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        float f32;
        double f64;
    } v;
    if (dtype_info[d].bytes > 8 || dtype_info[d].bytes == 0)
        return NULL;
    memcpy(&v, p, (size_t)dtype_info[d].bytes);
    switch (d) {
    case INGOT_BOOL: return node_bool(c, v.u8 != 0);
    case INGOT_I8:
    case INGOT_I4:
    case INGOT_I2: return node_const_i(c, d, v.i8);
    case INGOT_U8:
    case INGOT_U4:
    case INGOT_U2: return node_const_i(c, d, v.u8);
    case INGOT_I16: return node_const_i(c, d, v.i16);
    case INGOT_U16: return node_const_i(c, d, v.u16);
    case INGOT_I32: return node_const_i(c, d, v.i32);
    case INGOT_U32: return node_const_i(c, d, v.u32);
    case INGOT_I64:
    case INGOT_U64: return node_const_i(c, d, (int64_t)v.u64);
    case INGOT_F32: return isnan(v.f32) ? NULL : node_const_f(c, d, (double)v.f32);
    case INGOT_F64: return isnan(v.f64) ? NULL : node_const_f(c, d, v.f64);
    case INGOT_F16: {
        float f = igrt_f16_to_f32(v.u16);
        return isnan(f) ? NULL : node_const_f(c, d, (double)f);
    }
    case INGOT_BF16: {
        float f = igrt_bf16_to_f32(v.u16);
        return isnan(f) ? NULL : node_const_f(c, d, (double)f);
    }
    default: return NULL;
    }
}

ingot_tensor *ingot_data(ingot_context *c, const char *name, ingot_dtype d, int rank,
                         const int64_t *dims, const void *bytes)
{
    Node *nodes[INGOT_MAX_RANK];
    if (!dtype_check(c, "data", d) || !dims_from_ints(c, "data", rank, dims, nodes))
        return c->poison;
    size_t n = 1, size = (size_t)dtype_info[d].bytes;
    for (int i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    if (n && !bytes)
        return ingot_error(c, INGOT_INVALID, "constant '%s' has no bytes", name ? name : "");
    if (n == 0 && size)
        return uniform_make(c, node_const_zero(c, d), rank, nodes);
    /* Equal neighbours everywhere: the bytes equal themselves shifted by one element. */
    if (n <= 1 << 16 && size && !memcmp(bytes, (const uint8_t *)bytes + size, (n - 1) * size)) {
        Node *k = element_const(c, d, bytes);
        if (k)
            return uniform_make(c, k, rank, nodes);
    }
    Data *data = NEW(c->arena, Data);
    *data = (Data){
        .bytes = bytes, .nbytes = n * size, .name = name ? arena_strdup(c->arena, name) : NULL};
    return leaf_make(c, OP_DATA, d, (Arg){.ptr = data}, rank, nodes);
}

ingot_tensor *ingot_scalar_i(ingot_context *c, ingot_dtype d, int64_t v)
{
    return dtype_check(c, "scalar", d) ? node_const_i(c, d, v) : c->poison;
}

ingot_tensor *ingot_scalar_f(ingot_context *c, ingot_dtype d, double v)
{
    return dtype_check(c, "scalar", d) ? node_const_f(c, d, v) : c->poison;
}

ingot_tensor *ingot_like(ingot_context *c, ingot_tensor *x, double v)
{
    return poisoned(x) ? x : node_const_f(c, (ingot_dtype)x->dtype, v);
}

ingot_tensor *ingot_from_dim(ingot_context *c, ingot_dim *d)
{
    return poisoned(d) ? d : node_cast(c, d, INGOT_I64);
}

ingot_tensor *ingot_from_dims(ingot_context *c, int n, ingot_dim *const *dims)
{
    bool constant = true;
    for (int i = 0; i < n; i++) {
        if (poisoned(dims[i]))
            return dims[i];
        constant &= dims[i]->op == OP_CONST;
    }
    int64_t count = n;
    if (constant) {
        int64_t *v = NEWN(c->arena, int64_t, n ? n : 1);
        for (int i = 0; i < n; i++)
            v[i] = dims[i]->arg.i;
        return ingot_data(c, NULL, INGOT_I64, 1, &count, v);
    }
    Node **parts = NEWN(c->arena, Node *, n);
    Node *one = idx(c, 1);
    for (int i = 0; i < n; i++)
        parts[i] = ingot_reshape(c, ingot_from_dim(c, dims[i]), 1, &one);
    return ingot_concat(c, n, parts, 0);
}

ingot_tensor *ingot_iota(ingot_context *c, int rank, ingot_dim *const *dims, int axis)
{
    if (!shape_check(c, "iota", rank, dims))
        return c->poison;
    if (axis < 0 || axis >= rank)
        return ingot_error(c, INGOT_INVALID, "iota: axis %d of a tensor of rank %d", axis, rank);
    if (idx_is(dims[axis], 1) || shape_is_empty(rank, dims))
        return uniform_make(c, node_const_zero(c, INGOT_I64), rank, dims);
    return leaf_make(c, OP_IOTA, INGOT_I64, (Arg){.i = axis}, rank, dims);
}

/* ---- folding of scalars ---------------------------------------------------------------------- */

/* A CONST in storage form; false for types without one here. */
static bool const_store(Node *k, uint8_t out[8])
{
    ingot_dtype d = (ingot_dtype)k->dtype;
    if (!dtype_is_float(d)) {
        memcpy(out, &k->arg.i, 8); /* little-endian: the low bytes come first */
        return true;
    }
    double v = node_float(k);
    float f = (float)v;
    uint16_t h;
    switch (d) {
    case INGOT_F64: memcpy(out, &v, sizeof v); return true;
    case INGOT_F32: memcpy(out, &f, sizeof f); return true;
    case INGOT_F16: h = igrt_f64_to_f16(v); break;
    case INGOT_BF16: h = igrt_f32_to_bf16(f); break;
    default: return false;
    }
    memcpy(out, &h, sizeof h);
    return true;
}

Node *fold_scalar(Context *c, Node *n)
{
    uint8_t in[3][8] = {{0}}, out[8] = {0};
    const void *p[3];
    if (!op_is_alu(n->op) || n->rank || n->op == OP_CUSTOM || n->dtype == INGOT_INDEX)
        return n;
    for (uint32_t i = 0; i < n->nsrc; i++) {
        if (n->src[i]->op != OP_CONST || n->src[i]->dtype == INGOT_INDEX ||
            !const_store(n->src[i], in[i]))
            return n;
        p[i] = in[i];
    }
    interp_alu(n, 1, out, p);
    Node *k = element_const(c, (ingot_dtype)n->dtype, out);
    return k ? k : n;
}
