/* dims.c - dims of tensors: integer expressions over constants and run-time integers.
 *
 * A dim is a scalar node of dtype INDEX, always simplified (symbolic.c), so that two equal dims
 * are nearly always the same pointer.  Run-time integers are entries of Context.vars; the rest
 * of the file checks shapes and spells them for messages. */
#include <string.h>

#include "builder.h"

/* Makes an entry of the emitted sym[] table, and its node. */
Var *var_new(Context *c, VarKind kind, const char *name, int64_t lo, int64_t hi)
{
    Var v = {.name = arena_strdup(c->arena, name), .kind = kind, .lo = lo, .hi = hi};
    int number = c->nvar;
    vec_push(c->arena, c->vars, c->nvar, v);
    c->vars[number].node = node_make(c, OP_VAR, INGOT_INDEX, (Arg){.i = number}, 0, NULL, 0, NULL);
    return &c->vars[number];
}

ingot_dim *ingot_dim_const(ingot_context *c, int64_t v)
{
    return idx(c, v);
}

ingot_dim *ingot_dim_var(ingot_context *c, const char *name, int64_t lo, int64_t hi)
{
    if (!name || !*name)
        return ingot_error(c, INGOT_INVALID, "a run-time dim needs a name");
    if (lo > hi)
        return ingot_error(c, INGOT_INVALID,
                           "run-time dim '%s' has bounds %lld..%lld; the first must not be greater",
                           name, (long long)lo, (long long)hi);
    for (int i = 0; i < c->nvar; i++) {
        const Var *v = &c->vars[i];
        if (v->kind != VAR_DIM || strcmp(v->name, name) != 0)
            continue;
        if (v->lo != lo || v->hi != hi)
            return ingot_error(c, INGOT_INVALID,
                               "run-time dim '%s' was declared with bounds %lld..%lld, now with "
                               "%lld..%lld; one name has one pair of bounds",
                               name, (long long)v->lo, (long long)v->hi, (long long)lo,
                               (long long)hi);
        return v->node;
    }
    return var_new(c, VAR_DIM, name, lo, hi)->node;
}

static Node *dim_binary(Context *c, const char *what, Node *(*f)(Context *, Node *, Node *),
                        Node *a, Node *b)
{
    if (poisoned(a))
        return a;
    if (poisoned(b))
        return b;
    if (a->dtype != INGOT_INDEX || b->dtype != INGOT_INDEX)
        return ingot_error(c, INGOT_INVALID,
                           "dim %s of a tensor; ingot_read_dim turns a tensor into a dim", what);
    return f(c, a, b);
}

ingot_dim *ingot_dim_add(ingot_context *c, ingot_dim *a, ingot_dim *b)
{
    return dim_binary(c, "add", idx_add, a, b);
}

ingot_dim *ingot_dim_sub(ingot_context *c, ingot_dim *a, ingot_dim *b)
{
    return dim_binary(c, "sub", idx_sub, a, b);
}

ingot_dim *ingot_dim_mul(ingot_context *c, ingot_dim *a, ingot_dim *b)
{
    return dim_binary(c, "mul", idx_mul, a, b);
}

ingot_dim *ingot_dim_div(ingot_context *c, ingot_dim *a, ingot_dim *b)
{
    if (!poisoned(b) && idx_is(b, 0))
        return ingot_error(c, INGOT_INVALID, "division of a dim by zero");
    return dim_binary(c, "div", idx_div, a, b);
}

ingot_dim *ingot_dim_mod(ingot_context *c, ingot_dim *a, ingot_dim *b)
{
    if (!poisoned(b) && idx_is(b, 0))
        return ingot_error(c, INGOT_INVALID, "remainder of a dim by zero");
    return dim_binary(c, "mod", idx_mod, a, b);
}

ingot_dim *ingot_dim_min(ingot_context *c, ingot_dim *a, ingot_dim *b)
{
    return dim_binary(c, "min", idx_min, a, b);
}

ingot_dim *ingot_dim_max(ingot_context *c, ingot_dim *a, ingot_dim *b)
{
    return dim_binary(c, "max", idx_max, a, b);
}

bool ingot_dim_is_const(ingot_dim *d, int64_t *value)
{
    if (d->op != OP_CONST)
        return false;
    if (value)
        *value = d->arg.i;
    return true;
}

bool ingot_dim_equal(ingot_dim *a, ingot_dim *b)
{
    return a == b; /* interned and simplified: canonical */
}

int64_t ingot_dim_lo(ingot_dim *d)
{
    return d->lo;
}

int64_t ingot_dim_hi(ingot_dim *d)
{
    return d->hi;
}

/* ---- tensors: what they are ------------------------------------------------------------- */

ingot_dtype ingot_dtype_of(ingot_tensor *x)
{
    return (ingot_dtype)x->dtype;
}

