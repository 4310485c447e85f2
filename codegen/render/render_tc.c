/* render_tc.c - TC: fragments and their products are functions of the unit's header (igrt_amx.h),
 * whose tiles have numbers.
 *
 *     igrt_amx_load(&tiles, 4, a1 + (i0_o*16384 + r0_o*64), 1024);
 *     igrt_amx_dot_u8_i8(&tiles, 0, 4, 6);
 *
 * Those of a unit whose products several items have together (igrt_mma.h) are values with names,
 * each item's elements of them:
 *
 *     const igrt_mma_a v7 = igrt_mma_a_lines_16(a3 + (i0_i_o*640 + r0_i_o*16), 40);
 *     igrt_mma_dot_f16(&s3, v7, v9);
 *     a0[...] = s3.v[1];
 *
 * A warpgroup's (igrt_wgmma.h) operands are said by where they lie. One more item than the group
 * has asks for the boxes that fill these places, and the two sides wait for each other by tokens:
 *
 *     if (igrt_is_loader(256)) {
 *         for (int ahead = 0; ahead < 64; ahead++) {
 *             igrt_claim(a5, ahead, 4, 49152);
 *             igrt_box_2(a3 + ..., &m1, igrt_filled_token(a5, ahead, 4), ahead*64, i0_o*128);
 *             ...
 *         }
 *         return;
 *     }
 *     for (int r0_o = 0; r0_o < 64; r0_o++) {
 *         igrt_filled(a5, r0_o, 4);
 *         const igrt_wgmma_operand v7 = igrt_wgmma_lines(a3 + (i0_i_o*4096 + r0_i_o*16));
 *         igrt_wgmma256_dot_f16<0, 1>(&s3, v7, v9);
 *         igrt_release(a5, r0_o, 4);
 *     }
 *     igrt_wgmma_done(&s3, a5, 63, 4); */
#include <string.h>

#include "kernel.h"
#include "language_c.h"
#include "render.h"

/* Numbers that a function is compiled for. */
__attribute__((format(printf, 2, 3))) static void fixed(Render *r, const char *format, ...)
{
    StrBuf sb = {0};
    va_list ap;
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    print_pattern(r->sb, r->lang->c->fixed, (const char *const[]){sb.data});
    sb_free(&sb);
}

static void call(Render *r, const char *what)
{
    sb_printf(r->sb, "%s_%s(&tiles", r->l.tile->tc->spelling, what);
}

