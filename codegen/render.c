/* render.c - the one renderer: statements to text, for every C-like language.  What differs
 * between languages is in Target: words, and a table of spellings by op.
 *
 * Arithmetic follows docs/numerics.md: integers through igrt_<op>_<type>(), so that nothing
 * overflows; f16 and smaller floats are held as f32 and converted at loads, stores and casts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codegen.h"
#include "linear.h"

typedef struct {
    StrBuf *sb;
    const Target *t;
    const Kernel *k;
    Linear l;
    Map names;       /* RANGE id -> its axis' name in C */
    int *number;     /* by id: N of the name vN */
    int nvalue;
    bool bare;       /* the next expression stands alone: no parentheses around it */
} Render;

static void expr(Render *, Node *);
static void bare(Render *, Node *);
static void expr_as(Render *, Node *, bool alone);

/* Type that holds a value of dtype d in an expression. */
static ingot_dtype held(ingot_dtype d)
{
    return dtype_is_float(d) && d != INGOT_F64 ? INGOT_F32 : d;
}

static const char *type_of(Render *r, ingot_dtype d)
{
    if (d == INGOT_INDEX)
        return r->l.wide ? "int64_t" : "int";
    return dtype_info[held(d)].c_type;
}

static bool is_narrow(ingot_dtype d)
{
    return d == INGOT_I4 || d == INGOT_U4 || d == INGOT_I2 || d == INGOT_U2;
}

/* The type whose functions compute on d: 4- and 2-bit integers live in 8 bits. */
static const char *arith(ingot_dtype d)
{
    if (is_narrow(d))
        return dtype_info[d].kind == 'i' ? "i8" : "u8";
    if (d == INGOT_BOOL)
        return "u8";
    return dtype_info[held(d)].name;
}

static void put(Render *r, const char *s)
{
    sb_puts(r->sb, s);
}

/* ---- names and constants ---------------------------------------------------------------- */

/* oc.o.o is oc_o_o in C. */
static void name_axes(Render *r, const TileAxis *axes, int n)
{
    for (int i = 0; i < n; i++) {
        char *name = arena_strdup(r->l.arena, axes[i].name);
        for (char *p = name; *p; p++)
            *p = *p == '.' ? '_' : *p;
        map_put(&r->names, (uint64_t)axes[i].range->id + 1, name);
    }
}

static void range_name(Render *r, Node *n)
{
    const char *name = map_get(&r->names, (uint64_t)n->id + 1);
    if (!name)
        BUG("a range without an axis");
    put(r, name);
}

/* ---- lanes -------------------------------------------------------------------------------- */

static bool is_vector(Render *r, Node *n)
{
    return n->id < r->l.nknown && r->l.vector[n->id];
}

/* f32x16, or the scalar type. */
static void lane_type(Render *r)
{
    sb_printf(r->sb, "f32x%d", r->l.tile->lanes);
}

/* An operand of a vector operation: what is the same in all lanes is spread over them. */
static void operand(Render *r, Node *n)
{
    if (is_vector(r, n)) {
        bare(r, n);
        return;
    }
    put(r, "igrt_splat_");
    lane_type(r);
    put(r, "(");
    bare(r, n);
    put(r, ")");
}

/* The offset of lane 0: a vector access goes on from there. */
static Node *first_lane(Render *r, Node *offset)
{
    Node *zero = idx(r->k->c, 0), *lane = r->l.tile->lane;
    return substitute(r->k->c, offset, 1, &lane, &zero);
}

static void constant_float(Render *r, double v, bool is_f32)
{
    if (isnan(v)) {
        put(r, is_f32 ? "NAN" : "((double)NAN)");
    } else if (isinf(v)) {
        put(r, v < 0 ? (is_f32 ? "-INFINITY" : "-((double)INFINITY)") : (is_f32 ? "INFINITY" : "((double)INFINITY)"));
    } else {
        char text[40];
        snprintf(text, sizeof text, is_f32 ? "%.9g" : "%.17g", v);
        for (int digits = 1; digits < 17; digits++) { /* the shortest that reads back */
            char shorter[40];
            snprintf(shorter, sizeof shorter, "%.*g", digits, v);
            double back = strtod(shorter, NULL);
            if (is_f32 ? (float)back == (float)v : back == v) {
                memcpy(text, shorter, sizeof text);
                break;
            }
        }
        put(r, text);
        if (!strpbrk(text, ".e"))
            put(r, ".0");
        if (is_f32)
            put(r, "f");
    }
}

