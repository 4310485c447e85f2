/* pipeline_copies.c - STAGE with a depth: places are filled ahead by copies that nobody waits for
 * until what they bring is read (pipelined staging; cp.async).  Of depth 4:
 *
 *     loop r                               barrier                     places may still be read
 *         fill ahead = r                   loop ahead < 3              the first three begin,
 *             store a7[ahead % 4] = ..         store async ..          a group each
 *         end                        ->        commit
 *         .. a7[r % 4] ..                  end
 *     end                                  loop r
 *                                              wait 2                  all groups but two: r's are
 *                                                  done,
 *                                              barrier                 those of all items
 *                                              loop ahead = r + 3      a later one begins, in the
 *                                                  place that
 *                                                  store async ..      all have read in the
 *                                                      iteration before
 *                                              end
 *                                              commit
 *                                              .. a7[r % 4] ..
 *                                          end
 *
 * Constants come first: they are on their way while the kernel waits for the one before it, and are
 * there when the first group is.  So where some places are filled with constants and others are
 * not, there are two loops before the sum's, of which the second one commits.
 *
 * Where fragments are kept (keep_fragments.c), those of a later iteration begin before the
 * products: all warps have just come from a barrier and have nothing to multiply yet but what they
 * kept, and copies would keep them from loading more.
 *
 * Fragments that stay in registers for all iterations are loaded before the loop, from places that
 * the group has copied before. Those copies are waited for when the first ones of the loop have
 * begun:
 *
 *     wait 0                               loop ahead < 3
 *     barrier                                  store async ..
 *     let x = a fragment         ->            commit
 *     s = 0                                end
 *     loop r                               wait 3
 *         ..                               barrier
 *                                          let x = a fragment
 *                                          s = 0
 *                                          loop r
 *                                              ..
 *
 * What boxes fill is left to producer.c. */
#include <string.h>

#include "passes.h"

/* The body of a STMT_FILL: what is named for all its places, and then what fills them, each in
 * loops of its own. */
typedef struct {
    Stmt *stmt;
    int n;
} FillBody;

static void mark_sources(bool *needed, const Node *n)
{
    if (!n || needed[n->id])
        return;
    needed[n->id] = true;
    for (uint32_t i = 0; i < n->nsrc; i++)
        mark_sources(needed, n->src[i]);
}

static bool stores_late(const FillBody *b, int from, int to, const bool *depends)
{
    bool late = false;
    for (int i = from; i < to; i++)
        late |= b->stmt[i].kind == STMT_STORE && depends[b->stmt[i].node->id];
    return late;
}

/* What fills places with constants (late: with anything else), and what that is made of. */
static FillBody some_fills(Arena *a, const Kernel *k, const FillBody *all, const bool *depends,
                           bool late)
{
    FillBody some = {NEWN(a, Stmt, all->n + 1), 0};
    bool *needed = NEWN(a, bool, k->c->nnode + 1), *taken = NEWN(a, bool, all->n + 1);
    for (int i = 0, to; i < all->n; i = to) {
        to = stmt_end(all->stmt, i) + 1;
        if (all->stmt[i].kind == STMT_LET || stores_late(all, i, to, depends) != late)
            continue;
        for (int j = i; j < to; j++) {
            taken[j] = true;
            mark_sources(needed, all->stmt[j].node);
        }
    }
    for (int i = 0; i < all->n; i++)
        if (taken[i] || (all->stmt[i].kind == STMT_LET &&
                         all->stmt[i].depth == all->stmt[0].depth && needed[all->stmt[i].node->id]))
            some.stmt[some.n++] = all->stmt[i];
    return some;
}

/* A loop over `ahead` with this body: statements in `out`, how many. */
static int loop_ahead(Stmt *out, Stmt loop, const FillBody *b, bool commits)
{
    int n = 0;
    out[n++] = loop;
    memcpy(&out[n], b->stmt, (size_t)b->n * sizeof *out);
    stmt_put_async(&out[n], b->n, loop.depth);
    n += b->n;
    if (commits)
        out[n++] = (Stmt){.kind = STMT_COMMIT, .depth = loop.depth + 1};
    out[n++] = (Stmt){.kind = STMT_END, .node = loop.node, .depth = loop.depth};
    return n;
}

/* Of fewer iterations than are filled ahead there are as many groups of copies, those behind the
 * last one without any: how many may be under way is a constant. */
static int missing_groups(const Linear *l, const Kernel *k, int depth, Stmt *out)
{
    const Tile *t = l->tile;
    Node *count = t->ahead->src[0], *groups = idx(k->c, t->depth - 1);
    if (count->lo >= t->depth - 1)
        return 0;
    out[0] = (Stmt){.kind = STMT_LOOP,
                    .node = t->ahead,
                    .depth = depth,
                    .upto = idx_sub(k->c, groups, idx_min(k->c, groups, count))};
    out[1] = (Stmt){.kind = STMT_COMMIT, .depth = depth + 1};
    out[2] = (Stmt){.kind = STMT_END, .node = t->ahead, .depth = depth};
    return 3;
}

/* Before the sum's loop. met: all items have just come to a barrier. */
static int first_copies(Arena *a, const Linear *l, const Kernel *k, const FillBody *all, int depth,
                        bool met, Stmt *out)
{
    const Tile *t = l->tile;
    const bool *depends = depends_on_earlier(a, l, k, false);
    const FillBody early = some_fills(a, k, all, depends, false),
                   late = some_fills(a, k, all, depends, true);
    const Stmt loop = {.kind = STMT_LOOP,
                       .node = t->ahead,
                       .depth = depth,
                       .upto = idx_min(k->c, idx(k->c, t->depth - 1), t->ahead->src[0])};
    int n = 0;
    if (!met)
        out[n++] = (Stmt){.kind = STMT_BARRIER, .depth = depth};
    if (!early.n || !late.n) {
        n += loop_ahead(&out[n], loop, all, true);
    } else {
        n += loop_ahead(&out[n], loop, &early, false);
        n += loop_ahead(&out[n], loop, &late, true);
    }
    return n + missing_groups(l, k, depth, &out[n]);
}

