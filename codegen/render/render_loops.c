/* render_loops.c - loops over terms that are straight-line code, and loops that an item runs
 * through alone.
 *
 * What is stored at places of data is stored in order: an item runs through all of them and stores
 * its own (schedule_store.c).  Such a loop waits for one place after the other, so it comes in
 * parts, whose loads are under way together; what is made for a store alone is made if there is
 * one.
 *
 *     for (int i0_16 = 0; i0_16 < 1024; i0_16 += 16) {
 *         int64_t h4[16];
 *         #pragma unroll
 *         for (int ahead = 0; ahead < 16; ahead++) {
 *             const int i0 = i0_16 + ahead;
 *             h4[ahead] = a1[i0];
 *         }
 *     #pragma unroll
 *     for (int ahead = 0; ahead < 16; ahead++) {
 *         const int i0 = i0_16 + ahead;
 *         const int64_t v5 = h4[ahead];
 *         ..
 *         if (!v6)
 *             continue;
 *
 * Where the items of a warp have the same places, each looks at one of 32, and all of them run
 * through those that are theirs:
 *
 *     for (int i0_256 = 0; i0_256 < 1024; i0_256 += 256) {
 *         uint32_t mine[8];
 *         #pragma unroll
 *         for (int part = 0; part < 8; part++) {
 *             const int i0 = i0_256 + part*32 + (int)threadIdx.x % 32;
 *             ..
 *             mine[part] = __ballot_sync(0xffffffffu, v6);
 *         }
 *     #pragma unroll
 *     for (int part = 0; part < 8; part++)
 *     for (uint32_t left = mine[part]; left; left &= left - 1) {
 *         const int i0 = i0_256 + part*32 + __ffs((int)left) - 1;
 *         .. */
#include "kernel.h"
#include "render.h"

enum { TOGETHER = 16, WARP = 32, PARTS = 8 };

/* Elements of an argument that no item writes, whose addresses are made of counters and sizes. */
static bool may_come_ahead(const Render *r, const Node *n, Node *range)
{
    const int64_t arg = n->src[0]->op == OP_BUFFER ? n->src[0]->arg.i : r->narg;
    if (n->nsrc != 3 || dtype_info[n->dtype].bytes < 4 || arg >= r->narg ||
        r->k->args[arg].written || n->arg.i || !node_is_const_i(n->src[1], 1))
        return false;
    Arena *a = arena_new();
    Node *at = n->src[2];
    int count;
    Node **order = graph_toposort(a, 1, &at, &count);
    bool plain = true, moves = false;
    for (int i = 0; i < count && plain; i++) {
        moves |= order[i] == range;
        plain = order[i]->op != OP_LOAD && order[i]->op != OP_REDUCE && order[i]->op != OP_SCAN;
    }
    arena_free(a);
    return plain && moves;
}

static void find_ahead(Render *r, Node *n, Node *range)
{
    if (n->op == OP_REDUCE || n->op == OP_PROJ)
        return;
    if (n->op == OP_LOAD) {
        if (!render_held_of(r, n) && may_come_ahead(r, n, range))
            render_hold_ahead(r, n);
        return;
    }
    for (uint32_t i = 0; i < n->nsrc && n->dtype != INGOT_INDEX; i++)
        find_ahead(r, n->src[i], range);
    if (n->dtype == INGOT_INDEX && n->op == OP_CAST)
        find_ahead(r, n->src[0], range);
}

static void part(Render *r, Node *range, int depth)
{
    const char *type = render_type(r, INGOT_INDEX);
    render_indent(r, depth);
    put(r, "#pragma unroll\n");
    render_indent(r, depth);
    sb_printf(r->sb, "for (int ahead = 0; ahead < %d; ahead++) {\n", TOGETHER);
    render_indent(r, depth + 1);
    sb_printf(r->sb, "const %s ", type);
    render_range(r, range);
    put(r, " = ");
    render_range(r, range);
    sb_printf(r->sb, "_%d + ahead;\n", TOGETHER);
}

