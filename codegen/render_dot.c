/* render_dot.c - DOT: four products of bytes and their sum are a function of igrt_dot.h, or of igrt_dot_vec.h in lanes.
 *
 * Four neighbours in memory are a value of their own, igrt_i8x4; in lanes, one such value a lane, they are an i32 vector. */
#include "render.h"

/* The load below the casts of an operand. */
static Node *bytes_of(Node *n)
{
    while (n->op == OP_CAST)
        n = n->src[0];
    return n;
}

static const char *byte_name(Node *n)
{
    return dtype_info[bytes_of(n)->dtype].name;
}

void render_four_type(Render *r, Node *n)
{
    if (is_vector(r, n))
        sb_printf(r->sb, "igrt_i32x%d", r->l.tile->lanes);
    else
        sb_printf(r->sb, "igrt_%sx4", byte_name(n));
}

void render_four(Render *r, Node *n)
{
    Node *load = bytes_of(n), *zero = idx(r->k->c, 0);
    Node *from[] = {r->l.tile->four, r->l.tile->lane}, *to[] = {zero, zero};
    bool lanes = is_vector(r, n);
    int part = r->l.tile->part;
    sb_printf(r->sb, lanes && part ? "igrt_load_part_%sx4" : "igrt_load_%sx4", byte_name(n));
    if (lanes)
        sb_printf(r->sb, "_i32x%d", r->l.tile->lanes);
    sb_printf(r->sb, "(a%lld + ", (long long)load->src[0]->arg.i);
    render_expr(r, substitute(r->k->c, load->src[2], lanes ? 2 : 1, from, to));
    if (lanes && part)
        sb_printf(r->sb, ", %d", part);
    put(r, ")");
}

static void operand(Render *r, Node *n, bool lanes)
{
    if (lanes && !is_vector(r, n))
        sb_printf(r->sb, "igrt_splat_%sx4_i32x%d(", byte_name(n), r->l.tile->lanes);
    render_bare(r, n);
    put(r, lanes && !is_vector(r, n) ? ")" : "");
}

void render_dot(Render *r, Node *n, const char *to)
{
    Node *product = n->src[0];
    bool lanes = is_vector(r, n);
    sb_printf(r->sb, "igrt_dot_%s_%s", byte_name(product->src[0]), byte_name(product->src[1]));
    if (lanes)
        sb_printf(r->sb, "_i32x%d", r->l.tile->lanes);
    put(r, "(");
    operand(r, product->src[0], lanes);
    put(r, ", ");
    operand(r, product->src[1], lanes);
    sb_printf(r->sb, ", %s)", to);
}