static void constant(Render *r, Node *n)
{
    if (dtype_is_float(n->dtype)) {
        double v = node_float(n);
        bool negative = signbit(v) != 0;
        put(r, negative ? "(" : "");
        constant_float(r, v, held(n->dtype) == INGOT_F32);
        put(r, negative ? ")" : "");
        return;
    }
    int64_t v = n->arg.i;
    if (n->dtype == INGOT_U64)
        sb_printf(r->sb, "UINT64_C(%llu)", (unsigned long long)v);
    else if (v == INT64_MIN)
        put(r, "(-INT64_C(9223372036854775807) - 1)");
    else if (n->dtype == INGOT_U32)
        sb_printf(r->sb, "%lluu", (unsigned long long)v);
    else if (v > INT32_MAX || v < -INT32_MAX || n->dtype == INGOT_I64)
        sb_printf(r->sb, v < 0 ? "(-INT64_C(%lld))" : "INT64_C(%lld)", v < 0 ? -(long long)v : (long long)v);
    else
        sb_printf(r->sb, v < 0 ? "(%lld)" : "%lld", (long long)v);
}

/* ---- memory and conversions --------------------------------------------------------------- */

static void element(Render *r, Node *n, int first)
{
    sb_printf(r->sb, "a%lld[", (long long)n->src[0]->arg.i);
    bare(r, n->src[first]);
    put(r, "]");
}

static bool is_small_float(ingot_dtype d)
{
    return dtype_is_float(d) && d != INGOT_F32 && d != INGOT_F64;
}

static void vector_load(Render *r, Node *n)
{
    bool gated = !node_is_const_i(n->src[1], 1);
    if (gated) {
        put(r, "(");
        expr(r, n->src[1]);
        put(r, " ? ");
    }
    put(r, "igrt_load_");
    lane_type(r);
    sb_printf(r->sb, "(a%lld + ", (long long)n->src[0]->arg.i);
    expr_as(r, first_lane(r, n->src[2]), false);
    put(r, ")");
    if (gated) {
        put(r, " : igrt_splat_");
        lane_type(r);
        put(r, "(0.0f))");
    }
}

static void load(Render *r, Node *n)
{
    if (is_vector(r, n)) {
        vector_load(r, n);
        return;
    }
    bool gated = !node_is_const_i(n->src[1], 1), small = is_small_float(n->dtype);
    if (gated) {
        put(r, "(");
        expr(r, n->src[1]);
        put(r, " ? ");
    }
    if (small)
        sb_printf(r->sb, "igrt_%s_to_f32(", dtype_info[n->dtype].name);
    element(r, n, 2);
    put(r, small ? ")" : "");
    if (gated) {
        ingot_dtype d = held(n->dtype);
        put(r, d == INGOT_F32 ? " : 0.0f)" : d == INGOT_F64 ? " : 0.0)" : " : 0)");
    }
}

/* Open a call that turns a held float of `from` into the storage form of small float `to`. */
static void open_pack(Render *r, ingot_dtype from, ingot_dtype to)
{
    sb_printf(r->sb, "igrt_%s_to_%s(", held(from) == INGOT_F64 ? "f64" : "f32", dtype_info[to].name);
}

static void close_pack(Render *r, ingot_dtype to, int64_t how)
{
    bool eight = to == INGOT_F8E4M3FN || to == INGOT_F8E4M3FNUZ || to == INGOT_F8E5M2 || to == INGOT_F8E5M2FNUZ;
    if (eight)
        put(r, how & 1 ? ", 0" : ", 1");
    else if (to == INGOT_F8E8M0)
        sb_printf(r->sb, ", %d, %d", !(how & 1), (int)(how >> 1));
    put(r, ")");
}

