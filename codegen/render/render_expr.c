/* render_expr.c - values: constants, coordinates and operators.
 *
 * Arithmetic follows docs/numerics.md: integers through igrt_<op>_<type>(), so that nothing
 * overflows; floats by the table of spellings of the target, or of lanes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "render.h"

const char *render_type(Render *r, ingot_dtype d)
{
    return r->lang->type(d == INGOT_INDEX ? d : held(d), r->l.wide);
}

/* 4- and 2-bit integers live in 8 bits. */
const char *render_arith(ingot_dtype d)
{
    if (is_narrow(d))
        return dtype_info[d].kind == 'i' ? "i8" : "u8";
    if (d == INGOT_BOOL)
        return "u8";
    return dtype_info[held(d)].name;
}

/* ---- names and constants ---------------------------------------------------------------- */

const char *range_name(const Render *r, const Node *n)
{
    const char *name = map_get(&r->names, (uint64_t)n->id + 1);
    if (!name)
        BUG("%s: range %lld, below %lld, has no axis", r->k->name, (long long)n->arg.i,
            (long long)n->src[0]->hi);
    return name;
}

void render_range(Render *r, Node *n)
{
    put(r, range_name(r, n));
}

static void constant(Render *r, Node *n)
{
    if (dtype_is_float(n->dtype)) {
        double v = node_float(n);
        bool negative = signbit(v) != 0;
        put(r, negative ? "(" : "");
        render_number(r, v, held(n->dtype));
        put(r, negative ? ")" : "");
        return;
    }
    render_integer(r, n->arg.i, (ingot_dtype)n->dtype);
}

/* ---- operators ------------------------------------------------------------------------------ */

const char *render_operator(Op op)
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
    render_expr(r, n->src[0]);
    sb_printf(r->sb, " %s ", op);
    render_expr(r, n->src[1]);
    put(r, alone ? "" : ")");
}

/* An index may be marked as one that differs by lane, but is that of the first. */
static bool in_lanes(Render *r, Node *n)
{
    return is_vector(r, n) && n->dtype != INGOT_INDEX;
}

void render_operand(Render *r, Node *n, bool lanes, bool alone)
{
    if (lanes && n->dtype == INGOT_INDEX)
        render_ramp(r, n);
    else if (lanes && !is_vector(r, n))
        render_splat(r, n);
    else
        render_expr_as(r, n, alone);
}

static bool is_natural(Node *n)
{
    return n->src[0]->lo >= 0 && n->nsrc > 1 && n->src[1]->lo > 0;
}

/* Run-time sizes are parameters of 64 bits, also where coordinates, and all that is computed of
 * them, have 32. */
static bool has_wide_size(Render *r, Node *n)
{
    if (r->l.wide || n->dtype != INGOT_INDEX || is_named(r, n))
        return false;
    switch (n->op) {
    case OP_VAR: return true;
    case OP_LOAD:
    case OP_CAST:
    case OP_MAX:
    case OP_MIN: return false;
    case OP_FLOORDIV:
    case OP_MOD:
        if (!is_natural(n))
            return false;
        break;
    default: break;
    }
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (n->op != OP_RANGE && has_wide_size(r, n->src[i]))
            return true;
    return false;
}

/* Where an int is wanted. */
void render_int(Render *r, Node *n)
{
    bool cut = has_wide_size(r, n);
    const char *end =
        cut ? render_cast_begin(r, r->lang->type(INGOT_INDEX, false), n->op == OP_VAR) : "";
    render_bare(r, n);
    put(r, end);
}

/* igrt_<name>_<type>(operands) */
static void call(Render *r, const char *name, const char *type, Node *n)
{
    render_igrt(r, "%s_%s(", name, type);
    for (uint32_t i = 0; i < n->nsrc; i++) {
        put(r, i ? ", " : "");
        if (n->dtype == INGOT_INDEX)
            render_int(r, n->src[i]);
        else
            render_operand(r, n->src[i], in_lanes(r, n), true);
    }
    put(r, ")");
}

