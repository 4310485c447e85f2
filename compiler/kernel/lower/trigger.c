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
 * Keys and values whose number a run says come to few groups (lower_shares.c), each of which has so
 * many bytes under way at once as one processor can: half of all processors would leave half of the
 * memory's rate.  So each group asks for lines of the second level of cache before it waits, of so
 * many iterations as all of them have room for there.  That reads nothing: whatever the kernel
 * before writes is seen behind the wait.
 *
 *     loop ahead < 16
 *         prefetch a2[..]
 *     end
 *     depend
 *     loop ahead < 5: store async a5[..] = a2[..]
 *
 * So does a product of few rows, whose weights boxes bring.
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

/* The loop behind `at` that fills places ahead of rows that groups of a cluster share; -1: none. */
static int first_fill(const Linear *l, int at)
{
    const Tile *t = l->tile;
    while (at < l->n && t->ranks && (l->stmt[at].kind != STMT_LOOP || l->stmt[at].node != t->ahead))
        at++;
    return t->ranks && t->ahead && !t->box && at < l->n ? at : -1;
}

/* The same of boxes: what of the weights comes first is asked for before the wait. */
static void ask_boxes_early(Linear *l, const Kernel *k, int at)
{
    enum { MOST_BYTES = 128 << 10, FEW = 8 };
    const Tile *t = l->tile;
    int loop = at, n = 0;
    int64_t bytes = 0;
    if (!t->box || !t->ahead || t->along || t->stay || t->tc->n > FEW)
        return;
    while (loop < l->n && (l->stmt[loop].kind != STMT_LOOP || l->stmt[loop].node != t->ahead))
        loop++;
    if (loop == l->n)
        return;
    Arena *a = arena_new();
    const int end = stmt_end(l->stmt, loop);
    const bool *depends = depends_on_earlier(a, l, k, true);
    Stmt *out = NEWN(a, Stmt, end - loop + 2);
    out[n++] = l->stmt[loop];
    out[0].depth = 0;
    for (int i = loop + 1; i < end; i++) {
        const Stmt *s = &l->stmt[i];
        const Box *b = s->kind == STMT_STORE && s->store == STORE_BOX ? box_of(l, s->node) : NULL;
        if (!b || b->window || depends[s->node->src[2]->id])
            continue;
        bytes += b->elements * dtype_info[s->node->src[2]->dtype].bytes;
        out[n++] = (Stmt){.kind = STMT_PREFETCH, .node = s->node, .depth = 1};
    }
    if (bytes) {
        out[0].upto = idx_min(k->c, idx(k->c, MOST_BYTES / bytes), l->stmt[loop].node->src[0]);
        out[n++] = (Stmt){.kind = STMT_END, .node = l->stmt[loop].node};
        stmt_insert(l, at, out, n);
    }
    arena_free(a);
}

static bool is_copy(const Stmt *s)
{
    return s->kind == STMT_STORE && s->async && s->node->src[2]->op == OP_LOAD;
}

/* Bytes that the group copies in an iteration of the loop; 0: other loops are inside. */
static int64_t bytes_of_fill(const Linear *l, int loop, int64_t items)
{
    int64_t bytes = 0;
    for (int i = loop + 1; l->stmt[i].kind != STMT_END; i++) {
        const Stmt *s = &l->stmt[i];
        if (s->kind == STMT_LOOP)
            return 0;
        if (is_copy(s))
            bytes += store_chunk(s->node) * (int64_t)dtype_info[s->node->src[2]->dtype].bytes;
    }
    return bytes * items;
}

static void mark(bool *needed, const Node *n)
{
    if (needed[n->id])
        return;
    needed[n->id] = true;
    for (uint32_t i = 0; i < n->nsrc; i++)
        mark(needed, n->src[i]);
}

/* What the first copies bring is asked for before the statement `at`, which is the wait. */
static void ask_early(Linear *l, const Kernel *k, int at)
{
    enum { MOST_BYTES = 128 << 10 }; /* of a group: more are in the way of its copies */
    const int loop = first_fill(l, at);
    const int64_t each = loop < 0 ? 0 : bytes_of_fill(l, loop, tile_group(l->tile));
    if (!each || each > MOST_BYTES)
        return;
    Arena *a = arena_new();
    const bool *depends = depends_on_earlier(a, l, k, true);
    bool *needed = NEWN(a, bool, k->c->nnode + 1);
    Stmt *out = NEWN(a, Stmt, l->n + 1);
    int n = 0, end = stmt_end(l->stmt, loop);
    bool known = true; /* places that the kernel before says are not known yet */
    for (int i = loop + 1; i < end; i++)
        for (int j = 1; j <= 2 && is_copy(&l->stmt[i]); j++) {
            const Node *of = l->stmt[i].node->src[2]->src[j];
            known &= !depends[of->id];
            mark(needed, of);
        }
    for (int i = at + 1; i < loop && known; i++) { /* what addresses are made of */
        const Stmt s = l->stmt[i];
        if (s.kind == STMT_LET && needed[s.node->id] && !depends[s.node->id] && !s.depth) {
            stmt_remove(l, i, 1);
            stmt_insert(l, at++, &s, 1);
        }
    }
    Node *const most = idx(k->c, MOST_BYTES / each), *const count = l->stmt[loop].node->src[0];
    out[n] = l->stmt[loop];
    out[n++].upto = idx_min(k->c, most, count);
    for (int i = loop + 1; i < end; i++) {
        Stmt s = l->stmt[i];
        if (is_copy(&s))
            s = (Stmt){.kind = STMT_PREFETCH, .node = s.node->src[2], .depth = s.depth};
        else if (s.kind != STMT_LET || !needed[s.node->id])
            continue;
        out[n++] = s;
    }
    out[n++] = l->stmt[end];
    stmt_insert(l, at, out, known ? n : 0);
    arena_free(a);
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
    int wait = at;
    while (l->stmt[wait].kind != STMT_DEPEND)
        wait++;
    ask_early(l, k, wait);
    ask_boxes_early(l, k, wait);
    return true;
}