static void cast(Render *r, Node *n)
{
    Node *x = n->src[0];
    ingot_dtype from = x->dtype, to = n->dtype;
    bool from_float = dtype_is_float(from), to_float = dtype_is_float(to);
    if (from == INGOT_INDEX)
        from = r->l.wide ? INGOT_I64 : INGOT_I32;
    if (to == INGOT_BOOL) {
        put(r, from_float ? "(unsigned char)(" : "(unsigned char)(");
        expr(r, x);
        put(r, held(from) == INGOT_F32 && from_float ? " != 0.0f)" : from_float ? " != 0.0)" : " != 0)");
    } else if (is_small_float(to)) {
        sb_printf(r->sb, "igrt_%s_to_f32(", dtype_info[to].name);
        open_pack(r, from_float ? from : INGOT_F32, to);
        /* one rounding from wide integers: round to odd first */
        bool wide = from == INGOT_I64 || from == INGOT_I32 || from == INGOT_U32;
        if (wide)
            put(r, "igrt_i64_to_f32_odd(");
        else if (from == INGOT_U64)
            put(r, "igrt_u64_to_f32_odd(");
        else if (!from_float)
            put(r, "(float)(");
        expr(r, x);
        put(r, from_float ? "" : ")");
        close_pack(r, to, n->arg.i);
        put(r, ")");
    } else if (to_float) {
        if (from_float && held(from) == to) {
            expr(r, x); /* f16 is held as f32 already */
            return;
        }
        sb_printf(r->sb, "(%s)(", type_of(r, to));
        expr(r, x);
        put(r, ")");
    } else if (from_float) {
        ingot_dtype int_type = to == INGOT_INDEX ? INGOT_I64 : to;
        if (to == INGOT_INDEX && !r->l.wide)
            put(r, "(int)");
        sb_printf(r->sb, "igrt_%s_to_%s(", held(from) == INGOT_F64 ? "f64" : "f32", dtype_info[int_type].name);
        expr(r, x);
        put(r, ")");
    } else if (is_narrow(to)) {
        sb_printf(r->sb, "igrt_wrap_%s((int64_t)(", dtype_info[to].name);
        expr(r, x);
        put(r, "))");
    } else {
        sb_printf(r->sb, "(%s)(", type_of(r, to));
        expr(r, x);
        put(r, ")");
    }
}

static void bitcast(Render *r, Node *n)
{
    Node *x = n->src[0];
    ingot_dtype from = x->dtype, to = n->dtype;
    /* to raw bits of the source, then to the destination */
    const char *unpack = to == INGOT_F32 ? "igrt_bits_f32((uint32_t)(" : to == INGOT_F64 ? "igrt_bits_f64((uint64_t)(" : NULL;
    if (unpack)
        put(r, unpack);
    else if (is_small_float(to))
        sb_printf(r->sb, "igrt_%s_to_f32((%s)(", dtype_info[to].name, dtype_info[to].c_type);
    else
        sb_printf(r->sb, "(%s)((", dtype_info[to].c_type);
    if (from == INGOT_F32) {
        put(r, "igrt_f32_bits(");
    } else if (from == INGOT_F64) {
        put(r, "igrt_f64_bits(");
    } else if (is_small_float(from)) {
        open_pack(r, INGOT_F32, from);
    }
    expr(r, x);
    if (from == INGOT_F32 || from == INGOT_F64)
        put(r, ")");
    else if (is_small_float(from))
        close_pack(r, from, 0);
    put(r, "))");
}

/* ---- operators ------------------------------------------------------------------------------ */

static const char *c_operator(Op op)
{
    switch (op) {
    case OP_ADD: return "+";
    case OP_SUB: return "-";
    case OP_MUL: return "*";
    case OP_DIV: return "/";
    case OP_AND: return "&";
    case OP_OR: return "|";
    case OP_XOR: return "^";
    case OP_EQ: return "==";
    case OP_NE: return "!=";
    case OP_LT: return "<";
    case OP_LE: return "<=";
    default: return NULL;
    }
}

