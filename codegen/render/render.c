/* render.c - the one renderer: statements to text, for every language.  What differs between
 * languages is in Language: words, patterns, and functions for what takes more than these. */
#include <string.h>

#include "render.h"

void render_indent(Render *r, int depth)
{
    for (int i = -r->each_part; i <= depth; i++)
        put(r, "    ");
}

void render_then(Render *r, Node *condition, int depth)
{
    put(r, "if (");
    render_expr(r, condition);
    put(r, r->lang->then);
    render_indent(r, depth + 1);
}

void render_end_then(Render *r, int depth)
{
    if (!r->lang->end_then)
        return;
    render_indent(r, depth);
    put(r, r->lang->end_then);
}

void render_igrt(Render *r, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    put(r, "igrt_");
    sb_vprintf(r->sb, format, ap);
    va_end(ap);
    r->needs |= NEED_NUM;
}

/* Of conditions, where these are no integers. */
static const char *logical(Op op)
{
    return op == OP_XOR ? "!=" : render_operator(op);
}

/* Of a block of weights: a sum of integers times scales, and a low times what it belongs to. */
static bool is_block_and_low(Render *r, const Node *x)
{
    bool sum = false;
    if (x->op != OP_ADD || x->dtype != INGOT_F32)
        return false;
    for (int i = 0; i < 2; i++) {
        Node *product = x->src[i];
        if (product->op != OP_MUL || is_named(r, product))
            return false;
        for (int j = 0; j < 2; j++)
            sum |= product->src[j]->op == OP_CAST && product->src[j]->src[0]->dtype == INGOT_I32;
    }
    return sum;
}

/* muladd(a, b, muladd(c, d, s)) */
static void add_products(Render *r, Node *x, const char *type, int s)
{
    for (int i = 0; i < 2; i++) {
        render_igrt(r, "muladd_%s(", type);
        render_operand(r, x->src[i]->src[0], true, true);
        put(r, ", ");
        render_operand(r, x->src[i]->src[1], true, true);
        put(r, ", ");
    }
    sb_printf(r->sb, "s%d));\n", s);
}

/* sN = sN + value; a product is added without being rounded if the machine can. */
static void update(Render *r, const Stmt *stmt)
{
    Node *n = stmt->node, *x = update_value(stmt);
    int s = r->number[n->id];
    if (render_is_digits(r, n)) {
        render_digits_add(r, n);
        return;
    }
    if (reduce_size(n) > 1) {
        Node *next[MAX_STATE];
        reduce_step(r->k->c, n, next);
        sb_printf(r->sb, "s%d = ", s);
        render_operand(r, next[reduce_part(n)], is_vector(r, n), true);
        put(r, ";\n");
        return;
    }
    Op op = monoid_op((ingot_reduce_op)n->arg.i);
    bool lanes = is_vector(r, n), is_float = dtype_is_float(n->dtype), narrow = is_narrow(n->dtype);
    char lane_name[16];
    const char *type = lanes ? render_lane_name(r, n->dtype, lane_name) : render_arith(n->dtype);
    sb_printf(r->sb, "s%d = ", s);
    if (is_dot(&r->l, x) && !is_named(r, x)) {
        char name[16];
        snprintf(name, sizeof name, "s%d", s);
        render_dot(r, x, name);
        put(r, ";\n");
        return;
    }
    if (op == OP_ADD && render_short_product(r, n, x, s))
        return;
    if (op == OP_ADD && is_float && x->op == OP_MUL && !is_named(r, x)) {
        render_igrt(r, "muladd_%s(", type);
        render_operand(r, x->src[0], lanes, lanes);
        put(r, ", ");
        render_operand(r, x->src[1], lanes, lanes);
        sb_printf(r->sb, ", s%d);\n", s);
    } else if (op == OP_ADD && lanes && !is_named(r, x) && is_block_and_low(r, x)) {
        add_products(r, x, type, s);
    } else if (is_float && (op == OP_ADD || op == OP_MUL) &&
               !(r->lang->f64_by_calls && n->dtype == INGOT_F64)) {
        sb_printf(r->sb, "s%d %s ", s, render_operator(op));
        render_operand(r, x, lanes, false);
        put(r, ";\n");
    } else if (op == OP_AND || op == OP_OR || op == OP_XOR) {
        const char *end = render_cast_begin(r, render_type(r, n->dtype), false);
        sb_printf(r->sb, "s%d %s ", s,
                  r->lang->logical && n->dtype == INGOT_BOOL ? logical(op) : render_operator(op));
        render_expr(r, x);
        sb_printf(r->sb, "%s;\n", end);
    } else {
        if (narrow)
            render_igrt(r, "wrap_%s(", dtype_info[n->dtype].name);
        render_igrt(r, "%s_%s(s%d, ", op_info[op].text, type, s);
        render_operand(r, x, lanes, lanes);
        put(r, narrow ? "));\n" : ");\n");
    }
}