static int64_t coefficient(Node *n)
{
    int64_t k = 1;
    if (n->op == OP_MUL && n->src[1]->op == OP_CONST)
        k = n->src[1]->arg.i;
    return k == INT64_MIN ? INT64_MAX : k < 0 ? -k : k;
}

static void sum_terms(Render *r, Node *n, Terms *terms)
{
    while (n->op == OP_ADD && n->dtype == INGOT_INDEX && !(terms->n && is_named(r, n))) {
        sum_terms(r, n->src[1], terms);
        n = n->src[0];
        if (is_named(r, n))
            break;
    }
    vec_push(r->arena, terms->term, terms->n, n);
}

/* a*240 + b*30 + c - 9: largest stride first, the constant last, as one would write it. */
static void sum(Render *r, Node *n)
{
    Terms all = {0};
    bool alone = r->bare;
    r->bare = false;
    sum_terms(r, n->src[1], &all);
    sum_terms(r, n->src[0], &all);
    Node **terms = all.term;
    int count = all.n;
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0; j--) {
            bool before =
                terms[j - 1]->op == OP_CONST ||
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
        int64_t k = t->op == OP_CONST                              ? t->arg.i
                    : t->op == OP_MUL && t->src[1]->op == OP_CONST ? t->src[1]->arg.i
                                                                   : 1;
        bool minus = i && k < 0 && k > INT64_MIN && !is_named(r, t);
        put(r, !i ? "" : minus ? " - " : " + ");
        if (!minus) {
            render_expr_as(r, t, t->op == OP_MUL || t->op == OP_FLOORDIV || t->op == OP_MOD);
        } else if (t->op == OP_CONST) {
            sb_printf(r->sb, "%lld", -(long long)k);
        } else {
            render_expr(r, t->src[0]);
            if (k != -1)
                sb_printf(r->sb, "*%lld", -(long long)k);
        }
    }
    put(r, alone ? "" : ")");
}

/* Coordinates: exact, and known not to overflow. */
static void index_op(Render *r, Node *n)
{
    bool natural = is_natural(n);
    const char *wide = r->l.wide ? "i64" : "i32";
    switch (n->op) {
    case OP_ADD: sum(r, n); return;
    case OP_MUL: {
        bool alone = r->bare;
        put(r, alone ? "" : "(");
        render_expr(r, n->src[0]);
        put(r, "*");
        render_expr(r, n->src[1]);
        put(r, alone ? "" : ")");
        return;
    }
    case OP_FLOORDIV:
    case OP_MOD:
        if (n->op == OP_MOD && render_place_of_rows(r, n))
            return;
        if (natural)
            infix(r, n, n->op == OP_MOD ? "%" : "/");
        else
            call(r, op_info[n->op].text, wide, n);
        return;
    case OP_MAX:
    case OP_MIN: call(r, op_info[n->op].text, wide, n); return;
    default:
        if (!render_operator(n->op))
            BUG("coordinate arithmetic with %s", op_info[n->op].text);
        infix(r, n, render_operator(n->op));
    }
}

void render_spelled(Render *r, const char *spelling, const char *type, Node *n)
{
    if (!spelling || !strchr(spelling, '$')) {
        call(r, spelling ? spelling : op_info[n->op].text, type, n);
        return;
    }
    bool is_f32 = held(n->src[n->nsrc - 1]->dtype) == INGOT_F32;
    size_t begin = 0, end = strlen(spelling);
    if (r->bare && *spelling == '(') { /* the pattern's own parentheses */
        begin++;
        end--;
    }
    for (size_t i = begin; i < end; i++) {
        if (spelling[i] == '$') {
            i++;
            bool argument = spelling[i - 2] == '(' && spelling[i + 1] == ')' && spelling[0] != '(';
            render_operand(r, n->src[spelling[i] - '0'], in_lanes(r, n), argument);
        } else if (spelling[i] == '@') {
            put(r, is_f32 ? r->lang->float_suffix : "");
        } else {
            sb_write(r->sb, spelling + i, 1);
        }
    }
}