/* The gate of all that is stored there, in loops or not; NULL: it has none, or several. */
static Node *gate_of_stores(const Stmt *from, const Stmt *end)
{
    Node *gate = NULL;
    for (const Stmt *t = from; t < end; t++) {
        if (t->kind != STMT_LET && t->kind != STMT_ACC && t->kind != STMT_UPDATE &&
            t->kind != STMT_LOOP && t->kind != STMT_END && t->kind != STMT_STORE)
            return NULL;
        if (t->kind != STMT_STORE)
            continue;
        if (t->node->op != OP_STORE || (gate && gate != t->node->src[1]))
            return NULL;
        gate = t->node->src[1];
    }
    return gate;
}

/* That of all stores up to the end of the loop that s is in, which has a name; NULL: there is no
 * such. */
static Node *gate_behind(Render *r, const Stmt *s)
{
    const Stmt *end = s;
    while (end < r->l.stmt + r->l.n && end->depth >= s->depth)
        end++;
    Node *gate = gate_of_stores(s, end);
    return gate && gate->op != OP_CONST && is_named(r, gate) ? gate : NULL;
}

/* The last statement in a loop that the gate of all that it stores waits for, which is one of its
 * first values or the loop itself; NULL: the gate waits for more, or there is none. */
static const Stmt *gate_in(const Stmt *s, const Stmt *end, Node **gate)
{
    *gate = gate_of_stores(s + 1, end);
    const Stmt *t = s + 1, *last = s;
    while (t < end && t->kind == STMT_LET && t->node != *gate) {
        last = *gate && depends_on(*gate, t->node) ? t : last;
        t++;
    }
    if (!*gate || t == end || t->kind == STMT_LET)
        return *gate && t < end ? t : NULL;
    while (t < end && (t->kind == STMT_STORE || t->kind == STMT_END))
        t++;
    return t == end ? last : NULL; /* it is where it is needed, and has no name */
}

/* Does it say which item of a warp stores (look_by_warp())?  That is no matter of a place. */
static bool chooses_item(const Render *r, const Node *gate)
{
    bool found = false;
    for (const Stmt *s = r->l.stmt; s < r->l.stmt + r->l.n && s->kind == STMT_ITEM; s++)
        found |= is_of_one(gate, s->node);
    return found;
}

static bool is_of_item(const Render *r, Node *gate, Node *item)
{
    if (!chooses_item(r, gate))
        return depends_on(gate, item);
    return gate->op == OP_AND &&
           (is_of_item(r, gate->src[0], item) || is_of_item(r, gate->src[1], item));
}

static void gate_of_warp(Render *r, Node *gate, const char **and)
{
    if (!chooses_item(r, gate)) {
        put(r, *and);
        render_expr(r, gate);
        *and = " && ";
    } else if (gate->op == OP_AND) {
        gate_of_warp(r, gate->src[0], and);
        gate_of_warp(r, gate->src[1], and);
    }
}

/* Is it the same for all items of a warp?  Neighbours differ in the first axes. */
static bool is_of_warps(const Render *r, Node *gate)
{
    int64_t items = 1, extent;
    for (const Stmt *s = r->l.stmt; s < r->l.stmt + r->l.n && s->kind == STMT_ITEM; s++) {
        if (is_of_item(r, gate, s->node))
            break;
        items = idx_value(s->node->src[0], &extent) ? sat_mul(items, extent) : 1;
    }
    return r->lang->ballot && r->t->machine.warp == WARP && items % WARP == 0;
}

/* const int i0 = i0_256 + part*32 + .. */
static void place_of_part(Render *r, Node *range, int parts, int depth, const char *which)
{
    render_indent(r, depth);
    sb_printf(r->sb, "const %s ", render_type(r, INGOT_INDEX));
    render_range(r, range);
    put(r, " = ");
    render_range(r, range);
    sb_printf(r->sb, "_%d + part*%d + %s;\n", parts * WARP, WARP, which);
}

static void each_part(Render *r, int parts, int depth, const char *then)
{
    render_indent(r, depth);
    put(r, "#pragma unroll\n");
    render_indent(r, depth);
    sb_printf(r->sb, "for (int part = 0; part < %d; part++)%s\n", parts, then);
}

