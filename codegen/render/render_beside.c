/* render_beside.c - what an item of a matrix unit has beside each other is stored together, and
 * what is added to it, a residual for one, is loaded together.
 *
 * An item has pairs of neighbouring sums: columns 2 q and 2 q + 1 of blocks of eight, where q is
 * its number among the four that share a row.  Two neighbours are one access.  Of f16 and bf16 that
 * are four bytes; where the item has four blocks of a row side by side, the four items turn their
 * pairs, as a matrix of 4 x 4 is transposed, and each accesses the eight elements of one block:
 *
 *              block 0  1  2  3                    block 0  1  2  3
 *     item 0         a  e  i  m           item 0         a  b  c  d  <- columns 0..7 of its block
 *     item 1         b  f  j  n    <->    item 1         e  f  g  h
 *
 * Loads go some stores ahead: a result may lie where the operand did, and then no compiler takes a
 * load before a store that stands before it; each line would wait for memory once the line before
 * is done. */
#include "language_c.h"
#include "render.h"

enum { ROWS_OF_STORES = 16, ROW = 8, PAIR = 2, MOST_LOADS = 8, MOST_LOOKS = 1000 };

/* Neighbours that an item of a matrix unit has beside each other are stored together. */
bool render_two_stores(Render *r, const Stmt *s, int left)
{
    Context *c = r->k->c;
    if (left < 2 || !r->l.tile->tc || !r->l.tile->tc->lanes || s[0].kind != STMT_STORE ||
        s[1].kind != STMT_STORE)
        return false;
    Node *a = s[0].node, *b = s[1].node;
    if (!are_neighbours(c, a, b))
        return false;
    render_indent(r, s->depth);
    if (!node_is_const_i(a->src[1], 1))
        render_then(r, a->src[1], s->depth);
    sb_printf(r->sb, a->dtype == INGOT_I32 ? "igrt_two_i%d(a%lld + " : "igrt_two_%d(a%lld + ",
              8 * dtype_info[a->dtype].bytes, (long long)a->src[0]->arg.i);
    render_expr(r, a->src[3]);
    put(r, ", ");
    render_stored_value(r, a);
    put(r, ", ");
    render_stored_value(r, b);
    put(r, ");\n");
    return true;
}

/* The number of the item in its warpgroup. */
static Node *lane_of(const Render *r)
{
    const Tile *t = r->l.tile;
    for (int i = t->naxis; i-- > 0;)
        if (t->axis[i].bound == BOUND_LANE && t->axis[i].range->hi + 1 == t->tc->lanes)
            return t->axis[i].range;
    return NULL;
}

/* Which of a row's eight elements the i-th of both rows is, and of which row. */
static int row_part(int i)
{
    return i / 4 * 2 + i % 2;
}

static int row_of(int i)
{
    return i / 2 % 2;
}

/* Whether elements at these coordinates are, four pairs eight columns apart, two rows of sums (0,
 * 1, 4, 5, 8 .. and 2, 3, 6, 7 ..), each as the item has its columns. */
static bool are_rows(const Render *r, Node *const at[ROWS_OF_STORES])
{
    Context *c = r->k->c;
    Node *lane = lane_of(r), *quad = r->l.tile->quad;
    if (!lane && !quad)
        return false;
    Node *own = idx_mul(c, quad ? quad : idx_mod(c, lane, idx(c, 4)), idx(c, 2));
    for (int i = 0; i < ROWS_OF_STORES; i++) {
        Node *first = i < 4 ? at[i / 2 * 2] : at[2 * row_of(i)];
        if (!idx_is(idx_sub(c, at[i], first), i / 4 * 8 + i % 2))
            return false;
    }
    for (int row = 0; row < 2; row++)
        if (!idx_is(idx_mod(c, idx_sub(c, at[2 * row], own), idx(c, 8)), 0))
            return false;
    return true;
}