/* x / c of f32, where that is no product with a power of two. */
static bool render_quotient(Render *r, Node *n)
{
    const double by = n->src[1]->op == OP_CONST ? (double)(float)node_float(n->src[1]) : 0;
    int exponent;
    if (held(n->dtype) != INGOT_F32 || !(fabs(by) >= 0x1p-40 && fabs(by) <= 0x1p40) ||
        frexp(fabs(by), &exponent) == 0.5)
        return false;
    float high = (float)(1 / by);
    if (fabs((double)high) > fabs(1 / by))
        high = nextafterf(high, 0);
    render_igrt(r, "quotient_f32(");
    render_operand(r, n->src[0], false, true);
    sb_printf(r->sb, ", %.8ef, %.8ef)", (double)high, 1 / by - (double)high);
    return true;
}

/* 1 / (e^x + 1) of f32, as in a sigmoid: what is divided by is at least 1, and errs more than the
 * reciprocal of the machine does. */
static bool render_reciprocal(Render *r, Node *n)
{
    Node *one = n->src[0], *by = n->src[1];
    if (held(n->dtype) != INGOT_F32 || one->op != OP_CONST || node_float(one) != 1 ||
        by->op != OP_ADD)
        return false;
    for (int i = 0; i < 2; i++) {
        const Node *least = by->src[1 - i];
        if (by->src[i]->op != OP_EXP || least->op != OP_CONST || !(node_float(least) >= 1))
            continue;
        render_igrt(r, "reciprocal_f32(");
        render_operand(r, by, false, true);
        put(r, ")");
        return true;
    }
    return false;
}

/* Is all that the kernel writes rounded to 16 bits? */
static bool writes_halves(const Render *r)
{
    bool halves = true;
    for (int i = 0; i < r->of->narg; i++)
        halves &= !r->of->args[i].written || (dtype_is_float(r->of->args[i].dtype) &&
                                              dtype_info[r->of->args[i].dtype].bytes == 2);
    return halves;
}

/* erf(x) + c of f32, as in a GELU. */
static bool render_erf_and(Render *r, Node *n)
{
    for (int i = 0; i < 2; i++) {
        Node *erf = n->src[i], *c = n->src[1 - i];
        if (erf->op != OP_ERF || c->op != OP_CONST || held(n->dtype) != INGOT_F32 ||
            !(fabs(node_float(c)) >= 0.5) || is_named(r, erf) || !writes_halves(r))
            continue;
        render_igrt(r, "erf_and_f32(");
        render_operand(r, erf->src[0], false, true);
        put(r, ", ");
        render_operand(r, c, false, true);
        put(r, ")");
        return true;
    }
    return false;
}

/* The same, but for what rows that stay in registers have one of (attention's greatest score, and
 * the sum of its exponentials, which are kept for the gradient). */
static bool writes_halves_of_rows(const Render *r)
{
    const bool rows = r->l.tile->quad || render_goes_along_rows(r);
    int64_t halves = 0, others = 0;
    for (int i = 0; i < r->of->narg; i++) {
        const KernelArg *a = &r->of->args[i];
        int64_t *most =
            dtype_is_float(a->dtype) && dtype_info[a->dtype].bytes == 2 ? &halves : &others;
        const int64_t n = dims_bound(a->rank, a->dims);
        if (a->written && *most < n)
            *most = n;
        if (a->written && most == &others && (a->dtype != INGOT_F32 || !rows))
            return false;
    }
    return others < halves;
}

/* Is it a sum of products of such a type, or minus infinity? */
static bool is_sum_of(const Render *r, const Node *n, ingot_dtype type)
{
    if (n->op == OP_WHERE)
        return is_sum_of(r, n->src[1], type) && is_sum_of(r, n->src[2], type);
    if (n->op == OP_CONST)
        return node_float(n) == -INFINITY;
    return n->op == OP_PROJ && n->src[0]->op == OP_REDUCE && r->l.fragment[n->src[0]->id] &&
           r->l.tile->tc->a == type;
}

