/* elementwise.c - unary, binary and ternary operations, casts, and broadcasting.
 *
 * Every function ends in alu(): check dtypes, broadcast by numpy's rules, and build the op on
 * operands of the result's shape.  Constants are folded; algebra is for rewrite/. */
#include <math.h>
#include <string.h>

#include "builder.h"

/* Operand classes: what an operation accepts. */
enum { BOOLS = 1, INTS = 2, FLOATS = 4, COMPLEX = 8, NUMBERS = INTS | FLOATS };

static int class_of(int dtype)
{
    switch (dtype_info[dtype].kind) {
    case 'b': return BOOLS;
    case 'i':
    case 'u': return INTS;
    case 'f': return FLOATS;
    case 'c': return COMPLEX;
    default: return 0;
    }
}

static const char *class_text(int classes)
{
    switch (classes) {
    case FLOATS: return "floats";
    case INTS: return "integers";
    case BOOLS: return "bool";
    case NUMBERS: return "numbers";
    case INTS | BOOLS: return "integers or bool";
    default: return "numbers or bool";
    }
}

static bool accepts(Context *c, const char *name, int classes, Node *x)
{
    if (class_of(x->dtype) & classes)
        return true;
    bool strange = dtype_info[x->dtype].kind == 'c' || dtype_info[x->dtype].kind == 's';
    ingot_error(c, strange ? INGOT_UNSUPPORTED : INGOT_INVALID, "%s needs %s, got %s", name,
                class_text(classes), dtype_info[x->dtype].name);
    return false;
}

/* ---- broadcasting ------------------------------------------------------------------------- */

/* The same dims for all: nothing is stretched, and they were checked when the first was made. */
static bool equal_shapes(int n, Node *const *x)
{
    for (int i = 1; i < n; i++) {
        if (x[i]->rank != x[0]->rank)
            return false;
        for (int a = 0; a < x[0]->rank; a++)
            if (x[i]->shape[a] != x[0]->shape[a])
                return false;
    }
    return true;
}

bool broadcast_shape(Context *c, const char *what, int n, Node *const *x, int *rank, Node **dims)
{
    int widest = 0;
    for (int i = 0; i < n; i++)
        widest = x[i]->rank > widest ? x[i]->rank : widest;
    if (n && equal_shapes(n, x)) {
        *rank = widest;
        for (int a = 0; a < widest; a++)
            dims[a] = x[0]->shape[a];
        return true;
    }
    for (int a = 0; a < widest; a++) {
        dims[a] = idx(c, 1);
        for (int i = 0; i < n; i++) {
            int at = a - (widest - x[i]->rank);
            if (at < 0 || x[i]->shape[at] == dims[a] || idx_is(x[i]->shape[at], 1))
                continue;
            Node *d = x[i]->shape[at];
            if (idx_is(dims[a], 1)) {
                dims[a] = d;
                continue;
            }
            if (idx_provably_equal(c, d, dims[a]))
                continue;
            bool constant = d->op == OP_CONST && dims[a]->op == OP_CONST;
            if (!constant && d->lo > 1 && dims[a]->lo > 1) { /* neither is stretched */
                const char *size = arena_printf(
                    c->arena, "the size of axis %d of operand %d of its '%s'", at, i, what);
                dims[a] = ingot_require_equal(c, d, dims[a], size);
                if (poisoned(dims[a]))
                    return false;
                continue;
            }
            const char *left = shape_text(c, x[0]->rank, x[0]->shape);
            const char *right = shape_text(c, x[i]->rank, x[i]->shape);
            if (constant)
                ingot_error(
                    c, INGOT_INVALID,
                    "%s: shapes %s and %s do not broadcast: %s and %s are neither equal nor 1",
                    what, left, right, dim_text(c, dims[a]), dim_text(c, d));
            else
                ingot_error(
                    c, INGOT_UNSUPPORTED,
                    "%s: shapes %s and %s do not broadcast: cannot prove that %s and %s "
                    "are equal, and one of them may be 1; with bounds (--dim NAME=LO..HI) that "
                    "keep both above 1 the run checks that they are equal, and --dim A=B says "
                    "that two dims are equal",
                    what, left, right, dim_text(c, dims[a]), dim_text(c, d));
            return false;
        }
    }
    *rank = widest;
    return shape_check(c, what, widest, dims);
}

/* ---- the one way in -------------------------------------------------------------------------- */

/* What is a constant whatever the other operand is; NULL: it is none. */
static Node *absorbed(Op op, Node *a, Node *b)
{
    for (int i = 0; i < 2; i++) {
        Node *x = i ? a : b, *k = uniform(x);
        bool zero = op == OP_MUL && !dtype_is_float(a->dtype) && const_is(k, 0);
        bool no = op == OP_AND && a->dtype == INGOT_BOOL && const_is(k, 0);
        bool yes = op == OP_OR && a->dtype == INGOT_BOOL && const_is(k, 1);
        if (zero || no || yes)
            return x;
    }
    return NULL;
}