/* "const int i0" */
void render_coordinate(Render *r, const char *pattern, Node *range)
{
    render_declare(r, pattern, render_type(r, INGOT_INDEX), range_name(r, range));
}

/* Type of a named value or accumulator. */
static void value_type(Render *r, Node *n)
{
    if (n->id < r->l.nknown && r->l.fragment[n->id])
        render_fragment_type(r, n);
    else if (render_is_digits(r, n))
        put(r, render_is_packed(r, n) ? "igrt_few" : "igrt_digits");
    else if (is_four(r, n))
        render_four_type(r, n);
    else if (is_vector(r, n) || (n->id < r->l.nknown && r->use[n->id].in_lanes))
        render_lane_type(r, n->dtype);
    else
        put(r, render_type(r, n->dtype));
}

/* "const float v3" */
static void declare_value(Render *r, const char *pattern, Node *n, char letter, int number)
{
    char name[16];
    snprintf(name, sizeof name, "%c%d", letter, number);
    Parts p = parts_begin(r);
    value_type(r, n);
    parts_next(r, &p);
    put(r, name);
    parts_end(r, &p, pattern);
}

void render_variable(Render *r, Node *n, int number)
{
    declare_value(r, r->lang->variable, n, 'v', number);
}

static void name_value(Render *r, Node *n, int depth)
{
    struct Seen s = {n->id, depth};
    r->number[n->id] = r->nvalue++;
    vec_push(r->arena, r->seen, r->nseen, s);
}

/* What stood in a loop ends with it: the address of a first lane may need a name that comes
 * later. */
static void end_names(Render *r, int depth)
{
    for (; r->nseen && r->seen[r->nseen - 1].depth > depth; r->nseen--)
        r->number[r->seen[r->nseen - 1].id] = -1;
}

/* Of a matrix unit; false: it is none. */
static bool fragment(Render *r, const Stmt *s)
{
    Node *n = s->node;
    if (!r->l.tile->tc || !n)
        return false;
    if (r->l.tile->tc->lanes) { /* they have names */
        bool sum = s->kind == STMT_UPDATE && s->reduce == REDUCE_PRODUCTS;
        if (sum)
            render_products(r, s);
        return sum;
    }
    if (s->kind == STMT_LET && r->l.fragment[n->id])
        render_fragment_load(r, n, s->tile[0]);
    else if (s->kind == STMT_ACC && s->reduce == REDUCE_PRODUCTS)
        render_fragment_zero(r, s->tile[0]);
    else if (s->kind == STMT_UPDATE && s->reduce == REDUCE_PRODUCTS)
        render_products(r, s);
    else if (s->kind == STMT_STORE && s->store == STORE_FRAGMENT)
        render_fragment_store(r, n, s->tile[0]);
    else
        return false;
    return true;
}

/* Both are declared alike. */
static bool same_start(Render *r, const Stmt *a, const Stmt *b)
{
    return b->kind == STMT_ACC && b->depth == a->depth && b->node->dtype == a->node->dtype &&
           !r->l.fragment[b->node->id] && is_vector(r, a->node) == is_vector(r, b->node) &&
           is_four(r, a->node) == is_four(r, b->node) &&
           render_is_digits(r, a->node) == render_is_digits(r, b->node) &&
           render_is_packed(r, a->node) == render_is_packed(r, b->node) &&
           reduce_identity(r->k->c, a->node) == reduce_identity(r->k->c, b->node);
}