static void infix(Render *r, Node *n, const char *op)
{
    bool alone = r->bare;
    r->bare = false;
    put(r, alone ? "" : "(");
    expr(r, n->src[0]);
    sb_printf(r->sb, " %s ", op);
    expr(r, n->src[1]);
    put(r, alone ? "" : ")");
}

static void call(Render *r, const char *name, const char *type, Node *n)
{
    sb_printf(r->sb, "igrt_%s_%s(", name, type);
    for (uint32_t i = 0; i < n->nsrc; i++) {
        put(r, i ? ", " : "");
        bare(r, n->src[i]);
    }
    put(r, ")");
}

static bool is_named(Render *r, Node *n)
{
    return n->id < r->l.nknown && r->l.named[n->id];
}

static int64_t coefficient(Node *n)
{
    int64_t k = 1;
    if (n->op == OP_MUL && n->src[1]->op == OP_CONST)
        k = n->src[1]->arg.i;
    return k == INT64_MIN ? INT64_MAX : k < 0 ? -k : k;
}

enum { MAX_TERMS = 32 };

static int sum_terms(Render *r, Node *n, Node **terms, int count)
{
    while (n->op == OP_ADD && n->dtype == INGOT_INDEX && !(count && is_named(r, n)) && count < MAX_TERMS - 2) {
        count = sum_terms(r, n->src[1], terms, count);
        n = n->src[0];
        if (is_named(r, n))
            break;
    }
    if (count == MAX_TERMS)
        BUG("a coordinate with more than %d terms", MAX_TERMS);
    terms[count++] = n;
    return count;
}

/* a*240 + b*30 + c - 9: largest stride first, the constant last, as one would write it. */
static void sum(Render *r, Node *n)
{
    Node *terms[MAX_TERMS];
    bool alone = r->bare;
    r->bare = false;
    int count = sum_terms(r, n->src[0], terms, sum_terms(r, n->src[1], terms, 0));
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0; j--) {
            bool before = terms[j - 1]->op == OP_CONST ||
                          (terms[j]->op != OP_CONST && coefficient(terms[j]) > coefficient(terms[j - 1]));
            if (!before)
                break;
            Node *t = terms[j];
            terms[j] = terms[j - 1];
            terms[j - 1] = t;
        }
    put(r, alone ? "" : "(");
    for (int i = 0; i < count; i++) {
        Node *t = terms[i];
        int64_t k = t->op == OP_CONST ? t->arg.i : t->op == OP_MUL && t->src[1]->op == OP_CONST ? t->src[1]->arg.i : 1;
        bool minus = i && k < 0 && k > INT64_MIN && !is_named(r, t);
        put(r, !i ? "" : minus ? " - " : " + ");
        if (!minus) {
            expr_as(r, t, t->op == OP_MUL || t->op == OP_FLOORDIV || t->op == OP_MOD);
        } else if (t->op == OP_CONST) {
            sb_printf(r->sb, "%lld", -(long long)k);
        } else {
            expr(r, t->src[0]);
            if (k != -1)
                sb_printf(r->sb, "*%lld", -(long long)k);
        }
    }
    put(r, alone ? "" : ")");
}

/* Coordinates: exact, and known not to overflow. */
static void index_op(Render *r, Node *n)
{
    bool natural = n->src[0]->lo >= 0 && n->nsrc > 1 && n->src[1]->lo > 0;
    const char *wide = r->l.wide ? "i64" : "i32";
    switch (n->op) {
    case OP_ADD: sum(r, n); return;
    case OP_MUL: {
        bool alone = r->bare;
        put(r, alone ? "" : "(");
        expr(r, n->src[0]);
        put(r, "*");
        expr(r, n->src[1]);
        put(r, alone ? "" : ")");
        return;
    }
    case OP_FLOORDIV:
    case OP_MOD:
        if (natural)
            infix(r, n, n->op == OP_MOD ? "%" : "/");
        else
            call(r, op_info[n->op].text, wide, n);
        return;
    case OP_MAX: case OP_MIN: call(r, op_info[n->op].text, wide, n); return;
    default:
        if (!c_operator(n->op))
            BUG("coordinate arithmetic with %s", op_info[n->op].text);
        infix(r, n, c_operator(n->op));
    }
}