static Node *alu(Context *c, const char *name, Op op, ingot_dtype d, int n, Node *const *x)
{
    int rank;
    Node *dims[INGOT_MAX_RANK], *k[3], *s[3];
    if (!broadcast_shape(c, name, n, x, &rank, dims))
        return c->poison;
    if (shape_is_empty(rank, dims))
        return uniform_make(c, node_const_zero(c, d), rank, dims);
    bool constant = true;
    for (int i = 0; i < n; i++)
        constant &= (k[i] = uniform(x[i])) != NULL;
    if (constant && rank) /* one scalar operation, then its value everywhere */
        return broadcast_to(c, fold_scalar(c, node_alu(c, op, d, n, k)), rank, dims);
    for (int i = 0; i < n; i++)
        s[i] = broadcast_to(c, x[i], rank, dims);
    if (n == 2) {
        Node *constant_one = absorbed(op, s[0], s[1]);
        if (constant_one)
            return constant_one;
    }
    if (op == OP_WHERE && k[0])
        return k[0]->arg.i ? s[1] : s[2];
    Node *r = node_alu(c, op, d, n, s);
    return constant ? fold_scalar(c, r) : r;
}

/* ---- unary ----------------------------------------------------------------------------------- */

static Node *unary(Context *c, const char *name, Op op, int classes, Node *x)
{
    if (poisoned(x) || !accepts(c, name, classes, x))
        return c->poison;
    return alu(c, name, op, (ingot_dtype)x->dtype, 1, &x);
}

