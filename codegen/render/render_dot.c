/* render_dot.c - DOT: four products of bytes, or two of bf16, and their sum are a function of
 * igrt_dot.h, of more bytes of igrt_dot_wide.h, and of igrt_dot_vec.h and igrt_dot_bf16.h in lanes;
 * two of i16, or of i16 and a byte that is widened where it is loaded, of igrt_dot_i16.h.
 *
 * Four neighbours in memory are a value of their own, igrt_i8x4 (igrt_bf16x2); in lanes, one such
 * value a lane, they are an i32 vector. Digits of four bytes are made at once, as bits of that. */
#include <string.h>

#include "kernel.h"
#include "language_c.h"
#include "render.h"

/* The load below an operand, the first one of several. */
static Node *bytes_of(Node *n)
{
    while (n->op != OP_LOAD && op_is_alu(n->op))
        n = n->src[0];
    return n;
}

/* i8 x as u8 x + 128: the sign bit the other way. */
static bool is_flipped(Node *n)
{
    n = below_casts(n);
    return n->op == OP_XOR && n->src[0]->op == OP_BITCAST;
}

static bool is_bits(const Node *n)
{
    return n->op == OP_AND || n->op == OP_OR || n->op == OP_XOR || n->op == OP_SHL ||
           n->op == OP_SHR;
}

static const char *byte_name(Node *n)
{
    return dtype_info[bytes_of(n)->dtype].name;
}

/* The bits that a digit may have: 63 of and(x, 15) or and(y, 48). */
static int64_t bits_of(const Node *n)
{
    n = n->op == OP_CAST ? n->src[0] : n;
    if (n->op == OP_OR)
        return bits_of(n->src[0]) | bits_of(n->src[1]);
    const Node *x = n->op == OP_SHL ? n->src[0] : n, *by = n->src[n->nsrc - 1];
    const int64_t shift = n->op != OP_SHL ? 0 : by->op == OP_CONST ? by->arg.i : 8;
    return x->op == OP_AND && x->src[1]->op == OP_CONST && shift < 8
               ? (x->src[1]->arg.i << shift) & UINT8_MAX
               : UINT8_MAX;
}

/* Is a digit below 128? */
static bool is_small(const Node *n)
{
    return bits_of(n) <= INT8_MAX;
}

/* load: one of what is multiplied. */
static void needs_dot(Render *r, bool lanes, const Node *load)
{
    const int terms = tile_dot(r->l.tile);
    if (terms == 2 && load->dtype != INGOT_BF16)
        r->needs |= NEED_DOT_I16 | NEED_VEC;
    else
        r->needs |=
            NEED_DOT | (lanes && terms == 2 ? NEED_DOT_BF16 : 0) | (terms > 4 ? NEED_DOT_WIDE : 0);
}

void render_four_type(Render *r, Node *n)
{
    if (is_vector(r, n))
        sb_printf(r->sb, "igrt_i32x%d", r->l.tile->lanes);
    else if (r->lang->four)
        put(r, r->lang->four);
    else
        sb_printf(r->sb, "igrt_%sx%d", byte_name(n), tile_dot(r->l.tile));
}

static void operand(Render *r, Node *n, bool lanes);

/* A digit of a word: in lanes its bits are moved and masked at once, with one mask for both. */
static bool is_moved_digit(Render *r, const Node *n)
{
    Node *moved = n->src[0];
    return is_vector(r, n) && n->op == OP_AND && n->src[1]->op == OP_CONST &&
           (moved->op == OP_SHR || moved->op == OP_SHL) && !is_four(r, moved->src[1]) &&
           !is_named(r, moved);
}

/* igrt_shr_and_u8x4_i32x16(igrt_load_u8x4_i32x16(..), 4, 15) */
static void render_moved_digit(Render *r, Node *n)
{
    Node *moved = n->src[0];
    needs_dot(r, true, bytes_of(n));
    sb_printf(r->sb, "igrt_%s_and_u8x4_i32x%d(", op_info[moved->op].text, r->l.tile->lanes);
    operand(r, moved->src[0], true);
    put(r, ", ");
    render_bare(r, moved->src[1]);
    put(r, ", ");
    render_bare(r, n->src[1]);
    put(r, ")");
}

