/* render_fours.c - four results that are quantised alike are computed and stored together, where a
 * machine sums products of bytes across its lanes (Helium): sums are scalars there, and what is
 * made of four of them is in lanes (igrt_four.h).
 *
 *     a0[v] = quantize(muladd((float)(s1 + v0), v1, v2), ..)
 *     a0[v + 1] = quantize(muladd((float)(s2 + v4), v5, v6), ..)
 *     a0[v + 64] = ..
 *     a0[v + 65] = ..
 *           ->
 *     igrt_four_store_i8(a0 + v, 1, 64, 65, igrt_four_quantize(igrt_four_muladd_f32(
 *         igrt_four_float(igrt_four_add_i32(igrt_four_join_i32(s1, s2, s3, s4), ..)), ..), ..));
 *
 * The expressions of the four are walked side by side: where all have the same operation, it is
 * one of lanes; what differs is joined of four scalars, and what is the same is spread.  Names that
 * stand between the stores come before them: they are coordinates and operands, which no other
 * result of the kernel is. */
#include <limits.h>

#include "render.h"

enum { FOUR = 4, WORD_BITS = CHAR_BIT * sizeof(int32_t) };

static bool all_named(Render *r, Node *const *n)
{
    return is_named(r, n[0]) || is_named(r, n[1]) || is_named(r, n[2]) || is_named(r, n[3]);
}

/* Have all four this operation, and no name yet? */
static bool all_are(Render *r, Node *const *n, Op op, ingot_dtype d)
{
    for (int i = 0; i < FOUR; i++)
        if (n[i]->op != op || n[i]->dtype != d || n[i]->nsrc != n[0]->nsrc)
            return false;
    return !all_named(r, n);
}

static void sources(Node *const *n, int at, Node **out)
{
    for (int i = 0; i < FOUR; i++)
        out[i] = n[i]->src[at];
}

/* Elements from the first address to the others; false: they are no constants. */
static bool distances(Render *r, Node *const *n, int at, int64_t *d)
{
    enum { FAR = 1 << 24 };
    for (int i = 0; i < FOUR; i++)
        if (n[i]->src[0] != n[0]->src[0] || n[i]->nsrc != (uint32_t)at + 1 ||
            !node_is_const_i(n[i]->src[1], 1) ||
            !idx_value(idx_sub(r->k->c, n[i]->src[at], n[0]->src[at]), &d[i]) || d[i] > FAR ||
            d[i] < -FAR)
            return false;
    return n[0]->src[0]->op == OP_BUFFER;
}

static void put_address(Render *r, Node *access, int at, const int64_t *d)
{
    sb_printf(r->sb, "(a%lld + ", (long long)access->src[0]->arg.i);
    render_expr(r, access->src[at]);
    sb_printf(r->sb, ", %d, %d, %d", (int)d[1], (int)d[2], (int)d[3]);
}

static void lanes_of(Render *r, Node *const *n);

static bool is_one(Node *const *n)
{
    return n[0] == n[1] && n[0] == n[2] && n[0] == n[3];
}

/* A right source that is one integer, of all, is no vector, for which there may be no register. */
static void binary_lanes(Render *r, const char *name, Node *const *n)
{
    Node *left[FOUR], *right[FOUR];
    sources(n, 0, left);
    sources(n, 1, right);
    const bool one = is_one(right) && n[0]->dtype == INGOT_I32 && n[0]->op != OP_SHRR;
    sb_printf(r->sb, "igrt_four_%s%s(", name, one ? "_1" : "");
    lanes_of(r, left);
    put(r, ", ");
    if (one)
        render_bare(r, right[0]);
    else
        lanes_of(r, right);
    put(r, ")");
}

/* x * y + z, as render_quantize() has it: false: there is no product. */
static bool muladd_lanes(Render *r, Node *const *n)
{
    for (int i = 0; i < 2 && all_are(r, n, OP_ADD, INGOT_F32); i++) {
        Node *product[FOUR], *more[FOUR], *side[FOUR];
        sources(n, i, product);
        sources(n, 1 - i, more);
        if (!all_are(r, product, OP_MUL, INGOT_F32))
            continue;
        put(r, "igrt_four_muladd_f32(");
        for (int j = 0; j < 2; j++) {
            sources(product, j, side);
            lanes_of(r, side);
            put(r, ", ");
        }
        lanes_of(r, more);
        put(r, ")");
        return true;
    }
    return false;
}

