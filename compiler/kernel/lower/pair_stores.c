/* pair_stores.c - neighbours that an item of a matrix unit has beside each other are stored one
 * after the other, so that they can be stored together: what the second one is made of stands
 * before the first. */
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

bool pair_stores(Linear *l, const Kernel *k)
{
    const Tc *unit = l->tile->tc;
    bool changed = false;
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
