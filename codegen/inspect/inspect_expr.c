/* inspect_expr.c - a kernel for people: what it computes, the loops that its opts made of it, its
 * linear statements.
 *
 *     a0[i0, i1] = max(sum(r0, r1: a1[i0 + r0, i1 + r1] * a2[r0, r1]) + a3[i0], 0)
 *
 * What is large and used more than once is named first, since an expression is a graph. */
#include <math.h>
#include <string.h>

#include "inspect.h"
#include "lowered.h"

typedef struct {
    StrBuf *sb;
    const Kernel *k;
    Arena *a;
    Map name; /* node id + 1 -> text */
    int nname;
    bool flat; /* addresses are: what is behind them says more of an access */
} Printer;

static const char *name_of(const Printer *p, Node *n)
{
    return map_get(&p->name, (uint64_t)n->id + 1);
}

static void set_name(Printer *p, Node *n, const char *name)
{
    map_put(&p->name, (uint64_t)n->id + 1, (void *)name);
}

/* ---- expressions --------------------------------------------------------------------------- */

enum { WEAKEST, TEST, COMPARE, SUM, PRODUCT, PREFIX };
static const struct {
    const char *text;
    int binds;
} infix[OP_COUNT] = {
    [OP_ADD] = {" + ", SUM},     [OP_SUB] = {" - ", SUM},     [OP_MUL] = {" * ", PRODUCT},
    [OP_DIV] = {" / ", PRODUCT}, [OP_MOD] = {" % ", PRODUCT}, [OP_FLOORDIV] = {" / ", PRODUCT},
    [OP_LT] = {" < ", COMPARE},  [OP_LE] = {" <= ", COMPARE}, [OP_EQ] = {" == ", COMPARE},
    [OP_NE] = {" != ", COMPARE}, [OP_AND] = {" & ", TEST},    [OP_OR] = {" | ", TEST},
};

static void put_expr(Printer *p, Node *n, int around);

static void put_list(Printer *p, Node *const *src, int n)
{
    for (int i = 0; i < n; i++) {
        sb_puts(p->sb, i ? ", " : "");
        put_expr(p, src[i], WEAKEST);
    }
}

static bool is_yes(Node *gate)
{
    return node_is_const_i(gate, 1);
}

static void put_access(Printer *p, Node *buffer, Node *const *at, int n)
{
    sb_printf(p->sb, "a%lld[", (long long)buffer->arg.i);
    put_list(p, at, n);
    sb_puts(p->sb, "]");
}

static void put_reduce(Printer *p, Node *n)
{
    static const char *const words[] = {
#define MONOID(id, text, combine) text,
#define STATE(id, text, size) text,
#include "monoids.def"
    };
    const char *word = words[reduce_monoid(n)];
    uint32_t size = reduce_size(n);
    sb_puts(p->sb, n->op == OP_SCAN ? "running " : "");
    sb_puts(p->sb, !strcmp(word, "add") ? "sum" : !strcmp(word, "mul") ? "product" : word);
    sb_puts(p->sb, "(");
    put_list(p, n->src + size, (int)(n->nsrc - size));
    sb_puts(p->sb, ": ");
    put_list(p, n->src, (int)size);
    sb_puts(p->sb, ")");
    if (size > 1)
        sb_printf(p->sb, ".%d", reduce_part(n));
}

static void put_constant(Printer *p, Node *n)
{
    if (dtype_is_float(n->dtype))
        sb_printf(p->sb, "%.9g", node_float(n));
    else if (n->dtype == INGOT_BOOL)
        sb_puts(p->sb, n->arg.i ? "true" : "false");
    else
        sb_printf(p->sb, "%lld", (long long)n->arg.i);
}

static void put_where(Printer *p, Node *test, Node *yes, Node *no, int around)
{
    sb_puts(p->sb, around > WEAKEST ? "(" : "");
    put_expr(p, test, TEST);
    sb_puts(p->sb, " ? ");
    put_expr(p, yes, TEST);
    sb_puts(p->sb, " : ");
    if (no)
        put_expr(p, no, WEAKEST);
    else
        sb_puts(p->sb, "0");
    sb_puts(p->sb, around > WEAKEST ? ")" : "");
}