static void spelled(Render *r, const char *pattern, Node *n, bool is_f32)
{
    size_t begin = 0, end = strlen(pattern);
    if (r->bare && *pattern == '(') { /* the pattern's own parentheses */
        begin++;
        end--;
    }
    for (size_t i = begin; i < end; i++) {
        if (pattern[i] == '$') {
            i++;
            bool argument = pattern[i - 2] == '(' && pattern[i + 1] == ')' && pattern[0] != '(';
            expr_as(r, n->src[pattern[i] - '0'], argument);
        } else if (pattern[i] == '@') {
            put(r, is_f32 ? r->t->float_suffix : "");
        } else {
            sb_write(r->sb, pattern + i, 1);
        }
    }
}

static void int_op(Render *r, Node *n, ingot_dtype d)
{
    if (n->op == OP_NOT) { /* bool */
        Node *x = n->src[0];
        bool order = (x->op == OP_LT || x->op == OP_LE) && x->src[0]->dtype == INGOT_INDEX && !is_named(r, x);
        if (order) {
            infix(r, x, x->op == OP_LT ? ">=" : ">");
        } else if (d == INGOT_BOOL) {
            put(r, "!");
            expr(r, x);
        } else {
            sb_printf(r->sb, is_narrow(d) ? "igrt_wrap_%s(~" : "(%s)~", is_narrow(d) ? dtype_info[d].name : dtype_info[d].c_type);
            expr(r, x);
            put(r, is_narrow(d) ? ")" : "");
        }
        return;
    }
    if (n->op == OP_ISNAN) {
        put(r, "0");
        return;
    }
    if (is_narrow(d))
        sb_printf(r->sb, "igrt_wrap_%s(", dtype_info[d].name);
    if (d == INGOT_BOOL && n->op != OP_XOR) /* a bool is 0 or 1 */
        put(r, "(");
    if (n->op == OP_AND || n->op == OP_OR || n->op == OP_XOR) {
        sb_printf(r->sb, "(%s)", dtype_info[d].c_type);
        infix(r, n, c_operator(n->op));
    } else {
        call(r, op_info[n->op].text, arith(d), n);
    }
    put(r, is_narrow(d) ? ")" : "");
    if (d == INGOT_BOOL && n->op != OP_XOR)
        put(r, " != 0)");
}

/* Lanes: the four operations are C's own on vectors, the rest functions; conditions are masks. */
static void vector_alu(Render *r, Node *n)
{
    static const char *const mask_op[OP_COUNT] = {
        [OP_EQ] = "eq", [OP_NE] = "ne", [OP_LT] = "lt", [OP_LE] = "le",
        [OP_AND] = "and_mask", [OP_OR] = "or_mask", [OP_NOT] = "not_mask", [OP_ISNAN] = "isnan"};
    bool alone = r->bare;
    if (n->op == OP_WHERE && !is_vector(r, n->src[0])) {
        put(r, "(");
        expr(r, n->src[0]);
        put(r, " ? ");
        operand(r, n->src[1]);
        put(r, " : ");
        operand(r, n->src[2]);
        put(r, ")");
        return;
    }
    const char *infix_op = n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL || n->op == OP_DIV ? c_operator(n->op) : NULL;
    if (infix_op) {
        put(r, alone ? "" : "(");
        for (int i = 0; i < 2; i++) {
            if (i)
                sb_printf(r->sb, " %s ", infix_op);
            if (is_vector(r, n->src[i]))
                expr(r, n->src[i]);
            else
                operand(r, n->src[i]);
        }
        put(r, alone ? "" : ")");
        return;
    }
    sb_printf(r->sb, "igrt_%s_", mask_op[n->op] ? mask_op[n->op] : op_info[n->op].text);
    lane_type(r);
    put(r, "(");
    for (uint32_t i = 0; i < n->nsrc; i++) {
        put(r, i ? ", " : "");
        operand(r, n->src[i]);
    }
    put(r, ")");
}

