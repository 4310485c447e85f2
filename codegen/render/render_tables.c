/* render_tables.c - bytes that a table makes of bytes, side by side, are a function's: without
 * lanes, for C.
 *
 *     for (int i2 = 0; i2 < 128; i2++) {
 *         for (int i0 = 0; i0 < 16; i0++) {
 *             a0[i1*2064 + i2*16 + i0] = a1[(int)(a2[i1*2048 + i2*16 + i0])];      ->
 *         }
 *     }
 *
 *     igrt_table_8(a0 + (i1*2064), a2 + (i1*2048), a1, 0, 2048);
 *
 * Of loops that threads have parts of, too: from begin*2048 to end*2048. Compilers load, and store,
 * byte by byte there; vectors of bytes take 2 to 12 times less. */
#include "render.h"

enum { TABLE = 256, MOST_LOOPS = 8 };

/* A byte that is read from a table: where. */
typedef struct {
    Node *table, *byte; /* the loads */
    int flip;           /* 128: of a byte with a sign */
} TableLoad;

static bool is_byte(ingot_dtype d)
{
    return d == INGOT_I8 || d == INGOT_U8;
}

static bool is_open_load(const Node *n)
{
    return n->op == OP_LOAD && n->nsrc == 3 && node_is_const_i(n->src[1], 1);
}

/* table[x], x of u8, or table[x + 128] of i8: the whole table. */
static bool is_table_load(const Render *r, Node *n, TableLoad *found)
{
    int64_t behind = 0, add, size;
    if (!is_open_load(n) || !is_byte((ingot_dtype)n->dtype))
        return false;
    const KernelArg *a = &r->k->args[n->src[0]->arg.i];
    if (a->rank != 1 || !idx_value(a->dims[0], &size) || size != TABLE || a->layout.n)
        return false;
    Node *at = n->src[2];
    while (at->op == OP_CAST || (at->op == OP_ADD && idx_value(at->src[1], &add))) {
        behind += at->op == OP_ADD ? add : 0;
        at = at->src[0];
    }
    if (!is_open_load(at) || !is_byte((ingot_dtype)at->dtype) ||
        behind != (at->dtype == INGOT_I8 ? TABLE / 2 : 0))
        return false;
    *found = (TableLoad){.table = n, .byte = at, .flip = (int)behind};
    return true;
}

/* The store of a byte from a table, or of one that is widened; NULL: it is something else. */
static Node *table_store(const Render *r, const Stmt *s, TableLoad *found)
{
    Node *n = s->node;
    if (s->kind != STMT_STORE || s->store != STORE_ONE || n->nsrc != 4 ||
        !node_is_const_i(n->src[1], 1))
        return NULL;
    Node *value = n->src[2];
    const bool wide = value->op == OP_CAST && value->dtype == INGOT_I16;
    if (!is_table_load(r, wide ? value->src[0] : value, found))
        return NULL;
    const ingot_dtype stored = r->k->args[n->src[0]->arg.i].dtype;
    return wide ? (stored == INGOT_I16 ? n : NULL)
                : (stored == (ingot_dtype)value->dtype ? n : NULL);
}

/* Loops of one statement, with which both addresses move on without gaps: how many elements; 0:
 * they do not. first: both addresses of the first one. */
static int64_t run_of_loops(Render *r, Node *const *range, int nrange, Node *store, Node *byte,
                            Node *first[2])
{
    Context *c = r->k->c;
    int64_t n = 1, extent, stride;
    Node *zero = idx(c, 0);
    first[0] = store->src[3];
    first[1] = byte->src[2];
    for (int i = nrange; i-- > 0;) {
        if (!idx_value(range[i]->src[0], &extent))
            return 0;
        for (int j = 0; j < 2; j++) {
            if (!range_stride(c, first[j], range[i], &stride) || (stride != n && extent > 1))
                return 0;
            first[j] = substitute(c, first[j], 1, &range[i], &zero);
        }
        n *= extent;
    }
    return n;
}