/* Is it a byte as an integer, loaded where the others are not far? */
static bool bytes_lanes(Render *r, Node *const *n)
{
    Node *load[FOUR];
    int64_t d[FOUR];
    if (!all_are(r, n, OP_CAST, INGOT_I32))
        return false;
    sources(n, 0, load);
    const ingot_dtype type = (ingot_dtype)load[0]->dtype;
    if ((type != INGOT_I8 && type != INGOT_U8) || !all_are(r, load, OP_LOAD, type) ||
        !distances(r, load, 2, d))
        return false;
    sb_printf(r->sb, "igrt_four_load_%s", dtype_info[type].name);
    put_address(r, load[0], 2, d);
    put(r, ")");
    return true;
}

/* Is the right source one number, of all? */
static bool same_number(Node *const *n)
{
    for (int i = 1; i < FOUR; i++)
        if (n[i]->src[1] != n[0]->src[1])
            return false;
    return n[0]->src[1]->op == OP_CONST;
}

static bool have_arg(Node *const *n)
{
    return n[0]->arg.i && n[1]->arg.i && n[2]->arg.i && n[3]->arg.i;
}

/* A right shift by one number, within a word. */
static bool is_shift(Render *r, Node *const *n)
{
    return all_are(r, n, OP_SHR, INGOT_I32) && same_number(n) && n[0]->src[1]->arg.i > 0 &&
           n[0]->src[1]->arg.i < WORD_BITS;
}

static void shifted_lanes(Render *r, const char *name, Node *const *n)
{
    Node *x[FOUR];
    sb_printf(r->sb, "igrt_four_%s(", name);
    sources(n, 0, x);
    lanes_of(r, x);
    sb_printf(r->sb, ", %d)", (int)n[0]->src[1]->arg.i);
}

/* What integers are rescaled by, where factors are positive and shifts within a word. */
static bool rescaled_lanes(Render *r, Node *const *n)
{
    if (is_shift(r, n)) {
        shifted_lanes(r, "shr_i32", n);
        return true;
    }
    const Op op = n[0]->op == OP_MULHI ? OP_MULHI : OP_SHRR;
    if (!all_are(r, n, op, INGOT_I32) || !have_arg(n))
        return false;
    binary_lanes(r, op == OP_MULHI ? "mulhi_i32" : "shrr_i32", n);
    return true;
}

/* Integers within the bounds of bytes, as bytes. */
static bool are_clamped(Render *r, Node *const *n)
{
    Node *min[FOUR], *max[FOUR];
    const ingot_dtype type = (ingot_dtype)n[0]->dtype;
    if (!all_are(r, n, OP_CAST, type))
        return false;
    sources(n, 0, min);
    if (!all_are(r, min, OP_MIN, INGOT_I32) || !same_number(min))
        return false;
    sources(min, 0, max);
    return all_are(r, max, OP_MAX, INGOT_I32) && same_number(max) &&
           max[0]->src[1]->arg.i <= min[0]->src[1]->arg.i;
}

static void clamped_lanes(Render *r, Node *const *n)
{
    Node *min[FOUR], *max[FOUR], *x[FOUR];
    sources(n, 0, min);
    sources(min, 0, max);
    sources(max, 0, x);
    const int64_t lo = max[0]->src[1]->arg.i, hi = min[0]->src[1]->arg.i;
    const bool whole = lo == INT8_MIN && hi == INT8_MAX && is_shift(r, x) &&
                       x[0]->src[1]->arg.i <= WORD_BITS - CHAR_BIT;
    if (whole) {
        shifted_lanes(r, "shr_i8", x);
        return;
    }
    put(r, "igrt_four_clamp_i32(");
    lanes_of(r, x);
    sb_printf(r->sb, ", %d, %d)", (int)lo, (int)hi);
}

static bool same_bounds(Node *const *n)
{
    for (int i = 1; i < FOUR; i++)
        if (n[i]->arg.i != n[0]->arg.i || n[i]->src[1] != n[0]->src[1])
            return false;
    return n[0]->src[1]->op == OP_CONST;
}

static bool quantized_lanes(Render *r, Node *const *n)
{
    Node *x[FOUR];
    const ingot_dtype type = (ingot_dtype)n[0]->dtype;
    if ((type != INGOT_I8 && type != INGOT_U8) || !all_are(r, n, OP_QUANTIZE, type) ||
        !same_bounds(n))
        return false;
    sources(n, 0, x);
    put(r, "igrt_four_quantize(");
    if (!muladd_lanes(r, x))
        lanes_of(r, x);
    sb_printf(r->sb, ", %d, %d, %d)", (int)node_float(n[0]->src[1]), quantize_least(n[0]->arg.i),
              quantize_most(n[0]->arg.i));
    return true;
}

