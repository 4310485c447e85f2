/* pair_stores.c - neighbours that an item of a matrix unit has beside each other are stored one
 * after the other, so that they can be stored together: what the second one is made of stands
 * before the first.
 *
 * Where all terms are one product of fragments there is no loop over them, and each block of
 * columns has its product and its stores.  The stores of four blocks, eight neighbours in two rows
 * each, come together behind their products:
 *
 *     product 0, 4 stores, product 1, 4 stores, ..   ->   products 0 to 3, 16 stores, .. */
#include "passes.h"

bool are_neighbours(Context *c, const Node *a, const Node *b)
{
    int bytes = dtype_info[a->dtype].bytes;
    return a->src[0] == b->src[0] && a->src[1] == b->src[1] && a->nsrc == 4 && b->nsrc == 4 &&
           store_chunk(a) == 1 && store_chunk(b) == 1 &&
           (dtype_is_float(a->dtype)
                ? bytes == 2 || bytes == 4
                : a->dtype == INGOT_I8 || a->dtype == INGOT_U8 || a->dtype == INGOT_I32) &&
           idx_is(idx_sub(c, b->src[3], a->src[3]), 1) &&
           idx_is(idx_mod(c, a->src[3], idx(c, 2)), 0);
}

/* Does it read the buffer? */
static bool reads(const Linear *l, const Node *n, const Node *buffer, bool top)
{
    if (!top && n->id < l->nknown && l->named[n->id])
        return false;
    if (n->op == OP_LOAD && (n->src[0] == buffer || n->src[0]->op == OP_AFTER))
        return true;
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (n->src[i]->dtype != INGOT_INDEX && reads(l, n->src[i], buffer, false))
            return true;
    return false;
}

/* Does it read the buffer itself, by what has no name yet? */
static bool loads_from(const Linear *l, const Node *n, const Node *buffer, bool top)
{
    if ((!top && n->id < l->nknown && l->named[n->id]) || n->dtype == INGOT_INDEX)
        return false;
    if (n->op == OP_LOAD && n->src[0] == buffer)
        return true;
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (loads_from(l, n->src[i], buffer, false))
            return true;
    return false;
}

/* Can a store come behind the statement? */
static bool may_pass(const Linear *l, const Stmt *store, const Stmt *s)
{
    const bool pure = s->kind == STMT_ACC ||
                      (s->kind == STMT_UPDATE && s->reduce == REDUCE_PRODUCTS) ||
                      s->kind == STMT_LET;
    return pure && s->depth == store->depth &&
           !(s->kind == STMT_LET && loads_from(l, s->node, store->node->src[0], true));
}

static bool is_result(const Stmt *s)
{
    return s->kind == STMT_STORE && s->node->op == OP_STORE && s->node->src[0]->op == OP_BUFFER;
}

/* Do products follow stores, with nothing between them but what these may pass? */
static bool stores_amid_products(const Linear *l)
{
    for (int i = 0; i < l->n; i++) {
        int j = i + 1;
        while (is_result(&l->stmt[i]) && j < l->n && may_pass(l, &l->stmt[i], &l->stmt[j]))
            if (l->stmt[j++].kind == STMT_UPDATE)
                return true;
    }
    return false;
}

static bool gather_stores(Linear *l)
{
    enum { TOGETHER = 16 };
    Stmt held[TOGETHER];
    int nheld = 0, to = 0;
    if (!stores_amid_products(l))
        return false;
    for (int i = 0; i < l->n; i++) {
        const Stmt s = l->stmt[i];
        const bool hold =
            is_result(&s) &&
            (!nheld || (s.depth == held[0].depth && s.node->src[0] == held[0].node->src[0]));
        if (nheld == TOGETHER || (nheld && !hold && !may_pass(l, &held[0], &s))) {
            for (int j = 0; j < nheld; j++)
                l->stmt[to++] = held[j];
            nheld = 0;
        }
        if (hold)
            held[nheld++] = s;
        else
            l->stmt[to++] = s;
    }
    for (int j = 0; j < nheld; j++)
        l->stmt[to++] = held[j];
    return true;
}

bool pair_stores(Linear *l, const Kernel *k)
{
    const Tc *unit = l->tile->tc;
    bool changed = unit && unit->lanes && gather_stores(l);
    for (int i = 0; i < l->n && unit && unit->lanes; i++) {
        const Stmt first = l->stmt[i];
        int j = i + 1;
        if (first.kind != STMT_STORE || first.node->op != OP_STORE)
            continue;
        while (j < l->n && l->stmt[j].kind == STMT_LET &&
               !reads(l, l->stmt[j].node, first.node->src[0], true))
            j++;
        if (j == i + 1 || j == l->n || l->stmt[j].kind != STMT_STORE ||
            l->stmt[j].node->op != OP_STORE || !are_neighbours(k->c, first.node, l->stmt[j].node))
            continue;
        for (int m = i; m < j - 1; m++)
            l->stmt[m] = l->stmt[m + 1];
        l->stmt[j - 1] = first;
        i = j;
        changed = true;
    }
    return changed;
}