static bool rows_of_sixteen(Render *r, const Stmt *const *s)
{
    Node *at[ROWS_OF_STORES];
    for (int i = 0; i < ROWS_OF_STORES; i++) {
        const Node *n = s[i]->node, *row = s[2 * row_of(i)]->node;
        if (n->nsrc != 4 || n->src[0] != s[0]->node->src[0] || n->src[1] != row->src[1] ||
            store_chunk(n) > 1 || s[i]->depth != s[0]->depth || !dtype_is_float(n->dtype) ||
            dtype_info[n->dtype].bytes != 2)
            return false;
        at[i] = n->src[3];
    }
    if (!are_rows(r, at))
        return false;
    for (int row = 0; row < 2; row++) {
        Node *n = s[2 * row]->node;
        render_indent(r, s[0]->depth);
        sb_printf(r->sb, "igrt_row_16(a%lld + ", (long long)n->src[0]->arg.i);
        render_expr(r, n->src[3]);
        put(r, ", ");
        render_bare(r, n->src[1]);
        for (int i = 2 * row; i < ROWS_OF_STORES; i += 4) {
            put(r, ", ");
            render_pair_of_16(r, s[i]->node, s[i + 1]->node);
        }
        put(r, ");\n");
    }
    return true;
}

/* Each item of a row has eight elements of one block: now those of its own columns. */
static void turn_rows(Render *r, const Stmt *upto)
{
    int left = 0;
    for (int i = 0; i < r->nrow; i++) {
        const Row row = r->row[i];
        if (row.store >= upto) {
            r->row[left++] = row;
            continue;
        }
        render_indent(r, row.store->depth);
        sb_printf(r->sb, "const igrt_row v%d = igrt_row_turned(v%d);\n", r->nvalue, row.number);
        for (int j = 0; j < ROW; j++)
            r->beside[row.load[j]->id].number = r->nvalue;
        r->nvalue++;
    }
    r->nrow = left;
}

/* Sixteen stores of a warpgroup's sums that are two rows of neighbours: what is named between them
 * comes before. How many statements they are, 0: they are none. */
int render_rows_of_stores(Render *r, const Stmt *s, int left)
{
    const Stmt *store[ROWS_OF_STORES];
    int n = 0, count = 0;
    if (s->kind != STMT_STORE || !r->l.tile->tc || !r->l.tile->tc->lanes)
        return 0;
    for (; n < ROWS_OF_STORES && count < left; count++) {
        if (s[count].kind == STMT_STORE)
            store[n++] = &s[count];
        else if (s[count].kind != STMT_LET)
            return 0;
    }
    if (n < ROWS_OF_STORES)
        return 0;
    StrBuf *sb = r->sb, rows = {0};
    const int nvalue = r->nvalue;
    r->sb = &rows; /* whether they are rows is known before anything is written */
    const bool are = rows_of_sixteen(r, store);
    r->sb = sb;
    r->nvalue = nvalue;
    sb_free(&rows);
    for (int i = 0; are && i < count; i++)
        if (s[i].kind == STMT_LET && !is_named(r, s[i].node))
            render_statement(r, &s[i]);
    if (are) /* they may begin amid those whose operands came together, and end amid the next */
        turn_rows(r, s + count);
    return are && rows_of_sixteen(r, store) ? count : 0;
}

/* ---- operands ------------------------------------------------------------------------------- */

bool render_is_beside(const Render *r, const Node *n)
{
    return n->op == OP_LOAD && n->id < r->l.nknown && r->beside[n->id].number >= 0;
}

/* v9.x of two f32; (uint16_t)(v9.v[1] >> 16) */
void render_beside(Render *r, const Node *n)
{
    const Beside b = r->beside[n->id];
    if (n->dtype == INGOT_F32)
        sb_printf(r->sb, "v%d.%c", b.number, "xyzw"[b.part]);
    else
        sb_printf(r->sb, b.part % 2 ? "(uint16_t)(v%d.v[%d] >> 16)" : "(uint16_t)v%d.v[%d]",
                  b.number, b.part / 2);
}

/* A load that lies as the results do, behind the gate of its store: all that a row has of it are
 * given, or none. Where the kernel writes too, it is the element that is stored, which no other
 * store changes. */
static bool is_operand(Render *r, Node *load, const Node *store)
{
    Context *c = r->k->c;
    int64_t apart;
    const int64_t arg = load->src[0]->arg.i;
    return load->src[0]->op == OP_BUFFER && load->nsrc == 3 && arg < r->narg &&
           (load->dtype == INGOT_F16 || load->dtype == INGOT_BF16 || load->dtype == INGOT_F32) &&
           load->src[1] == store->src[1] && !is_vector(r, load) && !r->l.fragment[load->id] &&
           idx_value(idx_sub(c, load->src[2], store->src[3]), &apart) &&
           (apart == 0 || !r->k->args[arg].written);
}