/* e^(x k - m) of such sums x, with one multiply-add: x k log2(e) stays in f32. Sums of f16 are far
 * from its ends. */
static bool render_exp_of_sum(Render *r, const Node *less)
{
    Node *x = less->op == OP_SUB ? less->src[0] : NULL, *k = NULL;
    if (x && x->op == OP_MUL && x->src[1]->op == OP_CONST && !is_named(r, x)) {
        k = x->src[1];
        x = x->src[0];
    }
    const double most = k ? fabs(node_float(k)) : 1;
    if (!x || !((is_sum_of(r, x, INGOT_F16) && most <= 1) ||
                (is_sum_of(r, x, INGOT_BF16) && most <= 0.5)))
        return false;
    render_igrt(r, "exp_near_of_f32(");
    render_operand(r, x, false, true);
    put(r, ", ");
    if (k)
        render_operand(r, k, false, true);
    else
        put(r, "1.0f");
    put(r, ", ");
    render_operand(r, less->src[1], false, true);
    put(r, ")");
    return true;
}

/* e^x of rows that stay in registers: there are as many as multiply-adds of a few products. Of
 * other sums of a unit, too: nobody multiplies meanwhile. Of rows that come 16 bytes at a time: it
 * would take longer than memory. */
static bool render_exp_near(Render *r, Node *n)
{
    if (n->op != OP_EXP || held(n->dtype) != INGOT_F32 ||
        !(r->l.tile->tc || render_goes_along_rows(r)) || !writes_halves_of_rows(r))
        return false;
    if (render_exp_of_sum(r, n->src[0]))
        return true;
    render_igrt(r, "exp_near_f32(");
    render_operand(r, n->src[0], false, true);
    put(r, ")");
    return true;
}

/* Is it a sum or a difference whose other operand is a number from 0.5 on? */
static bool is_beside_number(const Node *n, const Node *operand)
{
    if (n->op != OP_ADD && n->op != OP_SUB)
        return false;
    const Node *c = n->src[n->src[0] == operand];
    return c->op == OP_CONST && fabs(node_float(c)) >= 0.5;
}

/* Is all that counts of its operand how little that is, as of log(1 - tanh(x)^2)? */
static bool wants_small(const Node *n)
{
    return n->op == OP_LOG || n->op == OP_SQRT || n->op == OP_POW ||
           (n->op == OP_DIV && n->src[1]->op != OP_CONST);
}

/* Of which tanh(x) are all users such sums, or make its square for them, and none of what these
 * become has to be exact where it is little?  By id. */
static void find_tanh(Render *r)
{
    Node **node = NEWN(r->arena, Node *, r->l.n + 1), **order;
    int n = 0;
    for (int i = 0; i < r->l.n; i++)
        if (r->l.stmt[i].node)
            node[n++] = r->l.stmt[i].node;
    order = graph_toposort(r->arena, n, node, &n);
    r->near = NEWN(r->arena, bool, r->k->c->nnode + 1);
    for (int i = 0; i < n; i++)
        r->near[order[i]->id] = order[i]->op == OP_TANH;
    for (int i = 0; i < n; i++)
        for (uint32_t j = 0; j < order[i]->nsrc; j++) {
            const Node *x = order[i]->src[j],
                       *t = x->op == OP_MUL && x->src[0] == x->src[1] ? x->src[0] : x;
            const bool squares =
                x->op == OP_TANH && order[i]->op == OP_MUL && order[i]->src[0] == order[i]->src[1];
            if (t->op == OP_TANH && !squares && !is_beside_number(order[i], x))
                r->near[t->id] = false;
        }
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n && r->near[order[i]->id]; j++)
            r->near[order[i]->id] = !wants_small(order[j]) ||
                                    !depends_on(order[j]->src[order[j]->op == OP_DIV], order[i]);
}

