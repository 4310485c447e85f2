/* keep_fragments.c - PREFETCH of a loop over terms, where the items of a warp have fragments in
 * registers: the products of an iteration take what the one before has loaded, so that nobody waits
 * for a load.
 *
 *     s = 0                        s = 0
 *     loop r                       keep zeros for a, b
 *         let a = ..               loop r
 *         let b = ..                   let a = ..
 *         s += a * b         ->        let b = ..
 *     end                              s += kept a * kept b       of the iteration before
 *                                      keep a, b
 *                                  end
 *                                  s += kept a * kept b           of the last one
 *
 * The first products are of zeros. */
#include "passes.h"

/* All fragments of these products, once: zeros, or what has been loaded in this iteration. */
static int keeps(const Linear *l, const Stmt *product, int n, bool loaded, int depth, Stmt *out)
{
    const Tile *t = l->tile;
    int count = 0;
    for (int i = 0; i < 2 * n; i++) {
        Node *x[2], *term = product[i / 2].term;
        bool known = !tc_operands(t->tc, term, t->fragment, &x[0], &x[1]);
        for (int j = 0; j < count && !known; j++)
            known = out[j].node == x[i % 2];
        if (known)
            continue;
        const bool turned = tc_turned(term, t->fragment);
        out[count++] = (Stmt){.kind = STMT_KEEP,
                              .node = x[i % 2],
                              .depth = depth,
                              .term = term->src[(i % 2) ^ (int)turned],
                              .last = loaded};
    }
    return count;
}

static void keep_of_loops(Linear *l, const SumLoops *p)
{
    Arena *a = arena_new();
    Stmt *product = NEWN(a, Stmt, l->n), *keep = NEWN(a, Stmt, 2 * l->n);
    const int depth = l->stmt[p->loop].depth;
    int n = 0, last = p->loop;
    for (int i = p->loop; i < p->end; i++) {
        Stmt *s = &l->stmt[i];
        if (s->kind != STMT_UPDATE || s->reduce != REDUCE_PRODUCTS)
            continue;
        s->kept = true;
        product[n++] = *s;
        last = i;
    }
    const int inside = product[0].depth;
    for (int i = 0; i < n; i++)
        product[i].depth = depth;
    stmt_insert(l, p->end + 1, product, n);
    stmt_insert(l, last + 1, keep, keeps(l, product, n, true, inside, keep));
    stmt_insert(l, p->loop, keep, keeps(l, product, n, false, depth, keep));
    arena_free(a);
}

bool keep_fragments(Linear *l, const Kernel *k)
{
    (void)k;
    SumLoops p = {0};
    bool changed = false;
    while (sum_loops(l, p.behind, &p)) {
        int i = p.loop;
        while (l->stmt[i].kind != STMT_UPDATE || l->stmt[i].reduce != REDUCE_PRODUCTS)
            i++;
        if (keeps_fragments(l, l->stmt[i].node)) {
            keep_of_loops(l, &p);
            changed = true;
        }
        (void)sum_loops(l, p.first, &p);
    }
    return changed;
}
