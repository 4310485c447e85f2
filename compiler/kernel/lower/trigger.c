/* trigger.c - kernels of a GPU overlap: when does this one wait for those before it, and when may
 * the one behind it begin (TRIGGER; programmatic dependent launch)?
 *
 *     let v0 = a2[..]          a constant: nothing to wait for
 *     depend                   before the outermost loop with the first access to what is none
 *     next                     TRIGGER waited: the next kernel may begin, and wait in its turn;
 *                              TRIGGER copied: it stands before all others
 *     loop r
 *         s += a1[..] * v0
 *     end
 *     next                     or TRIGGER summed: when the sums of products are done
 *     store s
 *
 * Where a1 is settled (settled.c), all that precede the one before are done when this one begins:
 * it lets the next one begin at once, and waits before it stores. */
#include "passes.h"

/* Where the outermost loop with the first such access begins. */
static int first_access(const Linear *l, const bool *depends)
{
    int open = 0, first = 0;
    for (int at = 0; at < l->n; at++) {
        const Stmt *s = &l->stmt[at];
        if (!open)
            first = at;
        open += s->kind == STMT_LOOP || s->kind == STMT_LOADER;
        open -= s->kind == STMT_END;
        const bool accesses =
            s->kind == STMT_LET || s->kind == STMT_UPDATE || s->kind == STMT_STORE;
        if (accesses && depends[s->node->id])
            break;
    }
    return first;
}

static int items_end(const Linear *l)
{
    int at = 0;
    while (at < l->n && l->stmt[at].kind == STMT_ITEM)
        at++;
    return at;
}

bool trigger(Linear *l, const Kernel *k)
{
    if (!l->items)
        return false;
    SumLoops p = {0};
    while (l->tile->trigger == TRIGGER_SUMMED && l->tile->ahead && sum_loops(l, p.behind, &p)) {
        stmt_insert(l, p.behind, &(Stmt){.kind = STMT_NEXT, .depth = l->stmt[p.loop].depth}, 1);
        p.behind++;
    }
    Arena *a = arena_new();
    const int any = first_access(l, depends_on_earlier(a, l, k, true)),
              at = first_access(l, depends_on_earlier(a, l, k, false));
    arena_free(a);
    stmt_insert(l, at, &(Stmt){.kind = STMT_DEPEND}, 1);
    if (l->tile->trigger == TRIGGER_COPIED)
        stmt_insert(l, items_end(l), &(Stmt){.kind = STMT_NEXT}, 1);
    else if (l->tile->trigger == TRIGGER_WAITED)
        stmt_insert(l, any < at ? any : at + 1, &(Stmt){.kind = STMT_NEXT}, 1);
    return true;
}