/* tanh(x) of a GELU, and of its gradient. */
static bool render_tanh_near(Render *r, Node *n)
{
    if (n->op != OP_TANH || held(n->dtype) != INGOT_F32 || !writes_halves(r))
        return false;
    if (!r->near)
        find_tanh(r);
    if (!r->near[n->id])
        return false;
    render_igrt(r, "tanh_near_f32(");
    render_operand(r, n->src[0], false, true);
    put(r, ")");
    return true;
}

/* What is computed of sums of products, and rounded to 16 bits, where nothing asks how little a
 * difference is: nobody multiplies meanwhile, so products and sums are one instruction. */
static bool contracts(Render *r)
{
    if (r->contracts)
        return r->contracts > 0;
    bool good = r->lang->quotient && r->l.tile->tc && writes_halves(r);
    for (int i = 0; i < r->l.n && good; i++) {
        int n;
        Node *top = r->l.stmt[i].node, **order = top ? graph_toposort(r->arena, 1, &top, &n) : NULL;
        for (int j = 0; top && j < n && good; j++)
            good = !wants_small(order[j]);
    }
    r->contracts = good ? 1 : -1;
    return good;
}

/* a b + c, c - a b, a b - c, of f32. */
static bool render_muladd_near(Render *r, Node *n)
{
    if ((n->op != OP_ADD && n->op != OP_SUB) || n->dtype != INGOT_F32)
        return false;
    for (int i = 0; i < 2; i++) {
        Node *product = n->src[i], *other = n->src[1 - i];
        if (product->op != OP_MUL || is_named(r, product) ||
            (n->op == OP_SUB && other->op == OP_MUL) || !contracts(r))
            continue;
        render_igrt(r, n->op == OP_SUB && i ? "muladd_f32(-" : "muladd_f32(");
        render_operand(r, product->src[0], false, !(n->op == OP_SUB && i));
        put(r, ", ");
        render_operand(r, product->src[1], false, true);
        put(r, n->op == OP_SUB && !i ? ", -" : ", ");
        render_operand(r, other, false, !(n->op == OP_SUB && !i));
        put(r, ")");
        return true;
    }
    return false;
}

static void choice(Render *r, Node *n)
{
    bool lanes = in_lanes(r, n);
    Parts p = parts_begin(r);
    render_expr(r, n->src[0]);
    parts_next(r, &p);
    render_operand(r, n->src[1], lanes, lanes);
    parts_next(r, &p);
    render_operand(r, n->src[2], lanes, lanes);
    parts_end(r, &p, r->lang->choice);
}

/* clamp(x, -128, 127) for min(max(x, -128), 127): one instruction of cores without lanes. */
static bool render_clamp(Render *r, Node *n)
{
    Node *max = n->op == OP_MIN ? n->src[0] : NULL;
    if (!max || max->op != OP_MAX || n->dtype != INGOT_I32 || n->src[1]->op != OP_CONST ||
        max->src[1]->op != OP_CONST || is_named(r, max) || !r->lang->c || r->t->gpu ||
        r->t->machine.lanes || n->src[1]->arg.i < max->src[1]->arg.i)
        return false;
    render_igrt(r, "clamp_i32(");
    render_bare(r, max->src[0]);
    sb_printf(r->sb, ", %lld, %lld)", (long long)max->src[1]->arg.i, (long long)n->src[1]->arg.i);
    return true;
}