static bool render_loop_of_warps(Render *r, const Stmt *s, int64_t extent)
{
    Node *gate;
    const Stmt *const upto = gate_in(s, s + stmt_end(s, 0), &gate);
    if (!upto || extent % WARP || !is_of_warps(r, gate))
        return false;
    int parts = PARTS;
    while (extent % (parts * WARP))
        parts /= 2;
    Node *range = s->node;
    const int size = parts * WARP;
    const char *and = "";
    sb_printf(r->sb, "for (%s ", render_type(r, INGOT_INDEX));
    render_range(r, range);
    sb_printf(r->sb, "_%d = 0; ", size);
    render_range(r, range);
    sb_printf(r->sb, "_%d < %lld; ", size, (long long)extent);
    render_range(r, range);
    sb_printf(r->sb, "_%d += %d) {\n", size, size);
    render_indent(r, s->depth + 1);
    sb_printf(r->sb, "uint32_t mine[%d];\n", parts);
    each_part(r, parts, s->depth + 1, " {");
    place_of_part(r, range, parts, s->depth + 2, r->lang->item_of_warp);
    for (const Stmt *t = s + 1; t <= upto; t++)
        render_statement(r, t);
    render_indent(r, s->depth + 2);
    put(r, "mine[part] = ");
    put(r, r->lang->ballot);
    gate_of_warp(r, gate, &and);
    put(r, ");\n");
    render_loop_end(r, s->depth + 1);
    for (const Stmt *t = s + 1; t <= upto; t++)
        r->l.named[t->node->id] = false;
    each_part(r, parts, s->depth, "");
    render_indent(r, s->depth);
    put(r, "for (uint32_t left = mine[part]; left; left &= left - 1) {\n");
    place_of_part(r, range, parts, s->depth + 1, r->lang->lowest_left);
    r->ahead_of = range;
    return true;
}

bool render_loop_ahead(Render *r, const Stmt *s)
{
    int64_t extent;
    Node *range = s->node;
    if (!r->k->serial || !r->l.items || !r->lang->begin || !r->lang->unroll || s->from || s->upto)
        return false;
    Node *gate = s->depth ? gate_behind(r, s) : NULL;
    if (gate) {
        put(r, "if (!");
        render_expr(r, gate);
        put(r, ")\n");
        render_indent(r, s->depth + 1);
        put(r, "continue;\n");
        render_indent(r, s->depth);
        return false;
    }
    const Stmt *const end = s + stmt_end(s, 0);
    bool inner = false, rolled;
    for (const Stmt *t = s + 1; t < end; t++)
        inner |= t->kind == STMT_LOOP && !render_is_short(r, t->node, &rolled);
    if (inner || r->nheld || !idx_value(range->src[0], &extent) || extent % TOGETHER ||
        extent <= TOGETHER)
        return false;
    if (render_loop_of_warps(r, s, extent))
        return true;
    for (const Stmt *t = s + 1; t < end && t->kind == STMT_LET; t++)
        find_ahead(r, t->node, range);
    if (!r->nheld)
        return false;
    const char *type = render_type(r, INGOT_INDEX);
    sb_printf(r->sb, "for (%s ", type);
    render_range(r, range);
    sb_printf(r->sb, "_%d = 0; ", TOGETHER);
    render_range(r, range);
    sb_printf(r->sb, "_%d < %lld; ", TOGETHER, (long long)extent);
    render_range(r, range);
    sb_printf(r->sb, "_%d += %d) {\n", TOGETHER, TOGETHER);
    render_declare_ahead(r, TOGETHER, s->depth + 1);
    part(r, range, s->depth + 1);
    render_load_ahead(r, s->depth + 2);
    render_indent(r, s->depth + 1);
    put(r, "}\n");
    part(r, range, s->depth);
    r->ahead_of = range;
    return true;
}

void render_end_ahead(Render *r, const Stmt *s)
{
    if (!s->node || s->node != r->ahead_of)
        return;
    put(r, "}\n");
    render_indent(r, s->depth);
    r->ahead_of = NULL;
    r->nheld = 0;
}