static void put_load(Printer *p, Node *n, int around)
{
    if (p->flat && is_rows(n))
        sb_printf(p->sb, "%lld rows of ", (long long)n->src[3]->arg.i);
    if (is_yes(n->src[1])) {
        put_access(p, n->src[0], n->src + 2, p->flat ? 1 : (int)n->nsrc - 2);
        return;
    }
    sb_puts(p->sb, around > WEAKEST ? "(" : "");
    put_expr(p, n->src[1], TEST);
    sb_puts(p->sb, " ? ");
    put_access(p, n->src[0], n->src + 2, p->flat ? 1 : (int)n->nsrc - 2);
    sb_puts(p->sb, around > WEAKEST ? " : 0)" : " : 0");
}

/* Without regard to the node's own name. */
static void put_whole(Printer *p, Node *n, int around)
{
    if (infix[n->op].text && n->nsrc == 2) {
        int binds = infix[n->op].binds;
        int64_t v;
        sb_puts(p->sb, binds < around ? "(" : "");
        put_expr(p, n->src[0], binds);
        if (n->op == OP_ADD && n->dtype == INGOT_INDEX && idx_value(n->src[1], &v) && v < 0 &&
            v > INT64_MIN) {
            sb_printf(p->sb, " - %lld", (long long)-v);
        } else {
            sb_puts(p->sb, infix[n->op].text);
            put_expr(p, n->src[1], binds + 1);
        }
        sb_puts(p->sb, binds < around ? ")" : "");
        return;
    }
    switch (n->op) {
    case OP_CONST: put_constant(p, n); return;
    case OP_VAR: sb_puts(p->sb, p->k->c->vars[n->arg.i].name); return;
    case OP_RANGE: sb_printf(p->sb, "range%lld", (long long)n->arg.i); return;
    case OP_LOAD: put_load(p, n, around); return;
    case OP_STAGE: {
        int own = (int)n->arg.i;
        sb_puts(p->sb, "staged(");
        put_list(p, n->src + 1, own);
        sb_puts(p->sb, ": ");
        put_expr(p, n->src[0], WEAKEST);
        sb_puts(p->sb, ")[");
        put_list(p, n->src + 1 + own, own);
        sb_puts(p->sb, "]");
        return;
    }
    case OP_PARAM:
        if (is_scalar_argument(n)) {
            sb_printf(p->sb, "c%lld", (long long)n->arg.i);
            return;
        }
        put_expr(p, reduce_sibling(p->k->c, n, reduce_part(n)), around);
        return;
    case OP_REDUCE:
    case OP_SCAN: put_reduce(p, n); return;
    case OP_WHERE: put_where(p, n->src[0], n->src[1], n->src[2], around); return;
    case OP_CAST:
        sb_puts(p->sb, n->dtype == INGOT_INDEX ? "int" : dtype_info[n->dtype].name);
        break;
    case OP_BITCAST: sb_printf(p->sb, "bits_%s", dtype_info[n->dtype].name); break;
    case OP_BUFFER: sb_printf(p->sb, "box of a%lld", (long long)n->arg.i); return;
    case OP_PROJ:
        sb_printf(p->sb, "%s %lld of ", n->src[0]->op == OP_LOAD ? "row" : "element",
                  (long long)n->arg.i);
        break;
    default: sb_puts(p->sb, op_info[n->op].text); break;
    }
    sb_puts(p->sb, "(");
    put_list(p, n->src, (int)n->nsrc);
    sb_puts(p->sb, ")");
}

static void put_expr(Printer *p, Node *n, int around)
{
    const char *name = name_of(p, n);
    if (name)
        sb_puts(p->sb, name);
    else
        put_whole(p, n, around);
}

static void put_store(Printer *p, Node *s, int coords)
{
    put_access(p, s->src[0], s->src + 3, coords);
    sb_puts(p->sb, " = ");
    put_expr(p, s->src[2], WEAKEST);
    for (int i = 1; p->flat && i < store_turns(s); i++) { /* of lanes, with those of the first */
        sb_puts(p->sb, ", ");
        put_expr(p, s->src[3 + i], WEAKEST);
    }
    if (!is_yes(s->src[1])) {
        sb_puts(p->sb, "  if ");
        put_expr(p, s->src[1], WEAKEST);
    }
}

/* ---- the kernel as it was scheduled ---------------------------------------------------------- */

static void name_axes(Printer *p)
{
    for (int i = 0; i < p->k->naxis; i++)
        set_name(p, p->k->axes[i].range, p->k->axes[i].name);
}

