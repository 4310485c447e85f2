/* render_loop_text.c - where loops begin: as often as they run, and what a compiler is told of
 * them. */
#include "render.h"

/* A loop that fills a place element by element, some of which may be on their way together. */
static bool gathers(const Render *r, const Node *range)
{
    const Linear *l = &r->l;
    bool fills = false, one = false;
    int at = 0;
    for (int i = 0; i < l->tile->nfill; i++)
        fills |= l->tile->fill[i].range == range;
    while (fills && at < l->n && (l->stmt[at].kind != STMT_LOOP || l->stmt[at].node != range))
        at++;
    for (; fills && at < l->n && l->stmt[at].kind != STMT_END; at++)
        one |= l->stmt[at].kind == STMT_STORE && store_chunk(l->stmt[at].node) == 1;
    return one;
}

/* An iteration or none. */
static void once(Render *r, const Stmt *s)
{
    put(r, "if (");
    if (s->zero) {
        render_expr(r, s->zero);
        put(r, " == 0 && ");
    }
    render_expr(r, s->from);
    put(r, " < ");
    render_expr(r, s->node->src[0]);
    put(r, ") {\n");
    render_indent(r, s->depth + 1);
    render_coordinate(r, r->lang->constant, s->node);
    put(r, " = ");
    render_bare(r, s->from);
    put(r, ";\n");
}

/* How often the compiler is to write a loop's body out, where it is told at all. */
static void unroll(Render *r, Node *n, int depth)
{
    bool rolled;
    if (tile_rows_in_place(r->l.tile) && n == r->l.tile->along) { /* a block is long: 11 KB */
        sb_printf(r->sb, "%s 1\n", r->lang->unroll);
        render_indent(r, depth);
    } else if (r->l.tile->tc && tc_adds(r->l.tile->tc) &&
               n == r->l.tile->ahead_of) { /* where places lie is known then */
        sb_printf(r->sb, "%s %d\n", r->lang->unroll, render_turns(r->l.tile));
        render_indent(r, depth);
    } else if (render_is_short(r, n, &rolled)) { /* so loads of several terms are under way */
        put(r, r->lang->unroll);
        put(r, rolled ? " 1\n" : "\n");
        render_indent(r, depth);
    }
    if (n == r->walked) { /* what is held are registers */
        put(r, r->lang->unroll);
        put(r, "\n");
        render_indent(r, depth);
    }
    if (r->l.tile->tc && gathers(r, n)) {
        sb_printf(r->sb, "%s 8\n", r->lang->unroll);
        render_indent(r, depth);
    }
}

static void loop(Render *r, const Stmt *s)
{
    Node *range = s->node;
    if (r->lang->unroll)
        unroll(r, range, s->depth);
    put(r, "for (");
    render_coordinate(r, r->lang->variable, range);
    sb_printf(r->sb, " = %d; ", s->from ? (int)s->from->arg.i : 0);
    render_range(r, range);
    put(r, " < ");
    render_expr(r, s->upto ? s->upto : range->src[0]);
    put(r, "; ");
    render_range(r, range);
    put(r, "++) {\n");
}

void render_loop(Render *r, const Stmt *s)
{
    if (s->from && s->from->op != OP_CONST)
        once(r, s);
    else if (!render_loop_ahead(r, s))
        loop(r, s);
}