/* Accumulators: float s0 = 0.0f, s1 = s0, s2 = s0; gives how many. */
static int accumulators(Render *r, const Stmt *s, const Stmt *end)
{
    enum { WIDTH = 96 };
    const Stmt *at = s;
    const int first = r->nvalue;
    name_value(r, s->node, s->depth);
    declare_value(r, r->lang->variable, s->node, 's', first);
    if (r->l.fragment[s->node->id]) {
        put(r, render_begins_products(r, s->node) ? ";\n" : " = {{0}};\n");
        return 1;
    }
    put(r, " = ");
    Node *begin = render_begin_of(r, s->node);
    if (render_is_digits(r, s->node))
        put(r, "{0.0f, 0.0f}");
    else
        render_operand(r, begin ? begin : reduce_identity(r->k->c, s->node), is_vector(r, s->node),
                       true);
    const bool zero = !begin;
    size_t line = r->sb->len;
    while (line && r->sb->data[line - 1] != '\n')
        line--;
    while (++at < end && r->lang->chains && same_start(r, s, at)) {
        name_value(r, at->node, at->depth);
        put(r, ",");
        if (r->sb->len - line > WIDTH) {
            put(r, "\n");
            line = r->sb->len;
            render_indent(r, at->depth + 1);
        } else {
            put(r, " ");
        }
        begin = render_begin_of(r, at->node);
        sb_printf(r->sb, "s%d = ", r->number[at->node->id]);
        if (begin || !zero)
            render_bare(r, begin ? begin : reduce_identity(r->k->c, at->node));
        else
            sb_printf(r->sb, "s%d", first);
    }
    put(r, ";\n");
    return (int)(at - s);
}

/* const igrt_f32x16 v3 = igrt_splat_f32x16(a1[v2]): its line waits for the first sum that takes it,
 * so that a C compiler has one number in all lanes at a time. */
static void let_in_lanes(Render *r, const Stmt *s)
{
    StrBuf line = {0}, *sb = r->sb;
    Node *n = s->node;
    name_value(r, n, s->depth);
    r->sb = &line;
    render_indent(r, s->depth);
    declare_value(r, r->lang->constant, n, 'v', r->number[n->id]);
    put(r, " = ");
    r->l.named[n->id] = false;
    render_splat(r, n);
    r->l.named[n->id] = true;
    put(r, ";\n");
    r->sb = sb;
    r->use[n->id].line = arena_strdup(r->arena, line.data);
    vec_push(r->arena, r->waiting, r->nwaiting, n);
    sb_free(&line);
}

/* What a store may overwrite, and what ends with a loop, is read before. */
static void end_waiting(Render *r)
{
    for (int i = 0; i < r->nwaiting; i++) {
        SplatUse *use = &r->use[r->waiting[i]->id];
        put(r, use->line ? use->line : "");
        use->line = NULL;
    }
    r->nwaiting = 0;
}

/* Lines that have waited for what was written from `at` on come in front of it. */
static void lines_before(Render *r, size_t at)
{
    if (!r->before.len)
        return;
    char *text = arena_strdup(r->arena, r->sb->data + at);
    r->sb->len = at;
    sb_write(r->sb, r->before.data, r->before.len);
    put(r, text);
    r->before.len = 0;
}

static void statement(Render *r, const Stmt *s)
{
    const size_t at = r->sb->len;
    r->depth = s->depth;
    if (s->kind == STMT_LET && r->use[s->node->id].in_lanes) {
        let_in_lanes(r, s);
        return;
    }
    if (s->kind == STMT_LET)
        r->use[s->node->id].let = true;
    render_statement(r, s);
    lines_before(r, at);
}

void render_with_lines(Render *r, const Stmt *s)
{
    statement(r, s);
}

void render_loop_end(Render *r, int depth)
{
    end_names(r, depth);
    render_end_packed(r, depth);
    render_end_bulk(r, depth);
    render_indent(r, depth);
    put(r, "}\n");
}