static void int_op(Render *r, Node *n, ingot_dtype d)
{
    if (render_sum_of_dots(r, n) || render_clamp(r, n))
        return;
    if (n->op == OP_NOT) { /* bool */
        Node *x = n->src[0];
        bool order = (x->op == OP_LT || x->op == OP_LE) && x->src[0]->dtype == INGOT_INDEX &&
                     !is_named(r, x);
        if (order) {
            infix(r, x, x->op == OP_LT ? ">=" : ">");
        } else if (d == INGOT_BOOL) {
            put(r, "!");
            render_expr(r, x);
        } else {
            const char *end = ")";
            if (is_narrow(d))
                render_igrt(r, "wrap_%s(", dtype_info[d].name);
            else
                end = render_cast_begin(r, render_type(r, d), true);
            put(r, "~");
            render_expr(r, x);
            put(r, end);
        }
        return;
    }
    if (n->op == OP_ISNAN) {
        render_integer(r, 0, INGOT_BOOL);
        return;
    }
    if (d == INGOT_BOOL && n->op == OP_XOR && r->lang->logical) {
        infix(r, n, "!=");
        return;
    }
    if (is_narrow(d))
        render_igrt(r, "wrap_%s(", dtype_info[d].name);
    if (d == INGOT_BOOL && n->op != OP_XOR) /* a bool is 0 or 1 */
        put(r, "(");
    if (n->op == OP_AND || n->op == OP_OR || n->op == OP_XOR) {
        const char *end = render_cast_begin(r, render_type(r, d), true);
        infix(r, n, render_operator(n->op));
        put(r, end);
    } else if ((n->op == OP_MULHI || n->op == OP_SHRR) && n->arg.i && !r->t->gpu) {
        call(r,
             n->op == OP_SHRR          ? "shrr_word"
             : n->arg.i == FACTOR_HALF ? "mulhi_half"
                                       : "mulhi_low",
             render_arith(d), n);
    } else {
        call(r, op_info[n->op].text, render_arith(d), n);
    }
    put(r, is_narrow(d) ? ")" : "");
    if (d == INGOT_BOOL && n->op != OP_XOR)
        put(r, " != 0)");
}

/* op_swish(x, 1.5), op_swish_x16(x, 1.5): custom_source.c writes these functions. */
static void custom(Render *r, Node *n, bool lanes)
{
    const CustomUse *use = n->arg.ptr;
    const char *separator = "";
    r->needs |= lanes ? (unsigned)NEED_CUSTOM << (r->l.tile->lanes / 8) : 0;
    sb_printf(r->sb, lanes ? "%s_x%d(" : "%s(", use->op->name, r->l.tile->lanes);
    for (int i = 0; i < use->op->nparam; i++) {
        const CustomParam *p = &use->op->param[i];
        if (p->kind == CUSTOM_OUTPUT)
            continue;
        put(r, separator);
        separator = ", ";
        if (p->kind == CUSTOM_INPUT)
            render_operand(r, n->src[p->slot], lanes, true);
        else if (p->kind == CUSTOM_FLOAT)
            render_number(r, use->floats[p->slot], INGOT_F64);
        else
            render_integer(r, use->ints[p->slot], INGOT_I64);
    }
    put(r, ")");
}