/* Four scalars, or one four times. */
static void joined(Render *r, Node *const *n)
{
    const char *type = n[0]->dtype == INGOT_F32 ? "f32" : "i32";
    const bool same = is_one(n);
    sb_printf(r->sb, "igrt_four_%s_%s(", same ? "splat" : "join", type);
    for (int i = 0; i < (same ? 1 : FOUR); i++) {
        put(r, i ? ", " : "");
        render_bare(r, n[i]);
    }
    put(r, ")");
}

/* A sum of dots is one of scalars. */
static bool has_dots(const Render *r, const Node *n)
{
    if (n->op == OP_REDUCE)
        return is_dot(&r->l, n);
    return n->op == OP_ADD && (has_dots(r, n->src[0]) || has_dots(r, n->src[1]));
}

static void lanes_of(Render *r, Node *const *n)
{
    static const struct {
        Op op;
        ingot_dtype type;
        const char *name;
    } binary[] = {{OP_ADD, INGOT_I32, "add_i32"},
                  {OP_SUB, INGOT_I32, "sub_i32"},
                  {OP_MUL, INGOT_I32, "mul_i32"},
                  {OP_ADD, INGOT_F32, "add_f32"},
                  {OP_MUL, INGOT_F32, "mul_f32"}};
    Node *x[FOUR];
    const bool same = is_one(n);
    for (size_t i = 0; i < sizeof binary / sizeof *binary && !same; i++)
        if (all_are(r, n, binary[i].op, binary[i].type) && !has_dots(r, n[0])) {
            binary_lanes(r, binary[i].name, n);
            return;
        }
    if (!same && (bytes_lanes(r, n) || rescaled_lanes(r, n)))
        return;
    sources(n, 0, x);
    if (!same && all_are(r, n, OP_CAST, INGOT_F32) && x[0]->dtype == INGOT_I32) {
        put(r, "igrt_four_float(");
        lanes_of(r, x);
        put(r, ")");
    } else if (!same && all_are(r, n, OP_CAST, INGOT_I32) && x[0]->op == OP_QUANTIZE &&
               quantized_lanes(r, x)) {
        return;
    } else {
        joined(r, n);
    }
}

/* The address of a store behind the first one, which is told by its distance: it needs no name. */
static bool is_address(Node *const *store, const Node *n)
{
    return n == store[1]->src[3] || n == store[2]->src[3] || n == store[3]->src[3];
}

/* How many statements of those from s on are four such stores and what stands between them: 0:
 * they are none. */
static int four_stores(const Stmt *s, int left, Node **store)
{
    int n = 0, count = 0;
    for (; count < left && n < FOUR && s[count].depth == s->depth; count++) {
        if (s[count].kind == STMT_LET)
            continue;
        Node *x = s[count].node;
        if (s[count].kind != STMT_STORE || s[count].store != STORE_ONE || x->nsrc != 4 ||
            (n && x->dtype != store[0]->dtype))
            break;
        store[n++] = x;
    }
    return n == FOUR ? count : 0;
}

int render_four_stores(Render *r, const Stmt *s, int left)
{
    Node *store[FOUR], *value[FOUR];
    int64_t d[FOUR];
    if (!r->lang->c || r->t->gpu || r->t->machine.lanes || r->t->machine.dot_terms <= 4 ||
        s->kind != STMT_STORE)
        return 0;
    const int count = four_stores(s, left, store);
    if (!count || !distances(r, store, 3, d))
        return 0;
    sources(store, 2, value);
    const ingot_dtype type = (ingot_dtype)store[0]->dtype;
    const bool clamped = are_clamped(r, value);
    if ((type != INGOT_I8 && type != INGOT_U8) ||
        (!clamped && (!all_are(r, value, OP_QUANTIZE, type) || !same_bounds(value))))
        return 0;
    for (int i = 0; i < count; i++)
        if (s[i].kind == STMT_LET && !is_address(store, s[i].node))
            render_statement(r, &s[i]);
    r->needs |= NEED_DOT_WIDE | NEED_DOT;
    render_indent(r, s->depth);
    sb_printf(r->sb, "igrt_four_store_%s", dtype_info[type].name);
    put_address(r, store[0], 3, d);
    put(r, ", ");
    if (clamped)
        clamped_lanes(r, value);
    else
        quantized_lanes(r, value);
    put(r, ");\n");
    return count;
}
