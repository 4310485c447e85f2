/* render_lanes.c - vectors of f32: igrt_<op>_f32x16() of igrt_vec.h.  A condition in lanes is a mask of
 * integers. */
#include "render.h"

/* clang-format off */
const char *const lane_spelling[OP_COUNT] = {
    [OP_ADD] = "($0 + $1)",  [OP_SUB] = "($0 - $1)", [OP_MUL] = "($0 * $1)",  [OP_DIV] = "($0 / $1)",
    [OP_EQ] = "eq",          [OP_NE] = "ne",         [OP_LT] = "lt",          [OP_LE] = "le",
    [OP_AND] = "and_mask",   [OP_OR] = "or_mask",    [OP_NOT] = "not_mask",
};
/* clang-format on */

/* igrt_<name>_f32x16( */
static void open_call(Render *r, const char *name)
{
    sb_printf(r->sb, "igrt_%s_%s(", name, r->lane_type);
}

void render_splat(Render *r, Node *n)
{
    open_call(r, "splat");
    render_bare(r, n);
    put(r, ")");
}

void render_horizontal(Render *r, Node *n)
{
    static const char *const name[] = {
        [INGOT_REDUCE_ADD] = "hadd", [INGOT_REDUCE_MUL] = "hmul", [INGOT_REDUCE_MAX] = "hmax", [INGOT_REDUCE_MIN] = "hmin"};
    open_call(r, name[n->arg.i]);
    render_bare(r, n->src[0]);
    put(r, ")");
}

/* "a3 + offset" of lane 0: the access goes on from there. */
static void first_lane(Render *r, Node *buffer, Node *offset)
{
    Node *zero = idx(r->k->c, 0), *lane = r->l.tile->lane;
    sb_printf(r->sb, "a%lld + ", (long long)buffer->arg.i);
    render_expr(r, substitute(r->k->c, offset, 1, &lane, &zero));
}

void render_lane_load(Render *r, Node *n)
{
    bool gated = !node_is_const_i(n->src[1], 1);
    if (gated) {
        put(r, "(");
        render_expr(r, n->src[1]);
        put(r, " ? ");
    }
    int part = r->l.tile->part;
    open_call(r, part ? "load_part" : "load");
    first_lane(r, n->src[0], n->src[2]);
    sb_printf(r->sb, part ? ", %d)" : ")", part);
    if (gated) {
        put(r, " : ");
        open_call(r, "splat");
        put(r, "0.0f))");
    }
}

void render_lane_store(Render *r, Node *n)
{
    int part = r->l.tile->part;
    open_call(r, part ? "store_part" : "store");
    first_lane(r, n->src[0], n->src[3]);
    put(r, ", ");
    render_operand(r, n->src[2], true, true);
    sb_printf(r->sb, part ? ", %d);\n" : ");\n", part);
}

void render_lane_type(Render *r, ingot_dtype d)
{
    sb_printf(r->sb, d == INGOT_BOOL ? "igrt_i32x%d" : "igrt_f32x%d", r->l.tile->lanes);
}