void render_tc_begin(Render *r)
{
    const Tile *t = r->l.tile;
    if (t->tc->lanes) {
        r->needs |= NEED_MMA | (tc_in_place(t->tc) || t->cluster || t->ranks ? NEED_WGMMA : 0);
        if (t->cluster) {
            render_indent(r, 0);
            put(r, "igrt_cluster_begin();\n");
        }
        if (!t->box)
            return;
        render_indent(r, 0);
        sb_printf(r->sb, "igrt_tokens_begin(a%d, %d, %d", t->tokens, t->depth,
                  t->items / t->tc->lanes);
        put(r, t->along || t->stay ? ", 1);\n" : ");\n");
        if (!render_rows_stay(t))
            return;
        render_indent(r, 0);
        sb_printf(r->sb, "igrt_tokens_begin(a%d + %d, 1, %d);\n", t->tokens, 2 * t->depth + 1,
                  t->items / t->tc->lanes);
        return;
    }
    const int term = dtype_info[t->tc->a].bytes;
    char header[64];
    snprintf(header, sizeof header, "%s.h", t->tc->spelling);
    r->needs |= header_need(header);
    render_indent(r, 0);
    call(r, "begin");
    sb_printf(r->sb, ", %d, %d, %lld, %lld);\n", r->l.nsum, r->l.nrows,
              (long long)t->fragment[TC_ROWS]->hi + 1,
              (long long)(t->fragment[TC_TERMS]->hi + 1) * term);
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
        BUG("%s: a fragment whose layout is not the one of its unit", r->k->name);
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

bool render_begins_products(const Render *r, const Node *sum)
{
    const Tile *t = r->l.tile;
    return tile_rows_in_place(t) && sum->nsrc == 2;
}

/* Of attention: a sum begins with its first product; the outer ones take rows that lanes have. */
static void products_of_rows(Render *r, const Stmt *s)
{
    const TileUnit u = tile_unit(r->l.tile, s->term);
    const char *name = strchr(u.tc->name, '.') + 1;
    Node *a, *b, *first[TC_MOST_TERMS];
    LaneFragment x = {0}, y;
    (void)tc_operands(u.tc, s->term, u.fragment, &a, &b);
    (void)tc_place_fragment(r->k->c, u.tc, u.fragment, b, &y);
    const bool packed = a->op == OP_PACK;
    if (!packed)
        (void)tc_place_fragment(r->k->c, u.tc, u.fragment, a, &x);
    (void)tc_terms(s->node->src[0], first, TC_MOST_TERMS);
    const bool adds = !render_begins_products(r, s->node) || first[0] != s->term;
    sb_printf(r->sb, "%s_%s_%s", u.tc->spelling, packed ? "rows" : "dot", name);
    if (packed)
        fixed(r, "%d", !y.by_line);
    else
        fixed(r, "%d, %d, %d", !x.by_line, !y.by_line, adds);
    sb_printf(r->sb, "(&s%d, v%d, v%d);\n", r->number[s->node->id], r->number[a->id],
              r->number[b->id]);
}

void render_products(Render *r, const Stmt *s)
{
    const Tile *t = r->l.tile;
    Node *a, *b;
    if (tile_rows_in_place(t)) {
        products_of_rows(r, s);
        return;
    }
    (void)tc_operands(t->tc, s->term, t->fragment, &a, &b);
    LaneFragment x, y;
    if (tc_in_place(t->tc)) {
        const char *name = strchr(t->tc->name, '.') + 1;
        (void)tc_place_fragment(r->k->c, t->tc, t->fragment, a, &x);
        (void)tc_place_fragment(r->k->c, t->tc, t->fragment, b, &y);
        if (tc_rests(t->tc)) {
            sb_printf(r->sb, "igrt_wgmma_dot_%s(", name);
        } else if (tc_by_line(t->tc)) {
            sb_printf(r->sb, "%s_dot_%s_%s(", t->tc->spelling, dtype_info[a->dtype].name,
                      dtype_info[b->dtype].name);
        } else {
            sb_printf(r->sb, "%s_dot_%s", t->tc->spelling, name);
            fixed(r, "%d, %d", !x.by_line, !y.by_line);
            put(r, "(");
        }
        sb_printf(r->sb, "&s%d, v%d, v%d", r->number[s->node->id], r->number[a->id],
                  r->number[b->id]);
        if (tc_rests(t->tc)) {
            sb_printf(r->sb, ", a%d", t->rests);
            if (t->items > t->tc->lanes)
                sb_printf(r->sb, " + %s / %d * %lld", r->lang->item, t->tc->lanes,
                          (long long)tc_rests(t->tc));
        }
        if (tc_adds(t->tc)) {
            sb_printf(r->sb, ", a%d, ", t->tokens);
            render_expr(r, t->ahead_of);
            sb_printf(r->sb, "%s, %d", t->stay ? " + turn" : "", t->depth);
        }
        put(r, ");\n");
        return;
    }
    if (t->tc->lanes) {
        const char *name = strchr(t->tc->name, '.') + 1;
        const int *number = s->kept ? r->kept : r->number, letter = s->kept ? 'p' : 'v';
        if (tc_by_line(t->tc)) /* with a sign or without, or either form of f8 */
            sb_printf(r->sb, "%s_dot_%s_%s(", t->tc->spelling, dtype_info[a->dtype].name,
                      dtype_info[b->dtype].name);
        else
            sb_printf(r->sb, "%s_dot_%s(", t->tc->spelling, name);
        sb_printf(r->sb, "&s%d, %c%d, %c%d);\n", r->number[s->node->id], letter, number[a->id],
                  letter, number[b->id]);
        return;
    }
    sb_printf(r->sb, "%s_dot_%s_%s(&tiles, %d, %d, %d);\n", t->tc->spelling,
              dtype_info[a->dtype].name, dtype_info[b->dtype].name, s->tile[0], s->tile[1],
              s->tile[2]);
}

void render_fragment_type(Render *r, Node *n)
{
    const Tile *t = r->l.tile;
    if (tc_in_place(t->tc) && n->op != OP_REDUCE) {
        put(r, n->op == OP_PACK ? "igrt_mma_a" : "igrt_wgmma_operand");
        return;
    }
    sb_printf(r->sb, "%s_%s", tile_unit(t, n).tc->spelling,
              n->op == OP_REDUCE                    ? t->tc->acc == INGOT_I32 ? "c_i32" : "c"
              : r->l.fragment[n->id] >> TC_ROWS & 1 ? "a"
                                                    : "b");
}

void render_fragment_element(Render *r, Node *n)
{
    sb_printf(r->sb, "s%d.v[%lld]", r->number[n->src[0]->id], (long long)n->arg.i);
}

/* The function rounds to the operand's type. */
void render_pack(Render *r, Node *n)
{
    const Tc *u = r->l.tile->tc;
    const int each = tc_per_lane(u, TC_ROWS);
    sb_printf(r->sb, "%s_a_of_%s(", tc_in_place(u) ? "igrt_mma" : u->spelling,
              dtype_info[u->a].name);
    for (int i = 0; i < each; i++) {
        Node *x = n->src[i];
        if (x->op == OP_CAST && !is_named(r, x) && x->src[0]->dtype == INGOT_F32)
            x = x->src[0];
        put(r, i ? ", " : "");
        render_bare(r, x);
    }
    put(r, ")");
}

/* Lines of terms, or of rows (columns), at a pitch. */
void render_lane_fragment(Render *r, Node *load)
{
    const Tile *t = r->l.tile;
    LaneFragment f;
    const bool in_place = tc_in_place(t->tc);
    const TileUnit u = tile_unit(t, load);
    if (!(in_place ? tc_place_fragment(r->k->c, u.tc, u.fragment, load, &f)
                   : tc_lane_fragment(r->k->c, u.fragment, load, &f)))
        BUG("%s: a fragment whose layout is not the one of its unit", r->k->name);
    if (in_place) {
        const char *lines = u.tc->run < TC_RUN ? "half_lines" : "lines";
        sb_printf(r->sb, "igrt_wgmma_%s(a%lld + ", f.by_line ? lines : "terms",
                  (long long)load->src[0]->arg.i);
        render_place_of_block(r, load->src[0]->arg.i);
        render_expr(r, f.first);
        if (!f.by_line)
            sb_printf(r->sb, ", %lld", (long long)f.apart);
        put(r, ")");
        return;
    }
    sb_printf(r->sb, "%s_%s_%s_%d(a%lld + ", t->tc->spelling, f.rows ? "a" : "b",
              f.halves    ? "halves"
              : f.by_line ? "lines"
                          : "terms",
              8 * dtype_info[load->dtype].bytes, (long long)load->src[0]->arg.i);
    render_expr(r, f.first);
    sb_printf(r->sb, ", %lld)", (long long)f.pitch);
}

/* Are these fragments of eight columns and of the eight that follow? */
bool render_are_beside(const Render *r, Node *a, Node *b)
{
    const Tile *t = r->l.tile;
    Context *c = r->k->c;
    LaneFragment x, y;
    if (a->op != OP_LOAD || b->op != OP_LOAD || a->src[0] != b->src[0] || !r->l.fragment[a->id] ||
        !r->l.fragment[b->id] || tc_in_place(t->tc) || !tc_lane_fragment(c, t->fragment, a, &x) ||
        !tc_lane_fragment(c, t->fragment, b, &y) || x.rows || y.rows || x.halves || y.halves ||
        x.by_line != y.by_line || x.pitch != y.pitch ||
        (dtype_info[a->dtype].bytes == 4 && !x.by_line))
        return false;
    return idx_is(idx_sub(c, y.first, x.first), t->tc->n * (x.by_line ? x.pitch : 1));
}

void render_two_fragments(Render *r, Node *load, int first)
{
    const Tile *t = r->l.tile;
    LaneFragment f;
    (void)tc_lane_fragment(r->k->c, t->fragment, load, &f);
    sb_printf(r->sb, "%s_b_two_%s_%d(&v%d, &v%d, a%lld + ", t->tc->spelling,
              f.by_line ? "lines" : "terms", 8 * dtype_info[load->dtype].bytes, first, first + 1,
              (long long)load->src[0]->arg.i);
    render_expr(r, f.first);
    sb_printf(r->sb, ", %lld);\n", (long long)f.pitch);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Bytes that fill the places of an iteration, or those that are filled once. */
static int64_t box_bytes(const Render *r, bool once)
{
    int64_t bytes = 0;
    for (int i = 0; i < r->l.tile->nbox; i++) {
        const Box *b = &r->l.tile->box[i];
        if (b->once == once)
            bytes += b->elements * dtype_info[r->k->args[b->place].dtype].bytes;
    }
    return bytes;
}

/* waits: for a phase, which iterations of all blocks count. So do they where a block has some of
 * the places. */
static void token(Render *r, const char *what, Node *iteration, bool waits)
{
    const Tile *t = r->l.tile;
    if (!iteration && render_rows_stay(t)) {
        render_rows_token(r, what, false);
        return;
    }
    if (!iteration) {
        sb_printf(r->sb, "igrt_%s_once(a%d, %d", what, t->tokens, t->depth);
        return;
    }
    sb_printf(r->sb, "igrt_%s(a%d, ", what, t->tokens);
    render_expr(r, iteration);
    const bool counts = t->stay && (waits || t->along || tile_has_some_places(t));
    sb_printf(r->sb, "%s, %d", counts ? " + turn" : "", t->depth);
}

/* That of an iteration's places: until then the items have read the ones of the iteration
 * before. */
static void free_token(Render *r, const char *what, Node *iteration)
{
    const Tile *t = r->l.tile;
    sb_printf(r->sb, "igrt_%s(a%d, ", what, t->tokens);
    render_expr(r, iteration);
    put(r, render_rows_stay(t) ? " + turn" : "");
    sb_printf(r->sb, ", %d%s", t->depth, t->stay && tile_has_some_places(t) ? ", turn" : "");
}

/* What groups of a cluster have of the same sums, all of which follow each other: each gets what
 * the others have of its share. */
int render_joins(Render *r, const Stmt *s, int left)
{
    const Tile *t = r->l.tile;
    const int groups = (int)t->cluster->hi + 1, each = tc_per_lane(t->tc, TC_TERMS);
    int n = 0;
    while (n < left && s[n].kind == STMT_JOIN)
        n++;
    for (int take = 0; take < 2; take++) {
        render_indent(r, s->depth);
        put(r, take ? "igrt_cluster_meet();\n" : "igrt_cluster_there();\n");
        for (int i = 0; i < n; i++) {
            render_indent(r, s->depth);
            sb_printf(r->sb, "igrt_cluster_%s", take ? "take" : "give");
            fixed(r, "%d, %d, %d, %d", each, t->share, t->items, groups);
            sb_printf(r->sb, "(s%d.v, a%d, %d);\n", r->number[s[i].node->id], t->joined, i * each);
        }
    }
    return n;
}

/* Products of a sum are done, by the token of what is filled once: that of an iteration's places
 * may be for a later one by then, where other warps have released them. */
static void done_for_good(Render *r, const Node *sum)
{
    const Tile *t = r->l.tile;
    sb_printf(r->sb, "igrt_wgmma_done(&s%d, a%d + %d, 0, 1);\n", r->number[sum->id], t->tokens,
              2 * t->depth);
}

/* All sums of products before this statement are whole: said of each, or compilers read them before
 * it. */
static void products_done(Render *r, const Stmt *s)
{
    const Tile *t = r->l.tile;
    Node *last = idx_add(r->k->c, t->ahead_of->src[0], idx(r->k->c, -1));
    bool again = false;
    for (const Stmt *sum = r->l.stmt; sum < s; sum++) {
        if (sum->kind != STMT_ACC || sum->reduce != REDUCE_PRODUCTS)
            continue;
        if (again)
            render_indent(r, s->depth);
        again = true;
        if (t->stay) {
            done_for_good(r, sum->node);
            continue;
        }
        sb_printf(r->sb, "igrt_wgmma_done(&s%d, a%d, ", r->number[sum->node->id], t->tokens);
        render_expr(r, last);
        sb_printf(r->sb, ", %d);\n", t->depth);
    }
    if (!again)
        BUG("%s: the end of products that there are none of", r->k->name);
    if (!t->stay)
        return;
    render_indent(r, s->depth);
    free_token(r, "free", t->ahead_of->src[0]);
    put(r, ");\n");
}

/* Those since others were done; s: where they are. */
static void rows_done(Render *r, const Stmt *s)
{
    const Stmt *first = s;
    while (first > r->l.stmt && first[-1].kind != STMT_DONE && first[-1].kind != STMT_FILLED)
        first--;
    put(r, "igrt_wgmma_commit();\n");
    for (const Stmt *sum = first; sum < s; sum++) {
        if (sum->kind != STMT_UPDATE || sum->reduce != REDUCE_PRODUCTS || !sum->last)
            continue;
        render_indent(r, s->depth);
        done_for_good(r, sum->node);
    }
}

/* What is kept has names of its own where products of it are asked for. */
static void names_of_kept(Render *r, bool kept)
{
    for (int i = 0; i < r->noverlapped; i++) {
        struct Overlapped *o = &r->overlapped[i];
        int *number = &r->number[o->value->id];
        if (kept)
            o->own = *number;
        *number = kept ? o->number : o->own;
    }
}

/* All products but those of the last groups are done. */
static void products_until(Render *r, const Stmt *s, int groups)
{
    put(r, "igrt_wgmma_until");
    fixed(r, "%d", groups);
    sb_printf(r->sb, "(&s%d, a%d + %d);\n", r->number[s->node->id], r->l.tile->tokens,
              2 * r->l.tile->depth);
}

/* Of several warpgroups, whose turn it is to ask for products. */
static bool turns(Render *r, const char *what, bool groups)
{
    const int n = r->l.tile->items / r->l.tile->tc->lanes;
    if (n < 2 || !r->noverlapped)
        return false;
    sb_printf(r->sb, "igrt_%s(", what);
    if (groups)
        sb_printf(r->sb, "%d", n);
    put(r, ");\n");
    return true;
}

static void turn_line(Render *r, const char *what, bool groups, int depth)
{
    if (turns(r, what, groups))
        render_indent(r, depth);
}

void render_turns_of_blocks(Render *r, const char *what, int depth)
{
    if (!r->noverlapped)
        return;
    render_indent(r, depth);
    turns(r, what, true);
}

/* Rows of groups that stay: queries have been read, in a block's last iteration (and in others they
 * will be again), or behind all of them; and what has been a block's number of iterations. */
static void rows_are_read(Render *r, OverlapPart part)
{
    const Tile *t = r->l.tile;
    if (part == OVERLAP_TURNED) {
        put(r, "turn += ");
        render_bare(r, t->ahead_of->src[0]);
        put(r, ";\n");
        return;
    }
    if (part == OVERLAP_ASKED) {
        put(r, "if (");
        render_expr(r, t->along);
        put(r, " + 1 == ");
        render_expr(r, t->ahead_of->src[0]);
        put(r, ")\n");
        render_indent(r, r->depth + 1);
    }
    render_rows_token(r, "free", true);
    put(r, ");\n");
}

void render_overlap_part(Render *r, const Stmt *s)
{
    const OverlapPart part = (OverlapPart)s->count;
    const bool stays = r->l.tile->stay > 0;
    if (part >= OVERLAP_ASKED) {
        rows_are_read(r, part);
        return;
    }
    if (part == OVERLAP_HOLD && !stays)
        turn_line(r, "turns_begin", true, s->depth);
    if (part == OVERLAP_TURN) {
        turn_line(r, "turn_take", false, s->depth);
        put(r, "igrt_wgmma_fence();\n");
    }
    if (part == OVERLAP_LAST && !stays)
        turn_line(r, "turns_end", true, s->depth);
    for (int i = 0; i < r->noverlapped && part <= OVERLAP_KEEP; i++) {
        struct Overlapped *o = &r->overlapped[i];
        if (i)
            render_indent(r, s->depth);
        if (part == OVERLAP_KEEP) {
            sb_printf(r->sb, "v%d = v%d;\n", o->number, r->number[o->value->id]);
            continue;
        }
        render_variable(r, o->value, o->number = r->nvalue++);
        put(r, ";\n");
    }
    if (part == OVERLAP_NEXT || part == OVERLAP_SCORES || part == OVERLAP_WHOLE) {
        put(r, "igrt_wgmma_commit();\n");
        render_indent(r, s->depth);
    }
    if (part == OVERLAP_SCORES)
        turn_line(r, "turn_pass", true, s->depth);
    if (part == OVERLAP_NEXT || part == OVERLAP_LAST) {
        put(r, "igrt_wgmma_fence();\n");
        names_of_kept(r, true);
    }
    if (part == OVERLAP_SCORES || part == OVERLAP_WHOLE)
        names_of_kept(r, false);
    if (part >= OVERLAP_SCORES && part != OVERLAP_LAST)
        products_until(r, s, part == OVERLAP_SCORES);
    if (part == OVERLAP_RESULTS || (part == OVERLAP_WHOLE && stays)) {
        render_indent(r, s->depth);
        free_token(r, "free",
                   part == OVERLAP_RESULTS ? r->l.tile->along : r->l.tile->ahead_of->src[0]);
        put(r, ");\n");
    }
}

static void scale_lines(Render *r, Node *sum)
{
    if (reduce_size(sum) == 1) {
        put(r, "igrt_wgmma_fence();\n");
        return;
    }
    sb_printf(r->sb, "igrt_wgmma_scale(&s%d, ", r->number[sum->id]);
    render_bare(r, sum->src[1]);
    put(r, ", ");
    render_bare(r, sum->src[2]);
    put(r, ");\n");
}

/* Does it grow with the range, up to what does not move with it? */
static bool grows_with(Render *r, Node *e, Node *range)
{
    int64_t stride;
    if (e->op != OP_MIN)
        return range_stride(r->k->c, e, range, &stride) && stride > 0;
    return (grows_with(r, e->src[0], range) && !depends_on(e->src[1], range)) ||
           (grows_with(r, e->src[1], range) && !depends_on(e->src[0], range));
}

bool render_last_first(Render *r, Node *range)
{
    Node *blocks = r->l.tile->along ? r->l.tile->along->src[0] : NULL;
    int64_t size;
    if (!blocks || !idx_value(range->src[0], &size))
        return blocks && grows_with(r, blocks, range);
    Node *end[] = {idx(r->k->c, 0), idx(r->k->c, size - 1)};
    return substitute(r->k->c, blocks, 1, &range, &end[0])->hi <
           substitute(r->k->c, blocks, 1, &range, &end[1])->lo;
}

int render_masks(Render *r, const Stmt *s, int left)
{
    const Node *whole = s->kind == STMT_LET ? tile_whole_block(r->l.tile, s->node) : NULL;
    int n = 0;
    for (; whole && n < left && s[n].kind == STMT_LET &&
           tile_whole_block(r->l.tile, s[n].node) == whole;
         n++) {
        render_begin_value(r, &s[n]);
        render_operand(r, s[n].node->src[1], false, true);
        put(r, ";\n");
    }
    if (!n)
        return 0;
    render_indent(r, s->depth);
    put(r, "if (!");
    render_operand(r, (Node *)(uintptr_t)whole, false, true);
    put(r, ") {\n");
    for (int i = 0; i < n; i++) {
        const Node *rest = s[i].node->src[2];
        const int v = r->number[s[i].node->id];
        render_indent(r, s->depth + 1);
        sb_printf(r->sb, "v%d = ", v);
        render_operand(r, rest->src[0], false, true);
        sb_printf(r->sb, " ? v%d : ", v);
        render_operand(r, rest->src[2], false, true);
        put(r, ";\n");
    }
    render_indent(r, s->depth);
    put(r, "}\n");
    return n;
}

/* Iterations after which all places are those of the first again. */
int render_turns(const Tile *t)
{
    return t->depth % 2 ? 2 * t->depth : t->depth;
}

/* The item that has boxes copied; where its warpgroup leaves registers to the others, who take them
 * behind it. */
static void loader_begin(Render *r, int depth)
{
    const Tile *t = r->l.tile;
    if (!tile_gives_registers(t)) {
        sb_printf(r->sb, "if (igrt_is_loader(%d)) {\n", tile_loads_itself(t) ? 0 : t->items);
        return;
    }
    sb_printf(r->sb, "if (igrt_is_beside_loader(%d)) {\n", t->items);
    render_indent(r, depth + 1);
    put(r, "igrt_give_registers");
    fixed(r, "%d", TC_LOADERS);
    put(r, "();\n");
    render_indent(r, depth + 1);
    sb_printf(r->sb, "if (!igrt_is_loader(%d))\n", t->items);
    render_indent(r, depth + 2);
    put(r, "return;\n");
    if (!t->stay)
        return;
    render_indent(r, depth + 1); /* what done_for_good() asks for */
    sb_printf(r->sb, "igrt_claim_once(a%d, %d, 0);\n", t->tokens, t->depth);
    render_blocks(r, depth + 1);
}

void render_loader_end(Render *r, int depth)
{
    const Tile *t = r->l.tile;
    if (tile_loads_itself(t)) {
        put(r, "}\n");
        render_indent(r, depth);
        put(r, "igrt_warp_meets();\n");
        return;
    }
    if (t->stay) {
        put(r, "    }\n");
        render_indent(r, depth);
    }
    put(r, "    return;\n");
    render_indent(r, depth);
    put(r, "}\n");
    if (!tile_gives_registers(t))
        return;
    render_indent(r, depth);
    put(r, "igrt_take_registers");
    fixed(r, "%d", tc_registers(t->items / t->tc->lanes));
    put(r, "();\n");
    if (!t->stay)
        return;
    render_turns_of_blocks(r, "turns_begin", depth);
    render_blocks(r, depth);
}

/* What the two sides say to each other; false: it is another statement. */
bool render_token(Render *r, const Stmt *s)
{
    switch (s->kind) {
    case STMT_LOADER: loader_begin(r, s->depth); return true;
    case STMT_CLAIM:
        token(r, "claim", s->node, true);
        sb_printf(r->sb, ", %lld);\n", (long long)box_bytes(r, !s->node));
        return true;
    case STMT_DONE: rows_done(r, s); return true;
    case STMT_SCALE: scale_lines(r, s->node); return true;
    case STMT_OVERLAP: render_overlap_part(r, s); return true;
    case STMT_FILLED: token(r, "filled", s->node, true); break;
    case STMT_RELEASE:
        if (!s->node) {
            products_done(r, s);
            return true;
        }
        free_token(r, tc_adds(r->l.tile->tc) || r->l.tile->along ? "free" : "release", s->node);
        break;
    default: return false;
    }
    put(r, ");\n");
    return true;
}

/* Where box i of a place begins in the map. */
static void box_corner(Render *r, const Box *b, int64_t i)
{
    for (int j = 0; j < b->rank; j++) {
        put(r, ", ");
        render_expr(r, idx_add(r->k->c, b->at[j], idx(r->k->c, j ? 0 : i * b->size[0])));
    }
}

/* Its lines are to be in L2: one item asks for them. */
void render_ask_for_box(Render *r, const Box *b, int depth)
{
    const Tile *t = r->l.tile;
    for (int64_t i = 0; i < b->count; i++) {
        if (i)
            render_indent(r, depth);
        sb_printf(r->sb, "if (igrt_is_loader(%d)) igrt_ask_for_box_%d(&m%d",
                  tile_loads_itself(t) ? 0 : t->items, b->rank, b->arg);
        box_corner(r, b, i);
        put(r, ");\n");
    }
}

/* As many boxes as the place has runs, one after the other. */
void render_box(Render *r, const Box *b, Node *store, int depth)
{
    const Tile *t = r->l.tile;
    for (int64_t i = 0; i < b->count; i++) {
        if (i)
            render_indent(r, depth);
        sb_printf(r->sb, "igrt_%s_%d(a%d + ", b->window ? "window" : "box", b->rank, b->place);
        render_place_of_block(r, b->place);
        render_expr(r, idx_add(r->k->c, store->src[3], idx(r->k->c, i * (b->elements / b->count))));
        sb_printf(r->sb, ", &m%d, ", b->arg);
        token(r, "filled_token", b->once ? NULL : t->ahead, false);
        put(r, ")");
        box_corner(r, b, i);
        for (int j = 1; b->window && j + 1 < b->rank; j++) {
            put(r, ", ");
            render_expr(r, b->tap[j]);
        }
        put(r, ");\n");
    }
}
