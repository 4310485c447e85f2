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
 * Each pipeline stage has two tokens (mbarriers) for that. */
#include <string.h>

#include "passes.h"

/* What the producer does: its statements in `out`, how many. */
static int loader(const Tile *t, const Stmt *body, int n, int depth, Stmt *out)
{
    int count = 0;
    out[count++] = (Stmt){.kind = STMT_LOADER, .depth = depth};
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
    stmt_insert(l, p->first, out, loader(l->tile, body, n, depth, out));
    arena_free(a);
}

bool producer(Linear *l, const Kernel *k)
{
    (void)k;
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