static void alu(Render *r, Node *n)
{
    if (is_vector(r, n) && n->dtype != INGOT_INDEX) {
        vector_alu(r, n);
        return;
    }
    ingot_dtype d = n->src[n->nsrc - 1]->dtype; /* of the operands: comparisons give bool */
    switch (n->op) {
    case OP_CAST: cast(r, n); return;
    case OP_BITCAST: bitcast(r, n); return;
    case OP_WHERE:
        put(r, "(");
        expr(r, n->src[0]);
        put(r, " ? ");
        expr(r, n->src[1]);
        put(r, " : ");
        expr(r, n->src[2]);
        put(r, ")");
        return;
    case OP_EQ: case OP_NE: case OP_LT: case OP_LE: infix(r, n, c_operator(n->op)); return;
    default: break;
    }
    if (d == INGOT_INDEX) {
        index_op(r, n);
        return;
    }
    if (d == INGOT_BOOL && (n->op == OP_AND || n->op == OP_OR)) {
        infix(r, n, n->op == OP_AND ? "&&" : "||");
        return;
    }
    if (!dtype_is_float(d)) {
        int_op(r, n, d);
        return;
    }
    bool is_f32 = held(d) == INGOT_F32;
    const char *pattern = r->t->spelling[n->op];
    if (pattern)
        spelled(r, pattern, n, is_f32);
    else
        call(r, op_info[n->op].text, is_f32 ? "f32" : "f64", n);
}

static void expr_as(Render *r, Node *n, bool alone)
{
    r->bare = false;
    if (is_named(r, n)) {
        bool sum = n->op == OP_REDUCE && !is_horizontal(&r->l, n);
        sb_printf(r->sb, "%c%d", sum ? 's' : 'v', r->number[n->id]);
        return;
    }
    if (n->op == OP_REDUCE) { /* of lanes */
        static const char *const name[] = {
            [INGOT_REDUCE_ADD] = "hadd", [INGOT_REDUCE_MUL] = "hmul", [INGOT_REDUCE_MAX] = "hmax", [INGOT_REDUCE_MIN] = "hmin"};
        sb_printf(r->sb, "igrt_%s_", name[n->arg.i]);
        lane_type(r);
        put(r, "(");
        bare(r, n->src[0]);
        put(r, ")");
        return;
    }
    switch (n->op) {
    case OP_CONST: constant(r, n); return;
    case OP_RANGE: range_name(r, n); return;
    case OP_VAR: {
        char name[VAR_NAME_BYTES];
        put(r, var_name(r->k->c, (int)n->arg.i, name));
        return;
    }
    case OP_LOAD: load(r, n); return;
    default:
        r->bare = alone;
        alu(r, n);
        r->bare = false;
        return;
    }
}

static void expr(Render *r, Node *n)
{
    expr_as(r, n, false);
}

/* Where nothing around it can bind: an argument, an index, a right-hand side. */
static void bare(Render *r, Node *n)
{
    expr_as(r, n, true);
}

/* ---- statements -------------------------------------------------------------------------------- */

static void indent(Render *r, int depth)
{
    for (int i = 0; i <= depth; i++)
        put(r, "    ");
}

