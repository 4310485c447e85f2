/* render_dot.c - DOT: four products of bytes, or two of bf16, and their sum are a function of
 * igrt_dot.h, of more bytes of igrt_dot_wide.h, and of igrt_dot_vec.h and igrt_dot_bf16.h in lanes;
 * two of i16, or of i16 and a byte that is widened where it is loaded, of igrt_dot_i16.h.
 *
 * Four neighbours in memory are a value of their own, igrt_i8x4 (igrt_bf16x2); in lanes, one such
 * value a lane, they are an i32 vector. Digits of four bytes are made at once, as bits of that. */
#include <string.h>

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

/* Is a digit below 128? */
static bool is_small(const Node *n)
{
    n = n->op == OP_CAST ? n->src[0] : n;
    if (n->op == OP_OR)
        return is_small(n->src[0]) && is_small(n->src[1]);
    const Node *x = n->op == OP_SHL ? n->src[0] : n, *by = n->src[n->nsrc - 1];
    const int64_t shift = n->op != OP_SHL ? 0 : by->op == OP_CONST ? by->arg.i : 8;
    return x->op == OP_AND && x->src[1]->op == OP_CONST && shift < 8 &&
           x->src[1]->arg.i << shift <= INT8_MAX;
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
    else
        sb_printf(r->sb, "igrt_%sx%d", byte_name(n), tile_dot(r->l.tile));
}

static void operand(Render *r, Node *n, bool lanes);

/* igrt_shr_u8x4_i32x16(igrt_load_u8x4_i32x16(..), 4) */
static void render_bits(Render *r, Node *n)
{
    const bool lanes = is_vector(r, n), other = is_four(r, n->src[1]);
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
    if (gated) {
        put(r, "(");
        render_expr(r, load->src[1]);
        put(r, " ? ");
    }
    sb_printf(r->sb, lanes && part ? "igrt_load_part_%sx%d" : "igrt_load_%sx%d", byte_name(n),
              tile_dot(r->l.tile));
    if (lanes)
        sb_printf(r->sb, "_i32x%d", r->l.tile->lanes);
    Context *c = r->k->c;
    Node *first = substitute(c, load->src[2], lanes ? 2 : 1, from, to);
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

void render_dot(Render *r, Node *n, const char *to)
{
    Node *product = n->src[0];
    bool lanes = is_vector(r, n);
    const char *name[2];
    for (int i = 0; i < 2; i++) {
        Node *x = product->src[i];
        name[i] = x->op == OP_CONST || is_flipped(x) ? "u8" : byte_name(x);
    }
    for (int i = 0; i < 2; i++)
        if (is_small(product->src[i]) && !strcmp(name[1 - i], "i8"))
            name[i] = "u7";
    if (tile_dot(r->l.tile) == 2 && n->dtype == INGOT_I32)
        name[0] = name[1] = "i16";
    needs_dot(r, lanes, bytes_of(product->src[0]));
    put(r, "igrt_dot");
    if (tile_dot(r->l.tile) > 4)
        sb_printf(r->sb, "%d", tile_dot(r->l.tile));
    sb_printf(r->sb, "_%s_%s", name[0], name[1]);
    if (lanes)
        sb_printf(r->sb, "_%sx%d", lane_type(n->dtype), r->l.tile->lanes);
    put(r, "(");
    operand(r, product->src[0], lanes);
    put(r, ", ");
    operand(r, product->src[1], lanes);
    sb_printf(r->sb, ", %s)", to);
}