/* igrt_shr_u8x4_i32x16(igrt_load_u8x4_i32x16(..), 4) */
static void render_bits(Render *r, Node *n)
{
    const bool lanes = is_vector(r, n), other = is_four(r, n->src[1]);
    if (is_moved_digit(r, n)) {
        render_moved_digit(r, n);
        return;
    }
    needs_dot(r, lanes, bytes_of(n));
    sb_printf(r->sb, "igrt_%s_u8x4%s", op_info[n->op].text, other ? "s" : "");
    if (lanes)
        sb_printf(r->sb, "_i32x%d", r->l.tile->lanes);
    put(r, "(");
    operand(r, n->src[0], lanes);
    put(r, ", ");
    if (other)
        operand(r, n->src[1], lanes);
    else
        render_bare(r, n->src[1]);
    put(r, ")");
}

/* igrt_load_i16x4(a7 + (r0*64), 16): what is added in the end is part of the instruction. */
static void render_wide(Render *r, Node *load, Node *first)
{
    enum { MOST = 508 };
    const bool sum = first->op == OP_ADD && first->src[1]->op == OP_CONST;
    Node *behind = sum ? first->src[1] : first;
    const bool near = behind->op == OP_CONST && behind->arg.i >= 0 && behind->arg.i <= MOST;
    sb_printf(r->sb, "igrt_load_i16x4(a%lld", (long long)load->src[0]->arg.i);
    if (!near || sum) {
        put(r, " + ");
        render_expr(r, near ? first->src[0] : first);
    }
    sb_printf(r->sb, ", %d)", near ? (int)behind->arg.i : 0);
}

void render_four(Render *r, Node *n)
{
    Node *bits = below_casts(n);
    if (is_bits(bits) && !is_flipped(bits)) {
        if (bits == n || !is_named(r, bits))
            render_bits(r, bits);
        else
            render_bare(r, bits);
        return;
    }
    Node *load = bytes_of(n), *zero = idx(r->k->c, 0);
    Node *from[] = {r->l.tile->four, r->l.tile->lane}, *to[] = {zero, zero};
    bool lanes = is_vector(r, n);
    int part = r->l.tile->part;
    const bool gated = !lanes && !node_is_const_i(load->src[1], 1);
    needs_dot(r, lanes, load);
    Context *c = r->k->c;
    Node *first = substitute(c, load->src[2], lanes ? 2 : 1, from, to);
    if (r->lang->load_four) {
        r->lang->load_four(r, load, first);
        return;
    }
    if (load->dtype == INGOT_I16 && tile_dot(r->l.tile) == 4) {
        render_wide(r, load, first);
        return;
    }
    if (gated) {
        put(r, "(");
        render_expr(r, load->src[1]);
        put(r, " ? ");
    }
    sb_printf(r->sb, lanes && part ? "igrt_load_part_%sx%d" : "igrt_load_%sx%d", byte_name(n),
              tile_dot(r->l.tile));
    if (lanes)
        sb_printf(r->sb, "_i32x%d", r->l.tile->lanes);
    /* buffers and places of a GPU begin at multiples of 16: compilers that are not told load byte
     * by byte */
    const bool word = r->lang->c->aligned && idx_is(idx_mod(c, first, idx(c, 4)), 0);
    put(r, "(");
    if (word)
        sb_printf(r->sb, "%s(", r->lang->c->aligned);
    sb_printf(r->sb, "a%lld + ", (long long)load->src[0]->arg.i);
    render_expr(r, first);
    if (lanes && part)
        sb_printf(r->sb, ", %d", part);
    put(r, word ? ", 4))" : ")");
    if (gated)
        sb_printf(r->sb, " : igrt_zero_%sx%d())", byte_name(n), tile_dot(r->l.tile));
}

static void operand(Render *r, Node *n, bool lanes)
{
    int width = r->l.tile->lanes;
    if (n->op == OP_CONST && lanes) { /* 128, of which all sums are */
        sb_printf(r->sb, "igrt_splat_i32x%d(INT32_MIN | 0x808080)", width);
        return;
    }
    bool spread = lanes && !is_vector(r, n);
    if (spread)
        sb_printf(r->sb, "igrt_splat_%sx%d_i32x%d(", is_flipped(n) ? "flipped_i8" : byte_name(n),
                  tile_dot(r->l.tile), width);
    render_bare(r, n);
    put(r, spread ? ")" : "");
}

