/* spread_stores.c - sums that come in turn (linearize.c): the results of the first are made amid
 * the terms of the next, a few after some terms each.
 *
 *     s0..s7 = 0                          s0..s7 = 0
 *     loop r < 16: s0..s7 += ..           loop r < 16: s0..s7 += ..
 *     store y[0..7]                       s8..s15 = 0
 *     s8..s15 = 0                         loop r = 0 < 4: s8..s15 += ..
 *     loop r < 16: s8..s15 += ..    ->    store y[0], y[1]
 *     store y[8..15]                      loop r = 4 < 8: s8..s15 += ..
 *                                         store y[2], y[3]
 *                                         ..
 *                                         store y[8..15]
 *
 * A sum of 16 dots takes as long as a dozen operations of those that make a byte of it again, and a
 * processor has other units for these: but it looks only some hundred operations ahead, and where
 * all results of a tile are made at once, finds no dots there (1x1 convolution of 64 to 256
 * channels with a residual, Zen 4: 65 % of the dots' rate, and 78 so). */
#include "passes.h"

enum { STORES = 2, TERMS = 4 }; /* at once, after so many terms */

/* What stands between a group's stores and the loop of the next one. */
static bool is_plain_start(const Stmt *s, int depth)
{
    return s->depth == depth && (s->kind == STMT_LET || s->kind == STMT_ACC);
}

static bool is_result(const Stmt *s, int depth)
{
    return s->kind == STMT_STORE && s->depth == depth && s->node->op == OP_STORE &&
           s->node->src[0]->op == OP_BUFFER;
}

/* A loop of so many iterations, in which is no other; 0: it is none. */
static int64_t terms_of_loop(const Linear *l, int at)
{
    int64_t extent;
    const Stmt *s = &l->stmt[at];
    if (at >= l->n || s->kind != STMT_LOOP || s->from || s->upto ||
        !idx_value(s->node->src[0], &extent))
        return 0;
    for (int i = at + 1; l->stmt[i].kind != STMT_END; i++)
        if (l->stmt[i].kind != STMT_LET && l->stmt[i].kind != STMT_UPDATE)
            return 0;
    return extent;
}

/* Stores of one group, and the loop that comes behind them. */
typedef struct {
    int first, behind; /* stores, with values between them */
    int loop, end;
    int nstore;
    int64_t terms;
} Turn;

static bool turn_at(const Linear *l, int at, Turn *t)
{
    const int depth = l->stmt[at].depth;
    *t = (Turn){.first = at};
    if (!is_result(&l->stmt[at], depth))
        return false;
    int i = at;
    for (; i < l->n && (is_result(&l->stmt[i], depth) || is_plain_start(&l->stmt[i], depth)); i++) {
        t->nstore += l->stmt[i].kind == STMT_STORE;
        t->behind = l->stmt[i].kind == STMT_STORE ? i + 1 : t->behind;
    }
    t->loop = i;
    t->terms = terms_of_loop(l, i);
    t->end = t->terms ? stmt_end(l->stmt, i) : i;
    return t->terms >= 2;
}

/* A part of the loop; gives how many statements that are. */
static int part_of_loop(const Linear *l, const Kernel *k, const Turn *t, int64_t from, int64_t upto,
                        Stmt *out)
{
    const int n = t->end + 1 - t->loop;
    for (int i = 0; i < n; i++)
        out[i] = l->stmt[t->loop + i];
    out[0].from = idx(k->c, from);
    out[0].upto = idx(k->c, upto);
    return n;
}

/* What was there from t->first to t->end, in its new order; gives how many statements that are. */
static int spread(const Linear *l, const Kernel *k, const Turn *t, Stmt *out)
{
    int n = 0, store = t->first;
    for (int i = t->first; i < t->loop; i++)
        if (l->stmt[i].kind != STMT_STORE)
            out[n++] = l->stmt[i];
    int64_t from = 0;
    for (int left = t->nstore; left;) {
        const int64_t parts = (left + STORES - 1) / STORES, rest = t->terms - from;
        const int64_t upto = from + (TERMS * parts <= rest ? TERMS : rest / (parts + 1));
        if (upto > from)
            n += part_of_loop(l, k, t, from, upto, out + n);
        from = upto;
        for (int i = 0; i < STORES && left; left--, i++) {
            while (l->stmt[store].kind != STMT_STORE)
                store++;
            out[n++] = l->stmt[store++];
        }
    }
    return from < t->terms ? n + part_of_loop(l, k, t, from, t->terms, out + n) : n;
}

bool spread_stores(Linear *l, const Kernel *k)
{
    bool changed = false;
    for (int i = 0; i < l->n && l->in_turn; i++) {
        Turn t;
        if (!turn_at(l, i, &t))
            continue;
        Arena *a = arena_new();
        const int was = t.end + 1 - t.first;
        Stmt *out = NEWN(a, Stmt, was * (t.nstore + 2));
        const int n = spread(l, k, &t, out);
        stmt_remove(l, t.first, was);
        stmt_insert(l, t.first, out, n);
        arena_free(a);
        i = t.first + n - 1;
        changed = true;
    }
    return changed;
}
