/* render_tc.c - TC: fragments and their products are functions of the unit's header (igrt_amx.h), whose tiles have numbers.
 *
 *     igrt_amx_load(&tiles, 4, a1 + (i0_o*16384 + r0_o*64), 1024);
 *     igrt_amx_dot_u8_i8(&tiles, 0, 4, 6);
 *
 * Those of a unit whose products several items have together (igrt_mma.h) are values with names, each item's elements of them:
 *
 *     const igrt_mma_a v7 = igrt_mma_a_lines_16(a3 + (i0_i_o*640 + r0_i_o*16), 40);
 *     igrt_mma_dot_f16(&s3, v7, v9);
 *     a0[...] = s3.v[1]; */
#include <string.h>

#include "render.h"

static void call(Render *r, const char *what)
{
    sb_printf(r->sb, "%s_%s(&tiles", r->l.tile->tc->spelling, what);
}

void render_tc_begin(Render *r)
{
    const Tile *t = r->l.tile;
    if (t->tc->lanes) {
        r->needs |= NEED_MMA;
        return;
    }
    int line = 64 / t->tc->k; /* bytes of a term */
    r->needs |= NEED_AMX;
    render_indent(r, 0);
    call(r, "begin");
    sb_printf(r->sb, ", %d, %d, %lld, %lld);\n", r->l.nsum, r->l.nrows,
              (long long)t->fragment[TC_ROWS]->hi + 1,
              (long long)(t->fragment[TC_TERMS]->hi + 1) * line);
}

void render_tc_end(Render *r)
{
    if (r->l.tile->tc->lanes)
        return;
    render_indent(r, 0);
    call(r, "end");
    put(r, ");\n");
}

void render_fragment_zero(Render *r, int tile)
{
    call(r, "zero");
    sb_printf(r->sb, ", %d);\n", tile);
}

static void memory(Render *r, const char *what, int tile, const Node *access, Node *first,
                   int64_t pitch)
{
    call(r, what);
    sb_printf(r->sb, ", %d, a%lld + ", tile, (long long)access->src[0]->arg.i);
    render_expr(r, first);
    sb_printf(r->sb, ", %lld);\n", (long long)pitch * dtype_info[access->dtype].bytes);
}

void render_fragment_load(Render *r, Node *load, int tile)
{
    const Tile *t = r->l.tile;
    Node *first;
    int64_t pitch;
    if (!tc_fragment(r->k->c, t->tc, t->fragment, load, &first, &pitch))
        BUG("%s: a fragment that does not lie as its unit wants", r->k->name);
    memory(r, "load", tile, load, first, pitch);
}

void render_fragment_store(Render *r, Node *store, int tile)
{
    const Tile *t = r->l.tile;
    Node *zero = idx(r->k->c, 0), *to[] = {zero, zero, zero};
    int64_t pitch = 0;
    (void)range_stride(r->k->c, store->src[3], t->fragment[TC_ROWS], &pitch);
    memory(r, "store", tile, store, substitute(r->k->c, store->src[3], TC_AXES, t->fragment, to),
           pitch);
}

void render_products(Render *r, const Stmt *s)
{
    const Tile *t = r->l.tile;
    Node *a, *b;
    (void)tc_operands(t->tc, s->term, t->fragment, &a, &b);
    if (t->tc->lanes) {
        const char *name = strchr(t->tc->name, '.') + 1;
        sb_printf(r->sb, "%s_dot_%s(&s%d, v%d, v%d);\n", t->tc->spelling, name,
                  r->number[s->node->id], r->number[a->id], r->number[b->id]);
        return;
    }
    sb_printf(r->sb, "%s_dot_%s_%s(&tiles, %d, %d, %d);\n", t->tc->spelling,
              dtype_info[a->dtype].name, dtype_info[b->dtype].name, s->tile[0], s->tile[1],
              s->tile[2]);
}

void render_fragment_type(Render *r, Node *n)
{
    const Tile *t = r->l.tile;
    sb_printf(r->sb, "%s_%s", t->tc->spelling,
              n->op == OP_REDUCE                    ? "c"
              : r->l.fragment[n->id] >> TC_ROWS & 1 ? "a"
                                                    : "b");
}

void render_fragment_element(Render *r, Node *n)
{
    sb_printf(r->sb, "s%d.v[%lld]", r->number[n->src[0]->id], (long long)n->arg.i);
}

/* Lines of terms, or of rows (columns), at a pitch. */
void render_lane_fragment(Render *r, Node *load)
{
    const Tile *t = r->l.tile;
    LaneFragment f;
    if (!tc_lane_fragment(r->k->c, t->fragment, load, &f))
        BUG("%s: a fragment that does not lie as its unit wants", r->k->name);
    sb_printf(r->sb, "%s_%s_%s_%d(a%lld + ", t->tc->spelling, f.rows ? "a" : "b",
              f.by_line ? "lines" : "terms", 8 * dtype_info[load->dtype].bytes,
              (long long)load->src[0]->arg.i);
    render_expr(r, f.first);
    sb_printf(r->sb, ", %lld)", (long long)f.pitch);
}