/* Does it get its name before? */
static bool is_let_before(const Render *r, const Node *n, const Stmt *from)
{
    if (n->id >= r->l.nknown || !r->l.named[n->id])
        return false;
    for (const Stmt *s = from; s < r->l.stmt + r->l.n; s++)
        if (s->kind == STMT_LET && s->node == n)
            return false;
    return true;
}

/* The operands of a stored value that have not come yet, each once, in order, of what gets no name
 * before `from`; more than MOST_LOADS: too many, or in too large an expression. */
static int find_operands(Render *r, Node *n, const Node *store, const Stmt *from, Node **load,
                         int count, int *left)
{
    if (count > MOST_LOADS || n->dtype == INGOT_INDEX || is_let_before(r, n, from))
        return count;
    if (--*left < 0)
        return MOST_LOADS + 1;
    if (n->op == OP_LOAD) {
        for (int i = 0; i < count; i++)
            if (load[i] == n)
                return count;
        if (!render_is_beside(r, n) && is_operand(r, n, store) && count++ < MOST_LOADS)
            load[count - 1] = n;
        return count;
    }
    if (n->op == OP_REDUCE || n->op == OP_PROJ)
        return count;
    for (uint32_t i = 0; i < n->nsrc; i++)
        count = find_operands(r, n->src[i], store, from, load, count, left);
    return count;
}

/* The N elements at the first one, once its store is to be made. */
static void load_beside(Render *r, Node *const *load, int n, const Stmt *s)
{
    const Node *first = load[0];
    const bool row = n == ROW;
    const char *form = row ? "row" : "pair", *type = row ? "igrt_row" : "igrt_pair";
    render_indent(r, s->depth);
    sb_printf(r->sb, "const %s v%d = igrt_%s_of_%d(a%lld + ",
              first->dtype == INGOT_F32 ? r->lang->c->pair : type, r->nvalue, form,
              8 * dtype_info[first->dtype].bytes, (long long)first->src[0]->arg.i);
    render_expr(r, first->src[2]);
    put(r, ", ");
    render_bare(r, first->src[1]);
    put(r, ");\n");
    for (int i = 0; i < n; i++)
        r->beside[load[i]->id] = (Beside){r->nvalue, i};
    if (row) {
        Row turned = {.number = r->nvalue, .store = s};
        memcpy((void *)turned.load, (void *)load, sizeof turned.load);
        vec_push(r->arena, r->row, r->nrow, turned);
    }
    r->nvalue++;
}

/* Of one buffer, behind one gate. */
static bool are_alike(const Node *a, const Node *b)
{
    return a->src[0] == b->src[0] && a->dtype == b->dtype && a->src[1] == b->src[1];
}

typedef struct {
    Node *load[MOST_LOADS];
    int n;
} Operands;

/* Operand p of sixteen stores, if it lies as rows do: of both rows, or once if it is the same in
 * both. */
static bool load_rows(Render *r, const Stmt *const *s, const Operands *of, int p)
{
    Node *at[ROWS_OF_STORES], *load[2][ROW];
    for (int i = 0; i < ROWS_OF_STORES; i++) {
        Node *n = of[i].load[p];
        if (!are_alike(n, of[2 * row_of(i)].load[p]) || n->src[0] != of[0].load[p]->src[0] ||
            dtype_info[n->dtype].bytes != 2)
            return false;
        at[i] = n->src[2];
        load[row_of(i)][row_part(i)] = n;
    }
    if (!are_rows(r, at))
        return false;
    for (int row = 0; row < 2; row++)
        if (!render_is_beside(r, load[row][0]))
            load_beside(r, load[row], ROW, s[2 * row]);
    return true;
}