int ingot_rank(ingot_tensor *x)
{
    return x->rank;
}

ingot_dim *ingot_shape(ingot_tensor *x, int axis)
{
    return poisoned(x) ? x : x->shape[axis];
}

ingot_dim *ingot_numel(ingot_context *c, ingot_tensor *x)
{
    return poisoned(x) ? x : shape_numel(c, x->rank, x->shape);
}

/* ---- shapes ------------------------------------------------------------------------------ */

static Node *numel_symbolic(Context *c, int rank, Node *const *dims)
{
    Node *n = idx(c, 1);
    for (int i = 0; i < rank; i++)
        n = idx_mul(c, n, dims[i]);
    return n;
}

Node *shape_numel(Context *c, int rank, Node *const *dims)
{
    int64_t known = 1, size;
    for (int i = 0; i < rank; i++)
        if (!idx_value(dims[i], &size) || __builtin_mul_overflow(known, size, &known))
            return numel_symbolic(c, rank, dims);
    return idx(c, known);
}

bool shape_is_empty(int rank, Node *const *dims)
{
    for (int i = 0; i < rank; i++)
        if (idx_is(dims[i], 0))
            return true;
    return false;
}

bool shape_same(Context *c, int rank, Node *const *a, Node *const *b)
{
    for (int i = 0; i < rank; i++)
        if (a[i] != b[i] && !idx_provably_equal(c, a[i], b[i]))
            return false;
    return true;
}

bool shape_check(Context *c, const char *what, int rank, Node *const *dims)
{
    if (rank < 0 || rank > INGOT_MAX_RANK) {
        ingot_error(c, INGOT_INVALID, "%s: a tensor of rank %d; ranks go from 0 to %d", what, rank,
                    INGOT_MAX_RANK);
        return false;
    }
    int64_t least = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (poisoned(dims[i]))
            return false;
        if (dims[i]->dtype != INGOT_INDEX) {
            ingot_error(c, INGOT_INVALID,
                        "%s: dim %d is a tensor; ingot_read_dim turns a tensor into a dim", what,
                        i);
            return false;
        }
        if (dims[i]->hi < 0) {
            ingot_error(c, INGOT_INVALID, "%s: dim %d of shape %s is negative", what, i,
                        shape_text(c, rank, dims));
            return false;
        }
        empty |= dims[i]->hi == 0;
        least = sat_mul(least, dims[i]->lo > 1 ? dims[i]->lo : 1);
    }
    if (!empty && least > MAX_ELEMENTS) {
        ingot_error(c, INGOT_INVALID, "%s: shape %s has more than 2^47 elements", what,
                    shape_text(c, rank, dims));
        return false;
    }
    return true;
}

/* ---- text for messages ------------------------------------------------------------------- */

/* Dims are small expressions, so a fixed depth ends the recursion. */
static void dim_print(StrBuf *b, Context *c, Node *d, int depth)
{
    const char *sign = NULL;
    switch (d->op) {
    case OP_CONST: sb_printf(b, "%lld", (long long)d->arg.i); return;
    case OP_VAR: sb_puts(b, c->vars[d->arg.i].name); return;
    case OP_ADD: sign = "+"; break;
    case OP_SUB: sign = "-"; break;
    case OP_MUL: sign = "*"; break;
    case OP_FLOORDIV: sign = "/"; break;
    case OP_MOD: sign = "%"; break;
    case OP_MAX: sign = " max "; break;
    case OP_MIN: sign = " min "; break;
    default: break;
    }
    if (!sign || depth == 0) {
        sb_printf(b, "?%lld..%lld", (long long)d->lo, (long long)d->hi);
        return;
    }
    if (depth < 6)
        sb_puts(b, "(");
    dim_print(b, c, d->src[0], depth - 1);
    if (d->op == OP_ADD && d->src[1]->op == OP_CONST && d->src[1]->arg.i < 0) /* n-2, not n+-2 */
        sb_printf(b, "%lld", (long long)d->src[1]->arg.i);
    else {
        sb_puts(b, sign);
        dim_print(b, c, d->src[1], depth - 1);
    }
    if (depth < 6)
        sb_puts(b, ")");
}

const char *dim_text(Context *c, Node *d)
{
    StrBuf b = {0};
    dim_print(&b, c, d, 6);
    const char *text = arena_strdup(c->arena, b.data);
    sb_free(&b);
    return text;
}

const char *shape_text(Context *c, int rank, Node *const *dims)
{
    StrBuf b = {0};
    sb_puts(&b, "[");
    for (int i = 0; i < rank; i++) {
        if (i)
            sb_puts(&b, ", ");
        if (poisoned(dims[i]))
            sb_puts(&b, "?");
        else
            dim_print(&b, c, dims[i], 6);
    }
    sb_puts(&b, "]");
    const char *text = arena_strdup(c->arena, b.data);
    sb_free(&b);
    return text;
}