static void alu(Render *r, Node *n)
{
    ingot_dtype d = n->src[n->nsrc - 1]->dtype; /* of the operands: comparisons give bool */
    bool lanes = in_lanes(r, n);
    if (r->begun && n->id < r->l.nknown && r->begun[n->id]) { /* what is added has been */
        render_expr(r, n->src[n->src[0]->op != OP_REDUCE]);
        return;
    }
    if (r->lang->op && r->lang->op(r, n))
        return;
    if (n->op == OP_CUSTOM) {
        custom(r, n, lanes);
        return;
    }
    if (n->op == OP_QUANTIZE) {
        render_quantize(r, n);
        return;
    }
    if (n->op == OP_DIGIT) {
        render_digit(r, n);
        return;
    }
    if (n->op == OP_TOP_BYTE) {
        render_top_byte(r, n);
        return;
    }
    if (n->op == OP_WHERE && render_is_given(r, n)) {
        render_expr(r, n->src[1]);
        return;
    }
    if (n->op == OP_WHERE && !(lanes && is_vector(r, n->src[0]))) {
        choice(r, n);
        return;
    }
    if (lanes && n->op == OP_CAST) {
        render_lane_cast(r, n);
        return;
    }
    if (lanes && render_sum_of_dots(r, n))
        return;
    if (lanes) {
        render_lane_op(r, n);
        return;
    }
    switch (n->op) {
    case OP_CAST: render_cast(r, n); return;
    case OP_BITCAST: render_bitcast(r, n); return;
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE: infix(r, n, render_operator(n->op)); return;
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
    if (n->op == OP_ADD && render_byte_and(r, n))
        return;
    if (n->op == OP_DIV && r->lang->quotient && (render_quotient(r, n) || render_reciprocal(r, n)))
        return;
    if (n->op == OP_ADD && r->lang->quotient && render_erf_and(r, n))
        return;
    if (r->lang->quotient &&
        (render_exp_near(r, n) || render_tanh_near(r, n) || render_muladd_near(r, n)))
        return;
    if (render_one_lane(r, n))
        return;
    const bool own = n->op == OP_EXP && r->lang->c && r->t->bare && held(d) == INGOT_F32;
    render_spelled(r, own ? NULL : r->lang->spelling[n->op], held(d) == INGOT_F32 ? "f32" : "f64",
                   n);
}

/* A REDUCE that is one operation. */
static void reduce_once(Render *r, Node *n)
{
    const char *monoid = op_info[monoid_op((ingot_reduce_op)reduce_monoid(n))].text;
    switch (reduce_form(&r->l, n)) {
    case REDUCE_DOT: {
        const char *none = dtype_is_float(n->dtype) ? "0.0f" : "0";
        char zero[40];
        snprintf(zero, sizeof zero, "%s", none);
        if (is_vector(r, n))
            snprintf(zero, sizeof zero, "igrt_splat_%sx%d(%s)", lane_type(n->dtype),
                     r->l.tile->lanes, none);
        render_dot(r, n, zero);
        return;
    }
    case REDUCE_ACROSS:
        r->needs |= NEED_ACROSS;
        sb_printf(r->sb, "igrt_across_%s_%s(", monoid, dtype_info[n->dtype].name);
        render_bare(r, n->src[0]);
        sb_printf(r->sb, ", %lld)", (long long)n->src[1]->hi + 1);
        return;
    case REDUCE_QUAD:
        sb_printf(r->sb, "igrt_mma_quad_%s(", reduce_monoid(n) == INGOT_REDUCE_MAX ? "max" : "add");
        render_bare(r, n->src[0]);
        put(r, ")");
        return;
    case REDUCE_LANES: render_horizontal(r, n); return;
    case REDUCE_LOOP:
    case REDUCE_PRODUCTS: BUG("a sum whose accumulator cannot be seen here");
    }
}

void render_expr_as(Render *r, Node *n, bool alone)
{
    r->bare = false;
    if (is_named(r, n)) {
        r->use[n->id].names++;
        if (render_is_digits(r, n)) {
            render_digits_sum(r, n);
            return;
        }
        sb_printf(r->sb, "%c%d", is_accumulated(&r->l, n) ? 's' : 'v', r->number[n->id]);
        return;
    }
    if (is_four(r, n)) {
        render_four(r, n);
        return;
    }
    if (n->op == OP_REDUCE) {
        reduce_once(r, n);
        return;
    }
    switch (n->op) {
    case OP_CONST: constant(r, n); return;
    case OP_RANGE: render_range(r, n); return;
    case OP_VAR: {
        char name[VAR_NAME_BYTES];
        put(r, var_name(r->k->c, (int)n->arg.i, name));
        return;
    }
    case OP_LOAD: render_load(r, n); return;
    case OP_PACK: render_pack(r, n); return;
    case OP_PARAM: /* of an accumulator, if it is no argument */
        if (is_scalar_argument(n)) {
            sb_printf(r->sb, "c%lld", (long long)n->arg.i);
            return;
        }
        render_expr(r, reduce_sibling(r->k->c, n, reduce_part(n)));
        return;
    case OP_PROJ:
        if (n->src[0]->op == OP_REDUCE) {
            render_fragment_element(r, n);
            return;
        }
        sb_printf(r->sb, "v%d[%lld]", r->number[n->src[0]->id], (long long)n->arg.i);
        return;
    default:
        r->bare = alone;
        alu(r, n);
        r->bare = false;
        return;
    }
}

void render_expr(Render *r, Node *n)
{
    render_expr_as(r, n, false);
}

void render_bare(Render *r, Node *n)
{
    render_expr_as(r, n, true);
}