/* The loop over the one later iteration, if there is such; where loops inside of the sum's have
 * opened, when all of them are at their last iteration. */
static Stmt later_copies(const Linear *l, const Kernel *k, int loop, int at)
{
    const Tile *t = l->tile;
    Context *c = k->c;
    Node *later = idx_add(c, t->ahead_of, idx(c, t->depth - 1)), *zero = NULL;
    int depth = l->stmt[loop].depth + 1;
    for (int i = loop + 1; i < at; i++) {
        const Stmt *s = &l->stmt[i];
        if (s->kind != STMT_LOOP || stmt_end(l->stmt, i) < at)
            continue;
        zero = idx_add(c, zero ? zero : idx(c, 0),
                       idx_sub(c, s->node, idx_add(c, s->node->src[0], idx(c, -1))));
        depth = s->depth + 1;
    }
    return (Stmt){.kind = STMT_LOOP,
                  .node = t->ahead,
                  .depth = depth,
                  .zero = zero,
                  .from = later,
                  .upto = idx_min(c, idx_add(c, later, idx(c, 1)), t->ahead->src[0])};
}

/* Takes out the wait for copies that fragments are loaded from before the loop, and what stands
 * behind it up to the loop but is no part of the copies: *at is where the loop is then. How many
 * statements; 0: there is no such wait. */
static int take_wait(Linear *l, int *at, Stmt *out)
{
    int wait = *at, n = 0, left = 0;
    bool loads = false;
    while (wait > 0 && (l->stmt[wait - 1].kind == STMT_ACC || l->stmt[wait - 1].kind == STMT_LET))
        wait--;
    if (wait < 2 || l->stmt[wait - 1].kind != STMT_BARRIER || l->stmt[wait - 2].kind != STMT_WAIT)
        return 0;
    wait -= 2;
    for (int i = wait; i < *at; i++) {
        const Stmt s = l->stmt[i];
        const bool fragment = s.kind == STMT_LET && l->fragment[s.node->id];
        loads |= fragment;
        if (s.kind == STMT_LET && !fragment)
            l->stmt[wait + left++] = s;
        else
            out[n++] = s;
    }
    if (!loads)
        BUG("a wait for copies of which nothing is loaded");
    stmt_remove(l, wait + left, n);
    *at -= n;
    return n;
}

/* Does each warp fill what it reads?  Then none waits for another one in the loop, if all have what
 * was copied before it. */
static bool warps_apart(const Linear *l, int depth)
{
    const Tile *t = l->tile;
    return t->along && t->ranks && !t->together && !tc_in_place(t->tc) && !depth;
}

static void pipeline_fill(Linear *l, const Kernel *k, int fill)
{
    Arena *a = arena_new();
    const int end = stmt_end(l->stmt, fill), depth = l->stmt[fill - 1].depth;
    int loop = fill - 1;
    FillBody all = {NEWN(a, Stmt, end - fill), end - fill - 1};
    memcpy(all.stmt, &l->stmt[fill + 1], (size_t)all.n * sizeof *all.stmt);
    stmt_remove(l, fill, end + 1 - fill);
    Stmt *out = NEWN(a, Stmt, 2 * all.n + 8 + 3);
    const Stmt commit = {.kind = STMT_COMMIT, .depth = depth + 1};
    int at = fill, last = stmt_end(l->stmt, loop);
    while (at < last && !l->stmt[at].kept)
        at++;
    const bool kept = at < last;
    at = kept ? at : fill;
    if (kept)
        stmt_insert(l, last, &commit, 1);
    int n = loop_ahead(out, later_copies(l, k, loop, at), &all, false);
    if (!kept)
        out[n++] = commit;
    stmt_insert(l, at, out, n);
    Stmt *waited = NEWN(a, Stmt, loop + 1);
    const int before_fill = fill - loop, nwaited = take_wait(l, &loop, waited);
    const Stmt wait[] = {
        {.kind = STMT_WAIT, .depth = depth + 1, .count = l->tile->depth - 2},
        {.kind = STMT_BARRIER, .depth = depth + 1, .alone = nwaited && warps_apart(l, depth)},
    };
    stmt_insert(l, loop + before_fill, wait, 2);
    int before = loop;
    while (before > 0 && (l->stmt[before - 1].kind == STMT_ACC ||
                          (l->tile->along && l->stmt[before - 1].kind == STMT_LET)))
        before--;
    const bool met = (nwaited && !depth) || /* nobody has read the places before */
                     (before > 0 && l->stmt[before - 1].kind == STMT_BARRIER);
    if (nwaited)
        waited[0].count += l->tile->depth - 1;
    stmt_insert(l, loop, waited, nwaited);
    stmt_insert(l, loop, out, first_copies(a, l, k, &all, depth, met, out));
    arena_free(a);
}

bool pipeline_copies(Linear *l, const Kernel *k)
{
    bool changed = false;
    for (int i = 0; i < l->n && !l->tile->box; i++)
        if (l->stmt[i].kind == STMT_FILL) {
            pipeline_fill(l, k, i);
            changed = true;
        }
    return changed;
}