/* What is used more than once and is more than a few words. */
static void put_shared(Printer *p, int n, Node *const *order)
{
    enum { FEW = 4 };
    int *uses = NEWN(p->a, int, p->k->c->nnode + 1), *size = NEWN(p->a, int, p->k->c->nnode + 1);
    for (int i = 0; i < n; i++)
        for (uint32_t j = 0; j < order[i]->nsrc; j++)
            uses[order[i]->src[j]->id]++;
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        size[t->id] = 1;
        for (uint32_t j = 0; j < t->nsrc; j++)
            size[t->id] += name_of(p, t->src[j]) ? 1 : size[t->src[j]->id];
        if (uses[t->id] < 2 || size[t->id] <= FEW || op_info[t->op].cls == LEAF ||
            t->op == OP_STORE || t->op == OP_END)
            continue;
        sb_printf(p->sb, "v%d = ", ++p->nname);
        put_whole(p, t, WEAKEST);
        sb_puts(p->sb, "\n");
        set_name(p, t, arena_printf(p->a, "v%d", p->nname));
    }
}

void kernel_expression(StrBuf *sb, const Kernel *k)
{
    Printer p = {.sb = sb, .k = k, .a = arena_new()};
    int n;
    Node **order = graph_toposort(p.a, 1, &k->sink, &n);
    name_axes(&p);
    put_shared(&p, n, order);
    for (int i = 0; i < n; i++)
        if (order[i]->op == OP_STORE) {
            put_store(&p, order[i], (int)order[i]->nsrc - 3);
            sb_puts(sb, "\n");
        }
    map_free(&p.name);
    arena_free(p.a);
}

/* ---- its loops, after its opts --------------------------------------------------------------- */

static void tile_names(Printer *p, const Tile *t)
{
    for (int i = 0; i < t->naxis; i++)
        set_name(p, t->axis[i].range, t->axis[i].name);
    for (int i = 0; i < t->nreduce; i++)
        set_name(p, t->reduce[i].range, t->reduce[i].name);
    for (int i = 0; i < t->nfill; i++)
        set_name(p, t->fill[i].range, t->fill[i].name);
    if (t->tail.range)
        set_name(p, t->tail.range, t->tail.name);
    static const char *const fragment[TC_AXES] = {"row", "column", "term"};
    for (int i = 0; i < TC_AXES && t->tc; i++)
        if (t->fragment[i] && !name_of(p, t->fragment[i]))
            set_name(p, t->fragment[i], fragment[i]);
    if (t->inner)
        set_name(p, t->inner_columns, "column");
    if (t->lane)
        set_name(p, t->lane, "lane");
    if (t->four)
        set_name(p, t->four, "four");
    if (t->quad)
        set_name(p, t->quad, "quad");
}

static void put_loop(Printer *p, const TileAxis *x, int depth, const char *what)
{
    sb_printf(p->sb, "%*s%s %s < ", 2 * depth, "", what, x->name);
    put_expr(p, x->range->src[0], WEAKEST);
    sb_puts(p->sb, "\n");
}

static void put_nest(Printer *p, const Tile *t)
{
    int depth = 0;
    if (t->parts)
        sb_printf(p->sb, "threads: %d parts of the %s %s\n", t->parts, t->uncut ? "inner" : "first",
                  t->fused > 1 ? "loops, taken as one" : "loop");
    for (int i = 0; i < t->naxis; i++)
        put_loop(p, &t->axis[i], depth++, "for");
    for (int i = 0; i < t->nreduce; i++)
        put_loop(p, &t->reduce[i], depth++, "reduce");
    for (int i = 0; i < t->nfill; i++)
        put_loop(p, &t->fill[i], 1, "fill a place:");
    sb_printf(p->sb, "%*s%d %s", 2 * depth, "", t->nstore, t->nstore == 1 ? "store" : "stores");
    if (t->lanes > 1)
        sb_printf(p->sb, " of %d lanes", t->lanes);
    if (t->part)
        sb_printf(p->sb, ", the first %d of them", t->part);
    if (t->ntail)
        sb_printf(p->sb, "; the last %d for the end of a row", t->nstore - t->ntail);
    sb_puts(p->sb, "\n");
}