static void vector_update(Render *r, Node *n)
{
    Op op = monoid_op((ingot_reduce_op)n->arg.i);
    Node *x = n->src[0];
    int s = r->number[n->id];
    bool product = op == OP_ADD && x->op == OP_MUL && !is_named(r, x);
    if (product) {
        sb_printf(r->sb, "s%d = igrt_muladd_", s);
        lane_type(r);
        put(r, "(");
        operand(r, x->src[0]);
        put(r, ", ");
        operand(r, x->src[1]);
        sb_printf(r->sb, ", s%d);\n", s);
    } else if (op == OP_ADD || op == OP_MUL) {
        sb_printf(r->sb, "s%d = s%d %s ", s, s, c_operator(op));
        if (is_vector(r, x))
            expr(r, x);
        else
            operand(r, x);
        put(r, ";\n");
    } else {
        sb_printf(r->sb, "s%d = igrt_%s_", s, op_info[op].text);
        lane_type(r);
        sb_printf(r->sb, "(s%d, ", s);
        operand(r, x);
        put(r, ");\n");
    }
}

static void update(Render *r, Node *n)
{
    if (is_vector(r, n)) {
        vector_update(r, n);
        return;
    }
    Op op = monoid_op((ingot_reduce_op)n->arg.i);
    Node *x = n->src[0];
    int s = r->number[n->id];
    bool is_float = dtype_is_float(n->dtype), is_f32 = held(n->dtype) == INGOT_F32;
    sb_printf(r->sb, "s%d = ", s);
    bool product = op == OP_ADD && is_float && x->op == OP_MUL && !is_named(r, x);
    if (product) {
        sb_printf(r->sb, "igrt_muladd_%s(", is_f32 ? "f32" : "f64");
        expr(r, x->src[0]);
        put(r, ", ");
        expr(r, x->src[1]);
        sb_printf(r->sb, ", s%d);\n", s);
        return;
    }
    if (is_float && (op == OP_ADD || op == OP_MUL)) {
        sb_printf(r->sb, "s%d %s ", s, c_operator(op));
        expr(r, x);
        put(r, ";\n");
        return;
    }
    if (op == OP_AND || op == OP_OR || op == OP_XOR) {
        sb_printf(r->sb, "(%s)(s%d %s ", type_of(r, n->dtype), s, c_operator(op));
        expr(r, x);
        put(r, ");\n");
        return;
    }
    if (is_narrow(n->dtype))
        sb_printf(r->sb, "igrt_wrap_%s(", dtype_info[n->dtype].name);
    sb_printf(r->sb, "igrt_%s_%s(s%d, ", op_info[op].text, arith(n->dtype), s);
    expr(r, x);
    put(r, is_narrow(n->dtype) ? "));\n" : ");\n");
}

static void loop(Render *r, Node *range)
{
    put(r, "for (");
    put(r, type_of(r, INGOT_INDEX));
    put(r, " ");
    range_name(r, range);
    put(r, " = 0; ");
    range_name(r, range);
    put(r, " < ");
    expr(r, range->src[0]);
    put(r, "; ");
    range_name(r, range);
    put(r, "++) {\n");
}

static void store(Render *r, Node *n, int depth)
{
    if (is_vector(r, n)) {
        put(r, "igrt_store_");
        lane_type(r);
        sb_printf(r->sb, "(a%lld + ", (long long)n->src[0]->arg.i);
        expr_as(r, first_lane(r, n->src[3]), false);
        put(r, ", ");
        operand(r, n->src[2]);
        put(r, ");\n");
        return;
    }
    if (!node_is_const_i(n->src[1], 1)) {
        put(r, "if (");
        expr(r, n->src[1]);
        put(r, ")\n");
        indent(r, depth + 1);
    }
    element(r, n, 3);
    put(r, " = ");
    if (is_small_float(n->dtype)) {
        open_pack(r, n->dtype, n->dtype);
        expr(r, n->src[2]);
        close_pack(r, n->dtype, 1); /* arithmetic does not saturate; casts have done so already */
    } else {
        bare(r, n->src[2]);
    }
    put(r, ";\n");
}

/* Type of a named value or accumulator. */
static void value_type(Render *r, Node *n)
{
    if (!is_vector(r, n)) {
        put(r, type_of(r, n->dtype));
        return;
    }
    sb_printf(r->sb, n->dtype == INGOT_BOOL ? "igrt_i32x%d" : "igrt_f32x%d", r->l.tile->lanes);
}