void render_statement(Render *r, const Stmt *s)
{
    Node *n = s->node;
    const char *order = s->kind == STMT_DEPEND ? r->lang->begin : r->lang->next;
    if ((s->kind == STMT_DEPEND || s->kind == STMT_NEXT) && !order)
        return;
    if (s->kind == STMT_DEPEND)
        render_hold(r, s);
    render_indent(r, s->depth);
    if (fragment(r, s) || render_token(r, s))
        return;
    switch (s->kind) {
    case STMT_LOOP: render_loop(r, s); break;
    case STMT_ITEM: break; /* they stand before all others */
    case STMT_PARTS: r->lang->parts(r, s->depth); break;
    case STMT_END:
        end_names(r, s->depth);
        render_end_ahead(r, s);
        render_end_packed(r, s->depth);
        render_end_bulk(r, s->depth);
        if (!n && r->l.tile->box)
            render_loader_end(r, s->depth);
        else
            put(r, "}\n");
        break;
    case STMT_LET:
        name_value(r, n, s->depth);
        if (is_rows(n)) {
            render_rows(r, n, s->depth);
            break;
        }
        r->use[n->id].depth = s->depth;
        declare_value(r, n->dtype == INGOT_STRING ? r->lang->variable : r->lang->constant, n, 'v',
                      r->number[n->id]); /* const char *v3 */
        put(r, " = ");
        r->l.named[n->id] = false; /* spell it here, name it from now on */
        render_int(r, n);
        r->l.named[n->id] = true;
        put(r, ";\n");
        break;
    case STMT_ACC: break; /* several at once */
    case STMT_UPDATE: update(r, s); break;
    case STMT_KEEP:
        if (!s->last) {
            render_fragment_type(r, n);
            sb_printf(r->sb, " p%d = {{0}};\n", r->kept[n->id] = r->nvalue++);
            break;
        }
        sb_printf(r->sb, "p%d = v%d;\n", r->kept[n->id], r->number[n->id]);
        break;
    case STMT_STORE: render_store(r, s); break;
    case STMT_COMMIT: put(r, "igrt_copy_commit();\n"); break;
    case STMT_WAIT: sb_printf(r->sb, "igrt_copy_wait(%d);\n", s->count); break;
    case STMT_PREFETCH:
        if (n->op == OP_STORE)
            render_ask_for_box(r, box_of(&r->l, n), s->depth);
        else if (r->lang->prefetch)
            r->lang->prefetch(r, n);
        break;
    case STMT_FILL: /* passes have taken it */
    case STMT_JOIN:
    case STMT_LOADER:
    case STMT_CLAIM:
    case STMT_FILLED:
    case STMT_RELEASE:
    case STMT_DONE:
    case STMT_SCALE:
    case STMT_OVERLAP: break; /* render_token() */
    case STMT_DEPEND:
        sb_printf(r->sb, "%s\n", order);
        render_masked_group(r, s);
        render_hold_rows(r, s);
        break;
    case STMT_NEXT: sb_printf(r->sb, "%s\n", order); break;
    case STMT_BARRIER:
        put(r, s->meets ? "igrt_cluster_meet();" : s->alone ? "__syncwarp();" : r->lang->barrier);
        put(r, "\n");
        break;
    }
}

/* Is an axis of the grid counted from its last block?  Never the groups of a cluster: what they are
 * is their rank, by which they find each other's places. */
static bool counts_down(Render *r, Node *range)
{
    const Tile *tile = r->l.tile;
    if (range == tile->cluster || range == tile->ranks)
        return false;
    return r->k->backward || render_last_first(r, range);
}

/* Compilers lose the bounds of what is counted down, and then look whether elements are there that
 * always are: __builtin_assume(i2_o >= 0 && i2_o <= 13); */
static void within(Render *r, Node *range, int depth)
{
    render_indent(r, depth);
    sb_printf(r->sb, "%s(", r->lang->assume);
    render_expr(r, range);
    put(r, " >= 0 && ");
    render_expr(r, range);
    put(r, " <= ");
    render_expr(r, idx_sub(r->k->c, range->src[0], idx(r->k->c, 1)));
    put(r, ");\n");
}

/* The axes with this binding out of the number in `name`, of which they take what they are from;
 * the outermost is the last. */
static void axes_of_number(Render *r, Bound bound, const char *name, int depth, bool narrow)
{
    for (const Stmt *s = r->l.stmt; s < r->l.stmt + r->l.n && s->kind == STMT_ITEM; s++) {
        if (tile_bound(r->l.tile, s->node) != bound)
            continue;
        render_indent(r, depth);
        render_coordinate(r, r->lang->constant, s->node);
        put(r, " = ");
        const char *end = narrow ? render_cast_begin(r, render_type(r, INGOT_INDEX), false) : "";
        if (bound == BOUND_GRID && counts_down(r, s->node)) {
            render_expr(r, idx_sub(r->k->c, s->node->src[0], idx(r->k->c, 1)));
            put(r, " - ");
        }
        sb_printf(r->sb, "%s %% ", name);
        render_expr(r, s->node->src[0]);
        sb_printf(r->sb, "%s;\n", end);
        render_indent(r, depth);
        sb_printf(r->sb, "%s /= ", name);
        render_expr(r, s->node->src[0]);
        put(r, ";\n");
        if (r->lang->assume && r->k->backward && bound != BOUND_NOT)
            within(r, s->node, depth);
    }
}