/* Ranges of loops, one in the other, from the outermost: those that parts have as one loop, and the
 * statements'. 0: there are none, or other ones; nstmt: how many statements begin them. */
static int ranges_of(const Render *r, const Stmt *s, int left, Node **range, int *nstmt)
{
    const Tile *t = r->l.tile;
    int n = 0, at = 0;
    if (s->kind == STMT_PARTS) {
        if (!t->fused || t->uncut || r->each_part || t->fused > MOST_LOOPS)
            return 0;
        while (n < t->fused) {
            range[n] = t->axis[n].range;
            n++;
        }
        at = 1;
    }
    for (; at < left && n < MOST_LOOPS && s[at].kind == STMT_LOOP; at++) {
        if (s[at].from || s[at].upto || s[at].zero)
            return 0;
        range[n++] = s[at].node;
    }
    *nstmt = at;
    return n;
}

/* The name of a place, which both addresses are if bytes are made where they lie. */
static bool names_place(const Stmt *s)
{
    return s->kind == STMT_LET && s->node->dtype == INGOT_INDEX && s->node->op != OP_LOAD &&
           s->node->op != OP_CAST;
}

/* + begin*320, where parts have so many elements each; up to where the last one ends. */
static void part_offset(Render *r, const char *part, int64_t n)
{
    const int64_t parts = r->l.tile->parts, each = n / parts;
    if (n % parts)
        sb_printf(r->sb, "%s*%lld/%lld*%lld", part, (long long)r->l.fused->hi, (long long)parts,
                  (long long)(n / r->l.fused->hi));
    else
        sb_printf(r->sb, "%s*%lld", part, (long long)each);
}

static void address(Render *r, Node *access, Node *first, bool parts, int64_t n)
{
    sb_printf(r->sb, "a%lld + ", (long long)access->src[0]->arg.i);
    if (!parts || !idx_is(first, 0))
        render_expr(r, first);
    if (parts) {
        put(r, idx_is(first, 0) ? "" : " + ");
        part_offset(r, "begin", n);
    }
    put(r, ", ");
}

int render_table_loops(Render *r, const Stmt *s, int left)
{
    TableLoad t;
    Node *first[2], *range[MOST_LOOPS];
    int nstmt = 0;
    const bool parts = s->kind == STMT_PARTS;
    if (!r->t->machine.tables || r->l.tile->lane || (s->kind != STMT_LOOP && !parts))
        return 0;
    const int nrange = ranges_of(r, s, left, range, &nstmt),
              at = nstmt + (nrange && nstmt < left && names_place(&s[nstmt]));
    Node *store = nrange && at + nstmt < left ? table_store(r, &s[at], &t) : NULL;
    for (int i = 0; i < nstmt && store; i++)
        store = s[at + 1 + i].kind == STMT_END ? store : NULL;
    const int64_t n = store ? run_of_loops(r, range, nrange, store, t.byte, first) : 0;
    if (n < 2 || n > INT32_MAX)
        return 0;
    const bool wide = r->k->args[store->src[0]->arg.i].dtype == INGOT_I16;
    r->needs |= NEED_TABLE;
    render_indent(r, s->depth);
    sb_printf(r->sb, "igrt_table_%s%s(", wide ? dtype_info[t.table->dtype].name : "8",
              wide ? "_i16" : "");
    address(r, store, first[0], parts, n);
    address(r, t.byte, first[1], parts, n);
    sb_printf(r->sb, "a%lld, %d, ", (long long)t.table->src[0]->arg.i, t.flip);
    if (parts) {
        put(r, "(int)(");
        part_offset(r, "end", n);
        put(r, " - ");
        part_offset(r, "begin", n);
        put(r, "));\n");
    } else {
        sb_printf(r->sb, "%lld);\n", (long long)n);
    }
    return at + 1 + nstmt;
}
