/* render_stay.c - groups that stay (STAY): each takes one block of results after the other.
 *
 *     if (igrt_is_beside_loader(256)) {
 *         igrt_give_registers<24>();
 *         if (!igrt_is_loader(256))
 *             return;
 *         igrt_claim_once(a6, 4, 0);
 *         for (int block = (int)blockIdx.x, turn = 0; block < 768; block += 132, turn += 12) {
 *             int group = block;
 *             ...
 *             for (int ahead = 0; ahead < 12; ahead++) {
 *                 igrt_claim(a6, ahead + turn, 4, 49152);
 *                 ...
 *             }
 *         }
 *         return;
 *     }
 *     igrt_take_registers<240>();
 *     for (int block = (int)blockIdx.x, turn = 0; block < 768; block += 132, turn += 12) {
 *         int group = block;
 *         ...
 *         igrt_wgmma_done(&s1, a6 + 8, 0, 1);
 *         igrt_free(a6, 12, 4);
 *         igrt_row_16(a0 + v8, ...);
 *     }
 *
 * Tokens count the iterations of all blocks. A block has a whole number of turns through the
 * places, so each of its iterations has the place that it has in every other block; or the places
 * are those of several blocks, each of which has some of them (turn % 4*8192).
 *
 * Rows of attention have loops of any length: the number of a place is that of such a count, and
 * queries have tokens of their own. Blocks come back and forth over the groups, of whom none then
 * has the longer ones of all rounds.
 *
 *     for (int block = .., turn = 0, nth = 0, back = 263 - 2*(int)blockIdx.x; block < 2048;
 *          block += back, back = 264 - back, nth++) {
 *         igrt_filled(a7 + 7, nth, 1);
 *         for (int r1_o = 0; r1_o < v2; r1_o++) {
 *             igrt_filled(a7, r1_o + turn, 3);
 *             const int v46 = ((r1_o + turn) % 3)*16384;
 *             if (r1_o + 1 == v2)
 *                 igrt_free(a7 + 7, nth + 1, 1);
 *             ...
 *         }
 *         turn += v2;
 *     } */
#include <string.h>

#include "render.h"

void render_blocks(Render *r, int depth)
{
    const Tile *t = r->l.tile;
    Node *blocks = idx(r->k->c, 1);
    for (int i = 0; i < t->naxis; i++)
        if (t->axis[i].bound == BOUND_GRID)
            blocks = idx_mul(r->k->c, blocks, t->axis[i].range->src[0]);
    render_indent(r, depth);
    sb_printf(r->sb, "for (int block = %s, turn = 0", r->lang->group);
    if (t->along)
        sb_printf(r->sb, ", nth = 0, back = %lld - 2*%s", (long long)(2 * t->stay - 1),
                  r->lang->group);
    put(r, "; block < ");
    render_expr(r, blocks);
    if (t->along) {
        sb_printf(r->sb, "; block += back, back = %lld - back, nth++) {\n",
                  (long long)(2 * t->stay));
    } else {
        sb_printf(r->sb, "; block += %lld, turn += ", (long long)t->stay);
        render_expr(r, t->ahead_of->src[0]);
        put(r, ") {\n");
    }
    /* asked again in each block, or what follows from it is kept in registers meanwhile */
    render_group_item(r, "block", "igrt_item_again()", depth + 1);
}

void render_place_of_block(Render *r, int64_t place)
{
    const Tile *t = r->l.tile;
    if (!t->stay || !tile_has_some_places(t))
        return;
    for (int i = 0; i < t->nbox; i++)
        if (t->box[i].place == place)
            sb_printf(r->sb, "turn %% %d*%lld + ", t->depth, (long long)t->box[i].elements);
}

void render_rows_token(Render *r, const char *what, bool next)
{
    const Tile *t = r->l.tile;
    sb_printf(r->sb, "igrt_%s(a%d + %d, nth%s, 1", what, t->tokens, 2 * t->depth + 1,
              next ? " + 1" : "");
}

bool render_place_of_rows(Render *r, Node *mod)
{
    const Tile *t = r->l.tile;
    int64_t depth;
    if (!t || !render_rows_stay(t) || (mod->src[0] != t->along && mod->src[0] != t->ahead) ||
        !idx_value(mod->src[1], &depth) || depth != t->depth)
        return false;
    const bool bare = r->bare;
    put(r, bare ? "(" : "((");
    r->bare = true;
    render_expr(r, mod->src[0]);
    r->bare = bare;
    sb_printf(r->sb, " + turn) %% %d%s", t->depth, bare ? "" : ")");
    return true;
}

/* Copies of statements, one level further in. */
static int inwards(Stmt *out, const Stmt *s, int n)
{
    memcpy(out, s, (size_t)n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i].depth++;
    return n;
}

void render_stay(Render *r)
{
    const Stmt *s = r->l.stmt;
    int first = 0, loader, end, n;
    while (s[first].kind == STMT_ITEM)
        first++;
    for (loader = first; s[loader].kind != STMT_LOADER; loader++)
        if (s[loader].kind != STMT_LET && s[loader].kind != STMT_DEPEND)
            BUG("%s: what stands before the loader of groups that stay", r->k->name);
    for (end = loader; s[end].kind != STMT_END || s[end].node; end++)
        ;
    Stmt *out = NEWN(r->arena, Stmt, r->l.n + loader + 2);
    const Stmt turned = {.kind = STMT_OVERLAP, .count = OVERLAP_TURNED, .depth = 1};
    const bool rows = render_rows_stay(r->l.tile);
    memcpy(out, s, (size_t)first * sizeof *out);
    n = first;
    out[n++] = s[loader];
    n += inwards(&out[n], &s[first], loader - first);
    for (int i = first + 1; i < n; i++)
        out[i].depth++;
    n += inwards(&out[n], &s[loader + 1], end - loader - 1);
    if (rows)
        out[n++] = turned;
    out[n - rows].depth += rows;
    out[n++] = s[end];
    n += inwards(&out[n], &s[first], loader - first);
    n += inwards(&out[n], &s[end + 1], r->l.n - end - 1);
    if (rows)
        out[n++] = turned;
    r->l.stmt = out;
    r->l.n = n;
}

void render_stay_end(Render *r)
{
    if (!r->l.tile->stay)
        return;
    put(r, "    }\n");
    render_turns_of_blocks(r, "turns_end", 0);
}
