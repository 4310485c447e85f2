/* statements.c - what passes do with a list of statements: find, insert, take out. */
#include <string.h>

#include "passes.h"

void stmt_insert(Linear *l, int at, const Stmt *s, int n)
{
    for (int i = 0; i < n; i++)
        vec_push(l->arena, l->stmt, l->n, s[i]);
    memmove(&l->stmt[at + n], &l->stmt[at], (size_t)(l->n - n - at) * sizeof *l->stmt);
    memcpy(&l->stmt[at], s, (size_t)n * sizeof *s);
}

void stmt_remove(Linear *l, int at, int n)
{
    l->n -= n;
    memmove(&l->stmt[at], &l->stmt[at + n], (size_t)(l->n - at) * sizeof *l->stmt);
}

Node **stores_of(const Linear *l, Arena *a, int *n)
{
    Node **store = NEWN(a, Node *, l->n + 1);
    *n = 0;
    for (int i = 0; i < l->n; i++)
        if (l->stmt[i].kind == STMT_STORE)
            store[(*n)++] = l->stmt[i].node;
    return store;
}

void set_stores(Linear *l, int n, Node *const *store)
{
    l->n = 0;
    for (int i = 0; i < n; i++) {
        const Stmt s = {.kind = STMT_STORE, .node = store[i]};
        vec_push(l->arena, l->stmt, l->n, s);
    }
}

bool change_accesses(Linear *l, Context *c, Node *(*change)(Context *, const Tile *, Node *))
{
    Arena *a = arena_new();
    bool changed = false;
    int n, nstore;
    Node **store = stores_of(l, a, &nstore), **order = graph_toposort(a, nstore, store, &n),
         **now = NEWN(a, Node *, c->nnode);
    for (int i = 0; i < n; i++) {
        Node *x = node_rebuilt(c, order[i], now);
        now[order[i]->id] = x->op == OP_LOAD || x->op == OP_STORE ? change(c, l->tile, x) : x;
    }
    for (int i = 0; i < nstore; i++) {
        changed |= now[store[i]->id] != store[i];
        store[i] = now[store[i]->id];
    }
    set_stores(l, nstore, store);
    arena_free(a);
    return changed;
}

bool stmt_opens(const Stmt *s)
{
    return s->kind == STMT_LOOP || s->kind == STMT_PARTS || s->kind == STMT_LOADER ||
           s->kind == STMT_FILL;
}

int stmt_end(const Stmt *s, int at)
{
    int open = 0;
    do {
        open += stmt_opens(&s[at]) - (s[at].kind == STMT_END);
        at++;
    } while (open);
    return at - 1;
}

void stmt_put_async(Stmt *s, int n, int depth)
{
    const int deeper = n ? depth + 1 - s[0].depth : 0;
    for (int i = 0; i < n; i++) {
        s[i].depth += deeper;
        s[i].async |= s[i].kind == STMT_STORE && store_chunk(s[i].node) > 1;
    }
}

/* The loop over this range that a statement stands in, or -1. */
static int loop_around(const Linear *l, int at, const Node *range)
{
    int inside = 0;
    while (at-- > 0) {
        const Stmt *s = &l->stmt[at];
        if (s->kind == STMT_END)
            inside++;
        else if (stmt_opens(s) && inside)
            inside--;
        else if (s->kind == STMT_LOOP && s->node == range)
            return at;
    }
    return -1;
}

bool sum_loops(const Linear *l, int from, SumLoops *p)
{
    for (int i = from; i < l->n; i++) {
        const Stmt *s = &l->stmt[i];
        int n = 0;
        Node *const *loop = s->kind == STMT_UPDATE && s->reduce == REDUCE_PRODUCTS
                                ? loops_of(l, s->node, &n)
                                : NULL;
        const int at = n ? loop_around(l, i, loop[0]) : -1;
        if (at < 0)
            continue;
        *p = (SumLoops){.first = at, .loop = at, .end = stmt_end(l->stmt, at)};
        while (p->first &&
               (l->stmt[p->first - 1].kind == STMT_ACC || l->stmt[p->first - 1].kind == STMT_KEEP))
            p->first--;
        p->behind = p->end + 1;
        while (p->behind < l->n &&
               (l->stmt[p->behind].kept ||
                (l->stmt[p->behind].kind == STMT_RELEASE && !l->stmt[p->behind].node)))
            p->behind++;
        return true;
    }
    return false;
}

bool *depends_on_earlier(Arena *a, const Linear *l, const Kernel *k, bool any)
{
    Node **root = NEWN(a, Node *, l->n + 1);
    int nroot = 0, n;
    for (int i = 0; i < l->n; i++)
        if (l->stmt[i].node)
            root[nroot++] = l->stmt[i].node;
    Node **order = graph_toposort(a, nroot, root, &n);
    bool *depends = NEWN(a, bool, k->c->nnode + 1);
    for (int i = 0; i < n; i++) {
        const Node *t = order[i];
        const KernelArg *arg = t->op == OP_BUFFER ? &k->args[t->arg.i] : NULL;
        bool some = arg && !arg->early && (any || !arg->settled);
        for (uint32_t j = 0; j < t->nsrc; j++)
            some |= depends[t->src[j]->id];
        depends[t->id] = some;
    }
    return depends;
}