static void statement(Render *r, const Stmt *s)
{
    Node *n = s->node;
    indent(r, s->depth);
    switch (s->kind) {
    case STMT_LOOP: loop(r, n); break;
    case STMT_END: put(r, "}\n"); break;
    case STMT_LET:
        r->number[n->id] = r->nvalue++;
        put(r, "const ");
        value_type(r, n);
        sb_printf(r->sb, " v%d = ", r->number[n->id]);
        r->l.named[n->id] = false; /* spell it here, name it from now on */
        bare(r, n);
        r->l.named[n->id] = true;
        put(r, ";\n");
        break;
    case STMT_ACC: {
        r->number[n->id] = r->nvalue++;
        value_type(r, n);
        sb_printf(r->sb, " s%d = ", r->number[n->id]);
        bool vector = is_vector(r, n);
        if (vector) {
            put(r, "igrt_splat_");
            lane_type(r);
            put(r, "(");
        }
        constant(r, monoid_identity(r->k->c, (ingot_reduce_op)n->arg.i, n->dtype));
        put(r, vector ? ");\n" : ";\n");
        break;
    }
    case STMT_UPDATE: update(r, n); break;
    case STMT_STORE: store(r, n, s->depth); break;
    }
}

/* GPU: one work item computes one element of the output; its number is taken apart into axes. Groups
 * are whole, so there may be items beyond the last. */
static void work_item(Render *r)
{
    const Tile *t = r->l.tile;
    int64_t items = 1;
    for (int i = 0; i < t->naxis; i++)
        items = sat_mul(items, t->axis[i].range->src[0]->hi);
    bool wide = items > INT32_MAX - 4096; /* division of 64 bits is slow */
    bool narrow = wide && !r->l.wide;     /* the axes are of 32 bits nevertheless */
    indent(r, 0);
    sb_printf(r->sb, wide ? "int64_t gid = %s;\n" : "int gid = (int)%s;\n", r->t->work_item);
    for (int i = t->naxis; i-- > 0;) {
        Node *range = t->axis[i].range;
        indent(r, 0);
        sb_printf(r->sb, "const %s ", type_of(r, INGOT_INDEX));
        range_name(r, range);
        put(r, narrow ? " = (int)(gid % " : " = gid % ");
        expr(r, range->src[0]);
        put(r, narrow ? ");\n" : ";\n");
        indent(r, 0);
        put(r, "gid /= ");
        expr(r, range->src[0]);
        put(r, ";\n");
    }
    indent(r, 0);
    put(r, "if (gid)\n");
    indent(r, 1);
    put(r, "return;\n");
}

static void render_tile(Render *r, const Tile *tile)
{
    name_axes(r, tile->axis, tile->naxis);
    name_axes(r, tile->reduce, tile->nreduce);
    if (tile->tail.range)
        name_axes(r, &tile->tail, 1);
    linearize(&r->l, r->k, tile);
    r->number = NEWN(r->l.arena, int, r->l.nknown);
    bool items = r->t->gpu && !r->k->serial;
    if (items)
        work_item(r);
    for (int i = 0; i < r->l.n; i++) {
        Stmt s = r->l.stmt[i];
        bool output_loop = false;
        for (int j = 0; j < tile->naxis; j++)
            output_loop |= s.node == tile->axis[j].range;
        if (items) {
            if (output_loop)
                continue;
            s.depth = s.depth > tile->naxis ? s.depth - tile->naxis : 0;
        }
        statement(r, &s);
    }
}

void render_kernel(StrBuf *sb, const Target *t, const Kernel *k, const char *function_name)
{
    Arena *a = arena_new();
    Tiles tiles = kernel_expand(a, k);
    Render r = {.sb = sb, .t = t, .k = k};
    kernel_prototype(sb, t, k, function_name);
    put(&r, "\n{\n");
    for (int i = 0; i < tiles.n; i++) {
        r.l = (Linear){.arena = a};
        render_tile(&r, &tiles.tile[i]);
    }
    put(&r, "}\n");
    map_free(&r.names);
    arena_free(a);
}