/* int gid = (int)get_global_id(0); */
/* number: may have that of the group, where it is one of a launch with others. */
static void number_of_item(Render *r, const char *name, const char *number, bool wide)
{
    render_declare(r, r->lang->variable, r->lang->type(INGOT_INDEX, wide), name);
    put(r, " = ");
    print_pattern(r->sb, number, (const char *const[]){r->group});
    put(r, ";\n");
}

/* GPU: one work item computes one element of the output; its number is taken apart into axes.
 * Groups are whole, so there may be items beyond the last. */
static void work_item(Render *r)
{
    int64_t items = 1;
    for (const Stmt *s = r->l.stmt; s < r->l.stmt + r->l.n && s->kind == STMT_ITEM; s++)
        items = sat_mul(items, s->node->src[0]->hi);
    bool wide = items > INT32_MAX - 4096; /* division of 64 bits is slow */
    render_indent(r, 0);
    number_of_item(r, "gid", (r->group ? r->lang->part_item : r->lang->work_item)[wide], wide);
    axes_of_number(r, BOUND_NOT, "gid", 0, wide && !r->l.wide);
    render_indent(r, 0);
    put(r, "if (");
    print_pattern(r->sb, r->lang->truth, (const char *const[]){"gid"});
    put(r, r->lang->then);
    render_indent(r, 1);
    put(r, "return;\n");
    render_end_then(r, 0);
}

void render_group_item(Render *r, const char *group, const char *item, int depth)
{
    render_indent(r, depth);
    number_of_item(r, "group", group, false);
    axes_of_number(r, BOUND_GRID, "group", depth, false);
    render_indent(r, depth);
    number_of_item(r, "item", item, false);
    axes_of_number(r, BOUND_LANE, "item", depth, false);
}

/* oc.o.o is oc_o_o in C. */
static void name_axes(Render *r, const TileAxis *axes, int n)
{
    for (int i = 0; i < n; i++) {
        char *name = arena_strdup(r->arena, axes[i].name);
        for (char *p = name; *p; p++)
            *p = *p == '.' ? '_' : *p;
        map_put(&r->names, (uint64_t)axes[i].range->id + 1, name);
    }
}

/* A variable for what the statement names: float v3 = */
void render_begin_value(Render *r, const Stmt *s)
{
    render_indent(r, s->depth);
    name_value(r, s->node, s->depth);
    declare_value(r, r->lang->variable, s->node, 'v', r->number[s->node->id]);
    put(r, " = ");
}

/* Two neighbouring fragments of columns are loaded at once: the second one comes before its
 * turn. */
static bool two_fragments(Render *r, const Stmt *s, int left)
{
    const Tc *u = r->l.tile->tc;
    if (!u || !u->lanes || s->kind != STMT_LET || !r->l.fragment[s->node->id])
        return false;
    if (is_named(r, s->node)) /* it has come */
        return true;
    for (int i = 1; i < left && s[i].kind == STMT_LET && s[i].depth == s->depth; i++) {
        if (is_named(r, s[i].node) || !render_are_beside(r, s->node, s[i].node))
            continue;
        const int first = r->nvalue;
        name_value(r, s->node, s->depth);
        name_value(r, s[i].node, s->depth);
        render_indent(r, s->depth);
        value_type(r, s->node);
        sb_printf(r->sb, " v%d, v%d;\n", first, first + 1);
        render_indent(r, s->depth);
        render_two_fragments(r, s->node, first);
        return true;
    }
    return false;
}

/* Bytes that one function widens, or makes of others by a table. */
static int bytes_together(Render *r, const Stmt *s, int left)
{
    const int rows = render_widened(r, s, left);
    return rows ? rows : render_table_loops(r, s, left);
}