/* What a dot's operands are called: i8_u7. */
static void dot_names(const Render *r, Node *n, const char **name)
{
    Node *product = n->src[0];
    for (int i = 0; i < 2; i++) {
        Node *x = product->src[i];
        name[i] = x->op == OP_CONST || is_flipped(x) ? "u8" : byte_name(x);
        if (tile_dot(r->l.tile) == 4 && bytes_of(x)->dtype == INGOT_I16) /* in a place */
            name[i] = "wide";
    }
    for (int i = 0; i < 2; i++)
        if (is_small(product->src[i]) && !strcmp(name[1 - i], "i8"))
            name[i] = "u7";
    if (tile_dot(r->l.tile) == 2 && n->dtype == INGOT_I32)
        name[0] = name[1] = "i16";
}

/* f(x, w, to) */
static void dot_call(Render *r, Node *n, const char *function, const char *to)
{
    const bool lanes = is_vector(r, n);
    const char *name[2];
    dot_names(r, n, name);
    needs_dot(r, lanes, bytes_of(n->src[0]->src[0]));
    put(r, function);
    if (tile_dot(r->l.tile) > 4)
        sb_printf(r->sb, "%d", tile_dot(r->l.tile));
    sb_printf(r->sb, "_%s_%s", name[0], name[1]);
    if (lanes)
        sb_printf(r->sb, "_%sx%d", lane_type(n->dtype), r->l.tile->lanes);
    put(r, "(");
    operand(r, n->src[0]->src[0], lanes);
    put(r, ", ");
    operand(r, n->src[0]->src[1], lanes);
    if (to)
        sb_printf(r->sb, ", %s", to);
    put(r, ")");
}

/* Several dots of a block stand below each other, and registers hold two sums for each result. */
void render_dot(Render *r, Node *n, const char *to)
{
    const bool halves = tile_dot(r->l.tile) == 2 && n->dtype == INGOT_I32 && is_vector(r, n);
    dot_call(r, n, halves && kernel_view(r->of).outer ? "igrt_dot_now" : "igrt_dot", to);
}

int render_dot_pairs(Render *r, Node *const *dot, int n)
{
    enum { LEAST = 2 };
    const Machine *m = &r->t->machine;
    int64_t bits = 0, most;
    int i = 0;
    for (; m->pairs && r->l.tile->lanes == m->lanes && i < n; i++) {
        const Node *product = dot[i]->src[0];
        const char *name[2];
        if (!is_vector(r, dot[i]) || tile_dot(r->l.tile) != 4)
            break;
        dot_names(r, dot[i], name);
        const int small = !strcmp(name[1], "u7");
        if (!small && strcmp(name[0], "u7"))
            break;
        bits |= bits_of(product->src[small]);
        most = 2 * bits * -INT8_MIN; /* of a pair */
        if ((i + 1) * most > INT16_MAX)
            break;
    }
    return i < LEAST ? 0 : i;
}

void render_pair(Render *r, Node *dot, const char *to)
{
    dot_call(r, dot, to ? "igrt_pairs_more" : "igrt_pairs", to);
}

/* ---- one product at a time ------------------------------------------------------------------ */

/* A number of 16 bits in a lane of i32; *sign: it may be below 0. */
static bool is_short(const Node *n, bool *sign)
{
    if (n->op != OP_CAST || n->dtype != INGOT_I32)
        return false;
    const ingot_dtype d = (ingot_dtype)n->src[0]->dtype;
    *sign = d != INGOT_U8;
    return d == INGOT_U8 || d == INGOT_I8 || d == INGOT_I16;
}

/* s1 = igrt_muladd_i16_i32x16(x, w, s1): a lane is a pair, whose other number is zero in one of
 * both. Of a number with a sign it is made so: of one that has a name, and so is there for several
 * products. */
bool render_short_product(Render *r, Node *n, Node *product, int sum)
{
    const Machine *m = &r->t->machine;
    bool sign[2];
    if (m->dot_i16 <= 1 || r->t->gpu || !is_vector(r, n) || n->dtype != INGOT_I32 ||
        product->op != OP_MUL || is_named(r, product) || !is_vector(r, product->src[0]) ||
        !is_vector(r, product->src[1]) || !is_short(product->src[0], &sign[0]) ||
        !is_short(product->src[1], &sign[1]))
        return false;
    const bool both = sign[0] && sign[1];
    const int last = both ? !is_named(r, product->src[0]) : !sign[0] ? 1 : 0;
    r->needs |= NEED_DOT_I16 | NEED_VEC;
    render_igrt(r, "muladd_%s_i32x%d(", both ? "i16" : "u16", r->l.tile->lanes);
    render_operand(r, product->src[1 - last], true, true);
    put(r, ", ");
    render_operand(r, product->src[last], true, true);
    sb_printf(r->sb, ", s%d);\n", sum);
    return true;
}

