/* order_rows.c - rows in registers, of blocks whose operands lie in places: what is made of a block
 * in which order.
 *
 * What a mask leaves is asked once for all that is made of a block, where that is no whole one.
 *
 *     let v1 = .. s[0]                        let v1 = .. s[0]
 *     let m1 = whole ? v1 : mask ? v1 : 0     let v2 = .. s[1]
 *     let v2 = .. s[1]                   ->   let m1 = whole ? v1 : mask ? v1 : 0
 *     let m2 = whole ? v2 : mask ? v2 : 0     let m2 = whole ? v2 : mask ? v2 : 0
 *     let p = pack m1 m2                      let p = pack m1 m2
 *
 * Choices that follow each other are one branch, which all items of a warpgroup take or none
 * (render_masks()): a whole block, as most are, asks no mask element by element.
 *
 * What elements of a row are made of beside sums (rows_again.c: the greatest of each row that this
 * block is a column of) is loaded behind the products.  It would take registers beside all of their
 * sums: fewer groups had room on a processor, which others keep busy while one waits for loads. */
#include "passes.h"

/* Is it made of that value, which has a name? */
static bool reads(const Linear *l, const Node *n, const Node *value)
{
    for (uint32_t i = 0; n && i < n->nsrc; i++) {
        const Node *x = n->src[i];
        const bool named = x->id < l->nknown && l->named[x->id];
        if (x == value || (!named && x->dtype != INGOT_INDEX && reads(l, x, value)))
            return true;
    }
    return false;
}

/* The next choice that the same is asked for, if the one at `at` may stand before it; -1: none. */
static int next_choice(const Linear *l, int at, const Node *whole)
{
    const Stmt *own = &l->stmt[at];
    for (int i = at + 1; i < l->n; i++) {
        const Stmt *s = &l->stmt[i];
        if (s->kind != STMT_LET || s->depth != own->depth)
            return -1;
        if (tile_whole_block(l->tile, s->node) == whole)
            return i;
        if (reads(l, s->node, own->node))
            return -1;
    }
    return -1;
}

static bool masks_together(Linear *l)
{
    bool changed = false;
    for (int i = l->n; i-- > 0;) {
        const Stmt own = l->stmt[i];
        const Node *whole = own.kind == STMT_LET ? tile_whole_block(l->tile, own.node) : NULL;
        const int next = whole ? next_choice(l, i, whole) : -1;
        for (int j = i; j + 1 < next; j++) {
            l->stmt[j] = l->stmt[j + 1];
            changed = true;
        }
        if (next >= 0)
            l->stmt[next - 1] = own;
    }
    return changed;
}

/* A number of its own that a lane loads. */
static bool is_number(const Linear *l, const Stmt *s)
{
    return s->kind == STMT_LET && s->node->op == OP_LOAD && s->node->src[0]->op == OP_BUFFER &&
           s->node->dtype == INGOT_F32 && !l->fragment[s->node->id];
}

/* The statement behind the last products that a value may stand before, or `at`. */
static int behind_products(const Linear *l, int at)
{
    const Stmt *own = &l->stmt[at];
    int behind = at;
    for (int i = at + 1; i < l->n; i++) {
        const Stmt *s = &l->stmt[i];
        const bool passes = s->kind == STMT_LET || s->kind == STMT_ACC ||
                            (s->kind == STMT_UPDATE && s->reduce == REDUCE_PRODUCTS) ||
                            s->kind == STMT_COMMIT || s->kind == STMT_DONE;
        if (!passes || s->depth != own->depth || reads(l, s->node, own->node))
            break;
        behind = s->kind == STMT_DONE ? i : behind;
    }
    return behind;
}

static bool loads_late(Linear *l)
{
    bool changed = false;
    for (int i = l->n; i-- > 0;) {
        const Stmt own = l->stmt[i];
        const int to = is_number(l, &own) ? behind_products(l, i) : i;
        for (int j = i; j < to; j++)
            l->stmt[j] = l->stmt[j + 1];
        l->stmt[to] = own;
        changed |= to > i;
    }
    return changed;
}

bool order_rows(Linear *l, const Kernel *k)
{
    (void)k;
    if (!tile_rows_in_place(l->tile))
        return false;
    const bool late = loads_late(l);
    return masks_together(l) || late;
}