static void statements(Render *r, const Tile *tile)
{
    for (uint32_t i = 0; i < r->l.nknown; i++)
        r->number[i] = r->kept[i] = r->beside[i].number = -1;
    r->nrow = r->nrun = r->nheld = r->bulk_waited = r->contracts = 0;
    r->packed = -1;
    r->near = NULL;
    r->loaded = r->stored = r->chained = NULL;
    map_free(&r->chains);
    r->seen = NULL;
    r->nseen = 0;
    render_overlap(r);
    if (tile->stay)
        render_stay(r);
    else if (tile->items && r->l.items)
        render_group_item(r, r->group ? r->group : r->lang->group, r->lang->item, 0);
    else if (r->l.items)
        work_item(r);
    if (tile->tc)
        render_tc_begin(r);
    render_find_begins(r);
    const bool runs = r->lang->runs && !tile->tc;
    if (runs || render_has_images(r))
        render_find_runs(r);
    render_find_digits(r);
    int rows, skip = 0, upto = -1; /* what has been written ahead */
    for (int i = 0; i < r->l.n; i++) {
        const Stmt *s = &r->l.stmt[i];
        const size_t at = r->sb->len;
        r->depth = s->depth;
        if (s->kind == STMT_ACC && render_is_ahead(r, s->node)) {
            name_value(r, s->node, s->depth);
            continue;
        }
        if (i >= skip && i <= upto)
            continue;
        if (s->kind != STMT_LET && s->kind != STMT_UPDATE && s->kind != STMT_PREFETCH)
            end_waiting(r);
        if (tile->tc && tile->tc->lanes)
            render_operands_ahead(r, s);
        if ((runs && (rows = render_runs_of_stores(r, s, r->l.n - i)) > 0) ||
            (rows = render_masks(r, s, r->l.n - i)) > 0 ||
            (rows = bytes_together(r, s, r->l.n - i)) > 0 ||
            (rows = render_four_stores(r, s, r->l.n - i)) > 0 ||
            (rows = render_four_sums(r, s, r->l.n - i)) > 0 ||
            (rows = render_sums_across(r, s, r->l.n - i)) > 0) {
            lines_before(r, at);
            i += rows - 1;
            continue;
        }
        if (runs || r->nrun)
            render_runs_before(r, s);
        render_chains(r, s);
        if (s->kind == STMT_ACC && !(s->reduce == REDUCE_PRODUCTS && !tile->tc->lanes)) {
            render_indent(r, s->depth);
            i += accumulators(r, s, r->l.stmt + r->l.n) - 1;
        } else if (s->kind == STMT_JOIN) {
            i += render_joins(r, s, r->l.n - i) - 1;
        } else if ((rows = render_rows_of_stores(r, s, r->l.n - i)) > 0) {
            i += rows - 1;
        } else if (s->kind != STMT_ITEM && render_two_stores(r, s, r->l.n - i)) {
            i++;
        } else if (two_fragments(r, s, r->l.n - i) ||
                   (s->kind == STMT_LET &&
                    (is_named(r, s->node) || render_in_digits(r, s->node)))) {
            continue; /* it has come, or comes as a word */
        } else if (s->kind == STMT_UPDATE && render_packs_too(r, s->node)) {
            continue;
        } else if (s->kind != STMT_ITEM) {
            int last = 0;
            const int ahead = render_packs_ahead(r, s, &last);
            skip = ahead ? i + ahead : skip;
            upto = ahead ? i + last : upto;
            statement(r, s);
        }
    }
    if (tile->tc)
        render_tc_end(r);
    render_stay_end(r);
}

/* What was counted: which numbers get names in all lanes, const igrt_f32x16 v3 =
 * igrt_splat_f32x16(a1[v2]); not those that a loop of their own has made. */
static void name_in_lanes(Render *r, const Tile *tile)
{
    for (uint32_t i = 0; i < r->l.nknown; i++) {
        SplatUse *use = &r->use[i];
        const bool always =
            use->let && use->splats > 1 && use->names == use->splats && !use->elsewhere;
        *use =
            (SplatUse){.in_lanes = always && !tile->tc && dtype_is_float(r->k->c->nodes[i]->dtype)};
    }
}

/* Constants that are written in all lanes again and again get names: const igrt_f32x16 v0 =
 * igrt_splat_f32x16(0.0f); */