/* ---- a bias ---------------------------------------------------------------------------------- */

static bool is_sum_of_dots(const Render *r, const Node *n)
{
    return n->op == OP_REDUCE && n->dtype == INGOT_I32 && reduce_size(n) == 1 &&
           reduce_monoid(n) == INGOT_REDUCE_ADD && reduce_form(&r->l, n) == REDUCE_LOOP;
}

/* What reads a sum, if one node does. */
void render_find_begins(Render *r)
{
    r->added = NEWN(r->arena, Node *, r->l.nknown);
    r->begun = NEWN(r->arena, bool, r->l.nknown);
    if (!r->l.tile->four || r->l.tile->lane || !r->lang->c || r->t->gpu || r->t->machine.lanes ||
        r->t->machine.dot_terms > 4)
        return;
    Node **root = NEWN(r->arena, Node *, r->l.n + 1);
    int *uses = NEWN(r->arena, int, r->l.nknown), nroot = 0, n;
    for (int i = 0; i < r->l.n; i++)
        if (r->l.stmt[i].node && r->l.stmt[i].kind != STMT_END)
            root[nroot++] = r->l.stmt[i].node;
    Node **order = graph_toposort(r->arena, nroot, root, &n);
    for (int i = 0; i < n; i++)
        for (uint32_t j = 0; j < order[i]->nsrc; j++) {
            const Node *sum = order[i]->src[j];
            if (sum->id >= r->l.nknown || !is_sum_of_dots(r, sum))
                continue;
            uses[sum->id]++;
            r->added[sum->id] = uses[sum->id] == 1 && order[i]->op == OP_ADD ? order[i] : NULL;
        }
}

Node *render_begin_of(Render *r, const Node *sum)
{
    Node *add = r->added[sum->id];
    Node *bias = add && add->id < r->l.nknown ? add->src[add->src[0] == sum] : NULL;
    if (!bias || !is_named(r, bias) || is_accumulated(&r->l, bias))
        return NULL;
    r->begun[add->id] = true;
    return bias;
}

/* ---- STAGE ----------------------------------------------------------------------------------- */

enum { FOUR = 4 };

/* A byte on its way into a place of 16 bits; NULL: the statement is something else. */
static Node *widened_byte(const Render *r, const Stmt *s)
{
    const Node *x = s->node;
    if (s->kind != STMT_STORE || s->store != STORE_ONE || x->nsrc != 4 || x->dtype != INGOT_I16 ||
        !r->k->args[x->src[0]->arg.i].early || x->src[2]->op != OP_CAST)
        return NULL;
    Node *byte = x->src[2]->src[0];
    return byte->op == OP_LOAD && node_is_const_i(byte->src[1], 1) ? byte : NULL;
}

int render_widened(Render *r, const Stmt *s, int left)
{
    Node *store[FOUR], *byte[FOUR];
    int n = 0, count = 0;
    if (!r->l.tile->four || r->l.tile->lane || !widened_byte(r, s))
        return 0;
    for (; count < left && n < FOUR; count++) {
        if (s[count].kind == STMT_LET)
            continue;
        byte[n] = widened_byte(r, &s[count]);
        store[n] = s[count].node;
        if (!byte[n++])
            return 0;
    }
    for (int i = 0; i < count; i++) {
        bool address = false;
        for (int j = 1; j < n; j++)
            address |= s[i].node == store[j]->src[3] || s[i].node == byte[j]->src[2] ||
                       s[i].node == byte[j];
        if (s[i].kind == STMT_LET && !address)
            render_statement(r, &s[i]);
    }
    r->needs |= NEED_DOT;
    render_indent(r, s->depth);
    sb_printf(r->sb, "igrt_widen_%sx4(a%lld + ", dtype_info[byte[0]->dtype].name,
              (long long)store[0]->src[0]->arg.i);
    render_expr(r, store[0]->src[3]);
    sb_printf(r->sb, ", a%lld + ", (long long)byte[0]->src[0]->arg.i);
    render_expr(r, byte[0]->src[2]);
    put(r, ");\n");
    return count;
}