/* clang-format off */
#define UNARY_OP(name, op, classes)                                                               \
    ingot_tensor *ingot_##name(ingot_context *c, ingot_tensor *x)                                 \
    {                                                                                             \
        return unary(c, #name, op, classes, x);                                                   \
    }
#define FUNCTION(name) UNARY_OP(name, op_named(#name), FLOATS)
UNARY_OP(neg,  OP_NEG,  NUMBERS)
UNARY_OP(abs,  OP_ABS,  NUMBERS)
UNARY_OP(sign, OP_SIGN, NUMBERS)
INGOT_FUNCTION(FUNCTION)
/* clang-format on */

/* Rounding: integers are their own result. */
static Node *rounding(Context *c, const char *name, Op op, Node *x)
{
    if (!poisoned(x) && dtype_is_int(x->dtype))
        return x;
    return unary(c, name, op, FLOATS, x);
}

ingot_tensor *ingot_floor(ingot_context *c, ingot_tensor *x)
{
    return rounding(c, "floor", OP_FLOOR, x);
}

ingot_tensor *ingot_ceil(ingot_context *c, ingot_tensor *x)
{
    return rounding(c, "ceil", OP_CEIL, x);
}

ingot_tensor *ingot_trunc(ingot_context *c, ingot_tensor *x)
{
    return rounding(c, "trunc", OP_TRUNC, x);
}

ingot_tensor *ingot_round(ingot_context *c, ingot_tensor *x)
{
    return rounding(c, "round", OP_ROUND, x);
}

ingot_tensor *ingot_isnan(ingot_context *c, ingot_tensor *x)
{
    if (poisoned(x))
        return x;
    if (class_of(x->dtype) & (INTS | BOOLS))
        return uniform_make(c, node_bool(c, false), x->rank, x->shape);
    if (!accepts(c, "isnan", FLOATS, x))
        return c->poison;
    return alu(c, "isnan", OP_ISNAN, INGOT_BOOL, 1, &x);
}

ingot_tensor *ingot_reciprocal(ingot_context *c, ingot_tensor *x)
{
    if (poisoned(x) || !accepts(c, "reciprocal", FLOATS, x))
        return c->poison;
    return ingot_div(c, ingot_like(c, x, 1), x);
}

ingot_tensor *ingot_not(ingot_context *c, ingot_tensor *x)
{
    if (!poisoned(x) && x->op == OP_NOT)
        return x->src[0];
    return unary(c, "not", OP_NOT, BOOLS, x);
}

ingot_tensor *ingot_bitnot(ingot_context *c, ingot_tensor *x)
{
    if (poisoned(x) || !accepts(c, "bitnot", INTS | BOOLS, x))
        return c->poison;
    if (x->dtype == INGOT_BOOL)
        return ingot_not(c, x);
    return ingot_xor(c, x, node_const_i(c, (ingot_dtype)x->dtype, -1));
}

/* ---- binary ---------------------------------------------------------------------------------- */

static Node *binary(Context *c, const char *name, Op op, int classes, bool compare, Node *a,
                    Node *b)
{
    if (poisoned(a) || poisoned(b))
        return c->poison;
    if (a->dtype != b->dtype)
        return ingot_error(c, INGOT_INVALID,
                           "%s: operands are %s and %s; both must have one dtype (cast one)", name,
                           dtype_info[a->dtype].name, dtype_info[b->dtype].name);
    if (!accepts(c, name, classes, a))
        return c->poison;
    return alu(c, name, op, compare ? INGOT_BOOL : (ingot_dtype)a->dtype, 2, (Node *[]){a, b});
}

/* clang-format off */
#define BINARY_OP(name, op, classes, compare)                                                     \
    ingot_tensor *ingot_##name(ingot_context *c, ingot_tensor *a, ingot_tensor *b)                \
    {                                                                                             \
        return binary(c, #name, OP_##op, classes, compare, a, b);                                 \
    }
BINARY_OP(add,  ADD,  NUMBERS, false)
BINARY_OP(sub,  SUB,  NUMBERS, false)
BINARY_OP(mul,  MUL,  NUMBERS, false)
BINARY_OP(div,  DIV,  NUMBERS, false)
BINARY_OP(mod,  MOD,  NUMBERS, false)
BINARY_OP(fmod, FMOD, NUMBERS, false)
BINARY_OP(pow,  POW,  NUMBERS, false)
BINARY_OP(and,  AND,  INTS | BOOLS, false)
BINARY_OP(or,   OR,   INTS | BOOLS, false)
BINARY_OP(xor,  XOR,  INTS | BOOLS, false)
BINARY_OP(shl,  SHL,  INTS, false)
BINARY_OP(shr,  SHR,  INTS, false)
BINARY_OP(eq,   EQ,   NUMBERS | BOOLS, true)
BINARY_OP(ne,   NE,   NUMBERS | BOOLS, true)
BINARY_OP(lt,   LT,   NUMBERS, true)
BINARY_OP(le,   LE,   NUMBERS, true)
/* clang-format on */

/* Are all elements of a constant tensor, i32 or i8 that becomes it, within these bounds? */
static bool data_within(Node *x, int32_t lo, int32_t hi)
{
    x = x->op == OP_CAST && x->src[0]->dtype == INGOT_I8 ? x->src[0] : x;
    if (x->op != OP_DATA)
        return false;
    const Data *d = x->arg.ptr;
    const size_t each = x->dtype == INGOT_I8 ? 1 : sizeof(int32_t);
    for (size_t at = 0; at + each <= d->nbytes; at += each) {
        int32_t v = (int8_t)d->bytes[at];
        if (each > 1)
            memcpy(&v, d->bytes + at, sizeof v);
        if (v < lo || v > hi)
            return false;
    }
    return true;
}

/* Of i32 alone. lo, hi: what is known of b if it is within them. */
static Node *fraction(Context *c, const char *name, Op op, Node *a, Node *b, int64_t known,
                      int32_t lo, int32_t hi)
{
    if (!poisoned(a) && a->dtype != INGOT_I32)
        return ingot_error(c, INGOT_UNSUPPORTED, "%s: of %s; it is of i32", name,
                           dtype_info[a->dtype].name);
    Node *y = binary(c, name, op, INTS, false, a, b);
    return !poisoned(y) && y->op == op && data_within(b, lo, hi)
               ? node_fraction(c, op, known, y->src)
               : y;
}

ingot_tensor *ingot_mulhi(ingot_context *c, ingot_tensor *a, ingot_tensor *b)
{
    const bool low = data_within(b, 0, (1 << 30) - 1);
    return fraction(c, "mulhi", OP_MULHI, a, b, low ? FACTOR_LOW : FACTOR_HALF, low ? 0 : 1 << 30,
                    INT32_MAX);
}

ingot_tensor *ingot_shrr(ingot_context *c, ingot_tensor *a, ingot_tensor *b)
{
    return fraction(c, "shrr", OP_SHRR, a, b, FACTOR_SHIFT, 0, 31);
}

/* Of bools, the greater is the or. */
ingot_tensor *ingot_max(ingot_context *c, ingot_tensor *a, ingot_tensor *b)
{
    Op op = a->dtype == INGOT_BOOL ? OP_OR : OP_MAX;
    return binary(c, "max", op, NUMBERS | BOOLS, false, a, b);
}

ingot_tensor *ingot_min(ingot_context *c, ingot_tensor *a, ingot_tensor *b)
{
    Op op = a->dtype == INGOT_BOOL ? OP_AND : OP_MIN;
    return binary(c, "min", op, NUMBERS | BOOLS, false, a, b);
}

/* a > b is b < a, also with NaN (false both ways). */
ingot_tensor *ingot_gt(ingot_context *c, ingot_tensor *a, ingot_tensor *b)
{
    return binary(c, "gt", OP_LT, NUMBERS, true, b, a);
}

ingot_tensor *ingot_ge(ingot_context *c, ingot_tensor *a, ingot_tensor *b)
{
    return binary(c, "ge", OP_LE, NUMBERS, true, b, a);
}

ingot_tensor *ingot_where(ingot_context *c, ingot_tensor *cond, ingot_tensor *a, ingot_tensor *b)
{
    if (poisoned(cond) || poisoned(a) || poisoned(b))
        return c->poison;
    if (cond->dtype != INGOT_BOOL)
        return ingot_error(c, INGOT_INVALID, "where: the condition is %s; it must be bool",
                           dtype_info[cond->dtype].name);
    if (a->dtype != b->dtype)
        return ingot_error(c, INGOT_INVALID,
                           "where: operands are %s and %s; both must have one dtype (cast one)",
                           dtype_info[a->dtype].name, dtype_info[b->dtype].name);
    return alu(c, "where", OP_WHERE, (ingot_dtype)a->dtype, 3, (Node *[]){cond, a, b});
}

/* ---- conversions ----------------------------------------------------------------------------- */

static bool is_float8(int d)
{
    return dtype_is_float(d) && dtype_info[d].bytes == 1 && d != INGOT_F4E2M1;
}

static Node *cast(Context *c, Node *x, ingot_dtype d, int64_t how)
{
    if (poisoned(x))
        return x;
    if ((int)d < 0 || d >= INGOT_INDEX)
        return ingot_error(c, INGOT_INVALID, "cast to %d, which is no element type", (int)d);
    if (x->dtype == d)
        return x;
    int ok = BOOLS | INTS | FLOATS;
    if (!(class_of(x->dtype) & ok) || !(class_of(d) & ok))
        return ingot_error(c, INGOT_UNSUPPORTED, "cast from %s to %s", dtype_info[x->dtype].name,
                           dtype_info[d].name);
    if (shape_is_empty(x->rank, x->shape))
        return uniform_make(c, node_const_zero(c, d), x->rank, x->shape);
    if ((how == CAST_WRAP && !is_float8(d)) ||
        (how == CAST_LEAST && !(dtype_is_float(x->dtype) && dtype_is_int(d))))
        how = 0;
    Node *k = how ? NULL : uniform(x);
    if (k)
        return uniform_make(c, fold_scalar(c, node_cast(c, k, d)), x->rank, x->shape);
    return how ? node_make(c, OP_CAST, d, (Arg){.i = how}, 1, &x, x->rank, x->shape)
               : node_cast(c, x, d);
}

ingot_tensor *ingot_cast(ingot_context *c, ingot_tensor *x, ingot_dtype d)
{
    return cast(c, x, d, 0);
}

ingot_tensor *ingot_cast_wrap(ingot_context *c, ingot_tensor *x, ingot_dtype d)
{
    return cast(c, x, d, CAST_WRAP);
}

ingot_tensor *ingot_cast_least(ingot_context *c, ingot_tensor *x, ingot_dtype d)
{
    return cast(c, x, d, CAST_LEAST);
}

ingot_tensor *ingot_bitcast(ingot_context *c, ingot_tensor *x, ingot_dtype d)
{
    if (poisoned(x))
        return x;
    if (x->dtype == d)
        return x;
    if ((int)d < 0 || d >= INGOT_INDEX || dtype_info[d].bytes == 0 ||
        dtype_info[x->dtype].bytes != dtype_info[d].bytes)
        return ingot_error(c, INGOT_INVALID, "bitcast from %s to another element size",
                           dtype_info[x->dtype].name);
    if (x->op == OP_BITCAST) /* the bits of the bits */
        return ingot_bitcast(c, x->src[0], d);
    return node_make(c, OP_BITCAST, d, (Arg){0}, 1, &x, x->rank, x->shape);
}

/* ---- with a constant ------------------------------------------------------------------------- */

ingot_tensor *ingot_add_c(ingot_context *c, ingot_tensor *x, double v)
{
    return ingot_add(c, x, ingot_like(c, x, v));
}

ingot_tensor *ingot_mul_c(ingot_context *c, ingot_tensor *x, double v)
{
    return ingot_mul(c, x, ingot_like(c, x, v));
}

ingot_tensor *ingot_max_c(ingot_context *c, ingot_tensor *x, double v)
{
    return ingot_max(c, x, ingot_like(c, x, v));
}

ingot_tensor *ingot_min_c(ingot_context *c, ingot_tensor *x, double v)
{
    return ingot_min(c, x, ingot_like(c, x, v));
}