static void name_constants(Render *r, const Tile *tile)
{
    enum { OFTEN = 4 };
    StrBuf *sb = r->sb, scratch = {0};
    const int first = r->nvalue;
    r->splats = (Map){0};
    r->splat = NULL;
    r->nsplat = 0;
    if (!tile->lane)
        return;
    r->sb = &scratch; /* to count them */
    statements(r, tile);
    sb_free(r->sb);
    r->sb = sb;
    r->nvalue = first;
    name_in_lanes(r, tile);
    for (int i = 0; i < r->nsplat; i++) {
        Splat *s = r->splat[i];
        if (s->uses < OFTEN)
            continue;
        render_indent(r, 0);
        Parts p = parts_begin(r);
        render_lane_type(r, s->n->dtype);
        parts_next(r, &p);
        sb_printf(r->sb, "v%d", r->nvalue);
        parts_end(r, &p, r->lang->constant);
        put(r, " = ");
        render_splat(r, s->n);
        put(r, ";\n");
        s->number = r->nvalue++;
    }
}

static void render_tile(Render *r, const Tile *tile)
{
    name_axes(r, tile->axis, tile->naxis);
    name_axes(r, tile->reduce, tile->nreduce);
    name_axes(r, tile->fill, tile->nfill);
    if (tile->tail.range)
        name_axes(r, &tile->tail, 1);
    r->needs |= tile->lane ? NEED_VEC : 0;
    r->number = NEWN(r->arena, int, r->l.nknown);
    r->kept = NEWN(r->arena, int, r->l.nknown);
    r->beside = NEWN(r->arena, Beside, r->l.nknown);
    r->use = NEWN(r->arena, SplatUse, r->l.nknown);
    name_constants(r, tile);
    statements(r, tile);
    put(r, tile->ranks ? "    igrt_cluster_meet();\n" : ""); /* others read its places till then */
    map_free(&r->splats);
}

/* Does the remainder read what the whole blocks do, in one outermost loop over the same? */
static bool goes_beside(const Tile *main, const Tile *rest)
{
    return main->fused && rest->fused && !main->uncut && !rest->uncut &&
           !strcmp(main->axis[0].name, rest->axis[0].name) &&
           main->axis[0].range->src[0] == rest->axis[0].range->src[0];
}

/* Loop nests one after the other.  A remainder that goes over the same blocks as the first comes
 * part by part, while what both read is in the cache: for (int64_t part = begin; part < end;
 * part++) { .. }. */
static void render_tiles(Render *r, const Kernel *k, const Lowered *lowered)
{
    const Tiles *tiles = &lowered->tiles;
    bool beside = false;
    for (int i = 1; i < tiles->n && kernel_parts(k); i++)
        beside |= goes_beside(&tiles->tile[0], &tiles->tile[i]);
    for (int turn = 0; turn < 2; turn++) {
        if (!turn && beside)
            put(r, r->lang->each_part);
        r->each_part = !turn && beside;
        for (int i = 0; i < tiles->n; i++) {
            bool first = !beside || !i || goes_beside(&tiles->tile[0], &tiles->tile[i]);
            if (first != !turn)
                continue;
            r->l = lowered->linear[i];
            render_tile(r, &tiles->tile[i]);
        }
        if (!turn && beside)
            put(r, r->lang->end_part);
    }
    r->each_part = false;
}

unsigned render_one(StrBuf *sb, const Target *t, const Kernel *k, const char *group,
                    const char *function_name)
{
    if (!t->language) {
        sb_printf(sb, "%s: %s has no language; the interpreter runs it\n", function_name, t->name);
        return 0;
    }
    Arena *a = arena_new();
    const Lowered *lowered = kernel_lowered(k, t->gpu);
    Render r = {.arena = a,
                .sb = sb,
                .t = t,
                .lang = t->language,
                .k = lowered->tiles.k,
                .of = k,
                .group = group,
                .narg = k->narg};
    StrBuf body = {0};
    r.sb = &body; /* what it needs the head says */
    if (r.lang->begin && !lowered->items)
        sb_printf(&body, "    %s\n", r.lang->begin);
    render_tiles(&r, k, lowered);
    put(&r, r.lang->end);
    r.sb = sb;
    r.lang->head(&r, k, &lowered->tiles, function_name);
    sb_write(sb, body.data, body.len);
    sb_free(&body);
    map_free(&r.names);
    map_free(&r.chains);
    sb_free(&r.before);
    arena_free(a);
    return r.needs;
}
