/* stores_verify.c - do the statements before linearize() hold?  They are a loop nest's stores,
 * whose expressions have flat addresses, go over the nest's own ranges, and have two values or rows
 * where there are lanes alone. */
#include "passes.h"

typedef struct {
    Arena *a;
    const Tile *tile;
    Context *c;
} Stores;

static bool is_one_of(const TileAxis *axis, int n, const Node *range)
{
    for (int i = 0; i < n; i++)
        if (axis[i].range == range)
            return true;
    return false;
}

static bool is_range_of(const Tile *t, const Node *n)
{
    const Node *const other[] = {t->tail.range,
                                 t->lane,
                                 t->four,
                                 t->quad,
                                 t->across,
                                 t->ahead,
                                 t->fragment[TC_ROWS],
                                 t->fragment[TC_COLUMNS],
                                 t->inner_columns,
                                 t->fragment[TC_TERMS]};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (other[i] == n)
            return true;
    return is_one_of(t->axis, t->naxis, n) || is_one_of(t->reduce, t->nreduce, n) ||
           is_one_of(t->fill, t->nfill, n);
}

static const char *verify_load(const Stores *q, const Node *n)
{
    if (n->nsrc < 3 || n->nsrc > 4 || n->src[2]->dtype != INGOT_INDEX)
        return "a load has no flat address";
    if (!is_rows(n))
        return NULL;
    if (!q->tile->lane)
        return "rows are loaded where there are no lanes";
    return n->src[3]->op == OP_CONST && n->src[3]->arg.i > 1 && n->src[3]->arg.i <= q->tile->lanes
               ? NULL
               : "more rows are loaded than there are lanes";
}

static const char *verify_store(const Stores *q, const Node *n)
{
    int64_t step;
    if (n->nsrc < 4 || n->nsrc > 3 + MOST_APART || n->src[3]->dtype != INGOT_INDEX)
        return "a store has no flat address";
    if (n->nsrc == 4 || store_chunk(n) > 1)
        return NULL;
    if (!q->tile->lane || !range_stride(q->c, n->src[3], q->tile->lane, &step) ||
        step != store_turns(n))
        return "values are stored in turn, and lanes do not lie as far apart";
    for (uint32_t i = 4; i < n->nsrc; i++)
        if (n->src[i]->dtype != n->src[2]->dtype)
            return "values of different types are stored in turn";
    return NULL;
}

static const char *verify_node(const Stores *q, const Node *n)
{
    const Node *rows = n->op == OP_PROJ ? n->src[0] : NULL;
    if (n->op == OP_LOAD)
        return verify_load(q, n);
    if (n->op == OP_STORE)
        return verify_store(q, n);
    if (n->op == OP_RANGE && !is_range_of(q->tile, n))
        return arena_printf(q->a, "range %lld is none of the loop nest", (long long)n->arg.i);
    if (rows && rows->op == OP_LOAD && (!is_rows(rows) || n->arg.i >= rows->src[3]->arg.i))
        return "a row is taken that was not loaded";
    return NULL;
}

const char *stores_verify(Arena *a, const Linear *l, const Kernel *k, int *at)
{
    const Stores q = {a, l->tile, k->c};
    const char *wrong = NULL;
    for (*at = 0; *at < l->n; ++*at) {
        Node *store = l->stmt[*at].node;
        if (l->stmt[*at].kind != STMT_STORE || store->op != OP_STORE)
            return "no store";
        int n;
        Node **order = graph_toposort(a, 1, &store, &n);
        for (int i = 0; i < n && !wrong; i++)
            wrong = verify_node(&q, order[i]);
        if (wrong)
            return wrong;
    }
    return NULL;
}
