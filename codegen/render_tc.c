/* render_tc.c - TC: fragments and their products are functions of the unit's header (igrt_amx.h), whose tiles have numbers.
 *
 *     igrt_amx_load(&tiles, 4, a1 + (i0_o*16384 + r0_o*64), 1024);
 *     igrt_amx_dot_u8_i8(&tiles, 0, 4, 6); */
#include "render.h"

static void call(Render *r, const char *what)
{
    sb_printf(r->sb, "%s_%s(&tiles", r->l.tile->tc->spelling, what);
}

void render_tc_begin(Render *r)
{
    const Tile *t = r->l.tile;
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
    sb_printf(r->sb, "%s_dot_%s_%s(&tiles, %d, %d, %d);\n", t->tc->spelling,
              dtype_info[a->dtype].name, dtype_info[b->dtype].name, s->tile[0], s->tile[1],
              s->tile[2]);
}
