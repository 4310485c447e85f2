/* custom.c - a use of a custom operator: a C function of the user's becomes a call.
 *
 * The operator has been read (codegen/custom): here its parameters are held against a node's
 * inputs, attributes and outputs, its shape rules become dims, and its scratch bytes their upper
 * bound. Whatever does not fit is told with the line of the declaration, at the node. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "builder.h"

enum {
    MAX_OPERANDS = 32,
    MAX_DEPTH = 32,
    CALL_RANK = 8 /* IGRT_MAX_RANK: of the tensors that a library kernel is given */
};

typedef struct {
    Context *c;
    const CustomOp *op;
    Node *const *in;
    int64_t ints[MAX_OPERANDS];
    double floats[MAX_OPERANDS];
    bool int_given[MAX_OPERANDS], float_given[MAX_OPERANDS];
    const CustomRule *rule; /* being evaluated */
    const char *at;         /* in its text */
    bool failed;
} CustomInputs;

static void use_fault(CustomInputs *u, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void use_fault(CustomInputs *u, int line, const char *format, ...)
{
    StrBuf sb = {0};
    va_list ap;
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    if (!u->failed)
        ingot_error(u->c, INGOT_INVALID, "%s:%d: %s", u->op->file, line, sb.data);
    sb_free(&sb);
    u->failed = true;
}

static const CustomParam *param_find(const CustomOp *op, const char *name, size_t n)
{
    for (int i = 0; i < op->nparam; i++)
        if (strlen(op->param[i].name) == n && !memcmp(op->param[i].name, name, n))
            return &op->param[i];
    return NULL;
}

static const CustomRule *rule_find(const CustomOp *op, int kind, const char *name)
{
    for (int i = 0; i < op->nrule; i++)
        if ((int)op->rule[i].kind == kind && (!name || !strcmp(op->rule[i].name, name)))
            return &op->rule[i];
    return NULL;
}

/* ---- expressions: numbers, n_x, x_dim0, integer attributes, + - * / % ( ) ------------------- */

static void blanks(CustomInputs *u)
{
    while (*u->at == ' ' || *u->at == '\t')
        u->at++;
}

static bool accept(CustomInputs *u, char c)
{
    blanks(u);
    if (*u->at != c)
        return false;
    u->at++;
    return true;
}

/* n_x or x_dim0 of an input that need not be a parameter; NULL: the name is something else. */
static Node *size_named(CustomInputs *u, const char *name, size_t n)
{
    for (int i = 0; i < u->op->nparam; i++) {
        const CustomParam *p = &u->op->param[i];
        size_t len = strlen(p->name);
        if (p->kind != CUSTOM_INPUT)
            continue;
        Node *x = u->in[p->slot];
        if (n == len + 2 && !memcmp(name, "n_", 2) && !memcmp(name + 2, p->name, len))
            return shape_numel(u->c, x->rank, x->shape);
        if (n < len + 5 || memcmp(name, p->name, len) || memcmp(name + len, "_dim", 4))
            continue;
        int64_t axis = 0;
        bool digits = n <= len + 6;
        for (size_t k = len + 4; k < n; k++) {
            digits &= isdigit((unsigned char)name[k]) != 0;
            axis = axis * 10 + (name[k] - '0');
        }
        if (!digits)
            continue;
        if (axis < x->rank)
            return x->shape[axis];
        use_fault(u, u->rule->line, "'%.*s': the input '%s' of this node has rank %d", (int)n, name,
                  p->name, x->rank);
        return idx(u->c, 1);
    }
    return NULL;
}

static Node *expression(CustomInputs *u, int depth);

static Node *operand(CustomInputs *u, int depth)
{
    blanks(u);
    const char *start = u->at;
    if (accept(u, '(')) {
        Node *e = depth < MAX_DEPTH ? expression(u, depth + 1) : idx(u->c, 1);
        if (depth >= MAX_DEPTH || !accept(u, ')'))
            use_fault(u, u->rule->line, "'%s': a ')' is missing", u->rule->text);
        return e;
    }
    if (isdigit((unsigned char)*start)) {
        int64_t v = 0;
        while (isdigit((unsigned char)*u->at))
            v = sat_add(sat_mul(v, 10), *u->at++ - '0');
        return idx(u->c, v);
    }
    while (isalnum((unsigned char)*u->at) || *u->at == '_')
        u->at++;
    size_t n = (size_t)(u->at - start);
    Node *size = n ? size_named(u, start, n) : NULL;
    if (size)
        return size;
    const CustomParam *p = n ? param_find(u->op, start, n) : NULL;
    if (p && p->kind == CUSTOM_INT)
        return idx(u->c, u->ints[p->slot]);
    use_fault(
        u, u->rule->line,
        "'%s': a number, n_x, x_dim0 (of an input x) or an integer attribute is wanted at '%s'",
        u->rule->text, start);
    return idx(u->c, 1);
}

static Node *term(CustomInputs *u, int depth)
{
    Node *e = operand(u, depth);
    while (!u->failed) {
        if (accept(u, '*')) {
            e = idx_mul(u->c, e, operand(u, depth));
            continue;
        }
        bool div = accept(u, '/');
        if (!div && !accept(u, '%'))
            break;
        Node *by = operand(u, depth);
        if (by->lo <= 0) {
            use_fault(u, u->rule->line, "'%s': it divides by what may be zero", u->rule->text);
            break;
        }
        e = div ? idx_div(u->c, e, by) : idx_mod(u->c, e, by);
    }
    return e;
}

static Node *expression(CustomInputs *u, int depth)
{
    Node *e = term(u, depth);
    while (!u->failed) {
        if (accept(u, '+'))
            e = idx_add(u->c, e, term(u, depth));
        else if (accept(u, '-'))
            e = idx_sub(u->c, e, term(u, depth));
        else
            break;
    }
    return e;
}

static void rule_begin(CustomInputs *u, const CustomRule *r)
{
    u->rule = r;
    u->at = r->text;
}

static void rule_end(CustomInputs *u)
{
    blanks(u);
    if (*u->at)
        use_fault(u, u->rule->line, "'%s': '%s' at its end is not understood", u->rule->text,
                  u->at);
}

/* in[x], or [expression, expression ...] */
static void rule_shape(CustomInputs *u, const CustomRule *r, ingot_call_out *out)
{
    rule_begin(u, r);
    blanks(u);
    if (!strncmp(u->at, "in[", 3)) {
        const char *name = u->at + 3;
        size_t n = strcspn(name, "]");
        const CustomParam *p = param_find(u->op, name, n);
        if (!p || p->kind != CUSTOM_INPUT || !name[n]) {
            use_fault(u, r->line, "'%s': no input has that name", r->text);
            return;
        }
        const Node *x = u->in[p->slot];
        u->at = name + n + 1;
        out->rank = x->rank;
        memcpy((void *)out->dims, (void *)x->shape, (size_t)x->rank * sizeof *x->shape);
        rule_end(u);
        return;
    }
    if (!accept(u, '[')) {
        use_fault(u, r->line, "'%s': a shape is in[x] or [x_dim0, 2*n_x]", r->text);
        return;
    }
    while (!u->failed && !accept(u, ']')) {
        if (out->rank == INGOT_MAX_RANK || (out->rank && !accept(u, ','))) {
            use_fault(u, r->line, "'%s': a ']' is missing", r->text);
            return;
        }
        out->dims[out->rank++] = expression(u, 0);
    }
    if (!u->failed)
        rule_end(u);
}

/* ---- what the node gives -------------------------------------------------------------------- */

static void check_counts(CustomInputs *u, int n_in, int n_out)
{
    const CustomOp *op = u->op;
    if (n_in != op->nin)
        use_fault(u, op->line, "function '%s' takes %d inputs, the node has %d", op->function,
                  op->nin, n_in);
    if (n_out > op->nout)
        use_fault(u, op->line, "function '%s' has %d outputs, the node %d", op->function, op->nout,
                  n_out);
}

static void check_types(CustomInputs *u)
{
    for (int i = 0; i < u->op->nin && !u->failed; i++) {
        const CustomParam *p = custom_param(u->op, CUSTOM_INPUT, i);
        if ((ingot_dtype)u->in[i]->dtype != p->dtype)
            use_fault(u, p->line, "input %d of the node is %s, parameter '%s' of '%s' is %s", i,
                      ingot_dtype_name((ingot_dtype)u->in[i]->dtype), p->name, u->op->function,
                      ingot_dtype_name(p->dtype));
    }
}

static void take_attribute(CustomInputs *u, const ingot_attribute *a)
{
    const CustomParam *p = param_find(u->op, a->name, strlen(a->name));
    if (!p || (p->kind != CUSTOM_INT && p->kind != CUSTOM_FLOAT)) {
        use_fault(u, u->op->line,
                  "the node has an attribute '%s', function '%s' has no parameter for it", a->name,
                  u->op->function);
        return;
    }
    bool wants_int = p->kind == CUSTOM_INT;
    if (a->kind != (wants_int ? INGOT_ATTR_INT : INGOT_ATTR_FLOAT)) {
        use_fault(u, p->line, "attribute '%s' of the node is %s, parameter '%s' is '%s'", a->name,
                  a->kind == INGOT_ATTR_INT     ? "an integer"
                  : a->kind == INGOT_ATTR_FLOAT ? "a float"
                                                : "neither an integer nor a float",
                  p->name, p->type);
        return;
    }
    if (wants_int && p->bytes < 8 &&
        (a->i < -(INT64_C(1) << (8 * p->bytes - 1)) || a->i >> (8 * p->bytes - 1) > 0)) {
        use_fault(u, p->line, "attribute '%s' of the node is %lld, too much for '%s'", a->name,
                  (long long)a->i, p->type);
        return;
    }
    if (wants_int) {
        u->ints[p->slot] = a->i;
        u->int_given[p->slot] = true;
    } else {
        u->floats[p->slot] = a->f;
        u->float_given[p->slot] = true;
    }
}

/* Those that the node leaves out have what the comment says: default[beta] = 1. */
static void take_default(CustomInputs *u, const CustomParam *p)
{
    const CustomRule *r = rule_find(u->op, CUSTOM_DEFAULT_RULE, p->name);
    char *end = NULL;
    bool whole = p->kind == CUSTOM_INT;
    if (!r) {
        use_fault(u, p->line,
                  "parameter '%s' is no size of an input, and the node has no attribute of that "
                  "name (its comment may give one: default[%s] = 0)",
                  p->name, p->name);
        return;
    }
    if (whole)
        u->ints[p->slot] = strtoll(r->text, &end, 10);
    else
        u->floats[p->slot] = strtod(r->text, &end);
    if (end == r->text || *end)
        use_fault(u, r->line, "default[%s]: '%s' is no number for '%s'", p->name, r->text, p->type);
}

static void take_attributes(CustomInputs *u, int n, const ingot_attribute *attr)
{
    for (int i = 0; i < n && !u->failed; i++)
        take_attribute(u, &attr[i]);
    for (int i = 0; i < u->op->nparam && !u->failed; i++) {
        const CustomParam *p = &u->op->param[i];
        if ((p->kind == CUSTOM_INT && !u->int_given[p->slot]) ||
            (p->kind == CUSTOM_FLOAT && !u->float_given[p->slot]))
            take_default(u, p);
    }
}

/* Sizes that are parameters are within the tensors' rank, and fit in their type. */
static void check_sizes(CustomInputs *u, const ingot_call_out *out)
{
    for (int i = 0; i < u->op->nparam && !u->failed; i++) {
        const CustomParam *p = &u->op->param[i];
        if (p->kind != CUSTOM_COUNT && p->kind != CUSTOM_DIM)
            continue;
        const CustomParam *of = &u->op->param[p->of];
        const Node *x = of->kind == CUSTOM_INPUT ? u->in[of->slot] : NULL;
        const ingot_call_out *y =
            x ? NULL : &out[of->slot + (of->kind == CUSTOM_STATE ? u->op->nout : 0)];
        int rank = x ? x->rank : y->rank;
        Node *const *dims = x ? x->shape : y->dims;
        if (p->kind == CUSTOM_DIM && p->axis >= rank) {
            use_fault(u, p->line, "parameter '%s': tensor '%s' of this node has rank %d", p->name,
                      of->name, rank);
            continue;
        }
        Node *size = p->kind == CUSTOM_DIM ? dims[p->axis] : shape_numel(u->c, rank, dims);
        if (p->bytes < 8 && size->hi >> (8 * p->bytes - 1) > 0)
            use_fault(u, p->line, "parameter '%s' of type '%s' is too small for a size of %lld",
                      p->name, p->type, (long long)size->hi);
    }
}

static void check_ranks(CustomInputs *u, const ingot_call_out *out, int nout)
{
    int most = 0;
    for (int i = 0; i < u->op->nin && !u->failed; i++)
        most = u->in[i]->rank > most ? u->in[i]->rank : most;
    for (int i = 0; i < nout && !u->failed; i++)
        most = out[i].rank > most ? out[i].rank : most;
    if (most > CALL_RANK)
        use_fault(u, u->op->line, "a tensor has rank %d, function '%s' can be given %d at most",
                  most, u->op->function, CALL_RANK);
}

/* ---- the call -------------------------------------------------------------------------------- */

static void shapes(CustomInputs *u, ingot_call_out *out)
{
    const CustomOp *op = u->op;
    for (int i = 0; i < op->nout && !u->failed; i++) {
        const CustomParam *p = custom_param(op, CUSTOM_OUTPUT, i);
        const CustomRule *r = p ? rule_find(op, CUSTOM_OUT_RULE, p->name) : NULL;
        if (p)
            out[i].dtype = p->dtype;
        if (op->elementwise)
            u->failed |=
                !broadcast_shape(u->c, op->function, op->nin, u->in, &out[i].rank, out[i].dims);
        else if (r)
            rule_shape(u, r, &out[i]);
        else
            use_fault(u, p->line,
                      "nothing above function '%s' says what shape '%s' has; say out[%s] = in[x]",
                      op->function, p->name, p->name);
    }
}

/* A state is an input and an output: its tensor, and what it is in the next run. */
static void states(CustomInputs *u, Node **in, ingot_call_out *out)
{
    for (int i = 0; i < u->op->nstate && !u->failed; i++) {
        const CustomParam *p = custom_param(u->op, CUSTOM_STATE, i);
        ingot_call_out shape = {.dtype = p->dtype};
        int64_t dims[INGOT_MAX_RANK];
        const CustomRule *r = rule_find(u->op, CUSTOM_STATE_RULE, p->name);
        rule_shape(u, r, &shape);
        for (int k = 0; k < shape.rank && !u->failed; k++)
            if (!idx_value(shape.dims[k], &dims[k]))
                use_fault(u, r->line, "the size of a state has to be known now");
        if (u->failed)
            return;
        if (u->c->region) {
            use_fault(u, r->line,
                      "state '%s' is used in a loop or a branch, which is not supported", p->name);
            return;
        }
        const char *name = arena_printf(u->c->arena, "%s_%s_%d", u->op->name, p->name,
                                        u->c->nstate); /* each node has its own */
        in[u->op->nin + i] = ingot_state(u->c, name, p->dtype, shape.rank, dims);
        out[u->op->nout + i] = shape;
        u->failed |= poisoned(in[u->op->nin + i]);
    }
}

static size_t scratch_bytes(CustomInputs *u)
{
    const CustomRule *r = rule_find(u->op, CUSTOM_SCRATCH_RULE, NULL);
    if (!r)
        return 0;
    rule_begin(u, r);
    Node *e = expression(u, 0);
    if (!u->failed)
        rule_end(u);
    if (!u->failed && (e->lo < 0 || e->hi > MAX_ELEMENTS))
        use_fault(u, r->line, "'%s': scratch of %lld to %lld bytes", r->text, (long long)e->lo,
                  (long long)e->hi);
    return u->failed ? 0 : (size_t)e->hi;
}

/* As any elementwise op: constants are folded, and kernels have it within their loops. */
static Node *elementwise(Context *c, const CustomUse *use, const ingot_call_out *out,
                         Node *const *in)
{
    const CustomOp *op = use->op;
    Node *x[MAX_ALU_SRC], *k[MAX_ALU_SRC];
    bool constant = true;
    if (shape_is_empty(out->rank, out->dims))
        return uniform_make(c, node_const_zero(c, out->dtype), out->rank, out->dims);
    for (int i = 0; i < op->nin; i++) {
        x[i] = broadcast_to(c, in[i], out->rank, out->dims);
        k[i] = uniform(in[i]);
        constant &= k[i] != NULL;
    }
    uint8_t *value = arena_alloc(c->arena, elem_bytes(out->dtype)); /* 16-aligned */
    Node *scalar = constant ? node_custom(c, use, out->dtype, op->nin, k) : NULL;
    if (!scalar || !ingot_const_data(c, scalar, value, elem_bytes(out->dtype)))
        return node_custom(c, use, out->dtype, op->nin, x);
    return broadcast_to(c, ingot_data(c, NULL, out->dtype, 0, NULL, value), out->rank, out->dims);
}

Node *custom_call(Context *c, Node *n)
{
    const CustomUse *use = n->arg.ptr;
    const CustomOp *op = use->op;
    ingot_call_out to = {.dtype = (ingot_dtype)n->dtype, .rank = n->rank};
    memcpy((void *)to.dims, (void *)n->shape, (size_t)n->rank * sizeof *n->shape);
    Node *y;
    ingot_call(c,
               &(ingot_call_desc){.name = op->name,
                                  .n_in = op->nin,
                                  .n_out = 1,
                                  .n_int = op->nint,
                                  .n_float = op->nfloat,
                                  .in = (Node **)(uintptr_t)n->src,
                                  .out = &to,
                                  .ints = use->ints,
                                  .floats = use->floats,
                                  .custom = op},
               &y);
    return y;
}

void ingot_custom(ingot_context *c, ingot_custom_op *op, int n_in, ingot_tensor *const *in,
                  int n_attr, const ingot_attribute *attr, int n_out, ingot_tensor **out)
{
    for (int i = 0; i < n_out; i++)
        out[i] = c->poison;
    for (int i = 0; i < n_in; i++)
        if (poisoned(in[i]))
            return;
    if (op->stage == CUSTOM_UNREAD)
        op->stage = op->read(c, op) ? CUSTOM_READ : CUSTOM_BROKEN;
    if (op->stage == CUSTOM_BROKEN) /* the first use has told why */
        return;
    CustomInputs *u = NEW(c->arena, CustomInputs);
    *u = (CustomInputs){.c = c, .op = op, .in = in};
    int nin = op->nin + op->nstate, nout = op->nout + op->nstate;
    Node **src = NEWN(c->arena, Node *, nin + 1), **made = NEWN(c->arena, Node *, nout + 1);
    ingot_call_out *to = NEWN(c->arena, ingot_call_out, nout + 1);
    if (op->nint > MAX_OPERANDS || op->nfloat > MAX_OPERANDS)
        use_fault(u, op->line, "function '%s' has more than %d attributes", op->function,
                  MAX_OPERANDS);
    check_counts(u, n_in, n_out);
    check_types(u);
    if (!u->failed)
        take_attributes(u, n_attr, attr);
    shapes(u, to);
    size_t scratch = u->failed ? 0 : scratch_bytes(u);
    states(u, src, to);
    check_ranks(u, to, nout);
    check_sizes(u, to);
    if (u->failed)
        return;
    bool node = op->elementwise && n_out && op->nin && op->nin <= MAX_ALU_SRC;
    if (node) {
        out[0] = elementwise(c, custom_use(c, op, u->ints, u->floats), to, in);
        return;
    }
    memcpy((void *)src, (void *)in, (size_t)op->nin * sizeof *src);
    for (int i = 0; i < op->nin && op->elementwise; i++)
        src[i] = broadcast_to(c, src[i], to->rank, to->dims);
    ingot_call(c,
               &(ingot_call_desc){.name = op->name,
                                  .n_in = nin,
                                  .n_out = nout,
                                  .n_int = op->nint,
                                  .n_float = op->nfloat,
                                  .in = src,
                                  .out = to,
                                  .ints = u->ints,
                                  .floats = u->floats,
                                  .scratch_bytes = scratch,
                                  .custom = op},
               made);
    for (int i = 0; i < n_out; i++)
        out[i] = made[i];
    for (int i = 0; i < op->nstate; i++)
        if (!poisoned(made[op->nout + i]))
            ingot_state_next(c, src[op->nin + i], made[op->nout + i]);
}