static void put_nests(StrBuf *sb, const Tiles *tiles)
{
    Printer p = {.sb = sb, .k = tiles->k, .a = arena_new()};
    for (int i = 0; i < tiles->n; i++) {
        sb_puts(sb, i ? "\n" : "");
        tile_names(&p, &tiles->tile[i]);
        put_nest(&p, &tiles->tile[i]);
    }
    map_free(&p.name);
    arena_free(p.a);
}

void kernel_nest(StrBuf *sb, const Kernel *k, bool gpu)
{
    put_nests(sb, &kernel_lowered(k, gpu)->tiles);
}

/* ---- its linear statements ------------------------------------------------------------------- */

static const char *new_name(Printer *p, char letter)
{
    return arena_printf(p->a, "%c%d", letter, p->nname++);
}

/* "loop r0 < 8", or where it begins elsewhere "loop ahead = r0 + 3 < min(r0 + 4, 8) if r1 - 7 ==
 * 0". */
static void put_loop_statement(Printer *p, const Stmt *s)
{
    sb_puts(p->sb, s->kind == STMT_ITEM ? "item " : s->kind == STMT_FILL ? "fill " : "loop ");
    put_expr(p, s->node, WEAKEST);
    if (s->from) {
        sb_puts(p->sb, " = ");
        put_expr(p, s->from, WEAKEST);
    }
    if (s->kind == STMT_FILL)
        return;
    sb_puts(p->sb, " < ");
    put_expr(p, s->upto ? s->upto : s->node->src[0], WEAKEST);
    if (s->zero) {
        sb_puts(p->sb, " if ");
        put_expr(p, s->zero, WEAKEST);
        sb_puts(p->sb, " == 0");
    }
}

static void put_update(Printer *p, const Stmt *s)
{
    Node *n = s->node;
    const bool products = s->reduce == REDUCE_PRODUCTS;
    if (reduce_size(n) > 1 && !products) {
        Node *next[MAX_STATE];
        reduce_step(p->k->c, n, next);
        put_expr(p, n, WEAKEST);
        sb_puts(p->sb, " = ");
        put_expr(p, next[reduce_part(n)], WEAKEST);
        return;
    }
    Op op = products ? OP_ADD : monoid_op((ingot_reduce_op)reduce_monoid(n));
    bool sign = infix[op].text != NULL;
    put_expr(p, n, WEAKEST);
    sb_printf(p->sb, " = %s%s", sign ? "" : op_info[op].text, sign ? "" : "(");
    put_expr(p, n, WEAKEST);
    sb_puts(p->sb, sign ? infix[op].text : ", ");
    put_expr(p, update_value(s), sign ? infix[op].binds + 1 : WEAKEST);
    sb_puts(p->sb, sign ? "" : ")");
    sb_puts(p->sb, s->kept ? "  of what was kept" : "");
}

/* Of places that boxes fill, and of what reads them. */
static void put_token(Printer *p, const Stmt *s)
{
    Node *n = s->node;
    switch (s->kind) {
    case STMT_CLAIM: sb_puts(p->sb, n ? "claim " : "claim once"); break;
    case STMT_FILLED: sb_puts(p->sb, n ? "filled " : "filled once"); break;
    case STMT_RELEASE: sb_puts(p->sb, n ? "release " : "release all"); break;
    case STMT_DONE: sb_puts(p->sb, "products done"); return;
    default: sb_puts(p->sb, "scale "); break;
    }
    if (n)
        put_expr(p, n, WEAKEST);
    for (uint32_t i = 1; s->kind == STMT_SCALE && i < reduce_size(n); i++) {
        sb_puts(p->sb, i > 1 ? ", " : ": lines by ");
        put_expr(p, n->src[i], WEAKEST);
    }
}