/* Operand p of two stores that are made together. */
static void load_pair(Render *r, const Stmt *s, const Operands *of, int p)
{
    Context *c = r->k->c;
    Node *load[PAIR] = {of[0].load[p], of[1].load[p]};
    if (are_alike(load[0], load[1]) && !render_is_beside(r, load[0]) &&
        !render_is_beside(r, load[1]) && idx_is(idx_sub(c, load[1]->src[2], load[0]->src[2]), 1) &&
        idx_is(idx_mod(c, load[0]->src[2], idx(c, 2)), 0))
        load_beside(r, load, PAIR, s);
}

static bool is_coordinate(Render *r, Node *n)
{
    if ((n->dtype != INGOT_INDEX && n->dtype != INGOT_BOOL) || n->op == OP_LOAD)
        return false;
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (!is_named(r, n->src[i]) && !is_coordinate(r, n->src[i]))
            return false;
    return true;
}

/* Where elements lie, and whether, is known before. */
static void name_coordinates(Render *r, const Stmt *from, const Stmt *upto)
{
    for (const Stmt *s = from; s < upto; s++)
        if (s->kind == STMT_LET && !is_named(r, s->node) && is_coordinate(r, s->node))
            render_statement(r, s);
}

/* What some stores need, of statements `from` up to `upto`. */
static void load_operands(Render *r, const Stmt *const *s, int n, const Stmt *from,
                          const Stmt *upto)
{
    Operands of[ROWS_OF_STORES];
    bool alike = n == ROWS_OF_STORES, any = false;
    for (int i = 0; i < n; i++) {
        int left = MOST_LOOKS;
        of[i].n = find_operands(r, s[i]->node->src[2], s[i]->node, from, of[i].load, 0, &left);
        any |= of[i].n > 0;
        alike = alike && of[i].n == of[0].n && of[i].n <= MOST_LOADS &&
                s[i]->node->src[1] == s[2 * row_of(i)]->node->src[1];
    }
    if (!any)
        return;
    name_coordinates(r, from, upto);
    bool rows[MOST_LOADS] = {false};
    for (int p = 0; alike && p < of[0].n; p++)
        rows[p] = load_rows(r, s, of, p);
    for (int i = 0; i + 1 < n; i++) {
        if (of[i].n != of[i + 1].n || of[i].n > MOST_LOADS ||
            !are_neighbours(r->k->c, s[i]->node, s[i + 1]->node))
            continue;
        for (int p = 0; p < of[i].n; p++)
            if (!alike || !rows[p])
                load_pair(r, s[i], &of[i], p);
    }
}

/* Sixteen stores to results, or fewer if there are no more, and what is named for them: where they
 * end. */
static const Stmt *stores_from(const Render *r, const Stmt *s, const Stmt **store, int *n)
{
    const Stmt *const end = r->l.stmt + r->l.n;
    const int depth = s < end ? s->depth : 0;
    for (*n = 0; s < end && *n < ROWS_OF_STORES && s->depth == depth; s++) {
        if (s->kind == STMT_STORE && s->node->src[0]->arg.i < r->narg && s->node->nsrc == 4)
            store[(*n)++] = s;
        else if (s->kind != STMT_LET)
            break;
    }
    return s;
}

/* Before a statement: loads what it and the stores of the next AHEAD bytes need. */
void render_operands_ahead(Render *r, const Stmt *s)
{
    enum { AHEAD = 96 };
    const Stmt *store[ROWS_OF_STORES], *const end = r->l.stmt + r->l.n;
    int n;
    for (uint32_t i = 0; s->kind == STMT_END && r->loaded && i < r->l.nknown; i++)
        r->beside[i].number = -1; /* names end with their loop */
    if (s < r->stored || (s->kind != STMT_STORE && s->kind != STMT_LET) ||
        (s->kind == STMT_LET && s->node->dtype == INGOT_INDEX))
        return;
    const Stmt *at = stores_from(r, s, store, &n), *const first = at;
    if (!n)
        return;
    const int bytes = dtype_info[store[0]->node->dtype].bytes;
    at = s;
    for (int ahead = 0; ahead <= AHEAD && at < end; ahead += n * bytes) {
        const Stmt *from = at;
        at = stores_from(r, from, store, &n);
        if (!n)
            break;
        if (from >= r->loaded) {
            load_operands(r, store, n, from, at);
            r->loaded = at;
        }
    }
    r->stored = first;
    turn_rows(r, first);
}
