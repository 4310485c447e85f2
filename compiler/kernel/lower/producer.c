/* producer.c - STAGE .. move tma: one more item of the group, the producer, has boxes of buffers
 * copied into the places, as far ahead as places are free; all others only multiply.
 *
 *     s = 0                            loader                     the one item, and it alone
 *     loop r                               loop ahead
 *         fill ahead = r                       claim ahead        until the places are free
 *             store a7[..] = box               store a7[..] = box
 *         end                  ->          end
 *         s += a7[..] * ..             end
 *     end                              s = 0
 *                                      loop r
 *                                          filled r               until they are filled
 *                                          s += a7[..] * ..
 *                                          release r              free again, once the products of
 *                                                                 the
 *                                      end                        iteration before are done
 *                                      release all                all are
 *
 * Each pipeline stage has two tokens (mbarriers) for that.  Of attention, queries are copied before
 * all else, and have a token of their own. */
#include <string.h>

#include "passes.h"

/* What the producer does: what is filled before all iterations, then for each. Its statements in
 * `out`, how many. */
static int loader(const Tile *t, const Stmt *once, int nonce, const Stmt *body, int n, int depth,
                  Stmt *out)
{
    int count = 0;
    out[count++] = (Stmt){.kind = STMT_LOADER, .depth = depth};
    if (nonce)
        out[count++] = (Stmt){.kind = STMT_CLAIM, .depth = depth + 1};
    for (int i = 0; i < nonce; i++) {
        out[count] = once[i];
        out[count++].depth = depth + 1;
    }
    out[count++] = (Stmt){.kind = STMT_LOOP, .node = t->ahead, .depth = depth + 1};
    out[count++] = (Stmt){.kind = STMT_CLAIM, .node = t->ahead, .depth = depth + 2};
    memcpy(&out[count], body, (size_t)n * sizeof *out);
    stmt_put_async(&out[count], n, depth + 1);
    count += n;
    out[count++] = (Stmt){.kind = STMT_END, .node = t->ahead, .depth = depth + 1};
    out[count++] = (Stmt){.kind = STMT_END, .depth = depth};
    return count;
}

static void produce(Linear *l, const SumLoops *p, int fill)
{
    Arena *a = arena_new();
    const int end = stmt_end(l->stmt, fill), loop = fill - 1, depth = l->stmt[p->loop].depth,
              n = end - fill - 1;
    Node *r = l->tile->ahead_of;
    Stmt *body = NEWN(a, Stmt, n + 1), *out = NEWN(a, Stmt, n + 8);
    memcpy(body, &l->stmt[fill + 1], (size_t)n * sizeof *body);
    stmt_insert(l, p->behind, &(Stmt){.kind = STMT_RELEASE, .depth = depth}, 1);
    const Stmt release = {.kind = STMT_RELEASE, .node = r, .depth = l->stmt[loop].depth + 1};
    stmt_insert(l, stmt_end(l->stmt, loop), &release, 1);
    l->stmt[fill] = release;
    l->stmt[fill].kind = STMT_FILLED;
    stmt_remove(l, fill + 1, end - fill);
    stmt_insert(l, p->first, out, loader(l->tile, NULL, 0, body, n, depth, out));
    arena_free(a);
}

/* Boxes that are filled once are taken out of the first `n` statements: how many. */
static int take_boxes(Linear *l, int n, Stmt *out)
{
    int count = 0;
    for (int i = 0; i < n - count; i++)
        if (l->stmt[i].kind == STMT_STORE && l->stmt[i].store == STORE_BOX) {
            out[count++] = l->stmt[i];
            stmt_remove(l, i--, 1);
        }
    return count;
}

/* What the boxes of n statements are placed by, and the statements are made of otherwise. */
static int nodes_of(const Linear *l, const Stmt *s, int n, Node **out)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        const Box *box =
            s[i].kind == STMT_STORE && s[i].store == STORE_BOX ? box_of(l, s[i].node) : NULL;
        if (s[i].node)
            out[count++] = s[i].node;
        for (int j = 0; box && j < box->rank; j++) {
            out[count++] = box->at[j];
            if (box->window || box->end[j])
                out[count++] = box->window ? box->tap[j] : box->end[j];
        }
    }
    return count;
}

/* Where the producer's part begins: in front of the values that it does not need. It would load
 * them, and others may overwrite what they are loaded from before it has done so. */
static int before_values(const Linear *l, const Kernel *k, int at, int nneed, Node *const *need)
{
    Arena *a = arena_new();
    int n;
    Node **order = graph_toposort(a, nneed, need, &n);
    bool *needed = NEWN(a, bool, k->c->nnode + 1);
    for (int i = 0; i < n; i++)
        needed[order[i]->id] = true;
    while (at > 0 && l->stmt[at - 1].kind == STMT_LET && !needed[l->stmt[at - 1].node->id])
        at--;
    arena_free(a);
    return at;
}

/* Attention: what is filled once comes first; all products of an iteration are done at its end. */
static bool produce_rows(Linear *l, const Kernel *k)
{
    int fill = 0;
    while (fill < l->n && l->stmt[fill].kind != STMT_FILL)
        fill++;
    if (fill == l->n)
        return false;
    Arena *a = arena_new();
    const int end = stmt_end(l->stmt, fill), depth = l->stmt[fill].depth - 1, n = end - fill - 1;
    Node *r = l->tile->ahead_of;
    Stmt *body = NEWN(a, Stmt, n + 1), *once = NEWN(a, Stmt, l->tile->nbox + 1),
         *out = NEWN(a, Stmt, n + l->tile->nbox + 8);
    memcpy(body, &l->stmt[fill + 1], (size_t)n * sizeof *body);
    l->stmt[fill] = (Stmt){.kind = STMT_FILLED, .node = r, .depth = depth + 1};
    stmt_remove(l, fill + 1, end - fill);
    const Stmt release = {
        .kind = STMT_RELEASE, .node = idx_add(k->c, r, idx(k->c, 1)), .depth = depth + 1};
    stmt_insert(l, stmt_end(l->stmt, fill - 1), &release, 1);
    const int nonce = take_boxes(l, fill - 1, once);
    int loop = fill - 1 - nonce, before = loop;
    while (before > 0 && l->stmt[before - 1].kind == STMT_ACC)
        before--;
    if (nonce)
        stmt_insert(l, loop, &(Stmt){.kind = STMT_FILLED, .depth = depth}, 1);
    Node **need = NEWN(a, Node *, (n + nonce + 1) * (2 * MAX_BOX + 1));
    int nneed = nodes_of(l, body, n, need);
    nneed += nodes_of(l, once, nonce, need + nneed);
    before = before_values(l, k, before, nneed, need);
    stmt_insert(l, before, out, loader(l->tile, once, nonce, body, n, depth, out));
    arena_free(a);
    return true;
}

bool producer(Linear *l, const Kernel *k)
{
    if (tile_rows_in_place(l->tile))
        return produce_rows(l, k);
    SumLoops p = {0};
    bool changed = false;
    while (l->tile->box && sum_loops(l, p.behind, &p)) {
        int fill = p.loop;
        while (fill < p.end && l->stmt[fill].kind != STMT_FILL)
            fill++;
        if (fill < p.end) {
            produce(l, &p, fill);
            p.behind = 0;
            changed = true;
        }
    }
    return changed;
}