static void put_statement(Printer *p, const Linear *l, const Stmt *s)
{
    Node *n = s->node;
    sb_printf(p->sb, "%*s", 2 * s->depth, "");
    switch (s->kind) {
    case STMT_ITEM:
    case STMT_LOOP:
    case STMT_FILL: put_loop_statement(p, s); break;
    case STMT_PARTS: sb_printf(p->sb, "loop over parts begin..end of %d", l->tile->parts); break;
    case STMT_END: sb_puts(p->sb, "end"); break;
    case STMT_LET: {
        const char *name = new_name(p, 'v');
        sb_printf(p->sb, "%s = ", name);
        put_whole(p, n, WEAKEST);
        set_name(p, n, name);
        break;
    }
    case STMT_ACC: {
        const char *name = new_name(p, 's');
        sb_printf(p->sb, "%s = ", name);
        put_expr(p, reduce_identity(p->k->c, n), WEAKEST);
        set_name(p, n, name);
        break;
    }
    case STMT_UPDATE: put_update(p, s); break;
    case STMT_KEEP:
        sb_puts(p->sb, s->last ? "keep " : "keep zeros for ");
        put_expr(p, n, WEAKEST);
        break;
    case STMT_STORE:
        sb_puts(p->sb, s->async ? "async " : "");
        put_store(p, n, 1);
        break;
    case STMT_PREFETCH:
        sb_puts(p->sb, "prefetch ");
        put_expr(p, n, WEAKEST);
        break;
    case STMT_COMMIT: sb_puts(p->sb, "commit"); break;
    case STMT_WAIT: sb_printf(p->sb, "wait %d", s->count); break;
    case STMT_BARRIER: sb_puts(p->sb, "barrier"); break;
    case STMT_DEPEND: sb_puts(p->sb, "wait for what was enqueued before"); break;
    case STMT_NEXT: sb_puts(p->sb, "let the next kernel begin"); break;
    case STMT_LOADER: sb_puts(p->sb, "loader"); break;
    case STMT_JOIN:
        sb_puts(p->sb, "join ");
        put_expr(p, n, WEAKEST);
        break;
    case STMT_CLAIM:
    case STMT_FILLED:
    case STMT_DONE:
    case STMT_SCALE:
    case STMT_RELEASE: put_token(p, s); break;
    case STMT_OVERLAP: break;
    }
    sb_puts(p->sb, "\n");
}

/* What fills the places that stores read, before these have statements of their own. */
static void put_fills(Printer *p, int nstore, Node *const *store)
{
    int n;
    Node **order = graph_toposort(p->a, nstore, store, &n);
    for (int i = 0; i < n; i++)
        for (int j = 0; order[i]->op == OP_END && j < end_stores(order[i]); j++) {
            Node *s = order[i]->src[j];
            sb_puts(p->sb, "fill ");
            put_store(p, s, p->flat ? 1 : (int)s->nsrc - 3);
            sb_puts(p->sb, "\n");
        }
}

static void put_statements(StrBuf *sb, const Lowered *l)
{
    Printer p = {.sb = sb, .k = l->tiles.k, .a = arena_new(), .flat = true};
    for (int i = 0; i < l->tiles.n; i++) {
        map_free(&p.name);
        p.name = (Map){0};
        p.nname = 0;
        tile_names(&p, &l->tiles.tile[i]);
        const Linear *s = &l->linear[i];
        Node **store = NEWN(p.a, Node *, s->n + 1);
        for (int j = 0; j < s->n; j++)
            store[j] = s->stmt[j].node;
        put_fills(&p, s->named ? 0 : s->n, store);
        for (int j = 0; j < s->n; j++)
            put_statement(&p, s, &s->stmt[j]);
    }
    map_free(&p.name);
    arena_free(p.a);
}

void kernel_linear(StrBuf *sb, const Kernel *k, bool gpu)
{
    put_statements(sb, kernel_lowered(k, gpu));
}

/* The stores of a loop nest that has no statements yet. */
static void put_stores(StrBuf *sb, const Tiles *tiles)
{
    Printer p = {.sb = sb, .k = tiles->k, .a = arena_new()};
    for (int i = 0; i < tiles->n; i++) {
        const Tile *t = &tiles->tile[i];
        tile_names(&p, t);
        put_fills(&p, t->nstore, t->store);
        for (int j = 0; j < t->nstore; j++) {
            put_store(&p, t->store[j], (int)t->store[j]->nsrc - 3);
            sb_puts(sb, "\n");
        }
    }
    map_free(&p.name);
    arena_free(p.a);
}

void kernel_after(StrBuf *sb, const Kernel *k, bool gpu, int pass)
{
    Lowered *l = lower_kernel(k, gpu, pass);
    sb_printf(sb, "%s after %s%s\n", k->name, lower_pass[pass].name,
              l->changed[pass] ? "" : ", which had nothing to do");
    if (pass < lower_pass_find("linearize"))
        put_nests(sb, &l->tiles);
    if (pass < lower_pass_find("flatten"))
        put_stores(sb, &l->tiles);
    else
        put_statements(sb, l);
    sb_puts(sb, "\n");
    lowered_free(l);
}
